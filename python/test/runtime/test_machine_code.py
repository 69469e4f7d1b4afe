# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What dots become in the machine code of a GPU, without a GPU.

An instruction of sm_80 and sm_90 has 16 bytes, its kind is in the lowest 12 bits: enough
to count them, with no disassembler.
"""

from __future__ import annotations

import collections
import re
import struct
from typing import Any

import pytest
from execution.test_decoded_operands import e3m4, signed_nibbles
from execution.test_decoded_operands import matmul as decoded_matmul
from gpu.test_pipelines import attention

import tessera
import tessera.language as tl
from tessera import settings
from tessera.compiler import toolchain

from .usual_kernels import load

WGMMA, MMA, LOCAL_LOAD, LOCAL_STORE = 0x9F0, 0x23C, 0x983, 0x387
# With the first operand in registers; the same of 8-bit floats; mma.sync of f64.
WGMMA_REGISTERS, WGMMA_FP8_REGISTERS, MMA_F64 = 0xDF0, 0xDF3, 0x23F
SHARED_STORE, MULTIPLY_ADD = 0x988, 0x223
MATRIX_LOAD, PERMUTE = 0x83B, 0x816

pytestmark = pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")


def count_instructions(cubin: bytes) -> collections.Counter[int]:
    """How often each kind of instruction is in the code of an ELF file."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, number, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", cubin, table + index * size) for index in range(number)
    ]
    kinds: collections.Counter[int] = collections.Counter()
    for section in sections:
        start = sections[names][4] + section[0]
        if cubin[start : start + 5] != b".text":
            continue
        for offset in range(section[4], section[4] + section[5], 16):
            kinds[struct.unpack_from("<H", cubin, offset)[0] & 0xFFF] += 1
    return kinds


@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, K, AM, BK, CM, BLOCK_M: tl.constexpr,
           BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, OUT: tl.constexpr):  # fmt: skip
    rows, columns = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * AM + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * BK + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), OUT)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc, out_dtype=OUT)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * BK
    tl.store(c_ptr + rows[:, None] * CM + columns[None, :], acc)


def build(dtype: str, target: str, block: tuple[int, int, int], warps: int, **more: Any) -> Any:
    out = {"i8": tl.int32, "fp64": tl.float64}.get(dtype, tl.float32)
    stored = {"i8": "i32", "fp64": "fp64"}.get(dtype, "fp32")
    signature = [f"*{dtype}:16", f"*{dtype}:16", f"*{stored}:16"] + ["i32:16"] * 4
    names = ["a_ptr", "b_ptr", "c_ptr", "K", "AM", "BK", "CM"]
    meta = dict(zip(["BLOCK_M", "BLOCK_N", "BLOCK_K"], block), OUT=out)
    return tessera.compile(
        matmul, dict(zip(names, signature)), constexprs=meta, target=target, num_warps=warps, **more
    )


def list_registers(text: str) -> list[tuple[str, ...]]:
    """The groups of registers of an instruction of PTX."""
    return [tuple(group.split(", ")) for group in re.findall(r"\{(%r[^}]*)\}", text)]


def check_operands_of_dots(ptx: str) -> None:
    """Each mma.sync reads the registers that one ldmatrix wrote, in their order: nothing is moved."""
    instructions = [" ".join(text.split()) for text in ptx.split(";")]
    loads = [list_registers(text)[0] for text in instructions if "ldmatrix." in text]
    halves = [load[half : half + 2] for load in loads for half in (0, 2)]
    dots = [list_registers(text) for text in instructions if "mma.sync" in text]
    assert loads and dots
    assert [dot for dot in dots if dot[1] not in loads] == []
    if ".trans" in ptx:
        assert [dot for dot in dots if dot[2] not in halves] == []


