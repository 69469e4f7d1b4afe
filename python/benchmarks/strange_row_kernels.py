# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `strange` of public_kernels.py that go over rows: softmaxes, losses, choices, norms,
quantisation, scans, sums of columns. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def log_softmax_tiles(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Some rows a program, in two loops over tiles of columns; maxima and sums are vectors of rows."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    top = tl.full([BM], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN)
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=float("-inf"))
        x = tl.where(mask, x.to(tl.float32), -1e30)
        new = tl.maximum(top, tl.max(x, axis=1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new[:, None]), axis=1)
        top = new
    lse = top + tl.log(total)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN)
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        at = rows[:, None] * N + cols[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x - lse[:, None]).to(y_ptr.dtype.element_ty), mask=mask)


@jit
def softmax_backward_loops(y_ptr, dy_ptr, dx_ptr, n_cols, BLOCK: tl.constexpr):
    """The gradient of a softmax: lanes add products in a first loop, a second one goes backwards."""
    row = tl.program_id(0).to(tl.int64) * n_cols
    lanes = tl.arange(0, BLOCK)
    products = tl.zeros((BLOCK,), tl.float32)
    blocks = tl.cdiv(n_cols, BLOCK)
    for i in range(blocks):
        cols = i * BLOCK + lanes
        y = tl.load(y_ptr + row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        products += y * dy
    total = tl.sum(products, 0)
    for i in range(blocks):
        cols = (blocks - 1 - i) * BLOCK + lanes
        y = tl.load(y_ptr + row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        dx = y * (dy - total)
        tl.store(dx_ptr + row + cols, dx.to(dx_ptr.dtype.element_ty), mask=cols < n_cols)


@jit
def race_sample(x_ptr, noise_ptr, token_ptr, n_cols, temperature, BLOCK: tl.constexpr):
    """A sampled token: the largest of logit and noise, kept by a branch whenever a block has a larger one."""
    row = tl.program_id(0)
    base = row.to(tl.int64) * n_cols
    best = -float("inf")
    best_at = 0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + base + cols, mask=mask, other=float("-inf")) / temperature
        noise = tl.load(noise_ptr + base + cols, mask=mask, other=1.0)
        score = tl.where(mask, x - tl.log(noise), float("-inf"))
        here, index = tl.max(score, axis=0, return_indices=True)
        if here > best:
            best = here
            best_at = start + index
    tl.store(token_ptr + row, best_at.to(tl.int64))


@jit
def chunk_lse(
    x_ptr, labels_ptr, lse_ptr, loss_ptr, stride, n_cols, CHUNKS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A large vocabulary by chunks: each stores its log of sums; the first one stores the label's logit."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    x_ptr += row.to(tl.int64) * stride
    cols = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 0)
    tl.store(lse_ptr + row * CHUNKS + chunk, top + tl.log(tl.sum(tl.exp(x - top), 0)))
    if chunk == 0:
        label = tl.load(labels_ptr + row).to(tl.int32)
        loss = 0.0
        if label != -100:
            loss = -1.0 * tl.load(x_ptr + label).to(tl.float32)
        tl.store(loss_ptr + row, loss)


@jit
def tvd_grad(
    p_ptr, q_ptr, labels_ptr, loss_ptr, grad_ptr, n_cols, scale, IGNORE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The distance of two distributions and its gradient; rows with a certain label only become zero."""
    row = tl.program_id(0)
    base = row.to(tl.int64) * n_cols
    if tl.load(labels_ptr + row) == IGNORE:
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            tl.store(grad_ptr + base + cols, 0.0, mask=cols < n_cols)
        tl.store(loss_ptr + row, 0.0)
        return
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        p = tl.load(p_ptr + base + cols, mask=mask, other=0.0).to(tl.float32)
        q = tl.load(q_ptr + base + cols, mask=mask, other=0.0).to(tl.float32)
        grad = tl.where(p > q, 0.5 * scale, -0.5 * scale)
        tl.store(grad_ptr + base + cols, grad, mask=mask)
        total += tl.sum(0.5 * tl.abs(p - q), axis=0)
    tl.store(loss_ptr + row, total * scale)


@jit
def top_p_cut(
    p_ptr, bound_ptr, y_ptr, mass_ptr, n_cols, BLOCK: tl.constexpr
):  # fmt: skip
    """Sorted weights up to a mass: a `while` ends when the sum is enough, another one fills with zeros."""
    row = tl.program_id(0)
    p_ptr += row * n_cols
    y_ptr += row * n_cols
    bound = tl.load(bound_ptr + row)
    lanes = tl.arange(0, BLOCK)
    mass = 0.0
    kept = 0.0
    start = 0
    while (start < n_cols) & (mass < bound):
        mask = start + lanes < n_cols
        p = tl.load(p_ptr + start + lanes, mask=mask, other=0.0)
        sums = mass + tl.cumsum(p, 0)
        p = tl.where(sums - p < bound, p, 0.0)
        tl.store(y_ptr + start + lanes, p, mask=mask)
        kept += tl.sum(p, 0)
        mass = tl.max(sums, 0)
        start += BLOCK
    while start < n_cols:
        tl.store(y_ptr + start + lanes, tl.zeros((BLOCK,), tl.float32), mask=start + lanes < n_cols)
        start += BLOCK
    tl.store(mass_ptr + row, kept)


@jit
def group_norm_backward(
    x_ptr, dy_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, C, PIXELS, PER_GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of a group: loops over channels around loops over pixels, first sums, then results."""
    group, batch = tl.program_id(0), tl.program_id(1)
    first = group * PER_GROUP
    stat = batch * tl.num_programs(0) + group
    mean, rstd = tl.load(mean_ptr + stat), tl.load(rstd_ptr + stat)
    base = (batch * C + first) * PIXELS
    sum_g = 0.0
    sum_gx = 0.0
    for c in range(PER_GROUP):
        w = tl.load(w_ptr + first + c).to(tl.float32)
        for i in range(0, PIXELS, BLOCK):
            p = i + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + base + c * PIXELS + p, mask=p < PIXELS, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + base + c * PIXELS + p, mask=p < PIXELS, other=0.0).to(tl.float32)
            sum_g += w * tl.sum(dy)
            sum_gx += w * tl.sum(dy * (x - mean) * rstd)
    size = PER_GROUP * PIXELS
    for c in range(PER_GROUP):
        w = tl.load(w_ptr + first + c).to(tl.float32)
        for i in range(0, PIXELS, BLOCK):
            p = i + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + base + c * PIXELS + p, mask=p < PIXELS, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + base + c * PIXELS + p, mask=p < PIXELS, other=0.0).to(tl.float32)
            dx = rstd * (w * dy - (sum_g + (x - mean) * rstd * sum_gx) / size)
            at = dx_ptr + base + c * PIXELS + p
            tl.store(at, dx.to(dx_ptr.dtype.element_ty), mask=p < PIXELS)


