# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of unseen_element_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, addresses, cases, cdiv

F32, BF16 = torch.float32, torch.bfloat16


def angles(at: Maker, *shape: int) -> dict[str, torch.Tensor]:
    """Cosines and sines of the same angles."""
    x = torch.rand(shape, device=at.device) * 6
    return {"cos": torch.cos(x), "sin": torch.sin(x)}


def turn(x: torch.Tensor, y: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
    """Turns points (x, y)."""
    x, y, cos, sin = x.float(), y.float(), cos.float(), sin.float()
    return x * cos - y * sin, y * cos + x * sin


@cases("rotary", [(8192, 32, 8, 128), (512, 64, 8, 128)], (5, 3, 1, 16))
def rope_halves(at: Maker, tokens: int, q_heads: int, k_heads: int, d: int) -> Parts:
    def make() -> Buffers:
        table = {name: x.repeat(1, 2) for name, x in angles(at, tokens, d // 2).items()}
        return {"q": at.random(tokens, q_heads, d), "k": at.random(tokens, k_heads, d), **table}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["q"], q_heads * d, s["k"], k_heads * d, s["cos"], s["sin"], tokens, QH=q_heads,
            KH=k_heads, PQH=1 << (q_heads - 1).bit_length(), PKH=1 << (k_heads - 1).bit_length(),
            HD=d, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        half = d // 2
        cos, sin = (s[name][:, None, :half] for name in ("cos", "sin"))
        return {
            name: torch.cat(turn(s[name][..., :half], s[name][..., half:], cos, sin), -1)
            for name in "qk"
        }

    return make, launch, want, 1e-2


@cases("rotary", [(4, 4096, 16, 128), (1, 512, 32, 64)], (2, 13, 2, 16))
def rope_pairs(at: Maker, batch: int, tokens: int, heads: int, d: int) -> Parts:
    bt = at.size(32, 8)

    def make() -> Buffers:
        shape = (batch, tokens, heads, d)
        return {"x": at.random(*shape), "y": at.empty(*shape), **angles(at, tokens, d // 2)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), heads, batch)](
            s["x"], s["cos"], s["sin"], s["y"], tokens, H=heads, D=d, BT=bt, num_warps=4
        )

    def want(s: Buffers) -> Results:
        cos, sin = (s[name][:, None] for name in ("cos", "sin"))
        pairs = turn(s["x"][..., 0::2], s["x"][..., 1::2], cos, sin)
        return {"y": torch.stack(pairs, -1).reshape(s["y"].shape)}

    return make, launch, want, 1e-2


@cases("rotary", [(16384, 24, 128, 64), (256, 40, 64, 32)], (5, 3, 24, 8))
def rope_positions(at: Maker, tokens: int, heads: int, d: int, rotated: int) -> Parts:
    def make() -> Buffers:
        table = angles(at, 4096, rotated // 2)
        return {
            "x": at.random(tokens, heads, d, dtype=BF16),
            "positions": at.integers(4096, tokens, dtype=torch.int64),
            "cache": torch.cat([table["cos"], table["sin"]], 1).to(BF16),
            "y": at.empty(tokens, heads, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, cdiv(heads, 8))](
            s["x"], s["positions"], s["cache"], s["y"], tokens, H=heads, D=d, ROT=rotated, HEADS=8,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        half = rotated // 2
        row = s["cache"][s["positions"]][:, None]
        x = s["x"]
        turned = turn(x[..., :half], x[..., half:rotated], row[..., :half], row[..., half:])
        return {"y": torch.cat([*turned, x[..., rotated:].float()], -1)}

    return make, launch, want, 1e-2


@cases("gates", [(8192, 11008), (64, 4096)], (5, 60))
def geglu(at: Maker, m: int, n: int) -> Parts:
    block = at.size(1024, 64)

    def make() -> Buffers:
        return {"x": at.random(m, 2 * n), "y": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m, cdiv(n, block))](
            s["x"], s["y"], 2 * n, n_cols=n, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        gate, value = s["x"].float().split(n, 1)
        return {"y": torch.nn.functional.gelu(gate, approximate="tanh") * value}

    return make, launch, want, 1e-2


@cases("gates", [(4096, 14336), (128, 4096)], (5, 60))
def swiglu_backward(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {name: at.random(m, n, dtype=BF16) for name in ("dc", "a", "b")}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["dc"], s["a"], s["b"], n, n_cols=n, BLOCK_SIZE=1 << (n - 1).bit_length(),
            num_warps=at.size(16, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        dc, a, b = (s[name].float() for name in ("dc", "a", "b"))
        sig = torch.sigmoid(a)
        return {"a": dc * (sig + a * sig * (1 - sig)) * b, "b": dc * a * sig}

    return make, launch, want, 1e-2


@cases("dropout", [(4096, 8192), (256, 1024)], (9, 200))
def bias_dropout(at: Maker, m: int, n: int) -> Parts:
    block = at.size(256, 32)

    def make() -> Buffers:
        return {"x": at.random(m, n), "bias": at.random(n), "out": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m * n, 4 * block),)](
            s["x"], s["bias"], s["out"], m * n, n, 0.5, 1234, BLOCK=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"dropped": s["x"].float() + s["bias"].float()}

    return make, launch, want, 1e-2


@cases("embedding", [(16384, 2048, 32000), (4096, 1024, 1000)], (13, 40, 7))
def embedding_gradient(at: Maker, tokens: int, d: int, rows: int) -> Parts:
    bt, bd = at.size((4, 512), (4, 32))

    def make() -> Buffers:
        return {
            "grad": at.random(tokens, d), "ids": at.integers(rows, tokens, dtype=torch.int64),
            "out": torch.zeros((rows, d), device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), cdiv(d, bd))](
            s["grad"], s["ids"], s["out"], tokens, d, 3, BLOCK_T=bt, BLOCK_D=bd, num_warps=4
        )

    def want(s: Buffers) -> Results:
        out = s["out"].clone().index_add_(0, s["ids"], s["grad"].float())
        out[3] = 0
        return {"out": out}

    return make, launch, want, 1e-2


@cases("gathered sum", [(8192, 4096, 8), (1024, 7168, 8)], (7, 96, 3))
def moe_combine(at: Maker, tokens: int, d: int, top: int) -> Parts:
    def make() -> Buffers:
        place = torch.randperm(tokens * top).reshape(tokens, top).int()
        place[::5, 1] = -1
        return {
            "y": at.random(tokens * top, d, dtype=BF16), "place": place.to(at.device),
            "w": torch.rand((tokens, top), device=at.device), "out": at.empty(tokens, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["y"], s["w"], s["place"], s["out"], D=d, TOP=top, BD=at.size(1024, 64), num_warps=4
        )

    def want(s: Buffers) -> Results:
        # A part at a time: all rows in float32 would take too much memory.
        outs = []
        for place, w in zip(s["place"].split(2048), s["w"].split(2048)):
            rows = s["y"][place.clamp(min=0).long()].float()
            outs.append((rows * torch.where(place < 0, 0.0, w)[..., None]).sum(1))
        return {"out": torch.cat(outs)}

    return make, launch, want, 2e-2


@cases("copies", [(4096, 8, 128), (256, 8, 128)], (9, 3, 16))
def kv_copy(at: Maker, tokens: int, heads: int, d: int) -> Parts:
    page, x = 16, 8
    pages = cdiv(tokens, page) * 2

    def make() -> Buffers:
        slots = torch.randperm(pages * page)[:tokens]
        slots[1] = -1
        zeros = torch.zeros((pages, heads, d * page), device=at.device, dtype=torch.float16)
        return {
            "key": at.random(tokens, heads, d), "value": at.random(tokens, heads, d),
            "k": zeros, "v": zeros.clone(), "slots": slots.to(at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["key"], s["value"], s["k"], s["v"], s["slots"], heads * d, HD=heads * d, D=d,
            PAGE=page, X=x, BLOCK=1 << (heads * d - 1).bit_length(), num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        live = s["slots"] >= 0
        slots = s["slots"][live]
        k = torch.zeros(pages, page, heads, d // x, x, device=at.device)
        v = torch.zeros(pages, page, heads, d, device=at.device)
        k[slots // page, slots % page] = s["key"][live].float().reshape(-1, heads, d // x, x)
        v[slots // page, slots % page] = s["value"][live].float()
        return {
            "k": k.permute(0, 2, 3, 1, 4).reshape(pages, heads, -1),
            "v": v.permute(0, 2, 3, 1).reshape(pages, heads, -1),
        }

    return make, launch, want, 1e-3


@cases("copies", [(8, 2048, 32, 64), (2, 512, 16, 128)], (2, 37, 2, 24))
def permute_heads(at: Maker, batch: int, tokens: int, heads: int, d: int) -> Parts:
    bt, bd = at.size((64, 64), (16, 16))

    def make() -> Buffers:
        return {"x": at.random(batch, tokens, heads, d), "y": at.empty(batch, heads, d, tokens)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), cdiv(d, bd), batch * heads)](
            s["x"], s["y"], tokens, heads, D=d, BT=bt, BD=bd, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": s["x"].permute(0, 2, 3, 1).float()}

    return make, launch, want, 1e-3


@cases("histogram", [(1 << 24, 256), (1 << 16, 64)], (300, 16))
def histogram(at: Maker, n: int, bins: int) -> Parts:
    block = at.size(4096, 64)

    def make() -> Buffers:
        return {
            "ids": at.integers(bins, n),
            "out": torch.zeros((bins,), device=at.device, dtype=torch.int32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        grid = (cdiv(n, block),)
        return kernel[grid](s["ids"], s["out"], n, BINS=bins, BLOCK=block, num_warps=8)

    def want(s: Buffers) -> Results:
        return {"out": torch.bincount(s["ids"], minlength=bins)}

    return make, launch, want, 0.0


@cases("segments", [(4096, 256, 16), (512, 1024, 64)], (5, 40, 6))
def segment_sum(at: Maker, segments: int, d: int, average: int) -> Parts:
    br, bd = at.size((8, 128), (4, 32))

    def make() -> Buffers:
        counts = torch.randint(0, 2 * average + 1, (segments,))
        starts = torch.cat([torch.tensor([0]), counts.cumsum(0)]).int()
        return {
            "x": at.random(int(starts[-1]), d, dtype=F32), "starts": starts.to(at.device),
            "out": at.empty(segments, d, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(segments, cdiv(d, bd))](
            s["x"], s["starts"], s["out"], d, BLOCK_R=br, BLOCK_D=bd, num_warps=4
        )

    def want(s: Buffers) -> Results:
        counts = s["starts"].diff()
        row = torch.repeat_interleave(torch.arange(segments, device=at.device), counts)
        out = torch.zeros(segments, d, device=at.device).index_add_(0, row, s["x"])
        return {"out": out / counts.clamp(min=1)[:, None]}

    return make, launch, want, 1e-4


@cases("optimiser", [(24, 1 << 20), (200, 5000)], (3, 300))
def adam_list(at: Maker, count: int, largest: int) -> Parts:
    block = at.size(1024, 64)
    sizes = [max(1, largest - 977 * i % largest) for i in range(count)]

    def make() -> Buffers:
        s: Buffers = {}
        for i, size in enumerate(sizes):
            for name in "pgmv":
                s[f"{name}{i}"] = at.random(size, dtype=F32)
            s[f"v{i}"].abs_()
        tensors = [s[f"{name}{i}"] for name in "pgmv" for i in range(count)]
        blocks = [(i, part) for i, size in enumerate(sizes) for part in range(cdiv(size, block))]
        s["addresses"] = addresses(tensors)
        s["sizes"] = torch.tensor(sizes, dtype=torch.int32).to(at.device)
        s["blocks"] = torch.tensor(blocks, dtype=torch.int32).to(at.device)
        return s

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(len(s["blocks"]),)](
            s["addresses"], s["sizes"], s["blocks"], 1e-2, 0.9, 0.99, 1e-8, 0.01, 0.19, 0.0199,
            LISTS=count, BLOCK=block, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out: Results = {}
        for i in range(count):
            p, g, m, v = (s[f"{name}{i}"] for name in "pgmv")
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            step = (m / 0.19) / (torch.sqrt(v / 0.0199) + 1e-8)
            out |= {f"p{i}": p * (1 - 1e-4) - 1e-2 * step, f"m{i}": m, f"v{i}": v}
        return out

    return make, launch, want, 1e-4


@cases("tiny", [(128, 768), (1024, 1024)], (5, 60))
def tiny_bias_gelu(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {"x": at.random(m, n), "bias": at.random(n), "y": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        block = at.size(1024, 64)
        return kernel[(cdiv(m * n, block),)](
            s["x"], s["bias"], s["y"], m * n, n, BLOCK_SIZE=block, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": torch.nn.functional.gelu(s["x"].float() + s["bias"].float())}

    return make, launch, want, 1e-2
