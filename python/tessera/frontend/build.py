# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds a kernel: the one door into the front-end."""

from __future__ import annotations

import ast
import copy
import re
import sys
import textwrap
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from tessera.errors import (
    CompilationError,
    CompilationWarning,
    Frame,
    UserMistake,
    error_class,
    raise_core_error,
)
from tessera.frontend.constants import build_of, plain
from tessera.frontend.reads import Reads
from tessera.frontend.recursion import DEEP_RECURSION
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
from tessera.language import types
from tessera.language.callables import JITCallable, Param
from tessera.language.tensor import active, from_core_type, tensor
from tessera.wording import closest

# Inlined calls may nest this deep (see recursion.py).
MAX_CALL_DEPTH = 200


class BuiltModule(NamedTuple):
    """What `build_module` makes."""

    module: Any
    """`tessera._C.Module` of tile IR with the kernel."""
    reads: Reads
    """What it depends on outside the text of its functions."""
    dependencies: Sequence[JITCallable]
    """The functions whose source went into the module, the kernel first."""


class NoinlineFunction(NamedTuple):
    """A function of the module, built for one set of argument types."""

    name: str
    result: Any
    """What it returns, the tensors in it standing for types."""


class Session:
    """One compilation: what all the functions that it visits share."""

    def __init__(
        self, module: Any, builder: Any, options: Any, reads: Reads, interpreted: bool = False
    ) -> None:
        self.module = module
        self.options = options
        self.debug = bool(getattr(options, "debug", False))
        self.checked = self.debug or interpreted
        """Whether mistakes that show at run time alone are looked for there."""
        self.is_for_gpu = getattr(options, "target", "cpu") == "cuda" and not interpreted
        """Whether functions of libdevice are those of its library."""
        self.extern_libs: Mapping[str, str] = dict(getattr(options, "extern_libs", None) or ())
        """Files of LLVM IR by the names that kernels have for them."""
        self.visited = 0
        """How many statements and expressions have been visited, each as often as it was."""
        self.place: Optional[tuple[str, int, int]] = None
        """The place that is visited, while the builder does not know of it yet."""
        self._builder = builder
        self.walkers: list[Any] = []
        """The functions being visited, the kernel first."""
        self.printed: list[tuple[str, Any]] = []
        self.warnings: dict[tuple[str, int, str], None] = {}
        self.reads = reads
        self.dependencies: dict[JITCallable, None] = {}
        self.noinline_functions: dict[Any, NoinlineFunction] = {}
        self.noinline_names: dict[str, int] = {}
        self.scalar_function = ""
        """Whose function of scalars is visited, such as "reduce": there are no tiles in those."""

    @property
    def builder(self) -> Any:
        """The builder, which is told of places only where something is built."""
        if self.place is not None:
            self._builder.set_location(*self.place)
            self.place = None
        return self._builder

    def print(self, text: str, file: Any) -> None:
        """Prints when the compilation has succeeded or failed (see `mark`)."""
        self.printed.append((text, file))

    def warn(self, message: str, fix: str) -> None:
        """Warns of the place in the user's code that is being visited."""
        walkers = [walker for walker in self.walkers if not is_library(walker.fn)]
        line = walkers[-1].place(walkers[-1].node)[0]
        self.warnings[(walkers[-1].source.file, line, f"{message}; {fix}")] = None

    def flush(self) -> None:
        """Writes what was printed, and shows the warnings."""
        for text, file in self.printed:
            print(text, end="", file=file if file is not None else sys.stdout)
        self.printed.clear()
        if self.warnings:
            import warnings

            for file, line, message in self.warnings:
                warnings.warn_explicit(message, CompilationWarning, file, line)
            self.warnings.clear()

    def call_function(self, fn: JITCallable, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Calls a @jit function from a builtin (a combining function, say)."""
        return self.walkers[-1].call_jit(fn, args, kwargs)

    # --- Mistakes -------------------------------------------------------------------

    def error(
        self, id: str, message: str, fix: str, notes: Sequence[Any], node: Any
    ) -> CompilationError:
        """The mistake at `node` of the innermost function, as the user's code sees it."""
        # A mistake that shows up in the library was made where the user's code called it.
        walkers = list(self.walkers)
        while len(walkers) > 1 and is_library(walkers[-1].fn):
            walkers.pop()
            node = walkers[-1].node
        places = [walker.place(walker.node) for walker in walkers[:-1]]
        innermost = walkers[-1]
        line, column, end_column, text = innermost.place(node)
        frames = [
            Frame(walker.fn.__name__, walker.source.file, place[0], place[1])
            for walker, place in zip(walkers, places)
        ]
        frames.append(Frame(innermost.fn.__name__, innermost.source.file, line, column))
        where = (innermost.source.file, line, column, end_column, text)
        error = error_class(id)(id, message, fix, *where, frames, notes)
        nodes = [*(walker.node for walker in walkers[:-1]), node]
        error.src, error.node = excerpt(walkers[0].fn, nodes[0])
        if has_answered_to_triton():
            # There the error of a kernel is caused by that of the function it calls.
            outer = error
            for index, walker in enumerate(walkers[1:], 1):
                inner = error_class(id)(id, message, fix, *where, frames[index:], notes)
                inner.src, inner.node = excerpt(walker.fn, nodes[index])
                outer.__cause__ = inner
                outer = inner
            if id not in _OF_THE_LANGUAGE:  # but of one of its functions
                outer.__cause__ = UserMistake(id, message, fix)
        return error


def excerpt(fn: JITCallable, node: ast.AST) -> tuple[str, ast.AST]:
    """The text of a function from its `def` on, not indented, and a node as it is in there."""
    source = source_of(fn)
    tree = source.tree
    text = "".join(line + "\n" for line in source.lines[tree.lineno - source.first_line :])
    placed = copy.copy(node)
    if hasattr(node, "lineno"):
        placed.lineno = node.lineno - tree.lineno + 1  # type: ignore[attr-defined]
        placed.col_offset = node.col_offset - tree.col_offset  # type: ignore[attr-defined]
    return textwrap.dedent(text), placed


def has_answered_to_triton() -> bool:
    """Whether somebody has imported the package of tessera.compat.triton."""
    return getattr(sys.modules.get("triton"), "__tessera__", False) is True


_OF_THE_LANGUAGE = ("E007", "E008", "E010", "E012", "E013", "E014", "E067")


def is_library(fn: JITCallable) -> bool:
    """Whether `fn` belongs to the language rather than to the user."""
    return fn.__module__.startswith("tessera.language")


def build_module(
    fn: JITCallable, args: Sequence[ArgSpec], options: Any, interpreted: bool = False
) -> BuiltModule:
    """Tile IR of the kernel `fn` for these arguments, one ArgSpec a parameter.

    Of `options` the IR depends on `debug` and `extern_libs`, and where a kernel asks for it
    (`target_info`, `extra.cuda`, `libdevice`) on the target. What is `interpreted` finds mistakes
    at run time that compiled code finds with `debug` alone. Raises CompilationError for a mistake
    in the kernel, tessera.errors.InternalError for one of ours.
    """
    from tessera import _C

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
    return BuiltModule(module, reads, tuple(session.dependencies))


def _build_kernel(session: Session, fn: JITCallable, args: Sequence[ArgSpec]) -> None:
    from tessera._C import CoreError
    from tessera.frontend.walker import FunctionWalker

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
        except (UserMistake, CoreError) as error:
            mistake = error if isinstance(error, UserMistake) else mistake_from_core(error)
            node = next(arg for arg in ast.walk(source.tree.args) if _is_named(arg, param.name))
            raise _declaration_error(fn, node, mistake.id, mistake.message, mistake.fix) from None
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
        return constant_argument(spec.value)
    if isinstance(spec, KnownSpec):
        return tensor._of_specialised(spec.value)
    items = [_argument(item, arguments) for item in spec.items]
    if isinstance(spec, DescriptorSpec):
        from tessera.language.memory import descriptor_of

        rank = len(spec.block_shape)
        parts = items[0], items[1 : 1 + rank], items[1 + rank :]
        return descriptor_of(*parts, spec.block_shape, spec.padding, spec.rounds_to_tf32)
    return build_of(spec.cls or tuple, items)


def constant_argument(value: Any) -> Any:
    """A constant as kernel code sees it: lists are tuples, wrappers are gone."""
    return plain(value)


def check_signature(fn: JITCallable) -> None:
    """Raises CompilationError for a declaration that kernels cannot have (E006, E017)."""
    arguments = source_of(fn).tree.args
    nodes = {
        node.arg: node
        for node in [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *([arguments.vararg] if arguments.vararg else []),
        ]
    }
    for param in fn.params:
        node = nodes[param.name]
        if param.is_constexpr and param.do_not_specialize:
            raise _declaration_error(
                fn,
                node,
                "E051",
                f"do_not_specialize names `{param.name}`, which is a constexpr",
                "drop one of the two",
            )
        problem = _annotation_problem(param)
        if problem is not None:
            raise _declaration_error(fn, node.annotation or node, "E017", *problem)
        if param.has_default and not _is_constant_default(param.default):
            raise _declaration_error(
                fn,
                node,
                "E006",
                f"the default of `{param.name}` is a {type(param.default).__name__}",
                "a default must be a number, a string, None, a dtype or a tuple of these",
            )


def _declaration_error(
    fn: JITCallable, node: ast.AST, id: str, message: str, fix: str
) -> CompilationError:
    line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
    source = source_of(fn)
    text = source.lines[line - source.first_line]
    column = len(text.encode()[:column].decode(errors="replace")) + 1
    width = (node.end_col_offset or 0) - node.col_offset  # type: ignore[attr-defined]
    frame = Frame(fn.__name__, source.file, line, column)
    return CompilationError(
        id, message, fix, source.file, line, column, column + width, text, [frame]
    )


def _annotation_problem(param: Param) -> Optional[tuple[str, str]]:
    """Message and fix for an annotation that is a misspelt one of ours, if it is.

    Others (`torch.Tensor`, `Optional[int]`) are for readers and type checkers, and mean nothing
    here.
    """
    if not isinstance(param.annotation, str):
        return None
    near = misspelt_annotation(param.annotation.strip("'\" "))
    if near is None:
        return None
    message = f"parameter `{param.name}` has the unknown annotation `{param.annotation}`"
    return message, f"did you mean `tl.{near}`?" if near else "use tl.constexpr or a dtype"


def misspelt_annotation(text: str) -> Optional[str]:
    """What of `tl` an annotation's text is meant to be, if it looks like that and is not.

    Empty if it is of `tl` by its spelling, and nothing there is near it.
    """
    import builtins
    from difflib import get_close_matches

    import tessera.language as tl

    dtypes = [*types._PUBLIC_NAMES.values(), *(entry.name for entry in types.BY_CORE_ID)]
    owner, _, name = re.split(r"[\[(]", text, maxsplit=1)[0].strip().rpartition(".")
    ours = owner in ("tl", "triton.language", "tessera.language", "language")
    if ours:
        if hasattr(tl, name) or name in types._SHORT_NAMES:
            return None
        return closest(name, ["constexpr", "const", "tensor", *dtypes]) or ""
    if owner or hasattr(builtins, name) or name == "constexpr" or name in dtypes:
        return None
    try:
        types.str_to_ty(text)
        return None
    except ValueError:
        pass
    # A bare name may be anything.
    return next(iter(get_close_matches(name, ["constexpr", *dtypes], n=1, cutoff=0.8)), None)


def _is_constant_default(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_constant_default(item) for item in value)
    return (
        value is None
        or callable(value)
        or isinstance(value, (bool, int, float, str, types.dtype, types.constexpr, JITCallable))
    )


def mistake_from_core(error: Any) -> UserMistake:
    """A mistake that the core found; InternalError if it is the core's own."""
    info = error.info
    if info.get("kind") != "user":
        raise_core_error(error)
    return UserMistake(info.get("id", "E000"), info["message"], info.get("fix", ""))
