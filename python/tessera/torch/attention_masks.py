# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks of attention that are constants: where they hold everywhere, or are causal, they go.

Models make their masks of positions (transformers: `arange`, comparisons, `expand`) and leave them
out only if the model is not traced. A traced graph has a mask of all true, or one that says causal
element by element. With it torch takes slower kernels for `scaled_dot_product_attention`, or none:
a mask that is expanded along keys no fused kernel takes, and attention becomes matmuls in float32.
"""

from __future__ import annotations

import operator
from typing import Any, Optional

MOST_BYTES = 1 << 27
"""The limit for a mask and the tensors it is made of: beyond it, compiling would take too long."""

_FUNCTIONS = frozenset(
    """arange ones zeros full ones_like zeros_like full_like tril triu diff where logical_and
    logical_or logical_not logical_xor add sub mul floordiv truediv mod neg and_ or_ xor invert not_
    eq ne lt le gt ge getitem cumsum bitwise_and bitwise_or bitwise_not bitwise_xor
    floor_divide remainder""".split()
)
_METHODS = frozenset(
    """expand expand_as unsqueeze squeeze view reshape transpose permute flatten contiguous clone to
    bool int long cumsum diff new_ones new_zeros new_full eq ne lt le gt ge add sub mul tril triu
    logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor
    masked_fill where repeat and or xor invert""".split()
)
"""Operations whose results depend on nothing but their arguments, and that change none of them."""

_CHANGING_OPERATORS = frozenset(
    """setitem delitem iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub
    itruediv ixor""".split()
)


def simplify_masks(graph_module: Any) -> int:
    """Drops masks of `scaled_dot_product_attention` in a graph of Dynamo's. A mask that is true
    everywhere is dropped; a causal mask of as many keys as queries becomes `is_causal`. Returns how
    many calls were changed."""
    import torch

    attention = torch.nn.functional.scaled_dot_product_attention
    calls = [
        node
        for node in graph_module.graph.nodes
        if node.target is attention and _mask_of(node) is not None
    ]
    if not calls:
        return 0
    values = _constants(graph_module.graph)
    kinds: dict[Any, Optional[str]] = {}
    changed = 0
    for call in calls:
        mask = _mask_of(call)
        if mask not in values or _argument(call, "is_causal", 5):
            continue
        if mask not in kinds:
            kinds[mask] = _kind(values[mask])
        if kinds[mask] is None or not _fits(values[mask], call):
            continue
        if kinds[mask] == "causal" and not _is_square(call):
            continue
        # By name, whatever was by place: query, key and value alone come first in all versions.
        given = dict(zip(("attn_mask", "dropout_p", "is_causal", "scale"), call.args[3:]))
        given.update(call.kwargs)
        given.update(attn_mask=None, is_causal=kinds[mask] == "causal")
        call.args, call.kwargs = call.args[:3], given
        changed += 1
    if changed:
        graph_module.recompile()
    return changed


def _argument(call: Any, name: str, place: int) -> Any:
    return call.args[place] if len(call.args) > place else call.kwargs.get(name)


def _mask_of(call: Any) -> Any:
    return _argument(call, "attn_mask", 3)


def _shape(call: Any, name: str, place: int) -> tuple[Any, ...]:
    """The value of an argument; empty if it is not known."""
    node = _argument(call, name, place)
    return tuple(getattr(getattr(node, "meta", {}).get("example_value"), "shape", ()))


def _fits(mask: Any, call: Any) -> bool:
    """True if the result has the same shape without the mask, which may be of more batches."""
    query, mask_shape = _shape(call, "query", 0), tuple(mask.shape)
    if len(query) < max(2, len(mask_shape)):
        return False
    batches = zip(reversed(mask_shape[:-2]), reversed(query[:-2]))
    return all(size in (1, of_query) for size, of_query in batches)


def _is_square(call: Any) -> bool:
    """True if there are as many keys as queries: causal is said from the first of each."""
    query, key = _shape(call, "query", 0), _shape(call, "key", 1)
    return len(query) >= 2 <= len(key) and isinstance(query[-2], int) and query[-2] == key[-2]


def _kind(mask: Any) -> Optional[str]:
    """ "whole" or "causal", if a mask is one of these."""
    import torch

    if mask.dtype != torch.bool or mask.dim() < 2 or mask.numel() == 0:
        return None
    if bool(mask.all()):
        return "whole"
    rows, columns = mask.shape[-2:]
    if rows == columns and bool((mask == torch.ones(rows, columns, dtype=torch.bool).tril()).all()):
        return "causal"
    return None


def _constants(graph: Any) -> dict[Any, Any]:
    """The tensors of integers and booleans, on the CPU, that a graph computes of nothing but numbers
    in it; none where one may be changed later."""
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    known: dict[Any, Any] = {}
    aliases: set[Any] = set()  # what may share memory with one of these
    with _disable_current_modes(), torch.no_grad():
        for node in graph.nodes:
            inputs = node.all_input_nodes
            if node.op not in ("call_function", "call_method"):
                continue
            touched = [x for x in inputs if x in known or x in aliases]
            if touched and _may_change_arguments(node):
                return {}
            if any(_may_share_memory(node, x) for x in touched):
                aliases.add(node)
            example = node.meta.get("example_value")
            if not (all(x in known for x in inputs) and _is_pure(node) and _is_small(example)):
                continue
            try:
                arguments = _on_cpu(torch.fx.node.map_arg(node.args, known.__getitem__))
                options = _on_cpu(torch.fx.node.map_arg(node.kwargs, known.__getitem__))
                if node.op == "call_method":
                    value = getattr(arguments[0], node.target)(*arguments[1:], **options)
                else:
                    value = node.target(*arguments, **options)
            except Exception:  # then nobody knows
                continue
            same = isinstance(value, torch.Tensor) and value.dtype == example.dtype
            if same and value.shape == example.shape:
                known[node] = value
    return known


def _is_pure(node: Any) -> bool:
    if "out" in node.kwargs:
        return False
    if node.op == "call_method":
        return _plain(node.target) in _METHODS
    return getattr(node.target, "__name__", "") in _FUNCTIONS and _is_of_torch(node.target)


def _plain(method: str) -> str:
    """`eq` of `__eq__`: as a method torch 2.11 has some operators of Python's in its graphs."""
    return method[2:-2] if method.startswith("__") and method.endswith("__") else method


