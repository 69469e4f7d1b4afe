# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The warning of a kernel whose launches cannot be learned, with the argument's name."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.errors import SlowLaunchWarning


class Spelled:
    """An array whose dtype is a string, which the core does not know."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def dtype(self) -> str:
        return str(self.array.dtype)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)


class Mutable:
    """A constant that is compared by its members."""

    def __init__(self) -> None:
        self.value = 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mutable) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def new_kernel() -> Any:
    @tessera.jit
    def copy(x, out, MODE: tl.constexpr = None):
        i = tl.arange(0, 16)
        tl.store(out + i, tl.load(x + i))

    return copy


def warnings_of(launch: Callable[[], Any], count: int) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(count):
            launch()
    return [str(item.message) for item in caught if item.category is SlowLaunchWarning]


def test_one_warning_names_the_argument():
    kernel = new_kernel()
    x, out = np.arange(16.0), np.zeros(16)
    assert not warnings_of(lambda: kernel[(1,)](Spelled(x), out), 99)
    found = warnings_of(lambda: kernel[(1,)](Spelled(x), out), 200)
    assert len(found) == 1 and "`x` is a Spelled" in found[0] and "`copy`" in found[0]
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("constant", [Mutable(), (1, Mutable())], ids=["object", "in a tuple"])
def test_a_constant_that_may_change_in_place(constant: Any) -> None:
    kernel = new_kernel()
    x, out = np.arange(16.0), np.zeros(16)
    found = warnings_of(lambda: kernel[(1,)](x, out, MODE=constant), 110)
    assert len(found) == 1 and "`MODE` is a constant that may change" in found[0]


def test_warm_launches_and_checked_ones_do_not_warn():
    kernel = new_kernel()
    x, out = np.arange(16.0), np.zeros(16)
    assert not warnings_of(lambda: kernel[(1,)](x, out), 300)
    assert not warnings_of(lambda: kernel[(1,)](x, out, debug=True), 110)

    def fails() -> None:
        with pytest.raises(tessera.ArgumentError):
            kernel[(1,)]("x", out)

    assert not warnings_of(fails, 110)
