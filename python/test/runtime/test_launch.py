# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launching kernels: what is accepted, what is refused and how, and what the caches do."""

import copy
import gc
import linecache
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref
from collections import namedtuple

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import settings
from tessera.compiler import cache as cache_module


@pytest.fixture(autouse=True)
def private_cache(tmp_path):
    with settings.override(cache_dir=str(tmp_path / "cache")):
        yield


@tessera.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@tessera.jit
def scale(x_ptr, factor, n, BLOCK: tl.constexpr = 64):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


def arrays(n=1000, dtype=np.float32):
    rng = np.random.default_rng(0)
    return rng.random(n).astype(dtype), rng.random(n).astype(dtype), np.zeros(n, dtype)


def fresh(source, name="kernel", **namespace):
    """A kernel from a text, as a notebook's cell would define it."""
    text = "import tessera\nimport tessera.language as tl\n" + textwrap.dedent(source)
    file = f"<cell {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), namespace)
    return namespace[name]


# --- Launches that work ------------------------------------------------------------


@pytest.mark.parametrize("grid", [16, (16,), [16], (16, 1), (16, 1, 1), (np.int64(16),)])
def test_grids(grid):
    x, y, out = arrays()
    add[grid](x, y, out, 1000, BLOCK=64)
    assert np.array_equal(out, x + y)


def test_grid_functions_see_arguments_and_options():
    x, y, out = arrays()
    seen = {}

    def grid(meta):
        seen.update({name: meta[name] for name in ("n", "BLOCK", "num_warps")})
        return (tessera.cdiv(meta["n"], meta["BLOCK"]),)

    for _ in range(2):  # the second takes the warm path
        out[:] = 0
        seen.clear()
        add[grid](x, y, out, 1000, BLOCK=128, num_warps=8)
        assert np.array_equal(out, x + y)
        assert seen == {"n": 1000, "BLOCK": 128, "num_warps": 8}


@pytest.mark.parametrize("grid", [(0,), (0, 5), (3, 0, 2)])
def test_an_empty_grid_does_nothing(grid):
    x, y, out = arrays()
    add[grid](x, y, out, 1000, BLOCK=64)
    assert not out.any()


def test_arguments_by_name_and_by_default():
    x, y, out = arrays()
    for _ in range(2):
        add[(16,)](n=1000, y_ptr=y, BLOCK=64, x_ptr=x, out_ptr=out)
        assert np.array_equal(out, x + y)
    before = x.copy()
    scale[(16,)](x, 2.0, n=1000)
    assert np.array_equal(x, before * 2)


def test_the_launch_returns_the_compiled_kernel():
    x, y, out = arrays()
    first = add[(16,)](x, y, out, 1000, BLOCK=64)
    assert first is add[(16,)](x, y, out, 1000, BLOCK=64)
    assert first is not add[(8,)](x, y, out, 1000, BLOCK=128)
    assert first.name == "add" and first.metadata["target"] == "cpu"
    assert [argument["stored"] for argument in first.metadata["arguments"]] == [
        False, False, True, False,
    ]  # fmt: skip


def test_warm_launches_see_what_changed():
    """Every launch through the table of signatures must do what the first one would."""
    for n in (1000, 1, 16, 999, 1000, 1):
        for factor in (2.0, 3, 1, True, np.float32(0.5), 2.0):
            x, _, _ = arrays()
            wanted = x.copy()
            wanted[:n] *= np.float32(factor)
            scale[(16,)](x, factor, n)
            assert np.array_equal(x, wanted), (n, factor)
    for dtype in (np.float64, np.int32, np.float16):
        fresh = tessera.jit(scale.fn)
        for start in (0, 1, 4):
            x = np.arange(100).astype(dtype)
            fresh[(2,)](x[start:], 2, 50)
            wanted = np.arange(100)
            wanted[start : start + 50] *= 2
            assert np.array_equal(x, wanted.astype(dtype)), (dtype, start)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    x, y = torch.rand(1000), torch.rand(1000)
    out = torch.zeros(1000)
    for _ in range(3):
        out.zero_()
        add[(16,)](x, y, out, 1000, BLOCK=64)
        assert torch.equal(out, x + y)
    with torch.inference_mode():
        add[(16,)](x, y, out, 1000, BLOCK=64)
    with pytest.raises(tessera.ArgumentError, match="meta tensor"):
        add[(16,)](x, y, torch.zeros(1000, device="meta"), 1000, BLOCK=64)


