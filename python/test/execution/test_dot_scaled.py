# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots whose elements come with scales: formats, packing, scales of either side.

Every element times its scale is a number of few bits, so that all products and sums are
exact, whatever the operands are widened to on the way.
"""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest
from execution.running import make_kernel

import tessera
import tessera.language as tl

M, N, K = 64, 32, 64
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
DTYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
          "bf16": ml_dtypes.bfloat16, "fp16": np.float16}  # fmt: skip


@functools.lru_cache(maxsize=None)
def make_dot(formats: tuple[str, str], groups: tuple[int, int], along_k: tuple[bool, bool],
                 fast: bool) -> object:  # fmt: skip
    """`groups` are how many scales a row of each side has, 0 for none; a packed side has
    half as many bytes along K or along its other dimension."""
    a_rows, a_columns, b_rows, b_columns = M, K, K, N
    if formats[0] == "e2m1":
        a_rows, a_columns = (M, K // 2) if along_k[0] else (M // 2, K)
    if formats[1] == "e2m1":
        b_rows, b_columns = (K // 2, N) if along_k[1] else (K, N // 2)

    def load(name: str, rows: int, columns: int) -> str:
        at = f"tl.arange(0, {rows})[:, None] * {columns} + tl.arange(0, {columns})[None, :]"
        return f"tl.load({name} + {at})" if columns else "None"

    return make_kernel(f"""
@tessera.jit
def kernel(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr):
    a = {load("a_ptr", a_rows, a_columns)}
    b = {load("b_ptr", b_rows, b_columns)}
    a_scale = {load("a_scale_ptr", M, groups[0])}
    b_scale = {load("b_scale_ptr", N, groups[1])}
    c = tl.dot_scaled(a, a_scale, "{formats[0]}", b, b_scale, "{formats[1]}",
                      lhs_k_pack={along_k[0]}, rhs_k_pack={along_k[1]}, fast_math={fast})
    tl.store(c_ptr + tl.arange(0, {M})[:, None] * {N} + tl.arange(0, {N})[None, :], c)
