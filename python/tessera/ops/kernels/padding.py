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
def store_padded(x, out, row, in_row, base, is_there, first, last, size3, extent3, before3, value,
                 EDGE: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """Stores the columns from first to last of rows, whose elements lie at other places than in a row of x."""
    for start in range(first, last, EDGE):
        column = start + tl.arange(0, EDGE)[None, :]
        d = source_place(column, extent3, before3, KIND)
        inside = is_there & (d >= 0) & (d < extent3)
        mask = in_row & (column < last)
        found = tl.load(x + base + d, mask=mask & inside, other=0)
        if KIND == "constant":
            found = tl.where(inside, found, value)
        tl.store(out + row.to(tl.int64) * size3 + column, found, mask=mask)


@jit
def pad_kernel(x, out, rows, size1, size2, size3, extent0, extent1, extent2, extent3, before0, before1,
               before2, before3, value: tl.float64, ROWS: tl.constexpr, BLOCK: tl.constexpr,
               EDGE: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """Pads four dimensions of the extents to the sizes. Only a constant has indices that are outside.

    A row is copied but for its ends, which are few elements at places of their own.
    """
    columns = tl.cdiv(size3, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    first = tl.program_id(0) % columns * BLOCK
    last = tl.minimum(first + BLOCK, size3)
    a = source_place(row // size2 // size1, extent0, before0, KIND)
    b = source_place(row // size2 % size1, extent1, before1, KIND)
    c = source_place(row % size2, extent2, before2, KIND)
    is_there = (a >= 0) & (a < extent0) & (b >= 0) & (b < extent1) & (c >= 0) & (c < extent2)
    base = ((a.to(tl.int64) * extent1 + b) * extent2 + c) * extent3
    fill, in_row = value.to(x.dtype.element_ty), row < rows

    column = first + tl.arange(0, BLOCK)[None, :]
    mask = in_row & (column >= before3) & (column < tl.minimum(last, before3 + extent3))
    found = tl.load(x + base + (column - before3), mask=mask & is_there, other=0)
    if KIND == "constant":
        found = tl.where(is_there, found, fill)
    tl.store(out + row.to(tl.int64) * size3 + column, found, mask=mask)
    store_padded(x, out, row, in_row, base, is_there, first, tl.minimum(last, before3), size3, extent3,
                 before3, fill, EDGE, KIND)  # fmt: skip
    store_padded(x, out, row, in_row, base, is_there, tl.maximum(first, before3 + extent3), last, size3,
                 extent3, before3, fill, EDGE, KIND)  # fmt: skip


@jit
def padded_element(grad, i, size, stride, mask, ACC: tl.constexpr):
    return tl.load(grad + i * stride, mask=mask & (i >= 0) & (i < size), other=0.0).to(ACC)


@jit
def numbers_along(COUNT: tl.constexpr, IS_LAST: tl.constexpr):
    """Numbers from 0 on along the last dimension of a tile, or along the first."""
    return tl.arange(0, COUNT)[None, :] if IS_LAST else tl.arange(0, COUNT)[:, None]


@jit
def store_end(grad, out, in_lane, first, last, size, before, length, stride, EDGE: tl.constexpr, ACC: tl.constexpr,
              KIND: tl.constexpr, IS_LAST: tl.constexpr):  # fmt: skip
    """Stores the sums of elements from first to last, which were read several times."""
    for start in range(first, last, EDGE):
        i = start + numbers_along(EDGE, IS_LAST)
        mask = in_lane & (i < last)
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
            if start + EDGE >= length:
                for j in range(before + length, size):
                    is_last = mask & (i == length - 1)
                    total += padded_element(grad, j + 0 * i, size, stride, is_last, ACC)
        tl.store(out + i * stride, total, mask=mask)


@jit
def pad_backward_kernel(grad, out, size, grad_lane_stride, grad_slab_stride, before, ends, length, lanes,
                        lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr, BLOCK: tl.constexpr,
                        EDGE: tl.constexpr, ACC: tl.constexpr, KIND: tl.constexpr,
                        IS_LAST: tl.constexpr):  # fmt: skip
    """out[i] is the sum of the `size` elements of grad that padding has read from element i.

    Those at both ends, `ends` each, may have been read several times. IS_LAST: elements of a line are
    neighbours; otherwise, lines are.
    """
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    lines = numbers_along(LANES, not IS_LAST)
    in_lane = lane + lines < lanes
    grad += slab.to(tl.int64) * grad_slab_stride + lane.to(tl.int64) * grad_lane_stride
    grad += lines * grad_lane_stride
    out += first + lines * lane_stride
    left, right = tl.minimum(ends, length), tl.maximum(length - ends, tl.minimum(ends, length))
    for start in range(0, length, BLOCK):
        i = start + numbers_along(BLOCK, IS_LAST)
        mask = in_lane & (i >= left) & (i < right)
        value = tl.load(grad + (i + before) * stride, mask=mask)
        tl.store(out + i * stride, value, mask=mask)
    store_end(grad, out, in_lane, 0, left, size, before, length, stride, EDGE, ACC, KIND, IS_LAST)
    store_end(
        grad, out, in_lane, right, length, size, before, length, stride, EDGE, ACC, KIND, IS_LAST
    )


@jit
def other_places(i, extent, before, KIND: tl.constexpr):
    """The places in a padded line, beside i + before, that element i is read to. They may be outside."""
    if KIND == "reflect":
        low = tl.where(i > 0, before - i, -1)
        return low, tl.where(i < extent - 1, before + 2 * (extent - 1) - i, -1)
    else:
        return i + before - extent, i + before + extent


@jit
def sum_of_rows(grad, place, low, high, column, size2, size3, mask, ACC: tl.constexpr):
    """The sum of up to three elements of a column of grad, in rows with these numbers."""
    total = tl.load(grad + place * size3 + column, mask=mask, other=0).to(ACC)
    is_low, is_high = (low >= 0) & (low < size2), (high >= 0) & (high < size2)
    total += tl.load(grad + low * size3 + column, mask=mask & is_low, other=0).to(ACC)
    total += tl.load(grad + high * size3 + column, mask=mask & is_high, other=0).to(ACC)
    return total


@jit
def store_columns(grad, out, place, low, high, in_row, first, last, size2, size3, extent3, before3, EDGE: tl.constexpr,
                  ACC: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """Stores the columns from first to last, which were read several times."""
    for start in range(first, last, EDGE):
        i = start + tl.arange(0, EDGE)[None, :]
        mask = in_row & (i < last)
        total = sum_of_rows(grad, place, low, high, i + before3, size2, size3, mask, ACC)
        left, right = other_places(i, extent3, before3, KIND)
        is_left, is_right = (left >= 0) & (left < size3), (right >= 0) & (right < size3)
        total += sum_of_rows(grad, place, low, high, left, size2, size3, mask & is_left, ACC)
        total += sum_of_rows(grad, place, low, high, right, size2, size3, mask & is_right, ACC)
        tl.store(out + i, total, mask=mask)


@jit
def pad_planes_backward_kernel(grad, out, rows, size2, size3, extent2, extent3, before2, before3, ends2, ends,
                               ROWS: tl.constexpr, BLOCK: tl.constexpr, EDGE: tl.constexpr, ACC: tl.constexpr,
                               KIND: tl.constexpr):  # fmt: skip
    """The same along the last two dimensions at once, where an element is read to up to three places of each.

    A row is a sum of up to three rows of grad, but for `ends` columns at both ends. From `ends2` rows away from
    both ends on, it is one row.
    """
    columns = tl.cdiv(extent3, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    first = tl.program_id(0) % columns * BLOCK
    last = tl.minimum(first + BLOCK, extent3)
    c, in_row = row % extent2, row < rows
    low, high = other_places(c, extent2, before2, KIND)
    grad += (row // extent2).to(tl.int64) * size2 * size3
    out += row.to(tl.int64) * extent3
    place, low, high = (c + before2).to(tl.int64), low.to(tl.int64), high.to(tl.int64)
    left = tl.minimum(ends, extent3)
    right = tl.maximum(extent3 - ends, left)
    i = first + tl.arange(0, BLOCK)[None, :]
    mask = in_row & (i >= left) & (i < tl.minimum(last, right))
    upper = tl.program_id(0) // columns * ROWS % extent2
    if (upper >= ends2) & (upper + ROWS <= extent2 - ends2):
        tl.store(out + i, tl.load(grad + place * size3 + i + before3, mask=mask), mask=mask)
    else:
        total = sum_of_rows(grad, place, low, high, i + before3, size2, size3, mask, ACC)
        tl.store(out + i, total, mask=mask)
    store_columns(grad, out, place, low, high, in_row, first, tl.minimum(last, left), size2, size3,
                  extent3, before3, EDGE, ACC, KIND)  # fmt: skip
    store_columns(grad, out, place, low, high, in_row, tl.maximum(first, right), last, size2, size3,
                  extent3, before3, EDGE, ACC, KIND)  # fmt: skip


@jit
def sum_of_range(grad, low, high, most, column, size3, mask, ACC: tl.constexpr):
    """The sum of the elements of a column of grad in rows from low to high, of which there are up to `most`."""
    total = tl.load(grad + low * size3 + column, mask=mask, other=0).to(ACC)
    for number in range(1, most):
        row = low + number
        total += tl.load(grad + row * size3 + column, mask=mask & (row < high), other=0).to(ACC)
    return total


@jit
def store_repeated(grad, out, low, high, most, in_row, i, first, last, size3, ACC: tl.constexpr):
    """Stores column i, which was read from the columns from first to last."""
    column = first + tl.zeros_like(low).to(tl.int32)
    total = sum_of_range(grad, low, high, most, column, size3, in_row, ACC)
    for other in range(first + 1, last):
        total += sum_of_range(grad, low, high, most, other + 0 * column, size3, in_row, ACC)
    tl.store(out + i, total, mask=in_row)


@jit
def replicate_planes_backward_kernel(grad, out, rows, size2, size3, extent2, extent3, before2, before3,
                                     ROWS: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The gradient of a pad by the edges along the last two dimensions: edges have sums of all that are read
    from them."""
    columns = tl.cdiv(extent3, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    begin = tl.program_id(0) % columns * BLOCK
    c, in_row = row % extent2, row < rows
    low = tl.where(c == 0, 0, c + before2)
    high = tl.where(c == extent2 - 1, size2, c + before2 + 1)
    most = tl.max(tl.where(in_row, high - low, 1))
    grad += (row // extent2).to(tl.int64) * size2 * size3
    out += row.to(tl.int64) * extent3
    low, high = low.to(tl.int64), high.to(tl.int64)
    i = begin + tl.arange(0, BLOCK)[None, :]
    mask = in_row & (i > 0) & (i < extent3 - 1)
    total = sum_of_range(grad, low, high, most, i + before3, size3, mask, ACC)
    tl.store(out + i, total, mask=mask)
    if begin == 0:
        end = size3 if extent3 == 1 else before3 + 1
        store_repeated(grad, out, low, high, most, in_row, 0, 0, end, size3, ACC)
    if (begin + BLOCK >= extent3) & (extent3 > 1):
        last = extent3 - 1
        store_repeated(grad, out, low, high, most, in_row, last, before3 + last, size3, size3, ACC)


PARTS = 4
"""Arrays that one launch joins."""


@jit
def copy_part(x, out, rows, length, out_length, begin, program, columns, ROWS: tl.constexpr,
              BLOCK: tl.constexpr):  # fmt: skip
    """out[r, begin + i] = x[r, i], where a row of out has `out_length` elements."""
    row = program // columns * ROWS + tl.arange(0, ROWS)[:, None]
    i = program % columns * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (i < length)
    value = tl.load(x + row.to(tl.int64) * length + i, mask=mask)
    tl.store(out + row.to(tl.int64) * out_length + begin + i, value, mask=mask)


@jit
def copy_parts_kernel(x0, x1, x2, x3, out, rows, out_length, begin, length0, length1, length2, length3,
                      columns0, columns1, columns2, columns3, ROWS: tl.constexpr,
                      BLOCK: tl.constexpr):  # fmt: skip
    """Copies rows of up to four arrays, one behind the other, to places of rows of out.

    Each has programs of its own, which divide its rows of `length` elements into `columns` tiles.
    """
    program, groups = tl.program_id(0), tl.cdiv(rows, ROWS)
    if program < groups * columns0:
        copy_part(x0, out, rows, length0, out_length, begin, program, columns0, ROWS, BLOCK)
    if x1 is not None:
        program -= groups * columns0
        if (program >= 0) & (program < groups * columns1):
            at = begin + length0
            copy_part(x1, out, rows, length1, out_length, at, program, columns1, ROWS, BLOCK)
    if x2 is not None:
        program -= groups * columns1
        if (program >= 0) & (program < groups * columns2):
            at = begin + length0 + length1
            copy_part(x2, out, rows, length2, out_length, at, program, columns2, ROWS, BLOCK)
    if x3 is not None:
        program -= groups * columns2
        if program >= 0:
            at = begin + length0 + length1 + length2
            copy_part(x3, out, rows, length3, out_length, at, program, columns3, ROWS, BLOCK)


@jit
def permute_kernel(x, out, size0, size1, size2, size3, from0, from1, from2, from3, to0, to1, to2, to3,
                   ROWS: tl.constexpr, BLOCK: tl.constexpr, IS_WIDE: tl.constexpr):  # fmt: skip
    """Copies elements of four dimensions, which have the strides `from` in x and `to` in out.

    A tile is of the last two, in which x and out are read and stored as they lie in memory.
    """
    INDEX: tl.constexpr = tl.int64 if IS_WIDE else tl.int32
    rows, columns = tl.cdiv(size2, ROWS), tl.cdiv(size3, BLOCK)
    tile = tl.program_id(0) // columns
    outer = tile // rows
    a, b = (outer // size1).to(INDEX), (outer % size1).to(INDEX)
    row = (tile % rows * ROWS + tl.arange(0, ROWS)[:, None]).to(INDEX)
    i = (tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)[None, :]).to(INDEX)
    mask = (row < size2) & (i < size3)
    value = tl.load(x + (a * from0 + b * from1) + (row * from2 + i * from3), mask=mask)
    tl.store(out + (a * to0 + b * to1) + (row * to2 + i * to3), value, mask=mask)
