#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the tests of torch.compile and of frameworks with several versions of torch and of JAX.

    tools/dev/framework_versions.py                      all of VERSIONS, one after the other
    tools/dev/framework_versions.py torch==2.15.0 jax==0.12.0.1
    tools/dev/framework_versions.py torch==2.15.0 --tests python/test/pytorch/test_optimize.py
    tools/dev/framework_versions.py --index              are there newer ones on the package index?

Each version gets a virtual environment of its own, which is removed afterwards (`--keep` keeps it),
with the first Python here for which there is a wheel. Outside of CI, since torch from the index is
a CUDA build: 3 GB to download, 6 GB on disk. The extension for a Python other than the checkout's
is built by tools/wheel. Constraints of pip's configuration, which may hold newer releases back, do
not count. The exit status is 1 where a test fails, and with `--index` where there is a release that
is newer than VERSIONS; docs/Status.md has the last result and its date.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]

VERSIONS = (
    "torch==2.11.0",
    "torch==2.13.0",
    "torch==2.14.1",
    "torch==2.15.0",
    "jax==0.10.2",
    "jax==0.12.0.1",
)
"""The first and the last version of each that is supported, that of CI, and some between."""

TESTS = ("python/test/pytorch", "python/test/frameworks")
WITH_THEM = ("numpy", "ml_dtypes", "pytest", "setuptools")
ENVIRONMENT = {**os.environ, "PIP_CONSTRAINT": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


class Outcome(NamedTuple):
    """The outcome of the tests with one version."""

    version: str
    python: str
    counts: dict[str, int]
    """Tests by "passed", "failed", "skipped"."""
    failed: list[str]
    """The tests that failed; what pip, the build or pytest said, if it did not come to tests."""

    @property
    def is_good(self) -> bool:
        return not self.failed and self.counts.get("passed", 0) > 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0],
        epilog=(__doc__ or "").split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="as pip takes them")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files or folders of tests")
    parser.add_argument("--python", nargs="+", help="interpreters to choose from")
    parser.add_argument(
        "--keep", type=pathlib.Path, help="a folder for the environments, to be kept"
    )
    parser.add_argument("--json", type=pathlib.Path, help="a file for the results")
    parser.add_argument("--index", action="store_true", help="look for newer releases, run nothing")
    options = parser.parse_args(arguments)
    if options.index:
        return look_for_newer(options.versions)
    outcomes = []
    for version in options.versions:
        outcomes.append(outcome_of(version, options))
        print(line_of(outcomes[-1]), flush=True)
    if options.json:
        date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        results = [outcome._asdict() for outcome in outcomes]
        options.json.write_text(json.dumps({"date": date, "outcomes": results}, indent=1) + "\n")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def line_of(outcome: Outcome) -> str:
    counts = ", ".join(f"{count} {what}" for what, count in sorted(outcome.counts.items()))
    where = f"{outcome.version}, Python {outcome.python}" if outcome.python else outcome.version
    return "\n  ".join([f"{where}: {counts or 'no tests were run'}", *outcome.failed])


# --- The package index -----------------------------------------------------------------------


def look_for_newer(versions: Sequence[str]) -> int:
    """Prints, and says by the status, whether the index has releases that are newer than these."""
    status = 0
    for name, tested in sorted(newest_of(versions).items()):
        found = newest_on_index(name)
        is_newer = numbers_of(found)[:2] > numbers_of(tested)[:2]
        status |= is_newer
        print(f"{name}: tested up to {tested}, the index has {found}{' (newer)' * is_newer}")
    return status


def newest_of(versions: Sequence[str]) -> dict[str, str]:
    """The newest version of each framework among some."""
    newest: dict[str, str] = {}
    for each in versions:
        name, _, version = each.partition("==")
        newest[name] = max(newest.get(name, "0"), version, key=numbers_of)
    return newest


def newest_on_index(name: str) -> str:
    """For any Python: newer releases of JAX are not for older ones."""
    command = [sys.executable, "-m", "pip", "index", "versions", name, "--ignore-requires-python"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    found = re.search(rf"^{name} \(([^)]+)\)$", done.stdout, re.M)
    if found is None:
        sys.exit(f"{done.stderr}tools/dev/framework_versions.py: pip names no version of {name}")
    return str(found[1])


def numbers_of(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])))


