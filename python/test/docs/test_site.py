# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The site of the documentation: what its check finds, and what pages are made of.

The site itself is built by the check `site` (tools/docs). Here the check is given sites with
one thing wrong, and parts that need no Sphinx are held to the sources they are made from.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree

import pytest

from . import letters

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools/site"), str(ROOT / "tools/dev")]

import api_pages  # noqa: E402
import benchmark_page  # noqa: E402
import charts  # noqa: E402
import dialects  # noqa: E402
import error_ids  # noqa: E402
import gallery  # noqa: E402
import generate_docs  # noqa: E402
import landing  # noqa: E402
import markdown  # noqa: E402
import reference  # noqa: E402
import search_index  # noqa: E402
import site_map  # noqa: E402
import verify  # noqa: E402

GOOD = {
    "index.html": '<h1 id="start">S</h1><a href="docs/Errors.html#e001">e</a><a href="#start">s</a>'
    '<link rel="stylesheet" href="_static/a.css?v=1"><a href="https://example.org/x">x</a>',
    "docs/Errors.html": '<h3 id="e001">E001</h3><a href="../index.html">up</a>',
    "docs/API/Host.html": '<dt id="tessera.jit">jit</dt>',
    "docs/Dialects/Tile.html": '<h3><code>tile.load</code><a class="headerlink" href="#">#</a></h3>',
}


def write_site(folder: pathlib.Path, **changes: str) -> pathlib.Path:
    """A small site, with pages changed."""
    pages = {**GOOD, **{name.replace("__", "/") + ".html": text for name, text in changes.items()}}
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"<html><body>{text}</body></html>")
    (folder / "_static").mkdir()
    (folder / "_static/a.css").write_text("body { color: black }")
    return folder


def findings(folder: pathlib.Path) -> list[str]:
    pages = verify.read_site(folder)
    return [
        *verify.broken_links(folder, pages),
        *verify.fetched(folder, pages),
        *verify.missing_ids(pages, ["E001"]),
        *verify.missing_names(pages, ["tessera.jit"]),
        *verify.missing_headings(pages, "docs/Dialects/", ["tile.load"]),
    ]


def test_a_site_without_mistakes(tmp_path):
    assert findings(write_site(tmp_path)) == []


@pytest.mark.parametrize(
    "page, text, found",
    [
        ("index", '<a href="docs/Gone.html">x</a>', "index.html: nothing is at docs/Gone.html"),
        ("index", '<a href="docs/Errors.html#e999">x</a>', "index.html: no anchor docs/Errors.html#e999"),
        ("index", '<a\n class="x" href="#gone">x</a>', "index.html: no anchor #gone"),
        ("index", '<img src="gone.png"/>', "index.html: nothing is at gone.png"),
        ("index", '<script src="//cdn.example/x.js"></script>', "index.html: loads //cdn.example/x.js"),
        (
            "index", '<link href="https://fonts.example/f.css" rel="stylesheet">',
            "index.html: loads https://fonts.example/f.css",
        ),
        ("docs__Errors", "<h3>E001</h3>", "error E001 has no anchor #e001"),
        ("docs__API__Host", "<dt>jit</dt>", "tessera.jit has no entry"),
        ("docs__Dialects__Tile", "<p>tile.load</p>", "tile.load has no section"),
    ],
)  # fmt: skip
def test_a_mistake_is_found(page, text, found, tmp_path):
    told = findings(write_site(tmp_path, **{page: text}))
    assert any(one.startswith(found) for one in told), told


def test_a_style_that_loads_a_font_is_found(tmp_path):
    folder = write_site(tmp_path)
    (folder / "_static/b.css").write_text("@font-face { src: url('https://fonts.example/f.woff') }")
    assert [one.split(":")[0] for one in findings(folder)] == ["_static/b.css"]


def test_links_in_code_are_no_links(tmp_path):
    text = "<code>&lt;a href=&quot;gone.html&quot;&gt;</code>"
    assert findings(write_site(tmp_path, other=text)) == []


# Pages of the project.


def test_every_link_of_the_project_s_pages_leads_somewhere(tmp_path):
    pages = markdown.Pages(tmp_path)
    for path in site_map.own_pages():
        pages.add_file(path)
    pages.add("index.md", landing.page())
    pages.finish()
    assert pages.problems == []


