# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values that a run-time loop carries from one iteration to the next.

Their names, and which of them are constants, are guessed before the body is visited (`Plan`). If
the visit shows that a guess was wrong, the loop is visited again (`Replan`).
"""

from __future__ import annotations

import ast
from typing import Any, Iterator, NamedTuple, Sequence

from tessera.errors import UserMistake
from tessera.frontend.branches import type_name
from tessera.frontend.constants import (
    are_alike,
    is_constant,
    is_number,
    leaves,
    parts_of,
    same_constant,
    with_leaves,
)
from tessera.frontend.part import Part
from tessera.frontend.scope import (
    BROKE,
    CONTINUED,
    HIDDEN,
    MISSING,
    RESULT,
    RETURNED,
    Undefined,
    assigned_names,
    assignment_line,
    exposed_names,
)
from tessera.language.tensor import binary, describe, known_value, literal_dtype, tensor


class Plan:
    """The facts about a loop so far; each wrong guess adds to them."""

    def __init__(self) -> None:
        self.promoted: set[str] = set()
        """Names that are constants before the loop and tensors in it."""
        self.may_leave = False
        """True if a break or a return may end it before its condition does."""
        self.may_return = False
        self.result: Any = MISSING
        """The value of a `return` in the loop; the types of its tensors count."""
        self.inner: dict[tuple[int, int], Plan] = {}
        """The plans of the loops in the body. A second visit starts from them; without that,
        visits would double with each level of a nest."""
        self.met: dict[int, int] = {}
        """How often a visit of the body has come to each of those loops."""

    def plan_of(self, node: ast.AST) -> "Plan":
        """The plan of a loop in the body."""
        count = self.met.get(id(node), 0)
        self.met[id(node)] = count + 1
        return self.inner.setdefault((id(node), count), Plan())


class Replan(Exception):
    """The plan has changed: visit the loop again."""


class Carried(NamedTuple):
    """The names that a loop carries, with their values at some point."""

    names: list[str]
    values: list[Any]

    def tensors(self) -> list[Any]:
        """The values' tensors as the builder takes them, known numbers as literals."""
        return [known_value(leaf) for value in self.values for leaf in leaves(value)]


