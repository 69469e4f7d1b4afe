# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of the language's functions that must be known at compile time."""

from __future__ import annotations

import operator
from typing import Any, Sequence

from tessera.errors import UserMistake
from tessera.language import types
from tessera.language.tensor import describe, known_value, tensor
from tessera.language.types import dtype, unwrap
from tessera.wording import closest


def constant_int(value: Any, what: str, id: str = "E019") -> int:
    """An argument that must be an integer known at compile time."""
    number = known_value(value)
    if isinstance(number, tensor):
        fix = "annotate the parameter it comes from with tl.constexpr"
        if what == "axis" and (number.shape or number.dtype.is_floating()):
            fix = _NO_AXIS
        raise UserMistake(
            id, f"{what} must be a constant, got {describe(number)}, known at run time only", fix
        )
    # Asked of the value's type: a class has the method that its instances have.
    if hasattr(type(number), "__index__"):
        return operator.index(number)
    raise UserMistake(
        id,
        f"{what} must be an integer constant, got {describe(number)}",
        _NO_AXIS if what == "axis" else "pass an int",
    )


# A caller who gives a reduction a second operand mistakes it for the function of two values.
_NO_AXIS = (
    "name a dimension by its number; the larger or smaller of two values is tl.maximum(x, y) or "
    "tl.minimum(x, y)"
)


def constant_bool(value: Any, what: str, id: str = "E019") -> bool:
    """An argument that must be a boolean known at compile time."""
    flag = known_value(value)
    if isinstance(flag, tensor):
        raise UserMistake(
            id, f"{what} must be a constant, got {describe(flag)}", "pass True or False"
        )
    return bool(flag)


def constant_str(value: Any, what: str, id: str = "E048") -> str:
    """An argument that must be a string."""
    text = unwrap(value)
    if isinstance(text, str):
        return text
    raise UserMistake(id, f"{what} must be a string, got {describe(text)}", "pass a literal string")


def constant_ints(values: Any, what: str, id: str = "E019") -> list[int]:
    """An argument that must be integers known at compile time: a tuple, a list, or one."""
    values = unwrap(values)
    if isinstance(values, (tuple, list)):
        return [constant_int(value, what, id) for value in values]
    return [constant_int(values, what, id)]


def spread(args: Sequence[Any]) -> Sequence[Any]:
    """`f(x, 2, 3)` and `f(x, (2, 3))` mean the same: the items."""
    if len(args) == 1:
        only = unwrap(args[0])
        if isinstance(only, (tuple, list)):
            return only
        return (only,)
    return args


def element_type(value: Any, what: str = "dtype") -> dtype:
    """An argument that must be a type: a dtype, or its name; of a tile's type its element's.

    A torch or NumPy dtype is an error (E034) that names ours.
    """
    value = unwrap(value)
    if isinstance(value, dtype):
        return value.scalar
    if isinstance(value, str):
        try:
            return types.str_to_ty(value)
        except ValueError:
            names = [entry.name for entry in types.BY_CORE_ID] + list(types._SHORT_NAMES)
            names += list(types._PUBLIC_NAMES.values())

            from tessera.language.other_names import type_meant

            near = type_meant(value) or closest(value, names)
            raise UserMistake(
                "E035",
                f"there is no dtype {value!r}",
                (
                    f"did you mean {near!r}?"
                    if near
                    else "the names are int1, int8, ..., uint64, " "fp16, bf16, fp32, fp64"
                ),
            ) from None
    text = str(value)
    name = text.rsplit(".", 1)[-1].strip("'>").removeprefix("<class '")
    if types.dtype.is_dtype(name) or name in types._PUBLIC_NAMES.values():
        raise UserMistake(
            "E034", f"{what} is {text}, which is not a type of the language", f"use tl.{name}"
        )
    from tessera.language.other_names import python_type

    if (own := python_type(value)) is not None:
        raise UserMistake(
            "E034",
            f"{what} is the class `{name}` of Python or NumPy, which is not a type of the language",
            f"use tl.{own}",
        )
    raise UserMistake(
        "E034", f"{what} must be a type, got {describe(value)}", "pass one like tl.float32"
    )


def axis_of(value: Any, rank: int, id: str = "E024") -> int:
    """A dimension number, counted from the end where negative."""
    axis = constant_int(value, "axis", id)
    if not -rank <= axis < rank:
        raise UserMistake(
            id,
            f"axis {axis} is out of range for rank {rank}",
            f"axis must be in [{-rank}, {rank})" if rank else "a scalar has no axes",
        )
    return axis % rank
