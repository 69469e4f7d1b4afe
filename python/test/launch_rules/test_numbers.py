# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about numbers: which make another kernel, and which a parameter takes."""

from __future__ import annotations

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
    marked,
    plain,
)

import tessera
import tessera.language as tl
from tessera import _C
from tessera.frontend.signature import KnownSpec
from tessera.runtime.specialize import float_bits


@tessera.jit
def annotated(a: tl.int16, b: tl.float64 = 2, c: "u64" = 1):
    pass


@pytest.mark.parametrize(
    "first, second, wanted",
    [
        (5, 7, NEITHER), (5, 1 << 40, BOTH), (1 << 40, 1 << 63, BOTH), (1 << 40, 1 << 50, NEITHER),
        (5, 5.0, BOTH), (5, True, BOTH), (2.5, 1e300, NEITHER), (True, False, NEITHER),
        (5, 1, BOTH), (1, 1.0, BOTH), (1, True, BOTH), (5, None, BOTH),
        (16, 48, NEITHER), (16, 8, BOTH), (8, 4, BOTH), (4, 2, BOTH), (2, 3, NEITHER), (0, -16, NEITHER),
    ],
    ids=repr,
)  # fmt: skip
def test_numbers(first: Any, second: Any, wanted: Any) -> None:
    assert distinguish(plain, first, second) == wanted
    assert distinguish(plain, second, first) == wanted


@pytest.mark.parametrize(
    "first, second, wanted",
    [
        ({"a": 5}, {"a": 1}, NEITHER), ({"a": 16}, {"a": 7}, NEITHER), ({"a": 5}, {"a": 1 << 40}, BOTH),
        ({"a": 0, "b": 16}, {"a": 0, "b": 7}, NEITHER), ({"a": 0, "b": 5}, {"a": 0, "b": 1}, BOTH),
    ],
)  # fmt: skip
def test_parameters_that_are_not_to_be_specialised(first: Any, second: Any, wanted: Any) -> None:
    assert distinguish(marked, first, second) == wanted


@pytest.mark.parametrize(
    "first, second, wanted",
    [
        ({"a": 5}, {"a": 1}, NEITHER), ({"a": 5}, {"a": -7}, NEITHER), ({"a": 16}, {"a": 7}, BOTH),
        ({"a": 5}, {"a": True}, NEITHER), ({"a": 5, "b": 1}, {"a": 5, "b": 2.5}, NEITHER),
        ({"a": 5, "c": 1 << 63}, {"a": 5, "c": 5}, BOTH), ({"a": 5, "c": 7}, {"a": 5, "c": 5}, NEITHER),
    ],
)  # fmt: skip
def test_annotated_numbers(first: Any, second: Any, wanted: Any) -> None:
    assert distinguish(annotated, first, second) == wanted


@pytest.mark.parametrize(
    "wrong", [{"a": 1 << 15}, {"a": -(1 << 15) - 1}, {"a": 5, "c": -1}, {"a": 5, "c": 1 << 64}]
)
def test_annotated_numbers_out_of_range(wrong: Any) -> None:
    with pytest.raises(tessera.ArgumentError, match="E055"):
        bound_of(annotated, wrong)
    warm = Warm(annotated)
    for _ in range(2):
        warm.knows({"a": 5})
        with pytest.raises(tessera.ArgumentError, match="E055"):
            warm.knows(wrong)


