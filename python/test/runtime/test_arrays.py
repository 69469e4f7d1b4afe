# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays as arguments: NumPy, torch and DLPack, and those that are refused."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import ArgumentError
from tessera.runtime import arrays
from tessera.runtime.arrays import pointer_of, reinterpret, to_dtype


@pytest.mark.parametrize(
    "dtype, wanted",
    [
        ("bool", tl.int1),
        ("int8", tl.int8),
        ("int16", tl.int16),
        ("int32", tl.int32),
        ("int64", tl.int64),
        ("uint8", tl.uint8),
        ("uint16", tl.uint16),
        ("uint32", tl.uint32),
        ("uint64", tl.uint64),
        ("float16", tl.float16),
        ("float32", tl.float32),
        ("float64", tl.float64),
    ],
)
def test_numpy_dtypes(dtype, wanted):
    array = np.zeros(3, dtype)
    pointer = pointer_of(array, "x")
    assert (pointer.address, pointer.dtype, pointer.read_only) == (
        array.ctypes.data, wanted, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "dtype, wanted",
    [
        ("bfloat16", tl.bfloat16),
        ("float8_e5m2", tl.float8e5),
        ("float8_e4m3fn", tl.float8e4nv),
    ],
)
def test_ml_dtypes(dtype, wanted):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.zeros(3, getattr(ml_dtypes, dtype))
    assert pointer_of(array, "x").dtype == wanted


def test_views_point_at_their_first_element():
    array = np.arange(10, dtype=np.float32)
    assert pointer_of(array[3:], "x").address == array.ctypes.data + 12
    assert pointer_of(array[::-1], "x").address == array.ctypes.data + 36
    assert pointer_of(np.zeros((0, 3)), "x") is not None
    assert pointer_of(np.array(2.0), "x").dtype == tl.float64


def test_read_only_is_seen():
    array = np.zeros(3)
    array.flags.writeable = False
    assert pointer_of(array, "x").read_only


@pytest.mark.parametrize(
    "value, why",
    [
        (np.array([1, "a"], object), "holds Python objects"),
        (np.zeros(3, ">f4"), "the other byte order"),
        (np.zeros(3, np.complex64), "elements of complex64"),
        (np.zeros(3, "datetime64[s]"), "elements of datetime64"),
        (np.zeros(3, "U4"), "elements of <U4"),
        (np.zeros(3, [("a", "i4")]), "elements of"),
        (np.ma.array([1.0, 2.0], mask=[True, False]), r"has a mask.*\n.*x.filled\(value\)"),
        (np.ma.zeros(3), "has a mask"),
    ],
)
def test_numpy_arrays_that_are_refused(value, why):
    with pytest.raises(tessera.ArgumentError, match=why) as caught:
        pointer_of(value, "x")
    assert caught.value.id == "E054" and "`x`" in str(caught.value)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    for dtype, wanted in [
        (torch.float32, tl.float32),
        (torch.bfloat16, tl.bfloat16),
        (torch.float16, tl.float16),
        (torch.bool, tl.int1),
        (torch.int64, tl.int64),
        (torch.uint8, tl.uint8),
        (torch.float8_e5m2, tl.float8e5),
    ]:
        tensor = torch.zeros(4, dtype=dtype)
        pointer = pointer_of(tensor, "x")
        assert (pointer.address, pointer.dtype) == (tensor.data_ptr(), wanted)
    parameter = torch.nn.Parameter(torch.zeros(2))
    assert pointer_of(parameter, "x").address == parameter.data_ptr()


def torch_tensors_that_are_refused():
    """(a tensor, what the message says of it); none without torch."""
    try:
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode
    except ImportError:
        return []
    with FakeTensorMode():
        fake = torch.zeros(3)
    emptied, shrunk = torch.zeros(100)[10:], torch.zeros(100)
    emptied.untyped_storage().resize_(0)
    shrunk.untyped_storage().resize_(8)
    return [
        (torch.zeros(3, device="meta"), "meta tensor"),
        (fake, "fake tensor"),
        (
            torch.zeros(3, dtype=torch.complex64),
            r"elements of torch.complex64\n.* a dtype that kernels",
        ),
        (torch.eye(3).to_sparse(), r"is sparse.*\n.*pass x.to_dense\(\)"),
        (emptied, "needs 400 bytes of its storage, which has been resized to 0"),
        (shrunk, "needs 400 bytes of its storage, which has been resized to 8"),
    ]


