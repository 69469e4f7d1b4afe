# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures everything on docs/Benchmarks.md and writes the page's tables.

Each part runs as a program of its own and leaves its raw figures in docs/benchmarks/; the
tables between the markers of the page are made from these files. Usage:

    record.py [--parts demo compile_time build cpu cpu_one_thread] [--tables]

`build` clones the repository, with what is committed, and builds it from nothing with the
compiler cache off, which takes minutes; `cpu` and `cpu_one_thread` need torch. `--tables` measures nothing. The
figures of a GPU are measured where one is, by python/benchmarks/gpu.py --json: put them in
docs/benchmarks/gpu.json, those of gpu_matmul.py in gpu_matmul.json (of its rows of attention in
attention.json), the lines of tuning.py as `rows` in tuning.json, and what tutorials.py writes in
tutorials.json and tutorials_attention.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2] / "tools/dev"))

import promises  # noqa: E402
import report  # noqa: E402
import speed_summary  # noqa: E402
from promises import judged  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "Benchmarks.md"
RAW = ROOT / "docs" / "benchmarks"


def load(part: str) -> Any:
    path = RAW / f"{part}.json"
    return json.loads(path.read_text()) if path.exists() else None


def save(part: str, figures: Any) -> None:
    RAW.mkdir(exist_ok=True)
    (RAW / f"{part}.json").write_text(json.dumps(figures, indent=1) + "\n")


def run(script: str, part: str, *arguments: str, **settings: str) -> None:
    """One of our own programs, in a process of its own with these environment variables; a
    failure of it is ours."""
    output = RAW / f"{part}.json"
    RAW.mkdir(exist_ok=True)
    command = [sys.executable, str(ROOT / script), *arguments, "--json", str(output)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **settings}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def measure_demo() -> None:
    run("python/examples/demo.py", "demo")
    rows = load("demo")
    save("demo", {"benchmark": "demo", "environment": report.environment(), "rows": rows})


def measure_compile_time() -> None:
    run("python/benchmarks/compile_time.py", "compile_time")


def measure_cpu() -> None:
    run("python/benchmarks/cpu.py", "cpu")


