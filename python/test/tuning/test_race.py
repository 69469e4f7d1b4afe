# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The race, with runners whose times are made up: who wins, and after how many runs."""

from __future__ import annotations

import math
import random
from typing import Callable, Sequence

import pytest

from tessera.tuning.race import Outcome, race


class Machine:
    """Runners on a machine that drifts and is disturbed, in its own time."""

    def __init__(self, seed: int, noise: float = 0.02, drift: float = 0.1) -> None:
        self.random = random.Random(seed)
        self.noise, self.drift = noise, drift
        self.phase = self.random.random()
        self.spent = 0.0
        self.runs: dict[float, int] = {}

    def slowness(self) -> float:
        """Waves of a second, and a tenth of all times something else that takes 20 ms."""
        is_busy = random.Random(int(self.spent // 20) + self.phase).random() < self.drift
        wave = math.sin(2 * math.pi * (self.spent / 1000 + self.phase))
        return (1 + self.drift * wave) * (1.6 if is_busy else 1)

    def runner(self, milliseconds: float) -> Callable[[int], Sequence[float]]:
        def run(count: int) -> Sequence[float]:
            times = []
            for _ in range(count):
                time = milliseconds * self.slowness() * (1 + abs(self.random.gauss(0, self.noise)))
                if self.random.random() < 0.02:
                    time *= 5
                times.append(time)
                self.spent += time
            self.runs[milliseconds] = self.runs.get(milliseconds, 0) + count
            return times

        return run


def test_the_best_wins_on_a_machine_that_drifts():
    wrong = []
    for seed in range(100):
        machine = Machine(seed)
        times = [1.3, 1.0, 1.02, 1.1, 2.0, 5.0, 1.05]
        machine.random.shuffle(times)
        outcome = race([machine.runner(time) for time in times], [()] * 7, 125)
        if times[outcome.winner] != 1.0:
            wrong.append((seed, times[outcome.winner]))
    assert len(wrong) <= 5 and all(time <= 1.05 for _, time in wrong), wrong


def test_the_hopeless_run_once_or_twice():
    machine = Machine(1)
    outcome = race([machine.runner(time) for time in (1.0, 100.0, 9.0, 2.5)], [()] * 4, 125)
    assert outcome.winner == 0
    assert machine.runs[100.0] <= 2 and machine.runs[9.0] <= 2 and machine.runs[2.5] <= 4


def test_what_is_sure_ends_early():
    machine = Machine(2, noise=0.001, drift=0)
    race([machine.runner(time) for time in (1.0, 1.2, 1.3)], [()] * 3, 10_000)
    assert machine.spent < 50


def test_the_budget_ends_what_is_not_sure():
    machine = Machine(3, noise=0.5)
    race([machine.runner(time) for time in (1.0, 1.001)], [()] * 2, 100)
    assert machine.spent < 2 * 100 * 2.5 + 50


def test_ties_go_to_the_one_with_fewer_resources():
    for place in range(3):
        machine = Machine(4)
        resources = [(64, 10)] * 3
        resources[place] = (64, 9)
        outcome = race([machine.runner(1.0) for _ in range(3)], resources, 2000)
        assert outcome.winner == place


def test_fewer_resources_do_not_win_what_is_no_tie():
    machine = Machine(5, noise=0.001)
    outcome = race([machine.runner(1.03), machine.runner(1.0)], [(1,), (100,)], 2000)
    assert outcome.winner == 1


class BusyMachine(Machine):
    """Others use it: each slot waits for them."""

    def __init__(self, seed: int, wait: float) -> None:
        super().__init__(seed, noise=0.05, drift=0)
        self.wait, self.now = wait, 0.0

    def runner(self, milliseconds: float) -> Callable[[int], Sequence[float]]:
        run = super().runner(milliseconds)

        def slot(count: int) -> Sequence[float]:
            self.now += self.wait + milliseconds * count / 1000
            return run(count)

        return slot

    def race(self, times: Sequence[float], most_ms: float = 125) -> Outcome:
        runners = [self.runner(time) for time in times]
        return race(runners, [()] * len(times), most_ms, final_ms=400, clock=lambda: self.now)


def test_the_clock_ends_a_race_on_a_busy_machine():
    times = [0.1 + 0.0003 * place for place in range(8)]
    machine = BusyMachine(8, wait=0.02)
    outcome = machine.race(times)
    assert machine.now < 8 * 0.125 + 0.03 and not outcome.is_certain
    assert outcome.winner >= 0 and outcome.timings[outcome.winner] is not None
    idle = BusyMachine(8, wait=0.0)
    assert idle.race(times).is_certain


def test_one_round_is_run_however_late_it_is():
    machine = BusyMachine(9, wait=3.0)
    outcome = machine.race([0.1, 0.3])
    assert outcome.rounds == 1 and outcome.winner == 0
    assert outcome.is_certain  # three times the time is no tie


def test_long_kernels_have_their_rounds():
    machine = BusyMachine(10, wait=0.0)
    outcome = machine.race([100.0, 100.1, 100.2])
    assert outcome.rounds >= 3


def fail(count: int) -> Sequence[float]:
    raise RuntimeError("broken")


def test_what_fails_is_out():
    machine = Machine(6)
    outcome = race([fail, machine.runner(1.0), fail], [()] * 3, 100)
    assert outcome.winner == 1 and set(outcome.failures) == {0, 2}
    assert outcome.timings[0] is None and outcome.timings[1].median > 0


def test_what_fails_later_is_out():
    machine = Machine(7)
    good, calls = machine.runner(0.5), []

    def later(count: int) -> Sequence[float]:
        calls.append(count)
        if len(calls) > 3:
            raise RuntimeError("broken")
        return good(count)

    outcome = race([later, machine.runner(0.6)], [()] * 2, 1000)
    if outcome.failures:
        assert outcome.winner == 1


@pytest.mark.parametrize("runs", [[], [fail], [fail, fail]])
def test_nobody_wins(runs):
    outcome = race(runs, [()] * len(runs), 100)
    assert outcome.winner == -1 and len(outcome.failures) == len(runs)


def test_times_of_nothing():
    outcome = race([lambda count: [0.0] * count, lambda count: [1.0] * count], [()] * 2, 10)
    assert outcome.winner == 0
