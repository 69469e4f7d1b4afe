# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run by test_surface.py with `import triton` answered by Tessera: names, and that they mean
what they should. Prints the names of the checks that hold."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys

import tessera.compat.triton

tessera.compat.triton.install()
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

# What torch's compiler looks for, and libraries.
NAMES = """
triton: __version__ Config autotune heuristics jit compile set_allocator cdiv next_power_of_2
    reinterpret TensorWrapper MockTensor JITFunction KernelInterface TritonError CompilationError
    OutOfResources InterpreterError constexpr_function must_use_result AsyncCompileMode
    FutureKernel testing tools language runtime knobs compiler backends
triton.language: math extra core constexpr tensor dtype PropagateNan constexpr_type target_info
triton.language.core: view constexpr tensor dtype builtin extern extern_elementwise
    _constexpr_to_value _unwrap_if_constexpr get_int_dtype CONSTEXPR_0 constexpr_type block_type
triton.language.standard: _log2 cdiv sum max sort zeros
triton.language.math: exp log sqrt fma fdiv div_rn umulhi erf
triton.language.random: rand randn philox uint_to_uniform_float
triton.language.target_info: is_cuda is_hip cuda_capability_geq current_target
triton.language.extra: libdevice cuda
triton.language.extra.libdevice: exp erf tanh log1p atan2 pow
triton.language.extra.cuda: libdevice globaltimer num_threads num_warps smid
triton.compiler: CompiledKernel ASTSource IRSource CompilationError LazyDict make_backend
triton.compiler.compiler: CompiledKernel ASTSource make_backend triton_key
triton.compiler.errors: CompilationError CompileTimeAssertionFailure UnsupportedLanguageConstruct
triton.compiler.code_generator: CodeGenerator
triton.backends: backends
triton.backends.compiler: GPUTarget BaseBackend
triton.backends.driver: DriverBase GPUDriver
triton.runtime: driver JITFunction Autotuner Config Heuristics OutOfResources autotune
triton.runtime.driver: driver
triton.runtime.autotuner: OutOfResources PTXASError Autotuner Heuristics autotune Config
triton.runtime.jit: JITFunction KernelInterface mangle_type constexpr_function reinterpret
    JITCallable KernelParam
triton.runtime.cache: _base32 triton_key CacheManager FileCacheManager RemoteCacheBackend
    RemoteCacheManager get_cache_manager get_override_manager get_dump_manager make_so_cache_key
triton.runtime.errors: OutOfResources PTXASError InterpreterError AutotunerError
triton.runtime._allocation: _allocator NullAllocator set_allocator
triton.knobs: HookChain CompileTimes build redis cache compilation autotuning runtime language
    nvidia amd proton base_knobs refresh_knobs propagate_env
triton._utils: find_paths_if get_iterable_path canonicalize_dtype type_canonicalisation_dict
triton.tools.tensor_descriptor: TensorDescriptor
triton.tools.mxfp: MXFP4Tensor MXScaleTensor
triton.tools.ragged_tma: create_ragged_descriptor to_ragged_indices load_ragged store_ragged
    atomic_add_ragged
triton.testing: do_bench do_bench_cudagraph perf_report Benchmark assert_close cuda_memcheck
    set_gpu_clock do_bench_proton do_bench_cudagraph_proton
triton.errors: TritonError
triton._internal_testing: is_cuda is_interpreter integral_dtypes numpy_random to_triton to_numpy
"""


def names():
    module = ""
    for line in NAMES.strip().splitlines():
        if not line.startswith(" "):
            module, _, line = line.partition(":")
        for name in line.split():
            yield module, name


def check_names():
    missing = []
    for module, name in names():
        try:
            # As `from module import name` does.
            exec(f"from {module} import {name}", {})
        except ImportError as error:
            missing.append(f"{module}.{name}: {error}")
    assert not missing, "\n".join(missing)


def check_absent_names():
    # Their presence would have torch choose another protocol.
    for module in ("triton.compiler.compiler", "triton.backends.compiler"):
        assert not hasattr(importlib.import_module(module), "AttrsDescriptor")


def check_spec():
    spec = importlib.util.find_spec("triton")
    assert spec is not None and spec.origin == triton.__file__ and spec.name == "triton"
    assert [int(part) for part in triton.__version__.split(".")] == [3, 6, 0]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "triton":
            assert module.__name__ == name and module.__spec__ is not None, name


def check_parameters_of_functions():
    assert list(inspect.signature(tl.load).parameters)[:3] == ["pointer", "mask", "other"]
    assert list(inspect.signature(tl.cast).parameters)[:2] == ["input", "dtype"]
    assert "_semantic" in inspect.signature(tl.core.view).parameters
    names = list(inspect.signature(triton.autotune).parameters)
    assert names[:3] == ["configs", "key", "prune_configs_by"], names


