# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors by id: docs/Errors.md with a heading for each id, and links to it from every page.

On GitHub the page is tables, which are read from top to bottom. On the site each id is a
heading of its own, so that it has an address (`docs/Errors.html#e030`), is found by the
search, and has room for an example.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/Errors"
_ID = re.compile(r"\bE\d{3}\b")
_ROW = re.compile(r"^\| (E\d{3}) \| (.*?) \| (.*?) \|$")


def ids(text: str) -> list[str]:
    """The ids that have a row in the text of docs/Errors.md."""
    return [match[1] for line in text.splitlines() if (match := _ROW.match(line))]


def page(text: str, examples: Mapping[str, str]) -> str:
    """The page with sections for rows, each with its example where there is one (Markdown)."""
    lines: list[str] = []
    for line in text.splitlines():
        match = _ROW.match(line)
        if match:
            id, wrong, fix = match.groups()
            lines += [f"### {id}", "", f"**What is wrong**: {wrong}.", ""]
            lines += [f"**What to do**: {fix}.", ""]
            if id in examples:
                lines += [examples[id], ""]
        elif not re.match(r"^\|( id \||-+\|)", line):
            lines.append(line)
    return "\n".join(lines) + "\n"


def link_ids(app: Any, doctree: Any, docname: str) -> None:
    """Makes a link of each id in running text, on pages other than that of the errors."""
    from docutils import nodes

    if docname == PAGE:
        return
    known = set(app.env.tocs[PAGE].astext().split()) if PAGE in app.env.tocs else set()
    uri = app.builder.get_relative_uri(docname, PAGE)
    passive = (nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.raw)
    for text in list(doctree.findall(nodes.Text)):
        parent = text.parent
        while parent is not None and not isinstance(parent, passive):
            parent = parent.parent
        if parent is not None or not _ID.search(text):
            continue
        parts: list[Any] = []
        end = 0
        for match in _ID.finditer(text):
            if match[0] in known:
                parts.append(nodes.Text(text[end : match.start()]))
                target = f"{uri}#{match[0].lower()}"
                parts.append(nodes.reference("", match[0], internal=True, refuri=target))
                end = match.end()
        if end:
            parts.append(nodes.Text(text[end:]))
            text.parent.replace(text, parts)
