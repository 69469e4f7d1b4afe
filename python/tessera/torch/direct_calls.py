# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of torch's operators (tessera.torch.op) without torch's dispatcher.

An eager call of plain tensors comes to nothing else in the dispatcher than the function, and a node of
autograd if there is a gradient. Such a call is recognised in C++ (python/src/calls/Entry.cpp) once one with arguments of the
same types has gone through the dispatcher, and calls the function at once. All other calls go to the
dispatcher. `torch.ops` always does.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch
from torch._library.custom_ops import CustomOpDef

from tessera import _C
from tessera.errors import ArgumentError
from tessera.torch.direct_nodes import DirectNode, direct_apply
from tessera.torch.quiet_calls import PLAIN

_TYPES: dict[str, tuple[type, ...]] = {
    "Tensor": PLAIN,
    "Optional[Tensor]": (*PLAIN, type(None)),
    "float": (float,),
    "int": (int,),
    "bool": (bool,),
    "number": (int, float, bool),
}
"""The types of arguments that torch passes on as they are, by the type in a schema."""


class DirectFunction(NamedTuple):
    """The function behind an operator."""

    name: str
    """Of the operator."""
    call: Callable[..., Any]
    check_result: Callable[[Any], None]
    is_checked: Callable[[], bool]
    """False before a first call, which the dispatcher has to do."""
    arguments: Sequence[str]
    types: Sequence[str]
    """Of the arguments in the schema."""
    written: Sequence[str]
    """The arguments that it writes to."""
    has_one_result: bool
    """True if the schema says a tensor."""


class DirectOperator(_C.Entry, CustomOpDef):  # type: ignore[misc]
    """An operator of torch whose eager calls need not go through the dispatcher."""

    _function: Optional[DirectFunction] = None
    """None: all calls go through it."""

    generate: Optional[Callable[..., Any]] = None
    """For the operator of an elementwise operator or of a function: the module and the text of what
    generated code calls in its place, and the constants; None if it calls the operator. The arguments
    are the operator's name, the ranks of arrays, and the arguments behind arrays and numbers."""

    _derivative: Optional[tuple[Callable[..., Any], Optional[Callable[..., Any]]]] = None
    """The functions of `register_autograd`."""

    def call_directly(self, function: DirectFunction) -> None:
        """Has calls of `function` go around the dispatcher where that makes no difference."""
        self._ignore_layouts()
        self._function = function
        self._positional = [
            each.name for each in self._opoverload._schema.arguments if not each.kwarg_only
        ]
        self._allowed = [_TYPES.get(each, ()) for each in function.types]
        self._apply = self._make_apply()
        self._options: dict[str, Any] = {
            "kernel": _make_run(function),
            "finish": _make_check(function),
            "checks": _CHECKS,
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._function
        if function is None or torch.compiler.is_compiling():
            return self._opoverload(*args, **kwargs)
        if kwargs:
            args, kwargs = _placed(self._positional, args, kwargs)
            return self._opoverload(*args, **kwargs) if kwargs else self(*args)
        result = self._opoverload(*args)
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if (
            tensors
            and function.is_checked()
            and len(args) == len(self._allowed)
            and all(type(arg) in allowed for arg, allowed in zip(args, self._allowed))
        ):
            apply = self._apply if any(each.requires_grad for each in tensors) else None
            self._learn(
                _C.CallPlan(grid=(), rest=(), makers=(), apply=apply, **self._options), *args
            )
        return result

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # by name, as functions are

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Optional[Callable[..., Any]] = None
    ) -> None:
        super().register_autograd(backward, setup_context=setup_context)
        self._derivative = backward, setup_context
        if self._function is not None:
            self._forget()
            self._apply = self._make_apply()

    def _make_apply(self) -> Any:
        """Does a call with a gradient. NotImplemented if the dispatcher has to do it."""
        function = self._function
        if (
            function is None
            or self._derivative is None
            or function.written
            or any(argument.kwarg_only for argument in self._opoverload._schema.arguments)
        ):
            return NotImplemented
        name = self._opoverload._schema.name.replace("::", "_")
        return _apply_of(f"GeneratedBackwardFor_{name}_default", function, *self._derivative)

    # The dispatcher chooses among several kernels.

    def register_kernel(self, *args: Any, **kwargs: Any) -> Any:
        self._stop()
        return super().register_kernel(*args, **kwargs)

    def register_autocast(self, *args: Any, **kwargs: Any) -> Any:
        self._stop()
        return super().register_autocast(*args, **kwargs)

    def set_kernel_enabled(self, *args: Any, **kwargs: Any) -> Any:
        self._stop()
        return super().set_kernel_enabled(*args, **kwargs)

    def _stop(self) -> None:
        self._function = None
        self._forget()


def _profiler_checks() -> tuple[tuple[Callable[[], Any], Any], ...]:
    """The profiler sees what goes through the dispatcher."""
    is_profiling = getattr(torch.autograd, "_profiler_enabled", None)
    return ((is_profiling, False),) if is_profiling else ()


_CHECKS = _profiler_checks()


def _placed(
    names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with those first that can be passed by place."""
    placed, left = list(args), dict(kwargs)
    for name in names[len(args) :]:
        if name not in left:
            break
        placed.append(left.pop(name))
    return tuple(placed), left


def _make_run(function: DirectFunction) -> Callable[..., Any]:
    """The function as the dispatcher calls it: what it writes to has a new version."""
    call, check_result = function.call, function.check_result
    increment_version = torch.autograd.graph.increment_version
    written = [function.arguments.index(name) for name in function.written]
    if not written and function.has_one_result:
        return call

    def run(*args: Any) -> Any:
        for at in written:
            if not args[at].is_inference():
                increment_version(args[at])
        result = call(*args)
        check_result(result)
        return result

    return run


def _make_check(function: DirectFunction) -> Callable[..., None]:
    """Raises for a result that torch would not accept, given the result and the arguments."""
    name, check_result = function.name, function.check_result

    def check(result: Any, *args: Any) -> None:
        check_result(result)
        for each in result if isinstance(result, (tuple, list)) else (result,):
            _refuse_shared(name, each, args)

    return check


def _apply_of(
    title: str,
    function: DirectFunction,
    backward: Callable[..., Any],
    setup_context: Optional[Callable[..., Any]],
) -> Callable[..., Any]:
    """`apply` of a torch.autograd.Function for calls of the function, without what it does for
    transforms, which see no such calls."""
    forward = _C.make_forward(function.call, _make_check(function), setup_context)
    scope = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made: Any = type(title, (DirectNode,), scope)
    made._backward_cls.apply = backward  # torch's own looks for `vjp` each time
    return direct_apply(made)


def _refuse_shared(name: str, result: Any, args: Sequence[Any]) -> None:
    if not isinstance(result, torch.Tensor):
        return
    storage = result.untyped_storage()
    for arg in args:
        if not isinstance(arg, torch.Tensor):
            continue
        other = arg.untyped_storage()
        if result is arg or (storage.nbytes() and storage.data_ptr() == other.data_ptr()):
            raise ArgumentError(
                "E078",
                f"operator {name} returned memory of an argument, which torch takes for new memory",
                "return a copy: x.clone()",
            )
