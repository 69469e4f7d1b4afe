# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer, RMS, group, instance and batch norm, and the first two of a sum with a residual.

Layer and RMS norm have kernels for rows. The others normalise along any axes: reductions for the
statistics, and one elementwise operator for the result.
"""

from __future__ import annotations

import math
import types as python_types
from typing import Any, Callable, NamedTuple, Optional, Sequence

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.calls.reductions import reduction
from tessera.language import types
from tessera.ops import statistics
from tessera.ops.arguments import (
    FLOATS,
    accumulator_of,
    as_tuple,
    check,
    check_arrays,
    check_without_gradient,
    converted,
    count_of,
    dense,
    dtype_of,
    refuse,
    shape_of,
)
from tessera.ops.differentiation import Operator, Results, constant
from tessera.ops.kernels import normalizations as kernels
from tessera.ops.launching import Spec, launch, power_of_2
from tessera.ops.outputs import launch_results, takes_out, takes_two
from tessera.ops.tuning import CPU, GPU, choose, multiprocessors_of, threads_of
from tessera.wording import shown

# --- Rows -----------------------------------------------------------------------------

_MAX_PARTS = 64
_PART = 64
"""Rows that a program sums up at least, for the gradients of weights."""
_MIN_CHANNEL, _MAX_CACHED, _GROUP_BLOCK = 64, 1 << 17, 1024
"""Elements of a channel that are worth a loop, of a group that the cache of a core holds while the norm
reads them three times, and of a tile."""
_MANY_PROGRAMS, _MIN_PART = 1024, 1024
"""Programs that fill a GPU, and elements of a channel that a program has at least."""
_WHOLE_ROW, _ROW_PROGRAMS = 8192, 2
"""Elements of a row that a program of a GPU holds, and such programs for each SM."""
_MERGED = 1024
"""Sums of a tile that are merged."""
_ROWS = GPU._replace(lanes=4096)
_WEIGHTS = GPU._replace(block=16)
"""Rows at a time, of 256 elements."""


@reduction("sum")
def _sum(x):
    return x


def _tile(kernel: Any, x: Any, rows: int, length: int) -> tuple[tuple[int, int], int]:
    """The rows and the elements of a row of a tile, and the warps."""
    choice = choose(kernel, "rows", x, length, rows, ("tile", "lanes", "warps"), _ROWS, _ROWS)
    block = min(power_of_2(length), choice.tile)
    return (
        min(power_of_2(rows), max(1, choice.tile // block // 2), choice.lanes),
        block,
    ), choice.warps


def _row_forward(
    input: Any, residual: Any, weight: Any, bias: Any, *, length: int, eps: float, is_centred: bool
) -> Results:
    dtype, acc = dtype_of(input), accumulator_of(dtype_of(input))
    rows = count_of(input.shape) // length if length else 0
    tile, warps = _tile(kernels.norm_kernel, input, rows, length)
    is_tile = length <= tile[1] and multiprocessors_of(input) > 0
    like, line = Spec(input.shape, dtype), Spec((rows,), acc)
    arrays = tuple(map(dense, (input, residual, weight, bias)))
    out, added, mean, scale = launch_results(
        kernels.norm_kernel, -(-rows // tile[0]), arrays,
        [like, None if residual is None else like, line if is_centred else None, line],
        (rows, length, eps, *tile, acc, is_centred, is_tile), warps,
    )  # fmt: skip
    saved = (arrays[0] if residual is None else added, weight, bias, mean, scale)
    return ((out,) if residual is None else (out, added)), saved


def _row_backward(
    saved: Any, grads: Any, wanted: Any, *, length: int, eps: float, is_centred: bool
) -> Sequence[Any]:
    x, weight, bias, mean, scale = saved
    dtype, acc = dtype_of(x), accumulator_of(dtype_of(x))
    rows, grad = scale.shape[0], dense(grads[0])
    of_added = dense(grads[1]) if len(grads) > 1 else None
    of_x = of_weight = of_bias = None
    is_of_input, is_of_weights = wanted[0] or wanted[1], wanted[2] or wanted[3]
    is_one = is_of_input and is_of_weights and rows > 0 and length <= _WHOLE_ROW
    if is_one and multiprocessors_of(x):
        parts = min(rows, _ROW_PROGRAMS * multiprocessors_of(x))
        spec = Spec((parts, length), acc)
        block = power_of_2(length)
        of_x, of_weight, of_bias = launch(
            kernels.norm_gradients_kernel, parts, (x, dense(weight), grad, of_added, mean, scale),
            [Spec(x.shape, dtype), spec, None if bias is None else spec],
            (rows, length, parts, block, acc, is_centred), max(1, min(8, block // 512)),
        )  # fmt: skip
    else:
        if is_of_input:
            tile, warps = _tile(kernels.norm_backward_kernel, x, rows, length)
            (of_x,) = launch(
                kernels.norm_backward_kernel, -(-rows // tile[0]),
                (x, dense(weight), grad, of_added, mean, scale), [Spec(x.shape, dtype)],
                (rows, length, *tile, acc, is_centred), warps,
            )  # fmt: skip
        if is_of_weights:
            of_weight, of_bias = _weight_sums(x, grad, mean, scale, length, bias is not None)
    return of_x, of_x, *(
        None if sums is None or of is None
        else converted(
            sums if sums.shape[0] == 1 else _sum(sums, axis=0), dtype_of(of)
        ).reshape(of.shape)
        for sums, of in ((of_weight, weight), (of_bias, bias))
    )  # fmt: skip


def _weight_sums(x: Any, grad: Any, mean: Any, scale: Any, length: int, has_bias: bool) -> Any:
    """The gradients of weight and bias, as sums of parts of the rows."""
    rows, acc = scale.shape[0], accumulator_of(dtype_of(x))
    choice = choose(
        kernels.norm_weights_kernel, "columns", x, rows, length, ("block", "tile", "warps"), _WEIGHTS, CPU
    )  # fmt: skip
    parts = max(1, min(_MAX_PARTS, rows // _PART))
    part, block = -(-rows // parts), min(power_of_2(length), choice.tile // choice.block)
    spec = Spec((parts, length), acc)
    return launch(
        kernels.norm_weights_kernel, parts * -(-length // block), (x, grad, mean, scale),
        [spec, spec if has_bias else None],
        (rows, length, part, choice.block, block, acc, mean is not None), choice.warps,
    )  # fmt: skip


_layer = Operator("layer_norm", _row_forward, _row_backward)
_root = Operator("rms_norm", _row_forward, _row_backward)


def _check_rows(name: str, input: Any, normalized_shape: Any, **others: Any) -> int:
    """Checks the arguments of a norm of rows, and returns their length."""
    check_arrays(name, FLOATS, input=input, **others)
    wanted, shape = as_tuple(normalized_shape), shape_of(name, "input", input)
    check(
        len(wanted) > 0 and shape[len(shape) - len(wanted) :] == wanted,
        f"`input` of `{name}` has shape {shape}, and normalized_shape is {shown(normalized_shape)}",
        "pass the last extents of input",
    )
    for key, array in others.items():
        expected = shape if key == "residual" else wanted
        check(
            array is None or tuple(array.shape) == expected,
            f"`{key}` of `{name}` has another shape than {expected}",
            "pass one of that shape",
        )
    residual = others.get("residual")
    check(
        residual is None or dtype_of(residual) == dtype_of(input),
        f"`residual` of `{name}` has other elements than `input`",
        "convert one of them",
    )
    return count_of(wanted)


@recorded
@takes_out
def layer_norm(
    input: Any, normalized_shape: Any, weight: Optional[Any] = None, bias: Optional[Any] = None,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) * weight + bias, of the last dimensions.

    Shapes: normalized_shape has the last extents, which weight and bias have, too. Types: floats;
    weight and bias may have others than input. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        x = np.array([[1.0, 3.0], [2.0, 2.0]])
        assert np.allclose(ops.layer_norm(x, (2,), eps=0.0 + 1e-9), [[-1, 1], [0, 0]])
    """
    length = _check_rows("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return _layer(input, None, weight, bias, length=length, eps=float(eps), is_centred=True)


_EPSILONS = {
    types.float16: 2.0**-10, types.bfloat16: 2.0**-7, types.float32: 2.0**-23, types.float64: 2.0**-52,
}  # fmt: skip


@recorded
@takes_out
def rms_norm(
    input: Any, normalized_shape: Any, weight: Optional[Any] = None, eps: Optional[float] = None
) -> Any:
    """input / sqrt(mean(input^2) + eps) * weight, of the last dimensions.

    eps: None for the distance from 1 to the next number of input's type.
    Shapes: normalized_shape has the last extents, which weight has, too. Types: floats; weight may
    have another than input. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert np.allclose(ops.rms_norm(np.array([[3.0, 4.0]]), 2), np.array([3, 4]) / 12.5**0.5)
    """
    length = _check_rows("rms_norm", input, normalized_shape, weight=weight)
    eps = _EPSILONS[dtype_of(input)] if eps is None else float(eps)
    return _root(input, None, weight, None, length=length, eps=eps, is_centred=False)


@recorded
@takes_two
def add_layer_norm(
    input: Any, residual: Any, normalized_shape: Any, weight: Optional[Any] = None,
    bias: Optional[Any] = None, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """layer_norm(input + residual, ...) and input + residual, in one launch.

    Shapes: input and residual have one. Types: floats; input and residual have one. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y, total = ops.add_layer_norm(np.array([[1.0, 2.0]]), np.array([[1.0, 4.0]]), 2)
        assert np.allclose(y, [[-1, 1]], atol=1e-5) and total.tolist() == [[2, 6]]
    """
    name = "add_layer_norm"
    others = {"residual": residual, "weight": weight, "bias": bias}
    check(residual is not None, f"`{name}` got no residual", "call layer_norm")
    length = _check_rows(name, input, normalized_shape, **others)
    return _layer(input, residual, weight, bias, length=length, eps=float(eps), is_centred=True)


@recorded
@takes_two
def add_rms_norm(
    input: Any, residual: Any, normalized_shape: Any, weight: Optional[Any] = None,
    eps: Optional[float] = None,
) -> Any:  # fmt: skip
    """rms_norm(input + residual, ...) and input + residual, in one launch.

    Shapes: input and residual have one. Types: floats; input and residual have one. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y, total = ops.add_rms_norm(np.array([[1.0, 2.0]]), np.array([[2.0, 2.0]]), 2)
        assert np.allclose(y, np.array([3, 4]) / 12.5**0.5) and total.tolist() == [[3, 4]]
    """
    name = "add_rms_norm"
    check(residual is not None, f"`{name}` got no residual", "call rms_norm")
    length = _check_rows(name, input, normalized_shape, residual=residual, weight=weight)
    eps = _EPSILONS[dtype_of(input)] if eps is None else float(eps)
    return _root(input, residual, weight, None, length=length, eps=eps, is_centred=False)


# --- Any axes -------------------------------------------------------------------------

# Arrays are (N, G, K, S): examples, groups, channels of a group, elements of a channel. Sums are of the
# last axis first, and then of small arrays: the indices of two reduced axes would cost divisions.


def _scaled(x, mean, scale, weight, bias):
    return (x - mean) * scale * weight + bias


def _gradient(x, grad, mean, scale, weight, total, product, count):
    return scale * (grad * weight - (total + (x - mean) * scale * scale * product) / count)


@pointwise
def _inverse_root(variance, eps):
    return 1 / tl.sqrt(variance + eps)


class _Functions(NamedTuple):
    """The scalar functions for one type of sums, in which statistics are kept."""

    apply: Any
    gradient: Any


def _make_functions(dtype: types.dtype) -> _Functions:
    def typed(function: Callable[..., Any]) -> Any:
        """The function with statistics of this type, which do not promote 16-bit floats."""
        code = function.__code__
        made = python_types.FunctionType(code, function.__globals__, function.__name__)
        names = code.co_varnames[: code.co_argcount]
        made.__annotations__ = {name: dtype for name in names if name not in ("x", "grad", "count")}
        made.__module__, made.__qualname__ = function.__module__, f"{function.__name__}_{dtype}"
        return made

    return _Functions(pointwise(typed(_scaled)), pointwise(typed(_gradient)))


_FUNCTIONS = {dtype.name: _make_functions(dtype) for dtype in (types.float32, types.float64)}


def _axes_forward(x: Any, weight: Any, bias: Any, *, axes: tuple[int, ...], eps: float) -> Results:
    acc = accumulator_of(dtype_of(x))
    if _is_cached(x, axes):
        spec = Spec((*x.shape[:2], 1, 1), acc)
        block = min(power_of_2(x.shape[3]), _GROUP_BLOCK)
        y, mean, variance = launch(
            kernels.group_norm_kernel, x.shape[0] * x.shape[1], (x, dense(weight), dense(bias)),
            [Spec(x.shape, dtype_of(x)), spec, spec], (*x.shape[1:], eps, block, acc),
        )  # fmt: skip
        return (y, mean, variance), (x, weight, bias, mean, _inverse_root(variance, eps))
    functions, parts = _FUNCTIONS[acc.name], _parts(x)
    rows, length = count_of(x.shape[:3]) * parts, x.shape[3] // parts
    moments = statistics.moments(x, (3,), float(length), parts)
    if moments is None:
        tile, warps = _tile(kernels.moments_kernel, x, rows, length)
        moments = launch(
            kernels.moments_kernel, -(-rows // tile[0]), (x,), [Spec((rows,), acc)] * 2,
            (rows, length, *tile, acc), warps,
        )[::-1]  # fmt: skip
    kept = tuple(1 if at in (*axes, 3) else size for at, size in enumerate(x.shape))
    outer, count, inner = _around(x, axes, parts)
    mean, variance, scale = launch(
        kernels.merge_moments_kernel, count, moments[::-1], [Spec(kept, acc)] * 3,
        (outer, count, inner, eps, min(power_of_2(outer * inner), _MERGED), acc),
    )  # fmt: skip
    y = functions.apply(
        x, mean, scale, 1.0 if weight is None else weight, 0.0 if bias is None else bias
    )
    return (y, mean, variance), (x, weight, bias, mean, scale)


def _is_cached(x: Any, axes: tuple[int, ...], wanted: tuple[int, ...] = (2,)) -> bool:
    """True if the wanted axes are reduced with the last one, and the cache of a core holds what a program has.

    That is a group, or a channel of all examples.
    """
    length, count = x.shape[3], x.shape[wanted[0]]
    is_small = _MIN_CHANNEL <= length and count * length <= _MAX_CACHED
    return axes == wanted and is_small and threads_of(x) > 0


def _parts(x: Any) -> int:
    """How many programs of a GPU a channel is divided among."""
    rows, length, parts = count_of(x.shape[:3]), x.shape[3], 1
    if threads_of(x):
        return 1
    while rows * parts < _MANY_PROGRAMS and length % (2 * parts) == 0:
        if length < 2 * parts * _MIN_PART:
            break
        parts *= 2
    return parts


def _around(x: Any, axes: tuple[int, ...], parts: int) -> tuple[int, int, int]:
    """Parts of channels as (outer, kept, inner): the axes that are reduced are the first, or the last ones."""
    outer = x.shape[0] if 0 in axes else 1
    inner = parts * x.shape[2] if 2 in axes else parts
    return outer, count_of(x.shape[:3]) * parts // (outer * inner), inner


def _means_of(x: Any, axes: tuple[int, ...]) -> tuple[int, int]:
    """How many channels share a mean, and the means. Those of channels come again in each example."""
    return (x.shape[2], x.shape[0] * x.shape[1]) if axes == (2,) else (1, count_of(x.shape[1:3]))


def _gradient_sums(x: Any, grad: Any, mean: Any, axes: tuple[int, ...], acc: types.dtype) -> Any:
    """The sums of grad and of grad * (x - mean) for each part of a channel of each example."""
    parts = _parts(x)
    rows, length = count_of(x.shape[:3]) * parts, x.shape[3] // parts
    tile, warps = _tile(kernels.gradient_sums_kernel, x, rows, length)
    shared, means = _means_of(x, axes)
    return launch(
        kernels.gradient_sums_kernel, -(-rows // tile[0]), (x, grad, mean),
        [Spec((*x.shape[:3], parts), acc)] * 2, (rows, length, shared * parts, means, *tile, acc), warps,
    )  # fmt: skip


def _axes_backward(
    saved: Any, grads: Any, wanted: Any, *, axes: tuple[int, ...], eps: float
) -> Sequence[Any]:
    x, weight, bias, mean, scale = saved
    acc, grad = accumulator_of(dtype_of(x)), dense(grads[0])
    of_x = of_weight = of_bias = None
    specs = [
        Spec(each.shape, dtype_of(each)) if is_wanted else None
        for each, is_wanted in ((weight, wanted[1]), (bias, wanted[2]))
    ]
    if wanted[0] and _is_cached(x, axes, (0,)):
        examples, channels, length = x.shape[0], count_of(x.shape[1:3]), x.shape[3]
        return launch(
            kernels.batch_norm_backward_kernel, channels, (x, dense(weight), grad, mean, scale),
            [Spec(x.shape, dtype_of(x)), *specs],
            (examples, channels, length, min(power_of_2(length), _GROUP_BLOCK), acc),
        )  # fmt: skip
    if wanted[0] and _is_cached(x, axes):
        parts = Spec((*x.shape[:3], 1), acc)
        of_x, totals, products = launch(
            kernels.group_norm_backward_kernel, x.shape[0] * x.shape[1],
            (x, dense(weight), grad, mean, scale), [Spec(x.shape, dtype_of(x)), parts, parts],
            (*x.shape[1:], min(power_of_2(x.shape[3]), _GROUP_BLOCK), acc),
        )  # fmt: skip
    else:
        totals, products = _gradient_sums(x, grad, mean, axes, acc)
    channels, parts = count_of(x.shape[1:3]), totals.shape[3]
    if wanted[0] and of_x is None:
        outer, count, inner = _around(x, axes, parts)
        total, product = launch(
            kernels.merge_gradients_kernel, count, (totals, products, dense(weight)),
            [Spec(mean.shape, acc)] * 2,
            (outer, count, inner, channels, parts, min(power_of_2(outer * inner), _MERGED), acc),
        )  # fmt: skip
        factor = 1.0 if weight is None else weight
        size = float(x.shape[3] * math.prod(x.shape[axis] for axis in axes))
        gradient = _FUNCTIONS[acc.name].gradient
        of_x = gradient(x, grad, mean, scale, factor, total, product, size)
    if wanted[1] or wanted[2]:
        shared, scales = _means_of(x, axes)
        of_weight, of_bias = launch(
            kernels.merge_weights_kernel, channels, (totals, products, scale), specs,
            (x.shape[0], channels, parts, shared, scales,
             min(power_of_2(x.shape[0] * parts), _MERGED), acc),
        )  # fmt: skip
    return of_x, of_weight, of_bias


_axes = Operator("group_norm", _axes_forward, _axes_backward, constants=2)


def _channelwise(
    x: Any, weight: Any, bias: Any, groups: int, axes: tuple[int, ...], eps: float
) -> Any:
    """The norm of (N, C, ...) along the last axis and these of (N, G, K, S), and statistics."""
    shape = (x.shape[0], groups, x.shape[1] // groups, count_of(x.shape[2:]))
    weight, bias = (
        None if each is None else each.reshape(1, *shape[1:3], 1) for each in (weight, bias)
    )
    y, mean, variance = _axes(dense(x).reshape(shape), weight, bias, axes=axes, eps=float(eps))
    return y.reshape(x.shape), mean, variance


def _check_channels(name: str, input: Any, **others: Any) -> tuple[int, int, int]:
    """Checks arrays of (N, C, ...) and of (C,), and returns N, C and the elements of a channel."""
    check_arrays(name, FLOATS, input=input, **others)
    shape = shape_of(name, "input", input)
    check(len(shape) > 1, f"`input` of `{name}` has shape {shape}", "pass (N, C, ...)")
    for key, array in others.items():
        check(
            array is None or tuple(array.shape) == (shape[1],),
            f"`{key}` of `{name}` has another shape than ({shape[1]},)",
            "pass a number for each channel",
        )
    check(
        count_of(shape) > 0,
        f"`input` of `{name}` has shape {shape}, which has no elements",
        "pass elements to take the mean of",
    )
    return shape[0], shape[1], count_of(shape[2:])


@recorded
@takes_out
def group_norm(
    input: Any, num_groups: int, weight: Optional[Any] = None, bias: Optional[Any] = None,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) * weight + bias, of groups of channels.

    Shapes: input (N, C, ...), of which num_groups divides C; weight and bias (C,). Types: floats.
    Errors: E093; an input without elements is one.

    Example:
        import numpy as np
        from tessera import ops

        x = np.array([[1.0, 3.0, 10.0, 30.0]])
        assert np.allclose(ops.group_norm(x, 2), [[-1, 1, -1, 1]], atol=1e-4)
    """
    _, channels, _ = _check_channels("group_norm", input, weight=weight, bias=bias)
    check(
        type(num_groups) is int and num_groups > 0 and channels % num_groups == 0,
        f"`group_norm` got num_groups={shown(num_groups)} for {channels} channels",
        "pass a divisor of the number of channels",
    )
    return _channelwise(input, weight, bias, num_groups, (2,), eps)[0]


@pointwise
def _moved(running, batch, momentum, factor):
    return running * (1.0 - momentum) + batch * factor * momentum


def _with_statistics(
    name: str, axes: tuple[int, ...], input: Any, running_mean: Any, running_var: Any, weight: Any,
    bias: Any, eps: float,
) -> Any:  # fmt: skip
    """The norm by the statistics of input along its last axis and these of (N, C, 1, S). They are results,
    too, if there are running ones."""
    library = check_arrays(name, FLOATS, input=input, running_mean=running_mean)
    batch, channels, count = _check_channels(
        name, input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    check_without_gradient(name, running_mean=running_mean, running_var=running_var)
    has_none = running_mean is None and running_var is None
    check(
        library != "jax" or has_none,
        f"`{name}` got running statistics of JAX, whose arrays never change",
        "pass None, and keep statistics yourself",
    )
    check(
        count > 1 or (batch > 1 if axes == (0,) else has_none),
        f"`{name}` got one element a channel for training",
        "pass more, or the statistics",
    )
    y, mean, variance = _channelwise(input, weight, bias, channels, axes, eps)
    return y if has_none else (y, mean, variance)


def _trained(*args: Any) -> Any:
    return _with_statistics("batch_norm", (0,), *args)


def _instances(*args: Any) -> Any:
    return _with_statistics("instance_norm", (2,), *args)


def _by_statistics(
    name: str, input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, eps: float
) -> Any:
    """The norm by statistics that are given."""
    check_arrays(name, FLOATS, input=input, running_mean=running_mean)
    _, channels, _ = _check_channels(
        name, input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    check_without_gradient(name, running_mean=running_mean, running_var=running_var)
    if running_mean is None or running_var is None:
        raise refuse(f"`{name}` got no statistics", "pass both, or have them computed")
    shape = (channels,) + (1,) * (len(input.shape) - 2)
    mean, variance = (constant(x).reshape(shape) for x in (running_mean, running_var))
    factor = 1.0 if weight is None else weight.reshape(shape)
    term = 0.0 if bias is None else bias.reshape(shape)
    apply = _FUNCTIONS[accumulator_of(dtype_of(input)).name].apply
    return apply(input, mean, _inverse_root(variance, float(eps)), factor, term)


def _applied(*args: Any) -> Any:
    return _by_statistics("batch_norm", *args)


def _applied_instances(*args: Any) -> Any:
    return _by_statistics("instance_norm", *args)


_trained.__name__ = _applied.__name__ = "batch_norm"
_instances.__name__ = _applied_instances.__name__ = "instance_norm"
_known_trained, _known_applied = recorded(_trained), recorded(_applied)
_known_instances, _known_applied_instances = recorded(_instances), recorded(_applied_instances)


def _move_statistics(
    input: Any, running: Sequence[Any], moments: Sequence[Any], momentum: float, examples: int
) -> None:
    """Moves running statistics towards the means of those of so many groups of examples, in place."""
    count = count_of(input.shape) // input.shape[1] // examples
    for old, moment, scale in zip(running, moments, (1.0, count / (count - 1))):
        if old is not None:
            total = moment.reshape(examples, -1)
            total = _sum(total, axis=0) if examples > 1 else total.reshape(-1)
            _moved(old, total, momentum, scale / examples, out=old)


@takes_out
def instance_norm(
    input: Any, running_mean: Optional[Any] = None, running_var: Optional[Any] = None,
    weight: Optional[Any] = None, bias: Optional[Any] = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) * weight + bias, of each channel of each example.

    use_input_stats: true for the statistics of input. Means of these over the examples are what
      running_mean and running_var (if not None) are moved towards, in place, by momentum. Otherwise these
      two are the statistics.
    Shapes: input (N, C, ...); others (C,). Types: floats. Errors: E093. JAX has no running statistics
    with use_input_stats.

    Example:
        import numpy as np
        from tessera import ops

        x = np.array([[[1.0, 3.0], [10.0, 30.0]]])
        assert np.allclose(ops.instance_norm(x), [[[-1, 1], [-1, 1]]], atol=1e-4)
    """
    args = (input, running_mean, running_var, weight, bias, eps)
    if not use_input_stats:
        return _known_applied_instances(*args)
    found = _known_instances(*args)
    if running_mean is None and running_var is None:
        return found
    y, *moments = found
    _move_statistics(input, (running_mean, running_var), moments, float(momentum), input.shape[0])
    return y


@takes_out
def batch_norm(
    input: Any, running_mean: Optional[Any], running_var: Optional[Any], weight: Optional[Any] = None,
    bias: Optional[Any] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) * weight + bias, of each channel of all examples.

    training: true for the statistics of input, which running_mean and running_var (if not None) are
      moved towards, in place, by momentum. Otherwise these two are the statistics.
    Shapes: input (N, C, ...); others (C,). Types: floats. Errors: E093. JAX has no running
    statistics with training.

    Example:
        import numpy as np
        from tessera import ops

        mean, variance = np.zeros(1), np.ones(1)
        y = ops.batch_norm(np.array([[1.0], [3.0]]), mean, variance, training=True, momentum=0.5)
        assert np.allclose(y, [[-1], [1]], atol=1e-4) and (mean, variance) == (1, 1.5)
    """
    args = (input, running_mean, running_var, weight, bias, eps)
    if not training:
        return _known_applied(*args)
    found = _known_trained(*args)
    if running_mean is None and running_var is None:
        return found
    y, *moments = found
    _move_statistics(input, (running_mean, running_var), moments, float(momentum), 1)
    return y
