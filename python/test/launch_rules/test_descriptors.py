# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules about tensor descriptors: their block, their padding, and how they round."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from launch_rules.both_paths import BOTH, NEITHER, compare_paths, distinguish, plain

import tessera
import tessera.language as tl
from tessera.tools.tensor_descriptor import TensorDescriptor

MEMORY = np.zeros(1024, np.uint8)
BASE = MEMORY[-MEMORY.ctypes.data % 16 :][:768].view(np.float32)


def described(
    shape: Any = (8, 16), strides: Any = (32, 1), block: Any = (4, 8), padding: str = "zero",
    rounds: bool = False, base: Any = BASE,
) -> TensorDescriptor:  # fmt: skip
    return TensorDescriptor(base, list(shape), list(strides), list(block), padding, rounds)


@pytest.mark.parametrize(
    "more, wanted",
    [
        ({}, NEITHER), ({"base": BASE[64:]}, NEITHER), ({"padding": "nan"}, BOTH), ({"rounds": True}, BOTH),
        ({"block": (4, 16)}, BOTH), ({"block": (8, 8)}, BOTH), ({"block": (8, 4)}, BOTH),
        ({"shape": (24, 32)}, NEITHER), ({"strides": (64, 1)}, NEITHER),
    ],
)  # fmt: skip
def test_descriptors(more: Any, wanted: Any) -> None:
    assert distinguish(plain, described(), described(**more)) == wanted
    assert distinguish(plain, described(**more), described()) == wanted


def test_a_descriptor_is_no_tuple_of_its_parts() -> None:
    assert distinguish(plain, described(), (BASE, 8, 16, 32, 1)) == BOTH


def test_random_descriptors() -> None:
    def one(choose: random.Random) -> Any:
        return described(
            shape=choose.choice(((8, 16), (16, 16))),
            block=[choose.choice((1, 4)), choose.choice((8, 16))],
            padding=choose.choice(("zero", "nan")),
            rounds=choose.random() < 0.5,
        )

    same, different = compare_paths(
        plain, lambda choose: {"a": one(choose), "b": one(choose)}, 500, 0
    )
    assert same > 40 and different > 40


def test_a_block_that_a_compiled_kernel_refuses() -> None:
    @tessera.jit
    def first_of(x: Any, out: Any) -> Any:
        tl.store(out, tl.sum(x.load([0, 0])))

    out = np.zeros(1, np.float32)
    compiled = first_of.warmup(described(block=(8, 8)), out, grid=(1,))
    for _ in range(3):
        with pytest.raises(tessera.ArgumentError, match=r"for blocks of \[8, 8\]"):
            compiled[(1,)](described(block=(4, 8)), out)
        compiled[(1,)](described(block=(8, 8)), out)


@tessera.jit
def copy(x, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tile = x.load([0, 0])
    i = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + i, tile)


def launch(descriptor: TensorDescriptor) -> np.ndarray:
    rows, columns = descriptor.block_shape
    out = np.zeros((rows, columns), np.float32)
    copy[(1,)](descriptor, out, rows, columns)
    return out


def expected(x: np.ndarray, block: tuple[int, int], fill: float) -> np.ndarray:
    """What a load of the first block gives."""
    out = np.full(block, fill, x.dtype)
    part = x[: block[0], : block[1]]
    out[: part.shape[0], : part.shape[1]] = part
    return out


@pytest.mark.parametrize("padding, fill", [("zero", 0.0), ("nan", np.nan)])
def test_what_a_kernel_loads(padding: str, fill: float) -> None:
    x = np.random.default_rng(0).random((24, 32), np.float32)
    views = [x, x[:, :16], x[::2], x[:1], x[:5, :7], x[:8]]
    for _ in range(3):
        for view in views:
            for block in ((8, 16), (16, 8), (8, 8)):
                descriptor = TensorDescriptor.from_tensor(view, block, padding)
                np.testing.assert_array_equal(launch(descriptor), expected(view, block, fill))


def test_a_descriptor_may_change() -> None:
    x = np.random.default_rng(0).random((24, 32), np.float32)
    descriptor = TensorDescriptor.from_tensor(x, [8, 16])
    for _ in range(2):
        np.testing.assert_array_equal(launch(descriptor), x[:8, :16])
        assert isinstance(descriptor.block_shape, list)
        descriptor.block_shape[1] = 32
        np.testing.assert_array_equal(launch(descriptor), x[:8])
        descriptor.block_shape = (8, 16)
        descriptor.shape = (24, 8)
        np.testing.assert_array_equal(launch(descriptor), expected(x[:, :8], (8, 16), 0))
        descriptor = TensorDescriptor.from_tensor(x, [8, 16])
        descriptor.padding = "nan"
        descriptor.shape = (4, 32)
        np.testing.assert_array_equal(launch(descriptor), expected(x[:4], (8, 16), np.nan))
        descriptor = TensorDescriptor.from_tensor(x, [8, 16])
