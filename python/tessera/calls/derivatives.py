# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of scalar functions, as text that `@jit` compiles.

A function of arithmetic, comparisons, `where` and the elementary functions of `tl` is written out as
a list of steps, one operation each. Functions that it calls are written out, too. The derivative
repeats the steps that it needs, and goes through them backwards with the gradient of each. Its text
is a scalar function as well, which can be derived again.
"""

from __future__ import annotations

import ast
import math
from typing import Any, Callable, NamedTuple, Optional, Sequence, Union

from tessera.calls.elements import make_text_function
from tessera.calls.scalars import Scalar
from tessera.errors import CompilationError
from tessera.language import types
from tessera.runtime.jit import JITFunction, jit
from tessera.wording import counted

Gradients = Sequence[Optional[str]]
"""For each operand the text of its gradient, None where there is none."""

_LN2 = math.log(2)

# Each rule gets the gradient of the result, the operands and the result.
_RULES: dict[str, Callable[..., Gradients]] = {
    "+": lambda g, a, b, r: (g, g),
    "-": lambda g, a, b, r: (g, f"-{g}"),
    "*": lambda g, a, b, r: (f"{g} * {b}", f"{g} * {a}"),
    "/": lambda g, a, b, r: (f"{g} / {b}", f"-{g} * {r} / {b}"),
    "%": lambda g, a, b, r: (g, f"{g} * (({r} - {a}) / {b})"),
    "//": lambda g, a, b, r: (None, None),
    "negate": lambda g, a, r: (f"-{g}",),
    "abs": lambda g, a, r: (f"tl.where({a} > 0, {g}, tl.where({a} < 0, -{g}, 0.0 * {g}))",),
    "ceil": lambda g, a, r: (None,),
    "clamp": lambda g, x, low, high, r: (
        f"tl.where(({x} >= {low}) & ({x} <= {high}), {g}, 0.0)",
        f"tl.where({x} < {low}, {g}, 0.0)",
        f"tl.where({x} > {high}, {g}, 0.0)",
    ),
    "cos": lambda g, a, r: (f"-{g} * tl.sin({a})",),
    "div_rn": lambda g, a, b, r: (f"{g} / {b}", f"-{g} * {r} / {b}"),
    "erf": lambda g, a, r: (f"{g} * {2 / math.sqrt(math.pi)!r} * tl.exp(-({a} * {a}))",),
    "exp": lambda g, a, r: (f"{g} * {r}",),
    "exp2": lambda g, a, r: (f"{g} * {r} * {_LN2!r}",),
    "expm1": lambda g, a, r: (f"{g} * ({r} + 1)",),
    "fdiv": lambda g, a, b, r: (f"{g} / {b}", f"-{g} * {r} / {b}"),
    "floor": lambda g, a, r: (None,),
    "fma": lambda g, a, b, c, r: (f"{g} * {b}", f"{g} * {a}", g),
    "log": lambda g, a, r: (f"{g} / {a}",),
    "log1p": lambda g, a, r: (f"{g} / ({a} + 1)",),
    "log2": lambda g, a, r: (f"{g} / ({a} * {_LN2!r})",),
    "maximum": lambda g, a, b, r: _of_larger(g, a, b),
    "minimum": lambda g, a, b, r: _of_larger(g, a, b)[::-1],
    "pow": lambda g, a, b, r: (
        f"tl.where({b} == 0, 0.0, {g} * {b} * tl.math.pow({a}, {b} - 1))",
        f"tl.where(({a} == 0) & ({b} >= 0), 0.0, {g} * {r} * tl.log({a}))",
    ),
    "rsqrt": lambda g, a, r: (f"-0.5 * {g} * {r} * {r} * {r}",),
    "sigmoid": lambda g, a, r: (f"{g} * {r} * (1 - {r})",),
    "sin": lambda g, a, r: (f"{g} * tl.cos({a})",),
    "sqrt": lambda g, a, r: (f"{g} / (2 * {r})",),
    "sqrt_rn": lambda g, a, r: (f"{g} / (2 * {r})",),
    "tan": lambda g, a, r: (f"{g} * (1 + {r} * {r})",),
    "tanh": lambda g, a, r: (f"{g} * (1 - {r} * {r})",),
    "to": lambda g, a, dtype, r: (g, None),
    "where": lambda g, c, a, b, r: (
        None,
        f"tl.where({c}, {g}, 0.0)",
        f"tl.where({c}, 0.0, {g})",
    ),
}

_LIBDEVICE: dict[str, Callable[..., Gradients]] = {
    "acos": lambda g, a, r: (f"-{g} * tl.rsqrt(1 - {a} * {a})",),
    "acosh": lambda g, a, r: (f"{g} * tl.rsqrt({a} * {a} - 1)",),
    "asin": lambda g, a, r: (f"{g} * tl.rsqrt(1 - {a} * {a})",),
    "asinh": lambda g, a, r: (f"{g} * tl.rsqrt({a} * {a} + 1)",),
    "atan": lambda g, a, r: (f"{g} / ({a} * {a} + 1)",),
    "atan2": lambda g, y, x, r: (
        f"{g} * {x} / ({x} * {x} + {y} * {y})",
        f"-{g} * {y} / ({x} * {x} + {y} * {y})",
    ),
    "atanh": lambda g, a, r: (f"{g} / (1 - {a} * {a})",),
    "cosh": lambda g, a, r: (f"{g} * tl.extra.libdevice.sinh({a})",),
    "erfc": lambda g, a, r: (f"{g} * {-2 / math.sqrt(math.pi)!r} * tl.exp(-({a} * {a}))",),
    "hypot": lambda g, x, y, r: (f"{g} * ({x} / {r})", f"{g} * ({y} / {r})"),
    "log10": lambda g, a, r: (f"{g} / ({a} * {math.log(10)!r})",),
    "rint": lambda g, a, r: (None,),
    "sinh": lambda g, a, r: (f"{g} * tl.extra.libdevice.cosh({a})",),
    "trunc": lambda g, a, r: (None,),
}
"""Functions of `tl.extra.libdevice`."""

_RULES.update(_LIBDEVICE)

_SAME = {
    "add": "+", "sub": "-", "mul": "*", "max": "maximum", "min": "minimum",
    "cast": "to",
}  # fmt: skip

_OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.FloorDiv: "//",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.And: "and", ast.Or: "or", ast.Not: "not ", ast.Invert: "~",
}  # fmt: skip


def _of_larger(g: str, a: str, b: str) -> tuple[str, str]:
    # The gradient of equal operands is shared, as torch does it.
    return (
        f"tl.where({a} == {b}, 0.5 * {g}, tl.where({a} > {b}, {g}, 0.0))",
        f"tl.where({a} == {b}, 0.5 * {g}, tl.where({b} > {a}, {g}, 0.0))",
    )


class Step(NamedTuple):
    """One operation: `name = text`."""

    name: str
    rule: str
    """A key of the rules; empty where the result has no gradient."""
    operands: tuple[str, ...]
    """Names of steps and parameters, and numbers."""
    text: str


class _Function(NamedTuple):
    """A function whose text is being written out."""

    function: JITFunction[Any, Any]
    values: dict[str, Any]
    """The operand that each local name stands for; a tuple of operands for a tuple."""


class _Steps:
    """The steps of a function, in order."""

    def __init__(self, scalar: Scalar) -> None:
        self.steps: list[Step] = []
        self.objects: dict[str, Any] = {}
        """What the text names, other than steps, parameters and `tl`."""
        self._scalar = scalar
        self._prefix = "step"
        while any(self._prefix in param.name for param in scalar.params):
            self._prefix = f"s{self._prefix}"
        self._calls: list[JITFunction[Any, Any]] = []
        params = {param.name: param.name for param in scalar.params}
        result = self._run(_Function(scalar.function, dict(params)))
        self.results: tuple[str, ...] = result if isinstance(result, tuple) else (result,)

    def _run(self, here: _Function) -> Any:
        """The operand that a function returns."""
        from tessera.frontend.source import source_of

        if here.function in self._calls:
            raise self._refuse(source_of(here.function).tree, here, "is recursive")
        self._calls.append(here.function)
        tree = source_of(here.function).tree
        for statement in tree.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                self._calls.pop()
                return self._visit(statement.value, here)
            self._do(statement, here)
        raise self._refuse(tree, here, "has no `return` at its end")

    def _do(self, node: ast.stmt, here: _Function) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.Pass):
            return
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target: Any = node.targets[0]
            value = self._visit(node.value, here)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, self._visit(node.value, here)
        elif isinstance(node, ast.AugAssign):
            target = node.target
            load = ast.copy_location(ast.Name(getattr(target, "id", ""), ast.Load()), node)
            value = self._visit(ast.copy_location(ast.BinOp(load, node.op, node.value), node), here)
        else:
            raise self._refuse(node, here, f"has the statement `{type(node).__name__.lower()}`")
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value if isinstance(value, tuple) else (value,)
        if len(targets) != len(values):
            values = (value,)
        for each, operand in zip(targets, values):
            if not isinstance(each, ast.Name):
                raise self._refuse(node, here, "assigns to something other than a variable")
            here.values[each.id] = operand

    def _visit(self, node: ast.expr, here: _Function) -> Any:
        """The operand that an expression is."""
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
            return _literal(node.value)
        if isinstance(node, ast.Tuple):
            return tuple(self._visit(each, here) for each in node.elts)
        if isinstance(node, ast.Name) and node.id in here.values:
            return here.values[node.id]
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._global(node, here)
        if isinstance(node, ast.UnaryOp):
            operand = self._visit(node.operand, here)
            if isinstance(node.op, ast.UAdd):
                return operand
            if isinstance(node.op, ast.USub):
                return self._add("negate", (operand,), f"-{operand}")
            return self._add("", (operand,), f"{_OPERATORS[type(node.op)]}{operand}")
        if isinstance(node, ast.BinOp):
            left, right = self._visit(node.left, here), self._visit(node.right, here)
            if isinstance(node.op, ast.Pow):
                raise self._refuse(node, here, "has `**`, which kernels do not have")
            sign = _OPERATORS[type(node.op)]
            rule = sign if sign in _RULES else ""
            return self._add(rule, (left, right), f"{left} {sign} {right}")
        if isinstance(node, ast.Compare):
            operands = [self._visit(each, here) for each in (node.left, *node.comparators)]
            pairs = zip(operands, node.ops, operands[1:])
            parts = [f"({a} {_OPERATORS[type(op)]} {b})" for a, op, b in pairs
                     if type(op) in _OPERATORS]  # fmt: skip
            if len(parts) < len(node.ops):
                raise self._refuse(node, here, "has a comparison by `is` or `in`")
            return self._add("", tuple(operands), " & ".join(parts))
        if isinstance(node, ast.BoolOp):
            operands = [self._visit(each, here) for each in node.values]
            return self._add("", tuple(operands), f" {_OPERATORS[type(node.op)]} ".join(operands))
        if isinstance(node, ast.IfExp):
            parts = [self._visit(each, here) for each in (node.test, node.body, node.orelse)]
            return self._add("where", tuple(parts), f"tl.where({', '.join(parts)})")
        if isinstance(node, ast.Call):
            return self._call(node, here)
        raise self._refuse(node, here, f"has `{ast.unparse(node)}`")

    def _global(self, node: Union[ast.Name, ast.Attribute], here: _Function) -> str:
        value = types.unwrap(_resolve(node, here))
        if isinstance(value, (bool, int, float)):
            return _literal(value)
        if isinstance(value, types.dtype):
            return f"tl.{repr(value).rpartition('.')[2]}"
        raise self._refuse(node, here, f"reads `{ast.unparse(node)}`, which is no number")

    def _call(self, node: ast.Call, here: _Function) -> Any:
        called = _resolve(node.func, here)
        args = list(node.args)
        if called is None and isinstance(node.func, ast.Attribute):  # x.exp()
            name = node.func.attr
            args.insert(0, node.func.value)
        else:
            name = _language_names().get(id(called), "")
        if called is not None and not name and isinstance(called, JITFunction):
            return self._inline(called, node, here)
        name = _SAME.get(name, name)
        named = [self._keyword(each, here) for each in node.keywords]
        if name not in _RULES or None in named or any(isinstance(a, ast.Starred) for a in args):
            raise self._refuse(node, here, f"calls `{ast.unparse(node)}`, of which no derivative is "
                               "known")  # fmt: skip
        operands = tuple(self._visit(each, here) for each in args)
        if len(operands) != _RULES[name].__code__.co_argcount - 2:
            raise self._refuse(
                node, here, f"calls `{name}` with {counted(len(operands), 'operand')}"
            )
        if len(name) < 3 and not name.isalpha():
            text = f" {name} ".join(operands)
        elif name == "to":
            text = f"{operands[0]}.to({operands[1]})"
        else:
            home = (
                "tl.extra.libdevice" if name in _LIBDEVICE else "tl.math" if name == "pow" else "tl"
            )
            text = f"{home}.{name}({', '.join([*operands, *map(str, named)])})"
        is_to_integer = name == "to" and not operands[1].startswith(("tl.float", "tl.bfloat"))
        return self._add("" if is_to_integer else name, operands, text)

    def _keyword(self, node: ast.keyword, here: _Function) -> Optional[str]:
        """The text of an argument that changes no derivative; None of any other."""
        value = types.unwrap(_resolve(node.value, here))
        if node.arg == "propagate_nan" and value in ("none", "all"):
            return f"propagate_nan=tl.PropagateNan.{value.upper()}"
        return None

    def _inline(self, called: JITFunction[Any, Any], node: ast.Call, here: _Function) -> Any:
        values: dict[str, Any] = {}
        for param, each in zip(called.params, node.args):
            values[param.name] = self._visit(each, here)
        for keyword in node.keywords:
            values[keyword.arg or ""] = self._visit(keyword.value, here)
        for param in called.params:
            if param.name not in values and param.has_default:
                values[param.name] = _literal(types.unwrap(param.default))
        return self._run(_Function(called, values))

    def _add(self, rule: str, operands: tuple[str, ...], text: str) -> str:
        if not any(words(each) for each in operands):
            # A variable would be a float32 or an int32; numbers in an expression are exact.
            return f"({text})"
        name = f"{self._prefix}_{len(self.steps)}_"
        self.steps.append(Step(name, rule, operands, text))
        return name

    def _refuse(self, node: Any, here: _Function, why: str) -> CompilationError:
        from tessera.frontend.source import source_of

        source = source_of(here.function)
        line, column = node.lineno, node.col_offset + 1
        text = source.lines[line - source.first_line]
        return CompilationError(
            "E090",
            f"`{self._scalar.function.__name__}` has no derivative: it {why}",
            "write the derivative with @op.backward",
            source.file,
            line,
            column,
            getattr(node, "end_col_offset", 0) + 1 if node.lineno == node.end_lineno else 0,
            text,
        )


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return f"({value!r})" if isinstance(value, (int, float)) and value < 0 else repr(value)


def _resolve(node: ast.expr, here: _Function) -> Any:
    """The object that a name outside of the function is; None if there is none."""
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value, here)
        return None if owner is None else getattr(owner, node.attr, None)
    if isinstance(node, ast.Name) and node.id not in here.values:
        import builtins

        return here.function._globals.get(node.id, getattr(builtins, node.id, None))
    return None


def _language_names() -> dict[int, str]:
    """The names of the language's functions that have a rule, and of Python's."""
    if not _names:
        import tessera.language as tl

        for name in (*_RULES, *_SAME):
            if name in _LIBDEVICE:
                _names[id(getattr(tl.extra.libdevice, name))] = name
            elif name.isidentifier():
                found = getattr(tl, name, None) or getattr(tl.math, name, None)
                if found is not None:
                    _names[id(found)] = name
        _names.update({id(abs): "abs", id(max): "maximum", id(min): "minimum"})
    return _names


_names: dict[int, str] = {}


def derive(scalar: Scalar, wanted: Sequence[bool], given: Any = None) -> JITFunction[Any, Any]:
    """A scalar function of the gradients of the float results and then the arguments, that returns
    the gradient of each argument that is `wanted`.

    It calls `given`, the user's derivative, if there is one. Raises CompilationError (E090) at the
    place of what cannot be derived.
    """
    # The same in every process, for the names of operators in exported programs.
    mask = "".join("01"[is_wanted] for is_wanted in wanted)
    name = f"{scalar.function.__name__}_backward_{mask}"
    gradients = gradient_names(scalar)
    params = [*gradients]
    for param, fixed in zip(scalar.params, scalar.fixed):
        note = ": tl.constexpr" if param.is_constexpr else ""
        params.append(param.name + (f": tl.{repr(fixed).rpartition('.')[2]}" if fixed else note))
    scope: dict[str, Any] = {}
    if given is not None:
        lines, returned = _given_lines(scalar, gradients, wanted, given)
        scope["derivative"] = given
    else:
        written = write_out(scalar, gradients, wanted)
        lines, returned = [f"{each} = {value}" for each, value in written.lines], written.returned
    text = f"def {name}({', '.join(params)}):\n    "
    text += "\n    ".join([*lines, f"return {', '.join(returned)}"]) + "\n"
    return jit(make_text_function(name, text, scalar.function.__module__, scope))


def gradient_names(scalar: Scalar) -> list[str]:
    """The parameters of a derivative that are the gradients of results: of the floats."""
    places = [at for at, dtype in enumerate(scalar.results) if is_differentiable(dtype)]
    prefix = "grad"
    while any(param.name.startswith(prefix) for param in scalar.params):
        prefix = f"d{prefix}"  # of the derivative of a derivative
    return [f"{prefix}_{at}_" if len(scalar.results) > 1 else f"{prefix}_" for at in places]


def is_differentiable(dtype: Optional[types.dtype]) -> bool:
    """True if a result of that type, or of the promoted one, may have a gradient."""
    return dtype is None or dtype.is_floating()


def _given_lines(
    scalar: Scalar, gradients: Sequence[str], wanted: Sequence[bool], given: JITFunction[Any, Any]
) -> tuple[list[str], list[str]]:
    arguments = [*gradients, *(param.name for param in scalar.params)]
    if len(given.params) != len(arguments):
        raise CompilationError.at_function(
            given.fn,
            "E089",
            f"the derivative of `{scalar.function.__name__}` has {counted(len(given.params), 'parameter')}"
            f", where {len(arguments)} are expected",
            f"the parameters are {', '.join(arguments)}",
        )
    names = [f"gradient_{at}_" for at in range(len(scalar.params))]
    call = f"{', '.join(names)} = derivative({', '.join(arguments)})"
    return [call], [name for name, is_wanted in zip(names, wanted) if is_wanted]


class Derived(NamedTuple):
    """A derivative as text, before it is a function."""

    steps: tuple[Step, ...]
    """Of the function itself."""
    result: str
    """The step that the function returns, the first one if it returns several."""
    lines: list[tuple[str, str]]
    """Names with their expressions: the steps that are needed, then gradients."""
    returned: list[str]
    """The gradient of each argument that is wanted."""


def write_out(scalar: Scalar, gradients: Sequence[str], wanted: Sequence[bool]) -> Derived:
    """The derivative of a scalar function. Raises CompilationError (E090) as `derive` does."""
    forward = _Steps(scalar)
    sums: dict[str, list[str]] = {}
    names = iter(gradients)
    for result, dtype in zip(forward.results, scalar.results):
        if is_differentiable(dtype):
            sums.setdefault(result, []).append(next(names))
    asked = {param.name for param, is_wanted in zip(scalar.params, wanted) if is_wanted}
    active = set(asked)
    for step in forward.steps:
        if step.rule and active.intersection(step.operands):
            active.add(step.name)
    lines: list[tuple[str, str]] = [(step.name, step.text) for step in forward.steps]
    for step in reversed(forward.steps):
        if step.name not in active or step.name not in sums:
            continue
        gradient = f"d_{step.name}"
        lines.append((gradient, " + ".join(sums[step.name])))
        found = _RULES[step.rule](gradient, *step.operands, step.name)
        for at, (operand, text) in enumerate(zip(step.operands, found)):
            if operand in active and text is not None:
                part = f"d_{step.name}{at}_"
                lines.append((part, text))
                sums.setdefault(operand, []).append(part)
    returned = []
    for param, is_wanted in zip(scalar.params, wanted):
        if is_wanted:
            returned.append(" + ".join(sums.get(param.name, ["0.0"])))
    return Derived(tuple(forward.steps), forward.results[0], needed(lines, returned), returned)


def needed(lines: Sequence[tuple[str, str]], returned: Sequence[str]) -> list[tuple[str, str]]:
    """The lines that the returned values depend on."""
    names = {each for text in returned for each in words(text)}
    kept = []
    for name, text in reversed(lines):
        if name in names:
            names.update(words(text))
            kept.append((name, text))
    return kept[::-1]


def words(text: str) -> list[str]:
    """The names of an expression."""
    return [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
