# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The end of Inductor's worker processes.

Inductor starts a process that forks its workers. At the end of a program, it asks that process to
end, and waits. The process answers once it has loaded torch, so a short program would wait for
seconds; and then it tears its interpreter down, for another second. It has nothing to lose: what
workers compile is written to caches in one step.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from typing import Any, Optional


def end_workers_at_once() -> None:
    """Has Inductor end its workers, and the process that started them, without waiting."""
    from torch._inductor.compile_worker import subproc_pool

    original = subproc_pool.SubprocPool.shutdown

    def shutdown(self: Any) -> None:
        if hasattr(getattr(self, "process", None), "pid"):
            self.process = _Ended(self.process)
        original(self)

    subproc_pool.SubprocPool.shutdown = shutdown


class _Ended:
    """Ends a process and those that it has started where somebody waits for it."""

    def __init__(self, process: Any) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)

    def wait(self, timeout: Optional[float] = None) -> Any:
        process = self._process
        if process.poll() is None:
            # A process that is stopped starts no others, and the numbers of those stay theirs.
            process.send_signal(signal.SIGSTOP)
            try:
                for pid in descendants(process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.kill()
            except OSError:  # no /proc that tells
                process.send_signal(signal.SIGCONT)
        return process.wait(timeout)


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have started.

    Raises OSError if the system does not report it.
    """
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found
