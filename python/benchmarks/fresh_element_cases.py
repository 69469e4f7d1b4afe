# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of fresh_element_kernels.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from public_kernels_cases import PROGRAMS, Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, I32, I8, U8 = torch.float32, torch.bfloat16, torch.int32, torch.int8, torch.uint8


def largest_of_blocks(x: torch.Tensor, block: int) -> torch.Tensor:
    """The largest size in each block of a vector."""
    return torch.nn.functional.pad(x.abs(), (0, -len(x) % block)).reshape(-1, block).amax(1)


@cases("rotary", [(16384, 28, 128), (64, 12, 128)], (9, 3, 16))
def rope_sections(at: Maker, tokens: int, heads: int, d: int) -> Parts:
    first, second = d // 8, d // 4 + d // 16

    def make() -> Buffers:
        angle = torch.rand((3, tokens, d // 2), device=at.device) * 6.28
        return {
            "x": at.random(tokens, heads, d, dtype=BF16), "cos": angle.cos(), "sin": angle.sin()
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["x"], s["cos"], s["sin"], tokens, FIRST=first, SECOND=second, H=heads,
            HP=1 << (heads - 1).bit_length(), D=d, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        half = torch.arange(d // 2, device=at.device)
        table = (half >= first).long() + (half >= second).long()
        cos, sin = (s[name][table, :, half].T[:, None] for name in ("cos", "sin"))
        low, high = s["x"].float().chunk(2, 2)
        return {"x": torch.cat([low * cos - high * sin, high * cos + low * sin], 2)}

    return make, launch, want, 1e-2


@cases("rotary", [(16384, 32, 128), (256, 8, 64)], (13, 3, 16))
def rope_angles(at: Maker, tokens: int, heads: int, d: int) -> Parts:
    bt = at.size(16, 8)

    def make() -> Buffers:
        return {
            "x": at.random(tokens, heads, d), "pos": at.integers(2048, tokens),
            "y": at.empty(tokens, heads, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), heads)](
            s["x"], s["pos"], s["y"], tokens, math.log2(10000.0), H=heads, D=d, BT=bt, num_warps=4
        )

    def want(s: Buffers) -> Results:
        pair = torch.arange(d // 2, device=at.device).double()
        angle = s["pos"].double()[:, None] * 10000.0 ** (-2 * pair / d)
        cos, sin = angle.cos().float()[:, None], angle.sin().float()[:, None]
        even, odd = s["x"].float().unflatten(2, (-1, 2)).unbind(3)
        return {"y": torch.stack([even * cos - odd * sin, odd * cos + even * sin], 3).flatten(2)}

    return make, launch, want, 1e-2


@cases("gates", [(8192, 8192), (64, 2880)], (9, 50))
def swiglu_interleaved(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((8, 256), (4, 16))

    def make() -> Buffers:
        return {"x": at.random(m, 2 * n, dtype=BF16) * 4, "y": at.empty(m, n, dtype=BF16)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["x"], s["y"], m, n, 1.702, 7.0, BM=bm, BN=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        gate, up = s["x"].float().unflatten(1, (n, 2)).unbind(2)
        gate, up = gate.clamp(max=7), up.clamp(-7, 7)
        return {"y": gate * torch.sigmoid(1.702 * gate) * (up + 1)}

    return make, launch, want, 1e-2


@cases("gates", [(1 << 25,), (1 << 18,)], (200,))
def geglu_backward_flat(at: Maker, n: int) -> Parts:
    def make() -> Buffers:
        return {name: at.random(n) for name in ("dy", "e", "g")}

    def launch(kernel: Any, s: Buffers) -> Any:
        block = at.size(1024, 64)
        return kernel[(cdiv(n, block),)](s["dy"], s["e"], s["g"], n, BLOCK=block, num_warps=4)

    def want(s: Buffers) -> Results:
        dy, e, g = (s[name].float() for name in ("dy", "e", "g"))
        cdf = 0.5 * (torch.erf(e / math.sqrt(2)) + 1)
        slope = cdf + e * torch.exp(-0.5 * e * e) / math.sqrt(2 * math.pi)
        return {"dy": cdf * e * g, "e": dy * g * slope, "g": dy * cdf * e}

    return make, launch, want, 1e-2


@cases("copies", [(32, 2048, 1024), (8, 128, 256)], (3, 20, 40))
def pad_sequences(at: Maker, batch: int, longest: int, d: int) -> Parts:
    bl, bd = at.size((16, 256), (8, 16))
    starts = [0]
    for b in range(batch):
        starts.append(starts[-1] + longest - 61 * b % longest)

    def make() -> Buffers:
        return {
            "x": at.random(starts[-1], d), "starts": torch.tensor(starts, dtype=I32).to(at.device),
            "y": at.empty(batch, longest, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(longest, bl), cdiv(d, bd), batch)](
            s["x"], s["starts"], s["y"], longest, d, 0.5, BL=bl, BD=bd, num_warps=4
        )

    def want(s: Buffers) -> Results:
        y = torch.full((batch, longest, d), 0.5, device=at.device)
        for b in range(batch):
            y[b, : starts[b + 1] - starts[b]] = s["x"][starts[b] : starts[b + 1]].float()
        return {"y": y}

    return make, launch, want, 1e-6


@cases("copies", [(8192, 8, 128), (64, 8, 128)], (7, 3, 16))
def cache_write_int8(at: Maker, tokens: int, heads: int, d: int) -> Parts:
    page = at.size(16, 4)
    pages = cdiv(2 * tokens, page)

    def make() -> Buffers:
        slots = torch.randperm(pages * page)[:tokens]
        slots[3] = -1
        return {
            "k": at.random(tokens, heads, d, dtype=BF16), "v": at.random(tokens, heads, d, dtype=BF16),
            "q": torch.zeros((pages, heads, page, 2, d), device=at.device, dtype=I8),
            "s": torch.zeros((pages, heads, page, 2), device=at.device), "slots": slots.int().to(at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, heads)](
            s["k"], s["v"], s["q"], s["s"], s["slots"], heads, D=d, PAGE=page, num_warps=1
        )

    def want(s: Buffers) -> Results:
        live = s["slots"] >= 0
        slot = s["slots"][live].long()
        x = torch.stack([s["k"][live], s["v"][live]], 2).float()
        scale = x.abs().amax(3).clamp(min=127e-8) / 127
        q, scales = s["q"].clone(), s["s"].clone()
        q[slot // page, :, slot % page] = torch.floor(x / scale[..., None] + 0.5).to(I8)
        scales[slot // page, :, slot % page] = scale
        return {"q": q, "s": scales}

    return make, launch, want, 1e-5


@cases("gathers", [(8192, 7168, 8), (64, 2048, 6)], (7, 50, 3))
def combine_shared(at: Maker, tokens: int, d: int, top: int) -> Parts:
    block = at.size(1024, 32)

    def make() -> Buffers:
        return {
            "x": at.random(tokens * top, d, dtype=BF16), "w": at.random(tokens, top, dtype=F32),
            "places": torch.randperm(tokens * top).int().reshape(tokens, top).to(at.device),
            "shared": at.random(tokens, d, dtype=BF16), "y": at.empty(tokens, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, cdiv(d, block))](
            s["x"],
            s["w"],
            s["places"],
            s["shared"],
            s["y"],
            2.5,
            d,
            TOP=top,
            BLOCK=block,
            num_warps=4,
        )

    def want(s: Buffers) -> Results:
        y = s["shared"].float()
        for i in range(top):
            y += 2.5 * s["w"][:, i, None] * s["x"][s["places"][:, i].long()].float()
        return {"y": y}

    return make, launch, want, 1e-2


@cases("copies", [(32, 2048, 1024), (4, 200, 300)], (2, 40, 50))
def transpose_tiles(at: Maker, batch: int, m: int, n: int) -> Parts:
    bm, bn = at.size((64, 64), (16, 16))

    def make() -> Buffers:
        return {"x": at.random(batch, m, n), "y": at.empty(batch, n, m)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm) * cdiv(n, bn), batch)](
            s["x"], s["y"], m, n, BM=bm, BN=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": s["x"].float().transpose(1, 2)}

    return make, launch, want, 0.0


@cases("pictures", [(64, 64, 112), (4, 16, 28)], (2, 3, 9))
def max_pool(at: Maker, batch: int, channels: int, size: int) -> Parts:
    half = (size - 1) // 2 + 1

    def make() -> Buffers:
        return {
            "x": at.random(batch, channels, size, size), "y": at.empty(batch, channels, half, half)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        n, block = batch * channels * half * half, at.size(512, 32)
        return kernel[(cdiv(n, block),)](
            s["x"], s["y"], n, size, size, half, half, KERNEL=3, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": torch.nn.functional.max_pool2d(s["x"].float(), 3, 2, 1)}

    return make, launch, want, 0.0


@cases("optimiser", [(1 << 25,), (200000,)], (300,))
def sgd_master(at: Maker, n: int) -> Parts:
    block = at.size(1024, 32)

    def make() -> Buffers:
        return {
            "p": at.empty(n), "master": at.random(n, dtype=F32), "m": at.random(n, dtype=F32),
            "g": at.random(n), "scale": torch.full((1,), 4.0, device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        grid = min(cdiv(n, block), at.size(PROGRAMS * 8, 3))
        return kernel[(grid,)](
            s["p"],
            s["master"],
            s["m"],
            s["g"],
            s["scale"],
            n,
            0.1,
            0.9,
            0.01,
            BLOCK=block,
            num_warps=4,
        )

    def want(s: Buffers) -> Results:
        g = s["g"].float() / 4 + 0.01 * s["master"]
        m = 0.9 * s["m"] + g
        master = s["master"] - 0.1 * (g + 0.9 * m)
        return {"m": m, "master": master, "p": master.half()}

    return make, launch, want, 1e-3


@cases("optimiser", [(1 << 25,), (1 << 17,)], (300,))
def adam_small_states(at: Maker, n: int) -> Parts:
    block = at.size(2048, 64)
    blocks = cdiv(n, block)

    def make() -> Buffers:
        return {
            "p": at.random(n, dtype=BF16), "g": at.random(n, dtype=BF16),
            "q": (at.integers(255, n) - 127).to(I8), "v": (at.integers(255, n) + 1).to(U8),
            "ms": torch.rand(blocks, device=at.device) * 0.01 + 0.001,
            "vs": torch.rand(blocks, device=at.device) * 0.01 + 0.001,
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(blocks,)](
            s["p"], s["g"], s["q"], s["v"], s["ms"], s["vs"], n, 0.01, 0.9, 0.99, 1e-8, BLOCK=block,
            num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        g = s["g"].float()
        ms, vs = (s[name].repeat_interleave(block)[:n] for name in ("ms", "vs"))
        m = 0.9 * s["q"].float() * ms + 0.1 * g
        root = torch.sqrt(0.99 * (s["v"].float() * vs) ** 2 + 0.01 * g * g)
        largest = [largest_of_blocks(x, block) for x in (m, root)]
        new = largest[0] / 127, largest[1] / 255
        q = torch.floor(m / new[0].repeat_interleave(block)[:n] + 0.5).to(I8)
        return {"p": s["p"].float() - 0.01 * m / (root + 1e-8), "q": q, "ms": new[0], "vs": new[1]}

    return make, launch, want, 1e-2


@cases("reductions", [(1 << 26,), (1 << 19,)], (700,))
def squares_strided(at: Maker, n: int) -> Parts:
    block = at.size(2048, 32)
    grid = min(cdiv(n, block), at.size(PROGRAMS * 4, 3))

    def make() -> Buffers:
        return {
            "x": at.random(n), "part": at.empty(grid, dtype=F32), "largest": at.empty(grid, dtype=F32)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](s["x"], s["part"], s["largest"], n, BLOCK=block, num_warps=8)

    def want(s: Buffers) -> Results:
        x = torch.nn.functional.pad(s["x"].float(), (0, cdiv(n, block * grid) * block * grid - n))
        x = x.reshape(-1, grid, block)
        return {"part": x.square().sum((0, 2)), "largest": x.abs().amax((0, 2))}

    return make, launch, want, 1e-4


@cases("quantisation", [(8192, 8192), (256, 1024)], (9, 128))
def fp4_decode(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((8, 256), (4, 64))

    def make() -> Buffers:
        return {
            "q": at.integers(256, m, n // 2, dtype=U8),
            "s": (at.integers(8, m, n // 32) + 124).to(U8), "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), n // bn)](
            s["q"], s["s"], s["y"], m, n, BM=bm, BN=bn, num_warps=4
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        sizes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=at.device)
        codes = torch.stack([s["q"] & 15, s["q"] >> 4], 2).flatten(1).long()
        values = torch.cat([sizes, -sizes])[codes]
        return {"y": values * torch.exp2(s["s"].float() - 127).repeat_interleave(32, 1)}

    return make, launch, want, 0.0


@cases("gathers", [(8192, 4096, 4), (64, 1024, 4)], (7, 50, 4))
def mix_streams(at: Maker, tokens: int, d: int, streams: int) -> Parts:
    block = at.size(512, 32)

    def make() -> Buffers:
        return {
            "x": at.random(tokens, streams, d, dtype=BF16), "add": at.random(tokens, d, dtype=BF16),
            "mix": at.random(tokens, streams, streams, dtype=F32),
            "beta": at.random(tokens, streams, dtype=F32), "y": at.empty(tokens, streams, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, cdiv(d, block))](
            s["x"], s["mix"], s["add"], s["beta"], s["y"], d, S=streams, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        y = s["mix"] @ s["x"].float()
        return {"y": y + s["beta"][..., None] * s["add"].float()[:, None]}

    return make, launch, want, 1e-2


@cases("tiny", [(1024, 8), (64, 4)], (13, 4))
def accept_tokens(at: Maker, requests: int, most: int) -> Parts:
    counts = [(5 * i + 3) % (most + 1) for i in range(requests)]
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)

    def make() -> Buffers:
        draft, target = (at.integers(2, starts[-1]) for _ in "dt")
        target = torch.where(at.integers(4, starts[-1]) > 0, draft, target)
        return {
            "starts": torch.tensor(starts, dtype=I32).to(at.device), "draft": draft, "target": target,
            "bonus": at.integers(9, requests), "out": at.empty(requests, most + 1, dtype=I32),
            "count": at.empty(requests, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(requests,)](
            s["starts"], s["draft"], s["target"], s["bonus"], s["out"], s["count"], most + 1,
            PLACES=1 << most.bit_length(), num_warps=1,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        draft, target, bonus = (s[name].tolist() for name in ("draft", "target", "bonus"))
        out = torch.full((requests, most + 1), -1, dtype=I32)
        for i, count in enumerate(counts):
            pairs = zip(
                draft[starts[i] : starts[i + 1]], target[starts[i] : starts[i + 1]], strict=True
            )
            kept = 0
            for kept, (drafted, token) in enumerate(pairs, 1):
                out[i, kept - 1] = token
                if drafted != token:
                    break
            else:
                out[i, count] = bonus[i]
        return {"out": out.to(at.device), "count": (out >= 0).sum(1).to(at.device)}

    return make, launch, want, 0.0
