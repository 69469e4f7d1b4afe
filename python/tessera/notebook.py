# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pieces of HTML that views in notebooks consist of.

All text is escaped: names, remarks and IR may have anything in them.
"""

from __future__ import annotations

from html import escape
from typing import Iterable, Sequence

_MAX_LINES = 1000
"""So many lines of a stage are shown: a page with more of them is slow."""


def facts_html(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in facts
    )
    return f"<table>{rows}</table>"


def table_html(
    head: Sequence[str], rows: Sequence[Sequence[str]], is_bold: Sequence[bool] = ()
) -> str:
    def row(kind: str, cells: Sequence[str], bold: bool = False) -> str:
        shown = (f"<b>{escape(cell)}</b>" if bold else escape(cell) for cell in cells)
        items = (f"<{kind} style='text-align:left'>{cell}</{kind}>" for cell in shown)
        return f"<tr>{''.join(items)}</tr>"

    bold = [*is_bold, *[False] * len(rows)]
    body = "".join(row("td", cells, bold[number]) for number, cells in enumerate(rows))
    return f"<table>{row('th', head)}{body}</table>"


def list_html(title: str, items: Sequence[str]) -> str:
    """Lines to be unfolded; nothing if there are none."""
    lines = "".join(f"<li><code>{escape(item)}</code></li>" for item in items)
    return _folded(f"{title} ({len(items)})", f"<ul>{lines}</ul>") if lines else ""


def stage_html(name: str, content: object) -> str:
    if not isinstance(content, str):
        size = len(content) if isinstance(content, bytes) else 0
        return f"<div><code>{escape(name)}</code>: {size} bytes of machine code</div>"
    lines = content.splitlines()
    text = "\n".join(lines[:_MAX_LINES])
    note = ""
    if len(lines) > _MAX_LINES:
        note = f"<p>{len(lines) - _MAX_LINES} more lines: see <code>.stages[{escape(repr(name))}]</code></p>"
    title = f"<code>{escape(name)}</code> ({len(lines)} lines)"
    box = "max-height:30em;overflow:auto"
    return _folded(title, f"<pre style='{box}'>{escape(text)}</pre>{note}", is_html=True)


def _folded(title: str, body: str, is_html: bool = False) -> str:
    return f"<details><summary>{title if is_html else escape(title)}</summary>{body}</details>"
