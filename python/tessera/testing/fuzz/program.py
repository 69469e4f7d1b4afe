# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A generated kernel as data: statements, arrays, and its text.

Statements are kept apart from their text so that a failing kernel can be made smaller by
taking statements out of it (shrink.py).
"""

from __future__ import annotations

import dataclasses
import linecache
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Optional, Union

from tessera.testing.fuzz.definitions import record_of, write_definitions

# The parts that the text of a kernel needs.
IMPORTS = """import dataclasses
import typing

import tessera
import tessera.language as tl
from tessera.language.extra import libdevice
"""

Shape = tuple[int, ...]

# The number of a program in a grid of up to three axes.
_PID_OF_GRID = (
    "tl.program_id(0) + tl.num_programs(0) * "
    "(tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))"
)

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
    a call, a subscript, something in parentheses), so operands need no parentheses. `assembly`
    is the same in inline assembly, for GPU code alone.
    """

    template: str
    dtype: str
    shape: Shape
    operands: tuple[Expression, ...] = ()
    names: frozenset[str] = frozenset()
    assembly: str = ""

    @property
    def text(self) -> str:
        """The expression as Python."""
        return self.write(gpu=False)

    def write(self, gpu: bool) -> str:
        """The expression as Python, with inline assembly where there is any for a GPU."""
        template = self.assembly if gpu and self.assembly else self.template
        return template.format(*(operand.write(gpu) for operand in self.operands))

    @property
    def uses(self) -> frozenset[str]:
        """All variables that the expression reads."""
        return self.names.union(*(operand.uses for operand in self.operands))


@dataclasses.dataclass
class Assign:
    """`target = expression`; of an existing variable inside a loop or a branch.

    One that is `fenced` writes memory, too, and has barriers as a store has.
    """

    target: Value
    value: Expression
    fenced: bool = False


@dataclasses.dataclass
class Store:
    """A statement whose expression writes to an array.

    If it is `fenced`, it has a barrier on both sides on a GPU, since other lanes load the elements
    before and after it.
    """

    output: str
    value: Expression
    fenced: bool = False


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

    `data` chooses the values of an input:

    - "integers": all bit patterns, extremes often
    - "dyadic": multiples of 1/8
    - "small": -2 to 2; "fp8": the same as bits of float8e5; "halves": 1/2 and 1
    - "places 64": from -1 on, and below 64
    - "special": dyadic, with NaN, infinities, -0 and denormals among them
    - "bits": floats of any bit pattern
    - "zeros": an output
    - "scratch": addresses, which are zeros at first and are not compared afterwards

    If an array of floats is `exact`, the bits of a NaN are compared, too. If it has a `base`, it is
    that array's memory from `behind` elements after its start on. If it has `places` (first
    elements and lengths), it is larger than memory: only these places have elements and are
    compared, and the rest counts as zeros.
    """

    name: str
    dtype: str
    size: int
    data: str = "zeros"
    shared: bool = False
    exact: bool = False
    base: str = ""
    behind: int = 0
    places: tuple[tuple[int, int], ...] = ()

    def total(self, programs: int) -> int:
        """The elements of the whole array."""
        return (self.size if self.shared else self.size * programs) - self.behind


@dataclasses.dataclass(frozen=True)
class Part:
    """An argument that holds arrays. The kernel's first lines extract them.

    `kind` is "tuple", "list", "nested", "record", "aggregate" or "descriptor". A descriptor has one
    array, its `extents`, the stride of rows, the extents of a block, `padding` and `tf32`.
    """

    name: str
    kind: str
    members: tuple[str, ...]
    extents: tuple[int, int] = (0, 0)
    stride: int = 0
    block: tuple[int, int] = (0, 0)
    padding: str = "zero"
    tf32: bool = False

    def unpacked(self) -> list[str]:
        """The lines that give the arrays their names."""
        names = ", ".join(self.members)
        if self.kind == "descriptor":
            return []
        if self.kind == "nested":
            inner = "".join(f"[{name}], " for name in self.members)
            return [f"({inner}), {self.name}_count = {self.name}"]
        if self.kind == "list":
            return [f"{m} = {self.name}[{i}]" for i, m in enumerate(self.members)]
        if self.kind == "tuple":
            return [f"{names}, = {self.name}"]
        name = record_of(len(self.members), self.kind == "aggregate")[0]
        inside = f"tl.static_assert({self.name}.extra == 5)  # {name}"
        return [inside] + [f"{m} = {self.name}.m{i}" for i, m in enumerate(self.members)]


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
    iterations: int  # the run-time integer argument `n`
    arrays: list[Array]
    statements: list[Statement]
    checks: list[Check]
    scalars: list[tuple[str, Union[int, float]]] = dataclasses.field(default_factory=list)
    """Further arguments: a parameter, which may have an annotation, and its value."""
    parts: list[Part] = dataclasses.field(default_factory=list)
    launches: str = ""
    """The launches on GPUs. "" is one launch, whose options follow from the seed. "divided" is one
    without clusters, and one that may choose clusters. "clusters" is these two, and one with given
    clusters. "chosen" is launches on GPUs with few SMs and with many."""
    options: dict[str, int] = dataclasses.field(default_factory=dict)
    """Options of a launch on a GPU, instead of those that follow from the seed; on a CPU
    `enable_fp_fusion`."""
    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    """Counts of the kernel's features, and of facts found by its launches, by name (check.py)."""
    grid: str = ""
    """The grid of a launch, as Python with `np`; a tuple of one extent if empty. Its extents make
    `programs`."""

    def source(self, gpu: bool = False) -> str:
        """The text of the function `kernel`; with `gpu`, including the statements for GPUs only."""
        inside = {name for part in self.parts for name in part.members}
        parameters = [array.name for array in self.arrays if array.name not in inside] + ["n"]
        parameters += [name for name, _ in self.scalars] + [part.name for part in self.parts]
        names = ", ".join(parameters)
        body = "\n".join(render(self.statements, 1, gpu)) + "\n"
        opening = [f"    {line}" for part in self.parts for line in part.unpacked()]
        head = ["@tessera.jit", f"def kernel({names}):", *opening]
        pid = _PID_OF_GRID if self.grid else "tl.program_id(0)"
        kernel = "\n".join([*head, f"    pid = {pid}", body])
        return write_definitions(kernel) + kernel


