# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are divided among the blocks of a cluster, which copy by TMA for each other, in the
simulator: values, and no races."""

from __future__ import annotations

import functools
import re
from typing import Any, Optional

import ml_dtypes
import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
import tessera.tools.tensor_descriptor
from runtime.usual_kernels import load

KERNELS = load("benchmarks/gpu_matmul_kernels.py")

def run(
    kernel: Any, grid: tuple[int, ...], *args: Any, seed: int = 0, copies: str = "random",
    is_multicast: bool = True, **options: Any,
) -> None:  # fmt: skip
    simulated = tessera.gpu.simulate(kernel, seed=seed, copies=copies)
    simulated[grid](*args, **options).check()
    # What ran: not the variant for launches without tensor maps.
    module = list(simulated._modules.values())[-1]
    assert ("multicast::cluster" in str(module)) == is_multicast


def list_remarks(kernel: Any, *args: Any, **options: Any) -> str:
    compiled = kernel.warmup(*args, target="sm_90a", grid=(1,), **options)
    return "\n".join(map(str, compiled.remarks)) + compiled.asm["ptx"]


@tessera.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, END, stride_a, stride_bk, stride_bn, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    blocks_n = tl.cdiv(N, BN)
    rows = tl.program_id(0) // blocks_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % blocks_n * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, END, BK):
        x = tl.load(a, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(ks[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK
        b += BK * stride_bk
    c = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def multiply(
    shape: tuple[int, int, int], tile: tuple[int, int, int], dtype: Any = np.float16,
    out: Any = np.float32, along_k: bool = False, end: Optional[int] = None, **options: Any,
) -> None:  # fmt: skip
    (m, n, k), (bm, bn, bk) = shape, tile
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(dtype)
    b = rng.integers(-4, 5, (k, n)).astype(dtype)
    given = np.ascontiguousarray(b.T) if along_k else b
    strides = (1, k) if along_k else (n, 1)
    c = np.full((m, n), np.nan, np.float32).astype(out)
    run(
        matmul, (-(-m // bm) * -(-n // bn),), a, given, c, m, n, k, k if end is None else end, k,
        *strides, n, BM=bm, BN=bn, BK=bk, **options,
    )  # fmt: skip
    if end is not None:
        a, b = a[:, :end], b[:end]
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, expected.astype(out))


F16 = tessera.MockTensor("float16")


def describe(tile: tuple[int, int, int], **options: Any) -> str:
    n = 4096
    return list_remarks(
        matmul, F16, F16, F16, n, n, n, n, n, n, 1, n, BM=tile[0], BN=tile[1], BK=tile[2], **options
    )


@pytest.mark.parametrize("along_k", (False, True))
@pytest.mark.parametrize(
    "blocks, tile, shape",
    (
        (2, (128, 64, 64), (128, 64, 256)),
        (2, (128, 64, 64), (200, 136, 328)),  # tails along all three
        (2, (64, 128, 64), (136, 200, 200)),  # columns are divided
        (4, (256, 64, 64), (264, 72, 136)),
        (4, (64, 256, 64), (72, 264, 136)),
    ),
)
def test_a_matmul(
    blocks: int, tile: tuple[int, int, int], shape: tuple[int, int, int], along_k: bool
) -> None:
    multiply(shape, tile, along_k=along_k, num_ctas=blocks, num_stages=3)


@pytest.mark.in_turn("seed")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("blocks", (2, 4))
def test_blocks_in_any_order(blocks: int, seed: int) -> None:
    multiply(
        (64 * blocks, 160, 456), (64 * blocks, 64, 64), seed=seed, num_ctas=blocks, num_stages=2
    )


@pytest.mark.parametrize("seed", range(3))
def test_persistent_kernels(seed: int) -> None:
    """Two clusters do five programs: rings go on from one to the next."""
    tile = (256, 128, 64)
    n = 4096
    compiled = matmul.warmup(
        F16, F16, F16, n, n, n, n, n, n, 1, n, BM=tile[0], BN=tile[1], BK=tile[2], num_ctas=2,
        num_stages=2, target="sm_90a", grid=(1,),
    )  # fmt: skip
    assert compiled.metadata["persistent_programs"] == 1
    multiply((256, 4 * 128 + 8, 136), tile, seed=seed, out=np.float16, num_ctas=2, num_stages=2)


@pytest.mark.parametrize("dtype", (np.float16, ml_dtypes.bfloat16, np.float32))
@pytest.mark.parametrize("blocks", (2, 4))
def test_types(dtype: Any, blocks: int) -> None:
    bk = 32 if dtype is np.float32 else 64
    multiply(
        (64 * blocks, 64, 3 * bk), (64 * blocks, 64, bk), dtype, out=dtype, along_k=True,
        num_ctas=blocks,
    )  # fmt: skip


@pytest.mark.parametrize("k", (8, 64, 72))
def test_few_iterations(k: int) -> None:
    multiply((130, 72, k), (128, 64, 64), num_ctas=2, num_stages=4)


@pytest.mark.parametrize("copies", ("early", "late", "random"))
@pytest.mark.parametrize("end", (0, 64))
def test_loops_that_do_not_run(end: int, copies: str) -> None:
    multiply((130, 136, 128), (128, 64, 64), end=end, num_ctas=2, copies=copies)


def test_warpgroups_of_blocks() -> None:
    multiply((300, 128, 192), (256, 128, 64), num_ctas=2, num_warps=8, out=np.float16)


@tessera.jit
def with_descriptors(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(c.dtype))


@pytest.mark.parametrize("blocks", (2, 4))
def test_descriptors(blocks: int) -> None:
    m, n, k, tile = 64 * blocks + 40, 136, 200, (64 * blocks, 64, 64)
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (n, k)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    make = tessera.tools.tensor_descriptor.TensorDescriptor.from_tensor
    bm, bn, bk = tile
    given = make(a, [bm, bk]), make(b, [bn, bk]), make(c, [bm, bn])
    run(with_descriptors, (2, 3), *given, k, BM=bm, BN=bn, BK=bk, num_ctas=blocks)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))


@tessera.jit
def with_epilogue(
    a_ptr, b_ptr, bias_ptr, scale_ptr, c_ptr, sums_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Indices of rows and of columns that are one value, rows and columns that are loaded, a result
    that is transposed, and another one that is reduced."""
    i = tl.arange(0, BM)
    rows, columns, ks = tl.program_id(0) * BM + i, tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :], mask=rows[:, None] < M)
        y = tl.load(b_ptr + (k + ks)[:, None] * N + columns[None, :])
        acc = tl.dot(x, y, acc)
    bias = tl.load(bias_ptr + columns)
    scale = tl.load(scale_ptr + rows, mask=rows < M, other=0)
    acc = acc * scale[:, None] + bias[None, :]
    if K > 64:
        acc = acc + (rows[:, None] - columns[None, :]).to(tl.float32)
    tl.store(sums_ptr + rows, tl.sum(acc, 1), mask=rows < M)
    tl.store(c_ptr + columns[:, None] * M + rows[None, :], tl.trans(acc), mask=rows[None, :] < M)


