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
