#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that any sources of a library can be compiled as one.

The release build compiles the sources of a library in groups of eight (`TESSERA_UNITY`). A file that
is added moves others into other groups. So two files of a library have no name in common that each
keeps for itself:

- a function, variable, enumerator or type in an unnamed namespace, or `static`;
- a type that a source defines in a named namespace, which would be two types of one name;
- an alias (`using A = ...`) of two meanings;
- a macro that is still defined at the end of the file.

Functions of one name with other parameters are overloads. Sources that CMake keeps out of groups
(`SKIP_UNITY_BUILD_INCLUSION`) are not read. The reader knows comments, strings, directives and brackets
of C++, and nothing else.

Usage: check_unity.py [--root DIR]
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

FOLDERS = ("lib", "python")

LIBRARY = re.compile(r"\b\w*add_(?:library|module)\s*\(([^)]*)\)", re.I)
LEFT_OUT = re.compile(r"set_source_files_properties\(([^)]*)SKIP_UNITY_BUILD_INCLUSION", re.I)

TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'""",
    re.S,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\balignas\([^()]*\)|\b__attribute__\s*\(\(.*?\)\)|\bLLVM_\w+")
NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*)$|^extern \"\"$")
TYPE = re.compile(r"^(struct|class|union|enum(?: class| struct)?) (\w+)(?: final)?(?: :[^:].*)?$")
ALIAS = re.compile(r"^using (\w+) = (.*)$")
OTHER = re.compile(
    r"^(?:using|namespace|typedef|friend|extern|static_assert|struct|class|union|enum)\b"
)
OWN = re.compile(r"\bstatic\b|^(?:inline )?const(?:expr)?\b")
NAME = re.compile(r"(?:^|[\s*&>])(operator\s*\S+|[A-Za-z_]\w*)$")


class Name(NamedTuple):
    """A name at namespace scope that a source keeps for itself."""

    scope: str
    """The named namespaces around it."""
    name: str
    kind: str
    """Of functions, with the types of the parameters."""
    meaning: str
    """What an alias stands for."""
    line: int


class Declaration(NamedTuple):
    """A declaration at namespace scope."""

    scopes: tuple[str, ...]
    """The names of the namespaces around it, empty for unnamed ones."""
    head: str
    """Its text up to a body or to its end."""
    body: str
    """What stands in its braces; None if it has none."""
    has_body: bool
    line: int


def strip(text: str) -> str:
    """The text without comments, strings and directives; lines stay."""

    def blank(match: re.Match[str]) -> str:
        return ('""' if match.group()[0] in "\"R'" else " ") + "\n" * match.group().count("\n")

    return DIRECTIVE.sub(lambda match: "\n" * match.group().count("\n"), TEXT.sub(blank, text))


def close(text: str, at: int, pair: str) -> int:
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == pair[0]) - (text[i] == pair[1])
        if depth == 0:
            return i + 1
    return len(text)


def split(text: str) -> list[str]:
    """The parts of a list with commas, of which brackets may hold others."""
    parts, depth, first = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "(<[{") - (char in ")>]}")
        if char == "," and depth <= 0:
            parts.append(text[first:i])
            first = i + 1
    return [*parts, text[first:]]


def declarations(text: str) -> Iterator[Declaration]:
    """The declarations at namespace scope of a text without comments."""
    scopes: list[str] = []
    at = begin = 0
    body = ""
    has_body = False
    while at < len(text):
        char = text[at]
        if char in "([":
            at = close(text, at, "()" if char == "(" else "[]")
            continue
        head = " ".join((text[begin:at]).split())
        line = text.count("\n", 0, at - len(text[begin:at].lstrip())) + 1
        if char == "{" and (namespace := NAMESPACE.match(head)):
            scopes.append("extern" if namespace.group(1) is None else namespace.group(1))
            begin = at = at + 1
        elif char == "{":
            end = close(text, at, "{}")
            body, has_body = text[at + 1 : end - 1], True
            # The body of a function or namespace ends a declaration, that of a type or value does not.
            if not re.match(r"\s*[;,\[=]|\s*\w+\s*[;\[=]", text[end:]) or ")" in head.split("=")[0]:
                yield Declaration(tuple(scopes), head, body, True, line)
                begin, has_body = end, False
            elif ";" in text[end:]:
                yield Declaration(tuple(scopes), head, body, True, line)
                end = text.index(";", end) + 1
                begin, has_body = end, False
            at = end
        elif char == "}":
            if scopes:
                scopes.pop()
            begin = at = at + 1
        elif char == ";":
            if head:
                yield Declaration(tuple(scopes), head, "", has_body, line)
            begin = at = at + 1
            has_body = False
        else:
            at += 1


