# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding, rolling, joining and transposing: copies whose gradients are copies, or sums of parts."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple, Sequence, Union

from tessera.calls.outputs import library_of
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.language import types
from tessera.locks import load
from tessera.ops.accumulation import empty, launch_onto
from tessera.ops.arguments import (
    ELEMENTS,
    accumulator_of,
    as_tuple,
    check,
    check_arrays,
    check_dim,
    converted,
    dense,
    dtype_of,
    refuse,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels import padding as kernels
from tessera.ops.kernels.padding import PARTS
from tessera.ops.launching import MAX_TILE, Spec, launch, make_lines, power_of_2
from tessera.ops.outputs import takes_out
from tessera.ops.tuning import threads_of
from tessera.runtime.arrays import find_dtype
from tessera.wording import shown


class _Side(NamedTuple):
    """A dimension, and the elements that it gets before and behind."""

    extent: int
    before: int
    after: int

    @property
    def size(self) -> int:
        return self.extent + self.before + self.after


def _merged(sides: Sequence[_Side]) -> list[_Side]:
    """Neighbours that are not padded as one dimension."""
    found: list[_Side] = []
    for side in sides:
        if found and found[-1][1:] == (0, 0) == side[1:]:
            found[-1] = _Side(found[-1].extent * side.extent, 0, 0)
        else:
            found.append(side)
    return found


_CPU_TILE = 256
"""Elements of a tile of several rows on a CPU. A row is copied in fewer steps alone than among others."""


def row_tiles(like: Any, rows: int, length: int) -> tuple[int, int, int]:
    """The programs for rows of elements that are contiguous, and the rows and columns of a tile, of an array
    on the device of `like`.

    Raises ArgumentError (E093) if there are too many rows for a kernel's int32.
    """
    check(
        rows < (1 << 31) - MAX_TILE,
        f"an array has {rows} rows of {length} elements",
        "pass a part of it",
    )
    block = min(power_of_2(length), 1024)
    most = _CPU_TILE if threads_of(like) else MAX_TILE // 2
    tile = min(power_of_2(rows), max(1, most // block))
    return -(-rows // tile) * -(-length // block), tile, block


def _edge(side: _Side, tile: int) -> int:
    """The columns of a tile at an end, of `tile` rows."""
    return min(power_of_2(max(1, *side[1:])), max(1, MAX_TILE // 4 // tile))


def _copied(x: Any, sides: Sequence[_Side], kind: str, value: float) -> Any:
    """The array, padded: the last dimensions first, if there are too many for one launch."""
    shape, x = tuple(side.size for side in sides), dense(x)
    rest = _merged(sides)
    while True:
        is_last = len(rest) <= 4
        part = rest if is_last else rest[-3:]
        head = math.prod(side.extent for side in rest[: len(rest) - len(part)])
        four = [_Side(1, 0, 0)] * (3 - len(part)) + [_Side(head, 0, 0)] * (len(part) < 4) + part
        sizes = [side.size for side in four]
        rows = math.prod(sizes[:3])
        programs, tile, block = row_tiles(x, rows, sizes[3])
        numbers = (
            rows, *(max(1, size) for size in sizes[1:]), *(side.extent for side in four),
            *(side.before for side in four), value, tile, block, _edge(four[3], tile), kind,
        )  # fmt: skip
        spec = Spec(shape if is_last else (*sizes,), dtype_of(x))
        (x,) = launch(
            kernels.pad_kernel, programs if math.prod(sizes) else 0, (x,), [spec], numbers
        )
        if is_last:
            return x
        rest = _merged([*rest[:-3], _Side(math.prod(sizes[1:]), 0, 0)])


def _pad_forward(input: Any, *, sides: Sequence[_Side], mode: str, value: float) -> Results:
    return (_copied(input, sides, mode, value),), ()


def _pad_backward(
    saved: Any, grads: Any, wanted: Any, *, sides: Sequence[_Side], mode: str, value: float
) -> Sequence[Any]:
    grad = grads[0]
    if mode == "constant":
        cut = [_Side(side.size, -side.before, -side.after) for side in sides]
        return (_copied(grad, cut, "constant", 0.0),)
    dtype = dtype_of(grad)
    acc = accumulator_of(dtype)
    grad, sides = _planes_of_gradient(grad, sides, mode)
    for dim, side in enumerate(sides):
        if side.size != side.extent:
            shape = (*grad.shape[:dim], side.extent, *grad.shape[dim + 1 :])
            programs, lines = make_lines(shape, dim)
            inner = math.prod(shape[dim + 1 :])
            strides = (side.size, 0) if inner == 1 else (1, side.size * inner)
            numbers = (
                side.size, *strides, side.before, max(side[1:]) + 1, *lines, _edge(side, lines.LANES),
                acc, mode, inner == 1,
            )  # fmt: skip
            (grad,) = launch(
                kernels.pad_backward_kernel, programs, (dense(grad),), [Spec(shape, acc)], numbers
            )
    return (converted(grad, dtype),)


def _planes_of_gradient(
    grad: Any, sides: Sequence[_Side], mode: str
) -> tuple[Any, Sequence[_Side]]:
    """The gradient along the last two dimensions that are padded, or one and its neighbour, and the
    other sides. Nothing is done if one dimension alone is padded, which is not the last."""
    padded = [dim for dim, side in enumerate(sides) if side.size != side.extent]
    if not padded or (len(padded) == 1 and padded[0] < len(sides) - 1):
        return grad, sides
    at = min(padded[-1] + 1, len(sides) - 1)  # from here on, dimensions are columns
    upper = sides[at - 1] if at else _Side(1, 0, 0)
    lower = _Side(math.prod(side.extent for side in sides[at:]), *sides[at][1:])
    heads = tuple(grad.shape[: max(at - 1, 0)])
    shape = (*heads, *(side.extent for side in sides[len(heads) :]))
    left = [*sides[: len(heads)], *(_Side(size, 0, 0) for size in shape[len(heads) :])]
    rows = math.prod(heads) * upper.extent
    programs, tile, block = row_tiles(grad, rows, lower.extent)
    acc = accumulator_of(dtype_of(grad))
    is_last = all(side.size == side.extent for side in left)
    kernel: Any = kernels.replicate_planes_backward_kernel
    numbers: tuple[Any, ...] = (
        rows, upper.size, lower.size, upper.extent, lower.extent, upper.before, lower.before,
    )  # fmt: skip
    if mode == "replicate":
        numbers += (tile, block, acc)
    else:
        kernel = kernels.pad_planes_backward_kernel
        ends = (max(upper[1:]) + 1, max(lower[1:]) + 1)
        numbers += (*ends, tile, block, _edge(lower, tile), acc, mode)
    spec = Spec(shape, dtype_of(grad) if is_last else acc)
    (grad,) = launch(kernel, programs, (dense(grad),), [spec], numbers)
    return grad, left


_pad = Operator("pad", _pad_forward, _pad_backward)


@recorded
@takes_out
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """input with elements before and behind its last dimensions; pad has two numbers for each.

    pad: (before, behind) of the last dimension, then of the one before, and so on. Negative numbers cut
    elements off, if mode is "constant".
    mode: "constant" (value, or 0), "reflect" (without the edge), "replicate" (the edge), "circular".
    Shapes: any. "reflect" adds fewer elements than there are, "circular" at most as many. Types:
    floats, integers, bools. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.pad(np.array([1, 2, 3]), (2, 1), "reflect").tolist() == [3, 2, 1, 2, 3, 2]
        assert ops.pad(np.ones((1, 1)), (0, 1, 1, 0), value=7).tolist() == [[7, 7], [1, 7]]
    """
    check_arrays("pad", ELEMENTS, input=input)
    shape, wanted = tuple(input.shape), as_tuple(pad)
    check(
        all(type(each) is int for each in wanted)
        and len(wanted) % 2 == 0
        and len(wanted) <= 2 * len(shape),
        f"`pad` got pad={shown(pad)} for an array of {len(shape)} dimensions",
        "pass two integers for each of the last dimensions",
    )
    check(
        mode in ("constant", "reflect", "replicate", "circular"),
        f"`pad` got mode={shown(mode)}",
        'pass "constant", "reflect", "replicate" or "circular"',
    )
    check(
        value is None or isinstance(value, (int, float)) and mode == "constant",
        f"`pad` got value={shown(value)} with mode={shown(mode)}",
        'pass a number, with mode="constant"',
    )
    sides = [_Side(size, 0, 0) for size in shape]
    for at, (before, after) in enumerate(zip(wanted[::2], wanted[1::2])):
        size = shape[-1 - at]
        least = -size if mode == "constant" else 0
        most = {"reflect": size - 1, "circular": size}.get(mode)
        fits = min(before, after) >= least and (most is None or max(before, after) <= most)
        check(
            fits and size + before + after >= 0 and (size > 0 or mode == "constant"),
            f"`pad` got {before} and {after} for dimension {len(shape) - 1 - at} of {size} elements "
            f"with mode={shown(mode)}",
            f"pass numbers from {least} to {most}" if most is not None else f"pass {least} or more",
        )
        sides[-1 - at] = _Side(size, before, after)
        inner = math.prod(shape[len(shape) - at :])
        check(
            mode == "constant" or inner == 1 or (size + before + after) * inner < 1 << 31,
            f"`pad` got an array of shape {shape}, whose lines along dimension {len(shape) - 1 - at} "
            "take 2^31 elements",
            "pass a part of it",
        )
    if not shape:
        return _pad(input.reshape(1), sides=[_Side(1, 0, 0)], mode=mode, value=0.0).reshape(())
    return _pad(input, sides=sides, mode=mode, value=float(value or 0))


def _roll_forward(input: Any, *, sides: Sequence[_Side]) -> Results:
    return (_copied(input, sides, "circular", 0.0),), ()


def _roll_backward(saved: Any, grads: Any, wanted: Any, *, sides: Sequence[_Side]) -> Sequence[Any]:
    back = [_Side(side.extent, side.after, side.before) for side in sides]
    return (_copied(grads[0], back, "circular", 0.0),)


_roll = Operator("roll", _roll_forward, _roll_backward)


@recorded
@takes_out
def roll(
    input: Any, shifts: Union[int, Sequence[int]], dims: Union[None, int, Sequence[int]] = None
) -> Any:
    """input[..., (i - shift) % n, ...] for each index i of each dimension; of all elements without dims.

    Shapes: any; as many shifts as dims. Types: floats, integers, bools. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.roll(np.array([[1, 2, 3], [4, 5, 6]]), 1, 1).tolist() == [[3, 1, 2], [6, 4, 5]]
        assert ops.roll(np.array([[1, 2], [3, 4]]), -1).tolist() == [[2, 3], [4, 1]]
    """
    check_arrays("roll", ELEMENTS, input=input)
    shape, moves = tuple(input.shape), as_tuple(shifts)
    axes = () if dims is None else as_tuple(dims)
    check(
        all(type(each) is int for each in moves) and len(moves) == (len(axes) or 1),
        f"`roll` got shifts={shown(shifts)} and dims={shown(dims)}",
        "pass an integer for each dimension, or one without dims",
    )
    if not axes:
        return (
            roll(input.reshape(-1), moves, 0).reshape(shape)
            if len(shape) != 1
            else roll(input, moves, 0)
        )
    total = [0] * len(shape)
    for move, axis in zip(moves, axes):
        total[check_dim("roll", input, axis, "dims")] += move
    moved = [move % max(1, size) for move, size in zip(total, shape)]
    return _roll(input, sides=[_Side(size, at, -at) for at, size in zip(moved, shape)])


def _cat_forward(*arrays: Any, dim: int, sizes: Sequence[int]) -> Results:
    total, first, dtype = sum(sizes), tuple(arrays[0].shape), dtype_of(arrays[0])
    shape = (*first[:dim], total, *first[dim + 1 :])
    rows, inner, begin = math.prod(shape[:dim]), math.prod(shape[dim + 1 :]), 0
    if 0 in shape:
        return launch(kernels.copy_parts_kernel, 0, arrays[:1], [Spec(shape, dtype)], ()), ()
    out, parts = None, [each for each in arrays if each.shape[dim]]
    for at in range(0, len(parts), PARTS):
        some = parts[at : at + PARTS]
        lengths = [each.shape[dim] * inner for each in some]
        _, tile, block = row_tiles(some[0], rows, max(lengths))
        columns = [-(-length // block) for length in lengths]
        programs = -(-rows // tile) * sum(columns)
        free = [None] * (PARTS - len(some))
        inputs = (*map(dense, some), *free)
        numbers = (
            rows, total * inner, begin, *lengths, *free, *columns, *free, tile, block
        )  # fmt: skip
        if out is None:
            (out,) = launch(
                kernels.copy_parts_kernel, programs, inputs, [Spec(shape, dtype)], numbers
            )
        else:
            out = launch_onto(kernels.copy_parts_kernel, programs, inputs, out, numbers)
        begin += sum(lengths)
    return (out,), ()


def _cat_backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, sizes: Sequence[int]
) -> Sequence[Any]:
    ends = itertools.accumulate(sizes)
    return [
        grads[0][(slice(None),) * dim + (slice(end - size, end),)] for size, end in zip(sizes, ends)
    ]


_cat = Operator("cat", _cat_forward, _cat_backward)


def _check_list(name: str, tensors: Any) -> None:
    """Raises ArgumentError (E093) unless there is a list of arrays."""
    if not isinstance(tensors, (tuple, list)) or not tensors:  # the text of tensors takes long
        raise refuse(f"`{name}` got {shown(tensors)}", "pass a list of arrays")


def _listed(name: str, tensors: Sequence[Any]) -> list[Any]:
    """The arrays of a list, converted to one type. Raises ArgumentError (E093)."""
    check_arrays(name, ELEMENTS, **{f"tensors[{at}]": each for at, each in enumerate(tensors)})
    if all(dtype_of(each) == dtype_of(tensors[0]) for each in tensors):
        return list(tensors)
    library = library_of(tensors[0])
    module: Any = load({"jax": "jax.numpy"}.get(library, library))
    wanted = find_dtype(functools.reduce(module.promote_types, [each.dtype for each in tensors]))
    assert wanted is not None
    return [converted(each, wanted) for each in tensors]


def _joined(dim: Any, *tensors: Any) -> Any:
    arrays = _listed("cat", tensors)
    dim = check_dim("cat", arrays[0], dim)
    wanted = tuple(arrays[0].shape)
    for at, each in enumerate(arrays):
        shape = tuple(each.shape)
        check(
            len(shape) == len(wanted) > 0
            and shape[:dim] + shape[dim + 1 :] == wanted[:dim] + wanted[dim + 1 :],
            f"`tensors[{at}]` of `cat` has shape {shape}, and the first array {wanted}",
            "pass arrays with dimensions that are equal but for dim",
        )
    return _cat(*arrays, dim=dim, sizes=[each.shape[dim] for each in arrays])


_joined.__name__ = "cat"
_known_cat = recorded(_joined)


def cat(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """The arrays one behind the other, along dim.

    Shapes: the same but for dim. Types: floats, integers, bools, which the library promotes to one.
    Errors: E093. Missing: arrays of shape (0,) beside others.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.cat([np.array([[1], [2]]), np.array([[3, 4], [5, 6]])], 1).tolist() == [
            [1, 3, 4], [2, 5, 6]]
    """
    if out is not None:
        return _cat_with_out(tensors, dim, out=out)
    _check_list("cat", tensors)
    return _known_cat(dim, *tensors)


def _cat_of_list(tensors: Sequence[Any], dim: int) -> Any:
    _check_list("cat", tensors)
    return _known_cat(dim, *tensors)


_cat_of_list.__name__ = "cat"
_cat_with_out = takes_out(_cat_of_list)  # not a decorator, whose call costs a call without `out`


def _stacked(dim: Any, *tensors: Any) -> Any:
    arrays = _listed("stack", tensors)
    shape = tuple(arrays[0].shape)
    for at, each in enumerate(arrays):
        check(
            tuple(each.shape) == shape,
            f"`tensors[{at}]` of `stack` has shape {tuple(each.shape)}, and the first array {shape}",
            "pass arrays of one shape",
        )
    check(
        type(dim) is int and -len(shape) - 1 <= dim <= len(shape),
        f"`stack` got dim={shown(dim)} for arrays of {len(shape)} dimensions",
        f"pass an integer from {-len(shape) - 1} to {len(shape)}",
    )
    at = dim % (len(shape) + 1)
    wide = [each.reshape(*shape[:at], 1, *shape[at:]) for each in arrays]
    return _stack(*wide, dim=at, sizes=[1] * len(wide))


_stack = Operator("stack", _cat_forward, _cat_backward)
_stacked.__name__ = "stack"
_known_stack = recorded(_stacked)


def stack(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """The arrays one behind the other, along a new dimension.

    Shapes: one for all. Types: floats, integers, bools, which the library promotes to one. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.stack([np.array([1, 2]), np.array([3, 4])], 1).tolist() == [[1, 3], [2, 4]]
    """
    if out is not None:
        return _stack_with_out(tensors, dim, out=out)
    _check_list("stack", tensors)
    return _known_stack(dim, *tensors)


def _stack_of_list(tensors: Sequence[Any], dim: int) -> Any:
    _check_list("stack", tensors)
    return _known_stack(dim, *tensors)


_stack_of_list.__name__ = "stack"
_stack_with_out = takes_out(
    _stack_of_list
)  # not a decorator, whose call costs a call without `out`


@pointwise
def _same(x):
    return x


class _Axis(NamedTuple):
    """A dimension of a copy, with its strides in the array that is read, and in the one that is stored."""

    size: int
    source: int
    target: int


def _axes(shape: Sequence[int], dims: Sequence[int]) -> list[_Axis]:
    """The dimensions of a result, of which neighbours that stay neighbours are one."""
    strides = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    found: list[_Axis] = []
    step = 1
    for at in reversed(dims):
        size, stride = shape[at], strides[at]
        if found and stride == found[-1].source * found[-1].size:
            found[-1] = found[-1]._replace(size=found[-1].size * size)
        elif size != 1:
            found.append(_Axis(size, stride, step))
        step *= size
    return found[::-1]


def _permuted(array: Any, dims: Sequence[int]) -> Any:
    """A dense array of the elements in another order of dimensions."""
    shape = tuple(array.shape)
    count, axes = math.prod(shape), _axes(shape, dims)
    wanted = tuple(shape[at] for at in dims)
    if len(axes) > 4:
        view = (
            array.permute(tuple(dims))
            if library_of(array) == "torch"
            else array.transpose(tuple(dims))
        )
        if library_of(array) == "jax":
            return _same(view)
        return _same(view, out=empty(view, view.shape, dtype_of(view)))
    axes = [_Axis(1, 0, 0)] * (4 - len(axes)) + axes
    # The rows of a tile are those whose elements lie side by side in the array, or are the most.
    row = max(range(3), key=lambda at: (axes[at].source == 1, axes[at].size))
    axes[row], axes[2] = axes[2], axes[row]
    side = 32 if axes[2].source == 1 else 1
    block = min(power_of_2(axes[3].size), side if side > 1 else 1024)
    tile = min(power_of_2(axes[2].size), side if side > 1 else max(1, MAX_TILE // block // 2))
    sizes = [each.size for each in axes]
    programs = math.prod(sizes[:2]) * -(-sizes[2] // tile) * -(-sizes[3] // block)
    check(programs < 1 << 31, f"an array has shape {shape}", "pass a part of it")
    numbers = (
        *sizes, *(each.source for each in axes), *(each.target for each in axes), tile, block,
        count >= 1 << 31,
    )  # fmt: skip
    spec = Spec(wanted, dtype_of(array))
    return launch(
        kernels.permute_kernel, programs if count else 0, (dense(array),), [spec], numbers
    )[0]


def _permute_forward(input: Any, *, dims: Sequence[int]) -> Results:
    return (_permuted(input, dims),), ()


def _permute_backward(saved: Any, grads: Any, wanted: Any, *, dims: Sequence[int]) -> Sequence[Any]:
    # A view, as in torch: what reads it may need no copy.
    grad, inverse = grads[0], tuple(sorted(range(len(dims)), key=dims.__getitem__))
    return (grad.permute(inverse) if library_of(grad) == "torch" else grad.transpose(inverse),)


_permute = Operator("permute_copy", _permute_forward, _permute_backward)


@recorded
@takes_out
def permute_copy(input: Any, dims: Sequence[int]) -> Any:
    """A dense array with dimension dims[i] of input as dimension i. A view is x.permute(dims).

    Shapes: any; each dimension once. Types: floats, integers, bools. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        x = np.arange(6).reshape(1, 2, 3)
        y = ops.permute_copy(x, (2, 0, 1))
        assert y.shape == (3, 1, 2) and y[2, 0].tolist() == [2, 5] and y.flags.c_contiguous
    """
    check_arrays("permute_copy", ELEMENTS, input=input)
    wanted = [check_dim("permute_copy", input, each, "dims") for each in as_tuple(dims)]
    check(
        sorted(wanted) == list(range(len(input.shape))),
        f"`permute_copy` got dims={shown(dims)} for an array of {len(input.shape)} dimensions",
        "pass each dimension once",
    )
    return _permute(input, dims=tuple(wanted))


@recorded
@takes_out
def transpose_copy(input: Any, dim0: int, dim1: int) -> Any:
    """A dense array with two dimensions of input exchanged. A view is x.transpose(dim0, dim1).

    Shapes: any. Types: floats, integers, bools. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.transpose_copy(np.array([[1, 2, 3], [4, 5, 6]]), 0, 1)
        assert y.tolist() == [[1, 4], [2, 5], [3, 6]] and y.flags.c_contiguous
    """
    check_arrays("transpose_copy", ELEMENTS, input=input)
    first, second = (check_dim("transpose_copy", input, each) for each in (dim0, dim1))
    dims = list(range(len(input.shape)))
    if dims:
        dims[first], dims[second] = second, first
    return _permute(input, dims=tuple(dims))