@pytest.mark.parametrize(
    "dtype, target, block, warps, kind, count",
    [
        ("fp16", "sm_90a", (128, 128, 64), 4, WGMMA, 2 * 4),
        ("bf16", "sm_90a", (128, 256, 64), 8, WGMMA, 4),
        ("fp16", "sm_90a", (128, 192, 64), 8, WGMMA, 4),
        ("fp16", "sm_90a", (64, 64, 32), 4, WGMMA, 2),
        ("fp16", "sm_80", (128, 128, 32), 4, MMA, 64),
        ("bf16", "sm_80", (128, 64, 64), 8, MMA, 32),
        ("fp32", "sm_80", (64, 64, 32), 4, MMA, 32),
        # Rows are columns, turned around.
        ("fp16", "sm_90a", (8, 64, 32), 4, WGMMA, 2),
        ("fp16", "sm_80", (8, 64, 32), 4, MMA, 2),
    ],
)
def test_dots_are_on_tensor_cores(dtype, target, block, warps, kind, count):
    kernel = build(dtype, target, block, warps)
    kinds = count_instructions(kernel.asm["cubin"])
    assert kinds[kind] == count
    assert kinds[LOCAL_LOAD] == kinds[LOCAL_STORE] == 0
    assert kernel.n_spills == 0
    assert not [text for text in kernel.metadata["remarks"] if "(C75" in text]
    if kind == MMA:
        check_operands_of_dots(kernel.asm["ptx"])
        # The loop carries words, not their halves.
        assert kinds[PERMUTE] == 0


@pytest.mark.parametrize("tensor_maps", [False, True])
def test_bytes_across_k_come_as_pairs(tensor_maps):
    """b lies in rows along N: a thread gets two columns of it, and tells them apart."""
    kernel = build("i8", "sm_90a", (128, 256, 128), 8, tensor_maps=tensor_maps)
    # A result that waits for TMA takes no memory from the loop before it.
    assert not [text for text in kernel.remarks if "not pipelined" in text]
    kinds = count_instructions(kernel.asm["cubin"])
    assert kinds[MATRIX_LOAD] == 8  # of 4 matrices each: 128 bytes a thread
    assert kinds[PERMUTE] <= 2 * 4 * kinds[MATRIX_LOAD]
    assert kernel.n_spills == 0 and not [text for text in kernel.remarks if "(C75" in text]
    assert kernel.asm["ptx"].count("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8") == 8


@tessera.jit
def in_parts(a_ptr, b_ptr, c_ptr, K, AM, BK, CM, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    rows, columns = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * AM + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * BK + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * BK
    tl.store(c_ptr + rows[:, None] * CM + columns[None, :], acc)


@pytest.mark.parametrize("precision, products", [("tf32x3", 3), ("bf16x3", 3), ("bf16x6", 6)])
@pytest.mark.parametrize(
    "target, block, warps",
    [
        ("sm_90a", (128, 128, 32), 8),
        ("sm_90a", (64, 64, 32), 4),
        ("sm_80", (64, 64, 32), 4),
    ],
)
def test_dots_of_parts_stay_in_registers(precision, products, target, block, warps):
    """Their accumulators are added to others: each thread has both, and the parts of its operands."""
    signature = "*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, i32:16, i32:16"
    meta = dict(zip(["BLOCK_M", "BLOCK_N", "BLOCK_K"], block), PRECISION=precision)
    kernel = tessera.compile(in_parts, signature, constexprs=meta, target=target, num_warps=warps)
    steps = block[2] // (8 if precision == "tf32x3" else 16)
    if target == "sm_90a":
        groups = block[0] // (64 * warps // 4)
        assert kernel.asm["ptx"].count("wgmma.mma_async") == groups * products * steps
        assert not [text for text in kernel.metadata["remarks"] if "(C75" in text]
    else:
        blocks = block[0] // 16 * block[1] // 8 // warps
        assert kernel.asm["ptx"].count("mma.sync") == blocks * products * steps
    assert kernel.n_spills == 0


@tessera.jit
def ieee(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows, inner = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, DEPTH):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * BLOCK + rows[None, :])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], acc)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("block, depth, warps", [(128, 32, 8), (64, 32, 4), (64, 16, 2)])
def test_multiply_adds_read_operands_where_they_were_copied_to(target, block, depth, warps):
    signature = "*fp32:16, *fp32:16, *fp32:16, i32:16"
    meta = {"BLOCK": block, "DEPTH": depth}
    kernel = tessera.compile(ieee, signature, constexprs=meta, target=target, num_warps=warps)
    # Three slots of the ring, and nothing that is written to shared memory besides copies.
    assert kernel.shared == 3 * 2 * block * depth * 4
    kinds = count_instructions(kernel.asm["cubin"])
    assert kinds[SHARED_STORE] == 0
    assert kinds[MULTIPLY_ADD] == block * block * depth // (32 * warps)
    assert kinds[LOCAL_LOAD] == kinds[LOCAL_STORE] == 0


