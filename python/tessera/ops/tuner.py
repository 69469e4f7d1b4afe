# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tessera tune ops`: makes a table of tuning.py for this machine.

Each piece of work is a call of an operator, forward or backward, on arrays of one shape and type. Its
launchers ask tuning.py for numbers. The numbers of a question are chosen one after the other. Threads
compile the candidates for a number. A race (tuning/race.py) then times them. If several are equally fast,
the choice so far wins. It is kept while other questions of the same call are answered.

On a GPU, calls are timed by events. The GPU sleeps until the host has put all calls of a slot on the
stream, so the host's time is not measured. Needs torch.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import itertools
import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Sequence

from tessera import _C, ops
from tessera.errors import LaunchError, TesseraError
from tessera.machine.devices import WARP_SIZE
from tessera.ops import indexing, losses, scans, softmaxes, tuning
from tessera.ops import normalizations as norms
from tessera.ops.arguments import dtype_of
from tessera.ops.differentiation import Operator
from tessera.ops.launching import power_of_2
from tessera.ops.tuning import Choice, Entry, Question, Table
from tessera.settings import settings as run_settings
from tessera.tuning.race import race

Shape = tuple[int, int]
SHAPES: Sequence[Shape] = ((4096, 4096), (1 << 16, 256), (256, 1 << 16), (8192, 1024), (512, 512))
"""Lines and their length, the most important first."""
CPU_SHAPES: Sequence[Shape] = ((4096, 1024), (1 << 16, 64), (16384, 256), (512, 8192))
DTYPES = ("float32", "bfloat16")

VALUES = {
    "tile": (256, 512, 1024, 2048, 4096, 8192),
    "block": (1, 4, 16, 64, 128),
    "lanes": (1, 2, 4, 8, 32),
    "warps": (1, 2, 4, 8, 16),
}
CPU_VALUES = {"tile": (64, 128, 256, 1024, 4096), "block": (1, 4, 16, 64), "lanes": (1, 4, 16)}
_RACE_MS, _DEVICE_RACE_MS = 12.0, 60.0
_SLEEP_CYCLES = 600_000
"""For each call that is put on the stream: 0.3 ms."""


class Work(NamedTuple):
    """A call to tune."""

    name: str
    call: Callable[[], Any]


class Settings(NamedTuple):
    """The work, and the time for it."""

    device: str = "cpu"
    shapes: Sequence[Shape] = ()
    dtypes: Sequence[str] = DTYPES
    only: Sequence[str] = ()
    """Parts of names of operators; all for none."""
    seconds: float = 600.0
    """After so long, no other call is tuned."""
    threads: int = 8


def tune(settings: Settings, report: Callable[[str], None] = lambda line: None) -> Table:
    """The table of this machine. `report` gets a line for each answer."""
    with run_settings.override(recompile_warning=0):  # that is what tuning does
        return _tune(settings, report)


def _tune(settings: Settings, report: Callable[[str], None]) -> Table:
    start = time.monotonic()
    device = 0 if settings.device == "cuda" else -1
    entries: dict[Question, Entry] = {}
    shapes = settings.shapes or (CPU_SHAPES if device < 0 else SHAPES)
    for (lines, length), dtype in itertools.product(shapes, settings.dtypes):
        try:
            calls = list(works((lines, length), dtype, settings.device))
        except RuntimeError as error:  # too little memory
            report(f"{lines}x{length}: {error}")
            continue
        for work in calls:
            if settings.only and not any(part in work.name for part in settings.only):
                continue
            if time.monotonic() - start > settings.seconds:
                break
            try:
                for entry in _Tuning(work, device, settings.threads, set(entries)).run():
                    entries[entry.question] = entry
                    report(f"{work.name}: {line_of(entry)}")
            except (TesseraError, RuntimeError) as error:  # the others still have entries
                report(f"{work.name} of {lines}x{length}: {error}")
    made = {
        "date": datetime.date.today().isoformat(),
        "build": _C.build_id(),
        "seconds": round(time.monotonic() - start, 1),
    }
    return Table(tuning.machine_of(device), made, list(entries.values()))


def summary(table: Table) -> str:
    """A line for each kernel: how many entries it has, and what they gain."""
    gains: dict[str, list[float]] = {}
    for question, _, gain in table.entries:
        gains.setdefault(f"{question.kernel} {question.layout}", []).append(gain)
    lines = [
        f"{name:40} {len(each):3} entries, {math.prod(each) ** (1 / len(each)):.2f} times as fast, "
        f"at most {max(each):.2f}"
        for name, each in gains.items()
    ]
    machine = table.machine
    return "\n".join(
        [*lines, f"{machine.name}, {len(table.entries)} entries in {table.made['seconds']} s"]
    )


