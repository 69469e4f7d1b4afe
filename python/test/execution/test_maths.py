# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mathematical functions against float64 (float32) or long double (float64).

The bounds here are loose guards over random data; docs/Numerics.md has the measured worst
errors, over all float32 inputs.
"""

from __future__ import annotations

import functools
import math

import ml_dtypes
import numpy as np
import pytest
from execution.running import assert_close, make_kernel

N = 2048

FUNCTIONS = {
    "exp": (np.exp, -85.0, 85.0),
    "exp2": (np.exp2, -120.0, 127.0),
    "log": (np.log, 1e-6, 1e6),
    "log2": (np.log2, 1e-6, 1e6),
    "sin": (np.sin, -100.0, 100.0),
    "cos": (np.cos, -100.0, 100.0),
    "sqrt": (np.sqrt, 0.0, 1e6),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-6, 1e6),
    "erf": (np.vectorize(math.erf), -4.0, 4.0),
    "floor": (np.floor, -100.0, 100.0),
    "ceil": (np.ceil, -100.0, 100.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -30.0, 30.0),
}


@functools.lru_cache(maxsize=None)
def unary(expression: str) -> object:
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, {expression})
""")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(run, rng, name, dtype):
    reference, low, high = FUNCTIONS[name]
    x = rng.uniform(low, high, N).astype(dtype)
    out = np.empty_like(x)
    run(unary(f"tl.{name}(x)"), (1,), x, out, BLOCK=N)
    # Near a zero of the function the relative error of a rounded argument is not the
    # function's; an absolute term of one ulp of 1 covers it.
    want = reference(x.astype(np.longdouble if name != "erf" else np.float64)).astype(np.float64)
    limit = 4 * np.finfo(dtype).eps * np.maximum(np.abs(want), 1.0 if name in ("sin", "cos") else 0)
    assert (np.abs(out.astype(np.float64) - want) <= limit).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(run, dtype):
    x = np.zeros(32, dtype)
    x[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, np.finfo(dtype).max]
    out = np.empty_like(x)
    cases = {
        "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin,
        "cos": np.cos, "sqrt": np.sqrt, "erf": np.vectorize(math.erf), "floor": np.floor,
    }  # fmt: skip
    for name, reference in cases.items():
        run(unary(f"tl.{name}(x)"), (1,), x, out, BLOCK=32)
        with np.errstate(all="ignore"):
            want = reference(x.astype(np.float64)).astype(dtype)
        assert_close(out, want, dtype, 8)


def test_fma_rounds_once(run, rng):
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, y_ptr, z_ptr, out_ptr):
    offsets = tl.arange(0, 256)
    x, y, z = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets), tl.load(z_ptr + offsets)
    tl.store(out_ptr + offsets, tl.fma(x, y, z))
""")
    x, y = (rng.standard_normal(256).astype(np.float32) for _ in range(2))
    z = -(x * y)
    out = np.empty_like(x)
    run(kernel, (1,), x, y, z, out)
    exact = x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)
    np.testing.assert_array_equal(out, exact.astype(np.float32))


def test_precise_division_and_square_root(run, rng):
    x = rng.uniform(0.1, 1e6, 256).astype(np.float32)
    out = np.empty_like(x)
    run(unary("tl.sqrt_rn(x)"), (1,), x, out, BLOCK=256)
    np.testing.assert_array_equal(out, np.sqrt(x))
    run(unary("tl.div_rn(3.0, x)"), (1,), x, out, BLOCK=256)
    np.testing.assert_array_equal(out, np.float32(3) / x)


def test_clamp(run, rng):
    x = rng.standard_normal(256).astype(np.float32)
    out = np.empty_like(x)
    run(unary("tl.clamp(x, -0.5, 0.5)"), (1,), x, out, BLOCK=256)
    np.testing.assert_array_equal(out, np.clip(x, -0.5, 0.5))


def test_softmax(run, rng):
    x = rng.standard_normal((8, 64)).astype(np.float32)
    # Rows whose sum is one term, as many as there are, or NaN.
    x[1], x[2], x[2, 5], x[3, ::2], x[3, 7] = 3e38, -3e38, 3e38, -np.inf, 80
    x[4], x[5, 9], x[6, 9] = -np.inf, np.nan, np.inf
    out = np.empty_like(x)
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr):
    offsets = tl.arange(0, 8)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out_ptr + offsets, tl.softmax(tl.load(x_ptr + offsets), 1))
""")
    run(kernel, (1,), x, out)
    with np.errstate(invalid="ignore"):
        want = np.exp(x.astype(np.float64) - np.fmax.reduce(x, 1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    np.testing.assert_array_equal(np.isnan(want[:, 0]), np.isin(np.arange(8), (4, 5, 6)))
    np.testing.assert_allclose(out, want, rtol=2e-6, atol=1e-37)


NARROW = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4nv": ml_dtypes.float8_e4m3fn,
}
ALL_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt",
    "erf", "floor", "ceil", "sigmoid", "sqrt_rn",
)  # fmt: skip


