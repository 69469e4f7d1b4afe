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

    def rows(self) -> list[dict[str, Any]]:
        found = json.loads((_FOLDER / self.file).read_text())["rows"]
        return [row for row in found if row["columns"] == self.columns]


_FILES = (
    _Figures("small", "CPU, 64 x 256", "ops_cpu_small.json", 256),
    _Figures("large", "CPU, 4096 x 1024", "ops_cpu.json", 1024),
    _Figures("h200", "H200, 4096 x 4096", "ops_h200.json", 4096),
)

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
        "takes 16 to 18 µs with `torch.autograd.grad`; `tanh` and `sigmoid` compute the function again, where torch "
        "saves the result",
        "a node of C++ for recorded calls; gradients by the result",
    ),
    "norms": _Cause(
        "a launch for the gradient of the input, one for those of weights, and sums of their parts; both read all "
        "elements",
        "sums for weights in the launch of the other gradient",
    ),
    "scan": _Cause(
        "two scans of four steps for each vector, of three instructions and more a step",
        "scans across rows of a tile, where a step is one instruction",
    ),
    "scatter": _Cause(
        "zeros are written first; indices, values and addresses go through memory before each addition",
        "scatters that keep these in registers",
    ),
    "gather": _Cause(
        "a gather of 16 lanes is slower than 16 loads on Zen 4", "a choice by the CPU's figures"
    ),
    "random": _Cause(
        "the random numbers are computed again, where torch reads a mask",
        "products of 32 bits with their high halves in fewer instructions",
    ),
    "lists": _Cause(
        "Python checks the arrays of each parameter at each step; torch has one call for a list",
        "one recorded launch for a list of parameters",
    ),
    "in place": _Cause(
        "mended on 30 November, and not timed again in this table: stores to arrays that are also read went past the "
        "caches. In three runs by one thread 1.50, 1.40 and 1.10 ms, and torch 1.64, 1.38 and 1.22",
        "",
    ),
    "codes": _Cause(
        "roots and powers for each element, and the checks of the row above",
        "codes by a table in registers",
    ),
    "reads": _Cause(
        "the call reads a number before it can return: a reduction, or a scan of blocks, comes first, where torch "
        "has one loop",
        "a single pass with a look back at the programs before",
    ),
    "lines": _Cause(
        "each row is a program with a sum across lanes; the comparison of `amax` with NaN doubles its instructions",
        "several rows at a time",
    ),
    "sampled": _Cause(
        "each element is a dot of 64 terms with a sum across lanes, of eight elements at a time",
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
    "mended": _Cause(
        "mended on 30 November, and not timed again: programs for all SMs, counts in shared memory, three bits a "
        "launch, no text of arrays for an error, a seed on the device, fewer chunks",
        "",
    ),
    "columns": _Cause(
        "a program for 512 columns; mended: `sum` 305 to 22 µs, `amax` 319 to 19, `var` 910 to 35", ""
    ),
    "first": _Cause(
        "the benchmark timed the gradient of a first call, and launches of other than four warps were not recorded: "
        "60 to 100 µs of Python, and zeros for integer results. Mended, and not timed again",
        "",
    ),
    "passes": _Cause(
        "each of 11 launches passes over the logits for three bits of the bound",
        "a histogram of more bits in shared memory",
    ),
    "again": _Cause(
        "timed again on 30 November, between events: how much of 23 to 134 µs is the GPU's was not measured",
        "figures of the GPU's own clock",
    ),
    "host": _Cause("calls of less than 100 µs, which are bound by the host", "figures of the GPU's own clock"),
    "whole": _Cause(
        "a program has a whole line, and its warps meet for each step",
        "lines that several programs divide",
    ),
    "search": _Cause(
        "13 loads for each element, each of which waits for the one before. Indices had 64 bits; they have 32 "
        "since 30 November, which was not timed",
        "",
    ),
    "sparse": _Cause("a program for each row of 32 elements", "rows of several programs, by their lengths"),
}  # fmt: skip