def test_tuples_as_arguments():
    Pair = namedtuple("Pair", "x y")

    @tessera.jit
    def add_pair(pair, out_ptr, sizes, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < sizes[0]
        total = tl.load(pair.x + offsets, mask=mask) + tl.load(pair.y + offsets, mask=mask)
        tl.store(out_ptr + offsets, total, mask=mask)

    x, y, out = arrays(100)
    add_pair[(1,)](Pair(x, y), out, (90, 7), BLOCK=128)
    assert np.array_equal(out[:90], (x + y)[:90]) and not out[90:].any()


def test_a_kernel_from_a_notebook_cell():
    kernel = fresh("""
        @tessera.jit
        def kernel(out_ptr):
            tl.store(out_ptr, 42)
        """)
    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    assert out[0] == 42


def test_a_closure_is_a_kernel_too():
    value = tl.constexpr(7)

    @tessera.jit
    def kernel(out_ptr):
        tl.store(out_ptr, value)

    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    assert out[0] == 7


def test_threads_compile_a_kernel_once(monkeypatch):
    from tessera.runtime import compiling as compile_module

    count = []
    real = compile_module.compile_specialised

    def counting(*args):
        count.append(1)
        return real(*args)

    monkeypatch.setattr(compile_module, "compile_specialised", counting)
    kernel = fresh("""
        @tessera.jit
        def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
            offsets = tl.arange(0, BLOCK)
            tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets)))
        """)
    x = np.ones(256, np.float32)
    outs = [np.zeros(256, np.float32) for _ in range(8)]
    threads = [
        threading.Thread(target=lambda out=out: kernel[(1,)](x, out, BLOCK=256)) for out in outs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(count) == 1
    assert all(np.allclose(out, np.e) for out in outs)


def test_a_forked_child_can_launch():
    x, y, out = arrays()
    add[(16,)](x, y, out, 1000, BLOCK=64)
    with add._lock:  # as another thread might hold it
        child = os.fork()
        if child == 0:
            out[:] = 0
            add[(16,)](x, y, out, 1000, BLOCK=64)
            add[(8,)](x, y, out, 1000, BLOCK=128, num_threads=2)
            os._exit(0 if np.array_equal(out, x + y) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_hooks_run_before_each_launch():
    kernel = fresh("@tessera.jit\ndef kernel(out_ptr): tl.store(out_ptr, 1)")
    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    calls = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: calls.append(args))
    kernel[(1,)](out)
    kernel[(1,)](out)
    assert len(calls) == 2 and calls[0][0] is out


def test_launches_leak_nothing():
    x, y, out = arrays()
    launch = add[(16,)]
    launch(x, y, out, 1000, BLOCK=64)
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(add), len(gc.get_objects())
    for _ in range(1000):
        add[(16,)](x, y, out, 1000, BLOCK=64)
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(add)) == before[:2]
    assert len(gc.get_objects()) < before[2] + 50


def test_a_launched_kernel_is_collected():
    """With what it was compiled with: nothing of the process keeps it."""
    found = []
    for launches in (1, 3):
        kernel = fresh("""
            FACTOR = tl.constexpr(2)
            @tessera.jit
            def kernel(x, out, N: tl.constexpr):
                o = tl.arange(0, N)
                tl.store(out + o, tl.load(x + o) * FACTOR)
            """)
        x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
        launch = kernel[lambda meta: (1,)]
        for _ in range(launches):
            launch(x, out, N=8)
        assert out[0] == 2
        compiled = launch(x, out, N=8)
        found += [weakref.ref(kernel), weakref.ref(compiled)]
        del kernel, launch, compiled
    gc.collect()
    assert [ref() for ref in found] == [None] * 4


def test_collecting_while_kernels_run():
    """The collector looks at dispatchers whose table changes and whose kernels run."""
    source = """
    @tessera.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x, N)
    """
    stop = threading.Event()
    failures = []

    def work():
        x = np.zeros(1)
        while not stop.is_set():
            kernel = fresh(source)
            for n in (1, 2, 1, 2):
                kernel[(1,)](x, N=n)
                if x[0] != n:
                    failures.append((n, x[0]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        gc.collect()
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_kernels_are_pickled_and_copied_as_functions_are():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps({"kernel": add}, protocol))["kernel"] is add
    assert copy.copy(add) is add and copy.deepcopy([add])[0] is add

    @tessera.jit
    def local(x):
        pass

    assert copy.deepcopy(local) is local
    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(local)


def test_a_compiled_kernel_is_copied_but_not_pickled():
    compiled = tessera.compile(add, "*fp32, *fp32, *fp32, i32, 64")
    assert copy.copy(compiled) is compiled and copy.deepcopy([compiled])[0] is compiled
    with pytest.raises(TypeError, match="compiled kernel `add` cannot be pickled.*@jit function"):
        pickle.dumps(compiled)


# --- Other ways to run ----------------------------------------------------------------


def test_interpret():
    x, y, out = arrays()
    assert tessera.interpret(add)[(16,)](x, y, out, 1000, BLOCK=64) is None
    assert np.array_equal(out, x + y)


def test_the_setting_interpret(monkeypatch):
    x, y, out = arrays()
    add[(16,)](x, y, out, 1000, BLOCK=64)
    out[:] = 0
    with settings.override(interpret=True):
        assert add[(16,)](x, y, out, 1000, BLOCK=64) is None
    assert np.array_equal(out, x + y)
    assert add[(16,)](x, y, out, 1000, BLOCK=64) is not None


def test_warmup_compiles_without_memory():
    kernel = add.warmup(tl.float32, np.float32, tessera.MockTensor("float32"), 1000, BLOCK=64)
    assert kernel.name == "add" and "tile.store" in kernel.stages["tile"]
    x, y, out = arrays()
    assert kernel is add[(16,)](x, y, out, 1000, BLOCK=64)


def test_compile_and_launch():
    kernel = tessera.compile(add, "*fp32:16, *fp32:16, *fp32:16, i32, 64")
    assert list(kernel.stages) == [
        "tile", "tile-opt", "strips", "llvm", "llvmir", "asm", "object",
    ]  # fmt: skip
    x, y, out = arrays()
    kernel[(16,)](x, y, out, 1000)
    assert np.array_equal(out, x + y)
    out[:] = 0
    kernel[(16,)](x, y, out, 1000, 64)  # all of them will do too
    assert np.array_equal(out, x + y)


def pad(array, offset=0):
    """A copy at an address that 16 divides, but for `offset` elements."""
    size = array.dtype.itemsize
    room = np.zeros(array.size + offset + 16 // size, array.dtype)
    start = -room.ctypes.data % 16 // size + offset
    room[start : start + array.size] = array
    return room[start : start + array.size]


F, I = pad(np.zeros(64, np.float32)), pad(np.zeros(64, np.int32))


@tessera.jit
def mixed(x, n, f, flag, one, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets) * f + n + one + flag)


@pytest.mark.parametrize(
    "args, id, message",
    [
        ((F, 32, 2.0), "E051", r"takes 4 arguments, got 3\nfix: pass x: \*fp32:16, n: int32:16"),
        ((F, 32, 2.0, True, 1, 64, 5), "E051", "takes 4 arguments, got 7"),
        ((I, 32, 2.0, True), "E054", r"`x` was compiled as \*fp32:16, got an array of int32"),
        ((F.view(np.int32), 32, 2.0, True), "E054", "got an array of int32"),
        ((F[1:], 32, 2.0, True), "E054", "address that 16 does not divide"),
        ((F.ctypes.data, 32, 2.0, True), "E054", r"`x` was compiled as \*fp32:16, got \d+"),
        ((None, 32, 2.0, True), "E054", "got None"),
        (([1.0], 32, 2.0, True), "E054", "got a list"),
        ((F, F, 2.0, True), "E054", "`n` was compiled as int32:16, got an? ndarray"),
        ((F, "32", 2.0, True), "E054", "`n` was compiled as int32:16, got '32'"),
        ((F, 2.5, 2.0, True), "E055", "got the float 2.5"),
        ((F, 33, 2.0, True), "E055", "int32:16 and 16 does not divide 33"),
        ((F, 2**31, 2.0, True), "E055", "which 2147483648 does not fit"),
        ((F, -(2**31) - 16, 2.0, True), "E055", "does not fit"),
        ((F, 32, "2", True), "E054", "`f` was compiled as fp32, got '2'"),
        ((F, 32, 10**400, True), "E055", "does not fit"),
        ((F, 32, 2.0, 2), "E055", "`flag` was compiled as int1, which 2 does not fit"),
        ((F, 32, 2.0, True, 2), "E055", "`one` was compiled as the constant 1, got 2"),
        ((F, 32, 2.0, True, 2, 64), "E055", "`one` was compiled as the constant 1, got 2"),
        ((F, 32, 2.0, True, 1, 32), "E055", "`BLOCK` was compiled as the constant 64, got 32"),
        ((tessera.MockTensor(tl.float32), 32, 2.0, True), "E054", "no memory"),
    ],
)
def test_a_compiled_kernel_checks_its_arguments(args, id, message):
    kernel = tessera.compile(mixed, "*fp32:16, i32:16, fp32, i1, 1, 64")
    with pytest.raises(tessera.ArgumentError, match=message) as caught:
        kernel[(1,)](*args)
    assert caught.value.id == id
    assert not F.any() and not I.any()


def test_a_compiled_kernel_takes_what_it_was_compiled_for():
    class Size(int):
        pass

    kernel = tessera.compile(mixed, "*fp32:16, i32:16, fp32, i1, 1, 64")
    for n in (32, 0, -16, Size(48), np.int64(64)):
        for f in (2.0, 3, np.float32(0.5), float("inf")):
            x = pad(np.ones(64, np.float32))
            kernel[(1,)](x, n, f, False)
            assert np.all(x == np.float32(f) + n + 1)
            kernel[(1,)](x, n, f, False, 1, 64)
            kernel[(1,)](x, n, f, False, 1)  # without what is declared a constant
            assert not np.isfinite(f) or np.all(x == ((f + n + 1) * f + n + 1) * f + n + 1)
    with pytest.raises(tessera.ArgumentError, match="no option `num_warps`"):
        kernel[(1,)](F, 32, 2.0, True, num_warps=4)


def test_a_compiled_kernel_of_tuples_and_descriptors():
    from tessera.tools.tensor_descriptor import TensorDescriptor

    @tessera.jit
    def kernel(pair, source, k: tl.constexpr):
        tile = source.load([0, 0])
        tl.store(pair[0] + tl.arange(0, 8), tl.sum(tile, 0) + pair[1] + k)

    x, out = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros(8, np.float32)
    descriptor = TensorDescriptor.from_tensor(x, [8, 8])
    compiled = kernel.warmup((out, 5), descriptor, 3, grid=(1,))
    compiled[(1,)]((out, 5), descriptor, 3)
    assert np.array_equal(out, x.sum(0) + 8)
    compiled[(1,)](out, 7, x, 8, 8, 8)
    assert np.array_equal(out, x.sum(0) + 10)
    for args, message in [
        (((out, 5, 6), descriptor, 3), "compiled as a tuple of 2, got a tuple"),
        ((out, descriptor, 3), "compiled as a tuple of 2"),
        (((out, 5), x, 3), "compiled as a tensor descriptor, got an? ndarray"),
        (((out, 1.5), descriptor, 3), r"`pair\[1\]` was compiled as int\d\d, got the float 1.5"),
    ]:
        with pytest.raises(tessera.ArgumentError, match=message):
            compiled[(1,)](*args)


def test_a_kernel_from_a_stage_checks_types(tmp_path):
    with settings.override(dump_dir=str(tmp_path)):
        tessera.compile(mixed, "*fp32:16, i32:16, fp32, i1, 1, 64")
    for stage in ("mixed.tile.mlir", "mixed.llvmir.ll"):
        compiled = tessera.compile(tmp_path / stage)
        compiled[(1,)](pad(F), 32, 2.0, True)
        for args, message in [
            ((F, 32, 2.0), "takes 4 arguments, got 3"),
            ((32, 32, 2.0, True), "`#0` was compiled as"),
            ((F, F, 2.0, True), "`#1` was compiled as"),
            ((F, 2**32, 2.0, True), "does not fit"),
        ]:
            with pytest.raises(tessera.ArgumentError, match=message):
                compiled[(1,)](*args)


def test_signatures():
    by_name = {
        "x_ptr": "*fp32",
        "y_ptr": tl.pointer_type(tl.float32),
        "out_ptr": "*fp32",
        "n": "i64",
    }
    kernel = tessera.compile(add, by_name, constexprs={"BLOCK": 128})
    assert [argument["type"] for argument in kernel.metadata["arguments"]][3] == "i64"
    for signature, why in [
        ("*fp32, *fp32", "lacks the type of the parameter `out_ptr`"),
        ("*fp32, *fp32, *fp32, i32", "lacks the value of the constexpr `BLOCK`"),
        ("*fp32, *fp33, *fp32, i32, 64", "no dtype 'fp33'"),
        ({"z": "i32"}, "no parameter `z`"),
        ("i32, i32, i32, i32, 64, 64", "has 6 types"),
    ]:
        with pytest.raises(tessera.ArgumentError, match=why):
            tessera.compile(add, signature)


@pytest.mark.parametrize("stage", ["tile", "tile-opt", "strips", "llvm", "llvmir"])
def test_going_on_from_an_edited_stage(tmp_path, stage):
    source = """
        @tessera.jit
        def kernel(x_ptr, out_ptr):
            offsets = tl.arange(0, 16)
            tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + 1234.0)
        """
    kernel = fresh(source)
    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    with settings.override(dump_dir=str(tmp_path / "dump")):
        kernel[(1,)](x, out)
    assert np.all(out == 1235)
    suffix = "ll" if stage == "llvmir" else "mlir"
    path = tmp_path / "dump" / f"kernel.{stage}.{suffix}"
    text = path.read_text()
    # LLVM writes floats as the bits of a double.
    edited = text.replace("1.234000e+03", "4.321000e+03").replace(
        "0x4093480000000000", "0x40B0E10000000000"
    )
    assert edited != text
    path.write_text(edited)
    compiled = tessera.compile(path)
    compiled[(1,)](x, out)
    assert np.all(out == 4322)
    out[:] = 0
    with settings.override(override_dir=str(tmp_path / "dump")):
        for other in (tmp_path / "dump").iterdir():
            if other != path:
                other.unlink()
        kernel[(1,)](x, out)
    assert np.all(out == 4322)
    kernel[(1,)](x, out)
    assert np.all(out == 1235)


def test_a_file_that_is_no_stage(tmp_path):
    with pytest.raises(tessera.LaunchError, match="not the name of a stage"):
        tessera.compile(tmp_path / "kernel.mlir")
    path = tmp_path / "kernel.tile.mlir"
    path.write_text("tile.func @f( {")
    with pytest.raises(tessera.TesseraError, match="kernel.tile.mlir:1"):
        tessera.compile(path)


# --- Launches that are refused ---------------------------------------------------------


X = np.zeros(64, np.float32)


@pytest.mark.parametrize(
    "launch, id, message",
    [
        (lambda: add(X, X, X, 4, 16), "E004", "without a launch grid"),
        (lambda: add[(1,)](X, X, X, 4), "E051", "without `BLOCK`"),
        (lambda: add[(1,)](X, X), "E051", "without `out_ptr`, `n`, `BLOCK`"),
        (lambda: add[(1,)](X, X, X, 4, 16, 5), "E051", "takes 5 arguments by place, got 6"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=16, num_wraps=4), "E051", "did you mean `num_warps`"),
        (lambda: add[(1,)](X, X, X, 4, BLOK=16), "E051", "did you mean `BLOCK`"),
        (lambda: add[()](X, X, X, 4, BLOCK=16), "E052", "has 0 extents"),
        (lambda: add[(1, 1, 1, 1)](X, X, X, 4, BLOCK=16), "E052", "has 4 extents"),
        (lambda: add[(1.5,)](X, X, X, 4, BLOCK=16), "E052", "the extent 1.5, a float"),
        (lambda: add[("1",)](X, X, X, 4, BLOCK=16), "E052", "the extent '1', a str"),
        (lambda: add[(-1,)](X, X, X, 4, BLOCK=16), "E052", "the extent -1"),
        (lambda: add[(2**31,)](X, X, X, 4, BLOCK=16), "E052", "the extent 2147483648"),
        (lambda: add["x"](X, X, X, 4, BLOCK=16), "E052", "the grid is 'x'"),
        (lambda: add[lambda m: None](X, X, X, 4, BLOCK=16), "E052", "function returned None"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=16, num_warps=3), "E053", "num_warps is 3"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=16, num_warps=0), "E053", "num_warps is 0"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=16, num_warps=64), "E053", "num_warps is 64"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=16, num_stages=-1), "E053", "num_stages is -1"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=16, num_ctas=3), "E053", "num_ctas is 3"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=16, target="tpu"), "E053", "no target 'tpu'"),
        (lambda: add[(1,)]({1.0}, X, X, 4, BLOCK=16), "E054", r"`x_ptr` is a set.*{1.0}"),
        (lambda: add[(1,)](X, X, X, "4", BLOCK=16), "E054", "`n` is a str"),
        (lambda: add[(1,)](X, X, {}, 4, BLOCK=16), "E054", "`out_ptr` is a dict"),
        (lambda: add[(1,)](X, X, X, 4j, BLOCK=16), "E054", "`n` is a complex"),
        (lambda: add[(1,)](X, X, X.astype(">f4"), 4, BLOCK=16), "E054", "other byte order"),
        (lambda: add[(1,)](X, X, X, 2**64, BLOCK=16), "E055", "18446744073709551616"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=[16]), "E033", "must be hashable, got a list"),
        (lambda: add[(1,)](X, X, X, 4, BLOCK=X), "E033", "constexpr, got a ndarray"),
    ],
)
def test_mistakes(launch, id, message):
    for _ in range(2):  # once more, when the kernel may be known
        with pytest.raises(tessera.TesseraError, match=message) as caught:
            launch()
        assert caught.value.id == id


