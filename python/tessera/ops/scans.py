# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cumulative sums, products, logarithms of sums, maxima and minima."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.language import types
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
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels.scans import (
    extremum_gradient_kernel,
    extremum_scan_kernel,
    log_scan_kernel,
    scan_kernel,
)
from tessera.ops.launching import Spec, launch, make_lines
from tessera.ops.outputs import launch_results, takes_out, takes_two
from tessera.ops.tuning import GPU, choose_lines
from tessera.runtime.arrays import find_dtype
from tessera.wording import shown

_GPU = GPU._replace(tile=1024)
_GRADIENT_GPU = GPU._replace(tile=512)
"""On an H200, gradients of extrema along columns take 150 us with it, and 200 with 1024 elements."""


def _scan(x: Any, dim: int, kind: str, dtype: types.dtype, reverse: bool = False) -> Any:
    acc = accumulator_of(dtype, dtype_of(x)) if dtype in FLOATS else types.int64
    kernel = log_scan_kernel if kind == "logsumexp" else scan_kernel
    choice = choose_lines(kernel, x, x.shape, dim, _GPU)
    programs, lines = make_lines(x.shape, dim, choice=choice)
    numbers = (*lines, acc, reverse) if kind == "logsumexp" else (*lines, acc, kind, reverse)
    spec = Spec(x.shape, dtype)
    return launch_results(kernel, programs, (dense(x),), [spec], numbers, choice.warps)[0]


def _sum_forward(input: Any, *, dim: int, dtype: types.dtype) -> Results:
    # A part of the input would have torch refuse to write to it.
    is_same = dtype == dtype_of(input)
    like = None if is_same else input[:0] if len(input.shape) else input
    return (_scan(input, dim, "sum", dtype),), (like,)


def _sum_backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, dtype: types.dtype
) -> Sequence[Any]:
    of_input = dtype if saved[0] is None else dtype_of(saved[0])
    return (_scan(grads[0], dim, "sum", of_input, reverse=True),)


@pointwise
def _times(x, y):
    return x * y


@pointwise
def _is_zero(x) -> tl.int32:
    return tl.where(x == 0, 1, 0)  # type: ignore[return-value]


@pointwise
def _without_first_zero(x, zeros: tl.int64):
    return tl.where((x == 0) & (zeros == 1), 1.0, x)


@pointwise
def _product_gradient(x, zeros: tl.int64, plain, without_zero):
    """Before the first zero, at it, and behind it."""
    behind = tl.where((x == 0) & (zeros == 1), without_zero, 0.0)
    return tl.where(zeros == 0, plain / x, behind)


def _prod_forward(input: Any, *, dim: int, dtype: types.dtype) -> Results:
    return (_scan(input, dim, "prod", dtype),), (input,)


def _prod_backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, dtype: types.dtype
) -> Sequence[Any]:
    acc = accumulator_of(dtype_of(saved[0]))
    x, grad = converted(saved[0], acc), converted(grads[0], acc)
    zeros = _scan(_is_zero(x), dim, "sum", types.int64)
    found = []
    for each in (x, _without_first_zero(x, zeros)):
        products = _times(grad, _scan(each, dim, "prod", acc))
        found.append(_scan(products, dim, "sum", acc, reverse=True))
    return (converted(_product_gradient(x, zeros, *found), dtype_of(saved[0])),)


@pointwise
def _log_parts(grad, y):
    return tl.log(tl.maximum(grad, 0.0)) - y, tl.log(tl.maximum(-grad, 0.0)) - y


@pointwise
def _from_log_parts(x, above, below):
    return tl.exp(x + above) - tl.exp(x + below)


def _log_forward(input: Any, *, dim: int) -> Results:
    acc = accumulator_of(dtype_of(input))
    y = _scan(input, dim, "logsumexp", acc)
    return (converted(y, dtype_of(input)),), (input, y)


def _log_backward(saved: Any, grads: Any, wanted: Any, *, dim: int) -> Sequence[Any]:
    input, y = saved
    acc = dtype_of(y)
    parts = [
        _scan(each, dim, "logsumexp", acc, reverse=True)
        for each in _log_parts(converted(grads[0], acc), y)
    ]
    return (converted(_from_log_parts(converted(input, acc), *parts), dtype_of(input)),)


def _extremum_forward(input: Any, *, dim: int, is_max: bool) -> Results:
    choice = choose_lines(extremum_scan_kernel, input, input.shape, dim, _GPU)
    programs, lines = make_lines(input.shape, dim, choice=choice)
    specs = [Spec(input.shape, dtype_of(input)), Spec(input.shape, types.int64)]
    values, places = launch_results(
        extremum_scan_kernel, programs, (dense(input),), specs, (*lines, is_max), choice.warps
    )
    return (values, places), (places,)


