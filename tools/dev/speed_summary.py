# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of docs/benchmarks in README.md: a chart as SVG, and a table.

The rows are chosen here, and include those where Tessera loses; the figures come from the raw files
only. The chart's colours have a middle brightness, so that it is readable on a white page and on a
dark one.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any, NamedTuple, Optional
from xml.sax.saxutils import escape

GPU_MATMULS = {
    "matmul bf16 8192x8192x8192": "matmul bf16, 8192 × 8192 × 8192",
    "matmul bf16 4096x4096x4096": "matmul bf16, 4096 × 4096 × 4096",
    "matmul bf16 1024x1024x1024": "matmul bf16, 1024 × 1024 × 1024",
    "matmul bf16 128x8192x8192": "matmul bf16, 128 × 8192 × 8192",
    "matmul tf32 4096x4096x4096": "matmul tf32, 4096 × 4096 × 4096",
    "attention bf16 d64 T16384 full": "attention bf16, head 64, 16,384 tokens",
    "attention bf16 d128 T2048 full": "attention bf16, head 128, 2,048 tokens",
    "attention bf16 d128 T16384 causal": "attention bf16, head 128, 16,384, causal",
}
CPU_CHART = {
    "vector add f32 2^24": "vector addition f32, 2²⁴",
    "softmax f32 4096^2": "softmax f32, 4096 × 4096",
    "sum over rows f32 4096^2": "sum over rows f32, 4096 × 4096",
    "matmul f32 1024^3": "matmul f32, 1024 × 1024 × 1024",
    "matmul bf16 1024^3": "matmul bf16, 1024 × 1024 × 1024",
    "attention f32 8x1024x64 full": "attention f32, 8 × 1024 × 64",
    "scatter_add of f32 2^22 to 1048576 places": "scatter-add f32, 2²² to 2²⁰ places",
}
GPU_TABLE = {
    "add f32 2^28": "vector addition f32, 2²⁸",
    "softmax bf16 16384x4096": "softmax bf16, 16384 × 4096",
    "softmax bf16 4096x32768": "softmax bf16, 4096 × 32768",
    "layer norm f32 4096x32768": "layer norm f32, 4096 × 32768",
    "layer norm backward bf16 4096x32768": "layer norm backward bf16, 4096 × 32768",
    "sum over columns f16 65536x4096": "sum over columns f16, 65536 × 4096",
    "top-8 f32 32768x4096": "top-8 of each row f32, 32768 × 4096",
    "deformable attention N=8 D=256": "deformable attention, N = 8, D = 256",
}
CPU_TABLE = {
    **CPU_CHART,
    "layer norm f32 4096^2": "layer norm f32, 4096 × 4096",
    "matmul int8 1024^3": "matmul int8, 1024 × 1024 × 1024",
    "deformable attention, encoder 800x1333, forward": "deformable attention, encoder, 800 × 1333",
}
CPUS = {
    "znver5": "AMD Zen 5",
    "znver4": "AMD Zen 4",
    "emeraldrapids": "Intel Emerald Rapids",
}  # from LLVM's names
SECOND_CPU = "cpu-znver4-2"
"""The raw figures of another CPU, with as many threads."""
NAMES = {"triton": "Triton", "nvcc": "CUDA C++", "torch": "torch", "numpy": "NumPy"}


class Bar(NamedTuple):
    """A row of the chart: what is computed, and speeds relative to a library's."""

    work: str
    ours: float
    triton: Optional[float] = None


def load(root: pathlib.Path, part: str) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((root / f"docs/benchmarks/{part}.json").read_text())
    return figures


def rows_of(figures: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["work"]: row for row in figures["rows"]}


def triton_speed(results: dict[str, Any]) -> float:
    """The better of Triton's two kernels: with pointers, and persistent with descriptors."""
    kernels = ("triton", "descriptors")
    return max(float(results[name]["TFLOP/s"]) for name in kernels if name in results)


