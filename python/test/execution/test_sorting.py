# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sort, argsort and topk: orders, ties, NaNs, and both axes."""

import numpy as np
import pytest

import tessera
import tessera.language as tl


@tessera.jit
def largest(
    x_ptr,
    values_ptr,
    where_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    AXIS: tl.constexpr,
):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(x_ptr + rows * N + columns)
    values, where = tl.topk(tile, K, AXIS, return_indices=True)
    if AXIS == 1:
        to = rows * K + tl.arange(0, K)[None, :]
    else:
        to = tl.arange(0, K)[:, None] * N + columns
    tl.store(values_ptr + to, values)
    tl.store(where_ptr + to, where)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
@pytest.mark.parametrize(
    "m, n, k, axis",
    [
        (4, 512, 8, 1),
        (1, 256, 1, 1),
        (2, 192, 4, 1),
        (96, 4, 8, 0),
        (64, 2, 1, 0),
        (4, 40, 16, 1),
        (2, 64, 32, 1),
    ],
)
def test_topk_in_rounds(run, rng, m, n, k, axis, dtype):
    # Few different values, so that ties are many: the earlier index wins.
    x = rng.integers(-20, 20, (m, n)).astype(dtype)
    shape = (m, k) if axis == 1 else (k, n)
    values, where = np.full(shape, 99, dtype), np.full(shape, 99, np.int32)
    run(largest, (1,), x, values, where, M=m, N=n, K=k, AXIS=axis)
    order = np.argsort(-x.astype(np.float32), axis, kind="stable")
    want = np.take(order, range(k), axis)
    np.testing.assert_array_equal(where, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, axis))


@tessera.jit
def ordered(x_ptr, out_ptr, N: tl.constexpr, DESCENDING: tl.constexpr):
    index = tl.arange(0, N)
    tl.store(out_ptr + index, tl.sort(tl.load(x_ptr + index), descending=DESCENDING))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("n", [1, 2, 64, 192, 1024])
def test_sort_with_nans(run, rng, n, descending):
    x = rng.standard_normal(n).astype(np.float32)
    x[rng.random(n) < 0.1] = np.nan
    out = np.full_like(x, 99)
    run(ordered, (1,), x, out, N=n, DESCENDING=descending)
    want = np.sort(x)[::-1] if descending else np.sort(x)
    np.testing.assert_array_equal(out, want)


@tessera.jit
def merge(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, descending: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.bitonic_merge(tl.load(x_ptr + at), descending=descending))


@pytest.mark.parametrize("descending", [False, True])
def test_bitonic_merge(run, rng, descending):
    m, n = 4, 64
    halves = np.sort(rng.standard_normal((2, m, n // 2)).astype(np.float32), axis=2)
    x = np.concatenate([halves[0], halves[1][:, ::-1]], 1)
    out = np.zeros_like(x)
    run(merge, (1,), x, out, m, n, descending)
    np.testing.assert_array_equal(out, np.sort(x, 1)[:, :: -1 if descending else 1])
