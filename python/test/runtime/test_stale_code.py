# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No launch runs code of before a change.

Each row makes a kernel whose result is an integer, launches it, changes one thing that the
kernel depends on, and launches it again: in the same process, where the change is an
assignment, and in another one that has the same disk cache, where the change is an edit of a
file. The second result must be the new one. A fork (stale_code_child.py) stands for a
process: it has imported none of the modules that the row writes.
"""

from __future__ import annotations

import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Callable, NamedTuple, Optional

import pytest

import tessera
from runtime.stale_code_child import (
    Server,
    answer_of,
    count_builds_of_operators,
    find_result_type,
    launch_and_count,
    launch_around,
    launch_once,
    start,
)
from tessera import _C
from tessera.compiler import toolchain
from tessera.frontend.reads import watch_module

IMPORTS = "import enum, math\nimport tessera, tessera.language as tl\nfrom tessera import jit\n"


class Thing(NamedTuple):
    """Something in a module that a kernel reads."""

    text: str
    """What the module has, with `3`s in it."""
    read: str
    """How it is read of the module `M`; integers."""
    edit: tuple[str, str]
    assign: str
    """The same change as an assignment, with `mod` imported; empty if there is none."""
    values: tuple[int, int] = (3, 5)


BITS = "tl.full((), {}, tl.float32).to(tl.int32, bitcast=True)"
SIGN = (0, -(1 << 31))

THINGS = {
    "constexpr": Thing("X = tl.constexpr(3)", "M.X", ("(3)", "(5)"), "mod.X = tl.constexpr(5)"),
    "value": Thing("X = tl.constexpr(3)", "M.X", ("(3)", "(5)"), "mod.X.value = 5"),
    "integer": Thing("X = 3", "M.X", ("X = 3", "X = 5"), "mod.X = 5"),
    "zero": Thing("X = 0.0", BITS.format("M.X"), ("0.0", "-0.0"), "mod.X = -0.0", SIGN),
    "tuple": Thing(
        "X = tl.constexpr((0.0, 1))",
        BITS.format("M.X[0]"),
        ("0.0", "-0.0"),
        "mod.X = tl.constexpr((-0.0, 1))",
        SIGN,
    ),
    "function": Thing(
        "@jit\ndef f():\n    return 3\n@jit\ndef g():\n    return 5",
        "M.f()",
        ("return 3", "return 5"),
        "mod.f = mod.g",
    ),
    "code": Thing(
        "@jit\ndef f(x):\n    return x * 0 + 3\n@jit\ndef g(x):\n    return x * 0 + 5",
        "M.f(tl.program_id(0))",
        ("+ 3", "+ 5"),
        "mod.f.fn.__code__ = mod.g.fn.__code__",
    ),
    "default": Thing(
        "@jit\ndef f(x=3):\n    return x", "M.f()", ("x=3", "x=5"), "mod.f.fn.__defaults__ = (5,)"
    ),
    "keyword": Thing(
        "@jit\ndef f(*, x: tl.constexpr = 3):\n    return x",
        "M.f()",
        ("= 3", "= 5"),
        "mod.f.fn.__kwdefaults__['x'] = 5",
    ),
    "class": Thing("class C:\n    X = 3", "M.C.X", ("X = 3", "X = 5"), "mod.C.X = 5"),
    "base": Thing(
        "class B:\n    X = 3\nclass C(B):\n    pass", "M.C.X", ("X = 3", "X = 5"), "mod.B.X = 5"
    ),
    "field": Thing(
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int = 3",
        "M.P().x",
        ("int = 3", "int = 5"),
        "",
    ),
    "enum": Thing(
        "class E(enum.Enum):\n    A = 3\nclass F(enum.Enum):\n    A = 5",
        "M.E.A.value",
        ("A = 3", "A = 5"),
        "mod.E = mod.F",
    ),
    "deeper": Thing(
        "G = tl.constexpr(3)\n@jit\ndef g():\n    return G\n@jit\ndef f():\n    return g()",
        "M.f()",
        ("(3)", "(5)"),
        "mod.G = tl.constexpr(5)",
    ),
    "shadow": Thing(
        "@jit\ndef f():\n    return max(3, 2)\n# @jit\n# def max(a, b): return 5",
        "M.f()",
        ("# ", ""),
        "mod.max = five",
    ),
    "missing": Thing(
        "# X = 5",
        "(M.X if hasattr(M, 'X') else 3)",
        ("# ", ""),
        "mod.X = 5",
    ),
}

# How a kernel comes to the module: what is before the kernel, its first lines, the module.
WAYS = {
    "direct": ("import mod", "", "mod"),
    "alias": ("import mod", "m = mod", "m"),
    "renamed": ("import mod as other", "", "other"),
    "choice": ("import mod, math\nFLAG = tl.constexpr(True)", "", "(mod if FLAG else math)"),
    "item": ("import mod", "pair = (mod, 1)", "pair[0]"),
    "getattr": ("import package", "", 'getattr(package, "mod")'),
    "package": ("import package", "", "package.mod"),
    "member": ("import mod\nclass Holder:\n    m = mod", "", "Holder.m"),
    "attribute": ("import mod\n@jit\ndef h(): pass\nh.m = mod", "", "h.m"),
    "wrapped": ("import mod\nPAIR = tl.constexpr((mod, 1))", "", "PAIR[0]"),
    "loop": ("import mod", "for m in tl.static_range(1):\n    n = mod", "n"),
}

KERNEL = """
{imports}
{prelude}
@jit
def five(a, b):
    return 5
