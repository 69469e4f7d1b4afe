# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions full of early exits do what Python says they do.

The generator writes nests of if, for, while and static_range with break, continue and
return in all places; each function runs on eight pairs of integers, by Python and by the
reference interpreter. To see a case again: `pytest -k "seed_17"`, or raise the count with
TESSERA_TEST_SEEDS.
"""

from __future__ import annotations

import linecache
import os
import random
from typing import Any

import numpy as np
import pytest

import tessera

NAMES = ["a", "b", "c", "d"]
# Loop variables that several loops share, and that are read outside of them.
SHARED = ["k", "l"]
COUNT = int(os.environ.get("TESSERA_TEST_SEEDS", "60"))
A = [0, 1, 2, 3, 5, 7, 12, 30]
B = [0, 4, 1, 9, 2, 31, 6, 3]


class Generator:
    """Writes functions of a and b; every loop ends, every number stays small."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0

    def function(self) -> str:
        lines = ["def f(a, b):", "    c = a", "    d = 3", "    k = b", "    l = 2"]
        for _ in range(4):
            lines += self.statement(0, False, 1)
        total = "a + b * 3 + c * 5 + d * 7 + k * 11 + l * 13"
        return "\n".join([*lines, f"    return ({total}) & 255", ""])

    def expression(self, depth: int = 0) -> str:
        kind = self.random.random()
        if depth > 1 or kind < 0.35:
            return self.random.choice([*NAMES, *SHARED, str(self.random.randint(0, 9))])
        left, right = self.expression(depth + 1), self.expression(depth + 1)
        if kind < 0.9:
            return f"({left} {self.random.choice('+-*&^|')} {right})"
        return f"({left} if {self.condition()} else {right})"

    def condition(self, depth: int = 0) -> str:
        kind = self.random.random()
        if depth > 1 or kind < 0.7:
            compare = self.random.choice(["<", ">", "==", "!=", "<=", ">="])
            return f"({self.random.choice(NAMES)} {compare} {self.expression(1)})"
        if kind < 0.95:
            word = "and" if kind < 0.85 else "or"
            return f"({self.condition(depth + 1)} {word} {self.condition(depth + 1)})"
        return f"(not {self.condition(depth + 1)})"

    def block(self, depth: int, in_loop: bool, indent: int) -> list[str]:
        count = self.random.randint(1, 3)
        return [line for _ in range(count) for line in self.statement(depth, in_loop, indent)]

    def statement(self, depth: int, in_loop: bool, indent: int) -> list[str]:
        kind, pad = self.random.random(), "    " * indent
        leave = self.random.choice(["break", "continue"])
        if depth > 3 or kind < 0.35:
            return [pad + self.assignment()]
        if kind < 0.42 and in_loop:
            return [f"{pad}if {self.condition()}:", f"{pad}    {leave}"]
        if kind < 0.46:
            return [f"{pad}if {self.condition()}:", f"{pad}    return {self.expression()} & 255"]
        if kind < 0.48:
            return [f"{pad}return {self.expression()} & 255"]
        if kind < 0.50 and in_loop:
            return [pad + leave]
        if kind < 0.72:
            return self.branch(depth, in_loop, indent)
        return self.loop(kind, depth, indent)

    def assignment(self) -> str:
        return f"{self.random.choice(NAMES)} = {self.expression()} & 31"

    def branch(self, depth: int, in_loop: bool, indent: int) -> list[str]:
        pad = "    " * indent
        lines = [f"{pad}if {self.condition()}:", *self.block(depth + 1, in_loop, indent + 1)]
        if self.random.random() < 0.3:
            lines += [f"{pad}elif {self.condition()}:", *self.block(depth + 1, in_loop, indent + 1)]
        if self.random.random() < 0.6:
            lines += [f"{pad}else:", *self.block(depth + 1, in_loop, indent + 1)]
        return lines

    def loop(self, kind: float, depth: int, indent: int) -> list[str]:
        pad = "    " * indent
        self.loops += 1
        own = f"i{self.loops}"
        index = self.random.choice([own, *SHARED]) if kind < 0.90 else own
        body = self.block(depth + 1, True, indent + 1)
        use = f"{pad}    {self.random.choice(NAMES)} = ({index} + {self.expression()}) & 31"
        if kind < 0.84:
            start, end = self.random.choice(["0", "1", "a & 3"]), self.random.choice(["4", "b & 7"])
            step = self.random.choice(["", ", 2"])
            return [f"{pad}for {index} in range({start}, {end}{step}):", use, *body]
        if kind < 0.90:
            return [f"{pad}for {index} in tl.static_range(0, 3):", use, *body]
        condition = self.random.choice([self.condition(), f"{index} < 4", "True"])
        guard = [f"{pad}    {index} += 1", f"{pad}    if {index} > 5:", f"{pad}        break"]
        return [f"{pad}{index} = 0", f"{pad}while {condition}:", *guard, *body]


@pytest.mark.parametrize("seed", [pytest.param(i, id=f"seed_{i}") for i in range(COUNT)])
def test_as_python(seed: int) -> None:
    source = Generator(seed).function()
    text = (
        f"import tessera\nimport tessera.language as tl\n\n@tessera.jit\n{source}\n"
        "@tessera.jit\ndef kernel(a_ptr, b_ptr, out_ptr):\n    i = tl.program_id(0)\n"
        "    tl.store(out_ptr + i, f(tl.load(a_ptr + i), tl.load(b_ptr + i)))\n"
    )
    file = f"<control flow {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    kernels: dict[str, Any] = {"__name__": "kernels"}
    exec(compile(text, file, "exec"), kernels)
    python: dict[str, Any] = {"tl": type("tl", (), {"static_range": range})}
    exec(source, python)
    out = np.zeros(len(A), np.int32)
    tessera.interpret(kernels["kernel"])[(len(A),)](
        np.array(A, np.int32), np.array(B, np.int32), out
    )
    assert out.tolist() == [python["f"](x, y) for x, y in zip(A, B)], source
