# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices as arguments of kernels: torch's tensors in CSR and BSR, as aggregates.

A kernel sees the arrays of a matrix as pointers, and its extents as numbers. `tessera.views.csr` and
`bsr` make the same aggregates of arrays of other libraries.
"""

from __future__ import annotations

import sys
from typing import Any, Optional

import tessera.language.memory as memory
from tessera.errors import ArgumentError
from tessera.language.aggregate import aggregate
from tessera.language.standard import library
from tessera.language.tensor import tensor
from tessera.language.types import constexpr

__all__ = ["SparseBSR", "SparseCSR"]


@aggregate
class SparseCSR:
    """A matrix in CSR: row r has the columns and the values from crow_indices[r] on, to the next."""

    crow_indices: tensor
    """A pointer to rows + 1 integers."""
    col_indices: tensor
    """A pointer to nnz integers."""
    values: tensor
    """A pointer to nnz numbers."""
    rows: tensor
    cols: tensor
    nnz: tensor

    @library
    def extent(self, row):  # type: ignore[no-untyped-def]
        """The first place of a row in col_indices and values, and the place after its last one."""
        return memory.load(self.crow_indices + row), memory.load(self.crow_indices + row + 1)


@aggregate
class SparseBSR:
    """A matrix in BSR, of dense blocks: block row r has the blocks from crow_indices[r] on."""

    crow_indices: tensor
    """A pointer to rows / block_rows + 1 integers."""
    col_indices: tensor
    """A pointer to nnz numbers of block columns."""
    values: tensor
    """A pointer to nnz dense blocks of (block_rows, block_cols) numbers."""
    rows: tensor
    cols: tensor
    nnz: tensor
    """The number of blocks."""
    block_rows: constexpr
    block_cols: constexpr

    @library
    def extent(self, block_row):  # type: ignore[no-untyped-def]
        """The first block of a block row, and the block after its last one."""
        first = memory.load(self.crow_indices + block_row)
        return first, memory.load(self.crow_indices + block_row + 1)


_LAYOUTS = ("torch.sparse_csr", "torch.sparse_bsr")


def sparse_argument(value: Any) -> Optional[Any]:
    """The aggregate of a torch tensor in CSR or BSR; None for all else.

    Raises ArgumentError (E054) for a batch, and for dense dimensions.
    """
    tensors: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if not isinstance(value, tensors):
        return None
    layout = str(value.layout)
    if layout not in _LAYOUTS:
        return None
    values = value.values()
    is_blocked = layout.endswith("bsr")
    if value.ndim != 2 or values.ndim != (3 if is_blocked else 1):
        raise ArgumentError(
            "E054",
            f"a tensor of {layout} has shape {tuple(value.shape)}, and values of shape "
            f"{tuple(values.shape)}: kernels take matrices of numbers",
            "pass one matrix of a batch: x[0]",
        )
    arrays = (value.crow_indices(), value.col_indices(), values)
    if not all(each.is_contiguous() for each in arrays):
        raise ArgumentError(
            "E054", f"a tensor of {layout} has arrays that are not dense", "pass x.clone()"
        )
    numbers = (*value.shape, values.shape[0])
    if is_blocked:
        return SparseBSR(*arrays, *numbers, *values.shape[1:])
    return SparseCSR(*arrays, *numbers)
