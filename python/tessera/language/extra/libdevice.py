# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of libdevice, by its names and for its types.

    from tessera.language.extra import libdevice

On a GPU, each is the function of libdevice of that name, or the operation of `tl` if there is one.
On a CPU and in the interpreter they are written in the language itself and run at vector width;
docs/Numerics.md says how exact each is. The `fast_` functions are as exact there as the others.

Arguments are broadcast. A tensor has to have a type that the function takes, so cast 16-bit floats
yourself. Beside a float64, a float32 is widened. Numbers take the type that fits.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable, NamedTuple, Protocol, Union

import tessera.language.math as math
import tessera.language.types as types
from tessera.errors import UserMistake
from tessera.language.creation import cast
from tessera.language.tensor import (
    Operand,
    active,
    binary,
    builtin,
    describe,
    emit_one,
    fits,
    tensor,
    to_tensor_value,
)

_TYPES = {
    "i": types.int32,
    "u": types.uint32,
    "l": types.int64,
    "v": types.uint64,
    "f": types.float32,
    "d": types.float64,
}


class Signature(NamedTuple):
    """The types that a function takes and gives, and its name in libdevice."""

    arguments: tuple[Any, ...]
    symbol: str
    result: Any

    @staticmethod
    def of(text: str) -> "Signature":
        """Parses a text such as "ff:hypotf:f"."""
        arguments, symbol, result = text.split(":")
        of_arguments = tuple(_TYPES[letter] for letter in arguments)
        return Signature(of_arguments, f"__nv_{symbol}", _TYPES[result])


class Function(NamedTuple):
    """A function of this module."""

    name: str
    text: str
    """Its meaning."""
    signatures: tuple[Signature, ...]
    """Those of libdevice; none where it is an operation of the language."""
    arity: int


class Unary(Protocol):
    """A function of one tensor or number, element by element."""

    def __call__(self, arg0: Operand) -> tensor: ...


class Binary(Protocol):
    """A function of two, element by element; they are broadcast."""

    def __call__(self, arg0: Operand, arg1: Operand) -> tensor: ...


class Ternary(Protocol):
    """A function of three."""

    def __call__(self, arg0: Operand, arg1: Operand, arg2: Operand) -> tensor: ...


class Quaternary(Protocol):
    """A function of four."""

    def __call__(self, arg0: Operand, arg1: Operand, arg2: Operand, arg3: Operand) -> tensor: ...


FUNCTIONS: dict[str, Function] = {}
"""All functions by name."""


OnCPUs = Union[str, Callable[..., tensor]]
"""The implementation of a function on CPUs: the name of one in functions/, a module that is
imported when one of its functions is first compiled."""


def _functions(module: str) -> Any:
    """A module of functions/."""
    return importlib.import_module(f"tessera.language.extra.functions.{module}")


def _accepts(type: Any, operand: tensor, widens: bool) -> bool:
    """True if an argument may be one of a type; `widens`: a float32 may be a float64."""
    number = operand._constant
    if isinstance(number, float):
        return bool(type.is_floating())
    if isinstance(number, (bool, int)):
        return fits(number, type)
    return operand.dtype == type or (
        widens and operand.dtype == types.float32 and type == types.float64
    )


def _choose(function: Function, operands: list[tensor]) -> Signature:
    """The first signature that takes the operands. Raises UserMistake (E030) if there is none."""
    for widens in (False, True):
        for signature in function.signatures:
            if all(_accepts(t, x, widens) for t, x in zip(signature.arguments, operands)):
                return signature
    given = ", ".join(map(describe, operands))
    accepted = "; ".join(
        ", ".join(map(str, signature.arguments)) for signature in function.signatures
    )
    floats_of_16 = any(x.dtype.is_floating() and x.dtype.primitive_bitwidth < 32 for x in operands)
    raise UserMistake(
        "E030",
        f"libdevice.{function.name} of {given}; it takes {accepted}",
        (
            "write x.to(tl.float32), and cast the result back"
            if floats_of_16
            else "cast the argument"
        ),
    )


