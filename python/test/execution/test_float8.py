# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 8-bit floats: conversions of every value of them, and of the 16-bit floats; moves.

What is expected comes from a table of a format's 256 values, not from another conversion.
"""

from __future__ import annotations

import functools
import itertools

import ml_dtypes
import numpy as np
import pytest
from execution.running import FLOATS, make_kernel, numpy_dtype

FLOAT8 = {
    "float8e5": ml_dtypes.float8_e5m2,
    "float8e4nv": ml_dtypes.float8_e4m3fn,
    "float8e5b16": ml_dtypes.float8_e5m2fnuz,
    "float8e4b8": ml_dtypes.float8_e4m3fnuz,
    # Of the same bits is a number of this format that is SCALES times as large.
    "float8e4b15": ml_dtypes.float8_e4m3fn,
}
SCALES = {"float8e4b15": 256.0}
BLOCK = 1024


@functools.lru_cache(maxsize=None)
def cast(expression: str) -> object:
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr):
    offsets = tl.program_id(0) * {BLOCK} + tl.arange(0, {BLOCK})
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, {expression})
""")


def convert(run, x: np.ndarray, expression: str, out: np.dtype) -> np.ndarray:
    """A multiple of BLOCK elements."""
    result = np.full(len(x), 77, out)
    run(cast(expression), (len(x) // BLOCK,), x, result)
    return result


def values_of(name: str) -> np.ndarray:
    """What each of the 256 patterns is."""
    return as_numbers(np.arange(256, dtype=np.uint8), name)


def as_numbers(patterns: np.ndarray, name: str) -> np.ndarray:
    return patterns.view(FLOAT8[name]).astype(np.float64) / SCALES.get(name, 1.0)


@np.errstate(invalid="ignore")
def as_doubles(x: np.ndarray) -> np.ndarray:
    """NumPy minds signalling NaNs."""
    return x.astype(np.float64)


def narrow(x: np.ndarray, name: str, towards_zero: bool = False) -> np.ndarray:
    """The patterns that numbers round to, to nearest even, as values. What is beyond the
    largest number becomes that number, infinities too."""
    table = values_of(name)[:128]
    finite = table[np.isfinite(table)]
    last = len(finite) - 1
    # One step more is what the next number would be.
    steps = np.append(finite, 2 * finite[last] - finite[last - 1])
    size = np.where(np.isnan(x), 0, np.minimum(np.abs(x), steps[-1]))
    below = np.clip(np.searchsorted(steps, size, "right") - 1, 0, last)
    rest, other = size - steps[below], steps[below + 1] - size
    up = (rest > other) | ((rest == other) & (below % 2 == 1))
    if towards_zero:
        up = np.zeros_like(up)
    found = below + up
    result = finite[np.minimum(found, last)]
    return np.where(np.isnan(x), np.nan, np.copysign(result, x))


def check(got: np.ndarray, want: np.ndarray, name: str) -> None:
    """Patterns of an 8-bit float against values; zeros have their sign where there are two."""
    numbers = as_numbers(got, name)
    np.testing.assert_array_equal(numbers, want)
    if name not in ("float8e5b16", "float8e4b8"):
        valid = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(numbers)[valid], np.signbit(want)[valid])


@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("source", FLOAT8)
def test_every_value_widens(run, source, to):
    x = np.tile(np.arange(256, dtype=np.uint8), BLOCK // 256)
    got = convert(run, x, f"x.to(tl.{source}, bitcast=True).to(tl.{to})", numpy_dtype(to))
    want = np.tile(values_of(source), BLOCK // 256)
    np.testing.assert_array_equal(got.astype(np.float64), want)
    valid = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[valid], np.signbit(want)[valid])


@pytest.mark.parametrize("to", FLOAT8)
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_every_16_bit_float_narrows(run, source, to):
    x = np.arange(65536, dtype=np.uint16).view(numpy_dtype(source))
    got = convert(run, x, f"x.to(tl.{to}).to(tl.uint8, bitcast=True)", np.dtype(np.uint8))
    check(got, narrow(as_doubles(x), to), to)


@pytest.mark.parametrize("source, to", list(itertools.permutations(FLOAT8, 2)))
def test_every_value_of_another_format(run, source, to):
    x = np.tile(np.arange(256, dtype=np.uint8), BLOCK // 256)
    expression = f"x.to(tl.{source}, bitcast=True).to(tl.{to}).to(tl.uint8, bitcast=True)"
    got = convert(run, x, expression, np.dtype(np.uint8))
    check(got, np.tile(narrow(values_of(source), to), BLOCK // 256), to)


def wide_numbers(rng: np.random.Generator, source: str, to: str) -> np.ndarray:
    """Random numbers of any size, those in the middle between two of `to`, and their
    neighbours, which a detour by way of float16 or float32 would round to the middle."""
    kind = numpy_dtype(source)
    table = values_of(to)[:128]
    finite = table[np.isfinite(table)]
    middles = np.append((finite[1:] + finite[:-1]) / 2, 1.5 * finite[-1] - finite[-2] / 2)
    middles = middles.astype(kind)
    near = [middles, np.nextafter(middles, kind.type(0)), np.nextafter(middles, kind.type(np.inf))]
    near += [kind.type(value) for value in ([np.nan, np.inf, 0, 1e-30, 3e38],)]
    x = np.concatenate([*near, *(-part for part in near)])
    size = -len(x) % BLOCK + BLOCK
    drawn = rng.standard_normal(size) * 2.0 ** rng.integers(-24, 24, size)
    return np.concatenate([x, drawn.astype(kind)])


@pytest.mark.parametrize("to", FLOAT8)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_wide_floats_narrow(run, rng, source, to):
    x = wide_numbers(rng, source, to)
    got = convert(run, x, f"x.to(tl.{to}).to(tl.uint8, bitcast=True)", np.dtype(np.uint8))
    check(got, narrow(as_doubles(x), to), to)


@pytest.mark.parametrize("to", FLOAT8)
def test_towards_zero(run, rng, to):
    x = wide_numbers(rng, "float32", to)
    expression = f"x.to(tl.{to}, fp_downcast_rounding='rtz').to(tl.uint8, bitcast=True)"
    got = convert(run, x, expression, np.dtype(np.uint8))
    check(got, narrow(as_doubles(x), to, towards_zero=True), to)


@pytest.mark.parametrize("name", FLOAT8)
def test_from_and_to_integers(run, name):
    x = np.tile(np.arange(256, dtype=np.uint8), BLOCK // 256)
    got = convert(run, x.view(np.int8), f"x.to(tl.{name}).to(tl.uint8, bitcast=True)", x.dtype)
    check(got, narrow(x.view(np.int8).astype(np.float64), name), name)
    got = convert(run, x, f"x.to(tl.{name}, bitcast=True).to(tl.int16)", np.dtype(np.int16))
    values = np.nan_to_num(np.tile(values_of(name), BLOCK // 256), nan=0)
    np.testing.assert_array_equal(got, np.trunc(np.clip(values, -32768, 32767)).astype(np.int16))


@pytest.mark.parametrize("name", FLOAT8)
def test_what_moves_elements_moves_these(run, rng, name):
    """Every pattern comes through loads, masks, choices, shapes and gathers as it is."""
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, index_ptr, out_ptr, n):
    i = tl.arange(0, 256)
    bytes = tl.load(x_ptr + i)
    pointer = x_ptr.to(tl.pointer_type(tl.{name}), bitcast=True)
    x = tl.load(pointer + i, mask=i < n, other=0.0)
    x = tl.where(i % 3 == 0, x, bytes.to(tl.{name}, bitcast=True))
    x = tl.trans(tl.reshape(x, (16, 16)))
    x = tl.gather(tl.ravel(x), tl.load(index_ptr + i), 0)
    both = tl.join(x, tl.flip(x, 0))
    to = out_ptr.to(tl.pointer_type(tl.{name}), bitcast=True)
    tl.store(to + 2 * i[:, None] + tl.arange(0, 2)[None, :], both)
""")
    x = rng.permutation(256).astype(np.uint8)
    index, n = rng.permutation(256).astype(np.int32), 200
    out = np.full(512, 99, np.uint8)
    run(kernel, (1,), x, index, out, n)
    chosen = np.where((np.arange(256) % 3 == 0) & (np.arange(256) >= n), 0, x)
    moved = chosen.reshape(16, 16).T.reshape(-1)[index]
    np.testing.assert_array_equal(out, np.stack([moved, moved[::-1]], 1).reshape(-1))


@pytest.mark.parametrize("name", FLOAT8)
def test_arithmetic_saturates(run, name):
    """In float32, rounded once: the largest number is as far as it goes, in folded code too."""
    most = np.nanmax(np.where(np.isinf(values_of(name)), np.nan, values_of(name)))
    # A literal is of the format itself.
    step = 3 if most > 3 else 1.5
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i).to(tl.{name})
    tl.store(out_ptr + i, (x + x).to(tl.float32))
    tl.store(out_ptr + 16 + i, (x - {step}).to(tl.float32))
    tl.store(out_ptr + 32 + i, (x * -{most}).to(tl.float32))
    tl.store(out_ptr + 48 + i, tl.full((16,), 1e30, tl.{name}).to(tl.float32))
    largest = tl.full((16,), {most}, tl.{name})
    tl.store(out_ptr + 64 + i, (largest + largest).to(tl.float32))
    tl.store(out_ptr + 80 + i, (largest * -2).to(tl.float32))
    tl.store(out_ptr + 96 + i, tl.full((16,), -(10**18), tl.{name}).to(tl.float32))
""")
    x = np.array([0, 1, -1, min(2, most), most, -most, most / 2, np.nan] * 2, np.float32)
    out = np.zeros((7, 16), np.float32)
    run(kernel, (1,), x, out)
    want = [x + x, x - step, x * -most, *(np.full(16, most * sign) for sign in (1, 1, -1, -1))]
    np.testing.assert_array_equal(out, [narrow(row.astype(np.float64), name) for row in want])


@pytest.mark.parametrize("name", FLOAT8)
def test_choosing_keeps_infinities(run, name):
    """What gives one of its operands, or its sign, overflows nowhere."""
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 256)
    x = tl.load(x_ptr + i).to(tl.{name}, bitcast=True)
    tl.store(out_ptr + i, (-x).to(tl.float32))
    tl.store(out_ptr + 256 + i, tl.where(i % 2 == 0, x, -x).to(tl.float32))
    tl.store(out_ptr + 512 + i, tl.fma(x, x, x).to(tl.float32))
    tl.store(out_ptr + 768 + i, tl.abs(x).to(tl.float32))
""")
    out = np.zeros((4, 256), np.float32)
    run(kernel, (1,), np.arange(256, dtype=np.uint8), out)
    values = values_of(name)
    chosen = np.where(np.arange(256) % 2 == 0, values, -values)
    with np.errstate(invalid="ignore"):
        fused = narrow(values * values + values, name)
    np.testing.assert_array_equal(out, [-values, chosen, fused, abs(values)])


@pytest.mark.parametrize("other", ["float8e4b15", "float8e5", "float8e4nv"])
def test_dots_of_float8e4b15(run, rng, other):
    """Operands are widened to float16, in which these formats are exact."""
    kernel = make_kernel(f"""
@tessera.jit
def kernel(a_ptr, b_ptr, out_ptr):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    a = tl.load(a_ptr + i * 32 + j).to(tl.float8e4b15, bitcast=True)
    b = tl.load(b_ptr + i * 32 + j).to(tl.{other}, bitcast=True)
    tl.store(out_ptr + i * 32 + j, tl.dot(a, b))
""")
    a, b = (rng.integers(0, 64, (32, 32)).astype(np.uint8) + 32 for _ in range(2))
    out = np.zeros((32, 32), np.float32)
    run(kernel, (1,), a, b, out)
    want = as_numbers(a, "float8e4b15") @ as_numbers(b, other)
    np.testing.assert_allclose(out, want, rtol=1e-5)


def test_arrays_of_float8e4b15(run):
    """An argument of this type is one of its own, beside one of float8e4nv."""
    import tessera

    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr):
    i = tl.arange(0, 128)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.static_assert(x.dtype == tl.float8e4b15 and y.dtype == tl.float8e4nv)
    tl.store(out_ptr + i, x.to(tl.float32) + y.to(tl.float32))
    tl.store(x_ptr + i, y.to(tl.float32) / 256)
""")
    if run.target in ("cuda", "simulator"):
        pytest.skip("wrapped arrays are the host's")
    import tessera.language as tl

    x = np.arange(128, dtype=np.uint8)
    y, out = x[::-1].copy(), np.zeros(128, np.float32)
    wrapped = tessera.reinterpret(x, tl.float8e4b15), tessera.reinterpret(y, tl.float8e4nv)
    want = as_numbers(x, "float8e4b15") + as_numbers(y, "float8e4nv")
    run(kernel, (1,), *wrapped, out)
    np.testing.assert_array_equal(out, want.astype(np.float32))
    np.testing.assert_array_equal(x & 127, y & 127)
