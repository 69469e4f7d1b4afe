# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose loads are copied ahead, simulated: values, races, and what is read too early.

The simulator lets copies arrive when the seed says, and knows what a wgmma that goes on
still reads. The kernels are those of gpu/test_pipelines.py.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from execution.running import make_kernel
from gpu.test_pipelines import attention, dequantised, matmul, paged, persistent, sum_rows

import tessera
import tessera.gpu
import tessera.language as tl

TARGETS = ["sm_80", "sm_90a"]


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("K", [0, 32, 96, 160])
@pytest.mark.parametrize("target", TARGETS)
def test_matmul(rng, target, K, stages):
    M, N = 72, 64
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    c = np.full((M, N), np.nan, "f4")
    for seed in range(2):
        simulation = tessera.gpu.simulate(matmul, seed=seed)[(2, 1)](
            a, b, c, M, N, K, K, 1, N, 1, BM=64, BN=64, BK=32, target=target, num_stages=stages
        )
        simulation.check()
        np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [False, True])
def test_turned_operands_and_tails(rng, target, columns):
    M, N, K = 64, 64, 76
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    stored = np.ascontiguousarray(b.T).T if columns else b
    c = np.full((M, N), np.nan, "f4")
    strides = (K, 1, *(stride // 2 for stride in stored.strides))
    simulation = tessera.gpu.simulate(matmul)[(1, 1)](
        a, stored, c, M, N, K, *strides, BM=64, BN=64, BK=32, target=target, num_stages=3
    )
    simulation.check()
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


@tessera.jit
def multiply_adds(a_ptr, b_ptr, c_ptr, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):  # fmt: skip
    rows, columns, inner = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), c_ptr.dtype.element_ty)
    for k in range(0, K, BK):
        a_mask, b_mask = inner[None, :] < K - k, inner[:, None] < K - k
        a = tl.load(a_ptr + rows[:, None] * am + (k + inner)[None, :] * ak, a_mask, 0)
        b = tl.load(b_ptr + (k + inner)[:, None] * bk + columns[None, :] * bn, b_mask, 0)
        acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=c_ptr.dtype.element_ty)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)