def test_the_traceback_of_a_mistake_ends_at_the_launch():
    with pytest.raises(tessera.TesseraError) as caught:
        add[(1,)](X, X, X, "4", BLOCK=16)
    assert [entry.path for entry in caught.traceback][-1].name == os.path.basename(__file__)


def test_mistakes_are_python_errors_of_the_expected_kind():
    with pytest.raises(TypeError):
        add[(1,)](X, X, X, "4", BLOCK=16)
    with pytest.raises(ValueError):
        add[-5](X, X, X, 4, BLOCK=16)


def test_read_only_arrays_may_be_read_but_not_written():
    x, y, out = arrays()
    x.flags.writeable = False
    for _ in range(2):
        add[(16,)](x, y, out, 1000, BLOCK=64)
    assert np.array_equal(out, x + y)
    out.flags.writeable = False
    before = out.copy()
    with pytest.raises(tessera.ArgumentError, match="`out_ptr`.*read-only"):
        tessera.interpret(add)[(16,)](x, y, out, 500, BLOCK=64)
    assert np.array_equal(out, before)


@pytest.mark.parametrize(
    "thing, id, message",
    [
        (lambda x: x, "E001", "got a lambda"),
        (dict, "E001", "got the class `dict`"),
        (len, "E001", "got a builtin"),
        (add, "E001", "decorated with @jit twice"),
        (type("Autotuner", (), {"fn": add, "run": None})(), "E003", "on top of @autotuner"),
    ],
)
def test_what_is_no_kernel(thing, id, message):
    with pytest.raises(tessera.CompilationError, match=message) as caught:
        tessera.jit(thing)
    assert caught.value.id == id
    assert caught.value.file == __file__
    place = "lambda x: x" if message == "got a lambda" else "tessera.jit(thing)"
    assert place in caught.value.source_line


