#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the project's checks one after the other and counts their tests.

A check is a function that returns how many of its tests passed and failed, and which were skipped.
If a build fails, the run ends, since later results would mean nothing. Any other failure is
counted, and the run continues. The summary lists the reasons for skipped tests, with their number
and place; build/dev/skipped.txt has all of their names. For pytest, it lists the folders and files
that take the most CPU time. The last line is "N passed, N failed".

Usage: tools/dev/run_checks.py [--list] [NAME...]
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "dev"


class Skipped(NamedTuple):
    """A test that was not run."""

    where: str
    """A file or a folder."""
    name: str
    why: str


@dataclasses.dataclass
class Count:
    """Tests that passed and failed, and those that were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: list[Skipped] = dataclasses.field(default_factory=list)

    @staticmethod
    def of(ok: bool) -> "Count":
        return Count(1, 0) if ok else Count(0, 1)

    def __add__(self, other: "Count") -> "Count":
        return Count(
            self.passed + other.passed,
            self.failed + other.failed,
            [*self.skipped, *other.skipped],
        )


class Stop(Exception):
    """Nothing after this failure means anything."""


def run(command: list[str], **environment: str) -> bool:
    """Runs a command in the project's root, its output shown. True if it succeeded."""
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}).returncode == 0


def sources(*suffixes: str) -> list[str]:
    """Files of the project with these suffixes, git-ignored ones aside."""
    out = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [line for line in out.splitlines() if line.endswith(suffixes) and (ROOT / line).exists()]


def junit(path: pathlib.Path, ok: bool) -> Count:
    """The counts of a JUnit report; a run that failed without a failed test is one."""
    if not path.exists():
        return Count(0, 1)
    count = Count()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
        elif skip is None:
            count.passed += 1
        elif not (skip.get("message") or "").startswith("Test not selected"):
            where, name = case.get("classname", "?"), case.get("name", "?")
            # lit's classes are a suite, a dot and a folder; pytest's are the names of modules.
            if (ROOT / (where.replace(".", "/") + ".py")).exists():
                where = where.replace(".", "/") + ".py"
            count.skipped.append(Skipped(where, name, skip.get("message") or "no reason given"))
    if not ok and count.failed == 0:
        count.failed = 1
    return count


def tell_cpu_times(path: pathlib.Path, total: float, files: int = 12) -> list[str]:
    """The CPU seconds of a run of pytest, by folder and file, its processes' children included.

    Lists each folder of tests, and so many files, the slowest first. The rest of the `total` is
    starting, collecting and reporting, in each process of pytest.
    """
    folders: dict[str, float] = defaultdict(float)
    slowest: dict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        # python.test.FOLDER.FILE, and maybe the name of a class.
        names = (case.get("classname") or "").split(".")[2:4]
        folder, file = names[0] if names else "?", "/".join(names) + ".py"
        tests[folder] += 1
        tests[file] += 1
        for told in case.iterfind("properties/property[@name='cpu_seconds']"):
            folders[folder] += float(told.get("value", "0"))
            slowest[file] += float(told.get("value", "0"))
    lines = [f"{total:8.1f} CPU seconds, of which tests {sum(folders.values()):.1f}:"]

    def largest(seconds: dict[str, float]) -> list[tuple[str, float]]:
        return sorted(seconds.items(), key=lambda item: -item[1])

    for name, seconds in [*largest(folders), *largest(slowest)[:files]]:
        lines.append(f"{seconds:8.1f}  {name} ({tests[name]} tests)")
    return lines


