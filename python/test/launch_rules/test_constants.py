# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about constants and options: which values make another kernel."""

from __future__ import annotations

import dataclasses
import enum
import math
import random
from typing import Any

import numpy as np
import pytest
from launch_rules.both_paths import (
    BOTH,
    NEITHER,
    Warm,
    bound_of,
    check_compiled_refuses,
    compare_paths,
    distinguish,
    plain,
)

import tessera
import tessera.language as tl
from tessera.runtime.specialize import constant_key


class Kind(enum.Enum):
    WIDE = 1
    NARROW = 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    number: Any


@dataclasses.dataclass
class Changing:
    number: Any

    def __hash__(self) -> int:
        return hash(self.number)


FROZEN = Frozen(5)


def text(*parts: str) -> str:
    """A string that no other one is."""
    return "".join(parts)


@pytest.mark.parametrize(
    "first, second, wanted",
    [
        (3, 3, NEITHER), (3, 4, BOTH), (1, True, BOTH), (1, 1.0, BOTH), (0.0, -0.0, BOTH), ("1", 1, BOTH),
        (None, 0, BOTH), (math.nan, -math.nan, BOTH), (float("nan"), float("nan"), NEITHER),
        (2.5, float("2.5"), NEITHER), (text("fa", "st"), text("f", "ast"), NEITHER), ("fast", "slow", BOTH),
        (1 << 70, (1 << 69) * 2, NEITHER), (tl.float32, tl.float16, BOTH), (Kind.WIDE, Kind.NARROW, BOTH),
        (Kind.WIDE, 1, BOTH), ((1, "a"), (1, text("a", "")), NEITHER), ((1,), (True,), BOTH),
        ((0.0, (5,)), (-0.0, (5,)), BOTH), ((1, (2,)), (1, 2), BOTH), (FROZEN, FROZEN, NEITHER),
    ],
    ids=repr,
)  # fmt: skip
def test_constants(first: Any, second: Any, wanted: Any) -> None:
    for one, other in ((first, second), (second, first)):
        assert distinguish(plain, {"a": 2, "c": one}, {"a": 2, "c": other}) == wanted
        # The same where an argument is wrapped, as defaults are.
        assert distinguish(plain, tl.constexpr(one), tl.constexpr(other)) == wanted


@pytest.mark.parametrize("value", [Changing(4), np.array(4)], ids=["members", "array"])
def test_a_constant_that_may_change_in_place(value: Any) -> None:
    """The warm path knows constants by identity, so it must not learn these."""
    for given in ({"a": 2, "c": value}, {"a": tl.constexpr(value)}):
        assert bound_of(plain, given).changing == ("c" if "c" in given else "a")
        warm = Warm(plain)
        assert not any(warm.knows(given) for _ in range(3))
    assert not bound_of(plain, {"a": 2, "c": FROZEN}).changing


def test_options() -> None:
    @tessera.jit
    def fill(out: Any) -> Any:
        tl.store(out, 1)

    out = np.zeros(1, np.float32)
    kernels = [fill[(1,)](out, enable_fp_fusion=fuses) for fuses in (True, False) * 2]
    assert kernels[0] is kernels[2] and kernels[1] is kernels[3]
    assert kernels[0] is not kernels[1]
    whole = [fill.run(out, grid=(1,), enable_fp_fusion=fuses) for fuses in (True, False)]
    assert whole == kernels[:2]


@pytest.mark.parametrize(
    "left, right", [(1, True), (1, 1.0), (0.0, -0.0), ((1,), (True,)), ("1", 1), (None, 0)]
)
def test_constants_that_python_calls_equal_or_not(left: Any, right: Any) -> None:
    assert constant_key(left) != constant_key(right)
    assert constant_key(left) == constant_key(left)


@tessera.jit
def of_constants(out: Any, SHAPE: tl.constexpr) -> Any:
    tl.store(out, SHAPE[0])
    tl.store(out + 1, SHAPE[1][0])


def test_what_a_kernel_makes_of_them() -> None:
    out = np.zeros(2, np.float64)
    for shape in ((3, (5,)), (3.0, (5,)), (0.0, (5,)), (-0.0, (5,)), (True, (1,)), (1, (1,))):
        for _ in range(3):
            of_constants[(1,)](out, SHAPE=tuple([shape[0], tuple(list(shape[1]))]))
            assert out.tolist() == [shape[0], shape[1][0]]
            assert np.signbit(out[0]) == np.signbit(float(shape[0]))
    assert len(of_constants.compilations) == 6


@pytest.mark.parametrize("wrong", [4, 3.0, True])
def test_constants_that_a_compiled_kernel_refuses(wrong: Any) -> None:
    check_compiled_refuses(5, wrong)


def test_random_constants() -> None:
    def one(choose: random.Random, depth: int = 0) -> Any:
        if depth < 2 and choose.random() < 0.2:
            return tuple(one(choose, depth + 1) for _ in range(choose.randint(0, 2)))
        return choose.choice(
            (0, 1, True, False, 1.0, 0.0, -0.0, "a", "b", 1 << 70, None, tl.float32)
        )

    same, different = compare_paths(plain, lambda choose: {"a": 2, "c": one(choose)}, 600, 0)
    assert same > 60 and different > 60


class Described:
    """Equal by its member."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Described) and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)


@dataclasses.dataclass
class Counted:
    data: Any
    number: tl.constexpr


@tessera.jit
def stored(out, number: tl.constexpr):
    tl.store(out, number)


@tessera.jit
def stored_member(out, of: tl.constexpr):
    tl.store(out, of.number)


@tessera.jit
def stored_field(of):
    tl.store(of.data, of.number)


@pytest.mark.parametrize("launch", ["array", "in a constexpr", "in a record", "member"])
def test_what_a_kernel_makes_of_one_that_changes(launch: str) -> None:
    """A 0-d array, or what is compared by its members, counts by what it holds at each launch."""
    out, array, described = np.zeros(1, np.int32), np.array(4), Described(4)
    record = Counted(out, array)
    run = {
        "array": lambda: stored[(1,)](out, array),
        "in a constexpr": lambda: stored[(1,)](out, tl.constexpr(array)),
        "in a record": lambda: stored_field[(1,)](record),
        "member": lambda: stored_member[(1,)](out, described),
    }[launch]
    for number in (4, 8, 4, 8, 6):
        array[...] = described.number = number
        for _ in range(3):
            run()
            assert out[0] == number
    if launch == "array":
        kernels = []
        for number in (4, 8, 4):
            array[...] = number
            kernels.append(stored.warmup(out, array, grid=(1,)))
        assert kernels[0] is kernels[2] is not kernels[1]
