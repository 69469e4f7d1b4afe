# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random expressions of a wanted dtype and shape, built from the top down.

All expressions here are exact: every target must give the same bits. Some operations are not exact:
their results depend on the order of a sum, the sign of a zero, or a NaN's bits. Their operands are
first replaced with values without such differences, as comments there say.
"""

from __future__ import annotations

import random
from typing import Callable

from tessera.testing.fuzz.program import (
    BOOL,
    FLOATS,
    INTS,
    UINTS,
    Array,
    Expression,
    Shape,
    Value,
    constant,
    count,
    offsets,
)

# The operands in the template of an expression.
A, B, C = "{0}", "{1}", "{2}"

_NUMBERS = INTS + UINTS + FLOATS
_MAX_ELEMENTS = 4096
# Extents that are legal for every operation.
EXTENTS = (1, 2, 4, 8, 16, 32, 64)
# The most terms a sum may have, and their mask, for the sum to be exact in the dtype.
_EXACT_TERMS = {
    "float16": (128, 7),
    "bfloat16": (128, 1),
    "float32": (4096, 7),
    "float64": (4096, 7),
}


def is_extent(extent: int) -> bool:
    """True if a tile may have this extent."""
    odd = extent // (extent & -extent) if extent else 0
    return odd == 1 or (0 < odd <= 31 and extent % 8 == 0)


class Expressions:
    """Draws expressions over the variables in `scope`."""

    def __init__(self, rng: random.Random, rounded: bool) -> None:
        self.rng = rng
        self.rounded = rounded  # no quotient that a GPU does not round
        self.scope: list[Value] = []
        self.inputs: list[Array] = []
        self._loading = False  # inside a load's index or mask there are plain loads alone

    # --- Entry points -----------------------------------------------------------

    def draw(self, dtype: str, shape: Shape, depth: int) -> Expression:
        """An expression of at most `depth` operations above its leaves."""
        if depth <= 0:
            return self.leaf(dtype, shape)
        if dtype == BOOL:
            makers = self._bools()
        elif dtype in FLOATS:
            makers = self._floats()
        else:
            makers = self._integers()
        if shape:
            makers = makers + self._rearranging()
        for _ in range(8):
            made = self.rng.choice(makers)(dtype, shape, depth)
            if made is not None:
                return made
        return self.leaf(dtype, shape)

    def leaf(self, dtype: str, shape: Shape) -> Expression:
        """A variable, cast and broadcast as needed, or a constant."""
        fitting = [value for value in self.scope if _spread(value.shape, shape) is not None]
        dull = bool(shape) and all(not value.shape for value in fitting)
        if self.inputs and self.rng.random() < (0.8 if dull else 0.25):
            return self.cast(self.load(shape), dtype)
        exact = [value for value in fitting if value.dtype == dtype and value.shape == shape]
        if exact and self.rng.random() < 0.6:
            fitting = exact
        if not fitting or self.rng.random() < 0.1:
            return constant(
                dtype, shape, self.rng.choice((0, 1, 1, 2, 3, 7)) if dtype != BOOL else 1
            )
        value = self.rng.choice(fitting)
        subscript = _spread(value.shape, shape) or ""
        made = Expression(
            value.name + subscript,
            value.dtype,
            _subscripted(value.shape, subscript),
            (),
            frozenset([value.name]),
        )
        return self.cast(_broadcast(made, shape), dtype)

    def load(self, shape: Shape) -> Expression:
        """Elements of an input, in one of several orders, some perhaps masked off."""
        array = self.rng.choice(self.inputs)
        size = array.size
        place = offsets(shape) or str(self.rng.randrange(size))
        span = count(shape)
        if shape:
            place = self.rng.choice(
                (
                    place,
                    place,
                    f"({span - 1} - {place})",
                    f"({place} * 2 + 1)",
                    f"({place} // 2)",
                    _column_major(shape),
                    self._in_runs(place),
                    self._in_runs(place),
                )
            )
        # Every input is a power of two long: any integer names one of its elements.
        operands: list[Expression] = []
        mask = ""
        if not self._loading:
            self._loading = True
            if self.rng.random() < 0.15:
                place = A
                operands.append(self.draw("int32", shape, 1))
            if self.rng.random() < 0.3:
                mask = f", mask={{{len(operands)}}}"
                operands.append(self.draw(BOOL, shape, 1))
                if self.rng.random() < 0.6:
                    mask += f", other={self.rng.choice('0123')}"
            elif shape and self.rng.random() < 0.3:
                mask = f", mask={offsets(shape)} < n * {self.rng.choice((3, 7, 16))}"
            elif shape and self.rng.random() < 0.1:
                run = self.rng.choice((2, 4, 8))
                mask = f", mask={offsets(shape)} // {run} % 3 != 0, other=2"
            self._loading = False
        text = f"tl.load({array.name} + pid * {size} + ({place} & {size - 1}){mask})"
        return Expression(text, array.dtype, shape, tuple(operands))

    def _in_runs(self, place: str) -> str:
        """Neighbours, or one element over and over, in aligned runs that lie apart."""
        run = self.rng.choice((2, 4, 8, 16))
        apart = self.rng.choice((0, 1, run, run + 3, 64))
        if self.rng.random() < 0.3:
            return f"({place} // {run} * {apart + 1})"
        return f"({place} // {run} * {apart} + {place} % {run})"

    def cast(self, x: Expression, dtype: str) -> Expression:
        """`x` as another dtype; a bool is what differs from 0."""
        if x.dtype == dtype:
            return x
        text = f"({A} != 0)" if dtype == BOOL else f"{A}.to(tl.{dtype})"
        return Expression(text, dtype, x.shape, (x,))

    def small_integers(self, dtype: str, shape: Shape, depth: int, mask: int) -> Expression:
        """0 to `mask` as `dtype`: terms whose sums are exact."""
        x = self.draw(self.rng.choice(("int32", "int16", "uint32")), shape, depth)
        return Expression(f"({A} & {mask}).to(tl.{dtype})", dtype, shape, (x,))

    def without_nan(self, x: Expression) -> Expression:
        """NaN becomes 0 and -0 becomes +0."""
        zero = f"tl.full({x.shape}, 0.0, tl.{x.dtype})" if x.shape else "0.0"
        text = f"(tl.where({A} == {A}, {A}, {zero}) + 0.0)"
        return Expression(text, x.dtype, x.shape, (x,))

    # --- Productions -------------------------------------------------------------

    def _pair(self, dtype: str, shape: Shape, depth: int) -> tuple[Expression, Expression]:
        """Two operands that broadcast to `shape`."""
        shapes = [shape, shape]
        if shape and self.rng.random() < 0.3:
            shapes[self.rng.randrange(2)] = self._smaller(shape)
        a, b = (self.draw(dtype, s, depth - 1) for s in shapes)
        return a, b

    def _smaller(self, shape: Shape) -> Shape:
        """A shape that broadcasts to `shape`."""
        options: list[Shape] = [()]
        if len(shape) == 2:
            options += [(shape[0], 1), (1, shape[1])]
        return self.rng.choice(options)

    def _binary(self, operators: tuple[str, ...]) -> Callable[[str, Shape, int], Expression]:
        def make(dtype: str, shape: Shape, depth: int) -> Expression:
            a, b = self._pair(dtype, shape, depth)
            operator = self.rng.choice(operators)
            return Expression(f"({A} {operator} {B})", dtype, shape, (a, b))

        return make

    def _integers(self) -> list[Callable[[str, Shape, int], Expression | None]]:
        return [
            self._binary(("+", "-", "*")),
            self._binary(("&", "|", "^")),
            self._binary(("//", "%")),
            self._binary(("<<", ">>")),
            self._with_literal,
            self._integer_unary,
            self._conversion,
            self._choice,
            self._extreme,
            self._mulhi,
            self._integer_reduction,
            self._integer_scan,
            self._index_of_extreme,
            self._integer_dot,
            self._histogram,
            self._bits_of_float,
        ]

    def _floats(self) -> list[Callable[[str, Shape, int], Expression | None]]:
        return [
            self._binary(("+", "-", "*")),
            self._float_division,
            self._with_literal,
            self._float_unary,
            self._fused,
            self._conversion,
            self._choice,
            self._extreme,
            self._exact_sum,
            self._exact_scan,
            self._float_extreme_along,
            self._exact_dot,
        ]

    def _bools(self) -> list[Callable[[str, Shape, int], Expression | None]]:
        return [self._comparison, self._comparison, self._binary(("&", "|", "^")), self._not]

    def _rearranging(self) -> list[Callable[[str, Shape, int], Expression | None]]:
        return [
            self._transposed,
            self._reshaped,
            self._of_moved_odd_factor,
            self._flipped,
            self._joined,
            self._gathered,
            self._sorted,
        ]

    def _with_literal(self, dtype: str, shape: Shape, depth: int) -> Expression:
        x = self.draw(dtype, shape, depth - 1)
        if dtype in FLOATS:
            literal = self.rng.choice(("0.5", "2.0", "-1.25", "3"))
            operator = self.rng.choice("+-*")
        else:
            literal = self.rng.choice(("0", "1", "2", "3", "5", "100"))
            operator = self.rng.choice(("+", "-", "*", "&", "|", "^", "<<", ">>", "//", "%"))
            if operator in ("//", "%") and literal == "0":
                literal = "7"
            if operator in ("<<", ">>") and literal == "100":
                literal = "4"
        text = f"({A} {operator} {literal})"
        if self.rng.random() < 0.2 and operator in "+-*&|^":
            text = f"({literal} {operator} {A})"
        return Expression(text, dtype, shape, (x,))

    def _integer_unary(self, dtype: str, shape: Shape, depth: int) -> Expression:
        x = self.draw(dtype, shape, depth - 1)
        forms = ["(~{0})", "tl.abs({0})"] + (["(-{0})"] if dtype in INTS else [])
        return Expression(self.rng.choice(forms), dtype, shape, (x,))

    def _float_unary(self, dtype: str, shape: Shape, depth: int) -> Expression:
        x = self.draw(dtype, shape, depth - 1)
        forms = ["(-{0})", "tl.abs({0})"]
        if dtype in ("float32", "float64"):
            forms += ["tl.floor({0})", "tl.ceil({0})"]
        if dtype == "float32":
            forms.append("tl.sqrt_rn({0})")
        return Expression(self.rng.choice(forms), dtype, shape, (x,))

    def _float_division(self, dtype: str, shape: Shape, depth: int) -> Expression:
        a, b = self._pair(dtype, shape, depth)
        operator = self.rng.choice("/%")
        text = f"({A} {operator} {B})"
        if dtype == "float32" and self.rng.random() < 0.5:
            text = f"tl.div_rn({A}, {B})"
        elif operator == "/" and self.rounded and dtype != "float64":
            text = f"tl.div_rn({A}.to(tl.float32), {B}.to(tl.float32)).to(tl.{dtype})"
        elif dtype in ("float16", "bfloat16"):
            text += f".to(tl.{dtype})"  # `/` and `%` of narrow floats give float32
        return Expression(text, dtype, shape, (a, b))

    def _fused(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if dtype not in ("float32", "float64"):
            return None
        a, b, c = (self.draw(dtype, shape, depth - 1) for _ in range(3))
        return Expression(f"tl.fma({A}, {B}, {C})", dtype, shape, (a, b, c))

    def _conversion(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        source = self.rng.choice(_NUMBERS + (BOOL,))
        if source == dtype:
            return None
        return self.cast(self.draw(source, shape, depth - 1), dtype)

    def _choice(self, dtype: str, shape: Shape, depth: int) -> Expression:
        a, b = self._pair(dtype, shape, depth)
        condition = self.draw(BOOL, shape, depth - 1)
        text = f"tl.where({A}, {B}, {C})"
        return Expression(text, dtype, shape, (condition, a, b))

    def _extreme(self, dtype: str, shape: Shape, depth: int) -> Expression:
        a, b = self._pair(dtype, shape, depth)
        text = f"tl.{self.rng.choice(('maximum', 'minimum'))}({A}, {B})"
        if dtype in FLOATS:  # of 0 and -0 either may be the larger one
            text = f"({text} + 0.0)"
        return Expression(text, dtype, shape, (a, b))

    def _mulhi(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if dtype not in ("int32", "uint32", "uint64"):
            return None
        a, b = (self.draw(dtype, shape, depth - 1) for _ in range(2))
        return Expression(f"tl.umulhi({A}, {B})", dtype, shape, (a, b))

    def _bits_of_float(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        source = {"int16": "float16", "uint16": "bfloat16", "int32": "float32", "int64": "float64"}
        if dtype not in source:
            return None
        x = self.without_nan(self.draw(source[dtype], shape, depth - 1))
        return Expression(f"{A}.to(tl.{dtype}, bitcast=True)", dtype, shape, (x,))

    def _comparison(self, dtype: str, shape: Shape, depth: int) -> Expression:
        a, b = self._pair(self.rng.choice(_NUMBERS), shape, depth)
        operator = self.rng.choice(("<", "<=", ">", ">=", "==", "!="))
        return Expression(f"({A} {operator} {B})", BOOL, shape, (a, b))

    def _not(self, dtype: str, shape: Shape, depth: int) -> Expression:
        x = self.draw(BOOL, shape, depth - 1)
        return Expression(f"(~{A})", BOOL, shape, (x,))

    # --- Reductions and scans -----------------------------------------------------

    def _longer(self, shape: Shape, longest: int = 64) -> tuple[Shape, int] | None:
        """A shape that gives `shape` when it is reduced along an axis."""
        if len(shape) > 1:
            return None
        extents = [e for e in EXTENTS if e <= longest and e * count(shape) <= _MAX_ELEMENTS]
        extent = self.rng.choice(extents)
        axis = self.rng.randrange(len(shape) + 1)
        return shape[:axis] + (extent,) + shape[axis:], axis

    def _integer_reduction(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        longer = self._longer(shape)
        if longer is None:
            return None
        x = self.draw(dtype, longer[0], depth - 1)
        function = self.rng.choice(("sum", "max", "min", "xor_sum"))
        text = f"tl.{function}({A}, axis={longer[1]}).to(tl.{dtype})"
        return Expression(text, dtype, shape, (x,))

    def _index_of_extreme(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        longer = self._longer(shape)
        if longer is None:
            return None
        x = self.draw(self.rng.choice(_NUMBERS), longer[0], depth - 1)
        if x.dtype in FLOATS:
            x = self.without_nan(x)
        if x.dtype in FLOATS and self.rng.random() < 0.5:
            # Many numbers are equal then, and the first of them counts.
            x = Expression(f"({A} > 0).to(tl.{x.dtype})", x.dtype, x.shape, (x,))
        function = self.rng.choice(("argmax", "argmin"))
        text = f"tl.{function}({A}, axis={longer[1]}).to(tl.{dtype})"
        return Expression(text, dtype, shape, (x,))

    def _float_extreme_along(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        longer = self._longer(shape)
        if longer is None:
            return None
        x = self.without_nan(self.draw(dtype, longer[0], depth - 1))
        function = self.rng.choice(("max", "min"))
        text = f"tl.{function}({A}, axis={longer[1]}).to(tl.{dtype})"
        return Expression(text, dtype, shape, (x,))

    def _exact_sum(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        terms, mask = _EXACT_TERMS[dtype]
        longer = self._longer(shape, terms)
        if longer is None:
            return None
        x = self.small_integers(dtype, longer[0], depth - 1, mask)
        text = f"tl.sum({A}, axis={longer[1]}).to(tl.{dtype})"
        return Expression(text, dtype, shape, (x,))

    def _scan(self, x: Expression, function: str) -> Expression:
        axis = self.rng.randrange(len(x.shape))
        backwards = self.rng.choice(("", ", reverse=True"))
        text = f"tl.{function}({A}, axis={axis}{backwards}).to(tl.{x.dtype})"
        return Expression(text, x.dtype, x.shape, (x,))

    def _integer_scan(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if not shape:
            return None
        return self._scan(
            self.draw(dtype, shape, depth - 1), self.rng.choice(("cumsum", "cumprod"))
        )

    def _exact_scan(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if not shape or max(shape) > _EXACT_TERMS[dtype][0]:
            return None
        return self._scan(
            self.small_integers(dtype, shape, depth - 1, _EXACT_TERMS[dtype][1]), "cumsum"
        )

    def _histogram(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if len(shape) != 1:
            return None
        size: Shape = (self.rng.choice((16, 24, 32, 64, 128)),)
        x = self.draw(self.rng.choice(INTS + UINTS), size, depth - 1)
        elements = self.rng.choice((A, f"({A} & 31)"))
        if self.rng.random() < 0.5:
            text = f"tl.histogram({elements}, {shape[0]}).to(tl.{dtype})"
            return Expression(text, dtype, shape, (x,))
        text = f"tl.histogram({elements}, {shape[0]}, mask={B}).to(tl.{dtype})"
        return Expression(text, dtype, shape, (x, self.draw(BOOL, size, depth - 1)))

    # --- Dots -----------------------------------------------------------------------

    def _integer_dot(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if len(shape) != 2 or min(shape) < 16:
            return None
        inner = self.rng.choice((32, 64))
        a = self.draw("int8", (shape[0], inner), depth - 1)
        b = self.draw("int8", (inner, shape[1]), depth - 1)
        text = f"tl.dot({A}, {B}).to(tl.{dtype})"
        return Expression(text, dtype, shape, (a, b))

    def _exact_dot(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if len(shape) != 2 or min(shape) < 16:
            return None
        element = self.rng.choice(FLOATS)
        inner = self.rng.choice((16, 32, 64))
        a = self.small_integers(element, (shape[0], inner), depth - 1, 7)
        b = self.small_integers(element, (inner, shape[1]), depth - 1, 7)
        options = ', input_precision="ieee"' if element == "float32" else ""
        operands = [a, b]
        if self.rng.random() < 0.4:
            total = "float64" if element == "float64" else "float32"
            acc = self.small_integers(total, shape, depth - 1, 7)
            options += f", acc={C}"
            operands.append(acc)
        # The maximum separates the dot from a sum. Otherwise tile-combine would make the sum's
        # other operand the accumulator, which could be so large that each product is rounded.
        text = f"tl.maximum(tl.dot({A}, {B}{options}), 0.0).to(tl.{dtype})"
        return Expression(text, dtype, shape, tuple(operands))

    # --- Moving elements ---------------------------------------------------------------

    def _transposed(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if len(shape) != 2:
            return None
        x = self.draw(dtype, shape[::-1], depth - 1)
        form = self.rng.choice(("tl.trans({0})", "tl.permute({0}, (1, 0))"))
        return Expression(form, dtype, shape, (x,))

    def _reshaped(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        total = count(shape)
        odd = total // (total & -total)
        # The rows or the columns have the odd factor.
        extents = [extent * factor for factor in {1, odd} for extent in EXTENTS]
        columns = self.rng.choice([extent for extent in extents if total % extent == 0])
        source: Shape = self.rng.choice([(total,), (total // columns, columns)])
        if source == shape or max(source) > 4 * max(EXTENTS) or not all(map(is_extent, source)):
            return None
        x = self.draw(dtype, source, depth - 1)
        return Expression(f"tl.reshape({A}, {shape})", dtype, shape, (x,))

    def _of_moved_odd_factor(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        """Elements of a tile that was reshaped so that an odd factor is elsewhere."""
        if len(shape) != 1:
            return None
        source: Shape = self.rng.choice(((24, 16), (16, 24), (8, 40), (4, 96), (24, 24)))
        x = self.draw(dtype, source, depth - 1)
        index = self.draw("int32", shape, depth - 1)
        text = f"tl.gather(tl.reshape({A}, {(count(source),)}), {B} & 255, 0)"
        return Expression(text, dtype, shape, (x, index))

    def _flipped(self, dtype: str, shape: Shape, depth: int) -> Expression:
        x = self.draw(dtype, shape, depth - 1)
        return Expression(f"tl.flip({A}, {len(shape) - 1})", dtype, shape, (x,))

    def _joined(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        """Two tiles side by side, one after the other, or in turn."""
        if len(shape) == 2 and shape[1] == 2:
            a, b = (self.draw(dtype, shape[:1], depth - 1) for _ in range(2))
            return Expression(f"tl.join({A}, {B})", dtype, shape, (a, b))
        if len(shape) != 1 or shape[0] < 4 or shape[0] & (shape[0] - 1):
            return None
        a, b = (self.draw(dtype, (shape[0] // 2,), depth - 1) for _ in range(2))
        function = self.rng.choice(("tl.interleave({0}, {1})", "tl.cat({0}, {1}, dim=0)"))
        return Expression(function, dtype, shape, (a, b))

    def _gathered(self, dtype: str, shape: Shape, depth: int) -> Expression:
        """Rows or columns chosen by index; an index outside reads 0."""
        axis = self.rng.randrange(len(shape))
        source = list(shape)
        source[axis] = self.rng.choice((4, 8, 16, 32))
        x = self.draw(dtype, tuple(source), depth - 1)
        index = self.draw("int32", shape, depth - 1)
        text = f"tl.gather({A}, ({B} & {self.rng.choice((7, 31))}), {axis})"
        return Expression(text, dtype, shape, (x, index))

    def _sorted(self, dtype: str, shape: Shape, depth: int) -> Expression | None:
        if dtype == BOOL:
            return None
        x = self.draw(dtype, shape, depth - 1)
        if dtype in FLOATS:
            x = self.without_nan(x)
        descending = self.rng.choice(("", ", descending=True"))
        return Expression(f"tl.sort({A}{descending})", dtype, shape, (x,))


def _column_major(shape: Shape) -> str:
    """Positions of the elements in column-major order."""
    if len(shape) != 2:
        return offsets(shape)
    rows, columns = shape
    return f"(tl.arange(0, {rows})[:, None] + tl.arange(0, {columns})[None, :] * {rows})"


def _spread(source: Shape, target: Shape) -> str | None:
    """The subscript that makes a variable broadcast to `target`; None if it cannot."""
    if source == target or not source:
        return ""
    if len(source) == 2:
        fits = len(target) == 2 and all(s in (1, t) for s, t in zip(source, target))
        return "" if fits else None
    if len(source) == 1 and len(target) == 2:
        if source[0] == target[1]:
            return "[None, :]"
        if source[0] == target[0]:
            return "[:, None]"
    if len(source) == 1 == len(target) and source[0] == 1:
        return ""
    return None


def _subscripted(shape: Shape, subscript: str) -> Shape:
    """The shape of a variable with a subscript of `_spread`."""
    return {"": shape, "[None, :]": (1, *shape), "[:, None]": (*shape, 1)}[subscript]


def _broadcast(x: Expression, target: Shape) -> Expression:
    """`x` as a tile of exactly `target`."""
    if x.shape == target:
        return x
    text = f"tl.broadcast_to({A}, {target})" if x.shape else f"tl.full({target}, {A}, tl.{x.dtype})"
    return Expression(text, x.dtype, target, (x,))
