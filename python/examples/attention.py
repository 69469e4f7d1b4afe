# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flash attention, forward: softmax(q k^T / sqrt(d)) v without storing the scores."""

from __future__ import annotations

from typing import Any

import tessera
import tessera.language as tl


@tessera.jit
def attention_kernel(
    q_ptr: tl.tensor, k_ptr: tl.tensor, v_ptr: tl.tensor, out_ptr: tl.tensor, length: tl.tensor,
    scale: float,
    HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
) -> None:  # fmt: skip
    start_m = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * length * HEAD
    rows = start_m + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD)
    q_offsets = base + rows[:, None] * HEAD + dims[None, :]
    in_rows = rows[:, None] < length
    # exp2 is cheaper than exp: its factor log2(e) goes into the scale. What is multiplied has
    # the type of the arrays, so that on a GPU tensor cores multiply those of 16 bits.
    q = tl.load(q_ptr + q_offsets, mask=in_rows, other=0.0) * (scale * 1.4426950408889634)
    q = q.to(q_ptr.dtype.element_ty)

    highest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, start_m + BLOCK_M)
    for start_n in range(0, end, BLOCK_N):
        columns = start_n + tl.arange(0, BLOCK_N)
        in_columns = columns < length
        kv_offsets = base + columns[:, None] * HEAD + dims[None, :]
        k = tl.load(k_ptr + kv_offsets, mask=in_columns[:, None], other=0.0)
        v = tl.load(v_ptr + kv_offsets, mask=in_columns[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        visible = in_columns[None, :]
        if CAUSAL:
            visible = visible & (rows[:, None] >= columns[None, :])
        scores = tl.where(visible, scores, -float("inf"))
        # Column 0 is visible to every row, so the running maximum is finite from the
        # first step on and no difference of infinities comes up.
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
        highest = new_highest
    tl.store(out_ptr + q_offsets, acc / total[:, None], mask=in_rows)


def attention(q: Any, k: Any, v: Any, out: Any, causal: bool = False) -> None:
    """out = softmax(q k^T / sqrt(d)) v, for arrays of shape (heads, length, d), contiguous."""
    heads, length, head = q.shape
    block_m = block_n = 64
    grid = (tessera.cdiv(length, block_m), heads)
    attention_kernel[grid](
        q, k, v, out, length, head**-0.5, HEAD=head, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal
    )
