# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m tessera.testing.fuzz: run many generated kernels.

A child process does the work, so that a kernel that takes the process down is found and
reported like any other; every failure is made smaller and written as a Python file.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import time

from tessera.testing.fuzz.check import Failure, check, choose_cpu, write_reproducer
from tessera.testing.fuzz.generate import generate
from tessera.testing.fuzz.program import Program
from tessera.testing.fuzz.shrink import shrink

_MISMATCH = 3  # the child's exit status when kernels have failed


def main() -> int:
    """Runs `--count` kernels from `--seed` on; 0 if all targets agree on all of them."""
    parser = argparse.ArgumentParser(prog="python -m tessera.testing.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="kernels to run")
    parser.add_argument("--seed", type=int, default=0, help="the first kernel's seed")
    parser.add_argument("--cpu", default="", help="compile for this CPU (default: by seed)")
    parser.add_argument("--out", default="fuzz-failures", help="folder for reproducers")
    parser.add_argument("--show", action="store_true", help="print the kernels, run nothing")
    parser.add_argument(
        "--no-shrink", action="store_true", help="leave failing kernels as they are"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    if options.show:
        for seed in seeds:
            print(f"# seed {seed}\n{generate(seed).source()}")
        return 0
    if options.worker:
        return _work(seeds, options)
    return _supervise(seeds, options)


def _work(seeds: range, options: argparse.Namespace) -> int:
    """Runs kernels in this process; announces each seed before it is run."""
    failed = False
    for seed in seeds:
        print(f"seed {seed}", flush=True)
        program = generate(seed)
        cpu = options.cpu or choose_cpu(seed)
        try:
            check(program, cpu)
        except Failure as failure:
            failed = True
            print(f"FAILED seed {seed}: {failure}", flush=True)
            if not options.no_shrink:
                program = shrink(program, lambda candidate: _fails_alike(candidate, cpu, failure))
                message = _message(program, cpu)
            else:
                message = str(failure)
            path = _write(program, cpu, message or str(failure), options.out)
            print(f"  reproducer: {path}", flush=True)
    return _MISMATCH if failed else 0


def _message(program: Program, cpu: str) -> str:
    try:
        check(program, cpu)
    except Failure as failure:
        return str(failure)
    return ""


def _fails_alike(program: Program, cpu: str, failure: Failure) -> bool:
    """A refusal stays a refusal by the same side, a difference a difference."""
    head = str(failure).split(":")[0].split("(")[0].split()[:3]
    return _message(program, cpu).split(":")[0].split("(")[0].split()[:3] == head


def _write(program: Program, cpu: str, message: str, folder: str) -> pathlib.Path:
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    path /= f"seed-{program.seed}.py"
    path.write_text(write_reproducer(program, cpu, message))
    return path


def _supervise(seeds: range, options: argparse.Namespace) -> int:
    """Runs workers until every seed is done; a worker that dies names its last seed."""
    started = time.monotonic()
    failures = 0
    start = seeds.start
    while start < seeds.stop:
        command = [sys.executable, "-m", "tessera.testing.fuzz", "--worker"]
        command += ["--seed", str(start), "--count", str(seeds.stop - start), "--out", options.out]
        command += (["--cpu", options.cpu] if options.cpu else []) + (
            ["--no-shrink"] if options.no_shrink else []
        )
        last = start
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=_environment()
        ) as worker:
            assert worker.stdout is not None
            for line in worker.stdout:
                if line.startswith("seed "):
                    last = int(line.split()[1])
                    continue
                failures += line.startswith("FAILED")
                print(line, end="", flush=True)
        if worker.returncode in (0, _MISMATCH):
            break
        failures += 1
        program = generate(last)
        cpu = options.cpu or choose_cpu(last)
        message = f"the process ended with status {worker.returncode}"
        if not options.no_shrink:
            program = shrink(program, lambda candidate: _crashes(candidate, cpu, options.out))
        path = _write(program, cpu, message, options.out)
        print(f"FAILED seed {last}: {message}\n  reproducer: {path}", flush=True)
        start = last + 1
    seconds = time.monotonic() - started
    print(f"{len(seeds)} kernels from seed {seeds.start}, {failures} failures, {seconds:.0f} s")
    return 1 if failures else 0


def _environment() -> dict[str, str]:
    """This process's, so that a child finds the modules that this one has found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _crashes(program: Program, cpu: str, folder: str) -> bool:
    """Whether the kernel still takes a process down."""
    path = _write(program, cpu, "", folder)
    try:
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, timeout=60, env=_environment()
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode < 0


if __name__ == "__main__":
    sys.exit(main())
