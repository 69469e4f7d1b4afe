# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that move elements between lanes, for every dtype: gather, scans, argmax, sort,
topk, histogram. Results are written over a sentinel, so that a missing store shows.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from execution.running import FLOATS, INTS, UINTS, draw, make_kernel, numpy_dtype

ALL = INTS + UINTS + FLOATS
M, N = 16, 32


@functools.lru_cache(maxsize=None)
def over_matrix(expression: str, rows: int, columns: int, setup: str = "") -> object:
    """What the expression makes of a matrix: a result of so many rows and columns."""
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr, index_ptr):
    i, j = tl.arange(0, {M})[:, None], tl.arange(0, {N})[None, :]
    x = tl.load(x_ptr + i * {N} + j)
    {setup}
    to = tl.arange(0, {rows})[:, None] * {columns} + tl.arange(0, {columns})[None, :]
    tl.store(out_ptr + to, {expression})
""")


def sentinel(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.full(shape, 99, dtype)


def apply(run, x: np.ndarray, expression: str, out: np.ndarray, setup: str = "",
          index: np.ndarray | None = None) -> np.ndarray:  # fmt: skip
    rows, columns = out.shape
    other = np.zeros(1, np.int32) if index is None else index
    run(over_matrix(expression, rows, columns, setup), (1,), x, out, other)
    return out


def few_values(rng: np.random.Generator, dtype: str) -> np.ndarray:
    """Elements of which many are equal; of either sign, where there is one."""
    low = 0 if dtype in UINTS else -9
    x = rng.integers(low, 10, (M, N)).astype(numpy_dtype(dtype))
    x[0, :3] = [_least(dtype), _most(dtype), _most(dtype)]
    return x


def _least(dtype: str) -> float:
    return -np.inf if dtype in FLOATS else np.iinfo(dtype).min


def _most(dtype: str) -> float:
    return np.inf if dtype in FLOATS else np.iinfo(dtype).max


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ALL)
def test_gather(run, rng, dtype, axis):
    x = draw(rng, (M, N), dtype)
    index = rng.integers(0, (M, N)[axis], (M, N)).astype(np.int32)
    setup = f"index = tl.load(index_ptr + i * {N} + j)"
    out = sentinel((M, N), x.dtype)
    apply(run, x, f"tl.gather(x, index, {axis})", out, setup, index)
    np.testing.assert_array_equal(out, np.take_along_axis(x, index, axis))


@pytest.mark.parametrize("axis, reverse", [(0, True), (1, False)])
@pytest.mark.parametrize("dtype", ALL)
def test_running_sums_and_products(run, rng, dtype, axis, reverse):
    # Sums below 128 and products of signs are exact in every type.
    unsigned = dtype in UINTS
    for name, reference in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
        if name == "cumsum":
            x = rng.integers(0 if unsigned else -3, 4, (M, N)).astype(numpy_dtype(dtype))
        else:
            x = (1 - 2 * rng.integers(0, 1 if unsigned else 2, (M, N))).astype(numpy_dtype(dtype))
            x[3, 5] *= 2
        kind = x.dtype
        if kind.kind in "iu" and kind.itemsize < 4:
            kind = np.dtype("uint32" if unsigned else "int32")
        out = sentinel((M, N), kind)
        apply(run, x, f"tl.{name}(x, axis={axis}, reverse={reverse})", out)
        flipped = np.flip(x, axis) if reverse else x
        want = reference(flipped.astype(np.float64), axis)
        want = np.flip(want, axis) if reverse else want
        np.testing.assert_array_equal(out.astype(np.float64), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_running_sums_of_narrow_floats_are_wide(run, rng, dtype):
    """1 + 1 + ... is beyond what 16 bits count exactly, and 1.5 ** 28 beyond what they hold."""
    x = np.full((2, 4096), 1, numpy_dtype(dtype))
    out = sentinel((2, 4096), np.dtype(np.float32))
    source = f"""
