# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/dev/kernel_hashes.py: what counts as other code, and which commands of lit tests it runs."""

from __future__ import annotations

import pathlib
import types

import pytest

from tools.loading import TOOLS, load

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tool() -> types.ModuleType:
    return load(TOOLS / "kernel_hashes.py")


def test_compare(tool: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    before = {
        "same": {"source": "1", "ptx": "a"},
        "changed": {"source": "1", "ptx": "a", "tilegpu": "t"},
        "rewritten": {"source": "1", "ptx": "a"},
        "gone": {"source": "1", "ptx": "a"},
    }
    after = {
        "same": {"source": "1", "ptx": "a"},
        "changed": {"source": "1", "ptx": "b", "tilegpu": "t"},
        "rewritten": {"source": "2", "ptx": "b"},
    }
    assert tool.compare(before, after) == 1
    assert capsys.readouterr().out.splitlines() == [
        "changed: ptx",
        "2 kernels compared, 1 with other code; 1 with other sources, 1 not there any more",
    ]


def test_an_error_instead_of_code_is_a_difference(tool: types.ModuleType) -> None:
    before = {"kernel": {"source": "1", "sm_90a ptx": "a"}}
    assert tool.compare(before, {"kernel": {"source": "1", "sm_90a": "UserError E010"}}) == 1


def test_lit_commands(tool: types.ModuleType) -> None:
    commands = list(tool.lit_commands())
    assert len(commands) > 100
    for file, command in commands:
        assert (ROOT / file).is_file()
        assert command.startswith("tessera-opt ") and "FileCheck" not in command
    planners = [command for _, command in commands if "tilegpu-warp-specialize" in command]
    assert len(planners) > 5


def test_shares_are_disjoint_and_complete(tool: types.ModuleType) -> None:
    shares = [list(tool.every(share, 3, range(10), 8)) for share in range(3)]
    assert sorted(sum(shares, [])) == list(range(8))


def test_public_cases_are_of_all_sets(tool: types.ModuleType) -> None:
    pytest.importorskip("torch")
    found = list(tool.public_cases())
    sets = {
        file.name.split("_row_")[0] for file in (ROOT / "python/benchmarks").glob("*_row_cases.py")
    }
    assert {chosen for chosen, _, _ in found} == {"public", *sets} and len(sets) > 3
    names = [name for _, name, _ in found]
    assert len(set(names)) == len(names)
    # A set that was hashed before all were read keeps its names.
    assert all((": " in name) == (chosen != "public") for chosen, name, _ in found)
