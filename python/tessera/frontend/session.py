# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One compilation: the shared state of the functions that it visits, and its error reports."""

from __future__ import annotations

import ast
import copy
import sys
import textwrap
from typing import Any, Mapping, NamedTuple, Optional, Sequence

from tessera.errors import (
    CompilationError,
    CompilationWarning,
    Frame,
    UserMistake,
    error_class,
    raise_core_error,
)
from tessera.frontend.reads import Reads
from tessera.frontend.source import source_of
from tessera.language.callables import JITCallable

_warned: set[tuple[str, int, int, str]] = set()
"""The places that `warn_once` has warned of: file, line, column and the text of the line."""


class NoinlineFunction(NamedTuple):
    """A function of the module, built for one set of argument types."""

    name: str
    result: Any
    """Its result, in which tensors stand for types."""


class Session:
    """One compilation: what all the functions that it visits share."""

    def __init__(
        self, module: Any, builder: Any, options: Any, reads: Reads, interpreted: bool = False
    ) -> None:
        self.module = module
        self.options = options
        self.debug = bool(getattr(options, "debug", False))
        self.checked = self.debug or interpreted
        """True if mistakes that show at run time alone are looked for there."""
        self.is_for_gpu = getattr(options, "target", "cpu") == "cuda" and not interpreted
        """True if functions of libdevice are those of its library."""
        self.extern_libs: Mapping[str, str] = dict(getattr(options, "extern_libs", None) or ())
        """Files of LLVM IR by the names that kernels have for them."""
        self.visited = 0
        """How many statements and expressions have been visited, each as often as it was."""
        self.place: Optional[tuple[str, int, int]] = None
        """The visited place, while the builder does not have it yet."""
        self._builder = builder
        self.walkers: list[Any] = []
        """The functions being visited, the kernel first."""
        self.printed: list[tuple[str, Any]] = []
        self.warnings: dict[tuple[str, int, str], None] = {}
        self.warned: set[tuple[str, int, int, str]] = set()
        """The places that `warn_once` has warned of in this compilation."""
        self.has_warned = False
        """True if there was anything to warn of, be it said before."""
        self.unrolled: dict[tuple[str, int], int] = {}
        """The iterations of the user's unrolled loops, by file and line."""
        self.reads = reads
        self.dependencies: dict[JITCallable, None] = {}
        self.noinline_functions: dict[Any, NoinlineFunction] = {}
        self.noinline_names: dict[str, int] = {}
        self.scalar_function = ""
        """The op whose function of scalars is visited, such as "reduce": there are no tiles in
        those."""

    @property
    def builder(self) -> Any:
        """The builder, which receives places only when something is built."""
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
        self.has_warned = True
        self.warnings[(walkers[-1].source.file, line, f"{message}; {fix}")] = None

    def warn_once(self, message: str, fix: str) -> None:
        """Warns of the place in the user's code that is being visited, once in a process, be the
        numbers in the message others the next time."""
        walker = [walker for walker in self.walkers if not is_library(walker.fn)][-1]
        line, column, _, text = walker.place(walker.node)
        place = walker.source.file, line, column, text
        self.has_warned = True
        if place not in _warned and place not in self.warned:
            self.warned.add(place)
            self.warn(message, fix)

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
        _warned.update(self.warned)

    def call_function(self, fn: JITCallable, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Calls a @jit function from a builtin (a combining function, say)."""
        return self.walkers[-1].calls.call_jit(fn, args, kwargs)

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
    """True if somebody has imported the package of tessera.compat.triton."""
    return getattr(sys.modules.get("triton"), "__tessera__", False) is True


_OF_THE_LANGUAGE = ("E007", "E008", "E010", "E012", "E013", "E014", "E067")


def is_library(fn: JITCallable) -> bool:
    """True if `fn` belongs to the language rather than to the user."""
    return fn.__module__.startswith("tessera.language")


def mistake_from_core(error: Any) -> UserMistake:
    """A mistake that the core found; InternalError if it is the core's own."""
    info = error.info
    if info.get("kind") != "user":
        raise_core_error(error)
    return UserMistake(info.get("id", "E000"), info["message"], info.get("fix", ""))
