# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs around the launches that measure: hooks, resets, pruning, other people's clocks."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import Config, TuningError
from tessera.tools.tensor_descriptor import TensorDescriptor

from .kernels import accumulate, blocks, grid, increment, numbers, scale


def test_hooks_come_in_pairs():
    open_calls, resets = [], []

    def before(named: Any, reset_only: bool = False) -> None:
        assert set(named) >= {"x_ptr", "n", "BLOCK", "num_warps"}
        resets.append(1) if reset_only else open_calls.append(named["BLOCK"])

    def after(named: Any, exception: Any) -> None:
        assert open_calls.pop() == named["BLOCK"] and exception is None

    tuned = tessera.autotune(blocks(32, 128), key=["n"], pre_hook=before, post_hook=after)
    kernel = tuned(increment)
    x = numbers()
    for _ in range(3):
        kernel[grid](x, 1000)
    assert not open_calls and len(resets) == 1
    assert kernel.user_defined_pre_hook and kernel.user_defined_post_hook
    assert (x == numbers() + 3).all()


def test_a_configurations_hook_is_called_at_each_launch():
    calls: list[int] = []
    configs = [
        Config({"BLOCK": size}, pre_hook=lambda named: calls.append(named["BLOCK"]))
        for size in (32, 128)
    ]
    kernel = tessera.autotune(configs, key=["n"])(scale)
    kernel[grid](numbers(), numbers(), 1000)
    assert {32, 128} == set(calls)
    calls.clear()
    for _ in range(5):
        kernel[grid](numbers(), numbers(), 1000)
    assert calls == [kernel.best_config.kwargs["BLOCK"]] * 5


def test_a_hook_may_clear_what_is_added_to():
    def clear(named: Any) -> None:
        named["sum_ptr"][:] = 0

    configs = [Config({"BLOCK": size}, pre_hook=clear) for size in (32, 128)]
    kernel = tessera.autotune(configs, key=["n"])(accumulate)
    total = np.full(1, 77, np.float32)
    for _ in range(3):
        kernel[grid](np.ones(1000, np.float32), total, 1000)
        assert total[0] == 1000


def test_a_hook_may_change_what_a_kernel_is_compiled_for():
    # As one does that sets the block shape of a tensor descriptor.
    import tessera.language as tl
    from tessera.tools.tensor_descriptor import TensorDescriptor

    @tessera.jit
    def double(descriptor, out_ptr, n, BLOCK: tl.constexpr):
        start = tl.program_id(0) * BLOCK
        i = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, descriptor.load([start]) * 2, mask=i < n)

    def reshape(named: Any) -> None:
        named["descriptor"].block_shape = [named["BLOCK"]]

    configs = [Config({"BLOCK": size}, pre_hook=reshape) for size in (32, 128)]
    kernel = tessera.autotune(configs, key=["n"])(double)
    x, out = numbers(1024), np.zeros(1024, np.float32)
    for _ in range(2):
        kernel[grid](TensorDescriptor(x, [1024], [1], [1]), out, 1024)
        assert (out == 2 * x).all()
        out[:] = 0


def test_reset_to_zero():
    seen = []
    tuned = tessera.autotune(
        blocks(32, 128),
        key=["n"],
        reset_to_zero=["sum_ptr"],
        post_hook=lambda named, exception: seen.append(float(named["sum_ptr"][0])),
    )
    kernel = tuned(accumulate)
    total = np.full(1, 5, np.float32)
    kernel[grid](np.ones(1000, np.float32), total, 1000)
    assert set(seen) == {1000.0}
    kernel[grid](np.ones(1000, np.float32), total, 1000)
    assert total[0] == 2005


def test_restore_value():
    seen = []
    tuned = tessera.autotune(
        blocks(32, 128),
        key=["n"],
        restore_value=["x_ptr"],
        post_hook=lambda named, exception: seen.append(float(named["x_ptr"][0])),
    )
    x = numbers()
    tuned(increment)[grid](x, 1000)
    assert set(seen) == {1.0} and (x == numbers() + 1).all()


@dataclasses.dataclass
class Sums:
    whole: Any
    others: list


@tessera.aggregate
class Output:
    at: tl.tensor


@tessera.jit
def add_to(sums, output, block, n, BLOCK: tl.constexpr):
    tl.atomic_add(sums.whole, 1.0)
    tl.atomic_add(sums.others[0], 1.0)
    tl.store(output.at, tl.load(output.at) + n / BLOCK)
    block.store([0], block.load([0]) + 1)


