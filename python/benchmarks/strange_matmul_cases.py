# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of strange_matmul_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import PROGRAMS, Buffers, Maker, Parts, Results, cases, cdiv, words

F32, BF16, FP8, I32 = torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int32
NAMES = ("queries", "keys", "values")


def counted_starts(at: Maker, parts: int, total: int) -> torch.Tensor:
    """Where parts of a list begin, the first of which is empty."""
    cuts = torch.randint(0, total + 1, (parts - 2,)).sort().values
    return torch.cat([torch.tensor([0, 0]), cuts, torch.tensor([total])]).int().to(at.device)


@cases("matmul", [(3072, 2048, 2048), (256, 512, 512)], (64, 96, 80))
def addmm_hints(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 1024 else (64, 64, 64), (32, 32, 32))

    def make() -> Buffers:
        return {
            "a": at.random(m, k), "b": at.random(k, n), "c": at.random(m, n), "d": at.empty(m, n)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm) * cdiv(n, bn),)](
            s["a"], s["b"], s["c"], s["d"], m, n, k, 0.5, 2.0, BM=bm, BN=bn, BK=bk, GROUP=8,
            num_warps=4, num_stages=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"d": 0.5 * (s["a"].float() @ s["b"].float()) + 2.0 * s["c"].float()}

    return make, launch, want, 6e-2


