# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scalar function of an elementwise operator: its parameters, and the types of its results."""

from __future__ import annotations

import ast
import inspect
import json
from typing import Any, NamedTuple, Optional

from tessera.compiler.cache import default_cache
from tessera.compiler.dependencies import text_key
from tessera.errors import CompilationError
from tessera.language import types
from tessera.language.callables import Param
from tessera.runtime.arrays import find_dtype
from tessera.runtime.jit import JITFunction
from tessera.wording import shown

FUNCTIONS_OF_FLOATS = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh cospi erf erfc erfcinv erfcx erfinv exp exp10 "
    "exp2 expm1 fdiv hypot lgamma log log10 log1p log2 pow rcbrt rsqrt sigmoid sin sinh sinpi sqrt tan "
    "tanh tgamma".split()
)
"""Functions of `tl` and `tl.extra.libdevice` that take floats, so that integers become floats before."""

_FUNCTIONS_OF_TYPES = ("isnan", "isinf", "isfinite", "signbit")


class Scalar(NamedTuple):
    """A scalar function, as an operator sees it."""

    function: JITFunction[Any, Any]
    params: tuple[Param, ...]
    fixed: tuple[Optional[types.dtype], ...]
    """The type that the annotation of a parameter says. Such an argument is converted to it, and
    has no part in the type of the results."""
    results: tuple[Optional[types.dtype], ...]
    """The type of each result; None for the type that the library promotes the arguments to."""
    to_float: bool
    """True if integers become floats."""


def is_identity(scalar: Scalar) -> bool:
    """True if the function returns its only argument."""
    from tessera.frontend.source import source_of

    last = source_of(scalar.function).tree.body[-1]
    return (
        len(scalar.params) == len(scalar.results) == 1
        and isinstance(last, ast.Return)
        and isinstance(last.value, ast.Name)
        and last.value.id == scalar.params[0].name
        and len(source_of(scalar.function).tree.body) == 1
        and scalar.fixed == scalar.results == (None,)
    )


class _Body(NamedTuple):
    """The properties of a scalar function that its text has by itself."""

    truths: tuple[bool, ...]
    """Whether each result is a truth value for certain."""
    to_float: bool
    """True if its arithmetic is of floats."""


def read_scalar(function: JITFunction[Any, Any], promotion: Optional[str]) -> Scalar:
    """Reads the text and the annotations of a scalar function. Raises CompilationError (E089)."""
    params = tuple(function.params)
    for param in params:
        if param.kind == "varargs":
            raise _mistake(
                function, f"`*{param.name}` is no parameter of a scalar function", "name each"
            )
    if not params:
        raise _mistake(function, f"`{function.__name__}` has no parameter", "give it one")
    body = _find_body(function)
    annotation = function.fn.__annotations__.get("return", inspect.Parameter.empty)
    results: tuple[Optional[types.dtype], ...]
    if annotation is inspect.Parameter.empty:
        results = tuple(types.int1 if is_truth else None for is_truth in body.truths)
    else:
        results = _annotated(function, annotation, len(body.truths))
    return Scalar(
        function,
        params,
        tuple(_fixed_type(function, param) for param in params),
        results,
        body.to_float if promotion is None else promotion == "float",
    )


def _find_body(function: JITFunction[Any, Any]) -> _Body:
    """Those properties, from the disk cache, or read from the text and stored there."""
    cache = default_cache()
    key = None if cache.mode == "off" else text_key(function, "scalar function")
    if key is not None and (found := cache.read(key)) is not None:
        truths, to_float = json.loads(found["body"])
        return _Body(tuple(truths), to_float)
    body = _read_body(function)
    if key is not None:
        cache.write(key, {"body": json.dumps(body).encode()})
    return body


def _read_body(function: JITFunction[Any, Any]) -> _Body:
    from tessera.frontend.source import source_of

    tree = source_of(function).tree
    known = _assigned(tree)
    values = _returned(function, tree)
    return _Body(tuple(is_truth_value(value, known) for value in values), _turns_to_float(tree))


