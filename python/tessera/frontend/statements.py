# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statements, and what of Python kernels cannot have."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NoReturn, Sequence

from tessera.errors import UserMistake
from tessera.frontend.declarations import misspelt_annotation
from tessera.frontend.constants import as_specialised, decay, is_constant, settle
from tessera.frontend.hints import StandingHint
from tessera.frontend.part import Part
from tessera.frontend.scope import BROKE, CONTINUED, HIDDEN, RESULT, RETURNED, loaded_names
from tessera.language import debug as debug_ops
from tessera.language.tensor import describe, specialised_value, tensor
from tessera.language.types import constexpr, unwrap

if TYPE_CHECKING:
    from tessera.frontend.walker import FunctionWalker

_REFUSED: dict[str, tuple[str, str, str]] = {
    "AsyncFunctionDef": ("E007", "`async def`", "use a plain function"),
    "AsyncFor": ("E007", "`async for`", "use `for`"),
    "AsyncWith": ("E007", "`async with`", "leave it out"),
    "Await": ("E007", "`await`", "leave it out"),
    "Yield": ("E007", "`yield`", "store the values instead"),
    "YieldFrom": ("E007", "`yield from`", "store the values instead"),
    "FunctionDef": ("E008", "a nested function", "define it with @jit at module level"),
    "Lambda": ("E008", "a lambda", "define a function with @jit at module level"),
    "ClassDef": ("E014", "`class`", "define it outside, as a named tuple"),
    "Import": ("E014", "`import`", "import outside of the kernel"),
    "ImportFrom": ("E014", "`import`", "import outside of the kernel"),
    "Try": ("E014", "`try`", "check conditions with `if`"),
    "TryStar": ("E014", "`try`", "check conditions with `if`"),
    "Raise": ("E014", "`raise`", "use tl.static_assert or tl.device_assert"),
    "With": ("E014", "`with`", "leave it out"),
    "Global": ("E014", "`global`", "pass the value as a parameter"),
    "Nonlocal": ("E014", "`nonlocal`", "pass the value as a parameter"),
    "Delete": ("E014", "`del`", "leave it out: names cost nothing"),
    "Match": ("E014", "`match`", "use `if` and `elif`"),
    "Dict": ("E014", "a dict", "use a tuple or a named tuple"),
    "Set": ("E014", "a set", "use a tuple"),
    "DictComp": ("E014", "a dict comprehension", "use a list comprehension"),
    "SetComp": ("E014", "a set comprehension", "use a list comprehension"),
    "GeneratorExp": ("E014", "a generator", "use a list comprehension"),
    "TypeAlias": ("E014", "`type`", "define it outside of the kernel"),
    "TemplateStr": ("E014", "a template string", "use an f-string of constants"),
}


# After these, control may have left the block.
_LEAVING = (ast.If, ast.For, ast.While, ast.Return, ast.Break, ast.Continue)


