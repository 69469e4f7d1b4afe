# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmuls that nobody has written for L2, beside cuBLAS and Triton.

    python python/benchmarks/tile_order.py --json tile_order.json

x @ w.T of float16 by kernels (tile_order_kernels.py) whose programs have tiles row by row: numbered
along one axis of the grid, along two, or taken in turns by as many programs as there are SMs; and
four matmuls that one kernel finds in memory, by descriptors (x @ w.T) and by pointers (x @ w), by
cuBLAS one by one. The same kernels and list of configurations for Tessera and Triton, in turns, on
random data; each configuration's time is the median of `tutorials.do_bench`, the least of three.
Results are compared with torch's. Needs a GPU and Triton.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import json
import pathlib

import gpu
import torch
from tutorials import do_bench

KERNELS = pathlib.Path(__file__).with_name("tile_order_kernels.py")
CONFIGS = [(128, 4, 3), (128, 4, 4), (128, 8, 3), (128, 8, 4), (256, 8, 3), (256, 8, 4)]
"""Columns of a tile, warps and stages; a tile has 128 rows, 64 of K."""
SHAPES = [
    (1024, 1024, 1024),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (4096, 28672, 4096),
    (16384, 2048, 4096),
]


def one(M, N, K):
    """Work, the calls by the names of kernels, how far off a result is, and the library's call."""
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randn(N, K, device="cuda", dtype=torch.float16)
    c = torch.empty(M, N, device="cuda", dtype=torch.float16)
    sms = torch.cuda.get_device_properties("cuda").multi_processor_count
    want = a @ b.T

    def call(kernels, name, columns, warps, stages):
        across, down = N // columns, M // 128
        grid = {"one_axis": (down * across,), "two_axes": (down, across), "in_turns": (sms,)}[name]
        kernels[name][grid](a, b, c, M, N, K, sms, 128, columns, 64,
                            num_warps=warps, num_stages=stages)  # fmt: skip

    def library():
        torch.matmul(a, b.T, out=c)

    def error():
        off = ((c - want).abs().max() / want.abs().max()).item()
        c.zero_()
        return off

    return 2 * M * N * K, call, error, library


def several(size, along_k, count=4):
    """Matmuls whose second operand has its rows along K or, as the tutorial's pointers, across it."""
    a, b = (
        [torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(count)]
        for _ in range(2)
    )
    c = [torch.empty_like(each) for each in a]
    seconds = [y.T for y in b] if along_k else b
    sms = torch.cuda.get_device_properties("cuda").multi_processor_count
    where = [torch.tensor([x.data_ptr() for x in xs], device="cuda") for xs in (a, b, c)]
    sizes = torch.full((3 * count,), size, dtype=torch.int32, device="cuda")

    def call(kernels, name, columns, warps, stages):
        kernels[name][(sms,)](*where, sizes, sizes, count, sms, 128, columns, 64,
                              num_warps=warps, num_stages=stages)  # fmt: skip

    def library():
        for x, y, z in zip(a, seconds, c):
            torch.matmul(x, y, out=z)

    def error():
        off = 0.0
        for x, y, z in zip(a, seconds, c):
            want = x @ y
            off = max(off, ((z - want).abs().max() / want.abs().max()).item())
            z.zero_()
        return off

    return 2 * count * size**3, call, error, library


def measure(kernels, forms, work, call, error, library):
    """TFLOP/s of each form, compiler and configuration."""
    least: dict[str, dict[str, dict[str, float]]] = {}

    def keep(form, name, config, run):
        times = least.setdefault(form, {}).setdefault(name, {})
        time = do_bench(run)
        times[config] = min(time, times.get(config, time))

    refused = set()
    for turn in range(3):
        for config in CONFIGS:
            for form in forms:
                for name, own in kernels.items():
                    if (form, name, config) in refused:
                        continue
                    try:
                        call(own, form, *config)
                    except Exception as refusal:  # too large for shared memory, of either compiler
                        print(f"{form}, {name}, {config}: {str(refusal).splitlines()[0][:80]}")
                        refused.add((form, name, config))
                        continue
                    if turn == 0 and not error() < 2e-2:
                        raise SystemExit(f"{form}: {name} is wrong with {config}")
                    keep(form, name, str(config), lambda own=own: call(own, form, *config))
        keep("library", "cuBLAS", "", library)
    return {
        form: {
            name: {config: work / time / 1e9 for config, time in times.items()}
            for name, times in by_name.items()
        }
        for form, by_name in least.items()
    }


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
    cases = [(("one_axis", "two_axes", "in_turns"), one, shape) for shape in SHAPES]
    for size in (2048, 4096):
        cases.append((("problems",), several, (size, True)))
        cases.append((("problem_pointers",), several, (size, False)))
    for forms, make, shape in cases:
        torch.manual_seed(0)
        figures = measure(kernels, forms, *make(*shape))
        rows.append({"shape": shape, "tflops": figures})
        best = {
            form: {name: max(each.values()) for name, each in by_name.items()}
            for form, by_name in figures.items()
        }
        library = best.pop("library")["cuBLAS"]
        for form, by_name in best.items():
            shares = {name: f"{figure / library:.3f}" for name, figure in by_name.items()}
            print(form, *shape, f"cuBLAS {library:.0f} TFLOP/s, of which", shares, flush=True)
    if given.json:
        machine = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        text = json.dumps({"machine": machine, "rows": rows}, indent=1)
        pathlib.Path(given.json).write_text(text + "\n")


if __name__ == "__main__":
    main()
