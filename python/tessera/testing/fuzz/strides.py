# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose offsets pass 2^31 and 2^32, in elements and in bytes.

An array is larger than memory and has pages where a program looks, and where it would look if an
offset lost its upper bits. Offsets come from the program's number, a loop's, an argument or a
constant, forwards or backwards; rows lie side by side or far apart. Indices may be negative, with a
constant beside them that makes the place a good one, itself beyond 2^31. Tiles are loaded, stored,
added to and multiplied, by pointers, block pointers and descriptors.
"""

from __future__ import annotations

import dataclasses
import random
import re
from typing import Callable

from tessera.testing.fuzz.program import (
    Array,
    Assign,
    Expression,
    Nested,
    Part,
    Program,
    Shape,
    Statement,
    Store,
    Value,
)

_BYTES = {"int8": 1, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4, "int64": 8}
_SUMS = {"int8": "int32", "float16": "float32", "bfloat16": "float32"}
# No array is longer, so that a GPU has room for all of them.
_MOST_BYTES = 1 << 35
# Elements: in bytes still less than 2^63.
_MOST_CONSTANT = 1 << 58


@dataclasses.dataclass(frozen=True)
class _Offset:
    """A part of an address in elements: its text, and what it is in a program and an iteration."""

    text: str
    of: Callable[[int, int], int]


def generate_strides(seed: int) -> Program:
    """The kernel about long strides of a seed; the same one on every machine and target."""
    return _Generator(seed).program


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"strides {seed}")
        self.program = Program(
            seed, self.rng.choice((1, 2, 3, 3, 4)), self.rng.choice((1, 2, 3)), [], [], []
        )
        self.types: dict[str, tuple[str, Shape]] = {"pid": ("int32", ()), "n": ("int32", ())}
        self.names = 0
        kind = self.rng.random()
        if kind < 0.6:
            self._multiply()
        else:
            self._copy()

    # --- Statements -------------------------------------------------------------------------

    def _expression(self, text: str, dtype: str, shape: Shape) -> Expression:
        names = frozenset(re.findall(r"\b[a-z]\w*\b", text)) & self.types.keys()
        names -= {"pid", "n"}
        text = text.replace("{", "{{").replace("}", "}}")
        return Expression(text, dtype, shape, (), names)

    def _assign(
        self, body: list[Statement], text: str, dtype: str, shape: Shape, name: str = ""
    ) -> str:
        if not name:
            self.names += 1
            name = f"v{self.names}"
        body.append(Assign(Value(name, dtype, shape), self._expression(text, dtype, shape)))
        self.types[name] = (dtype, shape)
        return name

    def _multiply(self) -> None:
        """A sum of products, of which one operand or the result is far away."""
        body = self.program.statements
        dtype = self.rng.choice(tuple(_SUMS))
        rows, columns, depth = 64, self.rng.choice((16, 32, 64)), self.rng.choice((32, 64))
        n = self.program.iterations
        data = "integers" if dtype == "int8" else "dyadic"
        far = self.rng.choice(("left", "right", "right", "result", "both"))
        result = self._assign(
            body, f"tl.zeros(({rows}, {columns}), tl.{_SUMS[dtype]})", _SUMS[dtype], (rows, columns)
        )
        loop = Nested("for k1 in range(n)", [])
        self.types["k1"] = ("int32", ())
        operands = []
        for side, shape in (("left", (rows, depth)), ("right", (depth, columns))):
            if side == far or far == "both":
                operands.append(self._load_far(body, loop.body, side, dtype, shape, data))
                continue
            height, width = shape
            self.program.arrays.append(Array(side, dtype, height * width * n, data, shared=True))
            place = f"tl.arange(0, {height})[:, None] * {width} + tl.arange(0, {width})[None, :]"
            text = f"tl.load({side} + k1 * {height * width} + {place})"
            operands.append(self._assign(loop.body, text, dtype, shape))
        self._assign(
            loop.body, f"tl.dot({', '.join(operands)}, {result})", _SUMS[dtype], (rows, columns),
            result,
        )  # fmt: skip
        body.append(loop)
        self._store(result, far in ("result", "both"))

    def _copy(self) -> None:
        """Tiles from far away, or to there."""
        body = self.program.statements
        dtype = self.rng.choice(tuple(_BYTES))
        shape = (self.rng.choice((1, 4, 16, 64)), self.rng.choice((16, 32, 64)))
        data = "integers" if dtype.startswith("int") else "dyadic"
        loop = Nested("for k1 in range(n)", [])
        self.types["k1"] = ("int32", ())
        total = self._assign(body, f"tl.zeros({shape}, tl.{dtype})", dtype, shape)
        loaded = self._load_far(body, loop.body, "far", dtype, shape, data)
        self._assign(loop.body, f"({total} ^ {loaded})" if dtype.startswith("int") else
                     f"tl.maximum({total}, {loaded})", dtype, shape, total)  # fmt: skip
        body.append(loop)
        self._store(total, self.rng.random() < 0.6)

    def _store(self, value: str, is_far: bool) -> None:
        body = self.program.statements
        dtype, shape = self.types[value]
        height, width = shape
        if not is_far:
            size = height * width
            place = f"tl.arange(0, {height})[:, None] * {width} + tl.arange(0, {width})[None, :]"
            self.program.arrays.append(Array("out", dtype, size))
            text = f"tl.store(out + pid * {size} + {place}, {value})"
            body.append(Store("out", self._expression(text, "void", ())))
            return
        adds = dtype in ("int32", "float32", "int64") and self.rng.random() < 0.25
        if dtype == "float32" and not adds and self.rng.random() < 0.5:
            dtype = "float16"
            value = self._assign(body, f"{value}.to(tl.float16)", dtype, shape)
        data = "integers" if dtype.startswith("int") else "dyadic"
        stride = self._row_stride(dtype, shape)
        for _ in range(20):
            offset = self._offset(dtype, stride, shape, in_loop=False)
            begins = [offset.of(pid, 0) for pid in range(self.program.programs)]
            places = [self._places(begin, stride, shape) for begin in begins]
            taken = sorted(place for tile in places for place in tile)
            if all(a + length <= b for (a, length), (b, _) in zip(taken, taken[1:])):
                break
        else:
            self.program.programs = 1
        mask, _ = self._mask(shape)
        self._far_array("result", dtype, data, offset, stride, shape, in_loop=False)
        way = self.rng.random()
        if not adds and not mask and way < 0.2:
            text = f"{self._descriptor('result', offset, stride, shape)}.store([0, 0], {value})"
        elif not adds and not mask and way < 0.35:
            text = f"tl.store({self._block('result', offset, stride, shape)}, {value})"
        else:
            name = "tl.atomic_add" if adds else "tl.store"
            text = f"{name}({self._pointers('result', offset, stride, shape)}, {value}{mask})"
        body.append(Store("result", self._expression(text, "void", ())))

    def _load_far(
        self,
        before: list[Statement],
        body: list[Statement],
        name: str,
        dtype: str,
        shape: Shape,
        data: str,
    ) -> str:
        """A tile of a long array in each iteration; gives its name."""
        stride = self._row_stride(dtype, shape)
        way = self.rng.random()
        if way < 0.15:
            return self._load_rows(body, name, dtype, shape, data)
        offset = self._offset(dtype, stride, shape, in_loop=way > 0.3)
        turned = stride >= shape[0] and stride < 1 << 20 and self.rng.random() < 0.25
        if 0.3 < way < 0.5:
            # The loop moves pointers along.
            step = self._stride(dtype, self.program.iterations)
            offset = self._offset(dtype, stride, shape, in_loop=False)
            pointers = self._assign(
                before, self._pointers(name, offset, stride, shape), f"pointers:{dtype}", shape
            )
            mask, other = self._mask(shape)
            loaded = self._assign(body, f"tl.load({pointers}{mask}{other})", dtype, shape)
            self._assign(body, f"({pointers} + {step})", f"pointers:{dtype}", shape, pointers)
            first = offset.of
            moved = _Offset("", lambda pid, k: first(pid, k) + k * step)
            self._far_array(name, dtype, data, moved, stride, shape, in_loop=True)
            return loaded
        if turned:
            # Rows of the tile are columns of the array.
            self._far_array(name, dtype, data, offset, stride, shape[::-1], in_loop=True)
            pointers = self._pointers(name, offset, stride, shape, turned=True)
        else:
            self._far_array(name, dtype, data, offset, stride, shape, in_loop=True)
            pointers = self._pointers(name, offset, stride, shape)
        mask, other = self._mask(shape)
        if way > 0.85 and not turned:
            text = f"{self._descriptor(name, offset, stride, shape)}.load([0, 0])"
        elif way > 0.75 and not turned:
            check = self.rng.choice(("", ", boundary_check=(0, 1)", ", boundary_check=(0,)"))
            text = f"tl.load({self._block(name, offset, stride, shape)}{check})"
        else:
            text = f"tl.load({pointers}{mask}{other})"
        return self._assign(body, text, dtype, shape)

    def _load_rows(
        self,
        body: list[Statement],
        name: str,
        dtype: str,
        shape: Shape,
        data: str,
    ) -> str:
        """Rows by their number, in 64 bits and with a bound, or by a descriptor in 32."""
        height, width = shape
        stride = self._aligned(dtype, max(width, self.rng.choice((64, 1024, 4096))))
        if self.rng.random() < 0.4:
            step = self._aligned(dtype, (1 << self.rng.choice((29, 31, 32))) // stride)
            most = _MOST_BYTES // _BYTES[dtype] // stride // max(1, self.program.iterations)
            step = max(height, min(step, most - height))
            first = _Offset("", lambda pid, k: k * step * stride)
            self._far_array(name, dtype, data, first, stride, shape, in_loop=True)
            rows = step * (self.program.iterations + 1)
            if self.rng.random() < 0.5:
                self.program.parts.append(
                    Part(
                        f"{name}_view",
                        "descriptor",
                        (name,),
                        (rows, width),
                        stride,
                        (height, width),
                    )
                )
                return self._assign(body, f"{name}_view.load([k1 * {step}, 0])", dtype, shape)
            made = (
                f"tl.make_tensor_descriptor({name}, [{rows}, {width}], [{stride}, 1], "
                f"[{height}, {width}])"
            )
            return self._assign(body, f"{made}.load([k1 * {step}, 0])", dtype, shape)
        # Most lie beyond the bound, and some at what 32 bits would make of them.
        far = self.rng.choice((1 << 31, 1 << 32, (1 << 32) + 16, (1 << 31) - 32, 1 << 33))
        number = self.rng.choice(("pid", "k1"))
        index = f"({number}.to(tl.int64) * {far} + tl.arange(0, {height}))[:, None]"
        limit = self.rng.choice((height, height // 2 + 1, 4 * height))
        mask = f"{index} < {limit}"
        if self.rng.random() < 0.3:
            mask = f"({mask}) & (tl.arange(0, {width})[None, :] < {self.rng.randint(1, width)})"
        first = _Offset("", lambda pid, k: 0)
        self._far_array(name, dtype, data, first, stride, (4 * height, width), in_loop=True)
        text = f"{name} + {index} * {stride} + tl.arange(0, {width})[None, :]"
        return self._assign(body, f"tl.load({text}, mask={mask}, other=0)", dtype, shape)

    # --- Addresses ----------------------------------------------------------------------------

    def _pointers(
        self, name: str, offset: _Offset, stride: int, shape: Shape, turned: bool = False
    ) -> str:
        rows, columns = (f"tl.arange(0, {extent})" for extent in shape)
        if stride >= 1 << 20 or self.rng.random() < 0.3:
            rows, columns = (f"{index}.to(tl.int64)" for index in (rows, columns))
        rows, columns = f"{rows}[:, None]", f"{columns}[None, :]"
        if turned:
            place = f"{rows} + {columns} * {stride}"
        elif self.rng.random() < 0.25:
            place = self._below_zero(rows, columns, stride)
        else:
            place = f"{rows} * {stride} + {columns}"
        if self.rng.random() < 0.3:
            return f"{name} + (({place}).to(tl.int64) + {offset.text})"
        return f"{name} + {offset.text} + {place}"

    def _below_zero(self, rows: str, columns: str, stride: int) -> str:
        """The same place by numbers of rows or columns that are negative, and a large constant."""
        far = min(
            self.rng.choice((1, 16, 1 << 16, 1 << 24, (1 << 31) - 64)), _MOST_CONSTANT // stride
        )
        if self.rng.random() < 0.5:
            self.program.counts["negative columns"] += 1
            return f"{rows} * {stride} + ({columns} - {far}) + {far}"
        self.program.counts["negative rows"] += 1
        # A product beyond 32 bits is one of numbers of 64.
        if far * stride >= 1 << 31 and ".to(" not in rows:
            rows = f"{rows}.to(tl.int64)"
        moved = f"({rows} - {far}) * {stride}"
        if self.rng.random() < 0.5:
            return f"{far * stride} + ({moved}) + {columns}"
        return f"{moved} + {columns} + {far * stride}"

    def _descriptor(self, name: str, offset: _Offset, stride: int, shape: Shape) -> str:
        return (
            f"tl.make_tensor_descriptor({name} + {offset.text}, [{shape[0]}, {shape[1]}], "
            f"[{stride}, 1], [{shape[0]}, {shape[1]}])"
        )

    def _block(self, name: str, offset: _Offset, stride: int, shape: Shape) -> str:
        return (
            f"tl.make_block_ptr({name} + {offset.text}, {shape}, ({stride}, 1), (0, 0), {shape}, "
            "(1, 0))"
        )

    def _mask(self, shape: Shape) -> tuple[str, str]:
        """A mask that excludes some rows or columns, and the value that is loaded there."""
        rows, columns = (f"tl.arange(0, {extent})" for extent in shape)
        row_mask = f"{rows}[:, None] < {self.rng.choice((shape[0], shape[0] // 2 + 1))}"
        column_mask = f"{columns}[None, :] < {self.rng.choice((shape[1], shape[1] - 3))}"
        kind = self.rng.random()
        if kind < 0.4:
            return "", ""
        if kind < 0.65:
            return f", mask={row_mask}", ", other=0"
        if kind < 0.85:
            return f", mask={column_mask}", ", other=0"
        return f", mask=({row_mask}) & ({column_mask})", ", other=0"

    def _aligned(self, dtype: str, elements: int) -> int:
        unit = max(1, 16 // _BYTES[dtype])
        return -(-elements // unit) * unit

    def _row_stride(self, dtype: str, shape: Shape) -> int:
        """Rows follow each other, or lie so far apart that the last is beyond 2^31."""
        near = self.rng.choice((shape[1], 64, 128, 1024))
        if self.rng.random() < 0.15 and shape[0] >= 16:
            near = (1 << self.rng.choice((31, 32))) // shape[0] + self.rng.choice((0, 64))
        return self._aligned(dtype, max(near, *shape))

    def _stride(self, dtype: str, times: int) -> int:
        """Elements, of which so many times make less than the longest array."""
        size = _BYTES[dtype]
        stride = 1 << self.rng.choice((24, 29, 30, 31, 31, 32))
        if self.rng.random() < 0.4:
            stride //= size
        stride += self.rng.choice((0, 0, 64, -64, 4096, 1 << 20))
        stride = self._aligned(dtype, min(stride, _MOST_BYTES // size // (2 * max(1, times))))
        return stride + (1 if self.rng.random() < 0.05 else 0)

    def _offset(self, dtype: str, stride: int, shape: Shape, in_loop: bool) -> _Offset:
        """The sum of a large number and of others."""
        far = ["program", "program", "backwards", "argument", "both", "constant", "negative"]
        far.append("two constants")
        of_loop = ["loop", "loop", "product", "negative loop"]
        chosen = [self.rng.choice([*far, *of_loop] if in_loop else far)]
        near = ["near", "program", "tiles"] if in_loop else ["near", "program"]
        chosen += [kind for kind in near if self.rng.random() < 0.25]
        self.rng.shuffle(chosen)
        parts = [self._part(kind, dtype, stride, shape, len(chosen)) for kind in chosen]
        return _Offset(
            " + ".join(part.text for part in parts),
            lambda pid, k: sum(part.of(pid, k) for part in parts),
        )

    def _part(self, kind: str, dtype: str, stride: int, shape: Shape, parts: int) -> _Offset:
        programs, n = self.program.programs, self.program.iterations
        self.program.counts[f"offset: {kind}"] += 1
        if kind.startswith("negative"):
            # Less than 0, and a constant of many more strides than the number has.
            s = self._stride(dtype, (n if "loop" in kind else programs) * parts)
            far = min(
                self.rng.choice((1, programs + n, 1 << 10, (1 << 31) - 1)), _MOST_CONSTANT // s
            )
            number = "k1" if "loop" in kind else "pid"
            wide = self.rng.choice(
                (f"({number} - {far}).to(tl.int64)", f"({number}.to(tl.int64) - {far})")
            )
            text = self.rng.choice((f"({wide} * {s} + {far * s})", f"({far * s} + {wide} * {s})"))
            if "loop" in kind:
                return _Offset(text, lambda pid, k: k * s)
            return _Offset(text, lambda pid, k: pid * s)
        if kind == "program":
            s = self._stride(dtype, programs * parts)
            factor = self.rng.choice((1, 1, 1, 64)) if s % 64 == 0 else 1
            text = f"({s // factor} * {factor})" if factor > 1 else f"{s}"
            return _Offset(f"pid.to(tl.int64) * {text}", lambda pid, k: pid * s)
        if kind == "backwards":
            s = self._stride(dtype, programs * parts)
            last = s * (programs - 1)
            return _Offset(f"({last} - pid.to(tl.int64) * {s})", lambda pid, k: last - pid * s)
        if kind == "argument":
            s = self._stride(dtype, programs * parts)
            name = f"m{len(self.program.scalars)}"
            self.program.scalars.append((name, s))
            if self.rng.random() < 0.5:
                return _Offset(name, lambda pid, k: s)
            return _Offset(f"pid.to(tl.int64) * {name}", lambda pid, k: pid * s)
        if kind == "both":
            s = self._stride(dtype, programs * parts)
            t = self._aligned(dtype, shape[0] * min(stride, 1 << 12))
            text = f"((pid // 2).to(tl.int64) * {s} + pid % 2 * {t})"
            return _Offset(text, lambda pid, k: pid // 2 * s + pid % 2 * t)
        if kind == "constant":
            s = self._stride(dtype, parts)
            return _Offset(f"{s}", lambda pid, k: s)
        if kind == "two constants":
            # Each of 32 bits; their sum may have more.
            s = min(self._stride(dtype, parts), (1 << 32) - 256)
            first = self._aligned(dtype, min(s // 2 + 64, (1 << 31) - 64))
            return _Offset(f"{first} + {s - first}", lambda pid, k: s)
        if kind == "loop":
            s = self._stride(dtype, n * parts)
            return _Offset(f"k1.to(tl.int64) * {s}", lambda pid, k: k * s)
        if kind == "product":
            s = self._stride(dtype, programs * n * parts)
            text = f"k1.to(tl.int64) * (pid + 1).to(tl.int64) * {s}"
            return _Offset(text, lambda pid, k: k * (pid + 1) * s)
        # In 32 bits.
        t = min(self._aligned(dtype, max(shape) * min(stride, 1 << 12)), 1 << 28)
        if kind == "tiles":
            return _Offset(f"k1 * {t}", lambda pid, k: k * t)
        return _Offset(f"pid * {t}", lambda pid, k: pid * t)

    def _places(self, begin: int, stride: int, shape: Shape) -> list[tuple[int, int]]:
        height, width = shape
        if height * stride <= 1 << 17:
            return [(begin, (height - 1) * stride + width)]
        return [(begin + row * stride, width) for row in range(height)]

    def _far_array(
        self,
        name: str,
        dtype: str,
        data: str,
        offset: _Offset,
        stride: int,
        shape: Shape,
        in_loop: bool,
    ) -> None:
        """Adds an array with all that is touched in it, and decoys."""
        size = _BYTES[dtype]
        places = set()
        for pid in range(self.program.programs):
            for k in range(self.program.iterations if in_loop else 1):
                places.update(self._places(offset.of(pid, k), stride, shape))
        end = max(begin + length for begin, length in places)
        decoys = {(0, shape[1])}
        for begin, length in places:
            for bits in (31, 32):
                decoys.add((begin % (1 << bits), length))
                decoys.add((begin * size % (1 << bits) // size, length))
                decoys.add(((1 << bits) - shape[1], length))
        # If the two overlap, the latter's value is kept.
        kept = [place for place in sorted(decoys) if place[0] + place[1] <= end]
        listed = tuple(_merge(kept + sorted(places)))
        self.program.arrays.append(Array(name, dtype, end, data, shared=True, places=listed))


def _merge(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same elements, each once."""
    merged: list[tuple[int, int]] = []
    for begin, length in sorted(places):
        if merged and begin <= sum(merged[-1]):
            first = merged[-1][0]
            merged[-1] = (first, max(sum(merged[-1]), begin + length) - first)
        else:
            merged.append((begin, length))
    return merged
