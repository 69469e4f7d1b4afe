# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/dev/check_english.py and check_classes.py find, in files made for them."""

from __future__ import annotations


import pytest

from tools.loading import TOOLS, load


@pytest.fixture
def english(tmp_path, monkeypatch):
    module = load(TOOLS / "check_english.py")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


LONG = " ".join(["word"] * 31)


@pytest.mark.parametrize(
    "name, text, reason",
    [
        ("a.cpp", "// What a warp reads is here.\nint x;\n", "begins with 'What'"),
        ("a.cpp", f"// {LONG}.\n", "has 31 words"),
        ("a.h", "/// The pass runs first. Nobody\n/// reads it.\n", "begins with 'Nobody'"),
        ("a.cpp", "int x; // is not looked at\n// The warp is told.\n", "says 'told'"),
        ("a.py", '"""Of a loop the first iteration."""\n', "begins with 'Of'"),
        ("a.py", "x = 1\n# Whether it is one.\n", "begins with 'Whether'"),
        ("a.td", 'let summary = "Lets warps meet";\n', "a summary begins with 'Lets'"),
        ("a.cpp", "// Insert a barrier.\n//     What = code(of)\n", ""),
        ("a.td", 'let summary = "Insert barriers";\n', ""),
        ("a.py", '"""Return what the warp reads."""\n', ""),
    ],
)
def test_sentences(english, tmp_path, name, text, reason) -> None:
    path = tmp_path / name
    path.write_text(text)
    found = english.mistakes_of(path)
    assert len(found) == bool(reason)
    assert all(reason in line for line in found)


def test_the_lists_of_style() -> None:
    areas, verbs = load(TOOLS / "check_english.py").lists_of_style()
    assert {"TileGPU", "CI", "Python"} <= areas and "Speed up" in verbs and "Say" not in verbs


SMALL = "class Small {\npublic:\n  int f(int x) { return x; }\n\nprivate:\n  int a = 0, b;\n};\n"


@pytest.fixture
def classes(tmp_path, monkeypatch):
    module = load(TOOLS / "check_classes.py")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def test_lines_and_members(classes, tmp_path) -> None:
    (tmp_path / "a.cpp").write_text(
        SMALL + "int Small::g(int x) {\n  // A brace { in a comment.\n  return x;\n}\n"
        "struct Table {\n  std::map<int, std::vector<int>> of;\n  void (*call)(int);\n"
        "  static constexpr int kMax = 3;\n  using T = int;\n  bool is = f(1), was{};\n};\n"
    )
    found = list(classes.classes_of(tmp_path / "a.cpp"))
    assert [(name, count.lines, count.members) for name, count in found] == [
        ("Small", 7, 2), ("Table", 7, 1), ("Small", 4, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, expected",
    [
        ("struct A {\n  int a = f(1);\n  static A parse(int x);\n};\n", True),
        ("struct A {\n  int a;\n  int get() const { return a; }\n};\n", True),
        ("struct A {\n  int a;\n  void set(int x) { a = x; }\n};\n", False),
        ("struct A {\n  int get() const;\n\nprivate:\n  int a;\n};\n", False),
        ("class A {\n  int a;\n};\n", False),
    ],
)
def test_records(classes, tmp_path, text, expected) -> None:
    (tmp_path / "a.h").write_text(text)
    assert [count.is_record for _, count in classes.classes_of(tmp_path / "a.h")] == [expected]
