# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches by other compilers' launchers (python/src/Runner.cpp): `kernel.run`, and what stands for
a launcher that is called again and again."""

from __future__ import annotations

import gc
import random
import sys
import types
import weakref

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import _C
from tessera.runtime import runner
from tessera.runtime.hooks import hooks
from tessera.settings import settings
from tessera.torch.launching import repeat


@tessera.jit(do_not_specialize=["n"])
def mark(out_ptr, n, value, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, value + tl.num_programs(0) * 1000, mask=at < n)


class Recorder:
    """A kernel whose launches are all done by a dispatcher's `slow`, which notes them."""

    def __init__(self) -> None:
        self.launched = []
        self.metadata = {"target": "cpu"}
        self._dispatcher = _C.Dispatcher((), self._slow, lambda error: None)

    def _slow(self, grid, args, options):
        self.launched.append((grid, args, options))
        return None, None

    def launch(self, grid, args, **options):
        self.launched.append((grid, args, options))

    def _launch(self, grid, args, is_told, **options):
        self.launched.append((grid, args, options, is_told))


OWN = (None,) * 6
"""What a launcher passes beside the extents: the stream, and what is its own."""


@pytest.fixture
def torch_threads(monkeypatch):
    threads = [3]
    torch = types.SimpleNamespace(get_num_threads=lambda: threads[0])
    monkeypatch.setitem(sys.modules, "torch", torch)
    return threads


def test_launches_have_as_many_threads_as_torch(torch_threads, monkeypatch) -> None:
    kernel = Recorder()
    run = runner.make_runner(kernel)
    assert type(run) is _C.Runner

    def threads_of_a_launch() -> int:
        run(1, 2, 3, *OWN, "x", 16)
        ((grid, args, options),) = kernel.launched
        kernel.launched.clear()
        assert (grid, args) == ((1, 2, 3), ("x", 16)) and list(options) == ["num_threads"]
        return options["num_threads"]

    assert threads_of_a_launch() == threads_of_a_launch() == 3
    torch_threads[0] = 4
    assert threads_of_a_launch() == 4
    with settings.override(num_threads=5):
        assert threads_of_a_launch() == threads_of_a_launch() == 5
        with settings.override(num_threads=2):
            assert threads_of_a_launch() == 2
        assert threads_of_a_launch() == 5
    assert threads_of_a_launch() == 4
    monkeypatch.setattr(settings, "num_threads", 7)
    assert threads_of_a_launch() == 7
    monkeypatch.setattr(settings, "num_threads", 0)
    del sys.modules["torch"]
    runner.make_runner(kernel)(2, 1, 1, *OWN, "x")
    assert kernel.launched == [((2, 1, 1), ("x",), {"num_threads": 0})]


def test_hooks_are_told_by_who_launches(torch_threads) -> None:
    kernel, told = Recorder(), []
    run = runner.make_runner(kernel)
    run(1, 1, 1, None, None, None, "told", None, None, "x")
    hooks.launch_enter.add(told.append)
    try:
        for _ in range(2):
            run(1, 1, 1, None, None, None, "told", None, None, "x")
    finally:
        hooks.launch_enter.remove(told.append)
    run(1, 1, 1, None, None, None, "told", None, None, "x")
    assert told == ["told"] * 2
    assert [len(launch) for launch in kernel.launched] == [3, 4, 4, 3]


def test_what_is_no_plain_grid_is_said_in_full() -> None:
    x = np.zeros(64, np.float32)
    kernel = mark.warmup(x, 64, 1.0, BLOCK=64)
    kernel.run(np.int64(1), True, 1, *OWN, x, 64, 2.0, 64)
    assert (x == 1002).all()
    kernel.run(0, 1, 1, *OWN, x, 64, 7.0, 64)
    assert (x == 1002).all()
    for extents in ((-1, 1, 1), (1 << 31, 1, 1), ("1", 1, 1), (1.5, 1, 1)):
        with pytest.raises(tessera.LaunchError):
            kernel.run(*extents, *OWN, x, 64, 2.0, 64)
    for wrong in ((), (1, 1, 1), (1, 1, 1, *OWN[1:])):
        with pytest.raises(TypeError):
            kernel.run(*wrong)
    with pytest.raises(TypeError):
        kernel.run(1, 1, 1, *OWN, x, 64, 2.0, 64, stream=None)
    with pytest.raises(tessera.ArgumentError):
        kernel.run(1, 1, 1, *OWN, x)


