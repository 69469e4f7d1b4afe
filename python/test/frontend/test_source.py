# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a function's text ends, and what is below a node."""

from __future__ import annotations

import ast
import inspect
import linecache
import pathlib
import pkgutil
import textwrap
from types import FunctionType
from typing import Any

import pytest
import tessera
import tessera.language
from tessera.frontend.source import _block, child_nodes, read_function


def all_functions() -> list[FunctionType]:
    """Those of the language, most of which are decorated."""
    found = []
    for info in pkgutil.walk_packages(tessera.language.__path__, "tessera.language."):
        module = __import__(info.name, fromlist=["_"])
        for value in vars(module).values():
            value = getattr(value, "fn", value)
            if isinstance(value, FunctionType) and value.__module__ == info.name:
                found.append(value)
    return found


def test_text_ends_where_its_tokens_say() -> None:
    functions = all_functions()
    assert len(functions) > 100
    for fn in functions:
        lines = linecache.getlines(fn.__code__.co_filename)
        start = fn.__code__.co_firstlineno - 1
        assert list(_block(lines, start)) == inspect.getblock(lines[start:]), fn


ODD = [
    "def f(\n    x,\n):\n    return x\n",
    "@keep(\n    1\n)\n@keep(2)\ndef f(x):\n    return x\n",
    "def f(x): return x\n",
    "def f(x):\n    # first\n    return x\n    # last\n# not its own\n",
    "def f(x):\n    return x\n\n\n    # indented\n",
    'def f(x):\n    y = """\nflush left\n"""\n    return y\n',
    "def f(x):\n    y = (1 +\n2)\n    return y\n",
    "def f(x):\n    y = 1 + \\\n2\n    return y\n",
    "if True:\n    def f(x):\n        if x:\n            return 1\n\n        return 2\n    z = 1\n",
    "class C:\n    @keep(0)\n    def f(x):\n        return x\n    def g(x):\n        return x\nf = C.f\n",
]


@pytest.mark.parametrize("text", ODD)
def test_odd_layouts(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text + "other = 3\n")
    names: dict[str, Any] = {"keep": lambda number: lambda fn: fn}
    exec(compile(path.read_text(), str(path), "exec"), names)
    fn = names["f"]
    lines = linecache.getlines(str(path))
    found = read_function(fn)
    assert found.text == "".join(inspect.getblock(lines[fn.__code__.co_firstlineno - 1 :]))
    assert found.tree.name == "f"
    # Lines and columns are those of the file.
    segment = lines[found.tree.lineno - 1][found.tree.col_offset :]
    assert segment.startswith("def f(")


def test_children_are_all_but_operators_and_contexts() -> None:
    text = """
        def f(a, *, b: int = 1):
            for i in range(a):
                x = [j + 1 for j in a if j < i] if b and i else {1: 2, **a}
                y[i:2] += -x.z @ (lambda q: q)(*a, k=f"{a}")
            else:
                with a as c, b: pass
    """
    for node in ast.walk(ast.parse(textwrap.dedent(text))):
        expected = [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(
                child, (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
            )
        ]
        assert child_nodes(node) == expected
