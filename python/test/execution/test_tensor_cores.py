# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots that tensor cores can do: types, layouts, shapes, tails of K.

Dots run on every target: here it is the GPU that chooses instructions by type, shape
and number of warps.
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from execution.running import draw, make_kernel, numpy_dtype

import tessera
import tessera.gpu
import tessera.language as tl

DTYPES = ["float16", "bfloat16", "float32", "int8", "float64"]


@tessera.jit
def dot(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
            AM: tl.constexpr, AK: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
            PRECISION: tl.constexpr, OUT: tl.constexpr):  # fmt: skip
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i[:, None] * AM + k[None, :] * AK)
    b = tl.load(b_ptr + k[:, None] * BK + j[None, :] * BN)
    c = tl.dot(a, b, input_precision=PRECISION, out_dtype=OUT)
    tl.store(c_ptr + i[:, None] * N + j[None, :], c)


@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, AM, AK, BK, BN, BLOCK_M: tl.constexpr,
           BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, OUT: tl.constexpr,
           PRECISION: tl.constexpr = None, A: tl.constexpr = None,
           B: tl.constexpr = None):  # fmt: skip
    """`A` and `B` are the types of bytes that are floats."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * AM + inner[None, :] * AK
    b_ptrs = b_ptr + inner[:, None] * BK + columns[None, :] * BN
    acc = tl.zeros((BLOCK_M, BLOCK_N), OUT)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] + k < K), other=0)
        b = tl.load(b_ptrs, mask=(inner[:, None] + k < K) & (columns[None, :] < N), other=0)
        if A is not None:
            a = a.to(A, bitcast=True)
        if B is not None:
            b = b.to(B, bitcast=True)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=OUT)
        a_ptrs += BLOCK_K * AK
        b_ptrs += BLOCK_K * BK
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask)


def out_dtype(dtype: str) -> Any:
    return {"int8": tl.int32, "float64": tl.float64}.get(dtype, tl.float32)


def sum_dtype(dtype: str) -> Any:
    return {"int8": np.int32, "float64": np.float64}.get(dtype, np.float32)


def operands(rng: Any, m: int, n: int, k: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Small integers: every product and sum is exact, whatever instruction does them."""
    kind = numpy_dtype(dtype)
    return rng.integers(-4, 5, (m, k)).astype(kind), rng.integers(-4, 5, (k, n)).astype(kind)


def lay_out(a: np.ndarray, transposed: bool) -> tuple[np.ndarray, int, int]:
    """The matrix in memory, in rows or in columns, and its strides."""
    if transposed:
        return np.ascontiguousarray(a.T), 1, a.shape[0]
    return a, a.shape[1], 1


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts(run, rng, dtype, transposed, warps):
    m, n, k = 64, 64, 64
    if dtype == "float64":
        m, n, k = 32, 32, 16
    a, b = operands(rng, m, n, k, dtype)
    (given_a, am, ak), (given_b, bk, bn) = lay_out(a, transposed[0]), lay_out(b, transposed[1])
    c = np.full((m, n), 99, sum_dtype(dtype))
    run(dot, (1,), given_a, given_b, c, M=m, N=n, K=k, AM=am, AK=ak, BK=bk, BN=bn,
        PRECISION="tf32", OUT=out_dtype(dtype), num_warps=warps)  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


SHAPES = [
    (16, 8, 16), (16, 16, 8), (32, 64, 16), (64, 8, 16), (64, 16, 32), (64, 24, 16),
    (128, 64, 32), (64, 256, 16), (128, 128, 64), (256, 64, 32), (64, 128, 128),
    (192, 64, 32), (64, 192, 64), (64, 192, 128), (128, 96, 32), (48, 24, 48), (320, 40, 64),
    (128, 192, 16), (192, 128, 32), (256, 192, 16),
    # Turned around, what has too few rows.
    (8, 64, 32), (8, 16, 16), (24, 32, 32), (40, 64, 16),
]  # fmt: skip


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_shapes(run, rng, dtype, shape, warps):
    m, n, k = shape
    a, b = operands(rng, m, n, k, dtype)
    c = np.full((m, n), 99, sum_dtype(dtype))
    run(dot, (1,), a, b, c, M=m, N=n, K=k, AM=k, AK=1, BK=n, BN=1, PRECISION="tf32",
        OUT=out_dtype(dtype), num_warps=warps)  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("imprecise", [None, 0, 32])
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("dtypes", [("float8_e4m3fn", "float8_e4m3fn"),
                                    ("float8_e5m2", "float8_e4m3fn")])  # fmt: skip
