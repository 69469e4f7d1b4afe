# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/dev/check_unity.py: names that two sources of a library have, in files made for it."""

from __future__ import annotations

import pathlib
import types

import pytest

from tools.loading import TOOLS, load


@pytest.fixture(scope="module")
def checker() -> types.ModuleType:
    return load(TOOLS / "check_unity.py")


UNNAMED = "namespace tessera {{ namespace {{ {} }} }}\n"


@pytest.mark.parametrize(
    "first, second, names",
    [
        ("static bool isTile(Value v) { return v; }", "static bool isTile(mlir::Value);", ["isTile"]),
        ("static bool isTile(Value v) {}", "static bool isTile(Type v) {}", []),
        ("bool a::isTile(Value v) {}", "bool a::isTile(Value v) {}", []),
        ("static int f(int a = 1, X<A, B> b = {1, 2}) {}", "static int f(int, X<A, B>) {}", ["f"]),
        (UNNAMED.format("struct Step {};"), UNNAMED.format("class Step : B {};"), ["Step"]),
        (UNNAMED.format("struct Step;"), UNNAMED.format("struct Step;"), []),
        ("namespace a { struct Step {}; }", "namespace a { struct Step {}; }", ["Step"]),
        (UNNAMED.format("struct Step {};"), "namespace other { namespace { struct Step {}; } }", []),
        (UNNAMED.format("struct A { int f() {} };"), UNNAMED.format("struct B { int f() {} };"), []),
        (UNNAMED.format("enum A { kFirst, kLast };"), "namespace tessera { constexpr int kLast = 1; }", ["kLast"]),
        (UNNAMED.format("enum class A { kLast };"), UNNAMED.format("enum class B { kLast };"), []),
        ("constexpr int kRows = 1, kWords = f(2, 3);", "static constexpr int kWords{3};", ["kWords"]),
        ("static const char *names[] = {\"a\", \"};\"};\nstatic int a;", "static int a;", ["a"]),
        ("template <typename T = A<B>> static void f(T x) {}", "static void f(T y) {}", ["f"]),
        ("using A = int;", "using A = int;", []),
        ("using A = int;", "using A = long;", ["A"]),
        ("#define DEBUG 1", "#define DEBUG 1", ["DEBUG"]),
        ("#define DEBUG 1\n#undef DEBUG", "#define DEBUG 1", []),
        ("// static int a;\n/* static int a; */ auto s = R\"(static int a;)\";", "static int a;", []),
        ("void f() { static int a; }", "static int a;", []),
    ],
)  # fmt: skip
def test_names(
    checker: types.ModuleType, tmp_path: pathlib.Path, first: str, second: str, names: list[str]
) -> None:
    folder = tmp_path / "lib" / "Layout"
    folder.mkdir(parents=True)
    (folder / "A.cpp").write_text(first + "\n")
    (folder / "B.cpp").write_text(second + "\n")
    listing = folder / "CMakeLists.txt"
    listing.write_text("tessera_add_library(Layout\n  A.cpp\n  B.cpp\n\n  LINK Machine\n)\n")
    errors = checker.check(tmp_path)
    assert [error.split(" is also ")[0].split()[-1] for error in errors] == names
    assert all(error.startswith("lib/Layout/B.cpp:") for error in errors)
    # Sources of two libraries, and those that CMake keeps apart, never meet.
    for text in (
        "tessera_add_library(A A.cpp)\ntessera_add_library(B B.cpp)\n",
        "tessera_add_library(A A.cpp B.cpp)\n"
        "set_source_files_properties(B.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n",
    ):
        listing.write_text(text)
        assert not checker.check(tmp_path)
