# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of elementwise operators in graphs of Dynamo: each becomes one operator, whose kernel computes
it, and whose derivative is one kernel, too.

The pass runs on the graph before autograd. A chain has arrays of one type of floats, as one of
`tessera.fuse` does. Its calls lie between two operations that may write to an array, or change a mode
of torch. No result of the chain may be needed by another operation that the chain itself needs.
Calls are joined in order. The strides of results have to stay, and the chain has to have a derivative
where one may be asked for. If it does not, its calls stay as they were.
"""

from __future__ import annotations

import operator
import sys
from typing import Any, Iterator, NamedTuple, Optional, Sequence

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from tessera.calls.elements import MAX_ARRAYS, MAX_CALLS, MAX_RESULTS
from tessera.calls.plans import NUMBERS, Operator
from tessera.errors import TesseraError
from tessera.torch import elementwise, graph_pass, recipes
from tessera.torch.attention_masks import _may_change_arguments as may_change_arguments

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class _Value(NamedTuple):
    """A result of a call in the graph."""

    node: Any
    """The one that has the value: the call, or an item of it."""
    example: Any


class _Call:
    """A call of an elementwise operator that may be joined with others."""

    def __init__(self, node: Any, op: Any, results: dict[int, _Value], epoch: int) -> None:
        self.node, self.op, self.results, self.epoch = node, op, results, epoch
        self.example = next(iter(results.values())).example

    @property
    def arrays(self) -> Sequence[Any]:
        """The nodes of the arrays, which change as other chains are joined."""
        return self.node.args[0]  # type: ignore[no-any-return]

    def args(self) -> Iterator[tuple[str, Any]]:
        """The kind and the node or number of each argument."""
        arrays, numbers = iter(self.arrays), iter(self.node.args[1])
        for kind in self.node.args[2]:
            yield kind, next(arrays if kind in "az" else numbers)


class _Chain:
    """Calls that become one."""

    def __init__(self, calls: Sequence[_Call], needs: frozenset[int]) -> None:
        self.calls = list(calls)
        self.needs = needs
        """The calls, by number, that arguments from outside depend on."""


def prepare_operator(op: Operator) -> bool:
    """Makes torch's operator of `op`, and has Inductor join chains, if it is loaded. True."""
    graph_pass.install()
    return elementwise.prepare_operator(op)


def _join_unless_draws_move(graph: Any) -> None:
    # Users of early results move behind the chain, and so may draws, which then would be others.
    if not sys.modules["torch._inductor.config"].fallback_random:
        join_chains(graph)


graph_pass.steps.append(_join_unless_draws_move)


def join_chains(graph: Any) -> int:
    """Makes one operator of each chain in a graph. Returns how many chains there were."""
    if not any(str(getattr(node.target, "name", str)()) in recipes.users for node in _calls(graph)):
        return 0
    count = 0
    for chain in _find(graph):
        count += _Joining(graph, chain).apply()
    return count


def _calls(graph: Any) -> Iterator[Any]:
    return (
        node
        for node in graph.nodes
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    )


def _example(node: Any) -> Any:
    return node.meta.get("example_value")


def _find(graph: Any) -> list[_Chain]:
    """The chains of at least two calls."""
    found: dict[int, _Chain] = {}
    """By the number of each call."""
    number_of: dict[Any, int] = {}
    """Of nodes that are results of a call."""
    needs: dict[Any, frozenset[int]] = {}
    """The calls that each node depends on."""
    epoch = count = 0
    for node in graph.nodes:
        needed: frozenset[int] = frozenset().union(
            *(needs[each] | _own(number_of, each) for each in node.all_input_nodes)
        )
        needs[node] = needed
        if node.op not in ("call_function", "call_method"):
            epoch += node.op == "call_module"
            continue
        if node.target is operator.getitem and node.args[0] in number_of:
            number_of[node] = number_of[node.args[0]]
            continue
        call = _read(node, epoch)
        if call is None:
            epoch += _example(node) is None or may_change_arguments(node)
            continue
        number_of[node] = count
        count += 1
        chain = _Chain([call], needed)
        for each in call.arrays:
            other = found.get(number_of.get(each, -1))
            if other is None or other.calls[0] in chain.calls:
                continue
            joined = _join(chain, other, needs, number_of, found)
            if joined is not None:
                chain = joined
        for each in chain.calls:
            found[number_of[each.node]] = chain
    unique = {id(chain): chain for chain in found.values() if len(chain.calls) > 1}
    return list(unique.values())


