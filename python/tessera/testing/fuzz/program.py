# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A generated kernel as data: statements, arrays, and its text.

Statements are kept apart from their text so that a failing kernel can be made smaller by
taking statements out of it (shrink.py).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Optional, Union

Shape = tuple[int, ...]

INTS = ("int8", "int16", "int32", "int64")
UINTS = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
BOOL = "int1"


@dataclasses.dataclass(frozen=True)
class Value:
    """A variable of the kernel."""

    name: str
    dtype: str
    shape: Shape


@dataclasses.dataclass(frozen=True)
class Expression:
    """A tile of `dtype` and `shape`: `template`, with `{0}`, `{1}`, ... for the operands.

    `names` are the variables that the template itself reads. Every text is an atom (a name,
    a call, a subscript, something in parentheses), so operands need no parentheses.
    """

    template: str
    dtype: str
    shape: Shape
    operands: tuple[Expression, ...] = ()
    names: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The expression as Python."""
        return self.template.format(*(operand.text for operand in self.operands))

    @property
    def uses(self) -> frozenset[str]:
        """All variables that the expression reads."""
        return self.names.union(*(operand.uses for operand in self.operands))


@dataclasses.dataclass
class Assign:
    """`target = expression`; of an existing variable inside a loop or a branch."""

    target: Value
    value: Expression


@dataclasses.dataclass
class Store:
    """A statement whose expression writes to an output array."""

    output: str
    value: Expression


@dataclasses.dataclass
class Nested:
    """`header:` and statements under it; `setup` and `step` are the counter of a while.

    The header of a branch is "if", and its condition follows.
    """

    header: str
    body: list[Statement]
    condition: Optional[Expression] = None
    otherwise: list[Statement] = dataclasses.field(default_factory=list)
    setup: Optional[str] = None
    step: Optional[str] = None


Statement = Union[Assign, Store, Nested]


@dataclasses.dataclass(frozen=True)
class Array:
    """An argument: `size` elements for each program, or in all if it is `shared`.

    `data` says what an input holds: "integers" (all bit patterns, extremes often), "dyadic"
    (multiples of 1/8), "special" (dyadic, with NaN, infinities, -0 and denormals among
    them) or "zeros" (an output).
    """

    name: str
    dtype: str
    size: int
    data: str = "zeros"
    shared: bool = False

    def total(self, programs: int) -> int:
        """The elements of the whole array."""
        return self.size if self.shared else self.size * programs


@dataclasses.dataclass(frozen=True)
class Check:
    """`result` holds `function` of what `operands` hold, within a stated bound (check.py)."""

    function: str
    operands: tuple[str, ...]
    result: str
    shapes: tuple[Shape, ...] = ()
    axis: int = 0


@dataclasses.dataclass
class Program:
    """A kernel, its grid and its arguments."""

    seed: int
    programs: int
    trips: int  # the run-time integer argument `n`
    arrays: list[Array]
    statements: list[Statement]
    checks: list[Check]

    def source(self) -> str:
        """The text of the function `kernel`."""
        names = ", ".join([array.name for array in self.arrays] + ["n"])
        lines = ["@tessera.jit", f"def kernel({names}):", "    pid = tl.program_id(0)"]
        lines += render(self.statements, 1)
        return "\n".join(lines) + "\n"


def render(statements: list[Statement], depth: int) -> list[str]:
    """The lines of statements at an indentation."""
    pad = "    " * depth
    lines = []
    for statement in statements:
        if isinstance(statement, Assign):
            lines.append(f"{pad}{statement.target.name} = {statement.value.text}")
        elif isinstance(statement, Store):
            lines.append(pad + statement.value.text)
        else:
            if statement.setup:
                lines.append(pad + statement.setup)
            condition = f" {statement.condition.text}" if statement.condition else ""
            lines.append(f"{pad}{statement.header}{condition}:")
            body = render(statement.body, depth + 1)
            if statement.step:
                body.append(f"{pad}    {statement.step}")
            lines += body or [f"{pad}    pass"]
            if statement.otherwise:
                lines.append(f"{pad}else:")
                lines += render(statement.otherwise, depth + 1)
    return lines


def walk(statements: list[Statement]) -> Iterator[tuple[list[Statement], int, Statement]]:
    """Every statement, with the list it is in and its place there."""
    for index, statement in enumerate(statements):
        yield statements, index, statement
        if isinstance(statement, Nested):
            yield from walk(statement.body)
            yield from walk(statement.otherwise)


def count(shape: Shape) -> int:
    """The number of elements."""
    return math.prod(shape)


def offsets(shape: Shape) -> str:
    """Row-major positions of the elements of a tile; empty for a scalar."""
    if not shape:
        return ""
    if len(shape) == 1:
        return f"tl.arange(0, {shape[0]})"
    rows, columns = shape
    return f"(tl.arange(0, {rows})[:, None] * {columns} + tl.arange(0, {columns})[None, :])"


def constant(dtype: str, shape: Shape, value: int = 1) -> Expression:
    """A tile of one number."""
    number = f"{value}.0" if dtype in FLOATS else str(value)
    if not shape:
        return Expression(f"tl.to_tensor({value}).to(tl.{dtype})", dtype, shape)
    return Expression(f"tl.full({shape}, {number}, tl.{dtype})", dtype, shape)
