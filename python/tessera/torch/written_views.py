# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the user's that write through views, within compiled functions.

A graph of torch's has no writes. A kernel that writes to a tensor appears in it as a function that
returns a new tensor. A late pass of Inductor replaces it with a copy and a call that writes to the
copy, unless the old values are not needed. Two things about that are wrong for views:

    y = x + 1
    kernel(y[1:])      # the copy is as_strided(y[1:], ..., 0), of the memory that y[1:] is in;
                       # but Inductor may have put y[1:] into memory of its own
    kernel(y[1:], y[2:])   # each is copied, so that one does not see what is written to the other

So this module makes the copy if a view is written, or if two arguments share memory. It copies the
base tensor of the views, once for all arguments of a call. The call gets views of the copy with the
same offsets and strides.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, cast

import torch
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
from torch._prims_common import compute_required_storage_length
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils import _pytree as pytree

from tessera.errors import ArgumentError, CompilationError

_functional = torch.ops.higher_order.triton_kernel_wrapper_functional
_mutation = torch.ops.higher_order.triton_kernel_wrapper_mutation


def mend_written_views(is_ours: Callable[[], bool]) -> None:
    """Has Inductor's passes copy them so, in graphs for which `is_ours` is true."""
    from torch._inductor.fx_passes import post_grad

    reinplace = post_grad.reinplace_inplaceable_ops
    decompose = post_grad.decompose_triton_kernel_wrapper_functional

    def reinplace_inplaceable_ops(updater: Any, graph: torch.fx.Graph) -> None:
        if is_ours():
            for node in graph.find_nodes(op="call_function", target=_functional):
                _refuse_expanded(node)
            # Before Inductor decides for each argument alone whether it is written in place.
            copy_written(graph, only_shared=True)
        reinplace(updater, graph)

    def decompose_functional(graph: torch.fx.Graph) -> None:
        if is_ours():
            copy_written(graph, only_shared=False)
        decompose(graph)

    post_grad.reinplace_inplaceable_ops = reinplace_inplaceable_ops
    post_grad.decompose_triton_kernel_wrapper_functional = decompose_functional


def _refuse_expanded(node: torch.fx.Node) -> None:
    """Raises ArgumentError (E054) for a kernel that writes to an expanded tensor. Without writes, the
    tensor that was expanded is the sum of all elements of the result, so each old value would be
    counted as often as there are elements."""
    kwargs, written = node.kwargs["kwargs"], node.kwargs["tensors_to_clone"]
    assert isinstance(kwargs, dict) and isinstance(written, (list, tuple))
    for name in written:
        value = getattr(kwargs[name], "meta", {}).get("val")
        if not isinstance(value, torch.Tensor):
            continue
        extents = zip(value.size(), value.stride())
        if any(stride == 0 and not statically_known_true(size <= 1) for size, stride in extents):
            kernel: Any = kernel_side_table.get_kernel(cast(int, node.kwargs["kernel_idx"]))
            while not hasattr(kernel, "__name__"):
                kernel = kernel.fn  # of a tuner
            raise ArgumentError(
                "E054",
                f"argument `{name}` of kernel `{kernel.__name__}` is written in a compiled function, "
                f"and is an expanded tensor, with several elements at one address (shape "
                f"{tuple(value.size())}, strides {tuple(value.stride())})",
                "pass the tensor that was expanded, or a copy: x.contiguous()",
            )


