# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops: unrolled ones, `for` over a range, `while`.

A loop carries the names that its body assigns, that have a value before it, and that are read in a
later iteration or after it. Only a visit of the body shows which constants stay constants, and
whether control may leave the loop early. If the first guess was wrong, the built IR is dropped, and
the body is visited again with the new facts.

A `for` that may be left becomes a `while` with a counter and a flag that stops it.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence

from tessera.errors import UserMistake
from tessera.frontend.carried import Carried, Carrying, Plan, Replan
from tessera.frontend.constants import is_number, leaves, settle
from tessera.frontend.expressions import as_condition
from tessera.frontend.part import Part
from tessera.frontend.session import is_library
from tessera.frontend.scope import (
    BROKE,
    CONTINUED,
    HIDDEN,
    MISSING,
    Undefined,
    assigned_names,
    exposed_names,
    has_exit,
    loaded_names,
)
from tessera.language import program
from tessera.language.tensor import (
    binary,
    describe,
    emit,
    emit_one,
    is_specialised,
    known_value,
    literal_dtype,
    specialised_value,
    tensor,
    to_tensor_value,
    unary,
)
from tessera.language.types import dtype, int32, int64, uint32

if TYPE_CHECKING:
    from tessera.frontend.walker import FunctionWalker

# More iterations than this are not unrolled, nor run at compile time.
MAX_UNROLLED = 10_000

_ZERO_STEP = "the step of the range is 0; such a loop makes no iteration"


