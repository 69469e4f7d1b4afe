# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Histograms, counts, places in sorted lines, and runs of equal elements.

Counts are atomic additions: sums of weights are added in any order.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import tessera.language as tl
from tessera.calls.outputs import library_of
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.calls.reductions import reduction
from tessera.language import types
from tessera.locks import load
from tessera.ops.accumulation import launch_onto, with_part, zeros
from tessera.ops.arguments import (
    ELEMENTS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    accumulator_of,
    check,
    check_arrays,
    converted,
    count_of,
    dense,
    dtype_of,
    read_number,
    refuse,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.indexing import gather
from tessera.ops.kernels import histograms as kernels
from tessera.ops.kernels.histograms import BLOCK
from tessera.ops.launching import MAX_TILE, Spec, launch, power_of_2
from tessera.ops.outputs import launch_results, takes_out, takes_two
from tessera.ops.reductions import amax, amin
from tessera.ops.sorting import MAX_SORTED, sort
from tessera.ops.tuning import multiprocessors_of, threads_of
from tessera.wording import shown

_MAX_SHARED_BINS = 4096
"""Counters of 4 bytes that a block of a GPU has in shared memory."""

_PROGRAMS_PER_SM = 4
_MANY_BLOCKS, _RUNS, _MOST_SEGMENTS = 1024, 2048, 1024
"""Blocks from which on those of a GPU are larger, and their elements. So many programs look for runs at most:
each one adds up what those before have found."""

_MIN_SHARED_COUNTS, _CPU_COUNTS = 1 << 16, 64
"""Elements from which on the threads of a CPU share the counting of integers, and those of a tile."""

_MIN_SHARED_RUNS, _CPU_RUNS = 1 << 16, 8
"""Elements from which on the threads of a CPU share the search for runs, and those of a tile: one with the
begin of a run takes several times as long as another."""


def _without_gradient(array: Any) -> Any:
    return array.detach() if hasattr(array, "detach") else array


def _shared_tiles(like: Any, count: int, bins: int) -> Optional[tuple[int, int, int, int]]:
    """How programs of a GPU divide elements that they count in shared memory: the programs, the elements of
    a program and of a tile, and the counters. None for CPUs, and for too many bins."""
    units = multiprocessors_of(like)
    if not units or bins > _MAX_SHARED_BINS:
        return None
    tiles = -(-count // MAX_TILE)
    per_program = -(-tiles // (_PROGRAMS_PER_SM * units))
    counters = max(32, power_of_2(bins))
    return -(-tiles // per_program), per_program * MAX_TILE, MAX_TILE, counters


def _bincount_forward(input: Any, weights: Any, *, bins: int, dtype: types.dtype) -> Results:
    count = count_of(input.shape)
    threads = threads_of(input)
    if count and bins and (threads == 1 or threads and count < _MIN_SHARED_COUNTS):
        arrays, spec = (dense(input), dense(weights)), Spec((bins,), dtype)
        alone = (count, bins, count, _CPU_COUNTS, True)
        return launch(kernels.bincount_kernel, 1, arrays, [spec], alone), ()
    out = zeros(input, (bins,), dtype)
    shared = _shared_tiles(input, count, bins) if weights is None and count else None
    if shared is not None:
        programs, *numbers = shared
        out = launch_onto(
            kernels.shared_bincount_kernel, programs, (dense(input),), out, (count, bins, *numbers)
        )
        return (out,), ()
    out = launch_onto(
        kernels.bincount_kernel, -(-count // BLOCK), (dense(input), dense(weights)), out,
        (count, bins, BLOCK, BLOCK, False),
    )  # fmt: skip
    return (out,), ()


_bincount = Operator("bincount", _bincount_forward, None)


@recorded
def _counted(input: Any, weights: Any, bins: int, dtype: types.dtype, wanted: types.dtype) -> Any:
    found = _bincount(input, weights, bins=bins, dtype=dtype)
    return found if dtype == wanted else converted(found, wanted)


_LIMIT_32, _LIMIT_64 = tl.constexpr((1 << 31) - 1), tl.constexpr((1 << 63) - 1)


@reduction("max")
def _largest_of_32(x) -> tl.int32:
    value = x.to(tl.int32)
    return tl.where(value < 0, _LIMIT_32, value)  # type: ignore[return-value]


@reduction("max")
def _largest_of_64(x) -> tl.int64:
    value = x.to(tl.int64)
    return tl.where(value < 0, _LIMIT_64, value)  # type: ignore[return-value]


def _largest(input: Any) -> int:
    """The largest integer. Raises ArgumentError (E093) if there is a negative one.

    One reduction finds both, as negative ones are taken for the largest.
    """
    least, is_wide = 0, dtype_of(input).primitive_bitwidth > 32
    most = int((_largest_of_64 if is_wide else _largest_of_32)(input))
    if most == (_LIMIT_64 if is_wide else _LIMIT_32).value:
        least, most = int(amin(input)), int(amax(input))
    if least < 0:
        raise refuse(f"`input` of `bincount` has {least}", "pass integers from 0 on")
    return most


@takes_out
def bincount(input: Any, weights: Optional[Any] = None, minlength: int = 0) -> Any:
    """How often each integer from 0 on is in input, or the sum of its weights.

    The result has minlength elements, or more if there is a larger integer. The call reads the smallest
    and the largest one, so it waits for a GPU.
    Shapes: input (n,), weights (n,). Types: integers; weights of floats or integers. The result is of
    int64, or of weights' type (16 bits are added in float32), or of float64 for weights of integers.
    Errors: E093, E094 for a gradient of weights.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.bincount(np.array([1, 3, 1])).tolist() == [0, 2, 0, 1]
        y = ops.bincount(np.array([1, 0, 1]), np.array([0.5, 1.0, 2.0]), minlength=3)
        assert y.tolist() == [1, 2.5, 0]
    """
    name = "bincount"
    if weights is not None:
        check_arrays(name, NUMBERS, input=input, weights=weights)
    check_arrays(name, INTEGERS, input=input)
    shape = tuple(input.shape)
    if len(shape) != 1 or (weights is not None and tuple(weights.shape) != shape):
        raise refuse(
            f"`{name}` got input of shape {shape}"
            + ("" if weights is None else f", and weights of {tuple(weights.shape)}"),
            "pass a line of integers, and a weight for each",
        )
    if type(minlength) is not int or minlength < 0:
        raise refuse(f"`{name}` got minlength={shown(minlength)}", "pass an integer from 0 on")
    most = _largest(input) if shape[0] else -1
    dtype = wanted = types.int64
    if weights is not None:
        wanted = dtype_of(weights) if dtype_of(weights) in FLOATS else types.float64
        dtype = accumulator_of(wanted)
    return _counted(input, weights, max(minlength, most + 1), dtype, wanted)


def _histc_forward(input: Any, *, bins: int, low: float, high: float) -> Results:
    dtype, count = dtype_of(input), count_of(input.shape)
    acc, total = accumulator_of(dtype), zeros(input, (bins,), types.int64)
    shared = _shared_tiles(input, count, bins) if count else None
    if shared is not None:
        programs, *numbers = shared
        total = launch_onto(
            kernels.shared_histc_kernel, programs, (dense(input),), total,
            (count, bins, low, high, *numbers, acc),
        )  # fmt: skip
    else:
        total = launch_onto(
            kernels.histc_kernel, -(-count // BLOCK), (dense(input),), total,
            (count, bins, low, high, BLOCK, acc),
        )  # fmt: skip
    return (converted(total, dtype),), ()


_histc = Operator("histc", _histc_forward, None)


@recorded
@takes_out
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements are in each of `bins` bins of one width, from min to max.

    min and max 0 stand for the least and the largest element, which the call then reads. Elements that
    are outside, and NaNs, are not counted. max is in the last bin.
    Shapes: any; the result has `bins` elements. Types: floats. Errors: E093, E094 for a gradient.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.histc(np.array([0.0, 0.5, 1.5, 2.0, 3.0]), bins=2, min=0, max=2)
        assert y.tolist() == [2, 2]
    """
    name = "histc"
    check_arrays(name, FLOATS, input=input)
    check(
        type(bins) is int and bins > 0,
        f"`{name}` got bins={shown(bins)}",
        "pass an integer from 1 on",
    )
    low, high = float(min), float(max)
    if low == high == 0 and count_of(input.shape):
        plain = _without_gradient(input)
        low, high = float(read_number(amin(plain))), float(read_number(amax(plain)))
    check(
        low <= high < float("inf") and low > -float("inf"),
        f"`{name}` got a range from {low} to {high}",
        "pass a finite min that is not above max",
    )
    if low == high:
        low, high = low - 1, high + 1
    return _histc(input, bins=bins, low=low, high=high)


@pointwise
def _densities(counts, total, low, high):
    return counts / (total * (high - low))


@reduction("sum")
def _sum(x):
    return x


def _histogram_forward(input: Any, edges: Any, weight: Any) -> Results:
    dtype, count, bins = dtype_of(input), count_of(input.shape), edges.shape[0] - 1
    acc = types.int64 if weight is None else accumulator_of(dtype)
    total = launch_onto(
        kernels.histogram_kernel, -(-count // BLOCK), tuple(map(dense, (input, edges, weight))),
        zeros(input, (bins,), acc), (count, bins, BLOCK, (bins + 1).bit_length()),
    )  # fmt: skip
    return (converted(total, dtype),), ()


_histogram = Operator("histogram", _histogram_forward, None)


def _equal_edges(input: Any, bins: int, range: Any) -> Any:
    """The edges of bins of one width, over a range or over that of the elements."""
    if range is not None:
        low, high = map(float, range)
    elif count_of(input.shape):
        low, high = float(amin(input)), float(amax(input))
    else:
        low, high = 0.0, 1.0
    check(
        -float("inf") < low <= high < float("inf"),
        f"`histogram` got a range from {low} to {high}",
        "pass a finite range whose first end is not above the second",
    )
    if low == high:
        low, high = low - (range is None) * 0.5, high + (0.5 if range is None else 1.0)
    library = library_of(input)
    module: Any = load({"jax": "jax.numpy"}.get(library, library))
    where = {"device": input.device} if library == "torch" else {}
    return module.linspace(low, high, bins + 1, dtype=input.dtype, **where)


@takes_two
def histogram(
    input: Any, bins: Any, *, range: Optional[Sequence[float]] = None, weight: Optional[Any] = None,
    density: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """How many elements, or which sum of weights, are between each edge and the next; and the edges.

    bins: an array of edges, whose order is not checked, or a number of bins of one width. These are from
      range[0] to range[1]. Without range, they are over all elements, which the call then reads.

    With density, the result is divided by its sum and by the widths, so that the integral is 1.
    Elements that are outside, and NaNs, are not counted. The last edge is in the last bin.
    Shapes: any; the results are (bins,) and (bins + 1,). Types: floats, one for input, edges and weight.
    Errors: E093, E094 for a gradient.

    Example:
        import numpy as np
        from tessera import ops

        hist, edges = ops.histogram(np.array([0.0, 1.0, 1.5, 4.0]), 2, range=(0.0, 4.0))
        assert hist.tolist() == [3, 1] and edges.tolist() == [0, 2, 4]
        hist, _ = ops.histogram(np.array([0.5, 2.0, 9.0]), np.array([0.0, 1.0, 3.0]))
        assert hist.tolist() == [1, 1]
    """
    name = "histogram"
    check_arrays(name, FLOATS, input=input, weight=weight)
    check(
        weight is None or tuple(weight.shape) == tuple(input.shape),
        f"`weight` of `{name}` has another shape than `input` of {tuple(input.shape)}",
        "pass a weight for each element",
    )
    if library_of(bins):
        check_arrays(name, FLOATS, input=input, bins=bins)
        check(
            len(bins.shape) == 1 and bins.shape[0] > 1 and range is None,
            f"`{name}` got bins of shape {tuple(bins.shape)}, and range={shown(range)}",
            "pass a line of two edges or more, without range",
        )
        edges = bins
    else:
        check(type(bins) is int and bins > 0, f"`{name}` got bins={shown(bins)}", "pass 1 or more")
        edges = _equal_edges(_without_gradient(input), bins, range)
    for key, each in (("bins", edges), ("weight", weight)):
        check(
            each is None or dtype_of(each) == dtype_of(input),
            f"`{key}` of `{name}` has another type than `input` of {input.dtype}",
            "convert it",
        )
    found = _histogram(input, edges, weight)
    if density:
        found = _densities(found, _sum(found), edges[:-1], edges[1:])
    return found, edges


def _search_forward(edges: Any, input: Any, *, is_right: bool, dtype: types.dtype) -> Results:
    count, length = count_of(input.shape), edges.shape[-1]
    numbers = (
        count, length, max(1, input.shape[-1]) if len(input.shape) else 1, BLOCK,
        length.bit_length(), is_right, len(edges.shape) == 1,
    )  # fmt: skip
    return launch_results(
        kernels.search_kernel, -(-count // BLOCK), (dense(edges), dense(input)),
        [Spec(input.shape, dtype)], numbers,
    ), ()  # fmt: skip


_search = Operator("searchsorted", _search_forward, None)


@recorded
@takes_out
def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False,
    side: Optional[str] = None, sorter: Optional[Any] = None,
) -> Any:  # fmt: skip
    """The first place i with sorted_sequence[i] >= input; with right, the first with >.

    The number of elements, if there is none. A NaN of input is behind all elements. The order of
    sorted_sequence is not checked.
    With side "right", right is true. A sorter has the places that sort the sequence, as of argsort, if it
    is not in order.
    Shapes: sorted_sequence (n,) with any input or a number, or (..., n) with an input of the same first
    dimensions; the result is of int64, or of int32 with out_int32. Types: floats, integers; one for
    both. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        edges, x = np.array([1, 3, 5]), np.array([0, 3, 9])
        assert ops.searchsorted(edges, x).tolist() == [0, 1, 3]
        assert ops.searchsorted(edges, x, right=True).tolist() == [0, 2, 3]
    """
    name = "searchsorted"
    input = _as_array(name, input, sorted_sequence)
    check_arrays(name, NUMBERS, sorted_sequence=sorted_sequence, input=input)
    if sorter is not None:
        check(
            tuple(sorter.shape) == tuple(sorted_sequence.shape),
            f"`sorter` of `{name}` has shape {tuple(sorter.shape)}, and the sequence "
            f"{tuple(sorted_sequence.shape)}",
            "pass a place for each element",
        )
        sorted_sequence = gather(_without_gradient(sorted_sequence), -1, sorter)
    line, shape = tuple(sorted_sequence.shape), tuple(input.shape)
    check(
        len(line) == 1 or len(line) == len(shape) > 1 and line[:-1] == shape[:-1],
        f"`{name}` got a sequence of shape {line}, and an input of {shape}",
        "pass one line, or one for each line of input",
    )
    check(
        side in (None, "left", "right") and not (side == "left" and right),
        f"`{name}` got side={shown(side)} and right={shown(right)}",
        'pass "left" or "right", or right alone',
    )
    check(
        dtype_of(sorted_sequence) == dtype_of(input),
        f"`{name}` got a sequence of {sorted_sequence.dtype}, and an input of {input.dtype}",
        "convert them to one type",
    )
    plain = (_without_gradient(sorted_sequence), _without_gradient(input))
    dtype = types.int32 if out_int32 else types.int64
    return _search(*plain, is_right=bool(right) or side == "right", dtype=dtype)


def _as_array(name: str, value: Any, like: Any) -> Any:
    """The array, or a number as one of the sequence's type without dimensions."""
    if type(value) not in (int, float) or not library_of(like):
        return value
    dtype = dtype_of(like)
    check(
        dtype in FLOATS or type(value) is int,
        f"`{name}` got {value} for a sequence of {like.dtype}",
        "pass an integer, or convert the sequence",
    )
    return with_part(zeros(like, (), dtype), ..., value)


@recorded
@takes_out
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """searchsorted(boundaries, input): the number of the bucket between boundaries.

    Shapes: any, with boundaries (n,); the result is of int64, or of int32 with out_int32. Types:
    floats, integers; one for both. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.bucketize(np.array([0, 3, 9]), np.array([1, 3, 5])).tolist() == [0, 1, 3]
    """
    input = _as_array("bucketize", input, boundaries)
    check_arrays("bucketize", NUMBERS, input=input, boundaries=boundaries)
    check(
        len(boundaries.shape) == 1,
        f"`boundaries` of `bucketize` has shape {tuple(boundaries.shape)}",
        "pass a line",
    )
    check(
        dtype_of(boundaries) == dtype_of(input),
        f"`bucketize` got boundaries of {boundaries.dtype}, and an input of {input.dtype}",
        "convert them to one type",
    )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def _segment_length(like: Any, count: int) -> tuple[int, int]:
    """How many elements a program looks at for runs, and how many at a time."""
    if not multiprocessors_of(like):
        threads = threads_of(like) if count >= _MIN_SHARED_RUNS else 1
        return -(-count // threads), _CPU_RUNS
    block = _RUNS if count > _MANY_BLOCKS * BLOCK else BLOCK
    return -(-count // _MOST_SEGMENTS // block) * block or block, block


def _runs_forward(input: Any, *, with_inverse: bool, with_counts: bool) -> Results:
    x, count = dense(input), count_of(input.shape)
    length, block = _segment_length(x, count)
    segments = -(-count // length)
    line, one = Spec((count,), types.int64), Spec((), types.int64)
    specs = [Spec((count,), dtype_of(input)), line if with_counts else None]
    numbers = line if with_inverse else None
    if segments == 1:
        specs += [numbers, one]
        return launch(kernels.runs_kernel, 1, (x,), specs, (count, length, block)), ()
    parts = [*specs, None, Spec((segments,), types.int64)]
    found = launch(kernels.runs_kernel, segments, (x,), parts, (count, length, block))
    inputs, specs = (x, *found[:2], found[3]), [*specs, numbers, one]
    joined = launch(kernels.join_runs_kernel, segments, inputs, specs, (count, length, block))
    return joined, ()


_runs = Operator("unique_consecutive", _runs_forward, None)


@recorded
def _known_runs(x: Any, with_inverse: bool, with_counts: bool) -> Any:
    return _runs(x, with_inverse=with_inverse, with_counts=with_counts)


def _lengths_forward(begins: Any, *, runs: int) -> Results:
    count = begins.shape[0]
    return launch(
        kernels.run_lengths_kernel, -(-runs // BLOCK), (begins,), [Spec((runs,), types.int64)],
        (runs, count, BLOCK),
    ), ()  # fmt: skip


_lengths = Operator("unique_consecutive", _lengths_forward, None)


def _found_runs(x: Any, with_inverse: bool, with_counts: bool) -> tuple[Any, Any, Any]:
    """The elements of runs of a line, the run of each element, and the lengths of runs, if wanted."""
    if not x.shape[0]:
        none = zeros(x, (0,), types.int64)
        return dense(x), none, none
    # The arrays have room for as many runs as there are elements.
    values, begins, numbers, runs = _known_runs(x, with_inverse, with_counts)
    runs = int(runs)
    return values[:runs], numbers, _lengths(begins, runs=runs) if with_counts else None


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Union[Any, tuple[Any, ...]]:
    """The first of each run of equal elements of the flattened array, or of equal slices along dim.

    If the elements are sorted, these are the different ones. return_inverse adds the number of the run of each
    element, return_counts the length of each run. NaNs differ from each other. The call reads the
    number of runs, so it waits for a GPU.
    Shapes: any; the inverse has input's, others are lines. With dim all are lines but the slices. Types: floats,
    integers, bools; inverse and counts are int64. Errors: E093, E094 for a gradient.

    Example:
        import numpy as np
        from tessera import ops

        found = ops.unique_consecutive(np.array([3, 3, 5, 3]), True, True)
        assert [each.tolist() for each in found] == [[3, 5, 3], [0, 0, 1, 2], [2, 1, 1]]
    """
    check_arrays("unique_consecutive", ELEMENTS, input=input)
    if dim is not None:
        slices: Any = load("tessera.ops.slices")
        return slices.different(
            "unique_consecutive", input, dim, False, return_inverse, return_counts
        )
    line = dense(input)
    line = line if len(line.shape) == 1 else line.reshape(-1)
    values, inverse, counts = _found_runs(line, bool(return_inverse), bool(return_counts))
    found = [values]
    if return_inverse:
        found.append(inverse.reshape(tuple(input.shape)))
    if return_counts:
        found.append(counts)
    return values if len(found) == 1 else tuple(found)


def _inverse_forward(numbers: Any, places: Any) -> Results:
    (count,) = numbers.shape
    return launch(
        kernels.put_kernel, -(-count // BLOCK), (numbers, places), [Spec((count,), types.int64)],
        (count, BLOCK),
    ), ()  # fmt: skip


_inverse = Operator("unique", _inverse_forward, None)


def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: Optional[int] = None,
) -> Union[Any, tuple[Any, ...]]:  # fmt: skip
    """The different elements, or slices along dim, in order. NaNs differ from each other, and are the last.

    sorted: true in any case. return_inverse adds the place of each element among these, return_counts
    how often each is there. The call reads how many there are, so it waits for a GPU.
    Slices are compared by their elements in order, by a sort for each element of a slice.
    Shapes: any of up to 16384 elements, or slices; the inverse has input's, others are lines. With dim all
    are lines but the slices. Types: floats, integers; inverse and counts are int64. Errors: E093, E094
    for a gradient. Missing: more elements, or slices.

    Example:
        import numpy as np
        from tessera import ops

        found = ops.unique(np.array([5, 3, 5]), return_inverse=True, return_counts=True)
        assert [each.tolist() for each in found] == [[3, 5], [1, 0, 1], [1, 2]]
    """
    check_arrays("unique", NUMBERS, input=input)
    if dim is not None:
        slices: Any = load("tessera.ops.slices")
        return slices.different("unique", input, dim, True, return_inverse, return_counts)
    count = count_of(input.shape)
    check(
        count <= MAX_SORTED,
        f"`unique` got {count} elements",
        f"pass up to {MAX_SORTED}, or use the array library's own",
    )
    values, places = sort(dense(input).reshape(-1))
    values, numbers, counts = _found_runs(values, bool(return_inverse), bool(return_counts))
    found = [values]
    if return_inverse:
        found.append(_inverse(numbers, places).reshape(tuple(input.shape)))
    if return_counts:
        found.append(counts)
    return values if len(found) == 1 else tuple(found)
