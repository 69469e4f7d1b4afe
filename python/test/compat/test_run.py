# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`import triton` answered by Tessera: by `run --as-triton`, by `install`, by the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tessera
from tessera.compat import triton as compat

pytest.importorskip("torch")

SCRIPT = """
import sys
import numpy, triton, triton.language as tl

@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)

def main():
    x = numpy.ones(100)
    double[(triton.cdiv(100, 64),)](x, 100, BLOCK=64)
    assert (x == 2).all()
    print("doubled", triton.__version__, sys.argv[1:])

if __name__ == "__main__":
    main()
"""
# To load torch takes ten times as long as all else: one script does.
WITH_TORCH = SCRIPT.replace("numpy, triton,", "torch, triton,").replace(
    "numpy.ones(100)",
    "torch.ones(100, device=triton.runtime.driver.active.get_active_torch_device())",
)


def start(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_script_and_its_arguments(tmp_path):
    (tmp_path / "beside.py").write_text("name = 'beside'")
    script = tmp_path / "script.py"
    script.write_text("import beside\n" + WITH_TORCH)
    done = start("-m", "tessera", "run", "--as-triton", str(script), "--flag", "-m", cwd="/")
    assert done.stdout == "doubled 3.6.0 ['--flag', '-m']\n", done.stderr


def test_a_module(tmp_path):
    (tmp_path / "module.py").write_text(SCRIPT)
    done = start("-m", "tessera", "run", "--as-triton", "-m", "module", "one", cwd=tmp_path)
    assert done.stdout == "doubled 3.6.0 ['one']\n", done.stderr


def test_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text(SCRIPT + "\ndef test_main():\n    main()\n")
    (tmp_path / "conftest.py").write_text("import triton\nassert triton.__tessera__\n")
    done = start("-m", "tessera", "run", "--as-triton", "-m", "pytest", "-q", cwd=tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_the_status_is_the_programs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys; sys.exit(7)")
    assert start("-m", "tessera", "run", "--as-triton", str(script), cwd=tmp_path).returncode == 7
    script.write_text("raise ValueError('of its own')")
    failed = start("-m", "tessera", "run", str(script), cwd=tmp_path)
    assert failed.returncode == 1 and "ValueError: of its own" in failed.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["--as-triton"], ["--nonsense", "x.py"], ["no_such_script.py"], ["-m"]]
)
def test_what_cannot_be_run(arguments, tmp_path):
    done = start("-m", "tessera", "run", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and "tessera run" in done.stderr and "Traceback" not in done.stderr


def test_without_the_option_triton_is_what_it_was(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import importlib.util; print(importlib.util.find_spec('triton'))")
    assert "tessera" not in start("-m", "tessera", "run", str(script), cwd=tmp_path).stdout


def test_processes_of_processes_find_it_too(tmp_path):
    (tmp_path / "child.py").write_text(SCRIPT)
    script = tmp_path / "parent.py"
    script.write_text(
        "import subprocess, sys\nimport triton\n"
        "sys.exit(subprocess.call([sys.executable, 'child.py', 'of', 'it']))"
    )
    done = start("-m", "tessera", "run", "--as-triton", str(script), cwd=tmp_path)
    assert done.stdout == "doubled 3.6.0 ['of', 'it']\n", done.stderr


def test_a_process_that_is_given_the_folder_alone(tmp_path):
    # As compilers start their workers, with their own path for PYTHONPATH.
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert start(str(script), cwd=tmp_path, PYTHONPATH=compat.FOLDER).returncode == 0


def test_install(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, os, tessera.compat.triton as compat\n"
        "assert not compat.is_installed()\n"
        "compat.install(); compat.install()\n"
        "assert compat.is_installed() and sys.path.count(compat.FOLDER) == 1\n"
        "assert os.environ['PYTHONPATH'].split(os.pathsep).count(compat.FOLDER) == 1\n"
        "import triton\n"
        "assert compat.is_installed() and triton.__spec__.origin.startswith(compat.FOLDER)\n"
        "compat.install()\n"
    )
    done = start(str(script), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_environment_of_an_installed_package(tmp_path):
    """The wheel's line for each start of Python, in a folder as that of installed packages."""
    line = Path(__file__).resolve().parents[2] / "tessera_as_triton.pth"
    site = tmp_path / "packages"
    site.mkdir()
    (site / "tessera").symlink_to(Path(tessera.__file__).parent)
    (site / line.name).write_bytes(line.read_bytes())
    script = tmp_path / "script.py"
    script.write_text(f"import site; site.addsitedir({str(site)!r})\n" + SCRIPT)
    done = start(str(script), cwd=tmp_path, PYTHONPATH="", TESSERA_AS_TRITON="1")
    assert done.stdout == "doubled 3.6.0 []\n", done.stderr
    script.write_text(
        f"import site; site.addsitedir({str(site)!r})\nimport importlib.util\n"
        "print('packages' in str(importlib.util.find_spec('triton')))"
    )
    for value in ("", "0"):
        done = start(str(script), cwd=tmp_path, PYTHONPATH="", TESSERA_AS_TRITON=value)
        assert done.stdout == "False\n", done.stderr


def test_another_triton_is_not_replaced(tmp_path):
    (tmp_path / "triton.py").write_text("__version__ = '3.6.0'")
    script = tmp_path / "script.py"
    script.write_text("import triton, tessera.compat.triton as compat\ncompat.install()")
    done = start(str(script), cwd=tmp_path)
    assert done.returncode == 1
    assert "SettingError" in done.stderr and "E062" in done.stderr and "triton.py" in done.stderr


@pytest.mark.parametrize(
    "module, reason",
    [
        ("triton.experimental.gluon", "triton.language"),
        ("triton.backends.amd", "AMD"),
        ("triton.language.extra.hip", "AMD"),
    ],
)
def test_what_is_refused_says_why(module, reason, tmp_path):
    package, _, name = module.rpartition(".")
    script = tmp_path / "script.py"
    script.write_text(f"from {package} import {name}")
    done = start("-m", "tessera", "run", "--as-triton", str(script), cwd=tmp_path)
    assert done.returncode == 1
    assert f"ImportError: Tessera has no {module}: " in done.stderr and reason in done.stderr


def test_nothing_is_installed_beside_tessera():
    """The package lies in a folder that is on no path by itself."""
    site = Path(compat.FOLDER)
    assert site.parent.parent.name == "compat" and not (site / "__init__.py").exists()
    assert [item.name for item in site.iterdir()] == ["triton"]
