# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about launches that are known, but not to be repeated: something has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl

FACTOR = tl.constexpr(2)


def test_a_global_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    @tessera.jit
    def scaled(out: Any, n: Any) -> Any:
        tl.store(out, n * FACTOR)

    out = np.zeros(1, np.int32)
    for run in (lambda: scaled[(1,)](out, 5), lambda: scaled.run(out, 5, grid=(1,))):
        for factor in (2, 2, 3, 3, 4):
            monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(factor))
            run()
            assert out[0] == 5 * factor


def test_a_global_of_a_function_that_a_kernel_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    @tessera.jit
    def helper() -> Any:
        return FACTOR

    @tessera.jit
    def kernel(out: Any) -> Any:
        tl.store(out, helper())

    out = np.zeros(1, np.int32)
    for value in (1, 1, 5, 5, 1):
        monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(value))
        kernel[(1,)](out)
        assert out[0] == value


def test_a_global_that_a_function_changes_counts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @tessera.jit
    def scaled(out: Any, n: Any) -> Any:
        tl.store(out, n * FACTOR)

    calls: list[Any] = []

    def grid(meta: Any) -> Any:
        calls.append(meta["n"])
        monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(len(calls)))
        return (1,)

    out = np.zeros(1, np.int32)
    monkeypatch.setitem(globals(), "FACTOR", FACTOR)
    scaled[(1,)](out, 5)
    for number in range(1, 4):
        scaled[grid](out, 5)
        assert out[0] == 5 * number and len(calls) == number
    scaled[(1,)](out, 5)
    assert out[0] == 5 * 3


def test_a_global_that_changes_between_warmups(monkeypatch: pytest.MonkeyPatch) -> None:
    @tessera.jit
    def scale(x_ptr: Any) -> Any:
        i = tl.arange(0, 16)
        tl.store(x_ptr + i, tl.load(x_ptr + i) * FACTOR)

    x = np.ones(16, np.float32)
    kernels = []
    two, three = tl.constexpr(2), tl.constexpr(3)
    for factor in (two, three, three):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        kernels.append(scale.warmup(x, grid=(1,)))
        x[:] = 1
        kernels[-1][(1,)](x)
        assert (x == factor.value).all()
    assert kernels[0] is not kernels[1] and kernels[1] is kernels[2]


def test_hooks_that_come() -> None:
    """A launch that was bound before sees what every launch depends on."""

    @tessera.jit
    def own(x: Any, out: Any) -> Any:
        tl.store(out, tl.load(x))

    x, out = np.zeros(1, np.float32), np.zeros(1, np.float32)
    launch = own[(1,)]
    launch(x, out)
    launch(x, out)
    calls: list[Any] = []
    own.add_pre_run_hook(lambda x, out: calls.append(x))
    launch(x, out)
    assert len(calls) == 1


class Moving:
    """An array that lies elsewhere each time that it is asked."""

    dtype = np.dtype(np.float32)

    def __init__(self, places: int) -> None:
        self.rows = np.arange(16 * places, dtype=np.float32).reshape(places, 16)
        self.asked = 0

    @property
    def __array_interface__(self) -> Any:
        self.asked += 1
        return self.rows[self.asked % len(self.rows)].__array_interface__


@tessera.jit
def doubled(x, out):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(x + i) * 2)


def test_a_launch_with_other_slots_than_the_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is for launches whose arguments become what the signature says."""
    whole: list[Any] = []
    run = tessera.JITFunction._run
    monkeypatch.setattr(
        tessera.JITFunction, "_run", lambda *args, **more: whole.append(args) or run(*args, **more)
    )
    out = np.zeros(16, np.float32)
    moving, resting = Moving(8), Moving(1)
    for _ in range(4):
        doubled[(1,)](moving, out)
        assert out[0] in 2 * moving.rows[:, 0]
    assert len(whole) == 4
    for _ in range(4):
        doubled[(1,)](resting, out)
    assert len(whole) == 5  # their class is no obstacle
