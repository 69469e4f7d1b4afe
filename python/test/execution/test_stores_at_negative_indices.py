# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stores of dots' results at indices of which a mask excludes the negative ones.

A GPU faults on a store by TMA at a negative coordinate. The simulator reports it.
"""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl

ROWS, WIDTH, DEPTH = 192, 64, 128


@tessera.jit
def multiply(a_ptr, b_ptr, out_ptr, first_ptr, STEP: tl.constexpr, ROWS: tl.constexpr):
    # No launch knows its sign.
    rows = tl.load(first_ptr) * STEP + tl.arange(0, 64)
    depth, columns = tl.arange(0, 64), tl.arange(0, 64)
    inside = (rows >= 0) & (rows < ROWS)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, 128, 64):
        a = tl.load(a_ptr + rows[:, None] * 128 + k + depth[None, :], inside[:, None], other=0.0)
        b = tl.load(b_ptr + (k + depth)[:, None] * 64 + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + rows[:, None] * 64 + columns[None, :], acc, inside[:, None])


@pytest.mark.parametrize("step", [64, 32])
def test_only_whole_tiles_are_left_to_tma(rng, step):
    """Tiles of 64 rows from a multiple of 64 on lie below 0 as a whole; from 32 on, they may not."""
    a = rng.integers(-3, 4, (ROWS, DEPTH)).astype(np.float16)
    b = rng.integers(-3, 4, (DEPTH, WIDTH)).astype(np.float16)
    product = a.astype(np.float32) @ b.astype(np.float32)
    first = np.zeros(1, np.int32)
    arguments = (a, b, np.zeros((ROWS, WIDTH), np.float32), first)
    options = {"STEP": step, "ROWS": ROWS, "target": "sm_90a", "num_warps": 4}
    compiled = multiply.warmup(*arguments, grid=(1,), **options)
    assert ("shared::cta.tile.bulk_group [" in compiled.asm["ptx"]) == (step == 64)
    for first[0] in (-2, -1, 0, 2, 3):
        arguments[2].fill(9)
        tessera.gpu.simulate(multiply)[(1,)](*arguments, **options).check()
        want = np.full((ROWS, WIDTH), 9, np.float32)
        begin, end = (min(max(row, 0), ROWS) for row in (first[0] * step, first[0] * step + 64))
        want[begin:end] = product[begin:end]
        np.testing.assert_array_equal(arguments[2], want)
