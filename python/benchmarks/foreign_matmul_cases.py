# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of foreign_matmul_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import PROGRAMS, Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn
I32, I64 = torch.int32, torch.int64


@cases("flat matmul", [(2944, 2560, 2048), (448, 512, 512)], (70, 96, 80))
def flat_pointers(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 256, 64) if m > 1024 else (64, 64, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {"a": at.random(m, k), "b": at.random(k, n), "c": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk, PROGRAMS=grid,
            num_warps=at.size(8 if m > 1024 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float() @ s["b"].float()}

    return make, launch, want, 6e-2


@cases("flat matmul", [(3584, 2304, 1024), (512, 384, 512)], (70, 96, 80))
def persist_residual(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 1024 else (64, 64, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "a": at.random(m, k, dtype=BF16), "b": at.random(n, k, dtype=BF16),
            "r": at.random(m, n, dtype=BF16) * 8, "c": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["r"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk, GROUP=6, num_warps=4,
            num_stages=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": s["r"].float() + s["a"].float() @ s["b"].float().T}

    return make, launch, want, 6e-2


@cases("flat matmul", [(2176, 3584, 1536), (384, 640, 512)], (70, 96, 80))
def while_in_while(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 1024 else (64, 64, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "a": at.random(m, k), "b": at.random(k, n), "bias": at.random(n) * 4,
            "c": at.empty(m, n),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["bias"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk,
            num_warps=at.size(8 if m > 1024 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        y = s["a"].float() @ s["b"].float() + s["bias"].float()
        return {"c": torch.nn.functional.leaky_relu(y, 0.01)}

    return make, launch, want, 6e-2


@cases("cross entropy", [(1024, 32000, 1024, 16), (32, 8192, 512, 64)], (40, 200, 64, 3))
def product_argmax(at: Maker, m: int, v: int, k: int, parts: int) -> Parts:
    bm, bv, bk = at.size((128, 128, 64) if m > 256 else (32, 64, 64), (16, 32, 32))

    def make() -> Buffers:
        # Small integers: products are exact, and the first of equal ones must win.
        return {
            "x": (at.integers(5, m, k) - 2).to(BF16), "w": (at.integers(5, v, k) - 2).to(BF16),
            "top": at.empty(parts, m, dtype=F32), "at": at.empty(parts, m, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), parts)](
            s["x"], s["w"], s["top"], s["at"], m, v, k, parts, BM=bm, BV=bv, BK=bk,
            num_warps=at.size(8 if m > 256 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        logits = s["x"].float() @ s["w"].float().T
        words = torch.arange(v, device=at.device)
        top, places = [], []
        for part in range(parts):
            mine = torch.where(words // bv % parts == part, logits, float("-inf"))
            top.append(mine.amax(1))
            places.append(torch.where(mine == top[-1][:, None], words, v).amin(1))
        return {"top": torch.stack(top), "at": torch.stack(places)}

    return make, launch, want, 0.0


@cases("split matmul", [(256, 2048, 8192, 8), (64, 512, 4096, 16)], (40, 48, 160, 3))
def splitk_last(at: Maker, m: int, n: int, k: int, splits: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 64 else (64, 64, 64), (32, 32, 32))
    each = cdiv(cdiv(k, splits), bk) * bk
    tiles = cdiv(m, bm) * cdiv(n, bn)

    def make() -> Buffers:
        return {
            "a": at.random(m, k, dtype=BF16), "b": at.random(n, k, dtype=BF16),
            "part": at.empty(splits, m, n, dtype=F32),
            "count": torch.zeros(tiles, device=at.device, dtype=I32),
            "c": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tiles, splits)](
            *(s[name] for name in ("a", "b", "part", "count", "c")), m, n, k, each, SPLITS=splits,
            BM=bm, BN=bn, BK=bk, num_warps=at.size(8 if m > 64 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float() @ s["b"].float().T, "count": s["count"]}

    return make, launch, want, 6e-2


@cases("experts", [(32, 2048, 8, 2048, 768), (8, 64, 2, 512, 512)], (4, 20, 2, 48, 40))
def expert_down_atomic(at: Maker, experts: int, tokens: int, top: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if tokens > 256 else (16, 64, 64), (16, 16, 32))
    slots = tokens * top
    most = cdiv(slots, bm) + experts

    def make() -> Buffers:
        # Slots in the order of their experts; each expert's list is filled up to whole tiles.
        chosen = torch.rand(tokens, experts).topk(top, 1).indices.flatten()
        listed = torch.full((most * bm,), slots, dtype=I32)
        owner = torch.zeros(most, dtype=I32)
        place = 0
        for expert in range(experts):
            mine = (chosen == expert).nonzero()[:, 0]
            listed[place : place + len(mine)] = mine.int()
            used = cdiv(len(mine), bm)
            owner[place // bm : place // bm + used] = expert
            place += used * bm
        return {
            "h": at.random(slots, k, dtype=BF16), "w": at.random(experts, n, k, dtype=BF16),
            "weight": torch.rand(slots, device=at.device), "listed": listed.to(at.device),
            "owner": owner.to(at.device), "chosen": chosen.to(at.device),
            "total": torch.tensor([place], dtype=I32, device=at.device),
            "y": torch.zeros(tokens, n, device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("h", "w", "weight", "listed", "owner", "total", "y")
        return kernel[(most, cdiv(n, bn))](
            *(s[name] for name in names), slots, n, k, TOP=top, BM=bm, BN=bn, BK=bk,
            num_warps=at.size(8 if tokens > 256 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        rows = torch.zeros(slots, n, device=at.device)
        for expert in range(experts):
            mine = s["chosen"] == expert
            rows[mine] = s["h"][mine].float() @ s["w"][expert].float().T
        return {"y": (rows * s["weight"][:, None]).reshape(tokens, top, n).sum(1)}

    return make, launch, want, 1e-2


@cases("lora", [(1024, 4096, 16, 32, 2), (32, 4096, 16, 8, 4)], (5, 100, 16, 3, 2))
def bgmv_shrink(at: Maker, tokens: int, k: int, rank: int, adapters: int, parts: int) -> Parts:
    bk = at.size(256, 32)
    each = cdiv(cdiv(k, parts), bk) * bk

    def make() -> Buffers:
        return {
            "x": at.random(tokens, k), "w": at.random(adapters, rank, k),
            "adapter": at.integers(adapters + 1, tokens, dtype=I64) - 1,
            "y": torch.zeros(tokens, rank, device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, parts)](
            s["x"], s["w"], s["adapter"], s["y"], k, each, 0.5, R=rank, BK=bk, num_warps=4
        )

    def want(s: Buffers) -> Results:
        y = torch.zeros(tokens, rank, device=at.device)
        for i in range(adapters):
            mine = s["adapter"] == i
            y[mine] = s["x"][mine].float() @ s["w"][i].float().T * 0.5
        return {"y": y}

    return make, launch, want, 1e-2


@cases("lora", [(1024, 4096, 32, 32), (32, 4096, 32, 8)], (5, 100, 16, 3))
def bgmv_expand(at: Maker, tokens: int, n: int, rank: int, adapters: int) -> Parts:
    bn, tiles = at.size((128, 8) if tokens > 256 else (128, 2), (16, 2))

    def make() -> Buffers:
        return {
            "x": at.random(tokens, rank, dtype=F32), "w": at.random(adapters, n, rank, dtype=BF16),
            "adapter": at.integers(adapters + 1, tokens, dtype=I64) - 1,
            "y": at.random(tokens, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn * tiles), tokens)](
            s["x"], s["w"], s["adapter"], s["y"], n, R=rank, BN=bn, TILES=tiles, num_warps=4
        )

    def want(s: Buffers) -> Results:
        y = s["y"].float()
        for i in range(adapters):
            mine = s["adapter"] == i
            y[mine] += s["x"][mine] @ s["w"][i].float().T
        return {"y": y}

    return make, launch, want, 1e-2


@cases("low rank", [(4096, 4096, 4096, 64, 4), (128, 2048, 1024, 32, 8)], (40, 100, 80, 16, 2))
def lowrank_panels(at: Maker, m: int, n: int, k: int, rank: int, parts: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 1024 else (32, 128, 64), (16, 32, 32))
    each = cdiv(cdiv(n, parts), bn) * bn

    def make() -> Buffers:
        return {
            "x": at.random(m, k, dtype=BF16), "a": at.random(k, rank, dtype=BF16) * 0.05,
            "b": at.random(rank, n, dtype=BF16), "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), parts)](
            s["x"], s["a"], s["b"], s["y"], m, n, k, each, R=rank, BM=bm, BN=bn, BK=bk, num_warps=4,
            num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        low = (s["x"].float() @ s["a"].float()).to(BF16)
        return {"y": low.float() @ s["b"].float()}

    return make, launch, want, 2e-2


@cases("small weights", [(2048, 4096, 4096), (256, 512, 1024)], (40, 48, 96))
def fp8_row_scale(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 128) if m > 1024 else (64, 64, 128), (32, 32, 32))

    def make() -> Buffers:
        return {
            "a": at.random(m, k, dtype=F32).to(FP8), "b": at.random(n, k, dtype=F32).to(FP8),
            "a_scale": torch.rand(m, device=at.device) + 0.5,
            "b_scale": torch.rand(n, device=at.device) + 0.5, "bias": at.random(n, dtype=BF16),
            "c": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("a", "b", "a_scale", "b_scale", "bias", "c")
        return kernel[(cdiv(m, bm) * cdiv(n, bn),)](
            *(s[name] for name in names), m, n, k, k, k, n, BM=bm, BN=bn, BK=bk, GROUP=8,
            num_warps=at.size(8 if m > 1024 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        y = s["a"].float() @ s["b"].float().T
        return {"c": y * s["a_scale"][:, None] * s["b_scale"] + s["bias"].float()}

    return make, launch, want, 2e-2


@cases("small weights", [(512, 4096, 4096), (16, 2048, 2048)], (20, 48, 96))
def nf4_linear(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((64, 64, 64) if m > 64 else (16, 32, 64), (16, 16, 32))

    def make() -> Buffers:
        return {
            "x": at.random(m, k, dtype=BF16),
            "packed": at.integers(256, n, k // 2).to(torch.uint8),
            "table": torch.linspace(-1, 1, 16, device=at.device) ** 3,
            "absmax": torch.rand((n, k // bk), device=at.device) + 0.5,
            "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            *(s[name] for name in ("x", "packed", "table", "absmax", "y")), m, n, k, BM=bm, BN=bn,
            BK=bk, num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        packed = s["packed"].long()
        codes = torch.stack([packed & 15, packed >> 4], 2).reshape(n, k)
        w = (s["table"][codes] * s["absmax"].repeat_interleave(bk, 1)).to(BF16)
        return {"y": s["x"].float() @ w.float().T}

    return make, launch, want, 2e-2


@cases("short products", [(16384, 64, 64), (512, 16, 32)], (40, 3, 16))
def block_diagonal(at: Maker, m: int, groups: int, d: int) -> Parts:
    bm = at.size(128 if m > 1024 else 32, 16)

    def make() -> Buffers:
        return {
            "x": at.random(m, groups * d), "w": at.random(groups, d, d) * 0.1,
            "bias": at.random(groups, d), "y": at.empty(m, groups * d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), groups)](
            s["x"], s["w"], s["bias"], s["y"], m, groups, D=d, BM=bm, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float().reshape(m, groups, d)
        y = torch.einsum("mgd,gde->mge", x, s["w"].float()) + s["bias"].float()
        return {"y": torch.nn.functional.silu(y).reshape(m, groups * d)}

    return make, launch, want, 1e-2


@cases("matrix by vector", [(14336, 4096), (1024, 2048)], (70, 100))
def matvec_lanes(at: Maker, n: int, k: int) -> Parts:
    bn, bk = at.size((8, 512) if n > 4096 else (4, 512), (8, 32))

    def make() -> Buffers:
        return {
            "w": at.random(n, k, dtype=BF16), "x": at.random(k, dtype=BF16),
            "r": at.random(n, dtype=BF16), "y": at.empty(n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn),)](
            s["w"], s["x"], s["r"], s["y"], n, k, BN=bn, BK=bk, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": s["w"].float() @ s["x"].float() + s["r"].float()}

    return make, launch, want, 1e-2


@cases("sparse blocks", [(64, 16, 128, 1024), (16, 4, 64, 24)], (5, 2, 32, 7))
def sddmm_blocks(at: Maker, blocks: int, heads: int, k: int, count: int) -> Parts:
    b, bk = at.size((64, 64), (16, 16))

    def make() -> Buffers:
        return {
            "a": at.random(blocks * b, heads, k), "b": at.random(blocks * b, heads, k),
            "row": at.integers(blocks, count), "col": at.integers(blocks, count),
            "out": at.empty(heads, count, b, b),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(count, heads)](
            *(s[name] for name in ("a", "b", "row", "col", "out")), k**-0.5, K=k, B=b, BK=bk,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        left = s["a"].float().reshape(blocks, b, heads, k)[s["row"].long()]
        right = s["b"].float().reshape(blocks, b, heads, k)[s["col"].long()]
        return {"out": torch.einsum("imhk,inhk->himn", left, right) * k**-0.5}

    return make, launch, want, 1e-2


@cases("convolutions", [(8, 4096, 512, 512, 5), (2, 256, 128, 256, 3)], (2, 37, 40, 48, 3))
def conv_taps(at: Maker, batch: int, t: int, c: int, o: int, taps: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if t > 1024 else (32, 64, 64), (16, 16, 32))
    dilation = 2

    def make() -> Buffers:
        return {
            "x": at.random(batch, t, c, dtype=BF16), "w": at.random(taps, c, o, dtype=BF16),
            "bias": at.random(o, dtype=BF16), "y": at.empty(batch, t, o, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), cdiv(o, bn), batch)](
            s["x"], s["w"], s["bias"], s["y"], t, c, o, TAPS=taps, DILATION=dilation, BM=bm, BN=bn,
            BK=bk, num_warps=at.size(8 if t > 1024 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, w = s["x"].float(), s["w"].float()
        y = s["bias"].float().expand(batch, t, o).clone()
        for tap in range(taps):
            shift = (tap - taps // 2) * dilation
            first, last = max(0, -shift), min(t, t - shift)
            y[:, first:last] += x[:, first + shift : last + shift] @ w[tap]
        return {"y": y}

    return make, launch, want, 2e-2


@cases("cross entropy", [(2048, 32000, 1024), (64, 4096, 512)], (20, 100, 48))
def logit_grad(at: Maker, m: int, v: int, k: int) -> Parts:
    bm, bv, bk = at.size((128, 128, 64) if m > 256 else (64, 64, 64), (16, 32, 16))

    def make() -> Buffers:
        x, w = at.random(m, k, dtype=BF16), at.random(v, k, dtype=BF16) * 0.1
        labels = at.integers(v, m, dtype=I64)
        return {
            "x": x, "w": w, "lse": (x.float() @ w.float().T).logsumexp(1),
            "labels": torch.where(at.integers(4, m) == 0, -100, labels),
            "loss_grad": torch.rand(m, device=at.device), "grad": at.empty(m, v, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("x", "w", "lse", "labels", "loss_grad", "grad")
        return kernel[(cdiv(m, bm), cdiv(v, bv))](
            *(s[name] for name in names), m, v, k, IGNORE=-100, BM=bm, BV=bv, BK=bk,
            num_warps=at.size(8 if m > 256 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        logits = s["x"].float() @ s["w"].float().T
        grad = torch.exp(logits - s["lse"][:, None])
        live = s["labels"] != -100
        grad[live, s["labels"][live]] -= 1
        return {"grad": grad * torch.where(live, s["loss_grad"], 0.0)[:, None]}

    return make, launch, want, 1e-2
