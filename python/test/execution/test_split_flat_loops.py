# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flat persistent matmuls are scheduled like those of two loops, whatever their spelling."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import make_kernel

import tessera
import tessera.language as tl

OPEN = """
            tile += PROGRAMS
            group = tile // (4 * blocks_n) * 4
            height = min(blocks_m - group, 4)
            rows = (group + tile % height) * BM + tl.arange(0, BM)
            columns = tile % (4 * blocks_n) // height * BN + tl.arange(0, BN)
            acc = tl.zeros((BM, BN), tl.float32)"""
STORE = """
            mask = (rows[:, None] < M) & (columns[None, :] < N)
            at = c_ptr + rows[:, None] * N + columns[None, :]
            tl.store(at, acc.to(tl.float16), mask=mask)"""
DOT = """
        k = ki * BK + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (k[None, :] < K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=a_mask, other=0)
        b_mask = (k[:, None] < K) & (columns[None, :] < N)
        b = tl.load(b_ptr + k[:, None] * N + columns[None, :], mask=b_mask, other=0)
        acc = tl.dot(a, b, acc)"""
SHARE = "(blocks_m * blocks_n - pid + PROGRAMS - 1) // PROGRAMS"
# Before the loop, its header, the count, and what comes at the end of an iteration.
SPELLINGS = {
    "where": ("ki = -1", "for _ in range(mine * k_tiles)",
              "ki = tl.where(ki == k_tiles - 1, 0, ki + 1)", ""),
    "if": ("ki = 0", "for _ in range(0, k_tiles * mine)", "",
           "ki += 1\n        if ki == k_tiles:\n            ki = 0"),
    "while": ("ki = -1\n    t = 0\n    total = k_tiles * mine", "while t < total",
              "ki = tl.where(ki + 1 == k_tiles, 0, ki + 1)", "t += 1"),
    "remainder": ("", "for t in range(k_tiles * mine)", "ki = t % k_tiles", ""),
    "countdown": ("left = 0", "for _ in range(mine * k_tiles)",
                  "if left == 0:\n            left = k_tiles\n        ki = k_tiles - left",
                  "left -= 1"),
    "strided": ("k0 = 0", "for _ in range(mine * k_tiles)", "",
                "k0 += BK\n        if k0 >= K:\n            k0 = 0"),
    "from one": ("number = 0", "for _ in range(mine * k_tiles)",
                 "number = tl.where(number == k_tiles, 1, number + 1)\n        ki = number - 1", ""),
    "flag": ("ki, last = 0, k_tiles == 1", "for _ in range(mine * k_tiles)", "",
             "ki = tl.where(last, 0, ki + 1)\n        last = ki + 1 == k_tiles"),
}  # fmt: skip


STRIDED = {"ki * BK": "k0", "ki == 0": "k0 == 0", "ki == k_tiles - 1": "k0 + BK >= K"}
FLAGS = {"ki == k_tiles - 1": "last"}


def make_flat(spelling: str, share: str = SHARE):
    before, header, count, end = SPELLINGS[spelling]
    text = f"""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    blocks_m, blocks_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    mine = {share}
    tile = pid - PROGRAMS
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    {before}
    {header}:
        {count}
        if ki == 0:{OPEN}{DOT}
        if ki == k_tiles - 1:{STORE}
        {end}
"""
    for old, new in (STRIDED if "k0" in before else FLAGS if "last" in before else {}).items():
        text = text.replace(old, new)
    return make_kernel(text)


NESTED = make_kernel(f"""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           PROGRAMS: tl.constexpr):
    blocks_m, blocks_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    for tile in range(tl.program_id(0) - PROGRAMS, blocks_m * blocks_n - PROGRAMS, PROGRAMS):
        if True:{OPEN}
        for ki in range(k_tiles):
            {DOT.replace(chr(10), chr(10) + "    ")}
        if True:{STORE}
""")
SIGNATURE = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16"


def compile_for_hopper(kernel):
    tiles = {"BM": 128, "BN": 256, "BK": 64, "PROGRAMS": 132}
    return tessera.compile(
        kernel, signature=SIGNATURE, constexprs=tiles, target="sm_90a", num_warps=8, num_stages=3
    )


