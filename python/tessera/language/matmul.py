# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`dot`, the matrix multiplication of tiles, and `dot_scaled`."""

from __future__ import annotations

from typing import Any, Optional, Union

from tessera.errors import UserMistake
from tessera.language import types
from tessera.language.arguments import constant_bool, constant_int, element_type
from tessera.language.tensor import builtin, describe, emit_one, tensor
from tessera.language.types import dtype, unwrap
from tessera.wording import closest

__all__ = [
    "dot",
    "dot_scaled",
]

_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
_FORMATS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")


def _matrix(value: Any, what: str) -> tensor:
    value = unwrap(value)
    if isinstance(value, tensor) and len(value.shape) >= 2:
        return value
    raise UserMistake(
        "E025", f"{what} of dot is {describe(value)}", "dot needs tiles of rank 2 or more"
    )


def _named(value: str, accepted: tuple[str, ...], what: str) -> str:
    if value in accepted:
        return value
    near = closest(str(value), accepted)
    raise UserMistake(
        "E025",
        f"{what} is {value!r}",
        (f'did you mean "{near}"? ' if near else "") + f"use one of {', '.join(accepted)}",
    )


@builtin
def dot(
    input: tensor,
    other: tensor,
    acc: Optional[Union[tensor, int, float]] = None,
    input_precision: Optional[str] = None,
    allow_tf32: Optional[bool] = None,
    max_num_imprecise_acc: Optional[int] = None,
    out_dtype: Optional[Union[dtype, str]] = None,
) -> tensor:
    """The matrix product of [M, K] and [K, N], or of batches of any rank, added to `acc`.

    Operands are floats of 8, 16, 32 or 64 bits, or int8. Both have the same dtype, but any two
    8-bit floats can be combined. The result has the dtype of `acc`, or `out_dtype`, or else
    float32 (int32 for int8, float64 for float64). `input_precision` says how float32 operands
    may be rounded: "tf32", "tf32x3", "ieee", "bf16x3" or "bf16x6". Tensor cores of sm_89,
    sm_90a and sm_120 sum products of 8-bit floats in fewer bits than float32 has;
    `max_num_imprecise_acc` says how many of them at most, 0 for as few as possible, None for any
    number. Errors: E025.
    Source: Triton language 3.9.

    Example:
        a = tl.full((16, 32), 2.0, tl.float16)
        b = tl.full((32, 64), 0.5, tl.float16)
        acc = tl.full((16, 64), 1.0, tl.float32)
        acc = tl.dot(a, b, acc)  # a @ b + acc, summed in float32
        assert acc.shape == (16, 64)
        assert acc == 33.0
    """
    a, b = _matrix(input, "the first operand"), _matrix(other, "the second operand")
    acc = unwrap(acc)
    if acc is not None and not isinstance(acc, tensor):
        # `acc=0` and the like start from zero, as no accumulator does.
        if acc != 0:
            raise UserMistake("E025", f"acc of dot is {describe(acc)}", "pass a tile")
        acc = None
    precision, tf32 = unwrap(input_precision), unwrap(allow_tf32)
    if precision is not None and tf32 is not None:
        raise UserMistake(
            "E025", "dot got both input_precision and allow_tf32", "leave allow_tf32 out"
        )
    if precision is not None:
        precision = _named(precision, _PRECISIONS, "input_precision")
    elif tf32 is not None:
        precision = "tf32" if constant_bool(tf32, "allow_tf32") else "ieee"
    imprecise = unwrap(max_num_imprecise_acc)
    if imprecise is not None:
        imprecise = constant_int(imprecise, "max_num_imprecise_acc")
    out = unwrap(out_dtype)
    return emit_one(
        "dot", a, b, acc, precision, imprecise, None if out is None else element_type(out)
    )


@builtin
def dot_scaled(
    lhs: tensor,
    lhs_scale: Optional[tensor],
    lhs_format: str,
    rhs: tensor,
    rhs_scale: Optional[tensor],
    rhs_format: str,
    acc: Optional[tensor] = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: Union[dtype, str] = types.float32,
) -> tensor:
    """The product of matrices whose elements come with a scale for each group along K.

    Formats are "e2m1", "e4m3", "e5m2", "bf16" and "fp16". A scale is an 8-bit exponent (uint8) or
    a float8e4nv, or None for an operand without scales. It belongs to 16 or 32 neighbours along
    K, as the shape of the scales says. Batches of matrices have batches of scales. Errors: E025.
    Source: Triton language 3.9; float8e4nv scales of other formats than "e2m1" are ours.

    Example:
        a = tl.full((16, 64), 1.0, tl.float8e4nv)
        a_scale = tl.full((16, 2), 128, tl.uint8)  # 2**(128 - 127) for each 32 elements of a row
        b = tl.full((64, 32), 0.5, tl.bfloat16)
        c = tl.dot_scaled(a, a_scale, "e4m3", b, None, "bf16")
        assert c.shape == (16, 32)
        assert c == 64.0
    """
    return emit_one(
        "dot_scaled",
        _matrix(lhs, "the first operand"),
        unwrap(lhs_scale),
        _named(unwrap(lhs_format), _FORMATS, "lhs_format"),
        _matrix(rhs, "the second operand"),
        unwrap(rhs_scale),
        _named(unwrap(rhs_format), _FORMATS, "rhs_format"),
        unwrap(acc),
        constant_bool(fast_math, "fast_math"),
        constant_bool(lhs_k_pack, "lhs_k_pack"),
        constant_bool(rhs_k_pack, "rhs_k_pack"),
        element_type(out_dtype),
    )
