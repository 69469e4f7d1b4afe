# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/Errors.md has every id that the sources use, no other, and no id twice."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def rows() -> list[list[str]]:
    """Id, meaning and fix of each line of the tables."""
    text = (ROOT / "docs" / "Errors.md").read_text()
    lines = re.findall(r"^\| (E\d{3} \|.*) \|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def used() -> set[str]:
    """The ids in the sources. E000 stands for an error that has none."""
    found = set()
    for folder, pattern in (("python/tessera", "*.py"), ("lib", "*.cpp"), ("include", "*.h")):
        for path in (ROOT / folder).rglob(pattern):
            found |= set(re.findall(r"\bE\d{3}\b", path.read_text()))
    return found - {"E000"}


def test_every_id_is_documented() -> None:
    assert used() == {row[0] for row in rows()}


def test_ids_are_in_order() -> None:
    ids = [row[0] for row in rows()]
    assert ids == sorted(set(ids))


def test_every_id_has_a_meaning_and_a_fix() -> None:
    assert [row for row in rows() if len(row) != 3 or not all(row)] == []
