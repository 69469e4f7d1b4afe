# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of benchmarks: its tables as the raw figures give them today, and charts of them."""

from __future__ import annotations

import re
import sys

import gallery
import markdown

ROOT = markdown.ROOT
sys.path.insert(0, str(ROOT / "python" / "benchmarks"))

import record  # noqa: E402


def page() -> str:
    """docs/Benchmarks.md with charts above its tables."""
    text: str = record.with_tables((ROOT / "docs/Benchmarks.md").read_text())
    for part, chart in charts().items():
        marker = f"<!-- {part} -->\n"
        if marker in text:
            text = text.replace(marker, f"{gallery.html(chart)}\n\n{marker}", 1)
    # A number is no place to break a line.
    return re.sub(r"(?<=\| )(\d\.\d)e-(\d\d)(?= \|)", "\\1e\u2011\\2", text)


def charts() -> dict[str, str]:
    """A chart for each table that compares speeds."""
    cpu = [row for row in gallery.raw("cpu")["rows"] if row["best_other"]]
    gpu = gallery.raw("gpu")["rows"]
    matmuls = gallery.raw("gpu_matmul")["rows"]
    return {
        "cpu": gallery.cpu_chart("On a CPU, relative to the best other", cpu, 4.0),
        "gpu": gallery.gpu_chart("On a GPU, bound by memory", "GB/s", gpu),
        "gpu_matmul": gallery.gpu_chart("Matmul and attention on a GPU", "TFLOP/s", matmuls),
    }
