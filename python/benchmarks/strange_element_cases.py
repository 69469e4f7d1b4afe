# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of strange_element_kernels.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv, words

F32, BF16, I32, I64 = torch.float32, torch.bfloat16, torch.int32, torch.int64


@cases("activations", [(8192, 8192), (128, 4096)], (9, 320))
def relu_bits(at: Maker, m: int, n: int) -> Parts:
    block = at.size(2048, 64)

    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "bias": at.random(n, dtype=BF16),
            "y": at.empty(m, n, dtype=BF16), "bits": at.empty(m, n // 32, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m * n, block),)](
            s["x"], s["bias"], s["y"], s["bits"], m * n, n, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float() + s["bias"].float()
        bits = (x > 0).long().reshape(m, n // 32, 32) << torch.arange(32, device=at.device)
        return {"y": torch.relu(x), "bits": bits.sum(2).int()}

    return make, launch, want, 1e-2


@cases("caches", [(16384, 8, 128), (128, 8, 64)], (9, 2, 16))
def rope_cache_fused(at: Maker, tokens: int, heads: int, d: int) -> Parts:
    page = at.size(16, 4)
    pages = cdiv(tokens * 2, page)

    def make() -> Buffers:
        slots = torch.randperm(pages * page, device=at.device)[:tokens]
        angle = torch.rand((tokens, d // 2), device=at.device) * 6.28
        return {
            "k": at.random(tokens, heads, d, dtype=BF16), "v": at.random(tokens, heads, d, dtype=BF16),
            "angles": torch.cat([angle.cos(), angle.sin()], 1).to(BF16),
            "slots": torch.where(at.integers(8, tokens) == 0, -1, slots),
            "cache": at.random(pages, 2, page, heads, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["k"], s["v"], s["angles"], s["slots"], s["cache"], H=heads, D=d, PAGE=page,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        cos, sin = s["angles"].float()[:, None].chunk(2, 2)
        low, high = s["k"].float().chunk(2, 2)
        k = torch.cat([low * cos - high * sin, low * sin + high * cos], 2)
        live = s["slots"] >= 0
        slots, cache = s["slots"][live], s["cache"].float()
        cache[slots // page, 0, slots % page] = k[live]
        cache[slots // page, 1, slots % page] = s["v"].float()[live]
        return {"cache": cache}

    return make, launch, want, 1e-2


@cases("strides", [(64, 512, 1024), (8, 64, 96)], (3, 5, 14))
def strided_add3(at: Maker, a: int, b: int, c: int) -> Parts:
    block = at.size(1024, 64)

    def make() -> Buffers:
        return {
            "x": at.random(b, a, c), "y": at.random(a, 1, c), "out": at.empty(a, b, c)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        n = a * b * c
        return kernel[(cdiv(n, block),)](
            s["x"], s["y"], s["out"], n, b, c, c, a * c, 1, c, 0, 1, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"out": s["x"].float().transpose(0, 1) + s["y"].float()}

    return make, launch, want, 1e-2


@cases("embeddings", [(8, 2048, 2048, 50304), (2, 128, 768, 4096)], (2, 5, 40, 30))
def embed_positions(at: Maker, batch: int, t: int, d: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "ids": at.integers(n, batch, t, dtype=I64), "table": at.random(n, d, dtype=BF16),
            "positions": at.random(t, d, dtype=BF16), "w": at.random(d, dtype=BF16),
            "y": at.empty(batch, t, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch * t,)](
            s["ids"], s["table"], s["positions"], s["w"], s["y"], t, d, 1e-6,
            BLOCK=1 << (d - 1).bit_length(), num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["table"][s["ids"]].float() + s["positions"].float()
        rstd = torch.rsqrt(x.square().mean(2, keepdim=True) + 1e-6)
        return {"y": x * rstd * s["w"].float()}

    return make, launch, want, 1e-2


@cases("embeddings", [(32768, 1024, 4096), (256, 256, 64)], (21, 40, 7))
def index_add_rows(at: Maker, m: int, d: int, n: int) -> Parts:
    bm, bd = at.size((8, 256), (4, 16))

    def make() -> Buffers:
        return {
            "x": at.random(m, d, dtype=F32), "index": at.integers(n, m, dtype=I64),
            "y": at.random(n, d, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(d, bd))](
            s["x"], s["index"], s["y"], m, d, 0.5, BM=bm, BD=bd, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": s["y"].index_add(0, s["index"], s["x"], alpha=0.5)}

    return make, launch, want, 1e-4


@cases("pictures", [(32, 3, 448, 14), (2, 3, 224, 16)], (2, 3, 12, 4))
def patchify(at: Maker, batch: int, c: int, size: int, patch: int) -> Parts:
    side = size // patch

    def make() -> Buffers:
        return {
            "x": at.random(batch, c, size, size), "y": at.empty(batch, side * side, c * patch * patch)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(side, side, batch)](
            s["x"], s["y"], c, size, size, P=patch, BLOCK=at.size(512, 32), num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {
            "y": torch.nn.functional.unfold(s["x"].float(), patch, stride=patch).transpose(1, 2)
        }

    return make, launch, want, 1e-3


@cases("pictures", [(256, 128, 256), (16, 56, 112)], (3, 5, 12))
def upsample_bilinear(at: Maker, planes: int, size: int, to: int) -> Parts:
    block = at.size(1024, 64)

    def make() -> Buffers:
        return {"x": at.random(planes, size, size), "y": at.empty(planes, to, to)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(to * to, block), planes)](
            s["x"], s["y"], size, size, to, to, size / to, size / to, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()[None]
        return {"y": torch.nn.functional.interpolate(x, size=(to, to), mode="bilinear")[0]}

    return make, launch, want, 1e-2


@cases("pictures", [(8, 56, 256, 7), (1, 28, 128, 5)], (2, 6, 20, 3))
def depthwise_rows(at: Maker, batch: int, size: int, c: int, width: int) -> Parts:
    bw, bc = at.size((32, 64), (8, 16))

    def make() -> Buffers:
        return {
            "x": at.random(batch, size, size, c), "w": at.random(width, width, c) * 0.2,
            "bias": at.random(c), "y": at.empty(batch, size, size, c),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(size, bw), batch * size, cdiv(c, bc))](
            s["x"], s["w"], s["bias"], s["y"], size, size, c, S=width, BW=bw, BC=bc, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x, w = s["x"].float().permute(0, 3, 1, 2), s["w"].float().permute(2, 0, 1)[:, None]
        y = torch.nn.functional.conv2d(x, w, s["bias"].float(), padding=width // 2, groups=c)
        return {"y": y.permute(0, 2, 3, 1)}

    return make, launch, want, 1e-2


@cases("optimisers", [(1 << 25,), (1 << 17,)], (1000,))
def lamb_parts(at: Maker, n: int) -> Parts:
    block = at.size(2048, 64)
    numbers = (0.9, 0.99, 1e-6, 0.01)

    def make() -> Buffers:
        return {
            "p": at.random(n, dtype=F32), "g": at.random(n, dtype=BF16),
            "m": at.random(n, dtype=F32), "v": torch.rand(n, device=at.device),
            "u": at.empty(n, dtype=F32), "norms": at.empty(cdiv(n, block), 2, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, block),)](
            *(s[name] for name in ("p", "g", "m", "v", "u", "norms")), n, *numbers, 3.0,
            BLOCK=block, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        b1, b2, eps, decay = numbers
        g = s["g"].float()
        m, v = s["m"] + (1 - b1) * (g - s["m"]), b2 * s["v"] + (1 - b2) * g * g
        u = m / (1 - b1**3) / ((v / (1 - b2**3)).sqrt() + eps) + decay * s["p"]
        sums = [
            torch.nn.functional.pad(x, (0, -n % block)).reshape(-1, block).square().sum(1)
            for x in (s["p"], u)
        ]
        return {"m": m, "v": v, "u": u, "norms": torch.stack(sums, 1)}

    return make, launch, want, 1e-3


@cases("sampling", [(256, 128256), (8, 32000)], (5, 300))
def logit_penalties(at: Maker, m: int, v: int) -> Parts:
    block = at.size(4096, 64)

    def make() -> Buffers:
        return {
            "x": at.random(m, v, dtype=F32),
            "counts": (at.integers(40, m, v) - 36).clamp(min=0),
            "repeat": torch.rand(m, device=at.device) + 1, "often": torch.rand(m, device=at.device),
            "present": torch.rand(m, device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m, cdiv(v, block))](
            *(s[name] for name in ("x", "counts", "repeat", "often", "present")), v, BLOCK=block,
            num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        said = s["counts"] > 0
        repeat = torch.where(said, s["repeat"][:, None], 1.0)
        x = torch.where(s["x"] > 0, s["x"] / repeat, s["x"] * repeat)
        return {"x": x - s["often"][:, None] * s["counts"] - s["present"][:, None] * said}

    return make, launch, want, 1e-4


@cases("positions", [(2048, 2048, 32), (128, 256, 12)], (20, 30, 3))
def relative_buckets(at: Maker, t: int, width: int, heads: int) -> Parts:
    bm, bn = at.size((32, 64), (16, 16))
    exact, buckets, furthest = 16, 32, 128
    # A little more than the ratio: no logarithm of a power is just below an integer.
    factor = (buckets - exact) / math.log(furthest / exact) * (1 + 1e-5)

    def make() -> Buffers:
        return {"bias": at.random(buckets, heads), "y": at.empty(heads, t, width)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), cdiv(width, bn), heads)](
            s["bias"], s["y"], t, width, heads, EXACT=exact, BUCKETS=buckets, factor=factor, BM=bm,
            BN=bn, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        away = torch.arange(t)[:, None] - torch.arange(width)[None]
        away = away.clamp(min=0)
        far = exact + (torch.log(away.clamp(min=1).double() / exact) * factor).long()
        bucket = torch.where(away < exact, away, far.clamp(max=buckets - 1)).to(at.device)
        return {"y": s["bias"].float()[bucket].permute(2, 0, 1)}

    return make, launch, want, 1e-3


@cases("distances", [(4096, 4096, 64), (256, 256, 32)], (20, 30, 7))
def pairwise_l1(at: Maker, m: int, n: int, d: int) -> Parts:
    bm, bn = at.size((64, 64) if m > 1024 else (16, 32), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(m, d, dtype=F32), "y": at.random(n, d, dtype=F32),
            "d": at.empty(m, n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["x"], s["y"], s["d"], m, n, d, BM=bm, BN=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"d": torch.cdist(s["x"], s["y"], p=1.0)}

    return make, launch, want, 1e-4


@cases("weighted sums", [(4096, 2048, 16384, 32), (64, 512, 1024, 8)], (5, 40, 20, 6))
def weighted_rows(at: Maker, bags: int, d: int, rows: int, most: int) -> Parts:
    block, unroll = at.size((512, 4), (32, 2))

    def make() -> Buffers:
        starts = torch.cat([torch.zeros(1), torch.randint(0, most + 1, (bags,))]).cumsum(0)
        total = int(starts[-1])
        return {
            "x": at.random(rows, d), "ids": at.integers(rows, max(total, 1)),
            "w": torch.rand(max(total, 1), device=at.device),
            "starts": starts.int().to(at.device), "y": at.empty(bags, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(bags, cdiv(d, block))](
            s["x"], s["ids"], s["w"], s["starts"], s["y"], d, BLOCK=block, UNROLL=unroll,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        starts = s["starts"].long()
        bag = torch.repeat_interleave(torch.arange(bags, device=at.device), starts.diff())
        count = int(starts[-1])
        x = s["x"].float()[s["ids"][:count].long()] * s["w"][:count, None]
        return {"y": torch.zeros(bags, d, device=at.device).index_add(0, bag, x)}

    return make, launch, want, 1e-2


@cases("rounding", [(1 << 25,), (1 << 17,)], (1000,))
def stochastic_bf16(at: Maker, n: int) -> Parts:
    block, turns = at.size((1024, 4), (64, 2))

    def make() -> Buffers:
        return {
            "x": at.random(n, dtype=F32), "random": words(at, n), "y": at.empty(n, dtype=BF16)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, block * turns),)](
            s["x"], s["random"], s["y"], n, BLOCK=block, TURNS=turns, num_warps=4
        )

    def want(s: Buffers) -> Results:
        bits = s["x"].view(I32) + (s["random"] & 0xFFFF)
        return {"y": (bits & -65536).view(F32)}

    return make, launch, want, 0.0
