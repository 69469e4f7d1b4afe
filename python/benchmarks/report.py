# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one way in which benchmarks are measured and reported.

A `Row` is one piece of work under several competitors. They are checked against each other
first, then timed in turns in the same process (so that a machine that slows down slows all
of them down), with preallocated outputs, and the median of each is kept. The report is a
table, JSON (`--json FILE`) or a bar chart (`--plot FILE`, needs matplotlib).
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tessera


@dataclasses.dataclass
class Row:
    """One piece of work."""

    work: str
    """What is computed, its shape and dtype."""
    competitors: dict[str, Callable[[], Any]]
    """Name -> the work. The first is Tessera's; ratios are to the best of the others, those in
    parentheses aside: "(copy)" is there to be seen, not to be beaten."""
    check: Callable[[], None] | None = None
    """Raises if the results do not agree; called once, after each competitor ran once."""
    at_least: float | None = None
    """The ratio (best other / Tessera) that was promised, and the one aimed at."""
    aim: float | None = None
    aim_of_copy: float | None = None
    """The ratio aimed at beside "(copy)", which moves the same bytes and computes nothing."""
    limit_ms: float | None = None
    """For work that nothing is compared with: the time promised, and the one aimed at."""
    aim_ms: float | None = None
    bytes: int = 0
    """Bytes moved at least, for a column of GB/s."""
    flops: int = 0
    """Operations, for a column of GFLOP/s."""


def measure(row: Row, seconds: float) -> dict[str, float]:
    """Median seconds of each competitor, measured in turns for about `seconds` in all."""
    for function in row.competitors.values():
        function()
    if row.check:
        row.check()
    times: dict[str, list[float]] = {name: [] for name in row.competitors}
    # Very short work is timed in batches, which the clock can resolve.
    batches = {}
    for name, function in row.competitors.items():
        start = time.perf_counter()
        function()
        batches[name] = max(1, int(20e-6 / max(time.perf_counter() - start, 1e-7)))
    deadline = time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or (time.perf_counter() < deadline and rounds < 2000):
        for name, function in row.competitors.items():
            batch = batches[name]
            start = time.perf_counter()
            for _ in range(batch):
                function()
            times[name].append((time.perf_counter() - start) / batch)
        rounds += 1
    return {name: statistics.median(values) for name, values in times.items()}


def time_in_turns(
    functions: dict[str, Callable[[], Any]], seconds: float, clock: Callable[[], float]
) -> tuple[dict[str, float], int]:
    """The median of each function in ms, and the number of rounds. All are called once in each round."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    rounds, deadline = 0, time.perf_counter() + seconds
    while not rounds or time.perf_counter() < deadline:
        for name, function in functions.items():
            start = clock()
            function()
            times[name].append(clock() - start)
        rounds += 1
    return {name: statistics.median(values) * 1e3 for name, values in times.items()}, rounds


def environment() -> dict[str, Any]:
    """What a reader needs to compare figures: date, machine, versions."""
    host = tessera.host_info()
    info: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "cpu": host.get("cpu"),
        "cores": os.cpu_count(),
        "threads": host.get("threads"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "tessera": tessera.__version__,
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        info["torch"] = torch.__version__
        info["torch_threads"] = torch.get_num_threads()
    return info


def write_torch_rows(path: str, device: str, rows: list[Any]) -> None:
    """Writes what a benchmark against torch has measured, with the machine, as JSON."""
    import torch

    found = environment()
    if device == "cuda":
        found["gpu"] = torch.cuda.get_device_name()
    made = {"machine": found.get("gpu") or found["cpu"], "environment": found, "rows": rows}
    with open(path, "w") as file:
        json.dump(made, file, indent=1)
        file.write("\n")


def run(name: str, rows: Callable[[], Iterable[Row]]) -> int:
    """The command line of a benchmark file; returns the exit status."""
    parser = argparse.ArgumentParser(description=f"benchmark: {name}")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--plot", help="draw the ratios to this file")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each row")
    parser.add_argument("--only", help="only rows whose description holds this text")
    arguments = parser.parse_args()
    results = []
    for row in rows():
        if arguments.only and arguments.only not in row.work:
            continue
        times = measure(row, arguments.seconds)
        results.append(summarize(row, times))
        print(line(results[-1]), flush=True)
    report = {"benchmark": name, "environment": environment(), "rows": results}
    print("\n" + "  ".join(f"{key}={value}" for key, value in report["environment"].items()))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    if arguments.plot:
        plot(report, arguments.plot)
    return 0


def summarize(row: Row, times: dict[str, float]) -> dict[str, Any]:
    names = list(row.competitors)
    mine = times[names[0]]
    rivals = [name for name in names[1:] if not name.startswith("(")]
    best = min(rivals, key=lambda name: times[name], default=None)
    result: dict[str, Any] = {
        "work": row.work,
        "ms": {name: seconds * 1e3 for name, seconds in times.items()},
        "best_other": best,
        "ratio": times[best] / mine if best else None,
        "at_least": row.at_least,
        "aim": row.aim,
    }
    if "(copy)" in times:
        result["of_copy"] = times["(copy)"] / mine
        result["aim_of_copy"] = row.aim_of_copy
    if row.limit_ms:
        result["limit_ms"], result["aim_ms"] = row.limit_ms, row.aim_ms
    if row.bytes:
        result["GB/s"] = row.bytes / mine / 1e9
    if row.flops:
        result["GFLOP/s"] = row.flops / mine / 1e9
    return result


def line(result: dict[str, Any]) -> str:
    cells = [f"{result['work']:44}"]
    cells += [f"{name} {ms:9.4f} ms" for name, ms in result["ms"].items()]
    if result["ratio"] is not None:
        wanted = (
            f" (wanted {result['at_least']}, aim {result['aim']})" if result["at_least"] else ""
        )
        cells.append(f"{result['ratio']:6.2f}x{wanted}")
    for unit in ("GB/s", "GFLOP/s"):
        if unit in result:
            cells.append(f"{result[unit]:7.1f} {unit}")
    return "  ".join(cells)


def plot(report: dict[str, Any], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for row in report["rows"] if row["ratio"] is not None]
    figure, axes = plt.subplots(figsize=(9, 0.4 * len(rows) + 1.2))
    axes.barh([row["work"] for row in rows], [row["ratio"] for row in rows])
    axes.axvline(1, color="black", linewidth=1)
    axes.invert_yaxis()
    axes.set_xlabel("speed relative to the best other (above 1: Tessera is faster)")
    figure.tight_layout()
    figure.savefig(path)
