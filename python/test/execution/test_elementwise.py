# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators between tiles, for each dtype, against NumPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from execution.running import (
    FLOATS,
    INTS,
    UINTS,
    Runner,
    assert_close,
    draw,
    make_kernel,
    numpy_dtype,
)

import tessera

N = 1000
BLOCK = 256


@functools.lru_cache(maxsize=None)
def binary(expression: str) -> object:
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, {expression}, mask=mask)
""")


def apply(run: Runner, expression: str, x: np.ndarray, y: np.ndarray, out: np.dtype) -> np.ndarray:
    result = np.full(N + 8, 7).astype(out)
    run(binary(expression), (-(-N // BLOCK),), x, y, result, N, BLOCK=BLOCK)
    assert (result[N:] == result.dtype.type(7)).all(), "a masked-off lane was written"
    return result[:N]


@pytest.mark.parametrize("dtype", INTS + UINTS)
@pytest.mark.parametrize("operator", ["+", "-", "*", "&", "|", "^"])
def test_integer_operators_wrap(run, rng, operator, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    with np.errstate(over="ignore"):
        want = eval(f"x {operator} y")
    np.testing.assert_array_equal(apply(run, f"x {operator} y", x, y, x.dtype), want)


@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_division_is_total_and_truncates(run, rng, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    y[::3] = rng.integers(1, 10, y[::3].shape)
    y[1::7] = 0
    if dtype in INTS:
        x[2], y[2] = np.iinfo(dtype).min, -1
    # Python's integers have neither width nor overflow.
    quotient, remainder = [], []
    bits = np.iinfo(dtype).bits
    for a, b in zip(x.tolist(), y.tolist()):
        q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1
        r = a - q * b if b else a
        quotient.append(q % 2**bits)
        remainder.append(r % 2**bits)
    unsigned = np.dtype(f"uint{bits}")
    got = apply(run, "x // y", x, y, x.dtype).view(unsigned)
    np.testing.assert_array_equal(got, np.array(quotient, unsigned))
    got = apply(run, "x % y", x, y, x.dtype).view(unsigned)
    np.testing.assert_array_equal(got, np.array(remainder, unsigned))


@pytest.mark.parametrize("dtype", INTS + UINTS)
@pytest.mark.parametrize("operator", ["<<", ">>"])
def test_shifts_past_the_width(run, rng, operator, dtype):
    bits = np.iinfo(dtype).bits
    x = draw(rng, N, dtype)
    y = rng.integers(0, min(2 * bits, 127), N).astype(dtype)
    want = []
    for a, n in zip(x.tolist(), y.tolist()):
        want.append((a << n if operator == "<<" else a >> n) % 2**bits)
    unsigned = np.dtype(f"uint{bits}")
    got = apply(run, f"x {operator} y", x, y, x.dtype).view(unsigned)
    np.testing.assert_array_equal(got, np.array(want, unsigned))


@pytest.mark.parametrize("dtype", INTS + UINTS + FLOATS)
@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
def test_comparisons(run, rng, operator, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    y[::2] = x[::2]
    if dtype in FLOATS:
        x[5] = y[6] = x[7] = y[7] = np.nan
    want = eval(f"x {operator} y")
    np.testing.assert_array_equal(apply(run, f"x {operator} y", x, y, np.dtype(bool)), want)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_float_operators_round_once(run, rng, operator, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    x[3], y[4], x[5], y[5] = np.inf, np.nan, -np.inf, np.inf
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        want = eval(f"wide_x {operator} wide_y").astype(x.dtype)
    got = apply(run, f"x {operator} y", x, y, x.dtype)
    # A sum or product of two floats, computed in twice the precision and rounded, is exact
    # to the last bit; for float64 NumPy's own operator is.
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_division(run, rng, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    # 16-bit operands are divided in float32 (language.md: "any float -> fp32").
    out = "float32" if dtype in ("float16", "bfloat16") else dtype
    got = apply(run, "x / y", x, y, numpy_dtype(out))
    assert_close(got, x.astype(np.float64) / y.astype(np.float64), out, 2)


@pytest.mark.parametrize("dtype", INTS + UINTS + FLOATS)
def test_minimum_maximum_where(run, rng, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    if dtype in FLOATS:
        x[5] = y[6] = x[7] = y[7] = np.nan
    smaller, larger = (np.fmin, np.fmax) if dtype in FLOATS else (np.minimum, np.maximum)
    as_wide = (lambda a: a.astype(np.float64)) if dtype in FLOATS else (lambda a: a)
    got = apply(run, "tl.minimum(x, y)", x, y, x.dtype)
    np.testing.assert_array_equal(as_wide(got), smaller(as_wide(x), as_wide(y)))
    got = apply(run, "tl.maximum(x, y)", x, y, x.dtype)
    np.testing.assert_array_equal(as_wide(got), larger(as_wide(x), as_wide(y)))
    got = apply(run, "tl.where(x > y, x, y)", x, y, x.dtype)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(as_wide(got), as_wide(np.where(x > y, x, y)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_minimum_maximum_propagating_nan(run, rng, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    x[5] = y[6] = x[7] = y[7] = np.nan
    for name, reference in (("minimum", np.minimum), ("maximum", np.maximum)):
        expression = f"tl.{name}(x, y, propagate_nan=tl.PropagateNan.ALL)"
        np.testing.assert_array_equal(apply(run, expression, x, y, x.dtype), reference(x, y))


@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_unary_integer_operators(run, rng, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    np.testing.assert_array_equal(apply(run, "~x", x, y, x.dtype), ~x)
    if dtype in INTS:
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(apply(run, "-x", x, y, x.dtype), -x)
            np.testing.assert_array_equal(apply(run, "tl.abs(x)", x, y, x.dtype), np.abs(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_unary_float_operators(run, rng, dtype):
    x, y = draw(rng, N, dtype), draw(rng, N, dtype)
    x[0] = -0.0
    got = apply(run, "-x", x, y, x.dtype)
    np.testing.assert_array_equal(np.signbit(got), ~np.signbit(x))
    got = apply(run, "tl.abs(x)", x, y, x.dtype)
    np.testing.assert_array_equal(got.astype(np.float64), np.abs(x.astype(np.float64)))


def test_multiply_high(run, rng):
    for dtype, bits in (("uint32", 32), ("uint64", 64)):
        x, y = draw(rng, N, dtype), draw(rng, N, dtype)
        want = np.array([(a * b) >> bits for a, b in zip(x.tolist(), y.tolist())], dtype)
        np.testing.assert_array_equal(apply(run, "tl.umulhi(x, y)", x, y, x.dtype), want)


def test_mixed_dtypes_promote(run, rng):
    x, y = draw(rng, N, "int8"), draw(rng, N, "int32")
    with np.errstate(over="ignore"):
        want = x.astype(np.int32) + y
    np.testing.assert_array_equal(apply(run, "x + y", x, y, np.dtype(np.int32)), want)
    x, y = draw(rng, N, "int32"), draw(rng, N, "float32")
    got = apply(run, "x * y", x, y, np.dtype(np.float32))
    np.testing.assert_array_equal(got, x.astype(np.float32) * y)
    x, y = draw(rng, N, "uint16"), draw(rng, N, "int16")
    with np.errstate(over="ignore"):
        want = x + y.view(np.uint16)
    np.testing.assert_array_equal(apply(run, "x + y", x, y, np.dtype(np.uint16)), want)


def test_literals_keep_the_tiles_dtype(run, rng):
    x, y = draw(rng, N, "int8"), draw(rng, N, "int8")
    with np.errstate(over="ignore"):
        want = x * np.int8(3) + np.int8(1)
    np.testing.assert_array_equal(apply(run, "x * 3 + 1", x, y, np.dtype(np.int8)), want)
    x, y = draw(rng, N, "float16"), draw(rng, N, "float16")
    got = apply(run, "x * 0.5", x, y, np.dtype(np.float16))
    np.testing.assert_array_equal(got, x * np.float16(0.5))


@pytest.mark.parametrize("pack", [1, 2, 4, 8])
def test_map_of_neighbours(run, rng, pack):
    """Each call takes so many neighbours of every tile, and gives as many of every result."""
    xs, ys = ([f"{name}{i}" for i in range(pack)] for name in "xy")
    sums = [f"{xs[i]} + {ys[-1 - i]}" for i in range(pack)]
    kernel = make_kernel(f"""
