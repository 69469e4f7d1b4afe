# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with a sparse matrix in CSR. A program has a row of it, and goes through its elements.

An element whose column is outside of the matrix counts as 0, and row pointers are bounded by the number
of elements: no address is made of others.
"""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import row_bounds
from tessera.runtime.jit import jit

EDGES = 8
"""Elements of a row in a tile, whose loads are independent."""


@jit
def spmm_kernel(begins, places, values, x, out, count, extent, length, EDGES: tl.constexpr,
                BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """out[r] is the sum of values[e] * x[places[e]] over the elements e of row r."""
    columns = tl.cdiv(length, BLOCK)
    row = tl.program_id(0) // columns
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)[None, :]
    begin, end = row_bounds(begins, row, count)
    total = tl.zeros((EDGES, BLOCK), ACC)
    for start in range(begin, end, EDGES):
        edge = start + tl.arange(0, EDGES)[:, None]
        at = tl.load(places + edge, mask=edge < end, other=-1).to(tl.int64)
        inside = (edge < end) & (at >= 0) & (at < extent)
        value = tl.load(values + edge, mask=inside, other=0.0).to(ACC)
        part = tl.load(x + at * length + i, mask=inside & (i < length), other=0.0).to(ACC)
        total += tl.where(inside, value * part, 0.0)
    place = row.to(tl.int64) * length + i
    tl.store(out + place, tl.sum(total, axis=0, keep_dims=True), mask=i < length)


@jit
def sddmm_kernel(begins, places, a, b, out, count, extent, length, EDGES: tl.constexpr,
                 BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """out[e] is the dot of row r of a and row places[e] of b, for the elements e of row r."""
    row = tl.program_id(0)
    begin, end = row_bounds(begins, row, count)
    a += row.to(tl.int64) * length
    for start in range(begin, end, EDGES):
        edge = start + tl.arange(0, EDGES)[:, None]
        at = tl.load(places + edge, mask=edge < end, other=-1).to(tl.int64)
        inside = (edge < end) & (at >= 0) & (at < extent)
        total = tl.zeros((EDGES, BLOCK), ACC)
        for first in range(0, length, BLOCK):
            i = first + tl.arange(0, BLOCK)[None, :]
            mine = tl.load(a + i, mask=i < length, other=0.0).to(ACC)
            other = tl.load(b + at * length + i, mask=inside & (i < length), other=0.0).to(ACC)
            total += tl.where(inside, mine * other, 0.0)
        tl.store(out + edge, tl.sum(total, axis=1, keep_dims=True), mask=edge < end)


@jit
def add_transposed_kernel(begins, places, values, x, out, count, extent, length, BLOCK: tl.constexpr,
                          ACC: tl.constexpr):  # fmt: skip
    """Adds values[e] * x[r] to out[places[e]], for the elements e of row r."""
    columns = tl.cdiv(length, BLOCK)
    row = tl.program_id(0) // columns
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)
    begin, end = row_bounds(begins, row, count)
    part = tl.load(x + row.to(tl.int64) * length + i, mask=i < length).to(ACC)
    for edge in range(begin, end):
        at = tl.load(places + edge).to(tl.int64)
        value = tl.load(values + edge).to(ACC)
        inside = (i < length) & (at >= 0) & (at < extent)
        tl.atomic_add(out + at * length + i, value * part, mask=inside)
