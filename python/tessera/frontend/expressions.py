# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions: constants are evaluated by Python, tensors by the builder."""

from __future__ import annotations

import ast
import enum
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any, Callable, Iterator, Optional

from tessera import _C
from tessera.errors import Note, UserMistake
from tessera.frontend.aggregates import BoundFunction, is_aggregate
from tessera.frontend.constants import (
    BINARY,
    COMPARE,
    SYMBOLS,
    UNARY,
    are_alike,
    fold_as_at_run_time,
    fold_binary,
    fold_compare,
    fold_unary,
    is_constant,
    is_number,
    parts_of,
    rebuild,
    same_constant,
    settle,
    type_of,
)
from tessera.frontend.host_functions import from_numpy
from tessera.frontend.part import Part
from tessera.frontend.scope import MISSING, assigned_names, assignment_line
from tessera.frontend.session import mistake_from_core
from tessera.language import memory as memory_ops, shape as shape_ops
from tessera.language.callables import JITCallable
from tessera.language.overflow import check_negation, checked_binary
from tessera.language.tensor import (
    binary,
    describe,
    describe_type,
    emit,
    emit_one,
    is_specialised,
    known_value,
    tensor,
    unary,
)
from tessera.language.types import block_pointer_type, constexpr, dtype, int64, unwrap
from tessera.wording import with_article


def _is_its_own_value(value: Any) -> bool:
    """True if it is a plain constant, where elsewhere a `constexpr` holds it."""
    if isinstance(value, (*_PLAIN_CONSTANTS, JITCallable)):
        return True
    return type(value) is tuple


_PLAIN_CONSTANTS = (type(None), bool, int, float, str, dtype)

_NOT_OF_KERNELS = ("handle", "known", "constant", "specialised", "of_specialised")
"""Attributes of tensors for the front-end only."""

_OF_ARRAYS = ("ndim", "nbytes", "itemsize", "size", "stride", "strides", "len", "dim")
"""Attributes of arrays that pointers lack."""