def _passed(operand: tensor, type: Any) -> tensor:
    """An argument as a tensor of the type that a signature has for it."""
    number = operand._constant
    if number is not None:
        return emit_one("constant", float(number) if type.is_floating() else number, type)
    return operand if operand.dtype == type else cast(operand, type)


def _run(function: Function, on_cpus: OnCPUs, arguments: Any) -> tensor:
    operands = [to_tensor_value(argument) for argument in arguments]
    signature = _choose(function, operands)
    passed = [_passed(x, type) for x, type in zip(operands, signature.arguments)]
    if not active.session.is_for_gpu:
        callee: Any = on_cpus
        if isinstance(on_cpus, str):
            module, name = on_cpus.split(".")
            callee = getattr(_functions(module), name)
        result: tensor = callee(*passed)
        return result
    # The library is the one that the compiler links in any case: `extern_libs` may name another.
    return emit_one("extern_elementwise", signature.symbol, passed, signature.result, True, "", "")


def _define(function: Function, run: Callable[..., tensor]) -> Any:
    def one(arg0: Operand) -> tensor:
        return run(arg0)

    def two(arg0: Operand, arg1: Operand) -> tensor:
        return run(arg0, arg1)

    def three(arg0: Operand, arg1: Operand, arg2: Operand) -> tensor:
        return run(arg0, arg1, arg2)

    def four(arg0: Operand, arg1: Operand, arg2: Operand, arg3: Operand) -> tensor:
        return run(arg0, arg1, arg2, arg3)

    definition: Any = (one, two, three, four)[function.arity - 1]
    definition.__name__ = definition.__qualname__ = function.name
    definition.__doc__ = f"{function.text}. Source: `triton.language.extra.libdevice`."
    FUNCTIONS[function.name] = function
    return builtin(definition)


def _own(name: str, operation: Callable[..., tensor], text: str, arity: int = 1) -> Any:
    """A function that is an operation of the language."""
    return _define(Function(name, text, (), arity), operation)


def _table(name: str, signatures: str, on_cpus: OnCPUs, text: str) -> Any:
    """A function by libdevice's names for its types, and what it is on CPUs."""
    parsed = tuple(map(Signature.of, signatures.split()))
    function = Function(name, text, parsed, len(parsed[0].arguments))
    return _define(function, lambda *arguments: _run(function, on_cpus, arguments))


def _floats(name: str, on_cpus: OnCPUs, text: str, arity: int = 1) -> Any:
    """A function of float32 or float64 that libdevice has by its name, and by that and "f"."""
    f, d = "f" * arity, "d" * arity
    return _table(name, f"{f}:{name}f:f {d}:{name}:d", on_cpus, text)


def _test(name: str, signatures: str, on_cpus: OnCPUs, text: str) -> Any:
    """A question, which libdevice answers by an int32."""
    parsed = tuple(map(Signature.of, signatures.split()))
    function = Function(name, text, parsed, 1)

    def run(*arguments: Any) -> tensor:
        answer = _run(function, on_cpus, arguments)
        return answer if answer.dtype.is_bool() else binary("ne", answer, 0)

    return _define(function, run)


def _op(name: str) -> Callable[[Any], tensor]:
    """An elementary function that the compiler writes out."""
    return functools.partial(emit_one, "math", name)


_ROUNDINGS = {"rn": "nearbyint", "rz": "trunc", "rd": "floor", "ru": "ceil"}
_WORDS = {"rn": "to nearest even", "rz": "towards zero", "rd": "down", "ru": "up"}