def test_float8(run, rng, dtypes, warps, imprecise):
    names = {"float8_e4m3fn": "tl.float8e4nv", "float8_e5m2": "tl.float8e5"}
    kernel = make_kernel(f"""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr):
    i, j, k = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 64)
    a = tl.load(a_ptr + i[:, None] * 64 + k[None, :]).to({names[dtypes[0]]}, bitcast=True)
    b = tl.load(b_ptr + k[:, None] * 32 + j[None, :]).to({names[dtypes[1]]}, bitcast=True)
    tl.store(c_ptr + i[:, None] * 32 + j[None, :], tl.dot(a, b, max_num_imprecise_acc={imprecise}))
""")
    a, b = rng.integers(-4, 5, (64, 64)), rng.integers(-4, 5, (64, 32))
    c = np.full((64, 32), 99, np.float32)
    bytes_a = a.astype(getattr(ml_dtypes, dtypes[0])).view(np.int8)
    bytes_b = b.astype(getattr(ml_dtypes, dtypes[1])).view(np.int8)
    run(kernel, (1,), bytes_a, bytes_b, c, num_warps=warps)
    np.testing.assert_array_equal(c, a @ b)


FLOAT8 = {"float8_e4m3fn": tl.float8e4nv, "float8_e5m2": tl.float8e5}


