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
from concurrent.futures import ThreadPoolExecutor

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
    parser.add_argument("--target", default="", help="cuda, simulator, or a CPU's name")
    parser.add_argument("--jobs", type=int, default=1, help="processes to do it in")
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
            print(f"# seed {seed}\n{generate(seed, options.target).source()}")
        return 0
    if options.worker:
        return _work(seeds, options)
    if options.jobs == 1:
        return _supervise(seeds, options)
    size = -(-options.count // options.jobs)
    parts = [seeds[start : start + size] for start in range(0, options.count, size)]
    with ThreadPoolExecutor(len(parts)) as pool:
        return max(pool.map(lambda part: _supervise(part, options), parts))


def _work(seeds: range, options: argparse.Namespace) -> int:
    """Runs kernels in this process; announces each seed before it is run."""
    failed = False
    for seed in seeds:
        print(f"seed {seed}", flush=True)
        program = generate(seed, options.target)
        target = options.target or choose_cpu(seed)
        try:
            check(program, target)
        except Failure as failure:
            failed = True
            print(f"FAILED seed {seed}: {failure}", flush=True)
            if not options.no_shrink:
                program = shrink(
                    program, lambda candidate: _fails_alike(candidate, target, failure)
                )
                message = _message(program, target)
            else:
                message = str(failure)
            path = _write(program, target, message or str(failure), options.out)
            print(f"  reproducer: {path}", flush=True)
    return _MISMATCH if failed else 0


def _message(program: Program, target: str) -> str:
    try:
        check(program, target)
    except Failure as failure:
        return str(failure)
    return ""


def _fails_alike(program: Program, target: str, failure: Failure) -> bool:
    """A refusal stays a refusal by the same side, a difference a difference."""
    head = str(failure).split(":")[0].split("(")[0].split()[:3]
    return _message(program, target).split(":")[0].split("(")[0].split()[:3] == head


def _write(program: Program, target: str, message: str, folder: str) -> pathlib.Path:
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    path /= f"seed-{program.seed}.py"
    path.write_text(write_reproducer(program, target, message))
    return path


def _supervise(seeds: range, options: argparse.Namespace) -> int:
    """Runs workers until every seed is done; a worker that dies names its last seed."""
    started = time.monotonic()
    failures = 0
    start = seeds.start
    while start < seeds.stop:
        command = [sys.executable, "-m", "tessera.testing.fuzz", "--worker"]
        command += ["--seed", str(start), "--count", str(seeds.stop - start), "--out", options.out]
        command += (["--target", options.target] if options.target else []) + (
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
        program = generate(last, options.target)
        target = options.target or choose_cpu(last)
        message = f"the process ended with status {worker.returncode}"
        if not options.no_shrink:
            program = shrink(program, lambda candidate: _crashes(candidate, target, options.out))
        path = _write(program, target, message, options.out)
        print(f"FAILED seed {last}: {message}\n  reproducer: {path}", flush=True)
        start = last + 1
    seconds = time.monotonic() - started
    print(f"{len(seeds)} kernels from seed {seeds.start}, {failures} failures, {seconds:.0f} s")
    return 1 if failures else 0


def _environment() -> dict[str, str]:
    """This process's, so that a child finds the modules that this one has found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _crashes(program: Program, target: str, folder: str) -> bool:
    """Whether the kernel still takes a process down."""
    path = _write(program, target, "", folder)
    try:
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, timeout=60, env=_environment()
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode < 0


if __name__ == "__main__":
    sys.exit(main())