def test_a_function_without_source():
    namespace = {"tl": tl}
    exec("def kernel(x): tl.store(x, 1)", namespace)
    with pytest.raises(tessera.CompilationError, match="source of `kernel` is not available") as e:
        tessera.jit(namespace["kernel"])[(1,)](np.zeros(1))
    assert e.value.id == "E002"


def test_a_default_that_is_no_constant():
    kernel = fresh("@tessera.jit\ndef kernel(x, y=[1]): pass")
    with pytest.raises(tessera.CompilationError, match="default of `y` is a list") as caught:
        kernel[(1,)](np.zeros(1))
    assert caught.value.id == "E006"


def test_a_failed_assertion_names_its_line():
    kernel = fresh("""
        @tessera.jit(debug=True)
        def kernel(x_ptr):
            tl.device_assert(tl.load(x_ptr) > 0, "not positive")
        """)
    x = np.ones(1, np.float32)
    kernel[(1,)](x)
    x[0] = -1
    for _ in range(2):
        with pytest.raises(tessera.KernelAssertionError, match="cell.*:6:.*not positive"):
            kernel[(1,)](x)


def test_many_variants_are_warned_about():
    kernel = fresh("@tessera.jit\ndef kernel(out_ptr, N: tl.constexpr): tl.store(out_ptr, N)")
    out = np.zeros(1, np.int32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(70):
            kernel[(1,)](out, N=n)
            assert out[0] == n
    assert [str(w.message) for w in caught if "64 times" in str(w.message)]


# --- The disk cache, from outside ---------------------------------------------------------


def run_in_new_process(script, cache_dir, **environment):
    path = os.path.join(os.path.dirname(cache_dir), "script.py")
    with open(path, "w") as file:
        file.write(textwrap.dedent(script))
    python_path = os.path.dirname(os.path.dirname(tessera.__file__))
    run = subprocess.run(
        [sys.executable, path],
        env={
            **os.environ,
            "PYTHONPATH": python_path,
            "TESSERA_CACHE_DIR": cache_dir,
            **environment,
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


SCRIPT = """
import sys
import numpy as np
import tessera
import tessera.language as tl
from tessera.compiler.cache import default_cache

FACTOR = tl.constexpr({factor})

@tessera.jit
def times(x):
    return x * FACTOR{comment}

@tessera.jit
def kernel(x_ptr, out_ptr):
    offsets = tl.arange(0, 16)
    tl.store(out_ptr + offsets, times(tl.load(x_ptr + offsets)))

x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
kernel[(1,)](x, out)
cache = default_cache()
print(out[0], cache.hits, cache.misses, "tessera.frontend.calls" in sys.modules)
"""


def test_a_new_process_finds_the_kernel(tmp_path):
    cache = str(tmp_path / "cache")
    first = SCRIPT.format(factor=2, comment="")
    assert run_in_new_process(first, cache) == ["2.0", "0", "2", "True"]
    # Source and IR are known: the front-end does not even load.
    assert run_in_new_process(first, cache) == ["2.0", "2", "0", "False"]
    # Another source, the same IR.
    comment = SCRIPT.format(factor=2, comment="  # twice")
    assert run_in_new_process(comment, cache) == ["2.0", "1", "1", "True"]
    # Another value of a global.
    other = SCRIPT.format(factor=3, comment="")
    assert run_in_new_process(other, cache) == ["3.0", "0", "2", "True"]
    assert run_in_new_process(first, cache) == ["2.0", "2", "0", "False"]
    assert run_in_new_process(first, cache, TESSERA_CACHE="off")[0] == "2.0"
    # Other code-generation settings are other kernels.
    assert run_in_new_process(first, cache, TESSERA_CPU="x86-64")[:3] == ["2.0", "0", "2"]


def test_a_damaged_cache_is_compiled_around(tmp_path):
    cache = str(tmp_path / "cache")
    script = SCRIPT.format(factor=2, comment="")
    run_in_new_process(script, cache)
    for folder, _, names in os.walk(cache):
        for name in names:
            if not name.startswith("."):
                with open(os.path.join(folder, name), "r+b") as file:
                    file.seek(150)
                    file.write(b"\xff\xff\xff")
    assert run_in_new_process(script, cache) == ["2.0", "0", "2", "True"]
    assert run_in_new_process(script, cache) == ["2.0", "2", "0", "False"]


def test_import_is_quick_and_alone():
    script = (
        "import time; start = time.process_time(); import sys; import tessera; "
        "took = time.process_time() - start; "
        "assert 'numpy' not in sys.modules and 'torch' not in sys.modules; print(took)"
    )
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tessera.__file__))}
    times = [
        float(subprocess.check_output([sys.executable, "-c", script], env=environment))
        for _ in range(3)
    ]
    assert min(times) < 0.1


