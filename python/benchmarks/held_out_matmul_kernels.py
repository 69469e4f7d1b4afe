# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the set `held_out` of public_kernels.py with products: persistent loops,
quantised weights, ragged groups, sparse blocks. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def persist_halves(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bn, stride_cm, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    """Tiles in an outer loop; the sum is split into two halves, each with a store of its own."""
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    in_group = GROUP_M * num_pid_n
    offs_k = tl.arange(0, BLOCK_K)
    for tile_id in range(tl.program_id(0), num_pid_m * num_pid_n, NUM_SMS):
        first_m = tile_id // in_group * GROUP_M
        size_m = min(num_pid_m - first_m, GROUP_M)
        pid_m = first_m + (tile_id % in_group) % size_m
        pid_n = (tile_id % in_group) // size_m
        offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(k_tiles):
            ks = ki * BLOCK_K + offs_k
            a_mask = (offs_m[:, None] < M) & (ks[None, :] < K)
            b_mask = (offs_n[:, None] < N) & (ks[None, :] < K)
            a = tl.load(a_ptr + offs_m[:, None] * stride_am + ks[None, :], mask=a_mask, other=0.0)
            b = tl.load(b_ptr + offs_n[:, None] * stride_bn + ks[None, :], mask=b_mask, other=0.0)
            acc = tl.dot(a, b.T, acc)
        acc = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        left, right = tl.split(acc)
        half = pid_n * BLOCK_N + tl.arange(0, BLOCK_N // 2)
        c_at = c_ptr + offs_m[:, None] * stride_cm + half[None, :]
        mask = (offs_m[:, None] < M) & (half[None, :] < N)
        tl.store(c_at, left.to(c_ptr.dtype.element_ty), mask=mask)
        mask = (offs_m[:, None] < M) & (half[None, :] + BLOCK_N // 2 < N)
        tl.store(c_at + BLOCK_N // 2, right.to(c_ptr.dtype.element_ty), mask=mask)


@jit
def flat_countdown(
    x_ptr, w_ptr, bias_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """One loop over all steps; a counter goes down, and the sum starts with the bias."""
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    steps = tl.cdiv(K, BK)
    mine = tl.cdiv(tiles - pid, PROGRAMS)
    tile = pid - PROGRAMS
    left = 0
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    x_at = x_ptr + rm[:, None] * K + rk[None, :]
    w_at = w_ptr + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, mine * steps):
        if left == 0:
            tile += PROGRAMS
            left = steps
            rm = tile // tiles_n * BM + tl.arange(0, BM)
            rn = tile % tiles_n * BN + tl.arange(0, BN)
            x_at = x_ptr + rm[:, None] * K + rk[None, :]
            w_at = w_ptr + rk[:, None] * N + rn[None, :]
            bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
            acc = tl.zeros((BM, BN), dtype=tl.float32) + bias[None, :]
        ahead = K - (steps - left) * BK
        x = tl.load(x_at, mask=(rm[:, None] < M) & (rk[None, :] < ahead), other=0.0)
        w = tl.load(w_at, mask=(rk[:, None] < ahead) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, w)
        x_at += BK
        w_at += BK * N
        left -= 1
        if left == 0:
            mask = (rm[:, None] < M) & (rn[None, :] < N)
            y = acc.to(y_ptr.dtype.element_ty)
            tl.store(y_ptr + rm[:, None] * N + rn[None, :], y, mask=mask)


@jit
def while_batch_gelu(
    a_ptr, b_ptr, c_ptr, batches, M, N, K, stride_ab, stride_bb, stride_cb, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A `while` over the tiles of all batches, a loop over K within, and a GELU at the end."""
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    per_batch = tl.cdiv(M, BM) * tiles_n
    rk = tl.arange(0, BK)
    while tile < per_batch * batches:
        batch = tile // per_batch
        inner = tile % per_batch
        rm = (inner // tiles_n) * BM + tl.arange(0, BM)
        rn = (inner % tiles_n) * BN + tl.arange(0, BN)
        a = a_ptr + batch * stride_ab + (rm % M)[:, None] * K + rk[None, :]
        b = b_ptr + batch * stride_bb + rk[:, None] * N + (rn % N)[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(
                tl.load(a, mask=rk[None, :] < K - k, other=0.0),
                tl.load(b, mask=rk[:, None] < K - k, other=0.0),
                acc,
            )
            a += BK
            b += BK * N
        inner_gelu = 0.7978845608028654 * (acc + 0.044715 * acc * acc * acc)
        acc = acc * tl.sigmoid(2.0 * inner_gelu)
        c = c_ptr + batch * stride_cb + rm[:, None] * N + rn[None, :]
        tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))
        tile += tl.num_programs(0)


@jit
def flat_swiglu(
    x_ptr, gate_ptr, up_ptr, y_ptr, M, N, K, stride_x, stride_w, stride_y, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, SMS: tl.constexpr,
):  # fmt: skip
    """Two sums in one flat loop; the gate's SiLU times the other is stored at a tile's last step."""
    pid = tl.program_id(axis=0)
    num_m, num_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    tiles = num_m * num_n
    tiles_here = tiles // SMS
    if pid < tiles % SMS:
        tiles_here += 1
    tile_id = pid - SMS
    ki = -1
    offs_k = tl.arange(0, BK)
    offs_m, offs_n = tl.arange(0, BM), tl.arange(0, BN)
    gate = tl.zeros((BM, BN), dtype=tl.float32)
    up = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k_tiles * tiles_here):
        ki = tl.where(ki == k_tiles - 1, 0, ki + 1)
        if ki == 0:
            tile_id += SMS
            first = tile_id // (GROUP * num_n) * GROUP
            size = min(num_m - first, GROUP)
            offs_m = (first + tile_id % (GROUP * num_n) % size) * BM + tl.arange(0, BM)
            offs_n = (tile_id % (GROUP * num_n) // size) * BN + tl.arange(0, BN)
        ks = ki * BK + offs_k
        w_at = ks[:, None] + (offs_n % N)[None, :] * stride_w
        x = tl.load(
            x_ptr + (offs_m % M)[:, None] * stride_x + ks[None, :], mask=ks[None, :] < K, other=0.0
        )
        wg = tl.load(gate_ptr + w_at, mask=ks[:, None] < K, other=0.0)
        gate = tl.dot(x, wg, gate)
        wu = tl.load(up_ptr + w_at, mask=ks[:, None] < K, other=0.0)
        up = tl.dot(x, wu, up)
        if ki == k_tiles - 1:
            y = (gate * tl.sigmoid(gate) * up).to(y_ptr.dtype.element_ty)
            mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
            tl.store(y_ptr + offs_m[:, None] * stride_y + offs_n[None, :], y, mask=mask)
            gate = tl.zeros((BM, BN), dtype=tl.float32)
            up = tl.zeros((BM, BN), dtype=tl.float32)


@jit
def dual_swiglu(
    x_ptr, w_ptr, y_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile a program; gate and up are halves of one weight matrix."""
    pid_n, pid_m = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + offs_m[:, None] * K + offs_k[None, :]
    g_ptrs = w_ptr + offs_n[None, :] * K + offs_k[:, None]
    u_ptrs = g_ptrs + N * K
    acc_g = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    acc_u = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        x = tl.load(x_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < left), other=0.0)
        w_mask = (offs_n[None, :] < N) & (offs_k[:, None] < left)
        g = tl.load(g_ptrs, mask=w_mask, other=0.0)
        u = tl.load(u_ptrs, mask=w_mask, other=0.0)
        acc_g += tl.dot(x, g)
        acc_u += tl.dot(x, u)
        x_ptrs += BLOCK_K
        g_ptrs += BLOCK_K
        u_ptrs += BLOCK_K
    y = acc_g / (1.0 + tl.exp(-acc_g)) * acc_u
    y_ptrs = y_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(
        y_ptrs, y.to(y_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N)
    )


@jit
def int8_scaled(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, bias_ptr, M, N, K, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Eight-bit integers; the sum gets a scale for each row and each column, and a bias."""
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * num_n)
    size = min(num_m - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + pid % (GROUP_M * num_n) % size
    pid_n = pid % (GROUP_M * num_n) // size
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_m, mask_n = offs_m < M, offs_n < N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] + offs_n[None, :] * K
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        k_mask = offs_k < K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=mask_m[:, None] & k_mask[None, :], other=0)
        b = tl.load(b_ptrs, mask=k_mask[:, None] & mask_n[None, :], other=0)
        acc += tl.dot(a, b, out_dtype=tl.int32)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    a_scale = tl.load(a_scale_ptr + offs_m, mask=mask_m, other=0.0)
    b_scale = tl.load(b_scale_ptr + offs_n, mask=mask_n, other=0.0)
    bias = tl.load(bias_ptr + offs_n, mask=mask_n, other=0.0).to(tl.float32)
    c = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :] + bias[None, :]
    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


@jit
def weight_int8(
    x_ptr, w_ptr, scale_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Weights of int8 become bf16 in the loop; their scales are applied to the sum."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    x_at = x_ptr + rm[:, None] * K + rk[None, :]
    w_at = w_ptr + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K // BK):
        x = tl.load(x_at, mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_at, mask=rn[None, :] < N, other=0)
        acc = tl.dot(x, w.to(x.dtype), acc=acc)
        x_at += BK
        w_at += BK
    scale = tl.load(scale_ptr + rn, mask=rn < N, other=1.0)
    y = (acc * scale[None, :]).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], y, mask=(rm[:, None] < M) & (rn[None, :] < N))


@jit
def int4_interleaved(
    x_ptr, qw_ptr, qz_ptr, scales_ptr, y_ptr, M, N, K, GROUP: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    """Eight weights of a row in an int32, even columns first; parts of K are added by atomics."""
    pid, pid_z = tl.program_id(0), tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    offs_m = pid // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    words = pid % tiles_n * (BLOCK_N // 8) + tl.arange(0, BLOCK_N // 8)
    order = tl.reshape((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None], (8,))
    shifts = tl.broadcast_to((order * 4)[None, :], (BLOCK_K * (BLOCK_N // 8), 8))
    shifts = tl.reshape(shifts, (BLOCK_K, BLOCK_N))
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        at_k = (k * SPLIT_K + pid_z) * BLOCK_K
        offs_k = at_k + tl.arange(0, BLOCK_K)
        x_mask = (offs_m[:, None] < M) & (offs_k[None, :] < K)
        x = tl.load(x_ptr + offs_m[:, None] * K + offs_k[None, :], mask=x_mask, other=0.0)
        w_mask = (offs_k[:, None] < K) & (words[None, :] < N // 8)
        w = tl.load(qw_ptr + offs_k[:, None] * (N // 8) + words[None, :], mask=w_mask, other=0)
        w = tl.interleave(w, w)
        w = tl.interleave(w, w)
        w = tl.interleave(w, w)
        w = (w >> shifts) & 0xF
        group = at_k // GROUP
        z = tl.load(qz_ptr + group * (N // 8) + words, mask=words < N // 8, other=0)[None, :]
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = (tl.broadcast_to(z, (BLOCK_K, BLOCK_N)) >> shifts) & 0xF
        scale = tl.load(scales_ptr + group * N + offs_n, mask=offs_n < N, other=0.0)
        acc = tl.dot(x, ((w - z) * scale[None, :]).to(x.dtype), acc)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.atomic_add(y_ptr + offs_m[:, None] * N + offs_n[None, :], acc, mask=mask)


@jit
def matvec_rows(
    w_ptr, x_ptr, y_ptr, N, K, stride_w, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    """A matrix times a vector: some rows a program, a tile of partial sums."""
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[:, None]
    row_mask = rows < N
    acc = tl.zeros((BLOCK_N, BLOCK_K), dtype=tl.float32)
    w_at = w_ptr + rows * stride_w
    for start in range(0, K, BLOCK_K):
        cols = start + tl.arange(0, BLOCK_K)[None, :]
        w = tl.load(w_at + cols, mask=row_mask & (cols < K), other=0.0).to(tl.float32)
        x = tl.load(x_ptr + cols, mask=cols < K, other=0.0).to(tl.float32)
        acc += w * x
    y = tl.sum(acc, axis=1)[:, None]
    tl.store(y_ptr + rows, y.to(y_ptr.dtype.element_ty), mask=row_mask)


@jit
def jagged_product(
    starts_ptr, x_ptr, w_ptr, bias_ptr, y_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Rows of each sequence times that sequence's own matrix, plus its bias."""
    pid, pid_b = tl.program_id(0), tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    start_m = pid // tiles_n * BLOCK_M
    start_n = pid % tiles_n * BLOCK_N
    begin = tl.load(starts_ptr + pid_b)
    length = tl.load(starts_ptr + pid_b + 1) - begin
    if start_m >= length:
        return
    x_ptr += (begin + start_m) * K
    w_ptr += pid_b.to(tl.int64) * K * N
    y_ptr += (begin + start_m) * N
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = start_n + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + offs_m[:, None] * K + offs_k[None, :]
    w_ptrs = w_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x_mask = (offs_m[:, None] < length - start_m) & ((k + offs_k)[None, :] < K)
        x = tl.load(x_ptrs, mask=x_mask, other=0.0)
        w = tl.load(w_ptrs, mask=((k + offs_k)[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        acc += tl.dot(x, w)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K * N
    acc += tl.load(bias_ptr + pid_b * N + offs_n, mask=offs_n < N, other=0.0)[None, :].to(
        tl.float32
    )
    mask = (offs_m[:, None] < length - start_m) & (offs_n[None, :] < N)
    tl.store(
        y_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(y_ptr.dtype.element_ty), mask=mask
    )


@jit
def expert_gate_up(
    x_ptr, w_ptr, y_ptr, order_ptr, experts_ptr, num_valid, N, K, TOP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Gathered tokens times their expert's gate and up; a padded row is beyond `num_valid`."""
    pid_n, pid_m = tl.program_id(0), tl.program_id(1)
    expert = tl.load(experts_ptr + pid_m)
    if expert < 0:
        return
    places = tl.load(order_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M))
    live = places < num_valid
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + (places // TOP)[:, None] * K + offs_k[None, :]
    w_ptrs = w_ptr + expert.to(tl.int64) * 2 * N * K + offs_n[None, :] * K + offs_k[:, None]
    gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs + k, mask=live[:, None], other=0.0)
        gate = tl.dot(x, tl.load(w_ptrs + k), gate)
        up = tl.dot(x, tl.load(w_ptrs + N * K + k), up)
    y = (gate * tl.sigmoid(gate) * up).to(y_ptr.dtype.element_ty)
    y_ptrs = y_ptr + places[:, None].to(tl.int64) * N + offs_n[None, :]
    tl.store(y_ptrs, y, mask=live[:, None])


@jit
def small_products(
    a_ptr, b_ptr, c_ptr, batch, M, N, K, S: tl.constexpr, EACH: tl.constexpr
):  # fmt: skip
    """Many small products, some a program one after the other; a tile has a whole matrix."""
    first = tl.program_id(0) * EACH
    i, j = tl.arange(0, S), tl.arange(0, S)
    for one in range(first, min(first + EACH, batch)):
        a_mask = (i[:, None] < M) & (j[None, :] < K)
        b_mask = (i[:, None] < K) & (j[None, :] < N)
        a = tl.load(a_ptr + one * M * K + i[:, None] * K + j[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + one * K * N + i[:, None] * N + j[None, :], mask=b_mask, other=0.0)
        c = tl.dot(a, b)
        c_at = c_ptr + one * M * N + i[:, None] * N + j[None, :]
        tl.store(c_at, c.to(c_ptr.dtype.element_ty), mask=(i[:, None] < M) & (j[None, :] < N))


@jit
def mirrored_product(
    x_ptr, y_ptr, M, K, alpha, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    """X times its transpose: tiles above the diagonal are mirrored from those below."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    if pid_m < pid_n:
        return
    rm = pid_m * BLOCK + tl.arange(0, BLOCK)
    rn = pid_n * BLOCK + tl.arange(0, BLOCK)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = x_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = x_ptr + rn[:, None] * K + rk[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(rn[:, None] < M) & (rk[None, :] < K - k), other=0.0)
        acc = tl.dot(a, tl.trans(b), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    y = (acc * alpha).to(y_ptr.dtype.element_ty)
    inside = (rm[:, None] < M) & (rn[None, :] < M)
    tl.store(y_ptr + rm[:, None] * M + rn[None, :], y, mask=inside)
    if pid_m > pid_n:
        tl.store(y_ptr + rn[:, None] * M + rm[None, :], tl.trans(y), mask=tl.trans(inside))


@jit
def lowrank_add(
    x_ptr, a_ptr, b_ptr, y_ptr, M, N, K, scale, R: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Some tokens a program: their products with A stay, and those with B are added to the result."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rr, rk = tl.arange(0, R), tl.arange(0, BK)
    low = tl.zeros((BM, R), dtype=tl.float32)
    for k in range(0, K, BK):
        x_mask = (rm[:, None] < M) & (k + rk[None, :] < K)
        x = tl.load(x_ptr + rm[:, None] * K + k + rk[None, :], mask=x_mask, other=0.0)
        a = tl.load(a_ptr + rr[None, :] * K + k + rk[:, None], mask=k + rk[:, None] < K, other=0.0)
        low = tl.dot(x, a, low)
    low = (low * scale).to(x_ptr.dtype.element_ty)
    for n in range(0, N, BN):
        rn = n + tl.arange(0, BN)
        b = tl.load(b_ptr + rn[None, :] * R + rr[:, None], mask=rn[None, :] < N, other=0.0)
        y_at = y_ptr + rm[:, None] * N + rn[None, :]
        mask = (rm[:, None] < M) & (rn[None, :] < N)
        y = tl.load(y_at, mask=mask, other=0.0).to(tl.float32) + tl.dot(low, b)
        tl.store(y_at, y.to(y_ptr.dtype.element_ty), mask=mask)


@jit
def block_sparse(
    crow_ptr, col_ptr, values_ptr, dense_ptr, out_ptr, N, BM: tl.constexpr, BK: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """A row of sparse blocks a program; the list says which rows of the dense matrix it takes."""
    row_block, pid_n = tl.program_id(0), tl.program_id(1)
    begin = tl.load(crow_ptr + row_block)
    count = tl.load(crow_ptr + row_block + 1) - begin
    m, k = tl.arange(0, BM), tl.arange(0, BK)
    n = pid_n * BN + tl.arange(0, BN)
    value_at = values_ptr + begin * BM * BK + m[:, None] * BK + k[None, :]
    col_at = col_ptr + begin
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(count):
        value = tl.load(value_at)
        place = tl.load(col_at) * BK
        dense = tl.load(
            dense_ptr + (place + k)[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0
        )
        acc += tl.dot(value, dense)
        value_at += BM * BK
        col_at += 1
    out_at = out_ptr + (row_block * BM + m)[:, None] * N + n[None, :]
    tl.store(out_at, acc.to(out_ptr.dtype.element_ty), mask=n[None, :] < N)


@jit
def weight_gradient(
    x_ptr, dy_ptr, dw_ptr, db_ptr, T, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_T: tl.constexpr,
):  # fmt: skip
    """A linear layer's gradients: a loop over tokens for the weights and, at the edge, the bias."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    bias = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for t in range(0, T, BLOCK_T):
        rt = t + tl.arange(0, BLOCK_T)
        x_mask = (rt[:, None] < T) & (rm[None, :] < M)
        dy_mask = (rt[:, None] < T) & (rn[None, :] < N)
        x = tl.load(x_ptr + rt[:, None] * M + rm[None, :], mask=x_mask, other=0.0)
        dy = tl.load(dy_ptr + rt[:, None] * N + rn[None, :], mask=dy_mask, other=0.0)
        acc = tl.dot(tl.trans(x), dy, acc)
        bias += tl.sum(dy.to(tl.float32), 0)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(dw_ptr + rm[:, None] * N + rn[None, :], acc, mask=mask)
    if pid_m == 0:
        tl.store(db_ptr + rn, bias, mask=rn < N)
