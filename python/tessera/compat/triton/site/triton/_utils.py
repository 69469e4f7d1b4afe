# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nested tuples by paths of indices, and the short names of element types."""

from __future__ import annotations

from functools import reduce
from typing import Any, Callable

from tessera.language import TRITON_MAX_TENSOR_NUMEL, str_to_ty
from tessera.language.types import short_name
from tessera.runtime.arrays import to_dtype

__all__ = [
    "TRITON_MAX_TENSOR_NUMEL",
    "canonicalize_dtype",
    "find_paths_if",
    "get_iterable_path",
    "get_primitive_bitwidth",
    "is_namedtuple",
    "is_power_of_two",
    "type_canonicalisation_dict",
]

_NAMES = [
    "void",
    "int1",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16", "fp16", "bf16", "fp32", "fp64"),
]
_SHORT = {name: short_name(str_to_ty(name)) for name in _NAMES}
"""The name of an element type in signatures, by its name in messages."""

type_canonicalisation_dict: dict[str, str] = {
    **_SHORT,
    **{short: short for short in _SHORT.values()},
    **{
        name: _SHORT[to_dtype(name).name]
        for name in (
            "bool",
            "float16",
            "bfloat16",
            "float32",
            "float64",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
        )
    },
    **{"float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8e4b15": "fp8e4b15"},
    **{"float8e4b8": "fp8e4b8", "float8e5b16": "fp8e5b16", "uint1": "u1", "i1": "u1"},
    **{"half": "fp16", "float": "fp32", "double": "fp64", "int": "i32"},
}


def canonicalize_dtype(dtype: Any) -> str:
    """The short name of an element type: "fp32" for `torch.float32`."""
    return type_canonicalisation_dict[str(dtype).rpartition(".")[2]]


def get_primitive_bitwidth(dtype: str) -> int:
    """How many bits an element has."""
    short = type_canonicalisation_dict[dtype]
    name = next(name for name, other in _SHORT.items() if other == short)
    return str_to_ty(name).primitive_bitwidth


def get_iterable_path(iterable: Any, path: tuple[int, ...]) -> Any:
    """The item at a path of indices: `iterable[path[0]][path[1]]...`."""
    return reduce(lambda at, index: at[index], path, iterable)


def find_paths_if(
    iterable: Any, pred: Callable[[tuple[int, ...], Any], bool]
) -> list[tuple[int, ...]]:
    """The paths of all that is no list or tuple and of which `pred(path, value)` holds."""
    found: list[tuple[int, ...]] = []

    def visit(path: tuple[int, ...], value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                visit((*path, index), item)
        elif pred(path, value):
            found.append(path)

    visit((), iterable)
    return found


def is_power_of_two(x: int) -> bool:
    """True if no two bits of `x` are set."""
    return x & (x - 1) == 0


def is_namedtuple(val: Any) -> bool:
    """True if `val` is a class of named tuples."""
    return isinstance(val, type) and issubclass(val, tuple) and hasattr(val, "_fields")
