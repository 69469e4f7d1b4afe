# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `fresh` of public_kernels.py that go over tokens: recurrences, chunks, attention and
its gradients, decoding. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def token_low_rank(
    r_ptr, w_ptr, k_ptr, v_ptr, a_ptr, b_ptr, o_ptr, T, H, D: tl.constexpr, BV: tl.constexpr
):  # fmt: skip
    """A decay and a change of rank 1 each token: the state times one vector is added along another."""
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_d, o_v = tl.arange(0, D), i_v * BV + tl.arange(0, BV)
    at = (i_b * T * H + i_h) * D
    b_s = tl.zeros((BV, D), dtype=tl.float32)
    for _ in range(T):
        b_w = tl.load(w_ptr + at + o_d).to(tl.float32)
        b_a = tl.load(a_ptr + at + o_d).to(tl.float32)
        b_b = tl.load(b_ptr + at + o_d).to(tl.float32)
        b_k = tl.load(k_ptr + at + o_d).to(tl.float32)
        b_r = tl.load(r_ptr + at + o_d).to(tl.float32)
        b_v = tl.load(v_ptr + at + o_v).to(tl.float32)
        b_sa = tl.sum(b_s * b_a[None, :], axis=1)
        b_s = (
            b_s * tl.exp(-tl.exp(b_w))[None, :]
            + b_sa[:, None] * b_b[None, :]
            + b_v[:, None] * b_k[None, :]
        )
        tl.store(o_ptr + at + o_v, tl.sum(b_s * b_r[None, :], axis=1).to(o_ptr.dtype.element_ty))
        at += H * D