def test_a_link_to_nothing_is_a_problem(tmp_path):
    pages = markdown.Pages(tmp_path)
    text = (
        "[a](Gone.md) `[b](Gone.md)` ![c](gone.png)\n\n```\n[d](Gone.md)\n```\n[e](Status.md#x)\n"
    )
    pages.add("docs/Page.md", text)
    assert pages.problems == [
        "docs/Page.md: there is no Gone.md",
        "docs/Page.md: there is no gone.png",
    ]


def test_a_family_of_the_language_is_a_page(tmp_path):
    pages = markdown.Pages(tmp_path)
    pages.families = api_pages.family_pages()
    pages.add(
        "docs/HowTo/Page.md", "[a](../Language.md#memory) [b](../Language.md#what-is-defined)\n"
    )
    text = (tmp_path / "docs/HowTo/Page.md").read_text()
    assert text == "[a](../Language/Memory.md) [b](../Language.md#what-is-defined)\n"


def test_what_is_no_page_becomes_one(tmp_path):
    pages = markdown.Pages(tmp_path)
    pages.add("docs/HowTo/Page.md", "[a](../../python/examples/softmax.py), [b](../../README.md)\n")
    pages.finish()
    text = (tmp_path / "docs/HowTo/Page.md").read_text()
    assert text == "[a](../../source/python/examples/softmax.py.md), [b](../../README.md)\n"
    copied = (tmp_path / "source/python/examples/softmax.py.md").read_text()
    assert "def softmax_kernel(" in copied


def test_a_page_stands_in_one_chapter():
    pages = set(site_map.own_pages()) | {"docs/New.md", "NEW.md", "docs/Gallery/index.md"}
    listed = [page for _, found in site_map.chosen(pages) for page in found]
    assert len(listed) == len(set(listed))
    assert {"docs/New.md", "NEW.md", "docs/Errors.md", "docs/Gallery/index.md"} <= set(listed)


def test_a_readme_stands_for_its_folder(tmp_path, monkeypatch):
    (tmp_path / "docs/Decisions").mkdir(parents=True)
    (tmp_path / "docs/Decisions/README.md").write_text("# Why\n")
    monkeypatch.setattr(site_map, "ROOT", tmp_path)
    pages = {"docs/Decisions/README.md", "docs/Decisions/1.md", "docs/HowTo/A.md"}
    assert [found for _, found in site_map.chosen(pages)] == [
        ["docs/HowTo/index.md"], ["docs/Decisions/README.md"]
    ]  # fmt: skip
    texts = dict(site_map.chapters(pages))
    assert (
        texts["docs/Decisions/README.md"].startswith("# Why\n")
        and "\n1\n" in texts["docs/Decisions/README.md"]
    )
    assert (
        texts["docs/HowTo/index.md"].startswith("# How to\n")
        and "\nA\n" in texts["docs/HowTo/index.md"]
    )


# Errors.


def test_every_id_gets_a_section():
    text = (ROOT / "docs/Errors.md").read_text()
    ids = re.findall(r"^\| (E\d{3}) \|", text, re.MULTILINE)
    page = error_ids.page(text, {"E005": "an example"})
    assert re.findall(r"^### (E\d{3})$", page, re.MULTILINE) == ids == error_ids.ids(text)
    assert page.index("### E005") < page.index("an example") < page.index("### E006")
    assert "| E" not in page


# The search.

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH")


def searched(folder: pathlib.Path, query: str, **pages: str) -> list[str]:
    """The pages that static/search.js gives for a search of a small site, best first."""
    for name, text in pages.items():
        file = folder / f"{name.replace('__', '/')}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"<nav>everywhere</nav><article>{text}</article><footer>everywhere</footer>"
        )
    (folder / "_static").mkdir(exist_ok=True)
    search_index.write(folder)
    found = search_index.found(folder, [query])
    return [page.removesuffix(".html").removeprefix("docs/") for page in found[0]]


def page(title: str, text: str) -> str:
    return f'<section id="top"><h1>{title}<a class="headerlink" href="#top">#</a></h1><p>{text}</p></section>'


