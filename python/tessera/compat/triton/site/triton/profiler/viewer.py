# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shows what `finalize` wrote."""

from __future__ import annotations

import json
import re
from typing import Any, Sequence

__all__ = ["parse", "print_tree"]

_TIMES = {"s": 1e-9, "ms": 1e-6, "us": 1e-3, "ns": 1.0}
_RATES = {"": 1.0, "g": 1e-9, "t": 1e-12}


def parse(metrics: Sequence[str], filename: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a file with the metrics that are asked for: "time/ms", "tflop16/s", "gbyte/s"."""
    with open(filename, encoding="utf-8") as file:
        rows = json.load(file)
    for row in rows:
        row["shown"] = [_metric(name, row["metrics"]) for name in metrics]
    return rows, list(metrics)


def print_tree(tree: list[dict[str, Any]], metrics: Sequence[str], *_: Any) -> None:
    """Prints a line for each kernel and each scope, indented as scopes are in one another."""
    print("  ".join(metrics))
    for row in sorted(tree, key=lambda row: row["path"]):
        numbers = "  ".join("nan" if value is None else f"{value:.3f}" for value in row["shown"])
        print(f"{'  ' * (len(row['path']) - 1)}{numbers}  {row['path'][-1]}")


def _metric(name: str, values: dict[str, float]) -> Any:
    """None where it was not measured."""
    time = values.get("time (ns)", 0.0)
    if (found := re.fullmatch(r"(avg_)?time/(s|ms|us|ns)", name)) is not None:
        count = values.get("count", 1) if found[1] else 1
        return time * _TIMES[found[2]] / count
    if (found := re.fullmatch(r"(|g|t)(flop(?:8|16|32|64)?|byte)/s", name)) is not None:
        amount = values.get(found[2].replace("flop", "flops") if "flop" in name else "bytes")
        return None if amount is None or not time else amount * _RATES[found[1]] / (time * 1e-9)
    return values.get(name)