def render(statements: list[Statement], depth: int, gpu: bool = False) -> list[str]:
    """The lines of statements at an indentation."""
    pad = "    " * depth
    lines = []
    for statement in statements:
        if isinstance(statement, (Assign, Store)):
            line = statement.value.write(gpu)
            if isinstance(statement, Assign):
                line = f"{statement.target.name} = {line}"
            barrier = [pad + "tl.debug_barrier()"] if gpu and statement.fenced else []
            lines += [*barrier, pad + line, *barrier]
        else:
            if statement.setup:
                lines.append(pad + statement.setup)
            condition = f" {statement.condition.write(gpu)}" if statement.condition else ""
            lines.append(f"{pad}{statement.header}{condition}:")
            body = render(statement.body, depth + 1, gpu)
            if statement.step:
                body.append(f"{pad}    {statement.step}")
            lines += body or [f"{pad}    pass"]
            if statement.otherwise:
                lines.append(f"{pad}else:")
                lines += render(statement.otherwise, depth + 1, gpu)
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


# The constructor of an object, by its kind; the dtype of one is "kind:dtype".
OBJECTS = {
    "pair": "Pair({0}, {0})",
    "state": "State.of({0}, {0}, n)",
    "named": "Named({0}, {0})",
    "record": "Record({0}, {0})",
    "tuple": "({0}, {0})",
}


def constant(dtype: str, shape: Shape, value: int = 1) -> Expression:
    """A tile of one number, or an object of such tiles."""
    if ":" in dtype:
        kind, _, element = dtype.partition(":")
        inner = constant(element, shape, value)
        return Expression(OBJECTS[kind].format(inner.text), dtype, shape)
    number = f"{value}.0" if dtype in FLOATS else str(value)
    if not shape:
        return Expression(f"tl.to_tensor({value}).to(tl.{dtype})", dtype, shape)
    return Expression(f"tl.full({shape}, {number}, tl.{dtype})", dtype, shape)


def compile_source(source: str, file_name: str) -> Any:
    """The @tessera.jit function `kernel` of a text."""
    text = IMPORTS + "\n\n" + source
    linecache.cache[file_name] = (len(text), None, text.splitlines(True), file_name)
    namespace: dict[str, Any] = {"__name__": "tessera_fuzz"}
    exec(compile(text, file_name, "exec"), namespace)
    return namespace["kernel"]
