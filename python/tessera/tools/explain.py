# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tessera explain E022`: prints the meaning of an error's id, and the fix.

The text is the row of docs/Errors.md, which a wheel has as tessera/Errors.md. The example is that
of the site; tools/dev/generate_docs.py writes error_examples.md.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from typing import NamedTuple, Optional, Sequence

__all__ = ["explain"]

_ROW = re.compile(r"^\| (E\d{3}) \| (.*?) \| (.*?) \|$")
_EXAMPLE = re.compile(
    r"^## (E\d{3})\n\nFor example:\n\n(`{3,})python\n(.*?)\n\2\n\n(`{3,})text\n(.*?)\n\4$",
    re.M | re.S,
)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


class _Explanation(NamedTuple):
    chapter: str
    wrong: str
    fix: str


def explain(ids: Sequence[str]) -> int:
    """Prints the meaning of each of `ids`, or of all ids if there is none. Returns 1 if one is
    unknown."""
    known = _read()
    if known is None:
        print(
            "python -m tessera explain: this installation lacks Errors.md; install Tessera again",
            file=sys.stderr,
        )
        return 1
    examples = _read_examples()
    status = 0
    for position, id in enumerate(map(_spelled, ids or known)):
        print(end="\n" if position and id in known else "")
        if id in known:
            print(_shown(id, known[id], examples.get(id)))
            continue
        print(f"python -m tessera explain: no error has the id {id!r}", file=sys.stderr)
        status = 1
    return status


def _read() -> dict[str, _Explanation] | None:
    """The rows of the page by id; None where neither a wheel nor a checkout has brought it."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    checkout = os.path.join(os.path.dirname(os.path.dirname(package)), "docs")
    for folder in (package, checkout):
        path = os.path.join(folder, "Errors.md")
        if os.path.exists(path):
            break
    else:
        return None
    found: dict[str, _Explanation] = {}
    chapter = ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                chapter = line[3:].strip()
            elif match := _ROW.match(line.rstrip("\n")):
                found[match[1]] = _Explanation(chapter, match[2], match[3])
    return found


def _spelled(id: str) -> str:
    """`e22`, `22` and `error[E022]` mean E022."""
    match = re.fullmatch(r"(?:error)?\[?e?(\d{1,3})\]?", id.strip(), re.IGNORECASE)
    return f"E{int(match[1]):03}" if match else id


def _read_examples() -> dict[str, tuple[str, str]]:
    """A kernel with the mistake and what is said of it, by id."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "error_examples.md")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        found = _EXAMPLE.findall(file.read())
    return {id: (kernel, message) for id, _, kernel, _, message in found}


def _shown(id: str, row: _Explanation, example: Optional[tuple[str, str]]) -> str:
    lines = [f"{id} ({row.chapter})"]
    for title, text in (("what is wrong", row.wrong), ("what to do", row.fix)):
        # A wheel lacks the pages that links lead to, so only the text of a link stays.
        plain = _LINK.sub(lambda match: match[1], text)
        lines += textwrap.wrap(
            f"{title}: {plain}", 100, initial_indent="  ", subsequent_indent="    "
        )
    if example is not None:
        kernel, message = (textwrap.indent(text, "    ") for text in example)
        lines += ["  for example:", kernel, "  is refused:", message]
    return "\n".join(lines)
