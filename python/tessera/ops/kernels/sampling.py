# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choice of tokens by their logits.

Top-k and top-p keep the logits from a bound on. The bound is found by its 32 bits, from the highest one:
each is set if the logits from there on are still enough. That needs no sort. Logits are compared in
float32; NaNs are never chosen.

On a CPU, a program has a line of the vocabulary, and reads it once for each bit (bound_kernel). On a GPU,
programs divide a line. A launch finds six bits of a count by a histogram (digits_kernel), or three of a
sum, for which it compares each logit with eight bounds (amounts_kernel). The programs of the next launch
add up what those of the last one have found.
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
def bound_kernel(x, temperature, top_k, top_p, min_p, bounds, length, BLOCK: tl.constexpr):
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


WAYS, DIGITS = 8, 64
"""Bounds with which a launch compares each logit, and bins of a histogram."""


@jit
def program_part(length, parts, part_length):
    """The row of a program, and the first and the last but one of its elements."""
    begin = tl.program_id(0) % parts * part_length
    return tl.program_id(0) // parts, begin, tl.minimum(begin + part_length, length)


@jit
def tops_kernel(x, tops, length, parts, part_length, BLOCK: tl.constexpr):
    """Stores the largest logit of each part of a row."""
    row, begin, end = program_part(length, parts, part_length)
    x += row.to(tl.int64) * length
    highest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(begin, end, BLOCK):
        highest = tl.maximum(highest, load_logits(x, start + tl.arange(0, BLOCK), end))
    tl.store(tops + tl.program_id(0), tl.max(highest, axis=0))


@jit
def row_top(tops, row, parts, PARTS: tl.constexpr):
    part = tl.arange(0, PARTS)
    return tl.max(
        tl.load(tops + row * parts + part, mask=part < parts, other=float("-inf")), axis=0
    )


@jit
def row_amounts(amounts, row, parts, PARTS: tl.constexpr, WAYS: tl.constexpr):
    """The amounts of a row from each of the bounds on: the sums over its parts."""
    part, way = tl.arange(0, PARTS)[:, None], tl.arange(0, WAYS)[None, :]
    found = tl.load(amounts + (row * parts + part) * WAYS + way, mask=part < parts, other=0.0)
    return tl.sum(found, axis=0)


@jit
def wanted_amount(firsts, row, setting, length, parts, PARTS: tl.constexpr, WAYS: tl.constexpr,
                  IS_MASS: tl.constexpr):  # fmt: skip
    """How much is to be kept. `firsts` are the amounts of the first launch, where bound 0 is below all."""
    wanted = of_row(setting, row)
    if IS_MASS:
        first = tl.where(tl.arange(0, WAYS) == 0, row_amounts(firsts, row, parts, PARTS, WAYS), 0.0)
        return wanted * tl.sum(first, axis=0)
    else:
        return tl.minimum(wanted, length * 1.0)


@jit
def next_bits(amounts, firsts, found, row, setting, length, parts, shift, PARTS: tl.constexpr,
              WAYS: tl.constexpr, IS_MASS: tl.constexpr):  # fmt: skip
    """The bits that were found with some more: the number of the highest bound that keeps enough."""
    wanted = wanted_amount(firsts, row, setting, length, parts, PARTS, WAYS, IS_MASS)
    way = tl.arange(0, WAYS).to(tl.uint32)
    # The highest bits of all are two.
    is_bound = (way > 0) & ((way << shift) >> shift == way)
    is_enough = is_bound & (row_amounts(amounts, row, parts, PARTS, WAYS) >= wanted)
    return tl.load(found + row) | (tl.sum(is_enough.to(tl.uint32), axis=0) << shift)


@jit(do_not_specialize=["shift"])
def amounts_kernel(x, tops, least, amounts, firsts, found, temperature, setting, new_amounts, new_found,
                   length, parts, part_length, shift, BLOCK: tl.constexpr, PARTS: tl.constexpr,
                   WAYS: tl.constexpr):  # fmt: skip
    """The sums of exponentials of the logits of a part that are at least each of eight bounds.

    Those below `least` do not count. The bounds have the bits that the last launch, whose
    `amounts` and `found` these are, adds to those found before. The first launch has none.
    """
    row, begin, end = program_part(length, parts, part_length)
    bits = tl.full((), 0, tl.uint32)
    if amounts is not None:
        bits = next_bits(
            amounts, firsts, found, row, setting, length, parts, shift + 3, PARTS, WAYS, True
        )
    tl.store(new_found + row, bits, mask=begin == 0)
    way = tl.arange(0, WAYS)[:, None]
    bounds = float_of_order(bits | (way.to(tl.uint32) << shift))
    x += row.to(tl.int64) * length
    top, floor = row_top(tops, row, parts, PARTS), tl.load(least + row)
    heat = of_row(temperature, row)
    inverse = tl.where(heat > 0, 1 / heat, 0.0)
    total = tl.zeros((WAYS, BLOCK), tl.float32)
    for start in range(begin, end, 4 * BLOCK):
        # Four loads that wait for one another's memory together.
        for part in tl.static_range(4):
            i = start + part * BLOCK + tl.arange(0, BLOCK)[None, :]
            value = load_logits(x, i, end)
            # An infinite logit has the distance 0 to itself.
            share = tl.exp(tl.where(value == top, 0.0, (value - top) * inverse))
            weight = tl.where((i < end) & (value >= floor), share, 0.0)
            total += tl.where(value >= bounds, weight, 0.0)
    place = new_amounts + tl.program_id(0) * WAYS + tl.arange(0, WAYS)
    tl.store(place, tl.sum(total, axis=1))


