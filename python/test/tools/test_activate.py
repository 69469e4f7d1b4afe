# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`source tools/activate` sets up a shell for the checkout."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def shell(script: str, venv: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], "TESSERA_VENV": str(venv)}
    command = ["bash", "-c", f"source {ROOT}/tools/activate && {script}"]
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True)


def test_python_and_the_programs_are_found():
    done = shell(
        "python -c 'import tessera; print(tessera.__file__)'; command -v tessera-opt lit",
        Path(sys.prefix),
    )
    assert done.returncode == 0, done.stderr
    package, opt, lit = done.stdout.splitlines()
    assert Path(package).resolve() == (ROOT / "python/tessera/__init__.py").resolve()
    assert opt.endswith("/bin/tessera-opt") and lit.endswith("/lit")


def test_without_an_environment_it_names_what_makes_one(tmp_path):
    done = shell("echo never", tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert "run tools/demo first" in done.stderr