class Expressions(Part):
    """Visits expressions other than calls and conditional ones."""

    # --- Names -------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> Any:
        return self.lookup(node.id, node)

    def lookup(self, name: str, node: ast.AST) -> Any:
        """The value of a name: a local variable's, else a global's, else Python's own."""
        value = self.walker.scope.get(name)
        if value is not MISSING:
            return value
        reason = self.walker.scope.undefined.get(name)
        if reason is not None:
            raise UserMistake(
                "E013",
                f"`{name}` may be undefined here: assigned only in the `{reason.construct}` at "
                f"line {reason.line}",
                f"assign `{name}` before the `{reason.construct}`, or on every path of it",
                node=node,
            )
        if name in assigned_names([self.walker.source.tree]):
            line = assignment_line(self.walker.source.tree.body, name)
            raise UserMistake(
                "E013",
                (
                    f"`{name}` is undefined here: it is only assigned later, at line {line}"
                    if line >= getattr(node, "lineno", 0)
                    else f"`{name}` is undefined here: the path to it does not pass line {line}"
                ),
                f"assign `{name}` first",
                node=node,
            )
        found = self.session.reads.name(self.walker.fn, name)
        if found is not MISSING:
            return self.use_global(name, found, node)
        candidates = [
            *self.walker.scope.values,
            *self.walker.fn._globals,
            "range",
            "len",
            "min",
            "max",
            "print",
        ]
        from tessera.frontend.suggestions import suggestion, tl_names

        fix = suggestion(
            name,
            [one for one in candidates if not one.startswith("%")],
            f"define `{name}` or import it",
            of_the_language=tl_names(),
        )
        raise UserMistake("E012", f"`{name}` is not defined", fix, node=node)

    def use_global(self, name: str, value: Any, node: ast.AST) -> Any:
        """A global's value, if kernels may use it."""
        if isinstance(value, constexpr):
            # A constexpr function remains a constexpr, which marks it as callable on constants.
            return value if isinstance(value.value, FunctionType) else value.value
        if isinstance(value, (enum.Enum, ModuleType, type, dtype)) or callable(value):
            return value
        # Python's own constants need no wrapper.
        if value is None or value is NotImplemented or value is Ellipsis or name == "__debug__":
            return value
        kind = type(value).__name__
        if isinstance(value, (bool, int, float, str, tuple)):
            shown = repr(value)
            shown = shown if len(shown) <= 40 else "..."
            fix = f"write {name} = tl.constexpr({shown})"
        else:
            fix = "pass it to the kernel"
        raise UserMistake(
            "E010", f"the global `{name}` is a plain {kind}, not a tl.constexpr", fix, node=node
        )

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, (bytes, complex)):
            raise UserMistake(
                "E014",
                f"{with_article(type(value).__name__)} literal is not supported inside a kernel",
                "use a number or a string",
            )
        return value

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.walker.statements.assign(node.target, self.walker.visit(node.value))
        return self.lookup(node.target.id, node.target)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(self.walker.visit(node.value), node.attr, node)

    def attribute(self, value: Any, name: str, node: ast.AST) -> Any:
        """`value.name` as kernel code sees it."""
        if isinstance(value, tensor):
            return self._tensor_attribute(value, name, node)
        if is_aggregate(value):
            found = self.walker.aggregates.member(value, name)
            if found is MISSING:
                self._no_attribute(value, describe(value), name, node)
            return found
        if name == "value" and _is_its_own_value(value):
            return value
        if name == "type" and (isinstance(value, tuple) or _is_its_own_value(value)):
            if "type" not in getattr(value, "_fields", ()):
                return type_of(value)
        if isinstance(value, tuple):
            found = self.walker.aggregates.record_member(value, name)
            if found is not MISSING:
                return found
        found = self.session.reads.attribute(value, name)
        if found is MISSING:
            is_module = isinstance(value, ModuleType)
            self._no_attribute(value, value.__name__ if is_module else describe(value), name, node)
        return from_numpy(unwrap(found))

    def _tensor_attribute(self, value: tensor, name: str, node: ast.AST) -> Any:
        if isinstance(value.type, block_pointer_type):
            own = memory_ops.block_attribute(value, name)
            if own is not None:
                return own
        found = None
        if not name.startswith("_"):
            found = self.session.reads.attribute(tensor, name)
        if found is MISSING:
            found = None
        if name in _NOT_OF_KERNELS or found is None:
            self._no_attribute(value, describe(value), name, node)
        if isinstance(found, JITCallable):
            return BoundFunction(found, value)
        return getattr(value, name)

    def _no_attribute(self, value: Any, what: str, name: str, node: ast.AST) -> None:
        from tessera.frontend.suggestions import is_language, suggestion, tl_names

        names = [one for one in dir(value) if not one.startswith("_")]
        is_tile = isinstance(value, tensor)
        if is_tile and value.dtype.is_ptr() and name in _OF_ARRAYS:
            self._refuse_shape_of_pointer(value, name, node)
        is_ours = is_tile or (isinstance(value, ModuleType) and is_language(value))
        fix = suggestion(
            name,
            names,
            (
                f"`dir({'tl.tensor' if is_tile else what})` lists what there is"
                if is_tile or isinstance(value, ModuleType)
                else (
                    f"it has {', '.join(names[:12])}{', ...' if names[12:] else ''}"
                    if names
                    else ""
                )
            ),
            is_value=is_tile,
            by_meaning=is_ours,
            of_the_language=tl_names() if is_tile else (),
        )
        raise UserMistake("E012", f"{what} has no attribute `{name}`", fix, node=node)

    def _refuse_shape_of_pointer(self, value: tensor, name: str, node: ast.AST) -> None:
        shown = ast.unparse(node.value) if isinstance(node, ast.Attribute) else "the argument"
        raise UserMistake(
            "E012",
            f"`{shown}` is a pointer ({describe(value)}), which does not have the `{name}` of its array",
            "pass it as an argument: x.shape[0] or x.stride(0) at the launch",
            node=node,
        )

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value = self.walker.visit(node.value)
        index = self.walker.visit(node.slice)
        if isinstance(value, tensor):
            return self._index_tensor(value, index)
        if is_aggregate(value):
            return self.walker.aggregates.item_of_aggregate(value, index)
        if isinstance(value, tuple):
            found = self.walker.aggregates.special_of_record(value, "__getitem__", [index])
            if found is not MISSING:
                return found
        if isinstance(value, JITCallable):
            raise UserMistake(
                "E014",
                f"`{value.__name__}` is launched inside a kernel",
                f"call it: {value.__name__}(...)",
            )
        position = settle(index)
        if isinstance(position, tensor) and isinstance(value, tuple):
            return self._look_up(position, value)
        if not is_constant(index):
            raise UserMistake(
                "E019",
                f"the index of {describe(value)} is {describe(index)}",
                "index with a constant",
            )
        try:
            found = value[position]
            self.session.reads.item(value, position, found)
            return unwrap(found)
        except (IndexError, KeyError, TypeError) as error:
            owner = node.value
            if value == () and isinstance(owner, ast.Attribute) and owner.attr == "shape":
                of = self.walker.visit(owner.value)
                if isinstance(of, tensor) and of.dtype.is_ptr():
                    self._refuse_shape_of_pointer(of, "shape", owner)
            raise UserMistake(
                "E012",
                f"cannot take item {position!r} of {describe(value)}: {error}",
                "index a tuple with a number in its range",
            ) from None

    def _look_up(self, index: tensor, items: tuple[Any, ...]) -> Any:
        """The item at an index that is known at run time. Items with parts have them chosen one by
        one; the interpreter and `debug` check the index."""
        count = len(items)
        if self.session.checked and index.dtype.is_int() and not index.shape and count:
            inside = binary("and_", index >= 0, index < count)
            emit("device_assert", inside, f"the index is outside the list of {count} items", None)
        return self._choose_item(index, items)

    def _choose_item(self, index: tensor, items: tuple[Any, ...]) -> Any:
        first = items[0] if items else None
        if items and all(same_constant(settle(first), settle(item)) for item in items[1:]):
            return first
        parts = [parts_of(item) for item in items]
        if None not in parts and all(are_alike(first, item) for item in items):
            columns = zip(*parts)
            return rebuild(first, [self._choose_item(index, column) for column in columns])
        other = next((x for x in items if not isinstance(x, tensor) and not is_number(x)), None)
        if other is None:
            return emit_one("lookup", index, items)
        raise UserMistake(
            "E037",
            f"a list with {describe(other)} is indexed by {describe(index)}, known at run time",
            "such a list has pointers of one type, numbers, or tuples of these; index others with "
            "a constant, or loop over them with tl.static_range",
        )

    def _index_tensor(self, value: tensor, index: Any) -> Any:
        items = list(index) if isinstance(index, tuple) else [index]
        rank = len(value.shape)
        full = sum(1 for item in items if isinstance(item, slice))
        if value.dtype.is_ptr() and any(
            not isinstance(item, slice) and item is not None and item is not Ellipsis
            for item in items
        ):
            raise UserMistake(
                "E029",
                f"{describe(value)} is indexed by {describe(items[0])}",
                "pointers are indexed by adding offsets: tl.load(p + i)",
            )
        if Ellipsis in [item for item in items if not isinstance(item, tensor)]:
            at = next(i for i, item in enumerate(items) if item is Ellipsis)
            items[at : at + 1] = [slice(None)] * (rank - full)
            full = rank
        if rank == 0:
            # After the new dimensions of a scalar, `:` is not a dimension.
            while items and isinstance(items[-1], slice) and items[-1] == slice(None):
                items.pop()
                full -= 1
        axes = []
        for position, item in enumerate(items):
            if item is None:
                axes.append(position)
            elif not isinstance(item, slice) or item != slice(None):
                index = "a slice" if isinstance(item, slice) else describe(item)
                is_mask = isinstance(item, tensor) and item.dtype.is_bool()
                raise UserMistake(
                    "E029",
                    f"{describe_type(value.type)} is indexed by {index}",
                    "a tensor is indexed by None and `:` only; "
                    + (
                        "choose elements with tl.where(mask, x, other)"
                        if is_mask
                        else "use tl.gather, or load the part"
                    ),
                )
        if full > rank:
            raise UserMistake(
                "E022",
                f"too many indices: {full} for {describe_type(value.type)}, which has rank {rank}",
                "leave out some",
            )
        return shape_ops.expand_dims(value, tuple(axes)) if axes else value

    def visit_Slice(self, node: ast.Slice) -> slice:
        parts = []
        for part in (node.lower, node.upper, node.step):
            bound = None if part is None else settle(self.walker.visit(part))
            if isinstance(bound, tensor):
                raise UserMistake(
                    "E019", f"a bound of a slice is {describe(bound)}", "use a constant", node=part
                )
            parts.append(bound)
        return slice(*parts)

    # --- Operators ------------------------------------------------------------------------

    _ceiling: Optional[ast.expr] = None
    """The `-a // b` of a `-(-a // b)`, which means the quotient that is rounded up."""

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        is_ceiling, self._ceiling = node is self._ceiling, None
        left = self.walker.visit(node.left)
        right = self.walker.visit(node.right)
        with self.naming_operands((node.left, left), (node.right, right)):
            return self.binary_operator(type(node.op).__name__, left, right, is_ceiling)

    @contextmanager
    def naming_operands(self, *operands: tuple[ast.expr, Any]) -> Iterator[None]:
        """Adds to a mistake what each operand is and where it stands."""
        try:
            yield
        except (UserMistake, _C.CoreError) as error:
            mistake = error if isinstance(error, UserMistake) else mistake_from_core(error)
            if not any(isinstance(value, tensor) for _, value in operands):
                raise mistake from None
            notes = list(mistake.notes)
            for side, (node, value) in zip(("left", "right"), operands):
                line, column, _, _ = self.walker.place(node)
                text = f"the {side} operand is {describe(value)}"
                notes.append(Note(text, self.walker.source.file, line, column))
            mistake.notes = tuple(notes)
            raise mistake from None

    def binary_operator(self, name: str, left: Any, right: Any, is_ceiling: bool = False) -> Any:
        """A binary operator by the name of its `ast` class."""
        if is_aggregate(left) or is_aggregate(right):
            return self.walker.aggregates.operator_of_aggregates(
                name, SYMBOLS.get(name, "@"), left, right
            )
        if isinstance(left, tuple) or isinstance(right, tuple):
            found = self.walker.aggregates.operator_of_record(name, left, right)
            if found is not MISSING:
                return found
        if name == "MatMult":
            raise UserMistake("E014", "`@` is not supported inside a kernel", "use tl.dot(a, b)")
        if isinstance(left, tensor) or isinstance(right, tensor):
            if name == "Pow":
                raise UserMistake(
                    "E029",
                    f"`**` does not work on {describe(left)} and {describe(right)}",
                    "multiply, or use tl.math.pow(x, y)",
                )
            return checked_binary(BINARY[name][1], left, right)
        result = fold_binary(name, left, right)
        if not is_ceiling:
            at_run_time = fold_as_at_run_time(name, left, right)
            if at_run_time is not None and not same_constant(at_run_time, result):
                self.session.warn_once(
                    f"`{left!r} {SYMBOLS[name]} {right!r}` of constants is {result!r}, as in "
                    f"Python; at run time `{SYMBOLS[name]}` is C's, which gives {at_run_time!r}",
                    "use operands of one sign, or write the number that is meant",
                )
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        name = type(node.op).__name__
        self._ceiling = node.operand if _is_ceiling(node) else None
        if name == "Not":
            operand = self.walker.logic.visit_test(node.operand)
        else:
            operand = self.walker.visit(node.operand)
        if is_aggregate(operand):
            return self.walker.aggregates.unary_of_aggregate(name, SYMBOLS[name], operand)
        if isinstance(operand, tuple):
            found = self.walker.aggregates.unary_of_record(name, operand)
            if found is not MISSING:
                return found
        if isinstance(operand, tensor):
            result = unary(UNARY[name][1], truth(operand) if name == "Not" else operand)
            if name == "USub":
                check_negation(operand, result)
            return result
        return fold_unary(name, operand)

    def compare(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """One comparison of two values."""
        name = type(op).__name__
        if name in ("Is", "IsNot"):
            return self._identity(name == "Is", left, right)
        if name in ("In", "NotIn"):
            if not is_constant(left) or not is_constant(right):
                raise UserMistake(
                    "E031",
                    f"`in` does not work on {describe(left)} and {describe(right)}",
                    "compare with `==`, joined by `|`",
                )
            try:
                return (settle(left) in settle(right)) == (name == "In")
            except TypeError as error:
                raise UserMistake("E031", f"`in`: {error}", "use a tuple") from None
        if is_aggregate(left) or is_aggregate(right):
            return self.walker.aggregates.operator_of_aggregates(name, SYMBOLS[name], left, right)
        if isinstance(left, tuple) or isinstance(right, tuple):
            found = self.walker.aggregates.operator_of_record(name, left, right)
            if found is not MISSING:
                return found
        if isinstance(left, tensor) or isinstance(right, tensor):
            other = right if isinstance(left, tensor) else left
            if other is None:
                raise UserMistake(
                    "E031",
                    f"{describe(left)} is compared with {describe(right)}",
                    "use `is None`",
                )
            if not isinstance(other, (tensor, bool, int, float)) and name in ("Eq", "NotEq"):
                return name == "NotEq"
            return binary(COMPARE[name][1], left, right)
        if isinstance(left, tuple) and isinstance(right, tuple):
            return fold_compare(name, settle(left), settle(right))
        return fold_compare(name, left, right)

    def _identity(self, wanted: bool, left: Any, right: Any) -> bool:
        if isinstance(left, tensor) and isinstance(right, tensor):
            return (left is right) == wanted
        for one, other in ((left, right), (right, left)):
            if isinstance(one, tensor) and other is not None and not isinstance(other, type):
                raise UserMistake(
                    "E031",
                    f"`is` does not work on {describe(left)} and {describe(right)}",
                    "use `==`; `is` is for None",
                )
        if isinstance(left, dtype) and isinstance(right, dtype):
            return (left == right) == wanted
        return (left is right) == wanted

    # --- Sequences and strings ----------------------------------------------------------

    def visit_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.elements(node.elts))

    def visit_List(self, node: ast.List) -> tuple[Any, ...]:
        return tuple(self.elements(node.elts))

    def elements(self, nodes: list[ast.expr]) -> Iterator[Any]:
        """The values of a list of expressions, `*tuple` spread out."""
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.walker.visit(node.value)
                if not isinstance(value, tuple):
                    raise UserMistake(
                        "E014",
                        f"`*` needs a tuple, got {describe(value)}",
                        "pass a tuple",
                        node=node,
                    )
                yield from value
            else:
                yield self.walker.visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> tuple[Any, ...]:
        if len(node.generators) != 1:
            raise UserMistake(
                "E014", "a comprehension with several `for` is not supported", "use one `for`"
            )
        generator = node.generators[0]
        names = assigned_names([ast.Assign([generator.target], generator.iter)])
        outer = {name: self.walker.scope.get(name) for name in names}
        results = []
        for value in self.walker.loops.static_items(
            self.walker.visit(generator.iter), generator.iter
        ):
            self.walker.statements.assign(generator.target, value, constant=True)
            if all(self._filter(condition) for condition in generator.ifs):
                results.append(self.walker.visit(node.elt))
        for name, value in outer.items():
            if value is MISSING:
                self.walker.scope.values.pop(name, None)
            else:
                self.walker.scope.values[name] = value
        return tuple(results)

    def _filter(self, condition: ast.expr) -> bool:
        value = known_value(self.walker.logic.visit_test(condition))
        if isinstance(value, tensor):
            raise UserMistake(
                "E019",
                f"the `if` of a comprehension is {describe(value)}",
                "use a constant condition",
                node=condition,
            )
        return bool(value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.walker.visit(part)) for part in node.values)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> str:
        value = settle(self.walker.visit(node.value))
        if not is_constant(value):
            raise UserMistake(
                "E015",
                f"a string is formatted with {describe(value)}, known at run time only",
                'use tl.device_print("x", x)',
                node=node.value,
            )
        spec = "" if node.format_spec is None else self.walker.visit(node.format_spec)
        if node.conversion != -1:
            conversions: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}
            value = conversions[chr(node.conversion)](value)
        return format(value, spec)

    def visit_Starred(self, node: ast.Starred) -> Any:
        raise UserMistake("E014", "`*` is not supported here", "unpack in a call or a tuple")


