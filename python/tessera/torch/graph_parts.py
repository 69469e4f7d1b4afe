# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of a graph, and the places where it can be cut.

Before Inductor lowers a graph of torch's operators, deduplication.py (layers that repeat) and
division.py (parts that are compiled at the same time) cut it into smaller graphs. Both move no op
that writes to its operands (`is_update` has exceptions), draws random numbers, or is not one of
torch's own operators. They also move no op with a result whose extents are not plain numbers.

A cut is free if Inductor fuses no kernel across it. That is so in front of a kernel that nothing is
fused with (`begins_kernel`), if no pair of `find_fusible` spans it.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Optional


def list_ops(graph: Any) -> list[Any]:
    """The ops of a graph that may be somewhere else in it; seeds are taken where they are used."""
    others = ("placeholder", "get_attr", "output")
    return [node for node in graph.nodes if node.op not in others and not is_seed(node)]


def describe_value(value: Any) -> Optional[Hashable]:
    """A description of an op's result: type, device, extents, strides and alignment of a tensor.
    None if these are no plain numbers."""
    import torch

    if isinstance(value, (tuple, list)):
        parts = tuple(describe_value(part) for part in value)
        return None if None in parts else parts
    if value is None or type(value) is int:  # of attention: no bias, the longest sequence
        return (type(value), value)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    if not all(type(number) is int for number in (*value.shape, *value.stride())):
        return None
    offset = value.storage_offset()
    if type(offset) is not int:
        return None
    # A GPU's kernels load 16 bytes at once where the first argument that they were made for allows it.
    is_aligned = value.device.type == "cpu" or offset * value.itemsize % 16 == 0
    flags = (value.is_conj(), value.is_neg(), is_aligned)
    return (value.dtype, value.device, tuple(value.shape), value.stride(), flags)


def is_plain(node: Any) -> bool:
    """True if an op computes results of its operands and nothing else."""
    import torch

    target = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target.namespace not in ("aten", "prims"):
        return False
    if is_update(node):
        return True
    if target._schema.is_mutable:
        return False
    if target is torch.ops.prims.inductor_random.default:
        return not getattr(torch._inductor.config, "align_random_eager", False)
    if any(result.alias_info is not None for result in target._schema.returns):
        return is_view(node)
    return torch.Tag.nondeterministic_seeded not in target.tags or drops_nothing(node)


def drops_nothing(node: Any) -> bool:
    """True if an op draws random numbers for dropout alone, and there is none, as in attention."""
    for number, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[number] if number < len(node.args) else argument.default_value
            return bool(node.kwargs.get("dropout_p", given) == 0)
    return False


def is_update(node: Any) -> bool:
    """True if an op writes all of an input of the graph that no later op reads, such as the
    statistics of a normalisation."""
    import torch

    return (
        node.target is torch.ops.aten.copy_.default
        and node.args[0].op == "placeholder"
        and not node.users
        and not node.args[2:]
        and not node.kwargs
    )


def is_seed(node: Any) -> bool:
    """True if it gives one seed of all; it is needed by what computes random numbers alone."""
    import torch

    return bool(node.target is torch.ops.prims.inductor_lookup_seed.default)


def is_view(node: Any) -> bool:
    """True if a result, or each of several, is memory of the only operand."""
    import torch

    if node.target is operator.getitem:
        return is_view(node.args[0])
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    if len(node.all_input_nodes) != 1 or node.args[0] is not node.all_input_nodes[0]:
        return False
    aten = torch.ops.aten
    # Inductor's graphs have reshapes for views.
    return node.target.overloadpacket in (aten.reshape, aten._unsafe_view) or any(
        result.alias_info is not None for result in node.target._schema.returns
    )


def is_extern(node: Any) -> bool:
    """True if it is a kernel that nothing is fused with."""
    import torch
    from torch._inductor import lowering

    aten = torch.ops.aten
    kernels = (aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten._scaled_mm, aten.convolution)
    return (
        node.target in lowering.fallbacks or getattr(node.target, "overloadpacket", None) in kernels
    )


def _adds_bias_behind(node: Any) -> bool:
    """True if what such a kernel gives is changed by another one, with which others are fused."""
    import torch

    if getattr(node.target, "overloadpacket", None) is not torch.ops.aten.convolution:
        return False
    return node.args[2] is not None and node.args[2].meta["val"].device.type != "cpu"


def begins_kernel(nodes: Sequence[Any], place: int) -> bool:
    """True if a kernel that nothing is fused with begins here, with the views that it reads."""
    if is_view(nodes[place]) and is_view(nodes[place - 1]):
        return False
    while place < len(nodes) and is_view(nodes[place]):
        place += 1
    return place < len(nodes) and is_extern(nodes[place])


def find_fusible(nodes: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """The places of two ops that may be in one kernel. One reads the other's result, or both read
    the same value. No kernel that nothing is fused with lies between them."""

    def ends_kernel(node: Any) -> bool:
        return is_extern(node) and not _adds_bias_behind(node)

    places = {node: place for place, node in enumerate(nodes)}
    levels: dict[Any, int] = {}
    readers: dict[tuple[Any, int], int] = {}
    for place, node in enumerate(nodes):
        level = 0
        for operand in node.all_input_nodes:
            level = max(level, levels.get(operand, 0) + ends_kernel(operand))
        levels[node] = level + (is_extern(node) and not ends_kernel(node))
        if is_extern(node) or is_view(node):
            continue
        for operand in node.all_input_nodes:
            while operand in places and is_view(operand):
                operand = operand.args[0]
            if operand in places and levels[operand] == level and not ends_kernel(operand):
                yield places[operand], place
            other = readers.setdefault((operand, level), place)
            if other != place:
                yield other, place