def line_of(entry: Entry) -> str:
    """An entry for people."""
    kernel, layout, size, length, lines = entry.question
    numbers = ", ".join(f"{name} {value}" for name, value in entry.choice.items())
    return f"{kernel} {lines}x{length} {layout} of {size} bytes: {numbers} ({entry.gain:.2f})"


def works(shape: Shape, dtype: str, device: str) -> Iterator[Work]:
    """The calls for one shape."""
    import torch

    lines, length = shape
    torch.manual_seed(0)
    x = torch.randn(lines, length, device=device).to(getattr(torch, dtype))
    weight = torch.ones(length, dtype=x.dtype, device=device)
    targets = torch.randint(length, (lines,), device=device)
    columns = torch.randint(min(lines, length), (lines, length), device=device)
    rows = torch.randint(lines, (lines,), device=device)
    kind = dtype_of(x)
    for dim in (1, 0):
        yield from _both(f"softmax {dim}", softmaxes._softmax, x, dim=dim, dtype=kind, is_log=False)
        yield from _both(f"cumsum {dim}", scans._cumsum, x, dim=dim, dtype=kind)
        yield from _both(f"cummax {dim}", scans._extremum, x, dim=dim, is_max=True)
        yield Work(f"argmax {dim}", functools.partial(ops.argmax, x, dim))
        yield Work(f"gather {dim}", functools.partial(ops.gather, x, dim, columns))
    losses_of = {"ignored": -100, "smoothing": 0.0, "z": 0.0, "reduction": "none"}
    yield from _both("cross_entropy", losses._classes, x, targets, None, **losses_of)
    yield from _both(
        "layer_norm",
        norms._layer,
        x,
        None,
        weight,
        weight,
        length=length,
        eps=1e-5,
        is_centred=True,
    )
    yield from _both("embedding", indexing._select, x, rows, dim=0, padding=None, extent=lines)
    angles = torch.randn(lines, length // 2, device=device)
    yield Work("rotary", functools.partial(ops.apply_rotary_emb, x[None, None], angles, angles))
    yield Work("dropout", lambda: ops.dropout(x, seed=1))


def _both(name: str, op: Operator, *arrays: Any, **settings: Any) -> Iterator[Work]:
    """The forward pass, and the backward pass without autograd, whose threads are its own."""
    yield Work(name, functools.partial(op.forward, *arrays, **settings))
    found: list[Any] = []

    def backward() -> Any:
        if not found:
            found.append(op.forward(*arrays, **settings))
        results, saved = found[0]
        assert op.backward is not None
        return op.backward(saved, results, [True] * len(arrays), **settings)

    yield Work(f"{name} backward", backward)


class _Tuning:
    """Answers the questions of one call."""

    def __init__(self, work: Work, device: int, threads: int, known: set[Question]) -> None:
        self._work, self._device, self._threads, self._known = work, device, threads, known
        self._values = CPU_VALUES if device < 0 else VALUES
        self._answers = threading.local()
        self._asked: dict[Question, tuple[Choice, Sequence[str]]] = {}
        self._chosen: dict[Question, Choice] = {}

    def run(self) -> Iterator[Entry]:
        """The entries of the questions that are new."""
        with tuning.watched(self._watch):
            self._work.call()
            for question, (default, names) in list(self._asked.items()):
                used = [name for name in names if name in self._values]
                if used and question not in self._known:
                    yield self._answer(question, default, used)

    def _watch(self, question: Question, default: Choice, names: Sequence[str]) -> Choice:
        self._asked.setdefault(question, (default, names))
        tried = getattr(self._answers, "tried", {})
        return tried.get(question) or self._chosen.get(question) or default

    def _answer(self, question: Question, default: Choice, names: Sequence[str]) -> Entry:
        """Chooses one number after the other, beginning with the first name."""
        best, gain = default, 1.0
        for name in names:
            tried = [best._replace(**{name: value}) for value in self._values[name]]
            best, part = self._fastest(question, [best, *tried])
            gain *= part
        self._chosen[question] = best
        return Entry(question, {name: getattr(best, name) for name in names}, round(gain, 2))

    def _fastest(self, question: Question, tried: Sequence[Choice]) -> tuple[Choice, float]:
        """The fastest, and the time of the first by its time."""
        different: dict[Any, Choice] = {}
        for choice in tried:
            if choice is tried[0] or is_sensible(question, choice):
                different.setdefault(effect(question, choice), choice)
        with ThreadPoolExecutor(self._threads) as pool:  # compiles
            are_right = pool.map(lambda each: self._works(question, each), different.values())
            found = [each for each, is_right in zip(different.values(), are_right) if is_right]
        clock = _host_times if self._device < 0 else _device_times
        runs = [
            functools.partial(clock, functools.partial(self._call, question, each))
            for each in found
        ]
        most = _RACE_MS if self._device < 0 else _DEVICE_RACE_MS
        outcome = race(runs, [(place > 0,) for place in range(len(found))], most)
        first, last = (outcome.timings[max(0, at)] for at in (0, outcome.winner))
        if outcome.winner < 0 or first is None or last is None:
            return tried[0], 1.0
        return found[outcome.winner], first.fast / last.fast

    def _call(self, question: Question, choice: Choice) -> None:
        self._answers.tried = {question: choice}
        try:
            self._work.call()
        finally:
            self._answers.tried = {}

    def _works(self, question: Question, choice: Choice) -> bool:
        """Compiles and runs a candidate. False if it takes more than the machine has."""
        try:
            self._call(question, choice)
        except TesseraError:
            return False
        return True


def effect(question: Question, choice: Choice) -> tuple[int, ...]:
    """Elements of a line in a tile, lines in it, and warps. Choices with the same effect are equal."""
    longest = power_of_2(question.length)
    if question.layout == "rows":
        block = min(longest, choice.tile)
        lanes = min(power_of_2(question.lines), max(1, choice.tile // block), choice.lanes)
    else:
        block = min(longest, choice.block)
        lanes = max(1, choice.tile // block)
    return block, lanes, choice.warps


def is_sensible(question: Question, choice: Choice) -> bool:
    """False for tiles that are narrower than a vector, or have too few or many elements for a warp."""
    block, lanes, warps = effect(question, choice)
    if question.layout == "columns" and lanes < WARP_SIZE:
        return False
    return question.layout == "flat" or block * lanes >= WARP_SIZE * warps or warps == 1


def _host_times(call: Callable[[], Any], count: int) -> list[float]:
    """The milliseconds of calls on a CPU; of the thread itself, if it is the only one."""
    clock = time.thread_time_ns if run_settings.num_threads == 1 else time.perf_counter_ns
    times = []
    for _ in range(count):
        start = clock()
        call()
        times.append((clock() - start) / 1e6)
    return times


def _device_times(call: Callable[[], Any], count: int) -> list[float]:
    """The milliseconds of calls on a GPU."""
    import torch

    events = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        for _ in range(count)
    ]
    torch.cuda._sleep(_SLEEP_CYCLES * count)
    for start, end in events:
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in events]


# --- The command ----------------------------------------------------------------------


def run(given: argparse.Namespace) -> int:
    """Makes the table, and writes it. Returns the exit status."""
    _check_torch(given.device)
    _check_options(given)
    settings = Settings(
        given.device, parse_shapes(given.shapes), given.dtypes or DTYPES, given.only, given.seconds,
        given.threads,
    )  # fmt: skip
    table = tune(settings, lambda line: print(line, file=sys.stderr, flush=True))
    if given.output:
        Path(given.output).write_text(table.text(), encoding="utf-8")
    else:
        print(table.text(), end="")
    print(summary(table), file=sys.stderr)
    return 0 if table.entries else 1


def _check_torch(device: str) -> None:
    """Raises LaunchError (E059) if torch has no such device."""
    try:
        import torch
    except ImportError:
        raise LaunchError(
            "E059",
            "`tune ops` makes its arrays with torch, which is not installed",
            "install torch",
        ) from None
    if device == "cuda" and not (torch.cuda.is_available() and _C.cuda_is_available()):
        raise LaunchError(
            "E059", "`tune ops` finds no GPU that torch can use", "leave --device cuda out"
        )


_TYPES = ("float16", "bfloat16", "float32", "float64")


def _check_options(given: argparse.Namespace) -> None:
    """Raises LaunchError (E059) before any work that could not end well."""
    wrong = [each for each in given.dtypes or () if each not in _TYPES]
    if wrong:
        raise LaunchError("E059", f"--dtypes got {' '.join(wrong)}", f"write {', '.join(_TYPES)}")
    if given.threads < 1:
        raise LaunchError("E059", f"--threads got {given.threads}", "write a number from 1 on")
    names = [work.name for work in works((2, 2), "float32", "cpu")]
    wrong = [part for part in given.only if not any(part in name for name in names)]
    if wrong:
        known = ", ".join(name for name in names if not name.endswith("backward"))
        raise LaunchError("E059", f"--only got {' '.join(wrong)}", f"write parts of {known}")
    if given.output and not Path(given.output).absolute().parent.is_dir():
        raise LaunchError(
            "E059", f"--output got {given.output}", "write a file in a folder that exists"
        )


def parse_shapes(texts: Sequence[str]) -> list[Shape]:
    """Shapes such as 4096x1024. Raises LaunchError (E059)."""
    try:
        shapes = [
            (int(lines), int(length)) for lines, length in (each.split("x") for each in texts)
        ]
        if any(min(shape) < 1 for shape in shapes):
            raise ValueError
    except ValueError:
        raise LaunchError(
            "E059", f"--shapes got {' '.join(texts)}", "write lines x length: 4096x1024"
        ) from None
    return shapes
