# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The remarks that the page about fast matmul explains are those that the compiler makes."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs" / "HowTo" / "FastMatmul.md"
ROWS = PAGE.read_text().split("| remark | what helps |")[1].splitlines()[2:]
QUOTED = [
    quoted.strip()
    for row in ROWS
    if row.startswith("|")
    for quoted in re.findall(r"``(.+?)``|`(.+?)`", row.split("|")[1])
    for quoted in quoted
    if quoted
]


@pytest.fixture(scope="module")
def sources() -> str:
    files = [path for path in (ROOT / "lib").rglob("*.cpp")]
    text = "".join(path.read_text() for path in files)
    # A word that is a value, too, and one literal after the other.
    text = re.sub(r'named\("\w+", StringRef\("([^"]*)"\)\)', r'"\1"', text)
    return re.sub(r'"(\s|<<)*"', "", text)


@pytest.mark.parametrize("quoted", QUOTED)
def test_it_is_in_the_compiler(quoted, sources):
    if quoted.startswith("wgmma.mma_async"):
        pytest.skip("ptxas says it: see runtime/test_remarks.py")
    # What stands between is put together: numbers, reasons, what is left out.
    for piece in re.split(r"\d+ |\d+$|: |\.\.\.|mma\.sync|wgmma|(?<=bounds of the loop) ", quoted):
        assert piece.strip() in sources


def test_there_are_remarks():
    assert len(QUOTED) > 12
