# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gamma function and its logarithm."""

from __future__ import annotations

import math

from tessera.language.extra.functions import coefficients
from tessera.language.extra.functions.basics import (
    INFINITY,
    NAN,
    absolute,
    call,
    in_double,
    is_negative,
    mul,
    polynomial,
    sub,
    where,
    with_sign,
)
from tessera.language.extra.functions.elementary import clamp
from tessera.language.extra.functions.trigonometry import sincospi
from tessera.language.tensor import emit_one, tensor


def _sine(single: bool, x: tensor) -> tensor:
    """sin(pi x) of a finite x."""
    _, quarters, sine, cosine = sincospi(single, x)
    value = where((quarters & 1) == 1, cosine, sine)
    return where((quarters & 2) == 2, emit_one("neg", value), value)


def _stepped_down(x: tensor, limit: float, steps: int) -> tuple[tensor, tensor]:
    """x less an integer, to be below `limit`, and the product of the numbers in between:
    gamma(x) = product gamma(rest)."""
    rest, product = x, x * 0.0 + 1.0
    for _ in range(steps):
        above = rest >= limit
        rest = where(above, sub(rest, 1.0), rest)
        product = where(above, mul(product, rest), product)
    return rest, product


def _log_gamma(single: bool, x: tensor) -> tensor:
    """log gamma(x) of a positive, finite x."""
    small, near_one, far = x < 0.7, x < 1.6, x >= 8.0
    held = where(far, 2.0, x)
    rest, product = _stepped_down(where(near_one, 2.0, held), 2.6, 6)
    d1 = where(small, x, where(near_one, sub(x, 1.0), 0.0))
    d2 = sub(rest, 2.0)
    at_one = d1 * polynomial(d1, coefficients.LOG_GAMMA_1[single])
    at_two = d2 * polynomial(d2, coefficients.LOG_GAMMA_2[single])
    logarithm = call("log", where(small | far, x, product))
    inverse = 1.0 / where(far, x, 8.0)
    z = inverse * inverse
    stirling = inverse * polynomial(z, coefficients.LOG_GAMMA_FAR[single])
    # The last summand is log(2 pi) / 2 - 1/2.
    large = (x - 0.5) * (logarithm - 1.0) + (stirling + 0.41893853320467274178)
    return where(
        small,
        at_one - logarithm,
        # The sum with 0 is for the sign of the zero at 1.
        where(near_one, at_one + 0.0, where(far, large, at_two + logarithm)),
    )


@in_double
def lgamma(single: bool, x: tensor) -> tensor:
    """The logarithm of |gamma(x)|."""
    size = absolute(x)
    finite = size < INFINITY
    # Next to 0 it is minus the logarithm of |x| on both sides.
    reflected = is_negative(x) & (size > 2.0**-60)
    held = where(finite & (size > 0.0), size, 1.0)
    # Not shorter for float32: between zeros of negative numbers, two logarithms nearly cancel.
    del single
    value = _log_gamma(False, held)
    sine = absolute(_sine(False, where(reflected & finite, held, 0.5)))
    is_pole = sine == 0.0
    other = call("log", math.pi / (held * where(is_pole, 1.0, sine)))
    # If the product would be infinite or its inverse 0, only the poles remain.
    value = where(reflected, other - value, value)
    value = where((size == 0.0) | (reflected & is_pole) | (size == INFINITY), INFINITY, value)
    return where(x != x, x, value)


@in_double
def tgamma(single: bool, x: tensor) -> tensor:
    """The gamma function."""
    size = clamp(absolute(x), 0.0, 200.0)
    negative = is_negative(x)
    # Up to 8 by steps down to between 2 and 3.
    far = size >= 8.0
    held = where(far, 2.0, size)
    below_one, below_two = held < 1.0, held < 2.0
    rest, product = _stepped_down(where(below_two, 2.0, held), 3.0, 6)
    d = where(below_one, held, where(below_two, sub(held, 1.0), sub(rest, 2.0)))
    value = polynomial(d, coefficients.GAMMA[single])
    divisor = where(below_one, held * (held + 1.0), where(below_two, held, 1.0))
    # From 8 on by Stirling's formula, whose power is taken as a square.
    large = where(far, size, 8.0)
    root = emit_one("pow", large, 0.5 * large - 0.25)
    inverse = 1.0 / large
    series = polynomial(inverse, coefficients.GAMMA_FAR[single]) * 2.5066282746310002
    series = series * call("exp", emit_one("neg", large))
    near = where(below_two, value / divisor, value * product)
    positive = where(far, series * root * root, near)
    positive = where(size > 172.0, INFINITY, positive)

    # gamma(-x) = -pi / (x sin(pi x) gamma(x)).
    sine = _sine(single, where(size > 0.0, size, 0.5))
    is_pole = sine == 0.0
    turned = where(is_pole, 1.0, sine) * size
    first = where(far, series, 1.0)
    second = where(far, root, 1.0)
    third = where(far, root, where(below_two, value, value * product))
    reflected = (-math.pi / (turned * first)) / second / third
    # Below 2 gamma(size) is value / divisor.
    reflected = where(below_two & ~far, reflected * divisor, reflected)
    # Next to 0 it is 1 / x.
    tiny = absolute(x) < 2.0**-60
    reflected = where(is_pole, NAN, reflected)
    result = where(negative, reflected, positive)
    safe = where(x == 0.0, 1.0, x)
    result = where(tiny, where(x == 0.0, with_sign(x * 0.0 + INFINITY, x), 1.0 / safe), result)
    # Whole numbers below -200 are poles, too; of others it is 0.
    outside = negative & (absolute(x) > 200.0)
    whole = call("floor", x) == x
    zero = where(call("floor", x * 0.5) * 2.0 == call("floor", x), 0.0, -0.0)
    result = where(outside, where(whole, NAN, zero), result)
    result = where((x == INFINITY) | (x != x), x, result)
    return where(x == -INFINITY, NAN, result)
