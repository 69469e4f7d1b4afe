# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `foreign` of public_kernels.py that go over tokens: recurrences, cumsums, chunks,
attention and its gradients, decoding. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def token_key_decay(
    q_ptr, k_ptr, v_ptr, gk_ptr, o_ptr, ht_ptr, scale, T, K: tl.constexpr, V: tl.constexpr,
    BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """A linear recurrence with a decay of each key: programs share keys, each stores its own part of o."""
    i_k, i_v, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    o_k, o_v = i_k * BK + tl.arange(0, BK), i_v * BV + tl.arange(0, BV)
    m_k, m_v = o_k < K, o_v < V
    part = (i_k * tl.num_programs(2) + i_bh) * T
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    for t in range(0, T):
        token = i_bh * T + t
        b_q = tl.load(q_ptr + token * K + o_k, mask=m_k, other=0).to(tl.float32) * scale
        b_k = tl.load(k_ptr + token * K + o_k, mask=m_k, other=0).to(tl.float32)
        b_v = tl.load(v_ptr + token * V + o_v, mask=m_v, other=0).to(tl.float32)
        b_gk = tl.load(gk_ptr + token * K + o_k, mask=m_k, other=0).to(tl.float32)
        b_h = b_h * tl.exp(b_gk)[:, None] + b_k[:, None] * b_v[None, :]
        b_o = tl.sum(b_h * b_q[:, None], axis=0)
        tl.store(o_ptr + (part + t) * V + o_v, b_o.to(o_ptr.dtype.element_ty), mask=m_v)
    p_ht = ht_ptr + i_bh * K * V + o_k[:, None] * V + o_v[None, :]
    tl.store(p_ht, b_h, mask=m_k[:, None] & m_v[None, :])


@jit
def token_delta_normed(
    q_ptr, k_ptr, v_ptr, g_ptr, beta_ptr, o_ptr, scale, T, H: tl.constexpr, HV: tl.constexpr,
    K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """The gated delta rule: heads of values share keys, which are normed here; values by keys as state."""
    i_v, i_nh = tl.program_id(0), tl.program_id(1)
    i_n, i_hv = i_nh // HV, i_nh % HV
    i_h = i_hv // (HV // H)
    o_k, o_v = tl.arange(0, K), i_v * BV + tl.arange(0, BV)
    p_q = q_ptr + (i_n * T * H + i_h) * K + o_k
    p_k = k_ptr + (i_n * T * H + i_h) * K + o_k
    p_v = v_ptr + (i_n * T * HV + i_hv) * V + o_v
    p_o = o_ptr + (i_n * T * HV + i_hv) * V + o_v
    p_g = g_ptr + i_n * T * HV + i_hv
    p_beta = beta_ptr + i_n * T * HV + i_hv
    b_s = tl.zeros([BV, K], dtype=tl.float32)
    i = 0
    while i < T:
        b_q = tl.load(p_q).to(tl.float32)
        b_k = tl.load(p_k).to(tl.float32)
        b_q = b_q / tl.sqrt(tl.sum(b_q * b_q) + 1e-6) * scale
        b_k = b_k / tl.sqrt(tl.sum(b_k * b_k) + 1e-6)
        b_s *= tl.exp(tl.load(p_g))
        b_u = tl.load(p_v).to(tl.float32) - tl.sum(b_s * b_k[None, :], 1)
        b_u *= tl.load(p_beta)
        b_s += b_u[:, None] * b_k[None, :]
        tl.store(p_o, tl.sum(b_s * b_q[None, :], 1).to(p_o.dtype.element_ty))
        p_q += H * K
        p_k += H * K
        p_v += HV * V
        p_o += HV * V
        p_g += HV
        p_beta += HV
        i += 1


@jit
def token_two_averages(
    x_ptr, fast_ptr, slow_ptr, y_ptr, T, D, BLOCK: tl.constexpr
):  # fmt: skip
    """Two moving averages of each channel, of which the difference is stored: vectors as state."""
    d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1) * T * D
    mask = d < D
    a = tl.load(fast_ptr + d, mask=mask, other=0.0)
    b = tl.load(slow_ptr + d, mask=mask, other=0.0)
    fast = tl.load(x_ptr + base + d, mask=mask, other=0.0).to(tl.float32)
    slow = fast
    tl.store(y_ptr + base + d, tl.zeros((BLOCK,), y_ptr.dtype.element_ty), mask=mask)
    for t in range(1, T):
        x = tl.load(x_ptr + base + t * D + d, mask=mask, other=0.0).to(tl.float32)
        fast += a * (x - fast)
        slow += b * (x - slow)
        y = (fast - slow).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + base + t * D + d, y, mask=mask)


