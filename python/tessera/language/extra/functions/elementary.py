# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Powers, logarithms, hyperbolic functions, roots and lengths."""

from __future__ import annotations

import math
from typing import Any

import tessera.language.types as types
from tessera.language.creation import cast
from tessera.language.extra.functions import coefficients
from tessera.language.extra.functions.basics import (
    INFINITY,
    NAN,
    absolute,
    call,
    exact_product,
    fma,
    in_double,
    mul,
    polynomial,
    scale,
    split,
    sqrt,
    sub,
    where,
    with_sign,
)
from tessera.language.tensor import emit_one, tensor

# ln 2 and its tenfold logarithm in two parts, the first short enough for products with an
# exponent to be exact.
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_LOG10_2_HIGH, _LOG10_2_LOW = 3.01029995663611771306e-01, 3.69423907715893078616e-13
_LOG2_10 = 3.321928094887362


def clamp(x: tensor, low: float, high: float) -> tensor:
    """x held between two bounds; a NaN stays."""
    x = where(x < low, low, x)
    return where(x > high, high, x)


def _expm1_of_small(single: bool, r: tensor) -> tensor:
    return r * r * polynomial(r, coefficients.EXP[single]) + r


def exp_parts(single: bool, x: tensor, low: Any = None) -> tuple[tensor, tensor]:
    """exp(x + low) as m and n of m 2^n, m about 1; |x| is at most some thousands."""
    n = call("rint", x * (1 / math.log(2)))
    r = fma(n, -_LN2_HIGH, x)
    r = fma(n, -_LN2_LOW, r)
    if low is not None:
        r = r + low
    return 1.0 + _expm1_of_small(single, r), cast(n, types.int64)


@in_double
def exp10(single: bool, x: tensor) -> tensor:
    """10^x."""
    held = clamp(x, -330.0, 310.0)
    n = call("rint", held * _LOG2_10)
    r = fma(n, -_LOG10_2_HIGH, held)
    r = fma(n, -_LOG10_2_LOW, r)
    high, low = coefficients.LN10
    y = mul(r, high)
    lost = fma(r, high, emit_one("neg", y)) + r * low
    return scale(1.0 + (_expm1_of_small(single, y) + lost), cast(n, types.int64))


@in_double
def log10(single: bool, x: tensor) -> tensor:
    """The logarithm to base 10."""
    m, exponent = split(x)
    upper = m > math.sqrt(2)
    f = where(upper, m * 0.5, m) - 1.0
    n = cast(exponent, types.float64) + where(upper, 1.0, 0.0)
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    # log(1 + f) = f - (half - rest), and times 1 / ln 10 in two parts.
    rest = s * (half + z * polynomial(z, coefficients.LOG[single]))
    high, low = coefficients.INVERSE_LN10
    tail = sub(half, rest)
    product, lost = exact_product(f, high)
    small = lost + (f * low - tail * high)
    whole = n * _LOG10_2_HIGH
    total = whole + product
    small = small + (product - (total - whole)) + n * _LOG10_2_LOW
    result = total + small
    result = where(n == 0.0, product + small, result)
    result = where(x == 0.0, -INFINITY, where(x == INFINITY, INFINITY, result))
    return where((x < 0.0) | (x != x), NAN, result)


# 2043 ln 2, next to which no other float64 is as near its exact value.
_FAR, _FAR_POWER = 1416.0996898839683, 2043


def _half_exp(single: bool, size: tensor) -> tuple[tensor, tensor]:
    """exp(size) / 2, and exp(-size) / 2 where that matters, for size >= 0."""
    far = size > 709.0
    held = clamp(where(far, size - _FAR, size), -720.0, 709.5)
    m, n = exp_parts(single, held)
    grown = where(size > 711.0, INFINITY, scale(m, n + where(far, _FAR_POWER - 1, -1)))
    return grown, 0.25 / grown


@in_double
def cosh(single: bool, x: tensor) -> tensor:
    """The hyperbolic cosine."""
    grown, shrunk = _half_exp(single, absolute(x))
    return where(x != x, x, grown + shrunk)


@in_double
def sinh(single: bool, x: tensor) -> tensor:
    """The hyperbolic sine."""
    size = absolute(x)
    grown, shrunk = _half_exp(single, size)
    square = x * x
    small = size + size * square * polynomial(square, coefficients.SINH[single])
    result = with_sign(where(size < 1.0, small, grown - shrunk), x)
    return where(x != x, x, result)


@in_double
def asinh(single: bool, x: tensor) -> tensor:
    """The inverse hyperbolic sine."""
    size = absolute(x)
    large = size > 2.0**28
    held = where(large, 1.0, size)
    square = held * held
    near = call("log1p", held + square / (1.0 + sqrt(1.0 + square)))
    far = call("log", where(large, size, 1.0)) + math.log(2)
    result = with_sign(where(large, far, near), x)
    return where(x != x, x, result)


@in_double
def acosh(single: bool, x: tensor) -> tensor:
    """The inverse hyperbolic cosine."""
    large = x > 2.0**28
    t = where(large, 0.0, x - 1.0)
    near = call("log1p", t + sqrt(2.0 * t + t * t))
    far = call("log", where(large, x, 1.0)) + math.log(2)
    return where(x < 1.0, NAN, where(large, far, near))


