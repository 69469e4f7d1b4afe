# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page about remarks lists the kinds and the values that the compiler has."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "Remarks.md").read_text()
ROWS = [row.split("|") for row in PAGE.split("|---|---|---|\n")[1].splitlines() if row[:1] == "|"]


def test_kinds():
    source = (ROOT / "lib" / "Support" / "Remark.cpp").read_text()
    kinds = re.findall(r'\{RemarkKind::\w+, "([^"]+)"\}', source)
    assert kinds == [kind for row in ROWS for kind in re.findall(r"`([^`]+)`", row[1])]


def test_values():
    sources = "".join(path.read_text() for path in (ROOT / "lib").rglob("*.cpp"))
    emitted = re.findall(r'\bnamed\("(\w+)"', sources)
    assembled = (ROOT / "lib" / "Compiler" / "CUDACompilation.cpp").read_text()
    emitted += re.findall(r'\{"(\w+)", (?:int64_t|other|chosen|reason)', assembled)
    listed = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[3])}
    assert listed == set(emitted)
