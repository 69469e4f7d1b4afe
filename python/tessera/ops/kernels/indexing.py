# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and additions at indices that are in arrays.

An index that is not in an array reads 0, and adds nothing.
"""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line, row_bounds
from tessera.runtime.jit import jit


@jit
def gather_kernel(x, index, out, extent, x_lane_stride, x_slab_stride, length, lanes, lane_stride, stride,
                  slab_stride, blocks, LANES: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """out[line, i] = x[line, index[line, i]], of `extent` elements."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += slab.to(tl.int64) * x_slab_stride + lane.to(tl.int64) * x_lane_stride
    lines = tl.arange(0, LANES)[:, None]
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (lane + lines < lanes) & (i < length)
        offsets = first + lines * lane_stride + i * stride
        at = tl.load(index + offsets, mask=mask)
        inside = mask & (at >= 0) & (at < extent)
        value = tl.load(x + lines * x_lane_stride + at * stride, mask=inside, other=0)
        tl.store(out + offsets, value, mask=mask)


@jit
def scatter_kernel(source, index, out, extent, x_lane_stride, x_slab_stride, length, lanes,
                   lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr, BLOCK: tl.constexpr,
                   KIND: tl.constexpr, FILL: tl.constexpr):  # fmt: skip
    """Combines source[line, i] with out[line, index[line, i]], or counts them there, or stores them.

    No other program has the same line, so the scope of the atomics is the program. FILL: lines of zeros are
    stored first, which are in a cache when elements are added.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    begin = slab.to(tl.int64) * x_slab_stride + lane.to(tl.int64) * x_lane_stride
    lines = tl.arange(0, LANES)[:, None]
    if FILL:
        for start in range(0, extent, BLOCK):
            i = start + tl.arange(0, BLOCK)[None, :]
            zeros = tl.zeros((LANES, BLOCK), out.dtype.element_ty)
            to = begin + lines * x_lane_stride + i * stride
            tl.store(out + to, zeros, mask=(lane + lines < lanes) & (i < extent))
        tl.debug_barrier()
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (lane + lines < lanes) & (i < length)
        offsets = first + lines * lane_stride + i * stride
        at = tl.load(index + offsets, mask=mask, other=-1)
        inside = mask & (at >= 0) & (at < extent)
        value = tl.load(source + offsets, mask=inside).to(out.dtype.element_ty)
        to = begin + lines * x_lane_stride + at * stride
        if KIND == "store":
            tl.store(out + to, value, mask=inside)
        elif KIND == "count":
            tl.atomic_add(out + to, 1, mask=inside, sem="relaxed", scope="cta")
        elif KIND == "amax":
            tl.atomic_max(out + to, value, mask=inside, sem="relaxed", scope="cta")
        elif KIND == "amin":
            tl.atomic_min(out + to, value, mask=inside, sem="relaxed", scope="cta")
        else:
            tl.atomic_add(out + to, value, mask=inside, sem="relaxed", scope="cta")


@jit
def select_rows_kernel(x, index, out, rows, selected, extent, length, ROWS: tl.constexpr,
                       BLOCK: tl.constexpr):  # fmt: skip
    """out[o, j, :] = x[o, index[j], :], of `selected` rows j for each o, and `extent` rows in x."""
    columns = tl.cdiv(length, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)[None, :]
    at = tl.load(index + row % selected, mask=row < rows, other=-1).to(tl.int64)
    mask = (row < rows) & (i < length)
    place = (row // selected * extent + at) * length + i
    value = tl.load(x + place, mask=mask & (at >= 0) & (at < extent), other=0)
    tl.store(out + row.to(tl.int64) * length + i, value, mask=mask)


@jit
def add_rows_kernel(source, index, out, rows, selected, extent, length, factor: tl.float64,
                    ROWS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Adds factor * source[o, j, :] to out[o, index[j], :]."""
    columns = tl.cdiv(length, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)[None, :]
    at = tl.load(index + row % selected, mask=row < rows, other=-1).to(tl.int64)
    mask = (row < rows) & (i < length) & (at >= 0) & (at < extent)
    value = tl.load(source + row.to(tl.int64) * length + i, mask=mask).to(out.dtype.element_ty)
    if out.dtype.element_ty.is_floating():
        value *= factor.to(out.dtype.element_ty)
    place = (row // selected * extent + at) * length + i
    tl.atomic_add(out + place, value, mask=mask)


@jit
def add_rows_in_order_kernel(source, index, out, selected, extent, length, factor: tl.float64,
                             BLOCK: tl.constexpr):  # fmt: skip
    """The same, with a program for some columns of all rows, which adds without atomics between threads."""
    columns = tl.cdiv(length, BLOCK)
    outer = tl.program_id(0) // columns
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)
    for j in range(selected):
        at = tl.load(index + j).to(tl.int64)
        mask = (i < length) & (at >= 0) & (at < extent)
        row = (outer * selected + j).to(tl.int64)
        value = tl.load(source + row * length + i, mask=mask).to(out.dtype.element_ty)
        if out.dtype.element_ty.is_floating():
            value *= factor.to(out.dtype.element_ty)
        to = out + (outer.to(tl.int64) * extent + at) * length + i
        tl.atomic_add(to, value, mask=mask, sem="relaxed", scope="cta")


@jit
def segment_kernel(x, begins, out, count, length, BLOCK: tl.constexpr, ACC: tl.constexpr,
                   KIND: tl.constexpr):  # fmt: skip
    """Reduces the rows of x from begins[s] to begins[s + 1], of `count` in all."""
    columns = tl.cdiv(length, BLOCK)
    segment = tl.program_id(0) // columns
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)
    begin, end = row_bounds(begins, segment, count)
    neutral = float("-inf") if KIND == "max" else float("inf") if KIND == "min" else 0.0
    total = tl.full((BLOCK,), neutral, ACC)
    for row in range(begin, end):
        value = tl.load(x + row.to(tl.int64) * length + i, mask=i < length, other=neutral).to(ACC)
        if KIND == "max":
            total = tl.maximum(total, value, propagate_nan=tl.PropagateNan.ALL)
        elif KIND == "min":
            total = tl.minimum(total, value, propagate_nan=tl.PropagateNan.ALL)
        else:
            total += value
    if KIND == "mean":
        total = total / tl.maximum(end - begin, 0)  # NaN of no rows
    tl.store(out + segment.to(tl.int64) * length + i, total, mask=i < length)


@jit
def segment_backward_kernel(grad, begins, out, count, length, BLOCK: tl.constexpr,
                            KIND: tl.constexpr):  # fmt: skip
    """Hands the gradient of each segment to its rows."""
    columns = tl.cdiv(length, BLOCK)
    segment = tl.program_id(0) // columns
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)
    begin, end = row_bounds(begins, segment, count)
    value = tl.load(grad + segment.to(tl.int64) * length + i, mask=i < length).to(
        out.dtype.element_ty
    )
    if KIND == "mean":
        value = value / tl.maximum(end - begin, 1)
    for row in range(begin, end):
        tl.store(out + row.to(tl.int64) * length + i, value, mask=i < length)


@jit
def one_hot_kernel(index, out, rows, classes, BLOCK: tl.constexpr):
    columns = tl.cdiv(classes, BLOCK)
    row = tl.program_id(0) // columns
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)
    tl.store(
        out + row.to(tl.int64) * classes + i,
        (i == tl.load(index + row)).to(tl.int64),
        mask=i < classes,
    )
