# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory behind arrays, for launches that check accesses.

A kernel may legally access the memory around an array that is a view, such as a row of a matrix. So
the whole allocation counts, if its owner reports it.
"""

from __future__ import annotations

import math
from typing import Any, Iterable, Iterator, Optional, Sequence

from tessera.language.records import parts_of_argument
from tessera.runtime.arrays import DLPACK_CPU_DEVICES, MockTensor, TensorWrapper
from tessera.runtime.specialize import PointerSlot

Memory = tuple[int, int, str]
"""First byte, the byte after the last one, and the parameter's name."""


def memory_of_slots(
    count: int, pointers: Iterable[PointerSlot], values: Iterable[Any], *, owned: bool = False
) -> list[Optional[Memory]]:
    """For each of `count` slots of arguments the memory behind it, None where that is unknown.

    `values` are the arguments, among them the arrays that `pointers` are the addresses of. If
    `owned`, memory that may be a part of a larger allocation counts as unknown.
    """
    known: dict[int, tuple[int, int]] = {}
    for value in arrays_in(values):
        found = _allocation(value)
        if found is not None:
            address, begin, end, is_owned = found
            if is_owned or not owned:
                known[address] = (begin, end)
    result: list[Optional[Memory]] = [None] * count
    for item in pointers:
        extent = known.get(item.pointer.address)
        if extent is not None:
            result[item.slot] = (*extent, item.name)
    return result


def sizes_of_slots(count: int, pointers: Iterable[PointerSlot], values: Iterable[Any]) -> list[int]:
    """For each of `count` slots of arguments the bytes of the array that it points to, -1 where
    there is none or its size is unknown. Arrays and `pointers` have the same order."""
    result = [-1] * count
    for item, value in zip(pointers, filter(_is_array, arrays_in(values))):
        size = getattr(value, "nbytes", None)
        if isinstance(size, int):
            result[item.slot] = size
        elif isinstance(value, MockTensor):
            result[item.slot] = math.prod(value.shape) * value.dtype.primitive_bitwidth // 8
    return result


def _is_array(value: Any) -> bool:
    return isinstance(value, MockTensor) or hasattr(value, "dtype") and hasattr(value, "shape")


def arrays_in(values: Iterable[Any]) -> Iterator[Any]:
    """The arrays in tuples, tensor descriptors and wrappers."""
    for value in values:
        parts = parts_of_argument(value)
        if isinstance(value, TensorWrapper):
            yield from arrays_in((value.base,))
        elif hasattr(value, "block_shape") and hasattr(value, "base"):
            yield from arrays_in((value.base,))
        elif parts is not None:
            yield from arrays_in(parts.items)
        else:
            yield value


def _allocation(value: Any) -> Optional[tuple[int, int, int, bool]]:
    """The address of an array, where the memory that it is a view of begins and ends, and whether
    that is a whole allocation for certain."""
    storage = getattr(value, "untyped_storage", None)
    if callable(storage):  # torch
        try:
            whole = storage()
            begin = whole.data_ptr()
            # Storage that torch has not allocated, as that of `from_numpy`, cannot be resized.
            return value.data_ptr(), begin, begin + whole.nbytes(), whole.resizable()
        except (NotImplementedError, RuntimeError):  # a tensor of tensors
            return None
    interface = getattr(value, "__array_interface__", None)
    if interface is not None and hasattr(value, "strides"):  # NumPy
        address = interface["data"][0]
        root = value
        while type(getattr(root, "base", None)).__module__.partition(".")[0] == "numpy":
            root = root.base
        begin = root.__array_interface__["data"][0]
        span = _span(begin, root.shape, root.strides, root.itemsize)
        flags = getattr(root, "flags", None)
        return (address, *span, bool(getattr(flags, "owndata", False)))
    if hasattr(value, "__dlpack__") and not hasattr(value, "data_ptr"):
        try:
            import numpy

            # An exporter on a GPU might copy its array for NumPy.
            if value.__dlpack_device__()[0] not in DLPACK_CPU_DEVICES:
                return None
            found = _allocation(numpy.from_dlpack(value))
            return None if found is None else (*found[:3], False)
        except (BufferError, ImportError, RuntimeError, TypeError):
            return None
    return None


def _span(
    address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int
) -> tuple[int, int]:
    """The first byte of the elements of a strided array, and the byte after the last one."""
    if 0 in shape:
        return address, address
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides)]
    begin = address + sum(min(0, step) for step in reach)
    return begin, address + sum(max(0, step) for step in reach) + itemsize
