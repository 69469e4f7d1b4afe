# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tessera explain`, and the line of a traceback that says so."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tessera
from tessera.__main__ import main
from tessera.errors import LaunchError

ROOT = Path(__file__).resolve().parents[3]


def test_an_id(capsys):
    assert main(["explain", "E022"]) == 0
    title, wrong, fix, *example = capsys.readouterr().out.splitlines()
    assert title == "E022 (Types, shapes, constants)"
    assert wrong == "  what is wrong: shapes that do not broadcast"
    assert fix == "  what to do: `x[:, None]`, `x[None, :]`"
    assert example[0] == "  for example:" and "    @tessera.jit" in example
    at = example.index("  is refused:")
    assert example[at + 1].startswith("    ") and "error[E022]" in "".join(example[at:])


@pytest.mark.parametrize("id", ["e027", "27", "error[E027]", "[E027]"])
def test_other_spellings(capsys, id):
    assert main(["explain", id]) == 0
    shown = capsys.readouterr().out
    # A link of the page leads to a file that a wheel lacks: its text alone is shown.
    assert shown.startswith("E027 ") and "defined" in shown and ".md" not in shown


def test_all_ids(capsys):
    assert main(["explain"]) == 0
    shown = capsys.readouterr().out
    rows = (ROOT / "docs/Errors.md").read_text().count("\n| E")
    assert rows > 60
    assert shown.count("what is wrong: ") == shown.count("what to do: ") == rows
    examples = (ROOT / "python/tessera/tools/error_examples.md").read_text().count("\n## E")
    assert shown.count("  for example:") == shown.count("  is refused:") == examples > 40


def test_an_unknown_id(capsys):
    assert main(["explain", "E022", "E902", "what"]) == 1
    shown = capsys.readouterr()
    assert "shapes" in shown.out
    first, second = shown.err.splitlines()
    assert first.endswith("no error has the id 'E902'")
    assert second.endswith("no error has the id 'what'")


def test_an_installed_package_brings_the_page(tmp_path):
    """As in a wheel: Errors.md beside the modules, and no docs/."""
    package = tmp_path / "tessera"
    skipped = shutil.ignore_patterns("__pycache__", "compat", "testing")
    shutil.copytree(ROOT / "python/tessera", package, symlinks=True, ignore=skipped)
    command = [sys.executable, "-m", "tessera", "explain", "E022"]

    def run():
        return subprocess.run(
            command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
        )

    without = run()
    assert without.returncode == 1 and without.stdout == ""
    assert without.stderr.startswith(
        "python -m tessera explain: this installation lacks Errors.md;"
    )
    shutil.copy(ROOT / "docs/Errors.md", package)
    assert "shapes that do not broadcast" in run().stdout
    assert "docs/Errors.md DESTINATION tessera" in (ROOT / "python/CMakeLists.txt").read_text()


SCRIPT = """import numpy, tessera
import tessera.language as tl

@tessera.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.zeros((64,), tl.int32) + tl.zeros((32,), tl.int32))

kernel{launch}
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tracebacks have no notes")
@pytest.mark.parametrize(
    "launch, id",
    [("[(1,)](numpy.zeros(64))", "E022"), ("(1)", "E004"), ("[1, 2, 3, 4](1)", "E052")],
)
def test_a_traceback_ends_with_the_command(tmp_path, launch, id):
    (tmp_path / "script.py").write_text(SCRIPT.format(launch=launch))
    command = [sys.executable, str(tmp_path / "script.py")]
    lines = subprocess.run(command, capture_output=True, text=True).stderr.splitlines()
    assert lines[-2].startswith("fix: ")
    assert lines[-1] == f"see: python -m tessera explain {id}"


def test_the_text_of_an_error_is_as_it_was():
    error = LaunchError("E052", "no grid", "give one")
    assert str(error) == "error[E052]: no grid\nfix: give one"
    assert error.__notes__ == ["see: python -m tessera explain E052"]
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.__notes__) == (str(error), error.__notes__)
    assert not hasattr(LaunchError("", "no id"), "__notes__")
    assert not hasattr(tessera.errors.InternalError("ours"), "__notes__")
    if sys.version_info >= (3, 11):
        error.add_note("of the user's")
        assert error.__notes__[1:] == ["of the user's"]


def test_a_command_of_ours_says_it_too(capsys, tmp_path):
    command = [sys.executable, "-m", "tessera", "cache", "prune", "--size", "much"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "see: python -m tessera explain E062"
