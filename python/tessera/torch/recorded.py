# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded calls (calls/recording.py) of torch's tensors: views, and the gradient of a whole call.

A call whose parts have derivatives is one node of autograd. Its gradient runs the derivatives of the
parts in reverse. That is recorded, too. A second derivative is that of the parts: the call is done
again, part by part.
"""

from __future__ import annotations

from operator import methodcaller
from typing import Any, Callable, NoReturn, Optional, Sequence

import torch

from tessera import _C
from tessera.calls import recording
from tessera.calls.recording import Node, NotRecorded, Recorder, Step, Value
from tessera.errors import ArgumentError
from tessera.torch.direct_nodes import DirectNode, direct_apply
from tessera.torch.quiet_calls import PLAIN


def record(
    function: Callable[..., Any], args: Sequence[Any], make_entry: Callable[..., Any]
) -> Optional[_C.CallPlan]:
    """The plan of calls with arguments like these, or None if there is none. `make_entry` makes an
    operator of a function, whose calls are recorded."""
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    if not all(type(each) in PLAIN for each in tensors):
        return None
    requires = any(each.requires_grad for each in tensors)
    args = _apart(args)
    recorder = Recorder("torch", args, lambda made: Memory(made, function, make_entry))
    with recording.recorded(recorder), torch.set_grad_enabled(requires):
        result = function(*args)
        plan = recorder.plan(result)
    if plan.gradient is not None:
        plan.gradient.function.forget()
    return plan


def _apart(args: Sequence[Any]) -> list[Any]:
    """The arguments as tensors of their own: two may be one, or share memory, which later ones do not.

    One whose memory another one has gets new memory. Its elements do not matter, as nothing is launched.
    """
    found, seen = list(args), set[int]()
    for at, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            begin = arg.untyped_storage().data_ptr()
            own = arg.detach()
            if begin in seen:
                own = torch.empty_strided(
                    arg.shape, arg.stride(), dtype=arg.dtype, device=arg.device
                )
            seen.add(begin)
            found[at] = own.requires_grad_(arg.requires_grad)
    return found


class Memory:
    """The memory of the tensors of a recorded call."""

    def __init__(
        self,
        recorder: Recorder,
        function: Callable[..., Any],
        make_entry: Callable[..., Any],
    ) -> None:
        self._recorder = recorder
        self._function, self._make_entry = function, make_entry
        self._versions: list[tuple[Any, int]] = []
        self._owners: dict[int, list[Value]] = {}
        for value in recorder.arguments:
            self.add(value)

    def add(self, value: Value) -> None:
        """Adds an argument, or what a step makes."""
        if isinstance(value.content, torch.Tensor):
            begin = value.content.untyped_storage().data_ptr()
            self._versions.append((value.content, value.content._version))
            self._owners.setdefault(begin, []).append(value)

    def add_view(self, value: Value) -> None:
        """Adds the step that makes a view of a known tensor. Raises NotRecorded for other tensors."""
        view = value.content
        begin = view.untyped_storage().data_ptr()
        owners = self._owners.get(begin, ())
        if not begin or len(owners) != 1:  # arguments with one memory are not told apart
            raise NotRecorded
        source = owners[0]
        tensor = source.content
        if view.dtype != tensor.dtype:
            raise NotRecorded
        value.source = source
        offset = view.storage_offset() - tensor.storage_offset()
        value.is_same = not offset and (view.shape, view.stride()) == (
            tensor.shape,
            tensor.stride(),
        )
        if not value.is_same:
            self._recorder.steps.append(Step(None, (source,), (value,), offset))
        if view.requires_grad and torch.is_grad_enabled():
            self._recorder.nodes.append(Node((source,), (value,), (), _as_source(value), True))

    def add_node(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        saved: Sequence[Any],
        backward: Callable[..., Sequence[Any]],
        has_second: bool,
        constants: int = 0,
    ) -> None:
        """Has a part of the recorded call have a derivative, if a gradient is asked for."""
        recorder = self._recorder
        requires = any(isinstance(each, torch.Tensor) and each.requires_grad for each in inputs)
        if not requires or not torch.is_grad_enabled():
            return
        from_inputs = [recorder.find(each) for each in inputs]
        with torch.no_grad():
            to_outputs = [recorder.find(each) for each in outputs]
            to_save = [None if each is None else recorder.find(each) for each in saved]
        node = Node(from_inputs, to_outputs, to_save, backward, has_second, constants)
        for each in outputs[: len(outputs) - constants]:
            if each.is_floating_point():
                each.requires_grad_()
        recorder.nodes.append(node)

    def finish(
        self, results: Sequence[Optional[Value]]
    ) -> tuple[Sequence[Value], Sequence[int], dict[str, Any]]:
        """The values that a gradient needs, the places of results without one, and options of the plan.
        Raises NotRecorded."""
        recorder = self._recorder
        if any(tensor._version != version for tensor, version in self._versions):
            raise NotRecorded  # it was written, which is no step
        with_gradient = [
            at for at, each in enumerate(results) if each is not None and each.content.requires_grad
        ]
        # torch would take a view of an argument for new memory. A gradient may be a view, as those of
        # torch's own views are.
        if not isinstance(self._function, Gradient) and any(
            each is not None and each.source and each.source.kind == "argument" for each in results
        ):
            raise NotRecorded
        self._check_nodes(results)
        if not with_gradient:
            return (), (), {}
        if any(each is None or each.kind == "argument" for each in results):
            raise NotRecorded
        function = self._function
        gradient = Gradient(recorder, [each for each in results if each], function)
        saved = gradient.saved
        if any(each is not None and each.source in saved for each in results):
            # It does not tell the tensor that it is a view of when it is written.
            raise NotRecorded
        options = {
            "apply": apply_of(getattr(function, "__name__", "recorded")),
            "gradient": self._make_entry(gradient),
        }
        constant = [at for at in range(len(results)) if at not in with_gradient]
        return saved, constant, options

    def _check_nodes(self, results: Sequence[Optional[Value]]) -> None:
        """Raises NotRecorded if autograd knows a part that is no node: its gradient would be lost."""
        recorder = self._recorder
        known = {each for each in recorder.arguments if _requires(each)}
        for node in recorder.nodes:
            needed = [each for each in node.inputs if _requires(each)]
            if not needed or not known.issuperset(needed):
                raise NotRecorded
            known.update(node.outputs)
        if not known.issuperset(each for each in results if each is not None and _requires(each)):
            raise NotRecorded


def _requires(value: Value) -> bool:
    return isinstance(value.content, torch.Tensor) and bool(value.content.requires_grad)


def _root(value: Value) -> Value:
    return value if value.source is None else value.source


def _as_source(value: Value) -> Callable[..., Sequence[Any]]:
    """The derivative of a view that has the same elements in the same order."""
    assert value.source is not None
    source, view = value.source.content, value.content
    shape = tuple(source.shape)
    if not (source.is_contiguous() and view.is_contiguous() and source.numel() == view.numel()):
        raise NotRecorded

    def backward(saved: Sequence[Any], grads: Sequence[Any], wanted: Sequence[bool]) -> Any:
        return (dense(grads[0]).reshape(shape),)

    return backward


def dense(tensor: Any) -> Any:
    """The tensor, or a copy without gaps."""
    if tensor.is_contiguous():
        return tensor
    return recording.apply(torch.Tensor.contiguous, tensor, lambda grad: grad)


class Gradient:
    """The gradient of a recorded call: `gradient(wanted, *saved, *grads)` is a tuple with a gradient,
    or None, for each argument. `wanted` has a bit for each argument."""

    def __init__(
        self, recorder: Recorder, results: Sequence[Value], function: Callable[..., Any]
    ) -> None:
        self.__name__ = f"{getattr(function, '__name__', 'recorded')}_gradient"
        self._function = function
        self._arguments, self._nodes, self._results = recorder.arguments, recorder.nodes, results
        self._has_second = all(node.has_second for node in self._nodes)
        needed: list[Value] = []
        for node in self._nodes:
            needed += [_root(each) for each in node.saved if each is not None]
        if self._has_second:  # for which the call is done again
            needed += [each for each in self._arguments if isinstance(each.content, torch.Tensor)]
        self.saved = [each for each in dict.fromkeys(needed) if each.kind != "constant"]
        # Without arrays, which calls do not share.
        self._shapes = {
            each: (tuple(each.content.shape), each.content.dtype, each.content.requires_grad)
            for each in (*self._arguments, *(out for node in self._nodes for out in node.outputs))
            if isinstance(each.content, torch.Tensor)
        }
        self._layouts = {
            each: (
                each.content.shape,
                each.content.stride(),
                each.content.storage_offset() - _root(each).content.storage_offset(),
            )
            for node in self._nodes
            for each in node.saved
            if each is not None and each.source is not None
        }

    def forget(self) -> None:
        """Releases the arrays of the recorded call, once the plan is made."""
        values = [*self._arguments, *self._results]
        for node in self._nodes:
            values += [*node.inputs, *node.outputs, *(each for each in node.saved if each)]
        for value in values:
            for each in (value, _root(value)):
                if isinstance(each.content, torch.Tensor):
                    each.content = None

    def __call__(self, wanted: int, *arrays: Any) -> tuple[Any, ...]:
        known = dict(zip(self.saved, arrays))
        found: dict[Value, Any] = {}
        for value, grad in zip(self._results, arrays[len(self.saved) :]):
            if grad is not None:  # of a result that is unused, or has none
                _accumulate(found, value, grad)
        needed = {value for at, value in enumerate(self._arguments) if wanted >> at & 1}
        for node in self._nodes:
            if any(each in needed for each in node.inputs):
                needed.update(node.outputs)
        with torch.no_grad():
            for node in reversed(self._nodes):
                grads = [found.get(each) for each in node.outputs]
                flags = [each in needed for each in node.inputs]
                if not any(flags) or all(each is None for each in grads):
                    continue
                for at, each in enumerate(node.outputs[: len(node.outputs) - node.constants]):
                    shape, dtype, _ = self._shapes.get(each, ((), torch.int64, False))
                    if grads[at] is None and dtype.is_floating_point:  # unused, of several
                        like = next(array for array in arrays if isinstance(array, torch.Tensor))
                        grads[at] = _zeros(shape, dtype, like.device)
                saved = [None if each is None else self._fetch(known, each) for each in node.saved]
                parts = node.backward(saved, grads, flags)
                for each, part, flag in zip(node.inputs, parts, flags):
                    if flag and part is not None:
                        _accumulate(found, each, part)
            return tuple(
                self._fitting(value, found.get(value)) if wanted >> at & 1 else None
                for at, value in enumerate(self._arguments)
            )

    def _fetch(self, known: dict[Value, Any], value: Value) -> Any:
        if value.kind == "constant":
            return value.content
        if value.source is None:
            return known[value]
        shape, strides, offset = self._layouts[value]
        source = known[value.source]
        return source.as_strided(shape, strides, source.storage_offset() + offset)

    def _fitting(self, value: Value, grad: Any) -> Any:
        if grad is None:
            return None
        shape, dtype, _ = self._shapes[value]
        if grad.shape != shape:
            grad = recording.apply(methodcaller("sum_to_size", shape), grad)
        return grad if grad.dtype == dtype else recording.apply(methodcaller("to", dtype), grad)

    def differentiable(self, wanted: int, saved: Sequence[Any], grads: Sequence[Any]) -> Any:
        """The same with a derivative, or with one that is an error."""
        if not self._has_second:
            found = self(wanted, *saved, *grads)
            return Last.apply(self.__name__[: -len("_gradient")], found, *grads, *saved)
        known = dict(zip(self.saved, saved))
        # Views, since one argument may depend on another.
        args = [
            known[each].view_as(known[each]) if each in self._shapes else each.content
            for each in self._arguments
        ]
        results = self._function(*args)
        results = results if isinstance(results, tuple) else (results,)
        places = [at for at in range(len(args)) if wanted >> at & 1]
        pairs = [
            (result, grad)
            for result, grad in zip(results, grads)
            if result.requires_grad and grad is not None
        ]
        gradients = torch.autograd.grad(
            [each for each, _ in pairs],
            [args[at] for at in places],
            [each for _, each in pairs],
            create_graph=True,
            allow_unused=True,
        )
        by_place = dict(zip(places, gradients))
        return tuple(by_place.get(at) for at in range(len(args)))


def _zeros(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return recording.create(lambda: torch.zeros(shape, dtype=dtype, device=device))


class Last(torch.autograd.Function):  # type: ignore[misc]
    """Gradients that cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, name: str, found: Sequence[Any], *inputs: Any) -> Any:
        ctx.name = name
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise ArgumentError(
            "E094",
            f"`{ctx.name}` has no second derivative",
            "use torch's own operator where second derivatives are taken",
        )


