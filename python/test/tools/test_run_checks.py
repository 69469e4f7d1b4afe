# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/check counts, and what it says of tests that are skipped, and of their time."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest">
  <testcase classname="python.test.runtime.test_launch" name="test_a"/>
  <testcase classname="python.test.runtime.test_launch" name="test_b"><failure message="no"/></testcase>
  <testcase classname="python.test.runtime.test_launch" name="test_c"><error message="no"/></testcase>
  <testcase classname="python.test.execution.test_dot" name="test_d[x-1]"><skipped message="no GPU"/></testcase>
  <testcase classname="python.test.execution.test_dot" name="test_d[x-2]"><skipped message="no GPU"/></testcase>
  <testcase classname="python.test.execution.test_maths" name="test_e"><skipped message="no GPU"/></testcase>
  <testcase classname="Tessera.Tools" name="f.mlir"><skipped message="no ptxas"/></testcase>
  <testcase classname="Tessera-Unit.x" name="g"><skipped message="Test not selected (--filter)"/></testcase>
</testsuite></testsuites>
"""


@pytest.fixture(scope="module")
def checks():
    path = ROOT / "tools" / "dev" / "run_checks.py"
    spec = importlib.util.spec_from_file_location("run_checks", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_checks"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    yield module
    del sys.modules["run_checks"]


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    return path


def test_a_report_is_counted(checks, report):
    count = checks.junit(report, ok=False)
    assert (count.passed, count.failed) == (1, 2)
    # What was not asked for is not skipped.
    assert [test.name for test in count.skipped] == [
        "test_d[x-1]",
        "test_d[x-2]",
        "test_e",
        "f.mlir",
    ]
    assert count.skipped[0].where == "python/test/execution/test_dot.py"
    assert count.skipped[3].where == "Tessera.Tools"


def test_a_run_that_fails_without_a_failed_test_is_one(checks, report, tmp_path):
    report.write_text("<testsuite><testcase classname='a' name='b'/></testsuite>")
    assert checks.junit(report, ok=False).failed == 1
    assert checks.junit(report, ok=True).failed == 0
    assert checks.junit(tmp_path / "missing.xml", ok=True).failed == 1


def test_counts_add_up(checks, report):
    one = checks.junit(report, ok=False)
    both = one + one
    assert (both.passed, both.failed, len(both.skipped)) == (2, 4, 8)


def test_skipped_tests_are_told_by_reason_and_place(checks, report):
    lines = checks.tell_skipped(checks.junit(report, ok=False).skipped)
    assert lines == [
        "     3  no GPU",
        "        python/test/execution/test_dot.py (2): test_d",
        "        python/test/execution/test_maths.py (1): test_e",
        "     1  no ptxas",
        "        Tessera.Tools (1): f.mlir",
    ]


TIMES = """<testsuite>
  <testcase classname="python.test.runtime.test_a" name="a">
    <properties><property name="cpu_seconds" value="1.5"/></properties></testcase>
  <testcase classname="python.test.runtime.test_b.TestClass" name="b">
    <properties><property name="other" value="7"/><property name="cpu_seconds" value="0.5"/></properties>
    <failure message="no"/></testcase>
  <testcase classname="python.test.runtime.test_a" name="c">
    <properties><property name="cpu_seconds" value="2"/></properties></testcase>
  <testcase classname="python.test.docs.test_d" name="d"><skipped message="no"/></testcase>
</testsuite>
"""


def test_cpu_seconds_of_folders_and_files(checks, report):
    report.write_text(TIMES)
    assert checks.tell_cpu_times(report, 10, files=1) == [
        "    10.0 CPU seconds, of which tests 4.0:",
        "     4.0  runtime (3 tests)",
        "     3.5  runtime/test_a.py (2 tests)",
    ]
    assert checks.tell_cpu_times(report, 10)[-1] == "     0.5  runtime/test_b.py (1 tests)"


def test_reports_have_cpu_seconds(checks, tmp_path):
    """Of children, too; with xdist, whose reports come from other processes."""
    file = tmp_path / "python" / "test" / "tools" / "test_work.py"
    file.parent.mkdir(parents=True)
    conftest = ROOT / "python" / "test" / "conftest.py"
    (file.parents[1] / "conftest.py").write_text(conftest.read_text())
    file.write_text(
        "import subprocess, sys, time\n"
        "WORK = 'import time\\nwhile time.process_time() < 0.1: pass'\n"
        "def test_own():\n    end = time.process_time() + 0.1\n"
        "    while time.process_time() < end: pass\n"
        "def test_child():\n    subprocess.run([sys.executable, '-c', WORK])\n"
    )
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", f"--junitxml={report}"]
    # Without samples, nothing is asked of tessera.
    command += ["--every-combination", "-c", os.devnull, f"--rootdir={tmp_path}", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    assert [case.get("name") for case in cases] == ["test_own", "test_child"]
    for case in cases:
        told = case.find("properties/property[@name='cpu_seconds']")
        assert told is not None and 0.08 < float(told.get("value")) < 3
