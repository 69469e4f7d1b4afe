# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fenced blocks of the project's pages, and how they are run.

A fence is code between lines of three backquotes (or more), with a label that says its
language. The paragraph above it says what a reader does with it:

    Save this as `NAME`:             it is a file, which a later fence uses
    In `FILE`, before `TEXT`:        C++ or TableGen that belongs there, or `after`

HTML comments right above it, which no reader sees, say more:

    <!-- run: alone -->          Python with no names from the fences above it
    <!-- run: raises NAME -->    Python that ends with this exception
    <!-- run: output -->         what the fence above prints; `...` stands for any text
    <!-- run: measured -->       the same, but numbers may be any: times, and what depends on the machine
    <!-- run: no, REASON -->     it is not run
    <!-- run: with               lines of the same language that are run before it; above an
    ...                          output, Python that prints it or ends with it as an error
    -->

README.md, docs/Tutorial and docs/HowTo are run from their visible text alone: `no` and `with` are
refused there, and NOT_RUN lists what is not run. docs/Testing.md tells writers of pages the same.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHELLS = ("bash", "console", "sh")
# What is not code is not run: pictures, tables, what a program prints.
NOT_CODE = ("text",)
LABELS = (
    "asm", "bash", "c", "console", "cpp", "diff", "json", "llvm", "mlir", "ptx", "python", "sh",
    "tablegen", "text", "toml", "yaml",
)  # fmt: skip

# Fences of the pages for readers of which something is not run, by the page and a text of the fence, and
# why. What can be is done: Python is compiled, short commands are run, and long ones looked up.
NOT_RUN = {
    ("README.md", "tools/wheel"): "builds a wheel, and installs it",
    ("README.md", "tools/demo"): "builds the release",
    ("docs/HowTo/AddAGPU.md", "tools/check"): "runs whole suites of tests",
    ("docs/HowTo/AddAPass.md", "tools/check"): "builds, and runs whole suites of tests",
    ("docs/HowTo/AddAnOp.md", "tools/check"): "builds, and runs whole suites of tests",
    ("docs/HowTo/Packaging.md", "pip install ."): "installs system packages, and builds",
    ("docs/HowTo/Packaging.md", "tools/wheel --tools"): "builds wheels",
    ("docs/HowTo/Packaging.md", "--headers"): "downloads a system, and builds wheels",
    ("docs/HowTo/Packaging.md", "--for-tessera"): "downloads a system, and builds the compiler",
    ("docs/HowTo/RunOnAGPU.md", "tools/gpu_bundle"): "is for two machines, one of them with a GPU",
    ("docs/HowTo/SeveralGPUs.md", "symmetric.empty"): "needs several GPUs",
    ("docs/HowTo/SeveralGPUs.md", "torchrun"): "needs several GPUs",
}

_OPEN = re.compile(r"^(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<label>[\w+-]*)(?P<rest>.*)$")
_COMMENT = re.compile(r"<!--\s*run:(.*?)-->", re.S)
_SAVED = re.compile(r"\b[Ss]ave (?:this|it) as `([\w./]+)`")
_PLACE = re.compile(r"\b[Ii]n `([\w./]+)`, (before|after) `(.+)`[^`]*$")


@dataclasses.dataclass
class Fence:
    """One fenced block: where it is, what is in it, how it is run."""

    page: str
    line: int  # of the opening backquotes, from 1
    label: str
    text: str
    reason: str = ""  # why it is not run
    alone: bool = False
    output: bool = False
    measured: bool = False  # an output whose numbers may differ
    raises: str = ""
    file: str = ""
    before: str = ""  # hidden lines, run first
    place: tuple[str, str, str] | None = (
        None  # of C++ and TableGen: a file, `before` or `after`, a text
    )

    @property
    def why_not_run(self) -> str:
        """Why something of it is not run: an entry of NOT_RUN."""
        return next(
            (
                why
                for (page, text), why in NOT_RUN.items()
                if page == self.page and text in self.text
            ),
            "",
        )

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_code(self) -> bool:
        return self.label not in NOT_CODE

    @property
    def is_run(self) -> bool:
        """Whether something looks at it here."""
        return bool(self.is_code or self.output or self.file) and not self.reason


class Unclear(ValueError):
    """A fence without a label or a comment that says nothing known."""


