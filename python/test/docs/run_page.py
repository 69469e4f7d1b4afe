#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the fences of a page from top to bottom, as a reader would, in a temporary folder.

Python's share one namespace, and all share the folder, in which the checkout's folders are
links. What becomes of each is printed, or written as JSON for test_snippets.py.

Usage: python python/test/docs/run_page.py docs/HowTo/Simulate.md [--line N] [--json FILE]
       python python/test/docs/run_page.py --list      what is not run, and why
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from docs.commands import (  # noqa: E402
    commands_of,
    environment,
    simple_commands,
    what_is_wrong,
    why_long,
)
from docs.pages import ROOT, SHELLS, Fence, is_like, pages, read  # noqa: E402

SECONDS = 300


class Page:
    """The folder and the names that the fences of a page share."""

    def __init__(self, page: str, folder: pathlib.Path, gpu: bool):
        self.page, self.folder, self.gpu = page, folder, gpu
        self.stem = pathlib.Path(page).stem.replace("-", "_")
        self.names = self.new_names(0)
        self.printed = ""

    def new_names(self, line: int) -> dict[str, object]:
        module = types.ModuleType(f"page_{self.stem}_{line}")
        sys.modules[module.__name__] = module
        return vars(module)

    def run(self, fence: Fence) -> None:
        """Runs one fence; an exception says what is wrong with it."""
        if fence.output:
            if fence.before:
                self.run_hidden(fence)
            if not is_like(fence.text, self.printed):
                raise AssertionError(f"what is printed is not this:\n{self.printed}")
            return
        if fence.file:
            (self.folder / fence.file).write_text(fence.text)
            if fence.label == "python":
                compile(fence.text, fence.file, "exec")
            return
        {
            "python": self.run_python,
            "mlir": self.run_mlir,
            "json": lambda fence: json.loads(fence.text),
            "llvm": self.run_llvm,
            "toml": self.run_toml,
            "yaml": self.run_yaml,
            "cpp": self.run_cpp,
            "tablegen": self.run_tablegen,
            **dict.fromkeys(SHELLS, self.run_shell),
        }.get(fence.label, self.cannot_run)(fence)

    def cannot_run(self, fence: Fence) -> None:
        raise AssertionError(
            f"nothing runs `{fence.label}` here: say `<!-- run: no, why -->` above it"
        )

    def run_python(self, fence: Fence) -> None:
        # Kernels are read from their file, in which they have the lines of the page.
        file = self.folder / f"{self.stem}_{fence.line}.py"
        file.write_text("\n" * fence.line + fence.text)
        code = compile(file.read_text(), str(file), "exec", dont_inherit=True)
        if fence.gpu and not self.gpu:
            return
        if fence.alone:
            self.names = self.new_names(fence.line)
        if fence.before:
            hidden = self.folder / f"{self.stem}_{fence.line}_before.py"
            hidden.write_text(fence.before)
            exec(compile(fence.before, str(hidden), "exec", dont_inherit=True), self.names)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                exec(code, self.names)
        except Exception as error:
            if type(error).__name__ != fence.raises:
                raise
            printed.write(str(error))
        else:
            if fence.raises:
                raise AssertionError(f"there is no {fence.raises}")
        self.printed = printed.getvalue()

    def run_hidden(self, fence: Fence) -> None:
        """Python that is there for what it prints, or for the exception it ends with."""
        file = self.folder / f"{self.stem}_{fence.line}.py"
        file.write_text(fence.before)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                exec(compile(fence.before, str(file), "exec", dont_inherit=True), self.names)
            except Exception as error:
                printed.write(str(error))
        self.printed = printed.getvalue()

    def run_shell(self, fence: Fence) -> None:
        script = ["set -e -o pipefail", fence.before]
        shown: list[str] = []
        for number, (command, output) in enumerate(commands_of(fence.text)):
            programs = simple_commands(command)
            if any(why_long(words) for words in programs):
                for words in programs:
                    if wrong := what_is_wrong(words):
                        raise AssertionError(wrong)
                continue
            # What it prints goes into a file of its own, and the shell stays the same one.
            failed = shlex.quote(f"this fails: {command}")
            script.append(f"{{ {command}\n}} >out.{number} 2>&1 || {{ echo {failed}; exit 1; }}")
            shown.append(output)
        if fence.gpu and not self.gpu:
            return
        result = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        found = sorted(self.folder.glob("out.*"), key=lambda path: int(path.suffix[1:]))
        printed = [path.read_text() for path in found]
        for path in found:
            path.unlink()
        self.printed = "".join(printed)
        if result.returncode != 0:
            raise AssertionError(self.printed + result.stdout + result.stderr)
        for wanted, text in zip(shown, printed):
            if wanted.strip() and not is_like(wanted, text):
                raise AssertionError(f"what is printed is not this:\n{text}")

    def run_program(self, command: list[str], text: str) -> None:
        result = subprocess.run(
            command, input=text, capture_output=True, text=True, env=environment(), timeout=SECONDS
        )
        if result.returncode != 0:
            raise AssertionError(result.stderr)

    def run_mlir(self, fence: Fence) -> None:
        """The modules of a page are complete: parsed and verified."""
        self.run_program(["tessera-opt", "--split-input-file", "-"], fence.before + fence.text)

    def run_llvm(self, fence: Fence) -> None:
        self.run_program(
            ["opt", "-passes=verify", "-disable-output", "-"], fence.before + fence.text
        )

    def insert(self, fence: Fence) -> tuple[pathlib.Path, str]:
        """The file that a snippet goes into, with the snippet in it."""
        match = re.fullmatch(r"in (\S+) (before|after) (.+)", fence.before.strip())
        if not match:
            raise AssertionError("above it has to be: `run: with`, and `in FILE before TEXT`")
        file, text = ROOT / match.group(1), (ROOT / match.group(1)).read_text()
        if text.count(match.group(3)) != 1:
            raise AssertionError(f"{match.group(1)} has `{match.group(3)}` not once")
        place = text.index(match.group(3))
        if match.group(2) == "after":
            place = text.index("\n", place) + 1
        return file, text[:place] + fence.text + text[place:]

    def run_cpp(self, fence: Fence) -> None:
        """C++ is compiled as part of the file that it is about."""
        file, text = self.insert(fence)
        commands = json.loads((ROOT / "build/dev/compile_commands.json").read_text())
        # Of the checkout that was built, wherever that is.
        end = "/" + str(file.relative_to(ROOT))
        line = next(entry["command"] for entry in commands if entry["file"].endswith(end))
        keep = re.findall(r"(-[IDW]\S+|-isystem \S+|-std=\S+)", line)
        flags = [word for flag in keep for word in flag.split()]
        flags += [f"-I{file.parent}", "-Wno-unused-function"]
        command = ["clang++-22", *flags, "-fsyntax-only", "-x", "c++", "-"]
        self.run_program(command, text)

    def run_tablegen(self, fence: Fence) -> None:
        _, text = self.insert(fence)
        include = ["-I", str(ROOT / "include"), "-I", "/usr/lib/llvm-22/include"]
        self.run_program(["mlir-tblgen", "--print-records", *include, "-"], text)

    def run_toml(self, fence: Fence) -> None:
        import tomllib

        tomllib.loads(fence.text)

    def run_yaml(self, fence: Fence) -> None:
        import yaml

        yaml.safe_load(fence.text)


