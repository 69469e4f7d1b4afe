# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for a GPU that do not fit the registers which their schedule leaves them."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from gpu.test_pipelines import attention

import tessera
import tessera.language as tl
from tessera.compiler import toolchain
from tessera.language.extra import cuda

pytestmark = pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")


@tessera.jit
def gradients(v_ptr, do_ptr, h_ptr, dh_ptr, ds_ptr, dq_ptr, dk_ptr, V, SHOW: tl.constexpr):  # fmt: skip
    rows, inner = tl.arange(0, 64), tl.arange(0, 64)
    ds = tl.zeros((64, 64), tl.float32)
    dq = tl.zeros((64, 64), tl.float32)
    dk = tl.zeros((64, 64), tl.float32)
    for start in range(0, V, 64):
        at = rows[:, None] * V + start + inner[None, :]
        v, do = tl.load(v_ptr + at), tl.load(do_ptr + at)
        h, dh = tl.load(h_ptr + at), tl.load(dh_ptr + at)
        ds = tl.dot(do, v.T, ds)
        dq = tl.dot(do, h.T, dq)
        dk = tl.dot(v, dh.T, dk)
    if SHOW:
        dk += cuda.num_warps()
    at = rows[:, None] * 64 + inner[None, :]
    tl.store(ds_ptr + at, ds)
    tl.store(dq_ptr + at, dq)
    tl.store(dk_ptr + at, dk)


def build_gradients(**more: Any) -> Any:
    halves, floats = ", ".join(["*bf16:16"] * 4), ", ".join(["*fp32:16"] * 3)
    show = more.pop("show", False)
    signature = f"{halves}, {floats}, i32:16, {show}"
    return tessera.compile(gradients, signature, target="sm_80", **more)


def get_schedule_remarks(kernel: Any) -> list[str]:
    return [remark for remark in kernel.remarks if ": schedule is " in remark]


def test_what_does_not_fit_beside_another_program_runs_alone():
    """wgmma of 64x256 takes more registers than two programs leave to an instruction."""
    types = ", ".join(["*fp16:16"] * 4)
    kernel = tessera.compile(
        attention, f"{types}, i32:16, fp32, False, 64, 32, 256", target="sm_90a", num_stages=2
    )
    assert kernel.n_spills == 0
    dropped, changed = get_schedule_remarks(kernel)
    assert (
        dropped.startswith(attention.fn.__code__.co_filename)
        and "an instruction needs more than" in dropped
    )
    assert changed.endswith(": schedule is changed: one program on an SM")
    assert "dropped" in dict(kernel.metadata["stage_ms"])


def test_more_accumulators_than_a_warp_can_hold_get_more_warps():
    kernel = build_gradients(num_warps=1)
    assert kernel.n_spills == 0 and kernel.num_warps == 2
    # Three times 64x64 floats in 32 threads are known not to fit before ptxas is asked.
    dropped, *_, changed = get_schedule_remarks(kernel)
    assert "a thread needs " in dropped and "has 255 registers" in dropped
    assert changed.endswith(": schedule is changed: 2 warps, not 1")
    assert ".reqntid 64" in kernel.asm["ptx"]


def test_the_schedule_is_the_same_each_time():
    first, again = build_gradients(num_warps=1), build_gradients(num_warps=1)
    assert first.asm["cubin"] == again.asm["cubin"]
    assert get_schedule_remarks(first) == get_schedule_remarks(again)


def test_what_fits_is_compiled_once():
    kernel = build_gradients(num_warps=4)
    assert kernel.num_warps == 4 and kernel.n_spills == 0
    assert not get_schedule_remarks(kernel)
    assert "dropped" not in dict(kernel.metadata["stage_ms"])


@pytest.mark.parametrize("asked", [{"maxnreg": 255}, {"show": True}])
def test_warps_that_are_asked_for_are_kept(asked):
    kernel = build_gradients(num_warps=1, **asked)
    assert kernel.num_warps == 1 and kernel.n_spills > 0
    assert not any("warps, not" in remark for remark in kernel.remarks)


def test_dumped_stages_are_those_of_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(tessera.settings, "dump_dir", str(tmp_path))
    kernel = build_gradients(num_warps=1)
    assert (tmp_path / "gradients.ptx.ptx").read_text() == kernel.asm["ptx"]
    assert (tmp_path / "gradients.cubin.cubin").read_bytes() == kernel.asm["cubin"]


