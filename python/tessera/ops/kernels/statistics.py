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
def larger(a, i, m, b, j, n):
    """The larger of two values, its first place and how often it is there. A NaN is the largest."""
    is_same = (a == b) | ((a != a) & (b != b))
    is_first = (a > b) | ((a != a) & (b == b))
    place = tl.where(is_same, tl.minimum(i, j), tl.where(is_first, i, j))
    count = tl.where(is_same, m + n, tl.where(is_first, m, n))
    return tl.where(is_same | is_first, a, b), place, count


@jit
def larger_is_better(x, mask, IS_MAX: tl.constexpr):
    """Elements of which the largest is wanted; others are less than all."""
    return tl.where(mask, x if IS_MAX else -x, float("-inf"))


@jit
def counted_extremum_kernel(x, top, place, count, length, lanes, lane_stride, stride, slab_stride, blocks,
                            LANES: tl.constexpr, BLOCK: tl.constexpr, IS_MAX: tl.constexpr):  # fmt: skip
    """The extremum of each line, its first place, and how many elements are equal to it: none to a NaN."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    i = tl.arange(0, BLOCK)[None, :] + tl.zeros((LANES, 1), tl.int32)
    mask = in_lane & (i < length)
    best = larger_is_better(tl.load(x + offsets + i * stride, mask=mask), mask, IS_MAX)
    at, equal = tl.where(mask, i, length), mask.to(tl.int32)
    for start in range(BLOCK, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        new = larger_is_better(tl.load(x + offsets + i * stride, mask=mask), mask, IS_MAX)
        # Places grow, so an element has to be larger than the one before it.
        is_larger = (new > best) | ((new != new) & (best == best))
        equal = tl.where(is_larger, 1, equal + (mask & (new == best)).to(tl.int32))
        best, at = tl.where(is_larger, new, best), tl.where(is_larger, i, at)
    best, at, equal = tl.reduce((best, at, equal), 1, larger)
    number = line_number(lanes, lane, slab, LANES)
    in_lane = lane + tl.arange(0, LANES) < lanes
    tl.store(top + number, best if IS_MAX else -best, mask=in_lane)
    tl.store(place + number, at, mask=in_lane)
    tl.store(count + number, tl.where(best == best, equal, 0), mask=in_lane)


@jit
def extremum_gradient_kernel(x, top, place, count, grad, out, parts, length, lanes, lane_stride, stride, slab_stride,
                             blocks, LANES: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The gradient of each line's extremum, which is shared by the elements that are equal to it.

    A line has `parts` of the length, each in a slab. It is read only if several elements, or none, are equal to
    an extremum of the program.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    number = line_number(lanes, lane, slab // parts, LANES)[:, None]
    at = tl.load(place + number, mask=in_lane) - slab % parts * length
    equal = tl.load(count + number, mask=in_lane, other=1)
    extremum = tl.load(top + number, mask=in_lane)
    # 0 / 0 if no element is equal to an extremum that is NaN, as in torch.
    share = tl.load(grad + number, mask=in_lane).to(ACC)
    share, rest = share / equal, 0.0 * share / equal
    is_unique = tl.max((equal != 1).to(tl.int32)) == 0
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        if is_unique:
            tl.store(out + offsets + i * stride, tl.where(i == at, share, rest), mask=mask)
        else:
            value = tl.load(x + offsets + i * stride, mask=mask)
            tl.store(
                out + offsets + i * stride, tl.where(value == extremum, share, rest), mask=mask
            )


@jit
def squares_kernel(x, out, count, parts, BLOCK: tl.constexpr, ACC: tl.constexpr):
    """The sum of the squares of every part-th tile, of `parts` programs."""
    total = tl.zeros((BLOCK,), ACC)
    for start in range(tl.program_id(0) * BLOCK, count, parts * BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(x + i, mask=i < count, other=0.0).to(ACC)
        total += value * value
    tl.store(out + tl.program_id(0), tl.sum(total))


@jit
def root_of_sum_kernel(parts, out, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(parts + i, mask=i < count, other=0.0))
    tl.store(out, tl.sqrt(total).to(out.dtype.element_ty))
