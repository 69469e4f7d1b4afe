# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a function's text ends, and what is below a node."""

from __future__ import annotations

import ast
import importlib
import inspect
import linecache
import pathlib
import pkgutil
import sys
import textwrap
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import tessera
import tessera.language
import tessera.language as tl
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


MODULE = """
import tessera, tessera.language as tl
@tessera.jit
def kernel(out):
    tl.store(out, {})
"""


def load(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> Any:
    """The module of a text, edited so soon that seconds and sizes do not tell."""
    path = folder / f"{name}.py"
    path.write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    if name in sys.modules:
        return importlib.reload(sys.modules[name])
    module = importlib.import_module(name)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def value(kernel: Any) -> int:
    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    return int(out[0])


def test_a_module_that_is_loaded_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = [
        load(tmp_path, monkeypatch, "reloaded", MODULE.format(number)).kernel
        for number in (3, 5, 7)
    ]
    # Each of the text that it was made of, the ones before too.
    assert [value(kernel) for kernel in kernels] == [3, 5, 7]
    assert "5" in kernels[1].src and "7" not in kernels[1].src


@pytest.mark.parametrize("edit", ["changed", "moved", "gone", "nonsense"])
def test_a_file_that_is_edited_before_the_first_launch(
    edit: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MODULE.format(3)
    kernel = load(tmp_path, monkeypatch, f"edited_{edit}", text).kernel
    path = tmp_path / f"edited_{edit}.py"
    if edit == "gone":
        path.unlink()
    else:
        texts = {"changed": MODULE.format(5), "moved": "\n\n" + text, "nonsense": "(" + text}
        path.write_text(texts[edit])
    linecache.checkcache()
    assert value(kernel) == 3


def test_a_file_that_is_edited_while_it_is_imported(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python has compiled all of it by then; what is in the file is another function."""
    texts = [MODULE.format(5), "\n" + MODULE.format(3), "x = 1\n"]
    texts += ["\n" * 2 + text for text in ("def other(x): pass\n", "x = '''\n", "x = (\n", "  y\n")]
    for number, text in enumerate(texts):
        name = f"importing_{number}"
        path = tmp_path / f"{name}.py"
        edit = f"__import__('pathlib').Path({str(path)!r}).write_text({text!r})"
        module = load(tmp_path, monkeypatch, name, MODULE.format(3).replace("\n", edit + "\n", 1))
        with pytest.raises(tessera.CompilationError, match="E002.*has changed") as caught:
            value(module.kernel)
        assert str(path) in str(caught.value)


def test_what_is_compiled_is_told_from_what_is_not() -> None:
    """By the code alone, so that no text is taken for that of another function."""
    from tessera.frontend.source import _gives

    texts = ["return x + 3", "return x + 5", "return x - 3", "return y + 3", "y.a(3)", "y.b(3)"]
    texts += ["return (0.0, x)", "return (-0.0, x)", "return [i + x for i in y]", "return x in {1}"]
    texts += [
        "return [i - x for i in y]",
        "for i in range(x):\n        y(i)",
        "return x if y else 1",
    ]
    trees, codes = [], []
    for text in texts:
        whole = f"import y\ndef f(x):\n    {text}\n"
        names: dict[str, Any] = {}
        exec(compile(whole.replace("import y", "y = 1"), "f.py", "exec"), names)
        codes.append(names["f"].__code__)
        tree = ast.parse(whole).body[1]
        assert isinstance(tree, ast.FunctionDef)
        trees.append(tree)
    for i, tree in enumerate(trees):
        assert [_gives(tree, code) for code in codes] == [i == j for j in range(len(codes))]


def test_functions_within_functions_have_their_text(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
from __future__ import annotations
import tessera, tessera.language as tl
def make(n, m):
    k = n
    class Holder:
        @tessera.jit
        def kernel(out, x: tl.constexpr = 0):
            values = [i + k for i in (n, m)]
            for i in tl.static_range(2):
                values = values + (i,)
            tl.store(out, values[0] + len(values) + x)
    return Holder.kernel
kernel = make(tl.constexpr(1), tl.constexpr(2))
"""
    module = load(tmp_path, monkeypatch, "nested", text)
    assert value(module.kernel) == 6


def test_decorating_is_quick(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 kernels in one file take as long as reading it a few times, not 200 times."""
    body = "".join(f"@jit\ndef kernel_{n}(out):\n    tl.store(out, {n})\n" for n in range(200))
    opened = []
    getlines = linecache.updatecache
    monkeypatch.setattr(
        linecache, "updatecache", lambda *args: opened.append(args) or getlines(*args)
    )
    module = load(tmp_path, monkeypatch, "many", "from tessera import jit\n" + body)
    assert len(opened) <= 2
    module.__dict__["tl"] = tessera.language
    assert value(module.kernel_199) == 199


@pytest.mark.parametrize("how", ["import", "assignment"])
def test_code_of_functions_of_modules(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The text is compiled as in a module that imports what the function's does, and is nearly
    always the same code, byte for byte. Operation by operation it takes longer to compare."""
    from tessera.frontend import source

    compared = []
    own = source._operations
    monkeypatch.setattr(source, "_operations", lambda code: compared.append(code) or own(code))
    lines = {"import": "import tessera.language as tl", "assignment": "tl = tessera.language"}
    text = f"""import tessera
{lines[how]}

@tessera.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.exp(tl.load(x_ptr)))
"""
    (tmp_path / f"by_{how}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module(f"by_{how}")
    assert module.kernel.src == text[text.index("def kernel") :]
    assert how != "import" or not compared


__private: tl.constexpr = tl.constexpr(100)
_Kernels__factor = tl.constexpr(10)


class __Kernels:
    """Python prefixes a name that begins with two underscores with the class's name."""

    @tessera.jit
    def __twice(__x):
        return 2 * __x

    twice = __twice

    @tessera.jit
    def store(__out, __n, *, __m: tl.constexpr = 3):
        __sum = __n + __m * __factor
        for __i in range(2):
            __sum += __i
        tl.store(__out, __sum)

    class Inner:
        @tessera.jit
        def store(__out):
            _Kernels__x_ = 7
            tl.store(__out, _Kernels__x_)

    class ___:
        @tessera.jit
        def store(__out):
            tl.store(__out, __private)

    def make(self):
        @tessera.jit
        def store(__out, twice: tl.constexpr):
            __value = 4
            tl.store(__out, twice(__value))

        return store


def test_private_names_in_classes() -> None:
    kernels = globals()["__Kernels"]
    out = np.zeros(1, np.int32)
    for launch, expected in (
        (lambda: kernels.store[(1,)](out, 5), 36),
        (lambda: kernels.store[(1,)](out, _Kernels__n=5, _Kernels__m=1), 16),
        (lambda: kernels.Inner.store[(1,)](out), 7),
        (lambda: kernels.___.store[(1,)](out), 100),
        (lambda: kernels().make()[(1,)](out, kernels.twice), 8),
    ):
        launch()
        assert out[0] == expected
