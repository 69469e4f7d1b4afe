# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses outside of the memory behind an argument: the interpreter finds them, and so does
the CPU target with debug=True. Both name the place, the argument, the element and the extent."""

from __future__ import annotations

import re
from typing import Any, Callable

import numpy as np
import pytest

import tessera
import tessera.language as tl

torch = pytest.importorskip("torch")


def interpreted(kernel: Any, grid: Any, *args: Any, **options: Any) -> None:
    tessera.interpret(kernel)[grid](*args, debug=True, **options)


def compiled(kernel: Any, grid: Any, *args: Any, **options: Any) -> None:
    kernel[grid](*args, debug=True, **options)


RUNS = [pytest.param(interpreted, id="interpreter")] + [
    pytest.param(
        lambda kernel, grid, *args, cpu=cpu, **options: compiled(
            kernel, grid, *args, cpu=cpu, **options
        ),
        id=cpu,
    )
    for cpu in ("host", "x86-64-v3", "x86-64")
]
Run = Callable[..., None]


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    return request.param  # type: ignore[no-any-return]


@tessera.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask), mask=mask)


@tessera.jit
def copy_unmasked(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def expect(call: Callable[[], None], id: str, *parts: str) -> tessera.MemoryAccessError:
    with pytest.raises(tessera.MemoryAccessError) as caught:
        call()
    text = str(caught.value)
    assert caught.value.id == id, text
    for part in parts:
        assert part in text, text
    assert re.search(r"test_bounds\.py:\d+:\d+: ", text), text
    return caught.value


def test_what_is_inside_runs(run: Run) -> None:
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    run(copy, (2,), x, out, 100, BLOCK=64)
    assert np.array_equal(out, x)


def test_a_load_past_the_end(run: Run) -> None:
    x, out = np.zeros(100, np.float32), np.zeros(128, np.float32)
    expect(
        lambda: run(copy, (2,), x, out, 128, BLOCK=64),
        "E080",
        "load of element 1",
        "`x`",
        "elements 0 to 99",
        "program (1, 0, 0)",
        "kernel 'copy'",
        "fix: mask",
    )


def test_a_store_past_the_end_writes_nothing_there(run: Run) -> None:
    memory = np.full(256, 7, np.int8)
    out = np.ndarray((100,), np.int8, memory.data, 64)  # NumPy sees no allocation beyond it
    x = np.zeros(128, np.int8)
    with pytest.raises(tessera.MemoryAccessError):
        run(copy_unmasked, (2,), x, _Bounded(out), BLOCK=64)
    assert (memory[:64] == 7).all() and (memory[164:] == 7).all()


class _Bounded:
    """An array that tells of no memory but its own."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.dtype, self.shape, self.strides = array.dtype, array.shape, array.strides
        self.itemsize = array.itemsize
        self.base = None

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._array.__array_interface__


def test_before_the_beginning(run: Run) -> None:
    @tessera.jit
    def kernel(x, out):
        i = tl.arange(0, 16)
        tl.store(out + i, tl.load(x - 3 + i))

    x, out = np.zeros(32, np.int64), np.zeros(16, np.int64)
    expect(lambda: run(kernel, (1,), x, out), "E080", "load of element -", "`x`", "0 to 31")
    run(kernel, (1,), x[3:], out)  # a view's memory is all of what it is a view of


def test_scalars_and_atomics(run: Run) -> None:
    @tessera.jit
    def kernel(x, n):
        tl.store(x + n, tl.load(x) + 1)

    @tessera.jit
    def add(x, n):
        tl.atomic_add(x + n + tl.arange(0, 4), 1)

    @tessera.jit
    def swap(x, n):
        tl.atomic_cas(x + n, 0, 5)

    @tessera.jit
    def swap_some(x, n):
        i = tl.arange(0, 16)
        tl.atomic_cas(x + i, 0, 7, mask=i < n)

    x = np.zeros(8, np.int32)
    run(kernel, (1,), x, 7)
    run(add, (1,), x, 4)
    run(swap, (1,), x, 1)
    assert x.tolist() == [0, 5, 0, 0, 1, 1, 1, 2]
    expect(lambda: run(kernel, (1,), x, 8), "E080", "store of element 8 of `x`")
    expect(lambda: run(add, (1,), x, 5), "E080", "atomic of element 8 of `x`", "elements 0 to 7")
    expect(lambda: run(swap, (1,), x, -1), "E080", "atomic of element -1 of `x`")
    assert x.tolist()[:4] == [0, 5, 0, 0]
    run(swap_some, (1,), x, 8)
    assert x.tolist()[:4] == [7, 5, 7, 7]
    expect(lambda: run(swap_some, (1,), x, 9), "E080", "atomic of element 8 of `x`")


