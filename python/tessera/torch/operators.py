# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""@op: a function that launches kernels as an operator of torch.

An operator is opaque to torch: autograd, torch.compile and vmap use its schema and its
registrations, not its function. torch.library.custom_op implements all of that. This module adds
checks that are possible because the function launches kernels. It finds the shapes of results by
running the function on fake tensors without launching. It compares the arguments that kernels write
to with the schema.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import threading
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence, Union

import torch
import torch._library.autograd as custom_op_autograd
from torch._library import custom_ops
from torch.autograd import forward_ad

from tessera.errors import ArgumentError, CompilationError, TesseraError, UnsupportedError
from tessera.locks import load
from tessera.runtime.tracing import Watch, WatchedArgument, fake_launches_skipped, writes_watched
from tessera.settings import note_change
from tessera.torch.direct_calls import DirectFunction, DirectOperator
from tessera.torch.quiet_calls import functorch_is_active
from tessera.wording import counted, shown, with_article


def op(
    name: Any = None,
    /,
    *,
    mutates_args: Union[str, Sequence[str]] = (),
    schema: Optional[str] = None,
    fake: Optional[Callable[..., Any]] = None,
    backward: Optional[Callable[..., Any]] = None,
    setup_context: Optional[Callable[..., Any]] = None,
    vmap: Optional[Callable[..., Any]] = None,
    device_types: Union[None, str, Sequence[str]] = None,
) -> Any:
    """Makes an operator of torch of a function that launches kernels.

    `@tessera.torch.op("mylib::scale")`; bare, the operator is `tessera::` and the function's name.
    The result is a `torch.library.CustomOpDef`, which is called like the function. Options:
      mutates_args: the names of the arguments that the function writes to.
      schema: as torch writes them, "(Tensor x, float factor) -> Tensor"; without one it follows
        from the function's annotations.
      fake: a function that makes the results without values; without one the function itself is
        run on fake tensors, and launches do nothing.
      backward, setup_context: as of torch.library.register_autograd: `backward(ctx, *grads)` and
        `setup_context(ctx, inputs, output)`.
      vmap: as of torch.library.register_vmap: `vmap(info, in_dims, *args)`.
      device_types: "cpu", "cuda" or both; None for all.

    Eager calls of plain tensors call the function without torch's dispatcher. A
    kernel that torch.library.impl registers for the operator is called by `torch.ops` alone.

    Raises CompilationError (E078) for a function or options that do not fit the schema; a call,
    ArgumentError: E078 for a result that does not, or an argument that is written all the same,
    E057 for an argument with a tangent (torch.func.jvp, torch.autograd.forward_ad).
    """

    def decorate(fn: Callable[..., Any]) -> Any:
        return _make_operator(
            fn,
            name if isinstance(name, str) else None,
            mutates_args,
            schema,
            fake,
            backward,
            setup_context,
            vmap,
            device_types,
        )

    if name is None or isinstance(name, str):
        return decorate
    return decorate(name)


class _Schema(NamedTuple):
    """The parts of a schema that are checked here."""

    text: str
    arguments: tuple[str, ...]
    types: tuple[str, ...]
    """Of the arguments."""
    written: tuple[str, ...]
    results: tuple[str, ...]
    """Their types."""


def _make_operator(
    fn: Any,
    name: Optional[str],
    mutates_args: Union[str, Sequence[str]],
    schema: Optional[str],
    fake: Optional[Callable[..., Any]],
    backward: Optional[Callable[..., Any]],
    setup_context: Optional[Callable[..., Any]],
    vmap: Optional[Callable[..., Any]],
    device_types: Union[None, str, Sequence[str]],
) -> Any:
    if not hasattr(torch.library, "custom_op"):
        raise UnsupportedError(
            "E077", f"torch {torch.__version__} has no torch.library.custom_op", "use torch 2.4"
        )
    if not inspect.isfunction(fn):
        raise _mistake(
            f"@tessera.torch.op is put on {with_article(type(fn).__name__)}: {shown(fn)}",
            "put it on a function that launches kernels",
        )
    qualified = name or f"tessera::{fn.__name__}"
    if not re.fullmatch(r"\w+::\w+(\.\w+)?", qualified):
        raise _mistake(f"{name!r} is no name for an operator", 'write "mylib::scale"')
    written = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)
    found = _find_schema(fn, qualified, written, schema)
    run = _Implementation(fn, qualified, found)
    if setup_context is not None and backward is None:
        raise _mistake(f"operator {qualified} has a setup_context, but no backward", "pass both")
    try:
        with _torch_extended(qualified, found):
            operator: Any = torch.library.custom_op(
                qualified, run, mutates_args=written, schema=found.text, device_types=device_types
            )
    except (ValueError, RuntimeError, TypeError) as error:
        raise _mistake(f"torch refuses operator {qualified}: {error}", "see its message") from error
    operator.register_fake(_known_to_inductor(fake or _run_without_launches(fn)))
    if backward is not None:
        try:
            operator.register_autograd(backward, setup_context=setup_context)
        except (ValueError, RuntimeError, TypeError) as error:
            raise _mistake(
                f"torch refuses a gradient for operator {qualified}: {error}",
                "an operator that writes to its arguments has none",
            ) from error
    if vmap is not None:
        operator.register_vmap(vmap)
    functools.update_wrapper(operator, fn)
    if isinstance(operator, DirectOperator):
        operator.call_directly(
            DirectFunction(
                qualified,
                fn,
                run.check_result,
                run.is_checked,
                found.arguments,
                found.types,
                found.written,
                found.results == ("Tensor",),
            )
        )
    return operator


