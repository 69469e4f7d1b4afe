#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the rules of plain English in docs/Style.md that a machine can see.

- Commit subjects since FIRST_COMMIT: an area and a verb of the lists in docs/Style.md, and at most
  72 characters.
- Summaries of passes and ops: imperative or a noun phrase, not a third person ("Lets", "Makes").
- Sentences of comments and docstrings: at most 30 words, no clause as a subject at their start, and
  none of the words in WORDS.

Usage: tools/dev/check_english.py [--show FILE...]
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import re
import subprocess
import sys
from typing import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRST_COMMIT = "30e64521"

MAX_SUBJECT = 72
MAX_WORDS = 30
STARTS = re.compile(r"(What|Whether|Of|Who|Whoever|Nobody)\b")
WORDS = re.compile(
    r"\b(told|hears?|nobody|whoever|comes? by|came by|is left|are left|of one piece)\b", re.I
)
THIRD_PERSON = re.compile(r"(Lets|Makes|Has|Gives|Takes|Puts|Says|Asks|Keeps|Brings|Waits|Stops)\b")
FOLDERS = ("include", "lib", "python/src", "python/tessera", "tools", "unittest")


def lists_of_style() -> tuple[set[str], tuple[str, ...]]:
    """The areas and the verbs of docs/Style.md."""
    text = (ROOT / "docs/Style.md").read_text(encoding="utf-8").split("## Commit subjects")[1]
    areas = text.split("closed list:")[1].split(".\n")[0]
    verbs = text.split("what changed:")[1].split(".\n")[0].replace("\n", " ")
    return set(re.findall(r"`(\w+)`", areas)), tuple(verb.strip() for verb in verbs.split(","))


def check_subjects() -> list[str]:
    """The mistakes in the subjects of commits; a clone without the first commit has none."""
    command = ["git", "log", "--no-merges", "--format=%h %s", f"{FIRST_COMMIT}..HEAD"]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    areas, verbs = lists_of_style()
    errors = []
    for line in log.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        match = re.fullmatch(r"\[(\w+)\] (.+)", subject)
        if not match or match.group(1) not in areas:
            errors.append(
                f"{commit}: the subject '{subject}' begins with no [Area] of docs/Style.md"
            )
        elif not match.group(2).startswith(tuple(verb + " " for verb in verbs)):
            errors.append(f"{commit}: '{match.group(2)}' begins with no verb of docs/Style.md")
        if len(subject) > MAX_SUBJECT:
            errors.append(f"{commit}: the subject has {len(subject)} characters")
    return errors


def comments_of(path: pathlib.Path, text: str) -> Iterator[tuple[int, str]]:
    """The comments of a file, and docstrings, each with the line that it begins at."""
    mark = "#" if path.suffix == ".py" else "//"
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        content = stripped[len(mark) :].lstrip("/<") if stripped.startswith(mark) else ""
        # Code and tables within a comment are indented.
        if content.strip() and not content.startswith("    ") and "SPDX" not in content:
            start = start if block else number
            block.append(content.strip())
        elif block:
            yield start, " ".join(block)
            block = []
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                lines = (ast.get_docstring(node) or "").split("\n\n")
                place = node.body[0].lineno if node.body else 1
                for paragraph in lines:
                    if paragraph and not re.search(r"^ {4}|^[|-]|Example", paragraph, re.M):
                        yield place, " ".join(paragraph.split())


def mistakes_of(path: pathlib.Path) -> list[str]:
    """The sentences of a file that break a rule, each with its place and the rule."""
    text = path.read_text(encoding="utf-8")
    where = path.relative_to(ROOT)
    found = []
    for line, comment in comments_of(path, text):
        for sentence in re.split(r"(?<=[.;:?!])\s+(?=[A-Z`])", comment):
            words = len(sentence.split())
            reason = ""
            if words > MAX_WORDS:
                reason = f"has {words} words"
            elif STARTS.match(sentence):
                reason = f"begins with '{sentence.split()[0]}'"
            elif match := WORDS.search(sentence):
                reason = f"says '{match.group()}'"
            if reason:
                found.append(f"{where}:{line}: {reason}: {sentence[:90]}")
    if path.suffix == ".td":
        for number, row in enumerate(text.splitlines(), 1):
            match = re.search(r'let summary = "(\w+)', row)
            if match and THIRD_PERSON.match(match.group(1)):
                found.append(f"{where}:{number}: a summary begins with '{match.group(1)}'")
    return found


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--show", nargs="*", default=[], help="print the mistakes of these files")
    arguments = parser.parse_args()
    if arguments.show:
        for name in arguments.show:
            print(*mistakes_of(pathlib.Path(name).resolve()), sep="\n")
        return 0
    command = ["git", "ls-files", "-co", "--exclude-standard", *FOLDERS]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [
        ROOT / name
        for name in names.splitlines()
        if name.endswith((".py", ".h", ".cpp", ".td", ".c"))
    ]
    errors = check_subjects()
    for path in files:
        if path.is_file():
            errors += mistakes_of(path)
    print("\n".join(errors) if errors else "english: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
