# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators (`tessera.pointwise`) on tensors of torch.

Eager calls launch, in a `torch.autograd.Function` if a gradient is asked for. An operator of torch,
which costs ten times a launch, is made where torch traces (Dynamo, export, fake tensors). Transforms
of torch.func and forward derivatives call a Function with rules for them.
"""

from __future__ import annotations

import ast
import functools
import math
import re
import weakref
from operator import methodcaller
from typing import Any, Callable, Optional, Sequence

import torch
from torch._functorch.utils import unwrap_dead_wrappers
from torch.autograd import forward_ad

from tessera import _C
from tessera.calls import recording
from tessera.calls.derivatives import derive, is_differentiable
from tessera.calls.elements import make_text_function
from tessera.calls.plans import Operator, Planned, Run, kinds_of, result_dtypes
from tessera.calls.scalars import is_identity
from tessera.errors import ArgumentError, TesseraError
from tessera.runtime.jit import jit
from tessera.torch import keeping, recipes
from tessera.torch.direct_nodes import DirectNode, direct_apply
from tessera.torch.operators import op as torch_operator
from tessera.torch.quiet_calls import PLAIN, count_modes, functorch_is_active
from tessera.torch.recorded import apply_of, restored


def learn(
    op: Operator, planned: Planned, args: Sequence[Any], outs: Optional[Sequence[Any]]
) -> None:
    """Has calls with such arguments, which are plain, run without Python from now on."""
    checks = checks_of(planned, args)
    if outs is not None:
        refused = any(getattr(each, "requires_grad", False) for each in (*args, *outs))
        plan = planned.call_plan(
            checks=checks,
            apply=NotImplemented if refused else None,
            finish=torch.autograd.graph.increment_version,
            spans=planned.spans(),
        )
        op._learn(plan, *args, out=outs[0])
        return
    requires = _requires(planned.kinds, args)
    apply: Any = None
    if planned.kept is not None:
        op._learn(planned.kept, *args)
        return
    if _has_gradient(op, planned, requires):
        try:
            gradient(op, requires)
            apply = _apply_of(op)
        except TesseraError:  # which a call with a gradient raises
            apply = NotImplemented
    examples = tuple(make() for make in planned.make_all())
    op._learn(planned.call_plan(examples=examples, checks=checks, apply=apply), *args)


def checks_of(planned: Planned, args: Sequence[Any]) -> tuple[tuple[Callable[[], Any], Any], ...]:
    """Functions, and what they return while the plan holds."""
    default = _default_dtype(planned, args)
    return () if default is None else ((torch.get_default_dtype, default),)


def add_node(
    recorder: recording.Recorder,
    op: Operator,
    planned: Planned,
    args: Sequence[Any],
    results: Sequence[Any],
) -> None:
    """Has a recorded call have a derivative."""
    if not torch.is_grad_enabled() or not _has_gradient(
        op, planned, _requires(planned.kinds, args)
    ):
        return
    numbers = [None if isinstance(arg, torch.Tensor) else (arg,) for arg in args]

    def backward(saved: Sequence[Any], grads: Sequence[Any], wanted: Sequence[bool]) -> Any:
        given = [each if number is None else number[0] for each, number in zip(saved, numbers)]
        return _gradients(op, grads, given, tuple(wanted))

    recorder.memory.add_node(
        args,
        results,
        [arg if isinstance(arg, torch.Tensor) else None for arg in args],
        backward,
        True,
    )


def _requires(kinds: str, args: Sequence[Any]) -> tuple[bool, ...]:
    """The arguments that require a gradient."""
    return tuple(kind in "az" and bool(arg.requires_grad) for kind, arg in zip(kinds, args))


def _has_gradient(op: Operator, planned: Planned, requires: Sequence[bool]) -> bool:
    return (
        any(requires)
        and any(map(is_differentiable, op.scalar.results))
        and any(each.dtype.is_floating_point for each in planned.results)
    )


def _default_dtype(planned: Planned, args: Sequence[Any]) -> Any:
    """torch's default type, if the results' types depend on it, or None."""
    takes_default = any(each.dtype.is_floating_point for each in planned.results) and not all(
        arg.is_floating_point() for arg in args if isinstance(arg, torch.Tensor)
    )
    return torch.get_default_dtype() if takes_default else None


def make_run(
    op: Operator, planned: Planned, args: Sequence[Any], outs: Optional[Sequence[Any]] = None
) -> Run:
    """The calls that `planned` is for. Arguments like `args` are plain tensors and numbers."""
    plain = _make_plain(planned, args)
    kinds = planned.kinds
    requires = _requires(kinds, args)
    has_gradient = _has_gradient(op, planned, requires)
    is_refused = outs is not None and any(
        getattr(each, "requires_grad", False) for each in (*args, *outs)
    )
    default = _default_dtype(planned, args)
    if has_gradient and outs is None:
        options = {"checks": checks_of(planned, args)}
        planned.kept = keeping.plan_of(op, planned, args, requires, options, _as_argument)
    kept = planned.kept

    def run(args: Sequence[Any], outs: Optional[Sequence[Any]]) -> Any:
        if _is_watched():
            return call(op, args, outs)
        if default is not None and torch.get_default_dtype() != default:
            return make_run(op, Planned(op, "torch", args, outs), args, outs)(args, outs)
        if (has_gradient or is_refused) and torch.is_grad_enabled():
            if outs is not None:
                _refuse_gradients(op, args, outs)
            else:
                if op.origin is None:  # what has none is refused now, not by `backward()`
                    gradient(op, requires)
                if kept is not None:
                    # As torch's own `apply` does: tensors of a transform that has ended.
                    return apply_of(op.__name__)(kept, *unwrap_dead_wrappers(args))
                return _Eager.apply(op, plain, *args)
        try:
            result = plain(args, outs)
            if outs is not None:
                torch.autograd.graph.increment_version(outs)
            return result
        except ArgumentError:
            if any(map(_is_batched, args)):
                raise ArgumentError(
                    "E057",
                    f"arguments of `{op.__name__}` are batched by is_grads_batched=True, an older "
                    "vmap of torch, for which operators have no rule",
                    "use torch.func.vmap, jacrev or jacfwd",
                ) from None
            raise

    at = _find_like(planned, args)
    if at is None or has_gradient or default is not None:
        return run
    empty_like, kernel, grid, rest = torch.empty_like, planned.kernel, planned.grid, planned.rest

    def run_at_once(args: Sequence[Any], outs: Optional[Sequence[Any]]) -> Any:
        """The same without calls that most calls of an operator do not need."""
        if (
            outs is not None
            or functorch_is_active()
            or count_modes()
            or forward_ad._current_level >= 0
        ):
            return run(args, outs)
        out = empty_like(args[at])
        try:
            kernel[grid](*args, out, *rest)
        except ArgumentError:
            return run(args, outs)  # which says more
        return out

    return run_at_once


def _find_like(planned: Planned, args: Sequence[Any]) -> Optional[int]:
    """The place of an argument that the only result is like, if numbers are passed on as they are."""
    if len(planned.results) > 1 or planned.convert or planned.is_empty:
        return None
    result = planned.results[0]
    for at in planned.array_places:
        like = args[at]
        if (like.shape, like.stride(), like.dtype) == (result.shape, result.strides, result.dtype):
            return at
    return None


def _is_batched(arg: Any) -> bool:
    """True for a tensor of the older vmap, which `torch.autograd.grad(is_grads_batched=True)` has."""
    return isinstance(arg, torch.Tensor) and torch._C._functorch.is_legacy_batchedtensor(arg)


def _make_plain(planned: Planned, args: Sequence[Any]) -> Run:
    """`planned.run()`, faster where a result is like an argument."""
    at = _find_like(planned, args)
    if at is None:
        return planned.run()
    empty_like, kernel, grid, rest = torch.empty_like, planned.kernel, planned.grid, planned.rest

    def run(args: Sequence[Any], outs: Optional[Sequence[Any]]) -> Any:
        if outs is None:
            out = empty_like(args[at])
        else:
            planned.check_memory(args, outs)
            out = outs[0]
        kernel[grid](*args, out, *rest)
        return out

    return run


def _is_watched() -> bool:
    """True if something else than autograd has to see the operator."""
    return functorch_is_active() or count_modes() > 0 or _has_tangents()


def _has_tangents() -> bool:
    return forward_ad._current_level >= 0 and bool(torch._C._is_fwd_grad_enabled())


def is_plain(args: Sequence[Any]) -> bool:
    """True if a call can launch on the arguments."""
    return _are_plain(args) and not _is_watched()


def call(op: Operator, args: Sequence[Any], out: Any, kinds: str = "") -> Any:
    """A call that torch traces or transforms."""
    if torch.compiler.is_compiling():
        op.prepare()
    kinds = kinds or kinds_of(op.scalar, "torch", [1 if _is_open(arg) else arg for arg in args])
    if torch.compiler.is_compiling() or count_modes() > 0 or not _are_plain(args):
        arrays, numbers, constants = _packed(args, kinds)
        if op.operator is None:
            prepare_operator(op)
        result = op.operator(arrays, numbers, _typed(args, kinds), constants)
    elif functorch_is_active() or _has_tangents():
        result = _Transformed.apply(op, kinds, *args)
    else:
        return run_as(op, args, kinds)
    if out is None:
        return result
    if isinstance(result, torch.Tensor):
        return (out[0] if isinstance(out, (tuple, list)) else out).copy_(result)
    return tuple(each.copy_(value) for each, value in zip(out, result))


def _are_plain(args: Sequence[Any]) -> bool:
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    has_memory = not tensors or not all(arg.is_meta for arg in tensors)
    return has_memory and all(type(arg) in PLAIN for arg in tensors)


def run_as(op: Any, args: Sequence[Any], kinds: str) -> Any:
    """A call of plain tensors that takes tensors as `kinds` says: as with or without dimensions."""
    if kinds == kinds_of(op.scalar, "torch", args):
        return op(*args)
    planned = Planned(op, "torch", args, None, kinds)
    return make_run(op, planned, args)(args, None)


def gradient(op: Operator, wanted: tuple[bool, ...]) -> Any:
    """The operator that computes the gradients of the `wanted` arguments."""
    known = op.gradients
    if wanted not in known:
        made = type(op)(derive(op.scalar, wanted, op.derivative), "same")
        made.origin = op, wanted
        known[wanted] = made
    return known[wanted]


def _gradients(
    op: Operator, grads: Sequence[Any], args: Sequence[Any], wanted: tuple[bool, ...]
) -> list[Any]:
    """A gradient for each argument, None for those that are not wanted."""
    if not any(wanted):
        return [None] * len(args)
    given = [grad for grad, dtype in zip(grads, op.scalar.results) if is_differentiable(dtype)]
    made = gradient(op, wanted)(*given, *args)
    found = iter(made if isinstance(made, tuple) else (made,))
    return [
        _as_argument(next(found), arg) if is_wanted else None
        for arg, is_wanted in zip(args, wanted)
    ]


def _as_argument(value: Any, arg: Any) -> Any:
    if value.shape != arg.shape:
        value = recording.apply(methodcaller("sum_to_size", arg.shape), value)
    if value.dtype == arg.dtype:
        return value
    return recording.apply(methodcaller("to", arg.dtype), value)


def _refuse_gradients(op: Operator, args: Sequence[Any], outs: Sequence[Any]) -> None:
    for param, arg in zip((*op.scalar.params, *(None for _ in outs)), (*args, *outs)):
        if getattr(arg, "requires_grad", False):
            raise ArgumentError(
                "E089",
                f"{f'argument `{param.name}`' if param else '`out`'} of `{op.__name__}` requires a "
                "gradient, and a call with `out` has none",
                "call it under torch.no_grad(), or without `out`",
            )


class _Eager(torch.autograd.Function):  # type: ignore[misc]
    """A call with a gradient, outside of transforms."""

    @staticmethod
    def forward(ctx: Any, op: Operator, plain: Run, *args: Any) -> Any:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.op = op
        # None for each tensor, which autograd keeps.
        ctx.numbers = (
            None
            if len(tensors) == len(args)
            else [None if isinstance(arg, torch.Tensor) else (arg,) for arg in args]
        )
        result = plain(args, None)
        if not isinstance(result, torch.Tensor):
            _mark(ctx, result)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        args = restored(ctx)
        return None, None, *_gradients(ctx.op, grads, args, ctx.needs_input_grad[2:])


class _Known(DirectNode):
    """The same by a plan, which is the first argument. Each operator has a subclass, whose `forward`
    and `backward` run without Python (python/src/calls/Autograd.cpp)."""

    op: Operator

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The same in Python: torch traces it, and it computes gradients of unknown kinds."""
        op = ctx._forward_cls.op
        return None, *_gradients(op, grads, restored(ctx), ctx.needs_input_grad[1:])