@needs_node
def test_a_search_ranks_pages_for_users_before_the_notebook(tmp_path):
    found = searched(
        tmp_path, "occupancy", notes__Notebook=page("Notebook", "Occupancy. " * 20),
        docs__HowTo__Fast=page("Fast", "What occupancy is."), docs__HowTo__Other=page("Other", "Nothing."),
    )  # fmt: skip
    assert found == ["HowTo/Fast", "notes/Notebook"]


@needs_node
@pytest.mark.parametrize("query", ["profile", "profiling", "Profiler?", "how to profile", "prof"])
def test_a_search_finds_other_forms_of_a_word(query, tmp_path):
    pages = {
        "docs__HowTo__A": page("A", "Profile it."),
        "docs__HowTo__B": page("B", "Proof of it."),
    }
    assert searched(tmp_path, query, **pages) == ["HowTo/A"]


@needs_node
def test_a_search_knows_what_others_call_a_function(tmp_path):
    entry = '<dt class="sig sig-object py" id="tessera.language.clamp">clamp(x)</dt><dd>In between.</dd>'
    pages = {
        "docs__Language__Maths": page("Maths", "") + entry,
        "docs__HowTo__A": page("A", "clamps it"),
    }
    assert searched(tmp_path, "clip", **pages) == ["Language/Maths"]
    assert searched(tmp_path, "tl.clamp", **pages) == ["Language/Maths", "HowTo/A"]


@needs_node
def test_a_search_knows_other_words_for_speed(tmp_path):
    pages = {
        "docs__HowTo__Tune": page("Tune it", "Measure."),
        "docs__HowTo__B": page("Look up", "Names."),
    }
    assert searched(tmp_path, "speed up", **pages)[0] == "HowTo/Tune"


@needs_node
@pytest.mark.parametrize("query", ["everywhere", "the", "?", ""])
def test_a_search_for_nothing_finds_nothing(query, tmp_path):
    assert searched(tmp_path, query, docs__HowTo__A=page("A", "Text.")) == []


@needs_node
def test_a_page_that_is_not_found_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(search_index, "SEARCHES", {"text": "docs/A.html", "lost": "docs/A.html"})
    searched(tmp_path, "", docs__A=page("A", "Text."))
    assert search_index.missed(tmp_path) == [
        "a search for `lost` does not lead to docs/A.html, but to nothing"
    ]


def test_the_search_fetches_nothing():
    program = search_index.PROGRAM.read_text()
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|\bimport ", program)
    template = (ROOT / "tools/site/templates/search.html").read_text()
    assert f"'{search_index.INDEX}'" in template and "'_static/search.js'" in template


# The reference.


def test_the_reference_has_every_public_name():
    text = "\n".join(text for _, text in api_pages.reference_pages())
    entries = set()
    for name, module in re.findall(
        r"^:+\{py:(?:\w+)\} ([\w.]+).*\n:module: ([\w.]+)$", text, re.MULTILINE
    ):
        entries.add(f"{module}.{name}")
    wanted = set(api_pages.required_names())
    assert len(wanted) > 400
    assert wanted - entries == set()


class Sample:
    """A class."""

    def method(self, first: int, *rest: str, named: bool = False, _hidden: int = 0) -> "Sample":
        """What it does."""
        return self

    field = 1
    """What it is."""


def function(x, /, y: int = 3, *, z=object()):
    """Nothing."""


def test_signatures_are_what_a_user_writes():
    assert reference.signature(Sample.method, drop_first=True) == (
        "(first: int, *rest: str, named: bool = False) -> Sample"
    )
    assert reference.signature(function) == "(x, /, y: int = 3, *, z=...)"


def test_a_text_under_an_assignment_is_its_docstring():
    assert reference.attribute_docs(Sample) == {"field": "What it is."}


def test_options_of_a_launch_have_a_text_each():
    from tessera.compiler.options import OPTION_NAMES, CompileOptions

    entries = reference.members(CompileOptions, "CompileOptions", {})
    assert list(entries) == list(OPTION_NAMES)
    texts = {
        name: "".join(line for line in lines if line[:1] not in (":", ""))
        for name, lines in entries.items()
    }
    assert [name for name, text in texts.items() if not text] == []
    assert entries["tune"][1:3] == [":type: str", """:value: "'lite'\""""]


