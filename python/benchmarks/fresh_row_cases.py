# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of fresh_row_kernels.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn
I32, I64, U8 = torch.int32, torch.int64, torch.uint8


def next_power(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


def largest_of_blocks(x: torch.Tensor, block: int) -> torch.Tensor:
    """The largest size in each block of a vector."""
    return torch.nn.functional.pad(x.abs(), (0, -len(x) % block)).reshape(-1, block).amax(1)


@cases("softmax", [(2048, 32000), (64, 4096)], (7, 300))
def softmax_three_loops(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {"x": at.random(m, n, dtype=BF16), "y": at.empty(m, n, dtype=BF16)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["y"], n, n, LOG2E=1.44269504, BLOCK=at.size(2048, 64), num_warps=8
        )

    def want(s: Buffers) -> Results:
        return {"y": torch.softmax(s["x"].float(), 1)}

    return make, launch, want, 1e-2


@cases("softmax", [(8, 16, 1024, 1024), (2, 8, 128, 200)], (2, 3, 11, 20))
def masked_softmax(at: Maker, batch: int, heads: int, queries: int, keys: int) -> Parts:
    rows = at.size(4, 4)

    def make() -> Buffers:
        return {
            "x": at.random(batch, heads, queries, keys),
            "mask": at.integers(2, batch, queries, keys, dtype=U8),
            "bias": at.random(heads, queries, keys), "y": at.empty(batch, heads, queries, keys),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(queries, rows), heads, batch)](
            s["x"], s["mask"], s["bias"], s["y"], 0.125, heads, queries, keys, ROWS=rows,
            BLOCK=next_power(keys), num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float() * 0.125 + s["bias"].float()
        return {"y": torch.softmax(torch.where(s["mask"][:, None] != 0, x, -10000.0), -1)}

    return make, launch, want, 1e-2


@cases("cross entropy", [(2048, 151936), (32, 8192)], (9, 300))
def token_logps(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "labels": at.integers(n, m, dtype=I64),
            "old": at.random(m, dtype=F32) - math.log(n), "logp": at.empty(m, dtype=F32),
            "loss": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["labels"], s["old"], s["logp"], s["loss"], n, 0.2, BLOCK=at.size(4096, 64),
            num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        lse = torch.cat([torch.logsumexp(part.float(), 1) for part in s["x"].split(512)])
        logp = s["x"].gather(1, s["labels"][:, None])[:, 0].float() - lse
        ratio = torch.exp(logp - s["old"])
        return {"logp": logp, "loss": -torch.minimum(ratio, ratio.clamp(0.8, 1.2))}

    return make, launch, want, 1e-3


@cases("gating", [(16384, 64, 6), (256, 128, 8)], (9, 32, 3))
def gate_sort(at: Maker, tokens: int, experts: int, top: int) -> Parts:
    def make() -> Buffers:
        return {
            "logits": at.random(tokens, experts, dtype=BF16), "w": at.empty(tokens, top, dtype=F32),
            "ids": at.empty(tokens, top, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](s["logits"], s["w"], s["ids"], E=experts, TOP=top, num_warps=1)

    def want(s: Buffers) -> Results:
        # A stable sort: the first one among equals.
        values, ids = s["logits"].float().sort(dim=1, descending=True, stable=True)
        return {"w": torch.softmax(values[:, :top], 1), "ids": ids[:, :top]}

    return make, launch, want, 1e-4


@cases("sampling", [(512, 128256), (16, 32000)], (7, 300))
def min_p_filter(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            # Multiples of 1/64, and a bound between two of them: no logit is near it.
            "x": (at.integers(512, m, n) - 256) / 64.0,
            "min_p": torch.exp(-(at.integers(64, m) * 4 + 2.0) / 64 / 0.5),
            "y": at.empty(m, n, dtype=F32), "kept": at.empty(m, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["min_p"], s["y"], s["kept"], n, 0.5, BLOCK=at.size(4096, 64), num_warps=8
        )

    def want(s: Buffers) -> Results:
        least = s["x"].amax(1, keepdim=True) + torch.log(s["min_p"])[:, None] * 0.5
        # Half a step: rounding of the bound moves no logit across it.
        keep = s["x"] >= torch.floor(least * 64 + 0.5) / 64
        return {"y": torch.where(keep, s["x"] / 0.5, float("-inf")), "kept": keep.sum(1)}

    return make, launch, want, 1e-5


@cases("norms", [(16384, 32, 128), (64, 8, 128)], (13, 4, 16))
def head_norm_rope(at: Maker, tokens: int, heads: int, d: int) -> Parts:
    length = at.size(min(tokens, 4096), 5)

    def make() -> Buffers:
        angle = torch.rand((length, d // 2), device=at.device) * 6.28
        return {
            "x": at.random(tokens, heads, d, dtype=BF16), "w": at.random(d, dtype=BF16),
            "cos": angle.cos(), "sin": angle.sin(), "y": at.empty(tokens, heads, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["x"], s["w"], s["cos"], s["sin"], s["y"], length, 1e-6, H=heads, D=d, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        x = x * torch.rsqrt(x.square().mean(2, keepdim=True) + 1e-6) * s["w"].float()
        low, high = x.chunk(2, 2)
        t = torch.arange(tokens, device=at.device) % length
        cos, sin = s["cos"][t][:, None], s["sin"][t][:, None]
        return {"y": torch.cat([low * cos - high * sin, high * cos + low * sin], 2)}

    return make, launch, want, 1e-2


@cases("norms", [(8192, 12288), (128, 3072)], (7, 300))
def layer_norm_welford(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16) + 3, "w": at.random(n, dtype=BF16),
            "b": at.random(n, dtype=BF16), "y": at.empty(m, n, dtype=BF16),
            "mean": at.empty(m, dtype=F32), "rstd": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["w"], s["b"], s["y"], s["mean"], s["rstd"], n, 1e-5, BLOCK=at.size(2048, 64),
            num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        mean, rstd = x.mean(1), torch.rsqrt(x.var(1, correction=0) + 1e-5)
        y = (x - mean[:, None]) * rstd[:, None] * s["w"].float() + s["b"].float()
        return {"y": y, "mean": mean, "rstd": rstd}

    return make, launch, want, 1e-2


@cases("gradients", [(16384, 4096), (256, 512)], (13, 50))
def tanh_norm_backward(at: Maker, m: int, n: int) -> Parts:
    block = at.size(512, 32)
    grid = (cdiv(n, block), at.size(128 if m > 1000 else 32, 3))

    def make() -> Buffers:
        return {
            "x": at.random(m, n), "dy": at.random(m, n), "w": at.random(n, dtype=F32),
            "dx": at.empty(m, n), "da": at.empty(grid[1], grid[0], dtype=F32),
            "dw": at.empty(grid[1], n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[grid](
            s["x"], s["dy"], s["w"], s["dx"], s["da"], s["dw"], 0.5, m, n, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x, dy = s["x"].float(), s["dy"].float()
        y = torch.tanh(0.5 * x)
        slope = (1 - y * y) * s["w"] * dy
        parts = grid[1]
        dw = torch.stack([(y * dy)[i::parts].sum(0) for i in range(parts)])
        columns = [c.sum((1,)) for c in (slope * x).split(block, 1)]
        da = torch.stack([torch.stack([c[i::parts].sum() for c in columns]) for i in range(parts)])
        return {"dx": 0.5 * slope, "dw": dw, "da": da}

    return make, launch, want, 1e-2


@cases("column sums", [(32768, 1024), (512, 256)], (40, 50))
def column_stats(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((256, 8) if m > 1000 else (128, 4), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(m, n), "mean": at.empty(n, dtype=F32), "var": at.empty(n, dtype=F32),
            "run": at.random(n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn),)](
            s["x"], s["mean"], s["var"], s["run"], m, n, 0.1, BLOCK_M=bm, BLOCK_N=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        mean, var = s["x"].float().mean(0), s["x"].float().var(0, correction=0)
        return {"mean": mean, "var": var, "run": s["run"] + 0.1 * (mean - s["run"])}

    return make, launch, want, 1e-3


@cases("quantisation", [(8192, 7168), (64, 2048)], (7, 128))
def quant_pow2(at: Maker, m: int, n: int) -> Parts:
    group, block, rows = at.size((128, 512, 4), (32, 64, 4))

    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "q": at.empty(m, n, dtype=FP8),
            "s": at.empty(m, n // group, dtype=U8),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, rows), cdiv(n, block))](
            s["x"], s["q"], s["s"], m, n, ROWS=rows, BLOCK=block, GROUP=group, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float().reshape(m, -1, group)
        exponent = torch.ceil(torch.log2(x.abs().amax(2).clamp(min=1e-4) / 448))
        q = (x * torch.exp2(-exponent)[..., None]).reshape(m, n).to(FP8)
        return {"q": q, "s": exponent + 127}

    return make, launch, want, 0.0


@cases("quantisation", [(8192, 4096), (64, 2048)], (7, 200))
def pack_ternary(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=F32), "q": at.empty(m, n // 4, dtype=U8),
            "s": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](s["x"], s["q"], s["s"], n, BLOCK=at.size(512, 32), num_warps=4)

    def want(s: Buffers) -> Results:
        scale = s["x"].abs().mean(1)
        x = s["x"] / scale[:, None]
        code = torch.where(x > 0.5, 2, torch.where(x < -0.5, 0, 1)).reshape(m, -1, 4)
        q = (code << (2 * torch.arange(4, device=at.device))).sum(2)
        # A number at a bound may be rounded across it: such bytes are few.
        return {"q": q.to(U8), "s": scale}

    return make, launch, want, 1e-5


@cases("quantisation", [(1 << 24, 2048), (1 << 17, 512)], (200, 32))
def code_search(at: Maker, n: int, block: int) -> Parts:
    def make() -> Buffers:
        book = torch.linspace(-1, 1, 256)
        return {
            "x": at.random(n, dtype=F32), "book": (book * book.abs()).to(at.device),
            "q": at.empty(n, dtype=U8), "s": at.empty(cdiv(n, block), dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, block),)](
            s["x"], s["book"], s["q"], s["s"], n, BLOCK=block, num_warps=4
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        largest = largest_of_blocks(s["x"], block)
        x = s["x"] / largest.repeat_interleave(block)[:n]
        above = torch.searchsorted(s["book"], x).clamp(1, 255)
        is_below = (x - s["book"][above - 1]).abs() <= (x - s["book"][above]).abs()
        return {"q": torch.where(is_below, above - 1, above).to(U8), "s": largest}

    return make, launch, want, 1e-6


@cases("reductions", [(64, 1024, 768), (8, 64, 500)], (3, 40, 50))
def amax_middle(at: Maker, m: int, k: int, n: int) -> Parts:
    bk, bn = at.size((32, 64), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(m, k, n, dtype=F32), "y": at.empty(m, n, dtype=F32),
            "at": at.empty(m, n, dtype=I64),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m, cdiv(n, bn))](
            s["x"], s["y"], s["at"], m, k, n, BLOCK_K=bk, BLOCK_N=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        y = s["x"].amax(1)
        k_first = torch.arange(k, device=at.device)[None, :, None]
        return {"y": y, "at": torch.where(s["x"] == y[:, None], k_first, k).amin(1)}

    return make, launch, want, 0.0


@cases("scans", [(8192, 8192), (128, 1500)], (5, 150))
def running_max(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=F32), "y": at.empty(m, n, dtype=F32),
            "at": at.empty(m, n, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](s["x"], s["y"], s["at"], n, BLOCK=at.size(1024, 32), num_warps=4)

    def want(s: Buffers) -> Results:
        y = s["x"].cummax(1)[0]
        place = torch.where(s["x"] == y, torch.arange(n, device=at.device), 0)
        return {"y": y, "at": place.cummax(1)[0]}

    return make, launch, want, 0.0


@cases("nearest", [(16384, 8192, 64), (512, 1024, 32)], (40, 70, 16))
def nearest_code(at: Maker, m: int, codes: int, d: int) -> Parts:
    bm, bc = at.size((128 if m > 1000 else 32, 128), (32, 32))

    def make() -> Buffers:
        # Small integers: distances are exact, and the first code among equals is the nearest.
        x, book = (at.integers(9, rows, d) - 4 for rows in (m, codes))
        return {
            "x": x.half(), "book": book.half(), "norm": book.square().sum(1).float(),
            "ids": at.empty(m, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](
            s["x"], s["book"], s["norm"], s["ids"], m, codes, D=d, BM=bm, BC=bc, num_warps=4
        )

    def want(s: Buffers) -> Results:
        distance = s["norm"] - 2 * s["x"].float() @ s["book"].float().T
        least = distance.amin(1, keepdim=True)
        number = torch.arange(codes, device=at.device)
        return {"ids": torch.where(distance == least, number, codes).amin(1)}

    return make, launch, want, 0.0
