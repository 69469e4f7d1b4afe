# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile with Tessera against torch's own back end: Triton on a GPU, C++ on a CPU.

Usage: torch_compile.py [--device cuda|cpu] [--only TEXT] [--json FILE]

Each back end runs in a process of its own, with empty caches: one process has one `triton`, and
compiling is part of what is measured. Results are compared with those of the same model uncompiled.
Times are of whole calls from Python, the least of three medians.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as functional
from torch import nn

BACKENDS = ("tessera", "inductor")


class Block(nn.Module):  # type: ignore[misc]  # nn is Any
    """A block of a transformer, its norms in front."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(mixed)
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class GatedBlock(nn.Module):  # type: ignore[misc]
    """A block as of llama: RMS norms and a gated MLP."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(2)])
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def norm(self, x: torch.Tensor, which: int) -> torch.Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
        return wide.to(x.dtype) * self.scales[which]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.norm(x, 0)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.norm(x, 1)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


@dataclass
class Work:
    """A model, or a function, and what it is called with."""

    model: Any
    arguments: tuple[Any, ...]
    train: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    """More of torch.compile's arguments."""


def works(device: str) -> dict[str, Callable[[], Work]]:
    """The rows; half as wide in floats of 32 bits on a CPU."""
    on_gpu = device == "cuda"
    half = torch.float16 if on_gpu else torch.float32

    def draw(*shape: int, dtype: torch.dtype = half) -> torch.Tensor:
        return torch.randn(*shape, device=device).to(dtype)

    def models(*blocks: nn.Module) -> nn.Module:
        return nn.Sequential(*blocks).to(device).to(half).eval()

    def convolutions() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(64, 10),
        ).to(device).eval()  # fmt: skip

    n = 4096 if on_gpu else 1024
    graphs = {"options": {"triton.cudagraphs": True}}
    tuned = {"options": {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}}
    rows: dict[str, Callable[[], Work]] = {
        f"elementwise {n}x{n}": lambda: Work(
            lambda x, y: functional.gelu(x * 2 + y).sin() * y.sigmoid(), (draw(n, n), draw(n, n))
        ),
        f"softmax {n}x4000": lambda: Work(
            lambda x: torch.softmax(x.float() * 1.5, -1).to(x.dtype), (draw(n, 4000),)
        ),
        f"layer norm and relu {n}x4096": lambda: Work(
            lambda x, w, b: functional.layer_norm(x, (4096,), w, b).relu(),
            (draw(n, 4096), draw(4096), draw(4096)),
        ),
        "block 768, 8x512": lambda: Work(models(Block(768, 12)), (draw(8, 512, 768),)),
        "block 768, 1x128": lambda: Work(models(Block(768, 12)), (draw(1, 128, 768),)),
        "block 256 trained, 4x128": lambda: Work(
            Block(256, 4).to(device), (draw(4, 128, 256, dtype=torch.float32),), train=True
        ),
        "gated block 2048, 1x128": lambda: Work(
            models(GatedBlock(2048, 32, 5632)), (draw(1, 128, 2048),)
        ),
        "convolutions 8x64x64": lambda: Work(
            convolutions(), (draw(8, 3, 64, 64, dtype=torch.float32),)
        ),
        "sum of exp, any shape": lambda: Work(
            lambda x: (x.exp().sum(-1), x.amax(0)), (draw(37, 1111),), options={"dynamic": True}
        ),
    }
    if on_gpu:
        rows["block 768, 1x128, CUDA graph"] = lambda: Work(
            models(Block(768, 12)), (draw(1, 128, 768),), options=graphs
        )
        rows["matmul and gelu 2048, tuned"] = lambda: Work(
            lambda a, b: functional.gelu(a @ b), (draw(2048, 2048), draw(2048, 2048)), options=tuned
        )
    return rows


