# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `held_out` of public_kernels.py that go over tokens: recurrences,
chunks, decoding, attention. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def token_retention(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, B, H, T, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr,
    BV: tl.constexpr,
):  # fmt: skip
    """A head's state decays by a constant; each block of keys stores its part of the result."""
    i_v, i_k, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_h = i_bh % H
    b_b = 1 - tl.exp2(-5 - i_h.to(tl.float32))
    p_q = q_ptr + i_bh * T * K + i_k * BK + tl.arange(0, BK)
    p_k = k_ptr + i_bh * T * K + i_k * BK + tl.arange(0, BK)
    p_v = v_ptr + i_bh * T * V + i_v * BV + tl.arange(0, BV)
    p_o = o_ptr + (i_bh + i_k * B * H) * T * V + i_v * BV + tl.arange(0, BV)
    mask_k = (i_k * BK + tl.arange(0, BK)) < K
    mask_v = (i_v * BV + tl.arange(0, BV)) < V
    h = tl.zeros([BV, BK], dtype=tl.float32)
    for _ in range(0, T):
        b_k = tl.load(p_k, mask=mask_k, other=0).to(tl.float32)
        b_v = tl.load(p_v, mask=mask_v, other=0).to(tl.float32)
        b_q = tl.load(p_q, mask=mask_k, other=0).to(tl.float32) * scale
        h = b_b * h + b_k[None, :] * b_v[:, None]
        b_o = tl.sum(h * b_q[None, :], axis=1)
        tl.store(p_o, b_o.to(p_o.dtype.element_ty), mask=mask_v)
        p_q += K
        p_k += K
        p_o += V
        p_v += V


@jit
def token_bonus(
    r_ptr, k_ptr, v_ptr, w_ptr, u_ptr, o_ptr, T, H, K: tl.constexpr, V: tl.constexpr,
    BV: tl.constexpr,
):  # fmt: skip
    """The token of the moment counts by a bonus; then each key decays by its own loaded amount."""
    pid_v, pid = tl.program_id(0), tl.program_id(1)
    batch, head = pid // H, pid % H
    ks = tl.arange(0, K)
    vs = pid_v * BV + tl.arange(0, BV)
    u = tl.load(u_ptr + head * K + ks).to(tl.float32)
    state = tl.zeros((K, BV), dtype=tl.float32)
    for t in range(T):
        at = (batch * T + t) * H + head
        r = tl.load(r_ptr + at * K + ks).to(tl.float32)
        k = tl.load(k_ptr + at * K + ks).to(tl.float32)
        w = tl.load(w_ptr + at * K + ks).to(tl.float32)
        v = tl.load(v_ptr + at * V + vs).to(tl.float32)
        kv = k[:, None] * v[None, :]
        o = tl.sum((state + kv * u[:, None]) * r[:, None], axis=0)
        tl.store(o_ptr + at * V + vs, o.to(o_ptr.dtype.element_ty))
        state = tl.exp(-tl.exp(w))[:, None] * state + kv