@pytest.mark.parametrize("target, how", [("sm_90a", "by wgmma"), ("sm_80", "by mma.sync, not")])
def test_the_choice_is_told_with_its_line(target, how):
    (remark,) = [
        text
        for text in build("fp16", target, (64, 64, 32), 4).metadata["remarks"]
        if ": dot of " in text
    ]
    line = matmul.fn.__code__.co_firstlineno + 9
    assert remark.startswith(f"{__file__}:{line}:") and how in remark


@tessera.jit
def two_dots(a_ptr, b_ptr, c_ptr, d_ptr, K):
    rows, ks = tl.arange(0, 64), tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (k + ks)[:, None] * 64 + rows[None, :]), acc)
    tl.store(c_ptr + rows[:, None] * 64 + rows[None, :], acc)
    b = tl.load(b_ptr + ks[:, None] * 64 + rows[None, :])
    tl.store(d_ptr + rows[:, None] * 64 + rows[None, :], tl.dot(acc.to(tl.float16), b))


@pytest.mark.parametrize("which", [0, 1])
def test_what_ptxas_says_of_a_dot_has_its_line(tmp_path, which):
    """One of the two dots has its accumulator written to while it is under way."""
    arguments = "*fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16"
    ptx = tessera.compile(two_dots, arguments, target="sm_90a").asm["ptx"].splitlines()
    issued = [number for number, line in enumerate(ptx) if "wgmma.mma_async" in line]
    at = issued[which * len(issued) // 2]
    register = re.search(r"\{(%r\d+)", ptx[at])
    assert register is not None
    # Behind an instruction of the dot, of which the next one reads the register.
    end = next(number for number in range(at, len(ptx)) if ptx[number].endswith(";"))
    ptx.insert(end + 1, f"mov.b32 {register[1]}, 0f3F800000;")
    (tmp_path / "two_dots.ptx.ptx").write_text("\n".join(ptx))
    with tessera.settings.override(override_dir=str(tmp_path)):
        kernel = tessera.compile(two_dots, arguments, target="sm_90a")
    told = [remark for remark in kernel.remarks if "(C75" in remark]
    first = two_dots.fn.__code__.co_firstlineno
    place = f"{__file__}:{first + (6 if which == 0 else 9)}:"
    # ptxas 13.0 tells the line of what it inserts, not that of what it serialises.
    assert (told or which == 0) and all(
        remark.startswith(place) or " or " in remark for remark in told
    )
    assert which == 0 or any(remark.startswith(place) for remark in told)


@pytest.mark.parametrize("tensor_maps", [False, True])
def test_a_limit_of_registers_is_kept(tensor_maps):
    kernel = build("bf16", "sm_90a", (128, 256, 64), 8, maxnreg=160, tensor_maps=tensor_maps)
    assert kernel.n_regs <= 160
    with pytest.raises(tessera.TesseraError) as caught:
        build("bf16", "sm_90a", (128, 256, 64), 8, maxnreg=96, tensor_maps=tensor_maps)
    assert "E063" in str(caught.value) and "maxnreg" in str(caught.value)


@tessera.jit
def row_softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    at = tl.program_id(0) * columns + offsets
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + at, e / tl.sum(e, axis=0), mask=mask)


def test_what_spills_is_given_room_for_one_program_less():
    # Three programs do not fit by a few registers. Two do; alone it would take more still.
    signature = "*bf16:16, *fp32:16, i32:16, 16384"
    kernel = tessera.compile(row_softmax, signature, target="sm_90a", num_warps=8)
    assert kernel.n_spills == 0 and 85 < kernel.n_regs <= 128


def test_what_spills_by_the_choice_of_ptxas_is_given_room():
    """Of its own, ptxas aims at 168 registers, so that six programs fit, and spills two."""
    kernel = build("fp16", "sm_80", (32, 128, 64), 2)
    assert "minnctapersm" not in kernel.asm["ptx"]
    assert kernel.n_spills == 0 and 168 < kernel.n_regs <= 208


