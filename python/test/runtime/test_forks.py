# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that compile at once, and forks meanwhile: no child waits for a thread that it lacks."""

from __future__ import annotations

import ast
import importlib.util
import os
import pathlib
import subprocess
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

import tessera
from tessera import locks, settings
from tessera.frontend import recursion


def load_stress() -> Any:
    path = pathlib.Path(__file__).parents[3] / "tools" / "dev" / "stress_forks.py"
    spec = importlib.util.spec_from_file_location("stress_forks", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stress = load_stress()


def in_child(function, timeout=60):
    """What `function` returns in a forked child: True, or else False; None if it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in the midst of threads
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if function() else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def test_children_compile_whatever_threads_were_at():
    with settings.override(cache="off"):
        assert stress.compile_one()
        with stress.Threads(8) as threads:
            children = [in_child(stress.compile_one) for _ in range(6)]
    # tools/dev/stress_forks.py has thousands.
    assert children == [True] * 6 and threads.failures == []


def test_threads_parse_at_once():
    text = "def f(x):\n" + "    x = [x + 1, (x * 2, -x), {x: x ** 3}]\n" * 60
    failures = []

    def work():
        try:
            for _ in range(8):
                assert len(locks.parse(text).body[0].body) == 60
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_parsing_beside_others_who_parse(monkeypatch):
    """Nobody else takes our lock: what CPython 3.11 says then is tried again."""
    real, results = ast.parse, [SystemError("AST constructor recursion depth mismatch")] * 3

    def parse(text):
        if results:
            raise results.pop()
        return real(text)

    monkeypatch.setattr(ast, "parse", parse)
    assert isinstance(locks.parse("x = 1"), ast.Module) and not results
    with pytest.raises(SyntaxError):
        locks.parse("x = = 1")


def held_elsewhere(lock):
    """A thread that has the lock, until the event is set."""
    taken, release = threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    return thread, release


def test_a_lock_that_another_thread_keeps_is_free_in_a_child():
    lock = locks.ForkSafeLock()
    thread, release = held_elsewhere(lock)

    def take():
        with lock:
            return True

    assert in_child(take, timeout=10)
    release.set()
    thread.join()
    assert in_child(take, timeout=10) and take()


def test_the_recursion_limit_of_a_child_is_the_usual_one():
    import sys

    limit = sys.getrecursionlimit()
    inside, over = threading.Event(), threading.Event()

    def deep():
        with recursion.DEEP_RECURSION:
            inside.set()
            over.wait()

    thread = threading.Thread(target=deep)
    thread.start()
    inside.wait()
    assert sys.getrecursionlimit() > limit
    assert in_child(lambda: sys.getrecursionlimit() == limit)
    over.set()
    thread.join()
    assert sys.getrecursionlimit() == limit


def test_cached_properties():
    class Thing:
        computed = 0

        @locks.CachedProperty
        def value(self):
            self.computed += 1
            return [self.computed]

    thing = Thing()
    assert thing.value is thing.value and thing.computed == 1
    assert Thing().value == [1] and isinstance(Thing.value, locks.CachedProperty)


FIRST_LAUNCHES = """
import os, sys, threading, time
import numpy as np
import tessera, tessera.language as tl

@tessera.jit
def first(x):
    tl.store(x + tl.arange(0, 64), 1.0)

@tessera.jit
def second(x):
    tl.store(x + tl.arange(0, 64), 2.0)

sys.setswitchinterval(1e-5)
thread = threading.Thread(target=lambda: first[(1,)](np.zeros(64, np.float32)))
thread.start()
children = []
for _ in range(10):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        x = np.zeros(64, np.float32)
        second[(1,)](x)
        os._exit(0 if x[63] == 2 else 1)
    children.append(child)
thread.join()
end, ends = time.monotonic() + 60, []
for child in children:
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, 9)
        time.sleep(0.002)
    ends.append(found[1])
print(ends)
"""


def test_a_fork_while_the_compiler_is_loaded(tmp_path):
    """CPython has a lock for each module that is being imported, which no fork waits for."""
    (tmp_path / "program.py").write_text(FIRST_LAUNCHES)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "program.py")],
        env={**os.environ, "TESSERA_CACHE": "off"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.stdout == f"{[0] * 10}\n", ended.stdout + ended.stderr


FIRST_CALL = """
import sys
import numpy as np
import tessera, tessera.language as tl
from tessera import locks

@tessera.jit
def fill(x, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(x + offsets, 1.0, offsets < 64)

x = np.zeros(64, np.float32)

class Watch:
    def find_spec(self, name, path=None, target=None):
        if not locks._LOADING._lock._is_owned():
            print(name)

sys.meta_path.insert(0, Watch())
{call}
"""


@pytest.mark.parametrize(
    "call",
    {
        "launch": "fill[(1,)](x, N=64)",
        "warmup": "fill.warmup(x, N=64, grid=(1,))",
        "interpret": "tessera.interpret(fill)[(1,)](x, N=64)",
        "tune": "tessera.autotune([tessera.Config({'N': 64}, num_warps=n) for n in (4, 8)], [])(fill)"
        "[(1,)](x)",
        "tune automatically": "tessera.autotune('auto', [])(fill)[(1,)](x)",
        "compile": "tessera.compile(fill, '*fp32', constexprs={'N': 64}, target='sm_90a')",
    }.items(),
    ids=lambda call: call[0],
)
def test_first_calls_import_under_the_lock(call, tmp_path):
    """Whatever a first call imports without the lock, a fork in that moment hangs its child."""
    (tmp_path / "program.py").write_text(FIRST_CALL.replace("{call}", call[1]))
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "program.py")],
        # A variable that is nearly a setting's has the first call look for the one that was meant.
        env={**os.environ, "TESSERA_CACHE": "off", "TESSERA_CACHED": "off"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""


def test_forks_while_many_threads_compile():
    """A short form of what tools/dev/stress_forks.py is for."""
    script = pathlib.Path(__file__).parents[3] / "tools/dev/stress_forks.py"
    ended = subprocess.run(
        [sys.executable, str(script), "--forks", "20", "--threads", "32"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
