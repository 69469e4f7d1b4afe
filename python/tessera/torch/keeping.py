# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of elementwise operators whose node of autograd keeps what calls/keeping.py chose.

Such a call is a plan of one launch, as recorded calls are (recorded.py). Its gradient is one, too.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch

from tessera import _C
from tessera.calls import recording
from tessera.calls.keeping import FLAGS, RESULT, Elements, Kept, find_kept
from tessera.calls.plans import Operator, Planned
from tessera.errors import CompilationError
from tessera.torch.recorded import apply_of, record

MIN_ELEMENTS = 1 << 16
"""Of the result, for which bytes are of weight. A call of fewer takes as long as its launch."""


def plan_of(
    op: Operator,
    planned: Planned,
    args: Sequence[Any],
    requires: Sequence[bool],
    options: dict[str, Any],
    fit: Callable[[Any, Any], Any],
) -> Optional[_C.CallPlan]:
    """The plan of calls like `planned` with a gradient for the arguments that `requires` tells. None if
    nothing is gained over keeping all arguments. `options` are those of the plan, and `fit` gives a
    gradient the shape and the type of its argument."""
    if op.derivative is not None or planned.is_empty or len(planned.results) > 1:
        return None
    elements = _elements_of(planned, args)
    if elements is None:
        return None
    key = (tuple(requires), elements)
    if key not in op.kept:
        op.kept[key] = _made(op, requires, elements)
    made = op.kept[key]
    if made is None:
        return None
    kept, forward, gradient = made
    names = [param.name for param in op.scalar.params]
    step, count, number = planned, len(args), 1
    if forward is not None:
        step, number = Planned(forward, "torch", args, None, planned.kinds), 2
    examples = tuple(make() for make in step.make_all())
    places = {**{name: at for at, name in enumerate(names)}, RESULT: count, FLAGS: count + 1}
    program = (
        count,
        (),
        ((step.call_plan(examples=examples), tuple(range(count)), number),),
        count,
        tuple(places[each] for each in kept.sources),
        (),
    )
    node = Gradient(op.__name__, kept, gradient, requires, args, fit)
    return _C.CallPlan(
        None,
        (),
        (),
        (),
        apply=apply_of(op.__name__),
        program=program,
        gradient=node,
        **options,
    )


def _elements_of(planned: Planned, args: Sequence[Any]) -> Optional[Elements]:
    """The facts that the choice depends on. None if it gains nothing for such arguments."""
    result = planned.results[0]
    number = 1
    for extent in result.shape:
        number *= extent
    sizes = tuple(
        arg.element_size() if kind in "az" and 2 * arg.numel() >= number else 0
        for kind, arg in zip(planned.kinds, args)
    )
    is_large = number >= MIN_ELEMENTS
    # A result of 16 bits is less exact than what was rounded to it.
    may_keep_result = result.dtype.itemsize >= 4
    if not is_large and not may_keep_result:
        return None
    return Elements(sizes, is_large, may_keep_result)


def _made(op: Operator, requires: Sequence[bool], elements: Elements) -> Any:
    """The choice, with the operators of the call and of its gradient. None if there is none."""
    try:
        kept = find_kept(op.scalar, requires, elements)
    except CompilationError:  # it has no derivative, which the call itself says
        return None
    if kept is None:
        return None
    make: Any = type(op)
    forward = gradient = None
    if kept.forward is not None:
        forward = make(kept.forward, "float" if op.scalar.to_float else "same")
    if kept.gradient is not None:
        gradient = make(kept.gradient, "same")
    return kept, forward, gradient


class Flagged(NamedTuple):
    """A sum or a mean that stores flags, from which its gradient follows."""

    reduction: Any
    """Takes the arguments and the factor of the elements."""
    kept: Kept
    gradient: Any
    requires: tuple[bool, ...]

    def reads(self, at: int) -> bool:
        """True if the gradient needs the argument at that place."""
        return self.reduction.elements.names[at] in self.kept.sources

    def gradients(self, grad: Any, args: Sequence[Any], flags: Any) -> list[Any]:
        """A gradient for each argument, None for those that have none. `args` has the factor, too."""
        known = {**dict(zip(self.reduction.elements.names, args)), FLAGS: flags}
        made = self.gradient(grad, *(known[each] for each in self.kept.sources))
        computed = iter(made if isinstance(made, tuple) else (made,))
        passed = iter(self.kept.is_passed)
        return [
            None if not is_wanted else grad if next(passed) else next(computed)
            for is_wanted in self.requires
        ]


