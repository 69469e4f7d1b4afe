# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `strange` of public_kernels.py that go over tokens: recurrences, scans, chunks,
attention and its gradients, decoding. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def token_delta_walk(
    q_ptr, k_ptr, v_ptr, beta_ptr, h0_ptr, o_ptr, ht_ptr, scale, T, K: tl.constexpr, V: tl.constexpr,
    BV: tl.constexpr,
):  # fmt: skip
    """The delta rule with a first and a last state: keys by values, pointers that walk over tokens."""
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    o_k, o_v = tl.arange(0, K), i_v * BV + tl.arange(0, BV)
    p_q, p_k = q_ptr + i_bh * T * K + o_k, k_ptr + i_bh * T * K + o_k
    p_v, p_o = v_ptr + i_bh * T * V + o_v, o_ptr + i_bh * T * V + o_v
    p_beta = beta_ptr + i_bh * T
    p_h = i_bh * K * V + o_k[:, None] * V + o_v[None, :]
    b_h = tl.load(h0_ptr + p_h).to(tl.float32)
    for _ in range(0, T):
        b_k = tl.load(p_k).to(tl.float32)
        b_v = tl.load(p_v).to(tl.float32)
        b_q = tl.load(p_q).to(tl.float32) * scale
        b_v = (b_v - tl.sum(b_h * b_k[:, None], 0)) * tl.load(p_beta).to(tl.float32)
        b_h += b_k[:, None] * b_v[None, :]
        tl.store(p_o, tl.sum(b_h * b_q[:, None], 0).to(p_o.dtype.element_ty))
        p_q += K
        p_k += K
        p_v += V
        p_o += V
        p_beta += 1
    tl.store(ht_ptr + p_h, b_h)


@jit
def token_complex(
    x_ptr, decay_ptr, angle_ptr, y_ptr, last_ptr, T, D, BLOCK: tl.constexpr
):  # fmt: skip
    """A linear recurrence with complex numbers: two vectors as state, their angle turned each token."""
    d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch = tl.program_id(1)
    mask = d < D
    size = tl.exp(-tl.exp(tl.load(decay_ptr + d, mask=mask, other=0.0)))
    angle = tl.load(angle_ptr + d, mask=mask, other=0.0)
    re, im = size * tl.cos(angle), size * tl.sin(angle)
    h_re = tl.zeros((BLOCK,), tl.float32)
    h_im = tl.zeros((BLOCK,), tl.float32)
    for t in range(T):
        at = (batch * T + t) * 2 * D + d
        x_re = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        x_im = tl.load(x_ptr + at + D, mask=mask, other=0.0).to(tl.float32)
        new = re * h_re - im * h_im + x_re
        h_im = re * h_im + im * h_re + x_im
        h_re = new
        tl.store(y_ptr + (batch * T + t) * D + d, h_re.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(last_ptr + batch * 2 * D + d, h_re, mask=mask)
    tl.store(last_ptr + batch * 2 * D + D + d, h_im, mask=mask)


@jit
def _join_steps(a_1, b_1, a_2, b_2):
    """Two steps h -> a h + b as one."""
    return a_1 * a_2, a_2 * b_1 + b_2


@jit
def scan_gates(g_ptr, x_ptr, h_ptr, T, D, BT: tl.constexpr, BD: tl.constexpr):
    """h = a h + x along tokens: a scan of pairs in each tile, and a row that is carried to the next."""
    i_d, i_b = tl.program_id(0), tl.program_id(1)
    d, t = i_d * BD + tl.arange(0, BD), tl.arange(0, BT)
    carry = tl.zeros((BD,), tl.float32)
    for start in range(0, T, BT):
        at = (i_b * T + start + t)[:, None] * D + d[None, :]
        mask = (start + t < T)[:, None] & (d < D)[None, :]
        a = tl.sigmoid(tl.load(g_ptr + at, mask=mask, other=0.0).to(tl.float32))
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32) * (1 - a)
        a, h = tl.associative_scan((a, x), 0, _join_steps)
        h += a * carry[None, :]
        tl.store(h_ptr + at, h.to(h_ptr.dtype.element_ty), mask=mask)
        carry = tl.sum(tl.where((t == BT - 1)[:, None], h, 0.0), 0)


