# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of gpu_matmul.py, for any compiler: it gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_bk, stride_bn, stride_c, ACC: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid, blocks_m, blocks_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_m = pid // (GROUP * blocks_n) * GROUP
    group = min(blocks_m - first_m, GROUP)
    rows = (first_m + pid % (GROUP * blocks_n) % group) * BM + tl.arange(0, BM)
    columns = pid % (GROUP * blocks_n) // group * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        x = tl.load(a, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(ks[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        a += BK
        b += BK * stride_bk
    c = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@jit
def matmul_bias_gelu(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
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
    acc += tl.load(bias_ptr + columns, mask=columns < N, other=0.0)[None, :].to(tl.float32)
    acc = 0.5 * acc * (1.0 + tl.math.erf(acc * 0.7071067811865476))
    c = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@jit
def matmul_int4(
    a_ptr, w_ptr, scale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Weights of 4 bits, two a byte along K, less 8 and times a scale for 128 of them."""
    pid, blocks_m, blocks_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_m = pid // (GROUP * blocks_n) * GROUP
    group = min(blocks_m - first_m, GROUP)
    rows = (first_m + pid % (GROUP * blocks_n) % group) * BM + tl.arange(0, BM)
    columns = pid % (GROUP * blocks_n) // group * BN + tl.arange(0, BN)
    ks, halves = tl.arange(0, BK), tl.arange(0, BK // 2)
    a = a_ptr + rows[:, None] * K + ks[None, :]
    w = w_ptr + columns[:, None] * (K // 2) + halves[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a, mask=rows[:, None] < M, other=0.0)
        packed = tl.load(w, mask=columns[:, None] < N, other=0)
        scale = tl.load(scale_ptr + columns * (K // 128) + k // 128, mask=columns < N, other=0.0)
        low, high = (packed & 15).to(tl.int8) - 8, (packed >> 4).to(tl.int8) - 8
        y = tl.interleave(low.to(tl.bfloat16), high.to(tl.bfloat16)) * scale[:, None]
        acc = tl.dot(x, tl.trans(y), acc)
        a += BK
        w += BK // 2
    c = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@jit
def matmul_scaled(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K, stride_a, stride_bk, stride_bn, stride_c,
    stride_as, stride_ask, stride_bs, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """A scale for a row of A and 128 of K, and one for 128 columns of B and 128 of K."""
    pid, blocks_m, blocks_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_m = pid // (GROUP * blocks_n) * GROUP
    group = min(blocks_m - first_m, GROUP)
    rows = (first_m + pid % (GROUP * blocks_n) % group) * BM + tl.arange(0, BM)
    columns = pid % (GROUP * blocks_n) // group * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    a_scale = a_scale_ptr + rows * stride_as
    b_scale = b_scale_ptr + columns // 128 * stride_bs
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(ks[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        of_a = tl.load(a_scale + k // 128 * stride_ask, mask=rows < M, other=0.0)
        of_b = tl.load(b_scale + k // 128, mask=columns < N, other=0.0)
        acc += tl.dot(x, y) * of_a[:, None] * of_b[None, :]
        a += BK
        b += BK * stride_bk
    c = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@jit
def matmul_scaled_once(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K, stride_a, stride_bk, stride_bn, stride_c,
    stride_as, stride_ask, stride_bs, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """The same where a tile has no more than 128 columns, and so one scale of B."""
    pid, blocks_m, blocks_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_m = pid // (GROUP * blocks_n) * GROUP
    group = min(blocks_m - first_m, GROUP)
    rows = (first_m + pid % (GROUP * blocks_n) % group) * BM + tl.arange(0, BM)
    column = pid % (GROUP * blocks_n) // group * BN
    columns, ks = column + tl.arange(0, BN), tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    a_scale = a_scale_ptr + rows * stride_as
    b_scale = b_scale_ptr + column // 128 * stride_bs
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a, mask=(rows[:, None] < M) & (ks[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(ks[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        of_a = tl.load(a_scale + k // 128 * stride_ask, mask=rows < M, other=0.0)
        acc += tl.dot(x, y) * (of_a * tl.load(b_scale + k // 128))[:, None]
        a += BK
        b += BK * stride_bk
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