def check_driver():
    driver = triton.runtime.driver
    target = driver.active.get_current_target()
    assert target.backend == "cpu" and target.warp_size == 32
    assert str(driver.active.get_active_torch_device()) == "cpu"
    properties = driver.active.utils.get_device_properties(None)
    assert all(
        properties[name] > 0
        for name in ("multiprocessor_count", "max_shared_mem", "max_num_regs", "warpSize")
    )
    mine = object()
    driver.set_active(mine)
    assert driver.active is mine
    driver.reset_active()
    assert driver.active is driver.default
    assert not triton.backends.backends["nvidia"].driver.is_active()
    assert triton.backends.backends["cpu"].driver.is_active()


@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 2 * tl.core.load(x_ptr + at, mask=at < n), mask=at < n)


def check_compile():
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    for target in (None, GPUTarget("cuda", 90, 32), GPUTarget("cuda", 80, 32)):
        src = ASTSource(double, signature, {"BLOCK": 64}, {(0,): [["tt.divisibility", 16]]})
        kernel = triton.compile(src, target=target, options={"num_warps": 2, "of_others": 1})
        assert kernel.src is src and kernel.metadata.num_warps == 2
        assert "divisibility = 16" in kernel.asm["ttir"]
        assert (kernel.metadata.target.arch, 32) == (target.arch, 32) if target else True
    try:
        triton.compile(src, target=GPUTarget("hip", "gfx942", 64))
    except triton.TritonError as error:
        assert "E030" in str(error)
    else:
        raise AssertionError("AMD is accepted")
    for bad in ({"x_ptr": "*fp32"}, {"x_ptr": "nonsense", "n": "i32", "BLOCK": "constexpr"}):
        try:
            triton.compile(ASTSource(double, bad, {"BLOCK": 64}))
        except (triton.TritonError, ValueError):
            pass
        else:
            raise AssertionError("a signature that is none is accepted")


