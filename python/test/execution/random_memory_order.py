# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of loads and stores that meet in memory, and what NumPy makes of them.

A program is a list of statements on three arrays, of which the first two may be one array or
overlap. Each statement is both a line of the language and a step of NumPy, which has the whole
tile loaded before the next statement begins.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from execution.running import make_kernel, numpy_dtype

SIZE = 1024  # elements of an array
Tile = np.ndarray
Step = Callable[["Machine"], None]


@dataclasses.dataclass
class Machine:
    """The memory and the variables of a program that NumPy runs."""

    arrays: dict[str, np.ndarray]
    i: Tile
    values: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Program:
    seed: int
    source: str
    dtype: str
    shape: tuple[int, ...]
    steps: list[Step]
    outputs: int
    b_begins: int | None  # in elements of a: b is an array of its own, or a from there on

    def make_arrays(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        dtype = numpy_dtype(self.dtype)
        draw = lambda: rng.integers(-99, 99, SIZE).astype(dtype)  # noqa: E731
        arrays = {"a": draw(), "b": draw()}
        if self.b_begins is not None:
            arrays["b"] = arrays["a"][self.b_begins :]
        count = int(np.prod(self.shape))
        arrays["o"] = np.full(self.outputs * count + 64, 77, dtype)
        return arrays

    def want(self) -> dict[str, np.ndarray]:
        arrays = self.make_arrays()
        i = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        machine = Machine(arrays, i)
        with np.errstate(over="ignore"):
            for step in self.steps:
                step(machine)
        return arrays

    def check(self, run: Any) -> None:
        arrays, want = self.make_arrays(), self.want()
        run(make_kernel(self.source), (1,), arrays["a"], arrays["b"], arrays["o"], 2)
        for name, got in arrays.items():
            wrong = np.flatnonzero(got != want[name])
            assert not wrong.size, (
                f"seed {self.seed}: {name}[{wrong[:8]}] is {got[wrong[:8]]}, "
                f"wanted {want[name][wrong[:8]]}\n{self.source}"
            )


class Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.lines: list[str] = []
        self.steps: list[Step] = []
        self.values: list[str] = []
        self.dtype = self.rng.choice(["int32"] * 4 + ["int8", "int16", "int64", "float32"])
        if self.rng.random() < 0.75:
            self.shape: tuple[int, ...] = (self.rng.choice([8, 16, 24, 32, 56, 64, 104, 128]),)
        else:
            self.shape = self.rng.choice([(4, 8), (8, 16), (16, 4), (2, 32), (4, 24), (8, 1)])
        self.count = int(np.prod(self.shape))
        self.numbers = iter(range(1000))

    # Places and masks: a text in i, and the same of NumPy's i.

    def place(self) -> tuple[str, Callable[[Tile], Tile]]:
        n = self.count
        shift = self.rng.choice([1, 1, 2, 3, 8, n // 2, n - 1, n])
        places: list[tuple[str, Callable[[Tile], Tile]]] = [
            ("i", lambda i: i),
            ("i", lambda i: i),
            (f"{n - 1} - i", lambda i: n - 1 - i),
            ("i * 2", lambda i: i * 2),
            (f"i + {shift}", lambda i: i + shift),
            (
                f"(i * 5 + 3) % {n}" if n % 5 else "i * 3",
                lambda i: (i * 5 + 3) % n if n % 5 else i * 3,
            ),
            ("(i ^ 1)", lambda i: i ^ 1),
            (f"i * 3 + {shift}", lambda i: i * 3 + shift),
        ]
        if len(self.shape) == 2:
            rows, columns = self.shape
            places.append((
                f"(i % {columns}) * {rows} + i // {columns}",
                lambda i: (i % columns) * rows + i // columns,
            ))  # fmt: skip
        return self.rng.choice(places)

    def mask(self) -> tuple[str, Callable[[Tile], Tile]] | None:
        cut = self.rng.randrange(self.count + 2)
        return self.rng.choice([
            None, None, None,
            (f"i < {cut}", lambda i: i < cut),
            (f"i >= {cut}", lambda i: i >= cut),
            ("i % 2 == 0", lambda i: i % 2 == 0),
            (f"i % 3 != {cut % 3}", lambda i: i % 3 != cut % 3),
        ])  # fmt: skip

    def array(self) -> tuple[str, int]:
        return self.rng.choice("ab"), self.rng.choice([0, 0, 0, 0, 1, 5, self.count // 2])

    # Statements.

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * (depth + 1) + line)

    def load(self, depth: int, steps: list[Step], into: str | None = None) -> None:
        name = into or f"v{next(self.numbers)}"
        array, base = self.array()
        text, place = self.place()
        mask = self.mask()
        other = self.rng.choice([None, -5])
        extra = f", mask={mask[0]}" if mask else ""
        extra += f", other={other}" if mask and other else ""
        self.emit(depth, f"{name} = tl.load({array} + {base} + {text}{extra})")

        def step(machine: Machine) -> None:
            where = base + place(machine.i)
            tile = machine.arrays[array][where]
            if mask:
                tile = np.where(mask[1](machine.i), tile, np.array(other or 0, tile.dtype))
            machine.values[name] = tile

        steps.append(step)
        if not into:
            self.values.append(name)

    def expression(self) -> tuple[str, Callable[[Machine], Tile]]:
        dtype = numpy_dtype(self.dtype)
        c = self.rng.randrange(1, 99)
        cast = f".to(tl.{self.dtype})"
        choices: list[tuple[str, Callable[[Machine], Tile]]] = [
            (f"(i + {c}){cast}", lambda m: (m.i + c).astype(dtype))
        ]
        if self.values:
            v, w = self.rng.choice(self.values), self.rng.choice(self.values)
            last = len(self.shape) - 1
            choices += [
                (v, lambda m: m.values[v]),
                (f"{v} + {c}", lambda m: m.values[v] + dtype.type(c)),
                (f"{v} + {w} * 3", lambda m: m.values[v] + m.values[w] * dtype.type(3)),
                (f"tl.where(i % 2 == 0, {v}, {w})", lambda m: np.where(m.i % 2 == 0, m.values[v], m.values[w])),
                (f"tl.flip({v}, {last})", lambda m: np.flip(m.values[v], last)),
                (
                    f"(i + tl.max({v}, {last}, keep_dims=True)){cast}",
                    lambda m: (m.i + m.values[v].max(last, keepdims=True)).astype(dtype),
                ),
            ]  # fmt: skip
            if self.count & (self.count - 1) == 0:
                half = self.count // 2
                choices.append((
                    f"tl.reshape(tl.trans(tl.reshape({v}, (2, {half}))), {self.shape})",
                    lambda m: m.values[v].reshape(2, half).T.reshape(self.shape),
                ))  # fmt: skip
            if self.dtype == "int32":
                choices += [
                    (f"tl.cumsum({v}, {last})", lambda m: np.cumsum(m.values[v], last, dtype=dtype)),
                    (f"(tl.sum({v}, {last}, keep_dims=True) + i)", lambda m: m.values[v].sum(last, keepdims=True, dtype=dtype) + m.i.astype(dtype)),
                ]  # fmt: skip
        return self.rng.choice(choices)

    def store(self, depth: int, steps: list[Step]) -> None:
        array, base = self.array()
        text, place = self.place()
        mask = self.mask()
        value, compute = self.expression()
        extra = f", mask={mask[0]}" if mask else ""
        self.emit(depth, f"tl.store({array} + {base} + {text}, {value}{extra})")

        def step(machine: Machine) -> None:
            where = base + place(machine.i)
            tile = np.broadcast_to(compute(machine), machine.i.shape)
            on = mask[1](machine.i) if mask else np.ones_like(where, bool)
            machine.arrays[array][where[on]] = tile[on]

        steps.append(step)

    def scalar(self, depth: int, steps: list[Step]) -> None:
        """A scalar that is loaded and stored elsewhere."""
        (source, at), (target, to) = self.array(), self.array()
        name = f"s{next(self.numbers)}"
        self.emit(depth, f"{name} = tl.load({source} + {at})")
        self.emit(depth, f"tl.store({target} + {to + 2}, {name} + 1)")

        def step(machine: Machine) -> None:
            one = machine.arrays[target].dtype.type(1)
            machine.arrays[target][to + 2] = machine.arrays[source][at] + one

        steps.append(step)

    def update(self, depth: int, steps: list[Step]) -> None:
        """An atomic addition of elements."""
        array, base = self.array()
        text, place = self.place()
        value, compute = self.expression()
        self.emit(depth, f"tl.atomic_add({array} + {base} + {text}, {value})")

        def step(machine: Machine) -> None:
            tile = np.broadcast_to(compute(machine), machine.i.shape)
            machine.arrays[array][base + place(machine.i)] += tile

        steps.append(step)

    def block(self, depth: int, steps: list[Step], count: int) -> None:
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.4:
                self.load(depth, steps)
            elif kind < 0.82:
                self.store(depth, steps)
            elif kind < 0.86:
                self.scalar(depth, steps)
            elif kind < 0.89 and self.dtype in ("int32", "int64", "float32"):
                self.update(depth, steps)
            elif depth == 0:
                self.nested(steps)

    def nested(self, steps: list[Step]) -> None:
        """A loop of two iterations, or a conditional; what it carries is loaded in it."""
        carried = f"v{next(self.numbers)}"
        self.emit(0, f"{carried} = (i * 0).to(tl.{self.dtype})")
        dtype = numpy_dtype(self.dtype)
        inner: list[Step] = []
        iterations = 2 if self.rng.random() < 0.7 else 1
        self.emit(0, "for k in range(n):" if iterations == 2 else "if n == 2:")
        outside = list(self.values)
        self.values.append(carried)
        if self.rng.random() < 0.5:
            self.block(1, inner, self.rng.randrange(1, 3))
            self.load(1, inner, carried)
        else:
            self.load(1, inner, carried)
            self.block(1, inner, self.rng.randrange(1, 3))
        self.values = [*outside, carried]

        def step(machine: Machine) -> None:
            machine.values[carried] = np.zeros(machine.i.shape, dtype)
            for _ in range(iterations):
                for one in inner:
                    one(machine)

        steps.append(step)

    def generate(self) -> Program:
        if len(self.shape) == 1:
            self.emit(0, f"i = tl.arange(0, {self.count})")
        else:
            rows, columns = self.shape
            self.emit(
                0,
                f"i = tl.arange(0, {rows})[:, None] * {columns} + tl.arange(0, {columns})[None, :]",
            )
        self.block(0, self.steps, self.rng.randrange(2, 8))
        for number, name in enumerate(self.values):
            self.emit(0, f"tl.store(o + {number * self.count} + i, {name})")
        values = list(self.values)

        def keep(machine: Machine) -> None:
            for number, name in enumerate(values):
                machine.arrays["o"][number * self.count + machine.i] = machine.values[name]

        self.steps.append(keep)
        b_begins = self.rng.choice([None, None, None, 0, 0, 1, 8, self.count // 2])
        source = "@tessera.jit\ndef kernel(a, b, o, n):\n" + "\n".join(self.lines) + "\n"
        return Program(
            self.seed, source, self.dtype, self.shape, self.steps, len(values), b_begins
        )  # fmt: skip


def generate(seed: int) -> Program:
    """The program of a seed."""
    return Generator(seed).generate()