def _apply_of(op: Operator) -> Callable[..., Any]:
    """`apply` of the operator's own subclass of `_Known`, without what it does for transforms."""
    if op.apply is None:
        scope = {"op": op, "forward": staticmethod(_C.run_forward)}
        function: Any = type(op.__name__, (_Known,), scope)
        context = function._backward_cls
        context.numbers, context.gradients = None, op.gradients
        context.fit, context.mark = staticmethod(_as_argument), staticmethod(_mark)
        context.apply = _C.run_backward
        op.apply = direct_apply(function)
    return op.apply  # type: ignore[no-any-return]


class _Transformed(torch.autograd.Function):  # type: ignore[misc]
    """The same inside transforms of torch.func, and where arguments have tangents."""

    @staticmethod
    def forward(op: Operator, kinds: str, *args: Any) -> Any:
        return call(op, args, None, kinds)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        op, _, *args = inputs
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.op = op
        ctx.numbers = [None if isinstance(arg, torch.Tensor) else (arg,) for arg in args]
        _mark(ctx, output if isinstance(output, tuple) else (output,))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        args = restored(ctx)
        return None, None, *_gradients(ctx.op, grads, args, tuple(ctx.needs_input_grad[2:]))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return _tangents(ctx.op, restored(ctx), tangents[2:])

    @staticmethod
    def vmap(info: Any, in_dims: Any, op: Operator, kinds: str, *args: Any) -> Any:
        result = call(op, _batched(args, in_dims[2:]), None, kinds)
        return result, 0 if isinstance(result, torch.Tensor) else (0,) * len(result)


