#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the site of the documentation, and fails if it has mistakes.

Pages are the project's own Markdown, and pages made from the code. Signatures and docstrings give
the language reference and the API, and TableGen files give dialects and passes. The gallery
compiles its kernels, and tables and charts come from docs/benchmarks. Everything is written to the
folder of the build, and nothing is fetched. A warning of Sphinx is an error, and so is a finding of
verify.py. It finds dead links, ids of errors without an anchor, public names or ops without an
entry, and pages that load resources from other sites.

Usage: build_site.py [--out FOLDER] [--jobs N]
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import sys
import time
from collections.abc import Callable
from typing import TypeVar

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "python"), str(ROOT / "tools/dev")]

import api_pages  # noqa: E402
import benchmark_page  # noqa: E402
import dialects  # noqa: E402
import error_examples  # noqa: E402
import error_ids  # noqa: E402
import gallery  # noqa: E402
import markdown  # noqa: E402
import operators  # noqa: E402
import search_index  # noqa: E402
import site_map  # noqa: E402
import verify  # noqa: E402

T = TypeVar("T")


def add_pages(pages: markdown.Pages) -> None:
    """Every page but the first one."""
    replaced = {"README.md", "docs/Errors.md", "docs/Language.md", "docs/Benchmarks.md"}
    for path in site_map.own_pages():
        if path not in replaced:
            pages.add_file(path)
    readme = (ROOT / "README.md").read_text()
    pages.add("README.md", readme.replace("# Tessera\n", "# Overview\n", 1))
    errors = (ROOT / "docs/Errors.md").read_text()
    pages.add("docs/Errors.md", error_ids.page(errors, error_examples.examples()))
    pages.add("docs/Benchmarks.md", benchmark_page.page())
    made = (*api_pages.pages(), *dialects.pages(), *operators.pages(), *gallery.pages(pages.out))
    for path, text in made:
        pages.add(path, text)


def build(out: pathlib.Path, jobs: int) -> list[str]:
    """Makes the site in out/html; returns what is wrong with it."""
    source = out / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(out / "html", ignore_errors=True)
    pages = markdown.Pages(source)
    pages.families = api_pages.family_pages()
    pages.described = api_pages.source_pages()
    timed("pages", lambda: add_pages(pages))
    pages.add("index.md", site_map.index(pages.written))
    for path, text in site_map.chapters(pages.written):
        pages.add(path, text)
    pages.finish()
    from sphinx.cmd.build import build_main

    command = ["-b", "html", "-q", "-W", "--keep-going", "-j", str(jobs), "-c", str(HERE)]
    command += ["-d", str(out / "doctrees"), str(source), str(out / "html")]
    status = timed("html", lambda: build_main(command))
    problems = list(pages.problems)
    if status:
        problems.append("Sphinx has warnings, which are above")
    if (out / "html" / "index.html").exists():
        timed("index", lambda: search_index.write(out / "html"))
        problems += timed("verify", lambda: verify.problems(out / "html"))
    return problems


def timed(what: str, work: Callable[[], T]) -> T:
    """The result of `work`. Prints its time."""
    start = time.monotonic()
    result = work()
    print(f"{what}: {time.monotonic() - start:.1f} s", flush=True)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "site")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    problems = build(arguments.out.resolve(), arguments.jobs)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} problems in the site")
        return 1
    print(f"the site is {arguments.out.resolve() / 'html' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
