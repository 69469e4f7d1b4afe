# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The worst errors of docs/Numerics.md, over a sample of arguments.

Special values (zeros of both signs, infinities, NaN, denormal numbers) are in the sample.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from execution.math_errors import (
    BLOCK,
    FUNCTIONS,
    Function,
    arguments,
    function_of,
    kernel_of,
    measure,
)

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-310, 5e-324, 1.8e308, 1e300, 0.5, 2.0]


def special(function: Function, dtype: str) -> np.ndarray:
    """Special values, or all pairs of them."""
    with np.errstate(over="ignore"):
        values = np.array(SPECIAL).astype(dtype)
    rows = np.stack([x.ravel() for x in np.meshgrid(values, values)])
    return (
        np.stack([np.resize(row, BLOCK) for row in rows])
        if function.takes_two
        else np.resize(values, BLOCK)
    )


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_float32(run, function: Function) -> None:
    sample = itertools.chain(
        [special(function, "float32")], arguments(function, "float32", BLOCK, 26003)
    )
    worst, where = measure(run, function, sample)
    assert worst <= function.bound("float32", run.target), f"{worst} ulp at {where}"


@pytest.mark.parametrize("name", ["exp", "exp2"])
@pytest.mark.parametrize("flushes", [True, False])
def test_results_below_the_normal_range(run, name: str, flushes: bool) -> None:
    """Those of exp2 may be 0 on a GPU, unless the launch says otherwise."""
    function = function_of(name)
    ends = np.array([-104, -87.0]) / (np.log(2) if name == "exp2" else 1)
    x = np.linspace(*ends, BLOCK, dtype=np.float32)
    worst, where = measure(run, function, iter([x]), enable_reflect_ftz=flushes)
    assert worst <= function.bound("float32", run.target), f"{worst} ulp at {where}"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_float64(run, function: Function) -> None:
    sample = itertools.chain(
        [special(function, "float64")], arguments(function, "float64", BLOCK, 1)
    )
    worst, where = measure(run, function, sample)
    assert worst <= function.bound("float64", run.target), f"{worst} ulp at {where}"


@pytest.mark.parametrize("name", ["sin", "tan", "tanh", "erf", "expm1", "log1p"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_odd_functions_keep_the_sign_of_zero(run, name: str, dtype: str) -> None:
    x = np.resize(np.array([0.0, -0.0], dtype), 64)
    out = np.ones_like(x)
    run(kernel_of(name), (1,), x, out, BLOCK=64)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(x))
    np.testing.assert_array_equal(out, x)
