# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configurations that nobody wrote: `configs="auto"` and `tessera.tune`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import Config, TuningError
from tessera.tuning.automatic import MOST_MEASURED, find_extents, find_space

from .kernels import grid, increment, numbers, scale


def test_a_list_is_made():
    kernel = tessera.autotune("auto", key=["n"])(increment)
    x = numbers()
    for step in range(1, 4):
        kernel[grid](x, 1000)
        assert (x == numbers() + step).all()
    assert len(kernel.configs) > 3 and kernel.best_config in kernel.configs
    assert all(set(config.kwargs) == {"BLOCK"} for config in kernel.configs)


@tessera.jit
def tile(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr, DOUBLE: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    columns = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    mask = (rows < m) & (columns < n)
    value = tl.load(x_ptr + rows * n + columns, mask=mask)
    tl.store(out_ptr + rows * n + columns, value * (2 if DOUBLE else 1), mask=mask)


def tiles(meta: Any) -> tuple[int, int]:
    return tessera.cdiv(meta["m"], meta["M"]), tessera.cdiv(meta["n"], meta["N"])


def test_extents_are_known_from_the_rest():
    assert find_extents(tile) == {"M", "N"}
    x = numbers(64 * 96).reshape(64, 96)
    out = np.zeros_like(x)
    kernel = tessera.autotune("auto", key=["m", "n"])(tile)
    kernel[tiles](x, out, 64, 96, DOUBLE=True)
    assert (out == 2 * x).all()
    assert (
        sum(times[0] < float("inf") for times in kernel.configs_timings.values()) <= MOST_MEASURED
    )
    with pytest.raises(TuningError, match="finds no values for `DOUBLE`") as error:
        tessera.autotune("auto", key=["m", "n"])(tile)[tiles](x, out, 64, 96)
    assert error.value.id == "E059"


@tessera.jit
def inner(SIZE: tl.constexpr):
    return tl.zeros([SIZE], tl.float32)


@tessera.jit
def outer(out_ptr, n, BLOCK: tl.constexpr):
    WIDTH: tl.constexpr = BLOCK
    i = tl.program_id(0) * BLOCK
    tl.store(out_ptr + i + tl.cumsum(inner(WIDTH) + 1).to(tl.int32) - 1, 1.0)


def test_extents_in_functions():
    assert find_extents(outer) == {"BLOCK"}


def test_on_a_gpu_there_are_warps():
    space = find_space(scale, scale.arg_names, (), {"target": "sm_90a"})
    assert set(space.extents) == {"BLOCK"} and set(space.options) == {"num_warps"}
    assert not find_space(scale, scale.arg_names, (), {"target": "cpu"}).options
    given = find_space(
        scale, scale.arg_names, (), {"target": "sm_90a", "num_warps": 4, "BLOCK": 64}
    )
    assert not given.extents and not given.options


@tessera.jit
def hilly(out_ptr, n, A: tl.constexpr, B: tl.constexpr):
    """Takes the longer the further A is from 6 and B from 3."""
    away = (A - 6) * (A - 6) + (B - 3) * (B - 3)
    value = tl.load(out_ptr + 1)
    for _ in range((20 + 40 * away) * n):
        value = value * 0.5 + 1.0
    tl.store(out_ptr, value * 0 + 7.0)


def test_a_search_finds_the_valley():
    out = numbers(2)
    space = {"A": list(range(10)), "B": list(range(8))}
    found = tessera.tune(hilly, (1,), (out, 300), space, seconds=20)
    assert abs(found.config.kwargs["A"] - 6) + abs(found.config.kwargs["B"] - 3) <= 1
    assert found.milliseconds > 0 and found.timings[found.config] == found.milliseconds


def test_a_small_space_is_tried_whole():
    x = numbers()
    start = time.monotonic()
    space = {"BLOCK": [32, 33, 64, 128], "num_warps": [4, 8]}
    found = tessera.tune(increment, grid, (x,), space, kwargs={"n": 1000}, seconds=100)
    assert time.monotonic() - start < 50
    assert (x == numbers()).all()
    assert len(found.timings) == 6 and len(found.failures) == 2
    increment[grid](x, 1000, **found.config.all_kwargs())
    assert (x == numbers() + 1).all()


def test_the_time_is_kept():
    start = time.monotonic()
    space = {"A": list(range(1000)), "B": list(range(1000))}
    tessera.tune(hilly, (1,), (numbers(2), 0), space, seconds=1)
    assert time.monotonic() - start < 20


def test_many_variants_are_no_accident():
    import warnings

    @tessera.jit
    def tell(out_ptr, N: tl.constexpr):
        tl.store(out_ptr, N)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = np.zeros(1, np.int32)
        found = tessera.tune(tell, (1,), (out,), {"N": range(70)}, seconds=100)
        assert len(found.timings) == 70


def test_nothing_works():
    with pytest.raises(TuningError, match="none of the 2 configurations") as error:
        tessera.tune(scale, grid, (numbers(), numbers(), 1000), {"BLOCK": [33, 35]}, seconds=5)
    assert len(error.value.failures) == 2


@pytest.mark.parametrize(
    "space, words",
    [
        ({}, "is empty"),
        ({"BLOK": [1]}, "'BLOK', which is no parameter"),
        ({"BLOCK": []}, "values of `BLOCK`"),
        ({"BLOCK": "64"}, "values of `BLOCK`"),
        ({"n": [1]}, "`n`, which is passed"),
        ({"BLOCK": 64}, "values of `BLOCK` are 64"),
        ({"BLOCK": [[64], [32]]}, "values of `BLOCK`"),
        (["BLOCK"], "is a list"),
    ],
)
def test_bad_spaces(space, words):
    with pytest.raises(TuningError, match=words) as error:
        tessera.tune(scale, grid, (numbers(), numbers(), 1000), space)
    assert error.value.id == "E059"


def test_values_may_come_one_by_one():
    space = {"BLOCK": (2**bits for bits in (5, 6))}
    found = tessera.tune(scale, grid, (numbers(), numbers(), 1000), space, seconds=1)
    assert {config.kwargs["BLOCK"] for config in found.timings} == {32, 64}


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_without_any_time_one_batch_is_measured(seconds):
    x = numbers()
    found = tessera.tune(increment, grid, (x, 1000), {"BLOCK": [32, 64]}, seconds=seconds)
    assert found.config.kwargs["BLOCK"] in (32, 64) and (x == numbers()).all()


def test_an_autotuned_kernel_is_searched_too():
    kernel = tessera.autotune([Config({"BLOCK": 32})], key=["n"])(scale)
    found = tessera.tune(kernel, grid, (numbers(), numbers(), 1000), {"BLOCK": [64]}, seconds=1)
    assert found.config == Config({"BLOCK": 64})
