# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printing and checking, while a kernel is compiled and while it runs."""

from __future__ import annotations

from typing import Any, Optional, TextIO

from tessera.errors import UserMistake
from tessera.language.arguments import constant_bool, constant_str
from tessera.language.tensor import (
    Operand,
    active,
    builtin,
    describe,
    emit,
    is_specialised,
    known_value,
    tensor,
    to_tensor_value,
)
from tessera.language.types import unwrap

__all__ = [
    "device_assert",
    "device_print",
    "expect_zero",
    "static_assert",
    "static_print",
]


@builtin
def static_print(
    *values: object,
    sep: str = " ",
    end: str = "\n",
    file: Optional[TextIO] = None,
    flush: bool = False,
) -> None:
    """Prints when the kernel is compiled: the values of constants, and the types of tensors.

    Source: Triton language 3.6/3.9.

    Example:
        BLOCK: tl.constexpr = 64
        x = tl.zeros((BLOCK, 8), tl.float16)
        tl.static_print("x has", x.shape, x.dtype, "BLOCK", BLOCK)  # prints: x has (64, 8) fp16 BLOCK 64
    """
    separator, last = constant_str(sep, "sep"), constant_str(end, "end")
    text = separator.join(str(known_value(value)) for value in values) + last
    active.session.print(text, unwrap(file))


@builtin
def static_assert(cond: object, msg: str = "") -> None:
    """Stops the compilation if a constant condition does not hold.

    Errors: E067 (it does not hold), E019 (it is not a constant).
    Source: Triton language 3.6/3.9.

    Example:
        BLOCK: tl.constexpr = 64
        tl.static_assert(BLOCK % 16 == 0, "BLOCK is a multiple of 16")
        x = tl.zeros((BLOCK,), tl.float32)
        tl.static_assert(x.dtype == tl.float32)
    """
    value = known_value(cond)
    if is_specialised(value):
        value = value._specialised
    if isinstance(value, tensor):
        raise UserMistake(
            "E019",
            f"static_assert needs a constant, got {describe(value)}",
            "use tl.device_assert for what is known at run time",
        )
    if not value:
        text = str(unwrap(msg))
        raise UserMistake("E067", "static assertion failed" + (f": {text}" if text else ""))


@builtin
def expect_zero(x: Operand, mask: Optional[Operand] = None) -> tensor:
    """`x`, with a promise that it is 0 where `mask` is true; checked with `debug=True`.

    Source: Triton language 3.9.

    Example:
        i = tl.arange(0, 8)
        x = tl.where(i < 5, 2.0, 0.0)
        x = tl.expect_zero(x, mask=i >= 5)  # padding, which a sum may include
        assert tl.sum(x) == 10.0
    """
    device_assert(to_tensor_value(x).__eq__(0), "expect_zero: the value is not 0", mask)
    return to_tensor_value(x)


@builtin
def require(cond: Any, id: str, msg: str, fix: str) -> None:
    """`static_assert` with an id of its own, for the functions of the library."""
    if not known_value(cond):
        raise UserMistake(id, msg, fix)


@builtin
def device_print(prefix: str, *args: Operand, hex: bool = False) -> None:
    """Prints when the kernel runs: a line for each element of each argument, in any order.

    A line has the program, the index of the element, the prefix and the value:
    `pid (0, 3, 0) idx ( 1, 15) x: 2.500000`. With several arguments, each line says which one it
    is about: `pid (0, 3, 0) idx () x: (operand 1) 7`. A scalar has no index and is printed once
    in each program. Floats have six decimals. With `hex`, floats are hexadecimal, and integers
    are `0x` and all the digits of their width. `prefix` is a literal of ASCII characters; `: `
    is added before a value. Errors: E048.
    Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 4) * 0.5
        tl.device_print("x", x)  # prints: pid (0, 0, 0) idx (3) x: 1.500000
        tl.device_print("rows", 255, hex=True)  # prints: pid (0, 0, 0) idx () rows: 0x000000ff
    """
    text = unwrap(prefix)
    if not isinstance(text, str) or not text.isascii():
        raise UserMistake(
            "E048",
            f"the prefix of device_print is {describe(text)}",
            'pass a literal string first: tl.device_print("x", x)',
        )
    operands = [to_tensor_value(arg) for arg in args]
    if operands:
        text = text.removesuffix(" ").removesuffix(":") + ": "
    if text not in ("", ": ") and not text.startswith(" "):
        text = " " + text
    as_hex = constant_bool(hex, "hex")
    if not operands:
        emit("device_print", text, operands, as_hex)
    for number, operand in enumerate(operands):
        which = f"(operand {number}) " if len(operands) > 1 else ""
        emit("device_print", text + which, [operand], as_hex)


@builtin
def device_assert(cond: Operand, msg: str = "", mask: Optional[Operand] = None) -> None:
    """Stops the kernel where `cond` is false (and `mask` true), if compiled with `debug=True`.

    Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 8)
        x = tl.where(i < 5, i + 1, 0)  # 1 2 3 4 5 0 0 0
        tl.device_assert(x > 0, "counts are positive", mask=i < 5)
        assert x >= 0, "the same without a mask"
    """
    if not active.session.debug:
        return
    text = unwrap(msg)
    condition = to_tensor_value(cond)
    emit("device_assert", condition, "" if text is None else str(text), unwrap(mask))
