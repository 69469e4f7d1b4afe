# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The place of the largest or smallest element of each line."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line, lane_offsets, line_number
from tessera.runtime.jit import jit


@jit
def better_max(a, i, b, j):
    """The larger of two values with places; a NaN is the largest, and the first of equals is taken."""
    is_first = (a > b) | ((a != a) & (b == b)) | (((a == b) | ((a != a) & (b != b))) & (i < j))
    return tl.where(is_first, a, b), tl.where(is_first, i, j)


@jit
def better_min(a, i, b, j):
    """The smaller of two values with places; a NaN is the smallest."""
    is_first = (a < b) | ((a != a) & (b == b)) | (((a == b) | ((a != a) & (b != b))) & (i < j))
    return tl.where(is_first, a, b), tl.where(is_first, i, j)


@jit
def extremum_place_kernel(x, out, length, lanes, lane_stride, stride, slab_stride, blocks,
                          LANES: tl.constexpr, BLOCK: tl.constexpr, IS_MAX: tl.constexpr):  # fmt: skip
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    # Columns of the tile that are behind the end have the first element, at a place that loses.
    i = tl.arange(0, BLOCK)[None, :] + tl.zeros((LANES, 1), tl.int32)
    value = tl.load(x + offsets + i * stride, mask=in_lane & (i < length))
    value = tl.where(i < length, value, tl.load(x + offsets, mask=in_lane))
    place = tl.minimum(i, length)
    for start in range(BLOCK, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        new = tl.load(x + offsets + i * stride, mask=in_lane & (i < length))
        # Places grow, so an element has to be better than the one before it.
        is_better = (new > value) if IS_MAX else (new < value)
        is_better = (is_better | (new != new)) & (value == value) & (i < length)
        value, place = tl.where(is_better, new, value), tl.where(is_better, i, place)
    if IS_MAX:
        value, place = tl.reduce((value, place), 1, better_max)
    else:
        value, place = tl.reduce((value, place), 1, better_min)
    number = line_number(lanes, lane, slab, LANES)
    tl.store(out + number, place, mask=lane + tl.arange(0, LANES) < lanes)
