# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user of Triton would write for speed: tensor descriptors made by the host, a program
for each SM that goes over tiles, and the epilogue in two halves.

Tessera's plain kernels are measured against the better of Triton's plain ones and these.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _persistent(
    a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr, PROGRAMS: tl.constexpr, HALVES: tl.constexpr, ALONG_K: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True):
        first_m = tile // (GROUP * blocks_n) * GROUP
        group = min(blocks_m - first_m, GROUP)
        row = (first_m + tile % (GROUP * blocks_n) % group) * BM
        column = tile % (GROUP * blocks_n) // group * BN
        acc = tl.zeros((BM, BN), dtype=ACC)
        for k in range(0, tl.cdiv(K, BK)):
            x = a_desc.load([row, k * BK])
            if ALONG_K:
                y = b_desc.load([column, k * BK]).T
            else:
                y = b_desc.load([k * BK, column])
            acc = tl.dot(x, y, acc, out_dtype=ACC)
        if HALVES:
            pair = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
            left, right = tl.split(pair)
            c_desc.store([row, column], left.to(c_desc.dtype))
            c_desc.store([row, column + BN // 2], right.to(c_desc.dtype))
        else:
            c_desc.store([row, column], acc.to(c_desc.dtype))


def persistent_matmul(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, acc: Any, config: tuple[int, ...]
) -> Any:
    """c = a @ b; `b` may be the transpose of what lies in memory."""
    bm, bn, bk, warps, stages, halves = config
    (m, k), n = a.shape, b.shape[1]
    along_k = b.stride(0) == 1
    stored = b.T if along_k else b
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    return _persistent[(min(programs, -(-m // bm) * -(-n // bn)),)](
        TensorDescriptor.from_tensor(a, [bm, bk]),
        TensorDescriptor.from_tensor(stored, [bn, bk] if along_k else [bk, bn]),
        TensorDescriptor.from_tensor(c, [bm, bn // 2 if halves else bn]),
        m, n, k, BM=bm, BN=bn, BK=bk, GROUP=8, PROGRAMS=programs, HALVES=bool(halves),
        ALONG_K=along_k, ACC=acc, num_warps=warps, num_stages=stages,
    )  # fmt: skip


@triton.jit
def _scaled(
    a_desc, b_desc, a_scale_ptr, b_scale_ptr, c_desc, M, N, K, stride_as, stride_ask, stride_bs,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid, blocks_m, blocks_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_m = pid // (GROUP * blocks_n) * GROUP
    group = min(blocks_m - first_m, GROUP)
    row = (first_m + pid % (GROUP * blocks_n) % group) * BM
    column = pid % (GROUP * blocks_n) // group * BN
    rows = row + tl.arange(0, BM)
    a_scale = a_scale_ptr + rows * stride_as
    b_scale = b_scale_ptr + column // 128 * stride_bs
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x, y = a_desc.load([row, k]), b_desc.load([column, k])
        of_a = tl.load(a_scale + k // 128 * stride_ask, mask=rows < M, other=0.0)
        acc += tl.dot(x, y.T) * (of_a * tl.load(b_scale + k // 128))[:, None]
    c_desc.store([row, column], acc.to(c_desc.dtype))


def scaled_matmul(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor,
    c: torch.Tensor, config: tuple[int, ...],
) -> Any:  # fmt: skip
    """c = a @ b of 8-bit floats with scales of blocks; `b` is the transpose of what is in memory."""
    bm, bn, bk, warps, stages = config
    (m, k), n = a.shape, b.shape[1]
    return _scaled[(-(-m // bm) * -(-n // bn),)](
        TensorDescriptor.from_tensor(a, [bm, bk]), TensorDescriptor.from_tensor(b.T, [bn, bk]),
        a_scale, b_scale, TensorDescriptor.from_tensor(c, [bm, bn]), m, n, k, a_scale.stride(0),
        a_scale.stride(1), b_scale.stride(0), BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps,
        num_stages=stages,
    )  # fmt: skip
