# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scans along lines: tiles one after the other, with the last result carried on."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line, lane_offsets
from tessera.ops.kernels.sorting import ordered_bits
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
    return tl.maximum(a, b)


@jit
def ordered_key(value, IS_MAX: tl.constexpr):
    """An integer in the order of the values, or in the opposite one. A NaN has the largest."""
    key = ordered_bits(value)
    if IS_MAX:
        return key
    elif value.dtype.is_floating():
        return tl.where(value != value, key, -key)
    else:
        return ~key


@jit
def value_of_key(key, dtype: tl.constexpr, IS_MAX: tl.constexpr):
    """The value that has a key of ordered_key."""
    if dtype.is_floating():
        limit: tl.constexpr = 0x7FFFFFFFFFFFFFFF if dtype == tl.float64 else 0x7FFFFFFF
        nan: tl.constexpr = 0x7FF8000000000000 if dtype == tl.float64 else 0x7FC00000
        if not IS_MAX:
            key = tl.where(key == nan, key, -key)
        bits = tl.where(key < 0, key ^ limit, key)
        return bits.to(tl.float64 if dtype == tl.float64 else tl.float32, bitcast=True).to(dtype)
    else:
        if not IS_MAX:
            key = ~key
        if dtype == tl.uint64:
            return key.to(tl.uint64, bitcast=True) ^ 0x8000000000000000
        elif dtype == tl.uint32:
            return key.to(tl.uint32, bitcast=True) ^ 0x80000000
        else:
            return key.to(dtype)


@jit
def extremum_scan_kernel(x, out, places, length, lanes, lane_stride, stride, slab_stride, blocks,
                         LANES: tl.constexpr, BLOCK: tl.constexpr, IS_MAX: tl.constexpr):  # fmt: skip
    """The largest or smallest element so far, and its last place.

    An element that is equal to the extremum so far is at its last place, and so is each NaN. Scans are of
    integers, whose maximum is one instruction.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    places += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    dtype: tl.constexpr = x.dtype.element_ty
    carried = ordered_key(tl.load(x + offsets, mask=in_lane & (length > 0)), IS_MAX)
    carried_place = tl.zeros((LANES, 1), tl.int32)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        key = ordered_key(
            tl.load(x + offsets + tl.where(i < length, i, 0) * stride, mask=in_lane), IS_MAX
        )
        so_far = tl.maximum(carried, tl.associative_scan(key, 1, larger))
        place = tl.where(key == so_far, i, 0)
        place = tl.maximum(carried_place, tl.associative_scan(place, 1, larger))
        tl.store(out + offsets + i * stride, value_of_key(so_far, dtype, IS_MAX), mask=mask)
        tl.store(places + offsets + i * stride, place, mask=mask)
        carried = tl.max(so_far, axis=1, keep_dims=True)
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
