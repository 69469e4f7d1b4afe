# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code that is unrolled many times: it computes what a loop would, and takes the compiler time in
proportion to its length.
"""

import time
import warnings

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.settings import settings

N = 64


@tessera.jit
def sum_rows(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 64)
    s = tl.zeros((64,), tl.float32)
    for k in tl.static_range(count):
        s += tl.load(x + k * n + i, mask=i < n, other=1)
    tl.store(o + i, s, mask=i < n)


@tessera.jit
def sum_rows_twice(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 64)
    s = tl.zeros((64,), tl.float32)
    for k in tl.static_range(count):
        s += tl.load(x + k * n + i)
    tl.store(o + i, s)
    tl.store(o + 2 * n + i, s * 2, mask=i % 3 != 1)


@tessera.jit
def change_rows(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 64)
    for k in tl.static_range(count):
        tl.store(o + k * n + i, tl.load(x + k * n + i) * 2 + k)


@tessera.jit
def sum_of_rows(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 64)
    for k in tl.static_range(count):
        tl.store(o + k, tl.sum(tl.load(x + k * n + i), 0))


@tessera.jit
def multiply_rows(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    a = tl.load(x + i)
    s = tl.zeros((8, 8), tl.float32)
    for k in tl.static_range(count):
        s = tl.dot(a, tl.load(x + k * n + i), s)
    tl.store(o + i, s)


KERNELS = [sum_rows, sum_rows_twice, change_rows, sum_of_rows, multiply_rows]


def each(f):
    return getattr(f, "__name__", str(f))


@pytest.mark.parametrize("kernel", KERNELS, ids=each)
@pytest.mark.parametrize("shift", [None, 0, 1, -3, 64])
@pytest.mark.parametrize("count", [5, 80])
def test_values(run, rng, kernel, shift, count):
    """Of arrays that do not overlap, are the same one, or begin so many elements apart."""
    if run.target == "simulator" and shift is not None:
        pytest.skip(
            "between lanes of several threads a GPU keeps no order without tl.debug_barrier()"
        )
    size = (count + 1) * N
    memory = rng.integers(-4, 4, 2 * size + 128).astype(np.float32)
    start = size + 64 if shift is None else 64 + shift
    got, want = memory.copy(), memory.copy()
    run(kernel, (1,), got[64 : 64 + size], got[start : start + size], N, count=count)
    tessera.interpret(kernel)[(1,)](
        want[64 : 64 + size], want[start : start + size], N, count=count
    )
    np.testing.assert_array_equal(got, want)


@tessera.jit
def shift_rows(x, slots, n, count: tl.constexpr):
    """The state of a short convolution: each row of a slot is moved by one element."""
    i = tl.program_id(0) * 32 + tl.arange(0, 32)
    slot = tl.load(slots)
    mask = (i < n) & (slot >= 0)
    row = x + slot * n * count + i * count
    total = tl.zeros((32,), tl.int32)
    for k in tl.static_range(count):
        total += tl.load(row + k, mask, 0)
    for k in tl.static_range(count - 1):
        tl.store(row + k, tl.load(row + k + 1, mask, 0), mask)
    tl.store(row + count - 1, total, mask)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32], ids=each)
@pytest.mark.parametrize("slot", [0, 2, -1])
def test_strided_accesses(run, rng, dtype, slot):
    """So many lanes that accesses for which a CPU has no instruction share functions."""
    n, count = 50, 30
    got = rng.integers(-99, 99, (3, n, count)).astype(dtype)
    want, slots = got.copy(), np.array([slot], np.int32)
    run(shift_rows, (2,), got, slots, n, count=count)
    if slot >= 0:
        total = want[slot].sum(axis=1, keepdims=True, dtype=np.int32).astype(dtype)
        want[slot] = np.concatenate([want[slot, :, 1:], total], axis=1)
    np.testing.assert_array_equal(got, want)


def test_code_of_strided_accesses():
    """Lanes of 16-bit elements are written out once: 200,000 lines otherwise."""
    signature = {"x": "*i16", "slots": "*i32", "n": "i32"}
    kernel = tessera.compile(
        shift_rows, signature=signature, constexprs={"count": 100}, cpu="x86-64-v4"
    )
    assert len(kernel.stages["asm"].splitlines()) < 60_000


def compile_unrolled(kernel, count, **options):
    signature = {"x": "*fp32", "o": "*fp32", "n": "i32"}
    return tessera.compile(kernel, signature=signature, constexprs={"count": count}, **options)


@pytest.mark.parametrize("kernel", KERNELS, ids=each)
def test_code_grows_with_the_count(kernel):
    """And no function of it beyond what LLVM takes in its stride."""
    lines = []
    for count in (25, 100):
        functions = (
            compile_unrolled(kernel, count, cpu="x86-64-v3").stages["strips"].split("func.func")
        )
        lines.append(sum(len(text.splitlines()) for text in functions))
        assert max(len(text.splitlines()) for text in functions) < 5000
    assert lines[1] < 6 * lines[0]


@tessera.jit
def reduce_boxes(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 16)
    box = i[:, None] * 16 + i[None, :]
    for k in tl.static_range(count):
        v = tl.load(x + k * n + box)
        tl.store(o + k * 16 + i, tl.sum(v, 0) + tl.max(v, 1))


@tessera.jit
def multiply_boxes(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 16)
    box = i[:, None] * 16 + i[None, :]
    a = tl.load(x + box)
    s = tl.zeros((16, 16), tl.float32)
    for k in tl.static_range(count):
        s = tl.dot(a, tl.load(x + k * n + box), s)
    tl.store(o + box, s)


@tessera.jit
def load_all_first(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 64)
    rows = ()
    for k in tl.static_range(count):
        rows = rows + (tl.load(x + k * n + i),)
    s = tl.zeros((64,), tl.float32)
    for k in tl.static_range(count):
        s = s * 3 + rows[k]
    tl.store(o + i, s)


@pytest.mark.parametrize(
    "kernel, count",
    [
        (sum_rows, 150),
        (change_rows, 150),
        (load_all_first, 150),
        (reduce_boxes, 40),
        (multiply_boxes, 40),
    ],
    ids=each,
)
def test_time_for_a_gpu_grows_with_the_count(kernel, count):
    """Four times the code takes no more than ten times as long: the square would be sixteen."""

    def seconds(count):
        begin = time.process_time()
        compile_unrolled(kernel, count, target="sm_90a")
        return time.process_time() - begin

    with settings.override(ptxas="driver"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds(10)
        assert seconds(4 * count) < 10 * min(seconds(count) for _ in range(3))


@tessera.jit
def sum_powers(x, o, n, count: tl.constexpr):
    i = tl.arange(0, 16384)
    v = tl.load(x + i)
    w = v
    for _ in tl.static_range(count):
        w = w * w + w
    tl.store(o + i, w + tl.sum(v + w, 0) * v)


def test_what_is_made_of_itself_again_and_again():
    """What may be computed again behind a reduction is followed once, not along each way."""
    with settings.override(ptxas="driver"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        compile_unrolled(sum_powers, 40, target="sm_90a")
        assert time.process_time() - begin < 20


@pytest.mark.parametrize("kernel", [sum_rows, change_rows], ids=each)
def test_time_of_many(kernel):
    """A guard against the square of the count, which is half a minute and more."""
    begin = time.process_time()
    compile_unrolled(kernel, 600)
    assert time.process_time() - begin < 20