def _mark(ctx: Any, results: Sequence[Any]) -> None:
    ctx.mark_non_differentiable(*[each for each in results if not each.is_floating_point()])


def _tangents(op: Operator, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangents of the results: the derivative by each argument, applied to its tangent."""
    places = [at for at, dtype in enumerate(op.scalar.results) if is_differentiable(dtype)]
    found: list[Any] = [None] * len(op.scalar.results)
    for at, tangent in enumerate(tangents):
        if not isinstance(tangent, torch.Tensor):
            continue
        wanted = tuple(each == at for each in range(len(args)))
        for place in places:
            grads = [tangent if each == place else 0.0 for each in places]
            part = gradient(op, wanted)(*grads, *args)
            found[place] = part if found[place] is None else found[place] + part
    return found[0] if len(found) == 1 else tuple(found)


def _batched(args: Sequence[Any], in_dims: Sequence[Any]) -> list[Any]:
    """The arguments with the batch as their first dimension, and room for broadcasting behind it."""
    ranks = [
        arg.ndim - (dim is not None)
        for arg, dim in zip(args, in_dims)
        if isinstance(arg, torch.Tensor)
    ]
    found = []
    for arg, dim in zip(args, in_dims):
        if dim is not None:
            arg = arg.movedim(dim, 0)
            for _ in range(max(ranks) - arg.ndim + 1):
                arg = arg.unsqueeze(1)
        found.append(arg)
    return found


# --- Reductions -----------------------------------------------------------------------


def call_reduction(op: Any, args: Sequence[Any], axis: Any, keepdims: bool) -> Any:
    """A call of an operator of `tessera.reduction`.

    torch itself reduces the elements where it traces or transforms, and for a gradient of what is no
    sum.
    """
    has_gradient = torch.is_grad_enabled() and any(
        isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args
    )
    if torch.compiler.is_compiling() or not is_plain(args):
        return _reduced_by_torch(op, args, axis, keepdims)
    if not has_gradient:
        return op.compute(args, axis, keepdims)
    if op.kind not in ("sum", "mean"):
        return _reduced_by_torch(op, args, axis, keepdims, _returns_its_argument(op))
    wanted = tuple(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args)
    gradient(op.elements, wanted)  # what has none is refused now
    return _Reduced.apply(op, axis, keepdims, *args)


def _reduced_by_torch(
    op: Any, args: Sequence[Any], axis: Any, keepdims: bool, is_plain_argument: bool = False
) -> Any:
    value = args[0] if is_plain_argument else op.elements(*args)
    axes = tuple(range(value.ndim)) if axis is None else axis
    if axes == ():  # torch would reduce along all
        value, axes, keepdims = value.unsqueeze(0), (0,), False
    name = f"a{op.kind}" if op.kind in ("max", "min") else op.kind
    if op.kind != "prod":
        return getattr(torch, name)(value, axes, keepdim=keepdims)
    listed = axes if isinstance(axes, (tuple, list)) else (axes,)
    for each in listed:
        value = torch.prod(value, each, keepdim=True)
    return value if keepdims else value.squeeze(listed)


def reduction_checks() -> tuple[tuple[Callable[[], Any], Any], ...]:
    """Functions, and what they return while the plan of a reduction holds."""
    return ((torch.get_default_dtype, torch.get_default_dtype()),)


def _returns_its_argument(op: Any) -> bool:
    """True if the elements that a reduction reduces are those of its argument."""
    return op.elements.derivative is None and is_identity(op.elements.scalar)


def reduction_plan(
    plan: Callable[..., _C.CallPlan], args: Sequence[Any], result: Any
) -> Callable[[], _C.CallPlan]:
    """The plan of a reduction's call. Python does those with a gradient."""
    requires = any(getattr(arg, "requires_grad", False) for arg in args)
    return functools.partial(
        plan,
        examples=(
            torch.empty_strided(
                result.shape, result.stride(), dtype=result.dtype, device=result.device
            ),
        ),
        checks=reduction_checks(),
        apply=NotImplemented if requires else None,
    )


class _Reduced(torch.autograd.Function):  # type: ignore[misc]
    """A sum or a mean with a gradient."""

    @staticmethod
    def forward(ctx: Any, op: Any, axis: Any, keepdims: bool, *args: Any) -> Any:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.numbers = [None if isinstance(arg, torch.Tensor) else (arg,) for arg in args]
        ctx.op, ctx.axis, ctx.keepdims = op, axis, keepdims
        return op.compute(args, axis, keepdims)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        wanted = tuple(ctx.needs_input_grad[3:])
        return (
            None,
            None,
            None,
            *_reduced_gradients(ctx.op, ctx.axis, ctx.keepdims, grad, restored(ctx), wanted),
        )


def _reduced_gradients(
    op: Any, axis: Any, keepdims: bool, grad: Any, args: Sequence[Any], wanted: tuple[bool, ...]
) -> list[Any]:
    """The gradients of a sum or a mean."""
    grad, shape, count = _aligned(grad, axis, keepdims, args)
    is_view = _returns_its_argument(op)
    is_scaled = op.kind == "mean" and not is_view and _can_scale(op.elements)
    if op.kind == "mean" and not is_scaled:
        grad = _quotient(type(op.elements))(grad, count)
    grad = grad.expand(shape)  # a gradient may need none of the arguments, but has their shape
    if is_view:
        return [_as_argument(grad, args[0])]  # as torch's own
    if is_scaled:
        return _gradients(_scaled(op.elements), (grad,), (*args, 1.0 / count), (*wanted, False))[
            :-1
        ]
    return _gradients(op.elements, (grad,), args, wanted)


def _aligned(grad: Any, axis: Any, keepdims: bool, args: Sequence[Any]) -> tuple[Any, Any, float]:
    """The gradient of a reduction with all dimensions, the shape of its elements, and how many are reduced to
    one."""
    shape = torch.broadcast_shapes(*(arg.shape for arg in args if isinstance(arg, torch.Tensor)))
    axes = range(len(shape)) if axis is None else axis
    axes = sorted(each % len(shape) for each in ([axes] if isinstance(axes, int) else axes))
    if not keepdims:
        for each in axes:
            grad = grad.unsqueeze(each)
    return grad, shape, float(max(1, math.prod(shape[each] for each in axes)))


def _can_scale(op: Operator) -> bool:
    return op.derivative is None and not any(param.is_constexpr for param in op.scalar.params)


_scaled_operators: "weakref.WeakKeyDictionary[Operator, Operator]" = weakref.WeakKeyDictionary()


def _scaled(op: Operator) -> Operator:
    """The operator times a last argument, a number. Its gradient is one launch, which takes the factor of
    a mean, too."""
    found = _scaled_operators.get(op)
    if found is None:
        scalar = op.scalar
        names = [param.name for param in scalar.params]
        notes = [f": tl.{repr(each).rpartition('.')[2]}" if each else "" for each in scalar.fixed]
        params = ", ".join(map("".join, zip(names, notes)))
        text = (
            f"def {op.__name__}({params}, scaled_by_):\n"
            f"    return scalar_function_({', '.join(names)}) * scaled_by_\n"
        )
        scope = {"scalar_function_": scalar.function}
        made = jit(make_text_function(op.__name__, text, scalar.function.__module__, scope))
        make: Any = type(op)
        found = _scaled_operators[op] = make(made, "float" if scalar.to_float else "same")
    return found


_quotients: list[Any] = []


def _quotient(make: Callable[..., Any]) -> Any:
    """An operator that divides; `make` makes one of a scalar function."""

    def quotient(x, y):  # type: ignore[no-untyped-def]
        return x / y

    if not _quotients:
        _quotients.append(make(jit(quotient)))
    return _quotients[0]


def flagged(op: Any, args: Sequence[Any]) -> Optional[keeping.Flagged]:
    """The reduction that stores flags for the gradient of a recorded call. None if there is no gradient, or if
    it reads the arguments."""
    requires = tuple(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args)
    if not (any(requires) and torch.is_grad_enabled()) or op.kind not in ("sum", "mean"):
        return None
    if _returns_its_argument(op) or not _can_scale(op.elements):
        return None
    return keeping.flagged(op, _scaled(op.elements), args, requires)


def add_reduction_node(
    recorder: recording.Recorder,
    op: Any,
    how: tuple[Any, bool],
    args: Sequence[Any],
    made: Sequence[Any],
    flagged: Optional[keeping.Flagged],
) -> None:
    """Has a recorded call have a derivative. Raises NotRecorded if it is not one of ours.

    how: the axes, and if these are kept with extent 1.
    made: the result, and with `flagged` its flags.
    """
    if (
        not torch.is_grad_enabled()
        or not any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args)
        or not made[0].is_floating_point()
    ):
        return
    if op.kind not in ("sum", "mean"):
        raise recording.NotRecorded
    numbers = [None if isinstance(arg, torch.Tensor) else (arg,) for arg in args]

    def backward(saved: Sequence[Any], grads: Sequence[Any], wanted: Sequence[bool]) -> Any:
        given = [each if number is None else number[0] for each, number in zip(saved, numbers)]
        if flagged is None:
            return _reduced_gradients(op, *how, grads[0], given, tuple(wanted))
        flags = saved[-1]
        grad, shape, count = _aligned(grads[0], *how, (flags,))
        given.append(1.0 / count if op.kind == "mean" else 1.0)
        found = flagged.gradients(grad.expand(shape), given, flags)
        return [
            None if each is None else _as_argument(each, arg) for each, arg in zip(found, examples)
        ]

    saved = [arg if isinstance(arg, torch.Tensor) else None for arg in args]
    examples: Sequence[Any] = ()
    if flagged is not None:
        # Without memory, for their shapes and types.
        examples = [None if each is None else each.detach().to("meta") for each in saved]
        saved = [each if flagged.reads(at) else None for at, each in enumerate(saved)]
        saved.append(made[1])
    recorder.memory.add_node(args, made[:1], saved, backward, True)


