# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels with loops of dots, which test prefetching on GPUs and dots in flight.

A loop has one to five dots. Their operands are loaded unchanged, or converted (8 bits, fp8, f32),
unpacked, scaled, gathered or transposed. They may be shared by two dots, results of earlier dots,
carried, or loaded before the loop. Loads have masks, pointers that the loop advances, and a stride
that is an argument. Results are accumulators, scaled accumulators, one number a row, or are stored
in the loop. All numbers are small integers, or halves of some, so that sums are exact in any order.

The schedule of such a kernel needs no machine code. The target `schedule:sm_90a` compiles without
it, counts the kinds of copies, and fails if the verifier refuses a planned schedule:

    python -m tessera.testing.fuzz --kind loops --target schedule:sm_80,schedule:sm_90a --count 20000

Run as a file, this module counts with the `tessera` on the path, so that two builds can be
compared:

    PYTHONPATH=other/python python python/tessera/testing/fuzz/loops.py --count 2000
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from tessera.testing.fuzz.program import (
    Array,
    Assign,
    Expression,
    Nested,
    Program,
    Statement,
    Store,
    Value,
    compile_source,
)

_WARPS = (4,) * 10 + (8,) * 7 + (1, 2, 16)
_STAGES = (1, 2, 2, 3, 3, 3, 4)
_EXTENTS = (16, 32, 64, 64, 128)
_LARGEST = 128 * 128  # elements of a tile
_MOST_EXACT = {"float16": 2048, "bfloat16": 256, "float32": 1024, "int8": 127}


class _Tile:
    """An operand: a variable, its extents, and the largest number in it."""

    def __init__(self, name: str, rows: int, columns: int, bound: float) -> None:
        self.name = name
        self.rows = rows
        self.columns = columns
        self.bound = bound


