# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `unseen` of public_kernels.py that go over tokens: chunks,
recurrences, decoding, attention, convolution. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def chunk_cumsum_tri(s_ptr, o_ptr, T, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr):
    """The cumsum within each chunk, a chunk a program: the triangle is the left operand."""
    i_s, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    o_i = tl.arange(0, BT)
    m_s = tl.where(o_i[:, None] >= o_i[None, :], 1.0, 0.0).to(tl.float32)
    p_s = tl.make_block_ptr(
        s_ptr + i_bh * T * S, (T, S), (S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0)
    )
    p_o = tl.make_block_ptr(
        o_ptr + i_bh * T * S, (T, S), (S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0)
    )
    b_s = tl.load(p_s, boundary_check=(0, 1)).to(tl.float32)
    b_o = tl.dot(m_s, b_s, allow_tf32=False)
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@jit
def chunk_cumsum_decay(
    x_ptr, g_ptr, y_ptr, T, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """A decayed cumsum over all chunks: the triangle has the decays between two tokens."""
    i_d, i_bh = tl.program_id(0), tl.program_id(1)
    o_i = tl.arange(0, BT)
    causal = o_i[:, None] >= o_i[None, :]
    carry = tl.zeros([BD], dtype=tl.float32)
    for i_t in range(0, tl.cdiv(T, BT)):
        p_x = tl.make_block_ptr(
            x_ptr + i_bh * T * D, (T, D), (D, 1), (i_t * BT, i_d * BD), (BT, BD), (1, 0)
        )
        p_g = tl.make_block_ptr(g_ptr + i_bh * T, (T,), (1,), (i_t * BT,), (BT,), (0,))
        p_y = tl.make_block_ptr(
            y_ptr + i_bh * T * D, (T, D), (D, 1), (i_t * BT, i_d * BD), (BT, BD), (1, 0)
        )
        b_g = tl.load(p_g, boundary_check=(0,)).to(tl.float32)
        b_c = tl.cumsum(b_g, axis=0)
        decay = tl.where(causal, tl.exp(tl.where(causal, b_c[:, None] - b_c[None, :], 0.0)), 0.0)
        b_x = tl.load(p_x, boundary_check=(0, 1))
        b_y = tl.dot(decay.to(b_x.dtype), b_x) + tl.exp(b_c)[:, None] * carry[None, :]
        tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0, 1))
        total = tl.sum(b_g, axis=0)
        weight = tl.exp(total - b_c)
        carry = carry * tl.exp(total) + tl.sum(weight[:, None] * b_x.to(tl.float32), 0)


@jit
def chunk_cumsum_back(x_ptr, y_ptr, T, S, BT: tl.constexpr, BS: tl.constexpr):
    """The reversed cumsum: pointers walk back, the triangle is the right operand."""
    col = tl.program_id(0) * BS + tl.arange(0, BS)
    base = tl.program_id(1).to(tl.int64) * T * S
    t = tl.arange(0, BT)
    upper = (t[:, None] >= t[None, :]).to(tl.float32)
    chunks = tl.cdiv(T, BT)
    row = (chunks - 1) * BT + t
    x_at = x_ptr + base + row[None, :] * S + col[:, None]
    y_at = y_ptr + base + row[None, :] * S + col[:, None]
    after = tl.zeros((BS,), tl.float32)
    for i in range(chunks):
        ok = (col[:, None] < S) & (row[None, :] < T)
        x = tl.load(x_at, mask=ok, other=0.0).to(tl.float32)
        y = tl.dot(x, upper, allow_tf32=False) + after[:, None]
        tl.store(y_at, y, mask=ok)
        after += tl.sum(x, 1)
        x_at -= BT * S
        y_at -= BT * S
        row -= BT


