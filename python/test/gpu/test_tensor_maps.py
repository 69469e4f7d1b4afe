# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots whose operands TMA brings: tails, batches, types, what it cannot do."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tessera
import tessera.language as tl
from gpu.test_pipelines import described
from tessera.tools.tensor_descriptor import TensorDescriptor

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def engine() -> None:
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("there is no TMA")


@tessera.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn,
    stride_cb, stride_cm, MASKED: tl.constexpr, ACC: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    batch = tl.program_id(2)
    ks = tl.arange(0, BK)
    a = a_ptr + batch * stride_ab + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b = b_ptr + batch * stride_bb + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        if MASKED:
            x = tl.load(a, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0)
            y = tl.load(b, mask=(ks[:, None] < K - k) & (columns[None, :] < N), other=0)
        else:
            x, y = tl.load(a), tl.load(b)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        a += BK * stride_ak
        b += BK * stride_bk
    c = c_ptr + batch * stride_cb + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


@tessera.jit
def fused(
    a_ptr, b_ptr, bias_ptr, r_ptr, c_ptr, M, N, K, sam, sbk, KIND: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A loop over tiles with something to compute at the end of each."""
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        rows = tile // across * BM + tl.arange(0, BM)
        columns = tile % across * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            ks = k + tl.arange(0, BK)
            x = tl.load(a_ptr + rows[:, None] * sam + ks[None, :],
                        mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)  # fmt: skip
            y = tl.load(b_ptr + ks[:, None] * sbk + columns[None, :],
                        mask=(ks[:, None] < K) & (columns[None, :] < N), other=0.0)  # fmt: skip
            acc = tl.dot(x, y, acc)
        places = rows[:, None] * N + columns[None, :]
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        if KIND == "gelu":
            acc += tl.load(bias_ptr + columns, mask=columns < N, other=0.0)[None, :].to(tl.float32)
            acc = 0.5 * acc * (1.0 + tl.math.erf(acc * 0.7071067811865476))
        elif KIND == "residual":
            acc = tl.maximum(acc + tl.load(r_ptr + places, mask=inside, other=0.0), 0.0)
        elif KIND == "rows":
            acc -= tl.max(tl.where(inside, acc, -1e5), 1)[:, None]
        elif KIND == "columns":
            acc -= tl.max(tl.where(inside, acc, -1e5), 0)[None, :]
        tl.store(c_ptr + places, acc.to(c_ptr.dtype.element_ty), mask=inside)


KINDS = ["none", "gelu", "residual", "rows", "columns"]


def fused_by_numpy(a, b, bias, residual, kind, block):
    """What it computes, in float64, and how far a result in float16 may be off."""
    want = a.astype("f8") @ b.astype("f8")
    if kind == "gelu":
        want += bias
        erf = np.array([math.erf(value) for value in want.ravel() / 2**0.5]).reshape(want.shape)
        return want / 2 * (1 + erf), 2**-10
    if kind == "residual":
        return np.maximum(want + residual, 0), 0
    for i in range(0, want.shape[0], block[0]) if kind in ("rows", "columns") else ():
        for j in range(0, want.shape[1], block[1]):
            part = want[i : i + block[0], j : j + block[1]]
            part -= part.max(1 if kind == "rows" else 0, keepdims=True)
    return want, 0


def make(batch, rows, columns, dtype, transposed=False):
    """Small integers, in memory whose rows are padded to a multiple of 32 elements."""
    if transposed:
        return make(batch, columns, rows, dtype).mT
    width = (columns + 31) // 32 * 32
    return torch.randint(-4, 5, (batch, rows, width), device="cuda").to(dtype)[:, :, :columns]


def run(a, b, *, masked=True, block=(128, 128, 64), grid=None, **options):
    (batch, m, k), n = a.shape, b.shape[2]
    is_integer = not a.dtype.is_floating_point
    c = torch.full((batch, m, n), -99, device="cuda", dtype=torch.int32 if is_integer else torch.float32)  # fmt: skip
    bm, bn, bk = block
    options.setdefault("tensor_maps", True)
    kernel = matmul[(tessera.cdiv(m, bm), tessera.cdiv(n, bn), batch)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), c.stride(0), c.stride(1), MASKED=masked,
        ACC=tl.int32 if is_integer else tl.float32, BM=bm, BN=bn, BK=bk, **options,
    )  # fmt: skip
    want = a.double() @ b.double()
    assert torch.equal(c.double(), want)
    return kernel


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("m, n, k", [(128, 128, 64), (200, 136, 72), (1, 8, 8), (129, 257, 1000)])
def test_tails(m, n, k, transposed):
    kernel = run(make(1, m, k, torch.float16), make(1, k, n, torch.float16, transposed))
    assert len(kernel.metadata["tensor_maps"]) >= 2


@pytest.mark.parametrize(
    "warps, block", [(4, (64, 64, 64)), (8, (128, 256, 64)), (4, (64, 32, 32))]
)
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_shapes_of_tiles(warps, block, stages):
    a, b = make(1, 300, 520, torch.bfloat16), make(1, 520, 520, torch.bfloat16)
    run(a, b, block=block, num_warps=warps, num_stages=stages)


def test_no_masks_and_batches():
    a, b = make(3, 256, 192, torch.float16), make(3, 192, 128, torch.float16)
    for repeat in range(2):
        kernel = run(a, b, masked=False)
    assert kernel.metadata["tensor_maps"]
    run(a[:, :, :150], b[:, :150], masked=True)


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("transposed", [False, True])
def test_types(dtype, transposed):
    dtype = getattr(torch, dtype)
    if dtype.is_floating_point and dtype.itemsize == 1:
        a, b = make(1, 130, 200, torch.float16), make(1, 200, 96, torch.float16, transposed)
        a, b = a.to(dtype), b.to(dtype) if not transposed else b.mT.contiguous().to(dtype).mT
        a = torch.nn.functional.pad(a.to(torch.float16), (0, 24)).to(dtype)[:, :, :200]
        run_float8(a, b)
        return
    run(make(1, 130, 200, dtype), make(1, 200, 96, dtype, transposed), block=(64, 32, 64))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block, warps", [((128, 256, 64), 8), ((128, 128, 64), 8)])
def test_groups_of_warps_store_for_themselves(kind, block, warps):
    """More tiles than programs, fewer, and no iteration of K."""
    for m, n, k in ((1500, 2064, 264), (200, 264, 64), (256, 256, 0)):
        a, b = make(1, m, k, torch.float16)[0], make(1, k, n, torch.float16)[0]
        bias, residual = make(1, 1, n, torch.float16)[0, 0], make(1, m, n + -n % 32, torch.float16)
        residual = residual[0, :, :n].contiguous()
        if kind == "gelu":
            a, b = a / 16, b / 16
        c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
        fused[(24,)](
            a, b, bias, residual, c, m, n, k, a.stride(0), b.stride(0), KIND=kind, BM=block[0],
            BN=block[1], BK=block[2], num_warps=warps, num_stages=3,
        )  # fmt: skip
        numbers = (x.cpu().numpy().astype("f8") for x in (a, b, bias, residual))
        want, error = fused_by_numpy(*numbers, kind, block)
        np.testing.assert_allclose(c.cpu().numpy().astype("f8"), want, rtol=error, atol=error / 8)


def run_float8(a, b):
    c = torch.full((1, a.shape[1], b.shape[2]), -99.0, device="cuda")
    matmul[(3, 3, 1)](
        a, b, c, a.shape[1], b.shape[2], a.shape[2], *a.stride(), *b.stride(), c.stride(0),
        c.stride(1), MASKED=True, ACC=tl.float32, BM=64, BN=32, BK=64, tensor_maps=True,
    )  # fmt: skip
    assert torch.equal(c.double(), a.half().double() @ b.half().double())


def test_what_has_no_map_goes_without():
    a, b = make(1, 64, 64, torch.float16), make(1, 64, 64, torch.float16)
    assert run(a, b).metadata["tensor_maps"]
    for k in (0, 64, 0):
        kernel = run(a[:, :, :k], b[:, :k])
        assert bool(kernel.metadata["tensor_maps"]) == (k > 0)
    assert not run(a, b, tensor_maps=False).metadata["tensor_maps"]


@tessera.jit
def matmul_of_views(a, b, c_ptr, K, N):
    i, j = tl.program_id(0) * 64, tl.program_id(1) * 64
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, K, 64):
        acc = tl.dot(a.load([i, k]), b.load([k, j]), acc)
    rows, columns = i + tl.arange(0, 64), j + tl.arange(0, 64)
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [64, 64])
    c.store([i, j], acc)


@pytest.mark.parametrize("n, k", [(192, 128), (200, 72)])
def test_descriptors_made_on_the_host(n, k):
    a, b = make(1, n, k, torch.float16)[0], make(1, k, n, torch.float16)[0]
    c = torch.full((n, n), -99.0, device="cuda")
    kernel = matmul_of_views[(4, 4)](
        TensorDescriptor.from_tensor(a, [64, 64]), TensorDescriptor.from_tensor(b, [64, 64]),
        c, k, n, tensor_maps=True,
    )  # fmt: skip
    assert torch.equal(c.double(), a.double() @ b.double())
    assert len(kernel.metadata["tensor_maps"]) >= 2


@pytest.mark.parametrize("m, n, k", [(192, 192, 128), (200, 136, 72), (8, 520, 1000)])
@pytest.mark.parametrize("warps", [4, 8])
def test_descriptors_made_in_the_kernel(m, n, k, warps):
    a = torch.randint(-4, 5, (m, k), device="cuda").half()
    b = torch.randint(-4, 5, (k, n), device="cuda").half()
    c = torch.full((m, n), -99.0, device="cuda")
    kernel = described[(tessera.cdiv(m, 16 * warps), tessera.cdiv(n, 64))](
        a, b, c, m, n, k, BM=16 * warps, BN=64, BK=64, num_warps=warps, split_k=False
    )
    assert torch.equal(c.double(), a.double() @ b.double())
    assert len(kernel.metadata["tensor_maps"]) == 3