def generate_loops(seed: int) -> Program:
    """The kernel about loops of a seed; the same one on every machine and for every target."""
    return _Generator(seed).program


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"loops {seed}")
        # By the seed itself, so that seeds which once failed still have the kernels that did.
        self.adds_rows = seed % 11 in (7, 9)
        self.has_one_dot = seed % 11 in (1, 10)
        self.loads_directly = False
        rng = self.rng
        iterations = rng.choice((1, 2, 3, 3, 4, 5))
        self.program = Program(seed, rng.choice((1, 1, 2)), iterations, [], [], [])
        self.program.options = {
            "num_warps": rng.choice(_WARPS),
            "num_stages": rng.choice(_STAGES),
        }
        if rng.random() < 0.06:
            self.program.options["num_ctas"] = 2
        self.type = rng.choice(("float16",) * 7 + ("bfloat16",) * 2 + ("float32", "int8"))
        self.sum = "int32" if self.type == "int8" else "float32"
        self.precision = rng.choice(("", "", "tf32x3", "ieee")) if self.type == "float32" else ""
        self.names = 0
        self.top: list[Statement] = []
        self.program.statements = self.top
        for _ in range(2 if rng.random() < 0.15 else 1):
            self._loop()

    # --- Text --------------------------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share

    def _name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def _expression(
        self, text: str, dtype: str = "float32", shape: tuple[int, ...] = ()
    ) -> Expression:
        names = frozenset(re.findall(r"\b[a-z]+\d+\b", text)) | (
            {"n"} if re.search(r"\bn\b", text) else set()
        )
        return Expression(text, dtype, shape, (), frozenset(names))

    def _assign(
        self,
        body: list[Statement],
        prefix: str,
        text: str,
        dtype: str = "float32",
        shape: tuple[int, ...] = (),
    ) -> str:
        name = prefix if prefix[-1].isdigit() else self._name(prefix)
        body.append(Assign(Value(name, dtype, shape), self._expression(text, dtype, shape)))
        return name

    def _array(self, dtype: str, size: int, data: str) -> str:
        name = self._name("in" if data != "zeros" else "out")
        self.program.arrays.append(Array(name, dtype, size, data))
        return name

    # --- Loops --------------------------------------------------------------------------------

    def _loop(self) -> None:
        rng = self.rng
        self.counter = self._name("k")
        self.before: list[Statement] = []
        self.body: list[Statement] = []
        self.end: list[Statement] = []  # of an iteration
        self.behind: list[Statement] = []
        self.step = rng.choice((16, 32, 32, 64, 64, 128))
        self.tiles: list[_Tile] = []  # operands of the iteration
        self.invariant: list[_Tile] = []
        self.unused: list[_Tile] = []  # results that nothing uses yet
        self.stepped: Optional[str] = None
        self.places: Optional[tuple[str, str]] = None
        self.reused: list[tuple[str, int, int]] = []
        rows = rng.choice((64,) * 6 + (128,) * 4 + (32, 16))
        dots = 1 if self.has_one_dot else rng.choice((1, 2, 2, 2, 2, 3, 3, 4, 5))
        for number in range(dots):
            self._dot(rows, number)
        hints: tuple[int, ...] = (0, 0, 0, 2, 3, 4)
        if self.has_one_dot and self._chance(0.6):
            # If a loop has a number of stages, all its loads are copied ahead, not only those of
            # dots.
            hints = (2, 2, 3, 4)
            self._reduce_behind()
        self._finish()
        bound, header = "n", f"for {self.counter} in "
        hint = rng.choice(hints)
        more = f", num_stages={hint}" if hint else ""
        if self._chance(0.1):
            more += ", flatten=True" if self._chance(0.3) else ", warp_specialize=True"
        if self.stepped:
            bound = f"n * {self.step}"
            header += (
                f"tl.range(0, {bound}, {self.step}{more})"
                if more
                else f"range(0, {bound}, {self.step})"
            )
        else:
            header += f"tl.range(0, {bound}{more})" if more else f"range(0, {bound})"
        self.top += self.before
        self.top.append(Nested(header + "", self.body + self.end))
        self.top += self.behind

    def _first(self) -> str:
        """The first of the iteration's `step` places, as text."""
        if self.stepped is None:
            self.stepped = self.counter if self._chance(0.5) else ""
        return self.counter if self.stepped else f"({self.counter} * {self.step})"

    def _iteration(self) -> str:
        """The number of the iteration, as text."""
        if self.stepped is None:
            self.stepped = ""
        return f"({self.counter} // {self.step})" if self.stepped else self.counter

    # --- Loads --------------------------------------------------------------------------------

    def _stored(self) -> tuple[str, str, str]:
        """The type in memory, what is in it, and how it becomes an operand."""
        target = f"tl.{self.type}"
        if self.type == "int8":
            return "int8", "small", "{0}"
        if self.loads_directly:
            return self.type, "small", "{0}"
        ways = [(self.type, "small", "{0}")] * 6 + [
            ("int8", "small", f"{{0}}.to({target})"),
            ("uint8", "fp8", f"{{0}}.to(tl.float8e5, bitcast=True).to({target})"),
            ("int8", "small", f"((({{0}} << 5) >> 5) & 1).to({target})"),
            ("float32", "small", f"{{0}}.to({target})"),
            ("bfloat16", "small", f"{{0}}.to({target})"),
            ("float16", "small", f"{{0}}.to({target})"),
            (self.type, "small", f"({{0}} * 0.5).to({target})"),
            (self.type, "small", f"tl.maximum({{0}}, 0.0).to({target})"),
        ]
        return self.rng.choice(ways)

    def _load(self, rows: int, columns: int, in_loop: bool) -> _Tile:
        """A tile of an array of its own; in the loop another one in each iteration."""
        rng = self.rng
        dtype, data, converted = self._stored()
        body = self.body if in_loop else self.before
        # Rows may be the places that the loop goes through, or columns.
        along_rows = in_loop and rows == self.step
        along_columns = in_loop and not along_rows and columns == self.step
        whole = not along_rows and not along_columns
        iterations = self.program.iterations
        height = rows * iterations if along_rows or (in_loop and whole) else rows
        width = columns * iterations if along_columns else columns
        array = self._array(dtype, height * width, data)
        r, c = f"tl.arange(0, {rows})[:, None]", f"tl.arange(0, {columns})[None, :]"
        gathered = ""
        limit = ""
        if along_rows:
            r = f"({self._first()} + tl.arange(0, {rows}))[:, None]"
            if not self.loads_directly and self._chance(0.15):
                place, mask = self._gathered()
                r, gathered = f"{place}[:, None]", mask
            elif self._chance(0.4):
                limit = f"({r} < n * {rows} - {rng.choice((0, 1, 3, rows // 2))})"
        elif along_columns:
            c = f"({self._first()} + tl.arange(0, {columns}))[None, :]"
            if self._chance(0.4):
                limit = f"({c} < n * {columns} - {rng.choice((0, 1, 5))})"
        elif in_loop:
            r = f"({self._iteration()} * {rows} + tl.arange(0, {rows}))[:, None]"
        transposed = self._chance(0.25)
        stride = str(height if transposed else width)
        if self._chance(0.2):
            stride = self._name("m")
            self.program.scalars.append((stride, height if transposed else width))
        where = f"{c} * {stride} + {r}" if transposed else f"{r} * {stride} + {c}"
        start = f"{array} + pid * {height * width}"
        shape = (rows, columns)
        moves = (along_rows or along_columns) and not gathered and not limit
        if moves and not self.loads_directly and self._chance(0.25):
            # A pointer that moves on.
            first = where.replace(self._first(), "0")
            pointer = self._assign(self.before, "p", f"{start} + ({first})", "pointer", shape)
            far = f"{self.step} * {stride}" if along_rows != transposed else f"{self.step}"
            self._assign(self.end, pointer, f"{pointer} + {far}", "pointer", shape)
            text = pointer
        else:
            text = f"{start} + ({where})"
        mask = gathered or limit
        # The bits 60 of float8e5 are 1; the bits 1 would be 2^-16, whose products are not exact.
        one = ", other=60" if data == "fp8" else ", other=1"
        other = rng.choice(("", *(", other=0",) * 6, one)) if mask else ""
        if gathered and not other:
            other = ", other=0"
        masked = f", mask={mask}{other or ', other=0'}" if mask else ""
        if self._chance(0.04):
            masked += rng.choice((', cache_modifier=".cg"', ', eviction_policy="evict_first"'))
        name = self._assign(body, "x", f"tl.load({text}{masked})", dtype, shape)
        if converted != "{0}":
            name = self._assign(body, "x", converted.format(name), self.type, shape)
        bound = 2.0
        if self.loads_directly:
            self.tiles.append(tile := _Tile(name, rows, columns, bound))
            return tile
        if in_loop and along_rows and self.type != "int8" and self._chance(0.08):
            scales = self._array("float32", rows * iterations, "small")
            scale = self._assign(
                body, "r", f"tl.load({scales} + pid * {rows * iterations} + {self._first()} + tl.arange(0, {rows}))",
                "float32", (rows,),
            )  # fmt: skip
            name = self._assign(
                body,
                "x",
                f"({name}.to(tl.float32) * {scale}[:, None]).to(tl.{self.type})",
                self.type,
                shape,
            )
            bound = 4.0
        if in_loop and self._chance(0.05):
            other_tile = self._load(rows, columns, in_loop)
            bound += other_tile.bound
            name = self._assign(body, "x", f"{name} + {other_tile.name}", self.type, shape)
        tile = _Tile(name, rows, columns, bound)
        (self.tiles if in_loop else self.invariant).append(tile)
        return tile

    def _gathered(self) -> tuple[str, str]:
        """The rows that indices of the iteration name, and which of them there are."""
        if self.places and self._chance(0.8):
            return self.places
        total = self.step * self.program.iterations
        array = self._array("int32", total, f"places {total}")
        place = self._assign(
            self.body, "i", f"{self._first()} + tl.arange(0, {self.step})", "int32", (self.step,)
        )
        inside = self._assign(
            self.body,
            "b",
            f"{place} < n * {self.step} - {self.rng.choice((0, 0, 1, 7))}",
            "int1",
            (self.step,),
        )
        index = self._assign(
            self.body,
            "i",
            f"tl.load({array} + pid * {total} + {place}, mask={inside}, other=0)",
            "int32",
            (self.step,),
        )
        good = self._assign(self.body, "b", f"{inside} & ({index} >= 0)", "int1", (self.step,))
        if self._chance(0.5):
            index = self._assign(
                self.body, "i", f"tl.where({good}, {index}, 0)", "int32", (self.step,)
            )
        if self._chance(0.3):
            index = self._assign(self.body, "i", f"{index}.to(tl.int64)", "int64", (self.step,))
        self.places = (index, f"{good}[:, None]")
        return self.places

    # --- Dots ---------------------------------------------------------------------------------

    def _operand(self, rows: Optional[int], columns: Optional[int]) -> _Tile:
        """A tile with these extents, as far as they are given: one that there is, or a new one."""
        rng = self.rng

        def fits(r: int, c: int) -> bool:
            return rows in (None, r) and columns in (None, c)

        known = [tile for tile in self.tiles + self.invariant if fits(tile.rows, tile.columns)]
        turned = [tile for tile in self.tiles + self.invariant if fits(tile.columns, tile.rows)]
        kind = rng.random()
        if known and kind < 0.3:
            return rng.choice(known)
        if turned and kind < 0.65:
            tile = rng.choice(turned)
            name = f"tl.trans({tile.name})"
            if self._chance(0.3):
                body = self.body if tile in self.tiles else self.before
                name = self._assign(body, "x", name, self.type, (tile.columns, tile.rows))
            return _Tile(name, tile.columns, tile.rows, tile.bound)
        while True:
            r, c = rows or rng.choice(_EXTENTS + (self.step,) * 3), columns or rng.choice(
                _EXTENTS + (self.step,) * 3
            )
            if r * c <= _LARGEST:
                return self._load(r, c, in_loop=not self._chance(0.15))

    def _dot(self, rows: int, number: int) -> None:
        rng = self.rng
        results = [tile for tile in self.unused if tile.rows >= 16]
        y: Optional[_Tile] = None
        if self.has_one_dot and self._chance(0.7):
            # Both operands come from memory as they are, and so may the next iteration's slices.
            self.loads_directly = True
            x = self._load(rows, self.step, in_loop=True)
            y = self._load(self.step, rng.choice((16, 32, 64)), in_loop=True)
            self.loads_directly = False
        elif results and self._chance(0.6):
            # The result of a dot before, made an operand.
            x = self._narrow(rng.choice(results))
        elif number == 0 and self._chance(0.5):
            x = self._load(rows, rng.choice(_EXTENTS), in_loop=False)
        else:
            x = self._operand(rows if self._chance(0.8) else None, None)
        y = y or self._operand(x.columns, None)
        if y.bound * x.bound * x.columns > 2**18:
            return
        if x.rows * y.columns > _LARGEST:
            return
        shape = (x.rows, y.columns)
        bound = x.bound * y.bound * x.columns
        precision = f', input_precision="{self.precision}"' if self.precision else ""
        kind = rng.random()
        if kind < 0.45:
            acc = self._assign(
                self.before, "a", f"tl.zeros({shape}, tl.{self.sum})", self.sum, shape
            )
            source = acc
            if self.sum == "float32" and self._chance(0.3):
                scale = self._scale(x.rows)
                source = f"{acc} * {scale}[:, None]"
                if self._chance(0.5):
                    source = self._assign(self.body, "s", source, self.sum, shape)
            text = rng.choice((f"tl.dot({x.name}, {y.name}, {source}{precision})",
                               f"{source} + tl.dot({x.name}, {y.name}{precision})"))  # fmt: skip
            if self._chance(0.04):
                branch = Nested("if", [Assign(Value(acc, self.sum, shape), self._expression(text, self.sum, shape))],
                                self._expression(f"{self.counter} > 0", "int1"))  # fmt: skip
                self.body.append(branch)
            else:
                self._assign(self.body, acc, text, self.sum, shape)
            self._store(self.behind, acc, shape, self.sum)
            if self._chance(0.08):
                self.unused.append(_Tile(acc, *shape, bound * self.program.iterations))
            return
        name = self._assign(
            self.body, "d", f"tl.dot({x.name}, {y.name}{precision})", self.sum, shape
        )
        for _ in range(rng.choice((0, 0, 1, 2, 6)) if self.sum == "float32" else 0):
            text = rng.choice((
                f"tl.where({name} > 1.0, {name} - 1.0, {name} + 1.0)", f"tl.abs({name}) - 2.0",
                f"tl.floor({name} * 0.5)", f"tl.minimum({name}, 3.0)",
            ))  # fmt: skip
            name = self._assign(self.body, "d", text, self.sum, shape)
            bound += 8
        tile = _Tile(name, *shape, bound)
        self.unused.append(tile)
        if self._chance(0.25):
            self._reduce(tile)
        if self._chance(0.05):
            self._store_in_loop(tile)

    def _narrow(self, result: _Tile) -> _Tile:
        """A result as an operand: small again, and of the operands' type."""
        if result in self.unused:
            self.unused.remove(result)
        name, bound = result.name, result.bound
        shape = (result.rows, result.columns)
        if bound > min(64, _MOST_EXACT[self.type]) or self._chance(0.3):
            low, high = ("-2", "2") if self.sum == "int32" else ("-2.0", "2.0")
            name = f"tl.minimum(tl.maximum(tl.floor({name}), {low}), {high})" if self.sum != "int32" else (
                f"tl.minimum(tl.maximum({name}, {low}), {high})")  # fmt: skip
            bound = 2.0
        name = self._assign(self.body, "x", f"{name}.to(tl.{self.type})", self.type, shape)
        tile = _Tile(name, *shape, bound)
        self.tiles.append(tile)
        if self._chance(0.15):
            name = self._assign(self.body, "x", f"tl.trans({name})", self.type, shape[::-1])
            tile = _Tile(name, *shape[::-1], bound)
            self.tiles.append(tile)
        return tile

    def _scale(self, rows: int) -> str:
        """Powers of two for the rows of an accumulator."""
        results = [tile for tile in self.unused if tile.rows == rows]
        if results:
            tile = self.rng.choice(results)
            return self._assign(
                self.body,
                "r",
                f"tl.where(tl.max({tile.name}, 1) > 4.0, 0.5, 1.0)",
                "float32",
                (rows,),
            )
        if self._chance(0.5):
            array = self._array("float32", rows * self.program.iterations, "halves")
            index = self._iteration()
            return self._assign(
                self.body, "r", f"tl.load({array} + pid * {rows * self.program.iterations} + {index} * {rows} + tl.arange(0, {rows}))",
                "float32", (rows,),
            )  # fmt: skip
        return self._assign(
            self.body,
            "r",
            f"tl.where(tl.arange(0, {rows}) > {self.counter}, 0.5, 1.0)",
            "float32",
            (rows,),
        )

    def _reduce_behind(self) -> None:
        """A tile that is loaded behind the loop's dots, and that none of them multiplies."""
        self.program.counts["a tile loaded behind the dots"] += 1
        self.loads_directly = self._chance(0.7)
        tile = self._load(self.step, self.rng.choice((16, 32, 64)), in_loop=True)
        self.loads_directly = False
        if self.sum == "float32":
            shape = (tile.rows, tile.columns)
            wide = self._assign(self.body, "x", f"{tile.name}.to(tl.float32)", self.sum, shape)
            tile = _Tile(wide, *shape, tile.bound)
        self._reduce(tile)

    def _reduce(self, tile: _Tile) -> None:
        """Numbers of rows that the loop carries."""
        kind = self.rng.choice(("max", "sum"))
        start = "tl.zeros" if kind == "sum" else "tl.zeros"
        row = self._assign(
            self.before, "a", f"{start}(({tile.rows},), tl.{self.sum})", self.sum, (tile.rows,)
        )
        text = f"tl.{kind}({tile.name}, 1)"
        self._assign(
            self.body,
            row,
            f"{row} + {text}" if kind == "sum" else f"tl.maximum({row}, {text})",
            self.sum,
            (tile.rows,),
        )
        self._store(self.behind, row, (tile.rows,), self.sum)

    # --- Results ------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Has every result be of use."""
        for tile in self.unused:
            kind = self.rng.random()
            if kind < 0.45:
                self._reduce(tile)
            elif kind < 0.92:
                shape = (tile.rows, tile.columns)
                acc = self._assign(
                    self.before, "a", f"tl.zeros({shape}, tl.{self.sum})", self.sum, shape
                )
                self._assign(self.body, acc, f"{acc} + {tile.name}", self.sum, shape)
                self._store(self.behind, acc, shape, self.sum)
            else:
                self._store_in_loop(tile)

    def _store(
        self, body: list[Statement], name: str, shape: tuple[int, ...], dtype: str, place: str = ""
    ) -> None:
        rows, columns = shape if len(shape) == 2 else (shape[0], 1)
        size = rows * columns * (self.program.iterations if place else 1)
        if self.adds_rows and len(shape) == 2 and body is self.behind:
            name = self._add_row(body, name, shape, dtype)
        out = self._array(dtype, size, "zeros")
        index = (f"tl.arange(0, {rows})[:, None] * {columns} + tl.arange(0, {columns})[None, :]" if len(shape) == 2
                 else f"tl.arange(0, {rows})")  # fmt: skip
        pointer = f"{out} + pid * {size} + {place}{index}"
        body.append(Store(out, self._expression(f"tl.store({pointer}, {name})", "void")))

    def _add_row(self, body: list[Statement], name: str, shape: tuple[int, ...], dtype: str) -> str:
        """A result with a row added to all of its rows; the row is often stored to before that."""
        rng, columns = self.rng, shape[1]
        of_row = "int32" if dtype == "int32" else rng.choice(("float32", "float16", "bfloat16"))
        array = self._array(of_row, columns, "small")
        place = f"{array} + pid * {columns} + tl.arange(0, {columns})"
        row = self._assign(body, "r", f"tl.load({place})", of_row, (columns,))
        self.program.counts["a row added"] += 1
        if rng.random() < 0.6:
            self.program.counts["a row stored to before it is added"] += 1
            store = f"tl.store({place}, {row} + 1)"
            # Without barriers TMA may store the result, and the row is converted to its layout.
            body.append(Store(array, self._expression(store, "void"), fenced=rng.random() < 0.3))
        text = f"{name} + {row}.to(tl.{dtype})[None, :]"
        return self._assign(body, "s", text, dtype, shape)

    def _store_in_loop(self, tile: _Tile) -> None:
        place = f"{self._iteration()} * {tile.rows * tile.columns} + "
        self._store(self.body, tile.name, (tile.rows, tile.columns), self.sum, place)