def matmul_rows(root: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Matmuls and attention, which were measured on one GPU or on two."""
    return {**rows_of(load(root, "gpu_matmul")), **rows_of(load(root, "attention"))}


def gpus(root: pathlib.Path) -> str:
    gpu, other = (
        str(load(root, part)["environment"]["gpu"]) for part in ("gpu_matmul", "attention")
    )
    return gpu if gpu == other else f"{gpu} (attention: {other})"


def matmul_bars(root: pathlib.Path) -> list[Bar]:
    rows = matmul_rows(root)
    bars = []
    for work, text in GPU_MATMULS.items():
        results = rows[work]["results"]
        library = results["library"]["TFLOP/s"]
        ours = results["tessera"]["TFLOP/s"]
        bars.append(Bar(text, ours / library, triton_speed(results) / library))
    return bars


def cpu_bars(root: pathlib.Path) -> list[Bar]:
    rows = rows_of(load(root, "cpu"))
    return [Bar(text, rows[work]["ratio"]) for work, text in CPU_CHART.items()]


# The chart: widths and heights in pixels.
LABELS, PLOT, RIGHT, THICK, GAP = 310, 390, 40, 11, 9
BLUE, ORANGE, GREY = "#2f8fc9", "#c98a3c", "#777d86"


def chart(root: pathlib.Path) -> str:
    """The chart as the text of an SVG file."""
    gpu, cpu = load(root, "gpu_matmul")["environment"], load(root, "cpu")["environment"]
    triton = f"Triton {gpu['triton']}"
    panels = [
        (f"{gpus(root)}: speed relative to cuBLAS and cuDNN", matmul_bars(root)),
        (
            f"CPU ({CPUS.get(cpu['cpu'], cpu['cpu'])}, {cpu['threads']} threads): "
            "speed relative to the faster of NumPy and torch",
            cpu_bars(root),
        ),
    ]
    longest = 1.07 * max(max(bar.ours, bar.triton or 0) for _, bars in panels for bar in bars)
    body: list[str] = []
    y = 8
    body += legend(y, [(BLUE, "Tessera"), (ORANGE, f"{triton}, the better of two kernels")])
    y += 30
    for title, bars in panels:
        y = panel(body, y, title, bars, longest)
    width = LABELS + PLOT + RIGHT
    return "\n".join(
        [
            "<!-- Generated by tools/dev/generate_docs.py from docs/benchmarks; do not edit. -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" '
            f'height="{y}" role="img" font-family="system-ui, sans-serif" font-size="12.5" '
            f'fill="{GREY}">',
            "<title>Speed of Tessera relative to libraries</title>",
            *body,
            "</svg>",
            "",
        ]
    )


def legend(y: int, entries: list[tuple[str, str]]) -> list[str]:
    lines, x = [], LABELS
    for colour, text in entries:
        lines.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 18}" y="{y + 10}">{escape(text)}</text>')
        x += 110
    return lines


def panel(body: list[str], y: int, title: str, bars: list[Bar], longest: float) -> int:
    """Adds the rows of a panel from `y` on; gives where it ends. A bar of `longest` fills it."""
    body.append(f'<text x="0" y="{y + 12}" font-weight="bold">{escape(title)}</text>')
    y += 26
    top = y
    for bar in bars:
        values = [(BLUE, bar.ours)] + ([(ORANGE, bar.triton)] if bar.triton else [])
        height = len(values) * THICK
        body.append(
            f'<text x="{LABELS - 10}" y="{y + height / 2 + 4:g}" text-anchor="end">'
            f"{escape(bar.work)}</text>"
        )
        for colour, value in values:
            length = round(value / longest * PLOT, 1)
            body.append(
                f'<rect x="{LABELS}" y="{y}" width="{length:g}" height="{THICK - 1}" '
                f'fill="{colour}"/>'
            )
            body.append(
                f'<text x="{LABELS + PLOT + RIGHT}" y="{y + THICK - 1.5:g}" font-size="11" '
                f'text-anchor="end">{value:.2f}</text>'
            )
            y += THICK
        y += GAP
    one = round(LABELS + PLOT / longest, 1)
    body.append(
        f'<line x1="{one}" y1="{top - 4}" x2="{one}" y2="{y - 4}" stroke="{GREY}" '
        'stroke-dasharray="4 3"/>'
    )
    return y + 10


def emphasised(ratio: float) -> str:
    """A ratio, in bold if it is less than 1 by more than rounding shows."""
    return f"**{ratio:.2f}**" if round(ratio, 2) < 0.995 else f"{ratio:.2f}"


def table(root: pathlib.Path) -> list[str]:
    """The table, in Markdown: each row against the fastest of what it was measured beside."""
    lines = ["| work | Tessera | the fastest other | times as fast |", "|---|---|---|---|"]

    def row(work: str, ours: str, other: str, *ratios: float) -> None:
        times = "; ".join(emphasised(ratio) for ratio in ratios)
        lines.append(f"| {work} | {ours} | {other} | {times} |")

    gpu = load(root, "gpu")
    lines.append(f"| *{gpus(root)}* | | | |")
    matmuls = matmul_rows(root)
    for work, text in GPU_MATMULS.items():
        results = matmuls[work]["results"]
        ours, library = results["tessera"]["TFLOP/s"], results["library"]["TFLOP/s"]
        triton = triton_speed(results)
        name = "cuDNN" if work.startswith("attention") else "cuBLAS"
        best, speed = max(("Triton", triton), (name, library), key=lambda pair: pair[1])
        row(text, f"{ours:.0f} TFLOP/s", f"{best}, {speed:.0f} TFLOP/s", ours / speed)
    if (where := gpu["environment"]["gpu"]) != gpus(root):
        lines.append(f"| *{where}* | | | |")
    found = rows_of(gpu)
    for work, text in GPU_TABLE.items():
        ours_us = found[work]["tessera"]["ms"] * 1e3
        others = {name: found[work][name]["ms"] * 1e3 for name in NAMES if name in found[work]}
        best = min(others, key=lambda name: others[name])
        row(
            text, f"{ours_us:.0f} µs", f"{NAMES[best]}, {others[best]:.0f} µs",
            others[best] / ours_us,
        )  # fmt: skip
    cold, launch = gpu["compile"]["softmax 4096"], gpu["launch"]
    row(
        "cold compile of a softmax", f"{cold['tessera_ms']:.0f} ms",
        f"Triton, {cold['triton_ms']:.0f} ms", cold["triton_ms"] / cold["tessera_ms"],
    )  # fmt: skip
    row(
        "warm launch, 4 arguments", f"{launch['tessera_us']:.1f} µs",
        f"Triton, {launch['triton_us']:.1f} µs", launch["triton_us"] / launch["tessera_us"],
    )  # fmt: skip
    cpu = load(root, "cpu")
    where = cpu["environment"]
    name = CPUS.get(where["cpu"], where["cpu"])
    second = load(root, SECOND_CPU)
    other_name = CPUS[second["environment"]["cpu"]]
    lines.append(
        f"| *CPU, {name}, {where['threads']} threads* | | | *on {name}; on {other_name}* |"
    )
    found, found_second = rows_of(cpu), rows_of(second)
    for work, text in CPU_TABLE.items():
        ms, best = found[work]["ms"], found[work]["best_other"]
        row(
            text, f"{ms['tessera']:.2f} ms", f"{NAMES[best]}, {ms[best]:.2f} ms",
            ms[best] / ms["tessera"], found_second[work]["ratio"],
        )  # fmt: skip
    return lines
