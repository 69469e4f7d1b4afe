# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records the launches of a call, so that later calls with arguments of the same kind need no Python.

An operator of several launches, or of a kernel written by hand, checks its arguments, chooses a kernel
and makes arrays in Python. All of that depends on the types, shapes and strides of arrays, and on the
values of other arguments. So such an operator (calls/recorded.py) does a call of a kind once more, with
a Recorder on the thread. Then arrays are made, but nothing is launched: launches are steps of a program,
which C++ runs from then on (python/src/calls/CallProgram.h).

An array that a step reads has to be an argument, or made by a step before, or a view of such an array.
Whatever else the operator does with arrays makes new ones that no step knows. Then there is no program,
and Python does all calls.
"""

from __future__ import annotations

import operator
import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence

from tessera import _C
from tessera.calls.libraries import LIBRARIES
from tessera.calls.outputs import library_of
from tessera.runtime.jit import JITFunction


class NotRecorded(Exception):
    """The call does something that is no step."""


class Value:
    """An array or a number of a recorded call."""

    def __init__(self, content: Any, kind: str) -> None:
        self.content = content
        self.kind = kind
        """`argument`, `constant`, `made`, or `view` of a value of the first or the third kind."""
        self.number = -1
        """In the program, once it is known."""
        self.source: Optional[Value] = None
        """Of a view."""
        self.is_same = False
        """True for a view of all elements as they are, which takes no step."""


class Step(NamedTuple):
    """A plan, a function, or None for a view."""

    callee: Any
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    offset: int = 0


class Node(NamedTuple):
    """A part of a call with its derivative: a function of the saved arrays, the gradients of the
    outputs, and a flag for each input. It returns a gradient, or None, for each input."""

    inputs: Sequence[Value]
    outputs: Sequence[Value]
    saved: Sequence[Optional[Value]]
    backward: Callable[[Sequence[Any], Sequence[Any], Sequence[bool]], Sequence[Any]]
    has_second: bool
    """True if the derivative of the part can be differentiated again."""
    constants: int = 0
    """How many outputs, the last ones, have no gradient."""


class Recorder:
    """The steps of a call with these arguments, whose arrays are of one library."""

    def __init__(
        self, library: str, args: Sequence[Any], memory: Optional[Callable[..., Any]] = None
    ) -> None:
        self.library = library
        self.arguments = [Value(arg, "argument") for arg in args]
        self.steps: list[Step] = []
        self.nodes: list[Node] = []
        self.checks: list[tuple[Callable[[], Any], Any]] = []
        """Functions, and what they have to return for the program to hold."""
        self._constants: list[Value] = []
        self._known = {id(each.content): each for each in self.arguments if _is_array(each.content)}
        self.memory: Any = memory(self) if memory else None
        """torch's part: finds views and keeps derivatives."""

    def find(self, content: Any) -> Value:
        """The value that an array or a number is. Raises NotRecorded for an array of no step."""
        if not _is_array(content):
            self._constants.append(Value(content, "constant"))
            return self._constants[-1]
        known = self._known.get(id(content))
        if known is None:
            known = self._find_view(content)
            self._known[id(content)] = known
        return known

    def is_known(self, content: Any) -> bool:
        """True for an array of this call."""
        return id(content) in self._known

    def _find_view(self, content: Any) -> Value:
        value = Value(content, "view")
        if self.memory is not None:
            self.memory.add_view(value)
            return value
        base = content.base
        while base is not None and id(base) not in self._known:
            base = getattr(base, "base", None)
        source = None if base is None else self._known[id(base)]
        if (
            source is None
            or source.content.size != content.size
            or not (source.content.flags.c_contiguous and content.flags.c_contiguous)
            or source.content.dtype != content.dtype
        ):
            raise NotRecorded
        value.source = source
        reshape = operator.methodcaller("reshape", content.shape)
        self.steps.append(Step(reshape, (source,), (value,)))
        return value

    def add(self, callee: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Adds a step that makes arrays."""
        found = [self.find(each) for each in inputs]
        made = [Value(each, "made") for each in outputs]
        for value in made:
            if value.content is not None:
                if id(value.content) in self._known:
                    raise NotRecorded  # a function returned what it got
                self._known[id(value.content)] = value
        self.steps.append(Step(callee, found, made))
        if self.memory is not None:
            for value in made:
                self.memory.add(value)

    def launch(
        self,
        kernel: Any,
        programs: int,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        numbers: Sequence[Any],
        options: dict[str, Any],
    ) -> None:
        """Adds the launch of a kernel that takes the inputs, the outputs and the numbers. `options` are
        those of the launch, such as num_warps."""
        if not isinstance(kernel, JITFunction):
            raise NotRecorded  # a tuned kernel measures
        if any(map(_is_array, numbers)):
            raise NotRecorded  # later calls have other arrays
        like = LIBRARIES[self.library]
        makers = tuple(
            None if each is None else like.maker(like.facts(each, "out")) for each in outputs
        )
        examples = tuple(outputs) if self.library == "torch" else ()
        plan = _C.CallPlan(
            kernel if programs else None,
            (programs,),
            tuple(numbers),
            makers,
            examples,
            options=options,
        )
        self.add(plan, inputs, outputs)

    def plan(self, result: Any) -> _C.CallPlan:
        """The plan of calls that return `result`. Raises NotRecorded."""
        results = [
            None if each is None else self.find(each)
            for each in (result if isinstance(result, tuple) else (result,))
        ]
        if any(each is not None and each.kind == "constant" for each in results):
            raise NotRecorded
        saved: Sequence[Value] = ()
        constant: Sequence[int] = ()
        options: dict[str, Any] = {}
        if self.memory is not None:
            saved, constant, options = self.memory.finish(results)
        number = 0
        made = [value for step in self.steps for value in step.outputs]
        for value in (*self.arguments, *self._constants, *made):
            value.number = number
            number += 1
        for value in self._known.values():
            if value.is_same:
                assert value.source is not None
                value.number = value.source.number
        steps = []
        for step in self.steps:
            inputs = tuple(each.number for each in step.inputs)
            view = (step.outputs[0].content, step.offset) if step.callee is None else ()
            steps.append((step.callee, inputs, len(step.outputs), *view))
        places = tuple(-1 if each is None else each.number for each in results)
        program = (
            len(self.arguments),
            tuple(each.content for each in self._constants),
            tuple(steps),
            places if isinstance(result, tuple) else places[0],
            tuple(each.number for each in saved),
            tuple(constant),
        )
        return _C.CallPlan(None, (), (), (), checks=tuple(self.checks), program=program, **options)


class _Current(threading.local):
    recorder: Optional[Recorder] = None


_current = _Current()


def current() -> Optional[Recorder]:
    """The recorder of this thread, if a call is recorded."""
    return _current.recorder


@contextmanager
def recorded(recorder: Recorder) -> Iterator[None]:
    """A block whose launches are recorded."""
    was, _current.recorder = _current.recorder, recorder
    did = _C.set_recording(True)
    try:
        yield
    finally:
        _current.recorder = was
        _C.set_recording(did)


def apply(
    function: Callable[[Any], Any], array: Any, backward: Optional[Callable[[Any], Any]] = None
) -> Any:
    """`function(array)`: a new array, whose values depend on those of the array alone. Calls of a
    program call the function. `backward` makes the gradient of the result that of the array."""
    made = function(array)
    recorder = _current.recorder
    if recorder is not None:
        recorder.add(function, (array,), (made,))
        if getattr(made, "requires_grad", False):
            if backward is None:
                raise NotRecorded
            derivative = backward

            def backward_of_node(saved: Any, grads: Any, wanted: Any) -> Sequence[Any]:
                return (derivative(grads[0]),)

            recorder.memory.add_node((array,), (made,), (), backward_of_node, True)
    return made


def create(function: Callable[[], Any], example: Optional[Callable[[], Any]] = None) -> Any:
    """`function()`: a new array. Calls of a program call the function. `example` makes an array like it
    while a call is recorded, for functions with an effect, such as draws of a generator."""
    recorder = _current.recorder
    made = function() if recorder is None or example is None else example()
    if recorder is not None:
        recorder.add(function, (), (made,))
    return made


def _is_array(value: Any) -> bool:
    return bool(library_of(value))