@triton.jit
def promising(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.max_contiguous(tl.multiple_of((5 + tl.arange(0, BLOCK)) % n, BLOCK), BLOCK)
    tl.device_assert(n > 0, "n is 0")
    tl.store(x_ptr + at, tl.load(x_ptr + at) + 1)


def check_that_debug_is_about_assertions():
    """Inductor compiles with `debug`, and its matmuls promise more than holds."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    for checks in (False, True):
        options = {"debug": True, **({"sanitize_promises": True} if checks else {})}
        src = ASTSource(promising, signature, {"BLOCK": 64})
        ptx = triton.compile(src, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
        assert "__assertfail" in ptx and ("runs of 64" in kept_text(ptx)) == checks


def kept_text(ptx):
    """The strings of PTX's constants, which are lists of numbers there."""
    return "".join(
        "".join(chr(int(number)) for number in numbers.split(",") if number.strip() != "0")
        for numbers in re.findall(r"\.b8 \w+\[\d+\] = \{([\d, ]+)\}", ptx)
    )


def check_knobs():
    from tessera.settings import settings
    from triton import knobs

    before = settings.cache_dir
    with knobs.cache.scope():
        knobs.cache.dir = "/tmp/of_a_test"
        assert settings.cache_dir == os.environ["TRITON_CACHE_DIR"] == "/tmp/of_a_test"
    assert settings.cache_dir == before and "TRITON_CACHE_DIR" not in os.environ
    knobs.runtime.debug = True
    assert settings.debug and os.environ["TRITON_DEBUG"] == "1"
    del knobs.runtime.debug
    os.environ.pop("TRITON_DEBUG")
    knobs.refresh_knobs()
    assert not settings.debug
    knobs.compilation.always_compile = True
    assert settings.cache == "off"
    knobs.compilation.always_compile = knobs.env
    os.environ.pop("TRITON_ALWAYS_COMPILE")
    knobs.refresh_knobs()
    assert settings.cache == "rw"
    # A group that takes the place of another.
    old, new = knobs.runtime, knobs.runtime.copy().reset()
    new.interpret = True
    knobs.runtime = new
    assert settings.interpret
    del new.interpret
    os.environ.pop("TRITON_INTERPRET")
    knobs.runtime = old
    assert not settings.interpret
    try:
        knobs.redis.port = 1
        os.environ["TRITON_REDIS_PORT"] = "many"
        del knobs.redis.port
        knobs.redis.port
    except RuntimeError as error:
        assert "TRITON_REDIS_PORT" in str(error)
    else:
        raise AssertionError("a port that is no number is accepted")
    os.environ.pop("TRITON_REDIS_PORT")


def check_hooks_by_knobs():
    import torch

    told = []
    triton.knobs.runtime.launch_enter_hook.add(lambda data: told.append(data.get()["name"]))
    double[(1,)](torch.ones(64), 64, BLOCK=64)
    triton.knobs.runtime.launch_enter_hook.calls.clear()
    triton.knobs.runtime.jit_cache_hook = lambda **facts: told.append(facts["fn"].name)
    double[(1,)](torch.ones(64, dtype=torch.float64), 64, BLOCK=64)
    triton.knobs.runtime.jit_cache_hook = None
    assert told == ["double", "double"], told


def check_profiler():
    import tempfile

    import torch
    import triton.profiler as proton
    from triton.profiler import viewer

    def told(grid, metadata, args):
        return {"name": f"{metadata.name} of {args['n']}", "flops32": args["n"] * 1.0}

    def configs():
        return [triton.Config({"BLOCK": block}) for block in (64, 128)]

    kernel = triton.jit(launch_metadata=told)(double.fn)
    tuned = triton.autotune(configs(), key=["n"])(triton.jit(launch_metadata=told)(double.fn))
    x = torch.ones(64)
    kernel[(1,)](x, 64, BLOCK=64)
    tuned[(1,)](x, 64)
    os.chdir(tempfile.mkdtemp())
    proton.start("profile", hook="triton")
    for _ in range(3):
        kernel[(1,)](x, 64, BLOCK=64)
    proton.deactivate(0)
    kernel[(1,)](x, 64, BLOCK=64)
    proton.activate(0)
    with proton.scope("outer"):
        tuned[(1,)](x, 63 + 1)
        with proton.scope("measured", {"bytes": 100.0}):
            pass
    proton.finalize()
    kernel[(1,)](x, 64, BLOCK=64)
    tree, metrics = viewer.parse(["time/ms", "count", "flop32/s"], "profile.hatchet")
    rows = {tuple(row["path"]): row for row in tree}
    assert set(rows) == {
        ("double of 64",),
        ("outer", "double of 64"),
        ("outer", "measured"),
    }, set(rows)
    milliseconds, count, rate = rows[("double of 64",)]["shown"]
    assert count == 3 and milliseconds > 0
    assert abs(rate - 3 * 64 / (1e-3 * milliseconds)) < 1e-6 * rate
    assert rows[("outer", "measured")]["metrics"]["bytes"] == 100
    viewer.print_tree(tree, metrics)
    try:
        proton.start("other", backend="roctracer")
    except ImportError as error:
        assert "Tessera has no" in str(error)
    else:
        raise AssertionError("a backend that is not there is accepted")


def check_cublas_by_torch():
    import torch
    from triton._C.libtriton import nvidia

    a, b, c = torch.randn(3, 4), torch.randn(5, 4), torch.empty(3, 5)
    nvidia.cublas.CublasLt(torch.empty(1)).matmul(a, b, c)
    assert torch.allclose(c, a @ b.T)


def check_allocators_are_remembered():
    from triton.runtime._allocation import _allocator

    allocate = lambda size, align, stream: None  # noqa: E731
    triton.set_allocator(allocate)
    assert _allocator.get() is allocate


def check_types_of_arguments():
    import torch
    from triton.runtime.jit import mangle_type

    given = [torch.ones(2), torch.ones(2, dtype=torch.bool), 3, 2**40, 2**63, 1.5, True, None]
    expected = ["*fp32", "*u1", "i32", "i64", "u64", "fp32", "u1", "constexpr"]
    assert [mangle_type(value) for value in given] == expected
    assert mangle_type(1, True) == "constexpr" and repr(tl.int8) == "triton.language.int8"


def check_microscaling():
    import torch
    from triton.tools.mxfp import MXFP4Tensor, MXScaleTensor

    every = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    every = torch.cat([every, -every])
    assert torch.equal(MXFP4Tensor(every).to(torch.float32), every)
    assert torch.equal(MXFP4Tensor(every).data.int(), torch.arange(16).int())
    ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 100.0, torch.inf, torch.nan])
    rounded = [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 6.0, 6.0, 6.0]
    assert MXFP4Tensor(ties).to(torch.float32).tolist() == rounded
    codes = MXFP4Tensor(size=(5, 6)).random()
    for dim in (0, 1):
        packed = codes.to_packed_tensor(dim)
        assert packed.shape[dim] == 3
        assert torch.equal(codes.unpack_packed_tensor(packed, dim, (5, 6)), codes.data)
    scales = MXScaleTensor(torch.tensor([1.0, 3.0, 2.0**-127, 0.0, -1.0, torch.inf]))
    assert scales.data.tolist() == [127, 128, 0, 255, 255, 255]
    assert scales.to(torch.float32)[1] == 2 and scales.to(torch.float32)[3:].isnan().all()
    drawn = MXScaleTensor(size=(1000,)).random(0.25, 4.0).to(torch.float32)
    assert drawn.min() >= 0.25 and drawn.max() <= 4


