# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose results are exact, or correctly rounded: parts of numbers, remainders."""

from __future__ import annotations

from typing import Any

import tessera.language.types as types
from tessera.language.creation import cast
from tessera.language.extra.functions.basics import (
    DOUBLE,
    INFINITY,
    absolute,
    call,
    format_of,
    is_negative,
    scale,
    split,
    to_bits,
    to_float,
    where,
    with_sign,
)
from tessera.language.tensor import tensor

_LARGEST = 0x7FFFFFFF


def isnan(x: tensor) -> tensor:
    """True if x is NaN."""
    return x != x


def isinf(x: tensor) -> tensor:
    """True if x is infinite."""
    return absolute(x) == INFINITY


def isfinite(x: tensor) -> tensor:
    """True if x is a number."""
    return absolute(x) < INFINITY


def signbit(x: tensor) -> tensor:
    """1 where the sign is set, else 0."""
    return cast(is_negative(x), types.int32)


def copysign(x: tensor, y: tensor) -> tensor:
    """|x| with the sign of y."""
    return with_sign(x, y)


def saturatef(x: tensor) -> tensor:
    """x held between 0 and 1; 0 of NaN."""
    return where(x > 0.0, where(x < 1.0, x, 1.0), 0.0)


def fdim(x: tensor, y: tensor) -> tensor:
    """x - y where that is positive, else 0; NaN of NaN."""
    return where(x <= y, 0.0, x - y)


def nextafter(x: tensor, y: tensor) -> tensor:
    """The neighbour of x in the direction of y; y where they are equal."""
    bits = to_bits(x)
    outwards = (x < y) != (bits < 0)
    moved = to_float(where(outwards, bits + 1, bits - 1))
    # Next to either zero is the smallest number, of the sign of y.
    moved = where(x == 0.0, with_sign(to_float(bits * 0 + 1), y), moved)
    moved = where(x == y, y, moved)
    return where((x != x) | (y != y), x + y, moved)


def _wide(x: tensor) -> tensor:
    return x if x.dtype == types.float64 else cast(x, types.float64)


def ilogb(x: tensor) -> tensor:
    """The exponent of x."""
    size = absolute(_wide(x))
    exponent = cast(split(size)[1], types.int32)
    exponent = where(size == INFINITY, _LARGEST, exponent)
    return where((size == 0.0) | (size != size), -_LARGEST - 1, exponent)


def logb(x: tensor) -> tensor:
    """The exponent of x as a float."""
    size = absolute(_wide(x))
    exponent = cast(split(size)[1], types.float64)
    exponent = where(size < INFINITY, exponent, size)
    return cast(where(size == 0.0, -INFINITY, exponent), x.dtype)


def ldexp(x: tensor, n: tensor) -> tensor:
    """x 2^n, rounded once."""
    size = absolute(_wide(x))
    mantissa, exponent = split(size)
    total = exponent + cast(n, types.int64)
    if x.dtype == types.float32:
        # In float64, every result that float32 can hold is exact.
        total = where(total < -300, -300, where(total > 300, 300, total))
    result = cast(scale(mantissa, total), x.dtype)
    result = with_sign(result, x)
    return where((size == 0.0) | (size == INFINITY) | (size != size), x, result)


def remainder(x: tensor, y: tensor) -> tensor:
    """x - n y for the integer n nearest to x / y, the even one of two."""
    form = format_of(x)
    size, divisor = absolute(x), absolute(y)
    # Twice a large divisor would be infinite, and then x is less than twice it.
    large = divisor >= 2.0**form.bias
    doubled = where(large, divisor, divisor + divisor)
    rest = where(large, size, size % doubled)
    # Comparing twice the rest is exact for small divisors, half the divisor for others.
    small = divisor < 2.0 * form.tiny
    half = divisor * 0.5
    first = where(small, rest + rest > divisor, rest > half)
    rest = where(first, rest - divisor, rest)
    second = first & where(small, rest + rest >= divisor, rest >= half)
    rest = where(second, rest - divisor, rest)
    result = to_float(to_bits(rest) ^ (to_bits(x) & form.sign))
    invalid = (size == INFINITY) | (divisor == 0.0) | (size != size) | (divisor != divisor)
    return where(invalid, float("nan"), where(divisor == INFINITY, x, result))


def fmod(x: tensor, y: tensor) -> tensor:
    """The rest of x / y with the sign of x."""
    return x % y


def to_integer(rounding: str, integer: Any) -> Any:
    """The function that rounds to an integer type and saturates. NaN gives 0, or the type's highest
    bit if one of the two types has 64 bits."""

    def function(x: tensor) -> tensor:
        rounded = cast(x if rounding == "trunc" else call(rounding, x), integer)
        if 64 in (x.dtype.primitive_bitwidth, integer.primitive_bitwidth):
            highest = 1 << (integer.primitive_bitwidth - 1)
            rounded = where(x != x, highest if integer.is_int_unsigned() else -highest, rounded)
        if integer.is_int_unsigned():
            kept = types.int64 if integer.primitive_bitwidth == 64 else types.int32
            rounded = cast(rounded, kept, bitcast=True)
        return rounded

    return function


def llrint(x: tensor) -> tensor:
    """The nearest integer, the even one where two are as near, as an int64."""
    return to_integer("nearbyint", types.int64)(x)


def llround(x: tensor) -> tensor:
    """The nearest integer, away from zero where two are as near, as an int64."""
    return to_integer("round", types.int64)(x)


def rcp64h(x: tensor) -> tensor:
    """1 / x, to the upper 32 bits of a float64; results that are denormal are 0."""
    flushed = where(absolute(x) < DOUBLE.tiny, with_sign(x * 0.0, x), x)
    result = 1.0 / flushed
    result = where(absolute(result) < DOUBLE.tiny, with_sign(result * 0.0, result), result)
    return where(x != x, x, to_float(to_bits(result) & -(1 << 32)))
