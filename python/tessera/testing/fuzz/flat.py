# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels with flat loops: one loop over the K tiles of all tiles of a program.

A counter wraps, or is a remainder, or goes in larger steps up or down to a bound, or a flag says
that a tile ends. Conditionals on it open a tile and store its result. Some loops are a `while` over
tiles. The compiler makes two loops of such a loop (`tile-split-flat-loops`), which must not change
a bit. The spellings of the counter, the trip count, the carried values and the places of stores
vary. Some loops only look flat: their accumulator goes on from tile to tile, they store in other
iterations, or use what they carry behind the loop. Periods and trip counts may be zero or negative.

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

_COUNTERS = ("top", "bottom", "add first", "wrap first", "at least", "remainder", "quotient",
             "carried remainder", "up", "down")  # fmt: skip
# Tiles and K tiles of which there is memory; beyond them the kernel accesses nothing.
_MOST_TILES = 6
_MOST_STEPS = 6


def generate_flat(seed: int) -> Program:
    """The kernel about flat loops of a seed; the same one on every machine and for every target."""
    return _Generator(seed).program


class _Generator:
    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(f"flat {seed}")
        self.program = Program(seed, rng.choice((1, 2)), self._period(), [], [], [])
        self.program.options = {"num_warps": rng.choice((4, 4, 8)), "num_stages": 3}
        self.has_dot = rng.random() < 0.6
        self.rows = rng.choice((64, 64, 128)) if self.has_dot else rng.choice((16, 32))
        self.columns = rng.choice((32, 64)) if self.has_dot else 1
        self.depth = rng.choice((16, 32, 64))
        self.counter = rng.choice(_COUNTERS)
        # The kernels of other seeds stay as they were before flags came.
        if self.counter == "bottom" and random.Random(f"flag {seed}").random() < 0.6:
            self.counter = "flag"
        self.is_while = rng.random() < 0.2
        self.moves_pointers = rng.random() < 0.25
        self.opens = rng.choice(("if", "if", "if", "if", "reset", "end"))
        self.step = rng.choice((2, 3, 16))
        self.lasts: list[str] = []
        # A `while` over tiles has to end, and only its end of a tile goes on to the next one.
        self.over_tiles = False
        if self.counter not in ("remainder", "quotient") and rng.random() < 0.2:
            self.over_tiles, self.opens = True, "end"
            if self.counter not in ("up", "down"):
                self.program.iterations = max(1, self.program.iterations)
            self.program.counts["a while over tiles"] += 1
        self.program.counts[f"counter: {self.counter}"] += 1
        self.program.counts[f"opens: {self.opens}"] += 1
        self._kernel()

    def _period(self) -> int:
        return self.rng.choice((1, 2, 3, 3, 4, 5, 5, 6, 0, -1))

    # --- Text ------------------------------------------------------------------------------

    def _expression(self, text: str, dtype: str, shape: tuple[int, ...] = ()) -> Expression:
        names = frozenset(re.findall(r"\b[a-z_]\w*\b", text.replace("tl.", "")))
        return Expression(text.replace("{", "{{").replace("}", "}}"), dtype, shape, (), names)

    def _assign(
        self, name: str, text: str, dtype: str = "int32", shape: tuple[int, ...] = ()
    ) -> Assign:
        return Assign(Value(name, dtype, shape), self._expression(text, dtype, shape))

    def _store(self, array: str, place: str, value: str, mask: str) -> Store:
        text = f"tl.store({array} + {place}, {value}, mask={mask})"
        return Store(array, self._expression(text, "void"))

    def _if(self, condition: str, body: list[Statement], otherwise: list[Statement]) -> Nested:
        return Nested("if", body, self._expression(condition, "int1"), otherwise)

    # --- The loop --------------------------------------------------------------------------

    def _kernel(self) -> None:
        rng, program = self.rng, self.program
        rows, columns, depth = self.rows, self.columns, self.depth
        shape = (rows, columns) if self.has_dot else (rows,)
        tiles = rng.choice((0, 1, 2, 3, 3, 4, -2))
        self.share: list[Statement] = []
        self.first, self.advance = "0 - 1", 1
        if rng.random() < 0.4:
            self._share(rng.choice((1, 2, 3)))
            program.scalars.append(("work", tiles + 2))
        else:
            program.scalars.append(("tiles", tiles))
        # Iterations that close no tile remain in some loops.
        rest = rng.choice((0,) * 4 + (1, 2, 3, -1))
        kind = "float16" if self.has_dot else "int32"
        width = depth * _MOST_STEPS
        a_size, b_size = _MOST_TILES * rows * width, width * columns
        program.arrays += [Array("a", kind, a_size, "small")]
        if self.has_dot:
            program.arrays += [Array("b", kind, b_size, "small")]
        self.type = "float32" if self.has_dot else "int32"
        zeros = f"tl.zeros({shape}, tl.{self.type})"

        step = rng.choice((1, 1, 1, 1, 2))
        top: list[Statement] = [
            *self.share,
            self._assign("total", f"n * tiles + {rest}" if rest else "n * tiles"),
            self._assign("tile", self.first),
            self._assign("offs", f"tl.arange(0, {rows})", "int32", (rows,)),
            self._assign("acc", zeros, self.type, shape),
        ]
        first_k = f"tl.arange(0, {depth})[None, :]"
        if self.moves_pointers:
            text = f"a + offs[:, None] * {width} + {first_k}"
            top.append(self._assign("p", text, "pointer", (rows, depth)))
        start, before, count, after = self._counter()
        top += start
        opened = self._open(shape, zeros)
        body: list[Statement] = list(before)
        if self.opens == "end":
            top += opened
        else:
            otherwise: list[Statement] = []
            if self.moves_pointers:
                text = f"a + offs[:, None] * {width} + pid * 0 + {first_k}"
                opened.append(self._assign("p", text, "pointer", (rows, depth)))
                otherwise.append(self._assign("p", f"p + {depth}", "pointer", (rows, depth)))
            first = rng.choice((f"{count} == 0", f"{count} < 1", f"0 == {count}"))
            if self.counter in ("up", "down"):
                first = "at == 0" if self.counter == "up" else "at == long"
            if rng.random() < 0.1 and otherwise:
                body.append(self._if(f"{count} != 0", otherwise, opened))
            else:
                body.append(self._if(first, opened, otherwise))
        body += self._compute(count, shape, width)
        body += self._close(count, shape, zeros, opened if self.opens == "end" else [])
        body += after
        if rng.random() < 0.05:
            body.append(self._assign("acc", "acc + 1", self.type, shape))
        variable = "t" if step == 1 or self.counter in ("remainder", "quotient") else "u"
        if self.over_tiles:
            loop = Nested("while tile < limit", body)
            top.insert(0, self._assign("limit", f"pid * 0 + {rng.choice((0, 1, 3, 4))}"))
        elif self.is_while:
            top.append(self._assign("t", "pid * 0"))
            loop = Nested("while t < total", [*body, self._assign("t", "t + 1")])
        elif variable == "t":
            loop = Nested("for t in range(0, total)", body)
        else:
            loop = Nested("for t in range(0, total * 2, 2)", body)
        program.statements = [*top, loop]
        if rng.random() < 0.1:
            program.counts["used behind the loop"] += 1
            program.arrays.append(Array("behind", "int32", 1))
            program.statements.append(self._store("behind", "pid", "tile", "pid >= 0"))

    def _counter(self) -> tuple[list[Statement], list[Statement], str, list[Statement]]:
        """Statements before the loop, at the start of the body, the count, and at its end."""
        rng = self.rng
        if self.counter == "top":
            first = rng.choice(("0 - 1", "0 - 1", "n - 1"))
            wraps = rng.choice(("ki == n - 1", "ki + 1 == n", "n - 1 == ki"))
            text = f"tl.where({wraps}, 0, ki + 1)"
            return [self._assign("ki", first)], [self._assign("ki", text)], "ki", []
        if self.counter == "bottom":
            text = rng.choice(
                ("tl.where(ki == n - 1, 0, ki + 1)", "tl.where(ki + 1 != n, ki + 1, 0)")
            )
            return [self._assign("ki", "pid * 0")], [], "ki", [self._assign("ki", text)]
        if self.counter == "add first":
            wrap = self._if("ki == n", [self._assign("ki", "0")], [])
            if rng.random() < 0.5:
                start, added = self._assign("ki", "pid * 0"), self._assign("ki", "ki + 1")
                return [start], [], "ki", [added, wrap]
            return [self._assign("ki", "0 - 1")], [self._assign("ki", "ki + 1"), wrap], "ki", []
        if self.counter == "wrap first":
            first = rng.choice(("n", "n", "n * 0"))
            wrap = self._if("ki == n", [self._assign("ki", "0")], [])
            return [self._assign("ki", first)], [wrap], "ki", [self._assign("ki", "ki + 1")]
        if self.counter == "at least":
            text = rng.choice(
                ("tl.where(ki + 1 < n, ki + 1, 0)", "tl.where(ki >= n - 1, 0, ki + 1)")
            )
            return [self._assign("ki", "pid * 0")], [], "ki", [self._assign("ki", text)]
        if self.counter == "carried remainder":
            text = "(ki + 1) % n"
            if rng.random() < 0.5:
                return [self._assign("ki", "pid * 0")], [], "ki", [self._assign("ki", text)]
            first = rng.choice(("n - 1", "0 - 1"))
            return [self._assign("ki", first)], [self._assign("ki", text)], "ki", []
        if self.counter == "flag":
            return self._flag()
        if self.counter in ("up", "down"):
            # The bound need not be a multiple of the step.
            step, less = self.step, rng.choice((0, 0, 1))
            if self.counter == "up":
                begin, distance = "pid * 0", "at"
                self.lasts = [f"at + {step} >= long", f"at >= long - {step}"]
                text = f"tl.where({rng.choice(self.lasts)}, 0, at + {step})"
            else:
                begin, distance = "long", "(long - at)"
                self.lasts = [f"at - {step} <= 0", f"at <= {step}"]
                text = f"tl.where({rng.choice(self.lasts)}, long, at - {step})"
            before = [self._assign("long", f"n * {step} - {less}"), self._assign("at", begin)]
            count = self._assign("ki", f"{distance} // {step}")
            return [*before], [count], "ki", [self._assign("at", text)]
        return [], [self._assign("ki", "t % n")], "ki", []

    def _flag(self) -> tuple[list[Statement], list[Statement], str, list[Statement]]:
        """The loop carries if its iteration is a tile's last one. Some first flags are others."""
        rng = self.rng
        self.lasts = ["last"]
        first, test = rng.choice(
            (("n == 1", "ki == n - 1"), ("1 == n", "ki + 1 == n"), ("n <= 1", "ki + 1 >= n"),
             ("n < 2", "n <= ki + 1"), ("pid < 0", "ki == n - 1"), ("n <= 1", "ki >= n - 1"))
        )  # fmt: skip
        start: list[Statement] = [
            self._assign("ki", "pid * 0"), self._assign("last", first, "int1")
        ]  # fmt: skip
        count = self._assign("ki", "tl.where(last, 0, ki + 1)")
        after: list[Statement] = [count, self._assign("last", test, "int1")]
        if rng.random() < 0.4:
            ends = [self._assign("ki", "0"), self._assign("last", first, "int1")]
            goes_on = [self._assign("ki", "ki + 1"), self._assign("last", test, "int1")]
            after = [self._if("last", list(ends), list(goes_on))]
        return start, [], "ki", after

    def _share(self, programs: int) -> None:
        """A program does every so many tiles of a launch, from its own number on."""
        self.program.counts["a share of tiles"] += 1
        self.first, self.advance = f"pid - {programs}", programs
        if self.rng.random() < 0.5:
            text = f"(work - pid + {programs - 1}) // {programs}"
            self.share = [self._assign("tiles", text)]
            return
        more: list[Statement] = [self._assign("tiles", "tiles + 1")]
        self.share = [
            self._assign("tiles", f"work // {programs}"),
            self._if(f"pid < work % {programs}", more, []),
        ]

    def _open(self, shape: tuple[int, ...], zeros: str) -> list[Statement]:
        rng = self.rng
        tile = f"tile + {self.advance}"
        if self.counter == "quotient" and self.opens != "end":
            tile = f"{self.first} + {self.advance} + t // n * {self.advance}"
        opened: list[Statement] = [self._assign("tile", tile)]
        text = f"tile * {self.rows} + tl.arange(0, {self.rows})"
        opened.append(self._assign("offs", text, "int32", (self.rows,)))
        if self.opens == "reset":
            opened.append(self._assign("acc", zeros, self.type, shape))
        if rng.random() < 0.2 and self.opens != "end":
            mask = f"(offs >= 0) & (offs < {self.rows * _MOST_TILES})"
            width = self.depth * _MOST_STEPS
            text = f"tl.load(a + offs * {width}, mask={mask}, other=0)"
            bias = f"{text}.to(tl.{self.type})"
            bias = f"{zeros} + {bias}[:, None]" if self.has_dot else bias
            opened.append(self._assign("acc", bias, self.type, shape))
            self.program.counts["loads when it opens"] += 1
        return opened

    def _compute(self, count: str, shape: tuple[int, ...], width: int) -> list[Statement]:
        rows, columns, depth = self.rows, self.columns, self.depth
        kind = "float16" if self.has_dot else "int32"
        inside = f"({count} >= 0) & ({count} < {_MOST_STEPS})"
        mask = f"(offs >= 0)[:, None] & (offs < {rows * _MOST_TILES})[:, None] & ({inside})"
        along = f"({count} * {depth} + tl.arange(0, {depth}))"
        pointers = "p" if self.moves_pointers and self.opens != "end" else (
            f"a + offs[:, None] * {width} + {along}[None, :]")  # fmt: skip
        body: list[Statement] = [
            self._assign("x", f"tl.load({pointers}, mask={mask}, other=0)", kind, (rows, depth))
        ]
        if not self.has_dot:
            body.append(self._assign("acc", "acc + tl.sum(x, 1)", "int32", shape))
            return body
        other = f"b + {along}[:, None] * {columns} + tl.arange(0, {columns})[None, :]"
        y_mask = f"({along} >= 0)[:, None] & ({along} < {width})[:, None]"
        text = f"tl.load({other}, mask={y_mask}, other=0.0)"
        body.append(self._assign("y", text, kind, (depth, columns)))
        body.append(self._assign("acc", "tl.dot(x, y, acc)", self.type, shape))
        return body

    def _close(
        self, count: str, shape: tuple[int, ...], zeros: str, opened: list[Statement]
    ) -> list[Statement]:
        rng, rows, columns = self.rng, self.rows, self.columns
        size = _MOST_TILES * rows * columns
        self.program.arrays.append(Array("out", self.type, size))
        mask = f"(offs >= 0) & (offs < {rows * _MOST_TILES})"
        place = f"pid * {size} + offs"
        if self.has_dot:
            mask = f"({mask})[:, None]"
            place = f"pid * {size} + offs[:, None] * {columns} + tl.arange(0, {columns})[None, :]"
        closing: list[Statement] = [self._store("out", place, "acc", mask)]
        if rng.random() < 0.2:
            self.program.arrays.append(Array("more", self.type, size))
            closing.append(self._store("more", place, "acc * 2", mask))
            self.program.counts["two stores"] += 1
        if self.opens != "reset" and rng.random() < 0.9:
            closing.append(self._assign("acc", zeros, self.type, shape))
        else:
            self.program.counts["not reset when it closes"] += 1
        closing += opened
        lasts = [f"{count} == n - 1", f"n - 1 == {count}", f"{count} + 1 == n"]
        if self.counter == "at least":
            lasts += [f"{count} + 1 >= n", f"{count} >= n - 1"]
        if self.counter in ("remainder", "quotient"):
            lasts.append("(t + 1) % n == 0")
        if self.counter in ("up", "down", "flag"):
            lasts = self.lasts
        last = rng.choice(lasts)
        closed: list[Statement] = [self._if(last, closing, [])]
        chance = rng.random()
        if chance < 0.08:
            self.program.arrays.append(Array("each", "int32", rows))
            first = "acc[:, None]" if not self.has_dot else "acc"
            value = f"tl.max({first}, 1).to(tl.int32)"
            text = f"pid * {rows} + tl.arange(0, {rows})"
            closed.insert(0, self._store("each", text, value, "pid >= 0"))
            self.program.counts["stores in each iteration"] += 1
        elif chance < 0.16:
            self.program.arrays.append(Array("sum", self.type, rows * columns))
            index = f"tl.arange(0, {rows})"
            if self.has_dot:
                index = f"{index}[:, None] * {columns} + tl.arange(0, {columns})[None, :]"
            place = f"pid * {rows * columns} + {index}"
            closed.append(self._if(last, [self._store("sum", place, "acc", "pid >= 0")], []))
            self.program.counts["two conditionals that close"] += 1
        return closed


__all__ = ["generate_flat"]
