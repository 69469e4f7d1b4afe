# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along any axes: one launch by tessera.reduction, or a few for those with statistics.

Gradients follow from the parts, so that they can be differentiated again.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Optional, Sequence, Union

import tessera.language as tl
from tessera.calls.outputs import library_of
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.calls.reductions import reduction
from tessera.language import types
from tessera.locks import load
from tessera.ops import statistics
from tessera.ops.arguments import (
    ELEMENTS,
    FLOATS,
    NUMBERS,
    accumulator_of,
    check,
    check_arrays,
    check_dim,
    converted,
    dense,
    dtype_of,
    part_of,
    refuse,
    shape_of,
)
from tessera.ops.differentiation import Operator, Results, constant, is_one_node
from tessera.ops.kernels.reductions import extremum_place_kernel
from tessera.ops.launching import Spec, make_lines
from tessera.ops.outputs import launch_results, takes_out, takes_two
from tessera.ops.tuning import CPU, choose_lines, multiprocessors_of
from tessera.runtime.arrays import find_dtype
from tessera.wording import shown

Dims = Union[None, int, Sequence[int]]


@reduction("sum")
def _sum(x):
    return x


@reduction("mean")
def _mean(x):
    return x


@reduction("mean")
def _narrow_mean(x) -> tl.float32:
    return x


@reduction("prod")
def _prod(x):
    return x


@part_of("amax")
@reduction("max")
def _max(x):
    return x


@part_of("amin")
@reduction("min")
def _min(x):
    return x


@reduction("any")
def _any(x):
    return x


@reduction("all")
def _all(x):
    return x


@reduction("sum")
def _squares(x, mean):
    return (x - mean) * (x - mean)


@reduction("sum")
def _square_sum(x):
    return x * x


@reduction("sum")
def _absolute_sum(x):
    return tl.abs(x)


@reduction("sum")
def _power_sum(x, p):
    return tl.math.pow(tl.abs(x), p)


@reduction("max")
def _absolute_max(x):
    return tl.abs(x)


@reduction("min")
def _absolute_min(x):
    return tl.abs(x)


@reduction("sum")
def _count(x):
    return tl.ceil(tl.minimum(tl.abs(x), 1.0))  # 1 of a NaN, too


@reduction("sum")
def _exponentials(x, top):
    return tl.exp(x - top)


@pointwise
def _finite(x):
    """A maximum that can be subtracted."""
    return tl.where(tl.abs(x) == float("inf"), 0.0, x)


@pointwise
def _quotient(x, divisor):
    return x / divisor


@pointwise
def _root(x):
    return tl.sqrt(x)


@pointwise
def _power(x, p):
    return tl.math.pow(x, p)


@pointwise
def _log_plus(x, y):
    return tl.log(x) + y


# The gradient of a norm of zeros is 0, which the derivative of the root is not.
@_root.backward
def _root_backward(grad, x):
    return tl.where(x > 0, 0.5 * grad / tl.sqrt(x), 0.0 * grad)


@_power.backward
def _power_backward(grad, x, p):
    return tl.where(x > 0, grad * p * tl.math.pow(x, p - 1.0), 0.0 * grad), 0.0 * grad


def _axes(name: str, input: Any, dim: Dims) -> tuple[int, ...]:
    """The dimensions from 0 on; all for None, and for () as torch has it."""
    rank = len(shape_of(name, "input", input))
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(rank))
    listed = dim if isinstance(dim, (tuple, list)) else (dim,)
    found = tuple(check_dim(name, input, each) for each in listed)
    check(len(set(found)) == len(found), f"`{name}` got dim={shown(dim)}", "name each once")
    return found if rank else ()


