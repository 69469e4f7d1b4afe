# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More functions of float32 and float64, by the names that libdevice has for them.

    from tessera.language.extra import libdevice

On a GPU they are libdevice's; on a CPU those that `tl` has too are written out at vector
width, and `acos`, `asin`, `atan`, `cosh`, `log10` and `sinh` are the C library's, a call an
element. `acosh`, `asinh`, `atan2`, `atanh`, `cbrt`, `erfc`, `exp10`, `lgamma` and `tgamma` are
there on GPUs alone. What is not here: docs/Status.md.
"""

from __future__ import annotations

from typing import Any, Callable

import tessera.language.types as types
from tessera.language.math import (
    abs,
    ceil,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    fma,
    log,
    log1p,
    log2,
    pow,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    tan,
    tanh,
)
from tessera.language.program import extern_elementwise
from tessera.language.standard import library
from tessera.language.tensor import builtin, emit_one, tensor, to_tensor_value

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "div_rn",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "fmod",
    "isinf",
    "isnan",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "nearbyint",
    "pow",
    "rint",
    "round",
    "rsqrt",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "sqrt_rn",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
]


def _unary(name: str, formula: str) -> Callable[[Any], tensor]:
    def function(x: Any) -> tensor:
        return emit_one("math", name, to_tensor_value(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{formula}, element by element; float32 or float64.

    Errors: E030 for another type. Source: `triton.language.extra.libdevice`.
    """
    return builtin(function)


acos = _unary("acos", "Arc cosine in radians")
asin = _unary("asin", "Arc sine in radians")
atan = _unary("atan", "Arc tangent in radians")
cosh = _unary("cosh", "Hyperbolic cosine")
sinh = _unary("sinh", "Hyperbolic sine")
log10 = _unary("log10", "Logarithm to base 10")
trunc = _unary("trunc", "The nearest integer towards zero")
round = _unary("round", "The nearest integer, away from zero where two are as near")
rint = _unary("rint", "The nearest integer, the even one where two are as near")
nearbyint = _unary("nearbyint", "The nearest integer, the even one where two are as near")


def _of_gpus(name: str, formula: str, arity: int = 1) -> Callable[..., tensor]:
    """A function that libdevice alone has."""
    both = (types.float32, f"__nv_{name}f"), (types.float64, f"__nv_{name}")
    symbols = {(dtype,) * arity: (symbol, dtype) for dtype, symbol in both}

    def one(x: Any) -> tensor:
        return extern_elementwise("libdevice", "", [x], symbols, is_pure=True)

    def two(x: Any, y: Any) -> tensor:
        return extern_elementwise("libdevice", "", [x, y], symbols, is_pure=True)

    function: Callable[..., tensor] = one if arity == 1 else two
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{formula}, element by element; float32 or float64, on GPUs.

    Errors: E030 for another type, and on a CPU. Source: `triton.language.extra.libdevice`.
    """
    return builtin(function)


acosh = _of_gpus("acosh", "Inverse hyperbolic cosine")
asinh = _of_gpus("asinh", "Inverse hyperbolic sine")
atan2 = _of_gpus("atan2", "Arc tangent of x / y in the quadrant of the point (y, x)", arity=2)
atanh = _of_gpus("atanh", "Inverse hyperbolic tangent")
cbrt = _of_gpus("cbrt", "Cube root")
erfc = _of_gpus("erfc", "1 - erf(x), without cancellation")
exp10 = _of_gpus("exp10", "10 to the power of x")
lgamma = _of_gpus("lgamma", "Logarithm of the absolute value of the gamma function")
tgamma = _of_gpus("tgamma", "Gamma function")


@library
def fmod(x: Any, y: Any) -> Any:
    """The rest of `x / y` with the sign of x. Source: `triton.language.extra.libdevice`."""
    return x % y


@library
def isnan(x: Any) -> Any:
    """Whether x is NaN. Source: `triton.language.extra.libdevice`."""
    return x != x


@library
def isinf(x: Any) -> Any:
    """Whether x is infinite, of either sign. Source: `triton.language.extra.libdevice`."""
    return abs(x) == float("inf")


@library
def signbit(x: Any) -> Any:
    """Whether the sign of a float32 or float64 is set, of zeros and NaN too.

    Source: `triton.language.extra.libdevice`.
    """
    if x.dtype.primitive_bitwidth == 64:
        return x.to(types.int64, bitcast=True) < 0
    else:
        return x.to(types.int32, bitcast=True) < 0