def _returned(function: JITFunction[Any, Any], tree: ast.FunctionDef) -> list[ast.expr]:
    """The expressions that the function returns, of its last `return`."""
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    found = [
        [] if each.value is None
        else each.value.elts if isinstance(each.value, ast.Tuple) else [each.value]
        for each in returns
    ]  # fmt: skip
    if not found or not found[-1]:
        raise _mistake(
            function, f"`{function.__name__}` returns nothing", "return the value of an element"
        )
    if len({len(values) for values in found}) > 1:
        raise _mistake(
            function,
            f"`{function.__name__}` returns different numbers of values",
            "return as many everywhere",
        )
    return list(found[-1])


def _assigned(tree: ast.FunctionDef) -> dict[str, ast.expr]:
    """The expression of each variable that is assigned once."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def is_truth_value(node: ast.expr, known: dict[str, ast.expr]) -> bool:
    """True if an expression is a truth value for certain."""
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not):
            return True
        return isinstance(node.op, ast.Invert) and is_truth_value(node.operand, known)
    if isinstance(node, ast.BoolOp):
        return all(is_truth_value(each, known) for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return is_truth_value(node.left, known) and is_truth_value(node.right, known)
    if isinstance(node, ast.Call):
        return _last_name(node.func) in _FUNCTIONS_OF_TYPES
    if isinstance(node, ast.Name) and node.id in known:
        rest = {name: value for name, value in known.items() if name != node.id}
        return is_truth_value(known[node.id], rest)
    return False


def _turns_to_float(tree: ast.FunctionDef) -> bool:
    """True if the function divides, calls a function of floats, or has a float in its arithmetic."""

    def visit(node: ast.AST) -> bool:
        if isinstance(node, ast.Compare):
            return any(visit(each) for each in (node.left, *node.comparators)
                       if not isinstance(each, ast.Constant))  # fmt: skip
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return True
        if isinstance(node, ast.Constant):
            return isinstance(node.value, float)
        if isinstance(node, ast.Call) and _last_name(node.func) in FUNCTIONS_OF_FLOATS:
            return True
        return any(map(visit, ast.iter_child_nodes(node)))

    return any(map(visit, tree.body))


def _last_name(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _annotated(
    function: JITFunction[Any, Any], annotation: Any, count: int
) -> tuple[Optional[types.dtype], ...]:
    if isinstance(annotation, str):  # under `from __future__ import annotations`
        annotation = _evaluated(function, annotation)
    listed = annotation if isinstance(annotation, (tuple, list)) else [annotation]
    found = tuple(None if each is None else _dtype(each) for each in listed)
    if len(found) != count or any(a is not None and b is None for a, b in zip(listed, found)):
        raise _mistake(
            function,
            f"`{function.__name__}` returns {count} values, and is annotated to return "
            f"{shown(annotation)}",
            "annotate a type of `tl` for each result, or None for the promoted one",
        )
    return found


def _evaluated(function: JITFunction[Any, Any], text: str) -> Any:
    try:
        return eval(text, dict(function._globals))
    except Exception:
        return text


def _dtype(annotation: Any) -> Optional[types.dtype]:
    if annotation is bool:
        return types.int1
    return annotation if isinstance(annotation, types.dtype) else None


def _fixed_type(function: JITFunction[Any, Any], param: Param) -> Optional[types.dtype]:
    annotation = param.annotation
    if annotation is None or param.is_constexpr:
        return None
    if isinstance(annotation, str):
        annotation = _evaluated(function, annotation)
    found = _dtype(annotation)
    if found is None or find_dtype(found) is None:
        raise _mistake(
            function,
            f"the annotation of `{param.name}`, {shown(annotation)}, is no type of elements",
            "write a type, as in `mask: tl.int1`, or none",
        )
    return found


def _mistake(function: JITFunction[Any, Any], message: str, fix: str) -> CompilationError:
    return CompilationError.at_function(function.fn, "E089", message, fix)
