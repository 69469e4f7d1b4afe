# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of several runners is the fastest, found with as few runs as make that sure.

Machines drift: clocks rise and fall, other processes come and go. So runners are not measured one
after the other but in rounds. In each round, every runner that is still in the race has a *slot* of
a few runs. The time of a slot is compared with that of the leader in the same round. The median of
these ratios over the rounds says how much slower a runner is, their spread how sure that is.

Example, milliseconds of four slots and their ratios to A's:

    A   1.00  1.40  1.02  1.00
    B   1.03  1.45  1.05  1.03      1.03  1.036  1.03  1.03    3 % slower, for sure
    C   1.00  1.42  1.01  1.00      1.00  1.014  0.99  1.00    as fast as A

though each of B's times lies between two of A's. B leaves the race at once. C stays until it is
sure that it is within TIE of the leader, or the time is up. The runner within TIE that takes fewer
of the machine's resources wins.

A slot's time is the lower quartile of its runs: what disturbs a run makes it longer.

If other processes use the machine, most of the time passes between runs. So a race also ends by the
clock, no later than runs one after the other would: `most_ms` for each runner. The rounds until
then decide. If that is too little to be relied on, the outcome is not certain.
"""

from __future__ import annotations

import math
import random
import time
from typing import Callable, NamedTuple, Optional, Sequence

TIE = 0.0075
"""Runners whose times differ by less count as equally fast."""

_SLOT_MS = 2.0
_MOST_RUNS = 20
_LONG_MS = 4.0
"""A runner that takes so long has one run in a slot; all others have two at least."""
_LEAST_ROUNDS = 4
_MOST_ROUNDS = 200
_CERTAIN_ROUNDS = 24
"""After so many rounds, the outcome is certain, also if the clock ends them."""
_RUNS_OF_LONG = 6
"""The clock allows each runner so many runs at least, however long they are."""
_FEW = 4
_HOPELESS = 2.0
_DOUBTFUL = 1.5
_CLOSE = 1.1
_SURE = 3.0
"""How many standard errors a difference has to have, once there are many rounds."""
_LEAST_ERROR = 0.0005

Run = Callable[[int], Sequence[float]]
"""Runs something so many times; the milliseconds of each run."""


class Timing(NamedTuple):
    """Statistics of a runner's time in milliseconds."""

    median: float
    fast: float
    """A fifth of the runs were faster."""
    slow: float
    """A fifth were slower."""


class Standing(NamedTuple):
    """The current state of the race, for progress messages."""

    remaining: int
    leader: int
    milliseconds: float
    """The leader's time."""
    left: float
    """The most seconds that it can still take."""


class Outcome(NamedTuple):
    """How a race ended."""

    winner: int
    """The place of the winner among the runners; -1 if all failed."""
    timings: list[Optional[Timing]]
    failures: dict[int, Exception]
    rounds: int
    is_certain: bool
    """False if the clock ended the race before its time was measured."""


class _Runner:
    def __init__(self, place: int, run: Run, resources: tuple[int, ...]) -> None:
        self.place = place
        self.run = run
        self.resources = resources
        self.estimate = 0.0
        self.times: list[float] = []
        self.slots: list[float] = []
        self.failure: Optional[Exception] = None

    def look(self) -> None:
        """The first run, which loads and warms up what it needs, and one that counts."""
        first = self._try(1)
        again = self._try(1) if first and first[0] < 1000.0 else first
        self.estimate = again[0] if again else math.inf

    def race(self) -> None:
        """One slot."""
        count = int(_SLOT_MS / self.estimate) if self.estimate > 0 else _MOST_RUNS
        least = 1 if self.estimate > _LONG_MS else 2
        times = self._try(max(least, min(_MOST_RUNS, count)))
        if times:
            self.times += times
            self.slots.append(quantile(times, 0.25))

    def _try(self, count: int) -> Sequence[float]:
        try:
            return self.run(count)
        except Exception as error:
            self.failure = error
            return ()

    def undisturbed(self) -> float:
        """Its time where nothing disturbs it."""
        return quantile(self.times, 0.1)

    @property
    def spent(self) -> float:
        return sum(self.times)

    def timing(self) -> Optional[Timing]:
        times = self.times or ([self.estimate] if math.isfinite(self.estimate) else [])
        if not times:
            return None
        return Timing(quantile(times, 0.5), quantile(times, 0.2), quantile(times, 0.8))


