# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m tessera.testing.fuzz: run many generated kernels.

Child processes do the work, so that a kernel that takes the process down is found and reported
like any other; every failure is made smaller and written as a Python file. A campaign runs each
kernel on all targets that need no GPU, and leaves its figures and findings as JSON:

    python -m tessera.testing.fuzz --kind all --target all --jobs 16 --seconds 3000 \\
        --count 100000 --seed 1 --json campaign.json
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tessera.errors import CompilationWarning
from tessera.testing.fuzz.check import (
    Failure,
    check,
    check_all,
    choose_cpu,
    find_mistake,
    list_cpus,
    write_reproducer,
)
from tessera.testing.fuzz.generate import KINDS, generate
from tessera.testing.fuzz.program import Program
from tessera.testing.fuzz.shrink import shrink

_MISMATCH = 3  # the child's exit status when kernels have failed
_BATCH = 250  # kernels a child runs, so that what one leaves behind does not stay for ever
_PATIENCE = 300.0  # seconds for one kernel, after which its process is ended


def main() -> int:
    """Runs `--count` kernels from `--seed` on; 0 if all targets agree on all of them."""
    parser = argparse.ArgumentParser(prog="python -m tessera.testing.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="kernels to run")
    parser.add_argument("--seed", type=int, default=0, help="the first kernel's seed")
    parser.add_argument(
        "--kind",
        choices=(*KINDS, "both", "all"),
        default="values",
        help="what kernels are about",
    )
    parser.add_argument(
        "--target",
        default="",
        help="cuda, simulator, simulator:sm_80, schedule:sm_80, a CPU's name, several of them with "
        "commas, or all",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes to do it in")
    parser.add_argument("--seconds", type=float, default=0, help="start no more kernels after that")
    parser.add_argument("--out", default="fuzz-failures", help="folder for reproducers")
    parser.add_argument("--json", default="", help="file for seeds, counts, findings and times")
    parser.add_argument("--show", action="store_true", help="print the kernels, run nothing")
    parser.add_argument(
        "--no-shrink", action="store_true", help="leave failing kernels as they are"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.target == "all":
        options.target = ",".join([*list_cpus(), "simulator:sm_80", "simulator:sm_90a"])
    seeds = range(options.seed, options.seed + options.count)
    if options.worker:
        return _work(seeds, options)
    for target in filter(None, options.target.split(",")):
        if mistake := find_mistake(target):
            parser.error(f"--target {target}: {mistake}")
    if options.show:
        for seed in seeds:
            print(f"# seed {seed}\n{generate(seed, options.target, options.kind).source()}")
        return 0
    return _campaign(seeds, options)


def _targets(seed: int, options: argparse.Namespace) -> list[str]:
    return options.target.split(",") if options.target else [choose_cpu(seed)]


# --- The child -------------------------------------------------------------------------


def _work(seeds: range, options: argparse.Namespace) -> int:
    """Runs kernels in this process; announces each seed before it is run."""
    faulthandler.enable()  # which says whether a kernel was being compiled or run
    # Kernels have quotients of constants on purpose.
    warnings.simplefilter("ignore", CompilationWarning)
    failed = False
    for seed in seeds:
        print(f"seed {seed}", flush=True)
        program = generate(seed, options.target, options.kind)
        try:
            seconds = check_all(program, _targets(seed, options))
            print(f"times {json.dumps(seconds)}", flush=True)
            if program.counts:
                print(f"counts {json.dumps(program.counts)}", flush=True)
        except Failure as failure:
            failed = True
            print(f"FAILED seed {seed}: {failure}", flush=True)
            target = failure.target or choose_cpu(seed)
            message = str(failure)
            if not options.no_shrink:
                program = shrink(
                    program, lambda candidate: _fails_alike(candidate, target, message)
                )
                message = _message(program, target) or message
            path = _write(program, target, message, options.out)
            print(f"  reproducer: {path}", flush=True)
    return _MISMATCH if failed else 0


def _message(program: Program, target: str) -> str:
    try:
        check(program, target)
    except Failure as failure:
        return str(failure)
    return ""


def _fails_alike(program: Program, target: str, message: str) -> bool:
    """A refusal stays a refusal by the same side, a difference a difference."""
    head = message.split(":")[0].split("(")[0].split()[:3]
    return _message(program, target).split(":")[0].split("(")[0].split()[:3] == head


def _write(program: Program, target: str, message: str, folder: str) -> pathlib.Path:
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    path /= f"seed-{program.seed}.py"
    path.write_text(write_reproducer(program, target, message))
    return path


# --- The parent ---------------------------------------------------------------------------


@dataclasses.dataclass
class _Result:
    """What some kernels showed."""

    kernels: int = 0
    findings: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    seconds: Counter[str] = dataclasses.field(default_factory=Counter)
    counts: Counter[str] = dataclasses.field(default_factory=Counter)


def _campaign(seeds: range, options: argparse.Namespace) -> int:
    """Runs all seeds in children, and sums up."""
    started = time.monotonic()
    size = max(1, min(_BATCH, -(-len(seeds) // options.jobs)))
    parts = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    total = _Result()

    def run(part: range) -> _Result:
        left = options.seconds - (time.monotonic() - started) if options.seconds else None
        return _supervise(part, options, left)

    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(run, parts):
            total.kernels += result.kernels
            total.findings += result.findings
            total.seconds.update(result.seconds)
            total.counts.update(result.counts)
    seconds = time.monotonic() - started
    print(
        f"{total.kernels} kernels from seed {seeds.start}, {len(total.findings)} failures, "
        f"{seconds:.0f} s"
    )
    for name, count in sorted(total.counts.items()):
        print(f"  {name}: {count}")
    if options.json:
        rates = {name: round(total.kernels / max(t, 1e-9), 1) for name, t in total.seconds.items()}
        summary = {
            "first_seed": seeds.start,
            "kind": options.kind,
            "targets": options.target,
            "kernels": total.kernels,
            "seconds": round(seconds, 1),
            "kernels_per_second_of_one_process": rates,
            "counts": dict(sorted(total.counts.items())),
            "findings": total.findings,
        }
        pathlib.Path(options.json).write_text(json.dumps(summary, indent=1) + "\n")
    return 1 if total.findings else 0


def _supervise(seeds: range, options: argparse.Namespace, left: float | None) -> _Result:
    """Runs children until every seed is done; one that dies names its last seed."""
    result = _Result()
    deadline = None if left is None else time.monotonic() + left
    start = seeds.start
    while start < seeds.stop and (deadline is None or time.monotonic() < deadline):
        stop, status = _run_child(range(start, seeds.stop), options, deadline, result)
        if status in (0, _MISMATCH):
            start = stop
            continue
        message = f"the process ended with status {status}"
        program = generate(stop, options.target, options.kind)
        target = _targets(stop, options)[0]
        if not options.no_shrink:
            for candidate_target in _targets(stop, options):
                if _crashes(program, candidate_target, options.out):
                    target = candidate_target
                    program = shrink(
                        program, lambda candidate: _crashes(candidate, target, options.out)
                    )
                    break
        path = _write(program, target, message, options.out)
        print(f"FAILED seed {stop}: {message}\n  reproducer: {path}", flush=True)
        # If the kernel alone does not show it, those that its process ran before may matter.
        found = {"seed": stop, "message": message, "reproducer": str(path)}
        result.findings.append({**found, "first_seed_of_process": start})
        start = stop + 1
    return result


def _run_child(
    seeds: range, options: argparse.Namespace, deadline: float | None, result: _Result
) -> tuple[int, int]:
    """The seed that came next, or was being run, when the child ended; and its exit status."""
    command = [sys.executable, "-m", "tessera.testing.fuzz", "--worker", "--kind", options.kind]
    command += ["--seed", str(seeds.start), "--count", str(len(seeds)), "--out", options.out]
    command += (["--target", options.target] if options.target else []) + (
        ["--no-shrink"] if options.no_shrink else []
    )
    last = seeds.start
    stopped = False
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as child:
        watch = threading.Timer(_PATIENCE, child.kill)
        watch.start()
        assert child.stdout is not None
        for line in child.stdout:
            watch.cancel()
            if line.startswith("seed "):
                last = int(line.split()[1])
                result.kernels += 1
                if deadline is not None and time.monotonic() > deadline:
                    stopped = True
                    child.kill()
                    break
            elif line.startswith("times "):
                result.seconds.update(json.loads(line[6:]))
            elif line.startswith("counts "):
                result.counts.update(json.loads(line[7:]))
            else:
                print(line, end="", flush=True)
            if line.startswith("FAILED"):
                head, _, message = line.strip().partition(": ")
                result.findings.append({"seed": int(head.split()[2]), "message": message})
            # Making a kernel smaller takes its time.
            patience = 10 * _PATIENCE if line.startswith("FAILED") else _PATIENCE
            watch = threading.Timer(patience, child.kill)
            watch.start()
        watch.cancel()
    if stopped:
        result.kernels -= 1
        return seeds.stop, 0
    return (seeds.stop if child.returncode in (0, _MISMATCH) else last), child.returncode


def _environment() -> dict[str, str]:
    """This process's, so that a child finds the modules that this one has found.

    No kernel comes twice: the cache on disk would only fill up.
    """
    path = os.pathsep.join(path for path in sys.path if path)
    return {"TESSERA_CACHE": "off", **os.environ, "PYTHONPATH": path}


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
