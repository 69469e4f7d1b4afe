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
    double_arguments,
    measure,
    single_arguments,
)

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-310, 5e-324, 1.8e308, 1e300, 0.5, 2.0]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_float32(run, function: Function) -> None:
    with np.errstate(over="ignore"):
        special = np.resize(np.array(SPECIAL).astype(np.float32), BLOCK)
    sample = itertools.chain([special], single_arguments(26003))
    worst, where = measure(run, function, sample)
    assert worst <= function.bound("float32", run.target), f"{worst} ulp at {where}"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_float64(run, function: Function) -> None:
    sample = itertools.chain([np.resize(SPECIAL, BLOCK)], double_arguments(BLOCK))
    worst, where = measure(run, function, sample)
    assert worst <= function.bound("float64", run.target), f"{worst} ulp at {where}"


@pytest.mark.parametrize("name", ["sin", "tan", "tanh", "erf", "expm1", "log1p"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_odd_functions_keep_the_sign_of_zero(run, name: str, dtype: str) -> None:
    from execution.math_errors import kernel_of

    x = np.resize(np.array([0.0, -0.0], dtype), 64)
    out = np.ones_like(x)
    run(kernel_of(name), (1,), x, out, BLOCK=64)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(x))
    np.testing.assert_array_equal(out, x)
