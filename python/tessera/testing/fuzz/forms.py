# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared code of the kinds whose kernels have one of several forms, written as text."""

from __future__ import annotations

import random

from tessera.testing.fuzz.program import (
    Array,
    Assign,
    Expression,
    Nested,
    Program,
    Shape,
    Statement,
    Store,
    Value,
)


def let(name: str, text: str, dtype: str = "int32", shape: Shape = ()) -> Assign:
    """`name = text`."""
    return Assign(Value(name, dtype, shape), Expression(text, dtype, shape))


def do(text: str, fenced: bool = False) -> Store:
    """A statement that writes memory; one that is `fenced` has barriers around it on a GPU."""
    return Store("", Expression(text, "int32", ()), fenced)


class Form:
    """Writes the kernel of a seed: `write` adds its arrays and statements."""

    name: str  # under which its kernels are counted

    def __init__(self, seed: int, rng: random.Random) -> None:
        self.rng = rng
        self.program = Program(seed, rng.choice((1, 1, 2, 3)), rng.choice((1, 2, 3, 4)), [], [], [])
        self.body = self.program.statements
        # No sum is rounded, so that a product may be part of it or not.
        self.program.options = {"enable_fp_fusion": rng.random() < 0.5}
        self.count(self.name)
        self.write()

    def write(self) -> None:
        """Adds arrays and statements."""
        raise NotImplementedError

    def count(self, what: str) -> None:
        """Counts what the kernel has."""
        self.program.counts[what] += 1

    def array(
        self, name: str, dtype: str, size: int, data: str = "zeros", **options: object
    ) -> str:
        """Adds an array; gives its name."""
        self.program.arrays.append(Array(name, dtype, size, data, **options))  # type: ignore[arg-type]
        return name

    def scalar(self, name: str, value: int) -> str:
        """Adds an argument; gives its name."""
        self.program.scalars.append((name, value))
        return name

    def loop(self, name: str, count: str, down: bool, body: list[Statement]) -> list[Statement]:
        """Statements that do a body with `name` from 0 to `count` - 1, or the other way round."""
        kinds = ("range", "range", "range", "staged", "while", "found", "steps", "end")
        kind = self.rng.choice(kinds)
        self.count(f"loops: {kind}")
        if kind == "while":
            first, more = (f"{count} - 1", f"{name} >= 0") if down else ("0", f"{name} < {count}")
            step = f"{name} -= 1" if down else f"{name} += 1"
            return [Nested(f"while {more}", body, setup=f"{name} = {first}", step=step)]
        before: list[Statement] = []
        if kind == "found":
            bound = self.array(f"bound{len(self.program.arrays)}", "int32", 1, "zeros", shared=True)
            before.append(let(f"{name}_end", f"tl.load({bound}) + {count}"))
            count = f"{name}_end"
        if kind == "steps":
            variable = f"3 * ({count} - 1) - {name}_3" if down else f"{name}_3"
            inner = [let(name, f"({variable}) // 3"), *body]
            return [*before, Nested(f"for {name}_3 in range(0, 3 * {count}, 3)", inner)]
        if kind == "end":
            # The value behind the last one is beyond those of 32 bits, or is the bound.
            first = f"{(1 << 31) - 1} - (3 * {count} - {self.rng.choice((0, 1, 2))})"
            step = f"({name}_end - ({first})) // 3"
            inner = [let(name, f"{count} - 1 - {step}" if down else step), *body]
            return [Nested(f"for {name}_end in range({first}, {(1 << 31) - 1}, 3)", inner)]
        if down and self.rng.random() < 0.5:
            return [*before, Nested(f"for {name} in range({count} - 1, -1, -1)", body)]
        options = f", num_stages={self.rng.choice((1, 2, 3))}" if kind == "staged" else ""
        header = f"{'tl.range' if options else 'range'}(0, {count}{options})"
        if down:
            inner = [let(name, f"{count} - 1 - {name}_up"), *body]
            return [*before, Nested(f"for {name}_up in {header}", inner)]
        return [*before, Nested(f"for {name} in {header}", body)]
