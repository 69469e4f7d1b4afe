# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What README.md shows of the benchmarks: a chart that draws, and a table that hides no loss."""

from __future__ import annotations

import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

from . import letters

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/dev"))

import speed_summary  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def table() -> list[list[str]]:
    text = (ROOT / "README.md").read_text().split("<!-- speed -->")[1].split("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return [row for row in rows[3:] if len(row) == 4 and row[1]]


def test_bold_is_what_is_slower():
    for work, ours, other, ratios in table():
        for ratio in ratios.split("; "):
            assert ratio.startswith("**") == (float(ratio.strip("*")) < 0.995), work


def test_rows_of_cpus_have_a_ratio_on_each():
    figures = json.loads((ROOT / f"docs/benchmarks/{speed_summary.SECOND_CPU}.json").read_text())
    there = {row["work"]: row["ratio"] for row in figures["rows"]}
    rows = {row[0]: row[3].replace("*", "").split("; ") for row in table()}
    for work, text in speed_summary.CPU_TABLE.items():
        assert rows[text][1:] == [f"{there[work]:.2f}"], work
    assert {len(ratios) for work, ratios in rows.items()} == {1, 2}


def test_ratios_are_those_of_the_figures():
    for work, ours, other, ratio in table():
        mine, unit = ours.split(" ", 1)
        number, other_unit = other.split(", ")[1].split(" ", 1)
        assert unit == other_unit
        quotient = float(mine) / float(number)
        expected = quotient if unit == "TFLOP/s" else 1 / quotient
        # Both were rounded to be shown.
        assert abs(float(ratio.split("; ")[0].strip("*")) / expected - 1) < 0.05, work


def test_losses_are_shown():
    """The worst row of each list of docs/Benchmarks.md is in the table of README.md."""
    works = [row[0] for row in table()]
    for work in ("matmul tf32", "sum over columns f16", "scatter-add f32", "matmul int8"):
        assert any(row.startswith(work) for row in works), work
    assert len([row for row in table() if row[3].startswith("**")]) >= 5


def test_the_chart():
    root = ElementTree.parse(ROOT / "docs/images/speed.svg").getroot()
    width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
    bars = [rect for rect in root.iter(f"{SVG}rect") if rect.attrib["height"] != "12"]
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert len(bars) == len([text for text in texts if re.fullmatch(r"\d\.\d\d", text)]) > 20
    for bar in bars:
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) < width
        assert float(bar.attrib["y"]) + float(bar.attrib["height"]) < height


def test_texts_of_the_chart_lie_in_it():
    root = ElementTree.parse(ROOT / "docs/images/speed.svg").getroot()
    right = float(root.attrib["viewBox"].split()[2])
    bars = min(float(rect.attrib["x"]) for rect in root.iter(f"{SVG}rect"))
    for text in root.iter(f"{SVG}text"):
        size = float(text.attrib.get("font-size", root.attrib["font-size"]))
        width = letters.width(text.text, size, text.attrib.get("font-weight") == "bold")
        x = float(text.attrib["x"])
        if text.attrib.get("text-anchor") == "end":
            assert x - width > (0 if x < bars else bars), text.text
        else:
            assert x + width < right, text.text


def test_the_chart_suits_white_and_dark_pages():
    """It has no background, and each colour has a contrast of 2.5 with white and with black."""
    text = (ROOT / "docs/images/speed.svg").read_text()
    colours = set(re.findall(r'"#(\w{6})"', text))
    assert len(colours) == 3
    for colour in colours:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        assert 1.05 / (light + 0.05) > 2.5 and (light + 0.05) / 0.05 > 2.5
