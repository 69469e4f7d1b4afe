# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long tuning takes, how good what it chooses is, and what a tuned kernel's launch costs.

    python python/benchmarks/tuning.py --device cpu
    python python/benchmarks/tuning.py --device cuda --compilers tessera triton
    python python/benchmarks/tuning.py --device cuda --compilers tessera triton --busy 8 --first 8

`wall`: the seconds of a first launch with the lists of the matmul tutorial (15 configurations)
and of the attention tutorial (36), in a process of its own whose caches are empty (`small`: the matmul
with an extent of 512). With --first, of the first configurations alone; with --busy, while so many
other processes multiply matrices on the GPU without a pause. `choice`: twenty
tunings of the matmul, and how much slower what they chose is than the best of the list.
`launch`: nanoseconds of a warm launch of the tuned kernel and of the plain one. A line of
JSON for each. Needs torch, and for `triton` that.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import types
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent

MATMULS = [
    (128, 256, 64, 8, 3), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 2, 5), (32, 64, 32, 2, 5),
    (128, 256, 128, 8, 3), (256, 128, 128, 8, 3), (256, 64, 128, 4, 4), (64, 256, 128, 4, 4),
    (128, 128, 128, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4),
]  # fmt: skip


def load(compiler: str) -> tuple[Any, Any]:
    """The compiler's package, and the kernels."""
    package = importlib.import_module(compiler)
    language = importlib.import_module(f"{compiler}.language")
    shim = types.ModuleType("tuning_compiler")
    shim.jit, shim.tl = package.jit, language
    sys.modules["tuning_compiler"] = shim
    sys.path.insert(0, str(HERE))
    return package, importlib.import_module("tuning_kernels")


def matmul_configs(package: Any) -> list[Any]:
    return [
        package.Config({"BM": m, "BN": n, "BK": k, "GROUP": 8}, num_warps=w, num_stages=s)
        for m, n, k, w, s in MATMULS
    ]


def attention_configs(package: Any) -> list[Any]:
    return [
        package.Config({"BM": m, "BN": n}, num_warps=w, num_stages=s)
        for m in (64, 128)
        for n in (32, 64, 128)
        for s in (2, 3, 4)
        for w in (4, 8)
    ]