def check_files_by_keys():
    import tempfile

    from triton.runtime.cache import FileCacheManager, get_cache_manager, get_dump_manager
    from triton.runtime.cache import get_override_manager

    key = "00ff" * 16
    with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = os.path.join(folder, "cache")
        triton.knobs.cache.dump_dir = os.path.join(folder, "dump")
        triton.knobs.cache.override_dir = os.path.join(folder, "override")
        manager = get_cache_manager(key)
        assert isinstance(manager, FileCacheManager) and manager.get_file("a.bin") is None
        path = manager.put(b"\0\1", "a.bin")
        assert path.startswith(os.path.join(folder, "cache") + os.sep)
        assert manager.get_file("a.bin") == path and open(path, "rb").read() == b"\0\1"
        text = manager.put({"n": 1}, "b.json", binary=False)
        assert open(text).read() == "{'n': 1}"
        assert manager.get_group("g") is None
        manager.put_group("g", {"a.bin": path, "b.json": text, "gone": path + "x"})
        assert get_cache_manager(key).get_group("g") == {"a.bin": path, "b.json": text}
        for broken in ("", "{", "[]", '{"child_paths": 3}'):
            manager.put(broken, "__grp__h")
            assert manager.get_group("h") is None
        assert sorted(os.listdir(os.path.dirname(path))) == [
            "__grp__g", "__grp__h", "a.bin", "b.json",
        ]  # fmt: skip
        assert get_dump_manager(key).put("x", "t").startswith(os.path.join(folder, "dump"))
        assert get_override_manager(key).get_file("t") is None
        assert not os.path.exists(os.path.join(folder, "override"))
        open(os.path.join(folder, "file"), "w").close()
        triton.knobs.cache.dir = os.path.join(folder, "file")
        try:
            get_cache_manager(key)
        except tessera.SettingError as error:
            assert error.id == "E061" and "TRITON_CACHE_DIR" in error.fix
        else:
            raise AssertionError("a file for a folder")


def check_files_of_a_remote_cache():
    import tempfile

    from triton.runtime.cache import RemoteCacheBackend, RemoteCacheManager, get_cache_manager

    kept: dict = {}

    class Backend(RemoteCacheBackend):
        def get(self, filenames):
            return {name: kept[name] for name in filenames if name in kept}

        def put(self, filename, data):
            kept[filename] = data

    with triton.knobs.cache.scope():
        triton.knobs.cache.manager_class = RemoteCacheManager
        for backend in (None, Backend):
            with tempfile.TemporaryDirectory() as folder:
                triton.knobs.cache.dir = folder
                triton.knobs.cache.remote_manager_class = backend
                try:
                    manager = get_cache_manager("ab" * 32)
                except tessera.SettingError as error:
                    assert backend is None and error.id == "E062"
                    continue
                assert manager.get_file("a") is None
                manager.put_group("g", {"a": manager.put("text", "a")})
        with tempfile.TemporaryDirectory() as folder:  # of another machine
            triton.knobs.cache.dir = folder
            manager = get_cache_manager("ab" * 32)
            found = manager.get_group("g")
            assert list(found) == ["a"] and open(found["a"]).read() == "text"
            assert kept["a"] == b"text" and manager.get_file("a") == found["a"]


def check_what_is_refused():
    def hook(self, stages, options, language, capability):
        pass

    def assign():
        triton.knobs.runtime.add_stages_inspection_hook = hook

    testing = triton.testing
    refused = {
        assign: "TESSERA_OVERRIDE_DIR",
        lambda: testing.cuda_memcheck(use=True)(hook): "compute-sanitizer",
        lambda: testing.set_gpu_clock(): "nvidia-smi --lock-gpu-clocks=1350",
        lambda: testing.do_bench_proton(hook, rep=3): "do_bench_cudagraph",
        lambda: testing.do_bench_cudagraph_proton(hook): "do_bench_cudagraph",
    }
    for call, fix in refused.items():
        try:
            call()
        except NotImplementedError as error:
            assert error.id == "E074" and fix in error.fix, error
        else:
            raise AssertionError(fix)
    assert triton.knobs.runtime.add_stages_inspection_hook is None
    triton.knobs.runtime.add_stages_inspection_hook = None
    try:
        from triton.runtime.cache import RedisRemoteCacheBackend  # noqa: F401
    except ImportError as error:
        assert "RemoteCacheBackend" in str(error)
    else:
        raise AssertionError("there is no such backend")


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_") and (not sys.argv[1:] or name in sys.argv[1:]):
            check()
            print(name)
