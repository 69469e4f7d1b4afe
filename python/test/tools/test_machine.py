# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What python/benchmarks/machine.py says about a CPU: caches from Linux's files, and verdicts."""

from __future__ import annotations

import json
import pathlib
import sys

import numpy as np
import pytest

import tessera
from tessera.__main__ import main
from tessera.settings import settings
from tools.loading import load

pytest.importorskip("torch")

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"


@tessera.jit
def empty():
    pass


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


def test_a_stored_row(machine, tmp_path, capsys):
    """It has what was faster in all work; kernels of TESSERA_CPU_ROW are compiled with it, under
    keys and metadata of their own. With `deterministic` they have the table's figures."""
    row = "as the row says"
    wide, narrow = {row: 1.0, "with 256 bits": 0.5}, {row: 1.0, "with 256 bits": 1.5}
    caches = {"l1": {"bytes": 16384, "ways": 4}}
    assert machine.figures({"a": wide, "b": narrow}, caches) == "l1=16384/4"
    faster = {"a": wide, "c": {row: 1.0, "without int8-dot": 0.9}}
    assert machine.figures(faster, caches) == "bits=256+int8-dot=no+l1=16384/4"

    name = tessera.host_info()["machine"].partition("+")[0]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"row": name, "figures": "bits=128+l1=16384/4"}))
    with settings.override(cpu_row=str(path)):
        assert settings.cpu_row == f"{name}:bits=128+l1=16384/4"
        compiled, exact = (empty.warmup(**given) for given in ({}, {"deterministic": True}))
        assert main(["doctor"]) == 0
    assert "with bits=128+l1=16384/4, of TESSERA_CPU_ROW" in capsys.readouterr().out
    assert "+bits=128+l1=16384/4" in compiled.metadata["machine"]
    assert compiled.metadata["vector_bits"] == 128
    plain = empty.warmup()
    assert plain.metadata["machine"] == exact.metadata["machine"] == tessera.host_info()["machine"]


def test_rows_that_do_not_fit(tmp_path):
    name = tessera.host_info()["machine"].partition("+")[0]
    for row, wrong in (
        ("pentium:bits=128", "the CPU row is of 'pentium'"),
        (f"{name}:bits=96", "has no figures"),
        (f"{name}:bits=1024", "has no figures"),
        (f"{name}:l1=7/1", "has no figures"),
        (f"{name}:speed=2", "has no figures"),
    ):
        with pytest.raises(tessera.errors.TesseraError, match=wrong) as caught:
            empty.warmup(cpu_row=row)
        assert "E062" in str(caught.value)
    path = tmp_path / "broken.json"
    path.write_text('{"row": 3}')
    for text in (str(path), str(tmp_path / "none.json")):
        with pytest.raises(tessera.errors.SettingError, match="bench machine --store"):
            with settings.override(cpu_row=text):
                pass


def test_kernels_run_with_other_options(machine):
    # Each kind of work computes something, with other options, too.
    for run in machine.launches({"deterministic": True}).values():
        run()
    times = machine.time_in_turns({"a": lambda: np.zeros(1000), "b": lambda: None}, 0.01)
    assert set(times) == {"a", "b"} and all(ms >= 0 for ms in times.values())
