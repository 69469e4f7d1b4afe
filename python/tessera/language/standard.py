# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are written in the language itself.

Each is compiled like a helper function of your own: where it is called, with its `if`s on types
and shapes decided there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, Union, cast, overload

import tessera.language.creation as creation
import tessera.language.math as math
import tessera.language.atomics as atomics
import tessera.language.memory as memory
import tessera.language.program as program
import tessera.language.reduction as reduction
import tessera.language.shape as shape
import tessera.language.target_info as target_info
import tessera.language.types as types
from tessera.language.callables import JITCallable, constexpr_function
from tessera.language.debug import require
from tessera.language.tensor import F, N, Operand, add_methods, tensor
from tessera.language.types import dtype as _dtype

if TYPE_CHECKING:
    constexpr = Any  # to a type checker, a constant may be anything
else:
    from tessera.language.types import constexpr

__all__ = [
    "argmax",
    "argmin",
    "atomic_poll",
    "cdiv",
    "cumprod",
    "cumsum",
    "flip",
    "interleave",
    "max",
    "min",
    "ravel",
    "reduce_or",
    "sigmoid",
    "softmax",
    "squeeze",
    "sum",
    "swizzle2d",
    "unsqueeze",
    "xor_sum",
    "zeros",
    "zeros_like",
]


def library(fn: F) -> F:
    """Marks a function as compiled from its source, as @jit does."""
    return cast(F, JITCallable(cast(Any, fn)))


@constexpr_function
def _log2(i: int) -> int:
    """How often a power of two is divided by 2 until it is 1. Source: Triton language 3.6/3.9."""
    return int(i).bit_length() - 1


@library
def zeros(shape: Union[int, Sequence[int]], dtype: Union[_dtype, str]) -> tensor:
    """A tile of zeros: `full(shape, 0, dtype)`. Source: Triton language 3.6/3.9.

    Example:
        acc = tl.zeros((4, 8), tl.float32)
        for k in range(3):
            acc += k
        assert acc == 3.0
    """
    return creation.full(shape, 0, dtype)


@library
def zeros_like(input: tensor) -> tensor:
    """Zeros of the shape and dtype of `input`. Source: Triton language 3.6/3.9.

    Example:
        x = tl.full((4, 8), 1.5, tl.float16)
        y = tl.zeros_like(x)
        assert y.shape == (4, 8) and y.dtype == tl.float16
        assert x + y == x
    """
    if len(input.shape) == 0:
        return creation.cast(creation.to_tensor(0), input.dtype)
    return creation.full(input.shape, 0, input.dtype)


@library
def cdiv(x: N, div: Operand) -> N:
    """`(x + div - 1) // div`: how many pieces of size `div` it takes to cover x, for x >= 0.

    Constants give a constant. Source: Triton language 3.6/3.9.

    Example:
        n = tl.num_programs(0) * 1000
        assert tl.cdiv(n, 256) == 4  # tiles of 256 elements that cover n
        assert tl.cdiv(1024, 256) == 4  # a constant
    """
    return (x + (div - 1)) // div  # type: ignore[operator,return-value]


@library
def _widened_float(x: tensor) -> tensor:
    """`x` in the type that functions of floats are computed in."""
    return creation.cast(x, creation.acc_type(x)) if x.dtype.is_floating() else x


@library
def sigmoid(x: tensor) -> tensor:
    """`1 / (1 + exp(-x))` of floats; the result has the shape and type of `x`.

    Floats of less than 32 bits are computed in float32, and the result is rounded.
    Errors: E030 (no floats). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) - 3.5
        silu = x * tl.sigmoid(x)
        assert tl.sigmoid(0.0) == 0.5
        assert tl.abs(tl.sigmoid(x) + tl.sigmoid(-x) - 1) < 1e-6
    """
    x = creation.to_tensor(x)
    wide = _widened_float(x)
    return creation.cast(1 / (1 + math.exp(-wide)), x.dtype)


