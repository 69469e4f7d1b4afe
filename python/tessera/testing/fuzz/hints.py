# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels with promises about their indices, true ones and false ones.

A broken promise must change nothing on a CPU: no result, and no place that is accessed. On a GPU a
promise makes accesses up to 16 bytes wide. So the kernel's text for GPUs has promises only of
indices that keep them for 16 bytes (`granule`), although these promises may say more.

Arrays lie next to pages that may not be accessed (arrays.py), and every index stays in its
program's part of an array. So an access that relies on a false promise shows in the result, in a
guard band, or at once.
"""

from __future__ import annotations

import dataclasses
import random
import re

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

_EXTENTS = (16, 32, 64, 128, 256)
_BYTES = {"int32": 4, "float32": 4, "float16": 2, "int16": 2, "int8": 1, "int64": 8}


@dataclasses.dataclass(frozen=True)
class _Index:
    """Indices of `extent` lanes, from 0 to less than `limit`.

    Every aligned run of `granule` elements counts up, and begins at a multiple of that.
    """

    text: str
    extent: int
    limit: int
    granule: int = 1


def _expression(text: str, dtype: str, shape: Shape, gpu: str = "") -> Expression:
    """The text, with another one for GPUs if there is one."""
    names = frozenset(re.findall(r"[A-Za-z_]\w*", text))
    return Expression(text, dtype, shape, names=names, assembly=gpu)


def generate_hints(seed: int) -> Program:
    """The kernel about promises of a seed; the same one on every machine and for every target."""
    return _Generator(seed).program


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"hints {seed}")
        self.names = 0
        self.size = 1024
        self.program = Program(
            seed, self.rng.choice((1, 2, 3)), self.rng.choice((1, 2, 3)), [], [], []
        )
        self.program.scalars = [
            ("m0", self.rng.choice((1, 3, 8, 16, 40, 64, 100, 128, 256))),
            ("m1", self.rng.choice((0, 1, 4, 16, 32, 96, 128))),
        ]
        self.program.arrays.append(Array("index", "int32", self.size, "integers"))
        body = self.program.statements
        kinds = (self._copy, self._copy, self._scatter, self._atomic, self._rows, self._dot)
        for _ in range(self.rng.randint(1, 3)):
            target = body
            if self.rng.random() < 0.3:
                loop = Nested("for i in range(n)", [])
                body.append(loop)
                target = loop.body
            self.step = "i" if target is not body else "0"
            self.rng.choice(kinds)(target)

    # --- Indices ----------------------------------------------------------------------------

    def _index(self, extent: int, limit: int) -> _Index:
        """Indices of one of the forms that kernels have, all of them below `limit`."""
        rng = self.rng
        lanes = f"tl.arange(0, {extent})"
        start = rng.choice(("0", "m1", "pid * 16", "16", "3", f"{self.step} * 16", "m1 + 8"))
        place = f"({start} + {lanes})"
        wrap = rng.choice(("m0", str(rng.choice((8, 16, 24, extent // 2, extent, limit)))))
        if wrap != "m0":
            wrap = str(min(int(wrap), limit))
        elif self.program.scalars[0][1] > limit:
            wrap = f"tl.minimum(m0, {limit})"
        kind = rng.randrange(9)
        if kind < 3:
            return _Index(f"({place} % {wrap})", extent, limit)
        if kind == 3:
            return _Index(f"tl.where({place} < {wrap}, {place}, 0)", extent, limit)
        if kind == 4:
            return _Index(f"tl.minimum({place}, {wrap} - 1)", extent, limit)
        if kind == 5:
            return _Index(f"({lanes} * {rng.choice((0, 2, 3))} % {wrap})", extent, limit)
        if kind == 6:
            return _Index(f"({lanes} // {rng.choice((2, 4, 8, extent))} % {wrap})", extent, limit)
        # Runs at places that data chooses.
        granule = rng.choice((1, 4, 8, 16, min(extent, limit)))
        blocks = max(1, limit // granule)
        chosen = f"(tl.load(index + pid * {self.size} + {lanes} // {granule}) & 0x7fffffff)"
        return _Index(
            f"({chosen} % {blocks} * {granule} + {lanes} % {granule})", extent, limit, granule
        )

    def _promise(self, index: _Index, element_bytes: int) -> Expression:
        """The indices under promises, which may be broken but on a GPU."""
        rng = self.rng
        lengths = [length for length in (2, 4, 8, 16, 32, index.extent) if length <= index.extent]
        run, multiple = rng.choice(lengths + [index.extent] * 3), rng.choice(lengths)
        text, shape = index.text, (index.extent,)
        kind = rng.random()
        if kind < 0.15:
            return _expression(f"tl.max_constancy({text}, {run})", "int32", shape, text)
        if kind < 0.6:
            inner = f"tl.multiple_of({text}, {multiple})"
            text = f"tl.max_contiguous({inner}, {run})"
        elif kind < 0.8:
            text = f"tl.max_contiguous({text}, {run})"
        elif kind < 0.9:
            text = f"tl.multiple_of(tl.max_contiguous({text}, {run}), {multiple})"
        else:
            text = f"tl.multiple_of({text}, {multiple})"
        vector = 16 // element_bytes
        is_kept = index.granule % vector == 0 and run >= vector and multiple <= index.granule
        return _expression(text, "int32", shape, "" if is_kept else index.text)

    # --- Statements -------------------------------------------------------------------------

    def _array(self, dtype: str, data: str) -> Array:
        array = Array(f"a{len(self.program.arrays)}", dtype, self.size, data)
        self.program.arrays.append(array)
        return array

    def _input(self, dtype: str) -> Array:
        return self._array(dtype, "dyadic" if dtype.startswith("float") else "integers")

    def _assign(self, body: list[Statement], expression: Expression) -> str:
        self.names += 1
        name = f"v{self.names}"
        body.append(Assign(Value(name, expression.dtype, expression.shape), expression))
        return name

    def _hinted(self, body: list[Statement], extent: int, limit: int, element_bytes: int) -> str:
        return self._assign(body, self._promise(self._index(extent, limit), element_bytes))

    def _mask(self, body: list[Statement], extent: int) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            return ""
        left = f"tl.arange(0, {extent})"
        if kind < 0.75:
            left = self._hinted(body, extent, extent, 1)
        mask = f"({left} < m0)"
        if kind > 0.9:
            run = self.rng.choice((2, 8, extent))
            promised = f"tl.max_constancy({mask}, {run})"
            mask = self._assign(body, _expression(promised, "int1", (extent,), mask))
        return mask

    def _store(self, body: list[Statement], text: str, array: Array) -> None:
        body.append(Store(array.name, _expression(text, "void", ()), fenced=True))

    def _copy(self, body: list[Statement]) -> None:
        """out[lane] = in[index]"""
        dtype = self.rng.choice(list(_BYTES))
        extent = self.rng.choice(_EXTENTS)
        source, result = self._input(dtype), self._array(dtype, "zeros")
        index = self._hinted(body, extent, self.rng.choice((extent, self.size)), _BYTES[dtype])
        mask = self._mask(body, extent)
        masked = f", mask={mask}, other=0" if mask else ""
        base = f"pid * {self.size}"
        pointers = f"{source.name} + {base} + {index}"
        text, gpu = f"tl.load({pointers}{masked})", ""
        if self.rng.random() < 0.2:
            run = self.rng.choice((4, 16, extent))
            text, gpu = f"tl.load(tl.max_contiguous({pointers}, {run}){masked})", text
        value = self._assign(body, _expression(text, dtype, (extent,), gpu))
        lanes = f"tl.arange(0, {extent})"
        self._store(body, f"tl.store({result.name} + {base} + {lanes}, {value})", result)

    def _scatter(self, body: list[Statement]) -> None:
        """out[index] = f(index): all lanes that store to a place store the same value."""
        dtype = self.rng.choice(("int32", "float32", "int16", "int64"))
        extent = self.rng.choice(_EXTENTS)
        result = self._array(dtype, "zeros")
        index = self._hinted(body, extent, self.rng.choice((extent, self.size)), _BYTES[dtype])
        mask = self._mask(body, extent)
        masked = f", mask={mask}" if mask else ""
        place = f"{result.name} + pid * {self.size} + {index}"
        self._store(body, f"tl.store({place}, ({index} + 1).to(tl.{dtype}){masked})", result)

    def _atomic(self, body: list[Statement]) -> None:
        extent = self.rng.choice(_EXTENTS)
        result = self._array("int32", "zeros")
        index = self._hinted(body, extent, self.rng.choice((extent, self.size)), 4)
        mask = self._mask(body, extent)
        masked = f", mask={mask}" if mask else ""
        place = f"{result.name} + pid * {self.size} + {index}"
        kind = self.rng.choice(("add", "max", "or"))
        self._store(body, f"tl.atomic_{kind}({place}, {index} + 1{masked})", result)

    def _rows(self, body: list[Statement]) -> None:
        """Tiles of two dimensions, with promises of rows, of columns or of all offsets."""
        dtype = self.rng.choice(("int32", "float32", "float16"))
        rows, columns = self.rng.choice((4, 8, 16)), self.rng.choice((8, 16, 32, 64))
        source, result = self._input(dtype), self._array(dtype, "zeros")
        r = self._hinted(body, rows, self.size // columns, 1)
        c = self._hinted(body, columns, columns, _BYTES[dtype])
        offsets = f"({r}[:, None] * {columns} + {c}[None, :])"
        if self.rng.random() < 0.3:
            lists = self.rng.choice((f"[1, {columns}]", f"[{rows}, 1]", "[1, 4]"))
            hint = self.rng.choice(("max_contiguous", "max_constancy"))
            text = f"tl.{hint}({offsets}, {lists})"
            offsets = self._assign(body, _expression(text, "int32", (rows, columns), offsets))
        base = f"pid * {self.size}"
        load = f"tl.load({source.name} + {base} + {offsets})"
        value = self._assign(body, _expression(load, dtype, (rows, columns)))
        place = f"tl.arange(0, {rows})[:, None] * {columns} + tl.arange(0, {columns})[None, :]"
        self._store(body, f"tl.store({result.name} + {base} + {place}, {value})", result)

    def _dot(self, body: list[Statement]) -> None:
        """A product of tiles of which rows and columns are promised, as matmuls have them."""
        extent, inner = 16, self.rng.choice((16, 32))
        a, b = self._input("float16"), self._input("float16")
        result = self._array("float32", "zeros")
        base = f"pid * {self.size}"
        r = self._hinted(body, extent, self.size // inner, 1)
        c = self._hinted(body, extent, extent, 2)
        k = f"tl.arange(0, {inner})"
        left = f"tl.load({a.name} + {base} + {r}[:, None] * {inner} + {k}[None, :])"
        right = f"tl.load({b.name} + {base} + {k}[:, None] * {extent} + {c}[None, :])"
        left = self._assign(body, _expression(left, "float16", (extent, inner)))
        right = self._assign(body, _expression(right, "float16", (inner, extent)))
        dot = self._assign(
            body, _expression(f"tl.dot({left}, {right})", "float32", (extent, extent))
        )
        place = f"tl.arange(0, {extent})[:, None] * {extent} + tl.arange(0, {extent})[None, :]"
        self._store(body, f"tl.store({result.name} + {base} + {place}, {dot})", result)
