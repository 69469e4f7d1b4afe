# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `fresh` of public_kernels.py that move or update elements: rotary embeddings, gates,
padding, caches, pictures, optimisers. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def rope_sections(
    x_ptr, cos_ptr, sin_ptr, T, FIRST: tl.constexpr, SECOND: tl.constexpr, H: tl.constexpr,
    HP: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Three tables of angles (time, row, column of a picture), each for some columns; in place."""
    token = tl.program_id(0)
    h, half = tl.arange(0, HP), tl.arange(0, D // 2)
    is_first = half < FIRST
    is_second = (half >= FIRST) & (half < SECOND)
    at = token * (D // 2) + half
    n = T * (D // 2)
    cos = tl.load(cos_ptr + at, mask=is_first, other=0.0)
    cos += tl.load(cos_ptr + n + at, mask=is_second, other=0.0)
    cos += tl.load(cos_ptr + 2 * n + at, mask=half >= SECOND, other=0.0)
    sin = tl.load(sin_ptr + at, mask=is_first, other=0.0)
    sin += tl.load(sin_ptr + n + at, mask=is_second, other=0.0)
    sin += tl.load(sin_ptr + 2 * n + at, mask=half >= SECOND, other=0.0)
    p_low = x_ptr + (token * H + h)[:, None] * D + half[None, :]
    mask = (h < H)[:, None]
    low = tl.load(p_low, mask=mask, other=0.0).to(tl.float32)
    high = tl.load(p_low + D // 2, mask=mask, other=0.0).to(tl.float32)
    tl.store(
        p_low, (low * cos[None, :] - high * sin[None, :]).to(x_ptr.dtype.element_ty), mask=mask
    )
    tl.store(
        p_low + D // 2,
        (high * cos[None, :] + low * sin[None, :]).to(x_ptr.dtype.element_ty),
        mask=mask,
    )


@jit
def rope_angles(
    x_ptr, pos_ptr, y_ptr, T, log2_base, H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr
):
    """Angles are computed from positions; neighbours of a head turn into each other in f32."""
    i_t, i_h = tl.program_id(0), tl.program_id(1)
    t, pair = i_t * BT + tl.arange(0, BT), tl.arange(0, D // 2)
    mask = (t < T)[:, None]
    position = tl.load(pos_ptr + t, mask=t < T, other=0).to(tl.float32)
    angle = position[:, None] * tl.exp2(pair.to(tl.float32) * (-2.0 / D) * log2_base)[None, :]
    at = (t[:, None] * H + i_h) * D + 2 * pair[None, :]
    even = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    odd = tl.load(x_ptr + at + 1, mask=mask, other=0.0).to(tl.float32)
    cos, sin = tl.cos(angle), tl.sin(angle)
    tl.store(y_ptr + at, (even * cos - odd * sin).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(y_ptr + at + 1, (odd * cos + even * sin).to(y_ptr.dtype.element_ty), mask=mask)


@jit
def swiglu_interleaved(x_ptr, y_ptr, M, N, alpha, limit, BM: tl.constexpr, BN: tl.constexpr):
    """Gate and up take turns in a row: a split of pairs, both bounded, and up plus 1."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * 2 * BN + tl.arange(0, 2 * BN)
    mask = (rows < M)[:, None] & (cols < 2 * N)[None, :]
    x = tl.load(x_ptr + rows[:, None] * 2 * N + cols[None, :], mask=mask, other=0.0)
    gate, up = tl.split(tl.reshape(x, (BM, BN, 2)))
    gate = tl.minimum(gate.to(tl.float32), limit)
    up = tl.clamp(up.to(tl.float32), -limit, limit)
    y = gate * tl.sigmoid(alpha * gate) * (up + 1)
    to = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows < M)[:, None] & (to < N)[None, :]
    tl.store(y_ptr + rows[:, None] * N + to[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def geglu_backward_flat(dy_ptr, e_ptr, g_ptr, n, BLOCK: tl.constexpr):
    """The exact GELU's gradients by flat offsets: result and both gradients take the operands' places."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    dy = tl.load(dy_ptr + offs, mask=mask, other=0).to(tl.float32)
    e = tl.load(e_ptr + offs, mask=mask, other=0).to(tl.float32)
    g = tl.load(g_ptr + offs, mask=mask, other=0).to(tl.float32)
    cdf = 0.5 * (tl.erf(e * 0.70710678) + 1.0)
    f = cdf * e
    slope = cdf + 0.39894228 * e * tl.exp(-0.5 * e * e)
    tl.store(dy_ptr + offs, (f * g).to(dy_ptr.dtype.element_ty), mask=mask)
    tl.store(e_ptr + offs, (dy * g * slope).to(e_ptr.dtype.element_ty), mask=mask)
    tl.store(g_ptr + offs, (dy * f).to(g_ptr.dtype.element_ty), mask=mask)


@jit
def pad_sequences(
    x_ptr, starts_ptr, y_ptr, L, D, value, BL: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """Packed rows to a padded batch: rows beyond a sequence's end get a constant."""
    b = tl.program_id(2)
    start = tl.load(starts_ptr + b)
    length = tl.load(starts_ptr + b + 1) - start
    rows = tl.program_id(0) * BL + tl.arange(0, BL)
    cols = tl.program_id(1) * BD + tl.arange(0, BD)
    inside = (rows < length)[:, None] & (cols < D)[None, :]
    x = tl.load(x_ptr + (start + rows)[:, None] * D + cols[None, :], mask=inside, other=value)
    mask = (rows < L)[:, None] & (cols < D)[None, :]
    tl.store(y_ptr + (b * L + rows)[:, None] * D + cols[None, :], x, mask=mask)


@jit
def cache_write_int8(
    k_ptr, v_ptr, q_ptr, s_ptr, slots_ptr, HEADS, D: tl.constexpr, PAGE: tl.constexpr
):  # fmt: skip
    """A head of a token a program: its key and value to int8 with a scale each, in a page of a cache."""
    token, head = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slots_ptr + token)
    if slot >= 0:
        d = tl.arange(0, D)
        at = (token * HEADS + head) * D + d
        k = tl.load(k_ptr + at).to(tl.float32)
        v = tl.load(v_ptr + at).to(tl.float32)
        k_scale = tl.maximum(tl.max(tl.abs(k), 0) / 127.0, 1e-8)
        v_scale = tl.maximum(tl.max(tl.abs(v), 0) / 127.0, 1e-8)
        place = ((slot // PAGE * HEADS + head) * PAGE + slot % PAGE) * 2
        tl.store(q_ptr + place * D + d, tl.floor(k / k_scale + 0.5).to(tl.int8))
        tl.store(q_ptr + (place + 1) * D + d, tl.floor(v / v_scale + 0.5).to(tl.int8))
        tl.store(s_ptr + place, k_scale)
        tl.store(s_ptr + place + 1, v_scale)


@jit
def combine_shared(
    x_ptr, w_ptr, places_ptr, shared_ptr, y_ptr, factor, D, TOP: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A token's experts and the one that all share: an unrolled sum of gathered rows, in f32."""
    token = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    acc = tl.load(shared_ptr + token.to(tl.int64) * D + cols, mask=mask, other=0.0).to(tl.float32)
    for i in tl.static_range(TOP):
        place = tl.load(places_ptr + token * TOP + i).to(tl.int64)
        w = tl.load(w_ptr + token * TOP + i) * factor
        acc += w * tl.load(x_ptr + place * D + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + token.to(tl.int64) * D + cols, acc.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def transpose_tiles(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """A batch of matrices, transposed by tiles; a tile's number becomes its row and column."""
    tile, batch = tl.program_id(0), tl.program_id(1)
    n_tiles = tl.cdiv(N, BN)
    rows = tile // n_tiles * BM + tl.arange(0, BM)
    cols = tile % n_tiles * BN + tl.arange(0, BN)
    base = batch.to(tl.int64) * M * N
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(x_ptr + base + rows[:, None] * N + cols[None, :], mask=mask)
    mask = (cols < N)[:, None] & (rows < M)[None, :]
    tl.store(y_ptr + base + cols[:, None] * M + rows[None, :], tl.trans(x), mask=mask)


@jit
def max_pool(x_ptr, y_ptr, n, H, W, OH, OW, KERNEL: tl.constexpr, BLOCK: tl.constexpr):
    """The largest of each window, stride 2 and padding 1: flat indices are divided, loops are unrolled."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    plane, rest = i // (OH * OW), i % (OH * OW)
    y0, x0 = rest // OW * 2 - 1, rest % OW * 2 - 1
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    for r in tl.static_range(KERNEL):
        for s in tl.static_range(KERNEL):
            yy, xx = y0 + r, x0 + s
            inside = (i < n) & (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
            v = tl.load(x_ptr + (plane * H + yy) * W + xx, mask=inside, other=float("-inf"))
            top = tl.maximum(top, v.to(tl.float32))
    tl.store(y_ptr + i, top.to(y_ptr.dtype.element_ty), mask=i < n)


@jit
def sgd_master(
    p_ptr, master_ptr, m_ptr, g_ptr, scale_ptr, n, lr, momentum, decay, BLOCK: tl.constexpr
):  # fmt: skip
    """Nesterov's momentum on weights of f32, their halves beside; a loaded scale for gradients."""
    inverse = 1.0 / tl.load(scale_ptr)
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, n, step):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < n
        w = tl.load(master_ptr + offs, mask=mask)
        g = tl.load(g_ptr + offs, mask=mask).to(tl.float32) * inverse + decay * w
        m = momentum * tl.load(m_ptr + offs, mask=mask) + g
        w -= lr * (g + momentum * m)
        tl.store(m_ptr + offs, m, mask=mask)
        tl.store(master_ptr + offs, w, mask=mask)
        tl.store(p_ptr + offs, w.to(p_ptr.dtype.element_ty), mask=mask)


@jit
def adam_small_states(
    p_ptr, g_ptr, m_ptr, v_ptr, ms_ptr, vs_ptr, n, lr, beta1, beta2, eps, BLOCK: tl.constexpr
):  # fmt: skip
    """Adam with states of a byte: a block's scales are loaded, and new ones are found at its end."""
    block = tl.program_id(0)
    offs = block * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    g = tl.load(g_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(m_ptr + offs, mask=mask, other=0).to(tl.float32) * tl.load(ms_ptr + block)
    v = tl.load(v_ptr + offs, mask=mask, other=0).to(tl.float32) * tl.load(vs_ptr + block)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v * v + (1 - beta2) * g * g
    p = tl.load(p_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    root = tl.sqrt(v)
    p -= lr * m / (root + eps)
    m_scale = tl.maximum(tl.max(tl.abs(m), 0) / 127.0, 1e-12)
    v_scale = tl.maximum(tl.max(root, 0) / 255.0, 1e-12)
    tl.store(p_ptr + offs, p.to(p_ptr.dtype.element_ty), mask=mask)
    tl.store(m_ptr + offs, tl.floor(m / m_scale + 0.5).to(tl.int8), mask=mask)
    tl.store(v_ptr + offs, tl.floor(root / v_scale + 0.5).to(tl.uint8), mask=mask)
    tl.store(ms_ptr + block, m_scale)
    tl.store(vs_ptr + block, v_scale)


@jit
def squares_strided(x_ptr, part_ptr, largest_ptr, n, BLOCK: tl.constexpr):
    """A gradient's norm: programs stride over blocks; each stores a sum of squares and a largest size."""
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    top = tl.zeros((BLOCK,), tl.float32)
    block = pid
    while block * BLOCK < n:
        offs = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
        acc += x * x
        top = tl.maximum(top, tl.abs(x))
        block += tl.num_programs(0)
    tl.store(part_ptr + pid, tl.sum(acc))
    tl.store(largest_ptr + pid, tl.max(top))


@jit
def fp4_decode(q_ptr, s_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Floats of 4 bits, two in a byte, 32 with a power of two: bits are moved to those of f32."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    bytes_ = tl.program_id(1) * (BN // 2) + tl.arange(0, BN // 2)
    q = tl.load(
        q_ptr + rows[:, None] * (N // 2) + bytes_[None, :], mask=(rows < M)[:, None], other=0
    )
    code = tl.reshape(tl.join(q & 15, q >> 4), (BM, BN)).to(tl.int32)
    size = code & 7
    bits = tl.where(size == 1, 126 << 23, (size << 22) + (126 << 23))
    value = tl.where(size == 0, 0.0, bits.to(tl.float32, bitcast=True))
    value = tl.where(code > 7, -value, value)
    groups = tl.program_id(1) * (BN // 32) + tl.arange(0, BN // 32)
    s = tl.load(
        s_ptr + rows[:, None] * (N // 32) + groups[None, :], mask=(rows < M)[:, None], other=127
    )
    scale = (s.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    value = tl.reshape(value, (BM, BN // 32, 32)) * scale[:, :, None]
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    y = tl.reshape(value, (BM, BN)).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=(rows < M)[:, None])


@jit
def mix_streams(x_ptr, mix_ptr, add_ptr, beta_ptr, y_ptr, D, S: tl.constexpr, BLOCK: tl.constexpr):
    """Residual streams of a token: each becomes a weighted sum of all, plus its share of a new one."""
    token = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    s, mask = tl.arange(0, S), cols < D
    x_at = token.to(tl.int64) * S * D + s[:, None] * D + cols[None, :]
    x = tl.load(x_ptr + x_at, mask=mask[None, :], other=0.0).to(tl.float32)
    new = tl.load(add_ptr + token.to(tl.int64) * D + cols, mask=mask, other=0.0).to(tl.float32)
    for i in tl.static_range(S):
        w = tl.load(mix_ptr + (token * S + i) * S + s)
        beta = tl.load(beta_ptr + token * S + i)
        y = tl.sum(x * w[:, None], axis=0) + beta * new
        at = y_ptr + (token.to(tl.int64) * S + i) * D + cols
        tl.store(at, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def accept_tokens(
    starts_ptr, draft_ptr, target_ptr, bonus_ptr, out_ptr, count_ptr, STEPS, PLACES: tl.constexpr
):  # fmt: skip
    """Drafted tokens of a request: a loop of scalars keeps those up to the first that the model changes."""
    request = tl.program_id(0)
    start = tl.load(starts_ptr + request)
    drafted = tl.load(starts_ptr + request + 1) - start
    places = tl.arange(0, PLACES)
    tl.store(
        out_ptr + request * STEPS + places, tl.full((PLACES,), -1, tl.int32), mask=places < STEPS
    )
    tl.debug_barrier()
    is_open = 1
    count = 0
    for i in range(drafted):
        if is_open == 1:
            token = tl.load(target_ptr + start + i)
            tl.store(out_ptr + request * STEPS + i, token)
            count += 1
            if token != tl.load(draft_ptr + start + i):
                is_open = 0
    if is_open == 1:
        tl.store(out_ptr + request * STEPS + drafted, tl.load(bonus_ptr + request))
        count += 1
    tl.store(count_ptr + request, count)
