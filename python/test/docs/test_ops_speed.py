# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each row of the figures in docs/Ops.md that is slow has a cause."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/dev"))

import ops_speed  # noqa: E402


@pytest.mark.parametrize("figures", ops_speed._FILES, ids=lambda each: each.key)
def test_slow_rows_have_a_cause(figures: Any) -> None:
    rows = figures.rows()
    unknown = [
        f"{row['family']}/{row['name']} {row['pass']}"
        for row in rows
        if figures.ratio(row) < ops_speed._SLOW and not ops_speed.cause_of(figures.key, row)
    ]
    assert len(rows) > 100 and unknown == []


def test_causes_are_known_and_used() -> None:
    named = {cause for _, _, cause in ops_speed._ROWS}
    assert named == set(ops_speed._CAUSES)


def test_the_first_pattern_that_fits_decides() -> None:
    row = {"family": "sorting", "name": "topk", "pass": "backward"}
    assert ops_speed.cause_of("small", row) == "scatter"
    assert ops_speed.cause_of("calls", row) == "gpu call"
    assert ops_speed.cause_of("h200", row) == ""


def test_ratios_are_of_the_gpu_where_all_have_its_time() -> None:
    gpu, calls = (each for each in ops_speed._FILES if each.file == "ops_h200.json")
    row = {"tessera": 2.0, "torch": 4.0, "gpu": {"tessera": 1.0, "torch": 3.0, "compiled": 0.5}}
    assert (gpu.ratio(row), ops_speed._EAGER.ratio(row), calls.ratio(row)) == (0.5, 3, 2)
    assert gpu.ratio({**row, "waits": ["torch"]}) == 2
