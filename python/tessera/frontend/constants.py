# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluating what is known at compile time, with Python's own meaning."""

from __future__ import annotations

import math
import operator
import struct
from typing import Any, Callable, Iterator, Optional, Sequence

from tessera.errors import UserMistake
from tessera.frontend.host_functions import from_numpy
from tessera.language.aggregate import field_values, fields_of, of_values
from tessera.language.tensor import describe, tensor
from tessera.language.types import constexpr, constexpr_type, tuple_type, unwrap

# ast operator class name -> (Python's operation, TileBuilder's)
BINARY: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "Add": (operator.add, "add"),
    "Sub": (operator.sub, "sub"),
    "Mult": (operator.mul, "mul"),
    "Div": (operator.truediv, "truediv"),
    "FloorDiv": (operator.floordiv, "floordiv"),
    "Mod": (operator.mod, "mod"),
    "BitAnd": (operator.and_, "and_"),
    "BitOr": (operator.or_, "or_"),
    "BitXor": (operator.xor, "xor"),
    "LShift": (operator.lshift, "shl"),
    "RShift": (operator.rshift, "shr"),
    "Pow": (operator.pow, ""),
}

COMPARE: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "Eq": (operator.eq, "eq"),
    "NotEq": (operator.ne, "ne"),
    "Lt": (operator.lt, "lt"),
    "LtE": (operator.le, "le"),
    "Gt": (operator.gt, "gt"),
    "GtE": (operator.ge, "ge"),
}

UNARY: dict[str, tuple[Callable[[Any], Any], str]] = {
    "USub": (operator.neg, "neg"),
    "UAdd": (operator.pos, "plus"),
    "Invert": (operator.invert, "invert"),
    "Not": (operator.not_, "not_"),
}

SYMBOLS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%",
    "BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>", "Pow": "**",
    "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=",
    "USub": "-", "UAdd": "+", "Invert": "~", "Not": "not",
}  # fmt: skip

# A shift by more than this makes a number that no kernel can use and much memory.
_MAX_SHIFT = 4096


def is_number(value: Any) -> bool:
    """True if `value` is a Python number (bool included)."""
    return isinstance(value, (bool, int, float))


def fold_binary(name: str, left: Any, right: Any) -> Any:
    """An operator on two constants. Raises UserMistake (E027, E029) where Python raises."""
    symbol = SYMBOLS[name]
    if name in ("LShift", "Pow") and isinstance(right, int) and right > _MAX_SHIFT:
        raise UserMistake("E027", f"{left!r} {symbol} {right!r} is too large", "use a smaller one")
    try:
        return BINARY[name][0](left, right)
    except ZeroDivisionError:
        raise UserMistake(
            "E027", f"{left!r} {symbol} {right!r} divides by zero", "guard the division"
        ) from None
    except ValueError as error:
        raise UserMistake(
            "E027", f"{left!r} {symbol} {right!r}: {error}", "use other numbers"
        ) from None
    except (TypeError, OverflowError) as error:
        raise UserMistake(
            "E029",
            f"`{symbol}` does not work on {describe(left)} and {describe(right)}",
            "convert one of them" if isinstance(error, TypeError) else "use smaller numbers",
        ) from None


def fold_as_at_run_time(name: str, left: Any, right: Any) -> Any:
    """`//` or `%` of two constants by the rule of C, which holds at run time: the quotient is
    rounded towards zero, and the remainder has the sign of `left`. None for all else, and where
    there is no such result."""
    if name not in ("FloorDiv", "Mod") or not (is_number(left) and is_number(right)) or not right:
        return None
    if isinstance(left, float) or isinstance(right, float):
        if name == "FloorDiv":
            return None  # which floats do not have at run time
        try:
            return math.fmod(left, right)
        except (ValueError, OverflowError):  # of an infinity; an integer beyond all floats
            return None
    quotient = abs(left) // abs(right)
    quotient = quotient if (left < 0) == (right < 0) else -quotient
    return quotient if name == "FloorDiv" else left - right * quotient


def fold_compare(name: str, left: Any, right: Any) -> Any:
    """A comparison of two constants."""
    try:
        return COMPARE[name][0](left, right)
    except TypeError:
        raise UserMistake(
            "E029",
            f"`{SYMBOLS[name]}` does not work on {describe(left)} and {describe(right)}",
            "convert one of them",
        ) from None


