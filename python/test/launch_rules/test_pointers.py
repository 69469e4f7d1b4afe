# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about arrays: their element type, and the alignment of their address."""

from __future__ import annotations

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


@pytest.fixture
def whole_launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches that take the whole path."""
    calls: list[Any] = []
    run = tessera.JITFunction._run
    monkeypatch.setattr(
        tessera.JITFunction, "_run", lambda *args, **more: calls.append(args) or run(*args, **more)
    )
    return calls


@tessera.jit
def plain_copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def test_reinterpreted_arrays_of_other_types(whole_launches: list[Any], of: Any):
    """Whatever they are of, what counts is the base and the dtype that a wrapper has now."""
    bits = np.arange(33, dtype=np.int16) * 1000
    views = [bits[:16], bits[8:24], bits[16:32], bits[:16].astype(np.int32)]
    want = [view.view(np.float16) for view in views[:3]]
    kernels = [plain_copy, *(tessera.jit(plain_copy.fn) for _ in range(3))]  # one a type

    def launch(wrapper: Any, out: np.ndarray, number: int = 0) -> np.ndarray:
        kernels[number][(1,)](wrapper, out, 16, BLOCK=16)
        return out

    def launch_all() -> None:
        wrapper = tessera.reinterpret(of(views[0]), tl.float16)
        for array, halves in zip(views, want):
            wrapper.base = of(array)
            np.testing.assert_array_equal(launch(wrapper, np.zeros(16, np.float16)), halves)
            assert isinstance(tessera.reinterpret(of(array), tl.float16), tessera.TensorWrapper)
        wrapper.base, wrapper.dtype = of(views[3]), tl.float32
        floats = views[3].view(np.float32)
        np.testing.assert_array_equal(launch(wrapper, np.zeros(16, np.float32), 1), floats)
        wrapper.dtype = tl.int32
        np.testing.assert_array_equal(launch(wrapper, np.zeros(16, np.int32), 2), views[3])
        launch(of(views[0]), np.zeros(16, np.int16), 3)

    for _ in range(2):  # the first launches learn how torch's tensors lie in memory
        launch_all()
    whole_launches.clear()
    launch_all()
    assert not whole_launches


def test_an_array_for_an_annotated_pointer() -> None:
    @tessera.jit
    def annotated(a: "*fp32") -> Any:
        pass

    halves = tessera.reinterpret(array(np.int32), tl.float32)
    assert bound_of(annotated, {"a": halves}).slots == [MEMORY.ctypes.data + START]
    for wrong in (array(np.float64), array(np.int32)):
        warm = Warm(annotated)
        for _ in range(2):
            warm.knows({"a": array(np.float32)})
            with pytest.raises(tessera.ArgumentError, match="annotated"):
                warm.knows({"a": wrong})


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

    same, different = compare_paths(fn, lambda choose: {"a": one(choose), "b": one(choose)}, 600, 0)
    assert same > 60 and different > 60
