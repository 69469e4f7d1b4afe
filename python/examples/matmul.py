# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmul with a bias and an activation fused into its end."""

from __future__ import annotations

from typing import Any

import tessera
import tessera.language as tl


@tessera.jit
def gelu(x: tl.tensor) -> tl.tensor:
    """The tanh approximation of the Gaussian error linear unit."""
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return x * tl.sigmoid(2.0 * inner)


@tessera.jit
def matmul_kernel(
    a_ptr: tl.tensor, b_ptr: tl.tensor, bias_ptr: tl.tensor, c_ptr: tl.tensor, M: int, N: int,
    K: int, stride_am: int, stride_bk: int, stride_cm: int,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
) -> None:  # fmt: skip
    # Programs are taken in groups of GROUP_M rows of tiles, so that those that run close
    # together share what they read.
    pid_m, pid_n = tl.swizzle2d(
        tl.program_id(0) // tl.cdiv(N, BLOCK_N),
        tl.program_id(0) % tl.cdiv(N, BLOCK_N),
        tl.cdiv(M, BLOCK_M),
        tl.cdiv(N, BLOCK_N),
        GROUP_M,
    )
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * stride_bk + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    acc += tl.load(bias_ptr + columns, mask=columns < N, other=0.0)[None, :]
    if ACTIVATION == "gelu":
        acc = gelu(acc)
    elif ACTIVATION == "relu":
        acc = tl.maximum(acc, 0.0)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(
    a: Any, b: Any, bias: Any, out: Any, activation: str = "", block: tuple[int, int, int] = (128, 128, 64)
) -> None:  # fmt: skip
    """out = activation(a @ b + bias), for a: (M, K), b: (K, N), rows contiguous.

    `activation` is "", "relu" or "gelu"; `block` is (BLOCK_M, BLOCK_N, BLOCK_K).
    """
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k = block
    grid = (tessera.cdiv(m, block_m) * tessera.cdiv(n, block_n),)
    matmul_kernel[grid](
        a, b, bias, out, m, n, k, k, n, n,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=4, ACTIVATION=activation,
    )  # fmt: skip
