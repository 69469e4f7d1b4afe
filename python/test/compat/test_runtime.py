# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs written for Triton ask of kernels, compiled ones and launches."""

from __future__ import annotations

import concurrent.futures
import inspect

import numpy
import pytest

import tessera
import tessera.language as tl
from tessera.runtime.async_compile import AsyncCompileMode, FutureKernel
from tessera.runtime.hooks import hooks


@pytest.fixture(autouse=True)
def no_hooks():
    yield
    hooks.jit_cache = hooks.jit_post_compile = None
    for chain in (hooks.launch_enter, hooks.launch_exit):
        for call in list(chain.calls):
            chain.remove(call)


def make_scale():
    @tessera.jit
    def scale(x_ptr, n, factor: tl.constexpr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)

    return scale


def test_metadata_by_name_and_as_attributes():
    x = numpy.ones(100, "float32")
    kernel = make_scale()[(1,)](x, 100, 2, BLOCK=128, num_warps=8)
    metadata = kernel.metadata
    assert metadata["name"] == metadata.name == "scale"
    assert (metadata.num_warps, metadata.num_ctas, metadata.num_stages) == (8, 1, 3)
    assert metadata.target.backend == "cpu" and metadata.shared >= 64
    fields = metadata._asdict()
    assert list(fields) == [name for name in metadata._fields if hasattr(metadata, name)]
    assert len(kernel.hash) == 64 and kernel.hash == metadata.hash == fields["hash"]
    with pytest.raises(AttributeError):
        metadata.global_scratch_size  # nothing is appended to the arguments
    kernel._init_handles()
    assert kernel.n_regs in (16, 32) and kernel.n_spills == 0


def test_metadata_of_a_gpu():
    kernel = tessera.compile(make_scale(), "*fp32:16, i32, 2, 128", target="sm_90a", num_warps=2)
    metadata = kernel.metadata
    assert metadata.target == ("cuda", 90, 32) and metadata.arch == "sm_90a"
    assert metadata.num_warps == 2 and metadata.warp_size == 32
    assert metadata.shared == metadata["shared_bytes"]


@pytest.mark.parametrize("target, stage", [("cpu", "strips"), ("sm_90a", "tilegpu")])
def test_other_names_of_stages(target, stage):
    kernel = tessera.compile(make_scale(), "*fp32:16, i32, 2, 128", target=target)
    for name, ours in (
        ("source", "tile"),
        ("ttir", "tile-opt"),
        ("ttgir", stage),
        ("llir", "llvmir"),
    ):
        assert kernel.asm[name] == kernel.asm[ours] and name in kernel.asm
    assert "ttir" not in list(kernel.asm) and "nonsense" not in kernel.asm


def test_what_a_kernel_was_compiled_from():
    x = numpy.ones(100, "float32")
    fn = make_scale()
    kernel = fn[(1,)](x, 100, 2, BLOCK=128)
    assert kernel.src.fn is fn and kernel.src.name == "scale"
    types = {"x_ptr": "*fp32", "n": "i32", "factor": "constexpr", "BLOCK": "constexpr"}
    assert kernel.src.signature == types
    assert kernel.src.constants == {(2,): 2, (3,): 128}
    assert ["tt.divisibility", 4] in kernel.src.attrs[(1,)]


def test_a_compiled_kernel_takes_its_constants_too():
    x = numpy.ones(100, "float32")
    kernel = make_scale().warmup(x, 100, 2, BLOCK=128)
    kernel[(1,)](x, 100, 2, 128)
    kernel[(1, 1, 1)](x, 100)
    kernel.run(1, 1, 1, None, None, None, None, None, None, x, 100)
    assert (x == 8).all()


