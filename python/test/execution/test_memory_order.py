# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program sees its own stores, whichever lane made them (docs/Language.md, "Order of memory
operations"). On a GPU that takes barriers; here are the targets that need none.
"""

import numpy as np
import pytest

import tessera
import tessera.language as tl
from execution.random_memory_order import generate
from execution.running import Runner, host_has, make_kernel

PROGRAMS = 200


@pytest.fixture(params=["interpreter", "x86-64-v4", "x86-64-v3", "x86-64"])
def run(request):
    if request.param != "interpreter" and not host_has(request.param):
        pytest.skip(f"this machine has no {request.param}")
    return Runner(request.param)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_program(run, seed):
    generate(seed).check(run)


# Each was once seen to load what was there before a store; with the number of lanes.
KERNELS = {
    "stores on both sides of a load": (64, """
    tl.store(a + i, 7)
    v0 = tl.load(a + i)
    tl.store(a + i, 9)
    tl.store(o + i, v0)
"""),
    "a load of all after a masked store": (64, """
    v0 = tl.load(b + i, mask=i < 33, other=-5)
    v1 = tl.load(a + i)
    tl.store(b + i, v1 + v0 * 3)
    v2 = tl.load(a + i * 2)
    tl.store(a + i, v1 + v2 * 3, mask=i < 33)
    v3 = tl.load(a + (i * 5 + 3) % 64)
    tl.store(o + 0 + i, v0)
    tl.store(o + 64 + i, v1)
    tl.store(o + 128 + i, v2)
    tl.store(o + 192 + i, v3)
"""),
    "masked loads of a reversed scan": (128, """
    v0 = i * 0
    for k in range(2):
        v0 = tl.load(b + i + 64)
    tl.store(a + 127 - i, tl.cumsum(v0, 0))
    v1 = tl.load(a + i, mask=i % 2 == 0)
    v2 = tl.load(a + 127 - i, mask=i % 2 == 0)
    tl.store(o + 0 + i, v0)
    tl.store(o + 128 + i, v1)
    tl.store(o + 256 + i, v2)
"""),
    "loads in a loop after a store": (16, """
    v0 = tl.load(b + i * 2)
    tl.store(a + 15 - i, tl.sum(v0, 0) + i, mask=i < 9)
    v1 = tl.load(a + i, mask=i < 9)
    v2 = tl.load(b + i + 8)
    v3 = i * 0
    v4 = i * 0
    for k in range(2):
        v3 = tl.load(b + i)
        v4 = tl.load(a + i, mask=i < 9)
    tl.store(o + 0 + i, v0)
    tl.store(o + 16 + i, v1)
    tl.store(o + 32 + i, v2)
    tl.store(o + 48 + i, v3)
    tl.store(o + 64 + i, v4)
"""),
    "stores in a loop": (24, """
    v0 = i * 0
    for k in range(2):
        v0 = tl.load(a + i)
        tl.store(a + i + 1, i + 29)
    tl.store(a + i * 2, tl.cumsum(v0, 0), mask=i % 2 == 0)
    v1 = tl.load(a + i)
    v2 = tl.load(b + i + 12)
    tl.store(o + 0 + i, v0)
    tl.store(o + 24 + i, v1)
    tl.store(o + 48 + i, v2)
"""),
    "two masked stores": (128, """
    v0 = tl.load(a + i, mask=i > 3)
    tl.store(a + i, i + 71, mask=i < 65)
    tl.store(a + i, v0 + 1, mask=i % 2 == 0)
    v1 = tl.load(a + (i ^ 1))
    tl.store(o + 0 + i, v0)
    tl.store(o + 128 + i, v1)
"""),
    "many stores": (128, """
    v0 = i * 0
    for k in range(2):
        v0 = tl.load(a + (i * 5 + 3) % 128)
    v1 = tl.load(a + (i ^ 1))
    tl.store(a + 127 - i, tl.sum(v1, 0) + i)
    tl.store(b + i, i + 79)
    tl.store(a + i + 8, tl.flip(v1), mask=i > 3)
    tl.store(a + i * 2, v1 + 1)
    v2 = tl.load(a + i, mask=i % 2 == 0)
    tl.store(o + 0 + i, v0)
    tl.store(o + 128 + i, v1)
    tl.store(o + 256 + i, v2)
"""),
    "parts of one array, side by side": (64, """
    v0 = tl.load(a + i)
    tl.store(a + i + 64, v0 + 1)
    v1 = tl.load(a + i + 32)
    tl.store(a + i + 128, v1)
    v2 = tl.load(a + i + 191)
    tl.store(a + i + 255, v2)
    s0 = tl.load(a + 255)
    v3 = tl.load(a + i + 320)
    tl.store(a + i + 384, v3 + s0)
    tl.store(o + 0 + i, v0)
    tl.store(o + 64 + i, v1)
    tl.store(o + 128 + i, v2)
    tl.store(o + 192 + i, v3)
"""),
    "parts of one array, iteration by iteration": (64, """
    for k in range(3):
        tl.store(a + i + k * 64, i + k)
        v0 = tl.load(a + i + (k + 1) * 64)
        tl.store(a + i + (k + 2) * 64, v0 + 1)
        tl.store(o + k * 64 + i, v0)
"""),
    "rows whose places wrap": (256, """
    # 3 * 1431655787 is 65: the last row lies one place behind where the first one ends.
    row = i // 64
    at = row * 1431655787 + i % 64
    v0 = tl.load(a + at, mask=row % 3 == 0, other=0)
    tl.store(a + at + 64, v0 + 1, mask=row % 3 == 0)
    v1 = tl.load(a + at, mask=row % 3 == 0, other=0)
    tl.store(o + 0 + i, v0)
    tl.store(o + 256 + i, v1)
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(run, rng, name):
    lanes, body = KERNELS[name]
    kernel = make_kernel(f"@tessera.jit\ndef kernel(a, b, o):\n    i = tl.arange(0, {lanes}){body}")
    arrays = [rng.integers(-99, 99, 512).astype(np.int32) for _ in range(3)]
    got = [array.copy() for array in arrays]
    want = [array.copy() for array in arrays]
    tessera.interpret(kernel)[(1,)](*want)
    run(kernel, (1,), *got)
    for mine, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(mine, other)


@tessera.jit
def store_between(a, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(a + i, i + 100)
    seen = tl.load(a + N - 1 - i)
    tl.store(a + i, i + 200)
    tl.store(o + i, seen)


@pytest.mark.parametrize("lanes", [8, 64, 1024])
def test_load_between_stores_of_other_lanes(run, lanes):
    a, o = np.zeros(lanes, np.int32), np.zeros(lanes, np.int32)
    run(store_between, (1,), a, o, N=lanes)
    np.testing.assert_array_equal(a, np.arange(lanes) + 200)
    np.testing.assert_array_equal(o, np.arange(lanes)[::-1] + 100)


@tessera.jit
def far_apart(x, o, y, stride, N: tl.constexpr):
    i = tl.arange(0, N).to(tl.int64)
    v = tl.load(x + i)
    tl.store(o + i * stride, v - 1, mask=i < 1)
    tl.store(y + i, v)


@pytest.mark.parametrize("stride", [2**61, -(2**61), 2**59 + 1, 1])
def test_lanes_that_are_masked_off_reach_further_than_all_addresses(run, stride):
    x, y = np.arange(512, dtype=np.int32), np.zeros(512, np.int32)
    run(far_apart, (1,), x, x[500:], y, stride, N=512)
    want = np.arange(512)
    np.testing.assert_array_equal(y, want)
    want[500] = -1
    np.testing.assert_array_equal(x, want)
