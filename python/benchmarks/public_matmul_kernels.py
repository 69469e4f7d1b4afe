# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmuls of public_kernels.py in forms that public kernels have: flat loops over the K tiles of all
tiles, gathered weights, few ranks. Any compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def tile_place(tile, blocks_m, blocks_n, GROUP: tl.constexpr):
    in_group = GROUP * blocks_n
    first = tile // in_group * GROUP
    height = min(blocks_m - first, GROUP)
    return first + tile % height, tile % in_group // height


@jit
def flat_where(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """The counter wraps by `where` before it is used; indices beyond the end become 0."""
    pid = tl.program_id(0)
    blocks_m, blocks_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    tiles = blocks_m * blocks_n
    mine = tiles // PROGRAMS
    if pid < tiles % PROGRAMS:
        mine += 1
    tile = pid - PROGRAMS
    ki = -1
    pid_m = 0
    pid_n = 0
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k_tiles * mine):
        ki = tl.where(ki == k_tiles - 1, 0, ki + 1)
        if ki == 0:
            tile += PROGRAMS
            pid_m, pid_n = tile_place(tile, blocks_m, blocks_n, GROUP)
            rows = pid_m * BM + tl.arange(0, BM)
            columns = pid_n * BN + tl.arange(0, BN)
            rows = tl.where(rows < M, rows, 0)
            columns = tl.where(columns < N, columns, 0)
            rows = tl.max_contiguous(tl.multiple_of(rows, BM), BM)
            columns = tl.max_contiguous(tl.multiple_of(columns, BN), BN)
        k = ki * BK + ks
        x = tl.load(
            a_ptr + rows[:, None] * stride_a + k[None, :], mask=ks[None, :] < K - ki * BK, other=0.0
        )
        y = tl.load(
            b_ptr + k[:, None] * stride_b + columns[None, :],
            mask=ks[:, None] < K - ki * BK,
            other=0.0,
        )
        acc = tl.dot(x, y, acc)
        if ki == k_tiles - 1:
            to_m = pid_m * BM + tl.arange(0, BM)
            to_n = pid_n * BN + tl.arange(0, BN)
            c = c_ptr + to_m[:, None] * stride_c + to_n[None, :]
            tl.store(
                c, acc.to(c_ptr.dtype.element_ty), mask=(to_m[:, None] < M) & (to_n[None, :] < N)
            )
            acc = tl.zeros((BM, BN), dtype=tl.float32)


