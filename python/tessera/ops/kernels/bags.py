# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums, means and maxima of the rows of a table that bags name. A program has columns of one bag.

A row outside of the table counts as 0, and the row `padding` does not count. Offsets are bounded by the
number of indices: no address is made of others.
"""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import row_bounds
from tessera.runtime.jit import jit


@jit
def counts(at, padding):
    """True for a row that is not `padding`, the number of one or None."""
    if padding is None:
        return at == at
    return at != padding


@jit
def bag_columns(length, BLOCK: tl.constexpr):
    """The bag of a program, its columns, and which of these exist."""
    columns = tl.cdiv(length, BLOCK)
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)
    return tl.program_id(0) // columns, i, i < length


@jit(do_not_specialize=["padding"])
def bag_kernel(table, index, begins, scales, out, places, count, extent, length, padding,
               BLOCK: tl.constexpr, ACC: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """Reduces rows; of a maximum, `places` are the rows that it is of, -1 for none."""
    bag, i, mask = bag_columns(length, BLOCK)
    begin, end = row_bounds(begins, bag, count)
    total = tl.zeros((BLOCK,), ACC)
    place = tl.full((BLOCK,), -1, tl.int64)
    number = 0
    for row in range(begin, end):
        at = tl.load(index + row).to(tl.int64)
        inside = mask & (at >= 0) & (at < extent) & counts(at, padding)
        value = tl.load(table + at * length + i, mask=inside, other=0.0).to(ACC)
        if scales is not None:
            value *= tl.load(scales + row).to(ACC)
        if KIND == "max":
            is_larger = inside & ((place < 0) | (value > total))
            total, place = tl.where(is_larger, value, total), tl.where(is_larger, at, place)
        else:
            total += value
        number += counts(at, padding).to(tl.int32)
    if KIND == "mean":
        total = total / tl.maximum(number, 1)
    offset = bag.to(tl.int64) * length + i
    tl.store(out + offset, total, mask=mask)
    if KIND == "max":
        tl.store(places + offset, place, mask=mask)


@jit(do_not_specialize=["padding"])
def bag_backward_kernel(grad, index, begins, scales, out, count, extent, length, padding,
                        BLOCK: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """Adds the gradient of each bag to its rows, for sums and means."""
    bag, i, mask = bag_columns(length, BLOCK)
    begin, end = row_bounds(begins, bag, count)
    acc: tl.constexpr = out.dtype.element_ty
    value = tl.load(grad + bag.to(tl.int64) * length + i, mask=mask).to(acc)
    if KIND == "mean":
        number = 0
        for row in range(begin, end):
            number += counts(tl.load(index + row), padding).to(tl.int32)
        value = value / tl.maximum(number, 1)
    for row in range(begin, end):
        at = tl.load(index + row).to(tl.int64)
        part = value if scales is None else value * tl.load(scales + row).to(acc)
        inside = mask & (at >= 0) & (at < extent) & counts(at, padding)
        tl.atomic_add(out + at * length + i, part, mask=inside)


@jit
def bag_maximum_backward_kernel(grad, places, out, length, BLOCK: tl.constexpr):
    """Adds the gradient of each maximum to the element that it is."""
    bag, i, mask = bag_columns(length, BLOCK)
    offset = bag.to(tl.int64) * length + i
    at = tl.load(places + offset, mask=mask, other=-1)
    value = tl.load(grad + offset, mask=mask).to(out.dtype.element_ty)
    tl.atomic_add(out + at * length + i, value, mask=mask & (at >= 0))


@jit(do_not_specialize=["padding"])
def bag_scales_kernel(table, grad, index, begins, out, count, extent, length, padding,
                      BLOCK: tl.constexpr):  # fmt: skip
    """The gradients of weights of samples: the dot of a row and of its bag's gradient. A program has a bag."""
    bag = tl.program_id(0)
    begin, end = row_bounds(begins, bag, count)
    acc: tl.constexpr = out.dtype.element_ty
    for row in range(begin, end):
        at = tl.load(index + row).to(tl.int64)
        inside = (at >= 0) & (at < extent) & counts(at, padding)
        total = tl.zeros((BLOCK,), acc)
        for start in range(0, length, BLOCK):
            i = start + tl.arange(0, BLOCK)
            value = tl.load(table + at * length + i, mask=inside & (i < length), other=0.0).to(acc)
            of_bag = tl.load(grad + bag.to(tl.int64) * length + i, mask=i < length, other=0.0).to(
                acc
            )
            total += tl.where(inside, value * of_bag, 0.0)
        tl.store(out + row, tl.sum(total, axis=0))
