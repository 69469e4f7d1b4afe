# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multi-scale deformable attention (Deformable DETR), forward and backward.

For each query and head, a few points on each of several feature maps are sampled with
bilinear interpolation and summed with given weights:

    out[n, q, m, :] = sum over l, p of attn[n, q, m, l, p] * bilinear(value_l[n, :, m, :], x, y)

with x = loc_x * W_l - 0.5 and y = loc_y * H_l - 0.5; what lies outside a map counts as 0.
The channels of one head are contiguous, so each corner of a point is one contiguous row at
an address that depends on the data. The kernels below say just that, and nothing about
vectors or threads.

Run as a program, it compares with the plain torch implementation (grid_sample), on the
shapes of the TVM case study and of DETR's encoder, and prints the speed-up of the forward
pass and of a step of training (forward and backward).
"""

from __future__ import annotations

import collections
import importlib
import mmap
import weakref
from typing import Any

import numpy as np

import tessera
import tessera.language as tl

CORNERS = 4
FEWEST_READS = 8  # of a row of the maps, for which it is worth a copy
HUGE_PAGE = 2 << 20


@tessera.jit
def corner(
    row_ptr: tl.tensor, row: tl.tensor, column: tl.tensor, height: tl.tensor, width: tl.tensor,
    ROW: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The features at one pixel, 0 outside the map."""
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return tl.load(row_ptr + (row * width + column) * ROW, mask=inside, other=0.0)


