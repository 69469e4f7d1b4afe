# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shrinks a failing kernel while it still fails.

Four steps repeat until none succeeds. They remove an unused statement, replace control flow by its
body, replace an expression by a constant, or an operation by an operand of its type. Unused arrays
and variables are removed, too.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator

from tessera.testing.fuzz.program import (
    Assign,
    Expression,
    Nested,
    Program,
    Statement,
    Store,
    constant,
    render,
    walk,
)


def shrink(
    program: Program,
    fails: Callable[[Program], bool],
    progress: Callable[[Program], None] | None = None,
) -> Program:
    """The smallest kernel found for which `fails` still holds. `program` stays as it is."""
    best = copy.deepcopy(program)
    improved = True
    while improved:
        improved = False
        for candidate in _smaller(best):
            if fails(candidate):
                best, improved = candidate, True
                if progress:
                    progress(best)
                break
    return best


def _smaller(program: Program) -> Iterator[Program]:
    """Kernels one move away, the largest savings first."""
    if program.programs > 1:
        yield _changed(program, programs=1, grid="")
    for check in program.checks:
        yield _changed(program, checks=[item for item in program.checks if item is not check])
    for part in program.parts:
        if part.kind != "descriptor":
            yield _changed(program, parts=[item for item in program.parts if item is not part])
    places = range(len(list(walk(program.statements))))
    for move in (_drop, _unwrap):
        for place in places:
            yield from _with(program, place, move)
    statements = [statement for _, _, statement in walk(program.statements)]
    results = _checked_results(program)
    for place, statement in enumerate(statements):
        if _is_checked(statement, program, results):
            continue
        value = _value(statement)
        for smaller in _simpler(value) if value else ():
            yield from _with(program, place, functools.partial(_put, smaller))


def _changed(program: Program, **fields: object) -> Program:
    candidate = copy.deepcopy(program)
    for name, value in fields.items():
        setattr(candidate, name, copy.deepcopy(value))
    return _without_leftovers(candidate)


def _with(
    program: Program, place: int, move: Callable[[list[Statement], int, Program], bool]
) -> Iterator[Program]:
    """The program with `move` made at a statement, if it can be made there."""
    candidate = copy.deepcopy(program)
    body, index, _ = list(walk(candidate.statements))[place]
    if move(body, index, candidate):
        yield _without_leftovers(candidate)


def _is_checked(statement: Statement, program: Program, results: set[str]) -> bool:
    """True if a check depends on a statement, which must not change then."""
    if isinstance(statement, Assign):
        return statement.target.name in results
    return isinstance(statement, Store) and statement.output in _checked_arrays(program)


def _checked_arrays(program: Program) -> set[str]:
    return {name for check in program.checks for name in (*check.operands, check.result)}


def _checked_results(program: Program) -> set[str]:
    """The variables that hold what a check compares with NumPy."""
    outputs = {check.result for check in program.checks}
    return {
        name
        for _, _, statement in walk(program.statements)
        if isinstance(statement, Store) and statement.output in outputs
        for name in statement.value.uses
    }


def _value(statement: Statement) -> Expression | None:
    return statement.condition if isinstance(statement, Nested) else statement.value


def _used_names(statements: list[Statement]) -> set[str]:
    values = (_value(statement) for _, _, statement in walk(statements))
    return {name for value in values if value for name in value.uses}


def _drop(body: list[Statement], index: int, program: Program) -> bool:
    """Takes a statement out, unless it defines what is used elsewhere."""
    statement = body[index]
    if isinstance(statement, Assign):
        others = [
            other
            for _, _, other in walk(program.statements)
            if isinstance(other, Assign) and other.target == statement.target
        ]
        defines = others[0] is statement
        if defines and (
            len(others) > 1 or statement.target.name in _used_names(program.statements)
        ):
            return False
    if isinstance(statement, Store):
        if statement.output in _checked_arrays(program):
            return False
    del body[index]
    return True


def _unwrap(body: list[Statement], index: int, program: Program) -> bool:
    """The body of a loop or a branch instead of it; a loop's counter becomes a number."""
    statement = body[index]
    if not isinstance(statement, Nested):
        return False
    counter = (
        statement.header.split()[-3 if statement.setup else 1]
        if statement.condition is None
        else None
    )
    inner: list[Statement] = list(statement.body)
    if counter in _used_names(statement.body):
        return False
    body[index : index + 1] = inner
    return True


def _simpler(value: Expression) -> Iterator[Expression]:
    """Expressions of the same type: a constant, an operand, or one operand simpler."""
    if value.dtype != "void" and not value.dtype.startswith("desc:"):
        plain = constant(value.dtype, value.shape)
        if value.operands or value.names:
            yield plain
        for operand in value.operands:
            if (operand.dtype, operand.shape) == (value.dtype, value.shape):
                yield operand
    for index, operand in enumerate(value.operands):
        for smaller in _simpler(operand):
            operands = (*value.operands[:index], smaller, *value.operands[index + 1 :])
            yield dataclasses.replace(value, operands=operands)


def _put(value: Expression, body: list[Statement], index: int, program: Program) -> bool:
    statement = body[index]
    if isinstance(statement, Nested):
        statement.condition = value
    else:
        statement.value = value
    return True


def _without_leftovers(program: Program) -> Program:
    """Drops variables and arrays that nothing uses any more."""
    while True:
        used = _used_names(program.statements)
        dead = [
            (body, statement)
            for body, _, statement in walk(program.statements)
            if isinstance(statement, Assign) and statement.target.name not in used
        ]
        empty = [
            (body, statement)
            for body, _, statement in walk(program.statements)
            if isinstance(statement, Nested) and not statement.body and not statement.otherwise
        ]
        if not dead and not empty:
            break
        for body, statement in dead + empty:
            body[:] = [other for other in body if other is not statement]
    text = "\n".join(render(program.statements, 1) + render(program.statements, 1, gpu=True))
    program.parts = [part for part in program.parts if _mentions(text, part.name) or any(
        _mentions(text, name) for name in part.members)]  # fmt: skip
    text += "".join(name + " " for part in program.parts for name in part.members)
    program.arrays = [array for array in program.arrays if _mentions(text, array.name)]
    return program


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None
