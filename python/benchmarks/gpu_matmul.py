# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmul and attention on an NVIDIA GPU: one source under Tessera and Triton, and the libraries.

Usage: gpu_matmul.py [--only TEXT] [--json FILE] [--rounds N] [--compile] [--clusters]

Measured as in gpu.py: graphs of launches on buffers that go round, replayed in turns. Every
compiler gets the same list of configurations; the best of each counts. Triton's persistent
kernels with tensor descriptors are a competitor of their own, with their own configurations:
Tessera is to reach the better of both from the plain kernel. cuBLAS and cuDNN are what torch
calls. `--only` takes rows that hold all of its words, or those of one of its parts between
commas. With `--clusters` there are rows in which Tessera's kernels with clusters of blocks are a
competitor of their own, and nothing else is measured.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpu  # noqa: E402

KERNELS = pathlib.Path(__file__).with_name("gpu_matmul_kernels.py")

SHAPES = [
    (8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024),
    (4096, 14336, 4096), (512, 4096, 14336), (128, 8192, 8192), (16, 8192, 8192),
    (3000, 5000, 4100),
]  # fmt: skip

# Linear layers of language models, N x K, and the rows of what goes through them.
LAYERS = [
    (4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (2112, 7168), (24576, 1536),
    (7168, 16384), (4096, 7168), (7168, 2048),
]  # fmt: skip
TOKENS = (1, 16, 64, 256, 1024, 4096)

# BM, BN, BK, warps, stages
CONFIGS = [
    (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (256, 128, 64, 8, 4),
    (128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (128, 128, 64, 8, 3), (64, 256, 64, 4, 4),
    (64, 128, 64, 4, 4), (64, 128, 64, 4, 6), (128, 64, 64, 4, 4), (64, 64, 64, 4, 6),
    (64, 64, 128, 4, 4), (64, 32, 128, 4, 6), (128, 128, 64, 4, 6, 2),
]  # fmt: skip
FEW_ROWS = [
    (16, 32, 128, 4, 5), (16, 64, 128, 4, 5), (16, 64, 256, 4, 4), (16, 128, 64, 4, 6),
    (16, 32, 256, 4, 5), (64, 32, 128, 4, 6), (64, 64, 128, 4, 4),
]  # fmt: skip
# For the layers besides: tiles of which as many as SMs cover the result, longer pipelines, and pairs
# of blocks that share an operand by multicast, as cuBLAS has them for 256 rows (the sixth number).
# Of extents that are no powers of two Triton makes errors; it has the other ones.
LAYER_CONFIGS = [
    (128, 64, 64, 4, 6), (256, 64, 64, 8, 4), (128, 96, 64, 8, 6), (128, 112, 64, 8, 4),
    (256, 112, 64, 8, 4), (128, 144, 64, 8, 4), (128, 176, 64, 8, 4), (128, 192, 64, 8, 4),
    (256, 96, 64, 4, 6, 2), (256, 112, 64, 4, 6, 2), (256, 112, 64, 8, 6, 2), (256, 128, 64, 8, 5, 2),
]  # fmt: skip
LAYER_FEW_ROWS = [
    (16, 128, 128, 4, 4), (16, 192, 64, 4, 6), (64, 48, 128, 4, 6), (64, 128, 64, 4, 6),
    (64, 192, 64, 8, 4), (64, 256, 64, 4, 4),
]  # fmt: skip
WIDE_ELEMENTS = [
    (128, 256, 32, 8, 3), (128, 256, 32, 8, 4), (256, 128, 32, 8, 3), (128, 128, 32, 8, 4),
    (128, 128, 32, 4, 4), (64, 128, 32, 4, 4),
]  # fmt: skip
NARROW_ELEMENTS = [
    (128, 256, 128, 8, 3), (128, 256, 128, 8, 4), (256, 128, 128, 8, 3), (128, 128, 128, 8, 4),
    (128, 128, 128, 4, 4), (128, 256, 64, 8, 4),
]  # fmt: skip
# M, N, K of 8-bit floats with scales of blocks, and their configurations.
SCALED = [
    (4096, 4096, 4096), (8192, 4096, 7168), (4096, 7168, 16384), (4096, 24576, 1536),
    (128, 7168, 2048), (128, 4096, 7168), (64, 4096, 7168), (64, 24576, 1536),
]  # fmt: skip
SCALED_CONFIGS = [
    (128, 128, 128, 8, 3), (128, 128, 128, 8, 4), (128, 128, 128, 8, 5), (128, 128, 128, 4, 3),
    (64, 128, 128, 4, 3), (64, 128, 128, 4, 4), (256, 128, 128, 8, 3), (128, 256, 128, 8, 3),
]  # fmt: skip
SCALED_FEW_ROWS = [
    (64, 128, 128, 4, 4), (64, 128, 128, 4, 6), (64, 64, 128, 4, 4), (64, 64, 128, 4, 6),
    (64, 32, 128, 4, 6), (64, 16, 128, 4, 8), (128, 64, 128, 8, 4), (128, 32, 128, 8, 6),
]  # fmt: skip
INT4 = {
    16: [(16, 64, 128, 4, 5), (16, 128, 128, 4, 4), (16, 64, 64, 4, 6), (16, 128, 128, 8, 4)],
    4096: [
        (128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (64, 128, 64, 4, 4),
        (256, 128, 64, 8, 3), (128, 64, 64, 4, 4),
    ],
}  # fmt: skip
# The same and the blocks of a cluster, which divide the tile.
CLUSTER_CONFIGS = [
    (256, 256, 64, 8, 3, 2), (256, 256, 64, 8, 4, 2), (128, 512, 64, 8, 4, 2), (512, 256, 64, 8, 4, 4),
    (512, 128, 64, 8, 4, 2), (256, 128, 64, 8, 4, 2), (128, 256, 64, 8, 4, 2), (256, 256, 64, 8, 4, 4),
    (256, 128, 64, 4, 4, 2), (128, 256, 64, 4, 4, 2), (128, 128, 64, 4, 4, 2),
]  # fmt: skip
# For few rows: each block has some columns, and all have the rows by multicast.
CLUSTER_FEW_ROWS = [
    (128, 128, 64, 4, 4, 2), (128, 128, 64, 4, 6, 2), (128, 128, 128, 4, 3, 2), (128, 128, 64, 8, 6, 2),
    (128, 256, 64, 4, 6, 4), (128, 256, 128, 4, 3, 4), (128, 256, 64, 4, 4, 2), (128, 512, 64, 4, 6, 8),
]  # fmt: skip
CLUSTER_SHAPES = [
    (8192, 8192, 8192), (4096, 4096, 4096), (8192, 1024, 8192), (32768, 8192, 2048), (2048, 2048, 2048),
    (16384, 16384, 1024), (128, 8192, 8192),
]  # fmt: skip
# The same and whether the epilogue is in halves; for elements of 16 bits, BK for others follows.
PERSISTENT = [
    (128, 256, 64, 8, 3, 0), (128, 256, 64, 8, 3, 1), (128, 256, 64, 8, 4, 1),
    (128, 128, 64, 4, 4, 0), (128, 128, 64, 8, 4, 0), (128, 128, 64, 4, 3, 1),
    (64, 256, 64, 4, 4, 0), (64, 128, 64, 4, 4, 0), (64, 64, 128, 4, 4, 0),
]  # fmt: skip

# BM, BN, warps, stages
ATTENTION_CONFIGS = [
    (128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 3),
    (64, 128, 4, 2), (128, 128, 4, 2), (64, 64, 4, 4),
]  # fmt: skip


@dataclass
class Variant:
    """A launch of one configuration."""

    config: Sequence[object]
    launch: gpu.Launch

    def __call__(self, buffers: Any) -> Any:
        return self.launch(buffers)


# --- Matmul -------------------------------------------------------------------------------


@dataclass
class Kind:
    """The types of a matmul: of its operands, accumulator and result."""

    name: str
    element: torch.dtype
    result: torch.dtype
    acc: str
    along_k: bool = False
    """Whether rows of the second operand's memory are along K."""

    @property
    def bytes(self) -> int:
        return self.element.itemsize


BF16 = Kind("bf16", torch.bfloat16, torch.bfloat16, "float32")
KINDS = [
    Kind("f16", torch.float16, torch.float16, "float32"),
    Kind("tf32", torch.float32, torch.float32, "float32"),
    Kind("int8", torch.int8, torch.int32, "int32"),
    Kind("tf32", torch.float32, torch.float32, "float32", along_k=True),
    Kind("int8", torch.int8, torch.int32, "int32", along_k=True),
    Kind("fp8", torch.float8_e4m3fn, torch.bfloat16, "float32"),
    Kind("fp8", torch.float8_e4m3fn, torch.bfloat16, "float32", along_k=True),
]


def draw(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.float8_e4m3fn:
        return gpu.random(shape, torch.float16).to(dtype)
    return gpu.random(shape, dtype)


def check_matmul(s: Any, k: int, want: Any = None) -> None:
    """Compares some rows with a matmul in float64."""
    m = s["c"].shape[0]
    some = torch.unique(torch.linspace(0, m - 1, 65, device="cuda").long())
    want = s["a"][some].double() @ s["b"].double() if want is None else want(some)
    error = float((s["c"][some].double() - want).abs().max())
    # Integers are exact; floats are products of numbers about 1, with results rounded once or
    # twice. 8-bit floats are summed in fewer bits by the instruction, by all competitors.
    limit = (6e-2 if s["a"].dtype == torch.float8_e4m3fn else 4e-2) * k**0.5
    assert error <= (0.0 if s["c"].dtype == torch.int32 else limit), f"off by {error}"
    assert bool(torch.isfinite(s["c"]).all())


def library_matmul(kind: Kind) -> list[gpu.Launch]:
    if kind.name == "int8":
        # The library wants the second operand along K; another order is its own to change.
        return [lambda s: torch._int_mm(s["a"], s["b"], out=s["c"])]
    if kind.name == "fp8":

        def scaled(s: Any, fast: bool) -> None:
            one = s.setdefault("one", torch.ones((), device="cuda"))
            torch._scaled_mm(
                s["a"], s["b"], one, one, out_dtype=s["c"].dtype, use_fast_accum=fast, out=s["c"]
            )

        return [lambda s: scaled(s, True), lambda s: scaled(s, False)]
    return [lambda s: torch.matmul(s["a"], s["b"], out=s["c"])]


def matmul_row(
    kernels: dict[str, dict[str, Any]], kind: Kind, m: int, n: int, k: int, what: str = "matmul"
) -> tuple[gpu.Row, float]:
    def make() -> Any:
        b = draw((n, k), kind.element).T if kind.along_k else draw((k, n), kind.element)
        s = {"a": draw((m, k), kind.element), "b": b}
        s["c"] = torch.empty((m, n), dtype=kind.result, device="cuda")
        gpu.poison(s["c"])
        return s

    def variant(own: Any, config: tuple[int, ...]) -> Variant:
        bm, bn, bk, warps, stages, *cluster = config
        more = {"num_ctas": cluster[0]} if cluster else {}
        blocks, acc = -(-m // bm) * -(-n // bn), getattr(own["tl"], kind.acc)
        return Variant(
            config,
            lambda s: own["matmul"][(blocks,)](
                s["a"], s["b"], s["c"], m, n, k, k, s["b"].stride(0), s["b"].stride(1), n, ACC=acc,
                BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps, num_stages=stages, **more,
            ),
        )  # fmt: skip

    configs = {4: WIDE_ELEMENTS, 2: FEW_ROWS if m <= 64 else CONFIGS, 1: NARROW_ELEMENTS}
    if what == "linear":
        configs[2] = configs[2] + (LAYER_FEW_ROWS if m <= 64 else LAYER_CONFIGS)
    competitors: dict[str, Any] = {
        name: [variant(own, config) for config in configs[kind.bytes]]
        for name, own in kernels.items()
    }
    if what == "clusters":
        own = kernels["tessera"]
        competitors["clusters"] = [
            variant(own, config) for config in (CLUSTER_FEW_ROWS if m <= 128 else CLUSTER_CONFIGS)
        ]
    # Descriptors want rows of a multiple of 16 bytes. (Of the many layers, plain kernels alone.)
    if (
        what == "matmul"
        and "triton" in kernels
        and all(extent * kind.bytes % 16 == 0 for extent in (n, k))
    ):
        from gpu_matmul_triton import persistent_matmul

        acc = getattr(kernels["triton"]["tl"], kind.acc)
        scaled = [
            (bm, bn, bk * 2 // kind.bytes, *rest)
            for bm, bn, bk, *rest in PERSISTENT
            if m > 64 or bm == 64
        ]
        competitors["descriptors"] = [
            Variant(config, lambda s, c=config: persistent_matmul(s["a"], s["b"], s["c"], acc, c))
            for config in scaled
        ]
    competitors["library"] = library_matmul(kind)
    work = f"{what} {kind.name} {m}x{n}x{k}"
    if what == "matmul" and kind.along_k:
        work += " along k"
    return gpu.Row(work, make, competitors, lambda s: check_matmul(s, k), 0), 2.0 * m * n * k


def matmul_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    for m, n, k in SHAPES:
        yield matmul_row(kernels, BF16, m, n, k)
    for kind in KINDS:
        size = 8192 if kind.name == "fp8" else 4096
        yield matmul_row(kernels, kind, size, size, size)


def cluster_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    """Tiles that blocks of a cluster divide, which copy for each other, beside those of a block."""
    own = {"tessera": kernels["tessera"]}
    for along_k in (False, True):
        kind = Kind("bf16", torch.bfloat16, torch.bfloat16, "float32", along_k)
        for m, n, k in CLUSTER_SHAPES:
            row, flops = matmul_row(own, kind, m, n, k, "clusters")
            row.work += " along k" if along_k else ""
            yield row, flops


def linear_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    """x @ W.T, with the weights' rows along K as layers keep them."""
    kind = Kind("bf16", torch.bfloat16, torch.bfloat16, "float32", along_k=True)
    for n, k in LAYERS:
        for m in TOKENS:
            yield matmul_row(kernels, kind, m, n, k, "linear")


def gelu_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    m = n = k = 4096

    def make() -> Any:
        s = {
            "a": gpu.random((m, k), torch.bfloat16), "b": gpu.random((k, n), torch.bfloat16),
            "bias": gpu.random(n, torch.bfloat16),
            "c": torch.empty((m, n), dtype=torch.bfloat16, device="cuda"),
        }  # fmt: skip
        gpu.poison(s["c"])
        return s

    def variant(own: Any, config: tuple[int, ...]) -> Variant:
        bm, bn, bk, warps, stages = config
        return Variant(
            config,
            lambda s: own["matmul_bias_gelu"][(-(-m // bm) * -(-n // bn),)](
                s["a"], s["b"], s["bias"], s["c"], m, n, k, k, n, n,
                BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps, num_stages=stages,
            ),
        )  # fmt: skip

    def unfused(s: Any) -> None:
        """A kernel for each of the three: what is promised against."""
        product = torch.matmul(s["a"], s["b"])
        torch.ops.aten.gelu.out(product + s["bias"], out=s["c"])

    def partly_fused(s: Any) -> None:
        """cuBLAS adds the bias: the stricter one."""
        torch.ops.aten.gelu.out(torch.addmm(s["bias"], s["a"], s["b"]), out=s["c"])

    def want(s: Any, some: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(
            s["a"][some].double() @ s["b"].double() + s["bias"].double()
        )

    competitors: dict[str, Any] = {
        name: [variant(own, config) for config in CONFIGS[:9]] for name, own in kernels.items()
    }
    competitors["library"] = unfused
    competitors["library addmm"] = partly_fused
    yield gpu.Row(
        f"matmul bias gelu bf16 {m}x{n}x{k}",
        make,
        competitors,
        lambda s: check_matmul(s, k, lambda some: want(s, some)),
        0,
    ), 2.0 * m * n * k


def unpack_int4(s: Any) -> torch.Tensor:
    """The weights as numbers, N x K."""
    packed = s["w"]
    n, k = packed.shape[0], 2 * packed.shape[1]
    numbers = torch.stack(((packed & 15), packed >> 4), -1).view(n, k).to(torch.bfloat16) - 8
    return (numbers.view(n, k // 128, 128) * s["scale"][:, :, None]).view(n, k)


def int4_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    n = k = 4096
    for m in (16, 4096):

        def make(m: int = m) -> Any:
            s = {
                "a": gpu.random((m, k), torch.bfloat16),
                "w": torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda"),
                "scale": (torch.rand((n, k // 128), device="cuda") / 4 + 0.1).bfloat16(),
                "c": torch.empty((m, n), dtype=torch.bfloat16, device="cuda"),
            }
            gpu.poison(s["c"])
            return s

        def variant(own: Any, config: tuple[int, ...], m: int = m) -> Variant:
            bm, bn, bk, warps, stages = config
            return Variant(
                config,
                lambda s: own["matmul_int4"][(-(-m // bm) * -(-n // bn),)](
                    s["a"], s["w"], s["scale"], s["c"], m, n, k, BM=bm, BN=bn, BK=bk, GROUP=8,
                    num_warps=warps, num_stages=stages,
                ),
            )  # fmt: skip

        def check(s: Any) -> None:
            check_matmul(s, k, lambda some: s["a"][some].double() @ unpack_int4(s).double().T)

        competitors: dict[str, Any] = {
            name: [variant(own, config) for config in INT4[m]] for name, own in kernels.items()
        }
        competitors["library"] = lambda s: torch.matmul(s["a"], unpack_int4(s).T, out=s["c"])
        yield gpu.Row(f"matmul int4 x bf16 {m}x{n}x{k}", make, competitors, check, 0), (
            2.0 * m * n * k
        )


def scale_blocks(s: Any, some: torch.Tensor) -> torch.Tensor:
    """Rows of the product of what 8-bit floats and their scales stand for, in float64."""
    (n, k), rows = s["b"].T.shape, s["a"][some].double()
    a = rows * s["a_scale"][some].double().repeat_interleave(128, 1)[:, :k]
    of_blocks = s["b_scale"].double().repeat_interleave(128, 1)[:, :k]
    b = s["b"].T.double() * of_blocks.repeat_interleave(128, 0)[:n]
    return a @ b.T


def scaled_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    """8-bit floats, scaled by 1x128 blocks of A and 128x128 blocks of B."""
    f8 = torch.float8_e4m3fn
    for m, n, k, along_k in [(*shape, True) for shape in SCALED] + [(4096, 4096, 4096, False)]:

        def make(m: int = m, n: int = n, k: int = k, along_k: bool = along_k) -> Any:
            s = {
                "a": draw((m, k), f8), "b": draw((n, k), f8).T if along_k else draw((k, n), f8),
                # Rows of A's scales are columns of memory, as libraries have them.
                "a_scale": (torch.rand((-(-k // 128), m), device="cuda") + 0.5).T,
                "b_scale": torch.rand((-(-n // 128), -(-k // 128)), device="cuda") + 0.5,
                "c": torch.empty((m, n), dtype=torch.bfloat16, device="cuda"),
            }  # fmt: skip
            gpu.poison(s["c"])
            return s

        def variant(own: Any, name: str, config: tuple[int, ...], m: int = m, n: int = n,
                    k: int = k) -> Variant:  # fmt: skip
            bm, bn, bk, warps, stages = config
            named: tuple[object, ...] = (name, *config)
            return Variant(
                named,
                lambda s: own[name][(-(-m // bm) * -(-n // bn),)](
                    s["a"], s["b"], s["a_scale"], s["b_scale"], s["c"], m, n, k, k,
                    s["b"].stride(0), s["b"].stride(1), n, s["a_scale"].stride(0),
                    s["a_scale"].stride(1), s["b_scale"].stride(0), BM=bm, BN=bn, BK=bk, GROUP=8,
                    num_warps=warps, num_stages=stages,
                ),
            )  # fmt: skip

        def blockwise(s: Any) -> None:
            torch._scaled_mm(
                s["a"], s["b"], s["a_scale"], s["b_scale"].T, out_dtype=s["c"].dtype, out=s["c"]
            )

        def unscaled(s: Any) -> None:
            """The library's product without blocks, where it has none with them: no competitor,
            but what the instructions can do."""
            one = s.setdefault("one", torch.ones((), device="cuda"))
            torch._scaled_mm(
                s["a"], s["b"], one, one, out_dtype=s["c"].dtype, use_fast_accum=True, out=s["c"]
            )

        def check(s: Any, k: int = k) -> None:
            want = (lambda some: s["a"][some].double() @ s["b"].double()) if "one" in s else None
            check_matmul(s, k, want or (lambda some: scale_blocks(s, some)))

        configs = SCALED_FEW_ROWS if m <= 128 else SCALED_CONFIGS
        competitors: dict[str, Any] = {
            name: [
                variant(own, kernel, config)
                for config in configs
                for kernel in ("matmul_scaled", "matmul_scaled_once")
                if kernel == "matmul_scaled" or config[1] <= 128
            ]
            for name, own in kernels.items()
        }
        if "triton" in kernels and along_k:
            from gpu_matmul_triton import scaled_matmul

            def by_descriptors(s: Any, config: tuple[int, ...]) -> Any:
                return scaled_matmul(s["a"], s["b"], s["a_scale"], s["b_scale"], s["c"], config)

            competitors["descriptors"] = [
                Variant(config, functools.partial(by_descriptors, config=config))
                for config in configs
                if config[1] <= 128
            ]
        competitors["library"] = blockwise
        competitors["unscaled"] = unscaled
        work = f"scaled fp8 {m}x{n}x{k}" + ("" if along_k else " along n")
        yield gpu.Row(work, make, competitors, check, 0), 2.0 * m * n * k


# --- Attention ----------------------------------------------------------------------------


def attention_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    for d in (64, 128):
        for t in (2048, 16384):
            for causal in (False, True):
                heads, batch = 2048 // d, 16384 // t

                def make(d: int = d, t: int = t, batch: int = batch, heads: int = heads) -> Any:
                    s = {x: gpu.random((batch, heads, t, d), torch.bfloat16) for x in "qkv"}
                    s["o"] = torch.empty_like(s["q"])
                    gpu.poison(s["o"])
                    return s

                def variant(own: Any, config: tuple[int, ...], d: int = d, t: int = t,
                            causal: bool = causal, count: int = batch * heads) -> Any:  # fmt: skip
                    bm, bn, warps, stages = config
                    scale = d**-0.5 * 1.4426950408889634
                    return Variant(
                        config,
                        lambda s: own["attention"][(t // bm, count)](
                            s["q"], s["k"], s["v"], s["o"], t, scale, D=d, CAUSAL=causal, BM=bm,
                            BN=bn, num_warps=warps, num_stages=stages,
                        ),
                    )  # fmt: skip

                def library(s: Any, causal: bool = causal) -> None:
                    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                        s["result"] = torch.nn.functional.scaled_dot_product_attention(
                            s["q"], s["k"], s["v"], is_causal=causal
                        )

                def check(s: Any, d: int = d, t: int = t, causal: bool = causal) -> None:
                    out = s.get("result", s["o"])
                    some = torch.unique(torch.linspace(0, t - 1, 33, device="cuda").long())
                    q, k, v = (s[x][0, 0].double() for x in "qkv")
                    scores = q[some] @ k.T * d**-0.5
                    if causal:
                        later = torch.arange(t, device="cuda")[None, :] > some[:, None]
                        scores = scores.masked_fill(later, float("-inf"))
                    want = scores.softmax(-1) @ v
                    torch.testing.assert_close(out[0, 0][some].double(), want, rtol=2e-2, atol=2e-2)
                    assert bool(torch.isfinite(out).all())

                # The causal kernel ends where its rows do: with whole blocks of columns.
                configs = [c for c in ATTENTION_CONFIGS if not causal or c[0] % c[1] == 0]
                competitors: dict[str, Any] = {
                    name: [variant(own, config) for config in configs]
                    for name, own in kernels.items()
                }
                competitors["library"] = library
                kind = "causal" if causal else "full"
                flops = 4.0 * batch * heads * t * t * d * (0.5 if causal else 1)
                yield gpu.Row(
                    f"attention bf16 d{d} T{t} {kind}", make, competitors, check, 0
                ), flops


# --- Compile times ------------------------------------------------------------------------


def workload(name: str) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """A kernel, its arguments and options, as the tables above have them."""
    if name == "matmul":
        a, b, c = (torch.empty((4096, 4096), dtype=torch.bfloat16, device="cuda") for _ in range(3))
        options = {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8, "num_warps": 8, "num_stages": 3}
        # A name of a type is looked up by whoever compiles.
        return (
            "matmul",
            (a, b, c, 4096, 4096, 4096, 4096, 4096, 1, 4096),
            {"ACC": "float32", **options},
        )
    q, k, v, o = (
        torch.empty((32, 2048, 64), dtype=torch.bfloat16, device="cuda") for _ in range(4)
    )
    options = {"D": 64, "CAUSAL": False, "BM": 128, "BN": 64, "num_warps": 4, "num_stages": 3}
    return "attention", (q, k, v, o, 2048, 0.18), options


def compile_times() -> dict[str, Any]:
    import gpu_host

    def load(compiler: Any) -> dict[str, Any]:
        names = gpu.load_kernels(compiler, KERNELS)
        build = names["matmul"].warmup

        def warmup(*arguments: Any, ACC: str, **options: Any) -> Any:
            return build(*arguments, ACC=getattr(names["tl"], ACC), **options)

        names["matmul"].warmup = warmup
        return names

    return gpu_host.compile_times(("matmul", "attention"), workload, load)


# --- The program --------------------------------------------------------------------------


def table_line(row: gpu.Row) -> str:
    """Speeds, and the ratio to the better of Triton's kernels and to the library."""
    cells = [f"{row.work:34}"]
    speeds = {who: result["TFLOP/s"] for who, result in row.results.items() if "ms" in result}
    for who, result in row.results.items():
        if "ms" not in result:
            cells.append(f"{who} {result['error'][:60]}")
            continue
        failed = f" ({len(result['failed'])} failed)" if "failed" in result else ""
        cells.append(f"{who} {result['TFLOP/s']:.1f}{failed}")
    mine = row.results.get("tessera", {})
    if "ms" in mine:
        triton = max((speeds[who] for who in ("triton", "descriptors") if who in speeds), default=0)
        libraries = [(who, speed) for who, speed in speeds.items() if who.startswith("library")]
        for who, speed in [("triton", triton), *libraries]:
            if speed:
                cells.append(f"of {who} {speeds['tessera'] / speed:.2f}")
        if "clusters" in speeds:
            cells.append(f"clusters of tessera {speeds['clusters'] / speeds['tessera']:.3f}")
            cells.append("[" + ",".join(map(str, row.results["clusters"]["config"])) + "]")
        config = ",".join(map(str, mine.get("config", ())))
        cells.append(f"[{config}] {mine.get('n_regs')} registers, {mine.get('n_spills')} spilled")
    return "  ".join(cells)


def ratio_line(results: list[Any], what: str) -> str:
    """The geometric mean of the ratios to the library in rows of a kind, and the least of them."""
    ratios = {
        row["work"]: row["results"]["library"]["ms"] / row["results"]["tessera"]["ms"]
        for row in results
        if row["work"].startswith(what)
        and all("ms" in row["results"].get(who, {}) for who in ("tessera", "library"))
    }
    if not ratios:
        return ""
    worst = min(ratios, key=lambda work: ratios[work])
    mean = statistics.geometric_mean(ratios.values())
    return f"{len(ratios)} rows of {what}: {mean:.3f} of the library; {worst} {ratios[worst]:.2f}"


def is_wanted(work: str, only: str) -> bool:
    named = f" {work} "
    return any(
        all(f" {word}" in named for word in part.split()) or not part for part in only.split(",")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", action="store_true", help="measure cold compiles, too")
    parser.add_argument("--clusters", action="store_true", help="measure clusters of blocks alone")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    kernels = {
        name: gpu.load_kernels(compiler, KERNELS) for name, compiler in gpu.compilers().items()
    }
    results: list[Any] = []
    report: dict[str, Any] = {"environment": gpu.environment(), "rows": results}

    def save() -> None:
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1))

    families = [matmul_rows, linear_rows, gelu_rows, scaled_rows, int4_rows, attention_rows]
    for family in [cluster_rows] if arguments.clusters else families:
        for row, flops in family(kernels):
            if not is_wanted(row.work, arguments.only):
                continue
            gpu.measure(row, arguments.rounds)
            for result in row.results.values():
                if "ms" in result:
                    result["TFLOP/s"] = flops / result["ms"] / 1e9
            results.append({"work": row.work, "results": row.results})
            print(table_line(row), flush=True)
            save()
    if line := ratio_line(results, "linear"):
        print(line)
    if arguments.compile:
        import gpu_host

        report["compile"] = compile_times()
        print(gpu_host.format_times("compile", report["compile"]))
        save()


if __name__ == "__main__":
    main()