# --- The operator of torch ------------------------------------------------------------


def _packed(args: Sequence[Any], kinds: str) -> tuple[list[Any], list[Any], str]:
    arrays = [arg for arg, kind in zip(args, kinds) if kind in "az"]
    numbers = [arg for arg, kind in zip(args, kinds) if kind == "n"]
    return arrays, numbers, repr([arg for arg, kind in zip(args, kinds) if kind == "c"])


def _typed(args: Sequence[Any], kinds: str) -> str:
    """The kinds with the type of each number: `b`, `i` or `f`."""
    return "".join(
        kind if kind != "n" else "b" if isinstance(arg, bool) else _letter(arg)
        for arg, kind in zip(args, kinds)
    )


def _letter(number: Any) -> str:
    return "i" if isinstance(number, (int, torch.SymInt)) else "f"


def _is_open(number: Any) -> bool:
    """True for a number that is computed from a shape, and has no value yet: to ask for it fixes the shape."""
    return isinstance(number, (torch.SymInt, torch.SymFloat))


def unpacked(
    arrays: Sequence[Any],
    numbers: Sequence[Any],
    kinds: str,
    constants: str,
    has_values: bool = True,
) -> tuple[list[Any], str]:
    """The arguments, and their kinds as `Planned` has them.

    Numbers without values yet stay what they are, or are 1 if values do not matter.
    """
    tensors, scalars, others = iter(arrays), iter(numbers), iter(ast.literal_eval(constants))
    types = {"b": bool, "i": int, "f": float}
    args = []
    for kind in kinds:
        if kind in types:
            number = next(scalars)
            if _is_open(number):
                args.append(number if has_values else types[kind](1))
            else:
                args.append(types[kind](number))
        else:
            args.append(next(others) if kind == "c" else next(tensors))
    return args, re.sub("[bif]", "n", kinds)


