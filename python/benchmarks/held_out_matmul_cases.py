# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of held_out_matmul_kernels.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from public_kernels_cases import PROGRAMS, Buffers, Maker, Parts, Results, cases, cdiv, words

F32, BF16, I8 = torch.float32, torch.bfloat16, torch.int8


def bytes_of(at: Maker, *shape: int) -> torch.Tensor:
    """Random numbers of int8."""
    return torch.randint(-127, 128, shape, device=at.device, dtype=torch.int8)


def positive(at: Maker, *shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    """Scales about 1/100."""
    return (torch.rand(shape, device=at.device) * 0.01 + 0.005).to(dtype)


@cases("flat matmul", [(2816, 2560, 2048), (4096, 4096, 1536)], (70, 96, 80))
def persist_halves(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 256, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {"a": at.random(m, k), "b": at.random(n, k), "c": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["c"], m, n, k, k, k, n, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP_M=8,
            NUM_SMS=grid, num_warps=8, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float() @ s["b"].float().T}

    return make, launch, want, 6e-2


@cases("flat matmul", [(2560, 3072, 2048), (2048, 2048, 4096)], (70, 90, 80))
def flat_countdown(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "x": at.random(m, k, dtype=BF16), "w": at.random(k, n, dtype=BF16),
            "bias": at.random(n, dtype=BF16), "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["x"], s["w"], s["bias"], s["y"], m, n, k, BM=bm, BN=bn, BK=bk, PROGRAMS=grid,
            num_warps=4, num_stages=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"y": s["x"].float() @ s["w"].float() + s["bias"].float()}

    return make, launch, want, 6e-2


@cases("flat matmul", [(16, 1024, 1024, 768), (40, 512, 768, 512)], (3, 40, 50, 72))
def while_batch_gelu(at: Maker, batch: int, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 4), batch * cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "a": at.random(batch, m, k) * 0.1, "b": at.random(batch, k, n), "c": at.empty(batch, m, n)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["c"], batch, m, n, k, m * k, k * n, m * n, BM=bm, BN=bn, BK=bk,
            num_warps=8, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        product = s["a"].float() @ s["b"].float()
        return {"c": torch.nn.functional.gelu(product, approximate="tanh")}

    return make, launch, want, 2e-2


@cases("gated matmul", [(2048, 3584, 2048), (1024, 5632, 4096)], (70, 90, 80))
def flat_swiglu(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "x": at.random(m, k, dtype=BF16) * 0.1, "gate": at.random(n, k, dtype=BF16),
            "up": at.random(n, k, dtype=BF16), "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["x"], s["gate"], s["up"], s["y"], m, n, k, k, k, n, BM=bm, BN=bn, BK=bk, GROUP=8,
            SMS=grid, num_warps=8, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, gate, up = (s[name].float() for name in ("x", "gate", "up"))
        return {"y": torch.nn.functional.silu(x @ gate.T) * (x @ up.T)}

    return make, launch, want, 2e-2


@cases("gated matmul", [(4096, 2816, 2048), (256, 5504, 2048)], (70, 90, 80))
def dual_swiglu(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 32), (32, 32, 32))

    def make() -> Buffers:
        return {"x": at.random(m, k) * 0.1, "w": at.random(2 * n, k), "y": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn), cdiv(m, bm))](
            s["x"], s["w"], s["y"], m, n, k, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, num_warps=8,
            num_stages=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        gate, up = (s["x"].float() @ s["w"].float().T).split(n, 1)
        return {"y": torch.nn.functional.silu(gate) * up}

    return make, launch, want, 2e-2


@cases("quantised matmul", [(4096, 4096, 4096), (512, 3072, 2048)], (40, 50, 96))
def int8_scaled(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 128), (32, 32, 32))

    def make() -> Buffers:
        return {
            "a": bytes_of(at, m, k), "b": bytes_of(at, n, k), "sa": positive(at, m),
            "sb": positive(at, n), "bias": at.random(n, dtype=BF16), "c": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm) * cdiv(n, bn),)](
            s["a"], s["b"], s["c"], s["sa"], s["sb"], s["bias"], m, n, k, BLOCK_M=bm, BLOCK_N=bn,
            BLOCK_K=bk, GROUP_M=8, num_warps=8, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        # Exact in float64: the products are below 2^53.
        product = (s["a"].double() @ s["b"].double().T).float()
        return {"c": product * s["sa"][:, None] * s["sb"] + s["bias"].float()}

    return make, launch, want, 1e-2


@cases("quantised matmul", [(1024, 4096, 4096), (16, 8192, 2048)], (40, 50, 96))
def weight_int8(at: Maker, m: int, n: int, k: int) -> Parts:
    bm = at.size(128 if m > 64 else 16, 16)
    bn, bk = at.size((128, 64), (32, 32))

    def make() -> Buffers:
        return {
            "x": at.random(m, k, dtype=BF16), "w": bytes_of(at, n, k), "scale": positive(at, n),
            "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["x"], s["w"], s["scale"], s["y"], m, n, k, BM=bm, BN=bn, BK=bk, num_warps=4,
            num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"y": s["x"].float() @ s["w"].float().T * s["scale"]}

    return make, launch, want, 2e-2


@cases("quantised matmul", [(16, 4096, 4096, 128), (64, 11008, 4096, 128)], (5, 64, 128, 32))
def int4_interleaved(at: Maker, m: int, n: int, k: int, group: int) -> Parts:
    bm, bn, bk = at.size((16 if m <= 16 else 64, 64, 32), (16, 32, 32))
    split = at.size(8, 2)
    # The place of each column of eight within a word.
    order = [0, 4, 1, 5, 2, 6, 3, 7]

    def make() -> Buffers:
        return {
            "x": at.random(m, k), "qw": words(at, k, n // 8), "qz": words(at, k // group, n // 8),
            "scales": positive(at, k // group, n, dtype=torch.float16),
            "y": torch.zeros((m, n), device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm) * cdiv(n, bn), split)](
            s["x"], s["qw"], s["qz"], s["scales"], s["y"], m, n, k, GROUP=group, BLOCK_M=bm,
            BLOCK_N=bn, BLOCK_K=bk, SPLIT_K=split, num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        shifts = torch.tensor(order, device=at.device) * 4
        q, z = (((s[name][..., None] >> shifts) & 15).flatten(1) for name in ("qw", "qz"))
        scales = s["scales"].float().repeat_interleave(group, 0)
        w = (q - z.repeat_interleave(group, 0)) * scales
        return {"y": s["y"] + s["x"].float() @ w.half().float()}

    return make, launch, want, 2e-2


@cases("matrix by vector", [(8192, 8192), (1024, 4096)], (13, 100))
def matvec_rows(at: Maker, n: int, k: int) -> Parts:
    bn, bk = at.size((8, 512), (4, 32))

    def make() -> Buffers:
        return {"w": at.random(n, k), "x": at.random(k), "y": at.empty(n, dtype=F32)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn),)](
            s["w"], s["x"], s["y"], n, k, k, BLOCK_N=bn, BLOCK_K=bk, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": s["w"].float() @ s["x"].float()}

    return make, launch, want, 1e-3


@cases("ragged matmul", [(64, 512, 512, 256), (256, 60, 256, 128)], (3, 20, 50, 40))
def jagged_product(at: Maker, batch: int, longest: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((64, 128, 32), (16, 32, 32))
    lengths = [longest - 37 * i % longest for i in range(batch)]
    starts = torch.tensor([0, *lengths]).cumsum(0).int()

    def make() -> Buffers:
        total = int(starts[-1])
        return {
            "starts": starts.to(at.device), "x": at.random(total, k, dtype=BF16),
            "w": at.random(batch, k, n, dtype=BF16), "bias": at.random(batch, n, dtype=BF16),
            "y": at.empty(total, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(longest, bm) * cdiv(n, bn), batch)](
            s["starts"], s["x"], s["w"], s["bias"], s["y"], n, k, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk,
            num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        parts = s["x"].float().split(lengths)
        outs = [x @ w + b for x, w, b in zip(parts, s["w"].float(), s["bias"].float())]
        return {"y": torch.cat(outs)}

    return make, launch, want, 2e-2


@cases("ragged matmul", [(2048, 8, 2, 1408, 2048), (64, 32, 4, 768, 2048)], (20, 3, 2, 32, 64))
def expert_gate_up(at: Maker, tokens: int, experts: int, top: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128 if tokens > 256 else 16, 128, 64), (16, 16, 32))
    valid = tokens * top

    def make() -> Buffers:
        chosen = torch.stack([torch.randperm(experts)[:top] for _ in range(tokens)]).flatten()
        order, blocks = [], []
        for expert in range(experts):
            own = (chosen == expert).nonzero().flatten()
            padded = cdiv(len(own), bm) * bm
            order.append(torch.cat([own, torch.full((padded - len(own),), valid)]))
            blocks += [expert] * (padded // bm)
        # As many blocks as any choice may need; those beyond have no expert.
        count = cdiv(valid, bm) + experts
        order.append(torch.full((count * bm - sum(map(len, order)),), valid))
        blocks += [-1] * (count - len(blocks))
        return {
            "x": at.random(tokens, k, dtype=BF16) * 0.1,
            "w": at.random(experts, 2 * n, k, dtype=BF16), "y": at.empty(valid, n, dtype=BF16),
            "order": torch.cat(order).int().to(at.device),
            "experts": torch.tensor(blocks, dtype=torch.int32).to(at.device),
            "chosen": chosen.to(at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn), len(s["experts"]))](
            s["x"], s["w"], s["y"], s["order"], s["experts"], valid, n, k, TOP=top, BLOCK_M=bm,
            BLOCK_N=bn, BLOCK_K=bk, num_warps=at.size(8 if bm > 64 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out = torch.empty(valid, n, device=at.device)
        x = s["x"].float().repeat_interleave(top, 0)
        for expert in range(experts):
            own = s["chosen"] == expert
            gate, up = (x[own] @ s["w"][expert].float().T).split(n, 1)
            out[own] = torch.nn.functional.silu(gate) * up
        return {"y": out}

    return make, launch, want, 2e-2


@cases("small products", [(16384, 32, 32, 32), (8192, 60, 48, 64)], (5, 20, 24, 28))
def small_products(at: Maker, batch: int, m: int, n: int, k: int) -> Parts:
    size, each = at.size((32 if m <= 32 else 64, 4), (32, 2))

    def make() -> Buffers:
        return {
            "a": at.random(batch, m, k), "b": at.random(batch, k, n), "c": at.empty(batch, m, n)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(batch, each),)](
            s["a"], s["b"], s["c"], batch, m, n, k, S=size, EACH=each, num_warps=at.size(2, 4)
        )

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float() @ s["b"].float()}

    return make, launch, want, 2e-2


@cases("mirrored matmul", [(4096, 2048), (1000, 4096)], (70, 80))
def mirrored_product(at: Maker, m: int, k: int) -> Parts:
    block, bk = at.size((128, 64), (32, 32))

    def make() -> Buffers:
        return {"x": at.random(m, k, dtype=BF16), "y": at.empty(m, m, dtype=BF16)}

    def launch(kernel: Any, s: Buffers) -> Any:
        grid = (cdiv(m, block), cdiv(m, block))
        return kernel[grid](
            s["x"], s["y"], m, k, 0.25, BLOCK=block, BLOCK_K=bk, num_warps=8, num_stages=3
        )

    def want(s: Buffers) -> Results:
        return {"y": s["x"].float() @ s["x"].float().T * 0.25}

    return make, launch, want, 2e-2


@cases("low rank", [(4096, 4096, 2048, 16), (512, 8192, 4096, 64)], (40, 50, 70, 16))
def lowrank_add(at: Maker, m: int, n: int, k: int, rank: int) -> Parts:
    bm, bn, bk = at.size((64, 128, 64), (16, 32, 32))

    def make() -> Buffers:
        return {
            "x": at.random(m, k) * 0.1, "a": at.random(rank, k), "b": at.random(n, rank),
            "y": at.random(m, n),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](
            s["x"], s["a"], s["b"], s["y"], m, n, k, 0.1, R=rank, BM=bm, BN=bn, BK=bk, num_warps=4,
            num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        low = (s["x"].float() @ s["a"].float().T * 0.1).half().float()
        return {"y": s["y"].float() + low @ s["b"].float().T}

    return make, launch, want, 2e-2


@cases("sparse", [(256, 256, 24, 2048), (64, 64, 6, 512)], (5, 6, 2, 40))
def block_sparse(at: Maker, rows: int, columns: int, average: int, n: int) -> Parts:
    bm, bk, bn = at.size((64, 64, 128), (16, 16, 32))

    def make() -> Buffers:
        counts = [min(columns, 2 * average * i // rows) for i in range(rows)]
        starts = torch.tensor([0, *counts]).cumsum(0).int()
        col = torch.cat([torch.randperm(columns)[:count] for count in counts]).int()
        return {
            "crow": starts.to(at.device), "col": col.to(at.device),
            "values": at.random(len(col), bm, bk), "dense": at.random(columns * bk, n),
            "out": at.empty(rows * bm, n),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(rows, cdiv(n, bn))](
            s["crow"], s["col"], s["values"], s["dense"], s["out"], n, BM=bm, BK=bk, BN=bn,
            num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        dense = s["dense"].float().reshape(columns, bk, n)
        row = torch.repeat_interleave(torch.arange(rows, device=at.device), s["crow"].long().diff())
        out = torch.zeros(rows, bm, n, device=at.device)
        parts = zip(row.split(256), s["col"].long().split(256), s["values"].float().split(256))
        for own, col, values in parts:
            out.index_add_(0, own, values @ dense[col])
        return {"out": out.reshape(rows * bm, n)}

    return make, launch, want, math.sqrt(average) * 1e-2


@cases("gradients", [(8192, 2048, 2048), (4096, 768, 1024)], (90, 40, 50))
def weight_gradient(at: Maker, tokens: int, m: int, n: int) -> Parts:
    bm, bn, bt = at.size((128, 128, 64), (32, 32, 32))

    def make() -> Buffers:
        return {
            "x": at.random(tokens, m, dtype=BF16), "dy": at.random(tokens, n, dtype=BF16),
            "dw": at.empty(m, n, dtype=F32), "db": at.empty(n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["x"], s["dy"], s["dw"], s["db"], tokens, m, n, BLOCK_M=bm, BLOCK_N=bn, BLOCK_T=bt,
            num_warps=8, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"dw": s["x"].float().T @ s["dy"].float(), "db": s["dy"].float().sum(0)}

    return make, launch, want, 1e-2
