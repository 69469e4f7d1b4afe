#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the fences of a page from top to bottom, as a reader would, in a temporary folder.

Python's share one namespace, and all share the folder. In it are links to the checkout's folders, and
`.venv` is the environment of this Python; a reader who has no checkout (`--wheel`) finds it empty.
The result of each fence is printed, or written as JSON for test_snippets.py. Several pages share
the process, and nothing else that a page makes.

Usage: python python/test/docs/run_page.py docs/HowTo/Simulate.md... [--line N] [--json FILE] [--wheel]
       python python/test/docs/run_page.py --list      what is not run, and why
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
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

# What the runner itself needs is no package of a reader's.
TESTS = [str(pathlib.Path(__file__).resolve().parents[level]) for level in (0, 1)]
sys.path.insert(0, TESTS[1])

from docs.commands import (  # noqa: E402
    commands_of,
    environment,
    names_checkout,
    reader_environment,
    simple_commands,
    what_is_wrong,
    why_long,
)
from docs.overlay import Overlay  # noqa: E402
from docs.pages import (  # noqa: E402
    ROOT,
    SHELLS,
    Fence,
    is_for_readers,
    is_like,
    is_like_apart_from_numbers,
    pages,
    read,
)

SECONDS = 300
# Packages that a machine may lack: a fence that names one is skipped there, and so is the Python below it.
OPTIONAL = ("torch", "jax")
# The same, but nothing below depends on a plot.
PLOTS = "matplotlib"


class Skipped(Exception):
    """A fence that cannot be run here, and why."""


class Page:
    """The folder and the names that the fences of a page share."""

    def __init__(self, page: str, folder: pathlib.Path, wheel: bool = False):
        self.page, self.folder, self.wheel = page, folder, wheel
        self.overlay = Overlay(folder / ".overlay")
        self.environment = reader_environment(wheel) if is_for_readers(page) else environment()
        self.stem = pathlib.Path(page).stem.replace("-", "_")
        self.names = self.new_names(0)
        self.printed = ""
        self.missing = ""  # the package that a fence was skipped for

    def new_names(self, line: int) -> dict[str, object]:
        module = types.ModuleType(f"page_{self.stem}_{line}")
        sys.modules[module.__name__] = module
        return vars(module)

    def run(self, fence: Fence) -> None:
        """Runs one fence; an exception says what is wrong with it."""
        if fence.output:
            if self.missing:
                raise Skipped(self.missing)
            if fence.before:
                self.run_hidden(fence)
            like = is_like_apart_from_numbers if fence.measured else is_like
            if not like(fence.text, self.printed):
                raise AssertionError(f"what is printed is not this:\n{self.printed}")
            return
        if fence.file and fence.label == "cpp":
            self.overlay.create(fence.file, fence.text)
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
            "cpp": self.run_in_file,
            "tablegen": self.run_in_file,
            **dict.fromkeys(SHELLS, self.run_shell),
        }.get(fence.label, self.cannot_run)(fence)

    def cannot_run(self, fence: Fence) -> None:
        raise AssertionError(f"nothing runs `{fence.label}` here")

    def run_python(self, fence: Fence) -> None:
        # Kernels are read from their file, in which they have the lines of the page.
        file = self.folder / f"{self.stem}_{fence.line}.py"
        file.write_text("\n" * fence.line + fence.text)
        code = compile(file.read_text(), str(file), "exec", dont_inherit=True)
        if fence.why_not_run:
            return
        if fence.alone:
            self.names = self.new_names(fence.line)
            self.missing = ""
        for package in (*OPTIONAL, PLOTS):
            if re.search(rf"\b{package}\b", fence.text) and not importlib.util.find_spec(package):
                text = f"{package} is not installed"
                self.missing = self.missing if package == PLOTS else text
                raise Skipped(text)
        if self.missing:
            raise Skipped(self.missing)
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
        # What a block has exported, and the folder that it has gone to, the next one finds.
        state = self.folder / ".shell"
        script = ["set -e -o pipefail", f"[ ! -e {state} ] || source {state}", fence.before]
        script.insert(1, f"trap 'export -p >{state}; echo \"cd $PWD\" >>{state}' EXIT")
        shown: list[str] = []
        for number, (command, output) in enumerate(commands_of(fence.text)):
            programs = simple_commands(command)
            if self.wheel and any(names_checkout(words) for words in programs):
                continue
            if any(why_long(words) for words in programs):
                if is_for_readers(self.page) and not fence.why_not_run:
                    raise AssertionError(f"{command} is not run here: list the fence in pages.py")
                for words in programs:
                    if wrong := what_is_wrong(words):
                        raise AssertionError(wrong)
                continue
            # What it prints goes into a file of its own, and the shell stays the same one.
            failed = shlex.quote(f"this fails: {command}")
            out = self.folder / f"out.{number}"
            script.append(f"{{ {command}\n}} >{out} 2>&1 || {{ echo {failed}; exit 1; }}")
            shown.append(output)
        result = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=self.folder,
            env=self.environment,
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

    def run_in_file(self, fence: Fence) -> None:
        """C++ and TableGen are compiled in their file, with what the page has added before."""
        if fence.place is None:
            raise AssertionError("above it has to be: In `FILE`, before (or after) `TEXT`:")
        self.overlay.add(*fence.place, fence.text)

    def run_toml(self, fence: Fence) -> None:
        import tomllib

        tomllib.loads(fence.text)

    def run_yaml(self, fence: Fence) -> None:
        import yaml

        yaml.safe_load(fence.text)


