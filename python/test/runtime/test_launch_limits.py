# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches outside the limits that a kernel relies on take a variant of it, and after the first
one as directly as others take the usual kernel."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import tessera
import tessera.language as tl

BEYOND = (1 << 30) + 64
"""Divisible by what 64 is divisible by, so that a launch with it is of the same kind."""

ADDED = tl.constexpr(1)


@tessera.jit
def wrapping(x, out, size, N: tl.constexpr):
    places = (tl.program_id(0) // size * N + tl.arange(0, N)) // 4
    tl.store(out + tl.arange(0, N), tl.load(x + places) + ADDED)


@pytest.fixture
def count_slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many launches have gone the whole way since this was last asked."""
    calls: list[Any] = []
    run = tessera.JITFunction._run

    def counted(self: Any, *args: Any) -> Any:
        calls.append(args)
        return run(self, *args)

    def count() -> int:
        number = len(calls)
        calls.clear()
        return number

    monkeypatch.setattr(tessera.JITFunction, "_run", counted)
    wrapping._kernels.clear()
    if wrapping._dispatcher is not None:
        wrapping._dispatcher.clear()
    return count


def launch(size: int, grid: Any = (1,)) -> Any:
    x, out = np.arange(64, dtype=np.float32), np.full(32, -1, np.float32)
    kernel = wrapping[grid](x, out, size, N=32)
    assert (out == np.arange(32) // 4 + ADDED.value).all()
    return kernel


@pytest.mark.parametrize("first", [64, BEYOND])
@pytest.mark.parametrize("grid", [(1,), lambda meta: (meta["N"] // 32,)], ids=["tuple", "function"])
def test_launches_outside_are_remembered(
    count_slow: Callable[[], int], first: int, grid: Any
) -> None:
    second = 64 + BEYOND - first
    usual = launch(first, grid)
    other = launch(second, grid)
    assert usual is not other
    # A kernel for launches outside becomes known by the first of them.
    assert count_slow() == (2 if first == 64 else 1)
    for size, kernel in ((first, usual), (second, other), (second, other), (first, usual)):
        assert launch(size, grid) is kernel
    assert count_slow() == 0


def test_a_grid_function_is_called_once(count_slow: Callable[[], int]) -> None:
    """Also where the first kernel turns out not to be for the launch."""
    calls: list[Any] = []

    def grid(meta: Any) -> tuple[int, ...]:
        calls.append(meta)
        return (1,)

    for number, size in enumerate((64, BEYOND, BEYOND), start=1):
        launch(size, grid)
        assert len(calls) == number
    assert count_slow() == 2


def test_the_limits_are_those_of_the_usual_kernel(count_slow: Callable[[], int]) -> None:
    usual, other = launch(64), launch(BEYOND)
    grid, slots = (1, 1, 1), [0, 0, BEYOND]
    with pytest.raises(tessera._C.CoreError, match="do not wrap") as error:
        usual._kernel.launch(grid, slots)
    assert error.value.status == tessera._C.Status.OUTSIDE_LIMITS
    with pytest.raises(tessera._C.CoreError, match="grid extent") as error:
        usual._kernel.launch((-1, 1, 1), slots)
    assert error.value.status == tessera._C.Status.USER_ERROR
    assert other.metadata["launch_conditions"] == []
    assert usual.metadata["launch_conditions"] != []


def test_no_stale_code_outside(count_slow: Callable[[], int]) -> None:
    global ADDED
    before = ADDED
    old = launch(64), launch(BEYOND)
    try:
        ADDED = tl.constexpr(7)
        for _ in range(2):
            assert launch(BEYOND) is not old[1]
            assert launch(64) is not old[0]
    finally:
        ADDED = before


def test_settings_that_change_are_noticed(count_slow: Callable[[], int]) -> None:
    launch(64), launch(BEYOND)
    count_slow()
    with tessera.settings.override(slow_compile=60):
        launch(BEYOND)
        assert count_slow() == 1
        launch(64), launch(BEYOND)
        assert count_slow() == 0


def test_a_failure_outside_is_told(count_slow: Callable[[], int]) -> None:
    for _ in range(3):
        launch(BEYOND)
        with pytest.raises(tessera.LaunchError) as error:
            launch(BEYOND, (-1,))
        assert error.value.id == "E052"
