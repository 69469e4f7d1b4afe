# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that only load and compute: a GPU loads for several iterations at once, of which some may
be past the end (tilegpu-overlap-loads).
"""

import numpy as np
import pytest

import tessera
import tessera.language as tl

STEP = 64


@tessera.jit
def fold(x, weights, ends, out, first, STEP: tl.constexpr):
    """A program for each end: the largest number, a weighted sum, the iterations."""
    end = tl.load(ends + tl.program_id(0))
    i = tl.arange(0, STEP)
    at = x + i
    largest = tl.full((STEP,), -1000.0, tl.float32)
    total = tl.zeros((STEP,), tl.float32)
    count = 0
    for start in range(first, end, STEP):
        here = tl.load(at, mask=i < end - start, other=-2000.0)
        weight = tl.load(weights + (start - first) // STEP)
        largest = tl.maximum(largest, here)
        total = total * 0.5 + tl.where(i < end - start, here * weight, 0.0)
        at += STEP
        count += 1
    row = out + tl.program_id(0) * (2 * STEP + 1)
    tl.store(row + i, largest)
    tl.store(row + STEP + i, total)
    tl.store(row + 2 * STEP, count.to(tl.float32))


@pytest.mark.parametrize("first", [0, -(1 << 31), (1 << 31) - 1 - 18 * STEP])
def test_numbers_of_iterations(run, rng, first):
    """Also next to the ends of the type, where the loop's variable would leave it."""
    lengths = [0, 1, STEP, STEP + 1, 7 * STEP, 8 * STEP, 8 * STEP + 3, 9 * STEP, 18 * STEP]
    x = rng.integers(-8, 9, 18 * STEP).astype(np.float32)
    weights = rng.integers(1, 5, 18).astype(np.float32)
    ends = np.array([first + n for n in lengths], np.int32)
    want = np.full((len(lengths), 2 * STEP + 1), 0, np.float32)
    for n, row in zip(lengths, want):
        row[:STEP] = -1000
        for k in range(-(-n // STEP)):
            here = np.full(STEP, -2000, np.float32)
            part = x[k * STEP : min(n, (k + 1) * STEP)]
            here[: len(part)] = part
            row[:STEP] = np.maximum(row[:STEP], here)
            row[STEP:-1] *= 0.5
            row[STEP : STEP + len(part)] += part * weights[k]
            row[-1] += 1
    got = np.zeros_like(want)
    run(fold, (len(lengths),), x, weights, ends, got, first, STEP)
    np.testing.assert_array_equal(got, want)


def test_loads_come_first():
    """Eight loads of 16 bytes a thread stand in front of the first use; no loop does the rest."""
    types = {"x": "*fp32:16", "weights": "*fp32", "ends": "*i32", "out": "*fp32", "first": "i32"}
    kernel = tessera.compile(
        fold, signature=types, constexprs={"STEP": 512}, target="sm_80", num_warps=4
    )
    text = kernel.stages["ptx"]
    assert text.count("ld.global.v4") == 8
    loop = text[text.index("ld.global.v4") : text.rindex("ld.global.v4")]
    assert "max.f32" not in loop