@jit
def token_matrix_memory(
    q_ptr, k_ptr, v_ptr, i_ptr, f_ptr, h_ptr, scale, T, D: tl.constexpr, BV: tl.constexpr
):  # fmt: skip
    """A matrix as memory with gates in logarithms: a maximum is carried so that no exponential overflows."""
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    o_k, o_v = tl.arange(0, D), i_v * BV + tl.arange(0, BV)
    memory = tl.zeros((D, BV), tl.float32)
    norm = tl.zeros((D,), tl.float32)
    top = 0.0
    for t in range(T):
        at = (i_bh * T + t) * D
        q = tl.load(q_ptr + at + o_k).to(tl.float32)
        k = tl.load(k_ptr + at + o_k).to(tl.float32) * scale
        v = tl.load(v_ptr + at + o_v).to(tl.float32)
        gate_i = tl.load(i_ptr + i_bh * T + t)
        gate_f = tl.load(f_ptr + i_bh * T + t)
        log_f = tl.minimum(gate_f, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(gate_f)))
        new = tl.maximum(log_f + top, gate_i)
        keep, write = tl.exp(log_f + top - new), tl.exp(gate_i - new)
        top = new
        memory = memory * keep + (write * k)[:, None] * v[None, :]
        norm = norm * keep + write * k
        size = tl.maximum(tl.abs(tl.sum(norm * q, 0)), tl.exp(-top))
        h = tl.sum(memory * q[:, None], 0) / size
        tl.store(h_ptr + at + o_v, h.to(h_ptr.dtype.element_ty))


@jit
def token_window_mean(x_ptr, y_ptr, T, D, W: tl.constexpr, BLOCK: tl.constexpr):
    """The mean of the last W tokens: a sum takes each token in, and later out again by a branch."""
    d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr += tl.program_id(1) * T * D + d
    y_ptr += tl.program_id(1) * T * D + d
    mask = d < D
    total = tl.zeros((BLOCK,), tl.float32)
    for t in range(T):
        total += tl.load(x_ptr + t * D, mask=mask, other=0.0).to(tl.float32)
        count = t + 1
        if t >= W:
            total -= tl.load(x_ptr + (t - W) * D, mask=mask, other=0.0).to(tl.float32)
            count = W
        tl.store(y_ptr + t * D, (total / count).to(y_ptr.dtype.element_ty), mask=mask)


@jit
def chunk_cumsum_packed(
    x_ptr, starts_ptr, y_ptr, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr
):  # fmt: skip
    """Sums along packed sequences: a triangle of ones times each chunk, plus a row that is carried."""
    i_s, i_n = tl.program_id(0), tl.program_id(1)
    begin = tl.load(starts_ptr + i_n).to(tl.int32)
    length = tl.load(starts_ptr + i_n + 1).to(tl.int32) - begin
    o_t = tl.arange(0, BT)
    lower = tl.where(o_t[:, None] >= o_t[None, :], 1.0, 0.0)
    carry = tl.zeros([BS], dtype=tl.float32)
    o_s = i_s * BS + tl.arange(0, BS)
    for i_t in range(tl.cdiv(length, BT)):
        m_x = (i_t * BT + o_t < length)[:, None] & (o_s < S)[None, :]
        at = (begin + i_t * BT + o_t)[:, None] * S + o_s[None, :]
        b_x = tl.load(x_ptr + at, mask=m_x, other=0.0).to(tl.float32)
        b_y = carry[None, :] + tl.dot(lower, b_x, allow_tf32=False)
        tl.store(y_ptr + at, b_y.to(y_ptr.dtype.element_ty), mask=m_x)
        if i_t >= 0:
            carry += tl.sum(b_x, 0)


