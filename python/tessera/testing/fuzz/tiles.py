# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that compute tiles of a product of matrices, in different orders of programs and tiles.

A program may have one tile, whose row and column are the quotient and remainder of its id. It may
have several, in a loop whose step is the number of programs or an argument. Or each axis of the
grid is an axis of tiles. The number of columns is a constant, an argument, a quotient, or loaded.
If one program computes all tiles, it may store where rows overlap, or to a view of what a later
iteration loads. Blocks of a cluster may divide a large tile.

Sums are exact: of multiples of 1/64, far below 2^24 of them.
"""

from __future__ import annotations

import random

from tessera.testing.fuzz.forms import Form, do, let
from tessera.testing.fuzz.program import Assign, Nested, Program, Statement

_SMALL = ((16, 16, 16), (32, 32, 16), (16, 32, 32), (64, 32, 16), (32, 64, 32), (64, 64, 16))
# Half of such a tile is enough for wgmma, so that two blocks of a cluster may share it.
_LARGE = ((128, 64, 32), (64, 128, 32), (128, 64, 64))


def generate_tiles(seed: int) -> Program:
    """The kernel about tiles of a seed; the same one on every machine."""
    return _Tiles(seed, random.Random(f"tiles {seed}")).program


class _Tiles(Form):
    name = "tiles"

    def write(self) -> None:
        rng, program = self.rng, self.program
        large = rng.random() < 0.2
        self.extents = rng.choice(_LARGE if large else _SMALL)
        program.options["num_warps"] = 4 if large else rng.choice((1, 2, 4, 8))
        if large:
            program.options["num_ctas"] = rng.choice((1, 2, 2))
            self.count("a cluster may divide tiles")
        # By the seed, so that others still have the kernels that they had.
        self.counts_tiles = large and program.seed % 3 == 0
        program.iterations = rng.choice((1, 2, 3) if large else (1, 1, 2, 3))
        most = 3 if large else 5
        self.rows, self.columns = rng.choice((1, 2, 3, most)), rng.choice((1, 2, 3, most))
        forms = ("one", "one", "turns", "turns", "turns", "while", "axes")
        form = rng.choice(("one", "one", "axes", "turns") if large else forms)
        self.count(f"tiles of programs: {form}")
        number = "pid"
        tiles = self.rows * self.columns
        in_turns = form in ("turns", "while")
        if form == "axes":
            program.programs = tiles
            program.grid = f"({self.columns}, {self.rows})"
        elif in_turns:
            program.programs = rng.choice((1, 1, 1, 2, 3, max(1, tiles - 1), tiles + 1))
            number = "t"
        else:
            program.programs = rng.choice((tiles, tiles, max(1, tiles - 1), tiles + 1))
        alone = in_turns and program.programs == 1
        self.overlap = alone and not large and rng.random() < 0.25
        if self.overlap:
            # Other lanes store an element again, behind the barriers of the loop of dots. With
            # fewer warps than a warpgroup there is no TMA, which would not wait for these stores.
            program.options["num_warps"] = rng.choice((1, 2))
        self.recurrence = alone and not self.overlap and rng.random() < 0.5
        self._arrays(max(self.rows, -(-program.programs // self.columns)))
        columns = self._columns()
        if form == "axes":
            tile: list[Statement] = [
                let("row", "tl.program_id(1)"),
                let("column", "tl.program_id(0)"),
            ]
            self.body += tile + self._tile()
            return
        # The rest as the compiler knows it, or as it does not.
        rest = f"{number} % {columns}" if rng.random() < 0.85 else f"{number} - row * {columns}"
        inside = [let("row", f"{number} // {columns}"), let("column", rest), *self._tile()]
        self.body += self._in_turns(form, tiles, inside) if in_turns else inside

    def _arrays(self, rows: int) -> None:
        rng, (m, n, k) = self.rng, self.extents
        depth = k * self.program.iterations
        self.array("a", "float16", rows * m * depth, "dyadic", shared=True)
        self.array("b", "float16", depth * self.columns * n, "dyadic", shared=True)
        self.stride = self.columns * n
        if self.overlap:
            self.stride = rng.choice((n, n + 8, max(n, self.stride - n // 2)))
            self.count("rows overlap" if self.stride < self.columns * n else "rows end together")
        elif self.recurrence:
            # A tile further is none of the next row.
            self.stride += rng.choice((n, n + 16))
        elif rng.random() < 0.4:
            self.stride += rng.choice((8, 16, 64))
        self.dtype = rng.choice(("float32", "float32", "float16"))
        if self.recurrence:
            self.dtype = "float32"
        # There is room for tiles behind the last one, and for those that overlap the end of a row.
        size = ((rows + self.recurrence) * m + 1) * self.stride + 2 * self.columns * n
        self.array("out", self.dtype, size, "dyadic" if self.recurrence else "zeros", shared=True)
        if self.recurrence:
            # The tile behind this one; or the one before that of the next row, or that itself.
            behind = rng.choice((n, m * self.stride - n, m * self.stride - n, m * self.stride))
            self.array("later", self.dtype, size, base="out", behind=behind, shared=True)
            self.count("a tile of an earlier iteration")

    def _columns(self) -> str:
        """The number of tiles in a row, as one of the forms in which kernels have it."""
        form = self.rng.choice(("argument", "argument", "constant", "quotient", "loaded"))
        self.count(f"columns: {form}")
        if form == "constant":
            return str(self.columns)
        if form == "argument":
            return self.scalar("columns", self.columns)
        if form == "quotient":
            width = self.scalar(
                "width", self.columns * self.extents[1] - self.rng.choice((0, 1, 15))
            )
            text = f"tl.cdiv({width}, {self.extents[1]})"
        else:
            text = f"tl.load({self.array('nothing', 'int32', 1, shared=True)}) + {self.columns}"
        self.body.append(let("columns", text))
        return "columns"

    def _in_turns(self, form: str, tiles: int, inside: list[Statement]) -> list[Statement]:
        rng, programs = self.rng, self.program.programs
        bound = self.scalar("tiles", tiles) if rng.random() < 0.6 else str(tiles)
        step = "tl.num_programs(0)"
        if rng.random() < 0.4:
            # Programs do not do each other's tiles; they may leave some out.
            wide = rng.choice((programs, programs + 1, 2 * programs))
            self.count("another step" if wide != programs else "the same step in other words")
            # The compiler does not know that an argument is positive.
            texts = [str(wide), self.scalar("step", wide)]
            if wide != programs:
                texts += [f"{step} + 1" if wide == programs + 1 else f"{step} * 2"] * 2
            step = rng.choice(texts)
        if form == "while":
            return [Nested(f"while t < {bound}", inside, setup="t = pid", step=f"t += {step}")]
        return [Nested(f"for t in range(pid, {bound}, {step})", inside)]

    def _tile(self) -> list[Statement]:
        """Statements that compute the tile in `row` and `column`, and store it."""
        rng, (m, n, k) = self.rng, self.extents
        depth, width = k * self.program.iterations, self.columns * n
        shape = (m, n)
        begin: list[Statement] = [
            let("i", f"row * {m} + tl.arange(0, {m})"),
            let("j", f"column * {n} + tl.arange(0, {n})"),
        ]
        place = f"i[:, None] * {self.stride} + j[None, :]"
        zero = f"tl.zeros({shape}, tl.float32)"
        if self.recurrence and rng.random() < 0.5:
            zero = f"tl.load(out + {place})"
        accumulator: Assign = let("acc", zero, "float32", shape)
        along = f"(k * {k} + tl.arange(0, {k}))"
        product: list[Statement] = [
            let("x", f"tl.load(a + i[:, None] * {depth} + {along}[None, :])", "float16", (m, k)),
            let("y", f"tl.load(b + {along}[:, None] * {width} + j[None, :])", "float16", (k, n)),
            let("acc", "tl.dot(x, y, acc)", "float32", shape),
        ]
        loop: list[Statement] = [Nested("for k in range(0, n)", product)]
        if rng.random() < 0.4:
            loop = self.loop("k", "n", down=rng.random() < 0.2, body=product)
        end: list[Statement] = []
        if self.recurrence and "load" not in zero:
            end.append(let("acc", f"acc + tl.load(out + {place})", "float32", shape))
        elif not self.recurrence and rng.random() < 0.4:
            # Parts of these tiles need other parts.
            texts = (
                "acc + tl.max(acc, 1)[:, None]", "acc - tl.max(acc, 0)[None, :]",
                "tl.cumsum(acc, 0)", "tl.cumsum(acc, 1)",
            )  # fmt: skip
            end.append(let("acc", rng.choice(texts), "float32", shape))
            self.count("a result of several elements")
        mask = ""
        if rng.random() < 0.3:
            mask = f", mask=(i < {self.rows * m - rng.choice((0, 5))})[:, None] & (j < {width})[None, :]"
        if self.counts_tiles:
            # Once a tile, however many blocks do parts of it.
            self.array("done", "int32", 1, shared=True)
            end.append(do("tl.atomic_add(done, 1)"))
            self.count("counts its large tiles")
        target = "later" if self.recurrence else "out"
        end.append(do(f"tl.store({target} + {place}, acc.to(tl.{self.dtype}){mask})"))
        return [*begin, accumulator, *loop, *end]
