# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products and attention on an NVIDIA GPU: one source under Tessera and Triton, and the libraries.

Usage: gpu_matmul.py [--only TEXT] [--json FILE] [--rounds N] [--verbose]

Measured as in gpu.py: graphs of launches on buffers that go round, replayed in turns. Every
compiler gets the same list of configurations; the best of each counts. cuBLAS and cuDNN are
what torch calls.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Iterator
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

# BM, BN, BK, warps, stages
CONFIGS = [
    (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (256, 128, 64, 8, 4),
    (128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (128, 128, 64, 8, 3), (64, 256, 64, 4, 4),
    (64, 128, 64, 4, 4), (128, 64, 64, 4, 4), (64, 64, 64, 4, 6), (64, 64, 128, 4, 4),
    (64, 32, 128, 4, 6),
]  # fmt: skip
FEW_ROWS = [
    (16, 32, 128, 4, 5), (16, 64, 128, 4, 5), (16, 64, 256, 4, 4), (16, 128, 64, 4, 6),
    (16, 32, 256, 4, 5), (64, 32, 128, 4, 6), (64, 64, 128, 4, 4),
]  # fmt: skip

# BM, BN, warps, stages
ATTENTION_CONFIGS = [
    (128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 3),
    (64, 128, 4, 2), (128, 128, 4, 2), (64, 64, 4, 4),
]  # fmt: skip


def load_kernels(compiler: Any) -> dict[str, Any]:
    names = {"jit": compiler.jit, "tl": compiler.language, "__name__": KERNELS.stem}
    exec(compile(KERNELS.read_text(), str(KERNELS), "exec"), names)
    return names


def matmul_rows(kernels: dict[str, dict[str, Any]]) -> Iterator[tuple[gpu.Row, float]]:
    for m, n, k in SHAPES:

        def make(m: int = m, n: int = n, k: int = k) -> Any:
            s = {
                "a": gpu.random((m, k), torch.bfloat16), "b": gpu.random((k, n), torch.bfloat16),
                "c": torch.empty((m, n), dtype=torch.bfloat16, device="cuda"),
            }  # fmt: skip
            gpu.poison(s["c"])
            return s

        def variant(own: Any, config: tuple[int, ...], m: int = m, n: int = n, k: int = k) -> Any:
            bm, bn, bk, warps, stages = config
            blocks = -(-m // bm) * -(-n // bn)
            return lambda s: own["matmul"][(blocks,)](
                s["a"], s["b"], s["c"], m, n, k, k, n, n, BM=bm, BN=bn, BK=bk, GROUP=8,
                num_warps=warps, num_stages=stages,
            )  # fmt: skip

        def check(s: Any, m: int = m, k: int = k) -> None:
            some = torch.unique(torch.linspace(0, m - 1, 65, device="cuda").long())
            want = s["a"][some].double() @ s["b"].double()
            error = (s["c"][some].double() - want).abs().max()
            assert float(error) <= 2e-2 * k**0.5, f"off by {float(error)}"
            assert bool(torch.isfinite(s["c"]).all())

        configs = FEW_ROWS if m <= 64 else CONFIGS
        competitors: dict[str, Any] = {
            name: [variant(own, config) for config in configs] for name, own in kernels.items()
        }
        competitors["library"] = lambda s: torch.matmul(s["a"], s["b"], out=s["c"])
        work = f"matmul bf16 {m}x{n}x{k}"
        yield gpu.Row(work, make, competitors, check, 0), 2.0 * m * n * k


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
                    return lambda s: own["attention"][(t // bm, count)](
                        s["q"], s["k"], s["v"], s["o"], t, scale, D=d, CAUSAL=causal, BM=bm,
                        BN=bn, num_warps=warps, num_stages=stages,
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    kernels = {name: load_kernels(compiler) for name, compiler in gpu.compilers().items()}
    rows = [*matmul_rows(kernels), *attention_rows(kernels)]
    results: list[Any] = []
    report = {"environment": gpu.environment(), "rows": results}
    for row, flops in rows:
        if not all(part in row.work for part in arguments.only.split()):
            continue
        gpu.measure(row, arguments.rounds)
        for result in row.results.values():
            if "ms" in result:
                result["TFLOP/s"] = flops / result["ms"] / 1e9
        results.append({"work": row.work, "results": row.results})
        texts = [
            (
                f"{name} {result['TFLOP/s']:7.1f}"
                if "ms" in result
                else f"{name} {result['error'][:60]}"
            )
            for name, result in sorted(row.results.items())
        ]
        print(f"{row.work:34} {'   '.join(texts)}", flush=True)
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
