# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of more than 2^31 elements: offsets have 64 bits, coordinates of copies by TMA 32.

The arrays take no memory where no program looks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from execution.running import host_has
from tessera.testing.fuzz.arrays import reserve

TARGETS = ["sm_80", "sm_90a"]


@tessera.jit
def batches(
    x_ptr, w_ptr, o_ptr, n, N: tl.constexpr, K: tl.constexpr, B: tl.constexpr, MASK: tl.constexpr
):
    e = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.int32)
    for k in range(0, K, B):
        x = tl.load(x_ptr + i[:, None] * K + (k + i)[None, :])
        places = w_ptr + e * (N * K) + i[None, :] * K + (k + i)[:, None]
        if MASK:
            w = tl.load(places, mask=i[None, :] < n, other=0)
        else:
            w = tl.load(places)
        acc = tl.dot(x, w, acc)
    tl.store(o_ptr + (e * B + i)[:, None] * B + i[None, :], acc)


@tessera.jit
def results(a_ptr, b_ptr, o_ptr, m, R: tl.constexpr, K: tl.constexpr, MASK: tl.constexpr):
    e = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptr + i[:, None] * K + (k + i)[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (k + i)[:, None] * 64 + i[None, :]), acc)
    places = o_ptr + e * (R * 64) + i[:, None] * 64 + i[None, :]
    if MASK:
        tl.store(places, acc.to(tl.float16), mask=i[:, None] < m)
    else:
        tl.store(places, acc.to(tl.float16))


