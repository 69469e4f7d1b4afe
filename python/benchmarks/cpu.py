# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPU target against NumPy and torch: the same arrays, the same number of threads,
outputs preallocated on every side. Usage: cpu.py [--only TEXT] [--json FILE] [--plot FILE]
"""

from __future__ import annotations

import functools
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

sys.path[:0] = [
    str(pathlib.Path(__file__).parents[1] / "examples"),
    str(pathlib.Path(__file__).parent),
]

import attention  # noqa: E402
import deformable_attention as deformable  # noqa: E402
import elementwise  # noqa: E402
import layer_norm  # noqa: E402
import matmul  # noqa: E402
import numpy as np  # noqa: E402
import report  # noqa: E402
import rows as row_kernels  # noqa: E402
import scatter  # noqa: E402
import softmax  # noqa: E402
import torch  # noqa: E402
import vector_add  # noqa: E402
from report import Row  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def close(got: torch.Tensor, want: torch.Tensor, tolerance: float) -> None:
    torch.testing.assert_close(got.double(), want.double(), rtol=tolerance, atol=tolerance)


def vector_add_rows() -> Iterator[Row]:
    n = 1 << 24
    x, y = torch.randn(n), torch.randn(n)
    out, out_torch = torch.empty(n), torch.empty(n)
    x_numpy, y_numpy, out_numpy = x.numpy(), y.numpy(), np.empty(n, np.float32)
    yield Row(
        "vector add f32 2^24",
        {
            "tessera": lambda: vector_add.vector_add(x, y, out),
            "numpy": lambda: np.add(x_numpy, y_numpy, out=out_numpy),
            "torch": lambda: torch.add(x, y, out=out_torch),
        },
        check=lambda: close(out, x + y, 0),
        at_least=0.97, aim=1.0, bytes=12 * n,
    )  # fmt: skip


def silu_rows() -> Iterator[Row]:
    n = 1 << 22
    for name, dtype in DTYPES.items():
        x, y = torch.randn(n).to(dtype), torch.randn(n).to(dtype)
        out, between, out_torch = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)

        def unfused(x: Any = x, y: Any = y, between: Any = between, out: Any = out_torch) -> None:
            torch.ops.aten.silu.out(x, out=between)
            torch.mul(between, y, out=out)

        yield Row(
            f"silu(x)*y {name} 2^22",
            {"tessera": lambda x=x, y=y, out=out: elementwise.silu_mul(x, y, out), "torch": unfused},
            check=lambda x=x, y=y, out=out, name=name: close(
                out, torch.nn.functional.silu(x.double()) * y.double(), 1e-5 if name == "f32" else 2e-2
            ),
            at_least=1.8, aim=2.5, bytes=3 * n * x.element_size(),
        )  # fmt: skip


def softmax_rows() -> Iterator[Row]:
    for name, dtype in DTYPES.items():
        x = torch.randn(4096, 4096).to(dtype)
        out, out_torch = torch.empty_like(x), torch.empty_like(x)
        yield Row(
            f"softmax {name} 4096^2",
            {
                "tessera": lambda x=x, out=out: softmax.softmax(x, out),
                "torch": lambda x=x, out=out_torch: torch.softmax(x, dim=1, out=out),
                "(copy)": lambda x=x, out=out_torch: out.copy_(x),
            },
            check=lambda x=x, out=out, name=name: close(
                out, torch.softmax(x.double(), 1), 1e-6 if name == "f32" else 1e-2
            ),
            at_least=1.2, aim_of_copy=0.95, bytes=2 * x.nbytes,
        )  # fmt: skip


def layer_norm_rows() -> Iterator[Row]:
    for name, dtype in DTYPES.items():
        x, w, b = (torch.randn(shape).to(dtype) for shape in ((4096, 4096), (4096,), (4096,)))
        out, out_torch = torch.empty_like(x), torch.empty_like(x)
        mean, rstd = torch.empty(4096, 1, dtype=dtype), torch.empty(4096, 1, dtype=dtype)

        def native(x: Any = x, w: Any = w, b: Any = b, out: Any = out_torch, mean: Any = mean, rstd: Any = rstd) -> None:  # fmt: skip
            torch.ops.aten.native_layer_norm.out(
                x, [4096], w, b, 1e-5, out0=out, out1=mean, out2=rstd
            )

        yield Row(
            f"layer norm {name} 4096^2",
            {"tessera": lambda x=x, w=w, b=b, out=out: layer_norm.layer_norm(x, w, b, out), "torch": native},
            check=lambda x=x, w=w, b=b, out=out, name=name: close(
                out,
                torch.nn.functional.layer_norm(x.double(), [4096], w.double(), b.double()),
                1e-4 if name == "f32" else 5e-2,
            ),
            at_least=1.2, bytes=2 * x.nbytes,
        )  # fmt: skip


def reduction_rows() -> Iterator[Row]:
    x = torch.randn(4096, 4096)
    x_numpy = x.numpy()
    for axis, along in ((1, "rows"), (0, "columns")):
        for name in ("sum", "max", "argmax"):
            dtype = torch.int64 if name == "argmax" else torch.float32
            out_torch = torch.empty(4096, dtype=dtype)
            out = torch.empty(4096, dtype=torch.int32 if name == "argmax" else torch.float32)
            out_numpy = np.empty(4096, np.int64 if name == "argmax" else np.float32)
            reference = {"sum": torch.sum, "max": torch.amax, "argmax": torch.argmax}[name]
            yield Row(
                f"{name} over {along} f32 4096^2",
                {
                    "tessera": lambda name=name, axis=axis, out=out: row_kernels.reduce(x, out, name, axis),
                    "torch": lambda f=reference, axis=axis, out=out_torch: f(x, dim=axis, out=out),
                    "numpy": lambda name=name, axis=axis, out=out_numpy: getattr(np, name)(
                        x_numpy, axis=axis, out=out
                    ),
                },
                check=lambda f=reference, axis=axis, out=out: close(
                    out, f(x.double(), dim=axis), 1e-3
                ),
                at_least=1.0, aim=1.3, bytes=x.nbytes,
            )  # fmt: skip
        out, out_torch, out_numpy = torch.empty_like(x), torch.empty_like(x), np.empty_like(x_numpy)
        yield Row(
            f"cumsum over {along} f32 4096^2",
            {
                "tessera": lambda axis=axis, out=out: row_kernels.cumsum(x, out, axis),
                "torch": lambda axis=axis, out=out_torch: torch.cumsum(x, dim=axis, out=out),
                "numpy": lambda axis=axis, out=out_numpy: np.cumsum(x_numpy, axis=axis, out=out),
            },
            check=lambda axis=axis, out=out: close(out, torch.cumsum(x.double(), axis), 1e-3),
            at_least=1.0, aim=1.3, bytes=2 * x.nbytes,
        )  # fmt: skip


def matmul_rows() -> Iterator[Row]:
    for n in (1024, 2048):
        a, b = torch.randn(n, n), torch.randn(n, n)
        zero, out, out_torch = torch.zeros(n), torch.empty(n, n), torch.empty(n, n)
        yield Row(
            f"matmul f32 {n}^3",
            {
                "tessera": lambda a=a, b=b, zero=zero, out=out: matmul.matmul(a, b, zero, out),
                "torch": lambda a=a, b=b, out=out_torch: torch.mm(a, b, out=out),
            },
            check=lambda a=a, b=b, out=out: close(out, a.double() @ b.double(), 1e-3),
            at_least=0.85, aim=1.0, flops=2 * n**3,
        )  # fmt: skip
    n = 1024
    a, b, bias = torch.randn(n, n), torch.randn(n, n), torch.randn(n)
    out, out_torch, between = torch.empty(n, n), torch.empty(n, n), torch.empty(n, n)

    def unfused() -> None:
        torch.addmm(bias, a, b, out=between)
        torch.ops.aten.gelu.out(between, approximate="tanh", out=out_torch)

    yield Row(
        "matmul + bias + gelu f32 1024^3",
        {"tessera": lambda: matmul.matmul(a, b, bias, out, "gelu"), "torch": unfused},
        check=lambda: close(
            out,
            torch.nn.functional.gelu(a.double() @ b.double() + bias, approximate="tanh"),
            1e-3,
        ),
        at_least=1.0, aim=1.15, flops=2 * n**3,
    )  # fmt: skip
    ab, bb = a.bfloat16(), b.bfloat16()
    zero_b = torch.zeros(n, dtype=torch.bfloat16)
    out_b, out_b_torch = torch.empty(n, n, dtype=torch.bfloat16), torch.empty(n, n, dtype=torch.bfloat16)  # fmt: skip
    yield Row(
        "matmul bf16 1024^3",
        {
            "tessera": lambda: matmul.matmul(ab, bb, zero_b, out_b, block=(256, 256, 256)),
            "torch": lambda: torch.mm(ab, bb, out=out_b_torch),
        },
        check=lambda: close(out_b, ab.double() @ bb.double(), 2e-2 * 32),
        at_least=0.7, aim=1.0, flops=2 * n**3,
    )  # fmt: skip
    ai, bi = (torch.randint(-128, 128, (n, n), dtype=torch.int8) for _ in range(2))
    out_i = torch.empty(n, n, dtype=torch.int32)
    out_i_torch = torch.empty(n, n, dtype=torch.int32)
    yield Row(
        "matmul int8 1024^3",
        {
            "tessera": lambda: elementwise.matmul_int8(ai, bi, out_i, block=(256, 256, 512)),
            "torch": lambda: torch.ops.aten._int_mm.out(ai, bi, out=out_i_torch),
        },
        check=lambda: close(out_i, ai.double() @ bi.double(), 0),
        at_least=0.7, aim=1.0, flops=2 * n**3,
    )  # fmt: skip


def attention_rows() -> Iterator[Row]:
    sdpa = torch.nn.functional.scaled_dot_product_attention
    for name, dtype in DTYPES.items():
        q, k, v = (torch.randn(8, 1024, 64).to(dtype) for _ in range(3))

        def ours(causal: bool, q: Any = q, k: Any = k, v: Any = v) -> torch.Tensor:
            # torch's has no `out`, so both allocate.
            out = torch.empty_like(q)
            attention.attention(q, k, v, out, causal)
            return out

        def theirs(causal: bool, q: Any = q, k: Any = k, v: Any = v) -> torch.Tensor:
            return sdpa(q[None], k[None], v[None], is_causal=causal)[0]

        def check(causal: bool, name: str = name, q: Any = q, k: Any = k, v: Any = v, ours: Any = ours) -> None:  # fmt: skip
            want = sdpa(q.double()[None], k.double()[None], v.double()[None], is_causal=causal)
            close(ours(causal), want[0], 1e-4 if name == "f32" else 2e-2)

        for causal in (False, True):
            yield Row(
                f"attention {name} 8x1024x64 {'causal' if causal else 'full'}",
                {
                    "tessera": functools.partial(ours, causal),
                    "torch": functools.partial(theirs, causal),
                },
                check=functools.partial(check, causal),
                at_least=0.9 if name == "f32" else 1.0, aim=1.2 if name == "f32" else 1.3,
                flops=(2 if causal else 4) * 8 * 1024 * 1024 * 64,
            )  # fmt: skip


def embedding_rows() -> Iterator[Row]:
    table, index = torch.randn(100_000, 64), torch.randint(0, 100_000, (1 << 17,))
    out, out_torch = torch.empty(1 << 17, 64), torch.empty(1 << 17, 64)
    yield Row(
        "embedding rows of 64 f32, 2^17",
        {
            "tessera": lambda: row_kernels.embedding(table, index, out),
            "torch": lambda: torch.index_select(table, 0, index, out=out_torch),
        },
        check=lambda: close(out, table[index], 0),
        at_least=1.0, bytes=2 * out.nbytes,
    )  # fmt: skip


def scatter_rows() -> Iterator[Row]:
    n, bins = 1 << 24, 256
    x = torch.randint(0, bins, (n,), dtype=torch.int32)
    x_float = x.float()
    for by_atomics, way in ((False, "tl.histogram"), (True, "atomics")):
        out = torch.zeros(bins, dtype=torch.int32)

        def ours(out: Any = out, by_atomics: bool = by_atomics) -> None:
            out.zero_()
            scatter.histogram(x, out, by_atomics)

        yield Row(
            f"histogram of int32 2^24, 256 bins, {way}",
            {
                "tessera": ours,
                "torch": lambda: torch.bincount(x, minlength=bins),
                "torch histc": lambda: torch.histc(x_float, bins, 0, bins),
            },
            check=lambda out=out: close(out, torch.bincount(x, minlength=bins), 0),
            at_least=1.0, bytes=x.nbytes,
        )  # fmt: skip
    for places in (10_000, 1 << 20):
        source, place = torch.rand(1 << 22), torch.randint(0, places, (1 << 22,))
        sums, sums_torch = torch.zeros(places), torch.zeros(places)

        def add(source: Any = source, place: Any = place, sums: Any = sums) -> None:
            sums.zero_()
            scatter.scatter_add(source, place, sums)

        def add_torch(source: Any = source, place: Any = place, sums: Any = sums_torch) -> None:
            sums.zero_()
            sums.scatter_add_(0, place, source)

        yield Row(
            f"scatter_add of f32 2^22 to {places} places",
            {"tessera": add, "torch": add_torch},
            check=lambda sums=sums, place=place, source=source: close(
                sums, sums.double().zero_().scatter_add_(0, place, source.double()), 1e-5
            ),
            bytes=source.nbytes + place.nbytes,
        )  # fmt: skip
    rows, table = 1 << 17, 100_000
    grad, index = torch.randn(rows, 64), torch.randint(0, table, (rows,))
    grad_table, grad_torch = torch.zeros(table, 64), torch.zeros(table, 64)

    def backward() -> None:
        grad_table.zero_()
        scatter.embedding_backward(grad, index, grad_table)

    def index_add() -> None:
        grad_torch.zero_()
        grad_torch.index_add_(0, index, grad)

    dense = torch.ops.aten.embedding_dense_backward.out
    yield Row(
        "embedding backward, rows of 64 f32, 2^17",
        {
            "tessera": backward,
            "torch": lambda: dense(grad, index, table, -1, False, out=grad_torch),
            "torch index_add_": index_add,
        },
        check=lambda: close(
            grad_table, torch.zeros(table, 64).double().index_add_(0, index, grad.double()), 1e-5
        ),
        at_least=1.0, bytes=3 * grad.nbytes,
    )  # fmt: skip


def deformable_rows() -> Iterator[Row]:
    op = deformable.torch_op()
    cases: list[tuple[str, tuple[Any, ...], float]] = [
        (f"case study N={n}", (n, 100, 256, deformable.CASE_STUDY), at_least)
        for n, at_least in ((1, 15.0), (4, 20.0), (8, 20.0))
    ]
    cases.append(("encoder 800x1333", (1, None, 32, deformable.ENCODER), 15.0))
    for name, case, at_least in cases:
        value, shapes, starts, loc, attn = deformable.inputs(*case)
        # Both sides allocate what they return.
        run = {
            "tessera": lambda: op(value, shapes, starts, loc, attn),
            "torch": lambda: deformable.plain_torch(value, shapes, loc, attn),
        }
        yield Row(
            f"deformable attention, {name}, forward", run,
            check=lambda: close(run["tessera"](), run["torch"](), 1e-5), at_least=at_least, aim=40.0,
        )  # fmt: skip
        leaves = [leaf.requires_grad_() for leaf in (value, loc, attn)]
        grad = torch.rand(run["tessera"]().shape)
        yield Row(
            f"deformable attention, {name}, with backward",
            {
                key: lambda forward=forward, leaves=leaves, grad=grad: torch.autograd.grad(forward(), leaves, grad)
                for key, forward in run.items()
            },
            at_least=10.0,
        )  # fmt: skip


def launch_rows() -> Iterator[Row]:
    yield Row(
        "empty kernel, one program",
        {"tessera": lambda: elementwise.empty[(1,)]()},
        limit_ms=2e-3, aim_ms=1e-3,
    )  # fmt: skip


def rows() -> Iterator[Row]:
    torch.manual_seed(0)
    for family in (
        vector_add_rows, silu_rows, softmax_rows, layer_norm_rows, reduction_rows, matmul_rows,
        attention_rows, embedding_rows, scatter_rows, deformable_rows, launch_rows,
    ):  # fmt: skip
        yield from family()


if __name__ == "__main__":
    sys.exit(report.run("cpu", rows))
