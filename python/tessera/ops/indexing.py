# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers, scatters, embeddings, one-hot numbers, and reductions of segments.

Several elements that are added to one are added in any order on GPUs, where additions are atomic. On CPUs, a
program adds them in their order, except for gradients of bags. 16-bit floats are added in float32.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, Optional, Sequence

import tessera.language as tl
from tessera.calls import recording
from tessera.calls.outputs import library_of, make_output
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.language import types
from tessera.ops.accumulation import launch_onto, with_part, zeros
from tessera.ops.arguments import (
    ELEMENTS,
    FLOATS,
    FLOATS_AND_INDICES,
    INDICES,
    NUMBERS,
    accumulator_of,
    check,
    check_arrays,
    check_dim,
    converted,
    count_of,
    dense,
    dtype_of,
    read_number,
    shape_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels import indexing as kernels
from tessera.ops.launching import MAX_TILE, Spec, launch, make_lines, power_of_2
from tessera.ops.outputs import launch_results, takes_out
from tessera.ops.reductions import amax
from tessera.ops.tuning import CPU, GPU, choose, choose_lines, threads_of
from tessera.runtime.arrays import dtype_name
from tessera.wording import shown

_CPU = CPU._replace(tile=128)
"""Indices are kept beside the elements until each is read or added."""

_MIN_COLUMNS = 64
"""Columns that a program on a CPU has at least."""
_ROWS = GPU._replace(tile=1024, lanes=4096)

_MOST_ZEROS = 4
"""Zeros for each element of a launch that makes them, at most. A launch of their own is faster for more."""


def _sum_dtype(dtype: types.dtype) -> types.dtype:
    """The type in which elements of a type are added up."""
    return accumulator_of(dtype) if dtype in FLOATS else types.int64


def _copied(array: Any, dtype: types.dtype) -> Any:
    """A dense copy with elements of a type; of JAX, an array that is never written to."""
    if library_of(array) == "jax":
        return converted(array, dtype)
    if library_of(array) == "torch":
        torch = sys.modules["torch"]
        settings = {"copy": True, "memory_format": torch.contiguous_format}
        copy = operator.methodcaller("to", getattr(torch, dtype_name(dtype)), **settings)
        return recording.apply(copy, array)

    def copy_elements(array: Any) -> Any:
        made = make_output(array, tuple(array.shape), dtype, "out")
        made[...] = array
        return made

    return recording.apply(copy_elements, array)


def _checked_index(name: str, array: Any, dim: Any, index: Any) -> int:
    """Checks an index with as many dimensions as the array. Returns the dimension, from 0 on."""
    check_arrays(name, ELEMENTS, input=array, index=index)
    check_arrays(name, INDICES, index=index)
    dim = check_dim(name, array, dim)
    shape, wanted = tuple(index.shape), tuple(array.shape)
    fits = len(shape) == len(wanted) and all(
        at == dim or size <= most for at, (size, most) in enumerate(zip(shape, wanted))
    )
    check(
        fits,
        f"`index` of `{name}` has shape {shape}, and the array {wanted}",
        "pass as many dimensions, with extents that are not larger but along dim",
    )
    return dim


def _narrowed(array: Any, shape: Sequence[int], dim: int) -> Any:
    """A view of the first elements of all dimensions but one."""
    place = tuple(slice(None) if at == dim else slice(0, size) for at, size in enumerate(shape))
    return array[place] if place else array


def _other_strides(shape: Sequence[int], extent: int, dim: int) -> tuple[int, int]:
    """The strides of lanes and slabs of an array with another extent along the dimension."""
    inner = math.prod(shape[dim + 1 :])
    return (extent, 0) if inner == 1 else (1, extent * inner)


def _gather_forward(input: Any, index: Any, *, dim: int, whole: Sequence[int]) -> Results:
    """whole: the shape of input, which the derivative needs alone."""
    shape = tuple(index.shape) or (1,)
    extent = input.shape[dim] if len(input.shape) else 1
    choice = choose_lines(kernels.gather_kernel, input, shape, dim, cpu=_CPU)
    programs, lines = make_lines(shape, dim, choice=choice)
    x = dense(_narrowed(input, index.shape, dim))
    (out,) = launch_results(
        kernels.gather_kernel, programs if count_of(shape) else 0, (x, dense(index)),
        [Spec(index.shape, dtype_of(input))], (extent, *_other_strides(shape, extent, dim), *lines),
        choice.warps,
    )  # fmt: skip
    return (out,), (index,)


def _gather_backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, whole: Sequence[int]
) -> Sequence[Any]:
    return add_along(grads[0], dim, saved[0], tuple(whole), dtype_of(grads[0])), None


