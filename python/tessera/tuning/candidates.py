# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A candidate: a configuration that is specialised, compiled and launched.

The thread that tunes runs user code (hooks, heuristics, grid functions) and reads arguments, one
candidate after the other. All candidates are compiled at once in threads, because the core does not
hold Python's interpreter lock while it compiles. A launch then takes no way through Python but one
call, so that what is measured is the kernel.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Collection,
    Hashable,
    Iterator,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
)

from tessera import _C
from tessera.errors import raise_core_error
from tessera.machine.devices import free_cpus, usable_cpus
from tessera.runtime.cuda import consumer_of, find_place, find_stream, read_stream
from tessera.runtime.estimates import estimate_slots
from tessera.runtime.memory_ranges import memory_of_slots
from tessera.runtime.grid import Meta, normalize_grid
from tessera.runtime.jit import JITFunction
from tessera.runtime.kernel import check_writeable
from tessera.runtime.launching import make_variant
from tessera.runtime.specialize import PointerSlot, check_memory
from tessera.settings import settings
from tessera.tuning.config import Config
from tessera.tuning.heuristics import Heuristics

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class Access(NamedTuple):
    """An array argument, and what a kernel may do to it."""

    pointer: PointerSlot
    is_loaded: bool
    is_stored: bool


class Candidate(Protocol):
    """One configuration of one launch."""

    config: Config
    named: dict[str, Any]
    """All arguments by name, for hooks."""
    values: list[Any]
    """The argument for each parameter, once it is prepared."""

    def prepare(self) -> None:
        """Looks at the arguments. Raises what is wrong with them for this configuration."""

    def compile(self) -> None:
        """Compiles; from any thread. Raises what is wrong with the kernel."""

    def launch(self, stream: Optional[int] = None) -> None:
        """Runs the kernel: to its end on the CPU, put on `stream` or the arguments' on a GPU."""

    @property
    def device(self) -> int:
        """The GPU that it runs on, -1 for the CPU."""

    @property
    def stream(self) -> int:
        """The stream on that GPU."""

    @property
    def identity(self) -> Hashable:
        """Equal for candidates that launch the very same."""

    @property
    def resources(self) -> tuple[int, ...]:
        """The resources that it takes; of candidates that are equally fast, the one with the least
        wins."""

    def accesses(self) -> Sequence[Access]:
        """How it accesses its arrays."""

    def estimate(self) -> float:
        """The expected time, in microseconds on a GPU; on a CPU only good for an order."""

    @property
    def fixed_grid(self) -> Any:
        """The grid if it is the same for all configurations; None if it is a function of them."""

    def constants(self) -> Mapping[str, Any]:
        """The constexprs by name, once it is prepared."""

    def tile_extents(self) -> Collection[str]:
        """Which of them extents of tiles are made of."""


class Compiled:
    """A candidate of a kernel of ours."""

    def __init__(
        self,
        config: Config,
        fn: JITFunction,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        named: dict[str, Any],
    ) -> None:
        self.config = config
        self.named = named
        self.values: list[Any] = []
        self._fn, self._grid, self._args, self._kwargs = fn, grid, args, dict(kwargs)
        self.device = -1
        self.stream = 0
        self.kernel: Any = None

    def prepare(self) -> None:
        fn = self._fn
        if self.config.pre_hook is not None:  # which may change arguments
            self.config.pre_hook(self.named)
        for hook in fn.pre_run_hooks:
            hook(*self._args, **self._kwargs)
        self.values, given = fn._bind(self._args, self._kwargs)
        options = fn._options(given)
        self._bound = fn._specialise(self.values, consumer_of(self.values, options.stream))
        pointers = self._bound.pointers
        place = find_place(pointers, options.target)
        self.options = options.resolved(None) if place is None else place.resolve(options)
        check_memory(pointers)
        self.extents = normalize_grid(self._grid, Meta(fn.params, self.values, self.options))
        if place is not None:
            self.device = place.device
            source = find_stream(pointers, place.device, options.stream)
            self.stream = read_stream(source, place.device)

    def compile(self) -> None:
        found = self._fn._kernel(self._bound, self.options)
        self.kernel = found.kernel
        self._record = _C.LaunchRecord(
            found.family(may_divide=False),
            self._bound.slots,
            num_threads=self.options.num_threads,
            device=self.device,
        )
        if any(item.pointer.read_only for item in self._bound.pointers):
            check_writeable(self.kernel._stored_arguments(), self._bound)

    def launch(self, stream: Optional[int] = None) -> None:
        memory = None
        if self.device < 0 and self.options.checks_accesses:
            memory = memory_of_slots(len(self._bound.slots), self._bound.pointers, self.values)
        chosen = self.stream if stream is None else stream
        try:
            self.kernel = self._record.launch(self.extents, chosen, self._make, None, memory)
        except _C.CoreError as error:
            raise_core_error(error)

    def _make(self, variant: _C.Variant) -> Any:
        return make_variant(self._fn, self._bound, self.options, variant)

    @property
    def identity(self) -> Hashable:
        code = self.kernel._kernel.stage("cubin") if self.device >= 0 else None
        if code is None:
            return (id(self.kernel._kernel), self.extents, self.options.num_threads)
        # Options that a kernel has no use for, such as stages without a loop, change nothing.
        return (code, self.extents, self.kernel.num_warps, self.kernel.shared)

    @property
    def resources(self) -> tuple[int, ...]:
        facts = self.kernel.metadata
        registers = facts.get("num_registers", 0) * facts.get("num_warps", 0)
        return registers, facts.get("shared_bytes", 0), facts.get("scratch_bytes", 0)

    def accesses(self) -> Sequence[Access]:
        arguments = self.kernel.metadata["arguments"]
        return [
            Access(item, bool(facts.get("loaded")), bool(facts.get("stored")))
            for item in self._bound.pointers
            for facts in (arguments[item.slot],)
        ]

    @property
    def fixed_grid(self) -> Any:
        return None if callable(self._grid) else self._grid

    def constants(self) -> Mapping[str, Any]:
        pairs = zip(self._fn.params, self.values)
        return {param.name: value for param, value in pairs if param.is_constexpr}

    def tile_extents(self) -> Collection[str]:
        from tessera.tuning.automatic import find_extents

        return find_extents(self._fn)

    def estimate(self) -> float:
        programs = max(1, self.extents[0] * self.extents[1] * self.extents[2])
        if self.device < 0:
            # Threads that have nothing to do while the last programs run.
            places = self.options.num_threads or usable_cpus()
            return _idle(programs, places)
        found = estimate_slots(
            self.kernel._kernel,
            self.device,
            self.extents,
            self._bound.slots,
            self._bound.pointers,
            self.values,
        )
        return found.microseconds


