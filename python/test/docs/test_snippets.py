# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every fence of README.md, docs/ and their like is run, or says why it is not (run_page.py)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from docs import commands
from docs.installed import install
from docs.pages import (
    NOT_RUN,
    ROOT,
    SHELLS,
    Fence,
    Unclear,
    code_spans,
    fences_of,
    indented_code,
    is_for_readers,
    is_for_users,
    is_like,
    pages,
    read,
)

PAGES = pages()


def collected() -> list[Fence]:
    """The fences of all pages. Of a page that cannot be read there are none: test_labels says why."""
    found: list[Fence] = []
    for page in PAGES:
        with contextlib.suppress(Unclear):
            found += [fence for fence in read(page) if fence.is_code or fence.is_run]
    return found


@pytest.fixture(scope="session")
def results(request, tmp_path_factory):
    """What became of the fences of a page, by a Python. All processes of pytest-xdist run it once."""
    shared = shared_folder(tmp_path_factory)
    kept: dict[str, dict[str, str]] = {}
    # The pages of the tutorial that are selected share a process, which loads torch once.
    calls = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    selected = {call["fence"].page for call in calls if "fence" in call}
    tutorial = [
        page
        for page in sorted(selected)
        if page.startswith("docs/Tutorial/") and not names_checkout(page)
    ]

    def of(page: str, *options: str, python: str = sys.executable) -> dict[str, str]:
        together = tutorial if page in tutorial and options == ("--wheel",) else [page]
        name = page.replace("/", "_") + "".join(options)
        if name in kept:
            return kept[name]
        name = together[0].replace("/", "_") + "".join(options)
        file = shared / f"{name}.json"
        with locked(file):
            if not file.exists():
                script = ROOT / "python/test/docs/run_page.py"
                command = [python, script, *together, "--json", file, *options]
                path = {} if "--wheel" in options else {"PYTHONPATH": str(ROOT / "python")}
                others = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
                ran = subprocess.run(
                    command, cwd=ROOT, env={**others, **path}, capture_output=True, text=True
                )
                assert ran.returncode == 0 and file.exists(), ran.stdout + ran.stderr
        for each, found in json.loads(file.read_text()).items():
            kept[each.replace("/", "_") + "".join(options)] = found
        return kept[page.replace("/", "_") + "".join(options)]

    return of


@pytest.fixture(scope="session")
def python_of_wheel(tmp_path_factory):
    """A Python in whose environment Tessera is installed, out of reach of the checkout."""
    folder = shared_folder(tmp_path_factory) / "installed"
    with locked(folder):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            (folder / "complete").touch()
    return str(folder / "bin/python")


