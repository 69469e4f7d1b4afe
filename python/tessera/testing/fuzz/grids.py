# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels about grids: tuples, lists and functions of one to three extents, of Python and NumPy.

Each program stores where it is and how many there are, and adds to what all of them share. An axis
may be empty, and then nothing is written. Loops, branches and offsets depend on an axis, or on how
many programs it has, so that a compiler that mixes up two axes is found.
"""

from __future__ import annotations

import math
import random
import re

from tessera.testing.fuzz.program import (
    Array,
    Assign,
    Expression,
    Nested,
    Program,
    Statement,
    Store,
    Value,
)

_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint64", "intp")


def choose_grid(rng: random.Random, most: int, empty: bool) -> tuple[str, int]:
    """The grid of a launch, as Python, and its number of programs.

    Functions of the kernel's arguments have their `meta["n"]`, but no extent depends on it.
    """
    extents = [1]
    while len(extents) < 3 and rng.random() < 0.6:
        extents.append(1)
    for axis in rng.sample(range(len(extents)), len(extents)):
        room = most // math.prod(extents)
        extents[axis] = rng.randint(1, max(1, min(room, 4 if len(extents) > 1 else room)))
    if empty and rng.random() < 0.12:
        extents[rng.randrange(len(extents))] = 0
    texts = []
    for extent in extents:
        kind = rng.random()
        if kind < 0.25:
            texts.append(f"np.{rng.choice(_NUMBERS)}({extent})")
        elif kind < 0.3 and extent <= 1:
            texts.append(str(bool(extent)))
        else:
            texts.append(str(extent))
    form = rng.choice(("tuple", "tuple", "list", "function", "function of a list", "function of n"))
    inside = ", ".join(texts)
    if form == "list":
        grid = f"[{inside}]"
    elif form == "function of a list":
        grid = f"lambda meta: [{inside}]"
    elif form == "function of n":
        grid = f"lambda meta: ({inside}, ) if meta['n'] + 1 else ()"
    elif form == "function":
        grid = f"lambda meta: ({inside},)"
    else:
        grid = f"({inside},)"
    return grid, math.prod(extents)


def generate_grids(seed: int) -> Program:
    """The kernel about grids of a seed; the same one on every machine and for every target."""
    return _Generator(seed).program


class _Generator:
    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(f"grids {seed}")
        grid, programs = choose_grid(rng, most=24, empty=True)
        self.program = Program(seed, programs, rng.randint(0, 4), [], [], [], grid=grid)
        if rng.random() < 0.5:
            # Programs of several blocks, and warps.
            self.program.options = {
                "num_warps": rng.choice((1, 4)),
                "num_ctas": rng.choice((1, 1, 2)),
            }
        self.names = 0
        self.body = self.program.statements
        self._count_form(grid)
        self.scalars = [self._assign(self.body, self._scalar(), "int32") for _ in range(2)]
        for _ in range(rng.choice((1, 2, 3))):
            rng.choice((self._numbers, self._tile, self._loop, self._branch, self._sum))()

    def _count_form(self, grid: str) -> None:
        counts = self.program.counts
        axes = grid.count(",") if grid.endswith(",)") else grid.split(" if ")[0].count(",") + 1
        counts["function" if "lambda" in grid else "list" if grid[0] == "[" else "tuple"] += 1
        counts["NumPy's integers"] += "np." in grid
        counts["truth values"] += bool(re.search("True|False", grid))
        counts[f"{min(axes, 3)} axes"] += 1
        counts["no program"] += self.program.programs == 0

    def _expression(self, text: str, dtype: str, shape: tuple[int, ...] = ()) -> Expression:
        names = frozenset(re.findall(r"\b[vk]\d+\b", text)) | {"n"}
        return Expression(text, dtype, shape, (), names)

    def _assign(
        self, body: list[Statement], text: str, dtype: str, shape: tuple[int, ...] = ()
    ) -> Value:
        self.names += 1
        value = Value(f"v{self.names}", dtype, shape)
        body.append(Assign(value, self._expression(text, dtype, shape)))
        return value

    def _output(self, dtype: str, size: int, shared: bool = False) -> str:
        name = f"out{len(self.program.arrays)}"
        self.program.arrays.append(Array(name, dtype, size, shared=shared))
        return name

    def _scalar(self) -> str:
        """A number that depends on the program, or on how many there are."""
        axis, other = self.rng.randrange(3), self.rng.randrange(3)
        return self.rng.choice(
            (
                f"(tl.program_id({axis}) + 0)",
                f"(tl.num_programs({axis}) + 0)",
                f"(tl.program_id({axis}) * 3 + tl.program_id({other}))",
                f"(tl.num_programs({axis}) - tl.program_id({axis}))",
                f"(tl.program_id({axis}) % tl.num_programs({other}))",
                f"(tl.program_id({axis}) * tl.num_programs({other}) + tl.program_id({other}))",
                f"tl.cdiv(tl.program_id({axis}) + n, tl.num_programs({other}))",
                f"tl.minimum(tl.program_id({axis}), tl.num_programs({other}) // 2)",
            )
        )

    def _number(self) -> str:
        return self.rng.choice(self.scalars).name

    def _store(self, body: list[Statement], out: str, text: str) -> None:
        body.append(Store(out, self._expression(text, "void")))

    def _numbers(self) -> None:
        """Three ids and three extents, and some number of them."""
        out = self._output("int32", 7)
        for i in range(3):
            self._store(self.body, out, f"tl.store({out} + pid * 7 + {i}, tl.program_id({i}))")
            count = f"tl.store({out} + pid * 7 + {i + 3}, tl.num_programs({i}))"
            self._store(self.body, out, count)
        self._store(self.body, out, f"tl.store({out} + pid * 7 + 6, {self._number()})")

    def _tile(self) -> None:
        """A tile of an array, moved by the program's own number, under a mask of another."""
        rng, extent = self.rng, self.rng.choice((16, 64, 256))
        name = f"in{len(self.program.arrays)}"
        self.program.arrays.append(Array(name, "int32", extent, "integers"))
        out = self._output("int32", extent)
        lanes = f"tl.arange(0, {extent})"
        value = self._assign(
            self.body, f"tl.load({name} + pid * {extent} + {lanes})", "int32", (extent,)
        )
        mask = rng.choice(("", f", mask={lanes} < {extent // 2} + {self._number()}"))
        text = f"tl.store({out} + pid * {extent} + {lanes}, {value.name} + {self._number()}{mask})"
        self._store(self.body, out, text)

    def _loop(self) -> None:
        """A sum over as many iterations as an axis says."""
        total = self._assign(self.body, "tl.zeros((32,), tl.int32)", "int32", (32,))
        counter = f"k{self.names}"
        text = f"{total.name} + tl.arange(0, 32) * {counter} + {self._number()}"
        inner: list[Statement] = [Assign(total, self._expression(text, "int32", (32,)))]
        axis = self.rng.randrange(3)
        bound = self.rng.choice(
            (
                f"0, {self._number()}",
                f"tl.program_id({axis}), n + 3",
                f"0, n * tl.num_programs({axis})",
            )
        )
        self.body.append(Nested(f"for {counter} in range({bound})", inner))
        out = self._output("int32", 32)
        self._store(self.body, out, f"tl.store({out} + pid * 32 + tl.arange(0, 32), {total.name})")

    def _branch(self) -> None:
        """One way in the first or the last program of an axis, another in the others."""
        axis = self.rng.randrange(3)
        last = f"(tl.program_id({axis}) == tl.num_programs({axis}) - 1)"
        condition = self.rng.choice((f"(tl.program_id({axis}) == 0)", last))
        out = self._output("int32", 1)
        branch = Nested("if", [], self._expression(condition, "int1"))
        self._store(branch.body, out, f"tl.store({out} + pid, {self._number()} + 1)")
        self._store(branch.otherwise, out, f"tl.store({out} + pid, {self._number()} * 2 - n)")
        self.body.append(branch)

    def _sum(self) -> None:
        """The elements that all programs add to, chosen by an axis."""
        out = self._output("int32", 8, shared=True)
        where = f"(tl.program_id({self.rng.randrange(3)}) + tl.arange(0, 4)) % 8"
        self._store(self.body, out, f"tl.atomic_add({out} + {where}, {self._number()} + 1)")


__all__ = ["choose_grid", "generate_grids"]
