# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/dev/build_progress.py prints of builds made for it."""

from __future__ import annotations

import io
import re
import shutil

import pytest

from tools.loading import TOOLS, load

needs_ninja = pytest.mark.skipif(shutil.which("ninja") is None, reason="needs ninja")


@pytest.fixture(scope="module")
def tool():
    return load(TOOLS / "build_progress.py")


@pytest.fixture
def build(tool, tmp_path):
    """A function that builds with one command a step, and returns the status and what is printed."""

    def run(*commands):
        rules = [
            f"rule r{i}\n command = {command}\n description = Building CXX object {i}.o\n"
            f"build {i}.o: r{i}" + (f" || {i - 1}.o" if i else "") + "\n"
            for i, command in enumerate(commands)
        ]
        (tmp_path / "build.ninja").write_text("".join(rules))
        out = io.StringIO()
        return tool.run(["ninja", "-C", str(tmp_path)], out, interval=0.2), out.getvalue()

    return run


@needs_ninja
def test_steps_and_time_left_are_printed(build):
    status, text = build(*[f"sleep 0.3 && touch {i}.o" for i in range(4)])
    assert status == 0
    assert re.search(r"^built [123] of 4 steps, about 10 s left$", text, re.MULTILINE), text


@needs_ninja
def test_output_and_status_of_a_failed_step_are_passed_on(build):
    status, text = build("echo a-warning && touch 0.o", "echo an-error && false")
    assert status != 0
    assert "a-warning\n" in text and "an-error\n" in text and "FAILED: 1.o" in text
    assert "@step" not in text


@needs_ninja
def test_nothing_is_printed_where_nothing_is_to_do(build):
    build("touch 0.o")
    assert build("touch 0.o") == (0, "")


def test_a_generated_header_counts_little(tool):
    progress = tool.Progress(total=10.4, start=0.0)
    for done in range(40):
        progress.finish("Building Passes.h.inc...", done + 1, 50, now=2.0)
    progress.finish("Building CXX object a.cpp.o", 41, 50, now=28.0)
    # 41 of 50 steps, but 1.4 of 10.4 units of work.
    assert progress.describe(28.0) == "built 41 of 50 steps, about 3 min left"


def test_time_left_falls_while_a_step_runs(tool):
    progress = tool.Progress(total=4, start=0.0)
    progress.finish("Building CXX object a.cpp.o", 1, 4, now=100.0)
    assert progress.describe(100.0) == "built 1 of 4 steps, about 5 min left"
    assert progress.describe(220.0) == "built 1 of 4 steps, about 3 min left"


@pytest.mark.parametrize(
    "seconds,text", [(3, "10 s"), (44, "40 s"), (55, "1 min"), (230, "4 min"), (3600, "60 min")]
)
def test_times_in_words(tool, seconds, text):
    assert tool.tell_time(seconds) == text
