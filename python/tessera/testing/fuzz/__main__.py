# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m tessera.testing.fuzz: run many generated kernels.

Child processes run the kernels, so a kernel that ends its process is reported like any other. Every
failing kernel is shrunk and written as a Python file. A campaign runs each kernel on all targets
that need no GPU, and writes its figures and findings as JSON while it runs:

    python -m tessera.testing.fuzz --kind all --target all --jobs 16 --seconds 3000 \\
        --count 100000 --seed 1 --json campaign.json

If a campaign is killed, its last JSON remains; SIGTERM and Ctrl-C write a complete one. Campaigns
over other seeds, on this machine or another, write their own files, which can be merged:

    python -m tessera.testing.fuzz --merge first.json second.json --json both.json
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tessera.errors import CompilationWarning, SlowCompilationWarning
from tessera.testing.fuzz.check import (
    Failure,
    check,
    check_all,
    choose_cpu,
    find_mistake,
    list_cpus,
    write_reproducer,
)
from tessera.testing.fuzz.generate import KINDS, choose_kind, generate
from tessera.testing.fuzz.program import Program
from tessera.testing.fuzz.shrink import shrink

_MISMATCH = 3  # the child's exit status when kernels have failed
_BATCH = 250  # kernels a child runs, so that what one leaves behind does not stay for ever
_WRITTEN = 50  # kernels after which the summary is written again
_ENDS = (
    -signal.SIGTERM,
    -signal.SIGINT,
    -signal.SIGKILL,
)  # exit statuses of children that are stopped
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
    parser.add_argument(
        "--merge", nargs="+", metavar="FILE", help="sum up files of --json, run nothing"
    )
    parser.add_argument("--show", action="store_true", help="print the kernels, run nothing")
    parser.add_argument(
        "--no-shrink", action="store_true", help="leave failing kernels as they are"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.merge:
        try:
            summary = _merge(options.merge)
        except (OSError, ValueError) as error:
            parser.error(f"--merge: {error}")
        return _report(summary, options.json)
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
    return _run_campaign(seeds, options)


def _targets(seed: int, options: argparse.Namespace) -> list[str]:
    return options.target.split(",") if options.target else [choose_cpu(seed)]


# --- The child -------------------------------------------------------------------------


def _work(seeds: range, options: argparse.Namespace) -> int:
    """Runs kernels in this process; announces each seed before it is run."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # without a traceback; the parent sums up
    faulthandler.enable()  # which says whether a kernel was being compiled or run
    # Kernels have quotients of constants, and long programs, on purpose.
    warnings.simplefilter("ignore", CompilationWarning)
    warnings.simplefilter("ignore", SlowCompilationWarning)
    failed = False
    for seed in seeds:
        print(f"seed {seed} {choose_kind(seed, options.kind)}", flush=True)
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


class _Campaign:
    """The results of all children's kernels so far; any thread may add to them."""

    def __init__(self, seeds: range, options: argparse.Namespace) -> None:
        self.options = options
        self.started = time.monotonic()
        self.stopped = False  # by a signal
        self.children: set[subprocess.Popen[str]] = set()
        self._seeds = seeds
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._kernels = 0
        self._checked: dict[str, Counter[str]] = {}  # by kind and target
        self._seconds: Counter[str] = Counter()  # by target
        self._counts: Counter[str] = Counter()
        self._findings: list[dict[str, Any]] = []
        self.write()

    def is_over(self) -> bool:
        """True if no more kernels may start."""
        late = time.monotonic() - self.started > self.options.seconds > 0
        return late or self.stopped

    def stop(self, *_: Any) -> None:
        """Ends all children; a handler of signals."""
        self.stopped = True
        for child in list(self.children):
            child.kill()

    def add_kernel(self) -> None:
        """A kernel has ended, by itself or with its process."""
        with self._lock:
            self._kernels += 1
            due = self._kernels % _WRITTEN == 0
        if due:
            self.write()

    def add_times(self, kind: str, seconds: dict[str, float]) -> None:
        """A kernel has had no failure on these targets."""
        with self._lock:
            self._checked.setdefault(kind, Counter()).update(seconds.keys())
            self._seconds.update(seconds)

    def add_counts(self, counts: dict[str, int]) -> None:
        """A kernel has these features that its kind counts."""
        with self._lock:
            self._counts.update(counts)

    def add_finding(self, **finding: Any) -> None:
        """A kernel has failed."""
        with self._lock:
            self._findings.append(finding)
        self.write()

    def summary(self) -> dict[str, Any]:
        """The figures so far, as `--json` has them."""
        with self._lock:
            rates = {
                name: round(sum(checked[name] for checked in self._checked.values()) / seconds, 1)
                for name, seconds in self._seconds.items()
                if seconds
            }
            return {
                "first_seed": self._seeds.start,
                "count": len(self._seeds),
                "kind": self.options.kind,
                "targets": self.options.target,
                "kernels": self._kernels,
                "seconds": round(time.monotonic() - self.started, 1),
                "kernels_per_second_of_one_process": rates,
                "checked": {kind: dict(self._checked[kind]) for kind in sorted(self._checked)},
                "counts": dict(sorted(self._counts.items())),
                "findings": list(self._findings),
            }

    def write(self) -> None:
        """Writes the figures so far to the file of `--json`, if there is one."""
        if self.options.json:
            with self._writing:
                _write_json(self.summary(), self.options.json)


def _write_json(summary: dict[str, Any], name: str) -> None:
    """Replaces a file as a whole, so that a reader sees this summary or the one before."""
    path = pathlib.Path(name)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(summary, indent=1) + "\n")
    part.replace(path)


