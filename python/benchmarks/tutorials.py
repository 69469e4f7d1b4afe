# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Triton's own tutorials as a benchmark: their functions, sizes and lists of configurations.

    python python/benchmarks/tutorials.py /path/to/triton --json tutorials.json
    python python/benchmarks/tutorials.py /path/to/triton --only 03 06 --points 4

FOLDER is a checkout of Triton (or the part with python/tutorials), whose scripts run untouched:
with the installed Triton, and with Tessera through `tessera.compat.triton`. Each tutorial and
compiler has a process of its own, one after the other. Of each of a tutorial's benchmarks,
`--points` sizes are measured, spread evenly over its list, and only the lines that name Triton.
Both compilers' functions are timed by the one `do_bench` below (the autotuner of each chooses by
its own), between events, with the L2 cache overwritten before each call and the GPU kept waiting
until the host has launched all of it, so that times are those of kernels. The last tutorial has no
`perf_report`: its matmuls are called at its benchmark's sizes.

Tuning by Triton compiles one configuration after the other, so `--warm` first fills its disk
cache: each tutorial's benchmarks in parallel, without measuring. Prints Triton's time over
Tessera's for each point, and the geometric mean of each tutorial. Needs a GPU and Triton.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import runpy
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

BENCHMARKS = {"01": 1, "02": 1, "03": 2, "05": 1, "06": 10, "08": 2, "09": 1}
"""Tutorials that measure something, and how many lists of sizes they have at most."""


