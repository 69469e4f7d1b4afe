# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Solutions of the puzzles in docs/Tutorial/Puzzles.md. Try them yourself first.

Usage: puzzle_solutions.py    (checks all of them)
"""

from __future__ import annotations

import sys

import tessera
import tessera.language as tl
from tessera.testing.puzzles import check


@tessera.jit
def double(x_ptr: tl.tensor, out_ptr: tl.tensor, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))


@tessera.jit
def add(
    x_ptr: tl.tensor, y_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BLOCK: tl.constexpr
) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


@tessera.jit
def reverse(x_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + n - 1 - i, mask=i < n), mask=i < n)


@tessera.jit
def neighbours(x_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(x_ptr + i - 1, mask=(i > 0) & (i <= n), other=0.0)
    here = tl.load(x_ptr + i, mask=i < n, other=0.0)
    after = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(out_ptr + i, before + here + after, mask=i < n)


@tessera.jit
def outer(
    x_ptr: tl.tensor, y_ptr: tl.tensor, out_ptr: tl.tensor, rows: int, columns: int,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + row, mask=row < rows)
    y = tl.load(y_ptr + column, mask=column < columns)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    places = row[:, None] * columns + column[None, :]
    tl.store(out_ptr + places, x[:, None] * y[None, :], mask=mask)


@tessera.jit
def row_max(x_ptr: tl.tensor, out_ptr: tl.tensor, columns: int, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=-float("inf"))
    tl.store(out_ptr + row, tl.max(x, axis=0))


@tessera.jit
def sum_long_rows(x_ptr: tl.tensor, out_ptr: tl.tensor, columns: int, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@tessera.jit
def histogram(x_ptr: tl.tensor, counts_ptr: tl.tensor, n: int, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(counts_ptr + x, 1, mask=i < n)


@tessera.jit
def compress(
    x_ptr: tl.tensor, out_ptr: tl.tensor, count_ptr: tl.tensor, n: int, BLOCK: tl.constexpr
) -> None:
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    is_kept = x > 0
    place = tl.cumsum(is_kept.to(tl.int32), axis=0) - 1
    tl.store(out_ptr + place, x, mask=is_kept)
    tl.store(count_ptr, tl.sum(is_kept.to(tl.int32), axis=0))


@tessera.jit
def matmul_relu(
    a_ptr: tl.tensor, b_ptr: tl.tensor, out_ptr: tl.tensor, M: int, N: int, K: int,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        a_mask = (row[:, None] < M) & (k[None, :] < K)
        b_mask = (k[:, None] < K) & (column[None, :] < N)
        a = tl.load(a_ptr + row[:, None] * K + k[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + column[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (row[:, None] < M) & (column[None, :] < N)
    tl.store(out_ptr + row[:, None] * N + column[None, :], tl.maximum(acc, 0.0), mask=mask)


SOLUTIONS = (
    double, add, reverse, neighbours, outer, row_max, sum_long_rows, histogram, compress, matmul_relu,
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(0 if all([check(kernel) for kernel in SOLUTIONS]) else 1)
