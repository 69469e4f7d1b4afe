# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of arguments before a launch, and views of arrays that all array libraries have."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, Callable, Optional, Sequence

from tessera.calls import recording
from tessera.calls.libraries import LIBRARIES
from tessera.calls.outputs import is_dense, library_of, numpy_dtype
from tessera.errors import ArgumentError
from tessera.language import types
from tessera.runtime.arrays import dtype_name, find_dtype
from tessera.wording import shown, with_article

FLOATS = (types.float16, types.bfloat16, types.float32, types.float64)
INTEGERS = (
    types.int8, types.int16, types.int32, types.int64,
    types.uint8, types.uint16, types.uint32, types.uint64,
)  # fmt: skip
INDICES = (types.int32, types.int64)
NUMBERS = (*FLOATS, *INTEGERS)
ELEMENTS = (*NUMBERS, types.int1)
FLOATS_AND_INDICES = (*FLOATS, *INDICES)


def refuse(message: str, fix: str) -> ArgumentError:
    """The error for an argument that an operator does not take."""
    return ArgumentError("E093", message, fix)


def check(condition: bool, message: str, fix: str) -> None:
    """Raises ArgumentError (E093) if `condition` does not hold."""
    if not condition:
        raise refuse(message, fix)


def shape_of(operator: str, name: str, array: Any) -> tuple[int, ...]:
    """The shape of an argument that has to be an array of a known library."""
    if library_of(array) not in LIBRARIES:
        raise refuse(
            f"`{name}` of `{operator}` is {with_article(type(array).__name__)}: {shown(array)}",
            "pass an array of NumPy, torch, CuPy or JAX",
        )
    return tuple(array.shape)


_allowed: dict[tuple[Any, int], Sequence[types.dtype]] = {}
"""Types of libraries with the number of a sequence of ours that has them: a call waits for each comparison."""
_MAX_ALLOWED = 1024


def _is_one_of(dtype: Any, types_of: Sequence[types.dtype]) -> bool:
    key = (dtype, id(types_of))
    if _allowed.get(key) is types_of:
        return True
    if find_dtype(dtype) not in types_of:
        return False
    if len(_allowed) < _MAX_ALLOWED:
        _allowed[key] = types_of
    return True


def check_arrays(operator: str, types_of: Sequence[types.dtype], **arrays: Any) -> str:
    """Checks that arrays are of one library and device, and of these types. None is no array.

    Returns the library. Raises ArgumentError (E093).
    """
    first, library, device = "", "", None
    for name, array in arrays.items():
        if array is None:
            continue
        here = library_of(array)
        if here not in LIBRARIES:
            shape_of(operator, name, array)
        place = array.device if here in ("torch", "cupy") else None
        if not library:
            first, library, device = name, here, place
        elif here != library or place != device:
            raise refuse(
                f"`{name}` of `{operator}` is an array of {here} on {_device(array)}, and `{first}` "
                f"one of {library} on {_device(arrays[first])}",
                "pass arrays of one library and device",
            )
        if here == "torch" and (array.layout is not _strided() or array.is_nested):
            raise refuse(f"`{name}` of `{operator}` is sparse", "pass x.to_dense()")
        if not _is_one_of(array.dtype, types_of):  # a list of types takes as long as a call
            raise refuse(
                f"`{name}` of `{operator}` has elements of {array.dtype}",
                f"convert it to {', '.join(map(dtype_name, types_of))}",
            )
    return library


def _strided() -> Any:
    return sys.modules["torch"].strided


def _device(array: Any) -> Any:
    """The device of an array as an error names it."""
    return array.device if library_of(array) in ("torch", "cupy") else "its device"


_right: set[Any] = set()
"""Kinds of tensors that passed all checks of a function."""
_MAX_RIGHT = 1024


def kind_of(function: str, tensors: Sequence[Any]) -> Any:
    """All of tensors of torch that checks of a function depend on; None for other arrays."""
    kind: list[Any] = [function]
    try:
        strided = _strided()
        for each in tensors:
            layout = each.layout
            kind += (
                each.shape, each.dtype, each.device, layout, each.is_nested,
                layout is strided and each.is_contiguous(),
            )  # fmt: skip
    except (AttributeError, KeyError):  # KeyError: torch is not loaded
        return None
    return tuple(kind)


