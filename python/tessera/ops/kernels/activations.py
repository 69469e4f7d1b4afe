# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of functions of the halves of an array, which are halves of one array, too."""

from __future__ import annotations

import tessera.language as tl
from tessera.runtime.jit import jit


@jit
def glu_backward_kernel(x, grad, out, rows, length, ROWS: tl.constexpr, BLOCK: tl.constexpr,
                        ACC: tl.constexpr):  # fmt: skip
    """The gradient of a * sigmoid(b), where a row of x has the `length` elements of a and those of b."""
    columns = tl.cdiv(length, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (i < length)
    of_a = row.to(tl.int64) * 2 * length + i
    g = tl.load(grad + row.to(tl.int64) * length + i, mask=mask).to(ACC)
    a, gate = tl.load(x + of_a, mask=mask), tl.load(x + (of_a + length), mask=mask)
    share = tl.sigmoid(gate.to(ACC))
    tl.store(out + of_a, g * share, mask=mask)
    tl.store(out + (of_a + length), g * a.to(ACC) * share * (1 - share), mask=mask)
