# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What python/benchmarks/machine.py says about a CPU: caches from Linux's files, and verdicts."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest

from tools.loading import load

pytest.importorskip("torch")

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def machine():
    paths = list(sys.path)
    yield load(BENCHMARKS / "machine.py")
    sys.path[:] = paths


def test_caches(machine, tmp_path):
    levels = [("1", "Data", "48K", "12"), ("1", "Instruction", "32K", "8")]
    levels += [("2", "Unified", "2048K", "16"), ("3", "Unified", "32768K", "16")]
    for number, (level, kind, size, ways) in enumerate(levels):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n")
        (folder / "ways_of_associativity").write_text(ways + "\n")
    assert machine.read_caches(tmp_path) == {
        "l1": {"bytes": 48 << 10, "ways": 12},
        "l2": {"bytes": 2 << 20, "ways": 16},
    }


def test_what_is_compared(machine):
    wide = machine.variants_of({"vector_bits": 512, "machine": "znver4+int8-dot+bf16-dot+f16"})
    assert {work: list(others) for work, others in wide.items()} == {
        "f32 dot": ["with 256 bits"], "softmax": ["with 256 bits"],
        "bf16 dot": ["without bf16-dot"], "int8 dot": ["without int8-dot"],
    }  # fmt: skip
    narrow = machine.variants_of({"vector_bits": 256, "machine": "haswell+f16"})
    assert not any(narrow.values())


def test_verdicts(machine):
    row = "as the row says"
    ms = {"a": {row: 1.0, "b": 2.0}, "c": {row: 1.0, "d": 0.5}, "e": {row: 1.0, "f": 1.01}}
    verdicts = [line.rpartition("(")[2] for line in machine.propose(ms)]
    assert verdicts == ["keep)", "change)", "no matter)"]


def test_kernels_run_with_other_options(machine):
    # Each kind of work computes something, with other options, too.
    for run in machine.launches({"deterministic": True}).values():
        run()
    times = machine.time_in_turns({"a": lambda: np.zeros(1000), "b": lambda: None}, 0.01)
    assert set(times) == {"a", "b"} and all(ms >= 0 for ms in times.values())
