# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators that are made of others, in graphs of torch: derivatives, and chains of calls
that one kernel computes (chains.py).

One operator of torch does the calls of them all. A recipe among its arguments says what the operator is
made of. torch keeps compiled graphs on disk. A process that loads one has only the operators that
Dynamo met there, which are those of users. From these and the recipe it makes the others.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch

from tessera.calls.elements import make_text_function
from tessera.calls.plans import Operator
from tessera.runtime.jit import jit
from tessera.torch import generated_calls

MAX_RECIPES = 1024
"""Operators that are kept. There are more only if programs are compiled all the time."""

users: dict[str, Operator] = {}
"""Operators that are made of no others, by their names in torch."""

_made: dict[str, Operator] = {}
"""The others, by their recipes."""


class Call(NamedTuple):
    """A call of an operator within a chain."""

    recipe: str
    """Of the operator."""
    args: tuple[str, ...]
    """`x0` for the first array of the chain, `n0` for its first number, `t2_1` for result 1 of call 2."""


def recipe_of(op: Operator, name_of: Callable[[Operator], str]) -> str:
    """The text from which `find` has an operator. `name_of` makes the operator of torch of one that is
    made of no others."""
    if op.origin is None:
        return name_of(op)
    if isinstance(op.origin, str):
        return op.origin
    base, wanted = op.origin
    flags = "".join("01"[each] for each in wanted)
    return repr(("gradient", recipe_of(base, name_of), flags))


def chain_recipe(calls: Sequence[Call], results: Sequence[str], arrays: int, numbers: int) -> str:
    """The recipe of a chain of calls, of so many arrays and numbers."""
    return repr(("chain", tuple(map(tuple, calls)), tuple(results), arrays, numbers))


def find(recipe: str, gradient: Callable[[Operator, tuple[bool, ...]], Any]) -> Operator:
    """The operator of a recipe. `gradient` makes the derivative of one."""
    found = users.get(recipe) or _made.get(recipe)
    if found is not None:
        return found
    if not recipe.startswith("("):
        return generated_calls.find(users, recipe)  # type: ignore[no-any-return]
    kind, *rest = ast.literal_eval(recipe)
    if kind == "gradient":
        base, flags = rest
        return gradient(find(base, gradient), tuple(each == "1" for each in flags))  # type: ignore[no-any-return]
    calls, results, arrays, numbers = rest
    operators = [find(each, gradient) for each, _ in calls]
    made = _make_chain(operators, [args for _, args in calls], results, arrays, numbers)
    made.origin = recipe
    if len(_made) >= MAX_RECIPES:
        _made.clear()
    return _made.setdefault(recipe, made)


def _make_chain(
    operators: Sequence[Operator],
    arguments: Sequence[Sequence[str]],
    results: Sequence[str],
    arrays: int,
    numbers: int,
) -> Operator:
    """An operator whose scalar function calls those of others."""
    lines = []
    for at, (op, args) in enumerate(zip(operators, arguments)):
        made = ", ".join(f"t{at}_{each}_" for each in range(len(op.scalar.results)))
        lines.append(f"{made} = f{at}_({', '.join(f'{arg}_' for arg in args)})")
    lines.append(f"return {', '.join(f'{each}_' for each in results)}")
    parameters = [f"x{at}_" for at in range(arrays)] + [f"n{at}_" for at in range(numbers)]
    first = operators[0]
    text = f"def chain({', '.join(parameters)}):\n    " + "\n    ".join(lines) + "\n"
    scope = {f"f{at}_": op.function for at, op in enumerate(operators)}
    function: Any = jit(make_text_function("chain", text, first.__module__, scope))
    return type(first)(function, "same")


class ByRecipe:
    """The operator of torch of one that is made of others, called as that of others is."""

    def __init__(self, recipe: str, count: int) -> None:
        self.recipe = recipe
        self.count = count
        """Of results."""

    def __call__(self, arrays: Any, numbers: Any, kinds: str, constants: str) -> Any:
        found = operator(arrays, numbers, kinds, constants, self.recipe)
        return found[0] if self.count == 1 else tuple(found)


SCHEMA = "(Tensor[] arrays, Scalar[] numbers, str kinds, str constants, str recipe) -> Tensor[]"

operator: Any = None
"""The operator of torch, once one is needed."""


def prepare(make: Callable[[], Any]) -> None:
    """Makes the operator of torch."""
    global operator
    if operator is None:
        operator = make()


def overload() -> Optional[Any]:
    """The operator as graphs have it."""
    return None if operator is None else torch.ops.tessera.elementwise.default
