# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose addresses the compiler proves to differ, or to be equal.

In one form, the steps of a recurrence have views of one array as arguments, some tiles apart,
through loops of all kinds. In a second, tiles are loaded at wrapped indices, and stored under a
mask of this or another iteration's index. In a third, loops carry these indices or masks of them. A
fourth has rows of one element, a block's scale. A fifth stores tiles from their last element on, to
a view of the loaded array. An index may be negative if a constant added to it puts the address
inside the array.

The same lane stores and loads each element, so no barriers are needed for the order; the last form
has barriers.
"""

from __future__ import annotations

import random

from tessera.testing.fuzz.forms import Form, do, let
from tessera.testing.fuzz.program import Assign, Nested, Program, Statement, Store


def generate_views(seed: int) -> Program:
    """The kernel about views and wraps of a seed; the same one on every machine."""
    rng = random.Random(f"views {seed}")
    forms: tuple[type[Form], ...] = (_Recurrence, _Recurrence, _Wraps, _Wraps)
    forms += (_CarriedIndices, _CarriedIndices, _Scales, _Turned)
    return rng.choice(forms)(seed, rng).program


class _Recurrence(Form):
    """h[t + d] = f(h[t] @ w), by two arguments, and what else is loaded from a third one."""

    name = "recurrence"

    def write(self) -> None:
        rng = self.rng
        rows, columns = rng.choice(((64, 64), (64, 64), (64, 64), (128, 64), (32, 32)))
        tile = rows * columns
        self.shape = (rows, columns)
        outer = rng.choice((1, 1, 1, 2))
        apart, down = rng.choice((1, 1, 1, 2)), rng.random() < 0.3
        # The outer loop goes over what all inner ones do, or begins again at the start.
        count = outer * self.program.iterations + apart
        size = count * tile
        dtype = rng.choice(("float16", "float16", "float32"))
        self.array("h", dtype, size, "dyadic")
        # Programs' parts are `size` elements apart in each view.
        self.array("later", dtype, size, base="h", behind=apart * tile)
        source, target = ("later", "h") if down else ("h", "later")
        self.array("w", "float16", columns * columns, "dyadic", shared=True)
        scan = rng.random() < 0.4
        if scan:
            self.array("x", "float16", tile, "dyadic", shared=True)
        self.body += [let("i", f"tl.arange(0, {rows})"), let("j", f"tl.arange(0, {columns})")]
        self.body.append(let("within", f"i[:, None] * {columns} + j[None, :]"))
        mask, other = self._mask(rows, columns)
        inner: list[Statement] = []
        base = f"pid * {size}"
        step = "t" if outer == 1 else rng.choice(("u * n + t", "t"))
        place = f"{base} + ({step}) * {tile} + within"
        if down and outer > 1:
            place = f"{base} + ((1 - u) * n + t) * {tile} + within"
        carried = rng.random() < 0.25 and outer == 1 and not down
        if carried:
            self.body += [let("at", base)]
            place = "at + within"
        values = self._values(scan, source, place, mask, other, columns)
        inner += values
        inner.append(do(f"tl.store({target} + {place}, y.to(tl.{dtype}){mask})"))
        if rng.random() < 0.2:
            # The stored value is loaded again, through the name that it was stored by or through
            # the other one.
            seen = self.array("seen", dtype, tile)
            again = rng.choice((f"{target} + {place}", f"{source} + {place}"))
            inner.append(let("again", f"tl.load({again}{mask}{other})", dtype, self.shape))
            inner.append(do(f"tl.store({seen} + pid * {tile} + within, again{mask})"))
        if carried:
            inner.append(let("at", f"at + {tile}"))
        steps = self.loop("t", "n", down, inner)
        self.body += self.loop("u", str(outer), down=False, body=steps) if outer > 1 else steps

    def _mask(self, rows: int, columns: int) -> tuple[str, str]:
        if self.rng.random() < 0.5:
            return "", ""
        bounds = [f"(i[:, None] < {self.scalar('rows', self.rng.choice((rows, rows - 3, 7)))})"]
        if self.rng.random() < 0.5:
            bounds.append(f"(j[None, :] < {self.scalar('columns', columns)})")
        return f", mask={' & '.join(bounds)}", ", other=0.0"

    def _values(
        self, scan: bool, source: str, place: str, mask: str, other: str, columns: int
    ) -> list[Statement]:
        load = f"tl.load({source} + {place}{mask}{other})"
        small = "(({}).to(tl.int32) & 7).to(tl.float32)"
        w = f"tl.load(w + tl.arange(0, {columns})[:, None] * {columns} + j[None, :])"
        product = "tl.dot({}, {})"
        if not scan:
            dot = product.format(f"({load}).to(tl.float16)", w)
            return [let("y", small.format(dot), "float32", self.shape)]
        block = 32
        x = f"tl.load(x + i[:, None] * {columns} + (k + tl.arange(0, {block}))[None, :])"
        w = f"tl.load(w + (k + tl.arange(0, {block}))[:, None] * {columns} + j[None, :])"
        zeros = f"tl.zeros(({self.shape[0]}, {self.shape[1]}), tl.float32)"
        loop = Nested(
            f"for k in range(0, {columns}, {block})",
            [let("acc", f"tl.dot({x}, {w}, acc)", "float32", self.shape)],
        )
        return [
            let("acc", zeros, "float32", self.shape),
            loop,
            let("y", small.format(f"acc + {load}"), "float32", self.shape),
        ]


class _Wraps(Form):
    """x[index % m] (or the index where it is below m), stored at the index where that is below m."""

    name = "wraps"

    def write(self) -> None:
        rng = self.rng
        block = rng.choice((32, 64, 64, 128))
        programs = self.program.programs
        below = rng.choice((0, 0, 0, 8, block, 2 * block))
        behind = below + block
        most = programs * 8 * block + behind
        m = self.scalar("m", rng.choice((8, 5, block, block + 8, 2 * block - 3, 3 * block)))
        wide = rng.random() < 0.3
        dtype = "int32"
        self.array("x", dtype, most + 4 * block, "integers", shared=True)
        self.array("out", dtype, most + 4 * block, shared=True)
        self.body.append(let("lanes", f"tl.arange(0, {block})", shape=(block,)))
        count = "n"
        turn = rng.choice(("s", f"{count} - 1 - s"))
        start = f"(pid * {count} + {turn}) * {block} - {below}"
        if wide:
            start = f"(pid.to(tl.int64) * {count} + {turn}) * {block} - {below}"
        index = f"{start} + lanes"
        fixed = rng.random() < 0.3
        if fixed:
            self.body.append(let("fixed", f"pid * {block} - {below} + lanes", shape=(block,)))
            index = "fixed"
        wrapped = rng.choice(("index % m", "index % m", "tl.where(index < m, index, 0)"))
        if rng.random() < 0.2:
            wrapped = f"({wrapped}) // 4 + (index % m)"
        body: list[Statement] = [let("index", index, shape=(block,))]
        loaded = f"tl.load(x + {behind} + ({wrapped}))"
        carried = rng.random() < 0.6
        if carried:
            self.body.append(let("kept", f"tl.zeros(({block},), tl.{dtype})", dtype, (block,)))
        form = rng.choice(("before", "sum", "after")) if carried else "now"
        keep = [let("value", loaded, dtype, (block,))]
        bound = rng.choice(("index < m", "index < m", "(index < m) & (lanes < 30)"))
        place = f"out + {behind} + index"
        if form == "now":
            body += [*keep, do(f"tl.store({place}, value, mask={bound})")]
        elif form == "before":
            body += [*keep, do(f"tl.store({place}, kept, mask={bound})")]
            body.append(let("kept", "value", dtype, (block,)))
        elif form == "sum":
            body += [*keep, let("kept", "kept + value", dtype, (block,))]
            body.append(do(f"tl.store({place}, kept, mask={bound})"))
        else:
            body += [*keep, let("kept", "kept * 3 + value", dtype, (block,))]
            self.body.append(let("index", index.replace("s)", "0)"), shape=(block,)))
        loop = self.loop("s", count, down=False, body=body)
        if form == "after" and fixed:
            loop.append(do(f"tl.store({place}, kept, mask={bound})"))
        elif form == "after":
            whole = f"out + (pid * {block} + lanes)"
            loop.append(do(f"tl.store({whole}, kept, mask=pid * {block} + lanes < m)"))
        self.body += loop


class _CarriedIndices(Form):
    """A loop carries a tile of indices, and a tile that was loaded there some iterations ago.

    Indices go on by multiples of a block, so that an element is always one lane's. A program's stay
    within its own part of the arrays, with what lies `below` a place that is negative.
    """

    name = "carried indices"

    def write(self) -> None:
        rng = self.rng
        self.block = block = rng.choice((32, 64, 64, 128))
        step = block * rng.choice((1, 1, 2))
        self.below = rng.choice((0, 0, 8, block, 2 * block))
        span = (self.program.iterations + 2) * step
        self.span = span
        self.width = rng.choice((1, 1, 1, 32))
        self.type = rng.choice(("int32", "int32", "int64"))
        self.m = self.scalar("m", rng.choice((5, block, block + 8, 3 * block, 2 * span - 3)))
        size = (self.program.programs * span + self.below + 2 * span) * self.width
        data = "dyadic" if self.width > 1 else "integers"
        self.dtype = "float16" if self.width > 1 else "int32"
        self.array("x", self.dtype, size, data, shared=True)
        self.array("out", self.dtype, size, shared=True)
        self.shape = (block,) if self.width == 1 else (block, self.width)
        # The start of the program: far enough from its ends for all iterations.
        down = rng.random() < 0.35
        last = self.program.iterations * step
        first = f"pid * {span} - {self.below}" + (f" + {last}" if down else "")
        lanes = let("lanes", f"tl.arange(0, {block})", shape=(block,))
        at = f"({first} + lanes).to(tl.{self.type})"
        self.body += [lanes, self._index("at", at), self._index("was", "at")]
        kept = f"tl.zeros({self.shape}, tl.{self.dtype})"
        self.body.append(let("kept", kept, self.dtype, self.shape))
        carries_mask = rng.random() < 0.3
        if carries_mask:
            self.body.append(let("inside", "at < 0", "int1", (block,)))
            self.count("carries a mask")
        advance: list[Statement] = [self._index("was", "at")]
        advance.append(self._index("at", self._next(-step if down else step)))
        body = self._iteration(carries_mask)
        early = rng.random() < 0.4
        self.count("indices first" if early else "indices last")
        body = advance + body if early else body + advance
        self.body += self.loop("s", "n", down=False, body=body)
        if rng.random() < 0.4:
            # Behind the loop, under a mask of what it has carried.
            self.body.append(self._store("kept", rng.choice(("at", "was")), carries_mask))
            self.count("stored behind the loop")
        if self.width > 1:
            self._store_sum()

    def _index(self, name: str, text: str) -> Assign:
        return let(name, text, self.type, (self.block,))

    def _next(self, step: int) -> str:
        """The indices of the next iteration."""
        form = self.rng.choice(("same", "same", "argument", "where", "data"))
        self.count(f"indices go on: {form}")
        if form == "argument":
            return f"at + {self.scalar('step', step)}"
        if form == "where":
            return f"tl.where(at < m, at + {step}, at)"
        if form == "data":
            # By none, one or two blocks, as far as they stay in the program's part.
            hops = self.array("hops", "int32", self.block, "small", shared=True)
            hop = f"(at + tl.load({hops} + lanes) * {self.block})"
            low = f"pid * {self.span} - {self.below}"
            return f"tl.where(({hop} >= {low}) & ({hop} < {low} + {self.span}), {hop}, at)"
        return f"at + {step}"

    def _mask(self, carries_mask: bool) -> str:
        names = ["at", "at", "was", "was"] + ["inside"] * 3 * carries_mask
        name = self.rng.choice(names)
        self.count(f"masked by {name}")
        if name == "inside":
            return name
        return self.rng.choice(
            (f"({name} < m)", f"({name} < m)", f"(({name} >= 0) & ({name} < m))",
             f"(({name} < m) & (lanes < 30))")
        )  # fmt: skip

    def _place(self, array: str, rows: str) -> str:
        behind = self.below + self.span // 2
        if self.width == 1:
            return f"{array} + {behind} + {rows}"
        columns = f"tl.arange(0, {self.width})[None, :]"
        return f"{array} + {behind * self.width} + ({rows})[:, None] * {self.width} + {columns}"

    def _of_rows(self, mask: str) -> str:
        return mask if self.width == 1 else f"({mask})[:, None]"

    def _load(self, carries_mask: bool) -> str:
        rng = self.rng
        index = rng.choice(("at", "at", "was"))
        form = rng.choice(("wrapped", "wrapped", "chosen", "masked", "masked", "masked"))
        self.count(f"loads: {form}")
        if form == "wrapped":
            return f"tl.load({self._place('x', f'({index} % m)')})"
        if form == "chosen":
            mask = self._mask(carries_mask)
            return f"tl.load({self._place('x', f'tl.where({mask}, {index}, 0)')})"
        mask, other = self._of_rows(self._mask(carries_mask)), rng.choice((0, 0, 7))
        return f"tl.load({self._place('x', index)}, mask={mask}, other={other})"

    def _store(self, value: str, index: str, carries_mask: bool) -> Store:
        mask = self._of_rows(self._mask(carries_mask))
        return do(f"tl.store({self._place('out', index)}, {value}, mask={mask})")

    def _iteration(self, carries_mask: bool) -> list[Statement]:
        """Loads, keeps and stores, in one of several orders."""
        rng = self.rng
        keeps = rng.choice(("value", "value", f"tl.where({self._of_rows('at < m')}, value, kept)"))
        if self.width == 1:
            keeps = rng.choice((keeps, "kept + value", "kept * 3 + value"))
        load = let("value", self._load(carries_mask), self.dtype, self.shape)
        keep = let("kept", keeps, self.dtype, self.shape)
        stored = rng.choice(("kept", "kept", "value"))
        store = self._store(stored, rng.choice(("at", "was")), carries_mask)
        body: list[Statement] = [load, *rng.choice(((keep, store), (store, keep)))]
        if stored == "kept" and rng.random() < 0.3:
            body = [store, load, keep]
        if carries_mask:
            inside = let("inside", rng.choice(("at < m", "was < m")), "int1", (self.block,))
            body.insert(rng.randrange(len(body) + 1), inside)
        if self.width > 1:
            operand = rng.choice(("value", "kept"))
            self.count(f"a dot of the {operand} tile")
            dot = let("acc", f"tl.dot({operand}, w, acc)", "float32", (self.block, 32))
            body.insert(body.index(load) + 1, dot)
        return body

    def _store_sum(self) -> None:
        """The sums of dots, and before the loop their first values."""
        self.array("w", "float16", self.width * 32, "dyadic", shared=True)
        self.array("sums", "float32", self.block * 32)
        place = f"tl.arange(0, {self.width})[:, None] * 32 + tl.arange(0, 32)[None, :]"
        before = [
            let("w", f"tl.load(w + {place})", "float16", (self.width, 32)),
            let("acc", f"tl.zeros(({self.block}, 32), tl.float32)", "float32", (self.block, 32)),
        ]
        self.body[0:0] = before
        place = "lanes[:, None] * 32 + tl.arange(0, 32)[None, :]"
        self.body.append(do(f"tl.store(sums + pid * {self.block * 32} + {place}, acc)"))


class _Scales(Form):
    """A row of a block's scale times what is in the block."""

    name = "scales"

    def write(self) -> None:
        rng = self.rng
        block = rng.choice((32, 64, 128))
        divisor = block * rng.choice((1, 1, 2, 4))
        before = rng.choice((0, 0, 0, 1, 2, 4))
        programs, n = self.program.programs, self.program.iterations
        size = (programs * n + 2 * before + 2) * block
        behind = (before + 1) * block
        m = self.scalar("m", rng.choice((3, block, block + 5, 3 * block, size)))
        self.array("x", "int32", size + 2 * behind, "integers", shared=True)
        self.array("scales", "int32", size, "integers", shared=True)
        self.array("out", "int32", size + 2 * behind, shared=True)
        self.body.append(let("lanes", f"tl.arange(0, {block})", shape=(block,)))
        shift = rng.choice((0, 0, 0, 1, 16))
        index = f"(pid * n + s - {before}) * {block} + lanes"
        if shift:
            index += f" - {shift}"
        row = rng.choice((f"index // {divisor}", f"(index % m) // {divisor}"))
        masked = rng.random() < 0.7
        mask = ", mask=index < m" if masked else ""
        other = f", other={rng.choice((0, 7))}" if masked and rng.random() < 0.6 else ""
        at = size // 2 if before else 0
        bound = "index < m" if rng.random() < 0.8 else "lanes >= 0"
        body: list[Statement] = [let("index", index, shape=(block,))]
        # Lanes that are masked off without another value hold nothing in particular.
        if masked and not other:
            bound = "index < m"
        body += [
            let("scale", f"tl.load(scales + {at} + {row}{mask}{other})", shape=(block,)),
            let("value", f"tl.load(x + {behind} + index)", shape=(block,)),
            do(f"tl.store(out + {behind} + index, value * scale, mask={bound})"),
        ]
        self.body += self.loop("s", "n", down=rng.random() < 0.3, body=body)


