# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that read their block, SM or cluster, or a clock, from special registers.

A launch may run programs in another order, several programs in one block, or one program in the
blocks of a cluster. If a kernel reads special registers, it can observe that, so the compiler must
find each such read. The kernels read them by inline assembly before, in and behind loops of dots,
and in loops, branches and functions of its own. The assembly may have results of two registers,
tiles as operands, and text around it. Its result is stored, or is a row to store to, a bound of a
loop, a mask, or a condition.

For a launch without clusters the language defines most results: %ctaid.x is the program's id.
Others (%smid, clocks) are arbitrary, and the kernels here do not depend on them. Kernels that only
compute in assembly, or have none, may be divided, so half of the loops are long enough for that.
`launches="chosen"` simulates GPUs with few SMs and with many, on which a launch divides.

Sums are of small multiples of 1/8, so that they are exact in any order.
"""

from __future__ import annotations

import dataclasses
import random
import re

from tessera.testing.fuzz.grids import choose_grid
from tessera.testing.fuzz.program import (
    Array,
    Assign,
    Expression,
    Nested,
    Program,
    Statement,
    Store,
    Value,
    offsets,
)

_AXES = tuple(enumerate("xyz"))

# Special registers in a launch without clusters: how the language gives the same number.
DEFINED = {
    **{f"%ctaid.{axis}": f"tl.program_id({i})" for i, axis in _AXES},
    **{f"%clusterid.{axis}": f"tl.program_id({i})" for i, axis in _AXES},
    **{f"%nctaid.{axis}": f"tl.num_programs({i})" for i, axis in _AXES},
    **{f"%nclusterid.{axis}": f"tl.num_programs({i})" for i, axis in _AXES},
    **{f"%cluster_ctaid.{axis}": "0" for _, axis in _AXES},
    **{f"%cluster_nctaid.{axis}": "1" for _, axis in _AXES},
    "%cluster_ctarank": "0",
    "%cluster_nctarank": "1",
}
# Anything. The first three, and `smid`, are the same for all threads of a block.
_ANYTHING = ("%smid", "%nsmid", "%gridid", "%globaltimer", "smid", "globaltimer")
# Assembly that sees nothing: for the operand `pid`, and what it computes.
_HARMLESS = {
    "add.s32 $0, $1, 7;": "(pid + 7)",
    "{{ .reg .s32 t; mul.lo.s32 t, $1, 3; add.s32 $0, t, 1; }}": "(pid * 3 + 1)",
    "max.s32 $0, $1, 2;": "tl.maximum(pid, 2)",
}
_PLACES = ("before", "in", "between", "behind", "own loop", "while", "branch", "outer", "function")
_USES = ("number", "number", "place", "bound", "mask", "scale", "condition")


@dataclasses.dataclass
class MachineProgram(Program):
    """A program with a function `asks`: its result on a GPU, and in the language."""

    answers: tuple[str, str] = ("", "")

    def source(self, gpu: bool = False) -> str:
        """The text of the function `kernel`, behind that of what it calls."""
        text = super().source(gpu)
        if "asks(" not in text:
            return text
        answer = self.answers[not gpu].replace("{{", "{").replace("}}", "}")
        return f"@tessera.jit(noinline=True)\ndef asks(pid):\n    return {answer}\n\n\n{text}"


def generate_machine(seed: int) -> Program:
    """The kernel of a seed; the same one on every machine and for every target."""
    return _Generator(seed).program


def assembly(text: str, operands: str, results: int, dtype: str, pure: bool) -> str:
    """An expression of inline assembly: the value of one result, or a tuple of several."""
    constraints = ",".join(["=l" if dtype == "int64" else "=r"] * results + ["r"] * bool(operands))
    types = f"tl.{dtype}" if results == 1 else f"({', '.join([f'tl.{dtype}'] * results)})"
    return (
        f'tl.inline_asm_elementwise("{text}", "{constraints}", [{operands}], dtype={types}, '
        f"is_pure={pure}, pack=1)"
    )


class _Generator:
    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(f"machine {seed}")
        # Drawn apart, so that the other kernels stay those of their seeds.
        self.is_divisible = random.Random(f"machine divisible {seed}").random() < 0.1
        # A program of a large tile fills an SM, and its kernel may be persistent.
        size = 128 if self.is_divisible else rng.choice((16, 16, 64, 64, 128))
        most = 2 if self.is_divisible else 3 if size == 128 else 4
        grid, programs = choose_grid(rng, most=most, empty=False)
        self.is_long = self.is_divisible or (size < 128 and rng.random() < 0.5)
        most = 2 if size == 128 else 5
        long = (24, 32) if self.is_divisible else (32, 48, 64)
        iterations = rng.choice(long) if self.is_long else rng.randint(1, most)
        self.program = MachineProgram(
            seed, programs, iterations, [], [], [], launches="chosen", grid=grid
        )
        self.program.options = {"num_warps": rng.choice((1, 2, 4, 4, 8)) if size == 16 else 4}
        self.rows = rng.choice((16, 32)) if size == 16 else size
        self.columns = rng.choice({16: (16, 32), 64: (16, 32, 64), 128: (128,)}[size])
        self.depth = rng.choice((16, 32, 64) if size == 64 and not self.is_long else (16, 32))
        if self.is_divisible:
            # Half of the tile is enough for wgmma, and its loop worth dividing.
            self._count("large tiles of a long loop")
            self.program.options["num_warps"] = rng.choice((4, 8))
            self.rows, self.columns = rng.choice(((128, 64), (128, 128), (64, 128)))
            self.depth = 32
        self.pure = rng.random() < 0.6
        self.names = 0
        self.body = self.program.statements
        self.asks: list[tuple[str, str]] = []  # (where, how its answer is used)
        kind = rng.random()
        asks = kind > (0.6 if size == 128 and not self.is_divisible else 0.25)
        self._count("asks" if asks else "asks nothing")
        for _ in range(rng.choice((1, 1, 1, 2, 3)) if asks else 0):
            places = ("before", "in", "behind", "function") if self.is_divisible else _PLACES
            self.asks.append((rng.choice(places), rng.choice(_USES)))
        self.grows = rng.random() < 0.15
        self.seen: list[tuple[Value, str]] = []
        self.place = "pid"
        self.bound = "n + pid" if self.grows else "n"
        self.header = ""
        self._kernel()

    def _count(self, what: str) -> None:
        self.program.counts[what] += 1

    def _name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def _expression(
        self, text: str, dtype: str, shape: tuple[int, ...] = (), assembly: str = ""
    ) -> Expression:
        # Braces belong to assembly, and there they are doubled.
        names = frozenset(re.findall(r"\b[vk]\d+\b", text + assembly)) | {"n"}
        return Expression(text, dtype, shape, (), names, assembly)

    def _assign(
        self,
        body: list[Statement],
        text: str,
        dtype: str,
        shape: tuple[int, ...] = (),
        assembly: str = "",
        name: str = "",
    ) -> Value:
        value = Value(name or self._name(), dtype, shape)
        body.append(Assign(value, self._expression(text, dtype, shape, assembly)))
        return value

    def _output(self, dtype: str, size: int) -> str:
        name = f"out{len(self.program.arrays)}"
        self.program.arrays.append(Array(name, dtype, size))
        return name

    # --- Asking ----------------------------------------------------------------------------

    def _question(self) -> tuple[str, str]:
        """An int32 scalar: in the language, and as the machine says it."""
        rng, pure = self.rng, self.pure
        kind = rng.random()
        if kind < 0.15:
            self._count("asks nothing, by assembly")
            text = rng.choice(list(_HARMLESS))
            return _HARMLESS[text], assembly(text, "pid", 1, "int32", pure)
        if kind < 0.35:
            what = rng.choice(_ANYTHING)
            self._count(f"asks {what}")
            if not what.startswith("%"):
                return "0", f"(tl.extra.cuda.{what}() < 0).to(tl.int32)"
            wide = what == "%globaltimer"
            move = f"mov.{'u64' if wide else 'u32'} $0, {what};"
            read = assembly(move, "", 1, "int64" if wide else "int32", pure)
            return "0", f"({read} < -7).to(tl.int32)"
        often = ("%ctaid.x", "%ctaid.x", "%ctaid.y", "%cluster_ctaid.x")
        register = rng.choice((*DEFINED, *often))
        self._count(f"asks {register}")
        known = f"tl.to_tensor({DEFINED[register]}).to(tl.int32)"
        form = rng.choice(("move", "move", "text", "operand", "pair", "tile"))
        if form == "text":
            text = f"{{{{ .reg .u32 t; mov.u32 t, {register}; mul.lo.u32 $0, t, 3; }}}}"
            return f"({known} * 3)", assembly(text, "", 1, "int32", pure)
        if form == "operand":
            text = f"{{{{ .reg .u32 t; mov.u32 t, {register}; add.u32 $0, $1, t; }}}}"
            return f"({known} + pid)", assembly(text, "pid", 1, "int32", pure)
        if form == "pair":
            other = rng.choice(list(DEFINED))
            text = f"mov.u32 $0, {other}; mov.u32 $1, {register};"
            return f"({known} + 0)", assembly(text, "", 2, "int32", pure) + "[1]"
        if form == "tile":
            text = f"{{{{ .reg .u32 t; mov.u32 t, {register}; add.u32 $0, $1, t; }}}}"
            tile = assembly(text, "tl.arange(0, 64)", 1, "int32", pure)
            return f"({known} + 63)", f"tl.max({tile}, 0)"
        return f"({known} + 0)", assembly(f"mov.u32 $0, {register};", "", 1, "int32", pure)

    def _ask(self, body: list[Statement], in_function: bool = False) -> Value:
        known, machine = self._question()
        if in_function and not self.program.answers[0]:
            self.program.answers = (machine, known)
            return self._assign(body, "asks(pid)", "int32")
        return self._assign(body, known, "int32", (), machine)

    def _answers(self, where: str, body: list[Statement]) -> list[tuple[Value, str]]:
        """Reads all special registers that are chosen for this place."""
        return [(self._ask(body), use) for place, use in self.asks if place == where]

    def _apart(self) -> None:
        """The questions before the loop of dots, in loops, branches and functions of their own."""
        for place, use in self.asks:
            body = self.body
            if place == "function":
                self.seen.append((self._ask(body, in_function=True), use))
            elif place == "own loop":
                total = self._assign(body, "tl.to_tensor(0).to(tl.int32)", "int32")
                counter = f"k{self.names}"
                inner: list[Statement] = []
                seen = self._ask(inner)
                text = f"{total.name} + {seen.name} * {counter}"
                inner.append(Assign(total, self._expression(text, "int32")))
                body.append(Nested(f"for {counter} in range(0, n)", inner))
                self.seen.append((total, use))
            elif place == "while":
                total = self._assign(body, "tl.to_tensor(0).to(tl.int32)", "int32")
                inner = []
                seen = self._ask(inner)
                step = f"{total.name} + 1 + ({seen.name} & 1)"
                inner.append(Assign(total, self._expression(step, "int32")))
                condition = self._expression(f"({total.name} < 5)", "int1")
                body.append(Nested("while", inner, condition))
                self.seen.append((total, use))
            elif place == "branch":
                total = self._assign(body, "tl.to_tensor(1).to(tl.int32)", "int32")
                inner = []
                seen = self._ask(inner)
                inner.append(Assign(total, self._expression(seen.name, "int32")))
                condition = self._expression("(pid % 2 == 0)", "int1")
                body.append(Nested("if", inner, condition))
                self.seen.append((total, use))
            else:
                continue
            self._count(f"in a {place}" if place != "own loop" else "in a loop of its own")

    # --- The kernel ------------------------------------------------------------------------

    def _kernel(self) -> None:
        rng = self.rng
        self._apart()
        for value, use in self.seen + self._answers("before", self.body):
            self.seen = [item for item in self.seen if item[0] is not value] + [(value, use)]
            if use == "place" and self.place == "pid":
                # The program's own row, computed from the value of a special register.
                where = f"(pid + ({value.name} - {value.name}) * 5)"
                self.place = self._assign(self.body, where, "int32").name
            elif use == "bound" and self.bound == "n":
                # One iteration more, in some programs.
                self.bound = self._assign(self.body, f"n + ({value.name} & 1)", "int32").name
        loops = 2 if any(place == "between" for place, _ in self.asks) else 1
        for number in range(loops):
            self._loop(self.body)
            if number == 0 and loops == 2:
                self.seen += self._answers("between", self.body)
        self.seen += self._answers("behind", self.body)
        if self.is_divisible:
            self._store_with_answers()
        for value, _ in self.seen if not self.is_divisible else ():
            out = self._output("int32", 1)
            text = f"tl.store({out} + pid, {value.name})"
            self.body.append(Store(out, self._expression(text, "void")))
        for place, use in self.asks:
            self._count(f"{place}, as a {use}")

    def _loop(self, top: list[Statement]) -> None:
        rng, rows, columns, depth = self.rng, self.rows, self.columns, self.depth
        most = self.program.iterations + 1 + (self.program.programs if self.grows else 0)
        names = [f"in{len(self.program.arrays) + i}" for i in (0, 1)]
        a = Array(names[0], "float16", rows * depth * most, "dyadic")
        b = Array(names[1], "float16", depth * columns * most, "dyadic")
        self.program.arrays += [a, b]
        shape = (rows, columns)
        total = self._assign(top, f"tl.zeros({shape}, tl.float32)", "float32", shape)
        outer = top
        has_outer = any(place == "outer" for place, _ in self.asks)
        if has_outer and not self.is_long:
            self._count("in an outer loop")
            outer = []
        counter = f"k{self.names}0"
        used: list[tuple[Value, str]] = []
        if outer is not top:
            used += self._answers("outer", outer)
        body: list[Statement] = []
        used += self._answers("in", body)
        along = f"({counter} * {depth} + tl.arange(0, {depth}))"
        first = (
            f"{a.name} + {self.place} * {a.size} + tl.arange(0, {rows})[:, None] * {depth * most}"
            f" + {along}[None, :]"
        )
        second = (
            f"{b.name} + {self.place} * {b.size} + {along}[:, None] * {columns} + "
            f"tl.arange(0, {columns})[None, :]"
        )
        mask = next((value.name for value, use in used + self.seen if use == "mask"), "")
        if mask:
            first += f", mask=(tl.arange(0, {rows}) < {rows // 2} + ({mask} & 7))[:, None], other=0"
        x = self._assign(body, f"tl.load({first})", "float16", (rows, depth))
        y = self._assign(body, f"tl.load({second})", "float16", (depth, columns))
        scale = next((value.name for value, use in used + self.seen if use == "scale"), "")
        if scale:
            text = f"{x.name} * (({scale} & 3) - 1).to(tl.float16)"
            x = self._assign(body, text, "float16", x.shape)
        dot = f"tl.dot({x.name}, {y.name}, {total.name})"
        if rng.random() < 0.3:
            dot = f"{total.name} + tl.dot({x.name}, {y.name})"
        add = Assign(total, self._expression(dot, "float32", shape))
        condition = next((value.name for value, use in used if use == "condition"), "")
        if condition:
            # The sum without this product, in some programs.
            chosen = self._expression(f"({condition} % 2 == 0)", "int1")
            body.append(Nested("if", [add], chosen))
        else:
            body.append(add)
        header = f"for {counter} in range(0, {self.bound})"
        if rng.random() < 0.2:
            stages = rng.choice((1, 2, 3))
            header = f"for {counter} in tl.range(0, {self.bound}, num_stages={stages})"
        outer.append(Nested(header, body))
        if outer is not top:
            top.append(Nested(f"for k{self.names}1 in range(0, 2)", outer))
        if self.is_divisible:
            self.total = total
        else:
            self._store(total)

    def _store_with_answers(self) -> None:
        """A tile with all answers in it, and no store of one element, which one block would do."""
        total = self.total
        for value, _ in self.seen:
            text = f"{total.name} + ({value.name} & 7).to(tl.float32)"
            total = self._assign(self.body, text, "float32", total.shape)
        self._store(total)

    def _store(self, total: Value) -> None:
        rng, (rows, columns) = self.rng, total.shape
        dtype = rng.choice(("float32", "float32", "float16"))
        out = self._output(dtype, rows * columns)
        value = total.name if dtype == "float32" else f"{total.name}.to(tl.float16)"
        where = f"{out} + {self.place} * {rows * columns} + {offsets(total.shape)}"
        text = f"tl.store({where}, {value})"
        self.body.append(Store(out, self._expression(text, "void")))
        asked = next((value.name for value, use in self.seen if use == "condition"), "")
        if not asked and rng.random() < 0.8:
            return
        reduced = self._output("float32", columns)
        where = f"{reduced} + {self.place} * {columns} + tl.arange(0, {columns})"
        condition = f"({asked or 'pid'} % 2 == 0)"
        branch = Nested("if", [], self._expression(condition, "int1"))
        for body, text in (
            (branch.body, f"tl.sum({total.name}, 0)"),
            (branch.otherwise, f"tl.max({total.name}, 0)"),
        ):
            text = f"tl.store({where}, {text})"
            body.append(Store(reduced, self._expression(text, "void")))
        self.body.append(branch)


__all__ = ["DEFINED", "MachineProgram", "assembly", "generate_machine"]
