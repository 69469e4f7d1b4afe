# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that are computed from the others at each launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import CompilationError, LaunchError

from .kernels import blocks, grid, numbers, scale


@tessera.jit
def fill(out_ptr, n, BLOCK: tl.constexpr, VALUE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, VALUE, mask=i < n)


def block_of(args: Any) -> int:
    return tessera.next_power_of_2(args["n"])


def test_each_launch_computes_them():
    calls = []

    def value(args: Any) -> float:
        calls.append(args["n"])
        return float(args["BLOCK"] + args["n"])

    kernel = tessera.heuristics({"BLOCK": block_of, "VALUE": value})(fill)
    for n in (5, 100, 5, 5):
        out = np.zeros(n, np.float32)
        kernel[(1,)](out, n)
        assert (out == n + tessera.next_power_of_2(n)).all()
    kernel[(1,)](out_ptr=np.zeros(8, np.float32), n=8)
    assert calls == [5, 100, 5, 5, 8]


def test_a_grid_function_has_them():
    kernel = tessera.heuristics({"BLOCK": lambda args: 32})(scale)
    x, out = numbers(), np.zeros(1000, np.float32)
    for _ in range(2):
        kernel[grid](x, out, 1000)
        assert (out == 2 * x).all()


def test_an_option():
    def warps(args: Any) -> int:
        return 8 if args["BLOCK"] >= 128 else 2

    kernel = tessera.heuristics({"BLOCK": block_of, "num_warps": warps})(fill)
    for n, expected in ((100, 8), (10, 2), (100, 8)):
        assert kernel.warmup(tl.float32, n, VALUE=1.0).metadata.num_warps == expected
        out = np.zeros(n, np.float32)
        kernel[(1,)](out, n, VALUE=3.0)
        assert (out == 3).all()

    tuned = tessera.autotune(blocks(32, 128), key=["n"])(
        tessera.heuristics({"num_warps": warps})(fill)
    )
    out = np.zeros(1000, np.float32)
    for _ in range(2):
        tuned[grid](out, 1000, VALUE=4.0)
        assert (out == 4).all() and not tuned.failures


def test_under_autotune():
    configs = blocks(32, 128)
    kernel = tessera.autotune(configs, key=["n"])(
        tessera.heuristics({"VALUE": lambda args: float(args["BLOCK"])})(fill)
    )
    out = np.zeros(1000, np.float32)
    for _ in range(3):
        out[:] = 0
        kernel[grid](out, 1000)
        assert (out == kernel.best_config.kwargs["BLOCK"]).all()
    assert len(kernel.configs_timings) == 2


def test_over_autotune():
    tuned = tessera.autotune(blocks(32, 128), key=["n"])(fill)
    kernel = tessera.heuristics({"VALUE": lambda args: float(args["n"])})(tuned)
    for n in (1000, 10, 1000):
        out = np.zeros(n, np.float32)
        kernel[grid](out, n)
        assert (out == n).all()
    assert len(tuned.cache) == 2


def test_one_for_the_stages_of_a_loop():
    @tessera.jit
    def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
        value = tl.zeros([BLOCK], tl.float32)
        for start in tl.range(0, n, BLOCK, num_stages=STAGES):
            value += tl.load(x_ptr + start + tl.arange(0, BLOCK))
        tl.store(out_ptr, tl.sum(value))

    kernel = tessera.autotune(blocks(32, 128), key=["n"])(
        tessera.heuristics({"STAGES": lambda args: 100 if args["n"] == 1024 else 4})(total)
    )
    out = np.zeros(1, np.float32)
    kernel[(1,)](np.ones(1024, np.float32), out, 1024)
    assert out[0] == 1024 and not kernel.failures


def test_warmup():
    kernel = tessera.heuristics({"BLOCK": block_of, "VALUE": lambda args: 1.0})(fill)
    assert kernel.warmup(tl.float32, n=100, grid=(1,)).name == "fill"
    assert kernel.fn is fill and set(kernel.values) == {"BLOCK", "VALUE"}


def test_one_that_raises():
    kernel = tessera.heuristics({"BLOCK": lambda args: args["m"], "VALUE": block_of})(fill)
    with pytest.raises(LaunchError, match="heuristic for `BLOCK`.*KeyError: 'm'") as error:
        kernel[(1,)](numbers(), 100)
    assert error.value.id == "E060" and isinstance(error.value.__cause__, KeyError)
    assert "test_heuristics.py" in str(error.value)


def test_one_that_returns_an_array():
    kernel = tessera.heuristics({"BLOCK": lambda args: args["out_ptr"], "VALUE": block_of})(fill)
    with pytest.raises(LaunchError, match="returned a ndarray|returned an? ndarray") as error:
        kernel[(1,)](numbers(), 100)
    assert error.value.id == "E060"


def test_a_name_that_is_no_parameter():
    with pytest.raises(CompilationError, match="`BLOK`, which is no parameter of `fill`") as error:
        tessera.heuristics({"BLOK": block_of})(fill)
    assert error.value.id == "E060" and error.value.fix == "did you mean `BLOCK`?"
    assert error.value.file == __file__


def test_what_is_no_function():
    with pytest.raises(CompilationError, match="heuristic for `BLOCK` is an int") as error:
        tessera.heuristics({"BLOCK": 64})(fill)
    assert error.value.id == "E060"


def test_on_what_is_no_kernel():
    with pytest.raises(CompilationError, match="no kernel") as error:

        @tessera.heuristics({"BLOCK": block_of})
        def function(BLOCK):
            pass

    assert error.value.id == "E003"


def test_without_a_grid():
    with pytest.raises(LaunchError, match="without a launch grid"):
        tessera.heuristics({"BLOCK": block_of})(fill)(numbers(), 100)


def test_functions_that_change_their_arguments_or_the_heuristics():
    """Each function gets a dict of its own, and those that are there when the launch begins run."""

    def drop(args: Any) -> int:
        args.clear()
        kernel.values = {"BLOCK": lambda args: 16, "VALUE": lambda args: 9.0}
        return 32

    kernel: Any = tessera.heuristics({"BLOCK": drop, "VALUE": lambda args: float(args["n"])})(fill)
    out = np.zeros(7, np.float32)
    kernel[(1,)](out, 7)
    assert (out == 7).all()
    kernel[(1,)](out, n=7)
    assert (out == 9).all()


def test_what_is_passed_is_replaced():
    kernel = tessera.heuristics({"VALUE": lambda args: 2 * args["VALUE"]})(fill)
    out = np.zeros(4, np.float32)
    for value in (1.0, 2.0, 3.0):
        kernel[(1,)](out, 4, 4, VALUE=value)
        assert (out == 2 * value).all()


def test_an_interrupt_is_no_mistake_of_a_heuristic():
    def interrupted(args: Any) -> int:
        raise KeyboardInterrupt

    kernel = tessera.heuristics({"BLOCK": interrupted})(fill)
    with pytest.raises(KeyboardInterrupt):
        kernel[(1,)](np.zeros(4, np.float32), 4, VALUE=1.0)
