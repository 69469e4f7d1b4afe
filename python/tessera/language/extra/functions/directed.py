# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic and conversions rounded in a given direction, exactly.

If the exact result lies beyond the nearest one in the given direction, the nearest one moves to its
neighbour. The sign of the rounding error decides that. float32 is computed in float64, whose sums
and products of float32 are exact or nearly so. The errors of float64 are exact, or too large to
have the wrong sign.
"""

from __future__ import annotations

from typing import Any, Callable

import tessera.language.types as types
from tessera.language.creation import cast
from tessera.language.extra.functions.basics import (
    INFINITY,
    absolute,
    add,
    exact_product,
    exact_sum,
    fma,
    format_of,
    is_negative,
    mul,
    power_of_two,
    split,
    sqrt,
    sub,
    to_bits,
    to_float,
    where,
    with_sign,
)
from tessera.language.tensor import emit_one, tensor


def _moved(x: tensor, error: tensor, direction: str) -> tensor:
    """x, or the neighbour of it on the side on which the exact result x + error lies, if that is
    the side of `direction`: "rd", "ru" or "rz"."""
    form = format_of(x)
    # Infinity is to the exact result as it is to the largest number.
    error = where(absolute(x) == INFINITY, where(is_negative(x), 1.0, -1.0), error)
    bits = to_bits(x)
    zero = x == 0.0
    negative = where(zero, error < 0.0, bits < 0)
    inwards = where(zero, False, where(negative, error > 0.0, error < 0.0))
    outwards = where(negative, error < 0.0, error > 0.0)
    step_in = to_float(bits - 1)
    step_out = to_float(where(zero, where(error < 0.0, form.sign + 1, 1), bits + 1))
    if direction == "rz":
        return where(inwards, step_in, x)
    down = direction == "rd"
    wanted_out = outwards & (negative if down else ~negative)
    wanted_in = inwards & (~negative if down else negative)
    return where(wanted_out, step_out, where(wanted_in, step_in, x))


def _finite(*arguments: tensor) -> Any:
    result: Any = None
    for x in arguments:
        finite = absolute(x) < INFINITY
        result = finite if result is None else result & finite
    return result


def _settled(nearest: tensor, error: tensor, direction: str, arguments: Any) -> tensor:
    """`nearest`, moved; unchanged if an argument is infinite or NaN."""
    return where(_finite(*arguments), _moved(nearest, error, direction), nearest)


def _zero_sum(result: tensor, zero: Any, both: Any, direction: str) -> tensor:
    """A sum that is exactly 0: of numbers of opposite signs it is -0 when rounded down."""
    if direction != "rd":
        return result
    return where(zero & ~both, -0.0, result)


def _wide(*arguments: tensor) -> list[tensor]:
    return [cast(x, types.float64) for x in arguments]


def add_directed(direction: str) -> Callable[..., tensor]:
    """x + y."""

    def function(x: tensor, y: tensor) -> tensor:
        if x.dtype == types.float32:
            a, b = _wide(x, y)
            total, low = exact_sum(a, b)
            nearest = add(x, y)
            rest = sub(total, cast(nearest, types.float64))
            error = where(rest == 0.0, low, rest)
            error = where(absolute(nearest) == INFINITY, 0.0, error)
            error = cast(where(error > 0.0, 1.0, where(error < 0.0, -1.0, 0.0)), types.float32)
        else:
            # At half their size, sums do not overflow. A small number stays as it is beside a
            # large one, for which it does not matter how small it is.
            nearest = add(x, y)
            large = absolute(nearest) > 2.0**1000
            a = where(large & (absolute(x) > 2.0**-500), mul(x, 0.5), x)
            b = where(large & (absolute(y) > 2.0**-500), mul(y, 0.5), y)
            _, error = exact_sum(a, b)
        result = _settled(nearest, error, direction, (x, y))
        both = is_negative(x) == is_negative(y)
        exact = (x == emit_one("neg", y)) & _finite(x)
        return _zero_sum(result, exact, both, direction)

    return function


def sub_directed(direction: str) -> Callable[..., tensor]:
    """x - y."""
    return lambda x, y: add_directed(direction)(x, emit_one("neg", y))


def _sign(x: tensor) -> tensor:
    """-1, 0 or 1 as a float32, of a float64."""
    return cast(where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0)), types.float32)


def mul_directed(direction: str) -> Callable[..., tensor]:
    """x y."""

    def function(x: tensor, y: tensor) -> tensor:
        nearest = mul(x, y)
        if x.dtype == types.float32:
            a, b = _wide(x, y)
            error = _sign(sub(mul(a, b), cast(nearest, types.float64)))
        else:
            # Factors of small products are taken 2^900 times as large, if they are small
            # themselves, so that the error is no denormal number.
            small = absolute(nearest) < 2.0**-900
            grow_x = where(small & (absolute(x) < 2.0**-450), 2.0**900, 1.0)
            grow_y = where(small & (absolute(y) < 2.0**-450), 2.0**900, 1.0)
            a, b = mul(x, grow_x), mul(y, grow_y)
            high, low = exact_product(a, b)
            rest = sub(high, mul(mul(nearest, grow_x), grow_y))
            error = where(rest == 0.0, low, rest)
        return _settled(nearest, error, direction, (x, y))

    return function


def _mantissa(x: tensor) -> tuple[tensor, tensor]:
    """x divided by a power of two to lie from 1 to 2, and the exponent."""
    mantissa, exponent = split(absolute(x))
    return with_sign(mantissa, x), exponent


def _shifted(x: tensor, n: tensor) -> tensor:
    """x 2^n without rounding, where that is possible."""
    half = n >> 1
    quarter = half >> 1
    other = n - half
    last = other >> 1
    for part in (quarter, half - quarter, last, other - last):
        x = mul(x, power_of_two(part))
    return x


def div_directed(direction: str) -> Callable[..., tensor]:
    """x / y."""

    def function(x: tensor, y: tensor) -> tensor:
        nearest = x / y
        if x.dtype == types.float32:
            a, b = _wide(x, y)
            q = cast(nearest, types.float64)
            rest = _sign(sub(a, mul(q, b)))
        else:
            a, exponent_a = _mantissa(x)
            b, exponent_b = _mantissa(y)
            q = _shifted(nearest, exponent_b - exponent_a)
            rest = fma(emit_one("neg", q), b, a)
        # The error of the quotient is the rest divided by y.
        error = where(is_negative(y), emit_one("neg", rest), rest)
        error = where(absolute(nearest) == INFINITY, 0.0, error)
        proper = _moved(nearest, error, direction)
        return where(_finite(x, y) & (y != 0.0) & (x != 0.0), proper, nearest)

    return function


def rcp_directed(direction: str) -> Callable[..., tensor]:
    """1 / x."""
    return lambda x: div_directed(direction)(where(x == x, 1.0, x), x)


def sqrt_directed(direction: str) -> Callable[..., tensor]:
    """The square root."""

    def function(x: tensor) -> tensor:
        nearest = sqrt(x)
        if x.dtype == types.float32:
            a = cast(x, types.float64)
            root = cast(nearest, types.float64)
            error = _sign(sub(a, mul(root, root)))
        else:
            # Times 2^400 for small numbers, whose squares' errors would be denormal.
            small = x < 2.0**-400
            a = where(small, mul(x, 2.0**400), x)
            root = where(small, mul(nearest, 2.0**200), nearest)
            error = fma(emit_one("neg", root), root, a)
        return where((x > 0.0) & _finite(x), _moved(nearest, error, direction), nearest)

    return function


def _fma_error(x: tensor, y: tensor, z: tensor, nearest: tensor) -> tensor:
    """The sign of x y + z - nearest, of float64, as -1.0, 0.0 or 1.0."""
    a, exponent_a = _mantissa(x)
    b, exponent_b = _mantissa(y)
    c, exponent_c = _mantissa(z)
    high, low = exact_product(a, b)
    no_product, no_summand = (x == 0.0) | (y == 0.0), z == 0.0
    # By how much z is larger. For terms smaller by 2^200, only the sign matters.
    apart = exponent_c - (exponent_a + exponent_b)
    hides_product = (no_product | (apart > 200)) & ~no_summand
    hides_summand = ~hides_product & (no_summand | (apart < -200))
    shift = where(hides_product, exponent_c, exponent_a + exponent_b)
    tiny = 2.0**-300
    c = where(hides_product, c, where(hides_summand, with_sign(a * 0.0 + tiny, z), c))
    near = where(hides_product | hides_summand, 0, apart)
    c = _shifted(c, near)
    high = where(hides_product, with_sign(high * 0.0 + tiny, high), high)
    low = where(hides_product, 0.0, low)
    high, low = where(no_product, 0.0, high), where(no_product, 0.0, low)
    c = where(no_summand, 0.0, c)
    # The sum of four numbers without error. Each pass makes the remainder smaller. In the end, the
    # first number that is not 0 has the sign.
    terms = [low, high, c, emit_one("neg", _shifted(nearest, 0 - shift))]
    for _ in range(4):
        for place in range(3):
            terms[place + 1], terms[place] = exact_sum(terms[place + 1], terms[place])
    total = terms[0]
    for term in terms[1:]:
        total = where(term == 0.0, total, term)
    return where(total > 0.0, 1.0, where(total < 0.0, -1.0, 0.0))


def fma_directed(direction: str) -> Callable[..., tensor]:
    """x y + z."""

    def function(x: tensor, y: tensor, z: tensor) -> tensor:
        nearest = fma(x, y, z)
        if x.dtype == types.float32:
            # The product is exact in float64.
            a, b, c = _wide(x, y, z)
            total, low = exact_sum(mul(a, b), c)
            rest = sub(total, cast(nearest, types.float64))
            error = _sign(where(rest == 0.0, low, rest))
        else:
            finite = _finite(x, y, z, nearest)
            safe = [where(finite, one, 1.0) for one in (x, y, z, nearest)]
            error = _fma_error(*safe)
        result = _settled(nearest, error, direction, (x, y, z))
        both = (is_negative(x) != is_negative(y)) == is_negative(z)
        exact = (nearest == 0.0) & (error == 0.0) & _finite(x, y, z)
        return _zero_sum(result, exact, both, direction)

    return function


def narrow_directed(direction: str) -> Callable[..., tensor]:
    """A float64 as a float32."""

    def function(x: tensor) -> tensor:
        nearest = cast(x, types.float32)
        error = _sign(sub(x, cast(nearest, types.float64)))
        return _settled(nearest, error, direction, (x,))

    return function


def convert_directed(direction: str, float_type: Any) -> Callable[..., tensor]:
    """An integer as a float."""

    def function(x: tensor) -> tensor:
        nearest = cast(x, float_type)
        wide = x.dtype.primitive_bitwidth == 64
        if not wide:
            exact = cast(x, types.float64)
            error = _sign(sub(exact, cast(nearest, types.float64)))
            return _moved(nearest, error, direction)
        # In two halves, the upper one in the sign of x; each is exact in float64.
        high = cast(x >> 32, types.float64)
        low = cast(x & 0xFFFFFFFF, types.float64)
        rest = sub(mul(high, 2.0**32), cast(nearest, types.float64))
        error = add(rest, low)
        if float_type == types.float32:
            error = _sign(error)
        return _moved(nearest, error, direction)

    return function
