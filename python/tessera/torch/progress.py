# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A line of progress for compilations of models that take longer than two seconds.

On a terminal and in a notebook that is one line, which is written over, and at the end another one:

    tessera: compiling a graph of 412 operations: generating code, 7 s
    tessera: compiled a graph of 412 operations in 12.4 s

Elsewhere it goes to the log (TESSERA_LOG=info). `settings.tune_progress` ("auto", "plain", "off")
says otherwise. A thread of its own writes the line, as Inductor works without a break.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Optional

from tessera.log import info
from tessera.settings import settings
from tessera.terminal import columns, is_terminal
from tessera.wording import counted

PATIENCE = 2.0
"""Seconds before the first line is shown."""
_REFRESH_SECONDS = 0.5
_PLAIN_SECONDS = 10.0


class _Progress:
    """The words about one graph."""

    def __init__(self, operations: int) -> None:
        self.stage = "preparing it"
        self._what = f"a graph of {counted(operations, 'operation')}"
        self._mode = settings.tune_progress
        self._is_live = self._mode == "auto" and (is_terminal() or _is_notebook())
        self._start = time.monotonic()
        self._width = 0
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="tessera-progress", daemon=True)
        self._thread.start()

    def end(self, succeeded: bool) -> None:
        self._is_done.set()
        self._thread.join()
        took = time.monotonic() - self._start
        if self._width:
            self._write("\r" + " " * self._width + "\r")
        if succeeded and took >= PATIENCE:
            self._say(f"compiled {self._what} in {took:.1f} s")

    def _tell(self) -> None:
        wait = PATIENCE
        while not self._is_done.wait(wait):
            wait = _REFRESH_SECONDS if self._is_live else _PLAIN_SECONDS
            took = time.monotonic() - self._start
            text = f"compiling {self._what}: {self.stage}, {took:.0f} s"
            if not self._is_live:
                self._say(text)
                continue
            line = f"tessera: {text}"[: columns() - 1]
            self._write("\r" + line.ljust(self._width))
            self._width = len(line)

    def _say(self, text: str) -> None:
        if self._is_live or self._mode == "plain":
            self._write(f"tessera: {text}\n")
        elif self._mode == "auto":
            info("%s", text)

    def _write(self, text: str) -> None:
        if not _is_notebook():
            try:
                # Past the stream, whose lock a fork of this process would inherit.
                os.write(sys.stderr.fileno(), text.encode(errors="replace"))
                return
            except (AttributeError, OSError, ValueError):  # a stream without a file
                pass
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # there is no such stream, or it is closed
            pass


_present: Optional[_Progress] = None


@contextlib.contextmanager
def told(graph: Any) -> Iterator[None]:
    """Shows progress while a graph of torch is compiled. Graphs within it show none."""
    global _present
    if _present is not None or settings.tune_progress == "off":
        yield
        return
    calls = sum(node.op not in ("placeholder", "get_attr", "output") for node in graph.graph.nodes)
    _present = progress = _Progress(calls)
    succeeded = False
    try:
        yield
        succeeded = True
    finally:
        _present = None
        progress.end(succeeded)


def stage(name: str) -> None:
    """Sets the part of the compilation that the line names."""
    if _present is not None:
        _present.stage = name


def _is_notebook() -> bool:
    return type(sys.stderr).__module__.startswith("ipykernel.")
