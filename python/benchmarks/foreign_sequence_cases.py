# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of foreign_sequence_kernels.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, I32 = torch.float32, torch.bfloat16, torch.int32


def packed_starts(at: Maker, lengths: list[int]) -> torch.Tensor:
    """Where packed sequences begin, and where the last one ends."""
    return torch.tensor([0, *lengths]).cumsum(0).int().to(at.device)


def uneven_lengths(count: int, total: int) -> list[int]:
    """Lengths of packed sequences, one of which is a single token."""
    each = total // count
    lengths = [max(each + (i * 37 % 11 - 5) * each // 16, 1) for i in range(count)]
    return [1, *lengths[1:-1], max(total - 1 - sum(lengths[1:-1]), 1)]


@cases("recurrence", [(64, 1024, 128, 128), (8, 64, 64, 64)], (2, 9, 24, 20))
def token_key_decay(at: Maker, heads: int, t: int, kd: int, vd: int) -> Parts:
    bk, bv = at.size((64, 16), (16, 8))
    parts = cdiv(kd, bk)

    def make() -> Buffers:
        return {
            "q": at.random(heads, t, kd, dtype=BF16), "k": at.random(heads, t, kd, dtype=BF16),
            "v": at.random(heads, t, vd, dtype=BF16),
            "gk": -torch.rand((heads, t, kd), device=at.device) * 0.5,
            "o": at.empty(parts, heads, t, vd, dtype=F32),
            "ht": at.empty(heads, kd, vd, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("q", "k", "v", "gk", "o", "ht")
        return kernel[(parts, cdiv(vd, bv), heads)](
            *(s[name] for name in names), kd**-0.5, t, K=kd, V=vd, BK=bk, BV=bv,
            num_warps=at.size(1, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v = (s[name].float() for name in "qkv")
        state, o = torch.zeros(heads, kd, vd, device=at.device), []
        for i in range(t):
            state = state * s["gk"][:, i].exp()[..., None] + k[:, i, :, None] * v[:, i, None]
            scaled = state * q[:, i, :, None] * kd**-0.5
            o.append(torch.stack([part.sum(1) for part in scaled.split(bk, 1)]))
        return {"o": torch.stack(o, 2), "ht": state}

    return make, launch, want, 1e-2


@cases("recurrence", [(4, 1024, 16, 32, 128), (2, 64, 2, 4, 64)], (2, 9, 2, 4, 16))
def token_delta_normed(at: Maker, batch: int, t: int, heads: int, values: int, d: int) -> Parts:
    bv = at.size(16 if t > 64 else 8, 8)

    def make() -> Buffers:
        return {
            "q": at.random(batch, t, heads, d, dtype=BF16),
            "k": at.random(batch, t, heads, d, dtype=BF16),
            "v": at.random(batch, t, values, d, dtype=BF16),
            "g": -torch.rand((batch, t, values), device=at.device) * 0.1,
            "beta": torch.rand((batch, t, values), device=at.device),
            "o": at.empty(batch, t, values, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("q", "k", "v", "g", "beta", "o")
        return kernel[(d // bv, batch * values)](
            *(s[name] for name in names), d**-0.5, t, H=heads, HV=values, K=d, V=d, BV=bv,
            num_warps=at.size(1, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k = (
            (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()).repeat_interleave(
                values // heads, 2
            )
            for x in (s["q"].float(), s["k"].float())
        )
        v, beta = s["v"].float(), s["beta"]
        state, o = torch.zeros(batch, values, d, d, device=at.device), []
        for i in range(t):
            state = state * s["g"][:, i].exp()[..., None, None]
            change = v[:, i] - torch.einsum("bhvk,bhk->bhv", state, k[:, i])
            change = change * beta[:, i, :, None]
            state = state + change[..., None] * k[:, i, :, None]
            o.append(torch.einsum("bhvk,bhk->bhv", state, q[:, i]) * d**-0.5)
        return {"o": torch.stack(o, 1)}

    return make, launch, want, 1e-2


@cases("recurrence", [(16, 2048, 2048), (2, 128, 512)], (2, 9, 40))
def token_two_averages(at: Maker, batch: int, t: int, d: int) -> Parts:
    block = at.size(64 if t > 128 else 32, 16)

    def make() -> Buffers:
        return {
            "x": at.random(batch, t, d, dtype=BF16),
            "fast": torch.rand(d, device=at.device) * 0.5 + 0.2,
            "slow": torch.rand(d, device=at.device) * 0.1, "y": at.empty(batch, t, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, block), batch)](
            s["x"], s["fast"], s["slow"], s["y"], t, d, BLOCK=block, num_warps=at.size(1, 4)
        )

    def want(s: Buffers) -> Results:
        x = s["x"].float()
        fast, slow, y = x[:, 0], x[:, 0], [torch.zeros(batch, d, device=at.device)]
        for i in range(1, t):
            fast = fast + s["fast"] * (x[:, i] - fast)
            slow = slow + s["slow"] * (x[:, i] - slow)
            y.append(fast - slow)
        return {"y": torch.stack(y, 1)}

    return make, launch, want, 1e-2


@cases("recurrence", [(32, 1024, 128), (4, 64, 64)], (2, 9, 16))
def token_matrix_memory(at: Maker, heads: int, t: int, d: int) -> Parts:
    bv = at.size(16, 8)

    def make() -> Buffers:
        return {
            "q": at.random(heads, t, d, dtype=BF16), "k": at.random(heads, t, d, dtype=BF16),
            "v": at.random(heads, t, d, dtype=BF16), "i": at.random(heads, t, dtype=F32),
            "f": at.random(heads, t, dtype=F32) + 3, "h": at.empty(heads, t, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(d // bv, heads)](
            *(s[name] for name in ("q", "k", "v", "i", "f", "h")), d**-0.5, t, D=d, BV=bv,
            num_warps=at.size(2, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v = (s[name].float() for name in "qkv")
        k = k * d**-0.5
        memory = torch.zeros(heads, d, d, device=at.device)
        norm, top = torch.zeros(heads, d, device=at.device), torch.zeros(heads, device=at.device)
        log_f, h = torch.nn.functional.logsigmoid(s["f"]), []
        for i in range(t):
            new = torch.maximum(log_f[:, i] + top, s["i"][:, i])
            keep = (log_f[:, i] + top - new).exp()[:, None]
            write = (s["i"][:, i] - new).exp()[:, None] * k[:, i]
            top = new
            memory = memory * keep[..., None] + write[..., None] * v[:, i, None]
            norm = norm * keep + write
            size = torch.maximum((norm * q[:, i]).sum(1).abs(), (-top).exp())
            h.append((memory * q[:, i, :, None]).sum(1) / size[:, None])
        return {"h": torch.stack(h, 1)}

    return make, launch, want, 1e-2


@cases("recurrence", [(8, 2048, 4096, 128), (2, 100, 512, 16)], (2, 9, 40, 4))
def token_window_mean(at: Maker, batch: int, t: int, d: int, width: int) -> Parts:
    block = at.size(128 if t > 128 else 32, 16)

    def make() -> Buffers:
        return {"x": at.random(batch, t, d, dtype=F32), "y": at.empty(batch, t, d, dtype=F32)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, block), batch)](
            s["x"], s["y"], t, d, W=width, BLOCK=block, num_warps=at.size(1, 4)
        )

    def want(s: Buffers) -> Results:
        sums = torch.nn.functional.pad(s["x"].double().cumsum(1), (0, 0, 1, 0))
        ends = torch.arange(1, t + 1, device=at.device)
        begins = (ends - width).clamp(min=0)
        means = (sums[:, ends] - sums[:, begins]) / (ends - begins)[:, None]
        return {"y": means.float()}

    return make, launch, want, 1e-3


@cases("cumsum", [(64, 65536, 512), (8, 1024, 64)], (3, 70, 40))
def chunk_cumsum_packed(at: Maker, count: int, total: int, d: int) -> Parts:
    bt, bs = at.size((64, 32), (16, 16))
    lengths = uneven_lengths(count, total)

    def make() -> Buffers:
        tokens = sum(lengths)
        return {
            "x": at.random(tokens, d, dtype=F32), "starts": packed_starts(at, lengths).long(),
            "y": at.empty(tokens, d, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, bs), count)](
            s["x"], s["starts"], s["y"], S=d, BT=bt, BS=bs, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": torch.cat([part.cumsum(0) for part in s["x"].split(lengths)])}

    return make, launch, want, 1e-3


@cases("cumsum", [(32, 131072, 96), (4, 2048, 16)], (3, 70, 12))
def chunk_cumsum_table(at: Maker, count: int, total: int, heads: int) -> Parts:
    bt, bh = at.size((64, 16), (16, 8))
    lengths = uneven_lengths(count, total)
    table = [(i, j) for i, length in enumerate(lengths) for j in range(cdiv(length, bt))]

    def make() -> Buffers:
        tokens = sum(lengths)
        return {
            "g": at.random(tokens, heads, dtype=BF16), "starts": packed_starts(at, lengths),
            "table": torch.tensor(table, dtype=I32, device=at.device),
            "y": at.empty(tokens, heads, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(len(table), cdiv(heads, bh))](
            s["g"], s["starts"], s["table"], s["y"], 1.4427, heads, BT=bt, BH=bh,
            num_warps=at.size(2, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        parts = [
            chunk.cumsum(0) - chunk
            for part in s["g"].float().split(lengths)
            for chunk in part.split(bt)
        ]
        return {"y": torch.cat(parts) * 1.4427}

    return make, launch, want, 1e-3


@cases("chunks", [(4, 16, 4096, 128, 128), (1, 4, 256, 64, 64)], (2, 2, 40, 16, 32))
def lightning_chunks(at: Maker, batch: int, heads: int, t: int, d: int, vd: int) -> Parts:
    bt, bv = at.size((64, 32), (16, 16))

    def make() -> Buffers:
        return {
            "q": at.random(batch, heads, t, d, dtype=BF16) * 0.3,
            "k": at.random(batch, heads, t, d, dtype=BF16) * 0.3,
            "v": at.random(batch, heads, t, vd, dtype=BF16),
            "slope": torch.exp2(-8.0 * torch.arange(1, heads + 1, device=at.device) / heads),
            "o": at.empty(batch, heads, t, vd, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch * heads, cdiv(vd, bv))](
            *(s[name] for name in ("q", "k", "v", "slope", "o")), t, heads, D=d, V=vd, BT=bt,
            BV=bv, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        i = torch.arange(t, device=at.device)
        away = (i[:, None] - i[None, :]).clamp(min=0)
        o = torch.empty(batch, heads, t, vd, device=at.device)
        for h in range(heads):
            decay = torch.exp(-s["slope"][h] * away).tril()
            for b in range(batch):
                q, k, v = (s[name][b, h].float() for name in "qkv")
                o[b, h] = (q @ k.T * decay) @ v
        return {"o": o}

    return make, launch, want, 2e-2


@cases("chunks", [(64, 8192), (4, 500)], (2, 40))
def neumann_inverse(at: Maker, heads: int, t: int) -> Parts:
    bt = at.size(64, 16)

    def make() -> Buffers:
        return {
            "a": at.random(heads, t, bt, dtype=F32) * 0.1,
            "inv": at.empty(heads, t, bt, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bt), heads)](
            s["a"], s["inv"], t, BT=bt, TURNS=bt.bit_length() - 2, num_warps=4
        )

    def want(s: Buffers) -> Results:
        chunks = cdiv(t, bt)
        a = torch.nn.functional.pad(s["a"], (0, 0, 0, chunks * bt - t))
        a = a.reshape(heads, chunks, bt, bt)
        one = torch.eye(bt, device=at.device)
        inverse = torch.linalg.solve_triangular(
            a.tril(-1) + one, one.expand_as(a), upper=False, unitriangular=True
        )
        return {"inv": inverse.reshape(heads, chunks * bt, bt)[:, :t]}

    return make, launch, want, 2e-2


@cases("decoding", [(256, 32, 16, 128), (4, 16, 8, 80)], (3, 2, 4, 24))
def decode_merge_sinks(at: Maker, batch: int, heads: int, splits: int, d: int) -> Parts:
    def make() -> Buffers:
        counts = at.integers(splits, batch) + 1
        counts[0] = 0
        return {
            "o": at.random(batch, heads, splits, d), "sink": at.random(heads, dtype=F32),
            "lse": at.random(batch, heads, splits, dtype=F32) * 3, "count": counts,
            "out": at.empty(batch, heads, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, heads)](
            *(s[name] for name in ("o", "lse", "sink", "count", "out")), heads, splits, D=d,
            BD=1 << (d - 1).bit_length(), num_warps=at.size(1, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        live = torch.arange(splits, device=at.device) < s["count"][:, None, None]
        lse = torch.where(live, s["lse"], float("-inf"))
        sink = s["sink"][None, :, None].expand(batch, heads, 1)
        weights = torch.softmax(torch.cat([lse, sink], 2), 2)[..., :splits]
        return {"out": (s["o"].float() * weights[..., None]).sum(2)}

    return make, launch, want, 1e-2


@cases("decoding", [(8192, 16, 128), (128, 8, 128)], (5, 4, 24))
def decode_merge_reduce(at: Maker, rows: int, splits: int, d: int) -> Parts:
    bd = at.size(64, 16)

    def make() -> Buffers:
        return {
            "o": at.random(rows, splits, d, dtype=BF16),
            "lse": at.random(rows, splits, dtype=F32) * 3, "out": at.empty(rows, d, dtype=BF16),
            "all": at.empty(rows, d, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(rows, cdiv(d, bd))](
            s["o"], s["lse"], s["out"], s["all"], d, SPLITS=splits, BD=bd, num_warps=at.size(2, 4)
        )

    def want(s: Buffers) -> Results:
        weights = torch.softmax(s["lse"], 1)
        return {
            "out": (s["o"].float() * weights[..., None]).sum(1),
            "all": s["lse"].logsumexp(1)[:, None].expand(rows, d),
        }

    return make, launch, want, 1e-2


@cases("short attention", [(4096, 8, 49, 32), (64, 4, 49, 32)], (6, 2, 9, 16))
def attention_window2d(at: Maker, count: int, heads: int, length: int, d: int) -> Parts:
    side = math.isqrt(length)
    block = max(1 << (length - 1).bit_length(), 16)
    windows = at.size(64, 3)
    scale = d**-0.5

    def make() -> Buffers:
        place = torch.arange(length)
        y, x = place // side, place % side
        index = (y[:, None] - y[None] + side - 1) * (2 * side - 1) + x[:, None] - x[None] + side - 1
        return {
            "q": at.random(count, heads, length, d), "k": at.random(count, heads, length, d),
            "v": at.random(count, heads, length, d), "bias": at.random((2 * side - 1) ** 2, heads),
            "index": index.int().to(at.device), "region": at.integers(2, windows, length),
            "o": at.empty(count, heads, length, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("q", "k", "v", "bias", "index", "region", "o")
        return kernel[(count, heads)](
            *(s[name] for name in names), scale, windows, H=heads, L=length, D=d, BL=block,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v = (s[name].float() for name in "qkv")
        bias = s["bias"].float()[s["index"].long()].permute(2, 0, 1)
        region = s["region"][torch.arange(count, device=at.device) % windows]
        apart = (region[:, :, None] != region[:, None]).float() * -100.0
        scores = q @ k.transpose(2, 3) * scale + bias + apart[:, None]
        return {"o": torch.softmax(scores, -1) @ v}

    return make, launch, want, 1e-2


@cases("short attention", [(16, 4096, 77, 8, 80), (2, 64, 77, 8, 40)], (2, 20, 13, 2, 24))
def attention_padded_keys(at: Maker, batch: int, m: int, n: int, heads: int, d: int) -> Parts:
    bm, bn = at.size((128, 32) if m > 64 else (32, 32), (16, 16))

    def make() -> Buffers:
        return {
            "q": at.random(batch, m, heads, d), "k": at.random(batch, n, heads, d),
            "v": at.random(batch, n, heads, d), "length": at.integers(n, batch) + 1,
            "o": at.empty(batch, m, heads, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(m, bm), batch * heads)](
            *(s[name] for name in ("q", "k", "v", "length", "o")), d**-0.5 / math.log(2), m, n,
            heads, D=d, BD=1 << (d - 1).bit_length(), BM=bm, BN=bn, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v = (s[name].float().transpose(1, 2) for name in "qkv")
        live = torch.arange(n, device=at.device) < s["length"][:, None, None, None]
        scores = torch.where(live, q @ k.transpose(2, 3) * d**-0.5, float("-inf"))
        return {"o": (torch.softmax(scores, -1) @ v).transpose(1, 2)}

    return make, launch, want, 1e-2


@cases("attention", [(16, 64, 2048, 32, 8, 128), (2, 32, 128, 8, 4, 64)], (2, 9, 20, 4, 2, 16))
def attention_tree_mask(
    at: Maker, batch: int, n: int, prefix: int, heads: int, group: int, d: int
) -> Parts:
    bm, bn = at.size((64, 64) if n > 32 else (32, 32), (16, 16))

    def make() -> Buffers:
        # Each token names an earlier one as its parent, and sees all its ancestors.
        tree = torch.zeros(batch, n, n)
        for i in range(n):
            if i:
                parent = torch.randint(0, i, (batch,)).long()
                tree[:, i] = tree[torch.arange(batch), parent]
            tree[:, i, i] = 1
        known = at.integers(prefix // 2, batch) + prefix // 2
        return {
            "q": at.random(batch, n, heads, d, dtype=BF16),
            "k": at.random(batch, heads // group, prefix + n, d, dtype=BF16),
            "v": at.random(batch, heads // group, prefix + n, d, dtype=BF16),
            "tree": tree.to(torch.uint8).to(at.device), "prefix": known,
            "o": at.empty(batch, n, heads, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("q", "k", "v", "tree", "prefix", "o")
        return kernel[(cdiv(n, bm), heads, batch)](
            *(s[name] for name in names), d**-0.5, n, prefix + n, heads, G=group, D=d, BM=bm,
            BN=bn, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out = []
        for b in range(batch):
            first = int(s["prefix"][b])
            k, v = (s[name][b, :, : first + n].float().repeat_interleave(group, 0) for name in "kv")
            seen = torch.cat([torch.ones(n, first, device=at.device), s["tree"][b].float()], 1)
            scores = s["q"][b].float().transpose(0, 1) @ k.transpose(1, 2) * d**-0.5
            scores = torch.where(seen > 0, scores, float("-inf"))
            out.append((torch.softmax(scores, -1) @ v).transpose(0, 1))
        return {"o": torch.stack(out)}

    return make, launch, want, 1e-2


@cases("attention backward", [(8, 4, 2048, 128), (2, 2, 256, 64)], (2, 2, 40, 16))
def attention_dkv_groups(at: Maker, heads: int, group: int, t: int, d: int) -> Parts:
    bm, bn = at.size((64, 64) if t > 256 else (32, 32), (16, 16))
    scale = d**-0.5

    def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        seen = torch.ones(t, t, device=at.device).tril() > 0
        return torch.where(seen, q @ k.T * scale, float("-inf"))

    def make() -> Buffers:
        q, do = (at.random(heads * group, t, d, dtype=BF16) for _ in range(2))
        k, v = (at.random(heads, t, d, dtype=BF16) for _ in range(2))
        lse, delta = [], []
        for i in range(heads * group):
            s = scores(q[i].float(), k[i // group].float())
            lse.append(s.logsumexp(1))
            delta.append(((torch.softmax(s, 1) @ v[i // group].float()) * do[i].float()).sum(1))
        return {
            "q": q, "k": k, "v": v, "do": do, "lse": torch.stack(lse), "delta": torch.stack(delta),
            "dk": at.empty(heads, t, d, dtype=BF16), "dv": at.empty(heads, t, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("q", "k", "v", "do", "lse", "delta", "dk", "dv")
        return kernel[(cdiv(t, bn), heads)](
            *(s[name] for name in names), scale, t, G=group, D=d, BM=bm, BN=bn, num_warps=4,
            num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        dk, dv = (torch.zeros(heads, t, d, device=at.device) for _ in range(2))
        for i in range(heads * group):
            q, do = s["q"][i].float(), s["do"][i].float()
            k, v = s["k"][i // group].float(), s["v"][i // group].float()
            p = torch.softmax(scores(q, k), 1)
            ds = p * (do @ v.T - s["delta"][i][:, None]) * scale
            dk[i // group] += ds.T @ q
            dv[i // group] += p.T @ do
        return {"dk": dk, "dv": dv}

    return make, launch, want, 2e-2


@cases("chunks", [(128, 8192, 64, 64, 4), (8, 512, 64, 64, 4)], (2, 40, 16, 16, 2))
def linear_kv_sum(at: Maker, heads: int, t: int, d: int, vd: int, parts: int) -> Parts:
    bt = at.size(64, 16)
    each = cdiv(t, parts)

    def make() -> Buffers:
        return {
            "k": at.random(heads, t, d), "v": at.random(heads, t, vd),
            "kv": at.empty(heads, parts, d, vd, dtype=F32), "z": at.empty(heads, parts, d, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(parts, heads)](
            s["k"], s["v"], s["kv"], s["z"], t, each, D=d, V=vd, BT=bt, num_warps=4, num_stages=3
        )

    def want(s: Buffers) -> Results:
        k, v = torch.nn.functional.elu(s["k"].float()) + 1, s["v"].float()
        pairs = list(zip(k.split(each, 1), v.split(each, 1), strict=True))
        return {
            "kv": torch.stack([a.transpose(1, 2) @ b for a, b in pairs], 1),
            "z": torch.stack([a.sum(1) for a, _ in pairs], 1),
        }

    return make, launch, want, 1e-2


@cases("convolutions", [(8, 4096, 4096, 4, 8), (2, 256, 512, 4, 4)], (2, 37, 20, 3, 2))
def conv_weight_grad(at: Maker, batch: int, t: int, d: int, width: int, parts: int) -> Parts:
    bt, bd = at.size((32, 64), (8, 16))
    each = cdiv(t, parts)

    def make() -> Buffers:
        return {
            "x": at.random(batch, t, d, dtype=BF16), "dy": at.random(batch, t, d, dtype=BF16),
            "dw": at.empty(batch, parts, width, d, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, bd), parts, batch)](
            s["x"], s["dy"], s["dw"], t, d, each, W=width, BW=1 << (width - 1).bit_length(), BT=bt,
            BD=bd, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, dy = s["x"].float(), s["dy"].float()
        taps = []
        for j in range(width):
            away = width - 1 - j
            product = dy * torch.nn.functional.pad(x, (0, 0, away, 0))[:, :t]
            taps.append(torch.stack([part.sum(1) for part in product.split(each, 1)], 1))
        return {"dw": torch.stack(taps, 2)}

    return make, launch, want, 1e-3
