# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary embeddings: pairs of elements of a row are rotated by angles of the row's position."""

from __future__ import annotations

import tessera.language as tl
from tessera.runtime.jit import jit


@jit
def rotary_kernel(x, cos, sin, out, rows, length, pairs, positions, inner, per_batch, of_batch, sign: tl.float64,
                  ROWS: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr,
                  IS_INTERLEAVED: tl.constexpr):  # fmt: skip
    """`inner` rows have one position. A batch has `per_batch` rows, and `of_batch` lines of angles."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    angle = row // inner % positions + row // per_batch * of_batch
    place = row.to(tl.int64) * length
    for start in range(0, pairs, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < pairs)
        first, second = (2 * i, 2 * i + 1) if IS_INTERLEAVED else (i, i + pairs)
        c = tl.load(cos + angle * pairs + i, mask=mask).to(ACC)
        s = tl.load(sin + angle * pairs + i, mask=mask).to(ACC) * sign.to(ACC)
        a = tl.load(x + place + first, mask=mask).to(ACC)
        b = tl.load(x + place + second, mask=mask).to(ACC)
        tl.store(out + place + first, a * c - b * s, mask=mask)
        tl.store(out + place + second, b * c + a * s, mask=mask)
    for start in range(2 * pairs, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        tl.store(out + place + i, tl.load(x + place + i, mask=mask), mask=mask)
