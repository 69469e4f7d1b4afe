# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `sanitize_overflow` adds to `+`, `-` and `*` of integers where `debug` is on.

The operation is done once more in 64 bits, and an assertion says that the result is what the
narrow type holds. It is about what users write: the language's own functions wrap on purpose
(random numbers), and so may integers of 64 bits, for which there is nothing wider. A function
of a reduction or scan is not checked, since it is also given elements that stand for nothing.
"""

from __future__ import annotations

from typing import Any

from tessera.language.tensor import OPERATOR_SYMBOLS, active, binary, emit, emit_one, tensor
from tessera.language.types import int64, unwrap

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
    if result._constant is not None or not type.is_int() or type.primitive_bitwidth in (1, 64):
        return
    wide = emit_one(name, _widened(left, type), _widened(right, type))
    narrow = emit_one("cast", result, int64, None, False)
    symbol = OPERATOR_SYMBOLS[name]
    message = f"{type} overflow in `{symbol}` (sanitize_overflow=False lets it wrap)"
    emit("device_assert", emit_one("eq", wide, narrow), message, None)


def _widened(operand: Any, type: Any) -> Any:
    """The operand of an operation in `type`, in 64 bits. A literal has no width of its own."""
    operand = unwrap(operand)
    if isinstance(operand, int):
        return emit_one("constant", int(operand), int64)
    return emit_one("cast", emit_one("cast", operand, type, None, False), int64, None, False)
