# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@recorded: an operator whose calls are recorded (recording.py), so that known ones need no Python."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from typing import Any, Callable, Optional, Sequence

from tessera import _C
from tessera.calls import pending, pointwise, recording
from tessera.calls.outputs import library_of
from tessera.errors import ArgumentError
from tessera.locks import ForkSafeLock, load
from tessera.settings import call_after_changes, settings

_entries: "weakref.WeakSet[Recorded]" = weakref.WeakSet()
_lock = ForkSafeLock()


class _Called(threading.local):
    """The operator that the user has called, which may call others."""

    name = ""


_called = _Called()


def called_name() -> str:
    """The operator that the user has called, as far as Python does the call; "" outside of any."""
    return _called.name


class _Generation:
    number = 0
    """How often all plans were forgotten."""


def forget_plans() -> None:
    """Has all calls be done by Python and recorded again: what launches follow from has changed."""
    _Generation.number += 1
    with _lock:
        entries = list(_entries)
    for each in entries:
        each._forget()


class _Threads:
    number = settings.peek("num_threads")
    """For which the plans were made: operators divide their work by it."""


def _follow_threads() -> None:
    number = settings.peek("num_threads")
    if number != _Threads.number:
        _Threads.number = number
        forget_plans()


call_after_changes(_follow_threads)


class Recorded(_C.Entry):
    """A function of arrays and other arguments, which launches and returns new arrays.

    The function has no other effect. Its launches depend on the types, shapes and strides of arrays,
    and on the values of other arguments, alone. The second call with arguments of a kind is recorded,
    so that arguments which come once cost nothing more.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.__qualname__: str = getattr(function, "__qualname__", "recorded")
        self._name: str = getattr(function, "__name__", "recorded")
        self.function = function
        with _lock:
            _entries.add(self)
        parameters = inspect.signature(function).parameters.values()
        self._is_open = any(each.kind is each.VAR_POSITIONAL for each in parameters)
        self._parameters = [] if self._is_open else list(parameters)
        self._by_place = _by_place(function, self._parameters)
        self._declare_parameters(
            [
                (
                    each.name,
                    () if each.default is each.empty else (each.default,),
                    each.kind is not each.KEYWORD_ONLY,
                )
                for each in self._parameters
            ]
        )

    def __call__(self, *args: Any, **named: Any) -> Any:
        if pointwise.is_tracing():
            return self.function(*args, **named)
        if pending.current() is not None:
            return pending.call_opened(self, args, named)
        if pending.has_pending(args, named):
            return self(*pending.opened(args), **pending.opened(named))
        outer = _called.name
        if not outer and not self._name.startswith("_"):
            _called.name = self._name
        try:
            result = self.function(*args, **named)
        except ArgumentError as error:
            if outer and type(error) is ArgumentError:  # the user has not called this function
                text = error.message.replace(f"`{self._name}`", f"`{outer}`")
                raise ArgumentError(error.id, text, error.fix) from None
            raise
        finally:
            _called.name = outer
        if self._is_repeated(*args, **named) and recording.current() is None:
            generation = _Generation.number
            plan = record(self._by_place, self._placed(args, named))
            if plan is None:
                self._stop(*args, **named)
            elif generation == _Generation.number:
                self._learn(plan, *args, **named)
        return result

    def _placed(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The arguments in the order of the parameters, of a call that was right."""
        found = list(args)
        for each in self._parameters[len(args) :]:
            found.append(named.get(each.name, each.default))
        return found

    def __reduce__(self) -> Any:
        return self.__qualname__  # by name, as functions are

    def __repr__(self) -> str:
        return f"<recorded {self.function!r}>"


def record(function: Callable[..., Any], args: Sequence[Any]) -> Optional[_C.CallPlan]:
    """The plan of calls of the function with arguments like these, or None if there is none."""
    libraries = {library for arg in args if (library := library_of(arg))}
    if len(libraries) != 1:
        return None
    library = libraries.pop()
    try:
        if library == "torch":
            plan: Optional[_C.CallPlan] = load("tessera.torch.recorded").record(
                function, args, Recorded
            )
            return plan
        is_plain = all(type(arg).__name__ == "ndarray" for arg in args if library_of(arg))
        if library not in ("numpy", "cupy") or not is_plain:
            return None
        # Views, since two arguments may be one array, which later ones are not.
        args = [arg.view() if library_of(arg) else arg for arg in args]
        recorder = recording.Recorder(library, args)
        with recording.recorded(recorder):
            result = function(*args)
        return recorder.plan(result)
    except Exception:  # the call itself was done before, and is right
        return None


def _by_place(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter]
) -> Callable[..., Any]:
    """The function with all parameters by place."""
    names = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    if not names:
        return function
    count = len(parameters) - len(names)

    def call(*args: Any) -> Any:
        return function(*args[:count], **dict(zip(names, args[count:])))

    call.__name__ = function.__name__
    return call


def recorded(function: Callable[..., Any]) -> Any:
    """Makes an operator of a function. See Recorded."""
    return Recorded(function)
