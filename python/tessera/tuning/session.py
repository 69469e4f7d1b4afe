# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One tuning, from the list of configurations to the choice.

    prepare    each candidate looks at the arguments, one after the other
    compile    all at once
    compare    on request: whether they compute the same
    measure    in a race, or by the function that the user gave; where the grid does not follow
               the tiles, what the first runs write is compared (coverage.py)
    clean up   what the runs changed is as it was before

A candidate's error (too much shared memory, a static_assert, an option that is out of range)
removes that candidate and stops no other.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

from tessera.errors import LaunchError, TesseraError, TuningError, TuningWarning
from tessera.tuning.arrays import Copies, find_changed, zero
from tessera.tuning.candidates import Access, Candidate, compile_all
from tessera.tuning.clocks import Clock, DeviceClock, GraphClock, HostClock
from tessera.tuning.config import Config, shortly
from tessera.tuning.coverage import Coverage, find_coverage
from tessera.tuning.heuristics import number_of
from tessera.tuning.progress import Progress, reasons, shown_ms
from tessera.tuning.race import Standing, Timing, race
from tessera.wording import counted, shown_place

WARMUP_MS, REP_MS, FINAL_MS = 25.0, 100.0, 400.0

# Measurements disturb each other, those of other kernels too.
_MEASURING = threading.RLock()


class Hooks(NamedTuple):
    """The hooks of each launch while a kernel is tuned."""

    pre_hook: Optional[Callable[..., Any]] = None
    post_hook: Optional[Callable[..., Any]] = None
    reset_to_zero: Sequence[str] = ()
    restore_value: Sequence[str] = ()
    do_bench: Optional[Callable[..., Any]] = None
    use_cuda_graph: bool = False
    most_ms: float = WARMUP_MS + REP_MS
    """How long a candidate runs at most, of the time that is measured."""
    final_ms: float = 0.0
    """How long the last few may run, if that is more."""
    check: Optional[bool] = None
    """True if results are compared; None where a grid that follows no tile makes a doubt."""
    most_measured: Optional[int] = None
    """How many candidates are measured at most, by the compiler's figures of each."""
    measures_one: bool = False
    """True if a candidate without a rival is measured, too."""


class Choice(NamedTuple):
    """The result of a tuning."""

    best: int
    """The place of the best one in the list of configurations."""
    timings: list[Optional[Timing]]
    failures: dict[Config, Exception]
    seconds: float
    is_certain: bool
    """False if the machine was too busy to measure enough in time."""


def choose(kernel: str, candidates: Sequence[Candidate], hooks: Hooks, told: Progress) -> Choice:
    """The fastest of the candidates. Raises TuningError (E059) if none works."""
    session = _Session(kernel, candidates, hooks, told)
    try:
        return session.run()
    except BaseException:
        told.stop()
        raise