def prepare_operator(op: Operator) -> bool:
    """Makes the operator, and the one of what is made of it; True."""
    recipes.prepare(_make_operator_of_recipes)
    return operator_of(op) is not None


def operator_of(op: Operator) -> Any:
    """The operator of torch that does the calls of `op`. Its arguments are the tensors, the numbers,
    a letter for each argument, and the constants as text."""
    if op.operator is None:
        if op.origin is None:
            op.operator = _make_operator(op)
        else:
            recipes.prepare(_make_operator_of_recipes)
            op.operator = recipes.ByRecipe(recipe_of(op), len(op.scalar.results))
    return op.operator


def recipe_of(op: Operator) -> str:
    """The text by which graphs have an operator."""
    return recipes.recipe_of(op, lambda each: str(operator_of(each)._qualname))


_used: dict[str, int] = {}


def _make_operator(op: Operator) -> Any:
    name = re.sub(r"\W+", "_", f"{op.__module__}_{op.__qualname__}")
    number = _used[name] = _used.get(name, 0) + 1
    count = len(op.scalar.results)

    def run(arrays: Any, numbers: Any, kinds: str, constants: str) -> Any:
        return _run_plainly(op, arrays, numbers, kinds, constants)

    def fake(arrays: Any, numbers: Any, kinds: str, constants: str) -> Any:
        return make_fake(op, *unpacked(arrays, numbers, kinds, constants, False))

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        arrays, ctx.numbers, ctx.kinds, ctx.constants = inputs
        ctx.save_for_backward(*arrays)

    def backward(ctx: Any, *grads: Any) -> Any:
        # torch takes an empty list for one of tensors.
        return _operator_gradients(op, ctx, grads), None if ctx.numbers else [], None, None

    def vmap(info: Any, in_dims: Any, arrays: Any, numbers: Any, kinds: str, constants: str) -> Any:
        result = operator(_batched(arrays, in_dims[0]), numbers, kinds, constants)
        return result, 0 if count == 1 else (0,) * count

    qualified = f"tessera::pointwise_{name}" + (f"_{number}" if number > 1 else "")
    operator = torch_operator(
        qualified,
        schema="(Tensor[] arrays, Scalar[] numbers, str kinds, str constants) -> "
        + ("Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"),
        fake=fake,
        backward=backward,
        setup_context=setup_context,
        vmap=vmap,
    )(run)
    recipes.users[qualified] = op
    operator.generate = _generate
    return operator


