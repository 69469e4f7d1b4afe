# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of unseen_sequence_kernels.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16 = torch.float32, torch.bfloat16


def unit(at: Maker, *shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """Vectors of length 1."""
    return torch.nn.functional.normalize(at.random(*shape, dtype=F32), dim=-1).to(dtype)


@cases("cumsum", [(64, 8192, 128), (32, 4096, 64)], (2, 37, 24))
def chunk_cumsum_tri(at: Maker, heads: int, tokens: int, s_dim: int) -> Parts:
    bt, bs = at.size((64, 64), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(heads, tokens, s_dim, dtype=F32),
            "y": at.empty(heads, tokens, s_dim, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        grid = (cdiv(s_dim, bs), cdiv(tokens, bt), heads)
        return kernel[grid](s["x"], s["y"], tokens, S=s_dim, BT=bt, BS=bs, num_warps=4)

    def want(s: Buffers) -> Results:
        return {"y": torch.cat([part.cumsum(1) for part in s["x"].split(bt, 1)], 1)}

    return make, launch, want, 1e-3


@cases("cumsum", [(64, 4096, 128), (128, 2048, 64)], (2, 37, 24))
def chunk_cumsum_decay(at: Maker, heads: int, tokens: int, d: int) -> Parts:
    bt, bd = at.size((64, 64), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(heads, tokens, d, dtype=BF16), "y": at.empty(heads, tokens, d, dtype=F32),
            "g": -at.random(heads, tokens, dtype=F32).abs() * 0.2,
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, bd), heads)](
            s["x"], s["g"], s["y"], tokens, D=d, BT=bt, BD=bd, num_warps=4, num_stages=3
        )

    def want(s: Buffers) -> Results:
        x, decay = s["x"].float(), torch.exp(s["g"])[..., None]
        y, out = torch.zeros_like(x[:, 0]), torch.empty_like(x)
        for t in range(tokens):
            y = y * decay[:, t] + x[:, t]
            out[:, t] = y
        return {"y": out}

    return make, launch, want, 2e-2


@cases("cumsum", [(64, 4096, 128), (16, 8192, 64)], (2, 37, 24))
def chunk_cumsum_back(at: Maker, heads: int, tokens: int, s_dim: int) -> Parts:
    bt, bs = at.size((64, 32), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(heads, tokens, s_dim), "y": at.empty(heads, tokens, s_dim, dtype=F32)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(s_dim, bs), heads)](
            s["x"], s["y"], tokens, s_dim, BT=bt, BS=bs, num_warps=4, num_stages=2
        )

    def want(s: Buffers) -> Results:
        return {"y": s["x"].float().flip(1).cumsum(1).flip(1)}

    return make, launch, want, 1e-3


