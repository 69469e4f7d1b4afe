# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures how long a function takes, on the CPU or on a GPU.

A function that uses a GPU returns before the work is done, so events on its stream time it. Any
other function is timed by the host's clock. Events are used if torch, CuPy or a launch of Tessera
has used a GPU in this process.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence, Union

from tessera.errors import LaunchError
from tessera.tuning.clocks import Clock, DeviceClock, HostClock
from tessera.tuning.race import quantile

Device = Union[None, int, str]
_MODES = ("min", "max", "mean", "median", "all")
_LOOKS = 5
_LEAST_MS = 1e-4


class Place(NamedTuple):
    """A GPU, and the stream of it that is worked on."""

    device: int
    stream: int


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Optional[Iterable[Any]] = None,
    quantiles: Optional[Sequence[float]] = None,
    return_mode: str = "mean",
    device: Device = None,
) -> Any:
    """The milliseconds that a call of `fn` takes.

    It is called for about `warmup` milliseconds untimed, and then for about `rep` milliseconds. On
    a GPU the L2 cache is overwritten before each call. The `grad` of the tensors in `grad_to_none`
    is set to None before each call.

    The result is a list of the `quantiles`, or a number if there is one of them. Without
    `quantiles`, `return_mode` chooses: "mean", "median", "min", "max", or "all" for a list of all
    times. `device` is "cpu", or a GPU's number, if the device that is found is not the right one.

    Example:
        import numpy as np
        import tessera.testing

        x = np.ones(1000)
        ms = tessera.testing.do_bench(lambda: x + x, warmup=1, rep=5)
        fast, slow = tessera.testing.do_bench(lambda: x + x, warmup=1, rep=5, quantiles=[0.2, 0.8])
        assert ms > 0 and 0 < fast <= slow
    """
    _check(quantiles, return_mode)
    fn()
    place = _place(device)
    clock: Clock = HostClock() if place is None else DeviceClock(*place)
    tensors = list(grad_to_none or ())

    def before() -> None:
        for tensor in tensors:
            tensor.grad = None

    try:
        looks = clock.time(before, fn, _nothing, _LOOKS)
        estimate = max(_LEAST_MS, quantile(looks, 0.5))
        warm = HostClock() if place is None else clock
        warm.time(before, fn, _nothing, max(1, int(warmup / estimate)))
        times: list[float] = []
        left = max(1, int(rep / estimate))
        while left > 0:  # events are few thousands at most
            part = min(left, 1000)
            times += clock.time(before, fn, _nothing, part)
            left -= part
    finally:
        clock.close()
    return summarize(times, quantiles, return_mode)


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Optional[Iterable[Any]] = None,
    quantiles: Optional[Sequence[float]] = None,
    return_mode: str = "mean",
) -> Any:
    """The milliseconds that a call of `fn` takes as a part of a CUDA graph, that is, without what
    launches cost the host.

    `fn` has to work on torch's or CuPy's current stream. The graph has so many calls that it takes
    about `rep` milliseconds, and is run ten times. The rest is as for `do_bench`.

    Example:
        import torch
        import tessera.testing

        x = torch.ones(1 << 20, device="cuda")  # needs a GPU
        ms = tessera.testing.do_bench_cudagraph(lambda: torch.add(x, x, out=x), return_mode="median")
        assert 0 < ms < 10
    """
    _check(quantiles, return_mode)
    tensors = list(grad_to_none or ())

    def call() -> None:
        for tensor in tensors:
            tensor.grad = None
        fn()

    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available():
        times = _in_graph_of_torch(torch, call, rep)
    elif cupy is not None:
        times = _in_graph_of_cupy(cupy, call, rep)
    else:
        raise LaunchError(
            "E066",
            "a CUDA graph is recorded from the stream of torch or CuPy, and there is none",
            "use do_bench, or tensors of torch on a GPU",
        )
    return summarize(times, quantiles, return_mode)


def _in_graph_of_torch(torch: Any, call: Callable[[], None], rep: float) -> list[float]:
    with torch.cuda.stream(torch.cuda.Stream()):
        call()
        device = torch.cuda.current_device()
        clock = DeviceClock(device, torch.cuda.current_stream().cuda_stream, flush=False)
        try:
            count = _repeats(clock, call, rep)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(count):
                    call()
            return _replays(clock, graph.replay, count)
        finally:
            clock.close()


def _in_graph_of_cupy(cupy: Any, call: Callable[[], None], rep: float) -> list[float]:
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        call()
        clock = DeviceClock(cupy.cuda.Device().id, stream.ptr, flush=False)
        try:
            count = _repeats(clock, call, rep)
            stream.begin_capture()
            for _ in range(count):
                call()
            graph = stream.end_capture()
            return _replays(clock, lambda: graph.launch(stream), count)
        finally:
            clock.close()


def _repeats(clock: Clock, call: Callable[[], None], rep: float) -> int:
    estimate = quantile(clock.time(_nothing, call, _nothing, _LOOKS), 0.5)
    return max(1, min(1000, int(rep / max(_LEAST_MS, estimate))))


def _replays(clock: Clock, replay: Callable[[], Any], count: int) -> list[float]:
    replay()
    return [time / count for time in clock.time(_nothing, replay, _nothing, 10)]


def _place(device: Device) -> Optional[Place]:
    """The GPU whose events measure the time, or None for the host's clock."""
    if device == "cpu":
        return None
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    ordinal = _ordinal(device)
    if torch is not None and torch.cuda.is_initialized():
        current = torch.cuda.current_device() if ordinal is None else ordinal
        return Place(current, int(torch.cuda.current_stream(current).cuda_stream))
    if cupy is not None:
        current = cupy.cuda.Device().id if ordinal is None else ordinal
        return Place(current, int(cupy.cuda.get_current_stream().ptr))
    from tessera.machine.devices import architecture

    if device is None and architecture.cache_info().currsize == 0:
        return None  # no kernel of ours has been launched on a GPU
    return Place(ordinal or 0, 0)


def _ordinal(device: Device) -> Optional[int]:
    if device is None or device == "cuda":
        return None
    if isinstance(device, int):
        return device
    number = str(device).partition(":")[2]
    if not number.isdigit():
        raise LaunchError("E053", f"device is {device!r}", "use 'cpu', 'cuda' or 'cuda:0'")
    return int(number)


def summarize(
    times: Sequence[float], quantiles: Optional[Sequence[float]], return_mode: str
) -> Any:
    """The result of `do_bench`, from its times."""
    if quantiles is not None:
        found = [quantile(times, at) for at in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return list(times)
    if return_mode in ("min", "max"):
        return min(times) if return_mode == "min" else max(times)
    return quantile(times, 0.5) if return_mode == "median" else sum(times) / len(times)


def _check(quantiles: Optional[Sequence[float]], return_mode: str) -> None:
    if return_mode not in _MODES:
        raise LaunchError("E053", f"return_mode is {return_mode!r}", f"use {', '.join(_MODES)}")
    for at in quantiles or ():
        if not 0 <= at <= 1:
            raise LaunchError("E053", f"a quantile is {at!r}", "use 0 to 1")


def _nothing() -> None:
    pass
