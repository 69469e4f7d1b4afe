# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of which a GPU computes no more than their arguments and results ask for."""

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


@tessera.jit
def shifted_exp(x_ptr, o_ptr, lse_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    largest = tl.max(x, 0)
    e = tl.exp(x - largest)
    tl.store(o_ptr + i, e)
    tl.store(lse_ptr + tl.program_id(0), largest + tl.log(tl.sum(e, 0)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("deterministic", [False, True])
def test_exp_of_what_is_not_positive(rng, deterministic):
    """An element minus the maximum: another exp, of the same error, with the same special values."""
    x = rng.normal(0, 1, (6, 256)) * [[0.01], [1], [8], [30], [1], [1]]
    x[0, :2], x[1, 7], x[2, 9], x[3, 3], x[4, 1] = -np.inf, np.nan, np.inf, -1e30, -3.4e38
    x[5] = -np.inf
    x = x.astype("f4")
    out, lse = np.full_like(x, 7), np.full(len(x), 7, "f4")
    tessera.gpu.simulate(shifted_exp)[(len(x),)](
        x, out, lse, 256, target="sm_90a", deterministic=deterministic
    ).check()
    with np.errstate(invalid="ignore"):
        difference = x - np.fmax.reduce(x, 1, keepdims=True)
        want = np.exp(difference.astype("f8"))
    np.testing.assert_array_equal(np.isnan(out), np.isnan(want))
    assert (out[difference == 0] == 1).all() and (out[difference == -np.inf] == 0).all()
    normal = want > 2.0**-126
    error = abs(out - want)[normal] / np.spacing(want[normal].astype("f4"))
    assert error.max() < 1.01
    assert deterministic or not out[want < 2.0**-127].any()
    code = tessera.compile(
        shifted_exp, "*fp32:16, *fp32:16, *fp32:16", constexprs={"N": 256}, target="sm_90a",
        deterministic=deterministic,
    ).asm["ptx"]  # fmt: skip
    # Each thread has two elements. The other exp adds 1.5 * 2^23 to find a whole power of two.
    assert code.count("ex2.approx.ftz.f32") == 2 and ("0f4B400001" in code) == deterministic


@tessera.jit
def log_of_one_and_share(x_ptr, share_ptr, y_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    share = tl.exp(-tl.abs(tl.load(x_ptr + at)))
    tl.store(share_ptr + at, share)
    tl.store(y_ptr + at, tl.log1p(share))


def test_log1p_of_a_bounded_argument():
    """Of what is from 0 to 1, off by less than 4 ulp; a NaN stays one."""
    x = np.concatenate([np.linspace(-110, 110, 4093, dtype="f4"), [0, np.inf, np.nan]]).astype("f4")
    share, y = np.empty_like(x), np.empty_like(x)
    tessera.gpu.simulate(log_of_one_and_share)[(2,)](x, share, y, N=2048, target="sm_90a").check()
    want = np.log1p(share.astype("f8"))
    places = np.spacing(want.astype("f4")).astype("f8")
    assert np.isnan(y[-1]) and y[-2] == 0
    assert (abs(y - want) < 4 * places)[:-1].all()
