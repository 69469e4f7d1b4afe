# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every exception that Tessera raises on purpose, and how the core's failures become them.

Two families never mix. A mistake in a kernel, a launch or a setting has a stable id ("E052"), and
its text gives the cause and the fix. An InternalError is a bug of Tessera, and its text requests a
report.

A CompilationError names file, line and column, shows the source line with a caret, the chain of
calls through @jit functions and a fix. It never shows a frame of the compiler: the front-end raises
it `from None`.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from typing import Any, NamedTuple, NoReturn, Optional, Sequence

from tessera.wording import shown_place

__all__ = [
    "ArgumentError",
    "AutotunerError",
    "CompilationError",
    "CompilationWarning",
    "CompileTimeAssertionFailure",
    "Frame",
    "IntegerRangeError",
    "InternalError",
    "InterpreterError",
    "KernelAssertionError",
    "LaunchError",
    "MemoryAccessError",
    "MemoryAccessWarning",
    "Note",
    "OutOfResources",
    "PTXASError",
    "PreloadError",
    "RecompilationWarning",
    "SettingError",
    "SlowCompilationWarning",
    "SlowLaunchWarning",
    "TesseraError",
    "ToolchainWarning",
    "TuningError",
    "TuningWarning",
    "UnsupportedError",
    "UnsupportedLanguageConstruct",
    "UntriedVersionWarning",
    "error_class",
    "place_of_function",
    "raise_core_error",
]


class TesseraError(Exception):
    """Base of all errors that Tessera raises on purpose.

    Example:
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr):
            tl.store(x_pointer, 0)  # a name that there is not

        try:
            caught = tessera.compile(clear, "*fp32")
        except tessera.TesseraError as error:  # whatever it is: a kernel's mistake, a launch's, a bug
            caught = error
        assert isinstance(caught, tessera.CompilationError) and "x_ptr" in caught.fix
    """

    __notes__: list[str]
    """The text that a traceback shows below the message (from Python 3.11 on)."""

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

    Example:
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr):
            tl.store(x_ptr + tl.arange(0, 100), 0)

        try:
            caught = tessera.compile(clear, "*fp32")
        except tessera.CompilationError as error:
            caught = error
        assert caught.id == "E018" and caught.line == 6
        assert caught.fix == "use 104 and a mask"
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
        """The message, without the place."""
        return self.message

    @classmethod
    def at_function(cls, fn: Any, id: str, message: str, fix: str = "") -> "CompilationError":
        """The mistake is in how `fn` (a plain Python function) is declared."""
        file, line, column, text = place_of_function(fn)
        return cls(id, message, fix, file, line, column, 0, text)

    @classmethod
    def at_caller(cls, id: str, message: str, fix: str = "") -> "CompilationError":
        """The mistake is in the line that called the library."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "tessera":
            frame = frame.f_back
        if frame is None:
            return cls(id, message, fix)
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = linecache.getline(file, line).rstrip("\n")
        return cls(id, message, fix, file, line, len(text) - len(text.lstrip()) + 1, 0, text)

    def __str__(self) -> str:
        place = f"{shown_place(self.file, self.line, self.column)}: " if self.file else ""
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
            where = f"{shown_place(note.file, note.line, note.column)}: " if note.file else ""
            text.append(f"{where}note: {note.message}")
        for inner, outer in zip(reversed(self.frames), reversed(self.frames[:-1])):
            text.append(
                f"{shown_place(outer.file, outer.line, outer.column)}: "
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


def place_of_function(fn: Any) -> tuple[str, int, int, str]:
    """File, line, column and text of the `def` of a plain Python function."""
    code = getattr(fn, "__code__", None)
    file = code.co_filename if code else ""
    line = code.co_firstlineno if code else 0
    text = ""
    column = 1
    if file:
        # co_firstlineno is the first decorator's line; the `def` is what is meant.
        while text := linecache.getline(file, line).rstrip("\n"):
            stripped = text.lstrip()
            if stripped.startswith(("def ", "async ")) or not stripped.startswith("@"):
                break
            line += 1
        column = len(text) - len(text.lstrip()) + 1
    return file, line, column, text


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


class ToolchainWarning(UserWarning):
    """NVIDIA's part of a compilation is missing, or known to make mistakes.

    Example:
        import warnings
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr):
            tl.store(x_ptr + tl.arange(0, 128), 0)

        # PTX is wanted here, for which ptxas is not needed.
        warnings.simplefilter("ignore", tessera.ToolchainWarning)
        compiled = tessera.compile(clear, "*fp32", target="sm_90a")
        assert ".target sm_90a" in compiled.asm["ptx"]
    """


class SlowCompilationWarning(UserWarning):
    """A kernel takes seconds to compile; `settings.slow_compile` says how many."""


class RecompilationWarning(UserWarning):
    """A kernel is compiled again and again; `settings.recompile_warning` says how often."""


class SlowLaunchWarning(UserWarning):
    """Launches of a kernel take the whole path again and again because of one argument."""


class UntriedVersionWarning(UserWarning):
    """torch or JAX is newer than the versions that this release was tested with (E077)."""


class _Mistake(TesseraError):
    """A user's mistake that has no place in a kernel's source."""

    def __init__(self, id: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.id = id
        self.message = message
        self.fix = fix
        self._point_to_explanation(id)

    def __str__(self) -> str:
        text = f"error[{self.id}]: {self.message}" if self.id else self.message
        return f"{text}\nfix: {self.fix}" if self.fix else text

    def __reduce__(self) -> Any:
        return type(self), (self.id, self.message, self.fix)


class LaunchError(_Mistake, ValueError):
    """A launch that cannot be done as asked: its grid, its options, its arguments.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr):
            tl.store(x_ptr + tl.program_id(0), 0)

        try:
            caught = clear[(1, 2, 3, 4)](np.ones(4))
        except tessera.LaunchError as error:
            caught = error
        assert "grid" in caught.message and caught.fix
    """


class TuningWarning(UserWarning):
    """Something about configurations that is hardly what was wanted.

    Example:
        import warnings
        import tessera

        @tessera.jit
        def kernel(x_ptr):
            pass

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tessera.autotune([], key=[])(kernel)  # no configurations
        assert caught[0].category is tessera.TuningWarning
    """


class ArgumentError(LaunchError, TypeError):
    """An argument of a type, or in a place, that a kernel cannot take.

    Example:
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr):
            tl.store(x_ptr + tl.arange(0, 4), 0)

        try:
            caught = clear[(1,)]("x")
        except tessera.ArgumentError as error:
            caught = error  # also a TypeError, and a ValueError
        assert caught.id == "E054" and "x_ptr" in caught.message
    """


class IntegerRangeError(ArgumentError, OverflowError):
    """An integer argument that fits no type."""


class PreloadError(LaunchError, RuntimeError):
    """Specialization data that `preload` can do nothing with."""


class UnsupportedError(LaunchError, NotImplementedError):
    """Something of Triton's that has no meaning here; the message has what has."""


