# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPU's rows under two builds of Tessera: which got slower, and by how much.

    compare_builds.py BASE NEW [--only TEXT] [--rounds N] [--json FILE]

BASE and NEW are folders that hold the package `tessera`, such as a wheel that has been unpacked.
Each build has a process of its own, with the same arrays; the two take turns, tens of
milliseconds each, so that a machine that slows down slows both. What counts is the median over
the turns of the fastest call in each. Exits with 1 if a row is slower by more than 2 %.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

TURN_SECONDS = 0.03
TOLERANCE = 1.02


def work() -> int:
    """The process of a build: builds a row, or times it, for each line that it reads."""
    import cpu
    import report

    rows = cpu.rows()
    function: Any = None
    for line in sys.stdin:
        if line.startswith("environment"):
            print(json.dumps(report.environment()), flush=True)
            continue
        if line.startswith("row"):
            row = next(rows, None)
            if row is not None:
                function = next(iter(row.competitors.values()))
                only = line.split(" ", 1)[1].strip()
                if only in row.work:
                    function()
            print(json.dumps(row.work if row else None), flush=True)
            continue
        fastest, start = float("inf"), time.perf_counter()
        while time.perf_counter() - start < TURN_SECONDS:
            begin = time.perf_counter()
            function()
            fastest = min(fastest, time.perf_counter() - begin)
        print(json.dumps(fastest), flush=True)
    return 0


def start(folder: str, script: str = __file__, *arguments: str) -> subprocess.Popen[str]:
    """The process of a build; `script --worker arguments` is what it runs."""
    path = os.pathsep.join([folder, str(pathlib.Path(__file__).parent)])
    return subprocess.Popen(
        [sys.executable, script, "--worker", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def ask(process: subprocess.Popen[str], line: str) -> Any:
    """The answer to a line; with an empty one, to what was written before."""
    assert process.stdin and process.stdout
    if line:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise SystemExit(f"compare_builds.py: the process of a build ended ({process.wait()})")
    return json.loads(answer)


def main() -> int:
    if sys.argv[1:] == ["--worker"]:
        return work()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", help="folder with the package of one build")
    parser.add_argument("new", help="folder with the package of the other")
    parser.add_argument("--only", default="", help="only rows whose description holds this text")
    parser.add_argument("--rounds", type=int, default=40, help="turns of each build for a row")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    builds = {"base": start(options.base), "new": start(options.new)}
    results: list[dict[str, Any]] = []
    while name := [ask(build, f"row {options.only}") for build in builds.values()][0]:
        if options.only not in name:
            continue
        times: dict[str, list[float]] = {key: [] for key in builds}
        for turn in range(options.rounds):
            # Who comes first in a round has the other's data in its cache.
            for key in sorted(builds, reverse=turn % 2 == 1):
                times[key].append(ask(builds[key], "time"))
        ms = {key: statistics.median(values) * 1e3 for key, values in times.items()}
        results.append({"work": name, "ms": ms, "ratio": ms["base"] / ms["new"]})
        slow = "  SLOWER" if ms["new"] > TOLERANCE * ms["base"] else ""
        print(
            f"{name:44}  base {ms['base']:9.4f} ms  new {ms['new']:9.4f} ms"
            f"  {results[-1]['ratio']:6.3f}{slow}",
            flush=True,
        )
    made = {"environment": ask(builds["new"], "environment"), "rows": results}
    for build in builds.values():
        assert build.stdin
        build.stdin.close()
        build.wait()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(made, indent=1) + "\n")
    return 1 if any(row["ms"]["new"] > TOLERANCE * row["ms"]["base"] for row in results) else 0


if __name__ == "__main__":
    sys.exit(main())
