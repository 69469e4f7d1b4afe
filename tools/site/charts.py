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
_LABEL = 250
_WIDTH = 760


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


def bars(title: str, groups: Sequence[Group], line: float | None = None) -> str:
    """A chart of horizontal bars, as HTML. `line` is a value to be compared with."""
    names = list(dict.fromkeys(bar.who for group in groups for bar in group.bars))
    values = [bar.value for group in groups for bar in group.bars if bar.value is not None]
    top = max([*values, line or 0.0]) or 1.0
    scale = (_WIDTH - _LABEL - 70) / top
    y = 34.0
    parts: list[str] = []
    for group in groups:
        measured = [bar for bar in group.bars if bar.value is not None]
        middle = y + _ROW * len(measured) / 2 + 4
        parts.append(
            f'<text x="{_LABEL - 10}" y="{middle:.0f}" text-anchor="end">{html.escape(group.label)}</text>'
        )
        for bar in measured:
            assert bar.value is not None
            kind = names.index(bar.who)
            width = max(bar.value * scale, 1.0)
            shown = f"{bar.value:.2f}" if top < 20 else f"{bar.value:,.0f}"
            parts.append(
                f'<rect class="bar{kind}" x="{_LABEL}" y="{y:.0f}" width="{width:.1f}" '
                f'height="{_ROW - 3}" rx="2"><title>{html.escape(bar.who)}: {shown}</title></rect>'
            )
            parts.append(
                f'<text class="value" x="{_LABEL + width + 6:.1f}" y="{y + _ROW - 6:.0f}">{shown}</text>'
            )
            y += _ROW
        y += _GAP
    if line is not None:
        x = _LABEL + line * scale
        parts.append(
            f'<line class="level" x1="{x:.1f}" x2="{x:.1f}" y1="28" y2="{y - _GAP + 4:.0f}"/>'
        )
    x = _LABEL
    for kind, name in enumerate(names):
        parts.append(f'<rect class="bar{kind}" x="{x}" y="8" width="12" height="12" rx="2"/>')
        parts.append(f'<text x="{x + 17}" y="18">{html.escape(name)}</text>')
        x += 36 + 7 * len(name)
    return (
        f'<figure class="chart"><svg viewBox="0 0 {_WIDTH} {y:.0f}" role="img" '
        f'aria-label="{html.escape(title)}">{"".join(parts)}</svg>'
        f"<figcaption>{html.escape(title)}</figcaption></figure>"
    )