def copy_written(graph: torch.fx.Graph, only_shared: bool) -> None:
    """Replaces calls of kernels in a graph that write to a view, or to memory that another argument
    shares, with calls that write to copies. If `only_shared`, it replaces only calls that write to
    the same memory through two arguments."""
    from torch._inductor.pattern_matcher import (
        CallFunctionVarArgs,
        PatternMatcherPass,
        fwd_only,
        register_graph_pattern,
    )

    plans = {}
    for node in graph.find_nodes(op="call_function", target=_functional):
        plan = find_copies(node, only_shared)
        if plan:
            plans[node] = plan
    if not plans:
        return
    matcher = PatternMatcherPass()

    @register_graph_pattern(  # type: ignore[untyped-decorator]
        CallFunctionVarArgs(_functional),
        extra_check=lambda match: match.nodes[0] in plans,
        pass_dict=matcher,
    )
    def replace(match: Any, *args: Any, **kwargs: Any) -> None:
        node = match.nodes[0]
        plan = plans[node]
        roots = list(plan)
        flat, spec = pytree.tree_flatten((kwargs, roots))
        # torch 2.11 looks up in it each node that the copies are made of. It lacks the roots.
        _, eager_kwargs = node.meta.pop("eager_input_vals", ((), {}))

        def write_to_copies(*flat: Any) -> Any:
            given, values = pytree.tree_unflatten(flat, spec)
            return (_write_to_copies(given, list(zip(values, plan.values()))),)

        def trace(function: Any, values: Any) -> torch.fx.GraphModule:
            made = fwd_only(function, values, run_functional_passes=False)
            for call in made.graph.find_nodes(op="call_function", target=_mutation):
                # Lowering gives the arguments the strides that these values have.
                eager = {name: eager_kwargs[name] for name in call.kwargs if name in eager_kwargs}
                if eager:
                    call.meta["eager_input_vals"] = ((), eager)
            return made

        match.replace_by_example(write_to_copies, flat, trace_fn=trace)

    matcher.apply(graph)


def _write_to_copies(
    arguments: Mapping[str, Any], copies: Sequence[tuple[torch.Tensor, Sequence[str]]]
) -> dict[str, torch.Tensor]:
    """The nodes that replace a call. `copies` has tensors, each with the names of the kernel's
    arguments that are views of it and become views of its copy."""
    arguments = dict(arguments)
    written = arguments.pop("tensors_to_clone")
    kwargs = dict(arguments.pop("kwargs"))
    done = set()
    for root, names in copies:
        offsets = [_offset_in(root, kwargs[name]) for name in names]
        length: Any = 0
        for name, offset in zip(names, offsets):
            view = kwargs[name]
            end = compute_required_storage_length(view.size(), view.stride(), offset)
            length = torch.sym_max(length, end)
        # Without an offset: that of an argument of the graph not all versions of Inductor know.
        copy = torch.as_strided(root, (length,), (1,)).clone()
        for name, offset in zip(names, offsets):
            view = kwargs[name]
            whole = copy if copy.dtype == view.dtype else copy.view(view.dtype)
            kwargs[name] = torch.as_strided(whole, view.size(), view.stride(), offset)
            done.add(name)
    from torch._prims_common import clone_preserve_strides

    for name in written:
        if name not in done:
            kwargs[name] = clone_preserve_strides(kwargs[name])
    # The functional call has more arguments, such as `tensor_bases` of torch 2.15: how to copy.
    known = inspect.signature(type(_mutation).__call__).parameters
    rest = {name: value for name, value in arguments.items() if name in known}
    _mutation(kwargs=kwargs, **rest)
    return {name: kwargs[name] for name in written}


def find_copies(node: torch.fx.Node, only_shared: bool) -> dict[torch.fx.Node, list[str]]:
    """The tensors that have to be copied for a call, each with the arguments that are views of it."""
    kwargs = node.kwargs["kwargs"]
    written = node.kwargs["tensors_to_clone"]
    assert isinstance(kwargs, dict) and isinstance(written, (list, tuple))
    by_root: dict[torch.fx.Node, list[str]] = {}
    for name, value in kwargs.items():
        if isinstance(value, torch.fx.Node) and isinstance(value.meta.get("val"), torch.Tensor):
            by_root.setdefault(find_root(value), []).append(name)
    result = {}
    for root, names in by_root.items():
        count = sum(name in written for name in names)
        if count == 0 or only_shared and count < 2:
            continue
        is_plain = len(names) == 1 and kwargs[names[0]] is root
        if is_plain and statically_known_true(root.meta["val"].storage_offset() == 0):
            continue
        for name in sorted(names, key=lambda name: name not in written):
            if not _has_items_of(kwargs[name], root):
                raise _refusal(node, name)
        # Which alone may leave the tensor; Inductor knows what these mean.
        strided = [kwargs[name] for name in names if _is_strided_by_hand(kwargs[name], root)]
        if all(_lies_within(view.meta["val"], root.meta["val"]) for view in strided):
            result[root] = names
    return result