@pytest.mark.parametrize("tensor, why", torch_tensors_that_are_refused())
def test_torch_tensors_that_are_refused(tensor, why):
    with pytest.raises(tessera.ArgumentError, match=why) as caught:
        pointer_of(tensor, "x")
    # That there is no array yet is told apart from one that cannot be used.
    assert caught.value.id == ("E057" if "fake" in why else "E054")


@tessera.jit
def store_where_told(x, n):
    tl.store(x, n, mask=n > 0)


def test_the_warm_path_refuses_torch_tensors_too():
    """Arguments of a kind that was launched before are looked at much faster."""
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.int8):
        kernel = tessera.jit(store_where_told.fn)
        plain = torch.zeros(100, dtype=dtype)
        emptied = torch.zeros(100, dtype=dtype)[10:]
        emptied.untyped_storage().resize_(0)
        for tensor in (plain, plain.clone()[1:], plain[::2]._neg_view()._neg_view()):
            for _ in range(3):
                kernel[(1,)](tensor, 3)
            assert tensor[0] == 3
        for _ in range(2):
            with pytest.raises(tessera.ArgumentError, match="resized to 0"):
                kernel[(1,)](emptied, 3)
    # Whether that is told from torch's own bits or by asking.
    assert arrays._learn_negative_bit() or torch.__version__ != "2.13.0+cpu"


@tessera.jit
def add_one(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0) + 1, mask=i < n)


def test_the_warm_path_asks_torch_without_python(monkeypatch, capfd):
    """By its stable C interface, which says what the methods of tensors say."""
    torch = pytest.importorskip("torch")
    dtypes = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn]
    dtypes += [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16]
    asked: list[object] = []

    class Launched(Exception):
        pass

    def run(*args):
        asked.append(args)
        raise Launched

    for dtype in dtypes:
        held = torch.arange(64).to(dtype)
        kernel = tessera.jit(add_one.fn)

        def launch(x):
            out = torch.zeros(4, dtype=dtype)
            kernel[(1,)](x, out, min(x.numel(), 4), BLOCK=4)
            wanted = (x.detach().flatten()[:4].double() + 1).to(dtype).double()
            assert torch.equal(out[: wanted.numel()].double(), wanted), (dtype, x)

        tensors = [held, held[16:], held.view(8, 8)[4], held[32]]
        if dtype.is_floating_point and dtype.itemsize > 1:
            tensors += [torch.nn.Parameter(held), held.clone().requires_grad_()]
        with torch.inference_mode():
            tensors.append(held.clone())
        for _ in range(2):
            for tensor in tensors:
                launch(tensor)
        with monkeypatch.context() as patch:
            patch.setattr(tessera.JITFunction, "_run", run)
            patch.setattr(torch.Tensor, "data_ptr", run)
            for tensor in tensors:
                launch(tensor)
            # What is not as plain as those is for the whole way to look at, and to refuse.
            for tensor in (torch.zeros(0, dtype=dtype), torch.eye(3).to_sparse()):
                with pytest.raises(Launched):
                    kernel[(1,)](tensor, held, 0, BLOCK=4)
    assert asked
    # Batched by vmap, where tensors have no memory of their own.
    x = torch.zeros(3, 4)

    def batched(row):
        add_one[(1,)](row, x[0], 4, BLOCK=4)
        return row

    with pytest.raises(tessera.ArgumentError):
        torch.vmap(batched)(x)
    assert capfd.readouterr().err == ""  # where torch's C functions say what they refuse


def test_a_class_of_torch_that_comes_to_a_known_kernel(monkeypatch):
    torch = pytest.importorskip("torch")
    parameter = type("Parameter", (torch.Tensor,), {"__module__": "torch.nn.parameter"})
    kernel = tessera.jit(add_one.fn)
    x, out = torch.arange(4.0), torch.zeros(4)
    for _ in range(3):
        kernel[(1,)](x, out, 4, BLOCK=4)

    def refuse(*args):
        raise AssertionError("asked by Python")

    monkeypatch.setattr(tessera.JITFunction, "_run", refuse)
    for array in (x.as_subclass(parameter), (x + 4).as_subclass(parameter)):
        kernel[(1,)](array, out, 4, BLOCK=4)  # the first is asked by its methods
        assert torch.equal(out, array.as_subclass(torch.Tensor) + 1)
        monkeypatch.setattr(torch.Tensor, "data_ptr", refuse)


