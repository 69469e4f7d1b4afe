# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bessel functions.

Below 8 they are polynomials about their zeros, so that they are accurate next to these, too. From 8
on, they are amplitudes and phases, whose error is relative to the amplitude.
"""

from __future__ import annotations

import math
from typing import Any

import tessera.language.math as operations
import tessera.language.standard as standard
import tessera.language.types as types
from tessera.language.creation import cast
from tessera.language.extra.functions import coefficients
from tessera.language.extra.functions.basics import (
    INFINITY,
    NAN,
    absolute,
    call,
    in_double,
    is_negative,
    polynomial,
    scale,
    sqrt,
    sub,
    where,
    with_sign,
)
from tessera.language.extra.functions.elementary import clamp, exp_parts
from tessera.language.standard import library
from tessera.language.tensor import active, emit_one, tensor

_TWO_OVER_PI = 0.6366197723675814


def _about(x: tensor, zero: tuple[float, float], middle: float, terms: Any) -> tensor:
    """(x - zero) times a polynomial of x - middle."""
    high, low = zero
    return (sub(x, high) - low) * polynomial(x - middle, terms)


def _waves(single: bool, order: int, x: tensor) -> tuple[tensor, tensor]:
    """J and Y of order 0 or 1 for x >= 8."""
    inverse = 8.0 / x
    z = inverse * inverse
    p = polynomial(z, (coefficients.HANKEL_P0, coefficients.HANKEL_P1)[order][single])
    q = polynomial(z, (coefficients.HANKEL_Q0, coefficients.HANKEL_Q1)[order][single]) / x
    sine, cosine = call("sin", x), call("cos", x)
    # Cosine and sine of x - pi/4 (order 0) or x - 3 pi/4, times sqrt(2).
    if order == 0:
        c, s = cosine + sine, sine - cosine
    else:
        c, s = sine - cosine, emit_one("neg", sine + cosine)
    amplitude = 1.0 / (sqrt(x) * math.sqrt(math.pi))
    return amplitude * (p * c - q * s), amplitude * (p * s + q * c)


def _j0_below_4(single: bool, x: tensor) -> tensor:
    high, low = coefficients.J0_FIRST_ZERO
    difference = sub(x, high) - low
    factor = difference * (x + high)
    return factor * polynomial(x * x - 8.0, coefficients.J0_NEAR[single])


def _j1_below_2(single: bool, x: tensor) -> tensor:
    return x * polynomial(x * x, coefficients.J1_NEAR[single])


@in_double
def j0(single: bool, x: tensor) -> tensor:
    """J of order 0."""
    size = absolute(x)
    held = clamp(size, 0.0, 8.0)
    near = where(
        held < 4.0,
        _j0_below_4(single, held),
        _about(held, coefficients.J0_ZERO0, 6.7, coefficients.J0_ZERO0_TERMS[single]),
    )
    far, _ = _waves(single, 0, where((size < 8.0) | ~(size < INFINITY), 8.0, size))
    result = where(size < 8.0, near, where(size == INFINITY, 0.0, far))
    return where(x != x, x, result)


@in_double
def j1(single: bool, x: tensor) -> tensor:
    """J of order 1."""
    size = absolute(x)
    held = clamp(size, 0.0, 8.0)
    near = where(
        held < 2.5,
        _j1_below_2(single, held),
        where(
            held < 5.5,
            _about(held, coefficients.J1_ZERO0, 4.0, coefficients.J1_ZERO0_TERMS[single]),
            _about(held, coefficients.J1_ZERO1, 6.75, coefficients.J1_ZERO1_TERMS[single]),
        ),
    )
    far, _ = _waves(single, 1, where((size < 8.0) | ~(size < INFINITY), 8.0, size))
    result = where(size < 8.0, near, where(size == INFINITY, 0.0, far))
    result = where(is_negative(x), emit_one("neg", result), result)
    return where(x != x, x, result)


def _of_positive(x: tensor, result: tensor) -> tensor:
    """A function of positive numbers: minus infinity at 0, NaN below, 0 at infinity."""
    result = where(x == INFINITY, 0.0, where(x == 0.0, -INFINITY, result))
    return where((x < 0.0) | (x != x), NAN, result)


@in_double
def y0(single: bool, x: tensor) -> tensor:
    """Y of order 0."""
    held = clamp(where(x > 0.0, x, 1.0), 0.0, 8.0)
    inner = clamp(held, 0.0, 2.1)
    square = inner * inner
    log = call("log", inner)
    small = _TWO_OVER_PI * (log * _j0_below_4(single, inner))
    small = small + polynomial(square, coefficients.Y0_REST[single])
    near = where(
        (held > 0.5) & (held < 1.2),
        _about(held, coefficients.Y0_ZERO0, 0.85, coefficients.Y0_ZERO0_TERMS[single]),
        where(
            held < 2.1,
            small,
            where(
                held < 5.5,
                _about(held, coefficients.Y0_ZERO1, 3.8, coefficients.Y0_ZERO1_TERMS[single]),
                _about(held, coefficients.Y0_ZERO2, 6.75, coefficients.Y0_ZERO2_TERMS[single]),
            ),
        ),
    )
    _, far = _waves(single, 0, where((x >= 8.0) & (x < INFINITY), x, 8.0))
    return _of_positive(x, where(x < 8.0, near, far))


@in_double
def y1(single: bool, x: tensor) -> tensor:
    """Y of order 1."""
    held = clamp(where(x > 0.0, x, 1.0), 0.0, 8.0)
    inner = clamp(held, 0.0, 1.5)
    log = call("log", inner)
    rest = inner * polynomial(inner * inner, coefficients.Y1_REST[single])
    # The pole, which is all there is of small numbers.
    high = 0.63661977236758138 / inner
    small = (_TWO_OVER_PI * (log * _j1_below_2(single, inner)) + rest) - high
    near = where(
        held < 1.5,
        small,
        where(
            held < 2.9,
            _about(held, coefficients.Y1_ZERO0, 2.2, coefficients.Y1_ZERO0_TERMS[single]),
            _about(held, coefficients.Y1_ZERO1, 5.45, coefficients.Y1_ZERO1_TERMS[single]),
        ),
    )
    _, far = _waves(single, 1, where((x >= 8.0) & (x < INFINITY), x, 8.0))
    return _of_positive(x, where(x < 8.0, near, far))


def _modified(single: bool, order: int, x: tensor) -> tensor:
    size = absolute(x)
    held = clamp(size, 0.0, 8.0)
    square = held * held
    if order == 0:
        near = polynomial(square, coefficients.I0[single])
    else:
        near = held * polynomial(square, coefficients.I1[single])
    large = clamp(size, 8.0, 720.0)
    terms = (coefficients.I0_FAR, coefficients.I1_FAR)[order][single]
    m, n = exp_parts(single, large)
    far = scale(m * polynomial(16.0 / large - 1.0, terms) / sqrt(large), n)
    result = where(size < 8.0, near, where(size > 719.0, INFINITY, far))
    if order == 1:
        result = with_sign(result, x)
    return where(x != x, x, result)


@in_double
def cyl_bessel_i0(single: bool, x: tensor) -> tensor:
    """The modified I of order 0."""
    return _modified(single, 0, x)


@in_double
def cyl_bessel_i1(single: bool, x: tensor) -> tensor:
    """The modified I of order 1."""
    return _modified(single, 1, x)


# --- Of any order ------------------------------------------------------------------------


@library
def _largest(n: Any) -> Any:
    if len(n.shape) == 0:
        return n
    else:
        return standard.max(n)


@library
def _upwards(n: Any, x: Any, before: Any, value: Any) -> Any:
    """The order n of what is `before` at order 0 and `value` at order 1, from order to order."""
    last = _largest(n)
    for k in range(1, last):
        following = 2.0 * cast(k, types.float64) / x * value - before
        following = operations.where(value == -float("inf"), value, following)
        more = k < n
        before = operations.where(more, value, before)
        value = operations.where(more, following, value)
    return value


@library
def _downwards(n: Any, start: Any, x: Any) -> Any:
    """J of order n, from a far higher order `start` down to 0, whose sum is known."""
    last = _largest(start)
    above = x * 0.0
    value = x * 0.0
    total = x * 0.0
    result = x * 0.0
    for i in range(0, last):
        k = last - i
        value = operations.where(k == start, 1.0, value)
        below = 2.0 * cast(k, types.float64) / x * value - above
        above = value
        value = below
        result = operations.where(k == n, above, result)
        total += operations.where((k & 1) == 1, value, 0.0)
        factor = operations.where(operations.abs(value) > 1e200, 1e-200, 1.0)
        above *= factor
        value *= factor
        result *= factor
        total *= factor
    # J0 + 2 (J2 + J4 + ...) is 1.
    return result / (2.0 * total - value)


def _is_beyond(n: tensor, x: tensor) -> tensor:
    """True if J of order n is below every float64, and Y above every one: about
    (e x / 2n)^n, and its inverse."""
    order = where(n > 1, cast(n, types.float64), 1.0)
    return (order > x) & (order * call("log", 2.0 * order / (math.e * x)) > 760.0)


@in_double
def yn(single: bool, n: tensor, x: tensor) -> tensor:
    """Y of order n."""
    order0, order1 = y0(cast(x, types.float64)), y1(cast(x, types.float64))
    usable = (x > 0.0) & (x < INFINITY) & (n > 1)
    held = where(usable, x, 1.0)
    endless = usable & _is_beyond(n, held)
    steps = where(usable & ~endless, n, 1)
    result = active.session.call_function(_upwards, [steps, held, order0, order1], {})
    result = where(endless, -INFINITY, result)
    result = where(n == 0, order0, where(n == 1, order1, _of_positive(x, result)))
    return where(n < 0, NAN, result)


@in_double
def jn(single: bool, n: tensor, x: tensor) -> tensor:
    """J of order n."""
    size = absolute(x)
    order0, order1 = j0(size), j1(size)
    order = cast(n, types.float64)
    usable = (size > 0.0) & (size < INFINITY) & (n > 1)
    from_below = usable & (size > order)
    held = where(usable, size, 1.0)
    upwards = active.session.call_function(
        _upwards, [where(from_below, n, 1), held, order0, order1], {}
    )
    from_above = usable & ~from_below & ~_is_beyond(n, held)
    start = n + 20 + cast(call("ceil", sqrt(where(from_above, 80.0 * order, 1.0))), types.int32)
    start = where(from_above, start, 0)
    downwards = active.session.call_function(_downwards, [n, start, held], {})
    result = where(from_below, upwards, where(from_above, downwards, 0.0))
    result = where((x < 0.0) & ((n & 1) == 1), emit_one("neg", result), result)
    result = where(n == 0, order0, where(n == 1, where(x < 0.0, 0.0 - order1, order1), result))
    return where((n < 0) | (x != x), NAN, result)