@library
def softmax(
    x: tensor,
    dim: Optional[int] = None,
    keep_dims: Optional[bool] = None,
    ieee_rounding: bool = False,
) -> tensor:
    """`exp(x) / sum(exp(x))` along `dim` (0 if left out), without overflow; shape and type are kept.

    Floats of less than 32 bits are computed in float32, and the result is rounded.
    `keep_dims` is without effect. Errors: E030 (no floats). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8)[None, :] + tl.full((4, 1), 1000.0, tl.float32)  # no overflow
        p = tl.softmax(x, dim=1)
        assert p.shape == (4, 8)
        assert tl.abs(tl.sum(p, axis=1) - 1) < 1e-6
    """
    axis: constexpr = 0 if dim is None else dim
    wide = _widened_float(x)
    exponentials = math.exp(wide - max(wide, axis, keep_dims=True))
    result = math.fdiv(exponentials, sum(exponentials, axis, keep_dims=True), ieee_rounding)
    return creation.cast(result, x.dtype)


@library
def ravel(x: tensor, can_reorder: bool = False) -> tensor:
    """The elements of `x` as a tile of rank 1. Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]  # [4, 8]
        assert tl.ravel(x) == tl.arange(0, 32)
    """
    return shape.reshape(x, [x.numel])


@library
def squeeze(x: tensor, dim: constexpr) -> tensor:
    """`x` without its dimension `dim`, which has extent 1. Source: Triton language 3.9.

    Example:
        x = tl.zeros((4, 1, 8), tl.float32)
        assert tl.squeeze(x, 1).shape == (4, 8)
    """
    rank: constexpr = len(x.shape)
    require(-rank <= dim < rank, "E023", f"dim is {dim} for rank {rank}", "name a dimension")
    axis: constexpr = dim + rank if dim < 0 else dim
    require(
        x.shape[axis] == 1,
        "E023",
        f"dimension {dim} of {x.shape} has another extent than 1",
        "squeeze a dimension of extent 1, or use reshape",
    )
    return shape.reshape(x, x.shape[:axis] + x.shape[axis + 1 :])


@library
def unsqueeze(x: tensor, dim: constexpr) -> tensor:
    """`x` with a dimension of extent 1 inserted at `dim`. Source: Triton language 3.9.

    Example:
        x = tl.arange(0, 8)
        assert tl.unsqueeze(x, 0).shape == (1, 8)
        assert tl.unsqueeze(x, -1).shape == (8, 1)
    """
    return shape.expand_dims(x, dim)


@library
def interleave(a: tensor, b: tensor) -> tensor:
    """The elements of `a` and `b`, alternating along the last dimension.

    Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 4)
        assert tl.interleave(2 * i, 2 * i + 1) == tl.arange(0, 8)
        rows = tl.zeros((2, 4), tl.float32)
        assert tl.interleave(rows, rows).shape == (2, 8)
    """
    pairs = shape.join(a, b)
    if len(pairs.shape) == 1:
        return pairs
    return shape.reshape(pairs, pairs.shape[:-2] + (2 * pairs.shape[-2],))


@library
def flip(x: tensor, dim: Optional[int] = None) -> tensor:
    """`x` in reversed order along `dim` (the last dimension if left out).

    Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8)
        assert tl.flip(x) == 7 - x
        rows = tl.reshape(x, (2, 4))  # 0 1 2 3, 4 5 6 7
        assert tl.flip(rows, dim=0) == (rows + 4) % 8  # 4 5 6 7, 0 1 2 3
    """
    rank: constexpr = len(x.shape)
    axis: constexpr = rank - 1 if dim is None else (dim + rank if dim < 0 else dim)
    require(0 <= axis < rank, "E023", f"dim is {dim} for rank {rank}", "name a dimension")
    extent: constexpr = x.shape[axis]
    index = (extent - 1) - creation.arange(0, extent)
    for d in program.static_range(rank):
        if d < axis:
            index = shape.expand_dims(index, 0)
        elif d > axis:
            index = shape.expand_dims(index, d)
    return shape.gather(x, shape.broadcast_to(index, x.shape), axis)


@library
def swizzle2d(
    i: Operand, j: Operand, size_i: Operand, size_j: Operand, size_g: Operand
) -> tuple[tensor, tensor]:
    """The (i, j) to compute instead, so that a size_i x size_j grid is done in groups of size_g rows.

    Within a group the order is column by column. Programs that run at the same time then share
    more of what they load.
    Source: Triton language 3.6/3.9.

    Example:
        # 4 x 4 tiles in groups of 2 rows: (0, 0) (1, 0) (0, 1) (1, 1) (0, 2) ...
        i, j = tl.swizzle2d(0, 1, 4, 4, 2)
        assert i == 1 and j == 0
        i, j = tl.swizzle2d(0, 2, 4, 4, 2)
        assert i == 0 and j == 1
    """
    linear = i * size_j + j
    per_group = size_g * size_j
    group = linear // per_group
    first_row = group * size_g
    rows = math.minimum(size_i - first_row, size_g)
    within = linear % per_group
    return first_row + within % rows, within // rows