def test_what_a_public_base_has_is_described_there():
    from tessera.language import types

    assert "is_int" in reference.members(types.dtype, "dtype", {})
    assert "is_int" not in reference.members(types.block_type, "block_type", {})


def test_a_method_of_a_tensor_is_a_function_without_its_first_argument():
    from tessera.language import tensor

    found = reference.members(tensor, "tensor", {})
    text = "\n".join(found["sum"])
    assert text.startswith(":::{py:method} tensor.sum(axis") and "`tessera.language.sum`" in text
    assert found["to"][0].startswith(":::{py:method} tensor.to(dtype")


def test_names_with_their_meanings_are_a_list():
    text = reference.prose("Options:\n  debug: whether\n    it is on.\n  repr: a name\n\nThen.")
    assert text.split("\n") == [
        "Options:", "", "- `debug`: whether", "    it is on.", "", "- `repr`: a name", "", "Then."
    ]  # fmt: skip


@pytest.mark.parametrize("between", ["\n", "\n\n"], ids=["at once", "after a line"])
def test_the_example_of_a_docstring_is_code(between):
    code = "x = tl.arange(0, 4)\n\nfor i in range(2):\n    x += i"
    doc = "What it does.\n\nExample:" + between + textwrap.indent(code, "    ")
    shown = f"**Example**\n\n```python\n{code}\n```"
    assert reference.prose(doc) == f"What it does.\n\n{shown}"
    marked = shown.replace("```p", "<!-- run: no, test_docstrings.py runs it -->\n```p")
    assert marked in generate_docs.with_fences(doc)


def test_a_source_with_a_page_of_the_reference(tmp_path):
    pages = markdown.Pages(tmp_path)
    pages.described = api_pages.source_pages()
    pages.add("docs/HowTo/A.md", "[a](../../python/tessera/compiler/options.py)\n")
    assert (tmp_path / "docs/HowTo/A.md").read_text() == "[a](../API/Options.md)\n"


def test_an_entry_is_closed_by_its_own_fence():
    inner = reference.directive("method", "C.m()", ["text"])
    outer = reference.directive("class", "C", inner)
    assert outer[0].startswith("::::{py:class}") and inner[0].startswith(":::{py:method}")


# Dialects, passes, the gallery.


def test_pages_of_dialects_have_their_ops_and_types():
    pages = dict(dialects.pages())
    tile = pages["docs/Dialects/Tile.md"]
    assert "### `tile.load`" in tile and "## Memory" in tile and "## Types" in tile
    assert "mlir-tblgen" not in tile and "[TOC]" not in tile
    assert "## `--tile-combine`" in pages["docs/Passes/DialectTileTransforms.md"]


def test_a_dialect_in_the_tree_has_a_page():
    folders = {path.name for path in (ROOT / "include/tessera/Dialect").iterdir()}
    assert {
        name for name in folders if (dialects.INCLUDE / "tessera/Dialect" / name / "IR").is_dir()
    } == set(dialects.DIALECTS)
    passes = {
        path.parent.relative_to(dialects.INCLUDE / "tessera").as_posix()
        for path in dialects.INCLUDE.rglob("Passes.td")
    }
    assert passes == set(dialects.PASSES)


@pytest.mark.parametrize("work", gallery.WORKS, ids=lambda work: work.name)
def test_works_of_the_gallery_have_a_source_and_figures(work):
    text = gallery.source(work)
    assert f"def {work.kernel}(" in text
    for name, wanted in (
        ("cpu", work.cpu_rows),
        ("gpu", work.gpu_rows),
        ("gpu_matmul", work.gpu_rows),
    ):
        rows = [row["work"] for row in gallery.raw(name)["rows"]]
        found = {prefix for prefix in wanted if any(row.startswith(prefix) for row in rows)}
        if name == "cpu":
            assert found == set(wanted)
    assert all(chart.count("<rect") > 2 for _, chart, _ in gallery.plots(work))


