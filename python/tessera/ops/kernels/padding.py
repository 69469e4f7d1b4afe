# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies from other places: padding and rolling along up to four dimensions, and parts of a whole."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line
from tessera.runtime.jit import jit


@jit
def source_place(i, extent, before, KIND: tl.constexpr):
    """The index that element i of a padded line is read from. A constant's is outside of the extent."""
    i -= before
    if KIND == "reflect":
        i = tl.abs(i)
        return tl.where(i < extent, i, 2 * (extent - 1) - i)
    elif KIND == "replicate":
        return tl.minimum(tl.maximum(i, 0), extent - 1)
    elif KIND == "circular":
        return tl.where(i < 0, i + extent, tl.where(i >= extent, i - extent, i))
    else:
        return i


@jit
def pad_kernel(x, out, rows, size1, size2, size3, extent0, extent1, extent2, extent3, before0, before1,
               before2, before3, value: tl.float64, ROWS: tl.constexpr, BLOCK: tl.constexpr,
               KIND: tl.constexpr):  # fmt: skip
    """Pads four dimensions of the extents to the sizes. Only a constant has indices that are outside."""
    columns = tl.cdiv(size3, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = source_place(row // size2 // size1, extent0, before0, KIND)
    b = source_place(row // size2 % size1, extent1, before1, KIND)
    c = source_place(row % size2, extent2, before2, KIND)
    d = source_place(column, extent3, before3, KIND)
    inside = (a >= 0) & (a < extent0) & (b >= 0) & (b < extent1)
    inside &= (c >= 0) & (c < extent2) & (d >= 0) & (d < extent3)
    mask = (row < rows) & (column < size3)
    place = ((a.to(tl.int64) * extent1 + b) * extent2 + c) * extent3 + d
    found = tl.load(x + place, mask=mask & inside, other=0)
    if KIND == "constant":
        found = tl.where(inside, found, value.to(x.dtype.element_ty))
    tl.store(out + row.to(tl.int64) * size3 + column, found, mask=mask)


@jit
def padded_element(grad, i, size, stride, mask, ACC: tl.constexpr):
    return tl.load(grad + i * stride, mask=mask & (i >= 0) & (i < size), other=0.0).to(ACC)


@jit
def pad_backward_kernel(grad, out, size, grad_lane_stride, grad_slab_stride, before, length, lanes,
                        lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr, BLOCK: tl.constexpr,
                        ACC: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """out[i] is the sum of the `size` elements of grad that padding has read from element i."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    lines = tl.arange(0, LANES)[:, None]
    grad += slab.to(tl.int64) * grad_slab_stride + lane.to(tl.int64) * grad_lane_stride
    grad += lines * grad_lane_stride
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (lane + lines < lanes) & (i < length)
        total = padded_element(grad, i + before, size, stride, mask, ACC)
        if KIND == "reflect":
            total += padded_element(grad, before - i, size, stride, mask & (i > 0), ACC)
            mirrored = before + 2 * (length - 1) - i
            total += padded_element(grad, mirrored, size, stride, mask & (i < length - 1), ACC)
        elif KIND == "circular":
            total += padded_element(grad, i + before - length, size, stride, mask, ACC)
            total += padded_element(grad, i + before + length, size, stride, mask, ACC)
        else:
            if start == 0:
                for j in range(0, before):
                    total += padded_element(grad, j + 0 * i, size, stride, mask & (i == 0), ACC)
            if start + BLOCK >= length:
                for j in range(before + length, size):
                    is_last = mask & (i == length - 1)
                    total += padded_element(grad, j + 0 * i, size, stride, is_last, ACC)
        tl.store(out + first + lines * lane_stride + i * stride, total, mask=mask)


@jit
def copy_part_kernel(x, out, rows, length, out_length, begin, ROWS: tl.constexpr,
                     BLOCK: tl.constexpr):  # fmt: skip
    """out[r, begin + i] = x[r, i], where a row of out has `out_length` elements."""
    columns = tl.cdiv(length, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (i < length)
    value = tl.load(x + row.to(tl.int64) * length + i, mask=mask)
    tl.store(out + row.to(tl.int64) * out_length + begin + i, value, mask=mask)
