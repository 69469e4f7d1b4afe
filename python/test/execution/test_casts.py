# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions between all dtypes: saturation, rounding, NaN, bit patterns."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from execution.running import FLOATS, INTS, UINTS, draw, make_kernel, numpy_dtype

N = 256


@functools.lru_cache(maxsize=None)
def cast(expression: str) -> object:
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr):
    offsets = tl.arange(0, 256)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, {expression})
""")


def convert(run, x: np.ndarray, expression: str, out: np.dtype) -> np.ndarray:
    result = np.full(N, 99, out)
    run(cast(expression), (1,), x, result)
    return result


@pytest.mark.parametrize("to", INTS + UINTS)
@pytest.mark.parametrize("source", INTS + UINTS)
def test_integers_wrap(run, rng, source, to):
    x = draw(rng, N, source)
    np.testing.assert_array_equal(convert(run, x, f"x.to(tl.{to})", np.dtype(to)), x.astype(to))


@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("source", INTS + UINTS)
def test_integer_to_float_rounds_to_nearest_even(run, rng, source, to):
    x = draw(rng, N, source)
    x[::2] //= np.array(1000).astype(source) if np.iinfo(source).bits > 16 else 1
    got = convert(run, x, f"x.to(tl.{to})", numpy_dtype(to))
    if to in ("float16", "bfloat16"):
        # NumPy goes through a wider float, which rounds twice; compare where that is exact.
        small = np.abs(x.astype(np.float64)) < 2**24
        want = x.astype(np.float32).astype(numpy_dtype(to))
        np.testing.assert_array_equal(got[small].astype(np.float64), want[small].astype(np.float64))
    else:
        np.testing.assert_array_equal(got, x.astype(to))


@pytest.mark.parametrize("to", INTS + UINTS)
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_integer_saturates(run, rng, source, to):
    wide = rng.standard_normal(N) * 10.0 ** rng.integers(-2, 22, N)
    wide[:6] = [np.nan, np.inf, -np.inf, 0.5, -0.5, -1.0]
    with np.errstate(over="ignore"):
        x = wide.astype(numpy_dtype(source))
    info = np.iinfo(to)
    want = []
    for value in x.astype(np.float64).tolist():
        if value != value:
            want.append(0)
        elif value in (float("inf"), float("-inf")):
            want.append(info.max if value > 0 else info.min)
        else:
            want.append(min(max(int(value), info.min), info.max))
    got = convert(run, x, f"x.to(tl.{to})", np.dtype(to))
    np.testing.assert_array_equal(got, np.array(want, to))


@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_float(run, rng, source, to):
    wide = rng.standard_normal(N) * 2.0 ** rng.integers(-30, 30, N)
    wide[:5] = [np.nan, np.inf, -np.inf, -0.0, 1e-6]
    with np.errstate(over="ignore"):
        x = wide.astype(numpy_dtype(source))
        want = x.astype(np.float64).astype(numpy_dtype(to))
    if to == "bfloat16" and source == "float64":
        # ml_dtypes rounds float64 through float32; drop what that makes ambiguous.
        x = x.astype(np.float32).astype(np.float64)
        want = x.astype(numpy_dtype(to))
    got = convert(run, x, f"x.to(tl.{to})", numpy_dtype(to))
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))
    np.testing.assert_array_equal(np.signbit(got[3]), True)


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
def test_rounding_towards_zero(run, rng, to):
    x = (rng.standard_normal(N) * 100).astype(np.float32)
    x[0] = 1e38
    got = convert(run, x, f"x.to(tl.{to}, fp_downcast_rounding='rtz')", numpy_dtype(to))
    back = got.astype(np.float64)
    assert np.isfinite(back).all()
    assert (np.abs(back) <= np.abs(x)).all()
    # The next float away from zero would be too far.
    nearest = np.abs(x.astype(numpy_dtype(to)).astype(np.float64)[1:])
    assert (nearest >= np.abs(back[1:])).all()
    assert (nearest > np.abs(back[1:])).any()


def test_to_and_from_bool(run, rng):
    x = rng.integers(-1, 2, N).astype(np.int32)
    np.testing.assert_array_equal(convert(run, x, "x.to(tl.int1)", np.dtype(bool)), x != 0)
    y = rng.standard_normal(N).astype(np.float32)
    y[::3] = 0
    np.testing.assert_array_equal(convert(run, y, "y.to(tl.int1)".replace("y", "x"), np.dtype(bool)), y != 0)  # fmt: skip
    b = rng.integers(0, 2, N).astype(bool)
    np.testing.assert_array_equal(convert(run, b, "x.to(tl.int32)", np.dtype(np.int32)), b)
    np.testing.assert_array_equal(convert(run, b, "x.to(tl.float32)", np.dtype(np.float32)), b)


@pytest.mark.parametrize(
    "source, to",
    [("float32", "int32"), ("int32", "float32"), ("float16", "uint16"), ("bfloat16", "int16"),
     ("float64", "uint64"), ("int16", "bfloat16")],
)  # fmt: skip
def test_bitcast(run, rng, source, to):
    x = draw(rng, N, source)
    got = convert(run, x, f"x.to(tl.{to}, bitcast=True)", numpy_dtype(to))
    np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize("tiny", [False, True])
def test_rounding_to_bfloat16_as_this_machine_does(rng, tiny):
    # Machines with an instruction for it, which takes small numbers for zeros.
    bits = rng.integers(0, 1 << 32, N, dtype=np.uint32)
    bits[:64] = (bits[:64] & 0xFFFF0000) | 0x8000
    bits[64:72] = [
        0,
        1 << 31,
        0x7F800000,
        0xFF800000,
        0x7F7FFFFF,
        0x7FC00000,
        0x7F800001,
        0xFFFFFFFF,
    ]
    is_tiny = (bits & 0x7F800000) == 0
    bits = np.where(is_tiny, bits | 0x00800000, bits).astype(np.uint32)
    if tiny:
        bits[rng.permutation(N)[:16]] &= np.uint32(0x807FFFFF)
    x = bits.view(np.float32)
    out = np.zeros(N, numpy_dtype("bfloat16"))
    cast("x")[(1,)](x, out)
    with np.errstate(invalid="ignore"):
        want = x.astype(out.dtype)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(want))
    valid = ~np.isnan(x)
    np.testing.assert_array_equal(out.view(np.uint16)[valid], want.view(np.uint16)[valid])