@pytest.mark.parametrize(
    "dtype, result, block, warps",
    [
        ("f4", "f4", (32, 32, 16), 2),
        ("f4", "f4", (32, 64, 64), 1),
        ("f4", "f4", (96, 32, 8), 4),
        ("i1", "i4", (16, 32, 8), 1),
        ("f2", "f4", (32, 32, 32), 4),
    ],
)
@pytest.mark.parametrize("K, stages", [(0, 3), (64, 1), (64, 2), (140, 3), (256, 4)])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_multiply_adds_read_slices_ahead(rng, dtype, result, block, warps, K, stages, transposed):
    BM, BN, BK = block
    a = rng.integers(-4, 5, (BM, K)).astype(dtype)
    b = rng.integers(-4, 5, (K, BN)).astype(dtype)
    x, y = (np.ascontiguousarray(m.T).T if flip else m for m, flip in zip((a, b), transposed))
    c = np.full((BM, BN), 99, result)
    strides = [stride // a.itemsize for stride in (*x.strides, *y.strides)]
    for seed in range(2):
        tessera.gpu.simulate(multiply_adds, seed=seed)[(1,)](
            x, y, c, K, *strides, BM=BM, BN=BN, BK=BK, num_warps=warps, num_stages=stages,
            deterministic=dtype != "f4", target="sm_80",
        ).check()  # fmt: skip
        np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize("options", [{"target": "sm_80"}, {"target": "sm_90a", "tensor_maps": False},
                                     {"target": "sm_90a"}], ids=["sm_80", "sm_90a", "maps"])  # fmt: skip
@pytest.mark.parametrize("shape", [(200, 136, 96), (64, 64, 0), (130, 192, 40)])
def test_programs_that_loop_over_tiles(rng, shape, options):
    """Three programs for up to twelve tiles, or more programs than tiles."""
    M, N, K = shape
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    c = np.full((M, N), np.nan, "f4")
    tessera.gpu.simulate(persistent)[(3,)](
        a, b, c, M, N, K, K, N, BM=64, BN=64, BK=32, num_stages=3, **options
    ).check()
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


def test_copies_go_on_into_the_next_tile():
    """The thread that orders them loops over tiles by itself: nothing but slots holds it up,
    and the numbers of slots go on from tile to tile."""
    signature = "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, i32:16, i32:16, 128, 128, 64"
    kernel = tessera.compile(persistent, signature, target="sm_90a", num_warps=8, num_stages=3)
    text = kernel.asm["tilegpu"]
    assert text.count("mbarrier_init") == 2 and text.index("mbarrier_init") < text.index("scf.for")
    copies = text[text.index("partition warps(1)") :]
    outer, inner = (line for line in copies.splitlines() if "scf.for" in line)
    begun = re.search(r"iter_args\((%\w+) = ", outer)
    assert begun and f"= {begun[1]}," in inner and "tma_load" in copies
    assert "barrier\n" not in copies and not [r for r in kernel.remarks if "not pipelined" in r]


@pytest.mark.parametrize("target", TARGETS)
def test_converted_and_paged(rng, target):
    a = rng.integers(-4, 5, (64, 128)).astype("f2")
    b = rng.integers(-9, 10, (128, 64)).astype("i1")
    c = np.full((64, 64), np.nan, "f4")
    tessera.gpu.simulate(dequantised)[(1,)](
        a, b, c, 128, BM=64, BN=64, BK=64, target=target
    ).check()
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))
    pool = rng.integers(-4, 5, (6, 32, 64)).astype("f2")
    pages = np.array([5, 0, 3, 1], "i4")
    tessera.gpu.simulate(paged)[(1,)](
        a, pages, pool, c, 4, BM=64, BN=64, BK=32, target=target
    ).check()
    np.testing.assert_array_equal(c, a.astype("f8") @ pool[pages].reshape(128, 64).astype("f8"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(rng, target, stages, causal):
    T, D = 96, 64
    q, k, v = (rng.standard_normal((1, T, D)).astype("f2") for _ in range(3))
    o = np.full_like(q, np.nan)
    scores = q[0].astype("f8") @ k[0].astype("f8").T * D**-0.5
    if causal:
        scores = np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v[0].astype("f8")
    simulation = tessera.gpu.simulate(attention)[(2, 1)](
        q, k, v, o, T, D**-0.5 * 1.4426950408889634, CAUSAL=causal, BM=64, BN=32, D=D,
        target=target, num_stages=stages,
    )  # fmt: skip
    simulation.check()
    np.testing.assert_allclose(o[0], expected, atol=5e-3)


@pytest.mark.parametrize("n_rows", [0, 1, 5])
@pytest.mark.parametrize("n", [256, 255])
def test_loops_that_ask_for_it(rng, n_rows, n):
    x = rng.integers(-9, 10, (n_rows, n)).astype("f4")
    scale = rng.integers(-9, 10, n_rows).astype("f4")
    out: Any = np.full(n, np.nan, "f4")
    tessera.gpu.simulate(sum_rows)[(1,)](
        x, scale, out, n_rows, n, STAGES=3, BLOCK=256, target="sm_80"
    ).check()
    np.testing.assert_array_equal(out, scale @ x)


@tessera.jit
def scaled_behind(a_ptr, b_ptr, s_ptr, c_ptr, K, BK: tl.constexpr, STAGES: tl.constexpr):
    i, inner = tl.arange(0, 32), tl.arange(0, BK)
    tile = i[:, None] * 32 + i[None, :]
    acc = tl.zeros((32, 32), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        a = tl.load(a_ptr + i[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * 32 + i[None, :])
        acc = tl.dot(a, b, acc)
        acc *= tl.load(s_ptr + k // BK * 1024 + tile)
    tl.store(c_ptr + tile, acc)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_tile_that_is_read_behind_the_dot(rng, target, stages):
    """The next iteration's copies, which take its place, used to begin before the dot."""
    K, BK = 256, 64
    a = rng.integers(-2, 3, (32, K)).astype("f2")
    b = rng.integers(-2, 3, (K, 32)).astype("f2")
    s = rng.integers(0, 3, (K // BK, 32, 32)).astype("f4")
    c = np.full((32, 32), np.nan, "f4")
    simulation = tessera.gpu.simulate(scaled_behind)[(1,)](
        a, b, s, c, K, BK=BK, STAGES=stages, target=target
    )
    simulation.check()
    want = np.zeros((32, 32))
    for step, k in enumerate(range(0, K, BK)):
        want = (want + a[:, k : k + BK].astype("f8") @ b[k : k + BK].astype("f8")) * s[step]
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("shape", [(72, 64, 96), (200, 136, 160), (64, 64, 0)])
@pytest.mark.parametrize("stages", [1, 3])
def test_results_leave_by_the_copy_engine(rng, shape, stages):
    """Of a tile what lies within the array, whoever brought what was multiplied."""
    M, N, K = shape
    a = rng.integers(-4, 5, (M, K)).astype("f2")
    b = rng.integers(-4, 5, (K, N)).astype("f2")
    # What lies behind stays as it is.
    memory = np.full((M + 8, N), 77, "f4")
    simulation = tessera.gpu.simulate(matmul)[(-(-M // 64), -(-N // 64))](
        a, b, memory[:M], M, N, K, K, 1, N, 1, BM=64, BN=64, BK=32, target="sm_90a",
        num_stages=stages, tensor_maps=True,
    )  # fmt: skip
    simulation.check()
    np.testing.assert_array_equal(memory[:M], a.astype("f8") @ b.astype("f8"))
    assert (memory[M:] == 77).all()


@tessera.jit
def attend_to_pages(
    q_ptr, k_ptr, v_ptr, o_ptr, L, half, pages, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """For each page sums of exp(q k') v over its rows, and over `half` of them again."""
    rows, columns, ds = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + ds[None, :])
    for page in range(0, pages):
        acc = tl.zeros((BM, D), dtype=tl.float32)
        for start in range(0, L, BN):
            at = start + columns
            k = tl.load(
                k_ptr + page * L * D + at[None, :] * D + ds[:, None],
                mask=at[None, :] < L,
                other=0.0,
            )
            p = tl.math.exp2(tl.dot(q, k) * scale)
            v = tl.load(
                v_ptr + page * L * D + at[:, None] * D + ds[None, :],
                mask=at[:, None] < L,
                other=0.0,
            )
            acc = tl.dot(p.to(v.dtype), v, acc)
        for start in range(0, half, BN):
            at = start + columns
            k = tl.load(
                k_ptr + page * L * D + at[None, :] * D + ds[:, None],
                mask=at[None, :] < L,
                other=0.0,
            )
            p = tl.math.exp2(tl.dot(q, k) * scale)
            v = tl.load(
                v_ptr + page * L * D + at[:, None] * D + ds[None, :],
                mask=at[:, None] < half, other=0.0,
            )  # fmt: skip
            acc = tl.dot(p.to(v.dtype), v, acc)
        tl.store(o_ptr + page * BM * D + rows[:, None] * D + ds[None, :], acc)


@pytest.mark.parametrize("L", [0, 30, 64, 200])
@pytest.mark.parametrize("block, warps, stages", [((64, 32), 4, 2), ((64, 64), 4, 3),
                                                  ((128, 32), 8, 4)])  # fmt: skip
def test_the_first_thread_orders_copies(rng, L, block, warps, stages):
    # Rings and their phases go on from loop to loop, and from page to page.
    D, pages = 64, 3
    q = rng.standard_normal((block[0], D)).astype("f2")
    k, v = (rng.standard_normal((pages, max(L, 1), D)).astype("f2") for _ in range(2))
    o = np.full((pages, block[0], D), np.nan, "f4")
    weights = np.exp(np.einsum("md,pld->pml", q.astype("f8"), k.astype("f8")) * D**-0.5)
    weights = weights[:, :, :L]
    expected = weights @ v[:, :L].astype("f8")
    expected += weights[:, :, : L // 2] @ v[:, : L // 2].astype("f8")
    arguments = (q, k, v, o, L, L // 2, pages, D**-0.5 * 1.4426950408889634)
    options = {"D": D, "BM": block[0], "BN": block[1], "num_warps": warps, "num_stages": stages,
               "target": "sm_90a"}  # fmt: skip
    simulation = tessera.gpu.simulate(attend_to_pages)[(1,)](*arguments, **options)
    simulation.check()
    np.testing.assert_allclose(o, expected, atol=0.1, rtol=2e-3)  # f16 weights
    if L:
        remarks = "\n".join(map(str, attend_to_pages.warmup(*arguments, **options).remarks))
        assert "loop copies without a producer warp" in remarks


@tessera.jit
def odd_columns(a_ptr, b_ptr, c_ptr, n, COLUMNS: tl.constexpr):
    i, j, k = tl.arange(0, 64), tl.arange(0, 16), tl.arange(0, 32)
    acc = tl.zeros((64, 16), tl.int32)
    for step in range(n):
        a = tl.load(a_ptr + i[:, None] * (n * 32) + (step * 32 + k)[None, :])
        places = b_ptr + (step * 32 + k)[:, None] * 16 + j[None, :]
        acc = tl.dot(a, tl.load(places, mask=j[None, :] < COLUMNS, other=0), acc)
    tl.store(c_ptr + i[:, None] * 16 + j[None, :], acc)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_mask_ends_within_a_narrow_copy(rng, target):
    """A thread has two bytes of a row, which no asynchronous copy moves."""
    n, columns = 3, 13
    a, b = rng.integers(-9, 9, (64, n * 32)).astype("i1"), rng.integers(-9, 9, (n * 32, 16)).astype(
        "i1"
    )
    c = np.zeros((64, 16), "i4")
    tessera.gpu.simulate(odd_columns)[(1,)](
        a, b, c, n, COLUMNS=columns, num_warps=8, target=target
    ).check()
    want = a.astype("i4") @ b.astype("i4")
    want[:, columns:] = 0
    np.testing.assert_array_equal(c, want)


@tessera.jit
def sum_in_memory(a_ptr, b_ptr, c_ptr, K, BK: tl.constexpr):
    rows, inner = tl.arange(0, 64), tl.arange(0, BK)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + inner[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * 64 + rows[None, :])
        at = c_ptr + rows[:, None] * 64 + rows[None, :]
        tl.store(at, tl.load(at) + tl.dot(a, b))


def test_operands_pass_a_sum_in_memory(rng):
    """The sum itself is loaded where it was."""
    K = 160
    a = rng.integers(-4, 5, (64, K)).astype("f2")
    b = rng.integers(-4, 5, (K, 64)).astype("f2")
    signature = "*fp16:16, *fp16:16, *fp32:16, i32:16, 32"
    kernel = tessera.compile(sum_in_memory, signature, target="sm_80")
    assert "async_copy" in kernel.asm["tilegpu"]
    for seed in range(2):
        c = np.ones((64, 64), "f4")
        simulation = tessera.gpu.simulate(sum_in_memory, seed=seed)[(1,)](
            a, b, c, K, BK=32, target="sm_80"
        )
        simulation.check()
        np.testing.assert_array_equal(c, 1 + a.astype("f8") @ b.astype("f8"))


@tessera.jit
def two_sums(x_ptr, order_ptr, gate_ptr, up_ptr, y_ptr, K, GATHERED: tl.constexpr,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
             STEPS: tl.constexpr = 0):  # fmt: skip
    """Rows times two matrices, both products in one loop."""
    rows, columns, inner = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    from_rows = tl.load(order_ptr + rows) if GATHERED else rows
    gate, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k in range(0, STEPS * BK if STEPS else K, BK):
        inside = inner[:, None] < K - k
        x_mask = inner[None, :] < K - k
        x = tl.load(x_ptr + from_rows[:, None] * K + (k + inner)[None, :], x_mask, 0)
        at = (k + inner)[:, None] * BN + columns[None, :]
        gate = tl.dot(x, tl.load(gate_ptr + at, inside, 0), gate)
        up = tl.dot(x, tl.load(up_ptr + at, inside, 0), up)
    tl.store(y_ptr + rows[:, None] * BN + columns[None, :], gate - up * 3)


def compile_two_sums(sizes, **options):
    signature = "*fp16:16, *i32:16, *fp16:16, *fp16:16, *fp32:16, i32:16"
    return tessera.compile(
        two_sums,
        signature=signature,
        constexprs=sizes,
        target="sm_90a",
        **{"num_stages": 3, **options},
    )


def check_two_sums(rng, K, sizes, **options):
    BM, BN = sizes["BM"], sizes["BN"]
    x, gate, up = (rng.integers(-4, 5, shape).astype("f2") for shape in ((BM, K), (K, BN), (K, BN)))
    order, y = rng.permutation(BM).astype("i4"), np.full((BM, BN), np.nan, "f4")
    simulation = tessera.gpu.simulate(two_sums, seed=K)[(1,)](
        x, order, gate, up, y, K, **sizes, target="sm_90a", num_stages=3, **options
    )
    simulation.check()
    rows = (x[order] if sizes["GATHERED"] else x).astype("f4")
    want = rows @ gate.astype("f4") - 3 * (rows @ up.astype("f4"))
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("gathered", [False, True])
def test_two_sums_are_in_flight(rng, gathered):
    sizes = {"GATHERED": gathered, "BM": 128, "BN": 128, "BK": 32}
    for K in (0, 32, 200):
        check_two_sums(rng, K, sizes, num_warps=8)
    text = compile_two_sums(sizes, num_warps=8).asm["tilegpu"]
    assert text.count("is_async") == 2 and "warpgroup_wait {pendings = 2 : i32}" in text
    assert ("tilegpu.tma_load" in text) != gathered


def test_two_sums_of_programs_that_share_an_sm_end_with_their_iteration(rng):
    """The slots hold all iterations."""
    sizes = {"GATHERED": False, "BM": 64, "BN": 64, "BK": 64, "STEPS": 2}
    check_two_sums(rng, 128, sizes)
    compiled = compile_two_sums(sizes, num_stages=2)
    assert "warpgroup_wait {pendings = 2 : i32}" not in compiled.asm["tilegpu"]
    assert "3 programs at once" in "\n".join(str(remark) for remark in compiled.remarks)


@tessera.jit
def triangle(l_ptr, x_ptr, y_ptr, M, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A lower triangle times a matrix of BN columns, the last rows first."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    m, n = block * BM + tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, block * BM, BK):
        ks = k + tl.arange(0, BK)
        l = tl.load(l_ptr + m[:, None] * M + ks[None, :], m[:, None] < M, 0)
        acc = tl.dot(l, tl.load(x_ptr + ks[:, None] * BN + n[None, :]), acc)
    for k in range(block * BM, min(block * BM + BM, M), BK):
        ks = k + tl.arange(0, BK)
        keep = (ks[None, :] <= m[:, None]) & (m[:, None] < M)
        l = tl.load(l_ptr + m[:, None] * M + ks[None, :], keep, 0)
        x = tl.load(x_ptr + ks[:, None] * BN + n[None, :], ks[:, None] < M, 0)
        acc = tl.dot(l, x, acc)
    tl.store(y_ptr + m[:, None] * BN + n[None, :], acc, m[:, None] < M)


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_that_cp_async_cannot_copy_come_an_iteration_ahead(rng, target):
    for M in (64, 100, 160):
        l, x = (rng.integers(-4, 5, shape).astype("f2") for shape in ((M, M), (M, 32)))
        y = np.full((M, 32), np.nan, "f4")
        simulation = tessera.gpu.simulate(triangle, seed=M)[(-(-M // 64),)](
            l, x, y, M, BM=64, BN=32, BK=32, target=target, num_stages=3
        )
        simulation.check()
        np.testing.assert_array_equal(y, np.tril(l).astype("f4") @ x.astype("f4"))
    sizes = {"BM": 64, "BN": 32, "BK": 32}
    signature = "*fp16:16, *fp16:16, *fp32:16, i32:16"
    text = tessera.compile(
        triangle, signature=signature, constexprs=sizes, target=target, num_stages=3
    ).asm["tilegpu"]
    # One load is in front of the loop, and the loop carries a tile.
    assert text.count("= tile.load") == 2 and "async_copy" in text
    # The place of the last program is not negative.
    assert ("tilegpu.tma_load" in text) == (target == "sm_90a")