def _rounded(operation: str, rounding: str, symbol: str, arity: int) -> Any:
    """Arithmetic of float32 or float64, correctly rounded in a direction."""
    nearest: dict[str, Callable[..., tensor]] = {
        # As fused ones, which are not fused again with what is made of them.
        "add": lambda x, y: emit_one("fma", x, 1.0, y),
        "sub": lambda x, y: emit_one("fma", y, -1.0, x),
        "mul": lambda x, y: emit_one("fma", x, y, -0.0),
        "rcp": lambda x: 1.0 / x,
        "fma": functools.partial(emit_one, "fma"),
    }
    formula = {
        "add": "`arg0 + arg1`", "sub": "`arg0 - arg1`", "mul": "`arg0 * arg1`", "rcp": "`1 / arg0`",
        "div": "`arg0 / arg1`", "sqrt": "The square root", "fma": "`arg0 * arg1 + arg2`, once",
    }[operation]  # fmt: skip
    text = f"{formula}, rounded {_WORDS[rounding]}"
    on_cpus: Callable[..., tensor]
    if rounding == "rn":
        on_cpus = nearest[operation]
    else:
        on_cpus = lambda *arguments: getattr(_functions("directed"), f"{operation}_directed")(
            rounding
        )(*arguments)
    f, d = "f" * arity, "d" * arity
    single, double = ("fmaf", "fma") if operation == "fma" else (f"f{symbol}", f"d{symbol}")
    signatures = f"{f}:{single}_{rounding}:f {d}:{double}_{rounding}:d"
    return _table(f"{operation}_{rounding}", signatures, on_cpus, text)


def _to_integer(source: str, target: str, rounding: str) -> Any:
    """A float as an integer."""
    letter = {"float": "f", "double": "d"}[source]
    type, result = {
        "int": (types.int32, "i"), "uint": (types.uint32, "i"),
        "ll": (types.int64, "l"), "ull": (types.uint64, "l"),
    }[target]  # fmt: skip
    signature = f"{letter}:{source}2{target}_{rounding}:{result}"
    on_cpus: Callable[..., tensor] = lambda x: _functions("floats").to_integer(
        _ROUNDINGS[rounding], type
    )(x)
    kind = "float32" if letter == "f" else "float64"
    text = f"A {kind} as {type}, rounded {_WORDS[rounding]} and saturated"
    if type.is_int_unsigned():
        text += f"; its bits come as {_TYPES[result]}"
    return _table(f"{source}2{target}_{rounding}", signature, on_cpus, text)


def _to_float(source: str, target: str, rounding: str) -> Any:
    """An integer as a float."""
    letter = {"int": "i", "uint": "u", "ll": "l", "ull": "v"}[source]
    result = {"float": "f", "double": "d"}[target]
    signature = f"{letter}:{source}2{target}_{rounding}:{result}"
    type, kind = _TYPES[letter], _TYPES[result]
    on_cpus: Callable[..., tensor] = lambda x: cast(x, kind)
    if rounding != "rn":
        on_cpus = lambda x: _functions("directed").convert_directed(rounding, kind)(x)
    text = f"{'An' if source == 'int' else 'A'} {type} as {kind}, rounded {_WORDS[rounding]}"
    return _table(f"{source}2{target}_{rounding}", signature, on_cpus, text)


def _narrowed(rounding: str) -> Any:
    """A float64 as a float32."""
    on_cpus: Callable[..., tensor] = lambda x: cast(x, types.float32)
    if rounding != "rn":
        on_cpus = lambda x: _functions("directed").narrow_directed(rounding)(x)
    text = f"A float64 as float32, rounded {_WORDS[rounding]}"
    name = f"double2float_{rounding}"
    return _table(name, f"d:{name}:f", on_cpus, text)


# --- Integers and bits -------------------------------------------------------------------