class Loops(Part):
    """Visits loops."""

    def __init__(self, walker: FunctionWalker) -> None:
        super().__init__(walker)
        self.carrying = Carrying(walker)

    plan: Optional[Plan] = None
    """That of the innermost loop around."""

    @contextmanager
    def following(self, plan: Plan) -> Iterator[None]:
        """While the body of the plan's loop is visited."""
        outer, self.plan = self.plan, plan
        plan.met.clear()
        try:
            yield
        finally:
            self.plan = outer

    # --- Compile-time iteration ------------------------------------------------------------

    def static_items(self, iterable: Any, node: ast.AST) -> Iterator[Any]:
        """The items of what is iterated at compile time."""
        if isinstance(iterable, tuple):
            yield from iterable
            return
        if isinstance(iterable, str):
            yield from iterable
            return
        if isinstance(iterable, program.range):
            yield from self._static_range(iterable, node)
            return
        raise UserMistake(
            "E039", f"cannot iterate over {describe(iterable)}", "use range or a tuple", node=node
        )

    def _static_range(self, iterable: program.range, node: ast.AST) -> range:
        bounds = [settle(bound) for bound in (iterable.start, iterable.end, iterable.step)]
        for bound in bounds:
            if isinstance(bound, tensor):
                raise UserMistake(
                    "E040",
                    f"a bound of static_range is {describe(bound)}, known at run time only",
                    "use tl.range, or annotate the parameter it comes from with tl.constexpr",
                    node=node,
                )
            if not isinstance(bound, int):
                raise UserMistake(
                    "E039", f"a bound of the range is {describe(bound)}", "use integers", node=node
                )
        if bounds[2] == 0:
            raise UserMistake("E039", "the step of the range is 0", "use another step", node=node)
        numbers = range(*bounds)
        # `len` refuses what does not fit 63 bits.
        count = (numbers[-1] - numbers[0]) // numbers.step + 1 if numbers else 0
        if count > MAX_UNROLLED:
            raise UserMistake(
                "E040",
                f"static_range would unroll {count} iterations (the limit is {MAX_UNROLLED})",
                "use tl.range",
                node=node,
            )
        return numbers

    def _unroll(self, node: ast.For, items: Sequence[Any], live_out: frozenset[str]) -> None:
        self._note_unrolled(node, len(items))
        outer = {name: self.walker.scope.get(name) for name in (BROKE, CONTINUED)}
        outer_live = self.walker.loop_live
        self.walker.loop_live = exposed_names([node]) | live_out
        self.walker.scope.set(BROKE, False)
        live = live_out | loaded_names([node]) | HIDDEN

        def iterate(position: int) -> None:
            while position < len(items):
                self.walker.scope.set(CONTINUED, False)
                self.walker.statements.assign(node.target, items[position], constant=True)
                self.walker.statements.visit_block(node.body, live)
                self.walker.scope.set(CONTINUED, False)
                position += 1
                left = self.walker.branches.exited()
                if left is True:
                    return
                if isinstance(left, tensor) and position < len(items):
                    following = position
                    self.walker.branches.guard(left, lambda: iterate(following), live)
                    return

        iterate(0)
        self.walker.loop_live = outer_live
        self._restore(outer)

    def _note_unrolled(self, node: ast.AST, iterations: int) -> None:
        if not is_library(self.walker.fn):
            place = self.walker.source.file, self.walker.place(node)[0]
            self.session.unrolled[place] = iterations

    def _restore(self, outer: dict[str, Any]) -> None:
        for name, value in outer.items():
            if value is MISSING:
                self.walker.scope.values.pop(name, None)
            else:
                self.walker.scope.set(name, value)

    # --- for -------------------------------------------------------------------------------

    def visit_for_statement(self, node: ast.For, live_out: frozenset[str]) -> None:
        """Visits a `for`, after which the names in `live_out` are read."""
        self.walker.locate(node)
        iterable = self.walker.visit(node.iter)
        if isinstance(iterable, program.static_range) or not isinstance(iterable, program.range):
            self._unroll(node, list(self.static_items(iterable, node.iter)), live_out)
            return
        if not isinstance(node.target, ast.Name):
            raise UserMistake(
                "E014",
                "the variable of a run-time loop must be a name",
                "use one name",
                node=node.target,
            )
        bounds = self._check_bounds(iterable, node.iter)
        plan = self.plan.plan_of(node) if self.plan is not None else Plan()
        while True:
            before, printed = self.walker.scope, len(self.session.printed)
            self.walker.scope = before.copy()
            try:
                with self.following(plan):
                    if plan.may_leave:
                        self._build_counted_while(node, bounds, plan, live_out)
                    else:
                        self._build_for(node, bounds, iterable.hints(), plan, live_out)
                return
            except Replan:
                emit("discard_region")
                del self.session.printed[printed:]
                self.walker.scope = before
                self.walker.locate(node)

    def _check_bounds(self, iterable: program.range, node: ast.AST) -> list[Any]:
        """Start, end and step: constants, or integer scalars."""
        bounds = [known_value(bound) for bound in (iterable.start, iterable.end, iterable.step)]
        step = specialised_value(bounds[2])
        if is_specialised(bounds[2]) and step != 0 and literal_dtype(step) == bounds[2].type:
            bounds[2] = step  # which says in what direction the loop counts
        for bound, what in zip(bounds, ("start", "end", "step")):
            is_integer = (
                bound.dtype.is_int() and not bound.shape
                if isinstance(bound, tensor)
                else isinstance(bound, int)
            )
            if not is_integer:
                raise UserMistake(
                    "E039",
                    f"the {what} of the range is {describe(bound)}",
                    "use an integer scalar",
                    node=node,
                )
        if not isinstance(bounds[2], tensor) and bounds[2] == 0:
            raise UserMistake("E039", "the step of the range is 0", "use another step", node=node)
        if self.session.checked and isinstance(bounds[2], tensor):
            emit("device_assert", emit_one("ne", bounds[2], 0), _ZERO_STEP, None)
        return [int(bound) if not isinstance(bound, tensor) else bound for bound in bounds]

    def _visit_body(
        self, body: Sequence[ast.stmt], live: frozenset[str], before: dict[str, Any]
    ) -> None:
        """Visits a loop's body, at whose end the names in `live` count."""
        outer = self.walker.loop_live
        # Names that have no value before the loop have none after it either.
        self.walker.loop_live = frozenset(name for name in live if name in before)
        self.walker.statements.visit_block(body, live | HIDDEN)
        self.walker.loop_live = outer

    def _build_for(
        self,
        node: ast.For,
        bounds: list[Any],
        hints: list[list[Any]],
        plan: Plan,
        live_out: frozenset[str],
    ) -> None:
        assert isinstance(node.target, ast.Name)
        variable = node.target.id
        outer = {name: self.walker.scope.get(name) for name in (BROKE, CONTINUED)}
        before = dict(self.walker.scope.values)
        names = self.carrying.names(node.body, live_out, plan, but=variable)
        carried = self.carrying.enter(names)
        old = before.get(variable, MISSING)
        keep_last = variable in live_out and (isinstance(old, tensor) or is_number(old))
        last = self._initial_last(old, bounds) if keep_last else None
        inits = carried.tensors() + ([last] if keep_last else [])
        index, *arguments = emit("begin_for", *bounds, inits, hints)
        region = iter(arguments)
        self.carrying.rebind(carried, region)
        self.walker.scope.set(variable, index)
        self.walker.scope.set(BROKE, False)
        self.walker.scope.set(CONTINUED, False)
        self._visit_body(
            node.body, self.carrying.read_later(node.body, live_out) | {variable}, before
        )
        self.walker.locate(node)
        self.walker.scope.set(CONTINUED, False)
        if self.walker.branches.exited() is not False:
            self.carrying.note_leaving(plan)
            raise Replan
        self.carrying.check_constants(node.body, before, [*names, variable], plan)
        yields = self.carrying.leave(carried, node)
        if keep_last:
            yields.append(self._as_index(self.walker.scope.get(variable), index.type))
        results = iter(emit("end_for", yields))
        values = dict(self.walker.scope.values)
        self.walker.scope.values = dict(before)
        self.walker.scope.undefined = dict(self.walker.scope.undefined)
        for name in assigned_names(node.body):
            if name in values and not any(True for _ in leaves(values[name])):
                self.walker.scope.values[name] = values[name]
        self.carrying.forget_inner_names(
            node, before, assigned_names(node.body) - {variable}, names
        )
        self.carrying.rebind(carried, results)
        self._after_variable(node, variable, before, bounds, index.type, live_out, results)
        self._restore(outer)

    def _initial_last(self, value: Any, bounds: list[Any]) -> Any:
        type = _index_type(bounds)
        old = to_tensor_value(value)
        if not old.dtype.is_int() or old.shape:
            raise UserMistake(
                "E036",
                f"the loop variable is {describe(old)} before the loop and read after it",
                "use another name",
            )
        return emit_one("cast", old, type, None, False) if old.type != type else known_value(old)

    def _after_variable(
        self,
        node: ast.For,
        variable: str,
        before: dict[str, Any],
        bounds: list[Any],
        type: dtype,
        live_out: frozenset[str],
        results: Iterator[Any],
    ) -> None:
        """The loop variable keeps its last value, or its earlier one after no iteration."""
        if variable not in live_out:
            self.walker.scope.drop(variable, Undefined(node.lineno, "for"))
            return
        old = before.get(variable, MISSING)
        if isinstance(old, tensor) or is_number(old):
            self.walker.scope.set(variable, next(results))
            return
        numbers = range(*bounds) if all(isinstance(bound, int) for bound in bounds) else None
        if numbers and variable not in assigned_names(node.body):
            self.walker.scope.set(variable, to_tensor_value(numbers[-1]))
        elif numbers is not None and not numbers and old is not MISSING:
            self.walker.scope.set(variable, old)
        else:
            self.walker.scope.drop(variable, Undefined(node.lineno, "for"))

    # --- for as while ---------------------------------------------------------------------

    def _build_counted_while(
        self, node: ast.For, bounds: list[Any], plan: Plan, live_out: frozenset[str]
    ) -> None:
        assert isinstance(node.target, ast.Name)
        variable = node.target.id
        outer = {name: self.walker.scope.get(name) for name in (BROKE, CONTINUED)}
        before = dict(self.walker.scope.values)
        type = _index_type(bounds)
        start, end, step = [self._as_index(bound, type) for bound in bounds]
        names = self.carrying.names(node.body, live_out, plan, but=variable)
        carried = self.carrying.enter(names)
        keep_last = variable in live_out
        old = before.get(variable, MISSING)
        if keep_last and (isinstance(old, tensor) or is_number(old)):
            last: Any = self._initial_last(old, bounds)
        else:
            last = start
        leaving = self.carrying.enter_leaving(plan)
        inits = [start, last, *leaving.tensors(), *carried.tensors()]
        counter, last_argument, *arguments = emit("begin_while", inits)
        region = iter(arguments)
        self.carrying.rebind(leaving, region)
        self.carrying.rebind(carried, region)
        condition = self._in_range(counter, end, bounds[2], step)
        condition = binary("logical_and", condition, unary("not_", self.carrying.stopped()))
        passed = [counter, last_argument] + [
            leaf
            for name in [*leaving.names, *names]
            for leaf in leaves(self.walker.scope.get(name))
        ]
        counter, last_argument, *arguments = emit("while_condition", condition, passed)
        region = iter(arguments)
        self.carrying.rebind(leaving, region)
        self.carrying.rebind(carried, region)
        self.walker.scope.set(variable, counter)
        self.carrying.clear_flags()
        self._visit_body(
            node.body, self.carrying.read_later(node.body, live_out) | {variable}, before
        )
        self.walker.locate(node)
        self.carrying.check_leaving(plan)
        self.carrying.check_constants(node.body, before, [*names, variable], plan)
        final = self._as_index(self.walker.scope.values.get(variable, counter), type)
        yields = [self._next_counter(counter, end, bounds[2], step), final]
        yields += self.carrying.leave(leaving, node) + self.carrying.leave(carried, node)
        _, last_result, *arguments = emit("end_while", yields)
        results = iter(arguments)
        self.walker.scope.values = dict(before)
        self.carrying.forget_inner_names(
            node, before, assigned_names(node.body) - {variable}, names
        )
        self.carrying.after_leaving(plan)
        self.carrying.rebind(leaving, results)
        self.carrying.rebind(carried, results)
        had_value = isinstance(old, tensor) or is_number(old)
        if keep_last and (had_value or self._surely_runs(bounds)):
            self.walker.scope.set(variable, last_result)
        else:
            self.walker.scope.drop(variable, Undefined(node.lineno, "for"))
        self._restore(outer)

    def _surely_runs(self, bounds: list[Any]) -> bool:
        return all(isinstance(bound, int) for bound in bounds) and bool(range(*bounds))

    def _as_index(self, bound: Any, type: dtype) -> Any:
        if not isinstance(bound, tensor):
            return emit_one("constant", bound, type)
        return emit_one("cast", bound, type, None, False) if bound.type != type else bound

    def _in_range(self, counter: Any, end: Any, known_step: Any, step: Any) -> Any:
        if isinstance(known_step, int):
            return emit_one("lt" if known_step > 0 else "gt", counter, end)
        upwards = binary("logical_and", emit_one("gt", step, 0), emit_one("lt", counter, end))
        downwards = binary("logical_and", emit_one("lt", step, 0), emit_one("gt", counter, end))
        return binary("logical_or", upwards, downwards)

    def _next_counter(self, counter: Any, end: Any, known_step: Any, step: Any) -> Any:
        """A step further; at the end of the range where that would wrap."""
        following = emit_one("add", counter, step)
        if isinstance(known_step, int) and abs(known_step) == 1:
            return following
        if isinstance(known_step, int):
            wraps = emit_one("lt" if known_step > 0 else "gt", following, counter)
        else:
            wraps = emit_one("ne", emit_one("gt", following, counter), emit_one("gt", step, 0))
        return emit_one("where", wraps, end, following)

    # --- while --------------------------------------------------------------------------------

    def visit_while_statement(self, node: ast.While, live_out: frozenset[str]) -> None:
        """Visits a `while`, after which the names in `live_out` are read."""
        self.walker.locate(node)
        plan = self.plan.plan_of(node) if self.plan is not None else Plan()
        plan.may_leave = plan.may_leave or has_exit(node.body)
        iterations = 0
        while True:
            before, printed = self.walker.scope, len(self.session.printed)
            self.walker.scope = before.copy()
            try:
                with self.following(plan):
                    constant = self._build_while(node, plan, live_out)
            except Replan:
                emit("discard_region")
                del self.session.printed[printed:]
                self.walker.scope = before
                self.walker.locate(node)
                continue
            if constant is None:
                return
            # The condition is a constant: the loop runs while compiling.
            emit("discard_region")
            del self.session.printed[printed:]
            self.walker.scope = before
            self.walker.locate(node)
            if not constant:
                return
            iterations += 1
            self._note_unrolled(node, iterations)
            if iterations > MAX_UNROLLED:
                raise UserMistake(
                    "E041",
                    f"the condition of the `while` is still true after {MAX_UNROLLED} iterations "
                    "at compile time",
                    "let the condition depend on what the loop changes",
                )
            if self._unroll_once(node, live_out):
                return

    def _unroll_once(self, node: ast.While, live_out: frozenset[str]) -> bool:
        """Visits the body of a `while` on constants; whether the loop ends by that."""
        outer = {name: self.walker.scope.get(name) for name in (BROKE, CONTINUED)}
        self.walker.scope.set(BROKE, False)
        self.walker.scope.set(CONTINUED, False)
        self.walker.logic.visit_test(node.test)
        self.walker.statements.visit_block(node.body, live_out | loaded_names([node]) | HIDDEN)
        self.walker.scope.set(CONTINUED, False)
        left = self.walker.branches.exited()
        if isinstance(left, tensor):
            raise UserMistake(
                "E041",
                "a `while` on constants ends on a condition that is known only at run time",
                "write `while True:`, or a condition known at run time",
            )
        self._restore(outer)
        return left is True

    def _build_while(self, node: ast.While, plan: Plan, live_out: frozenset[str]) -> Optional[bool]:
        """Builds the loop; or returns its condition where that is a constant."""
        outer = {name: self.walker.scope.get(name) for name in (BROKE, CONTINUED)}
        before = dict(self.walker.scope.values)
        body: list[ast.AST] = [ast.Expr(node.test), *node.body]
        names = self.carrying.names(body, live_out, plan)
        carried = self.carrying.enter(names)
        leaving = self.carrying.enter_leaving(plan)
        region = iter(emit("begin_while", leaving.tensors() + carried.tensors()))
        self.carrying.rebind(leaving, region)
        self.carrying.rebind(carried, region)
        test = self.walker.logic.visit_test(node.test)
        if isinstance(test, program.condition):
            test = test.condition
        condition = as_condition(test, "`while`", node.test)
        if not isinstance(condition, tensor):
            if not condition:
                return False
            if not has_exit(node.body):
                if not isinstance(node.test, ast.Constant):
                    return True
                raise UserMistake(
                    "E041", "this `while` never ends", "add a break, a return or a condition"
                )
            condition = tensor._known(True)
        if plan.may_leave:
            condition = binary("logical_and", condition, unary("not_", self.carrying.stopped()))
        # Names that the condition itself assigns exist in the body and after the loop.
        tested = [
            name
            for name in assigned_names([node.test])
            if name not in names and self.walker.scope.get(name) is not MISSING
        ]
        passed_names = [*leaving.names, *names, *tested]
        passed = Carried(passed_names, [self.walker.scope.get(name) for name in passed_names])
        region = iter(emit("while_condition", condition, passed.tensors()))
        self.carrying.rebind(passed, region)
        if plan.may_leave:
            self.carrying.clear_flags()
        self.walker.scope.set(BROKE, False)
        self.walker.scope.set(CONTINUED, False)
        self._visit_body(node.body, self.carrying.read_later(body, live_out), before)
        self.walker.locate(node)
        self.walker.scope.set(CONTINUED, False)
        if not plan.may_leave and self.walker.branches.exited() is not False:
            self.carrying.note_leaving(plan)
            raise Replan
        self.carrying.check_leaving(plan)
        self.carrying.check_constants(body, before, [*names, *tested], plan)
        yields = self.carrying.leave(leaving, node) + self.carrying.leave(carried, node)
        results = iter(emit("end_while", yields))
        self.walker.scope.values = dict(before)
        self.carrying.forget_inner_names(node, before, assigned_names(body), [*names, *tested])
        self.carrying.after_leaving(plan)
        self.carrying.rebind(passed, results)
        self._restore(outer)
        return None


def _index_type(bounds: Sequence[Any]) -> dtype:
    """The type of the loop variable, as the builder's own `for` has it."""
    types = [bound.dtype if isinstance(bound, tensor) else literal_dtype(bound) for bound in bounds]
    types = [int32 if type.is_bool() else type for type in types]
    widest = max(types, key=lambda type: (type.int_bitwidth, type.is_int_unsigned()))
    descends = isinstance(bounds[2], int) and bounds[2] < 0
    return int64 if descends and widest == uint32 else widest
