# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Groups of rows by ragged descriptors: reads beyond the end of a group are zero, writes dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.tools.ragged_tma import (
    atomic_add_ragged,
    create_ragged_descriptor,
    load_ragged,
    store_ragged,
)


@tessera.jit
def copy_group(source, result, source_begin, result_begin, source_size, result_size):
    block = load_ragged(source, source_begin, source_size, [0, 0])
    store_ragged(result, result_begin, result_size, [0, 0], block)


@tessera.jit
def add_group(source, result, source_begin, result_begin, source_size, result_size):
    block = load_ragged(source, source_begin, source_size, [0, 0])
    atomic_add_ragged(result, result_begin, result_size, [0, 0], block)


@tessera.jit
def copy_blocks(source, result, begins, HEIGHT: tl.constexpr):
    """A program moves all of a group, block by block."""
    begin = tl.load(begins + tl.program_id(0))
    size = tl.load(begins + tl.program_id(0) + 1) - begin
    for i in range(0, size, HEIGHT):
        block = load_ragged(source, begin, size, [i, 0])
        store_ragged(result, begin, size, [i, 0], block * 2)


@tessera.jit
def copy_columns(source, result, begin, size):
    block = load_ragged(source, begin, size, [1, 0, 0], ragged_dim=1)
    store_ragged(result, begin, size, [0, 0, 0], block, ragged_dim=1)


@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "int8", "uint16", "int64"])
def test_a_group_into_another(run: Any, kind: str) -> None:
    rng = np.random.default_rng(1)
    source, target = ((rng.standard_normal((128, 80)) * 50).astype(kind) for _ in range(2))
    before = target.copy()
    described = (create_ragged_descriptor(x, [32, 128]) for x in (source, target))
    run(copy_group, (1,), *described, 42, 51, 17, 24)
    want = before.copy()
    want[51:75] = 0
    want[51:68] = source[42:59]
    assert np.array_equal(target, want)


def test_additions(run: Any) -> None:
    source = np.arange(128 * 80, dtype=np.float32).reshape(128, 80)
    target = np.ones((128, 80), np.float32)
    described = (create_ragged_descriptor(x, [32, 128]) for x in (source, target))
    run(add_group, (1,), *described, 127, 3, 1, 2)
    want = np.ones((128, 80), np.float32)
    want[3] += source[127]
    assert np.array_equal(target, want)


def test_groups_of_all_sizes(run: Any) -> None:
    begins = np.array([0, 0, 1, 17, 49, 64], np.int32)
    source = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    target = np.zeros_like(source)
    described = (create_ragged_descriptor(x, [16, 32]) for x in (source, target))
    run(copy_blocks, (5,), *described, begins, HEIGHT=16)
    assert np.array_equal(target, source * 2)


def test_along_the_middle_of_three(run: Any) -> None:
    source = np.arange(4 * 24 * 16, dtype=np.int32).reshape(4, 24, 16)
    target = np.full((2, 24, 16), -1, np.int32)
    described = (create_ragged_descriptor(x, [2, 8, 16], ragged_dim=-2) for x in (source, target))
    run(copy_columns, (1,), *described, 19, 3)
    want = np.full((2, 24, 16), -1, np.int32)
    want[:, 19:22] = source[1:3, 19:22]
    assert np.array_equal(target, want)


def test_what_no_ragged_descriptor_can_be_of() -> None:
    def refuse(array: Any, block: Any, dim: int, words: str) -> None:
        with pytest.raises(tessera.ArgumentError, match=words) as caught:
            create_ragged_descriptor(array, block, dim)
        assert caught.value.id == "E051"

    x = np.zeros((4, 8), np.float32)
    refuse(x, [4, 8], 1, "along dimension 1 of 2")
    refuse(x, [4, 8], -3, "along dimension -3 of 2")
    refuse(x, [4], 0, "a block of rank 1")
    refuse(x[0], [8], 0, "rank 1")
    refuse(x.reshape(1, 1, 4, 8), [1, 1, 4, 8], 0, "rank 4")
    refuse(np.lib.stride_tricks.as_strided(x, (2**30 + 1, 8), (0, 4)), [4, 8], 0, "rows")


@pytest.mark.parametrize("interpreted", [True, False])
def test_checked(interpreted: bool) -> None:
    """Addresses that wrap around on purpose are not taken for mistakes; rows outside are."""
    source = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    result = np.zeros_like(source)
    described = [create_ragged_descriptor(x, [16, 32]) for x in (source, result)]
    kernel = tessera.interpret(copy_group) if interpreted else copy_group
    kernel[(1,)](*described, 60, 3, 4, 4, debug=True)
    assert np.array_equal(result[3:7], source[60:]) and not result[7:].any()
    with pytest.raises(tessera.MemoryAccessError) as caught:
        kernel[(1,)](*described, 61, 3, 4, 4, debug=True)
    assert caught.value.id == "E080" and "of `source`, whose memory holds" in str(caught.value)