abs: Unary = _own("abs", math.abs, "The magnitude of integers or floats")
clz: Unary = _table(
    "clz", "i:clz:i l:clzll:i", "bits.clz", "How many bits are before the first one"
)
popc: Unary = _table("popc", "i:popc:i l:popcll:i", "bits.popc", "How many bits are one")
ffs: Unary = _table(
    "ffs", "i:ffs:i l:ffsll:i", "bits.ffs", "The place of the lowest one, from 1; 0 of 0"
)
brev: Unary = _table("brev", "i:brev:i l:brevll:l", "bits.brev", "The bits in the opposite order")
byte_perm: Ternary = _table(
    "byte_perm", "iii:byte_perm:i", "bits.byte_perm",
    "Four bytes of (arg1, arg0), that the digits of arg2, of four bits each, choose",
)  # fmt: skip
mulhi: Binary = _table(
    "mulhi", "ii:mulhi:i uu:umulhi:u ll:mul64hi:l vv:umul64hi:v", "bits.mulhi",
    "The upper half of a product",
)  # fmt: skip
mul24: Binary = _table(
    "mul24", "ii:mul24:i uu:umul24:u", "bits.mul24", "The product of the low 24 bits"
)
sad: Ternary = _table("sad", "iiu:sad:i uuu:usad:u", "bits.sad", "`|arg0 - arg1| + arg2`")
hadd: Binary = _table("hadd", "ii:hadd:i uu:uhadd:u", "bits.hadd", "The mean, rounded down")
rhadd: Binary = _table("rhadd", "ii:rhadd:i uu:urhadd:u", "bits.rhadd", "The mean, rounded up")
int_as_float: Unary = _table(
    "int_as_float", "i:int_as_float:f", "bits.as_float", "The float32 of the same bits"
)
float_as_int: Unary = _table(
    "float_as_int", "f:float_as_int:i", "bits.as_int", "The int32 of the same bits"
)
uint_as_float: Unary = _table(
    "uint_as_float", "u:uint_as_float:f", "bits.as_float", "The float32 of the same bits"
)
float_as_uint: Unary = _table(
    "float_as_uint", "f:float_as_uint:i", "bits.as_int", "The int32 of the same bits"
)
longlong_as_double: Unary = _table(
    "longlong_as_double", "l:longlong_as_double:d", "bits.as_float", "The float64 of the same bits"
)
double_as_longlong: Unary = _table(
    "double_as_longlong", "d:double_as_longlong:l", "bits.as_int", "The int64 of the same bits"
)
hiloint2double: Binary = _table(
    "hiloint2double", "ii:hiloint2double:d", "bits.hiloint2double",
    "The float64 with the bits of arg0 above those of arg1",
)  # fmt: skip
double2loint: Unary = _table(
    "double2loint", "d:double2loint:i", "bits.double2loint", "The lower half of the bits"
)
double2hiint: Unary = _table(
    "double2hiint", "d:double2hiint:i", "bits.double2hiint", "The upper half of the bits"
)

# --- Arithmetic, rounded in a direction --------------------------------------------------