_gather = Operator("gather", _gather_forward, _gather_backward)


def _scatter(source: Any, index: Any, out: Any, dim: int, kind: str = "sum") -> Any:
    """`out` with elements of the source combined with those that the index names: `out` itself, or a
    new array of JAX."""
    shape = tuple(index.shape) or (1,)
    extent = out.shape[dim] if len(out.shape) else 1
    if not count_of(shape):
        return out
    part = _narrowed(out, index.shape, dim)
    target = dense(part)
    choice = choose_lines(kernels.scatter_kernel, out, shape, dim, cpu=_CPU)
    programs, lines = make_lines(shape, dim, choice=choice)
    corner = tuple(slice(0, size) for size in index.shape)
    arrays = (dense(source[corner] if corner else source), dense(index))
    numbers = (extent, *_other_strides(shape, extent, dim), *lines, kind, False)
    found = launch_onto(kernels.scatter_kernel, programs, arrays, target, numbers, choice.warps)
    if found is part:
        return out
    place = tuple(slice(0, size) for size in part.shape)
    return with_part(out, place if place else ..., found)


def add_along(source: Any, dim: int, index: Any, shape: tuple[int, ...], dtype: types.dtype) -> Any:
    """Zeros of a shape, to which elements are added at indices along a dimension, as gradients are."""
    lines = tuple(index.shape)
    is_whole = lines[:dim] + lines[dim + 1 :] == shape[:dim] + shape[dim + 1 :]
    if is_whole and _is_dense(source, lines, shape, dim):
        return converted(_filled(source, dim, index, shape, _sum_dtype(dtype), "sum"), dtype)
    total = zeros(source, shape, _sum_dtype(dtype))
    return converted(_scatter(source, index, total, dim), dtype)


def _is_dense(source: Any, lines: Sequence[int], shape: Sequence[int], dim: int) -> bool:
    """True if a launch that adds elements should make zeros, too: there are not many more of them, and
    a CPU has a line in its cache."""
    if not count_of(lines) or (shape and shape[dim] > _MOST_ZEROS * lines[dim]):
        return False
    return math.prod(shape[dim + 1 :]) == 1 or not threads_of(source)


def _filled(
    source: Any, dim: int, index: Any, shape: Sequence[int], dtype: types.dtype, kind: str
) -> Any:
    """The same where each line of the shape has a line of indices: a launch makes zeros, too."""
    lines, extent = tuple(index.shape) or (1,), shape[dim] if shape else 1
    choice = choose_lines(kernels.scatter_kernel, source, lines, dim, cpu=_CPU)
    programs, numbers = make_lines(lines, dim, choice=choice)
    arrays = (dense(source), dense(index))
    is_full = kind == "store" and lines[dim] == extent  # each element is stored
    rest = (extent, *_other_strides(lines, extent, dim), *numbers, kind, not is_full)
    spec = Spec(shape, dtype)
    return launch(kernels.scatter_kernel, programs, arrays, [spec], rest, choice.warps)[0]


