# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmuls of the set `unseen` of public_kernels.py: persistent, split, grouped,
gathered, quantised and sparse ones. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def persist_where(
    x_ptr, w_ptr, bias_ptr, y_ptr, M, N, K, stride_xm, stride_xk, stride_wn, stride_wk, stride_ym,
    stride_yn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_SMS: tl.constexpr,
):  # fmt: skip
    """A linear layer: `where` wraps the counter at the end and clears the sum at the start."""
    pid = tl.program_id(axis=0)
    num_n = tl.cdiv(N, BLOCK_N)
    num_tiles = tl.cdiv(M, BLOCK_M) * num_n
    num_k = tl.cdiv(K, BLOCK_K)
    own_tiles = num_tiles // NUM_SMS + (pid < num_tiles % NUM_SMS).to(tl.int32)
    tile_id = pid
    k_idx = 0
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(own_tiles * num_k):
        offs_m = (tile_id // num_n) * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = (tile_id % num_n) * BLOCK_N + tl.arange(0, BLOCK_N)
        offs_k = k_idx * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk,
            mask=(offs_m[:, None] < M) & (offs_k[None, :] < K), other=0.0,
        )  # fmt: skip
        w = tl.load(
            w_ptr + offs_n[None, :] * stride_wn + offs_k[:, None] * stride_wk,
            mask=(offs_n[None, :] < N) & (offs_k[:, None] < K), other=0.0,
        )  # fmt: skip
        acc = tl.where(k_idx == 0, 0.0, acc)
        acc += tl.dot(x, w)
        if k_idx == num_k - 1:
            bias = tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)
            y = tl.maximum(acc + bias[None, :], 0.0)
            y_ptrs = y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :] * stride_yn
            y_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
            tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=y_mask)
        tile_id = tl.where(k_idx == num_k - 1, tile_id + NUM_SMS, tile_id)
        k_idx = tl.where(k_idx == num_k - 1, 0, k_idx + 1)