class _Session:
    def __init__(
        self, kernel: str, candidates: Sequence[Candidate], hooks: Hooks, told: Progress
    ) -> None:
        self._kernel = kernel
        self._all = list(candidates)
        self._hooks = hooks
        self._told = told
        self._failures: dict[int, Exception] = {}
        self._is_certain = True

    def run(self) -> Choice:
        start = time.monotonic()
        self._told.begin(len(self._all))
        self._compile()
        working = self._narrowed(self._working())
        timings: list[Optional[Timing]] = [None] * len(self._all)
        with _MEASURING:
            changes = _Changes([self._all[place] for place in working], self._hooks)
            try:
                if self._hooks.check is not False:
                    firsts = [self._all[group[0]] for group in self._same(working)]
                    changes.watch(self._kernel, firsts)
                if self._hooks.check:
                    # First, or those that do the same part of the work would be the majority.
                    self._look(changes)
                    working = self._compare(working, changes)
                if self._hooks.do_bench is not None:
                    best = self._bench(working, changes, timings)
                else:
                    best = self._race(working, changes, timings)
            finally:
                changes.undo()
        failures = {self._all[place].config: error for place, error in self._failures.items()}
        timing = timings[best]
        faster = None
        if timing is not None:
            known = [(one.median, place) for place, one in enumerate(timings) if one is not None]
            least, place = min(known)
            # Below what is shown, two times are one.
            if shown_ms(least) != shown_ms(timing.median):
                faster = self._all[place].config, least
        median = timing.median if timing else None
        self._told.end(self._all[best].config, median, failures, faster, self._is_certain)
        return Choice(best, timings, failures, time.monotonic() - start, self._is_certain)

    def _compile(self) -> None:
        places = {id(candidate): place for place, candidate in enumerate(self._all)}
        ready = []
        for candidate in self._all:
            try:
                candidate.prepare()
                ready.append(candidate)
            except Exception as error:
                self._fail(candidate, places[id(candidate)], error)
        done = len(self._failures)

        def note(candidate: Candidate, error: Optional[Exception]) -> None:
            nonlocal done
            done += 1
            if error is not None:
                self._fail(candidate, places[id(candidate)], error)
            self._told.compiling(done, len(self._all), len(self._failures))

        if ready:
            compile_all(ready, note)

    def _fail(self, candidate: Candidate, place: int, error: Exception) -> None:
        self._failures[place] = error
        # Hooks see a launch that failed, as they do where the kernel is compiled by the launch.
        hooks = self._hooks
        if hooks.post_hook is not None:
            if hooks.pre_hook is not None:
                self._call("pre_hook", hooks.pre_hook, candidate.named)
            self._call("post_hook", hooks.post_hook, candidate.named, exception=error)

    def _working(self) -> list[int]:
        """The places of the candidates that have not failed."""
        places = [place for place in range(len(self._all)) if place not in self._failures]
        if not places:
            raise self._nothing_works()
        return places

    def _narrowed(self, working: list[int]) -> list[int]:
        """The candidates with the best of the compiler's figures, if there are many."""
        most = self._hooks.most_measured
        if most is None or len(working) <= most:
            return working
        order = sorted(working, key=lambda place: (self._all[place].estimate(), place))
        return sorted(order[:most])

    def _nothing_works(self) -> Exception:
        failures = {self._all[place].config: error for place, error in self._failures.items()}
        first = next(iter(failures.values()))
        texts = {str(error) for error in failures.values()}
        if len(texts) == 1 and isinstance(first, TesseraError):
            return first  # which is not the configurations' fault
        lines = "".join(f"\n  {line}" for line in reasons(failures))
        text = f"none of the {counted(len(failures), 'configuration')}"
        error = TuningError(
            "E059",
            f"{text} of kernel `{self._kernel}` works:{lines}",
            "fix one of them, or add others",
        )
        error.failures = failures
        error.__cause__ = first
        return error

    def _compare(self, working: list[int], changes: "_Changes") -> list[int]:
        from tessera.tuning.compare import find_differing

        differing = find_differing(
            [self._all[place] for place in working], changes.accesses, changes.values
        )
        for index, why in differing.deviations.items():
            config = self._all[working[index]].config
            message = f"the configuration {shortly(config)} of kernel `{self._kernel}` {why}"
            warnings.warn(f"tessera: {message} (E059)", TuningWarning, stacklevel=2)
            if differing.is_majority:
                self._failures[working[index]] = LaunchError(
                    "E059", message, "it is not chosen; check which of the results is right"
                )
        return self._working()

    def _race(
        self, working: list[int], changes: "_Changes", timings: list[Optional[Timing]]
    ) -> int:
        clock = self._clock(self._all[working[0]])
        stream = getattr(clock, "stream", None)
        try:
            groups = self._same(working)
            runs = [self._runner(self._all[group[0]], changes, clock, stream) for group in groups]
            resources = [self._all[group[0]].resources for group in groups]

            def watch(standing: Standing) -> None:
                config = self._all[groups[standing.leader][0]].config
                left = standing.left
                self._told.measuring(standing.remaining, config, standing.milliseconds, left)

            if len(groups) == 1 and not self._hooks.measures_one:
                # There is nothing to choose; that it runs is all that is asked.
                outcome = race(runs, resources, 0.0, watch)
            else:
                most, final = self._hooks.most_ms, self._hooks.final_ms
                outcome = race(runs, resources, most, watch, final, lambda: self._judge(changes))
        finally:
            clock.close()
        self._is_certain = outcome.is_certain
        for index, group in enumerate(groups):
            for place in group:
                timings[place] = outcome.timings[index]
                if index in outcome.failures:
                    self._failures[place] = outcome.failures[index]
        for error in outcome.failures.values():
            if isinstance(error, HookError):
                raise error
        if outcome.winner < 0:
            raise self._nothing_works()
        return groups[outcome.winner][0]

    def _same(self, working: Sequence[int]) -> list[list[int]]:
        """The places in groups, each of which launches the very same kernel."""
        groups: dict[Any, list[int]] = {}
        for place in working:
            candidate = self._all[place]
            hook = candidate.config.pre_hook
            groups.setdefault((candidate.identity, hook), []).append(place)
        return list(groups.values())

    def _clock(self, first: Candidate) -> Clock:
        if first.device < 0:
            return HostClock()
        if self._hooks.use_cuda_graph:
            return GraphClock(first.device, first.stream)
        return DeviceClock(first.device, first.stream)

    def _runner(
        self, candidate: Candidate, changes: "_Changes", clock: Clock, stream: Optional[int]
    ) -> Callable[[int], Sequence[float]]:
        def before() -> None:
            changes.restore(candidate)
            self._before(candidate)

        def after() -> None:
            changes.note(candidate)
            if self._hooks.post_hook is not None:
                self._call("post_hook", self._hooks.post_hook, candidate.named, exception=None)

        def launch() -> None:
            candidate.launch(stream)

        return lambda count: clock.time(before, launch, after, count)

    def _judge(self, changes: "_Changes") -> None:
        """Once each has run: whether they do the same work. Raises TuningError (E086) if not."""
        coverage = changes.coverage
        if coverage is None:
            return

        def run_again(place: int, pattern: bytes) -> None:
            changes.restore()
            coverage.fill(pattern)
            self._run(coverage.candidates[place], lambda: coverage.note(place))

        coverage.judge(run_again, self._hooks.check is None)

    def _look(self, changes: "_Changes") -> None:
        """Judges at once, by runs that are not measured."""
        for candidate in changes.coverage.candidates if changes.coverage is not None else ():
            changes.restore(candidate)
            try:
                self._run(candidate, lambda: changes.note(candidate))
            except HookError:
                raise
            except Exception:  # which is told where it is compared, or measured
                pass
        self._judge(changes)

    def _run(self, candidate: Candidate, after: Callable[[], None]) -> None:
        self._before(candidate)
        candidate.launch()
        after()
        if self._hooks.post_hook is not None:
            self._call("post_hook", self._hooks.post_hook, candidate.named, exception=None)

    def _before(self, candidate: Candidate) -> None:
        if candidate.config.pre_hook is not None:
            self._call("pre_hook", candidate.config.pre_hook, candidate.named)
        if self._hooks.pre_hook is not None:
            self._call("pre_hook", self._hooks.pre_hook, candidate.named)

    def _bench(
        self, working: list[int], changes: "_Changes", timings: list[Optional[Timing]]
    ) -> int:
        """Has the user's function measure, one candidate after the other."""
        assert self._hooks.do_bench is not None
        for place in working:
            candidate = self._all[place]
            broken: list[Exception] = []

            def call() -> None:
                changes.restore(candidate)
                self._before(candidate)
                error: Optional[Exception] = None
                try:
                    candidate.launch()
                    changes.note(candidate)
                except Exception as raised:
                    error = raised
                if self._hooks.post_hook is not None:
                    self._call("post_hook", self._hooks.post_hook, candidate.named, exception=error)
                if error is not None:
                    broken.append(error)
                    raise error

            try:
                measured = self._hooks.do_bench(call, quantiles=(0.5, 0.2, 0.8))
            except Exception as error:
                if error not in broken:  # the function itself failed, or a hook
                    raise
                self._failures[place] = error
                continue
            timings[place] = _read_timing(measured, f"the do_bench of kernel `{self._kernel}`")
            left = [other for other in working if timings[other] is None]
            best = min(filter(None, timings))
            where = timings.index(best)
            self._told.measuring(len(left), self._all[where].config, best.median, 0.0)
        found = [place for place in working if timings[place] is not None]
        if not found:
            raise self._nothing_works()
        self._judge(changes)
        return min(found, key=lambda place: timings[place])  # type: ignore[arg-type, return-value]

    def _call(self, kind: str, hook: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        try:
            hook(*args, **kwargs)
        except Exception as error:
            code = getattr(hook, "__code__", None)
            place = f" ({shown_place(code.co_filename, code.co_firstlineno)})" if code else ""
            raise HookError(
                "E059",
                f"the {kind}{place} of kernel `{self._kernel}` raised "
                f"{type(error).__name__}: {error}",
                "it is called with a dict of all arguments by name"
                + (", and `exception=`" if kind == "post_hook" else ""),
            ) from error


class HookError(TuningError):
    """A hook raised an exception."""


class _Changes:
    """The arrays that runs change, as they were before the first run."""

    def __init__(self, candidates: Sequence[Candidate], hooks: Hooks) -> None:
        accesses: dict[Any, Access] = {}
        for candidate in candidates:  # one may load what another does not
            for access in candidate.accesses():
                known = accesses.get(access.pointer.slot, access)
                accesses[access.pointer.slot] = Access(
                    access.pointer,
                    access.is_loaded or known.is_loaded,
                    access.is_stored or known.is_stored,
                )
        first = candidates[0]
        self.accesses = list(accesses.values())
        self.values = first.values
        self.stream = first.stream
        named = [*hooks.restore_value, *hooks.reset_to_zero]
        self._regions = find_changed(self.accesses, self.values, named)
        self._copies = Copies(self._regions, self.stream)
        self.coverage: Optional[Coverage] = None
        self._zeros = []
        for name in hooks.reset_to_zero:
            value = first.named.get(name)
            if value is not None:
                self._zeros.append(zero(name, value, self.stream))

    def watch(self, kernel: str, candidates: Sequence[Candidate]) -> None:
        """From here on, checks the elements that the first run of each candidate writes, if a check
        is needed."""
        self.coverage = find_coverage(kernel, candidates, self.accesses, self._regions)

    def restore(self, candidate: Optional[Candidate] = None) -> None:
        """Before each run, that of a candidate."""
        self._copies.restore()
        for clear in self._zeros:
            clear()
        if self.coverage is not None and self.coverage.waits_for(candidate):
            self.coverage.fill()

    def note(self, candidate: Candidate) -> None:
        """After each run."""
        if self.coverage is not None and self.coverage.waits_for(candidate):
            self.coverage.note(self.coverage.candidates.index(candidate))

    def undo(self) -> None:
        """After the last one."""
        try:
            if self.coverage is not None:
                self.coverage.undo()
            self._copies.restore()
        finally:
            self._copies.free()


def _read_timing(measured: Any, whose: str) -> Timing:
    """The result of a user's function: a time, or the median, a fast and a slow one."""
    values = list(measured) if isinstance(measured, (list, tuple)) else [measured]
    numbers = [number_of(value, whose) for value in values]
    if not numbers:
        return Timing(math.inf, math.inf, math.inf)
    return Timing(numbers[0], numbers[min(1, len(numbers) - 1)], numbers[-1])
