# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`if` on what is known at run time, and leaving a function or a loop early.

There are no jumps in the IR. `return`, `break` and `continue` set a hidden flag, and what follows
is visited inside an `if` on the flag. If a branch certainly leaves, the code behind the `if`
becomes part of the other branch instead, so that

    if row >= rows:
        return
    work(row)

is just `if not row >= rows: work(row)`.

After an `if`, a name has the value of the branch that was taken. Names without later reads are
unchanged. A branch that has left counts only for the values that its loop carries. Names take the
other branch's values. If the IR needs a value on its path, it is zero.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence

from tessera.errors import Note, UserMistake
from tessera.frontend.constants import (
    are_alike,
    as_specialised,
    is_number,
    leaves,
    parts_of,
    rebuild,
    same_constant,
    with_leaves,
)
from tessera.frontend.expressions import as_condition
from tessera.frontend.part import Part
from tessera.frontend.scope import (
    BROKE,
    CONTINUED,
    EXIT_FLAGS,
    HIDDEN,
    MISSING,
    RESULT,
    RETURNED,
    Scope,
    Undefined,
    assigned_names,
    assignment_line,
    first_store,
    has_exit,
    terminates,
)
from tessera.language.tensor import (
    binary,
    describe,
    describe_type,
    emit,
    emit_one,
    is_specialised,
    known_value,
    literal_dtype,
    tensor,
    unary,
)
from tessera.language.types import block_pointer_type, block_type, dtype, int64

if TYPE_CHECKING:
    from tessera.frontend.walker import FunctionWalker

Visit = Callable[[], None]

_OF_LOOPS = (BROKE, CONTINUED)