@jit
def chunk_cumsum_table(
    g_ptr, starts_ptr, table_ptr, y_ptr, scale, H, BT: tl.constexpr, BH: tl.constexpr
):  # fmt: skip
    """Sums before each token of a chunk; a table names the sequence and the chunk of each program."""
    i_c, i_h = tl.program_id(0), tl.program_id(1)
    i_n = tl.load(table_ptr + i_c * 2)
    i_t = tl.load(table_ptr + i_c * 2 + 1)
    begin, end = tl.load(starts_ptr + i_n), tl.load(starts_ptr + i_n + 1)
    t = begin + i_t * BT + tl.arange(0, BT)
    h = i_h * BH + tl.arange(0, BH)
    mask = (t < end)[:, None] & (h < H)[None, :]
    g = tl.load(g_ptr + t[:, None] * H + h[None, :], mask=mask, other=0.0).to(tl.float32)
    y = (tl.cumsum(g, axis=0) - g) * scale
    tl.store(y_ptr + t[:, None] * H + h[None, :], y, mask=mask)


@jit
def lightning_chunks(
    q_ptr, k_ptr, v_ptr, slope_ptr, o_ptr, T, H, D: tl.constexpr, V: tl.constexpr,
    BT: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """Linear attention with a decay for each head: four products a chunk, a state between chunks."""
    i_bh, i_v = tl.program_id(0), tl.program_id(1)
    slope = tl.load(slope_ptr + i_bh % H)
    i, d, e = tl.arange(0, BT), tl.arange(0, D), i_v * BV + tl.arange(0, BV)
    q_decay = tl.exp(-slope * (i + 1).to(tl.float32))[:, None]
    k_decay = tl.exp(-slope * (BT - 1 - i).to(tl.float32))[None, :]
    away = i[:, None] - i[None, :]
    inner = tl.where(away >= 0, tl.exp(-slope * tl.maximum(away, 0).to(tl.float32)), 0.0)
    chunk_decay = tl.exp(-slope * BT)
    state = tl.zeros((D, BV), tl.float32)
    for start in range(0, T, BT):
        live = start + i < T
        at = (i_bh * T + start + i) * D
        v_at = (i_bh * T + start + i)[:, None] * V + e[None, :]
        q = tl.load(q_ptr + at[:, None] + d[None, :], mask=live[:, None], other=0.0)
        kt = tl.load(k_ptr + at[None, :] + d[:, None], mask=live[None, :], other=0.0)
        v = tl.load(v_ptr + v_at, mask=live[:, None], other=0.0)
        scores = tl.dot(q, kt) * inner
        o = tl.dot(scores.to(v.dtype), v)
        o += tl.dot(q, state.to(q.dtype)) * q_decay
        kt = (kt.to(tl.float32) * k_decay).to(v.dtype)
        state = state * chunk_decay + tl.dot(kt, v)
        tl.store(o_ptr + v_at, o.to(o_ptr.dtype.element_ty), mask=live[:, None])


@jit
def neumann_inverse(a_ptr, inv_ptr, T, BT: tl.constexpr, TURNS: tl.constexpr):
    """Inverses of unit triangles: (1 + N)(1 + N^2)(1 + N^4)..., where N is nilpotent, by squaring."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, BT)
    rows = i_t * BT + i
    at = (i_bh * T + rows)[:, None] * BT + i[None, :]
    a = tl.load(a_ptr + at, mask=(rows < T)[:, None], other=0.0).to(tl.float32)
    power = tl.where(i[:, None] > i[None, :], -a, 0.0)
    inverse = tl.where(i[:, None] == i[None, :], 1.0, power)
    for _ in range(TURNS):
        power = tl.dot(power, power, input_precision="tf32")
        inverse += tl.dot(inverse, power, input_precision="tf32")
    y = inverse.to(inv_ptr.dtype.element_ty)
    tl.store(inv_ptr + at, y, mask=(rows < T)[:, None])


@jit
def decode_merge_sinks(
    o_ptr, lse_ptr, sink_ptr, count_ptr, out_ptr, H, S, D: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """Second stage of decoding in two loops: the largest sum, then weights and vectors; a sink counts, too."""
    i_b, i_h = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, BD)
    base = (i_b * H + i_h) * S
    splits = tl.load(count_ptr + i_b)
    top = tl.load(sink_ptr + i_h)
    for s in range(splits):
        top = tl.maximum(top, tl.load(lse_ptr + base + s))
    total = tl.exp(tl.load(sink_ptr + i_h) - top)
    acc = tl.zeros((BD,), tl.float32)
    for s in range(splits):
        weight = tl.exp(tl.load(lse_ptr + base + s) - top)
        part = tl.load(o_ptr + (base + s) * D + d, mask=d < D, other=0.0)
        acc += weight * part.to(tl.float32)
        total += weight
    out = (acc / total).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + (i_b * H + i_h) * D + d, out, mask=d < D)


@jit
def _join_parts(lse_a, x_a, lse_b, x_b):
    """Two parts of an attention as one: weights by the logarithms of their sums."""
    top = tl.maximum(lse_a, lse_b)
    a, b = tl.exp(lse_a - top), tl.exp(lse_b - top)
    total = a + b
    return top + tl.log(total), (x_a * a + x_b * b) / total


@jit
def decode_merge_reduce(
    o_ptr, lse_ptr, out_ptr, all_ptr, D, SPLITS: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """Second stage of decoding as one reduction of pairs over splits."""
    row = tl.program_id(0)
    s, d = tl.arange(0, SPLITS), tl.program_id(1) * BD + tl.arange(0, BD)
    lse = tl.load(lse_ptr + row * SPLITS + s)
    at = (row * SPLITS + s)[:, None] * D + d[None, :]
    x = tl.load(o_ptr + at, mask=(d < D)[None, :], other=0.0).to(tl.float32)
    lse, x = tl.reduce((tl.broadcast_to(lse[:, None], (SPLITS, BD)), x), 0, _join_parts)
    tl.store(out_ptr + row * D + d, x.to(out_ptr.dtype.element_ty), mask=d < D)
    tl.store(all_ptr + row * D + d, lse, mask=d < D)


@jit
def attention_window2d(
    q_ptr, k_ptr, v_ptr, bias_ptr, index_ptr, region_ptr, o_ptr, scale, WINDOWS, H: tl.constexpr,
    L: tl.constexpr, D: tl.constexpr, BL: tl.constexpr,
):  # fmt: skip
    """Attention in a window of a picture: no loop, a bias by place, and regions that do not see each other."""
    window, head = tl.program_id(0), tl.program_id(1)
    i, d = tl.arange(0, BL), tl.arange(0, D)
    inside = i < L
    at = ((window * H + head) * L + i)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=inside[:, None], other=0.0)
    k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0)
    v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0)
    both = inside[:, None] & inside[None, :]
    place = tl.load(index_ptr + i[:, None] * L + i[None, :], mask=both, other=0)
    bias = tl.load(bias_ptr + place * H + head, mask=both, other=0.0).to(tl.float32)
    region = tl.load(region_ptr + window % WINDOWS * L + i, mask=inside, other=-1)
    s = tl.dot(q, tl.trans(k)) * scale + bias
    s = tl.where(region[:, None] == region[None, :], s, s - 100.0)
    s = tl.where(inside[None, :], s, float("-inf"))
    p = tl.exp(s - tl.max(s, 1)[:, None])
    p = p / tl.sum(p, 1)[:, None]
    o = tl.dot(p.to(v.dtype), v).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + at, o, mask=inside[:, None])


@jit
def attention_padded_keys(
    q_ptr, k_ptr, v_ptr, length_ptr, o_ptr, scale_log2, M, N, H, D: tl.constexpr, BD: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Attention to few keys by plain pointers: keys beyond a loaded length are masked, D is no power of two."""
    i_m, i_bh = tl.program_id(0), tl.program_id(1)
    batch, head = i_bh // H, i_bh % H
    m, n, d = i_m * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BD)
    length = tl.load(length_ptr + batch)
    q_at = ((batch * M + m) * H + head)[:, None] * D + d[None, :]
    q_mask = (m < M)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + q_at, mask=q_mask, other=0.0)
    top = tl.zeros((BM,), tl.float32) - float("inf")
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, length, BN):
        row = (batch * N + start + n) * H + head
        live = start + n < length
        k = tl.load(
            k_ptr + row[None, :] * D + d[:, None],
            mask=live[None, :] & (d < D)[:, None],
            other=0.0,
        )
        s = tl.dot(q, k) * scale_log2 + tl.where(live, 0.0, float("-inf"))[None, :]
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        old = tl.exp2(top - new)
        v = tl.load(
            v_ptr + row[:, None] * D + d[None, :],
            mask=live[:, None] & (d < D)[None, :],
            other=0.0,
        )
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None])
        total = total * old + tl.sum(p, 1)
        top = new
    o = acc / total[:, None]
    tl.store(o_ptr + q_at, o.to(o_ptr.dtype.element_ty), mask=q_mask)