def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """The median of calls in milliseconds, in the form that Triton's function of this name has."""
    import torch

    fn()
    torch.cuda.synchronize()
    cache = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    idle = 1_500_000  # of the GPU's cycles: longer than the host takes to launch any of these
    times = []
    start = time.monotonic()
    while time.monotonic() - start < 0.12 or len(times) < 20:
        for x in grad_to_none or ():
            x.grad = None
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        cache.zero_()
        torch.cuda._sleep(idle)
        before.record()
        fn()
        after.record()
        torch.cuda.synchronize()
        times.append(before.elapsed_time(after))
    middle = sorted(times)[len(times) // 2]
    return [middle] * len(quantiles) if quantiles else middle


def call_once(fn, *args, quantiles=None, **kwargs):
    """In place of `do_bench` where only the compile cache is to be filled."""
    fn()
    return [1.0] * len(quantiles) if quantiles else 1.0


def spread(values, points):
    values = list(values)
    if points >= len(values):
        return values
    step = (len(values) - 1) / max(points - 1, 1)
    return [values[round(k * step)] for k in range(points)]


class Measured:
    """What stands in for the `run` of a `perf_report`."""

    def __init__(self, given: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
        self.given = given
        self.rows = rows
        self.seen = 0

    def run(self, mark: Any, testing: Any) -> None:
        lists = mark.benchmarks
        for one in lists if isinstance(lists, (list, tuple)) else [lists]:
            shard, self.seen = self.seen, self.seen + 1
            if self.given.shard is not None and shard != self.given.shard:
                continue
            for value in self.given.sizes or spread(one.x_vals, self.given.points):
                for line in one.line_vals:
                    if "triton" not in str(line) and not self.given.library:
                        continue
                    self.point(mark, testing, one, value, line)

    def point(self, mark: Any, testing: Any, one: Any, value: Any, line: Any) -> None:
        values = value if isinstance(value, (list, tuple)) else [value] * len(one.x_names)
        arguments = {**dict(zip(one.x_names, values)), one.line_arg: line, **one.args}
        own = testing.do_bench
        testing.do_bench = call_once if self.given.warm_only else do_bench
        try:
            found = mark.fn(**arguments)
        finally:
            testing.do_bench = own
        found = found[0] if isinstance(found, (list, tuple)) else found
        speed = 1 / found if "runtime" in one.ylabel else found
        self.rows.append({"list": one.plot_name, "at": str(value), "line": line, "speed": speed})


def matmuls(names: dict[str, Any], given: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """The last tutorial's, at the sizes and types of its benchmark."""
    import torch

    timed = call_once if given.warm_only else do_bench
    for k in (512, 4096):
        a = torch.randn((8192, k), device="cuda", dtype=torch.float16)
        b = torch.randn((8192, k), device="cuda", dtype=torch.float16)
        calls = {
            "naive": lambda: names["matmul"](a, b.T),
            "persistent": lambda: names["matmul_persistent"](a, b.T),
            "tma": lambda: names["matmul_tma"](a, b, False),
            "tma_persistent": lambda: names["matmul_tma_persistent"](a, b, False),
            "descriptor_persistent": lambda: names["matmul_descriptor_persistent"](a, b, False),
            "descriptor_persistent_ws": lambda: names["matmul_descriptor_persistent"](a, b, True),
        }
        for line, call in calls.items():
            rows.append({"list": "8192x8192", "at": str(k), "line": line, "speed": 1 / timed(call)})


def run_one(path: pathlib.Path, compiler: str, given: argparse.Namespace) -> None:
    if compiler == "tessera":
        from tessera.compat import triton as compat

        compat.install()
    import torch
    import triton
    import triton.testing as testing

    # Whether results are right upstream_suite.py asks; here Triton's own layer norm would end at its
    # assert with torch 2.11.
    torch.allclose = lambda *args, **kwargs: True
    rows: list[dict[str, Any]] = []
    measured = Measured(given, rows)
    testing.Mark.run = lambda mark, *args, **kwargs: measured.run(mark, testing)
    sys.argv[:] = [str(path)]
    sys.path.insert(1, str(path.parent))
    if compiler == "triton":  # its autotuner looks the function up when it first needs it
        chosen_by = call_once if given.warm_only else testing.do_bench
        triton.runtime.driver.active.get_benchmarker = lambda: chosen_by
    try:
        last = path.name.startswith("09")
        names = runpy.run_path(str(path), run_name="tutorial" if last else "__main__")
        if last:
            matmuls(names, given, rows)
    finally:
        print("ROWS " + json.dumps(rows), flush=True)


def start(path: pathlib.Path, compiler: str, given: argparse.Namespace, *more: str) -> Any:
    command = [sys.executable, __file__, str(given.folder), "--one", str(path), compiler]
    command += ["--points", str(given.points), *more]
    command += ["--library"] * given.library
    command += ["--sizes", *map(str, given.sizes)] if given.sizes else []
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    before = time.monotonic()
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=given.limit
        )
        output, error, status = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        output, error, status = (late.stdout or b"").decode(), "took too long", 1
    rows = [json.loads(line[5:]) for line in output.splitlines() if line.startswith("ROWS ")]
    return {
        "rows": rows[-1] if rows else [],
        "error": error.strip()[-1500:] if status else "",
        "seconds": round(time.monotonic() - before, 1),
    }


def compare_with_library(rows: list[dict[str, Any]], who: str) -> None:
    """Prints the speed of each line beside that of a library's in the same process."""
    ours = [row for row in rows if "triton" in row["line"]]
    for library in (row for row in rows if "triton" not in row["line"]):
        for row in ours:
            if (row["list"], row["at"]) == (library["list"], library["at"]):
                ratio = row["speed"] / library["speed"]
                print(
                    f"  {ratio:6.3f} of {library['line']}: {who}, {row['list']} {row['at']}"
                    f" {row['line']}",
                    flush=True,
                )


def compare(name: str, found: dict[str, Any]) -> None:
    """Prints a tutorial's ratios."""
    key = lambda row: (row["list"], row["at"], row["line"])  # noqa: E731
    for who, run in found.items():
        compare_with_library(run["rows"], who)
    theirs = (
        {key(row): row["speed"] for row in found["triton"]["rows"]} if "triton" in found else {}
    )
    ratios = []
    for row in found["tessera"]["rows"]:
        if key(row) in theirs:
            ratio = row["speed"] / theirs[key(row)]
            ratios.append(ratio)
            print(f"  {ratio:6.3f}  {' '.join(key(row))}  {row['speed']:.5g}", flush=True)
    took = ", ".join(f"{who} {run['seconds']} s" for who, run in found.items())
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{name}: {mean:.3f} of {len(ratios)}, worst {min(ratios):.3f} ({took})", flush=True)
    for who, run in found.items():
        if run["error"]:
            print(f"{name}: {who} failed: {run['error'][-300:]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=list(BENCHMARKS))
    parser.add_argument("--points", type=int, default=4, help="sizes of each list")
    parser.add_argument("--sizes", nargs="*", type=int, help="instead of those of the lists")
    parser.add_argument("--library", action="store_true", help="the libraries' lines, too")
    parser.add_argument("--compilers", nargs="*", default=["triton", "tessera"])
    parser.add_argument("--limit", type=float, default=300, help="seconds of one process")
    parser.add_argument("--warm", type=int, help="fill Triton's cache first, by so many processes")
    parser.add_argument("--warm-only", action="store_true", help="(of a process of its own)")
    parser.add_argument("--shard", type=int, help="(of a process of its own)")
    parser.add_argument("--one", nargs=2, help="(of a process of its own)")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    if given.one:
        run_one(pathlib.Path(given.one[0]), given.one[1], given)
        return
    folder = given.folder / "python" / "tutorials"
    paths = {name: next(folder.glob(f"{name}-*.py")) for name in given.only}
    if given.warm:
        before = time.monotonic()
        with ThreadPoolExecutor(given.warm) as pool:
            for name in sorted(given.only, key=lambda name: -BENCHMARKS[name]):
                for shard in range(BENCHMARKS[name]):
                    more = ("--warm-only", "--shard", str(shard))
                    pool.submit(start, paths[name], "triton", given, *more)
        print(f"warm after {time.monotonic() - before:.0f} s", flush=True)
    import torch

    results: dict[str, Any] = {"machine": torch.cuda.get_device_name(), "tutorials": {}}
    for name, path in paths.items():
        found = {compiler: start(path, compiler, given) for compiler in given.compilers}
        results["tutorials"][path.stem] = found
        compare(path.stem, found)
        if given.json:
            given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
