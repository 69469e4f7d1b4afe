#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the lines and the data members of each C++ class, and refuses large ones.

The lines of a class are those of its definition and of all methods that are defined elsewhere
(`Class::method(...) {`). A class has at most MAX_LINES of them and MAX_MEMBERS data members; its
base classes count for themselves. A record may have more members: a struct without private members
and without methods that change it. EXCEPTIONS lists larger classes, each with the issue that divides
it, and none that is smaller by now. The counts are of text, so they need no compiler.

Usage: tools/dev/check_classes.py [--largest N]
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
from typing import Iterator, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_LINES = 700
MAX_MEMBERS = 20

CLASS = re.compile(r"^(\s*)(?:template <.*>\s*)?(?:class|struct)\s+(?:\w+\s+)??([\w:]+)(?:\s+final)?\s*(?::[^;{]*)?\{", re.M)  # fmt: skip
METHOD = re.compile(r"^(?!\s|//|#|namespace|using|static|extern)[^;{}=]*?\b(\w+)::~?\w+\s*\([^;{}]*\)[^;{}]*\{", re.M)  # fmt: skip
MEMBER = re.compile(
    r"^(?!return|using|friend|static|typedef|template|public|private|protected|case|enum|struct|class|explicit|virtual|operator)"
    r"[\w:<>,\s*&\[\]().]+?[\s>*&](\w+(?:\s*,\s*[*&]?\w+)*)\s*(?:=[^;]*|\{[^;]*\}|\[[^;]*\])?;$"
)

# Classes that are larger, each with the issue that divides it.
EXCEPTIONS: dict[str, str] = {}


class Count(NamedTuple):
    """The size of a class, or of some of its methods."""

    lines: int
    members: int
    place: str
    is_definition: bool
    is_record: bool = False


def end_of(text: str, start: int) -> int:
    """The place of the brace that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return at
    return len(text)


def blank(text: str) -> str:
    """The text without comments and strings, each line as long a list of lines as before."""
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.S
    )
    return pattern.sub(lambda match: "\n" * match.group().count("\n") or " ", text)


def statements_of(body: str) -> list[str]:
    """The declarations of a class, given the text between its braces, without what is in braces."""
    flat, depth = [], 0
    for char in body:
        depth -= char == "}"
        if depth == 0 and char != "}":
            flat.append(char)
        elif depth == 0:
            flat.append("};")
        depth += char == "{"
    statements = "".join(flat).replace("{};", ";").split(";")
    return [" ".join(statement.split()) for statement in statements]


def is_record(body: str) -> bool:
    """True for a class of public values that no method changes, given the text between its braces."""
    statements = statements_of(body)
    if any(re.search(r"\b(private|protected):", words) for words in statements):
        return False
    methods = [words for words in statements if "(" in words.split("=")[0]]
    return all(re.search(r"\bstatic\b|\) const\b|\bfriend\b|^using\b", words) for words in methods)


def members_of(body: str) -> int:
    """The data members of a class, given the text between its braces."""
    count = 0
    for words in statements_of(body):
        words = re.sub(r"\b(public|private|protected):", "", words).strip()
        call = re.sub(r"<[^<>]*(?:<[^<>]*(?:<[^<>]*>)?[^<>]*>)?[^<>]*>", "", words)
        if "(" in call or not words:
            continue
        if MEMBER.match(words + ";"):
            count += 1 + call.count(",")
    return count


def classes_of(path: pathlib.Path) -> Iterator[tuple[str, Count]]:
    """The classes of a file, and the methods of classes of other files, each with its lines."""
    text = blank(path.read_text(encoding="utf-8"))
    where = str(path.relative_to(ROOT))
    for match in CLASS.finditer(text):
        begin = text.index("{", match.end() - 1)
        end = end_of(text, begin)
        lines = text.count("\n", match.start(2), end) + 1
        name = match.group(2).split("::")[-1]
        body = text[begin + 1 : end]
        record = "struct" in match.group() and is_record(body)
        yield name, Count(lines, members_of(body), where, True, record)
    for match in METHOD.finditer(text):
        end = end_of(text, match.end() - 1)
        yield match.group(1), Count(text.count("\n", match.start(), end) + 1, 0, where, False)


def count_classes() -> dict[str, Count]:
    """All classes by name; one of a .cpp whose name another class has, too, by file and name."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "include", "lib", "python/src"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [
        ROOT / name
        for name in names.splitlines()
        if name.endswith((".h", ".cpp")) and (ROOT / name).is_file()
    ]
    parts = [(name, count) for path in files for name, count in classes_of(path)]
    places: dict[str, list[str]] = {}
    for name, count in parts:
        if count.is_definition:
            places.setdefault(name, []).append(count.place)

    def key_of(name: str, place: str) -> str:
        """Methods belong to a class of their own file, or to the one of the nearest header."""
        known = places.get(name, [])
        if len(set(known)) < 2:
            return name
        folder = place.rpartition("/")[0].split("lib/")[-1]
        near = sorted(known, key=lambda other: (other != place, folder not in other))
        return f"{near[0]} {name}"

    found: dict[str, Count] = {}
    for name, count in parts:
        if name not in places:
            continue  # a function of a namespace
        key = key_of(name, count.place)
        old = found.get(key, Count(0, 0, count.place, False))
        found[key] = Count(
            old.lines + count.lines,
            max(old.members, count.members),
            count.place if count.is_definition else old.place,
            True,
            old.is_record or count.is_record,
        )
    return found


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--largest", type=int, default=0, help="print so many of the largest")
    arguments = parser.parse_args()
    found = count_classes()
    if arguments.largest:
        for name, count in sorted(found.items(), key=lambda item: -item[1].lines)[
            : arguments.largest
        ]:
            print(f"{name:30} {count.lines:5} lines {count.members:3} members  {count.place}")
        print()
        for name, count in sorted(found.items(), key=lambda item: -item[1].members)[
            : arguments.largest
        ]:
            print(f"{name:30} {count.lines:5} lines {count.members:3} members  {count.place}")
    large = {
        name: count
        for name, count in sorted(found.items())
        if count.lines > MAX_LINES or (count.members > MAX_MEMBERS and not count.is_record)
    }
    errors = [
        f"{count.place}: class {name.split()[-1]} has {count.lines} lines and {count.members} data "
        f"members; at most {MAX_LINES} and {MAX_MEMBERS} (check_classes.py)"
        for name, count in large.items()
        if name.split()[-1] not in EXCEPTIONS
    ]
    errors += [
        f"check_classes.py: {name} is not too large any more: remove it from EXCEPTIONS"
        for name in EXCEPTIONS
        if name not in {key.split()[-1] for key in large}
    ]
    print("\n".join(errors) if errors else "classes: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
