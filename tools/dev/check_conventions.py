#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the conventions of docs/Style.md that a machine can see.

- each pass has a summary, a description with an IR example, a file of its own whose
  name is the pass's, and a lit test of the same name; it counts nothing, since the size of
  LLVM's counters depends on its assertions, and Debian's LLVM is built without;
- each op family has a .td, a .cpp, and lit tests for good and for bad input;
- no file is named after nothing (Util, Common, Misc, Helper);
- each file starts with the licence line;
- no TODO or FIXME: what is missing is in docs/Status.md;
- outside of Machine, which describes GPUs, nothing compares the names or the numbers of their
  architectures, and none of their sizes stands as a number;
- outside of SourceMaps.cpp, no pass restates how a shape op moves elements: code that names such an
  op has a comment "Not an index map: " with the reason, at most MARK_LINES lines above it.

Usage: tools/dev/check_conventions.py [--root DIR]
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys

LICENCE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
PASS = re.compile(r'def\s+(\w+?)(?:Pass)?\s*:\s*Pass<\s*"([^"]+)"(.*?)\n}', re.S)
NAMELESS = re.compile(r"(util|common|misc|helper)s?\b|(Util|Common|Misc|Helper)", re.I)


# Expressions that are allowed only in Machine, and the fault of each.
OF_GPUS = {
    re.compile(r"\b[cC]apability\w*(\(\w*\))?\s*([<>]=?|[=!]=)\s*\d"): "compares a capability",
    re.compile(
        r"""starts_?with\(["']sm_|[=!]=\s*["']sm_|consume_front\(["']sm_"""
    ): "compares names",
    re.compile(r"\b(65536|232448|233472|101376|102400|166912|167936)\b"): "has a size of a GPU",
    re.compile(r"\b(96|99|100|163|164|227|228) << 10\b"): "has a size of a GPU",
}
# The ops whose index maps SourceMaps.cpp has. Building one, or taking its patterns, is no rule.
SHAPE_OP = re.compile(
    r"\b(?<!vector::)(Trans|Broadcast|Reshape|ExpandDims|Join|Split|Cat)Op\b(?!::(create|get|attach))"
)
BUILDS_OP = re.compile(r"(create|replaceOpWithNewOp)<[^<>]*>")
MARK = "Not an index map: "
MARK_LINES = 8
# The definitions of the ops, their plain meaning, and the front end that builds them. Rules of
# layouts say where places go, and the lowering compares them with the source maps.
OF_SHAPE_OPS = (
    "lib/Dialect/Tile/IR/", "lib/Interpreter/", "lib/Frontend/",
    "lib/Dialect/TileGPU/Transforms/Layouts/LayoutRuleModels.cpp",
    "lib/Conversion/TileGPUToLLVM/Ops/ShapeOps.cpp",
)  # fmt: skip
EXEMPT = (
    # Tests of the library's users query their machine.
    "python/tessera/compat/triton/site/triton/_internal_testing.py",
)


def kebab(name: str) -> str:
    """CamelCase to kebab-case; the name of a dialect stays one word."""
    name = name.replace("TileGPU", "Tilegpu")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def tracked_files(root: pathlib.Path) -> list[pathlib.Path]:
    out = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return [root / line for line in out.stdout.splitlines() if (root / line).is_file()]


def check_passes(root: pathlib.Path, files: list[pathlib.Path]) -> list[str]:
    errors: list[str] = []
    names = {path.name for path in files}
    tests = {path.name for path in files if path.is_relative_to(root / "test")}
    for path in files:
        if path.name != "Passes.td":
            continue
        for name, flag, body in PASS.findall(path.read_text()):
            where = f"{path.relative_to(root)}: {flag}"
            if not re.search(r"let\s+summary", body):
                errors.append(f"{where}: no summary")
            description = re.search(r"let\s+description\s*=\s*\[\{(.*?)\}\]", body, re.S)
            if not description:
                errors.append(f"{where}: no description")
            elif "```mlir" not in description.group(1):
                errors.append(f"{where}: the description has no IR example")
            if re.search(r"let\s+statistics", body):
                errors.append(f"{where}: statistics, whose layout differs from Debian's LLVM")
            # Dialect prefixes are in the definition's name where two dialects would clash,
            # and a conversion's file is named by its two ends.
            stem = re.sub(r"^(TileGPU|Tile|Strips|Convert)", "", name)
            # strips-group is GroupTiles.cpp: a verb alone would say too little there.
            if not names & {f"{stem}{what}.cpp" for what in ("", "Tiles", "Strips")}:
                errors.append(f"{where}: no file {stem}.cpp")
            # The tests of a conversion of many ops are a folder, a file an op family.
            families = list((root / "test/Conversion" / stem).glob("*-ops.mlir"))
            if not families and not tests & {f"{kebab(stem)}.mlir", f"{flag}.mlir"}:
                errors.append(f"{where}: no lit test {kebab(stem)}.mlir")
    return errors


