# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph is divided into parts that are compiled at the same time.

Inductor lowers, fuses and generates code in Python, one op after the other, which is most of the
time to compile a model. `divide` puts parts of a graph into graphs of their own, for
which lowering.py has several processes do that.

A part is a run of ops that can be outlined. It is cut where no kernel that Inductor fuses would
have ops on both sides (graph_parts.py). So the kernels are the same as without a cut. Parts are as
long as each other, as far as there are such places. How many there are does not depend on the
machine, so that the same graph is the same code everywhere, which Inductor's caches count on.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from tessera.torch.graph_parts import (
    begins_kernel,
    describe_value,
    find_fusible,
    is_plain,
    is_seed,
    is_view,
    list_ops,
)
from tessera.torch.outlining import can_be_outlined, outline, read_operands

_LEAST_OPS = 32
"""Ops of a part that are no views, at least: each call of one costs a few microseconds."""

_ENOUGH_OPS = 64
"""Ops of a part that is not made shorter, however many processes there are: one takes tens of
milliseconds to begin."""

_MOST_PARTS = 12
"""Parts of a graph, about."""

_NAME = "part"


def divide(graph_module: Any) -> int:
    """Outlines parts of a graph into subgraphs, which the graph calls. Returns their number. The
    results are the same."""
    runs = list(_find_runs(graph_module.graph))
    ops = sum(not is_view(node) for nodes in runs for node in nodes)
    length = max(_ENOUGH_OPS, ops // _MOST_PARTS)
    parts = [part for nodes in runs for part in _cut(nodes, length)]
    parts = [part for part in parts if can_be_outlined(part)]
    if sum(not is_view(node) for part in parts for node in part) < 2 * _ENOUGH_OPS:
        return 0
    for part in parts:
        outline(graph_module, [_copy_views(graph_module.graph, part)], _NAME)
    for node in reversed(graph_module.graph.nodes):
        if node.op == "call_function" and not node.users and is_view(node):
            graph_module.graph.erase_node(node)
    return len(parts)


def _find_runs(graph: Any) -> Iterator[list[Any]]:
    """Ops that follow each other in a graph and can be outlined."""
    nodes = [node for node in list_ops(graph) if not _is_result_of_call(node)]
    for can_be, run in itertools.groupby(nodes, _is_divisible):
        if can_be:
            yield list(run)


def _is_result_of_call(node: Any) -> bool:
    """True if it is one result of a graph that is called."""
    import torch

    hop = torch._ops.HigherOrderOperator
    return node.target is operator.getitem and isinstance(node.args[0].target, hop)


def _is_divisible(node: Any) -> bool:
    if node.op != "call_function" or node.meta.get("val") is None or not is_plain(node):
        return False
    return describe_value(node.meta["val"]) is not None


def _cut(nodes: Sequence[Any], length: int) -> list[list[Any]]:
    """A run in parts of at least so many ops each that are no views, the last one of `_LEAST_OPS`;
    none where it is shorter."""
    crossed = set[int]()
    for one, other in find_fusible(nodes):
        crossed.update(range(min(one, other) + 1, max(one, other) + 1))
    parts: list[list[Any]] = [[]]
    count = 0
    for place, node in enumerate(nodes):
        if count >= length and place not in crossed and begins_kernel(nodes, place):
            parts.append([])
            count = 0
        parts[-1].append(node)
        count += not is_view(node)
    if count < _LEAST_OPS:
        last = parts.pop()
        if parts:
            parts[-1] += last
    return parts


def _copy_views(graph: Any, nodes: list[Any]) -> list[Any]:
    """Copies the views of other parts' results into a part, so that the viewed tensors are passed,
    in any layout."""
    copies: dict[Any, Any] = {}
    for operand in read_operands(nodes)[1]:
        _copy_view(graph, operand, nodes[0], copies)
    for node in nodes:
        for operand in node.all_input_nodes:
            if operand in copies and copies[operand] is not operand:
                node.replace_input_with(operand, copies[operand])
    return [copy for view, copy in copies.items() if copy is not view] + nodes


def _copy_view(graph: Any, node: Any, before: Any, copies: dict[Any, Any]) -> Any:
    """A copy of a view of an op's result; any other node as it is."""
    if node not in copies:
        if node.op != "call_function" or is_seed(node) or not is_view(node):
            copies[node] = node
        else:
            base = _copy_view(graph, node.args[0], before, copies)
            with graph.inserting_before(before):
                copies[node] = graph.node_copy(node, lambda _: base)
    return copies[node]
