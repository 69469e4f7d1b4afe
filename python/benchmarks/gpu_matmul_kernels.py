# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of gpu_matmul.py, for any compiler: it gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid, blocks_m, blocks_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_m = pid // (GROUP * blocks_n) * GROUP
    group = min(blocks_m - first_m, GROUP)
    rows = (first_m + pid % (GROUP * blocks_n) % group) * BM + tl.arange(0, BM)
    columns = pid % (GROUP * blocks_n) // group * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_b + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(ks[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK
        b += BK * stride_b
    c = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, ds = tl.arange(0, BN), tl.arange(0, D)
    head = tl.program_id(1).to(tl.int64) * T * D
    q = tl.load(q_ptr + head + rows[:, None] * D + ds[None, :])
    largest = tl.full((BM,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    # All columns before the diagonal's blocks, then those, where some are to be left out.
    middle = tl.program_id(0) * BM if CAUSAL else T
    for start in range(0, middle, BN):
        k = tl.load(k_ptr + head + (start + columns)[None, :] * D + ds[:, None])
        s = tl.dot(q, k)
        new = tl.maximum(largest, tl.max(s, 1) * scale)
        p = tl.math.exp2(s * scale - new[:, None])
        alpha = tl.math.exp2(largest - new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + head + (start + columns)[:, None] * D + ds[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        largest = new
    if CAUSAL:
        for start in range(middle, middle + BM, BN):
            k = tl.load(k_ptr + head + (start + columns)[None, :] * D + ds[:, None])
            s = tl.dot(q, k)
            s = tl.where(rows[:, None] >= (start + columns)[None, :], s * scale, -1.0e6)
            new = tl.maximum(largest, tl.max(s, 1))
            p = tl.math.exp2(s - new[:, None])
            alpha = tl.math.exp2(largest - new)
            total = total * alpha + tl.sum(p, 1)
            v = tl.load(v_ptr + head + (start + columns)[:, None] * D + ds[None, :])
            acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
            largest = new
    o = o_ptr + head + rows[:, None] * D + ds[None, :]
    tl.store(o, (acc / total[:, None]).to(o_ptr.dtype.element_ty))
