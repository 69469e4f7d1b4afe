# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout: a random number of the seed and of the place of an element decides whether it stays."""

from __future__ import annotations

import tessera.language as tl
from tessera.runtime.jit import jit

BLOCK = 1024


@jit
def dropout_kernel(x, out, count, p, scale: tl.float64, seed, ACC: tl.constexpr,
                   BLOCK: tl.constexpr):  # fmt: skip
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count).to(ACC) * scale.to(ACC)
    kept = tl.rand(seed, place) >= p
    tl.store(out + place, tl.where(kept, value, 0.0), mask=place < count)
