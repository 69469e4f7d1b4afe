# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of Inductor's kernels without the Python around them.

Inductor launches by `CachingAutotuner.run`, which asks whether a profiler or a debug mode is on and
calls a launcher, a function that Inductor generates. That computes the grid and calls `kernel.run`,
or torch's own for GPUs. On a CPU this takes three times as long as the launch itself, and a model
has a hundred of them. So, after an autotuner's first launch, its attribute `run` is a
`_C.RepeatedRun` (python/src/Runner.cpp). If the numbers are those of the last launch, that launches
over the last grid; in all other cases, it calls `run`.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Optional

from tessera import _C

first_launches = 0
"""How many kernels were launched by `run` as it is until their first launch."""


class _Number(int):
    """A number that is not the same object as other numbers of its value."""


class _Mark:
    """An argument that is no number."""


def repeat_launches() -> None:
    """Has Inductor's autotuners launch so, from now on. To be called once."""
    from torch._inductor.runtime import triton_heuristics

    autotuner = triton_heuristics.CachingAutotuner
    original, prepare = autotuner.run, autotuner.prepare_for_pickle

    @functools.wraps(original)
    def run(self: Any, *args: Any, stream: Any, **kwargs: Any) -> Any:
        global first_launches
        first_launches += 1
        result = original(self, *args, stream=stream, **kwargs)
        if type(self) is autotuner and not kwargs:
            _replace_run(self, args, types.MethodType(run, self), types.MethodType(original, self))
        return result

    @functools.wraps(prepare)
    def prepare_for_pickle(self: Any) -> Any:
        # It is sent with all its attributes.
        for name in ("run", "_tessera_launchers"):
            self.__dict__.pop(name, None)
        return prepare(self)

    autotuner.run, autotuner.prepare_for_pickle = run, prepare_for_pickle


def _replace_run(autotuner: Any, args: tuple[Any, ...], slow: Any, original: Any) -> None:
    """Sets its `run` to what `slow`, or `original` if that cannot be sped up, does with arguments
    like these. Once for each list of launchers, of which there is a new one after tuning."""
    launchers = autotuner.launchers
    if autotuner.__dict__.get("_tessera_launchers") is launchers or len(launchers) != 1:
        return
    # From torch 2.13 on there is a faster one for GPUs, after the first launch without a profiler.
    launcher = getattr(autotuner, "_cached_launcher", launchers[0])
    if launcher is None:
        return
    autotuner._tessera_launchers = launchers
    fast = None
    if _is_plain(autotuner, launcher):
        fast = repeat(launcher, args, slow, _checks_of(autotuner))
    autotuner.run = fast or original


def _is_plain(autotuner: Any, launcher: Any) -> bool:
    """True if `run` does nothing for it but launch, without a profiler or a debug mode."""
    return not (
        launcher.store_cubin
        or autotuner.triton_interpret
        or autotuner.dump_launch_params
        or autotuner.dump_launch_tensors
    )


def _checks_of(autotuner: Any) -> tuple[tuple[Any, ...], ...]:
    """Checks that no profiler or debug mode is on, and that the launcher is the same, as the core
    runs them (frontend/reads.py)."""
    from torch._inductor.runtime import triton_heuristics
    from torch.autograd import profiler
    from torch.utils import _debug_mode

    count, counting = "_ACTIVE_DEBUG_MODE_COUNT", getattr(_debug_mode, "_mode", _debug_mode)
    return (
        (vars(autotuner), "launchers", autotuner.launchers),
        (vars(profiler), "_is_profiler_enabled", False),
        (
            (vars(counting), count, 0)
            if count in vars(counting)
            else (lambda: triton_heuristics.get_active_debug_mode() is None, None, None)
        ),
    )


def repeat(
    launcher: Any, args: tuple[Any, ...], slow: Any, checks: tuple[tuple[Any, ...], ...]
) -> Optional[_C.RepeatedRun]:
    """An object that does the launches of `launcher`, or calls `slow` if a check fails. None if the
    launcher does more with arguments than pass them on and compute with numbers.

    `args` are a launch's. The launcher is called with other arguments, which show where each value
    goes, and without a kernel.
    """
    runner = launcher.__globals__.get("runner")
    if runner is None or launcher.__code__.co_argcount != len(args) + 1:
        return None
    sources = _sources_of(launcher, args)
    if sources is None or sources != _sources_of(launcher, args, more=1):
        return None
    if isinstance(runner, _C.Runner):
        sources = sources[5:]  # behind what is the launcher's own
    else:
        runner = _C.NotedRun(runner)
        launcher = _with_runner(launcher, runner)
    numbers = tuple(at for at, value in enumerate(args) if value is None or _is_number(value))
    return _C.RepeatedRun(slow, launcher, runner, checks, sources, numbers, len(args))


def _with_runner(launcher: Any, runner: Any) -> Any:
    return types.FunctionType(launcher.__code__, {**launcher.__globals__, "runner": runner})


def _sources_of(launcher: Any, args: tuple[Any, ...], more: int = 0) -> Optional[tuple[Any, ...]]:
    """For each value that the runner gets behind grid and stream the place of the launcher's
    argument, or a tuple of the constant. Integers are `more` greater than they were."""
    given: list[Any] = [
        _Number(value + more) if isinstance(value, int) else _Mark() for value in args
    ]
    seen: list[tuple[Any, ...]] = []
    try:
        _with_runner(launcher, lambda *values: seen.append(values))(*given, stream=None)
    except Exception:
        return None
    if len(seen) != 1:
        return None
    places = {id(value): place for place, value in enumerate(given)}
    return tuple(places.get(id(value), (value,)) for value in seen[0][4:])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex))