def _make_operator_of_recipes() -> Any:
    """The operator of torch for all that is made of other operators."""

    def find(recipe: str) -> Operator:
        return recipes.find(recipe, gradient)

    def run(arrays: Any, numbers: Any, kinds: str, constants: str, recipe: str) -> Any:
        found = _run_plainly(find(recipe), arrays, numbers, kinds, constants)
        return [found] if isinstance(found, torch.Tensor) else list(found)

    def fake(arrays: Any, numbers: Any, kinds: str, constants: str, recipe: str) -> Any:
        found = make_fake(find(recipe), *unpacked(arrays, numbers, kinds, constants, False))
        return [found] if isinstance(found, torch.Tensor) else list(found)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        arrays, ctx.numbers, ctx.kinds, ctx.constants, ctx.recipe = inputs
        ctx.save_for_backward(*arrays)
        ctx.facts = [(each.shape, each.dtype, each.device) for each in output]

    def backward(ctx: Any, grads: Any) -> Any:
        given = [
            torch.zeros(facts[0], dtype=facts[1], device=facts[2]) if each is None else each
            for each, facts in zip(grads, ctx.facts)
        ]
        found = _operator_gradients(find(ctx.recipe), ctx, given)
        return found, None if ctx.numbers else [], None, None, None

    def vmap(
        info: Any, in_dims: Any, arrays: Any, numbers: Any, kinds: str, constants: str, recipe: str
    ) -> Any:
        result = operator(_batched(arrays, in_dims[0]), numbers, kinds, constants, recipe)
        return result, [0] * len(result)

    operator = torch_operator(
        "tessera::elementwise",
        schema=recipes.SCHEMA,
        fake=fake,
        backward=backward,
        setup_context=setup_context,
        vmap=vmap,
    )(run)
    operator.generate = _generate
    return operator


