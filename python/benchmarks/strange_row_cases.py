# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of strange_row_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv, words

F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn
I32, I64, I8 = torch.int32, torch.int64, torch.int8


def next_power(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


@cases("softmax", [(16384, 4096), (256, 1000)], (11, 300))
def log_softmax_tiles(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((8, 512) if m > 1024 else (4, 256), (4, 64))

    def make() -> Buffers:
        return {"x": at.random(m, n), "y": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](s["x"], s["y"], m, n, BM=bm, BN=bn, num_warps=4)

    def want(s: Buffers) -> Results:
        return {"y": torch.log_softmax(s["x"].float(), 1)}

    return make, launch, want, 1e-2


@cases("softmax", [(4096, 16384), (64, 4096)], (7, 300))
def softmax_backward_loops(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "y": torch.softmax(at.random(m, n, dtype=F32), 1).to(BF16) * 64,
            "dy": at.random(m, n, dtype=BF16), "dx": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["y"], s["dy"], s["dx"], n, BLOCK=at.size(2048, 64), num_warps=at.size(8, 4)
        )

    def want(s: Buffers) -> Results:
        y, dy = s["y"].float(), s["dy"].float()
        return {"dx": y * (dy - (y * dy).sum(1, keepdim=True))}

    return make, launch, want, 1e-2


@cases("sampling", [(256, 128256), (16, 32000)], (7, 300))
def race_sample(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        # Multiples of 1/16 and noise of 1: equal scores are exact, so the first one must win.
        return {
            "x": (at.integers(2000, m, n) - 1000) / 16.0,
            "noise": torch.ones(m, n, device=at.device), "token": at.empty(m, dtype=I64),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["noise"], s["token"], n, 0.5, BLOCK=at.size(4096, 64), num_warps=8
        )

    def want(s: Buffers) -> Results:
        score = s["x"] / 0.5 - torch.log(s["noise"])
        places = torch.arange(n, device=at.device)
        return {"token": torch.where(score == score.amax(1, keepdim=True), places, n).amin(1)}

    return make, launch, want, 0.0


@cases("cross entropy", [(1024, 128256), (16, 32000)], (7, 300))
def chunk_lse(at: Maker, m: int, n: int) -> Parts:
    block = at.size(16384 if n > 65536 else 8192, 128)
    chunks = cdiv(n, block)

    def make() -> Buffers:
        labels = at.integers(n, m, dtype=I64)
        return {
            "x": at.random(m, n, dtype=BF16),
            "labels": torch.where(at.integers(4, m) == 0, -100, labels),
            "lse": at.empty(m, chunks, dtype=F32), "loss": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m, chunks)](
            s["x"], s["labels"], s["lse"], s["loss"], n, n, CHUNKS=chunks, BLOCK=block,
            num_warps=at.size(16, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, labels = s["x"].float(), s["labels"]
        lse = torch.stack([part.logsumexp(1) for part in x.split(block, 1)], 1)
        picked = -x.gather(1, labels.clamp(min=0)[:, None])[:, 0]
        return {"lse": lse, "loss": torch.where(labels == -100, 0.0, picked)}

    return make, launch, want, 1e-3


@cases("losses", [(2048, 32000), (32, 4096)], (9, 300))
def tvd_grad(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        labels = at.integers(n, m, dtype=I64)
        return {
            "p": torch.softmax(at.random(m, n, dtype=F32), 1),
            "q_": torch.softmax(at.random(m, n, dtype=F32), 1),
            "labels": torch.where(at.integers(4, m) == 0, -100, labels),
            "loss": at.empty(m, dtype=F32), "grad": at.empty(m, n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["p"], s["q_"], s["labels"], s["loss"], s["grad"], n, 0.25, IGNORE=-100,
            BLOCK=at.size(4096, 64), num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        live = s["labels"] != -100
        loss = 0.125 * (s["p"] - s["q_"]).abs().sum(1)
        grad = torch.where(s["p"] > s["q_"], 0.125, -0.125)
        return {
            "loss": torch.where(live, loss, 0.0), "grad": torch.where(live[:, None], grad, 0.0)
        }  # fmt: skip

    return make, launch, want, 1e-4


@cases("sampling", [(256, 128256), (16, 32000)], (7, 300))
def top_p_cut(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        # Integers: their sums are exact, and no sum is a bound.
        p = at.integers(64, m, n).sort(1, descending=True).values.float()
        share = torch.rand((m,), device=at.device) * 1.1
        return {
            "p": p, "bound": (p.sum(1) * share).floor() + 0.5, "y": at.empty(m, n, dtype=F32),
            "mass": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["p"], s["bound"], s["y"], s["mass"], n, BLOCK=at.size(2048, 64), num_warps=8
        )

    def want(s: Buffers) -> Results:
        before = s["p"].cumsum(1) - s["p"]
        y = torch.where(before < s["bound"][:, None], s["p"], 0.0)
        return {"y": y, "mass": y.sum(1)}

    return make, launch, want, 1e-6


@cases("norms", [(16, 256, 4096, 32), (2, 64, 256, 8)], (2, 12, 100, 3))
def group_norm_backward(at: Maker, batch: int, c: int, pixels: int, groups: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(batch, c, pixels), "dy": at.random(batch, c, pixels),
            "w": at.random(c), "mean": at.random(batch, groups, dtype=F32) * 0.1,
            "rstd": torch.rand((batch, groups), device=at.device) + 0.5,
            "dx": at.empty(batch, c, pixels),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(groups, batch)](
            s["x"], s["dy"], s["w"], s["mean"], s["rstd"], s["dx"], c, pixels,
            PER_GROUP=c // groups, BLOCK=at.size(min(pixels, 2048), 64), num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        shape = (batch, groups, c // groups, pixels)
        rstd = s["rstd"][:, :, None, None]
        x = (s["x"].float().reshape(shape) - s["mean"][:, :, None, None]) * rstd
        g = s["dy"].float().reshape(shape) * s["w"].float().reshape(groups, -1, 1)
        means = g.mean((2, 3), keepdim=True) + x * (g * x).mean((2, 3), keepdim=True)
        return {"dx": (rstd * (g - means)).reshape(batch, c, pixels)}

    return make, launch, want, 1e-2


@cases("norms", [(262144, 128), (2048, 96)], (23, 24))
def unit_backward(at: Maker, t: int, d: int) -> Parts:
    bt = at.size(32, 8)

    def make() -> Buffers:
        return {
            "x": at.random(t, d, dtype=BF16), "dy": at.random(t, d, dtype=BF16),
            "dx": at.empty(t, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bt),)](
            s["x"], s["dy"], s["dx"], t, 1e-6, D=d, BD=next_power(d), BT=bt, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x, dy = s["x"].float(), s["dy"].float()
        rstd = torch.rsqrt(x.square().sum(1, keepdim=True) + 1e-6)
        y = x * rstd
        return {"dx": (dy - (dy * y).sum(1, keepdim=True) * y) * rstd}

    return make, launch, want, 1e-2


@cases("quantisation", [(8192, 5120), (32, 4096)], (9, 300))
def quant_smooth(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n), "smooth": at.random(n), "q": at.empty(m, n, dtype=I8),
            "s": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["smooth"], s["q"], s["s"], n, BLOCK=next_power(n), num_warps=at.size(8, 4)
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float() * s["smooth"].float()
        scale = x.abs().amax(1).clamp(min=1e-5) / 127.0
        y = x / scale[:, None]
        return {"q": torch.where(y >= 0, y + 0.5, y - 0.5).trunc().to(I8), "s": scale}

    return make, launch, want, 1e-3


@cases("quantisation", [(8192, 4096), (256, 512)], (40, 48))
def quant_two_ways(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((128, 128) if m > 1024 else (64, 64), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "q": at.empty(m, n, dtype=FP8),
            "s": at.empty(m, cdiv(n, bn), dtype=F32), "qt": at.empty(n, m, dtype=FP8),
            "st": at.empty(n, cdiv(m, bm), dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["x"], s["q"], s["s"], s["qt"], s["st"], m, n, BM=bm, BN=bn, num_warps=at.size(8, 4)
        )

    def want(s: Buffers) -> Results:
        def quantize(x: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
            parts = x.split(block, 1)
            scale = torch.stack([p.abs().amax(1).clamp(min=1e-6) / 448.0 for p in parts], 1)
            each = scale.repeat_interleave(block, 1)[:, : x.shape[1]]
            return (x / each).to(FP8), scale

        (q, scale), (qt, st) = quantize(s["x"].float(), bn), quantize(s["x"].float().T, bm)
        return {"q": q, "s": scale, "qt": qt.float(), "st": st}

    # Neighbours of 8-bit floats differ by up to an eighth.
    return make, launch, want, 0.13


@cases("unpacking", [(4000, 8192), (640, 512)], (50, 40))
def unpack_three_bits(at: Maker, k: int, n: int) -> Parts:
    bk, bn = at.size((64, 128), (16, 16))

    def make() -> Buffers:
        return {
            "packed": words(at, k // 10, n), "scale": at.random(n), "zero": at.random(n),
            "y": at.empty(k, n),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(k, bk), cdiv(n, bn))](
            s["packed"], s["scale"], s["zero"], s["y"], k, n, BK=bk, BN=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        shifts = (torch.arange(10, device=at.device) * 3)[None, :, None]
        codes = ((s["packed"][:, None] >> shifts) & 7).reshape(k, n).float()
        return {"y": (codes - s["zero"].float()) * s["scale"].float()}

    return make, launch, want, 1e-2


@cases("norms", [(8192, 8192), (256, 1000)], (11, 300))
def var_mean_tiles(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((4, 1024) if m > 1024 else (2, 512), (4, 64))

    def make() -> Buffers:
        return {
            "x": at.random(m, n) + 2, "var": at.empty(m, dtype=F32), "mean": at.empty(m, dtype=F32)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](
            s["x"], s["var"], s["mean"], m, n, 1.0, BM=bm, BN=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        var, mean = torch.var_mean(s["x"].float(), 1)
        return {"var": var, "mean": mean}

    return make, launch, want, 1e-3


@cases("scans", [(4096, 8192), (64, 2048)], (7, 200))
def log_cumsum_exp(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {"x": at.random(m, n, dtype=F32) * 3, "y": at.empty(m, n, dtype=F32)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](s["x"], s["y"], n, BLOCK=at.size(1024, 64), num_warps=4)

    def want(s: Buffers) -> Results:
        return {"y": torch.logcumsumexp(s["x"], 1)}

    return make, launch, want, 1e-3


@cases("sums of columns", [(16384, 4096), (512, 1024)], (50, 40))
def bias_grad_atomic(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((32, 128) if m > 1024 else (16, 64), (16, 16))
    each = at.size(512 if m > 1024 else 64, 32)

    def make() -> Buffers:
        return {"dy": at.random(m, n, dtype=BF16), "db": torch.zeros(n, device=at.device)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn), cdiv(m, each))](
            s["dy"], s["db"], m, n, each, BM=bm, BN=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"db": s["dy"].float().sum(0)}

    return make, launch, want, 1e-3


@cases("largest numbers", [(8192, 8192), (256, 1000)], (11, 300))
def argmax_tiles(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((8, 256) if m > 1024 else (4, 128), (4, 64))

    def make() -> Buffers:
        return {"x": at.random(m, n, dtype=BF16), "ids": at.empty(m, dtype=I64)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](s["x"], s["ids"], m, n, BM=bm, BN=bn, num_warps=4)

    def want(s: Buffers) -> Results:
        places = torch.arange(n, device=at.device)
        best = s["x"] == s["x"].amax(1, keepdim=True)
        return {"ids": torch.where(best, places, n).amin(1)}

    return make, launch, want, 0.0
