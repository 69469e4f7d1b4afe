# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that test the language's types and functions beside tiles of numbers.

They test aggregates, tuples and dataclasses as values of loops and branches and as arguments of
functions. They also test descriptors with blocks that are partly outside, functions of neighbours,
libdevice, 8-bit floats and scaled dots. Further forms have addresses in memory, tiles of many
dimensions, and arguments that hold arrays.
"""

from __future__ import annotations

import random
import re
from typing import Any, Callable

from tessera.language.extra import libdevice
from tessera.testing.fuzz.expressions import EXTENTS, A, B, Expressions, is_extent
from tessera.testing.fuzz.program import (
    BOOL,
    FLOATS,
    INTS,
    UINTS,
    Array,
    Assign,
    Expression,
    Part,
    Program,
    Shape,
    Statement,
    Store,
    Value,
    count,
)
from tessera.testing.fuzz.values import Generator

_SIZES = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
          "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8, BOOL: 1}  # fmt: skip
_FLOATS8 = ("float8e5", "float8e4nv", "float8e5b16", "float8e4b8", "float8e4b15")
_KINDS = ("pair", "pair", "state", "named", "record", "tuple")
_SPELLED = {"fp32": "float32", "fp64": "float64"}

# Functions of libdevice whose results are the same everywhere (docs/Numerics.md).
_EXACT_NAMES = re.compile(
    r"(add|sub|mul|div|fma|sqrt|rcp)_r[nzdu]|\w+2\w+_r[nzdu]|\w+_as_\w+|double2(hi|lo)int|hiloint2double"
    r"|popc|clz|ffs|brev|byte_perm|mulhi|mul24|sad|hadd|rhadd|copysign|nextafter|ldexp|scalbn|ilogb|logb"
    r"|fmod|remainder|fdim|floor|ceil|trunc|round|rint|nearbyint|llrint|llround|saturatef|rsqrt_rn|abs|fma"
    r"|isnan|isinf|signbit|finitef|isfinited"
)
# The sign and the bits of a NaN are not.
_SEES_NAN = re.compile(r"\w+_as_\w+|double2(hi|lo)int|copysign|signbit")
# Those that check.py has a reference of, and what magnitude keeps most results finite.
_NEAR = {"hypot": None, "cbrt": None, "exp10": 40.0, "log10": None, "atan": None, "atan2": None,
         "asin": 2.0, "acos": 2.0, "sinh": 100.0, "cosh": 100.0, "asinh": None, "acosh": None,
         "atanh": 2.0, "erfc": 30.0, "expm1": 100.0, "log1p": None}  # fmt: skip


def _dtype(type: Any) -> str:
    """The name that `tl` has it by."""
    return _SPELLED.get(str(type), str(type))


def _exact_functions() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """By the dtype of the result: a function's name and the dtypes of its arguments."""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for name, function in sorted(libdevice.FUNCTIONS.items()):
        if not _EXACT_NAMES.fullmatch(name):
            continue
        signatures = [
            (tuple(_dtype(x) for x in s.arguments), _dtype(s.result)) for s in function.signatures
        ]
        for dtype in ("float32", "float64") if not signatures else ():
            signatures.append(((dtype,) * function.arity, dtype))
        for arguments, result in signatures:
            found.setdefault(result, []).append((name, arguments))
    return found


_EXACT = _exact_functions()


def generate_language(seed: int, rounded: bool) -> Program:
    """The kernel about the language of a seed. With `rounded` it has no quotient that GPUs do not
    round."""
    return _Generator(seed, rounded).program


