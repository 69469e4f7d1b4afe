# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `held_out` of public_kernels.py that go over rows: softmaxes, losses,
gating, quantisation, norms and their gradients. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def softmax_causal(x_ptr, y_ptr, T, scale, BLOCK: tl.constexpr):
    """Attention scores in memory: a row has as many columns as its place says, the others are 0."""
    row, head = tl.program_id(0), tl.program_id(1)
    base = (head.to(tl.int64) * T + row) * T
    length = row + 1
    m = -float("inf")
    s = 0.0
    for start in range(0, length, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = (
            tl.load(x_ptr + base + cols, mask=cols < length, other=-float("inf")).to(tl.float32)
            * scale
        )
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    for start in range(0, T, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = (
            tl.load(x_ptr + base + cols, mask=cols < length, other=-float("inf")).to(tl.float32)
            * scale
        )
        tl.store(y_ptr + base + cols, (tl.exp(x - m) / s).to(y_ptr.dtype.element_ty), mask=cols < T)


@jit
def softmax_persistent(
    y_ptr, x_ptr, x_stride, y_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr,
    num_stages: tl.constexpr,
):  # fmt: skip
    """A program takes each of its rows whole; the loop over rows is to be pipelined."""
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    for row in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf"))
        top = x - tl.max(x, axis=0)
        numerator = tl.exp(top.to(tl.float32))
        y = numerator / tl.sum(numerator, axis=0)
        tl.store(y_ptr + row * y_stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def softmax_backward_tile(
    y_ptr, dy_ptr, dx_ptr, M, N, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):  # fmt: skip
    """The gradient of a softmax of short rows, some a program."""
    offs_m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    offs_n = tl.arange(0, TILE_N)
    offs = offs_m[:, None] * N + offs_n
    mask = (offs_m[:, None] < M) & (offs_n < N)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    dy = tl.load(dy_ptr + offs, mask=mask).to(tl.float32)
    total = tl.sum(tl.where(mask, y * dy, 0.0), axis=1)
    tl.store(dx_ptr + offs, y * (dy - total[:, None]), mask=mask)


@jit
def lse_argmax(x_ptr, lse_ptr, best_ptr, N, temperature, BLOCK: tl.constexpr):
    """One loop over the logits of a token: the logarithm of their sum, and the first largest."""
    row = tl.program_id(0)
    x_ptr += row.to(tl.int64) * N
    top = float("-inf")
    total = 0.0
    place = 0
    for i in range(tl.cdiv(N, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf")).to(tl.float32) / temperature
        here, where = tl.max(x, axis=0, return_indices=True)
        place = tl.where(here > top, i * BLOCK + where, place)
        new = tl.maximum(top, here)
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=0)
        top = new
    tl.store(lse_ptr + row, top + tl.log(total))
    tl.store(best_ptr + row, place)


@jit
def loss_with_z(
    logits_ptr, labels_ptr, loss_ptr, z_ptr, lse_ptr, stride, n_cols, z_scale, ignored,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Cross entropy with a penalty of the logarithm's square; maxima and sums of lanes meet at the end."""
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * stride
    label = tl.load(labels_ptr + row)
    tops = tl.full((BLOCK,), float("-inf"), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for off in range(0, n_cols, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < n_cols, other=-1e30).to(tl.float32)
        new = tl.maximum(tops, x)
        sums = sums * tl.exp(tops - new) + tl.exp(x - new)
        tops = new
    top = tl.max(tops)
    lse = tl.log(tl.sum(sums * tl.exp(tops - top))) + top
    tl.store(lse_ptr + row, lse)
    if label == ignored:
        tl.store(loss_ptr + row, 0.0)
        tl.store(z_ptr + row, 0.0)
    else:
        z = z_scale * lse * lse
        tl.store(loss_ptr + row, lse - tl.load(logits_ptr + label).to(tl.float32) + z)
        tl.store(z_ptr + row, z)


@jit
def loss_backward_blocks(
    dlogits_ptr, dloss_ptr, logits_ptr, lse_ptr, labels_ptr, stride, n_cols, scale,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of a cross entropy: a block of a row a program."""
    row, block = tl.program_id(0), tl.program_id(1)
    logits_ptr += row.to(tl.int64) * stride
    dlogits_ptr += row.to(tl.int64) * stride
    cols = block * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels_ptr + row)
    if label != -100:
        dloss = tl.load(dloss_ptr + row)
    else:
        dloss = 0.0
    x = tl.load(logits_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32) * scale
    probs = tl.exp(x - tl.load(lse_ptr + row))
    probs = tl.where(cols == label, probs - 1.0, probs)
    tl.store(dlogits_ptr + cols, dloss * scale * probs, mask=cols < n_cols)


@jit
def divergence(
    student_ptr, teacher_ptr, grad_ptr, loss_ptr, n_cols, beta, scale, BLOCK_SIZE: tl.constexpr
):  # fmt: skip
    """A mixed divergence of logarithms of probabilities: the loop sums up and stores gradients."""
    pid = tl.program_id(0).to(tl.int64)
    student_ptr += pid * n_cols
    teacher_ptr += pid * n_cols
    grad_ptr += pid * n_cols
    lanes = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for i in range(0, n_cols, BLOCK_SIZE):
        offs = i + tl.arange(0, BLOCK_SIZE)
        mask = offs < n_cols
        x = tl.load(student_ptr + offs, mask=mask, other=float("-inf")).to(tl.float32)
        y = tl.load(teacher_ptr + offs, mask=mask, other=float("-inf")).to(tl.float32)
        q, p = tl.exp(x), tl.exp(y)
        mixed = tl.log(tl.maximum(beta * p + (1 - beta) * q, 1e-30))
        lanes += tl.where(mask, beta * p * (y - mixed) + (1 - beta) * q * (x - mixed), 0.0)
        tl.store(grad_ptr + offs, (1 - beta) * q * (x - mixed) * scale, mask=mask)
    tl.store(loss_ptr + pid, tl.sum(lanes) * scale)


@jit
def gate_grouped(
    logits_ptr, bias_ptr, weights_ptr, ids_ptr, factor, E: tl.constexpr, GROUPS: tl.constexpr,
    TOP_GROUPS: tl.constexpr, TOP: tl.constexpr, TOP2: tl.constexpr,
):  # fmt: skip
    """Sigmoid scores: the best groups first, then the best experts of these, one after the other."""
    token = tl.program_id(0)
    e, g, slot = tl.arange(0, E), tl.arange(0, GROUPS), tl.arange(0, TOP2)
    scores = tl.sigmoid(tl.load(logits_ptr + token * E + e).to(tl.float32))
    biased = scores + tl.load(bias_ptr + e)
    group_best = tl.max(tl.reshape(biased, (GROUPS, E // GROUPS)), axis=1)
    allowed = tl.zeros((GROUPS,), dtype=tl.int32)
    for _ in range(TOP_GROUPS):
        best = tl.argmax(group_best, axis=0)
        allowed = tl.where(g == best, 1, allowed)
        group_best = tl.where(g == best, float("-inf"), group_best)
    open_ = tl.reshape(tl.broadcast_to(allowed[:, None], (GROUPS, E // GROUPS)), (E,))
    biased = tl.where(open_ > 0, biased, float("-inf"))
    chosen = tl.zeros((TOP2,), dtype=tl.float32)
    ids = tl.zeros((TOP2,), dtype=tl.int32)
    total = 0.0
    for i in range(TOP):
        best = tl.argmax(biased, axis=0)
        weight = tl.sum(tl.where(e == best, scores, 0.0), axis=0)
        chosen = tl.where(slot == i, weight, chosen)
        ids = tl.where(slot == i, best, ids)
        total += weight
        biased = tl.where(e == best, float("-inf"), biased)
    tl.store(weights_ptr + token * TOP + slot, chosen / total * factor, mask=slot < TOP)
    tl.store(ids_ptr + token * TOP + slot, ids, mask=slot < TOP)


@jit
def quant_fp8_loop(x_ptr, q_ptr, s_ptr, N, stride, least, BLOCK: tl.constexpr):
    """A token to 8-bit floats in two loops over its row."""
    row = tl.program_id(0)
    x_ptr += row * stride
    q_ptr += row * stride
    largest = 0.0
    for i in range(tl.cdiv(N, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        largest = tl.maximum(largest, tl.max(tl.abs(x.to(tl.float32))))
    scale = tl.maximum(largest / 448.0, least)
    inverse = 1.0 / scale
    for i in range(tl.cdiv(N, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32) * inverse
        x = tl.minimum(tl.maximum(x, -448.0), 448.0)
        tl.store(q_ptr + cols, x.to(q_ptr.dtype.element_ty), mask=cols < N)
    tl.store(s_ptr + row, scale)


@jit
def expert_silu_quant(
    x_ptr, q_ptr, s_ptr, counts_ptr, rows, N, BLOCK: tl.constexpr, STAGES: tl.constexpr
):  # fmt: skip
    """Gate times up of each expert's tokens, as many as it has, to 8-bit floats by groups of columns."""
    block, first, expert = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    count = tl.load(counts_ptr + expert)
    cols = block * BLOCK + tl.arange(0, BLOCK)
    x_at = x_ptr + expert.to(tl.int64) * rows * 2 * N + cols
    q_at = q_ptr + expert.to(tl.int64) * rows * N + cols
    s_at = s_ptr + expert * rows * (N // BLOCK) + block
    for token in tl.range(first, count, tl.num_programs(1), num_stages=STAGES):
        gate = tl.load(x_at + token * 2 * N, mask=cols < N, other=0.0).to(tl.float32)
        up = tl.load(x_at + token * 2 * N + N, mask=cols < N, other=0.0).to(tl.float32)
        y = gate / (1 + tl.exp(-gate)) * up
        scale = tl.maximum(tl.max(tl.abs(y)), 1e-10) / 448.0
        q = tl.clamp(y / scale, -448.0, 448.0).to(q_ptr.dtype.element_ty)
        tl.store(q_at + token * N, q, mask=cols < N)
        tl.store(s_at + token * (N // BLOCK), scale)


@jit
def quant_zero_point(x_ptr, q_ptr, scale_ptr, zero_ptr, N, BLOCK: tl.constexpr):
    """A row to bytes with a zero point: the smallest and the largest in one loop, then the quotients."""
    row = tl.program_id(0)
    low = tl.full((BLOCK,), float("inf"), tl.float32)
    high = tl.full((BLOCK,), float("-inf"), tl.float32)
    x_row = x_ptr + row * N
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
        low = tl.where(mask, tl.minimum(low, x), low)
        high = tl.where(mask, tl.maximum(high, x), high)
    smallest = tl.minimum(tl.min(low, 0), 0.0)
    scale = tl.maximum(tl.max(high, 0) - smallest, 1e-6) / 255.0
    zero = tl.floor(-smallest / scale + 0.5)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < N, other=0.0).to(tl.float32)
        q = tl.clamp(tl.floor(x / scale + 0.5) + zero, 0.0, 255.0)
        tl.store(q_ptr + row * N + cols, q.to(tl.uint8), mask=cols < N)
    tl.store(scale_ptr + row, scale)
    tl.store(zero_ptr + row, zero)


@jit
def rms_rows_each(
    x_ptr, w_ptr, y_ptr, rstd_ptr, n_rows, n_cols, rows_each, eps, BLOCK: tl.constexpr
):  # fmt: skip
    """Some rows a program one after the other, whose weights (with 1 added) are loaded once."""
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32) + 1.0
    for row in range(pid * rows_each, min((pid + 1) * rows_each, n_rows)):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
        tl.store(rstd_ptr + row, rstd)
        tl.store(y_ptr + row * n_cols + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


@jit
def add_rms_quant(
    x_ptr, res_ptr, w_ptr, q_ptr, s_ptr, stride, eps, N: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A row at once: residual, norm, and int8 with a scale; the sum takes the residual's place."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(res_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(res_ptr + row * stride + cols, x.to(res_ptr.dtype.element_ty), mask=mask)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = x * (1.0 / tl.sqrt(tl.sum(x * x, 0) / N + eps)) * w
    scale = tl.maximum(tl.max(tl.abs(y), 0), 1e-6) / 127.0
    y = y / scale
    q = tl.where(y >= 0, y + 0.5, y - 0.5).to(tl.int8)
    tl.store(q_ptr + row * stride + cols, q, mask=mask)
    tl.store(s_ptr + row, scale)


@jit
def layer_norm_backward(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, n_rows, n_cols, rows_each,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of a layer norm; a program stores its part of those of the weights and the bias."""
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    db = tl.zeros((BLOCK,), dtype=tl.float32)
    begin = pid * rows_each
    x_ptr += begin * n_cols
    dy_ptr += begin * n_cols
    dx_ptr += begin * n_cols
    for row in range(begin, min(begin + rows_each, n_rows)):
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
        xhat = (x - mean) * rstd
        wdy = w * dy
        c1 = tl.sum(tl.where(mask, xhat * wdy, 0.0), axis=0) / n_cols
        c2 = tl.sum(wdy, axis=0) / n_cols
        dx = (wdy - (xhat * c1 + c2)) * rstd
        tl.store(dx_ptr + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * xhat
        db += dy
        x_ptr += n_cols
        dy_ptr += n_cols
        dx_ptr += n_cols
    tl.store(dw_ptr + pid * n_cols + cols, dw, mask=mask)
    tl.store(db_ptr + pid * n_cols + cols, db, mask=mask)


@jit
def sum_parts(
    dw_ptr, db_ptr, out_w_ptr, out_b_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):  # fmt: skip
    """The second stage: parts of two gradients are added up by columns."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_M):
        rows = i + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offs = rows[:, None] * N + cols[None, :]
        dw += tl.load(dw_ptr + offs, mask=mask, other=0.0)
        db += tl.load(db_ptr + offs, mask=mask, other=0.0)
    tl.store(out_w_ptr + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(out_b_ptr + cols, tl.sum(db, axis=0), mask=cols < N)


@jit
def group_norm_silu(
    x_ptr, w_ptr, b_ptr, y_ptr, pixels, groups, eps, CHANNELS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Channels first: sums of a group in a loop over all, then SiLU channel by channel."""
    pid = tl.program_id(0)
    group = pid % groups
    base = pid.to(tl.int64) * CHANNELS * pixels
    size = CHANNELS * pixels
    s = tl.zeros((BLOCK,), dtype=tl.float32)
    ss = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, size, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + offs, mask=offs < size, other=0.0).to(tl.float32)
        s += x
        ss += x * x
    mean = tl.sum(s) / size
    rstd = tl.rsqrt(tl.sum(ss) / size - mean * mean + eps)
    for c in range(CHANNELS):
        w = tl.load(w_ptr + group * CHANNELS + c).to(tl.float32) * rstd
        b = tl.load(b_ptr + group * CHANNELS + c).to(tl.float32) - mean * w
        for i in range(0, pixels, BLOCK):
            offs = i + tl.arange(0, BLOCK)
            mask = offs < pixels
            x = tl.load(x_ptr + base + c * pixels + offs, mask=mask, other=0.0).to(tl.float32)
            y = x * w + b
            y = y * tl.sigmoid(y)
            tl.store(y_ptr + base + c * pixels + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def unit_heads(
    x_ptr, y_ptr, rstd_ptr, eps, T, D: tl.constexpr, BD: tl.constexpr, BT: tl.constexpr
):  # fmt: skip
    """Many short vectors to length 1, some a program, by block pointers."""
    i_t = tl.program_id(0)
    p_x = tl.make_block_ptr(x_ptr, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    p_y = tl.make_block_ptr(y_ptr, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    p_rstd = tl.make_block_ptr(rstd_ptr, (T,), (1,), (i_t * BT,), (BT,), (0,))
    b_x = tl.load(p_x, boundary_check=(0, 1)).to(tl.float32)
    b_rstd = 1 / tl.sqrt(tl.sum(b_x * b_x, 1) + eps)
    b_y = b_x * b_rstd[:, None]
    tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0, 1))
    tl.store(p_rstd, b_rstd.to(p_rstd.dtype.element_ty), boundary_check=(0,))


@jit
def rms_gated(
    x_ptr, z_ptr, w_ptr, y_ptr, stride_x, stride_z, M, N, eps, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """A norm of groups of columns, times the SiLU of a gate that comes from another matrix."""
    group = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    place = group * N + cols[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_x + place, mask=mask, other=0.0).to(tl.float32)
    z = tl.load(z_ptr + rows[:, None] * stride_z + place, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + group * N + cols, mask=cols < N).to(tl.float32)
    rstd = 1 / tl.sqrt(tl.sum(x * x, axis=1) / N + eps)
    y = x * rstd[:, None] * w[None, :] * z * tl.sigmoid(z)
    tl.store(y_ptr + rows[:, None] * stride_x + place, y.to(y_ptr.dtype.element_ty), mask=mask)
