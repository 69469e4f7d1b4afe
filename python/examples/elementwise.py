# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small kernels: a fused activation, an int8 matmul, and a kernel that does nothing."""

from __future__ import annotations

from typing import Any

import tessera
import tessera.language as tl


@tessera.jit
def silu_mul_kernel(
    x_ptr: tl.tensor, y_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BLOCK: tl.constexpr
) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * tl.sigmoid(x) * y, mask=mask)


def silu_mul(x: Any, y: Any, out: Any, block: int = 4096) -> None:
    """out = silu(x) * y, computed in float32, for arrays of one length."""
    n = x.shape[0]
    silu_mul_kernel[(tessera.cdiv(n, block),)](x, y, out, n, BLOCK=block)


@tessera.jit
def matmul_int8_kernel(
    a_ptr: tl.tensor, b_ptr: tl.tensor, c_ptr: tl.tensor, M: int, N: int, K: int,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
) -> None:  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * N + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.int32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < K - k) & (columns[None, :] < N), other=0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask)


def matmul_int8(a: Any, b: Any, out: Any, block: tuple[int, int, int] = (128, 128, 128)) -> None:
    """out = a @ b in int32, for int8 matrices with contiguous rows."""
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k = block
    grid = (tessera.cdiv(m, block_m), tessera.cdiv(n, block_n))
    matmul_int8_kernel[grid](a, b, out, m, n, k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k)


@tessera.jit
def empty() -> None:
    pass
