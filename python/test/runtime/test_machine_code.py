# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What products become in the machine code of a GPU, without a GPU.

An instruction of sm_80 and sm_90 has 16 bytes, its kind is in the lowest 12 bits: enough
to count them, with no disassembler.
"""

from __future__ import annotations

import collections
import struct
from typing import Any

import pytest

import tessera
import tessera.language as tl
from tessera.compiler import toolchain

WGMMA, MMA, LOCAL_LOAD, LOCAL_STORE = 0x9F0, 0x23C, 0x983, 0x387
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
    ],
)
def test_products_are_on_tensor_cores(dtype, target, block, warps, kind, count):
    kernel = build(dtype, target, block, warps)
    kinds = count_instructions(kernel.asm["cubin"])
    assert kinds[kind] == count
    assert kinds[LOCAL_LOAD] == kinds[LOCAL_STORE] == 0
    assert kernel.n_spills == 0
    assert not [text for text in kernel.metadata["remarks"] if "(C75" in text]


@pytest.mark.parametrize("tensor_maps", [False, True])
def test_bytes_across_k_come_as_pairs(tensor_maps):
    """b lies in rows along N: a thread gets two columns of it, and tells them apart."""
    kernel = build("i8", "sm_90a", (128, 256, 128), 8, tensor_maps=tensor_maps)
    # A result that waits for the copy engine takes no memory from the loop before it.
    assert not [text for text in kernel.remarks if "not pipelined" in text]
    kinds = count_instructions(kernel.asm["cubin"])
    assert kinds[MATRIX_LOAD] == 8  # of 4 matrices each: 128 bytes a thread
    assert kinds[PERMUTE] <= 2 * 4 * kinds[MATRIX_LOAD]
    assert kernel.n_spills == 0 and not [text for text in kernel.remarks if "(C75" in text]
    assert kernel.asm["ptx"].count("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8") == 8


@pytest.mark.parametrize("target, how", [("sm_90a", "by wgmma"), ("sm_80", "by mma.sync, not")])
def test_the_choice_is_told_with_its_line(target, how):
    (remark,) = [
        text
        for text in build("fp16", target, (64, 64, 32), 4).metadata["remarks"]
        if "product" in text
    ]
    line = matmul.fn.__code__.co_firstlineno + 9
    assert remark.startswith(f"{__file__}:{line}:") and how in remark


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


def test_too_much_shared_memory_is_a_users_mistake():
    # The sums of 256x256 alone, turned for the store, are more than a program may have.
    with pytest.raises(tessera.TesseraError) as caught:
        build("bf16", "sm_90a", (256, 256, 64), 8)
    message = str(caught.value)
    assert "E069" in message and "232448" in message and "smaller tiles" in message
    assert "bytes to keep this tile" in message and "see current operation" not in message