def parameter_types(text: str) -> str:
    """Parameters without names and defaults: the same for functions that are no overloads."""
    types = []
    for one in split(text):
        words = " ".join(one.split("=")[0].split())
        words = re.sub(
            r"(?<=[\w>&*\]])(?:\s+|(?<=[&*]))(?!const\b|int\b|long\b|char\b)[A-Za-z_]\w*$",
            "",
            words,
        )
        types.append(re.sub(r"\bconst\b|\s|\b(?:mlir|llvm|tessera|std)::", "", words))
    return ",".join(types)


def without_template(head: str) -> str:
    """A declaration without `template <...>` in front."""
    while re.match(r"template ?<", head):
        head = head[close(head, head.index("<"), "<>") :].lstrip()
    return head


def names_in(text: str) -> Iterator[Name]:
    """The names that a source keeps for itself."""
    for scopes, head, body, has_body, line in declarations(strip(text)):
        scope = "::".join(part for part in scopes if part not in ("", "extern"))
        head = " ".join(ATTRIBUTE.sub("", without_template(head)).split())
        if alias := ALIAS.match(head):
            yield Name(scope, alias.group(1), "alias", alias.group(2), line)
        elif has_body and (kind := TYPE.match(head)):
            yield Name(scope, kind.group(2), "type", "", line)
            if kind.group(1) == "enum":
                for one in split(body):
                    if one.strip():
                        yield Name(scope, one.split("=")[0].strip(), "enumerator", "", line)
        elif not OTHER.match(head) and ("" in scopes or OWN.search(head.split("(")[0])):
            yield from values_in(scope, head, line)


def values_in(scope: str, head: str, line: int) -> Iterator[Name]:
    """The function or the variables of a declaration."""
    before = re.split(r"[({=\[]", head, maxsplit=1)[0].strip()
    name = NAME.search(before)
    # `A::b` is declared in a header.
    if not name or before == name.group(1) or before.endswith("::"):
        return
    behind = head[len(before) :].lstrip()
    if behind.startswith("("):
        parameters = parameter_types(behind[1 : close(behind, 0, "()") - 1])
        yield Name(scope, name.group(1), f"function of ({parameters})", "", line)
        return
    yield Name(scope, name.group(1), "variable", "", line)
    for one in split(head)[1:]:
        if more := re.match(r"\s*[*&]?(\w+)\s*(?:=|$|\[|\{)", one):
            yield Name(scope, more.group(1), "variable", "", line)


def macros_in(text: str) -> Iterator[Name]:
    """The macros that are defined at the end."""
    defined: dict[str, int] = {}
    for number, line in enumerate(text.splitlines()):
        if found := re.match(r"\s*#\s*(define|undef)\s+(\w+)", line):
            if found.group(1) == "define":
                defined[found.group(2)] = number + 1
            else:
                defined.pop(found.group(2), None)
    for name, at in defined.items():
        # An include that TableGen writes ends these.
        if not name.startswith("GEN_PASS_"):
            yield Name("", name, "macro", "", at)


def libraries(root: pathlib.Path) -> Iterator[list[pathlib.Path]]:
    """The sources of each library that may be in one group."""
    for folder in FOLDERS:
        for listing in sorted((root / folder).rglob("CMakeLists.txt")):
            text = re.sub(r"#.*", "", listing.read_text(encoding="utf-8"))
            left_out = " ".join(LEFT_OUT.findall(text)).split()
            for match in LIBRARY.finditer(text):
                words = [word for word in match.group(1).split() if word not in left_out]
                paths = [listing.parent / word for word in words if word.endswith(".cpp")]
                yield [path for path in paths if path.exists()]


def clash(a: Name, b: Name) -> bool:
    """True if one source cannot have both."""
    if a.kind == b.kind == "alias":
        return a.meaning != b.meaning
    if a.kind.startswith("function") and b.kind.startswith("function"):
        return a.kind == b.kind
    return True


def check(root: pathlib.Path) -> list[str]:
    """A line for each name that two sources of a library have."""
    errors = []
    for sources in libraries(root):
        found: dict[tuple[str, str], list[tuple[str, Name]]] = defaultdict(list)
        for path in sources:
            text = path.read_text(encoding="utf-8")
            place = path.relative_to(root).as_posix()
            for name in [*names_in(text), *macros_in(text)]:
                uses = found[name.scope, name.name]
                for other, before in uses:
                    if other != place and clash(before, name):
                        errors.append(
                            f"{place}:{name.line}: {name.kind} {name.name} is also in "
                            f"{other}:{before.line}; the release build may compile both as one "
                            "source: give it another name"
                        )
                        break
                uses.append((place, name))
    return errors


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    errors = check(parser.parse_args().root.resolve())
    print("\n".join(errors) if errors else "unity: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
