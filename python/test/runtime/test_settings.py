# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings: what the environment may say, and what is said when it says nonsense."""

import asyncio
import pytest

from tessera import SettingError, settings


@pytest.fixture(autouse=True)
def fresh():
    settings.reload()
    yield
    settings.reload()


@pytest.mark.parametrize(
    "variable, name, text, value",
    [
        ("TESSERA_CACHE", "cache", "off", "off"),
        ("TESSERA_CACHE", "cache", "RO", "ro"),
        ("TESSERA_CACHE_SIZE", "cache_size", "500M", 500 << 20),
        ("TESSERA_NUM_THREADS", "num_threads", " 2 ", 2),
        ("TESSERA_DEBUG", "debug", "1", True),
        ("TESSERA_INTERPRET", "interpret", "off", False),
        ("TESSERA_CPU", "cpu", "x86-64-v3", "x86-64-v3"),
        ("TESSERA_FEATURES", "features", "+avx2,-avx512f", "+avx2,-avx512f"),
        ("TESSERA_DETERMINISTIC", "deterministic", "yes", True),
        ("TESSERA_DUMP_DIR", "dump_dir", "/tmp/dump", "/tmp/dump"),
        ("TESSERA_OVERRIDE_DIR", "override_dir", "/tmp/o", "/tmp/o"),
        ("TESSERA_REPRODUCER_DIR", "reproducer_dir", "/tmp/r", "/tmp/r"),
        ("TESSERA_CACHE_DIR", "cache_dir", "/tmp/c", "/tmp/c"),
    ],
)
def test_values(monkeypatch, variable, name, text, value):
    monkeypatch.setenv(variable, text)
    assert getattr(settings, name) == value


@pytest.mark.parametrize(
    "variable, name, text, accepted",
    [
        ("TESSERA_CACHE", "cache", "maybe", "'rw' or 'ro' or 'off'"),
        ("TESSERA_CACHE_SIZE", "cache_size", "lots", "a number of bytes"),
        ("TESSERA_NUM_THREADS", "num_threads", "-1", "an integer from 0"),
        ("TESSERA_NUM_THREADS", "num_threads", "two", "an integer from 0"),
        ("TESSERA_DEBUG", "debug", "si", "1 or 0"),
        ("TESSERA_FEATURES", "features", "avx2", "a list such as"),
        ("TESSERA_CPU", "cpu", 'x"y', "a name"),
    ],
)
def test_nonsense(monkeypatch, variable, name, text, accepted):
    monkeypatch.setenv(variable, text)
    with pytest.raises(SettingError) as caught:
        getattr(settings, name)
    assert caught.value.id == "E062"
    for part in (variable, repr(text), accepted):
        assert part in str(caught.value)


def test_assigned_values_are_checked_too():
    with pytest.raises(SettingError, match="TESSERA_CACHE"):
        settings.cache = "sometimes"
    with pytest.raises(AttributeError, match="cahce"):
        settings.cahce = "off"


def test_override_is_of_the_process():
    """As it is documented: of all threads and asyncio tasks, in whatever order they leave."""

    async def overriding(number, entered, leaving):
        with settings.override(num_threads=number):
            entered.set()
            await leaving.wait()
            return settings.num_threads

    async def main():
        entered = [asyncio.Event() for _ in range(2)]
        leaving = [asyncio.Event() for _ in range(2)]
        first = asyncio.create_task(overriding(3, entered[0], leaving[0]))
        await entered[0].wait()
        assert settings.num_threads == 3
        second = asyncio.create_task(overriding(5, entered[1], leaving[1]))
        await entered[1].wait()
        seen = [settings.num_threads, await asyncio.to_thread(lambda: settings.num_threads)]
        leaving[0].set()
        seen.append(await first)
        seen.append(settings.num_threads)
        leaving[1].set()
        return [*seen, await second]

    before = settings.num_threads
    assert asyncio.run(main()) == [5, 5, 5, 5, 5]
    assert settings.num_threads == before


def test_override_ends():
    before, generation = settings.num_threads, settings.generation
    with settings.override(num_threads=3, debug=True):
        assert settings.num_threads == 3 and settings.debug is True
    assert settings.num_threads == before and settings.generation > generation


def test_every_setting_is_described():
    rows = list(settings.describe())
    names = [name for _, name, _, _ in rows]
    assert "cache_dir" in names and "override_dir" in names and len(names) == len(set(names))
    assert all(variable.startswith("TESSERA_") and doc for variable, _, _, doc in rows)


def test_blocks_that_overlap_in_threads():
    """Each ends with what it had assigned, in whatever order they end."""
    before = settings.num_threads
    first = settings.override(num_threads=3, debug=True)
    second = settings.override(num_threads=5)
    first.__enter__()
    second.__enter__()
    assert (settings.num_threads, settings.debug) == (5, True)
    first.__exit__(None, None, None)
    assert (settings.num_threads, settings.debug) == (5, False)
    second.__exit__(None, None, None)
    assert (settings.num_threads, settings.debug) == (before, False)


def test_what_is_assigned_within_a_block_ends_with_it():
    with settings.override(num_threads=3):
        settings.num_threads = 4
        settings.debug = True
        assert (settings.num_threads, settings.debug) == (4, True)
    assert (settings.num_threads, settings.debug) == (0, False)


def test_a_block_with_nonsense_changes_nothing():
    with pytest.raises(SettingError):
        with settings.override(num_threads=3, cache="sometimes"):
            pass
    assert settings.num_threads == 0


@pytest.mark.parametrize(
    "name, meant",
    [
        ("TESSERA_CAHCE_DIR", "TESSERA_CACHE_DIR"),
        ("TESSERA_NUM_THREAD", "TESSERA_NUM_THREADS"),
        ("TESERA_DEBUG", "TESSERA_DEBUG"),
        ("tessera_ptxas", "TESSERA_PTXAS"),
        ("TESSERA_LIB_DEVICE", "TESSERA_LIBDEVICE"),
        ("TESSERA_ENTER_NAME", None),
        ("TESSERACT_HOME", None),
    ],
)
def test_names_that_are_misspelt(monkeypatch, name, meant):
    import warnings

    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(settings, "_names_are_checked", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            settings.reload()
            settings.num_threads
    assert [str(one.message) for one in caught] == (
        [f"tessera: there is no setting {name}; did you mean {meant}?"] if meant else []
    )


def test_a_fork_while_others_build():
    """The lock is free in the child, and the limit Python's own again."""
    import os
    import sys
    import threading

    from tessera.frontend.recursion import DEEP_RECURSION

    usual = sys.getrecursionlimit()
    entered, leave = threading.Event(), threading.Event()

    def build():
        with DEEP_RECURSION:
            with DEEP_RECURSION.lock:
                entered.set()
                leave.wait(60)

    thread = threading.Thread(target=build)
    thread.start()
    entered.wait(60)
    child = os.fork()
    if child == 0:
        fine = sys.getrecursionlimit() == usual
        with DEEP_RECURSION:
            fine = fine and sys.getrecursionlimit() > usual
        os._exit(0 if fine and sys.getrecursionlimit() == usual else 1)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sys.getrecursionlimit() == usual


def test_settings_that_there_are_not():
    with pytest.raises(AttributeError, match="did you mean 'num_threads'?"):
        with settings.override(num_thread=1):
            pass
    with pytest.raises(AttributeError, match="there are cache_dir, "):
        settings.qqqqq = 1
