# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first page of the site: what Tessera is, how to get it, where to go, and how fast it is.

Its texts and commands are README's, and its figures those of docs/benchmarks, so it cannot say
anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import charts
import gallery
import markdown
import pictures
import speed_summary

ROOT = markdown.ROOT

CARDS = [
    (
        "Write a kernel", "docs/Tutorial/README", "Matmul",
        "From vector addition to tuned attention, each step run and measured.",
    ),
    (
        "Speed up a PyTorch model", "docs/HowTo/TorchCompile", "Speed",
        "One line compiles a model of torch, for inference and training.",
    ),
    (
        "See what becomes of it", "docs/Gallery/index", "Stages",
        "Kernels with every stage from Python to machine code, and their speed.",
    ),
]  # fmt: skip


def page() -> str:
    """The page without its chapters, as Markdown."""
    readme = (ROOT / "README.md").read_text()
    parts = readme.split("\n\n")
    install = readme.split("\n## Install\n")[1].split("\n## ")[0]
    lines = ["---", "hide-toc: true", "---", "", parts[0], ""]
    lines += [":::{div} lead", parts[1], ":::", ""]
    lines += [blocks(readme, "python")[0], "", *tabs(install), *cards()]
    lines += ["## How fast it is", ""]
    for chart in speed_charts():
        lines += [gallery.html(chart), ""]
    lines += [
        "The kernels are plain ones, of pointers, masks and loops. All rows, with those that lose: "
        "[Overview](README.md#how-fast-it-is) and [Benchmarks](docs/Benchmarks.md).",
        "",
    ]
    return "\n".join(lines)


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a language, with their fences."""
    return re.findall(rf"^```{language}\n.*?^```$", text, re.MULTILINE | re.DOTALL)


def tabs(install: str) -> Iterator[str]:
    """How to install, a tab for each way; README's section has a block for each of the first two."""
    wheel, checkout = blocks(install, "bash")[:2]
    ways = [
        ("A wheel", wheel, "It needs neither LLVM nor a compiler where it is installed."),
        ("The checkout", checkout, "To work on the compiler, or to try it first."),
        (
            "For a GPU",
            "```bash\npip install nvidia-cuda-nvcc\n```",
            "NVIDIA's driver, and `ptxas` from this package or from a CUDA toolkit, beside either.",
        ),
    ]
    yield "::::{tab-set}"
    for title, block, says in ways:
        yield from (f":::{{tab-item}} {title}", "", says, "", block, "", ":::")
    yield from ("::::", "", "What it needs: [Overview](README.md#install).", "")


def cards() -> Iterator[str]:
    """Where to go from here."""
    yield from ("::::{grid} 1 1 3 3", ":gutter: 3", "")
    for title, target, picture, text in CARDS:
        yield from (f":::{{grid-item-card}} {title}", f":link: {target}", ":link-type: doc", "")
        yield from (gallery.html(pictures.picture(picture)), "", text, ":::", "")
    yield from ("::::", "")


def speed_charts() -> Iterator[str]:
    """README's chart, in the colours of the page; its captions name machines and dates."""
    gpu = speed_summary.load(ROOT, "gpu_matmul")["environment"]
    cpu = speed_summary.load(ROOT, "cpu")["environment"]
    name = speed_summary.CPUS.get(cpu["cpu"], cpu["cpu"])
    for others, where, date, bars in (
        ("cuBLAS and cuDNN", speed_summary.gpus(ROOT), gpu["date"], speed_summary.matmul_bars(ROOT)),
        ("the faster of NumPy and torch", f"{name}, {cpu['threads']} threads", cpu["date"],
         speed_summary.cpu_bars(ROOT)),
    ):  # fmt: skip
        title = f"Speed relative to {others}, the line: {where}, {date[:10]}"
        yield charts.bars(title, groups(bars, f"Triton {gpu['triton']}"), 1.0)


def groups(bars: Sequence[speed_summary.Bar], triton: str) -> list[charts.Group]:
    """The rows of a panel of README's chart."""
    return [
        charts.Group(
            bar.work,
            [charts.Bar("Tessera", bar.ours)]
            + ([charts.Bar(triton, bar.triton)] if bar.triton else []),
        )
        for bar in bars
    ]