def _idle(programs: int, places: int) -> float:
    """How many times as long as if all places had a program all the time."""
    return math.ceil(programs / places) * places / programs


class Called:
    """A candidate of something else that has a `run`."""

    device = -1
    stream = 0
    resources: tuple[int, ...] = ()
    values: list[Any] = []

    def __init__(self, config: Config, run: Callable[[], Any], named: dict[str, Any]) -> None:
        self.config = config
        self.named = named
        self._run = run

    def prepare(self) -> None:
        pass

    def compile(self) -> None:
        pass

    def launch(self, stream: Optional[int] = None) -> None:
        if self.config.pre_hook is not None:
            self.config.pre_hook(self.named)
        self._run()

    @property
    def identity(self) -> Hashable:
        return id(self)

    def accesses(self) -> Sequence[Access]:
        return ()

    fixed_grid = None

    def constants(self) -> Mapping[str, Any]:
        return {}

    def tile_extents(self) -> Collection[str]:
        return ()

    def estimate(self) -> float:
        return 1.0


def make_candidate(
    config: Config,
    fn: Any,
    arg_names: Sequence[str],
    grid: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Candidate:
    """The candidate for a launch `fn[grid](*args, **kwargs)` with a configuration."""
    given = {**kwargs, **config.all_kwargs()}
    named = {**dict(zip(arg_names, args)), **given}
    inner = fn
    while isinstance(inner, Heuristics):
        given = inner._evaluated(args, given)
        inner = inner.fn
    if isinstance(inner, JITFunction):
        inner._is_tuned = True
        return Compiled(config, inner, grid, args, given, named)
    more = {} if grid is None else {"grid": grid}
    return Called(config, lambda: fn.run(*args, **more, **kwargs, **config.all_kwargs()), named)


def compile_all(
    candidates: Sequence[Candidate], done: Callable[[Candidate, Optional[Exception]], None]
) -> None:
    """Compiles all of them at once, and calls `done` with each one and its error."""
    if len(candidates) == 1 or settings.dump_dir or settings.override_dir:
        # The dumps of each stage are easier to read in order.
        for candidate in candidates:
            done(candidate, _attempt(candidate.compile))
        return
    from concurrent.futures import as_completed

    with compiling_threads(len(candidates)) as pool:
        futures = {pool.submit(_attempt, item.compile): item for item in candidates}
        for future in as_completed(futures):
            done(futures[future], future.result())


@contextmanager
def compiling_threads(jobs: int) -> "Iterator[ThreadPoolExecutor]":
    """Threads for so many compilations. When the block ends, also after Ctrl-C, compilations that
    have not begun are dropped. Those that have begun end after their current pass."""
    from concurrent.futures import ThreadPoolExecutor

    cancellation = _C.Cancellation()
    pool = ThreadPoolExecutor(
        max(1, min(jobs, free_cpus())),
        thread_name_prefix="tessera-tune",
        initializer=_C.compile_until,
        initargs=(cancellation,),
    )
    try:
        yield pool
    finally:
        cancellation.cancel()
        pool.shutdown(wait=False, cancel_futures=True)


def _attempt(action: Callable[[], None]) -> Optional[Exception]:
    try:
        action()
    except Exception as error:
        return error
    return None
