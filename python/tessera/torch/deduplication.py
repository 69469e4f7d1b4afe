# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that repeat are compiled once.

Most models are one layer over and over, and most of the time to compile one is Inductor's Python,
which lowers, fuses and generates code for each layer anew. `deduplicate` finds what repeats in a
graph of torch's operators and puts it into a graph of its own, which is called once for each time
(torch's `invoke_subgraph`, as for functions marked by `torch.compiler.nested_compile_region`);
Inductor makes one function of it:

    permute = permute(w0)                          repeated_0(x, w):
    mm = mm(x, permute)                                mm = mm(x, permute(w))
    gelu = gelu(mm)                                    return gelu(mm)
    permute_1 = permute(w1)          becomes
    mm_1 = mm(gelu, permute_1)                     gelu = repeated_0(x, w0)
    gelu_1 = gelu(mm_1)                            gelu_1 = repeated_0(gelu, w1)

This comes behind all that Inductor does to a graph before it lowers it. By then forward and
backward computation are graphs of their own, with nothing left for autograd.

What repeats. The ops of a graph are a sequence. In a run of period p ops i and i + p are the same
for all i: operator, numbers, and the type, extents and strides of all results. What an op reads is
in the same repetition, at the same place in each of them; or it comes from outside, and then it
is an input, of the same type, extents and strides for each.

Where a repetition begins is free, as far as the run goes on. No kernel that Inductor fuses can lie
in two repetitions, so one begins where none would: in front of a kernel that nothing is fused
with, usually a matmul. Where there is no such place nothing is done.

What is left where it is: what writes to its operands, draws random numbers, is not one of torch's
own operators, or has results whose extents are not plain numbers; and convolutions, for which
Inductor chooses the layouts of all that is around them.

Results. Inductor takes each result of a repetition for memory of its own. So views are made again
where they are read, and `copy_shared_results` copies what is left, such as a conversion to
the type that its operand has.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Optional

from tessera.settings import settings

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
    """Puts what repeats in a graph into graphs of its own, which it calls; returns how many ops need
    not be lowered. The graph computes the same."""
    saved = 0
    for _ in range(_MOST_KINDS):
        repetitions = _find_repetitions(graph_module.graph)
        if not repetitions:
            break
        _outline(graph_module, repetitions)
        saved += (len(repetitions) - 1) * len(repetitions[0])
    return saved


def deduplicate_before_lowering() -> None:
    """Has Inductor do so to each graph that it makes kernels of Tessera's of, unless the setting
    `deduplicate` is off. Graphs stay whole where Inductor generates C++ or orders communication."""
    from torch._inductor import codecache, compile_fx, config, graph
    from torch._inductor.virtualized import V

    run_passes = compile_fx._recursive_post_grad_passes
    lower_output, initialize = graph.SubgraphLowering.output, graph.SubgraphLowering.__init__
    collect_details = codecache.FxGraphHashDetails.__init__

    def recursive_post_grad_passes(graph_module: Any, *args: Any, **kwargs: Any) -> None:
        run_passes(graph_module, *args, **kwargs)
        is_ours = config.cpu_backend == "triton" and settings.deduplicate
        is_whole = config.cpp_wrapper or V.aot_compilation
        if is_ours and not is_whole and not _has_collectives(graph_module):
            deduplicate(graph_module)

    def output(self: Any, target: Any, args: Any, kwargs: Any) -> None:
        if self.module.meta.get(_NAME):
            args = (copy_shared_results(args[0], self.graph_inputs), *args[1:])
        lower_output(self, target, args, kwargs)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        # Inputs of a backward graph that nobody needs any more, by their numbers there.
        self.bw_donated_idxs = None

    def init_details(self: Any, *args: Any, **kwargs: Any) -> None:
        collect_details(self, *args, **kwargs)
        self.tessera_deduplicates = settings.deduplicate  # a part of the cache's key

    codecache.FxGraphHashDetails.__init__ = init_details
    compile_fx._recursive_post_grad_passes = recursive_post_grad_passes
    graph.SubgraphLowering.output, graph.SubgraphLowering.__init__ = output, init


def _has_collectives(graph_module: Any) -> bool:
    return any(
        getattr(node.target, "namespace", "").startswith(("_c10d", "c10d"))
        for node in graph_module.graph.nodes
    )


def copy_shared_results(results: Sequence[Any], inputs: Any) -> list[Any]:
    """Results of a graph as Inductor has them, with a copy of each that is memory of an input or of
    a result before it."""
    from torch._inductor import ir
    from torch._inductor.lowering import clone

    taken = set(inputs)
    copied = []
    for result in results:
        if isinstance(result, ir.TensorBox):
            result.realize()
            data = result.data
            base = data.unwrap_view() if isinstance(data, ir.BaseView) else data
            name = base.get_name()
            if name in taken:
                result = clone(result)
            taken.add(name)
        copied.append(result)
    return copied


# ----------------------------------------------------------------------------------------------
# What is the same
# ----------------------------------------------------------------------------------------------


def _describe_value(value: Any) -> Optional[Hashable]:
    """What an op gives: of a tensor type, device, extents and strides; None if these are no plain
    numbers."""
    import torch

    if isinstance(value, (tuple, list)):
        parts = tuple(_describe_value(part) for part in value)
        return None if None in parts else parts
    if value is None or type(value) is int:  # of attention: no bias, the longest sequence
        return (type(value), value)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    if not all(type(number) is int for number in (*value.shape, *value.stride())):
        return None
    flags = (value.is_conj(), value.is_neg())
    return (value.dtype, value.device, tuple(value.shape), value.stride(), flags)


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


def _is_plain(node: Any) -> bool:
    """Whether an op computes results of its operands and nothing else."""
    import torch

    target = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target.namespace not in ("aten", "prims"):
        return False
    if target._schema.is_mutable or "convolution" in target.name():
        return False
    if target is torch.ops.prims.inductor_random.default:
        return not getattr(torch._inductor.config, "align_random_eager", False)
    if any(result.alias_info is not None for result in target._schema.returns):
        return _is_view(node)
    return torch.Tag.nondeterministic_seeded not in target.tags or _drops_nothing(node)


def _drops_nothing(node: Any) -> bool:
    """Whether an op draws random numbers for dropout alone, and there is none, as in attention."""
    for number, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[number] if number < len(node.args) else argument.default_value
            return bool(node.kwargs.get("dropout_p", given) == 0)
    return False


def _is_seed(node: Any) -> bool:
    """Whether it gives one seed of all; it is needed by what computes random numbers alone."""
    import torch

    return bool(node.target is torch.ops.prims.inductor_lookup_seed.default)


def _is_view(node: Any) -> bool:
    """Whether a result, or each of several, is memory of the only operand."""
    import torch

    if node.target is operator.getitem:
        return _is_view(node.args[0])
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    if len(node.all_input_nodes) != 1 or node.args[0] is not node.all_input_nodes[0]:
        return False
    aten = torch.ops.aten
    # Inductor's graphs have reshapes for views.
    return node.target.overloadpacket in (aten.reshape, aten._unsafe_view) or any(
        result.alias_info is not None for result in node.target._schema.returns
    )


def _describe(node: Any) -> Optional[Hashable]:
    """What two nodes have in common that are the same; None for one that stays where it is."""
    if node.op != "call_function" or node.meta.get("val") is None or not _is_plain(node):
        return None
    value = _describe_value(node.meta["val"])
    arguments = _describe_argument((*node.args, *itertools.chain(*sorted(node.kwargs.items()))))
    return None if value is None or arguments is None else (node.target, value, arguments)


def _describe_all(nodes: Sequence[Any]) -> list[int]:
    """A number for each node, the same one for the same description."""
    numbers: dict[Hashable, int] = {}
    alone = itertools.count(-1, -1)
    result = []
    for node in nodes:
        description = _describe(node)
        if description is None:
            result.append(next(alone))
        else:
            result.append(numbers.setdefault(description, len(numbers)))
    return result


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


def _find_repetitions(graph: Any) -> list[list[Any]]:
    """The nodes of each repetition of what saves most; none if nothing does."""
    others = ("placeholder", "get_attr", "output")
    nodes = [node for node in graph.nodes if node.op not in others and not _is_seed(node)]
    runs = _find_runs(_describe_all(nodes), [not _is_view(node) for node in nodes])
    for begin, period, length in runs[:_MOST_RUNS]:
        if repetitions := _divide(nodes[begin : begin + length + period], period):
            return repetitions
    return []


def _divide(nodes: list[Any], period: int) -> list[list[Any]]:
    """The repetitions of a run, as many as save most; none where these would cut fused kernels."""
    best: list[list[Any]] = []
    fusible = list(_find_fusible(nodes))
    for first in range(min(period, len(nodes) - 2 * period + 1)):
        if first != 0 and not _begins_kernel(nodes, first):
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


def _is_extern(node: Any) -> bool:
    """Whether it is a kernel that nothing is fused with."""
    import torch
    from torch._inductor import lowering

    aten = torch.ops.aten
    matmuls = (aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten._scaled_mm)
    return (
        node.target in lowering.fallbacks or getattr(node.target, "overloadpacket", None) in matmuls
    )


def _begins_kernel(nodes: Sequence[Any], place: int) -> bool:
    """Whether a kernel that nothing is fused with begins here, with the views that it reads."""
    if _is_view(nodes[place]) and _is_view(nodes[place - 1]):
        return False
    while place < len(nodes) and _is_view(nodes[place]):
        place += 1
    return place < len(nodes) and _is_extern(nodes[place])


def _find_fusible(nodes: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """The places of two ops that may be in one kernel: of which one reads what the other gives, or
    that read the same, and between which no kernel lies that nothing is fused with."""
    places = {node: place for place, node in enumerate(nodes)}
    levels: dict[Any, int] = {}
    readers: dict[tuple[Any, int], int] = {}
    for place, node in enumerate(nodes):
        level = 0
        for operand in node.all_input_nodes:
            level = max(level, levels.get(operand, 0) + _is_extern(operand))
        levels[node] = level
        if _is_extern(node) or _is_view(node):
            continue
        for operand in node.all_input_nodes:
            while operand in places and _is_view(operand):
                operand = operand.args[0]
            if operand in places and levels[operand] == level and not _is_extern(operand):
                yield places[operand], place
            other = readers.setdefault((operand, level), place)
            if other != place:
                yield other, place


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


def _read_operands(nodes: Sequence[Any]) -> tuple[list[Hashable], list[Any]]:
    """What the ops of a repetition read, in order: an op of it by its place, and what comes from
    outside by a number and a description. And what has these numbers."""
    places = {node: place for place, node in enumerate(nodes)}
    numbers: dict[Any, int] = {}
    reads: list[Hashable] = []
    for node in nodes:
        for operand in _walk((node.args, node.kwargs)):
            if operand in places:
                reads.append(places[operand])
            else:
                number = numbers.setdefault(operand, len(numbers))
                reads.append((number, _describe_value(operand.meta.get("val"))))
    return reads, list(numbers)


def _keep_same(repetitions: Sequence[list[Any]]) -> list[list[Any]]:
    """The longest part of a run whose repetitions read the same, tensors of one device."""
    import torch

    def get_reads(nodes: list[Any]) -> Optional[list[Hashable]]:
        reads, inputs = _read_operands(nodes)
        inside = set(nodes)
        given = [node for node in nodes if not inside.issuperset(node.users) and not _is_view(node)]
        values = [node.meta.get("val") for node in (*inputs, *given)]
        are_tensors = inputs and all(isinstance(value, torch.Tensor) for value in values)
        if not are_tensors or None in map(_describe_value, values):
            return None
        values += [node.meta["val"] for node in nodes]
        devices = {value.device for value in values if isinstance(value, torch.Tensor)}
        return reads if len(devices) == 1 else None

    same = [
        list(group)
        for reads, group in itertools.groupby(repetitions, get_reads)
        if reads is not None
    ]
    return max(same, key=len, default=[])


# ----------------------------------------------------------------------------------------------
# A graph of its own
# ----------------------------------------------------------------------------------------------


def _outline(graph_module: Any, repetitions: Sequence[list[Any]]) -> None:
    """Makes a graph of a repetition, and a call of each."""
    import torch

    results = _find_results(repetitions)
    name = next(
        name
        for name in map(f"{_NAME}_{{}}".format, itertools.count())
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
                _take_seed(graph, operand) if _is_seed(operand) else made.get(operand, operand)
                for operand in _read_operands(nodes)[1]
            ]
            call = graph.call_function(
                torch.ops.higher_order.invoke_subgraph, (graph.get_attr(name), name, *operands)
            )
            call.meta["val"] = tuple(nodes[place].meta["val"] for place in results)
            for number, place in enumerate(results):
                made[nodes[place]] = graph.call_function(operator.getitem, (call, number))
                made[nodes[place]].meta["val"] = nodes[place].meta["val"]
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


def _find_results(repetitions: Sequence[list[Any]]) -> list[int]:
    """The places of ops whose results, or views of them, are read outside of any repetition."""
    results: set[int] = set()
    for nodes in repetitions:
        places = {node: place for place, node in enumerate(nodes)}
        for node in nodes:
            if all(user in places for user in node.users):
                continue
            while node in places and _is_view(node):
                node = node.args[0]
            if node in places:
                results.add(places[node])
    return sorted(results)


def _make_again(graph: Any, node: Any, inside: set[Any], made: dict[Any, Any]) -> Any:
    """What stands for a node outside of repetitions: a result of one, or a view of what does."""
    if node in inside and node not in made:
        base = _make_again(graph, node.args[0], inside, made)
        made[node] = graph.node_copy(node, lambda _: base)
    return made.get(node, node)


def _make_graph(graph_module: Any, nodes: Sequence[Any], results: Sequence[int]) -> Any:
    """The graph of a repetition, which gives the results of the ops at these places."""
    import torch
    from torch._inductor.compile_fx import record_original_output_strides

    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for number, operand in enumerate(_read_operands(nodes)[1]):
        copies[operand] = graph.placeholder(f"input_{number}")
        copies[operand].meta["val"] = operand.meta["val"]
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    output = graph.output(tuple(copies[nodes[place]] for place in results))
    # As Inductor has it of such graphs: they keep to the strides that they had.
    output.meta["user_visible_output_idxs"] = list(range(len(results)))
    module = torch.fx.GraphModule(graph_module, graph)
    module.meta[_NAME] = True
    record_original_output_strides(module)
    return module
