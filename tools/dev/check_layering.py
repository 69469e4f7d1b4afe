#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that dependencies point down.

Each folder of include/tessera and lib is a layer. LAYERS says which other layers a
layer may include; anything else is an error. The table is the one of
docs/Architecture.md ("Who may include whom").

Usage: tools/dev/check_layering.py [--root DIR]
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys

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

# Folders that must not see these includes at all.
FORBIDDEN: dict[str, re.Pattern[str]] = {
    "Runtime": re.compile(r'^\s*#\s*include\s+["<](mlir|llvm)[/-]'),
    "python/src": re.compile(r'^\s*#\s*include\s+["<](mlir/|llvm/|tessera/(?!CAPI/))'),
}

INCLUDE = re.compile(r'^\s*#\s*include\s+"tessera/([^"]+)"')


def layer_of(path: str) -> str | None:
    """The layer that a path below include/tessera or lib belongs to."""
    best = None
    for layer in LAYERS:
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
    for path in sorted((root / "python/src").glob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if FORBIDDEN["python/src"].match(line):
                errors.append(f"python/src/{path.name}:{number}: the bindings see the C API alone")
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    errors = check(parser.parse_args().root)
    print("\n".join(errors) if errors else "layering: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