@jit
def chunk_suffix_sums(
    x_ptr, y_ptr, T, scale, H: tl.constexpr, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr
):  # fmt: skip
    """Sums from each token to the end of a sequence, last chunk first: a scan backwards and a carry."""
    i_s, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    base = (i_b * T * H + i_h) * S
    carry = tl.zeros([BS], dtype=tl.float32)
    i_t = tl.cdiv(T, BT) - 1
    while i_t >= 0:
        p_x = tl.make_block_ptr(
            x_ptr + base, (T, S), (H * S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0)
        )
        p_y = tl.make_block_ptr(
            y_ptr + base, (T, S), (H * S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0)
        )
        b_x = tl.load(p_x, boundary_check=(0, 1)).to(tl.float32) * scale
        b_y = tl.cumsum(b_x, axis=0, reverse=True) + carry[None, :]
        tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0, 1))
        carry += tl.sum(b_x, 0)
        i_t -= 1


@jit
def chunk_gate_scores(
    q_ptr, k_ptr, g_ptr, a_ptr, scale, T, K: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Scores within a chunk with a decay of each key's dimension, taken relative to the chunk's middle."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    o_t = tl.arange(0, BT)
    middle = min(i_t * BT + BT // 2, T - 1)
    b_a = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        o_k = i_k * BK + tl.arange(0, BK)
        p_q = tl.make_block_ptr(
            q_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        p_g = tl.make_block_ptr(
            g_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        p_k = tl.make_block_ptr(
            k_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        b_n = tl.load(g_ptr + (i_bh * T + middle) * K + o_k, mask=o_k < K, other=0.0)
        b_g = tl.load(p_g, boundary_check=(0, 1)) - b_n[None, :]
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_qg = (b_q.to(tl.float32) * tl.exp(b_g) * scale).to(b_q.dtype)
        b_kg = (b_k.to(tl.float32) * tl.exp(-b_g)).to(b_k.dtype)
        b_a += tl.dot(b_qg, tl.trans(b_kg))
    b_a = tl.where(o_t[:, None] >= o_t[None, :], b_a, 0.0)
    p_a = tl.make_block_ptr(
        a_ptr + i_bh * T * BT, (T, BT), (BT, 1), (i_t * BT, 0), (BT, BT), (1, 0)
    )
    tl.store(p_a, b_a.to(p_a.dtype.element_ty), boundary_check=(0, 1))


@jit
def chunk_values_grad(
    k_ptr, a_ptr, do_ptr, dh_ptr, dv_ptr, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """Gradients of a chunk's values: a loop over keys times states, then transposed scores times dO."""
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    chunk = i_bh * tl.cdiv(T, BT) + i_t
    b_dv = tl.zeros([BT, BV], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_k = tl.make_block_ptr(
            k_ptr + i_bh * T * K, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        p_dh = tl.make_block_ptr(
            dh_ptr + chunk * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0)
        )
        b_dv += tl.dot(tl.load(p_k, boundary_check=(0, 1)), tl.load(p_dh, boundary_check=(0, 1)))
    o_t = tl.arange(0, BT)
    p_a = tl.make_block_ptr(
        a_ptr + i_bh * T * BT, (BT, T), (1, BT), (0, i_t * BT), (BT, BT), (0, 1)
    )
    p_do = tl.make_block_ptr(
        do_ptr + i_bh * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
    )
    p_dv = tl.make_block_ptr(
        dv_ptr + i_bh * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
    )
    b_a = tl.load(p_a, boundary_check=(0, 1))
    b_a = tl.where(o_t[:, None] <= o_t[None, :], b_a, 0.0).to(b_a.dtype)
    b_do = tl.load(p_do, boundary_check=(0, 1))
    b_dv = tl.dot(b_a, b_do, b_dv)
    tl.store(p_dv, b_dv.to(p_dv.dtype.element_ty), boundary_check=(0, 1))


@jit
def chunk_states_reverse(
    q_ptr, do_ptr, g_ptr, dh_ptr, scale, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """Gradients of the states between chunks, from the last to the first; one decay for each token."""
    i_k, i_v, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    chunks = tl.cdiv(T, BT)
    b_dh = tl.zeros([BK, BV], dtype=tl.float32)
    for i_t in range(chunks - 1, -1, -1):
        p_dh = tl.make_block_ptr(
            dh_ptr + (i_bh * chunks + i_t) * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV),
            (1, 0),
        )  # fmt: skip
        tl.store(p_dh, b_dh.to(p_dh.dtype.element_ty), boundary_check=(0, 1))
        p_q = tl.make_block_ptr(
            q_ptr + i_bh * T * K, (K, T), (1, K), (i_k * BK, i_t * BT), (BK, BT), (0, 1)
        )
        p_do = tl.make_block_ptr(
            do_ptr + i_bh * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        o_t = i_t * BT + tl.arange(0, BT)
        b_g = tl.load(g_ptr + i_bh * T + o_t, mask=o_t < T, other=0.0)
        b_last = tl.load(g_ptr + i_bh * T + min(i_t * BT + BT, T) - 1)
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_q = (b_q * scale * tl.exp(b_g)[None, :]).to(b_q.dtype)
        b_do = tl.load(p_do, boundary_check=(0, 1))
        b_dh = b_dh * tl.exp(b_last) + tl.dot(b_q, b_do)


@jit
def conv_packed(
    x_ptr, first_ptr, w_ptr, bias_ptr, y_ptr, T, D, W: tl.constexpr, BT: tl.constexpr,
    BD: tl.constexpr,
):  # fmt: skip
    """A short causal filter over packed sequences: each token knows where its sequence begins."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    live, inside = t < T, d < D
    first = tl.load(first_ptr + t, mask=live, other=0)
    acc = tl.zeros((BT, BD), tl.float32)
    acc += tl.load(bias_ptr + d, mask=inside, other=0.0).to(tl.float32)[None, :]
    for j in tl.static_range(W):
        source = t - (W - 1) + j
        mask = (live & (source >= first))[:, None] & inside[None, :]
        x = tl.load(x_ptr + source[:, None] * D + d[None, :], mask=mask, other=0.0)
        w = tl.load(w_ptr + j * D + d, mask=inside, other=0.0)
        acc += x.to(tl.float32) * w.to(tl.float32)[None, :]
    y = acc / (1 + tl.exp(-acc))
    mask = live[:, None] & inside[None, :]
    tl.store(y_ptr + t[:, None] * D + d[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def extend_prefix(
    q_ptr, k_ptr, v_ptr, kc_ptr, vc_ptr, starts_ptr, prefix_ptr, slots_ptr, o_ptr, scale,
    H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """New tokens attend to a prefix in gathered slots of a cache, then to themselves with a causal mask."""
    i_s, i_h, i_m = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    start = tl.load(starts_ptr + i_s)
    length = tl.load(starts_ptr + i_s + 1) - start
    if i_m * BM >= length:
        return
    slot_start = tl.load(prefix_ptr + i_s)
    prefix = tl.load(prefix_ptr + i_s + 1) - slot_start
    rows, d, lanes = i_m * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    live = (rows < length)[:, None]
    q_at = ((start + rows)[:, None] * H + i_h) * D + d[None, :]
    q = tl.load(q_ptr + q_at, mask=live, other=0.0)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, prefix, BN):
        known = n + lanes < prefix
        slots = tl.load(slots_ptr + slot_start + n + lanes, mask=known, other=0)
        k = tl.load(
            kc_ptr + (slots[None, :] * H + i_h) * D + d[:, None], mask=known[None, :], other=0.0
        )
        s = tl.where(known[None, :], tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(tl.max(s, 1), top)
        old = tl.exp(top - new)
        p = tl.exp(s - new[:, None])
        total = total * old + tl.sum(p, 1)
        v = tl.load(
            vc_ptr + (slots[:, None] * H + i_h) * D + d[None, :], mask=known[:, None], other=0.0
        )
        acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    for n in range(0, min(length, (i_m + 1) * BM), BN):
        cols = n + lanes
        at = (start + cols) * H + i_h
        k = tl.load(k_ptr + at[None, :] * D + d[:, None], mask=(cols < length)[None, :], other=0.0)
        seen = (rows[:, None] >= cols[None, :]) & (cols < length)[None, :]
        s = tl.where(seen, tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(tl.max(s, 1), top)
        old = tl.exp(top - new)
        p = tl.exp(s - new[:, None])
        total = total * old + tl.sum(p, 1)
        v = tl.load(v_ptr + at[:, None] * D + d[None, :], mask=(cols < length)[:, None], other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    tl.store(o_ptr + q_at, (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=live)


@jit
def attention_backward_atomic(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, scale, T,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """All three gradients by one loop over queries; those of queries are added by atomics."""
    i_n, i_bh = tl.program_id(0), tl.program_id(1)
    base = i_bh * T
    cols, d = i_n * BN + tl.arange(0, BN), tl.arange(0, D)
    kv_at = (base + cols)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + kv_at, mask=(cols < T)[:, None], other=0.0)
    v = tl.load(v_ptr + kv_at, mask=(cols < T)[:, None], other=0.0)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for start in range(0, T, BM):
        rows = start + tl.arange(0, BM)
        live = rows < T
        q_at = (base + rows)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + q_at, mask=live[:, None], other=0.0)
        do = tl.load(do_ptr + q_at, mask=live[:, None], other=0.0)
        lse = tl.load(lse_ptr + base + rows, mask=live, other=0.0)
        delta = tl.load(delta_ptr + base + rows, mask=live, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        p = tl.where(live[:, None] & (cols < T)[None, :], tl.exp(s - lse[:, None]), 0.0)
        dv += tl.dot(tl.trans(p.to(do.dtype)), do)
        ds = (p * (tl.dot(do, tl.trans(v)) - delta[:, None]) * scale).to(q.dtype)
        dk += tl.dot(tl.trans(ds), q)
        tl.atomic_add(dq_ptr + q_at, tl.dot(ds, k), mask=live[:, None], sem="relaxed")
    tl.store(dk_ptr + kv_at, dk.to(dk_ptr.dtype.element_ty), mask=(cols < T)[:, None])
    tl.store(dv_ptr + kv_at, dv.to(dv_ptr.dtype.element_ty), mask=(cols < T)[:, None])


@jit
def decode_merge_masked(
    o_ptr, lse_ptr, lengths_ptr, out_ptr, H, D: tl.constexpr, BD: tl.constexpr, SPLITS: tl.constexpr,
    LEAST: tl.constexpr,
):  # fmt: skip
    """Second stage of decoding: a loop over all splits, whose body runs if the split has any token."""
    i_b, i_h = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, BD)
    length = tl.load(lengths_ptr + i_b)
    each = tl.cdiv(tl.cdiv(length, SPLITS), LEAST) * LEAST
    top = -float("inf")
    total = 0.0
    acc = tl.zeros([BD], dtype=tl.float32)
    base = (i_b * H + i_h) * SPLITS
    for split in range(0, SPLITS):
        begin = each * split
        end = tl.minimum(begin + each, length)
        if end > begin:
            part = tl.load(o_ptr + (base + split) * D + d, mask=d < D, other=0.0)
            lse = tl.load(lse_ptr + base + split)
            new = tl.maximum(lse, top)
            old = tl.exp(top - new)
            share = tl.exp(lse - new)
            acc = acc * old + share * part
            total = total * old + share
            top = new
    out = (acc / total).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + (i_b * H + i_h) * D + d, out, mask=d < D)


@jit
def merge_two_states(
    a_ptr, a_lse_ptr, b_ptr, b_lse_ptr, o_ptr, lse_ptr, D: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """Two parts of an attention as one: an infinite logarithm is that of no key at all."""
    token, head = tl.program_id(0), tl.program_id(1)
    at = token * tl.num_programs(1) + head
    a_lse, b_lse = tl.load(a_lse_ptr + at), tl.load(b_lse_ptr + at)
    a_lse = float("-inf") if a_lse == float("inf") else a_lse
    b_lse = float("-inf") if b_lse == float("inf") else b_lse
    top = tl.maximum(a_lse, b_lse)
    a_part, b_part = tl.exp(a_lse - top), tl.exp(b_lse - top)
    total = a_part + b_part
    tl.store(lse_ptr + at, tl.log(total) + top)
    d = tl.arange(0, BD)
    a = tl.load(a_ptr + at * D + d, mask=d < D)
    b = tl.load(b_ptr + at * D + d, mask=d < D)
    tl.store(o_ptr + at * D + d, a * (a_part / total) + b * (b_part / total), mask=d < D)


@jit
def mean_blocks(
    x_ptr, y_ptr, T, H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """The mean of each block of keys of a head, the last block's of as many as there are."""
    i_d, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    p_x = tl.make_block_ptr(
        x_ptr + (i_b * T * H + i_h) * D, (T, D), (H * D, 1), (i_t * BT, i_d * BD), (BT, BD), (1, 0)
    )
    p_y = tl.make_block_ptr(
        y_ptr + ((i_b * tl.cdiv(T, BT) + i_t) * H + i_h) * D, (D,), (1,), (i_d * BD,), (BD,), (0,)
    )
    b_x = tl.load(p_x, boundary_check=(0, 1)).to(tl.float32)
    b_y = tl.sum(b_x, axis=0) / min(BT, T - i_t * BT)
    tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0,))


@jit
def indexer_scores(
    q_ptr, k_ptr, w_ptr, s_ptr, T, H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """Which tokens to attend to: a loop over heads adds what is left of scores above 0, by weight."""
    i_m, i_n = tl.program_id(0), tl.program_id(1)
    rows, cols, d = i_m * BM + tl.arange(0, BM), i_n * BN + tl.arange(0, BN), tl.arange(0, D)
    at = rows[:, None] * T + cols[None, :]
    inside = (rows < T)[:, None] & (cols < T)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    if i_n * BN < (i_m + 1) * BM:
        k = tl.load(k_ptr + cols[None, :] * D + d[:, None], mask=(cols < T)[None, :], other=0.0)
        for h in range(H):
            q = tl.load(
                q_ptr + (rows[:, None] * H + h) * D + d[None, :],
                mask=(rows < T)[:, None],
                other=0.0,
            )
            w = tl.load(w_ptr + rows * H + h, mask=rows < T, other=0.0)
            acc += tl.maximum(tl.dot(q, k), 0.0) * w[:, None]
    tl.store(s_ptr + at, tl.where(rows[:, None] >= cols[None, :], acc, float("-inf")), mask=inside)


@jit
def attention_two_parts(
    q_ptr, qr_ptr, k_ptr, kr_ptr, v_ptr, o_ptr, scale, T, H, D: tl.constexpr, R: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Causal attention whose scores have two products: heads' own keys, and rotated ones of all heads."""
    i_m, i_bh = tl.program_id(0), tl.program_id(1)
    rows, d, r = i_m * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, R)
    live = (rows < T)[:, None]
    at = (i_bh * T + rows)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=live, other=0.0)
    qr = tl.load(qr_ptr + (i_bh * T + rows)[:, None] * R + r[None, :], mask=live, other=0.0)
    top = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.full([BM], 0.0, dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    for n in range(0, tl.minimum(T, (i_m + 1) * BM), BN):
        cols = n + tl.arange(0, BN)
        known = cols < T
        k_at = (i_bh * T + cols) * D
        k = tl.load(k_ptr + k_at[None, :] + d[:, None], mask=known[None, :], other=0.0)
        kr_at = (i_bh // H * T + cols) * R
        kr = tl.load(kr_ptr + kr_at[None, :] + r[:, None], mask=known[None, :], other=0.0)
        s = tl.dot(q, k)
        s += tl.dot(qr, kr)
        s = tl.where(rows[:, None] >= cols[None, :], s * scale, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        old = tl.exp2(top - new)
        total = total * old + tl.sum(p, 1)
        v = tl.load(v_ptr + k_at[:, None] + d[None, :], mask=known[:, None], other=0.0)
        acc = acc * old[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        top = new
    tl.store(o_ptr + at, (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=live)


@jit
def attention_int8(
    q_ptr, k_ptr, v_ptr, qs_ptr, ks_ptr, o_ptr, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Attention with queries and keys of int8, a scale for each block of them; values are f16."""
    i_m, i_bh = tl.program_id(0), tl.program_id(1)
    rows, d, lanes = i_m * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    at = (i_bh * T + rows)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=(rows < T)[:, None], other=0)
    q_scale = tl.load(qs_ptr + i_bh * tl.cdiv(T, BM) + i_m)
    p_k = k_ptr + (i_bh * T + lanes)[None, :] * D + d[:, None]
    p_v = v_ptr + (i_bh * T + lanes)[:, None] * D + d[None, :]
    p_ks = ks_ptr + i_bh * tl.cdiv(T, BN)
    top = tl.full([BM], -float("inf"), tl.float32)
    total = tl.full([BM], 1.0, tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for n in range(0, T, BN):
        mask = lanes < T - n
        k = tl.load(p_k, mask=mask[None, :], other=0)
        s = tl.dot(q, k).to(tl.float32) * (q_scale * tl.load(p_ks))
        s = tl.where(mask[None, :], s, -1.0e6)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        old = tl.exp2(top - new)
        total = total * old + tl.sum(p, 1)
        v = tl.load(p_v, mask=mask[:, None], other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
        p_k += BN * D
        p_v += BN * D
        p_ks += 1
    tl.store(
        o_ptr + at, (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=(rows < T)[:, None]
    )