@jit
def token_stable_gates(z_ptr, i_ptr, f_ptr, o_ptr, y_ptr, T, D, BLOCK: tl.constexpr):
    """Exponential gates: three vectors as state, one of which is the largest exponent so far."""
    d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1) * T * D + d
    mask = d < D
    c = tl.zeros((BLOCK,), tl.float32)
    n = tl.zeros((BLOCK,), tl.float32)
    m = tl.full((BLOCK,), -1e30, tl.float32)
    for t in tl.range(0, T, num_stages=2):
        z = tl.load(z_ptr + base + t * D, mask=mask, other=0.0).to(tl.float32)
        i = tl.load(i_ptr + base + t * D, mask=mask, other=0.0).to(tl.float32)
        f = tl.load(f_ptr + base + t * D, mask=mask, other=0.0).to(tl.float32)
        o = tl.load(o_ptr + base + t * D, mask=mask, other=0.0).to(tl.float32)
        log_f = -tl.log(1.0 + tl.exp(-f))
        new = tl.maximum(log_f + m, i)
        keep, take = tl.exp(log_f + m - new), tl.exp(i - new)
        c = keep * c + take * (2.0 * tl.sigmoid(2.0 * z) - 1.0)
        n = keep * n + take
        m = new
        y = tl.sigmoid(o) * c / n
        tl.store(y_ptr + base + t * D, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def chunk_delta_states(
    k_ptr, w_ptr, u_ptr, g_ptr, h_ptr, v_ptr, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr,
    BV: tl.constexpr,
):  # fmt: skip
    """The delta rule by chunks: each stores its state and its corrected values before it adds to it."""
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    chunks = tl.cdiv(T, BT)
    o_t = tl.arange(0, BT)
    b_h = tl.zeros([K, BV], dtype=tl.float32)
    for i_t in range(chunks):
        p_h = tl.make_block_ptr(
            h_ptr + (i_bh * chunks + i_t) * K * V, (K, V), (V, 1), (0, i_v * BV), (K, BV), (1, 0)
        )
        tl.store(p_h, b_h.to(p_h.dtype.element_ty), boundary_check=(0, 1))
        p_w = tl.make_block_ptr(
            w_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, 0), (BT, K), (1, 0)
        )
        p_k = tl.make_block_ptr(
            k_ptr + i_bh * T * K, (K, T), (1, K), (0, i_t * BT), (K, BT), (0, 1)
        )
        p_u = tl.make_block_ptr(
            u_ptr + i_bh * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        p_v = tl.make_block_ptr(
            v_ptr + i_bh * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        b_w = tl.load(p_w, boundary_check=(0, 1))
        b_v = tl.load(p_u, boundary_check=(0, 1)).to(tl.float32) - tl.dot(b_w, b_h.to(b_w.dtype))
        tl.store(p_v, b_v.to(p_v.dtype.element_ty), boundary_check=(0, 1))
        last = tl.minimum((i_t + 1) * BT, T) - 1
        g_last = tl.load(g_ptr + i_bh * T + last)
        b_g = tl.load(g_ptr + i_bh * T + i_t * BT + o_t, mask=i_t * BT + o_t < T, other=0.0)
        b_v = tl.where((i_t * BT + o_t < T)[:, None], b_v * tl.exp(g_last - b_g)[:, None], 0.0)
        b_h *= tl.exp(g_last)
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_h += tl.dot(b_k, b_v.to(b_k.dtype))


@jit
def chunk_gradients(
    q_ptr, k_ptr, v_ptr, do_ptr, h_ptr, dh_ptr, dq_ptr, dk_ptr, scale, T, K: tl.constexpr,
    V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """Gradients of a chunk's queries and keys: a loop over values has five products."""
    i_k, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    chunk = i_bh * tl.cdiv(T, BT) + i_t
    b_dq = tl.zeros([BT, BK], dtype=tl.float32)
    b_dk = tl.zeros([BT, BK], dtype=tl.float32)
    b_ds = tl.zeros([BT, BT], dtype=tl.float32)
    for i_v in range(tl.cdiv(V, BV)):
        p_v = tl.make_block_ptr(
            v_ptr + i_bh * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        p_do = tl.make_block_ptr(
            do_ptr + i_bh * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        p_h = tl.make_block_ptr(
            h_ptr + chunk * K * V, (V, K), (1, V), (i_v * BV, i_k * BK), (BV, BK), (0, 1)
        )
        p_dh = tl.make_block_ptr(
            dh_ptr + chunk * K * V, (V, K), (1, V), (i_v * BV, i_k * BK), (BV, BK), (0, 1)
        )
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_do = tl.load(p_do, boundary_check=(0, 1))
        b_ds += tl.dot(b_do, tl.trans(b_v))
        b_dq += tl.dot(b_do, tl.load(p_h, boundary_check=(0, 1)))
        b_dk += tl.dot(b_v, tl.load(p_dh, boundary_check=(0, 1)))
    o_t = tl.arange(0, BT)
    b_ds = tl.where(o_t[:, None] >= o_t[None, :], b_ds * scale, 0.0)
    p_q = tl.make_block_ptr(
        q_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
    )
    p_k = tl.make_block_ptr(
        k_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
    )
    p_dq = tl.make_block_ptr(
        dq_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
    )
    p_dk = tl.make_block_ptr(
        dk_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
    )
    b_q = tl.load(p_q, boundary_check=(0, 1))
    b_k = tl.load(p_k, boundary_check=(0, 1))
    b_ds = b_ds.to(b_k.dtype)
    b_dq = b_dq * scale + tl.dot(b_ds, b_k)
    b_dk += tl.dot(tl.trans(b_ds), b_q)
    tl.store(p_dq, b_dq.to(p_dq.dtype.element_ty), boundary_check=(0, 1))
    tl.store(p_dk, b_dk.to(p_dk.dtype.element_ty), boundary_check=(0, 1))


@jit
def chunk_log_decay(
    a_ptr, dt_ptr, g_ptr, total_ptr, T, H: tl.constexpr, BT: tl.constexpr, BH: tl.constexpr
):  # fmt: skip
    """Sums of logarithms of decays of each chunk, token by token: a carried vector and a stored row."""
    i_c, i_b = tl.program_id(0), tl.program_id(1)
    h = tl.program_id(2) * BH + tl.arange(0, BH)
    a = -tl.exp(tl.load(a_ptr + h, mask=h < H, other=0.0))
    total = tl.zeros((BH,), tl.float32)
    at = (i_b * T + i_c * BT) * H + h
    for t in range(i_c * BT, min(i_c * BT + BT, T)):
        dt = tl.load(dt_ptr + at, mask=h < H, other=0.0).to(tl.float32)
        total += a * tl.where(dt > 20.0, dt, tl.log(1.0 + tl.exp(dt)))
        tl.store(g_ptr + at, total, mask=h < H)
        at += H
    tl.store(total_ptr + (i_b * tl.num_programs(0) + i_c) * H + h, total, mask=h < H)


@jit
def merge_inverses(a_ptr, inv_ptr, T, B: tl.constexpr):
    """Inverses of two diagonal blocks are known: the block below is a product of three, with a minus."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    a_ptr += i_bh * T * 2 * B
    inv_ptr += i_bh * T * 2 * B
    first, second = i_t * 2 * B, i_t * 2 * B + B
    p_a = tl.make_block_ptr(a_ptr, (T, 2 * B), (2 * B, 1), (second, 0), (B, B), (1, 0))
    p_1 = tl.make_block_ptr(inv_ptr, (T, 2 * B), (2 * B, 1), (first, 0), (B, B), (1, 0))
    p_2 = tl.make_block_ptr(inv_ptr, (T, 2 * B), (2 * B, 1), (second, B), (B, B), (1, 0))
    p_o = tl.make_block_ptr(inv_ptr, (T, 2 * B), (2 * B, 1), (second, 0), (B, B), (1, 0))
    b_a = tl.load(p_a, boundary_check=(0, 1)).to(tl.float32)
    b_1 = tl.load(p_1, boundary_check=(0, 1)).to(tl.float32)
    b_2 = tl.load(p_2, boundary_check=(0, 1)).to(tl.float32)
    b_o = -tl.dot(tl.dot(b_2, b_a, input_precision="ieee"), b_1, input_precision="ieee")
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@jit
def retention_parallel(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, T, H, D: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr
):  # fmt: skip
    """Attention without a softmax, whose scores decay: blocks before, then those of the diagonal."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    b_log = tl.log2(1 - tl.exp2(-5.0 - (i_bh % H).to(tl.float32)))
    p_q = tl.make_block_ptr(q_ptr + i_bh * T * D, (T, D), (D, 1), (i_t * BT, 0), (BT, D), (1, 0))
    b_q = tl.load(p_q, boundary_check=(0, 1))
    b_q = (b_q * scale).to(b_q.dtype)
    o_q, o_s = tl.arange(0, BT), tl.arange(0, BS)
    b_o = tl.zeros([BT, D], dtype=tl.float32)
    to_end = tl.exp2((BS - o_s) * b_log)
    for start in range(0, i_t * BT, BS):
        p_k = tl.make_block_ptr(k_ptr + i_bh * T * D, (D, T), (1, D), (0, start), (D, BS), (0, 1))
        p_v = tl.make_block_ptr(v_ptr + i_bh * T * D, (T, D), (D, 1), (start, 0), (BS, D), (1, 0))
        b_s = tl.dot(b_q, tl.load(p_k, boundary_check=(0, 1))) * to_end[None, :]
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_o = b_o * tl.exp2(b_log * BS) + tl.dot(b_s.to(b_v.dtype), b_v)
    b_o *= tl.exp2(o_q * b_log)[:, None]
    for start in range(i_t * BT, min((i_t + 1) * BT, T), BS):
        p_k = tl.make_block_ptr(k_ptr + i_bh * T * D, (D, T), (1, D), (0, start), (D, BS), (0, 1))
        p_v = tl.make_block_ptr(v_ptr + i_bh * T * D, (T, D), (D, 1), (start, 0), (BS, D), (1, 0))
        away = (i_t * BT + o_q)[:, None] - (start + o_s)[None, :]
        b_s = tl.dot(b_q, tl.load(p_k, boundary_check=(0, 1)))
        b_s = tl.where(away >= 0, b_s * tl.exp2(away * b_log), 0.0)
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_o += tl.dot(b_s.to(b_v.dtype), b_v)
    p_o = tl.make_block_ptr(o_ptr + i_bh * T * D, (T, D), (D, 1), (i_t * BT, 0), (BT, D), (1, 0))
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@jit
def attention_sink(
    q_ptr, k_ptr, v_ptr, sink_ptr, o_ptr, lse_ptr, scale, T, H, GROUP: tl.constexpr, D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Causal attention, a learned logit of each head in the sum; plain pointers, keys of some heads."""
    i_t, i_h, i_b = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows, d, lanes = i_t * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    kv_head = i_b * (H // GROUP) + i_h // GROUP
    q_at = ((i_b * H + i_h) * T + rows)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + q_at, mask=(rows < T)[:, None], other=0.0)
    p_k = k_ptr + kv_head * T * D + lanes[None, :] * D + d[:, None]
    p_v = v_ptr + kv_head * T * D + lanes[:, None] * D + d[None, :]
    m = tl.zeros((BM,), tl.float32) + tl.load(sink_ptr + i_h).to(tl.float32) * 1.44269504
    l = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, min(i_t * BM + BM, T), BN):
        cols = start + lanes
        k = tl.load(p_k, mask=(cols < T)[None, :], other=0.0)
        s = tl.dot(q, k) * (scale * 1.44269504)
        s = tl.where(cols[None, :] <= rows[:, None], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(m - new)
        v = tl.load(p_v, mask=(cols < T)[:, None], other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        l = l * alpha + tl.sum(p, 1)
        m = new
        p_k += BN * D
        p_v += BN * D
    tl.store(lse_ptr + (i_b * H + i_h) * T + rows, m + tl.log2(l), mask=rows < T)
    tl.store(o_ptr + q_at, (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=(rows < T)[:, None])


@jit
def attention_delta(o_ptr, do_ptr, delta_ptr, T, H, D: tl.constexpr, BM: tl.constexpr):
    """Before an attention's gradients: the sum of products of a row; tokens by heads become heads by tokens."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    t, d = i_t * BM + tl.arange(0, BM), tl.arange(0, D)
    at = (((i_bh // H) * T + t) * H + i_bh % H)[:, None] * D + d[None, :]
    o = tl.load(o_ptr + at, mask=(t < T)[:, None], other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=(t < T)[:, None], other=0.0).to(tl.float32)
    tl.store(delta_ptr + i_bh * T + t, tl.sum(o * do, axis=1), mask=t < T)


@jit
def attention_dq(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, T, D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Gradients of queries: the loop over keys finds the probabilities again."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    rows, d = i_t * BM + tl.arange(0, BM), tl.arange(0, D)
    live = (rows < T)[:, None]
    at = (i_bh * T + rows)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=live, other=0.0)
    do = tl.load(do_ptr + at, mask=live, other=0.0)
    lse = tl.load(lse_ptr + i_bh * T + rows, mask=rows < T, other=0.0)
    delta = tl.load(delta_ptr + i_bh * T + rows, mask=rows < T, other=0.0)
    dq = tl.zeros((BM, D), tl.float32)
    for start in range(0, (i_t + 1) * BM, BN):
        cols = start + tl.arange(0, BN)
        k_at = (i_bh * T + cols)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + k_at, mask=(cols < T)[:, None], other=0.0)
        v = tl.load(v_ptr + k_at, mask=(cols < T)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        p = tl.where(rows[:, None] >= cols[None, :], tl.exp(s - lse[:, None]), 0.0)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty), mask=live)


@jit
def attention_dkv(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, T, D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Gradients of keys and values: a loop over queries from the diagonal on, with transposed scores."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    cols, d = i_t * BN + tl.arange(0, BN), tl.arange(0, D)
    at = (i_bh * T + cols)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at, mask=(cols < T)[:, None], other=0.0)
    v = tl.load(v_ptr + at, mask=(cols < T)[:, None], other=0.0)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for start in range(i_t * BN // BM * BM, T, BM):
        rows = start + tl.arange(0, BM)
        q_at = (i_bh * T + rows)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + q_at, mask=(rows < T)[:, None], other=0.0)
        do = tl.load(do_ptr + q_at, mask=(rows < T)[:, None], other=0.0)
        lse = tl.load(lse_ptr + i_bh * T + rows, mask=rows < T, other=float("inf"))
        delta = tl.load(delta_ptr + i_bh * T + rows, mask=rows < T, other=0.0)
        p = tl.exp(tl.dot(k, tl.trans(q)) * scale - lse[None, :])
        p = tl.where(rows[None, :] >= cols[:, None], p, 0.0)
        dv += tl.dot(p.to(do.dtype), do)
        ds = p * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk += tl.dot(ds.to(q.dtype), q)
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty), mask=(cols < T)[:, None])
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=(cols < T)[:, None])


@jit
def decode_int8_cache(
    q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, lengths_ptr, o_ptr, lse_ptr, scale, S, H: tl.constexpr,
    G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """First stage: keys and values of int8 with a scale for each token; heads of a group share them."""
    i_b, i_h, i_s = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    g, d = tl.arange(0, 16), tl.arange(0, D)
    length = tl.load(lengths_ptr + i_b)
    each = tl.cdiv(tl.cdiv(length, BN), SPLITS) * BN
    head = i_h * G + g
    q = tl.load(
        q_ptr + (i_b * H * G + head)[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0
    )
    m = tl.full((16,), -1e30, tl.float32)
    l = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for start in range(i_s * each, min(i_s * each + each, length), BN):
        t = start + tl.arange(0, BN)
        live = t < length
        at = (i_b * S + t) * H + i_h
        k = tl.load(k_ptr + at[None, :] * D + d[:, None], mask=live[None, :], other=0)
        k_scale = tl.load(ks_ptr + at, mask=live, other=0.0)
        s = tl.dot(q, k.to(q.dtype)) * (k_scale * scale)[None, :]
        s = tl.where(live[None, :], s, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.where(live[None, :], tl.exp(s - new[:, None]), 0.0)
        alpha = tl.exp(m - new)
        l = l * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + at[:, None] * D + d[None, :], mask=live[:, None], other=0)
        p *= tl.load(vs_ptr + at, mask=live, other=0.0)[None, :]
        acc = acc * alpha[:, None] + tl.dot(p.to(q.dtype), v.to(q.dtype))
        m = new
    out = (i_b * H * G + head) * SPLITS + i_s
    total = tl.where(l > 0, l, 1.0)
    tl.store(o_ptr + out[:, None] * D + d[None, :], acc / total[:, None], mask=(g < G)[:, None])
    tl.store(lse_ptr + out, tl.where(l > 0, m + tl.log(total), float("-inf")), mask=g < G)


@jit
def merge_head_splits(o_ptr, lse_ptr, out_ptr, parts_ptr, H, S, D: tl.constexpr, BH: tl.constexpr):
    """Second stage for some heads at once: a `while` over as many parts as a sequence has."""
    i_b = tl.program_id(0)
    h, d = tl.program_id(1) * BH + tl.arange(0, BH), tl.arange(0, D)
    parts = tl.load(parts_ptr + i_b)
    live = h < H
    m = tl.full((BH,), float("-inf"), tl.float32)
    total = tl.zeros((BH,), tl.float32)
    acc = tl.zeros((BH, D), tl.float32)
    s = 0
    while s < parts:
        at = (i_b * S + s) * H + h
        lse = tl.load(lse_ptr + at, mask=live, other=0.0)
        o = tl.load(o_ptr + at[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
        new = tl.maximum(m, lse)
        old_part, new_part = tl.exp(m - new), tl.exp(lse - new)
        acc = acc * old_part[:, None] + o * new_part[:, None]
        total = total * old_part + new_part
        m = new
        s += 1
    out = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + (i_b * H + h)[:, None] * D + d[None, :], out, mask=live[:, None])


@jit
def selected_blocks(
    q_ptr, k_ptr, v_ptr, ids_ptr, o_ptr, scale, T, COUNT, H: tl.constexpr, G: tl.constexpr,
    D: tl.constexpr, BS: tl.constexpr,
):  # fmt: skip
    """A token a program: its group of queries attends to the blocks that it chose, itself included."""
    i_t, i_h, i_b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    g, d = tl.arange(0, G), tl.arange(0, D)
    q_at = (((i_b * T + i_t) * H + i_h) * G + g)[:, None] * D + d[None, :]
    b_q = tl.load(q_ptr + q_at)
    b_m = tl.full([G], float("-inf"), dtype=tl.float32)
    b_l = tl.zeros([G], dtype=tl.float32)
    b_o = tl.zeros([G, D], dtype=tl.float32)
    for i in range(COUNT):
        start = tl.load(ids_ptr + ((i_b * T + i_t) * H + i_h) * COUNT + i).to(tl.int32) * BS
        if start >= 0 and start <= i_t:
            t = start + tl.arange(0, BS)
            at = ((i_b * T + t) * H + i_h)[:, None] * D + d[None, :]
            b_k = tl.load(k_ptr + at, mask=(t < T)[:, None], other=0.0)
            b_v = tl.load(v_ptr + at, mask=(t < T)[:, None], other=0.0)
            b_s = tl.dot(b_q, tl.trans(b_k)) * scale
            b_s = tl.where((t <= i_t)[None, :], b_s, float("-inf"))
            b_new = tl.maximum(b_m, tl.max(b_s, 1))
            b_r = tl.exp(b_m - b_new)
            b_p = tl.exp(b_s - b_new[:, None])
            b_l = b_l * b_r + tl.sum(b_p, 1)
            b_o = b_o * b_r[:, None] + tl.dot(b_p.to(b_q.dtype), b_v)
            b_m = b_new
    tl.store(o_ptr + q_at, (b_o / b_l[:, None]).to(o_ptr.dtype.element_ty))


@jit
def conv_step(
    x_ptr, state_ptr, slots_ptr, w_ptr, bias_ptr, y_ptr, C, W: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """One token of a short filter: the last numbers of a channel move by one place in a slot."""
    i_b = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    slot = tl.load(slots_ptr + i_b)
    if slot < 0:
        return
    mask = c < C
    state = state_ptr + (slot.to(tl.int64) * C + c) * (W - 1)
    x = tl.load(x_ptr + i_b * C + c, mask=mask, other=0.0).to(tl.float32)
    acc = tl.load(bias_ptr + c, mask=mask, other=0.0).to(tl.float32)
    acc += x * tl.load(w_ptr + c * W + W - 1, mask=mask, other=0.0).to(tl.float32)
    for j in tl.static_range(W - 1):
        old = tl.load(state + j, mask=mask, other=0.0)
        acc += old.to(tl.float32) * tl.load(w_ptr + c * W + j, mask=mask, other=0.0).to(tl.float32)
        if j > 0:
            tl.store(state + j - 1, old, mask=mask)
    tl.store(state + W - 2, x.to(state_ptr.dtype.element_ty), mask=mask)
    y = acc * tl.sigmoid(acc)
    tl.store(y_ptr + i_b * C + c, y.to(y_ptr.dtype.element_ty), mask=mask)