class SettingError(_Mistake, ValueError):
    """An environment variable or a setting with a value that it cannot have.

    Example:
        import tessera

        try:
            with tessera.settings.override(num_threads="many"):
                caught = None
        except tessera.SettingError as error:
            caught = error
        assert caught.message.startswith("TESSERA_NUM_THREADS is 'many'")
    """


class KernelAssertionError(_Mistake, AssertionError, RuntimeError):
    """A `device_assert` or a promise that did not hold. A RuntimeError as well, as a GPU driver's.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def root(x_ptr):
            x = tl.load(x_ptr)
            assert x >= 0, "x is negative"
            tl.store(x_ptr, tl.sqrt(x))

        try:
            caught = root[(1,)](np.array([-1.0]), debug=True)  # without debug, nothing is checked
        except tessera.KernelAssertionError as error:
            caught = error
        assert "x is negative" in str(caught)
    """


class AutotunerError(_Mistake, RuntimeError):
    """A tuning that cannot be done as asked, or none of whose candidates can run."""


class TuningError(LaunchError, AutotunerError):
    """A tuning of a kernel that cannot be done, or in which no configuration worked.

    `failures` has what is wrong with each configuration.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr, BLOCK: tl.constexpr):
            tl.store(x_ptr + tl.arange(0, BLOCK), 0)

        try:
            caught = tessera.tune(clear, (1,), (np.ones(64),), {"BLOKC": [16, 64]}, seconds=1)
        except tessera.TuningError as error:
            caught = error
        assert caught.id == "E059" and "BLOCK" in caught.fix
    """

    def __init__(self, id: str, message: str, fix: str = "") -> None:
        super().__init__(id, message, fix)
        self.failures: dict[Any, Exception] = {}


class InterpreterError(TesseraError):
    """Errors that the interpreter finds, and compiled kernels only with `debug`."""


class OutOfResources(CompilationError):
    """A kernel that asks a GPU for more than a program may have (E069).

    `required` of what is called `name`, of which there is `limit`.
    """

    name = "shared memory"

    @property
    def required(self) -> int:
        """How many bytes the kernel needs."""
        return self._figures()[0]

    @property
    def limit(self) -> int:
        """How many bytes there are."""
        return self._figures()[1]

    def _figures(self) -> tuple[int, int]:
        needed, _, most = self.message.partition(" bytes of shared memory")
        return int(needed.rpartition(" ")[2]), int(most.rpartition(" ")[2])