def run_page(page: str, until: int = 0, wheel: bool = False) -> dict[str, str]:
    """Runs a page, up to a line if that is given: for each fence nothing, an error, or `skipped: ` and why."""
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        if not wheel:
            for entry in ROOT.iterdir():
                if not entry.name.startswith("."):
                    (folder / entry.name).symlink_to(entry)
            (folder / ".venv").symlink_to(sys.prefix)
        os.environ.update(TESSERA_CACHE_DIR=str(folder / ".cache"), HOME=name)
        os.chdir(folder)
        sys.path[:] = [name, *(path for path in sys.path if path not in TESTS)]
        sys.argv = [""]
        state = Page(page, folder, wheel)
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
            except Skipped as skipped:
                results[str(fence.line)] = f"skipped: {skipped}"
            except BaseException:
                results[str(fence.line)] = f"{fence.id}:\n{fence.text}\n{traceback.format_exc()}"
                if shell or fence.label == "python":
                    broken[shell] = fence.id
        os.chdir(ROOT)
        forget_files(name)
    return results


def forget_files(folder: str) -> None:
    """Has Python forget a page's folder and its modules, so that the next page has its own."""
    sys.path[:] = [path for path in sys.path if path != folder]
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(folder):
            del sys.modules[name]


def print_list() -> None:
    """Names what is not run, or not whole."""
    every = [fence for page in pages() for fence in read(page)]
    code = [fence for fence in every if fence.is_code or fence.is_run]
    left = [fence for fence in code if fence.reason or fence.why_not_run]
    print(f"{len(code)} fences of code: {len(code) - len(left)} run, {len(left)} not, or not whole")
    for fence in left:
        print(f"  {fence.id} ({fence.label}): {fence.reason or fence.why_not_run}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="page")
    parser.add_argument("--line", type=int, default=0, help="stop behind the fence of this line")
    parser.add_argument("--json", type=pathlib.Path, help="where to write what became of each")
    parser.add_argument("--wheel", action="store_true", help="as a reader who has no checkout")
    parser.add_argument("--list", action="store_true", help="name what is not run, and why")
    arguments = parser.parse_args()
    if arguments.list or not arguments.pages:
        print_list()
        return 0
    output = arguments.json.resolve() if arguments.json else None
    pages = [os.path.relpath(os.path.abspath(page), ROOT) for page in arguments.pages]
    results = {page: run_page(page, arguments.line, arguments.wheel) for page in pages}
    if output:
        output.write_text(json.dumps(results))
        return 0
    failed = False
    for page, line, error in [(page, *item) for page in pages for item in results[page].items()]:
        bad = bool(error) and not error.startswith("skipped: ")
        failed |= bad
        print(f"{page}:{line}: {'failed' if bad else 'ok'}\n{error}".rstrip())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
