# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of unseen_row_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn


def softmax(s: Buffers) -> Results:
    """The softmax of rows."""
    return {"y": torch.softmax(s["x"].float(), -1)}


@cases("softmax", [(4096, 8192), (2048, 20000)], (5, 300))
def softmax_reverse(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {"x": at.random(m, n), "y": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](s["y"], s["x"], m, n, TILE_N=at.size(2048, 64), num_warps=8)

    return make, launch, softmax, 1e-2


@cases("softmax", [(32768, 1000), (8192, 4096)], (9, 130))
def softmax_row_tiles(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {"x": at.random(m, n, dtype=BF16), "y": at.empty(m, n, dtype=BF16)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, 4),)](
            s["x"], s["y"], m, n, BLOCK_M=4, BLOCK_N=at.size(512, 64), num_warps=4
        )

    return make, launch, softmax, 1e-2


@cases("softmax", [(4096, 8192), (512, 50257)], (5, 300))
def log_softmax_backward(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        y = torch.log_softmax(at.random(m, n, dtype=F32), -1)
        return {"y": y.half(), "dy": at.random(m, n), "dx": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](s["y"], s["dy"], s["dx"], n, n, BLOCK=at.size(4096, 64), num_warps=8)

    def want(s: Buffers) -> Results:
        dy = s["dy"].float()
        return {"dx": dy - torch.exp(s["y"].float()) * dy.sum(-1, keepdim=True)}

    return make, launch, want, 1e-2


@cases("cross entropy", [(2048, 128256), (1024, 151936)], (5, 300))
def ce_parts(at: Maker, m: int, v: int) -> Parts:
    block = at.size(32768, 128)
    parts = cdiv(v, block)

    def make() -> Buffers:
        labels = at.integers(v, m, dtype=torch.int64)
        labels[1] = -100
        return {
            "x": at.random(m, v, dtype=BF16) * 5, "labels": labels, "loss": at.empty(m, dtype=F32),
            "lse": at.empty(m, parts, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m, parts)](
            s["x"], s["loss"], s["lse"], s["labels"], VOCAB=v, PARTS=parts, BLOCK=block, CAP=30.0,
            num_warps=at.size(32, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = 30 * torch.tanh(s["x"].float() / 30)
        each = torch.stack([torch.logsumexp(part, -1) for part in x.split(block, 1)], 1)
        label = s["labels"].clamp(min=0)
        loss = -x.gather(1, label[:, None])[:, 0]
        return {"lse": each, "loss": torch.where(s["labels"] == -100, 0.0, loss)}

    return make, launch, want, 1e-2


@cases("cross entropy", [(4096, 32000), (1024, 151936)], (5, 300))
def ce_smoothed_in_place(at: Maker, m: int, v: int) -> Parts:
    def make() -> Buffers:
        labels = at.integers(v, m, dtype=torch.int64)
        labels[1] = -100
        return {"x": at.random(m, v, dtype=BF16), "y": labels, "loss": at.empty(m, dtype=F32)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], v, s["y"], s["loss"], v, m, -100, smoothing=0.1,
            BLOCK_SIZE=at.size(16384, 64), num_warps=at.size(32, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float().requires_grad_()
        loss = torch.nn.functional.cross_entropy(
            x, s["y"], reduction="none", label_smoothing=0.1, ignore_index=-100
        )
        (grad,) = torch.autograd.grad(loss.sum() / m, x)
        return {"loss": loss.detach(), "x": grad}

    return make, launch, want, 1e-2


@cases("top k", [(16384, 64, 4), (4096, 256, 8)], (9, 16, 3))
def topk_gate(at: Maker, tokens: int, experts: int, top: int) -> Parts:
    def make() -> Buffers:
        # All different, so that the order is one.
        order = torch.rand(tokens, experts, device=at.device).argsort(1)
        return {
            "x": (order.float() / experts * 6).half() if experts <= 64 else order.float() * 0.03,
            "weights": at.empty(tokens, top, dtype=F32),
            "ids": at.empty(tokens, top, dtype=torch.int32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, 8),)](
            s["x"], s["weights"], s["ids"], tokens, E=experts, TOP=top, BLOCK_T=8, num_warps=4
        )

    def want(s: Buffers) -> Results:
        weights, ids = torch.softmax(s["x"].float(), -1).topk(top)
        return {"weights": weights / weights.sum(-1, keepdim=True), "ids": ids}

    return make, launch, want, 1e-3


@cases("quantise", [(8192, 4096), (2048, 11008)], (5, 60))
def quant_rows(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n), "q": at.empty(m, n, dtype=torch.int8),
            "scale": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        block = 1 << (n - 1).bit_length()
        return kernel[(m,)](
            s["x"], s["q"], s["scale"], n, n, N=n, P2=block, num_warps=at.size(8, 4)
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        most = x.abs().amax(-1)
        y = x * (127 / most)[:, None]
        return {"q": torch.sign(y) * torch.floor(y.abs() + 0.5), "scale": most / 127}

    return make, launch, want, 1e-3


@cases("quantise", [(4096, 4096, 128), (16384, 2048, 128)], (5, 128, 32))
def quant_groups(at: Maker, m: int, n: int, group: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "q": at.empty(m, n, dtype=FP8),
            "scale": at.empty(n // group, m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m * (n // group),)](
            s["x"], s["q"], s["scale"], group, n, m, 1e-10, -448.0, 448.0, BLOCK=group, num_warps=1,
            num_stages=1,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float().reshape(m, n // group, group)
        scale = x.abs().amax(-1) / 448.0
        return {"q": (x / scale[..., None]).to(FP8).reshape(m, n), "scale": scale.T}

    return make, launch, want, 1e-3


@cases("quantise", [(4096, 4096), (7168, 2048)], (70, 96))
def quant_blocks(at: Maker, m: int, n: int) -> Parts:
    block = at.size(128, 32)

    def make() -> Buffers:
        return {
            "x": at.random(m, n, dtype=BF16), "q": at.empty(m, n, dtype=FP8),
            "scale": at.empty(cdiv(m, block), cdiv(n, block), dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        grid = (cdiv(m, block), cdiv(n, block))
        return kernel[grid](s["x"], s["q"], s["scale"], m, n, BLOCK=block, num_warps=8)

    def want(s: Buffers) -> Results:
        x = torch.nn.functional.pad(s["x"].float(), (0, -n % block, 0, -m % block))
        most = x.abs().reshape(cdiv(m, block), block, cdiv(n, block), block).amax((1, 3)) / 448.0
        scale = most.repeat_interleave(block, 0)[:m].repeat_interleave(block, 1)[:, :n]
        return {"q": (s["x"].float() / scale).to(FP8), "scale": most}

    return make, launch, want, 1e-3


@cases("quantise", [(4096, 4096, 128), (8192, 2048, 64)], (5, 160, 32))
def pack_int4(at: Maker, m: int, n: int, group: int) -> Parts:
    groups = at.size(16, 4)

    def make() -> Buffers:
        return {
            "x": at.random(m, n), "words": at.empty(m, n // 8, dtype=torch.int32),
            "scale": at.empty(m, n // group, dtype=F32), "zero": at.empty(m, n // group, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m, cdiv(n // group, groups))](
            s["x"], s["words"], s["scale"], s["zero"], n, GROUP=group, GROUPS=groups, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float().reshape(m, n // group, group)
        low = x.amin(-1)
        scale = ((x.amax(-1) - low) / 15).clamp(min=1e-6)
        q = torch.floor((x - low[..., None]) / scale[..., None] + 0.5).clamp(0, 15)
        return {"words": q.reshape(m, n // 8, 8), "scale": scale, "zero": low}

    return make, launch, want, 1e-3


@cases("norm", [(262144, 128), (65536, 64)], (21, 24))
def rms_rows_tile(at: Maker, m: int, d: int) -> Parts:
    bm = at.size(32, 8)

    def make() -> Buffers:
        return {
            "x": at.random(m, d, dtype=BF16), "w": at.random(d, dtype=BF16),
            "y": at.empty(m, d, dtype=BF16), "rstd": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        block = 1 << (d - 1).bit_length()
        return kernel[(cdiv(m, bm),)](
            s["x"], s["w"], s["y"], s["rstd"], m, D=d, BM=bm, BD=block, eps=1e-6, num_warps=4
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        rstd = torch.rsqrt((x * x).mean(-1) + 1e-6)
        return {"y": x * rstd[:, None] * s["w"].float(), "rstd": rstd}

    return make, launch, want, 1e-2


@cases("norm", [(4096, 12288), (1024, 28672)], (5, 300))
def rms_residual_loop(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n), "res": at.random(m, n), "w": at.random(n), "y": at.empty(m, n)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["res"], s["w"], s["y"], n, n, 1e-6, BLOCK=at.size(4096, 64), num_warps=8
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float() + s["res"].float()
        rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
        return {"res": x, "y": x * rstd * s["w"].float()}

    return make, launch, want, 1e-2


@cases("norm", [(8192, 4096), (32768, 1024)], (13, 60))
def rms_backward(at: Maker, m: int, n: int) -> Parts:
    programs = at.size(132, 3)

    def make() -> Buffers:
        x = at.random(m, n)
        return {
            "x": x, "dy": at.random(m, n), "w": at.random(n), "dx": at.empty(m, n),
            "rstd": torch.rsqrt((x.float() ** 2).mean(-1) + 1e-6),
            "dw": at.empty(programs, n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(programs,)](
            s["dy"], s["x"], s["w"], s["rstd"], s["dx"], s["dw"], n, m, n, cdiv(m, programs),
            BLOCK_SIZE=1 << (n - 1).bit_length(), num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, dy, rstd = s["x"].float(), s["dy"].float(), s["rstd"][:, None]
        g = dy * s["w"].float()
        dx = rstd * g - rstd**3 * (g * x).mean(-1, keepdim=True) * x
        parts = (dy * x * rstd).split(cdiv(m, programs))
        dw = torch.stack([part.sum(0) for part in parts])
        full = torch.zeros(programs, n, device=at.device)
        full[: len(dw)] = dw
        return {"dx": dx, "dw": full}

    return make, launch, want, 1e-2


@cases("norm", [(4096, 10240), (1024, 32768)], (5, 300))
def layer_norm_loop(at: Maker, m: int, n: int) -> Parts:
    def make() -> Buffers:
        return {
            "x": at.random(m, n), "w": at.random(n), "b": at.random(n), "y": at.empty(m, n),
            "mean": at.empty(m, dtype=F32), "rstd": at.empty(m, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(m,)](
            s["x"], s["w"], s["b"], s["y"], s["mean"], s["rstd"], n, 1e-5, BLOCK=at.size(2048, 64),
            num_warps=8,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        y = torch.nn.functional.layer_norm(x, (n,), s["w"].float(), s["b"].float())
        rstd = torch.rsqrt(x.var(-1, correction=0) + 1e-5)
        return {"y": y, "mean": x.mean(-1), "rstd": rstd}

    return make, launch, want, 1e-2


@cases("norm", [(8, 4096, 320, 32), (16, 1024, 640, 32)], (2, 37, 24, 4))
def group_norm_last(at: Maker, batch: int, hw: int, c: int, groups: int) -> Parts:
    cg = c // groups

    def make() -> Buffers:
        return {
            "x": at.random(batch, hw, c), "w": at.random(c), "b": at.random(c),
            "y": at.empty(batch, hw, c),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, groups)](
            s["x"], s["w"], s["b"], s["y"], hw, c, 1e-5, CG=cg, BLOCK_C=1 << (cg - 1).bit_length(),
            BLOCK_HW=at.size(256, 16), num_warps=at.size(8, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float().transpose(1, 2)
        y = torch.nn.functional.group_norm(x, groups, s["w"].float(), s["b"].float(), 1e-5)
        return {"y": y.transpose(1, 2)}

    return make, launch, want, 1e-2
