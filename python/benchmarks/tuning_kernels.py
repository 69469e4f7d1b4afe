# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that python/benchmarks/tuning.py tunes, written once for every compiler.

Not a module to import: its text is run with `jit` and `tl` of Tessera or of Triton, from a file.
"""

from tuning_compiler import jit, tl


@jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    pid_m = first + pid % (GROUP * columns) % height
    pid_n = pid % (GROUP * columns) // height
    rm = (pid_m * BM + tl.arange(0, BM)) % M
    rn = (pid_n * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    a = a_ptr + rm[:, None] * stride_a + rk[None, :]
    b = b_ptr + rk[:, None] * stride_b + rn[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(b, mask=rk[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total)
        a += BK
        b += BK * stride_b
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    c = c_ptr + rm[:, None] * stride_c + rn[None, :]
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=mask)


@jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64) * N * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, inner = tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + inner[None, :])
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, N, BN):
        k = tl.load(k_ptr + head + (start + columns)[None, :] * D + inner[:, None])
        s = tl.dot(q, k) * (scale * 1.44269504)
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(most - new)
        norm = norm * factor + tl.sum(p, 1)
        v = tl.load(v_ptr + head + (start + columns)[:, None] * D + inner[None, :])
        total = tl.dot(p.to(v.dtype), v, total * factor[:, None])
        most = new
    o = total / norm[:, None]
    tl.store(o_ptr + head + rows[:, None] * D + inner[None, :], o.to(o_ptr.dtype.element_ty))


@jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
