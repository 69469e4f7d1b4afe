# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax and its logarithm along lines: in one pass for the sum and one for the results, or in one if a
line is one tile."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line
from tessera.runtime.jit import jit


@jit
def line_statistics(x, offsets, in_lane, length, stride, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """The maximum of each line, and the sum of exponentials of the distances to it."""
    top = tl.full(offsets.shape, float("-inf"), ACC)
    total = tl.zeros(offsets.shape, ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + i * stride, mask=mask, other=float("-inf")).to(ACC)
        # The maximum ignores NaNs, but the sum does not.
        new = tl.maximum(top, tl.max(value, axis=1, keep_dims=True))
        # The sum of a line of -inf alone is 0 so far, and not NaN.
        base = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(value - base), axis=1, keep_dims=True)
        top = new
    return top, total


@jit
def softmax_kernel(x, out, length, lanes, lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr,
                   BLOCK: tl.constexpr, ACC: tl.constexpr, IS_LOG: tl.constexpr,
                   IS_TILE: tl.constexpr):  # fmt: skip
    """IS_TILE: a line has at most BLOCK elements. Each exponential is then computed once."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    lines = tl.arange(0, LANES)[:, None]
    offsets, in_lane = lines * lane_stride, lane + lines < lanes
    if IS_TILE:
        i = tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + i * stride, mask=mask, other=float("-inf")).to(ACC)
        # A line of -inf alone becomes NaN here.
        value -= tl.max(value, axis=1, keep_dims=True)
        exponential = tl.exp(value)
        total = tl.sum(exponential, axis=1, keep_dims=True)
        result = value - tl.log(total) if IS_LOG else exponential / total
        tl.store(out + offsets + i * stride, result, mask=mask)
        return
    top, total = line_statistics(x, offsets, in_lane, length, stride, ACC, BLOCK)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + i * stride, mask=mask).to(ACC) - top
        if IS_LOG:
            result = value - tl.log(total)
        else:
            result = tl.exp(value) / total
        tl.store(out + offsets + i * stride, result, mask=mask)


@jit
def softmax_backward_kernel(y, grad, out, length, lanes, lane_stride, stride, slab_stride, blocks,
                            LANES: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr,
                            IS_LOG: tl.constexpr):  # fmt: skip
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    y += first
    grad += first
    out += first
    lines = tl.arange(0, LANES)[:, None]
    offsets, in_lane = lines * lane_stride, lane + lines < lanes
    total = tl.zeros((LANES, 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        g = tl.load(grad + offsets + i * stride, mask=mask).to(ACC)
        if not IS_LOG:
            g *= tl.load(y + offsets + i * stride, mask=mask).to(ACC)
        total += tl.sum(g, axis=1, keep_dims=True)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        g = tl.load(grad + offsets + i * stride, mask=mask).to(ACC)
        value = tl.load(y + offsets + i * stride, mask=mask).to(ACC)
        result = g - tl.exp(value) * total if IS_LOG else value * (g - total)
        tl.store(out + offsets + i * stride, result, mask=mask)
