# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise mathematics; also `tl.math`."""

from __future__ import annotations

from typing import Any, Callable

from tessera.frontend.errors import UserMistake
from tessera.language.overflow import checked_binary
from tessera.language.tensor import (
    binary,
    builtin,
    constant_bool,
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


@builtin
def add(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """`x + y`. Integers wrap; with `debug=True` that is an error, as for the operator, unless
    `sanitize_overflow` is False. Source: Triton language 3.6/3.9."""
    sanitize = constant_bool(sanitize_overflow, "sanitize_overflow")
    return checked_binary("add", _operand(x), y, sanitize)


@builtin
def sub(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """`x - y`. Integers wrap; with `debug=True` that is an error, as for the operator, unless
    `sanitize_overflow` is False. Source: Triton language 3.6/3.9."""
    sanitize = constant_bool(sanitize_overflow, "sanitize_overflow")
    return checked_binary("sub", _operand(x), y, sanitize)


@builtin
def mul(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """`x * y`. Integers wrap; with `debug=True` that is an error, as for the operator, unless
    `sanitize_overflow` is False. Source: Triton language 3.6/3.9."""
    sanitize = constant_bool(sanitize_overflow, "sanitize_overflow")
    return checked_binary("mul", _operand(x), y, sanitize)


def _operand(value: Any) -> Any:
    value = unwrap(value)
    return value if isinstance(value, tensor) else to_tensor_value(value)


def _unary(name: str, formula: str, note: str = "") -> Callable[[Any], tensor]:
    def function(x: Any) -> tensor:
        return emit_one("math", name, to_tensor_value(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{formula}, element by element.

    `x` is a float32 or float64 scalar or tile; the result has its type. Errors: E030 for
    another type.{note} Source: Triton language 3.6/3.9.
    """
    return method(builtin(function))


exp = _unary("exp", "e to the power of x")
exp2 = _unary("exp2", "2 to the power of x")
log = _unary("log", "Natural logarithm")
log2 = _unary("log2", "Logarithm to base 2")
sin = _unary("sin", "Sine of x in radians")
cos = _unary("cos", "Cosine of x in radians")
sqrt = _unary("sqrt", "Square root")
rsqrt = _unary("rsqrt", "1 / sqrt(x)")
erf = _unary("erf", "The error function")
floor = _unary("floor", "The largest integer not above x")
ceil = _unary("ceil", "The smallest integer not below x")
log1p = _unary("log1p", "log(1 + x), exact near 0", " Ours.")
expm1 = _unary("expm1", "exp(x) - 1, exact near 0", " Ours.")
tan = _unary("tan", "Tangent of x in radians", " Ours.")
tanh = _unary("tanh", "Hyperbolic tangent", " Ours.")


@method
@builtin
def abs(x: Any) -> tensor:
    """The magnitude of integers or floats; unsigned ones stay as they are.

    The magnitude of the smallest signed integer is itself (it wraps).
    Source: Triton language 3.6/3.9.
    """
    value = to_tensor_value(x)
    return value if value.dtype.is_int_unsigned() else emit_one("math", "abs", value)


@method
@builtin
def sqrt_rn(x: Any) -> tensor:
    """Square root of float32, rounded to nearest even as IEEE 754 asks.

    Errors: E030 for another type. Source: Triton language 3.6/3.9.
    """
    return emit_one("sqrt_rn", to_tensor_value(x))


@builtin
def div_rn(x: Any, y: Any) -> tensor:
    """`x / y` of float32, rounded to nearest even as IEEE 754 asks.

    Errors: E022 (shapes), E030 for another type. Source: Triton language 3.6/3.9.
    """
    return emit_one("div_rn", unwrap(x), unwrap(y))


@builtin
def fdiv(x: Any, y: Any, ieee_rounding: bool = False, approx: bool = False) -> tensor:
    """`x / y` of floats; 16-bit floats are divided in float32.

    Errors: E022 (shapes), E030 (no floats). Source: Triton language 3.9.
    """
    ieee = constant_bool(ieee_rounding, "ieee_rounding")
    if ieee and constant_bool(approx, "approx"):
        raise UserMistake(
            "E048", "fdiv got both ieee_rounding and approx", "leave one of the two out"
        )
    return emit_one("fdiv", unwrap(x), unwrap(y), ieee)


@builtin
def fma(x: Any, y: Any, z: Any) -> tensor:
    """`x * y + z` of floats with one rounding; operands are broadcast and promoted.

    Errors: E022 (shapes), E030 (no floats). Source: Triton language 3.9.
    """
    return emit_one("fma", unwrap(x), unwrap(y), unwrap(z))


@builtin
def pow(x: Any, y: Any) -> tensor:
    """x to the power of y, of float32 or float64; also `libdevice.pow`.

    `y` is a float, and both are promoted and broadcast, or an integer of at most 32 signed
    bits, which is not rounded. All cases of C's `pow`: `pow(x, 0)` and `pow(1, y)` are 1, of
    NaN too; a negative `x` has integral powers alone, the others are NaN.
    Errors: E022 (shapes), E030 (another type). Source: `triton.language.extra.libdevice`.
    """
    return emit_one("pow", unwrap(x), unwrap(y))


@builtin
def umulhi(x: Any, y: Any) -> tensor:
    """The upper half of the product of 32- or 64-bit integers, read as unsigned.

    Errors: E022 (shapes), E030 (another type). Source: Triton language 3.6/3.9.
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
def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The larger of two elements; of a NaN and a number the number.

    With `tl.PropagateNan.ALL` a NaN gives NaN. Operands are promoted and broadcast.
    Errors: E022. Source: Triton language 3.9 (bfloat16 stays bfloat16).
    """
    return emit_one("maximum", unwrap(x), unwrap(y), _propagate(propagate_nan))


@builtin
def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The smaller of two elements; of a NaN and a number the number.

    With `tl.PropagateNan.ALL` a NaN gives NaN. Operands are promoted and broadcast.
    Errors: E022. Source: Triton language 3.9 (bfloat16 stays bfloat16).
    """
    return emit_one("minimum", unwrap(x), unwrap(y), _propagate(propagate_nan))


@builtin
def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """`x` brought into [min, max]; the operands are promoted together.

    Errors: E022. Source: Triton language 3.9 (integers too).
    """
    return emit_one("clamp", unwrap(x), unwrap(min), unwrap(max), _propagate(propagate_nan))


@builtin
def where(condition: Any, x: Any, y: Any) -> tensor:
    """`x` where `condition` holds, else `y`; both sides are computed.

    `condition` is boolean, or an integer, which holds where it is not 0. All three are
    broadcast, and x and y promoted. Errors: E022 (shapes), E026 (the condition is a float or
    a pointer). Source: Triton language 3.6/3.9.
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
        condition = tensor.known(bool(condition))
    return emit_one("where", condition, unwrap(x), unwrap(y))
