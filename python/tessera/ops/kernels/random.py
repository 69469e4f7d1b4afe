# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators with random numbers, which follow from the seed and the place of an element."""

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


@jit
def rrelu_kernel(x, factor, out, count, lower: tl.float64, upper: tl.float64, seed, ACC: tl.constexpr,
                 BLOCK: tl.constexpr):  # fmt: skip
    """factor * slope, where the slope of a negative x is random, and that of others is 1."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    share = tl.rand(seed, place).to(ACC)
    slope = lower.to(ACC) + (upper - lower).to(ACC) * share
    slope = tl.where(tl.load(x + place, mask=mask) < 0, slope, 1.0)
    tl.store(out + place, tl.load(factor + place, mask=mask).to(ACC) * slope, mask=mask)


@jit
def gumbel_kernel(x, out, count, tau: tl.float64, seed, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """(x + noise) / tau, where the noise has the standard Gumbel distribution."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # From 2^-25 on, below 1: neither logarithm is infinite.
    share = tl.minimum(tl.rand(seed, place) + 2.9802322387695312e-8, 0.99999994)
    noise = -tl.log(-tl.log(share))
    value = tl.load(x + place, mask=place < count).to(ACC) + noise.to(ACC)
    tl.store(out + place, value / tau.to(ACC), mask=place < count)
