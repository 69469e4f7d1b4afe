# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pow: the cases that C names, whole exponents, literals and 16-bit floats by way of f32.

How far it is off elsewhere is in test_math_errors.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from execution.math_errors import errors
from execution.running import make_kernel

NUMBERS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 2.0**23 + 1, 2.0**24 + 2, 2.0**52 + 1, 2.0**53, 1e30]
ENDS = [5e-324, 1e-310, 1e-45, 1e-40, 3e38, 1.7e308, np.inf, np.nan]


def power(expression: str):
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, {expression})
""")


def assert_same(out: np.ndarray, want: np.ndarray) -> None:
    """Within the last two bits of a wider `want`, with the sign of zeros."""
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(out[known]), np.signbit(want[known]))
    assert errors(out, want).max() <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_named_cases(run, dtype: str) -> None:
    """All pairs of numbers that have a case of their own, of both signs: 38 x 38."""
    with np.errstate(over="ignore"):
        values = np.array(NUMBERS + ENDS).astype(dtype)
    values = np.concatenate([values, -values])
    x, y = (np.resize(part.ravel(), 2048) for part in np.meshgrid(values, values))
    out = np.empty_like(x)
    run(power("tl.math.pow(x, y)"), (1,), x, y, out, BLOCK=2048)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    assert_same(out, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_whole_exponents(run, rng, dtype: str, exponent: str) -> None:
    info = np.iinfo(exponent)
    y = rng.integers(max(info.min, -40), min(info.max, 40), 256).astype(exponent)
    # A float64 would not say of more bits whether they are odd.
    most = min(info.max, (1 << 53) - 1) if dtype == "float64" else info.max
    y[:8] = [0, 1, most, max(info.min, -most), most, most - 1, most, max(info.min, 1 - most)]
    x = rng.uniform(-4, 4, 256).astype(dtype)
    # Whether the exponent is odd decides, which a float32 of 2^31 - 1 would not say.
    x[2:4] = [-1, -1]
    x[6:8] = np.nextafter(np.ones(2, dtype), np.array([2, 0], dtype))
    out = np.empty_like(x)
    run(power("tl.math.pow(x, y)"), (1,), x, y, out, BLOCK=256)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.longdouble), y)
    assert_same(out, want)


@pytest.mark.parametrize(
    "expression, want",
    [
        ("tl.math.pow(x, 2)", lambda x: x * x),
        ("tl.math.pow(x, 2.0)", lambda x: x * x),
        ("tl.math.pow(x, 3)", lambda x: x**3),
        ("tl.math.pow(2.0, x)", np.exp2),
        ("tl.math.pow(x, -0.5)", lambda x: x**-0.5),
        ("tl.math.pow(x.to(tl.float16).to(tl.float32), 1.5)", lambda x: x**1.5),
    ],
)
def test_literals(run, expression: str, want) -> None:
    x = (np.arange(1, 257) / 16).astype(np.float32)
    out = np.empty_like(x)
    run(power(expression), (1,), x, x, out, BLOCK=256)
    assert_same(out, want(x.astype(np.float64)))


def test_a_scalar_broadcasts(run) -> None:
    kernel = make_kernel("""
@tessera.jit
def kernel(out_ptr, y, n):
    x = tl.arange(0, 64).to(tl.float32)
    tl.store(out_ptr + tl.arange(0, 64), tl.math.pow(x, y) + tl.math.pow(y, n))
""")
    out = np.empty(64, np.float32)
    run(kernel, (1,), out, 1.5, 3)
    np.testing.assert_allclose(out, np.arange(64) ** 1.5 + 1.5**3, rtol=1e-6)
