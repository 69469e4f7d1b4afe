# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which argument makes a kernel be compiled again and again: E056 and `kernel.compilations`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import settings
from tessera.errors import RecompilationWarning

OUT = np.zeros(64, np.float32)
MEMORY = np.zeros(256, np.float32)


@pytest.fixture(autouse=True)
def few(tmp_path: Path) -> Iterator[None]:
    with settings.override(cache_dir=str(tmp_path / "cache"), recompile_warning=6):
        yield


def kernel(**options: Any) -> Any:
    @tessera.jit(**options)
    def store(out, n, x=None, SIZE: tl.constexpr = 16):  # type: ignore[no-untyped-def]
        i = tl.arange(0, 16)
        tl.store(out + i, n + SIZE, mask=i < n)

    return store


def warned(launch: Callable[[Any, int], Any], times: int = 12, **options: Any) -> list[str]:
    """What is said about so many launches of a kernel."""
    fn = kernel(**options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for index in range(times):
            launch(fn, index)
    assert all(issubclass(item.category, RecompilationWarning) for item in caught)
    assert all(item.filename == __file__ for item in caught)
    return [str(item.message) for item in caught]


def test_a_constexpr_is_named_with_its_values_and_a_fix() -> None:
    (said,) = warned(lambda fn, i: fn[(1,)](OUT, 16, SIZE=i))
    assert "`store` has been compiled 6 times (E056)" in said
    assert "constexpr `SIZE`, of 6 values: 0, 1, 2, 3, ..." in said
    assert "fix: make `SIZE` a plain argument" in said and "store.compilations" in said
    assert "`n`" not in said and "option" not in said


def test_a_constexpr_that_is_no_number() -> None:
    dtypes = [tl.int8, tl.int16, tl.int32, tl.int64, tl.float16, None]
    (said,) = warned(lambda fn, i: fn[(1,)](OUT, 16, dtypes[i % 6]))
    assert "constexpr `x`, of 6 values: tl.int8, tl.int16, tl.int32, tl.int64, ..." in said
    assert "give `x` fewer values" in said


def test_an_integer_that_is_1_at_times() -> None:
    numbers = [1, 16, 8, 4, 3, 1 << 40]
    (said,) = warned(lambda fn, i: fn[(1,)](OUT, numbers[i % 6]))
    assert "argument `n`, of 6 kinds: the integer 1, 16 (i32 divisible by 16), 8 (i32" in said
    assert 'fix: @tessera.jit(do_not_specialize=["n"])' in said
    # And that helps.
    assert not warned(lambda fn, i: fn[(1,)](OUT, numbers[i % 5]), do_not_specialize=["n"])


def test_an_address_whose_alignment_changes() -> None:
    def launch(fn: Any, index: int) -> None:
        fn[(1,)](MEMORY[(1, 2, 4, 0)[index % 4] :][:16], 16, SIZE=(1, 2)[index // 4 % 2])

    (said,) = warned(launch)
    assert "argument `out`, of " in said and "kinds: *fp32 divisible by " in said
    assert 'do_not_specialize_on_alignment=["out"]' in said
    # The constexpr has half as many, and is told after it.
    assert said.index("`out`") < said.index("`SIZE`, of 2 values")
    fixed = kernel(do_not_specialize_on_alignment=["out"])
    for index in range(12):
        launch(fixed, index)
    assert len(fixed.compilations) == 2


def test_an_option_and_the_type_of_an_argument() -> None:
    (said,) = warned(lambda fn, i: fn[(1,)](OUT, 16, cpu=("x86-64-v3", "x86-64")[i % 2], SIZE=i))
    assert "`SIZE`, of 6" in said and "option" not in said  # it has two values of six
    dtypes = (np.float32, np.float64, np.int32, np.int64, np.int8, np.int16)
    (said,) = warned(lambda fn, i: fn[(1,)](np.zeros(64, dtypes[i % 6]), 16))
    assert "argument `out`, of 6 kinds: *fp32 divisible by 16" in said
    assert "pass arrays of the same type for `out`" in said


def test_a_global_that_changes() -> None:
    (said,) = warned(lambda fn, i: (set_factor(i), scaled[(1,)](OUT)))
    assert "the global `FACTOR`, changed 5 times" in said
    assert "pass what changes as an argument" in said
    assert [str(one) for one in scaled.compilations[:2]] == [
        "the first one",
        "the global `FACTOR` was changed",
    ]


FACTOR = tl.constexpr(0)


@tessera.jit
def scaled(out):  # type: ignore[no-untyped-def]
    tl.store(out, FACTOR)


def set_factor(value: int) -> None:
    global FACTOR
    FACTOR = tl.constexpr(value)


def test_parts_of_tuples_and_descriptors_are_named() -> None:
    @tessera.jit
    def take(pair, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
        tl.store(pair[0], pair[1])

    for number in (16, 8):
        take[(1,)]((OUT, number), SIZE=1)
    (difference,) = take.compilations[1].differences
    assert difference.what == "argument `pair[1]`"
    assert difference.before == "16 (i32 divisible by 16)"
    assert difference.now == "8 (i32 divisible by 8)"

    from tessera.tools.tensor_descriptor import TensorDescriptor

    @tessera.jit
    def load(tile, out):  # type: ignore[no-untyped-def]
        tl.store(out, tl.sum(tl.sum(tile.load([0, 0]), 0), 0))

    for columns in (64, 40):
        base = MEMORY[: 2 * columns].reshape(2, columns)
        load[(1,)](TensorDescriptor.from_tensor(base, [2, 8]), OUT)
    shape, strides = load.compilations[1].differences
    assert (shape.what, strides.what) == ("argument `tile.shape[1]`", "argument `tile.strides[0]`")
    assert shape.before == "64 (i32 divisible by 16)" and strides.now == "40 (i32 divisible by 8)"


def test_the_nearest_earlier_one_is_compared_with() -> None:
    fn = kernel()
    fn[(1,)](OUT, 16, SIZE=1)
    fn[(1,)](OUT, 3, SIZE=2)
    fn[(1,)](OUT, 16, SIZE=2)  # one step from either
    fn[(1,)](OUT, 16, SIZE=2)  # nothing new
    reasons = [one.reason for one in fn.compilations]
    assert reasons[0] == "the first one" and len(reasons) == 3
    assert reasons[1].startswith("argument `n`: 3 (i32 divisible by nothing known), was 16")
    assert reasons[1].endswith("constexpr `SIZE`: 2, was 1")
    assert len(fn.compilations[2].differences) == 1


def test_negative_numbers_are_shown_as_they_are() -> None:
    fn = kernel()
    for number in (-3, -8):
        fn[(1,)](OUT, number)
    assert fn.compilations[1].differences[0].before.startswith("-3 (i32")


def test_it_is_said_once_and_not_if_it_is_off() -> None:
    assert len(warned(lambda fn, i: fn[(1,)](OUT, 16, SIZE=i), times=30)) == 1
    with settings.override(recompile_warning=0):
        assert not warned(lambda fn, i: fn[(1,)](OUT, 16, SIZE=i))
    with settings.override(recompile_warning=1):
        (said,) = warned(lambda fn, i: fn[(1,)](OUT, 16))
        assert "compiled 1 time (E056)" in said
    with settings.override(recompile_warning=13):
        assert not warned(lambda fn, i: fn[(1,)](OUT, 16, SIZE=i))


def test_a_tuned_kernel_may_have_many() -> None:
    configs = [tessera.Config({"SIZE": size}) for size in range(8)]
    tuned = tessera.autotune(configs=configs, key=["n"])(kernel())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecompilationWarning)
        tuned[(1,)](OUT, 16)
