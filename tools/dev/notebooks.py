# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The notebooks of docs/Tutorial, made of its pages.

A page is the source of its notebook. Text becomes cells of text, and Python and shell fences become
cells of code. A fence that readers save as a file becomes a cell that writes the file. The page has
what a cell prints, in a fence under `run: output` or `run: measured`, and its plot as an image. Both are
outputs of the cell. run_tutorials.py renews them by a run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/test"))

from docs.pages import SHELLS, Fence, fences_of  # noqa: E402

TUTORIAL = ROOT / "docs/Tutorial"
PICTURE = re.compile(r"!\[([^\]]*)\]\((images/[\w-]+\.svg)\)")
_COMMENT = re.compile(r"<!--\s*run:.*?-->\n*", re.DOTALL)
_CHECKOUT_ONLY = re.compile(r"^source tools/activate\b.*\n", re.MULTILINE)


@dataclasses.dataclass
class Cell:
    """A cell of a notebook: text, or code with what it printed and drew."""

    text: str
    is_code: bool = False
    printed: str = ""
    pictures: list[str] = dataclasses.field(default_factory=list)
    raises: bool = False


def pages() -> list[str]:
    """The pages that are notebooks, by their path in the repository."""
    return [str(path.relative_to(ROOT)) for path in sorted(TUTORIAL.glob("[0-9P]*.md"))]


def code_of(fence: Fence) -> str | None:
    """The code of a fence as a cell has it; None for a fence that is text to a notebook."""
    if fence.output or fence.reason:
        return None
    if fence.file:
        return f"%%writefile {fence.file}\n{fence.text}"
    if fence.label in SHELLS:
        return "%%bash\n" + _CHECKOUT_ONLY.sub("", fence.text)
    return fence.text if fence.label == "python" else None


def cells_of(page: str, text: str) -> list[Cell]:
    """The cells of a page, in its order."""
    lines = text.splitlines()
    cells: list[Cell] = []
    start = 0

    def add_text(end: int) -> None:
        """Adds the lines up to `end` as text; a picture right below code is an output of that code."""
        body = _COMMENT.sub("", "\n".join(lines[start:end])).strip()
        while cells and cells[-1].is_code and (found := PICTURE.match(body)):
            cells[-1].pictures.append(found[2])
            body = body[found.end() :].strip()
        if body:
            cells.append(Cell(body))

    for fence in fences_of(page, text):
        end = fence.line + fence.text.count("\n") + 1  # behind the closing backquotes
        code = code_of(fence)
        if fence.output and cells and cells[-1].is_code:
            add_text(fence.line - 1)
            cells[-1].printed += fence.text
        elif code is not None:
            add_text(fence.line - 1)
            cells.append(Cell(code.rstrip("\n"), is_code=True, raises=bool(fence.raises)))
        else:
            continue
        start = end
    add_text(len(lines))
    return cells


def outputs(cell: Cell) -> list[dict[str, Any]]:
    """The text and the plots of a cell, as a notebook has them."""
    found: list[dict[str, Any]] = []
    if cell.printed:
        found.append(
            {
                "name": "stdout",
                "output_type": "stream",
                "text": cell.printed.splitlines(keepends=True),
            }
        )
    for picture in cell.pictures:
        svg = (TUTORIAL / picture).read_text()
        data = {
            "image/svg+xml": svg.splitlines(keepends=True),
            "text/plain": [f"<{pathlib.Path(picture).stem}>"],
        }
        found.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return found


def notebook(page: str) -> str:
    """The notebook of a page, as JSON."""
    cells: list[dict[str, Any]] = []
    for number, cell in enumerate(cells_of(page, (ROOT / page).read_text())):
        made: dict[str, Any] = {
            "cell_type": "code" if cell.is_code else "markdown",
            "id": hashlib.sha256(f"{number} {cell.text}".encode()).hexdigest()[:8],
            "metadata": {"tags": ["raises-exception"]} if cell.raises else {},
            "source": cell.text.splitlines(keepends=True),
        }
        if cell.is_code:
            made["execution_count"] = None
            made["outputs"] = outputs(cell)
        cells.append(made)
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
