# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose loops load in conditionals, as second stages of split decoding do.

The compiler masks such loads and selects the results instead (`tile-predicate-loads`), and unrolls
the loop. Arrays are only as large as the conditions allow, so that a load that a condition should
have kept from memory is found. Loops carry sums, maxima and counts; conditionals have one side or
two, scalars and tiles, masks of their own, and sometimes a store or a reduction.

All numbers are small integers, so that sums are exact in any order.
"""

from __future__ import annotations

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


def generate_branches(seed: int) -> Program:
    """The kernel about branches of a seed; the same one on every machine and for every target."""
    return _Generator(seed).program


class _Generator:
    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(f"branches {seed}")
        self.program = Program(seed, rng.choice((1, 2)), rng.choice((0, 1, 3, 4, 7, 9)), [], [], [])
        self.program.options = {"num_warps": rng.choice((1, 2, 4))}
        self.width = rng.choice((16, 32, 64, 128))
        self.names = 0
        self.before: list[Statement] = []
        self.behind: list[Statement] = []
        body: list[Statement] = []
        for _ in range(rng.choice((1, 1, 2))):
            body += self._branch()
        if rng.random() < 0.15:
            self.program.counts["stores in the loop"] += 1
            name = self._array("int32", max(1, self.program.iterations), "zeros")
            body.append(self._store(name, f"pid * {max(1, self.program.iterations)} + i", "i"))
        loop = Nested("for i in range(0, n)", body)
        self.program.statements = [*self.before, loop, *self.behind]

    # --- Text ------------------------------------------------------------------------------

    def _name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def _expression(self, text: str, dtype: str, shape: tuple[int, ...] = ()) -> Expression:
        names = frozenset(re.findall(r"\b[a-z_]\w*\b", text.replace("tl.", "")))
        return Expression(text, dtype, shape, (), names)

    def _assign(
        self, name: str, text: str, dtype: str = "int32", shape: tuple[int, ...] = ()
    ) -> Assign:
        return Assign(Value(name, dtype, shape), self._expression(text, dtype, shape))

    def _store(self, array: str, place: str, value: str) -> Store:
        return Store(array, self._expression(f"tl.store({array} + {place}, {value})", "void"))

    def _array(self, dtype: str, size: int, data: str) -> str:
        name = self._name("in" if data != "zeros" else "out")
        self.program.arrays.append(Array(name, dtype, size, data))
        return name

    # --- Conditionals ----------------------------------------------------------------------

    def _branch(self) -> list[Statement]:
        rng, n = self.rng, self.program.iterations
        limit = rng.choice((0, 1, 2, n // 2, max(0, n - 1), n))
        kind = rng.choice(("below", "below", "odd", "flag", "not below"))
        self.program.counts[f"condition: {kind}"] += 1
        start: list[Statement] = []
        first, last = 0, limit
        if kind == "below":
            condition = f"i < {limit}"
        elif kind == "not below":
            condition, first, last = f"i >= {limit}", limit, n
        elif kind == "odd":
            condition, last = "i % 2 == 1", n - n % 2
        else:
            flags = self._array("int32", max(1, n), "integers")
            flag = self._name("f")
            start.append(self._assign(flag, f"tl.load({flags} + pid * {max(1, n)} + i)"))
            condition, last = f"{flag} > 0", n
        sides: list[list[Statement]] = [[], []]
        self._side(sides[0], first, last)
        if rng.random() < 0.4:
            self.program.counts["two sides"] += 1
            other = (limit, n) if kind == "below" else (0, limit) if kind == "not below" else (0, n)
            self._side(sides[1], *other)
        test = self._expression(condition, "int1")
        return [*start, Nested("if", sides[0], test, sides[1])]

    def _side(self, body: list[Statement], first: int, last: int) -> None:
        """Loads from an array that has rows for the iterations from `first` to `last` alone."""
        rng, width = self.rng, self.width
        rows = max(1, last - first)
        kind = rng.choice(("int32", "float32", "float16"))
        whole = "int32" if kind == "int32" else "float32"
        scalar = rng.random() < 0.3
        lanes = 1 if scalar else width
        array = self._array(kind, rows * lanes, "small")
        shape = () if scalar else (width,)
        place = f"{array} + pid * {rows * lanes} + (i - {first}) * {lanes}"
        mask = ""
        if not scalar:
            place += f" + tl.arange(0, {width})"
            if rng.random() < 0.4:
                other = rng.choice((", other=0", ", other=1"))
                mask = f", mask=tl.arange(0, {width}) < {rng.choice((width - 3, width // 2, 1))}{other}"
        x, acc = self._name("x"), self._name("a")
        zero = f"tl.to_tensor(0).to(tl.{whole})" if scalar else f"tl.zeros({shape}, tl.{whole})"
        self.before.append(self._assign(acc, zero, whole, shape))
        body.append(self._assign(x, f"tl.load({place}{mask}).to(tl.{whole})", whole, shape))
        text = rng.choice((f"{acc} + {x}", f"tl.maximum({acc}, {x})", f"{x} - {acc}", x))
        if not scalar and rng.random() < 0.1:
            self.program.counts["reduces in the loop"] += 1
            text = f"{acc} + tl.sum({x}, 0)"
        body.append(self._assign(acc, text, whole, shape))
        out = self._array(whole, lanes, "zeros")
        index = f"pid * {lanes}" + ("" if scalar else f" + tl.arange(0, {width})")
        self.behind.append(self._store(out, index, acc))


__all__ = ["generate_branches"]
