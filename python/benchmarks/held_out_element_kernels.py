# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `held_out` of public_kernels.py that move or update elements: rotary
embeddings, caches, bags, optimisers. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def rope_tokens(
    x_ptr, cos_ptr, sin_ptr, y_ptr, T, sign, H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr
):  # fmt: skip
    """Some tokens of a head a program; a sign of -1 turns gradients back."""
    i_t, i_h, i_b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    t = i_t * BT + tl.arange(0, BT)
    half = tl.arange(0, D // 2)
    mask = (t < T)[:, None]
    table = t[:, None] * (D // 2) + half[None, :]
    cos = tl.load(cos_ptr + table, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=mask, other=0.0).to(tl.float32) * sign
    at = ((i_b * T + t) * H + i_h)[:, None] * D + half[None, :]
    x0 = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    x1 = tl.load(x_ptr + at + D // 2, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, (x0 * cos - x1 * sin).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(y_ptr + at + D // 2, (x0 * sin + x1 * cos).to(y_ptr.dtype.element_ty), mask=mask)


@jit
def layer_scale_backward(
    dy_ptr, x_ptr, gamma_ptr, dx_ptr, part_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A scale for each column: the loop stores a row's gradient and adds up the scale's part."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    cols = pid_n * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    gamma = tl.load(gamma_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(ROWS):
        row = pid_m * ROWS + i
        inside = mask & (row < M)
        dy = tl.load(dy_ptr + row * N + cols, mask=inside, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * N + cols, mask=inside, other=0.0).to(tl.float32)
        acc += dy * x
        tl.store(dx_ptr + row * N + cols, (dy * gamma).to(dx_ptr.dtype.element_ty), mask=inside)
    tl.store(part_ptr + pid_m * N + cols, acc, mask=mask)


@jit
def codebook_weights(
    q_ptr, book_ptr, scale_ptr, out_ptr, n, GROUP: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Two codes of four bits in a byte: a table has their numbers, a group of codes its scale."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n // 2
    codes = tl.load(q_ptr + offs, mask=mask, other=0).to(tl.int32)
    scale = tl.load(scale_ptr + offs // (GROUP // 2), mask=mask, other=0.0)
    high = tl.load(book_ptr + ((codes >> 4) & 0xF)) * scale
    low = tl.load(book_ptr + (codes & 0xF)) * scale
    both = tl.reshape(tl.join(high, low), (2 * BLOCK,))
    to = tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + to, both.to(out_ptr.dtype.element_ty), mask=to < n)


@jit
def dropout_rows(x_ptr, out_ptr, seeds_ptr, stride, n_cols, p, BLOCK: tl.constexpr):
    """A seed is loaded for each row; a loop over the row draws and stores."""
    row = tl.program_id(0)
    seed = tl.load(seeds_ptr + row)
    x_ptr += row * stride
    out_ptr += row * stride
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0)
        keep = tl.rand(seed, cols) > p
        tl.store(out_ptr + cols, tl.where(keep, x / (1 - p), 0.0), mask=mask)


@jit
def embedding_bag(
    table_ptr, ids_ptr, starts_ptr, weights_ptr, out_ptr, D: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A bag a program: weighted rows of a table, one after the other."""
    bag, block = tl.program_id(0), tl.program_id(1)
    cols = block * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    at, end = tl.load(starts_ptr + bag), tl.load(starts_ptr + bag + 1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    while at < end:
        row = tl.load(ids_ptr + at)
        weight = tl.load(weights_ptr + at)
        acc += weight * tl.load(table_ptr + row * D + cols, mask=mask, other=0.0).to(tl.float32)
        at += 1
    tl.store(out_ptr + bag * D + cols, acc.to(out_ptr.dtype.element_ty), mask=mask)


@jit
def spread_rows(
    x_ptr, scale_ptr, places_ptr, y_ptr, y_scale_ptr, D, TOP: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A token's row and scale go to the places of its experts; a negative place is left out."""
    token = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + token * D + cols, mask=cols < D)
    scale = tl.load(scale_ptr + token)
    for i in range(TOP):
        place = tl.load(places_ptr + token * TOP + i).to(tl.int64)
        if place >= 0:
            tl.store(y_ptr + place * D + cols, x, mask=cols < D)
            tl.store(y_scale_ptr + place, scale)


@jit
def cache_write_fp8(
    k_ptr, v_ptr, kc_ptr, vc_ptr, slots_ptr, k_scale_ptr, v_scale_ptr, stride, H: tl.constexpr,
    D: tl.constexpr, BH: tl.constexpr,
):  # fmt: skip
    """Keys and values of a token to slots of a cache of 8-bit floats, a tile of heads a program."""
    token, block = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slots_ptr + token).to(tl.int64)
    if slot < 0:
        return
    h, d = block * BH + tl.arange(0, BH), tl.arange(0, D)
    mask = (h < H)[:, None]
    offs = h[:, None] * D + d[None, :]
    k = tl.load(k_ptr + token * stride + offs, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + token * stride + offs, mask=mask, other=0.0).to(tl.float32)
    k = tl.clamp(k / tl.load(k_scale_ptr), -448.0, 448.0)
    v = tl.clamp(v / tl.load(v_scale_ptr), -448.0, 448.0)
    tl.store(kc_ptr + slot * H * D + offs, k.to(kc_ptr.dtype.element_ty), mask=mask)
    tl.store(vc_ptr + slot * H * D + offs, v.to(vc_ptr.dtype.element_ty), mask=mask)


@jit
def cache_read_pages(
    cache_ptr, table_ptr, lengths_ptr, out_ptr, stride_table, longest, HD: tl.constexpr,
    PAGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Pages of a cache side by side: a page of a sequence a program, columns in a loop."""
    page, batch = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths_ptr + batch)
    if page * PAGE >= length:
        return
    source = tl.load(table_ptr + batch * stride_table + page).to(tl.int64) * PAGE * HD
    target = (batch.to(tl.int64) * longest + page * PAGE) * HD
    rows = tl.arange(0, PAGE)[:, None]
    inside = page * PAGE + rows < length
    for start in range(0, HD, BLOCK):
        cols = start + tl.arange(0, BLOCK)[None, :]
        mask = inside & (cols < HD)
        x = tl.load(cache_ptr + source + rows * HD + cols, mask=mask, other=0.0)
        tl.store(out_ptr + target + rows * HD + cols, x.to(out_ptr.dtype.element_ty), mask=mask)


@jit
def lion_list(
    params_ptr, grads_ptr, moments_ptr, sizes_ptr, lr, beta1, beta2, decay, BLOCK: tl.constexpr
):  # fmt: skip
    """Many tensors by loaded addresses: some programs share a tensor, each in a loop over its blocks."""
    tensor = tl.program_id(1)
    size = tl.load(sizes_ptr + tensor)
    p_ptr = tl.load(params_ptr + tensor).to(tl.pointer_type(tl.float32))
    g_ptr = tl.load(grads_ptr + tensor).to(tl.pointer_type(tl.bfloat16))
    m_ptr = tl.load(moments_ptr + tensor).to(tl.pointer_type(tl.float32))
    for start in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < size
        p = tl.load(p_ptr + offs, mask=mask, other=0.0)
        g = tl.load(g_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        m = tl.load(m_ptr + offs, mask=mask, other=0.0)
        update = beta1 * m + (1 - beta1) * g
        step = tl.where(update > 0, 1.0, tl.where(update < 0, -1.0, 0.0))
        tl.store(p_ptr + offs, p * (1 - lr * decay) - lr * step, mask=mask)
        tl.store(m_ptr + offs, beta2 * m + (1 - beta2) * g, mask=mask)


@jit
def edge_softmax(starts_ptr, x_ptr, y_ptr, HEADS: tl.constexpr, BLOCK: tl.constexpr):
    """A softmax over the edges of each node, for all heads at once; loops have loaded bounds."""
    node = tl.program_id(0)
    begin = tl.load(starts_ptr + node)
    end = tl.load(starts_ptr + node + 1)
    e, h = tl.arange(0, BLOCK), tl.arange(0, HEADS)
    top = tl.full((BLOCK, HEADS), -1e30, dtype=tl.float32)
    for start in range(begin, end, BLOCK):
        at = (start + e)[:, None] * HEADS + h[None, :]
        x = tl.load(x_ptr + at, mask=(start + e)[:, None] < end, other=-1e30)
        top = tl.maximum(top, x.to(tl.float32))
    best = tl.max(top, axis=0)
    total = tl.zeros((BLOCK, HEADS), dtype=tl.float32)
    for start in range(begin, end, BLOCK):
        at = (start + e)[:, None] * HEADS + h[None, :]
        x = tl.load(x_ptr + at, mask=(start + e)[:, None] < end, other=-1e30)
        total += tl.exp(x.to(tl.float32) - best[None, :])
    inverse = 1.0 / tl.sum(total, axis=0)
    for start in range(begin, end, BLOCK):
        at = (start + e)[:, None] * HEADS + h[None, :]
        mask = (start + e)[:, None] < end
        x = tl.load(x_ptr + at, mask=mask, other=-1e30).to(tl.float32)
        y = tl.exp(x - best[None, :]) * inverse[None, :]
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def tiny_offsets(ids_ptr, counts_ptr, offsets_ptr, n, E: tl.constexpr, BLOCK: tl.constexpr):
    """One program: how many tokens each expert has, and where these begin, by comparisons and a cumsum."""
    e = tl.arange(0, E)
    counts = tl.zeros((E,), dtype=tl.int32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        ids = tl.load(ids_ptr + offs, mask=offs < n, other=-1)
        counts += tl.sum((ids[:, None] == e[None, :]).to(tl.int32), axis=0)
    tl.store(counts_ptr + e, counts)
    tl.store(offsets_ptr + e, tl.cumsum(counts, axis=0) - counts)
