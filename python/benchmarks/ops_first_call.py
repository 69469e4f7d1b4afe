# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first call of each operator of tessera.ops in a process: compiled, and found in the disk cache.

    python python/benchmarks/ops_first_call.py [--only NAME ...] [--rounds N] [--json FILE]

The call is the first one of the operator's example, on small arrays of NumPy. Each call is made in a
new process, which has loaded NumPy and has called two operators on other types. `cold` begins with
an empty cache, `warm` with that of the cold call. Figures are milliseconds by the clock and, in brackets, of
the processor; the least of the rounds, since other processes of the machine only add to them. The first
line has what the very first call of a process takes beside.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import inspect
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from typing import Any

import numpy as np

import report
import tessera
from tessera import ops

LIMITS = {"cold": 300.0, "warm": 10.0}
"""Milliseconds that are promised."""


def in_process(name: str, cache: str, others: str = "") -> list[float]:
    """What `first_call` returns in a new process, which calls two operators with the cache `others` before,
    unless that is empty."""
    command = [sys.executable, __file__, "--call", name, cache, others]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if found.returncode:
        raise SystemExit(f"the example of {name} failed")
    times: list[float] = json.loads(found.stdout)
    return times


def first_call(name: str, cache: str, others: str) -> list[float]:
    """The milliseconds of the operator's first call in its example: by the clock, of the processor."""
    if others:
        tessera.settings.cache_dir = others
        ops.selu(np.ones(8, np.float16))
        ops.softmax(np.ones((2, 2), np.float16))
    tessera.settings.cache_dir = cache
    operator, found = getattr(ops, name), []

    def timed(*args: Any, **named: Any) -> Any:
        clock, processor = time.perf_counter(), time.process_time()
        result = operator(*args, **named)
        found.append(time.process_time() - processor)
        found.insert(0, time.perf_counter() - clock) if len(found) == 1 else None
        return result

    example = textwrap.dedent(inspect.cleandoc(operator.__doc__).partition("Example:\n")[2])
    setattr(ops, name, timed)
    exec(compile(example, name, "exec", dont_inherit=True), {})
    return [1e3 * each for each in found[:2]]


def measure(name: str, rounds: int, others: str) -> dict[str, Any]:
    kinds: dict[str, list[list[float]]] = {"cold": [], "warm": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for times in kinds.values():
                times.append(in_process(name, cache, others))
    row: dict[str, Any] = {"operator": name}
    for kind, times in kinds.items():
        row[f"{kind}_ms"] = round(min(each[0] for each in times), 2)
        row[f"{kind}_cpu_ms"] = round(min(each[1] for each in times), 2)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--call", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.call:
        print(json.dumps(first_call(*options.call)))
        return
    names = [each.__name__ for family in ops.FAMILIES.values() for each in family]
    names = [name for name in names if not options.only or name in options.only]
    with tempfile.TemporaryDirectory() as others:
        alone = [in_process("softmax", others)[1] for _ in range(2)][1]
        again = measure("softmax", options.rounds, others)["warm_cpu_ms"]
        print(f"the first call of a process: {alone - again:.1f} ms of the processor more")
        rows = [measure(name, options.rounds, others) for name in names]
    if options.json:
        whole = {"environment": report.environment(), "first_of_process_cpu_ms": alone - again}
        options.json.write_text(json.dumps({**whole, "rows": rows}, indent=1) + "\n")
    for kind, limit in LIMITS.items():
        times = [row[f"{kind}_cpu_ms"] for row in rows]
        above = sum(each > limit for each in times)
        print(f"{kind}: median {statistics.median(times):.1f} ms of the processor, "
              f"{above} of {len(rows)} above {limit:.0f}; the worst:")  # fmt: skip
        for row in sorted(rows, key=lambda row: -row[f"{kind}_cpu_ms"])[:10]:
            print(f"  {row['operator']:34} {row[f'{kind}_ms']:8.1f} [{row[f'{kind}_cpu_ms']:.1f}]")


if __name__ == "__main__":
    main()