@in_double
def atanh(single: bool, x: tensor) -> tensor:
    """The inverse hyperbolic tangent."""
    size = absolute(x)
    twice = size + size
    argument = where(size < 0.5, twice + twice * size / (1.0 - size), twice / (1.0 - size))
    result = with_sign(0.5 * call("log1p", argument), x)
    result = where(size < 2.0**-30, x, result)
    return where((size > 1.0) | (x != x), NAN, result)


def _root_parts(x: tensor) -> tuple[tensor, tensor, tensor]:
    """For |x| = m 2^(3 q), 1 <= m < 8: m, an estimate of m^(-1/3), and q."""
    m, exponent = split(absolute(x))
    # The exponents are above -1200, a multiple of 3.
    shifted = cast(exponent, types.int32) + 1200
    q = shifted // 3
    rest = shifted - 3 * q
    y = polynomial(m, coefficients.INVERSE_CBRT[False])
    m = where(rest == 1, m * 2.0, where(rest == 2, m * 4.0, m))
    y = where(rest == 1, y * 2.0 ** (-1 / 3), where(rest == 2, y * 4.0 ** (-1 / 3), y))
    e = 1.0 - m * y * y * y
    y = y + y * e * (1 / 3 + 2 / 9 * e)
    return m, y, cast(q - 400, types.int64)


@in_double
def cbrt(single: bool, x: tensor) -> tensor:
    """The cube root."""
    m, y, q = _root_parts(x)
    root = mul(m, mul(y, y))
    square, lost = exact_product(root, root)
    cube, more = exact_product(square, root)
    rest = sub(m, cube) - (more + lost * root)
    root = root + rest * (y * y) * (1 / 3)
    size = absolute(x)
    return where((x == 0.0) | ~(size < INFINITY), x, with_sign(scale(root, q), x))


@in_double
def rcbrt(single: bool, x: tensor) -> tensor:
    """1 / the cube root."""
    m, y, q = _root_parts(x)
    square, lost = exact_product(y, y)
    cube, more = exact_product(square, y)
    more = more + lost * y
    # 1 - m y^3, whose leading parts cancel.
    high, low = exact_product(m, cube)
    e = sub(1.0, high) - (low + m * more)
    root = y + y * e * (1 / 3)
    size = absolute(x)
    result = scale(root, 0 - q)
    result = where(size == 0.0, INFINITY, where(size == INFINITY, 0.0, result))
    return where(x != x, x, with_sign(result, x))


def _length(arguments: tuple[tensor, ...], inverse: bool) -> tensor:
    """The square root of a sum of squares, or 1 / it."""
    single = arguments[0].dtype == types.float32
    wide = [cast(x, types.float64) if single else x for x in arguments]
    sizes = [absolute(x) for x in wide]
    largest = sizes[0]
    infinite = sizes[0] == INFINITY
    missing = wide[0] != wide[0]
    for size, x in zip(sizes[1:], wide[1:]):
        largest = where(size > largest, size, largest)
        infinite = infinite | (size == INFINITY)
        missing = missing | (x != x)
    factor: Any = 1.0
    if not single:
        # In steps in which squares are neither too large nor too small to matter.
        factor = where(largest > 2.0**500, 2.0**-600, where(largest < 2.0**-450, 2.0**600, 1.0))
        sizes = [size * factor for size in sizes]
    total, low = exact_product(sizes[0], sizes[0])
    for size in sizes[1:]:
        product, lost = exact_product(size, size)
        high = emit_one("fma", product, 1.0, total)
        virtual = sub(high, total)
        lost = lost + (sub(total, sub(high, virtual)) + sub(product, virtual))
        total, low = high, low + lost
    root = sqrt(total)
    # The correction of the rounded sum's root: (total + low - root^2) / (2 root).
    positive = root > 0.0
    safe = where(positive, root, 1.0)
    rest = fma(emit_one("neg", root), root, total) + low
    if inverse:
        estimate = 1.0 / safe
        # 1 - root estimate, and the root's own correction.
        error = fma(emit_one("neg", safe), estimate, 1.0)
        error = error - 0.5 * rest * estimate * estimate
        result = where(positive, (estimate + estimate * error) * factor, INFINITY)
        result = where(infinite, 0.0, result)
    else:
        result = where(positive, root + 0.5 * rest / safe, root)
        result = result / factor
        result = where(infinite, INFINITY, result)
    result = where(missing & ~infinite, NAN, result)
    return cast(result, types.float32) if single else result


def norm(*arguments: tensor) -> tensor:
    """The length of a vector."""
    return _length(arguments, inverse=False)


def rnorm(*arguments: tensor) -> tensor:
    """1 / the length of a vector."""
    return _length(arguments, inverse=True)


def rsqrt_rn(x: tensor) -> tensor:
    """1 / sqrt(x) of float32, correctly rounded."""
    wide = cast(x, types.float64)
    return cast(1.0 / sqrt(wide), types.float32)