@tessera.jit
def sum_rows(x_ptr, y_ptr, sum_ptr, product_ptr, rows, GATHER: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    total, product = tl.zeros((N,), tl.float32), tl.zeros((N,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x, y = tl.load(x_ptr + row * N + i), tl.load(y_ptr + row * N + i)
        y = (y - tl.sum(x * y)) * tl.sum(y)
        total += y
        product += x * y
        tl.store(x_ptr + row * N + i, x - y)
    if GATHER:
        product = tl.gather(product, N - 1 - i, 0)
    at = tl.program_id(0) * N + i
    tl.store(sum_ptr + at, total)
    tl.store(product_ptr + at, product)


def build_sums(n: int, gather: bool = False, **more: Any) -> Any:
    signature = f"*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, {gather}, {n}"
    return tessera.compile(sum_rows, signature, target="sm_90a", num_warps=16, **more)


def test_more_than_a_cache_holds_is_spread_over_a_cluster():
    kernel = build_sums(32768)
    blocks = kernel.metadata["num_ctas"]
    assert blocks > 1 and kernel.num_warps == 16
    dropped, *_, changed = get_schedule_remarks(kernel)
    assert changed.endswith(f": schedule is changed: a cluster of {blocks} blocks")
    assert f".reqnctapercluster {blocks}, 1, 1" in kernel.asm["ptx"]


@tessera.jit
def normalize(x, w, o, n, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    v = tl.load(x + rows * n + columns, columns < n, 0.0)
    d = tl.where(columns < n, v - tl.sum(v, 1)[:, None] / n, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, 1)[:, None] / n + 1e-6)
    tl.store(
        o + rows * n + columns, d * scale * tl.load(w + columns, columns < n, 0.0), columns < n
    )


@pytest.mark.parametrize("rows, columns, blocks", [(4, 16384, 2), (1, 65536, 4), (4, 65536, 8)])
def test_a_cluster_that_fits_is_predicted(rows, columns, blocks):
    """One count of tiles is enough: nothing is assembled that spills."""
    signature = f"*fp32:16, *fp32:16, *fp32:16, i32, {rows}, {columns}"
    kernel = tessera.compile(normalize, signature, target="sm_90a")
    assert kernel.n_spills == 0
    assert (kernel.num_warps, kernel.metadata["num_ctas"]) == (8, blocks)
    dropped, changed = get_schedule_remarks(kernel)
    # Held by each of 128 threads: the tile, and the weights of a row.
    held = (rows + 1) * columns // 128
    assert f"a thread needs {held} and has 255 registers" in dropped
    assert changed.endswith(f": a cluster of {blocks} blocks with 8 warps, not 4")


@tessera.jit
def norm_gradients(
    x_ptr, w_ptr, grad_ptr, result_ptr, partial_ptr, bias_ptr, rows, N: tl.constexpr
):
    i = tl.arange(0, N)
    w = tl.load(w_ptr + i).to(tl.float32)
    total, bias = tl.zeros((N,), tl.float32), tl.zeros((N,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * N + i).to(tl.float32)
        grad = tl.load(grad_ptr + row * N + i).to(tl.float32)
        scaled = grad * w
        result = scaled - tl.sum(scaled) / N - x * (tl.sum(scaled * x) / N)
        tl.store(result_ptr + row * N + i, result.to(result_ptr.dtype.element_ty))
        total += grad * x
        bias += grad
    tl.store(partial_ptr + tl.program_id(0) * N + i, total)
    tl.store(bias_ptr + tl.program_id(0) * N + i, bias)


def test_a_smaller_cluster_that_keeps_rows_in_shared_memory_comes_first():
    """One block has no room to copy rows ahead; each of two has, and then holds less."""
    signature = "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *fp32:16, *fp32:16, i32, 32768"
    kernel = tessera.compile(norm_gradients, signature, target="sm_90a", num_warps=8)
    dropped, changed = get_schedule_remarks(kernel)
    needed = int(dropped.split("a thread needs ")[1].split()[0])
    assert needed + 32 > 2 * 255, "two blocks are not predicted to fit"
    assert changed.endswith(": schedule is changed: a cluster of 2 blocks")
    assert kernel.metadata["num_ctas"] == 2 and kernel.n_spills == 0
    assert any("rows are prefetched to shared memory" in str(remark) for remark in kernel.remarks)


def test_a_cluster_is_left_where_blocks_would_share_little():
    assert build_sums(4096).metadata["num_ctas"] == 1
    # Each block has the whole source of a gather.
    assert build_sums(32768, gather=True).metadata["num_ctas"] == 1
    assert build_sums(32768, maxnreg=128).metadata["num_ctas"] == 1


def test_the_first_kernel_of_a_thread_gets_no_other_schedule():
    """Each thread has a compiler's context of its own, which loads dialects when it needs them."""
    blocks = []

    def build() -> None:
        blocks.append(build_sums(32768, gather=True).metadata["num_ctas"])

    thread = threading.Thread(target=build)
    thread.start()
    thread.join()
    assert blocks == [1]


@tessera.jit
def gate_rows(x_ptr, y_ptr, o_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < N
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(o_ptr + at, (x * tl.sigmoid(x)).to(y.dtype) * y, mask=inside)


@pytest.mark.parametrize("block, least, most", [(16384, 1, 128), (4096, 41, 64)])
def test_a_few_spilled_words_let_another_program_in(block, least, most):
    """ptxas takes 214 registers for rows of 16384, which leaves an SM 8 warps. With fewer, it spills
    no more than 40 bytes, and two programs fit. Rows of 4096 have 32 warps or more, and keep theirs.
    """
    kernel = tessera.compile(
        gate_rows, "*fp16:16, *fp16:16, *fp16:16, i32:16", constexprs={"BLOCK": block},
        target="sm_90a", num_warps=8,
    )  # fmt: skip
    assert least <= kernel.n_regs <= most and kernel.n_spills <= 40


@tessera.jit
def turn_halves(x_ptr, cos_ptr, sin_ptr, H: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * H * D
    half = tl.arange(0, D // 2)
    cos, sin = tl.load(cos_ptr + row * D + half), tl.load(sin_ptr + row * D + half)
    at = tl.arange(0, H)[:, None] * D + half[None, :]
    x, y = tl.load(x_ptr + at).to(sin.dtype), tl.load(x_ptr + at + D // 2).to(sin.dtype)
    tl.store(x_ptr + at, x * cos - y * sin)
    tl.store(x_ptr + at + D // 2, y * cos + x * sin)


def test_warps_enough_are_better_than_spilled_words():
    """With 40 registers 12 programs of 4 warps would fit, but spill; 8 do not."""
    kernel = tessera.compile(
        turn_halves, "*fp16:16, *fp32:16, *fp32:16", constexprs={"H": 64, "D": 128},
        target="sm_90a", num_warps=4,
    )  # fmt: skip
    assert kernel.n_spills == 0 and kernel.n_regs <= 64


@tessera.jit
def cross_terms(x_ptr, y_ptr, grad_ptr, out_ptr, N, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < N
        x = tl.load(x_ptr + row * N + at, mask=inside, other=float("-inf")).to(tl.float32)
        y = tl.load(y_ptr + row * N + at, mask=inside, other=float("-inf")).to(tl.float32)
        p, q = tl.exp(x), tl.exp(y)
        mixed = tl.log(tl.maximum(scale * p + (1 - scale) * q, 1e-30))
        total += tl.where(inside, scale * p * (x - mixed) + (1 - scale) * q * (y - mixed), 0.0)
        tl.store(grad_ptr + row * N + at, (1 - scale) * q * (y - mixed), mask=inside)
    tl.store(out_ptr + row, tl.sum(total))


def test_registers_for_loads_are_better_than_warps_beyond_enough():
    """By itself, ptxas takes 40 registers, so that 48 warps fit."""
    kernel = tessera.compile(
        cross_terms, "*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32:16, fp32",
        constexprs={"BLOCK": 2048}, target="sm_90a", num_warps=8,
    )  # fmt: skip
    assert 40 < kernel.n_regs <= 64 and kernel.n_spills == 0


@tessera.jit
def probabilities_in_place(x_ptr, N, BLOCK: tl.constexpr):
    row = x_ptr + tl.program_id(0) * N
    largest, total = -float("inf"), 0.0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(row + at, mask=at < N, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new))
        largest = new
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(row + at, mask=at < N, other=-float("inf")).to(tl.float32)
        tl.store(row + at, tl.exp(x - largest) / total, mask=at < N)


def test_warps_are_better_than_registers_where_a_loop_has_barriers():
    """For 32 warps, ptxas would take more than the 40 registers with which 48 fit."""
    kernel = tessera.compile(
        probabilities_in_place, "*bf16:16, i32:16", constexprs={"BLOCK": 8192}, target="sm_90a",
        num_warps=16,
    )  # fmt: skip
    assert kernel.n_regs <= 40 and kernel.n_spills == 0


@tessera.jit
def drop_rows(x_ptr, y_ptr, seed, n, p, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(y_ptr + at, tl.where(tl.rand(seed, at) > p, x, 0.0), mask=at < n)


def test_loads_far_from_their_use_get_registers():
    """By itself, ptxas takes 32 registers, and loads behind the random numbers."""
    kernel = tessera.compile(
        drop_rows, "*fp16:16, *fp16:16, i32, i32:16, fp32", constexprs={"BLOCK": 1024},
        target="sm_90a", num_warps=4,
    )  # fmt: skip
    assert 40 < kernel.n_regs <= 64 and kernel.n_spills == 0


@tessera.jit
def add_low_rank(x_ptr, w_ptr, y_ptr, rows_ptr, M, N, R: tl.constexpr, BN: tl.constexpr):
    i = tl.arange(0, 64)
    rows = tl.load(rows_ptr + i)
    columns, ranks = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, R)
    x = tl.load(x_ptr + rows[:, None] * R + ranks[None, :])
    w = tl.load(w_ptr + columns[None, :] * R + ranks[:, None])
    y = y_ptr + rows[:, None] * N + columns[None, :]
    mask = (i < M)[:, None] & (columns < N)[None, :]
    before = tl.load(y, mask=mask, other=0.0)
    tl.store(y, tl.dot(x, w).to(before.dtype) + before, mask=mask)


def test_a_dot_without_a_loop_may_spill_a_few_words():
    """A fourth program fits with 128 registers. What is spilled once costs less than its warps."""
    kernel = tessera.compile(
        add_low_rank, "*fp16:16, *fp16:16, *fp16:16, *i32:16, i32, i32:16",
        constexprs={"R": 16, "BN": 128}, target="sm_90a", num_warps=4,
    )  # fmt: skip
    assert kernel.n_regs <= 128 and kernel.n_spills <= 40
