# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmuls by experts, and attention with lengths: what a loop does is loaded from memory.

    python python/benchmarks/ragged.py --json ragged.json

16,384 rows of 8 experts (N 4,096, K 2,048), beside cuBLAS expert by expert; and attention of 16
heads with sequences of 4,096, 3,000, 2,048 and 1,000 of 4,096 keys (heads of 128). The same kernels
(ragged_kernels.py) and list of configurations for Tessera and Triton, in turns, on random data;
each configuration's time is the median of `tutorials.do_bench`, the least of three. Results are
compared with torch's. Needs a GPU and Triton.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import json
import pathlib

import gpu
import torch
from tutorials import do_bench

KERNELS = pathlib.Path(__file__).with_name("ragged_kernels.py")
LOG2E = 1.4426950408889634


def experts():
    """FLOP, the calls by their names, how far off the result is, and the library's call."""
    M, N, K, count, rows = 16384, 4096, 2048, 8, 128
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randn(count * N, K, device="cuda", dtype=torch.float16)
    c = torch.empty(M, N, device="cuda", dtype=torch.float16)
    chosen = torch.arange(M // rows, device="cuda", dtype=torch.int32) * count // (M // rows)
    share = M // count

    def call(kernels, columns, warps, stages):
        grid = (M // rows * (N // columns),)
        kernels["experts"][grid](a, b, c, chosen, M, N, K, count, rows, columns, 64,
                                 num_warps=warps, num_stages=stages)  # fmt: skip

    def library():
        for number in range(count):
            part = slice(number * share, (number + 1) * share)
            torch.matmul(a[part], b[number * N : (number + 1) * N].T, out=c[part])

    def error():
        want = a[-rows:].float() @ b[-N:].float().T
        return ((c[-rows:].float() - want).abs().max() / want.abs().max()).item()

    configs = [(128, 4, 3), (128, 8, 3), (256, 8, 3), (256, 8, 4)]
    return 2 * M * N * K, call, configs, error, library


def attention():
    heads, T, D, rows = 16, 4096, 128, 128
    lengths = [4096, 3000, 2048, 1000]
    q, k, v = (
        torch.randn(len(lengths) * heads, T, D, device="cuda", dtype=torch.float16)
        for _ in range(3)
    )
    o = torch.empty_like(q)
    of = torch.tensor(lengths, device="cuda", dtype=torch.int32)

    def call(kernels, columns, warps, stages):
        grid = (T // rows, len(lengths) * heads)
        kernels["attend"][grid](q, k, v, o, of, heads, T, LOG2E * D**-0.5, rows, columns, D,
                                num_warps=warps, num_stages=stages)  # fmt: skip

    def error():
        z, length = heads + 3, lengths[1]
        scores = q[z].float() @ k[z, :length].float().T * D**-0.5
        want = torch.softmax(scores, -1) @ v[z, :length].float()
        return ((o[z].float() - want).abs().max() / want.abs().max()).item()

    configs = [(128, 8, 2), (64, 8, 3), (64, 4, 3)]
    return 4 * D * T * heads * sum(lengths), call, configs, error, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    given = parser.parse_args()
    kernels = {name: gpu.load_kernels(each, KERNELS) for name, each in gpu.compilers().items()}
    if gpu.triton is not None:
        gpu.triton.set_allocator(
            lambda size, *_: torch.empty(size, device="cuda", dtype=torch.int8)
        )
    rows = []
    for make in (experts, attention):
        torch.manual_seed(0)
        work, call, configs, error, library = make()
        least: dict[str, dict[str, float]] = {}
        for _ in range(3):
            for config in configs:
                for name, own in kernels.items():
                    call(own, *config)
                    off = error()
                    if not off < 2e-2:
                        raise SystemExit(f"{make.__name__}: {name} is {off} off with {config}")
                    time = do_bench(lambda own=own, config=config: call(own, *config))
                    times = least.setdefault(name, {})
                    times[str(config)] = min(time, times.get(str(config), time))
            if library:
                time = do_bench(library)
                times = least.setdefault("cuBLAS", {})
                times[""] = min(time, times.get("", time))
        row = {"work": make.__name__, "tflops": {}}
        for name, times in least.items():
            row["tflops"][name] = {config: work / time / 1e9 for config, time in times.items()}
        rows.append(row)
        best = {name: round(max(each.values())) for name, each in row["tflops"].items()}
        print(make.__name__, "TFLOP/s", best, flush=True)
    if given.json:
        machine = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        text = json.dumps({"machine": machine, "rows": rows}, indent=1)
        pathlib.Path(given.json).write_text(text + "\n")


if __name__ == "__main__":
    main()