def _is_of_torch(function: Any) -> bool:
    """True if it is an operator of Python's, or a function of torch's."""
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or "torch"  # those in C have none
    return getattr(operator, name, None) is function or module.partition(".")[0] == "torch"


def _may_change_arguments(node: Any) -> bool:
    import torch

    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    if "out" in node.kwargs or node.kwargs.get("inplace"):
        return True
    if node.op == "call_function" and getattr(operator, name, None) is node.target:
        return name in _CHANGING_OPERATORS
    if name.endswith("_") and not name.endswith("__"):
        return True
    if node.op == "call_method":
        return _plain(name) in _CHANGING_OPERATORS
    if isinstance(node.target, torch._ops.OpOverloadPacket):
        overloads = [getattr(node.target, each) for each in node.target.overloads()]
        return any(each._schema.is_mutable for each in overloads)
    if isinstance(node.target, torch._ops.OpOverload):
        return bool(node.target._schema.is_mutable)
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return True  # a user's kernel, for one
    # Functions of nn.functional take `inplace` by place, too.
    return not _is_of_torch(node.target) or any(x is True for x in node.args)


def _may_share_memory(node: Any, argument: Any) -> bool:
    """A view has the type of what it is one of, but for `view(dtype)`."""
    types = [getattr(x.meta.get("example_value"), "dtype", None) for x in (node, argument)]
    return None in types or types[0] == types[1] or node.target == "view"


def _is_small(example: Any) -> bool:
    import torch

    if not isinstance(example, torch.Tensor) or example.dtype.is_floating_point:
        return False
    sizes = list(example.shape)
    if not all(isinstance(size, int) for size in sizes):
        return False
    return bool(example.numel() * example.dtype.itemsize <= MOST_BYTES)


def _on_cpu(value: Any) -> Any:
    """Arguments with another device replaced."""
    import torch

    if isinstance(value, (tuple, list)):
        return type(value)(map(_on_cpu, value))
    if isinstance(value, dict):
        return {key: _on_cpu(item) for key, item in value.items()}
    if isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("cuda")):
        return torch.device("cpu")
    return value
