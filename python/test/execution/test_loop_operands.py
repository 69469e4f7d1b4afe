# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose operands are converted, or gathered: their tiles are copied ahead all the same."""

from __future__ import annotations

import re

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.settings import settings

TARGETS = ("sm_80", "sm_90a")


@tessera.jit
def attend_converted(q_ptr, k_ptr, v_ptr, o_ptr, length, D: tl.constexpr, M: tl.constexpr,
                     N: tl.constexpr):  # fmt: skip
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, length, N):
        inside = (start + n < length)[:, None]
        at = (start + n)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=inside, other=0)
        k = k.to(tl.float8e5, bitcast=True).to(tl.float16)
        s = tl.where(inside.trans(1, 0), tl.dot(q, tl.trans(k)), -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        scale = tl.exp(top - new)
        v = tl.load(v_ptr + at, mask=inside, other=0)
        v = v.to(tl.float8e5, bitcast=True).to(tl.float16)
        total = total * scale + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v, acc * scale[:, None])
        top = new
    tl.store(o_ptr + m[:, None] * D + d[None, :], acc / total[:, None])


@tessera.jit
def attend_gathered(q_ptr, kv_ptr, rows_ptr, o_ptr, n, H: tl.constexpr, G: tl.constexpr,
                    B: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    h, g, b = tl.arange(0, H), tl.arange(0, G), tl.arange(0, B)
    q0 = tl.load(q_ptr + h[:, None] * (2 * G) + g[None, :])
    q1 = tl.load(q_ptr + h[:, None] * (2 * G) + (G + g)[None, :])
    acc = tl.zeros((H, G), tl.float32)
    for j in tl.range(0, tl.cdiv(n, B), num_stages=STAGES):
        p = j * B + b
        ok = p < n
        row = tl.load(rows_ptr + p, mask=ok, other=0)
        ok = ok & (row >= 0)
        row = tl.where(ok, row, 0)
        base = kv_ptr + row.to(tl.int64)[:, None] * (2 * G)
        k0 = tl.load(base + g[None, :], mask=ok[:, None], other=0.0)
        s = tl.dot(q0, tl.trans(k0))
        k1 = tl.load(base + (G + g)[None, :], mask=ok[:, None], other=0.0)
        s += tl.dot(q1, tl.trans(k1))
        acc += tl.dot(s.to(tl.float16), k0)
    tl.store(o_ptr + h[:, None] * G + g[None, :], acc)


CONVERTED = "*fp16:16, *i8:16, *i8:16, *fp32:16, i32"
GATHERED = "*fp16:16, *fp16:16, *i32:16, *fp32:16, i32"


@pytest.fixture
def without_ptxas():
    with settings.override(ptxas="driver", cache="off"):
        yield


def copies(kernel: Any, signature: str, **options: Any) -> str:
    """How the compiled kernel copies tiles ahead."""
    text = tessera.compile(kernel, signature, **options).asm["tilegpu"]
    if "tilegpu.tma_load" in text:
        return "TMA"
    return "cp.async" if "tilegpu.async_copy" in text else ""


def converted_arguments(rng: Any, length: int, D: int) -> list[Any]:
    q = rng.standard_normal((64, D)).astype(np.float16)
    bits = np.array([0, 0x30, 0x38, 0x3C, 0xB8, 0xBC], np.uint8)
    k, v = (bits[rng.integers(0, 6, (length, D))].view(np.int8) for _ in range(2))
    return [q, k, v, np.zeros((64, D), np.float32), length]


def gathered_arguments(rng: Any, n: int, H: int, G: int) -> list[Any]:
    q, kv = (rng.integers(-2, 3, (rows, 2 * G)).astype(np.float16) for rows in (H, 200))
    rows = rng.integers(-1, 200, n).astype(np.int32)
    return [q, kv, rows, np.zeros((H, G), np.float32), n]


def check(
    kernel: Any,
    arguments: list[Any],
    constants: dict[str, int],
    tolerance: float = 0,
    **options: Any,
) -> None:
    """Simulated code gives what the interpreter does, and is clean."""
    expected = [item.copy() if isinstance(item, np.ndarray) else item for item in arguments]
    tessera.interpret(kernel)[(1,)](*expected, **constants)
    tessera.gpu.simulate(kernel)[(1,)](*arguments, **constants, **options).check()
    for got, want in zip(arguments, expected):
        if isinstance(got, np.ndarray):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("D", (32, 64, 128))
@pytest.mark.parametrize("warps", (4, 8))
def test_converted_keys_and_values_are_copied_ahead(without_ptxas, D, warps):
    signature = f"{CONVERTED}, {D}, 64, 64"
    for stages in (1, 2, 3):
        options = {"num_warps": warps, "num_stages": stages}
        for target in TARGETS:
            wanted = "TMA" if target == "sm_90a" else "cp.async"
            found = copies(attend_converted, signature, target=target, **options)
            assert found == (wanted if stages > 1 else ""), (target, stages)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("D, warps, stages", ((32, 4, 2), (64, 4, 3), (64, 8, 2)))
def test_converted_keys_and_values(rng, target, D, warps, stages):
    check(
        attend_converted, converted_arguments(rng, 150, D), {"D": D, "M": 64, "N": 64}, 2e-2,
        target=target, num_warps=warps, num_stages=stages,
    )  # fmt: skip


@pytest.mark.parametrize("warps", (4, 8))
def test_gathered_keys_in_two_parts_are_copied_ahead(without_ptxas, warps):
    for H, B, stages in ((64, 64, 2), (64, 64, 3), (128, 64, 4), (64, 32, 3)):
        for target in TARGETS:
            signature = f"{GATHERED}, {H}, 64, {B}, {stages}"
            found = copies(attend_gathered, signature, target=target, num_warps=warps)
            assert found == "cp.async", (H, B, stages, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", (2, 3))
def test_gathered_keys_in_two_parts(rng, target, stages):
    check(
        attend_gathered, gathered_arguments(rng, 150, 64, 64),
        {"H": 64, "G": 64, "B": 64, "STAGES": stages}, target=target,
    )  # fmt: skip


@tessera.jit
def carried_rows(a_ptr, q_ptr, o_ptr, n, W: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
                 K: tl.constexpr):  # fmt: skip
    """The first operand is one that the iteration before loaded, in front of the dot."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    count = tl.zeros((M, N), tl.float32)
    x = tl.load(a_ptr + i[:, None] * W + k[None, :])
    for at in range(0, n, K):
        plain = tl.load(a_ptr + i[:, None] * W + (at + k)[None, :])
        small = tl.load(q_ptr + (at + k)[:, None] * N + j[None, :]).to(tl.float16)
        acc = tl.dot(plain, small, acc)
        before = x
        x = tl.load(a_ptr + (M + i)[:, None] * W + (at + k)[None, :])
        acc = tl.dot(before, tl.trans(tl.load(a_ptr + j[:, None] * W + (at + k)[None, :])), acc)
        s = tl.dot(plain, small + tl.load(a_ptr + at + k)[:, None])
        count += tl.where(s > tl.max(s, 1)[:, None] - 3, 1.0, 0.0)
    tl.store(o_ptr + i[:, None] * N + j[None, :], acc + count)


@tessera.jit
def carried_rows_of_two(a_ptr, q_ptr, o_ptr, n, W: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
                        K: tl.constexpr):  # fmt: skip
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    count = tl.zeros((M, N), tl.float32)
    x = tl.load(a_ptr + i[:, None] * W + k[None, :])
    for at in range(0, n, K):
        y = tl.load(a_ptr + j[:, None] * W + (at + k)[None, :])
        plain = tl.load(a_ptr + i[:, None] * W + (at + k)[None, :])
        s = tl.dot(plain, tl.trans(y))
        count += tl.where(s > tl.max(s, 1)[:, None] - 3, tl.exp(s * 0), 0.0)
        before = x
        x = tl.load(a_ptr + (M + i)[:, None] * W + (at + k)[None, :])
        acc = tl.dot(before, tl.trans(y), acc)
    tl.store(o_ptr + i[:, None] * N + j[None, :], acc + count)


@tessera.jit
def rings_of_two_loops(a_ptr, b_ptr, o_ptr, n, W: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
                       K: tl.constexpr):  # fmt: skip
    """The second loop is in another; the rings of the first are no more."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    first = tl.zeros((M, N), tl.float32)
    for at in range(0, n, K):
        for part in tl.static_range(3):
            a = tl.load(a_ptr + (part * M + i)[:, None] * W + (at + k)[None, :])
            b = tl.load(b_ptr + part * N + (at + k)[:, None] * W + j[None, :])
            first = tl.dot(a, b, first)
    second = tl.zeros((M, N), tl.float32)
    for _ in range(2):
        for at in range(0, n, K):
            for part in tl.static_range(2):
                a = tl.load(a_ptr + (part * M + i)[:, None] * W + (at + k)[None, :])
                b = tl.load(b_ptr + part * N + (at + k)[:, None] * W + j[None, :])
                second = tl.dot(a, b, second)
    tl.store(o_ptr + i[:, None] * N + j[None, :], first - second)


@pytest.mark.parametrize("kernel", (carried_rows, carried_rows_of_two), ids=lambda k: k.__name__)
@pytest.mark.parametrize("target", TARGETS)
def test_operands_of_the_iteration_before(rng, target, kernel):
    a = rng.integers(-2, 3, (256, 128)).astype(np.float16)
    q = rng.integers(-2, 3, (128, 32)).astype(np.int8)
    arguments = [a, q, np.zeros((128, 32), np.float32), 64]
    with settings.override(strict_schedules=True):
        check(
            kernel, arguments, {"W": 128, "M": 128, "N": 32, "K": 16}, target=target, num_stages=3
        )


@pytest.mark.parametrize("target", TARGETS)
def test_rings_of_a_loop_behind_another(rng, target):
    a = rng.integers(-2, 3, (96, 128)).astype(np.float16)
    b = rng.integers(-2, 3, (128, 192)).astype(np.float16)
    arguments = [a, b, np.zeros((32, 64), np.float32), 128]
    constants = {"W": 128, "M": 32, "N": 64, "K": 64}
    with settings.override(strict_schedules=True):
        check(rings_of_two_loops, arguments, constants, target=target, num_warps=8, num_stages=4)


@tessera.jit
def chunk_states(k_ptr, v_ptr, g_ptr, h_ptr, T, H: tl.constexpr, D: tl.constexpr,
                 B: tl.constexpr):  # fmt: skip
    """Values decay by a row that is no box, and by a number. The state is stored in the loop."""
    head, b, d = tl.program_id(0), tl.arange(0, B), tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    for i in range(tl.cdiv(T, B)):
        tl.store(h_ptr + ((i * H + head) * D + d[:, None]) * D + d[None, :], state)
        t = i * B + b
        at = (t * H + head) * D
        k = tl.load(k_ptr + at[None, :] + d[:, None], mask=t[None, :] < T, other=0)
        v = tl.load(v_ptr + at[:, None] + d[None, :], mask=t[:, None] < T, other=0)
        last = tl.load(g_ptr + (min((i + 1) * B, T) - 1) * H + head)
        g = tl.load(g_ptr + t * H + head, mask=t < T, other=0)
        v = (v * (last - g)[:, None]).to(tl.float16)
        state = state * last + tl.dot(k, v)


@tessera.jit
def chunk_sums(x_ptr, g_ptr, y_ptr, T, D: tl.constexpr, B: tl.constexpr):
    """A dot multiplies a tile, which is also added up by threads. Its result is stored in the loop."""
    b, d = tl.arange(0, B), tl.arange(0, D)
    carry = tl.zeros((D,), tl.float32)
    for i in range(tl.cdiv(T, B)):
        t = i * B + b
        at = (tl.program_id(0) * T + t[:, None]) * D + d[None, :]
        x = tl.load(x_ptr + at, mask=t[:, None] < T, other=0)
        g = tl.load(g_ptr + tl.program_id(0) * T + t, mask=t < T, other=0)
        lower = tl.where(b[:, None] >= b[None, :], g[None, :], 0)
        y = tl.dot(lower.to(tl.float16), x) + carry[None, :]
        tl.store(y_ptr + at, y, mask=t[:, None] < T)
        carry += tl.sum(x.to(tl.float32) * g[:, None], 0)


def chunk_arguments(rng: Any, kernel: Any, tokens: int, heads: int, d: int) -> list[Any]:
    x, k = (rng.integers(-1, 2, (tokens, heads, d)).astype(np.float16) for _ in range(2))
    g = rng.integers(0, 2, (tokens, heads)).astype(np.float32)
    if kernel is chunk_sums:
        return [x, g, np.full((heads, tokens, d), 7, np.float32), tokens]
    return [k, x, g, np.full((-(-tokens // 64), heads, d, d), 7, np.float32), tokens]


CHUNKS = {chunk_states: {"H": 2, "D": 64, "B": 64}, chunk_sums: {"D": 64, "B": 64}}
by_name = pytest.mark.parametrize("kernel", CHUNKS, ids=lambda kernel: kernel.__name__)


@by_name
def test_rows_that_are_no_boxes_are_loaded_beside_copies(without_ptxas, kernel):
    arrays = "*fp16:16, *fp16:16, *fp32:16" if kernel is chunk_states else "*fp16:16, *fp32:16"
    signature = f"{arrays}, *fp32:16, i32:16"
    compiled = tessera.compile(
        kernel, signature, constexprs=CHUNKS[kernel], target="sm_90a", num_stages=3
    )
    text = compiled.asm["tilegpu"]
    assert text.count("tilegpu.tma_load ") >= 2 and "tile.load %arg" not in text
    if kernel is chunk_states:
        # The rows and numbers of three iterations are carried, and loaded in front of the loop.
        loop = text[re.search(r"scf\.for .*tensor<64xf32,", text).start() :]
        assert loop.count(" = tile.load ") == 2
        assert loop.partition("\n")[0].count(" tensor<64xf32,") == 3


@by_name
@pytest.mark.parametrize("tokens, overlap", ((200, False), (50, False), (200, True)))
def test_loads_beside_copies(rng, kernel, tokens, overlap):
    """If an iteration stores what a later one loads, that one does not load ahead."""
    arguments = chunk_arguments(rng, kernel, tokens, 2, 64)
    expected = [item.copy() if isinstance(item, np.ndarray) else item for item in arguments]
    if overlap:
        # The numbers lie where the first chunk's results come.
        for items in (arguments, expected):
            items[-3] = items[-2].reshape(-1)[: items[-3].size]
            items[-3][:] = 1
    programs = 1 if overlap else 2
    tessera.interpret(kernel)[(programs,)](*expected, **CHUNKS[kernel])
    with settings.override(strict_schedules=True):
        done = tessera.gpu.simulate(kernel)[(programs,)](
            *arguments, **CHUNKS[kernel], target="sm_90a", num_warps=4, num_stages=3
        )
    if not overlap:
        done.check()
    np.testing.assert_array_equal(arguments[-2], expected[-2])


@tessera.jit
def chunk_products(x_ptr, y_ptr, T, L: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    """TMA could store the sums, but not copy the tiles, of which rows begin at 8 bytes."""
    program, chunks = tl.program_id(0), tl.cdiv(T, B)
    b, d = tl.arange(0, B), tl.arange(0, D)
    acc = tl.zeros((D, D), tl.float32)
    for i in range(chunks):
        at = (program * T + i * B + b)[:, None] * L + d[None, :]
        x = tl.load(x_ptr + at, mask=(i * B + b < T)[:, None], other=0)
        acc += tl.dot(tl.trans(x), x)
        tl.store(y_ptr + ((program * chunks + i) * D + d[:, None]) * D + d[None, :], acc)


def test_copies_by_threads_ahead_of_a_store(rng, without_ptxas):
    constants = {"L": 100, "D": 64, "B": 64}
    options = {"target": "sm_90a", "num_warps": 4, "num_stages": 3}
    signature = "*fp16:16, *fp32:16, i32:16"
    assert copies(chunk_products, signature, constexprs=constants, **options) == "cp.async"
    x = rng.integers(-1, 2, (150, 100)).astype(np.float16)
    check(chunk_products, [x, np.full((3, 64, 64), 7, np.float32), 150], constants, **options)
