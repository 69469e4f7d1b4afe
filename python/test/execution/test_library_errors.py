# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The worst errors of `libdevice` on docs/Numerics.md, over a sample of arguments, and what its
functions are of zeros, infinities and NaN."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from execution.library_errors import DTYPES, FUNCTIONS, VALUES, Function, apply, errors, function_of
from execution.math_errors import LEVELS
from execution.running import Runner, host_has, make_kernel


@functools.lru_cache(maxsize=None)
def values() -> Any:
    """The sample that library_errors.py wrote."""
    with np.load(VALUES) as file:
        return dict(file)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
@pytest.mark.parametrize("dtype", DTYPES)
def test_errors(run, function: Function, dtype: str) -> None:
    key = f"{function.name}.{dtype}"
    arguments = list(values()[f"{key}.x"])
    high = values()[f"{key}.high"]
    assert len(high) >= 30
    got = apply(run, function, arguments)
    found = errors(function, arguments[0], got, high, values().get(f"{key}.low", 0.0))
    if run.target == "cuda" and function.name in ("j0", "j1", "y0", "y1"):
        # Beyond 8, NVIDIA's have an absolute bound (CUDA Math API, mathematical functions).
        far = np.abs(arguments[0]) >= 8
        most = 2.2e-6 if dtype == "float32" else 5e-12
        assert np.abs(got.astype(np.float64) - high)[far].max() <= most
        found = np.where(far, 0, found)
    worst = int(np.argmax(found))
    place = [x[worst] for x in arguments]
    assert found[worst] <= function.bound(
        dtype, run.target
    ), f"{function.name}({place}) is off by {found[worst]} ulp: {got[worst]}, not {high[worst]}"


@pytest.mark.in_turn("dtype")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_deterministic_results_are_those_of_every_machine(function: Function, dtype: str) -> None:
    arguments = list(values()[f"{function.name}.{dtype}.x"])
    first = apply(Runner("x86-64"), function, arguments, deterministic=True)
    for level in LEVELS:
        if host_has(level):
            got = apply(Runner(level), function, arguments, deterministic=True)
            np.testing.assert_array_equal(got, first)