def _reduce(op: Any, *args: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The reduction; one of an array without dimensions is that of one element."""
    if not axes and not args[0].shape:
        args = tuple(each.reshape(1) if hasattr(each, "reshape") else each for each in args)
        return op(*args, axis=0)
    return op(*args, axis=axes, keepdims=keepdim)


def _simple(name: str, op: Any, input: Any, dim: Dims, keepdim: bool, dtype: Any = None) -> Any:
    check_arrays(name, ELEMENTS, input=input)
    if dtype is not None:
        wanted = find_dtype(dtype)
        if wanted is None:
            raise refuse(f"`{name}` got dtype={shown(dtype)}", "pass a type of numbers")
        input = converted(input, wanted)
    return _reduce(op, input, axes=_axes(name, input, dim), keepdim=keepdim)


def _extremum(name: str, op: Any, input: Any, dim: Dims, keepdim: bool) -> Any:
    gradients = _gradients(input)
    if gradients is None:
        return _simple(name, op, input, dim, keepdim)
    check_arrays(name, NUMBERS, input=input)
    return gradients.extremum(op, input, _axes(name, input, dim), keepdim)


def _gradients(input: Any) -> Any:
    """The module with gradients of their own, if a call needs one; else None."""
    return load("tessera.ops.reduction_gradients") if is_one_node(input) else None


@recorded
@takes_out
def sum(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Optional[Any] = None) -> Any:
    """The sum along dim: one dimension, several, or all.

    dtype: the type of the elements that are summed up, and of the result.
    Shapes: any. Types: floats, integers and bools, as the library sums them (int64 with torch).
    Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.sum(np.ones((2, 3, 4)), dim=(0, 2)).tolist() == [8, 8, 8]
    """
    return _simple("sum", _sum, input, dim, keepdim, dtype)


@recorded
@takes_out
def mean(
    input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Optional[Any] = None
) -> Any:
    """The sum along dim, divided by the number of elements.

    Shapes: any. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.mean(np.array([[1.0, 3.0], [5.0, 7.0]]), dim=1).tolist() == [2, 6]
    """
    if dtype is None:
        check_arrays("mean", FLOATS, input=input)
    return _simple("mean", _mean, input, dim, keepdim, dtype)


@recorded
@takes_out
def prod(
    input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Optional[Any] = None
) -> Any:
    """The product along dim.

    Shapes: any. Types: floats, integers and bools. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.prod(np.array([[1, 2], [3, 4]]), dim=0).tolist() == [3, 8]
    """
    return _simple("prod", _prod, input, dim, keepdim, dtype)


@recorded
@takes_out
def amax(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """The maximum along dim; NaN if there is one. The gradient of equal ones is shared.

    Shapes: any with elements along dim. Types: floats, integers, bools. Errors: E089, E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.amax(np.array([[1, 5], [3, 4]]), dim=1).tolist() == [5, 4]
    """
    return _extremum("amax", _max, input, dim, keepdim)


@recorded
@takes_out
def amin(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """The minimum along dim; NaN if there is one. The gradient of equal ones is shared.

    Shapes: any with elements along dim. Types: floats, integers, bools. Errors: E089, E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.amin(np.array([[1, 5], [3, 4]]), dim=1).tolist() == [1, 3]
    """
    return _extremum("amin", _min, input, dim, keepdim)


@recorded
@takes_out
def any(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """True where an element along dim is not 0.

    Shapes: any. Types: floats, integers, bools. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.any(np.array([[0, 5], [0, 0]]), dim=1).tolist() == [True, False]
    """
    return _simple("any", _any, input, dim, keepdim)


@recorded
@takes_out
def all(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """True where no element along dim is 0.

    Shapes: any. Types: floats, integers, bools. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.all(np.array([[2, 5], [1, 0]]), dim=1).tolist() == [True, False]
    """
    return _simple("all", _all, input, dim, keepdim)


@recorded
@takes_two
def var_mean(
    input: Any,
    dim: Dims = None,
    unbiased: Optional[bool] = None,
    keepdim: bool = False,
    *,
    correction: Optional[float] = 1.0,
) -> tuple[Any, Any]:
    """The variance along dim and the mean: sum((input - mean)^2) / (count - correction).

    unbiased: false for correction 0, true for 1.
    Shapes: any. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        variance, mean = ops.var_mean(np.array([1.0, 2.0, 3.0]))
        assert (variance, mean) == (1, 2)
    """
    check_arrays("var_mean", FLOATS, input=input)
    check(
        unbiased is None or (type(unbiased) is bool and correction in (1, None)),
        f"`var_mean` got unbiased={shown(unbiased)} and correction={shown(correction)}",
        "pass one of the two, and a bool as unbiased",
    )
    correction = 0.0 if unbiased is False else 1.0 if correction is None else correction
    dtype, axes = dtype_of(input), _axes("var_mean", input, dim)
    average = _mean if dtype == types.float64 else _narrow_mean
    shape = tuple(1 if at in axes else size for at, size in enumerate(input.shape))
    kept = _kept(input, axes, keepdim)
    # torch divides by 0 if there are too few elements.
    divisor = float(max(0.0, math.prod(input.shape[axis] for axis in axes) - correction))

    def mean_of(x: Any) -> Any:
        return _reduce(average, x, axes=axes, keepdim=True)

    def moments_of(x: Any) -> tuple[Any, Any]:
        found = statistics.moments(x, axes, divisor) if statistics.is_direct(x) else None
        if found is not None:
            return found[0].reshape(kept), found[1].reshape(shape)
        center = mean_of(x)
        squares = _reduce(_squares, x, center.reshape(shape), axes=axes, keepdim=keepdim)
        return _quotient(squares, divisor), center

    gradients = _gradients(input)
    if gradients is None:
        variance, center = moments_of(input)
    else:
        variance, center = gradients.moments(moments_of, mean_of, axes, divisor, input)
    return converted(variance, dtype), converted(center.reshape(kept), dtype)


@recorded
@takes_out
def var(
    input: Any,
    dim: Dims = None,
    unbiased: Optional[bool] = None,
    keepdim: bool = False,
    *,
    correction: Optional[float] = 1.0,
) -> Any:
    """sum((input - mean)^2) / (count - correction), along dim.

    unbiased: false for correction 0, true for 1.
    Shapes: any. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.var(np.array([1.0, 2.0, 3.0]), correction=0) == 2 / 3
    """
    return var_mean(input, dim, unbiased, keepdim, correction=correction)[0]


@recorded
@takes_out
def std(
    input: Any,
    dim: Dims = None,
    unbiased: Optional[bool] = None,
    keepdim: bool = False,
    *,
    correction: Optional[float] = 1.0,
) -> Any:
    """The root of var(input, dim).

    unbiased: false for correction 0, true for 1.
    Shapes: any. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.std(np.array([1.0, 3.0]), correction=0) == 1
    """
    return _root(var_mean(input, dim, unbiased, keepdim, correction=correction)[0])


@recorded
@takes_out
def vector_norm(x: Any, ord: float = 2.0, dim: Dims = None, keepdim: bool = False) -> Any:
    """sum(|x|^ord)^(1 / ord) along dim; the largest or smallest |x| for inf and -inf.

    As torch.linalg.vector_norm. ord 0 counts what is not 0.
    Shapes: any, with elements along dim if ord is negative or inf. Types: floats. Errors: E093. Missing: `dtype`.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.vector_norm(np.array([3.0, 4.0])) == 5
    """
    check_arrays("vector_norm", FLOATS, input=x)
    axes, ord = _axes("vector_norm", x, dim), float(ord)
    shape = tuple(x.shape)
    check(
        0 <= ord < math.inf or 0 not in [shape[axis] for axis in axes],
        f"`vector_norm` of order {ord} of no elements: the shape is {shape}",
        "pass elements along dim, or an order from 0 on",
    )
    settings: dict[str, Any] = {"axes": axes, "keepdim": keepdim}
    if ord == math.inf:
        return _reduce(_absolute_max, x, **settings)
    if ord == -math.inf:
        return _reduce(_absolute_min, x, **settings)
    if ord == 0:
        return _reduce(_count, x, **settings)
    if ord == 1:
        return _reduce(_absolute_sum, x, **settings)
    if ord == 2 and len(axes) == x.ndim and statistics.is_direct(x):
        found = statistics.norm(x, _kept(x, axes, keepdim))
        if found is not None:
            return found
    wide = converted(x, accumulator_of(dtype_of(x)))
    if ord == 2:
        found = _root(_reduce(_square_sum, wide, **settings))
    else:
        found = _power(_reduce(_power_sum, wide, ord, **settings), 1 / ord)
    return converted(found, dtype_of(x))


@recorded
@takes_out
def logsumexp(input: Any, dim: Dims, keepdim: bool = False) -> Any:
    """log(sum(exp(input))) along dim; -inf of no elements.

    Shapes: any. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert np.isclose(ops.logsumexp(np.array([1000.0, 1000.0]), 0), 1000 + np.log(2))
    """
    check_arrays("logsumexp", FLOATS, input=input)
    axes = _axes("logsumexp", input, dim)
    gradients = _gradients(input)
    if gradients is not None and multiprocessors_of(input):
        return gradients.log_sum(
            functools.partial(_log_sum, axes=axes, keepdim=keepdim), axes, input
        )
    return _log_sum(input, axes, keepdim)


def _kept(input: Any, axes: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """The shape of a reduction along some axes."""
    sizes = enumerate(input.shape)
    return tuple(1 if at in axes else size for at, size in sizes if keepdim or at not in axes)


def _log_sum(input: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    if statistics.is_direct(input):
        found = statistics.log_sum(input, axes, _kept(input, axes, keepdim))
        if found is not None:
            return found
    dtype = dtype_of(input)
    wide = converted(input, accumulator_of(dtype))
    if not math.prod(input.shape[at] for at in axes):  # a sum of no elements has no maximum
        total = _reduce(_sum, wide, axes=axes, keepdim=keepdim)
        return converted(_log_plus(total, total), dtype)
    still = constant(wide)
    shape = tuple(1 if at in axes else size for at, size in enumerate(input.shape))
    top = _finite(_reduce(_max, still, axes=axes, keepdim=True)).reshape(shape)
    total = _reduce(_exponentials, wide, top, axes=axes, keepdim=keepdim)
    found = _log_plus(total, top.reshape(tuple(total.shape)))
    return converted(found, dtype)


# --- Places ---------------------------------------------------------------------------


def _place_forward(input: Any, *, dim: int, is_max: bool) -> Results:
    shape = tuple(input.shape) or (1,)
    choice = choose_lines(extremum_place_kernel, input, shape, dim, cpu=CPU._replace(tile=64))
    programs, lines = make_lines(shape, dim, choice=choice)
    out = Spec((*shape[:dim], *shape[dim + 1 :]), types.int64)
    x = dense(input)
    numbers = (*lines, is_max)
    return launch_results(extremum_place_kernel, programs, (x,), [out], numbers, choice.warps), ()


_place = Operator("argmax", _place_forward, None)


def _extremum_place(name: str, input: Any, dim: Any, keepdim: bool, is_max: bool) -> Any:
    check_arrays(name, NUMBERS, input=input)
    shape = tuple(input.shape)
    if dim is None:
        check(0 not in shape, f"`{name}` of no elements: the shape is {shape}", "pass elements")
        found = _place(_flat(input), dim=0, is_max=is_max)
        return found.reshape((1,) * len(shape) if keepdim else ())
    dim = check_dim(name, input, dim)
    check(
        not shape or shape[dim] > 0,
        f"`{name}` of no elements: the shape is {shape}",
        "pass elements along dim",
    )
    found = _place(constant(input), dim=dim, is_max=is_max)
    if not shape:
        return found.reshape(())
    return found.reshape((*shape[:dim], 1, *shape[dim + 1 :])) if keepdim else found


def _flat(array: Any) -> Any:
    return dense(constant(array)).reshape(-1)


@recorded
@takes_out
def argmax(input: Any, dim: Optional[int] = None, keepdim: bool = False) -> Any:
    """The first place along dim of the maximum, or of a NaN; in the flattened array without dim.

    Shapes: any with elements along dim; the result is of int64. Types: floats, integers. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.argmax(np.array([[1, 5, 5], [3, 0, 2]]), dim=1).tolist() == [1, 0]
    """
    return _extremum_place("argmax", input, dim, keepdim, True)


@recorded
@takes_out
def argmin(input: Any, dim: Optional[int] = None, keepdim: bool = False) -> Any:
    """The first place along dim of the minimum, or of a NaN; in the flattened array without dim.

    Shapes: any with elements along dim; the result is of int64. Types: floats, integers. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.argmin(np.array([[1, 5, 5], [3, 0, 2]]), dim=1).tolist() == [0, 1]
    """
    return _extremum_place("argmin", input, dim, keepdim, False)