def _own(number_of: dict[Any, int], node: Any) -> frozenset[int]:
    return frozenset((number_of[node],)) if node in number_of else frozenset()


def _read(node: Any, epoch: int) -> Optional[_Call]:
    """The call that a node is, if it may be one of a chain."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return None
    op = recipes.users.get(node.target.name())
    if op is None or len(node.args) != 4 or node.kwargs:
        return None
    if not op.can_join:
        return None
    numbers = [type(each) in NUMBERS or isinstance(each, torch.fx.Node) for each in node.args[1]]
    if not all(numbers):
        return None
    results = {}
    if len(op.scalar.results) == 1:
        results[0] = _Value(node, _example(node))
    else:
        for user in node.users:
            if user.target is not operator.getitem or user.args[1] in results:
                return None
            results[user.args[1]] = _Value(user, _example(user))
    tensors = [_example(each) for each in node.args[0]] + [
        each.example for each in results.values()
    ]
    if not results or not all(isinstance(each, torch.Tensor) for each in tensors):
        return None
    first = tensors[0]
    if first.dtype not in _FLOATS or any(
        (each.dtype, each.device) != (first.dtype, first.device) for each in tensors
    ):
        return None
    if op.derivative is not None and any(each.example.requires_grad for each in results.values()):
        return None  # which is not that of the text
    return _Call(node, op, results, epoch)


def _join(
    chain: _Chain,
    other: _Chain,
    needs: dict[Any, frozenset[int]],
    number_of: dict[Any, int],
    found: dict[int, _Chain],
) -> Optional[_Chain]:
    """The chain of both, `other` before `chain`, or None if they stay apart."""
    members = [*other.calls, *chain.calls]
    last = chain.calls[-1]
    first = members[0]
    if any(
        (each.epoch, each.example.dtype) != (last.epoch, first.example.dtype) for each in members
    ):
        return None
    if len(members) > MAX_CALLS:
        return None
    numbers = {number_of[each.node] for each in members}
    inside = {value.node for each in members for value in each.results.values()}
    inside.update(each.node for each in members)
    arrays = dict.fromkeys(each for call in members for each in call.arrays if each not in inside)
    if len(arrays) > MAX_ARRAYS:
        return None
    outside: frozenset[int] = frozenset().union(
        *(needs[each] | _own(number_of, each) for each in arrays)
    )
    if _all_needed(outside, number_of, found) & numbers:
        return None  # an operation in between needs a result of the chain
    results = [value for call in members for value in _needed(call, inside)]
    if len(results) > MAX_RESULTS or any(
        not _are_equal(each.example.shape, last.example.shape)
        # One operator's results have a gradient all or none.
        or each.example.requires_grad != results[0].example.requires_grad
        for each in results
    ):
        return None
    return _Chain(sorted(members, key=lambda each: number_of[each.node]), outside)


def _all_needed(
    numbers: frozenset[int], number_of: dict[Any, int], found: dict[int, _Chain]
) -> set[int]:
    """The calls that these depend on as the chains are now, these included."""
    result: set[int] = set()
    left = set(numbers)
    while left:
        number = left.pop()
        if number in result:
            continue
        result.add(number)
        chain = found.get(number)
        if chain is not None:
            left.update(chain.needs, (number_of[each.node] for each in chain.calls))
    return result


def _are_equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """True if two lists of extents are equal for certain. Guards on none that change."""
    return len(one) == len(other) and all(
        statically_known_true(first == second) for first, second in zip(one, other)
    )


def _needed(call: _Call, inside: set[Any]) -> list[_Value]:
    """The results of a call that something outside of its chain uses, or nothing at all yet."""
    return [
        value
        for value in call.results.values()
        if not value.node.users or any(user not in inside for user in value.node.users)
    ]


class _Joining:
    """The one call that a chain becomes."""

    def __init__(self, graph: Any, chain: _Chain) -> None:
        self._graph, self._calls = graph, chain.calls
        self._arrays: list[Any] = []
        self._numbers: list[Any] = []
        self._array_kinds = ""
        self._number_kinds = ""
        self._names: dict[Any, str] = {}
        self._inside = {call.node for call in chain.calls}
        self._inside.update(value.node for call in chain.calls for value in call.results.values())

    def apply(self) -> bool:
        """Replaces the calls. False if they stay."""
        made = []
        for at, call in enumerate(self._calls):
            args = tuple(self._name(kind, value) for kind, value in call.args())
            made.append(recipes.Call(elementwise.recipe_of(call.op), args))
            for place, value in call.results.items():
                self._names[value.node] = f"t{at}_{place}"
        results = [value for call in self._calls for value in _needed(call, self._inside)]
        results = [value for value in results if value.node.users]
        if not 0 < len(results) <= MAX_RESULTS:
            return False
        names = [self._names[each.node] for each in results]
        sizes = len(self._arrays), len(self._numbers)
        recipe = recipes.chain_recipe(made, names, *sizes)
        kinds = self._array_kinds + self._number_kinds
        if not self._fits(recipe, kinds, results):
            return False
        self._replace(recipe, kinds, results)
        return True

    def _name(self, kind: str, value: Any) -> str:
        if kind not in "az":
            self._numbers.append(value)
            self._number_kinds += kind
            return f"n{len(self._numbers) - 1}"
        if value not in self._names:
            self._names[value] = f"x{len(self._arrays)}"
            self._arrays.append(value)
            self._array_kinds += kind
        return self._names[value]

    def _fits(self, recipe: str, kinds: str, results: Sequence[_Value]) -> bool:
        """True if the joined operator returns what the calls do, and has a derivative if they do."""
        examples = [_example(each) for each in self._arrays]
        numbers = [
            _example(each) if isinstance(each, torch.fx.Node) else each for each in self._numbers
        ]
        try:
            op = recipes.find(recipe, elementwise.gradient)
            wanted = tuple(each.requires_grad for each in examples)
            if any(each.example.requires_grad for each in results):
                elementwise.gradient(op, wanted + (False,) * len(numbers))
            mode = next((each.fake_mode for each in examples if hasattr(each, "fake_mode")), None)
            if mode is None:
                return False
            with mode, torch.no_grad():
                arguments = elementwise.unpacked(examples, numbers, kinds, "[]")
                found = elementwise.make_fake(op, *arguments)
        except TesseraError:
            return False
        return all(
            _are_equal(each.shape, value.example.shape)
            and _are_equal(each.stride(), value.example.stride())
            and (each.dtype, each.device) == (value.example.dtype, value.example.device)
            for each, value in zip(found if isinstance(found, tuple) else (found,), results)
        )

    def _replace(self, recipe: str, kinds: str, results: Sequence[_Value]) -> None:
        graph = self._graph
        own = {call.node for call in self._calls}
        first, *_, last = [node for node in graph.nodes if node in own]
        arguments = (list(self._arrays), list(self._numbers), kinds, "[]", recipe)
        with graph.inserting_before(last):
            joined = graph.call_function(recipes.overload(), arguments)
            joined.meta.update(stack_trace=last.meta.get("stack_trace"))
            joined.meta["example_value"] = [each.example for each in results]
            end = joined
            for at, value in enumerate(results):
                item = graph.call_function(operator.getitem, (joined, at))
                item.meta.update(value.node.meta)
                value.node.replace_all_uses_with(item)
                end = item
        # Users of an early result stand before the joined call.
        late: set[Any] = set()
        node = first
        while node is not joined:
            following = node.next
            inputs = node.all_input_nodes
            if node not in self._inside and any(
                each in late or each is joined or (each.args and each.args[0] is joined)
                for each in inputs
            ):
                late.add(node)
                end.append(node)
                end = node
            node = following
        for call in reversed(self._calls):
            for value in call.results.values():
                if value.node is not call.node:
                    graph.erase_node(value.node)
            graph.erase_node(call.node)
