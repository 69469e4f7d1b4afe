# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values that a call of an elementwise operator keeps for its gradient: as few bytes as possible.

The text of a derivative (derivatives.py) reads arguments, and truth values of them such as `x > 0`. The
launch of the call can store these: a byte for each element in place of the argument, with a bit for
each truth value. If the derivative is one by the result, as that of tanh is, the result is kept. A
gradient that is that of the result itself takes no launch.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple, Optional, Sequence

from tessera.calls.derivatives import Derived, gradient_names, needed, words, write_out
from tessera.calls.elements import make_text_function
from tessera.calls.scalars import Scalar, is_truth_value
from tessera.language.callables import Param
from tessera.runtime.jit import JITFunction, jit

BY_RESULT = frozenset(("tanh", "sigmoid", "exp", "exp2", "expm1", "sqrt", "rsqrt"))
"""Functions whose derivative is by their result. torch keeps it, too: it may not change before the
gradient is computed. Other results may."""

MAX_FLAGS = 8
"""Truth values of an element, which are bits of one byte."""

RESULT, FLAGS = "result_kept_", "flags_kept_"
"""The names of the parameters of a gradient that are no arguments of the operator."""


class Kept(NamedTuple):
    """The values that are kept, and how a gradient follows from them."""

    sources: tuple[str, ...]
    """Names of the arguments, RESULT and FLAGS, in the order in which the gradient takes them."""
    forward: Optional[JITFunction[Any, Any]]
    """A scalar function with the result and the flags. None if there are no flags."""
    gradient: Optional[JITFunction[Any, Any]]
    """A scalar function of the gradient and the sources. None if nothing is to be computed."""
    is_passed: tuple[bool, ...]
    """For each argument that is wanted, if its gradient is that of the result as it is."""
    cost: int
    """The bytes of an element that the call writes for the gradient, and those that this reads."""

    def has_all(self, names: Sequence[str]) -> bool:
        """True if all of these arguments are kept."""
        return set(names) <= set(self.sources)


class Elements(NamedTuple):
    """The arguments of a call: for each one its bytes for an element of the result. 0 for a number, and
    for an array of far fewer elements."""

    sizes: tuple[int, ...]
    are_many: bool
    """True if bytes count. Otherwise a call takes as long as its launch."""
    may_keep_result: bool


def find_kept(scalar: Scalar, wanted: Sequence[bool], elements: Elements) -> Optional[Kept]:
    """The values to keep in place of all arguments. None if that gains nothing."""
    if len(scalar.results) > 1 or any(param.is_constexpr for param in scalar.params):
        return None
    if any(param.name in (RESULT, FLAGS) for param in scalar.params):
        return None  # the derivative of such a gradient
    gradients = gradient_names(scalar)
    if len(gradients) != 1:
        return None
    derived = write_out(scalar, gradients, wanted)
    plain = _Keeping(scalar, derived, gradients[0], elements, False).kept(wanted)
    flagged = plain
    if elements.are_many:
        flagged = _Keeping(scalar, derived, gradients[0], elements, True).kept(wanted)
    if flagged is not None and flagged.forward is not None:
        if plain is None or flagged.cost <= plain.cost:
            return flagged
    if plain is None or RESULT in plain.sources:
        return plain
    arrays = [param.name for param, size in zip(scalar.params, elements.sizes) if size]
    is_less = any(plain.is_passed) or not plain.has_all(arrays)
    return plain if elements.are_many and is_less else None


