#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that dependencies point down.

Each folder of include/tessera and lib is a layer. LAYERS says which other layers a
layer may include; anything else is an error. The table is the one of
docs/Architecture.md ("Who may include whom").

FLOORS says the same of the folders within a large layer, whose README.md names each folder and
each pass in it.

PYTHON_LAYERS says it of python/tessera. An import counts at any place: within a function, for type
checkers only, or as the name of a module in a string, by which modules are loaded late. No modules
may import each other in a cycle, except for type checkers.

Usage: tools/dev/check_layering.py [--root DIR]
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import re
import sys
from typing import Iterator, NamedTuple

# layer -> the layers that it may include, besides itself.
LAYERS: dict[str, set[str]] = {
    "Support": set(),
    "Layout": {"Machine"},
    "Machine": set(),
    "Runtime": set(),
    "Dialect/Tile/IR": {"Support"},
    "Dialect/Strips/IR": {"Support", "Dialect/Tile/IR"},
    "Dialect/TileGPU/IR": {"Support", "Machine", "Layout", "Dialect/Tile/IR"},
    "Analysis": {
        "Support",
        "Machine",
        "Layout",
        "Dialect/Tile/IR",
        "Dialect/Strips/IR",
        "Dialect/TileGPU/IR",
    },
    "Dialect/Tile/Transforms": {"Support", "Analysis", "Dialect/Tile/IR"},
    "Dialect/TileGPU/Transforms": {
        "Support",
        "Machine",
        "Layout",
        "Analysis",
        "Dialect/Tile/IR",
        "Dialect/TileGPU/IR",
    },
    "Frontend": {"Support", "Dialect/Tile/IR"},
    "Interpreter": {"Support", "Dialect/Tile/IR"},
    "Simulator": {"Support", "Machine", "Runtime"},
    "Conversion": {
        "Support",
        "Machine",
        "Layout",
        "Analysis",
        "Dialect/Tile/IR",
        "Dialect/Strips/IR",
        "Dialect/TileGPU/IR",
        "Runtime",
    },
    "Target": {"Support", "Machine", "Runtime"},
    "Pipelines": {
        "Support",
        "Machine",
        "Analysis",
        "Conversion",
        "Dialect/Tile/IR",
        "Dialect/Tile/Transforms",
        "Dialect/Strips/IR",
        "Dialect/TileGPU/IR",
        "Dialect/TileGPU/Transforms",
    },
    "Compiler": {
        "Support",
        "Machine",
        "Analysis",
        "Dialect/Tile/IR",
        "Dialect/Strips/IR",
        "Dialect/TileGPU/IR",
        "Conversion",
        "Pipelines",
        "Target",
        "Runtime",
    },
    "CAPI": {
        "Support",
        "Machine",
        "Compiler",
        "Runtime",
        "Frontend",
        "Interpreter",
        "Simulator",
        "Layout",
        "Target",
        "Dialect/Tile/IR",
        "InitAll",
    },
    "InitAll": {
        "Support",
        "Dialect/Tile/IR",
        "Dialect/Tile/Transforms",
        "Dialect/Strips/IR",
        "Dialect/TileGPU/IR",
        "Dialect/TileGPU/Transforms",
        "Conversion",
        "Pipelines",
    },
}

# The folders of large layers, from the lowest on: each may include those before it. The layer's own
# folder, which holds what all of them share, is not restricted. README.md in each layer says what
# belongs where.
FLOORS: dict[str, tuple[str, ...]] = {
    "Analysis": ("Access", "Boxes", "Order", "SharedMemory"),
    "Dialect/TileGPU/Transforms": ("Facts", "Instructions", "Layouts", "Programs", "Memory", "Schedule"),
    "Conversion/TileToStrips": (
        "Functions", "Grouping", "Nests", "Atomics", "Checks", "Dots", "Programs",
    ),
    "Conversion/TileGPUToLLVM": ("Fragments", "Exchange", "Plans", "Ops", "NVIDIA"),
}  # fmt: skip

_BASE = {"digests", "errors", "locks", "log", "notebook", "settings", "terminal", "wording"}
_COMPILER = _BASE | {"machine", "language", "frontend", "compiler"}
_LAUNCHES = _COMPILER | {"runtime", "tools/tensor_descriptor"}