def matmul_launch(device: str, size: int = 0) -> tuple[Any, Any, tuple[Any, ...]]:
    import torch

    size = size or (4096 if device == "cuda" else 512)
    dtype = torch.float16 if device == "cuda" else torch.float32
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    c = torch.empty_like(a)

    def grid(meta: Any) -> tuple[int]:
        return (-(-size // meta["BM"]) * -(-size // meta["BN"]),)

    return grid, c, (a, b, c, size, size, size, size, size, size)


def attention_launch(device: str) -> tuple[Any, Any, tuple[Any, ...]]:
    import torch

    batch, n, d = (32, 4096, 128) if device == "cuda" else (2, 512, 64)
    dtype = torch.float16 if device == "cuda" else torch.float32
    q, k, v = (torch.randn(batch, n, d, device=device, dtype=dtype) for _ in range(3))
    o = torch.empty_like(q)

    def grid(meta: Any) -> tuple[int, int]:
        return (n // meta["BM"], batch)

    return grid, o, (q, k, v, o, d**-0.5, n, d)


def synchronize(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def occupy() -> None:
    """Keeps a GPU busy until the process is killed."""
    import torch

    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.float16) for _ in range(2))
    while True:
        for _ in range(20):
            a @ b
        torch.cuda.synchronize()
        print("busy", flush=True)


def wall(compiler: str, device: str, which: str, first: int) -> dict[str, Any]:
    """The seconds of the first launch with the `first` configurations of the list."""
    package, kernels = load(compiler)
    if which in ("matmul", "small"):
        grid, _, args = matmul_launch(device, 512 if which == "small" else 0)
        configs, kernel, key = matmul_configs(package), kernels.matmul, ["M", "N", "K"]
    else:
        grid, _, args = attention_launch(device)
        configs, kernel, key = attention_configs(package), kernels.attention, ["N", "D"]
    synchronize(device)
    configs = configs[:first]
    tuned = package.autotune(configs, key=key)(kernel)
    start = time.monotonic()
    tuned[grid](*args)
    synchronize(device)
    took = time.monotonic() - start
    return {
        **{"what": "wall", "kernel": which, "configs": len(configs), "seconds": took},
        "best": str(tuned.best_config),
    }


def choice(compiler: str, device: str) -> dict[str, Any]:
    """How much slower what is chosen is than the best."""
    package, kernels = load(compiler)
    grid, _, args = matmul_launch(device)
    configs = matmul_configs(package)
    more = {"cache_results": False} if compiler == "tessera" else {}
    chosen = []
    start = time.monotonic()
    for _ in range(20):
        tuned = package.autotune(configs, key=["M"], **more)(kernels.matmul)
        tuned[grid](*args)
        chosen.append(tuned.best_config)
    took = (time.monotonic() - start) / 20
    testing = importlib.import_module(f"{compiler}.testing")
    times: dict[Any, float] = {config: float("inf") for config in set(chosen)}
    candidates = sorted(set(chosen), key=chosen.index)
    best = sorted(tuned.configs_timings, key=lambda config: tuned.configs_timings[config])[:4]
    for config in best:
        times.setdefault(config, float("inf"))
    for _ in range(20):  # in turn, as the machine drifts
        for config in times:
            options = config.all_kwargs()
            one = testing.do_bench(
                lambda: kernels.matmul[grid](*args, **options), 5, 20, return_mode="median"
            )
            times[config] = min(times[config], one)
    losses = [100 * (times[config] / min(times.values()) - 1) for config in chosen]
    return {
        **{"what": "choice", "kernels": len(candidates), "seconds": took},
        "losses_percent": sorted(round(loss, 2) for loss in losses),
    }


def launch(compiler: str, device: str) -> dict[str, Any]:
    """Nanoseconds of warm launches."""
    import torch

    package, kernels = load(compiler)
    x = torch.ones(64, device=device)
    out = torch.empty_like(x)
    configs = [package.Config({"BLOCK": size}) for size in (32, 64)]
    tuned = package.autotune(configs, key=["n"])(kernels.scale)
    tuned[(1,)](x, out, 64)
    block = tuned.best_config.kwargs["BLOCK"]

    def measure(call: Any, count: int = 500) -> float:
        synchronize(device)
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        return (time.perf_counter_ns() - start) / count

    plain, best = [], []
    for _ in range(200):
        plain.append(measure(lambda: kernels.scale[(1,)](x, out, 64, BLOCK=block)))
        best.append(measure(lambda: tuned[(1,)](x, out, 64)))
    middle = 200 // 2
    return {
        **{"what": "launch", "plain_ns": min(plain), "tuned_ns": min(best)},
        "plain_median_ns": sorted(plain)[middle],
        "tuned_median_ns": sorted(best)[middle],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compilers", nargs="*", default=["tessera"])
    parser.add_argument("--what", nargs="*", default=["matmul", "attention", "choice", "launch"])
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--one", help="(of a process of its own)")
    given = parser.parse_args()
    if given.one == "occupy":
        return occupy()
    if given.one:
        (compiler,) = given.compilers
        if given.one in ("matmul", "attention", "small"):
            found = wall(compiler, given.device, given.one, given.first)
        else:
            found = {"choice": choice, "launch": launch}[given.one](compiler, given.device)
        print(json.dumps({"compiler": compiler, "device": given.device, **found}))
        return
    command = [sys.executable, __file__, "--device", given.device, "--first", str(given.first)]
    others = [
        subprocess.Popen([*command, "--one", "occupy"], stdout=subprocess.PIPE)
        for _ in range(given.busy)
    ]
    for other in others:
        other.stdout.readline()  # it has begun
        threading.Thread(target=other.stdout.read, daemon=True).start()
    try:
        for what in given.what * given.rounds:
            for compiler in given.compilers:
                print(measure([*command, "--one", what], compiler), flush=True)
    finally:
        for other in others:
            other.kill()


def measure(command: list[str], compiler: str) -> str:
    """What a process of its own prints."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TESSERA_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder}
        command = [*command, "--compilers", compiler]
        done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE)
        return done.stdout.strip() or f"{compiler}: {' '.join(command[-4:])} failed"


if __name__ == "__main__":
    main()
