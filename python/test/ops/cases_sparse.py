# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of products with sparse matrices."""

from __future__ import annotations

from typing import Any

import torch

from tessera import ops

from .scheme import Case, Maker

EVERYWHERE = ("torch", "numpy", "jax")


def pattern(m: Maker, rows: int, columns: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Row pointers and columns. Row 1 is empty, and columns may be there twice."""
    counts = m.indices(most + 1, rows)
    counts[1] = 0
    crow = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    return crow.to(torch.int32), m.indices(columns, int(crow[-1])).to(torch.int32)


def rows_of(crow: torch.Tensor) -> torch.Tensor:
    return torch.repeat_interleave(torch.arange(len(crow) - 1), crow.diff())


def product(crow: Any, col: Any, values: Any, x: Any) -> Any:
    found = torch.zeros(len(crow) - 1, x.shape[1], dtype=x.dtype)
    return found.index_add(0, rows_of(crow), values[:, None] * x[col])


def sampled(crow: Any, col: Any, a: Any, b: Any) -> Any:
    return (a[rows_of(crow)] * b.T[col]).sum(1)


def spmm_args(m: Maker, rows: int, columns: int, most: int, k: int) -> tuple[Any, ...]:
    crow, col = pattern(m, rows, columns, most)
    return crow, col, m.array(len(col)), m.array(columns, k)


def sddmm_args(m: Maker, rows: int, columns: int, most: int, k: int) -> tuple[Any, ...]:
    return (*pattern(m, rows, columns, most), m.array(rows, k), m.array(k, columns))


CASES = [
    Case("spmm", ops.spmm, lambda m: spmm_args(m, 12, 9, 20, 37), product, libraries=EVERYWHERE, tolerance=4),
    Case("spmm wide", ops.spmm, lambda m: spmm_args(m, 3, 5, 4, 600), product, tolerance=4),
    Case("spmm none", ops.spmm, lambda m: spmm_args(m, 4, 5, 0, 7), product),
    Case("sddmm", ops.sddmm, lambda m: sddmm_args(m, 12, 9, 20, 37), sampled, libraries=EVERYWHERE, tolerance=6),
    Case("sddmm wide", ops.sddmm, lambda m: sddmm_args(m, 3, 5, 4, 600), sampled, tolerance=30),
]  # fmt: skip
