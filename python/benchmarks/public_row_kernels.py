# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of public_kernels.py that go over rows or elements: norms, softmax, cross entropy,
quantisation, and small ones. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def online_softmax(x_ptr, out_ptr, N, stride, BLOCK: tl.constexpr):
    """Two loops over a row: a running maximum and sum, then the quotients."""
    row = tl.program_id(0)
    x_ptr += row * stride
    out_ptr += row * stride
    largest = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < N, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), 0)
        largest = new
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < N, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - largest) / total
        tl.store(out_ptr + columns, y.to(out_ptr.dtype.element_ty), mask=columns < N)


@jit
def online_softmax_lanes(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Each lane has a maximum and a sum of its own, which meet behind the first loop."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, tl.cdiv(N, BLOCK)):
        columns = i * BLOCK + lanes
        x = tl.load(x_ptr + row * N + columns, mask=columns < N, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, x)
        total = total * tl.where(largest == new, 1.0, tl.exp(largest - new)) + tl.where(
            x == -float("inf"), 0.0, tl.exp(x - new)
        )
        largest = new
    most = tl.max(largest, 0)
    whole = tl.sum(total * tl.exp(largest - most), 0)
    for i in range(0, tl.cdiv(N, BLOCK)):
        columns = i * BLOCK + lanes
        x = tl.load(x_ptr + row * N + columns, mask=columns < N, other=0.0).to(tl.float32)
        tl.store(
            out_ptr + row * N + columns,
            (tl.exp(x - most) / whole).to(out_ptr.dtype.element_ty),
            mask=columns < N,
        )


@jit
def log_softmax_loops(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Three loops: the maximum, the sum, the result."""
    row = tl.program_id(0)
    at = x_ptr + row * N
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        largest = tl.maximum(
            largest, tl.load(at + columns, mask=columns < N, other=-float("inf")).to(tl.float32)
        )
    most = tl.max(largest, 0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(at + columns, mask=columns < N, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - most)
    shift = most + tl.log(tl.sum(total, 0))
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(at + columns, mask=columns < N, other=0.0).to(tl.float32)
        tl.store(
            out_ptr + row * N + columns, (x - shift).to(out_ptr.dtype.element_ty), mask=columns < N
        )


@jit
def cross_entropy(logits_ptr, label_ptr, loss_ptr, lse_ptr, V, stride, BLOCK: tl.constexpr):
    """A row of a large vocabulary in blocks; the loss and the logarithm of the sum."""
    row = tl.program_id(0).to(tl.int64)
    at = logits_ptr + row * stride
    label = tl.load(label_ptr + row)
    largest = -float("inf")
    total = 0.0
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(at + columns, mask=columns < V, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), 0)
        largest = new
    lse = largest + tl.log(total)
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, lse - tl.load(at + label).to(tl.float32))


@jit
def cross_entropy_in_place(logits_ptr, label_ptr, loss_ptr, V, BLOCK: tl.constexpr):
    """The gradient takes the place of the logits, in a second loop."""
    row = tl.program_id(0).to(tl.int64)
    at = logits_ptr + row * V
    label = tl.load(label_ptr + row)
    chosen = tl.load(at + label).to(tl.float32)
    largest = -float("inf")
    total = 0.0
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(at + columns, mask=columns < V, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new))
        largest = new
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(at + columns, mask=columns < V, other=-float("inf")).to(tl.float32)
        grad = tl.exp(x - largest) / total - tl.where(columns == label, 1.0, 0.0)
        tl.store(at + columns, grad.to(logits_ptr.dtype.element_ty), mask=columns < V)
    tl.debug_barrier()
    tl.store(loss_ptr + row, largest + tl.log(total) - chosen)


@jit
def cross_entropy_block(logits_ptr, label_ptr, loss_ptr, V, BLOCK: tl.constexpr):
    """A whole row at once."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    label = tl.load(label_ptr + row)
    x = tl.load(logits_ptr + row * V + columns, mask=columns < V, other=-float("inf")).to(
        tl.float32
    )
    x = x - tl.max(x, 0)
    chosen = tl.sum(tl.where(columns == label, x, 0.0), 0)
    tl.store(loss_ptr + row, tl.log(tl.sum(tl.exp(x), 0)) - chosen)


@jit
def layer_norm_short(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr):
    """A short row a program; mean and deviation are stored."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    x = tl.load(x_ptr + row * N + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / N
    centred = tl.where(inside, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + columns, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + columns, mask=inside).to(tl.float32)
    tl.store(
        out_ptr + row * N + columns,
        (centred * rstd * w + b).to(out_ptr.dtype.element_ty),
        mask=inside,
    )


@jit
def layer_norm_rows(
    x_ptr, w_ptr, b_ptr, out_ptr, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Several short rows a program, as a tile."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1) / N
    centred = tl.where(inside, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, 1) / N + eps)
    w = tl.load(w_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    y = centred * rstd[:, None] * w[None, :] + b[None, :]
    tl.store(
        out_ptr + rows[:, None] * N + columns[None, :], y.to(out_ptr.dtype.element_ty), mask=inside
    )


@jit
def rms_norm_residual(x_ptr, r_ptr, w_ptr, out_ptr, sum_ptr, N, eps, BLOCK: tl.constexpr):
    """A residual is added first, and that sum is stored, too."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    x = tl.load(x_ptr + row * N + columns, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(r_ptr + row * N + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * N + columns, x.to(sum_ptr.dtype.element_ty), mask=inside)
    scale = tl.rsqrt(tl.sum(x * x, 0) / N + eps)
    w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * N + columns, (x * scale * w).to(out_ptr.dtype.element_ty), mask=inside)


@jit
def group_norm_loop(
    x_ptr, w_ptr, b_ptr, out_ptr, C, S, eps, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    """A group of channels a program, in two loops over its elements."""
    pid = tl.program_id(0)
    group = pid % GROUPS
    channels = C // GROUPS
    size = channels * S
    at = x_ptr + pid * size
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, size, BLOCK):
        places = i + tl.arange(0, BLOCK)
        x = tl.load(at + places, mask=places < size, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total) / size
    rstd = tl.rsqrt(tl.sum(squares) / size - mean * mean + eps)
    for i in range(0, size, BLOCK):
        places = i + tl.arange(0, BLOCK)
        x = tl.load(at + places, mask=places < size, other=0.0).to(tl.float32)
        channel = group * channels + places // S
        w = tl.load(w_ptr + channel, mask=places < size, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + channel, mask=places < size, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(out_ptr + pid * size + places, y.to(out_ptr.dtype.element_ty), mask=places < size)


@jit
def quantize_rows(x_ptr, q_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    """A row to int8 with a scale, in one block."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    x = tl.load(x_ptr + row * N + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 0), 1e-10) / 127.0
    y = x / scale
    q = (y + tl.where(y >= 0, 0.5, -0.5)).to(tl.int8)
    tl.store(q_ptr + row * N + columns, q, mask=inside)
    tl.store(scale_ptr + row, scale)


@jit
def quantize_rows_loop(x_ptr, q_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    """The same in two loops over the row."""
    row = tl.program_id(0).to(tl.int64)
    at = x_ptr + row * N
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        largest = tl.maximum(
            largest, tl.abs(tl.load(at + columns, mask=columns < N, other=0.0).to(tl.float32))
        )
    scale = tl.maximum(tl.max(largest, 0), 1e-10) / 127.0
    tl.store(scale_ptr + row, scale)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        y = tl.load(at + columns, mask=columns < N, other=0.0).to(tl.float32) / scale
        q = (y + tl.where(y >= 0, 0.5, -0.5)).to(tl.int8)
        tl.store(q_ptr + row * N + columns, q, mask=columns < N)


@jit
def quantize_groups(x_ptr, q_ptr, scale_ptr, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Groups of a row have scales of their own: a tile of groups."""
    row, block = tl.program_id(0), tl.program_id(1)
    groups = block * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)
    places = groups[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    x = tl.load(x_ptr + row * N + places).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 1), 1e-10) / 127.0
    y = x / scale[:, None]
    q = (y + tl.where(y >= 0, 0.5, -0.5)).to(tl.int8)
    tl.store(q_ptr + row * N + places, q)
    tl.store(scale_ptr + row * (N // GROUP) + groups, scale)


@jit
def quantize_pairs(x_ptr, q_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    """Neighbours of a row as two numbers of 4 bits in a byte."""
    row = tl.program_id(0)
    pairs = tl.arange(0, BLOCK)
    inside = pairs < N // 2
    even = tl.load(x_ptr + row * N + 2 * pairs, mask=inside, other=0.0).to(tl.float32)
    odd = tl.load(x_ptr + row * N + 2 * pairs + 1, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.maximum(tl.abs(even), tl.abs(odd)), 0), 1e-10) / 7.0
    low = tl.floor(even / scale + 8.5).to(tl.uint8)
    high = tl.floor(odd / scale + 8.5).to(tl.uint8)
    tl.store(q_ptr + row * (N // 2) + pairs, low | (high << 4), mask=inside)
    tl.store(scale_ptr + row, scale)


@jit
def relu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < n)
    tl.store(out_ptr + places, tl.maximum(x, 0.0), mask=places < n)


@jit
def sine(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < n)
    tl.store(out_ptr + places, tl.sin(x), mask=places < n)


@jit
def seeded_dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < n)
    keep = tl.rand(seed, places) > p
    tl.store(out_ptr + places, tl.where(keep, x / (1 - p), 0.0), mask=places < n)


@jit
def swiglu(gate_ptr, up_ptr, out_ptr, N, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + row * stride + columns, mask=columns < N, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * stride + columns, mask=columns < N, other=0.0)
    y = gate * tl.sigmoid(gate)
    tl.store(out_ptr + row * stride + columns, y.to(up.dtype) * up, mask=columns < N)


@jit
def rotary(q_ptr, cos_ptr, sin_ptr, out_ptr, T, H, D: tl.constexpr, HEADS: tl.constexpr):
    """A token a program: halves of each head turn into each other."""
    token = tl.program_id(0)
    half: tl.constexpr = D // 2
    heads, columns = tl.arange(0, HEADS), tl.arange(0, half)
    at = token % T
    cos = tl.load(cos_ptr + at * half + columns)[None, :]
    sin = tl.load(sin_ptr + at * half + columns)[None, :]
    places = token * H * D + heads[:, None] * D + columns[None, :]
    inside = heads[:, None] < H
    x = tl.load(q_ptr + places, mask=inside, other=0.0)
    y = tl.load(q_ptr + places + half, mask=inside, other=0.0)
    tl.store(out_ptr + places, x * cos - y * sin, mask=inside)
    tl.store(out_ptr + places + half, y * cos + x * sin, mask=inside)


@jit
def adam(p_ptr, g_ptr, m_ptr, v_ptr, n, lr, beta1, beta2, eps, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    p, g = tl.load(p_ptr + places, mask=inside), tl.load(g_ptr + places, mask=inside)
    m = beta1 * tl.load(m_ptr + places, mask=inside) + (1 - beta1) * g
    v = beta2 * tl.load(v_ptr + places, mask=inside) + (1 - beta2) * g * g
    tl.store(m_ptr + places, m, mask=inside)
    tl.store(v_ptr + places, v, mask=inside)
    tl.store(p_ptr + places, p - lr * m / (tl.sqrt(v) + eps), mask=inside)


@jit
def row_sum_of_squares(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A norm of few rows."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + columns, mask=columns < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sqrt(tl.sum(x * x, 0)))
