# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning where the grid is the same for all configurations: it must not be won by the one that does
the least."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import Config, TuningError, TuningWarning
from tessera.runtime.arrays import pointer_of
from tessera.runtime.specialize import PointerSlot
from tessera.tuning.arrays import find_pieces
from tessera.tuning.automatic import find_extents
from tessera.tuning.compare import deviations_of, elements_of

from .kernels import accumulate, blocks, grid, increment, numbers, scale

N = 1000
GRID = (4,)
"""Which fits tiles of 256."""


def tuned(kernel: Any, configs: Any = None, **more: Any) -> Any:
    return tessera.autotune(configs or blocks(32, 256, 128), key=[], **more)(kernel)


def refused(kernel: Any, *args: Any, grid: Any = GRID) -> TuningError:
    with pytest.raises(TuningError) as error:
        kernel[grid](*args)
    assert error.value.id == "E086"
    return error.value


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", TuningWarning)
        yield


def test_what_leaves_elements_unwritten_is_an_error():
    kernel = tuned(scale)
    out = np.full(N, 7, np.float32)
    for _ in range(2):
        error = refused(kernel, numbers(), out, N)
        assert error.message == (
            "the configuration BLOCK=32 of kernel `scale` leaves 872 of 1000 elements of `out_ptr` "
            "unwritten that BLOCK=256 writes: the grid (4,) is the same for all, and `BLOCK` is the "
            "extent of a tile"
        )
        assert error.fix.startswith("pass a function of the configuration as the grid, such as ")
        assert 'meta["BLOCK"]' in error.fix and "check=False" in error.fix
        assert (out == 7).all() and not kernel.cache and kernel.best_config is None


def test_it_is_turned_off(no_warnings):
    kernel = tuned(scale, check=False)
    kernel[GRID](numbers(), numbers(), N)
    assert kernel.best_config in blocks(32, 256, 128)


def test_a_grid_that_follows_the_tile(no_warnings):
    out = numbers()
    tuned(scale)[grid](numbers(), out, N)
    assert (out == 2 * numbers()).all()


def test_options_alone_are_not_compared(no_warnings, monkeypatch):
    from tessera.tuning import coverage

    monkeypatch.setattr(coverage, "Coverage", lambda *arguments: pytest.fail("it is compared"))
    kernel = tuned(scale, [Config({"BLOCK": 256}, num_warps=warps) for warps in (2, 4, 8)])
    kernel[GRID](numbers(), numbers(), N)


@pytest.mark.parametrize("tiles", [(32, 256), (256, 32)])
def test_with_a_check_of_everything(tiles):
    """The majority may be of those that do the same part of the work."""
    kernel = tuned(scale, blocks(*tiles) + blocks(32, num_warps=2), check=True)
    refused(kernel, numbers(), numbers(), N)


def test_a_search():
    with pytest.raises(TuningError, match="E086"):
        tessera.tune(scale, GRID, (numbers(), numbers(), N), {"BLOCK": [32, 64, 256]}, seconds=0.1)
    space = {"BLOCK": [32, 64, 256]}
    tessera.tune(scale, GRID, (numbers(), numbers(), N), space, seconds=0.1, check=False)


def test_where_a_function_measures():
    def bench(launch: Any, quantiles: Any) -> float:
        launch()
        launch()
        return 1.0

    refused(tuned(scale, do_bench=bench), numbers(), numbers(), N)


