#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that no two files of a program define the same name.

C++ lets a class, an inline function or a template be defined in many sources, if all definitions are
the same. If two headers define `tessera::TileBuilder` differently, no compiler sees both, and the
linker keeps the destructor of one for both. Development builds may work, and release builds crash.

So each name in a named namespace, or in none, has one file that defines it: of the library (`include`
and `lib`), and of each other program with the library. These count:

- classes, structs, unions and enumerations, and specialisations of templates of these;
- functions, unless their parameters differ;
- inline variables.

A name that is `static` or in an unnamed namespace belongs to its source, and check_unity.py compares
it. The linker finds two definitions of a member or of a name with `::`. Names that TableGen writes are
not read.

Usage: check_definitions.py [--root DIR]
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import check_unity  # noqa: E402

TYPE = re.compile(r"^(?:struct|class|union|enum(?: class| struct)?) (\w+)\b(.*)$")
WORDS_IN_FRONT = re.compile(r"\b(?:static|friend|extern|using|typedef|namespace|return)\b")
PROGRAM = re.compile(r"\b\w*add_(?:unittest|tool)\s*\(([^)]*)\)", re.I)
LIBRARY = ("include", "lib", "tools/arguments")


class Definition(NamedTuple):
    """A definition that other sources of the program see, or would clash with."""

    name: str
    """With its namespaces, and of a function with the types of its parameters."""
    kind: str
    place: str
    line: int


def definitions_in(text: str, place: str) -> Iterator[Definition]:
    """The definitions of a file at namespace scope, in named namespaces."""
    for scopes, head, _, has_body, line in check_unity.declarations(check_unity.strip(text)):
        if "" in scopes:
            continue
        scope = [part for part in scopes if part != "extern"]
        head = check_unity.without_template(head)
        head = " ".join(check_unity.ATTRIBUTE.sub("", head).split())
        if found := TYPE.match(head):
            if has_body and (name := type_name(found)):
                yield Definition("::".join([*scope, name]), "type", place, line)
        elif not WORDS_IN_FRONT.search(re.split(r"[({=]", head)[0]):
            yield from values_in(scope, head, has_body, place, line)


def type_name(found: re.Match[str]) -> str:
    """The name of a type, with the arguments of a specialisation; "" if it returns a value."""
    name, rest = found.group(1), found.group(2).strip()
    if rest.startswith("<"):
        end = check_unity.close(rest, 0, "<>")
        name, rest = name + rest[:end].replace(" ", ""), rest[end:].strip()
    rest = rest.removeprefix("final").strip()
    return name if not rest or (rest[0] == ":" and rest[:2] != "::") else ""


def values_in(
    scope: list[str], head: str, has_body: bool, place: str, line: int
) -> Iterator[Definition]:
    """The function or the inline variable of a declaration."""
    before = re.split(r"[({=]", head, maxsplit=1)[0].strip()
    found = check_unity.NAME.search(before)
    if not found or before == found.group(1):
        return
    name = "::".join([*scope, found.group(1)])
    behind = head[len(before) :].lstrip()
    if behind.startswith("("):
        if not has_body:
            return
        types = check_unity.parameter_types(behind[1 : check_unity.close(behind, 0, "()") - 1])
        yield Definition(f"{name}({types})", "function", place, line)
    elif re.search(r"\binline\b", before):
        yield Definition(name, "variable", place, line)


def clashes(
    files: Iterable[pathlib.Path], root: pathlib.Path, found: dict[str, Definition]
) -> Iterator[str]:
    """A line for each definition that another file has. Adds the others to `found`."""
    for path in files:
        place = path.relative_to(root).as_posix()
        for own in definitions_in(path.read_text(encoding="utf-8"), place):
            other = found.setdefault(own.name, own)
            if other.place != place:
                yield (
                    f"{place}:{own.line}: {own.kind} {own.name} is also defined in "
                    f"{other.place}:{other.line}; a program has one definition of each: give it "
                    "another name, or put it into an unnamed namespace"
                )


def sources_of(*folders: pathlib.Path) -> list[pathlib.Path]:
    """The headers and sources in folders, the headers first."""
    return sorted(
        (path for folder in folders for path in folder.rglob("*") if path.suffix in (".h", ".cpp")),
        key=lambda path: (path.suffix != ".h", path.as_posix()),
    )


def programs(root: pathlib.Path) -> Iterator[list[pathlib.Path]]:
    """The files of each program that the library is a part of, without the library's."""
    for folder in ("tools", "unittest"):
        for listing in sorted((root / folder).rglob("CMakeLists.txt")):
            text = re.sub(r"#.*", "", listing.read_text(encoding="utf-8"))
            headers = [path for path in sources_of(listing.parent) if path.suffix == ".h"]
            for match in PROGRAM.finditer(text):
                words = [word for word in match.group(1).split() if word.endswith(".cpp")]
                paths = [listing.parent / word for word in words]
                yield [*headers, *(path.resolve() for path in paths if path.exists())]


def check(root: pathlib.Path) -> list[str]:
    """A line for each name that two files of a program define."""
    library: dict[str, Definition] = {}
    errors = list(clashes(sources_of(*(root / folder for folder in LIBRARY)), root, library))
    for files in programs(root):
        errors += clashes(files, root, dict(library))
    # The extension of Python knows the library by its C API alone.
    errors += clashes(sources_of(root / "python" / "src"), root, {})
    return list(dict.fromkeys(errors))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    errors = check(parser.parse_args().root.resolve())
    print("\n".join(errors) if errors else "definitions: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
