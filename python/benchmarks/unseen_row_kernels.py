# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `unseen` of public_kernels.py that go over rows: softmaxes, cross
entropies, quantisation, norms. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def softmax_reverse(out_ptr, in_ptr, M, N, TILE_N: tl.constexpr):
    """Online maxima and sums for each lane; the second loop goes back, as its tiles are in L2."""
    row = tl.program_id(0).to(tl.int64)
    in_ptr += row * N
    out_ptr += row * N
    m = tl.full([TILE_N], value=float("-inf"), dtype=tl.float32)
    z = tl.full([TILE_N], value=0.0, dtype=tl.float32)
    last = (tl.cdiv(N, TILE_N) - 1) * TILE_N
    for start in range(0, last, TILE_N):
        x = tl.load(in_ptr + start + tl.arange(0, TILE_N)).to(tl.float32)
        m_new = tl.maximum(m, x)
        z = z * tl.exp(m - m_new) + tl.exp(x - m_new)
        m = m_new
    for start in range(last, N, TILE_N):
        offs = start + tl.arange(0, TILE_N)
        x = tl.load(in_ptr + offs, mask=offs < N, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, x)
        empty = m_new == float("-inf")
        z = tl.where(empty, z, z * tl.exp(m - m_new) + tl.exp(x - m_new))
        m = m_new
    top = tl.max(m, 0)
    z = tl.sum(z * tl.exp(m - top), 0)
    for start in range(0, N, TILE_N):
        offs = (last - start) + tl.arange(0, TILE_N)
        mask = offs < N
        x = tl.load(in_ptr + offs, mask=mask, other=-float("inf"), eviction_policy="evict_first")
        tl.store(out_ptr + offs, tl.exp(x.to(tl.float32) - top) / z, mask=mask)


