# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose programs are done by clusters of blocks: that they compile, and what they become."""

from __future__ import annotations

from typing import Any

import pytest

import tessera
import tessera.language as tl
from tessera.errors import LaunchError


@tessera.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x, mask=i < n)


@tessera.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * n + i, e / tl.sum(e), mask=i < n)


@tessera.jit
def rows(x_ptr, out_ptr, n, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, C)
    x = tl.load(x_ptr + r[:, None] * n + c[None, :])
    tl.store(out_ptr + r, tl.sum(x, 1))


@tessera.jit
def turn(x_ptr, out_ptr, n, m, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.program_id(0) * M + tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out_ptr + j * m + i, tl.load(x_ptr + i * n + j))


@tessera.jit
def order(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))


@tessera.jit
def running(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i), 0))


@tessera.jit
def ticket(x_ptr, out_ptr, counter_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    number = tl.atomic_add(counter_ptr, 1)
    tl.atomic_add(out_ptr + i % 64, tl.load(x_ptr + i) + number)


@tessera.jit
def bins(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, 64), tl.histogram(x, 64))


@tessera.jit
def pick(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.gather(tl.load(x_ptr + i), tl.load(index_ptr + i), 0))


@tessera.jit
def matmul(a_ptr, b_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, K, BK):
        a = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * N + j[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + i[:, None] * N + j[None, :], acc)


@tessera.jit
def product(a_ptr, b_ptr, out_ptr, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a = tl.load(a_ptr + i[:, None] * BK + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    tl.store(out_ptr + i[:, None] * N + j[None, :], tl.dot(a, b))


def build(kernel: Any, signature: str, blocks: int, **options: Any) -> tuple[Any, str]:
    compiled = tessera.compile(kernel, signature, target="sm_90a", num_ctas=blocks, **options)
    return compiled, compiled.stages["ptx"]


KERNELS = {
    "add": (add, "*fp32:16,*fp32:16,*fp32:16,i32:16,8192"),
    "a tile for few threads": (add, "*fp32:16,*fp32:16,*fp32:16,i32:16,16"),
    "softmax": (softmax, "*fp32:16,*fp32:16,i32:16,8192"),
    "rows": (rows, "*fp32:16,*fp32:16,i32:16,32,256"),
    "turn": (turn, "*fp32:16,*fp32:16,i32:16,i32:16,64,64"),
    "order": (order, "*i32:16,*i32:16,1024"),
    "running": (running, "*fp32:16,*fp32:16,2048"),
    "ticket": (ticket, "*i32:16,*i32:16,*i32:16,256"),
    "bins": (bins, "*i32:16,*i32:16,1024"),
    "pick": (pick, "*fp32:16,*i32:16,*fp32:16,1024"),
    "wgmma": (matmul, "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,128,128,64"),
    "mma": (matmul, "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,32,32,32"),
    "multiply-add": (matmul, "*fp32:16,*fp32:16,*fp32:16,i32:16,i32:16,16,8,4"),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("blocks", (2, 4, 8))
def test_every_kernel_compiles(name: str, blocks: int) -> None:
    kernel, signature = KERNELS[name]
    compiled, ptx = build(kernel, signature, blocks)
    assert f".reqnctapercluster {blocks}, 1, 1" in ptx
    assert compiled.metadata.cluster_dims == (blocks, 1, 1)
    # Blocks which load from another one's memory meet before and after.
    remote = ptx.count("mapa.") > 0
    assert not remote or ptx.count("barrier.cluster.wait") >= 2


def test_one_block_is_no_cluster() -> None:
    kernel, signature = KERNELS["softmax"]
    compiled, ptx = build(kernel, signature, 1)
    assert all(word not in ptx for word in ("barrier.cluster", "clusterid", "percluster"))
    assert compiled.metadata.cluster_dims == (1, 1, 1)


def test_blocks_share_the_elements_of_a_tile() -> None:
    counts = {}
    for blocks in (1, 2, 4):
        _, ptx = build(*KERNELS["add"], blocks)
        counts[blocks] = ptx.count("ld.global")
        assert "barrier" not in ptx
    assert counts[1] == 2 * counts[2] == 4 * counts[4]


def test_rows_are_folded_within_blocks_and_one_row_across_them() -> None:
    assert "barrier.cluster" not in build(*KERNELS["rows"], 4)[1]
    # A maximum and a sum: each once through the memory of other blocks.
    _, ptx = build(*KERNELS["softmax"], 4)
    assert ptx.count("mapa.") == 2 and ptx.count("barrier.cluster.arrive") == 4


def test_a_long_row_fits_the_registers_of_several_blocks() -> None:
    signature = "*fp32:16,*fp32:16,i32:16,131072"
    # With a limit the compiler does not take more warps by itself.
    one, _ = build(softmax, signature, 1, num_warps=16, maxnreg=128)
    four, _ = build(softmax, signature, 4, num_warps=16, maxnreg=128)
    assert one.metadata["spill_bytes"] > 0 and four.metadata["spill_bytes"] == 0


def test_dots_are_shared_by_rows() -> None:
    for tile, instruction in (("128,128,64", "wgmma.mma_async"), ("32,32,32", "mma.sync")):
        signature = f"*fp16:16,*fp16:16,*fp32:16,i32:16,{tile}"
        one = build(product, signature, 1)[1].count(instruction)
        assert one == 2 * build(product, signature, 2)[1].count(instruction) > 0


def test_sums_of_dots_are_divided() -> None:
    # Tiles of 32x32 are two parts, each of two blocks. These begin with the same block, which may
    # be another one; blocks with parts of their own begin with theirs, without asking where it is.
    for name, instruction, others in (("wgmma", "wgmma.mma_async", 3), ("mma", "mma.sync", 4)):
        one, four = (build(*KERNELS[name], blocks)[1] for blocks in (1, 4))
        # Each block multiplies whole tiles, and adds what four have; they meet before and after.
        assert one.count(instruction) == four.count(instruction) > 0
        assert four.count("mapa.") == others and four.count("barrier.cluster.arrive") == 2
        assert ("cp.async.bulk.tensor" in four) == ("cp.async.bulk.tensor" in one)


def test_gpus_without_clusters_are_refused() -> None:
    with pytest.raises(LaunchError, match="num_ctas is 2, and sm_80 has no clusters") as caught:
        tessera.compile(*KERNELS["add"], target="sm_80", num_ctas=2)
    assert caught.value.id == "E053"


def test_cpus_take_no_notice() -> None:
    kernel, signature = KERNELS["add"]
    one = tessera.compile(kernel, signature, target="cpu")
    two = tessera.compile(kernel, signature, target="cpu", num_ctas=2)
    assert one.stages["asm"] == two.stages["asm"]
