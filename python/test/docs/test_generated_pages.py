# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The generated pages of docs/ are what the code says today."""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_pages_are_up_to_date():
    result = subprocess.run(
        [sys.executable, ROOT / "tools/dev/generate_docs.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