def count_copies(compiled) -> dict[str, int]:
    text = compiled.asm["tilegpu"]
    words = ("tilegpu.tma_load", "tilegpu.tma_store ", "tilegpu.warp_specialize", "is_async")
    return {word: text.count(word) for word in words}


@pytest.fixture(scope="module")
def of_two_loops() -> dict[str, int]:
    counts = count_copies(compile_for_hopper(NESTED))
    assert counts["tilegpu.tma_load"] == 2 and counts["tilegpu.warp_specialize"] == 1
    return counts


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_schedule_is_that_of_two_loops(spelling, of_two_loops):
    assert count_copies(compile_for_hopper(make_flat(spelling))) == of_two_loops


def test_a_share_with_a_conditional(of_two_loops):
    share = "blocks_m * blocks_n // PROGRAMS\n    if pid < blocks_m * blocks_n % PROGRAMS:\n        mine += 1"
    compiled = compile_for_hopper(make_flat("where", share))
    assert count_copies(compiled) == of_two_loops
    assert "flat-loop-split" in [remark.kind for remark in compiled.remarks]


BATCHED = {
    "a constant count of programs": ("PROGRAMS", "0", "", "ki + 1 >= k_tiles",
                                     "ki = tl.where(ki + 1 >= k_tiles, 0, ki + 1)"),
    "the grid's extent, and a remainder": ("tl.num_programs(0)", "k_tiles - 1", "ki = (ki + 1) % k_tiles",
                                           "ki == k_tiles - 1", ""),
}  # fmt: skip


def make_batched(spelling: str):
    """A tile's number is one of all matrices."""
    programs, first, count, closes, end = BATCHED[spelling]
    return make_kernel(f"""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, B, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    programs = {programs}
    blocks_n, k_tiles = tl.cdiv(N, BN), tl.cdiv(K, BK)
    tiles = tl.cdiv(M, BM) * blocks_n
    mine = (tiles * B - pid + programs - 1) // programs
    tile = pid - programs
    ki = {first}
    batch = 0
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(mine * k_tiles):
        {count}
        if ki == 0:
            tile += programs
            batch = tile // tiles
            rows = tile % tiles // blocks_n * BM + tl.arange(0, BM)
            columns = tile % tiles % blocks_n * BN + tl.arange(0, BN)
        k = ki * BK + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (k[None, :] < K)
        a = tl.load(a_ptr + batch * M * K + rows[:, None] * K + k[None, :], mask=a_mask, other=0)
        b_mask = (k[:, None] < K) & (columns[None, :] < N)
        b = tl.load(b_ptr + batch * K * N + k[:, None] * N + columns[None, :], mask=b_mask, other=0)
        acc += tl.dot(a, b)
        if {closes}:
            mask = (rows[:, None] < M) & (columns[None, :] < N)
            at = c_ptr + batch * M * N + rows[:, None] * N + columns[None, :]
            tl.store(at, acc.to(tl.float16), mask=mask)
            acc = tl.zeros((BM, BN), tl.float32)
        {end}
""")


@pytest.mark.parametrize("spelling", BATCHED)
def test_a_batch(spelling):
    tiles = {"BM": 128, "BN": 256, "BK": 64, "PROGRAMS": 132}
    compiled = tessera.compile(
        make_batched(spelling),
        signature=SIGNATURE + ", i32",
        constexprs=tiles,
        target="sm_90a",
        num_warps=8,
    )
    text = compiled.asm["tilegpu"]
    assert text.count("tilegpu.tma_load") == 2 and "tilegpu.warp_specialize" in text


@pytest.mark.parametrize("spelling", BATCHED)
def test_results_of_a_batch(rng, spelling):
    m, n, k, batch, programs = 72, 64, 40, 3, 4
    a = rng.integers(-2, 3, (batch, m, k)).astype(np.float16)
    b = rng.integers(-2, 3, (batch, k, n)).astype(np.float16)
    c = np.full((batch, m, n), 7, np.float16)
    tessera.gpu.simulate(make_batched(spelling))[(programs,)](
        a, b, c, m, n, k, batch, BM=64, BN=32, BK=32, PROGRAMS=programs, num_warps=4
    ).check()
    np.testing.assert_array_equal(c, a @ b)


