# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/demo says at its end how to run a script of one's own, and that line does it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def checkout(tmp_path):
    """A checkout in which there is nothing to install and to build, and the demo is a line."""
    (tmp_path / "tools/dev").mkdir(parents=True)
    (tmp_path / "python/examples").mkdir(parents=True)
    for name in ("tools/demo", "tools/activate"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tools/dev/setup.sh").write_text(f"""set -euo pipefail
ROOT={tmp_path}
VENV={pathlib.Path(sys.executable).parents[1]}
say() {{ printf '== %s\\n' "$*" >&2; }}
ensure_system() {{ :; }}
ensure_venv() {{ :; }}
build() {{ :; }}
""")
    (tmp_path / "python/tessera").symlink_to(ROOT / "python/tessera")
    return tmp_path


def run_demo(checkout, code):
    (checkout / "python/examples/demo.py").write_text(code)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return (
        subprocess.run(
            ["bash", checkout / "tools/demo"], capture_output=True, text=True, env=environment
        ),
        environment,
    )


def test_the_last_line_runs_a_script(checkout):
    result, environment = run_demo(checkout, "import tessera")
    assert result.returncode == 0, result.stderr
    line = result.stderr.splitlines()[-1]
    command = line.split(": ", 1)[1]
    assert command.endswith(" SCRIPT")
    script = checkout / "own.py"
    script.write_text("import tessera, numpy; print(tessera.__file__)")
    run = subprocess.run(
        ["bash", "-c", command.replace("SCRIPT", str(script))],
        capture_output=True,
        text=True,
        env={**environment, "TESSERA_VENV": str(pathlib.Path(sys.executable).parents[1])},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(str(checkout)) or run.stdout.startswith(str(ROOT))


def test_a_demo_that_fails_says_so(checkout):
    result, _ = run_demo(checkout, "raise SystemExit(1)")
    assert result.returncode == 1
    assert "SCRIPT" not in result.stderr