def has_gpu() -> bool:
    try:
        from execution.on_gpu import has_gpu as found
    except ImportError:
        return False
    return found()


def run_page(page: str, until: int = 0) -> dict[str, str]:
    """Runs a page, up to a line if that is given: an error, or nothing, for each fence."""
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                (folder / entry.name).symlink_to(entry)
        os.environ.update(TESSERA_CACHE_DIR=str(folder / ".cache"), HOME=name)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        state = Page(page, folder, has_gpu())
        broken: dict[bool, str] = {}  # of Python, and of shells
        for fence in read(page):
            if until and fence.line > until:
                break
            if not fence.is_run:
                continue
            shell = fence.label in SHELLS
            if shell in broken and not fence.alone:
                results[str(fence.line)] = f"it comes after {broken[shell]}, which failed"
                continue
            try:
                state.run(fence)
                results[str(fence.line)] = ""
            except BaseException:
                results[str(fence.line)] = f"{fence.id}:\n{fence.text}\n{traceback.format_exc()}"
                if shell or fence.label == "python":
                    broken[shell] = fence.id
        os.chdir(ROOT)
    return results


def print_list() -> None:
    """Names what is not run, or only where there is a GPU."""
    every = [fence for page in pages() for fence in read(page)]
    code = [fence for fence in every if fence.is_code or fence.is_run]
    left = [fence for fence in code if not fence.is_run]
    gpu = [fence for fence in code if fence.gpu]
    print(f"{len(code)} fences of code: {len(code) - len(left)} run, {len(left)} not")
    for fence in left:
        print(f"  {fence.id} ({fence.label}): {fence.reason}")
    for fence in gpu:
        print(f"  {fence.id} ({fence.label}): only where there is a GPU")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?")
    parser.add_argument("--line", type=int, default=0, help="stop behind the fence of this line")
    parser.add_argument("--json", type=pathlib.Path, help="where to write what became of each")
    parser.add_argument("--list", action="store_true", help="name what is not run, and why")
    arguments = parser.parse_args()
    if arguments.list or not arguments.page:
        print_list()
        return 0
    output = arguments.json.resolve() if arguments.json else None
    page = os.path.relpath(os.path.abspath(arguments.page), ROOT)
    results = run_page(page, arguments.line)
    if output:
        output.write_text(json.dumps(results))
        return 0
    for line, error in results.items():
        print(f"{page}:{line}: {'failed' if error else 'ok'}\n{error}".rstrip())
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