def test_operators_of_torch_that_are_kernels(monkeypatch):
    """As libraries register theirs: what is asked of torch at a launch may launch them."""
    torch = pytest.importorskip("torch")
    launches = []

    def clone(tensor, memory_format=None):
        launches.append(tensor.dtype)
        out = torch.empty_like(tensor)
        if out.dtype == torch.int8 and out.numel() == 12:
            store_where_told[(1,)](out, 3)
        return out

    monkeypatch.setattr(arrays, "_knows_negative_bit", None)
    replaced = torch.library.Library("aten", "IMPL")
    try:
        replaced.impl("clone", clone, "CPU")
        tensor = torch.empty(4, dtype=torch.float16)
        pointer_of(tensor, "x")
        pointer_of(tensor, "x")
    finally:
        replaced._destroy()
    assert len(launches) == 32 and set(launches) == {torch.int8, torch.float64}
    assert arrays._learn_negative_bit() or torch.__version__ != "2.13.0+cpu"


class AtAddress:
    """An array that says where it lies, by one of the protocols."""

    dtype = np.dtype(np.float32)

    def __init__(self, address, shape=(3,)):
        self.shape = shape
        self.address = address


class WithDataPtr(AtAddress):
    def data_ptr(self):
        return self.address


class WithNumPyInterface(AtAddress):
    @property
    def __array_interface__(self):
        return dict(shape=self.shape, typestr="<f4", data=(self.address, False), version=3)


class WithCUDAInterface(AtAddress):
    @property
    def __cuda_array_interface__(self):
        return dict(shape=self.shape, typestr="<f4", data=(self.address, False), version=3)


@pytest.mark.parametrize("kind", [WithDataPtr, WithNumPyInterface, WithCUDAInterface])
def test_addresses_that_cannot_be(kind):
    for address, why in [(-8, "lies at -8"), (1 << 64, "says that")]:
        with pytest.raises(tessera.ArgumentError, match=why) as caught:
            store_where_told[(1,)](kind(address), 3)
        assert caught.value.id == "E054"
    # What has no elements may lie nowhere.
    for shape in ((0,), (3, 0)):
        store_where_told[(1,)](kind(0, shape), 0)


def test_arrays_without_elements():
    for array in (np.zeros(0, np.float32), np.zeros((3, 0))):
        for _ in range(2):
            store_where_told[(1,)](array, 0)
    torch = pytest.importorskip("torch")
    for _ in range(2):
        store_where_told[(1,)](torch.zeros(0), 0)


def test_a_mock_tensor_is_not_launched():
    with pytest.raises(tessera.ArgumentError, match="MockTensor, which has no memory"):
        store_where_told[(1,)](tessera.MockTensor(tl.float32), 3)
    with pytest.raises(tessera.ArgumentError, match="MockTensor, which has no memory"):
        tessera.interpret(store_where_told)[(1,)](tessera.MockTensor(tl.float32), 3)
    store_where_told.warmup(tessera.MockTensor(tl.float32), 3)


class OnlyDLPack:
    """An array of some framework: nothing but DLPack."""

    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)


def test_dlpack():
    array = np.arange(6, dtype=np.int16)
    pointer = pointer_of(OnlyDLPack(array[2:]), "x")
    assert (pointer.address, pointer.dtype) == (array.ctypes.data + 4, tl.int16)


def test_dlpack_keeps_the_memory_alive_and_then_frees_it():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.bfloat16)
    alive = weakref.ref(tensor)
    pointer = pointer_of(OnlyDLPack(tensor), "x")
    assert pointer.dtype == tl.bfloat16 and pointer.address == tensor.data_ptr()
    del tensor
    gc.collect()
    del pointer
    gc.collect()
    assert alive() is None


def test_dlpack_says_what_is_read_only():
    array = np.zeros(3)
    array.flags.writeable = False
    try:
        array.__dlpack__(max_version=(1, 0))
    except (TypeError, BufferError):
        pytest.skip("this NumPy exports no read-only arrays")
    assert pointer_of(OnlyDLPack(array), "x").read_only