@pytest.mark.parametrize("k", (64, 128))
def test_what_follows_a_dot(k: int) -> None:
    m, n = 136, 128
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    bias, scale = (rng.integers(-9, 9, size).astype(np.float32) for size in (n, m))
    c, sums = np.zeros((n, m), np.float32), np.zeros(m, np.float32)
    run(with_epilogue, (2,), a, b, bias, scale, c, sums, m, n, k, BM=128, BN=n, BK=64, num_ctas=2)
    expected = (a.astype(np.float32) @ b) * scale[:, None] + bias
    if k > 64:
        expected += np.arange(m)[:, None] - np.arange(n)
    np.testing.assert_array_equal(c, expected.T)
    np.testing.assert_array_equal(sums, expected.sum(1))


@pytest.mark.parametrize("along_k", (True, False))
@pytest.mark.parametrize("dtype", (np.int8, ml_dtypes.float8_e4m3fn))
def test_operands_of_bytes(dtype: Any, along_k: bool) -> None:
    m, n, k = 136, 80, 160
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))
    given, strides = (np.ascontiguousarray(b.T), (1, k)) if along_k else (b, (n, 1))
    acc, result = (tl.int32, np.int32) if dtype is np.int8 else (tl.float32, np.float32)
    c = np.zeros((m, n), result)
    run(
        KERNELS["matmul"], (4,), a, given, c, m, n, k, k, *strides, n, ACC=acc, BM=128, BN=64,
        BK=64, GROUP=8, num_ctas=2,
    )  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(result) @ b.astype(result))