@tessera.jit
def corners(
    map_ptr: tl.tensor, row: tl.tensor, column: tl.tensor, start: tl.tensor, height: tl.tensor,
    width: tl.tensor, dims: tl.tensor,
    PIXEL: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The features at some pixels, a row each, 0 outside their maps."""
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    offset = (start + row * width + column) * PIXEL
    ptrs = map_ptr + offset[:, None] + dims[None, :]
    return tl.load(ptrs, mask=inside[:, None], other=0.0)


@tessera.jit
def forward_kernel(
    value_ptr: tl.tensor, shapes_ptr: tl.tensor, starts_ptr: tl.tensor, loc_ptr: tl.tensor,
    attn_ptr: tl.tensor, out_ptr: tl.tensor, positions: int, queries: int, head_stride: int,
    PIXEL: tl.constexpr, HEADS: tl.constexpr, DIM: tl.constexpr, LEVELS: tl.constexpr,
    POINTS: tl.constexpr, ROWS: tl.constexpr,
) -> None:  # fmt: skip
    # All points of a query at once, so that their places and weights are computed in vectors.
    # Queries of one head follow each other: they meet in the same part of the maps.
    query, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    item = (batch.to(tl.int64) * queries + query) * HEADS + head
    dims, points = tl.arange(0, DIM), tl.arange(0, ROWS)
    map_ptr = value_ptr + batch.to(tl.int64) * positions * (HEADS * DIM)
    map_ptr += head.to(tl.int64) * head_stride
    if ROWS == LEVELS * POINTS:
        there, level = None, points // POINTS
    else:
        there = points < LEVELS * POINTS
        level = tl.minimum(points, LEVELS * POINTS - 1) // POINTS
    height = tl.load(shapes_ptr + 2 * level).to(tl.int32)
    width = tl.load(shapes_ptr + 2 * level + 1).to(tl.int32)
    start = tl.load(starts_ptr + level)
    at = item * (LEVELS * POINTS) + points
    x = tl.load(loc_ptr + 2 * at, mask=there) * width - 0.5
    y = tl.load(loc_ptr + 2 * at + 1, mask=there) * height - 0.5
    weight = tl.load(attn_ptr + at, mask=there)
    column, row = tl.floor(x).to(tl.int32), tl.floor(y).to(tl.int32)
    dx, dy = x - tl.floor(x), y - tl.floor(y)
    if ROWS != LEVELS * POINTS:
        row = tl.where(points < LEVELS * POINTS, row, -2)
    v00 = corners(map_ptr, row, column, start, height, width, dims, PIXEL)
    v01 = corners(map_ptr, row, column + 1, start, height, width, dims, PIXEL)
    v10 = corners(map_ptr, row + 1, column, start, height, width, dims, PIXEL)
    v11 = corners(map_ptr, row + 1, column + 1, start, height, width, dims, PIXEL)
    upper = (weight * (1 - dy) * (1 - dx))[:, None] * v00 + (weight * (1 - dy) * dx)[:, None] * v01
    lower = (weight * dy * (1 - dx))[:, None] * v10 + (weight * dy * dx)[:, None] * v11
    tl.store(out_ptr + item * DIM + dims, tl.sum(upper + lower, axis=0))


@tessera.jit
def by_heads_kernel(
    value_ptr: tl.tensor, out_ptr: tl.tensor, positions: int,
    HEADS: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """out (N, M, S, D) from value (N, S, M, D)."""
    head, batch = tl.program_id(0), tl.program_id(2).to(tl.int64)
    pixels = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    dims, inside = tl.arange(0, DIM)[None, :], (pixels < positions)[:, None]
    pixels = pixels.to(tl.int64)[:, None]
    rows = tl.load(value_ptr + ((batch * positions + pixels) * HEADS + head) * DIM + dims, inside)
    tl.store(out_ptr + ((batch * HEADS + head) * positions + pixels) * DIM + dims, rows, inside)


@tessera.jit
def add_corner(
    row_ptr: tl.tensor, row: tl.tensor, column: tl.tensor, height: tl.tensor, width: tl.tensor,
    update: tl.tensor,
    ROW: tl.constexpr, ATOMIC: tl.constexpr,
) -> None:  # fmt: skip
    """Adds to the gradient of one pixel, if it is on the map."""
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    ptrs = row_ptr + (row * width + column) * ROW
    if ATOMIC:
        tl.atomic_add(ptrs, update, mask=inside, sem="relaxed")
    elif inside:
        tl.store(ptrs, tl.load(ptrs) + update)


@tessera.jit
def backward_kernel(
    value_ptr: tl.tensor, shapes_ptr: tl.tensor, starts_ptr: tl.tensor, loc_ptr: tl.tensor,
    attn_ptr: tl.tensor, grad_out_ptr: tl.tensor, grad_value_ptr: tl.tensor,
    grad_loc_ptr: tl.tensor, grad_attn_ptr: tl.tensor, positions: int, queries: int,
    HEADS: tl.constexpr, DIM: tl.constexpr, LEVELS: tl.constexpr, POINTS: tl.constexpr,
    QUERIES: tl.constexpr, ATOMIC: tl.constexpr,
) -> None:  # fmt: skip
    # A program takes QUERIES queries of one head. Only programs of one head and batch add
    # to the same gradients, so a program that takes all of them needs no atomics.
    head, block, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dims = tl.arange(0, DIM)
    base = (batch.to(tl.int64) * positions * HEADS + head) * DIM + dims
    for query in range(block * QUERIES, tl.minimum((block + 1) * QUERIES, queries)):
        item = (batch.to(tl.int64) * queries + query) * HEADS + head
        grad = tl.load(grad_out_ptr + item * DIM + dims)
        for level in tl.static_range(LEVELS):
            height = tl.load(shapes_ptr + 2 * level).to(tl.int32)
            width = tl.load(shapes_ptr + 2 * level + 1).to(tl.int32)
            start = tl.load(starts_ptr + level) * (HEADS * DIM)
            map_ptr = value_ptr + base + start
            grad_map_ptr = grad_value_ptr + base + start
            for point in range(POINTS):
                at = (item * LEVELS + level) * POINTS + point
                x = tl.load(loc_ptr + 2 * at) * width - 0.5
                y = tl.load(loc_ptr + 2 * at + 1) * height - 0.5
                weight = tl.load(attn_ptr + at)
                column, row = tl.floor(x).to(tl.int32), tl.floor(y).to(tl.int32)
                dx, dy = x - tl.floor(x), y - tl.floor(y)
                v00 = corner(map_ptr, row, column, height, width, HEADS * DIM)
                v01 = corner(map_ptr, row, column + 1, height, width, HEADS * DIM)
                v10 = corner(map_ptr, row + 1, column, height, width, HEADS * DIM)
                v11 = corner(map_ptr, row + 1, column + 1, height, width, HEADS * DIM)
                upper, lower = v00 + dx * (v01 - v00), v10 + dx * (v11 - v10)
                along_x = (1 - dy) * (v01 - v00) + dy * (v11 - v10)
                tl.store(grad_attn_ptr + at, tl.sum(grad * (upper + dy * (lower - upper)), axis=0))
                tl.store(grad_loc_ptr + 2 * at, width * weight * tl.sum(grad * along_x, axis=0))
                slope_y = tl.sum(grad * (lower - upper), axis=0)
                tl.store(grad_loc_ptr + 2 * at + 1, height * weight * slope_y)
                scaled = weight * grad
                add_corner(grad_map_ptr, row, column, height, width,
                           (1 - dy) * (1 - dx) * scaled, HEADS * DIM, ATOMIC)  # fmt: skip
                add_corner(grad_map_ptr, row, column + 1, height, width,
                           (1 - dy) * dx * scaled, HEADS * DIM, ATOMIC)  # fmt: skip
                add_corner(grad_map_ptr, row + 1, column, height, width,
                           dy * (1 - dx) * scaled, HEADS * DIM, ATOMIC)  # fmt: skip
                add_corner(grad_map_ptr, row + 1, column + 1, height, width,
                           dy * dx * scaled, HEADS * DIM, ATOMIC)  # fmt: skip


def forward(value: Any, shapes: Any, starts: Any, loc: Any, attn: Any, out: Any) -> None:
    """out (N, Q, M * D) from value (N, S, M, D), shapes (L, 2) and starts (L,) of int64, loc
    (N, Q, M, L, P, 2) and attn (N, Q, M, L, P). All contiguous; D a legal tile extent."""
    n, positions, heads, dim = value.shape
    _, queries, _, levels, points, _ = loc.shape
    # The rows of one head are far apart: they share few sets of a CPU's caches, and each is on
    # a page of its own. Where a row is read often, a copy in which they are neighbours pays.
    pixel, head_stride = heads * dim, dim
    reads = queries * levels * points * CORNERS / positions
    if value.device.type == "cpu" and reads >= FEWEST_READS:
        maps = empty_like(value)
        block = 64
        by_heads_kernel[(heads, tessera.cdiv(positions, block), n)](
            value, maps, positions, HEADS=heads, DIM=dim, BLOCK=block
        )
        value, pixel, head_stride = maps, dim, positions * dim
    forward_kernel[(queries, heads, n)](
        value, shapes, starts, loc, attn, out, positions, queries, head_stride, PIXEL=pixel,
        HEADS=heads, DIM=dim, LEVELS=levels, POINTS=points,
        ROWS=max(2, 1 << (levels * points - 1).bit_length()),
    )  # fmt: skip


def backward(
    value: Any, shapes: Any, starts: Any, loc: Any, attn: Any, grad_out: Any,
    grad_value: Any, grad_loc: Any, grad_attn: Any, num_warps: int = 1,
) -> None:  # fmt: skip
    """Fills grad_loc and grad_attn, and adds to grad_value. `num_warps` is for GPUs, where one
    warp adds up the channels of a point without waiting for another."""
    n, positions, heads, dim = value.shape
    _, queries, _, levels, points, _ = loc.shape
    # A CPU has programs enough with one for all queries of a head; a GPU has not.
    is_for_gpu = value.device.type == "cuda"
    block = 1 if is_for_gpu else queries
    backward_kernel[(heads, tessera.cdiv(queries, block), n)](
        value, shapes, starts, loc, attn, grad_out, grad_value, grad_loc, grad_attn,
        positions, queries, HEADS=heads, DIM=dim, LEVELS=levels, POINTS=points,
        QUERIES=block, ATOMIC=is_for_gpu, num_warps=num_warps,
    )  # fmt: skip


def load_torch() -> Any:
    """torch, which only some of this file needs, and which need not be installed."""
    return importlib.import_module("torch")


# Memory of the last few large tensors of this file, for the next of the same size.
unused: collections.deque[Any] = collections.deque(maxlen=4)


def empty_like(like: Any) -> Any:
    """A tensor as torch.empty_like gives it. Large tensors of the host are new memory each time
    they are made, which the system hands out and clears page by page: for the gradient of the
    maps that takes longer than all the rest. So their memory is kept for the next one (as
    torch does on a GPU), in huge pages."""
    torch = load_torch()
    if like.device.type != "cpu" or like.nbytes < HUGE_PAGE:
        return torch.empty_like(like)
    memory: Any = None
    for _ in range(len(unused)):
        memory = unused.popleft()
        if len(memory) == like.nbytes:
            break
        unused.append(memory)
        memory = None
    if memory is None:
        memory = mmap.mmap(-1, like.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(memory, np.uint8)
    # The tensor keeps the array, whose end is that of the last tensor that shares the memory.
    weakref.finalize(array, unused.append, memory)
    return torch.from_numpy(array).view(like.dtype).view(like.shape)


def attend(value: Any, shapes: Any, starts: Any, loc: Any, attn: Any) -> Any:
    """forward() to a new tensor."""
    n, _, heads, dim = value.shape
    out = value.new_empty(n, loc.shape[1], heads * dim)
    forward(value, shapes, starts, loc, attn, out)
    return out


def torch_op() -> Any:
    """The differentiable torch function of (value, shapes, starts, loc, attn)."""
    torch = load_torch()
    Function: Any = torch.autograd.Function

    class DeformableAttention(Function):  # type: ignore[misc]  # of type Any
        @staticmethod
        def forward(ctx: Any, value: Any, shapes: Any, starts: Any, loc: Any, attn: Any) -> Any:
            ctx.save_for_backward(value, shapes, starts, loc, attn)
            return attend(value, shapes, starts, loc, attn)

        @staticmethod
        def backward(ctx: Any, grad_out: Any) -> Any:
            value, shapes, starts, loc, attn = ctx.saved_tensors
            grad_value, grad_loc = empty_like(value).zero_(), torch.empty_like(loc)
            grad_attn = torch.empty_like(attn)
            backward(
                value, shapes, starts, loc, attn, grad_out.contiguous(),
                grad_value, grad_loc, grad_attn,
            )  # fmt: skip
            return grad_value, None, None, grad_loc, grad_attn

    def op(value: Any, shapes: Any, starts: Any, loc: Any, attn: Any) -> Any:
        # torch's book-keeping is a tenth of the time of one image.
        learns = value.requires_grad or loc.requires_grad or attn.requires_grad
        run = DeformableAttention.apply if learns and torch.is_grad_enabled() else attend
        return run(value, shapes, starts, loc, attn)

    return op


def plain_torch(value: Any, shapes: Any, loc: Any, attn: Any) -> Any:
    """The implementation with grid_sample, one map at a time, that one would write in torch."""
    F = load_torch().nn.functional
    n, _, heads, dim = value.shape
    _, queries, _, _, points, _ = loc.shape
    sizes = [(int(h), int(w)) for h, w in shapes]
    grids = 2 * loc - 1
    total: Any = 0
    for level, part in enumerate(value.split([h * w for h, w in sizes], dim=1)):
        height, width = sizes[level]
        image = part.permute(0, 2, 3, 1).reshape(n * heads, dim, height, width)
        grid = grids[:, :, :, level].permute(0, 2, 1, 3, 4).reshape(n * heads, queries, points, 2)
        sampled = F.grid_sample(image, grid, "bilinear", "zeros", align_corners=False)
        weights = attn[:, :, :, level].permute(0, 2, 1, 3).reshape(n * heads, 1, queries, points)
        total = total + (sampled * weights).sum(-1)
    return total.reshape(n, heads * dim, queries).transpose(1, 2).contiguous()


CASE_STUDY = [(84, 117), (42, 59), (21, 30), (11, 15)]
ENCODER = [(100, 167), (50, 84), (25, 42), (13, 21)]


def inputs(n: int, queries: int | None, dim: int, maps: list[tuple[int, int]]) -> tuple[Any, ...]:
    """Random inputs: value, shapes, starts, loc, attn; a query a pixel if `queries` is None."""
    torch = load_torch()
    heads, levels, points = 8, len(maps), 4
    sizes = [h * w for h, w in maps]
    queries = queries or sum(sizes)
    shapes = torch.tensor(maps, dtype=torch.int64)
    starts = torch.tensor([sum(sizes[:i]) for i in range(levels)], dtype=torch.int64)
    value = torch.rand(n, sum(sizes), heads, dim) * 0.01
    loc = torch.rand(n, queries, heads, levels, points, 2)
    attn = torch.rand(n, queries, heads, levels, points) + 1e-5
    attn /= attn.sum((-1, -2), keepdim=True)
    return value, shapes, starts, loc, attn


def speed_up(name: str, competitors: dict[str, Any], rounds: int) -> None:
    """Runs the competitors in turns and prints the median of each."""
    import statistics
    import time

    times: dict[str, list[float]] = {key: [] for key in competitors}
    for _ in range(rounds):
        for key, run in competitors.items():
            start = time.perf_counter()
            run()
            times[key].append((time.perf_counter() - start) * 1e3)
    mine, theirs = (statistics.median(times[key]) for key in ("tessera", "torch"))
    print(f"{name:37} tessera {mine:8.2f} ms   torch {theirs:8.2f} ms   {theirs / mine:6.1f}x")


def main() -> None:
    torch = load_torch()
    torch.manual_seed(0)
    op = torch_op()
    cases = [(f"case study N={n}", inputs(n, 100, 256, CASE_STUDY)) for n in (1, 4, 8)]
    cases.append(("encoder 800x1333", inputs(1, None, 32, ENCODER)))
    for name, (value, shapes, starts, loc, attn) in cases:
        leaves = (value, loc, attn)
        run = {
            "tessera": lambda: op(value, shapes, starts, loc, attn),
            "torch": lambda: plain_torch(value, shapes, loc, attn),
        }
        torch.testing.assert_close(run["tessera"](), run["torch"](), rtol=1e-5, atol=1e-6)
        speed_up(f"{name}, forward", run, rounds=9)
        for leaf in leaves:
            leaf.requires_grad_()
        grad = torch.rand(run["tessera"]().shape)

        def step(key: str) -> list[Any]:
            return list(torch.autograd.grad(run[key](), leaves, grad))

        for got, want in zip(step("tessera"), step("torch")):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
        steps = {"tessera": lambda: step("tessera"), "torch": lambda: step("torch")}
        speed_up(f"{name}, forward and backward", steps, rounds=5)


if __name__ == "__main__":
    main()
