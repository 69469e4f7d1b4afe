# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outlines ops of a graph into a subgraph, which the graph calls.

The call is torch's `invoke_subgraph`, as for functions that `torch.compiler.nested_compile_region`
marks. Inductor makes a function of the subgraph (lowering.py).

Results. Inductor assumes that each result has its own memory. So views are recomputed where they
are read, and `copy_shared_results` (lowering.py) copies other results that share memory, such as a
conversion to the operand's own type.

Layouts. In a graph with convolutions, Inductor may choose channels last for images, and for all
tensors computed from or for them. Here the choice is made once for the whole graph
(`choose_layouts`). The inputs and results of an outlined graph have that layout; otherwise, each
call would transpose its images twice.

Updates. The running statistics of a normalisation are an input that is written again at the graph's
end. Such a write is moved next to its value (`move_updates`), so that the kernel that computes it
can do the write. The call lists the inputs that it writes.
"""

from __future__ import annotations

import itertools
import operator
import types
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from tessera.torch.graph_parts import describe_value, is_seed, is_update, is_view

OUTLINED = "tessera_outlined"
"""In the `meta` of a graph of this kind: the numbers of its inputs that it writes to."""

CHANNELS_LAST = "tessera_channels_last"
"""In the `meta` of a graph: whether Inductor has convolutions with channels last in it. In that of a
node: a tensor like its value, if that is to have channels last."""


def choose_layouts(graph_module: Any, is_inference: bool) -> None:
    """Decides for a graph what Inductor would decide for each part of it."""
    import torch
    from torch._inductor.graph import GraphLowering

    chosen = GraphLowering.decide_layout_opt(graph_module, is_inference=is_inference)
    graph_module.meta[CHANNELS_LAST] = chosen
    if not chosen:
        return
    graph = types.SimpleNamespace(module=graph_module)
    # The order is that of memory, so that strides have to be the ones there will be.
    by_strides = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_scatter.default)
    laid_out: dict[Hashable, Any] = {}  # to make a fake tensor takes longer than all else here
    for node in GraphLowering.find_nodes_prefer_channels_last(graph):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or value.dim() != 4:
            continue
        description = describe_value(value)
        if description is None or any(user.target in by_strides for user in node.users):
            continue
        if torch._prims_common.is_non_overlapping_and_dense_or_false(value):
            if description not in laid_out:
                last = torch.empty_like(value, memory_format=torch.channels_last)
                laid_out[description] = last
            node.meta[CHANNELS_LAST] = laid_out[description]


def get_value(node: Any) -> Any:
    """A tensor, which is fake, like what there is in memory of an op's result between graphs."""
    value = node.meta.get(CHANNELS_LAST)
    return node.meta.get("val") if value is None else value


def reads_laid_out(node: Any) -> bool:
    """True if it is a view of what is laid out otherwise than its own strides say."""
    while is_view(node) and CHANNELS_LAST not in node.meta:
        node = node.args[0]
        if CHANNELS_LAST in node.meta:
            return True
    return False


def reads_what_it_writes(nodes: Sequence[Any]) -> bool:
    """True if ops write an input of the graph, and read it as a view from outside, too."""
    written = {node.args[0] for node in nodes if is_update(node)}
    for operand in read_operands(nodes)[1] if written else ():
        base = operand
        while is_view(base):
            base = base.args[0]
        if base in written and base is not operand:
            return True
    return False


def move_updates(graph: Any) -> None:
    """Moves writes to inputs of a graph in front of all that need not be computed before them."""
    from tessera.torch.written_views import find_root, find_written

    places = {node: place for place, node in enumerate(graph.nodes)}
    changed = find_written(graph)
    for node in [node for node in graph.nodes if is_update(node)]:
        written, value = node.args
        if find_root(value) in changed:
            continue  # by a kernel, after it was made
        readers = [user for user in written.users if user is not node]
        # Updates may have been moved, so that where they were says nothing.
        if any(is_view(x) or is_update(x) or x.op == "output" for x in readers):
            continue
        last = max((value, *readers), key=places.__getitem__)
        if last.op == "call_function":
            last.append(node)


def _walk(argument: Any) -> Iterator[Any]:
    """The nodes in an argument, in order, as often as they are there."""
    import torch

    if isinstance(argument, torch.fx.Node):
        yield argument
    elif isinstance(argument, dict):
        for _, part in sorted(argument.items()):
            yield from _walk(part)
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from _walk(part)


def read_operands(nodes: Sequence[Any]) -> tuple[list[Hashable], list[Any]]:
    """The operands of a repetition's ops, in order. An op of the repetition is given by its place,
    a value from outside by a number and a description. And what has these numbers."""
    places = {node: place for place, node in enumerate(nodes)}
    numbers: dict[Any, int] = {}
    reads: list[Hashable] = []
    for node in nodes:
        for operand in _walk((node.args, node.kwargs)):
            if operand in places:
                reads.append(places[operand])
            else:
                number = numbers.setdefault(operand, len(numbers))
                reads.append((number, describe_value(get_value(operand))))
    return reads, list(numbers)


