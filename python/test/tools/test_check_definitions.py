# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/dev/check_definitions.py: names that two files of a program define, in files made for it."""

from __future__ import annotations

import pathlib
import types

import pytest

from tools.loading import TOOLS, load


@pytest.fixture(scope="module")
def checker() -> types.ModuleType:
    return load(TOOLS / "check_definitions.py")


NAMED = "#ifndef A_H\nnamespace tessera {{\n{}\n}} // namespace tessera\n#endif\n"
UNNAMED = "namespace tessera {{ namespace {{ {} }} }}\n"


@pytest.mark.parametrize(
    "first, second, names",
    [
        ("class Builder { int a; };", "class Builder { ~Builder(); };", ["Builder"]),
        ("class Builder { int a; };", "struct Builder final : Base {};", ["Builder"]),
        ("enum class Kind { A };", "template <typename T> struct Kind {};", ["Kind"]),
        ("class Builder;", "class Builder { int a; };", []),
        ("struct A { struct Step {}; };", "struct B { struct Step {}; };", []),
        ("namespace a { struct Step {}; }", "struct Step {};", []),
        ("namespace a { struct Step {}; }", "namespace a { struct Step {}; }", ["a::Step"]),
        ("namespace { struct Step {}; }", "struct Step {};", []),
        ("template <> struct Info<A> {};", "template <> struct Info<A > {};", ["Info<A>"]),
        ("template <> struct Info<A> {};", "template <> struct Info<B> {};", []),
        ("inline int f(int a) {}", "template <typename T> inline T f(int b = 2) {}", ["f(int)"]),
        ("inline int f(int a) {}", "inline int f(long a) {}", []),
        ("int f(int a);", "int f(int a) {}", []),
        ("struct A f() {}", "struct A g() {}", []),
        ("static int f(int a) {}", "static int f(int a) {}", []),
        ("inline constexpr int kSize = 1;", "inline constexpr int kSize = 2;", ["kSize"]),
        ("constexpr int kSize = 1;", "constexpr int kSize = 2;", []),
        ("// class A {};\nauto s = \"class A {};\";", "class A {};", []),
        ("using namespace x;\nvoid A::f() {}", "using namespace y;\nvoid A::f() {}", []),
    ],
)  # fmt: skip
def test_names(
    checker: types.ModuleType, tmp_path: pathlib.Path, first: str, second: str, names: list[str]
) -> None:
    one = tmp_path / "include" / "tessera" / "Frontend" / "A.h"
    other = tmp_path / "lib" / "Layout" / "B.h"
    for path, text in ((one, first), (other, second)):
        path.parent.mkdir(parents=True)
        path.write_text(NAMED.format(text))
    errors = checker.check(tmp_path)
    assert [error.split(" is also ")[0].split()[-1] for error in errors] == [
        f"tessera::{name}" for name in names
    ]
    assert all(error.startswith("lib/Layout/B.h:3: ") for error in errors)


def test_programs(checker: types.ModuleType, tmp_path: pathlib.Path) -> None:
    """A program has one definition of each name, and two programs may each have one of their own."""
    texts = {
        "lib/Layout/A.cpp": NAMED.format("struct Layout {};"),
        "tools/one/one.cpp": "struct Options {};",
        "tools/one/CMakeLists.txt": "tessera_add_tool(one one.cpp LINK TesseraLayout)",
        "tools/two/two.cpp": "struct Options {};",
        "tools/two/CMakeLists.txt": "tessera_add_tool(two two.cpp LINK TesseraLayout)",
        "unittest/A/ATest.cpp": UNNAMED.format("struct Case {};") + "TEST(A, B) {}",
        "unittest/A/BTest.cpp": UNNAMED.format("struct Case {};") + "TEST(A, B) {}",
        "unittest/A/CMakeLists.txt": "tessera_add_unittest(ATests ATest.cpp BTest.cpp)",
        "python/src/A.h": NAMED.format("struct Layout {};"),
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert not checker.check(tmp_path)
    (tmp_path / "tools/two/two.cpp").write_text(NAMED.format("struct Layout {};"))
    (tmp_path / "unittest/A/BTest.cpp").write_text("struct Case {};")
    (tmp_path / "unittest/A/ATest.cpp").write_text("struct Case {};")
    errors = [error.split(";")[0] for error in checker.check(tmp_path)]
    assert errors == [
        "tools/two/two.cpp:3: type tessera::Layout is also defined in lib/Layout/A.cpp:3",
        "unittest/A/BTest.cpp:1: type Case is also defined in unittest/A/ATest.cpp:1",
    ]