def fold_unary(name: str, operand: Any) -> Any:
    """An operator on a constant."""
    try:
        return UNARY[name][0](operand)
    except TypeError:
        raise UserMistake(
            "E029", f"`{SYMBOLS[name]}` does not work on {describe(operand)}", "convert it"
        ) from None


def same_constant(a: Any, b: Any) -> bool:
    """True if two constants are equal and of one type (1, 1.0 and True differ; 0.0 and -0.0)."""
    if a is b:
        return True
    if isinstance(a, constexpr) and isinstance(b, constexpr):
        a, b = a.value, b.value
    if type(a) is not type(b) or isinstance(a, tensor):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    parts = parts_of(a)
    if parts is not None:
        others = parts_of(b) or ()
        return len(parts) == len(others) and all(map(same_constant, parts, others))
    try:
        return bool(a == b)
    except Exception:
        return False


def type_of(value: Any) -> Any:
    """The value of `value.type` in kernel code."""
    if isinstance(value, tensor):
        return value.type
    if isinstance(value, tuple):
        return tuple_type(list(map(type_of, value)), getattr(value, "_fields", None))
    return constexpr_type(value)


def decay(value: Any) -> Any:
    """The form of an assigned value: numbers become tensors with known values."""
    if isinstance(value, constexpr):
        value = value.value
    if isinstance(value, (bool, int, float)):
        return tensor._known(value)
    if isinstance(value, tuple):
        return rebuild(value, [decay(item) for item in value])
    return value


def as_specialised(value: Any) -> Any:
    """A value that another specialisation of the kernel may choose otherwise: numbers in it
    are tensors, as they are where the choice is made at run time."""
    value = settle(value)
    if is_number(value):
        return tensor._of_specialised(value)
    if isinstance(value, tuple):
        return rebuild(value, [as_specialised(item) for item in value])
    return value


def plain(value: Any) -> Any:
    """A value of Python's as kernel code sees it: lists are tuples, `tl.constexpr`s are gone, and
    scalars of NumPy are Python's numbers."""
    value = from_numpy(unwrap(value))
    if isinstance(value, (list, tuple)):
        items = [plain(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def settle(value: Any) -> Any:
    """The reverse: tensors that are known turn into their numbers."""
    if isinstance(value, constexpr):
        value = value.value
    if isinstance(value, tensor) and value._constant is not None:
        return value._constant
    if isinstance(value, tuple):
        return rebuild(value, [settle(item) for item in value])
    return value


def is_constant(value: Any) -> bool:
    """True if no part of `value` is a tensor known only at run time."""
    if isinstance(value, tensor):
        return value._constant is not None
    parts = parts_of(value)
    return parts is None or all(map(is_constant, parts))


# --- Values with parts: tuples and aggregates ---------------------------------------------


def parts_of(value: Any) -> Optional[Sequence[Any]]:
    """The items of a tuple, the fields of an aggregate; None for what has no parts."""
    if isinstance(value, tuple):
        return value
    return None if fields_of(value) is None else field_values(value)


def rebuild(like: Any, parts: Sequence[Any]) -> Any:
    """A tuple or an aggregate of the class of `like`, with other parts."""
    return build_of(type(like), parts)


def build_of(cls: type, parts: Sequence[Any]) -> Any:
    """A tuple, a named tuple or an aggregate of these parts."""
    if not issubclass(cls, tuple):
        return of_values(cls, parts)
    return cls(*parts) if hasattr(cls, "_fields") else tuple(parts)


def are_alike(a: Any, b: Any) -> bool:
    """True if two values have parts that belong together one by one."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b)
    return fields_of(a) is not None and type(a) is type(b)


def leaves(value: Any) -> Iterator[tensor]:
    """The tensors in a value, its parts from left to right."""
    if isinstance(value, tensor):
        yield value
    else:
        for part in parts_of(value) or ():
            yield from leaves(part)


def with_leaves(value: Any, tensors: Iterator[Any]) -> Any:
    """`value` with its tensors replaced, in the order of `leaves`."""
    if isinstance(value, tensor):
        return next(tensors)
    parts = parts_of(value)
    if parts is None:
        return value
    return rebuild(value, [with_leaves(part, tensors) for part in parts])
