# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Few rows times weights of 4096x4096 on the CPU: which share of a plain read's speed they reach.

The weights lie along k (as torch's linear has them) and are of bf16, int8 or int4, in copies that
no cache holds together. A read of the same bytes is timed in turns with two tiles, of which the
faster one counts, as a tuner would have it. The time is that of
the process, since the machine may be shared, or with --wall the clock's; results are compared first.
Usage: few_rows.py [--seconds S] [--wall] [--json FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).parent)]

import report  # noqa: E402
import torch  # noqa: E402

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402

N = K = 4096
COPIES = 6
READ = 16384
TILES = ((16, 512), (64, 1024))
"""Columns and k of a program. Each takes its own copy of the rows, so more columns share it."""


@tessera.jit
def few_rows_kernel(
    x_ptr: tl.tensor, w_ptr: tl.tensor, out_ptr: tl.tensor, N: int, K: int, M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SUM: tl.constexpr,
) -> None:  # fmt: skip
    rows, inner = tl.arange(0, M), tl.arange(0, BLOCK_K)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((M, BLOCK_N), SUM)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + rows[:, None] * K + (k + inner)[None, :])
        w = tl.load(w_ptr + columns[:, None] * K + (k + inner)[None, :])
        acc = tl.dot(x, tl.trans(w), acc)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc)


@tessera.jit
def few_rows_int4_kernel(
    x_ptr: tl.tensor, w_ptr: tl.tensor, out_ptr: tl.tensor, N: int, K: int, M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SUM: tl.constexpr,
) -> None:  # fmt: skip
    # A byte holds a weight of the first half of k, and one of the second in its upper four bits.
    rows, inner = tl.arange(0, M), tl.arange(0, BLOCK_K)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    half = K // 2
    acc = tl.zeros((M, BLOCK_N), SUM)
    for k in range(0, half, BLOCK_K):
        x_ptrs = x_ptr + rows[:, None] * K + (k + inner)[None, :]
        w = tl.load(w_ptr + columns[:, None] * half + (k + inner)[None, :])
        acc = tl.dot(tl.load(x_ptrs), tl.trans((w & 15) - 8), acc)
        acc = tl.dot(tl.load(x_ptrs + half), tl.trans(((w >> 4) & 15) - 8), acc)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc)


@tessera.jit
def read_kernel(w_ptr: tl.tensor, out_ptr: tl.tensor, BLOCK: tl.constexpr) -> None:
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(w_ptr + at)))


def make_weights(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights as they are stored, and as numbers."""
    if kind == "bf16":
        stored = torch.randn(N, K).bfloat16()
        return stored, stored.double()
    if kind == "int8":
        stored = torch.randint(-128, 128, (N, K), dtype=torch.int8)
        return stored, stored.double()
    numbers = torch.randint(-8, 8, (N, K))
    low, high = numbers[:, : K // 2] + 8, numbers[:, K // 2 :] + 8
    return (low | high << 4).to(torch.uint8).view(torch.int8), numbers.double()


def works(kind: str, m: int) -> dict[str, Callable[[], Any]]:
    """What is timed for one kind of weights and `m` rows, after a comparison."""
    floats = kind == "bf16"
    x = torch.randn(m, K).bfloat16() if floats else torch.randint(-128, 128, (m, K)).to(torch.int8)
    stored, numbers = make_weights(kind)
    out = torch.empty(m, N, dtype=torch.float32 if floats else torch.int32)
    kernel = few_rows_int4_kernel if kind == "int4" else few_rows_kernel
    sums = torch.empty(stored.nbytes // 4 // READ, dtype=torch.int32)
    copies = itertools.cycle([stored] + [stored.clone() for _ in range(COPIES - 1)])

    def ours(block_n: int, block_k: int) -> None:
        kernel[(N // block_n,)](
            x, next(copies), out, N, K, M=m, BLOCK_N=block_n, BLOCK_K=block_k,
            SUM=tl.float32 if floats else tl.int32,
        )  # fmt: skip

    def read() -> None:
        read_kernel[(sums.shape[0],)](next(copies).view(torch.int32), sums, BLOCK=READ)

    found: dict[str, Callable[[], Any]] = {"read": read}
    want = x.double() @ numbers.T
    for tile in TILES:
        ours(*tile)
        torch.testing.assert_close(out.double(), want, rtol=1e-3, atol=1e-2)
        found[f"tessera {tile[0]}x{tile[1]}"] = lambda tile=tile: ours(*tile)
    if floats:
        found["torch"] = lambda: torch.nn.functional.linear(x, next(copies))
    return found


def measure(kind: str, m: int, seconds: float, clock: Callable[[], float]) -> dict[str, Any]:
    ms, rounds = report.time_in_turns(works(kind, m), seconds, clock)
    best = min(value for name, value in ms.items() if name.startswith("tessera"))
    return {
        "weights": kind, "rows": m, "ms": ms, "rounds": rounds,
        "share_of_read": ms["read"] / best,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="time for each row")
    parser.add_argument("--wall", action="store_true", help="time by the clock on the wall")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(int(tessera.host_info()["threads"]))
    clock = time.perf_counter if arguments.wall else time.process_time
    rows = []
    for kind, m in itertools.product(("bf16", "int8", "int4"), (1, 2, 4, 8)):
        rows.append(measure(kind, m, arguments.seconds, clock))
        times = "  ".join(f"{name} {ms:.3f} ms" for name, ms in rows[-1]["ms"].items())
        print(f"{kind} {m} rows: {times}  {rows[-1]['share_of_read']:.2f} of a read", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"environment": report.environment(), "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
