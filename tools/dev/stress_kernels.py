#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs generated kernels in several threads of one process, as a long-lived process
does. Several threads launch kernels at once, kernels are dropped while others run, and threads end
right after a launch. Each result is compared with the interpreter's.

A crash of the process is a finding. So a child does the work, and the parent reports the kernels of
its threads, which it reads from shared memory.

Usage: tools/dev/stress_kernels.py [--seconds S] [--each S] [--threads N] [--seed N] [--kind KIND]
                                   [--targets A,B] [--stack KIB] [--disturb]
Prints a line a child; exits with 1 if one ended by a signal, or a kernel failed.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import itertools
import mmap
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import Any

_RECORD = 160  # bytes that say what a thread does
_KEPT = 24  # kernels that stay for other threads
_FAILED = 3  # the child's exit status if kernels fail
_PATIENCE = 600  # seconds that a child may take beyond its time


class Activities:
    """The current kernel of each thread, in a file that outlives the process."""

    def __init__(self, path: str, threads: int) -> None:
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), _RECORD * threads)

    def note(self, thread: int, text: str) -> None:
        record = text.encode()[:_RECORD].ljust(_RECORD)
        self.memory[thread * _RECORD : (thread + 1) * _RECORD] = record

    def read(self) -> list[str]:
        size = len(self.memory)
        records = [self.memory[at : at + _RECORD] for at in range(0, size, _RECORD)]
        return [record.strip(b"\0 ").decode() for record in records]


# --- The child -------------------------------------------------------------------------


class Stress:
    """The threads of one process, and the kernels that they share."""

    def __init__(self, options: argparse.Namespace) -> None:
        from tessera.testing.fuzz.check import list_cpus

        self.options = options
        self.activities = Activities(options.worker, options.threads)
        self.targets = options.targets.split(",") if options.targets else []
        # CPUs more often than simulated GPUs, which take long.
        self.targets = self.targets or [*(4 * list_cpus()), "simulator:sm_80", "simulator:sm_90a"]
        self.end = time.monotonic() + options.each
        self.seeds = itertools.count(options.seed)
        self.kept: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def work(self, thread: int) -> None:
        choose = random.Random(f"{self.options.seed} {thread}")
        while time.monotonic() < self.end:
            try:
                self.turn(thread, choose)
            except Exception as failure:
                what = self.activities.read()[thread]
                self.failures.append(f"{what}: {type(failure).__name__}: {str(failure)[:400]}")
        self.activities.note(thread, "")

    def turn(self, thread: int, choose: random.Random) -> None:
        """One new kernel, or a few launches of an older one, or a few of those dropped."""
        kind = choose.random()
        kept = self.kept
        if kind < 0.5 or not kept:
            from tessera.testing.fuzz.check import compile_source
            from tessera.testing.fuzz.generate import generate

            seed, target = next(self.seeds), choose.choice(self.targets)
            self.activities.note(thread, f"seed {seed} on {target}, new")
            program = generate(seed, target, self.options.kind)
            on_gpu = target.startswith("simulator")
            name = f"<stress {seed} {target}>"
            made = (program, target, compile_source(program.source(gpu=on_gpu), name))
            self.compare(made)
            kept.append(made)
            while len(kept) > _KEPT:
                kept.pop(choose.randrange(len(kept)))
            self.counts["compiled"] += 1
        elif kind < 0.9:
            made = choose.choice(kept)
            self.activities.note(thread, f"seed {made[0].seed} on {made[1]}, again")
            if choose.random() < 0.3:
                # The thread's scratch, and what the core keeps for it, end with it.
                one = threading.Thread(target=self.compare_and_tell, args=(made,))
                one.start()
                del made  # others may drop the kernel meanwhile
                one.join()
            else:
                self.compare(made)
            self.counts["launched again"] += 1
        else:
            self.activities.note(thread, "drops kernels")
            with contextlib.suppress(IndexError):
                for _ in range(choose.randrange(1, 8)):
                    kept.pop()
            gc.collect()
            self.counts["collections"] += 1

    def compare(self, made: Any) -> None:
        from tessera.testing.fuzz.check import compare

        program, target, kernel = made
        values = tuple(value for _, value in program.scalars)
        arrays, checks = program.arrays, program.checks
        # The text for GPUs has assembly, which the interpreter refuses.
        if target.startswith("simulator"):
            from tessera.testing.fuzz.check import check

            return check(program, target)
        compare(
            kernel,
            arrays,
            checks,
            program.programs,
            program.iterations,
            program.seed,
            target,
            values,
        )

    def compare_and_tell(self, made: Any) -> None:
        try:
            self.compare(made)
        except Exception as failure:
            self.failures.append(f"seed {made[0].seed} on {made[1]}, in a thread: {failure!r:.400}")

    def disturb(self) -> None:
        """Makes all launches repeat their checks, now and then."""
        from tessera.settings import settings

        while time.monotonic() < self.end:
            with settings.override(slow_compile=60):
                time.sleep(0.02)
            self.counts["settings changed"] += 1
            time.sleep(0.05)

    def run(self) -> int:
        threads = [
            threading.Thread(target=self.work, args=(number,))
            for number in range(self.options.threads)
        ]
        if self.options.disturb:
            threads.append(threading.Thread(target=self.disturb))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"next {next(self.seeds)}", *(f"{n} {what}" for what, n in self.counts.items()))
        for failure in self.failures:
            print("FAILED", failure)
        return _FAILED if self.failures else 0


def work(options: argparse.Namespace) -> int:
    faulthandler.enable()
    sys.setswitchinterval(0.0005)
    if options.stack:
        threading.stack_size(options.stack << 10)
    return Stress(options).run()


# --- The parent ---------------------------------------------------------------------------


def supervise(options: argparse.Namespace) -> int:
    end = time.monotonic() + options.seconds
    environment = {"TESSERA_NUM_THREADS": "3", "TESSERA_CACHE": "off", **os.environ}
    # Fill freed memory, so that a pointer read from it is invalid.
    environment.setdefault("MALLOC_PERTURB_", "165")
    findings = 0
    seed = options.seed
    while time.monotonic() < end:
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(_RECORD * options.threads)
            command = [sys.executable, *sys.argv, "--worker", file.name, "--seed", str(seed)]
            command += ["--each", str(min(options.each, max(1, end - time.monotonic())))]
            child = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
            )
            try:
                out, errors = child.communicate(timeout=options.each + _PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                out, errors = child.communicate()
                out += "FAILED: does not end"
            print(f"from seed {seed}: status {child.returncode}; {out.strip()}", flush=True)
            if child.returncode != 0:
                findings += 1
                activities = Activities(file.name, options.threads).read()
                print("  was at:", "; ".join(filter(None, activities)))
                print(errors[-6000:], flush=True)
            following = [line for line in out.splitlines() if line.startswith("next ")]
            seed = int(following[0].split()[1]) if following else seed + 100000
    print(f"{findings} processes ended badly")
    return 1 if findings else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of all processes")
    parser.add_argument("--each", type=float, default=60, help="of one process")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1, help="the first kernel's")
    parser.add_argument("--kind", choices=("values", "memory", "both"), default="both")
    parser.add_argument("--targets", default="", help="with commas; default: all but GPUs")
    parser.add_argument("--stack", type=int, default=0, help="KiB of a thread's stack")
    parser.add_argument("--disturb", action="store_true", help="change settings meanwhile")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    return work(options) if options.worker else supervise(options)


if __name__ == "__main__":
    sys.exit(main())
