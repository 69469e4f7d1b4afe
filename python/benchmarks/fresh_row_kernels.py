# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `fresh` of public_kernels.py that go over rows: softmaxes, probabilities of labels,
choices, norms, sums of columns, quantisation. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def softmax_three_loops(x_ptr, y_ptr, stride, n_cols, LOG2E: tl.constexpr, BLOCK: tl.constexpr):
    """Three loops: lanes' maxima, then sums of powers of 2, then quotients; tiles stay in L2."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    y_ptr += row * stride
    lanes = tl.arange(0, BLOCK)
    tops = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(
            x_ptr + start + lanes, mask=mask, other=-float("inf"), eviction_policy="evict_last"
        )
        tops = tl.maximum(tops, x.to(tl.float32))
    top = tl.max(tops, 0) * LOG2E
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(
            x_ptr + start + lanes, mask=mask, other=-float("inf"), eviction_policy="evict_last"
        )
        sums += tl.exp2(x.to(tl.float32) * LOG2E - top)
    factor = 1.0 / tl.sum(sums, 0)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0, eviction_policy="evict_first")
        y = tl.exp2(x.to(tl.float32) * LOG2E - top) * factor
        tl.store(y_ptr + start + lanes, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def masked_softmax(
    x_ptr, mask_ptr, bias_ptr, y_ptr, scale, heads, queries, keys, ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Scores of attention with a mask of bytes and a bias of each head: a short loop over rows."""
    block, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    k = tl.arange(0, BLOCK)
    base = (batch * heads + head) * queries
    for i in range(ROWS):
        q = block * ROWS + i
        if q < queries:
            x = (
                tl.load(x_ptr + (base + q) * keys + k, mask=k < keys, other=0.0).to(tl.float32)
                * scale
            )
            x += tl.load(bias_ptr + (head * queries + q) * keys + k, mask=k < keys, other=0.0).to(
                tl.float32
            )
            seen = tl.load(mask_ptr + (batch * queries + q) * keys + k, mask=k < keys, other=0)
            x = tl.where(seen != 0, x, -10000.0)
            x = tl.where(k < keys, x, float("-inf"))
            e = tl.exp(x - tl.max(x, axis=0))
            y = e / tl.sum(e, axis=0)
            tl.store(y_ptr + (base + q) * keys + k, y.to(y_ptr.dtype.element_ty), mask=k < keys)


@jit
def token_logps(x_ptr, labels_ptr, old_ptr, logp_ptr, loss_ptr, n_cols, clip, BLOCK: tl.constexpr):
    """The logarithm of a label's probability by a `while` loop, and a clipped ratio to an older one."""
    row = tl.program_id(0)
    x_ptr += row.to(tl.int64) * n_cols
    top = -1e38
    total = 0.0
    off = 0
    while off < n_cols:
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-1e38).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
        top = new
        off += BLOCK
    label = tl.load(labels_ptr + row)
    logp = tl.load(x_ptr + label).to(tl.float32) - top - tl.log(total)
    ratio = tl.exp(logp - tl.load(old_ptr + row))
    bounded = tl.minimum(tl.maximum(ratio, 1 - clip), 1 + clip)
    tl.store(logp_ptr + row, logp)
    tl.store(loss_ptr + row, -tl.minimum(ratio, bounded))