def make_while_over_tiles():
    """A `while` over tiles. K is counted down, and the end of a tile computes where the next one is."""
    place = """rows = tile // blocks_n * BM + tl.arange(0, BM)
    columns = tile % blocks_n * BN + tl.arange(0, BN)
    a_ptrs = a_ptr + (rows % M)[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * N + (columns % N)[None, :]"""
    return make_kernel(f"""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           PROGRAMS: tl.constexpr):
    blocks_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * blocks_n
    tile = tl.program_id(0)
    ks = tl.arange(0, BK)
    left = K
    {place}
    acc = tl.zeros((BM, BN), tl.float32)
    while tile < tiles:
        a = tl.load(a_ptrs, mask=ks[None, :] < left, other=0)
        b = tl.load(b_ptrs, mask=ks[:, None] < left, other=0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
        left -= BK
        if left <= 0:
            mask = (rows[:, None] < M) & (columns[None, :] < N)
            tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16), mask=mask)
            tile += PROGRAMS
            left = K
            {place.replace(chr(10), chr(10) + "        ")}
            acc = tl.zeros((BM, BN), tl.float32)
""")


def test_a_while_over_tiles(rng, of_two_loops):
    kernel = make_while_over_tiles()
    assert count_copies(compile_for_hopper(kernel)) == of_two_loops
    m, n, k = 200, 144, 72
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.full((m, n), 7, np.float16)
    tessera.gpu.simulate(kernel)[(5,)](
        a, b, c, m, n, k, BM=64, BN=64, BK=32, PROGRAMS=5, num_warps=4
    ).check()
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("spelling", ["where", "strided", "countdown", "flag"])
@pytest.mark.parametrize("sizes", [(200, 144, 96), (64, 64, 0)], ids=str)
def test_results_of_the_simulator(rng, spelling, sizes):
    """Programs have different numbers of tiles, and some have none."""
    m, n, k = sizes
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k or 1), (k or 1, n)))
    c = np.full((m, n), 7, np.float16)
    grid = 5 if k else 2
    tessera.gpu.simulate(make_flat(spelling))[(grid,)](
        a, b, c, m, n, k, BM=64, BN=64, BK=32, PROGRAMS=grid, num_warps=4
    ).check()
    # Without iterations nothing is stored.
    np.testing.assert_array_equal(c, a @ b if k else np.full((m, n), 7, np.float16))


def make_closing(opened: str, closed: str, init: str = "-1"):
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, y_ptr, T, K):
    ki = {init}
    tile, scale, factor = 0, 1, 1
    sum = 0
    for t in range(T):
        wraps = ki == K - 1
        ki = tl.where(wraps, 0, ki + 1)
        {opened}
        sum += tl.load(x_ptr + t) * factor
        {closed}
""")


CLOSE = """if ki == K - 1:
            tl.store(y_ptr + tile, sum)
            tile += 1
            sum = 0"""
# Conditionals whose results the loop uses in other ways than for the store.
CLOSINGS = {
    "arithmetic on the condition of the wrap": make_closing(
        "factor += wraps.to(tl.int32) * 3", CLOSE, init="K - 1"
    ),
    "a conditional on more than the wrap": make_closing(
        "if wraps & (t > 0):\n            factor += 2", CLOSE, init="K - 1"
    ),
    "a load in a conditional on the wrap": make_closing(
        "factor = tl.where(wraps, factor + tl.load(x_ptr), factor)", CLOSE, init="K - 1"
    ),
    "a select on the wrap and on the count": make_closing(
        "factor = tl.where(ki != 0, factor, factor + (ki == 0).to(tl.int32) - wraps.to(tl.int32))",
        CLOSE, init="K - 1",
    ),
    "an opening that uses the value of a closing": make_closing(
        "factor = tl.where(ki == 0, 5, scale * 2)",
        "scale = tl.where(ki == K - 1, 0, scale + 1)\n        " + CLOSE,
    ),
    "an opening that uses the result of a closing": make_closing(
        "factor = tl.where(ki == 0, scale + 7, scale * 2 - 1)",
        CLOSE + "\n            scale = 3\n        else:\n            scale = scale * 2 + 1",
    ),
    "a closing that uses another one's result": make_closing(
        "scale += 1",
        CLOSE + """
            scale = 2
        other = factor * factor + t
        if ki == K - 1:
            tl.store(y_ptr + 16 + tile, scale + other)
            factor = 1
        else:
            factor = scale * 2 - other""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CLOSINGS)
