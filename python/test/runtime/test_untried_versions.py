# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small program decides about versions of frameworks that were not tested."""

from __future__ import annotations

import warnings

import pytest

from tessera import untried
from tessera.errors import SettingError, UnsupportedError, UntriedVersionWarning


@pytest.fixture(autouse=True)
def new_process(monkeypatch) -> None:
    monkeypatch.setattr(untried, "_verdicts", {})
    monkeypatch.setattr(untried, "_warned_of", set())


def attempt(program) -> list[str]:
    """The warnings of trying version 7.1 of a framework."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        untried.try_version("frame 7.1", "frame 1.0 to 6.2", "pip install frame==6.2", program)
    assert all(each.category is UntriedVersionWarning for each in caught)
    return [str(each.message) for each in caught]


def test_one_that_fits_warns_once_and_is_tried_once() -> None:
    calls = []
    (warning,) = attempt(lambda: calls.append(1))
    assert "frame 7.1" in warning and "frame 1.0 to 6.2" in warning
    assert attempt(lambda: calls.append(1)) == []
    assert len(calls) == 1


def test_one_that_does_not_fit_is_refused_each_time() -> None:
    calls = []

    def program() -> None:
        calls.append(1)
        raise AttributeError("no `lower`\nsecond line")

    for _ in range(2):
        with pytest.raises(UnsupportedError) as raised:
            attempt(program)
        error = raised.value
        assert error.id == "E077" and error.fix == "pip install frame==6.2"
        assert error.message.endswith("a small program failed with AttributeError: no `lower`")
        assert isinstance(error.__cause__, AttributeError)
    assert len(calls) == 1


def test_mistakes_of_the_caller_pass_through_and_may_be_mended() -> None:
    def mistaken() -> None:
        raise SettingError("E075", "too late", "")

    with pytest.raises(SettingError, match="E075"):
        attempt(mistaken)
    assert attempt(lambda: None) == []  # it has warned already


def test_a_small_program_is_not_tried_within_itself() -> None:
    depth = []

    def program() -> None:
        depth.append(1)
        attempt(program)

    attempt(program)
    assert len(depth) == 1


def test_an_error_that_is_made_of_the_warning_does_not_end_the_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        untried.try_version("frame 7.1", "frame 6", "", lambda: None)


@pytest.mark.parametrize(
    "text, numbers",
    [("2.15.0", (2, 15)), ("0.12.0.1", (0, 12)), ("3.0a1+git", (3, 0)), ("unknown", ())],
)
def test_release(text, numbers) -> None:
    assert untried.release(text) == numbers
