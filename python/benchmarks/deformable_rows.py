# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Deformable attention, forward, against a plain read of the same rows on the CPU.

A row is the features of one pixel and head. The read has a table of the rows of each query and head,
so it computes neither places nor weights: it adds the rows up. torch's embedding_bag does that, too. Corners outside of a map are those of
the nearest pixel there. Both are timed in turns, and torch's grid_sample. The time is that of the process, or
with --wall the clock's. Usage: deformable_rows.py [--seconds S] [--wall] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path[:0] = [
    str(pathlib.Path(__file__).parents[1] / "examples"),
    str(pathlib.Path(__file__).parent),
]

import deformable_attention as deformable  # noqa: E402
import report  # noqa: E402
import torch  # noqa: E402

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402


@tessera.jit
def read_kernel(
    value_ptr: tl.tensor, rows_ptr: tl.tensor, out_ptr: tl.tensor, queries: int,
    HEADS: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr,
) -> None:  # fmt: skip
    query, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    item = (batch * queries + query) * HEADS + head
    dims, row = tl.arange(0, DIM), tl.load(rows_ptr + item * ROWS + tl.arange(0, ROWS))
    values = tl.load(value_ptr + row.to(tl.int64)[:, None] * DIM + dims[None, :])
    tl.store(out_ptr + item * DIM + dims, tl.sum(values, axis=0))


def find_rows(value: Any, shapes: Any, starts: Any, loc: Any) -> Any:
    """The rows of all corners, as (N, Q, M, L * P * 4) numbers of rows of value."""
    n, positions, heads, _ = value.shape
    height, width = (shapes[:, i].view(1, 1, 1, -1, 1) for i in (0, 1))
    column = torch.floor(loc[..., 0] * width - 0.5).long()
    row = torch.floor(loc[..., 1] * height - 0.5).long()
    found = []
    for below, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        y = (row + below).clamp(min=0).minimum(height - 1)
        x = (column + right).clamp(min=0).minimum(width - 1)
        found.append(starts.view(1, 1, 1, -1, 1) + y * width + x)
    pixels = torch.stack(found, -1).flatten(3)
    batch = torch.arange(n).view(-1, 1, 1, 1) * positions
    return ((batch + pixels) * heads + torch.arange(heads).view(1, 1, -1, 1)).int().contiguous()


def works(n: int, queries: int | None, dim: int, maps: Any) -> dict[str, Callable[[], Any]]:
    value, shapes, starts, loc, attn = deformable.inputs(n, queries, dim, maps)
    rows = find_rows(value, shapes, starts, loc)
    count, heads = loc.shape[1], value.shape[2]
    sums, out = torch.empty(n, count, heads, dim), torch.empty(n, count, heads * dim)

    def read() -> None:
        read_kernel[(count, heads, n)](
            value, rows, sums, count, HEADS=heads, DIM=dim, ROWS=rows.shape[-1]
        )

    read()
    want = value.flatten(0, 2)[rows.flatten(0, 2).long()].sum(1)
    torch.testing.assert_close(sums.view_as(want), want)
    table, bags = value.flatten(0, 2), rows.flatten(0, 2)
    return {
        "read": read,
        "bag": lambda: torch.nn.functional.embedding_bag(bags, table, mode="sum"),
        "tessera": lambda: deformable.forward(value, shapes, starts, loc, attn, out),
        "torch": lambda: deformable.plain_torch(value, shapes, loc, attn),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="time for each case")
    parser.add_argument("--wall", action="store_true", help="time by the clock on the wall")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(int(tessera.host_info()["threads"]))
    clock = time.perf_counter if arguments.wall else time.process_time
    found = []
    for n in (1, 4):
        functions = works(n, 100, 256, deformable.CASE_STUDY)
        ms, rounds = report.time_in_turns(functions, arguments.seconds, clock)
        found.append({"batch": n, "ms": ms, "rounds": rounds})
        print(
            f"N={n}: read {ms['read']:.3f} ms, torch's bag {ms['bag']:.3f} ms; tessera {ms['tessera']:.3f} ms, "
            f"{ms['read'] / ms['tessera']:.2f} of a read, {ms['torch'] / ms['tessera']:.1f} of torch",
            flush=True,
        )
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"environment": report.environment(), "cases": found}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