def _has_items_of(view: torch.fx.Node, root: torch.fx.Node) -> bool:
    """True if elements have the size of those of the tensor, so that offsets can be compared."""
    types = [node.meta["val"].dtype for node in (view, root)]
    return types[0] is types[1] or (
        types[0].itemsize == types[1].itemsize and not any(kind.is_complex for kind in types)
    )


def _lies_within(view: torch.Tensor, root: torch.Tensor) -> bool:
    """True if a view is known to be in the memory from a tensor's first element to its last."""
    offset = _offset_in(root, view)
    end = compute_required_storage_length(root.size(), root.stride(), 0)
    last = compute_required_storage_length(view.size(), view.stride(), offset)
    return bool(statically_known_true(offset >= 0) and statically_known_true(last <= end))


def _offset_in(root: torch.Tensor, view: torch.Tensor) -> Any:
    """Elements from the first of a tensor to the first of a view of it.

    If Inductor has replaced a copy with its tensor, the view's offset still counts from the copy,
    which begins its own memory."""
    is_same = root.untyped_storage()._cdata == view.untyped_storage()._cdata
    return view.storage_offset() - root.storage_offset() if is_same else view.storage_offset()


def _is_strided_by_hand(view: torch.fx.Node, root: torch.fx.Node) -> bool:
    node: Optional[torch.fx.Node] = view
    while node is not None and node is not root:
        if node.target is torch.ops.aten.as_strided.default:
            return True
        node = _viewed(node)
    return False


def _refusal(node: torch.fx.Node, name: str) -> CompilationError:
    """For a call whose argument `name` is a view of elements of another size."""
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    kernel = kernel_side_table.get_kernel(node.kwargs["kernel_idx"])
    places = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    file, line = places[-1] if places else ("", 0)
    return CompilationError(
        "E087",
        f"kernel `{getattr(kernel, '__name__', '?')}` writes to memory that it gets as `{name}`, in "
        "this compiled function a view of a tensor whose elements have another size",
        "write to a tensor of its own, and copy or view that: view.clone()",
        file,
        int(line),
        1,
    )


def find_written(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The tensors that kernels and operators write to after they were made, be it by a view."""
    found = set()
    for node in graph.nodes:
        values: list[Any] = []
        if node.target is _mutation:
            values = list(node.kwargs["kwargs"].values())
        elif isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            for place, item in enumerate(node.target._schema.arguments):
                is_written = item.alias_info is not None and item.alias_info.is_write
                if is_written and place < len(node.args):
                    values.append(node.args[place])
                elif is_written:
                    values.append(node.kwargs.get(item.name))
        for value in pytree.tree_leaves(values):
            if isinstance(value, torch.fx.Node):
                found.add(find_root(value))
    return found


def find_root(node: torch.fx.Node) -> torch.fx.Node:
    """The tensor that a tensor is a view of, or a view of a view; itself if it is none."""
    while True:
        source = _viewed(node)
        if source is None:
            return node
        node = source


def _viewed(node: torch.fx.Node) -> Optional[torch.fx.Node]:
    call = node
    if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
        call = node.args[0]  # of several views
    if not isinstance(call.target, torch._ops.OpOverload) or not call.args:
        return None
    schema = call.target._schema
    source = call.args[0]
    first = schema.arguments[0].alias_info
    is_view = first is not None and not first.is_write
    if not is_view or not isinstance(source, torch.fx.Node):
        return None
    if not any(item.alias_info is not None for item in schema.returns):
        return None
    value, of = node.meta.get("val"), source.meta.get("val")
    if not isinstance(value, torch.Tensor) or not isinstance(of, torch.Tensor):
        return None
    if call.target in _MAY_COPY and not _shares(value, of):
        return None
    return source


_MAY_COPY = {torch.ops.aten.reshape.default}
"""Which give a view where there is one, and else a copy."""


def _shares(one: torch.Tensor, other: torch.Tensor) -> bool:
    try:
        other.view(one.size())
    except RuntimeError:
        return False
    return True
