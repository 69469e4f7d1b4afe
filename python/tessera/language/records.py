# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compound arguments of kernels: tuples, lists, dataclasses, aggregates, sparse tensors.

A list is a tuple in the kernel. An instance of a dataclass is a named tuple of its fields
there: it has them by name, in order and to be unpacked. Methods that are @jit functions can be called.
"""

from __future__ import annotations

import dataclasses
import sys
import weakref
from operator import itemgetter
from typing import Any, NamedTuple, Optional, Sequence

from tessera.language.aggregate import FIELDS, field_values, fields_of
from tessera.language.sparse import sparse_argument
from tessera.language.types import constexpr

__all__ = [
    "Parts",
    "declaring_class",
    "items_of",
    "parts_of_argument",
    "record_class",
    "record_items",
]


class Parts(NamedTuple):
    """An argument that has parts."""

    items: Sequence[Any]
    """The parts; those that are constants of the kernel are `tl.constexpr`s."""
    cls: Optional[type]
    """The representation of its class in the kernel; None for a plain tuple."""


def parts_of_argument(value: Any) -> Optional[Parts]:
    """The parts of an argument, None for what is passed as it is."""
    if isinstance(value, tuple):
        return Parts(value, type(value) if hasattr(value, "_fields") else None)
    if isinstance(value, list):
        return Parts(value, None)
    if fields_of(value) is not None:
        return Parts(field_values(value), type(value))
    # A dataclass that says where its data are is an array.
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if not any(hasattr(value, name) for name in _OF_ARRAYS):
            return Parts(record_items(value), record_class(type(value)))
    if hasattr(value, "crow_indices") and "torch" in sys.modules:
        sparse = sparse_argument(value)
        if sparse is not None:
            return Parts(field_values(sparse), type(sparse))
    return None


def items_of(value: Any) -> Optional[Sequence[Any]]:
    """The parts alone; None for a number, an array, or a tensor descriptor."""
    if isinstance(value, (tuple, list)):
        return value
    if hasattr(value, "dtype") or hasattr(value, "block_shape"):
        return None
    parts = parts_of_argument(value)
    return None if parts is None else parts.items


_OF_ARRAYS = ("data_ptr", "__array_interface__", "__cuda_array_interface__", "__dlpack__", "base")


_record_classes: "weakref.WeakKeyDictionary[type, type]" = weakref.WeakKeyDictionary()


def record_class(cls: type) -> type:
    """The named tuple that stands for instances of a dataclass, one for each."""
    found = _record_classes.get(cls)
    if found is None:
        # Threads that make one each get the same.
        found = _record_classes.setdefault(cls, _make_record_class(cls))
    return found


def _make_record_class(cls: type) -> type:
    names = tuple(field.name for field in dataclasses.fields(cls))
    members: dict[str, Any] = {
        "_fields": names,
        "__slots__": (),
        "__new__": lambda made, *items: tuple.__new__(made, items),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": f"What a `{cls.__name__}` is in a kernel.",
    }
    # Unlike those of `collections.namedtuple`, names may begin with an underscore.
    members.update((name, property(itemgetter(at))) for at, name in enumerate(names))
    members[_DECLARED_BY] = weakref.ref(cls)  # which would stay alive otherwise
    return type(cls.__name__, (tuple,), members)


_DECLARED_BY = "__tessera_dataclass__"
"""The attribute of a record class with a reference to its dataclass."""


def declaring_class(value: tuple[Any, ...]) -> Optional[type]:
    """The class in which the methods of a named tuple are; None for a plain tuple."""
    if not hasattr(value, "_fields"):
        return None
    declared_by = getattr(type(value), _DECLARED_BY, None)
    return type(value) if declared_by is None else declared_by()


def record_items(value: Any) -> tuple[Any, ...]:
    """The fields of a dataclass's instance, those annotated `tl.constexpr` as constants."""
    return tuple(
        constexpr(getattr(value, name)) if is_constant else getattr(value, name)
        for name, is_constant in record_fields(type(value))
    )


def record_fields(cls: type) -> list[tuple[str, bool]]:
    """The fields of a dataclass or an aggregate, and whether each is wrapped as a constant where it
    is none yet."""
    declared = getattr(cls, FIELDS, None)
    if declared is not None:
        return [(name, False) for name in declared]
    found = []
    for field in dataclasses.fields(cls):
        text = field.type if isinstance(field.type, str) else ""
        found.append(
            (field.name, field.type is constexpr or text.rpartition(".")[2] == "constexpr")
        )
    return found