def can_be_outlined(nodes: list[Any]) -> bool:
    """True if ops read and give tensors of one device, whose extents are plain numbers, and nothing
    else. A graph without results that only writes cannot be called."""
    import torch

    results = [nodes[place] for place in find_results([nodes])]
    inputs = read_operands(nodes)[1]
    values = [get_value(node) for node in (*inputs, *results)]
    if not (inputs and results and all(isinstance(value, torch.Tensor) for value in values)):
        return False
    if None in map(describe_value, values):
        return False
    values += [node.meta["val"] for node in nodes]
    return len({value.device for value in values if isinstance(value, torch.Tensor)}) == 1


def outline(graph_module: Any, repetitions: Sequence[list[Any]], prefix: str) -> None:
    """Makes a graph of a repetition, whose name begins with `prefix`, and a call of each."""
    import torch

    results = find_results(repetitions)
    name = next(
        name
        for name in map(f"{prefix}_{{}}".format, itertools.count())
        if not hasattr(graph_module, name)
    )
    graph_module.add_submodule(name, _make_graph(graph_module, repetitions[0], results))
    graph = graph_module.graph
    removed = set(itertools.chain(*repetitions))
    made: dict[Any, Any] = {}
    users: dict[Any, None] = {}
    for nodes in repetitions:
        with graph.inserting_before(nodes[-1].next):
            operands = [
                _take_seed(graph, operand) if is_seed(operand) else made.get(operand, operand)
                for operand in read_operands(nodes)[1]
            ]
            call = graph.call_function(
                torch.ops.higher_order.invoke_subgraph, (graph.get_attr(name), name, *operands)
            )
            # Strides that operands are brought to: those that the first repetition reads.
            values = tuple(get_value(operand) for operand in operands)
            call.meta["eager_input_vals"] = ((None, None, *values), {})
            call.meta["val"] = tuple(get_value(nodes[place]) for place in results)
            for number, place in enumerate(results):
                made[nodes[place]] = graph.call_function(operator.getitem, (call, number))
                made[nodes[place]].meta["val"] = get_value(nodes[place])
            inside = set(nodes)
            for node in nodes:
                if not inside.issuperset(node.users):
                    users.update((user, None) for user in node.users if user not in removed)
                    _make_again(graph, node, inside, made)
    for user in users:
        user.args, user.kwargs = torch.fx.node.map_arg(
            (user.args, user.kwargs), lambda node: made.get(node, node)
        )
    for node in reversed([node for nodes in repetitions for node in nodes]):
        graph.erase_node(node)


def _take_seed(graph: Any, node: Any) -> Any:
    """A seed as a view of all of them, for which there is no kernel."""
    import torch

    seed = graph.call_function(torch.ops.aten.select.int, (node.args[0], 0, node.args[1]))
    seed.meta["val"] = node.meta["val"]
    return seed


def find_results(repetitions: Sequence[list[Any]]) -> list[int]:
    """The places of ops whose results, or views of them, are read outside of any repetition."""
    results: set[int] = set()
    for nodes in repetitions:
        places = {node: place for place, node in enumerate(nodes)}
        for node in nodes:
            if all(user in places for user in node.users):
                continue
            while node in places and is_view(node):
                node = node.args[0]
            if node in places:
                results.add(places[node])
    return sorted(results)


def _make_again(graph: Any, node: Any, inside: set[Any], made: dict[Any, Any]) -> Any:
    """The node that replaces this one outside of repetitions: a result of one, or a view of such a
    node."""
    if node in inside and node not in made:
        base = _make_again(graph, node.args[0], inside, made)
        made[node] = graph.node_copy(node, lambda _: base)
    return made.get(node, node)


def _make_graph(graph_module: Any, nodes: Sequence[Any], results: Sequence[int]) -> Any:
    """The graph of a repetition, which gives the results of the ops at these places."""
    import torch
    from torch._inductor.compile_fx import record_original_output_strides
    from torch.fx._lazy_graph_module import _make_graph_module

    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    operands = read_operands(nodes)[1]
    for number, operand in enumerate(operands):
        copies[operand] = graph.placeholder(f"input_{number}")
        copies[operand].meta["val"] = get_value(operand)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    for place in results:
        copies[nodes[place]].meta["val"] = get_value(nodes[place])
    output = graph.output(tuple(copies[nodes[place]] for place in results))
    # As Inductor has it of such graphs: they keep to the strides that they had.
    output.meta["user_visible_output_idxs"] = list(range(len(results)))
    # Which has no function of Python's made until that is called, which it never is.
    module = _make_graph_module(graph_module, graph)
    updated = {node.args[0] for node in nodes if is_update(node)}
    module.meta[OUTLINED] = [n for n, operand in enumerate(operands) if operand in updated]
    module.meta[CHANNELS_LAST] = graph_module.meta.get(CHANNELS_LAST, False)
    record_original_output_strides(module)
    return module
