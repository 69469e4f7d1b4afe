# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A package whose compiler cannot be loaded says why, and what to do; and which version it is."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
import tessera
from tessera.version import version_of_git

ROOT = pathlib.Path(__file__).resolve().parents[3]
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))


def copy_package(root: pathlib.Path, checkout: bool = True) -> pathlib.Path:
    """The package's Python files where nothing is built."""
    package = root / "python" / "tessera"
    shutil.copytree(
        ROOT / "python" / "tessera", package, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    if checkout:
        (root / "CMakeLists.txt").touch()
    return package


def message_of_import(package: pathlib.Path) -> str:
    """What `import tessera` ends with."""
    run = subprocess.run(
        [sys.executable, "-c", "import tessera"],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        cwd=package.parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    return run.stderr


def test_a_package_that_is_not_built_says_how_to_build_it(tmp_path: pathlib.Path) -> None:
    message = message_of_import(copy_package(tmp_path))
    assert f"ImportError: Tessera is not built in {tmp_path}" in message
    assert f"fix: build it: {tmp_path}/tools/demo, or pip install {tmp_path}" in message


def test_a_package_that_is_built_for_another_python_names_it(tmp_path: pathlib.Path) -> None:
    package = copy_package(tmp_path)
    build = tmp_path / "build" / "release"
    (build / "lib").mkdir(parents=True)
    (build / "CMakeCache.txt").touch()
    (build / "lib" / "_C.cpython-399-x86_64-linux-gnu.so").touch()
    link = package / "_C.cpython-399-x86_64-linux-gnu.so"
    link.symlink_to(build / "lib" / "_C.cpython-399-x86_64-linux-gnu.so")
    message = message_of_import(package)
    here = "%d.%d" % sys.version_info[:2]
    assert f"is built for Python 3.99, and this is Python {here} ({sys.executable})" in message
    assert f"cmake -DPython3_EXECUTABLE={sys.executable} {build}" in message
    assert f"cmake --build {build} --target tessera_python" in message


def test_an_installed_package_of_another_python_names_no_build(tmp_path: pathlib.Path) -> None:
    package = copy_package(tmp_path, checkout=False)
    (package / "_C.cpython-314t-x86_64-linux-gnu.so").touch()
    message = message_of_import(package)
    assert "is built for Python 3.14t" in message
    assert "fix: install the wheel for this Python" in message
    assert "cmake" not in message


SUBINTERPRETER = r"""
import sys
import numpy as np

try:
    import _interpreters as interpreters
    make = {"isolated": interpreters.create, "legacy": lambda: interpreters.create("legacy")}
except ImportError:
    import _xxsubinterpreters as interpreters
    make = {kind: lambda kind=kind: interpreters.create(isolated=kind == "isolated")
            for kind in ("isolated", "legacy")}
kind, order = sys.argv[1:]
if order == "later":
    import tessera
interpreters.run_string(make[kind](), f"import sys\nsys.path[:] = {sys.path}\n" '''
try:
    import tessera
except ImportError as error:
    print(error)
''')
sys.stdout.flush()
import tessera
import tessera.language as tl
x = np.zeros(1, np.float32)

@tessera.jit
def kernel(x):
    tl.store(x, 1)

kernel[(1,)](x)
print(x[0])
"""


@pytest.mark.parametrize("order", ["first", "later"])
@pytest.mark.parametrize("kind", ["isolated", "legacy"])
def test_an_import_in_a_subinterpreter_is_an_error(
    tmp_path: pathlib.Path, kind: str, order: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SUBINTERPRETER)
    run = subprocess.run(
        [sys.executable, str(script), kind, order], capture_output=True, text=True, timeout=60
    )
    *said, last = run.stdout.splitlines()
    assert run.returncode == 0 and last == "1.0", run.stderr
    assert "main interpreter alone, and this is a subinterpreter" in said[0]
    assert said[1].startswith("fix: import it in the main interpreter")


def test_an_extension_that_does_not_load_gives_the_systems_reason(tmp_path: pathlib.Path) -> None:
    package = copy_package(tmp_path)
    (package / f"_C{SUFFIX}").write_bytes(b"\x7fELF, and no more")
    message = message_of_import(package)
    assert "ImportError: tessera._C does not load: " in message
    assert "built for" not in message


def git(root: pathlib.Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@localhost"]
    run = ["git", "-C", str(root), *identity, *arguments]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_versions_come_from_git(tmp_path: pathlib.Path) -> None:
    assert version_of_git(str(tmp_path)) == "0.1.0.dev0"
    git(tmp_path, "init", "-q")
    for number in range(3):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", f"commit {number}")
    commit = git(tmp_path, "rev-parse", "--short=9", "HEAD")
    assert version_of_git(str(tmp_path)) == f"0.1.0.dev3+g{commit}"
    git(tmp_path, "tag", "v0.4.9")
    assert version_of_git(str(tmp_path)) == "0.4.9"
    git(tmp_path, "tag", "-d", "v0.4.9")
    git(tmp_path, "tag", "v0.5.0", "HEAD~2")
    assert version_of_git(str(tmp_path)) == f"0.5.1.dev2+g{commit}"
    # Tags that are not of releases say nothing.
    git(tmp_path, "tag", "-a", "-m", "a note", "vendored")
    assert version_of_git(str(tmp_path)) == f"0.5.1.dev2+g{commit}"


def test_the_package_has_the_version_of_its_checkout() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+(\+g[0-9a-f]+)?)?", tessera.__version__)
    assert tessera.__version__ == version_of_git(str(ROOT))


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake")
def test_a_configuration_without_mlir_says_what_to_install(tmp_path: pathlib.Path) -> None:
    command = ["cmake", "-S", str(ROOT), "-B", str(tmp_path), "-G", "Unix Makefiles"]
    run = subprocess.run(
        [*command, "-DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON"], capture_output=True, text=True
    )
    assert run.returncode != 0
    message = " ".join(run.stderr.split())
    assert "Tessera is built with LLVM and MLIR 22.1, which were not found." in message
    assert "libmlir-22-dev mlir-22-tools llvm-22-dev" in message
    assert "MLIR_DIR" in message
