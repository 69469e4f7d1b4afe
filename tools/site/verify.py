# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds mistakes in the pages of a built site, not in their sources."""

from __future__ import annotations

import dataclasses
import html
import pathlib
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

import error_ids

_TAG = re.compile(r"<([a-zA-Z][\w-]*)((?:\s+[^\s=<>]+(?:=(?:\"[^\"]*\"|'[^']*'|[^\s>]+))?)*)\s*/?>")
_ATTRIBUTE = re.compile(r"([^\s=<>\"']+)=(?:\"([^\"]*)\"|'([^']*)')")
_HEADING = re.compile(r"<h[1-6][^>]*>(.*?)</h[1-6]>", re.DOTALL)
_ELSEWHERE = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
_LOADED = re.compile(r"url\(\s*['\"]?(?:[a-z]+:)?//|@import\s+['\"]?(?:url\()?['\"]?(?:[a-z]+:)?//")


@dataclasses.dataclass
class Page:
    """The parts of a page that other pages refer to, and its links."""

    ids: set[str]
    links: list[str]
    loads: list[str]
    """What a browser fetches for the page: scripts, styles, pictures."""
    headings: list[str]


def read(text: str) -> Page:
    """The page of an HTML file."""
    page = Page(set(), [], [], [])
    for match in _TAG.finditer(text):
        tag = match[1].lower()
        if not match[2]:
            continue
        given = {name.lower(): html.unescape(a or b) for name, a, b in _ATTRIBUTE.findall(match[2])}
        if "id" in given:
            page.ids.add(given["id"])
        if tag == "a":
            if "name" in given:
                page.ids.add(given["name"])
            if "href" in given:
                page.links.append(given["href"])
        elif tag == "link":
            # Links to the page itself (canonical, next) are not followed.
            if given.get("rel") in (
                "stylesheet",
                "icon",
                "preload",
                "modulepreload",
                "shortcut icon",
            ):
                page.loads.append(given.get("href", ""))
        elif "src" in given:
            page.loads.append(given["src"])
    page.headings = [
        html.unescape(re.sub(r"<[^>]+>", "", inner.split('<a class="headerlink"')[0])).strip()
        for inner in _HEADING.findall(text)
    ]
    return page


def read_site(folder: pathlib.Path) -> dict[str, Page]:
    """Every page by its path."""
    return {
        path.relative_to(folder).as_posix(): read(path.read_text())
        for path in sorted(folder.rglob("*.html"))
    }


def broken_links(folder: pathlib.Path, pages: Mapping[str, Page]) -> list[str]:
    """Links to pages, files or anchors of the site that are not there."""
    found = []
    for name, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            target = (pathlib.PurePosixPath(name).parent / path).as_posix() if path else name
            target = _normal(target)
            if not (folder / target).exists():
                found.append(f"{name}: nothing is at {link}")
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].ids:
                    found.append(f"{name}: no anchor {link}")
    return found


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def fetched(folder: pathlib.Path, pages: Mapping[str, Page]) -> list[str]:
    """The resources that the site would load from other sites."""
    found = [
        f"{name}: loads {link} from elsewhere"
        for name, page in pages.items()
        for link in page.loads
        if _ELSEWHERE.match(link)
    ]
    for path in sorted(folder.rglob("*.css")):
        for match in _LOADED.finditer(path.read_text()):
            found.append(f"{path.relative_to(folder)}: loads {match[0]}...")
    return found


def missing_ids(pages: Mapping[str, Page], ids: Iterable[str]) -> list[str]:
    """Ids of errors that have no anchor on the page of the errors."""
    page = pages.get(f"{error_ids.PAGE}.html")
    there = page.ids if page else set()
    return [f"error {id} has no anchor #{id.lower()}" for id in ids if id.lower() not in there]


def missing_names(pages: Mapping[str, Page], names: Iterable[str]) -> list[str]:
    """Public names without an entry of the reference."""
    there = {id for name, page in pages.items() if "source/" not in name for id in page.ids}
    return [f"{name} has no entry in the reference" for name in names if name not in there]


def missing_headings(pages: Mapping[str, Page], folder: str, names: Iterable[str]) -> list[str]:
    """Names (of ops, of passes) that no page of a folder has as a heading."""
    there = {
        heading
        for name, page in pages.items()
        if name.startswith(folder)
        for heading in page.headings
    }
    return [f"{name} has no section in {folder}" for name in names if name not in there]


def problems(folder: pathlib.Path) -> list[str]:
    """Everything that is wrong with the site in a folder."""
    import api_pages
    import dialects
    import search_index

    pages = read_site(folder)
    errors = error_ids.ids((error_ids.ROOT / "docs/Errors.md").read_text())
    return [
        *broken_links(folder, pages),
        *fetched(folder, pages),
        *missing_ids(pages, errors),
        *missing_names(pages, api_pages.required_names()),
        *missing_headings(pages, "docs/Dialects/", sorted(dialects.op_names())),
        *missing_headings(pages, "docs/Passes/", sorted(dialects.pass_flags())),
        *search_index.missed(folder),
    ]
