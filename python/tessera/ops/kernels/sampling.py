# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choice of tokens by their logits. A program has a line of the vocabulary.

Top-k and top-p keep the logits from a bound on. The bound is found by its 32 bits, from the highest one:
each is set if the logits from there on are still enough. That needs neither a sort nor scratch memory,
and reads the line once for each bit. Logits are compared in float32; NaNs are never chosen.
"""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.sorting import ordered_bits
from tessera.runtime.jit import jit


@jit
def of_row(value, row):
    """A number, or the element of an array that has one for each row."""
    if value.dtype.is_ptr():
        return tl.load(value + row).to(tl.float32)
    else:
        return value.to(tl.float32)


@jit
def load_logits(x, i, length):
    value = tl.load(x + i, mask=i < length, other=float("-inf")).to(tl.float32)
    return tl.where(value == value, value, float("-inf"))


@jit
def amount_from(x, length, bound, top, inverse, least, BLOCK: tl.constexpr, IS_MASS: tl.constexpr):
    """How many logits are at least `bound`, or the sum of exponentials of those that also reach `least`."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = load_logits(x, i, length)
        is_above = (i < length) & (value >= bound)
        if IS_MASS:
            # An infinite logit has the distance 0 to itself.
            weight = tl.exp(tl.where(value == top, 0.0, (value - top) * inverse))
            total += tl.where(is_above & (value >= least), weight, 0.0)
        else:
            total += is_above.to(tl.float32)
    return tl.sum(total, axis=0)


@jit
def highest_bound(
    x, length, wanted, top, inverse, least, BLOCK: tl.constexpr, IS_MASS: tl.constexpr
):
    """The largest bound from which on the logits are enough."""
    found = tl.full((1,), 0, tl.uint32)
    for step in range(32):
        bits = found | (tl.full((1,), 1, tl.uint32) << (31 - step))
        bound = float_of_order(bits)
        amount = amount_from(x, length, bound, top, inverse, least, BLOCK, IS_MASS)
        found = tl.where(amount >= wanted, bits, found)
    return tl.sum(float_of_order(found), axis=0)


@jit
def float_of_order(bits):
    """The float32 at a place in the order of all, where 0 is the least. NaNs, at the ends, become infinite."""
    order = (bits ^ 0x80000000).to(tl.int32, bitcast=True)
    value = tl.where(order < 0, order ^ 0x7FFFFFFF, order).to(tl.float32, bitcast=True)
    infinite = tl.where(order < 0, float("-inf"), float("inf"))
    return tl.where(value == value, value, infinite)


@jit
def bound_kernel(x, bounds, temperature, top_k, top_p, min_p, length, BLOCK: tl.constexpr):
    """Stores the least logit of each row that is kept. A bound that is None is not applied."""
    row = tl.program_id(0)
    x += row.to(tl.int64) * length
    highest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, length, BLOCK):
        highest = tl.maximum(highest, load_logits(x, start + tl.arange(0, BLOCK), length))
    top = tl.max(highest, axis=0)
    heat = of_row(temperature, row)
    inverse = tl.where(heat > 0, 1 / heat, 0.0)
    bound = tl.where(heat > 0, float("-inf"), top)
    if top_k is not None:
        wanted = tl.minimum(of_row(top_k, row), length * 1.0)
        if wanted > 0:
            bound = tl.maximum(
                bound, highest_bound(x, length, wanted, top, inverse, bound, BLOCK, False)
            )
    if top_p is not None:
        share = of_row(top_p, row)
        if share < 1:
            wanted = share * amount_from(x, length, bound, top, inverse, bound, BLOCK, True)
            found = highest_bound(x, length, wanted, top, inverse, bound, BLOCK, True)
            # The likeliest token is kept in any case.
            bound = tl.maximum(bound, tl.minimum(found, top))
    if min_p is not None:
        bound = tl.maximum(bound, top + heat * tl.log(of_row(min_p, row)))
    tl.store(bounds + row, bound)


