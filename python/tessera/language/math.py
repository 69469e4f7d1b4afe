# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise mathematics; also `tl.math`."""

from __future__ import annotations

from typing import Any

from tessera.errors import UserMistake
from tessera.language.arguments import constant_bool
from tessera.language.overflow import checked_binary
from tessera.language.tensor import (
    Operand,
    binary,
    builtin,
    describe,
    emit_one,
    method,
    tensor,
    to_tensor_value,
)
from tessera.language.types import PropagateNan, unwrap

__all__ = [
    "abs",
    "add",
    "ceil",
    "clamp",
    "cos",
    "div_rn",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "fdiv",
    "floor",
    "fma",
    "log",
    "log1p",
    "log2",
    "maximum",
    "minimum",
    "mul",
    "pow",
    "rsqrt",
    "sin",
    "sqrt",
    "sqrt_rn",
    "sub",
    "tan",
    "tanh",
    "umulhi",
    "where",
]


def __dir__() -> list[str]:
    # All public names, for completion, without names that are only imported here.
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})


@builtin
def add(x: Operand, y: Operand, sanitize_overflow: bool = True) -> tensor:
    """`x + y`. Integers wrap. With `debug=True` wrapping is an error, as for the operator, unless
    `sanitize_overflow` is False. Source: Triton language 3.6/3.9.

    Example:
        x = tl.full((8,), 127, tl.int8)
        y = tl.add(x, 1, sanitize_overflow=False)  # `x + 1` is an error with debug=True
        assert y == -128
    """
    sanitize = constant_bool(sanitize_overflow, "sanitize_overflow")
    return checked_binary("add", _operand(x), y, sanitize)


@builtin
def sub(x: Operand, y: Operand, sanitize_overflow: bool = True) -> tensor:
    """`x - y`. Integers wrap. With `debug=True` wrapping is an error, as for the operator, unless
    `sanitize_overflow` is False. Source: Triton language 3.6/3.9.

    Example:
        x = tl.zeros((8,), tl.uint32)
        y = tl.sub(x, 1, sanitize_overflow=False)  # `x - 1` is an error with debug=True
        assert y == 0xFFFFFFFF
    """
    sanitize = constant_bool(sanitize_overflow, "sanitize_overflow")
    return checked_binary("sub", _operand(x), y, sanitize)


@builtin
def mul(x: Operand, y: Operand, sanitize_overflow: bool = True) -> tensor:
    """`x * y`. Integers wrap. With `debug=True` wrapping is an error, as for the operator, unless
    `sanitize_overflow` is False. Source: Triton language 3.6/3.9.

    Example:
        # A hash is a product modulo 2**32: here, wrapping is no mistake.
        x = tl.full((8,), 2, tl.uint32)
        h = tl.mul(x, 2654435761, sanitize_overflow=False)
        assert h == 1013904226
    """
    sanitize = constant_bool(sanitize_overflow, "sanitize_overflow")
    return checked_binary("mul", _operand(x), y, sanitize)


def _operand(value: Any) -> Any:
    value = unwrap(value)
    return value if isinstance(value, tensor) else to_tensor_value(value)


def _of_floats(name: str, x: Operand) -> tensor:
    return emit_one("math", name, to_tensor_value(x))


@method
@builtin
def exp(x: Operand) -> tensor:
    """`e` to the power of `x`, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) * 0.25
        assert tl.exp(0.0) == 1.0
        assert tl.abs(tl.exp(x) * tl.exp(-x) - 1) < 1e-6
    """
    return _of_floats("exp", x)


@method
@builtin
def exp2(x: Operand) -> tensor:
    """2 to the power of `x`, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8).to(tl.float32)
        assert tl.exp2(x) == 1 << tl.arange(0, 8)
        assert tl.exp2(-1.0) == 0.5
    """
    return _of_floats("exp2", x)


@method
@builtin
def log(x: Operand) -> tensor:
    """The natural logarithm of `x`, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) + 1.0
        y = tl.sum(tl.log(x))
        assert tl.abs(y - 10.6046) < 1e-3  # the logarithm of 8!
    """
    return _of_floats("log", x)


