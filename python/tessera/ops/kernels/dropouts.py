# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout of whole lines, with another value than 0 in their place."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.random import seed_of
from tessera.runtime.jit import jit


@jit(do_not_specialize=["seed"])
def dropout_lines_kernel(x, seeds, out, rows, length, p, scale: tl.float64, shift: tl.float64,
                         dropped: tl.float64, seed: tl.int64, ROWS: tl.constexpr, BLOCK: tl.constexpr,
                         ACC: tl.constexpr):  # fmt: skip
    """x * scale + shift, or `dropped` with probability p, for each row."""
    columns = tl.cdiv(length, BLOCK)
    row = tl.program_id(0) // columns * ROWS + tl.arange(0, ROWS)[:, None]
    i = (tl.program_id(0) % columns).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (i < length)
    place = row.to(tl.int64) * length + i
    value = tl.load(x + place, mask=mask).to(ACC) * scale.to(ACC) + shift.to(ACC)
    kept = tl.rand(seed_of(seeds, seed), row) >= p
    tl.store(out + place, tl.where(kept, value, dropped.to(ACC)), mask=mask)