@jit
def chunk_kkt(
    k_ptr, g_ptr, beta_ptr, A_ptr, T, H: tl.constexpr, K: tl.constexpr, BT: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Products of a chunk's keys with each other, decayed, scaled and strictly lower."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    bos = i_b * T
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    p_beta = tl.make_block_ptr(beta_ptr + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    b_beta = tl.load(p_beta, boundary_check=(0,))
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_k = tl.make_block_ptr(
            k_ptr + (bos * H + i_h) * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_A += tl.dot(b_k, tl.trans(b_k))
    p_g = tl.make_block_ptr(g_ptr + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    b_g = tl.load(p_g, boundary_check=(0,))
    lower = (o_t[:, None] > o_t[None, :]) & (m_t[:, None] & m_t[None, :])
    b_A *= tl.exp(tl.where(lower, b_g[:, None] - b_g[None, :], 0.0)) * b_beta[:, None]
    b_A = tl.where(lower, b_A, 0.0)
    p_A = tl.make_block_ptr(
        A_ptr + (bos * H + i_h) * BT, (T, BT), (BT * H, 1), (i_t * BT, 0), (BT, BT), (1, 0)
    )
    tl.store(p_A, b_A.to(p_A.dtype.element_ty), boundary_check=(0, 1))


@jit
def chunk_states(
    k_ptr, v_ptr, g_ptr, h_ptr, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """The state before each chunk is stored in the loop; values decay to the chunk's end."""
    i_k, i_v, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)
    k_ptr += (i_b * T * H + i_h) * K
    v_ptr += (i_b * T * H + i_h) * V
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    for i_t in range(NT):
        p_h = tl.make_block_ptr(
            h_ptr + ((i_b * NT + i_t) * H + i_h).to(tl.int64) * K * V, (K, V), (V, 1),
            (i_k * BK, i_v * BV), (BK, BV), (1, 0),
        )  # fmt: skip
        tl.store(p_h, b_h.to(p_h.dtype.element_ty), boundary_check=(0, 1))
        p_k = tl.make_block_ptr(k_ptr, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_v = tl.make_block_ptr(v_ptr, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        last = min((i_t + 1) * BT, T) - 1
        b_g_last = tl.load(g_ptr + i_b * T * H + last * H + i_h)
        o_t = i_t * BT + tl.arange(0, BT)
        b_g = tl.load(g_ptr + i_b * T * H + o_t * H + i_h, mask=o_t < T, other=0.0)
        b_h *= tl.exp(b_g_last)
        b_v = (b_v * tl.exp(b_g_last - b_g)[:, None]).to(b_k.dtype)
        b_h += tl.dot(b_k, b_v)


@jit
def token_gated_delta(
    q_ptr, k_ptr, v_ptr, g_ptr, beta_ptr, o_ptr, h0_ptr, ht_ptr, scale, T, H: tl.constexpr,
    K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """The gated delta rule a token at a time, with a first and a last state and masks."""
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_k = tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    mask_k, mask_v = o_k < K, o_v < V
    mask_h = mask_k[:, None] & mask_v[None, :]
    p_q = q_ptr + (i_b * T * H + i_h) * K + o_k
    p_k = k_ptr + (i_b * T * H + i_h) * K + o_k
    p_v = v_ptr + (i_b * T * H + i_h) * V + o_v
    p_o = o_ptr + (i_b * T * H + i_h) * V + o_v
    p_g = g_ptr + i_b * T * H + i_h
    p_beta = beta_ptr + i_b * T * H + i_h
    at_h = i_bh * K * V + o_k[:, None] * V + o_v[None, :]
    b_h = tl.load(h0_ptr + at_h, mask=mask_h, other=0).to(tl.float32)
    for _ in range(0, T):
        b_q = tl.load(p_q, mask=mask_k, other=0).to(tl.float32) * scale
        b_k = tl.load(p_k, mask=mask_k, other=0).to(tl.float32)
        b_v = tl.load(p_v, mask=mask_v, other=0).to(tl.float32)
        b_g = tl.load(p_g).to(tl.float32)
        b_beta = tl.load(p_beta).to(tl.float32)
        b_h *= tl.exp(b_g)
        b_v = b_beta * (b_v - tl.sum(b_h * b_k[:, None], 0))
        b_h += b_k[:, None] * b_v[None, :]
        b_o = tl.sum(b_h * b_q[:, None], 0)
        tl.store(p_o, b_o.to(p_o.dtype.element_ty), mask=mask_v)
        p_q += H * K
        p_k += H * K
        p_v += H * V
        p_o += H * V
        p_g += H
        p_beta += H
    tl.store(ht_ptr + at_h, b_h.to(ht_ptr.dtype.element_ty), mask=mask_h)


@jit
def token_two_tiles(
    q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, scale, T, HALF: tl.constexpr, V: tl.constexpr,
    BV: tl.constexpr,
):  # fmt: skip
    """Gates for each key; the state of all keys is two tiles."""
    part, head = tl.program_id(0), tl.program_id(1)
    K: tl.constexpr = 2 * HALF
    lo, hi = tl.arange(0, HALF), HALF + tl.arange(0, HALF)
    vs = part * BV + tl.arange(0, BV)
    state_lo = tl.zeros([BV, HALF], dtype=tl.float32)
    state_hi = tl.zeros([BV, HALF], dtype=tl.float32)
    for t in range(T):
        base = (head * T + t) * K
        v = tl.load(v_ptr + (head * T + t) * V + vs).to(tl.float32)
        k_lo = tl.load(k_ptr + base + lo).to(tl.float32)
        k_hi = tl.load(k_ptr + base + hi).to(tl.float32)
        g_lo = tl.load(g_ptr + base + lo).to(tl.float32)
        g_hi = tl.load(g_ptr + base + hi).to(tl.float32)
        q_lo = tl.load(q_ptr + base + lo).to(tl.float32) * scale
        q_hi = tl.load(q_ptr + base + hi).to(tl.float32) * scale
        state_lo = state_lo * tl.exp(g_lo)[None, :] + k_lo[None, :] * v[:, None]
        state_hi = state_hi * tl.exp(g_hi)[None, :] + k_hi[None, :] * v[:, None]
        o = tl.sum(state_lo * q_lo[None, :], axis=1) + tl.sum(state_hi * q_hi[None, :], axis=1)
        tl.store(o_ptr + (head * T + t) * V + vs, o.to(o_ptr.dtype.element_ty))


@jit
def token_backward(
    q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, dk_ptr, dv_ptr, scale, T, K: tl.constexpr,
    V: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Gradients of linear attention: one loop forwards for dq, one backwards for dk and dv's parts."""
    i_k, i_bh = tl.program_id(0), tl.program_id(1)
    o_k = i_k * BK + tl.arange(0, BK)
    o_v = tl.arange(0, V)
    p_q = q_ptr + i_bh * T * K + o_k
    p_k = k_ptr + i_bh * T * K + o_k
    p_v = v_ptr + i_bh * T * V + o_v
    p_do = do_ptr + i_bh * T * V + o_v
    p_dq = dq_ptr + i_bh * T * K + o_k
    b_h = tl.zeros([BK, V], dtype=tl.float32)
    for _ in range(0, T):
        b_k = tl.load(p_k).to(tl.float32)
        b_v = tl.load(p_v).to(tl.float32)
        b_do = tl.load(p_do).to(tl.float32)
        b_h += b_k[:, None] * b_v[None, :]
        tl.store(p_dq, (tl.sum(b_h * b_do[None, :], 1) * scale).to(p_dq.dtype.element_ty))
        p_k += K
        p_v += V
        p_do += V
        p_dq += K
    p_q += (T - 1) * K
    p_dk = dk_ptr + (i_bh * T + T - 1) * K + o_k
    p_dv = dv_ptr + ((tl.num_programs(1) * i_k + i_bh) * T + T - 1) * V + o_v
    b_dh = tl.zeros([BK, V], dtype=tl.float32)
    for _ in range(T):
        p_k -= K
        p_v -= V
        p_do -= V
        b_q = tl.load(p_q).to(tl.float32) * scale
        b_k = tl.load(p_k).to(tl.float32)
        b_v = tl.load(p_v).to(tl.float32)
        b_do = tl.load(p_do).to(tl.float32)
        b_dh += b_q[:, None] * b_do[None, :]
        tl.store(p_dk, tl.sum(b_dh * b_v[None, :], 1).to(p_dk.dtype.element_ty))
        tl.store(p_dv, tl.sum(b_dh * b_k[:, None], 0))
        p_q -= K
        p_dk -= K
        p_dv -= V


@jit
def token_scan(
    x_ptr, dt_ptr, A_ptr, B_ptr, C_ptr, D_ptr, bias_ptr, y_ptr, L, dim, N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """A selective scan: softplus of the step, a state of N numbers for each channel."""
    batch = tl.program_id(0)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    n = tl.arange(0, N)
    ok = d < dim
    A = -tl.exp(tl.load(A_ptr + d[:, None] * N + n[None, :], mask=ok[:, None], other=0.0))
    skip = tl.load(D_ptr + d, mask=ok, other=0.0)
    bias = tl.load(bias_ptr + d, mask=ok, other=0.0)
    h = tl.zeros((BLOCK_D, N), dtype=tl.float32)
    for t in range(0, L):
        at = (batch * L + t) * dim + d
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptr + at, mask=ok, other=0.0).to(tl.float32) + bias
        dt = tl.where(dt <= 20.0, tl.log(1.0 + tl.exp(dt)), dt)
        B = tl.load(B_ptr + (batch * L + t) * N + n).to(tl.float32)
        C = tl.load(C_ptr + (batch * L + t) * N + n).to(tl.float32)
        h = h * tl.exp(dt[:, None] * A) + (dt * x)[:, None] * B[None, :]
        y = tl.sum(h * C[None, :], axis=1) + skip * x
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=ok)


@jit
def decode_paged_split(
    q_ptr, k_ptr, v_ptr, sm_scale, indptr_ptr, indices_ptr, out_ptr, lse_ptr, stride_qb, stride_kt,
    HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_H: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """First stage: the heads of a group share gathered keys and values of a part of the tokens."""
    batch, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    offs_h = tl.arange(0, BLOCK_H)
    head = kv_head * GROUP + offs_h
    mask_h = offs_h < GROUP
    offs_d = tl.arange(0, D)
    start = tl.load(indptr_ptr + batch)
    length = tl.load(indptr_ptr + batch + 1) - start
    q_at = q_ptr + batch * stride_qb + head[:, None] * D + offs_d[None, :]
    q = tl.load(q_at, mask=mask_h[:, None], other=0.0)
    per_split = tl.cdiv(length, SPLITS)
    begin = per_split * split
    end = tl.minimum(begin + per_split, length)
    e_max = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    e_sum = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, D], dtype=tl.float32)
    if end > begin:
        for n in range(begin, end, BLOCK_N):
            offs_n = n + tl.arange(0, BLOCK_N)
            place = tl.load(indices_ptr + start + offs_n, mask=offs_n < end, other=0)
            at = place[None, :] * stride_kt + kv_head * D + offs_d[:, None]
            k = tl.load(k_ptr + at, mask=offs_n[None, :] < end, other=0.0)
            qk = tl.dot(q, k.to(q.dtype)) * sm_scale
            qk = tl.where(mask_h[:, None] & (offs_n[None, :] < end), qk, float("-inf"))
            at = place[:, None] * stride_kt + kv_head * D + offs_d[None, :]
            v = tl.load(v_ptr + at, mask=offs_n[:, None] < end, other=0.0)
            n_max = tl.maximum(tl.max(qk, 1), e_max)
            n_max = tl.where(mask_h, n_max, 0.0)
            rescale = tl.exp(e_max - n_max)
            p = tl.exp(qk - n_max[:, None])
            acc = acc * rescale[:, None] + tl.dot(p.to(v.dtype), v)
            e_sum = e_sum * rescale + tl.sum(p, 1)
            e_max = n_max
        row = (batch * HEADS + head) * SPLITS + split
        out = acc / e_sum[:, None]
        tl.store(out_ptr + row[:, None] * D + offs_d[None, :], out, mask=mask_h[:, None])
        tl.store(lse_ptr + row, e_max + tl.log(e_sum), mask=mask_h)


@jit
def decode_merge(
    part_ptr, lse_ptr, o_ptr, indptr_ptr, HEADS: tl.constexpr, D: tl.constexpr,
    BLOCK_D: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Second stage: parts without tokens are left out by a conditional in the loop."""
    batch, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(indptr_ptr + batch + 1) - tl.load(indptr_ptr + batch)
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < D
    row = (batch * HEADS + head) * SPLITS
    e_sum = 0.0
    e_max = -float("inf")
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for split in range(0, SPLITS):
        per_split = tl.cdiv(length, SPLITS)
        begin = per_split * split
        end = tl.minimum(begin + per_split, length)
        if end > begin:
            tv = tl.load(part_ptr + (row + split) * D + offs_d, mask=mask_d, other=0.0)
            tlogic = tl.load(lse_ptr + row + split)
            n_max = tl.maximum(tlogic, e_max)
            old = tl.exp(e_max - n_max)
            new = tl.exp(tlogic - n_max)
            acc = acc * old + new * tv
            e_sum = e_sum * old + new
            e_max = n_max
    o = acc / e_sum
    tl.store(o_ptr + (batch * HEADS + head) * D + offs_d, o.to(o_ptr.dtype.element_ty), mask=mask_d)


@jit
def decode_merge_vector(
    part_ptr, max_ptr, sum_ptr, o_ptr, lengths_ptr, HEADS: tl.constexpr, D: tl.constexpr,
    SEGMENTS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Second stage at once: segments are one dimension of a tile, with maxima and sums beside."""
    token, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths_ptr + token)
    per_segment = tl.cdiv(length, SEGMENTS * TILE)
    active = tl.cdiv(length, per_segment * TILE)
    seg = tl.arange(0, SEGMENTS)
    mask = seg < active
    row = (token * HEADS + head).to(tl.int64) * SEGMENTS
    maxima = tl.load(max_ptr + row + seg, mask=mask, other=float("-inf"))
    top = tl.max(maxima)
    weight = tl.exp(maxima - top)
    total = tl.sum(tl.load(sum_ptr + row + seg, mask=mask, other=0.0) * weight)
    d = tl.arange(0, D)
    parts = tl.load(part_ptr + (row + seg[:, None]) * D + d[None, :], mask=mask[:, None], other=0.0)
    merged = tl.sum(parts * weight[:, None], axis=0)
    out = tl.where(total == 0.0, 0.0, merged / total)
    tl.store(o_ptr + (token * HEADS + head) * D + d, out.to(o_ptr.dtype.element_ty))


@jit
def paged_attention(
    q_ptr, k_cache, v_cache, tables_ptr, lengths_ptr, out_ptr, scale, max_blocks,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, PADDED: tl.constexpr, D: tl.constexpr,
    PAGE: tl.constexpr,
):  # fmt: skip
    """A sequence and a key head a program; a page of the table an iteration."""
    seq, kv = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths_ptr + seq)
    g, d, s = tl.arange(0, PADDED), tl.arange(0, D), tl.arange(0, PAGE)
    q_at = (seq * KV_HEADS + kv) * GROUP * D + g[:, None] * D + d[None, :]
    q = tl.load(q_ptr + q_at, mask=g[:, None] < GROUP, other=0.0)
    q = (q * scale).to(q.dtype)
    m_i = tl.full([PADDED], float("-inf"), tl.float32)
    l_i = tl.zeros([PADDED], tl.float32)
    acc = tl.zeros([PADDED, D], tl.float32)
    for i in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(tables_ptr + seq * max_blocks + i).to(tl.int64)
        at = ((page * PAGE + s) * KV_HEADS + kv) * D
        live = i * PAGE + s < length
        k = tl.load(k_cache + at[:, None] + d[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_cache + at[:, None] + d[None, :], mask=live[:, None], other=0.0)
        qk = tl.dot(q, tl.trans(k))
        qk = tl.where(live[None, :], qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp2((qk - m_new[:, None]) * 1.44269504)
        alpha = tl.exp2((m_i - m_new) * 1.44269504)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(out_ptr + q_at, acc.to(out_ptr.dtype.element_ty), mask=g[:, None] < GROUP)


@jit
def block_sparse_attention(
    Q, K, V, O, counts_ptr, columns_ptr, sm_scale, T, most, stride_h, D: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """A row of blocks has a list of the blocks it attends to; the diagonal one is masked."""
    start, head = tl.program_id(0), tl.program_id(1)
    offs_m = start * BLOCK + tl.arange(0, BLOCK)
    offs_n = tl.arange(0, BLOCK)
    offs_d = tl.arange(0, D)
    Q += head * stride_h
    K += head * stride_h
    V += head * stride_h
    q = tl.load(Q + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < T, other=0.0)
    count = tl.load(counts_ptr + start)
    m_i = tl.zeros([BLOCK], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK], dtype=tl.float32)
    acc = tl.zeros([BLOCK, D], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504
    for i in range(count):
        first = tl.load(columns_ptr + start * most + i) * BLOCK
        cols = first + offs_n
        k = tl.load(K + cols[None, :] * D + offs_d[:, None], mask=cols[None, :] < T, other=0.0)
        qk = tl.dot(q, k) * qk_scale
        qk = tl.where(offs_m[:, None] >= cols[None, :], qk, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(V + cols[:, None] * D + offs_d[None, :], mask=cols[:, None] < T, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_ij
    out = (acc / l_i[:, None]).to(O.dtype.element_ty)
    o_at = O + head * stride_h + offs_m[:, None] * D + offs_d[None, :]
    tl.store(o_at, out, mask=offs_m[:, None] < T)


@jit
def short_attention_bias(
    q_ptr, k_ptr, v_ptr, bias_ptr, o_ptr, lengths_ptr, scale, T, stride_b, stride_h, stride_t,
    stride_bias_h, H: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """An encoder's attention: a bias for each head, lengths for each sequence, plain pointers."""
    pid_m, pid_bh = tl.program_id(0), tl.program_id(1)
    b, h = pid_bh // H, pid_bh % H
    length = tl.load(lengths_ptr + b)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    base = b * stride_b + h * stride_h
    q_at = base + rows[:, None] * stride_t + d[None, :]
    q = tl.load(q_ptr + q_at, mask=rows[:, None] < T, other=0.0)
    best = tl.full((BLOCK_M,), -1e30, dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        at = base + cols[:, None] * stride_t + d[None, :]
        k = tl.load(k_ptr + at, mask=cols[:, None] < length, other=0.0)
        v = tl.load(v_ptr + at, mask=cols[:, None] < length, other=0.0)
        bias_at = bias_ptr + h * stride_bias_h + rows[:, None] * T + cols[None, :]
        seen = (rows[:, None] < T) & (cols[None, :] < length)
        scores = tl.dot(q, k.T) * scale + tl.load(bias_at, mask=seen, other=-1e30).to(tl.float32)
        new = tl.maximum(best, tl.max(scores, axis=1))
        p = tl.where(seen, tl.exp(scores - new[:, None]), 0.0)
        fix = tl.exp(best - new)
        total = total * fix + tl.sum(p, axis=1)
        acc = acc * fix[:, None] + tl.dot(p.to(v.dtype), v)
        best = new
    out = acc / tl.maximum(total, 1e-20)[:, None]
    tl.store(o_ptr + q_at, out.to(o_ptr.dtype.element_ty), mask=rows[:, None] < T)


@jit
def causal_conv(
    x_ptr, w_ptr, b_ptr, y_ptr, T, dim, W: tl.constexpr, BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """A short filter for each channel over the last W tokens, and SiLU."""
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    base = tl.program_id(2).to(tl.int64) * T * dim
    ok = (t < T)[:, None] & (d < dim)[None, :]
    acc = tl.zeros((BLOCK_T, BLOCK_D), dtype=tl.float32)
    acc += tl.load(b_ptr + d, mask=d < dim, other=0.0).to(tl.float32)[None, :]
    for i in tl.static_range(0, W):
        before = t - (W - 1 - i)
        w = tl.load(w_ptr + d * W + i, mask=d < dim, other=0.0).to(tl.float32)
        x = tl.load(
            x_ptr + base + before[:, None] * dim + d[None, :], mask=ok & (before >= 0)[:, None],
            other=0.0,
        )  # fmt: skip
        acc += x.to(tl.float32) * w[None, :]
    acc = acc * tl.sigmoid(acc)
    tl.store(y_ptr + base + t[:, None] * dim + d[None, :], acc.to(y_ptr.dtype.element_ty), mask=ok)