def store_along(source: Any, dim: int, index: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of a shape, in which elements are stored at indices along a dimension, each of which is there once."""
    dtype = dtype_of(source)
    if not _is_dense(source, index.shape, shape, dim):
        return _scatter(source, index, zeros(source, shape, dtype), dim, "store")
    # On an H200, additions to lines that are in a cache take 0.83 of the time of stores.
    is_sum = dtype == types.float32 and not threads_of(source)
    return _filled(source, dim, index, shape, dtype, "sum" if is_sum else "store")


@recorded
@takes_out
def gather(input: Any, dim: int, index: Any) -> Any:
    """input[..., index[...], ...] along dim, for each element of index.

    An index that is negative, or too large, reads 0.
    Shapes: index has input's dimensions, and extents that are not larger but along dim. Types: floats,
    integers, bools; indices of int32 or int64. Errors: E093. Missing: `sparse_grad`.

    Example:
        import numpy as np
        from tessera import ops

        x, index = np.array([[1, 2], [3, 4]]), np.array([[1, 1], [0, 1]])
        assert ops.gather(x, 1, index).tolist() == [[2, 2], [3, 4]]
    """
    dim = _checked_index("gather", input, dim, index)
    return _gather(input, index, dim=dim, whole=tuple(input.shape))


@pointwise
def _started(input, counts: tl.int32, neutral):
    return tl.where(counts > 0, neutral, input)


@pointwise
def _averaged(total, counts: tl.int32, own):
    return tl.where(counts > 0, total / (counts + own), total)


_NEUTRAL = {"sum": 0.0, "mean": 0.0, "amax": -math.inf, "amin": math.inf}


def _reduce_forward(
    input: Any, index: Any, src: Any, *, dim: int, reduce: str, include_self: bool,
    whole: Sequence[int],
) -> Results:  # fmt: skip
    """whole: the shape of src, which the derivative needs alone."""
    dtype = dtype_of(input)
    out, counts, own = _copied(input, _sum_dtype(dtype)), None, int(include_self)
    if reduce == "mean" or not include_self:
        counts = zeros(input, tuple(input.shape), types.int32)
        counts = _scatter(index, index, counts, dim, "count")
    if not include_self:
        out = _started(out, counts, _NEUTRAL[reduce] if dtype in FLOATS else 0)
    out = _scatter(src, index, out, dim, reduce)
    if reduce == "mean":
        out = _averaged(out, counts, own)
    return (converted(out, dtype),), (index, counts)


def _reduce_backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, reduce: str, include_self: bool,
    whole: Any,
) -> Sequence[Any]:  # fmt: skip
    index, counts = saved
    grad, own = grads[0], int(include_self)
    if reduce == "mean":
        grad = _averaged(grad, counts, own)
    of_input = grad if include_self else _started(grad, counts, 0.0)
    of_src = None
    if wanted[2]:
        of_src = _gather(grad, index, dim=dim, whole=tuple(grad.shape))
        if tuple(of_src.shape) != tuple(whole):
            whole = zeros(grad, tuple(whole), dtype_of(grad))
            of_src = with_part(whole, tuple(slice(0, size) for size in index.shape), of_src)
    return of_input, None, of_src


_sums = Operator("scatter_reduce", _reduce_forward, _reduce_backward)
_extrema = Operator("scatter_reduce", _reduce_forward, None)


@recorded
@takes_out
def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """A copy of input, which src is combined with at index along dim.

    reduce: "sum", "mean", "amax" or "amin".
    include_self: false to replace the elements of input that the index names.
    An index that is negative, or too large, changes nothing.
    Shapes: index has input's dimensions, and extents that are not larger but along dim, nor than
    src's. Types: floats, and integers for sums; indices of int32 or int64. Errors: E093; E094
    for gradients of amax and amin. Missing: `reduce="prod"`, NaNs in maxima and minima.

    Example:
        import numpy as np
        from tessera import ops

        index, src = np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0])
        y = ops.scatter_reduce(np.zeros(3), 0, index, src, "mean", include_self=False)
        assert y.tolist() == [2, 0, 2]
    """
    name = "scatter_reduce"
    check(
        reduce in _NEUTRAL,
        f"`{name}` got reduce={shown(reduce)}",
        f"pass one of {', '.join(_NEUTRAL)}",
    )
    kinds = NUMBERS if reduce == "sum" else FLOATS
    check_arrays(name, kinds, input=input, src=src)
    dim = _checked_index(name, input, dim, index)
    check(
        dtype_of(src) == dtype_of(input) and len(src.shape) == len(index.shape)
        and all(size <= most for size, most in zip(index.shape, src.shape)),
        f"`src` of `{name}` has shape {tuple(src.shape)} and {src.dtype}, and `index` "
        f"{tuple(index.shape)}, `input` {input.dtype}",
        "pass elements of input's type, as many as index has or more",
    )  # fmt: skip
    op = _extrema if reduce in ("amax", "amin") else _sums
    settings = {"dim": dim, "reduce": reduce, "include_self": bool(include_self)}
    return op(input, index, src, **settings, whole=tuple(src.shape))


@recorded
@takes_out
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """A copy of input, to which src is added at index along dim.

    An index that is negative, or too large, adds nothing.
    Shapes: index has input's dimensions, and extents that are not larger but along dim, nor than
    src's. Types: floats, integers; src has input's; indices of int32 or int64. Errors: E093, also
    for JAX.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.scatter_add(np.zeros(3), 0, np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]))
        assert y.tolist() == [2, 0, 4]
    """
    return scatter_reduce(input, dim, index, src, "sum")


# --- Rows -----------------------------------------------------------------------------


def _row_tile(kernel: Any, like: Any, rows: int, length: int) -> tuple[int, int, int, int]:
    """The rows and columns of a tile, the programs and the warps."""
    choice = choose(kernel, "rows", like, length, rows, ("tile", "lanes", "warps"), _ROWS, _ROWS)
    block = min(power_of_2(length), choice.tile)
    tile = min(power_of_2(rows), max(1, MAX_TILE // block // 2), choice.lanes)
    return tile, block, -(-rows // tile) * -(-length // block), choice.warps


def _select_forward(
    input: Any, index: Any, *, dim: int, padding: Optional[int], extent: int
) -> Results:
    """extent: that of input along dim, which the derivative needs."""
    shape = tuple(input.shape)
    count, length = count_of(index.shape), math.prod(shape[dim + 1 :])
    rows = math.prod(shape[:dim]) * count
    tile, block, programs, warps = _row_tile(kernels.select_rows_kernel, input, rows, length)
    (out,) = launch_results(
        kernels.select_rows_kernel, programs, (dense(input), dense(index)),
        [Spec((*shape[:dim], *index.shape, *shape[dim + 1 :]), dtype_of(input))],
        (rows, max(1, count), shape[dim], length, tile, block), warps,
    )  # fmt: skip
    return (out,), (index,)


def _add_rows(source: Any, index: Any, out: Any, dim: int, factor: float) -> Any:
    """`out` with rows of the source added to those that the index names: `out` itself, or a new array of
    JAX."""
    shape, count = tuple(out.shape), count_of(index.shape)
    length = math.prod(shape[dim + 1 :])
    outer = math.prod(shape[:dim])
    rows, threads = outer * count, threads_of(out)
    if threads and 2 * outer * -(-length // _MIN_COLUMNS) > threads:
        # Programs that have columns of all rows add without locked instructions, in the order of rows.
        block = max(_MIN_COLUMNS, min(MAX_TILE, power_of_2(-(-length * outer // threads))))
        programs = outer * -(-length // block) if count else 0
        return launch_onto(
            kernels.add_rows_in_order_kernel, programs, (dense(source), dense(index)), out,
            (count, shape[dim], length, factor, min(block, power_of_2(length))),
        )  # fmt: skip
    tile, block, programs, warps = _row_tile(kernels.add_rows_kernel, out, rows, length)
    numbers = (rows, max(1, count), shape[dim], length, factor, tile, block)
    inputs = (dense(source), dense(index))
    return launch_onto(kernels.add_rows_kernel, programs, inputs, out, numbers, warps)


def _select_backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, padding: Optional[int], extent: int
) -> Sequence[Any]:
    (index,), grad = saved, grads[0]
    rest = tuple(grad.shape[dim + len(index.shape) :])
    total = zeros(grad, (*grad.shape[:dim], extent, *rest), _sum_dtype(dtype_of(grad)))
    total = _add_rows(grad, index, total, dim, 1.0)
    if padding is not None:
        total = with_part(total, padding, 0)
    return converted(total, dtype_of(grad)), None


_select = Operator("index_select", _select_forward, _select_backward)


def _check_line(name: str, input: Any, dim: Any, index: Any) -> int:
    check_arrays(name, ELEMENTS, input=input, index=index)
    check_arrays(name, INDICES, index=index)
    check(
        len(index.shape) == 1 and len(input.shape) > 0,
        f"`index` of `{name}` has shape {tuple(index.shape)}, and `input` {tuple(input.shape)}",
        "pass a line of indices, and an array with dimensions",
    )
    return check_dim(name, input, dim)


@recorded
@takes_out
def index_select(input: Any, dim: int, index: Any) -> Any:
    """input[..., index[j], ...] along dim, for each j.

    An index that is negative, or too large, reads 0.
    Shapes: index (n,). Types: floats, integers, bools; indices of int32 or int64. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        x = np.array([[1, 2], [3, 4]])
        assert ops.index_select(x, 1, np.array([1, 1, 0])).tolist() == [[2, 2, 1], [4, 4, 3]]
    """
    shapes = [shape_of("index_select", *each) for each in (("input", input), ("index", index))]
    if shapes == [(), (1,)]:
        return index_select(input.reshape(1), dim, index).reshape(())
    dim = _check_line("index_select", input, dim, index)
    return _select(input, index, dim=dim, padding=None, extent=input.shape[dim])


def _index_add_forward(input: Any, index: Any, source: Any, *, dim: int, alpha: float) -> Results:
    total = _copied(input, _sum_dtype(dtype_of(input)))
    total = _add_rows(source, index, total, dim, alpha)
    return (converted(total, dtype_of(input)),), (index,)


def _index_add_backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, alpha: float
) -> Sequence[Any]:
    (index,) = saved
    found = None
    if wanted[2]:
        found = _select(grads[0], index, dim=dim, padding=None, extent=grads[0].shape[dim])
    return grads[0], None, found if found is None or alpha == 1 else found * alpha


_index_add = Operator("index_add", _index_add_forward, _index_add_backward)


@recorded
@takes_out
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    """A copy of input, to which alpha * source[..., j, ...] is added at index[j] along dim.

    An index that is negative, or too large, adds nothing.
    Shapes: index (n,); source has n elements along dim, and input's other extents. Types: floats, and
    integers with alpha 1; indices of int32 or int64. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.index_add(np.zeros((2, 2)), 0, np.array([1, 1]), np.ones((2, 2)), alpha=3)
        assert y.tolist() == [[0, 0], [6, 6]]
    """
    name = "index_add"
    dim = _check_line(name, input, dim, index)
    check_arrays(name, NUMBERS, input=input, source=source)
    wanted = (*input.shape[:dim], index.shape[0], *input.shape[dim + 1 :])
    check(
        tuple(source.shape) == wanted and dtype_of(source) == dtype_of(input),
        f"`source` of `{name}` has shape {tuple(source.shape)} and {source.dtype}",
        f"pass shape {wanted} and elements of input's type",
    )
    check(
        alpha == 1 or dtype_of(input) in FLOATS,
        f"`{name}` got alpha={shown(alpha)} for integers",
        "multiply source",
    )
    return _index_add(input, index, source, dim=dim, alpha=float(alpha))


@recorded
@takes_out
def embedding(input: Any, weight: Any, padding_idx: Optional[int] = None) -> Any:
    """weight[input]: a row for each index.

    padding_idx: a row whose gradient is 0.
    An index that is negative, or too large, reads 0.
    Shapes: input any, weight (n, size). Types: floats; indices of int32 or int64. Errors: E093.
    Missing: `max_norm`, `norm_type`, `scale_grad_by_freq` and `sparse`.

    Example:
        import numpy as np
        from tessera import ops

        weight = np.array([[1.0, 2.0], [3.0, 4.0]])
        assert ops.embedding(np.array([1, 0]), weight).tolist() == [[3, 4], [1, 2]]
    """
    _check_table("embedding", input, weight, padding_idx)
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    return _select(weight, input, dim=0, padding=padding, extent=weight.shape[0])


def _check_table(name: str, input: Any, weight: Any, padding: Optional[int]) -> None:
    check_arrays(name, FLOATS_AND_INDICES, input=input, weight=weight)
    check_arrays(name, INDICES, input=input)
    check_arrays(name, FLOATS, weight=weight)
    check(
        len(weight.shape) == 2,
        f"`weight` of `{name}` has shape {tuple(weight.shape)}",
        "pass a table of rows: (n, size)",
    )
    check(
        padding is None or (type(padding) is int and -weight.shape[0] <= padding < weight.shape[0]),
        f"`{name}` got padding_idx={shown(padding)} for {weight.shape[0]} rows",
        "pass the number of a row",
    )


@recorded
@takes_out
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """1 where the class is that of the element, and 0 elsewhere, in a new last dimension.

    num_classes: -1 stands for one more than the largest element, which the call then reads: it waits for
      a GPU.
    A class that is negative, or too large, is 0 everywhere.
    Shapes: any. Types: int32, int64; the result is int64. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.one_hot(np.array([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    """
    check_arrays("one_hot", INDICES, tensor=tensor)
    if type(num_classes) is int and num_classes == -1 and count_of(tensor.shape):
        num_classes = int(read_number(amax(tensor))) + 1
    check(
        type(num_classes) is int and num_classes > 0,
        f"`one_hot` got num_classes={shown(num_classes)}, or no element from 0 on",
        "pass the number of classes",
    )
    rows, block = count_of(tensor.shape), min(1024, power_of_2(num_classes))
    spec = Spec((*tensor.shape, num_classes), types.int64)
    programs = rows * -(-num_classes // block)
    numbers = (rows, num_classes, block)
    return launch_results(kernels.one_hot_kernel, programs, (dense(tensor),), [spec], numbers)[0]


# --- Segments -------------------------------------------------------------------------


def _segment_forward(data: Any, begins: Any, *, kind: str) -> Results:
    segments, rest = begins.shape[0] - 1, tuple(data.shape[1:])
    length = math.prod(rest)
    block = min(power_of_2(length), 1024)
    acc = accumulator_of(dtype_of(data))
    (out,) = launch_results(
        kernels.segment_kernel, segments * -(-length // block),
        (dense(data), dense(begins)), [Spec((segments, *rest), dtype_of(data))],
        (data.shape[0], length, block, acc, kind),
    )  # fmt: skip
    return (out,), (data, begins)


def _segment_backward(saved: Any, grads: Any, wanted: Any, *, kind: str) -> Sequence[Any]:
    data, begins = saved
    segments, length = begins.shape[0] - 1, math.prod(data.shape[1:])
    block = min(power_of_2(length), 1024)
    out = zeros(data, tuple(data.shape), accumulator_of(dtype_of(data)))
    out = launch_onto(
        kernels.segment_backward_kernel, segments * -(-length // block),
        (dense(grads[0]), dense(begins)), out, (data.shape[0], length, block, kind),
    )  # fmt: skip
    return converted(out, dtype_of(data)), None


_segments = Operator("segment_reduce", _segment_forward, _segment_backward)
_extreme_segments = Operator("segment_reduce", _segment_forward, None)


@recorded
@takes_out
def segment_reduce(data: Any, reduce: str, *, offsets: Any) -> Any:
    """The sum, mean, max or min of the rows of each segment, along dimension 0.

    offsets: where each segment begins, and at last where the last one ends. A segment has no rows outside
      of data. The mean of no rows is NaN, and their maximum -inf.
    Shapes: data (n, ...), offsets (segments + 1,). Types: floats; offsets of int32 or int64.
    Errors: E093; E094 for gradients of max and min.
    Missing: `lengths`, `indices`, `axis`, `unsafe`, `initial`; `reduce="prod"`.

    Example:
        import numpy as np
        from tessera import ops

        data = np.array([1.0, 2.0, 3.0])
        assert ops.segment_reduce(data, "sum", offsets=np.array([0, 1, 1, 3])).tolist() == [1, 0, 5]
    """
    name = "segment_reduce"
    check_arrays(name, FLOATS_AND_INDICES, data=data, offsets=offsets)
    check_arrays(name, FLOATS, data=data)
    check_arrays(name, INDICES, offsets=offsets)
    check(
        len(offsets.shape) == 1 and offsets.shape[0] > 0 and len(data.shape) > 0,
        f"`{name}` got data of shape {tuple(data.shape)} and offsets of {tuple(offsets.shape)}",
        "pass (n, ...) and (segments + 1,)",
    )
    check(
        reduce in ("sum", "mean", "max", "min"),
        f"`{name}` got reduce={shown(reduce)}",
        'pass "sum", "mean", "max" or "min"',
    )
    op = _segments if reduce in ("sum", "mean") else _extreme_segments
    return op(data, offsets, kind=reduce)
