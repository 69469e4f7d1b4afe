# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products by weights that are packed ahead, on the CPU: of ours that pack, and of torch.

Square products of bf16 and int8 have several tiles each. Products of few rows have weights of
4096x4096 (also of int4) in copies that no cache holds together, and a read of the same bytes in place of ours that
pack. All works of a row are timed in turns, after a comparison of the results. The time is that of the
process, or with --wall the clock's. Usage: packed_weights.py [--seconds S] [--wall] [--only TEXT] [--json FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

sys.path[:0] = [
    str(pathlib.Path(__file__).parents[1] / "examples"),
    str(pathlib.Path(__file__).parent),
]

import matmul  # noqa: E402
import report  # noqa: E402
import torch  # noqa: E402
from few_rows import COPIES, READ, read_kernel  # noqa: E402

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402
from tessera.views import pack_weights  # noqa: E402

PACKED_TILES = ((128, 128, 256), (128, 128, 1024), (256, 256, 512), (256, 128, 1024))
TILES = ((128, 128, 64), (256, 256, 256))
FEW_TILES = ((16, 4096), (32, 4096), (64, 1024))


@tessera.jit
def packed_kernel(
    x_ptr: tl.tensor, w: Any, out_ptr: tl.tensor, N: int, K: int, GRID_M: int, GRID_N: int,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SUM: tl.constexpr,
) -> None:  # fmt: skip
    pid_m, pid_n = tl.swizzle2d(
        tl.program_id(0) // GRID_N, tl.program_id(0) % GRID_N, GRID_M, GRID_N, 4
    )
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), SUM)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + rows[:, None] * K + (k + inner)[None, :])
        total = tl.dot(x, w.load(k, pid_n * BLOCK_N, BLOCK_K, BLOCK_N), total)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total)


@tessera.jit
def packed_int4_kernel(
    x_ptr: tl.tensor, w: Any, out_ptr: tl.tensor, N: int, K: int,
    M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
) -> None:  # fmt: skip
    # A byte holds a weight of the first half of k, and one of the second in its upper four bits.
    rows, inner = tl.arange(0, M)[:, None], tl.arange(0, BLOCK_K)[None, :]
    column = tl.program_id(0) * BLOCK_N
    total = tl.zeros((M, BLOCK_N), tl.int32)
    for k in range(0, w.rows, BLOCK_K):
        x_ptrs = x_ptr + rows * K + k + inner
        pairs = w.load(k, column, BLOCK_K, BLOCK_N)
        total = tl.dot(tl.load(x_ptrs), (pairs & 15) - 8, total)
        total = tl.dot(tl.load(x_ptrs + w.rows), ((pairs >> 4) & 15) - 8, total)
    tl.store(out_ptr + rows * N + column + tl.arange(0, BLOCK_N)[None, :], total)


def draw(kind: str, *shape: int) -> torch.Tensor:
    """Whole numbers, so that all sums are exact."""
    return torch.randint(-4, 5, shape).to(torch.int8 if kind == "int8" else torch.bfloat16)


def packed_product(
    x: torch.Tensor, weights: Any, out: torch.Tensor, block: tuple[int, int, int]
) -> None:
    """out = x @ weights, for packed weights."""
    (m, k), n = x.shape, out.shape[1]
    grid = (m // block[0], n // block[1])
    packed_kernel[(grid[0] * grid[1],)](
        x, weights, out, n, k, *grid, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        SUM=tl.int32 if x.dtype == torch.int8 else tl.float32,
    )  # fmt: skip


def square(kind: str, n: int) -> dict[str, Callable[[], Any]]:
    x, w = draw(kind, n, n), draw(kind, n, n)
    packed = pack_weights(w)
    is_int8 = kind == "int8"
    out = torch.empty(n, n, dtype=torch.int32 if is_int8 else torch.float32)
    rounded = out if is_int8 else torch.empty(n, n, dtype=x.dtype)
    bias = torch.zeros(n, dtype=out.dtype)
    works: dict[str, Callable[[], Any]] = {}
    for tile in PACKED_TILES:
        works["packed " + "x".join(map(str, tile))] = lambda tile=tile: packed_product(
            x, packed, out, tile
        )
    for tile in TILES:
        if is_int8:
            works["x".join(map(str, tile))] = lambda tile=tile: plain_int8(x, w, out, tile)
        else:
            works["x".join(map(str, tile))] = lambda tile=tile: matmul.matmul(
                x, w, bias, rounded, block=tile
            )
    works["torch"] = (
        (lambda: torch._int_mm(x, w)) if is_int8 else (lambda: torch.mm(x, w, out=rounded))
    )
    want = x.double()[:64] @ w.double()
    for tile in PACKED_TILES:
        out.zero_()
        packed_product(x, packed, out, tile)
        assert (out[:64].double() == want).all()
    return works


@tessera.jit
def int8_kernel(
    a_ptr: tl.tensor, b_ptr: tl.tensor, c_ptr: tl.tensor, N: int, K: int, GRID_M: int, GRID_N: int,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
) -> None:  # fmt: skip
    pid_m, pid_n = tl.swizzle2d(
        tl.program_id(0) // GRID_N, tl.program_id(0) % GRID_N, GRID_M, GRID_N, 4
    )
    rows, inner = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_K)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.int32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total)