def pages() -> list[str]:
    """README.md and its like, and all of docs/ and notes/, as git knows them; nothing generated."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found = [
        name
        for name in listed
        if "/" not in name or name.startswith(("docs/", "notes/", ".github/"))
    ]
    return sorted(name for name in found if (ROOT / name).is_file())


def is_for_readers(page: str) -> bool:
    """Whether a page is run from its visible text alone."""
    return page == "README.md" or page.startswith(("docs/HowTo/", "docs/Tutorial/"))


def is_for_users(page: str) -> bool:
    """Whether that holds where Tessera is a wheel, without a checkout: pages on changing it aside."""
    name = page.rpartition("/")[2]
    of_checkout = name.startswith("Add") or name in (
        "FindAWrongPass.md",
        "Packaging.md",
        "10-APass.md",
    )
    return is_for_readers(page) and not of_checkout


def apply_comment(fence: Fence, said: str) -> None:
    """Takes over what one comment says."""
    first, _, rest = said.strip(" \n").partition("\n")
    word, _, argument = first.strip().partition(" ")
    word, argument = word.rstrip(","), argument.strip()
    if word in ("no", "with") and is_for_readers(fence.page):
        raise Unclear(
            f"{fence.id}: no reader sees the comment `{first}`; pages.py says what to write"
        )
    if word == "no" and argument:
        fence.reason = argument
    elif word == "with" and rest:
        fence.before += rest.strip("\n") + "\n"
    elif word == "raises" and argument:
        fence.raises = argument
    elif word in ("alone", "output", "measured") and not argument and not rest:
        setattr(fence, word, True)
        fence.output |= fence.measured
    else:
        raise Unclear(f"{fence.id}: a comment says `{first}`, which is none of what pages.py lists")


def comments_above(lines: list[str], line: int) -> list[str]:
    """The comments that end right above a line (from 0), first ones first."""
    found: list[str] = []
    end = line
    while end > 0:
        above = lines[end - 1].strip()
        if not above:
            end -= 1
            continue
        if not above.endswith("-->"):
            break
        begin = end - 1
        while begin > 0 and "<!--" not in lines[begin]:
            begin -= 1
        match = _COMMENT.fullmatch("\n".join(lines[begin:end]).strip())
        if not match:
            break
        found.insert(0, match.group(1))
        end = begin
    return found


def paragraph_above(lines: list[str], line: int) -> str:
    """The paragraph that ends right above a line (from 0), comments left out, as one line."""
    text = re.sub(r"<!--.*?-->", "", "\n".join(lines[:line]), flags=re.S).rstrip()
    return " ".join(re.split(r"\n\s*\n|\n```+\s*\n", text)[-1].split())


def fences_of(page: str, text: str) -> list[Fence]:
    """All fences of a page in their order."""
    lines = text.splitlines()
    found: list[Fence] = []
    number = 0
    while number < len(lines):
        opened = _OPEN.match(lines[number])
        if not opened:
            number += 1
            continue
        ticks, indent = opened.group("ticks"), len(opened.group("indent"))
        body: list[str] = []
        end = number + 1
        while end < len(lines) and lines[end].strip() != ticks:
            body.append(lines[end])
            end += 1
        if end == len(lines):
            raise Unclear(f"{page}:{number + 1}: the fence is never closed")
        # In a list a fence is indented, and its lines with it.
        stripped = [line[min(indent, len(line) - len(line.lstrip())) :] for line in body]
        fence = Fence(page, number + 1, opened.group("label"), "\n".join(stripped) + "\n")
        if not fence.label:
            raise Unclear(f"{fence.id}: the fence has no label; `text` is for what is no code")
        if fence.label not in LABELS:
            raise Unclear(f"{fence.id}: no label `{fence.label}`; there are {', '.join(LABELS)}")
        for said in comments_above(lines, number):
            apply_comment(fence, said)
        above = paragraph_above(lines, number)
        if saved := _SAVED.search(above):
            fence.file = saved[1]
        elif place := _PLACE.search(above):
            fence.place = (place[1], place[2], place[3])
        found.append(fence)
        number = end + 1
    return found


def indented_code(text: str) -> list[int]:
    """The lines at which code begins by being indented: it has no label, so nothing runs it."""
    found: list[int] = []
    before, blank, inside = "", True, ""
    for number, line in enumerate(text.splitlines(), 1):
        opened = _OPEN.match(line)
        if inside or opened:
            ticks = opened.group("ticks") if opened else ""
            inside = ("" if line.strip() == inside else inside) if inside else ticks
            before, blank = "", False
            continue
        item = re.match(r"\s*([-*+]|\d+\.)\s", before) or before.startswith(" ")
        if line.startswith("    ") and blank and not item:
            found.append(number)
        before, blank = (line, False) if line.strip() else (before, True)
    return found


def read(page: str) -> list[Fence]:
    return fences_of(page, (ROOT / page).read_text())


def is_like(pattern: str, text: str) -> bool:
    """Whether text is what a pattern says, where `...` stands for any text, lines too.

    How lines are broken in a page does not count: runs of blanks are one blank.
    """
    words = [re.escape(" ".join(part.split())) for part in pattern.split("...")]
    return (
        re.fullmatch(r"\s*" + r".*?".join(words) + r"\s*", " ".join(text.split()), re.S) is not None
    )


def is_like_apart_from_numbers(pattern: str, text: str) -> bool:
    """The same, where each number of the pattern stands for any number."""
    number = r"[-+]?(?:\d[\d,]*\.?\d*(?:e[-+]?\d+)?|nan|inf)"
    return is_like(re.sub(number, "#", pattern), re.sub(number, "#", text))


def code_spans(page: str) -> list[tuple[int, str]]:
    """The spans of code within sentences, with their lines."""
    found: list[tuple[int, str]] = []
    inside = ""
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        opened = _OPEN.match(line)
        if inside:
            if line.strip() == inside:
                inside = ""
            continue
        if opened:
            inside = opened.group("ticks")
            continue
        found += [(number, span) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", line)]
    return found