def _merge(names: Sequence[str]) -> dict[str, Any]:
    """The sums of several summaries; their campaigns ran beside each other, or one by one.

    `seconds` are those of the longest one. Raises ValueError if two of them had a kernel in common.
    """
    parts = [json.loads(pathlib.Path(name).read_text()) for name in names]
    for name, part in zip(names, parts):
        if lacking := {"first_seed", "count", "checked"} - set(part):
            raise ValueError(
                f"{name} lacks {', '.join(sorted(lacking))}; give files that a campaign's --json wrote"
            )
    seen: list[tuple[str, dict[str, Any], range]] = []
    for name, part in zip(names, parts):
        seeds = range(part["first_seed"], part["first_seed"] + part["count"])
        for other, before, taken in seen:
            both = range(max(seeds.start, taken.start), min(seeds.stop, taken.stop))
            if both and (part["kind"], part["targets"]) == (before["kind"], before["targets"]):
                raise ValueError(
                    f"{other} and {name} were both given the seeds {both.start} to {both[-1]}, so that "
                    "sums would count kernels twice; merge campaigns of other seeds"
                )
        seen.append((name, part, seeds))
    checked: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part["counts"])
        for kind, by_target in part["checked"].items():
            checked.setdefault(kind, Counter()).update(by_target)
    return {
        "first_seed": min(part["first_seed"] for part in parts),
        "kind": ",".join(sorted({part["kind"] for part in parts})),
        "targets": " or ".join(sorted({part["targets"] for part in parts})),
        "kernels": sum(part["kernels"] for part in parts),
        "seconds": max(part["seconds"] for part in parts),
        "checked": {kind: dict(checked[kind]) for kind in sorted(checked)},
        "counts": dict(sorted(counts.items())),
        "findings": [finding for part in parts for finding in part["findings"]],
        "campaigns": [
            {key: part[key] for key in ("first_seed", "count", "kernels", "seconds")}
            for part in parts
        ],
    }


def _report(summary: dict[str, Any], json_file: str) -> int:
    """Prints figures, and writes them if asked for; 1 if a kernel has failed."""
    print(
        f"{summary['kernels']} kernels from seed {summary['first_seed']}, "
        f"{len(summary['findings'])} failures, {summary['seconds']:.0f} s"
    )
    for kind, by_target in summary["checked"].items():
        print(f"  {kind}: " + ", ".join(f"{count} on {name}" for name, count in by_target.items()))
    for name, count in summary["counts"].items():
        print(f"  {name}: {count}")
    if json_file:
        _write_json(summary, json_file)
    return 1 if summary["findings"] else 0


