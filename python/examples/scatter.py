# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adding to places that the data choose: histograms, and the gradient of an embedding.

Programs meet at the same addresses, so they add by atomics, whose old values nobody needs.
"""

from __future__ import annotations

import functools
from typing import Any

import tessera
import tessera.language as tl


@tessera.jit
def histogram_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BINS: tl.constexpr, BLOCK: tl.constexpr
) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    counts = tl.histogram(tl.load(x_ptr + offsets, mask=mask), BINS, mask=mask)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts, sem="relaxed")


@tessera.jit
def histogram_by_atomics_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BINS: tl.constexpr, BLOCK: tl.constexpr
) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.atomic_add(out_ptr + x, 1, mask=mask & (x >= 0) & (x < BINS), sem="relaxed")


def histogram(x: Any, out: Any, by_atomics: bool = False) -> None:
    """Adds to out[i] how often i occurs among the int32s of x; what is outside is left out."""
    n, bins = x.shape[0], out.shape[0]
    kernel = histogram_by_atomics_kernel if by_atomics else histogram_kernel
    block = max(16384, 16 * bins)
    kernel[(tessera.cdiv(n, block),)](x, out, n, BINS=bins, BLOCK=block)


@tessera.jit
def scatter_add_kernel(
    source_ptr: tl.tensor, index_ptr: tl.tensor, out_ptr: tl.tensor, n: int, BLOCK: tl.constexpr
) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    place = tl.load(index_ptr + offsets, mask=mask)
    tl.atomic_add(out_ptr + place, tl.load(source_ptr + offsets, mask=mask), mask=mask)


def scatter_add(source: Any, index: Any, out: Any) -> None:
    """Adds source[i] to out[index[i]]."""
    n = source.shape[0]
    scatter_add_kernel[(tessera.cdiv(n, 1024),)](source, index, out, n, BLOCK=1024)


@tessera.jit
def embedding_backward_kernel(
    grad_ptr: tl.tensor, index_ptr: tl.tensor, grad_table_ptr: tl.tensor, n: int, share: int,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, SCOPE: tl.constexpr,
) -> None:  # fmt: skip
    # A program takes a share of the rows, and some of their columns.
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    begin = tl.program_id(0) * share
    end = tl.minimum(begin + share, n)
    for start in range(begin, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < end)[:, None]
        index = tl.load(index_ptr + rows, mask=rows < end, other=0)
        grad = tl.load(grad_ptr + rows[:, None] * WIDTH + columns, mask=mask)
        ptrs = grad_table_ptr + index[:, None] * WIDTH + columns
        tl.atomic_add(ptrs, grad, mask=mask, sem="relaxed", scope=SCOPE)


@functools.cache
def count_threads() -> int:
    return int(tessera.host_info()["threads"])


def embedding_backward(grad: Any, index: Any, grad_table: Any) -> None:
    """Adds grad[i] to grad_table[index[i]]; rows contiguous, a legal tile extent wide."""
    n, width = grad.shape
    columns = width // count_threads()
    if columns >= 16 and columns & (columns - 1) == 0:
        # Threads for all, and no two programs add to one column.
        grid, share, scope = (1, width // columns), n, "cta"
    else:
        grid, share, scope, columns = (tessera.cdiv(n, 1024), 1), 1024, "gpu", width
    embedding_backward_kernel[grid](
        grad, index, grad_table, n, share, WIDTH=width, COLUMNS=columns, ROWS=64, SCOPE=scope
    )
