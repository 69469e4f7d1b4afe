# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of elements by bins, places in sorted lines, and runs of equal elements."""

from __future__ import annotations

import tessera.language as tl
from tessera.runtime.jit import jit

BLOCK = 512


@jit
def bincount_kernel(
    x, weights, out, count, bins, length, BLOCK: tl.constexpr, IS_ALONE: tl.constexpr
):
    """Adds 1, or the weight, at each index that is a bin, for `length` elements of a program.

    IS_ALONE: there is one program, which stores zeros first.
    """
    begin = tl.program_id(0).to(tl.int64) * length
    end = tl.minimum(begin + length, count)
    if IS_ALONE:
        for start in range(0, bins, BLOCK):
            bin = start + tl.arange(0, BLOCK)
            tl.store(out + bin, tl.zeros((BLOCK,), out.dtype.element_ty), mask=bin < bins)
        tl.debug_barrier()
    for start in range(begin, end, BLOCK):
        place = start + tl.arange(0, BLOCK)
        at = tl.load(x + place, mask=place < end, other=-1).to(tl.int64)
        inside = (place < end) & (at >= 0) & (at < bins)
        value = tl.full((BLOCK,), 1, out.dtype.element_ty)
        if weights is not None:
            value = tl.load(weights + place, mask=inside).to(out.dtype.element_ty)
        if IS_ALONE:
            tl.atomic_add(out + at, value, mask=inside, sem="relaxed", scope="cta")
        else:
            tl.atomic_add(out + at, value, mask=inside)


@jit
def bin_of(value, is_there, bins, low, high, ACC: tl.constexpr):
    """The bin of a value, of several of one width, and whether it has one. `high` is in the last bin."""
    value, least, most = value.to(ACC), low.to(ACC), high.to(ACC)
    inside = is_there & (value >= least) & (value <= most)
    share = tl.where(inside, (value - least) / (most - least), 0.0)
    return tl.minimum((share * bins).to(tl.int32), bins - 1), inside


@jit
def histc_kernel(x, out, count, bins, low: tl.float64, high: tl.float64, BLOCK: tl.constexpr,
                 ACC: tl.constexpr):  # fmt: skip
    """Counts the elements from low to high in bins of one width."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count)
    at, inside = bin_of(value, place < count, bins, low, high, ACC)
    tl.atomic_add(out + at, tl.full((BLOCK,), 1, out.dtype.element_ty), mask=inside)


@jit
def add_counts(out, counts, bins, BINS: tl.constexpr):
    """Adds the counts of a program to those of all."""
    bin = tl.arange(0, BINS)
    mask = (bin < bins) & (counts > 0)
    tl.atomic_add(out + bin, counts.to(out.dtype.element_ty), mask=mask, sem="relaxed")


@jit
def shared_bincount_kernel(x, out, count, bins, length, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """bincount_kernel for GPUs. A program has `length` elements, which it counts in shared memory."""
    begin = tl.program_id(0).to(tl.int64) * length
    end = tl.minimum(begin + length, count)
    counts = tl.zeros((BINS,), tl.int32)
    for start in range(begin, end, BLOCK):
        place = start + tl.arange(0, BLOCK)
        at = tl.load(x + place, mask=place < end, other=0)
        inside = (place < end) & (at >= 0) & (at < bins)
        counts += tl.histogram(tl.where(inside, at, 0).to(tl.int32), BINS, mask=inside)
    add_counts(out, counts, bins, BINS)


@jit
def shared_histc_kernel(x, out, count, bins, low: tl.float64, high: tl.float64, length,
                        BLOCK: tl.constexpr, BINS: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """histc_kernel for GPUs. A program has `length` elements, which it counts in shared memory."""
    begin = tl.program_id(0).to(tl.int64) * length
    end = tl.minimum(begin + length, count)
    counts = tl.zeros((BINS,), tl.int32)
    for start in range(begin, end, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + place, mask=place < end)
        at, inside = bin_of(value, place < end, bins, low, high, ACC)
        counts += tl.histogram(at, BINS, mask=inside)
    add_counts(out, counts, bins, BINS)


@jit
def place_in(edges, value, length, mask, STEPS: tl.constexpr, IS_RIGHT: tl.constexpr):
    """The first place in a sorted line whose element is not less; with IS_RIGHT, that is greater."""
    # The sum of two places has a bit more than the length.
    INDEX: tl.constexpr = tl.int32 if STEPS < 31 else tl.int64
    low = tl.zeros(value.shape, INDEX)
    high = (tl.zeros(value.shape, tl.int64) + length).to(INDEX)
    for _ in range(STEPS):
        middle = (low + high) // 2
        edge = tl.load(edges + middle, mask=mask & (low < high))
        # A NaN is behind all elements.
        is_behind = (edge > value) if IS_RIGHT else (edge >= value)
        high, low = (
            tl.where(is_behind & (low < high), middle, high),
            tl.where(is_behind | (low >= high), low, middle + 1),
        )
    return low


@jit
def histogram_kernel(x, edges, weights, out, count, bins, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """Adds 1, or the weight, for each element from an edge to the next. The last edge is in the last bin."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count)
    at = place_in(edges, value, bins + 1, place < count, STEPS, True) - 1
    at = tl.where(value == tl.load(edges + bins), bins - 1, at)
    inside = (place < count) & (at >= 0) & (at < bins)
    amount = tl.full((BLOCK,), 1, out.dtype.element_ty)
    if weights is not None:
        amount = tl.load(weights + place, mask=inside).to(out.dtype.element_ty)
    tl.atomic_add(out + at, amount, mask=inside)


