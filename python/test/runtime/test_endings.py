# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C, slow compilations, and processes that end while kernels run or are compiled."""

from __future__ import annotations

import dataclasses
import os
import resource
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from tessera import settings
from tessera.compiler.compile import _say_slow, build
from tessera.compiler.options import CompileOptions
from tessera.compiler.toolchain import find_ptxas
from tessera.errors import SlowCompilationWarning
from tessera.runtime.signatures import parse_signature


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A process that a script starts in the background ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_cache():
    with settings.override(cache="off"):
        yield


@tessera.jit
def slow_to_compile(x, N: tl.constexpr, M: tl.constexpr = 1024):
    offsets = tl.arange(0, M)
    value = tl.load(x + offsets)
    for _ in tl.static_range(N):
        value = tl.exp(value) + tl.sort(value)
    tl.store(x + offsets, value)


X = np.zeros(1024, np.float32)


def run(
    tmp_path: Path, source: str, *args: str, timeout: int = 60
) -> "subprocess.CompletedProcess[str]":
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(source))
    return subprocess.run(
        [sys.executable, str(path), *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "TESSERA_CACHE": "off"},
    )


# --- Ctrl-C ---------------------------------------------------------------------------


def interrupted(call, delay):
    """How long after SIGINT a call raised KeyboardInterrupt, which it must."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        return time.perf_counter() - sent[0]
    finally:
        timer.cancel()
        timer.join()


def test_ctrl_c_ends_a_compilation():
    slow_to_compile[(1,)](X, 1)
    for index, delay in enumerate((0.05, 0.2, 0.4)):
        # What is asked for is 0.2 s; a busy machine takes longer to give the thread a turn.
        took = interrupted(lambda: slow_to_compile[(1,)](X, 60 + index), delay)
        assert took < 1, took
        x = np.ones(1024, np.float32)
        slow_to_compile[(1,)](x, 2)  # what was given up is in nobody's way
        assert x[0] != 1


@pytest.fixture
def slow_ptxas(tmp_path):
    """An assembler that takes its time and fails."""
    program = tmp_path / "ptxas"
    program.write_text(
        "#!/bin/sh\ncase $1 in --version) echo release 13.3;; *) sleep 1.5; exit 1;; esac\n"
    )
    program.chmod(0o755)
    with settings.override(ptxas=str(program)):
        yield lambda: slow_to_compile.warmup(tl.float32, 1, 64, target="sm_90a")


@pytest.mark.parametrize(
    "line",
    [
        "ptxas fatal   : Unsupported .version 8.7; current version is '7.0'",
        "ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'",
    ],
)
def test_an_old_ptxas(tmp_path, line):
    program = tmp_path / "ptxas"
    program.write_text(
        "#!/bin/sh\ncase $1 in --version) echo release 11.0;; "
        f'*) echo "ptxas application: here"; echo "{line}"; exit 255;; esac\n'
    )
    program.chmod(0o755)
    with settings.override(ptxas=str(program)):
        with pytest.raises(tessera.LaunchError) as error:
            slow_to_compile.warmup(tl.float32, 1, 64, target="sm_90a")
    assert error.value.id == "E063" and error.value.message.endswith(line)
    assert error.value.message.startswith(f"'{program}' is too old for this GPU or this PTX")
    assert "newer CUDA toolkit" in error.value.fix


def test_waiting_for_ptxas_takes_no_turns(tmp_path):
    # More output than a pipe holds. The system may keep both processes on one CPU.
    program = tmp_path / "ptxas"
    program.write_text(
        "#!/bin/sh\ncase $1 in --version) echo release 13.3;; *) head -c 300000 /dev/zero | "
        "tr '\\0' '\\n'; sleep 0.5; echo the end; exit 1;; esac\n"
    )
    program.chmod(0o755)
    with settings.override(ptxas=str(program)):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        with pytest.raises(tessera.InternalError, match="the end"):
            slow_to_compile.warmup(tl.float32, 2, 64, target="sm_90a")
        turns = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
    assert turns < 1500, turns  # looking each 0.1 ms, twice for 0.5 s, would take thousands


def test_ctrl_c_ends_ptxas(slow_ptxas):
    assert interrupted(slow_ptxas, 0.7) < 0.6


# Compiles what takes minutes, is interrupted by itself, and says what there is then.
INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, tessera, tessera.language as tl
from tessera.compiler.cache import default_cache

signal.signal(signal.SIGINT, signal.default_int_handler)

@tessera.jit
def chain(x, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, 64))
    for _ in tl.static_range(N):
        value = tl.exp(value) + tl.sort(value)
    tl.store(x + tl.arange(0, 64), value)

x, what, delay = np.zeros(64, np.float32), sys.argv[1], float(sys.argv[2])
chain[(1,)](x, N=1)
tuned = tessera.autotune([tessera.Config({"N": n}) for n in range(300, 316)], key=[])(chain)
call = {
    "cpu": lambda: chain[(1,)](x, N=2000),
    "cuda": lambda: chain.warmup(tl.float32, N=400, target="sm_90a"),
    "tuning": lambda: tuned[(1,)](x),
    "warmup": lambda: tuned.warmup(x),
}[what]
sent = []

def send():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(delay, send).start()
try:
    call()
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - sent[0])
chain[(1,)](x, N=2)
cache = default_cache()
names = [name for _, _, files in os.walk(cache.root) for name in files]
print("left", [name for name in names if name[0] == "." and name != ".swept"])
print("ended", time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("what, delay", [("cpu", 1), ("cuda", 2), ("tuning", 1), ("warmup", 1)])
def test_ctrl_c_leaves_nothing_behind(tmp_path, what, delay):
    if what == "cuda" and not find_ptxas():
        pytest.skip("there is no ptxas")
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, str(script), what, str(delay)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TESSERA_CACHE": "rw", "TESSERA_CACHE_DIR": str(tmp_path / "cache")},
    )
    now = time.monotonic()
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert float(said["interrupted"]) < 2, said
    assert said["left"] == "[]"
    # What was given up ends with its pass, and 10 s are the most that is waited for the core's own
    # threads; all of it would take minutes.
    assert now - float(said["ended"]) < 40, said
    verified = subprocess.run(
        [sys.executable, "-m", "tessera", "cache", "verify"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


@tessera.jit
def slow_to_run(x, n):
    value = tl.program_id(0) * 1e-9
    for i in range(n):
        value = tl.exp(value) * 0.5
    tl.atomic_add(x, 1)
    tl.store(x + 1, value)


@pytest.mark.parametrize("how", ["interpreter", "simulator"])
def test_ctrl_c_ends_what_is_interpreted(how):
    x = np.zeros(2, np.float32)

    def launch(programs):
        if how == "simulator":
            return tessera.gpu.simulate(slow_to_run)[(programs,)](x, 20)
        with settings.override(interpret=True):
            return slow_to_run[(programs,)](x, 20)

    launch(1)
    assert interrupted(lambda: launch(2_000_000), 0.3) < 1
    launch(1)


@tessera.jit
def count(x):
    tl.atomic_add(x, 1)


class Raising:
    """Raises `error` once, when a launch asks for something, and counts how often it is asked."""

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None
        self.asked = 0

    def ask(self) -> None:
        self.asked += 1
        error, self.error = self.error, None
        if error is not None:
            raise error


def launches_with(raising, where):
    """A launch that adds 1 to what it returns, and asks `raising`."""
    x = np.zeros(1, np.float32)

    class Exported:
        def __dlpack_device__(self):
            raising.ask()
            return (1, 0)

        def __dlpack__(self, **kwargs):
            return x.__dlpack__(**kwargs)

    @dataclasses.dataclass
    class Record:
        array: Any = None

        def __getattribute__(self, name):
            if name == "array":
                raising.ask()
                return x
            return super().__getattribute__(name)

    class Namespace:
        @property
        def one(self):
            raising.ask()
            return 1.0

    @tessera.jit
    def of_record(record):
        tl.atomic_add(record.array, 1)

    @tessera.jit
    def of_constant(x, constants: tl.constexpr):
        tl.atomic_add(x, constants.one)

    def grid(meta):
        raising.ask()
        return (1,)

    constants = Namespace()
    launch = {
        "grid function": lambda: count[grid](x),
        "__dlpack_device__": lambda: count[(1,)](Exported()),
        "field of a record": lambda: of_record[(1,)](Record()),
        "attribute that a kernel has read": lambda: of_constant[(1,)](x, constants),
    }[where]
    return launch, x


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, TimeoutError])
@pytest.mark.parametrize(
    "where",
    [
        "grid function",
        "__dlpack_device__",
        "field of a record",
        "attribute that a kernel has read",
    ],
)
def test_what_a_signal_handler_raises_ends_a_launch(where, raised):
    """In whatever Python a launch runs; a handler of SIGALRM, say, may raise a TimeoutError."""
    raising = Raising()
    launch, x = launches_with(raising, where)
    for _ in range(2):
        launch()
    for _ in range(2):
        x[:], raising.asked = 0, 0
        raising.error = raised("in time")
        with pytest.raises((raised, tessera.TesseraError)) as caught:
            launch()
        assert x[0] == 0 and raising.asked == 1
        # An exception that a mistake may be, too, has become the error for that.
        assert raised in (type(caught.value), type(caught.value.__cause__))
        launch()
        assert x[0] == 1


def test_a_warm_launch_calls_a_grid_function_once():
    x, calls = np.zeros(1, np.float32), []

    def grid_of(result):
        def grid(meta):
            calls.append(result)
            return result

        return grid

    for result in [1], (np.int64(1),), 1, "1":
        for _ in range(3):
            del calls[:]
            if result != "1":
                count[grid_of(result)](x)
            else:
                with pytest.raises(tessera.LaunchError, match="the grid function returned"):
                    count[grid_of(result)](x)
            assert len(calls) == 1
    assert x[0] == 9


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_launch_between_two_programs(threads):
    x = np.zeros(2, np.float32)

    def launch():
        slow_to_run[(20_000,)](x, 300_000, num_threads=threads)  # minutes

    slow_to_run[(1,)](x, 4)
    for _ in range(2):  # by the first way, and by the warm one
        x[:] = 0
        assert interrupted(launch, 0.4) < 2
        assert 0 < x[0] < 20_000
    x[:] = 0
    slow_to_run[(100,)](x, 4, num_threads=threads)
    assert x[0] == 100


def test_a_handler_that_raises_nothing_ends_no_launch():
    seen = []
    x = np.zeros(2, np.float32)
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(x[0].item()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        slow_to_run[(200,)](x, 300_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert x[0] == 200 and seen


def test_other_handlers_run_while_a_kernel_is_compiled(slow_ptxas):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(time.perf_counter()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(tessera.TesseraError):
            slow_ptxas()
        done = time.perf_counter()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen and seen[0] < done - 0.5


# --- What takes long ------------------------------------------------------------------


@pytest.mark.parametrize("is_main_thread", [True, False])
def test_a_slow_compilation_says_so_once(slow_ptxas, is_main_thread):
    def compile():
        with pytest.raises(tessera.TesseraError):
            slow_ptxas()

    with settings.override(slow_compile=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        slow_to_compile[(1,)](X, 1)
        if is_main_thread:
            compile()
        else:
            thread = threading.Thread(target=compile)
            thread.start()
            thread.join()
    (warning,) = [item for item in caught if item.category is SlowCompilationWarning]
    text = str(warning.message)
    assert re.search(
        r"`slow_to_compile` has been compiled for \d s \(E072\): .* s by ptxas, ", text
    )
    assert "unrolled" not in text and "Use smaller tiles." in text


@tessera.jit
def of_several_loops(x, N: tl.constexpr):
    total = tl.load(x)
    for i in tl.static_range(3):
        total += i
    for i in tl.static_range(N):
        total += tl.sum(tl.arange(0, 64)) * i
    for i in range(100):
        total += i
    tl.store(x, total)


@pytest.mark.parametrize(
    ("spent", "expected", "advice"),
    [
        (
            [["canonicalize", 0.5], ["tile-fold", 4.2]],
            "4.2 s by the pass `tile-fold`, 0.5 s by the pass `canonicalize`",
            "smaller tiles",
        ),
        ([["optimisation by LLVM", 4]], "4.0 s by optimisation by LLVM", "smaller tiles"),
        (
            [["", 4], ["ptxas", 1]],
            "4.0 s by steps between the passes, 1.0 s by ptxas",
            "smaller tiles",
        ),
        ([["ptxas", 0.0]], " s by the front end", "fewer calls of helper functions"),
    ],
)
def test_what_takes_long_is_named(spent, expected, advice):
    for count in (8, 40):
        specs = parse_signature(of_several_loops, {"x": "*i32"}, {"N": count})
        built = build(of_several_loops, specs, CompileOptions())
        line = of_several_loops.fn.__code__.co_firstlineno + 5
        assert built.unrolled == (__file__, line, count)
        for schedules in (1, 3):
            with pytest.warns(SlowCompilationWarning) as caught:
                _say_slow("kernel", 5, built, {"parts": spent, "schedules": schedules})
            text = str(caught[0].message)
            assert "has been compiled for 5 s (E072): " in text and expected in text
            unrolled = f"; 40 iterations of the loop at {__file__}:{line} are unrolled"
            assert (unrolled in text, "`range` for that loop" in text) == (count == 40,) * 2
            assert ("this is schedule 3" in text) == (schedules == 3)
            assert (f"Use {advice}. " in text) == (count == 8 and schedules == 1)


def test_a_slow_compilation_is_no_error(slow_ptxas, capsys):
    for seconds in (1, 0):
        with settings.override(slow_compile=seconds), warnings.catch_warnings():
            warnings.simplefilter("error", SlowCompilationWarning)
            with pytest.raises(tessera.TesseraError):
                slow_ptxas()
        assert ("(E072)" in capsys.readouterr().err) == bool(seconds)


# --- The end of the process -----------------------------------------------------------

DAEMONS = """
import itertools, os, sys, threading, time
os.environ["TESSERA_RECOMPILE_WARNING"] = "0"  # how many there are is a matter of speed
import numpy as np, tessera, tessera.language as tl

