# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grids in every form, launched warm: what counts is what they are worth at each launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime.test_warm_paths import count_calls

import tessera
import tessera.language as tl
from tessera import _C
from tessera.errors import LaunchError
from tessera.runtime.jit import JITFunction


@tessera.jit
def count(out):
    tl.atomic_add(out, 1)
    tl.store(out + 1, tl.num_programs(0))
    tl.store(out + 2, tl.num_programs(1))
    tl.store(out + 3, tl.num_programs(2))


class Worth:
    """What has `__index__` and counts how often it is asked."""

    def __init__(self, value: Any) -> None:
        self.value, self.asked = value, 0

    def __repr__(self) -> str:
        return f"Worth({self.value})"

    def __index__(self) -> int:
        self.asked += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Called(tuple):  # type: ignore[type-arg]
    def __call__(self, meta: Any) -> Any:
        raise AssertionError("a tuple is no function")


class Odd(int):
    def __index__(self) -> int:
        return 77


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches that Python does."""
    for _ in range(2):  # a dtype's first launch learns what it is
        count[(1,)](np.zeros(4, np.int32))
    return count_calls(monkeypatch, JITFunction, "_run")


def launch(grid: Any) -> list[int]:
    out = np.zeros(4, np.int32)
    count[grid](out)
    return out.tolist()


GRIDS = [
    (3, (3, 1, 1)),
    (True, (1, 1, 1)),
    (Odd(3), (3, 1, 1)),
    (np.int64(3), (3, 1, 1)),
    (np.array(3), (3, 1, 1)),
    (Worth(3), (3, 1, 1)),
    ((3, 2), (3, 2, 1)),
    (Called((3, 2)), (3, 2, 1)),
    ([3, 2, 4], (3, 2, 4)),
    ((np.uint8(3), np.int32(2)), (3, 2, 1)),
    ([np.array(3), 2, Worth(2)], (3, 2, 2)),
]


@pytest.mark.parametrize("grid, extents", GRIDS, ids=repr)
@pytest.mark.parametrize("returned", [False, True])
def test_what_a_grid_may_be(
    whole: list[Any], grid: Any, extents: tuple[int, ...], returned: bool
) -> None:
    want = [int(np.prod(extents)), *extents]
    for _ in range(3):
        assert launch((lambda meta: grid) if returned else grid) == want
    assert not whole
    assert _C.read_grid(grid) == extents


def test_integers_of_torch(whole: list[Any]) -> None:
    torch = pytest.importorskip("torch")
    for grid in (torch.empty(3, 2).shape, torch.tensor(6), (torch.tensor(3), torch.tensor([2]))):
        assert launch(grid)[0] == 6
        assert launch(lambda meta: grid)[0] == 6
    assert not whole


def test_an_index_is_asked_once(whole: list[Any]) -> None:
    extent = Worth(3)
    launch((extent, 2))
    launch(lambda meta: [2, extent])
    assert extent.asked == 2
    extent.value = ZeroDivisionError("not now")
    for grid in (extent, (extent,), lambda meta: (extent,)):
        extent.asked = 0
        with pytest.raises(ZeroDivisionError, match="not now"):
            launch(grid)
        assert extent.asked == 1
    assert not whole


@pytest.mark.parametrize("error", [KeyError("Q"), TypeError("no"), LaunchError("E051", "x")])
def test_what_a_function_raises_is_unchanged(error: Exception) -> None:
    asked = []

    def grid(meta: Any) -> Any:
        asked.append(meta)
        raise error

    fresh = tessera.jit(count.fn)
    for number in range(1, 4):  # the second and third launches are of a known kernel
        with pytest.raises(type(error)) as caught:
            fresh[grid](np.zeros(4, np.int32))
        assert caught.value is error and len(asked) == number
        fresh[(1,)](np.zeros(4, np.int32))


def test_a_list_that_changes_while_it_is_read() -> None:
    class Shrinks(Worth):
        def __index__(self) -> int:
            grid.clear()
            return 1

    grid: list[Any] = [Shrinks(1), 2]
    with pytest.raises(LaunchError, match="E052"):
        launch(grid)


@pytest.mark.parametrize(
    "grid, message",
    [
        (np.array([1, 2]), r"the grid is array\(\[1, 2\]\), not one to three integers"),
        (np.float64(1), "not one to three integers"),
        ((np.float64(1),), "the extent .*float64"),
        (-1, "has the extent -1"),
        (np.int64(-1), "has the extent -1"),
        (1 << 31, "use 0 to 2147483647"),
        ("12", "the grid is '12', not one to three integers"),
        (range(2), "not one to three integers"),
        (Worth(1 << 40), "use 0 to 2147483647"),
        (Worth("x"), "not one to three integers"),
    ],
    ids=repr,
)
def test_what_is_no_grid(grid: Any, message: str) -> None:
    assert _C.read_grid(grid) is None
    for _ in range(2):
        with pytest.raises(LaunchError, match=message) as error:
            launch(grid)
        assert error.value.id == "E052"
        with pytest.raises(LaunchError) as error:
            launch(lambda meta: grid)
        assert error.value.id == "E052"


def test_a_function_in_place_of_an_integer() -> None:
    """A function is called, whatever else it may be; what it returns is not."""

    class Both(Worth):
        def __call__(self, meta: Any) -> Any:
            return (self.value + 1,)

    assert launch(Both(2)) == [3, 3, 1, 1]
    with pytest.raises(LaunchError, match="the grid function returned"):
        launch(lambda meta: Both(2))
