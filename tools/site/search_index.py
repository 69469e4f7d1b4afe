# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The index of the search, made of the pages as they were built, and searches that must succeed.

The index is a script, which a browser loads from a disk as well as from a server. static/search.js
ranks the results; Node runs the same file here.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser

INDEX = "_static/search_index.js"
PROGRAM = pathlib.Path(__file__).parent / "static" / "search.js"

# The weight of a page, by the beginning of its path; the first match counts. Pages for users rank
# before those on the compiler, and these before records of work.
WEIGHTS = {
    "source/": 0.0, "genindex": 0.0, "py-modindex": 0.0, "search.": 0.0, "index.": 0.0, "docs/benchmarks/": 0.0,
    "notes/": 0.2, "CHANGELOG": 0.25, "docs/Decisions/": 0.4, "docs/Dialects/": 0.4,
    "docs/Passes/": 0.4, "docs/Conformance": 0.4, "docs/Asked": 0.5, "docs/Architecture": 0.5, "docs/Testing": 0.5,
    "docs/Style": 0.5, "docs/Limits": 0.6, "docs/Status": 0.7, "docs/Pipeline": 0.7, "CONTRIBUTING": 0.7,
    "docs/HowTo/": 1.3, "docs/Tutorial": 1.2, "README": 1.2, "docs/Debugging": 1.2,
}  # fmt: skip

# Searches of readers, each with a page that must be among the first ten results.
SEARCHES = {
    "speed up": "docs/HowTo/TuneAKernel.html",
    "clip": "docs/Language/Maths.html",
    "nsight": "docs/HowTo/Profile.html",
    "profile": "docs/HowTo/Profile.html",
    "reduce": "docs/Language/ReductionsAndScans.html",
    "install": "README.html",
    "torch.compile": "docs/HowTo/TorchCompile.html",
    "wrong result": "docs/Debugging.html",
    "autotune": "docs/HowTo/TuneAKernel.html",
    "tl.load": "docs/Language/Memory.html",
    "E030": "docs/Errors.html",
    "TESSERA_LOG": "docs/Debugging.html",
    "matmul": "docs/HowTo/FastMatmul.html",
}
FIRST_PAGE = 10


class _Article(HTMLParser):
    """Reads the parts of a page: its sections, and the entries of its names."""

    _LONG = 3000  # code beyond is a stage of the compiler, in whose words nobody is interested

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[tuple[str, list[str], list[str]]] = []
        """Anchor, words of the heading, and of the text."""
        self._inside = False
        self._heading = ""
        self._hidden = ""
        self._code: list[str] | None = None
        self._section = ""

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        kind = given.get("class") or ""
        if tag == "article":
            self._inside = True
        if not self._inside or self._hidden:
            return
        if tag in ("p", "li", "td", "th", "dd", "pre", "div", "br"):
            self.handle_data(" ")
        if tag == "section":
            self._section = given.get("id") or ""
        if re.fullmatch(r"h[1-6]", tag):
            self._heading = tag
            self.parts.append((self._section, [], []))
        elif tag == "dt" and "sig-object" in kind and given.get("id"):
            self.parts.append((given["id"] or "", [given["id"] or ""], []))
        elif tag == "pre":
            self._code = []
        elif tag in ("svg", "script", "style") or "headerlink" in kind:
            self._hidden = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""
        elif tag == self._heading:
            self._heading = ""
        elif tag == "pre" and self._code is not None:
            code, self._code = "".join(self._code), None
            if len(code) <= self._LONG:
                self.handle_data(code)
        elif tag == "article":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if not self._inside or self._hidden or not self.parts:
            return
        if self._code is not None:
            self._code.append(data)
        else:
            _, heading, text = self.parts[-1]
            (heading if self._heading else text).append(data)


def weight(path: str) -> float:
    """How much the results on a page count; 0 of one that is not searched."""
    return next((value for start, value in WEIGHTS.items() if path.startswith(start)), 1.0)


def read(folder: pathlib.Path, others: Mapping[str, str]) -> dict[str, list[list[object]]]:
    """The index of a site: pages (path, title, weight), and parts (number of the page, anchor,
    heading, other names of what it describes, text)."""
    pages: list[list[object]] = []
    parts: list[list[object]] = []
    for file in sorted(folder.rglob("*.html")):
        path = file.relative_to(folder).as_posix()
        counts = weight(path)
        article = _Article()
        if counts:
            article.feed(file.read_text())
        if not article.parts:
            continue
        for number, (anchor, heading, text) in enumerate(article.parts):
            name = " ".join("".join(heading).split())
            called = others.get(anchor, "")
            words = " ".join("".join(text).split())
            parts.append([len(pages), anchor if number else "", name, called, words])
        pages.append([path, " ".join("".join(article.parts[0][1]).split()), counts])
    return {"pages": pages, "parts": parts}


def other_names() -> dict[str, str]:
    """The names of NumPy, torch and CUDA for a name of the language, by its anchor."""
    from tessera.language import other_names as table

    found: dict[str, str] = {}
    for names, text in table._FUNCTIONS.items():
        for name in re.findall(r"\btl\.(\w+)", text):
            anchor = f"tessera.language.{name}"
            found[anchor] = f"{found.get(anchor, '')} {names}".strip()
    return found


def write(folder: pathlib.Path) -> None:
    """Makes the index of a site beside its pages."""
    index = json.dumps(read(folder, other_names()), ensure_ascii=False, separators=(",", ":"))
    (folder / INDEX).write_text(f"const searchIndex = {index};\n")


def found(folder: pathlib.Path, queries: Sequence[str]) -> list[list[str]] | None:
    """The pages that each search gives, best first; None without Node."""
    node = shutil.which("node")
    if node is None:
        return None
    call = f"{json.dumps(list(queries))}.map((query) => search(searchIndex, query).map((page) => page.path))"
    program = (folder / INDEX).read_text() + PROGRAM.read_text()
    program += f"\nprocess.stdout.write(JSON.stringify({call}));\n"
    out = subprocess.run([node, "-"], input=program, capture_output=True, text=True, check=True)
    pages: list[list[str]] = json.loads(out.stdout)
    return pages


def missed(folder: pathlib.Path) -> list[str]:
    """Searches that do not give the page they should among the first."""
    results = found(folder, list(SEARCHES))
    if results is None:
        print("searches were not tried: node is not on PATH (Debian: apt-get install nodejs)")
        return []
    return [
        f"a search for `{query}` does not lead to {page}, but to {', '.join(pages[:3]) or 'nothing'}"
        for (query, page), pages in zip(SEARCHES.items(), results)
        if page not in pages[:FIRST_PAGE]
    ]
