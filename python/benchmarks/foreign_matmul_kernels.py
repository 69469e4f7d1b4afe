# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `foreign` of public_kernels.py with products: flat and persistent loops, experts,
adapters, low ranks, small weights, sparse blocks, losses. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def flat_pointers(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """One loop over all steps of all tiles: pointers advance, a tile's end makes new ones and stores halves."""
    tile = tl.program_id(0)
    n_tiles = tl.cdiv(N, BN)
    k_tiles = tl.cdiv(K, BK)
    tiles = tl.cdiv(M, BM) * n_tiles
    mine = tiles // PROGRAMS
    if tile < tiles % PROGRAMS:
        mine += 1
    rk = tl.arange(0, BK)
    rm = tile // n_tiles * BM + tl.arange(0, BM)
    rn = tile % n_tiles * BN + tl.arange(0, BN)
    p_a = a_ptr + tl.where(rm < M, rm, 0)[:, None] * K + rk[None, :]
    p_b = b_ptr + rk[:, None] * N + tl.where(rn < N, rn, 0)[None, :]
    k = 0
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(mine * k_tiles):
        a = tl.load(p_a, mask=rk[None, :] < K - k * BK, other=0.0)
        b = tl.load(p_b, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        p_a += BK
        p_b += BK * N
        k += 1
        if k == k_tiles:
            halves = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
            left, right = tl.split(halves)
            cols = tile % n_tiles * BN + tl.arange(0, BN // 2)
            at = c_ptr + rm[:, None] * N + cols[None, :]
            live = (rm < M)[:, None]
            tl.store(at, left.to(c_ptr.dtype.element_ty), mask=live & (cols < N)[None, :])
            cols += BN // 2
            right = right.to(c_ptr.dtype.element_ty)
            tl.store(at + BN // 2, right, mask=live & (cols < N)[None, :])
            tile += PROGRAMS
            rm = tile // n_tiles * BM + tl.arange(0, BM)
            rn = tile % n_tiles * BN + tl.arange(0, BN)
            p_a = a_ptr + tl.where(rm < M, rm, 0)[:, None] * K + rk[None, :]
            p_b = b_ptr + rk[:, None] * N + tl.where(rn < N, rn, 0)[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            k = 0


@jit
def persist_residual(
    a_ptr, b_ptr, r_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """A program has every so-manyth tile; sums begin with a residual that is loaded before the loop."""
    m_tiles, n_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), m_tiles * n_tiles, tl.num_programs(0)):
        group = tile // (GROUP * m_tiles)
        first = group * GROUP
        width = min(n_tiles - first, GROUP)
        pid_n = first + tile % width
        pid_m = tile % (GROUP * m_tiles) // width
        rm, rn = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
        at = rm[:, None] * N + rn[None, :]
        inside = (rm < M)[:, None] & (rn < N)[None, :]
        acc = tl.load(r_ptr + at, mask=inside, other=0.0).to(tl.float32)
        for k in tl.range(0, K, BK):
            rk = k + tl.arange(0, BK)
            a = tl.load(
                a_ptr + rm[:, None] * K + rk[None, :],
                mask=(rm < M)[:, None] & (rk < K)[None, :],
                other=0.0,
            )
            b = tl.load(
                b_ptr + rn[None, :] * K + rk[:, None],
                mask=(rn < N)[None, :] & (rk < K)[:, None],
                other=0.0,
            )
            acc += tl.dot(a, b)
        tl.store(c_ptr + at, acc.to(c_ptr.dtype.element_ty), mask=inside)


@jit
def while_in_while(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Both the loop over tiles and that over K are a `while`; the second one counts what is left."""
    m_tiles = tl.cdiv(M, BM)
    tile = tl.program_id(0)
    while tile < m_tiles * tl.cdiv(N, BN):
        rm = tile % m_tiles * BM + tl.arange(0, BM)
        rn = tile // m_tiles * BN + tl.arange(0, BN)
        rk = tl.arange(0, BK)
        p_a = a_ptr + (rm % M)[:, None] * K + rk[None, :]
        p_b = b_ptr + rk[:, None] * N + (rn % N)[None, :]
        bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        left = K
        while left > 0:
            a = tl.load(p_a, mask=rk[None, :] < left, other=0.0)
            b = tl.load(p_b, mask=rk[:, None] < left, other=0.0)
            acc = tl.dot(a, b, acc)
            p_a += BK
            p_b += BK * N
            left -= BK
        acc += bias[None, :]
        acc = tl.where(acc > 0, acc, 0.01 * acc)
        mask = (rm < M)[:, None] & (rn < N)[None, :]
        c = acc.to(c_ptr.dtype.element_ty)
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], c, mask=mask)
        tile += tl.num_programs(0)


@jit
def product_argmax(
    x_ptr, w_ptr, top_ptr, at_ptr, M, V, K, PARTS, BM: tl.constexpr, BV: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """The word with the largest logit in a part of the vocabulary: no logit is stored."""
    i_m, part = tl.program_id(0), tl.program_id(1)
    rows = i_m * BM + tl.arange(0, BM)
    live = rows < M
    ks = tl.arange(0, BK)
    best = tl.full((BM,), float("-inf"), tl.float32)
    best_at = tl.zeros((BM,), tl.int32)
    for tile in range(part, tl.cdiv(V, BV), PARTS):
        words = tile * BV + tl.arange(0, BV)
        p_x = x_ptr + rows[:, None] * K + ks[None, :]
        p_w = w_ptr + words[None, :] * K + ks[:, None]
        logits = tl.zeros((BM, BV), tl.float32)
        for _ in range(0, K, BK):
            x = tl.load(p_x, mask=live[:, None], other=0.0)
            w = tl.load(p_w, mask=(words < V)[None, :], other=0.0)
            logits += tl.dot(x, w)
            p_x += BK
            p_w += BK
        logits = tl.where((words < V)[None, :], logits, float("-inf"))
        here = tl.max(logits, 1)
        index = tile * BV + tl.argmax(logits, 1)
        best_at = tl.where(here > best, index, best_at)
        best = tl.maximum(best, here)
    tl.store(top_ptr + part * M + rows, best, mask=live)
    tl.store(at_ptr + part * M + rows, best_at, mask=live)


@jit
def splitk_last(
    a_ptr, b_ptr, part_ptr, count_ptr, c_ptr, M, N, K, k_each, SPLITS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Programs share K and store their sums; the one that ends last adds all of a tile's sums."""
    pid, split = tl.program_id(0), tl.program_id(1)
    n_tiles = tl.cdiv(N, BN)
    rm = pid // n_tiles * BM + tl.arange(0, BM)
    rn = pid % n_tiles * BN + tl.arange(0, BN)
    begin = split * k_each
    end = min(begin + k_each, K)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(begin, end, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rm[:, None] * K + rk[None, :],
            mask=(rm < M)[:, None] & (rk < end)[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + rn[None, :] * K + rk[:, None],
            mask=(rn < N)[None, :] & (rk < end)[:, None],
            other=0.0,
        )
        acc = tl.dot(a, b, acc)
    at = rm[:, None] * N + rn[None, :]
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    tl.store(part_ptr + split * M * N + at, acc, mask=mask)
    tl.debug_barrier()
    if tl.atomic_add(count_ptr + pid, 1) == SPLITS - 1:
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for other in range(SPLITS):
            total += tl.load(part_ptr + other * M * N + at, mask=mask, other=0.0)
        tl.store(c_ptr + at, total.to(c_ptr.dtype.element_ty), mask=mask)
        tl.store(count_ptr + pid, 0)


@jit
def expert_down_atomic(
    h_ptr, w_ptr, weight_ptr, sorted_ptr, expert_ptr, total_ptr, y_ptr, SLOTS, N, K,
    TOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The second product of experts: weighted rows are added to their tokens by atomics."""
    tile, pid_n = tl.program_id(0), tl.program_id(1)
    if tile * BM >= tl.load(total_ptr):
        return
    slots = tl.load(sorted_ptr + tile * BM + tl.arange(0, BM))
    live = slots < SLOTS
    expert = tl.load(expert_ptr + tile).to(tl.int64)
    cols, ks = pid_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    p_h = h_ptr + slots[:, None] * K + ks[None, :]
    p_w = w_ptr + expert * N * K + cols[None, :] * K + ks[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        inside = ks < K - k * BK
        h = tl.load(p_h, mask=live[:, None] & inside[None, :], other=0.0)
        w = tl.load(p_w, mask=(cols < N)[None, :] & inside[:, None], other=0.0)
        acc += tl.dot(h, w)
        p_h += BK
        p_w += BK
    acc *= tl.load(weight_ptr + slots, mask=live, other=0.0)[:, None]
    at = y_ptr + (slots // TOP)[:, None] * N + cols[None, :]
    tl.atomic_add(at, acc, mask=live[:, None] & (cols < N)[None, :], sem="relaxed")


@jit
def bgmv_shrink(
    x_ptr, w_ptr, adapter_ptr, y_ptr, K, k_each, scale, R: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """One token's short product with its own adapter, without a dot; programs share K and add by atomics."""
    token, part = tl.program_id(0), tl.program_id(1)
    adapter = tl.load(adapter_ptr + token)
    if adapter == -1:
        return
    r = tl.arange(0, R)
    x_ptr += token * K
    w_ptr += adapter * R * K
    acc = tl.zeros((R,), dtype=tl.float32)
    for k in range(part * k_each, min(part * k_each + k_each, K), BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(x_ptr + ks, mask=ks < K, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + r[:, None] * K + ks[None, :], mask=(ks < K)[None, :], other=0.0)
        acc += tl.sum(w.to(tl.float32) * x[None, :], 1)
    tl.atomic_add(y_ptr + token * R + r, acc * scale)


@jit
def bgmv_expand(
    x_ptr, w_ptr, adapter_ptr, y_ptr, N, R: tl.constexpr, BN: tl.constexpr, TILES: tl.constexpr
):  # fmt: skip
    """One token's low-rank vector times its adapter's rows is added to its output, a few tiles a program."""
    part, token = tl.program_id(0), tl.program_id(1)
    adapter = tl.load(adapter_ptr + token)
    if adapter < 0:
        return
    r = tl.arange(0, R)
    x = tl.load(x_ptr + token * R + r)
    for tile in range(TILES):
        n = (part * TILES + tile) * BN + tl.arange(0, BN)
        inside = n < N
        w = tl.load(
            w_ptr + (adapter * N + n)[:, None] * R + r[None, :], mask=inside[:, None], other=0.0
        )
        y = tl.load(y_ptr + token * N + n, mask=inside, other=0.0).to(tl.float32)
        y += tl.sum(w.to(tl.float32) * x[None, :], axis=1)
        tl.store(y_ptr + token * N + n, y.to(y_ptr.dtype.element_ty), mask=inside)


@jit
def lowrank_panels(
    x_ptr, a_ptr, b_ptr, y_ptr, M, N, K, n_each, R: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """(x A) B of low rank: a loop over K makes rows of rank R, another loop multiplies and stores panels."""
    rows, r = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, R)
    ks = tl.arange(0, BK)
    live = (rows < M)[:, None]
    h = tl.zeros((BM, R), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(
            x_ptr + rows[:, None] * K + (k + ks)[None, :],
            mask=live & (k + ks < K)[None, :],
            other=0.0,
        )
        a = tl.load(
            a_ptr + (k + ks)[:, None] * R + r[None, :], mask=(k + ks < K)[:, None], other=0.0
        )
        h = tl.dot(x, a, h)
    low = h.to(b_ptr.dtype.element_ty)
    begin = tl.program_id(1) * n_each
    for n in range(begin, min(begin + n_each, N), BN):
        cols = n + tl.arange(0, BN)
        b = tl.load(b_ptr + r[:, None] * N + cols[None, :], mask=(cols < N)[None, :], other=0.0)
        y = tl.dot(low, b).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=live & (cols < N)[None, :])


@jit
def fp8_row_scale(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, bias_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """8-bit floats: a scale for each row of A and of B's transpose, and a bias, after the loop."""
    pid = tl.program_id(0)
    m_tiles, n_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * n_tiles) * GROUP
    height = min(m_tiles - first, GROUP)
    pid_m = first + pid % (GROUP * n_tiles) % height
    pid_n = pid % (GROUP * n_tiles) // height
    rm, rn, rk = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    p_a = a_ptr + tl.minimum(rm, M - 1)[:, None] * stride_a + rk[None, :]
    p_b = b_ptr + tl.minimum(rn, N - 1)[None, :] * stride_b + rk[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(K, 0, -BK):
        a = tl.load(p_a, mask=rk[None, :] < k, other=0.0)
        b = tl.load(p_b, mask=rk[:, None] < k, other=0.0)
        acc = tl.dot(a, b, acc)
        p_a += BK
        p_b += BK
    a_scale = tl.load(a_scale_ptr + rm, mask=rm < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + rn, mask=rn < N, other=0.0)
    bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
    c = acc * a_scale[:, None] * b_scale[None, :] + bias[None, :]
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    p_c = c_ptr + rm[:, None] * stride_c + rn[None, :]
    tl.store(p_c, c.to(c_ptr.dtype.element_ty), mask=mask)


@jit
def nf4_linear(
    x_ptr, q_ptr, table_ptr, absmax_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Two codes of 4 bits a byte are looked up in a table of 16, and joined; BK weights share a maximum."""
    rows, cols = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ks, pairs = tl.arange(0, BK), tl.arange(0, BK // 2)
    inside = cols < N
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for block in range(0, K // BK):
        x = tl.load(
            x_ptr + rows[:, None] * K + (block * BK + ks)[None, :],
            mask=(rows < M)[:, None],
            other=0.0,
        )
        p_q = q_ptr + cols[:, None] * (K // 2) + (block * (BK // 2) + pairs)[None, :]
        codes = tl.load(p_q, mask=inside[:, None], other=0).to(tl.int32)
        low, high = tl.load(table_ptr + (codes & 15)), tl.load(table_ptr + (codes >> 4))
        w = tl.reshape(tl.join(low, high), (BN, BK))
        w *= tl.load(absmax_ptr + cols * (K // BK) + block, mask=inside, other=0.0)[:, None]
        acc += tl.dot(x, tl.trans(w.to(x.dtype)))
    y = acc.to(y_ptr.dtype.element_ty)
    mask = (rows < M)[:, None] & inside[None, :]
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=mask)


@jit
def block_diagonal(
    x_ptr, w_ptr, bias_ptr, y_ptr, M, G, D: tl.constexpr, BM: tl.constexpr
):  # fmt: skip
    """A short product for each group of columns: one dot, a bias and a gate, no loop."""
    pid_m, group = tl.program_id(0), tl.program_id(1)
    rows, d = pid_m * BM + tl.arange(0, BM), tl.arange(0, D)
    at = rows[:, None] * (G * D) + group * D + d[None, :]
    x = tl.load(x_ptr + at, mask=rows[:, None] < M, other=0.0)
    w = tl.load(w_ptr + group * D * D + d[:, None] * D + d[None, :])
    y = tl.dot(x, w) + tl.load(bias_ptr + group * D + d).to(tl.float32)[None, :]
    y = y * tl.sigmoid(y)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=rows[:, None] < M)


@jit
def matvec_lanes(w_ptr, x_ptr, r_ptr, y_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    """A matrix times a vector plus another one: a tile of products is summed once, after the loop."""
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    live = rows < N
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        w = tl.load(
            w_ptr + rows[:, None] * K + ks[None, :],
            mask=live[:, None] & (ks < K)[None, :],
            other=0.0,
        )
        x = tl.load(x_ptr + ks, mask=ks < K, other=0.0)
        acc += w.to(tl.float32) * x.to(tl.float32)[None, :]
    y = tl.sum(acc, 1) + tl.load(r_ptr + rows, mask=live, other=0.0).to(tl.float32)
    tl.store(y_ptr + rows, y.to(y_ptr.dtype.element_ty), mask=live)


@jit
def sddmm_blocks(
    a_ptr, b_ptr, row_ptr, col_ptr, out_ptr, scale, K: tl.constexpr, B: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Blocks of A times B's transpose that a list names, each stored whole: rows and columns by block."""
    i = tl.program_id(0)
    head = tl.program_id(1)
    m_tiles = tl.num_programs(0)
    rows = tl.load(row_ptr + i) * B + tl.arange(0, B)
    cols = tl.load(col_ptr + i) * B + tl.arange(0, B)
    a_ptr += rows[:, None] * (K * tl.num_programs(1)) + head * K
    b_ptr += cols[None, :] * (K * tl.num_programs(1)) + head * K
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in tl.static_range(0, K, BK):
        ks = k + tl.arange(0, BK)
        acc += tl.dot(tl.load(a_ptr + ks[None, :]), tl.load(b_ptr + ks[:, None]))
    lanes = tl.arange(0, B)
    at = (head * m_tiles + i) * B * B + lanes[:, None] * B + lanes[None, :]
    tl.store(out_ptr + at, (acc * scale).to(out_ptr.dtype.element_ty))


@jit
def conv_taps(
    x_ptr, w_ptr, bias_ptr, y_ptr, T, C, O, TAPS: tl.constexpr, DILATION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A convolution over time, channels last: a loop over taps around one over channels."""
    t = tl.program_id(0) * BM + tl.arange(0, BM)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    base = tl.program_id(2) * T
    cs = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for tap in range(TAPS):
        source = t + (tap - TAPS // 2) * DILATION
        live = (source >= 0) & (source < T)
        p_x = x_ptr + (base + source)[:, None] * C + cs[None, :]
        p_w = w_ptr + tap * C * O + cs[:, None] * O + o[None, :]
        for c in range(0, C, BK):
            x = tl.load(p_x + c, mask=live[:, None] & (c + cs < C)[None, :], other=0.0)
            w = tl.load(p_w + c * O, mask=(c + cs < C)[:, None] & (o < O)[None, :], other=0.0)
            acc = tl.dot(x, w, acc)
    acc += tl.load(bias_ptr + o, mask=o < O, other=0.0).to(tl.float32)[None, :]
    mask = (t < T)[:, None] & (o < O)[None, :]
    y = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + (base + t)[:, None] * O + o[None, :], y, mask=mask)


@jit
def logit_grad(
    x_ptr, w_ptr, lse_ptr, labels_ptr, loss_grad_ptr, grad_ptr, M, V, K, IGNORE: tl.constexpr,
    BM: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The gradient of logits that are computed again: their exponential, less one at the label."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    words = tl.program_id(1) * BV + tl.arange(0, BV)
    d_x = tl.make_tensor_descriptor(x_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    d_w = tl.make_tensor_descriptor(w_ptr, shape=[V, K], strides=[K, 1], block_shape=[BV, BK])
    logits = tl.zeros((BM, BV), tl.float32)
    for k in range(0, K, BK):
        x = d_x.load([tl.program_id(0) * BM, k])
        w = d_w.load([tl.program_id(1) * BV, k])
        logits = tl.dot(x, w.T, logits)
    lse = tl.load(lse_ptr + rows, mask=rows < M, other=0.0)
    label = tl.load(labels_ptr + rows, mask=rows < M, other=IGNORE)
    scale = tl.load(loss_grad_ptr + rows, mask=(rows < M) & (label != IGNORE), other=0.0)
    grad = tl.exp(logits - lse[:, None])
    grad = tl.where(words[None, :] == label[:, None], grad - 1.0, grad) * scale[:, None]
    mask = (rows < M)[:, None] & (words < V)[None, :]
    at = rows[:, None] * V + words[None, :]
    tl.store(grad_ptr + at, grad.to(grad_ptr.dtype.element_ty), mask=mask)
