# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a launch takes: by the host's clock, by events of a GPU's, or in a graph.

`before` and `after` are called for each run outside of what is timed. On a GPU, all runs of a slot
are put on the stream first, with one wait at the end. Before each run, the L2 cache is overwritten.
So a run finds its data in memory, as it would in a program.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Optional, Protocol

from tessera import _C

Action = Callable[[], Any]


class Clock(Protocol):
    """Times launches."""

    def time(self, before: Action, launch: Action, after: Action, count: int) -> list[float]:
        """The milliseconds of each of `count` launches."""

    def close(self) -> None:
        """Gives back what it holds."""


class HostClock:
    """For what is done when the call returns."""

    def time(self, before: Action, launch: Action, after: Action, count: int) -> list[float]:
        times = []
        for _ in range(count):
            before()
            start = time.perf_counter_ns()
            launch()
            times.append((time.perf_counter_ns() - start) / 1e6)
            after()
        return times

    def close(self) -> None:
        pass


class DeviceClock:
    """Measures work on a stream of a GPU."""

    def __init__(self, device: int, stream: int, flush: bool = True) -> None:
        from tessera.runtime import driver

        self._driver = driver
        self.device, self.stream = device, stream
        self._events: list[Any] = []
        self._flushed: Optional[Any] = None
        if flush:
            try:
                # Twice its size, since the cache does not replace only the oldest lines.
                l2_bytes = int(_C.cuda_device_info(device)["l2_bytes"])
                self._flushed = driver.Buffer(device, max(1 << 20, 2 * l2_bytes))
            except driver.OutOfMemory:
                pass

    def flush(self) -> None:
        """Has the second-level cache overwritten."""
        if self._flushed is not None:
            self._driver.fill(self.device, self.stream, self._flushed.address, self._flushed.size)

    def time(self, before: Action, launch: Action, after: Action, count: int) -> list[float]:
        from tessera.runtime.cuda import synchronize

        while len(self._events) < 2 * count:
            self._events.append(self._driver.Event(self.device))
        with self._driver.on_device(self.device):
            for index in range(count):
                before()
                self.flush()
                self._events[2 * index].record(self.stream)
                launch()
                self._events[2 * index + 1].record(self.stream)
                after()
        synchronize(self.device, self.stream)
        pairs = zip(self._events[0 : 2 * count : 2], self._events[1 : 2 * count : 2])
        return [end.milliseconds_since(start) for start, end in pairs]

    def close(self) -> None:
        for event in self._events:
            event.destroy()
        self._events = []
        if self._flushed is not None:
            self._flushed.free()
            self._flushed = None


class GraphClock:
    """Measures work on a stream of a GPU that is repeated in a graph, without the host's cost of
    launches. Does not flush the cache."""

    def __init__(self, device: int, origin: int) -> None:
        """`origin` is the stream that `before` and `after` work on."""
        from tessera.runtime import driver

        self._driver = driver
        self._origin = origin
        self._stream = driver.Stream(device)
        self._clock = DeviceClock(device, self._stream.handle, flush=False)
        self.stream = self._stream.handle

    def time(self, before: Action, launch: Action, after: Action, count: int) -> list[float]:
        from tessera.runtime.cuda import synchronize

        device = self._clock.device

        def prepare() -> None:
            synchronize(device, self.stream)
            before()
            synchronize(device, self._origin)

        prepare()
        launch()  # loads what must not be loaded while a stream is recorded
        synchronize(device, self.stream)
        after()
        repeats = max(10, count)

        def record() -> None:
            for _ in range(repeats):
                launch()

        graph = self._driver.Graph(device, self.stream, record)
        try:
            times = self._clock.time(prepare, graph.launch, after, 1 + count // 10)
        finally:
            graph.destroy()
        return [time / repeats for time in times]

    def close(self) -> None:
        self._clock.close()
        self._stream.destroy()