@jit
def softmax_row_tiles(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Some rows a program, with a running maximum and sum for each row, and a second loop."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    x_at = x_ptr + rows[:, None] * N + cols[None, :]
    best = tl.zeros((BLOCK_M,), dtype=tl.float32) - 1e38
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        mask = (rows[:, None] < M) & (start + cols[None, :] < N)
        x = tl.load(x_at + start, mask=mask, other=float("-inf")).to(tl.float32)
        new = tl.maximum(best, tl.max(x, axis=1))
        total = total * tl.exp(best - new) + tl.sum(tl.exp(x - new[:, None]), axis=1)
        best = new
    for start in range(0, N, BLOCK_N):
        mask = (rows[:, None] < M) & (start + cols[None, :] < N)
        x = tl.load(x_at + start, mask=mask, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - best[:, None]) / total[:, None]
        y_at = y_ptr + rows[:, None] * N + start + cols[None, :]
        tl.store(y_at, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def log_softmax_backward(y_ptr, dy_ptr, dx_ptr, N, stride, BLOCK: tl.constexpr):
    """The gradient of a log-softmax: the sum of a row in one loop, the result in another."""
    row = tl.program_id(0)
    y_row = y_ptr + row * stride
    dy_row = dy_ptr + row * stride
    lanes = tl.zeros([BLOCK], dtype=tl.float32)
    for i in range(0, tl.cdiv(N, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        lanes += tl.load(dy_row + cols, mask=cols < N, other=0.0).to(tl.float32)
    total = tl.sum(lanes, axis=0)
    for i in range(0, tl.cdiv(N, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        mask = cols < N
        y = tl.load(y_row + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_row + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + row * stride + cols, dy - tl.exp(y) * total, mask=mask)


@jit
def ce_parts(
    logits_ptr, loss_ptr, lse_ptr, labels_ptr, VOCAB: tl.constexpr, PARTS: tl.constexpr,
    BLOCK: tl.constexpr, CAP: tl.constexpr,
):  # fmt: skip
    """A part of a large vocabulary a program: its logsumexp; the first part has the label's logit."""
    row, part = tl.program_id(0), tl.program_id(1)
    logits_ptr += row.to(tl.int64) * VOCAB
    cols = part * BLOCK + tl.arange(0, BLOCK)
    mask = cols < VOCAB
    label = tl.load(labels_ptr + row).to(tl.int32)
    x = tl.load(logits_ptr + cols, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.where(mask, CAP * (2 * tl.sigmoid(2 * x / CAP) - 1), -float("inf"))
    top = tl.max(x, 0)
    lse = top + tl.log(tl.sum(tl.exp(x - top), 0))
    if part == 0:
        loss = 0.0
        if label != -100:
            at_label = tl.load(logits_ptr + label).to(tl.float32)
            loss = -1.0 * CAP * (2 * tl.sigmoid(2 * at_label / CAP) - 1)
        tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row * PARTS + part, lse)


@jit
def ce_smoothed_in_place(
    X_ptr, X_stride, Y_ptr, loss_ptr, n_cols, n_rows, ignore_index, smoothing: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Loss with smoothed labels; the gradient of the mean takes the place of the logits."""
    row = tl.program_id(0).to(tl.int64)
    y = tl.load(Y_ptr + row)
    X_ptr += row * X_stride
    if y == ignore_index:
        for i in range(0, n_cols, BLOCK_SIZE):
            offsets = i + tl.arange(0, BLOCK_SIZE)
            tl.store(X_ptr + offsets, 0.0, mask=offsets < n_cols)
        tl.store(loss_ptr + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    x_sum = 0.0
    x_y = tl.load(X_ptr + y).to(tl.float32)
    eps = smoothing / n_cols
    for i in range(0, n_cols, BLOCK_SIZE):
        offsets = i + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X_ptr + offsets, mask=offsets < n_cols, other=float("-inf")).to(tl.float32)
        x_sum += tl.sum(tl.where(offsets < n_cols, -eps * x, 0.0))
        m_new = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)
    for i in range(0, n_cols, BLOCK_SIZE):
        offsets = i + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X_ptr + offsets, mask=offsets < n_cols, other=float("-inf")).to(tl.float32)
        x = tl.exp(x - m) / d - eps
        x = tl.where(offsets != y, x, x - (1 - smoothing)) / n_rows
        tl.store(X_ptr + offsets, x, mask=offsets < n_cols)
    tl.debug_barrier()
    loss = (lse - x_y) * (1 - smoothing) + x_sum + smoothing * lse
    tl.store(loss_ptr + row, loss)


@jit
def topk_gate(
    logits_ptr, weights_ptr, ids_ptr, T, E: tl.constexpr, TOP: tl.constexpr, BLOCK_T: tl.constexpr
):  # fmt: skip
    """Softmax over experts, then the best TOP of each token one after the other, with a sum of 1."""
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    e = tl.arange(0, E)
    x = tl.load(logits_ptr + t[:, None] * E + e[None, :], mask=t[:, None] < T, other=0.0)
    x = x.to(tl.float32)
    x = tl.exp(x - tl.max(x, 1)[:, None])
    scores = x / tl.sum(x, 1)[:, None]
    total = tl.zeros((BLOCK_T,), dtype=tl.float32)
    for i in range(TOP):
        best = tl.max(scores, axis=1)
        place = tl.argmax(scores, axis=1)
        total += best
        tl.store(weights_ptr + t * TOP + i, best, mask=t < T)
        tl.store(ids_ptr + t * TOP + i, place, mask=t < T)
        scores = tl.where(e[None, :] == place[:, None], -1.0, scores)
    tl.debug_barrier()
    for i in range(TOP):
        w = tl.load(weights_ptr + t * TOP + i, mask=t < T, other=0.0)
        tl.store(weights_ptr + t * TOP + i, w / total, mask=t < T)


@jit
def quant_rows(
    x_ptr, q_ptr, scale_ptr, stride_x, stride_q, N: tl.constexpr, P2: tl.constexpr
):  # fmt: skip
    """A row a program to int8 by its largest number, rounded half away from zero."""
    pid = tl.program_id(axis=0)
    cols = tl.arange(0, P2)
    mask = cols < N
    x = tl.load(x_ptr + pid * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    abs_x = tl.abs(x)
    max_val = tl.max(tl.where(mask, abs_x, 0), axis=0)
    y = x * (127.0 / tl.maximum(max_val, 1e-12))
    y = tl.where(y >= 0, tl.floor(y + 0.5), tl.ceil(y - 0.5))
    tl.store(q_ptr + pid * stride_q + cols, y.to(tl.int8), mask=mask)
    tl.store(scale_ptr + pid, max_val / 127.0)


@jit
def quant_groups(
    y_ptr, q_ptr, s_ptr, group_size, columns, stride_s, eps, lowest, highest, BLOCK: tl.constexpr
):  # fmt: skip
    """A group of a row a program to 8-bit floats; the scales are stored by columns."""
    g_id = tl.program_id(0)
    per_row = columns // group_size
    row = g_id // per_row
    col = g_id % per_row
    y_ptr += row.to(tl.int64) * columns + col.to(tl.int64) * group_size
    q_ptr += g_id.to(tl.int64) * group_size
    offs = tl.arange(0, BLOCK)
    mask = offs < group_size
    y = tl.load(y_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(y)), eps)
    scale = largest / highest
    q = tl.clamp(y / scale, lowest, highest).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + offs, q, mask=mask)
    tl.store(s_ptr + col * stride_s + row, scale)


@jit
def quant_blocks(x_ptr, q_ptr, s_ptr, M, N, BLOCK: tl.constexpr):
    """A square block of weights a program to 8-bit floats with one scale."""
    pid_m, pid_n = tl.program_id(axis=0), tl.program_id(axis=1)
    offs_m = pid_m * BLOCK + tl.arange(0, BLOCK)
    offs_n = pid_n * BLOCK + tl.arange(0, BLOCK)
    offs = offs_m[:, None] * N + offs_n[None, :]
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.max(tl.abs(x), 1), 0), 1e-12) / 448.0
    tl.store(q_ptr + offs, (x / s).to(q_ptr.dtype.element_ty), mask=mask)
    tl.store(s_ptr + pid_m * tl.cdiv(N, BLOCK) + pid_n, s)


@jit
def pack_int4(x_ptr, q_ptr, scale_ptr, zero_ptr, N, GROUP: tl.constexpr, GROUPS: tl.constexpr):
    """Groups with a scale and a zero; a sum of shifted numbers packs eight in an int32."""
    row = tl.program_id(0)
    groups = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    inside = groups < N // GROUP
    offs = groups[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    x = tl.load(x_ptr + row * N + offs, mask=inside[:, None], other=0.0).to(tl.float32)
    low = tl.min(x, 1)
    scale = tl.maximum((tl.max(x, 1) - low) / 15.0, 1e-6)
    q = tl.floor((x - low[:, None]) / scale[:, None] + 0.5).to(tl.int32)
    q = tl.minimum(tl.maximum(q, 0), 15)
    q = tl.reshape(q, (GROUPS, GROUP // 8, 8))
    shifts = tl.arange(0, 8) * 4
    packed = tl.sum(q << shifts[None, None, :], 2)
    words = groups[:, None] * (GROUP // 8) + tl.arange(0, GROUP // 8)[None, :]
    tl.store(q_ptr + row * (N // 8) + words, packed, mask=inside[:, None])
    tl.store(scale_ptr + row * (N // GROUP) + groups, scale, mask=inside)
    tl.store(zero_ptr + row * (N // GROUP) + groups, low, mask=inside)


@jit
def rms_rows_tile(
    x_ptr, w_ptr, y_ptr, rstd_ptr, M, D: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr, eps
):  # fmt: skip
    """Many short rows (heads of queries and keys), some a program, by block pointers."""
    i = tl.program_id(0)
    p_x = tl.make_block_ptr(x_ptr, (M, D), (D, 1), (i * BM, 0), (BM, BD), (1, 0))
    b_x = tl.load(p_x, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    b_rstd = 1 / tl.sqrt(tl.sum(b_x * b_x, 1) / D + eps)
    o_d = tl.arange(0, BD)
    b_w = tl.load(w_ptr + o_d, mask=o_d < D, other=0.0).to(tl.float32)
    b_y = b_x * b_rstd[:, None] * b_w[None, :]
    p_y = tl.make_block_ptr(y_ptr, (M, D), (D, 1), (i * BM, 0), (BM, BD), (1, 0))
    tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0, 1))
    p_r = tl.make_block_ptr(rstd_ptr, (M,), (1,), (i * BM,), (BM,), (0,))
    tl.store(p_r, b_rstd.to(p_r.dtype.element_ty), boundary_check=(0,))


@jit
def rms_residual_loop(x_ptr, res_ptr, w_ptr, y_ptr, N, stride, eps, BLOCK: tl.constexpr):
    """Long rows: the first loop adds the residual and stores the sum, the second reads it again."""
    row = tl.program_id(0)
    x_ptr += row * stride
    res_ptr += row * stride
    y_ptr += row * stride
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        x += tl.load(res_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(res_ptr + cols, x.to(res_ptr.dtype.element_ty), mask=mask)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(res_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        tl.store(y_ptr + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


@jit
def rms_backward(
    dY_ptr, X_ptr, W_ptr, RSTD_ptr, dX_ptr, dW_ptr, stride, n_rows, n_cols, rows_per_program,
    BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Each program adds up the gradient of the weights over its rows."""
    pid = tl.program_id(0).to(tl.int64)
    row_start = pid * rows_per_program
    row_end = min((pid + 1) * rows_per_program, n_rows)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    dW = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    W = tl.load(W_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    for row in range(row_start, row_end):
        dY = tl.load(dY_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
        X = tl.load(X_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(RSTD_ptr + row)
        m = dY * W
        dX = rstd * m
        dX += rstd * (-(1 / n_cols) * rstd * rstd * tl.sum(m * X, axis=0) * X)
        dW += dY * (X * rstd)
        tl.store(dX_ptr + row * stride + cols, dX.to(dX_ptr.dtype.element_ty), mask=mask)
    tl.store(dW_ptr + pid * stride + cols, dW, mask=mask)


@jit
def layer_norm_loop(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr):
    """Long rows in three loops: the mean, the variance, the result."""
    row = tl.program_id(0)
    x_row, y_row = x_ptr + row * N, y_ptr + row * N
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        acc += tl.load(x_row + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(acc, axis=0) / N
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        acc += x * x
    rstd = 1 / tl.sqrt(tl.sum(acc, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        w = tl.load(w_ptr + cols, mask=mask)
        b = tl.load(b_ptr + cols, mask=mask)
        x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_row + cols, (x - mean) * rstd * w + b, mask=mask)


@jit
def group_norm_last(
    x_ptr, w_ptr, b_ptr, y_ptr, HW, C, eps, CG: tl.constexpr, BLOCK_C: tl.constexpr,
    BLOCK_HW: tl.constexpr,
):  # fmt: skip
    """Channels last: a picture and a group a program, two loops over tiles of pixels."""
    n, g = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, BLOCK_C)
    chan = g * CG + c
    base = n.to(tl.int64) * HW * C
    s1 = tl.zeros((BLOCK_HW, BLOCK_C), tl.float32)
    s2 = tl.zeros((BLOCK_HW, BLOCK_C), tl.float32)
    for p in range(0, HW, BLOCK_HW):
        pix = p + tl.arange(0, BLOCK_HW)
        m = (pix < HW)[:, None] & (c < CG)[None, :]
        x = tl.load(x_ptr + base + pix[:, None] * C + chan[None, :], mask=m, other=0.0)
        x = x.to(tl.float32)
        s1 += x
        s2 += x * x
    count = HW * CG
    mean = tl.sum(s1) / count
    rstd = tl.rsqrt(tl.sum(s2) / count - mean * mean + eps)
    w = tl.load(w_ptr + chan, mask=c < CG, other=0.0).to(tl.float32) * rstd
    b = tl.load(b_ptr + chan, mask=c < CG, other=0.0).to(tl.float32) - mean * w
    for p in range(0, HW, BLOCK_HW):
        pix = p + tl.arange(0, BLOCK_HW)
        m = (pix < HW)[:, None] & (c < CG)[None, :]
        at = base + pix[:, None] * C + chan[None, :]
        x = tl.load(x_ptr + at, mask=m, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, x * w[None, :] + b[None, :], mask=m)
