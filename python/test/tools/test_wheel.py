# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tools/wheel finds Pythons, and what it says that a wheel asks of a system."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

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


# --- Pythons that are known by their headers --------------------------------------------


@pytest.fixture
def system(tmp_path):
    """What there is of another system, as far as its Pythons are looked for."""
    for folder in ("usr/include/python3.11", "usr/local/include/python3.14t"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "Python.h").touch()
    (tmp_path / "usr/include/python3.9").mkdir()  # without headers
    for file in ("usr/bin/python3.11", "usr/lib/aarch64-linux-gnu/libc.so.6"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    return tmp_path


def test_pythons_of_another_system(wheel, system):
    debian, own = wheel.find_other_pythons(str(system), None)
    assert debian.headers == str(system / "usr/include/python3.11")
    assert debian.interpreter == str(system / "usr/bin/python3.11")
    assert own.headers == str(system / "usr/local/include/python3.14t")
    assert own.interpreter == ""  # it can be built for, and not be tried
    assert wheel.find_other_pythons(str(system), ["python3.14t"]) == [own]


def test_machine_of_another_system(wheel, system, monkeypatch, tmp_path_factory):
    assert wheel.machine_of(str(system)) == "aarch64"
    monkeypatch.setattr(wheel.platform, "machine", lambda: "x86_64")
    assert wheel.runner(str(system)) == ["qemu-aarch64", "-L", str(system)]
    assert wheel.cross_compilation(str(system))["TESSERA_MACHINE"] == "aarch64"
    # Of one of this machine's, what is compiled here serves.
    monkeypatch.setattr(wheel.platform, "machine", lambda: "aarch64")
    assert wheel.cross_compilation(str(system)) == {} == wheel.cross_compilation("")
    with pytest.raises(SystemExit, match="no system of Debian's"):
        wheel.machine_of(str(tmp_path_factory.mktemp("empty")))


@pytest.mark.parametrize(
    "suffix, tag",
    [
        ("cpython-314-x86_64", "cp314-cp314-manylinux_2_28_x86_64"),
        ("cpython-314t-x86_64", "cp314-cp314t-manylinux_2_28_x86_64"),
        ("cpython-311-aarch64", "cp311-cp311-manylinux_2_28_aarch64"),
    ],
)
def test_tags_are_those_of_the_extension(wheel, tmp_path, suffix, tag):
    """pip says those of the Python and the machine that it runs on."""
    said = "cp311-cp311-linux_x86_64"
    built = tmp_path / f"tessera-1.0-{said}.whl"
    with zipfile.ZipFile(built, "w") as archive:
        archive.writestr(f"tessera/_C.{suffix}-linux-gnu.so", b"\x7fELF\0GLIBC_2.17\0")
        archive.writestr("tessera-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {said}\n")
        archive.writestr("tessera-1.0.dist-info/RECORD", "")
    path = wheel.pack(str(built), str(tmp_path / "dist"))
    assert os.path.basename(path) == f"tessera-1.0-{tag}.whl"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert f"Tag: {tag}\n" in archive.read("tessera-1.0.dist-info/WHEEL").decode()


@pytest.mark.parametrize("define, kind", [("", ""), ("#define Py_GIL_DISABLED 1", "t")])
@pytest.mark.skipif(shutil.which("clang++-22") is None, reason="no clang++-22")
def test_name_of_an_extension_by_headers(tmp_path, define, kind):
    headers = tmp_path / "include/python"
    headers.mkdir(parents=True)
    version = (
        "#define PY_MAJOR_VERSION 3\n#define PY_MINOR_VERSION 14\n#define PY_MICRO_VERSION 1\n"
    )
    (headers / "patchlevel.h").write_text(version)
    # As Debian has it: the file itself is beside the folder.
    (headers / "pyconfig.h").write_text("#include <machine/pyconfig.h>\n")
    (headers.parent / "machine").mkdir()
    (headers.parent / "machine/pyconfig.h").write_text(define + "\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(test LANGUAGES CXX)\n"
        f"include({ROOT}/tools/cmake/PythonByHeaders.cmake)\n"
    )
    command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build")]
    command += ["-DCMAKE_CXX_COMPILER=clang++-22", f"-DTESSERA_PYTHON_HEADERS={headers}"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert f".cpython-314{kind}-{os.uname().machine}-linux-gnu.so" in run.stdout, run.stderr
