# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradient of maxima and minima with torch, of two launches. torch's own needs an array for each step.

Equal elements share the gradient, as in torch. It can be differentiated again.
"""

from __future__ import annotations

from typing import Any, Optional

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


def reduce(op: Any, x: Any, axes: tuple[int, ...], keepdim: bool) -> Optional[Any]:
    """The maximum or minimum with a gradient; None if it is for torch to trace or to transform."""
    is_plain = type(x) in (torch.Tensor, torch.nn.Parameter) and x.is_floating_point()
    if not is_plain or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return None
    if forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        return None
    return _Extremum.apply(op, axes, keepdim, x)
