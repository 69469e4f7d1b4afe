# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The largest or smallest number with its first index, to the bit: NaN, both zeros, equal numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl


@tessera.jit
def own_largest(number1, index1, number2, index2):
    """Another spelling, for numbers that are not NaN."""
    keeps = (number1 > number2) | ((number1 == number2) & (index1 < index2))
    return tl.where(keeps, number1, number2), tl.where(keeps, index1, index2)


@tessera.jit
def extremes(
    x_ptr, values_ptr, places_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr
):
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + row[:, None] * COLUMNS + column[None, :])
    line = tl.arange(0, ROWS if AXIS == 0 else COLUMNS)
    to = tl.arange(0, COLUMNS if AXIS == 0 else ROWS)
    extent: tl.constexpr = COLUMNS if AXIS == 0 else ROWS
    places = line[:, None] if AXIS == 0 else line[None, :]
    largest, first = tl.max(x, axis=AXIS, return_indices=True)
    tl.store(values_ptr + to, largest)
    tl.store(places_ptr + to, first)
    smallest, first = tl.min(x, axis=AXIS, return_indices=True)
    tl.store(values_ptr + extent + to, smallest)
    tl.store(places_ptr + extent + to, first)
    clean = tl.where(x == x, tl.abs(x), 0.0)
    own, first = tl.reduce((clean, tl.broadcast_to(places, x.shape)), AXIS, own_largest)
    tl.store(values_ptr + 2 * extent + to, own)
    tl.store(places_ptr + 2 * extent + to, first)


def first_of(line: np.ndarray, sign: int) -> int:
    """The first index of the largest number (of its negative); of NaNs alone, 0."""
    numbers = sign * line[~np.isnan(line)]
    return int(np.flatnonzero(sign * line == numbers.max())[0]) if len(numbers) else 0


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape, warps", [((2, 512), 2), ((8, 64), 1), ((4, 2), 1), ((256, 16), 4)])
def test_extremes(run, rng, shape, warps, axis):
    lines = rng.integers(-3, 4, shape if axis == 1 else shape[::-1]).astype(np.float32)
    lines[lines == 0] *= rng.choice([-1, 1], int((lines == 0).sum()))
    lines[rng.random(lines.shape) < 0.3] = np.nan
    odd = np.arange(lines.shape[1]) % 2 == 1
    kinds = [
        np.nan,
        np.where(odd, 0.0, -0.0),
        np.where(odd, -np.inf, np.nan),
        np.where(odd, np.inf, 2),
    ]
    for line, kind in zip(lines, kinds):
        line[:] = kind
    extent = len(lines)
    values, places = np.zeros(3 * extent, np.float32), np.zeros(3 * extent, np.int32)
    x = np.ascontiguousarray(lines if axis == 1 else lines.T)
    run(extremes, (1,), x, values, places, *shape, axis, num_warps=warps)
    clean = np.where(np.isnan(lines), 0, np.abs(lines))
    for part, (source, sign) in enumerate([(lines, 1), (lines, -1), (clean, 1)]):
        want = np.array([first_of(line, sign) for line in source])
        of_part = slice(part * extent, (part + 1) * extent)
        np.testing.assert_array_equal(places[of_part], want)
        number = source[np.arange(extent), want]
        np.testing.assert_array_equal(values[of_part], number)
        is_number = ~np.isnan(number)
        np.testing.assert_array_equal(
            np.signbit(values[of_part])[is_number], np.signbit(number)[is_number]
        )
