# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of which a GPU computes no more bits than are kept of what is made of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl


@tessera.jit
def gelu(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, x * 0.5 * (1.0 + tl.math.erf(x * 0.7071067811865476)))


@pytest.mark.parametrize("result", ["f2", "f4"])
def test_gelu(result):
    """Of every float16, in f32; the result is rounded to float16, or not."""
    x = np.arange(65536).astype("u2").view("f2").astype("f4")
    y = np.full(65536, 77, result)
    tessera.gpu.simulate(gelu)[(32,)](x, y, N=2048, target="sm_90a").check()
    with np.errstate(invalid="ignore"):
        erf = np.array([math.erf(value) for value in x.astype("f8") / 2**0.5])
        # In f32, 1 + erf of what is far below 0 is 0.
        want = x.astype("f8") / 2 * (1 + erf)
    is_number = np.isfinite(want)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x) | np.isneginf(x))
    np.testing.assert_array_equal(y[np.isposinf(x)], np.inf)
    x, y, want = x[is_number].astype("f8"), y[is_number].astype("f8"), want[is_number]
    # Half a last place of the result, and erf's error.
    places = 11 if result == "f2" else 24
    own = abs(want) * 2.0 ** (-13 if result == "f2" else -22) + abs(x) * 2.0**-23
    assert (abs(y - want) <= abs(want) * 2.0**-places + 2.0**-25 + own).all()
