# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pages the site has, and in which order they stand at its side.

A page that nobody has put anywhere stands under "More": a new file in docs/ is on the site
without a change here.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
from collections.abc import Iterator, Sequence

import markdown

ROOT = markdown.ROOT

# Titles of chapters, and pages or folders (with a slash) or patterns in them.
CHAPTERS: Sequence[tuple[str, Sequence[str]]] = [
    ("Start", ["docs/Tutorial*.md", "docs/Tutorial/", "docs/Gallery/index.md", "docs/HowTo/"]),
    (
        "Reference",
        [
            "docs/Language.md", "docs/API/", "docs/Errors.md", "docs/Debugging.md", "docs/Numerics.md",
            "docs/Glossary.md",
        ],
    ),
    (
        "How good it is",
        ["docs/Status.md", "docs/Limits.md", "docs/Asked.md", "docs/Benchmarks.md", "docs/Conformance.md"],
    ),
    (
        "Inside",
        [
            "docs/Architecture.md", "docs/Pipeline.md", "docs/Dialects/", "docs/Passes/",
            "docs/Decisions/", "docs/Testing.md", "docs/Style.md", "docs/Notebook.md",
        ],
    ),
    ("The project", ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]),
    ("More", ["*"]),
]  # fmt: skip

_FOLDERS = {
    "docs/HowTo": "How to",
    "docs/API": "API",
    "docs/Dialects": "Dialects",
    "docs/Passes": "Passes",
    "docs/Decisions": "Decisions",
    "docs/Tutorial": "Tutorial",
}


def own_pages() -> list[str]:
    """The Markdown of the project that is for readers: docs/ and what lies beside README."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(
        path
        for path in set(out.splitlines())
        if (ROOT / path).exists()
        and path != "README.md"
        and (path.startswith("docs/") or "/" not in path)
    )


def chosen(pages: set[str]) -> list[tuple[str, list[str]]]:
    """The pages of each chapter; those of folders are on the folder's own page."""
    left = sorted(page for page in pages if page != "index.md" and not page.startswith("source/"))
    folders = {f"{folder}/index.md" for folder in _FOLDERS}
    left = [page for page in left if page not in folders]
    chapters = []
    for title, patterns in CHAPTERS:
        found: list[str] = []
        for pattern in patterns:
            if pattern.endswith("/"):
                inside = [page for page in left if page.startswith(pattern)]
                if inside:
                    found.append(f"{pattern}index.md")
            else:
                inside = [page for page in left if pathlib.PurePath(page).match(pattern)]
                inside = [page for page in inside if pattern != "*" or not nested(page)]
                found += inside
            left = [page for page in left if page not in inside and not beside(page, pattern)]
        if found:
            chapters.append((title, found))
    return chapters


def nested(page: str) -> bool:
    """Whether a page is listed by the index of its folder."""
    return page.startswith(("docs/Gallery/", "docs/Language/"))


def beside(page: str, pattern: str) -> bool:
    return pattern.endswith("index.md") and page.startswith(pattern.removesuffix("index.md"))


def index(pages: set[str]) -> str:
    """The first page: README, then the chapters (for the side alone)."""
    lines = [(ROOT / "README.md").read_text(), ""]
    for title, found in chosen(pages):
        lines += ["```{toctree}", ":hidden:", f":caption: {title}", ""]
        lines += [page.removesuffix(".md") for page in found]
        lines += ["```", ""]
    return "\n".join(lines)


def chapters(pages: set[str]) -> Iterator[tuple[str, str]]:
    """The pages of folders: each has the titles of what is in it."""
    for folder, title in _FOLDERS.items():
        inside = sorted(
            page
            for page in pages
            if os.path.dirname(page) == folder and not page.endswith(("/index.md", "/README.md"))
        )
        if not inside:
            continue
        own = f"{folder}/index.md"
        if own in pages:
            continue
        readme = f"{folder}/README.md"
        head = (ROOT / readme).read_text() if readme in pages else f"# {title}\n"
        lines = [head, ""]
        if readme in pages:
            inside = [readme, *inside]
            lines = [f"# {title}", ""]
        lines += ["```{toctree}", ":maxdepth: 1", ""]
        lines += [os.path.basename(page).removesuffix(".md") for page in in_order(folder, inside)]
        lines += ["```", ""]
        yield own, "\n".join(lines)


_ORDER = {
    "docs/API": ["Host", "Kernels", "Options", "Settings", "Tuning", "Testing", "Simulator"],
    "docs/HowTo": ["ComingFromTriton", "RunTritonCode", "ComingFromNumbaAndCUDA", "RunOnAGPU"],
    "docs/Dialects": ["Tile", "Strips", "TileGPU"],
    "docs/Passes": ["DialectTileTransforms", "ConversionTileToStrips", "ConversionTileToTileGPU",
                    "DialectTileGPUTransforms", "ConversionTileGPUToLLVM"],
}  # fmt: skip


def in_order(folder: str, pages: Sequence[str]) -> list[str]:
    """The pages that come first, then the others by name."""
    first = _ORDER.get(folder, [])

    def key(page: str) -> tuple[int, str]:
        stem = pathlib.PurePath(page).stem
        return first.index(stem) if stem in first else len(first), stem

    return sorted(pages, key=key)


def title_of(text: str) -> str:
    """The first heading of a page."""
    match = re.search(r"^# (.*)$", text, re.MULTILINE)
    return match[1] if match else ""
