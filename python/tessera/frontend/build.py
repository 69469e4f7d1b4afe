# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds a kernel: the one door into the front-end."""

from __future__ import annotations

import ast
import time
from typing import Any, Iterator, NamedTuple, Optional, Sequence

from tessera import _C
from tessera.errors import CompilationError, UserMistake
from tessera.frontend.constants import build_of, plain
from tessera.frontend.declarations import check_signature, declaration_error
from tessera.frontend.reads import Reads
from tessera.frontend.recursion import DEEP_RECURSION
from tessera.frontend.session import Session, mistake_from_core
from tessera.frontend.signature import (
    ArgSpec,
    ConstSpec,
    DescriptorSpec,
    KnownSpec,
    TupleSpec,
    ValueSpec,
    constant_part,
    kernel_name,
)
from tessera.frontend.source import source_of
from tessera.frontend.walker import FunctionWalker
from tessera.language.callables import JITCallable
from tessera.language.memory import descriptor_of
from tessera.language.tensor import active, from_core_type, tensor


class BuiltModule(NamedTuple):
    """The result of `build_module`."""

    module: Any
    """`tessera._C.Module` of tile IR with the kernel."""
    reads: Reads
    """Its dependencies outside the text of its functions."""
    dependencies: Sequence[JITCallable]
    """The functions whose source went into the module, the kernel first."""
    has_warned: bool = False
    """True if the front-end has warned of something in the kernel."""
    unrolled: Optional[tuple[str, int, int]] = None
    """File and line of the loop that is unrolled to most iterations, and how many these are."""
    seconds: float = 0.0
    """That this took."""


def build_module(
    fn: JITCallable, args: Sequence[ArgSpec], options: Any, interpreted: bool = False
) -> BuiltModule:
    """Tile IR of the kernel `fn` for these arguments, one ArgSpec a parameter.

    The IR depends on the `options` `debug` and `extern_libs`, and on the target if a kernel reads
    it (`target_info`, `extra.cuda`, `libdevice`). `interpreted` code finds mistakes at run time
    that compiled code finds only with `debug`. Raises CompilationError for a mistake in the kernel,
    tessera.errors.InternalError for one of ours.
    """
    start = time.monotonic()
    module = _C.Module()
    reads = Reads(fn)
    session = Session(module, _C.Builder(module), options, reads, interpreted)
    outer, active.session = active.session, session
    try:
        with DEEP_RECURSION:
            _build_kernel(session, fn, args)
    except BaseException:
        active.session = outer
        # A filter that makes errors of warnings shall not hide what went wrong.
        try:
            session.flush()
        except Warning:
            pass
        raise
    active.session = outer
    session.flush()
    unrolled = max(session.unrolled.items(), key=lambda item: item[1], default=None)
    return BuiltModule(
        module,
        reads,
        tuple(session.dependencies),
        session.has_warned,
        None if unrolled is None else (*unrolled[0], unrolled[1]),
        time.monotonic() - start,
    )


def _build_kernel(session: Session, fn: JITCallable, args: Sequence[ArgSpec]) -> None:
    params = fn.params
    check_signature(fn)
    values = list(_value_specs(args))
    source = source_of(fn)
    session.place = source.file, source.tree.lineno, source.tree.col_offset + 1
    handles = session.builder.call(
        "begin_function",
        _name(fn, args),
        [spec.type for spec in values],
        [spec.divisibility for spec in values],
        True,
        False,
    )
    arguments = iter(
        tensor(handle, from_core_type(spec.type)) for handle, spec in zip(handles, values)
    )
    walker = FunctionWalker(session, fn, is_kernel=True)
    for index, (param, spec) in enumerate(zip(params, args)):
        session.reads.argument(index, constant_part(spec))
        try:
            walker.scope.set(param.name, _argument(spec, arguments))
        except (UserMistake, _C.CoreError) as error:
            mistake = error if isinstance(error, UserMistake) else mistake_from_core(error)
            node = next(arg for arg in ast.walk(source.tree.args) if _is_named(arg, param.name))
            raise declaration_error(fn, node, mistake.id, mistake.message, mistake.fix) from None
    walker.run()
    session.builder.call("end_function", [])


def _name(fn: JITCallable, args: Sequence[ArgSpec]) -> str:
    try:
        return kernel_name(fn, args)
    except Exception as error:
        raise CompilationError.at_function(
            fn.fn,
            "E016",
            f"the `repr` of `{fn.__name__}` raised {type(error).__name__}: {error}",
            "have it return a name",
        ) from None


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.arg) and node.arg == name


def _value_specs(args: Sequence[ArgSpec]) -> Iterator[ValueSpec]:
    for spec in args:
        if isinstance(spec, ValueSpec):
            yield spec
        elif isinstance(spec, (TupleSpec, DescriptorSpec)):
            yield from _value_specs(spec.items)


def _argument(spec: ArgSpec, arguments: Iterator[tensor]) -> Any:
    if isinstance(spec, ValueSpec):
        return next(arguments)
    if isinstance(spec, ConstSpec):
        return plain(spec.value)
    if isinstance(spec, KnownSpec):
        return tensor._of_specialised(spec.value)
    items = [_argument(item, arguments) for item in spec.items]
    if isinstance(spec, DescriptorSpec):
        rank = len(spec.block_shape)
        parts = items[0], items[1 : 1 + rank], items[1 + rank :]
        return descriptor_of(*parts, spec.block_shape, spec.padding, spec.rounds_to_tf32)
    return build_of(spec.cls or tuple, items)
