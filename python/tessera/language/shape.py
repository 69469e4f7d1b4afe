# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that change the shape of tiles or rearrange their elements."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from tessera.errors import UserMistake
from tessera.language.arguments import axis_of, constant_int, constant_ints, spread
from tessera.language.tensor import (
    Operand,
    builtin,
    describe,
    emit,
    emit_one,
    method,
    tensor,
    to_tensor_value,
)
from tessera.language.types import descriptor_type, unwrap

__all__ = [
    "broadcast",
    "broadcast_to",
    "cat",
    "expand_dims",
    "gather",
    "histogram",
    "join",
    "permute",
    "reshape",
    "split",
    "trans",
    "view",
]


@builtin
def broadcast(input: Operand, other: Operand) -> tuple[tensor, tensor]:
    """Both operands with the shape that NumPy's rules give them.

    Errors: E022. Source: Triton language 3.6/3.9.

    Example:
        rows = tl.arange(0, 4)[:, None]  # [4, 1]
        columns = tl.arange(0, 8)[None, :]  # [1, 8]
        r, c = tl.broadcast(rows, columns)
        assert r.shape == (4, 8) and c.shape == (4, 8)
        assert tl.sum(r, axis=0) == 0 + 1 + 2 + 3
    """
    return emit("broadcast", to_tensor_value(input), to_tensor_value(other))


@method
@builtin
def broadcast_to(input: Operand, *shape: Union[int, Sequence[int]]) -> tensor:
    """`input` repeated along its dimensions of extent 1; a scalar becomes a tile.

    `x.broadcast_to(2, 64)` or `tl.broadcast_to(x, (2, 64))`. The ranks are equal unless
    `input` is a scalar. Errors: E022. Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8)
        y = tl.broadcast_to(x[None, :], (4, 8))
        assert tl.sum(y, axis=0) == 4 * x
        assert tl.broadcast_to(1.5, (2, 4)) == tl.full((2, 4), 1.5, tl.float32)
    """
    extents = constant_ints(spread(shape), "the shape")
    return emit_one("broadcast_to", to_tensor_value(input), extents)


@method
@builtin
def expand_dims(input: Operand, axis: Union[int, Sequence[int]]) -> tensor:
    """`input` with dimensions of extent 1 inserted at `axis` (one, or several).

    Axes are those of the result; negative ones count from its end.
    Errors: E023 (out of range, or twice the same). Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8)
        assert tl.expand_dims(x, 0).shape == (1, 8)  # as x[None, :]
        assert tl.expand_dims(x, -1).shape == (8, 1)
        assert tl.expand_dims(x, (0, 2)).shape == (1, 8, 1)
    """
    x = to_tensor_value(input)
    axes = constant_ints(axis, "axis", "E023")
    rank = len(x.shape) + len(axes)
    resolved = sorted(axis_of(one, rank, "E023") for one in axes)
    if len(set(resolved)) != len(resolved):
        raise UserMistake("E023", f"the axes {axes} name a dimension twice", "name each axis once")
    for one in resolved:
        x = emit_one("expand_dims", x, one) if x.shape else emit_one("broadcast_to", x, [1])
    return x


@method
@builtin
def reshape(input: Operand, *shape: Union[int, Sequence[int]], can_reorder: bool = False) -> tensor:
    """The same elements, in row-major order, in another shape; `[]` gives a scalar.

    Elements are never reordered, whatever `can_reorder` says. Errors: E023 (another number
    of elements). Source: Triton language 3.6/3.9.

    Example:
        x = tl.reshape(tl.arange(0, 8), (2, 4))  # 0 1 2 3, 4 5 6 7
        assert tl.max(tl.sum(x, axis=1)) == 22
        assert x.reshape(4, 2).shape == (4, 2)
        assert x.reshape(8) == tl.arange(0, 8)
    """
    del can_reorder
    return emit_one("reshape", to_tensor_value(input), constant_ints(spread(shape), "the shape"))


@method
@builtin
def view(input: Operand, *shape: Union[int, Sequence[int]]) -> tensor:
    """Same as `reshape`; the older name. Source: Triton language 3.6.

    Example:
        x = tl.view(tl.arange(0, 8), (2, 4))
        assert x.shape == (2, 4)
        assert tl.view(x, (8,)) == tl.arange(0, 8)
    """
    return reshape(input, *shape)


@method
@builtin
def permute(input: Operand, *dims: Union[int, Sequence[int]]) -> tensor:
    """Dimension `dims[i]` of `input` becomes dimension i.

    Errors: E023 (not a permutation). Source: Triton language 3.6/3.9.

    Example:
        x = tl.reshape(tl.arange(0, 64), (2, 4, 8))
        y = tl.permute(x, (2, 0, 1))
        assert y.shape == (8, 2, 4)
        assert tl.ravel(tl.permute(y, 1, 2, 0)) == tl.arange(0, 64)  # and back
    """
    x = to_tensor_value(input)
    order = constant_ints(spread(dims), "a dimension", "E023")
    rank = len(x.shape)
    resolved = [one % rank if -rank <= one < rank else one for one in order] if rank else order
    if sorted(resolved) != list(range(rank)):
        raise UserMistake(
            "E023",
            f"{tuple(order)} is no permutation of the dimensions of {describe(x)}",
            f"name each of 0..{rank - 1} once" if rank else "a scalar cannot be permuted",
        )
    return emit_one("permute", x, resolved)