class Launchers:
    """A launcher as Inductor generates them, and what counts its calls."""

    def __init__(self, code: str, run, **more) -> None:
        self.names = {"runner": run, "calls": [], **more}
        exec(code, self.names)
        self.launcher = self.names["launcher"]
        self.slow_calls = []
        self.watched = {"on": False}

    def slow(self, *args, stream):
        self.slow_calls.append(args)
        return self.launcher(*args, stream=stream)

    def repeat(self, *args):
        return repeat(self.launcher, args, self.slow, ((self.watched, "on", False),))

    @property
    def calls(self) -> int:
        return len(self.names["calls"])


PLAIN = """
def launcher(out, n, value, stream):
    calls.append(n)
    grid_0 = (n + 31) // 32
    grid_1 = 1
    grid_2 = 1
    runner(grid_0, grid_1, grid_2, stream, None, None, None, None, None, out, n, value, 32)
"""


def test_a_launch_is_repeated_without_its_launcher() -> None:
    out = np.zeros(200, np.float32)
    run = mark.warmup(out, 100, 1.0, BLOCK=32).run
    made = Launchers(PLAIN, run)
    fast = made.repeat(out, 100, 1.0)
    assert type(fast) is _C.RepeatedRun
    assert made.calls == 2 and not out.any()  # without a kernel
    made.names["calls"].clear()

    generator = random.Random(0)
    last = None
    for _ in range(200):
        n = generator.choice([1, 31, 32, 33, 100, 128, 199, 200, 1 << 62])
        if n > 200:  # a copy of a number is that number
            n = int(str(last[0])) if last else 5
        value = generator.choice([1.0, 2.5])
        before = made.calls
        out[:] = 0
        assert fast(out, n, value, stream=0) is None
        programs = (n + 31) // 32
        assert (out[:n] == value + 1000 * programs).all() and not out[n:].any()
        # A float that changes may decide the grid, too.
        assert made.calls - before == ((n, value) != last)
        last = (n, value)
    assert not made.slow_calls


def test_what_watches_is_asked_each_time() -> None:
    out = np.zeros(64, np.float32)
    run = mark.warmup(out, 64, 1.0, BLOCK=32).run
    made = Launchers(PLAIN, run)
    fast = made.repeat(out, 64, 1.0)
    told = []

    def launch() -> int:
        before = len(made.slow_calls)
        out[:] = 0
        fast(out, 64, 1.0, stream=0)
        assert (out == 2001).all()
        return len(made.slow_calls) - before

    assert [launch(), launch()] == [0, 0]
    made.watched["on"] = True
    assert launch() == 1
    made.watched["on"] = False
    assert launch() == 0
    hooks.launch_enter.add(told.append)
    try:
        assert launch() == 1 and len(told) == 1
    finally:
        hooks.launch_enter.remove(told.append)
    assert launch() == 0
    # What is called otherwise is the business of what it stands for.
    for args, keywords in (((out, 64), {"stream": 0}), ((out, 64, 1.0), {}),
                           ((out, 64, 1.0), {"stream": 0, "more": 1})):  # fmt: skip
        with pytest.raises(TypeError, match="slow|launcher"):
            fast(*args, **keywords)
    with pytest.raises(tessera.ArgumentError):
        fast("x", 64, 1.0, stream=0)
    assert launch() == 0


def test_a_grid_of_constants() -> None:
    code = """
def launcher(out, stream):
    calls.append(1)
    runner(2, 1, 1, stream, None, None, None, None, None, out, 64, 1.0, 32)
"""
    out = np.zeros(64, np.float32)
    made = Launchers(code, mark.warmup(out, 64, 1.0, BLOCK=32).run)
    fast = made.repeat(out)
    made.names["calls"].clear()
    for _ in range(3):
        out[:] = 0
        fast(out, stream=0)
        assert (out == 2001).all()
    assert made.calls == 1


