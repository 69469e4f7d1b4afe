# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of `tessera.function` that torch traces, transforms or differentiates.

A tracer (Dynamo, export, fake tensors) gets an operator of torch. Transforms of torch.func and
gradients get a `torch.autograd.Function`. Both run the plain call in the end. vmap runs it for one
element of the batch after the other.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import Any, NamedTuple, Optional, Sequence

import torch
from torch.autograd import forward_ad

from tessera.errors import ArgumentError
from tessera.torch import generated_calls
from tessera.torch.operators import op as torch_operator
from tessera.torch.quiet_calls import PLAIN, count_modes, functorch_is_active

Function = Any
"""A tessera.calls.function.Function, whose module is above this one."""


class _Call(NamedTuple):
    """The arguments of a call, sorted by what torch has to see. Names are in the order of the call."""

    names: Sequence[str]
    kinds: str
    """A letter for each argument: `a` for a tensor, `n` for a number, `c` for a constant."""
    values: Sequence[Any]

    def of_kind(self, kind: str) -> list[Any]:
        return [value for each, value in zip(self.kinds, self.values) if each == kind]

    def given(self, values: Optional[Sequence[Any]] = None) -> dict[str, Any]:
        return dict(zip(self.names, self.values if values is None else values))


def is_plain_call(given: dict[str, Any]) -> bool:
    """True if the arguments are what a launch takes, and torch has to see nothing of the call."""
    for value in given.values():
        if isinstance(value, torch.Tensor):
            if not _is_plain(value) or (value.requires_grad and torch.is_grad_enabled()):
                return False
    return not (functorch_is_active() or count_modes() or _has_tangents())


def _is_plain(tensor: Any) -> bool:
    return type(tensor) in PLAIN and not tensor.is_meta


def _has_tangents() -> bool:
    return forward_ad._current_level >= 0 and bool(torch._C._is_fwd_grad_enabled())


AUTOCAST_CHECKS = tuple(
    (functools.partial(torch.is_autocast_enabled, device), False) for device in ("cpu", "cuda")
)
"""Functions, and what they return where nothing is converted."""