class _Turned(Form):
    """Tiles whose rows, or lanes, are stored the other way round, where others have been loaded."""

    name = "turned"

    def write(self) -> None:
        rng = self.rng
        block = rng.choice((16, 64, 128, 256))
        width = rng.choice((1, 1, 1, 8, 32))
        rows = max(4, block // width)
        apart = rng.choice((1, 1, 2)) if width == 1 else width
        span = rows * apart
        count = self.program.iterations
        behind = rng.choice((0, 0, apart, span // 2, span))
        size = count * span + behind
        self.array("x", "int32", size, "integers")
        self.array("out", "int32", size, base="x", behind=behind)
        source, target = ("x", "out") if rng.random() < 0.6 else ("out", "x")
        form = rng.choice(("constant", "constant", "argument", "load"))
        self.count(f"turned: {form}")
        self.body.append(let("i", f"tl.arange(0, {rows})", shape=(rows,)))
        last = (rows - 1) * apart
        down = f"({last} - i * {apart})"
        if form == "argument":
            down = f"({last} + i * {self.scalar('step', -apart)})"
        up, down = (down, f"(i * {apart})") if form == "load" else (f"(i * {apart})", down)
        shape: tuple[int, ...] = (rows,)
        if width > 1:
            columns = f"tl.arange(0, {width})[None, :]"
            up, down = f"({up}[:, None] + {columns})", f"({down}[:, None] + {columns})"
            shape = (rows, width)
        first = f"pid * {size} + k * {span}"
        value = rng.choice(("v", "v + 1", "v * 3"))
        body: list[Statement] = [
            let("v", f"tl.load({source} + {first} + {up})", "int32", shape),
            do(f"tl.store({target} + {first} + {down}, {value})", fenced=True),
        ]
        self.body += self.loop("k", "n", down=rng.random() < 0.3, body=body)
