# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every exception that Tessera raises on purpose, and how the core's failures become them.

Two families never mix: a mistake in a kernel, a launch or a setting has a stable id
("E052"), says what is wrong and what to write instead; an InternalError is a bug of
Tessera and asks for a report.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from typing import Any, NoReturn

from tessera.frontend.errors import CompilationError, Note, TesseraError

__all__ = [
    "ArgumentError",
    "AutotunerError",
    "CompilationError",
    "IntegerRangeError",
    "InternalError",
    "InterpreterError",
    "KernelAssertionError",
    "LaunchError",
    "MemoryAccessError",
    "OutOfResources",
    "PTXASError",
    "PreloadError",
    "RecompilationWarning",
    "SettingError",
    "SlowCompilationWarning",
    "TesseraError",
    "ToolchainWarning",
    "TuningError",
    "TuningWarning",
    "UnsupportedError",
    "raise_core_error",
]


class ToolchainWarning(UserWarning):
    """NVIDIA's part of a compilation is missing, or known to make mistakes."""


class SlowCompilationWarning(UserWarning):
    """A kernel takes seconds to compile; `settings.slow_compile` says how many."""


class RecompilationWarning(UserWarning):
    """A kernel is compiled again and again; `settings.recompile_warning` says how often."""


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
    """A launch that cannot be done as asked: its grid, its options, its arguments."""


class TuningWarning(UserWarning):
    """Something about configurations that is hardly what was wanted."""


class ArgumentError(LaunchError, TypeError):
    """An argument of a type, or in a place, that a kernel cannot take."""


class IntegerRangeError(ArgumentError, OverflowError):
    """An integer argument that fits no type."""


class PreloadError(LaunchError, RuntimeError):
    """Specialization data that `preload` can do nothing with."""


class UnsupportedError(LaunchError, NotImplementedError):
    """Something of Triton's that has no meaning here; the message has what has."""


class SettingError(_Mistake, ValueError):
    """An environment variable or a setting with a value that it cannot have."""


class KernelAssertionError(_Mistake, AssertionError, RuntimeError):
    """A `device_assert` that did not hold. A RuntimeError as well, which a GPU's driver's is."""


class AutotunerError(_Mistake, RuntimeError):
    """A tuning that cannot be done as asked, or none of whose candidates can run."""


class TuningError(LaunchError, AutotunerError):
    """A tuning of a kernel that cannot be done, or in which no configuration worked.

    `failures` has what is wrong with each configuration.
    """

    def __init__(self, id: str, message: str, fix: str = "") -> None:
        super().__init__(id, message, fix)
        self.failures: dict[Any, Exception] = {}


class InterpreterError(TesseraError):
    """What the interpreter finds, and compiled kernels only with `debug`."""


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
    """An access outside of the memory behind an argument, found by the interpreter or with `debug`."""


class InternalError(TesseraError):
    """A bug of Tessera. `reproducer` is a file that tessera-opt replays, or empty."""

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


def raise_core_error(error: Any) -> NoReturn:
    """Raises what a `tessera._C.CoreError` means, without the frames in between."""
    info = error.info
    message, notes = info["message"], info.get("notes", ())
    file, line, column = info.get("file", ""), info.get("line", 0), info.get("column", 0)
    if info["kind"] != "user":
        details = [message] + [_place(note) + note["message"] for note in notes]
        raise InternalError("\n  ".join(details), info.get("reproducer", "")) from None
    id, fix = info.get("id", ""), info.get("fix", "")
    if id == "E065":
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
    return f"{info['file']}:{info.get('line', 0)}:{info.get('column', 0)}: "
