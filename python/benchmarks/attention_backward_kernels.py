# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention's backward pass, for any compiler: it gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def row_sums(o_ptr, do_ptr, d_ptr, T, D: tl.constexpr, BM: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.program_id(1).to(tl.int64) * T * D + rows[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.load(o_ptr + at).to(tl.float32)
    do = tl.load(do_ptr + at).to(tl.float32)
    tl.store(d_ptr + tl.program_id(1).to(tl.int64) * T + rows, tl.sum(o * do, 1))


@jit
def of_keys_rows(
    dk, dv, k, v, q_ptr, do_ptr, m_ptr, d_ptr, keys, first, last, scale2,
    D: tl.constexpr, BM: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    ds = tl.arange(0, D)
    for start in range(first, last, BM):
        rows = start + tl.arange(0, BM)
        q = tl.load(q_ptr + rows[:, None] * D + ds[None, :])
        s = tl.dot(k, tl.trans(q))
        m = tl.load(m_ptr + rows)
        do = tl.load(do_ptr + rows[:, None] * D + ds[None, :])
        dp = tl.dot(v, tl.trans(do))
        p = tl.math.exp2(s * scale2 - m[None, :])
        if MASK:
            p = tl.where(rows[None, :] >= keys[:, None], p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        delta = tl.load(d_ptr + rows)
        g = p * (dp - delta[None, :])
        dk = tl.dot(g.to(q.dtype), q, dk)
    return dk, dv


@jit
def of_keys(
    q_ptr, k_ptr, v_ptr, do_ptr, dk_ptr, dv_ptr, m_ptr, d_ptr, T, scale2, scale,
    GROUP: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values; GROUP heads of q to one of theirs."""
    first = tl.program_id(0) * BN
    keys, ds = first + tl.arange(0, BN), tl.arange(0, D)
    at = tl.program_id(1).to(tl.int64) * T * D + keys[:, None] * D + ds[None, :]
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    dk = tl.zeros((BN, D), dtype=tl.float32)
    dv = tl.zeros((BN, D), dtype=tl.float32)
    for member in range(GROUP):
        head = tl.program_id(1).to(tl.int64) * GROUP + member
        q, do, m, d = (
            q_ptr + head * T * D,
            do_ptr + head * T * D,
            m_ptr + head * T,
            d_ptr + head * T,
        )
        begin = 0
        if CAUSAL:
            dk, dv = of_keys_rows(
                dk, dv, k, v, q, do, m, d, keys, first, first + BN, scale2, D, BM, True
            )
            begin = first + BN
        dk, dv = of_keys_rows(dk, dv, k, v, q, do, m, d, keys, begin, T, scale2, D, BM, False)
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty))


@jit
def of_rows_keys(
    dq, q, do, m, d, k_ptr, v_ptr, rows, first, last, scale2,
    D: tl.constexpr, BN: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    ds = tl.arange(0, D)
    for start in range(first, last, BN):
        keys = start + tl.arange(0, BN)
        k = tl.load(k_ptr + keys[:, None] * D + ds[None, :])
        s = tl.dot(q, tl.trans(k))
        v = tl.load(v_ptr + keys[:, None] * D + ds[None, :])
        dp = tl.dot(do, tl.trans(v))
        p = tl.math.exp2(s * scale2 - m[:, None])
        if MASK:
            p = tl.where(rows[:, None] >= keys[None, :], p, 0.0)
        g = p * (dp - d[:, None])
        dq = tl.dot(g.to(k.dtype), k, dq)
    return dq


@jit
def of_rows(
    q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, m_ptr, d_ptr, T, scale2, scale,
    GROUP: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The gradient of a block of rows of q."""
    first = tl.program_id(0) * BM
    rows, ds = first + tl.arange(0, BM), tl.arange(0, D)
    head = tl.program_id(1).to(tl.int64)
    at = head * T * D + rows[:, None] * D + ds[None, :]
    of_key = head // GROUP * T * D
    q = tl.load(q_ptr + at)
    do = tl.load(do_ptr + at)
    m = tl.load(m_ptr + head * T + rows)
    d = tl.load(d_ptr + head * T + rows)
    dq = tl.zeros((BM, D), dtype=tl.float32)
    if CAUSAL:
        dq = of_rows_keys(
            dq, q, do, m, d, k_ptr + of_key, v_ptr + of_key, rows, 0, first, scale2, D, BN, False
        )
        dq = of_rows_keys(
            dq, q, do, m, d, k_ptr + of_key, v_ptr + of_key, rows, first, first + BM, scale2, D,
            BN, True,
        )  # fmt: skip
    else:
        dq = of_rows_keys(
            dq, q, do, m, d, k_ptr + of_key, v_ptr + of_key, rows, 0, T, scale2, D, BN, False
        )
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty))