def is_right(kind: Any) -> bool:
    """True if tensors of this kind passed the checks before. A step of an optimiser waits for these."""
    return kind in _right


def add_right(kind: Any) -> None:
    """Has later tensors of a kind need no check."""
    if kind is not None and len(_right) < _MAX_RIGHT:
        _right.add(kind)


def part_of(operator: str) -> Callable[[Any], Any]:
    """Decorates a private elementwise operator: errors name the operator that calls it."""

    def decorate(op: Any) -> Any:
        op.__name__ = operator
        return op

    return decorate


def check_without_gradient(operator: str, **arrays: Any) -> None:
    """Raises ArgumentError (E094) if one of these tensors requires a gradient."""
    for name, array in arrays.items():
        if getattr(array, "requires_grad", False):
            raise ArgumentError(
                "E094",
                f"`{operator}` has no derivative by `{name}`, which requires a gradient",
                f"pass {name}.detach()",
            )


def dtype_of(array: Any) -> types.dtype:
    """Our type of the elements of an array, which kernels know."""
    found = find_dtype(array.dtype)
    assert found is not None
    return found


def accumulator_of(*dtypes: Optional[types.dtype]) -> types.dtype:
    """The type that floats are summed in: float64 if any is, and float32 otherwise."""
    return types.float64 if types.float64 in dtypes else types.float32


def check_dim(operator: str, array: Any, dim: Any, name: str = "dim") -> int:
    """A dimension, counted from 0. Raises ArgumentError (E093)."""
    rank = max(1, len(shape_of(operator, "input", array)))
    check(
        type(dim) is int and -rank <= dim < rank,
        f"`{operator}` got {name}={shown(dim)} for an array of {rank} dimensions",
        f"pass an integer from {-rank} to {rank - 1}",
    )
    return int(dim) % rank


def check_reduction(operator: str, reduction: Any) -> None:
    """Raises ArgumentError (E093) unless `reduction` is one of torch's three."""
    check(
        reduction in ("none", "mean", "sum"),
        f"`{operator}` got reduction={shown(reduction)}",
        'pass "none", "mean" or "sum"',
    )


def dense(array: Any) -> Any:
    """The array, or a copy whose elements lie in the order of its indices."""
    if array is None or is_dense(array):
        return array
    name = "contiguous" if library_of(array) == "torch" else "copy"
    return recording.apply(operator.methodcaller(name), array, lambda grad: grad)


def converted(array: Any, dtype: types.dtype) -> Any:
    """The array with elements of a type."""
    library = library_of(array)
    if dtype_of(array) == dtype:
        return array
    if library == "torch":
        import torch

        was, wanted = dtype_of(array), getattr(torch, dtype_name(dtype))
        return recording.apply(
            operator.methodcaller("to", wanted), array, lambda grad: converted(grad, was)
        )
    return recording.apply(operator.methodcaller("astype", numpy_dtype(dtype, "out")), array)


def split_in_two(operator: str, array: Any, dim: int) -> tuple[Any, Any]:
    """Views of the halves of an array along a dimension. Raises ArgumentError (E093)."""
    shape = shape_of(operator, "input", array)
    check(
        len(shape) > 0 and shape[dim] % 2 == 0,
        f"`input` of `{operator}` has shape {shape}, and dimension {dim} is divided into halves",
        "pass an array whose extent there is even",
    )
    if library_of(array) == "torch":
        # Its gradient is one concatenation. Slices have a sum of two arrays with zeros.
        first, second = array.chunk(2, dim) if shape[dim] else (array, array)
        return first, second
    before, half = (slice(None),) * dim, shape[dim] // 2
    first, second = (*before, slice(0, half)), (*before, slice(half, None))
    return array[first], array[second]


def as_tuple(value: Any) -> tuple[int, ...]:
    """An integer or a sequence of integers as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def read_number(array: Any) -> Any:
    """The number in an array of one element. A call that depends on it is not recorded."""
    if recording.current() is not None:
        raise recording.NotRecorded
    return array.item()


def count_of(shape: Sequence[int]) -> int:
    """The number of elements."""
    return math.prod(shape)
