# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and scans along each axis, against NumPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from execution.running import INTS, UINTS, draw, make_kernel, numpy_dtype

import tessera
import tessera.language as tl


@functools.lru_cache(maxsize=None)
def over_matrix(expression: str, m: int, n: int, out_shape: tuple[int, ...]) -> object:
    offsets = {
        (): "0",
        (m,): f"tl.arange(0, {m})",
        (n,): f"tl.arange(0, {n})",
        (m, n): f"tl.arange(0, {m})[:, None] * {n} + tl.arange(0, {n})[None, :]",
    }[out_shape]
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, {m})[:, None] * {n} + tl.arange(0, {n})[None, :])
    tl.store(out_ptr + {offsets}, {expression})
""")


def reduce(run, x: np.ndarray, expression: str, axis: int | None, out: np.dtype) -> np.ndarray:
    m, n = x.shape
    shape = {0: (n,), 1: (m,), None: ()}[axis]
    result = np.full(shape if shape else (1,), 99, out)
    run(over_matrix(expression, m, n, shape), (1,), x, result)
    return result


@pytest.mark.parametrize("shape", [(16, 32), (1, 128), (128, 1), (24, 8)])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_integer_sum_max_min(run, rng, dtype, axis, shape):
    x = draw(rng, shape, dtype)
    narrow = np.iinfo(dtype).bits < 32
    wide = np.dtype(("int32" if dtype in INTS else "uint32") if narrow else dtype)
    np.testing.assert_array_equal(
        reduce(run, x, f"tl.sum(x, axis={axis})", axis, wide).reshape(-1),
        np.atleast_1d(x.sum(axis, dtype=wide)),
    )
    # Values narrower than 32 bits come back as int32, whatever their sign.
    out = np.dtype("int32") if narrow else np.dtype(dtype)
    got = reduce(run, x, f"tl.max(x, axis={axis})", axis, out)
    np.testing.assert_array_equal(got.reshape(-1), np.atleast_1d(x.max(axis)).astype(out))
    got = reduce(run, x, f"tl.min(x, axis={axis})", axis, out)
    np.testing.assert_array_equal(got.reshape(-1), np.atleast_1d(x.min(axis)).astype(out))


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float_sums_that_are_exact(run, rng, dtype, axis):
    # Small integers: every partial sum is exact in every order.
    x = rng.integers(-2, 3, (16, 32)).astype(numpy_dtype(dtype))
    got = reduce(run, x, f"tl.sum(x, axis={axis})", axis, x.dtype)
    np.testing.assert_array_equal(
        got.astype(np.float64).reshape(-1), np.atleast_1d(x.astype(np.float64).sum(axis))
    )


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_sum_max_min(run, rng, dtype, axis):
    x = draw(rng, (32, 64), dtype)
    got = reduce(run, x, f"tl.sum(x, axis={axis})", axis, x.dtype).reshape(-1)
    want = np.atleast_1d(x.astype(np.longdouble).sum(axis))
    limit = np.finfo(dtype).eps * np.atleast_1d(np.abs(x).sum(axis)) * 4
    assert (np.abs(got - want) <= limit).all()
    got = reduce(run, x, f"tl.max(x, axis={axis})", axis, x.dtype)
    np.testing.assert_array_equal(got.reshape(-1), np.atleast_1d(x.max(axis)))
    got = reduce(run, x, f"tl.min(x, axis={axis})", axis, x.dtype)
    np.testing.assert_array_equal(got.reshape(-1), np.atleast_1d(x.min(axis)))


@pytest.mark.parametrize("shape", [(24, 16), (16, 24), (24, 40)])
def test_all_of_a_tile_whose_extents_have_odd_factors(run, rng, shape):
    x = draw(rng, shape, "int32")
    for name, want in (("sum", x.sum(dtype=np.int32)), ("max", x.max())):
        assert reduce(run, x, f"tl.{name}(x)", None, x.dtype).item() == want


def test_maximum_of_only_nan_is_nan_and_skips_others(run, rng):
    x = draw(rng, (16, 32), "float32")
    x[3, :] = np.nan
    x[5, 7] = np.nan
    got = reduce(run, x, "tl.max(x, axis=1)", 1, x.dtype)
    with np.errstate(all="ignore"):
        want = np.array([np.nan if i == 3 else np.nanmax(x[i]) for i in range(16)], np.float32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64"])
def test_argmax_argmin_take_the_first(run, rng, dtype, axis):
    x = rng.integers(0, 10, (16, 32)).astype(dtype)
    got = reduce(run, x, f"tl.argmax(x, axis={axis})", axis, np.dtype("int32"))
    np.testing.assert_array_equal(got, x.argmax(axis))
    got = reduce(run, x, f"tl.argmin(x, axis={axis})", axis, np.dtype("int32"))
    np.testing.assert_array_equal(got, x.argmin(axis))


@tessera.jit
def extremes_of_line(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + 2 * tl.program_id(0), tl.argmax(x, 0))
    tl.store(out_ptr + 2 * tl.program_id(0) + 1, tl.argmin(x, 0))


@pytest.mark.parametrize("columns", [1024, 2048])
def test_indices_of_short_and_long_lines(run, rng, columns):
    # A longer line is read once, a shorter one twice.
    x = rng.integers(0, 10, (4, columns)).astype(np.float32)
    x[0, :7] = x[0, 900:] = np.nan
    x[1, :] = np.nan
    x[2, :] = np.nan
    x[2, 500:600] = -np.inf
    out = np.full((4, 2), 99, np.int32)
    run(extremes_of_line, (4,), x, out, BLOCK=columns)
    with np.errstate(all="ignore"):
        least, most = np.nan_to_num(x, nan=-np.inf), np.nan_to_num(x, nan=np.inf)
    want = np.stack([least.argmax(1), most.argmin(1)], axis=1)
    want[2] = 500  # a number wins against every NaN
    np.testing.assert_array_equal(out, want)


def test_max_with_indices(run, rng):
    x = draw(rng, (16, 32), "float32")
    got = reduce(run, x, "tl.max(x, axis=1, return_indices=True)[1]", 1, np.dtype("int32"))
    np.testing.assert_array_equal(got, x.argmax(1))


def test_keep_dims_and_xor(run, rng):
    x = draw(rng, (16, 32), "int32")
    m, n = x.shape
    out = np.full_like(x, 99)
    run(over_matrix("x - tl.max(x, axis=1, keep_dims=True)", m, n, (m, n)), (1,), x, out)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, x - x.max(1, keepdims=True))
    got = reduce(run, x, "tl.xor_sum(x, axis=0)", 0, x.dtype)
    np.testing.assert_array_equal(got, np.bitwise_xor.reduce(x, 0))


@tessera.jit
def first_difference(value_a, count_a, value_b, count_b):
    return tl.where(count_a >= count_b, value_a, value_b), count_a + count_b


@tessera.jit
def several_operands(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 64))
    ones = tl.full((64,), 1, tl.int32)
    _, count = tl.reduce((x, ones), 0, first_difference)
    tl.store(out_ptr, count)


def test_reduction_of_several_operands(run, rng):
    x, out = draw(rng, 64, "float32"), np.full(1, 99, np.int32)
    run(several_operands, (1,), x, out)
    assert out[0] == 64


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_cumulative_sum_and_product(run, rng, dtype, axis, reverse):
    x = rng.integers(-3, 4, (16, 32)).astype(dtype)
    m, n = x.shape
    flipped = np.flip(x, axis) if reverse else x
    for name, reference in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
        out = np.full_like(x, 99)
        source = np.sign(x) if name == "cumprod" else x
        flipped = np.flip(source, axis) if reverse else source
        expression = f"tl.{name}(x, axis={axis}, reverse={reverse})"
        run(over_matrix(expression, m, n, (m, n)), (1,), np.ascontiguousarray(source), out)
        want = reference(flipped, axis, dtype=x.dtype)
        np.testing.assert_array_equal(out, np.flip(want, axis) if reverse else want)


@tessera.jit
def linear_step(a, b, c, d):
    return a * c, b * c + d


@tessera.jit
def linear_recurrence(a_ptr, b_ptr, out_ptr):
    offsets = tl.arange(0, 64)
    _, result = tl.associative_scan(
        (tl.load(a_ptr + offsets), tl.load(b_ptr + offsets)), 0, linear_step
    )
    tl.store(out_ptr + offsets, result)


def test_associative_scan_that_does_not_commute(run, rng):
    a, b = rng.integers(-1, 2, 64).astype(np.int32), rng.integers(-3, 4, 64).astype(np.int32)
    out = np.full(64, 99, np.int32)
    run(linear_recurrence, (1,), a, b, out)
    state, want = 0, []
    for i in range(64):
        state = state * int(a[i]) + int(b[i]) if i else int(b[0])
        want.append(state)
    np.testing.assert_array_equal(out, want)


SCAN = """
@tessera.jit
def linear_step(a, b, c, d):
    return a * c, b * c + d