def test_launches_outside_the_limits_of_a_compiled_kernel():
    @tessera.jit
    def rows(out_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + (at % 512) * 512 + at // 512, at, mask=at < n)

    kernels = [
        tessera.compile(rows, "*i32:16, i32:16, 16", tensor_maps=limited)
        for limited in (True, False)
    ]
    limited, unlimited = kernels
    assert limited._has_limits and not unlimited._has_limits
    out = numpy.zeros((512, 512), "int32")
    want = numpy.arange(512 * 512).reshape(512, 512).T
    many = (1 << 20) + 1
    for _ in range(2):
        with pytest.raises(tessera.LaunchError, match="E070"):
            limited[(many,)](out, 512 * 512)
    limited._extend(unlimited)
    for launch in (
        lambda programs: limited[(programs,)](out, 512 * 512),
        lambda programs: limited.run(
            programs, 1, 1, None, None, None, None, None, None, out, 512 * 512
        ),
    ):
        for programs in (many, 1 << 14, many, many, 1 << 14):
            out[:] = 0
            launch(programs)
            assert (out == want).all()


def test_parameters_say_how_they_are_declared():
    @tessera.jit(do_not_specialize=["n", -1], do_not_specialize_on_alignment=[0])
    def kernel(x_ptr: tl.const, n, m):
        pass

    x, n, m = kernel.params
    assert [param.num for param in kernel.params] == [0, 1, 2]
    assert [param.do_not_specialize for param in kernel.params] == [False, True, True]
    assert [param.do_not_specialize_on_alignment for param in kernel.params] == [True, False, False]
    assert x.is_const and not n.is_const
    assert kernel.__globals__ is globals() and kernel.arg_names == ["x_ptr", "n", "m"]
    assert list(kernel.signature.parameters) == kernel.arg_names and kernel.constexprs == []


def test_defaults_of_parameters():
    """Libraries compare them with `inspect`'s word for none."""

    @tessera.jit
    def kernel(x, n=None, BLOCK: tl.constexpr = 16, *, MORE: tl.constexpr):
        pass

    empty = inspect.Parameter.empty
    assert [param.default for param in kernel.params] == [empty, None, 16, empty]
    assert [param.has_default for param in kernel.params] == [False, True, True, False]


def test_repr_names_the_kernel():
    def name_of(specialisation):
        assert specialisation.signature["x_ptr"] == "*fp32"
        return f"scale by {specialisation.constants['factor']}"

    fn = make_scale()
    named = tessera.jit(repr=name_of)(fn.fn)
    x = numpy.ones(100, "float32")
    kernel = named[(1,)](x, 100, 3, BLOCK=128)
    assert kernel.name == kernel.metadata.name == "scale_by_3" and (x == 3).all()
    tessera.interpret(named)[(1,)](x, 100, 3, BLOCK=128)
    assert (x == 9).all()
    assert (
        ".entry scale_by_5("
        in tessera.compile(named, "*fp32:16, i32, 5, 128", target="sm_90a").asm["ptx"]
    )


@pytest.mark.parametrize("bad", [lambda _: None, lambda _: "", lambda s: s.nothing])
def test_a_repr_that_gives_no_name(bad):
    named = tessera.jit(repr=bad)(make_scale().fn)
    with pytest.raises(tessera.CompilationError, match="E016.*repr"):
        tessera.compile(named, "*fp32, i32, 5, 128")


def test_the_text_of_a_kernel_may_be_replaced():
    fn = tessera.JITFunction(make_scale().fn)
    assert fn.src.startswith("def scale(")
    x = numpy.ones(100, "float32")
    fn[(1,)](x, 100, 2, BLOCK=128)
    fn._unsafe_update_src(fn.src.replace("* factor", "+ factor"))
    fn[(1,)](x, 100, 2, BLOCK=128)
    assert (x == 4).all() and "+ factor" in fn.src
    key = tessera.JITFunction(fn.fn).cache_key
    assert fn.cache_key != key
    fn._unsafe_update_src(fn.src.replace("+ factor", "* factor"))
    assert fn.cache_key == key


def test_hooks_of_compilations():
    seen = []
    hooks.jit_cache = lambda **facts: seen.append(("before", facts))
    hooks.jit_post_compile = lambda **facts: seen.append(("after", facts))
    fn = make_scale()
    x = numpy.ones(100, "float32")
    fn.warmup(x, 100, 2, BLOCK=128)
    for _ in range(3):
        fn[(1,)](x, 100, 2, BLOCK=128)
    assert [when for when, _ in seen] == ["before", "after"]
    facts = seen[0][1]
    assert facts["fn"].jit_function is fn and facts["is_manual_warmup"]
    assert facts["compile"]["constants"] == {(2,): 2, (3,): 128}
    assert facts["repr"].startswith(fn.__qualname__ + "[num_warps=4")
    compiled = fn.device_caches["cpu"][0]
    assert len(compiled) == 1 and facts["key"] in compiled
    compiled.clear()
    assert len(fn.device_caches["cpu"][0]) == 0


def test_a_hook_may_want_nothing_compiled():
    hooks.jit_cache = lambda **facts: True
    x = numpy.ones(100, "float32")
    assert make_scale()[(1,)](x, 100, 2, BLOCK=128) is None and (x == 1).all()


def test_hooks_of_launches():
    told = []

    def metadata_of(grid, metadata, args):
        return {"elements": args["n"], "grid": grid, "warps": metadata.num_warps}

    fn = tessera.jit(launch_metadata=metadata_of)(make_scale().fn)
    x = numpy.ones(100, "float32")
    fn[(1,)](x, 100, 2, BLOCK=128)  # by now it is warm
    hooks.launch_enter.add(lambda data: told.append(("enter", data.get())))
    hooks.launch_exit.add(lambda data: told.append(("exit", data.get())))
    fn[(1,)](x, 100, 2, BLOCK=128)
    assert [when for when, _ in told] == ["enter", "exit"]
    assert told[0][1]["name"] == "scale" and told[0][1]["elements"] == 100
    assert told[0][1]["grid"] == (1, 1, 1) and told[0][1]["warps"] == 4
    for call in list(hooks.launch_enter.calls):
        hooks.launch_enter.remove(call)
    fn[(1,)](x, 100, 2, BLOCK=128)
    assert len(told) == 3 and (x == 8).all()


def test_hooks_of_loading():
    told = []
    hooks.kernel_load_start.add(lambda *facts: told.append(("start", *facts[2:4])))
    hooks.kernel_load_end.add(lambda *facts: told.append(("end", *facts[2:4])))
    try:
        fn = make_scale()
        x = numpy.ones(100, "float32")
        for _ in range(2):
            fn[(1,)](x, 100, 2, BLOCK=128)
    finally:
        hooks.kernel_load_start.calls.clear()
        hooks.kernel_load_end.calls.clear()
    assert told == [("start", "scale", {}), ("end", "scale", {})]


def test_a_listener_of_compilations(tmp_path):
    told = []
    hooks.compilation_listener = lambda **facts: told.append(facts)
    try:
        with tessera.settings.override(cache_dir=str(tmp_path)):
            for _ in range(2):
                fn = make_scale()
                fn.warmup(tl.float32, 100, 2, BLOCK=128)
            tessera.compile(fn, "*fp32, i32, 2, 128")
    finally:
        hooks.compilation_listener = None
    assert [facts["cache_hit"] for facts in told] == [False, True, False]
    times = told[0]["times"]
    stages = [name for name, _ in times.lowering_stages]
    assert "strips" in stages and "object" in stages and times.total > 0
    assert times.total == times.ir_initialization + times.total_lowering + times.store_results
    assert times.store_results > 0 and told[1]["times"].ir_initialization > 0
    assert told[0]["metadata"]["name"] == "scale" and told[0]["src"].signature["x_ptr"] == "*fp32"


def test_kernels_compile_beside_the_program():
    x = numpy.ones(100, "float32")
    fn = make_scale()
    hooks.jit_cache = lambda **facts: None
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        with AsyncCompileMode(executor):
            futures = [fn.warmup(x, 100, factor, BLOCK=128) for factor in (2, 3, 2)]
            assert all(isinstance(future, FutureKernel) for future in futures)
            with pytest.raises(RuntimeError, match="another AsyncCompileMode"):
                with AsyncCompileMode(executor):
                    pass
        assert futures[0] is futures[2] is not futures[1]
        assert futures[0].result().name == futures[1].name == "scale"
        assert len(fn.device_caches["cpu"][0]) == 2

        @tessera.jit
        def wrong(x_ptr):
            tl.store(x_ptr, no_such_name)  # noqa: F821

        with pytest.raises(tessera.CompilationError, match="E012"):
            with AsyncCompileMode(executor):
                wrong.warmup(x)
        with AsyncCompileMode(executor, ignore_errors=True):
            assert wrong.warmup(x).result(ignore_errors=True) is None


def test_wrapped_tensors_are_tensors():
    torch = pytest.importorskip("torch")
    base = torch.zeros(4, 8, dtype=torch.int8)
    wrapped = tessera.reinterpret(base, tl.float8e5)
    assert wrapped.stride() == (8, 1) and wrapped.stride(0) == 8
    assert wrapped.data_ptr() == base.data_ptr() and wrapped.element_size() == 1
    copy = wrapped.clone()
    assert copy.dtype == tl.float8e5 and copy.data_ptr() != base.data_ptr()
    base.fill_(1)
    copy.copy_(wrapped)
    assert (copy.cpu().base == 1).all() and wrapped.to("cpu").shape == (4, 8)
    assert wrapped.new_empty((2, 2)).shape == (2, 2) and wrapped.device == base.device
    assert tessera.reinterpret(wrapped, torch.int8) is base
    wrapped.data = base
    assert wrapped.data is base
    mock = tessera.MockTensor(torch.float16, (4, 8))
    assert mock.stride() == (8, 1) and mock.stride(1) == 1 and mock.dtype == tl.float16
    assert tessera.MockTensor.wrap_dtype(3) == 3
    assert tessera.MockTensor.wrap_dtype(torch.int8).dtype == tl.int8


def test_options_of_other_machines_change_nothing():
    x = numpy.ones(100, "float32")
    fn = make_scale()
    fn[(1,)](x, 100, 2, BLOCK=128)
    fn[(1,)](x, 100, 2, BLOCK=128, waves_per_eu=2, matrix_instr_nonkdim=16, kpack=2)
    assert (x == 4).all() and len(fn.device_caches["cpu"][0]) == 1
