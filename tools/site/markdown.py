# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The project's own Markdown as pages of the site: links that work there and on GitHub alike.

The sources of the site have the folders of the repository, so links between pages need no change.
Other targets of links (a program, a folder) become pages of their own.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A link or an image of one line, its target without a title.
_LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^()\s]+)\)")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_LANGUAGES = {
    ".py": "python", ".cpp": "c++", ".h": "c++", ".td": "tablegen", ".mlir": "mlir", ".sh": "bash",
    ".json": "json", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml", ".c": "c", ".txt": "text",
}  # fmt: skip
_ELSEWHERE = ("http://", "https://", "mailto:", "#")


def fenced(text: str, language: str) -> str:
    """A code block, whatever backticks its text has."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def without_code(text: str) -> str:
    """The lines of a page that are no code, the others empty."""
    lines, fence = [], ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if fence:
            lines.append("")
            if match and match[1].startswith(fence) and not line.strip().strip("`~"):
                fence = ""
        elif match:
            fence = match[1]
            lines.append("")
        else:
            lines.append(line)
    return "\n".join(lines)


class Pages:
    """The sources of the site: pages by their path in the repository."""

    def __init__(self, out: pathlib.Path) -> None:
        self.out = out
        self.families: dict[str, str] = {}
        """Pages for headings of docs/Language.md, by the anchors that GitHub gives them."""
        self.described: dict[str, str] = {}
        """Pages of the reference that stand for source files."""
        self.written: set[str] = set()
        self.problems: list[str] = []
        self._wanted: list[str] = []

    def add(self, path: str, text: str, origin: str = "") -> None:
        """Adds a page; `origin` is the file whose links it has, if that is another."""
        self.written.add(path)
        target = self.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self._with_links(text, origin or path, path))

    def add_file(self, path: str) -> None:
        """Adds a page of the repository as it is."""
        self.add(path, (ROOT / path).read_text())

    def finish(self) -> None:
        """Makes pages of the files and folders that pages link to."""
        done: set[str] = set()
        while self._wanted:
            path = self._wanted.pop()
            if path not in done:
                done.add(path)
                self._add_source(path)

    def _with_links(self, text: str, origin: str, page: str) -> str:
        lines = text.splitlines()
        for number, plain in enumerate(without_code(text).splitlines()):
            if "](" not in plain:
                continue

            def replaced(match: re.Match[str]) -> str:
                target = self._target(match[2], origin, page)
                return f"{self._text(match[1], target, page)}({target})"

            # Text in backticks has no links.
            hidden: list[str] = []

            def hide(match: re.Match[str]) -> str:
                hidden.append(match[0])
                return f"\0{len(hidden) - 1}\0"

            masked = re.sub(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", hide, plain)
            masked = _LINK.sub(replaced, masked)
            lines[number] = re.sub(r"\0(\d+)\0", lambda match: hidden[int(match[1])], masked)
        return "\n".join(lines) + "\n"

    def _text(self, text: str, target: str, page: str) -> str:
        """The text of a link: the title of the page where the text is its path in the repository."""
        if not re.fullmatch(r"\[[\w/]+\.md\]", text):
            return text
        file = ROOT / os.path.normpath(os.path.join(os.path.dirname(page), target))
        title = re.search(r"^# (.*)$", file.read_text(), re.MULTILINE) if file.exists() else None
        return f"[{title[1]}]" if title else text

    def _target(self, link: str, origin: str, page: str) -> str:
        if link.startswith(_ELSEWHERE):
            return link
        path, _, anchor = link.partition("#")
        folder = os.path.dirname(origin)
        wanted = os.path.normpath(os.path.join(folder, path))
        target = self._page_of(wanted)
        if target is None:
            self.problems.append(f"{origin}: there is no {link}")
            return link
        if target == "docs/Language.md" and anchor in self.families:
            # A heading of the page in the repository, and a page of its own here.
            target, anchor = self.families[anchor], ""
        relative = os.path.relpath(target, os.path.dirname(page) or ".")
        return relative + (f"#{anchor}" if anchor else "")

    def _page_of(self, path: str) -> str | None:
        """The page, or the copied file, that stands for something of the repository."""
        if path == ".":
            return "index.md"
        if path in self.described:
            return self.described[path]
        if path in self.written or (ROOT / path).suffix == ".md":
            return path if path in self.written or (ROOT / path).exists() else None
        if path.startswith("..") or not (ROOT / path).exists():
            return None
        if pathlib.Path(path).suffix in (".svg", ".png", ".jpg", ".ipynb"):
            (self.out / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, self.out / path)
            return path
        self._wanted.append(path)
        return source_page(path)

    def _add_source(self, path: str) -> None:
        page = source_page(path)
        if page in self.written:
            return
        lines = ["---", "orphan: true", "nosearch: true", "---", "", f"# `{path}`", ""]
        if (ROOT / path).is_dir():
            for name in tracked(path):
                target = os.path.relpath(self._page_of(name) or name, os.path.dirname(page))
                lines.append(f"- [`{os.path.basename(name)}`]({target})")
        else:
            text = (ROOT / path).read_text(errors="replace")
            shell = text.startswith("#!") and "sh" in text.splitlines()[0]
            language = _LANGUAGES.get(pathlib.Path(path).suffix, "bash" if shell else "text")
            # Highlighting raw figures is useless and takes seconds.
            lines.append(fenced(text, language if len(text) < 40000 else "text"))
        self.written.add(page)
        target_file = self.out / page
        target_file.parent.mkdir(parents=True, exist_ok=True)
        target_file.write_text("\n".join(lines) + "\n")


def source_page(path: str) -> str:
    """Where the page of a file or folder lies that is no Markdown."""
    if (ROOT / path).is_dir():
        index = f"{path}/index.md"
        return index if path.startswith("docs") else f"source/{index}"
    return f"source/{path}.md"


def tracked(folder: str) -> list[str]:
    """The files that git knows directly in a folder, or will once they are committed."""
    command = ["git", "ls-files", "-co", "--exclude-standard", folder]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(
        line
        for line in set(out.splitlines())
        if os.path.dirname(line) == folder and (ROOT / line).exists()
    )
