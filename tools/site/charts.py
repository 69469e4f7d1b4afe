# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bar charts as SVG in the page: they have the page's colours and font, light or dark.

Lengths are numbers of the raw figures, never pictures of them, so a chart cannot be older
than its table. Letters keep their size on a phone: the picture is as wide as the page, and bars
are parts of that width. Labels stand above their bars, in several lines where one is too short.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

NARROWEST = 320
"""The width in pixels in which a chart is still whole: a phone's 360, less the page's margins."""
SIZE = 13
"""The size of letters in pixels, as site.css has it."""

_LINE = 16
_MARGIN = 2  # strokes of a letter may begin before its place
_ROW = 17
_GAP = 10
_LONGEST = 80  # the longest bar, in percent; its number stands beside it


@dataclasses.dataclass(frozen=True)
class Bar:
    """One line of a chart: who, how much; None where it was not measured."""

    who: str
    value: float | None


@dataclasses.dataclass(frozen=True)
class Group:
    """A measurement, with a bar for each contestant."""

    label: str
    bars: Sequence[Bar]


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The most pixels that a text takes in the fonts that browsers have, of which DejaVu Sans and
    Verdana are the widest."""
    ems = 0.0
    for letter in text:
        if letter in "fijlrtI.,:;'|!()[]/- ²":
            ems += 0.46
        elif letter in "mwMW%@#&+<=>^~" or letter > "~":
            ems += 1.0
        else:
            ems += 0.79 if letter.isupper() else 0.65
    return ems * size * (1.14 if bold else 1)


def in_lines(text: str, width: float) -> list[str]:
    """A label, broken at spaces where it is wider than `width` pixels."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and text_width(f"{lines[-1]} {word}", SIZE) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def bars(
    title: str, groups: Sequence[Group], line: float | None = None, most: float | None = None
) -> str:
    """A chart of horizontal bars, as HTML. `line` is a value to be compared with. Bars of more than
    `most` are cut there, which their numbers show."""
    names = list(dict.fromkeys(bar.who for group in groups for bar in group.bars))
    values = [bar.value for group in groups for bar in group.bars if bar.value is not None]
    largest = max([*values, line or 0.0]) or 1.0
    top = min(largest, most or largest)
    y = 0.0
    parts: list[str] = []
    for group in groups:
        for text in in_lines(group.label, NARROWEST - 2 * _MARGIN):
            y += _LINE
            parts.append(f'<text x="{_MARGIN}" y="{y - 4:.0f}">{html.escape(text)}</text>')
        first = y
        numbers: list[str] = []
        for bar in group.bars:
            if bar.value is not None:
                rect, number = _bar(bar, names.index(bar.who), y, top)
                parts.append(rect)
                numbers.append(number)
                y += _ROW
        if line is not None:
            x = f"{line / top * _LONGEST:.2f}%"
            parts.append(
                f'<line class="level" x1="{x}" x2="{x}" y1="{first - 1:.0f}" y2="{y - 2:.0f}"/>'
            )
        parts += numbers
        y += _GAP
    keys = "".join(
        f'<span><i class="bar{kind}"></i>{html.escape(name)}</span>'
        for kind, name in enumerate(names)
    )
    return (
        f'<figure class="chart"><div class="keys">{keys}</div><svg width="100%" height="{y:.0f}" '
        f'role="img" aria-label="{html.escape(title)}">{"".join(parts)}</svg>'
        f"<figcaption>{html.escape(title)}</figcaption></figure>"
    )


def _bar(bar: Bar, kind: int, y: float, top: float) -> tuple[str, str]:
    """A bar that begins at `y`, and its number."""
    assert bar.value is not None
    length = max(min(bar.value, top) / top * _LONGEST, 0.2)
    shown = f"{bar.value:.2f}" if top < 20 else f"{bar.value:,.0f}"
    if bar.value > top:
        shown += " »"
    rect = (
        f'<rect class="bar{kind}" x="0" y="{y:.0f}" width="{length:.2f}%" height="{_ROW - 3}" '
        f'rx="2"><title>{html.escape(bar.who)}: {shown}</title></rect>'
    )
    at = f'x="{length:.2f}%" dx="6" y="{y + _ROW - 6:.0f}"'
    return rect, f'<text class="value" {at}>{shown}</text>'
