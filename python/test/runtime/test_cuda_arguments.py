# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays on NVIDIA GPUs, and where and how a launch with them goes.

No GPU is needed: the arrays are stand-ins with the attributes that frameworks' arrays have.
"""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import _C
from tessera.compiler import toolchain
from tessera.compiler.options import CompileOptions
from tessera.machine import devices
from tessera.runtime import cuda
from tessera.runtime.arrays import ANYWHERE, HOST, NOWHERE, MockTensor, Pointer, pointer_of
from tessera.runtime.specialize import PointerSlot
from tessera.settings import settings

needs_no_gpu = pytest.mark.skipif(_C.cuda_is_available(), reason="there is a GPU")
needs_ptxas = pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")


@pytest.fixture(autouse=True)
def fresh_settings():
    settings.reload()
    yield
    settings.reload()


@tessera.jit
def add_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)


class TorchDType:
    """A dtype as torch spells it."""

    def __str__(self):
        return "torch.float32"


TorchDType.__module__ = "torch_stand_in"


class Tensor:
    """What torch.Tensor has on a GPU."""

    def __init__(self, device=0, address=0x7F0000001000):
        self.device = SimpleNamespace(type="cuda", index=device)
        self.dtype = TorchDType()
        self.address = address

    def data_ptr(self):
        return self.address


class CudaArray:
    """What CuPy's and Numba's arrays have."""

    def __init__(self, typestr="<f4", device=None, **interface):
        data = interface.pop("data", (0x7F0000002000, False))
        self.__cuda_array_interface__ = {
            "shape": (4,), "typestr": typestr, "data": data, "version": 3, **interface,
        }  # fmt: skip
        if device is not None:
            self.device = SimpleNamespace(id=device)


class DLPackArray:
    """An array of a framework that has nothing but DLPack, on a GPU."""

    def __init__(self, array, device):
        self.array = array
        self.device = device
        self.streams = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, **kwargs):
        self.streams.append(stream)
        return self.array.__dlpack__(**kwargs)


def slots(**pointers):
    return [PointerSlot(i, name, pointer) for i, (name, pointer) in enumerate(pointers.items())]


def pointer(device, framework="", stream=None):
    return Pointer(4096, tl.float32, False, None, device, framework, stream)


# --- Arrays ----------------------------------------------------------------------


def test_torch_tensors_on_a_gpu():
    found = pointer_of(Tensor(device=3), "x")
    assert (found.address, found.dtype, found.device) == (0x7F0000001000, tl.float32, 3)
    assert found.framework == "torch_stand_in" and found.stream is None


def test_tensors_of_other_devices_are_refused():
    tensor = Tensor()
    tensor.device = SimpleNamespace(type="xpu", index=0)
    with pytest.raises(tessera.ArgumentError, match="where no kernel runs") as caught:
        pointer_of(tensor, "x")
    assert caught.value.id == "E054"


@pytest.mark.parametrize(
    "typestr, wanted",
    [("<f4", tl.float32), ("<f2", tl.float16), ("|i1", tl.int8), ("|b1", tl.int1), ("<u8", tl.uint64)],
)  # fmt: skip
def test_cuda_array_interface(typestr, wanted):
    found = pointer_of(CudaArray(typestr, device=1, stream=7), "x")
    assert found[:3] == (0x7F0000002000, wanted, False)
    assert (found.device, found.stream) == (1, 7)


def test_cuda_array_interface_says_what_is_read_only():
    assert pointer_of(CudaArray(device=0, data=(4096, True)), "x").read_only


def test_cuda_array_interface_of_a_type_without_a_name():
    array = CudaArray("<V2", device=0)
    array.dtype = SimpleNamespace(name="bfloat16")
    assert pointer_of(array, "x").dtype == tl.bfloat16


def test_an_empty_array_lies_anywhere():
    assert pointer_of(CudaArray(data=(0, False), shape=(0,)), "x").device == ANYWHERE


@pytest.mark.parametrize(
    "array, why",
    [
        (CudaArray("<c8", device=0), "elements of <c8"),
        (CudaArray(">f4", device=0), "the other byte order"),
        (CudaArray(device=0, mask=object()), "has a mask"),
        (CudaArray(device=0, stream=0), "stream 0"),
    ],
)
def test_cuda_arrays_that_are_refused(array, why):
    with pytest.raises(tessera.ArgumentError, match=why) as caught:
        pointer_of(array, "x")
    assert caught.value.id == "E054" and "`x`" in str(caught.value)


def test_dlpack_on_a_gpu():
    array = np.arange(6, dtype=np.int16)
    exporter = DLPackArray(array, (2, 1))
    found = pointer_of(exporter, "x")
    assert (found.dtype, found.device, found.stream) == (tl.int16, 1, 1)
    assert exporter.streams[-1] == 1


def test_arrays_of_frameworks_without_writing_are_read_only():
    array = DLPackArray(np.zeros(3), (2, 0))
    type(array).__module__, before = "jaxlib.stand_in", type(array).__module__
    try:
        assert pointer_of(array, "x").read_only
    finally:
        type(array).__module__ = before


# --- Where a launch goes -----------------------------------------------------------


def test_the_target_follows_the_arrays():
    assert cuda.find_place([], "auto") is None
    assert cuda.find_place(slots(x=pointer(HOST)), "auto") is None
    assert cuda.find_place(slots(x=pointer(HOST)), "cpu") is None
    assert cuda.find_place(slots(x=pointer(2), y=pointer(2)), "auto") == (2, True, False)
    assert cuda.find_place(slots(x=pointer(ANYWHERE), y=pointer(1)), "cuda") == (1, True, False)
    assert cuda.find_place([], "cuda").by_arrays is False


@pytest.mark.parametrize(
    "pointers, target, why",
    [
        (dict(x=0, y=1), "auto", "`y` is on GPU 1, and `x` is on GPU 0"),
        (dict(x=0, y=HOST), "auto", "`y` is in the CPU's memory, and `x` is on GPU 0"),
        (dict(x=HOST, y=0), "auto", "`x` is in the CPU's memory, and `y` is on GPU 0"),
        (dict(x=HOST), "cuda", "`x` is in the CPU's memory, and the target is 'cuda'"),
        (dict(x=1), "cpu", "`x` is on GPU 1, and the target is 'cpu'"),
    ],
)
def test_arrays_in_the_wrong_place(pointers, target, why):
    named = slots(**{name: pointer(device) for name, device in pointers.items()})
    with pytest.raises(tessera.ArgumentError) as caught:
        cuda.find_place(named, target)
    assert caught.value.id == "E054" and why in str(caught.value) and caught.value.fix


def test_a_launch_names_what_is_in_the_wrong_place():
    with pytest.raises(tessera.ArgumentError, match="`x_ptr` is in the CPU's memory") as caught:
        add_one[(1,)](np.zeros(4, np.float32), Tensor(), 4, BLOCK=4)
    assert caught.value.id == "E054"


def test_the_interpreter_takes_no_array_on_a_gpu():
    with pytest.raises(tessera.ArgumentError, match="the interpreter runs on the CPU"):
        tessera.interpret(add_one)[(1,)](Tensor(), Tensor(), 4, BLOCK=4)


@needs_no_gpu
def test_a_launch_without_a_driver_says_so():
    with pytest.raises(tessera.LaunchError, match="driver") as caught:
        add_one[(1,)](Tensor(), Tensor(), 4, BLOCK=4)
    assert caught.value.id == "E066" and "NVIDIA driver" in caught.value.fix


def test_asking_for_the_current_gpu_opens_none(monkeypatch):
    """A process that torch has opened no GPU in may still be forked."""

    def refuse():
        raise AssertionError("torch would open a GPU")

    current = SimpleNamespace(
        is_initialized=lambda: False, current_device=refuse, is_available=lambda: True
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=current))
    assert devices.current_device() == 0
    current.is_initialized, current.current_device = lambda: True, lambda: 3
    assert devices.current_device() == 3


# --- On which stream ---------------------------------------------------------------


@pytest.fixture
def torch_stream(monkeypatch):
    current = SimpleNamespace(
        is_initialized=lambda: True,
        current_device=lambda: 1,
        current_stream=lambda device: SimpleNamespace(cuda_stream=100 + device),
    )
    fake = SimpleNamespace(cuda=current, _C=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "torch", fake)


@pytest.fixture
def waits(monkeypatch):
    made = []
    monkeypatch.setattr(cuda, "wait_for_stream", lambda *which: made.append(which))
    return made


def stream_of(pointers, given=None):
    return cuda.read_stream(cuda.find_stream(pointers, 2, given), 2)


def test_the_stream_is_the_frameworks(torch_stream, waits):
    assert stream_of([]) == 0
    assert stream_of(slots(x=pointer(2))) == 0
    assert stream_of(slots(x=pointer(2, stream=7))) == 7
    assert stream_of(slots(x=pointer(2, "torch"))) == 102
    # A tensor in pinned memory decides where nothing is on the GPU.
    assert stream_of(slots(x=pointer(HOST, "torch"), y=pointer(2, stream=7))) == 7
    assert stream_of(slots(x=pointer(HOST, "torch"), y=pointer(2))) == 0
    assert stream_of(slots(x=pointer(HOST, "torch"))) == 102
    assert waits == []


def test_torchs_private_function_is_preferred(torch_stream):
    sys.modules["torch"]._C._cuda_getCurrentRawStream = lambda device: 200 + device
    assert stream_of(slots(x=pointer(2, "torch"))) == 202


def test_other_streams_are_waited_for(torch_stream, waits):
    mixed = slots(x=pointer(2, "torch"), y=pointer(2, stream=1), z=pointer(2, stream=102))
    assert stream_of(mixed) == 102
    assert waits == [(2, 102, 0)]
    assert stream_of(slots(x=pointer(2, stream=7), y=pointer(2, stream=8))) == 7
    assert waits[1:] == [(2, 7, 8)]


def test_a_stream_that_is_given(torch_stream, waits):
    numba = SimpleNamespace(handle=SimpleNamespace(value=5))
    protocol = SimpleNamespace(__cuda_stream__=lambda: (0, 6))
    for given, wanted in [
        (3, 3), (SimpleNamespace(cuda_stream=4), 4), (SimpleNamespace(ptr=9), 9), (numba, 5), (protocol, 6),
    ]:  # fmt: skip
        assert stream_of(slots(x=pointer(2, "torch")), given) == wanted
    assert stream_of(slots(x=pointer(2, stream=1)), 0) == 0 and waits == []
    for wrong in ("s", -1, True):
        with pytest.raises(tessera.LaunchError) as caught:
            stream_of([], wrong)
        assert caught.value.id == "E053"


# --- Options, keys, toolchain ---------------------------------------------------------


@pytest.mark.parametrize(
    "given, target, arch",
    [
        ({}, "auto", ""),
        ({"target": None}, "auto", ""),
        ({"target": "cpu"}, "cpu", ""),
        ({"target": "cuda"}, "cuda", ""),
        ({"target": "sm_90a"}, "cuda", "sm_90a"),
        ({"target": "cuda:80"}, "cuda", "sm_80"),
        ({"target": "cuda", "arch": "sm_80"}, "cuda", "sm_80"),
        ({"target": None, "arch": "sm_80"}, "cuda", "sm_80"),
        ({"arch": "sm90a"}, "cuda", "sm_90a"),
    ],
)
def test_targets(given, target, arch):
    options = CompileOptions.of(given)
    assert (options.target, options.arch) == (target, arch)


@pytest.mark.parametrize("given", [{"target": "tpu"}, {"maxnreg": 256}, {"maxnreg": "many"}])
def test_wrong_options(given):
    with pytest.raises(tessera.LaunchError) as caught:
        CompileOptions.of(given)
    assert caught.value.id == "E053"


def test_a_key_holds_what_its_target_looks_at():
    def key(**given):
        options = CompileOptions.of(given)
        return options.resolved(0 if options.target == "cuda" else None).key

    gpu = key(target="sm_90a")
    assert gpu != key(target="sm_80") and gpu != key() and gpu != key(target="sm_90a", num_warps=8)
    assert gpu != key(target="sm_90a", maxnreg=64)
    assert gpu == key(target="sm_90a", num_threads=3, cpu="x86-64", stream=5)
    assert key() == key(num_warps=8) == key(target="cpu", arch="sm_80")
    assert key() != key(cpu="x86-64")


@pytest.mark.parametrize(
    "capability, wanted",
    [((8, 0), "sm_80"), ((8, 6), "sm_86"), ((8, 7), "sm_87"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"),
     ((10, 0), "sm_100a"), ((10, 3), "sm_103a"), ((12, 0), "sm_120a"), ((12, 1), "sm_120")],
)  # fmt: skip
def test_architectures(monkeypatch, capability, wanted):
    info = {"name": "a GPU", "capability": list(capability)}
    monkeypatch.setattr(cuda._C, "cuda_device_info", lambda device: info)
    devices.architecture.cache_clear()
    try:
        assert devices.architecture(0) == wanted
    finally:
        devices.architecture.cache_clear()


def test_a_gpu_that_is_too_old(monkeypatch):
    info = {"name": "an old GPU", "capability": [7, 5]}
    monkeypatch.setattr(cuda._C, "cuda_device_info", lambda device: info)
    devices.architecture.cache_clear()
    with pytest.raises(tessera.LaunchError, match="capability 7.5") as caught:
        devices.architecture(0)
    assert caught.value.id == "E030"


def test_ptxas_is_found_in_the_python_package(tmp_path, monkeypatch):
    program = tmp_path / "nvidia" / "cu13" / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    monkeypatch.delenv("TESSERA_PTXAS", raising=False)
    settings.reload()
    assert toolchain.find_ptxas() == str(program)
    before = toolchain.toolchain_key()
    program.write_text("#!/bin/sh\n# newer\n")
    assert toolchain.toolchain_key() != before
    with settings.override(ptxas="/opt/ptxas"):
        assert toolchain.find_ptxas() == "/opt/ptxas"


# --- Compiling without a GPU --------------------------------------------------------


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_cross_compilation(arch):
    kernel = tessera.compile(
        add_one, "*fp32:16, *fp32:16, i32", constexprs={"BLOCK": 1024}, target=arch, num_warps=8
    )
    assert kernel.metadata["arch"] == arch and kernel.num_warps == 8
    assert kernel.n_regs > 0 and kernel.n_spills == 0 and kernel.shared == 0
    assert list(kernel.stages) == ["tile", "tile-opt", "tilegpu", "llvm", "llvmir", "ptx", "cubin"]
    assert f".target {arch}" in kernel.asm["ptx"]
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    assert arch in repr(kernel)


@needs_ptxas
def test_warming_up_for_a_gpu_that_is_not_there(tmp_path):
    with settings.override(cache_dir=str(tmp_path)):
        kernel = add_one.warmup(tl.float32, tl.float32, 1000, BLOCK=256, target="sm_90a")
        assert kernel.metadata["target"] == "cuda"
        again = add_one.warmup(tl.float32, tl.float32, 1000, BLOCK=256, target="sm_90a")
        assert again is kernel


def test_an_unknown_architecture():
    with pytest.raises(tessera.LaunchError, match="sm_35") as caught:
        tessera.compile(add_one, "*fp32, *fp32, i32, 128", target="sm_35")
    assert caught.value.id == "E030"
    assert "use sm_80, sm_86, sm_87, " in str(caught.value) and "or sm_120a" in str(caught.value)


def test_importing_touches_no_gpu():
    code = (
        "import tessera, tessera.language as tl\n"
        "print([l for l in open('/proc/self/maps') if 'libcuda' in l])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert run.stdout.strip() == "[]", run.stderr


def test_mock_tensors_lie_anywhere():
    assert pointer_of(MockTensor("float32"), "x").device == NOWHERE