@method
@builtin
def log2(x: Operand) -> tensor:
    """The logarithm of `x` to base 2, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = (1 << tl.arange(0, 8)).to(tl.float32)  # 1 2 4 ... 128
        assert tl.log2(x) == tl.arange(0, 8)
    """
    return _of_floats("log2", x)


@method
@builtin
def sin(x: Operand) -> tensor:
    """The sine of `x`, an angle in radians, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        angle = tl.arange(0, 8) * 0.25
        s, c = tl.sin(angle), tl.cos(angle)
        assert tl.abs(s * s + c * c - 1) < 1e-6
        assert tl.sin(0.0) == 0.0
    """
    return _of_floats("sin", x)


@method
@builtin
def cos(x: Operand) -> tensor:
    """The cosine of `x`, an angle in radians, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        angle = tl.arange(0, 8) * (6.2831853 / 8)
        assert tl.cos(0.0) == 1.0
        assert tl.abs(tl.sum(tl.cos(angle))) < 1e-5  # over a whole turn
    """
    return _of_floats("cos", x)


@method
@builtin
def sqrt(x: Operand) -> tensor:
    """The square root of `x`, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8).to(tl.float32)
        assert tl.sqrt(x * x) == x
        assert tl.sqrt(2.25) == 1.5
    """
    return _of_floats("sqrt", x)


@method
@builtin
def rsqrt(x: Operand) -> tensor:
    """`1 / sqrt(x)`, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) + 1.0
        norm = tl.rsqrt(tl.sum(x * x) / 8 + 1e-6)  # of an RMS normalisation
        assert tl.abs(tl.sum(x * norm * x * norm) - 8) < 1e-4
        assert tl.rsqrt(4.0) == 0.5
    """
    return _of_floats("rsqrt", x)


@method
@builtin
def erf(x: Operand) -> tensor:
    """The error function of `x`, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) - 3.5
        gelu = 0.5 * x * (1 + tl.erf(x * 0.70710678))
        assert tl.abs(tl.max(gelu) - 3.4992) < 1e-3
        assert tl.erf(10.0) == 1.0
    """
    return _of_floats("erf", x)


@method
@builtin
def floor(x: Operand) -> tensor:
    """The largest integer that is not above `x`, as a float, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) / 4  # 0.0 0.25 ... 1.75
        assert tl.sum(tl.floor(x)) == 4
        assert tl.floor(-1.5) == -2.0
    """
    return _of_floats("floor", x)


@method
@builtin
def ceil(x: Operand) -> tensor:
    """The smallest integer that is not below `x`, as a float, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) / 4  # 0.0 0.25 ... 1.75
        assert tl.sum(tl.ceil(x)) == 4 * 1 + 3 * 2
        assert tl.ceil(-1.5) == -1.0
    """
    return _of_floats("ceil", x)


@method
@builtin
def log1p(x: Operand) -> tensor:
    """`log(1 + x)`, exact near 0, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Ours.

    Example:
        x = tl.full((4,), 1e-8, tl.float32)
        assert tl.log(1 + x) == 0.0  # all digits are lost
        assert tl.log1p(x) == x
    """
    return _of_floats("log1p", x)


@method
@builtin
def expm1(x: Operand) -> tensor:
    """`exp(x) - 1`, exact near 0, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Ours.

    Example:
        x = tl.full((4,), 1e-8, tl.float32)
        assert tl.exp(x) - 1 == 0.0  # all digits are lost
        assert tl.expm1(x) == x
    """
    return _of_floats("expm1", x)


@method
@builtin
def tan(x: Operand) -> tensor:
    """The tangent of `x`, an angle in radians, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Ours.

    Example:
        x = tl.arange(0, 8) * 0.125
        assert tl.abs(tl.tan(x) * tl.cos(x) - tl.sin(x)) < 1e-6
        assert tl.tan(0.0) == 0.0
    """
    return _of_floats("tan", x)


@method
@builtin
def tanh(x: Operand) -> tensor:
    """The hyperbolic tangent of `x`, element by element.

    `x` is a scalar or tile of floats; the result has its shape and type. Floats of less than 32
    bits are computed in float32, and the result is rounded.
    Errors: E030 (another type). Ours.

    Example:
        x = tl.arange(0, 8) - 3.5
        assert tl.abs(tl.tanh(x) - (2 * tl.sigmoid(2 * x) - 1)) < 1e-6
        assert tl.tanh(20.0) == 1.0
    """
    return _of_floats("tanh", x)


