# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of an elementwise operator's results, by the rules of each array library.

Each library is asked by its own function, so that the rules are those of its version. torch has one for
two operands only. No library is imported.
"""

from __future__ import annotations

import sys
from typing import Any, Sequence

from tessera.language import types


def result_dtype(library: str, operands: Sequence[Any], to_float: bool) -> Any:
    """The library's type for what is computed of `operands`.

    These are arrays, or for a number its Python type; torch's tensors without dimensions are pairs
    of dtype and None. If `to_float`, integers become what the library's functions of floats make of
    them. The library raises TypeError where there is no such type.
    """
    return _RULES[library](operands, to_float)


def compute_dtype(dtype: types.dtype) -> types.dtype:
    """The type that a function computes in: floats of less than 32 bits widen."""
    if dtype.is_floating() and dtype.primitive_bitwidth < 32:
        return types.float32
    return dtype


def _torch(operands: Sequence[Any], to_float: bool) -> Any:
    torch = sys.modules["torch"]
    # Arrays decide before tensors without dimensions, and these before numbers, unless what comes
    # later is of a higher kind: bool, integer, float, complex.
    numbers = {
        bool: torch.bool,
        int: torch.int64,
        float: torch.get_default_dtype(),
        complex: torch.complex64,
    }
    groups: list[list[Any]] = [[], [], []]
    for each in operands:
        if isinstance(each, type):
            groups[2].append(numbers[each])
        elif isinstance(each, tuple):
            groups[1].append(each[0])
        else:
            groups[0].append(each)
    found: Any = None
    for group in groups:
        for at, dtype in enumerate(group[1:], 1):
            group[at] = torch.promote_types(group[at - 1], dtype)
        if group and (found is None or _torch_kind(group[-1]) > _torch_kind(found)):
            found = group[-1]
    if to_float and not (found.is_floating_point or found.is_complex):
        found = torch.get_default_dtype()
    return found


def _torch_kind(dtype: Any) -> int:
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return int(dtype != sys.modules["torch"].bool)


def _numpy(operands: Sequence[Any], to_float: bool) -> Any:
    return _ask(sys.modules["numpy"], operands, to_float)


def _cupy(operands: Sequence[Any], to_float: bool) -> Any:
    return _ask(sys.modules["cupy"], operands, to_float)


def _ask(library: Any, operands: Sequence[Any], to_float: bool) -> Any:
    asked = [each(0) if isinstance(each, type) else each for each in operands]
    found = library.result_type(*asked)
    if to_float and found.kind in "biu":
        found = library.result_type(found, library.float16)
    return found


def _jax(operands: Sequence[Any], to_float: bool) -> Any:
    numpy = sys.modules["jax"].numpy
    asked = [each(0) if isinstance(each, type) else each for each in operands]
    return numpy.result_type(*asked, *([float] if to_float else []))


_RULES = {"torch": _torch, "numpy": _numpy, "cupy": _cupy, "jax": _jax}