# The same for python/tessera: folders, and modules that are on another floor than their folder.
PYTHON_LAYERS: dict[str, set[str]] = {
    "digests": set(),
    "errors": {"wording"},
    "locks": set(),
    "unbuilt": set(),
    "version": set(),
    "notebook": set(),
    "terminal": set(),
    "wording": {"locks"},
    "settings": {"errors", "wording"},
    "log": {"errors", "settings"},
    "machine": {"errors"},
    "untried": {"errors"},
    "language": _BASE | {"machine"},
    "frontend": _BASE | {"language"},
    "compiler": _BASE | {"machine", "language", "frontend"},
    "tools/tensor_descriptor": {"errors"},
    "runtime": _COMPILER | {"tools/tensor_descriptor"},
    "tools": _LAUNCHES,
    "calls": _LAUNCHES,
    "tuning": _LAUNCHES,
    "aot": _LAUNCHES,
    "gpu": _LAUNCHES,
    "views": _LAUNCHES,
    "jax": _LAUNCHES | {"calls", "untried"},
    "calls/function": _LAUNCHES | {"calls", "jax", "torch"},
    "calls/pointwise": _LAUNCHES | {"calls", "jax", "torch"},
    "calls/reductions": _LAUNCHES | {"calls", "calls/pointwise", "calls/recorded", "jax", "torch"},
    "calls/fusion": _LAUNCHES | {"calls", "calls/pointwise"},
    "calls/recorded": _LAUNCHES | {"calls", "calls/pointwise", "torch"},
    # These two use the package as users do, and are loaded by it when it is asked for them.
    "testing": _LAUNCHES | {"__init__", "gpu", "tuning"},
    "compat": _LAUNCHES | {"__init__", "testing", "tools", "tuning"},
    "torch": _LAUNCHES | {"calls", "compat", "untried"},
    "nn": _LAUNCHES | {"ops"},
    "ops": _LAUNCHES
    | {"calls", "calls/pointwise", "calls/recorded", "calls/reductions", "jax", "torch"},
    "ops/tuner": _LAUNCHES | {"ops", "tuning"},
    "tools/run": {"compat"},
}
# The modules that users import may import everything.
PYTHON_LAYERS["__init__"] = set(PYTHON_LAYERS)
PYTHON_LAYERS["__main__"] = set(PYTHON_LAYERS)

# Folders that must not see these includes at all.
FORBIDDEN: dict[str, re.Pattern[str]] = {
    "Runtime": re.compile(r'^\s*#\s*include\s+["<](mlir|llvm)[/-]'),
    "python/src": re.compile(r'^\s*#\s*include\s+["<](mlir/|llvm/|tessera/(?!CAPI/))'),
}

INCLUDE = re.compile(r'^\s*#\s*include\s+"tessera/([^"]+)"')


def layer_of(path: str, layers: dict[str, set[str]] = LAYERS) -> str | None:
    """The layer that a path below include/tessera, lib or python/tessera belongs to."""
    best = None
    for layer in layers:
        if path == layer or path.startswith(layer + "/") or path.startswith(layer + "."):
            if best is None or len(layer) > len(best):
                best = layer
    return best


