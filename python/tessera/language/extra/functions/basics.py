# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building blocks of the functions: bits of floats, exact sums and products, polynomials."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import tessera.language.types as types
from tessera.language.creation import cast
from tessera.language.tensor import emit_one, tensor

Pair = tuple[Any, Any]
"""A number as the sum of two, the second far smaller than the first."""

INFINITY = float("inf")
NAN = float("nan")


class Format:
    """The numbers that describe float32 or float64."""

    def __init__(self, dtype: Any, integer: Any, mantissa: int, bias: int) -> None:
        self.dtype = dtype
        self.integer = integer
        """The signed integer of the same width."""
        self.width = 1 + mantissa + (bias + 1).bit_length()
        self.mantissa = mantissa
        """Bits behind the leading one."""
        self.bias = bias
        self.sign = -(1 << (self.width - 1))
        self.rest = (1 << (self.width - 1)) - 1
        """All bits but the sign."""
        self.infinity = (2 * bias + 1) << mantissa
        self.tiny = 2.0 ** (1 - bias)
        """The smallest normal number."""


SINGLE = Format(types.float32, types.int32, 23, 127)
DOUBLE = Format(types.float64, types.int64, 52, 1023)


def format_of(x: tensor) -> Format:
    """The format of a float32 or float64."""
    return SINGLE if x.dtype == types.float32 else DOUBLE


def where(condition: Any, x: Any, y: Any) -> tensor:
    """`x` where `condition` holds, else `y`."""
    return emit_one("where", condition, x, y)


def absolute(x: Any) -> tensor:
    """|x| of a float or a signed integer."""
    return emit_one("math", "abs", x)


def call(name: str, x: Any) -> tensor:
    """An elementary function that the compiler itself writes out, by its name."""
    return emit_one("math", name, x)


def sqrt(x: Any) -> tensor:
    """The correctly rounded square root."""
    return emit_one("sqrt_rn", x)


def fma(x: Any, y: Any, z: Any) -> tensor:
    """x y + z, rounded once."""
    return emit_one("fma", x, y, z)


def add(x: Any, y: Any) -> tensor:
    """x + y, rounded: never a part of a fused multiply-add."""
    return fma(x, 1.0, y)


def sub(x: Any, y: Any) -> tensor:
    """x - y, rounded: never a part of a fused multiply-add."""
    return fma(y, -1.0, x)


def mul(x: Any, y: Any) -> tensor:
    """x y, rounded: never a part of a fused multiply-add."""
    return fma(x, y, -0.0)


def to_bits(x: tensor) -> tensor:
    """The bits of a float, as a signed integer."""
    return cast(x, format_of(x).integer, bitcast=True)


def to_float(bits: tensor) -> tensor:
    """The float32 or float64 of an integer's bits."""
    wide = bits.dtype.primitive_bitwidth == 64
    return cast(bits, types.float64 if wide else types.float32, bitcast=True)


def unsigned(x: tensor) -> tensor:
    """The same bits as an unsigned integer."""
    wide = x.dtype.primitive_bitwidth == 64
    return cast(x, types.uint64 if wide else types.uint32, bitcast=True)


def signed(x: tensor) -> tensor:
    """The same bits as a signed integer."""
    wide = x.dtype.primitive_bitwidth == 64
    return cast(x, types.int64 if wide else types.int32, bitcast=True)


def with_sign(x: tensor, sign: tensor) -> tensor:
    """|x| with the sign of another float of its type."""
    form = format_of(x)
    return to_float((to_bits(x) & form.rest) | (to_bits(sign) & form.sign))


def is_negative(x: tensor) -> tensor:
    """True if the sign is set, of zeros and NaN too."""
    return to_bits(x) < 0


def power_of_two(n: tensor) -> tensor:
    """2^n in float64, for an int64 n that is the exponent of a normal number."""
    return to_float((n + DOUBLE.bias) << DOUBLE.mantissa)


def scale(x: tensor, n: tensor) -> tensor:
    """x 2^n, rounded once, for a normal float64 x not far from 1 and an int64 n; from 2^-1100 on
    that vanishes, and from 2^1100 on it is infinite."""
    n = where(n < -1100, -1100, where(n > 1100, 1100, n))
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


def split(x: tensor) -> tuple[tensor, tensor]:
    """The m from 1 to 2 and the int64 n of a positive float64 m 2^n, denormal or not."""
    small = x < DOUBLE.tiny
    bits = to_bits(where(small, x * 2.0**54, x))
    exponent = (bits >> DOUBLE.mantissa) - where(small, DOUBLE.bias + 54, DOUBLE.bias)
    mantissa = (bits & ((1 << DOUBLE.mantissa) - 1)) | (DOUBLE.bias << DOUBLE.mantissa)
    return to_float(mantissa), exponent


def exact_sum(x: Any, y: Any) -> Pair:
    """x + y without error."""
    total = add(x, y)
    of_y = sub(total, x)
    return total, add(sub(x, sub(total, of_y)), sub(y, of_y))


def ordered_sum(x: Any, y: Any) -> Pair:
    """x + y without error, where |x| >= |y| or x is 0."""
    total = add(x, y)
    return total, sub(y, sub(total, x))


def exact_product(x: Any, y: Any) -> Pair:
    """x y without error, where the error is no denormal number."""
    product = mul(x, y)
    return product, fma(x, y, emit_one("neg", product))


def polynomial(x: tensor, coefficients: Sequence[float]) -> tensor:
    """Horner's rule; the constant term comes first."""
    result: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def in_double(function: Callable[..., tensor]) -> Callable[..., tensor]:
    """`function(single, *arguments)` of float64, which may be less exact if `single`, as one of
    float32 too. Arguments that are integers stay what they are."""

    @functools.wraps(function)
    def wrapper(*arguments: tensor) -> tensor:
        single = any(x.dtype == types.float32 for x in arguments)
        if not single:
            return function(False, *arguments)
        wide = [cast(x, types.float64) if x.dtype == types.float32 else x for x in arguments]
        return cast(function(True, *wide), types.float32)

    return wrapper
