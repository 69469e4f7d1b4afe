# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The walk over one function: a kernel, or a call of a @jit function inside it.

A walker knows what all of its parts share: the scope, the place, the compilation. Each part
visits some kinds of syntax (`visit_BinOp`), and reaches the others through the walker.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional

from tessera import _C
from tessera.errors import InternalError, TesseraError, UserMistake
from tessera.frontend.aggregates import Aggregates
from tessera.frontend.branches import Branches
from tessera.frontend.calls import Calls
from tessera.frontend.expressions import Expressions
from tessera.frontend.logic import Logic
from tessera.frontend.loops import Loops
from tessera.frontend.part import Part
from tessera.frontend.python_builtins import PythonBuiltins
from tessera.frontend.scope import RESULT, RETURNED, Scope
from tessera.frontend.session import Session, mistake_from_core
from tessera.frontend.source import source_of
from tessera.frontend.statements import Statements
from tessera.language.callables import JITCallable

MAX_VISITED = 300_000
"""Statements and expressions of a kernel, each as often as it is visited: what would take the
compiler a minute and more."""

_PARTS: dict[str, type[Part]] = {
    "aggregates": Aggregates,
    "branches": Branches,
    "builtins": PythonBuiltins,
    "calls": Calls,
    "expressions": Expressions,
    "logic": Logic,
    "loops": Loops,
    "statements": Statements,
}

_VISITORS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    name.removeprefix("visit_"): (part, method)
    for part, cls in _PARTS.items()
    for name, method in vars(cls).items()
    if name.startswith("visit_")
}
"""By the name of the node's class: the part that visits it, and by which method."""


class FunctionWalker:
    """Visits the body of a function whose parameters are in `scope`."""

    def __init__(self, session: Session, fn: JITCallable, is_kernel: bool = False) -> None:
        self.session = session
        self.fn = fn
        self.source = source_of(fn)
        self.file = self.source.file
        self.is_kernel = is_kernel
        self.scope = Scope()
        self.node: ast.AST = self.source.tree
        """The visited node; after a mistake, its place."""
        self.loop_live: frozenset[str] = frozenset()
        """The names whose values count at the end of the innermost loop's body."""
        self.discarded: Optional[ast.AST] = None
        """The expression of a statement that does nothing with its value."""
        self.call_key: Any = None
        """Distinguishes calls of one function, to find endless recursion."""
        self.aggregates = Aggregates(self)
        self.branches = Branches(self)
        self.builtins = PythonBuiltins(self)
        self.calls = Calls(self)
        self.expressions = Expressions(self)
        self.logic = Logic(self)
        self.loops = Loops(self)
        self.statements = Statements(self)

    def inside(self, fn: JITCallable) -> FunctionWalker:
        """One for a function that this one calls."""
        return FunctionWalker(self.session, fn)

    def run(self) -> Any:
        """Builds the body; the value that the function returns (None for a kernel)."""
        self.session.walkers.append(self)
        if self.fn not in self.session.dependencies:
            self.session.dependencies[self.fn] = None
            self.session.reads.function(self.fn)
        try:
            with self.reporting():
                return self._run()
        finally:
            self.session.walkers.pop()
            # Parts and walker hold each other: without this, what the scope has would stay until
            # the garbage collector comes.
            for name in _PARTS:
                delattr(self, name)

    def _run(self) -> Any:
        self.scope.set(RETURNED, False)
        live = frozenset() if self.is_kernel else frozenset((RETURNED, RESULT))
        self.statements.visit_block(self.source.tree.body, live)
        if self.is_kernel:
            return None
        returned, result = self.scope.get(RETURNED), self.scope.values.get(RESULT)
        if returned is not True and result is not None:
            raise UserMistake(
                "E037",
                f"`{self.fn.__name__}` returns a value on one path and nothing on another",
                "return a value on every path",
                node=self.source.tree,
            )
        return result

    # --- Places -----------------------------------------------------------------------

    def place(self, node: ast.AST) -> tuple[int, int, int, str]:
        """Line, column, end column (0 if on another line) and text of a node, from 1."""
        line: int = getattr(node, "lineno", self.source.tree.lineno)
        start: int = getattr(node, "col_offset", 0)
        end: int = getattr(node, "end_col_offset", 0) or 0
        index = line - self.source.first_line
        text = self.source.lines[index] if 0 <= index < len(self.source.lines) else ""
        if getattr(node, "end_lineno", line) != line:
            end = 0
        if isinstance(node, ast.FunctionDef):
            end = 0
        if not text.isascii():
            # ast counts bytes, people count characters.
            raw = text.encode()
            start = len(raw[:start].decode(errors="replace"))
            end = len(raw[:end].decode(errors="replace"))
        return line, start + 1, end + 1 if end else 0, text

    def locate(self, node: ast.AST) -> None:
        """The IR built next belongs to this node."""
        self.node = node
        line = getattr(node, "lineno", None)
        if line is not None:
            self.session.place = self.file, line, node.col_offset + 1  # type: ignore[attr-defined]

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Turns mistakes into CompilationErrors at the node being visited."""
        mistake: Optional[UserMistake] = None
        try:
            yield
            return
        except UserMistake as error:
            mistake = error
        except _C.CoreError as error:
            mistake = mistake_from_core(error)
        except (TesseraError, MemoryError):
            raise
        except RecursionError:
            mistake = UserMistake(
                "E043", "the expression or the calls nest too deep", "split the kernel up"
            )
        except Exception as error:
            line, column, _, text = self.place(self.node)
            raise InternalError(
                f"{type(error).__name__}: {error}, while compiling "
                f"{self.source.file}:{line}:{column}: {text.strip()}"
            ) from error
        node = mistake.node if mistake.node is not None else self.node
        report = self.session.error(mistake.id, mistake.message, mistake.fix, mistake.notes, node)
        raise report from report.__cause__

    # --- Visiting -----------------------------------------------------------------------

    def visit(self, node: ast.AST) -> Any:
        """The value of an expression, or the effect of a statement."""
        outer = self.node
        self.locate(node)
        self.session.visited += 1
        if self.session.visited > MAX_VISITED:
            self.refuse_length()
        found = _VISITORS.get(node.__class__.__name__)
        if found is None:
            self.statements.refuse(node)
        part, method = found
        value = method(getattr(self, part), node)
        self.locate(outer)
        return value

    def refuse_length(self) -> None:
        raise UserMistake(
            "E040",
            "the kernel is too long with its loops unrolled and its helpers inlined: here the "
            f"front-end has visited {MAX_VISITED} statements and expressions",
            "use tl.range for the outer of nested tl.static_range, and let helpers call "
            "themselves less often",
        )
