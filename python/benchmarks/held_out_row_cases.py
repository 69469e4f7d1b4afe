# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of held_out_row_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import PROGRAMS, Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn


def next_power(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


def log_probabilities(at: Maker, m: int, n: int) -> torch.Tensor:
    """Logarithms of probabilities, row by row."""
    return torch.log_softmax(at.random(m, n, dtype=F32), 1).to(BF16)


def codes(values: torch.Tensor) -> torch.Tensor:
    """Numbers as 8-bit floats."""
    return values.clamp(-448, 448).to(FP8)


@cases("softmax", [(32, 2048), (16, 512)], (2, 45))
def softmax_causal(at: Maker, heads: int, tokens: int) -> Parts:
    def make() -> Buffers:
        return {"x": at.random(heads, tokens, tokens), "y": at.empty(heads, tokens, tokens)}

    def launch(kernel: Any, s: Buffers) -> Any:
        block = at.size(1024 if tokens > 1024 else 512, 16)
        return kernel[(tokens, heads)](s["x"], s["y"], tokens, 0.125, BLOCK=block, num_warps=4)

    def want(s: Buffers) -> Results:
        keep = torch.ones(tokens, tokens, dtype=torch.bool, device=at.device).tril()
        x = torch.where(keep, s["x"].float() * 0.125, float("-inf"))
        return {"y": torch.softmax(x, -1)}

    return make, launch, want, 1e-2


@cases("softmax", [(16384, 4000), (1823, 781)], (13, 50))
def softmax_persistent(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {"x": at.random(m, n, dtype=F32), "y": at.empty(m, n, dtype=F32)}

    def launch(kernel: Any, s: Buffers) -> Any:
        grid = min(m, at.size(PROGRAMS * 4, 3))
        return kernel[(grid,)](
            s["y"], s["x"], n, n, m, n, BLOCK_SIZE=next_power(n), num_stages=at.size(4, 2),
            num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"y": torch.softmax(s["x"], 1)}

    return make, launch, want, 1e-3


@cases("softmax", [(131072, 200), (4096, 64)], (13, 20))
def softmax_backward_tile(at: Maker, m: int, n: int) -> Parts:
    tile = at.size(8, 4)

    def make() -> Buffers:
        y = torch.softmax(at.random(m, n, dtype=F32), 1).half()
        return {"y": y, "dy": at.random(m, n), "dx": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, tile),)](
            s["y"], s["dy"], s["dx"], m, n, TILE_M=tile, TILE_N=next_power(n), num_warps=4
        )

    def want(s: Buffers) -> Results:
        y, dy = s["y"].float(), s["dy"].float()
        return {"dx": y * (dy - (y * dy).sum(1, keepdim=True))}

    return make, launch, want, 1e-2


@cases("sampling", [(1024, 128256), (64, 32000)], (7, 300))
def lse_argmax(at: Maker, m: int, n: int) -> Parts:
    block = at.size(4096, 64)

    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "lse": at.empty(m, dtype=F32),
            "best": at.empty(m, dtype=torch.int32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](s["x"], s["lse"], s["best"], n, 0.8, BLOCK=block, num_warps=8)

    def want(s: Buffers) -> Results:
        x = s["x"].float() / 0.8
        # torch's argmax promises no place among equals.
        first = torch.where(x == x.max(1, keepdim=True)[0], torch.arange(n, device=at.device), n)
        return {"lse": torch.logsumexp(x, 1), "best": first.min(1)[0]}

    return make, launch, want, 1e-3