def tell_skipped(skipped: Sequence[Skipped]) -> list[str]:
    """For each reason, the most frequent first, how many tests were skipped for it and where."""
    lines = []
    reasons = Counter(test.why for test in skipped)
    for why, count in reasons.most_common():
        lines.append(f"{count:6}  {why}")
        places = Counter(test.where for test in skipped if test.why == why)
        for where, number in places.most_common():
            names = sorted(
                {test.name.partition("[")[0] for test in skipped if test[::2] == (where, why)}
            )
            text = f"{where} ({number}): {', '.join(names)}"
            lines += textwrap.wrap(
                text,
                100,
                initial_indent=" " * 8,
                subsequent_indent=" " * 12,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return lines


def check_format() -> Count:
    cpp = sources(".h", ".cpp")
    good = run(["clang-format-22", "--dry-run", "-Werror", *cpp]) if cpp else True
    black = run(
        [sys.executable, "-m", "black", "-q", "--check", "-l", "100", "python", "tools", "test"]
    )
    return Count.of(good) + Count.of(black)


def check_lints() -> Count:
    names = ("layering", "conventions", "english", "classes", "gpu_facts", "unity", "definitions")
    counts = [Count.of(run([sys.executable, f"tools/dev/check_{name}.py"])) for name in names]
    return sum(counts[1:], counts[0])


def check_build() -> Count:
    script = "source tools/dev/setup.sh; build dev all tessera_python TesseraUnitTests"
    if not run(["bash", "-c", script]):
        raise Stop("the build failed")
    return Count.of(True)


def run_lit(report: str, *options: str, **environment: str) -> Count:
    lit = shutil.which("lit") or "/usr/lib/llvm-22/bin/lit"
    path = BUILD / report
    path.unlink(missing_ok=True)
    command = [lit, "-s", "-v", *options, f"--xunit-xml-output={path}", str(BUILD / "test")]
    ok = run(command, **environment)
    return junit(path, ok)


def check_lit() -> Count:
    return run_lit("lit.xml")


def check_roundtrip() -> Count:
    """The lit suite again, every file printed and parsed between passes. The gtests have none, and
    test/Assembled is about the same files again."""
    other = "^Tessera-(Unit|Assembled)"
    return run_lit("lit-roundtrip.xml", "--filter-out", other, TESSERA_CHECK_ROUNDTRIP="1")


def check_pytest() -> Count:
    path = BUILD / "pytest.xml"
    path.unlink(missing_ok=True)
    jobs = str(max(2, len(os.sched_getaffinity(0))))
    command = [sys.executable, "-m", "pytest", "-q", "-n", jobs, f"--junitxml={path}"]
    # A file's tests share fixtures, some of which take 20 s; conftest.py says which files come last.
    command += ["--dist", "loadfile", "--no-loadscope-reorder", "python/test"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ok = run(command, PYTHONPATH=str(ROOT / "python"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if path.exists():
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print("\n".join(tell_cpu_times(path, seconds)))
    return junit(path, ok)


def check_types() -> Count:
    return Count.of(run([sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"]))


def check_wheel() -> Count:
    """Builds a wheel and runs it in a bare environment, out of reach of the build."""
    return Count.of(run([sys.executable, "tools/wheel", "--test"]))


def check_site() -> Count:
    """The site of the documentation: every page made, every link and entry there."""
    if sys.version_info < (3, 11):
        return Count(skipped=[Skipped("tools/site", "site", "Sphinx needs Python 3.11")])
    return Count.of(
        run([sys.executable, "tools/site/build_site.py"], PYTHONPATH=str(ROOT / "python"))
    )


CHECKS: dict[str, Callable[[], Count]] = {
    "format": check_format,
    "lints": check_lints,
    "build": check_build,
    "lit": check_lit,
    "roundtrip": check_roundtrip,
    "pytest": check_pytest,
    "types": check_types,
    "wheel": check_wheel,
    "site": check_site,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the checks and stop")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these checks")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(CHECKS))
        return 0
    unknown = [name for name in arguments.names if name not in CHECKS]
    if unknown:
        parser.error(f"no check {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    total = Count()
    rows = []
    for name, check in CHECKS.items():
        if arguments.names and name not in arguments.names:
            continue
        print(f"\n== {name}", flush=True)
        start = time.monotonic()
        try:
            count = check()
        except Stop as stop:
            print(stop)
            print(f"{total.passed} passed, {total.failed + 1} failed")
            return 1
        total += count
        rows.append((name, count, time.monotonic() - start))
    if total.skipped:
        print("\n== skipped")
        print("\n".join(tell_skipped(total.skipped)))
        names = "".join(f"{test.where}::{test.name}: {test.why}\n" for test in total.skipped)
        (BUILD / "skipped.txt").write_text(names)
    print("\n== summary")
    for name, count, seconds in rows:
        print(
            f"{name:10} {count.passed:6} passed {count.failed:4} failed "
            f"{len(count.skipped):6} skipped {seconds:7.1f} s"
        )
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