@pytest.mark.parametrize(
    "name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_the_ends_of_each_annotated_type(name: str) -> None:
    store = tessera.jit(with_annotation(name))
    info = np.iinfo(name)
    warm = Warm(store)
    for value in (int(info.min), int(info.max)):
        assert bound_of(store, {"a": value}).slots == [value]
        warm.knows({"a": value})
        assert warm.knows({"a": value})
    for value in (int(info.min) - 1, int(info.max) + 1, 10**5000):
        for refuse in (lambda given: bound_of(store, given), warm.knows):
            with pytest.raises(tessera.ArgumentError, match="E055.*does not fit"):
                refuse({"a": value})


def with_annotation(name: str) -> Any:
    def store(a: Any) -> None:
        pass

    store.__annotations__["a"] = getattr(tl, name)
    return store


@pytest.mark.parametrize(
    "value, wanted",
    [
        (1, (0, 0, 1)),
        (True, (tl.int1._core_id, 0, 1)),
        (-1, (tl.int32._core_id, 0, -1)),
        (-(2**31), (tl.int32._core_id, 16, -(2**31))),
        (-(2**31) - 4, (tl.int64._core_id, 4, -(2**31) - 4)),
        (2**63 + 8, (tl.uint64._core_id, 8, 2**63 + 8)),
        (1.0, (tl.float32._core_id, 0, 0x3F800000)),
        (1e300, (tl.float32._core_id, 0, 0x7F800000)),
    ],
)
def test_what_numbers_are_taken_for(value: Any, wanted: Any) -> None:
    assert _C.specialise_number(value, True, True) == wanted


def test_what_is_asked_not_to_be_assumed() -> None:
    assert _C.specialise_number(1, False, True) == (tl.int32._core_id, 0, 1)
    assert _C.specialise_number(16, False, True) == (tl.int32._core_id, 0, 16)
    assert _C.specialise_number(16, True, False) == (tl.int32._core_id, 0, 16)
    assert _C.specialise_number(1, True, False) == (0, 0, 1)


def test_one_is_a_constant() -> None:
    found = bound_of(plain, {"a": 1})
    assert found.specs[0] == KnownSpec(1) and found.slots == [2]


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1])
def test_integers_that_fit_nothing(value: int) -> None:
    with pytest.raises(tessera.ArgumentError, match="fits no 64-bit integer"):
        bound_of(plain, {"a": value})
    assert _C.specialise_number(value, True, True) is None


@pytest.mark.parametrize("value", [None, "1", np.int32(1), [1]])
def test_what_is_no_plain_number(value: Any) -> None:
    with pytest.raises(TypeError):
        _C.specialise_number(value, True, True)


@pytest.mark.parametrize(
    "value, dtype",
    [
        (0, tl.int32),
        (2**31 - 1, tl.int32),
        (-(2**31), tl.int32),
        (2**31, tl.int64),
        (-(2**63), tl.int64),
        (2**63, tl.uint64),
        (2**64 - 1, tl.uint64),
        (True, tl.int1),
        (False, tl.int1),
        (1.5, tl.float32),
        (math.inf, tl.float32),
        (np.int64(7), tl.int32),
        (np.uint64(2**63), tl.uint64),
        (np.float32(2.5), tl.float32),
        (np.float64(2.5), tl.float32),
        (np.bool_(True), tl.int1),
    ],
)
def test_types_of_numbers(value: Any, dtype: Any) -> None:
    found = bound_of(plain, {"a": value, "b": None})
    assert found.specs[0].type.dtype == dtype._core_id
    assert found.slots[0] % 2**64 == (
        float_bits(tl.float32, float(value)) if dtype is tl.float32 else int(value) % 2**64
    )


@pytest.mark.parametrize(
    "place, wrong", [(2, 7), (2, 1 << 40), (2, 2.0), (2, None), (3, None), (4, 16)]
)
def test_numbers_that_a_compiled_kernel_refuses(place: int, wrong: Any) -> None:
    check_compiled_refuses(place, wrong)


def near(choose: random.Random) -> int:
    """Integers at the ends of what types hold, and at what divides."""
    bits = choose.choice((0, 1, 2, 3, 4, 5, 8, 16, 30, 31, 32, 62, 63, 64, 65))
    return choose.choice((-1, 1)) * (1 << bits) + choose.randint(-17, 17)


def real(choose: random.Random) -> float:
    return choose.choice(
        (0.0, -0.0, 1.0, 2.5, float("nan"), float("inf"), 1e300, -1e300, choose.random())
    )


def number(choose: random.Random) -> Any:
    kind = choose.choice("iiifb")
    return near(choose) if kind == "i" else real(choose) if kind == "f" else choose.random() < 0.5


@pytest.mark.parametrize("fn, count", [(plain, 600), (marked, 600), (annotated, 2400)],
                         ids=["plain", "marked", "annotated"])  # fmt: skip
@pytest.mark.parametrize("seed", range(2))
def test_random_numbers(fn: Any, count: int, seed: int) -> None:
    def make(choose: random.Random) -> dict[str, Any]:
        given = {"a": number(choose), "b": number(choose)}
        return {**given, "c": number(choose)} if fn is annotated else given

    same, different = compare_paths(fn, make, count, seed)
    assert same > 40 and different > 40