# --- Tests in an environment ------------------------------------------------------------------


class Failed(Exception):
    """A program that failed; the message is the end of its output."""


def run(*command: Any) -> str:
    """The output of a program. Raises Failed."""
    words = list(map(str, command))
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed("\n".join(f"{done.stdout}{done.stderr}".strip().splitlines()[-5:]))
    return done.stdout.strip()


def outcome_of(version: str, options: argparse.Namespace) -> Outcome:
    """Makes the environment of a version and runs the tests there."""
    release = ""
    with tempfile.TemporaryDirectory() as folder:
        environment = (options.keep or pathlib.Path(folder)).resolve() / version
        try:
            interpreter = install(version, environment, options.python or pythons())
            python = environment / "bin" / "python"
            release = run(python, "-c", "import platform; print(platform.python_version())")
            with extension_for(interpreter):
                counts, failed = run_tests(python, options.tests)
        except Failed as failure:
            counts, failed = {}, str(failure).splitlines()
    return Outcome(version, release, counts, failed)


def pythons() -> list[str]:
    """Interpreters to choose from: this one first, then those that tools/wheel finds."""
    return [sys.executable, *(python.executable for python in wheel_tool().find_pythons())]


def wheel_tool() -> Any:
    loader = importlib.machinery.SourceFileLoader("wheel_tool", str(ROOT / "tools" / "wheel"))
    spec = importlib.util.spec_from_loader("wheel_tool", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def install(version: str, environment: pathlib.Path, interpreters: Sequence[str]) -> str:
    """Installs a version where there is a wheel for one of these interpreters; gives that one."""
    for interpreter in interpreters:
        run(interpreter, "-m", "venv", "--clear", environment)
        pip = [environment / "bin" / "python", "-m", "pip", "install", "-q"]
        try:
            run(*pip, version, *WITH_THEM)
            return interpreter
        except Failed as failure:
            if "No matching distribution found" not in str(failure):
                raise
    raise Failed(f"there is no {version} for {', '.join(interpreters)}")


@contextlib.contextmanager
def extension_for(interpreter: str) -> Iterator[None]:
    """Has the checkout hold an extension for a Python; one that is not the checkout's only for now."""
    ask = "import sys, sysconfig as s; print(sys.implementation.cache_tag, s.get_config_var('EXT_SUFFIX'))"
    tag, suffix = run(interpreter, "-c", ask).split()
    extension = ROOT / "python" / "tessera" / f"_C{suffix}"
    if extension.exists():
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, ROOT / "tools" / "wheel", "--python", interpreter, "--out", folder)
    extension.unlink(missing_ok=True)
    extension.symlink_to(ROOT / "build" / f"pip-{tag}" / "lib" / extension.name)
    try:
        yield
    finally:
        extension.unlink()


def run_tests(python: pathlib.Path, tests: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """How many tests there were of each kind, and the names of those that failed."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "results.xml"
        # Use empty caches, since a version would otherwise run code that another one has compiled.
        caches = {
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "TESSERA_CACHE_DIR": f"{folder}/tessera",
        }
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={file}"]
        done = subprocess.run(
            list(map(str, [*command, *tests])), cwd=ROOT, env={**ENVIRONMENT, **caches},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode not in (0, 1):  # all is right, or tests have failed
            raise Failed("\n".join(done.stdout.strip().splitlines()[-5:]))
        return counted(file)


def counted(file: pathlib.Path) -> tuple[dict[str, int], list[str]]:
    """The counts of a file of results, and its failures."""
    counts: collections.Counter[str] = collections.Counter()
    failed = []
    for case in ElementTree.parse(file).iter("testcase"):
        kinds = {child.tag for child in case}
        what = "skipped" if "skipped" in kinds else "passed"
        if kinds & {"failure", "error"}:
            what = "failed"
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        counts[what] += 1
    return dict(counts), failed


if __name__ == "__main__":
    sys.exit(main())