def _find_schema(
    fn: Any, qualified: str, written: tuple[str, ...], given: Optional[str]
) -> _Schema:
    parameters = inspect.signature(fn).parameters
    for argument in written:
        if argument not in parameters:
            raise _mistake(
                f"mutates_args of operator {qualified} names `{argument}`, which is no parameter",
                f"the parameters are {', '.join(parameters) or 'none'}",
            )
    if given is None:
        try:
            given = torch.library.infer_schema(fn, mutates_args=written)
        except Exception as error:
            raise _mistake(
                f"the annotations of `{fn.__name__}` make no schema for operator {qualified}: "
                f"{str(error).splitlines()[0] if str(error) else type(error).__name__}",
                "annotate each parameter and the result with torch.Tensor, int, float, bool, str, "
                "Optional or a sequence of these, or pass schema=",
            ) from error
    try:
        parsed = torch._C.parse_schema(f"{qualified}{given}")
    except RuntimeError as error:
        raise _mistake(
            f"the schema of operator {qualified} cannot be read: {str(error).splitlines()[0]}",
            'write it as in "(Tensor x, float factor) -> Tensor"',
        ) from error
    schema = _Schema(
        given,
        tuple(argument.name for argument in parsed.arguments),
        tuple(str(argument.type) for argument in parsed.arguments),
        tuple(
            argument.name
            for argument in parsed.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ),
        tuple(str(result.type) for result in parsed.returns),
    )
    if schema.arguments != tuple(parameters):
        raise _mistake(
            f"the schema of operator {qualified} has the arguments "
            f"{', '.join(schema.arguments) or 'none'}, and `{fn.__name__}` has "
            f"{', '.join(parameters) or 'none'}",
            "give both the same names in the same order",
        )
    if set(schema.written) != set(written):
        raise _mistake(
            f"the schema of operator {qualified} says that it writes to "
            f"{', '.join(schema.written) or 'none'} of its arguments, and mutates_args to "
            f"{', '.join(written) or 'none'}",
            "mark the same arguments with (a!), as in Tensor(a!) x",
        )
    return schema


_PATCHING = threading.Lock()