_ROWS = (
    # The first that fits decides.
    ("small large", "scans/cummax.*", "scan"),
    ("small large", "elementwise/dropout backward|dropouts/alpha_dropout .*", "random"),
    ("small large", "optimisers/.*8bit.*", "codes"),
    ("small", "optimisers/.*", "lists"),
    ("large", "optimisers/SGD .*", "in place"),
    ("small large", "counts/(bincount|unique_consecutive) .*", "reads"),
    ("small large", "norms/.* backward", "norms"),
    ("small large", "indices/gather forward", "gather"),
    ("small large", "(indices|sorting)/.* backward", "scatter"),
    ("large", "reductions/(sum|amax|argmax|vector_norm).* forward", "lines"),
    ("small large", "sparse/sddmm .*", "sampled"),
    ("small large", "losses/linear_cross_entropy .*", "product"),
    ("large", "padding/pad .*", "edges"),
    ("small", ".* forward", "call"),
    ("small", ".* backward", "node"),
    ("large", "(activations|losses/nll_loss).* backward|padding/(cat|transpose).* backward|reductions/sum.* backward", "node"),
    ("large", "losses/nll_loss forward", "call"),
    ("h200-again", "sorting/sort forward", "whole"),
    ("h200-again", "counts/unique_consecutive forward", "reads"),
    ("h200-again", "(sorting|indices)/.* backward", "scatter"),
    ("h200-again", "norms/.* backward", "norms"),
    ("h200-again", "sampling/.* forward", "passes"),
    ("h200-again", ".*", "again"),
    ("h200", "(padding/cat|counts/(histc|bincount)|sampling/|losses/(huber|smooth|mse|l1_|kl_|binary|linear)).* forward", "mended"),
    ("h200", "(reductions/vector_norm|optimisers/Adafactor|elementwise/dropout|dropouts/).* forward", "mended"),
    ("h200", "reductions/.* 0 forward", "columns"),
    ("h200", ".* backward", "first"),
    ("h200", "padding/pad .* forward", "edges"),
    ("h200", "(sorting|scans)/.* forward", "whole"),
    ("h200", "sparse/.* forward", "sparse"),
    ("h200", "counts/searchsorted forward", "search"),
    ("h200", "counts/unique_consecutive forward", "reads"),
    ("h200", "(activations|elementwise|losses|norms|reductions|softmax|indices)/.* forward", "host"),
)  # fmt: skip
"""The keys of files, a pattern of "family/name pass", and the cause. Rows of the H200 that were timed again
have the key "h200-again"."""


def _ratio(row: dict[str, Any]) -> float:
    """torch's time by ours."""
    return float(row["torch"] / row["tessera"])


def cause_of(key: str, row: dict[str, Any]) -> str:
    """The key of the cause of a row that is slow; empty if none is known."""
    text = f"{row['family']}/{row['name']} {row['pass']}"
    if "date" in row:
        key += "-again"
    for keys, pattern, cause in _ROWS:
        if key in keys.split() and re.fullmatch(pattern, text):
            return cause
    return ""


def _families() -> list[str]:
    means: dict[str, dict[str, str]] = defaultdict(dict)
    for figures in _FILES:
        ratios: dict[str, list[float]] = defaultdict(list)
        for row in figures.rows():
            ratios[row["family"]].append(math.log(_ratio(row)))
        for family, each in ratios.items():
            mean = f"{math.exp(statistics.fmean(each)):.2f}"
            means[family][figures.key] = f"**{mean}**" if float(mean) < 1 else mean
    lines = [f"| family | {' | '.join(each.title for each in _FILES)} |", "|---|---|---|---|"]
    for family, title in _FAMILIES.items():
        cells = [means[family].get(each.key, "") for each in _FILES]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def _slow_rows(figures: _Figures) -> list[str]:
    by_cause: dict[str, list[str]] = defaultdict(list)
    rows = figures.rows()
    for row in sorted(rows, key=_ratio):
        if _ratio(row) < _SLOW:
            name = f"`{row['name']}`" + (" backward" if row["pass"] == "backward" else "")
            by_cause[cause_of(figures.key, row)].append(f"{name} {_ratio(row):.2f}")
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
