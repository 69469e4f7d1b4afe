# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `strange` of public_kernels.py that move or update elements: activations, embeddings,
caches, pictures, distances, optimisers. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def relu_bits(x_ptr, bias_ptr, y_ptr, bits_ptr, n, N, BLOCK: tl.constexpr):
    """Bias and ReLU; for the gradient, 32 comparisons become the bits of one word."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    x += tl.load(bias_ptr + offs % N, mask=offs < n, other=0.0).to(tl.float32)
    is_positive = x > 0
    tl.store(y_ptr + offs, tl.where(is_positive, x, 0.0).to(y_ptr.dtype.element_ty), mask=offs < n)
    bits = tl.reshape(is_positive.to(tl.int32), (BLOCK // 32, 32)) << tl.arange(0, 32)[None, :]
    places = tl.program_id(0) * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    tl.store(bits_ptr + places, tl.sum(bits, 1), mask=places < n // 32)


@jit
def rope_cache_fused(
    k_ptr, v_ptr, angles_ptr, slots_ptr, cache_ptr, H: tl.constexpr, D: tl.constexpr,
    PAGE: tl.constexpr,
):  # fmt: skip
    """A token's keys are rotated on their way to pages of a cache; its values are copied beside them."""
    token = tl.program_id(0)
    slot = tl.load(slots_ptr + token)
    if slot == -1:
        return
    h, half = tl.arange(0, H)[:, None], tl.arange(0, D // 2)[None, :]
    cos = tl.load(angles_ptr + token * D + half).to(tl.float32)
    sin = tl.load(angles_ptr + token * D + D // 2 + half).to(tl.float32)
    source = token * H * D + h * D + half
    low = tl.load(k_ptr + source).to(tl.float32)
    high = tl.load(k_ptr + source + D // 2).to(tl.float32)
    page, inside = slot // PAGE, slot % PAGE
    to = cache_ptr + page.to(tl.int64) * 2 * PAGE * H * D + inside * H * D + h * D + half
    tl.store(to, (low * cos - high * sin).to(cache_ptr.dtype.element_ty))
    tl.store(to + D // 2, (low * sin + high * cos).to(cache_ptr.dtype.element_ty))
    to += PAGE * H * D
    tl.store(to, tl.load(v_ptr + source))
    tl.store(to + D // 2, tl.load(v_ptr + source + D // 2))


@jit
def strided_add3(
    x_ptr, y_ptr, out_ptr, n, S1, S2, x0, x1, x2, y0, y1, y2, BLOCK: tl.constexpr
):  # fmt: skip
    """A sum of tensors with any strides of three dimensions: flat numbers are divided into indices."""
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    i2 = i % S2
    i1 = i // S2 % S1
    i0 = i // S2 // S1
    x = tl.load(x_ptr + i0 * x0 + i1 * x1 + i2 * x2, mask=mask)
    y = tl.load(y_ptr + i0 * y0 + i1 * y1 + i2 * y2, mask=mask)
    tl.store(out_ptr + i, x + y, mask=mask)


@jit
def embed_positions(
    ids_ptr, table_ptr, positions_ptr, w_ptr, y_ptr, T, D, eps, BLOCK: tl.constexpr
):  # fmt: skip
    """A token's vector plus its position's, and an RMS norm of the sum."""
    row = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    mask = d < D
    token = tl.load(ids_ptr + row)
    x = tl.load(table_ptr + token * D + d, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(positions_ptr + row % T * D + d, mask=mask, other=0.0).to(tl.float32)
    x *= tl.rsqrt(tl.sum(x * x, 0) / D + eps)
    x *= tl.load(w_ptr + d, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row.to(tl.int64) * D + d, x.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def index_add_rows(
    x_ptr, index_ptr, y_ptr, M, D, alpha, BM: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """Rows times a number are added where a list says, by a tile of atomics."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BD + tl.arange(0, BD)
    mask = (rows < M)[:, None] & (cols < D)[None, :]
    to = tl.load(index_ptr + rows, mask=rows < M, other=0)
    x = tl.load(x_ptr + rows[:, None] * D + cols[None, :], mask=mask, other=0.0)
    tl.atomic_add(y_ptr + to[:, None] * D + cols[None, :], x * alpha, mask=mask, sem="relaxed")


@jit
def patchify(
    x_ptr, y_ptr, C, H, W, P: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A picture's patches as rows: a program has one patch, whose numbers lie channel by channel."""
    i_x, i_y, i_b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    patch = (i_b * tl.num_programs(1) + i_y) * tl.num_programs(0) + i_x
    size = C * P * P
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        c, r, s = i // (P * P), i // P % P, i % P
        at = ((i_b * C + c) * H + i_y * P + r) * W + i_x * P + s
        x = tl.load(x_ptr + at, mask=i < size, other=0.0)
        tl.store(y_ptr + patch * size + i, x, mask=i < size)


@jit
def upsample_bilinear(
    x_ptr, y_ptr, H, W, OH, OW, scale_y, scale_x, BLOCK: tl.constexpr
):  # fmt: skip
    """A larger picture: four loads for each number, weighted by how near they are."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    plane = tl.program_id(1)
    oy, ox = i // OW, i % OW
    fy = tl.maximum((oy + 0.5) * scale_y - 0.5, 0.0)
    fx = tl.maximum((ox + 0.5) * scale_x - 0.5, 0.0)
    y0, x0 = fy.to(tl.int32), fx.to(tl.int32)
    y1, x1 = tl.minimum(y0 + 1, H - 1), tl.minimum(x0 + 1, W - 1)
    wy, wx = fy - y0, fx - x0
    mask = i < OH * OW
    base = x_ptr + plane * H * W
    a = tl.load(base + y0 * W + x0, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(base + y0 * W + x1, mask=mask, other=0.0).to(tl.float32)
    c = tl.load(base + y1 * W + x0, mask=mask, other=0.0).to(tl.float32)
    d = tl.load(base + y1 * W + x1, mask=mask, other=0.0).to(tl.float32)
    y = (a * (1 - wx) + b * wx) * (1 - wy) + (c * (1 - wx) + d * wx) * wy
    tl.store(y_ptr + plane * OH * OW + i, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def depthwise_rows(
    x_ptr, w_ptr, bias_ptr, y_ptr, H, W, C, S: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr
):  # fmt: skip
    """A filter for each channel, channels last: a program has some pixels of a row of a picture."""
    i_w, i_row, i_c = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    col, c = i_w * BW + tl.arange(0, BW), i_c * BC + tl.arange(0, BC)
    row, picture = i_row % H, i_row // H
    acc = tl.zeros((BW, BC), tl.float32) + tl.load(bias_ptr + c, mask=c < C).to(tl.float32)[None, :]
    for r in range(S):
        yy = row + r - S // 2
        if yy >= 0 and yy < H:
            for s in tl.static_range(S):
                xx = col + (s - S // 2)
                mask = ((xx >= 0) & (xx < W))[:, None] & (c < C)[None, :]
                at = ((picture * H + yy) * W + xx)[:, None] * C + c[None, :]
                x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
                w = tl.load(w_ptr + (r * S + s) * C + c, mask=c < C, other=0.0).to(tl.float32)
                acc += x * w[None, :]
    at = (i_row * W + col)[:, None] * C + c[None, :]
    y = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + at, y, mask=(col < W)[:, None] & (c < C)[None, :])


@jit
def lamb_parts(
    p_ptr, g_ptr, m_ptr, v_ptr, u_ptr, norms_ptr, n, beta1, beta2, eps, decay, step,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """LAMB's first step: moments are updated, and squares of weights and of changes added for its ratio."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(p_ptr + offs, mask=mask, other=0.0)
    g = tl.load(g_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(m_ptr + offs, mask=mask, other=0.0)
    v = tl.load(v_ptr + offs, mask=mask, other=0.0)
    m = m + (1 - beta1) * (g - m)
    v = beta2 * v + (1 - beta2) * g * g
    m_hat = m / (1 - tl.exp(step * tl.log(beta1)))
    v_hat = v / (1 - tl.exp(step * tl.log(beta2)))
    u = tl.where(mask, m_hat / (tl.sqrt(v_hat) + eps) + decay * p, 0.0)
    tl.store(m_ptr + offs, m, mask=mask)
    tl.store(v_ptr + offs, v, mask=mask)
    tl.store(u_ptr + offs, u, mask=mask)
    tl.store(norms_ptr + tl.program_id(0) * 2, tl.sum(p * p))
    tl.store(norms_ptr + tl.program_id(0) * 2 + 1, tl.sum(u * u))


@jit
def logit_penalties(
    x_ptr, counts_ptr, repeat_ptr, often_ptr, present_ptr, V, BLOCK: tl.constexpr
):  # fmt: skip
    """Logits of tokens that have been said become less likely, in place; three numbers for each request."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = row.to(tl.int64) * V + cols
    count = tl.load(counts_ptr + at, mask=cols < V, other=0)
    x = tl.load(x_ptr + at, mask=cols < V, other=0.0)
    repeat = tl.where(count > 0, tl.load(repeat_ptr + row), 1.0)
    x = tl.where(x > 0, x / repeat, x * repeat)
    x -= tl.load(often_ptr + row) * count + tl.load(present_ptr + row) * (count > 0).to(tl.float32)
    tl.store(x_ptr + at, x, mask=cols < V)


@jit
def relative_buckets(
    bias_ptr, y_ptr, T, S, H, EXACT: tl.constexpr, BUCKETS: tl.constexpr, factor, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """A head's bias by distance: near ones have a bucket each, far ones share buckets by logarithms."""
    h = tl.program_id(2)
    t, s = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    away = tl.maximum(t[:, None] - s[None, :], 0)
    far = EXACT + (tl.log(tl.maximum(away, 1).to(tl.float32) / EXACT) * factor).to(tl.int32)
    bucket = tl.where(away < EXACT, away, tl.minimum(far, BUCKETS - 1))
    y = tl.load(bias_ptr + bucket * H + h)
    mask = (t < T)[:, None] & (s < S)[None, :]
    tl.store(y_ptr + (h * T + t)[:, None] * S + s[None, :], y, mask=mask)


@jit
def pairwise_l1(x_ptr, y_ptr, d_ptr, M, N, D, BM: tl.constexpr, BN: tl.constexpr):
    """Sums of absolute differences of all pairs of rows: a loop over one dimension at a time."""
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    p_x, p_y = x_ptr + m * D, y_ptr + n * D
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(D):
        x = tl.load(p_x, mask=m < M, other=0.0)
        y = tl.load(p_y, mask=n < N, other=0.0)
        acc += tl.abs(x[:, None] - y[None, :])
        p_x += 1
        p_y += 1
    at = m[:, None] * N + n[None, :]
    tl.store(d_ptr + at, acc, mask=(m < M)[:, None] & (n < N)[None, :])


@jit
def weighted_rows(
    x_ptr, ids_ptr, w_ptr, starts_ptr, y_ptr, D, BLOCK: tl.constexpr, UNROLL: tl.constexpr
):  # fmt: skip
    """Sums of gathered rows by weight, as many as a list has: a few at a time, the last ones masked."""
    bag = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    u = tl.arange(0, UNROLL)
    begin, end = tl.load(starts_ptr + bag), tl.load(starts_ptr + bag + 1)
    acc = tl.zeros((UNROLL, BLOCK), tl.float32)
    i = begin
    while i < end:
        live = i + u < end
        row = tl.load(ids_ptr + i + u, mask=live, other=0)
        w = tl.load(w_ptr + i + u, mask=live, other=0.0)
        mask = live[:, None] & (d < D)[None, :]
        x = tl.load(x_ptr + row[:, None] * D + d[None, :], mask=mask, other=0.0)
        acc += x.to(tl.float32) * w[:, None]
        i += UNROLL
    y = tl.sum(acc, 0).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + bag.to(tl.int64) * D + d, y, mask=d < D)


@jit
def stochastic_bf16(x_ptr, random_ptr, y_ptr, n, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """Rounds to bf16 by chance: 16 random bits are added below the bits that stay."""
    for turn in tl.static_range(TURNS):
        offs = (tl.program_id(0) * TURNS + turn) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        noise = tl.load(random_ptr + offs, mask=offs < n, other=0)
        bits = x.to(tl.int32, bitcast=True) + (noise & 0xFFFF)
        kept = (bits & -65536).to(tl.float32, bitcast=True)
        tl.store(y_ptr + offs, kept.to(tl.bfloat16), mask=offs < n)
