# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that clusters of blocks do, on a GPU: values, and grids of more than fit at once."""

from __future__ import annotations

from typing import Any

import pytest

import tessera
import tessera.language as tl

pytestmark = pytest.mark.gpu

BLOCKS = (1, 2, 4, 8)


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    if module.cuda.get_device_capability()[0] < 9:
        pytest.skip("the GPU has no clusters")
    return module


@tessera.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * n + i, e / tl.sum(e), mask=i < n)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("n, warps", ((32768, 16), (20000, 8), (1000, 4), (3, 1)))
def test_a_row_over_blocks(torch: Any, blocks: int, n: int, warps: int) -> None:
    x = torch.randn(1000, n, device="cuda")
    out = torch.empty_like(x)
    block = tessera.next_power_of_2(n)
    softmax[(1000,)](x, out, n, BLOCK=block, num_warps=warps, num_ctas=blocks)
    torch.testing.assert_close(out, torch.softmax(x, 1))


@tessera.jit
def columns(x_ptr, out_ptr, n, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.program_id(0) * C + tl.arange(0, C)
    x = tl.load(x_ptr + r[:, None] * n + c[None, :])
    tl.store(out_ptr + c, tl.sum(tl.cumsum(x, 0), 0))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_scans_and_sums(torch: Any, blocks: int) -> None:
    x = torch.randint(-9, 9, (256, 4096), device="cuda", dtype=torch.int32)
    out = torch.empty(4096, device="cuda", dtype=torch.int32)
    columns[(4096 // 32,)](x, out, 4096, R=256, C=32, num_ctas=blocks)
    assert torch.equal(out, x.cumsum(0).sum(0).int())


@tessera.jit
def order(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_sorts(torch: Any, blocks: int) -> None:
    x = torch.randn(500, 2048, device="cuda")
    out = torch.empty_like(x)
    order[(500,)](x, out, BLOCK=2048, num_ctas=blocks)
    assert torch.equal(out, x.sort(1).values)


@tessera.jit
def ticket(counter_ptr, order_ptr, sums_ptr, x_ptr, BLOCK: tl.constexpr):
    number = tl.atomic_add(counter_ptr, 1)
    tl.store(order_ptr + tl.program_id(0), number)
    i = tl.arange(0, BLOCK)
    tl.atomic_add(sums_ptr + i % 16, tl.load(x_ptr + i))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_atomics_happen_once(torch: Any, blocks: int) -> None:
    counter = torch.zeros(1, device="cuda", dtype=torch.int32)
    first = torch.full((3000,), -1, device="cuda", dtype=torch.int32)
    sums = torch.zeros(16, device="cuda", dtype=torch.int32)
    x = torch.arange(256, device="cuda", dtype=torch.int32)
    ticket[(3000,)](counter, first, sums, x, BLOCK=256, num_ctas=blocks)
    assert torch.equal(first.sort().values, torch.arange(3000, device="cuda", dtype=torch.int32))
    assert torch.equal(sums, 3000 * x.reshape(-1, 16).sum(0).int())


@tessera.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, K, BK):
        a = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * N + j[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + i[:, None] * N + j[None, :], acc)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("tile", ((128, 128, 64), (64, 64, 32), (32, 32, 32), (16, 16, 16)))
def test_dots(torch: Any, blocks: int, tile: tuple[int, int, int]) -> None:
    M, N, K = 512, 1024, 768
    BM, BN, BK = tile
    a = torch.randint(-3, 4, (M, K), device="cuda").half()
    b = torch.randint(-3, 4, (K, N), device="cuda").half()
    out = torch.empty(M, N, device="cuda")
    matmul[(M // BM, N // BN)](a, b, out, M, N, K, BM=BM, BN=BN, BK=BK, num_ctas=blocks)
    assert torch.equal(out, a.float() @ b.float())


@tessera.jit
def linear(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, ks = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, 64)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :],
                    (rows[:, None] < M) & ((k + ks)[None, :] < K), other=0.0)  # fmt: skip
        b = tl.load(b_ptr + columns[None, :] * K + (k + ks)[:, None],
                    (columns[None, :] < N) & ((k + ks)[:, None] < K), other=0.0)  # fmt: skip
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(c_ptr.dtype.element_ty),
             (rows[:, None] < M) & (columns[None, :] < N))  # fmt: skip


# Numbers of programs of which some divide their tiles, some their sums, and some nothing.
@pytest.mark.parametrize("tile", ((256, 64, 8), (256, 96, 8), (128, 256, 8), (128, 128, 4)))
@pytest.mark.parametrize("m, n, k", ((256, 4096, 4096), (200, 5000, 1024), (512, 1040, 2048),
                                     (1, 6144, 4096), (1000, 3000, 512), (256, 4096, 72)))  # fmt: skip
def test_launches_choose(torch: Any, tile: tuple[int, int, int], m: int, n: int, k: int) -> None:
    bm, bn, warps = tile
    a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    want, ways = (a.float() @ b.float().T).bfloat16(), set()
    for options in ({}, {"split_k": False}):
        c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        grid = (tessera.cdiv(m, bm), tessera.cdiv(n, bn))
        kernel = linear[grid](a, b, c, m, n, k, BM=bm, BN=bn, num_warps=warps, **options)
        torch.testing.assert_close(c, want, rtol=2e-2, atol=2e-2 * k**0.5)
        ways.add((kernel.metadata.num_ctas, "num_parts" in kernel.asm["tilegpu"]))
        if "split_k" in options:
            assert kernel.metadata.num_ctas == 1
    if (tile, m, n, k) == ((256, 96, 8), 256, 4096, 4096):
        assert (2, True) in ways