class _NeedsValues(Exception):
    """The first branch must be visited again: it has to make these values at its end."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        super().__init__()
        self.wanted = wanted
        """The required form of each name's value: its tensors' types count."""


class Branches(Part):
    """Visits conditional statements and expressions."""

    result_varies = False
    """True if another specialisation of the kernel may return from another place."""
    result_is_tensor = False
    """True if an `if` on a variable, be its value known, decides where the function returns."""

    # --- Leaving early ------------------------------------------------------------------

    def exited(self) -> Any:
        """True if control has left this block: True, False, or an int1 tensor."""
        result: Any = False
        for name in EXIT_FLAGS:
            flag = known_value(self.walker.scope.values.get(name, False))
            if flag is True:
                return True
            if isinstance(flag, tensor):
                result = flag if result is False else binary("logical_or", result, flag)
        return result

    def guard(self, left: tensor, visit: Visit, live: frozenset[str]) -> None:
        """Visits what follows a block that may have left."""
        flags = {name: self.walker.scope.get(name) for name in EXIT_FLAGS}

        def visit_alive() -> None:
            for name, flag in flags.items():
                if flag is not MISSING:
                    self.walker.scope.set(name, False)
            visit()

        alive = self.build_if(
            unary("not_", left), visit_alive, lambda: None, live, second_has_left=True
        )
        in_loop = any(flags[name] is not MISSING and flags[name] is not False for name in _OF_LOOPS)
        if not in_loop and alive.get(RETURNED) is True:
            # One path has returned before, the other returns now.
            self.walker.scope.set(RETURNED, True)

    # --- if -----------------------------------------------------------------------------

    def visit_if_statement(
        self, node: ast.If, rest: Sequence[ast.stmt], live_out: frozenset[str], live: frozenset[str]
    ) -> bool:
        """Visits an `if` that `rest` follows; whether `rest` has been visited with it.

        `live_out` are the names read after `rest`, `live` those read after the `if`.
        """
        self.walker.locate(node)
        test = self.walker.logic.visit_test(node.test)
        condition = as_condition(test, "`if`", node.test)
        if not isinstance(condition, tensor):
            if isinstance(test, tensor) and has_exit([node], in_loop=True):
                if is_specialised(test):
                    self.result_varies = True
                else:
                    self.result_is_tensor = True
            self.walker.statements.visit_block(node.body if condition else node.orelse, live)
            return False
        then, otherwise = list(node.body), list(node.orelse)
        absorbed = False
        if rest and terminates(then):
            otherwise, absorbed = [*otherwise, *rest], True
        elif rest and terminates(otherwise):
            then, absorbed = [*then, *rest], True
        after = live_out if absorbed else live
        if terminates(then) and otherwise:
            # The branch that leaves goes second: only there can zeros be made for what the
            # other one assigns.
            condition = unary("not_", condition)
            then, otherwise = otherwise, then
        self.build_if(
            condition,
            lambda: self.walker.statements.visit_block(then, after),
            lambda: self.walker.statements.visit_block(otherwise, after),
            after,
            node=node,
        )
        return absorbed

    def build_if(
        self,
        condition: tensor,
        visit_first: Visit,
        visit_second: Visit,
        live: frozenset[str],
        node: Optional[ast.If] = None,
        second_has_left: bool = False,
        wanted: Optional[dict[str, Any]] = None,
    ) -> Scope:
        """Builds an `if` of two visits and merges the scopes that they leave.

        Returns the scope that the first visit left.
        """
        place = self.walker.node
        before = self.walker.scope
        printed = len(self.session.printed)
        emit("begin_if", condition)
        self.walker.scope = before.copy()
        visit_first()
        first, first_left = self.walker.scope, self._left(forced=False)
        self.walker.locate(place)
        made = {
            name: self.value_like(first.get(name), template)
            for name, template in (wanted or {}).items()
        }
        first.values.update(made)
        emit("begin_else")
        self.walker.scope = before.copy()
        visit_second()
        second, second_left = self.walker.scope, self._left(forced=second_has_left)
        self.walker.locate(place)
        merge = _Merge(self.walker, node, before, first, second, first_left, second_left)
        try:
            merge.run(live, flags_follow=second_has_left)
        except _NeedsValues as needs:
            assert wanted is None, "the first branch makes all that it is asked for"
            emit("discard_region")
            del self.session.printed[printed:]
            self.walker.scope = before
            return self.build_if(
                condition, visit_first, visit_second, live, node, second_has_left, needs.wanted
            )
        results = iter(emit("end_if", merge.first_yields, merge.second_yields))
        self.walker.scope = before
        for name, template in merge.merged.items():
            self.walker.scope.set(name, with_leaves(template, results))
        for name, value in merge.settled.items():
            self.walker.scope.set(name, value)
        for name, reason in merge.undefined.items():
            self.walker.scope.drop(name, reason)
        return first

    def _left(self, forced: bool) -> "_Left":
        """How control has left the branch just visited; `forced`: it has, one way or other."""
        if self.walker.scope.values.get(RETURNED) is True:
            return _Left(True, frozenset())
        return _Left(forced or self.exited() is True, self.walker.loop_live)

    def value_like(self, value: Any, template: Any) -> Any:
        """`value` (or zeros, where it is missing) with the types of `template`."""
        parts = parts_of(template)
        if parts is not None:
            items = parts_of(value) or [MISSING] * len(parts)
            made = [self.value_like(item, like) for item, like in zip(items, parts)]
            return rebuild(template, made)
        if not isinstance(template, tensor):
            return template if value is MISSING else value
        if value is MISSING:
            return self.zeros(template.type)
        if is_number(value) or (isinstance(value, tensor) and value._constant is not None):
            number = known_value(value)
            if literal_dtype(number) != template.type and not template.shape:
                return emit_one("constant", number, template.type)
        return value

    def zeros(self, type: dtype) -> tensor:
        """A value of `type` for a path on which it is unused."""
        if isinstance(type, block_pointer_type):
            raise UserMistake(
                "E037",
                f"a {type} is assigned on one path only",
                "assign it before the `if`, too",
            )
        element = type.scalar
        if element.is_ptr():
            zero = emit_one("cast", emit_one("constant", 0, int64), element, None, False)
            return emit_one("broadcast_to", zero, list(type.shape)) if type.shape else zero
        if isinstance(type, block_type):
            return emit_one("full", list(type.shape), 0, element)
        literal: Any = 0.0 if element.is_floating() else False if element.is_bool() else 0
        return emit_one("constant", literal, element)

    # --- Conditional expressions --------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.walker.logic.visit_test(node.test)
        condition = as_condition(test, "a conditional expression", node.test)
        if not isinstance(condition, tensor):
            chosen = self.walker.visit(node.body if condition else node.orelse)
            return as_specialised(chosen) if is_specialised(test) else chosen
        value = "%value"

        def visit(branch: ast.expr) -> Visit:
            return lambda: self.walker.scope.set(value, self.walker.visit(branch))

        assigned = assigned_names([node.body, node.orelse])
        self.build_if(
            condition, visit(node.body), visit(node.orelse), frozenset((value, *assigned))
        )
        result = self.walker.scope.values.pop(value)
        return result


class _Left(NamedTuple):
    """How a branch ends: if control leaves it, the values at its end do not count."""

    left: bool
    still_live: frozenset[str]
    """Names that count even so: the loop that was left carries them."""

    def forgets(self, name: str) -> bool:
        """True if the value of `name` is unused on this path."""
        return self.left and name not in self.still_live


class _Merge:
    """Works out what each name is after an `if`."""

    def __init__(
        self,
        walker: FunctionWalker,
        node: Optional[ast.If],
        before: Scope,
        first: Scope,
        second: Scope,
        first_left: _Left,
        second_left: _Left,
    ) -> None:
        self.walker = walker
        self.node = node
        self.before, self.first, self.second = before, first, second
        self.first_left, self.second_left = first_left, second_left
        self.first_yields: list[Any] = []
        self.second_yields: list[Any] = []
        self.merged: dict[str, Any] = {}
        """Names whose tensors come out of the `if`, in the order of the yields."""
        self.settled: dict[str, Any] = {}
        """Names whose value is one and the same on both paths."""
        self.undefined: dict[str, Undefined] = {}

    def run(self, live: frozenset[str], flags_follow: bool) -> None:
        """Fills the tables. `flags_follow`: the second branch runs if a flag is set."""
        wanted: dict[str, Any] = {}
        names = {**self.first.values, **self.second.values}
        for name in names:
            a, b = self.first.get(name), self.second.get(name)
            if name not in live and name != "%value":
                continue
            if a is b:
                if a is not self.before.get(name):
                    self.settled[name] = a
                continue
            if flags_follow and name in EXIT_FLAGS and known_value(a) is False:
                self.settled[name] = b  # the flags were clear on the first path
                continue
            try:
                self._merge_name(name, a, b)
            except _NeedsValues as needs:
                wanted.update(needs.wanted)
        if wanted:
            raise _NeedsValues(wanted)
        for name in {**self.first.undefined, **self.second.undefined}:
            if name not in self.before.undefined and name not in self.merged:
                if name not in self.settled and name not in self.undefined:
                    reason = self.first.undefined.get(name) or self.second.undefined[name]
                    if name not in self.before.values or name in live:
                        self.undefined[name] = reason

    def _merge_name(self, name: str, a: Any, b: Any) -> None:
        forgotten = self.first_left.forgets(name), self.second_left.forgets(name)
        if name not in HIDDEN:
            if all(forgotten):
                # It is unused, but the value from before exists on both paths.
                old = self.before.get(name)
                if old is MISSING:
                    self._drop(name)
                else:
                    self.settled[name] = old
                return
            if forgotten[0]:
                a = MISSING
            elif forgotten[1]:
                b = MISSING
        if a is MISSING or b is MISSING:
            present = b if a is MISSING else a
            may_be_zero = name in HIDDEN or any(forgotten)
            if present is MISSING or not may_be_zero:
                self._drop(name)
                return
            if not any(True for _ in leaves(present)):
                self.settled[name] = present
                return
        elif same_constant(a, b):
            self.settled[name] = a
            return
        start = len(self.first_yields), len(self.second_yields)
        try:
            self.merged[name] = self._join(name, a, b)
        except _NeedsValues:
            del self.first_yields[start[0] :]
            del self.second_yields[start[1] :]
            raise

    def _drop(self, name: str) -> None:
        known = self.first.undefined.get(name) or self.second.undefined.get(name)
        if known is not None:
            self.undefined[name] = known
            return
        body = [self.node] if self.node is not None else self.walker.source.tree.body
        line = assignment_line(body, name) or assignment_line(self.walker.source.tree.body, name)
        line = self.node.lineno if self.node is not None else line
        self.undefined[name] = Undefined(line, "if")

    def _join(self, name: str, a: Any, b: Any) -> Any:
        """The shape of the merged value; puts the tensors on the lists of yields."""
        if a is MISSING or b is MISSING:
            return self._join_with_nothing(name, a, b)
        if are_alike(a, b):
            parts = zip(parts_of(a) or (), parts_of(b) or ())
            return rebuild(a, [self._join(name, x, y) for x, y in parts])
        if not isinstance(a, tensor) and not isinstance(b, tensor) and same_constant(a, b):
            return a
        for one in (a, b):
            if not isinstance(one, tensor) and not is_number(one):
                self._mismatch(name, a, b)
        type = self._common_type(name, a, b)
        # A tensor that is known goes as a literal: the builder makes it where it is yielded.
        self.first_yields.append(known_value(a))
        self.second_yields.append(known_value(b))
        return tensor(None, type, constant=0)

    def _join_with_nothing(self, name: str, a: Any, b: Any) -> Any:
        present = b if a is MISSING else a
        parts = parts_of(present)
        if parts is not None:
            return rebuild(
                present,
                [
                    self._join(name, *((MISSING, part) if a is MISSING else (part, MISSING)))
                    for part in parts
                ],
            )
        if not isinstance(present, tensor):
            return present
        zero = self._zero(name, present.type, in_first=a is MISSING)
        self.first_yields.append(zero if a is MISSING else known_value(a))
        self.second_yields.append(zero if b is MISSING else known_value(b))
        return tensor(None, present.type, constant=0)

    def _zero(self, name: str, type: dtype, in_first: bool) -> Any:
        old = self.before.get(name)
        if isinstance(old, tensor) and old.type == type:
            return known_value(old)
        if type.is_int() and type == literal_dtype(0):
            return 0
        if type.is_floating() and type == literal_dtype(0.0):
            return 0.0
        if type.is_bool():
            return False
        if in_first:
            raise _NeedsValues({name: self.second.get(name)})
        return self.walker.branches.zeros(type)

    def _common_type(self, name: str, a: Any, b: Any) -> dtype:
        a_type, b_type = _type_of(a), _type_of(b)
        if a_type == b_type:
            return a_type
        # A number that is a constant takes the type of the other side.
        if is_number(b) and isinstance(a, tensor) and _fits(b, a_type):
            return a_type
        if is_number(a) and isinstance(b, tensor) and _fits(a, b_type):
            return b_type
        self._mismatch(name, a, b)
        raise AssertionError

    def _mismatch(self, name: str, a: Any, b: Any) -> None:
        walker = self.walker
        if name == RESULT:
            raise UserMistake(
                "E037",
                f"`{walker.fn.__name__}` returns {describe(a)} on one path and {describe(b)} on "
                "another",
                "return one type and shape on every path",
                _return_notes(walker),
            )
        if name == "%value":
            raise UserMistake(
                "E037",
                f"the conditional expression is {describe(a)} or {describe(b)}",
                "give both sides one type and shape",
            )
        notes = []
        if self.node is not None:
            for what, body in (("if", self.node.body), ("else", self.node.orelse)):
                store = first_store(body, name)
                if store is not None:
                    line, column, _, _ = walker.place(store)
                    notes.append(
                        Note(
                            f"assigned here in the {what} branch",
                            walker.source.file,
                            line,
                            column,
                        )
                    )
        raise UserMistake(
            "E037",
            f"`{name}` is {describe(a)} on one path of the `if` and {describe(b)} on the other",
            "give it one type and shape on both paths, or two names",
            notes,
        )


def _return_notes(walker: FunctionWalker) -> list[Note]:
    notes = []
    for node in ast.walk(walker.source.tree):
        if isinstance(node, ast.Return):
            line, column, _, _ = walker.place(node)
            notes.append(Note("a return is here", walker.source.file, line, column))
    return notes


def _type_of(value: Any) -> dtype:
    return value.type if isinstance(value, tensor) else literal_dtype(value)


def _fits(number: Any, type: dtype) -> bool:
    if not (type.is_int() or type.is_floating()) or type.is_block():
        return False
    if type.is_floating():
        return True
    if isinstance(number, float):
        return False
    return type.get_int_min_value() <= int(number) <= type.get_int_max_value()


def type_name(value: Any) -> str:
    """How a carried value's type is spelled in messages."""
    return describe_type(_type_of(value)) if isinstance(value, tensor) else describe(value)
