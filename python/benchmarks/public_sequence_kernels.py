# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of public_kernels.py that go over tokens: recurrences, chunks, decoding, attention. Any
compiler gives `jit` and `tl`."""

# ruff: noqa
# mypy: ignore-errors


@jit
def reversed_cumsum_blocks(x_ptr, out_ptr, T, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr):
    """Chunks from the last to the first: a triangular tile of ones times a chunk, by block pointers."""
    part, head = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, BT)
    ones = tl.where(i[:, None] <= i[None, :], 1.0, 0.0)
    carried = tl.zeros((BS,), dtype=tl.float32)
    for chunk in range(tl.cdiv(T, BT) - 1, -1, -1):
        x_at = tl.make_block_ptr(
            x_ptr + head * T * S, (T, S), (S, 1), (chunk * BT, part * BS), (BT, BS), (1, 0)
        )
        y_at = tl.make_block_ptr(
            out_ptr + head * T * S, (T, S), (S, 1), (chunk * BT, part * BS), (BT, BS), (1, 0)
        )
        x = tl.load(x_at, boundary_check=(0, 1)).to(tl.float32)
        y = carried[None, :] + tl.dot(ones, x, allow_tf32=False)
        tl.store(y_at, y.to(out_ptr.dtype.element_ty), boundary_check=(0, 1))
        carried += tl.sum(x, 0)


@jit
def cumsum_pointers(x_ptr, out_ptr, T, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr):
    """The same forwards, by pointers and masks."""
    part, head = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, BT)
    ones = tl.where(i[:, None] >= i[None, :], 1.0, 0.0)
    columns = part * BS + tl.arange(0, BS)
    carried = tl.zeros((BS,), dtype=tl.float32)
    for chunk in range(0, tl.cdiv(T, BT)):
        rows = chunk * BT + i
        inside = (rows < T)[:, None] & (columns < S)[None, :]
        place = head * T * S + rows[:, None] * S + columns[None, :]
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        y = tl.dot(ones, x, allow_tf32=False) + carried[None, :]
        tl.store(out_ptr + place, y.to(out_ptr.dtype.element_ty), mask=inside)
        carried += tl.sum(x, 0)


@jit
def cumsum_scan(x_ptr, out_ptr, T, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr):
    """The same by a scan of each chunk."""
    part, head = tl.program_id(0), tl.program_id(1)
    columns = part * BS + tl.arange(0, BS)
    carried = tl.zeros((BS,), dtype=tl.float32)
    for chunk in range(0, tl.cdiv(T, BT)):
        rows = chunk * BT + tl.arange(0, BT)
        inside = (rows < T)[:, None] & (columns < S)[None, :]
        place = head * T * S + rows[:, None] * S + columns[None, :]
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        y = tl.cumsum(x, 0) + carried[None, :]
        tl.store(out_ptr + place, y.to(out_ptr.dtype.element_ty), mask=inside)
        carried += tl.sum(x, 0)


@jit
def softplus_cumsum(
    x_ptr, bias_ptr, a_ptr, dt_ptr, out_ptr, T, H, CHUNK: tl.constexpr, BH: tl.constexpr
):  # fmt: skip
    """A chunk of tokens and some heads a program: softplus of x plus a bias, and its cumsum times a."""
    chunk = tl.program_id(0)
    heads = tl.program_id(1) * BH + tl.arange(0, BH)
    tokens = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = (heads[:, None] < H) & (tokens[None, :] < T)
    x = tl.load(x_ptr + tokens[None, :] * H + heads[:, None], mask=inside, other=0.0).to(tl.float32)
    x += tl.load(bias_ptr + heads, mask=heads < H, other=0.0).to(tl.float32)[:, None]
    dt = tl.where(x <= 20.0, tl.log(1.0 + tl.exp(x)), x)
    dt = tl.where(inside, dt, 0.0)
    place = heads[:, None] * T + tokens[None, :]
    tl.store(dt_ptr + place, dt, mask=inside)
    a = tl.load(a_ptr + heads, mask=heads < H, other=0.0).to(tl.float32)
    tl.store(out_ptr + place, tl.cumsum(dt * a[:, None], 1), mask=inside)


@jit
def recurrence(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr
):  # fmt: skip
    """Linear attention a token at a time: the state is a tile, three vectors come, one is stored."""
    part, head = tl.program_id(0), tl.program_id(1)
    ks, vs = tl.arange(0, K), part * BV + tl.arange(0, BV)
    state = tl.zeros((BV, K), dtype=tl.float32)
    q_at, k_at = q_ptr + head * T * K + ks, k_ptr + head * T * K + ks
    v_at, o_at = v_ptr + head * T * V + vs, o_ptr + head * T * V + vs
    for _ in range(0, T):
        k = tl.load(k_at).to(tl.float32)
        v = tl.load(v_at).to(tl.float32)
        q = tl.load(q_at).to(tl.float32) * scale
        state += k[None, :] * v[:, None]
        tl.store(o_at, tl.sum(state * q[None, :], 1).to(o_ptr.dtype.element_ty))
        q_at += K
        k_at += K
        v_at += V
        o_at += V


@jit
def gated_recurrence(
    q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, T, scale, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr
):  # fmt: skip
    """The state decays by a gate for each key."""
    part, head = tl.program_id(0), tl.program_id(1)
    ks, vs = tl.arange(0, K), part * BV + tl.arange(0, BV)
    state = tl.zeros((K, BV), dtype=tl.float32)
    for t in range(0, T):
        at = head * T * K + t * K + ks
        g = tl.load(g_ptr + at).to(tl.float32)
        k = tl.load(k_ptr + at).to(tl.float32)
        q = tl.load(q_ptr + at).to(tl.float32) * scale
        v = tl.load(v_ptr + head * T * V + t * V + vs).to(tl.float32)
        state = state * tl.exp(g)[:, None] + k[:, None] * v[None, :]
        o = tl.sum(state * q[:, None], 0)
        tl.store(o_ptr + head * T * V + t * V + vs, o.to(o_ptr.dtype.element_ty))


@jit
def delta_recurrence(
    q_ptr, k_ptr, v_ptr, beta_ptr, o_ptr, T, scale, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr
):  # fmt: skip
    """The delta rule: what the state says of a key is taken from the value first."""
    part, head = tl.program_id(0), tl.program_id(1)
    ks, vs = tl.arange(0, K), part * BV + tl.arange(0, BV)
    state = tl.zeros((BV, K), dtype=tl.float32)
    q_at, k_at = q_ptr + head * T * K + ks, k_ptr + head * T * K + ks
    v_at, o_at = v_ptr + head * T * V + vs, o_ptr + head * T * V + vs
    beta_at = beta_ptr + head * T
    for _ in range(0, T):
        k = tl.load(k_at).to(tl.float32)
        v = tl.load(v_at).to(tl.float32)
        q = tl.load(q_at).to(tl.float32) * scale
        beta = tl.load(beta_at).to(tl.float32)
        v = (v - tl.sum(state * k[None, :], 1)) * beta
        state += k[None, :] * v[:, None]
        tl.store(o_at, tl.sum(state * q[None, :], 1).to(o_ptr.dtype.element_ty))
        q_at += K
        k_at += K
        v_at += V
        o_at += V
        beta_at += 1


@jit
def linear_chunks(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr,
    BV: tl.constexpr,
):  # fmt: skip
    """Linear attention a chunk at a time: within the chunk by a causal product, before it by a state."""
    part, head = tl.program_id(0), tl.program_id(1)
    ks, vs, i = tl.arange(0, K), part * BV + tl.arange(0, BV), tl.arange(0, BT)
    causal = i[:, None] >= i[None, :]
    state = tl.zeros((K, BV), dtype=tl.float32)
    for chunk in range(0, tl.cdiv(T, BT)):
        rows = chunk * BT + i
        keys = head * T * K + rows[:, None] * K + ks[None, :]
        values = head * T * V + rows[:, None] * V + vs[None, :]
        q = tl.load(q_ptr + keys)
        k = tl.load(k_ptr + keys)
        v = tl.load(v_ptr + values)
        s = tl.where(causal, tl.dot(q, tl.trans(k)) * scale, 0.0)
        o = tl.dot(s.to(v.dtype), v) + tl.dot(q, state.to(q.dtype)) * scale
        state += tl.dot(tl.trans(k), v)
        tl.store(o_ptr + values, o.to(o_ptr.dtype.element_ty))


@jit
def decode_first(
    q_ptr, k_ptr, v_ptr, length_ptr, part_ptr, lse_ptr, scale, T, G: tl.constexpr, D: tl.constexpr,
    BN: tl.constexpr, SPLITS: tl.constexpr, GB: tl.constexpr,
):  # fmt: skip
    """The first stage of split decoding: a part of the keys for the heads of a group."""
    head, split = tl.program_id(0), tl.program_id(1)
    length = tl.load(length_ptr + head)
    each = tl.cdiv(tl.cdiv(length, SPLITS), BN) * BN
    start = split * each
    end = tl.minimum(start + each, length)
    group, ds, columns = tl.arange(0, GB), tl.arange(0, D), tl.arange(0, BN)
    q = tl.load(
        q_ptr + head * G * D + group[:, None] * D + ds[None, :], mask=group[:, None] < G, other=0.0
    )
    largest = tl.full((GB,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((GB,), dtype=tl.float32)
    acc = tl.zeros((GB, D), dtype=tl.float32)
    for n in range(start, end, BN):
        inside = n + columns < end
        k = tl.load(
            k_ptr + head * T * D + (n + columns)[None, :] * D + ds[:, None],
            mask=inside[None, :],
            other=0.0,
        )
        s = tl.where(inside[None, :], tl.dot(q, k) * scale, -float("inf"))
        new = tl.maximum(largest, tl.max(s, 1))
        alpha = tl.exp(largest - new)
        p = tl.exp(s - new[:, None])
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(
            v_ptr + head * T * D + (n + columns)[:, None] * D + ds[None, :],
            mask=inside[:, None],
            other=0.0,
        )
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        largest = new
    if end > start:
        place = (head * G + group) * SPLITS + split
        tl.store(
            part_ptr + place[:, None] * D + ds[None, :],
            acc / total[:, None],
            mask=group[:, None] < G,
        )
        tl.store(lse_ptr + place, largest + tl.log(total), mask=group < G)


@jit
def decode_second(
    part_ptr, lse_ptr, length_ptr, out_ptr, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr,
    SPLITS: tl.constexpr,
):  # fmt: skip
    """The second stage: parts are joined one by one, with a running maximum, sum and vector."""
    head = tl.program_id(0)
    length = tl.load(length_ptr + head // G)
    each = tl.cdiv(tl.cdiv(length, SPLITS), BN) * BN
    ds = tl.arange(0, D)
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for split in range(0, SPLITS):
        start = split * each
        end = tl.minimum(start + each, length)
        if end > start:
            value = tl.load(part_ptr + (head * SPLITS + split) * D + ds)
            lse = tl.load(lse_ptr + head * SPLITS + split)
            new = tl.maximum(largest, lse)
            alpha = tl.exp(largest - new)
            weight = tl.exp(lse - new)
            acc = acc * alpha + weight * value
            total = total * alpha + weight
            largest = new
    tl.store(out_ptr + head * D + ds, (acc / total).to(out_ptr.dtype.element_ty))


@jit
def decode_second_plain(
    part_ptr, lse_ptr, out_ptr, D: tl.constexpr, SPLITS, BLOCK: tl.constexpr
):  # fmt: skip
    """All parts are there; their number is an argument."""
    head = tl.program_id(0)
    ds = tl.arange(0, D)
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for split in range(0, SPLITS):
        lse = tl.load(lse_ptr + head * SPLITS + split)
        value = tl.load(part_ptr + (head * SPLITS + split) * D + ds)
        new = tl.maximum(largest, lse)
        acc = acc * tl.exp(largest - new) + tl.exp(lse - new) * value
        total = total * tl.exp(largest - new) + tl.exp(lse - new)
        largest = new
    tl.store(out_ptr + head * D + ds, (acc / total).to(out_ptr.dtype.element_ty))


@jit
def decode_second_tile(
    part_ptr, lse_ptr, out_ptr, D: tl.constexpr, SPLITS: tl.constexpr
):  # fmt: skip
    """All parts at once, as a tile."""
    head = tl.program_id(0)
    ds, splits = tl.arange(0, D), tl.arange(0, SPLITS)
    lse = tl.load(lse_ptr + head * SPLITS + splits)
    weight = tl.exp(lse - tl.max(lse, 0))
    weight = weight / tl.sum(weight, 0)
    value = tl.load(part_ptr + (head * SPLITS + splits)[:, None] * D + ds[None, :])
    tl.store(
        out_ptr + head * D + ds, tl.sum(value * weight[:, None], 0).to(out_ptr.dtype.element_ty)
    )


@jit
def short_attention(
    q_ptr, k_ptr, v_ptr, o_ptr, T, H, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):  # fmt: skip
    """Plain pointers into [batch, token, head, D], for short sequences."""
    block, head = tl.program_id(0), tl.program_id(1)
    batch = head // H
    base = batch * T * H * D + head % H * D
    rows, ds, n = block * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    places = base + rows[:, None] * H * D + ds[None, :]
    q = tl.load(q_ptr + places, mask=rows[:, None] < T, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    end = tl.minimum((block + 1) * BM, T) if CAUSAL else T
    for start in range(0, end, BN):
        columns = start + n
        k = tl.load(
            k_ptr + base + columns[None, :] * H * D + ds[:, None],
            mask=columns[None, :] < T,
            other=0.0,
        )
        s = tl.dot(q, k) * scale
        inside = columns[None, :] < T
        if CAUSAL:
            inside = inside & (rows[:, None] >= columns[None, :])
        s = tl.where(inside, s, -1.0e6)
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(largest - new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(
            v_ptr + base + columns[:, None] * H * D + ds[None, :],
            mask=columns[:, None] < T,
            other=0.0,
        )
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        largest = new
    acc = acc / total[:, None]
    tl.store(o_ptr + places, acc.to(o_ptr.dtype.element_ty), mask=rows[:, None] < T)


@jit
def packed_attention(
    q_ptr, k_ptr, v_ptr, o_ptr, starts_ptr, H, scale, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """Sequences lie behind one another; a program finds where its own begins and ends."""
    block, head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = tl.load(starts_ptr + sequence)
    T = tl.load(starts_ptr + sequence + 1) - first
    if block * BM >= T:
        return
    base = first * H * D + head * D
    rows, ds, n = block * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    places = base + rows[:, None] * H * D + ds[None, :]
    q = tl.load(q_ptr + places, mask=rows[:, None] < T, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    k_at = k_ptr + base + n[None, :] * H * D + ds[:, None]
    v_at = v_ptr + base + n[:, None] * H * D + ds[None, :]
    for start in range(0, tl.minimum((block + 1) * BM, T), BN):
        columns = start + n
        k = tl.load(k_at + start * H * D, mask=columns[None, :] < T, other=0.0)
        s = tl.dot(q, k) * scale
        s += tl.where(rows[:, None] >= columns[None, :], 0.0, -float("inf"))
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(largest - new)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_at + start * H * D, mask=columns[:, None] < T, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        largest = new
    tl.store(
        o_ptr + places, (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=rows[:, None] < T
    )