@pytest.mark.parametrize("causal", (False, True))
def test_attention(causal: bool) -> None:
    """Blocks have queries of their own, and keys and values in common; two loops, or one."""
    heads, length, width, scale = 2, 256, 128, 0.1
    rng = np.random.default_rng(7)
    shape = (heads, length, width)
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for _ in range(3))
    of_one, of_two = np.zeros_like(q), np.zeros_like(q)
    for out, blocks in ((of_one, 1), (of_two, 2)):
        run(
            KERNELS["attention"], (2, heads), q, k, v, out, length, scale, D=width, CAUSAL=causal,
            BM=128, BN=64, num_stages=2, num_ctas=blocks, is_multicast=blocks > 1,
        )  # fmt: skip
    np.testing.assert_array_equal(of_one, of_two)
    scores = np.einsum("hqd,hkd->hqk", q.astype(np.float32), k.astype(np.float32))
    weights = np.exp2(scores * scale) * (np.tril(np.ones((length, length))) if causal else 1)
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float32)
    np.testing.assert_allclose(of_two.astype(np.float32), expected, atol=0.02)


def test_divided_and_multicast() -> None:
    for tile, warps in (((128, 64, 64), 4), ((64, 128, 64), 4), ((256, 128, 64), 8)):
        assert "multicast::cluster" in describe(tile, num_ctas=2, num_warps=warps)


def test_what_users_choose() -> None:
    tile = (128, 64, 64)
    assert "loop is divided among the 2 blocks" in describe(tile, num_ctas=2, split_k=True)
    assert "program is divided" in describe(tile, num_ctas=2, split_k=False)
    small = describe((64, 64, 64), num_ctas=2)
    assert "less than 64 rows for each warpgroup" in small
    assert "loop is divided among the 2 blocks" in small
    never = describe((64, 64, 64), num_ctas=2, split_k=False)
    assert "loop is divided" not in never and "multicast::cluster" not in never
    assert "multicast::cluster" not in describe(tile, num_ctas=2, tensor_maps=False)


@tessera.jit
def in_place(a_ptr, b_ptr, K, BM: tl.constexpr, BN: tl.constexpr):
    """Blocks that do not wait for each other would read what others have overwritten."""
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, 64):
        x = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b_ptr + (k + ks)[:, None] * BN + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(b_ptr + rows[:, None] * BN + columns[None, :], acc.to(tl.float16))


@tessera.jit
def counts(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr):
    """What each block would do once."""
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, 64):
        x = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b_ptr + (k + ks)[:, None] * BN + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)
    tl.atomic_add(c_ptr + BM * BN, 1.0)


@tessera.jit
def over_rows(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr):
    """A sum over what is divided."""
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, 64):
        x = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b_ptr + (k + ks)[:, None] * BN + columns[None, :])
        acc = tl.dot(x, y, acc)
    acc = acc - tl.sum(acc, 0)[None, :]
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)


@pytest.mark.parametrize(
    "kernel, why",
    (
        (in_place, "a block may load or store elements that another one stores"),
        (counts, "an op in it may run once only"),
        (over_rows, "needs results of other blocks|is used"),
    ),
)
def test_programs_that_stay_whole(kernel: Any, why: str) -> None:
    k, n = 128, 64
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, k), (k, n)))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    outputs = () if kernel is in_place else (np.zeros(128 * n + 1, np.float32),)
    mocks = [tessera.MockTensor("float32") for _ in outputs]
    said = list_remarks(kernel, F16, F16, *mocks, k, BM=128, BN=n, num_ctas=2)
    assert re.search(why, said) and "multicast::cluster" not in said
    run(kernel, (1,), a, b, *outputs, k, BM=128, BN=n, num_ctas=2, is_multicast=False)
    if kernel is in_place:
        return np.testing.assert_array_equal(b, expected.astype(np.float16))
    if kernel is counts:
        assert outputs[0][-1] == 1
    else:
        expected -= expected.sum(0)
    np.testing.assert_array_equal(outputs[0][:-1].reshape(128, n), expected)


