# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's mistakes, shown where the user made them.

A CompilationError names file, line and column, shows the source line with a caret, the
chain of calls through @jit functions and a fix, and has a stable id. It never shows a
frame of the compiler: whoever raises it out of the front-end does so `from None`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence


class TesseraError(Exception):
    """Base of all errors that Tessera raises on purpose."""

    __notes__: list[str]
    """What a traceback shows below the message (from Python 3.11 on)."""

    def _point_to_explanation(self, id: str) -> None:
        """Has a traceback end with where `id` is explained. The text of the error is the same."""
        if id and id != "E000":
            self.__notes__ = [f"see: python -m tessera explain {id}"]


class Frame(NamedTuple):
    """One call in the chain from the kernel to the function with the mistake."""

    function: str
    """The @jit function that was being visited."""
    file: str
    line: int
    column: int
    """Where in it: the call (or the mistake itself, in the innermost frame); from 1."""


class Note(NamedTuple):
    """A second place that has to do with the mistake."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 0


class CompilationWarning(UserWarning):
    """Something in a kernel that has a meaning, but hardly the one that was wanted."""


class UserMistake(Exception):
    """A mistake found by a builtin, which does not know where it was called.

    The front-end turns it into a CompilationError at the node that it is visiting.
    """

    def __init__(
        self, id: str, message: str, fix: str = "", notes: Sequence[Note] = (), node: Any = None
    ) -> None:
        super().__init__(message)
        self.id = id
        self.message = message
        self.fix = fix
        self.notes = tuple(notes)
        self.node = node
        """The `ast` node with the mistake, where that is not the one being visited."""


class CompilationError(TesseraError):
    """A mistake in a kernel.

    Attributes: `id` ("E018"), `message`, `fix` (may be empty), `file`, `line`, `column`
    (from 1), `end_column` (exclusive; 0 if unknown), `source_line`, `frames` (innermost
    last), `notes`. And those that programs written for Triton read: `error_message`, `src`, `node`,
    which are of the kernel where the mistake is in a function that it calls.
    """

    src: Optional[str] = None
    """The text of the kernel from its `def` on, not indented."""
    node: Any = None
    """The node of its syntax tree, with `lineno` and `col_offset` as they are in `src`."""

    def __init__(
        self,
        id: str,
        message: str,
        fix: str = "",
        file: str = "",
        line: int = 0,
        column: int = 0,
        end_column: int = 0,
        source_line: str = "",
        frames: Sequence[Frame] = (),
        notes: Sequence[Note] = (),
    ) -> None:
        super().__init__(message)
        self.id = id
        self.message = message
        self.fix = fix
        self.file = file
        self.line = line
        self.column = column
        self.end_column = end_column
        self.source_line = source_line
        self.frames = tuple(frames)
        self.notes = tuple(notes)
        self._point_to_explanation(id)

    @property
    def error_message(self) -> str:
        """What is wrong, without the place."""
        return self.message

    @classmethod
    def at_function(cls, fn: Any, id: str, message: str, fix: str = "") -> "CompilationError":
        """The mistake is in how `fn` (a plain Python function) is declared."""
        code = getattr(fn, "__code__", None)
        file = code.co_filename if code else ""
        line = code.co_firstlineno if code else 0
        text = ""
        column = 1
        if file:
            import linecache

            # co_firstlineno is the first decorator's line; the `def` is what is meant.
            while text := linecache.getline(file, line).rstrip("\n"):
                stripped = text.lstrip()
                if stripped.startswith(("def ", "async ")) or not stripped.startswith("@"):
                    break
                line += 1
            column = len(text) - len(text.lstrip()) + 1
        return cls(id, message, fix, file, line, column, 0, text)

    @classmethod
    def at_caller(cls, id: str, message: str, fix: str = "") -> "CompilationError":
        """The mistake is in the line that called the library."""
        import linecache
        import sys

        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "tessera":
            frame = frame.f_back
        if frame is None:
            return cls(id, message, fix)
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = linecache.getline(file, line).rstrip("\n")
        return cls(id, message, fix, file, line, len(text) - len(text.lstrip()) + 1, 0, text)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.file else ""
        text = [f"{place}error[{self.id}]: {self.message}"]
        if self.source_line:
            text.append(f"  {self.line:>4} | {self.source_line}")
            # Tabs are kept, so that the caret stands under what it points to.
            before = self.source_line[: self.column - 1]
            pad = "".join(c if c == "\t" else " " for c in before)
            end = min(self.end_column, len(self.source_line) + 1)
            marks = "^" + "~" * max(0, end - self.column - 1)
            text.append(f"       | {pad}{marks}")
        for note in self.notes:
            where = f"{note.file}:{note.line}:{note.column}: " if note.file else ""
            text.append(f"{where}note: {note.message}")
        for inner, outer in zip(reversed(self.frames), reversed(self.frames[:-1])):
            text.append(
                f"{outer.file}:{outer.line}:{outer.column}: "
                f"note: `{inner.function}` called from `{outer.function}`"
            )
        if self.fix:
            text.append(f"fix: {self.fix}")
        return "\n".join(text)

    def __reduce__(self) -> Any:
        return (
            type(self),
            (
                self.id,
                self.message,
                self.fix,
                self.file,
                self.line,
                self.column,
                self.end_column,
                self.source_line,
                self.frames,
                self.notes,
            ),
        )


class CompileTimeAssertionFailure(CompilationError):
    """A `static_assert` that does not hold."""


class UnsupportedLanguageConstruct(CompilationError):
    """Python that kernels cannot use (E007, E008, E014)."""


def error_class(id: str) -> type[CompilationError]:
    """The class that reports mistakes of this id."""
    if id == "E067":
        return CompileTimeAssertionFailure
    if id in ("E007", "E008", "E014"):
        return UnsupportedLanguageConstruct
    return CompilationError


def closest(name: str, candidates: Sequence[str]) -> Optional[str]:
    """The candidate that `name` is probably a misspelling of."""
    from difflib import get_close_matches

    found = get_close_matches(name, candidates, n=1, cutoff=0.6)
    return found[0] if found else None
