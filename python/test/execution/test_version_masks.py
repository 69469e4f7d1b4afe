# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Groups whose masks are true everywhere (Checks/VersionMasks.cpp): the masks count where they are
not, and where indices wrap around."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import CPU_TARGETS, host_has

import tessera
import tessera.language as tl

TARGETS = [target for target in CPU_TARGETS if host_has(target)]
SIZES = ["row", "first", "steps", "length", "factor"]


@tessera.jit(do_not_specialize=SIZES)
def masked_sums(
    x_ptr, out_ptr, row, first, steps, length, factor, FORM: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """Sums over columns of the tile x, by iteration: masked by row and column, which begin at
    `first` and go on by BN in each step."""
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    x = tl.load(x_ptr + m[:, None] * BN + n[None, :])
    rows = row + m
    for i in range(0, steps):
        columns = first + i * BN + n
        if FORM == "causal":
            mask = (rows[:, None] >= columns[None, :]) & (columns < length)[None, :]
        elif FORM == "band":
            mask = (rows[:, None] - columns[None, :] < length) & (length > -factor)
        elif FORM == "scaled":
            mask = (columns * 3 + 1)[None, :] > (rows * 2 - 5)[:, None]
        else:
            mask = (columns * factor)[None, :] <= rows[:, None]
        y = tl.where(mask, x, 1000.0)
        tl.store(out_ptr + i * BM + m, tl.sum(y, axis=1))


@pytest.mark.parametrize("form", ["causal", "band", "scaled", "product"])
@pytest.mark.parametrize("row", [0, 63, 128, 2**31 - 64, 2**31 - 63, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("first", [0, 1, -64, 2**31 - 128, -(2**31)])
def test_masks(rng, form, row, first) -> None:
    steps, rows, columns = 4, 64, 32
    x = rng.integers(-4, 5, (rows, columns)).astype(np.float32)
    for length in (0, 70, 2**31 - 1):
        want, got = (np.zeros((steps, rows), np.float32) for _ in range(2))
        arguments = (row, first, steps, length, 3, form, rows, columns)
        tessera.interpret(masked_sums)[(1,)](x, want, *arguments)
        masked_sums[(1,)](x, got, *arguments, cpu=TARGETS[0])
        np.testing.assert_array_equal(got, want)