@cases("flat matmul", [(2560, 3072, 1536), (512, 512, 1024)], (70, 96, 80))
def persist_dynamic(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 1024 else (64, 64, 64), (32, 32, 32))
    grid = min(at.size(2 * PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "a": at.random(m, k), "b": at.random(n, k), "c": at.empty(m, n),
            "next": torch.zeros(2, device=at.device, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["c"], s["next"], m, n, k, BM=bm, BN=bn, BK=bk, num_warps=4,
            num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float() @ s["b"].float().T, "next": s["next"]}

    return make, launch, want, 6e-2


@cases("flat matmul", [(2048, 4096, 2048), (512, 768, 512)], (70, 96, 80))
def persist_ranges(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 1024 else (64, 64, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "a": at.random(k, m, dtype=BF16), "b": at.random(k, n, dtype=BF16),
            "c": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk, num_warps=8, num_stages=3
        )

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float().T @ s["b"].float()}

    return make, launch, want, 6e-2


@cases("flat matmul", [(2432, 3072, 2048), (384, 512, 768)], (70, 96, 80))
def flat_elements_k(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 1024 else (64, 64, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "a": at.random(m, k), "b": at.random(n, k), "bias": at.random(n), "c": at.empty(m, n)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["bias"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk, PROGRAMS=grid,
            num_warps=8, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": torch.relu(s["a"].float() @ s["b"].float().T + s["bias"].float())}

    return make, launch, want, 6e-2


@cases("experts", [(16, 8192, 2048, 1024), (8, 128, 512, 512)], (4, 50, 48, 64))
def moe_search(at: Maker, experts: int, tokens: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if tokens > 1024 else (16, 64, 128), (16, 16, 32))

    def make() -> Buffers:
        starts = counted_starts(at, experts, tokens)
        tiles = (starts.diff() + bm - 1) // bm
        return {
            "x": at.random(tokens, k, dtype=BF16), "w": at.random(experts, k, n, dtype=BF16),
            "starts": starts, "ends": tiles.cumsum(0).int(), "y": at.empty(tokens, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn), cdiv(tokens, bm) + experts)](
            s["x"], s["w"], s["starts"], s["ends"], s["y"], n, k, experts, BM=bm, BN=bn, BK=bk,
            num_warps=at.size(8 if tokens > 1024 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        edges = s["starts"].tolist()
        parts = [
            s["x"][edges[e] : edges[e + 1]].float() @ s["w"][e].float() for e in range(experts)
        ]
        return {"y": torch.cat(parts)}

    return make, launch, want, 6e-2


@cases("experts", [(8, 8192, 1024, 2048), (4, 256, 256, 512)], (3, 40, 48, 32))
def expert_weight_grad(at: Maker, experts: int, tokens: int, n: int, k: int) -> Parts:
    bn, bk, bt = at.size((128, 128, 64) if tokens > 1024 else (64, 64, 32), (16, 16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(tokens, k, dtype=BF16), "dy": at.random(tokens, n, dtype=BF16),
            "starts": counted_starts(at, experts, tokens), "dw": at.empty(experts, k, n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(k, bk), cdiv(n, bn), experts)](
            s["x"], s["dy"], s["starts"], s["dw"], n, k, BN=bn, BK=bk, BT=bt,
            num_warps=at.size(8 if tokens > 1024 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        edges = s["starts"].tolist()
        x, dy = s["x"].float(), s["dy"].float()
        parts = [x[edges[e] : edges[e + 1]].T @ dy[edges[e] : edges[e + 1]] for e in range(experts)]
        return {"dw": torch.stack(parts)}

    return make, launch, want, 6e-2


@cases("two products", [(16384, 2048, 128), (256, 512, 64)], (40, 96, 16))
def mlp_inner(at: Maker, m: int, hidden: int, d: int) -> Parts:
    bm, bh = at.size((128, 64) if m > 1024 else (32, 64), (16, 32))

    def make() -> Buffers:
        return {
            "x": at.random(m, d), "w1": at.random(d, hidden) * 0.1, "b1": at.random(hidden),
            "w2": at.random(hidden, d) * 0.1, "y": at.empty(m, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](
            s["x"], s["w1"], s["b1"], s["w2"], s["y"], m, hidden, D=d, BM=bm, BH=bh,
            num_warps=at.size(8 if m > 1024 else 4, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        h = s["x"].float() @ s["w1"].float() + s["b1"].float()
        return {"y": (h * torch.sigmoid(1.702 * h)) @ s["w2"].float()}

    return make, launch, want, 2e-2


@cases("packed weights", [(16, 8192, 4096), (64, 512, 1024)], (10, 48, 64))
def fp8_weight_only(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((16, 64, 128) if m < 32 else (64, 32, 128), (16, 16, 32))

    def make() -> Buffers:
        return {
            "x": at.random(m, k, dtype=BF16), "w": at.random(n, k, dtype=FP8),
            "scale": torch.rand(n, device=at.device) + 0.5, "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(n // bn, cdiv(m, bm))](
            s["x"], s["w"], s["scale"], s["y"], m, n, k, BM=bm, BN=bn, BK=bk, num_warps=4,
            num_stages=at.size(4, 2),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"y": s["x"].float() @ s["w"].float().T * s["scale"]}

    return make, launch, want, 6e-2


@cases("packed weights", [(16, 8192, 4096), (32, 512, 1024)], (10, 48, 128))
def int2_groups(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk, group = at.size((16 if m < 32 else 32, 64, 64, 64), (16, 16, 32, 64))

    def make() -> Buffers:
        return {
            "x": at.random(m, k), "q": words(at, k // 16, n),
            "scale": (at.random(k // group, n) * 0.1), "zero": at.random(k // group, n),
            "y": at.empty(m, n),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(n // bn, cdiv(m, bm))](
            s["x"], s["q"], s["scale"], s["zero"], s["y"], m, n, k, GROUP=group, BM=bm, BN=bn,
            BK=bk, num_warps=4, num_stages=at.size(4, 2),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        shifts = (torch.arange(16, device=at.device) * 2)[None, :, None]
        codes = ((s["q"][:, None] >> shifts) & 3).reshape(k, n).half()
        zero, scale = (s[name].repeat_interleave(group, 0) for name in ("zero", "scale"))
        return {"y": s["x"].float() @ ((codes - zero) * scale).float()}

    return make, launch, want, 2e-2


@cases("few rows", [(8192, 8192), (768, 2048)], (80, 96))
def vecmat_columns(at: Maker, n: int, k: int) -> Parts:
    bn, bk = at.size((64, 64) if n > 1024 else (16, 128), (32, 32))

    def make() -> Buffers:
        return {"x": at.random(k), "w": at.random(k, n), "y": at.empty(n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn),)](s["x"], s["w"], s["y"], n, k, BN=bn, BK=bk, num_warps=4)

    def want(s: Buffers) -> Results:
        return {"y": s["x"].float() @ s["w"].float()}

    return make, launch, want, 2e-2


@cases("lora", [(4096, 4096, 32, 8), (128, 2048, 16, 4)], (40, 96, 16, 3))
def lora_expand_sorted(at: Maker, tokens: int, n: int, rank: int, adapters: int) -> Parts:
    bm, bn = at.size((32, 128), (16, 32))

    def make() -> Buffers:
        return {
            "x": at.random(tokens, rank, dtype=F32),
            "w": at.random(adapters, n, rank, dtype=BF16),
            "order": torch.randperm(tokens, device=at.device, dtype=I32),
            "starts": counted_starts(at, adapters, tokens), "y": at.random(tokens, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bm), cdiv(n, bn), adapters)](
            s["x"], s["w"], s["order"], s["starts"], s["y"], n, R=rank, BM=bm, BN=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        edges, y = s["starts"].tolist(), s["y"].float()
        for adapter in range(adapters):
            rows = s["order"][edges[adapter] : edges[adapter + 1]].long()
            y[rows] += s["x"][rows].to(BF16).float() @ s["w"][adapter].float().T
        return {"y": y}

    return make, launch, want, 2e-2


@cases("losses", [(4096, 32000, 1024), (128, 4096, 256)], (40, 100, 64))
def logit_lse(at: Maker, m: int, v: int, k: int) -> Parts:
    bm, bv, bk, splits = at.size(
        (128, 128, 64, 4) if m > 1024 else (64, 64, 64, 32), (16, 16, 32, 2)
    )
    each = cdiv(cdiv(v, splits), bv) * bv

    def make() -> Buffers:
        return {
            "x": at.random(m, k, dtype=BF16) * 0.1, "w": at.random(v, k, dtype=BF16),
            "labels": at.integers(v, m), "top": at.empty(splits, m, dtype=F32),
            "sum": at.empty(splits, m, dtype=F32), "picked": at.empty(splits, m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), splits)](
            s["x"], s["w"], s["labels"], s["top"], s["sum"], s["picked"], m, v, k, each, BM=bm,
            BV=bv, BK=bk, num_warps=at.size(8 if m > 1024 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        logits = s["x"].float() @ s["w"].float().T
        parts = logits.split(each, 1)
        tops = torch.stack([part.amax(1) for part in parts])
        sums = [(part - top[:, None]).exp().sum(1) for part, top in zip(parts, tops, strict=True)]
        label = s["labels"].long()
        index = torch.arange(splits, device=at.device)[:, None] == label[None] // each
        picked = logits.gather(1, label[:, None])[:, 0]
        return {
            "top": tops, "sum": torch.stack(sums), "picked": torch.where(index, picked[None], 0.0)
        }  # fmt: skip

    return make, launch, want, 2e-2


@cases("convolutions", [(8, 56, 128, 128), (1, 14, 64, 128)], (2, 5, 32, 48))
def conv_implicit(at: Maker, batch: int, size: int, c: int, o: int) -> Parts:
    bm, bn, bk = at.size((128, 64, 32) if batch > 1 else (32, 32, 64), (16, 16, 32))

    def make() -> Buffers:
        return {
            "x": at.random(batch, size, size, c), "w": at.random(3, 3, c, o) * 0.1,
            "y": at.empty(batch, size, size, o),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(batch * size * size, bm), cdiv(o, bn))](
            s["x"], s["w"], s["y"], batch, size, size, c, o, S=3, BM=bm, BN=bn, BK=bk,
            num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, w = s["x"].float().permute(0, 3, 1, 2), s["w"].float().permute(3, 2, 0, 1)
        y = torch.nn.functional.conv2d(x, w, padding=1)
        return {"y": torch.relu(y).permute(0, 2, 3, 1)}

    return make, launch, want, 2e-2


@cases("quantisation", [(4096, 2048, 2048), (128, 1024, 512)], (40, 64, 64))
def matmul_quant_out(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 1024 else (32, 128, 64), (16, 32, 32))

    def make() -> Buffers:
        return {
            "a": at.random(m, k, dtype=BF16), "b": at.random(k, n, dtype=BF16),
            "q": at.empty(m, n, dtype=FP8), "s": at.empty(m, n // bn, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(n // bn, cdiv(m, bm))](
            s["a"], s["b"], s["q"], s["s"], m, n, k, BM=bm, BN=bn, BK=bk,
            num_warps=at.size(8 if m > 1024 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        c = s["a"].float() @ s["b"].float()
        scale = (c.reshape(m, n // bn, bn).abs().amax(2) / 448.0).clamp(min=1e-10)
        return {"q": (c / scale.repeat_interleave(bn, 1)).to(FP8), "s": scale}

    return make, launch, want, 1e-2


@cases("matmul", [(4, 1024, 2048, 16, 128), (1, 128, 512, 8, 64)], (2, 40, 64, 3, 16))
def qkv_heads(at: Maker, batch: int, t: int, k: int, heads: int, d: int) -> Parts:
    bm, bk = at.size((128 if t > 512 else 64, 64), (16, 32))

    def make() -> Buffers:
        return {
            "x": at.random(batch, t, k, dtype=BF16), "w": at.random(3 * heads * d, k, dtype=BF16),
            **{name: at.empty(batch, heads, t, d, dtype=BF16) for name in NAMES},
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), 3 * heads, batch)](
            s["x"], s["w"], *(s[name] for name in NAMES), t, k, H=heads, D=d, BM=bm, BK=bk,
            num_warps=at.size(8 if t > 512 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        y = (s["x"].float() @ s["w"].float().T).reshape(batch, t, 3, heads, d)
        return dict(zip(NAMES, y.permute(2, 0, 3, 1, 4), strict=True))

    return make, launch, want, 6e-2
