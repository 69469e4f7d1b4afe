# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that make tensors out of constants, and casts."""

from __future__ import annotations

from typing import Optional, Sequence, Union

from tessera.errors import UserMistake
from tessera.language import types
from tessera.language.arguments import constant_bool, constant_int, constant_ints, element_type
from tessera.language.tensor import (
    Operand,
    builtin,
    describe,
    emit_one,
    method,
    tensor,
    to_tensor_value,
)
from tessera.language.types import dtype as _dtype, unwrap

__all__ = [
    "acc_type",
    "arange",
    "cast",
    "full",
    "item",
    "to_tensor",
]


@builtin
def acc_type(x: Union[Operand, _dtype, str]) -> _dtype:
    """The type in which many values of the type of `x` are added up or multiplied.

    `x` is a tensor, a number, a pointer (its elements count), or a dtype. Floats of less than 32
    bits give float32, and other floats their own type. Integers of less than 32 bits give int32,
    or uint32 if they are unsigned; wider ones give their own type, and int1 gives int32.
    With it, one kernel text serves all types. Errors: E034. Ours.

    Example:
        x = tl.full((4, 8), 0.5, tl.float16)
        total = tl.zeros((4,), tl.acc_type(x))
        total += tl.sum(x.to(tl.acc_type(x)), axis=1)
        assert total == 4.0
        assert total.dtype == tl.float32 and tl.acc_type(tl.float64) == tl.float64
    """
    x = unwrap(x)
    if isinstance(x, (_dtype, str)):
        element = element_type(x)
    else:
        element = to_tensor_value(x).dtype
    if isinstance(element, types.pointer_type):
        element = element.element_ty.scalar
    if element.is_bool():
        return types.int32
    if element.primitive_bitwidth >= 32:
        return element
    if element.is_floating():
        return types.float32
    return types.uint32 if element.is_int_unsigned() else types.int32


@builtin
def arange(start: int, end: int) -> tensor:
    """The integers start, start + 1, ..., end - 1, as an int32 tile.

    Both bounds are constants. `end - start` must be an extent that tiles may have: a power of two,
    or `odd * 2**k` with odd <= 31 and k >= 3. Errors: E018 (extent), E019 (a bound is not a
    constant), E020 (empty, or too long). Source: Triton language 3.6/3.9; extents that are no power
    of two are ours.

    Example:
        i = tl.arange(0, 8)
        assert tl.sum(i) == 28
        offsets = tl.arange(0, 4)[:, None] * 64 + tl.arange(0, 64)[None, :]
        assert offsets.shape == (4, 64)  # of 4 rows that have 64 elements each
        assert tl.max(offsets) == 255
    """
    return emit_one(
        "arange", constant_int(start, "the start of arange"), constant_int(end, "the end of arange")
    )


@builtin
def full(shape: Union[int, Sequence[int]], value: Operand, dtype: Union[_dtype, str]) -> tensor:
    """A tile of one value.

    `shape` is a tuple of constants, `value` a number or a scalar tensor, `dtype` the type
    of an element; a float without a fraction, like 0.0, does for an integer. Errors: E018
    (extent), E021 (too many elements), E028 (the value does not fit), E034 (no dtype).
    Source: Triton language 3.6/3.9.

    Example:
        x = tl.full((4, 8), -1.5, tl.float32)
        assert x.shape == (4, 8) and x.dtype == tl.float32
        pid = tl.full((8,), tl.program_id(0), tl.int64)  # a scalar in all elements
        assert tl.sum(x) + tl.sum(pid) == -48.0
    """
    value = unwrap(value)
    if isinstance(value, tensor) and value._constant is not None:
        value = value._constant
    element = element_type(dtype)
    if isinstance(value, float) and value.is_integer() and element.is_int():
        value = int(value)
    return emit_one("full", constant_ints(shape, "the shape"), value, element)


@builtin
def to_tensor(x: Operand) -> tensor:
    """A number as a scalar tensor; tensors stay as they are.

    bool: int1; int: the first of int32, uint32, int64, uint64 that holds it; float: float32,
    or float64 where it is out of range or subnormal. Source: Triton language 3.9.

    Example:
        assert tl.to_tensor(3).dtype == tl.int32
        assert tl.to_tensor(1 << 40).dtype == tl.int64
        assert tl.to_tensor(0.5).dtype == tl.float32
        assert tl.to_tensor(True).shape == ()
    """
    return to_tensor_value(x)


@method
@builtin
def cast(
    input: Operand,
    dtype: Union[_dtype, str],
    fp_downcast_rounding: Optional[str] = None,
    bitcast: bool = False,
) -> tensor:
    """`input` converted to another type, element by element.

    Floats become narrower by rounding to nearest even, or toward zero with
    `fp_downcast_rounding="rtz"`. Float to integer saturates and NaN gives 0. With `bitcast`
    the bits are reinterpreted; both types have one width. Errors: E035.
    Source: Triton language 3.6/3.9; saturation is ours.

    Example:
        x = tl.full((4,), 2.75, tl.float32)
        assert tl.cast(x, tl.int32) == 2  # towards zero
        assert tl.cast(x * 1000, tl.int8) == 127  # saturates
        assert tl.cast(x, tl.int32, bitcast=True) == 0x40300000
    """
    value = to_tensor_value(input)
    target = element_type(dtype)
    if target.is_block():
        target = target.scalar
    rounding = unwrap(fp_downcast_rounding)
    if rounding not in (None, "rtne", "rtz"):
        raise UserMistake(
            "E035",
            f"fp_downcast_rounding is {rounding!r}",
            'use "rtne" (to nearest even) or "rtz" (toward zero)',
        )
    reinterpret = constant_bool(bitcast, "bitcast")
    if value.dtype == target:
        return value  # whatever rounding is asked for: there is nothing to round
    return emit_one("cast", value, target, rounding, reinterpret)


@builtin
def _to(
    self: tensor,
    dtype: Union[_dtype, str],
    fp_downcast_rounding: Optional[str] = None,
    bitcast: bool = False,
) -> tensor:
    """`x.to(dtype)`: see `cast`."""
    return cast(self, dtype, fp_downcast_rounding, bitcast)


_to.__name__ = "to"
tensor.to = _to


@method
@builtin
def item(input: Operand) -> tensor:
    """The element of a tensor that has just one, as a scalar.

    Errors: E023 for more than one element. Source: Triton language 3.6/3.9.

    Example:
        total = tl.sum(tl.arange(0, 8), axis=0, keep_dims=True)
        assert total.shape == (1,)
        n = tl.item(total)
        if n > 20:  # a scalar, which an `if` can take
            n -= 20
        assert n == 8
    """
    x = to_tensor_value(input)
    if x.numel != 1:
        raise UserMistake(
            "E023", f"item needs one element, got {describe(x)}", "reduce the tensor first"
        )
    return emit_one("reshape", x, []) if x.shape else x
