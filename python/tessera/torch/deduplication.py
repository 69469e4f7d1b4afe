# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that repeat are compiled once.

Most models are one layer over and over, and most of the time to compile one is Inductor's Python,
which lowers, fuses and generates code for each layer anew. `deduplicate` finds ops that repeat in a
graph of torch's operators. It moves them to a graph of their own, which is called once for each
repetition. The call is torch's `invoke_subgraph`, as for functions marked by
`torch.compiler.nested_compile_region`. Inductor makes one function of the graph:

    permute = permute(w0)                          repeated_0(x, w):
    mm = mm(x, permute)                                mm = mm(x, permute(w))
    gelu = gelu(mm)                                    return gelu(mm)
    permute_1 = permute(w1)          becomes
    mm_1 = mm(gelu, permute_1)                     gelu = repeated_0(x, w0)
    gelu_1 = gelu(mm_1)                            gelu_1 = repeated_0(gelu, w1)

This comes behind all that Inductor does to a graph before it lowers it. By then forward and
backward computation are graphs of their own, with nothing left for autograd.

A repetition: the ops of a graph are a sequence. In a run of period p ops i and i + p are the same
for all i: operator, numbers, and the type, extents, strides and layout of all results. An op's
operand is in the same repetition, at the same place in each of them. Or it comes from outside; then
it is an input, which has the same type, extents and strides for each.

A repetition may begin at any op of the run. No kernel that Inductor fuses can lie in two
repetitions, so one begins where none would (graph_parts.py), usually in front of a matmul. If there
is no such place, the graph stays as it is.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Optional

from tessera.torch.graph_parts import (
    begins_kernel,
    describe_value,
    find_fusible,
    is_plain,
    is_view,
    list_ops,
)
from tessera.torch.outlining import (
    can_be_outlined,
    get_value,
    outline,
    read_operands,
    reads_laid_out,
    reads_what_it_writes,
)

_LEAST_OPS = 8
"""Ops of a repetition that are no views, at least: a call takes a few microseconds of its own."""

_LEAST_SAVED = 24
"""Ops that are not lowered again, at least."""

_MOST_KINDS = 8
"""Different repetitions in one graph."""

_MOST_PERIODS = 32
"""The distances between equal ops that are tried, the most frequent first."""

_MOST_RUNS = 4
"""Runs that are tried, those first that save most."""

_NAME = "repeated"


def deduplicate(graph_module: Any) -> int:
    """Outlines repeated parts of a graph into subgraphs, which the graph calls. Returns the number
    of ops that need not be lowered. The results are the same."""
    saved = 0
    numbers = _Numbers()
    for _ in range(_MOST_KINDS):
        repetitions = _find_repetitions(graph_module.graph, numbers)
        if not repetitions:
            break
        outline(graph_module, repetitions, _NAME)
        saved += (len(repetitions) - 1) * len(repetitions[0])
    return saved


# ----------------------------------------------------------------------------------------------
# What is the same
# ----------------------------------------------------------------------------------------------


def _describe_argument(argument: Any) -> Optional[Hashable]:
    """An argument, whatever nodes it names; None for what cannot be compared."""
    import torch

    if isinstance(argument, torch.fx.Node):
        return "node"
    if isinstance(argument, (tuple, list)):
        parts = tuple(_describe_argument(part) for part in argument)
        return None if None in parts else parts
    plain = (bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format)
    if argument is None or type(argument) in plain:
        return (type(argument), repr(argument))  # 0.0 is not -0.0, and NaN is NaN
    return None


def _describe(node: Any) -> Optional[Hashable]:
    """A key that is equal for nodes that are the same; None for a node that stays where it is."""
    if node.op != "call_function" or node.meta.get("val") is None or not is_plain(node):
        return None
    value = (describe_value(node.meta["val"]), describe_value(get_value(node)))
    arguments = _describe_argument((*node.args, *itertools.chain(*sorted(node.kwargs.items()))))
    return None if None in (*value, arguments) else (node.target, value, arguments)


class _Numbers:
    """A number for each node, the same one for the same description. Descriptions do not change while
    nodes are replaced by others, since they leave out which nodes are read."""

    def __init__(self) -> None:
        self._of_nodes: dict[Any, int] = {}
        self._of_descriptions: dict[Hashable, int] = {}
        self._alone = itertools.count(-1, -1)

    def get(self, node: Any) -> int:
        if node not in self._of_nodes:
            description = _describe(node)
            self._of_nodes[node] = (
                next(self._alone)
                if description is None
                else self._of_descriptions.setdefault(description, len(self._of_descriptions))
            )
        return self._of_nodes[node]


# ----------------------------------------------------------------------------------------------
# What repeats
# ----------------------------------------------------------------------------------------------


def _find_runs(numbers: Sequence[int], count: Sequence[bool]) -> list[tuple[int, int, int]]:
    """Runs of equal numbers, those first that save most: where one begins, its period p, and how
    many numbers from there on are equal to those p places further. Enough of a period `count`."""
    last: dict[int, int] = {}
    distances: Counter[int] = Counter()
    for place, number in enumerate(numbers):
        if number in last:
            distances[place - last[number]] += 1
        last[number] = place
    runs = []
    for period, _ in distances.most_common(_MOST_PERIODS):
        begin = 0
        for place in range(len(numbers) - period + 1):
            if place + period < len(numbers) and numbers[place] == numbers[place + period]:
                continue
            length = place - begin
            if length // period * period >= _LEAST_SAVED:
                if sum(count[begin : begin + period]) >= _LEAST_OPS:
                    runs.append((begin, period, length))
            begin = place + 1
    return sorted(runs, key=lambda run: -(run[2] // run[1] * run[1]))


def _find_repetitions(graph: Any, numbers: _Numbers) -> list[list[Any]]:
    """The nodes of each repetition of what saves most; none if nothing does."""
    nodes = list_ops(graph)
    runs = _find_runs(list(map(numbers.get, nodes)), [not is_view(node) for node in nodes])
    for begin, period, length in runs[:_MOST_RUNS]:
        if repetitions := _divide(nodes[begin : begin + length + period], period):
            return repetitions
    return []


def _divide(nodes: list[Any], period: int) -> list[list[Any]]:
    """The repetitions of a run, as many as save most; none where these would cut fused kernels."""
    best: list[list[Any]] = []
    fusible = list(find_fusible(nodes))
    for first in range(min(period, len(nodes) - 2 * period + 1)):
        if first != 0 and not begins_kernel(nodes, first):
            continue
        if any((a - first) // period != (b - first) // period for a, b in fusible):
            continue
        begins = range(first, len(nodes) - period + 1, period)
        if len(begins) <= len(best):
            break
        repetitions = _keep_same([nodes[place : place + period] for place in begins])
        if (len(repetitions) - 1) * period >= _LEAST_SAVED and len(repetitions) > len(best):
            best = repetitions
    return best


def _keep_same(repetitions: Sequence[list[Any]]) -> list[list[Any]]:
    """The longest part of a run whose repetitions read the same, tensors of one device."""

    def get_reads(nodes: list[Any]) -> Optional[list[Hashable]]:
        reads, inputs = read_operands(nodes)
        if not can_be_outlined(nodes) or any(map(reads_laid_out, inputs)):
            return None
        return None if reads_what_it_writes(nodes) else reads

    same = [
        list(group)
        for reads, group in itertools.groupby(repetitions, get_reads)
        if reads is not None
    ]
    return max(same, key=len, default=[])
