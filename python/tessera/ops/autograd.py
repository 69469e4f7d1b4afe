# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of differentiation.py in torch's autograd."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch.autograd import forward_ad

from tessera.calls import recording
from tessera.calls.recorded import called_name
from tessera.errors import ArgumentError
from tessera.torch.recorded import Last


def is_watched(tensors: Sequence[Any]) -> bool:
    """True if a call has to go through autograd: for a gradient, a tangent or a transform."""
    if forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        return True
    return torch.is_grad_enabled() and any(each.requires_grad for each in tensors)


def is_untraced(x: Any) -> bool:
    """True if nothing traces or transforms a call."""
    if type(x) not in (torch.Tensor, torch.nn.Parameter) or torch.compiler.is_compiling():
        return False
    return forward_ad._current_level < 0 and not torch._C._are_functorch_transforms_active()


def is_plain(x: Any) -> bool:
    """True if autograd sees a call, and nothing traces or transforms it."""
    if not x.requires_grad or not torch.is_grad_enabled():
        return False
    return x.is_floating_point() and is_untraced(x)


def call(op: Any, arrays: Sequence[Any], settings: dict[str, Any]) -> Any:
    """A call of an operator that autograd sees. Raises ArgumentError (E094) in transforms, and if the
    operator has no derivative."""
    name = called_name() or op.__name__
    if forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        raise ArgumentError(
            "E094",
            f"`{name}` has neither forward derivatives nor transforms of torch.func",
            "call it outside of torch.func and torch.autograd.forward_ad",
        )
    if op.backward is None:
        raise ArgumentError("E094", f"`{name}` has no derivative", "call it under torch.no_grad()")
    return _Call.apply(op, name, settings, *arrays)


def record(op: Any, arrays: Sequence[Any], settings: dict[str, Any]) -> Sequence[Any]:
    """The results of a call that is recorded, with their derivative."""
    recorder = recording.current()
    assert recorder is not None
    for each in arrays:
        recorder.find(each)  # as it is outside of the operator, with its gradient
    with torch.no_grad():
        results, saved = op.forward(*arrays, **settings)
    if op.backward is None and any(getattr(each, "requires_grad", False) for each in arrays):
        raise recording.NotRecorded

    def backward(saved: Sequence[Any], grads: Sequence[Any], wanted: Sequence[bool]) -> Any:
        return op.backward(saved, grads, wanted, **settings)

    recorder.memory.add_node(arrays, results, saved, backward, False, op.constants)
    return results


def record_node(
    x: Any,
    forward: Callable[[], tuple[tuple[Any, ...], tuple[Any, ...]]],
    backward: Callable[[Sequence[Any], Sequence[Any]], Any],
) -> tuple[Any, ...]:
    """The results of a part of a recorded call. `forward` returns them, and the arrays that
    `backward` needs."""
    recorder = recording.current()
    assert recorder is not None
    recorder.find(x)  # as it is outside of the part, with its gradient
    with torch.no_grad():
        results, saved = forward()

    def backward_of_node(saved: Any, grads: Any, wanted: Any) -> Sequence[Any]:
        return (backward(saved, grads),)

    recorder.memory.add_node((x,), results, saved, backward_of_node, True)
    return results


class _Call(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, op: Any, name: str, settings: dict[str, Any], *arrays: Any) -> Any:
        results, saved = op.forward(*arrays, **settings)
        ctx.save_for_backward(*saved)
        ctx.op, ctx.name, ctx.settings = op, name, settings
        constant = results[len(results) - op.constants :]
        integers = [each for each in results if not each.is_floating_point()]
        ctx.mark_non_differentiable(*constant, *integers)
        return results[0] if len(results) == 1 else tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        wanted = ctx.needs_input_grad[3:]
        with torch.no_grad():
            found = ctx.op.backward(ctx.saved_tensors, grads, wanted, **ctx.settings)
        found = [each if is_wanted else None for each, is_wanted in zip(found, wanted)]
        if torch.is_grad_enabled():  # create_graph=True
            return None, None, None, *Last.apply(ctx.name, found, *grads, *ctx.saved_tensors)
        return None, None, None, *found
