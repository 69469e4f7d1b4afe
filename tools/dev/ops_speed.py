# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of docs/Ops.md that say how fast operators are, made of the figures in docs/benchmarks.

A row below 0.9 of torch has a cause: the first of `_ROWS` that its machine, family, name and pass fit.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

_FOLDER = Path(__file__).parents[2] / "docs/benchmarks"
_SLOW = 0.9


class _Figures(NamedTuple):
    """A file with figures of one machine and one size."""

    key: str
    title: str
    file: str
    columns: int
    is_of_gpu: bool = False
    """True for the GPU's own time, if all of a row have it."""
    rivals: tuple[str, ...] = ("torch",)
    """Ratios are to the fastest of these."""

    def rows(self) -> list[dict[str, Any]]:
        found = json.loads((_FOLDER / self.file).read_text())["rows"]
        return [row for row in found if row["columns"] == self.columns]

    def ratio(self, row: dict[str, Any]) -> float:
        """The time of the fastest rival by ours."""
        is_of_gpu = self.is_of_gpu and "gpu" in row and not row.get("waits")
        times = row["gpu"] if is_of_gpu else row
        return float(min(times[each] for each in self.rivals if each in times) / times["tessera"])


_BOTH = ("torch", "compiled")
_FILES = (
    _Figures("small", "CPU, 64 x 256", "ops_cpu_small.json", 256),
    _Figures("large", "CPU, 4096 x 1024", "ops_cpu.json", 1024),
    _Figures("h200", "H200, the GPU's time", "ops_h200.json", 4096, True, _BOTH),
    _Figures("calls", "H200, calls", "ops_h200.json", 4096),
)
_EAGER = _Figures("eager", "H200, the GPU's time, of eager", "ops_h200.json", 4096, True)

_FAMILIES = {
    "activations": "activations",
    "gated": "gated activations",
    "elementwise": "elementwise, dropout",
    "softmax": "softmax",
    "losses": "losses",
    "norms": "norms",
    "reductions": "reductions",
    "scans": "scans",
    "sorting": "sorting",
    "indices": "indices",
    "rotary": "rotary embeddings",
    "padding": "padding and joining",
    "sparse": "sparse products",
    "optimisers": "steps of optimisers",
    "counts": "counts",
    "dropouts": "dropouts of channels",
    "sampling": "sampling",
}


class _Cause(NamedTuple):
    """Why rows are slow, and which mechanism would mend them."""

    why: str
    missing: str


_CAUSES = {
    "call": _Cause(
        "calls of 2 to 11 µs: the key of the arguments, a launch and its result take 1.5 to 2 of these, and each "
        "further step of a recorded call 1 to 2",
        "steps of a recorded call in one launch",
    ),
    "node": _Cause(
        "of 2 x 8 elements, the gradient of a recorded call takes 1.5 to 3 µs more than that of a node of torch, which "
        "takes 16 to 18 µs with `torch.autograd.grad`",
        "a node of C++ for recorded calls",
    ),
    "norms": _Cause(
        "a launch for the gradient of the input, one for those of weights, and sums of their parts; both read all "
        "elements",
        "sums for weights in the launch of the other gradient",
    ),
    "scan": _Cause(
        "two scans of four steps for each vector of 16 elements, and places of 8 bytes",
        "scans across rows of a tile, where a step is one instruction",
    ),
    "scatter": _Cause(
        "indices, values and addresses go through memory before each addition",
        "scatters that keep these in registers",
    ),
    "gather": _Cause(
        "a gather of 16 lanes is slower than 16 loads on Zen 4", "a choice by the CPU's figures"
    ),
    "erf": _Cause(
        "the error function takes 65 instructions a vector, of which 20 only move numbers or broadcast "
        "constants (read in the assembly)",
        "constants of polynomials that stay in memory, and fewer moves",
    ),
    "memory": _Cause(
        "arrays of 16 MiB, most of whose time is that of new pages and of memory; between runs of that day it differed, "
        "for torch as well: `cat 1` took 2.8 and 20 ms, and torch's 3.5 and 18",
        "",
    ),
    "codes": _Cause(
        "roots and powers for each element, and the checks of the row above",
        "codes by a table in registers",
    ),
    "reads": _Cause(
        "the call reads the largest integer, by a reduction, before it can count; torch has two loops in one call",
        "a call that makes its result after a launch, without Python",
    ),
    "lines": _Cause(
        "each row is a program with a reduction across lanes",
        "several rows at a time",
    ),
    "sampled": _Cause(
        "each element is a dot of 64 terms with a sum across lanes, of 16 elements at a time",
        "several rows at a time",
    ),
    "edges": _Cause(
        "rows that are shifted by a few elements: loads are of 4 bytes on a GPU, and lines end in masked vectors",
        "a tile of its own for the inside, aligned to the result",
    ),
    "product": _Cause(
        "NumPy's or torch's product, and small launches around it; the gradient is computed with the loss",
        "a product with this epilogue",
    ),
    "passes": _Cause(
        "all elements are read twice, for the moments and for the norm, as torch.compile reads them; in the run before "
        "we took 62.2 µs, and it 59.4",
        "a second pass that begins with what the cache still holds",
    ),
    "views": _Cause(
        "the gradient is a view, so the GPU does nothing: the times are those of calls. In a run of the same day a "
        "`torch.autograd.Function` that does nothing took 72 to 75 µs, ours 69 to 73, and torch's own node 66 to 67",
        "a node without Python's interpreter, which torch's C++ interface alone makes",
    ),
    "gpu call": _Cause(
        "calls of 47 to 282 µs, all but one of them gradients: beyond the GPU's own time they take 53 µs (median of the 19 "
        "that have one), and torch's 30",
        "fewer launches and checks for a node",
    ),
}  # fmt: skip

