# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of fresh_matmul_kernels.py."""

from __future__ import annotations

from typing import Any

import torch
from public_kernels_cases import PROGRAMS, Buffers, Maker, Parts, Results, cases, cdiv, words

F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn


def nibbles(packed: torch.Tensor, dim: int) -> torch.Tensor:
    """The eight numbers of 4 bits of each int32, along a dimension."""
    shifts = torch.arange(8, device=packed.device) * 4
    values = (packed.unsqueeze(dim + 1) >> shifts.reshape(-1, *[1] * (packed.dim() - dim - 1))) & 15
    return values.flatten(dim, dim + 1)


@cases("flat matmul", [(2304, 3072, 2048), (512, 768, 256)], (70, 96, 80))
def persist_flatten(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {"a": at.random(m, k), "b": at.random(k, n), "c": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk, GROUP=8, NUM_SMS=grid,
            num_warps=8, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float() @ s["b"].float()}

    return make, launch, want, 6e-2


@cases("flat matmul", [(3072, 2560, 1536), (2048, 4096, 3072)], (70, 90, 80))
def flat_last_flag(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 256, 64), (32, 32, 32))
    grid = min(at.size(PROGRAMS, 2), cdiv(m, bm) * cdiv(n, bn))

    def make() -> Buffers:
        return {
            "a": at.random(m, k, dtype=BF16), "b": at.random(n, k, dtype=BF16),
            "res": at.random(m, n, dtype=BF16), "c": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(grid,)](
            s["a"], s["b"], s["res"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk, PROGRAMS=grid,
            num_warps=8, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float() @ s["b"].float().T + s["res"].float()}

    return make, launch, want, 6e-2


@cases("panels", [(33792, 512, 512), (4224, 256, 128)], (70, 90, 64))
def row_panel(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 8192 else (32, 128, 64), (32, 32, 32))

    def make() -> Buffers:
        return {"x": at.random(m, k), "w": at.random(n, k) * 0.1, "y": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm),)](
            s["x"], s["w"], s["y"], m, n, K=k, BM=bm, BN=bn, BK=bk, num_warps=4, num_stages=3
        )

    def want(s: Buffers) -> Results:
        return {"y": torch.relu(s["x"].float() @ s["w"].float().T).square()}

    return make, launch, want, 6e-2