def test_hooks_are_called_around_each_run(no_warnings):
    calls: list[str] = []
    hooks = {
        "pre_hook": lambda named, reset_only=False: calls.append("reset" if reset_only else "pre"),
        "post_hook": lambda named, exception: calls.append("post"),
    }
    kernel = tuned(looping, **hooks)
    out = numbers()
    kernel[(3,)](numbers(), out, N)
    assert calls[0::2] == ["pre"] * (len(calls) // 2) + ["reset"]
    assert calls[1::2] == ["post"] * (len(calls) // 2) and (out == 2 * numbers()).all()


# --- What does the same in each configuration -------------------------------------------------


@tessera.jit
def looping(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """As many programs as there are, whatever the tile."""
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@tessera.jit
def sums_of_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The tile lies along what is added up."""
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(total))


@tessera.jit
def sum_by_atomics(x_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.atomic_add(sum_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


def test_programs_that_go_on_to_other_tiles(no_warnings):
    out = np.full(N + 1, 7, np.float32)
    tuned(looping)[(3,)](numbers(), out, N)
    assert (out[:N] == 2 * numbers()).all() and out[N] == 7  # which nobody writes


def test_tiles_along_what_is_added_up(no_warnings):
    x = np.random.default_rng(0).standard_normal((50, N)).astype(np.float32)
    out = np.zeros(50, np.float32)
    tuned(sums_of_rows)[(50,)](x, out, N)
    np.testing.assert_allclose(out, x.sum(1), rtol=1e-4, atol=1e-4)


def test_atomics_that_add_up_to_the_same(no_warnings):
    total = np.full(1, 3, np.float32)
    tuned(sum_by_atomics)[(3,)](np.ones(N, np.float32), total, N)
    assert total[0] == N + 3


# --- What cannot be told ----------------------------------------------------------------------


@tessera.jit
def partial_sums(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


@pytest.mark.parametrize("kernel", [accumulate, partial_sums])
def test_values_that_differ_are_told(kernel):
    with pytest.warns(TuningWarning, match="E086") as told:
        tuned(kernel)[GRID](np.ones(N, np.float32), np.zeros(4, np.float32), N)
    (warning,) = told
    assert f"kernel `{kernel.__name__}` writes other values to `" in str(warning.message)
    assert "the grid (4,) is the same for all, and `BLOCK` is the extent" in str(warning.message)
    assert warning.filename == __file__


def test_that_none_agrees_with_another_is_told():
    with pytest.warns(TuningWarning, match=r"writes other values to `sum_ptr` with each configur"):
        tuned(accumulate, blocks(32, 256))[GRID](np.ones(N, np.float32), np.zeros(1, "f4"), N)


def test_arrays_that_are_read_and_written():
    x = numbers()
    with pytest.warns(TuningWarning, match="writes other values to `x_ptr`"):
        tuned(increment)[GRID](x, N)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TuningWarning)
        tuned(increment, check=False)[GRID](numbers(), N)


def test_an_array_that_is_read_by_another_name():
    """What is stored is what is loaded, so that it cannot be filled with anything."""
    x = numbers()
    with pytest.warns(TuningWarning, match="writes other values to `out_ptr`"):
        tuned(scale)[GRID](x, x, N)


def test_arrays_that_the_user_resets():
    with pytest.warns(TuningWarning, match="writes other values to `out_ptr`"):
        tuned(scale, reset_to_zero=["out_ptr"])[GRID](numbers() + 1, numbers(), N)


@tessera.jit
def sums_with_space(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * 2, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


def test_values_beside_what_nobody_writes():
    """What is left of the pattern, which is no value, says nothing of what is rounding."""
    with pytest.warns(TuningWarning, match="writes other values to `out_ptr`"):
        tuned(sums_with_space)[GRID](np.ones(N, np.float32), np.zeros(8, np.float32), N)


def test_configurations_that_differ_in_more():
    """That the pair with the fault does not differ in the tile."""

    @tessera.jit
    def some(out_ptr, n, FLAG: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, 1.0, mask=i < n)
        if FLAG:
            tl.store(out_ptr + 512 + i, 1.0)

    configs = [Config({"BLOCK": b, "FLAG": f}) for b, f in ((256, 0), (256, 1), (512, 1))]
    assert "`BLOCK` is the extent" in refused(tuned(some, configs), numbers(2000), 256).message


# --- Arrays -----------------------------------------------------------------------------------


@tessera.jit
def constant(out_ptr, stride, n, VALUE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i * stride, VALUE, mask=i < n)


@pytest.mark.parametrize("value", [0, -89, 88, 1])
def test_values_that_are_the_pattern(value, no_warnings):
    """A value that tells nothing, since it is there before the run, is no value unwritten."""
    out = np.zeros(1024, np.int8)
    configs = [Config({"BLOCK": size}, num_warps=w) for size, w in ((256, 1), (128, 1))]

    def launch(grid: Any) -> None:
        tuned(constant, configs)[grid](out, 1, 512, value)

    launch(lambda meta: (512 // meta["BLOCK"],))
    assert (out[:512] == value).all() and not out[512:].any()
    with pytest.raises(TuningError, match="leaves 256 of 1024 elements"):
        launch((2,))


@pytest.mark.parametrize("step", [3, -1, -2])
def test_what_lies_between_is_left_alone(step):
    whole = np.arange(3 * N, dtype=np.float32)
    mine = slice(0, 3 * N, step) if step > 0 else slice(N * -step - 1, None, step)
    out = whole[mine]
    before = whole.copy()
    assert len(out) == N
    error = refused(tuned(constant), out, step, N, 5)
    looked = " that were looked at" if abs(step) > 1 else ""
    assert f"elements of `out_ptr`{looked} unwritten that BLOCK=256" in error.message
    assert (np.delete(whole, mine) == np.delete(before, mine)).all()


@pytest.mark.parametrize("make", ["empty", "column", "bfloat16", "bool", "transposed"])
def test_tensors_of_torch(make):
    torch = pytest.importorskip("torch")
    if make == "column":
        whole = torch.arange(3.0 * N).view(N, 3)
        out = whole[:, 1]
    elif make == "transposed":
        out = torch.zeros(50, 20).t()
    else:
        dtype = {"bfloat16": torch.bfloat16, "bool": torch.bool}.get(make, torch.float32)
        out = torch.zeros(N, dtype=dtype)
    stride = 3 if make == "column" else 1
    error = refused(tuned(constant), out, stride, N, 1)
    assert "elements of `out_ptr`" in error.message
    if make == "column":
        others = torch.arange(3.0 * N).view(N, 3)
        assert whole[:, 0::2].equal(others[:, 0::2])


def test_arrays_in_a_tuple():
    @tessera.jit
    def both(pair, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(pair[1] + i, tl.load(pair[0] + i, mask=i < n), mask=i < n)

    assert "elements of `pair[1]`" in refused(tuned(both), (numbers(), numbers()), N).message


def test_an_array_that_only_some_write():
    @tessera.jit
    def second(out_ptr, extra_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i % n, 1.0)
        if BLOCK == 256:
            tl.store(extra_ptr + i, 1.0, mask=i < n)

    error = refused(tuned(second, blocks(256, 512)), numbers(), numbers(), N)
    assert (
        "BLOCK=512 of kernel `second` leaves 1000 of 1000 elements of `extra_ptr`" in error.message
    )


@pytest.mark.parametrize("columns", [8, 100, 4096])
@pytest.mark.parametrize("axis", [0, 1])
def test_large_arrays(columns, axis):
    """A part of the rows, or of the columns, wherever they lie."""

    @tessera.jit
    def tile(out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
        i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
        j = tl.program_id(1) * N + tl.arange(0, N)[None, :]
        tl.store(out_ptr + i * columns + j, 1.0, mask=(i < rows) & (j < columns))

    rows = (1 << 23) // columns
    out = np.zeros((rows, columns), np.float32)
    grid = (tessera.cdiv(rows, 64), tessera.cdiv(columns, 64))
    configs = [Config({"M": 64, "N": 64}), Config({"M": 64, "N": 64, ("M", "N")[axis]: 32})]
    if columns == 8 and axis == 1:
        configs[1].kwargs["N"] = 8
        tuned(tile, configs)[grid](out, rows, columns)
        assert (out == 1).all()
        return
    error = refused(tuned(tile, configs), out, rows, columns, grid=grid)
    assert (
        set(np.unique(out)) <= {0, 1} and f"`{'MN'[axis]}` is the extent of a tile" in error.message
    )


def pieces(array: Any, most: int, count: int) -> Any:
    pointer = pointer_of(array, "x")
    assert pointer is not None
    return find_pieces(PointerSlot(0, "x", pointer), [array], most, count)


@pytest.mark.parametrize("seed", range(40))
def test_pieces_are_of_elements_of_the_array(seed):
    choose = random.Random(seed)
    dtype = choose.choice([np.int8, np.float16, np.float32, np.float64])
    whole = np.zeros(tuple(choose.randrange(1, 40) for _ in range(choose.randrange(1, 4))), dtype)
    cut = tuple(slice(None, None, choose.choice([1, 1, 2, -1, -3])) for _ in whole.shape)
    array = whole[cut].transpose(choose.sample(range(whole.ndim), whole.ndim))
    wanted = set(addresses(array))
    found = pieces(array, choose.choice([8, 100, 1 << 20]), choose.choice([4, 64, 10_000]))
    covered = [
        at for piece in found for at in range(piece.begin, piece.begin + piece.size, array.itemsize)
    ]
    assert covered and set(covered) <= wanted
    assert {min(wanted), max(wanted)} <= set(covered)


def addresses(array: Any) -> Any:
    first = array.__array_interface__["data"][0]
    for at in np.ndindex(array.shape):
        yield first + sum(index * stride for index, stride in zip(at, array.strides))


def test_pieces_of_what_shares_memory():
    assert not pieces(np.lib.stride_tricks.as_strided(np.zeros(9), (3, 3), (8, 8)), 100, 4)
    assert len(pieces(np.zeros((0, 3)), 100, 4)) == 0


# --- What an extent is ------------------------------------------------------------------------


@tessera.constexpr_function
def twice(n):
    return 2 * n


@tessera.jit
def inner(x_ptr, SIZE: tl.constexpr):
    HALF: tl.constexpr = SIZE // 2
    return tl.load(x_ptr + tl.arange(0, HALF))


@tessera.jit
def many(x_ptr, n, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
         E: tl.constexpr, STEPS: tl.constexpr, FLAG: tl.constexpr):  # fmt: skip
    size: tl.constexpr = twice(A)
    first, second = size, 4
    x = tl.zeros([first, second], tl.float32)
    y = inner(x_ptr, tl.cdiv(B, 2)) * STEPS
    y = tl.reshape(y, C * 2, 2)
    at = tl.make_block_ptr(x_ptr, (n, n), (n, 1), (STEPS, 0), (D, 4), (1, 0))
    z = tl.load(at).reshape(E, 4)
    for _ in range(STEPS):
        if FLAG:
            n += STEPS


def test_extents_are_found_through_constants_and_calls():
    assert find_extents(many) == {"A", "B", "C", "D", "E"}


def test_extents_that_are_computed():
    @tessera.jit
    def kernel(out_ptr, n, SIZE: tl.constexpr):
        BLOCK: tl.constexpr = SIZE * 32
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, 1.0, mask=i < n)

    configs = [Config({"SIZE": 1}), Config({"SIZE": 8})]
    assert "`SIZE` is the extent" in refused(tuned(kernel, configs), numbers(), N).message


def test_extents_by_heuristics():
    made = tessera.heuristics({"BLOCK": lambda args: args["n"] and 32 * args["num_stages"]})(scale)
    configs = [Config({}, num_stages=stages) for stages in (1, 8)]
    refused(tuned(made, configs), numbers(), numbers(), N)


# --- Results on disk --------------------------------------------------------------------------


def test_a_result_for_another_grid_tells_nothing():
    configs = blocks(32, 256)
    tuned(scale, configs)[grid](numbers(), numbers(), N)
    refused(tuned(scale, configs), numbers(), numbers(), N)
    loose = tuned(scale, configs, check=False)
    loose[GRID](numbers(), numbers(), N)
    refused(tuned(scale, configs), numbers(), numbers(), N)
    tuned(looping, configs)[(3,)](numbers(), numbers(), N)
    again = tuned(looping, configs)
    again[(3,)](numbers(), numbers(), N)
    assert again.bench_time == 0


def test_elements_of_each_type():
    assert elements_of(b"\1\2", tl.int8)[1] == 0 and elements_of(b"\1\2", tl.float8e5)[1] < 0


@pytest.mark.parametrize("dtype", [tl.int1, tl.int8, tl.int16, tl.int32, tl.int64])
def test_integers_that_are_as_far_apart_as_can_be(dtype):
    """Their difference is a number that has no magnitude in their type."""
    ends = [
        np.array([end], f"i{dtype.itemsize}") for end in (0, np.iinfo(f"i{dtype.itemsize}").min)
    ]
    results = [elements_of(array.tobytes(), dtype) for array in (ends[0], ends[1], ends[1])]
    assert set(deviations_of(np, results, "x")) == {0}
