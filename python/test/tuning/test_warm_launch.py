# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warm launches of a tuned kernel: by the core alone, and hardly slower than a plain kernel's."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Callable

import numpy as np
import pytest

import tessera

from .kernels import blocks, grid, increment, numbers, scale


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches that took the whole way."""
    calls: list[Any] = []
    for dtype in (np.float32, np.int32):  # a dtype's first launch learns what it is
        scale[(1,)](np.zeros(16, dtype), np.zeros(16, dtype), 16, BLOCK=16)
    from tessera.tuning.autotuner import Autotuner

    launch = Autotuner._launch
    monkeypatch.setattr(
        Autotuner, "_launch", lambda self, *args: calls.append(args) or launch(self, *args)
    )
    return calls


def test_the_core_launches_what_is_known(slow):
    kernel = tessera.autotune(blocks(32, 128), key=["n"])(scale)
    for n in (1000, 77):
        x, out = numbers(n), np.zeros(n, np.float32)
        for _ in range(10):
            out[:] = 0
            kernel[grid](x, out, n)
            assert (out == 2 * x).all()
    assert len(slow) == 2


def test_the_key_selects_among_known_choices(slow):
    import tessera.language as tl

    @tessera.jit
    def tell(out_ptr, n, BLOCK: tl.constexpr):
        tl.store(out_ptr, BLOCK)

    seen: list[Any] = []

    def bench(launch: Callable[[], None], quantiles: Any) -> float:
        launch()
        seen.append(1)
        # For the first n the first is the fastest, for the second the second, and so on.
        return [1.0, 2.0, 2.0, 1.0][len(seen) - 1]

    kernel = tessera.autotune(blocks(32, 128), key=["n"], do_bench=bench)(tell)
    out = np.zeros(1, np.int32)
    for _ in range(3):
        for n, expected in ((2, 32), (3, 128)):
            kernel[(1,)](out, n)
            assert out[0] == expected and kernel.best_config == blocks(expected)[0]
    assert len(slow) == 2


def test_best_config_is_that_of_the_last_launch(slow):
    seen: list[Any] = []

    def bench(launch: Callable[[], None], quantiles: Any) -> float:
        launch()
        seen.append(1)
        return [1.0, 2.0, 2.0, 1.0][len(seen) - 1]

    kernel = tessera.autotune(blocks(32, 128), key=["n"], do_bench=bench)(increment)
    for _ in range(3):
        kernel[grid](numbers(), 100)
        assert kernel.best_config == blocks(32)[0]
        kernel[grid](numbers(), 200)
        assert kernel.best_config == blocks(128)[0]


def measure(launch: Callable[[], Any], count: int = 3000) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        launch()
    return (time.perf_counter_ns() - start) / count


def test_overhead():
    kernel = tessera.autotune(blocks(16, 32), key=["n"])(scale)
    x, out = numbers(16), numbers(16)
    kernel[(1,)](x, out, 16)
    block = kernel.best_config.kwargs["BLOCK"]
    scale[(1,)](x, out, 16, BLOCK=block)
    plain, tuned = [], []
    for _ in range(30):  # the machine may be busy: the best of many, taken in turn
        plain.append(measure(lambda: scale[(1,)](x, out, 16, BLOCK=block)))
        tuned.append(measure(lambda: kernel[(1,)](x, out, 16)))
    assert min(tuned) < 1.3 * min(plain) + 100, (min(tuned), min(plain))


def test_hooks_of_launches_are_called():
    from tessera.runtime.hooks import hooks

    kernel = tessera.autotune(blocks(32, 128), key=["n"])(scale)
    x, out = numbers(), numbers()
    for _ in range(2):
        kernel[grid](x, out, 1000)
    told: list[str] = []

    def note(metadata: Any) -> None:
        told.append(metadata.get()["name"])

    hooks.launch_enter.add(note)
    try:
        for _ in range(3):
            kernel[grid](x, out, 1000)
    finally:
        hooks.launch_enter.remove(note)
    kernel[grid](x, out, 1000)
    assert told == ["scale"] * 3


def test_pre_run_hooks_are_called():
    import tessera.language as tl

    @tessera.jit
    def double(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)

    kernel = tessera.autotune(blocks(32, 128), key=["n"])(double)
    kernel[grid](numbers(), 1000)
    calls: list[Any] = []
    double.add_pre_run_hook(lambda *args, **kwargs: calls.append(kwargs["BLOCK"]))
    for _ in range(2):
        kernel[grid](numbers(), 1000)
    assert calls == [kernel.best_config.kwargs["BLOCK"]] * 2


def heuristic_kernel(seen: list[Any], key: list[str], *configs: Any) -> Any:
    """Of a kernel that stores its configuration's number and what two heuristics gave it, of which
    one sees the configuration; the first configuration is best for odd `n`, else the second."""
    import tessera.language as tl

    @tessera.jit
    def tell(out_ptr, n, BLOCK: tl.constexpr, TWICE: tl.constexpr, size, MODE: tl.constexpr = 0):
        tl.store(out_ptr, BLOCK)
        tl.store(out_ptr + 1, TWICE)
        tl.store(out_ptr + 2, size)

    def bench(launch: Callable[[], None], quantiles: Any) -> float:
        launch()
        seen.append(1)
        return [1.0, 2.0, 2.0, 1.0][(len(seen) - 1) % 4]

    inner = tessera.heuristics({"TWICE": lambda args: 2 * args["BLOCK"]})(tell)
    outer = tessera.heuristics({"size": lambda args: args["n"] + args["out_ptr"].size})(inner)
    return tessera.autotune(list(configs) or blocks(32, 128), key=key, do_bench=bench)(outer)


@pytest.fixture
def chosen(slow: list[Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches whose configuration Python has found."""
    from tessera.tuning.autotuner import Autotuner

    choose = Autotuner._choose
    monkeypatch.setattr(
        Autotuner, "_choose", lambda self, *args: slow.append(args) or choose(self, *args)
    )
    return slow


