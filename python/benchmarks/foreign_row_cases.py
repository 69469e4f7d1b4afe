# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of foreign_row_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import PROGRAMS, Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16 = torch.float32, torch.bfloat16
I32, I64, I8 = torch.int32, torch.int64, torch.int8


@cases("softmax", [(2, 16, 2048), (1, 4, 320)], (2, 3, 40))
def softmax_alibi(at: Maker, batch: int, heads: int, t: int) -> Parts:
    scale = 0.125

    def make() -> Buffers:
        return {"x": at.random(batch, heads, t, t) * 8, "y": at.empty(batch, heads, t, t)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(t, heads, batch)](
            s["x"], s["y"], t, heads, scale, BLOCK=at.size(1024 if t > 512 else 256, 16),
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        i = torch.arange(t, device=at.device)
        slopes = torch.exp2(-8.0 * torch.arange(1, heads + 1, device=at.device) / heads)
        away = i[:, None] - i[None, :]
        scores = s["x"].float() * scale - slopes[:, None, None] * away
        return {"y": torch.softmax(torch.where(away >= 0, scores, float("-inf")), -1)}

    return make, launch, want, 1e-2


@cases("softmax", [(16, 2048, 1024), (2, 128, 200)], (2, 37, 20))
def softmax_columns(at: Maker, batch: int, m: int, n: int) -> Parts:
    bm, bn = at.size((32, 64) if m > 512 else (16, 32), (8, 8))

    def make() -> Buffers:
        return {
            "x": at.random(batch, m, n, dtype=BF16), "y": at.empty(batch, m, n, dtype=BF16)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn), batch)](s["x"], s["y"], m, n, BM=bm, BN=bn, num_warps=4)

    def want(s: Buffers) -> Results:
        return {"y": torch.softmax(s["x"].float(), 1)}

    return make, launch, want, 1e-2


