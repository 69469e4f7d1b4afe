# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trigonometric functions of multiples of pi, and the inverse ones."""

from __future__ import annotations

import math

import tessera.language.types as types
from tessera.language.creation import cast
from tessera.language.extra.functions import coefficients
from tessera.language.extra.functions.basics import (
    INFINITY,
    NAN,
    absolute,
    add,
    call,
    exact_product,
    fma,
    in_double,
    is_negative,
    mul,
    polynomial,
    sqrt,
    sub,
    where,
    with_sign,
)
from tessera.language.tensor import emit_one, tensor


def sincospi(single: bool, x: tensor) -> tuple[tensor, tensor, tensor, tensor]:
    """The rest r of x in quarters of a turn, from -1/4 to 1/4, the number of quarters modulo 4,
    sin(pi r) and cos(pi r); for a finite x."""
    turned = x - 2.0 * call("rint", x * 0.5)
    quarters = call("rint", turned + turned)
    r = fma(quarters, -0.5, turned)
    z = r * r
    high, low = coefficients.PI
    head, lost = exact_product(r, high)
    tail = lost + (r * low + r * z * polynomial(z, coefficients.SINPI[single]))
    sine = head + tail
    cosine = 1.0 + z * polynomial(z, coefficients.COSPI[single])
    return r, cast(quarters, types.int32) & 3, sine, cosine


def _chosen(quarters: tensor, sine: tensor, cosine: tensor) -> tensor:
    """The sine of r and so many quarters of a turn."""
    value = where((quarters & 1) == 1, cosine, sine)
    return where((quarters & 2) == 2, emit_one("neg", value), value)


@in_double
def sinpi(single: bool, x: tensor) -> tensor:
    """sin(pi x)."""
    finite = absolute(x) < INFINITY
    held = where(finite, x, 0.0)
    r, quarters, sine, cosine = sincospi(single, held)
    # For integers it is a zero with their sign.
    result = where((r == 0.0) & ((quarters & 1) == 0), with_sign(x * 0.0, x), 0.0)
    result = where((r == 0.0) & ((quarters & 1) == 0), result, _chosen(quarters, sine, cosine))
    return where(finite, result, NAN)


@in_double
def cospi(single: bool, x: tensor) -> tensor:
    """cos(pi x)."""
    finite = absolute(x) < INFINITY
    held = where(finite, x, 0.0)
    r, quarters, sine, cosine = sincospi(single, held)
    result = _chosen((quarters + 1) & 3, sine, cosine)
    # For an integer and a half it is 0, without a sign.
    result = where((r == 0.0) & ((quarters & 1) == 1), 0.0, result)
    return where(finite, result, NAN)


def _angle(single: bool, y: tensor, x: tensor) -> tuple[tensor, tensor]:
    """atan(y / x) of numbers that are not negative, as a sum of two."""
    # Ratios up to tan(pi/8) are used directly, up to its inverse relative to pi/4, and otherwise to
    # pi/2.
    middle = y > x * math.tan(math.pi / 8)
    large = mul(y, math.tan(math.pi / 8)) > x
    top = where(large, emit_one("neg", x), where(middle, sub(y, x), y))
    bottom = where(large, y, where(middle, add(y, x), x))
    bottom = where(bottom == 0.0, 1.0, bottom)
    t = top / bottom
    high, low = coefficients.HALF_PI
    parts = where(large, 2.0, where(middle, 1.0, 0.0))
    base, rest = cast(parts, types.float64) * (high / 2), cast(parts, types.float64) * (low / 2)
    z = t * t
    tail = rest + t * z * polynomial(z, coefficients.ATAN[single])
    total = add(base, t)
    return total, sub(t, sub(total, base)) + tail


@in_double
def atan(single: bool, x: tensor) -> tensor:
    """The arc tangent."""
    size = absolute(x)
    infinite = size == INFINITY
    high, low = _angle(single, where(infinite, 1.0, size), where(infinite, 0.0, 1.0 + size * 0.0))
    return where(x != x, x, with_sign(high + low, x))


@in_double
def atan2(single: bool, y: tensor, x: tensor) -> tensor:
    """The arc tangent of y / x in the quadrant of the point (x, y)."""
    tall, wide = absolute(y), absolute(x)
    missing = (x != x) | (y != y)
    # Infinities are as far as one another, and everything else is near.
    far = (tall == INFINITY) | (wide == INFINITY)
    tall = where(far, where(tall == INFINITY, 1.0, 0.0), tall)
    wide = where(far, where(wide == INFINITY, 1.0, 0.0), wide)
    if not single:
        large = (tall > 2.0**1000) | (wide > 2.0**1000)
        # A part of the least numbers is 0, or as much as they are.
        small = (tall < 2.0**-900) & (wide < 2.0**-900)
        factor = where(large, 2.0**-30, where(small, 2.0**200, 1.0))
        tall, wide = tall * factor, wide * factor
    origin = (tall == 0.0) & (wide == 0.0)
    high, low = _angle(single, tall, where(origin, 1.0, wide))
    pi, rest = coefficients.PI
    turned = sub(pi, high)
    mirrored = turned + (sub(sub(pi, turned), high) + (rest - low))
    result = where(is_negative(x), mirrored, high + low)
    return where(missing, NAN, with_sign(result, y))


def _arc(single: bool, x: tensor, size: tensor) -> tuple[tensor, tensor, tensor, tensor]:
    """The parts of asin and acos of x, where `size` is |x|. The first is a truth value, |x| < 1/2.
    Let z be x^2 if it is true, else (1 - |x|) / 2. The next two add up to s = sqrt(z), and the last
    is asin(s) / s - 1."""
    small = size < 0.5
    z = where(small, x * x, 0.5 * sub(1.0, size))
    z = where(size > 1.0, 0.0, z)
    tail = z * polynomial(z, coefficients.ASIN[single])
    root = sqrt(z)
    safe = where(root > 0.0, root, 1.0)
    lost = fma(emit_one("neg", root), root, z) / (2.0 * safe)
    return small, root, lost, tail


@in_double
def asin(single: bool, x: tensor) -> tensor:
    """The arc sine."""
    size = absolute(x)
    small, root, lost, tail = _arc(single, x, size)
    high, low = coefficients.HALF_PI
    # pi/2 - 2 asin(root + lost), the largest parts subtracted first.
    head = fma(root, -2.0, high)
    rest = fma(root, -2.0, sub(high, head))
    far = head + (rest + (low - 2.0 * (lost + root * tail)))
    result = with_sign(where(small, size + size * tail, far), x)
    return where((size > 1.0) | (x != x), NAN, result)


@in_double
def acos(single: bool, x: tensor) -> tensor:
    """The arc cosine."""
    size = absolute(x)
    small, root, lost, tail = _arc(single, x, size)
    high, low = coefficients.HALF_PI
    # Small: pi/2 - x - x tail. Else 2 asin(root), or pi less that.
    head = sub(high, x)
    near = head + (sub(sub(high, head), x) + (low - x * tail))
    half = root + (lost + root * tail)
    twice = half + half
    pi, rest = coefficients.PI
    start = sub(pi, root + root)
    left = sub(sub(pi, start), root + root) + (rest - 2.0 * (lost + root * tail))
    result = where(small, near, where(is_negative(x), start + left, twice))
    return where((size > 1.0) | (x != x), NAN, result)