def test_default_root(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_module._default_root() == str(tmp_path / "xdg" / "tessera")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="for this process only"):
        root = cache_module._default_root()
    assert os.stat(root).st_mode & 0o777 == 0o700


def test_host_functions_work_in_kernels_too():
    @tessera.jit
    def kernel(out_ptr, n, BLOCK: tl.constexpr):
        tl.store(out_ptr, tessera.cdiv(n, BLOCK))
        tl.store(out_ptr + 1, tessera.next_power_of_2(BLOCK))

    out = np.zeros(2, np.int32)
    kernel[(1,)](out, 100, BLOCK=33)
    assert list(out) == [tessera.cdiv(100, 33), tessera.next_power_of_2(33)] == [4, 64]
    assert [tessera.next_power_of_2(n) for n in (0, 1, 2, 3, 1024, 1025)] == [
        1,
        1,
        2,
        4,
        1024,
        2048,
    ]


def test_threads_of_one_launch_are_not_those_of_the_next():
    x, y, out = arrays()
    first = add[(16,)](x, y, out, 1000, BLOCK=64, num_threads=1)
    second = add[(16,)](x, y, out, 1000, BLOCK=64)
    assert first is second and first.metadata["num_threads"] == 0


def test_settings_that_come_back_find_their_kernels(tmp_path):
    x, y, out = arrays()
    first = add[(16,)](x, y, out, 1000, BLOCK=64)
    with settings.override(deterministic=True):
        assert add[(16,)](x, y, out, 1000, BLOCK=64) is not first
    with settings.override(dump_dir=str(tmp_path / "dump")):
        assert add[(16,)](x, y, out, 1000, BLOCK=64) is not first
    assert "add.asm.s" in os.listdir(tmp_path / "dump")
    assert add[(16,)](x, y, out, 1000, BLOCK=64) is first
