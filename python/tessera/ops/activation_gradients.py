# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradient of glu with torch, in one launch: autograd would join those of the halves by a copy."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import torch

from tessera.calls import recording
from tessera.ops.arguments import accumulator_of, dtype_of
from tessera.ops.autograd import record_node
from tessera.ops.kernels.activations import glu_backward_kernel
from tessera.ops.launching import Spec, launch
from tessera.ops.padding import row_tiles
from tessera.torch.recorded import dense


class _Glu(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, compute: Callable[[Any, int], Any], dim: int, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.compute, ctx.dim = compute, dim
        return compute(x, dim)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            y = ctx.compute(x, ctx.dim)
            (of_x,) = torch.autograd.grad(y, x, grad, create_graph=True)
            return None, None, of_x
        return None, None, _of_glu(x, grad, ctx.dim)


def _of_glu(x: Any, grad: Any, dim: int) -> Any:
    rows = math.prod(x.shape[:dim])
    length = math.prod(x.shape[dim:]) // 2
    programs, *tile = row_tiles(x, rows, length)
    spec = Spec(x.shape, dtype_of(x))
    numbers = (rows, length, *tile, accumulator_of(dtype_of(x)))
    return launch(glu_backward_kernel, programs, (dense(x), dense(grad)), [spec], numbers)[0]


def glu(compute: Callable[[Any, int], Any], dim: int, x: Any) -> Any:
    """glu along a dimension, which `compute` computes of x."""
    if recording.current() is None:
        return _Glu.apply(compute, dim, x)

    def forward() -> Any:
        return (compute(x, dim),), (x,)

    def backward(saved: Sequence[Any], grads: Sequence[Any]) -> Any:
        return _of_glu(saved[0], grads[0], dim)

    return record_node(x, forward, backward)[0]