def autocasted(function: Function, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the function gets them under torch.autocast: by its option `autocast`."""
    if function.autocast is None:
        return given
    device = next(each.device.type for each in given.values() if isinstance(each, torch.Tensor))
    if not torch.is_autocast_enabled(device):
        return given
    to = torch.float32 if function.autocast == "float32" else torch.get_autocast_dtype(device)
    return {
        name: (
            value.to(to)
            if isinstance(value, torch.Tensor)
            and value.dtype in _AUTOCAST
            and name not in function.outputs
            else value
        )
        for name, value in given.items()
    }


_AUTOCAST = (torch.float16, torch.bfloat16, torch.float32)
"""The types that torch.autocast converts."""


def call(function: Function, given: dict[str, Any]) -> Any:
    """A call that something in torch may have to see."""
    given = autocasted(function, given)
    outs = {name: given[name] for name in function.outputs if name in given}
    inputs = {name: value for name, value in given.items() if name not in outs}
    made = _sorted(function, inputs)
    tensors = made.of_kind("a")
    _refuse_without_memory(function, given)
    has_gradient = torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
    if has_gradient:
        _refuse_gradient(function, given, outs)
    is_traced = torch.compiler.is_compiling() or count_modes() > 0
    if is_traced or not all(map(_is_plain, tensors)):
        function.prepare()
        results = function.operator(
            tensors, made.of_kind("n"), _typed(made), repr((made.names, made.of_kind("c")))
        )
    elif has_gradient or functorch_is_active() or _has_tangents():
        results = _Differentiable.apply(function, made.names, made.kinds, *made.values)
    else:
        return function.launch(given)
    for name, result in zip(function.outputs, results):
        if name in outs:
            outs[name].copy_(result)
    found = tuple(outs.get(name, result) for name, result in zip(function.outputs, results))
    return found[0] if len(found) == 1 else found


def _refuse_without_memory(function: Function, given: dict[str, Any]) -> None:
    """Raises ArgumentError (E076) for a tensor without memory beside one that has it."""
    tensors = [(name, each) for name, each in given.items() if isinstance(each, torch.Tensor)]
    devices = {each.device.type == "meta": (name, each.device) for name, each in tensors}
    if len(devices) > 1:
        (one, device), (other, meta) = devices[False], devices[True]
        raise ArgumentError(
            "E076",
            f"argument `{other}` of `{function.__name__}` is on {meta}, and `{one}` on {device}",
            "pass arrays of one device",
        )


def _sorted(function: Function, given: dict[str, Any]) -> _Call:
    kinds = ""
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            kinds += "a"
        elif name not in function.constants and isinstance(
            value, (bool, int, float, torch.SymInt, torch.SymFloat)
        ):
            kinds += "n"
        else:
            kinds += "c"
    return _Call(list(given), kinds, list(given.values()))


def _typed(made: _Call) -> str:
    """The kinds with the type of each number: `b`, `i` or `f`."""
    letters = ""
    for kind, value in zip(made.kinds, made.values):
        if kind != "n":
            letters += kind
        elif isinstance(value, bool):
            letters += "b"
        else:
            letters += "i" if isinstance(value, (int, torch.SymInt)) else "f"
    return letters


def _refuse_gradient(function: Function, given: dict[str, Any], outs: dict[str, Any]) -> None:
    """Raises ArgumentError (E057) if the call cannot have the gradient that is asked for."""
    name = next(
        name
        for name, value in given.items()
        if isinstance(value, torch.Tensor) and value.requires_grad
    )
    if function.derivative is None:
        raise ArgumentError(
            "E057",
            f"argument `{name}` requires a gradient, and `{function.__name__}` has none",
            f"write one with @{function.__name__}.backward, or call it under torch.no_grad()",
        )
    if outs:
        raise ArgumentError(
            "E057",
            f"argument `{name}` of `{function.__name__}` requires a gradient, and a call that writes "
            f"to `{next(iter(outs))}` has none",
            "leave the output out, or call it under torch.no_grad()",
        )


def _gradients(
    function: Function, known: dict[str, Any], shapes: dict[str, Any], grads: Sequence[Any]
) -> list[Any]:
    """A gradient for each tensor among the arguments. `known` has arguments and results that the
    derivative reads, and `shapes` one for each such tensor, both by name."""
    known = {**known, **{f"grad_{name}": grad for name, grad in zip(function.outputs, grads)}}
    arguments = []
    for name in function.derivative_names:
        if name not in known:
            known[name] = function.default(name)
        arguments.append(known[name])
    device = grads[0].device.type if grads and grads[0] is not None else "cpu"
    if function.autocast is not None and torch.is_autocast_enabled(device):
        with torch.autocast(device, enabled=False):  # as the function itself ran
            found = function.derivative(*arguments)
    else:
        found = function.derivative(*arguments)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(found) != len(shapes):
        raise ArgumentError(
            "E076",
            f"the derivative of `{function.__name__}` returns {len(found)} gradients, and the call "
            f"has {len(shapes)} arrays: {', '.join(shapes)}",
            "return a gradient, or None, for each",
        )
    for at, (grad, (name, shape)) in enumerate(zip(found, shapes.items())):
        if grad is not None and grad.shape != shape:
            if function.is_broadcast(name) and _is_wider(grad.shape, shape):
                found[at] = grad.sum_to_size(shape)
                continue
            raise ArgumentError(
                "E076",
                f"the derivative of `{function.__name__}` returns a gradient of shape "
                f"{tuple(grad.shape)} for `{name}` of shape {tuple(shape)}",
                "return one of the shape of the argument",
            )
    return found


def _is_wider(shape: Sequence[int], narrow: Sequence[int]) -> bool:
    """True if arrays of the second shape can be broadcast to the first."""
    try:
        return tuple(torch.broadcast_shapes(shape, narrow)) == tuple(shape)
    except RuntimeError:
        return False


class _Differentiable(torch.autograd.Function):  # type: ignore[misc]
    """A call with a gradient, and one inside transforms of torch.func."""

    @staticmethod
    def forward(function: Function, names: Sequence[str], kinds: str, *values: Any) -> Any:
        results = call(function, dict(zip(names, values)))
        return results if isinstance(results, tuple) else (results,)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        function, names, kinds, *values = inputs
        tensors = {name: each for name, kind, each in zip(names, kinds, values) if kind == "a"}
        read = {*function.derivative_names, *function.forward_names}
        known = {**tensors, **dict(zip(function.outputs, output))}
        saved = {name: each for name, each in known.items() if name in read}
        ctx.save_for_backward(*saved.values())
        if function.forward_derivative is not None:
            ctx.save_for_forward(*saved.values())
        ctx.function, ctx.names, ctx.kinds, ctx.saved = function, names, kinds, tuple(saved)
        ctx.others = {name: each for name, each in zip(names, values) if name not in tensors}
        ctx.shapes = {name: each.shape for name, each in tensors.items()}
        ctx.results = [(each.shape, each.is_floating_point()) for each in output]
        ctx.mark_non_differentiable(*[each for each in output if not each.is_floating_point()])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        found = iter(_gradients(ctx.function, _restored(ctx), ctx.shapes, grads))
        return None, None, None, *[next(found) if kind == "a" else None for kind in ctx.kinds]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        if ctx.function.forward_derivative is None:
            raise _no_forward_derivative(ctx.function)
        given = dict(zip(ctx.names, tangents[3:]))
        return _tangents(ctx.function, _restored(ctx), ctx.results, given)

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, function: Function, names: Any, kinds: str, *values: Any
    ) -> Any:
        calls = _each_of_batch(function, info.batch_size, values, in_dims[3:])
        made = [_Differentiable.apply(function, names, kinds, *each) for each in calls]
        stacked = tuple(torch.stack(each) for each in zip(*made))
        return stacked, (0,) * len(stacked)


def _restored(ctx: Any) -> dict[str, Any]:
    """Arguments and results of a call that a derivative reads, by name."""
    # Torch hands a saved tensor out once where it is computed again (torch.utils.checkpoint).
    return {**ctx.others, **dict(zip(ctx.saved, ctx.saved_tensors))}


def _tangents(
    function: Function,
    known: dict[str, Any],
    results: Sequence[tuple[Any, bool]],
    tangents: dict[str, Any],
) -> Any:
    """The tangent of each result; None for one that is no float. `results` has the shape of each, and
    whether it is of floats."""
    known = {**known, **{f"tangent_{name}": each for name, each in tangents.items()}}
    arguments = []
    for name in function.forward_names:
        if name not in known:
            known[name] = None if name.startswith("tangent_") else function.default(name)
        arguments.append(known[name])
    found = function.forward_derivative(*arguments)
    found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if [each.shape for each in found if each is not None] != [
        shape for (shape, _), each in zip(results, found) if each is not None
    ] or len(found) != len(results):
        shapes = [tuple(each.shape) if each is not None else None for each in found]
        raise ArgumentError(
            "E076",
            f"the forward derivative of `{function.__name__}` returns tangents of shapes {shapes}, "
            f"and its outputs have {[tuple(shape) for shape, _ in results]}",
            "return a tangent of its shape, or None, for each output",
        )
    return tuple(each if is_float else None for each, (_, is_float) in zip(found, results))


def _no_forward_derivative(function: Function) -> ArgumentError:
    return ArgumentError(
        "E057",
        f"an argument of `{function.__name__}` has a tangent, and the function has no forward "
        "derivative",
        f"write one with @{function.__name__}.forward, or differentiate backward",
    )


def _each_of_batch(
    function: Function, size: int, values: Sequence[Any], in_dims: Sequence[Any]
) -> list[list[Any]]:
    """The arguments for each element of a batch."""
    if not size:
        raise ArgumentError(
            "E057",
            f"`{function.__name__}` is called by vmap on a batch without elements",
            "call it without vmap",
        )
    moved = [
        value if dim is None else value.movedim(dim, 0).contiguous()
        for value, dim in zip(values, in_dims)
    ]
    return [
        [value if dim is None else value[at] for value, dim in zip(moved, in_dims)]
        for at in range(size)
    ]


# --- The operator of torch ------------------------------------------------------------


def prepare_operator(function: Function) -> bool:
    """Makes the operator; True."""
    if function.operator is None:
        function.operator = _make_operator(function)
    return True


users: dict[str, Function] = {}
"""Functions by the names of their operators."""

_used: dict[str, int] = {}


def _unpacked(
    function: Function, arrays: Sequence[Any], numbers: Sequence[Any], kinds: str, constants: str
) -> dict[str, Any]:
    """The arguments by name."""
    names, others = ast.literal_eval(constants)
    of_kinds = {"a": iter(arrays), "c": iter(others)}
    scalars, types = iter(numbers), {"b": bool, "i": int, "f": float}
    return {
        name: types[kind](next(scalars)) if kind in types else next(of_kinds[kind])
        for name, kind in zip(names, kinds)
    }


def _make_operator(function: Function) -> Any:
    name = re.sub(r"\W+", "_", f"{function.__module__}_{function.__qualname__}")
    number = _used[name] = _used.get(name, 0) + 1

    def run(arrays: Any, numbers: Any, kinds: str, constants: str) -> Any:
        # Subclasses have seen the call. Those without a dispatch of their own still are here.
        with torch._C.DisableTorchFunctionSubclass():
            arrays = [
                each if type(each) in PLAIN else each.as_subclass(torch.Tensor) for each in arrays
            ]
        result = function.launch(_unpacked(function, arrays, numbers, kinds, constants))
        return list(result) if isinstance(result, tuple) else [result]

    def fake(arrays: Any, numbers: Any, kinds: str, constants: str) -> Any:
        given = _unpacked(function, arrays, numbers, kinds, constants)
        return function.make_outputs(given)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        arrays, ctx.numbers, ctx.kinds, ctx.constants = inputs
        ctx.save_for_backward(*arrays, *output)

    def backward(ctx: Any, grads: Any) -> Any:
        count = ctx.kinds.count("a")
        saved = list(ctx.saved_tensors)
        given = _unpacked(function, saved[:count], ctx.numbers, ctx.kinds, ctx.constants)
        shapes = {n: each.shape for n, each in given.items() if isinstance(each, torch.Tensor)}
        given.update(zip(function.outputs, saved[count:]))
        found = _gradients(function, given, shapes, grads)
        # torch takes an empty list for one of tensors.
        return found, None if ctx.numbers else [], None, None

    def vmap(info: Any, in_dims: Any, arrays: Any, numbers: Any, kinds: str, constants: str) -> Any:
        calls = _each_of_batch(function, info.batch_size, arrays, in_dims[0])
        made = [operator(each, numbers, kinds, constants) for each in calls]
        stacked = [torch.stack(each) for each in zip(*made)]
        return stacked, [0] * len(stacked)

    qualified = f"tessera::function_{name}" + (f"_{number}" if number > 1 else "")
    users[qualified] = function
    operator = torch_operator(
        qualified,
        schema="(Tensor[] arrays, Scalar[] numbers, str kinds, str constants) -> Tensor[]",
        fake=fake,
        backward=backward,
        setup_context=setup_context,
        vmap=vmap,
    )(run)
    operator.generate = _generate
    return operator


class FunctionCall:
    """A call in generated code of a function of `tessera.function`, with arguments of these names."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self._name, self._names = name, names
        self._function: Function = None

    def __call__(self, *args: Any) -> Any:
        if self._function is None:
            self._function = generated_calls.find(users, self._name)
        found = self._function(**dict(zip(self._names, args)))
        return found if isinstance(found, tuple) else (found,)


def _generate(
    name: str, ranks: Sequence[int], kinds: str, constants: str
) -> tuple[str, str, Sequence[Any]]:
    """As DirectOperator has it."""
    names, values = ast.literal_eval(constants)
    return "functions", f"FunctionCall({name!r}, {names!r})", values