@tessera.jit
def three_factors(a_ptr, out_ptr, T, BLOCK: tl.constexpr):
    shape: tl.constexpr = (BLOCK, BLOCK)
    first, second = tl.program_id(0) * 2 * BLOCK, tl.program_id(0) * 2 * BLOCK + BLOCK
    a_ptr += tl.program_id(1) * T * 2 * BLOCK
    out_ptr += tl.program_id(1) * T * 2 * BLOCK
    p_a = tl.make_block_ptr(a_ptr, (T, 2 * BLOCK), (2 * BLOCK, 1), (second, 0), shape, (1, 0))
    p_b = tl.make_block_ptr(out_ptr, (T, 2 * BLOCK), (2 * BLOCK, 1), (first, 0), shape, (1, 0))
    p_c = tl.make_block_ptr(out_ptr, (T, 2 * BLOCK), (2 * BLOCK, 1), (second, BLOCK), shape, (1, 0))
    p_o = tl.make_block_ptr(out_ptr, (T, 2 * BLOCK), (2 * BLOCK, 1), (second, 0), shape, (1, 0))
    a, b = tl.load(p_a, boundary_check=(0, 1)), tl.load(p_b, boundary_check=(0, 1))
    c = tl.load(p_c, boundary_check=(0, 1))
    product = tl.dot(tl.dot(c, a, input_precision="ieee"), b, input_precision="ieee")
    tl.store(p_o, -product, boundary_check=(0, 1))


def test_a_few_warps_more_are_worth_no_spills():
    """An SM has room for 14 of these warps, and for 16 if each spills 32 bytes."""
    kernel = tessera.compile(
        three_factors, "*fp32:16, *fp32:16, i32:16, 32", target="sm_90a", num_warps=1
    )
    assert kernel.n_spills == 0 and 128 < kernel.n_regs <= 144


@tessera.jit
def unit_gradient(x_ptr, dy_ptr, dx_ptr, T, eps, D: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    shape: tl.constexpr = (BLOCK, D)
    p_x = tl.make_block_ptr(x_ptr, (T, D), (D, 1), (start, 0), shape, (1, 0))
    p_dy = tl.make_block_ptr(dy_ptr, (T, D), (D, 1), (start, 0), shape, (1, 0))
    p_dx = tl.make_block_ptr(dx_ptr, (T, D), (D, 1), (start, 0), shape, (1, 0))
    x = tl.load(p_x, boundary_check=(0, 1)).to(tl.float32)
    dy = tl.load(p_dy, boundary_check=(0, 1)).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(x * x, 1) + eps)
    y = x * scale[:, None]
    dx = (dy - tl.sum(dy * y, 1)[:, None] * y) * scale[:, None]
    tl.store(p_dx, dx.to(tl.bfloat16), boundary_check=(0, 1))


def test_a_program_less_is_worth_no_spills():
    """Half of the registers that ptxas chooses make ten programs, and each spills some bytes."""
    kernel = tessera.compile(
        unit_gradient, "*bf16:16, *bf16:16, *bf16:16, i32:16, fp32, 128, 32", target="sm_90a"
    )
    assert kernel.n_spills == 0 and 48 < kernel.n_regs <= 64