def shared_folder(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder


@contextlib.contextmanager
def locked(path: pathlib.Path):
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("page", PAGES)
def test_labels(page):
    """Each fence has a label that is known, and what is said about running it is understood."""
    read(page)
    assert indented_code((ROOT / page).read_text()) == [], "code is in fences"


@pytest.mark.parametrize("fence", collected(), ids=lambda fence: fence.id)
def test_fence(fence, results, request):
    if fence.reason:
        pytest.skip(fence.reason)
    if names_checkout(fence.page):
        found = results(fence.page)
    else:  # test_page_from_a_wheel runs the page, too, and once is enough
        python = request.getfixturevalue("python_of_wheel")
        found = results(fence.page, "--wheel", python=python)
    judge(found[str(fence.line)])


def names_checkout(page: str) -> bool:
    """True if a page is about the checkout, or has a command that needs it."""
    return not is_for_users(page) or any(
        commands.names_checkout(words)
        for fence in read(page)
        if fence.label in SHELLS
        for command, _ in commands.commands_of(fence.text)
        for words in commands.simple_commands(command)
    )


def judge(result: str) -> None:
    if result.startswith("skipped: "):
        pytest.skip(result.removeprefix("skipped: "))
    assert not result, result


@pytest.mark.parametrize("page", [page for page in PAGES if is_for_users(page)])
def test_page_from_a_wheel(page, results, python_of_wheel):
    found = results(page, "--wheel", python=python_of_wheel)
    wrong = [each for each in found.values() if each and not each.startswith("skipped: ")]
    assert not wrong, "\n".join(wrong)


def test_fences_not_run_are_listed():
    """The list has no entry too many, each is of one fence, and something of that fence is not run."""
    assert len(NOT_RUN) <= 12
    fences = [fence for fence in collected() if is_for_readers(fence.page)]
    for page, text in NOT_RUN:
        named = [fence for fence in fences if fence.page == page and text in fence.text]
        assert len(named) == 1, f"{page}: `{text}` is in {len(named)} fences"
        if named[0].label in SHELLS:
            programs = [
                words
                for command, _ in commands.commands_of(named[0].text)
                for words in commands.simple_commands(command)
            ]
            assert any(map(commands.why_long, programs)), f"{named[0].id} is run: list it no more"


@pytest.mark.parametrize("page", PAGES)
def test_files_are_used(page):
    fences = read(page)
    for number, fence in enumerate(fences):
        if fence.file:
            rest = "".join(later.text + later.before for later in fences[number + 1 :])
            assert pathlib.Path(fence.file).stem in rest, f"{fence.id}: nothing uses {fence.file}"


def spans() -> list[tuple[str, str]]:
    """The commands within sentences: of our programs, with their options."""
    found = {}
    for page in PAGES:
        for line, span in code_spans(page):
            words = span.split()
            known = words[0].startswith(("tools/", "cmake")) and len(words) > 1
            if known or span.startswith("python -m tessera") or words[0] in commands.TOOLS:
                found.setdefault(span, f"{page}:{line}")
    return [(where, span) for span, where in found.items()]


@pytest.mark.parametrize("where, span", spans(), ids=lambda value: value)
def test_command_within_a_sentence(where, span):
    for words in commands.simple_commands(span.replace("...", "")):
        wrong = commands.what_is_wrong(words)
        assert not wrong, f"{where}: {wrong}"


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    """What a page links to in the checkout exists, and so do headings."""
    text = re.sub(r"^(`{3,}).*?^\1", "", (ROOT / page).read_text(), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page}: no {target}"
        if heading and file.suffix == ".md":
            assert heading in anchors(file.read_text()), f"{page}: no heading {target}"


def anchors(text: str) -> set[str]:
    """The names that headings of a page have in links."""
    found = set()
    for title in re.findall(r"^#+ (.*)$", text, re.M):
        plain = re.sub(r"[^\w\s-]", "", title.lower())
        found.add(re.sub(r"\s", "-", plain.strip()))
    return found


# What the runner promises, on pages made here.


def run(tmp_path: pathlib.Path, text: str) -> list[str]:
    """The errors of a page's fences."""
    from docs.run_page import Page

    folder = tmp_path / "folder"
    folder.mkdir()
    state = Page("made/Here.md", folder)
    errors = []
    for fence in fences_of("made/Here.md", text):
        if fence.is_run:
            try:
                state.run(fence)
                errors.append("")
            except Exception as error:
                errors.append(str(error))
    return errors


@pytest.mark.parametrize(
    "text",
    [
        "```\nx\n```\n",
        "```brainfuck\nx\n```\n",
        "```python\nx\n",
        "<!-- run: sometimes -->\n```python\nx\n```\n",
        "<!-- run: no -->\n```python\nx\n```\n",
    ],
)
def test_what_is_unclear_is_refused(text):
    with pytest.raises(Unclear):
        fences_of("made/Here.md", text)


@pytest.mark.parametrize("comment", ["run: with\nx = 1\n", "run: no, why"])
def test_what_no_reader_sees_is_refused(comment):
    text = f"<!-- {comment} -->\n```python\nx\n```\n"
    assert len(fences_of("docs/Debugging.md", text)) == 1
    with pytest.raises(Unclear, match="no reader sees"):
        fences_of("docs/HowTo/Here.md", text)


def test_a_fence_that_is_to_be_saved_is_a_file():
    text = "It adds.\nSave this as `add.py`:\n\n```python\nx\n```\n\nMore:\n\n```python\ny\n```\n"
    assert [fence.file for fence in fences_of("docs/HowTo/Here.md", text)] == ["add.py", ""]


def test_code_is_put_where_the_text_says(tmp_path):
    page = """
In `include/tessera/Frontend/TileBuilder.h`, before `void barrier();`:

```cpp
int three();
```

In `lib/Frontend/MathBuilder.cpp`, before `TileValue ArithmeticBuilder::sqrtRn(`:

```cpp
int TileBuilder::three() {{ return {}; }}
```
"""
    assert run(tmp_path, page.format("3")) == ["", ""]


def test_shells_of_a_page_are_one(tmp_path):
    text = "```bash\nexport A=b\nmkdir c; cd c\n```\n\n```bash\ntest $A = b -a -d ../c\n```\n"
    assert run(tmp_path, text) == ["", ""]


def test_indented_code_is_found():
    text = "Text:\n\n    a = 1\n\n- an item\n\n    of two paragraphs\n\n```python\n\n    b\n```\n"
    assert indented_code(text) == [3]


def test_python_shares_names(tmp_path):
    assert run(tmp_path, "```python\na = 1\n```\n\n```python\nassert a == 1\n```\n") == ["", ""]


def test_python_that_is_alone_shares_none(tmp_path):
    text = "```python\na = 1\n```\n<!-- run: alone -->\n```python\na\n```\n"
    assert run(tmp_path, text) == ["", "name 'a' is not defined"]


def test_a_mistake_is_found(tmp_path):
    assert run(tmp_path, "```python\n1 / 0\n```\n") == ["division by zero"]


def test_hidden_lines_come_first(tmp_path):
    assert run(tmp_path, "<!-- run: with\nx = 2\n-->\n```python\nassert x == 2\n```\n") == [""]


def test_a_package_that_is_missing_skips_the_rest(tmp_path, monkeypatch):
    """A plot is no such package: nothing below depends on it."""
    from docs import run_page

    monkeypatch.setattr(run_page, "OPTIONAL", ("no_package",))
    monkeypatch.setattr(run_page, "PLOTS", "no_plots")
    first = "```python\nimport no_plots\n```\n\n```python\nx = 1\n```\n"
    rest = "\n```python\nimport no_package\n```\n\n```python\nx + 1\n```\n"
    alone = "\n<!-- run: alone -->\n```python\ny = 2\n```\n"
    missing = "no_package is not installed"
    found = run(tmp_path, first + rest + alone)
    assert found == ["no_plots is not installed", "", missing, missing, ""]


def test_output_is_compared(tmp_path):
    page = "```python\nprint('a b c')\n```\n<!-- run: output -->\n```text\n{}\n```\n"
    assert run(tmp_path, page.format("a ... c")) == ["", ""]
    assert is_like("a\nb", "a b") and not is_like("a c", "a b c")


def test_output_of_hidden_lines_is_compared(tmp_path):
    page = (
        "<!-- run: with\nint('x')\n-->\n<!-- run: output -->\n```text\ninvalid literal ...\n```\n"
    )
    assert run(tmp_path, page) == [""]


def test_another_output_is_found(tmp_path):
    page = "```python\nprint('a b c')\n```\n<!-- run: output -->\n```text\na c\n```\n"
    assert "is not this" in run(tmp_path, page)[1]


def test_exceptions_are_named(tmp_path):
    page = "<!-- run: raises ValueError -->\n```python\n{}\n```\n"
    assert run(tmp_path, page.format("int('x')")) == [""]


def test_an_exception_that_does_not_come_is_found(tmp_path):
    page = "<!-- run: raises ValueError -->\n```python\nint('1')\n```\n"
    assert run(tmp_path, page) == ["there is no ValueError"]


def test_kernels_are_read_from_the_page(tmp_path):
    text = """
```python
import numpy as np
import tessera
import tessera.language as tl

@tessera.jit
def twice(x_ptr):
    i = tl.arange(0, 4)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)

x = np.ones(4, np.float32)
twice[(1,)](x)
assert x.tolist() == [2, 2, 2, 2]
```
"""
    assert run(tmp_path, text) == [""]


def test_commands_are_run(tmp_path):
    text = "```bash\nx=1\necho $x |\n  cat >file\ntest -s file\nfalse # so it fails\n```\n"
    assert run(tmp_path, text) == ["this fails: false # so it fails\n"]


def test_output_behind_prompts_is_compared(tmp_path):
    assert run(tmp_path, "```console\n$ echo a; echo b\na\nb\n$ echo c\nd\n```\n")[0].endswith(
        "c\n"
    )


@pytest.mark.parametrize(
    "command, wrong",
    [
        ("tools/check lit nonsense", "no check nonsense"),
        ("tools/check --nonsense", "no option --nonsense"),
        ("tools/nonsense", "no program tools/nonsense"),
        ("python -m tessera nonsense", "no command `nonsense`"),
        ("python -m tessera.testing.fuzz --nonsense 3", "no option --nonsense"),
        ("cmake --preset nonsense", "no preset nonsense"),
        ("cmake --build build/dev --target nonsense", "no target nonsense"),
        ("tools/bench nonsense", "no benchmark nonsense"),
        ("nonsense --help", "no program nonsense"),
        ("tessera-opt --nonsense-pipeline", "no option --nonsense-pipeline"),
    ],
)
def test_what_is_not_there_is_found(command, wrong):
    assert wrong in commands.what_is_wrong(command.split())


@pytest.mark.parametrize(
    "command",
    [
        "tools/check lit pytest",
        "python -m tessera cache stats",
        "cmake --preset dev",
        "tools/bench",
    ],
)
def test_what_is_there_is_right(command):
    assert commands.what_is_wrong(command.split()) == ""


def test_modules_are_parsed(tmp_path):
    good = "```mlir\ntile.func @f() {\n  tile.return\n}\n```\n"
    assert run(tmp_path, good) == [""]


def test_modules_that_are_wrong_are_found(tmp_path):
    assert "error" in run(tmp_path, "```mlir\ntile.func @f() { tile.nonsense }\n```\n")[0]