add_rn: Binary = _rounded("add", "rn", "add", 2)
add_rz: Binary = _rounded("add", "rz", "add", 2)
add_rd: Binary = _rounded("add", "rd", "add", 2)
add_ru: Binary = _rounded("add", "ru", "add", 2)
sub_rn: Binary = _rounded("sub", "rn", "sub", 2)
sub_rz: Binary = _rounded("sub", "rz", "sub", 2)
sub_rd: Binary = _rounded("sub", "rd", "sub", 2)
sub_ru: Binary = _rounded("sub", "ru", "sub", 2)
mul_rn: Binary = _rounded("mul", "rn", "mul", 2)
mul_rz: Binary = _rounded("mul", "rz", "mul", 2)
mul_rd: Binary = _rounded("mul", "rd", "mul", 2)
mul_ru: Binary = _rounded("mul", "ru", "mul", 2)
div_rn: Binary = _own("div_rn", math.div_rn, "`arg0 / arg1`, rounded to nearest even", 2)
div_rz: Binary = _rounded("div", "rz", "div", 2)
div_rd: Binary = _rounded("div", "rd", "div", 2)
div_ru: Binary = _rounded("div", "ru", "div", 2)
rcp_rn: Unary = _rounded("rcp", "rn", "rcp", 1)
rcp_rz: Unary = _rounded("rcp", "rz", "rcp", 1)
rcp_rd: Unary = _rounded("rcp", "rd", "rcp", 1)
rcp_ru: Unary = _rounded("rcp", "ru", "rcp", 1)
sqrt_rn: Unary = _own("sqrt_rn", math.sqrt_rn, "The square root, rounded to nearest even")
sqrt_rz: Unary = _rounded("sqrt", "rz", "sqrt", 1)
sqrt_rd: Unary = _rounded("sqrt", "rd", "sqrt", 1)
sqrt_ru: Unary = _rounded("sqrt", "ru", "sqrt", 1)
fma: Ternary = _own("fma", math.fma, "`arg0 * arg1 + arg2`, rounded once", 3)
fma_rn: Ternary = _rounded("fma", "rn", "fma", 3)
fma_rz: Ternary = _rounded("fma", "rz", "fma", 3)
fma_rd: Ternary = _rounded("fma", "rd", "fma", 3)
fma_ru: Ternary = _rounded("fma", "ru", "fma", 3)
rsqrt_rn: Unary = _table(
    "rsqrt_rn", "f:frsqrt_rn:f", "elementary.rsqrt_rn", "1 / the square root, to nearest even"
)
rcp64h: Unary = _table(
    "rcp64h", "d:rcp64h:d", "floats.rcp64h", "1 / arg0, roughly: the upper half of its bits"
)
saturatef: Unary = _table(
    "saturatef", "f:saturatef:f", "floats.saturatef", "arg0 held between 0 and 1; 0 of NaN"
)

# --- Conversions -------------------------------------------------------------------------

double2float_rn: Unary = _narrowed("rn")
double2float_rz: Unary = _narrowed("rz")
double2float_rd: Unary = _narrowed("rd")
double2float_ru: Unary = _narrowed("ru")
double2int_rn: Unary = _to_integer("double", "int", "rn")
double2int_rz: Unary = _to_integer("double", "int", "rz")
double2int_rd: Unary = _to_integer("double", "int", "rd")
double2int_ru: Unary = _to_integer("double", "int", "ru")
double2uint_rn: Unary = _to_integer("double", "uint", "rn")
double2uint_rz: Unary = _to_integer("double", "uint", "rz")
double2uint_rd: Unary = _to_integer("double", "uint", "rd")
double2uint_ru: Unary = _to_integer("double", "uint", "ru")
double2ll_rn: Unary = _to_integer("double", "ll", "rn")
double2ll_rz: Unary = _to_integer("double", "ll", "rz")
double2ll_rd: Unary = _to_integer("double", "ll", "rd")
double2ll_ru: Unary = _to_integer("double", "ll", "ru")
double2ull_rn: Unary = _to_integer("double", "ull", "rn")
double2ull_rz: Unary = _to_integer("double", "ull", "rz")
double2ull_rd: Unary = _to_integer("double", "ull", "rd")
double2ull_ru: Unary = _to_integer("double", "ull", "ru")
float2int_rn: Unary = _to_integer("float", "int", "rn")
float2int_rz: Unary = _to_integer("float", "int", "rz")
float2int_rd: Unary = _to_integer("float", "int", "rd")
float2int_ru: Unary = _to_integer("float", "int", "ru")
float2uint_rn: Unary = _to_integer("float", "uint", "rn")
float2uint_rz: Unary = _to_integer("float", "uint", "rz")
float2uint_rd: Unary = _to_integer("float", "uint", "rd")
float2uint_ru: Unary = _to_integer("float", "uint", "ru")
float2ll_rn: Unary = _to_integer("float", "ll", "rn")
float2ll_rz: Unary = _to_integer("float", "ll", "rz")
float2ll_rd: Unary = _to_integer("float", "ll", "rd")
float2ll_ru: Unary = _to_integer("float", "ll", "ru")
float2ull_rn: Unary = _to_integer("float", "ull", "rn")
float2ull_rz: Unary = _to_integer("float", "ull", "rz")
float2ull_rd: Unary = _to_integer("float", "ull", "rd")
float2ull_ru: Unary = _to_integer("float", "ull", "ru")
int2float_rn: Unary = _to_float("int", "float", "rn")
int2float_rz: Unary = _to_float("int", "float", "rz")
int2float_rd: Unary = _to_float("int", "float", "rd")
int2float_ru: Unary = _to_float("int", "float", "ru")
int2double_rn: Unary = _to_float("int", "double", "rn")
uint2float_rn: Unary = _to_float("uint", "float", "rn")
uint2float_rz: Unary = _to_float("uint", "float", "rz")
uint2float_rd: Unary = _to_float("uint", "float", "rd")
uint2float_ru: Unary = _to_float("uint", "float", "ru")
uint2double_rn: Unary = _to_float("uint", "double", "rn")
ll2float_rn: Unary = _to_float("ll", "float", "rn")
ll2float_rz: Unary = _to_float("ll", "float", "rz")
ll2float_rd: Unary = _to_float("ll", "float", "rd")
ll2float_ru: Unary = _to_float("ll", "float", "ru")
ll2double_rn: Unary = _to_float("ll", "double", "rn")
ll2double_rz: Unary = _to_float("ll", "double", "rz")
ll2double_rd: Unary = _to_float("ll", "double", "rd")
ll2double_ru: Unary = _to_float("ll", "double", "ru")
ull2float_rn: Unary = _to_float("ull", "float", "rn")
ull2float_rz: Unary = _to_float("ull", "float", "rz")
ull2float_rd: Unary = _to_float("ull", "float", "rd")
ull2float_ru: Unary = _to_float("ull", "float", "ru")
ull2double_rn: Unary = _to_float("ull", "double", "rn")
ull2double_rz: Unary = _to_float("ull", "double", "rz")
ull2double_rd: Unary = _to_float("ull", "double", "rd")
ull2double_ru: Unary = _to_float("ull", "double", "ru")