class Statements(Part):
    """Visits statements."""

    def __init__(self, walker: FunctionWalker) -> None:
        super().__init__(walker)
        self.constexpr_names: set[str] = set()
        """Names that an annotation without a value has made constants."""

    def refuse(self, node: ast.AST) -> NoReturn:
        """Raises UserMistake for syntax that kernels cannot have."""
        kind = type(node).__name__
        id, what, fix = _REFUSED.get(kind, ("E014", f"`{kind}`", "write it another way"))
        raise UserMistake(id, f"{what} is not supported inside a kernel", fix, node=node)

    def visit_block(self, statements: Sequence[ast.stmt], live_out: frozenset[str]) -> None:
        """Visits statements of which the names in `live_out` are read later."""
        for position, statement in enumerate(statements):
            if not isinstance(statement, _LEAVING):
                self.walker.visit(statement)
                continue
            rest = statements[position + 1 :]
            live = live_out | loaded_names(rest) | HIDDEN if rest else live_out
            if isinstance(statement, ast.If):
                outer = self.walker.node
                absorbed = self.walker.branches.visit_if_statement(statement, rest, live_out, live)
                self.walker.locate(outer)
                if absorbed:
                    return
            elif isinstance(statement, ast.For):
                self.walker.loops.visit_for_statement(statement, live)
            elif isinstance(statement, ast.While):
                self.walker.loops.visit_while_statement(statement, live)
            else:
                self.walker.visit(statement)
            if rest:
                left = self.walker.branches.exited()
                if left is True:
                    return
                if isinstance(left, tensor):
                    self.walker.branches.guard(
                        left, lambda: self.visit_block(rest, live_out), live_out
                    )
                    return

    # --- Assignments -----------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.walker.visit(node.value)
        for target in node.targets:
            self.assign(target, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        is_constexpr = self._is_constexpr(node.annotation)
        if node.value is None:
            if is_constexpr and isinstance(node.target, ast.Name):
                self.constexpr_names.add(node.target.id)
            return
        # A run-time value is unchanged: kernels also annotate variables that should not change. If
        # a constant is needed, its use is an error.
        value = self.walker.visit(node.value)
        if is_constexpr and is_constant(value):
            value = settle(value)
        self.assign(node.target, value, constant=is_constexpr)

    def visit_StandingHint(self, node: StandingHint) -> None:
        call, target = node.value, node.targets[0]
        assert isinstance(call, ast.Call) and isinstance(target, ast.Name)
        about = self.walker.visit(call.args[0])
        value = self.walker.visit(call)
        if specialised_value(about) is None and node.is_hint(unwrap(self.walker.visit(call.func))):
            self.assign(target, value)

    def _is_constexpr(self, annotation: ast.expr) -> bool:
        """True if it says `tl.constexpr`; what else annotations say means nothing here."""
        text = ast.unparse(annotation)
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            text = annotation.value
            if text.rsplit(".", 1)[-1] == "constexpr":
                return True
        elif isinstance(annotation, (ast.Name, ast.Attribute)):
            try:
                return self.walker.visit(annotation) is constexpr
            except UserMistake as mistake:
                if mistake.id not in ("E010", "E012", "E013"):
                    raise
        near = misspelt_annotation(text)
        if near is None:
            return False
        raise UserMistake(
            "E017",
            f"unknown annotation `{text}`",
            f"did you mean `tl.{near}`?" if near else "use tl.constexpr or leave it out",
            node=annotation,
        )

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.assign(node.target, None)
        assert isinstance(node.target, ast.Name)
        left = self.walker.expressions.lookup(node.target.id, node.target)
        right = self.walker.visit(node.value)
        self.walker.locate(node)
        self.assign(
            node.target,
            self.walker.expressions.binary_operator(type(node.op).__name__, left, right),
        )

    def assign(self, target: ast.expr, value: Any, constant: bool = False) -> None:
        """Gives a target a value."""
        if isinstance(target, ast.Name):
            if target.id in self.constexpr_names and is_constant(value):
                value, constant = settle(value), True
            self.walker.scope.set(target.id, value if constant else decay(value))
            return
        if isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, constant)
            return
        what = "an attribute" if isinstance(target, ast.Attribute) else "an element"
        fix = "use tl.store" if isinstance(target, ast.Subscript) else "use a variable"
        raise UserMistake("E014", f"{what} cannot be assigned inside a kernel", fix, node=target)

    def _unpack(self, target: Any, value: Any, constant: bool) -> None:
        if not isinstance(value, tuple):
            fix = "unpack a tuple"
            if isinstance(value, tensor) and value.shape:
                fix += "; tl.split(x) makes two tiles of one whose last extent is 2"
            raise UserMistake("E014", f"cannot unpack {describe(value)}", fix, node=target)
        starred = [i for i, one in enumerate(target.elts) if isinstance(one, ast.Starred)]
        count = len(target.elts)
        if starred:
            at, taken = starred[0], len(value) - (count - 1)
            if taken >= 0:
                value = (*value[:at], tuple(value[at : at + taken]), *value[at + taken :])
        if len(value) != count:
            problem = "too many" if len(value) > count else "not enough"
            raise UserMistake(
                "E014",
                f"{problem} values to unpack (expected {count}, got {len(value)})",
                "give each value a name",
                node=target,
            )
        for one, item in zip(target.elts, value):
            self.assign(one.value if isinstance(one, ast.Starred) else one, item, constant)

    # --- The rest -----------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):  # a docstring
            return
        self.walker.discarded = node.value
        self.walker.visit(node.value)

    def visit_Pass(self, node: ast.Pass) -> None:
        pass

    def visit_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.walker.visit(node.value)
        if self.walker.is_kernel and value is not None:
            raise UserMistake(
                "E042",
                f"the kernel `{self.walker.fn.__name__}` returns {describe(value)}",
                "kernels return nothing: store the result",
                node=node,
            )
        if not self.walker.is_kernel:
            if self.walker.branches.result_varies:
                value = as_specialised(value)
            elif self.walker.branches.result_is_tensor:
                value = decay(value)
            self.walker.scope.set(RESULT, value)
        self.walker.scope.set(RETURNED, True)

    def visit_Break(self, node: ast.Break) -> None:
        self.walker.scope.set(BROKE, True)

    def visit_Continue(self, node: ast.Continue) -> None:
        self.walker.scope.set(CONTINUED, True)

    def visit_Assert(self, node: ast.Assert) -> None:
        condition = self.walker.logic.visit_test(node.test)
        message = "" if node.msg is None else self.walker.visit(node.msg)
        if is_constant(condition):
            debug_ops.static_assert(condition, message)
        else:
            debug_ops.device_assert(condition, message)
