# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building one expression of the language, and looking at what came of it.

What operations compute is tested in test/execution; here it is which types they give, which
IR they make, and what is known at compile time.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any, NamedTuple

import tessera.language as tl
from tessera import _C
from tessera.frontend import ConstSpec, ValueSpec, build_module
from tessera.language import types
from tessera.language.tensor import builtin, describe

HEADER = "import tessera\nimport tessera.language as tl\n\n@tessera.jit\n"

PARAMETERS: dict[str, Any] = {
    "p": (types.KIND_POINTER, tl.float32),
    "hp": (types.KIND_POINTER, tl.float16),
    "ip": (types.KIND_POINTER, tl.int32),
    "lp": (types.KIND_POINTER, tl.int64),
    "bp": (types.KIND_POINTER, tl.int1),
    "n": (types.KIND_NUMBER, tl.int32),
    "m": (types.KIND_NUMBER, tl.int64),
    "u": (types.KIND_NUMBER, tl.uint32),
    "s": (types.KIND_NUMBER, tl.int8),
    "f": (types.KIND_NUMBER, tl.float32),
    "d": (types.KIND_NUMBER, tl.float64),
    "h": (types.KIND_NUMBER, tl.float16),
    "g": (types.KIND_NUMBER, tl.bfloat16),
    "b": (types.KIND_NUMBER, tl.int1),
}

_numbers = itertools.count()


class Built(NamedTuple):
    """The value of an expression, and the IR of the kernel around it."""

    value: Any
    ir: str

    @property
    def type(self) -> str:
        """The value's type, or the value where it is a constant."""
        if isinstance(self.value, tuple):
            return ", ".join(describe(item) for item in self.value)
        return describe(self.value)


class Options:
    debug = True


Build = Callable[..., Built]


def builder() -> Build:
    """`build("x + 1", "x = tl.arange(0, 8)")`: the last expression, after some statements."""

    def run(expression: str, *statements: str, **constants: Any) -> Built:
        seen: list[Any] = []

        @builtin
        def observe(value: Any) -> None:
            seen.append(value)

        names = [*PARAMETERS, *constants]
        lines = [f"def kernel({', '.join(names)}):"]
        lines += ["    " + line for statement in statements for line in statement.split("\n")]
        lines += [f"    observe({expression})"]
        text = HEADER + "\n".join(lines) + "\n"
        file = f"<expression {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        namespace: dict[str, Any] = {"__name__": "expressions", "observe": observe}
        exec(compile(text, file, "exec"), namespace)
        arguments: list[Any] = [
            ValueSpec(_C.Type(kind, dtype._core_id, False, ()), 0)
            for kind, dtype in PARAMETERS.values()
        ]
        arguments += [ConstSpec(value) for value in constants.values()]
        module = build_module(namespace["kernel"], arguments, Options).module
        (value,) = seen
        return Built(value, str(module))

    return run


SETUP = (
    "i = tl.arange(0, 8)",
    "x = i.to(tl.float32)",
    "t = tl.full((4, 8), 1.5, tl.float32)",
    "k = tl.full((4, 8), 3, tl.int32)",
    "c = i < 4",
)
"""What the expressions of the tables are made of."""


def check(build: Build, expression: str, type: str, text: str) -> None:
    """Builds an expression and compares its type, and a piece of the IR."""
    built = build(expression, *SETUP)
    assert built.type == type
    assert text in built.ir