class _Constructs(Expressions):
    """Draws objects, too; those that variables hold are in `objects`."""

    def __init__(self, rng: random.Random, rounded: bool) -> None:
        super().__init__(rng, rounded)
        self.objects: list[Value] = []
        self.iterations = 0

    # --- Objects ------------------------------------------------------------------------

    def object(self, kind: str, dtype: str, shape: Shape, depth: int) -> Expression:
        """One of a kind, whose tiles have that dtype and shape."""
        rng, full = self.rng, f"{kind}:{dtype}"
        known = [v for v in self.objects if (v.dtype, v.shape) == (full, shape)]
        if known and rng.random() < 0.6:
            value = rng.choice(known)
            mine = Expression(value.name, full, shape, (), frozenset([value.name]))
        else:
            a, b = (self._tile(dtype, shape, depth - 1) for _ in range(2))
            text = {
                "pair": "Pair({0}, b={1})" if rng.random() < 0.5 else "Pair({0}, {1}, 3)",
                "state": "State.of({0}, {1}, n)",
                "named": "Named({0}, y={1})",
                "record": "Record({0}, {1})",
                "tuple": "({0}, {1})" if rng.random() < 0.7 else "tl.tuple(({0}, {1}))",
            }[kind]
            mine = Expression(text, full, shape, (a, b))
        if depth <= 0 or rng.random() < 0.3:
            return mine
        return self._changed(kind, mine, depth)

    def _changed(self, kind: str, x: Expression, depth: int) -> Expression:
        """Another object made of one."""
        rng, dtype = self.rng, x.dtype.partition(":")[2]
        shape = x.shape
        forms: list[tuple[str, str]] = []  # what stands for the second operand, and the text
        if kind == "pair":
            forms = [
                ("", "{0}.turned()"), ("pair", "({0} + {1})"), ("tile", "({0} * {1})"),
                ("tile", "{0}.repeated({1})"), ("", "apart({0}, n)"), ("", "carried({0}, n)"),
                ("tile", "tl.aggregate_replace({0}, a={1})"), ("pair", "({0} if n > 2 else {1})"),
                ("pair", "({1} if pid == 1 else {0})"), ("", "carried(pair={0}, n=pid)"),
            ]  # fmt: skip
        elif kind == "state":
            forms = [("tile", "{0}.next({1})"), ("", "{0}.after(n)"), ("state", "({0} if pid > 0 else {1})"),
                     ("pairs", "State({1}, {0}.parts)"), ("tile", "tl.aggregate_replace({0}, parts=({1}, pid))")]  # fmt: skip
        elif kind == "tuple":
            forms = [("", "swapped({0}, n)"), ("tuple", "({0} if n > 2 else {1})"), ("", "({0}[1], {0}[0])"),
                     ("tile", "({0}[:1] + ({1},))")]  # fmt: skip
        else:
            name = kind.capitalize()
            forms = [(kind, "({0} if n > 2 else {1})"), ("", name + "({0}.y, {0}.x)")]
        other, text = rng.choice(forms)
        if other == "tile":
            return Expression(text, x.dtype, shape, (x, self._tile(dtype, shape, depth - 1)))
        if not other:
            return Expression(text, x.dtype, shape, (x,))
        if other == "pairs":
            return Expression(
                text, x.dtype, shape, (x, self.object("pair", dtype, shape, depth - 1))
            )
        return Expression(text, x.dtype, shape, (x, self.object(kind, dtype, shape, depth - 1)))

    def _tile(self, dtype: str, shape: Shape, depth: int) -> Expression:
        """One whose type is what it says, and which is no known number."""
        x = self.draw(dtype, shape, depth)
        return Expression(f"tl.cast({A}, tl.{dtype})", dtype, shape, (x,)) if not x.names else x

    def _of_object(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        """A tile out of an object."""
        kind = self.rng.choice(_KINDS)
        if dtype == BOOL:
            return None
        x = self.object(kind, dtype, shape, depth - 1)
        forms = {
            "pair": ["{0}.a", "{0}.b", "{0}[1]", "{0}[0]", "{0}.total", "{0}.chosen(1)", "{0}.chosen(0)",
                     "{0}.with_odd()", "{0}.scaled()", "tile"],
            "state": ["{0}.pair.a", "{0}.pair.total", "{0}.parts[0]", "{0}.counted()"],
            "named": ["{0}.x", "{0}[1]", "{0}.y"],
            "record": ["{0}.x", "offset_of({0})"],
            "tuple": ["{0}[0]", "{0}[-1]", "picked({0}, 1)", "picked({0}, which=0)"],
        }[kind]  # fmt: skip
        if kind == "tuple" and dtype not in FLOATS:
            forms += ["all_of(*{0})", "both_of({0})"]
        text = self.rng.choice(forms)
        if text == "tile":
            other = self._tile(dtype, shape, depth - 1)
            return Expression(f"first_of({A}, weight={B})", dtype, shape, (x, other))
        return Expression(text, dtype, shape, (x,))

    # --- Productions ----------------------------------------------------------------------

    def _integers(self) -> list[Callable[[str, Shape, int], Expression | None]]:
        mine = [self._mapped, self._mapped_pointers, self._library, self._library, self._scaled_dot, self._addresses,
                self._reduced_by_function, self._bits_of_float8]  # fmt: skip
        return self._general() * 2 + mine * 2 + super()._integers()

    def _floats(self) -> list[Callable[[str, Shape, int], Expression | None]]:
        mine = [
            self._mapped,
            self._mapped_pointers,
            self._library,
            self._library,
            self._float8,
            self._scaled_dot,
        ]
        return self._general() * 2 + mine * 2 + super()._floats()

    def _rearranging(self) -> list[Callable[[str, Shape, int], Expression | None]]:
        return [self._topk, self._argsorted, self._merged, self._many_dimensions,
                self._from_scalar] + super()._rearranging()  # fmt: skip

    def _general(self) -> list[Callable[[str, Shape, int], Expression | None]]:
        return [self._of_object, self._of_object, self._by_descriptor, self._by_descriptor]

    def _mapped(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if not shape:
            return None
        a, b = self.draw(dtype, shape, depth - 1), self.draw(dtype, self._smaller(shape), depth - 1)
        kind = self.rng.choice(("one", "two", "two_of_each", "four"))
        pack = {"one": 1, "four": 4}.get(kind, 2)
        if count(shape) % pack or not is_extent(count(shape) // pack):
            return None
        if pack > 1 and not b.shape:
            b = self.draw(dtype, shape, depth - 1)
        which = f"[{self.rng.randrange(2)}]" if kind == "two_of_each" else ""
        packed = f", pack={pack}" if pack > 1 or self.rng.random() < 0.5 else ""
        text = f"tl.map_elementwise({kind}, {A}, {B}{packed}){which}"
        return Expression(text, dtype, shape, (a, b))

    def _mapped_pointers(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        """The values that functions of pointers load, or the values at the pointers that they
        return."""
        if not shape or self._loading:
            return None
        array = self.rng.choice(self.inputs)
        x = self.draw("int32", shape, depth - 1)
        tile = f"({array.name} + pid * {array.size} + ({A} & {array.size - 1}))"
        if self.rng.random() < 0.5 and count(shape) % 2 == 0 and is_extent(count(shape) // 2):
            text = f"tl.load(tl.map_elementwise(pointed_to, {tile}, pack=2))"
            return self.cast(Expression(text, array.dtype, shape, (x,)), dtype)
        y = self.draw("int32", shape, depth - 1)
        text = f"tl.map_elementwise(pointed, {tile}, {B})"
        return self.cast(Expression(text, array.dtype, shape, (x, y)), dtype)

    def _library(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if dtype not in _EXACT:
            return None
        name, types = self.rng.choice(_EXACT[dtype])
        operands = [self.draw(x, shape, depth - 1) for x in types]
        if _SEES_NAN.fullmatch(name):
            operands = [self.without_nan(x) if x.dtype in FLOATS else x for x in operands]
        places = ", ".join(f"{{{i}}}" for i in range(len(operands)))
        text = f"libdevice.{name}({places})"
        if dtype in FLOATS and not _SEES_NAN.fullmatch(name):
            return Expression(text, dtype, shape, tuple(operands))
        return Expression(f"{text}.to(tl.{dtype})", dtype, shape, tuple(operands))

    def _float8(self, dtype: str, shape: Shape, depth: int) -> Expression:
        narrow = self.rng.choice(_FLOATS8)
        if self.rng.random() < 0.5:
            source = self.rng.choice(FLOATS)
            x = self.draw(source, shape, depth - 1)
            return Expression(f"{A}.to(tl.{narrow}).to(tl.{dtype})", dtype, shape, (x,))
        x = self.draw(self.rng.choice(("int8", "uint8")), shape, depth - 1)
        return Expression(f"{A}.to(tl.{narrow}, bitcast=True).to(tl.{dtype})", dtype, shape, (x,))

    def _bits_of_float8(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if dtype not in ("int8", "uint8"):
            return None
        x = self.without_nan(self.draw(self.rng.choice(FLOATS), shape, depth - 1))
        narrow = self.rng.choice(_FLOATS8)
        return Expression(f"{A}.to(tl.{narrow}).to(tl.{dtype}, bitcast=True)", dtype, shape, (x,))

    def _scaled_dot(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        """Elements and scales of so few bits that all sums are exact in float32."""
        if len(shape) != 2 or min(shape) < 16 or count(shape) > 1024 or dtype == BOOL:
            return None
        rng = self.rng
        group = rng.choice((16, 32))
        inner, batch = 64, rng.choice(((), (), (2,)))
        nv = rng.random() < 0.5
        operands: list[Expression] = []
        texts = []
        for side, rows in ((0, shape[0]), (1, shape[1])):
            packed = rng.random() < 0.6
            along_k = rng.random() < 0.7 or rows % 16 != 0  # 12 are no extent
            extents = [rows, inner]
            if packed:
                extents[1 if along_k else 0] //= 2
            if side:
                extents.reverse()
            x = self.draw("uint8", (extents[0], extents[1]), depth - 1)
            scale = self.draw("uint8", (rows, inner // group), depth - 1)
            number = len(operands)
            operands += [x, scale]
            tile = (
                f"{{{number}}}"
                if packed
                else f"({{{number}}} & 7).to(tl.float8e4nv).to(tl.uint8, bitcast=True)"
            )
            scales = f"(({{{number + 1}}} & 7) + 56).to(tl.uint8)"
            scales = (
                f"{scales}.to(tl.float8e4nv, bitcast=True)"
                if nv
                else f"(({{{number + 1}}} & 1) + 127).to(tl.uint8)"
            )
            if batch:
                tile = f"tl.broadcast_to({tile}[None, :, :], {(*batch, *extents)})"
                scales = f"tl.broadcast_to({scales}[None, :, :], {(*batch, rows, inner // group)})"
            texts += [
                tile,
                scales,
                f'"{"e2m1" if packed else "e4m3"}"',
                f"{'lr'[side]}hs_k_pack={along_k or not packed}",
            ]
        a, a_scale, a_format, a_pack, b, b_scale, b_format, b_pack = texts
        text = f"tl.dot_scaled({a}, {a_scale}, {a_format}, {b}, {b_scale}, {b_format}, {a_pack}, {b_pack})"
        if batch:
            text = f"tl.max({text}, axis=0)"
        text = f"({text} * 16.0).to(tl.int32).to(tl.{dtype})"
        return Expression(text, dtype, shape, tuple(operands))

    def _addresses(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        """How far apart places are, of addresses."""
        if dtype not in ("int64", "uint64"):
            return None
        array = self.rng.choice(self.inputs)
        x = self.draw("int32", shape, depth - 1)
        text = f"(({array.name} + {A}).to(tl.{dtype}) - {array.name}.to(tl.{dtype}))"
        return Expression(text, dtype, shape, (x,))

    def _reduced_by_function(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        longer = self._longer(shape)
        if longer is None or dtype == BOOL:
            return None
        x = self.draw(dtype, longer[0], depth - 1)
        axis = longer[1]
        if self.rng.random() < 0.5:
            return Expression(f"tl.reduce({A}, {axis}, combined)", dtype, shape, (x,))
        y = self.draw("int32", longer[0], depth - 1)
        which = self.rng.randrange(2)
        text = f"tl.reduce(({A}, {B}), {axis}, combined_pairs)[{which}].to(tl.{dtype})"
        return Expression(text, dtype, shape, (x, y))

    # --- Moving elements ----------------------------------------------------------------

    def _ordered(self, dtype: str, shape: Shape, depth: int) -> Expression:
        x = self.draw(dtype, shape, depth - 1)
        return self.without_nan(x) if dtype in FLOATS else x

    def _topk(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        axis = self.rng.randrange(len(shape))
        if dtype == BOOL or shape[axis] > 64:
            return None
        source = list(shape)
        source[axis] *= self.rng.choice((1, 2, 4))
        if count(tuple(source)) > 4096:
            return None
        x = self._ordered(dtype, tuple(source), depth)
        order = self.rng.choice(("", ", descending=False"))
        text = f"tl.topk({A}, {shape[axis]}, {axis}{order})"
        if self.rng.random() < 0.3:
            text = f"{text[:-1]}, return_indices=True)[0]"
        return Expression(text, dtype, shape, (x,))

    def _argsorted(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if dtype == BOOL:
            return None
        axis = self.rng.randrange(len(shape))
        name = next((v.name for v in self.scope if (v.dtype, v.shape) == (dtype, shape)), None)
        if name is None:
            return None
        x = self.without_nan(Expression(name, dtype, shape, (), frozenset([name])))
        if dtype not in FLOATS:
            x = x.operands[0]
        order = self.rng.choice(("", ", descending=True"))
        return Expression(
            f"tl.gather({A}, tl.argsort({A}, {axis}{order}), {axis})", dtype, shape, (x,)
        )

    def _merged(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if dtype == BOOL or shape[-1] < 4 or len(shape) > 1:
            return None
        half = shape[-1] // 2
        if half & (half - 1) and half % 8:
            return None  # no extent of a tile
        x, y = (self._ordered(dtype, (half,), depth) for _ in range(2))
        order = self.rng.choice(("", ", descending=True"))
        text = (
            f"tl.bitonic_merge(tl.cat(tl.sort({A}), tl.sort({B}, descending=True), dim=0){order})"
        )
        return Expression(text, dtype, shape, (x, y))

    def _many_dimensions(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        total = count(shape)
        if total & (total - 1) or total > 1024:
            return None
        x = self.draw(dtype, shape, depth - 1)
        dims = [2] * (total.bit_length() - 1) + [1] * self.rng.randint(1, 3)
        self.rng.shuffle(dims)
        order = list(range(len(dims)))
        i, j = (self.rng.randrange(len(dims)) for _ in range(2))
        order[i], order[j] = order[j], order[i]
        text = f"tl.reshape(tl.permute(tl.reshape({A}, {tuple(dims)}), {tuple(order)}), {shape})"
        return Expression(text, dtype, shape, (x,))

    def _from_scalar(self, dtype: str, shape: Shape, depth: int) -> Expression:
        x = self.draw(dtype, (), depth - 1)
        new = ", ".join(["None"] * len(shape))
        if self.rng.random() < 0.5:
            new = f"None, {new}"
            text = f"tl.reshape(tl.broadcast_to(tl.cast({A}, tl.{dtype})[{new}], {(1, *shape)}), {shape})"
        else:
            text = f"tl.broadcast_to(tl.cast({A}, tl.{dtype})[{new}], {shape})"
        return Expression(text, dtype, shape, (x,))

    # --- Descriptors -----------------------------------------------------------------------

    def extent(self, value: int) -> str:
        """An integer, as a number or as one that is known when the kernel runs."""
        if self.rng.random() < 0.5:
            return str(value)
        return (
            f"(n + {value - self.iterations})"
            if self.rng.random() < 0.8
            else f"(pid + {value} - pid)"
        )

    def begin(self, block: int) -> str:
        """The start of a block along a dimension: inside, partly outside, or far away."""
        rng = self.rng
        choices = ["0", "0", "0", "1", "3", "-1", "-2", str(block // 2), str(-block // 2), "pid", "n",
                   "-n", "n - 3", str(block), "2147483647", "-2147483648", "2147483640"]  # fmt: skip
        counters = [v.name for v in self.scope if v.dtype == "int32" and not v.shape]
        return rng.choice(choices + counters)

    def describe(
        self, array: Array, block: Shape, store: bool = False
    ) -> tuple[str, list[int]] | None:
        """A descriptor of a part of a program's part of an array, and its extents."""
        rng, size = self.rng, array.size
        bytes_ = _SIZES[array.dtype]
        if block[-1] * bytes_ < 16 or array.dtype == BOOL:
            return None
        base = 0 if store else rng.choice((0, 0, 0, 1, 3, 16))
        room = size - base
        if room < 1:
            return None
        columns = max(
            1,
            min(
                room, rng.choice((block[-1], block[-1], block[-1] - 1, block[-1] + 3, 5, 1, 0, -2))
            ),
        )
        if rng.random() < 0.1:
            columns = rng.choice((0, -3))
        stride = max(1, columns) + rng.choice((0, 0, 0, 1, 4, 16))
        extents, strides = [columns], [1]
        span = stride
        for extent in reversed(block[:-1]):
            most = room // span
            if most < 1:
                return None
            rows = min(most, rng.choice((extent, extent, extent - 1, extent + 2, 3, 0)))
            extents.insert(0, rows)
            strides.insert(0, span)
            span *= max(1, rows)
        shape = ", ".join(map(self.extent, extents))
        steps = []
        for step in strides[:-1]:
            text = self.extent(step)
            steps.append(text if step * bytes_ % 16 == 0 else f"(n + {step - self.iterations})")
        padding = ""
        if array.dtype in FLOATS and rng.random() < 0.4:
            padding = ', padding_option="nan"'
        place = f"{array.name} + pid * {size}" + (f" + {base}" if base else "")
        text = (
            f"tl.make_tensor_descriptor({place}, [{shape}], [{', '.join([*steps, '1'])}], "
            f"{list(block)}{padding})"
        )
        return text, extents

    def _by_descriptor(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if not shape or not self.inputs or self._loading:
            return None
        rng = self.rng
        known = [v for v in self.objects if v.dtype.startswith("desc:")]
        fitting = [v for v in known if v.shape == shape]
        if fitting and rng.random() < 0.6:
            value = rng.choice(fitting)
            begins = [self.begin(extent) for extent in shape]
            text = f"{value.name}.load([{', '.join(begins)}])"
            if len(shape) == 2 and rng.random() < 0.2:
                text = f"loaded_by({value.name}, {begins[0]})"
            names = frozenset([value.name]) | _names_in(text)
            return self.cast(Expression(text, value.dtype[5:], shape, (), names), dtype)
        array = rng.choice(self.inputs)
        block = rng.choice([shape, (1, *shape), (*shape[:-1], 1, shape[-1])])
        rows = len(shape) == 2 and shape[0] >= 8 and rng.random() < 0.4
        if rows:
            block = (1, shape[1])
            if shape[1] * _SIZES[array.dtype] < 32:
                return None
        made = self.describe(array, block)
        if made is None:
            return None
        if rows:
            index = self.draw(
                rng.choice(("int32", "int32", "int16", "uint32")), (shape[0],), depth - 1
            )
            few = rng.choice(("{0}", "({0} % 8)", "({0} & 15)"))
            column = self.begin(block[-1])
            text = f"{made[0]}.gather({few}, {column})"
            loaded = Expression(text, array.dtype, shape, (index,), _names_in(text))
            return self.cast(loaded, dtype)
        begins = [self.begin(extent) for extent in block]
        text = f"{made[0]}.load([{', '.join(begins)}])"
        if block != shape:
            text = f"tl.reshape({text}, {shape})"
        return self.cast(Expression(text, array.dtype, shape, (), _names_in(text)), dtype)


class _Generator(Generator):
    expressions = _Constructs
    make: _Constructs

    def __init__(self, seed: int, rounded: bool) -> None:
        super().__init__(seed, rounded)
        self._group()

    def _inputs(self) -> None:
        super()._inputs()
        self.make.iterations = self.program.iterations
        rng = self.rng
        if rng.random() < 0.3:
            # One that the host makes a descriptor of, for all programs.
            array = rng.choice(self.program.arrays)
            total = array.total(self.program.programs)
            columns = rng.choice([e for e in EXTENTS if e * _SIZES[array.dtype] >= 16])
            block = (rng.choice((1, 2, 8, 16)), columns)
            stride = max(columns, 16) + rng.choice((0, 0, 16, 3))
            rows = total // stride
            if array.dtype != BOOL and rows:
                rows = max(1, rows - rng.choice((0, 0, 1)))
                padding = "nan" if array.dtype in FLOATS and rng.random() < 0.4 else "zero"
                part = Part("desc0", "descriptor", (array.name,),
                            (rows, stride - rng.choice((0, 0, 1, 7))), stride, block, padding,
                            rng.random() < 0.4)  # fmt: skip
                self.program.parts.append(part)
                self.make.inputs.remove(array)
                self.make.objects.append(Value("desc0", f"desc:{array.dtype}", block))
                self.extents = [block[0], block[1]]
                if not self.make.inputs:
                    self.make.inputs.append(self._array("in", "int32", 64, "integers"))

    def _statement(self, body: list[Statement], nesting: int) -> None:
        if self.rng.random() < 0.35:
            self._assign_object(body)
        else:
            super()._statement(body, nesting)

    def _assign_object(self, body: list[Statement]) -> None:
        rng = self.rng
        shape = self._shape()
        made: Expression | None = None
        if rng.random() < 0.4 and shape:
            array = rng.choice(self.make.inputs)
            made_text = self.make.describe(array, shape)
            if made_text is not None:
                text = made_text[0]
                other = self.make.describe(array, shape) if rng.random() < 0.3 else None
                if other is not None and ("nan" in other[0]) == ("nan" in text):
                    text = f"({text} if {rng.choice(('n > 2', 'pid == 0'))} else {other[0]})"
                made = Expression(text, f"desc:{array.dtype}", shape)
        if made is None:
            dtype = rng.choice(INTS + UINTS + FLOATS)
            made = self.make.object(rng.choice(_KINDS), dtype, shape, 2)
        target = Value(self._name().replace("v", "o"), made.dtype, made.shape)
        body.append(Assign(target, made))
        self.make.objects.append(target)

    def _block(self, updatable: list[Value], nesting: int) -> list[Statement]:
        visible = len(self.make.objects)
        before = list(self.make.objects)
        body = super()._block(updatable, nesting)
        del self.make.objects[visible:]
        able = [v for v in before if not v.dtype.startswith("desc:")]
        for target in self.rng.sample(able, min(len(able), self.rng.randint(0, 2))):
            kind, _, dtype = target.dtype.partition(":")
            body.append(Assign(target, self.make.object(kind, dtype, target.shape, 2)))
        return body

    # --- Results --------------------------------------------------------------------------------

    def _outputs(self, body: list[Statement]) -> None:
        super()._outputs(body)
        rng = self.rng
        for value in self.make.objects[-2:]:
            kind, _, dtype = value.dtype.partition(":")
            if kind == "desc":
                continue
            form = {"pair": "{0}.total", "state": "{0}.pair.b", "tuple": "{0}[1]"}.get(
                kind, "{0}.y"
            )
            x = Expression(value.name, value.dtype, value.shape, (), frozenset([value.name]))
            self._store(body, self._keep(body, Expression(form, dtype, value.shape, (x,))))
        if rng.random() < 0.5:
            self._store_by_descriptor(body)
        if rng.random() < 0.2:
            self._store_addresses(body)

    def _store_by_descriptor(self, body: list[Statement]) -> None:
        rng = self.rng
        shape = self._shape()
        if not shape:
            return
        block: Shape = rng.choice([shape, shape, (1, *shape)])
        dtype = rng.choice(INTS + UINTS + FLOATS)
        scatter = len(shape) == 2 and shape[0] >= 8 and shape[1] * _SIZES[dtype] >= 32
        scatter = scatter and rng.random() < 0.5
        if scatter:
            block = (1, shape[1])
        output = self._array("out", dtype, 2 * count(shape))
        made = self.make.describe(output, block, store=True)
        if made is None:
            self.program.arrays.remove(output)
            return
        text = made[0].replace(', padding_option="nan"', "")
        value = self.make.draw(dtype, shape, 2)
        if scatter:
            lane = f"tl.arange(0, {shape[0]})"
            rows = rng.choice((lane, f"({lane} - 2)", f"({lane} ^ 1)", f"({lane} * 3 - 1)", f"(5 - {lane})",
                               f"({lane} + n).to(tl.int16)"))  # fmt: skip
            text = f"{text}.scatter({{0}}, {rows}, {self.make.begin(block[-1])})"
            made_store = Expression(text, "void", (), (value,), _names_in(text))
            body.append(Store(output.name, made_store))
            return
        begins = ", ".join(self.make.begin(extent) for extent in block)
        tile = "{0}" if block == shape else f"tl.reshape({{0}}, {block})"
        adds = dtype in ("int32", "uint32", "int64", "uint64") and rng.random() < 0.4
        if adds:
            kind = rng.choice(("add", "max", "min", "and", "or", "xor"))
            text = f"{text}.atomic_{kind}([{begins}], {tile})"
        else:
            text = f"{text}.store([{begins}], {tile})"
        body.append(Store(output.name, Expression(text, "void", (), (value,), _names_in(text))))

    def _store_addresses(self, body: list[Statement]) -> None:
        """Pointers go to memory, and what they point to comes back by them."""
        rng = self.rng
        array = rng.choice(self.make.inputs)
        lanes = self.extents[0]
        scratch = self._array("out", rng.choice(("int64", "uint64")), lanes, "scratch")
        index = self.make.draw("int32", (lanes,), 1)
        at = f"{scratch.name} + pid * {lanes} + tl.arange(0, {lanes})"
        text = f"tl.store({at}, {array.name} + ({{0}} & {array.size - 1}))"
        body.append(Store(scratch.name, Expression(text, "void", (), (index,))))
        target = Value(self._name(), array.dtype, (lanes,))
        element = "int8" if array.dtype == BOOL else array.dtype
        text = f"tl.load(tl.load({at}).to(tl.pointer_type(tl.{element})))"
        if array.dtype == BOOL:
            text = f"({text} != 0)"
        body.append(Assign(target, Expression(text, array.dtype, (lanes,))))
        self._store(body, target)

    def _checked(self, body: list[Statement]) -> None:
        if self.rng.random() < 0.3:
            super()._checked(body)
            return
        name = self.rng.choice(list(_NEAR))
        dtype, shape = self.rng.choice(("float32", "float32", "float64")), self._shape()
        arity = libdevice.FUNCTIONS[name].arity
        operands = tuple(
            self._keep(body, self._tame(self.make.draw(dtype, shape, 2), _NEAR[name]))
            for _ in range(arity)
        )
        names = ", ".join(x.name for x in operands)
        self._keep_result(body, f"libdevice.{name}({names})", dtype, shape, name, operands)

    def _group(self) -> None:
        """Moves some of the arrays into arguments that hold arrays."""
        free = [a.name for a in self.program.arrays if a.name not in
                [name for part in self.program.parts for name in part.members]]  # fmt: skip
        for number in range(self.rng.randint(0, 2)):
            if not free:
                return
            self.rng.shuffle(free)
            members = tuple(free[: self.rng.randint(1, 3)])
            free = free[len(members) :]
            kind = self.rng.choice(("tuple", "list", "nested", "record", "aggregate"))
            self.program.parts.append(Part(f"part{number}", kind, members))


def _names_in(text: str) -> frozenset[str]:
    """The names of variables that stand in a text."""
    return frozenset(re.findall(r"\b[ov]\d+\b", text))


__all__ = ["generate_language"]
