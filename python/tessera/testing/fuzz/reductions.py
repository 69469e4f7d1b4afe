# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that reduce: rows, lanes that share an address, and sums over programs.

Some forms are sums of rows up to a bound, and two reductions with a store between them that the
second one reads. In others, lanes of atomics share an address, under masks that may differ within a
run. Counts are at addresses that data chooses, and the program reads these, too. Rows are summed in
a loop and stored to a view of the same array some rows later. Loops carry pointers, or indices of
blocks, backwards. Rows need several tiles from before the loop, more than a thread's registers
hold. Loops are unrolled into functions too long for LLVM. Products are rounded before they are
added, where the language forbids fusing.

Other sums are of integers, or of multiples of 1/8 that are exact in any order.
"""

from __future__ import annotations

import random

from tessera.testing.fuzz.forms import Form, do, let
from tessera.testing.fuzz.program import Nested, Program, Statement


def generate_reductions(seed: int) -> Program:
    """The kernel about reductions of a seed; the same one on every machine."""
    rng = random.Random(f"reductions {seed}")
    # Drawn apart, so that the other kernels stay those of their seeds.
    share = random.Random(f"reductions large {seed}").random()
    if share < 0.13:
        form = _Held if share < 0.08 else _Long if share < 0.1 else _Rounded
        return form(seed, rng).program
    forms = (_Bounded, _Bounded, _AroundStore, _AroundStore, _Meeting, _Meeting, _Counts, _Counts)
    return rng.choice((*forms, _Rows, _Backwards))(seed, rng).program


class _Bounded(Form):
    """Rows of a matrix below a bound, by each comparison; the bound may be beyond all rows."""

    name = "rows below a bound"

    def write(self) -> None:
        rng = self.rng
        rows, columns = rng.choice((4, 8, 16, 16, 32)), rng.choice((8, 16, 32, 64))
        n = self.program.iterations
        dtype = rng.choice(("int32", "float32", "float32", "int64"))
        total = rows * n * self.program.programs
        data = "dyadic" if dtype == "float32" else "integers"
        self.array("x", dtype, (total + 8) * columns, data, shared=True)
        self.array("out", dtype, columns)
        wide = rng.choice(("int32", "int32", "int64"))
        bound = rng.randint(-3, total + 3) if rng.random() < 0.85 else (1 << 31) - 1
        self.scalar("m", bound)
        first = rng.choice(("0", "0", "3", "8"))
        self.body += [let("i", f"tl.arange(0, {rows})"), let("j", f"tl.arange(0, {columns})")]
        index = f"((pid * n + k) * {rows} + i).to(tl.{wide}) + {first}"
        relation = rng.choice(("row < m", "row <= m", "m > row", "m >= row", "row < m - 1"))
        self.count(f"bounded by {relation.split()[1]}")
        mask = f"({relation})[:, None]"
        if rng.random() < 0.2:
            mask = f"{mask} & (j < {rng.choice((5, columns))})[None, :]"
        load = f"tl.load(x + row[:, None] * {columns} + j[None, :], mask={mask}, other=0)"
        kind = rng.choice(("sum", "sum", "max", "min"))
        reduced = f"tl.{kind}(tile, 0)"
        joined = f"acc + {reduced}" if kind == "sum" else f"tl.{kind}imum(acc, {reduced})"
        shape = (columns,)
        self.body.append(let("acc", f"tl.zeros(({columns},), tl.{dtype})", dtype, shape))
        body: list[Statement] = [
            let("row", index, wide, (rows,)),
            let("tile", load, dtype, (rows, columns)),
            let("acc", joined, dtype, shape),
        ]
        self.body += self.loop("k", "n", down=rng.random() < 0.2, body=body)
        self.body.append(do(f"tl.store(out + pid * {columns} + j, acc)"))


class _AroundStore(Form):
    """Two reductions of one shape; between them the first one's result is stored, and read again."""

    name = "reductions around a store"

    def write(self) -> None:
        rng = self.rng
        rows = rng.choice((1, 1, 16, 32))
        columns = rng.choice((32, 64, 128, 256)) if rows == 1 else rng.choice((16, 32))
        size = rows * columns
        dtype = rng.choice(("int32", "int32", "float32", "int16"))
        data = "dyadic" if dtype == "float32" else "integers"
        self.array("x", dtype, size, data)
        self.array("mem", dtype, size, data)
        seen = "mem"
        if rng.random() < 0.4:
            seen = self.array("seen", dtype, size, base="mem")
        self.array("out", dtype, 2 * rows)
        kinds = [rng.choice(("sum", "max", "min")) for _ in range(2)]
        axis = 0 if rows == 1 else 1
        place = f"tl.arange(0, {columns})"
        self.body.append(let("r", f"tl.arange(0, {rows})", shape=(rows,)))
        if rows > 1:
            place = f"r[:, None] * {columns} + {place}[None, :]"
        self.body.append(let("at", f"pid * {size} + {place}"))
        shape = () if rows == 1 else (rows,)
        tile = (columns,) if rows == 1 else (rows, columns)
        own = f"pid * {size} + {rng.randrange(columns)}" + (f" + r * {columns}" if rows > 1 else "")
        first = let("s", f"tl.{kinds[0]}(u, {axis}).to(tl.{dtype})", dtype, shape)
        store = do(f"tl.store(mem + {own}, s)", fenced=True)
        load = let("v", f"tl.load({seen} + at)", dtype, tile)
        second = let("t", f"tl.{kinds[1]}(v, {axis}).to(tl.{dtype})", dtype, shape)
        order = rng.choice(("read", "read", "before", "twice", "branch"))
        self.count(f"between reductions: {order}")
        # On a GPU lanes load what others store: a barrier is behind the store, and in front of it.
        between: list[Statement] = [store, load]
        if order == "before":
            between = [load, store]
        elif order == "twice":
            between = [store, do(f"tl.store({seen} + {own}, s * 0 + 7)", fenced=True), load]
        elif order == "branch":
            between = [let("c", "s" if rows == 1 else "tl.sum(s, 0)", dtype), store, load]
            second.value = let(
                "t", f"tl.{kinds[1]}(v, {axis}).to(tl.{dtype}) + (c * 0).to(tl.{dtype})"
            ).value
        self.body += [let("u", "tl.load(x + at)", dtype, tile), first, *between, second]
        results = f"pid * {2 * rows}" + (" + r" if rows > 1 else "")
        self.body.append(do(f"tl.store(out + {results}, s)"))
        self.body.append(do(f"tl.store(out + {results} + {rows}, t)"))