@method
@builtin
def abs(x: Operand) -> tensor:
    """The magnitude of integers or floats; unsigned ones stay as they are.

    The magnitude of the smallest signed integer is itself (it wraps).
    Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) - 4  # -4 to 3
        assert tl.max(tl.abs(x)) == 4
        assert tl.abs(-0.5) == 0.5
    """
    value = to_tensor_value(x)
    return value if value.dtype.is_int_unsigned() else emit_one("math", "abs", value)


@method
@builtin
def sqrt_rn(x: Operand) -> tensor:
    """Square root of floats, rounded to nearest even as IEEE 754 asks.

    Errors: E030 (no floats). Source: Triton language 3.6/3.9 (float32 alone).

    Example:
        x = tl.full((4,), 2.0, tl.float32)
        assert tl.sqrt_rn(x).to(tl.int32, bitcast=True) == 0x3FB504F3  # the same bits everywhere
    """
    return emit_one("sqrt_rn", to_tensor_value(x))


@builtin
def div_rn(x: Operand, y: Operand) -> tensor:
    """`x / y` of floats, rounded to nearest even as IEEE 754 asks.

    Errors: E022 (shapes), E030 (no floats). Source: Triton language 3.6/3.9 (float32 alone).

    Example:
        x = tl.full((4,), 1.0, tl.float32)
        assert tl.div_rn(x, 3.0) * 3.0 == 1.0
        assert tl.div_rn(x, 0.0) > 3.4e38  # infinity
    """
    return emit_one("div_rn", unwrap(x), unwrap(y))


@builtin
def fdiv(x: Operand, y: Operand, ieee_rounding: bool = False, approx: bool = False) -> tensor:
    """`x / y` of floats; 16-bit floats are divided in float32.

    Errors: E022 (shapes), E030 (no floats). Source: Triton language 3.9.

    Example:
        x = tl.full((4,), 1.0, tl.float16)
        y = tl.fdiv(x, 3.0, ieee_rounding=True)
        assert y.dtype == tl.float32  # what 16-bit floats are divided in
        assert y == tl.div_rn(x.to(tl.float32), 3.0)
    """
    ieee = constant_bool(ieee_rounding, "ieee_rounding")
    if ieee and constant_bool(approx, "approx"):
        raise UserMistake(
            "E048", "fdiv got both ieee_rounding and approx", "leave one of the two out"
        )
    return emit_one("fdiv", unwrap(x), unwrap(y), ieee)


@builtin
def fma(x: Operand, y: Operand, z: Operand) -> tensor:
    """`x * y + z` of floats with one rounding; operands are broadcast and promoted.

    Errors: E022 (shapes), E030 (no floats). Source: Triton language 3.9.

    Example:
        x = tl.full((4,), 1 + 2**-12, tl.float32)
        square = x * x  # rounded
        error = tl.fma(x, x, -square)  # what rounding has cost, exactly
        assert error == 2**-24
    """
    return emit_one("fma", unwrap(x), unwrap(y), unwrap(z))


@builtin
def pow(x: Operand, y: Operand) -> tensor:
    """x to the power of y, of floats; also `libdevice.pow`. Floats of less than 32 bits are
    computed in float32, and the result is rounded.

    If `y` is a float, both are promoted and broadcast. It may also be an integer, which is not
    rounded, except to float64 where it has more than 32 bits and `x` is of float64. Special cases
    are those of C's `pow`: `pow(x, 0)` and `pow(1, y)` are 1, even with NaN; a negative `x` to a
    power that is no integer is NaN.
    Errors: E022 (shapes), E030 (another type). Source: `triton.language.extra.libdevice`.

    Example:
        x = tl.arange(0, 8) + 1.0
        assert tl.abs(tl.math.pow(x, 0.5) - tl.sqrt(x)) < 1e-6
        assert tl.math.pow(-2.0, 3) == -8.0  # an integer power of a negative number
    """
    return emit_one("pow", unwrap(x), unwrap(y))