QUOTIENTS = {
    "1 / (1 + tl.exp(-x))": lambda x: 1 / (1 + np.exp(-x)),
    "x / (tl.exp(x) + 1)": lambda x: x / (np.exp(x) + 1),
    "5 / (2 + tl.abs(x) * 3e36)": lambda x: 5 / (2 + np.abs(x) * 3e36),
    "x * 2.0**-140 / (1 + tl.abs(x) * 2.0**-30)": lambda x: x
    * 2.0**-140
    / (1 + np.abs(x) * 2.0**-30),
    "7 * (2 / (1 + tl.exp(-x)) - 1)": lambda x: 7 * np.tanh(x / 2),
    "3 + 2 * (2 / (1 + tl.exp(x)))": lambda x: 3 + 4 / (1 + np.exp(x)),
}


def test_quotients_with_large_divisors(run):
    """Divisors from 1 to beyond the largest number, and sigmoids next to a constant."""
    lines = "".join(
        f"    tl.store(out_ptr + {n} * BLOCK + i, {text})\n" for n, text in enumerate(QUOTIENTS)
    )
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
{lines}""")
    x = np.concatenate([np.linspace(-88.7, 88.7, 1020), [0, np.inf, -np.inf, np.nan]])
    x = x.astype(np.float32)
    out = np.zeros((len(QUOTIENTS), 1024), np.float32)
    run(kernel, (1,), x, out, BLOCK=1024)
    for (text, reference), got in zip(QUOTIENTS.items(), out):
        with np.errstate(all="ignore"):
            want = reference(x.astype(np.float64))
        # A sum with a constant is exact to the last place of that.
        least = 7 if text.startswith("7") else 2.0**-127
        known = np.isfinite(want)
        error = np.abs(got - want)[known] / np.maximum(np.abs(want[known]), least)
        assert error.max() < 4e-7 and np.isnan(got[1023]), text


@pytest.mark.parametrize("dtype", NARROW)
def test_functions_of_narrow_floats(run, dtype):
    """They are computed in float32, and rounded once."""
    x = (np.arange(256) / 32 - 4).astype(NARROW[dtype])
    of_x = [f"tl.{name}(x)" for name in ALL_FUNCTIONS]
    of_x += ["tl.math.pow(x, 3)", "tl.math.pow(x, 2)", "tl.math.pow(x, x)", "tl.math.pow(x, i)"]
    of_x += ["tl.div_rn(x, 3.0)", "tl.softmax(x)"]
    of_wide = [call.replace("(x", "(wide").replace(", x)", ", wide)") for call in of_x]
    lines = "".join(
        f"    tl.store(out_ptr + {2 * n} * BLOCK + i, {call})\n"
        f"    tl.store(out_ptr + {2 * n + 1} * BLOCK + i, ({wide}).to(x.dtype))\n"
        f"    tl.static_assert(({call}).dtype == x.dtype)\n"
        for n, (call, wide) in enumerate(zip(of_x, of_wide))
    )
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    wide = x.to(tl.float32)
{lines}""")
    out = np.zeros((len(of_x), 2, 256), x.dtype)
    run(kernel, (1,), x, out, BLOCK=256)
    for call, (got, want) in zip(of_x, out.astype(np.float32)):
        np.testing.assert_array_equal(got, want, err_msg=call)
    # And a float16 of a function is the one nearest to what NumPy has.
    near = np.exp(x.astype(np.float64)).astype(NARROW[dtype]).astype(np.float32)
    limit = float(ml_dtypes.finfo(x.dtype).eps)
    np.testing.assert_allclose(out[0, 0].astype(np.float32), near, rtol=limit)


@pytest.mark.parametrize("dtype", [*NARROW, "float32", "float64"])
def test_one_text_for_all_floats(run, rng, dtype):
    """Sums, products, dots and scans, whose accumulators have the type that acc_type gives."""
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, sums_ptr, dots_ptr, scans_ptr, BLOCK: tl.constexpr):
    ACC: tl.constexpr = tl.acc_type(x_ptr)
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    sums, dots = tl.zeros((BLOCK,), ACC), tl.zeros((BLOCK, BLOCK), ACC)
    for step in range(2):
        x = tl.load(x_ptr + (step * BLOCK + i) * BLOCK + j)
        tl.static_assert(tl.acc_type(x) == ACC)
        sums += tl.sum(x.to(ACC), axis=1)
        dots = tl.dot(x, x, dots, out_dtype=ACC)
        tl.store(scans_ptr + (step * BLOCK + i) * BLOCK + j, tl.cumsum(x.to(ACC), axis=0))
    tl.store(sums_ptr + tl.arange(0, BLOCK), sums)
    tl.store(dots_ptr + i * BLOCK + j, dots)
""")
    narrow = NARROW.get(dtype, dtype)
    acc = np.float64 if dtype == "float64" else np.float32
    x = rng.integers(-4, 5, (2, 32, 32)).astype(narrow)
    if dtype == "float64":
        x += 2.0**-40
    sums, dots = np.zeros(32, acc), np.zeros((32, 32), acc)
    scans = np.zeros((2, 32, 32), acc)
    run(kernel, (1,), x, sums, dots, scans, BLOCK=32)
    wide = x.astype(np.float64)
    limit = {"rtol": 1e-13, "atol": 1e-13} if dtype == "float64" else {"rtol": 0}
    np.testing.assert_allclose(sums, wide.sum(2).sum(0), **limit)
    np.testing.assert_allclose(dots, sum(a @ a for a in wide), **limit)
    np.testing.assert_allclose(scans, np.cumsum(wide, axis=1), **limit)
