# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting, and the largest or smallest elements."""

from __future__ import annotations

import math
from typing import Any, Sequence

from tessera.calls.recorded import recorded
from tessera.language import types
from tessera.ops.arguments import NUMBERS, check, check_arrays, check_dim, dense, dtype_of
from tessera.ops.differentiation import Operator, Results
from tessera.ops.indexing import store_along
from tessera.ops.kernels.sorting import select_kernel, sort_kernel
from tessera.ops.launching import MAX_TILE, Spec, make_lines, power_of_2
from tessera.ops.outputs import launch_results, takes_out, takes_two
from tessera.ops.tuning import Choice, threads_of
from tessera.wording import shown

MAX_SORTED = 16384
"""The longest line that can be sorted: a line is a tile."""

_MAX_SELECTED, _MAX_SELECTED_ON_GPU = 128, 16
"""So many elements of a line are selected one by one, without sorting the line. On a GPU, all warps of a
program meet for each of them."""


_WARPS = 8
"""Warps of a GPU that sort a tile."""


def _forward(input: Any, *, dim: int, count: int, is_descending: bool, length: int) -> Results:
    shape = tuple(input.shape) or (1,)
    # A line and as many as fit, or one line of which a few elements are selected.
    is_selection = _is_selection(input, count, shape[dim])
    choice = Choice(tile=1) if is_selection else Choice()
    programs, lines = make_lines(shape, dim, whole=True, choice=choice)
    inner = math.prod(shape[dim + 1 :])
    out_shape = (*shape[:dim], count, *shape[dim + 1 :]) if len(input.shape) else ()
    lane_stride, slab_stride = (count, 0) if inner == 1 else (1, count * inner)
    kernel: Any = select_kernel if is_selection else sort_kernel
    kept = power_of_2(math.isqrt(lines.BLOCK)) if is_selection else _kept(count, lines.BLOCK)
    values, places = launch_results(
        kernel, programs if count else 0, (dense(input),),
        [Spec(out_shape, dtype_of(input)), Spec(out_shape, types.int64)],
        (*lines, count, lane_stride, slab_stride, kept, is_descending),
        4 if is_selection or lines.LANES * lines.BLOCK < MAX_TILE else _WARPS,
    )  # fmt: skip
    return (values, places), (places,)


def _is_selection(input: Any, count: int, length: int) -> bool:
    """True if elements are selected one by one."""
    if dtype_of(input).primitive_bitwidth > 32 or 8 * count > length:
        return False
    if threads_of(input):
        return count <= _MAX_SELECTED
    return count <= _MAX_SELECTED_ON_GPU and length <= MAX_TILE


def _kept(count: int, block: int) -> int:
    """The columns of a tile that are kept: all, or a power of 2 of at most a quarter."""
    kept = power_of_2(count)
    return kept if 4 * kept <= block else block


def _backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, count: int, is_descending: bool, length: int
) -> Sequence[Any]:
    (grad,), shape = grads[:1], tuple(grads[0].shape)
    whole = (*shape[:dim], length, *shape[dim + 1 :]) if shape else ()
    # Places differ from each other.
    return (store_along(grad, dim, saved[0], whole),)


_sort = Operator("sort", _forward, _backward)


def _length(name: str, input: Any, dim: Any) -> tuple[int, int]:
    check_arrays(name, NUMBERS, input=input)
    dim = check_dim(name, input, dim)
    length = input.shape[dim] if len(input.shape) else 1
    check(
        length <= MAX_SORTED,
        f"`{name}` got lines of {length} elements",
        f"sort lines of up to {MAX_SORTED}, or use the array library's own",
    )
    return dim, length


@recorded
@takes_two
def sort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = True
) -> tuple[Any, Any]:
    """The elements along dim in order, and their places. NaNs are the largest.

    stable: as in torch, and true in any case: equal elements keep their order.
    Shapes: any, with up to 16384 elements along dim; places are int64. Types: floats, integers.
    Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        values, places = ops.sort(np.array([3, 1, 2, 1]))
        assert values.tolist() == [1, 1, 2, 3] and places.tolist() == [1, 3, 2, 0]
    """
    dim, length = _length("sort", input, dim)
    return _sort(input, dim=dim, count=length, is_descending=bool(descending), length=length)


@recorded
@takes_out
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The places along dim that sort the elements. NaNs are the largest.

    Shapes: any, with up to 16384 elements along dim; the result is of int64. Types: floats, integers.
    Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.argsort(np.array([3, 1, 2, 1]), descending=True).tolist() == [0, 2, 1, 3]
    """
    return sort(input, dim, descending, stable)[1]


@recorded
@takes_two
def topk(
    input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Any, Any]:
    """The k largest or smallest elements along dim, in order, and their places. NaNs are the largest.

    Shapes: any, with k to 16384 elements along dim; places are int64. Types: floats, integers.
    Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        values, places = ops.topk(np.array([3, 1, 4, 1]), 2)
        assert values.tolist() == [4, 3] and places.tolist() == [2, 0]
    """
    dim, length = _length("topk", input, dim)
    check(
        type(k) is int and 0 <= k <= length,
        f"`topk` got k={shown(k)} for {length} elements",
        "pass an integer from 0 to their number",
    )
    # As in torch, an array without dimensions has its element for any k.
    count = k if len(input.shape) else 1
    return _sort(input, dim=dim, count=count, is_descending=bool(largest), length=length)
