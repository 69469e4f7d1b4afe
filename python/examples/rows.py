# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, running sums and look-ups over the rows or columns of a matrix."""

from __future__ import annotations

import functools
from typing import Any

import tessera
import tessera.language as tl


@tessera.jit
def reduce_tile(x: tl.tensor, AXIS: tl.constexpr, KIND: tl.constexpr) -> tl.tensor:
    if KIND == "sum":
        return tl.sum(x, axis=AXIS)
    elif KIND == "max":
        return tl.max(x, axis=AXIS)
    else:
        return tl.argmax(x, axis=AXIS)


@tessera.jit
def reduce_rows_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, columns: int, BLOCK: tl.constexpr, KIND: tl.constexpr
) -> None:
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    other = 0.0 if KIND == "sum" else -float("inf")
    x = tl.load(x_ptr + row.to(tl.int64) * columns + offsets, mask=offsets < columns, other=other)
    tl.store(out_ptr + row, reduce_tile(x, 0, KIND))


@tessera.jit
def reduce_columns_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, rows: int, columns: int,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, KIND: tl.constexpr,
) -> None:  # fmt: skip
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    other = 0.0 if KIND == "sum" else -float("inf")
    total = tl.full((BLOCK,), other, tl.float32)
    for start in range(0, rows, ROWS):
        index = start + tl.arange(0, ROWS)
        mask = (index[:, None] < rows) & (offsets[None, :] < columns)
        x = tl.load(
            x_ptr + index[:, None].to(tl.int64) * columns + offsets[None, :], mask=mask, other=other
        )
        part = reduce_tile(x, 0, KIND)
        total = total + part if KIND == "sum" else tl.maximum(total, part)
    tl.store(out_ptr + offsets, total, mask=offsets < columns)


@tessera.jit
def argmax_columns_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, rows: int, columns: int,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    best = tl.load(x_ptr + offsets, mask=mask)
    where = tl.zeros((BLOCK,), tl.int32)
    for row in range(1, rows):
        x = tl.load(x_ptr + tl.cast(row, tl.int64) * columns + offsets, mask=mask)
        where = tl.where(x > best, row, where)
        best = tl.maximum(best, x)
    tl.store(out_ptr + offsets, where, mask=mask)


@functools.cache
def count_threads() -> int:
    return int(tessera.host_info()["threads"])


def choose_columns(columns: int) -> int:
    """Columns of a program: long pieces of rows are read fastest, but each thread needs some."""
    each = tessera.next_power_of_2(tessera.cdiv(columns, count_threads()))
    return max(256, min(2048, each))


def reduce(x: Any, out: Any, kind: str, axis: int) -> None:
    """out = sum, max or argmax (`kind`) of the matrix x along `axis`."""
    rows, columns = x.shape
    if axis == 1:
        block = tessera.next_power_of_2(columns)
        reduce_rows_kernel[(rows,)](x, out, columns, BLOCK=block, KIND=kind)
        return
    block = choose_columns(columns)
    grid = (tessera.cdiv(columns, block),)
    if kind == "argmax":
        argmax_columns_kernel[grid](x, out, rows, columns, BLOCK=block)
    else:
        reduce_columns_kernel[grid](x, out, rows, columns, ROWS=16, BLOCK=block, KIND=kind)


@tessera.jit
def cumsum_rows_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, columns: int, BLOCK: tl.constexpr
) -> None:
    offsets = tl.program_id(0).to(tl.int64) * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, tl.cumsum(x, axis=0), mask=mask)


@tessera.jit
def cumsum_columns_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, rows: int, columns: int, BLOCK: tl.constexpr
) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        at = tl.cast(row, tl.int64) * columns + offsets
        total += tl.load(x_ptr + at, mask=mask, other=0.0)
        tl.store(out_ptr + at, total, mask=mask)


def cumsum(x: Any, out: Any, axis: int) -> None:
    """out = running sums of the matrix x along `axis`."""
    rows, columns = x.shape
    if axis == 1:
        cumsum_rows_kernel[(rows,)](x, out, columns, BLOCK=tessera.next_power_of_2(columns))
    else:
        block = choose_columns(columns)
        cumsum_columns_kernel[(tessera.cdiv(columns, block),)](x, out, rows, columns, BLOCK=block)


@tessera.jit
def embedding_kernel(
    table_ptr: tl.tensor, index_ptr: tl.tensor, out_ptr: tl.tensor, n: int,
    WIDTH: tl.constexpr, ROWS: tl.constexpr,
) -> None:  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = rows < n
    index = tl.load(index_ptr + rows, mask=mask, other=0)
    columns = tl.arange(0, WIDTH)
    x = tl.load(table_ptr + index[:, None] * WIDTH + columns[None, :], mask=mask[:, None])
    tl.store(out_ptr + rows[:, None] * WIDTH + columns[None, :], x, mask=mask[:, None])


def embedding(table: Any, index: Any, out: Any) -> None:
    """out[i] = table[index[i]], rows contiguous, a legal tile extent wide."""
    n, width = out.shape
    embedding_kernel[(tessera.cdiv(n, 64),)](table, index, out, n, WIDTH=width, ROWS=64)