def test_uses_of_conditions_and_of_closings(rng, case):
    compiled = tessera.compile(CLOSINGS[case], signature="*i32, *i32, i32, i32", target="sm_80")
    assert "flat-loop-split" in [remark.kind for remark in compiled.remarks]
    x = rng.integers(-9, 10, 16).astype(np.int32)
    for sizes in ((12, 3), (13, 4), (3, 1), (5, 0)):
        want, got = np.full(32, 7, np.int32), np.full(32, 7, np.int32)
        tessera.interpret(CLOSINGS[case])[(1,)](x, want, *sizes)
        CLOSINGS[case][(1,)](x, got, *sizes)
        np.testing.assert_array_equal(got, want, f"{sizes}")


def make_counting(
    header: str, before: str, closes: str, end: str = "", init: str = "0", other: str = "pass",
    flag: str = "",
):  # fmt: skip
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, y_ptr, T, K):
    k = {init}
    tile, sum, moved, from_x = 1, 0, 0, x_ptr + 1
    fresh, open = T == T, T != T
    {flag}
    {header}:
        {before}
        opened = k == {init}
        sum += tl.load(from_x + moved) * 2 + k + opened
        moved += 1
        {end if closes.startswith("#") else ""}
        if {closes.lstrip("#")}:
            tl.store(y_ptr + tile, sum)
            tile += 2
            sum, moved, from_x = 0, 0, x_ptr + tile
            {"k = " + init + "; " + flag if closes.startswith("#") else ""}
        else:
            {other}
        {"" if closes.startswith("#") else end}