def test_the_first_page_has_what_readme_has():
    page = landing.page()
    readme = (ROOT / "README.md").read_text()
    for language in ("python", "bash"):
        shown = landing.blocks(page, language)
        assert (
            shown
            and [block for block in shown if "nvcc" not in block and block not in readme] == []
        )
    assert page.count(":::{tab-item}") == page.count(":::{grid-item-card}") == 3
    assert len(list(landing.speed_charts())) == page.count('<figure class="chart">') == 2
    assert re.search(r"the line: NVIDIA .*, 20\d\d-\d\d-\d\d<", page)
    for _, target, _, _ in landing.CARDS:
        assert target == "docs/Gallery/index" or (ROOT / f"{target}.md").exists()


def test_every_card_of_the_gallery_has_a_picture():
    page = gallery.index()
    shown = re.findall(r'<svg class="picture" viewBox="0 0 (\d+) (\d+)".*?</svg>', page)
    assert len(shown) == len(gallery.WORKS)
    for match in re.finditer(r'<svg class="picture".*?</svg>', page):
        root = ElementTree.fromstring(match[0])
        width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
        assert root.attrib["aria-label"]
        for rect in root.iter("rect"):
            x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
            assert 0 <= x < x + w <= width and 0 <= y < y + h <= height
    assert len(set(re.findall(r'<svg class="picture".*?</svg>', page))) == len(gallery.WORKS)


def test_bars_are_as_long_as_their_numbers():
    groups = [
        charts.Group("a", [charts.Bar("x", 2.0), charts.Bar("<y>", 1.0), charts.Bar("z", 9.0)])
    ]
    chart = charts.bars("t", groups, most=4.0)
    widths = [float(width) for width in re.findall(r'width="([\d.]+)%" height="14"', chart)]
    assert widths == [40, 20, 80]
    assert "9.00 »" in chart and "2.00 »" not in chart
    assert "&lt;y&gt;" in chart and "<y>" not in chart


def cut_texts(chart: str, width: float) -> list[str]:
    """The texts of a chart that reach out of it where the page gives it `width` pixels."""
    root = ElementTree.fromstring(re.search(r"<svg.*</svg>", chart, re.DOTALL)[0])
    found = []
    for text in root.iter("text"):
        x = text.attrib["x"]
        left = float(x[:-1]) / 100 * width if x.endswith("%") else float(x)
        right = left + float(text.attrib.get("dx", 0)) + letters.width(text.text, charts.SIZE)
        inside = charts.SIZE <= float(text.attrib["y"]) + 3 < float(root.attrib["height"])
        if left < 0 or right > width or not inside:
            found.append(text.text)
    return found


def test_no_label_of_a_chart_is_cut():
    drawn = [chart for work in gallery.WORKS for _, chart, _ in gallery.plots(work)]
    drawn += [*benchmark_page.charts().values(), *landing.speed_charts()]
    assert len(drawn) >= 17
    for chart in drawn:
        assert chart.count("<text") > 2
        assert cut_texts(chart, charts.NARROWEST) == []
        assert cut_texts(chart, 860) == []
    assert f"font-size: {charts.SIZE}px" in (ROOT / "tools/site/static/site.css").read_text()


def test_a_label_that_is_too_long_is_broken():
    label = "multi-scale deformable attention, forward and backward, of an encoder of 800 x 1333"
    chart = charts.bars("t", [charts.Group(label, [charts.Bar("x", 1.0)])])
    shown = re.findall(r'<text x="2"[^>]*>(.*?)</text>', chart)
    assert len(shown) > 1 and " ".join(shown) == label
    assert cut_texts(chart, charts.NARROWEST) == []
    assert shown[0] in cut_texts(chart, 160)


def test_the_check_is_there():
    listed = subprocess.run(
        [sys.executable, ROOT / "tools/dev/run_checks.py", "--list"], capture_output=True, text=True
    )
    assert "site" in listed.stdout.split()


def test_families_have_what_readers_look_for_there():
    pages = dict(api_pages.reference_pages())
    for page, names in (
        ("ReductionsAndScans", "sum max reduce"),
        ("Creation", "zeros arange"),
        ("Shape", "flip trans"),
        ("Maths", "softmax exp"),
    ):
        text = pages[f"docs/Language/{page}.md"]
        for name in names.split():
            assert re.search(rf"\{{py:function\}} {name}\(", text), (page, name)
    names = [name for names in api_pages.TOPICS.values() for name in names]
    assert set(names) <= set(reference.public_names(reference.load("tessera.language")))
