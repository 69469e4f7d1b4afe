# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of held_out_element_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, addresses, cases, cdiv

F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn


@cases("rotary", [(4, 4096, 32, 128), (2, 256, 16, 64)], (2, 13, 3, 16))
def rope_tokens(at: Maker, batch: int, tokens: int, heads: int, d: int) -> Parts:
    bt = at.size(32, 8)

    def make() -> Buffers:
        angle = torch.rand((tokens, d // 2), device=at.device) * 6.28
        return {
            "x": at.random(batch, tokens, heads, d), "cos": angle.cos().half(),
            "sin": angle.sin().half(), "y": at.empty(batch, tokens, heads, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), heads, batch)](
            s["x"], s["cos"], s["sin"], s["y"], tokens, -1.0, H=heads, D=d, BT=bt, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x0, x1 = s["x"].float().chunk(2, 3)
        cos, sin = s["cos"].float()[:, None], -s["sin"].float()[:, None]
        return {"y": torch.cat([x0 * cos - x1 * sin, x0 * sin + x1 * cos], 3)}

    return make, launch, want, 1e-2


@cases("gradients", [(16384, 2048), (512, 1024)], (13, 50))
def layer_scale_backward(at: Maker, m: int, n: int) -> Parts:
    rows, block = at.size((32, 1024), (4, 32))

    def make() -> Buffers:
        return {
            "dy": at.random(m, n), "x": at.random(m, n), "gamma": at.random(n, dtype=F32),
            "dx": at.empty(m, n), "part": at.empty(cdiv(m, rows), n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, rows), cdiv(n, block))](
            s["dy"], s["x"], s["gamma"], s["dx"], s["part"], m, n, ROWS=rows, BLOCK=block,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        dy, x = s["dy"].float(), s["x"].float()
        part = torch.stack([one.sum(0) for one in (dy * x).split(rows)])
        return {"dx": dy * s["gamma"], "part": part}

    return make, launch, want, 1e-2


@cases("quantisation", [(1 << 26, 64), (1 << 18, 128)], (200, 16))
def codebook_weights(at: Maker, n: int, group: int) -> Parts:
    block = at.size(1024, 32)

    def make() -> Buffers:
        return {
            "codes": at.integers(256, n // 2, dtype=torch.uint8),
            "book": at.random(16, dtype=F32).sort()[0],
            "scale": torch.rand((cdiv(n, group),), device=at.device) + 0.1,
            "out": at.empty(n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n // 2, block),)](
            s["codes"], s["book"], s["scale"], s["out"], n, GROUP=group, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        codes = s["codes"].int()
        values = s["book"][torch.stack([codes >> 4, codes & 15], 1).reshape(-1)]
        return {"out": values * s["scale"].repeat_interleave(group)[:n]}

    return make, launch, want, 1e-2


@cases("dropout", [(8192, 4096), (128, 2048)], (7, 200))
def dropout_rows(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n), "out": at.empty(m, n), "seeds": at.integers(1 << 30, m)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["out"], s["seeds"], n, n, 0.5, BLOCK=at.size(1024, 64), num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"dropped": s["x"].float()}

    return make, launch, want, 1e-2


@cases("embedding", [(16384, 512, 20, 100000), (512, 128, 8, 5000)], (5, 40, 4, 9))
def embedding_bag(at: Maker, bags: int, d: int, average: int, rows: int) -> Parts:
    block = at.size(512 if d > 256 else 128, 32)

    def make() -> Buffers:
        counts = torch.randint(0, 2 * average + 1, (bags,))
        starts = torch.cat([torch.tensor([0]), counts.cumsum(0)])
        count = int(starts[-1])
        return {
            "table": at.random(rows, d), "ids": at.integers(rows, count, dtype=torch.int64),
            "starts": starts.to(at.device), "weights": at.random(count, dtype=F32),
            "out": at.empty(bags, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(bags, cdiv(d, block))](
            s["table"], s["ids"], s["starts"], s["weights"], s["out"], D=d, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        bag = torch.repeat_interleave(torch.arange(bags, device=at.device), s["starts"].diff())
        rows = s["table"][s["ids"]].float() * s["weights"][:, None]
        return {"out": torch.zeros(bags, d, device=at.device).index_add_(0, bag, rows)}

    return make, launch, want, 1e-2


@cases("copies", [(8192, 4096, 8), (256, 2048, 4)], (7, 50, 3))
def spread_rows(at: Maker, tokens: int, d: int, top: int) -> Parts:
    def make() -> Buffers:
        places = torch.randperm(tokens * top).reshape(tokens, top)
        places[::5, 1] = -1
        return {
            "x": at.random(tokens, d, dtype=BF16), "scale": at.random(tokens, dtype=F32),
            "places": places.int().to(at.device),
            "y": torch.zeros((tokens * top, d), device=at.device, dtype=BF16),
            "y_scale": torch.zeros((tokens * top,), device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["x"], s["scale"], s["places"], s["y"], s["y_scale"], d, TOP=top,
            BLOCK=1 << (d - 1).bit_length(), num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        token, slot = (s["places"] >= 0).nonzero(as_tuple=True)
        place = s["places"][token, slot].long()
        y, y_scale = torch.zeros_like(s["y"]), torch.zeros_like(s["y_scale"])
        y[place], y_scale[place] = s["x"][token], s["scale"][token]
        return {"y": y, "y_scale": y_scale}

    return make, launch, want, 1e-6


@cases("copies", [(8192, 8, 128), (128, 16, 64)], (9, 3, 16))
def cache_write_fp8(at: Maker, tokens: int, heads: int, d: int) -> Parts:
    bh = at.size(4, 2)

    def make() -> Buffers:
        slots = torch.randperm(tokens * 2)[:tokens]
        slots[2] = -1
        return {
            "k": at.random(tokens, heads, d, dtype=BF16), "v": at.random(tokens, heads, d, dtype=BF16),
            "q": torch.zeros((2, tokens * 2, heads, d), device=at.device).to(FP8),
            "slots": slots.to(at.device),
            # Powers of two: the quotients are exact.
            "k_scale": torch.full((1,), 0.25, device=at.device),
            "v_scale": torch.full((1,), 0.5, device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, cdiv(heads, bh))](
            s["k"], s["v"], s["q"][0], s["q"][1], s["slots"], s["k_scale"], s["v_scale"], heads * d,
            H=heads, D=d, BH=bh, num_warps=1,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        live = s["slots"] >= 0
        out = torch.zeros(2, tokens * 2, heads, d, device=at.device)
        out[0, s["slots"][live]] = s["k"][live].float() / 0.25
        out[1, s["slots"][live]] = s["v"][live].float() / 0.5
        return {"q": out.clamp(-448, 448).to(FP8)}

    return make, launch, want, 0.0


@cases("copies", [(32, 4096, 1024), (4, 512, 1024)], (3, 37, 40))
def cache_read_pages(at: Maker, batch: int, longest: int, hd: int) -> Parts:
    page = at.size(16, 8)
    pages = cdiv(longest, page)
    lengths = [longest - 101 * i % (longest // 2) for i in range(batch)]

    def make() -> Buffers:
        table = torch.randperm(batch * pages).reshape(batch, pages).int()
        return {
            "cache": at.random(batch * pages, page, hd), "table": table.to(at.device),
            "lengths": torch.tensor(lengths, dtype=torch.int32).to(at.device),
            # Rows beyond a length are not stored.
            "out": torch.zeros((batch, longest, hd), device=at.device, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(pages, batch)](
            s["cache"], s["table"], s["lengths"], s["out"], pages, longest, HD=hd, PAGE=page,
            BLOCK=at.size(256, 32), num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out = torch.zeros(batch, longest, hd, device=at.device)
        for b, length in enumerate(lengths):
            rows = s["cache"][s["table"][b].long()].reshape(-1, hd)
            out[b, :length] = rows[:length].float()
        return {"out": out}

    return make, launch, want, 1e-2


@cases("optimiser", [(24, 1 << 20), (150, 6000)], (3, 300))
def lion_list(at: Maker, count: int, largest: int) -> Parts:
    sizes = [max(1, largest - 977 * i % largest) for i in range(count)]

    def make() -> Buffers:
        s: Buffers = {}
        for i, size in enumerate(sizes):
            s[f"p{i}"] = at.random(size, dtype=F32)
            # An odd and an even number of steps: their weighted sum is never about 0.
            s[f"g{i}"] = ((at.integers(64, size) - 32) * 2 / 16).to(BF16)
            s[f"m{i}"] = ((at.integers(64, size) - 32) * 2 + 1) / 16
        for name in "pgm":
            s[name] = addresses([s[f"{name}{i}"] for i in range(count)])
        return {**s, "sizes": torch.tensor(sizes, dtype=torch.int32).to(at.device)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(at.size(16 if largest > 10000 else 2, 2), count)](
            s["p"], s["g"], s["m"], s["sizes"], 1e-2, 0.9, 0.99, 0.1, BLOCK=at.size(1024, 64),
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out: Results = {}
        for i in range(count):
            p, g, m = (s[f"{name}{i}"].float() for name in "pgm")
            step = torch.sign(0.9 * m + 0.1 * g)
            out |= {f"p{i}": p * (1 - 1e-3) - 1e-2 * step, f"m{i}": 0.99 * m + 0.01 * g}
        return out

    return make, launch, want, 1e-5


@cases("segments", [(32768, 8, 40), (1024, 4, 12)], (7, 4, 9))
def edge_softmax(at: Maker, nodes: int, heads: int, average: int) -> Parts:
    def make() -> Buffers:
        counts = torch.randint(0, 2 * average + 1, (nodes,))
        starts = torch.cat([torch.tensor([0]), counts.cumsum(0)]).int()
        edges = int(starts[-1])
        return {
            "starts": starts.to(at.device), "x": at.random(edges, heads, dtype=F32),
            "y": at.empty(edges, heads, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(nodes,)](
            s["starts"], s["x"], s["y"], HEADS=heads, BLOCK=at.size(32, 8), num_warps=at.size(1, 4)
        )

    def want(s: Buffers) -> Results:
        node = torch.repeat_interleave(
            torch.arange(nodes, device=at.device), s["starts"].long().diff()
        )
        total = torch.zeros(nodes, heads, device=at.device).index_add_(0, node, s["x"].exp())
        return {"y": s["x"].exp() / total[node]}

    return make, launch, want, 1e-4


@cases("tiny", [(4096, 64), (512, 128)], (300, 8))
def tiny_offsets(at: Maker, n: int, experts: int) -> Parts:
    def make() -> Buffers:
        return {
            "ids": at.integers(experts, n), "counts": at.empty(experts, dtype=torch.int32),
            "offsets": at.empty(experts, dtype=torch.int32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(1,)](
            s["ids"], s["counts"], s["offsets"], n, E=experts, BLOCK=at.size(128, 32), num_warps=8
        )

    def want(s: Buffers) -> Results:
        counts = torch.bincount(s["ids"], minlength=experts)
        return {"counts": counts, "offsets": counts.cumsum(0) - counts}

    return make, launch, want, 0.0
