# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/Errors.md has every id that the sources use, and no id twice."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def documented() -> list[str]:
    return re.findall(r"^\| (E\d{3}) \|", (ROOT / "docs" / "Errors.md").read_text(), re.MULTILINE)


def test_every_id_is_documented() -> None:
    used = set()
    for folder, pattern in (("python/tessera", "*.py"), ("lib", "*.cpp"), ("include", "*.h")):
        for path in (ROOT / folder).rglob(pattern):
            used |= set(re.findall(r'"(E0\d\d)"', path.read_text()))
    assert used - {"E000"} <= set(documented())


def test_ids_are_in_order() -> None:
    assert documented() == sorted(set(documented()))
