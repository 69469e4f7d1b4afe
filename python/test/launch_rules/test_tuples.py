# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about tuples, lists and records: their length, their nesting and their class."""

from __future__ import annotations

import dataclasses
import random
from typing import Any, NamedTuple

import pytest
from launch_rules.both_paths import BOTH, NEITHER, bound_of, compare_paths, distinguish, plain

import tessera.language as tl
from tessera.frontend.signature import ConstSpec, TupleSpec


class Pair(NamedTuple):
    left: Any
    right: Any


class Other(NamedTuple):
    right: Any
    left: Any


@dataclasses.dataclass
class Record:
    data: Any
    size: Any
    scale: tl.constexpr = 3


@dataclasses.dataclass
class Same:
    data: Any
    size: Any
    scale: tl.constexpr = 3


@pytest.mark.parametrize(
    "first, second, wanted",
    [
        ((2, 3), (6, 7), NEITHER), ((2, 3), [6, 7], NEITHER), ((2, 3), (2, 3, 5), BOTH), ((2,), 2, BOTH),
        (((2, 3),), ((2,), 3), BOTH), (((2,), 3), (2, (3,)), BOTH), ((2, ()), (2,), BOTH),
        (((), (), 2), ((), ((), 2)), BOTH),
        ({"a": (2,), "b": 3}, {"a": (2, 3), "b": 3}, BOTH),
        (tuple(range(2, 258)), (), BOTH), ((tuple(range(2, 258)), 7), (7,), BOTH),
    ],
)  # fmt: skip
def test_lengths_and_nesting(first: Any, second: Any, wanted: Any) -> None:
    assert distinguish(plain, first, second) == wanted
    assert distinguish(plain, second, first) == wanted


@pytest.mark.parametrize(
    "first, second, wanted",
    [
        (Pair(2, 3), Pair(6, 7), NEITHER), (Pair(2, 3), (2, 3), BOTH), (Pair(2, 3), Other(2, 3), BOTH),
        ((Pair(2, 3),), ((2, 3),), BOTH), (Record(2, 3), Record(6, 7), NEITHER),
        (Record(2, 3), Same(2, 3), BOTH), (Record(2, 3), Record(2, 3, 4), BOTH),
    ],
    ids=repr,
)  # fmt: skip
def test_classes(first: Any, second: Any, wanted: Any) -> None:
    assert distinguish(plain, first, second) == wanted
    assert distinguish(plain, second, first) == wanted


def test_what_tuples_are_taken_for() -> None:
    found = bound_of(plain, {"a": Pair(4, None), "b": (2, (3, None))})
    left, right = found.specs[:2]
    assert isinstance(left, TupleSpec) and left.cls is Pair and left.items[1] == ConstSpec(None)
    assert isinstance(right, TupleSpec) and right.cls is None
    assert right.items[1].items[1] == ConstSpec(None)
    assert found.slots == [4, 2, 3]


def test_random_tuples() -> None:
    def one(choose: random.Random, depth: int = 0) -> Any:
        if depth == 3 or choose.random() < 0.3:
            return 2
        items = [one(choose, depth + 1) for _ in range(choose.randint(0, 2))]
        return Pair(*items) if len(items) == 2 and choose.random() < 0.3 else tuple(items)

    same, different = compare_paths(
        plain, lambda choose: {"a": one(choose), "b": one(choose)}, 600, 0
    )
    assert same > 60 and different > 60