_ROWS = (
    # The first that fits decides.
    ("small large", "optimisers/.*8bit.*", "codes"),
    ("small large", "counts/(bincount|unique_consecutive) .*", "reads"),
    ("small large", "scans/cummax.* forward", "scan"),
    ("small large", "norms/.* backward", "norms"),
    ("large", "activations/gelu .*", "erf"),
    ("small large", "indices/gather forward", "gather"),
    ("small large", "(indices|sorting)/.* backward", "scatter"),
    ("large", "reductions/(sum|amax|argmax|vector_norm).* forward", "lines"),
    ("small large", "sparse/sddmm .*", "sampled"),
    ("small large", "losses/linear_cross_entropy .*", "product"),
    ("small large", "padding/pad .*", "edges"),
    ("small", ".* forward", "call"),
    ("small", ".* backward", "node"),
    ("large", "losses/nll_loss backward|optimisers/.*", "memory"),
    ("large", "activations.* backward|padding/(cat|transpose).* backward|reductions/sum.* backward", "node"),
    ("large", ".* forward", "memory"),
    ("h200", "norms/.* forward", "passes"),
    ("h200", "(padding/(cat|transpose)|reductions/sum).* backward", "views"),
    ("calls", ".*", "gpu call"),
)  # fmt: skip
"""The keys of files, a pattern of "family/name pass", and the cause."""


def cause_of(key: str, row: dict[str, Any]) -> str:
    """The key of the cause of a row that is slow; empty if none is known."""
    text = f"{row['family']}/{row['name']} {row['pass']}"
    for keys, pattern, cause in _ROWS:
        if key in keys.split() and re.fullmatch(pattern, text):
            return cause
    return ""


def _families() -> list[str]:
    means: dict[str, dict[str, str]] = defaultdict(dict)
    columns = (*_FILES[:2], _EAGER, *_FILES[2:])
    for figures in columns:
        ratios: dict[str, list[float]] = defaultdict(list)
        for row in figures.rows():
            ratios[row["family"]].append(math.log(figures.ratio(row)))
        for family, each in ratios.items():
            mean = f"{math.exp(statistics.fmean(each)):.2f}"
            means[family][figures.key] = f"**{mean}**" if float(mean) < 1 else mean
    lines = [f"| family | {' | '.join(each.title for each in columns)} |", "|---" * 6 + "|"]
    for family, title in _FAMILIES.items():
        cells = [means[family].get(each.key, "") for each in columns]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def _slow_rows(figures: _Figures) -> list[str]:
    by_cause: dict[str, list[str]] = defaultdict(list)
    rows = figures.rows()
    for row in sorted(rows, key=figures.ratio):
        if figures.ratio(row) < _SLOW:
            name = f"`{row['name']}`" + (" backward" if row["pass"] == "backward" else "")
            by_cause[cause_of(figures.key, row)].append(f"{name} {figures.ratio(row):.2f}")
    count = sum(map(len, by_cause.values()))
    lines = [
        f"{figures.title}: {count} of {len(rows)} rows are below {_SLOW}.",
        "",
        "| rows, of torch | cause | what is missing |",
        "|---|---|---|",
    ]
    for key, cause in (*_CAUSES.items(), ("", _Cause("not found", ""))):
        if key in by_cause:
            lines.append(f"| {', '.join(by_cause[key])} | {cause.why} | {cause.missing} |")
    return [*lines, ""]


def renewed(page: str) -> str:
    """The page with tables of the figures."""
    for name, lines in (
        ("families", _families()),
        ("slow rows", [line for figures in _FILES for line in _slow_rows(figures)]),
    ):
        head, mark, rest = page.partition(f"<!-- {name} -->\n")
        tail = rest.partition(f"<!-- end of {name} -->")[2]
        page = head + mark + "\n".join([*lines, f"<!-- end of {name} -->"]) + tail
    return page