def race(
    runs: Sequence[Run],
    resources: Sequence[tuple[int, ...]],
    most_ms: float,
    watch: Callable[[Standing], None] = lambda standing: None,
    final_ms: float = 0.0,
    looked: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Finds the fastest. Each runner runs for `most_ms` milliseconds at most, or for four rounds if
    they take longer. Once the race has few runners, they run for `final_ms` if that is more.
    `looked` is called once each has run, and may raise. `clock` gives seconds: by it the race ends
    after `most_ms` for each runner, or six runs if they are longer, but not before one round."""
    start = clock()
    runners = [_Runner(place, *what) for place, what in enumerate(zip(runs, resources))]
    live: list[_Runner] = []
    for runner in runners:
        runner.look()
        if runner.failure is None:
            live.append(runner)
            watch(_standing(live, len(runners) - runner.place - 1, most_ms))
    looked()
    best = min((runner.estimate for runner in live), default=0.0)
    # For a runner as slow as this, one run is enough.
    live = [runner for runner in live if runner.estimate <= 4 * _HOPELESS * best]
    allowed = sum(
        max(most_ms, _RUNS_OF_LONG * item.estimate) for item in runners if not item.failure
    )
    end = start + allowed / 1000
    rounds = 0
    is_late = False
    tied = live
    order = random.Random(0)
    while live and rounds < _MOST_ROUNDS:
        # In another order each time, or a machine that changes its speed in the same rhythm
        # would always do so before the same runners.
        order.shuffle(live)
        for runner in live:
            is_late = rounds > 0 and clock() >= end
            if is_late:
                break
            runner.race()
        live = [runner for runner in live if runner.failure is None]
        rounds += not is_late
        if not live:
            break
        leader = min(live, key=lambda runner: quantile(runner.slots, 0.5))
        live = [runner for runner in live if not _is_out(runner, leader)]
        watch(_standing(live, 0, most_ms))
        tied = _tied(live, leader)
        if is_late:
            break
        # One that never had a rival runs for its time alone.
        if len(live) == 1 and (len(runners) > 1 or live[0].spent >= most_ms):
            break
        if rounds >= _LEAST_ROUNDS:
            if all(_is_tied(runner, leader) for runner in live):
                break
            limit = max(most_ms, final_ms) if len(live) <= _FEW else most_ms
            if max(runner.spent for runner in live) >= limit:
                break
    is_certain = (
        not is_late
        or rounds >= _CERTAIN_ROUNDS
        or all(_is_tied(runner, leader) or runner.spent >= most_ms / 2 for runner in live)
    )
    tied = [runner for runner in tied if runner.failure is None]
    winner = min(tied, key=lambda runner: (runner.resources, runner.place)).place if tied else -1
    return Outcome(
        winner,
        [runner.timing() for runner in runners],
        {runner.place: runner.failure for runner in runners if runner.failure is not None},
        rounds,
        is_certain,
    )


def _ratio(runner: _Runner, leader: _Runner) -> tuple[float, float]:
    """How many times as long as the leader it takes, and the standard error of that."""
    if runner is leader:
        return 1.0, 0.0
    ratios = [own / other for own, other in zip(runner.slots, leader.slots) if other > 0]
    if not ratios:
        return 1.0, 0.0
    middle = quantile(ratios, 0.5)
    # The median's error, from what two thirds of the deviations stay below: a third may be
    # accidents. If few ratios agree by chance, their deviation is too small.
    count = len(ratios)
    deviation = quantile([abs(ratio - middle) for ratio in ratios], 0.68)
    few = 1 + 5 / max(1, count - 1) ** 1.5
    return middle, max(_LEAST_ERROR, few * 1.2533 * deviation / math.sqrt(count))


def _is_out(runner: _Runner, leader: _Runner) -> bool:
    if runner is leader:
        return False
    # The best time of the one is worse than the usual time of the other.
    rounds = len(runner.slots)
    best = min(runner.estimate, *runner.times) / quantile([leader.estimate, *leader.times], 0.5)
    if best > _HOPELESS or rounds >= 2 and best > _DOUBTFUL:
        return True
    middle, error = _ratio(runner, leader)
    if rounds < _LEAST_ROUNDS and middle < _CLOSE:
        return False  # a machine that drifts may look like this
    return rounds >= 2 and middle - _SURE * error > 1 + TIE


def _tied(live: Sequence[_Runner], leader: _Runner) -> list[_Runner]:
    """Those that nothing speaks against. If the rounds give no certain outcome, disturbances are
    larger than the runners' differences. Then the fastest runs say more than the usual ones."""
    if not all(_is_tied(runner, leader) for runner in live):
        leader = min(live, key=_Runner.undisturbed)
        return [item for item in live if item.undisturbed() <= leader.undisturbed() * (1 + TIE)]
    return [runner for runner in live if _ratio(runner, leader)[0] <= 1 + TIE]


def _is_tied(runner: _Runner, leader: _Runner) -> bool:
    middle, error = _ratio(runner, leader)
    return runner is leader or middle + _SURE * error <= 1 + TIE


def _standing(live: Sequence[_Runner], waiting: int, most_ms: float) -> Standing:
    leader = min(live, key=lambda runner: quantile(runner.slots or [runner.estimate], 0.5))
    left = sum(max(0.0, most_ms - runner.spent) for runner in live) + waiting * most_ms
    return Standing(
        len(live) + waiting,
        leader.place,
        quantile(leader.slots or [leader.estimate], 0.5),
        left / 1000,
    )


def quantile(values: Sequence[float], at: float) -> float:
    """The value below which a part `at` of the values lies, between two neighbours by the line."""
    ordered = sorted(values)
    place = at * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    return (1 - (place - low)) * ordered[low] + (place - low) * ordered[high]
