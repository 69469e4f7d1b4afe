# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making a failing kernel smaller while it still fails.

Three moves, repeated until none helps: take out a statement that nothing depends on, put a
constant where an expression was, replace control flow by its body. Arrays and checks that
nothing uses any more go by themselves.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from tessera.testing.fuzz.program import (
    Assign,
    Nested,
    Program,
    Statement,
    Store,
    constant,
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
        yield _changed(program, programs=1)
    for check in program.checks:
        yield _changed(program, checks=[item for item in program.checks if item is not check])
    places = [(place, index) for place, (_, index, _) in enumerate(walk(program.statements))]
    for place, _ in places:
        yield from _with(program, place, _drop)
    for place, _ in places:
        yield from _with(program, place, _unwrap)
    for place, _ in places:
        yield from _with(program, place, _simplify)


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


def _used_names(program: Program) -> set[str]:
    names: set[str] = set()
    for _, _, statement in walk(program.statements):
        names |= statement.uses if isinstance(statement, Nested) else statement.value.uses
    return names


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
        if defines and (len(others) > 1 or statement.target.name in _used_names(program)):
            return False
    if isinstance(statement, Store):
        checked = {name for check in program.checks for name in (*check.operands, check.result)}
        if statement.output in checked:
            return False
    del body[index]
    return True


def _unwrap(body: list[Statement], index: int, program: Program) -> bool:
    """The body of a loop or a branch instead of it; a loop's counter becomes a number."""
    statement = body[index]
    if not isinstance(statement, Nested):
        return False
    counter = statement.header.split()[1]
    inner: list[Statement] = list(statement.body)
    if statement.header.startswith(("for", "while")) and any(
        counter in (other.uses if isinstance(other, Nested) else other.value.uses)
        for _, _, other in walk(statement.body)
    ):
        return False
    body[index : index + 1] = inner
    return True


def _simplify(body: list[Statement], index: int, program: Program) -> bool:
    """A constant of the same type instead of an expression."""
    statement = body[index]
    if not isinstance(statement, Assign):
        return False
    plain = constant(statement.value.dtype, statement.value.shape)
    if statement.value.text == plain.text:
        return False
    statement.value = plain
    return True


def _without_leftovers(program: Program) -> Program:
    """Drops variables and arrays that nothing uses any more."""
    while True:
        used = _used_names(program)
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
    text = program.source().split(":", 1)[1]
    program.arrays = [array for array in program.arrays if _mentions(text, array.name)]
    return program


def _mentions(text: str, name: str) -> bool:
    import re

    return re.search(rf"\b{name}\b", text) is not None