class ElementwiseCall:
    """A call of an elementwise operator in generated code, with all arguments by place."""

    def __init__(self, recipe: str, returns_list: bool) -> None:
        self._recipe = recipe
        self._returns_list = returns_list
        """True if the code expects a list of one result."""
        self._op: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._op is None:
            self._op = recipes.find(self._recipe, gradient)
            self._returns_list &= len(self._op.scalar.results) == 1
        return (self._op(*args),) if self._returns_list else self._op(*args)


def _generate(
    name: str, ranks: Sequence[int], kinds: str, constants: str, recipe: str = ""
) -> Optional[tuple[str, str, Sequence[Any]]]:
    """As DirectOperator has it. None if eager code would take the arrays for others, as those of vmap."""
    found = iter(ranks)
    if not all((next(found) == 0) == (kind == "z") for kind in kinds if kind in "az"):
        return None
    call = f"ElementwiseCall({recipe or name!r}, {bool(recipe)})"
    return "elementwise", call, ast.literal_eval(constants)


def _run_plainly(op: Operator, arrays: Any, numbers: Any, kinds: str, constants: str) -> Any:
    # Subclasses have seen the call. Those without a dispatch of their own still are here.
    with torch._C.DisableTorchFunctionSubclass():
        arrays = [
            each if type(each) in PLAIN else each.as_subclass(torch.Tensor) for each in arrays
        ]
    return run_as(op, *unpacked(arrays, numbers, kinds, constants))


def _operator_gradients(op: Operator, ctx: Any, grads: Sequence[Any]) -> list[Any]:
    """The gradients of the arrays of a call by an operator of torch."""
    args, kinds = unpacked(ctx.saved_tensors, ctx.numbers, ctx.kinds, ctx.constants)
    needed = iter(ctx.needs_input_grad[0])
    wanted = tuple(kind in "az" and next(needed) for kind in kinds)
    found = _gradients(op, grads, args, wanted)
    return [each for each, kind in zip(found, kinds) if kind in "az"]


def make_fake(op: Operator, args: Sequence[Any], kinds: str) -> Any:
    """Results without values."""
    from torch._prims_common import compute_elementwise_output_strides

    arrays = [arg for arg, kind in zip(args, kinds) if kind in "az"]
    shape = torch.broadcast_shapes(*[each.shape for each in arrays])
    strides = compute_elementwise_output_strides(*[each.expand(shape) for each in arrays])
    made = tuple(
        torch.empty_strided(shape, strides, dtype=dtype, device=arrays[0].device)
        for dtype in result_dtypes(op, "torch", args, kinds)
    )
    return made[0] if len(made) == 1 else made