def flagged(
    op: Any, scaled: Operator, args: Sequence[Any], requires: tuple[bool, ...]
) -> Optional[Flagged]:
    """The reduction that keeps flags for the gradients of the arguments that `requires` tells. `scaled` is
    the operator of its elements with a factor. None if nothing is gained."""
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    number = math.prod(torch.broadcast_shapes(*(each.shape for each in tensors)))
    if number < MIN_ELEMENTS:
        return None
    sizes = (
        arg.element_size() if isinstance(arg, torch.Tensor) and 2 * arg.numel() >= number else 0
        for arg in args
    )
    elements = Elements((*sizes, 0), True, False)
    key = (requires, elements)
    if key not in op.flagged:
        op.flagged[key] = _make_flagged(op, scaled, requires, elements)
    found: Optional[Flagged] = op.flagged[key]
    return found


def _make_flagged(
    op: Any, scaled: Operator, requires: tuple[bool, ...], elements: Elements
) -> Optional[Flagged]:
    try:
        kept = find_kept(scaled.scalar, (*requires, False), elements)
    except CompilationError:  # it has no derivative, which the call itself says
        return None
    if kept is None or kept.forward is None or kept.gradient is None:
        return None
    promotion = "float" if scaled.scalar.to_float else "same"
    reduction = type(op)(kept.forward, op.kind, promotion, has_flags=True)
    reduction.__name__ = op.__name__
    make: Any = type(scaled)
    return Flagged(reduction, kept, make(kept.gradient, "same"), requires)


class Gradient(_C.Entry):
    """The gradient of such a call: `gradient(wanted, *saved, grad)` is a tuple with a gradient, or None,
    for each argument. `wanted` has a bit for each argument."""

    def __init__(
        self,
        name: str,
        kept: Kept,
        gradient: Any,
        requires: Sequence[bool],
        args: Sequence[Any],
        fit: Callable[[Any, Any], Any],
    ) -> None:
        self._declare_parameters([])
        self.__name__ = f"{name}_gradient"
        self._kept, self._gradient, self._fit = kept, gradient, fit
        self._requires = tuple(requires)
        # Without memory, for their shapes and types.
        self._arguments = [
            arg.detach().to("meta") if is_wanted else None for arg, is_wanted in zip(args, requires)
        ]

    @property
    def function(self) -> "Gradient":
        """The object that has `differentiable`, which recorded operators have by this name."""
        return self

    def __call__(self, wanted: int, *arrays: Any) -> tuple[Any, ...]:
        found = self._of(wanted, *arrays)
        if recording.current() is None and self._is_repeated(wanted, *arrays):
            plan = self._record(wanted, *arrays)
            if plan is None:
                self._stop(wanted, *arrays)
            else:
                self._learn(plan, wanted, *arrays)
        return found

    def _record(self, *args: Any) -> Optional[_C.CallPlan]:
        try:
            return record(self._of, args, _no_entry)
        except Exception:  # the call itself was done before, and is right
            return None

    def _of(self, wanted: int, *arrays: Any) -> tuple[Any, ...]:
        with torch.no_grad():
            return self._found(wanted, arrays[:-1], arrays[-1])

    def _found(self, wanted: int, saved: Sequence[Any], grad: Any) -> tuple[Any, ...]:
        made = () if self._gradient is None else self._gradient(grad, *saved)
        computed = iter(made if isinstance(made, tuple) else (made,))
        passed = iter(self._kept.is_passed)
        found: list[Any] = []
        for at, argument in enumerate(self._arguments):
            value = None
            if argument is not None:
                value = grad if next(passed) else next(computed)
            is_asked = value is not None and wanted >> at & 1
            found.append(self._fit(value, argument) if is_asked else None)
        return tuple(found)

    def differentiable(self, wanted: int, saved: Sequence[Any], grads: Sequence[Any]) -> Any:
        """The same with a derivative."""
        found = self._found(wanted, saved, grads[0])
        # By flags alone the second derivative is 0. Callers may still ask for it.
        return [
            each if each is None or each.requires_grad else _Constant.apply(each, _anchor())
            for each in found
        ]


def _no_entry(function: Any) -> Any:
    raise recording.NotRecorded  # a gradient of a gradient is Python's


def _anchor() -> Any:
    return torch.empty(0, requires_grad=True)


class _Constant(torch.autograd.Function):  # type: ignore[misc]
    """A value that requires a gradient, and depends on nothing."""

    @staticmethod
    def forward(ctx: Any, value: Any, anchor: Any) -> Any:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None