@tessera.jit
def kernel(x, n, N: tl.constexpr, UNROLLED: tl.constexpr):
    offsets = tl.program_id(0) * 64 + tl.arange(0, 64)
    value = tl.load(x + offsets)
    for _ in tl.static_range(UNROLLED):
        value = tl.exp(value) + tl.sort(value)
    tl.store(x + offsets, value + n + N)

x = np.zeros(64 * 256, np.float32)
kernel[(256,)](x, 3, 1, 0)
numbers = itertools.count(2)

def warm(): kernel[(256,)](x, 3, 1, 0)
def slow(): kernel[(256,)](x, np.int64(3), 1, 0)
def grid(): kernel[lambda meta: (meta["n"],)](x, 3, 1, 0)
def compiles(): kernel[(1,)](x, 3, next(numbers), 0)
def compiles_long(): kernel[(1,)](x, 3, next(numbers), 40)

def forever(function):
    while True:
        function()

for _ in range(3):
    threading.Thread(target=forever, args=[globals()[sys.argv[1]]], daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("what", ["warm", "slow", "grid", "compiles", "compiles_long"])
def test_daemon_threads_do_not_abort_the_process(tmp_path, what):
    for delay in (0.1, 0.4):
        ended = run(tmp_path, DAEMONS, what, str(delay))
        assert (ended.returncode, ended.stderr) == (0, "")
