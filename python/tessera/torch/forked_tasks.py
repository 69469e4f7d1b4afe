# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks that forks of this process do at the same time as itself.

A fork has all that this process has in memory, so a task need not be sent; its result is pickled.
As in the workers of torch's DataLoader, no fork may use a GPU, and there is one thread in it.

The forks take tasks from a queue, and so does this process once it asks for a result. If a fork
fails at a task, or does not end it in time, this process does the task again. So the caller gets
the error, and a fork that hangs costs time but not the result. Errors in forks are kept in
`failures` and logged.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import pickle
import struct
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)

_NUMBER = struct.Struct("=i")

_PATIENCE = 30.0
"""Seconds that forks may take for the tasks they have begun, and as long again as all has taken."""


def can_fork() -> bool:
    """True if this process may have processes of its own."""
    return not multiprocessing.current_process().daemon and hasattr(os, "fork")


class ForkedTasks(Generic[T]):
    """Tasks, and the processes that do them.

    tasks: functions without arguments, each with a result that can be pickled.
    processes: how many do them, this one among them.
    prepare: called first in each fork.
    """

    def __init__(
        self, tasks: Sequence[Callable[[], T]], processes: int, prepare: Callable[[], None]
    ) -> None:
        self._tasks = tasks
        self._results: dict[int, T] = {}
        self.failures: list[str] = []
        self._begin = time.monotonic()
        # A pipe is a queue of several readers. This one holds all there will ever be.
        self._queue, end = os.pipe()
        with os.fdopen(end, "wb") as numbers:
            for number in range(len(tasks)):
                numbers.write(_NUMBER.pack(number))
        self._forks = []
        context = multiprocessing.get_context("fork")
        with warnings.catch_warnings():
            # That threads, which a fork has none of, may have locks that it waits for.
            warnings.simplefilter("ignore")
            for _ in range(min(processes - 1, len(tasks) - 1)):
                results = tempfile.TemporaryFile()
                fork = context.Process(target=self._work, args=(results, prepare), daemon=True)
                try:
                    fork.start()
                except OSError:  # no memory, or no more processes: there are fewer then
                    results.close()
                    break
                self._forks.append((fork, results))

    def get(self, number: int) -> T:
        """The result of a task. Before it waits this process takes part."""
        if self._forks:
            try:
                for taken in self._take():
                    self._results[taken] = self._tasks[taken]()
                self._join()
            finally:
                self.close()
        if number not in self._results:
            self._results[number] = self._tasks[number]()
        return self._results[number]

    def close(self) -> None:
        """Ends all forks, whatever they do."""
        for fork, results in self._forks:
            with contextlib.suppress(Exception):
                fork.kill()
                fork.join()
            results.close()
        self._forks = []
        if self._queue >= 0:
            os.close(self._queue)
            self._queue = -1

    def _take(self) -> Iterator[int]:
        """The numbers of tasks that no process has taken."""
        while len(number := os.read(self._queue, _NUMBER.size)) == _NUMBER.size:
            yield _NUMBER.unpack(number)[0]

    def _work(self, results: Any, prepare: Callable[[], None]) -> None:
        """The work of a fork."""
        gc.disable()
        with contextlib.suppress(Exception):
            for report in self._attempt(prepare):
                results.write(report)
                results.flush()
        # Not what else was to be done at this process's end.
        os._exit(0)

    def _attempt(self, prepare: Callable[[], None]) -> Iterator[bytes]:
        """The number and the result or error of each task, pickled."""
        try:
            prepare()
        except Exception:
            yield pickle.dumps(traceback.format_exc())
            return
        for number in self._take():
            try:
                yield pickle.dumps((number, self._tasks[number]()))
            except Exception:
                yield pickle.dumps(traceback.format_exc())

    def _join(self) -> None:
        """Waits for all forks, and reads what they have done."""
        now = time.monotonic()
        end = now + _PATIENCE + (now - self._begin)
        for fork, results in self._forks:
            fork.join(max(0.0, end - time.monotonic()))
            if fork.exitcode != 0:
                self._note_failure(f"A process has not ended as it should: {fork}")
            results.seek(0)
            with contextlib.suppress(EOFError, pickle.UnpicklingError):
                while True:
                    report = pickle.load(results)
                    if isinstance(report, str):
                        self._note_failure(report)
                    else:
                        self._results[report[0]] = report[1]

    def _note_failure(self, text: str) -> None:
        self.failures.append(text)
        _log.info("What another process could not do is done in this one. %s", text)
