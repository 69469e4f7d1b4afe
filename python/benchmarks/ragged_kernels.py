# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that load from memory what their loops look like; `jit` and `tl` are a compiler's."""

# mypy: ignore-errors
# ruff: noqa: F821


@jit
def experts(a_ptr, b_ptr, c_ptr, expert_ptr, M, N, K, EXPERTS: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Each block of rows is multiplied by the weights of its expert, if it has one."""
    pid = tl.program_id(0)
    across = tl.cdiv(N, BN)
    m, n = pid // across, pid % across * BN
    expert = tl.load(expert_ptr + m)
    if expert == -1:
        return
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [EXPERTS * N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc += tl.dot(a.load([m * BM, k]), b.load([expert * N + n, k]).T)
    c.store([m * BM, n], acc.to(tl.float16))


@jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, length_ptr, HEADS, T, scale, BM: tl.constexpr,
           BN: tl.constexpr, D: tl.constexpr):  # fmt: skip
    """Attention of sequences that are padded to T keys and have a length each."""
    start, z = tl.program_id(0), tl.program_id(1)
    length = tl.load(length_ptr + z // HEADS)
    rows = z * T + start * BM + tl.arange(0, BM)
    columns = tl.arange(0, D)
    k = tl.make_tensor_descriptor(k_ptr, [HEADS * T * 4, D], [D, 1], [BN, D])
    v = tl.make_tensor_descriptor(v_ptr, [HEADS * T * 4, D], [D, 1], [BN, D])
    q = tl.load(q_ptr + rows[:, None] * D + columns[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, length, BN):
        s = tl.dot(q, k.load([z * T + n, 0]).T) * scale
        s = tl.where((n + tl.arange(0, BN))[None, :] < length, s, -float("inf"))
        larger = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - larger[:, None])
        correction = tl.exp2(most - larger)
        total = total * correction + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v.load([z * T + n, 0]), acc * correction[:, None])
        most = larger
    tl.store(o_ptr + rows[:, None] * D + columns[None, :], (acc / total[:, None]).to(tl.float16))