@jit
def flat_if(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """The counter is increased at the end and wraps by an `if`; rows and columns are masked."""
    pid = tl.program_id(0)
    blocks_m, blocks_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    tiles = blocks_m * blocks_n
    mine = (tiles - pid + PROGRAMS - 1) // PROGRAMS
    tile = pid - PROGRAMS
    ki = 0
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(mine * k_tiles):
        if ki == 0:
            tile += PROGRAMS
            pid_m, pid_n = tile_place(tile, blocks_m, blocks_n, GROUP)
            rows = pid_m * BM + tl.arange(0, BM)
            columns = pid_n * BN + tl.arange(0, BN)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
        k = ki * BK + ks
        x = tl.load(
            a_ptr + rows[:, None] * stride_a + k[None, :],
            mask=(rows[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        y = tl.load(
            b_ptr + k[:, None] * stride_b + columns[None, :],
            mask=(k[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        acc += tl.dot(x, y)
        ki += 1
        if ki == k_tiles:
            c = c_ptr + rows[:, None] * stride_c + columns[None, :]
            tl.store(
                c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N)
            )
            ki = 0


@jit
def flat_while(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """A `while`, whose pointers move on in a tile."""
    pid = tl.program_id(0)
    blocks_m, blocks_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    mine = (blocks_m * blocks_n - pid + PROGRAMS - 1) // PROGRAMS
    total = k_tiles * mine
    tile = pid - PROGRAMS
    ki = -1
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_a + ks[None, :]
    b = b_ptr + ks[:, None] * stride_b + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    t = 0
    while t < total:
        ki = tl.where(ki + 1 == k_tiles, 0, ki + 1)
        if ki == 0:
            tile += PROGRAMS
            pid_m, pid_n = tile_place(tile, blocks_m, blocks_n, GROUP)
            rows = pid_m * BM + tl.arange(0, BM)
            columns = pid_n * BN + tl.arange(0, BN)
            a = a_ptr + (rows % M)[:, None] * stride_a + ks[None, :]
            b = b_ptr + ks[:, None] * stride_b + (columns % N)[None, :]
        else:
            a += BK
            b += BK * stride_b
        x = tl.load(a, mask=ks[None, :] < K - ki * BK, other=0.0)
        y = tl.load(b, mask=ks[:, None] < K - ki * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        if ki == k_tiles - 1:
            c = c_ptr + rows[:, None] * stride_c + columns[None, :]
            tl.store(
                c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N)
            )
            acc = tl.zeros((BM, BN), dtype=tl.float32)
        t += 1


@jit
def flat_remainder(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """The tile and its iteration are a quotient and a remainder of the loop's variable."""
    pid = tl.program_id(0)
    blocks_m, blocks_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    mine = (blocks_m * blocks_n - pid + PROGRAMS - 1) // PROGRAMS
    pid_m = 0
    pid_n = 0
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for t in range(0, k_tiles * mine):
        ki = t % k_tiles
        if ki == 0:
            pid_m, pid_n = tile_place(pid + t // k_tiles * PROGRAMS, blocks_m, blocks_n, GROUP)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
        rows = pid_m * BM + tl.arange(0, BM)
        columns = pid_n * BN + tl.arange(0, BN)
        k = ki * BK + ks
        x = tl.load(
            a_ptr + rows[:, None] * stride_a + k[None, :],
            mask=(rows[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        y = tl.load(
            b_ptr + k[:, None] * stride_b + columns[None, :],
            mask=(k[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        acc = tl.dot(x, y, acc)
        if ki == k_tiles - 1:
            c = c_ptr + rows[:, None] * stride_c + columns[None, :]
            tl.store(
                c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N)
            )


@jit
def flat_batch(
    a_ptr, b_ptr, c_ptr, bias_ptr, M, N, K, BATCH, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """A batch of contiguous matrices, and a bias for each column."""
    pid = tl.program_id(0)
    blocks_m, blocks_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    tiles = blocks_m * blocks_n
    mine = (tiles * BATCH - pid + PROGRAMS - 1) // PROGRAMS
    tile = pid - PROGRAMS
    ki = -1
    batch = 0
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k_tiles * mine):
        ki = tl.where(ki == k_tiles - 1, 0, ki + 1)
        if ki == 0:
            tile += PROGRAMS
            batch = tile // tiles
            pid_m, pid_n = tile_place(tile % tiles, blocks_m, blocks_n, GROUP)
            rows = pid_m * BM + tl.arange(0, BM)
            columns = pid_n * BN + tl.arange(0, BN)
        k = ki * BK + ks
        a = a_ptr + batch * M * K + rows[:, None] * K + k[None, :]
        b = b_ptr + batch * K * N + k[:, None] * N + columns[None, :]
        x = tl.load(a, mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b, mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        if ki == k_tiles - 1:
            inside = (rows[:, None] < M) & (columns[None, :] < N)
            bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
            result = acc + bias[None, :].to(tl.float32)
            place = batch * M * N + rows[:, None] * N + columns[None, :]
            tl.store(c_ptr + place, result.to(c_ptr.dtype.element_ty), mask=inside)
            acc = tl.zeros((BM, BN), dtype=tl.float32)


@jit
def nested(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """The same work by two loops, to compare the flat ones with."""
    pid = tl.program_id(0)
    blocks_m, blocks_n, k_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    ks = tl.arange(0, BK)
    for tile in range(pid, blocks_m * blocks_n, PROGRAMS):
        pid_m, pid_n = tile_place(tile, blocks_m, blocks_n, GROUP)
        rows = pid_m * BM + tl.arange(0, BM)
        columns = pid_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for ki in range(0, k_tiles):
            k = ki * BK + ks
            x = tl.load(
                a_ptr + rows[:, None] * stride_a + k[None, :],
                mask=(rows[:, None] < M) & (k[None, :] < K),
                other=0.0,
            )
            y = tl.load(
                b_ptr + k[:, None] * stride_b + columns[None, :],
                mask=(k[:, None] < K) & (columns[None, :] < N),
                other=0.0,
            )
            acc = tl.dot(x, y, acc)
        c = c_ptr + rows[:, None] * stride_c + columns[None, :]
        tl.store(
            c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N)
        )


@jit
def lora_shrink(
    x_ptr, w_ptr, index_ptr, out_ptr, K, scale, R: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr
):  # fmt: skip
    """A token a program: its row times the R rows of its adapter, K in parts that are added."""
    token, part = tl.program_id(0), tl.program_id(1)
    adapter = tl.load(index_ptr + token)
    if adapter < 0:
        return
    ranks = tl.arange(0, R)
    ks = part * BK + tl.arange(0, BK)
    acc = tl.zeros((R,), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        inside = ks + k * BK * SPLIT < K
        x = tl.load(x_ptr + token * K + ks + k * BK * SPLIT, mask=inside, other=0.0)
        w = tl.load(
            w_ptr + adapter * R * K + ranks[:, None] * K + ks[None, :] + k * BK * SPLIT,
            mask=inside[None, :], other=0.0,
        )  # fmt: skip
        acc += tl.sum(x[None, :].to(tl.float32) * w.to(tl.float32), 1)
    tl.atomic_add(out_ptr + token * R + ranks, acc * scale)


@jit
def lora_expand(
    x_ptr, w_ptr, index_ptr, out_ptr, N, R: tl.constexpr, BN: tl.constexpr, SPLIT: tl.constexpr
):  # fmt: skip
    """A token a program: its R numbers times its adapter's columns, added to the result."""
    token, part = tl.program_id(0), tl.program_id(1)
    adapter = tl.load(index_ptr + token)
    if adapter < 0:
        return
    ranks = tl.arange(0, R)
    x = tl.load(x_ptr + token * R + ranks)
    width = tl.cdiv(N, SPLIT)
    w = w_ptr + adapter * N * R + part * width * R
    out = out_ptr + token * N + part * width
    for n in range(0, width, BN):
        columns = n + tl.arange(0, BN)
        inside = columns < width
        tile = tl.load(w + columns[:, None] * R + ranks[None, :], mask=inside[:, None], other=0.0)
        old = tl.load(out + columns, mask=inside, other=0.0)
        added = tl.sum(tile.to(tl.float32) * x[None, :].to(tl.float32), 1)
        tl.store(out + columns, (old.to(tl.float32) + added).to(old.dtype), mask=inside)


@jit
def lora_segments(
    x_ptr, w_ptr, starts_ptr, index_ptr, out_ptr, K, R: tl.constexpr, BM: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Tokens of one adapter lie side by side: blocks of them times the adapter, by dots."""
    segment, block = tl.program_id(0), tl.program_id(1)
    start, end = tl.load(starts_ptr + segment), tl.load(starts_ptr + segment + 1)
    if start + block * BM >= end:
        return
    adapter = tl.load(index_ptr + segment)
    rows, ranks, ks = start + block * BM + tl.arange(0, BM), tl.arange(0, R), tl.arange(0, BK)
    x_at = x_ptr + rows[:, None] * K + ks[None, :]
    w_at = w_ptr + adapter * R * K + ranks[None, :] * K + ks[:, None]
    acc = tl.zeros((BM, R), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(x_at, mask=(rows[:, None] < end) & (ks[None, :] < K - k * BK), other=0.0)
        w = tl.load(w_at, mask=ks[:, None] < K - k * BK, other=0.0)
        acc += tl.dot(x, w)
        x_at += BK
        w_at += BK
    tl.store(
        out_ptr + rows[:, None] * R + ranks[None, :],
        acc.to(out_ptr.dtype.element_ty),
        mask=rows[:, None] < end,
    )


@jit
def gathered_sum(
    x_ptr, place_ptr, weight_ptr, out_ptr, D, TOP: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """A token a program: the weighted sum of the TOP rows that it chose, a block of columns at a time."""
    token = tl.program_id(0)
    for d in range(0, D, BD):
        columns = d + tl.arange(0, BD)
        acc = tl.zeros((BD,), dtype=tl.float32)
        for i in range(0, TOP):
            row = tl.load(place_ptr + token * TOP + i)
            weight = tl.load(weight_ptr + token * TOP + i)
            x = tl.load(x_ptr + row.to(tl.int64) * D + columns, mask=columns < D, other=0.0)
            acc += x.to(tl.float32) * weight
        tl.store(out_ptr + token * D + columns, acc.to(out_ptr.dtype.element_ty), mask=columns < D)


@jit
def gathered_sum_blocks(
    x_ptr, place_ptr, weight_ptr, out_ptr, D, TOP: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """The same, a block of columns a program, with the chosen rows as a tile."""
    token, block = tl.program_id(0), tl.program_id(1)
    columns = block * BD + tl.arange(0, BD)
    chosen = tl.arange(0, TOP)
    rows = tl.load(place_ptr + token * TOP + chosen)
    weights = tl.load(weight_ptr + token * TOP + chosen)
    x = tl.load(
        x_ptr + rows.to(tl.int64)[:, None] * D + columns[None, :], mask=columns[None, :] < D, other=0.0
    )  # fmt: skip
    acc = tl.sum(x.to(tl.float32) * weights[:, None], 0)
    tl.store(out_ptr + token * D + columns, acc.to(out_ptr.dtype.element_ty), mask=columns < D)