def _accumulate(found: dict[Value, Any], value: Value, part: Any) -> None:
    before = found.get(value)
    if before is None:
        found[value] = part
        return
    found[value] = torch.add(before, part)
    recorder = recording.current()
    if recorder is not None:
        recorder.add(torch.add, (before, part), (found[value],))


class _Call(DirectNode):
    """A recorded call. Each operator has a subclass, whose `forward` and `backward` run without
    Python (python/src/calls/Autograd.cpp)."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The same in Python: torch traces it, and it has derivatives."""
        gradient: Any = ctx.plan.gradient
        saved = restored(ctx)
        wanted = sum(1 << at for at, each in enumerate(ctx.needs_input_grad[1:]) if each)
        if torch.is_grad_enabled():
            return None, *gradient.function.differentiable(wanted, saved, grads)
        return None, *gradient(wanted, *saved, *grads)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> NoReturn:
        raise AssertionError("calls with tangents are Python's")


def restored(ctx: Any) -> list[Any]:
    """The values that a call saved: the tensors, and numbers at their places."""
    if ctx.numbers is None:
        return list(ctx.saved_tensors)
    tensors = iter(ctx.saved_tensors)
    return [next(tensors) if each is None else each[0] for each in ctx.numbers]


_applies: dict[str, Callable[..., Any]] = {}


def apply_of(name: str) -> Callable[..., Any]:
    """`apply` of the subclass of that name, without what it does for transforms."""
    found = _applies.get(name)
    if found is None:
        function: Any = type(name, (_Call,), {"forward": staticmethod(_C.run_forward)})
        function._backward_cls.apply = _C.run_program_backward
        function._backward_cls.numbers = None
        found = _applies[name] = direct_apply(function)
    return found
