# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels about values: expressions of all operations, in loops and branches, and their results."""

from __future__ import annotations

import random

from tessera.testing.fuzz.expressions import EXTENTS, Expressions
from tessera.testing.fuzz.program import (
    BOOL,
    FLOATS,
    INTS,
    UINTS,
    Array,
    Assign,
    Check,
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

# Functions of one float32 or float64 that have a float64 reference in check.py, and the
# magnitude that their argument may have, if any.
_FUNCTIONS = {
    "exp": None,
    "exp2": None,
    "log": None,
    "log2": None,
    "sqrt": None,
    "rsqrt": None,
    "erf": None,
    "sin": 100.0,
    "cos": 100.0,
    "sigmoid": None,
}
_DTYPES = INTS + UINTS + FLOATS


def generate_values(seed: int, rounded: bool) -> Program:
    """The kernel about values of a seed. With `rounded` it has no quotient that GPUs do not round."""
    return Generator(seed, rounded).program


class Generator:
    """Makes a kernel's statements one after the other; `program` is the kernel."""

    expressions = Expressions

    def __init__(self, seed: int, rounded: bool) -> None:
        self.rng = random.Random(seed)
        self.make = self.expressions(self.rng, rounded)
        self.scope = self.make.scope
        self.names = 0
        self.while_counters: set[str] = set()
        self.program = Program(
            seed, self.rng.choice((1, 2, 3)), self.rng.choice((2, 3, 5)), [], [], []
        )
        self.extents = [self.rng.choice(EXTENTS) for _ in range(2)]
        if self.rng.random() < 0.4:  # large enough for a dot
            self.extents = [self.rng.choice((16, 32)) for _ in range(2)]
        self._inputs()
        body = self.program.statements
        self.scope += [Value("pid", "int32", ()), Value("n", "int32", ())]
        for _ in range(self.rng.randint(2, 6)):
            self._statement(body, nesting=0)
        self._outputs(body)
        if self.rng.random() < 0.4:
            self._checked(body)
        if self.rng.random() < 0.3:
            self._checked_by_python(body)

    # --- Arguments ---------------------------------------------------------------

    def _inputs(self) -> None:
        special = self.rng.random() < 0.3
        for _ in range(self.rng.randint(1, 3)):
            dtype = self.rng.choice(_DTYPES + (BOOL,))
            data = "integers" if dtype not in FLOATS else "special" if special else "dyadic"
            self._array("in", dtype, self.rng.choice((16, 64, 256, 1024)), data)
        self.make.inputs += self.program.arrays

    def _array(
        self, prefix: str, dtype: str, size: int, data: str = "zeros", shared: bool = False
    ) -> Array:
        array = Array(f"{prefix}{len(self.program.arrays)}", dtype, size, data, shared)
        self.program.arrays.append(array)
        return array

    # --- Statements -----------------------------------------------------------------

    def _name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def _shape(self) -> Shape:
        a, b = self.extents
        return self.rng.choice([(a,), (b,), (a, b), (a, b), (b, a), ()])

    def _statement(self, body: list[Statement], nesting: int) -> None:
        kind = self.rng.random()
        updatable = [
            value
            for value in self.scope
            if value.name.startswith("v") and value.name not in self.while_counters
        ]
        if kind < 0.7 or not updatable or nesting > 1:
            self._assign(body)
        elif kind < 0.9:
            self._loop(body, updatable, nesting)
        else:
            self._branch(body, updatable, nesting)

    def _assign(self, body: list[Statement]) -> Value:
        dtype = self.rng.choice(_DTYPES + (BOOL,))
        value = self.make.draw(dtype, self._shape(), self.rng.randint(1, 3))
        target = Value(self._name(), value.dtype, value.shape)
        body.append(Assign(target, value))
        self.scope.append(target)
        return target

    def _update(self, body: list[Statement], target: Value) -> None:
        body.append(Assign(target, self.make.draw(target.dtype, target.shape, 2)))

    def _block(self, updatable: list[Value], nesting: int) -> list[Statement]:
        """Statements that change one or two existing variables; what else they make is theirs."""
        body: list[Statement] = []
        visible = len(self.scope)
        for _ in range(self.rng.randint(0, 2)):
            self._statement(body, nesting + 1)
        for target in self.rng.sample(updatable, min(len(updatable), self.rng.randint(1, 2))):
            self._update(body, target)
        del self.scope[visible:]
        return body

    def _loop(self, body: list[Statement], updatable: list[Value], nesting: int) -> None:
        counter = Value(self._name(), "int32", ())
        i = counter.name
        if self.rng.random() < 0.2:
            steps = self.rng.choice(("n", "pid + 1", "3"))
            nested = Nested(f"while {i} < {steps}", [], setup=f"{i} = 0", step=f"{i} += 1")
            # Statements in the loop that changed it could make the loop endless.
            self.while_counters.add(i)
        else:
            bounds = self.rng.choice(
                (
                    "range(n)",
                    "range(0, n, 2)",
                    "range(pid, n)",
                    "range(n, 0, -1)",
                    "range(3)",
                    "tl.range(0, n)",
                    "tl.static_range(3)",
                )
            )
            nested = Nested(f"for {i} in {bounds}", [])
        # Inside tl.static_range the counter is a constant, which does not have the type of
        # a variable.
        usable = "static" not in nested.header
        if usable:
            self.scope.append(counter)
        nested.body = self._block(updatable, nesting)
        if usable:
            self.scope.remove(counter)
        body.append(nested)

    def _branch(self, body: list[Statement], updatable: list[Value], nesting: int) -> None:
        condition = self.rng.choice(
            [Expression("(pid % 2 == 0)", BOOL, ()), Expression("(n > 2)", BOOL, ())]
            + [self.make.draw(BOOL, (), 1)]
        )
        nested = Nested("if", self._block(updatable, nesting), condition=condition)
        if self.rng.random() < 0.6:
            nested.otherwise = self._block(updatable, nesting)
        body.append(nested)

    # --- Results -----------------------------------------------------------------------

    def _outputs(self, body: list[Statement]) -> None:
        results = [value for value in self.scope if value.name.startswith("v")]
        for value in self.rng.sample(results, min(len(results), 4)):
            self._store(body, value)
        if self.rng.random() < 0.3:
            self._atomic(body)

    def _store(self, body: list[Statement], value: Value) -> Array:
        size = count(value.shape)
        output = self._array("out", value.dtype, size)
        place = offsets(value.shape)
        if value.shape and self.rng.random() < 0.2:
            place = f"({size - 1} - {place})"
        elif value.shape and size % 16 == 0 and self.rng.random() < 0.2:
            run = self.rng.choice((2, 4, 8))
            place = f"(({place} // {run} ^ 1) * {run} + {place} % {run})"
        mask = ""
        if value.shape and self.rng.random() < 0.3:
            mask = f", mask={offsets(value.shape)} < n * {self.rng.choice((3, 7, 16))}"
        elif value.shape and self.rng.random() < 0.1:
            mask = f", mask={offsets(value.shape)} // {self.rng.choice((2, 4, 8))} % 3 != 1"
        address = f"{output.name} + pid * {size}" + (f" + {place}" if place else "")
        body.append(_store(output, f"tl.store({address}, {{0}}{mask})", _read(value)))
        return output

    def _atomic(self, body: list[Statement]) -> None:
        """Integers met at shared addresses: any order gives the same."""
        dtype = self.rng.choice(("int32", "int64", "uint32"))
        shape = self.rng.choice([(self.extents[0],), tuple(self.extents), ()])
        value = self.make.draw(dtype, shape, 2)
        index = self.make.draw("int32", shape, 1)
        output = self._array("out", dtype, 16, shared=True)
        kind = self.rng.choice(("add", "max", "min", "xor", "or", "and"))
        operands = [value, index]
        mask = ""
        if self.rng.random() < 0.5:
            operands.append(self.make.draw(BOOL, shape, 1))
            mask = ", mask={2}"
        place = "{1} & 15"
        if shape and self.rng.random() < 0.5:
            # Lanes meet in runs; in those of a row, of some rows, or of the tile.
            run = self.rng.choice((2, 4, shape[-1], 2 * shape[-1], count(shape)))
            place = f"{offsets(shape)} // {run} % 16"
        text = f"tl.atomic_{kind}({output.name} + ({place}), {{0}}{mask})"
        body.append(_store(output, text, *operands))

    # --- Results that are only nearly the same everywhere ----------------------------------

    def _checked(self, body: list[Statement]) -> None:
        kind = self.rng.choice(("function", "function", "sum", "dot"))
        dtype = self.rng.choice(("float32", "float64"))
        if kind == "function":
            name = self.rng.choice(list(_FUNCTIONS))
            x = self._keep(
                body, self._tame(self.make.draw(dtype, self._shape(), 2), _FUNCTIONS[name])
            )
            self._keep_result(body, f"tl.{name}({x.name})", x.dtype, x.shape, name, (x,))
        elif kind == "sum":
            shape = (self.extents[0], self.extents[1])
            x = self._keep(body, self._tame(self.make.draw(dtype, shape, 2), 100.0))
            axis = self.rng.randrange(2)
            text = f"tl.sum({x.name}, axis={axis})"
            self._keep_result(body, text, dtype, (shape[1 - axis],), "sum", (x,), axis)
        else:
            dtype = self.rng.choice(FLOATS)
            a, b = (
                self._keep(body, self._tame(self.make.draw(dtype, shape, 2), 8.0))
                for shape in ((16, 32), (32, 16))
            )
            total = dtype if dtype == "float64" else "float32"
            options = ', input_precision="ieee"' if dtype == "float32" else ""
            text = f"tl.dot({a.name}, {b.name}{options})"
            self._keep_result(body, text, total, (16, 16), "dot", (a, b))

    # --- Results that Python says ----------------------------------------------------------------

    def _checked_by_python(self, body: list[Statement]) -> None:
        """Compares results of the front-end and the launch with Python's: values of `and`, `or` and
        chains, quotients of constants, and numbers as arguments. They are the same on all targets,
        so comparing targets shows no mistake."""
        kind = self.rng.choice(("logic", "chain", "quotient", "argument"))
        dtype = self.rng.choice(("float32", "float64"))
        if kind == "logic":
            function = self.rng.choice(("or", "and", "or 16", "and 3"))
            text = {"or": "{0} or {1}", "and": "{0} and {1}"}.get(function, f"{{0}} {function}")
            operands = [self._often_zero(body, dtype) for _ in range(2 - (function[-1] in "63"))]
            names = [x.name for x in operands]
            self._keep_result(body, text.format(*names), dtype, (), function, tuple(operands))
        elif kind == "chain":
            x, y = (self._often_zero(body, dtype) for _ in range(2))
            text = f"(-1.0 <= {x.name} < {y.name}).to(tl.{dtype})"
            self._keep_result(body, text, dtype, (), "chain", (x, y))
        elif kind == "quotient":
            b = self.rng.choice((-5, -4, -3, 2, 3, 7))
            a = self.rng.choice((-9, -8, -7, -5, -2, -1) if b > 0 else (1, 2, 5, 7, 8, 9, -7, 0))
            operator = self.rng.choice(("//", "%"))
            want, text = (a // b if operator == "//" else a % b), f"({a}) {operator} ({b})"
            if self.rng.random() < 0.5:  # at run time it is C's
                want = int(a / b) if operator == "//" else a - int(a / b) * b
                text = f"(n + {a - self.program.iterations}) {operator} ({b})"
            text = f"tl.to_tensor({text}).to(tl.{dtype})"
            operand = self._keep(body, constant(dtype, (), want))
            self._keep_result(body, text, dtype, (), "same", (operand,))
        else:
            narrow, place = self.rng.choice((("bfloat16", 8), ("bfloat16", 8), ("float16", 11)))
            # Beside the middle of two numbers of the narrow type.
            number = 1 + self.rng.getrandbits(place - 1) * 2.0 ** (1 - place) + 2.0**-place
            number += self.rng.choice((-1, 1)) * 2.0 ** -self.rng.randint(place + 2, 52)
            number *= self.rng.choice((1.0, -1.0, 2.0**-14, 1024.0))
            name, exact = f"narrow{self.names}", f"exact{self.names}"
            self.program.scalars += [
                (f"{name}: tl.{narrow}", number),
                (f"{exact}: tl.float64", number),
            ]
            operand = self._keep(
                body, Expression(f"{exact}.to(tl.{narrow}).to(tl.float64)", "float64", ())
            )
            self._keep_result(body, f"{name}.to(tl.float64)", "float64", (), "same", (operand,))

    def _often_zero(self, body: list[Statement], dtype: str) -> Value:
        x = self._tame(self.make.draw(dtype, (), 1), 1e6)
        text = f"tl.where({{1}}, {{0}}, 0.0).to(tl.{dtype})"
        return self._keep(body, Expression(text, dtype, (), (x, self.make.draw(BOOL, (), 1))))

    def _tame(self, x: Expression, limit: float | None) -> Expression:
        """`x` without NaN and without what is beyond a limit."""
        if limit is None:
            return x
        text = f"tl.where(tl.abs({{0}}) < {limit}, {{0}}, 1.5).to(tl.{x.dtype})"
        return Expression(text, x.dtype, x.shape, (x,))

    def _keep(self, body: list[Statement], x: Expression) -> Value:
        """A variable that holds `x`."""
        target = Value(self._name(), x.dtype, x.shape)
        body.append(Assign(target, x))
        return target

    def _keep_result(
        self,
        body: list[Statement],
        text: str,
        dtype: str,
        shape: Shape,
        function: str,
        operands: tuple[Value, ...],
        axis: int = 0,
    ) -> None:
        """Stores operands and result, to be compared with NumPy."""
        result = Value(self._name(), dtype, shape)
        names = frozenset(value.name for value in operands)
        body.append(Assign(result, Expression(text, dtype, shape, (), names)))
        stored = []
        for value in (*operands, result):
            size = count(value.shape)
            output = self._array("out" if value is not result else "near", value.dtype, size)
            place = f" + {offsets(value.shape)}" if value.shape else ""
            template = f"tl.store({output.name} + pid * {size}{place}, {{0}})"
            body.append(_store(output, template, _read(value)))
            stored.append(output.name)
        shapes = tuple(value.shape for value in (*operands, result))
        self.program.checks.append(Check(function, tuple(stored[:-1]), stored[-1], shapes, axis))


def _read(value: Value) -> Expression:
    return Expression(value.name, value.dtype, value.shape, (), frozenset([value.name]))


def _store(output: Array, template: str, *operands: Expression) -> Store:
    return Store(output.name, Expression(template, "void", (), operands))