@pytest.mark.parametrize("target", ["sm_89", "sm_120a"])
@pytest.mark.parametrize("shape", [(64, 64, 64), (72, 40, 136), (16, 8, 32)])
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("kinds", itertools.product(FLOAT8, repeat=2))
def test_float8_by_mma_sync(rng, kinds, transposed, shape, target):
    """GPUs that multiply 8-bit floats by mma.sync, also one of each kind."""
    m, n, k = shape
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    bytes_a = a.astype(getattr(ml_dtypes, kinds[0])).view(np.int8)
    bytes_b = b.astype(getattr(ml_dtypes, kinds[1])).view(np.int8)
    (bytes_a, am, ak), (bytes_b, bk, bn) = map(lay_out, (bytes_a, bytes_b), transposed)
    c = np.full((m, n), 99, np.float32)
    simulation = tessera.gpu.simulate(matmul)[(-(-m // 32), -(-n // 32))](
        bytes_a, bytes_b, c, m, n, k, am, ak, bk, bn, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64,
        OUT=tl.float32, A=FLOAT8[kinds[0]], B=FLOAT8[kinds[1]], num_stages=3, target=target,
    )  # fmt: skip
    simulation.check()
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize("shape", [(128, 64, 96), (100, 70, 50), (65, 9, 129), (64, 64, 0)])
def test_tails(run, rng, dtype, shape):
    m, n, k = shape
    a, b = operands(rng, m, n, max(k, 1), dtype)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    c = np.full((m, n), 99, sum_dtype(dtype))
    grid = (-(-m // 64), -(-n // 64))
    run(matmul, grid, a, b, c, m, n, k, a.shape[1], 1, n, 1, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
        OUT=out_dtype(dtype))  # fmt: skip
    want = a[:, :k].astype(np.float64) @ b[:k].astype(np.float64)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("warps", [1, 4])
def test_sums_of_float16(run, rng, warps):
    a, b = operands(rng, 64, 32, 64, "float16")
    c = np.full((64, 32), 99, np.float16)
    run(dot, (1,), a, b, c, M=64, N=32, K=64, AM=64, AK=1, BK=32, BN=1, PRECISION="tf32",
        OUT=tl.float16, num_warps=warps)  # fmt: skip
    # At most 64 * 16: every sum is one of float16.
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("warps", [1, 4])
def test_sums_of_float16_are_rounded_and_overflow(run, warps):
    """As sums of float32 they would be neither: 2048 + 1 is no float16, nor 65504 twice."""
    a, b = np.zeros((64, 128), np.float16), np.zeros((128, 64), np.float16)
    b[::32] = 1
    a[:32, 0], a[:32, 32::32] = 2048, 1
    a[32:, 0], a[32:, 32], a[32:, 64] = 65504, 65504, -65504
    c = np.full((64, 64), 99, np.float16)
    run(matmul, (1, 1), a, b, c, 64, 64, 128, 128, 1, 64, 1, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
        OUT=tl.float16, num_warps=warps)  # fmt: skip
    assert (c[:32] == 2048).all() and np.isposinf(c[32:]).all()


@pytest.mark.parametrize(
    "precision, bound",
    [("tf32", 2.0**-9), ("tf32x3", 2.0**-19), ("bf16x3", 2.0**-14), ("bf16x6", 2.0**-19),
     ("ieee", 2.0**-20)],
)  # fmt: skip
def test_precision(run, rng, precision, bound):
    m, n, k = 64, 64, 64
    a, b = draw(rng, (m, k), "float32"), draw(rng, (k, n), "float32")
    c = np.full((m, n), np.nan, np.float32)
    run(dot, (1,), a, b, c, M=m, N=n, K=k, AM=k, AK=1, BK=n, BN=1, PRECISION=precision,
        OUT=tl.float32)  # fmt: skip
    want = a.astype(np.float64) @ b.astype(np.float64)
    limit = bound * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    assert (np.abs(c - want) <= limit).all()


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("transposed", [(False, False), (True, True)])
@pytest.mark.parametrize("precision", ["tf32x3", "bf16x3", "bf16x6"])
@pytest.mark.parametrize(
    "shape",
    [(64, 64, 8), (64, 64, 16), (64, 32, 32), (128, 128, 32), (192, 64, 32), (64, 192, 64),
     (128, 96, 48), (32, 32, 48), (16, 8, 16), (128, 256, 32)],
    ids=lambda shape: "x".join(map(str, shape)),
)  # fmt: skip
def test_shapes_of_split_operands(run, rng, precision, shape, transposed, warps):
    """Numbers of 11 bits, two parts of bf16 or one of tf32: products and sums are exact."""
    m, n, k = shape
    a = rng.integers(-1500, 1500, (m, k)).astype(np.float32)
    b = rng.integers(-1, 2, (k, n)).astype(np.float32)
    (given_a, am, ak), (given_b, bk, bn) = lay_out(a, transposed[0]), lay_out(b, transposed[1])
    c = np.full((m, n), 99, np.float32)
    run(dot, (1,), given_a, given_b, c, M=m, N=n, K=k, AM=am, AK=ak, BK=bk, BN=bn,
        PRECISION=precision, OUT=tl.float32, num_warps=warps)  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("instruction", ["wgmma", "mma.sync"])
@pytest.mark.parametrize("precision", ["tf32x3", "bf16x3", "bf16x6"])
def test_long_sums_of_parts_are_as_near_as_those_of_float32(run, rng, precision, instruction):
    """Tensor cores truncate: one accumulator of 2048 positive products loses 2^-14 of itself."""
    m = n = 64 if instruction == "wgmma" else 32
    k = 2048
    a = rng.random((m, k), np.float32)
    b = rng.random((k, n), np.float32)
    c = np.full((m, n), np.nan, np.float32)
    run(matmul, (1, 1), a, b, c, m, n, k, k, 1, n, 1, BLOCK_M=m, BLOCK_N=n, BLOCK_K=32,
        OUT=tl.float32, PRECISION=precision)  # fmt: skip
    want = a.astype(np.float64) @ b.astype(np.float64)
    # One by one in f32 they lose 2^-18.6.
    assert np.abs(c / want - 1).max() < 2.0**-18
    assert abs((c / want - 1).mean()) < 2.0**-20


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x3", "bf16x6"])
@pytest.mark.parametrize("size", [32, 64])
def test_infinity_and_the_largest_numbers_have_parts(run, precision, size):
    a, b = np.zeros((size, size), np.float32), np.zeros((size, size), np.float32)
    a[:, 0] = np.inf
    a[:16, 0] = [1, -1, 0, np.inf, -np.inf, np.nan, 3e38, 2.5, 1e-30] + [np.inf] * 7
    values = [1 + 2.0**-20, -1 - 2.0**-20, np.inf, -np.inf, np.nan, 2.0**-100, 1.1]
    b[0, : len(values)] = values
    b[0, len(values) :] = 0.7
    c = np.full((size, size), 99, np.float32)
    run(dot, (1,), a, b, c, M=size, N=size, K=size, AM=size, AK=1, BK=size, BN=1,
        PRECISION=precision, OUT=tl.float32)  # fmt: skip
    with np.errstate(all="ignore"):
        want = a[:, :1] * b[:1]
    np.testing.assert_allclose(c, want, rtol=2.0**-14)


def test_precision_of_what_is_not_finite(run):
    a, b = np.eye(32, dtype=np.float32), np.ones((32, 32), np.float32)
    a[3, 3], a[5, 5] = np.inf, np.nan
    c = np.full((32, 32), 99, np.float32)
    run(dot, (1,), a, b, c, M=32, N=32, K=32, AM=32, AK=1, BK=32, BN=1, PRECISION="tf32x3",
        OUT=tl.float32)  # fmt: skip
    assert np.isposinf(c[3]).all() and np.isnan(c[5]).all()
    np.testing.assert_array_equal(np.delete(c, [3, 5], 0), 1)


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_operand_from_registers(run, rng, warps):
    kernel = make_kernel("""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr, d_ptr):
    i, j = tl.arange(0, 64), tl.arange(0, 64)
    a = tl.load(a_ptr + i[:, None] * 64 + j[None, :])
    b = tl.load(b_ptr + i[:, None] * 64 + j[None, :])
    c = tl.load(c_ptr + i[:, None] * 64 + j[None, :])
    s = tl.dot(a, b)
    p = (s - tl.max(s, 1)[:, None]).to(tl.float16)
    tl.store(d_ptr + i[:, None] * 64 + j[None, :], tl.dot(p, c))
""")
    a, b, c = (rng.integers(-2, 3, (64, 64)).astype(np.float16) for _ in range(3))
    d = np.full((64, 64), 99, np.float32)
    run(kernel, (1,), a, b, c, d, num_warps=warps)
    s = a.astype(np.float64) @ b
    np.testing.assert_array_equal(d, (s - s.max(1, keepdims=True)) @ c)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("n", [32, 64])
def test_decoded_operand(run, rng, which, warps, n):
    kernel = make_kernel(f"""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr):
    i, j, k = tl.arange(0, 64), tl.arange(0, {n}), tl.arange(0, 64)
    a = tl.load(a_ptr + i[:, None] * 64 + k[None, :])
    b = tl.load(b_ptr + k[:, None] * {n} + j[None, :])
    {which} = ({which}.to(tl.float32) * 0.5).to(tl.bfloat16)
    tl.store(c_ptr + i[:, None] * {n} + j[None, :], tl.dot(a, b))
""")
    kinds = [np.int8 if name == which else ml_dtypes.bfloat16 for name in "ab"]
    a = rng.integers(-9, 9, (64, 64)).astype(kinds[0])
    b = rng.integers(-9, 9, (64, n)).astype(kinds[1])
    c = np.full((64, n), 99, np.float32)
    run(kernel, (1,), a, b, c, num_warps=warps)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64) / 2)


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_batches(run, rng, warps):
    kernel = make_kernel("""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr):
    z, i, j, k = tl.arange(0, 4), tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 16)
    a = tl.load(a_ptr + z[:, None, None] * 256 + i[None, :, None] * 16 + k[None, None, :])
    b = tl.load(b_ptr + z[:, None, None] * 512 + k[None, :, None] * 32 + j[None, None, :])
    c_ptrs = c_ptr + z[:, None, None] * 512 + i[None, :, None] * 32 + j[None, None, :]
    tl.store(c_ptrs, tl.dot(a, b))
""")
    a = rng.integers(-4, 5, (4, 16, 16)).astype(np.float16)
    b = rng.integers(-4, 5, (4, 16, 32)).astype(np.float16)
    c = np.full((4, 16, 32), 99, np.float32)
    run(kernel, (1,), a, b, c, num_warps=warps)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("other", ["bf16", "fp16", "e5m2"])
@pytest.mark.parametrize("warps", [1, 4])
def test_scaled(run, rng, warps, other):
    kernel = make_kernel(f"""
@tessera.jit
def kernel(a_ptr, s_ptr, b_ptr, c_ptr):
    i, j, k, g = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 64), tl.arange(0, 2)
    a = tl.load(a_ptr + i[:, None] * 64 + k[None, :])
    s = tl.load(s_ptr + i[:, None] * 2 + g[None, :])
    b = tl.load(b_ptr + k[:, None] * 32 + j[None, :])
    tl.store(c_ptr + i[:, None] * 32 + j[None, :], tl.dot_scaled(a, s, "e4m3", b, None, "{other}"))
""")
    kind = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "e5m2": ml_dtypes.float8_e5m2}[other]
    a = rng.integers(-4, 5, (64, 64)).astype(ml_dtypes.float8_e4m3fn)
    s = rng.integers(125, 130, (64, 2)).astype(np.uint8)
    b = rng.integers(-4, 5, (64, 32)).astype(kind)
    c = np.full((64, 32), 99, np.float32)
    given = b.view(np.uint8) if other == "e5m2" else b
    run(kernel, (1,), a.view(np.uint8), s, given, c, num_warps=warps)
    scaled = a.astype(np.float64) * np.repeat(2.0 ** (s.astype(np.float64) - 127), 32, 1)
    np.testing.assert_array_equal(c, scaled @ b.astype(np.float64))


@tessera.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, T, scale, D: tl.constexpr, BLOCK_M: tl.constexpr,
              BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    rows, inner = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    columns = tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + rows[:, None] * D + inner[None, :])
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = (tl.program_id(0) + 1) * BLOCK_M if CAUSAL else T
    for first in range(0, end, BLOCK_N):
        k = tl.load(k_ptr + (first + columns)[:, None] * D + inner[None, :])
        v = tl.load(v_ptr + (first + columns)[:, None] * D + inner[None, :])
        s = tl.dot(q, k.T) * scale
        if CAUSAL:
            s = tl.where(rows[:, None] >= (first + columns)[None, :], s, float("-inf"))
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(largest - new)
        total = total * fade + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * fade[:, None])
        largest = new
    tl.store(o_ptr + rows[:, None] * D + inner[None, :], acc / total[:, None])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block, warps", [((64, 32), 4), ((64, 64), 4), ((128, 32), 8)])
@pytest.mark.parametrize("d", [32, 64])
def test_attention(run, rng, d, block, warps, causal):
    t = 128
    q, k, v = (draw(rng, (t, d), "float16") / np.float16(4) for _ in range(3))
    o = np.full((t, d), np.nan, np.float32)
    run(attention, (t // block[0],), q, k, v, o, t, 0.25, D=d, BLOCK_M=block[0],
        BLOCK_N=block[1], CAUSAL=causal, num_warps=warps)  # fmt: skip
    s = q.astype(np.float64) @ k.astype(np.float64).T * 0.25
    if causal:
        s = np.where(np.tri(t, dtype=bool), s, -np.inf)
    p = np.exp2(s - s.max(1, keepdims=True))
    want = p @ v.astype(np.float64) / p.sum(1, keepdims=True)
    # Each weight is rounded to float16.
    np.testing.assert_allclose(o, want, rtol=0, atol=2e-3 * np.abs(v).max())
