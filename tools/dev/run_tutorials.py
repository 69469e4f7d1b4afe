#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs pages of docs/Tutorial, and renews what they print and draw: fences, images and notebooks.

Output that is compared (`run: output`) is replaced if the run differs from it. Figures of a machine
(`run: measured`) are always replaced. Plots need matplotlib, which nothing else of the project needs:
`pip install matplotlib`. Run it on a machine without other work, and correct the machine and date
that the page names.

Usage: tools/dev/run_tutorials.py [PAGE...]      default: all
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import re
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/dev"), str(ROOT / "python/test"), str(ROOT / "python")]

import notebooks  # noqa: E402
from docs.pages import Fence, is_like, read  # noqa: E402
from docs.run_page import Page  # noqa: E402

MAX_PICTURE_BYTES = 60_000
_PLACE = re.compile(r"[^\s`]*/page-\w+/\w+\.py:\d+(:\d+)?")
"""A line of a page's code, which another edition of the page has elsewhere."""


def picture_below(lines: list[str], fence: Fence) -> str:
    """The image of a page that stands right below a fence; empty if there is none."""
    for line in lines[fence.line + fence.text.count("\n") + 1 :]:
        if line.strip():
            found = notebooks.PICTURE.match(line)
            return found[2] if found else ""
    return ""


def save_plot(target: pathlib.Path) -> None:
    """Writes the plot that the last cell has drawn, the same bytes for the same plot."""
    plots = importlib.import_module("matplotlib.pyplot")
    settings = {
        "svg.hashsalt": target.stem,
        "svg.fonttype": "none",
        "font.family": "sans-serif",
    }
    with importlib.import_module("matplotlib").rc_context(settings):
        plots.savefig(target, metadata={"Date": None}, bbox_inches="tight")
    plots.close("all")
    lines = (line.rstrip() for line in target.read_text().splitlines())
    target.write_text("\n".join(lines) + "\n")
    size = target.stat().st_size
    if size > MAX_PICTURE_BYTES:
        raise SystemExit(f"{target} has {size} bytes; {MAX_PICTURE_BYTES} are allowed")


def run(page: str, folder: pathlib.Path) -> str:
    """The page with what its cells print today; writes its images."""
    lines = (ROOT / page).read_text().splitlines()
    state = Page(page, folder)
    renewed: list[tuple[Fence, str]] = []
    for fence in read(page):
        if fence.output:
            same = is_like(fence.text, state.printed) and not fence.measured
            if not same:
                renewed.append((fence, _PLACE.sub("...", state.printed)))
        elif fence.is_run:
            state.run(fence)
            if picture := picture_below(lines, fence):
                save_plot(ROOT / os.path.dirname(page) / picture)
    for fence, printed in reversed(renewed):
        last = next(at for at in range(fence.line, len(lines)) if lines[at].strip() == "```")
        lines[fence.line : last] = printed.rstrip().splitlines()
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="paths of pages")
    given = [os.path.relpath(os.path.abspath(page), ROOT) for page in parser.parse_args().pages]
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before the first page imports NumPy
    warnings.filterwarnings("ignore", message=".*non-interactive.*")
    for page in given or notebooks.pages():
        with tempfile.TemporaryDirectory(prefix="page-") as name:
            folder = pathlib.Path(name)
            for entry in ROOT.iterdir():
                if not entry.name.startswith("."):
                    (folder / entry.name).symlink_to(entry)
            (folder / ".venv").symlink_to(sys.prefix)
            os.environ["TESSERA_CACHE_DIR"] = str(folder / ".cache")
            sys.path.insert(0, name)
            os.chdir(folder)
            text = run(page, folder)
            os.chdir(ROOT)
            sys.path.remove(name)
        (ROOT / page).write_text(text)
        (ROOT / page).with_suffix(".ipynb").write_text(notebooks.notebook(page))
        print(f"{page} is renewed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