@cases("grouped", [(16, 4096, 2048, 1024), (64, 2048, 1024, 1024)], (3, 100, 90, 64))
def expert_contiguous(at: Maker, experts: int, tokens: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128 if experts < 32 else 64, 128, 64), (32, 32, 32))
    counts = [max(0, tokens // experts + (37 * i % 50) - 24) for i in range(experts - 1)]
    starts = [0]
    for count in counts:
        starts.append(min(starts[-1] + count, tokens))
    starts.append(tokens)

    def make() -> Buffers:
        return {
            "x": at.random(tokens, k, dtype=BF16), "w": at.random(experts, n, k, dtype=BF16),
            "starts": torch.tensor(starts, dtype=torch.int32).to(at.device),
            "y": at.empty(tokens, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        programs = at.size(PROGRAMS, 3)
        return kernel[(programs,)](
            s["x"], s["w"], s["starts"], s["y"], n, k, experts, BM=bm, BN=bn, BK=bk,
            PROGRAMS=programs, num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        parts = [
            s["x"][a:b].float() @ w.float().T
            for a, b, w in zip(starts, starts[1:], s["w"], strict=False)
        ]
        return {"y": torch.cat(parts)}

    return make, launch, want, 6e-2


@cases("lora", [(4096, 4096, 2048), (64, 2048, 1024)], (40, 70, 64))
def lora_linear(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 64 else (64, 32, 128), (32, 32, 32))

    def make() -> Buffers:
        return {
            "x": at.random(m, k, dtype=BF16), "w": at.random(n, k, dtype=BF16),
            "a": at.random(16, k, dtype=BF16) * 0.1, "b": at.random(n, 16, dtype=BF16),
            "y": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["x"], s["w"], s["a"], s["b"], s["y"], m, n, k, 2.0, R=16, BM=bm, BN=bn, BK=bk,
            num_warps=at.size(8 if m > 64 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        return {"y": x @ s["w"].float().T + 2.0 * (x @ s["a"].float().T) @ s["b"].float().T}

    return make, launch, want, 6e-2


@cases("few rows", [(16, 8192, 8192, 4), (8, 1024, 4096, 8)], (5, 70, 100, 3))
def splitk_parts(at: Maker, m: int, n: int, k: int, split: int) -> Parts:
    bn, bk = at.size((64, 128), (32, 32))

    def make() -> Buffers:
        return {
            "a": at.random(m, k),
            "b": at.random(n, k),
            "part": at.empty(split, m, n, dtype=F32),
        }

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn), split)](
            s["a"], s["b"], s["part"], m, n, k, cdiv(k, split), BM=16, BN=bn, BK=bk, num_warps=4,
            num_stages=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        each = cdiv(k, split)
        parts = zip(s["a"].float().split(each, 1), s["b"].float().split(each, 1), strict=True)
        return {"part": torch.stack([a @ b.T for a, b in parts])}

    return make, launch, want, 6e-2


@cases("8-bit matmul", [(4096, 4096, 4096), (256, 512, 512)], (40, 70, 90))
def fp8_tensor_scale(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 256, 128) if m > 256 else (64, 64, 128), (32, 32, 32))

    def make() -> Buffers:
        return {
            "a": at.random(m, k).to(FP8), "b": at.random(n, k).to(FP8),
            "sa": torch.full((1,), 0.5, device=at.device), "sb": torch.full((1,), 0.3, device=at.device),
            "c": at.empty(m, n, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["a"], s["b"], s["sa"], s["sb"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk,
            num_warps=at.size(8 if m > 256 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": s["a"].float() @ s["b"].float().T * (s["sa"] * s["sb"])}

    return make, launch, want, 6e-2


@cases("4-bit matmul", [(64, 4096, 4096), (16, 1024, 2048)], (20, 64, 64))
def gptq_order(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((m, 64, 64), (32, 32, 32))
    groups = k // at.size(128, 16)

    def make() -> Buffers:
        return {
            "x": at.random(m, k), "q": words(at, k // 8, n),
            "scales": (torch.rand((groups, n), device=at.device) * 0.01 + 0.005).half(),
            "zeros": words(at, groups, n // 8),
            "group": torch.randperm(k).mul(groups).div(k, rounding_mode="floor").int().to(at.device),
            "y": at.empty(m, n),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn), cdiv(m, bm))](
            s["x"], s["q"], s["scales"], s["zeros"], s["group"], s["y"], m, n, k, BM=bm, BN=bn, BK=bk,
            num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        group = s["group"].long()
        w = (nibbles(s["q"], 0) - nibbles(s["zeros"], 1)[group]) * s["scales"].float()[group]
        return {"y": s["x"].float() @ w}

    return make, launch, want, 2e-2


@cases("few rows", [(8192, 8192, 8), (2048, 4096, 16)], (64, 128, 2))
def gemv_int4(at: Maker, n: int, k: int, split: int) -> Parts:
    group = at.size(128, 32)

    def make() -> Buffers:
        return {
            "x": at.random(k), "q": words(at, k // 8, n),
            "scale": (torch.rand((k // group, n), device=at.device) * 0.01 + 0.005).half(),
            "y": torch.zeros((n,), device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, at.size(128, 32)), split)](
            s["x"], s["q"], s["scale"], s["y"], n, k, k // split, GROUP=group, BN=at.size(128, 32),
            BK=at.size(32, 16), num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        w = (nibbles(s["q"], 0) - 8) * s["scale"].float().repeat_interleave(group, 0)
        return {"y": s["x"].float() @ w}

    return make, launch, want, 1e-2


@cases("gradients", [(8192, 2048, 1024), (512, 512, 256)], (70, 50, 40))
def weight_grad_reverse(at: Maker, t: int, n: int, k: int) -> Parts:
    bn, bk, bt = at.size((128, 128, 64) if t > 512 else (64, 32, 64), (32, 32, 32))

    def make() -> Buffers:
        return {
            "dy": at.random(t, n, dtype=BF16), "x": at.random(t, k, dtype=BF16),
            "dw": at.random(n, k, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(n, bn), cdiv(k, bk))](
            s["dy"], s["x"], s["dw"], t, n, k, BN=bn, BK=bk, BT=bt,
            num_warps=at.size(8 if t > 512 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"dw": s["dw"] + s["dy"].float().T @ s["x"].float()}

    return make, launch, want, 6e-2


@cases("batches", [(16, 1024, 512, 1024), (12, 256, 64, 72)], (2, 40, 50, 44))
def tf32_batched(at: Maker, batch: int, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 32) if m > 256 else (64, 32, 32), (32, 32, 32))

    def make() -> Buffers:
        return {
            "a": at.random(batch, m, k, dtype=F32), "b": at.random(batch, k, n, dtype=F32),
            "c": at.empty(batch, m, n, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn), batch)](
            s["a"], s["b"], s["c"], m, n, k, 0.5, BM=bm, BN=bn, BK=bk, EVEN_K=k % bk == 0,
            num_warps=at.size(8 if m > 256 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"c": 0.5 * (s["a"] @ s["b"])}

    return make, launch, want, 1e-2


@cases("convolution", [(16, 56, 128, 128), (1, 14, 64, 64)], (2, 7, 32, 40))
def conv3x3(at: Maker, batch: int, size: int, c: int, o: int) -> Parts:
    pixels = batch * size * size
    bm, bn, bc = at.size((128, 128, 64) if pixels > 1000 else (32, 32, 64), (32, 32, 32))

    def make() -> Buffers:
        return {
            "x": at.random(batch, size, size, c), "w": at.random(3, 3, c, o) * 0.1,
            "bias": at.random(o), "y": at.empty(batch, size, size, o),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(pixels, bm), cdiv(o, bn))](
            s["x"], s["w"], s["bias"], s["y"], pixels, size, size, C=c, O=o, BM=bm, BN=bn, BC=bc,
            num_warps=at.size(8 if pixels > 1000 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        y = torch.nn.functional.conv2d(
            s["x"].float().permute(0, 3, 1, 2), s["w"].float().permute(3, 2, 0, 1), s["bias"].float(),
            padding=1,
        )  # fmt: skip
        return {"y": y.permute(0, 2, 3, 1)}

    return make, launch, want, 2e-2


@cases("triangles", [(4096, 2048), (512, 256)], (96, 50))
def triangle_product(at: Maker, m: int, n: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 512 else (64, 32, 64), (32, 32, 16))

    def make() -> Buffers:
        return {"l": at.random(m, m), "x": at.random(m, n), "y": at.empty(m, n)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["l"], s["x"], s["y"], m, n, BM=bm, BN=bn, BK=bk, num_warps=at.size(8 if m > 512 else 4, 4),
            num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"y": s["l"].float().tril() @ s["x"].float()}

    return make, launch, want, 6e-2


@cases("triangles", [(16384, 4096), (256, 2048)], (40, 64))
def hadamard_rows(at: Maker, m: int, n: int) -> Parts:
    d, bm = at.size((128, 64), (16, 16))

    def make() -> Buffers:
        return {"x": at.random(m, n, dtype=BF16), "y": at.empty(m, n, dtype=BF16)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), n // d)](
            s["x"], s["y"], m, n, d**-0.5, D=d, BM=bm, num_warps=4
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        h = torch.ones((1, 1), device=at.device)
        while len(h) < d:
            h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)])
        return {"y": (s["x"].float().reshape(m, -1, d) @ h).reshape(m, n) * d**-0.5}

    return make, launch, want, 2e-2


@cases("norms", [(4096, 4096, 2048), (128, 1024, 1024)], (40, 70, 64))
def norm_linear(at: Maker, m: int, n: int, k: int) -> Parts:
    bm, bn, bk = at.size((128, 128, 64) if m > 128 else (32, 64, 128), (32, 32, 32))

    def make() -> Buffers:
        return {
            "x": at.random(m, k), "w": at.random(k, n), "y": at.empty(m, n), "rstd": at.empty(m, dtype=F32)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), cdiv(n, bn))](
            s["x"], s["w"], s["y"], s["rstd"], m, n, k, 1e-6, BM=bm, BN=bn, BK=bk,
            num_warps=at.size(8 if m > 128 else 4, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        rstd = torch.rsqrt(x.square().mean(1) + 1e-6)
        return {"y": (x @ s["w"].float()) * rstd[:, None], "rstd": rstd}

    return make, launch, want, 6e-2
