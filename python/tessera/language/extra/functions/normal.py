# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error function's complement, the normal distribution, and their inverses."""

from __future__ import annotations

from typing import Any

from tessera.language.extra.functions import coefficients
from tessera.language.extra.functions.basics import (
    INFINITY,
    NAN,
    absolute,
    call,
    exact_product,
    in_double,
    mul,
    polynomial,
    scale,
    sqrt,
    sub,
    where,
    with_sign,
)
from tessera.language.extra.functions.elementary import clamp, exp_parts
from tessera.language.tensor import emit_one, tensor


def _scaled(single: bool, x: tensor) -> tensor:
    """exp(x^2) erfc(x) for x >= 0.5."""
    u = (x - 3.0) / (x + 3.0)
    return polynomial(u, coefficients.ERFCX[single]) / (1.0 + 2.0 * x)


def _complement(single: bool, x: tensor, low: Any = None) -> tensor:
    """erfc(x + low)."""
    held = clamp(absolute(x), 0.5, 40.0)
    square, lost = exact_product(held, held)
    if low is not None:
        lost = lost + 2.0 * held * where(x < 0.0, emit_one("neg", low), low)
    m, n = exp_parts(single, emit_one("neg", square), emit_one("neg", lost))
    far = scale(m * _scaled(single, held), n)
    near = 1.0 - call("erf", clamp(x, -6.0, 6.0))
    if low is not None:
        near = near - low * 1.1283791670955126 * call("exp", emit_one("neg", x * x))
    result = where(x < -0.5, 2.0 - far, where(x > 0.5, far, near))
    return where(x != x, x, result)


@in_double
def erfc(single: bool, x: tensor) -> tensor:
    """1 - erf(x)."""
    return _complement(single, x)


@in_double
def erfcx(single: bool, x: tensor) -> tensor:
    """exp(x^2) erfc(x)."""
    size = clamp(absolute(x), 0.5, 1e300)
    far = _scaled(single, where(size > 1e150, 1e150, size))
    # From there on it is 1 / (x sqrt(pi)), and small in the end.
    far = where(size > 1e150, 0.5641895835477563 / size, far)
    held = clamp(x, -27.0, 0.5)
    square, lost = exact_product(held, held)
    m, n = exp_parts(single, square, lost)
    grown = scale(m, n)
    near = grown * (1.0 - call("erf", held))
    below = 2.0 * grown - far
    result = where(x > 0.5, far, where(x < -0.5, below, near))
    result = where(x < -26.9, INFINITY, where(x == INFINITY, 0.0, result))
    result = where((x > 1e300) & (x < INFINITY), 0.5641895835477563 / x, result)
    return where(x != x, x, result)


@in_double
def normcdf(single: bool, x: tensor) -> tensor:
    """The normal distribution's cumulative function: erfc(-x / sqrt(2)) / 2."""
    held = clamp(x, -60.0, 60.0)
    high, low = coefficients.HALF_SQRT2
    product, lost = exact_product(emit_one("neg", held), high)
    result = _half_complement(single, product, lost - held * low)
    return where(x != x, x, result)


def _half_complement(single: bool, x: tensor, low: tensor) -> tensor:
    """erfc(x + low) / 2, where denormal results are rounded once."""
    held = clamp(absolute(x), 0.5, 40.0)
    square, lost = exact_product(held, held)
    lost = lost + 2.0 * held * where(x < 0.0, emit_one("neg", low), low)
    m, n = exp_parts(single, emit_one("neg", square), emit_one("neg", lost))
    far = scale(m * _scaled(single, held), n - 1)
    inner = clamp(x, -1.0, 1.0)
    slope = 0.5641895835477563 * call("exp", emit_one("neg", inner * inner))
    near = 0.5 - (0.5 * call("erf", inner) + low * slope)
    return where(x < -0.5, 1.0 - far, where(x > 0.5, far, near))


def _tail(single: bool, z: tensor) -> tensor:
    """The x > 0 of which erfc(x) = z, for 0 < z <= 0.4."""
    t = sqrt(emit_one("neg", call("log", z)))
    near, middle = t < 2.25, t < 5.75
    k = where(near, 1.5, where(middle, 3.5, 12.0))
    u = (t - k) / (t + k)
    ratio = where(
        near,
        polynomial(u, coefficients.ERFCINV_NEAR[single]),
        where(
            middle,
            polynomial(u, coefficients.ERFCINV_MIDDLE[single]),
            polynomial(u, coefficients.ERFCINV_FAR[single]),
        ),
    )
    return t * ratio


def _inverse(single: bool, x: tensor) -> tensor:
    """The inverse of erf for |x| <= 0.6."""
    z = x * x
    return x * polynomial(z, coefficients.ERFINV[single])


@in_double
def erfinv(single: bool, x: tensor) -> tensor:
    """The inverse of erf."""
    size = absolute(x)
    inner = size <= 0.6
    z = where(inner | (size >= 1.0), 0.4, sub(1.0, size))
    far = _tail(single, z)
    near = _inverse(single, where(inner, size, 0.0))
    result = where(inner, near, where(size == 1.0, INFINITY, far))
    return where((size > 1.0) | (x != x), NAN, with_sign(result, x))


def _complement_inverse(single: bool, z: tensor, factor: Any) -> tensor:
    """The x of which erfc(x) = z, times a factor."""
    inner = (z >= 0.4) & (z <= 1.6)
    near = _inverse(single, where(inner, sub(1.0, z), 0.0))
    upper = z > 1.0
    rest = where(upper, sub(2.0, z), z)
    far = _tail(single, where(inner | ~(rest > 0.0), 0.4, rest))
    far = where(upper, emit_one("neg", far), far)
    result = mul(where(inner, near, far), factor)
    result = where(z == 1.0, 0.0, result)
    sign = -1.0 if factor < 0 else 1.0
    result = where(z == 0.0, sign * INFINITY, where(z == 2.0, -sign * INFINITY, result))
    return where((z < 0.0) | (z > 2.0) | (z != z), NAN, result)


@in_double
def erfcinv(single: bool, z: tensor) -> tensor:
    """The inverse of erfc."""
    return _complement_inverse(single, z, 1.0)


@in_double
def normcdfinv(single: bool, p: tensor) -> tensor:
    """The inverse of normcdf."""
    return _complement_inverse(single, p + p, -1.4142135623730951)
