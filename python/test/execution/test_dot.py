# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots: dtypes, shapes, transposed operands, accumulators, batches."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import draw, make_kernel, numpy_dtype

import tessera
import tessera.language as tl


@tessera.jit
def dot(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
        TRANS_A: tl.constexpr, TRANS_B: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if TRANS_A:
        a = tl.load(a_ptr + k[:, None] * M + i[None, :]).T
    else:
        a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    if TRANS_B:
        b = tl.load(b_ptr + j[:, None] * K + k[None, :]).T
    else:
        b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    c_ptrs = c_ptr + i[:, None] * N + j[None, :]
    if ACC:
        c = tl.dot(a, b, tl.load(c_ptrs), input_precision="ieee")
    else:
        c = tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptrs, c)


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(16, 16, 16), (32, 64, 16), (1, 16, 32), (48, 24, 8), (64, 32, 128)]
)
def test_exact_dots(run, rng, dtype, shape):
    m, n, k = shape
    # Small integers: every product and sum is exact in every dtype and order.
    a = rng.integers(-4, 5, (m, k)).astype(numpy_dtype(dtype))
    b = rng.integers(-4, 5, (k, n)).astype(numpy_dtype(dtype))
    out = {"int8": np.int32, "float64": np.float64}.get(dtype, np.float32)
    c = np.full((m, n), 99, out)
    run(dot, (1,), a, b, c, M=m, N=n, K=k, TRANS_A=False, TRANS_B=False, ACC=False)
    np.testing.assert_array_equal(c, (a.astype(np.float64) @ b.astype(np.float64)).astype(out))


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_transposed_operands_and_accumulator(run, rng, trans_a, trans_b):
    m, n, k = 32, 16, 64
    a, b, c = (draw(rng, shape, "float32") for shape in ((m, k), (k, n), (m, n)))
    want = a.astype(np.float64) @ b.astype(np.float64) + c
    given_a = np.ascontiguousarray(a.T) if trans_a else a
    given_b = np.ascontiguousarray(b.T) if trans_b else b
    run(dot, (1,), given_a, given_b, c, M=m, N=n, K=k, TRANS_A=trans_a, TRANS_B=trans_b, ACC=True)
    np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-3)


@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
           BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * N + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(
            a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < K - k * BLOCK_K), other=0.0
        )
        b = tl.load(
            b_ptrs, mask=(inner[:, None] < K - k * BLOCK_K) & (columns[None, :] < N), other=0.0
        )
        acc += tl.dot(a, b, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask)


