# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scans along lines: tiles one after the other, with the last result carried on."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line, lane_offsets
from tessera.runtime.jit import jit


@jit
def add(a, b):
    return a + b


@jit
def multiply(a, b):
    return a * b


@jit
def log_add(a, b):
    """log(exp(a) + exp(b))."""
    top = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    base = tl.where(tl.abs(top) == float("inf"), 0.0, top)
    return tl.where(top == float("inf"), top, base + tl.log(tl.exp(a - base) + tl.exp(b - base)))


@jit
def scan_kernel(x, out, length, lanes, lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr,
                BLOCK: tl.constexpr, ACC: tl.constexpr, KIND: tl.constexpr,
                IS_REVERSED: tl.constexpr):  # fmt: skip
    """Sums ("sum") or products ("prod") of the elements so far."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    neutral = 0.0 if KIND == "sum" else 1.0
    carried = tl.full((LANES, 1), neutral, ACC)
    tiles = tl.cdiv(length, BLOCK)
    for number in range(tiles):
        # From the last tile to the first, each read forwards, for sums that go backwards.
        start = (tiles - 1 - number if IS_REVERSED else number) * BLOCK
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + i * stride, mask=mask, other=neutral).to(ACC)
        if KIND == "sum":
            value = tl.associative_scan(value, 1, add, reverse=IS_REVERSED) + carried
        else:
            value = tl.associative_scan(value, 1, multiply, reverse=IS_REVERSED) * carried
        tl.store(out + offsets + i * stride, value, mask=mask)
        is_last = tl.arange(0, BLOCK)[None, :] == (0 if IS_REVERSED else BLOCK - 1)
        carried = tl.sum(tl.where(is_last, value, 0), axis=1, keep_dims=True).to(ACC)


LOG_RANGE = tl.constexpr(16.0)
"""So far may the first element of a tile be below the largest one, for sums of exponentials without loss."""


@jit
def is_near(value, carried, top, i, in_lane, BLOCK: tl.constexpr, IS_REVERSED: tl.constexpr):
    """True if the first term of each line is near the largest one. Zeros before it are no terms."""
    order = BLOCK - i if IS_REVERSED else i
    order = tl.where(value == float("-inf"), BLOCK + 1, order)
    is_first = order == tl.min(order, axis=1, keep_dims=True)
    term = tl.max(tl.where(is_first, value, float("-inf")), axis=1, keep_dims=True)
    found = (tl.maximum(term, carried) >= top - LOG_RANGE) & (top < float("inf"))
    return tl.min((found | ~in_lane).to(tl.int32)) > 0


@jit
def log_scan_kernel(x, out, length, lanes, lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr,
                    BLOCK: tl.constexpr, ACC: tl.constexpr, IS_REVERSED: tl.constexpr):  # fmt: skip
    """Logarithms of the sums of the exponentials of the elements so far.

    Sums are relative to the largest element of a tile and what is before it. If the first term of a line
    is too small for that, the tile is a scan of logarithms.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    carried = tl.full((LANES, 1), float("-inf"), ACC)
    tiles = tl.cdiv(length, BLOCK)
    for number in range(tiles):
        start = (tiles - 1 - number if IS_REVERSED else number) * BLOCK
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + i * stride, mask=mask, other=float("-inf")).to(ACC)
        top = tl.maximum(tl.max(value, axis=1, keep_dims=True), carried)
        base = tl.where(top == float("-inf"), 0.0, top)
        if BLOCK == 1:
            value = log_add(value, carried)
        elif is_near(value, carried, top, i - start, in_lane, BLOCK, IS_REVERSED):
            sums = tl.associative_scan(tl.exp(value - base), 1, add, reverse=IS_REVERSED)
            value = base + tl.log(sums + tl.exp(carried - base))
        else:
            value = log_add(tl.associative_scan(value, 1, log_add, reverse=IS_REVERSED), carried)
        tl.store(out + offsets + i * stride, value, mask=mask)
        is_last = tl.arange(0, BLOCK)[None, :] == (0 if IS_REVERSED else BLOCK - 1)
        carried = tl.sum(tl.where(is_last, value, 0), axis=1, keep_dims=True).to(ACC)


@jit
def larger(a, b):
    """The maximum; a NaN if there is one. Two selects are one instruction and a half on a CPU."""
    return tl.where(b != b, b, tl.where(b > a, b, a))


@jit
def smaller(a, b):
    """The minimum; a NaN if there is one."""
    return tl.where(b != b, b, tl.where(b < a, b, a))


@jit
def extremum_scan_kernel(x, out, places, length, lanes, lane_stride, stride, slab_stride, blocks,
                         LANES: tl.constexpr, BLOCK: tl.constexpr, IS_MAX: tl.constexpr):  # fmt: skip
    """The largest or smallest element so far, and its last place.

    An element that is equal to the extremum so far is at its last place, and so is each NaN.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    places += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    combine: tl.constexpr = larger if IS_MAX else smaller
    carried = tl.load(x + offsets, mask=in_lane & (length > 0))
    carried_place = tl.zeros((LANES, 1), tl.int32)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + tl.where(i < length, i, 0) * stride, mask=in_lane)
        so_far = combine(carried, tl.associative_scan(value, 1, combine))
        place = tl.where((value == so_far) | (value != value), i, 0)
        place = tl.maximum(carried_place, tl.associative_scan(place, 1, larger))
        tl.store(out + offsets + i * stride, so_far, mask=mask)
        tl.store(places + offsets + i * stride, place, mask=mask)
        is_last = tl.arange(0, BLOCK)[None, :] == BLOCK - 1
        carried = tl.sum(tl.where(is_last, so_far, 0), axis=1, keep_dims=True).to(value.dtype)
        carried_place = tl.max(place, axis=1, keep_dims=True)


@jit
def add_in_run(total, is_end, value, is_value_end):
    """The sum from an element on to the end of its run, behind which are `total` and `is_end`."""
    return tl.where(is_value_end > 0, value, total + value), is_end | is_value_end


@jit
def extremum_gradient_kernel(grad, places, out, length, lanes, lane_stride, stride, slab_stride, blocks,
                             LANES: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The gradient of extremum_scan_kernel: the sum of each run of elements that have one place, at that place.

    A run begins at its place, so that sums go backwards, and nothing is added in memory.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    grad += first
    places += first
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    carried = tl.zeros((LANES, 1), ACC)
    tiles = tl.cdiv(length, BLOCK)
    for number in range(tiles):
        i = (tiles - 1 - number) * BLOCK + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        place = tl.load(places + offsets + i * stride, mask=mask, other=-1).to(tl.int32)
        following = tl.load(
            places + offsets + (i + 1) * stride, mask=in_lane & (i + 1 < length), other=-1
        ).to(tl.int32)
        value = tl.load(grad + offsets + i * stride, mask=mask, other=0).to(ACC)
        is_end = (following != place).to(tl.int32)
        total, has_end = tl.associative_scan((value, is_end), 1, add_in_run, reverse=True)
        total += tl.where(has_end > 0, 0.0, carried)
        tl.store(out + offsets + i * stride, tl.where(place == i, total, 0.0), mask=mask)
        is_first = tl.arange(0, BLOCK)[None, :] == 0
        carried = tl.sum(tl.where(is_first, total, 0.0), axis=1, keep_dims=True).to(ACC)