class Changed(dict[Any, Any]):
    """What a simulated kernel takes for the module that it has lowered before."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.module = tessera._C.Module.parse(text)

    def get(self, key: Any, default: Any = None) -> Any:
        return self.module


MEETING = r" *nvvm\.cluster\.arrive.* \{aligned\}\n *nvvm\.cluster\.wait \{aligned\}\n"
FENCE = r" *nvvm\.fence\.mbarrier\.init\n"
WAIT = r".*mbarrier\.try_wait\.parity.*\n"
ARRIVAL = r".*mbarrier\.arrive\.shared::cluster.*\n"


def without(pattern: str, which: int, text: str) -> str:
    found = list(re.finditer(pattern, text))[which]
    return text[: found.start()] + text[found.end() :]


def of_own_warps(text: str) -> str:
    """Slots are empty when as many warps say so as the block has, no matter whose."""
    name = re.findall(r'mbarrier\.init.*"l,r" %\d+, (%\d+) :', text)[-1]
    return text.replace(f"{name} = llvm.mlir.constant(8 :", f"{name} = llvm.mlir.constant(4 :")


def at_own_block(text: str) -> str:
    """Each warp says so to its own block alone, which waits for no other one."""
    for name in re.findall(r'mbarrier\.arrive\.shared::cluster.*"l,b" %\d+, (%\d+) :', text):
        (lane,) = re.findall(rf'{name} = llvm.icmp "ult" (%\d+),', text)
        kept = f'{name} = llvm.icmp "eq" {lane}, %rank{name[1:]} : i32'
        rank = f"%rank{name[1:]} = nvvm.read.ptx.sreg.cluster.ctarank : i32\n"
        text = re.sub(rf"{name} = llvm.icmp .*", (rank + kept).replace("\\", ""), text)
    return of_own_warps(text)


def to_own_block(text: str) -> str:
    (name,) = re.findall(r"multicast::cluster.*, (%\d+) : \(", text)
    return re.sub(rf"{name} = llvm.trunc .*", f"{name} = llvm.mlir.constant(1 : i16) : i16", text)


def launch_for_change(seed: int, modules: Any = None) -> tuple[Any, Any]:
    """A launch of the matmul on the simulator, with modules that may be given, and the simulator."""
    m, n, k = 256, 384, 320
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    simulated = tessera.gpu.simulate(matmul, seed=seed)
    if modules is not None:
        simulated._modules = modules
    launched = simulated[(3,)](
        a, b, np.zeros((m, n), np.float32), m, n, k, k, k, n, 1, n, BM=256, BN=128, BK=64, num_ctas=2,
        num_stages=2,
    )  # fmt: skip
    return launched, simulated


@functools.lru_cache(maxsize=None)
def text_of_right_code(seed: int) -> str:
    launched, simulated = launch_for_change(seed)
    launched.check()
    (module,) = simulated._modules.values()
    return str(module)


@pytest.mark.in_turn("seed")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "change",
    (
        lambda text: without(FENCE, 0, text),
        lambda text: without(MEETING, 0, text),
        lambda text: without(MEETING, -1, text),
        lambda text: without(WAIT, 0, text),
        lambda text: without(WAIT, -1, text),
        lambda text: without(ARRIVAL, 0, text),
        lambda text: without(ARRIVAL, 1, text),
        of_own_warps,
        at_own_block,
        to_own_block,
    ),
    ids=(
        "fence of new barriers",
        "meeting when barriers are made", "meeting in the end", "wait for a tile",
        "wait for a slot", "arrival in the loop", "arrival behind the loop",
        "arrivals of all blocks", "arrivals at all blocks", "copies to all blocks",
    ),  # fmt: skip
)
def test_each_wait_is_needed(change: Any, seed: int) -> None:
    text = change(text_of_right_code(seed))
    assert text != text_of_right_code(seed)
    launched, _ = launch_for_change(seed, Changed(text))
    assert launched.findings