class Carrying(Part):
    """Determines the carried values of a loop, and gives names their values."""

    def names(
        self, body: Sequence[ast.AST], live_out: frozenset[str], plan: Plan, but: str = ""
    ) -> list[str]:
        """The names that a loop carries, but for the one `but`."""
        read_later = exposed_names(body) | live_out
        return [
            name
            for name, value in self.walker.scope.values.items()
            if name in assigned_names(body)
            and name != but
            and name in read_later
            and (name in plan.promoted or any(True for _ in leaves(value)))
        ]

    def read_later(self, body: Sequence[ast.AST], live_out: frozenset[str]) -> frozenset[str]:
        """The names of the body that a later iteration, or what follows the loop, may read."""
        return assigned_names(body) & (exposed_names(body) | live_out)

    def enter(self, names: list[str]) -> Carried:
        """The carried values before the loop."""
        values = []
        for name in names:
            value = self.walker.scope.get(name)
            if not any(True for _ in leaves(value)) and is_number(value):
                value = tensor._known(value)
            values.append(value)
        return Carried(names, values)

    def rebind(self, carried: Carried, arguments: Iterator[Any]) -> None:
        """Gives the names the values that the loop's region takes."""
        for name, value in zip(*carried):
            self.walker.scope.set(name, with_leaves(value, arguments))

    def leave(self, carried: Carried, node: ast.AST) -> list[Any]:
        """The tensors that go into the next iteration; their types are those of before."""
        yields: list[Any] = []
        for name, before in zip(*carried):
            yields.extend(self._matched(name, before, self.walker.scope.get(name), node))
        return yields

    def _matched(self, name: str, before: Any, after: Any, node: ast.AST) -> list[Any]:
        if are_alike(before, after):
            return [
                leaf
                for one, other in zip(parts_of(before) or (), parts_of(after) or ())
                for leaf in self._matched(name, one, other, node)
            ]
        if not isinstance(before, tensor):
            if same_constant(before, after):
                return []
        elif is_number(after) or isinstance(after, tensor):
            number = known_value(after)
            type = after.type if isinstance(after, tensor) else literal_dtype(after)
            if type == before.type:
                return [number]
            if is_number(after) and before.type.is_floating():
                return [number]
        if name == RESULT:
            raise UserMistake(
                "E037",
                f"`{self.walker.fn.__name__}` returns {type_name(before)} on one path and "
                f"{type_name(after)} on another",
                "return one type and shape on every path",
            )
        loop = "before the loop, {} at its end"
        raise UserMistake(
            "E036",
            f"`{name}` is {type_name(before)} " + loop.format(_after_text(after)),
            self._carry_fix(name, after),
        )

    def _carry_fix(self, name: str, after: Any) -> str:
        if isinstance(after, tensor) and after.shape:
            shape = ", ".join(map(str, after.shape))
            return f"initialise it: {name} = tl.zeros(({shape},), {after.dtype!r})"
        if isinstance(after, tensor) and not after.dtype.is_ptr():
            return f"initialise it as {after.dtype}, or cast it at the end of the loop"
        return f"give `{name}` its type before the loop"

    def check_constants(
        self, body: Sequence[ast.AST], before: dict[str, Any], carried: list[str], plan: Plan
    ) -> None:
        """Constants that the body changes must be carried after all."""
        changed = False
        for name in assigned_names(body):
            old, new = before.get(name, MISSING), self.walker.scope.get(name)
            if old is MISSING or new is MISSING or name in carried or name in HIDDEN:
                continue
            if any(True for _ in leaves(old)) or same_constant(old, new):
                continue
            if not is_number(old):
                if name in exposed_names(body):
                    raise UserMistake(
                        "E036",
                        f"`{name}` is {describe(old)} before the loop, {_after_text(new)} at its "
                        "end",
                        f"give `{name}` its type before the loop",
                    )
                continue
            if name not in plan.promoted:
                plan.promoted.add(name)
                changed = True
        if changed:
            raise Replan

    def forget_inner_names(
        self, node: Any, before: dict[str, Any], names: frozenset[str], kept: Sequence[str]
    ) -> None:
        """Names that only the body assigns have no value after the loop."""
        construct = "for" if isinstance(node, ast.For) else "while"
        for name in names:
            if name not in kept:
                old = before.get(name, MISSING)
                if old is not MISSING and not any(True for _ in leaves(old)):
                    # A constant that every iteration leaves as it is.
                    if same_constant(old, self.walker.scope.values.get(name, old)):
                        self.walker.scope.set(name, old)
                        continue
                line = assignment_line([node], name) if old is MISSING else node.lineno
                if old is MISSING or name in self.walker.scope.values:
                    self.walker.scope.drop(name, Undefined(line, construct))

    # --- Leaving a loop ----------------------------------------------------------------------

    def enter_leaving(self, plan: Plan) -> Carried:
        """The flags (and the result) that a loop carries if it may be left."""
        if not plan.may_leave:
            return Carried([], [])
        names, values = [BROKE], [tensor._known(False)]
        if plan.may_return:
            names.append(RETURNED)
            values.append(tensor._known(False))
        if plan.result is not MISSING and not self._result_is_settled(plan):
            old = self.walker.scope.get(RESULT)
            names.append(RESULT)
            if is_number(old) and is_number(plan.result):
                old, plan.result = tensor._known(old), tensor._known(plan.result)
            like = plan.result if any(True for _ in leaves(plan.result)) else old
            value = self.walker.branches.value_like(old, like)
            values.append(tensor._known(value) if is_number(value) else value)
        return Carried(names, values)

    def _result_is_settled(self, plan: Plan) -> bool:
        """True if every return so far, and those of the loop, return one constant."""
        old = self.walker.scope.get(RESULT)
        if any(True for _ in leaves(plan.result)):
            return False
        return old is MISSING or same_constant(old, plan.result)

    def after_leaving(self, plan: Plan) -> None:
        """After the loop: the result, where it is a constant."""
        if plan.result is not MISSING and self._result_is_settled(plan):
            self.walker.scope.set(RESULT, plan.result)

    def stopped(self) -> Any:
        """True if an iteration before has left the loop."""
        broke, returned = self.walker.scope.get(BROKE), self.walker.scope.get(RETURNED)
        return broke if returned is False else binary("logical_or", broke, returned)

    def note_leaving(self, plan: Plan) -> None:
        """Adds to the plan how the body just visited leaves the loop."""
        plan.may_leave = True
        plan.may_return = self.walker.scope.get(RETURNED) is not False
        if plan.may_return:
            plan.result = self.walker.scope.get(RESULT)

    def clear_flags(self) -> None:
        """The flags at the beginning of an iteration."""
        for name in (BROKE, RETURNED, CONTINUED):
            self.walker.scope.set(name, False)

    def check_leaving(self, plan: Plan) -> None:
        """After the body: the flags as tensors; a result that turned up late is carried."""
        self.walker.scope.set(CONTINUED, False)
        result = self.walker.scope.get(RESULT)
        if plan.may_leave and not plan.may_return and self.walker.scope.get(RETURNED) is not False:
            self.note_leaving(plan)
            raise Replan
        if plan.result is not MISSING and is_constant(plan.result) and not is_constant(result):
            plan.result = result
            raise Replan


def _after_text(value: Any) -> str:
    return "undefined" if value is MISSING else type_name(value)
