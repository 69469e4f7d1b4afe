# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statistics of lines in one pass: each element of a tile has its own, and they are combined at the end."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line, lane_offsets, line_number
from tessera.ops.kernels.softmaxes import finite, spread_statistics
from tessera.runtime.jit import jit


@jit
def moments_of_lines_kernel(x, variance, mean, divisor: tl.float64, length, lanes, lane_stride, stride, slab_stride,
                            blocks, LANES: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr,
                            IS_TILE: tl.constexpr):  # fmt: skip
    """The sum of squared distances to the mean by the divisor, and the mean.

    IS_TILE: a line has at most BLOCK elements.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    column = tl.arange(0, BLOCK)[None, :]
    # Distances to the first element: sums of numbers that are near each other, and far from 0, lose digits.
    base = tl.load(x + offsets, mask=in_lane & (length > 0), other=0).to(ACC)
    if IS_TILE:
        mask = in_lane & (column < length)
        value = tl.load(x + offsets + column * stride, mask=mask, other=0).to(ACC) - base
        value = tl.where(mask, value, 0.0)
        average = tl.sum(value, axis=1, keep_dims=True) / length
        squares = tl.where(mask, (value - average) * (value - average), 0.0)
    else:
        means, squares = tl.zeros((LANES, BLOCK), ACC), tl.zeros((LANES, BLOCK), ACC)
        for start in range(0, length, BLOCK):
            i = start + column
            value = (
                tl.load(x + offsets + i * stride, mask=in_lane & (i < length), other=0).to(ACC)
                - base
            )
            distance = tl.where(i < length, value - means, 0.0)
            means += distance * (1.0 / (start // BLOCK + 1).to(ACC))
            squares += distance * (value - means)
        count = tl.cdiv(length - tl.minimum(column, length), BLOCK)
        average = tl.sum(means * count, axis=1, keep_dims=True) / length
        squares += tl.where(count > 0, (means - average) * (means - average) * count, 0.0)
    number = line_number(lanes, lane, slab, LANES)
    in_lane = lane + tl.arange(0, LANES) < lanes
    tl.store(variance + number, tl.sum(squares, axis=1) / divisor.to(ACC), mask=in_lane)
    tl.store(mean + number, (base + average).reshape(LANES), mask=in_lane)


@jit
def logsumexp_kernel(x, out, length, lanes, lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr,
                     BLOCK: tl.constexpr, ACC: tl.constexpr, IS_TILE: tl.constexpr):  # fmt: skip
    """The logarithm of the sum of the exponentials of each line. IS_TILE: it has at most BLOCK elements."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    column = tl.arange(0, BLOCK)[None, :]
    if IS_TILE:
        mask = in_lane & (column < length)
        value = tl.load(x + offsets + column * stride, mask=mask, other=float("-inf")).to(ACC)
        base = finite(tl.max(value, axis=1, keep_dims=True))
        total = tl.sum(tl.exp(value - base), axis=1, keep_dims=True)
    else:
        base, total = spread_statistics(x, offsets, in_lane, length, stride, ACC, BLOCK)
    result = (base + tl.log(total)).to(out.dtype.element_ty)
    number = line_number(lanes, lane, slab, LANES)
    tl.store(out + number, result.reshape(LANES), mask=lane + tl.arange(0, LANES) < lanes)


@jit
def extremum_gradient_kernel(x, top, grad, out, length, lanes, lane_stride, stride, slab_stride, blocks,
                             LANES: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr,
                             IS_TILE: tl.constexpr):  # fmt: skip
    """The gradient of each line's extremum, which is shared by the elements that are equal to it.

    IS_TILE: a line has at most BLOCK elements, and is read once.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    column = tl.arange(0, BLOCK)[None, :]
    number = line_number(lanes, lane, slab, LANES)[:, None]
    extremum = tl.load(top + number, mask=in_lane)
    share = tl.load(grad + number, mask=in_lane).to(ACC)
    if IS_TILE:
        mask = in_lane & (column < length)
        value = tl.load(x + offsets + column * stride, mask=mask)
        is_equal = mask & (value == extremum)
        # 0 / 0 if no element is equal to an extremum that is NaN, as in torch.
        count = tl.sum(is_equal.to(ACC), axis=1, keep_dims=True)
        tl.store(
            out + offsets + column * stride,
            tl.where(is_equal, share, 0.0 * share) / count,
            mask=mask,
        )
        return
    counts = tl.zeros((LANES, BLOCK), ACC)
    for start in range(0, length, BLOCK):
        i = start + column
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + i * stride, mask=mask)
        counts += (mask & (value == extremum)).to(ACC)
    count = tl.sum(counts, axis=1, keep_dims=True)
    equal, other = share / count, 0.0 * share / count
    for start in range(0, length, BLOCK):
        i = start + column
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + i * stride, mask=mask)
        tl.store(out + offsets + i * stride, tl.where(value == extremum, equal, other), mask=mask)
