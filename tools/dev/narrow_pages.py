#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the built site in a browser as narrow as a phone.

Lists pages, tables and charts that scroll sideways, and labels of charts that exceed their picture.
Code may scroll. It is not part of the checks, which need no browser: python/test/docs/test_site.py
computes the labels from widths of letters.

Needs Chromium (Debian: apt-get install chromium). Everything is read from the disk.

Usage: narrow_pages.py [--site FOLDER] [--width PIXELS] [PAGE ...]
"""

from __future__ import annotations

import argparse
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]

HARNESS = """<!doctype html><meta charset="utf-8"><iframe id="f" style="border:0;width:%(width)dpx;height:844px">
</iframe><pre id="out"></pre><script>
const pages = %(pages)s, frame = document.getElementById("f"), found = [];
function look() {
  const page = frame.contentDocument, root = page.documentElement, box = frame.contentWindow;
  const wide = [...page.querySelectorAll("article *")].filter((e) =>
    e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(box.getComputedStyle(e).overflowX) &&
    !e.closest("pre, .highlight, .sd-tab-label"));
  const labels = [...page.querySelectorAll("article svg text")], cut = labels.filter((label) => {
    const a = label.getBoundingClientRect(), b = label.ownerSVGElement.getBoundingClientRect();
    return a.left < b.left - 0.5 || a.right > b.right + 0.5 || a.top < b.top - 0.5 || a.bottom > b.bottom + 0.5;
  });
  return {
    width: root.scrollWidth,
    beyond: [...page.querySelectorAll("article *")].filter((e) => e.getBoundingClientRect().right > %(width)d + 1)
      .slice(0, 3).map((e) => e.outerHTML.slice(0, 90)),
    boxes: wide.map((e) => e.tagName.toLowerCase() + "." + e.className + " " + e.scrollWidth),
    labels: labels.length, cut: cut.map((e) => e.textContent),
  };
}
(async () => {
  for (const page of pages) {
    await new Promise((done) => { frame.onload = done; frame.src = page; });
    await new Promise((done) => setTimeout(done, 50));
    found.push(look());
  }
  document.getElementById("out").textContent = JSON.stringify(found);
})();
</script>"""


def look(site: pathlib.Path, pages: list[str], width: int) -> list[dict[str, Any]]:
    """The browser's measurements of each page."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium is on PATH; Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        harness = pathlib.Path(folder) / "harness.html"
        urls = json.dumps([(site / page).as_uri() for page in pages])
        harness.write_text(HARNESS % {"width": width, "pages": urls})
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files",
                   f"--user-data-dir={folder}/profile", "--window-size=1200,900",
                   f"--virtual-time-budget={1000 * len(pages) + 5000}", "--dump-dom", harness.as_uri()]  # fmt: skip
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    match = re.search(r'<pre id="out">(.*?)</pre>', out, re.DOTALL)
    found: list[dict[str, Any]] = json.loads(html.unescape(match[1])) if match and match[1] else []
    if len(found) != len(pages):
        raise SystemExit("the browser did not finish; try fewer pages")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=pathlib.Path, default=ROOT / "build/site/html")
    parser.add_argument("--width", type=int, default=390)
    parser.add_argument("pages", nargs="*", help="paths in the site; all without any")
    arguments = parser.parse_args()
    site = arguments.site.resolve()
    pages = arguments.pages or sorted(
        path.relative_to(site).as_posix() for path in site.rglob("*.html")
    )
    found = look(site, pages, arguments.width)
    bad = 0
    for page, facts in zip(pages, found):
        if facts["width"] > arguments.width or facts["cut"]:
            bad += 1
            print(f"{page}: {facts['width']} px", *facts["beyond"], *facts["cut"], sep="\n    ")
        for box in facts["boxes"]:
            print(f"{page}: {box} px scrolls by itself")
    labels, cut = sum(f["labels"] for f in found), sum(len(f["cut"]) for f in found)
    scroll = sum(f["width"] > arguments.width for f in found)
    print(
        f"{len(pages)} pages of {arguments.width} px: {scroll} scroll sideways; {cut} of {labels} labels cut"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
