# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting lines by int64 keys: 32 bits in the order of the elements, and the place below them.

A line is a tile. Keys of 64 bits are sorted twice, by the lower half first. A few elements are selected
without sorting the line (`select_kernel`).
"""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line
from tessera.runtime.jit import jit


@jit
def ordered_bits(value):
    """An integer as wide as the value (at least 32 bits), in the order of the values. NaN is the largest,
    and -0 is equal to 0."""
    if value.dtype == tl.float64:
        bits = tl.where(value == 0, 0.0, value).to(tl.int64, bitcast=True)
        return tl.where(
            value != value, 0x7FF8000000000000, tl.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)
        )
    elif value.dtype.is_floating():
        bits = tl.where(value == 0, 0.0, value).to(tl.float32).to(tl.int32, bitcast=True)
        return tl.where(value != value, 0x7FC00000, tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits))
    elif value.dtype == tl.uint64:
        return (value ^ 0x8000000000000000).to(tl.int64, bitcast=True)
    elif value.dtype == tl.uint32:
        return (value ^ 0x80000000).to(tl.int32, bitcast=True)
    elif value.dtype == tl.int64:
        return value
    else:
        return value.to(tl.int32)


@jit
def sorted_places(key, i, KEPT: tl.constexpr):
    """The places of the KEPT smallest int32 keys in their order; equal keys stay in theirs."""
    order = (key.to(tl.int64) << 32) + i
    if 2 * KEPT <= key.shape[1]:
        order = tl.topk(order, KEPT, dim=1, descending=False)
    else:
        order = tl.sort(order, dim=1)
    return (order & 0xFFFFFFFF).to(tl.int32)


@jit
def sort_kernel(x, out, places, length, lanes, lane_stride, stride, slab_stride, blocks,
                LANES: tl.constexpr, BLOCK: tl.constexpr, count, out_lane_stride, out_slab_stride,
                KEPT: tl.constexpr, IS_DESCENDING: tl.constexpr):  # fmt: skip
    """Stores the first `count` elements in order, and their places. The sort is stable.

    KEPT is BLOCK, or a power of 2 that is less, and not less than `count`.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    lines, i = tl.arange(0, LANES)[:, None], tl.arange(0, BLOCK)[None, :]
    mask = (lane + lines < lanes) & (i < length)
    key = ordered_bits(tl.load(x + first + lines * lane_stride + i * stride, mask=mask))
    if IS_DESCENDING:
        key = ~key
    # Elements behind the end have the largest key, and come after others that have it.
    if key.dtype == tl.int64:
        low = tl.where(i < length, (key ^ 0x80000000).to(tl.int32), 0x7FFFFFFF)
        high = tl.where(i < length, (key >> 32).to(tl.int32), 0x7FFFFFFF)
        by_low = sorted_places(low, i, BLOCK)
        place = tl.gather(by_low, sorted_places(tl.gather(high, by_low, 1), i, KEPT), 1)
    else:
        place = sorted_places(tl.where(i < length, key, 0x7FFFFFFF), i, KEPT)
    i = tl.arange(0, KEPT)[None, :]
    begin = slab.to(tl.int64) * out_slab_stride + lane.to(tl.int64) * out_lane_stride
    to = begin + lines * out_lane_stride + i * stride
    kept = (lane + lines < lanes) & (i < count)
    chosen = tl.load(x + first + lines * lane_stride + place * stride, mask=kept)
    tl.store(out + to, chosen, mask=kept)
    tl.store(places + to, place, mask=kept)


@jit
def selection_keys(x, i, length, stride, IS_DESCENDING: tl.constexpr):
    """Keys by which the first elements are the smallest; those behind the end come last."""
    key = ordered_bits(tl.load(x + i * stride, mask=i < length))
    if IS_DESCENDING:
        key = ~key
    return (tl.where(i < length, key, 0x7FFFFFFF).to(tl.int64) << 32) + i


@jit
def select_kernel(x, out, places, length, lanes, lane_stride, stride, slab_stride, blocks,
                  LANES: tl.constexpr, BLOCK: tl.constexpr, count, out_lane_stride, out_slab_stride,
                  CHUNKS: tl.constexpr, IS_DESCENDING: tl.constexpr):  # fmt: skip
    """Stores the first `count` elements of a line (LANES is 1) in order, and their places.

    Chunk c has the elements c, c + CHUNKS, and so on. The first element of each chunk is known. If one is
    stored, the chunk's next element is looked for: its elements before that have been stored.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    to = slab.to(tl.int64) * out_slab_stride + lane.to(tl.int64) * out_lane_stride
    chunk = tl.arange(0, CHUNKS)
    rows = tl.arange(0, BLOCK // CHUNKS)
    i = rows[:, None] * CHUNKS + chunk[None, :]
    firsts = tl.min(selection_keys(x, i, length, stride, IS_DESCENDING), axis=0)
    for number in range(count):
        key = tl.min(firsts, axis=0)
        place = (key & 0xFFFFFFFF).to(tl.int32)
        tl.store(out + to + number * stride, tl.load(x + place * stride))
        tl.store(places + to + number * stride, place)
        keys = selection_keys(x, rows * CHUNKS + place % CHUNKS, length, stride, IS_DESCENDING)
        following = tl.min(tl.where(keys > key, keys, 0x7FFFFFFFFFFFFFFF), axis=0)
        firsts = tl.where(chunk == place % CHUNKS, following, firsts)
