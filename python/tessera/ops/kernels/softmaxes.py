# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax and its logarithm along lines: in one pass for the sum and one for the results, or in one if a
line is one tile."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line, lane_offsets
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
def finite(x):
    """A maximum that can be subtracted."""
    return tl.where(tl.abs(x) == float("inf"), 0.0, x)


@jit
def spread_statistics(x, offsets, in_lane, length, stride, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """The same, with a maximum and a sum for each column of the tile: threads meet once, at the end.

    A maximum that is infinite counts as 0.
    """
    column = tl.arange(0, BLOCK)[None, :]
    # Columns of the first tile that are behind the end have no term.
    mask = in_lane & (column < length)
    tops = tl.load(x + offsets + column * stride, mask=mask, other=float("-inf")).to(ACC)
    totals = tl.exp(tops - finite(tops))
    for start in range(BLOCK, length, BLOCK):
        i = start + column
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + i * stride, mask=mask, other=float("-inf")).to(ACC)
        # The maximum ignores NaNs, but the sum does not.
        new = tl.maximum(tops, value)
        totals = totals * tl.exp(tops - finite(new)) + tl.exp(value - finite(new))
        tops = new
    base = finite(tl.max(tops, axis=1, keep_dims=True))
    totals = tl.where(totals == 0, 0.0, totals * tl.exp(finite(tops) - base))
    return base, tl.sum(totals, axis=1, keep_dims=True)


@jit
def softmax_kernel(x, out, length, lanes, lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr,
                   BLOCK: tl.constexpr, ACC: tl.constexpr, IS_LOG: tl.constexpr, IS_TILE: tl.constexpr,
                   IS_SPREAD: tl.constexpr):  # fmt: skip
    """IS_TILE: a line has at most BLOCK elements. Each exponential is then computed once.

    IS_SPREAD: each column of a tile has its own statistics.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
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
    if IS_SPREAD:
        top, total = spread_statistics(x, offsets, in_lane, length, stride, ACC, BLOCK)
        total = tl.where(total == float("inf"), float("nan"), total)  # an infinite logit
    else:
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
                            IS_LOG: tl.constexpr, IS_TILE: tl.constexpr, IS_SPREAD: tl.constexpr):  # fmt: skip
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    y += first
    grad += first
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    if IS_TILE:
        i = tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        g = tl.load(grad + offsets + i * stride, mask=mask, other=0).to(ACC)
        value = tl.load(y + offsets + i * stride, mask=mask, other=0).to(ACC)
        total = tl.sum(g if IS_LOG else g * value, axis=1, keep_dims=True)
        result = g - tl.exp(value) * total if IS_LOG else value * (g - total)
        tl.store(out + offsets + i * stride, result, mask=mask)
        return
    total = tl.zeros((LANES, BLOCK if IS_SPREAD else 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        g = tl.load(grad + offsets + i * stride, mask=mask, other=0).to(ACC)
        if not IS_LOG:
            g *= tl.load(y + offsets + i * stride, mask=mask, other=0).to(ACC)
        total += g if IS_SPREAD else tl.sum(g, axis=1, keep_dims=True)
    if IS_SPREAD:
        total = tl.sum(total, axis=1, keep_dims=True)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        g = tl.load(grad + offsets + i * stride, mask=mask).to(ACC)
        value = tl.load(y + offsets + i * stride, mask=mask).to(ACC)
        result = g - tl.exp(value) * total if IS_LOG else value * (g - total)
        tl.store(out + offsets + i * stride, result, mask=mask)
