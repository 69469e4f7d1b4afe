#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that numbers of a GPU and names of its instructions stand in `Machine` and the lowerings alone.

A number of a GPU is a fact about hardware, or a figure that was measured on it. Examples are the rows
of a dot, registers beside a loop's tiles, and bytes that copies need. It stands in `Machine`, so that another GPU
or instruction has another one. All of `lib`, `include` and `python/tessera` is read but for the folders in
APART. Two kinds of code are counted:

- In C++, a number from 16 on, and each number in a constant whose name has a unit of a GPU (registers,
  bytes, rows, warps, ...). In Python, a number from 16 on beside warps or registers.
- The name of an instruction, in identifiers and in strings.

Comments do not count, nor do docstrings. A number of another kind needs a comment "Not of a GPU: " with
the reason, on its line or at most MARK_LINES lines above it. A name that users write or read needs the same
with "Public name: ". Known are bits of integer types, sizes of small vectors, and limits of walks by
their names. Files whose numbers or names are all of one kind stand in NUMBERS and NAMES, with the reason.

Usage: check_gpu_facts.py [--root DIR] [--count]
"""

from __future__ import annotations

import argparse
import io
import pathlib
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator

FOLDERS = ("lib", "include/tessera", "python/tessera")

# Folders that are not read, with reasons.
APART = {
    "Machine/": "the facts themselves",
    "Conversion/TileGPUToLLVM/": "the lowering to instructions",
    "Conversion/TileArith/": "lowers arithmetic to operations on bits, for CPUs, too",
    "Conversion/TileToStrips/": "for CPUs",
    "Target/": "writes instructions",
    "Simulator/": "executes instructions",
    "Runtime/": "the interfaces of CUDA's driver and of threads, which include no other layer",
    "python/tessera/machine/": "shows the facts",
    "python/tessera/testing/": "writes kernels, as users do",
    "python/tessera/ops/kernels/": "kernels, as users write them",
}  # fmt: skip

# Places that may name instructions, with reasons.
NAMES = {
    "Dialect/TileGPU/Transforms/Instructions/": "each class describes one MMA instruction",
    "Dialect/TileGPU/IR/DotInterfaces": "what passes ask an instruction's op, for each of them",
    "Dialect/TileGPU/IR/TileGPUMatmulOps": "defines an op for each MMA instruction",
    "Layout/Fragments": "the registers that an MMA instruction reads and writes",
    "Layout/LayoutPrinter": "what users of tessera-layout write",
    "CAPI/CUDA": "what users ask a GPU for",
}  # fmt: skip

# Places whose numbers are of one other kind.
NUMBERS = {
    "Dialect/TileGPU/Transforms/Instructions/": "of the instruction that a class describes",
    "Dialect/Tile/Transforms/DecomposeScaledDot": "bits of small floats",
    "Dialect/TileGPU/IR/TileGPU.h": "limits of the dialect's attributes and rings, for which it says what they allow",
    "Dialect/Strips/": "for CPUs",
    "Layout/F2Matrix": "a vector for each bit of a word",
    "Frontend/ValueType": "bits of the language's types",
    "Interpreter/": "bits of the language's types",
    "Support/": "bytes of the host's memory and milliseconds of its clock",
    "CAPI/Tessera": "the most dimensions of an array",
    "Compiler/Compiler.h": "seconds until ptxas is given up",
    "CAPI/Errors": "bytes of the host's memory",
    "CAPI/OldGlibc": "nanoseconds of a second",
    "CAPI/StaticGuards": "of the C++ runtime",
    "CAPI/XLA": "offsets of XLA's structures",
}  # fmt: skip

MARK, NAME_MARK = "Not of a GPU: ", "Public name: "
MARK_LINES = 3
LEAST = 16

COMMENT = re.compile(r"//.*|^\s*/?\*.*|/\*.*?\*/")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
BITS = r"(?:get(?:Element(?:Type)?|IntOrFloat|Storage)?Bit[wW]idth\([^()]*(?:\([^()]*\))?[^()]*\)|getWidth\(\))"
# Bits of types, sizes of small vectors, powers of two that a shift makes of a place's bits, and limits of walks.
NOT_A_FACT = re.compile(
    rf"""\bSmall\w+<[^;=(){{}}]*>          # SmallVector<Value, 16>
    |isInteger\(\d+\)|isSignedIntN\(\d+\)|isInt<\d+>|isUInt<\d+>
    |IntegerType::get\([^;]*?,\s*\d+\)|\bIntegerType\(\d+\)
    |{BITS}\s*[<>=!]=?\s*\d+
    |\bAPInt\(\d+|ConstantIntOp::create\([^;]*?,\s*\d+\)
    |\bis(?:Index\(\)|Wide)\s*\?\s*64(?:\s*:\s*32)?
    |\b(?:u?int\d+_t\(1\)|1U?)\s*<<\s*\d+
    |\bkMax(?:\w*Depth|Uses|Ops|Values|Checks|Accesses|Terms|Parts|Levels|Characters|Conjuncts|Rank)\s*=\s*\d+
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
# In Python: 32 * warps, registers <= 255, MAX_WARPS = 32.
OPERATOR = r"\s*(?:[*%]|//|[<>=!]?=|[<>])\s*"
COUNT = r"[\w.()]*(?:warp|register)[\w.()]*"
OF_WARPS = [
    re.compile(pattern, re.I)
    for pattern in (rf"\b(\d+){OPERATOR}{COUNT}", rf"\b{COUNT}{OPERATOR}(\d+)\b")
]


def is_in(name: str, places: dict[str, str]) -> bool:
    """True if a file is one of these places: a prefix of its path, `lib` or `include/tessera` apart."""
    short = re.sub(r"^(lib|include/tessera)/", "", name)
    return any(name.startswith(place) or short.startswith(place) for place in places)


def numbers_in(code: str) -> Iterator[str]:
    """The numbers of a line of C++ that may be facts."""
    code = NOT_A_FACT.sub("", STRING.sub('""', code))
    named = [match.span(1) for match in DEFINITION.finditer(code)]
    for match in NUMBER.finditer(code):
        number = int(match.group(1)) << int(match.group(2) or 0)
        is_named = any(begin <= match.start() < end for begin, end in named)
        if number >= LEAST or (is_named and number > 1):
            yield match.group()
    if default := DEFAULT.search(code):
        yield default.group(1)


def numbers_of_warps(code: str) -> Iterator[str]:
    """The numbers of a line of Python that may be facts."""
    for pattern in OF_WARPS:
        for number in pattern.findall(code):
            if int(number) >= LEAST:
                yield number


def python_code(text: str) -> list[str]:
    """The lines without comments and docstrings, which become empty."""
    lines = text.splitlines()
    last = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        # A string that begins a statement is one for readers.
        is_text = token.type == tokenize.STRING and last in (
            tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        )  # fmt: skip
        if token.type == tokenize.COMMENT or is_text:
            (first, begin), (end, _) = token.start, token.end
            lines[first - 1] = lines[first - 1][:begin]
            lines[first:end] = [""] * (end - first)
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING):
            last = token.type
    return lines


