# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels about memory: arrays that a program stores to and loads from again.

They test three properties of compiled code. Order: a load sees the stores of all lanes before it,
in loops too. Bounds: a lane that is masked off accesses nothing, although the mask wraps and the
place is far outside. Values: denormals and the bits of a NaN stay as they are.

A store's places are all different, and a program's lie apart from those of others, so that one
result is right. On a GPU a lane sees another lane's store behind a barrier only: each store has
one on both sides.
"""

from __future__ import annotations

import dataclasses
import math
import random
import re
from typing import Callable

from tessera.testing.fuzz.expressions import Expressions
from tessera.testing.fuzz.program import (
    BOOL,
    FLOATS,
    Array,
    Assign,
    Expression,
    Nested,
    Program,
    Shape,
    Statement,
    Store,
    Value,
    constant,
    count,
    offsets,
)

A, B, C = "{0}", "{1}", "{2}"

_EXTENTS = (1, 2, 4, 8, 16, 24, 32, 40, 64, 96, 128)
_ELEMENTS = ("int32", "int32", "int32", "int8", "int16", "int64", "uint8", "uint32") + FLOATS
_LIMITS = {name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in
           (("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64))}  # fmt: skip
_LIMITS |= {"u" + name: (0, 2 * high + 1) for name, (_, high) in list(_LIMITS.items())}
# Values of a scalar argument: small, at the ends of a width, and multiples of 16; 1, whose value is
# known when the kernel is compiled.
_SCALARS = (
    0, 1, 1, 2, 3, -1, -2, 5, 7, 16, 17, 31, 32, 33, 48, 64, 100, 127, 128, 255, 256, -16, -33,
    2**31 - 1, 2**31 - 16, 2**31 - 64, -(2**31), -(2**31) + 1, -(2**31) + 64, 2**30, -(2**30), 2**16,
)  # fmt: skip
_LONG_SCALARS = (2**31, 2**32, 2**32 + 3, -(2**31) - 5, 2**63 - 1, 2**63 - 64, -(2**63), 2**62)


@dataclasses.dataclass(frozen=True)
class _Place:
    """The places of a tile's lanes in a program's part of an array.

    `mask` is what keeps the rest from being touched (none, if every lane lies inside); a store
    may go to `distinct` places only.
    """

    index: str
    mask: str = ""
    distinct: bool = True


def generate_memory(seed: int) -> Program:
    """The kernel about memory of a seed; the same one on every machine and for every target."""
    return _Generator(seed).program


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"memory {seed}")
        self.make = Expressions(self.rng, rounded=True)
        self.scope = self.make.scope
        self.names = 0
        self.program = Program(
            seed, self.rng.choice((1, 1, 2, 3)), self.rng.choice((1, 2, 3, 5, 8)), [], [], []
        )
        self._scalars()
        self.shape = self._shape()
        self.size = 2 << (count(self.shape) - 1).bit_length()  # a power of two, and more than all
        self._arrays()
        self.scope += [Value("pid", "int32", ()), Value("n", "int32", ())]
        body = self.program.statements
        for _ in range(self.rng.randint(3, 8)):
            self._statement(body, nesting=0)
        self._results(body)

    # --- Arguments ------------------------------------------------------------------------

    def _scalars(self) -> None:
        for number in range(self.rng.randint(1, 2)):
            long = self.rng.random() < 0.2
            value = self.rng.choice(_LONG_SCALARS if long else _SCALARS)
            self.program.scalars.append((f"m{number}", value))
            small = -(2**31) <= value < 2**31
            self.scope.append(Value(f"m{number}", "int32" if small else "int64", ()))

    def _shape(self) -> Shape:
        if self.rng.random() < 0.75:
            return (self.rng.choice(_EXTENTS),)
        return (self.rng.choice((1, 2, 4, 8, 16)), self.rng.choice((2, 4, 8, 16, 24)))

    def _arrays(self) -> None:
        self.dtype = self.rng.choice(_ELEMENTS)
        data = "integers" if self.dtype not in FLOATS else "bits"
        number = self.rng.randint(1, 3)
        for index in range(number):
            self.program.arrays.append(
                Array(f"mem{index}", self.dtype, self.size, data, exact=True)
            )
        if self.rng.random() < 0.25:
            # The same memory under another name, from its start or from further on. Programs'
            # parts of it are what they are in the array itself.
            base = self.program.arrays[0]
            behind = min(self.rng.choice((0, 0, 1, 3, 8, 16)), self.size // 2)
            alias = Array(
                f"mem{number}", self.dtype, self.size, data, exact=True, base=base.name,
                behind=behind,
            )  # fmt: skip
            self.program.arrays.append(alias)
        self.memories = list(self.program.arrays)
        self.indices = Array("index", "int32", self.size, "integers")
        if self.rng.random() < 0.4:
            self.program.arrays.append(self.indices)
            self.make.inputs.append(self.indices)

    def _name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    # --- Statements -------------------------------------------------------------------------

    def _statement(self, body: list[Statement], nesting: int) -> None:
        kind = self.rng.random()
        if kind < 0.28:
            self._load(body)
        elif kind < 0.5:
            self._store(body)
        elif kind < 0.56:
            self._block_access(body)
        elif kind < 0.62:
            self._scalar_access(body)
        elif kind < 0.68:
            self._atomic(body)
        elif kind < 0.8 or nesting > 1:
            self._compute(body)
        elif kind < 0.95:
            self._loop(body, nesting)
        else:
            condition = self.rng.choice(("(pid % 2 == 0)", "(n > 2)", "(m0 < n)", "(m0 + n > m0)"))
            nested = Nested("if", [], condition=Expression(condition, BOOL, ()))
            nested.body = self._block(nesting)
            if self.rng.random() < 0.5:
                nested.otherwise = self._block(nesting)
            body.append(nested)

    def _load(self, body: list[Statement], target: Value | None = None) -> None:
        array = self.rng.choice(self.memories)
        place = self._place(array, store=False)
        operands: tuple[Expression, ...] = ()
        text = f"tl.load({self._address(array, place.index)}"
        mask = place.mask or self._mask()
        if mask:
            text += f", mask={mask}"
            if self.rng.random() < 0.5:
                text += f", other={self._literal(self.dtype)}"
            elif self.rng.random() < 0.3:
                operands = (self._value(1),)
                text += ", other={0}"
        if self.rng.random() < 0.1:
            text += ", volatile=True"
        if not mask and self.rng.random() < 0.1:
            text = f"load_at({array.name}, {self._address(array, place.index, base='')}"
        names = _names_in(text)
        made = Expression(text + ")", self.dtype, self.shape, operands, names)
        if target is None:
            target = Value(self._name(), self.dtype, self.shape)
            self.scope.append(target)
        body.append(Assign(target, made))

    def _store(self, body: list[Statement]) -> None:
        array = self.rng.choice(self.memories)
        place = self._place(array, store=True)
        text = f"tl.store({self._address(array, place.index)}, {{0}}"
        mask = place.mask or self._mask()
        if mask:
            text += f", mask={mask}"
        elif self.rng.random() < 0.1:
            text = f"store_at({array.name}, {self._address(array, place.index, base='')}, {{0}}"
        names = _names_in(text)
        value = self._value(2)
        body.append(
            Store(array.name, Expression(text + ")", "void", (), (value,), names), fenced=True)
        )

    def _atomic(self, body: list[Statement]) -> None:
        """An atomic of every lane at a place of its own, whose old values are kept or not."""
        if self.dtype not in ("int32", "uint32", "int64"):
            return self._store(body)
        array = self.rng.choice(self.memories)
        place = self._place(array, store=True)
        kind = self.rng.choice(("add", "max", "min", "and", "or", "xor", "xchg", "cas", "cas"))
        address = self._address(array, place.index)
        mask = place.mask or self._mask()
        expected = ""
        if kind == "cas":
            # The value in memory, in most lanes or in all, or another number.
            which = f", mask={mask}" if mask else ""
            found = f"tl.load({address}{which})"
            expected = self.rng.choice((found, f"({found} | 1)", "0")) + ", "
        text = f"tl.atomic_{kind}({address}, {expected}{{0}}"
        if mask:
            text += f", mask={mask}"
        text += f', sem="{self.rng.choice(("relaxed", "acq_rel", "release", "acquire"))}")'
        value, names = self._value(2), _names_in(text)
        if mask or self.rng.random() < 0.5:
            made = Expression(text, "void", (), (value,), names)
            body.append(Store(array.name, made, fenced=True))
            return
        target = Value(self._name(), self.dtype, self.shape)
        made = Expression(text, self.dtype, self.shape, (value,), names)
        body.append(Assign(target, made, fenced=True))
        self.scope.append(target)

    def _scalar_access(self, body: list[Statement]) -> None:
        """A load or store of one element, which tiles have, too."""
        array = self.rng.choice(self.memories)
        address = self._address(array, str(self.rng.randrange(self.size - array.behind)))
        if self.rng.random() < 0.5:
            volatile = ", volatile=True" if self.rng.random() < 0.2 else ""
            target = Value(self._name(), self.dtype, ())
            made = Expression(f"tl.load({address}{volatile})", self.dtype, ())
            body.append(Assign(target, made))
            self.scope.append(target)
            return
        if self.dtype in FLOATS:
            value = self._passed_on(1, ())
        else:
            value = self.make.draw(self.dtype, (), 2)
        made = Expression(f"tl.store({address}, {{0}})", "void", (), (value,))
        body.append(Store(array.name, made, fenced=True))

    def _block_access(self, body: list[Statement]) -> None:
        """A load or store by a block pointer, some of whose block may lie outside."""
        array = self.rng.choice(self.memories)
        base = self._address(array, "0")
        extents = list(self.shape)
        room = (self.size - array.behind) // math.prod(extents[1:])
        if room == 0 or not base.endswith("+ 0"):
            return self._load(body)
        strides = [math.prod(extents[1:])] + [1] * (len(extents) - 1)
        counters = [v.name for v in self.scope if v.name.startswith("k")]
        begins = [
            self.rng.choice(("0", "0", "1", "3", "-1", "-2", str(extent // 2), "pid", "n", *counters))
            for extent in extents
        ]  # fmt: skip
        dims = ", ".join(str(dim) for dim in range(len(extents)))
        order = ", ".join(str(dim) for dim in reversed(range(len(extents))))
        extents[0] = room
        pointer = (
            f"tl.make_block_ptr({base}, {tuple(extents)}, {tuple(strides)}, ({', '.join(begins)},), "
            f"{self.shape}, ({order},))"
        )
        names = _names_in(pointer)
        if self.rng.random() < 0.5:
            text = f'tl.load({pointer}, boundary_check=({dims},), padding_option="zero")'
            target = Value(self._name(), self.dtype, self.shape)
            body.append(Assign(target, Expression(text, self.dtype, self.shape, (), names)))
            self.scope.append(target)
            return
        text = f"tl.store({pointer}, {{0}}, boundary_check=({dims},))"
        made = Expression(text, "void", (), (self._value(2),), names)
        body.append(Store(array.name, made, fenced=True))

    def _compute(self, body: list[Statement]) -> None:
        value = self._value(3)
        target = Value(self._name(), value.dtype, value.shape)
        body.append(Assign(target, value))
        self.scope.append(target)

    def _block(self, nesting: int) -> list[Statement]:
        """Statements, and a variable that is changed by them."""
        body: list[Statement] = []
        updatable = [value for value in self.scope if value.name.startswith("v")]
        visible = len(self.scope)
        for _ in range(self.rng.randint(1, 3)):
            self._statement(body, nesting + 1)
        for target in self.rng.sample(updatable, min(len(updatable), self.rng.randint(0, 2))):
            if (target.dtype, target.shape) != (self.dtype, self.shape):
                continue
            if self.rng.random() < 0.5:
                self._load(body, target)
            else:
                body.append(Assign(target, self._value(2)))
        del self.scope[visible:]
        return body

    def _loop(self, body: list[Statement], nesting: int) -> None:
        counter = Value(self._name().replace("v", "k"), "int32", ())
        bounds = self.rng.choice(
            ("range(n)", "range(3)", "range(0, n, 2)", "range(n, 0, -1)", "tl.range(0, n)",
             "tl.range(0, n, num_stages=3)", "tl.range(0, n, loop_unroll_factor=2)", "range(pid, n)",
             "range(m0, m0 + 2)" if -(2**31) <= self.program.scalars[0][1] < 2**31 - 2 else "range(2)")
        )  # fmt: skip
        nested = Nested(f"for {counter.name} in {bounds}", [])
        if self.rng.random() < 0.15:
            name = counter.name
            nested = Nested(f"while {name} < n", [], setup=f"{name} = pid * 0", step=f"{name} += 1")
        self.scope.append(counter)
        nested.body = self._block(nesting)
        self.scope.remove(counter)
        body.append(nested)

    def _results(self, body: list[Statement]) -> None:
        """Stores the values of variables to arrays of their own."""
        values = [value for value in self.scope if value.name.startswith("v")]
        for value in self.rng.sample(values, min(len(values), 4)):
            size = count(value.shape)
            exact = value.dtype in FLOATS
            output = Array(f"out{len(self.program.arrays)}", value.dtype, size, exact=exact)
            self.program.arrays.append(output)
            place = f" + {offsets(value.shape)}" if value.shape else ""
            read = Expression(value.name, value.dtype, value.shape, (), frozenset([value.name]))
            text = f"tl.store({output.name} + pid * {size}{place}, {{0}})"
            body.append(Store(output.name, Expression(text, "void", (), (read,))))

    # --- Values -------------------------------------------------------------------------------

    def _value(self, depth: int) -> Expression:
        """A tile of what the arrays hold."""
        if self.dtype in FLOATS:
            return self._passed_on(depth, self.shape)
        if self.rng.random() < 0.1 and self.dtype == "int32":
            a, b = (self.make.draw("int32", self.shape, depth - 1) for _ in range(2))
            return Expression(
                f"({A} + {B})", "int32", self.shape, (a, b),
                assembly=(
                    'tl.inline_asm_elementwise("add.s32 $0, $1, $2;", "=r,r,r", '
                    f"[{A}, {B}], dtype=tl.int32, is_pure={self.rng.random() < 0.5}, pack=1)"
                ),
            )  # fmt: skip
        return self.make.draw(self.dtype, self.shape, depth)

    def _passed_on(self, depth: int, shape: Shape) -> Expression:
        """Floats that are chosen and moved, never computed with: all bits stay."""
        rng, dtype = self.rng, self.dtype
        fitting = [v for v in self.scope if (v.dtype, v.shape) == (dtype, shape)]
        kind = rng.random()
        if depth <= 0 or kind < 0.3:
            if fitting and rng.random() < 0.85:
                value = rng.choice(fitting)
                return Expression(value.name, dtype, shape, (), frozenset([value.name]))
            return constant(dtype, shape, rng.choice((0, 1, 3)))
        if kind < 0.6:
            a, b = (self._passed_on(depth - 1, shape) for _ in range(2))
            condition = self.make.draw(BOOL, shape, 1)
            return Expression(f"tl.where({A}, {B}, {C})", dtype, shape, (condition, a, b))
        x = self._passed_on(depth - 1, shape)
        if kind < 0.7 and shape:
            return Expression(f"tl.flip({A}, {len(shape) - 1})", dtype, shape, (x,))
        if kind < 0.8 and shape:
            index = self.make.draw("int32", shape, 1)
            low = shape[-1] & -shape[-1]
            text = f"tl.gather({A}, ({B} & {low - 1}), {len(shape) - 1})"
            return Expression(text, dtype, shape, (x, index))
        if kind < 0.9:
            whole = f"int{_bits_of(dtype)}"
            return Expression(
                f"{A}.to(tl.{whole}, bitcast=True).to(tl.{dtype}, bitcast=True)", dtype, shape, (x,)
            )
        if len(shape) == 2:
            turned = Expression(f"tl.trans({A})", dtype, shape[::-1], (x,))
            return Expression(f"tl.trans({A})", dtype, shape, (turned,))
        if shape:
            return Expression(
                f"tl.reshape(tl.reshape({A}, ({shape[0]}, 1)), {shape})", dtype, shape, (x,)
            )
        return x

    def _literal(self, dtype: str) -> str:
        if dtype in FLOATS:
            return self.rng.choice(("0.0", "1.0", "-2.0", 'float("inf")', "-0.0"))
        low, high = _LIMITS[dtype]
        return str(self.rng.choice((0, 1, 3, high, low)))

    # --- Places -----------------------------------------------------------------------------

    def _address(self, array: Array, index: str, base: str | None = None) -> str:
        """The address of a program's element: in a part of its own, or interleaved with the other
        programs.

        From `base` on, or from the array's start.
        """
        base = f"{array.name} + " if base is None else base
        if array.base or any(other.base for other in self.memories):
            return f"{base}pid * {self.size} + {index}"
        if len(array.name) % 2 == 0 or self.program.seed % 3:
            return f"{base}pid * {self.size} + {index}"
        return f"{base}({index}) * {self.program.programs} + pid"

    def _lane(self) -> str:
        """The number of a lane; one of a loop's or an argument's, now and then."""
        return offsets(self.shape)

    def _place(self, array: Array, store: bool) -> _Place:
        rng, size = self.rng, self.size
        # The part of a shared array behind its start ends before the program's part does.
        room = size - array.behind
        lane, lanes = self._lane(), count(self.shape)
        counters = [v.name for v in self.scope if v.name.startswith("k")]
        makers: list[Callable[[], _Place]] = [
            lambda: _Place(lane),
            lambda: _Place(f"({lanes - 1} - {lane})"),
            lambda: _Place(f"({lane} + {rng.choice((1, 2, 3, 8))})", self._below(room, lane)),
        ]
        if array.behind == 0:
            odd = rng.choice((1, 3, 5, 7, size // 2 + 1, -1, -3))
            plus = rng.choice((0, 1, 3, size - 1, 2**31 - 1, -(2**31)))
            moved = rng.choice(["m0"] + counters * 2 + ["pid", "n"])
            if ("m0", "int64") in [(v.name, v.dtype) for v in self.scope] and moved == "m0":
                moved = "m0.to(tl.int32)"
            makers += [
                lambda: _Place(f"({lane} * 2)"),
                lambda: _Place(f"(({lane} * {odd} + {plus}) & {size - 1})"),
                lambda: _Place(f"({lane} ^ {rng.choice((1, 2, 3, 5, -1, size // 2)) & (size - 1)})"),
                lambda: _Place(f"(({lane} + {moved}) & {size - 1})"),
                lambda: _Place(f"(({lane} ^ {moved}) & {size - 1})"),
                lambda: _Place(f"({lane} | {size // 2})"),
                lambda: _Place(f"(({lane} << 1 | {lane} >> {max(lanes.bit_length() - 1, 0)}) & {size - 1})",
                               distinct=False),
                lambda: _Place(f"(({lane} - {moved}).to(tl.uint32) & {size - 1})"),
                lambda: _Place(f"(({lane}.to(tl.int64) + {moved}) & 0x7fffffffffffffff & {size - 1})"),
                lambda: _Place(f"(({lane}.to(tl.int64) + {moved}) & {size - 1})"),
            ]  # fmt: skip
            makers += [lambda: self._checked_place(lane, room)] * 4
            if math.gcd(5, lanes) == 1:
                makers.append(lambda: _Place(f"(({lane} * 5 + 3) % {lanes})"))
            if not store:
                makers += [
                    lambda: _Place(f"({lane} // 2)"),
                    lambda: _Place(f"({lane} // 4 * 4)"),
                    lambda: _Place(f"({lane} >> {rng.choice((1, 2, 3))})"),
                    lambda: _Place(f"({lane} & {rng.choice((1, 7, 12, size - 2))})"),
                    lambda: _Place(f"(({lane} * {rng.choice((2, 4, 6))} + {plus}) & {size - 1})"),
                ]
        while True:
            place = rng.choice(makers)()
            if place.distinct or not store:
                return place

    def _below(self, room: int, lane: str) -> str:
        """Enough of the first lanes that what is a few further on is inside."""
        return f"({lane} < {max(0, min(count(self.shape), room - 8))})" if (
            count(self.shape) + 8 > room) else ""  # fmt: skip

    def _checked_place(self, lane: str, room: int) -> _Place:
        """A place that may be anywhere, and one of the ways to say that it is inside."""
        rng = self.rng
        scalar = rng.choice([name for name, _ in self.program.scalars] + ["n", "pid"])
        dtype = {v.name: v.dtype for v in self.scope}[scalar]
        wide = dtype == "int64" or rng.random() < 0.2
        if wide:
            lane = f"{lane}.to(tl.int64)"
        far = rng.choice((0, 1, 16, 2**31 - 1, 2**31 - 8, -(2**31), -(2**31) + 8, 2**30))
        index = rng.choice(
            (f"({lane} + {scalar})", f"({lane} - {scalar})", f"({scalar} - {lane})",
             f"({lane} + {far})", f"({lane} + {far} + {scalar})", f"({lane} - {far})",
             f"({lane} * {rng.choice((3, 2**30 + 1, -1, 65537))} + {scalar})")
        )  # fmt: skip
        unsigned = "uint64" if wide else "uint32"
        # A range of places, by one comparison or by two.
        low = min(rng.choice((0, 0, 1, 3)), room - 1)
        length = rng.choice((room, room, room // 2, 5))
        high = min(low + length, room)
        mask = rng.choice(
            (
                f"(({index} >= {low}) & ({index} < {high}))",
                f"(({index} - {low}).to(tl.{unsigned}) < {high - low})",
                f"(({index} - {low}).to(tl.{unsigned}) < tl.full((), {high - low}, tl.{unsigned}))",
                f"(({index}.to(tl.{unsigned}) - {low}) < {high - low})",
                f"({index}.to(tl.{unsigned}) <= {high - 1})",
                f"~(({index} < {low}) | ({index} >= {high}))",
            )
        )
        return _Place(index, mask)

    def _mask(self) -> str:
        """Which lanes, where all places are inside: any that can be written down."""
        rng = self.rng
        if rng.random() < 0.45:
            return ""
        lane = self._lane()
        lanes = count(self.shape)
        scalar = rng.choice([v.name for v in self.scope if v.dtype == "int32" and not v.shape])
        end = rng.choice((2**31 - 1, 2**31 - lanes // 2 - 1, 2**31 - lanes, -(2**31)))
        narrow = rng.choice(("int8", "uint8", "int16", "uint16"))
        few = rng.choice((1, 3, 17, 33, lanes // 2, lanes - 1, lanes))
        operator = rng.choice(("<", "<=", ">", ">=", "==", "!="))
        forms = [
            f"({lane} < n * {rng.choice((1, 3, 7, 16))})",
            f"({lane} < {few})",
            f"({lane} >= {few})",
            f"({lane} % {rng.choice((2, 3))} == 0)",
            f"(({lane} - {scalar}).to(tl.uint32) < {few})",
            f"(({lane} - {few}).to(tl.uint32) < n.to(tl.uint32))",
            f"(({lane} + {scalar}) < 0)",
            f"(({lane} + {scalar}) {operator} {few})",
            f"(({lane} + {end}) {operator} {rng.choice((0, 5, end))})",
            f"({lane} * {rng.choice((2**30, 2**26 + 1, -1))} {operator} {scalar})",
            f"(({lane} * 3).to(tl.{narrow}) + {rng.choice((1, 100, 127))} {operator} {rng.choice((0, 50, 120))})",
            f"({lane}.to(tl.{narrow}) {operator} {few % 128})",
            f"({lane}.to(tl.int64) + {rng.choice((2**31, 2**63 - 9, -(2**63)))} {operator} 0)",
            f"(({lane} >> {rng.choice((1, 2))}) & 1 == 0)",
            f"({scalar} < {few})",
            f"(({lane} + {scalar} < {few}) & ({lane} {operator} {scalar}))",
            f"(({lane} - {scalar}) < (n - {scalar}))",
        ]  # fmt: skip
        return rng.choice(forms)


def _names_in(text: str) -> frozenset[str]:
    """The names of variables that stand in a text."""
    return frozenset(re.findall(r"\b[kv]\d+\b", text))


def _bits_of(dtype: str) -> int:
    """The bits of a float's dtype."""
    return {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}[dtype]