def _run_campaign(seeds: range, options: argparse.Namespace) -> int:
    """Runs all seeds in child processes, and prints a summary."""
    size = max(1, min(_BATCH, -(-len(seeds) // options.jobs)))
    parts = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    campaign = _Campaign(seeds, options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, campaign.stop)
    with ThreadPoolExecutor(options.jobs) as pool:
        for _ in pool.map(lambda part: _supervise(part, campaign), parts):
            pass
    return _report(campaign.summary(), options.json)


def _supervise(seeds: range, campaign: _Campaign) -> None:
    """Runs children until every seed is done; one that dies names its last seed."""
    options = campaign.options
    start = seeds.start
    while start < seeds.stop and not campaign.is_over():
        stop, status = _run_child(range(start, seeds.stop), campaign)
        if status in (0, _MISMATCH):
            start = stop
            continue
        message = f"the process ended with status {status}"
        program = generate(stop, options.target, options.kind)
        target = _targets(stop, options)[0]
        if not options.no_shrink:
            for candidate_target in _targets(stop, options):
                if not campaign.stopped and _crashes(program, candidate_target, options.out):
                    target = candidate_target
                    program = shrink(
                        program,
                        lambda candidate: (
                            not campaign.stopped and _crashes(candidate, target, options.out)
                        ),
                    )
                    break
        path = _write(program, target, message, options.out)
        print(f"FAILED seed {stop}: {message}\n  reproducer: {path}", flush=True)
        # If the kernel alone does not show it, those that its process ran before may matter.
        campaign.add_finding(
            seed=stop, message=message, reproducer=str(path), first_seed_of_process=start
        )
        start = stop + 1


def _run_child(seeds: range, campaign: _Campaign) -> tuple[int, int]:
    """The seed that came next, or was being run, when the child ended; and its exit status."""
    options = campaign.options
    command = [sys.executable, "-m", "tessera.testing.fuzz", "--worker", "--kind", options.kind]
    command += ["--seed", str(seeds.start), "--count", str(len(seeds)), "--out", options.out]
    command += (["--target", options.target] if options.target else []) + (
        ["--no-shrink"] if options.no_shrink else []
    )
    last, kind, ended, has_times = None, "", False, False
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as child:
        campaign.children.add(child)
        watch = threading.Timer(_PATIENCE, child.kill)
        watch.start()
        assert child.stdout is not None
        for line in child.stdout:
            watch.cancel()
            if line.startswith("seed "):
                if last is not None:
                    campaign.add_kernel()
                last, kind, has_times = int(line.split()[1]), line.split()[2], False
                if campaign.is_over():
                    ended = True
                    child.kill()
                    break
            elif line.startswith("times "):
                campaign.add_times(kind, json.loads(line[6:]))
                has_times = True
            elif line.startswith("counts "):
                campaign.add_counts(json.loads(line[7:]))
            else:
                print(line, end="", flush=True)
            if line.startswith("FAILED"):
                head, _, message = line.strip().partition(": ")
                campaign.add_finding(seed=int(head.split()[2]), message=message)
            # Making a kernel smaller takes its time.
            patience = 10 * _PATIENCE if line.startswith("FAILED") else _PATIENCE
            watch = threading.Timer(patience, child.kill)
            watch.start()
        watch.cancel()
    campaign.children.discard(child)
    if child.returncode in (-signal.SIGTERM, -signal.SIGINT):
        campaign.stop()  # a signal to the whole group, which this process may not have got yet
    if ended or (campaign.stopped and child.returncode in _ENDS):
        if has_times:  # it had ended, and the next one had not begun
            campaign.add_kernel()
        return seeds.stop, 0
    if last is not None:
        campaign.add_kernel()
    done = child.returncode in (0, _MISMATCH)
    return (seeds.stop if done else seeds.start if last is None else last), child.returncode


def _environment() -> dict[str, str]:
    """This process's, so that a child finds the modules that this one has found.

    No kernel comes twice: the cache on disk would only fill up.
    """
    path = os.pathsep.join(path for path in sys.path if path)
    return {"TESSERA_CACHE": "off", **os.environ, "PYTHONPATH": path}


def _crashes(program: Program, target: str, folder: str) -> bool:
    """True if the kernel still takes a process down."""
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
