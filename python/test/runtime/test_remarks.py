# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled GPU kernel tells of what could not be had: the line, and why.

Each kernel has a line that ends in `# told`, which the remark is about.
"""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import tessera
import tessera.language as tl


@tessera.jit
def product(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr,
            OTHER: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    i, j, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):  # told: loop
        in_a, in_b = (k + ks)[None, :] < K, (k + ks)[:, None] < K
        a = tl.load(a_ptr + i[:, None] * K + (k + ks)[None, :], in_a, other=OTHER)  # told: load
        b = tl.load(b_ptr + (k + ks)[:, None] * N + j[None, :], in_b, other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)  # told: dot
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc)  # told: store


@tessera.jit
def writing(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    i, j, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):  # told: loop
        a = tl.load(a_ptr + i[:, None] * K + (k + ks)[None, :])
        b = tl.load(b_ptr + (k + ks)[:, None] * N + j[None, :])
        acc = tl.dot(a, b, acc)
        tl.atomic_add(c_ptr + i[:, None] * N + j[None, :], acc)


@tessera.jit
def read_pages(a_ptr, b_ptr, c_ptr, length_ptr, M: tl.constexpr, N: tl.constexpr,
               BK: tl.constexpr):  # fmt: skip
    i, j, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    K = tl.load(length_ptr)
    b = tl.make_tensor_descriptor(b_ptr, [1024, N], [N, 1], [BK, N])
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):  # told: loop
        page = tl.load(length_ptr + 1 + k // BK)
        a = tl.load(a_ptr + i[:, None] * 1024 + (k + ks)[None, :])
        acc = tl.dot(a, b.load([page * BK, 0]), acc)
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc)


def line_of(kernel: Any, what: str) -> str:
    """The place of the line that is told about, but for the column."""
    lines, first = inspect.getsourcelines(kernel.fn)
    (at,) = [number for number, line in enumerate(lines) if line.endswith(f"# told: {what}\n")]
    return f"{__file__}:{first + at}:"


ALIGNED = ["*fp16:16", "*fp16:16", "*fp32:16", "i32:16"]
SINGLE = ["*fp32:16", "*fp32:16", "*fp32:16", "i32:16"]
ODD = ["*fp16:16", "*fp16:16", "*fp32:16", "i32"]
FAR = ["*fp16:16", "*fp16:16", "*fp32:4", "i32:16"]

# kernel, types, M, N, BK, other arguments, target, options, what is told about, the words
TOLD: list[tuple[Any, list[str], Any, dict[str, Any], str, dict[str, Any], str, str]] = [
    (product, ALIGNED, (64, 64, 64), {}, "sm_90a", {}, "dot", "64x64x64 of f16 by wgmma"),
    (product, ALIGNED, (64, 64, 64), {}, "sm_80", {}, "dot",
     "by mma.sync, not wgmma: sm_80 has no wgmma"),
    (product, ALIGNED, (32, 64, 64), {}, "sm_90a", {}, "dot",
     "by mma.sync, not wgmma: the tile has less than 64 rows"),
    (product, ALIGNED, (64, 64, 64), {}, "sm_90a", {"num_warps": 2}, "dot",
     "by mma.sync, not wgmma: num_warps is 2, no multiple of 4"),
    (product, SINGLE, (64, 64, 32), {"PRECISION": "ieee"}, "sm_90a", {}, "dot",
     "by multiply-add, not on tensor cores: f32 operands are to keep their precision"),
    (product, ALIGNED, (8, 8, 32), {}, "sm_90a", {}, "dot",
     "by multiply-add, not on tensor cores: the tile is smaller than the instruction's"),
    (product, ODD, (64, 64, 64), {}, "sm_80", {}, "load", "load is not pipelined: no 4 bytes"),
    (product, ALIGNED, (64, 64, 64), {"OTHER": 1}, "sm_80", {}, "load",
     "load is not pipelined: its `other` is not 0"),
    (product, ODD, (64, 64, 64), {}, "sm_90a", {}, "loop",
     "loop is not specialised: the stride of dimension 0 is not known to be a multiple of 16"),
    (product, ALIGNED, (64, 64, 64), {"OTHER": 1}, "sm_90a", {}, "loop",
     "loop is not specialised: its `other` is not 0"),
    (product, ALIGNED, (64, 64, 64), {}, "sm_90a", {"num_stages": 1}, "loop",
     "loop is not specialised: its number of stages is less than 2"),
    (product, ALIGNED, (128, 256, 64), {}, "sm_90a", {"num_warps": 8, "num_stages": 6}, "loop",
     "stages, not 6: a stage takes 49152 bytes of shared memory"),
    (product, ALIGNED, (128, 128, 64), {}, "sm_80", {"num_warps": 8, "num_stages": 6}, "loop",
     "stages, not 6: a stage takes 32768 bytes of shared memory"),
    (product, ALIGNED, (256, 64, 256), {}, "sm_80", {"num_warps": 8}, "loop",
     "loop is not pipelined: two stages of 163840 bytes do not fit into shared memory"),
    (writing, ALIGNED, (64, 64, 64), {}, "sm_80", {}, "loop",
     "loop is not pipelined: it writes to memory, or orders accesses to it"),
    (read_pages, [*ALIGNED[:3], "*i32:16"], (64, 64, 64), {}, "sm_90a", {}, "loop",
     "loop is not specialised: an index is loaded in the loop"),
    (product, FAR, (64, 64, 64), {}, "sm_90a", {}, "store",
     "result is stored by threads, not by TMA: the array is not known to begin at"),
    (product, ALIGNED, (256, 256, 64), {}, "sm_90a", {"num_warps": 4}, "dot",
     "wgmma.mma_async instructions are serialized due to insufficient register resources"),
]  # fmt: skip


# Blocks of a cluster each do half of the rows, or of the columns, and ask for half of what all need.
@pytest.mark.parametrize("blocks, dots, copies", [(1, 1024, 945), (2, 512, 472)])
def test_what_an_iteration_is_expected_to_take(blocks, dots, copies):
    """By hand: 128x256x64 by wgmma at 2048 multiply-adds a cycle are 1024 cycles, and 48 KB at 52
    bytes a cycle 945."""
    names = list(inspect.signature(product.fn).parameters)
    meta = {"M": 128, "N": 256, "BK": 64, "OTHER": 0, "PRECISION": "tf32"}
    compiled = tessera.compile(
        product,
        dict(zip(names, ALIGNED)),
        constexprs=meta,
        target="sm_90a",
        num_warps=8,
        num_stages=4,
        num_ctas=blocks,
    )
    (told,) = [remark for remark in compiled.remarks if remark.kind == "loop-scheduled"]
    assert told.startswith(line_of(product, "loop"))
    values = {**told.values}
    assert (values["dots"], values["copies"], values["arithmetic"]) == (dots, copies, 0)
    if blocks == 1:
        assert (values["cycles"], values["bound"], values["programs"]) == (1024, "its dots", 1)


@pytest.mark.parametrize(
    "kernel, types, block, more, target, options, what, words", TOLD, ids=lambda value: str(value)
)
def test_what_is_told(kernel, types, block, more, target, options, what, words):
    names = list(inspect.signature(kernel.fn).parameters)
    meta = dict(zip(("M", "N", "BK"), block))
    if kernel is product:
        meta |= {"OTHER": 0, "PRECISION": "tf32", **more}
    compiled = tessera.compile(
        kernel, dict(zip(names, types)), constexprs=meta, target=target, **options
    )
    told = [remark for remark in compiled.remarks if words in remark]
    assert len(told) == 1
    assert told[0].startswith(line_of(kernel, what))
    # Nothing is told twice.
    assert len(set(compiled.remarks)) == len(compiled.remarks)


def test_records():
    types = dict(zip(inspect.signature(product.fn).parameters, ALIGNED))
    meta = {"M": 128, "N": 256, "BK": 64, "OTHER": 0, "PRECISION": "tf32"}
    kernel = tessera.compile(
        product, types, constexprs=meta, target="sm_90a", num_warps=8, num_stages=6
    )
    (dot,) = [remark for remark in kernel.remarks if remark.kind == "dot"]
    assert dot.values == {"shape": "128x256x64", "element": "f16", "instruction": "wgmma"}
    assert dot == f"{dot.file}:{dot.line}:{dot.column}: {dot.message}"
    assert dot.startswith(line_of(product, "dot")) and dot.message.endswith("by wgmma")
    (stages,) = [remark for remark in kernel.remarks if remark.kind == "fewer-stages"]
    assert stages.values["wanted"] == 6 and stages.values["stage_bytes"] == 49152
    assert f"{stages.values['stages']} stages, not 6" in stages
    assert kernel.metadata["remarks"] == kernel.remarks
    assert pickle.loads(pickle.dumps(dot)).values == dot.values


def test_facts():
    names = list(inspect.signature(product.fn).parameters)
    meta = {"M": 64, "N": 64, "BK": 64, "OTHER": 0, "PRECISION": "tf32"}
    for target, more in (("sm_80", 0), ("sm_90a", 1)):
        for stages in (1, 2, 3, 5):
            kernel = tessera.compile(
                product, dict(zip(names, ALIGNED)), constexprs=meta, target=target,
                num_stages=stages,
            )  # fmt: skip
            assert 0 < kernel.n_regs <= 255 and kernel.n_spills == 0
            # On sm_90a a warp orders copies, and one product goes on.
            assert kernel.num_stages == (0 if stages == 1 else stages + more)
            assert kernel.num_warps == (4 if stages == 1 else 4 + more)
            slots = max(kernel.num_stages, 1)
            assert 0 <= kernel.shared - slots * 2 * 8192 <= 16384 + 2048


@pytest.mark.parametrize(
    "m, n, warps, stages, slots",
    [
        (128, 128, 4, 2, 5),  # 512 cycles an iteration, of which copies take three
        (128, 128, 4, 3, 5),
        (128, 256, 8, 3, 4),  # 1,024 cycles, and no room for more
        (128, 64, 4, 3, 4),  # 256 cycles, but a longer ring would take the place of a program
        (64, 64, 4, 3, 4),
        (128, 128, 4, 7, 6),  # no more than fit
    ],
)
def test_rings_are_as_long_as_copies_take(m, n, warps, stages, slots):
    names = list(inspect.signature(product.fn).parameters)
    meta = {"M": m, "N": n, "BK": 64, "OTHER": 0, "PRECISION": "tf32"}
    kernel = tessera.compile(
        product, dict(zip(names, ALIGNED)), constexprs=meta, target="sm_90a", num_warps=warps,
        num_stages=stages,
    )  # fmt: skip
    assert kernel.num_stages == slots


@tessera.jit
def product_of_three(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr):
    i, j, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, 64)
    acc = tl.zeros((M, N), tl.float32)
    for k in tl.range(0, K, 64, num_stages=3):
        in_a, in_b = (k + ks)[None, :] < K, (k + ks)[:, None] < K
        a = tl.load(a_ptr + i[:, None] * K + (k + ks)[None, :], in_a, other=0)
        b = tl.load(b_ptr + (k + ks)[:, None] * N + j[None, :], in_b, other=0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc)


def test_who_says_how_long_a_loops_ring_is_gets_that():
    names = list(inspect.signature(product_of_three.fn).parameters)
    kernel = tessera.compile(
        product_of_three, dict(zip(names, ALIGNED)), constexprs={"M": 128, "N": 64},
        target="sm_90a", num_stages=5,
    )  # fmt: skip
    assert kernel.num_stages == 3 + 1


@tessera.jit
def product_of_tiles(a_ptr, b_ptr, c_ptr, K, N, M: tl.constexpr):
    i, j = tl.program_id(0) * M, tl.program_id(1) * 64
    a = tl.make_tensor_descriptor(a_ptr, [4096, K], [K, 1], [M, 64])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [64, 64])
    c = tl.make_tensor_descriptor(c_ptr, [4096, N], [N, 1], [M, 64])
    acc = tl.zeros((M, 64), tl.float32)
    for k in range(0, K, 64):
        acc = tl.dot(a.load([i, k]), b.load([k, j]), acc)
    c.store([i, j], acc)


def test_a_long_ring_leaves_room_for_results():
    names = list(inspect.signature(product_of_tiles.fn).parameters)
    kernel = tessera.compile(
        product_of_tiles, dict(zip(names, [*ALIGNED, "i32:16"])), constexprs={"M": 128},
        target="sm_90a", num_warps=8,
    )  # fmt: skip
    # With eight slots the result would have to be stored by threads, and from seven on the
    # first-level cache would have its least.
    assert kernel.num_stages == 6 and len(kernel.metadata["tensor_maps"]) == 3
    assert kernel.shared <= 195 << 10