# --- Parts of floats, rounding to integers, remainders -----------------------------------

floor: Unary = _own("floor", math.floor, "The largest integer not above arg0")
ceil: Unary = _own("ceil", math.ceil, "The smallest integer not below arg0")
trunc: Unary = _own("trunc", _op("trunc"), "The nearest integer towards zero")
round: Unary = _own(
    "round", _op("round"), "The nearest integer, away from zero where two are as near"
)
rint: Unary = _own("rint", _op("rint"), "The nearest integer, the even one where two are as near")
nearbyint: Unary = _own("nearbyint", _op("nearbyint"), "The nearest integer, as `rint`")
llrint: Unary = _table(
    "llrint", "f:llrintf:l d:llrint:l", "floats.llrint",
    "The nearest int64, the even one where two are as near",
)  # fmt: skip
llround: Unary = _table(
    "llround", "f:llroundf:l d:llround:l", "floats.llround",
    "The nearest int64, away from zero where two are as near",
)  # fmt: skip
isnan: Unary = _test("isnan", "f:isnanf:i d:isnand:i", "floats.isnan", "Whether arg0 is NaN")
isinf: Unary = _test("isinf", "f:isinff:i d:isinfd:i", "floats.isinf", "Whether arg0 is infinite")
finitef: Unary = _test("finitef", "f:finitef:i", "floats.isfinite", "Whether a float32 is finite")
isfinited: Unary = _test(
    "isfinited", "d:isfinited:i", "floats.isfinite", "Whether a float64 is finite"
)
signbit: Unary = _table(
    "signbit", "f:signbitf:i d:signbitd:i", "floats.signbit",
    "1 where the sign is set, of zeros and NaN too, else 0",
)  # fmt: skip
copysign: Binary = _floats("copysign", "floats.copysign", "|arg0| with the sign of arg1", 2)
nextafter: Binary = _floats(
    "nextafter", "floats.nextafter", "The neighbour of arg0 towards arg1", 2
)
ilogb: Unary = _table("ilogb", "f:ilogbf:i d:ilogb:i", "floats.ilogb", "The exponent, as an int32")
logb: Unary = _floats("logb", "floats.logb", "The exponent, as a float")
ldexp: Binary = _table(
    "ldexp", "fi:ldexpf:f di:ldexp:d", "floats.ldexp", "arg0 times 2 to the power of arg1"
)
scalbn: Binary = _table(
    "scalbn", "fi:scalbnf:f di:scalbn:d", "floats.ldexp", "arg0 times 2 to the power of arg1"
)
fmod: Binary = _floats("fmod", "floats.fmod", "The rest of `arg0 / arg1`, with the sign of arg0", 2)
remainder: Binary = _floats(
    "remainder", "floats.remainder", "arg0 less the multiple of arg1 that is nearest to it", 2
)
fdim: Binary = _floats("fdim", "floats.fdim", "`arg0 - arg1` where that is positive, else 0", 2)