@jit
def get(M: tl.constexpr):
    return {read_of_m}
@jit(noinline=True)
def outline():
    {lines}
    return {read}
@jit
def kernel(out, M: tl.constexpr):
    {lines}
    tl.store(out, {value})
"""


class Row(NamedTuple):
    name: str
    files: dict[str, str]
    values: tuple[int, int]
    edit: Optional[tuple[str, str]] = None
    """In every file but main.py, or in that if there is no other."""
    assign: str = ""
    argument: str = "None"
    """The kernel's second argument, which `main` evaluates."""


def make_row(way: str, thing: str) -> Row:
    prelude, lines, module = WAYS.get(way, WAYS["direct"])
    what = THINGS[thing]
    read = what.read.replace("M", module)
    value, argument = read, "None"
    if way == "helper":
        value = "get(mod)"
    elif way == "argument":
        value, argument = what.read, "mod"
    elif way == "noinline":
        value = "outline()"
    lines = lines.replace("\n", "\n    ")
    main = KERNEL.format(
        imports=IMPORTS,
        prelude=prelude,
        read=read,
        read_of_m=what.read,
        lines=lines or "pass",
        value=value,
    )
    files = {
        "main.py": main,
        "mod.py": IMPORTS + what.text + "\n",
        "package/__init__.py": "import mod\n",
    }
    assign = what.assign.replace("five", "main.five")
    return Row(f"{way}-{thing}", files, what.values, what.edit, assign, argument)


# Every way with some things, and every thing with some ways.
ROWS = [
    make_row(way, thing)
    for way in (*WAYS, "helper", "argument", "noinline")
    for thing in THINGS
    if way in ("direct", "alias", "helper") or thing in ("value", "function", "deeper", "missing")
]


def single(
    name: str,
    prelude: str,
    value: str,
    edit: Optional[tuple[str, str]] = None,
    assign: str = "",
    values: tuple[int, int] = (3, 5),
    argument: str = "None",
    **files: str,
) -> Row:
    body = IMPORTS + prelude + "\n@jit\ndef kernel(out, M: tl.constexpr):\n    tl.store(out, "
    body += value + ")\n"
    others = {f"{file}.py": IMPORTS + text for file, text in files.items()}
    return Row(name, {"main.py": body, **others}, values, edit, assign, argument)


