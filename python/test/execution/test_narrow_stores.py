# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masked stores of integers that were wider a moment ago: nothing is written beside a lane."""

import numpy as np
import pytest

from execution.running import draw, make_kernel

GUARD = 16  # elements before and after the array
NARROWED = [
    ("int64", "int32"), ("int64", "int16"), ("int64", "int8"),
    ("int32", "int16"), ("int32", "int8"), ("int16", "int8"),
]  # fmt: skip
MASKS = ["i == 0", "i == N - 1", "i == N // 2", "i % 3 != 1", "i < 1", "(i & 6) == 4", "i < n"]

SOURCE = """
@tessera.jit
def kernel(x, o, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i).to(tl.{to}), mask={mask})
"""


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 24, 32, 64])
@pytest.mark.parametrize("wide, narrow", NARROWED)
def test_a_masked_store_of_truncated_integers(run, rng, wide, narrow, lanes):
    x = draw(rng, lanes, wide)
    for mask in MASKS:
        memory = draw(rng, GUARD + lanes + GUARD, narrow)
        want = memory.copy()
        i = np.arange(lanes)
        on = eval(mask, {"i": i, "N": lanes, "n": 1})  # noqa: S307: one of MASKS
        want[GUARD:-GUARD][on] = x.astype(narrow)[on]
        kernel = make_kernel(SOURCE.format(to=narrow, mask=mask))
        run(kernel, (1,), x, memory[GUARD : GUARD + lanes], 1, N=lanes)
        np.testing.assert_array_equal(memory, want, err_msg=mask)


REDUCED = """
@tessera.jit
def smaller(v0, i0, v1, i1):
    t = (v0 < v1) | ((v0 == v1) & (i0 < i1))
    return tl.where(t, v0, v1), tl.where(t, i0, i1)


@tessera.jit
def kernel(x, o):
    v = tl.load(x + ((tl.arange(0, 16)[:, None] * 2 + tl.arange(0, 2)[None, :]) // 2))
    a, b = tl.reduce((v, v), 0, smaller)
    i = tl.arange(0, 2)
    tl.store(o + i, tl.sort(b, dim=0, descending=True).to(tl.int8), mask=i % 3 != 1)
"""


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_a_masked_store_of_what_was_reduced_and_sorted(run, dtype):
    x = (np.arange(1, 65) % 100).astype(dtype)
    memory = np.full(34, 77, np.int8)
    run(make_kernel(REDUCED), (1,), x, memory[16:18])
    want = np.full(34, 77, np.int8)
    want[16] = 1
    np.testing.assert_array_equal(memory, want)
