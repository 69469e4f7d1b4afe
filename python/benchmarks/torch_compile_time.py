# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long one model takes to compile, cold, with nothing else on the machine.

    python python/benchmarks/torch_compile_time.py torchvision/resnet50/training ... [--json FILE]

Each model is compiled in processes of its own, with empty caches, by Tessera, by Tessera with one
process that generates code and no layers compiled once (TESSERA_CODEGEN_PROCESSES=1,
TESSERA_DEDUPLICATE=0), and by Inductor's own back end. Not counted are imports, a small function
that has torch.compile loaded, and an eager call of the model, in which cuDNN and cuBLAS start. Beside the seconds are what a call takes then (the least of
ten, in milliseconds), the most of the GPU's memory that the last call had (in megabytes), and how
many parts of graphs another process could not generate code for.
torch_models.py compares results, and times models in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

WAYS: dict[str, dict[str, str]] = {
    "tessera": {},
    "tessera, whole graphs": {"TESSERA_CODEGEN_PROCESSES": "1", "TESSERA_DEDUPLICATE": "0"},
    "inductor": {},
}
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TESSERA_CACHE_DIR", "TRITON_CACHE_DIR")


def run_case(case: str, way: str, device: str, small: bool) -> None:
    import torch
    from torch_models_rows import make

    backend = "inductor" if way == "inductor" else "tessera"
    if backend == "tessera":
        import tessera.torch

        tessera.torch.activate()
    family, name, mode = case.split("/")
    is_training = mode == "training"
    made = make(family, name, small)
    module = made.module.to(device).train(is_training)
    dtype = torch.float32 if is_training or device == "cpu" else torch.bfloat16
    module = module.to(dtype)
    inputs = {
        key: value.to(device, dtype if value.dtype.is_floating_point else None)
        for key, value in made.inputs.items()
    }

    def small_function(x: Any) -> Any:
        return (torch.sin(x) + 1).sum()

    first = torch.randn(100, device=device, requires_grad=True)
    torch.compile(small_function, backend=backend)(first).backward()
    torch.compiler.reset()
    labels = made.labels.to(device)
    function = made.loss() if is_training else made.infer()

    def call(called: Callable[..., Any]) -> None:
        with torch.autocast(device, torch.bfloat16, enabled=is_training):
            with torch.set_grad_enabled(is_training):
                result = called(module, inputs, *([labels] if is_training else []))
        if is_training:
            result.backward()
            module.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()

    call(function)
    compiled = torch.compile(function, backend=backend)
    begin = time.perf_counter()
    call(compiled)
    seconds = time.perf_counter() - begin
    call(compiled)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    calls = []
    for _ in range(10):
        begin = time.perf_counter()
        call(compiled)
        calls.append(time.perf_counter() - begin)
    memory = torch.cuda.max_memory_allocated() / 1e6 if device == "cuda" else 0.0
    row = {"compile_s": seconds, "call_ms": min(calls) * 1e3, "memory_mb": memory}
    row["failed_in_fork"] = torch._dynamo.utils.counters["tessera"]["codegen_failed_in_fork"]
    print(json.dumps(row))


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", help="family/model/inference or training")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--small", action="store_true", help="models that a CPU can run")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        return run_case(options.cases[0], options.way, options.device, options.small)
    name = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    report: dict[str, Any] = {
        "benchmark": "torch_compile_time",
        "device": name,
        "cpus": len(os.sched_getaffinity(0)),
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "rows": {},
    }
    for case in options.cases:
        row = report["rows"][case] = {}
        for way in options.ways:
            with tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, **WAYS[way]}
                environment.update({name: f"{folder}/{name}" for name in CACHES})
                command = [sys.executable, __file__, case, "--way", way, "--device", options.device]
                command += ["--small"] * options.small
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
            lines = done.stdout.splitlines()
            row[way] = json.loads(lines[-1]) if done.returncode == 0 else {"error": done.stderr}
            text = ", ".join(f"{key} {value:.2f}" for key, value in row[way].items() if lines)
            print(f"{case:40} {way:22} {text or done.stderr[-300:]}", flush=True)
            if options.json:
                options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
