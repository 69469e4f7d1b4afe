# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of kernels and of scopes, for programs that measure themselves with Triton's profiler.

    session = proton.start("matmul", hook="triton")
    with proton.scope("cublas", {"flops16": 2.0 * M * N * K}):
        torch.matmul(a, b)
    proton.finalize()  # writes matmul.hatchet, which `viewer` shows

A time is the one between two events of the stream, or of the host's clock on a CPU. It is measured
for each launch with `hook="triton"`, and for each scope that has metrics. The kernel's
`launch_metadata` names a launch and counts its work. Other features of Proton (backends, program
counters, contexts of Python) are refused. nsys, ncu and torch.profiler show these kernels by their
names.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional

from tessera.machine.devices import has_gpu
from tessera.runtime.hooks import hooks

__all__ = ["activate", "deactivate", "finalize", "scope", "start"]


class _Session:
    """The measurements from `start` to `finalize`."""

    def __init__(self, name: str, hook: Optional[str]) -> None:
        self.name = name
        self.active = True
        self.path: list[str] = []
        self.entered: list[Any] = []
        self.pending: list[tuple[tuple[str, ...], Mapping[str, float], Any, Any]] = []
        self.totals: dict[tuple[str, ...], dict[str, float]] = {}
        self.hook = hook
        if hook == "triton":
            hooks.launch_enter.add(self.enter)
            hooks.launch_exit.add(self.exit)

    def end(self) -> None:
        """No launch is measured any more."""
        hooks.launch_enter.remove(self.enter)
        hooks.launch_exit.remove(self.exit)
        self.settle()

    def enter(self, data: Any) -> None:
        """Before a launch."""
        self.entered.append(_now() if self.active else None)

    def exit(self, data: Any) -> None:
        """After it."""
        begin = self.entered.pop() if self.entered else None
        if begin is not None:
            facts = data.get()
            numbers = {k: v for k, v in facts.items() if isinstance(v, (int, float)) and v}
            numbers.pop("stream", None)
            self.add((*self.path, str(facts["name"])), numbers, begin, _now())

    def add(
        self, path: tuple[str, ...], metrics: Mapping[str, float], begin: Any, end: Any
    ) -> None:
        """Counts one launch, or one run of a scope."""
        self.pending.append((path, metrics, begin, end))
        if len(self.pending) >= 4096:
            self.settle()

    def settle(self) -> None:
        """Reads the clocks, for which the GPU must have come there."""
        for path, metrics, begin, end in self.pending:
            total = self.totals.setdefault(path, {})
            for name, value in (
                *metrics.items(),
                ("time (ns)", _between(begin, end)),
                ("count", 1),
            ):
                total[name] = total.get(name, 0) + value
        self.pending.clear()


_session: Optional[_Session] = None


def _now() -> Any:
    if not has_gpu():
        return time.perf_counter_ns()
    import torch

    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between(begin: Any, end: Any) -> float:
    """Nanoseconds."""
    if isinstance(begin, int):
        return end - begin
    end.synchronize()
    return 1e6 * begin.elapsed_time(end)


def start(
    name: str = "proton",
    *,
    hook: Optional[str] = None,
    backend: Optional[str] = None,
    mode: Any = None,
    data: str = "tree",
    context: str = "shadow",
) -> int:
    """Begins to measure; returns the number of the session, which is always 0."""
    from tessera.compat.triton import refuse

    for what, given, known in (("backend", backend, (None, "cupti")), ("data", data, ("tree",))):
        if given not in known:
            refuse(f"triton.profiler with {what}={given!r}", f"only {known[-1]!r} has a meaning")
    global _session
    if _session is not None:
        _session.end()
    _session = _Session(name, hook)
    return 0


def activate(session: Optional[int] = 0) -> None:
    """Measures again."""
    if _session is not None:
        _session.active = True


def deactivate(session: Optional[int] = 0) -> None:
    """Measures nothing until `activate`."""
    if _session is not None:
        _session.active = False


@contextmanager
def scope(name: str, metrics: Optional[Mapping[str, float]] = None) -> Iterator[None]:
    """Groups the measurements in a `with` block under `name`. A scope with metrics is measured,
    too."""
    session = _session
    if session is None or not session.active:
        yield
        return
    begin = _now() if metrics is not None else None
    session.path.append(name)
    try:
        yield
    finally:
        path = tuple(session.path)
        session.path.pop()
        if metrics is not None:
            session.add(path, metrics, begin, _now())


def finalize(session: Optional[int] = None, output_format: str = "hatchet") -> None:
    """Ends the session and writes what was measured into `<name>.hatchet`, a file of JSON."""
    global _session
    if _session is None:
        return
    _session.end()
    rows = [{"path": list(path), "metrics": total} for path, total in _session.totals.items()]
    with open(f"{_session.name}.hatchet", "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    _session = None
