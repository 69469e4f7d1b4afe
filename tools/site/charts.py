# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bar charts as SVG in the page: they have the page's colours and font, light or dark.

Lengths are numbers of the raw figures, never pictures of them, so a chart cannot be older
than its table.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

_ROW = 17
_GAP = 12
_BARS = 440  # the longest bar
_VALUE = 70  # room for its number
_LETTER = 6.6  # of a label, about


@dataclasses.dataclass(frozen=True)
class Bar:
    """One line of a chart: who, how much; None where it was not measured."""

    who: str
    value: float | None


@dataclasses.dataclass(frozen=True)
class Group:
    """What was measured, and a bar for each who did it."""

    label: str
    bars: Sequence[Bar]


def bars(
    title: str, groups: Sequence[Group], line: float | None = None, most: float | None = None
) -> str:
    """A chart of horizontal bars, as HTML. `line` is a value to be compared with. Bars of more than
    `most` are cut there, which their numbers show."""
    names = list(dict.fromkeys(bar.who for group in groups for bar in group.bars))
    values = [bar.value for group in groups for bar in group.bars if bar.value is not None]
    largest = max([*values, line or 0.0]) or 1.0
    top = min(largest, most or largest)
    left = int(max(len(group.label) for group in groups) * _LETTER) + 24
    width = left + _BARS + _VALUE
    scale = _BARS / top
    y = 34.0
    parts: list[str] = []
    for group in groups:
        measured = [bar for bar in group.bars if bar.value is not None]
        middle = y + _ROW * len(measured) / 2 + 4
        label = html.escape(group.label)
        parts.append(f'<text x="{left - 10}" y="{middle:.0f}" text-anchor="end">{label}</text>')
        for bar in measured:
            assert bar.value is not None
            kind = names.index(bar.who)
            length = max(min(bar.value, top) * scale, 1.0)
            shown = f"{bar.value:.2f}" if top < 20 else f"{bar.value:,.0f}"
            if bar.value > top:
                shown += " »"
            parts.append(
                f'<rect class="bar{kind}" x="{left}" y="{y:.0f}" width="{length:.1f}" '
                f'height="{_ROW - 3}" rx="2"><title>{html.escape(bar.who)}: {shown}</title></rect>'
            )
            at = left + length + 6
            parts.append(f'<text class="value" x="{at:.1f}" y="{y + _ROW - 6:.0f}">{shown}</text>')
            y += _ROW
        y += _GAP
    if line is not None:
        x = left + line * scale
        end = y - _GAP + 4
        parts.append(f'<line class="level" x1="{x:.1f}" x2="{x:.1f}" y1="28" y2="{end:.0f}"/>')
    at = 10
    for kind, name in enumerate(names):
        parts.append(f'<rect class="bar{kind}" x="{at}" y="8" width="12" height="12" rx="2"/>')
        parts.append(f'<text x="{at + 17}" y="18">{html.escape(name)}</text>')
        at += 36 + 7 * len(name)
    return (
        f'<figure class="chart"><svg viewBox="0 0 {width} {y:.0f}" role="img" '
        f'aria-label="{html.escape(title)}">{"".join(parts)}</svg>'
        f"<figcaption>{html.escape(title)}</figcaption></figure>"
    )
