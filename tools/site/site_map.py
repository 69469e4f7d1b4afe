# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages of the site, in the order of its sidebar.

A page without a place here is listed under "More", so a new file in docs/ is on the site without a
change here.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Iterator, Sequence

import landing
import markdown

ROOT = markdown.ROOT

# Titles of chapters, and pages or folders (with a slash) or patterns in them.
CHAPTERS: Sequence[tuple[str, Sequence[str]]] = [
    ("Start", ["README.md", "docs/Tutorial/", "docs/Gallery/index.md", "docs/HowTo/"]),
    (
        "Reference",
        [
            "docs/Language.md", "docs/Ops.md", "docs/HostAPI.md", "docs/API/", "docs/Errors.md", "docs/Debugging.md", "docs/Numerics.md",
            "docs/Remarks.md", "docs/Glossary.md",
        ],
    ),
    (
        "How good it is",
        ["docs/Status.md", "docs/Limits.md", "docs/Asked.md", "docs/Benchmarks.md", "docs/Conformance.md"],
    ),
    (
        "Inside",
        [
            "docs/Architecture.md", "docs/Pipeline.md", "docs/Launch.md", "docs/Dialects/", "docs/Passes/",
            "docs/Decisions/", "docs/Testing.md", "docs/Style.md", "notes/*.md",
        ],
    ),
    ("The project", ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]),
    ("More", ["*"]),
]  # fmt: skip

_FOLDERS = {
    "docs/HowTo": "How to",
    "docs/API": "The API, name by name",
    "docs/Dialects": "Dialects",
    "docs/Passes": "Passes",
    "docs/Decisions": "Decisions",
    "docs/Tutorial": "Tutorial",
}


def own_pages() -> list[str]:
    """The Markdown of the project that is for readers: docs/, notes/ and what lies beside README."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(
        path
        for path in set(out.splitlines())
        if (ROOT / path).exists() and (path.startswith(("docs/", "notes/")) or "/" not in path)
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
                    found.append(head_of(pattern.removesuffix("/"), pages))
            else:
                inside = [page for page in left if page == pattern]
                if "*" in pattern:
                    inside = [page for page in left if pathlib.PurePath(page).match(pattern)]
                inside = [page for page in inside if pattern != "*" or not nested(page)]
                found += inside
            left = [page for page in left if page not in inside and not beside(page, pattern)]
        if found:
            chapters.append((title, found))
    return chapters


def nested(page: str) -> bool:
    """True if the index of its folder lists the page."""
    return page.startswith(("docs/Gallery/", "docs/Language/"))


def beside(page: str, pattern: str) -> bool:
    return pattern.endswith("index.md") and page.startswith(pattern.removesuffix("index.md"))


def index(pages: set[str]) -> str:
    """The first page, then the chapters (for the side alone)."""
    lines = [landing.page(), ""]
    for title, found in chosen(pages):
        lines += ["```{toctree}", ":hidden:", f":caption: {title}", ""]
        lines += [page.removesuffix(".md") for page in found]
        lines += ["```", ""]
    return "\n".join(lines)


def head_of(folder: str, pages: set[str]) -> str:
    """The page of a folder: its README, or a list of its pages."""
    readme = f"{folder}/README.md"
    return readme if readme in pages else f"{folder}/index.md"


def chapters(pages: set[str]) -> Iterator[tuple[str, str]]:
    """The pages of folders: the README with a list of the folder's pages below it, or that list
    alone."""
    for folder, title in _FOLDERS.items():
        head = head_of(folder, pages)
        inside = [page for page in pages if os.path.dirname(page) == folder and page != head]
        if not inside:
            continue
        has_text = head in pages
        lines = [(ROOT / head).read_text() if has_text else f"# {title}", "", "```{toctree}"]
        lines += [":hidden:" if has_text else ":maxdepth: 1", ""]
        lines += [os.path.basename(page).removesuffix(".md") for page in in_order(folder, inside)]
        lines += ["```", ""]
        yield head, "\n".join(lines)


_ORDER = {
    "docs/API": ["Host", "Kernels", "Options", "Settings", "Tuning", "Testing", "Simulator"],
    "docs/HowTo": [
        "LaunchKernels", "CallFromFrameworks", "AheadOfTime", "RunOnAGPU", "SeveralGPUs", "FastMatmul",
        "TuneAKernel", "Profile", "Simulate",
        "ComingFromTriton", "RunTritonCode", "ComingFromNumbaAndCUDA", "FindAWrongPass",
    ],
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