# --- Powers, logarithms, roots -----------------------------------------------------------

exp: Unary = _own("exp", math.exp, "e to the power of arg0")
exp2: Unary = _own("exp2", math.exp2, "2 to the power of arg0")
exp10: Unary = _floats("exp10", "elementary.exp10", "10 to the power of arg0")
expm1: Unary = _own("expm1", math.expm1, "exp(arg0) - 1, exact near 0")
log: Unary = _own("log", math.log, "The natural logarithm")
log2: Unary = _own("log2", math.log2, "The logarithm to base 2")
log10: Unary = _floats("log10", "elementary.log10", "The logarithm to base 10")
log1p: Unary = _own("log1p", math.log1p, "log(1 + arg0), exact near 0")
pow: Binary = _own("pow", math.pow, "arg0 to the power of arg1, which may be an integer", 2)
sqrt: Unary = _own("sqrt", math.sqrt, "The square root")
rsqrt: Unary = _own("rsqrt", math.rsqrt, "1 / the square root")
cbrt: Unary = _floats("cbrt", "elementary.cbrt", "The cube root")
rcbrt: Unary = _floats("rcbrt", "elementary.rcbrt", "1 / the cube root")
hypot: Binary = _floats("hypot", "elementary.norm", "The length of (arg0, arg1)", 2)
rhypot: Binary = _floats("rhypot", "elementary.rnorm", "1 / the length of (arg0, arg1)", 2)
norm3d: Ternary = _floats("norm3d", "elementary.norm", "The length of (arg0, arg1, arg2)", 3)
rnorm3d: Ternary = _floats("rnorm3d", "elementary.rnorm", "1 / the length of (arg0, arg1, arg2)", 3)
norm4d: Quaternary = _floats(
    "norm4d", "elementary.norm", "The length of (arg0, arg1, arg2, arg3)", 4
)
rnorm4d: Quaternary = _floats(
    "rnorm4d", "elementary.rnorm", "1 / the length of (arg0, arg1, arg2, arg3)", 4
)

# --- Trigonometric and hyperbolic functions ----------------------------------------------

sin: Unary = _own("sin", math.sin, "The sine")
cos: Unary = _own("cos", math.cos, "The cosine")
tan: Unary = _own("tan", math.tan, "The tangent")
sinpi: Unary = _floats("sinpi", "trigonometry.sinpi", "The sine of pi times arg0")
cospi: Unary = _floats("cospi", "trigonometry.cospi", "The cosine of pi times arg0")
asin: Unary = _floats("asin", "trigonometry.asin", "The arc sine")
acos: Unary = _floats("acos", "trigonometry.acos", "The arc cosine")
atan: Unary = _floats("atan", "trigonometry.atan", "The arc tangent")
atan2: Binary = _floats(
    "atan2",
    "trigonometry.atan2",
    "The arc tangent of `arg0 / arg1`, in the quadrant of the point",
    2,
)
sinh: Unary = _floats("sinh", "elementary.sinh", "The hyperbolic sine")
cosh: Unary = _floats("cosh", "elementary.cosh", "The hyperbolic cosine")
tanh: Unary = _own("tanh", math.tanh, "The hyperbolic tangent")
asinh: Unary = _floats("asinh", "elementary.asinh", "The inverse hyperbolic sine")
acosh: Unary = _floats("acosh", "elementary.acosh", "The inverse hyperbolic cosine")
atanh: Unary = _floats("atanh", "elementary.atanh", "The inverse hyperbolic tangent")