class PTXASError(CompilationError):
    """A kernel that ptxas does not take (E063)."""


class MemoryAccessError(_Mistake, IndexError, InterpreterError):
    """An access outside of the memory behind an argument, found by the interpreter or with `debug`.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr):
            tl.store(x_ptr + tl.arange(0, 8), 0)  # without a mask

        try:
            caught = clear[(1,)](np.ones(6, np.float32), debug=True)
        except tessera.MemoryAccessError as error:
            caught = error  # names the line, the program and the element
        assert "`x_ptr`, whose memory holds elements 0 to 5" in caught.message
    """


class MemoryAccessWarning(UserWarning):
    """A launch that will access elements outside of an argument's memory (E088).

    Example:
        import warnings
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr):
            tl.store(x_ptr + tl.program_id(0) * 8 + tl.arange(0, 8), 0)  # without a mask

        warnings.simplefilter("error", tessera.MemoryAccessWarning)  # so that nothing is run
        try:
            caught = clear[(2,)](np.ones(12, np.float32), debug=False)
        except tessera.MemoryAccessWarning as warning:
            caught = warning
        assert "element 15 of `x_ptr`, whose memory holds elements 0 to 11" in str(caught)
    """


class InternalError(TesseraError):
    """A bug of Tessera. `reproducer` is a file that tessera-opt replays, or empty.

    Example:
        import tessera
        import tessera.language as tl

        @tl.builtin
        def broken(x):
            raise RuntimeError("stands for a bug")

        @tessera.jit
        def kernel(x):
            broken(x)

        try:
            caught = tessera.compile(kernel, "i32")
        except tessera.InternalError as error:
            caught = error  # please report it, with error.reproducer if there is one
        assert "stands for a bug" in caught.message
    """

    def __init__(self, message: str, reproducer: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.reproducer = reproducer

    def __str__(self) -> str:
        text = f"internal error: {self.message}\nthis is a bug of Tessera: please report it"
        if self.reproducer:
            return f"{text} together with {self.reproducer}"
        return f"{text} (set TESSERA_REPRODUCER_DIR to a folder to get a reproducer to send)"

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.reproducer)


def warn_of_machine(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns of something that is no mistake of the program's: its machine, its disk, its tools.

    So no launch fails of it, even where a filter makes errors of warnings: then it is printed.
    """
    try:
        warnings.warn(message, category, stacklevel=_frames_of_ours())
    except Warning:
        print(message, file=sys.stderr)


def _frames_of_ours() -> int:
    """The `stacklevel` of the innermost frame of the user's, as its caller counts them."""
    here = os.path.dirname(os.path.abspath(__file__)) + os.sep
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        level, frame = level + 1, frame.f_back
    return level


def warn_of_access(error: Any) -> None:
    """Turns a `tessera._C.CoreError` of a launch into a warning at the line of the kernel."""
    info = error.info
    text = f"{info['id']}: {info['message']}\nfix: {info['fix']}"
    file, line = info.get("file", ""), info.get("line", 0)
    if file:
        warnings.warn_explicit(text, MemoryAccessWarning, file, line)
    else:
        warnings.warn(text, MemoryAccessWarning, stacklevel=_frames_of_ours())


def raise_core_error(error: Any) -> NoReturn:
    """Raises what a `tessera._C.CoreError` means, without the frames in between."""
    info = error.info
    message, notes = info["message"], info.get("notes", ())
    file, line, column = info.get("file", ""), info.get("line", 0), info.get("column", 0)
    if info["kind"] != "user":
        details = [message] + [_place(note) + note["message"] for note in notes]
        raise InternalError("\n  ".join(details), info.get("reproducer", "")) from None
    id, fix = info.get("id", ""), info.get("fix", "")
    if id in ("E065", "E082"):
        raise KernelAssertionError(id, _place(info) + message, fix) from None
    if id in ("E080", "E081"):
        raise MemoryAccessError(id, _place(info) + message, fix) from None
    if not file:
        raise LaunchError(id, message, fix) from None
    raise _CLASSES.get(id, CompilationError)(
        id,
        message,
        fix,
        file,
        line,
        column,
        source_line=linecache.getline(file, line).rstrip("\n"),
        notes=[
            Note(note["message"], note.get("file", ""), note.get("line", 0), note.get("column", 0))
            for note in notes
        ],
    ) from None


_CLASSES: dict[str, type[CompilationError]] = {"E063": PTXASError, "E069": OutOfResources}


def _place(info: Any) -> str:
    if "file" not in info:
        return ""
    return shown_place(info["file"], info.get("line", 0), info.get("column", 0)) + ": "