@library
def atomic_poll(
    pointer: tensor,
    expected_value: Operand,
    sem: Optional[str] = None,
    scope: Optional[str] = None,
    timeout_ns: Optional[Operand] = None,
) -> tensor:
    """Waits until memory holds `expected_value`; returns true (int1) in the shape of `pointer`.

    Each element is read by an atomic load, at least once, until it is equal. `sem` is "acquire"
    (default) or "relaxed", and `scope` is as in `atomic_load`. Pointees are integers of 16, 32 or
    64 bits. `timeout_ns` (0 or more) limits the time for all elements together; an element that
    is not equal by then gives false. Errors: E028, E044, E047.
    Source: Triton language 3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def pass_on(data_ptr, flag_ptr, out_ptr):
            if tl.program_id(0) == 0:
                tl.store(data_ptr, 42)
                tl.atomic_store(flag_ptr, 1)
            elif tl.atomic_poll(flag_ptr, 1, timeout_ns=10_000_000_000):
                tl.store(out_ptr, tl.load(data_ptr))

        data, flag, out = (np.zeros(1, np.int32) for _ in range(3))
        pass_on[(2,)](data, flag, out)
        assert out[0] == 42
    """
    wanted = creation.cast(expected_value, memory.polled_type(pointer, expected_value, timeout_ns))
    found = atomics.atomic_load(pointer, sem=sem, scope=scope) == wanted
    if timeout_ns is None:
        if len(pointer.shape) == 0:
            while not found:
                found = atomics.atomic_load(pointer, sem=sem, scope=scope) == wanted
        else:
            while min(creation.cast(found, types.int32)) == 0:
                again = atomics.atomic_load(pointer, mask=~found, sem=sem, scope=scope)
                found = found | (again == wanted)
    else:
        start = program.clock_ns()
        budget = creation.cast(timeout_ns, types.int64)
        if len(pointer.shape) == 0:
            while (not found) and program.clock_ns() - start < budget:
                found = atomics.atomic_load(pointer, sem=sem, scope=scope) == wanted
        else:
            while (min(creation.cast(found, types.int32)) == 0) & (
                program.clock_ns() - start < budget
            ):
                again = atomics.atomic_load(pointer, mask=~found, sem=sem, scope=scope)
                found = found | (again == wanted)
    return found


# --- Reductions -------------------------------------------------------------------


@library
def _add(a: tensor, b: tensor) -> tensor:
    return a + b


@library
def _multiply(a: tensor, b: tensor) -> tensor:
    return a * b


@library
def _xor(a: tensor, b: tensor) -> tensor:
    return a ^ b


@library
def _or(a: tensor, b: tensor) -> tensor:
    return a | b


@library
def _maximum(a: tensor, b: tensor) -> tensor:
    return math.maximum(a, b)


@library
def _minimum(a: tensor, b: tensor) -> tensor:
    return math.minimum(a, b)


@library
def _widened(x: tensor, dtype: constexpr) -> tensor:
    """The type of sums and products: `dtype`, or at least 32 bits for integers."""
    if dtype is not None:
        return creation.cast(x, dtype)
    elif x.dtype.is_int_signed() and x.dtype.int_bitwidth < 32:
        return creation.cast(x, types.int32)
    elif x.dtype.is_int_unsigned() and x.dtype.int_bitwidth < 32:
        # A sum of booleans counts, so it is signed like other counts.
        if x.dtype.is_bool():
            return creation.cast(x, types.int32)
        else:
            return creation.cast(x, types.uint32)
    else:
        return x


@library
def _widened_to_compare(x: tensor) -> tensor:
    """The type of min and max without indices: at least 32 bits."""
    if x.dtype.is_floating():
        if x.dtype.primitive_bitwidth < 32:
            return creation.cast(x, types.float32)
        else:
            return x
    elif x.dtype.primitive_bitwidth < 32:
        return creation.cast(x, types.int32)
    else:
        return x