@cases("chunks", [(4, 4096, 16, 128), (2, 8192, 32, 64)], (2, 37, 2, 24))
def chunk_kkt(at: Maker, batch: int, tokens: int, heads: int, k_dim: int) -> Parts:
    bt, bk = at.size((64, 64), (16, 16))

    def make() -> Buffers:
        g = -at.random(batch, tokens, heads, dtype=F32).abs() * 0.1
        return {
            "k": unit(at, batch, tokens, heads, k_dim, dtype=BF16),
            "g": torch.cat([part.cumsum(1) for part in g.split(bt, 1)], 1),
            "beta": torch.rand((batch, tokens, heads), device=at.device),
            "A": at.empty(batch, tokens, heads, bt, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), batch * heads)](
            s["k"], s["g"], s["beta"], s["A"], tokens, H=heads, K=k_dim, BT=bt, BK=bk, num_warps=4,
            num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out = torch.zeros(batch, tokens, heads, bt, device=at.device)
        for start in range(0, tokens, bt):
            k = s["k"][:, start : start + bt].float().transpose(1, 2)
            g = s["g"][:, start : start + bt].transpose(1, 2)
            beta = s["beta"][:, start : start + bt].transpose(1, 2)
            a = k @ k.transpose(2, 3) * torch.exp(g[..., None] - g[..., None, :]) * beta[..., None]
            size = a.shape[-1]
            out[:, start : start + bt, :, :size] = torch.tril(a, -1).transpose(1, 2)
        return {"A": out}

    return make, launch, want, 1e-2


@cases("chunks", [(4, 4096, 16, 128, 128), (2, 8192, 32, 64, 64)], (2, 37, 2, 32, 24))
def chunk_states(at: Maker, batch: int, tokens: int, heads: int, k_dim: int, v_dim: int) -> Parts:
    bt, bk, bv = at.size((64, 64, 64), (16, 16, 16))
    chunks = cdiv(tokens, bt)

    def make() -> Buffers:
        g = -at.random(batch, tokens, heads, dtype=F32).abs() * 0.05
        return {
            "k": unit(at, batch, tokens, heads, k_dim, dtype=BF16),
            "v": at.random(batch, tokens, heads, v_dim, dtype=BF16),
            "g": torch.cat([part.cumsum(1) for part in g.split(bt, 1)], 1),
            "h": at.empty(batch, chunks, heads, k_dim, v_dim, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(k_dim, bk), cdiv(v_dim, bv), batch * heads)](
            s["k"], s["v"], s["g"], s["h"], tokens, H=heads, K=k_dim, V=v_dim, BT=bt, BK=bk, BV=bv,
            num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        h = torch.zeros(batch, heads, k_dim, v_dim, device=at.device)
        states = []
        for start in range(0, tokens, bt):
            states.append(h)
            k, v, g = (s[name][:, start : start + bt].float() for name in "kvg")
            last = g[:, -1]
            v = v * torch.exp(last[:, None] - g)[..., None]
            h = h * torch.exp(last)[..., None, None] + torch.einsum("bthk,bthv->bhkv", k, v)
        return {"h": torch.stack(states, 1)}

    return make, launch, want, 2e-2


@cases("recurrence", [(4, 512, 16, 128, 128), (16, 256, 16, 64, 64)], (2, 13, 2, 24, 20))
def token_gated_delta(
    at: Maker, batch: int, tokens: int, heads: int, k_dim: int, v_dim: int
) -> Parts:
    bk, bv = 1 << (k_dim - 1).bit_length(), at.size(16, 8)

    def make() -> Buffers:
        shape = (batch, tokens, heads)
        return {
            "q": unit(at, *shape, k_dim), "k": unit(at, *shape, k_dim), "v": at.random(*shape, v_dim),
            "g": -at.random(*shape, dtype=F32).abs() * 0.1, "o": at.empty(*shape, v_dim),
            "beta": torch.sigmoid(at.random(*shape)),
            "h0": at.random(batch * heads, k_dim, v_dim, dtype=F32) * 0.1,
            "ht": at.empty(batch * heads, k_dim, v_dim, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(v_dim, bv), batch * heads)](
            s["q"], s["k"], s["v"], s["g"], s["beta"], s["o"], s["h0"], s["ht"], k_dim**-0.5, tokens,
            H=heads, K=k_dim, V=v_dim, BK=bk, BV=bv, num_warps=1, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v, g, beta = (s[name].float() for name in ("q", "k", "v", "g", "beta"))
        h = s["h0"].reshape(batch, heads, k_dim, v_dim).clone()
        outs = []
        for t in range(tokens):
            h = h * torch.exp(g[:, t])[..., None, None]
            value = v[:, t] - (h * k[:, t, ..., None]).sum(2)
            h = h + k[:, t, ..., None] * (value * beta[:, t, :, None])[:, :, None]
            outs.append((h * q[:, t, ..., None]).sum(2) * k_dim**-0.5)
        return {"o": torch.stack(outs, 1), "ht": h.reshape(s["ht"].shape)}

    return make, launch, want, 1e-2


@cases("recurrence", [(64, 512, 128, 128), (128, 256, 64, 128)], (2, 13, 32, 16))
def token_two_tiles(at: Maker, heads: int, tokens: int, k_dim: int, v_dim: int) -> Parts:
    bv = at.size(32, 8)

    def make() -> Buffers:
        shape = (heads, tokens)
        return {
            "q": unit(at, *shape, k_dim), "k": unit(at, *shape, k_dim), "v": at.random(*shape, v_dim),
            "g": -at.random(*shape, k_dim).abs() * 0.1, "o": at.empty(*shape, v_dim),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(v_dim // bv, heads)](
            s["q"], s["k"], s["v"], s["g"], s["o"], k_dim**-0.5, tokens, HALF=k_dim // 2, V=v_dim,
            BV=bv, num_warps=at.size(2, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v, g = (s[name].float() for name in "qkvg")
        h = torch.zeros(heads, k_dim, v_dim, device=at.device)
        outs = []
        for t in range(tokens):
            h = h * torch.exp(g[:, t])[..., None] + k[:, t, :, None] * v[:, t, None]
            outs.append((h * q[:, t, :, None]).sum(1) * k_dim**-0.5)
        return {"o": torch.stack(outs, 1)}

    return make, launch, want, 1e-2


@cases("recurrence", [(64, 512, 128, 64), (128, 256, 64, 64)], (2, 13, 32, 16))
def token_backward(at: Maker, heads: int, tokens: int, k_dim: int, v_dim: int) -> Parts:
    bk = at.size(32, 16)

    def make() -> Buffers:
        shape = (heads, tokens)
        return {
            "q": unit(at, *shape, k_dim), "k": unit(at, *shape, k_dim), "v": at.random(*shape, v_dim),
            "do": at.random(*shape, v_dim), "dq": at.empty(*shape, k_dim),
            "dk": at.empty(*shape, k_dim), "dv": at.empty(k_dim // bk, *shape, v_dim, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(k_dim // bk, heads)](
            s["q"], s["k"], s["v"], s["do"], s["dq"], s["dk"], s["dv"], k_dim**-0.5, tokens,
            K=k_dim, V=v_dim, BK=bk, num_warps=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v, do = (s[name].float() for name in ("q", "k", "v", "do"))
        weight = torch.tril(do @ v.transpose(1, 2)) * k_dim**-0.5
        dv = []
        for qs, ks in zip(q.split(bk, 2), k.split(bk, 2)):
            dv.append(torch.tril(qs @ ks.transpose(1, 2)).transpose(1, 2) @ do * k_dim**-0.5)
        return {"dq": weight @ k, "dk": weight.transpose(1, 2) @ q, "dv": torch.stack(dv)}

    return make, launch, want, 1e-2


@cases("recurrence", [(8, 512, 2048, 16), (2, 1024, 4096, 16)], (2, 13, 20, 8))
def token_scan(at: Maker, batch: int, tokens: int, dim: int, n: int) -> Parts:
    block = at.size(32, 16)

    def make() -> Buffers:
        return {
            "x": at.random(batch, tokens, dim), "dt": at.random(batch, tokens, dim) * 0.5,
            "A": at.random(dim, n, dtype=F32) * 0.3, "B": at.random(batch, tokens, n),
            "C": at.random(batch, tokens, n), "D": at.random(dim, dtype=F32),
            "bias": at.random(dim, dtype=F32) - 2, "y": at.empty(batch, tokens, dim),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, cdiv(dim, block))](
            s["x"], s["dt"], s["A"], s["B"], s["C"], s["D"], s["bias"], s["y"], tokens, dim, N=n,
            BLOCK_D=block, num_warps=at.size(2, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, b, c = s["x"].float(), s["B"].float(), s["C"].float()
        dt = torch.nn.functional.softplus(s["dt"].float() + s["bias"])
        a = -torch.exp(s["A"])
        h = torch.zeros(batch, dim, n, device=at.device)
        outs = []
        for t in range(tokens):
            h = h * torch.exp(dt[:, t, :, None] * a)
            h = h + (dt[:, t] * x[:, t])[..., None] * b[:, t, None]
            outs.append((h * c[:, t, None]).sum(-1) + s["D"] * x[:, t])
        return {"y": torch.stack(outs, 1)}

    return make, launch, want, 1e-2


def draw_lengths(at: Maker, batch: int, longest: int) -> torch.Tensor:
    """Lengths of sequences, the same for each set of buffers."""
    generator = torch.Generator().manual_seed(batch)
    return torch.randint(longest // 2, longest + 1, (batch,), generator=generator)


@cases("decoding", [(32, 4096, 4, 8, 8), (128, 1024, 8, 4, 2)], (3, 50, 2, 4, 4))
def decode_paged_split(
    at: Maker, batch: int, longest: int, kv_heads: int, group: int, splits: int
) -> Parts:
    d = at.size(128, 16)
    lengths = draw_lengths(at, batch, longest)
    total, heads = int(lengths.sum()), kv_heads * group

    def make() -> Buffers:
        return {
            "q": at.random(batch, heads, d), "k": at.random(total, kv_heads, d),
            "v": at.random(total, kv_heads, d),
            "indptr": torch.cat([torch.tensor([0]), lengths.cumsum(0)]).int().to(at.device),
            "indices": torch.randperm(total).int().to(at.device),
            "out": torch.zeros((batch, heads, splits, d), device=at.device),
            "lse": torch.full((batch, heads, splits), -math.inf, device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, kv_heads, splits)](
            s["q"], s["k"], s["v"], d**-0.5, s["indptr"], s["indices"], s["out"], s["lse"],
            heads * d, kv_heads * d, HEADS=heads, GROUP=group, D=d, BLOCK_N=at.size(32, 16),
            BLOCK_H=16, SPLITS=splits, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out, lse = s["out"].clone(), s["lse"].clone()
        starts = s["indptr"].tolist()
        for b, (start, end) in enumerate(zip(starts, starts[1:])):
            place = s["indices"][start:end].long()
            q = s["q"][b].float().reshape(kv_heads, group, d) * d**-0.5
            k, v = (s[name][place].float() for name in "kv")
            each = cdiv(end - start, splits)
            for split in range(cdiv(end - start, each)):
                part = slice(split * each, (split + 1) * each)
                scores = torch.einsum("hgd,thd->hgt", q, k[part])
                o = torch.einsum("hgt,thd->hgd", torch.softmax(scores, -1), v[part])
                out[b, :, split] = o.reshape(heads, d)
                lse[b, :, split] = torch.logsumexp(scores, -1).reshape(heads)
        return {"out": out, "lse": lse}

    return make, launch, want, 2e-2


@cases("decoding", [(128, 32, 128, 16), (32, 128, 128, 8)], (3, 2, 24, 4))
def decode_merge(at: Maker, batch: int, heads: int, d: int, splits: int) -> Parts:
    lengths = draw_lengths(at, batch, 16 * splits)
    lengths[0] = splits - 1

    def make() -> Buffers:
        return {
            "part": at.random(batch, heads, splits, d, dtype=F32), "o": at.empty(batch, heads, d),
            "lse": at.random(batch, heads, splits, dtype=F32),
            "indptr": torch.cat([torch.tensor([0]), lengths.cumsum(0)]).int().to(at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, heads)](
            s["part"], s["lse"], s["o"], s["indptr"], HEADS=heads, D=d,
            BLOCK_D=1 << (d - 1).bit_length(), SPLITS=splits, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        each = (s["indptr"].diff() + splits - 1) // splits
        begins = torch.arange(splits, device=at.device) * each[:, None]
        empty = begins >= s["indptr"].diff()[:, None]
        lse = s["lse"].masked_fill(empty[:, None], -math.inf)
        return {"o": (s["part"] * torch.softmax(lse, -1)[..., None]).sum(2)}

    return make, launch, want, 1e-2


@cases("decoding", [(256, 32, 128, 16), (64, 64, 128, 32)], (3, 2, 16, 4))
def decode_merge_vector(at: Maker, tokens: int, heads: int, d: int, segments: int) -> Parts:
    tile = 16

    def make() -> Buffers:
        shape = (tokens, heads, segments)
        return {
            "part": at.random(*shape, d, dtype=F32), "max": at.random(*shape, dtype=F32),
            "sum": torch.rand(shape, device=at.device) + 1, "o": at.empty(tokens, heads, d),
            "lengths": at.integers(segments * tile * 4, tokens) + 1,
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, heads)](
            s["part"], s["max"], s["sum"], s["o"], s["lengths"], HEADS=heads, D=d,
            SEGMENTS=segments, TILE=tile, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        each = (s["lengths"] + segments * tile - 1) // (segments * tile) * tile
        active = (s["lengths"] + each - 1) // each
        off = torch.arange(segments, device=at.device) >= active[:, None]
        maxima = s["max"].masked_fill(off[:, None], -math.inf)
        weight = torch.exp(maxima - maxima.amax(-1, keepdim=True))
        merged = (s["part"] * weight[..., None]).sum(2)
        return {"o": merged / (s["sum"] * weight).sum(-1, keepdim=True)}

    return make, launch, want, 1e-2


@cases("attention", [(64, 1024, 8, 4, 16), (16, 4096, 8, 8, 32)], (3, 50, 2, 4, 16))
def paged_attention(
    at: Maker, batch: int, longest: int, kv_heads: int, group: int, page: int
) -> Parts:
    d = at.size(128, 16)
    most = cdiv(longest, page)
    lengths = draw_lengths(at, batch, longest)

    def make() -> Buffers:
        return {
            "q": at.random(batch, kv_heads, group, d),
            "k": at.random(batch * most, page, kv_heads, d),
            "v": at.random(batch * most, page, kv_heads, d), "lengths": lengths.int().to(at.device),
            "tables": torch.randperm(batch * most).reshape(batch, most).int().to(at.device),
            "o": at.empty(batch, kv_heads, group, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, kv_heads)](
            s["q"], s["k"], s["v"], s["tables"], s["lengths"], s["o"], d**-0.5, most,
            KV_HEADS=kv_heads, GROUP=group, PADDED=16, D=d, PAGE=page, num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        outs = []
        for b, length in enumerate(lengths.tolist()):
            table = s["tables"][b].long()
            k, v = (s[name][table].float().reshape(-1, kv_heads, d)[:length] for name in "kv")
            scores = torch.einsum("hgd,thd->hgt", s["q"][b].float(), k) * d**-0.5
            outs.append(torch.einsum("hgt,thd->hgd", torch.softmax(scores, -1), v))
        return {"o": torch.stack(outs)}

    return make, launch, want, 1e-2


@cases("attention", [(32, 4096, 64), (16, 8192, 128)], (2, 70, 16))
def block_sparse_attention(at: Maker, heads: int, tokens: int, d: int) -> Parts:
    block = at.size(64, 16)
    rows = cdiv(tokens, block)

    def make() -> Buffers:
        # The diagonal, a window, and every eighth block before it.
        i, j = torch.arange(rows)[:, None], torch.arange(rows)[None, :]
        chosen = (j <= i) & ((i - j < 3) | (j % 8 == 0))
        counts = chosen.sum(1)
        columns = torch.zeros(rows, int(counts.max()), dtype=torch.int32)
        for row in range(rows):
            columns[row, : counts[row]] = torch.nonzero(chosen[row])[:, 0].int()
        made = {name: at.random(heads, tokens, d) for name in "qkv"}
        return {
            **made, "o": at.empty(heads, tokens, d), "counts": counts.int().to(at.device),
            "columns": columns.to(at.device), "chosen": chosen.to(at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(rows, heads)](
            s["q"], s["k"], s["v"], s["o"], s["counts"], s["columns"], d**-0.5, tokens,
            s["columns"].shape[1], tokens * d, D=d, BLOCK=block, num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        mask = s["chosen"].repeat_interleave(block, 0).repeat_interleave(block, 1)
        mask = torch.tril(mask[:tokens, :tokens])
        outs = []
        for h in range(heads):
            q, k, v = (s[name][h].float() for name in "qkv")
            scores = (q @ k.T * d**-0.5).masked_fill(~mask, -math.inf)
            outs.append(torch.softmax(scores, -1) @ v)
        return {"o": torch.stack(outs)}

    return make, launch, want, 1e-2


@cases("attention", [(128, 128, 12, 64), (16, 500, 16, 64)], (2, 37, 2, 16))
def short_attention_bias(at: Maker, batch: int, tokens: int, heads: int, d: int) -> Parts:
    bm, bn = at.size((64, 64), (16, 16))
    lengths = draw_lengths(at, batch, tokens)

    def make() -> Buffers:
        made = {name: at.random(batch, tokens, heads, d) for name in "qkv"}
        return {
            **made, "bias": at.random(heads, tokens, tokens), "o": at.empty(batch, tokens, heads, d),
            "lengths": lengths.int().to(at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bm), batch * heads)](
            s["q"], s["k"], s["v"], s["bias"], s["o"], s["lengths"], d**-0.5, tokens,
            tokens * heads * d, d, heads * d, tokens * tokens, H=heads, D=d, BLOCK_M=bm, BLOCK_N=bn,
            num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v = (s[name].float().transpose(1, 2) for name in "qkv")
        scores = q @ k.transpose(2, 3) * d**-0.5 + s["bias"].float()
        off = torch.arange(tokens, device=at.device) >= s["lengths"][:, None]
        scores = scores.masked_fill(off[:, None, None], -math.inf)
        return {"o": (torch.softmax(scores, -1) @ v).transpose(1, 2)}

    return make, launch, want, 1e-2


@cases("convolution", [(8, 4096, 2048, 4), (64, 256, 4096, 3)], (2, 37, 20, 4))
def causal_conv(at: Maker, batch: int, tokens: int, dim: int, width: int) -> Parts:
    bt, bd = at.size((32, 128), (16, 16))

    def make() -> Buffers:
        return {
            "x": at.random(batch, tokens, dim, dtype=BF16), "w": at.random(dim, width, dtype=BF16),
            "b": at.random(dim, dtype=BF16), "y": at.empty(batch, tokens, dim, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), cdiv(dim, bd), batch)](
            s["x"],
            s["w"],
            s["b"],
            s["y"],
            tokens,
            dim,
            W=width,
            BLOCK_T=bt,
            BLOCK_D=bd,
            num_warps=4,
        )

    def want(s: Buffers) -> Results:
        x = torch.nn.functional.pad(s["x"].float().transpose(1, 2), (width - 1, 0))
        y = torch.nn.functional.conv1d(
            x, s["w"].float()[:, None], s["b"].float(), groups=dim
        ).transpose(1, 2)
        return {"y": torch.nn.functional.silu(y)}

    return make, launch, want, 2e-2