def test_dlpack_of_another_device_is_refused():
    with pytest.raises(tessera.ArgumentError, match="a ROCm GPU"):
        pointer_of(OnlyDLPack(np.zeros(3), (10, 0)), "x")


def test_failing_protocols_are_told():
    class Broken:
        dtype = np.dtype("float32")

        def data_ptr(self):
            raise RuntimeError("storage is gone")

    class NoPack(OnlyDLPack):
        def __dlpack__(self, **kwargs):
            raise BufferError("not exportable")

    for value, why in [(Broken(), "storage is gone"), (NoPack(None), "not exportable")]:
        with pytest.raises(tessera.ArgumentError, match=why) as caught:
            pointer_of(value, "x")
        assert caught.value.id == "E058"


def test_data_of_a_wrapper_may_be_replaced():
    """As that of a tensor of torch's: the array itself stays."""
    torch = pytest.importorskip("torch")
    array = torch.arange(12, dtype=torch.int16).reshape(3, 4)
    seen = reinterpret(array, tl.uint16)
    assert seen.data.data_ptr() == array.data_ptr()
    seen.data = seen.data[:, :2]
    assert tuple(seen.data.shape) == (3, 2) and seen.base is array
    assert seen.data_ptr() == array.data_ptr() and tuple(seen.shape) == (3, 4)


def test_wrappers_are_copied_and_pickled():
    class Named(tessera.TensorWrapper):
        pass

    x = np.arange(4, dtype=np.int16)
    for _ in range(3):  # the first is made by Python
        wrapper = tessera.reinterpret(x, tl.float16)
        named = Named(x, "float16")
        named.data, named.name = "other", "x"
        assert weakref.ref(wrapper)() is wrapper and vars(wrapper) == {}
        assert copy.copy(wrapper).base is x and copy.copy(wrapper).dtype is tl.float16
        again = copy.copy(named)
        assert type(again) is Named and (again.data, again.name) == ("other", "x")
        for made in (copy.deepcopy(wrapper), pickle.loads(pickle.dumps(wrapper))):
            assert made.base is not x and (made.base == x).all() and made.dtype == tl.float16
    circle = tessera.reinterpret(x, tl.float16)
    circle.data, gone = circle, weakref.ref(circle)
    del circle
    gc.collect()
    assert gone() is None


def test_reinterpreted_arrays_whose_dtype_changes():
    class Changing:
        """An array that makes its dtype at each look, or has none."""

        def __init__(self, array, makes):
            self.array, self.makes = array, makes

        def data_ptr(self):
            return self.array.ctypes.data

        @property
        def dtype(self):
            return self.makes()

    bits = np.zeros(4, np.int16)
    for _ in range(3):
        for dtype, says in (("int16", None), ("int32", "have 4 bytes"), ("complex64", "complex64")):
            array = Changing(bits, lambda dtype=dtype: np.dtype(dtype))
            if says is None:
                assert tessera.reinterpret(array, tl.float16).base is array
                continue
            with pytest.raises(ArgumentError, match=says):
                tessera.reinterpret(array, tl.float16)
        with pytest.raises(ArgumentError, match="is not an array"):
            tessera.reinterpret(3, tl.float16)

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tessera.reinterpret(Changing(bits, fail), tl.float16)


def test_reinterpret():
    array = np.zeros(4, np.int8)
    seen = reinterpret(array, tl.float8e5)
    assert pointer_of(seen, "x").address == array.ctypes.data and seen.dtype == tl.float8e5
    with pytest.raises(tessera.ArgumentError, match="1 bytes, those of fp32 have 4"):
        reinterpret(array, tl.float32)


def test_no_array():
    for value in (3, 2.5, "x", None, [1, 2], object()):
        assert pointer_of(value, "x") is None
    with pytest.raises(tessera.ArgumentError, match="no element type for 'quaternion'"):
        to_dtype("quaternion")


def test_jax_arrays_may_be_read_but_never_written():
    jnp = pytest.importorskip("jax.numpy")
    array = jnp.arange(16, dtype=jnp.bfloat16)
    pointer = pointer_of(array, "x")
    assert pointer.dtype == tl.bfloat16 and pointer.read_only
    assert pointer.address == array.unsafe_buffer_pointer()
