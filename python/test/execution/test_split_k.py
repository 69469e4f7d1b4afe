# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of dots that the blocks of a cluster divide, in the simulator: values, and no races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl


def run(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> Any:
    found = tessera.gpu.simulate(kernel)[grid](*args, **options)
    found.check()
    return found


@tessera.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_bk, stride_bn, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    blocks_n = tl.cdiv(N, BN)
    rows = tl.program_id(0) // blocks_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % blocks_n * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(ks[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK
        b += BK * stride_bk
    c = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize("blocks", (2, 4, 8))
@pytest.mark.parametrize(
    "shape, tile",
    (
        ((64, 64, 256), (64, 64, 32)),
        ((70, 72, 136), (64, 64, 32)),
        ((100, 40, 8), (64, 32, 64)),  # fewer iterations than blocks
        ((16, 64, 256), (16, 64, 32)),
    ),
)
@pytest.mark.parametrize("along_k", (False, True))
def test_a_matmul(
    blocks: int, shape: tuple[int, int, int], tile: tuple[int, int, int], along_k: bool
) -> None:
    (m, n, k), (bm, bn, bk) = shape, tile
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    given = np.ascontiguousarray(b.T).T if along_k else b
    strides = (1, k) if along_k else (n, 1)
    c = np.full((m, n), np.nan, np.float32)
    run(
        matmul, (-(-m // bm) * -(-n // bn),), a, given, c, m, n, k, k, *strides, n,
        BM=bm, BN=bn, BK=bk, num_ctas=blocks, num_stages=3,
    )  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
