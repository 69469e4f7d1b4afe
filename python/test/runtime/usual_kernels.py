# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of python/examples and python/benchmarks, with arguments to compile them for.

No GPU is needed for that: pointers are element types without memory.
"""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any, Iterator, NamedTuple

import tessera
import tessera.language as tl

ROOT = pathlib.Path(__file__).parents[3] / "python"


class Work(NamedTuple):
    """A kernel, and a call of it."""

    name: str
    kernel: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def compile(self, arch: str, **options: Any) -> Any:
        return self.kernel.warmup(
            *self.arguments, **self.options, **options, target="cuda", arch=arch, grid=(1,)
        )


def load(path: str) -> Any:
    """The names that a file of examples, or of kernels for every compiler, defines."""
    file = ROOT / path
    if path.startswith("benchmarks"):
        names: dict[str, Any] = {"jit": tessera.jit, "tl": tl, "__name__": file.stem}
        exec(compile(file.read_text(), str(file), "exec"), names)
        return names
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def pointer(dtype: str) -> Any:
    return tessera.MockTensor(dtype)


def list_work() -> Iterator[Work]:
    f32, f16, bf16, i8, i32 = (
        pointer(t) for t in ("float32", "float16", "bfloat16", "int8", "int32")
    )
    f8, i64 = pointer("float8_e4m3fn"), pointer("int64")

    def work(file: str, name: str, arguments: Any, label: str = "", **options: Any) -> Work:
        stem = pathlib.Path(file).stem
        if file not in loaded:
            loaded[file] = load(file)
        title = f"{stem}-{name}{label and '-' + label}"
        return Work(title, loaded[file][name], tuple(arguments), options)

    loaded: dict[str, dict[str, Any]] = {}
    yield work("examples/vector_add.py", "add", (f32, f32, f32, 4096), BLOCK=1024)
    yield work("examples/softmax.py", "softmax_kernel", (f32, f32, 4096, 4096, 4096), BLOCK=4096)
    yield work(
        "examples/layer_norm.py", "layer_norm_kernel", (f32, f32, f32, f32, 4096, 4096, 1e-5),
        BLOCK=4096,
    )  # fmt: skip
    yield work("examples/elementwise.py", "silu_mul_kernel", (f16, f16, f16, 4096), BLOCK=1024)
    yield work(
        "examples/elementwise.py", "matmul_int8_kernel", (i8, i8, i32, 512, 512, 512),
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=64,
    )  # fmt: skip
    for pointers in (f32, f16):
        yield work(
            "examples/matmul.py", "matmul_kernel",
            (pointers, pointers, pointers, pointers, 512, 512, 512, 512, 512, 512),
            str(pointers.dtype).split(".")[-1],
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, GROUP_M=4, ACTIVATION="gelu",
        )  # fmt: skip
    for causal in (False, True):
        yield work(
            "examples/attention.py", "attention_kernel", (f16, f16, f16, f16, 1024, 0.125),
            "causal" if causal else "", HEAD=64, BLOCK_M=64, BLOCK_N=64, CAUSAL=causal,
        )  # fmt: skip
    for kind in ("sum", "max", "argmax"):
        yield work(
            "examples/rows.py", "reduce_rows_kernel", (f32, f32, 2048), kind, BLOCK=2048, KIND=kind
        )
    yield work(
        "examples/rows.py", "reduce_columns_kernel", (f32, f32, 64, 64),
        ROWS=16, BLOCK=512, KIND="sum",
    )  # fmt: skip
    yield work("examples/rows.py", "cumsum_rows_kernel", (f32, f32, 1024), BLOCK=1024)
    yield work("examples/rows.py", "embedding_kernel", (f32, i32, f32, 64), WIDTH=128, ROWS=64)
    yield work("examples/scatter.py", "histogram_kernel", (i32, i32, 64), BINS=256, BLOCK=1024)
    yield work(
        "examples/scatter.py", "histogram_by_atomics_kernel", (i32, i32, 64), BINS=256, BLOCK=1024
    )
    yield work("examples/scatter.py", "scatter_add_kernel", (f32, i32, f32, 64), BLOCK=1024)
    yield work(
        "examples/scatter.py", "embedding_backward_kernel", (bf16, i32, bf16, 64, 64),
        WIDTH=128, COLUMNS=128, ROWS=64, SCOPE="gpu",
    )  # fmt: skip
    yield work(
        "examples/deformable_attention.py", "forward_kernel",
        (f32, i64, i64, f32, f32, f32, 1024, 300, 32 * 1024),
        PIXEL=32, HEADS=8, DIM=32, LEVELS=4, POINTS=4, ROWS=16,
    )  # fmt: skip
    yield work(
        "examples/deformable_attention.py", "backward_kernel",
        (f32, i64, i64, f32, f32, f32, f32, f32, f32, 1024, 300),
        HEADS=8, DIM=32, LEVELS=4, POINTS=4, QUERIES=300, ATOMIC=True,
    )  # fmt: skip
    kernels = "benchmarks/gpu_kernels.py"
    yield work(kernels, "softmax", (bf16, bf16, 4096), BLOCK=4096, num_warps=8)
    yield work(kernels, "rms_norm", (bf16, bf16, bf16, 4096, 1e-6), BLOCK=4096, num_warps=8)
    yield work(kernels, "layer_norm", (bf16,) * 4 + (f32, f32, 4096, 1e-6), BLOCK=4096, num_warps=8)
    yield work(
        kernels, "layer_norm_backward", (bf16, bf16, bf16, f32, f32, bf16, f32, f32, 4096, 4096),
        BLOCK=4096, num_warps=8,
    )  # fmt: skip
    yield work(kernels, "transpose", (bf16, bf16, 4096, 4096), BLOCK_M=64, BLOCK_N=64)
    yield work(kernels, "sum_columns", (bf16, bf16, 4096, 4096), ROWS=64, BLOCK=16)
    yield work(kernels, "cumsum", (f32, f32, 4096), BLOCK=4096, num_warps=8)
    yield work(kernels, "topk", (f32, f32, 1024), K=8, BLOCK=1024)
    products = "benchmarks/gpu_matmul_kernels.py"
    n = 4096
    for dtype, tiles in {
        f16: [(128, 256, 64, 8, 4), (64, 64, 64, 4, 3), (16, 64, 128, 4, 5)],
        bf16: [(128, 128, 64, 4, 3), (128, 256, 64, 8, 3)],
        f32: [(128, 128, 32, 8, 3)],
        i8: [(128, 128, 128, 8, 3)],
        f8: [(64, 64, 128, 4, 3)],
    }.items():
        for tile in tiles:
            bm, bn, bk, warps, stages = tile
            c, acc = (i32, tl.int32) if dtype is i8 else (bf16, tl.float32)
            # The second operand along K, and across it.
            for strides in ((1, n), (n, 1)):
                yield work(
                    products, "matmul", (dtype, dtype, c, n, n, n, n, *strides, n),
                    "-".join(map(str, (str(dtype.dtype).split(".")[-1], *tile, strides[0]))),
                    ACC=acc, BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps, num_stages=stages,
                )  # fmt: skip
    yield work(
        products, "matmul_bias_gelu", (bf16, bf16, bf16, bf16, n, n, n, n, n, n),
        BM=128, BN=128, BK=64, GROUP=8, num_warps=8, num_stages=3,
    )  # fmt: skip
    yield work(
        products, "matmul_int4", (f16, i8, f16, f16, n, n, n),
        BM=128, BN=128, BK=64, GROUP=8, num_warps=8, num_stages=3,
    )  # fmt: skip
    for name, block in (
        ("matmul_scaled", 256),
        ("matmul_scaled", 128),
        ("matmul_scaled_once", 128),
    ):
        yield work(
            products, name, (f8, f8, f32, f32, bf16, n, n, n, n, 1, n, n, 1, n, n // 128), str(block),
            BM=128, BN=block, BK=128, GROUP=8, num_warps=8, num_stages=3,
        )  # fmt: skip
    for head, causal in ((64, False), (128, False), (128, True)):
        yield work(
            products, "attention", (bf16,) * 4 + (2048, 0.1), f"{head}{causal and '-causal' or ''}",
            D=head, CAUSAL=causal, BM=128, BN=64 if head == 64 else 128, num_warps=8, num_stages=2,
        )  # fmt: skip