@jit
def filter_kernel(x, bounds, out, temperature, length, BLOCK: tl.constexpr, ACC: tl.constexpr):
    """x / temperature from the bound on, and -inf below."""
    row = tl.program_id(0)
    heat = of_row(temperature, row)
    bound, divisor = tl.load(bounds + row), tl.where(heat > 0, heat, 1.0).to(ACC)
    place = row.to(tl.int64) * length
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        is_kept = load_logits(x + place, i, length) >= bound
        value = tl.load(x + place + i, mask=i < length).to(ACC) / divisor
        # A NaN counts as -inf, which may be the bound.
        kept = tl.where(is_kept & (value == value), value, float("-inf"))
        tl.store(out + place + i, kept, mask=i < length)


@jit(do_not_specialize=["seed"])
def sample_kernel(x, bounds, out, temperature, length, seed: tl.int64, BLOCK: tl.constexpr):
    """The place of the largest x + temperature * noise from the bound on.

    With noise of Gumbel's distribution each token has the probability of the softmax of x / temperature.
    """
    row = tl.program_id(0)
    heat, bound = of_row(temperature, row), tl.load(bounds + row)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = load_logits(x + row.to(tl.int64) * length, i, length)
        share = tl.rand(seed, row.to(tl.int64) * length + i) + 2.9802322387695312e-8
        noise = -tl.log(-tl.log(tl.minimum(share, 0.99999994)))
        value = tl.where(value >= bound, value + heat * noise, float("-inf"))
        place = tl.where(value > best, i, place)
        best = tl.maximum(best, value)
    # The first of equal values is taken.
    top = tl.max(best, axis=0)
    tl.store(out + row, tl.min(tl.where(best == top, place, length - 1), axis=0))


@jit(do_not_specialize=["seed"])
def gumbel_keys_kernel(x, out, count, seed: tl.int64, BLOCK: tl.constexpr):
    """log(x) with noise of Gumbel's distribution, in whose order tokens are drawn; -inf if x is not positive."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.load(x + place, mask=place < count, other=0.0).to(tl.float32)
    share = tl.minimum(tl.rand(seed, place) + 2.9802322387695312e-8, 0.99999994)
    key = tl.log(tl.where(weight > 0, weight, 1.0)) - tl.log(-tl.log(share))
    tl.store(out + place, tl.where(weight > 0, key, float("-inf")), mask=place < count)


@jit
def clean_weights_kernel(x, out, count, BLOCK: tl.constexpr):
    """x where it is positive, and 0 elsewhere."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.load(x + place, mask=place < count, other=0.0)
    tl.store(out + place, tl.where(weight > 0, weight, 0), mask=place < count)


@jit(do_not_specialize=["seed"])
def draw_kernel(sums, out, count, samples, length, seed: tl.int64, BLOCK: tl.constexpr,
                STEPS: tl.constexpr):  # fmt: skip
    """The first place whose sum of weights is above a share of the whole sum, which is random."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    sums += place // samples * length
    total = tl.load(sums + length - 1, mask=mask, other=1.0)
    wanted = tl.rand(seed, place).to(total.dtype) * total
    wanted = tl.where(wanted < total, wanted, 0.0)  # a product may be rounded up
    low, high = tl.zeros((BLOCK,), tl.int64), tl.zeros((BLOCK,), tl.int64) + length - 1
    for _ in range(STEPS):
        middle = (low + high) // 2
        is_above = tl.load(sums + middle, mask=mask) > wanted
        high, low = tl.where(is_above, middle, high), tl.where(
            is_above, low, tl.minimum(middle + 1, high)
        )
    tl.store(out + place, low, mask=mask)


@jit
def count_tokens_kernel(tokens, out, count, per_row, length, BLOCK: tl.constexpr):
    """Counts how often each token is in its row. Others than tokens of the vocabulary count nowhere."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    token = tl.load(tokens + place, mask=place < count, other=-1).to(tl.int64)
    inside = (place < count) & (token >= 0) & (token < length)
    tl.atomic_add(
        out + place // per_row * length + token, tl.full((BLOCK,), 1, tl.int32), mask=inside
    )