@tessera.jit
def both({", ".join(xs + ys)}):
    if x0 > y0:
        return {", ".join(sums)}, {", ".join(f"{x}.to(tl.float32)" for x in xs)}
    else:
        return {", ".join(xs)}, {", ".join(f"{y} * 0.5" for y in ys)}

@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr, halves_ptr):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    y = tl.load(y_ptr + j)  # repeated for each row
    out, halves = tl.map_elementwise(both, tl.load(x_ptr + i * 16 + j), y, pack={pack})
    tl.store(out_ptr + i * 16 + j, out)
    tl.store(halves_ptr + i * 16 + j, halves)
""")
    x = rng.integers(-9, 9, (8, 16)).astype(np.int32)
    y = rng.integers(-9, 9, 16).astype(np.int32)
    out, halves = np.zeros_like(x), np.zeros((8, 16), np.float32)
    run(kernel, (1,), x, y, out, halves)
    x_groups = x.reshape(-1, pack)
    y_groups = np.broadcast_to(y, (8, 16)).reshape(-1, pack)
    larger = (x_groups[:, :1] > y_groups[:, :1]).repeat(pack, 1)
    want = np.where(larger, x_groups + y_groups[:, ::-1], x_groups)
    np.testing.assert_array_equal(out.reshape(-1, pack), want)
    np.testing.assert_array_equal(
        halves.reshape(-1, pack), np.where(larger, x_groups, y_groups * 0.5)
    )


@pytest.mark.parametrize("id, body, call", [
    ("E018", "return x0, x1, x0", "tl.map_elementwise(some, x, pack=3)"),
    ("E018", "return x0, x1", "tl.map_elementwise(some, x, pack=32)"),
    ("E018", "return x0, x1", "tl.map_elementwise(some, x, pack=0)"),
    ("E037", "return x0", "tl.map_elementwise(some, x, pack=2)"),
    ("E037", "return x0, x1.to(tl.float32)", "tl.map_elementwise(some, x, pack=2)"),
    ("E022", "return x0, x1", "tl.map_elementwise(some, pack=2)"),
])  # fmt: skip
def test_maps_of_neighbours_that_are_none(id, body, call):
    kernel = make_kernel(f"""
