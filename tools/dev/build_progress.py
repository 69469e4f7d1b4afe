#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs Ninja and prints how far the build is.

    tools/dev/build_progress.py ninja -C build/release tessera_python

prints "built 40 of 120 steps, about 6 min left", on a terminal in one line that changes, elsewhere
every 15 seconds. Output of compilers and the command of a failed step are passed on. Exits with
Ninja's status.

The time left is the time so far, times the weight of the remaining steps over that of the finished
ones. A step that compiles C++ weighs hundreds of times as much as one that generates a header.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
import time
from typing import Optional, Sequence, TextIO

SECONDS_BETWEEN_LINES = 15
# Ninja puts it in front of each step, and compilers do not print it.
_MARK = "@step "
_STATUS = _MARK + "%f/%t "
_STEP = re.compile(re.escape(_MARK) + r"(\d+)/(\d+) (.*)")
# No estimate before this part of the work is done: the first steps generate headers.
_MIN_SHARE = 0.03


def weigh(step: str) -> float:
    """How long a step takes, by its description, with one that compiles a group of files as 1."""
    if ".pch" in step:
        return 3.0
    if step.startswith("Building C"):
        return 1.0
    return 0.2 if step.startswith("Linking") else 0.01


def tell_time(seconds: float) -> str:
    """A time in words that are as exact as an estimate is."""
    if seconds < 50:
        return f"{max(10, 10 * round(seconds / 10))} s"
    return f"{round(seconds / 60) or 1} min"


class Progress:
    """How far a build of `total` units of weigh() is. Times are in seconds."""

    def __init__(self, total: float, start: float):
        self._total, self._start = total, start
        self._weight, self._done, self._steps, self._last = 0.0, 0, 0, start

    def finish(self, step: str, done: int, steps: int, now: float) -> None:
        self._weight += weigh(step)
        self._done, self._steps, self._last = done, steps, now

    def describe(self, now: float) -> str:
        text = f"built {self._done} of {self._steps} steps"
        share = self._weight / self._total if self._total else 0.0
        if not _MIN_SHARE <= share < 1:
            return text
        # As of the last step that ended: the estimate falls while the next ones run.
        whole = (self._last - self._start) / share
        return f"{text}, about {tell_time(max(0.0, self._start + whole - now))} left"


def _read(stream: TextIO, lines: "queue.Queue[Optional[str]]") -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _total_weight(command: Sequence[str], environment: dict[str, str]) -> float:
    """The total weight of the steps that Ninja would run."""
    plan = subprocess.run([*command, "-n"], env=environment, stdout=subprocess.PIPE, text=True)
    steps = (_STEP.match(line) for line in plan.stdout.splitlines())
    return sum(weigh(step.group(3)) for step in steps if step)


def run(command: Sequence[str], out: TextIO, interval: float = SECONDS_BETWEEN_LINES) -> int:
    """Runs Ninja by `command` and prints to `out`. Returns Ninja's exit status."""
    environment = dict(os.environ, NINJA_STATUS=_STATUS)
    progress = Progress(_total_weight(command, environment), time.monotonic())
    changes = out.isatty()
    interval = 1 if changes else interval
    clear = "\r\033[K" if changes else ""
    ninja = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert ninja.stdout
    lines: "queue.Queue[Optional[str]]" = queue.Queue()
    threading.Thread(target=_read, args=(ninja.stdout, lines), daemon=True).start()
    due, began = time.monotonic() + interval, False
    while True:
        try:
            line = lines.get(timeout=max(0.0, due - time.monotonic()))
            if line is None:
                break
            if match := _STEP.match(line):
                done, steps, step = match.groups()
                progress.finish(step, int(done), int(steps), time.monotonic())
                began = True
            elif not line.startswith(("ninja: Entering", "ninja: no work")):
                out.write(clear + line)
        except queue.Empty:
            pass
        if (now := time.monotonic()) >= due:
            if began:
                out.write(clear + progress.describe(now) + ("" if changes else "\n"))
            due = now + interval
        out.flush()
    out.write(clear)
    out.flush()
    return ninja.wait()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit((__doc__ or "").strip())
    try:
        sys.exit(run(sys.argv[1:], sys.stdout))
    except KeyboardInterrupt:
        sys.exit(130)
