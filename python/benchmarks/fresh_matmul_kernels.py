# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `fresh` of public_kernels.py with products: persistent loops, experts, adapters,
packed weights, convolutions, triangles. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def persist_flatten(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    """Two loops that are to be flattened; a second counter of tiles gives the place of the store."""
    start = tl.program_id(0)
    m_tiles, n_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * n_tiles
    stored = start - NUM_SMS
    for tile in tl.range(start, m_tiles * n_tiles, NUM_SMS, flatten=True):
        first = tile // in_group * GROUP
        size = min(m_tiles - first, GROUP)
        rows = (first + tile % size) * BM + tl.arange(0, BM)
        cols = tile % in_group // size * BN + tl.arange(0, BN)
        rows = tl.where(rows < M, rows, 0)
        cols = tl.where(cols < N, cols, 0)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for ki in range(tl.cdiv(K, BK)):
            ks = ki * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0.0)
            b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=ks[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        stored += NUM_SMS
        first = stored // in_group * GROUP
        size = min(m_tiles - first, GROUP)
        rows = (first + stored % size) * BM + tl.arange(0, BM)
        cols = stored % in_group // size * BN + tl.arange(0, BN)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        c = acc.to(c_ptr.dtype.element_ty)
        tl.store(c_ptr + rows[:, None] * N + cols[None, :], c, mask=mask)


@jit
def flat_last_flag(
    a_ptr, b_ptr, res_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """One loop over all steps carries whether its step is a tile's last one; a residual is added."""
    pid = tl.program_id(0)
    n_tiles, k_tiles = tl.cdiv(N, BN), tl.cdiv(K, BK)
    tiles = tl.cdiv(M, BM) * n_tiles
    tile, k = pid, 0
    is_last = k_tiles == 1
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(k_tiles * tl.cdiv(tiles - pid, PROGRAMS)):
        rm = tile // n_tiles * BM + tl.arange(0, BM)
        rn = tile % n_tiles * BN + tl.arange(0, BN)
        rk = k * BK + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rm[:, None] * K + rk[None, :],
            mask=(rm[:, None] < M) & (rk[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + rn[None, :] * K + rk[:, None],
            mask=(rn[None, :] < N) & (rk[:, None] < K),
            other=0.0,
        )
        acc += tl.dot(a, b)
        if is_last:
            mask = (rm[:, None] < M) & (rn[None, :] < N)
            at = rm[:, None] * N + rn[None, :]
            c = acc + tl.load(res_ptr + at, mask=mask, other=0.0).to(tl.float32)
            tl.store(c_ptr + at, c.to(c_ptr.dtype.element_ty), mask=mask)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            tile += PROGRAMS
        k = tl.where(is_last, 0, k + 1)
        is_last = k == k_tiles - 1


@jit
def row_panel(
    x_ptr, w_ptr, y_ptr, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """A block of rows a program, over all columns: its tiles of X are loaded again; squared ReLU."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inside = (rows < M)[:, None]
    ks = tl.arange(0, BK)
    for n in range(0, N, BN):
        cols = n + tl.arange(0, BN)
        x_at = x_ptr + rows[:, None] * K + ks[None, :]
        w_at = w_ptr + cols[None, :] * K + ks[:, None]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            x = tl.load(x_at, mask=inside, other=0.0)
            w = tl.load(w_at, mask=cols[None, :] < N, other=0.0)
            acc = tl.dot(x, w, acc)
            x_at += BK
            w_at += BK
        y = tl.maximum(acc, 0.0)
        y = (y * y).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=inside & (cols[None, :] < N))


@jit
def expert_contiguous(
    x_ptr, w_ptr, starts_ptr, y_ptr, N, K, E, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Tokens of an expert lie side by side: a loop over experts around one over a program's tiles."""
    pid = tl.program_id(0)
    n_tiles = tl.cdiv(N, BN)
    done = 0
    for e in range(E):
        begin = tl.load(starts_ptr + e)
        end = tl.load(starts_ptr + e + 1)
        tiles = tl.cdiv(end - begin, BM) * n_tiles
        w_e = w_ptr + e.to(tl.int64) * N * K
        for tile in range((pid + PROGRAMS - done % PROGRAMS) % PROGRAMS, tiles, PROGRAMS):
            rows = begin + tile // n_tiles * BM + tl.arange(0, BM)
            cols = tile % n_tiles * BN + tl.arange(0, BN)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, K, BK):
                ks = k + tl.arange(0, BK)
                x = tl.load(
                    x_ptr + rows[:, None] * K + ks[None, :], mask=(rows < end)[:, None], other=0.0
                )
                w = tl.load(
                    w_e + cols[None, :] * K + ks[:, None], mask=(cols < N)[None, :], other=0.0
                )
                acc = tl.dot(x, w, acc)
            mask = (rows < end)[:, None] & (cols < N)[None, :]
            y = acc.to(y_ptr.dtype.element_ty)
            tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=mask)
        done += tiles


@jit
def lora_linear(
    x_ptr, w_ptr, a_ptr, b_ptr, y_ptr, M, N, K, scale, R: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A linear layer and its adapter: one loop has both first products, a third one adds the second."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    r = tl.arange(0, R)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    low = tl.zeros((BM, R), dtype=tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < M, other=0.0)
        w = tl.load(w_ptr + cols[None, :] * K + ks[:, None], mask=cols[None, :] < N, other=0.0)
        a = tl.load(a_ptr + r[None, :] * K + ks[:, None])
        acc = tl.dot(x, w, acc)
        low = tl.dot(x, a, low)
    b = tl.load(b_ptr + cols[None, :] * R + r[:, None], mask=cols[None, :] < N, other=0.0)
    acc += tl.dot((low * scale).to(b.dtype), b)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    y = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=mask)


@jit
def splitk_parts(
    a_ptr, b_ptr, part_ptr, M, N, K, k_each, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Few rows: a part of K a program, whose sum goes to its own matrix."""
    pid_n, pid_k = tl.program_id(0), tl.program_id(1)
    rows = tl.arange(0, BM)
    cols = pid_n * BN + tl.arange(0, BN)
    begin = pid_k * k_each
    end = min(begin + k_each, K)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(begin, end, BK):
        ks = k + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < end),
            other=0.0,
        )  # fmt: skip
        b = tl.load(
            b_ptr + cols[None, :] * K + ks[:, None], mask=(cols[None, :] < N) & (ks[:, None] < end),
            other=0.0,
        )  # fmt: skip
        acc += tl.dot(a, b)
    at = pid_k * M * N + rows[:, None] * N + cols[None, :]
    tl.store(part_ptr + at, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


@jit
def fp8_tensor_scale(
    a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """8-bit floats by block pointers that advance; both matrices have one loaded scale each."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    p_a = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (pid_m * BM, 0), (BM, BK), (1, 0))
    p_b = tl.make_block_ptr(b_ptr, (K, N), (1, K), (0, pid_n * BN), (BK, BN), (0, 1))
    p_c = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (pid_m * BM, pid_n * BN), (BM, BN), (1, 0))
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for _ in range(tl.cdiv(K, BK)):
        b_a = tl.load(p_a, boundary_check=(0, 1), padding_option="zero")
        b_b = tl.load(p_b, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(b_a, b_b, acc)
        p_a = tl.advance(p_a, (0, BK))
        p_b = tl.advance(p_b, (BK, 0))
    acc = acc * tl.load(sa_ptr) * tl.load(sb_ptr)
    tl.store(p_c, acc.to(p_c.dtype.element_ty), boundary_check=(0, 1))


@jit
def gptq_order(
    x_ptr, q_ptr, scales_ptr, zeros_ptr, group_ptr, y_ptr, M, N, K, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Eight weights of K in an int32; a list says which scale and which packed zero a row of K has."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    zero_shift = cols % 8 * 4
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        g = tl.load(group_ptr + ks)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < M, other=0.0)
        q = tl.load(q_ptr + (ks // 8)[:, None] * N + cols[None, :])
        zero = tl.load(zeros_ptr + g[:, None] * (N // 8) + (cols // 8)[None, :])
        scale = tl.load(scales_ptr + g[:, None] * N + cols[None, :])
        w = ((q >> (ks % 8 * 4)[:, None]) & 15) - ((zero >> zero_shift[None, :]) & 15)
        acc = tl.dot(x, (w * scale).to(x.dtype), acc)
    y = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=rows[:, None] < M)


@jit
def gemv_int4(
    x_ptr, q_ptr, scale_ptr, y_ptr, N, K, k_each, GROUP: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """One row: weights of 4 bits times the row, no dot; parts of K are added by atomics."""
    pid_n, pid_k = tl.program_id(0), tl.program_id(1)
    cols = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BK, BN), dtype=tl.float32)
    for i in range(pid_k * k_each, (pid_k + 1) * k_each, BK):
        ks = i + tl.arange(0, BK)
        x = tl.load(x_ptr + ks).to(tl.float32)
        q = tl.load(q_ptr + (ks[:, None] // 8) * N + cols[None, :], eviction_policy="evict_first")
        s = tl.load(scale_ptr + (i // GROUP) * N + cols).to(tl.float32)
        w = ((q >> (ks % 8 * 4)[:, None]) & 15).to(tl.float32) - 8.0
        acc += x[:, None] * (w * s[None, :])
    tl.atomic_add(y_ptr + cols, tl.sum(acc, axis=0), mask=cols < N)


@jit
def weight_grad_reverse(
    dy_ptr, x_ptr, dw_ptr, T, N, K, BN: tl.constexpr, BK: tl.constexpr, BT: tl.constexpr
):  # fmt: skip
    """A weight's gradient is added to what it has: the loop over tokens goes down, from the last ones."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    at = dw_ptr + n[:, None] * K + k[None, :]
    mask = (n[:, None] < N) & (k[None, :] < K)
    acc = tl.zeros((BN, BK), dtype=tl.float32)
    for i in range(tl.cdiv(T, BT) - 1, -1, -1):
        t = i * BT + tl.arange(0, BT)
        dy = tl.load(
            dy_ptr + t[:, None] * N + n[None, :],
            mask=(t[:, None] < T) & (n[None, :] < N),
            other=0.0,
        )
        x = tl.load(
            x_ptr + t[:, None] * K + k[None, :], mask=(t[:, None] < T) & (k[None, :] < K), other=0.0
        )
        acc += tl.dot(tl.trans(dy), x)
    tl.store(at, tl.load(at, mask=mask, other=0.0) + acc, mask=mask)


@jit
def tf32_batched(
    a_ptr, b_ptr, c_ptr, M, N, K, alpha, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    EVEN_K: tl.constexpr,
):  # fmt: skip
    """A batch of f32: a tile of a matrix a program; masks along K only if it needs them."""
    batch = tl.program_id(2)
    a_ptr += batch * M * K
    b_ptr += batch * K * N
    c_ptr += batch * M * N
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    p_a = a_ptr + (rm % M)[:, None] * K + rk[None, :]
    p_b = b_ptr + rk[:, None] * N + (rn % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(K, 0, -BK):
        if EVEN_K:
            a = tl.load(p_a)
            b = tl.load(p_b)
        else:
            a = tl.load(p_a, mask=rk[None, :] < k, other=0.0)
            b = tl.load(p_b, mask=rk[:, None] < k, other=0.0)
        acc += tl.dot(a, b)
        p_a += BK
        p_b += BK * N
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc * alpha, mask=mask)


@jit
def conv3x3(
    x_ptr, w_ptr, bias_ptr, y_ptr, pixels, H, W, C: tl.constexpr, O, BM: tl.constexpr,
    BN: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """A 3x3 convolution, channels last: loops over the filter's rows and columns around one over channels."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    c = tl.arange(0, BC)
    picture, y, x = m // (H * W), m // W % H, m % W
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for r in range(3):
        for s in range(3):
            yy, xx = y + r - 1, x + s - 1
            inside = (m < pixels) & (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
            p_x = x_ptr + ((picture * H + yy) * W + xx)[:, None] * C + c[None, :]
            p_w = w_ptr + ((r * 3 + s) * C + c)[:, None] * O + o[None, :]
            for _ in range(0, C, BC):
                tile = tl.load(p_x, mask=inside[:, None], other=0.0)
                acc = tl.dot(tile, tl.load(p_w, mask=o[None, :] < O, other=0.0), acc)
                p_x += BC
                p_w += BC * O
    acc += tl.load(bias_ptr + o, mask=o < O, other=0.0).to(tl.float32)[None, :]
    mask = (m[:, None] < pixels) & (o[None, :] < O)
    tl.store(y_ptr + m[:, None] * O + o[None, :], acc.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def triangle_product(
    l_ptr, x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """A lower triangle times a matrix: whole tiles up to the diagonal, then those across it."""
    pid_m = tl.num_programs(0) - 1 - tl.program_id(0)
    m = pid_m * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, pid_m * BM, BK):
        a = tl.load(l_ptr + m[:, None] * M + (k + ks)[None, :], mask=m[:, None] < M, other=0.0)
        b = tl.load(x_ptr + (k + ks)[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
        acc = tl.dot(a, b, acc)
    for k in range(pid_m * BM, min((pid_m + 1) * BM, M), BK):
        keep = ((k + ks)[None, :] <= m[:, None]) & (m[:, None] < M)
        a = tl.load(l_ptr + m[:, None] * M + (k + ks)[None, :], mask=keep, other=0.0)
        inside = ((k + ks)[:, None] < M) & (n[None, :] < N)
        b = tl.load(x_ptr + (k + ks)[:, None] * N + n[None, :], mask=inside, other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (m[:, None] < M) & (n[None, :] < N)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def hadamard_rows(x_ptr, y_ptr, M, N, factor, D: tl.constexpr, BM: tl.constexpr):
    """Blocks of D columns times a Hadamard matrix, whose signs come from the bits of both indices."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    cols = tl.program_id(1) * D + d
    bits = d[:, None] & d[None, :]
    bits ^= bits >> 4
    bits ^= bits >> 2
    bits ^= bits >> 1
    h = (1 - 2 * (bits & 1)).to(x_ptr.dtype.element_ty)
    at = rows[:, None] * N + cols[None, :]
    x = tl.load(x_ptr + at, mask=rows[:, None] < M, other=0.0)
    y = tl.dot(x, h) * factor
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=rows[:, None] < M)


@jit
def norm_linear(
    x_ptr, w_ptr, y_ptr, rstd_ptr, M, N, K, eps, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """An RMS norm and a linear layer: the loop adds up products and squares, and the end divides."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rows = pid_m * BM + tl.arange(0, BM)
    cols = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    squares = tl.zeros((BM,), dtype=tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < M, other=0.0)
        w = tl.load(w_ptr + ks[:, None] * N + cols[None, :], mask=cols[None, :] < N, other=0.0)
        acc = tl.dot(x, w, acc)
        wide = x.to(tl.float32)
        squares += tl.sum(wide * wide, axis=1)
    rstd = tl.rsqrt(squares / K + eps)
    if pid_n == 0:
        tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    y = (acc * rstd[:, None]).to(y_ptr.dtype.element_ty)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=mask)