@tessera.jit
def kernel(a_ptr, b_ptr, product_ptr, sum_ptr):
    i = tl.arange(0, {m})[:, None] * {n} + tl.arange(0, {n})[None, :]
    a, b = tl.load(a_ptr + i).to(tl.int32), tl.load(b_ptr + i).to(tl.int32)
    product, sum = tl.associative_scan((a, b), {axis}, linear_step, reverse={reverse})
    tl.store(product_ptr + i, product)
    tl.store(sum_ptr + i, sum)
"""


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(1, 1024), (1, 192), (8, 128), (64, 4), (24, 16)])
def test_scans_of_all_places_that_do_not_commute(run, rng, shape, reverse, dtype, warps):
    # Neighbours lie in registers, lanes and warps, in these orders and others.
    m, n = shape
    a, b = (rng.integers(-5, 6, shape).astype(dtype) | 1 for _ in range(2))
    for axis in (0, 1):
        kernel = make_kernel(SCAN.format(m=m, n=n, axis=axis, reverse=reverse))
        products, sums = np.full(shape, 99, np.int32), np.full(shape, 99, np.int32)
        run(kernel, (1,), a, b, products, sums, num_warps=warps)
        wide = [np.moveaxis(x.astype(np.int32), axis, 0) for x in (a, b)]
        if reverse:
            wide = [x[::-1] for x in wide]
        want = [(wide[0][0], wide[1][0])]
        for c, d in zip(wide[0][1:], wide[1][1:]):
            product, total = want[-1]
            want.append((product * c, total * c + d))
        for got, number in ((products, 0), (sums, 1)):
            lines = np.stack([step[number] for step in want])
            lines = lines[::-1] if reverse else lines
            np.testing.assert_array_equal(got, np.moveaxis(lines, 0, axis))


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_deterministic_sums_have_the_same_bits_everywhere(rng, target, threads):
    from execution.running import host_has

    if not host_has(target):
        pytest.skip(f"this machine has no {target}")
    x = draw(np.random.default_rng(1), (32, 64), "float32") * 1e3
    for axis in (0, 1, None):
        shape = {0: (64,), 1: (32,), None: ()}[axis]
        kernel = over_matrix(f"tl.sum(x, axis={axis})", 32, 64, shape)
        want, got = np.zeros(shape or (1,), np.float32), np.zeros(shape or (1,), np.float32)
        kernel[(1,)](x, want, cpu="x86-64", deterministic=True)
        kernel[(1,)](x, got, cpu=target, deterministic=True, num_threads=threads)
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
