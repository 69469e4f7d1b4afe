# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records of launches and families of kernels, as the core takes them (python/src/LaunchRecord.h).
Which variant does a launch is tested in unittest/Compiler/KernelFamilyTest.cpp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from runtime.test_launch_limits import BEYOND, wrapping
from tessera import _C
from tessera.runtime.hooks import hooks


@tessera.jit
def fill(out, value, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), value)


def variant_of(kernel: Any, result: Any = None) -> tuple[Any, ...]:
    return result, kernel._kernel, ()


@pytest.fixture(scope="module")
def kernels() -> tuple[Any, Any]:
    """With limits and without."""
    usual = tessera.compile(wrapping, "*fp32, *fp32, i32, 32")
    return usual, tessera.compile(wrapping, "*fp32, *fp32, i32, 32", tensor_maps=False)


def test_a_record_has_names(kernels: tuple[Any, Any]) -> None:
    def current(device: int) -> int:
        return device

    family = _C.KernelFamily(variant_of(kernels[0]))
    record = _C.LaunchRecord(family, [1, 2], {"a": 3}, 4, 5, current, "choice")
    assert (record.family, record.slots, record.options) == (family, [1, 2], {"a": 3})
    assert (record.num_threads, record.device, record.stream) == (4, 5, current)
    assert record.choice == "choice"
    record = _C.LaunchRecord(None)
    assert (record.family, record.slots, record.options) == (None, (), {})
    assert (record.num_threads, record.device, record.stream, record.choice) == (0, -1, 0, None)
    with pytest.raises(ValueError, match="no kernel"):
        record.launch((1, 1, 1))
    with pytest.raises(TypeError, match="a KernelFamily or None"):
        _C.LaunchRecord(kernels[0]._kernel)
    with pytest.raises(AttributeError):
        record.device = 1


def test_a_variant_is_made_when_it_is_needed(kernels: tuple[Any, Any]) -> None:
    usual, other = (variant_of(kernel, name) for kernel, name in zip(kernels, ("usual", "other")))
    x, out = np.arange(64, dtype=np.float32), np.empty(32, np.float32)
    made = []

    def make(variant: _C.Variant) -> Any:
        made.append(variant)
        return other

    def launch(size: int, **more: Any) -> Any:
        out.fill(-1)
        record = _C.LaunchRecord(family, [x.ctypes.data, out.ctypes.data, size])
        result = record.launch((1, 1, 1), **more)
        assert (out == np.arange(32) // 4 + 1).all()
        return result

    family = _C.KernelFamily(usual)
    assert launch(64, make=make) == "usual" and not made
    with pytest.raises(_C.CoreError, match="do not wrap") as error:
        launch(BEYOND)
    assert error.value.status == _C.Status.OUTSIDE_LIMITS
    assert launch(BEYOND, make=make) == "other" and made == [_C.Variant.UNLIMITED]
    assert launch(BEYOND) == "other" and launch(64) == "usual"

    family = _C.KernelFamily(usual)
    family.set(_C.Variant.UNLIMITED, other)
    assert launch(BEYOND) == "other"
    with pytest.raises(ValueError, match="the usual variant stays"):
        family.set(_C.Variant.USUAL, other)
    family = _C.KernelFamily(usual)
    with pytest.raises(TypeError, match="there has to be"):
        launch(BEYOND, make=lambda variant: None)
    with pytest.raises(ZeroDivisionError):
        launch(BEYOND, make=lambda variant: 1 // 0)


def test_what_a_dispatcher_keeps(kernels: tuple[Any, Any]) -> None:
    parameters = (("x", (), True, True, True),)
    for wrong in ((), object(), (None,) * 8):
        launch = _C.Dispatcher(parameters, lambda *given: (None, wrong), print).bind((1,))
        with pytest.raises(TypeError, match="LaunchRecord"):
            launch(1)


@pytest.mark.parametrize("first", [64, BEYOND])
def test_hooks_are_told_once_of_the_variant_that_runs(first: int) -> None:
    told: list[Any] = []
    x, out = np.arange(64, dtype=np.float32), np.empty(32, np.float32)

    def launch(size: int) -> Any:
        return wrapping[(1,)](x, out, size, N=32)

    wrapping._kernels.clear()
    if wrapping._dispatcher is not None:
        wrapping._dispatcher.clear()
    enter, leave = (lambda data: told.append("enter")), (lambda data: told.append("leave"))
    hooks.launch_enter.add(enter)
    hooks.launch_exit.add(leave)
    try:
        for size in (first, 64 + BEYOND - first, BEYOND, 64):
            launch(size)
            assert told == ["enter", "leave"], size
            told.clear()
    finally:
        hooks.launch_enter.remove(enter)
        hooks.launch_exit.remove(leave)


def test_a_launch_that_fails_is_told_of_once() -> None:
    told: list[Any] = []
    out = np.empty(8, np.float32)
    fill[(1,)](out, 1.0, BLOCK=8)
    enter, leave = (lambda data: told.append("enter")), (lambda data: told.append("leave"))
    hooks.launch_enter.add(enter)
    hooks.launch_exit.add(leave)
    try:
        fill[(1,)](out, 1.0, BLOCK=8)
        told.clear()
        with pytest.raises(tessera.LaunchError, match="2\\^63"):
            fill[(1 << 30, 1 << 30, 1 << 30)](out, 1.0, BLOCK=8)
        assert told == ["enter"]
    finally:
        hooks.launch_enter.remove(enter)
        hooks.launch_exit.remove(leave)


def test_the_variant_after_a_refusal():
    """As a launch retries (Compiler/KernelFamily.h); the simulator and JAX ask this alone."""
    kinds, status = _C.Variant, _C.Status
    for division in (kinds.SPLIT_2, kinds.SPLIT_8, kinds.PAIR_OF_TILES):
        assert division.next(status.OUTSIDE_LIMITS) == kinds.USUAL
        assert division.next(status.NO_CLUSTER_ROOM) == kinds.USUAL
    assert kinds.USUAL.next(status.OUTSIDE_LIMITS) == kinds.UNLIMITED
    for last in (
        kinds.USUAL.next(status.NO_CLUSTER_ROOM),
        kinds.UNLIMITED.next(status.OUTSIDE_LIMITS),
        kinds.USUAL.next(status.USER_ERROR),
    ):
        assert last is None