CONSTEXPR_FUNCTION = "@tessera.constexpr_function\ndef c():\n    return "
ROWS += [
    # What Python code reads that runs while a kernel is compiled.
    single("function-body", CONSTEXPR_FUNCTION + "3", "c()", ("return 3", "return 5")),
    single(
        "function-code",
        CONSTEXPR_FUNCTION + "3\ndef d(): return 5",
        "c()",
        assign="main.c.fn.__code__ = main.d.__code__",
    ),
    single(
        "function-global",
        "G = 3\n" + CONSTEXPR_FUNCTION + "G",
        "c()",
        ("G = 3", "G = 5"),
        "main.G = 5",
    ),
    single(
        "function-list",
        "G = [3]\n" + CONSTEXPR_FUNCTION + "G[0]",
        "c()",
        ("G = [3", "G = [5"),
        "main.G[0] = 5",
    ),
    single(
        "function-dict",
        "G = {'a': {'b': 3}}\n" + CONSTEXPR_FUNCTION + "G['a']['b']",
        "c()",
        ("3", "5"),
        "main.G['a']['b'] = 5",
    ),
    single(
        "function-object",
        "class C:\n    def __init__(self): self.x = 3\nG = C()\n" + CONSTEXPR_FUNCTION + "G.x",
        "c()",
        ("= 3", "= 5"),
        "main.G.x = 5",
    ),
    single(
        "function-slots",
        "class C:\n    __slots__ = ('x',)\nG = C()\nG.x = 3\n" + CONSTEXPR_FUNCTION + "G.x",
        "c()",
        ("= 3", "= 5"),
        "main.G.x = 5",
    ),
    single(
        "function-method",
        "class C:\n    def f(self): return 3\n    def g(self): return 5\nG = C()\n"
        + CONSTEXPR_FUNCTION
        + "G.f()",
        "c()",
        ("return 3", "return 5"),
        "main.C.f = main.C.g",
    ),
    single(
        "function-calls",
        "def d(): return e()\ndef e(): return G\nG = 3\n" + CONSTEXPR_FUNCTION + "d()",
        "c()",
        ("G = 3", "G = 5"),
        "main.G = 5",
    ),
    single(
        "function-module",
        "import mod\n" + CONSTEXPR_FUNCTION + "mod.X",
        "c()",
        ("X = 3", "X = 5"),
        "mod.X = 5",
        mod="X = 3",
    ),
    single(
        "function-getattr",
        "import mod\n" + CONSTEXPR_FUNCTION + "getattr(mod, 'X')",
        "c()",
        ("X = 3", "X = 5"),
        "mod.X = 5",
        mod="X = 3",
    ),
    single(
        "function-imported",
        "import mod\n",
        "mod.c()",
        ("3", "5"),
        "mod.c.fn.__defaults__ = (5,)",
        mod=CONSTEXPR_FUNCTION.replace("()", "(x=3)") + "x",
    ),
    single(
        "function-closure",
        "def make(x):\n    @tessera.constexpr_function\n    def c(): return x\n"
        "    def set(y):\n        nonlocal x\n        x = y\n    return c, set\nc, set = make(3)",
        "c()",
        ("make(3)", "make(5)"),
        "main.set(5)",
    ),
    single(
        "function-class",
        "class C:\n    X = 3\n" + CONSTEXPR_FUNCTION + "C.X",
        "c()",
        ("X = 3", "X = 5"),
        "main.C.X = 5",
    ),
    # Names put on the language.
    single("language-constant", "tl.N = tl.constexpr(3)", "tl.N", ("(3)", "(5)"), "tl.N.value = 5"),
    single(
        "language-rebound",
        "tl.N = tl.constexpr(3)",
        "tl.N",
        ("(3)", "(5)"),
        "tl.N = tl.constexpr(5)",
    ),
    single(
        "language-function",
        "@jit\ndef f(): return 3\ntl.f = f\n@jit\ndef g(): return 5",
        "tl.f()",
        ("return 3", "return 5"),
        "tl.f = main.g",
    ),
    single(
        "language-replaced",
        "@jit\ndef f(x, y): return 5\n",
        "tl.maximum(2, 3)",
        ("\n@jit\ndef kernel", "\ntl.maximum = f\n@jit\ndef kernel"),
        "tl.maximum = main.f",
    ),
    single(
        "language-submodule",
        "@jit\ndef f(x): return 5\nimport tessera.language.math as tm",
        "tm.abs(-3)",
        ("\n@jit\ndef kernel", "\ntm.abs = f\n@jit\ndef kernel"),
        "main.tm.abs = main.f",
    ),
    single(
        "language-method",
        "@jit\ndef f(x): return x * 0 + 3\n@jit\ndef g(x): return x * 0 + 5\ntl.tensor.f = f",
        "tl.program_id(0).f()",
        ("+ 3", "+ 5"),
        "tl.tensor.f = main.g",
    ),
    single(
        "package-replaced",
        "@jit\ndef f(x, y): return 5\n",
        "tessera.cdiv(6, 2)",
        ("\n@jit\ndef kernel", "\ntessera.cdiv = f\n@jit\ndef kernel"),
        "tessera.cdiv = main.f",
    ),
    # Attributes of functions.
    single(
        "function-attribute", "@jit\ndef f(): pass\nf.x = 3", "f.x", ("= 3", "= 5"), "main.f.x = 5"
    ),
    single(
        "function-attribute-added",
        "@jit\ndef f(): pass\n# f.x = 5",
        "(f.x if hasattr(f, 'x') else 3)",
        ("# ", ""),
        "main.f.x = 5",
    ),
    single(
        "function-inner",
        "@jit\ndef f(): return 3\n@jit\ndef g(): return 5",
        "f()",
        ("return 3", "return 5"),
        "main.f.fn = main.g.fn",
    ),
    # The kernel's own defaults and code.
    Row(
        "own-default",
        {"main.py": IMPORTS + "@jit\ndef kernel(out, M, x=3):\n    tl.store(out, x)\n"},
        (3, 5),
        ("x=3", "x=5"),
        "main.kernel.fn.__defaults__ = (5,)",
    ),
    Row(
        "own-constant-default",
        {
            "main.py": IMPORTS
            + "@jit\ndef kernel(out, M, x: tl.constexpr = 3):\n    tl.store(out, x)\n"
        },
        (3, 5),
        ("= 3", "= 5"),
        "main.kernel.fn.__defaults__ = (5,)",
    ),
    Row(
        "own-keyword-default",
        {
            "main.py": IMPORTS
            + "@jit\ndef kernel(out, M, *, x: tl.constexpr = 3):\n    tl.store(out, x)\n"
        },
        (3, 5),
        ("= 3", "= 5"),
        "main.kernel.fn.__kwdefaults__['x'] = 5",
    ),
    Row(
        "own-wrapped-default",
        {
            "main.py": IMPORTS
            + "D = tl.constexpr(3)\n@jit\ndef kernel(out, M, x: tl.constexpr = D):\n"
            "    tl.store(out, x)\n"
        },
        (3, 5),
        ("(3)", "(5)"),
        "main.D.value = 5",
    ),
    single("own-text", "", "3", ("out, 3", "out, 5")),
    single(
        "own-code",
        "@jit\ndef other(out, M):\n    tl.store(out, 5)",
        "3",
        assign="main.kernel.fn.__code__ = main.other.fn.__code__",
    ),
    # A closure's variables.
    Row(
        "closure",
        {"main.py": IMPORTS + textwrap.dedent("""
                def make(x):
                    @jit
                    def kernel(out, M):
                        tl.store(out, x)
                    def set(y):
                        nonlocal x
                        x = y
                    return kernel, set
                kernel, set = make(tl.constexpr(3))
                """)},
        (3, 5),
        ("(3)", "(5)"),
        "main.set(tl.constexpr(5))",
    ),
    # Constants that can change.
    single("list", "G = tl.constexpr([3])", "G[0]", ("[3", "[5"), "main.G.value[0] = 5"),
    single("dict", "G = tl.constexpr({'a': 3})", "G['a']", ("3", "5"), "main.G.value['a'] = 5"),
    single(
        "nested-list",
        "G = tl.constexpr(((1, [3]),))",
        "G[0][1][0]",
        ("[3", "[5"),
        "main.G.value[0][1][0] = 5",
    ),
    single(
        "object",
        "class C: pass\nG = tl.constexpr(C())\nG.value.x = 3",
        "G.x",
        ("= 3", "= 5"),
        "main.G.value.x = 5",
    ),
    single(
        "property",
        "class C:\n    n = 1\n    @property\n    def x(self): return 2 * self.n + 1\n"
        "G = tl.constexpr(C())",
        "G.x",
        ("n = 1", "n = 2"),
        "main.C.n = 2",
    ),
    # Objects that are passed.
    single(
        "passed-object",
        "class C: pass\nobject = C()\nobject.x = 3",
        "M.x",
        ("= 3", "= 5"),
        "main.object.x = 5",
        argument="main.object",
    ),
    single(
        "passed-class",
        "class C:\n    x = 3",
        "M.x",
        ("x = 3", "x = 5"),
        "main.C.x = 5",
        argument="main.C",
    ),
    single(
        "passed-function",
        "@jit\ndef f(): return G\nG = tl.constexpr(3)",
        "M()",
        ("(3)", "(5)"),
        "main.G = tl.constexpr(5)",
        argument="main.f",
    ),
    single(
        "passed-function-default",
        "@jit\ndef f(x=3): return x",
        "M()",
        ("=3", "=5"),
        "main.f.fn.__defaults__ = (5,)",
        argument="main.f",
    ),
    single(
        "passed-in-tuple",
        "@jit\ndef f(): return G\nG = tl.constexpr(3)",
        "M[0]()",
        ("(3)", "(5)"),
        "main.G = tl.constexpr(5)",
        argument="(main.f,)",
    ),
    single(
        "passed-dataclass",
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass C:\n    x: float\n"
        "c = C(0.0)\nd = C(-0.0)",
        BITS.format("M.x"),
        ("c = C(0.0)", "c = C(-0.0)"),
        "main.c = main.d",
        SIGN,
        argument="main.c",
    ),
    single(
        "passed-equal",
        "class C:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return True\n"
        "    def __hash__(self): return 0\nc = C(3)\nd = C(5)",
        "M.x",
        ("c = C(3)", "c = C(5)"),
        "main.c = main.d",
        argument="main.c",
    ),
    single(
        "passed-wrapped-in-tuple",
        "c = (tl.constexpr(0.0),)\nd = (tl.constexpr(-0.0),)",
        BITS.format("M[0]"),
        ("c = (tl.constexpr(0.0)", "c = (tl.constexpr(-0.0)"),
        "main.c = main.d",
        SIGN,
        argument="main.c",
    ),
    single(
        "passed-zero",
        "c = (1, (0.0,))\nd = (1, (-0.0,))",
        BITS.format("M[1][0]"),
        ("c = (1, (0.0", "c = (1, (-0.0"),
        "main.c = main.d",
        SIGN,
        argument="main.c",
    ),
    single(
        "passed-bool",
        "c = (1,)\nd = (True,)",
        "(5 if isinstance(M[0], bool) else 3)",
        ("c = (1,", "c = (True,"),
        "main.c = main.d",
        argument="main.c",
    ),
    # Python's own.
    single(
        "builtin-shadowed",
        "@jit\ndef five(x): return 5\n# @jit\n# def abs(x): return 5",
        "abs(-3)",
        ("# ", ""),
        "main.abs = main.five",
    ),
    single(
        "namedtuple",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int\n"
        "G = tl.constexpr(P(3, 5))",
        "G.x",
        ("P(3, 5)", "P(5, 3)"),
        "main.G = tl.constexpr(main.P(5, 3))",
    ),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


def in_fork(work: Callable[[], Any]) -> Any:
    """What `work` gives in a fork of this process, which may have changed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "wb") as file:
            file.write(answer_of(work))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    is_fine, answer = pickle.loads(data)
    if not is_fine:
        pytest.fail(answer)
    return answer


def write(folder: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        # Python knows compiled files by whole seconds.
        for cached in path.parent.glob("__pycache__/*"):
            cached.unlink()


EDITS = [row for row in ROWS if row.edit]
ASSIGNMENTS = [row for row in ROWS if row.assign]


def test_there_are_enough() -> None:
    assert len(EDITS) >= 106 and len(ASSIGNMENTS) >= 43
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", EDITS, ids=[row.name for row in EDITS])
def test_across_processes(server: Server, row: Row, tmp_path: pathlib.Path) -> None:
    assert row.edit is not None
    write(tmp_path, row.files)
    work = (launch_once, tmp_path, row.argument)
    assert server.run(*work) == row.values[0]
    others = {name for name in row.files if name != "main.py"}
    edited = {
        name: text.replace(*row.edit) if name in others or not others else text
        for name, text in row.files.items()
    }
    assert edited != row.files
    write(tmp_path, edited)
    assert server.run(*work) == row.values[1]
    if EDITS.index(row) % 8 == 0:  # the first text is in the cache by now
        write(tmp_path, row.files)
        assert server.run(*work) == row.values[0]


@pytest.mark.parametrize("row", ASSIGNMENTS, ids=[row.name for row in ASSIGNMENTS])
def test_within_a_process(server: Server, row: Row, tmp_path: pathlib.Path) -> None:
    write(tmp_path, row.files)
    before, after = server.run(launch_around, tmp_path, row.argument, row.assign)
    assert before == [row.values[0]] * 3
    assert after == [row.values[1]] * 3


def test_what_did_not_change_is_found(server: Server, tmp_path: pathlib.Path) -> None:
    """Of all rows that another process can know, so that the above is not for want of hits."""
    hits = 0
    for number, way in enumerate(WAYS):
        folder = tmp_path / str(number)
        folder.mkdir()
        row = make_row(way, "deeper")
        write(folder, row.files)
        work = (launch_and_count, folder, row.argument)
        assert server.run(*work) == (3, 0)
        value, found = server.run(*work)
        assert value == 3
        hits += found == 2
    assert hits >= len(WAYS) - 3


def test_kernels_of_operators_are_found_without_the_front_end(
    server: Server, tmp_path: pathlib.Path
) -> None:
    """They read types and shapes of tiles, take items of tuples, and draw random numbers."""
    assert min(server.run(count_builds_of_operators, tmp_path)) >= 5
    assert server.run(count_builds_of_operators, tmp_path) == (0, 0)


def test_an_edit_of_what_an_operator_returns(server: Server, tmp_path: pathlib.Path) -> None:
    """The type of the results is known from the cache, for the same text alone."""
    text = "import tessera\n\n\n@tessera.pointwise\ndef above(x):\n    return x {} 0\n"
    for sign, dtype in ((">", "bool"), ("+", "float32"), ("+", "float32"), (">", "bool")):
        write(tmp_path, {"main.py": text.format(sign)})
        assert server.run(find_result_type, tmp_path) == dtype


def fake_ptxas(path: pathlib.Path, release: str) -> str:
    """A program that gives the same cubins, marked with its own release."""
    path.write_text(
        f'#!/bin/sh\n{toolchain.find_ptxas()} "$1" "$2" "$3" -o whole || exit 1\n'
        f'printf {release} | cat whole - > both; mv both "$5"\n'
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
@pytest.mark.parametrize("across", [False, True])
def test_another_ptxas_or_libdevice(
    across: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = IMPORTS + "from tessera.language.extra import libdevice\n@jit\ndef kernel(out):\n"
    text += "    tl.store(out, libdevice.tan(tl.load(out)))\n"
    write(tmp_path, {"main.py": text})
    real = toolchain.find_libdevice()
    if not real:
        pytest.skip("there is no libdevice")

    def build(**given: str) -> Any:
        main = sys.modules.get("main") or start(tmp_path)
        with tessera.settings.override(**given):
            kernel = main.kernel.warmup(tessera.language.float32, target="sm_80")
        return bytes(kernel.asm["cubin"])

    # Another libdevice, whose tangent is zero; found in three ways.
    other = tmp_path / "other.bc"
    other.write_text(
        'target triple = "nvptx64-nvidia-gpulibs"\n'
        "define float @__nv_tanf(float %x) {\n  ret float 0.0\n}\n"
    )
    home = tmp_path / "home/nvvm/libdevice"
    home.mkdir(parents=True)
    (home / "libdevice.10.bc").write_bytes(other.read_bytes())
    first, second = fake_ptxas(tmp_path / "one", "AAAA"), fake_ptxas(tmp_path / "two", "BBBB")

    def change(number: int) -> Any:
        if number == 2:
            os.environ["CUDA_HOME"] = str(tmp_path / "home")
            monkeypatch.setattr(toolchain, "_packaged", lambda names: iter(()))
        given = [{}, {"libdevice": str(other)}, {}, {"ptxas": first}, {"ptxas": second}][number]
        return build(**given)

    if across:
        results = [in_fork(lambda: change(number)) for number in range(5)]
    else:
        results = in_fork(lambda: [change(number) for number in range(5)])
    assert results[0] != results[1] == results[2]
    assert results[3].endswith(b"AAAA") and results[4].endswith(b"BBBB")


def test_an_edit_of_the_language(tmp_path: pathlib.Path) -> None:
    """Of a copy of the package, in all of its folders."""
    import shutil

    package = pathlib.Path(tessera.__file__).parent
    copy = tmp_path / "python/tessera"
    shutil.copytree(package, copy, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    program = (
        "from tessera.compiler.dependencies import _front_end_key\nprint(_front_end_key().hex())"
    )

    def key() -> str:
        environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        ).stdout

    seen = [key()]
    assert len(seen[0]) == 65
    for name in ("extra/libdevice.py", "extra/cuda.py", "standard.py"):
        with open(copy / "language" / name, "a") as file:
            file.write("\n")
        seen.append(key())
    assert len(set(seen)) == 4


def test_a_library_that_is_edited(tmp_path: pathlib.Path) -> None:
    library = tmp_path / "library.ll"
    body = "define float @twist(float %x) {\n  %y = fmul float %x, NUMBER\n  ret float %y\n}\n"
    main = IMPORTS + textwrap.dedent(f"""
        @tl.core.extern
        def twist(x):
            table = {{(tl.float32,): ("twist", tl.float32)}}
            return tl.core.extern_elementwise("", {str(library)!r}, [x], table, is_pure=True)
        @jit
        def kernel(out):
            tl.store(out, twist(tl.load(out)))
        """)
    write(tmp_path, {"main.py": main})

    def work() -> Any:
        kernel = start(tmp_path).kernel.warmup(tessera.language.float32, target="sm_80")
        return kernel.asm["ptx"]

    library.write_text(body.replace("NUMBER", "3.0"))
    assert "0f40400000" in in_fork(work)
    library.write_text(body.replace("NUMBER", "5.0"))
    assert "0f40A00000" in in_fork(work)


def test_the_import_of_a_submodule_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a module that is loaded late, such as one of the tuner, made all launches look again."""
    package, part = ModuleType("package"), ModuleType("package.part")
    watch_module(package)
    monkeypatch.setitem(sys.modules, "package.part", part)
    before = _C.generation()
    package.part = part  # type: ignore[attr-defined]
    assert _C.generation() == before
    for value in (part, None):
        package.part = value  # type: ignore[attr-defined]
        before += 1
        assert _C.generation() == before
    for value in (1, None):
        setattr(package, f"other_{value}", value)
        before += 1
        assert _C.generation() == before