@tessera.jit
def moved(x_ptr, w_ptr, o_ptr, offset: tl.int64, n, S: tl.constexpr, KIND: tl.constexpr):
    """A product of x and of tiles of an array that lie further away than 32 bits count."""
    i = tl.arange(0, 64)
    x = x_ptr + i[:, None] * (n * 64) + i[None, :]
    w = w_ptr + i[:, None] * 64 + i[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    if KIND == "offset":
        w += offset
    if KIND == "constant":
        w += 4294967296
    if KIND == "descriptor":
        array = tl.make_tensor_descriptor(w_ptr + offset, [n * 64, 64], [64, 1], [64, 64])
    for k in range(n):
        if KIND == "row" or KIND == "rows":
            rows = tl.load(w + k.to(tl.int64) * (S * 64))
        elif KIND == "product":
            rows = tl.load(w + k.to(tl.int64) * (tl.program_id(0).to(tl.int64) + 1) * S * 64)
        elif KIND == "beyond":
            at = k.to(tl.int64) * 4294967296 + i
            rows = tl.load(
                w_ptr + at[:, None] * 64 + i[None, :], mask=at[:, None] < 100 * n, other=0
            )
        elif KIND == "descriptor":
            rows = array.load([k * 64, 0])
        elif KIND == "pointer":
            rows = tl.load(w)
        else:
            rows = tl.load(w + k * 4096)
        acc = tl.dot(tl.load(x + k * 64), rows, acc)
        if KIND == "pointer":
            w += S * 64
    tl.store(o_ptr + i[:, None] * 64 + i[None, :], acc)


def draw(rng: np.random.Generator, shape: Any, dtype: str) -> Any:
    return rng.integers(-2, 3, shape).astype(dtype)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_loads(rng: np.random.Generator, target: str, mask: bool) -> None:
    # Offsets of 2^31 elements and more, and of 2^32.
    E, N, K = 34, 1 << 20, 128
    w = reserve(E * N * K, np.dtype("i1")).reshape(E, N, K)
    used = [0, 1, 15, 16, 17, 31, 32, 33]
    for e in used:
        w[e, :64] = draw(rng, (64, K), "i1")
    x = draw(rng, (64, K), "i1")
    o = np.zeros((E, 64, 64), "i4")
    tessera.gpu.simulate(batches)[(E,)](
        x, w, o, 64, N=N, K=K, B=64, MASK=mask, target=target
    ).check()
    for e in range(E):
        np.testing.assert_array_equal(o[e], x.astype("i4") @ w[e, :64].astype("i4").T, f"of {e}")


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_stores(rng: np.random.Generator, target: str, mask: bool) -> None:
    R, E, K = 1 << 22, 18, 128
    a, b = draw(rng, (64, K), "f2"), draw(rng, (K, 64), "f2")
    o = reserve(E * R * 64, np.dtype("f2")).reshape(E, R, 64)
    tessera.gpu.simulate(results)[(E,)](a, b, o, 64, R=R, K=K, MASK=mask, target=target).check()
    for e in range(E):
        np.testing.assert_array_equal(o[e, :64], a.astype("f4") @ b.astype("f4"), f"of {e}")


@pytest.mark.parametrize(
    "kind, offset, programs",
    [
        ("offset", 1 << 32, 1), ("offset", (1 << 31) - 64, 1), ("offset", 1 << 20, 1),
        ("offset", 0, 1), ("constant", 0, 1), ("row", 0, 1), ("pointer", 0, 1),
        ("rows", 0, 1), ("product", 0, 1), ("product", 0, 2), ("beyond", 0, 1),
        ("descriptor", (1 << 32) + 64, 1), ("descriptor", 1 << 10, 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", TARGETS)
def test_offsets(
    rng: np.random.Generator, target: str, kind: str, offset: int, programs: int
) -> None:
    # Elements and, of the last kind, rows that no coordinate of 32 bits would count.
    S, n = 1 << 30 if kind == "rows" else (1 << 24) - 64, 3
    size = 1 << 38 if kind == "rows" else 1 << 33
    x, w = draw(rng, (64, n * 64), "f2"), reserve(size, np.dtype("f2"))
    first = {"offset": offset, "descriptor": offset, "constant": 1 << 32}.get(kind, 0)
    step = {"row": 64 * S, "rows": 64 * S, "pointer": 64 * S, "product": 64 * S * programs}.get(
        kind, 4096
    )
    places = [first + (1 << 38 if kind == "beyond" else step) * k for k in range(n)]
    want = np.zeros((64, 64), "f4")
    # What a coordinate of 32 bits would be, if it wrapped or ended.
    for place in [0, 2**31 - 64]:
        w[place : place + 4096] = 1
    for k, place in enumerate(places):
        if place < len(w):
            w[place : place + 4096] = draw(rng, 4096, "f2")
            tile = w[place : place + 4096].reshape(64, 64).astype("f4")
            want += x[:, 64 * k :][:, :64].astype("f4") @ tile
    o = np.zeros((64, 64), "f4")
    tessera.gpu.simulate(moved, races=programs == 1)[(programs,)](
        x, w, o, offset, n, S=S, KIND=kind, target=target
    ).check()
    if programs == 1:
        np.testing.assert_array_equal(o, want)


@pytest.mark.parametrize("offset", [-(1 << 31), -4096, -(1 << 32)])
def test_offsets_backwards(rng: np.random.Generator, offset: int) -> None:
    """No array begins there that a copy could know: such a launch takes the variant without."""
    x, w = draw(rng, (64, 64), "f2"), reserve(1 << 33, np.dtype("f2"))
    begin = 1 << 32
    w[begin + offset : begin + offset + 4096] = draw(rng, 4096, "f2")
    o = np.zeros((64, 64), "f4")
    rows = w[begin + offset : begin + offset + 4096].reshape(64, 64).astype("f4")
    tessera.gpu.simulate(moved, memory=[w])[(1,)](
        x, w[begin:], o, offset, 1, S=64, KIND="offset", target="sm_90a"
    ).check()
    np.testing.assert_array_equal(o, x.astype("f4") @ rows)


def test_copies_stay_copies() -> None:
    """An outer dimension of the map has the offset, and no launch is asked for anything."""
    constants = {"N": 1 << 20, "K": 128, "B": 64, "MASK": True}
    kernel = tessera.compile(
        batches, "*i8:16, *i8:16, *i32:16, i32:16", constexprs=constants, target="sm_90a"
    )
    maps = kernel.metadata["tensor_maps"]
    assert sorted(len(item["dims"]) for item in maps)[-1] == 3
    assert kernel.asm["tilegpu"].count("tilegpu.tma_load") == 2
    assert not kernel.metadata.get("program_bounds") and not kernel.metadata.get("most_programs")
    constants = {"R": 1 << 22, "K": 128, "MASK": True}
    kernel = tessera.compile(
        results, "*fp16:16, *fp16:16, *fp16:16, i32:16", constexprs=constants, target="sm_90a"
    )
    assert kernel.asm["tilegpu"].count("tilegpu.tma_store ") == 1
    assert not kernel.metadata.get("program_bounds") and not kernel.metadata.get("most_programs")


@pytest.mark.parametrize(
    "kind", ["offset", "constant", "row", "pointer", "beyond", "product", "descriptor"]
)
def test_rows_stay_copies(kind: str) -> None:
    kernel = tessera.compile(
        moved, "*fp16:16, *fp16:16, *fp32:16, i64:16, i32",
        constexprs={"S": (1 << 24) - 64, "KIND": kind}, target="sm_90a",
    )  # fmt: skip
    assert kernel.asm["tilegpu"].count("tilegpu.tma_load") == 2
    # No dimension has the product of two numbers that programs compute.
    bounds = kernel.metadata.get("program_bounds")
    assert len(bounds or []) == (kind == "product")


@tessera.jit
def transposed(x_ptr, o_ptr, S: tl.constexpr):
    """Columns of x as rows of a result that are S elements apart."""
    i, j = tl.arange(0, 16), tl.arange(0, 64)
    x = tl.load(x_ptr + i[:, None] + j[None, :] * 16)
    o = o_ptr + i[:, None].to(tl.int64) * S + j[None, :].to(tl.int64)
    tl.store(o, x)
    tl.store(x_ptr + i[:, None] + j[None, :] * 16, tl.load(o) + 1)


@pytest.mark.parametrize("cpu", ["x86-64-v4", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("rows_apart", [(1 << 28) - 64, 1 << 28, (1 << 28) + 64, 1 << 30, 1 << 32])
def test_constant_distances_on_a_cpu(cpu, rows_apart) -> None:
    """A constant of an LLVM getelementptr has 29 bits."""
    if not host_has(cpu):
        pytest.skip(f"this machine has no {cpu}")
    x = np.arange(1024, dtype=np.int32).reshape(64, 16)
    given = x.copy()
    o = reserve(15 * rows_apart + 64, np.dtype(np.int32))
    transposed[(1,)](given, o, rows_apart, cpu=cpu)
    for row in range(16):
        np.testing.assert_array_equal(o[row * rows_apart :][:64], x[:, row])
    np.testing.assert_array_equal(given, x + 1)