def test_the_core_finds_configurations_above_heuristics(chosen):
    kernel = heuristic_kernel([], ["n"])
    for known in (False, True, True):
        for n, block in ((3, 32), (6, 128)):
            out = np.zeros(4 if known else 3, np.int32)
            kernel[(1,)](out, n)
            assert out[:3].tolist() == [block, 2 * block, n + out.size]
            out[:] = 0
            kernel[lambda meta: (meta["BLOCK"] // block,)](n=n, out_ptr=out)
            assert out[:3].tolist() == [block, 2 * block, n + out.size]
            assert kernel.best_config == blocks(block)[0]
        # By place and by name are one signature.
        assert len(chosen) == (0 if known else 2)
        chosen.clear()
    # A heuristic has the last word, and a configuration may not be spoken over.
    for _ in range(2):
        out = np.zeros(3, np.int32)
        kernel[(1,)](out, 3, TWICE=7)
        assert out.tolist() == [32, 64, 6]
        with pytest.raises(tessera.ArgumentError, match="from the call and from its config"):
            kernel[(1,)](out, 3, BLOCK=64)


def test_heuristics_may_change_what_they_return(chosen):
    import tessera.language as tl

    @tessera.jit
    def tell(out_ptr, VALUE: tl.constexpr, BLOCK: tl.constexpr):
        tl.store(out_ptr, VALUE)

    values = iter(range(10))
    kernel = tessera.autotune(blocks(32), key=[])(
        tessera.heuristics({"VALUE": lambda args: next(values)})(tell)
    )
    out = np.zeros(1, np.int32)
    for value in range(5):
        kernel[(1,)](out)
        assert out[0] == value
    assert len(chosen) == 1


def test_a_value_of_the_key_that_changes_is_looked_at_again():
    """The core knows constants by identity, and what is equal to others may change."""

    @dataclasses.dataclass(unsafe_hash=True)
    class Mode:
        value: int

    hooked: list[Any] = []
    seen: list[Any] = []
    configs = [tessera.Config({"BLOCK": b}, pre_hook=hooked.append) for b in (32, 128)]
    kernel = heuristic_kernel(seen, ["MODE"], *configs)
    mode, out = Mode(1), np.zeros(3, np.int32)
    for value, block in ((1, 32), (2, 128)):
        mode.value = value
        for _ in range(3):
            kernel[(1,)](out, 3, MODE=mode)
            assert out.tolist() == [block, 2 * block, 6]
    assert len(seen) == 4