@library
def sum(
    input: tensor, axis: Optional[int] = None, keep_dims: bool = False, dtype: constexpr = None
) -> tensor:
    """The sum along `axis`, or of all elements if it is None.

    Integers of less than 32 bits are summed in 32 bits; floats keep their type. `dtype` names
    another type to sum in. Errors: E024.
    Source: Triton language 3.6/3.9.

    Example:
        x = tl.full((4, 8), 100, tl.int8)
        assert tl.sum(x) == 3200  # in int32
        assert tl.sum(x, axis=1).shape == (4,)
        assert tl.sum(x, axis=0, dtype=tl.float32).dtype == tl.float32
    """
    input = creation.to_tensor(input)
    return reduction.reduce(_widened(input, dtype), axis, _add, keep_dims=keep_dims)


@library
def xor_sum(input: tensor, axis: Optional[int] = None, keep_dims: bool = False) -> tensor:
    """The exclusive or of integers along `axis`. Errors: E024.

    Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8)
        assert tl.xor_sum(x) == 0
        assert tl.xor_sum(tl.reshape(x, (4, 2)), axis=1) == 1  # 0 ^ 1, 2 ^ 3, ...
    """
    input = creation.to_tensor(input)
    require(input.dtype.is_int(), "E030", f"xor_sum of {input.dtype}", "cast to an integer")
    return reduction.reduce(input, axis, _xor, keep_dims=keep_dims)


@library
def reduce_or(input: tensor, axis: Optional[int], keep_dims: bool = False) -> tensor:
    """The bitwise or of integers along `axis` (of all if None). Errors: E024.

    Source: Triton language 3.6/3.9.

    Example:
        flags = 1 << (tl.arange(0, 8) % 3)
        assert tl.reduce_or(flags, axis=0) == 0b111
        rows = tl.reshape(flags, (4, 2))  # 1 2, 4 1, 2 4, 1 2
        assert tl.sum(tl.reduce_or(rows, axis=1)) == 3 + 5 + 6 + 3
    """
    input = creation.to_tensor(input)
    require(input.dtype.is_int(), "E030", f"reduce_or of {input.dtype}", "cast to an integer")
    return reduction.reduce(input, axis, _or, keep_dims=keep_dims)


@library
def _first_maximum(
    value1: tensor, index1: tensor, value2: tensor, index2: tensor
) -> tuple[tensor, tensor]:
    # A NaN loses against any number, and of two equal values the first wins. As a CPU goes along a
    # row, it knows which index is lower. Then take2 is `better`: a comparison under a mask.
    better = (value2 == value2) & ~(value1 >= value2)
    not_worse = (value2 >= value1) | (value1 != value1)
    take2 = better | (not_worse & (index2 < index1))
    return math.where(take2, value2, value1), math.where(take2, index2, index1)


@library
def _any_maximum(
    value1: tensor, index1: tensor, value2: tensor, index2: tensor
) -> tuple[tensor, tensor]:
    take1 = (value1 > value2) | ((value1 == value1) & (value2 != value2))
    return math.where(take1, value1, value2), math.where(take1, index1, index2)


@library
def _first_minimum(
    value1: tensor, index1: tensor, value2: tensor, index2: tensor
) -> tuple[tensor, tensor]:
    better = (value2 == value2) & ~(value1 <= value2)
    not_worse = (value2 <= value1) | (value1 != value1)
    take2 = better | (not_worse & (index2 < index1))
    return math.where(take2, value2, value1), math.where(take2, index2, index1)


@library
def _any_minimum(
    value1: tensor, index1: tensor, value2: tensor, index2: tensor
) -> tuple[tensor, tensor]:
    take1 = (value1 < value2) | ((value1 == value1) & (value2 != value2))
    return math.where(take1, value1, value2), math.where(take1, index1, index2)


@library
def _indices_along(input: tensor, axis: Any) -> tensor:
    """The index along `axis` of each element of `input`, as int32."""
    rank: constexpr = len(input.shape)
    require(-rank <= axis < rank, "E024", f"axis is {axis} for rank {rank}", "name a dimension")
    dim: constexpr = axis + rank if axis < 0 else axis
    index = creation.arange(0, input.shape[dim])
    for d in program.static_range(rank):
        if d < dim:
            index = shape.expand_dims(index, 0)
        elif d > dim:
            index = shape.expand_dims(index, d)
    return shape.broadcast_to(index, input.shape)


