# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of maxima, minima and variances with torch, in a launch or two. Parts that autograd puts together
need an array for each step. These gradients can be differentiated again.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.autograd import forward_ad

import tessera.language as tl
from tessera.calls.pointwise import pointwise
from tessera.calls.reductions import reduction


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
        top = op.compute((x,), axes, True)
        ctx.save_for_backward(x, top)
        ctx.axes = axes
        return top if keepdim else top.reshape(_without(x.shape, axes))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, top = (each.detach() for each in ctx.saved_tensors)
        count = _equal_ones(x, top, axis=ctx.axes, keepdims=True).to(grad.dtype)
        return None, None, None, _shared(grad.reshape(top.shape), x, top, count)


def _without(shape: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for at, size in enumerate(shape) if at not in axes)


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
        shape = tuple(1 if at in ctx.axes else size for at, size in enumerate(x.shape))
        count = math.prod(x.shape[axis] for axis in ctx.axes)
        factor = 2.0 / ctx.divisor if ctx.divisor else math.inf
        found = _of_moments(
            x,
            center.reshape(shape),
            of_variance.reshape(shape),
            of_mean.reshape(shape),
            factor,
            1.0 / count,
        )
        return None, None, None, None, found.to(x.dtype)


def is_plain(x: Any) -> bool:
    """True if autograd sees a call, and nothing traces or transforms it."""
    if type(x) not in (torch.Tensor, torch.nn.Parameter) or not x.is_floating_point():
        return False
    if not x.requires_grad or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    return forward_ad._current_level < 0 and not torch._C._are_functorch_transforms_active()


def extremum(op: Any, x: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The maximum or minimum. Equal elements share the gradient, as in torch."""
    return _Extremum.apply(op, axes, keepdim, x)


def moments(compute: Any, average: Any, axes: tuple[int, ...], divisor: float, x: Any) -> Any:
    """The variance and the mean, which `compute` computes of x.

    average: a function of x that has the mean with a gradient.
    divisor: the divisor of the squares' sum.
    """
    return _Moments.apply(compute, average, axes, divisor, x)
