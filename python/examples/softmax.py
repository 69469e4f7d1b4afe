# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax over the rows of a matrix, fused: a row is read once and written once."""

from __future__ import annotations

from typing import Any

import tessera
import tessera.language as tl


@tessera.jit
def softmax_kernel(
    x_ptr: tl.tensor, out_ptr: tl.tensor, x_stride: int, out_stride: int, columns: int,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + offsets, out, mask=mask)


def softmax(x: Any, out: Any) -> None:
    """out = softmax of each row of x; both of shape (rows, columns), rows contiguous."""
    rows, columns = x.shape
    block = tessera.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, columns, columns, BLOCK=block)