@jit
def persist_two_outputs(
    a_ptr, b_ptr, pre_ptr, act_ptr, M, N, K, lda, ldb, ldc, TM: tl.constexpr, TN: tl.constexpr,
    TK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """An `if` starts each tile; the end stores the sum and its SiLU."""
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    tiles_m, tiles_n, steps = tl.cdiv(M, TM), tl.cdiv(N, TN), tl.cdiv(K, TK)
    count = tl.cdiv(tiles_m * tiles_n - pid, programs)
    tile = pid
    step = 0
    m0 = 0
    n0 = 0
    acc = tl.zeros((TM, TN), tl.float32)
    for _ in range(0, count * steps):
        if step == 0:
            width = GROUP * tiles_n
            group = tile // width
            rows_in_group = min(tiles_m - group * GROUP, GROUP)
            m0 = (group * GROUP + (tile % width) % rows_in_group) * TM
            n0 = ((tile % width) // rows_in_group) * TN
            acc = tl.zeros((TM, TN), tl.float32)
        rm = tl.max_contiguous(tl.multiple_of((m0 + tl.arange(0, TM)) % M, TM), TM)
        rn = tl.max_contiguous(tl.multiple_of((n0 + tl.arange(0, TN)) % N, TN), TN)
        rk = step * TK + tl.arange(0, TK)
        a = tl.load(a_ptr + rm[:, None] * lda + rk[None, :], mask=rk[None, :] < K, other=0.0)
        b = tl.load(b_ptr + rk[:, None] * ldb + rn[None, :], mask=rk[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
        step += 1
        if step == steps:
            step = 0
            tile += programs
            cm = m0 + tl.arange(0, TM)
            cn = n0 + tl.arange(0, TN)
            at = cm[:, None] * ldc + cn[None, :]
            inside = (cm < M)[:, None] & (cn < N)[None, :]
            tl.store(pre_ptr + at, acc.to(pre_ptr.dtype.element_ty), mask=inside)
            tl.store(
                act_ptr + at, (acc * tl.sigmoid(acc)).to(act_ptr.dtype.element_ty), mask=inside
            )


@jit
def persist_divmod(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Quotient and remainder of one loop index give the tile and the place in K."""
    pid, programs = tl.program_id(0), tl.num_programs(0)
    n_tiles = tl.cdiv(N, BN)
    k_tiles = tl.cdiv(K, BK)
    total = tl.cdiv(M, BM) * n_tiles
    rounds = (total - pid + programs - 1) // programs
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for i in tl.range(rounds * k_tiles):
        tile = pid + (i // k_tiles) * programs
        k = (i % k_tiles) * BK
        a_block = tl.make_block_ptr(
            a_ptr, (M, K), (K, 1), ((tile // n_tiles) * BM, k), (BM, BK), (1, 0)
        )
        b_block = tl.make_block_ptr(
            b_ptr, (K, N), (N, 1), (k, (tile % n_tiles) * BN), (BK, BN), (1, 0)
        )
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(a, b)
        if i % k_tiles == k_tiles - 1:
            c_block = tl.make_block_ptr(
                c_ptr, (M, N), (N, 1), ((tile // n_tiles) * BM, (tile % n_tiles) * BN), (BM, BN),
                (1, 0),
            )  # fmt: skip
            tl.store(c_block, acc, boundary_check=(0, 1))
            acc = tl.zeros([BM, BN], dtype=tl.float32)


@jit
def persist_while(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, SMS: tl.constexpr,
):  # fmt: skip
    """A `while` over tiles; pointers advance and start again with each tile."""
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    tile = tl.program_id(0)
    rk = tl.arange(0, BK)
    left = K
    rm = (tile // tiles_n) * BM + tl.arange(0, BM)
    rn = (tile % tiles_n) * BN + tl.arange(0, BN)
    a_ptrs = a_ptr + (rm % M)[:, None] * sam + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * sbk + (rn % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    while tile < tiles:
        a = tl.load(a_ptrs, mask=rk[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * sbk
        left -= BK
        if left <= 0:
            c_ptrs = c_ptr + rm[:, None] * scm + rn[None, :]
            tl.store(c_ptrs, acc.to(tl.bfloat16), mask=(rm[:, None] < M) & (rn[None, :] < N))
            tile += SMS
            left = K
            rm = (tile // tiles_n) * BM + tl.arange(0, BM)
            rn = (tile % tiles_n) * BN + tl.arange(0, BN)
            a_ptrs = a_ptr + (rm % M)[:, None] * sam + rk[None, :]
            b_ptrs = b_ptr + rk[:, None] * sbk + (rn % N)[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)


@jit
def persist_descriptor(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    """Descriptors made in the kernel, the second matrix as rows of its columns."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    tile = tl.program_id(0) - NUM_SMS
    mine = tl.cdiv(tiles_m * tiles_n - tl.program_id(0), NUM_SMS)
    at_m = 0
    at_n = 0
    k = -1
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(k_tiles * mine):
        k = tl.where(k == k_tiles - 1, 0, k + 1)
        if k == 0:
            tile += NUM_SMS
            first = tile // (GROUP * tiles_n) * GROUP
            height = min(tiles_m - first, GROUP)
            inner = tile % (GROUP * tiles_n)
            at_m = (first + inner % height) * BLOCK_M
            at_n = (inner // height) * BLOCK_N
        a = a_desc.load([at_m, k * BLOCK_K])
        b = b_desc.load([at_n, k * BLOCK_K])
        acc = tl.dot(a, b.T, acc)
        if k == k_tiles - 1:
            c_desc.store([at_m, at_n], acc.to(c_ptr.dtype.element_ty))
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)


@jit
def persist_batch(
    a_ptr, b_ptr, c_ptr, B, M, N, K, stride_ab, stride_am, stride_bb, stride_bk, stride_cb,
    stride_cm, alpha, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """All tiles of a batch in one loop; the counter is a remainder that goes up before its use."""
    programs = tl.num_programs(0)
    tiles_m, tiles_n, tiles_k = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    tiles = B * tiles_m * tiles_n
    tile = tl.program_id(0) - programs
    ki = tiles_k - 1
    batch = tl.cast(0, tl.int64)
    tm = 0
    tn = 0
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(tiles_k * tl.cdiv(tiles - tl.program_id(0), programs)):
        ki = (ki + 1) % tiles_k
        if ki == 0:
            tile += programs
            batch = (tile // (tiles_m * tiles_n)).to(tl.int64)
            tm = tile % (tiles_m * tiles_n) // tiles_n
            tn = tile % tiles_n
        rm = tm * BM + tl.arange(0, BM)
        rn = tn * BN + tl.arange(0, BN)
        rk = ki * BK + tl.arange(0, BK)
        a_mask = (rm < M)[:, None] & (rk < K)[None, :]
        b_mask = (rk < K)[:, None] & (rn < N)[None, :]
        a = tl.load(a_ptr + batch * stride_ab + rm[:, None] * stride_am + rk[None, :], a_mask, 0.0)
        b = tl.load(b_ptr + batch * stride_bb + rk[:, None] * stride_bk + rn[None, :], b_mask, 0.0)
        acc += tl.dot(a, b)
        if ki == tiles_k - 1:
            c = c_ptr + batch * stride_cb + rm[:, None] * stride_cm + rn[None, :]
            out = (acc * alpha).to(c_ptr.dtype.element_ty)
            tl.store(c, out, mask=(rm < M)[:, None] & (rn < N)[None, :])
            acc = tl.zeros((BM, BN), dtype=tl.float32)


@jit
def splitk_atomic(
    A, B, C, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
    EVEN_K: tl.constexpr,
):  # fmt: skip
    """Every program takes each SPLIT_K-th block of K and adds its part to the result."""
    pid = tl.program_id(0)
    pid_z = tl.program_id(1)
    grid_n = tl.cdiv(N, BLOCK_N)
    rm = (pid // grid_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = (pid % grid_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    rbn = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    rk = pid_z * BLOCK_K + tl.arange(0, BLOCK_K)
    A = A + (ram[:, None] * stride_am + rk[None, :] * stride_ak)
    B = B + (rk[:, None] * stride_bk + rbn[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        if EVEN_K:
            a = tl.load(A)
            b = tl.load(B)
        else:
            remaining = K - k * (BLOCK_K * SPLIT_K)
            a = tl.load(A, mask=rk[None, :] < remaining, other=0.0)
            b = tl.load(B, mask=rk[:, None] < remaining, other=0.0)
        acc += tl.dot(a, b)
        A += BLOCK_K * SPLIT_K * stride_ak
        B += BLOCK_K * SPLIT_K * stride_bk
    C = C + (rm[:, None] * stride_cm + rn[None, :] * stride_cn)
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(C, acc.to(C.dtype.element_ty), mask=mask)
    else:
        tl.atomic_add(C, acc.to(C.dtype.element_ty), mask=mask)


@jit
def stream_k(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Programs share all steps of all tiles evenly; tiles in two parts are added by atomics."""
    pid, programs = tl.program_id(0), tl.num_programs(0)
    tiles_n, steps = tl.cdiv(N, BN), tl.cdiv(K, BK)
    total = tl.cdiv(M, BM) * tiles_n * steps
    start = pid * (total // programs) + min(pid, total % programs)
    stop = start + total // programs + (pid < total % programs).to(tl.int32)
    while start < stop:
        tile = start // steps
        end = min((tile + 1) * steps, stop)
        rm = (tile // tiles_n) * BM + tl.arange(0, BM)
        rn = (tile % tiles_n) * BN + tl.arange(0, BN)
        rk = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(start - tile * steps, end - tile * steps):
            k = step * BK + rk
            a = tl.load(
                a_ptr + rm[:, None] * stride_am + k[None, :],
                mask=(rm[:, None] < M) & (k[None, :] < K), other=0.0,
            )  # fmt: skip
            b = tl.load(
                b_ptr + k[:, None] * stride_bk + rn[None, :],
                mask=(k[:, None] < K) & (rn[None, :] < N), other=0.0,
            )  # fmt: skip
            acc = tl.dot(a, b, acc)
        c_ptrs = c_ptr + rm[:, None] * stride_cm + rn[None, :]
        mask = (rm[:, None] < M) & (rn[None, :] < N)
        if end - start == steps:
            tl.store(c_ptrs, acc, mask=mask)
        else:
            tl.atomic_add(c_ptrs, acc, mask=mask, sem="relaxed")
        start = end


@jit
def moe_grouped(
    x_ptr, w_ptr, y_ptr, weights_ptr, sorted_ids_ptr, expert_ids_ptr, padded_ptr, N, K, num_valid,
    stride_xm, stride_we, stride_wn, stride_ym, TOP: tl.constexpr, WEIGHTED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Rows sorted by expert and padded; the loop gathers them and multiplies by the expert's weight."""
    pid = tl.program_id(0)
    padded = tl.load(padded_ptr)
    num_m, num_n = tl.cdiv(padded, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * num_n
    first_m = pid // in_group * GROUP_M
    group_m = min(num_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % group_m
    pid_n = (pid % in_group) // group_m
    if pid_m * BLOCK_M >= padded:
        return
    ids = tl.load(sorted_ids_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    valid = ids < num_valid
    expert = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)) % N
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + (ids[:, None] // TOP * stride_xm + offs_k[None, :])
    w_ptrs = w_ptr + expert * stride_we + (offs_k[:, None] + offs_n[None, :] * stride_wn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        x = tl.load(x_ptrs, mask=valid[:, None] & (offs_k[None, :] < K - k * BLOCK_K), other=0.0)
        w = tl.load(w_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc += tl.dot(x, w)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    if WEIGHTED:
        acc *= tl.load(weights_ptr + ids, mask=valid, other=0.0)[:, None]
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    y_ptrs = y_ptr + stride_ym * ids[:, None] + cols[None, :]
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=valid[:, None] & (cols[None, :] < N))


@jit
def grouped_addresses(
    a_addrs, b_addrs, c_addrs, sizes_ptr, groups, NUM_SM: tl.constexpr, TILE_M: tl.constexpr,
    TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Products of different sizes by loaded addresses; programs take tiles of all of them in turn."""
    tile = tl.program_id(0)
    before = 0
    for g in range(groups):
        m = tl.load(sizes_ptr + g * 3)
        n = tl.load(sizes_ptr + g * 3 + 1)
        k = tl.load(sizes_ptr + g * 3 + 2)
        tiles_n = tl.cdiv(n, TILE_N)
        tiles = tl.cdiv(m, TILE_M) * tiles_n
        while tile >= before and tile < before + tiles:
            a_ptr = tl.load(a_addrs + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_addrs + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_addrs + g).to(tl.pointer_type(tl.float16))
            rm = (tile - before) // tiles_n * TILE_M + tl.arange(0, TILE_M)
            rn = (tile - before) % tiles_n * TILE_N + tl.arange(0, TILE_N)
            rk = tl.arange(0, TILE_K)
            a_ptrs = a_ptr + rm[:, None] * k + rk[None, :]
            b_ptrs = b_ptr + rk[:, None] * n + rn[None, :]
            acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
            for _ in range(0, tl.cdiv(k, TILE_K)):
                tl.multiple_of(a_ptrs, [16, 16])
                tl.multiple_of(b_ptrs, [16, 16])
                a = tl.load(a_ptrs, mask=rm[:, None] < m, other=0.0)
                b = tl.load(b_ptrs, mask=rn[None, :] < n, other=0.0)
                acc += tl.dot(a, b)
                a_ptrs += TILE_K
                b_ptrs += TILE_K * n
            c_ptrs = c_ptr + rm[:, None] * n + rn[None, :]
            tl.store(c_ptrs, acc.to(tl.float16), mask=(rm[:, None] < m) & (rn[None, :] < n))
            tile += NUM_SM
        before += tiles


@jit
def shrink_sorted(
    x_ptr, lora_ptr, out_ptr, order_ptr, counts_ptr, starts_ptr, adapters_ptr, M, K, scaling,
    RANK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    """Tokens sorted by adapter: tiles of one adapter's tokens times its matrix, split along K."""
    pid_sk = tl.program_id(0) % SPLIT_K
    pid_m = tl.program_id(0) // SPLIT_K
    slot = tl.program_id(1)
    adapter = tl.load(adapters_ptr + slot)
    if adapter == -1:
        return
    count = tl.load(counts_ptr + slot)
    if pid_m * BLOCK_M >= count:
        return
    first = tl.load(starts_ptr + slot) + pid_m * BLOCK_M
    offs_m = tl.arange(0, BLOCK_M) % (count - pid_m * BLOCK_M)
    rows = tl.load(order_ptr + first + offs_m)
    offs_n = tl.arange(0, RANK)
    offs_k = pid_sk * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptr = x_ptr + rows[:, None] * K + offs_k[None, :]
    b_ptr = lora_ptr + adapter * RANK * K + offs_k[:, None] + offs_n[None, :] * K
    acc = tl.zeros((BLOCK_M, RANK), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        k_left = K - k * (BLOCK_K * SPLIT_K)
        b = tl.load(b_ptr, mask=offs_k[:, None] < k_left, other=0.0)
        a = tl.load(a_ptr, mask=offs_k[None, :] < k_left, other=0.0)
        acc += tl.dot(a, b)
        a_ptr += BLOCK_K * SPLIT_K
        b_ptr += BLOCK_K * SPLIT_K
    acc *= scaling
    inside = tl.arange(0, BLOCK_M) < count - pid_m * BLOCK_M
    tl.atomic_add(
        out_ptr + rows[:, None] * RANK + offs_n[None, :], acc, mask=inside[:, None], sem="relaxed"
    )


@jit
def expand_slices(
    x_ptr, addresses_ptr, y_ptr, order_ptr, counts_ptr, starts_ptr, adapters_ptr, M, N, stride_y,
    RANK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One product a program: adds to a slice of columns; each slice has weights at its own address."""
    pid_n = tl.program_id(0) % tl.cdiv(N, BLOCK_N)
    pid_m = tl.program_id(0) // tl.cdiv(N, BLOCK_N)
    slice_id, slot = tl.program_id(1), tl.program_id(2)
    adapter = tl.load(adapters_ptr + slot)
    count = tl.load(counts_ptr + slot)
    if adapter == -1:
        return
    if pid_m * BLOCK_M >= count:
        return
    left = min(BLOCK_M, count - pid_m * BLOCK_M)
    offs_m = tl.arange(0, BLOCK_M)
    rows = tl.load(order_ptr + tl.load(starts_ptr + slot) + pid_m * BLOCK_M + offs_m % left)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rank = tl.arange(0, RANK)
    w_ptr = tl.load(addresses_ptr + slice_id).to(tl.pointer_type(x_ptr.dtype.element_ty))
    w_ptr = tl.multiple_of(w_ptr, 16)
    x = tl.load(x_ptr + slice_id * M * RANK + rows[:, None] * RANK + rank[None, :])
    w_at = w_ptr + adapter * N * RANK + (offs_n % N)[None, :] * RANK + rank[:, None]
    acc = tl.dot(x, tl.load(w_at))
    y_at = y_ptr + rows[:, None] * stride_y + slice_id * N + offs_n[None, :]
    mask = (offs_m < left)[:, None] & (offs_n < N)[None, :]
    before = tl.load(y_at, mask=mask, other=0.0)
    tl.store(y_at, acc.to(y_ptr.dtype.element_ty) + before, mask=mask)


@jit
def int4_matmul(
    x_ptr, qw_ptr, scales_ptr, zeros_ptr, y_ptr, M, N, K, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Eight weights of K in an int32, with a scale and a packed zero for each group of K."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + offs_m[:, None] * K + offs_k[None, :]
    w_ptrs = qw_ptr + (offs_k[:, None] // 8) * N + offs_n[None, :]
    shift = (offs_k % 8) * 4
    zero_shift = (offs_n % 8) * 4
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        group = k * BLOCK_K // GROUP
        scale = tl.load(scales_ptr + group * N + offs_n)
        packed_zero = tl.load(zeros_ptr + group * (N // 8) + offs_n // 8)
        zero = ((packed_zero >> zero_shift) & 0xF) + 1
        x = tl.load(x_ptrs)
        packed = tl.load(w_ptrs)
        q = (packed >> shift[:, None]) & 0xF
        w = (q - zero[None, :]).to(tl.float16) * scale[None, :]
        acc += tl.dot(x, w)
        x_ptrs += BLOCK_K
        w_ptrs += (BLOCK_K // 8) * N
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    y_ptrs = y_ptr + rows[:, None] * N + offs_n[None, :]
    tl.store(y_ptrs, acc.to(tl.float16), mask=(rows[:, None] < M) & (offs_n[None, :] < N))


@jit
def fp8_block_matmul(
    A, B, C, As, Bs, M, N, K, group_n, group_k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """8-bit floats; each step's product is scaled by rows of A and by blocks of B."""
    pid = tl.program_id(axis=0)
    num_m, num_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP_M * num_n) * GROUP_M
    size = min(num_m - first, GROUP_M)
    pid_m = first + (pid % (GROUP_M * num_n)) % size
    pid_n = (pid % (GROUP_M * num_n)) // size
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = A + (offs_m[:, None] * K + offs_k[None, :])
    b_ptrs = B + (offs_k[:, None] + offs_n[None, :] * K)
    as_ptrs = As + offs_m * (K // group_k)
    bs_ptrs = Bs + (offs_n // group_n) * (K // group_k)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        at = k * BLOCK_K // group_k
        a_s = tl.load(as_ptrs + at)
        b_s = tl.load(bs_ptrs + at)
        acc += tl.dot(a, b) * a_s[:, None] * b_s[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c = acc.to(C.dtype.element_ty)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(C + N * rows[:, None] + cols[None, :], c, mask=mask)


@jit
def spmm_csr(indptr, indices, values, dense, out, N, BLOCK: tl.constexpr):
    """A sparse row a program: one row of the dense matrix for each value."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(begin, end):
        col = tl.load(indices + i).to(tl.int64)
        value = tl.load(values + i)
        acc += value * tl.load(dense + col * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row.to(tl.int64) * N + cols, acc.to(out.dtype.element_ty), mask=mask)