def check_op_families(root: pathlib.Path) -> list[str]:
    errors: list[str] = []
    for td in sorted((root / "include/tessera/Dialect").glob("*/IR/*Ops.td")):
        dialect = td.parents[1].name
        family = td.stem.removeprefix(dialect)
        if family == "Ops":
            continue
        source = root / "lib/Dialect" / dialect / "IR" / f"{td.stem}.cpp"
        if not source.exists():
            errors.append(f"{td.relative_to(root)}: no {source.relative_to(root)}")
        stem = kebab(family.removesuffix("Ops"))
        for suffix in ("ops", "errors"):
            test = root / "test/Dialect" / dialect / f"{stem}-{suffix}.mlir"
            if not test.exists():
                errors.append(f"{td.relative_to(root)}: no {test.relative_to(root)}")
    return errors


def check_files(root: pathlib.Path, files: list[pathlib.Path]) -> list[str]:
    errors: list[str] = []
    for path in files:
        relative = path.relative_to(root)
        if (
            path.suffix not in (".h", ".cpp", ".td", ".py", ".cmake")
            and path.name != "CMakeLists.txt"
        ):
            continue
        # The files of tessera.compat have the names that programs import.
        if NAMELESS.search(path.stem) and "compat" not in relative.parts:
            errors.append(f"{relative}: a file is named after its idea, not {path.stem}")
        text = path.read_text()
        if text.strip() and LICENCE not in "\n".join(text.splitlines()[:3]):
            errors.append(f"{relative}: no licence line at the top")
        if relative.parts[:2] != ("tools", "dev"):
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                    errors.append(
                        f"{relative}:{number}: an open mark; it belongs in docs/Status.md"
                    )
    return errors


def check_gpus(root: pathlib.Path, files: list[pathlib.Path]) -> list[str]:
    """Only Machine has facts about GPUs; other code must query it."""
    errors: list[str] = []
    for path in files:
        relative = path.relative_to(root)
        is_code = relative.parts[0] in ("lib", "include") or relative.parts[:2] == (
            "python", "tessera"
        )  # fmt: skip
        is_source = path.suffix in (".h", ".cpp", ".td", ".py")
        if not is_code or not is_source or "Machine" in relative.parts:
            continue
        if relative.as_posix() in EXEMPT:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, what in OF_GPUS.items():
                if pattern.search(line):
                    errors.append(
                        f"{relative}:{number}: {what}; a GPUMachine (include/tessera/Machine) knows it"
                    )
    return errors


def check_index_maps(root: pathlib.Path, files: list[pathlib.Path]) -> list[str]:
    """Passes read the source maps of shape ops (SourceMaps.h), or say why they name one."""
    errors: list[str] = []
    for path in files:
        name = path.relative_to(root).as_posix()
        is_pass = name.startswith(("lib/", "include/")) and path.suffix in (".h", ".cpp")
        if not is_pass or name.startswith(OF_SHAPE_OPS):
            continue
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            code = BUILDS_OP.sub("", line.split("//")[0])
            above = " ".join(lines[max(0, number - MARK_LINES) : number + 1])
            if (match := SHAPE_OP.search(code)) and MARK not in above:
                errors.append(
                    f"{name}:{number + 1}: names {match.group()}; read its source map "
                    f'(SourceMaps.h), or give the reason in a comment "{MARK}..."'
                )
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    root = parser.parse_args().root.resolve()
    files = tracked_files(root)
    errors = (
        check_passes(root, files)
        + check_op_families(root)
        + check_files(root, files)
        + check_gpus(root, files)
        + check_index_maps(root, files)
    )
    print("\n".join(errors) if errors else "conventions: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