def _extremum_backward(
    saved: Any, grads: Any, wanted: Any, *, dim: int, is_max: bool
) -> Sequence[Any]:
    (grad,), (places,) = grads[:1], saved
    choice = choose_lines(extremum_gradient_kernel, grad, grad.shape, dim, _GRADIENT_GPU)
    programs, lines = make_lines(grad.shape, dim, choice=choice)
    numbers = (*lines, accumulator_of(dtype_of(grad)))
    spec = Spec(grad.shape, dtype_of(grad))
    arrays = (dense(grad), dense(places))
    return launch(extremum_gradient_kernel, programs, arrays, [spec], numbers, choice.warps)


_cumsum = Operator("cumsum", _sum_forward, _sum_backward)
_cumprod = Operator("cumprod", _prod_forward, _prod_backward)
_logcumsumexp = Operator("logcumsumexp", _log_forward, _log_backward)
_extremum = Operator("cummax", _extremum_forward, _extremum_backward)


def _wanted_dtype(name: str, input: Any, dtype: Any) -> types.dtype:
    """The type of a sum or a product: int64 of integers, as torch has it."""
    check_arrays(name, ELEMENTS, input=input)
    if dtype is None:
        return dtype_of(input) if dtype_of(input) in FLOATS else types.int64
    wanted = find_dtype(dtype)
    check(
        wanted in FLOATS or wanted == types.int64,
        f"`{name}` got dtype={shown(dtype)}",
        "pass a type of floats, or int64",
    )
    assert wanted is not None
    return wanted


@recorded
@takes_out
def cumsum(input: Any, dim: int, *, dtype: Optional[Any] = None) -> Any:
    """The sum of the elements up to each one, along dim.

    Shapes: any. Types: floats; integers and bools, whose results are int64. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.cumsum(np.array([[1, 2, 3], [4, 5, 6]]), 1).tolist() == [[1, 3, 6], [4, 9, 15]]
    """
    wanted = _wanted_dtype("cumsum", input, dtype)
    return _cumsum(input, dim=check_dim("cumsum", input, dim), dtype=wanted)


@recorded
@takes_out
def cumprod(input: Any, dim: int, *, dtype: Optional[Any] = None) -> Any:
    """The product of the elements up to each one, along dim.

    Shapes: any. Types: floats; integers and bools, whose results are int64. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        assert ops.cumprod(np.array([[1, 2, 3], [4, 5, 6]]), 0).tolist() == [[1, 2, 3], [4, 10, 18]]
    """
    wanted = _wanted_dtype("cumprod", input, dtype)
    return _cumprod(input, dim=check_dim("cumprod", input, dim), dtype=wanted)


@recorded
@takes_out
def logcumsumexp(input: Any, dim: int) -> Any:
    """log(sum(exp(x))) of the elements x up to each one, along dim.

    Shapes: any. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.logcumsumexp(np.array([1000.0, 1000.0]), 0)
        assert np.allclose(y, [1000, 1000 + np.log(2)])
    """
    check_arrays("logcumsumexp", FLOATS, input=input)
    return _logcumsumexp(input, dim=check_dim("logcumsumexp", input, dim))


@recorded
@takes_two
def cummax(input: Any, dim: int) -> tuple[Any, Any]:
    """The maximum of the elements up to each one, along dim, and its last place. A NaN is a maximum.
    -0 counts as 0, and the result has 0 for it.

    Shapes: any; places are int64. Types: floats, integers. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        values, places = ops.cummax(np.array([1, 3, 2, 3]), 0)
        assert values.tolist() == [1, 3, 3, 3] and places.tolist() == [0, 1, 1, 3]
    """
    check_arrays("cummax", NUMBERS, input=input)
    return _extremum(input, dim=check_dim("cummax", input, dim), is_max=True)


@recorded
@takes_two
def cummin(input: Any, dim: int) -> tuple[Any, Any]:
    """The minimum of the elements up to each one, along dim, and its last place. A NaN is a minimum.
    -0 counts as 0, and the result has 0 for it.

    Shapes: any; places are int64. Types: floats, integers. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        values, places = ops.cummin(np.array([3, 1, 2, 1]), 0)
        assert values.tolist() == [3, 1, 1, 1] and places.tolist() == [0, 1, 1, 3]
    """
    check_arrays("cummin", NUMBERS, input=input)
    return _extremum(input, dim=check_dim("cummin", input, dim), is_max=False)