""")


TILES, ALL = "while tile < T", "for t in range(T)"
# Counters that go by more than 1, and remainders that the loop carries.
COUNTERS = {
    "down to 0": make_counting(TILES, "", "#k <= 0", "k -= 3", init="K"),
    "up to K": make_counting(TILES, "", "#k >= K", "k += 3"),
    "before the step": make_counting(TILES, "", "k <= 3", "k = tl.where(k <= 3, K, k - 3)", init="K"),
    "less than": make_counting(TILES, "", "#not (k < K)", "k += 2", init="1"),
    "greater than": make_counting(ALL, "", "k + 2 > K - 1", "k = tl.where(k + 3 > K, 0, k + 3)"),
    "a bound on the left": make_counting("while T > tile", "", "#0 >= k", "k -= 2", init="K"),
    "if and else": make_counting(TILES, "", "#k >= K - 1", other="k += 1"),
    "all iterations": make_counting(ALL, "", "#k <= 0", "k -= 3", init="K"),
    "remainder before its use": make_counting(ALL, "k = (k + 1) % K", "k == K - 1", init="K - 1"),
    "remainder behind its use": make_counting(ALL, "", "k == K - 1", "k = (k + 1) % K"),
    "next remainder": make_counting(ALL, "next = (k + 1) % K", "next == 0", "k = next"),
    "down to 0, wrapped before its use": make_counting(
        ALL, "k = tl.where(k == 0, K, k)", "k == 1", "k -= 1", init="0"),
    "down by 3, wrapped before its use": make_counting(
        ALL, "k = tl.where(k <= 0, K, k)", "k <= 3", "k -= 3", init="0"),
    "down, begun with its value": make_counting(
        ALL, "k = tl.where(k < 1, K, k)", "k - 1 < 1", "k -= 1", init="K"),
    "down to 1 by equality": make_counting(
        ALL, "", "k == 1", "k = tl.where(k == 1, K, k - 1)", init="K"),
    "from 1 to K": make_counting(ALL, "", "k == K", "k = tl.where(k == K, 1, k + 1)", init="1"),
    "up by 3 before its use": make_counting(
        ALL, "k = tl.where(k + 3 >= K, 0, k + 3)", "k + 3 >= K", init="-3"),
    "up by 3 from the end": make_counting(
        ALL, "k = tl.where(k + 3 >= K, 0, k + 3)", "k + 3 >= K", init="K - 3"),
    "what is left": make_counting(
        ALL, "k = tl.where(k == 0, K, k)", "K - k == K - 1", "k -= 1", init="0"),
    "a flag opens": make_counting(
        ALL, "if fresh:\n            from_x = x_ptr + tile", "k == K - 1",
        "fresh = k == K - 1\n        k = tl.where(k == K - 1, 0, k + 1)"),
    "a flag keeps open": make_counting(
        ALL, "from_x = tl.where(open, from_x, x_ptr + tile)", "k + 1 >= K",
        "open = k + 1 < K\n        k = tl.where(k + 1 >= K, 0, k + 1)"),
    "a flag closes": make_counting(
        ALL, "", "last", "k = tl.where(last, 0, k + 1)\n        last = k == K - 1",
        flag="last = K == 1"),
    "a flag closes at the bound": make_counting(
        TILES, "", "last", "k = tl.where(last, 0, k + 1)\n        last = k + 1 >= K",
        flag="last = K <= 1"),
    "a flag keeps a tile": make_counting(
        ALL, "", "not more", "k = tl.where(more, k + 1, 0)\n        more = k + 1 < K",
        flag="more = K > 1"),
    "a flag counts down": make_counting(
        ALL, "", "last", "k = tl.where(last, K - 1, k - 1)\n        last = k == 0",
        init="K - 1", flag="last = K == 1"),
    "a flag is chosen": make_counting(
        ALL, "", "last", "k, last = tl.where(last, 0, k + 1), tl.where(last, K == 1, k + 2 == K)",
        flag="last = K == 1"),
    "a flag in both branches": make_counting(
        ALL, "", "#last", other="k += 1; last = k == K - 1", flag="last = 1 == K"),
    "next count": make_counting(ALL, "next = tl.where(k + 1 >= K, 0, k + 1)", "next == 0", "k = next"),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTERS)
def test_counters(rng, case):
    compiled = tessera.compile(COUNTERS[case], signature="*i32, *i32, i32, i32", target="sm_80")
    assert "flat-loop-split" in [remark.kind for remark in compiled.remarks]
    x = rng.integers(-9, 10, 40).astype(np.int32)
    for sizes in ((12, 9), (13, 7), (3, 1), (5, 0), (7, -4), (0, 5)):
        want, got = np.full(32, 7, np.int32), np.full(32, 7, np.int32)
        tessera.interpret(COUNTERS[case])[(1,)](x, want, *sizes)
        COUNTERS[case][(1,)](x, got, *sizes)
        np.testing.assert_array_equal(got, want, f"{sizes}")


@tessera.jit
def second_flag(x_ptr, y_ptr, T, K, N, BOUND: tl.constexpr):
    """One flag closes tiles. The other one begins as False, whatever its comparison would give."""
    bound = (N & 255).to(BOUND)
    number = bound - 1
    more = T != T
    k = 0
    tile = 0
    total = 0
    last = K == 1
    for t in range(T):
        total += tl.load(x_ptr + t) + tl.where(more, 1000, 0)
        if last:
            tl.store(y_ptr + tile, total)
            tile += 1
            total = 0
        k = tl.where(last, 0, k + 1)
        last = k == K - 1
        number += 1
        more = number < bound


@pytest.mark.parametrize("bound", [tl.int32, tl.uint32, tl.int64, tl.uint64], ids=str)
def test_a_flag_that_is_no_comparison_at_first(bound):
    x, want = np.ones(12, np.int32), np.full(5, 7, np.int32)
    got = want.copy()
    tessera.interpret(second_flag)[(1,)](x, want, 12, 3, 7, bound)
    second_flag[(1,)](x, got, 12, 3, 7, bound)
    np.testing.assert_array_equal(got, want)