def test_an_offset_that_wraps(run: Run) -> None:
    @tessera.jit
    def kernel(x, out, row, stride):
        i = tl.arange(0, 16)
        tl.store(out + i, tl.load(x + row * stride + i))

    x, out = np.zeros(64, np.float32), np.zeros(16, np.float32)
    # 65536 * 65536 is 0 in 32 bits: a place inside the array.
    expect(
        lambda: run(kernel, (1,), x, out, 65536, 65536, sanitize_overflow=False),
        "E081",
        "of element 429496",
        "`x`",
        "elements 0 to 63",
        "wraps",
        "to(tl.int64)",
    )
    # The operator itself is checked, too, unless that is turned off.
    with pytest.raises(tessera.KernelAssertionError, match="int32 overflow in `[*]`"):
        run(kernel, (1,), x, out, 65536, 65536)
    run(kernel, (1,), x, out, 3, 16)


def test_an_offset_that_is_widened_too_late(run: Run) -> None:
    @tessera.jit
    def kernel(x, out, row, stride):
        i = tl.arange(0, 16)
        base = (row * stride).to(tl.int64)
        tl.store(out + i, tl.load(x + (base + i)))

    x, out = np.zeros(64, np.float32), np.zeros(16, np.float32)
    expect(
        lambda: run(kernel, (1,), x, out, 1 << 20, 1 << 12, sanitize_overflow=False),
        "E081",
        "of element 429496",
    )


def test_what_the_interpreter_judges_may_wrap() -> None:
    @tessera.jit
    def kernel(x, out, n):
        i = tl.arange(0, 16)
        tl.store(out + i, tl.load(x + (i + n) * 16))

    # Integers wrap: 2**28 * 16 is 0.
    x, out = np.arange(256, dtype=np.float32), np.zeros(16, np.float32)
    tessera.interpret(kernel)[(1,)](x, out, 1 << 28)
    assert np.array_equal(out, x[::16])


def test_hashes_may_wrap(run: Run) -> None:
    @tessera.jit
    def kernel(x, out):
        i = tl.arange(0, 64)
        h = (i * 1103515245 + 12345) & 63
        tl.store(out + i, tl.load(x + h))

    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    run(kernel, (1,), x, out, sanitize_overflow=False)
    i = np.arange(64, dtype=np.int64)
    assert np.array_equal(out, x[(i * 1103515245 + 12345) & 63])


def test_loops_and_calls(run: Run) -> None:
    @tessera.jit
    def total(p, n, BLOCK: tl.constexpr):
        acc = tl.zeros((BLOCK,), tl.float32)
        for k in range(0, n, BLOCK):
            acc += tl.load(p)
            p += BLOCK
        return tl.sum(acc)

    @tessera.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out, total(x + tl.arange(0, BLOCK), n, BLOCK))

    kernel.fn.__globals__["total"] = total
    x, out = np.ones(64, np.float32), np.zeros(1, np.float32)
    run(kernel, (1,), x, out, 64, BLOCK=16)
    assert out[0] == 64
    expect(lambda: run(kernel, (1,), x, out, 65, BLOCK=16), "E080", "load of element", "0 to 63")