@jit
def unit_backward(
    x_ptr, dy_ptr, dx_ptr, T, eps, D: tl.constexpr, BD: tl.constexpr, BT: tl.constexpr
):
    """The gradient of vectors of length 1: tiles of rows by block pointers."""
    i_t = tl.program_id(0)
    p_x = tl.make_block_ptr(x_ptr, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    p_dy = tl.make_block_ptr(dy_ptr, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    p_dx = tl.make_block_ptr(dx_ptr, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    b_x = tl.load(p_x, boundary_check=(0, 1)).to(tl.float32)
    b_dy = tl.load(p_dy, boundary_check=(0, 1)).to(tl.float32)
    b_rstd = 1 / tl.sqrt(tl.sum(b_x * b_x, 1) + eps)
    b_y = b_x * b_rstd[:, None]
    b_dx = (b_dy - tl.sum(b_dy * b_y, 1)[:, None] * b_y) * b_rstd[:, None]
    tl.store(p_dx, b_dx.to(p_dx.dtype.element_ty), boundary_check=(0, 1))


@jit
def quant_smooth(x_ptr, smooth_ptr, q_ptr, s_ptr, n_cols, BLOCK: tl.constexpr):
    """Rows times a vector, then to int8 by their largest size, rounded away from zero."""
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    smooth = tl.load(smooth_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32) * smooth
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-5) / 127.0
    y = x / scale
    y = tl.where(y >= 0, y + 0.5, y - 0.5)
    tl.store(q_ptr + row * n_cols + cols, y.to(tl.int8), mask=mask)
    tl.store(s_ptr + row, scale)


@jit
def quant_two_ways(
    x_ptr, q_ptr, s_ptr, qt_ptr, st_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """A tile to 8-bit floats twice: by its rows, and by its columns with a transposed result."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rm, rn = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    x = tl.load(x_ptr + rm[:, None] * N + rn[None, :], mask=mask, other=0.0).to(tl.float32)
    size = tl.abs(x)
    by_row = tl.maximum(tl.max(size, axis=1), 1e-6) / 448.0
    by_col = tl.maximum(tl.max(size, axis=0), 1e-6) / 448.0
    q = (x / by_row[:, None]).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + rm[:, None] * N + rn[None, :], q, mask=mask)
    tl.store(s_ptr + rm * tl.cdiv(N, BN) + pid_n, by_row, mask=rm < M)
    qt = tl.trans((x / by_col[None, :]).to(qt_ptr.dtype.element_ty))
    tl.store(qt_ptr + rn[:, None] * M + rm[None, :], qt, mask=(rn < N)[:, None] & (rm < M)[None, :])
    tl.store(st_ptr + rn * tl.cdiv(M, BM) + pid_m, by_col, mask=rn < N)


@jit
def unpack_three_bits(
    q_ptr, scale_ptr, zero_ptr, y_ptr, K, N, BK: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Ten numbers of 3 bits in an int32: rows of K share one; a scale and a zero for each column."""
    ks = tl.program_id(0) * BK + tl.arange(0, BK)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (ks < K)[:, None] & (cols < N)[None, :]
    q = tl.load(q_ptr + (ks // 10)[:, None] * N + cols[None, :], mask=mask, other=0)
    value = ((q >> (ks % 10 * 3)[:, None]) & 7).to(tl.float32)
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    zero = tl.load(zero_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    y = (value - zero[None, :]) * scale[None, :]
    tl.store(y_ptr + ks[:, None] * N + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def var_mean_tiles(
    x_ptr, var_ptr, mean_ptr, M, N, correction, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Variances of rows: sums in tiles of lanes, then a second loop with the mean known."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    p_row = x_ptr + rows[:, None] * N
    live = (rows < M)[:, None]
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, N, BN):
        cols = (start + tl.arange(0, BN))[None, :]
        sums += tl.load(p_row + cols, mask=live & (cols < N), other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=1) / N
    squares = tl.zeros((BM, BN), tl.float32)
    for start in range(0, N, BN):
        cols = (start + tl.arange(0, BN))[None, :]
        x = tl.load(p_row + cols, mask=live & (cols < N), other=0.0).to(tl.float32)
        away = tl.where(cols < N, x - mean[:, None], 0.0)
        squares += away * away
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(var_ptr + rows, tl.sum(squares, axis=1) / (N - correction), mask=rows < M)


@jit
def _add_logs(top_a, sum_a, top_b, sum_b):
    """Two sums of powers of e, each as the largest exponent and a sum relative to it."""
    top = tl.maximum(top_a, top_b)
    return top, sum_a * tl.exp(top_a - top) + sum_b * tl.exp(top_b - top)


@jit
def log_cumsum_exp(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """Logs of running sums of powers: a scan of pairs, joined with the pair of the blocks before."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    carry_top = -1e30
    carry_sum = 0.0
    for start in tl.range(0, N, BLOCK):
        mask = start + lanes < N
        x = tl.load(x_ptr + row * N + start + lanes, mask=mask, other=-1e30).to(tl.float32)
        top, total = tl.associative_scan((x, tl.full((BLOCK,), 1.0, tl.float32)), 0, _add_logs)
        new = tl.maximum(top, carry_top)
        total = total * tl.exp(top - new) + carry_sum * tl.exp(carry_top - new)
        y = new + tl.log(total)
        tl.store(y_ptr + row * N + start + lanes, y.to(y_ptr.dtype.element_ty), mask=mask)
        carry_top = tl.max(new, 0)
        carry_sum = tl.sum(tl.where(lanes == BLOCK - 1, total * tl.exp(new - carry_top), 0.0), 0)


@jit
def bias_grad_atomic(dy_ptr, db_ptr, M, N, rows_each, BM: tl.constexpr, BN: tl.constexpr):
    """Sums of columns: programs have parts of the rows, and add their sums by atomics."""
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    begin = tl.program_id(1) * rows_each
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, rows_each, BM):
        rows = begin + i + tl.arange(0, BM)
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        acc += tl.load(dy_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.atomic_add(db_ptr + cols, tl.sum(acc, 0), mask=cols < N, sem="relaxed")


@jit
def argmax_tiles(x_ptr, ids_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """The first largest number of rows: tiles of some rows, the best so far of each."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    best = tl.full([BM], -float("inf"), tl.float32)
    best_at = tl.full([BM], 0, tl.int32)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN)
        x = tl.load(
            x_ptr + rows[:, None] * N + cols[None, :],
            mask=(rows[:, None] < M) & (cols[None, :] < N),
            other=-float("inf"),
        )
        here, index = tl.max(x.to(tl.float32), 1, return_indices=True)
        is_better = here > best
        best_at = tl.where(is_better, start + index, best_at)
        best = tl.where(is_better, here, best)
    tl.store(ids_ptr + rows, best_at.to(tl.int64), mask=rows < M)
