# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One small launch of each family of kernels on the GPU, against torch. Prints a line each.

Short enough for compute-sanitizer. The status is the number of those that failed.

Usage: smoke.py [names of families; all of them without]
"""

from __future__ import annotations

import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import tessera
import tessera.language as tl

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@tessera.jit
def matmul(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    tl.store(out_ptr + i[:, None] * N + j[None, :], tl.dot(a, b, input_precision="ieee"))


@tessera.jit
def count(index_ptr, out_ptr, BLOCK: tl.constexpr):
    index = tl.load(index_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out_ptr + index, 1)


@tessera.jit
def histogram(x_ptr, out_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


@tessera.jit
def gather(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, index = tl.load(x_ptr + offsets), tl.load(index_ptr + offsets)
    tl.store(out_ptr + offsets, tl.gather(x, index, 0))


@tessera.jit
def sort(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda")


class Noting:
    """A kernel whose launches are noted, for who does not launch it himself."""

    def __init__(self, kernel: Any, launched: "list[Any]") -> None:
        self.kernel, self.launched = kernel, launched

    def __getitem__(self, grid: Any) -> "Callable[..., None]":
        return lambda *args, **more: self.launched.append(self.kernel[grid](*args, **more))


def read_kernels(stem: str) -> "dict[str, Any]":
    """The kernels of a file of python/benchmarks."""
    path = BENCHMARKS / f"{stem}.py"
    own: dict[str, Any] = {"jit": tessera.jit, "tl": tl, "__name__": stem}
    exec(compile(path.read_text(), str(path), "exec"), own)
    return own


def families() -> "dict[str, Callable[[], Any]]":
    """Name -> what runs a kernel and returns (got, wanted, tolerance, compiled kernel)."""
    own, loops = read_kernels("gpu_kernels"), read_kernels("gpu_matmul_kernels")
    m, n = 37, 1000
    x, w, b = randn(m, n), randn(n), randn(n)
    block = {"BLOCK": 1024}

    def add() -> Any:
        y, out = randn(m, n), torch.full_like(x, float("nan"))
        kernel = own["add"][(tessera.cdiv(m * n, 1024),)](x, y, out, m * n, **block)
        return out, x + y, 0, kernel

    def softmax() -> Any:
        out = torch.full_like(x, float("nan"))
        kernel = own["softmax"][(m,)](x, out, n, **block)
        return out, torch.softmax(x, -1), 1e-5, kernel

    def rms_norm() -> Any:
        out = torch.full_like(x, float("nan"))
        kernel = own["rms_norm"][(m,)](x, w, out, n, 1e-6, **block)
        return out, x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w, 1e-4, kernel

    def layer_norm() -> Any:
        out = torch.full_like(x, float("nan"))
        mean, rstd = randn(m), randn(m)
        kernel = own["layer_norm"][(m,)](x, w, b, out, mean, rstd, n, 1e-5, **block)
        return out, torch.nn.functional.layer_norm(x, (n,), w, b), 1e-4, kernel

    def layer_norm_backward() -> Any:
        grad, grad_x = randn(m, n), torch.full_like(x, float("nan"))
        mean, rstd = x.mean(-1), torch.rsqrt(x.var(-1, correction=0) + 1e-5)
        partial_w, partial_b = randn(4, n), randn(4, n)
        kernel = own["layer_norm_backward"][(4,)](
            x, w, grad, mean, rstd, grad_x, partial_w, partial_b, m, n, **block
        )
        leaf = x.clone().requires_grad_()
        torch.nn.functional.layer_norm(leaf, (n,), w, b).backward(grad)
        got = torch.cat([grad_x, partial_b.sum(0)[None]])
        return got, torch.cat([leaf.grad, grad.sum(0)[None]]), 1e-3, kernel

    def transpose() -> Any:
        out = torch.full((n, m), float("nan"), device="cuda")
        kernel = own["transpose"][(1, 16)](x, out, m, n, BLOCK_M=64, BLOCK_N=64)
        return out, x.T, 0, kernel

    def sum_rows() -> Any:
        out = randn(m)
        return out, x.sum(-1), 1e-3, own["sum_rows"][(m,)](x, out, n, **block)

    def sum_columns() -> Any:
        out = randn(n)
        kernel = own["sum_columns"][(tessera.cdiv(n, 16),)](x, out, m, n, ROWS=32, BLOCK=16)
        return out, x.sum(0), 1e-3, kernel

    def cumsum() -> Any:
        out = torch.full_like(x, float("nan"))
        return out, x.cumsum(-1), 1e-3, own["cumsum"][(m,)](x, out, n, **block)

    def argmax() -> Any:
        out = torch.zeros(m, dtype=torch.int32, device="cuda")
        kernel = own["argmax"][(m,)](x, out, n, **block)
        return out, x.argmax(-1).int(), 0, kernel

    def topk() -> Any:
        out = randn(m, 8)
        return out, x.topk(8, -1).values, 0, own["topk"][(m,)](x, out, n, K=8, **block)

    def dot() -> Any:
        a, c, out = randn(64, 32), randn(32, 64), randn(64, 64)
        return out, a @ c, 1e-4, matmul[(1,)](a, c, out, M=64, N=64, K=32)

    def pipelined_matmul(tensor_maps: bool, blocks: "tuple[int, int, int]", num_warps: int) -> Any:
        # Lengths that no block divides, and rows of whole 16 bytes.
        rows, columns, depth = 200, 136, 264
        a, c = randn(rows, depth).half(), randn(depth, columns).half()
        out = torch.full((rows, columns), float("nan"), device="cuda", dtype=torch.float16)
        bm, bn, bk = blocks
        kernel = loops["matmul"][(tessera.cdiv(rows, bm) * tessera.cdiv(columns, bn),)](
            a, c, out, rows, columns, depth, depth, columns, 1, columns, ACC=tl.float32,
            BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=num_warps, tensor_maps=tensor_maps,
        )  # fmt: skip
        return out, (a.double() @ c.double()).half(), 2e-2, kernel

    def matmul_maps() -> Any:
        return pipelined_matmul(True, (64, 64, 64), 4)

    def matmul_maps_two_groups() -> Any:
        return pipelined_matmul(True, (128, 128, 64), 8)

    def matmul_copies() -> Any:
        return pipelined_matmul(False, (64, 64, 64), 4)

    def matmul_few_rows() -> Any:
        return pipelined_matmul(False, (16, 64, 64), 4)

    def exact(dtype: Any, transposed: bool = False, tensor_maps: bool = True) -> Any:
        """Small integers of a type: whatever instruction multiplies them, the sums are exact."""
        rows, columns, depth = 136, 96, 272
        sums = {torch.int8: torch.int32, torch.float64: torch.float64}.get(dtype, torch.float32)
        acc = {torch.int32: tl.int32, torch.float64: tl.float64}.get(sums, tl.float32)
        a, c = (
            torch.randint(-4, 5, shape, device="cuda").float()
            for shape in ((rows, depth), (depth, columns))
        )
        given_a, given_c = a.to(dtype), (c.T.contiguous() if transposed else c).to(dtype)
        stride_bk, stride_bn = (1, depth) if transposed else (columns, 1)
        out = torch.full((rows, columns), -99, device="cuda", dtype=sums)
        block = 32 if dtype == torch.float64 else 64
        kernel = loops["matmul"][(tessera.cdiv(rows, 64) * tessera.cdiv(columns, 64),)](
            given_a, given_c, out, rows, columns, depth, depth, stride_bk, stride_bn, columns,
            ACC=acc, BM=64, BN=64, BK=block, GROUP=8, num_warps=4, tensor_maps=tensor_maps,
        )  # fmt: skip
        return out.double(), a.double() @ c.double(), 0, kernel

    def matmul_int8() -> Any:
        return exact(torch.int8)

    def matmul_int8_along_k() -> Any:
        return exact(torch.int8, transposed=True)

    def matmul_int8_copies() -> Any:
        return exact(torch.int8, transposed=True, tensor_maps=False)

    def matmul_float8() -> Any:
        return exact(torch.float8_e4m3fn)

    def matmul_float8_along_k() -> Any:
        return exact(torch.float8_e4m3fn, transposed=True)

    def matmul_tf32() -> Any:
        return exact(torch.float32)

    def matmul_tf32_along_k() -> Any:
        return exact(torch.float32, transposed=True)

    def matmul_f64() -> Any:
        return exact(torch.float64)

    def matmul_decoded() -> Any:
        rows, columns, depth = 72, 136, 256
        a = torch.randint(-4, 5, (rows, depth), device="cuda").bfloat16()
        w = torch.randint(0, 256, (columns, depth // 2), device="cuda", dtype=torch.uint8)
        scale = 2.0 ** torch.randint(-2, 3, (columns, depth // 128), device="cuda")
        out = torch.full((rows, columns), float("nan"), device="cuda")
        kernel = loops["matmul_int4"][(2 * 3,)](
            a, w, scale.bfloat16(), out, rows, columns, depth, BM=64, BN=64, BK=64, GROUP=8
        )
        numbers = torch.stack((w & 15, w >> 4), -1).view(columns, depth).double() - 8
        return out, (a.double() @ (numbers * scale.repeat_interleave(128, 1)).T).float(), 0, kernel

    def matmul_looping_over_tiles() -> Any:
        """Results leave by tensor map while the next tile's operands arrive."""
        from test_pipelines import persistent

        rows, columns, depth = 200, 264, 136
        a, c = randn(rows, depth).half(), randn(depth, columns).half()
        out = torch.full((rows, columns), float("nan"), device="cuda")
        kernel = persistent[(3,)](
            a, c, out, rows, columns, depth, depth, columns, BM=64, BN=64, BK=64
        )
        assert len(kernel.metadata["tensor_maps"]) == 3
        return out, (a.double() @ c.double()).float(), 1e-4, kernel

    def matmul_of_groups_looping_over_tiles() -> Any:
        """Each warpgroup stores its rows, in pieces, through buffers of its own."""
        from test_pipelines import persistent

        rows, columns, depth = 392, 528, 200
        a, c = randn(rows, depth).half(), randn(depth, columns).half()
        out = torch.full((rows, columns), float("nan"), device="cuda", dtype=torch.float16)
        kernel = persistent[(2,)](
            a, c, out, rows, columns, depth, depth, columns, BM=128, BN=256, BK=64, num_warps=8
        )
        assert "groups = " in kernel.asm["tilegpu"]
        return out, (a.double() @ c.double()).half(), 2e-2, kernel

    def deformable_attention() -> Any:
        sys.path.insert(0, str(EXAMPLES))
        import deformable_attention as example

        value, shapes, starts, loc, attn = (
            x.cuda() for x in example.inputs(2, 10, 64, [(9, 13), (5, 7), (3, 4)])
        )
        out = torch.full((2, 10, 8 * 64), float("nan"), device="cuda")
        wanted = example.plain_torch(value.double(), shapes, loc.double(), attn.double()).float()
        kernels = []
        before, example.forward_kernel = example.forward_kernel, Noting(
            example.forward_kernel, kernels
        )
        example.forward(value, shapes, starts, loc, attn, out)
        example.forward_kernel = before
        return out, wanted, 1e-4, kernels[0]

    def deformable_attention_backward() -> Any:
        sys.path.insert(0, str(EXAMPLES))
        import deformable_attention as example

        value, shapes, starts, loc, attn = (
            x.cuda() for x in example.inputs(2, 10, 64, [(9, 13), (5, 7), (3, 4)])
        )
        grad = randn(2, 10, 8 * 64)
        leaves = [x.double().requires_grad_() for x in (value, loc * 1.4 - 0.2, attn)]
        out = example.plain_torch(leaves[0], shapes, leaves[1], leaves[2])
        wanted = torch.autograd.grad(out, leaves, grad.double())
        gradients = [torch.zeros_like(value), torch.empty_like(loc), torch.empty_like(attn)]
        kernels: list[Any] = []
        before, example.backward_kernel = example.backward_kernel, Noting(
            example.backward_kernel, kernels
        )
        example.backward(value, shapes, starts, loc * 1.4 - 0.2, attn, grad, *gradients)
        example.backward_kernel = before
        flat = [torch.cat([x.flatten().float() for x in many]) for many in (gradients, wanted)]
        return flat[0], flat[1], 1e-3, kernels[0]

    def attend(tensor_maps: bool, causal: bool, d: int = 128) -> Any:
        length = 256
        q, k, v = (randn(1, 2, length, d).half() for _ in range(3))
        out = torch.full_like(q, float("nan"))
        kernel = loops["attention"][(length // 64, 2)](
            q, k, v, out, length, d**-0.5 * 1.4426950408889634, D=d, CAUSAL=causal,
            BM=64, BN=64, num_warps=4, tensor_maps=tensor_maps,
        )  # fmt: skip
        wanted = torch.nn.functional.scaled_dot_product_attention(
            q.double(), k.double(), v.double(), is_causal=causal
        )
        return out, wanted.half(), 1e-2, kernel

    def attention_maps() -> Any:
        return attend(True, False)

    def attention_maps_causal() -> Any:
        return attend(True, True)

    def attention_copies_causal() -> Any:
        return attend(False, True)

    def attention_fed_by_one_thread() -> Any:
        return attend(True, False, d=64)

    def attention_fed_by_one_thread_causal() -> Any:
        return attend(True, True, d=64)

    def atomics() -> Any:
        index = torch.randint(0, 64, (4096,), device="cuda", dtype=torch.int32)
        out = torch.zeros(64, dtype=torch.int32, device="cuda")
        kernel = count[(4,)](index, out, **block)
        return out, torch.bincount(index, minlength=64).int(), 0, kernel

    def histograms() -> Any:
        values = torch.randint(0, 64, (1024,), device="cuda", dtype=torch.int32)
        out = torch.zeros(64, dtype=torch.int32, device="cuda")
        kernel = histogram[(1,)](values, out, BINS=64, **block)
        return out, torch.bincount(values, minlength=64).int(), 0, kernel

    def gathers() -> Any:
        values, out = randn(1024), randn(1024)
        index = torch.randint(0, 1024, (1024,), device="cuda", dtype=torch.int32)
        return out, values[index.long()], 0, gather[(1,)](values, index, out, **block)

    def sorts() -> Any:
        values, out = randn(1024), randn(1024)
        return out, values.sort().values, 0, sort[(1,)](values, out, **block)

    helpers = (pipelined_matmul, attend, exact)
    return {n: f for n, f in locals().items() if callable(f) and f not in helpers}


def main() -> int:
    torch.backends.cuda.matmul.allow_tf32 = False
    failed = 0
    for name, run in families().items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        start = time.perf_counter()
        try:
            got, wanted, tolerance, kernel = run()
            torch.cuda.synchronize()
            torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)
            told = f"right; {kernel.n_regs} registers, {kernel.n_spills} spilled, {kernel.shared} shared"
        except Exception as error:
            failed += 1
            told = f"FAILED {type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
        print(f"{name:20} {(time.perf_counter() - start) * 1e3:7.0f} ms  {told}", flush=True)
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