@contextlib.contextmanager
def _torch_extended(qualified: str, schema: _Schema) -> Iterator[None]:
    """Has the operator that is made in the block be a DirectOperator, and refuse arguments with
    tangents, and derivatives in torch.func.

    torch has no forward derivatives of such operators. It drops tangents, so that they are zeros,
    and this cannot be found below autograd. Its own error in torch.func names a class that the user
    has not written.
    """
    make_impl = custom_op_autograd.make_autograd_impl

    def make_autograd_impl(op: Any, info: Any) -> Callable[..., Any]:
        impl: Callable[..., Any] = make_impl(op, info)
        if f"{op._namespace}::{op._opname}" != qualified.partition(".")[0]:
            return impl

        def refuse_tangents(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            if forward_ad._current_level >= 0 and torch._C._is_fwd_grad_enabled():
                _refuse_tangents(qualified, {**dict(zip(schema.arguments, args)), **kwargs})
            if functorch_is_active() and torch.is_grad_enabled():
                _refuse_transform(qualified, {**dict(zip(schema.arguments, args)), **kwargs})
            return impl(keyset, *args, **kwargs)

        return refuse_tangents

    with _PATCHING:
        setattr(custom_op_autograd, "make_autograd_impl", make_autograd_impl)
        setattr(custom_ops, "CustomOpDef", DirectOperator)
        try:
            yield
        finally:
            setattr(custom_op_autograd, "make_autograd_impl", make_impl)
            setattr(custom_ops, "CustomOpDef", torch.library.CustomOpDef)


def _refuse_tangents(qualified: str, named: dict[str, Any]) -> None:
    for name, value in named.items():
        for tensor in value if isinstance(value, (tuple, list)) else (value,):
            if not isinstance(tensor, torch.Tensor):
                continue
            if forward_ad.unpack_dual(tensor).tangent is not None:
                raise ArgumentError(
                    "E057",
                    f"argument `{name}` of operator {qualified} has a tangent, and operators of "
                    "@tessera.torch.op have no forward derivatives",
                    "call it in a torch.autograd.Function that has a `jvp`, or differentiate "
                    "backward",
                )


def _refuse_transform(qualified: str, named: dict[str, Any]) -> None:
    for name, value in named.items():
        each = value if isinstance(value, (tuple, list)) else (value,)
        if any(isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in each):
            raise ArgumentError(
                "E057",
                f"argument `{name}` of operator {qualified} is differentiated by torch.func, which "
                "operators of torch.library do not support",
                "make it a @tessera.function with a derivative, or call backward()",
            )


class _Implementation:
    """The function as torch calls it: below autograd, with its result and, once, what it writes to
    compared with the schema."""

    def __init__(self, fn: Any, qualified: str, schema: _Schema) -> None:
        self._fn = fn
        self._qualified = qualified
        self._schema = schema
        self._is_checked = False
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            if self._is_checked:
                result = self._fn(*args, **kwargs)
            else:
                # Launches that are known take a short way, on which nothing is compared.
                note_change()
                with writes_watched(self._watch(args, kwargs)):
                    result = self._fn(*args, **kwargs)
                self._is_checked = True
        self.check_result(result)
        return result

    def is_checked(self) -> bool:
        """True if a call has been compared with the schema."""
        return self._is_checked

    def _watch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Watch:
        named = {**dict(zip(self._schema.arguments, args)), **kwargs}
        watched = []
        for name, value in named.items():
            if name in self._schema.written:
                continue
            for tensor in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(tensor, torch.Tensor) and tensor.numel():
                    storage = tensor.untyped_storage()
                    begin = storage.data_ptr()
                    watched.append(WatchedArgument(name, begin, begin + storage.nbytes()))
        return Watch(self._qualified, watched)

    def check_result(self, result: Any) -> None:
        """Raises ArgumentError (E078) for a result that the schema does not have."""
        types = self._schema.results
        if len(types) == 1:
            values: Sequence[Any] = (result,)
        elif not types:
            values = () if result is None else (result,)
        else:
            values = result if isinstance(result, (tuple, list)) else (result,)
        if len(values) != len(types):
            raise ArgumentError(
                "E078",
                f"operator {self._qualified} returned {counted(len(values), 'value')}, and its "
                f"schema has {len(types)}",
                "return what the annotation, or the schema, says",
            )
        for value, kind in zip(values, types):
            if (kind == "Tensor") != isinstance(value, torch.Tensor):
                raise ArgumentError(
                    "E078",
                    f"operator {self._qualified} returned {with_article(type(value).__name__)} "
                    f"where its schema says {kind}",
                    "return what the annotation, or the schema, says",
                )


def _known_to_inductor(fake: Callable[..., Any]) -> Callable[..., Any]:
    """The same function. Its calls, as of each graph with the operator, prepare Inductor for it."""

    @functools.wraps(fake)
    def make(*args: Any, **kwargs: Any) -> Any:
        load("tessera.torch.graph_pass").install()
        return fake(*args, **kwargs)

    return make


def _run_without_launches(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            with torch.no_grad(), fake_launches_skipped():
                return fn(*args, **kwargs)
        except TesseraError:
            raise
        except Exception as error:
            note = (
                f"`{fn.__name__}` was run on fake tensors, to find the shapes of its results; if it "
                "needs values for that, pass fake= to @tessera.torch.op"
            )
            if hasattr(error, "add_note"):
                error.add_note(note)
            raise

    return run


def _mistake(message: str, fix: str) -> CompilationError:
    return CompilationError.at_caller("E078", message, fix)
