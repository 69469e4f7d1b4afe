# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of the package `triton`; the checks are in surface.py, run by one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SURFACE = Path(__file__).with_name("surface.py")
CHECKS = re.findall(r"^def (check_\w+)", SURFACE.read_text(), re.M)


@pytest.fixture(scope="module")
def done():
    pytest.importorskip("torch")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRITON_")}
    environment.pop("TESSERA_CACHE_DIR", None)
    return subprocess.run(
        [sys.executable, str(SURFACE)],
        env={**environment, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("check", CHECKS)
def test_surface(check, done):
    assert check in done.stdout.split(), done.stderr[-3000:]
