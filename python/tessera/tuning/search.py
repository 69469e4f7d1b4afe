# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looking for a configuration in a space that is too large to try all of it.

The search goes in batches. The first is drawn at random. Most of each later one are neighbours of
the best configurations so far: one value moves one place along its list, or to any other place. A
few are drawn at random, so that the search does not stay in a corner. A batch is compiled at once,
and measured in a race together with the best one so far. So the times of different batches can be
compared. The search ends when the time is up, or when all of the space has been tried.
"""

from __future__ import annotations

import math
import random
import time
from typing import Any, Mapping, NamedTuple, Optional, Sequence

from tessera.errors import CompilationError, TesseraError, TuningError
from tessera.machine.devices import usable_cpus
from tessera.tuning.autotuner import Autotuner
from tessera.tuning.candidates import make_candidate
from tessera.tuning.config import Config, OPTIONS
from tessera.tuning.heuristics import name_like, require_kernel
from tessera.tuning.progress import Progress
from tessera.tuning.session import Hooks, choose
from tessera.wording import shown, with_article

_BATCH = 8
_AT_RANDOM = 0.25
_BATCH_MS = 40.0


class Found(NamedTuple):
    """The result of a search."""

    config: Config
    """The best configuration."""
    milliseconds: float
    """Its time."""
    timings: dict[Config, float]
    """The times of all that were measured, as if they had run when the best one did."""
    failures: dict[Config, Exception]
    """The errors of the others."""


def tune(
    kernel: Any,
    grid: Any,
    args: Sequence[Any] = (),
    space: Mapping[str, Sequence[Any]] = {},
    *,
    kwargs: Optional[Mapping[str, Any]] = None,
    seconds: float = 30.0,
    seed: int = 0,
    check: Optional[bool] = None,
) -> Found:
    """Searches for the best configuration of a kernel for one launch.

    `space` has the values to choose from, by the names of constexpr parameters and of options
    such as num_warps, in an order in which neighbours are alike. `args` and `kwargs` are the
    other arguments; what the kernel both reads and writes is as before in the end. The kernel
    runs for about `seconds`. Raises TuningError: E059 for a bad space, and if no configuration
    works; E086, unless `check` is False, if one leaves unwritten what another writes with the same grid.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x_ptr + i, 0, mask=i < n)

        x = np.ones(10_000, np.float32)
        grid = lambda args: (tessera.cdiv(10_000, args["BLOCK"]),)
        found = tessera.tune(clear, grid, (x, 10_000), {"BLOCK": [256, 1024]}, seconds=0.2)
        clear[grid](x, 10_000, **found.config.all_kwargs())
        assert found.config.kwargs["BLOCK"] in (256, 1024) and not x.any()
    """
    if isinstance(kernel, Autotuner):
        kernel = kernel.fn
    names = require_kernel(kernel, "tune")
    lists = _checked(kernel, names, space, args, kwargs or {})
    search = _Search(kernel, names, grid, tuple(args), dict(kwargs or {}), lists, seed, check)
    return search.run(seconds)


class _Search:
    def __init__(
        self,
        kernel: Any,
        names: list[str],
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        lists: dict[str, list[Any]],
        seed: int,
        check: Optional[bool],
    ) -> None:
        self._kernel, self._names, self._grid = kernel, names, grid
        self._args, self._kwargs, self._check = args, kwargs, check
        self._lists = lists
        self._random = random.Random(seed)
        self._size = math.prod(len(values) for values in lists.values())
        self._tried: set[tuple[int, ...]] = set()
        self._times: dict[tuple[int, ...], float] = {}
        self._failures: dict[Config, Exception] = {}
        self._best: Optional[tuple[int, ...]] = None

    def run(self, seconds: float) -> Found:
        """The search."""
        end = time.monotonic() + seconds
        told = Progress(str(self._kernel.__name__), {"space": self._size})
        told.begin(self._size)
        count = max(_BATCH, 2 * usable_cpus())
        failure: Optional[TesseraError] = None
        while self._best is None or time.monotonic() < end:
            batch = self._batch(count)
            if not batch:
                break
            try:
                self._measure(batch)
            except TuningError as error:
                if not error.failures:
                    raise
                self._failures.update(error.failures)
                error.failures = self._failures
                failure = error
            except CompilationError as error:  # the same for all of the batch
                self._failures.update({self._config(point): error for point in batch})
                failure = error
            if self._best is None and time.monotonic() >= end:
                break
            if self._best is not None:
                left = max(0.0, end - time.monotonic())
                config = self._config(self._best)
                rest = self._size - len(self._tried)
                told.measuring(rest, config, self._times[self._best], left)
        if self._best is None:
            told.stop()
            assert failure is not None
            raise failure
        best = self._config(self._best)
        told.end(best, self._times[self._best], self._failures)
        timings = {self._config(point): time for point, time in self._times.items()}
        return Found(best, self._times[self._best], timings, self._failures)

    def _batch(self, count: int) -> list[tuple[int, ...]]:
        chosen: list[tuple[int, ...]] = []
        leaders = sorted(self._times, key=lambda point: self._times[point])[:3]
        for _ in range(50 * count):
            if len(chosen) == count or len(self._tried) == self._size:
                break
            if not leaders or self._random.random() < _AT_RANDOM:
                point = tuple(self._random.randrange(len(v)) for v in self._lists.values())
            else:
                point = self._step(self._random.choice(leaders))
            if point not in self._tried:
                self._tried.add(point)
                chosen.append(point)
        if not chosen and len(self._tried) < self._size:
            chosen = self._rest(count)
        return chosen

    def _step(self, point: tuple[int, ...]) -> tuple[int, ...]:
        """A neighbour: mostly along one list, now and then along two."""
        moved = list(point)
        sizes = [len(values) for values in self._lists.values()]
        for _ in range(1 if self._random.random() < 0.7 else 2):
            axis = self._random.randrange(len(sizes))
            if self._random.random() < 0.8:
                place = moved[axis] + self._random.choice((-1, 1))
                moved[axis] = min(max(place, 0), sizes[axis] - 1)
            else:
                moved[axis] = self._random.randrange(sizes[axis])
        return tuple(moved)

    def _rest(self, count: int) -> list[tuple[int, ...]]:
        """The part of the space that the search has not tried."""
        import itertools

        chosen = []
        for point in itertools.product(*(range(len(values)) for values in self._lists.values())):
            if point not in self._tried:
                self._tried.add(point)
                chosen.append(point)
                if len(chosen) == count:
                    break
        return chosen

    def _config(self, point: tuple[int, ...]) -> Config:
        values = {name: items[at] for at, (name, items) in zip(point, self._lists.items())}
        options = {name: values.pop(name) for name in OPTIONS if name in values}
        return Config(values, **options)

    def _measure(self, batch: Sequence[tuple[int, ...]]) -> None:
        points = [*([self._best] if self._best is not None else []), *batch]
        candidates = [
            make_candidate(
                self._config(point), self._kernel, self._names, self._grid, self._args, self._kwargs
            )
            for point in points
        ]
        hooks = Hooks(most_ms=_BATCH_MS, check=self._check)
        choice = choose(str(self._kernel.__name__), candidates, hooks, _Quiet())
        self._failures.update(choice.failures)
        # Times of this batch in the measure of those before: by the one that is in both.
        scale = 1.0
        first = choice.timings[0]
        if self._best is not None and first is not None and first.median > 0:
            scale = self._times[self._best] / first.median
        for point, timing in zip(points, choice.timings):
            if timing is not None and point != self._best:
                self._times[point] = timing.median * scale
        self._best = points[choice.best]


class _Quiet(Progress):
    """A part of a search says nothing of its own."""

    def __init__(self) -> None:
        super().__init__("", {})
        self._mode = "off"
        self._is_live = False


def _checked(
    kernel: Any,
    names: Sequence[str],
    space: Mapping[str, Sequence[Any]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, list[Any]]:
    if not isinstance(space, Mapping):
        what = with_article(type(space).__name__)
        raise TuningError("E059", f"the space of configurations is {what}", "pass a dict of lists")
    if not space:
        raise TuningError("E059", "the space of configurations is empty", "name some values")
    lists: dict[str, list[Any]] = {}
    given = {*names[: len(args)], *kwargs}
    for name, values in space.items():
        if name not in names and name not in OPTIONS:
            raise TuningError(
                "E059",
                f"the space has values for {name!r}, which is no parameter of "
                f"`{kernel.__name__}` and no option",
                name_like(name, [*names, *OPTIONS]),
            )
        if name in given:
            raise TuningError(
                "E059", f"the space has values for `{name}`, which is passed", "drop one of the two"
            )
        try:
            different = [] if isinstance(values, str) else list(dict.fromkeys(values))
        except TypeError:  # no list, or of what cannot be hashed
            different = []
        if not different:
            raise TuningError(
                "E059",
                f"the values of `{name}` are {shown(values)}",
                "pass a list of numbers, strings or tuples of these",
            )
        lists[name] = different
    return lists
