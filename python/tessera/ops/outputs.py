# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`out=` of operators: the rules of torch, checked before a launch, and kernels that write to it.

A call with `out=` computes as one without. A launch of many results (`launch_results`) writes to the
arrays that are passed. They have to be dense, with its shapes and types, and share no memory with an
argument. Otherwise results are copied to them, which is right for any array that may be written, and is
faster for few elements. So an array may be both an argument and `out`.

The shape and the type of a result are known once it is computed. If `out` does not fit, it is refused
then, unchanged.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from typing import Any, Callable, Iterator, Optional, Sequence

from tessera.calls import recording
from tessera.calls.outputs import assign, is_dense, library_of, make_output
from tessera.errors import ArgumentError
from tessera.language import types
from tessera.ops.arguments import dtype_of, refuse
from tessera.ops.launching import Spec, launch
from tessera.runtime.arrays import dtype_name, find_dtype
from tessera.wording import shown, with_article


class _Targets(threading.local):
    """The arrays that the next launch of results of this thread writes to."""

    def __init__(self) -> None:
        # Not in the class: Dynamo, which traces launch_results, would guard that it is not here.
        self.arrays: Sequence[Any] = ()


_targets = _Targets()


def takes_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Has an operator of one result take `out=`."""
    return _taking(function, 1)


def takes_two(function: Callable[..., Any]) -> Callable[..., Any]:
    """Has an operator of two results take `out=`, a tuple with an array for each."""
    return _taking(function, 2)


def _taking(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    required = _required(function)

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **named: Any) -> Any:
        for name, value in (*zip(required, args), *named.items()):
            if value is None and name in required:
                fix = f"pass an array, or what the documentation says of {name}"
                raise ArgumentError("E093", f"`{name}` of `{function.__name__}` is None", fix)
        if out is None:
            return function(*args, **named)
        if count == 1 and _is_small(out, (*args, *named.values())):
            # As a call without `out` it is known, and runs without Python.
            operator = vars(sys.modules[function.__module__])[function.__name__]
            result = operator(*args, **named)
            if _is_like(out, result):
                assign(out, result)
                return out
            # A draw is not done again: its generator has moved on.
            return _write(function, count, args, named, out, result)
        return _write(function, count, args, named, out)

    return call


def _required(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of an operator that may not be None: those behind them have defaults."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(
        each.name for each in parameters
        if each.default is each.empty and not str(each.annotation).startswith("Optional")
    )  # fmt: skip


_MAX_COPIED = 1 << 14
"""Elements of a result that is copied: a launch by Python takes longer."""


def _is_small(out: Any, args: Sequence[Any]) -> bool:
    """True for a small array that any result of its shape and type can be copied to."""
    library = library_of(out)
    if library == "torch":
        if out.numel() > _MAX_COPIED or not out.is_contiguous() or out.requires_grad:
            return False
        # Gradients are refused with the cause.
        if out.is_inference() and not _is_inference_mode():
            return False
        return not any(getattr(each, "requires_grad", False) for each in args)
    return bool(
        library == "numpy"
        and out.size <= _MAX_COPIED
        and out.flags.c_contiguous
        and out.flags.writeable
    )


def _is_like(out: Any, result: Any) -> bool:
    return (
        type(result) is type(out)
        and not getattr(result, "requires_grad", False)
        and out.shape == result.shape
        and out.dtype == result.dtype
        and getattr(out, "device", None) == getattr(result, "device", None)
    )


def launch_results(
    kernel: Any,
    programs: int,
    inputs: Sequence[Any],
    outputs: Sequence[Optional[Spec]],
    numbers: Sequence[Any],
    warps: int = 4,
) -> tuple[Any, ...]:
    """`launch`, of a kernel whose first outputs are the results of the operator."""
    given, _targets.arrays = _targets.arrays, ()
    if not given or recording.current() is not None:
        return launch(kernel, programs, inputs, outputs, numbers, warps)
    like = next(each for each in inputs if each is not None)
    made = [
        (
            None if spec is None
            else given[at] if at < len(given) and _fits(given[at], spec)
            else make_output(like, tuple(spec.shape), spec.dtype, "out")
        )
        for at, spec in enumerate(outputs)
    ]  # fmt: skip
    launch(kernel, programs, (*inputs, *made), [], numbers, warps)
    return tuple(made)


def _fits(target: Any, spec: Spec) -> bool:
    """True if a launch can write its output to an array. None is for one that shares memory."""
    return (
        target is not None
        and tuple(target.shape) == tuple(spec.shape)
        and dtype_of(target) == spec.dtype
        and is_dense(target)
    )


def _write(
    function: Callable[..., Any],
    count: int,
    args: Sequence[Any],
    named: dict[str, Any],
    out: Any,
    results: Any = None,
) -> Any:
    """Writes the results of a call to `out`. Makes the call, if there are no `results` of it."""
    name = function.__name__
    targets = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if len(targets) != count or isinstance(out, (tuple, list)) != (count > 1):
        raise refuse(
            f"`{name}` got {len(targets)} arrays as out, and has {count} results",
            "pass a tuple with an array for each" if count > 1 else "pass one array",
        )
    given = list(_arrays_in((*args, *named.values())))
    _check(name, targets, given)
    if results is None:
        _targets.arrays = [
            None if any(_may_overlap(each, other) for other in given) else each for each in targets
        ]
        try:
            results = function(*args, **named)
        finally:
            _targets.arrays = ()
    results = results if count > 1 else (results,)
    for target, result in zip(targets, results):
        _check_fits(name, target, result)
    for target, result in zip(targets, results):
        if target is result:
            _tell_torch(target)
            continue
        if tuple(target.shape) != tuple(result.shape):
            target.resize_(tuple(result.shape))  # of torch, without elements
        assign(target, result)
    return targets if count > 1 else targets[0]


def _arrays_in(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _arrays_in(value)
        elif library_of(value):
            yield value


def _check(name: str, targets: Sequence[Any], given: Sequence[Any]) -> None:
    """Refuses, before a launch, what no result can be written to."""
    for target in targets:
        library = library_of(target)
        if not library:
            raise refuse(
                f"`{name}` got out={shown(target)}, which is {with_article(type(target).__name__)}",
                "pass an array",
            )
        if library == "jax":
            raise refuse(
                f"`{name}` got an array of JAX as out, which never changes", "use the result"
            )
        for each in given:
            if library_of(each) != library or _device(each) != _device(target):
                raise refuse(
                    f"`{name}` got arrays of {library_of(each)} on {_device(each)}, and an array of "
                    f"{library} on {_device(target)} as out",
                    "pass arrays of one library and device",
                )
        if find_dtype(target.dtype) is None:
            raise refuse(
                f"out of `{name}` has elements of {target.dtype}", "pass an array of numbers"
            )
        if library == "numpy" and not target.flags.writeable:
            raise refuse(f"out of `{name}` is read-only", "pass an array that may be written")
        if library == "torch" and target.is_inference() and not _is_inference_mode():
            raise refuse(
                f"out of `{name}` is an inference tensor, outside of inference mode",
                "pass x.clone(), or call it under torch.inference_mode()",
            )
        if any(size > 1 and not stride for size, stride in zip(target.shape, _strides(target))):
            raise refuse(
                f"out of `{name}` has several elements in one place, with strides {_strides(target)}",
                "pass an array that is not expanded",
            )
    if any(_may_overlap(a, b) for at, a in enumerate(targets) for b in targets[:at]):
        raise refuse(
            f"the arrays in out of `{name}` share memory", "pass arrays apart from each other"
        )
    torch = sys.modules.get("torch")
    if torch is not None and torch.is_grad_enabled():
        if any(getattr(each, "requires_grad", False) for each in (*given, *targets)):
            raise ArgumentError(
                "E094",
                f"`{name}` got out=, which has no derivative, and an array that requires a gradient",
                "leave out= away, or call it under torch.no_grad()",
            )


def _is_inference_mode() -> bool:
    return bool(sys.modules["torch"].is_inference_mode_enabled())


def _check_fits(name: str, target: Any, result: Any) -> None:
    """Refuses another shape, but for a tensor without elements, and a type that loses the kind."""
    is_resized = library_of(target) == "torch" and not target.numel()
    if tuple(target.shape) != tuple(result.shape) and not is_resized:
        raise refuse(
            f"out of `{name}` has shape {tuple(target.shape)}, and the result {tuple(result.shape)}",
            "pass an array of that shape",
        )
    found, wanted = dtype_of(target), dtype_of(result)
    if _kind(found) < _kind(wanted):
        raise refuse(
            f"out of `{name}` has elements of {dtype_name(found)}, and the result {dtype_name(wanted)}",
            "pass an array of a type that holds these",
        )


def _kind(dtype: types.dtype) -> int:
    """0 for bools, 1 for integers, 2 for floats: a result may become one of a later kind."""
    return 2 if dtype.is_floating() else 0 if dtype == types.int1 else 1


def _strides(array: Any) -> tuple[int, ...]:
    return tuple(array.stride() if library_of(array) == "torch" else array.strides)


def _device(array: Any) -> Any:
    return array.device if library_of(array) in ("torch", "cupy") else "its device"


def _may_overlap(a: Any, b: Any) -> bool:
    """True if two arrays of one library may have an element in common."""
    if library_of(a) == "torch":
        return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.numel())
    module = sys.modules[library_of(a)]
    return bool(module.may_share_memory(a, b))


def _tell_torch(target: Any) -> None:
    """Tells autograd that a kernel has written to a tensor."""
    if library_of(target) == "torch":
        sys.modules["torch"].autograd.graph.increment_version(target)