INF, NAN = np.inf, np.nan
SPECIAL: dict[str, list[tuple[Any, float]]] = {
    "exp10": [(-INF, 0), (INF, INF), (NAN, NAN), (0, 1), (-0.0, 1), (400, INF), (-400, 0), (2, 100)],
    "log10": [(0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (NAN, NAN), (1, 0), (1000, 3), (-INF, NAN)],
    "cbrt": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (27, 3), (-8, -2)],
    "rcbrt": [(0, INF), (-0.0, -INF), (INF, 0), (-INF, -0.0), (NAN, NAN), (27, 1 / 3), (-8, -0.5)],
    "sinpi": [(0, 0), (-0.0, -0.0), (3, 0), (-3, -0.0), (0.5, 1), (1.5, -1), (INF, NAN), (NAN, NAN), (1e16, 0)],
    "cospi": [(0, 1), (0.5, 0), (-1.5, 0), (1, -1), (INF, NAN), (NAN, NAN), (1e16, 1), (3, -1)],
    "asin": [(0, 0), (-0.0, -0.0), (1.5, NAN), (NAN, NAN), (INF, NAN), (1, np.pi / 2)],
    "acos": [(1, 0), (-1, np.pi), (1.5, NAN), (-INF, NAN), (NAN, NAN), (0, np.pi / 2)],
    "atan": [(0, 0), (-0.0, -0.0), (INF, np.pi / 2), (-INF, -np.pi / 2), (NAN, NAN)],
    "sinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (800, INF), (-800, -INF)],
    "cosh": [(0, 1), (INF, INF), (-INF, INF), (NAN, NAN), (800, INF), (-800, INF)],
    "asinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1, 0), (0.5, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "atanh": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (INF, NAN), (NAN, NAN)],
    "erfc": [(0, 1), (INF, 0), (-INF, 2), (NAN, NAN), (50, 0), (-50, 2)],
    "erfcx": [(0, 1), (INF, 0), (-INF, INF), (NAN, NAN), (-30, INF)],
    "erfinv": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (NAN, NAN)],
    "erfcinv": [(1, 0), (0, INF), (2, -INF), (-0.5, NAN), (2.5, NAN), (NAN, NAN)],
    "normcdf": [(0, 0.5), (INF, 1), (-INF, 0), (NAN, NAN), (50, 1), (-50, 0)],
    "normcdfinv": [(0.5, 0), (0, -INF), (1, INF), (-0.5, NAN), (1.5, NAN), (NAN, NAN)],
    "lgamma": [(1, 0), (2, 0), (0, INF), (-0.0, INF), (-3, INF), (INF, INF), (-INF, INF), (NAN, NAN)],
    "tgamma": [
        (1, 1), (5, 24), (0, INF), (-0.0, -INF), (-3, NAN), (INF, INF), (-INF, NAN), (NAN, NAN), (200, INF),
        (-200.5, -0.0), (-201.5, 0), (-250, NAN),
    ],
    "j0": [(0, 1), (INF, 0), (-INF, 0), (NAN, NAN)],
    "j1": [(0, 0), (-0.0, -0.0), (INF, 0), (NAN, NAN)],
    "y0": [(0, -INF), (-1, NAN), (INF, 0), (NAN, NAN), (-INF, NAN)],
    "y1": [(0, -INF), (-1, NAN), (INF, 0), (NAN, NAN), (-INF, NAN)],
    "cyl_bessel_i0": [(0, 1), (INF, INF), (-INF, INF), (NAN, NAN)],
    "cyl_bessel_i1": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "hypot": [((INF, NAN), INF), ((NAN, -INF), INF), ((NAN, 1), NAN), ((0, -0.0), 0), ((3, -4), 5)],
    "rhypot": [((INF, NAN), 0), ((NAN, 1), NAN), ((0, -0.0), INF), ((3, -4), 0.2)],
    "atan2": [
        ((0.0, 1), 0), ((-0.0, 1), -0.0), ((0.0, -1), np.pi), ((-0.0, -1), -np.pi), ((0.0, 0.0), 0), ((-0.0, 0.0), -0.0),
        ((0.0, -0.0), np.pi), ((-0.0, -0.0), -np.pi), ((1, 0.0), np.pi / 2), ((-1, -0.0), -np.pi / 2),
        ((INF, INF), np.pi / 4), ((INF, -INF), 3 * np.pi / 4), ((-INF, 1), -np.pi / 2), ((1, INF), 0),
        ((1, -INF), np.pi), ((NAN, 1), NAN), ((1, NAN), NAN),
    ],
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_angles_of_the_least_numbers(run, dtype: str) -> None:
    """A part of 2^-1074, or a sum of two parts, is itself or nothing."""
    counts = np.array([0, 1, -1, 2, 3, 7, 50, -1000])
    y, x = (each.ravel() for each in np.meshgrid(counts, counts))
    least = np.finfo(dtype).smallest_subnormal
    got = apply(run, function_of("atan2"), [y.astype(dtype) * least, x.astype(dtype) * least])
    # The angle is that of the counts.
    np.testing.assert_allclose(got, np.arctan2(y.astype(dtype), x), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_arguments(run, name: str, dtype: str) -> None:
    if run.target == "cuda":
        pytest.skip("as libdevice has it")
    function = function_of(name)
    rows = [arguments if function.arity == 2 else (arguments,) for arguments, _ in SPECIAL[name]]
    arguments = [np.array(column).astype(dtype) for column in zip(*rows)]
    want = np.array([value for _, value in SPECIAL[name]]).astype(dtype)
    got = apply(run, function, arguments)
    np.testing.assert_allclose(got, want, rtol=2 * float(np.finfo(dtype).eps))
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


ORDERS = make_kernel("""
from tessera.language.extra import libdevice

@tessera.jit
def kernel(n_ptr, x_ptr, j_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    n, x = tl.load(n_ptr + offsets), tl.load(x_ptr + offsets)
    tl.store(j_ptr + offsets, libdevice.jn(n, x))
    tl.store(y_ptr + offsets, libdevice.yn(n, x))
""")


def j_of_order(n: int, x: float) -> float:
    """J of order n by its integral: J(x) is the mean of cos(n t - x sin t) over 0 to pi."""
    t = (np.arange(4000) + 0.5) * np.pi / 4000
    return float(np.mean(np.cos(n * t - x * np.sin(t))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_bessel_functions_of_any_order(run, rng, dtype: str) -> None:
    if run.target == "cuda":
        pytest.skip("as libdevice has it")
    n = np.resize(np.array([0, 1, 2, 3, 5, 8, 13, 30, 60, -1], np.int32), 1024)
    x = rng.uniform(0.1, 80, 1024).astype(dtype)
    run(ORDERS, (1,), n, x, j := np.zeros_like(x), y := np.zeros_like(x), BLOCK=1024)
    assert np.isnan(j[n < 0]).all() and np.isnan(y[n < 0]).all()
    step = float(np.finfo(dtype).eps)
    for order, argument, got in zip(n, x, j):
        if order >= 0:
            want = j_of_order(int(order), float(argument))
            assert abs(got - want) <= 4 * step, (order, argument, got, want)
    # J(n + 1) Y(n) - J(n) Y(n + 1) is 2 / (pi x).
    x = rng.uniform(20, 80, 1024).astype(dtype)
    n = rng.integers(0, 30, 1024).astype(np.int32)
    parts = [np.zeros_like(x) for _ in range(4)]
    run(ORDERS, (1,), n, x, parts[0], parts[1], BLOCK=1024)
    run(ORDERS, (1,), n + np.int32(1), x, parts[2], parts[3], BLOCK=1024)
    j0, y0, j1, y1 = (part.astype(np.float64) for part in parts)
    size = np.abs(j1 * y0) + np.abs(j0 * y1)
    np.testing.assert_array_less(
        np.abs(j1 * y0 - j0 * y1 - 2 / (np.pi * x.astype(np.float64))), 8 * step * (size + 0.01)
    )