@method
@builtin
def trans(input: Operand, *dims: Union[int, Sequence[int]]) -> tensor:
    """Dimensions permuted as in `permute`; without `dims` the last two are swapped.

    Errors: E023 (a vector, or not a permutation). Source: Triton language 3.6/3.9.

    Example:
        x = 10 * tl.arange(0, 2)[:, None] + tl.arange(0, 4)[None, :]  # 0 1 2 3, 10 11 12 13
        assert tl.trans(x) == 10 * tl.arange(0, 2)[None, :] + tl.arange(0, 4)[:, None]
        y = tl.zeros((2, 4, 8), tl.float32)
        assert tl.trans(y).shape == (2, 8, 4)
        assert tl.trans(y, 2, 1, 0).shape == (8, 4, 2)
    """
    x = to_tensor_value(input)
    if dims:
        return permute(x, *dims)
    rank = len(x.shape)
    if rank < 2:
        raise UserMistake(
            "E023", f"trans needs two dimensions, got {describe(x)}", "add one: x[:, None]"
        )
    order = list(range(rank))
    order[-1], order[-2] = order[-2], order[-1]
    return emit_one("permute", x, order)


@builtin
def join(a: Operand, b: Operand) -> tensor:
    """Two tensors along a new last dimension of extent 2; shapes are broadcast.

    Errors: E023. Source: Triton language 3.6/3.9.

    Example:
        re, im = tl.arange(0, 4), tl.full((4,), -1, tl.int32)
        pairs = tl.join(re, im)  # [4, 2]: 0 -1, 1 -1, 2 -1, 3 -1
        assert pairs.shape == (4, 2)
        assert tl.sum(pairs, axis=1) == re - 1
    """
    a, b = unwrap(a), unwrap(b)
    if not isinstance(a, tensor) and not isinstance(b, tensor):
        raise UserMistake(
            "E023",
            f"join needs a tensor, got {describe(a)} and {describe(b)}",
            "make one with tl.full",
        )
    return emit_one("join", to_tensor_value(a), to_tensor_value(b))


@method
@builtin
def split(a: tensor) -> tuple[tensor, tensor]:
    """The two halves along the last dimension, which has extent 2.

    Errors: E023. Source: Triton language 3.6/3.9.

    Example:
        pairs = tl.reshape(tl.arange(0, 8), (4, 2))  # 0 1, 2 3, 4 5, 6 7
        even, odd = tl.split(pairs)
        assert even == 2 * tl.arange(0, 4)
        assert odd == even + 1
    """
    return emit("split", to_tensor_value(a))


@builtin
def cat(input: tensor, other: tensor, can_reorder: bool = False, dim: int = 0) -> tensor:
    """Two tiles one after the other along `dim`; the order of elements is kept.

    Shapes are equal. Errors: E023. Source: Triton language 3.6/3.9.

    Example:
        x = tl.cat(tl.arange(0, 4), tl.arange(4, 8))
        assert x == tl.arange(0, 8)
        y = tl.zeros((2, 4), tl.float32)
        assert tl.cat(y, y, dim=1).shape == (2, 8)
    """
    del can_reorder
    a, b = to_tensor_value(input), to_tensor_value(other)
    return emit_one("cat", a, b, axis_of(constant_int(dim, "dim"), max(1, len(a.shape)), "E023"))


@method
@builtin
def gather(src: tensor, index: tensor, axis: int) -> tensor:
    """Elements of `src` picked by `index` along `axis`, as numpy.take_along_axis.

    Ranks are equal; an index out of range gives 0. Errors: E024.
    Source: Triton language 3.6/3.9; out of range is ours.

    Example:
        x = tl.arange(0, 8) * 10
        swapped = tl.gather(x, tl.arange(0, 8) ^ 1, axis=0)  # 10 0 30 20 50 40 70 60
        assert swapped == (tl.arange(0, 8) ^ 1) * 10
        assert tl.gather(x, tl.full((4,), 99, tl.int32), axis=0) == 0  # out of range
    """
    src, index = to_tensor_value(src), to_tensor_value(index)
    if isinstance(src.type, descriptor_type):
        # `desc.gather(rows, column)` is this method, too.
        return emit_one("descriptor_gather", src, index, unwrap(axis))
    return emit_one("gather", src, index, axis_of(axis, len(src.shape)))


@method
@builtin
def histogram(input: tensor, num_bins: int, mask: Optional[Operand] = None) -> tensor:
    """How often each of 0..num_bins-1 occurs in a tile of rank 1, as int32.

    The elements are integers of any width (Triton: 32 bits). Values out of range and masked-off
    ones are not counted. Errors: E030, E045. Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8) % 3  # 0 1 2 0 1 2 0 1
        counts = tl.histogram(x, 4)  # 3 3 2 0
        assert tl.sum(counts * tl.arange(0, 4)) == 3 + 2 * 2
        assert tl.max(tl.histogram(x, 4, mask=x > 1)) == 2
    """
    return emit_one(
        "histogram", to_tensor_value(input), constant_int(num_bins, "num_bins"), unwrap(mask)
    )