@tessera.jit
def some(x0, x1):
    {body}

@tessera.jit
def kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    {call}
""")
    with pytest.raises(tessera.CompilationError) as caught:
        kernel[(1,)](np.zeros(16, np.int32))
    assert caught.value.id == id


def test_map_of_pointers(run):
    """Each call may load, as often as its element wants."""
    kernel = make_kernel("""
@tessera.jit(noinline=True)
def at(p, i):
    return tl.load(p + i)

@tessera.jit
def sum_of(p, n):
    sum = 0
    i = 0
    while i < n:
        sum += at(p, i)
        i += 1
    return sum, p + n

@tessera.jit
def turned(p, q):
    return tl.load(q), tl.load(p)

@tessera.jit
def kernel(x_ptr, sums_ptr, after_ptr, turned_ptr):
    i = tl.arange(0, 16)
    sums, after = tl.map_elementwise(sum_of, x_ptr + i, i)
    tl.store(sums_ptr + i, sums)
    tl.store(after_ptr + i, tl.load(after))
    tl.store(turned_ptr + i, tl.map_elementwise(turned, x_ptr + i, pack=2))
""")
    x = np.arange(32, dtype=np.int32) ** 2
    sums, after, turned = (np.zeros(16, np.int32) for _ in range(3))
    run(kernel, (1,), x, sums, after, turned)
    np.testing.assert_array_equal(sums, [x[i : 2 * i].sum() for i in range(16)])
    np.testing.assert_array_equal(after, x[:32:2])
    np.testing.assert_array_equal(turned, x[:16].reshape(8, 2)[:, ::-1].ravel())


def test_a_map_sees_the_stores_before_it(run):
    kernel = make_kernel("""
@tessera.jit
def loaded(p):
    return tl.load(p)

@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i, i * 5)
    tl.debug_barrier()
    y = tl.map_elementwise(loaded, x_ptr + (15 - i))
    tl.debug_barrier()
    tl.store(x_ptr + i, i * 7)
    tl.store(out_ptr + i, y)
""")
    x, out = np.zeros(16, np.int32), np.zeros(16, np.int32)
    run(kernel, (1,), x, out)
    np.testing.assert_array_equal(out, 5 * np.arange(16)[::-1])
    np.testing.assert_array_equal(x, 7 * np.arange(16))


@pytest.mark.parametrize("call", [
    "tl.reduce(p, 0, larger)", "tl.associative_scan(p, 0, larger)", "tl.sort(p)", "tl.topk(p, 4)",
    "tl.max(p, 0)", "tl.argmax(p, 0)", "tl.cumsum(p)",
])  # fmt: skip
def test_pointers_are_not_reduced(run, call):
    kernel = make_kernel(f"""
@tessera.jit
def larger(p, q):
    return tl.where(p > q, p, q)

@tessera.jit
def kernel(x_ptr):
    p = x_ptr + tl.arange(0, 16)
    {call}
""")
    with pytest.raises(tessera.CompilationError) as caught:
        run(kernel, (1,), np.zeros(16, np.int32))
    assert caught.value.id == "E030" and "cast to tl.int64 before" in caught.value.fix