@cases("cross entropy", [(4096, 50257), (512, 32000)], (9, 300))
def loss_with_z(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        labels = at.integers(n, m, dtype=torch.int64)
        labels[::7] = -100
        return {
            "x": at.random(m, n, dtype=BF16), "labels": labels,
            **{name: at.empty(m, dtype=F32) for name in ("loss", "z", "lse")},
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["labels"], s["loss"], s["z"], s["lse"], n, n, 1e-4, -100,
            BLOCK=at.size(2048, 64), num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        lse, live = torch.logsumexp(s["x"].float(), 1), s["labels"] != -100
        at_label = s["x"].float().gather(1, s["labels"].clamp(min=0)[:, None])[:, 0]
        z = torch.where(live, 1e-4 * lse * lse, 0.0)
        return {"lse": lse, "z": z, "loss": torch.where(live, lse - at_label + z, 0.0)}

    return make, launch, want, 1e-3


@cases("cross entropy", [(4096, 32000), (64, 8192)], (9, 300))
def loss_backward_blocks(at: Maker, m: int, n: int) -> Parts:
    block = at.size(4096, 64)

    def make() -> Buffers:
        labels = at.integers(n, m, dtype=torch.int64)
        labels[::7] = -100
        x = at.random(m, n, dtype=BF16)
        lse = torch.cat([torch.logsumexp(part.float() * 0.5, 1) for part in x.split(1024)])
        return {
            "x": x, "lse": lse, "labels": labels, "dloss": at.random(m, dtype=F32),
            "dx": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m, cdiv(n, block))](
            s["dx"], s["dloss"], s["x"], s["lse"], s["labels"], n, n, 0.5, BLOCK=block, num_warps=8
        )

    def want(s: Buffers) -> Results:
        live = s["labels"] != -100
        probs = torch.exp(s["x"].float() * 0.5 - s["lse"][:, None])
        probs[live.nonzero()[:, 0], s["labels"][live]] -= 1.0
        return {"dx": torch.where(live, s["dloss"], 0.0)[:, None] * 0.5 * probs}

    return make, launch, want, 1e-2


@cases("divergence", [(2048, 32000), (256, 8192)], (9, 300))
def divergence(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": log_probabilities(at, m, n), "y": log_probabilities(at, m, n),
            "grad": at.empty(m, n, dtype=F32), "loss": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["y"], s["grad"], s["loss"], n, 0.25, 2.0, BLOCK_SIZE=at.size(2048, 64),
            num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, y = s["x"].float(), s["y"].float()
        q, p = x.exp(), y.exp()
        mixed = torch.log(0.25 * p + 0.75 * q)
        grad = 0.75 * q * (x - mixed) * 2.0
        return {"grad": grad, "loss": (grad + 0.5 * p * (y - mixed)).sum(1)}

    return make, launch, want, 1e-3


@cases("gating", [(8192, 256, 8), (512, 64, 8)], (9, 32, 4))
def gate_grouped(at: Maker, tokens: int, experts: int, groups: int) -> Parts:
    top_groups, top = at.size((4, 6), (2, 3))

    def make() -> Buffers:
        return {
            "logits": at.random(tokens, experts, dtype=F32),
            "bias": at.random(experts, dtype=F32) * 0.1, "w": at.empty(tokens, top, dtype=F32),
            "ids": at.empty(tokens, top, dtype=torch.int32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens,)](
            s["logits"], s["bias"], s["w"], s["ids"], 2.5, E=experts, GROUPS=groups,
            TOP_GROUPS=top_groups, TOP=top, TOP2=next_power(top), num_warps=1,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        scores = torch.sigmoid(s["logits"])
        biased = (scores + s["bias"]).reshape(tokens, groups, -1)
        kept = torch.zeros(tokens, groups, dtype=torch.bool, device=at.device)
        kept.scatter_(1, biased.amax(2).topk(top_groups, 1)[1], True)
        biased = torch.where(kept[..., None], biased, float("-inf")).reshape(tokens, experts)
        ids = biased.topk(top, 1)[1]
        weights = scores.gather(1, ids)
        return {"w": weights / weights.sum(1, keepdim=True) * 2.5, "ids": ids}

    return make, launch, want, 1e-4


@cases("quantisation", [(8192, 8192), (64, 5120)], (9, 200))
def quant_fp8_loop(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "q": at.empty(m, n, dtype=FP8),
            "scale": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["q"], s["scale"], n, n, 1e-6, BLOCK=at.size(2048, 64), num_warps=8
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        scale = x.abs().amax(1).clamp(min=448e-6) / 448
        return {"q": codes(x * (1 / scale)[:, None]), "scale": scale}

    return make, launch, want, 1e-5


@cases("quantisation", [(16, 1024, 2048), (4, 128, 1024)], (3, 11, 64))
def expert_silu_quant(at: Maker, experts: int, rows: int, n: int) -> Parts:
    block = at.size(128, 32)
    counts = [rows - 53 * i % rows for i in range(experts)]
    live = torch.tensor(counts)[:, None] > torch.arange(rows)

    def make() -> Buffers:
        # Rows beyond an expert's count stay as they are.
        return {
            "x": at.random(experts, rows, 2 * n, dtype=BF16),
            "q": torch.zeros((experts, rows, n), device=at.device).to(FP8),
            "scale": torch.zeros((experts, rows, n // block), device=at.device),
            "counts": torch.tensor(counts, dtype=torch.int32).to(at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(n // block, at.size(32, 4), experts)](
            s["x"], s["q"], s["scale"], s["counts"], rows, n, BLOCK=block, STAGES=at.size(3, 2),
            num_warps=1,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        gate, up = s["x"].float().split(n, 2)
        y = (torch.nn.functional.silu(gate) * up).reshape(experts, rows, -1, block)
        y = torch.where(live.to(at.device)[..., None, None], y, 0.0)
        largest = y.abs().amax(3)
        scale = torch.where(live.to(at.device)[..., None], largest.clamp(min=1e-10) / 448, 0.0)
        q = codes(y / largest.clamp(min=1e-10)[..., None] * 448)
        return {"q": q.reshape(experts, rows, n), "scale": scale}

    return make, launch, want, 1e-5


@cases("quantisation", [(4096, 11008), (128, 4096)], (9, 200))
def quant_zero_point(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        # Numbers of 16 bits have quotients in the middle between two, also for the zero point. Both
        # may be rounded either way, and then a number is two steps off.
        return {
            "x": at.random(m, n, dtype=F32) + 0.5, "q": at.empty(m, n, dtype=torch.uint8),
            "scale": at.empty(m, dtype=F32), "zero": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["q"], s["scale"], s["zero"], n, BLOCK=at.size(1024, 64), num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        low = x.amin(1).clamp(max=0)
        scale = (x.amax(1) - low).clamp(min=1e-6) / 255
        zero = torch.floor(-low / scale + 0.5)
        q = (torch.floor(x / scale[:, None] + 0.5) + zero[:, None]).clamp(0, 255)
        return {"q": q.to(torch.uint8), "scale": scale}

    return make, launch, want, 1e-5


@cases("norms", [(32768, 2048), (1024, 3000)], (13, 50))
def rms_rows_each(at: Maker, m: int, n: int) -> Parts:
    programs = at.size(PROGRAMS * 2, 3)

    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "w": at.random(n, dtype=BF16),
            "y": at.empty(m, n, dtype=BF16), "rstd": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(programs,)](
            s["x"], s["w"], s["y"], s["rstd"], m, n, cdiv(m, programs), 1e-6, BLOCK=next_power(n),
            num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        rstd = torch.rsqrt(x.square().mean(1) + 1e-6)
        return {"y": x * rstd[:, None] * (s["w"].float() + 1), "rstd": rstd}

    return make, launch, want, 1e-2


@cases("quantisation", [(8192, 4096), (256, 5120)], (9, 50))
def add_rms_quant(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n), "residual": at.random(m, n), "w": at.random(n),
            "q": at.empty(m, n, dtype=torch.int8), "scale": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["residual"], s["w"], s["q"], s["scale"], n, 1e-6, N=n, BLOCK=next_power(n),
            num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float() + s["residual"].float()
        y = x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6) * s["w"].float()
        scale = y.abs().amax(1).clamp(min=1e-6) / 127
        y = y / scale[:, None]
        q = torch.where(y >= 0, y + 0.5, y - 0.5).to(torch.int8)
        return {"q": q, "scale": scale, "residual": x.half()}

    return make, launch, want, 1e-3


@cases("norms", [(16384, 2048), (2048, 1000)], (13, 50))
def layer_norm_backward(at: Maker, m: int, n: int) -> Parts:
    programs = at.size(PROGRAMS * 2, 3)

    def make() -> Buffers:
        x = at.random(m, n, dtype=BF16)
        return {
            "x": x, "dy": at.random(m, n, dtype=BF16), "w": at.random(n, dtype=F32),
            "mean": x.float().mean(1), "rstd": torch.rsqrt(x.float().var(1, correction=0) + 1e-5),
            "dx": at.empty(m, n, dtype=BF16), "dw": at.empty(programs, n, dtype=F32),
            "db": at.empty(programs, n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(programs,)](
            s["dy"], s["x"], s["w"], s["mean"], s["rstd"], s["dx"], s["dw"], s["db"], m, n,
            cdiv(m, programs), BLOCK=next_power(n), num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, dy = s["x"].float(), s["dy"].float()
        xhat = (x - s["mean"][:, None]) * s["rstd"][:, None]
        wdy = s["w"] * dy
        c1, c2 = (xhat * wdy).mean(1, keepdim=True), wdy.mean(1, keepdim=True)
        parts = {"dw": dy * xhat, "db": dy}
        each = cdiv(m, programs)
        for name, values in parts.items():
            out = torch.zeros(programs, n, device=at.device)
            sums = torch.stack([part.sum(0) for part in values.split(each)])
            out[: len(sums)] = sums
            parts[name] = out
        return {"dx": (wdy - (xhat * c1 + c2)) * s["rstd"][:, None], **parts}

    return make, launch, want, 1e-2


@cases("column sums", [(264, 8192), (132, 768)], (13, 50))
def sum_parts(at: Maker, m: int, n: int) -> Parts:
    bm, bn = at.size((32, 64), (4, 16))

    def make() -> Buffers:
        return {
            "dw": at.random(m, n, dtype=F32), "db": at.random(m, n, dtype=F32),
            "w": at.empty(n, dtype=BF16), "b": at.empty(n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn),)](
            s["dw"], s["db"], s["w"], s["b"], m, n, BLOCK_M=bm, BLOCK_N=bn, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"w": s["dw"].sum(0), "b": s["db"].sum(0)}

    return make, launch, want, 1e-2


@cases("norms", [(16, 512, 32, 4096), (4, 320, 32, 1024)], (2, 6, 2, 50))
def group_norm_silu(at: Maker, batch: int, channels: int, groups: int, pixels: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(batch, channels, pixels), "w": at.random(channels),
            "b": at.random(channels), "y": at.empty(batch, channels, pixels),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch * groups,)](
            s["x"], s["w"], s["b"], s["y"], pixels, groups, 1e-5, CHANNELS=channels // groups,
            BLOCK=at.size(1024, 32), num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, w, b = (s[name].float() for name in ("x", "w", "b"))
        return {
            "y": torch.nn.functional.silu(torch.nn.functional.group_norm(x, groups, w, b, 1e-5))
        }

    return make, launch, want, 1e-2


@cases("norms", [(262144, 128), (8192, 96)], (21, 24))
def unit_heads(at: Maker, m: int, d: int) -> Parts:
    bt = at.size(32, 8)

    def make() -> Buffers:
        return {
            "x": at.random(m, d, dtype=BF16), "y": at.empty(m, d, dtype=BF16),
            "rstd": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bt),)](
            s["x"], s["y"], s["rstd"], 1e-6, m, D=d, BD=next_power(d), BT=bt, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        rstd = torch.rsqrt(x.square().sum(1) + 1e-6)
        return {"y": x * rstd[:, None], "rstd": rstd}

    return make, launch, want, 1e-2


@cases("norms", [(16384, 4, 1024), (512, 8, 128)], (13, 2, 20))
def rms_gated(at: Maker, m: int, groups: int, n: int) -> Parts:
    bm = at.size(4 if n > 512 else 8, 4)

    def make() -> Buffers:
        return {
            "x": at.random(m, groups * n, dtype=BF16), "z": at.random(m, 2 * groups * n, dtype=BF16),
            "w": at.random(groups * n, dtype=F32), "y": at.empty(m, groups * n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), groups)](
            s["x"], s["z"], s["w"], s["y"], groups * n, 2 * groups * n, m, n, 1e-5, BLOCK_M=bm,
            BLOCK_N=next_power(n), num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float().reshape(m, groups, n)
        y = x * torch.rsqrt(x.square().mean(2, keepdim=True) + 1e-5)
        gate = torch.nn.functional.silu(s["z"][:, : groups * n].float())
        return {"y": y.reshape(m, -1) * s["w"] * gate}

    return make, launch, want, 1e-2