def check(root: pathlib.Path) -> list[str]:
    errors: list[str] = []
    for base in ("include/tessera", "lib"):
        for path in sorted((root / base).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".td", ".inc"):
                continue
            relative = path.relative_to(root / base).as_posix()
            layer = layer_of(relative)
            if layer is None:
                errors.append(f"{base}/{relative}: no layer of the table holds this folder")
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if layer in FORBIDDEN and FORBIDDEN[layer].match(line):
                    errors.append(f"{base}/{relative}:{number}: {layer} knows no MLIR and no LLVM")
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = layer_of(match.group(1))
                if target is None:
                    errors.append(
                        f"{base}/{relative}:{number}: includes {match.group(1)}, of no layer"
                    )
                elif target != layer and target not in LAYERS[layer]:
                    errors.append(f"{base}/{relative}:{number}: {layer} may not include {target}")
    for path in sorted((root / "python/src").rglob("*.*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if FORBIDDEN["python/src"].match(line):
                errors.append(f"python/src/{path.name}:{number}: the bindings see the C API alone")
    return errors


def check_floors(root: pathlib.Path) -> list[str]:
    """The mistakes within layers that have folders."""
    errors: list[str] = []
    for layer, floors in FLOORS.items():
        readme = root / "lib" / layer / "README.md"
        text = readme.read_text() if readme.exists() else ""
        for base in ("include/tessera", "lib"):
            for path in sorted((root / base / layer).rglob("*")):
                floor, _, name = path.relative_to(root / base / layer).as_posix().partition("/")
                if path.suffix not in (".h", ".cpp") or not name:
                    continue
                where = path.relative_to(root)
                if floor not in floors:
                    errors.append(f"{where}: FLOORS of check_layering.py lacks this folder")
                    continue
                if f"`{floor}/`" not in text:
                    errors.append(f"{where}: lib/{layer}/README.md does not name its folder")
                code = path.read_text()
                if "GEN_PASS_DEF_" in code and f"`{path.stem}`" not in text:
                    errors.append(f"{where}: lib/{layer}/README.md does not name this pass")
                for number, line in enumerate(code.splitlines(), 1):
                    match = re.match(rf'#include "(?:tessera/{layer}/)?(\w+)/\w+\.h"', line)
                    target = match.group(1) if match else floor
                    if target in floors and floors.index(target) > floors.index(floor):
                        errors.append(f"{where}:{number}: {floor} may not include {target}")
    return errors


class Import(NamedTuple):
    """One module of ours that another one imports."""

    path: str
    """Of the module that is imported, below python/tessera and without `.py`."""
    line: int
    is_for_types: bool
    """Whether it is done under `if TYPE_CHECKING`."""


def imports_of(path: str, tree: ast.AST, modules: set[str]) -> Iterator[Import]:
    """The modules among `modules`, paths like `path`, that a module imports."""
    package = path.rpartition("/")[0]

    def find(dotted: list[str]) -> str | None:
        for found in ("/".join(dotted), "/".join([*dotted, "__init__"])):
            if found in modules:
                return found
        return None

    def named(node: ast.AST) -> Iterator[str | None]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, *rest = alias.name.split(".")
                if first == "tessera":
                    yield find(rest)
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").split(".")
            if node.level:
                outer = package.split("/") if package else []
                base = outer[: len(outer) - node.level + 1] + [part for part in base if part]
            elif base[0] == "tessera":
                base = base[1:]
            else:
                return
            for alias in node.names:
                # The core, `_C`, and `_version`, are no sources of ours, and below all of this.
                if not (base == [] and alias.name.startswith("_")):
                    yield find([*base, alias.name]) or find(base)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            first, *rest = node.value.split(".")
            if first == "tessera" and "/".join(rest) in modules:
                yield "/".join(rest)

    def visit(node: ast.AST, is_for_types: bool) -> Iterator[Import]:
        for found in named(node):
            if found is not None and found != path:
                yield Import(found, getattr(node, "lineno", 0), is_for_types)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            # The body of `if not TYPE_CHECKING` runs; that of `if TYPE_CHECKING` does not.
            is_negated = isinstance(node.test, ast.UnaryOp)
            for body, is_typed in ((node.body, not is_negated), (node.orelse, is_negated)):
                for child in body:
                    yield from visit(child, is_for_types or is_typed)
            return
        for inner in ast.iter_child_nodes(node):
            yield from visit(inner, is_for_types)

    yield from visit(tree, False)


def circles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """A circle of imports for each module from which one can be found, each circle once."""
    done: set[str] = set()

    def search(module: str, way: list[str]) -> list[str] | None:
        if module in way:
            return [*way[way.index(module) :], module]
        if module in done:
            return None
        for other in sorted(graph.get(module, ())):
            found = search(other, [*way, module])
            if found is not None:
                return found
        done.add(module)
        return None

    for module in sorted(graph):
        found = search(module, [])
        if found is not None:
            done |= set(found)
            yield found


def check_python(root: pathlib.Path) -> list[str]:
    """The mistakes in python/tessera."""
    errors: list[str] = []
    folder = root / "python/tessera"
    files = {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.rglob("*.py"))
    }
    modules = set(files)
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        layer = layer_of(name, PYTHON_LAYERS)
        if layer is None:
            errors.append(f"python/tessera/{name}.py: no layer of the table holds this module")
            continue
        graph[name] = set()
        for found in imports_of(name, ast.parse(path.read_text()), modules):
            target = layer_of(found.path, PYTHON_LAYERS)
            if target not in (None, layer) and target not in PYTHON_LAYERS[layer]:
                errors.append(
                    f"python/tessera/{name}.py:{found.line}: {layer} may not import {target}"
                )
            if not found.is_for_types:
                graph[name].add(found.path)
    for circle in circles(graph):
        errors.append(f"python/tessera/{circle[0]}.py: imported in a circle: {' -> '.join(circle)}")
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    root = parser.parse_args().root
    errors = check(root) + check_floors(root) + check_python(root)
    print("\n".join(errors) if errors else "layering: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