@jit
def search_kernel(edges, x, out, count, length, per_line, BLOCK: tl.constexpr, STEPS: tl.constexpr,
                  IS_RIGHT: tl.constexpr, IS_ONE_LINE: tl.constexpr):  # fmt: skip
    """The place of each element in a sorted line, which is the same for all, or that of its own line."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    value = tl.load(x + place, mask=mask)
    if not IS_ONE_LINE:
        edges += place // per_line * length
    tl.store(out + place, place_in(edges, value, length, mask, STEPS, IS_RIGHT), mask=mask)


@jit
def run_starts(x, place, count):
    """1 where an element is the first, or differs from the one before."""
    value = tl.load(x + place, mask=place < count)
    before = tl.load(x + place - 1, mask=(place > 0) & (place < count))
    return ((place < count) & ((place == 0) | (value != before))).to(tl.int32)


@jit
def runs_kernel(x, out, begins, numbers, runs, count, length, BLOCK: tl.constexpr):
    """Stores the elements and the places that the runs of a segment begin with, from the segment's first
    place on, and how many there are. `numbers`: the run of each element, if wanted of one segment.

    A program has a segment of `length` elements, and reads them once.
    """
    begin = tl.program_id(0).to(tl.int64) * length
    end = tl.minimum(begin + length, count)
    next = begin
    for start in range(begin, end, BLOCK):
        place = start + tl.arange(0, BLOCK)
        starts = run_starts(x, place, end)
        found = tl.sum(starts, axis=0)
        if found > 0:
            run = next + (tl.cumsum(starts, axis=0) - 1)  # the sum is of 32 bits
            tl.store(out + run, tl.load(x + place, mask=starts > 0), mask=starts > 0)
            if begins is not None:
                tl.store(begins + run, place, mask=starts > 0)
            if numbers is not None:
                tl.store(numbers + place, run, mask=place < end)
            next += found
        elif numbers is not None:
            tl.store(numbers + place, tl.zeros((BLOCK,), tl.int64) + next - 1, mask=place < end)
    tl.store(runs + tl.program_id(0), next - begin)


@jit
def join_runs_kernel(x, segment_out, segment_begins, segment_runs, out, begins, numbers, runs, count,
                     length, BLOCK: tl.constexpr):  # fmt: skip
    """Moves what runs_kernel found in each segment behind that of the segments before. `runs` is the number
    of all runs, `numbers` the run of each element, if wanted."""
    segment = tl.program_id(0)
    before = tl.zeros((BLOCK,), tl.int64)
    for start in range(0, segment, BLOCK):
        i = start + tl.arange(0, BLOCK)
        before += tl.load(segment_runs + i, mask=i < segment, other=0)
    begin = segment.to(tl.int64) * length
    end = tl.minimum(begin + length, count)
    next, found = tl.sum(before, axis=0), tl.load(segment_runs + segment)
    for start in range(0, found, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(segment_out + begin + i, mask=i < found)
        tl.store(out + next + i, value, mask=i < found)
        if begins is not None:
            place = tl.load(segment_begins + begin + i, mask=i < found)
            tl.store(begins + next + i, place, mask=i < found)
    if end == count:
        tl.store(runs, next + found)
    if numbers is not None:
        for start in range(begin, end, BLOCK):
            place = start + tl.arange(0, BLOCK)
            starts = run_starts(x, place, end)
            tl.store(numbers + place, next + (tl.cumsum(starts, axis=0) - 1), mask=place < end)
            next += tl.sum(starts, axis=0)


@jit
def run_lengths_kernel(begins, out, runs, count, BLOCK: tl.constexpr):
    run = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    end = tl.load(begins + run + 1, mask=run < runs - 1, other=0).to(tl.int64)
    end = tl.where(run < runs - 1, end, count)
    tl.store(out + run, end - tl.load(begins + run, mask=run < runs), mask=run < runs)


@jit
def put_kernel(x, places, out, count, BLOCK: tl.constexpr):
    """out[places[i]] = x[i], where each place is there once."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(places + i, mask=i < count, other=-1).to(tl.int64)
    tl.store(out + at, tl.load(x + i, mask=i < count), mask=(at >= 0) & (at < count))
