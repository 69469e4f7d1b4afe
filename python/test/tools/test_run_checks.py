# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/check counts, and what it says of tests that are skipped."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

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
