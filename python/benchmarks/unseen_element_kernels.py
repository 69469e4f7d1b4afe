# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `unseen` of public_kernels.py without long loops: rotary embeddings,
gates, gathers, copies, optimisers. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def rope_halves(
    q_ptr, q_stride, k_ptr, k_stride, cos_ptr, sin_ptr, T, QH: tl.constexpr, KH: tl.constexpr,
    PQH: tl.constexpr, PKH: tl.constexpr, HD: tl.constexpr,
):  # fmt: skip
    """Queries and keys of a token in place; halves of a head turn into each other."""
    pid = tl.program_id(0).to(tl.int64)
    q_ptr = q_ptr + pid * q_stride
    k_ptr = k_ptr + pid * k_stride
    offs = tl.arange(0, HD // 2)
    cos = tl.load(cos_ptr + (pid % T) * HD + offs)
    sin = tl.load(sin_ptr + (pid % T) * HD + offs)
    q_first = tl.arange(0, PQH)[:, None] * HD + offs[None, :]
    k_first = tl.arange(0, PKH)[:, None] * HD + offs[None, :]
    q_mask = tl.arange(0, PQH)[:, None] < QH
    k_mask = tl.arange(0, PKH)[:, None] < KH
    q_1 = tl.load(q_ptr + q_first, mask=q_mask, other=0).to(sin.dtype)
    k_1 = tl.load(k_ptr + k_first, mask=k_mask, other=0).to(sin.dtype)
    q_2 = tl.load(q_ptr + q_first + HD // 2, mask=q_mask, other=0).to(sin.dtype)
    k_2 = tl.load(k_ptr + k_first + HD // 2, mask=k_mask, other=0).to(sin.dtype)
    tl.store(q_ptr + q_first, q_1 * cos - q_2 * sin, mask=q_mask)
    tl.store(q_ptr + q_first + HD // 2, q_2 * cos + q_1 * sin, mask=q_mask)
    tl.store(k_ptr + k_first, k_1 * cos - k_2 * sin, mask=k_mask)
    tl.store(k_ptr + k_first + HD // 2, k_2 * cos + k_1 * sin, mask=k_mask)


@jit
def rope_pairs(
    x_ptr, cos_ptr, sin_ptr, y_ptr, T, H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr
):
    """Neighbours turn into each other: a split of pairs, and a join of the results."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    head, batch = tl.program_id(1), tl.program_id(2)
    d = tl.arange(0, D)
    half = tl.arange(0, D // 2)
    at = ((batch * T + t[:, None]) * H + head) * D + d[None, :]
    mask = t[:, None] < T
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    even, odd = tl.split(tl.reshape(x, (BT, D // 2, 2)))
    cos = tl.load(cos_ptr + t[:, None] * (D // 2) + half[None, :], mask=mask, other=0.0)
    sin = tl.load(sin_ptr + t[:, None] * (D // 2) + half[None, :], mask=mask, other=0.0)
    y = tl.join(even * cos - odd * sin, odd * cos + even * sin)
    tl.store(y_ptr + at, tl.reshape(y, (BT, D)).to(y_ptr.dtype.element_ty), mask=mask)


@jit
def rope_positions(
    x_ptr, positions_ptr, cache_ptr, y_ptr, tokens, H: tl.constexpr, D: tl.constexpr,
    ROT: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """A cache of cosines and sines by loaded positions; the columns from ROT on are copied."""
    token = tl.program_id(0)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    ok = heads[:, None] < H
    position = tl.load(positions_ptr + token)
    half = tl.arange(0, ROT // 2)
    cos = tl.load(cache_ptr + position * ROT + half).to(tl.float32)[None, :]
    sin = tl.load(cache_ptr + position * ROT + ROT // 2 + half).to(tl.float32)[None, :]
    base = token * H * D + heads[:, None] * D
    x1 = tl.load(x_ptr + base + half[None, :], mask=ok, other=0.0).to(tl.float32)
    x2 = tl.load(x_ptr + base + ROT // 2 + half[None, :], mask=ok, other=0.0).to(tl.float32)
    y1 = x1 * cos - x2 * sin
    y2 = x2 * cos + x1 * sin
    tl.store(y_ptr + base + half[None, :], y1.to(y_ptr.dtype.element_ty), mask=ok)
    tl.store(y_ptr + base + ROT // 2 + half[None, :], y2.to(y_ptr.dtype.element_ty), mask=ok)
    rest = ROT + tl.arange(0, D - ROT)
    tl.store(y_ptr + base + rest[None, :], tl.load(x_ptr + base + rest[None, :], mask=ok), mask=ok)


@jit
def geglu(x_ptr, y_ptr, stride_x, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    """Gate and value beside each other in a row; the tanh form of GELU from a sigmoid."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0).to(tl.float32)
    value = tl.load(x_ptr + row * stride_x + n_cols + cols, mask=mask, other=0)
    inner = 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)
    gelu = 0.5 * gate * (1 + (2 * tl.sigmoid(2 * inner) - 1))
    tl.store(y_ptr + row * n_cols + cols, gelu.to(value.dtype) * value, mask=mask)


@jit
def swiglu_backward(dc_ptr, a_ptr, b_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """Both gradients take the place of their operands."""
    pid = tl.program_id(0).to(tl.int64)
    dc_ptr += pid * stride
    a_ptr += pid * stride
    b_ptr += pid * stride
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    dc = tl.load(dc_ptr + cols, mask=mask, other=0)
    a = tl.load(a_ptr + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0)
    sig = tl.sigmoid(a)
    silu = a * sig
    db = dc * silu
    da = dc * (silu * (1 - sig) + sig) * b
    tl.store(a_ptr + cols, da, mask=mask)
    tl.store(b_ptr + cols, db, mask=mask)


@jit
def bias_dropout(x_ptr, bias_ptr, out_ptr, n, columns, p, seed, BLOCK: tl.constexpr):
    """Four random numbers for each offset serve four parts of the block."""
    start = tl.program_id(0) * BLOCK * 4
    offs = tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.rand4x(seed, tl.program_id(0) * BLOCK + offs)
    for i in tl.static_range(4):
        at = start + i * BLOCK + offs
        mask = at < n
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        x += tl.load(bias_ptr + at % columns, mask=mask, other=0.0)
        r = r0 if i == 0 else (r1 if i == 1 else (r2 if i == 2 else r3))
        tl.store(out_ptr + at, tl.where(r > p, x / (1 - p), 0.0), mask=mask)


@jit
def embedding_gradient(
    grad_ptr, ids_ptr, out_ptr, tokens, D, padding, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr
):  # fmt: skip
    """Gradients of rows of a table: tokens with the same row are added by atomics."""
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    row = tl.load(ids_ptr + t, mask=t < tokens, other=padding)
    mask = ((t < tokens) & (row != padding))[:, None] & (d < D)[None, :]
    grad = tl.load(grad_ptr + t[:, None] * D + d[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + row[:, None] * D + d[None, :], grad.to(tl.float32), mask=mask)


@jit
def moe_combine(
    y_ptr, w_ptr, place_ptr, out_ptr, D: tl.constexpr, TOP: tl.constexpr, BD: tl.constexpr
):
    """The weighted sum over a token's experts; a place of -1 was dropped."""
    token = tl.program_id(0).to(tl.int64)
    for start in range(0, D, BD):
        cols = start + tl.arange(0, BD)
        acc = tl.zeros((BD,), dtype=tl.float32)
        for i in range(TOP):
            place = tl.load(place_ptr + token * TOP + i).to(tl.int64)
            if place >= 0:
                w = tl.load(w_ptr + token * TOP + i)
                acc += tl.load(y_ptr + place * D + cols, mask=cols < D, other=0.0) * w
        tl.store(out_ptr + token * D + cols, acc.to(out_ptr.dtype.element_ty), mask=cols < D)


@jit
def kv_copy(
    key_ptr, value_ptr, k_cache, v_cache, slots_ptr, stride_t, HD: tl.constexpr, D: tl.constexpr,
    PAGE: tl.constexpr, X: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Keys and values of a token into pages; keys in pieces of X numbers beside other tokens'."""
    token = tl.program_id(0)
    slot = tl.load(slots_ptr + token).to(tl.int64)
    if slot < 0:
        return
    page, place = slot // PAGE, slot % PAGE
    i = tl.arange(0, BLOCK)
    mask = i < HD
    head, d = i // D, i % D
    key = tl.load(key_ptr + token * stride_t + i, mask=mask)
    value = tl.load(value_ptr + token * stride_t + i, mask=mask)
    k_at = page * HD * PAGE + head * D * PAGE + (d // X) * PAGE * X + place * X + d % X
    v_at = page * HD * PAGE + head * D * PAGE + d * PAGE + place
    tl.store(k_cache + k_at, key, mask=mask)
    tl.store(v_cache + v_at, value, mask=mask)


@jit
def permute_heads(x_ptr, y_ptr, T, H, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    """Tokens by heads by columns become heads by columns by tokens."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    batch, head = tl.program_id(2) // H, tl.program_id(2) % H
    x_at = ((batch * T + t[:, None]) * H + head) * D + d[None, :]
    x = tl.load(x_ptr + x_at, mask=(t[:, None] < T) & (d[None, :] < D))
    y_at = ((batch * H + head) * D + d[:, None]) * T + t[None, :]
    tl.store(y_ptr + y_at, tl.trans(x), mask=(t[None, :] < T) & (d[:, None] < D))


@jit
def histogram(ids_ptr, out_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """How often each expert is chosen: a histogram of each block, added up by atomics."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + offs, mask=offs < n, other=0)
    counts = tl.histogram(ids, BINS, mask=offs < n)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts)


@jit
def segment_sum(x_ptr, starts_ptr, out_ptr, D, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """Sums (and means) of the rows of each segment, some rows an iteration."""
    seg = tl.program_id(0)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    start = tl.load(starts_ptr + seg)
    stop = tl.load(starts_ptr + seg + 1)
    acc = tl.zeros((BLOCK_R, BLOCK_D), dtype=tl.float32)
    row = start
    while row < stop:
        rows = row + tl.arange(0, BLOCK_R)
        mask = (rows[:, None] < stop) & (d[None, :] < D)
        acc += tl.load(x_ptr + rows[:, None] * D + d[None, :], mask=mask, other=0.0)
        row += BLOCK_R
    count = tl.maximum(stop - start, 1)
    tl.store(out_ptr + seg * D + d, tl.sum(acc, 0) / count, mask=d < D)


@jit
def adam_list(
    addresses_ptr, sizes_ptr, blocks_ptr, lr, beta1, beta2, eps, decay, c1, c2, LISTS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """AdamW over many tensors: a block's tensor and its part are looked up, then the addresses."""
    pid = tl.program_id(0)
    tensor = tl.load(blocks_ptr + 2 * pid)
    part = tl.load(blocks_ptr + 2 * pid + 1)
    n = tl.load(sizes_ptr + tensor)
    p_ptr = tl.load(addresses_ptr + tensor).to(tl.pointer_type(tl.float32))
    g_ptr = tl.load(addresses_ptr + LISTS + tensor).to(tl.pointer_type(tl.float32))
    m_ptr = tl.load(addresses_ptr + 2 * LISTS + tensor).to(tl.pointer_type(tl.float32))
    v_ptr = tl.load(addresses_ptr + 3 * LISTS + tensor).to(tl.pointer_type(tl.float32))
    offs = part * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(p_ptr + offs, mask=mask)
    g = tl.load(g_ptr + offs, mask=mask)
    m = tl.load(m_ptr + offs, mask=mask)
    v = tl.load(v_ptr + offs, mask=mask)
    m = beta1 * m + (1.0 - beta1) * g
    v = beta2 * v + (1.0 - beta2) * g * g
    p = p * (1.0 - lr * decay) - lr * (m / c1) / (tl.sqrt(v / c2) + eps)
    tl.store(p_ptr + offs, p, mask=mask)
    tl.store(m_ptr + offs, m, mask=mask)
    tl.store(v_ptr + offs, v, mask=mask)


@jit
def tiny_bias_gelu(x_ptr, bias_ptr, y_ptr, n, columns, BLOCK_SIZE: tl.constexpr):
    """A few microseconds: a bias and the exact GELU."""
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    x += tl.load(bias_ptr + offsets % columns, mask=mask).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)