@tessera.jit
def gradient_under_lock(
    x_ptr, w_ptr, grad_ptr, mean_ptr, rstd_ptr, out_ptr, sum_w_ptr, sum_b_ptr, lock_ptr, columns,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    mask = offsets < columns
    at = row * columns + offsets
    x = tl.load(x_ptr + at, mask=mask, other=0).to(tl.float32)
    grad = tl.load(grad_ptr + at, mask=mask, other=0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    normal = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
    scaled = tl.where(mask, w * grad, 0.0)
    along, mean = tl.sum(normal * scaled, axis=0) / columns, tl.sum(scaled, axis=0) / columns
    tl.store(out_ptr + at, (scaled - (normal * along + mean)) * rstd, mask=mask)
    sum_w, sum_b = (grad * normal).to(tl.float16), grad.to(tl.float16)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    sum_w += tl.load(sum_w_ptr + offsets, mask=mask)
    sum_b += tl.load(sum_b_ptr + offsets, mask=mask)
    tl.store(sum_w_ptr + offsets, sum_w, mask=mask)
    tl.store(sum_b_ptr + offsets, sum_b, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def test_a_second_program_is_worth_a_few_registers():
    """By itself ptxas takes 162 registers of 8 warps, with which an SM has room for one program."""
    signature = ", ".join(
        ["*fp16:16"] * 3 + ["*fp32:16"] * 2 + ["*fp16:16"] * 3 + ["*i32:16, i32:16"]
    )
    kernel = tessera.compile(
        gradient_under_lock, signature + ", 8192", target="sm_90a", num_warps=8
    )
    assert kernel.n_spills == 0 and 96 < kernel.n_regs <= 128
    alone = tessera.compile(
        gradient_under_lock, signature + ", 8192", target="sm_90a", num_warps=8, maxnreg=255
    )
    assert alone.n_spills == 0 and alone.n_regs > 128


def test_too_much_shared_memory_is_a_users_mistake():
    # Both operands at once are more than a program may have.
    with pytest.raises(tessera.TesseraError) as caught:
        build("bf16", "sm_90a", (256, 256, 256), 8)
    message = str(caught.value)
    assert "E069" in message and "232448" in message and "smaller tiles" in message
    assert "bytes to keep this tile" in message and "see current operation" not in message
    # Of the two operands the one that takes more memory, or comes first.
    line = matmul.fn.__code__.co_firstlineno + 9
    assert message.startswith(f"{__file__}:{line}:")


def test_what_has_no_registers_is_told_with_its_line():
    with pytest.raises(tessera.TesseraError) as caught:
        build("bf16", "sm_90a", (128, 256, 64), 8, maxnreg=64)
    line = matmul.fn.__code__.co_firstlineno + 9
    assert str(caught.value).startswith(f"{__file__}:{line}:")
    # With a limit of the user's, no other schedule is tried.
    kernel = build("fp16", "sm_80", (128, 128, 64), 2, maxnreg=255)
    (remark,) = [text for text in kernel.remarks if "spills" in text]
    assert f" {kernel.n_spills} bytes" in remark and "more warps" in remark
    assert remark.startswith(f"{__file__}:") and kernel.n_spills > 0


@tessera.jit
def bias_and_gelu(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, inner = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + inner
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < M, other=0)
        b = tl.load(b_ptr + ks[:, None] * N + columns[None, :], mask=columns[None, :] < N, other=0)
        acc = tl.dot(a, b, acc)
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0)
    x = acc + bias[None, :].to(tl.float32)
    y = x * 0.5 * (1 + tl.erf(x * 0.7071067811865476))
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], y.to(tl.bfloat16), mask=mask)


def build_attention(d: int, causal: bool) -> Any:
    signature = {name: "*bf16:16" for name in ("q_ptr", "k_ptr", "v_ptr", "o_ptr")}
    meta = {"CAUSAL": causal, "BM": 128, "BN": 64, "D": d}
    return tessera.compile(
        attention, {**signature, "T": "i32:16", "scale": "fp32"}, constexprs=meta,
        target="sm_90a", num_warps=8, num_stages=3,
    )  # fmt: skip


def test_one_run_of_ptxas_is_enough_for_attention(tmp_path):
    """A third program by a few registers is tried for rows only: accumulators have none to give."""
    calls, ptxas = tmp_path / "calls", tmp_path / "ptxas"
    ptxas.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {toolchain.find_ptxas()} "$@"\n')
    ptxas.chmod(0o755)
    kernel = load("benchmarks/gpu_matmul_kernels.py")["attention"]
    signature = "*bf16:16, *bf16:16, *bf16:16, *bf16:16, i32:16, fp32, 64, False, 128, 64"
    with settings.override(ptxas=str(ptxas), cache="off"):
        compiled = tessera.compile(kernel, signature, target="sm_90a", num_warps=4, num_stages=3)
    assert compiled.n_spills == 0
    assert sum("kernel.ptx" in call for call in calls.read_text().splitlines()) == 1


