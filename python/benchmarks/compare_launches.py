# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a warm launch with 4 and with 20 arguments costs the host under two builds of Tessera.

    compare_launches.py BASE NEW [--device cuda] [--rounds N] [--pairs N] [--json FILE]

BASE and NEW are folders that hold the package `tessera`, such as a wheel that has been unpacked.
Each build has a process of its own, with tensors of torch; the two take turns, a millisecond each,
and change places after each round. Where code lies in memory makes a process some percent faster
or slower than the next one of the same build, so there are several pairs of processes. What counts
is the median over the pairs of their medians. Exits with 1 if a form is slower by more than 2 %.
Needs torch.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

from compare_builds import TOLERANCE, ask, start

FORMS = ("4 arguments", "20 arguments")
TURN_SECONDS = 0.001


def work(device: str) -> int:
    """The process of a build: times launches of a form for each line that it reads."""
    import launch_forms
    import tessera
    import torch

    known = {}
    for form in launch_forms.forms(tessera, device):
        if form.kind != "plain":
            break
        known[form.name] = form.launch
    launches = dict(zip(FORMS, known.values()))
    counts = {}
    for name, launch in launches.items():
        for _ in range(1000):
            launch()
        counts[name] = max(1, int(TURN_SECONDS / launch_forms.timed(launch, 1000)))
    for line in sys.stdin:
        name = line.strip()
        launch_forms.timed(launches[name], counts[name] // 10 + 1)  # the other build was here
        print(json.dumps(launch_forms.timed(launches[name], counts[name])), flush=True)
    return 0


def compare(workers: list[Any], rounds: int) -> dict[str, dict[str, Any]]:
    """For each form, the medians over the rounds of a pair of processes, and the fastest turns."""
    found = {}
    for name in FORMS:
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(rounds + 1):
            order = (0, 1) if number % 2 else (1, 0)
            for build in order:
                seconds = ask(workers[build], name)
                if number:  # the first is a warm-up
                    times[build].append(seconds)
        base, new = (statistics.median(each) * 1e6 for each in times)
        least = [min(each) * 1e6 for each in times]
        found[name] = {"base_us": base, "new_us": new, "ratio": new / base, "least_us": least}
    return found


def summarise(name: str, pairs: list[dict[str, Any]]) -> dict[str, Any]:
    row = {"form": name}
    for key in ("base_us", "new_us", "ratio"):
        row[key] = statistics.median(pair[key] for pair in pairs)
    row["least_us"] = [min(pair["least_us"][build] for pair in pairs) for build in (0, 1)]
    return {**row, "pairs": pairs}


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        return work(sys.argv[2])
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("new")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=100, help="of each pair of processes")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of processes")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    began = time.time()
    pairs = []
    for _ in range(arguments.pairs):
        builds = (arguments.base, arguments.new)
        workers = [start(each, __file__, arguments.device) for each in builds]
        pairs.append(compare(workers, arguments.rounds))
        for worker in workers:
            worker.stdin.close()
            worker.wait()
    rows = [summarise(name, [pair[name] for pair in pairs]) for name in FORMS]
    for row in rows:
        base, new = row["least_us"]
        ratios = [pair["ratio"] for pair in row["pairs"]]
        print(
            f"{row['form']:<14}base {row['base_us']:7.3f} us  new {row['new_us']:7.3f}  "
            f"ratio {row['ratio']:.3f} ({min(ratios):.3f} to {max(ratios):.3f})  "
            f"least {base:.3f} and {new:.3f}"
        )
    if arguments.json:
        found = {"device": arguments.device, "rounds": arguments.rounds, "began": began}
        with open(arguments.json, "w") as file:
            json.dump({"benchmark": "compare_launches", **found, "rows": rows}, file, indent=1)
            file.write("\n")
    return int(any(row["ratio"] > TOLERANCE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