class _Meeting(Form):
    """Atomics whose lanes meet along a row, or in runs of lanes."""

    name = "lanes that meet"

    def write(self) -> None:
        rng = self.rng
        rows, columns = rng.choice((4, 8, 16, 32)), rng.choice((4, 8, 16, 32))
        kind = rng.choice(("add", "add", "add", "max", "min", "and", "or", "xor"))
        dtype = (
            rng.choice(("int32", "int32", "int64", "float32"))
            if kind in ("add", "max", "min")
            else "int32"
        )
        if kind in ("max", "min") and dtype == "int64":
            dtype = "int32"
        shared = rng.random() < 0.5
        size = rows * columns
        self.array("x", dtype, size, "dyadic" if dtype == "float32" else "integers")
        self.array("out", dtype, size, shared=shared)
        self.scalar("m", rng.choice((0, 1, 3, columns // 2, columns - 1, columns, rows)))
        self.body += [
            let("r", f"tl.arange(0, {rows})[:, None]"),
            let("c", f"tl.arange(0, {columns})[None, :]"),
        ]
        self.body.append(
            let("v", f"tl.load(x + pid * {size} + r * {columns} + c)", dtype, (rows, columns))
        )
        run = rng.choice((2, 4, columns))
        place = {
            "row": f"(r * {rng.choice((1, columns))} + c * 0)",
            "column": f"(r * 0 + c)",
            "run": f"(r * {columns} + c // {run})",
        }
        form = rng.choice(("row", "row", "column", "run", "run"))
        self.count(f"meet in a {form}")
        masks = (
            "", "r < m", "c < m", "c >= m", "c > m", "(c < m) & (r != 1)", "(r + c) % 3 == 0",
            f"c // {run} < m", "(c == m) | (r == m)", "v > 0", f"c % {run} != 0", "n > 2",
        )  # fmt: skip
        mask = rng.choice(masks)
        if mask == "n > 2":
            mask = "(r * 0 + c * 0 + n) > 2"
        self.count(
            "a mask within runs" if "c" in mask and mask != f"c // {run} < m" else "another mask"
        )
        base = "out" if shared else f"out + pid * {size}"
        text = f"tl.atomic_{kind}({base} + {place[form]}, v"
        body: list[Statement] = [do(f"{text}, mask={mask})" if mask else f"{text})")]
        if rng.random() < 0.25:
            body = self.loop("k", "n", down=False, body=body)
        self.body += body


class _Counts(Form):
    """Sums at places that data chooses, some of them below the first, and what a program reads there."""

    name = "counts"

    def write(self) -> None:
        rng = self.rng
        lanes = rng.choice((64, 256, 512, 1024))
        data = rng.choice(("small", "small", "places 64"))
        dtype = rng.choice(("int32", "int32", "float32", "int64"))
        own = rng.random() < 0.5  # programs have places of their own
        reads = rng.choice(("", "before", "behind", "behind", "both"))
        # A program that reads while others add sees any of the sums.
        if not own and reads:
            self.program.programs = 1
        self.array("x", "int32", lanes, data)
        self.array("out", dtype, 96, shared=not own)
        self.array("seen", dtype, 96)
        end = rng.choice((2, 8, 16, 64))
        self.body += [let("i", f"tl.arange(0, {lanes})"), let("j", "tl.arange(0, 32)")]
        self.body.append(let("p", f"tl.load(x + pid * {lanes} + i)", "int32", (lanes,)))
        masks = (
            f"p < {end}", f"(p >= 0) & (p < {end})", f"(p > -1) & (p <= {end - 1})", f"(p >= -1) & (p < {end})",
            f"p.to(tl.uint32) < {end}", f"p <= {end - 1}", f"(p < {end}) & (i % 3 != 0)",
        )  # fmt: skip
        mask = rng.choice(masks)
        self.count("masked below 0" if ">" in mask or "uint" in mask else "places below 0")
        value = rng.choice(("1", "1", "(i % 5)", "(i - 7)"))
        value = f"(i * 0 + {value}).to(tl.{dtype})"
        begin = f"pid * 96 + 8" if own else "8"
        place = rng.choice((f"(out + {begin})", f"out + {begin}"))
        add = do(f"tl.atomic_add({place} + p, {value}, mask={mask})", fenced=True)
        read = f"tl.load(out + {'pid * 96 + ' if own else ''}j)"
        if reads:
            self.count(f"reads {reads}")
        if reads in ("before", "both"):
            self.body.append(let("u", read, dtype, (32,)))
            self.body.append(do("tl.store(seen + pid * 96 + j, u)"))
        self.body.append(add)
        if rng.random() < 0.3:
            self.body.append(
                do(f"tl.atomic_add({place} + p, {value} * 2, mask={mask})", fenced=True)
            )
        if reads in ("behind", "both"):
            self.body.append(let("w", read, dtype, (32,)))
            self.body.append(do("tl.store(seen + pid * 96 + 32 + j, w)"))


class _Rows(Form):
    """A loop reduces rows, and stores them to a view of what it loads, some rows behind."""

    name = "rows to a view"

    def write(self) -> None:
        rng = self.rng
        width = rng.choice((512, 1024, 1024, 2048))
        dtype = rng.choice(("int32", "int32", "float16"))
        apart = rng.choice((0, 1, 1, 2, 5))
        size = (self.program.iterations + apart) * width
        data = "dyadic" if dtype == "float16" else "integers"
        self.array("x", dtype, size, data)
        self.array("later", dtype, size, base="x", behind=apart * width)
        self.array("sums", "int32" if dtype == "int32" else "float32", self.program.iterations)
        self.count(f"rows apart: {apart}")
        source, target = rng.choice((("x", "later"), ("x", "later"), ("later", "x")))
        self.body.append(let("i", f"tl.arange(0, {width})"))
        at = f"pid * {size} + k * {width} + i"
        mask = rng.choice(("", "", f", mask=i < {width - 16}, other=0"))
        value = "v + 1" if dtype == "int32" else "v * 0.5"
        sum_type = "int32" if dtype == "int32" else "float32"
        kept = rng.choice((value, value, f"v + (s * 0).to(tl.{dtype})"))
        body: list[Statement] = [
            let("v", f"tl.load({source} + {at}{mask})", dtype, (width,)),
            let("s", f"tl.sum(v.to(tl.{sum_type}), 0)", sum_type),
            do(f"tl.store({target} + {at}, {kept})"),
            do("tl.store(sums + pid * n + k, s)"),
        ]
        self.body += self.loop("k", "n", down=False, body=body)


class _Backwards(Form):
    """Pointers that a loop carries to lower places, and the number of an earlier iteration."""

    name = "backwards"

    def write(self) -> None:
        rng = self.rng
        block = rng.choice((32, 64, 128))
        n = self.program.iterations
        dtype = rng.choice(("int32", "float32"))
        size = (n + 6) * block
        self.array("x", dtype, size, "dyadic" if dtype == "float32" else "integers")
        self.array("out", dtype, size)
        zero = f"tl.zeros(({block},), tl.{dtype})"
        self.body += [let("i", f"tl.arange(0, {block})"), let("acc", zero, dtype, (block,))]
        if rng.random() < 0.5:
            self.count("pointers go back")
            step = -block if rng.random() < 0.8 else -1
            step_text = self.scalar("step", step) if rng.random() < 0.7 else str(step)
            if rng.random() < 0.3:
                step_text = f"(i * 0 + {step_text})"
            first = f"x + pid * {size} + {(n + 5) * block} + i"
            self.body.append(let("p", first, "int64", (block,)))
            advance = rng.choice((f"p + {step_text}", f"p + {step_text}", f"p - (0 - {step_text})"))
            body: list[Statement] = [
                let("acc", "acc * 3 + tl.load(p)", dtype, (block,)),
                let("p", advance, "int64", (block,)),
            ]
        else:
            begin = rng.choice((-1, -1, 0, 2, n))
            self.count("begins one step before" if begin == -1 else "begins elsewhere")
            load = f"tl.load(x + pid * {size} + (last + 1) * {block} + i)"
            self.body.append(let("last", str(begin)))
            following = rng.choice(("k", "k", "last + 1"))
            body = [let("acc", f"acc * 3 + {load}", dtype, (block,)), let("last", following)]
            body.insert(1, do(f"tl.store(out + pid * {size} + (last + 1) * {block} + i, acc)"))
        self.body += self.loop("k", "n", down=False, body=body)
        self.body.append(do(f"tl.store(out + pid * {size} + {(n + 5) * block} + i, acc)"))


class _Held(Form):
    """Tiles from before a loop, which all of its iterations use beside the row that they reduce."""

    name = "tiles held through a loop"

    def write(self) -> None:
        rng, program = self.rng, self.program
        program.programs = rng.choice((1, 2))
        n = program.iterations = rng.choice((1, 2, 3))
        # A warp's row of 2,048 floats takes 64 of a thread's 255 registers.
        warps = program.options["num_warps"] = rng.choice((1, 1, 2, 4))
        width = rng.choice((1024, 2048, 2048, 2048)) * warps
        dtype = rng.choice(("float16", "float16", "float32", "int32"))
        number = "int32" if dtype == "int32" else "float32"
        shape = (width,)
        self.array("x", dtype, n * width, "small")
        self.array("out", number, n * width)
        self.array("total", number, width)
        self.body.append(let("i", f"tl.arange(0, {width})"))
        tiles = rng.choice((2, 3, 4, 5))
        self.count(f"tiles held: {tiles}")
        wide = f".to(tl.{number})"
        for tile in range(tiles):
            source = f"w{tile}" if tile == 0 or rng.random() < 0.8 else "w0"
            if source == f"w{tile}":
                self.array(source, rng.choice((dtype, number)), width, "small", shared=True)
            change = "" if rng.random() < 0.7 else f" * {tile + 1}"
            text = f"tl.load({source} + i){wide}{change}"
            self.body.append(let(f"t{tile}", text, number, shape))
        self.body.append(let("acc", f"tl.zeros(({width},), tl.{number})", number, shape))
        body: list[Statement] = [
            let("v", f"tl.load(x + pid * {n * width} + k * {width} + i){wide}", number, shape),
            let("s", f"tl.sum(v * t0, 0)", number),
        ]
        for tile in range(1, tiles):
            text = rng.choice(
                (f"v + t{tile}", f"v - t{tile}", f"v + t{tile} * 2", f"v + s * t{tile}")
            )
            body.append(let("v", text, number, shape))
        body.append(do(f"tl.store(out + pid * {n * width} + k * {width} + i, v)"))
        body.append(let("acc", f"acc + v * t{rng.randrange(tiles)}", number, shape))
        if rng.random() < 0.3:
            # One of them changes, so that it is none from before the loop.
            self.count("a held tile changes")
            body.append(let("t1", "t1 + 1", number, shape))
        self.body += self.loop("k", "n", down=rng.random() < 0.2, body=body)
        end = f"acc + t{tiles - 1}" if rng.random() < 0.4 else "acc"
        self.body.append(do(f"tl.store(total + pid * {width} + i, {end})"))


class _Long(Form):
    """A loop written out: each row decides by what those before it gave, which the program stores."""

    name = "a long program"

    def write(self) -> None:
        rng = self.rng
        rows, width = rng.choice((64, 80, 96)), rng.choice((8, 16, 32))
        self.program.programs = rng.choice((1, 2))
        dtype = rng.choice(("int32", "int32", "int64", "float32"))
        shape = (width,)
        size = rows * width
        self.array("x", dtype, size, "small")
        # Stored to between its loads, and apart from them.
        self.array("mem", dtype, size, "small")
        self.array("out", dtype, 2 * width)
        self.scalar("m", rng.choice((3, width // 2, width)))
        self.body += [
            let("i", f"tl.arange(0, {width})"),
            let("acc", f"tl.zeros(({width},), tl.{dtype})", dtype, shape),
            let("s", f"tl.to_tensor(1).to(tl.{dtype})", dtype),
            let("on", "i < m", "int1", shape),
        ]
        at = f"pid * {size} + {{}} * {width} + i"
        load = f"tl.load(x + {at.format('k')}{rng.choice(('', ', mask=on, other=1', ', mask=i < m, other=2'))})"
        loop: list[Statement] = [let("v", load, dtype, shape)]
        changes: list[Statement] = [
            let("on", "(v > s) | (i == k % 4)", "int1", shape),
            let("s", f"s + tl.sum(tl.where(on, v, 0), 0).to(tl.{dtype})", dtype),
            let("s", "tl.where(s > 9, s - 9, s)", dtype),
            let("acc", "acc + tl.where(on, v, s)", dtype, shape),
            let("acc", "tl.minimum(acc, 99) - v", dtype, shape),
        ]
        loop += rng.sample(changes, rng.randint(3, 5))
        if rng.random() < 0.6:
            self.count("a long program stores")
            row = rng.choice(("k", "k", f"({rows - 1} - k)"))
            loop.append(let("w", f"tl.load(mem + {at.format('k')})", dtype, shape))
            loop.append(do(f"tl.store(mem + {at.format(row)}, w + v)", fenced=True))
            loop.append(let("acc", "acc + w", dtype, shape))
        self.body.append(Nested(f"for k in tl.static_range(0, {rows})", loop))
        self.body.append(do(f"tl.store(out + pid * {2 * width} + i, acc)"))
        self.body.append(do(f"tl.store(out + pid * {2 * width} + {width} + i, tl.where(on, s, 0))"))


class _Rounded(Form):
    """Products and sums of floats, each rounded: without `enable_fp_fusion` none is part of another."""

    name = "rounded products"

    def write(self) -> None:
        rng = self.rng
        self.program.options["enable_fp_fusion"] = False
        width = rng.choice((16, 64, 100, 256))
        block = 1 << (width - 1).bit_length()
        dtype = rng.choice(("float32", "float32", "float64", "float16"))
        n = self.program.iterations
        for name in ("x", "y"):
            self.array(name, dtype, n * width, "dyadic")
        self.array("out", dtype, n * width)
        mask = f", mask=i < {width}" if block != width else ""
        self.body += [
            let("i", f"tl.arange(0, {block})"),
            let("acc", f"tl.zeros(({block},), tl.{dtype})", dtype, (block,)),
        ]
        at = f"pid * {n * width} + k * {width} + i"
        form = rng.choice(
            ("acc + a * b", "acc - a * b", "a * b + acc", "acc * 0.7 + a", "a * b - acc")
        )
        self.count(f"rounded: {form}")
        body: list[Statement] = [
            let("a", f"tl.load(x + {at}{mask}) * 0.1", dtype, (block,)),
            let("b", f"tl.load(y + {at}{mask}) * 0.3", dtype, (block,)),
            let("acc", form, dtype, (block,)),
            do(f"tl.store(out + {at}, acc{mask})"),
        ]
        self.body += self.loop("k", "n", down=rng.random() < 0.2, body=body)