def finish(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def microseconds(call: Callable[[], Any], device: str) -> float:
    def once() -> float:
        start = time.perf_counter()
        call()
        finish(device)
        return (time.perf_counter() - start) * 1e6

    for _ in range(3):
        once()
    return min(statistics.median(once() for _ in range(9)) for _ in range(3))


def flat(results: Any) -> list[torch.Tensor]:
    return [x.double() for x in (results if isinstance(results, (tuple, list)) else [results])]


def error_of(got: Any, wanted: Any) -> float:
    """The largest difference, of the largest number there is in the same result."""
    return max(
        float((a - b).abs().max() / (b.abs().max() + 1e-6)) for a, b in zip(flat(got), flat(wanted))
    )


def measure(work: Work, backend: str, device: str) -> dict[str, Any]:
    def bind(model: Any) -> Callable[[], Any]:
        if work.train:
            parameters = list(work.model.parameters())
            return lambda: torch.autograd.grad(model(*work.arguments).sum(), parameters)

        def infer() -> Any:
            with torch.no_grad():
                return model(*work.arguments)

        return infer

    compiled = bind(torch.compile(work.model, backend=backend, fullgraph=True, **work.options))
    start = time.perf_counter()
    got = compiled()
    finish(device)
    seconds = time.perf_counter() - start
    eager = bind(work.model)
    return {
        "error": error_of(got, eager()),
        "us": microseconds(compiled, device),
        "eager_us": microseconds(eager, device),
        "compile_s": seconds,
    }


def run(backend: str, device: str, only: str) -> None:
    """Prints a line of JSON for each row, after a line that says where."""
    versions = {"torch": torch.__version__}
    if backend == "tessera":
        import tessera.torch

        tessera.torch.activate()
        versions["tessera"] = tessera.__version__
    print(json.dumps({"versions": versions}), flush=True)
    torch.manual_seed(0)
    for name, make in works(device).items():
        if only not in name:
            continue
        torch._dynamo.reset()
        try:
            result = measure(make(), backend, device)
        except Exception as error:  # one row that fails is a result, too
            result = {"failed": f"{type(error).__name__}: {str(error).strip()[-400:]}"}
        print(json.dumps({"work": name, **result}), flush=True)


def start(backend: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The lines of a back end, from a process with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            name: f"{folder}/{name}" for name in ("TORCHINDUCTOR_CACHE_DIR", "TESSERA_CACHE_DIR")
        }
        command = [sys.executable, __file__, "--backend", backend]
        command += ["--device", options.device, "--only", options.only]
        done = subprocess.run(
            command, env={**os.environ, **caches}, stdout=subprocess.PIPE, text=True
        )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--backend", choices=BACKENDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.backend:
        return run(options.backend, options.device, options.only)
    lines = {backend: start(backend, options) for backend in BACKENDS}
    rows: dict[str, dict[str, Any]] = {}
    for backend, results in lines.items():
        for result in results[1:]:
            rows.setdefault(result.pop("work"), {})[backend] = result
    print(f"{'':32}  error  eager us  tessera    torch  ratio  compile s    torch")
    for name, row in rows.items():
        mine, other = (row.get(backend, {"failed": "no result"}) for backend in BACKENDS)
        if "failed" in mine or "failed" in other:
            print(f"{name:32}  {mine.get('failed') or 'torch: ' + str(other.get('failed'))}")
            continue
        print(
            f"{name:32} {mine['error']:6.0e} {mine['eager_us']:9.1f} {mine['us']:8.1f} "
            f"{other['us']:8.1f} {other['us'] / mine['us']:6.2f} {mine['compile_s']:10.2f} "
            f"{other['compile_s']:8.2f}"
        )
    if options.json:
        versions = {
            key: value
            for results in lines.values()
            for key, value in results[0]["versions"].items()
        }
        report = {
            "benchmark": "torch_compile",
            "device": options.device,
            "versions": versions,
            "rows": rows,
        }
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