def check_file(name: str, text: str) -> Iterator[str]:
    """Each fact of a file, with its place."""
    lines = text.splitlines()
    is_python = name.endswith(".py")
    code = python_code(text) if is_python else [COMMENT.sub("", line) for line in lines]
    for number, line in enumerate(code):
        if line.lstrip().startswith("#include"):
            continue
        above = " ".join(lines[max(0, number - MARK_LINES) : number + 1])
        if MARK not in above and not is_in(name, NUMBERS):
            for fact in numbers_of_warps(line) if is_python else numbers_in(line):
                yield (
                    f"{name}:{number + 1}: has the number {fact}; a class of Machine knows it, "
                    f'or give the reason in a comment "{MARK}..."'
                )
        if NAME_MARK not in above and not is_in(name, NAMES):
            for match in INSTRUCTION.finditer(line):
                yield (
                    f"{name}:{number + 1}: names {match.group()}; ask Machine or an interface for "
                    f'what it does, or say in a comment "{NAME_MARK}..." who writes or reads it'
                )


def check(root: pathlib.Path) -> list[str]:
    """Each fact that stands where it should not, with its place."""
    errors: list[str] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".h", ".cpp", ".py") and not is_in(name, APART):
                errors += check_file(name, path.read_text(encoding="utf-8"))
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