@library
def _first_equal(input: tensor, wanted: tensor, axis: int, keep_dims: bool) -> tensor:
    """The first index along `axis` of an element equal to `wanted`; 0 if there is none.

    If all are NaN, none is equal to the extreme.
    """
    none: constexpr = 0x7FFFFFFF
    index = math.where(input == wanted, _indices_along(input, axis), none)
    first = min(index, axis, keep_dims=keep_dims)
    return math.where(first == none, 0, first)


@constexpr_function
def _goes_once(shape: Any, axis: int) -> bool:
    """True if a CPU finds the extreme and its place at once, and not one after the other.

    Once takes fewer operations an element, and more to fold the lanes of a short line. Lines along
    another dimension than the last are in lanes of their own.
    """
    is_last = axis % len(shape) == len(shape) - 1
    return not target_info.is_cuda() and (not is_last or shape[axis] >= 256)


@overload
def max(
    input: tensor,
    axis: Optional[int] = None,
    return_indices: Literal[False] = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> tensor: ...
@overload
def max(
    input: tensor,
    axis: Optional[int] = None,
    *,
    return_indices: Literal[True],
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> tuple[tensor, tensor]: ...
@library
def max(
    input: tensor,
    axis: Optional[int] = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The largest element along `axis`, or of all if it is None; a NaN only where all are NaN.

    Values of less than 32 bits are returned as float32 or int32. With `return_indices` the
    values keep their type, and their int32 indices along `axis` are returned as well: of equal
    elements the first one, if `return_indices_tie_break_left`. Errors: E024.
    Source: Triton language 3.9.

    Example:
        x = tl.arange(0, 8) % 5  # 0 1 2 3 4 0 1 2
        assert tl.max(x) == 4
        value, index = tl.max(x, axis=0, return_indices=True)
        assert value == 4 and index == 4
        rows = tl.reshape(x, (2, 4))
        assert tl.max(rows, axis=1, keep_dims=True).shape == (2, 1)
    """
    input = creation.to_tensor(input)
    if return_indices:
        require(axis is not None, "E024", "indices need an axis", "pass axis=0, say")
        if return_indices_tie_break_left:
            return reduction.reduce(
                (input, _indices_along(input, axis)), axis, _first_maximum, keep_dims=keep_dims
            )
        else:
            return reduction.reduce(
                (input, _indices_along(input, axis)), axis, _any_maximum, keep_dims=keep_dims
            )
    else:
        return reduction.reduce(_widened_to_compare(input), axis, _maximum, keep_dims=keep_dims)


@overload
def min(
    input: tensor,
    axis: Optional[int] = None,
    return_indices: Literal[False] = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> tensor: ...
@overload
def min(
    input: tensor,
    axis: Optional[int] = None,
    *,
    return_indices: Literal[True],
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> tuple[tensor, tensor]: ...
@library
def min(
    input: tensor,
    axis: Optional[int] = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The smallest element along `axis` (of all if None): as `max`.

    Errors: E024. Source: Triton language 3.9.

    Example:
        x = tl.abs(tl.arange(0, 8) - 5)  # 5 4 3 2 1 0 1 2
        assert tl.min(x) == 0
        value, index = tl.min(x, axis=0, return_indices=True)
        assert value == 0 and index == 5
    """
    input = creation.to_tensor(input)
    if return_indices:
        require(axis is not None, "E024", "indices need an axis", "pass axis=0, say")
        if return_indices_tie_break_left:
            return reduction.reduce(
                (input, _indices_along(input, axis)), axis, _first_minimum, keep_dims=keep_dims
            )
        else:
            return reduction.reduce(
                (input, _indices_along(input, axis)), axis, _any_minimum, keep_dims=keep_dims
            )
    else:
        return reduction.reduce(_widened_to_compare(input), axis, _minimum, keep_dims=keep_dims)


@library
def argmax(
    input: tensor, axis: Optional[int], tie_break_left: bool = True, keep_dims: bool = False
) -> tensor:
    """The int32 index along `axis` of the largest element: the index of `max`.

    Errors: E024. Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) % 4  # 0 1 2 3 0 1 2 3
        assert tl.argmax(x, axis=0) == 3  # the first of two
        rows = tl.reshape(x, (2, 4))
        assert tl.argmax(rows, axis=1, keep_dims=True).shape == (2, 1)
    """
    input = creation.to_tensor(input)
    if axis is not None and input.dtype.is_floating():
        input = _widened_to_compare(input)
        if not _goes_once(input.shape, axis):
            return _first_equal(input, max(input, axis, keep_dims=True), axis, keep_dims)
    _, index = max(
        input,
        axis,
        return_indices=True,
        return_indices_tie_break_left=tie_break_left,
        keep_dims=keep_dims,
    )
    return index


@library
def argmin(
    input: tensor, axis: Optional[int], tie_break_left: bool = True, keep_dims: bool = False
) -> tensor:
    """The int32 index along `axis` of the smallest element: the index of `min`.

    Errors: E024. Source: Triton language 3.6/3.9.

    Example:
        x = tl.abs(tl.arange(0, 8) - 5)  # 5 4 3 2 1 0 1 2
        assert tl.argmin(x, axis=0) == 5
        rows = tl.reshape(x, (2, 4))
        assert tl.sum(tl.argmin(rows, axis=1)) == 3 + 1
    """
    input = creation.to_tensor(input)
    if axis is not None and input.dtype.is_floating():
        input = _widened_to_compare(input)
        if not _goes_once(input.shape, axis):
            return _first_equal(input, min(input, axis, keep_dims=True), axis, keep_dims)
    _, index = min(
        input,
        axis,
        return_indices=True,
        return_indices_tie_break_left=tie_break_left,
        keep_dims=keep_dims,
    )
    return index


@library
def _widened_to_scan(x: tensor, dtype: constexpr) -> tensor:
    """The type of running sums and products: `dtype`, or at least 32 bits."""
    if dtype is not None:
        return creation.cast(x, dtype)
    elif x.dtype.is_floating() and x.dtype.primitive_bitwidth == 16:
        return creation.cast(x, types.float32)
    else:
        return _widened(x, dtype)


@library
def cumsum(input: tensor, axis: int = 0, reverse: bool = False, dtype: constexpr = None) -> tensor:
    """The cumulative sums along `axis`; with `reverse` from the end.

    Integers of less than 32 bits are summed in 32 bits, and float16 and bfloat16 in float32.
    `dtype` names another type to sum in. Errors: E024. Source: Triton language 3.6; float16 in float32 is ours.

    Example:
        keep = tl.arange(0, 8) % 3 == 0  # 1 0 0 1 0 0 1 0
        place = tl.cumsum(keep, axis=0) - 1  # where each kept element goes: 0 0 0 1 1 1 2 2
        assert tl.max(place) == 2
        after = tl.cumsum(keep, axis=0, reverse=True)  # 3 2 2 2 1 1 1 0
        assert tl.sum(after) == 12
    """
    input = creation.to_tensor(input)
    return reduction.associative_scan(_widened_to_scan(input, dtype), axis, _add, reverse)


@library
def cumprod(input: tensor, axis: int = 0, reverse: bool = False, dtype: constexpr = None) -> tensor:
    """The cumulative products along `axis`; with `reverse` from the end.

    Integers of less than 32 bits are multiplied in 32 bits, and float16 and bfloat16 in float32.
    `dtype` names another type to multiply in. Errors: E024. Source: Triton language 3.6; float16 in float32, and
    `dtype`, are ours.

    Example:
        x = tl.full((8,), 2, tl.int8)
        assert tl.cumprod(x) == 2 << tl.arange(0, 8)  # 2 4 ... 256, in int32
        rows = tl.full((2, 4), 0.5, tl.float32)
        assert tl.min(tl.cumprod(rows, axis=1)) == 0.0625
    """
    input = creation.to_tensor(input)
    return reduction.associative_scan(_widened_to_scan(input, dtype), axis, _multiply, reverse)


add_methods(
    [sigmoid, softmax, ravel, flip, cdiv, atomic_poll]
    + [sum, xor_sum, reduce_or, max, min, argmax, argmin, cumsum, cumprod]
)