@pytest.mark.parametrize("what", ["reset_to_zero", "restore_value"])
def test_arrays_in_what_has_parts(what):
    """All of those in an argument of that name; also what a descriptor describes."""
    seen = []

    def look(named, exception):
        sums = named["sums"]
        arrays = sums.whole, sums.others[0], named["output"].at, named["block"].base
        seen.append([float(array[0]) for array in arrays])

    tuned = tessera.autotune(
        blocks(32, 64), key=[], **{what: ["sums", "output", "block"]}, post_hook=look
    )
    a, b, c, d = (np.full(4, start, np.float32) for start in (5, 6, 7, 8))
    descriptor = TensorDescriptor.from_tensor(d, [4])
    for _ in range(2):
        tuned(add_to)[(1,)](Sums(a, [b]), Output(c), descriptor, 64)
        start = [5, 6, 7, 8] if what == "restore_value" else [0] * 4
        assert {tuple(x - y for x, y in zip(row, start)) for row in seen} == {
            (1, 1, 2, 1),
            (1, 1, 1, 1),
        }
        assert (a[0], b[0], d[0]) == (6, 7, 9) and c[0] in (8, 9)
        for array, value in zip((a, b, c, d), (5, 6, 7, 8)):
            array[:] = value


@pytest.mark.parametrize("what", ["reset_to_zero", "restore_value"])
def test_none_is_neither_reset_nor_restored(what):
    @tessera.jit
    def maybe(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if x_ptr is not None:
            tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
        else:
            tl.store(out_ptr + i, 1.0, mask=i < n)

    kernel = tessera.autotune(blocks(32, 128), key=["n"], **{what: ["x_ptr"]})(maybe)
    out = numbers()
    kernel[grid](None, out, 1000)
    assert (out == 1).all()


def test_early_pruning_sees_the_arguments():
    seen = {}

    def prune(configs: Any, named: Any, **more: Any) -> Any:
        seen.update(configs=len(configs), named=set(named), more=set(more))
        return configs[1:]

    tuned = tessera.autotune(blocks(32, 64, 128), ["n"], {"early_config_prune": prune})
    kernel = tuned(scale)
    kernel[grid](numbers(), numbers(), n=1000)
    assert seen["configs"] == 3 and seen["named"] == {"x_ptr", "out_ptr"} and "n" in seen["more"]
    assert set(kernel.configs_timings) == set(blocks(64, 128))


@pytest.mark.parametrize("top_k, left", [(1, 1), (2, 2), (0.5, 2), (0.1, 1), (1.0, 4), (9, 4)])
def test_the_model_leaves_top_k(top_k, left):
    asked = []

    def model(BLOCK: int, num_warps: int, n: int, **more: Any) -> int:
        asked.append(BLOCK)
        return BLOCK

    prune = {"perf_model": model, "top_k": top_k}
    kernel = tessera.autotune(blocks(256, 32, 128, 64), ["n"], prune)(scale)
    kernel[grid](numbers(), numbers(), 1000)
    sizes = [config.kwargs["BLOCK"] for config in kernel.configs_timings] or [
        kernel.best_config.kwargs["BLOCK"]
    ]
    assert sorted(sizes) == [32, 64, 128, 256][:left]


def test_a_function_of_the_users_measures():
    calls = []

    def bench(launch: Any, quantiles: Any) -> Any:
        launch()
        calls.append(quantiles)
        time = float(len(calls) % 3)
        return [time, time, time]

    kernel = tessera.autotune(blocks(32, 64, 128), ["n"], do_bench=bench)(increment)
    x = numbers()
    kernel[grid](x, 1000)
    assert calls == [(0.5, 0.2, 0.8)] * 3 and kernel.best_config == blocks(128)[0]
    assert (x == numbers() + 1).all()
    assert kernel.configs_timings[blocks(32)[0]] == [1.0, 1.0, 1.0]


def test_a_function_of_the_users_returns_a_number():
    times = iter([3.0, 1.0, 2.0])

    def bench(launch: Any, quantiles: Any) -> float:
        launch()
        return next(times)

    kernel = tessera.autotune(blocks(32, 64, 128), ["n"], do_bench=bench)(scale)
    kernel[grid](numbers(), numbers(), 1000)
    assert kernel.best_config == blocks(64)[0]


def test_warmup_and_rep_limit_what_is_measured():
    import time

    tuned = tessera.autotune(blocks(32, 64, 128), ["n"], warmup=1, rep=1)(scale)
    start = time.monotonic()
    tuned[grid](numbers(), numbers(), 1000)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("which", ["pre_hook", "post_hook"])
def test_a_hook_that_raises(which):
    def broken(named: Any, **more: Any) -> None:
        raise ZeroDivisionError("oh")

    kernel = tessera.autotune(blocks(32, 128), key=["n"], **{which: broken})(increment)
    x = numbers()
    with pytest.raises(
        TuningError, match=f"{which} .*test_hooks.py:.*ZeroDivisionError: oh"
    ) as error:
        kernel[grid](x, 1000)
    assert error.value.id == "E059" and isinstance(error.value.__cause__, ZeroDivisionError)
    assert (x == numbers()).all()  # nothing is lost


def test_a_configurations_hook_that_raises_is_that_ones_failure():
    def broken(named: Any) -> None:
        raise ZeroDivisionError("oh")

    bad = Config({"BLOCK": 32}, pre_hook=broken)
    kernel = tessera.autotune([bad, *blocks(64, 128)], key=["n"])(increment)
    x = numbers()
    kernel[grid](x, 1000)
    assert (x == numbers() + 1).all() and list(kernel.failures) == [bad]
