# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's elementwise operators as scalar functions, by the names that its table of operators has.

Parameters have torch's names, so that a sample of that table is a call of each.
"""

from __future__ import annotations

import tessera
import tessera.language as tl
from tessera.language.extra import libdevice

OPERATORS: dict[str, tessera.Pointwise] = {}


def listed(name: str):  # type: ignore[no-untyped-def]
    """Makes an operator of a function, and enters it as torch's `name`."""

    def enter(fn):  # type: ignore[no-untyped-def]
        OPERATORS[name] = tessera.pointwise(fn)
        return OPERATORS[name]

    return enter


# --- Arithmetic -----------------------------------------------------------------------


@listed("add")
def add(input, other, alpha=1):
    return input + other * alpha


@listed("sub")
def sub(input, other, alpha=1):
    return input - other * alpha


@listed("mul")
def mul(input, other):
    return input * other


@listed("div.no_rounding_mode")
def div(input, other):
    return input / other


@listed("neg")
def neg(input):
    return -input


@listed("positive")
def positive(input):
    return +input


@listed("reciprocal")
def reciprocal(input):
    return 1.0 / input


@listed("square")
def square(input):
    return input * input


@listed("lerp")
def lerp(input, end, weight):
    return tl.where(
        tl.abs(weight) < 0.5,
        input + weight * (end - input),
        end - (end - input) * (1.0 - weight),
    )


@listed("addcmul")
def addcmul(input, tensor1, tensor2, value=1):
    return input + value * tensor1 * tensor2


@listed("addcdiv")
def addcdiv(input, tensor1, tensor2, value=1):
    return input + value * (tensor1 / tensor2)


@listed("deg2rad")
def deg2rad(input):
    return input * 0.017453292519943295


@listed("rad2deg")
def rad2deg(input):
    return input * 57.29577951308232


@listed("fmod")
def fmod(input, other):
    return input % other


# --- Elementary functions -------------------------------------------------------------


@listed("abs")
def absolute(input):
    return abs(input)


@listed("exp")
def exp(input):
    return tl.exp(input)


@listed("exp2")
def exp2(input):
    return tl.exp2(input)


@listed("expm1")
def expm1(input):
    return tl.expm1(input)


@listed("log")
def log(input):
    return tl.log(input)


@listed("log2")
def log2(input):
    return tl.log2(input)


@listed("log10")
def log10(input):
    return libdevice.log10(input * 1.0)


@listed("log1p")
def log1p(input):
    return tl.log1p(input)


@listed("sqrt")
def sqrt(input):
    return tl.sqrt(input)


@listed("rsqrt")
def rsqrt(input):
    return tl.rsqrt(input)


@listed("sin")
def sin(input):
    return tl.sin(input)


@listed("cos")
def cos(input):
    return tl.cos(input)


@listed("tan")
def tan(input):
    return tl.tan(input)


@listed("tanh")
def tanh(input):
    return tl.tanh(input)


@listed("sinh")
def sinh(input):
    return libdevice.sinh(input)


@listed("cosh")
def cosh(input):
    return libdevice.cosh(input)


@listed("asin")
def asin(input):
    return libdevice.asin(input)


@listed("acos")
def acos(input):
    return libdevice.acos(input)


@listed("atan")
def atan(input):
    return libdevice.atan(input)


@listed("asinh")
def asinh(input):
    return libdevice.asinh(input)


@listed("acosh")
def acosh(input):
    return libdevice.acosh(input)


@listed("atanh")
def atanh(input):
    return libdevice.atanh(input)


@listed("atan2")
def atan2(input, other):
    return libdevice.atan2(input, other)


@listed("hypot")
def hypot(input, other):
    return libdevice.hypot(input, other)


@listed("erf")
def erf(input):
    return tl.erf(input)


@listed("erfc")
def erfc(input):
    return libdevice.erfc(input)


@listed("sigmoid")
def sigmoid(input):
    return tl.sigmoid(input)


@listed("logit")
def logit(input, eps: tl.constexpr = None):
    x = input
    if eps is not None:
        x = tl.clamp(input, eps, 1.0 - eps)
    return tl.log(x / (1.0 - x))


@logit.backward
def logit_backward(grad, input, eps: tl.constexpr):
    found = grad / (input * (1.0 - input))
    if eps is not None:
        found = tl.where((input < eps) | (input > 1.0 - eps), 0.0, found)
    return found, 0.0


@listed("xlogy")
def xlogy(input, other):
    return tl.where(other != other, other, tl.where(input == 0, 0.0, input * tl.log(other)))


@listed("logaddexp")
def logaddexp(input, other):
    high, low = tl.maximum(input, other), tl.minimum(input, other)
    return tl.where(input == other, input + tl.log(2.0), high + tl.log1p(tl.exp(low - high)))


# --- Rounding -------------------------------------------------------------------------


@listed("floor")
def floor(input):
    return tl.floor(input)


@listed("ceil")
def ceil(input):
    return tl.ceil(input)


