# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose loads are copied ahead: right for any number of stages and of iterations."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tessera
import tessera.language as tl

pytestmark = pytest.mark.gpu

STAGES = (1, 2, 3, 4, 7)


@tessera.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a = a_ptr + offs_m[:, None] * sam + offs_k[None, :] * sak
    b = b_ptr + offs_k[:, None] * sbk + offs_n[None, :] * sbn
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(offs_k[:, None] < K - k) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK * sak
        b += BK * sbk
    c = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@tessera.jit
def persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sbk, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The loop over the tiles of the result is the kernel's own."""
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        offs_m = tile // across * BM + tl.arange(0, BM)
        offs_n = tile % across * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            offs_k = k + tl.arange(0, BK)
            a = a_ptr + offs_m[:, None] * sam + offs_k[None, :]
            b = b_ptr + offs_k[:, None] * sbk + offs_n[None, :]
            x = tl.load(a, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K), other=0.0)
            y = tl.load(b, mask=(offs_k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
            acc = tl.dot(x, y, acc)
        c = c_ptr + offs_m[:, None] * N + offs_n[None, :]
        tl.store(c, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@tessera.jit
def described(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Through descriptors that the kernel makes."""
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([i, k]), b.load([k, j]), acc)
    c.store([i, j], acc)


@tessera.jit
def dequantised(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The second operand is bytes, widened on the way to the dot."""
    offs_m, offs_n, offs_k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a_ptr + offs_m[:, None] * K + (k + offs_k)[None, :])
        y = tl.load(b_ptr + (k + offs_k)[:, None] * BN + offs_n[None, :])
        acc = tl.dot(x, y.to(tl.float16), acc)
    tl.store(c_ptr + offs_m[:, None] * BN + offs_n[None, :], acc)


@tessera.jit
def paged(
    a_ptr, pages_ptr, pool_ptr, c_ptr, n_pages, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Where the second operand lies is read in the loop."""
    offs_m, offs_n, offs_k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in tl.range(0, n_pages, num_stages=3):
        page = tl.load(pages_ptr + i)
        x = tl.load(a_ptr + offs_m[:, None] * (n_pages * BK) + (i * BK + offs_k)[None, :])
        y = tl.load(pool_ptr + page * (BK * BN) + offs_k[:, None] * BN + offs_n[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c_ptr + offs_m[:, None] * BN + offs_n[None, :], acc)


@tessera.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, CAUSAL: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n, offs_d = tl.arange(0, BN), tl.arange(0, D)
    base = tl.program_id(1) * T * D
    rows = base + offs_m[:, None] * D + offs_d[None, :]
    q = tl.load(q_ptr + rows, mask=offs_m[:, None] < T, other=0.0)
    m = tl.full((BM,), -1.0e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, T) if CAUSAL else T
    for start in range(0, end, BN):
        offs = start + offs_n
        k = tl.load(
            k_ptr + base + offs[None, :] * D + offs_d[:, None], mask=offs[None, :] < T, other=0.0
        )
        s = tl.dot(q, k) * scale
        live = offs[None, :] < T
        if CAUSAL:
            live = live & (offs_m[:, None] >= offs[None, :])
        s = tl.where(live, s, -1.0e30)
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        l = l * alpha + tl.sum(p, 1)
        v = tl.load(
            v_ptr + base + offs[:, None] * D + offs_d[None, :], mask=offs[:, None] < T, other=0.0
        )
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    tl.store(o_ptr + rows, (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=offs_m[:, None] < T)


@tessera.jit
def sum_rows(
    x_ptr, scale_ptr, out_ptr, n_rows, n, STAGES: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """No dot, but the loop asks for stages."""
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(0, n_rows, num_stages=STAGES):
        x = tl.load(x_ptr + row * n + columns, mask=mask, other=0.0)
        scale = tl.load(scale_ptr + row)
        total += x * scale
    tl.store(out_ptr + columns, total, mask=mask)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def run_matmul(torch: Any, a: Any, b: Any, block: tuple[int, int, int], **options: Any) -> Any:
    (M, K), N = a.shape, b.shape[1]
    c = torch.full((M, N), float("nan"), device="cuda")
    BM, BN, BK = block
    grid = (tessera.cdiv(M, BM), tessera.cdiv(N, BN))
    strides = (*a.stride(), *b.stride())
    matmul[grid](a, b, c, M, N, K, *strides, BM=BM, BN=BN, BK=BK, **options)
    return c


def check_matmul(torch: Any, c: Any, a: Any, b: Any) -> None:
    expected = a.double() @ b.double()
    bound = 1e-5 * (a.double().abs() @ b.double().abs()) + 1e-30
    assert bool(((c.double() - expected).abs() <= bound).all()), (c.double() - expected).abs().max()


@pytest.mark.parametrize("K", [0, 1, 16, 64, 100, 128, 136, 192, 1000])
@pytest.mark.parametrize(
    ("block", "num_warps"),
    [((64, 64, 32), 4), ((128, 128, 64), 8), ((32, 32, 32), 2), ((128, 256, 64), 8)],
)
def test_any_stages_and_iterations(torch, K, block, num_warps):
    torch.manual_seed(0)
    M, N = 200, 264
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randn(K, N, device="cuda", dtype=torch.float16)
    results = []
    for stages in STAGES:
        results.append(run_matmul(torch, a, b, block, num_warps=num_warps, num_stages=stages))
        check_matmul(torch, results[-1], a, b)
    for result in results[1:]:
        assert torch.equal(result, results[0])


@pytest.mark.parametrize("tensor_maps", [False, True])
@pytest.mark.parametrize("programs", [1, 7, 132, 1000])
@pytest.mark.parametrize(
    ("M", "N", "K"), [(520, 392, 264), (1000, 2048, 72), (64, 64, 1000), (300, 200, 0)]
)
def test_programs_that_loop_over_tiles(torch, M, N, K, programs, tensor_maps):
    torch.manual_seed(9)
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randn(K, N, device="cuda", dtype=torch.float16)
    for block, num_warps in (((64, 64, 32), 4), ((128, 128, 64), 8)):
        c = torch.full((M, N), float("nan"), device="cuda")
        BM, BN, BK = block
        persistent[(programs,)](
            a, b, c, M, N, K, K, N, BM=BM, BN=BN, BK=BK, num_warps=num_warps,
            tensor_maps=tensor_maps,
        )  # fmt: skip
        check_matmul(torch, c, a, b)


@pytest.mark.parametrize("tensor_maps", [False, True])
@pytest.mark.parametrize("block", [(128, 192, 64), (192, 128, 64), (256, 192, 64)])
def test_blocks_with_an_odd_factor(torch, block, tensor_maps):
    torch.manual_seed(10)
    for M, N, K in ((384, 384, 192), (300, 520, 136)):
        a = torch.randn(M, K, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(K, N, device="cuda", dtype=torch.bfloat16)
        options = {"num_warps": 8, "tensor_maps": tensor_maps}
        check_matmul(torch, run_matmul(torch, a, b, block, **options), a, b)


@pytest.mark.parametrize(("a_rows", "b_rows"), list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("stages", [1, 3])
def test_layouts_of_operands(torch, dtype, a_rows, b_rows, stages):
    torch.manual_seed(1)
    M, N, K = 256, 192, 320
    kind = getattr(torch, dtype)
    # TF32 keeps ten bits: let the operands have no more.
    a = torch.randn(M, K, device="cuda").half().to(kind)
    b = torch.randn(K, N, device="cuda").half().to(kind)
    a = a if a_rows else a.t().contiguous().t()
    b = b if b_rows else b.t().contiguous().t()
    block = (64, 64, 32)
    check_matmul(torch, run_matmul(torch, a, b, block, num_stages=stages), a, b)


@pytest.mark.parametrize("tensor_maps", [False, True])
@pytest.mark.parametrize(
    "of_a, cache", [("evict_first", ""), ("evict_last", ""), ("", ".cs"), ("", ".ca"), ("", ".cg")]
)
def test_hints_about_caches(torch, of_a, cache, tensor_maps):
    from runtime.test_cache_hints import matmul as hinted

    torch.manual_seed(11)
    M, N, K = 200, 192, 264
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randn(K, N, device="cuda", dtype=torch.float16)
    c = torch.full((M, N), float("nan"), device="cuda")
    hinted[(4, 3)](
        a, b, c, M, N, K, OF_A=of_a, CACHE=cache, OF_C="evict_first", BM=64, BN=64, BK=32,
        num_stages=3, tensor_maps=tensor_maps,
    )  # fmt: skip
    check_matmul(torch, c, a, b)


@pytest.mark.parametrize("pad", [0, 1, 2, 4])
def test_rows_at_any_alignment(torch, pad):
    torch.manual_seed(2)
    M, N, K = 130, 136, 264
    a = torch.randn(M, K + pad, device="cuda", dtype=torch.float16)[:, :K]
    b = torch.randn(K, N + pad, device="cuda", dtype=torch.float16)[:, :N]
    check_matmul(torch, run_matmul(torch, a, b, (64, 64, 32), num_stages=4), a, b)


@pytest.mark.parametrize("stages", STAGES)
def test_converted_operand(torch, stages):
    torch.manual_seed(3)
    M, N, K = 64, 64, 512
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randint(-128, 128, (K, N), device="cuda", dtype=torch.int8)
    c = torch.full((M, N), float("nan"), device="cuda")
    dequantised[(1,)](a, b, c, K, BM=M, BN=N, BK=64, num_stages=stages)
    check_matmul(torch, c, a, b)


@pytest.mark.parametrize("pages", [0, 1, 2, 9])
def test_indices_read_ahead(torch, pages):
    torch.manual_seed(4)
    M, N, BK = 64, 64, 32
    pool = torch.randn(16, BK, N, device="cuda", dtype=torch.float16)
    index = torch.randperm(16, device="cuda").int()[:pages]
    a = torch.randn(M, pages * BK, device="cuda", dtype=torch.float16)
    c = torch.full((M, N), float("nan"), device="cuda")
    paged[(1,)](a, index, pool, c, pages, BM=M, BN=N, BK=BK)
    check_matmul(torch, c, a, pool[index.long()].reshape(pages * BK, N))


@pytest.mark.parametrize("n_rows", [0, 1, 3, 50])
@pytest.mark.parametrize("n", [1000, 1001])
def test_loops_that_ask_for_it(torch, n_rows, n):
    torch.manual_seed(6)
    x = torch.randn(n_rows, n, device="cuda")
    scale = torch.randn(n_rows, device="cuda")
    for stages in STAGES:
        out = torch.full((n,), float("nan"), device="cuda")
        sum_rows[(1,)](x, scale, out, n_rows, n, STAGES=stages, BLOCK=1024)
        torch.testing.assert_close(out, scale @ x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("T", [1, 64, 200, 512])
@pytest.mark.parametrize(("block", "num_warps"), [((64, 32, 64), 4), ((128, 64, 128), 8)])
def test_attention(torch, causal, T, block, num_warps):
    torch.manual_seed(5)
    BM, BN, D = block
    q, k, v = (torch.randn(3, T, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    scale = D**-0.5
    s = (q.double() @ k.double().transpose(1, 2)) * scale
    if causal:
        s = s.masked_fill(~torch.ones(T, T, device="cuda").tril().bool(), float("-inf"))
    expected = s.softmax(-1) @ v.double()
    results = []
    for stages in (1, 2, 3, 4):
        o = torch.full_like(q, float("nan"))
        attention[(tessera.cdiv(T, BM), 3)](
            q, k, v, o, T, scale * 1.4426950408889634, CAUSAL=causal, BM=BM, BN=BN, D=D,
            num_warps=num_warps, num_stages=stages,
        )  # fmt: skip
        assert bool(((o.double() - expected).abs() <= 2e-2).all())
        results.append(o)
    for result in results[1:]:
        assert torch.equal(result, results[0])


def test_what_was_done_is_told(torch):
    a = torch.randn(128, 255, device="cuda", dtype=torch.float16)[:, :254]
    b = torch.randn(254, 128, device="cuda", dtype=torch.float16)
    kernel = matmul[(1, 1)](
        a, b, torch.empty(128, 128, device="cuda"), 128, 128, 254, *a.stride(), *b.stride(),
        BM=128, BN=128, BK=32,
    )  # fmt: skip
    assert any("load is not pipelined: no 4 bytes" in remark for remark in kernel.remarks)
    assert all("test_pipelines.py:" in remark for remark in kernel.remarks)