@jit(do_not_specialize=["shift"])
def digits_kernel(x, amounts, firsts, found, setting, new_amounts, new_found, length, parts, part_length, shift,
                  BLOCK: tl.constexpr, PARTS: tl.constexpr, WAYS: tl.constexpr, BITS: tl.constexpr):  # fmt: skip
    """amounts_kernel for counts, with a bound for each digit of BITS bits: sums of a histogram."""
    row, begin, end = program_part(length, parts, part_length)
    bits = tl.full((), 0, tl.uint32)
    if amounts is not None:
        bits = next_bits(
            amounts, firsts, found, row, setting, length, parts, shift + BITS, PARTS, WAYS, False
        )
    tl.store(new_found + row, bits, mask=begin == 0)
    x += row.to(tl.int64) * length
    prefix = (bits >> shift) >> BITS
    counts = tl.zeros((WAYS,), tl.int32)
    above = tl.zeros((BLOCK,), tl.int32)
    for start in range(begin, end, BLOCK):
        i = start + tl.arange(0, BLOCK)
        order = ordered_bits(load_logits(x, i, end))
        digits = (order.to(tl.uint32, bitcast=True) ^ 0x80000000) >> shift
        higher = digits >> BITS
        counts += tl.histogram(
            (digits & (WAYS - 1)).to(tl.int32), WAYS, mask=(i < end) & (higher == prefix)
        )
        above += ((i < end) & (higher > prefix)).to(tl.int32)
    total = tl.cumsum(counts, axis=0, reverse=True) + tl.sum(above, axis=0)
    place = new_amounts + tl.program_id(0) * WAYS + tl.arange(0, WAYS)
    tl.store(place, total.to(tl.float32))


@jit(do_not_specialize=["shift"])
def settled_bound_kernel(tops, least, amounts, firsts, found, temperature, setting, bounds, length, parts, shift,
                         PARTS: tl.constexpr, WAYS: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """Stores the bound of each row, of a KIND: "none", "top_k", "top_p" or "min_p". `least` is the one before."""
    row = tl.program_id(0)
    top, heat = row_top(tops, row, parts, PARTS), of_row(temperature, row)
    if KIND == "none":
        bound = tl.where(heat > 0, float("-inf"), top)
    elif KIND == "min_p":
        bound = tl.maximum(tl.load(least + row), top + heat * tl.log(of_row(setting, row)))
    else:
        bits = next_bits(
            amounts, firsts, found, row, setting, length, parts, shift, PARTS, WAYS, KIND == "top_p"
        )
        highest = tl.sum(float_of_order(tl.full((1,), 0, tl.uint32) | bits), axis=0)
        amount = of_row(setting, row)
        # The likeliest token is kept in any case.
        highest = tl.minimum(highest, top) if KIND == "top_p" else highest
        has_bound = amount < 1 if KIND == "top_p" else amount > 0
        bound = tl.load(least + row)
        bound = tl.where(has_bound, tl.maximum(bound, highest), bound)
    tl.store(bounds + row, bound)


@jit
def filter_kernel(x, bounds, temperature, out, length, parts, part_length, BLOCK: tl.constexpr,
                  ACC: tl.constexpr):  # fmt: skip
    """x / temperature from the bound on, and -inf below."""
    row, begin, end = program_part(length, parts, part_length)
    heat = of_row(temperature, row)
    bound, divisor = tl.load(bounds + row), tl.where(heat > 0, heat, 1.0).to(ACC)
    place = row.to(tl.int64) * length
    for start in range(begin, end, BLOCK):
        i = start + tl.arange(0, BLOCK)
        is_kept = load_logits(x + place, i, end) >= bound
        value = tl.load(x + place + i, mask=i < end).to(ACC) / divisor
        # A NaN counts as -inf, which may be the bound.
        kept = tl.where(is_kept & (value == value), value, float("-inf"))
        tl.store(out + place + i, kept, mask=i < end)


@jit(do_not_specialize=["seed"])
def sample_kernel(x, bounds, temperature, out, bests, length, parts, part_length, seed: tl.int64,
                  BLOCK: tl.constexpr):  # fmt: skip
    """The place of the largest x + temperature * noise from the bound on, of a part; and that number.

    With noise of Gumbel's distribution each token has the probability of the softmax of x / temperature.
    """
    row, begin, end = program_part(length, parts, part_length)
    heat, bound = of_row(temperature, row), tl.load(bounds + row)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(begin, end, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = load_logits(x + row.to(tl.int64) * length, i, end)
        share = tl.rand(seed, row.to(tl.int64) * length + i) + 2.9802322387695312e-8
        noise = -tl.log(-tl.log(tl.minimum(share, 0.99999994)))
        value = tl.where(value >= bound, value + heat * noise, float("-inf"))
        place = tl.where(value > best, i, place)
        best = tl.maximum(best, value)
    # The first of equal values is taken.
    top = tl.max(best, axis=0)
    first = tl.min(tl.where(best == top, place, length - 1), axis=0)
    tl.store(out + tl.program_id(0), first)
    if bests is not None:
        tl.store(bests + tl.program_id(0), top)


@jit
def first_best_kernel(places, bests, out, parts, PARTS: tl.constexpr):
    """The place of the best part of a row, the first of equal ones."""
    part = tl.arange(0, PARTS)
    at = tl.program_id(0) * parts + part
    best = tl.load(bests + at, mask=part < parts, other=float("-inf"))
    is_best = (part < parts) & (best == tl.max(best, axis=0))
    place = tl.load(places + at, mask=is_best, other=0x7FFFFFFF)
    tl.store(out + tl.program_id(0), tl.min(place, axis=0))


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