@jit
def attention_tree_mask(
    q_ptr, k_ptr, v_ptr, tree_ptr, prefix_ptr, o_ptr, scale, N, S, H, G: tl.constexpr,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Drafted tokens see a prefix and, of each other, those that a table of bytes names; keys have few heads."""
    i_m, i_h, i_b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows, d = i_m * BM + tl.arange(0, BM), tl.arange(0, D)
    prefix = tl.load(prefix_ptr + i_b)
    q_at = ((i_b * N + rows) * H + i_h)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + q_at, mask=(rows < N)[:, None], other=0.0)
    base = (i_b * (H // G) + i_h // G) * S
    top = tl.full((BM,), -1e20, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, prefix + N, BN):
        cols = start + tl.arange(0, BN)
        live = cols < prefix + N
        at = (base + cols)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=live[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        drafted = (cols >= prefix) & live
        named = tl.load(
            tree_ptr + (i_b * N + rows)[:, None] * N + (cols - prefix)[None, :],
            mask=(rows < N)[:, None] & drafted[None, :],
            other=0,
        )
        s = tl.where((cols < prefix)[None, :] | (named != 0), s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        old = tl.exp(top - new)
        p = tl.exp(s - new[:, None])
        total = total * old + tl.sum(p, 1)
        v = tl.load(v_ptr + at, mask=live[:, None], other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + q_at, o, mask=(rows < N)[:, None])


@jit
def attention_dkv_groups(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, T, G: tl.constexpr,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Gradients of keys and values that heads share, causal: a loop over heads around one over queries."""
    i_n, i_h = tl.program_id(0), tl.program_id(1)
    cols, d = i_n * BN + tl.arange(0, BN), tl.arange(0, D)
    kv_at = (i_h * T + cols)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + kv_at, mask=(cols < T)[:, None], other=0.0)
    v = tl.load(v_ptr + kv_at, mask=(cols < T)[:, None], other=0.0)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for g in range(G):
        base = (i_h * G + g) * T
        for start in range(i_n * BN // BM * BM, T, BM):
            rows = start + tl.arange(0, BM)
            live = rows < T
            at = (base + rows)[:, None] * D + d[None, :]
            q = tl.load(q_ptr + at, mask=live[:, None], other=0.0)
            do = tl.load(do_ptr + at, mask=live[:, None], other=0.0)
            lse = tl.load(lse_ptr + base + rows, mask=live, other=0.0)
            delta = tl.load(delta_ptr + base + rows, mask=live, other=0.0)
            st = tl.dot(k, tl.trans(q)) * scale
            pt = tl.exp(st - lse[None, :])
            pt = tl.where((cols[:, None] <= rows[None, :]) & live[None, :], pt, 0.0)
            dv = tl.dot(pt.to(do.dtype), do, dv)
            dst = pt * (tl.dot(v, tl.trans(do)) - delta[None, :])
            dk = tl.dot(dst.to(q.dtype), q, dk)
    tl.store(dk_ptr + kv_at, (dk * scale).to(dk_ptr.dtype.element_ty), mask=(cols < T)[:, None])
    tl.store(dv_ptr + kv_at, dv.to(dv_ptr.dtype.element_ty), mask=(cols < T)[:, None])


@jit
def linear_kv_sum(
    k_ptr, v_ptr, kv_ptr, z_ptr, T, t_each, D: tl.constexpr, V: tl.constexpr, BT: tl.constexpr
):  # fmt: skip
    """Linear attention without order: sums of a feature of keys times values, over a part of the tokens."""
    part, i_bh = tl.program_id(0), tl.program_id(1)
    d, e, lanes = tl.arange(0, D), tl.arange(0, V), tl.arange(0, BT)
    end = min(part * t_each + t_each, T)
    kv = tl.zeros((D, V), tl.float32)
    z = tl.zeros((D,), tl.float32)
    for start in range(part * t_each, end, BT):
        t = start + lanes
        live = t < end
        k = tl.load(
            k_ptr + (i_bh * T + t)[:, None] * D + d[None, :], mask=live[:, None], other=0.0
        ).to(tl.float32)
        k = tl.where(live[:, None], tl.where(k > 0, k + 1.0, tl.exp(k)), 0.0)
        v = tl.load(v_ptr + (i_bh * T + t)[:, None] * V + e[None, :], mask=live[:, None], other=0.0)
        z += tl.sum(k, 0)
        kv = tl.dot(tl.trans(k.to(v.dtype)), v, kv)
    at = i_bh * tl.num_programs(0) + part
    tl.store(kv_ptr + at * D * V + d[:, None] * V + e[None, :], kv)
    tl.store(z_ptr + at * D + d, z)


@jit
def conv_weight_grad(
    x_ptr, dy_ptr, dw_ptr, T, D, t_each, W: tl.constexpr, BW: tl.constexpr, BT: tl.constexpr,
    BD: tl.constexpr,
):  # fmt: skip
    """Gradients of a short causal filter: a tile of taps by channels, and a loop over a part of the tokens."""
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    part, batch = tl.program_id(1), tl.program_id(2)
    taps = tl.arange(0, BW)
    inside = (d < D)[None, :]
    dw = tl.zeros((BW, BD), tl.float32)
    end = min((part + 1) * t_each, T)
    for start in range(part * t_each, end, BT):
        t = start + tl.arange(0, BT)
        at = (batch * T + t)[:, None] * D + d[None, :]
        dy = tl.load(dy_ptr + at, mask=(t < end)[:, None] & inside, other=0.0).to(tl.float32)
        for j in tl.static_range(W):
            source = t - (W - 1 - j)
            mask = ((source >= 0) & (t < end))[:, None] & inside
            x = tl.load(x_ptr + at - (W - 1 - j) * D, mask=mask, other=0.0).to(tl.float32)
            dw += tl.where((taps == j)[:, None], tl.sum(x * dy, 0)[None, :], 0.0)
    at = ((batch * tl.num_programs(1) + part) * W + taps)[:, None] * D + d[None, :]
    tl.store(dw_ptr + at, dw, mask=(taps < W)[:, None] & inside)
