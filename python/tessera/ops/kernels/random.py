# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators with random numbers, which follow from the seed and the place of an element."""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line, line_number
from tessera.runtime.jit import jit

BLOCK, DROPOUT_BLOCK = 1024, 4096
"""Elements of a program. Those of dropout are in four parts."""


@jit
def seed_of(seeds, seed):
    """The seed of a launch: a number, or the element of an array, which a recorded call makes anew."""
    if seeds is not None:
        return tl.load(seeds)
    else:
        return seed


@jit
def scaled(x, place, count, scale, shift, ACC: tl.constexpr, IS_SHIFTED: tl.constexpr):
    value = tl.load(x + place, mask=place < count).to(ACC) * scale.to(ACC)
    return value + shift.to(ACC) if IS_SHIFTED else value


@jit(do_not_specialize=["seed"])
def dropout_kernel(x, seeds, out, kept, count, p, scale: tl.float64, shift: tl.float64, dropped: tl.float64,
                   seed: tl.int64, ACC: tl.constexpr, BLOCK: tl.constexpr,
                   IS_SHIFTED: tl.constexpr):  # fmt: skip
    """x * scale, or 0 with probability p; if IS_SHIFTED, x * scale + shift, or `dropped`. `kept` has which
    elements are not dropped, if it is there.

    A counter has four random words, for elements that are a quarter of the block apart.
    """
    QUARTER: tl.constexpr = BLOCK // 4
    # Seven rounds pass the tests of randomness; ten leave a margin that no dropout needs.
    number = tl.program_id(0).to(tl.int64) * QUARTER + tl.arange(0, QUARTER)
    shares = tl.rand4x(seed_of(seeds, seed), number, n_rounds=7)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, QUARTER)
    # Loads come before stores. The random words are then computed once, and not for each store.
    values = (
        scaled(x, place, count, scale, shift, ACC, IS_SHIFTED),
        scaled(x, place + QUARTER, count, scale, shift, ACC, IS_SHIFTED),
        scaled(x, place + 2 * QUARTER, count, scale, shift, ACC, IS_SHIFTED),
        scaled(x, place + 3 * QUARTER, count, scale, shift, ACC, IS_SHIFTED),
    )
    for part in tl.static_range(4):
        is_kept = shares[part] >= p
        at = place + part * QUARTER
        value = tl.where(is_kept, values[part], dropped.to(ACC) if IS_SHIFTED else 0.0)
        tl.store(out + at, value, mask=at < count)
        if kept is not None:
            tl.store(kept + at, is_kept, mask=at < count)


@jit(do_not_specialize=["seed"])
def rrelu_kernel(x, factor, seeds, out, count, lower: tl.float64, upper: tl.float64, seed: tl.int64,
                 ACC: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """factor * slope, where the slope of a negative x is random, and that of others is 1."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    share = tl.rand(seed_of(seeds, seed), place).to(ACC)
    slope = lower.to(ACC) + (upper - lower).to(ACC) * share
    slope = tl.where(tl.load(x + place, mask=mask) < 0, slope, 1.0)
    tl.store(out + place, tl.load(factor + place, mask=mask).to(ACC) * slope, mask=mask)


@jit(do_not_specialize=["seed"])
def gumbel_kernel(x, out, count, tau: tl.float64, seed: tl.int64, ACC: tl.constexpr,
                  BLOCK: tl.constexpr):  # fmt: skip
    """(x + noise) / tau, where the noise has the standard Gumbel distribution."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # From 2^-25 on, below 1: neither logarithm is infinite.
    share = tl.minimum(tl.rand(seed, place) + 2.9802322387695312e-8, 0.99999994)
    noise = -tl.log(-tl.log(share))
    value = tl.load(x + place, mask=place < count).to(ACC) + noise.to(ACC)
    tl.store(out + place, value / tau.to(ACC), mask=place < count)


@jit
def mark_places_kernel(places, out, length, lanes, lane_stride, stride, slab_stride, blocks,
                       LANES: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """1 at the place of each line, and 0 elsewhere."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    lines = tl.arange(0, LANES)[:, None]
    in_lane = lane + lines < lanes
    place = tl.load(places + line_number(lanes, lane, slab, LANES)[:, None], mask=in_lane)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        value = (i == place).to(out.dtype.element_ty)
        tl.store(out + first + lines * lane_stride + i * stride, value, mask=mask)
