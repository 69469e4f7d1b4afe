# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checks that `sanitize_overflow` adds to `+`, `-` and `*` of integers with `debug`.

An assertion compares the result with the exact one. Below 64 bits, that is the same operation in 64
bits. In 64 bits, it compares the signs of operands and result, or the upper half of a product. Only
operators of users' functions are checked: the language's own functions wrap on purpose (random
numbers). A function of a reduction or scan is not checked, since it is also given elements that
stand for nothing.
"""

from __future__ import annotations

from typing import Any

from tessera.language.tensor import OPERATOR_SYMBOLS, active, binary, emit, emit_one, tensor
from tessera.language.types import int64, uint64, unwrap

_CHECKED = ("add", "sub", "mul")


def checked_binary(name: str, left: Any, right: Any, sanitize: bool = True) -> tensor:
    """`tensor.binary`, with the assertion if it is asked for."""
    result = binary(name, left, right)
    if sanitize and name in _CHECKED and _is_wanted():
        _check(name, left, right, result)
    return result


def check_negation(operand: tensor, result: tensor) -> None:
    """The assertion for `result`, which is `-operand`."""
    if _is_wanted():
        _check("sub", 0, operand, result)


def _is_wanted() -> bool:
    session = active.session
    if not session.debug or session.scalar_function:
        return False
    if not getattr(session.options, "sanitize_overflow", False):
        return False
    return not session.walkers[-1].fn.__module__.startswith("tessera.language")


def _check(name: str, left: Any, right: Any, result: tensor) -> None:
    type = result.dtype
    if result._constant is not None or not type.is_int() or type.primitive_bitwidth == 1:
        return
    fits = _fits_in_64_bits if type.primitive_bitwidth == 64 else _fits
    symbol = OPERATOR_SYMBOLS[name]
    message = f"{type} overflow in `{symbol}` (sanitize_overflow=False lets it wrap)"
    emit("device_assert", fits(name, left, right, result), message, None)


def _fits(name: str, left: Any, right: Any, result: tensor) -> tensor:
    """True if the result of an operation below 64 bits is the one in 64 bits."""
    wide = emit_one(name, _widened(left, result.dtype), _widened(right, result.dtype))
    return emit_one("eq", wide, emit_one("cast", result, int64, None, False))


def _widened(operand: Any, type: Any) -> Any:
    """The operand of an operation in `type`, in 64 bits."""
    return emit_one("cast", _converted(operand, type), int64, None, False)


def _converted(operand: Any, type: Any) -> Any:
    """The operand of an operation in `type`, which holds every literal beside it."""
    operand = unwrap(operand)
    if isinstance(operand, int):
        return emit_one("constant", int(operand), type)
    return emit_one("cast", operand, type, None, False)


def _fits_in_64_bits(name: str, left: Any, right: Any, result: tensor) -> tensor:
    """True if the result of an operation in 64 bits, for which there is nothing wider, is exact."""
    type = result.dtype
    x, y = _converted(left, type), _converted(right, type)
    if type == uint64:
        if name == "mul":
            return emit_one("eq", emit_one("umulhi", x, y), 0)
        return emit_one("ge", result, x) if name == "add" else emit_one("ge", x, y)
    if name == "mul":
        return emit_one("eq", _upper_half(x, y), emit_one("shr", result, 63))
    # The sum x + y wrapped if its sign is neither operand's; x - y, if x is the sum that wrapped.
    total, one, other = (result, x, y) if name == "add" else (x, y, result)
    differ = emit_one("and_", emit_one("xor", total, one), emit_one("xor", total, other))
    return emit_one("ge", differ, 0)


def _upper_half(x: Any, y: Any) -> tensor:
    """The upper 64 bits of the product of two int64."""
    high = emit_one("cast", emit_one("umulhi", x, y), int64, None, False)
    for one, other in ((x, y), (y, x)):
        # As an unsigned number, a negative one is greater by 2^64.
        high = emit_one("sub", high, emit_one("and_", emit_one("shr", one, 63), other))
    return high
