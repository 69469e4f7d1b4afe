# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that a GPU begins in another order than that of their numbers, the longest first."""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import make_kernel

import tessera
import tessera.gpu
import tessera.language as tl

LOOPS = {
    "grows": "range(0, tl.program_id({axis}) + 1)",
    "shrinks": "range(tl.program_id({axis}), tl.num_programs({axis}))",
}


def written_by_programs(axis: int, loop: str) -> object:
    """Each program writes its three numbers and its iterations."""
    return make_kernel(f"""
@tessera.jit
def kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    count = 0
    for _ in {LOOPS[loop].format(axis=axis)}:
        count += 1
    place = out_ptr + 4 * (x + tl.num_programs(0) * (y + tl.num_programs(1) * z))
    tl.store(place, x)
    tl.store(place + 1, y)
    tl.store(place + 2, z)
    tl.store(place + 3, count)
""")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize(
    "grid", [(1, 1, 1), (7, 1, 1), (1, 5, 3), (16, 20, 1), (31, 3, 5), (140, 3, 1)], ids=str
)
def test_every_program_runs_once(run, grid: tuple[int, int, int], axis: int, loop: str) -> None:
    out = np.full((*reversed(grid), 4), -1, np.int32)
    run(written_by_programs(axis, loop), grid, out)
    z, y, x = np.indices(tuple(reversed(grid)))
    places = (x, y, z)
    count = places[axis] + 1 if loop == "grows" else grid[axis] - places[axis]
    np.testing.assert_array_equal(out, np.stack([x, y, z, count], axis=-1))


def orders(kernel: object, signature: str = "*i32") -> list[tuple[object, object]]:
    compiled = tessera.compile(kernel, signature, target="sm_90a")
    found = [each.values for each in compiled.remarks if each.kind == "programs-ordered"]
    return [(each["axis"], each["place"]) for each in found]


@pytest.mark.filterwarnings("ignore::tessera.ToolchainWarning")
def test_which_order() -> None:
    assert orders(written_by_programs(0, "grows")) == [(0, "last")]
    assert orders(written_by_programs(0, "shrinks")) == [(0, "first")]
    assert orders(written_by_programs(1, "grows")) == [(1, "last")]
    assert orders(written_by_programs(1, "shrinks")) == []  # they come so


@pytest.mark.filterwarnings("ignore::tessera.ToolchainWarning")
@pytest.mark.parametrize(
    "body",
    [
        # Tiles that programs take in turns.
        "for i in range(tl.program_id(0), n, tl.num_programs(0)):\n        tl.store(x + i, 1.0)",
        "for i in range(tl.program_id(0), n, 132):\n        tl.store(x + i, 1.0)",
        # A program that waits for the one before it.
        "i = tl.program_id(0)\n    while tl.load(x + i, volatile=True) == 0:\n        pass\n"
        "    for k in range(i):\n        tl.store(x + k, 2.0)",
        # One that takes a number by itself.
        "i = tl.atomic_add(x, 1.0)\n    for k in range(tl.program_id(0)):\n"
        "        tl.store(x + k, i)",
    ],
    ids=["turns", "turns of a constant", "waits", "takes a number"],
)
def test_programs_that_stay_in_order(body: str) -> None:
    kernel = make_kernel(f"@tessera.jit\ndef kernel(x, n):\n    {body}\n")
    assert orders(kernel, "*fp32, i32") == []


@tessera.jit
def triangle(x_ptr, out_ptr, DOTS: tl.constexpr, BLOCK: tl.constexpr):
    """Counts each program, and sums as many blocks of x as its place says."""
    place, row, slice = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, place + 1):
        x = tl.load(x_ptr + start + i[:, None] * 0 + i[None, :] * 0)
        if DOTS:
            total = tl.dot(x, x, total)
        else:
            total += x
    at = (slice * tl.num_programs(1) + row) * tl.num_programs(0) + place
    tl.store(out_ptr + at, tl.load(out_ptr + at) + tl.max(total))


GRIDS = [(5, 7, 2), (1, 13, 1), (64, 3, 1), (33, 1, 3), (140, 3, 2), (70, 5, 1)]


@pytest.mark.parametrize("dots", [False, True])
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_each_program_once(grid: tuple[int, int, int], dots: bool) -> None:
    """By either way to find groups: with a quotient in kernels with dots alone."""
    x, out = np.ones(160, np.float16), np.zeros(grid[::-1], np.float32)
    simulation = tessera.gpu.simulate(triangle)[grid](
        x, out, DOTS=dots, BLOCK=16, num_warps=1, target="sm_90a"
    )
    assert not simulation.findings
    each = np.arange(1, grid[0] + 1) * (16 if dots else 1)
    np.testing.assert_array_equal(out, np.broadcast_to(each, out.shape))


@pytest.mark.filterwarnings("ignore::tessera.ToolchainWarning")
@pytest.mark.parametrize("dots", [False, True])
def test_programs_divide_little(dots: bool) -> None:
    compiled = tessera.compile(
        triangle, "*fp16:16, *fp32:16", constexprs={"DOTS": dots, "BLOCK": 16}, target="sm_90a"
    )
    assert any(remark.kind == "programs-ordered" for remark in compiled.remarks)
    assert compiled.asm["ptx"].count("div.u32") <= dots
