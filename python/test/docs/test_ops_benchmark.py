# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU's own time of a call, with a clock and a GPU that this file makes."""

from __future__ import annotations

import importlib.util
import math
import pathlib
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
FILE = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/ops.py"


@pytest.fixture(scope="module")
def module() -> Any:
    """The module, under a name of its own: tests of operators are in a package `ops`."""
    spec = importlib.util.spec_from_file_location("ops_benchmark", FILE)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FILE.parent))
    try:
        spec.loader.exec_module(found)
    finally:
        sys.path.remove(str(FILE.parent))
    return found


class Machine:
    """A host and a GPU, each with its own microseconds."""

    def __init__(self) -> None:
        self.host = self.gpu = 0.0

    def enqueue(self, work: float) -> None:
        self.gpu = max(self.gpu, self.host) + work

    def wait(self) -> None:
        self.host = max(self.host, self.gpu)


class Event:
    """An event of the machine that `machine` is."""

    machine: Machine

    def __init__(self, enable_timing: bool) -> None:
        self.at = math.inf

    def record(self) -> None:
        self.at = max(self.machine.gpu, self.machine.host)

    def query(self) -> bool:
        return self.machine.host >= self.at

    def synchronize(self) -> None:
        self.machine.host = max(self.machine.host, self.at)

    def elapsed_time(self, end: "Event") -> float:
        return (end.at - self.at) / 1e3


@pytest.fixture
def machine(monkeypatch: Any) -> Machine:
    found = Event.machine = Machine()
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", found.wait)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: found.enqueue(cycles / 2000))
    return found


def test_the_time_of_the_gpu_has_nothing_of_the_host(machine: Machine, module: Any) -> None:
    def slow_host() -> None:
        machine.host += 900
        machine.enqueue(50)

    def slow_gpu() -> None:
        machine.host += 10
        machine.enqueue(7000)

    def waits() -> None:
        machine.enqueue(50)
        machine.wait()

    found = module.on_gpu([slow_host, slow_gpu, waits], 3)
    assert found[:2] == pytest.approx([50, 7000]) and math.isnan(found[2])


def test_ratios_are_of_the_gpu_unless_a_call_waits_for_it(module: Any) -> None:
    row = {"tessera": 10.0, "torch": 20.0}
    gpu = {"tessera": 4.0, "torch": 5.0, "compiled": 2.0}
    assert module.ratio(row) == 2
    assert module.ratio({**row, "gpu": gpu}) == 0.5
    assert module.ratio({**row, "gpu": {"tessera": 4.0}, "waits": ["torch"]}) == 2
