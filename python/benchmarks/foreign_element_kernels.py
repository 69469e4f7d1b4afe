# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `foreign` of public_kernels.py that go over elements: rotations, gathers, weighted
sums over rows, caches, pictures, optimisers. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def rope_axial(
    x_ptr, y_ptr, WIDTH, step, H: tl.constexpr, BH: tl.constexpr, Q: tl.constexpr
):  # fmt: skip
    """Half of a vector turns by a patch's row, half by its column; angles are computed here."""
    i_t, i_b = tl.program_id(0), tl.program_id(1)
    h, i = tl.arange(0, BH), tl.arange(0, Q)
    frequency = tl.exp2(-step * i.to(tl.float32))
    base = ((i_b * tl.num_programs(0) + i_t) * H + h)[:, None] * (4 * Q) + i[None, :]
    mask = (h < H)[:, None]
    for axis in tl.static_range(2):
        place = i_t // WIDTH
        if axis == 1:
            place = i_t % WIDTH
        angle = place * frequency
        cos, sin = tl.cos(angle)[None, :], tl.sin(angle)[None, :]
        a = tl.load(x_ptr + base + axis * 2 * Q, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(x_ptr + base + axis * 2 * Q + Q, mask=mask, other=0.0).to(tl.float32)
        dtype = y_ptr.dtype.element_ty
        tl.store(y_ptr + base + axis * 2 * Q, (a * cos - b * sin).to(dtype), mask=mask)
        tl.store(y_ptr + base + axis * 2 * Q + Q, (b * cos + a * sin).to(dtype), mask=mask)


@jit
def combine_topk_loop(
    x_ptr, place_ptr, w_ptr, y_ptr, D, TOP: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Sums of a token's weighted rows, which lie anywhere: a loop over its choices, some of which are none."""
    token = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(TOP):
        place = tl.load(place_ptr + token * TOP + k)
        if place >= 0:
            x = tl.load(x_ptr + place.to(tl.int64) * D + d, mask=d < D, other=0.0)
            acc += x.to(tl.float32) * tl.load(w_ptr + token * TOP + k)
    tl.store(y_ptr + token * D + d, acc.to(y_ptr.dtype.element_ty), mask=d < D)


@jit
def permute_tokens(x_ptr, place_ptr, y_ptr, D, TOP: tl.constexpr, BLOCK: tl.constexpr):
    """A token's row is loaded a block at a time, and stored to each place of its choices."""
    token = tl.program_id(0)
    k = tl.arange(0, TOP)
    place = tl.load(place_ptr + token * TOP + k)
    for start in range(0, D, BLOCK):
        d = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + token * D + d, mask=d < D, other=0.0)
        tl.store(
            y_ptr + place[:, None] * D + d[None, :],
            tl.broadcast_to(x[None, :], (TOP, BLOCK)),
            mask=(place >= 0)[:, None] & (d < D)[None, :],
        )


@jit
def bag_max(x_ptr, ids_ptr, starts_ptr, y_ptr, at_ptr, D, BLOCK: tl.constexpr):
    """The largest of gathered rows for each column, and which row it was; an empty bag gives zeros."""
    bag = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    begin, end = tl.load(starts_ptr + bag), tl.load(starts_ptr + bag + 1)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    best_at = tl.full((BLOCK,), -1, tl.int32)
    for i in range(begin, end):
        row = tl.load(ids_ptr + i)
        x = tl.load(x_ptr + row.to(tl.int64) * D + d, mask=d < D, other=0.0).to(tl.float32)
        best_at = tl.where(x > best, row, best_at)
        best = tl.maximum(best, x)
    if begin == end:
        best = tl.zeros((BLOCK,), tl.float32)
    tl.store(y_ptr + bag * D + d, best.to(y_ptr.dtype.element_ty), mask=d < D)
    tl.store(at_ptr + bag * D + d, best_at, mask=d < D)


@jit
def graph_attention(
    x_ptr, source_ptr, left_ptr, right_ptr, starts_ptr, y_ptr, H: tl.constexpr, D: tl.constexpr,
    BE: tl.constexpr,
):  # fmt: skip
    """Each node's weighted sum over its neighbours' rows: scores of two numbers, softmax as it goes."""
    node, head = tl.program_id(0), tl.program_id(1)
    d, lanes = tl.arange(0, D), tl.arange(0, BE)
    begin, end = tl.load(starts_ptr + node), tl.load(starts_ptr + node + 1)
    own = tl.load(left_ptr + node * H + head)
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for first in range(begin, end, BE):
        live = first + lanes < end
        source = tl.load(source_ptr + first + lanes, mask=live, other=0)
        s = own + tl.load(right_ptr + source * H + head, mask=live, other=0.0)
        s = tl.where(live, tl.where(s > 0, s, 0.2 * s), -float("inf"))
        new = tl.maximum(top, tl.max(s, 0))
        old = tl.exp(top - new)
        p = tl.exp(s - new)
        x = tl.load(
            x_ptr + (source * H + head)[:, None] * D + d[None, :], mask=live[:, None], other=0.0
        )
        acc = acc * old + tl.sum(x.to(tl.float32) * p[:, None], 0)
        total = total * old + tl.sum(p, 0)
        top = new
    y = tl.where(total > 0, acc / tl.where(total > 0, total, 1.0), 0.0)
    tl.store(y_ptr + (node * H + head) * D + d, y.to(y_ptr.dtype.element_ty))


@jit
def adafactor_apply(
    p_ptr, g_ptr, row_ptr, col_ptr, mean_ptr, M, N, lr, decay, eps, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """An update whose second moment is a product of a row's and a column's, over their mean."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    at = rows[:, None] * N + cols[None, :]
    r = tl.load(row_ptr + rows, mask=rows < M, other=1.0) / tl.load(mean_ptr)
    c = tl.load(col_ptr + cols, mask=cols < N, other=1.0)
    g = tl.load(g_ptr + at, mask=mask, other=0.0).to(tl.float32)
    p = tl.load(p_ptr + at, mask=mask, other=0.0)
    u = g * tl.rsqrt(r + eps)[:, None] * tl.rsqrt(c + eps)[None, :]
    tl.store(p_ptr + at, p * (1.0 - lr * decay) - lr * u, mask=mask)


@jit
def avg_pool_last(
    x_ptr, y_ptr, H, W, OH, OW, C, S: tl.constexpr, STRIDE: tl.constexpr, BP: tl.constexpr,
    BC: tl.constexpr,
):  # fmt: skip
    """Means over S x S pixels, channels last; pixels beyond the border do not count."""
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    base = tl.program_id(2)
    oy, ox = p // OW, p % OW
    acc = tl.zeros((BP, BC), tl.float32)
    count = tl.zeros((BP,), tl.float32)
    for r in tl.static_range(S):
        for s in tl.static_range(S):
            y, x = oy * STRIDE + r - S // 2, ox * STRIDE + s - S // 2
            inside = (y >= 0) & (y < H) & (x >= 0) & (x < W) & (p < OH * OW)
            at = ((base * H + y) * W + x)[:, None] * C + c[None, :]
            mask = inside[:, None] & (c < C)[None, :]
            acc += tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
            count += inside.to(tl.float32)
    out = acc / tl.maximum(count, 1.0)[:, None]
    at = (base * OH * OW + p)[:, None] * C + c[None, :]
    mask = (p < OH * OW)[:, None] & (c < C)[None, :]
    tl.store(y_ptr + at, out.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def cache_move_pages(
    cache_ptr, out_ptr, from_ptr, to_ptr, page_size, heads_each, BLOCK: tl.constexpr
):  # fmt: skip
    """Pages of a cache are copied to other places, which lists name; a program has some heads of a page."""
    i, part = tl.program_id(0), tl.program_id(1)
    source = tl.load(from_ptr + i).to(tl.int64)
    to = tl.load(to_ptr + i).to(tl.int64)
    if source < 0:
        return
    heads = heads_each * tl.num_programs(1)
    for head in range(part * heads_each, (part + 1) * heads_each):
        for start in range(0, page_size, BLOCK):
            at = start + tl.arange(0, BLOCK)
            mask = at < page_size
            x = tl.load(cache_ptr + (source * heads + head) * page_size + at, mask=mask)
            tl.store(out_ptr + (to * heads + head) * page_size + at, x, mask=mask)


@jit
def token_shift_mix(
    x_ptr, mix_ptr, r_ptr, k_ptr, v_ptr, T, D, BT: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """Three mixtures of each token with the one before it; the first token of a sequence has none."""
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    t = tl.program_id(1) * BT + tl.arange(0, BT)
    base = tl.program_id(2) * T
    mask = (t < T)[:, None] & (d < D)[None, :]
    at = (base + t)[:, None] * D + d[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    before = tl.load(x_ptr + at - D, mask=mask & (t > 0)[:, None], other=0.0).to(tl.float32)
    change = before - x
    mix = tl.load(mix_ptr + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(r_ptr + at, (x + change * mix[None, :]).to(r_ptr.dtype.element_ty), mask=mask)
    mix = tl.load(mix_ptr + D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(k_ptr + at, (x + change * mix[None, :]).to(k_ptr.dtype.element_ty), mask=mask)
    mix = tl.load(mix_ptr + 2 * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(v_ptr + at, (x + change * mix[None, :]).to(v_ptr.dtype.element_ty), mask=mask)


@jit
def complex_multiply(x_ptr, w_ptr, y_ptr, n, period, BLOCK: tl.constexpr):
    """Complex numbers whose parts lie beside each other times a filter: split, multiplied, joined."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lanes = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    x = tl.load(x_ptr + lanes, mask=lanes < 2 * n, other=0.0)
    x_re, x_im = tl.split(tl.reshape(x, (BLOCK, 2)))
    w_re = tl.load(w_ptr + i % period * 2, mask=i < n, other=0.0)
    w_im = tl.load(w_ptr + i % period * 2 + 1, mask=i < n, other=0.0)
    y = tl.join(x_re * w_re - x_im * w_im, x_re * w_im + x_im * w_re)
    tl.store(y_ptr + lanes, tl.reshape(y, (BLOCK * 2,)), mask=lanes < 2 * n)


@jit
def block_dequant(x_ptr, s_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    """A matrix of 8-bit floats times a scale for each square block."""
    i, j = tl.program_id(0), tl.program_id(1)
    rows, cols = i * BLOCK + tl.arange(0, BLOCK), j * BLOCK + tl.arange(0, BLOCK)
    at = rows[:, None] * N + cols[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    scale = tl.load(s_ptr + i * tl.cdiv(N, BLOCK) + j)
    y = tl.load(x_ptr + at, mask=mask).to(tl.float32) * scale
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def transducer_joint(
    f_ptr, g_ptr, f_length_ptr, g_length_ptr, y_ptr, T, U, D, BU: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """Each frame's vector plus each label's, and relu: pairs beyond either length are not computed."""
    t, i_u, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    u = i_u * BU + tl.arange(0, BU)
    known = (u < tl.load(g_length_ptr + batch)) & (t < tl.load(f_length_ptr + batch))
    for start in range(0, D, BD):
        d = start + tl.arange(0, BD)
        inside = d < D
        f = tl.load(f_ptr + (batch * T + t) * D + d, mask=inside, other=0.0)
        g = tl.load(
            g_ptr + (batch * U + u)[:, None] * D + d[None, :],
            mask=known[:, None] & inside[None, :],
            other=0.0,
        )
        y = tl.maximum(f[None, :].to(tl.float32) + g.to(tl.float32), 0.0)
        y = tl.where(known[:, None], y, 0.0).to(y_ptr.dtype.element_ty)
        at = ((batch * T + t) * U + u)[:, None] * D + d[None, :]
        tl.store(y_ptr + at, y, mask=(u < U)[:, None] & inside[None, :])