@listed("trunc")
def trunc(input):
    return libdevice.trunc(input)


@listed("frac")
def frac(input):
    return input - libdevice.trunc(input)


@listed("sign")
def sign(input):
    return tl.where(input > 0, 1, tl.where(input < 0, -1, 0)) + input * 0


# --- Choices --------------------------------------------------------------------------


@listed("where")
def where(input, condition: tl.int1, other):
    return tl.where(condition, input, other)


@listed("maximum")
def maximum(input, other):
    return tl.maximum(input, other, propagate_nan=tl.PropagateNan.ALL)


@listed("minimum")
def minimum(input, other):
    return tl.minimum(input, other, propagate_nan=tl.PropagateNan.ALL)


@listed("fmax")
def fmax(input, other):
    return tl.maximum(input, other)


@listed("fmin")
def fmin(input, other):
    return tl.minimum(input, other)


@listed("heaviside")
def heaviside(input, values):
    return tl.where(input == 0, values, tl.where(input > 0, 1, 0))


# --- Truth values ---------------------------------------------------------------------


@listed("eq")
def eq(input, other):
    return input == other


@listed("ne")
def ne(input, other):
    return input != other


@listed("lt")
def lt(input, other):
    return input < other


@listed("le")
def le(input, other):
    return input <= other


@listed("gt")
def gt(input, other):
    return input > other


@listed("ge")
def ge(input, other):
    return input >= other


@listed("logical_and")
def logical_and(input, other):
    return (input != 0) & (other != 0)


@listed("logical_or")
def logical_or(input, other):
    return (input != 0) | (other != 0)


@listed("logical_xor")
def logical_xor(input, other):
    return (input != 0) ^ (other != 0)


@listed("logical_not")
def logical_not(input):
    return input == 0


@listed("isnan")
def isnan(input):
    return input != input


@listed("isinf")
def isinf(input):
    return abs(input) == float("inf")


@listed("isfinite")
def isfinite(input):
    return abs(input) < float("inf")


# --- Activations ----------------------------------------------------------------------


@listed("nn.functional.relu")
def relu(input):
    return tl.where(input > 0, input, 0 * input)


@listed("nn.functional.relu6")
def relu6(input):
    return tl.minimum(tl.maximum(input, 0), 6)


@listed("nn.functional.leaky_relu")
def leaky_relu(input, negative_slope=0.01):
    return tl.where(input > 0, input, input * negative_slope)


@listed("nn.functional.silu")
def silu(input):
    return input * tl.sigmoid(input)


@listed("nn.functional.mish")
def mish(input):
    return input * tl.tanh(tl.log1p(tl.exp(input)))


@listed("nn.functional.gelu")
def gelu(input, approximate: tl.constexpr = "none"):
    inner = 0.7978845608028654 * (input + 0.044715 * input * input * input)
    exact = tl.erf(input * 0.7071067811865476)
    return 0.5 * input * (1 + tl.where(approximate == "tanh", tl.tanh(inner), exact))


@listed("nn.functional.softplus")
def softplus(input, beta=1, threshold=20):
    return tl.where(input * beta > threshold, input, tl.log1p(tl.exp(input * beta)) / beta)


@listed("nn.functional.logsigmoid")
def logsigmoid(input):
    return tl.minimum(input, 0.0) - tl.log1p(tl.exp(-tl.abs(input)))


@listed("nn.functional.elu")
def elu(input, alpha=1.0):
    return tl.where(input > 0, input, alpha * tl.expm1(input))


@listed("nn.functional.celu")
def celu(input, alpha=1.0):
    return tl.where(input > 0, input, alpha * tl.expm1(input / alpha))


@listed("nn.functional.selu")
def selu(input):
    negative = 1.6732632423543772 * tl.expm1(input)
    return 1.0507009873554805 * tl.where(input > 0, input, negative)


@listed("nn.functional.hardtanh")
def hardtanh(input, min_val=-1.0, max_val=1.0):
    return tl.clamp(input, min_val, max_val)


@listed("nn.functional.hardswish")
def hardswish(input):
    return input * tl.clamp(input + 3.0, 0.0, 6.0) / 6.0


@listed("nn.functional.hardsigmoid")
def hardsigmoid(input):
    return tl.clamp(input + 3.0, 0.0, 6.0) / 6.0


@listed("nn.functional.softsign")
def softsign(input):
    return input / (1 + tl.abs(input))


@listed("nn.functional.tanhshrink")
def tanhshrink(input):
    return input - tl.tanh(input)


@listed("nn.functional.softshrink")
def softshrink(input, lambd=0.5):
    return tl.where(
        input > lambd, input - lambd, tl.where(input < -lambd, input + lambd, 0.0 * input)
    )


@listed("nn.functional.hardshrink")
def hardshrink(input, lambd=0.5):
    return tl.where(abs(input) <= lambd, 0.0, input)


@listed("nn.functional.threshold")
def threshold(input, threshold, value):
    return tl.where(input > threshold, input, value)
