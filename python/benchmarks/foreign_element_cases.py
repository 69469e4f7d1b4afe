# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of foreign_element_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn
I32, I64 = torch.int32, torch.int64


def list_starts(at: Maker, parts: int, total: int) -> torch.Tensor:
    """Where parts of a list begin and end, the first of which is empty."""
    cuts = torch.randint(0, total + 1, (parts - 2,)).sort().values
    return torch.cat([torch.tensor([0, 0]), cuts, torch.tensor([total])]).int().to(at.device)


@cases("rotary", [(16, 64, 64, 16, 64), (1, 14, 14, 12, 64)], (2, 3, 5, 3, 16))
def rope_axial(at: Maker, batch: int, height: int, width: int, heads: int, d: int) -> Parts:
    quarter = d // 4

    def make() -> Buffers:
        return {
            "x": at.random(batch, height * width, heads, d),
            "y": at.empty(batch, height * width, heads, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(height * width, batch)](
            s["x"], s["y"], width, 0.5, H=heads, BH=1 << (heads - 1).bit_length(), Q=quarter,
            num_warps=at.size(2, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        tokens = torch.arange(height * width, device=at.device)
        frequency = torch.exp2(-0.5 * torch.arange(quarter, device=at.device))
        parts = []
        for place, x in zip((tokens // width, tokens % width), s["x"].float().chunk(2, 3)):
            angle = (place[:, None] * frequency)[:, None]
            a, b = x.chunk(2, 3)
            parts += [a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()]
        return {"y": torch.cat(parts, 3)}

    return make, launch, want, 1e-2


@cases("weighted sums", [(16384, 4096, 8), (128, 2048, 4)], (9, 100, 3))
def combine_topk_loop(at: Maker, tokens: int, d: int, top: int) -> Parts:
    block = at.size(1024, 32)

    def make() -> Buffers:
        place = torch.randperm(tokens * top, device=at.device).reshape(tokens, top).int()
        return {
            "x": at.random(tokens * top, d, dtype=BF16),
            "place": torch.where(at.integers(6, tokens, top) == 0, -1, place),
            "w": torch.rand((tokens, top), device=at.device), "y": at.empty(tokens, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, cdiv(d, block))](
            s["x"], s["place"], s["w"], s["y"], d, TOP=top, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        y = torch.zeros(tokens, d, device=at.device)
        for k in range(top):
            place = s["place"][:, k].long()
            w = torch.where(place >= 0, s["w"][:, k], 0.0)
            y += s["x"][place.clamp(min=0)].float() * w[:, None]
        return {"y": y}

    return make, launch, want, 1e-2


@cases("experts", [(16384, 4096, 4), (128, 2048, 2)], (9, 100, 2))
def permute_tokens(at: Maker, tokens: int, d: int, top: int) -> Parts:
    def make() -> Buffers:
        place = torch.randperm(tokens * top, device=at.device).reshape(tokens, top).int()
        return {
            "x": at.random(tokens, d, dtype=BF16),
            "place": torch.where(at.integers(6, tokens, top) == 0, -1, place),
            "y": torch.zeros(tokens * top, d, device=at.device, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["x"], s["place"], s["y"], d, TOP=top, BLOCK=at.size(1024, 32), num_warps=4
        )

    def want(s: Buffers) -> Results:
        y = s["y"].clone()
        for k in range(top):
            live = s["place"][:, k] >= 0
            y[s["place"][live, k].long()] = s["x"][live]
        return {"y": y}

    return make, launch, want, 0.0


@cases("weighted sums", [(8192, 262144, 100000, 512), (128, 1024, 4096, 128)], (5, 20, 30, 40))
def bag_max(at: Maker, bags: int, total: int, rows: int, d: int) -> Parts:
    block = at.size(512 if d > 256 else 128, 16)

    def make() -> Buffers:
        return {
            "x": at.random(rows, d), "ids": at.integers(rows, total),
            "starts": list_starts(at, bags, total), "y": at.empty(bags, d),
            "at": at.empty(bags, d, dtype=I32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(bags, cdiv(d, block))](
            *(s[name] for name in ("x", "ids", "starts", "y", "at")), d, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        # The first of equal numbers is kept, and its row is what is stored.
        ids, starts = s["ids"].long(), s["starts"].long()
        to = torch.repeat_interleave(torch.arange(bags, device=at.device), starts.diff())
        x = s["x"][ids].float()
        best = torch.full((bags, d), float("-inf"), device=at.device)
        best.index_reduce_(0, to, x, "amax")
        turns = torch.arange(total, device=at.device)[:, None]
        turns = torch.where(x == best[to], turns, total)
        first = torch.full((bags, d), total, device=at.device)
        first.index_reduce_(0, to, turns, "amin")
        is_empty = (starts.diff() == 0)[:, None]
        y = torch.where(is_empty, 0.0, best)
        places = torch.where(is_empty, -1, ids[first.clamp(max=total - 1)])
        return {"y": y, "at": places}

    return make, launch, want, 0.0


@cases("weighted sums", [(65536, 1000000, 4, 64), (1024, 8192, 4, 32)], (7, 40, 2, 16))
def graph_attention(at: Maker, nodes: int, edges: int, heads: int, d: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(nodes, heads, d), "source": at.integers(nodes, edges),
            "left": at.random(nodes, heads, dtype=F32), "right": at.random(nodes, heads, dtype=F32),
            "starts": list_starts(at, nodes, edges), "y": at.empty(nodes, heads, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("x", "source", "left", "right", "starts", "y")
        return kernel[(nodes, heads)](
            *(s[name] for name in names), H=heads, D=d, BE=at.size(16, 8), num_warps=at.size(1, 4)
        )

    def want(s: Buffers) -> Results:
        source, starts = s["source"].long(), s["starts"].long()
        to = torch.repeat_interleave(torch.arange(nodes, device=at.device), starts.diff())
        scores = torch.nn.functional.leaky_relu(s["left"][to] + s["right"][source], 0.2).exp()
        totals = torch.zeros(nodes, heads, device=at.device).index_add_(0, to, scores)
        rows = s["x"].float()[source] * scores[..., None]
        sums = torch.zeros(nodes, heads, d, device=at.device).index_add_(0, to, rows)
        return {"y": torch.where(totals[..., None] > 0, sums / totals[..., None], 0.0)}

    return make, launch, want, 1e-2


@cases("optimisers", [(8192, 8192), (256, 1024)], (20, 100))
def adafactor_apply(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((16, 256) if m > 1024 else (8, 128), (8, 32))

    def make() -> Buffers:
        row = torch.rand(m, device=at.device) + 0.1
        return {
            "p": at.random(m, n, dtype=F32), "g": at.random(m, n, dtype=BF16), "row": row,
            "col": torch.rand(n, device=at.device) + 0.1, "mean": row.mean().reshape(1),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            *(s[name] for name in ("p", "g", "row", "col", "mean")), m, n, 0.01, 0.1, 1e-8, BM=bm,
            BN=bn, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        second = (s["row"] / s["mean"])[:, None] * s["col"]
        return {"p": s["p"] * (1 - 0.01 * 0.1) - 0.01 * s["g"].float() / second.sqrt()}

    return make, launch, want, 1e-4


@cases("pictures", [(16, 112, 112, 256, 3, 2), (2, 28, 28, 64, 3, 2)], (2, 7, 5, 12, 3, 2))
def avg_pool_last(
    at: Maker, batch: int, height: int, width: int, c: int, size: int, stride: int
) -> Parts:
    bp, bc = at.size((16, 64), (4, 8))
    oh, ow = (height - 1) // stride + 1, (width - 1) // stride + 1

    def make() -> Buffers:
        return {"x": at.random(batch, height, width, c), "y": at.empty(batch, oh, ow, c)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(oh * ow, bp), cdiv(c, bc), batch)](
            s["x"], s["y"], height, width, oh, ow, c, S=size, STRIDE=stride, BP=bp, BC=bc,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        y = torch.nn.functional.avg_pool2d(
            s["x"].float().permute(0, 3, 1, 2), size, stride, size // 2, count_include_pad=False
        )
        return {"y": y.permute(0, 2, 3, 1)}

    return make, launch, want, 1e-2


@cases("caches", [(4096, 8, 2048), (64, 8, 1024)], (5, 4, 40))
def cache_move_pages(at: Maker, pages: int, heads: int, size: int) -> Parts:
    parts = 2

    def make() -> Buffers:
        order = torch.randperm(pages, device=at.device).int()
        return {
            "cache": at.random(pages, heads, size, dtype=BF16),
            "out": torch.zeros(pages, heads, size, device=at.device, dtype=BF16),
            "source": torch.where(at.integers(6, pages) == 0, -1, order),
            "to": torch.randperm(pages, device=at.device).int(),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(pages, parts)](
            s["cache"], s["out"], s["source"], s["to"], size, heads // parts,
            BLOCK=at.size(1024, 16), num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out, live = s["out"].clone(), s["source"] >= 0
        out[s["to"][live].long()] = s["cache"][s["source"][live].long()]
        return {"out": out}

    return make, launch, want, 0.0


@cases("token shifts", [(8, 4096, 2560), (1, 128, 1024)], (2, 9, 40))
def token_shift_mix(at: Maker, batch: int, t: int, d: int) -> Parts:
    bt, bd = at.size((8, 256), (4, 16))

    def make() -> Buffers:
        return {
            "x": at.random(batch, t, d, dtype=BF16), "mix": torch.rand((3, d), device=at.device),
            **{name: at.empty(batch, t, d, dtype=BF16) for name in "rkv"},
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, bd), cdiv(t, bt), batch)](
            *(s[name] for name in ("x", "mix", "r", "k", "v")), t, d, BT=bt, BD=bd, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        change = torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :t] - x
        return {name: x + change * mix for name, mix in zip("rkv", s["mix"])}

    return make, launch, want, 1e-2


@cases("complex numbers", [(64, 524288), (8, 8192)], (3, 70))
def complex_multiply(at: Maker, rows: int, period: int) -> Parts:
    n = rows * period
    block = at.size(512, 32)

    def make() -> Buffers:
        return {
            "x": at.random(rows, period, 2, dtype=F32), "w": at.random(period, 2, dtype=F32),
            "y": at.empty(rows, period, 2, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, block),)](
            s["x"], s["w"], s["y"], n, period, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        y = torch.view_as_complex(s["x"]) * torch.view_as_complex(s["w"])
        return {"y": torch.view_as_real(y)}

    return make, launch, want, 1e-4


@cases("unpacking", [(7168, 18432), (512, 1000)], (40, 24))
def block_dequant(at: Maker, m: int, n: int) -> Parts:
    block = at.size(128, 16)

    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=F32).to(FP8),
            "s": torch.rand((cdiv(m, block), cdiv(n, block)), device=at.device),
            "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, block), cdiv(n, block))](
            s["x"], s["s"], s["y"], m, n, BLOCK=block, num_warps=at.size(8, 4)
        )

    def want(s: Buffers) -> Results:
        scale = s["s"].repeat_interleave(block, 0).repeat_interleave(block, 1)
        return {"y": s["x"].float() * scale[:m, :n]}

    return make, launch, want, 1e-2


@cases("pairs", [(16, 400, 60, 512), (2, 40, 24, 256)], (2, 5, 7, 20))
def transducer_joint(at: Maker, batch: int, t: int, u: int, d: int) -> Parts:
    bu, bd = at.size((16, 256), (4, 16))

    def make() -> Buffers:
        return {
            "f": at.random(batch, t, d), "g": at.random(batch, u, d),
            "f_length": at.integers(t, batch) + 1, "g_length": at.integers(u, batch) + 1,
            "y": at.empty(batch, t, u, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(t, cdiv(u, bu), batch)](
            *(s[name] for name in ("f", "g", "f_length", "g_length", "y")), t, u, d, BU=bu, BD=bd,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        y = torch.relu(s["f"].float()[:, :, None] + s["g"].float()[:, None])
        known_t = torch.arange(t, device=at.device) < s["f_length"][:, None]
        known_u = torch.arange(u, device=at.device) < s["g_length"][:, None]
        return {"y": torch.where((known_t[:, :, None] & known_u[:, None])[..., None], y, 0.0)}

    return make, launch, want, 1e-2
