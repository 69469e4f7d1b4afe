# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels over lists of arrays whose addresses and extents are loaded.

Here an address is loaded as a distance from an argument, for a GPU has a copy of the memory.
"""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import make_kernel

import tessera

BLOCK = 128
KERNEL = """
@tessera.jit
def kernel(addresses_ptr, sizes_ptr, blocks_ptr, memory_ptr, LISTS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    array, part = tl.load(blocks_ptr + 2 * pid), tl.load(blocks_ptr + 2 * pid + 1)
    n = tl.load(sizes_ptr + array)
    base = memory_ptr.to(tl.int64)
    x_ptr = (base + tl.load(addresses_ptr + array)).to(tl.pointer_type(tl.float32))
    {mask}
    x = tl.load(x_ptr + offsets, mask=mask)
    y_ptr = (base + tl.load(addresses_ptr + LISTS + array)).to(tl.pointer_type(tl.float32))
    tl.store(y_ptr + offsets, 2 * x + tl.load(y_ptr + offsets, mask=mask), mask=mask)
"""
MASKS = {
    "less": "offsets = part * BLOCK + tl.arange(0, BLOCK)\n    mask = offsets < n",
    "two": "offsets = tl.arange(0, BLOCK) + part * BLOCK\n    mask = (n > offsets) & (n < 299)",
    "long": "offsets = part.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)\n"
            "    mask = offsets < n.to(tl.int64)",
}  # fmt: skip


# All tiles of an array in a program's loop.
LOOP = """
@tessera.jit
def kernel(addresses_ptr, sizes_ptr, blocks_ptr, memory_ptr, LISTS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    array, part = tl.load(blocks_ptr + 2 * pid), tl.load(blocks_ptr + 2 * pid + 1)
    n = tl.where(part == 0, tl.load(sizes_ptr + array), 0)
    base = memory_ptr.to(tl.int64)
    x_ptr = (base + tl.load(addresses_ptr + array)).to(tl.pointer_type(tl.float32))
    y_ptr = (base + tl.load(addresses_ptr + LISTS + array)).to(tl.pointer_type(tl.float32))
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(y_ptr + at, 2 * x + tl.load(y_ptr + at, mask=at < n), mask=at < n)
"""
KERNELS = {**{name: KERNEL.format(mask=mask) for name, mask in MASKS.items()}, "loop": LOOP}
SIZES = [1, 300, 256, 0, 130, 20]


@pytest.mark.parametrize("spelling", KERNELS)
def test_results_of_any_alignment(run, rng, spelling):
    """Arrays end within a block and within four elements, and some begin at odd addresses."""
    kernel = make_kernel(KERNELS[spelling])
    blocks = [(i, part) for i, n in enumerate(SIZES) for part in range(-(-max(n, 1) // BLOCK))]
    for shift in (0, 1):
        memory = rng.integers(-9, 9, 2048).astype(np.float32)
        # Behind each array is a gap, which stays as it is.
        starts = 4 + np.cumsum([0, *(size // 4 * 4 + 8 for size in SIZES * 2)])[:-1]
        starts[len(SIZES) :] += shift
        want = memory.copy()
        for x, y, size in zip(starts, starts[len(SIZES) :], SIZES):
            if spelling != "two" or size < 299:
                want[y : y + size] += 2 * memory[x : x + size]
        run(
            kernel, (len(blocks),), 4 * starts, np.array(SIZES, np.int32),
            np.array(blocks, np.int32), memory, LISTS=len(SIZES), BLOCK=BLOCK, num_warps=1,
        )  # fmt: skip
        np.testing.assert_array_equal(memory, want)


@pytest.mark.parametrize("spelling", KERNELS)
def test_aligned_arrays_have_vectors(spelling):
    compiled = tessera.compile(
        make_kernel(KERNELS[spelling]), "*i64:16, *i32:16, *i32:16, *fp32, 6, 512",
        target="sm_90a", num_warps=4,
    )  # fmt: skip
    ptx = compiled.asm["ptx"]
    # Beside these, each element has an access of its own.
    assert ptx.count("ld.global.v4") == 2 and ptx.count("st.global.v4") == 1
    assert ptx.count("st.global.b32") == 4
