# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings: what the environment may say, and what is said when it says nonsense."""

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
