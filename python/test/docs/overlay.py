# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of the compiler with the changes that a page makes to them, and no others touched.

A page on adding an op or a pass changes a file at a time, and a later change needs the earlier ones:
a definition its declaration, C++ what TableGen makes of a description. So changed files, and what is
generated from them, are written into a folder of their own, which the compiler looks into first.
"""

from __future__ import annotations

import json
import pathlib
import shlex
import subprocess

from docs.pages import ROOT

BUILD = ROOT / "build/dev"


class Overlay:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.precompiled: tuple[set[str], str] = (set(), "")  # from which changes, and where

    def add(self, name: str, where: str, text: str, snippet: str) -> None:
        """Puts a snippet before a text of a file, or after the line that it is in; AssertionError says
        what is wrong with the result."""
        changed = self.folder / name
        old = (changed if changed.exists() else ROOT / name).read_text()
        if old.count(text) != 1:
            raise AssertionError(f"{name} has `{text}` {old.count(text)} times, not once")
        place = old.index(text)
        if where == "after":
            place = old.index("\n", place) + 1
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(old[:place] + snippet + old[place:])
        if changed.suffix == ".td":
            self.generate(name)
        elif changed.suffix == ".cpp":
            self.compile(name)

    def create(self, name: str, text: str) -> None:
        """Adds a new file of C++, which is compiled as its neighbours are."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)
        self.compile(name)

    def generate(self, name: str) -> None:
        """What the build generates from this description, and from those that include it."""
        found = 0
        for depends in (BUILD / "include").rglob("*.inc.d"):
            target = depends.relative_to(BUILD).with_suffix("")
            # The description that something is generated from is not among those that it includes.
            if target.parent != pathlib.Path(name).parent and f"/{name}" not in depends.read_text():
                continue
            line = self.run(["ninja", "-C", BUILD, "-t", "commands", "-s", target]).splitlines()[-1]
            words = shlex.split(next(part for part in line.split("&&") if "mlir-tblgen" in part))
            output = self.folder / target
            output.parent.mkdir(parents=True, exist_ok=True)
            words[words.index("-o") + 1] = str(output)
            words[words.index("-d") + 1] = str(output) + ".d"
            source = next(word for word in words if word.endswith(".td"))
            if source.endswith("/" + name):
                words[words.index(source)] = str(self.folder / name)
            self.run([words[0], f"-I{self.folder / 'include'}", *words[1:]])
            found += 1
        if not found:
            raise AssertionError(f"the build generates nothing from {name}")

    def compile(self, name: str) -> None:
        """Parses a file with the flags of the build, and a precompiled header."""
        commands = json.loads((BUILD / "compile_commands.json").read_text())
        # Of the checkout that was built, wherever that is.
        folder = "/" + str(pathlib.Path(name).parent) + "/"
        entries = [entry for entry in commands if folder in entry["file"]]
        entry = next((one for one in entries if one["file"].endswith("/" + name)), entries[0])
        words = shlex.split(entry["command"])
        words = words[: words.index("-o")]
        first = [f"-I{self.folder / 'include'}", f"-I{(ROOT / name).parent}"]
        words[1:1] = first
        if "-include-pch" in words:
            self.use_precompiled(words, words.index("-include-pch") + 2)
        options = ["-Wno-unused-function", "-fsyntax-only", str(self.folder / name)]
        self.run([*words, *options], cwd=BUILD)

    def use_precompiled(self, words: list[str], place: int) -> None:
        """If the page has changed what the build's precompiled header includes, puts a smaller one of this
        folder in its place. To parse the headers of dialects takes 6 s, which each file would need anew.
        """
        header = pathlib.Path(words[place])
        known = self.run(["ninja", "-C", BUILD, "-t", "deps", header.relative_to(BUILD)])
        included = {line.strip().rpartition("/include/")[2] for line in known.splitlines()}
        root = self.folder / "include"
        changed = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        changed &= included
        if not changed:
            return
        begin = place - 3  # -Xclang before each of two options and their files
        del words[begin : begin + 8]
        if self.precompiled[0] != changed:
            folders = ["mlir/IR", *(str(pathlib.Path(name).parent) for name in changed)]
            lines = (ROOT / "tools/cmake/Precompiled.h").read_text().splitlines()
            lines = [line for line in lines if any(f'"{folder}/' in line for folder in folders)]
            small = self.folder / "precompiled.h"
            small.write_text("\n".join(lines))
            self.precompiled = changed, f"{small}.pch"
            self.run([*words, "-x", "c++-header", small, "-o", f"{small}.pch"], cwd=BUILD)
        words += ["-include-pch", self.precompiled[1]]

    def run(self, command: list[object], cwd: pathlib.Path = ROOT) -> str:
        result = subprocess.run(
            [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=300
        )
        if result.returncode != 0:
            raise AssertionError(result.stdout + result.stderr)
        return result.stdout
