# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that the tests start find the same tessera as the tests."""

from __future__ import annotations

import os
from pathlib import Path

_PYTHON = str(Path(__file__).resolve().parents[1])
if _PYTHON not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [_PYTHON, os.environ.get("PYTHONPATH", "")])
    )
