# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/dev/framework_versions.py makes of an index, of Pythons and of results."""

from __future__ import annotations

import sys

import pytest

from tessera.torch.versions import SUPPORTED
from tools.loading import TOOLS, load

PATH = TOOLS / "framework_versions.py"


@pytest.fixture(scope="module")
def tool():
    return load(PATH)


def test_its_versions_are_those_that_are_supported(tool) -> None:
    numbers = [tool.numbers_of(version)[:2] for version in tool.VERSIONS if "torch" in version]
    assert (min(numbers), max(numbers)) == SUPPORTED


def test_its_newest_jax_is_the_newest_that_is_known(tool) -> None:
    pytest.importorskip("jax")
    from tessera.jax.interface import NEWEST

    assert tool.numbers_of(tool.newest_of(tool.VERSIONS)["jax"])[:2] == NEWEST


def test_numbers_are_compared_and_not_texts(tool) -> None:
    assert tool.newest_of(["torch==2.9.1", "torch==2.11.0", "jax==0.12.0.1"]) == {
        "torch": "2.11.0",
        "jax": "0.12.0.1",
    }
    assert tool.numbers_of("2.13.0+cpu") == (2, 13, 0)


@pytest.mark.parametrize(
    "found, status", [("2.15.0", 0), ("2.15.1", 0), ("2.16.0", 1), ("3.0", 1), ("2.9", 0)]
)
def test_a_newer_release_on_the_index_is_noticed(tool, monkeypatch, capsys, found, status) -> None:
    monkeypatch.setattr(tool, "newest_on_index", lambda name: found)
    assert tool.look_for_newer(["torch==2.11.0", "torch==2.15.0"]) == status
    said = capsys.readouterr().out
    assert f"torch: tested up to 2.15.0, the index has {found}" in said
    assert ("(newer)" in said) == bool(status)


def test_another_python_is_taken_where_there_is_no_wheel(tool, monkeypatch, tmp_path) -> None:
    commands = []

    def run(*command):
        commands.append(command)
        if "pip" in command and commands[-2][0] == "python3.11":
            raise tool.Failed("ERROR: No matching distribution found for jax==0.12.0.1")

    monkeypatch.setattr(tool, "run", run)
    found = tool.install("jax==0.12.0.1", tmp_path, ["python3.11", "python3.12", "python3.13"])
    assert found == "python3.12" and len(commands) == 4
    with pytest.raises(tool.Failed, match="there is no jax==0.12.0.1 for python3.11"):
        tool.install("jax==0.12.0.1", tmp_path, ["python3.11"])


def test_other_failures_of_pip_are_not_taken_for_a_missing_wheel(
    tool, monkeypatch, tmp_path
) -> None:
    def run(*command):
        if "pip" in command:
            raise tool.Failed("No space left on device")

    monkeypatch.setattr(tool, "run", run)
    with pytest.raises(tool.Failed, match="No space"):
        tool.install("torch==2.15.0", tmp_path, ["python3.11", "python3.12"])


def test_the_extension_of_this_python_is_there(tool) -> None:
    with tool.extension_for(sys.executable):
        pass
    assert any((PATH.parents[2] / "python" / "tessera").glob("_C*.so"))


TESTS = """
import pytest
def test_right(): pass
def test_wrong(): assert False
@pytest.mark.skip
def test_not_here(): pass
@pytest.fixture
def broken(): raise ValueError
def test_error(broken): pass
"""


def test_results_are_counted(tool, tmp_path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    counts, failed = tool.run_tests(sys.executable, [tmp_path / "test_some.py"])
    assert counts == {"passed": 1, "failed": 2, "skipped": 1}
    assert [name.rpartition("::")[2] for name in failed] == ["test_wrong", "test_error"]
    outcome = tool.Outcome("torch==2.15.0", "3.11.7", counts, failed)
    assert not outcome.is_good and "1 passed" in tool.line_of(outcome).splitlines()[0]


def test_what_pytest_says_of_no_tests_is_kept(tool, tmp_path) -> None:
    with pytest.raises(tool.Failed, match="nothing_here"):
        tool.run_tests(sys.executable, [tmp_path / "nothing_here.py"])
    assert not tool.Outcome("torch==2.15.0", "", {}, []).is_good
