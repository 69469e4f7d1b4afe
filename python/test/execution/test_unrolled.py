# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code that is unrolled many times: it computes what a loop would, and takes the compiler time in
proportion to its length.
"""

import time

import numpy as np
import pytest

import tessera
import tessera.language as tl

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


def compile_unrolled(kernel, count, **options):
    signature = {"x": "*fp32", "o": "*fp32", "n": "i32"}
    return tessera.compile(kernel, signature=signature, constexprs={"count": count}, **options)


@pytest.mark.parametrize("kernel", KERNELS, ids=each)
def test_code_grows_with_the_count(kernel):
    """And no function of it beyond what LLVM takes in its stride."""
    lines = []
    for count in (50, 200):
        functions = (
            compile_unrolled(kernel, count, cpu="x86-64-v3").stages["strips"].split("func.func")
        )
        lines.append(sum(len(text.splitlines()) for text in functions))
        assert max(len(text.splitlines()) for text in functions) < 5000
    assert lines[1] < 6 * lines[0]


@pytest.mark.parametrize("kernel", [sum_rows, change_rows], ids=each)
def test_time_of_many(kernel):
    """A guard against the square of the count, which is half a minute and more."""
    begin = time.process_time()
    compile_unrolled(kernel, 600)
    assert time.process_time() - begin < 20