@cases("cross entropy", [(2048, 128256), (32, 32000)], (9, 300))
def ce_softcap(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        labels = at.integers(n, m, dtype=I64)
        return {
            "x": at.random(m, n, dtype=BF16) * 4,
            "labels": torch.where(at.integers(4, m) == 0, -1, labels),
            "loss": at.empty(m, dtype=F32), "lse": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["labels"], s["loss"], s["lse"], n, n, 15.0, IGNORE=-1,
            BLOCK=at.size(4096, 64), num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = torch.tanh(s["x"].float() / 15.0) * 15.0
        lse, labels = x.logsumexp(1), s["labels"]
        loss = lse - x.gather(1, labels.clamp(min=0)[:, None])[:, 0]
        return {"loss": torch.where(labels < 0, 0.0, loss), "lse": lse}

    return make, launch, want, 1e-3


@cases("cross entropy", [(2048, 50304), (32, 16384)], (9, 300))
def ce_grad_in_place(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        labels = at.integers(n, m, dtype=I64)
        labels = torch.where(at.integers(4, m) == 0, -100, labels)
        weight = torch.rand(n, device=at.device) + 0.5
        live = labels[labels != -100]
        # Divided by a small number, so that the gradients can be compared.
        return {
            "x": at.random(m, n, dtype=BF16), "labels": labels, "weight": weight,
            "total": (weight[live].sum() / m).reshape(1) + 0.1,
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["labels"], s["weight"], s["total"], n, IGNORE=-100, BLOCK=at.size(4096, 64),
            num_warps=at.size(16, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        grad = torch.softmax(s["x"].float(), 1)
        live = s["labels"] != -100
        grad[live, s["labels"][live]] -= 1
        scale = s["weight"][s["labels"].clamp(min=0)] / s["total"]
        return {"x": grad * torch.where(live, scale, 0.0)[:, None]}

    return make, launch, want, 1e-2


@cases("losses", [(2048, 65536), (32, 8192)], (9, 300))
def distill_kl(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "student": at.random(m, n, dtype=BF16) * 2, "teacher": at.random(m, n, dtype=BF16) * 2,
            "loss": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["student"], s["teacher"], s["loss"], n, 0.5, BLOCK=at.size(4096, 64), num_warps=8
        )

    def want(s: Buffers) -> Results:
        student = torch.log_softmax(s["student"].float() * 0.5, 1)
        teacher = torch.log_softmax(s["teacher"].float() * 0.5, 1)
        return {"loss": (teacher.exp() * (teacher - student)).sum(1) * 4}

    return make, launch, want, 1e-3


@cases("losses", [(8192, 32000), (256, 2000)], (11, 300))
def entropy_rows(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((4, 1024) if m > 1024 else (2, 512), (4, 64))

    def make() -> Buffers:
        return {"x": at.random(m, n, dtype=BF16) * 3, "h": at.empty(m, dtype=F32)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](s["x"], s["h"], m, n, BM=bm, BN=bn, num_warps=4)

    def want(s: Buffers) -> Results:
        logp = torch.log_softmax(s["x"].float(), 1)
        return {"h": -(logp.exp() * logp).sum(1)}

    return make, launch, want, 1e-3


@cases("choices", [(65536, 256, 8), (512, 128, 4)], (21, 32, 4))
def gate_bias_sigmoid(at: Maker, m: int, experts: int, top: int) -> Parts:
    bm = at.size(8 if m > 1024 else 4, 4)

    def make() -> Buffers:
        # The numbers of a row differ by 1/16 or more: no two choices are almost equal.
        ranks = torch.rand((m, experts), device=at.device).argsort(1)
        bias = torch.where(at.integers(3, experts) == 0, 4.0, 0.0)
        return {
            "x": (ranks - experts // 2).float() / 16, "bias": bias,
            "w": at.empty(m, top, dtype=F32), "ids": at.empty(m, top, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](
            s["x"], s["bias"], s["w"], s["ids"], m, 2.5, E=experts, TOP=top, BM=bm, num_warps=4
        )

    def want(s: Buffers) -> Results:
        scores = torch.sigmoid(s["x"])
        ids = torch.where(s["bias"] > 0, s["x"] + 1000, s["x"]).topk(top, 1).indices
        weights = scores.gather(1, ids)
        return {"w": weights / weights.sum(1, keepdim=True) * 2.5, "ids": ids}

    return make, launch, want, 1e-4


@cases("norms", [(524288, 96), (4096, 80)], (45, 24))
def layer_norm_many(at: Maker, m: int, d: int) -> Parts:
    bm, bd = at.size(32 if m > 65536 else 8, 8), 1 << (d - 1).bit_length()

    def make() -> Buffers:
        return {
            "x": at.random(m, d), "w": at.random(d), "b": at.random(d), "y": at.empty(m, d)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        grid = min(cdiv(m, bm), at.size(8 * PROGRAMS, 2))
        return kernel[(grid,)](
            s["x"], s["w"], s["b"], s["y"], m, 1e-5, D=d, BD=bd, BM=bm, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x, w, b = (s[name].float() for name in ("x", "w", "b"))
        return {"y": torch.nn.functional.layer_norm(x, (d,), w, b)}

    return make, launch, want, 1e-2


@cases("norms", [(16384, 8, 512), (256, 4, 256)], (9, 4, 16))
def rms_groups_gate(at: Maker, m: int, groups: int, size: int) -> Parts:
    n = groups * size

    def make() -> Buffers:
        # Both are halves of one array, as one product makes them.
        both = at.random(m, 2 * n, dtype=BF16)
        return {
            "x": both[:, :n], "z": both[:, n:], "w": at.random(n, dtype=BF16),
            "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["z"], s["w"], s["y"], s["x"].stride(0), 1e-5, GROUPS=groups, SIZE=size,
            num_warps=at.size(8 if n > 2048 else 4, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = (s["x"].float() * torch.nn.functional.silu(s["z"].float())).reshape(m, groups, size)
        x = x * torch.rsqrt(x.square().mean(2, keepdim=True) + 1e-5)
        return {"y": x.reshape(m, n) * s["w"].float()}

    return make, launch, want, 1e-2


@cases("sums of columns", [(16384, 4096, 8), (1024, 768, 8)], (50, 40, 2))
def norm_weight_grads(at: Maker, m: int, n: int, parts: int) -> Parts:
    bm, bn = at.size((32, 64) if m > 4096 else (16, 32), (8, 16))
    each = cdiv(m, parts)

    def make() -> Buffers:
        return {
            "dy": at.random(m, n, dtype=BF16), "x": at.random(m, n, dtype=BF16),
            "mean": at.random(m, dtype=F32) * 0.1, "rstd": torch.rand(m, device=at.device) + 0.5,
            "dw": at.empty(parts, n, dtype=F32), "db": at.empty(parts, n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("dy", "x", "mean", "rstd", "dw", "db")
        return kernel[(cdiv(n, bn), parts)](
            *(s[name] for name in names), m, n, each, BM=bm, BN=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        dy = s["dy"].float()
        x = (s["x"].float() - s["mean"][:, None]) * s["rstd"][:, None]
        return {
            "dw": torch.stack([part.sum(0) for part in (dy * x).split(each)]),
            "db": torch.stack([part.sum(0) for part in dy.split(each)]),
        }

    return make, launch, want, 1e-3


@cases("quantisation", [(4096, 16384), (512, 768)], (50, 40))
def quant_columns(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((64, 64) if m > 1024 else (32, 16), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "q": at.empty(m, n, dtype=I8),
            "s": at.empty(n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn),)](
            s["x"], s["q"], s["s"], m, n, BM=bm, BN=bn, num_warps=at.size(8 if m > 1024 else 4, 4)
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        scale = x.abs().amax(0).clamp(min=1e-8) / 127.0
        return {"q": (x / scale + 0.5).floor().to(I8), "s": scale}

    return make, launch, want, 1e-3


@cases("quantisation", [(8192, 6144), (64, 2048)], (9, 300))
def requant_sum(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "a": (at.integers(255, m, n) - 127).to(I8), "b": (at.integers(255, m, n) - 127).to(I8),
            "a_scale": torch.rand(m, device=at.device) * 0.02 + 0.001,
            "b_scale": torch.rand(m, device=at.device) * 0.02 + 0.001,
            "q": at.empty(m, n, dtype=I8), "s": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("a", "b", "a_scale", "b_scale", "q", "s")
        return kernel[(m,)](
            *(s[name] for name in names), n, BLOCK=1 << (n - 1).bit_length(),
            num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        y = s["a"].float() * s["a_scale"][:, None] + s["b"].float() * s["b_scale"][:, None]
        scale = y.abs().amax(1) / 127.0 + 1e-12
        y = y / scale[:, None]
        return {"q": torch.where(y < 0, y - 0.5, y + 0.5).trunc().to(I8), "s": scale}

    return make, launch, want, 1e-3


@cases("quantisation", [(262144, 128, 32), (2048, 64, 64)], (21, 32, 16))
def pack_kv_nibbles(at: Maker, t: int, d: int, group: int) -> Parts:
    bt = at.size(32 if t > 65536 else 8, 4)

    def make() -> Buffers:
        return {
            "x": at.random(t, d, dtype=BF16), "q": at.empty(t, d // 2, dtype=torch.uint8),
            "s": at.empty(t, d // group, dtype=BF16), "z": at.empty(t, d // group, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bt),)](
            s["x"], s["q"], s["s"], s["z"], t, D=d, GROUP=group, BT=bt, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float().reshape(t, d // group, group)
        least, largest = x.amin(2), x.amax(2)
        scale = ((largest - least) / 15).clamp(min=1e-6)
        codes = ((x - least[:, :, None]) / scale[:, :, None] + 0.5).floor().clamp(0, 15)
        return {"nibbles": codes.reshape(t, d // 2, 2).int(), "s": scale, "z": least}

    return make, launch, want, 1e-2


@cases("scans", [(4096, 8192), (64, 2048)], (7, 200))
def scan_segments(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=F32), "flag": (at.integers(40, m, n) == 0).to(torch.uint8),
            "y": at.empty(m, n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](s["x"], s["flag"], s["y"], n, BLOCK=at.size(1024, 64), num_warps=4)

    def want(s: Buffers) -> Results:
        x, places = s["x"].double(), torch.arange(n, device=at.device)
        sums = x.cumsum(1)
        begin = torch.where(s["flag"] != 0, places, 0).cummax(1).values
        return {"y": (sums - (sums - x).gather(1, begin)).float()}

    return make, launch, want, 1e-4


@cases("norms", [(32, 4096, 256), (4, 196, 96)], (2, 37, 20))
def instance_norm_last(at: Maker, batch: int, pixels: int, c: int) -> Parts:
    bp, bc = at.size((64, 32) if pixels > 1024 else (32, 16), (8, 8))

    def make() -> Buffers:
        return {
            "x": at.random(batch, pixels, c) + 0.5, "w": at.random(c), "b": at.random(c),
            "y": at.empty(batch, pixels, c),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(c, bc), batch)](
            s["x"], s["w"], s["b"], s["y"], pixels, c, 1e-5, BP=bp, BC=bc, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x, w, b = (s[name].float() for name in ("x", "w", "b"))
        y = torch.nn.functional.instance_norm(x.transpose(1, 2), weight=w, bias=b)
        return {"y": torch.relu(y.transpose(1, 2))}

    return make, launch, want, 1e-2