@tessera.jit
def fill_item(xs, at, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(xs[at] + i, i.to(tl.float32), mask=i < n)


@tessera.jit
def add_items(xs, out, at, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    source = xs[at]
    for _ in range(n):
        source += BLOCK
    tl.store(out + i, tl.load(source + i))


def test_items_of_a_list_that_is_indexed(run: Run) -> None:
    sizes = (16, 4, 8)
    xs = [np.zeros(size, np.float32) for size in sizes]
    for at, size in enumerate(sizes):
        run(fill_item, (1,), xs, at, size, BLOCK=16)
        assert (xs[at] == np.arange(size)).all()
        if size < 16:
            expect(
                lambda at=at: run(fill_item, (1,), xs, at, 16, BLOCK=16),
                "E080",
                "store of element",
                f"`xs[{at}]`",
                f"elements 0 to {size - 1}",
            )
    out = np.zeros(4, np.float32)
    run(add_items, (1,), xs, out, 2, 1, BLOCK=4)
    assert out.tolist() == [4, 5, 6, 7]
    expect(lambda: run(add_items, (1,), xs, out, 1, 1, BLOCK=4), "E080", "`xs[1]`")
    if run is not interpreted:  # whose error is the same for each number of arrays
        return
    many = [np.zeros(16, np.float32) for _ in range(64)]
    many[63] = np.zeros(8, np.float32)
    expect(lambda: run(fill_item, (1,), many, 63, 16, BLOCK=16), "E080", "`xs[63]`")


def test_descriptors(run: Run) -> None:
    @tessera.jit
    def kernel(x, out, m, n):
        d = tl.make_tensor_descriptor(x, [m, n], [n, 1], [8, 16])
        o = tl.make_tensor_descriptor(out, [8, 16], [16, 1], [8, 16])
        o.store([0, 0], d.load([0, 0]))

    x, out = np.ones((8, 16), np.float32), np.zeros((8, 16), np.float32)
    run(kernel, (1,), x, out, 8, 16)
    assert out.all()
    # The descriptor says that there is more than there is.
    expect(lambda: run(kernel, (1,), x[:4].copy(), out, 8, 16), "E080", "`x`", "0 to 63")


def test_torch_views_have_the_memory_of_their_storage(run: Run) -> None:
    x, out = torch.arange(64.0), torch.zeros(16)
    run(copy_unmasked, (1,), x[48:], out, BLOCK=16)
    assert torch.equal(out, x[48:])
    expect(
        lambda: run(copy_unmasked, (1,), x[49:], out, BLOCK=16),
        "E080",
        "load of element 15 of `x`",
        "elements -49 to 14",
    )


def test_empty_arrays(run: Run) -> None:
    out = np.zeros(16, np.float32)
    run(copy, (1,), np.zeros(0, np.float32), out, 0, BLOCK=16)
    expect(lambda: run(copy, (1,), np.zeros(0, np.float32), out, 1, BLOCK=16), "E080", "has none")


def test_unknown_memory_is_not_checked(run: Run) -> None:
    class Opaque:
        dtype = "float32"

        def __init__(self, array: np.ndarray) -> None:
            self._array = array

        def data_ptr(self) -> int:
            return int(self._array.ctypes.data)

    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    run(copy, (1,), Opaque(x), out, 16, BLOCK=16)
    assert out.all()


def test_a_compiled_kernel_checks_too() -> None:
    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    kernel = copy.warmup(x, out, 16, grid=(1,), BLOCK=16, debug=True)
    kernel[(1,)](x, out, 16)
    assert out.all()
    expect(lambda: kernel[(2,)](x, out, 32), "E080", "element ", "elements 0 to 15")


def test_without_debug_nothing_is_checked() -> None:
    kernel = copy.warmup(np.zeros(4, np.float32), np.zeros(4, np.float32), 4, grid=(1,), BLOCK=16)
    assert "report_access" not in kernel.asm["tile-opt"]
    debug = copy.warmup(
        np.zeros(4, np.float32), np.zeros(4, np.float32), 4, grid=(1,), BLOCK=16, debug=True
    )
    assert debug.asm["tile-opt"].count("report_access") == 4


@tessera.jit
def asserting(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_assert(i < n, "too many")
    tl.store(x + i, 1.0)


def test_assertions_without_checks_of_accesses() -> None:
    x = np.zeros(16, "float32")
    asserting[(1,)](x[:8], 16, 16, debug=True, sanitize_accesses=False)  # within x, after all
    assert x.all()
    with pytest.raises(tessera.MemoryAccessError):
        asserting[(1,)](x[:8].copy(), 16, 16, debug=True)
    with pytest.raises(tessera.KernelAssertionError, match="too many"):
        asserting[(1,)](x, 8, 16, debug=True, sanitize_accesses=False)