# --- Schedules without machine code ------------------------------------------------------------

_CODES = {"int1": "i1", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_CODES |= {
    f"{sign}int{bits}": f"{sign or 'i'}{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")
}


def lower(
    kernel: Any,
    arrays: Sequence[Array],
    scalars: Sequence[float],
    given: Mapping[str, Any],
    architecture: str,
) -> str:
    """The kernel for a GPU with its loops as they are scheduled, as text.

    Raises what the compiler raises; with `strict_schedules` (settings) also if the verifier refuses
    a schedule that was planned.
    """
    from tessera import _C
    from tessera.compiler.compile import build_module
    from tessera.compiler.options import CompileOptions
    from tessera.machine.gpus import gpu_machines
    from tessera.runtime.signatures import parse_signature

    # An array within another one need not begin where 16 bytes do.
    types = [f"*{_CODES[array.dtype]}" + ("" if array.behind else ":16") for array in arrays]
    types += ["i32", *map(_scalar_type, scalars)]
    given = {**given, "target": architecture}
    if gpu_machines()[architecture].max_cluster_size == 1:
        given.pop("num_ctas", None)
    options = CompileOptions.of(given)
    specs = parse_signature(kernel, ", ".join(types), {})
    module = build_module(kernel, specs, options)
    try:
        module.lower_cuda(options.core_json(last_stage="tilegpu"))
        return str(module)
    except _C.CoreError as error:
        if "last_stage" not in str(error):
            raise
    # A build that is compared with this one, and has no such option.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        module.lower_cuda(options.core_json(dump_dir=folder))
        return (pathlib.Path(folder) / "kernel.tilegpu.mlir").read_text()