def plain_int8(
    a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, block: tuple[int, int, int]
) -> None:
    n, grid = len(a), (len(a) // block[0], len(a) // block[1])
    int8_kernel[(grid[0] * grid[1],)](
        a, b, out, n, n, *grid, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2]
    )


def few(kind: str, m: int) -> dict[str, Callable[[], Any]]:
    n = k = 4096
    is_int4 = kind == "int4"
    kind = "int8" if is_int4 else kind
    x, w = draw(kind, m, k), draw(kind, k, n)
    numbers = w.double()
    if is_int4:
        w = (w[: k // 2] + 8) | ((w[k // 2 :] + 8) << 4)
    out = torch.empty(m, n, dtype=torch.int32 if kind == "int8" else torch.float32)
    copies = itertools.cycle([pack_weights(w) for _ in range(COPIES)])
    sums = torch.empty(w.nbytes // 4 // READ, dtype=torch.int32)
    works: dict[str, Callable[[], Any]] = {}
    for block_n, block_k in FEW_TILES:
        tile = (m, block_n, block_k)

        def ours(tile: tuple[int, int, int] = tile) -> None:
            if is_int4:
                packed_int4_kernel[(n // tile[1],)](
                    x, next(copies), out, n, k, M=m, BLOCK_N=tile[1], BLOCK_K=min(tile[2], k // 2)
                )
            else:
                packed_product(x, next(copies), out, tile)

        works["packed " + "x".join(map(str, tile))] = ours
        works["packed " + "x".join(map(str, tile))]()
        assert (out.double() == x.double() @ numbers).all()
    works["read"] = lambda: read_kernel[(sums.shape[0],)](
        next(copies).data.view(torch.int32), sums, BLOCK=READ
    )
    return works


def rows() -> Iterator[tuple[str, Callable[[], dict[str, Callable[[], Any]]], str]]:
    for kind in ("bf16", "int8", "int4"):
        for n in (1024, 4096) if kind != "int4" else ():
            yield f"{kind} {n}^3", lambda kind=kind, n=n: square(kind, n), "torch"
        for m in (1, 2, 4, 8):
            yield f"{kind} {m} rows", lambda kind=kind, m=m: few(kind, m), "read"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="time for each row")
    parser.add_argument("--wall", action="store_true", help="time by the clock on the wall")
    parser.add_argument("--only", default="", help="rows whose names have this text")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(int(tessera.host_info()["threads"]))
    clock = time.perf_counter if arguments.wall else time.process_time
    found = []
    for name, make, base in rows():
        if arguments.only not in name:
            continue
        works = make()
        for function in works.values():  # compiles
            function()
        ms, rounds = report.time_in_turns(works, arguments.seconds, clock)
        found.append({"row": name, "ms": ms, "base": base, "rounds": rounds})
        shares = "  ".join(
            f"{work} {ms[base] / each:.2f}" for work, each in ms.items() if work != base
        )
        print(f"{name}: {base} {ms[base]:.3f} ms; of it {shares}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"environment": report.environment(), "rows": found}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