@tessera.jit
def kernel(x_ptr, out_ptr):
    at = tl.arange(0, 2)[:, None] * 4096 + tl.arange(0, 4096)[None, :]
    sums = tl.cumsum(tl.load(x_ptr + at), axis=1)
    tl.static_assert(sums.dtype == tl.float32)
    tl.store(out_ptr + at, sums)
    row = tl.arange(0, 32)
    products = tl.cumprod(tl.load(x_ptr + row) * 1.5, axis=0)
    tl.static_assert(products.dtype == tl.float32)
    tl.static_assert(tl.cumsum(tl.load(x_ptr + row), 0, dtype=tl.{dtype}).dtype == tl.{dtype})
    tl.store(out_ptr + row, products)
"""
    run(make_kernel(source), (1,), x, out)
    want = np.cumsum(x.astype(np.float32), 1)
    # The order of the products is not defined, and beyond 24 bits each rounds.
    np.testing.assert_allclose(out[0, :32], 1.5 ** np.arange(1, 33), rtol=2e-6)
    np.testing.assert_array_equal(out.ravel()[32:], want.ravel()[32:])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ALL)
def test_the_first_of_the_largest(run, rng, dtype, axis):
    x = few_values(rng, dtype)
    shape = (1, N) if axis == 0 else (M, 1)
    for name, reference in (("max", np.argmax), ("min", np.argmin)):
        want = np.expand_dims(reference(x.astype(np.float64), axis), axis)
        out = sentinel(shape, np.dtype(np.int32))
        apply(run, x, f"tl.arg{name}(x, axis={axis}, keep_dims=True)", out)
        np.testing.assert_array_equal(out, want)
        # Values narrower than 32 bits come back in 32.
        narrow = x.dtype.kind in "iu" and x.dtype.itemsize < 4
        out = sentinel(shape, np.dtype(np.int32) if narrow else x.dtype)
        setup = f"values, _ = tl.{name}(x, {axis}, return_indices=True, keep_dims=True)"
        apply(run, x, "values", out, setup)
        np.testing.assert_array_equal(out, np.take_along_axis(x, want, axis))


@pytest.mark.parametrize("axis, descending", [(0, False), (1, True)])
@pytest.mark.parametrize("dtype", ALL)
def test_sort(run, rng, dtype, axis, descending):
    x = draw(rng, (M, N), dtype)
    x[1], x[:, 3] = x[2], _most(dtype)
    out = sentinel((M, N), x.dtype)
    apply(run, x, f"tl.sort(x, dim={axis}, descending={descending})", out)
    want = np.sort(x, axis)
    np.testing.assert_array_equal(out, np.flip(want, axis) if descending else want)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ALL)
def test_topk_and_where(run, rng, dtype, descending):
    x, k = few_values(rng, dtype), 8
    setup = f"best, where = tl.topk(x, {k}, 1, {descending}, return_indices=True)"
    values, where = sentinel((M, k), x.dtype), sentinel((M, k), np.dtype(np.int32))
    apply(run, x, "best", values, setup)
    apply(run, x, "where", where, setup)
    wide = x.astype(np.longdouble)
    order = np.argsort(-wide if descending else wide, 1, kind="stable")[:, :k]
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(where, order)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bins", [4, 64, 256])
@pytest.mark.parametrize("dtype", [*INTS, *UINTS])
def test_histogram(run, rng, dtype, bins, masked):
    info = np.iinfo(dtype)
    x = rng.integers(max(-8, info.min), 72, 512).astype(dtype)
    x[:4] = info.min, info.max, info.min + 1, info.max - 1
    if info.bits == 64:
        # The lower halves of these are bins.
        x[4:8] = 1 << 32, (1 << 32) + 3, (1 << 62) + 2, info.min + (1 << 40) + 1
    mask = rng.integers(0, 2, 512).astype(bool) if masked else np.ones(512, bool)
    which = ", mask=tl.load(mask_ptr + i)" if masked else ""
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, mask_ptr, out_ptr, BINS: tl.constexpr):
    i = tl.arange(0, 512)
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(tl.load(x_ptr + i), BINS{which}))
""")
    out = np.full(bins, 99, np.int32)
    run(kernel, (1,), x, mask, out, BINS=bins)
    counts = [int((x[mask] == bin).sum()) if bin <= info.max else 0 for bin in range(bins)]
    np.testing.assert_array_equal(out, counts)