@jit
def token_delta_rows(
    q_ptr, k_ptr, v_ptr, beta_ptr, u_ptr, o_ptr, ht_ptr, scale, T, K: tl.constexpr,
    V: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """The delta rule with keys along the state's rows; the corrected value is stored, too."""
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    o_k = tl.arange(0, K)
    o_v = i_v * BV + tl.arange(0, BV)
    q_ptr += i_bh * T * K
    k_ptr += i_bh * T * K
    v_ptr += i_bh * T * V
    u_ptr += i_bh * T * V
    o_ptr += i_bh * T * V
    b_h = tl.zeros([BV, K], dtype=tl.float32)
    for t in range(0, T):
        b_k = tl.load(k_ptr + t * K + o_k).to(tl.float32)
        b_q = tl.load(q_ptr + t * K + o_k).to(tl.float32) * scale
        b_beta = tl.load(beta_ptr + i_bh * T + t).to(tl.float32)
        b_v = tl.load(v_ptr + t * V + o_v, mask=o_v < V, other=0).to(tl.float32)
        b_v -= tl.sum(b_h * b_k[None, :], axis=1)
        tl.store(u_ptr + t * V + o_v, b_v.to(u_ptr.dtype.element_ty), mask=o_v < V)
        b_h += (b_beta * b_v)[:, None] * b_k[None, :]
        b_o = tl.sum(b_h * b_q[None, :], axis=1)
        tl.store(o_ptr + t * V + o_v, b_o.to(o_ptr.dtype.element_ty), mask=o_v < V)
    p_ht = tl.make_block_ptr(ht_ptr + i_bh * K * V, (V, K), (K, 1), (i_v * BV, 0), (BV, K), (1, 0))
    tl.store(p_ht, b_h.to(p_ht.dtype.element_ty), boundary_check=(0, 1))


@jit
def token_gates(x_ptr, g_ptr, o_ptr, h0_ptr, ht_ptr, T, D: tl.constexpr, BD: tl.constexpr):
    """A gate for each channel: the state is a vector, and an iteration has very little work."""
    i_d, i_b = tl.program_id(0), tl.program_id(1)
    o_d = i_d * BD + tl.arange(0, BD)
    mask = o_d < D
    p_x = x_ptr + i_b * T * D + o_d
    p_g = g_ptr + i_b * T * D + o_d
    p_o = o_ptr + i_b * T * D + o_d
    b_h = tl.load(h0_ptr + i_b * D + o_d, mask=mask, other=0).to(tl.float32)
    for _ in range(0, T):
        b_x = tl.load(p_x, mask=mask, other=0).to(tl.float32)
        b_g = tl.load(p_g, mask=mask, other=0).to(tl.float32)
        b_h = tl.exp(b_g) * b_h + b_x
        tl.store(p_o, b_h.to(p_o.dtype.element_ty), mask=mask)
        p_x += D
        p_g += D
        p_o += D
    tl.store(ht_ptr + i_b * D + o_d, b_h, mask=mask)


@jit
def token_gates_backward(
    g_ptr, o_ptr, do_ptr, dx_ptr, dg_ptr, T, D: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """Its gradients from the last token to the first; the state before is loaded, 0 for the first."""
    i_d, i_b = tl.program_id(0), tl.program_id(1)
    o_d = i_d * BD + tl.arange(0, BD)
    mask = o_d < D
    base = i_b * T * D + o_d
    b_dh = tl.zeros([BD], dtype=tl.float32)
    for i in range(T - 1, -1, -1):
        at = base + i * D
        b_g = tl.load(g_ptr + at, mask=mask, other=0).to(tl.float32)
        b_do = tl.load(do_ptr + at, mask=mask, other=0).to(tl.float32)
        b_o = tl.load(o_ptr + at - D, mask=mask & (i > 0), other=0).to(tl.float32)
        b_dh += b_do
        tl.store(dx_ptr + at, b_dh.to(dx_ptr.dtype.element_ty), mask=mask)
        b_dh = b_dh * tl.exp(b_g)
        tl.store(dg_ptr + at, (b_dh * b_o).to(dg_ptr.dtype.element_ty), mask=mask)


@jit
def state_step(
    state_ptr, slot_ptr, x_ptr, dt_ptr, bias_ptr, A_ptr, B_ptr, C_ptr, D_ptr, z_ptr, y_ptr,
    H: tl.constexpr, P: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    """One token of a state space model: the state, in a slot of a cache, is read and written."""
    pid_p, batch, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot = tl.load(slot_ptr + batch).to(tl.int64)
    p = pid_p * BP + tl.arange(0, BP)
    n = tl.arange(0, N)
    mask = p < P
    state_at = state_ptr + (slot * H + head) * P * N + p[:, None] * N + n[None, :]
    state = tl.load(state_at, mask=mask[:, None], other=0.0).to(tl.float32)
    dt = tl.load(dt_ptr + batch * H + head).to(tl.float32) + tl.load(bias_ptr + head)
    dt = tl.where(dt <= 20.0, tl.log(1.0 + tl.exp(dt)), dt)
    A = tl.load(A_ptr + head)
    group = head // GROUP
    B = tl.load(B_ptr + (batch * (H // GROUP) + group) * N + n).to(tl.float32)
    C = tl.load(C_ptr + (batch * (H // GROUP) + group) * N + n).to(tl.float32)
    at = (batch * H + head) * P + p
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    z = tl.load(z_ptr + at, mask=mask, other=0.0).to(tl.float32)
    state = state * tl.exp(A * dt) + (B * dt)[None, :] * x[:, None]
    tl.store(state_at, state.to(state_ptr.dtype.element_ty), mask=mask[:, None])
    y = tl.sum(state * C[None, :], axis=1) + x * tl.load(D_ptr + head)
    tl.store(y_ptr + at, (y * z * tl.sigmoid(z)).to(y_ptr.dtype.element_ty), mask=mask)


@jit
def chunk_head_cumsum(
    g_ptr, o_ptr, scale, T, H: tl.constexpr, BT: tl.constexpr, BH: tl.constexpr
):  # fmt: skip
    """Numbers of tokens by heads: a reversed cumsum within a chunk, for some heads a program."""
    i_t, i_b, i_h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    t = i_t * BT + tl.arange(0, BT)
    h = i_h * BH + tl.arange(0, BH)
    mask = (t[:, None] < T) & (h[None, :] < H)
    offs = i_b * T * H + t[:, None] * H + h[None, :]
    g = tl.load(g_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    o = tl.cumsum(g, axis=0)
    total = tl.sum(g, axis=0)
    o = total[None, :] - o + g
    tl.store(o_ptr + offs, o * scale, mask=mask)


@jit
def chunk_pass_states(
    states_ptr, out_ptr, last_ptr, decay_ptr, chunks, H: tl.constexpr, S, BLOCK: tl.constexpr
):  # fmt: skip
    """States of chunks become states before chunks: a vector in a loop that stores."""
    pid_b, pid_h, pid_s = tl.program_id(1), tl.program_id(2), tl.program_id(0)
    states_ptr += pid_b * chunks * H * S + pid_h * S
    out_ptr += pid_b * chunks * H * S + pid_h * S
    decay_ptr += (pid_b * H + pid_h) * chunks
    offs = pid_s * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), dtype=tl.float32)
    tl.store(out_ptr + offs, state, mask=offs < S)
    out_ptr += H * S
    for c in range(chunks):
        new = tl.load(states_ptr + offs, mask=offs < S, other=0.0).to(tl.float32)
        state = tl.exp(tl.load(decay_ptr)) * state + new
        if c < chunks - 1:
            tl.store(out_ptr + offs, state, mask=offs < S)
        else:
            tl.store(last_ptr + (pid_b * H + pid_h) * S + offs, state, mask=offs < S)
        states_ptr += H * S
        out_ptr += H * S
        decay_ptr += 1


@jit
def chunk_output(
    q_ptr, k_ptr, v_ptr, h_ptr, g_ptr, o_ptr, scale, T, H: tl.constexpr, K: tl.constexpr,
    V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """A chunk's result: the state before it by queries, and decayed scores by values."""
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)
    q_ptr += (i_b * T * H + i_h) * K
    k_ptr += (i_b * T * H + i_h) * K
    v_ptr += (i_b * T * H + i_h) * V
    o_ptr += (i_b * T * H + i_h) * V
    h_ptr += ((i_b * NT + i_t) * H + i_h).to(tl.int64) * K * V
    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_q = tl.make_block_ptr(q_ptr, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        p_k = tl.make_block_ptr(k_ptr, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_h = tl.make_block_ptr(h_ptr, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_h = tl.load(p_h, boundary_check=(0, 1))
        b_o += tl.dot(b_q, b_h)
        b_A += tl.dot(b_q, b_k)
    p_g = tl.make_block_ptr(g_ptr + i_b * T * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    b_g = tl.load(p_g, boundary_check=(0,))
    b_o = b_o * tl.exp(b_g)[:, None]
    o_i = tl.arange(0, BT)
    causal = o_i[:, None] >= o_i[None, :]
    b_A = b_A * tl.exp(tl.where(causal, b_g[:, None] - b_g[None, :], 0.0))
    b_A = tl.where(causal, b_A, 0.0)
    p_v = tl.make_block_ptr(v_ptr, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    p_o = tl.make_block_ptr(o_ptr, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    b_v = tl.load(p_v, boundary_check=(0, 1))
    b_o = (b_o + tl.dot(b_A.to(b_v.dtype), b_v)) * scale
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@jit
def chunk_solve(A_ptr, Ai_ptr, T, H: tl.constexpr, BT: tl.constexpr):
    """The inverse of 1 plus a strictly lower triangle, row by row, each of which is loaded again."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    A_ptr += (i_b * T * H + i_h) * BT
    Ai_ptr += (i_b * T * H + i_h) * BT
    o_i = tl.arange(0, BT)
    p_A = tl.make_block_ptr(A_ptr, (T, BT), (H * BT, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    b_A = tl.load(p_A, boundary_check=(0, 1)).to(tl.float32)
    b_A = -tl.where(o_i[:, None] > o_i[None, :], b_A, 0.0)
    for i in range(1, min(BT, T - i_t * BT)):
        b_a = -tl.load(A_ptr + (i_t * BT + i) * H * BT + o_i).to(tl.float32)
        b_a = tl.where(o_i < i, b_a, 0.0)
        b_a = b_a + tl.sum(b_a[:, None] * b_A, 0)
        b_A = tl.where((o_i == i)[:, None], b_a[None, :], b_A)
    b_A += (o_i[:, None] == o_i[None, :]).to(tl.float32)
    p_Ai = tl.make_block_ptr(Ai_ptr, (T, BT), (H * BT, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    tl.store(p_Ai, b_A.to(p_Ai.dtype.element_ty), boundary_check=(0, 1))


@jit
def chunk_wy(
    k_ptr, v_ptr, beta_ptr, g_ptr, A_ptr, w_ptr, u_ptr, T, H: tl.constexpr, K: tl.constexpr,
    V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """A chunk's small matrix times scaled values, and times scaled keys: two loops that store products."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    row = i_b * T * H + i_h
    p_beta = tl.make_block_ptr(beta_ptr + row, (T,), (H,), (i_t * BT,), (BT,), (0,))
    p_g = tl.make_block_ptr(g_ptr + row, (T,), (H,), (i_t * BT,), (BT,), (0,))
    p_A = tl.make_block_ptr(A_ptr + row * BT, (T, BT), (H * BT, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    b_beta = tl.load(p_beta, boundary_check=(0,))
    b_g = tl.exp(tl.load(p_g, boundary_check=(0,)))
    b_A = tl.load(p_A, boundary_check=(0, 1))
    for i_v in range(tl.cdiv(V, BV)):
        p_v = tl.make_block_ptr(
            v_ptr + row * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        p_u = tl.make_block_ptr(
            u_ptr + row * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_vb = (b_v * b_beta[:, None]).to(b_v.dtype)
        b_u = tl.dot(b_A, b_vb, allow_tf32=False)
        tl.store(p_u, b_u.to(p_u.dtype.element_ty), boundary_check=(0, 1))
    for i_k in range(tl.cdiv(K, BK)):
        p_k = tl.make_block_ptr(
            k_ptr + row * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        p_w = tl.make_block_ptr(
            w_ptr + row * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_kb = (b_k * b_beta[:, None] * b_g[:, None]).to(b_k.dtype)
        b_w = tl.dot(b_A, b_kb)
        tl.store(p_w, b_w.to(p_w.dtype.element_ty), boundary_check=(0, 1))


@jit
def decode_vector(
    q_ptr, k_ptr, v_ptr, part_ptr, lse_ptr, lengths_ptr, scale, tokens, H: tl.constexpr,
    D: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """First stage with a head of keys for each query: sums of products in place of dots."""
    batch, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths_ptr + batch)
    per_split = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    start = split * per_split
    end = tl.minimum(start + per_split, length)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (batch * H + head) * D + d).to(tl.float32) * scale
    base = (batch.to(tl.int64) * tokens * H + head) * D
    top = -float("inf")
    total = 0.0
    acc = tl.zeros([D], dtype=tl.float32)
    if start < end:
        for n in range(start, end, BLOCK_N):
            rows = n + tl.arange(0, BLOCK_N)
            at = base + rows[:, None] * (H * D) + d[None, :]
            k = tl.load(k_ptr + at, mask=rows[:, None] < end, other=0.0).to(tl.float32)
            qk = tl.sum(q[None, :] * k, 1)
            qk = tl.where(rows < end, qk, float("-inf"))
            v = tl.load(v_ptr + at, mask=rows[:, None] < end, other=0.0).to(tl.float32)
            new = tl.maximum(tl.max(qk, 0), top)
            alpha = tl.exp(top - new)
            p = tl.exp(qk - new)
            acc = acc * alpha + tl.sum(p[:, None] * v, 0)
            total = total * alpha + tl.sum(p, 0)
            top = new
        place = (batch * H + head) * SPLITS + split
        tl.store(part_ptr + place * D + d, acc / total)
        tl.store(lse_ptr + place, top + tl.log(total))


@jit
def decode_merge_log2(
    part_ptr, lse_ptr, o_ptr, lengths_ptr, stride_o, H: tl.constexpr, D: tl.constexpr,
    SPLITS: tl.constexpr, LEAST: tl.constexpr,
):  # fmt: skip
    """Second stage: as many parts as the length has blocks; logarithms have the base 2."""
    pid = tl.program_id(0)
    batch, head = pid // H, pid % H
    splits = tl.minimum(tl.cdiv(tl.load(lengths_ptr + batch), LEAST), SPLITS)
    d = tl.arange(0, D)
    lse_ptr += pid * SPLITS
    part_ptr += pid * SPLITS * D
    top = tl.load(lse_ptr)
    total = 1.0
    acc = tl.load(part_ptr + d).to(tl.float32)
    for i in range(1, splits):
        lse = tl.load(lse_ptr + i)
        part = tl.load(part_ptr + i * D + d).to(tl.float32)
        new = tl.maximum(top, lse)
        before = tl.math.exp2(top - new)
        now = tl.math.exp2(lse - new)
        acc = acc * before + part * now
        total = total * before + now
        top = new
    tl.store(o_ptr + batch * stride_o + head * D + d, (acc / total).to(o_ptr.dtype.element_ty))


@jit
def attention_window(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, cap, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr,
    WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Scores are capped; a token sees the last WINDOW ones; some heads share keys and values."""
    block, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    kv_head = head // (HQ // HK)
    rm = block * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    q_at = q_ptr + (batch * T + rm[:, None]) * HQ * D + head * D + rd[None, :]
    q = tl.load(q_at, mask=rm[:, None] < T, other=0.0)
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    first = tl.maximum(block * BM - WINDOW + 1, 0) // BN * BN
    last = tl.minimum((block + 1) * BM, T)
    for start in range(first, last, BN):
        n = start + rn
        kv_at = (batch * T + n) * HK * D + kv_head * D
        k = tl.load(k_ptr + kv_at[None, :] + rd[:, None], mask=n[None, :] < T, other=0.0)
        qk = tl.dot(q, k) * scale
        qk = cap * (2.0 * tl.sigmoid(2.0 * qk / cap) - 1.0)
        keep = (rm[:, None] >= n[None, :]) & (rm[:, None] - n[None, :] < WINDOW)
        qk = tl.where(keep, qk, -1.0e9)
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.where(keep, tl.exp(qk - m_new[:, None]), 0.0)
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + kv_at[:, None] + rd[None, :], mask=n[:, None] < T, other=0.0)
        acc = acc * alpha[:, None]
        acc += tl.dot(p.to(v.dtype), v)
        m_i = m_new
    acc = acc / l_i[:, None]
    o_at = o_ptr + (batch * T + rm[:, None]) * HQ * D + head * D + rd[None, :]
    tl.store(o_at, acc.to(o_ptr.dtype.element_ty), mask=rm[:, None] < T)


@jit
def latent_decode(
    q_ptr, cache_ptr, part_ptr, lse_ptr, table_ptr, lengths_ptr, scale, stride_table,
    H: tl.constexpr, DC: tl.constexpr, DR: tl.constexpr, BH: tl.constexpr, BN: tl.constexpr,
    SPLITS: tl.constexpr,
):  # fmt: skip
    """All heads share a latent vector a token, which is key and value, beside a rotated part."""
    batch, block_h, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads = block_h * BH + tl.arange(0, BH)
    rc, rr = tl.arange(0, DC), DC + tl.arange(0, DR)
    length = tl.load(lengths_ptr + batch)
    q_at = q_ptr + (batch * H + heads[:, None]) * (DC + DR)
    q = tl.load(q_at + rc[None, :], mask=heads[:, None] < H, other=0.0)
    qr = tl.load(q_at + rr[None, :], mask=heads[:, None] < H, other=0.0)
    per_split = tl.cdiv(length, SPLITS)
    begin = split * per_split
    end = tl.minimum(begin + per_split, length)
    e_max = tl.zeros([BH], dtype=tl.float32) - float("inf")
    e_sum = tl.zeros([BH], dtype=tl.float32)
    acc = tl.zeros([BH, DC], dtype=tl.float32)
    for start in range(begin, end, BN):
        n = start + tl.arange(0, BN)
        slot = tl.load(table_ptr + batch * stride_table + n, mask=n < end, other=0)
        at = slot.to(tl.int64) * (DC + DR)
        k = tl.load(cache_ptr + at[None, :] + rc[:, None], mask=n[None, :] < end, other=0.0)
        qk = tl.dot(q, k)
        kr = tl.load(cache_ptr + at[None, :] + rr[:, None], mask=n[None, :] < end, other=0.0)
        qk += tl.dot(qr, kr)
        qk = tl.where(n[None, :] < end, qk * scale, float("-inf"))
        n_max = tl.maximum(tl.max(qk, 1), e_max)
        alpha = tl.exp(e_max - n_max)
        p = tl.exp(qk - n_max[:, None])
        acc = acc * alpha[:, None]
        acc += tl.dot(p.to(k.dtype), tl.trans(k))
        e_sum = e_sum * alpha + tl.sum(p, 1)
        e_max = n_max
    row = (batch * H + heads) * SPLITS + split
    part_at = part_ptr + row[:, None] * DC + rc[None, :]
    tl.store(part_at, acc / e_sum[:, None], mask=heads[:, None] < H)
    tl.store(lse_ptr + row, e_max + tl.log(e_sum), mask=heads < H)
