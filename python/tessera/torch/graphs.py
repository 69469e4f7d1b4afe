# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CUDA graphs for functions, without a difference for their callers.

torch records a compiled graph of operators as a CUDA graph, and replays it. A replay writes to the
graph's own memory, which the next replay overwrites, and only one thread at a time may replay. So
this module copies results out of that memory before a call returns. Calls of several threads or
streams run one after the other. They behave like calls of a function without a CUDA graph.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

import torch

SETTINGS: Mapping[str, Any] = {"triton.cudagraphs": True, "triton.cudagraph_trees": True}
"""The settings of Inductor's. Not `cudagraph_skip_dynamic_graphs`: it divides a graph at each
operator whose code has a loop, of a shape that is known or not."""


def fit(inputs: Sequence[Any]) -> bool:
    """True if a graph of operators that is called with these is recorded.

    It is recorded if all is on one GPU, all shapes are known, and no backward pass needs its
    values. Torch itself finds operators that cannot be recorded.
    """
    devices = set()
    for value in inputs:
        if isinstance(value, torch.Tensor):
            if any(isinstance(extent, torch.SymInt) for extent in value.shape):
                return False
            if torch.is_grad_enabled() and value.requires_grad:
                return False
            devices.add(value.device)
        elif isinstance(value, torch.SymInt):
            return False
    return len(devices) == 1 and next(iter(devices)).type == "cuda"


class _Result(NamedTuple):
    """How a result of a replay is returned."""

    copied: bool
    """A result that is an argument, or a view of one, stays what it is."""
    shared: Optional[int]
    """Results with the same number share their memory; None where one has its own."""


def _key(value: Any) -> Any:
    """Equal for tensors of the same memory."""
    return value.untyped_storage()._cdata


def _plan(graph: Any) -> list[_Result]:
    """By the fake tensors of a graph of Dynamo's; called before Inductor takes it over."""
    arguments: set[Any] = set()
    results: Sequence[Any] = ()
    for node in graph.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            value = node.meta.get("example_value")
            if isinstance(value, torch.Tensor):
                arguments.add(_key(value))
        elif node.op == "output":
            results = node.args[0] if isinstance(node.args[0], (tuple, list)) else node.args
    values = [getattr(x, "meta", {}).get("example_value") for x in results]
    keys = [_key(x) if isinstance(x, torch.Tensor) else None for x in values]
    return [
        _Result(
            copied=key is not None and key not in arguments,
            shared=None if _is_alone(value, key, keys) else keys.index(key),
        )
        for value, key in zip(values, keys)
    ]


def _is_alone(value: Any, key: Any, keys: Sequence[Any]) -> bool:
    """True if `clone` copies all that there is of a result's memory, as it lies there."""
    if key is None:
        return True
    return keys.count(key) == 1 and bool(
        torch._prims_common.is_non_overlapping_and_dense_or_false(value)
        if hasattr(torch._prims_common, "is_non_overlapping_and_dense_or_false")
        else torch._prims_common.is_non_overlapping_and_dense(value)
    )


_turn = threading.RLock()
"""All CUDA graphs of torch's share a pool of memory."""
_last_streams: dict[int, Any] = {}
"""The stream of the last replay on each GPU."""


def lasting(graph: Any, compile: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The result of `compile` for a graph of Dynamo's, with results that stay valid after the next
    call."""
    plan = _plan(graph)
    call = compile()

    @functools.wraps(call)
    def call_and_copy(*args: Any) -> Any:
        with _turn:
            _follow_last_stream()
            results = call(*args)
            return _copied(results, plan)

    return call_and_copy


def _follow_last_stream() -> None:
    """If the last replay was on another stream, makes later work wait for it."""
    if not torch.cuda.is_initialized():
        return
    stream = torch.cuda.current_stream()
    last = _last_streams.get(stream.device_index)
    if last is not None and last != stream:
        stream.wait_stream(last)
    _last_streams[stream.device_index] = stream


def _copied(results: Any, plan: Sequence[_Result]) -> Any:
    memory: dict[int, Any] = {}
    copies = []
    for result, how in zip(results, plan):
        if not how.copied or not isinstance(result, torch.Tensor):
            copies.append(result)
        elif how.shared is None:
            copies.append(result.clone())
        else:
            if how.shared not in memory:
                memory[how.shared] = result.untyped_storage().clone()
            copy = torch.empty(0, dtype=result.dtype, device=result.device)
            place = (result.storage_offset(), result.size(), result.stride())
            copies.append(copy.set_(memory[how.shared], *place))
    return type(results)(copies)