def build_decoded(
    decode: Any, per_byte: int, target: str = "sm_90a", rows: int = 128, inner: int = 64
) -> Any:
    signature = {"a_ptr": "*fp16:16", "w_ptr": "*u8:16", "c_ptr": "*fp32:16", "K": "i32:16"}
    meta = {"DECODE": decode, "PER_BYTE": per_byte, "SCALE": 0.5, "BM": rows, "BN": 128}
    meta["BK"] = inner
    return tessera.compile(
        decoded_matmul, signature, constexprs=meta, target=target, num_warps=max(4, rows // 16),
        num_stages=3,
    )  # fmt: skip


def build_gelu() -> Any:
    signature = ", ".join(["*bf16:16"] * 4 + ["i32:16"] * 3 + ["128", "128", "64"])
    return tessera.compile(bias_and_gelu, signature, target="sm_90a", num_warps=8, num_stages=3)


FAMILIES = {
    # Two dots of 64 rows each: four steps of the first (eight, begun before the loop too)
    # from memory, four of the second with its weights in registers.
    "attention, d 64": (lambda: build_attention(64, False), {WGMMA: 4, WGMMA_REGISTERS: 4}),
    "attention, d 128, causal": (
        lambda: build_attention(128, True), {WGMMA: 16, WGMMA_REGISTERS: 8},
    ),
    "bias and gelu": (build_gelu, {WGMMA: 4}),
    "int4": (lambda: build_decoded(signed_nibbles, 2), {WGMMA_REGISTERS: 8}),
    "e3m4": (lambda: build_decoded(e3m4, 1), {WGMMA_REGISTERS: 4}),
    "fp8": (lambda: build("fp8e4nv", "sm_90a", (128, 128, 128), 8), {WGMMA_FP8_REGISTERS: 4}),
    "tf32": (lambda: build("fp32", "sm_90a", (128, 128, 32), 8), {WGMMA_REGISTERS: 4}),
    "f64": (lambda: build("fp64", "sm_90a", (64, 64, 16), 4), {MMA_F64: 64}),
    "int4 by mma": (lambda: build_decoded(signed_nibbles, 2, "sm_80"), {MMA: 128}),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_on_tensor_cores_and_spill_nothing(name):
    make, products = FAMILIES[name]
    kernel = make()
    kinds = count_instructions(kernel.asm["cubin"])
    assert {kind: kinds[kind] for kind in products} == products
    assert kinds[LOCAL_LOAD] == kinds[LOCAL_STORE] == kernel.n_spills == 0
    assert not [text for text in kernel.remarks if "warning" in text or "(C7" in text]


@pytest.mark.parametrize("decode, per_byte", [(signed_nibbles, 2), (e3m4, 1)], ids=["int4", "e3m4"])
@pytest.mark.parametrize("target, rows", [("sm_80", 32), ("sm_90a", 128)])
def test_a_decoded_factor_stays_in_registers(target, rows, decode, per_byte):
    """What is copied ahead is all that lies in shared memory: packed weights, and the other
    factor; nothing that was computed is put there but for the store of the result."""
    text = build_decoded(decode, per_byte, target, rows).asm["tilegpu"]
    loop = text[text.index("scf.for") : text.index("scf.yield")]
    assert "local_store" not in loop and "convert_layout" not in loop
    # An alloc with an operand stores it.
    assert "local_alloc %" not in loop
    dots = [line for line in loop.splitlines() if "warpgroup_dot" in line or "mma_dot" in line]
    assert len(dots) == 1 and re.search(r": tensor<\d+x\d+xf16", dots[0])


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("alignment", [16, 8, 4, 2])
def test_copies_are_as_wide_as_the_arrays_are_aligned(alignment, target):
    """test_specialize.py says of which class an array is; of f16 at odd places, pairs that lie
    in a word are not known, and nothing is copied ahead."""
    names = ["a_ptr", "b_ptr", "c_ptr", "K", "AM", "BK", "CM"]
    aligned = "" if alignment == 2 else f":{alignment}"
    signature = [f"*fp16{aligned}", f"*fp16{aligned}", "*fp32:16"] + [f"i32:{16}"] * 4
    meta = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "OUT": tl.float32}
    kernel = tessera.compile(
        matmul, dict(zip(names, signature)), constexprs=meta, target=target, tensor_maps=False
    )
    widths = set(re.findall(r"cp\.async\.c[ag]\S* .*, (\d+);", kernel.asm["ptx"]))
    assert widths == (set() if alignment == 2 else {str(alignment)})
    refused = [remark for remark in kernel.remarks if "no 4 bytes of it" in remark]
    assert len(refused) == (2 if alignment == 2 else 0)
    # Past the first-level cache go whole pieces of 16 bytes alone.
    assert ("cp.async.cg" in kernel.asm["ptx"]) == (alignment == 16)


@pytest.mark.parametrize("alignment", [16, 8, 4])
def test_copies_are_as_wide_as_rows_are_aligned(alignment):
    """Arrays of 16, rows of fewer."""
    names = ["a_ptr", "b_ptr", "c_ptr", "K", "AM", "BK", "CM"]
    signature = ["*i8:16", "*i8:16", "*i32:16"] + [f"i32:{alignment}"] * 4
    meta = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "OUT": tl.int32}
    kernel = tessera.compile(
        matmul, dict(zip(names, signature)), constexprs=meta, target="sm_90a", tensor_maps=False
    )
    widths = set(re.findall(r"cp\.async\.c[ag]\S* .*, (\d+);", kernel.asm["ptx"]))
    assert widths == {str(alignment)}
