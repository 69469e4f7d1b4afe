# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/Testing.md has, for each pass, a mistake that a fuzzer finds, or that it only translates."""

from __future__ import annotations

import re
from collections import Counter

from docs.pages import ROOT
from tessera.testing.fuzz.generate import KINDS

SECTION = "### Passes and the mistakes that were planted in them\n"


def section() -> tuple[list[list[str]], list[str]]:
    """The rows of the table, by cells, and the names in the sentences behind it."""
    text = (ROOT / "docs" / "Testing.md").read_text().split(SECTION)[1]
    text = text.split("`python/test/docs/test_passes_and_mistakes.py`")[0]
    lines = text.splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    behind = text.split(rows[-1])[1]
    return cells, re.findall(r"`([\w-]+)`", behind)


def passes() -> set[str]:
    texts = [path.read_text() for path in (ROOT / "include").rglob("Passes.td")]
    names = re.findall(r':\s*Pass<"([\w-]+)"', "".join(texts))
    assert len(names) > 50 and len(names) == sum(text.count("let summary") for text in texts)
    return set(names)


def test_every_pass_has_a_mistake_or_only_translates():
    rows, translate = section()
    moved = {row[0].strip("`") for row in rows}
    assert not moved & set(translate)
    assert moved | set(translate) == passes()
    assert max(Counter(translate).values()) == 1


def test_every_row_is_whole():
    rows, _ = section()
    for row in rows:
        assert len(row) == 5 and all(row), row
        kinds = set(re.findall(r"`(\w+)`", row[3]))
        assert kinds <= set(KINDS) and bool(kinds) == (row[3] != "none"), row
        # A mistake that a fuzzer was seen to find has a kernel or a number of them.
        if kinds:
            assert re.search(r"\d", row[4]), row
