# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks that forks do: each once, whatever becomes of the forks."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import time

import pytest

import tessera.torch.forked_tasks as forked_tasks
from tessera.torch.forked_tasks import ForkedTasks, can_fork


def nothing() -> None:
    pass


def square(number: int) -> tuple[int, int]:
    time.sleep(0.05)
    return number * number, os.getpid()


@pytest.mark.parametrize("processes", [1, 2, 5, 40])
def test_each_task_is_done_once(processes) -> None:
    tasks = ForkedTasks([functools.partial(square, n) for n in range(12)], processes, nothing)
    results = [tasks.get(number) for number in reversed(range(12))]
    assert [number for number, _ in results] == [n * n for n in reversed(range(12))]
    others = {process for _, process in results} - {os.getpid()}
    assert len(others) <= min(processes - 1, 11) and bool(others) == (processes > 1)
    assert tasks.get(3) == results[-4]
    assert not multiprocessing.active_children()


def test_what_fails_in_a_fork_is_done_again() -> None:
    here = os.getpid()

    def only_here(number):
        if os.getpid() != here:
            raise ValueError("not here")
        return number

    tasks = ForkedTasks([functools.partial(only_here, n) for n in range(6)], 4, nothing)
    assert [tasks.get(n) for n in range(6)] == list(range(6))
    assert tasks.failures and all("ValueError: not here" in text for text in tasks.failures)


def test_a_task_that_fails_everywhere_fails_where_it_is_asked_for() -> None:
    def fail():
        raise ValueError("no")

    tasks = ForkedTasks([fail, functools.partial(square, 2), fail], 3, nothing)
    with pytest.raises(ValueError, match="no"):
        for number in range(3):
            tasks.get(number)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("way", ["kill", "exit", "unpicklable", "prepare"])
def test_forks_that_end(way) -> None:
    here = os.getpid()

    def prepare():
        if way == "prepare":
            raise RuntimeError

    def task(number):
        if os.getpid() != here and number % 2:
            if way == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif way == "exit":
                os._exit(3)
            elif way == "unpicklable":
                return lambda: number
        time.sleep(0.01)
        return number

    tasks = ForkedTasks([functools.partial(task, n) for n in range(8)], 4, prepare)
    results = [tasks.get(n) for n in range(8)]
    assert results == list(range(8))


def test_a_fork_that_hangs(monkeypatch) -> None:
    monkeypatch.setattr(forked_tasks, "_PATIENCE", 0.3)
    here = os.getpid()

    def task(number):
        if os.getpid() != here:
            time.sleep(1000)
        time.sleep(0.05)
        return number

    begin = time.monotonic()
    tasks = ForkedTasks([functools.partial(task, n) for n in range(4)], 3, nothing)
    time.sleep(0.1)
    assert [tasks.get(n) for n in range(4)] == list(range(4))
    assert time.monotonic() - begin < 5 and not multiprocessing.active_children()


def test_tasks_that_nobody_asks_for() -> None:
    tasks = ForkedTasks([functools.partial(time.sleep, 1000)] * 4, 3, nothing)
    assert len(multiprocessing.active_children()) == 2
    tasks.close()
    tasks.close()
    assert not multiprocessing.active_children()


def test_large_results() -> None:
    tasks = ForkedTasks([functools.partial(bytes, 1 << 22)] * 4, 3, nothing)
    assert all(tasks.get(n) == bytes(1 << 22) for n in range(4))


def test_a_daemon_has_no_forks() -> None:
    def ask(pipe):
        pipe.send(can_fork())

    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=ask, args=(theirs,), daemon=True)
    process.start()
    assert can_fork() and not ours.recv()
    process.join()