""")


def draw_operand(
    rng, shape: tuple[int, int], name: str, pack: int
) -> tuple[np.ndarray, np.ndarray]:
    """The operand as it is stored, and its numbers; `pack` is the axis of neighbours that
    share a byte, the first one in the low half."""
    if name != "e2m1":
        numbers = rng.integers(-4, 5, shape).astype(DTYPES[name])
        stored = numbers if name in ("bf16", "fp16") else numbers.view(np.uint8)
        return stored, numbers.astype(np.float64)
    nibbles = rng.integers(0, 16, shape).astype(np.uint8)
    even, odd = nibbles.take(range(0, shape[pack], 2), pack), nibbles.take(range(1, shape[pack], 2), pack)  # fmt: skip
    return even | odd << 4, E2M1[nibbles]


def draw_scale(rng, rows: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Exponents of 8 bits, and a factor for each element of a row along K."""
    if groups == 0:
        return np.zeros(1, np.uint8), np.ones((rows, K))
    exponents = rng.integers(124, 131, (rows, groups)).astype(np.uint8)
    return exponents, np.repeat(2.0 ** (exponents.astype(np.float64) - 127), K // groups, 1)


def multiply(run, rng, formats, groups, along_k=(True, True), fast=False, warps=4) -> None:
    a, a_numbers = draw_operand(rng, (M, K), formats[0], 1 if along_k[0] else 0)
    b, b_numbers = draw_operand(rng, (K, N), formats[1], 0 if along_k[1] else 1)
    (a_scale, a_factors), (b_scale, b_factors) = draw_scale(rng, M, groups[0]), draw_scale(rng, N, groups[1])  # fmt: skip
    c = np.full((M, N), np.nan, np.float32)
    kernel = make_dot(formats, groups, along_k, fast)
    run(kernel, (1,), a, a_scale, b, b_scale, c, num_warps=warps)
    np.testing.assert_array_equal(c, (a_numbers * a_factors) @ (b_numbers * b_factors.T))


@pytest.mark.parametrize("right", ["e2m1", "e4m3", "e5m2", "bf16", "fp16"])
@pytest.mark.parametrize("left", ["e2m1", "e4m3", "e5m2", "bf16", "fp16"])
def test_formats(run, rng, left, right):
    # 16-bit floats have no scale.
    groups = tuple(0 if name in ("bf16", "fp16") else 2 for name in (left, right))
    if groups == (0, 0):
        groups = (0, 2) if right == "bf16" else (2, 0)
    multiply(run, rng, (left, right), groups)


@pytest.mark.parametrize("groups", [(2, 0), (0, 2), (2, 2)])
@pytest.mark.parametrize("formats", [("e4m3", "e5m2"), ("e2m1", "e2m1")])
@pytest.mark.parametrize("warps", [1, 8])
def test_scales_of_either_side(run, rng, formats, groups, warps):
    multiply(run, rng, formats, groups, warps=warps)


@pytest.mark.parametrize("along_k", [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("formats", [("e2m1", "e4m3"), ("e5m2", "e2m1"), ("e2m1", "e2m1")])
def test_packed_along_either_dimension(run, rng, formats, along_k):
    multiply(run, rng, formats, (2, 2), along_k)


def test_groups_of_sixteen(run, rng):
    multiply(run, rng, ("e2m1", "e2m1"), (4, 4))


@pytest.mark.parametrize("fast", [False, True])
def test_a_scale_that_is_no_number(run, rng, fast):
    """255 makes its group NaN, 0 is 2^-127; with fast_math the former is not looked at."""
    kernel = make_dot(("e2m1", "bf16"), (2, 0), (True, True), fast)
    a, a_numbers = draw_operand(rng, (M, K), "e2m1", 1)
    scale = np.full((M, 2), 127, np.uint8)
    b = np.ones((K, N), ml_dtypes.bfloat16)
    if not fast:
        scale[3, 1] = 255
    scale[5] = 0
    c = np.full((M, N), 99, np.float32)
    run(kernel, (1,), a, scale, b, np.zeros(1, np.uint8), c)
    want = np.repeat(a_numbers.sum(1)[:, None], N, 1)
    want[5] *= 2.0**-127
    if not fast:
        want[3] = np.nan
    np.testing.assert_array_equal(c, want)


@tessera.jit
def in_a_loop(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, length, BK: tl.constexpr):
    """64x32 of a matmul of matrices of e2m1, whose rows lie along K, with scales for each 32."""
    rows, columns = tl.arange(0, 64), tl.arange(0, 32)
    pairs, groups = tl.arange(0, BK // 2), tl.arange(0, BK // 32)
    acc = tl.zeros((64, 32), tl.float32)
    for k in range(0, length, BK):
        at, group = k // 2 + pairs, (k // 32 + groups)[None, :]
        a = tl.load(a_ptr + rows[:, None] * (length // 2) + at[None, :])
        b = tl.load(b_ptr + columns[None, :] * (length // 2) + at[:, None])
        a_scale = tl.load(a_scale_ptr + rows[:, None] * (length // 32) + group)
        b_scale = tl.load(b_scale_ptr + columns[:, None] * (length // 32) + group)
        acc = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e2m1", acc)
    tl.store(c_ptr + rows[:, None] * 32 + columns[None, :], acc)


@pytest.mark.parametrize("length", [0, 64, 320])
def test_sums_over_several_tiles(run, rng, length):
    sides = []
    for rows in (64, 32):
        nibbles = rng.integers(0, 16, (rows, length)).astype(np.uint8)
        exponents = rng.integers(124, 131, (rows, length // 32)).astype(np.uint8)
        factors = np.repeat(2.0 ** (exponents.astype(np.float64) - 127), 32, 1)
        packed = nibbles[:, ::2] | nibbles[:, 1::2] << 4
        sides.append((packed, exponents, E2M1[nibbles] * factors))
    (a, a_scale, a_numbers), (b, b_scale, b_numbers) = sides
    c = np.full((64, 32), np.nan, np.float32)
    run(in_a_loop, (1,), a, a_scale, b, b_scale, c, length, BK=64)
    np.testing.assert_array_equal(c, a_numbers @ b_numbers.T)


@pytest.mark.parametrize(
    "formats, groups",
    [
        (("e2m1", "e2m1"), (2, 2)), (("e4m3", "e5m2"), (2, 2)), (("e5m2", "e4m3"), (2, 0)),
        (("e2m1", "bf16"), (2, 0)), (("fp16", "e4m3"), (0, 2)),
    ],
)  # fmt: skip
def test_scales_at_the_ends(run, rng, formats, groups):
    """Scales of 2^-127, 2^127 and NaN, and large elements: products and sums overflow,
    and an infinity that meets its opposite is NaN. That hangs on whether a product is rounded
    before it is added, as it is with `deterministic`."""
    kernel = make_dot(formats, groups, (True, True), False)
    ends = np.array([0, 1, 100, 127, 150, 253, 254, 255], np.uint8)
    parts = [0.15, 0.1, 0.15, 0.3, 0.1, 0.1, 0.08, 0.02]
    for _ in range(3):
        operands = []
        for name, shape in zip(formats, ((M, K), (K, N))):
            pack = len(operands) // 2
            if name in ("e4m3", "e5m2"):
                stored = rng.choice([0, 1, 8, 60, 64, 120, 190, 250], shape)
                operands.append(stored.astype(np.uint8))
            else:
                operands.append(draw_operand(rng, shape, name, 1 - pack)[0])
            rows, count = (M, N)[pack], groups[pack]
            scale = rng.choice(ends, (rows, count), p=parts) if count else np.zeros(1, np.uint8)
            operands.append(scale)
        want, got = np.zeros((M, N), np.float32), np.zeros((M, N), np.float32)
        tessera.interpret(kernel)[(1,)](*operands, want)
        run(kernel, (1,), *operands, got, deterministic=True)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
        finite = np.isfinite(want)
        np.testing.assert_allclose(got[finite], want[finite], rtol=1e-5, atol=1e-30)
        assert not finite.all() and not np.isnan(want).all()


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("group", [16, 32])
@pytest.mark.parametrize("formats", [("e2m1", "e2m1"), ("e2m1", "e4m3")])
def test_scales_of_8_bit_floats(run, rng, formats, group, deterministic):
    """As those of nvfp4 are: float8e4nv, one for 16 neighbours. A scaled element has no more than
    eight bits, so that bf16 holds it."""
    kernel = make_kernel(f"""
@tessera.jit
def kernel(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr):
    i, j, k = tl.arange(0, {M})[:, None], tl.arange(0, {N}), tl.arange(0, {K})
    groups = tl.arange(0, {K // group})
    halves = tl.arange(0, {K // 2})
    a = tl.load(a_ptr + i * {K // 2} + halves[None, :])
    if "{formats[1]}" == "e2m1":
        b = tl.load(b_ptr + halves[:, None] * {N} + j[None, :])
    else:
        b = tl.load(b_ptr + k[:, None] * {N} + j[None, :])
    a_scale = tl.load(a_scale_ptr + i * {K // group} + groups[None, :])
    b_scale = tl.load(b_scale_ptr + j[:, None] * {K // group} + groups[None, :])
    c = tl.dot_scaled(a, a_scale.to(tl.float8e4nv, bitcast=True), "{formats[0]}",
                      b, b_scale.to(tl.float8e4nv, bitcast=True), "{formats[1]}")
    tl.store(c_ptr + i * {N} + j[None, :], c)
""")
    a, a_numbers = draw_operand(rng, (M, K), formats[0], 1)
    b, b_numbers = draw_operand(rng, (K, N), formats[1], 0)
    scales, factors = [], []
    for rows in (M, N):
        scale = rng.integers(0x30, 0x48, (rows, K // group)).astype(np.uint8)
        scales.append(scale)
        numbers = scale.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        factors.append(np.repeat(numbers, group, 1))
    c = np.full((M, N), np.nan, np.float32)
    run(kernel, (1,), a, scales[0], b, scales[1], c, deterministic=deterministic)
    np.testing.assert_array_equal(c, (a_numbers * factors[0]) @ (b_numbers * factors[1].T))


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("batch", [(2,), (2, 2)])
@pytest.mark.parametrize("along_k", [(True, True), (False, True)])
def test_batches(run, rng, batch, along_k, deterministic):
    count = int(np.prod(batch))
    extents = ", ".join(map(str, batch))
    a_shape = (M, K // 2) if along_k[0] else (M // 2, K)
    kernel = make_kernel(f"""
@tessera.jit
def load(ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, {count} * ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    return tl.load(ptr + i * COLUMNS + j).reshape(({extents}, ROWS, COLUMNS))

@tessera.jit
def kernel(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr):
    a = load(a_ptr, {a_shape[0]}, {a_shape[1]})
    b = load(b_ptr, {K}, {N})
    a_scale, b_scale = load(a_scale_ptr, {M}, 2), load(b_scale_ptr, {N}, 2)
    acc = tl.full(({extents}, {M}, {N}), 1.0, tl.float32)
    c = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e5m2", acc, lhs_k_pack={along_k[0]})
    i, j = tl.arange(0, {count * M})[:, None], tl.arange(0, {N})[None, :]
    tl.store(c_ptr + i * {N} + j, c.reshape(({count * M}, {N})))
""")
    sides, scales, wants = ([], []), ([], []), []
    for _ in range(count):
        a, a_numbers = draw_operand(rng, (M, K), "e2m1", 1 if along_k[0] else 0)
        b, b_numbers = draw_operand(rng, (K, N), "e5m2", 0)
        (a_scale, a_factors), (b_scale, b_factors) = draw_scale(rng, M, 2), draw_scale(rng, N, 2)
        wants.append((a_numbers * a_factors) @ (b_numbers * b_factors.T) + 1)
        for store, item in zip((*sides, *scales), (a, b, a_scale, b_scale)):
            store.append(item)
    c = np.full((count, M, N), np.nan, np.float32)
    a, b = map(np.stack, sides)
    a_scale, b_scale = map(np.stack, scales)
    run(kernel, (1,), a, a_scale, b, b_scale, c, deterministic=deterministic)
    np.testing.assert_array_equal(c, np.stack(wants))
