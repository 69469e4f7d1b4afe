#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the passes for GPUs have no numbers of a GPU, and name no instruction.

A number of a GPU is a fact about hardware, or a figure that was measured on it. Examples are the rows
of a dot, registers beside a loop's tiles, and bytes that copies need. It stands in `Machine`, so that another GPU
or instruction has another one. Two kinds of code are counted:

- a number from 16 on, and each number in a constant whose name has a unit of a GPU (registers,
  bytes, rows, warps, ...);
- the name of an instruction, in identifiers and in strings.

Comments do not count. A number of another kind is, say, a limit of a search. It needs a comment "Not
of a GPU: " with the reason, on its line or at most MARK_LINES lines above it. Bits of integer types and
sizes of small vectors are known. Exempt are `Machine`, the lowerings, and the folder of the classes
that each describe one MMA instruction.

Usage: check_gpu_facts.py [--root DIR] [--count]
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Iterator

FOLDERS = (
    "lib/Dialect/TileGPU/Transforms", "include/tessera/Dialect/TileGPU/Transforms",
    "lib/Analysis/SharedMemory", "include/tessera/Analysis/SharedMemory",
)  # fmt: skip
# Each class here describes one MMA instruction, as a row of Machine describes a GPU.
OF_INSTRUCTIONS = "lib/Dialect/TileGPU/Transforms/Instructions/"

MARK = "Not of a GPU: "
MARK_LINES = 3
LEAST = 16

COMMENT = re.compile(r"//.*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
# Bits of types, sizes of small vectors, and powers of two that a shift makes of a place's bits.
NOT_A_FACT = re.compile(
    r"""\bSmall\w+<[^;=(){}]*>            # SmallVector<Value, 16>
    |isInteger\(\d+\)|isSignedIntN\(\d+\)|isInt<\d+>|isUInt<\d+>
    |IntegerType::get\([^;]*?,\s*\d+\)|\bIntegerType\(\d+\)
    |getWidth\(\)\s*[<>=!]=?\s*\d+
    |isIndex\(\)\s*\?\s*64|isOfIt\.isIndex\(\)\s*\?\s*64
    |\b(?:u?int\d+_t\(1\)|1)\s*<<\s*\d+
    |\bint(?:8|16|32|64)_t|\b[fibu]f?(?:8|16|32|64)\b""",
    re.X,
)
NUMBER = re.compile(r"(?<![\w.])(\d+)(?:[uUlL]{0,3})\b(?:\s*<<\s*(\d+))?")
UNITS = "Registers|Bytes|Rows|Columns|Warps|Lanes|Threads|Groups|Blocks|Words|Banks|Accumulators|Alignment|Maps|Slots|Stages|Steps|Cycles|Programs|Copy|Temporary"
DEFINITION = re.compile(rf"\bk[A-Z]\w*?(?:{UNITS})\w*\s*=\s*([^;,]*)")
DEFAULT = re.compile(r"Num\w+\([^;]*\)\.value_or\(([2-9])\)")
INSTRUCTION = re.compile(
    r"wgmma|mma\.sync|cp\.async|setmaxnreg|[ls][dt]matrix|tcgen05|elect\.sync|WarpgroupDot|WarpgroupWait"
    r"|MmaDot|MMAKind::|hasWarpgroupMMA|warpgroupMMA|warpMMA",
    re.I,
)


def facts_in(line: str) -> Iterator[str]:
    """The numbers and names of a line without its comment."""
    code = STRING.sub('""', line)
    for match in INSTRUCTION.finditer(line):
        yield f"names {match.group()}"
    code = NOT_A_FACT.sub("", code)
    named = [match.span(1) for match in DEFINITION.finditer(code)]
    for match in NUMBER.finditer(code):
        number = int(match.group(1)) << int(match.group(2) or 0)
        is_named = any(begin <= match.start() < end for begin, end in named)
        if number >= LEAST or (is_named and number > 1):
            yield f"has the number {match.group()}"
    if default := DEFAULT.search(code):
        yield f"has the number {default.group(1)}"


def check(root: pathlib.Path) -> list[str]:
    """Each fact that stands in a pass, with its place."""
    errors: list[str] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in (".h", ".cpp") or name.startswith(OF_INSTRUCTIONS):
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines):
                above = " ".join(lines[max(0, number - MARK_LINES) : number + 1])
                if MARK in above or line.lstrip().startswith("#include"):
                    continue
                for fact in facts_in(COMMENT.sub("", line)):
                    errors.append(
                        f"{name}:{number + 1}: {fact}; a class of Machine knows it, or give the "
                        f'reason in a comment "{MARK}..."'
                    )
    return errors


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    parser.add_argument("--count", action="store_true", help="print the number of facts by file")
    arguments = parser.parse_args()
    errors = check(arguments.root.resolve())
    if arguments.count:
        files = Counter(error.split(":")[0] for error in errors)
        for name, count in files.most_common():
            print(f"{count:4} {name}")
        print(f"{len(errors):4} in all")
        return 0
    print("\n".join(errors) if errors else "gpu facts: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
