# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about arrays: their element type, and the alignment of their address."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from launch_rules.both_paths import (
    check_compiled_refuses,
    BOTH,
    NEITHER,
    bound_of,
    compare_paths,
    distinguish,
    marked,
    plain,
)

import tessera
import tessera.language as tl

MEMORY = np.zeros(4096, np.uint8)
START = -MEMORY.ctypes.data % 16
DTYPES = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64)


def array(dtype: Any, offset: int = 0) -> np.ndarray:
    """One that lies `offset` bytes behind a multiple of 16."""
    return MEMORY[START + offset : START + offset + 512].view(dtype)


@pytest.fixture(params=["numpy", "torch"])
def of(request: pytest.FixtureRequest) -> Any:
    """Has an array of NumPy's be one of another library."""
    if request.param == "numpy":
        return lambda given: given
    return pytest.importorskip("torch").from_numpy


@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.int8], ids=lambda dtype: dtype.__name__)
def test_the_element_type(of: Any, dtype: Any) -> None:
    first, second = of(array(np.float32)), of(array(dtype))
    assert distinguish(plain, first, second) == BOTH
    assert distinguish(plain, second, of(array(dtype, 1024))) == NEITHER


@pytest.mark.parametrize(
    "offset, wanted", [(16, 16), (8, 8), (24, 8), (4, 4), (12, 4), (2, 0), (1, 0)]
)
def test_the_alignment_of_the_address(of: Any, offset: int, wanted: int) -> None:
    first, second = of(array(np.uint8)), of(array(np.uint8, offset))
    assert bound_of(plain, {"a": first}).specs[0].divisibility == 16
    assert bound_of(plain, {"a": second}).specs[0].divisibility == wanted
    assert distinguish(plain, first, second) == (NEITHER if wanted == 16 else BOTH)
    assert distinguish(plain, second, of(array(np.uint8, 32 + offset))) == NEITHER
    for parameter in ("a", "b"):  # not specialised at all, and on alignment
        given = [{"a": 0, parameter: one} for one in (first, second)]
        assert distinguish(marked, *given) == NEITHER


def test_the_type_that_an_array_is_reinterpreted_as(of: Any) -> None:
    bits = of(array(np.int16))
    halves, brains = (tessera.reinterpret(bits, dtype) for dtype in (tl.float16, tl.bfloat16))
    assert distinguish(plain, bits, halves) == BOTH
    assert distinguish(plain, halves, brains) == BOTH
    assert distinguish(plain, halves, of(array(np.float16))) == NEITHER


@tessera.jit
def fill(x, n):
    tl.store(x + tl.arange(0, 16), n)


def test_what_a_kernel_stores() -> None:
    for dtype in (np.float32, np.int8, np.float64, np.uint16, np.float32):
        x = np.zeros(16, dtype)
        fill[(1,)](x, 3)
        assert np.all(x == 3)


def test_an_array_is_no_number(of: Any) -> None:
    assert distinguish(plain, of(array(np.float32)), 5) == BOTH
    assert distinguish(plain, of(array(np.float32)), None) == BOTH


@pytest.mark.parametrize(
    "place, wrong",
    [(0, array(np.float64)), (0, array(np.float32, 4)), (0, array(np.int32)), (0, None), (1, 3)],
)
def test_arrays_that_a_compiled_kernel_refuses(place: int, wrong: Any) -> None:
    check_compiled_refuses(place, wrong)


@pytest.mark.parametrize("fn", [plain, marked], ids=["plain", "marked"])
def test_random_arrays(fn: Any) -> None:
    def one(choose: random.Random) -> Any:
        dtype = np.dtype(choose.choice(DTYPES))
        found = array(dtype, dtype.itemsize * choose.choice((0, 1, 2, 3, 4, 8, 16)))
        return found if choose.random() < 0.8 else None

    same, different = compare_paths(
        fn, lambda choose: {"a": one(choose), "b": one(choose)}, 1500, 0
    )
    assert same > 200 and different > 200