def _scalar_type(value: float) -> str:
    """The type of a launch's number in a signature."""
    if isinstance(value, float):
        return "fp32"
    code = "i32" if -(2**31) <= value < 2**31 else "i64"
    return f"{code}:16" if value % 16 == 0 else code


def count_transports(text: str) -> Counter[str]:
    """How many loops of scheduled code bring their tiles by which transport.

    "producer": TMA, by warps of its own; "tma": TMA, by the program; "cp.async"; "none": a loop of
    dots that copies nothing ahead. "dots in flight" counts dots that are only begun, beside that.
    """
    counts: Counter[str] = Counter()
    # The ops in each loop without those in inner loops; the innermost loop last.
    loops: list[tuple[int, set[str]]] = []
    depth = 0
    partition: Optional[int] = None
    for line in text.splitlines():
        line = line.strip()
        if " partition " in line or line.startswith("} partition"):
            partition = depth
        if "scf.for" in line and line.endswith("{"):
            loops.append((depth, set()))
        elif loops:
            for word, what in _WORDS.items():
                if word in line:
                    loops[-1][1].add(what)
                    if what == "dot" and "is_async" in line:
                        counts["dots in flight"] += 1
        depth += line.count("{") - line.count("}")
        if partition is not None and depth < partition:
            partition = None
        while loops and depth <= loops[-1][0]:
            inside = loops.pop()[1]
            if "tma" in inside:
                counts["producer" if "dot" not in inside else "tma"] += 1
            elif "cp.async" in inside:
                counts["cp.async"] += 1
            elif "dot" in inside and "wait" not in inside:
                counts["none"] += 1
    return counts


