# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tools/wheel finds Pythons, and what it says that a wheel asks of a system."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel():
    loader = importlib.machinery.SourceFileLoader("wheel_tool", str(ROOT / "tools" / "wheel"))
    spec = importlib.util.spec_from_loader("wheel_tool", loader)
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return module


def test_headers_are_installed_before_pythons_are_looked_for(wheel, monkeypatch, tmp_path):
    """A system that has Python, but not yet its headers, gets them with the rest."""
    python = wheel.Python("/usr/bin/python3", (3, 11), "/usr/include/python3.11", False)
    installed, built = [], []

    def run(command, **options):
        installed.append(command[-1])

    def build_core(tree):
        built.append(tree)
        raise InterruptedError  # the rest is pip's

    monkeypatch.setattr(wheel.subprocess, "run", run)
    monkeypatch.setattr(wheel, "find_pythons", lambda: [python] if installed else [])
    monkeypatch.setattr(wheel, "build_core", build_core)
    monkeypatch.setattr(sys, "argv", ["wheel", "--build-dir", str(tmp_path)])
    with pytest.raises(InterruptedError):
        wheel.main()
    assert len(installed) == 1 and "ensure_system" in installed[0]
    assert built == [str(tmp_path)]


def test_a_core_that_is_built_needs_nothing_installed(wheel, monkeypatch, tmp_path):
    def run(command, **options):
        raise AssertionError(command)

    monkeypatch.setattr(wheel.subprocess, "run", run)
    monkeypatch.setattr(wheel, "find_pythons", lambda: [])
    arguments = ["wheel", "--build-dir", str(tmp_path), "--core", str(tmp_path / "libtessera.so")]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit, match="no CPython >= 3.10 with headers was found"):
        wheel.main()


@pytest.mark.parametrize(
    "version, free_threaded, tag", [((3, 10), False, "cp310"), ((3, 14), True, "cp314t")]
)
def test_tag_of_an_interpreter(wheel, version, free_threaded, tag):
    assert wheel.Python("python", version, "include", free_threaded).tag == tag


@pytest.mark.parametrize(
    "library, plain, tag",
    [
        (b"\0GLIBC_2.14\0GLIBC_2.3.4\0", "linux_x86_64", "manylinux_2_28_x86_64"),
        (b"\0GLIBC_2.34\0GLIBC_2.3.4\0", "linux_x86_64", "manylinux_2_34_x86_64"),
        (b"\0GLIBC_2.17\0", "linux_aarch64", "manylinux_2_28_aarch64"),
        # The system's own C++ library would have to be as new as this one's.
        (b"\0GLIBC_2.14\0libstdc++.so.6\0", "linux_x86_64", "linux_x86_64"),
        (b"no library of glibc's", "linux_x86_64", "linux_x86_64"),
    ],
)
def test_tag_of_what_a_library_asks_for(wheel, library, plain, tag):
    assert wheel.platform_tag([library], plain) == tag