def measure_cpu_one_thread() -> None:
    one = {"TESSERA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run("python/benchmarks/cpu.py", "cpu_one_thread", "--seconds", "1", **one)


def measure_build() -> None:
    """The release build that tools/demo makes, and its library."""
    with tempfile.TemporaryDirectory() as scratch:
        clone = os.path.join(scratch, "tessera")
        subprocess.run(["git", "clone", "-q", str(ROOT), clone], check=True)
        # The virtual environment in use has all that a build asks of Python.
        environment = {**os.environ, "CCACHE_DISABLE": "1", "TESSERA_VENV": sys.prefix}
        start = time.monotonic()
        subprocess.run(
            ["bash", "-c", "source tools/dev/setup.sh; build release tessera_python"],
            cwd=clone, env=environment, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        seconds = time.monotonic() - start
        library = os.path.join(clone, "build", "release", "lib", "libtessera.so")
        stripped = os.path.join(scratch, "libtessera.so")
        strip = shutil.which("llvm-strip-22") or shutil.which("llvm-strip") or "strip"
        subprocess.run([strip, "--strip-all", "-o", stripped, library], check=True)
        compressed = subprocess.run(["xz", "-T0", "-kc", stripped], capture_output=True)
        figures: dict[str, Any] = {
            "benchmark": "build",
            "environment": report.environment(),
            "seconds": seconds,
            "library_bytes": os.path.getsize(stripped),
            "needed": needed(stripped),
        }
        if compressed.returncode == 0:
            figures["library_xz_bytes"] = len(compressed.stdout)
        save("build", figures)


def needed(library: str) -> list[str]:
    """The shared libraries that a library asks the system for."""
    readelf = shutil.which("llvm-readelf-22") or "readelf"
    text = subprocess.run([readelf, "-d", library], capture_output=True, text=True).stdout
    return re.findall(r"NEEDED.*\[(.+)\]", text)


def machine(figures: Any) -> str:
    environment = figures["environment"]
    return "Measured: " + ", ".join(f"{key} {value}" for key, value in environment.items()) + "."


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def demo_table(figures: Any) -> list[str]:
    rows = [
        [
            row["kernel"], row["shape"], row["dtype"], f"{row['ms']:.3f}", row["reference"],
            f"{row['reference_ms']:.3f}", f"{row['ratio']:.2f}", f"{row['error']:.1e}",
            "yes" if row["agrees"] else "NO",
        ]
        for row in figures["rows"]
    ]  # fmt: skip
    heads = ["kernel", "shape", "dtype", "ms", "reference", "its ms", "ratio", "error", "agrees"]
    return table(heads, rows)


def compile_time_table(figures: Any) -> list[str]:
    stages = list(figures["rows"][0]["stages"])
    rows = [
        [row["kernel"], f"{row['ms']:.1f}", *(f"{row['stages'][stage]:.1f}" for stage in stages)]
        for row in figures["rows"]
    ]
    total = {row["kernel"]: row["ms"] for row in figures["rows"]}
    ratio = total["vector add, tile of 16384"] / total["vector add, tile of 256"]
    slowest = max(ms for kernel, ms in total.items())
    foreign = figures["import_loads_numpy_or_torch"]
    return table(["kernel", "ms", *stages], rows) + [
        "",
        *table(
            ["figure", "measured", "promised"],
            [
                ["slowest cold compile", f"{slowest:.0f} ms", "≤ 60 ms"],
                ["a tile of 16384 against one of 256", f"{ratio:.2f}×", "≤ 2×"],
                ["`import tessera`", f"{figures['import_ms']:.0f} ms", "≤ 100 ms"],
                ["it loads NumPy or torch", "yes" if foreign else "no", "no"],
                ["first compile of a process", f"{figures['first_ms']:.0f} ms", ""],
            ],
        ),
    ]


def build_table(figures: Any) -> list[str]:
    rows = [
        ["release build from nothing, no cache", f"{figures['seconds']:.0f} s", "≤ 900 s"],
        ["libtessera.so, stripped", f"{figures['library_bytes'] / 1e6:.1f} MB", "≤ 70 MB"],
        ["it needs", ", ".join(figures["needed"]), "libc, libm, libstdc++, zlib, zstd"],
    ]
    if "library_xz_bytes" in figures:
        rows.insert(2, ["the same as xz", f"{figures['library_xz_bytes'] / 1e6:.1f} MB", ""])
    return table(["figure", "measured", "promised"], rows)


def cpu_table(figures: Any) -> list[str]:
    second = load(speed_summary.SECOND_CPU)
    there = {row["work"]: row["ratio"] for row in second["rows"]}
    name = speed_summary.CPUS[second["environment"]["cpu"]]
    rows = []
    for row in figures["rows"]:
        mine, best = next(iter(row["ms"].values())), row["best_other"]
        at_least, aim, ratio = row["at_least"], row["aim"], ""
        if best:
            ratio = judged(row["ratio"], at_least, aim)
        if row.get("aim_of_copy"):
            ratio += f", {judged(row['of_copy'], None, row['aim_of_copy'])} of copy"
            aim = f"{row['aim_of_copy']} of copy"
        if row.get("limit_ms"):
            at_least, aim = f"≤ {row['limit_ms']} ms", f"≤ {row['aim_ms']} ms"
        cells = [best or "", f"{row['ms'][best]:.4f}" if best else "", ratio]
        ratio_there = there.get(row["work"])
        cells.append(speed_summary.emphasised(ratio_there) if ratio_there else "")
        rows.append([row["work"], f"{mine:.4f}", *cells, str(at_least or ""), str(aim or "")])
    heads = ["work", "ms", "best other", "its ms", "ratio", f"on {name}", "at least", "aim"]
    return [*table(heads, rows), "", f"On {name}: {machine(second)}"]


def one_thread_table(figures: Any) -> list[str]:
    """One thread beside the best other on one thread, and beside our own two or more."""
    every = {row["work"]: next(iter(row["ms"].values())) for row in load("cpu")["rows"]}
    rows = []
    for row in figures["rows"]:
        mine = next(iter(row["ms"].values()))
        ratio = f"{row['ratio']:.2f}" if row["ratio"] else ""
        scaling = f"{mine / every[row['work']]:.2f}" if row["work"] in every else ""
        rows.append([row["work"], f"{mine:.4f}", row["best_other"] or "", ratio, scaling])
    return table(["work", "ms", "best other", "ratio", "times by all threads"], rows)


def compile_lines(figures: Any) -> list[str]:
    rows = []
    for kernel, row in figures.items():
        of_triton, most = promises.COMPILE[kernel]
        ratio, alone = row["ratio"], row["without_ptxas_ms"]
        rows.append(
            [
                kernel, f"{row['tessera_ms']:.1f}", f"{alone:.1f}", f"{row['triton_ms']:.1f}",
                f"{ratio:.2f}" if ratio <= of_triton else f"**{ratio:.2f}**",
                f"≤ {of_triton} of Triton, ≤ {most:.0f} ms without ptxas",
            ]
        )  # fmt: skip
    heads = ["cold compile", "ms", "without ptxas", "Triton", "of Triton", "promised"]
    return table(heads, rows)


def gpu_rows_table(figures: Any) -> list[str]:
    """Rows of kernels that memory bounds, with Triton's, nvcc's and torch's times."""

    def time_of(row: Any, who: str) -> str:
        return f"{row[who]['ms'] * 1000:.1f}" if who in row else ""

    copy = max(figures["copy_before"]["GB/s"], figures["copy_after"]["GB/s"])
    rows = []
    for row in figures["rows"]:
        mine = row["tessera"]
        promise = promises.of(promises.GPU, row["work"])
        best = next((other for other in ("triton", "nvcc") if other in row), None)
        ratio = ""
        if best:
            spread = promises.spread(mine, row[best])
            ratio = judged(row[best]["ms"] / mine["ms"], promise.at_least, spread=spread)
        of_copy = judged(mine["GB/s"] / copy, promise.of_copy, promise.aim_of_copy)
        of_torch = ""
        if "torch" in row:
            spread = promises.spread(mine, row["torch"])
            of_torch = judged(row["torch"]["ms"] / mine["ms"], promise.of_library, spread=spread)
        times = [time_of(row, who) for who in ("tessera", "triton", "nvcc", "torch")]
        rows.append([row["work"], *times, f"{mine['GB/s']:.0f}", ratio, of_copy, of_torch])
    heads = ["work", "µs", "Triton", "nvcc", "torch", "GB/s", "ratio", "of copy", "of torch"]
    return [*table(heads, rows), "", f"A copy of the same memory: {copy:.0f} GB/s."]


def gpu_table(figures: Any) -> list[str]:
    """These rows, then cold compiles and warm launches."""
    launch = figures["launch"]
    return [
        *gpu_rows_table(figures),
        "",
        *compile_lines(figures["compile"]),
        "",
        *(
            f"A warm launch with {count} arguments: {launch[f'tessera{suffix}_us']:.2f} µs; Triton "
            f"{launch[f'triton{suffix}_us']:.2f} µs, the driver alone {launch[f'raw{suffix}_us']:.2f} µs."
            for suffix, count in (("", 4), ("_of_20", 20))
            if f"raw{suffix}_us" in launch
        ),
    ]


def gpu_matmul_table(figures: Any) -> list[str]:
    """Speeds beside those of Triton's plain and persistent kernels, and the ratio to the better."""
    rows = []
    for row in figures["rows"]:
        results = row["results"]
        promise = promises.of(promises.MATMULS, row["work"])
        speeds = {who: result["TFLOP/s"] for who, result in results.items() if "TFLOP/s" in result}
        mine, ours = results["tessera"], speeds["tessera"]
        best = max(("triton", "descriptors"), key=lambda who: speeds.get(who, 0))
        spread = promises.spread(mine, results[best])
        of_triton = judged(ours / speeds[best], promise.at_least, spread=spread)
        others = ("triton", "descriptors", "library")
        cells = [f"{speeds[who]:.0f}" if who in speeds else "" for who in others]
        # cuBLAS takes 8-bit floats in one order alone.
        of_library = ""
        if "library" in speeds:
            of_library = judged(
                ours / speeds["library"], promise.of_library, promise.aim_of_library
            )
        facts = [str(mine.get(name, "")) for name in ("n_regs", "n_spills")]
        asked = str(promise.at_least or f"{promise.of_library} of library")
        cells += [of_triton, f"{spread:.2f}", asked, of_library]
        rows.append([row["work"], f"{ours:.0f}", *cells, *facts])
    names = ["work", "TFLOP/s", "Triton", "Triton, persistent", "library", "of Triton", "spread"]
    lines = table([*names, "at least", "of library", "registers", "spilled bytes"], rows)
    # The library's other ways to the same, of which nothing is promised.
    for row in figures["rows"]:
        speeds = {who: r["TFLOP/s"] for who, r in row["results"].items() if "TFLOP/s" in r}
        for who, speed in speeds.items():
            if who.startswith("library "):
                way = who.removeprefix("library ")
                ratio = speeds["tessera"] / speed
                lines += [
                    "",
                    f"{row['work']}: {speed:.0f} by torch's {way}, ours {ratio:.2f} of it.",
                ]
    if "compile" in figures:
        lines += ["", *compile_lines(figures["compile"])]
    return lines


def backward_table(figures: Any) -> list[str]:
    """Speeds of all kernels of attention's backward pass together, and the ratios to the others."""
    rows = []
    for row in figures["rows"]:
        results = row["results"]
        speeds = {who: result["TFLOP/s"] for who, result in results.items() if "TFLOP/s" in result}
        mine, ours = results["tessera"], speeds["tessera"]
        of_cudnn = judged(ours / speeds["library"], 0.85, 1.0)
        others = [f"{speeds[who]:.0f}" for who in ("triton", "library")]
        facts = [str(mine["n_regs"]), str(mine["n_spills"])]
        ratios = [f"{ours / speeds['triton']:.2f}", of_cudnn]
        rows.append([row["work"], f"{ours:.0f}", *others, *ratios, *facts])
    names = ["work", "TFLOP/s", "Triton", "cuDNN", "of Triton", "of cuDNN"]
    return table([*names, "registers", "spilled bytes"], rows)


def tuning_table(figures: Any) -> list[str]:
    """Seconds of a first launch, and what a warm one costs."""
    found = {(row["compiler"], row["what"], row.get("kernel")): row for row in figures["rows"]}
    rows = []
    for kernel, promise in (("attention", 0.35), ("matmul", 0.35)):
        ours, theirs = (found[who, "wall", kernel]["seconds"] for who in ("tessera", "triton"))
        rows.append([
            f"tuning {kernel}, nothing cached", f"{ours:.2f} s", f"{theirs:.2f} s",
            f"{ours / theirs:.3f}", f"≤ {promise}",
        ])  # fmt: skip
    for kind in ("plain", "tuned"):
        ours, theirs = (
            found[who, "launch", None][f"{kind}_median_ns"] for who in ("tessera", "triton")
        )
        rows.append([
            f"warm launch, {kind}", f"{ours / 1000:.2f} µs", f"{theirs / 1000:.2f} µs",
            f"{ours / theirs:.3f}", "tuned at most 0.3 µs more than plain" * (kind == "tuned"),
        ])  # fmt: skip
    losses = found["tessera", "choice", None]["losses_percent"]
    rows.append([
        "what 20 tunings chose, slower than the best by", f"at most {max(losses):.1f} %", "", "", "≤ 2 %",
    ])  # fmt: skip
    return table(["", "Tessera", "Triton", "ratio", "promised"], rows)


def tutorials_table(figures: Any) -> list[str]:
    """Triton's time over ours at each point, a row for each line of a tutorial's plots."""
    rows = []
    for name, found in figures["tutorials"].items():
        theirs = {(r["list"], r["at"], r["line"]): r["speed"] for r in found["triton"]["rows"]}
        lines: dict[Any, list[tuple[str, float]]] = {}
        for row in found["tessera"]["rows"]:
            key = row["list"], row["at"], row["line"]
            if key in theirs:
                ratio = row["speed"] / theirs[key]
                lines.setdefault((row["list"], row["line"]), []).append((row["at"], ratio))
        for (which, line), points in lines.items():
            mean = math.exp(sum(math.log(ratio) for _, ratio in points) / len(points))
            said = ", ".join(f"{at}: {judged(ratio, 1.0)}" for at, ratio in points)
            rows.append([name, f"{which}, {line}", said, f"{mean:.3f}"])
    return table(["tutorial", "plot and line", "speed of Triton's at each size", "mean"], rows)


PARTS: dict[str, tuple[Callable[[], None], Callable[[Any], list[str]]]] = {
    "demo": (measure_demo, demo_table),
    "compile_time": (measure_compile_time, compile_time_table),
    "build": (measure_build, build_table),
    "cpu": (measure_cpu, cpu_table),
    "cpu_one_thread": (measure_cpu_one_thread, one_thread_table),
}


TABLES = {
    **{part: make for part, (_, make) in PARTS.items()},
    "gpu": gpu_table,
    "gpu_table_h200": gpu_rows_table,
    "gpu_matmul": gpu_matmul_table,
    "attention": gpu_matmul_table,
    "attention_backward": backward_table,
    "tuning": tuning_table,
    "tutorials": tutorials_table,
    "tutorials_attention": tutorials_table,
}


def with_tables(text: str) -> str:
    """The page with the tables that the raw figures give."""
    for part, make in TABLES.items():
        figures = load(part)
        if figures is None:
            continue
        body = "\n".join([*make(figures), "", machine(figures)])
        text = re.sub(
            rf"(<!-- {part} -->\n).*?(<!-- end -->)",
            lambda match: match[1] + body + "\n" + match[2],
            text,
            flags=re.DOTALL,
        )
    return text


def write_tables() -> None:
    PAGE.write_text(with_tables(PAGE.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=["demo", "compile_time"])
    parser.add_argument("--tables", action="store_true", help="only write the page again")
    arguments = parser.parse_args()
    if not arguments.tables:
        for part in arguments.parts:
            print(f"== {part}", flush=True)
            PARTS[part][0]()
    write_tables()
    return 0


if __name__ == "__main__":
    sys.exit(main())