def _is_ceiling(node: ast.UnaryOp) -> bool:
    """True if it is `-(-a // b)`."""
    inner = node.operand
    if not isinstance(node.op, ast.USub) or not isinstance(inner, ast.BinOp):
        return False
    if not isinstance(inner.op, ast.FloorDiv) or not isinstance(inner.left, ast.UnaryOp):
        return False
    return isinstance(inner.left.op, ast.USub)


def truth(value: Any) -> Any:
    """A pointer as what its truth is, whether it is not null; anything else as it is."""
    if isinstance(value, tensor) and value.dtype.is_ptr():
        return emit_one("ne", emit_one("cast", value, int64, None, False), 0)
    return value


def as_condition(value: Any, what: str, node: Optional[ast.AST] = None) -> Any:
    """A condition: a Python bool where it is known (from the specialisation, too), else a
    scalar int1 tensor.

    Raises UserMistake (E032) for a tile.
    """
    known = truth(known_value(value))
    if is_specialised(known):
        return bool(known._specialised)
    if is_aggregate(known):
        raise UserMistake("E032", f"{describe(known)} has no truth value", "use a field", node=node)
    if not isinstance(known, tensor):
        return bool(known)
    if known.shape and known.numel == 1:
        known = emit_one("reshape", known, [])
    if known.shape:
        raise UserMistake(
            "E032",
            f"the truth value of {describe_type(known.type)} is ambiguous in {what}",
            "choose elements with tl.where, or reduce the tensor to a scalar",
            node=node,
        )
    if not known.dtype.is_int() and not known.dtype.is_floating():
        raise UserMistake("E032", f"{describe(known)} has no truth value", "compare it", node=node)
    return known if known.dtype.is_bool() else emit_one("ne", known, 0)
