#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forks a process again and again while its threads compile: each child compiles and launches a
kernel of its own. A child that has not ended after a time is counted as one that hangs.


Usage: tools/dev/stress_forks.py [--forks N] [--threads N] [--timeout SECONDS] [--seconds SECONDS]
Prints a line of counts; exits with 1 if a child hangs or fails, or a thread.
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import os
import signal
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np

import tessera
from tessera import settings

SOURCE = """
import tessera, tessera.language as tl

@tessera.jit
def kernel(x, n, N: tl.constexpr):
    offsets = tl.arange(0, 64)
    tl.store(x + offsets, tl.load(x + offsets) + n + N)
"""

numbers = itertools.count()


def compile_one() -> bool:
    """Compiles and runs a new kernel. True if its result is right."""
    file = f"<stress {os.getpid()} {next(numbers)}>"
    linecache.cache[file] = (len(SOURCE), None, SOURCE.splitlines(True), file)
    namespace: dict[str, Any] = {}
    exec(compile(SOURCE, file, "exec"), namespace)
    x = np.zeros(64, np.float32)
    namespace["kernel"][(1,)](x, 3, N=5)
    del linecache.cache[file]
    return bool((x == 8).all())


class Threads:
    """Compile while a `with` block runs; what they failed with."""

    def __init__(self, count: int) -> None:
        self.threads = [threading.Thread(target=self.repeat) for _ in range(count)]
        self.failures: list[str] = []
        self.done = 0
        self.is_over = False

    def repeat(self) -> None:
        while not self.is_over:
            try:
                if not compile_one():
                    self.failures.append("a wrong result")
            except BaseException as failure:
                self.failures.append(repr(failure))
            self.done += 1

    def __enter__(self) -> Threads:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.is_over = True
        for thread in self.threads:
            thread.join()


def fork() -> int:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if compile_one() else 1)
        except BaseException as failure:
            os.write(2, (repr(failure) + "\n").encode())
        finally:
            os._exit(2)
    return child


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forks", type=int, default=200)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--timeout", type=float, default=120, help="after which a child hangs")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no more are forked")
    args = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks in the midst of threads
    settings.cache = "off"
    sys.setswitchinterval(0.0005)  # the thread that forks has its turn
    compile_one()
    start = time.monotonic()
    running: dict[int, float] = {}
    forked = hung = failed = 0
    with Threads(args.threads) as threads:
        while forked < args.forks or running:
            over = time.monotonic() - start > args.seconds
            if over and not running:
                break
            if forked < args.forks and len(running) < 4 and not over:
                running[fork()] = time.monotonic()
                forked += 1
            for child, since in list(running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    del running[child]
                    failed += status != 0
                elif time.monotonic() - since > args.timeout:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    del running[child]
                    hung += 1
            time.sleep(0.001)
    print(
        f"python {sys.version.split()[0]}: {forked} forks, {hung} hung, {failed} failed; "
        f"{args.threads} threads, {threads.done} turns, {len(threads.failures)} failed; "
        f"{time.monotonic() - start:.0f} s"
    )
    for failure in sorted(set(threads.failures)):
        print("  a thread:", failure)
    return 1 if hung or failed or threads.failures else 0


if __name__ == "__main__":
    sys.exit(main())