_WORDS = {
    "tilegpu.tma_load": "tma",
    "tilegpu.async_copy": "cp.async",
    "tilegpu.mbarrier_wait": "wait",
    "tilegpu.warpgroup_dot": "dot",
    "tilegpu.mma_dot": "dot",
    "tile.dot": "dot",
}


def main() -> int:
    """Counts transports over seeds with the `tessera` that Python finds; 1 if it refuses any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first kernel's seed")
    parser.add_argument("--count", type=int, default=1000, help="kernels to compile")
    parser.add_argument("--seconds", type=float, default=0, help="begin no more kernels after that")
    parser.add_argument("--target", default="sm_80,sm_90a", help="architectures, with commas")
    parser.add_argument("--json", default="", help="file for the counts of each seed")
    options = parser.parse_args()
    start = time.monotonic()
    refused = kernels = 0
    counts: dict[str, Counter[str]] = {name: Counter() for name in options.target.split(",")}
    each: dict[str, dict[str, int]] = {}
    for seed in range(options.seed, options.seed + options.count):
        if options.seconds and time.monotonic() - start > options.seconds:
            break
        kernels += 1
        program = generate_loops(seed)
        for name, total in counts.items():
            try:
                kernel = compile_source(program.source(gpu=True), f"<kernel of seed {seed}>")
                values = [value for _, value in program.scalars]
                text = lower(kernel, program.arrays, values, program.options, name)
                found = count_transports(text)
            except Exception as error:
                refused += 1
                found = Counter({"error": 1})
                message = " ".join(str(error).split())
                print(f"seed {seed}, {name}: {type(error).__name__}: {message[:300]}", flush=True)
            total.update(found)
            each[f"{seed} {name}"] = dict(found)
    print(f"{kernels} kernels, {refused} errors, {time.monotonic() - start:.0f} s")
    for name, total in counts.items():
        print(name, dict(sorted(total.items())))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(each))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