@jit
def gate_sort(logits_ptr, w_ptr, ids_ptr, E: tl.constexpr, TOP: tl.constexpr):
    """Router: numbers and indices become one key, a sort puts the best first; a softmax of the best."""
    token = tl.program_id(0)
    e = tl.arange(0, E)
    bits = tl.load(logits_ptr + token * E + e).to(tl.float32).to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    key = (ordered.to(tl.int64) << 32) | (E - 1 - e).to(tl.int64)
    key = tl.sort(key, descending=True)
    ids = E - 1 - (key & 0xFFFFFFFF).to(tl.int32)
    ordered = (key >> 32).to(tl.int32)
    x = (ordered ^ ((ordered >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    x = tl.where(e < TOP, x, float("-inf"))
    p = tl.exp(x - tl.max(x, axis=0))
    tl.store(w_ptr + token * TOP + e, p / tl.sum(p, axis=0), mask=e < TOP)
    tl.store(ids_ptr + token * TOP + e, ids, mask=e < TOP)


@jit
def min_p_filter(x_ptr, min_p_ptr, y_ptr, kept_ptr, n_cols, temperature, BLOCK: tl.constexpr):
    """Logits far below the largest become -inf; the loops count what is kept and sum it up."""
    row = tl.program_id(0)
    base = row.to(tl.int64) * n_cols
    min_p = tl.load(min_p_ptr + row)
    top = float("-inf")
    for i in range(tl.cdiv(n_cols, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < n_cols, other=float("-inf"))
        top = tl.maximum(top, tl.max(x.to(tl.float32)))
    least = top + tl.log(min_p) * temperature
    kept = tl.zeros((BLOCK,), dtype=tl.int32)
    for i in range(tl.cdiv(n_cols, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        keep = x >= least
        kept += keep.to(tl.int32)
        y = tl.where(keep, x / temperature, float("-inf"))
        tl.store(y_ptr + base + cols, y, mask=cols < n_cols)
    tl.store(kept_ptr + row, tl.sum(kept))


@jit
def head_norm_rope(
    x_ptr, w_ptr, cos_ptr, sin_ptr, y_ptr, T, eps, H: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """The heads of a token: an RMS norm of each, whose halves are turned at once."""
    row = tl.program_id(0)
    t = row % T
    h, half = tl.arange(0, H), tl.arange(0, D // 2)
    at = (row * H + h)[:, None] * D + half[None, :]
    low = tl.load(x_ptr + at).to(tl.float32)
    high = tl.load(x_ptr + at + D // 2).to(tl.float32)
    square = tl.sum(low * low, 1) + tl.sum(high * high, 1)
    rstd = 1.0 / tl.sqrt(square / D + eps)
    low = low * rstd[:, None] * tl.load(w_ptr + half).to(tl.float32)[None, :]
    high = high * rstd[:, None] * tl.load(w_ptr + half + D // 2).to(tl.float32)[None, :]
    cos = tl.load(cos_ptr + t * (D // 2) + half)[None, :]
    sin = tl.load(sin_ptr + t * (D // 2) + half)[None, :]
    tl.store(y_ptr + at, (low * cos - high * sin).to(y_ptr.dtype.element_ty))
    tl.store(y_ptr + at + D // 2, (high * cos + low * sin).to(y_ptr.dtype.element_ty))


@jit
def _join_moments(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    """Means, squares about them and counts of two parts as those of both."""
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@jit
def layer_norm_welford(
    x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, n_cols, eps, BLOCK: tl.constexpr
):  # fmt: skip
    """Each lane updates a mean and a square as numbers come; a reduction of three values joins lanes."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        more = count + 1
        delta = x - mean
        new = mean + delta / more
        m2 = tl.where(mask, m2 + delta * (x - new), m2)
        mean = tl.where(mask, new, mean)
        count = tl.where(mask, more, count)
    mean, m2, count = tl.reduce((mean, m2, count), 0, _join_moments)
    rstd = tl.rsqrt(m2 / n_cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * w + tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def tanh_norm_backward(
    x_ptr, dy_ptr, w_ptr, dx_ptr, da_ptr, dw_ptr, alpha, M, N, BLOCK: tl.constexpr
):  # fmt: skip
    """Gradients of y = w * tanh(alpha * x): programs take every so-many-th row of some columns."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part, parts = tl.program_id(1), tl.num_programs(1)
    mask = cols < N
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    da = tl.zeros((BLOCK,), tl.float32)
    for row in range(part, M, parts):
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        y = 1 - 2 / (tl.exp(2 * alpha * x) + 1)
        slope = (1 - y * y) * w * dy
        dw += y * dy
        da += slope * x
        tl.store(dx_ptr + row * N + cols, (alpha * slope).to(dx_ptr.dtype.element_ty), mask=mask)
    tl.store(dw_ptr + part * N + cols, dw, mask=mask)
    tl.store(da_ptr + part * tl.num_programs(0) + tl.program_id(0), tl.sum(da))


@jit
def column_stats(
    x_ptr, mean_ptr, var_ptr, run_ptr, M, N, momentum, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):  # fmt: skip
    """A batch norm's mean and variance of columns; tiles of rows are added, a running mean moves on."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = cols < N
    s = tl.zeros((BLOCK_N,), tl.float32)
    ss = tl.zeros((BLOCK_N,), tl.float32)
    for i in tl.range(0, M, BLOCK_M):
        rows = i + tl.arange(0, BLOCK_M)
        mask = (rows < M)[:, None] & inside[None, :]
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        s += tl.sum(x, 0)
        ss += tl.sum(x * x, 0)
    mean = s / M
    old = tl.load(run_ptr + cols, mask=inside, other=0.0)
    tl.store(run_ptr + cols, old + momentum * (mean - old), mask=inside)
    tl.store(mean_ptr + cols, mean, mask=inside)
    tl.store(var_ptr + cols, ss / M - mean * mean, mask=inside)


@jit
def quant_pow2(
    x_ptr, q_ptr, s_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    """Groups to 8-bit floats with powers of two as scales: a tile has rows, groups and columns."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    x = tl.reshape(x, (ROWS, BLOCK // GROUP, GROUP))
    largest = tl.maximum(tl.max(tl.abs(x), axis=2), 1e-4)
    exponent = tl.ceil(tl.log2(largest / 448.0))
    q = tl.reshape(x * tl.exp2(-exponent)[:, :, None], (ROWS, BLOCK))
    tl.store(q_ptr + rows[:, None] * N + cols[None, :], q.to(q_ptr.dtype.element_ty), mask=mask)
    groups = tl.program_id(1) * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)
    s_mask = (rows < M)[:, None] & (groups < N // GROUP)[None, :]
    at = rows[:, None] * (N // GROUP) + groups[None, :]
    tl.store(s_ptr + at, (exponent + 127).to(tl.uint8), mask=s_mask)


@jit
def pack_ternary(x_ptr, q_ptr, s_ptr, N, BLOCK: tl.constexpr):
    """Rows as -1, 0 and 1 by their mean size: four numbers of a row are 2 bits each of a byte."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, N, BLOCK):
        cols = i + tl.arange(0, BLOCK)
        total += tl.abs(tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32))
    scale = tl.maximum(tl.sum(total) / N, 1e-5)
    for i in range(0, N // 4, BLOCK):
        place = i + tl.arange(0, BLOCK)
        byte = tl.zeros((BLOCK,), tl.int32)
        for part in tl.static_range(4):
            at = x_ptr + row * N + place * 4 + part
            x = tl.load(at, mask=place < N // 4, other=0.0).to(tl.float32) / scale
            code = tl.where(x > 0.5, 2, tl.where(x < -0.5, 0, 1))
            byte |= code << (2 * part)
        tl.store(q_ptr + row * (N // 4) + place, byte.to(tl.uint8), mask=place < N // 4)
    tl.store(s_ptr + row, scale)


@jit
def code_search(x_ptr, book_ptr, q_ptr, s_ptr, n, BLOCK: tl.constexpr):
    """Blocks to bytes: the nearest of 256 sorted numbers, found by eight halvings of a gathered table."""
    block = tl.program_id(0)
    offs = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-12)
    x = x / largest
    low = tl.zeros((BLOCK,), tl.int32)
    high = tl.full((BLOCK,), 255, tl.int32)
    for _ in range(8):
        middle = (low + high) // 2
        is_above = x > tl.load(book_ptr + middle)
        low = tl.where(is_above, middle, low)
        high = tl.where(is_above, high, middle)
    below = tl.abs(x - tl.load(book_ptr + low))
    above = tl.abs(x - tl.load(book_ptr + high))
    code = tl.where(below <= above, low, high)
    tl.store(q_ptr + offs, code.to(tl.uint8), mask=offs < n)
    tl.store(s_ptr + block, largest)


@jit
def amax_middle(x_ptr, y_ptr, at_ptr, M, K, N, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    """The largest along the middle of three dimensions, and where it is: a running tile of maxima."""
    m = tl.program_id(0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    top = tl.full((BLOCK_N,), float("-inf"), tl.float32)
    where = tl.zeros((BLOCK_N,), tl.int32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        mask = (k < K)[:, None] & (n < N)[None, :]
        at = m * K * N + k[:, None] * N + n[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=float("-inf")).to(tl.float32)
        here, index = tl.max(x, 0, return_indices=True)
        better = here > top
        top = tl.where(better, here, top)
        where = tl.where(better, start + index, where)
    tl.store(y_ptr + m * N + n, top, mask=n < N)
    tl.store(at_ptr + m * N + n, where.to(tl.int64), mask=n < N)


@jit
def _keep_larger(value_a, index_a, value_b, index_b):
    """The larger of two numbers with its index; the later one among equals."""
    is_second = value_b >= value_a
    return tl.where(is_second, value_b, value_a), tl.where(is_second, index_b, index_a)


@jit
def running_max(x_ptr, y_ptr, at_ptr, N, BLOCK: tl.constexpr):
    """Running maxima of a row and their places: a scan of pairs, and a carry from block to block."""
    row = tl.program_id(0)
    best = float("-inf")
    best_at = 0
    lanes = tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        y, at = tl.associative_scan((x, cols), 0, _keep_larger)
        is_old = y < best
        y = tl.where(is_old, best, y)
        at = tl.where(is_old, best_at, at)
        tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)
        tl.store(at_ptr + row * N + cols, at, mask=cols < N)
        best = tl.max(y, 0)
        best_at = tl.max(tl.where(y == best, at, 0), 0)


@jit
def nearest_code(
    x_ptr, book_ptr, norm_ptr, ids_ptr, M, CODES, D: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr
):  # fmt: skip
    """Vector quantisation: products with blocks of codes, the least distance so far and its code."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * D + d[None, :], mask=(rows < M)[:, None], other=0.0)
    least = tl.full((BM,), float("inf"), tl.float32)
    best = tl.zeros((BM,), tl.int32)
    for start in range(0, CODES, BC):
        codes = start + tl.arange(0, BC)
        book = tl.load(
            book_ptr + codes[None, :] * D + d[:, None], mask=(codes < CODES)[None, :], other=0.0
        )
        norm = tl.load(norm_ptr + codes, mask=codes < CODES, other=float("inf"))
        distance = norm[None, :] - 2.0 * tl.dot(x, book)
        here = tl.min(distance, axis=1)
        index = tl.argmin(distance, axis=1)
        best = tl.where(here < least, start + index, best)
        least = tl.minimum(here, least)
    tl.store(ids_ptr + rows, best, mask=rows < M)