# --- The error function, gamma, Bessel functions -----------------------------------------

erf: Unary = _own("erf", math.erf, "The error function")
erfc: Unary = _floats("erfc", "normal.erfc", "1 - erf(arg0), without cancellation")
erfcx: Unary = _floats("erfcx", "normal.erfcx", "exp(arg0^2) erfc(arg0)")
erfinv: Unary = _floats("erfinv", "normal.erfinv", "The inverse of erf")
erfcinv: Unary = _floats("erfcinv", "normal.erfcinv", "The inverse of erfc")
normcdf: Unary = _floats(
    "normcdf", "normal.normcdf", "The normal distribution's cumulative function"
)
normcdfinv: Unary = _floats("normcdfinv", "normal.normcdfinv", "The inverse of normcdf")
lgamma: Unary = _floats(
    "lgamma", "gamma.lgamma", "The logarithm of the magnitude of the gamma function"
)
tgamma: Unary = _floats("tgamma", "gamma.tgamma", "The gamma function")
j0: Unary = _floats("j0", "bessel.j0", "The Bessel function of the first kind of order 0")
j1: Unary = _floats("j1", "bessel.j1", "The Bessel function of the first kind of order 1")
jn: Binary = _table("jn", "if:jnf:f id:jn:d", "bessel.jn", "That of order arg0, of arg1")
y0: Unary = _floats("y0", "bessel.y0", "The Bessel function of the second kind of order 0")
y1: Unary = _floats("y1", "bessel.y1", "The Bessel function of the second kind of order 1")
yn: Binary = _table("yn", "if:ynf:f id:yn:d", "bessel.yn", "That of order arg0, of arg1")
cyl_bessel_i0: Unary = _floats(
    "cyl_bessel_i0", "bessel.cyl_bessel_i0", "The modified Bessel function of order 0"
)
cyl_bessel_i1: Unary = _floats(
    "cyl_bessel_i1", "bessel.cyl_bessel_i1", "The modified Bessel function of order 1"
)

# --- What GPUs have rougher and faster ---------------------------------------------------

fast_sinf: Unary = _table("fast_sinf", "f:fast_sinf:f", _op("sin"), "The sine")
fast_cosf: Unary = _table("fast_cosf", "f:fast_cosf:f", _op("cos"), "The cosine")
fast_tanf: Unary = _table("fast_tanf", "f:fast_tanf:f", _op("tan"), "The tangent")
fast_expf: Unary = _table("fast_expf", "f:fast_expf:f", _op("exp"), "e to the power of arg0")
fast_exp10f: Unary = _table(
    "fast_exp10f", "f:fast_exp10f:f", "elementary.exp10", "10 to the power of arg0"
)
fast_logf: Unary = _table("fast_logf", "f:fast_logf:f", _op("log"), "The natural logarithm")
fast_log2f: Unary = _table("fast_log2f", "f:fast_log2f:f", _op("log2"), "The logarithm to base 2")
fast_log10f: Unary = _table(
    "fast_log10f", "f:fast_log10f:f", "elementary.log10", "The logarithm to base 10"
)
fast_powf: Binary = _table(
    "fast_powf", "ff:fast_powf:f", functools.partial(emit_one, "pow"), "arg0 to the power of arg1"
)
fast_dividef: Binary = _table(
    "fast_dividef", "ff:fast_fdividef:f", lambda x, y: x / y, "`arg0 / arg1`"
)

__all__ = sorted(FUNCTIONS)