@builtin
def umulhi(x: Operand, y: Operand) -> tensor:
    """The upper half of the product of 32- or 64-bit integers, read as unsigned.

    Errors: E022 (shapes), E030 (another type). Source: Triton language 3.6/3.9.

    Example:
        bits = tl.randint(42, tl.arange(0, 256))
        dice = tl.umulhi(bits, tl.full((256,), 6, tl.uint32))  # 0 to 5, without a division
        assert tl.max(dice) == 5
    """
    return emit_one("umulhi", unwrap(x), unwrap(y))


def _propagate(value: Any) -> bool:
    value = unwrap(value)
    if value in (PropagateNan.NONE, PropagateNan.ALL):
        return bool(value == PropagateNan.ALL)
    raise UserMistake(
        "E048",
        f"propagate_nan is {describe(value)}",
        "use tl.PropagateNan.NONE or tl.PropagateNan.ALL",
    )


@builtin
def maximum(x: Operand, y: Operand, propagate_nan: str = PropagateNan.NONE) -> tensor:
    """The larger of two elements; if one of them is NaN, the other one.

    With `tl.PropagateNan.ALL` a NaN gives NaN. Operands are promoted and broadcast.
    Errors: E022. Source: Triton language 3.9 (bfloat16 stays bfloat16).

    Example:
        x = tl.arange(0, 8) - 4.0
        relu = tl.maximum(x, 0.0)
        assert tl.sum(relu) == 1 + 2 + 3
        nan = tl.zeros((8,), tl.float32) / 0
        assert tl.maximum(nan, x) == x
    """
    return emit_one("maximum", unwrap(x), unwrap(y), _propagate(propagate_nan))


@builtin
def minimum(x: Operand, y: Operand, propagate_nan: str = PropagateNan.NONE) -> tensor:
    """The smaller of two elements; if one of them is NaN, the other one.

    With `tl.PropagateNan.ALL` a NaN gives NaN. Operands are promoted and broadcast.
    Errors: E022. Source: Triton language 3.9 (bfloat16 stays bfloat16).

    Example:
        i, last = tl.arange(0, 8), 5
        clipped = tl.minimum(i, last)  # 0 1 2 3 4 5 5 5
        assert tl.sum(clipped) == 25
        nan = tl.zeros((8,), tl.float32) / 0
        y = tl.minimum(nan, 1.0, propagate_nan=tl.PropagateNan.ALL)
        assert y != y
    """
    return emit_one("minimum", unwrap(x), unwrap(y), _propagate(propagate_nan))


@builtin
def clamp(x: Operand, min: Operand, max: Operand, propagate_nan: str = PropagateNan.NONE) -> tensor:
    """`x` brought into [min, max]; the operands are promoted together.

    Errors: E022. Source: Triton language 3.9 (integers too).

    Example:
        x = tl.arange(0, 8) - 4  # -4 to 3
        y = tl.clamp(x, -1, 2)  # -1 -1 -1 -1 0 1 2 2
        assert tl.sum(y) == 1
    """
    return emit_one("clamp", unwrap(x), unwrap(min), unwrap(max), _propagate(propagate_nan))


@builtin
def where(condition: Operand, x: Operand, y: Operand) -> tensor:
    """`x` where `condition` holds, else `y`; both sides are computed.

    `condition` is boolean, or an integer, which holds where it is not 0. All three are
    broadcast, and x and y promoted. Errors: E022 (shapes), E026 (the condition is a float or
    a pointer). Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 8)
        x = tl.where(i % 2 == 0, i, -i)  # 0 -1 2 -3 4 -5 6 -7
        assert tl.sum(x) == -4
        scores = tl.where(i[:, None] >= i[None, :], 1.0, 0.0)  # [8, 8]: a causal mask
        assert tl.sum(scores) == 36.0
    """
    condition = unwrap(condition)
    if isinstance(condition, tensor) and not condition.dtype.is_bool():
        if condition.dtype.is_int():
            condition = binary("ne", condition, 0)
        else:
            raise UserMistake(
                "E026",
                f"the condition of where is {describe(condition)}",
                "compare it: tl.where(x != 0, ...)",
            )
    if isinstance(condition, (bool, int)):
        condition = tensor._known(bool(condition))
    return emit_one("where", condition, unwrap(x), unwrap(y))