def test_arguments_go_where_the_launcher_puts_them() -> None:
    """Equal numbers are told apart, constants too, and one array may come twice."""
    code = """
def launcher(b, n, a, m, stream):
    runner(1, 1, 1, stream, None, None, None, None, None, a, b, m, n, 8)
"""

    @tessera.jit(do_not_specialize=["m", "n"])
    def both(a_ptr, b_ptr, m, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(a_ptr + at, m)
        tl.store(b_ptr + at, n, mask=at < BLOCK // 2)

    a, b = np.zeros(8, np.int32), np.zeros(8, np.int32)
    made = Launchers(code, both.warmup(a, b, 8, 8, BLOCK=8).run)
    fast = made.repeat(a, 8, a, 8)
    for first, second, m, n in (
        (a, a, 8, 8),
        (a, b, 8, 8),
        (a, b, 3, 8),
        (a, b, 3, 5),
        (b, a, 3, 5),
    ):
        for _ in range(2):
            a[:] = b[:] = 0
            fast(second, n, first, m, stream=0)
            wanted = np.full(8, m)
            if first is second:
                wanted[:4] = n
            assert (first == wanted).all()
            assert first is second or list(second) == [n] * 4 + [0] * 4


@pytest.mark.parametrize(
    "code",
    [
        # An argument is computed, so that it may be another one the next time.
        "def launcher(out, n, stream):\n"
        "    runner(1, 1, 1, stream, None, None, None, None, None, out, n * 2, 1.0, 32)",
        "def launcher(out, n, stream):\n"
        "    runner(1, 1, 1, stream, None, None, None, None, None, out, n, 1.0 if n > 64 else 2.0, 32)",
        # The grid depends on more than numbers.
        "def launcher(out, n, stream):\n"
        "    runner(len(out), 1, 1, stream, None, None, None, None, None, out, n, 1.0, 32)",
        # It launches twice, or not at all.
        "def launcher(out, n, stream):\n"
        "    for _ in range(2):\n"
        "        runner(1, 1, 1, stream, None, None, None, None, None, out, n, 1.0, 32)",
        "def launcher(out, n, stream):\n    pass",
        "def launcher(out, n, more, stream):\n"
        "    runner(1, 1, 1, stream, None, None, None, None, None, out, n, 1.0, 32)",
    ],
)  # fmt: skip
def test_launchers_that_do_more(code) -> None:
    out = np.zeros(64, np.float32)
    assert Launchers(code, mark.warmup(out, 64, 1.0, BLOCK=32).run).repeat(out, 64) is None


def test_launchers_that_call_others() -> None:
    """What torch has for GPUs, say: it gets what the launcher passes on, the stream too."""
    launched = []
    made = Launchers(PLAIN, lambda *values: launched.append(values))
    fast = made.repeat("x", 100, 1.0)
    made.names["calls"].clear()
    last = None
    for n, stream in ((100, 7), (100, 7), (100, 8), (300, 8), (300, 8), (100, 7), (100, 9)):
        for out in ("x", "y"):
            before = made.calls
            assert fast(out, n, 1.0, stream=stream) is None
            assert launched.pop() == ((n + 31) // 32, 1, 1, stream, *OWN[1:], out, n, 1.0, 32)
            assert made.calls - before == (n != last) and not launched
            last = n
    assert not made.slow_calls


def test_grids_that_are_not_plain_and_launches_that_fail_are_not_repeated() -> None:
    launched, failing = [], []

    def launch(*values) -> None:
        if failing:
            raise ValueError("no launch")
        launched.append(values[:3])

    code = """
def launcher(out, n, stream):
    calls.append(n)
    runner(n * 2.0 if n > 3 else n, n - 2, 1, stream, out)
"""
    made = Launchers(code, launch)
    fast = made.repeat("x", 3)
    made.names["calls"].clear()
    for n, grid, numbers in ((3, (3, 1, 1), 1), (5, (10.0, 3, 1), 2), (1, (1, -1, 1), 2)):
        made.names["calls"].clear()
        for _ in range(2):
            fast("x", n, stream=0)
            assert launched.pop() == grid
        assert made.calls == numbers
    fast("x", 2, stream=0)
    failing.append(1)
    for n in (2, 3, 3):
        with pytest.raises(ValueError, match="no launch"):
            fast("x", n, stream=0)
    failing.clear()
    launched.clear()
    for n in (2, 3, 2):
        fast("x", n, stream=0)
    assert launched == [(2, 0, 1), (3, 1, 1), (2, 0, 1)]


def test_what_is_wrong_is_said() -> None:
    run = mark.warmup(np.zeros(4, np.float32), 4, 1.0, BLOCK=4).run
    for sources, numbers, count in (((0, 3), (), 3), ((-1,), (), 1), ((0,), (1,), 1)):
        with pytest.raises(ValueError, match="no argument of that place"):
            _C.RepeatedRun(print, print, run, (), sources, numbers, count)
    with pytest.raises(TypeError):
        _C.RepeatedRun(print, print, print, (), (), (), 0)
    with pytest.raises(TypeError):
        _C.NotedRun()
    with pytest.raises(TypeError):
        _C.Launch()
    with pytest.raises(TypeError):
        _C.RepeatedRun(print, print, run, (), ("x",), (), 1)
    with pytest.raises(ValueError, match="too many"):
        _C.RepeatedRun(print, print, run, (), ((1,),) * 300, (), 0)


def test_circles_through_them_are_collected() -> None:
    class Owner:
        pass

    out = np.zeros(64, np.float32)
    owner = Owner()
    made = Launchers(PLAIN, mark.warmup(out, 64, 1.0, BLOCK=32).run)
    made.owner = owner
    owner.run = made.repeat(out, 64, 1.0)
    owner.run(out, 64, 1.0, stream=0)
    gone = weakref.ref(owner)
    del owner, made
    gc.collect()
    assert gone() is None
