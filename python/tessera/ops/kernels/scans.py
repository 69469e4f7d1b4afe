# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scans along lines: tiles one after the other, with the last result carried on."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line
from tessera.ops.kernels.reductions import better_max, better_min
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
    """Sums ("sum"), products ("prod") or logarithms of sums ("logsumexp") of the elements so far."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    lines = tl.arange(0, LANES)[:, None]
    offsets, in_lane = lines * lane_stride, lane + lines < lanes
    neutral = 0.0 if KIND == "sum" else 1.0 if KIND == "prod" else float("-inf")
    carried = tl.full((LANES, 1), neutral, ACC)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)[None, :]
        i = length - 1 - at if IS_REVERSED else at
        mask = in_lane & (at < length)
        value = tl.load(x + offsets + i * stride, mask=mask, other=neutral).to(ACC)
        if KIND == "sum":
            value = tl.associative_scan(value, 1, add) + carried
        elif KIND == "prod":
            value = tl.associative_scan(value, 1, multiply) * carried
        else:
            value = log_add(tl.associative_scan(value, 1, log_add), carried)
        tl.store(out + offsets + i * stride, value, mask=mask)
        is_last = tl.arange(0, BLOCK)[None, :] == BLOCK - 1
        carried = tl.sum(tl.where(is_last, value, 0), axis=1, keep_dims=True).to(ACC)


@jit
def extremum_scan_kernel(x, out, places, length, lanes, lane_stride, stride, slab_stride, blocks,
                         LANES: tl.constexpr, BLOCK: tl.constexpr, IS_MAX: tl.constexpr):  # fmt: skip
    """The largest or smallest element so far, and its last place."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    places += first
    lines = tl.arange(0, LANES)[:, None]
    offsets, in_lane = lines * lane_stride, lane + lines < lanes
    # The first element begins, at a place that comes before all: of equal elements the last is taken.
    carried = tl.load(x + offsets, mask=in_lane)
    carried_place = tl.full((LANES, 1), 1, tl.int32)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        value = tl.load(x + offsets + tl.where(i < length, i, 0) * stride, mask=in_lane)
        # Places are negative, so that the first of equals is the last one.
        place = -i + tl.zeros((LANES, BLOCK), tl.int32)
        if IS_MAX:
            value, place = tl.associative_scan((value, place), 1, better_max)
            value, place = better_max(carried, carried_place, value, place)
        else:
            value, place = tl.associative_scan((value, place), 1, better_min)
            value, place = better_min(carried, carried_place, value, place)
        tl.store(out + offsets + i * stride, value, mask=mask)
        tl.store(places + offsets + i * stride, -place, mask=mask)
        is_last = tl.arange(0, BLOCK)[None, :] == BLOCK - 1
        carried = tl.sum(tl.where(is_last, value, 0), axis=1, keep_dims=True).to(value.dtype)
        carried_place = tl.sum(tl.where(is_last, place, 0), axis=1, keep_dims=True)