@pytest.mark.parametrize(
    "shape", [(64, 64, 64), (100, 70, 50), (1, 33, 129), (65, 1, 7), (64, 64, 0)]
)
@pytest.mark.parametrize("block", [(32, 32, 32), (16, 64, 16)])
def test_matmul_of_any_shape(run, rng, shape, block):
    m, n, k = shape
    a, b = draw(rng, (m, max(k, 1)), "float32")[:, :k], draw(rng, (max(k, 1), n), "float32")[:k]
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if k == 0:
        a, b = np.zeros((m, 1), np.float32), np.zeros((1, n), np.float32)
    c = np.full((m, n), np.nan, np.float32)
    grid = (-(-m // block[0]), -(-n // block[1]))
    run(matmul, grid, a, b, c, m, n, k, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)


@tessera.jit
def strided_matmul(a_ptr, b_ptr, c_ptr, N, K, along_a, across_a, along_b, across_b,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * across_a + (k + inner)[None, :] * along_a)
        b = tl.load(b_ptr + (k + inner)[:, None] * along_b + columns[None, :] * across_b)
        acc += tl.dot(a, b, input_precision="ieee").to(tl.float32)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_long_rows(run, rng, dtype, transposed):
    """Operands that are packed, b in several panels, and transposed on their way."""
    m, n, k = 32, 2048, 128
    a = rng.integers(-4, 5, (m, k)).astype(numpy_dtype(dtype))
    b = rng.integers(-4, 5, (k, n)).astype(numpy_dtype(dtype))
    c = np.full((m, n), np.nan, np.float32)
    given_a = np.ascontiguousarray(a.T) if "a" in transposed else a
    given_b = np.ascontiguousarray(b.T) if "b" in transposed else b
    strides_a = (m, 1) if "a" in transposed else (1, k)
    strides_b = (1, k) if "b" in transposed else (n, 1)
    run(
        strided_matmul, (2, n // 256), given_a, given_b, c, n, k, *strides_a, *strides_b,
        BLOCK_M=16, BLOCK_N=256, BLOCK_K=64,
    )  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_batched(run, rng):
    kernel = make_kernel("""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr):
    z, i, j, k = tl.arange(0, 4), tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 8)
    a = tl.load(a_ptr + z[:, None, None] * 128 + i[None, :, None] * 8 + k[None, None, :])
    b = tl.load(b_ptr + z[:, None, None] * 256 + k[None, :, None] * 32 + j[None, None, :])
    c_ptrs = c_ptr + z[:, None, None] * 512 + i[None, :, None] * 32 + j[None, None, :]
    tl.store(c_ptrs, tl.dot(a, b, input_precision="ieee"))
""")
    a, b = draw(rng, (4, 16, 8), "float32"), draw(rng, (4, 8, 32), "float32")
    c = np.full((4, 16, 32), 99, np.float32)
    run(kernel, (1,), a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-3)


def test_chained(run, rng):
    kernel = make_kernel("""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr):
    i = tl.arange(0, 32)
    offsets = i[:, None] * 32 + i[None, :]
    a, b = tl.load(a_ptr + offsets), tl.load(b_ptr + offsets)
    p = tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + offsets, tl.dot(p * 0.5, tl.trans(p), p, input_precision="ieee"))
""")
    a, b = draw(rng, (32, 32), "float32"), draw(rng, (32, 32), "float32")
    c = np.full((32, 32), 99, np.float32)
    run(kernel, (1,), a, b, c)
    p = a.astype(np.float64) @ b
    np.testing.assert_allclose(c, p * 0.5 @ p.T + p, rtol=1e-4, atol=1e-1)


@pytest.mark.parametrize(
    "shape", [(64, 64, 64), (17, 48, 256), (1, 16, 32), (32, 8, 24), (48, 4, 640)]
)
def test_dots_of_bytes_on_this_machine(rng, shape):
    # The other targets of these tests have no instructions for bytes; this CPU may. Every
    # byte occurs, the extremes at once among them.
    m, n, k = shape
    m = tessera.next_power_of_2(m)
    a = rng.integers(-128, 128, (m, k)).astype(np.int8)
    b = rng.integers(-128, 128, (k, n)).astype(np.int8)
    a[0], b[:, 0] = -128, -128
    c = rng.integers(-1000, 1000, (m, n)).astype(np.int32)
    want = a.astype(np.int64) @ b.astype(np.int64) + c
    dot[(1,)](a, b, c, M=m, N=n, K=k, TRANS_A=False, TRANS_B=False, ACC=True)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("shape", [(64, 64, 64), (16, 48, 256), (1, 16, 32), (32, 8, 24)])
def test_dots_of_bf16_on_this_machine(rng, shape):
    m, n, k = shape
    a, b = draw(rng, (m, k), "bfloat16"), draw(rng, (k, n), "bfloat16")
    c = np.full((m, n), 99, np.float32)
    dot[(1,)](a, b, c, M=m, N=n, K=k, TRANS_A=False, TRANS_B=False, ACC=False)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    # Products are exact, and each of k sums is off by at most half an ulp of what it sums.
    bound = k * 2.0**-24 * (np.abs(wide_a) @ np.abs(wide_b))
    assert (np.abs(c - wide_a @ wide_b) <= bound).all()


@tessera.jit
def wrapped_matmul(
    a_ptr, b_ptr, c_ptr, sums_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Rows and columns stay in range by remainders, as many kernels have it."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)  # fmt: skip
    ks = tl.arange(0, BK)
    a_ptrs = a_ptr + (rows % M)[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * N + (columns % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    sums = tl.zeros((BM,), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=ks[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        sums += tl.sum(a.to(tl.float32), 1)
        a_ptrs += BK
        b_ptrs += BK * N
    c_ptrs = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))
    tl.store(sums_ptr + rows, sums, mask=rows < M)


@pytest.mark.parametrize("shape", [(16, 32, 16), (50, 70, 40), (3, 5, 7)])
def test_operands_whose_rows_wrap(run, rng, shape):
    m, n, k = shape
    a, b = (rng.integers(-4, 5, size).astype("f2") for size in ((m, k), (k, n)))
    c, sums = np.full((m, n), np.nan, "f4"), np.full(m, np.nan, "f4")
    run(wrapped_matmul, (-(-m // 16), -(-n // 32)), a, b, c, sums, m, n, k, BM=16, BN=32, BK=16)
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))
    np.testing.assert_array_equal(sums, a.astype("f8").sum(1))
