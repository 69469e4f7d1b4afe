# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a walk over a function knows, and how it says where a mistake is."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Sequence

from tessera import _C
from tessera.errors import InternalError, TesseraError, UserMistake
from tessera.frontend.scope import Scope
from tessera.frontend.session import Session, mistake_from_core
from tessera.frontend.source import source_of
from tessera.language.callables import JITCallable

MAX_VISITED = 300_000
"""Statements and expressions of a kernel, each as often as it is visited: what would take the
compiler a minute and more."""


class WalkerState:
    """The state of a walk; the layers above add one kind of syntax each."""

    def __init__(self, session: Session, fn: JITCallable, is_kernel: bool = False) -> None:
        self.session = session
        self.fn = fn
        self.source = source_of(fn)
        self.file = self.source.file
        self.is_kernel = is_kernel
        self.scope = Scope()
        self.node: ast.AST = self.source.tree
        """What is being visited; after a mistake, where it is."""
        self.loop_live: frozenset[str] = frozenset()
        """The names whose values count when the innermost loop's body is left."""
        self.discarded: Optional[ast.AST] = None
        """The expression of a statement that does nothing with its value."""
        self.call_key: Any = None
        """Tells calls of one function apart, to find endless recursion."""

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
        """What is built next stands for this node."""
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
        except TesseraError:
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
        method: Optional[Callable[[Any], Any]] = getattr(
            self, "visit_" + node.__class__.__name__, None
        )
        if method is None:
            self.refuse(node)
        assert method is not None
        value = method(node)
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

    def refuse(self, node: ast.AST) -> None:
        """Says that kernels cannot have this syntax."""
        raise NotImplementedError

    def visit_block(self, statements: Sequence[ast.stmt], live_out: frozenset[str]) -> None:
        """Visits statements of which the names in `live_out` are read later."""
        raise NotImplementedError
