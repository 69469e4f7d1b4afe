# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of maxima, minima and variances with torch, in a launch or two. Parts that autograd puts together
need an array for each step. These gradients can be differentiated again.
"""

from __future__ import annotations

import math
from operator import methodcaller
from typing import Any, Callable, Sequence

import torch

import tessera.language as tl
from tessera.calls import recording
from tessera.calls.pointwise import pointwise
from tessera.calls.reductions import reduction
from tessera.ops import statistics
from tessera.ops.autograd import record_node
from tessera.torch.recorded import dense


@reduction("sum")
def _equal_ones(x, top):
    return x == top


@pointwise
def _shared(grad, x, top, count):
    # 0 / 0 if no element is equal to an extremum that is NaN, as in torch.
    return tl.where(x == top, grad, 0.0 * grad) / count


class _Extremum(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, op: Any, axes: tuple[int, ...], keepdim: bool, x: Any) -> Any:
        found = _found(op, x, axes, keepdim) or (op.compute((x,), axes, keepdim),)
        ctx.save_for_backward(x, *found)
        ctx.axes = axes
        return found[0]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, *found = (each.detach() for each in ctx.saved_tensors)
        return None, None, None, _of_extremum(x, found, grad, ctx.axes)


def _found(op: Any, x: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The extrema with their places and counts. None if there is no launch for these."""
    shape = _kept(x.shape, axes) if keepdim else _left(x.shape, axes)
    return statistics.extremum(x, axes, shape, op.kind == "max")


def _of_extremum(x: Any, found: Sequence[Any], grad: Any, axes: tuple[int, ...]) -> Any:
    is_last = recording.current() is not None or not torch.is_grad_enabled()
    if is_last and len(found) > 1:
        return statistics.extremum_gradient(x, found, grad, axes)
    shape = _kept(x.shape, axes)
    top, grad = found[0].reshape(shape), dense(grad).reshape(shape)
    count = _typed(_equal_ones(x, top, axis=axes, keepdims=True), grad.dtype)
    return _shared(grad, x, top, count)


def _left(shape: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for at, size in enumerate(shape) if at not in axes)


def _kept(shape: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if at in axes else size for at, size in enumerate(shape))


def _typed(array: Any, dtype: Any) -> Any:
    return array if array.dtype == dtype else recording.apply(methodcaller("to", dtype), array)


@pointwise
def _weighted(grad, x, found):
    return grad * tl.exp(x - tl.where(found - found == 0, found, 0.0))  # 0 for infinite ones


class _LogSum(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, compute: Any, axes: tuple[int, ...], x: Any) -> Any:
        found = compute(x)
        ctx.save_for_backward(x, found)
        ctx.axes = axes
        return found

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, found = ctx.saved_tensors
        return None, None, _of_log_sum(x, found, grad, ctx.axes)


def _of_log_sum(x: Any, found: Any, grad: Any, axes: tuple[int, ...]) -> Any:
    shape = _kept(x.shape, axes)
    return _weighted(dense(grad).reshape(shape), x, found.reshape(shape))


@pointwise
def _of_moments(x, mean, of_variance, of_mean, factor, share):
    return of_variance * factor * (x - mean) + of_mean * share


class _Moments(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, compute: Any, average: Any, axes: Any, divisor: float, x: Any) -> Any:
        variance, center = compute(x)
        ctx.save_for_backward(x, center)
        ctx.average, ctx.axes, ctx.divisor = average, axes, divisor
        return variance, center.clone()

    @staticmethod
    def backward(ctx: Any, of_variance: Any, of_mean: Any) -> Any:
        x, center = ctx.saved_tensors
        if torch.is_grad_enabled():  # the mean depends on x, too
            center = ctx.average(x)
        found = _of_both(x, center, (of_variance, of_mean), ctx.axes, ctx.divisor)
        return None, None, None, None, found


def _of_both(
    x: Any, center: Any, grads: Sequence[Any], axes: tuple[int, ...], divisor: float
) -> Any:
    shape = _kept(x.shape, axes)
    of_variance, of_mean = (dense(each).reshape(shape) for each in grads)
    count = math.prod(x.shape[axis] for axis in axes)
    factor = 2.0 / divisor if divisor else math.inf
    found = _of_moments(x, center.reshape(shape), of_variance, of_mean, factor, 1.0 / count)
    return _typed(found, x.dtype)


def extremum(op: Any, x: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The maximum or minimum. Equal elements share the gradient, as in torch."""
    if recording.current() is not None:

        def forward() -> Any:
            found = _found(op, x, axes, keepdim) or (op(x, axis=axes, keepdims=keepdim),)
            return found[:1], (x, *found)

        def backward(saved: Sequence[Any], grads: Sequence[Any]) -> Any:
            return _of_extremum(saved[0], saved[1:], grads[0], axes)

        return record_node(x, forward, backward)[0]
    return _Extremum.apply(op, axes, keepdim, x)


def moments(compute: Any, average: Any, axes: tuple[int, ...], divisor: float, x: Any) -> Any:
    """The variance and the mean, which `compute` computes of x.

    average: a function of x that has the mean with a gradient.
    divisor: the divisor of the squares' sum.
    """
    if recording.current() is not None:

        def forward() -> Any:
            variance, center = compute(x)
            return (variance, recording.apply(torch.clone, center)), (x, center)

        def backward(saved: Sequence[Any], grads: Sequence[Any]) -> Any:
            return _of_both(saved[0], saved[1], grads, axes, divisor)

        return record_node(x, forward, backward)
    return _Moments.apply(compute, average, axes, divisor, x)


def log_sum(compute: Callable[[Any], Any], axes: tuple[int, ...], x: Any) -> Any:
    """logsumexp, which `compute` computes of x."""
    if recording.current() is not None:

        def forward() -> Any:
            found = compute(x)
            return (found,), (x, found)

        def backward(saved: Sequence[Any], grads: Sequence[Any]) -> Any:
            return _of_log_sum(saved[0], saved[1], grads[0], axes)

        return record_node(x, forward, backward)[0]
    return _LogSum.apply(compute, axes, x)