class _Keeping:
    """A derivative that reads flags, if `has_flags`, and the result."""

    def __init__(
        self, scalar: Scalar, derived: Derived, gradient: str, elements: Elements, has_flags: bool
    ) -> None:
        self._scalar, self._gradient = scalar, gradient
        self._elements, self._has_flags = elements, has_flags
        self._steps = {step.name: step.text for step in derived.steps}
        self._derived = derived
        self._known = {name: _parsed(text) for name, text in self._steps.items()}
        self._arrays = self._dependent(
            [param.name for param, size in zip(scalar.params, elements.sizes) if size]
        )
        """The names of arrays of as many elements as the result, and of what is computed of these."""
        self._gradients = {gradient, *(name for name, _ in derived.lines)} - self._steps.keys()
        self._flags: dict[str, str] = {}
        """By its expression, the name of each truth value that is kept."""

    def _dependent(self, names: Sequence[str]) -> set[str]:
        found = set(names)
        for name, text in self._steps.items():
            if found.intersection(words(text)):
                found.add(name)
        return found

    def kept(self, wanted: Sequence[bool]) -> Optional[Kept]:
        """The choice. None if there would be too many flags."""
        derived, scalar = self._derived, self._scalar
        rules = {step.name: step.rule for step in derived.steps}
        by_result = self._elements.may_keep_result and rules.get(derived.result) in BY_RESULT
        lines = [
            (name, self._without_flags(text) if name not in self._steps else text)
            for name, text in derived.lines
        ]
        returned = [self._without_flags(text) for text in derived.returned]
        if by_result:
            lines = [(name, RESULT if name == derived.result else text) for name, text in lines]
        returned = [_source_of(text, dict(lines)) for text in returned]
        is_passed = tuple(text == self._gradient for text in returned)
        computed = [text for text, passed in zip(returned, is_passed) if not passed]
        lines = needed(lines, computed)
        used = {each for text in (*computed, *(text for _, text in lines)) for each in words(text)}
        flags = self._flags = {text: name for text, name in self._flags.items() if name in used}
        if len(flags) > MAX_FLAGS:
            return None
        sources = [param.name for param in scalar.params if param.name in used]
        sources += [RESULT] if RESULT in used else []
        sources += [FLAGS] if flags else []
        cost = 2 * bool(flags) + sum(
            size for param, size in zip(scalar.params, self._elements.sizes) if param.name in used
        )
        if RESULT in used:
            cost += max(self._elements.sizes)
        return Kept(
            tuple(sources),
            self._forward() if flags else None,
            self._gradient_function(sources, lines, computed) if computed else None,
            is_passed,
            cost,
        )

    def _without_flags(self, text: str) -> str:
        """An expression of the gradient with names in place of truth values."""
        if not self._has_flags:
            return text
        return ast.unparse(_Hoist(self._name_of).visit(_parsed(text)))

    def _name_of(self, node: ast.expr) -> Optional[str]:
        """The name of the flag that an expression is. None if it is none."""
        names = set(words(ast.unparse(node)))
        if names & self._gradients or not names & self._arrays:
            return None
        if not is_truth_value(node, self._known):
            return None
        text = ast.unparse(node)
        return self._flags.setdefault(text, f"flag_{len(self._flags)}_")

    def _forward(self) -> JITFunction[Any, Any]:
        flags = list(self._flags)
        lines = [f"{name} = {text}" for name, text in needed(list(self._steps.items()), flags)]
        if len(flags) == 1:
            value, dtype = flags[0], "tl.int1"
        else:
            value, dtype = " | ".join(
                f"tl.where({text}, {1 << at}, 0)" for at, text in enumerate(flags)
            ), "tl.uint8"  # fmt: skip
        params = ", ".join(map(self._parameter, self._scalar.params))
        called = ", ".join(param.name for param in self._scalar.params)
        lines.append(f"return scalar_function_({called}), {value}")
        name = f"{self._scalar.function.__name__}_kept"
        text = f"def {name}({params}) -> (None, {dtype}):\n    " + "\n    ".join(lines) + "\n"
        scope = {"scalar_function_": self._scalar.function}
        return jit(make_text_function(name, text, self._scalar.function.__module__, scope))

    def _parameter(self, param: Param) -> str:
        fixed = self._scalar.fixed[self._scalar.params.index(param)]
        return param.name + (f": tl.{repr(fixed).rpartition('.')[2]}" if fixed else "")

    def _gradient_function(
        self, sources: Sequence[str], lines: Sequence[tuple[str, str]], returned: Sequence[str]
    ) -> JITFunction[Any, Any]:
        by_name = {param.name: self._parameter(param) for param in self._scalar.params}
        flags = list(self._flags.values())
        by_name[FLAGS] = f"{FLAGS}: tl.{'int1' if len(flags) == 1 else 'uint8'}"
        params = [self._gradient, *(by_name.get(each, each) for each in sources)]
        text = [f"{flags[0]} = {FLAGS}"] if len(flags) == 1 else [
            f"{name} = ({FLAGS} & {1 << at}) != 0" for at, name in enumerate(flags)
        ]  # fmt: skip
        text += [f"{name} = {value}" for name, value in lines]
        text.append(f"return {', '.join(returned)}")
        name = f"{self._scalar.function.__name__}_backward_kept"
        whole = f"def {name}({', '.join(params)}):\n    " + "\n    ".join(text) + "\n"
        return jit(make_text_function(name, whole, self._scalar.function.__module__, {}))


class _Hoist(ast.NodeTransformer):
    """Replaces the largest expressions that `name_of` has a name for."""

    def __init__(self, name_of: Any) -> None:
        self._name_of = name_of

    def visit(self, node: ast.AST) -> Any:
        """The node, or a name."""
        if isinstance(node, ast.expr):
            name = self._name_of(node)
            if name is not None:
                return ast.Name(name, ast.Load())
        return self.generic_visit(node)


def _source_of(name: str, lines: dict[str, str]) -> str:
    """The name that a name is another one of."""
    while lines.get(name, "").isidentifier():
        name = lines[name]
    return name


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
