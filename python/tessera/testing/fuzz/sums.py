# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels about sums of dots, and about who does them.

A launch may have the blocks of a cluster divide a loop of dots, a block do several programs, or
programs begin in another order. Here the compiled code must give the same result in each case.
Loops carry accumulators whose shape changes (transposed, reshaped, permuted, split and joined);
their elements may return to their places or not. Inline assembly reads the machine's registers
before, in or behind the loop, in branches and functions. A plain launch defines some of them:
%ctaid.x is the program's id, and a cluster is one block. Others, such as %smid, have any value, and
the result must not depend on them.

Sums are of small multiples of 1/8, so that they are exact in any order.
"""

from __future__ import annotations

import random

from tessera.testing.fuzz.machine import DEFINED, MachineProgram, assembly
from tessera.testing.fuzz.program import (
    BOOL,
    Array,
    Assign,
    Expression,
    Nested,
    Program,
    Shape,
    Statement,
    Store,
    Value,
    offsets,
)

A, B = "{0}", "{1}"

# Registers of `DEFINED` that a kernel may ask for.
_REGISTERS = (
    "%ctaid.x", "%clusterid.x", "%nctaid.x", "%nclusterid.x",
    "%nctaid.y", "%cluster_ctarank", "%cluster_nctarank", "%cluster_nctaid.x",
)  # fmt: skip
# These are the same for all threads of a block, and anything.
_ANYTHING = ("%smid", "%nsmid", "%gridid")


def _read_register(register: str, pure: bool) -> str:
    """Assembly that reads a register: an int32."""
    return assembly(f"mov.u32 $0, {register};", "", 1, "int32", pure)


def _ask(register: str, pure: bool) -> str:
    """The same; 0 for a register with an unknown value."""
    read = _read_register(register, pure)
    return read if register in DEFINED else f"({read} < -7).to(tl.int32)"


def generate_sums(seed: int) -> Program:
    """The kernel about sums of a seed; the same one on every machine and for every target."""
    return _Generator(seed).program


class _Generator:
    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(f"sums {seed}")
        self.register = self.asking = ""
        if rng.random() < 0.65:
            self.asking = rng.choice(("before", "in", "behind", "behind", "branch", "place"))
            self.register = rng.choice((*_REGISTERS, "%ctaid.x", "%ctaid.x", *_ANYTHING))
        # Both sides of a branch give the same result, so its condition may differ in each block.
        if self.asking == "branch":
            self.register = rng.choice(("%smid", "%ctaid.x", "%cluster_ctarank"))
        if self.asking == "place":
            self.register = rng.choice(("%ctaid.x", "%clusterid.x"))
        # If a launch does not define the register, clusters that are asked for make no difference.
        asks_apart = self.register in DEFINED and self.asking != "branch"
        self.pure = rng.random() < 0.7
        behind = "+ tl.program_id(1)"
        read = f"tl.to_tensor({_ask(self.register, self.pure)}) {behind}"
        known = f"tl.to_tensor({self._known}) {behind}"
        programs, n = rng.choice((1, 2, 2, 3)), rng.randint(1, 6)
        self.program = MachineProgram(
            seed, programs, n, [], [], [], answers=(read, known),
            launches="divided" if asks_apart else "clusters",
        )  # fmt: skip
        large = rng.random() < 0.05
        self.rows = 128 if large else rng.choice((16, 16, 32, 32, 64))
        self.columns = 128 if large else rng.choice((self.rows, 16, 32))
        self.depth = 64 if large else rng.choice((16, 32))
        # Longer for later programs, now and then.
        self.grows = rng.random() < (0.3 if asks_apart else 0.1)
        self.names = 0
        self.body = self.program.statements
        self._loop()

    # --- Asking ----------------------------------------------------------------------------

    @property
    def _known(self) -> str:
        """The number in the register as the language gives it; 0 for registers with anything."""
        return DEFINED.get(self.register, "0")

    def _seen(self) -> Expression:
        """The value of a machine's register, written in the language for other targets."""
        name = "asks(pid)" if self.rng.random() < 0.15 else ""
        read = name or _ask(self.register, self.pure)
        template = name or f"(tl.to_tensor({self._known}).to(tl.int32) + pid * 0)"
        return Expression(template, "int32", (), (), frozenset(), read)

    def _ask_here(self, body: list[Statement]) -> Value:
        seen = Value(self._name(), "int32", ())
        body.append(Assign(seen, self._seen()))
        return seen

    def _read(self, value: Value) -> Expression:
        return Expression(value.name, value.dtype, value.shape, (), frozenset([value.name]))

    def _name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    # --- The loop --------------------------------------------------------------------------

    def _loop(self) -> None:
        rng, rows, columns, depth = self.rng, self.rows, self.columns, self.depth
        most = self.program.iterations + (self.program.programs if self.grows else 0)
        a = Array("a", "float16", rows * depth * most, "dyadic")
        b = Array("b", "float16", depth * columns * most, "dyadic")
        self.program.arrays += [a, b]
        added: list[Statement] = []
        seen = self._ask_here(self.body) if self.asking == "before" else None
        body: list[Statement] = []
        counter = "k0"
        if self.asking == "in":
            seen = self._ask_here(body)
        x, y = Value(self._name(), "float16", (rows, depth)), Value(
            self._name(), "float16", (depth, columns)
        )  # fmt: skip
        along = f"({counter} * {depth} + tl.arange(0, {depth}))"
        first = f"a + pid * {a.size} + tl.arange(0, {rows})[:, None] * {depth * most} + {along}[None, :]"
        second = (
            f"b + pid * {b.size} + {along}[:, None] * {columns} + tl.arange(0, {columns})[None, :]"
        )
        used = frozenset([counter])
        body.append(Assign(x, Expression(f"tl.load({first})", "float16", x.shape, (), used)))
        body.append(Assign(y, Expression(f"tl.load({second})", "float16", y.shape, (), used)))
        if self.asking == "in" and seen:
            moved = Expression(
                f"({A} * ({B} >= 0).to(tl.float16))", "float16", x.shape,
                (self._read(x), self._read(seen)),
            )  # fmt: skip
            body.append(Assign(x, moved))
        sums = []
        for _ in range(rng.choice((1, 1, 1, 2))):
            sums.append(self._accumulator(body, x, y))
        end = "n + pid" if self.grows else "n"
        loop = Nested(f"for {counter} in range(0, {end})", body)
        if rng.random() < 0.2:
            loop.header = f"for {counter} in tl.range(0, {end}, num_stages={rng.choice((1, 2, 3))})"
        self.body.append(loop)
        self.body += added
        if self.asking in ("behind", "place"):
            seen = self._ask_here(self.body)
        for number, total in enumerate(sums):
            self._results(total, seen, last=number + 1 == len(sums))

    def _accumulator(self, body: list[Statement], x: Value, y: Value) -> Value:
        """A tile that a loop carries, and what an iteration does with it."""
        rng = self.rng
        shape = (self.rows, self.columns)
        total = Value(self._name(), "float32", shape)
        start = rng.choice(("0.0", "0.0", "0.0", "1.0", "-2.5"))
        first = Expression(f"tl.full({shape}, {start}, tl.float32)", "float32", shape)
        if start != "0.0":
            lane = f"({offsets(shape)} % 7).to(tl.float32)"
            first = Expression(
                f"(tl.full({shape}, {start}, tl.float32) + {lane})", "float32", shape
            )
        self.body.append(Assign(total, first))
        value = self._read(total)
        before = [self._move() for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
        after = [self._move() for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
        if rng.random() < 0.5:
            after = [(there, back) for back, there in reversed(before)]
        for there, _ in before:
            value = Expression(there, "float32", shape, (value,))
        dot = f"tl.dot({A}, {B}, {{2}})" if rng.random() < 0.7 else f"({{2}} + tl.dot({A}, {B}))"
        operands = (self._read(x), self._read(y), value)
        value = Expression(dot, "float32", shape, operands)
        if rng.random() < 0.1:
            value = Expression(dot, "float32", shape, (*operands[:2], value))
        if rng.random() < 0.08:
            value = Expression(f"({A} * -1.0)", "float32", shape, (value,))
        for there, _ in after:
            value = Expression(there, "float32", shape, (value,))
        if rng.random() < 0.06:
            # The carried value itself is needed, too.
            value = Expression(f"({A} + {B} * 0.0)", "float32", shape, (value, self._read(total)))
        body.append(Assign(total, value))
        return total

    def _move(self) -> tuple[str, str]:
        """A move of a tile's elements to other places, and its inverse."""
        m, n = self.rows, self.columns
        shape = f"({m}, {n})"
        moves = [
            (f"tl.reshape(tl.trans({A}), {shape})", f"tl.trans(tl.reshape({A}, ({n}, {m})))"),
            (
                f"tl.reshape(tl.permute(tl.reshape({A}, (2, {m // 2}, {n})), (1, 0, 2)), {shape})",
                f"tl.reshape(tl.permute(tl.reshape({A}, ({m // 2}, 2, {n})), (1, 0, 2)), {shape})",
            ),
            (
                f"tl.reshape(tl.permute(tl.reshape({A}, (4, {m // 4}, {n})), (1, 2, 0)), {shape})",
                f"tl.reshape(tl.permute(tl.reshape({A}, ({m // 4}, {n}, 4)), (2, 0, 1)), {shape})",
            ),
            (f"tl.reshape(tl.reshape({A}, ({n}, {m})), {shape})", A),
            (f"tl.reshape({A}[:, None, :], {shape})", A),
        ]
        pair = f"tl.split(tl.reshape({A}, ({m}, {n // 2}, 2)))"
        for one, other in ((0, 1), (1, 0)):
            joined = f"tl.reshape(tl.join({pair}[{one}], {pair}[{other}]), {shape})"
            moves.append((joined, joined))
        if m == n:
            moves += [(f"tl.trans({A})", f"tl.trans({A})")] * 4
        return self.rng.choice(moves)

    # --- What becomes of it -----------------------------------------------------------------

    def _results(self, total: Value, seen: Value | None, last: bool) -> None:
        rng, (rows, columns) = self.rng, total.shape
        number = len(self.program.arrays)
        name = f"out{number}"
        self.program.arrays.append(Array(name, "float32", rows * columns))
        place, names = "pid", frozenset([total.name])
        if seen and self.asking == "place":
            place, names = seen.name, names | {seen.name}
        text = f"tl.store({name} + {place} * {rows * columns} + {offsets(total.shape)}, {A})"
        self.body.append(
            Store(name, Expression(text, "void", (), (self._read(total),), names))
        )  # fmt: skip
        if seen and self.asking != "in":
            self._store_number(seen)
        if not last or self.asking != "branch":
            return
        reduced = Array(f"out{len(self.program.arrays)}", "float32", columns)
        self.program.arrays.append(reduced)
        # One way meets more often than the other.
        alike = (
            f"tl.sum(tl.trans({A}), 1)",
            f"tl.sum(tl.sum(tl.reshape({A}, (2, {rows // 2}, {columns})), 0), 0)",
            f"(tl.sum({A}, 0) + (tl.max(tl.max({A}, 1), 0) > 1e30).to(tl.float32))",
        )
        branch = Nested("if", [], Expression(f"({A} % 2 == 0)", BOOL, (), (self._bit(),)))
        where = f"{reduced.name} + pid * {columns} + tl.arange(0, {columns})"
        for body, value in (
            (branch.body, f"tl.sum({A}, 0)"),
            (branch.otherwise, rng.choice(alike)),
        ):
            made = Expression(value, "float32", (columns,), (self._read(total),))
            body.append(
                Store(reduced.name, Expression(f"tl.store({where}, {A})", "void", (), (made,)))
            )
        self.body.append(branch)

    def _bit(self) -> Expression:
        """The condition of a branch: any value."""
        read = _read_register(self.register, self.pure)
        return Expression("pid", "int32", (), (), frozenset(), read)

    def _store_number(self, seen: Value) -> None:
        name = f"out{len(self.program.arrays)}"
        self.program.arrays.append(Array(name, "int32", 1))
        made = Expression(f"tl.store({name} + pid, {A})", "void", (), (self._read(seen),))
        self.body.append(Store(name, made))


__all__ = ["generate_sums"]
