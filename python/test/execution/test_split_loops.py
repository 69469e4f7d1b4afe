# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over rows of which a bound leaves out some, all or none."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import make_kernel


@pytest.mark.parametrize("condition", ["row < n", "n > row", "row <= n - 1", "n - 1 >= row"])
@pytest.mark.parametrize("kind", ["sum", "max", "argmin"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rows_within_a_bound(run, rng, dtype: str, kind: str, condition: str) -> None:
    """What lies beyond it is not read, and counts as `other`."""
    kernel = make_kernel(f"""
@tessera.jit
def kernel(x_ptr, out_ptr, first, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = first + tl.arange(0, ROWS)[:, None].to(tl.{dtype})
    column = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + row * BLOCK + column, mask={condition}, other=3)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.{kind}(x, axis=0))
""")
    rows, block = 40, 96
    x = rng.integers(-9, 10, (rows, block)).astype(np.float32)
    reduce = {"sum": np.sum, "max": np.max, "argmin": np.argmin}[kind]
    for first, n in [(0, 40), (0, 13), (24, 40), (24, 39), (24, 25), (24, 24), (30, 3), (0, -7)]:
        tile = np.full((16, block), 3, np.float32)
        count = np.clip(n - first, 0, 16)
        tile[:count] = x[first : first + count]
        out = np.zeros(block, np.int32 if kind == "argmin" else np.float32)
        run(kernel, (1,), x[: max(n, 1)].copy(), out, first, n, ROWS=16, BLOCK=block)
        np.testing.assert_array_equal(out, reduce(tile, axis=0))


def test_row_numbers_that_wrap(run, rng) -> None:
    """Behind the largest integer comes the smallest, which is within the bound again."""
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr, first, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (first + row)[:, None] < n
    x = tl.load(x_ptr + row[:, None] * BLOCK + column[None, :], mask=mask, other=0)
    tl.store(out_ptr + column, tl.sum(x, axis=0))
""")
    x = rng.integers(-9, 10, (16, 96)).astype(np.float32)
    most = 2**31 - 1
    for first, n in [(most - 5, most), (most - 5, most - 3), (most - 5, 4), (most, -(2**31) + 3)]:
        row = (first + np.arange(16, dtype=np.int64)).astype(np.int32)
        out = np.zeros(96, np.float32)
        run(kernel, (1,), x, out, first, n, ROWS=16, BLOCK=96)
        np.testing.assert_array_equal(out, x[row < n].sum(axis=0))
