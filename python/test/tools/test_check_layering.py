# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/dev/check_layering.py finds, in trees made for it."""

from __future__ import annotations


import pytest

from tools.loading import TOOLS, load

PATH = TOOLS / "check_layering.py"


@pytest.fixture(scope="module")
def checker():
    return load(PATH)


@pytest.fixture
def tree(tmp_path):
    """A function that writes files, given by path and text."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def python(checker, tree, files):
    every = {"errors.py": "", "settings.py": "", "runtime/jit.py": "", "language/types.py": ""}
    return checker.check_python(
        tree({f"python/tessera/{name}": text for name, text in {**every, **files}.items()})
    )


UP = "language may not import runtime"


@pytest.mark.parametrize(
    "text",
    [
        "from tessera.runtime.jit import jit",
        "from tessera.runtime import jit",
        "import tessera.runtime.jit",
        "from ..runtime.jit import jit",
        "from ..runtime import jit",
        "\nif TYPE_CHECKING:\n    from tessera.runtime.jit import jit",
        "\nif not TYPE_CHECKING:\n    from tessera.runtime.jit import jit",
        "\ndef f():\n    from tessera.runtime.jit import jit",
        "\nclass A:\n    def f(self):\n        try:\n            import tessera.runtime.jit\n"
        "        except ImportError:\n            pass",
        "\nx = load('tessera.runtime.jit')",
        "\nHOMES = {'jit': 'tessera.runtime.jit'}",
    ],
)
def test_imports_from_above(checker, tree, text):
    (error,) = python(checker, tree, {"language/math.py": text})
    assert error.startswith("python/tessera/language/math.py:") and error.endswith(UP)
    line = next(n for n, each in enumerate(text.split("\n"), 1) if "runtime" in each)
    assert error.split(":")[1] == str(line)


@pytest.mark.parametrize(
    "text",
    [
        "from tessera import _C",
        "from tessera._C import CoreError",
        "from tessera.errors import LaunchError",
        "from . import types",
        "from .types import dtype",
        "def f():\n    from tessera.settings import settings",
        "import numpy, runtime.jit",
        "from runtime.jit import jit",
        '"""Not an import: tessera.runtime.jit."""',
        "WHERE = 'tessera.runtime'",
    ],
)
def test_imports_from_below(checker, tree, text):
    assert python(checker, tree, {"language/math.py": text}) == []


def test_a_module_on_another_floor_than_its_folder(checker, tree):
    files = {"tools/tensor_descriptor.py": "", "tools/run.py": "", "tools/explain.py": ""}
    fine = {"runtime/jit.py": "import tessera.tools.tensor_descriptor"}
    assert python(checker, tree, {**files, **fine}) == []
    above = {"runtime/jit.py": "import tessera.tools.explain"}
    (error,) = python(checker, tree, {**files, **above})
    assert error == "python/tessera/runtime/jit.py:1: runtime may not import tools"


def test_what_users_see_is_above_all(checker, tree):
    files = {"__init__.py": "from tessera.runtime.jit import jit"}
    assert python(checker, tree, files) == []
    (error,) = python(checker, tree, {**files, "settings.py": "import tessera"})
    assert error == "python/tessera/settings.py:1: settings may not import __init__"


def test_a_module_of_no_layer(checker, tree):
    (error,) = python(checker, tree, {"helpers.py": ""})
    assert error == "python/tessera/helpers.py: no layer of the table holds this module"


def test_a_circle_within_a_layer(checker, tree):
    one = {"language/math.py": "from tessera.language import shape"}
    late = {"language/shape.py": "def f():\n    from tessera.language.math import exp"}
    (error,) = python(checker, tree, {**one, **late})
    circle = "language/math -> language/shape -> language/math"
    assert error == f"python/tessera/language/math.py: imported in a circle: {circle}"
    typed = {"language/shape.py": "if TYPE_CHECKING:\n    from tessera.language.math import exp"}
    assert python(checker, tree, {**one, **typed}) == []


def test_a_circle_through_a_package(checker, tree):
    files = {
        "language/__init__.py": "from tessera.language.math import exp",
        "language/math.py": "def f():\n    from tessera.language import exp",
    }
    (error,) = python(checker, tree, files)
    assert error.endswith("language/__init__ -> language/math -> language/__init__")


def test_a_circle_that_begins_outside(checker, tree):
    """The modules of a circle may be reached from others that are in none."""
    files = {
        "language/a.py": "import tessera.language.b",
        "language/b.py": "import tessera.language.c",
        "language/c.py": "import tessera.language.b",
    }
    (error,) = python(checker, tree, files)
    assert error.endswith(": language/b -> language/c -> language/b")


def test_includes(checker, tree):
    files = {
        "include/tessera/Dialect/Tile/IR/Tile.h": '#include "tessera/Support/Errors.h"\n',
        "lib/Dialect/Tile/IR/Tile.cpp": '\n#include "tessera/Compiler/Compiler.h"\n',
        "lib/Runtime/Host/Pool.cpp": '#include "llvm/ADT/StringRef.h"\n',
        "lib/Elsewhere/A.cpp": "",
        "python/src/Kernel.cpp": '#include "tessera/CAPI/Tessera.h"\n#include "mlir/IR/Types.h"\n',
    }
    assert checker.check(tree(files)) == [
        "lib/Dialect/Tile/IR/Tile.cpp:2: Dialect/Tile/IR may not include Compiler",
        "lib/Elsewhere/A.cpp: no layer of the table holds this folder",
        "lib/Runtime/Host/Pool.cpp:1: Runtime knows no MLIR and no LLVM",
        "python/src/Kernel.cpp:2: the bindings see the C API alone",
    ]


def test_the_tables_have_no_circles(checker):
    for layers in (checker.LAYERS, checker.PYTHON_LAYERS):
        assert set().union(*layers.values()) <= set(layers)
        # `testing` and `compat` use the package as users do; it loads them when it is asked to.
        within = {name: below - {"__init__"} for name, below in layers.items()}
        within.pop("__init__", None)
        assert list(checker.circles(within)) == []


def test_this_tree(checker):
    root = PATH.parents[2]
    assert checker.check(root) + checker.check_python(root) == []


def test_folders_of_a_layer(checker, tree) -> None:
    readme = "| `Access/` | | none |\n| `Boxes/` | | `FindBoxes` |\n"
    files = {
        "lib/Analysis/README.md": readme,
        "include/tessera/Analysis/Boxes/Box.h": '#include "tessera/Analysis/Access/Access.h"\n',
        "lib/Analysis/Boxes/FindBoxes.cpp": "#define GEN_PASS_DEF_FINDBOXES\n",
    }
    assert checker.check_floors(tree(files)) == []
    files["lib/Analysis/Access/Access.cpp"] = '#include "Boxes/Local.h"\n'
    files["lib/Analysis/Access/Pass.cpp"] = "#define GEN_PASS_DEF_PASS\n"
    files["lib/Analysis/Order/Order.cpp"] = ""
    files["lib/Analysis/Other/Other.cpp"] = ""
    assert checker.check_floors(tree(files)) == [
        "lib/Analysis/Access/Access.cpp:1: Access may not include Boxes",
        "lib/Analysis/Access/Pass.cpp: lib/Analysis/README.md does not name this pass",
        "lib/Analysis/Order/Order.cpp: lib/Analysis/README.md does not name its folder",
        "lib/Analysis/Other/Other.cpp: FLOORS of check_layering.py lacks this folder",
    ]
