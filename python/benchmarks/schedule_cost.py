# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What schedules are expected to cost beside what they take.

Usage: schedule_cost.py [--json FILE] [--dry]

Every configuration that the benchmarks of matmul (4096^3), attention's forward pass (2,048 tokens)
and its backward pass (4,096) try: the cycles of an iteration (a remark, `loop-scheduled`, of
tessera/Machine/ScheduleCost.h) times iterations and programs, over the GPU's SMs and a clock of
1.6 GHz, beside the median time of eight calls. Then for each kind of loop the rank correlation of
both, and how much longer the configuration takes that is expected to be the cheapest. Kernels with
several such loops are left out of these. With `--dry` nothing runs, and no GPU is needed.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import json
import pathlib
import statistics

import attention_backward
import gpu
import gpu_matmul
import torch

import tessera
import tessera.language as tl

GIGAHERTZ = 1.6
TOKENS, BACKWARD_TOKENS, SIZE = 2048, 4096, 4096


def list_work(device: str):
    """What there is to do: its name, a configuration, the kernel, the grid, arguments, options and
    the iterations of a program."""
    forward = gpu.load_kernels(tessera, gpu_matmul.KERNELS)
    backward = gpu.load_kernels(tessera, attention_backward.KERNELS)

    def random(shape, dtype=torch.bfloat16):
        return torch.randn(shape, dtype=dtype, device=device)

    for d, heads in ((64, 256), (128, 128)):
        arrays = [random((heads, TOKENS, d)) for _ in range(4)]
        for config in gpu_matmul.ATTENTION_CONFIGS:
            bm, bn, warps, stages = config
            options = dict(D=d, CAUSAL=False, BM=bm, BN=bn, num_warps=warps, num_stages=stages)
            grid, arguments = (TOKENS // bm, heads), (*arrays, TOKENS, d**-0.5)
            yield f"attention {d}", config, forward["attention"], grid, arguments, options, (
                TOKENS // bn
            )
    for d, heads in ((64, 32), (128, 16)):
        q, k, v, do, dq, dk, dv = (random((4, heads, BACKWARD_TOKENS, d)) for _ in range(7))
        rows = [random((4, heads, BACKWARD_TOKENS), torch.float32) for _ in range(2)]
        sums = (*rows, BACKWARD_TOKENS, d**-0.5 * 1.4426950408889634, d**-0.5)
        for name, number, arguments in (
            ("of_keys", 0, (q, k, v, do, dk, dv, *sums)),
            ("of_rows", 1, (q, k, v, do, dq, *sums)),
        ):
            for config in dict.fromkeys(pair[number] for pair in attention_backward.CONFIGS[d]):
                bm, bn, warps, stages = config
                options = dict(GROUP=1, D=d, CAUSAL=False, BM=bm, BN=bn)
                options |= dict(num_warps=warps, num_stages=stages)
                own, other = (bn, bm) if name == "of_keys" else (bm, bn)
                grid = (BACKWARD_TOKENS // own, 4 * heads)
                yield f"backward {name} {d}", config, backward[name], grid, arguments, options, (
                    BACKWARD_TOKENS // other
                )
    arrays = [random((SIZE, SIZE)) for _ in range(3)]
    for config in gpu_matmul.CONFIGS:
        bm, bn, bk, warps, stages, *clusters = config
        options = dict(ACC=tl.float32, BM=bm, BN=bn, BK=bk, GROUP=8)
        options |= dict(num_warps=warps, num_stages=stages)
        options |= {"num_ctas": clusters[0]} if clusters else {}
        grid = (SIZE // bm * (SIZE // bn),)
        arguments = (*arrays, SIZE, SIZE, SIZE, SIZE, SIZE, 1, SIZE)
        yield "matmul", config, forward["matmul"], grid, arguments, options, SIZE // bk


def measure(run) -> float:
    """The median of eight calls, in microseconds."""
    for _ in range(3):
        run()
    times = []
    for _ in range(8):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def rank(values):
    places = sorted(range(len(values)), key=values.__getitem__)
    return [places.index(number) for number in range(len(values))]


def compare(rows) -> str:
    expected, times = ([row[name] for row in rows] for name in ("expected_us", "us"))
    n = len(rows)
    apart = sum((a - b) ** 2 for a, b in zip(rank(expected), rank(times)))
    cheapest = min(rows, key=lambda row: row["expected_us"])
    ratio = statistics.median(a / b for a, b in zip(expected, times))
    return (
        f"{rows[0]['work']:22} {n:2} configurations, rank correlation {1 - 6 * apart / (n**3 - n):5.2f}, "
        f"the cheapest takes {cheapest['us'] / min(times):.2f} of the fastest, expected of measured {ratio:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    multiprocessors = 132
    if not options.dry:
        multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    rows = []
    for work, config, kernel, grid, arguments, meta, iterations in list_work(
        "cpu" if options.dry else "cuda"
    ):
        if options.dry:
            compiled = kernel.warmup(*arguments, grid=grid, target="sm_90a", **meta)
        else:
            compiled = kernel[grid](*arguments, **meta)
        found = [x.values for x in compiled.remarks if x.kind == "loop-scheduled"]
        row = {"work": work, "config": config, "loops": found}
        if len(found) == 1:
            programs = torch.Size(grid).numel() * meta.get("num_ctas", 1)
            cycles = found[0]["cycles"] * iterations * programs / multiprocessors
            row["expected_us"] = cycles / GIGAHERTZ / 1e3
        if not options.dry:
            row["us"] = measure(lambda: kernel[grid](*arguments, **meta))
        print(row, flush=True)
        rows.append(row)
    if options.dry:
        return
    for work in dict.fromkeys(row["work"] for row in rows):
        of_work = [row for row in rows if row["work"] == work and "expected_us" in row]
        if len(of_work) > 2:
            print(compare(of_work))
    if options.json:
        result = {"environment": gpu.environment(), "rows": rows}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
