# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of fresh_sequence_kernels.py."""

from __future__ import annotations

import functools
from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, I32 = torch.float32, torch.bfloat16, torch.int32


def unit(x: torch.Tensor) -> torch.Tensor:
    """Vectors of length 1."""
    return torch.nn.functional.normalize(x.float(), dim=-1).to(x.dtype)


@cases("recurrences", [(4, 1024, 32, 64), (1, 32, 16, 64)], (2, 7, 2, 16))
def token_low_rank(at: Maker, batch: int, t: int, heads: int, d: int) -> Parts:
    bv = at.size(32, 8)

    def make() -> Buffers:
        r, k, v, w = (at.random(batch, t, heads, d) for _ in "rkvw")
        kappa = unit(at.random(batch, t, heads, d, dtype=F32))
        return {
            "r": r, "w": w, "k": (k * 0.3), "v": v, "a": -kappa,
            "b": kappa * torch.rand((batch, t, heads, d), device=at.device),
            "o": at.empty(batch, t, heads, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(d // bv, batch * heads)](
            *(s[name] for name in "rwkvabo"), t, heads, D=d, BV=bv, num_warps=at.size(2, 4)
        )

    def want(s: Buffers) -> Results:
        r, w, k, v, a, b = (s[name].float() for name in "rwkvab")
        state = torch.zeros(batch, heads, d, d, device=at.device)  # values by keys
        out = []
        for i in range(t):
            change = (state * a[:, i, :, None]).sum(3)
            state = state * torch.exp(-torch.exp(w[:, i]))[:, :, None]
            state = (
                state + change[..., None] * b[:, i, :, None] + v[:, i, ..., None] * k[:, i, :, None]
            )
            out.append((state * r[:, i, :, None]).sum(3))
        return {"o": torch.stack(out, 1)}

    return make, launch, want, 2e-2


@cases("recurrences", [(16, 1024, 2048), (2, 32, 512)], (2, 9, 40))
def token_stable_gates(at: Maker, batch: int, t: int, d: int) -> Parts:
    block = at.size(128, 32)

    def make() -> Buffers:
        return {
            **{name: at.random(batch, t, d) for name in "zifo"}, "y": at.empty(batch, t, d)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, block), batch)](
            *(s[name] for name in "zifoy"), t, d, BLOCK=block, num_warps=at.size(1, 4)
        )

    def want(s: Buffers) -> Results:
        z, gate, f, o = (s[name].double() for name in "zifo")
        c, n = torch.zeros_like(z[:, 0]), torch.zeros_like(z[:, 0])
        out = []
        for i in range(t):
            keep, take = torch.sigmoid(f[:, i]), torch.exp(gate[:, i])
            c, n = keep * c + take * torch.tanh(z[:, i]), keep * n + take
            out.append(torch.sigmoid(o[:, i]) * c / n)
        return {"y": torch.stack(out, 1).float()}

    return make, launch, want, 1e-2


@cases("chunks", [(64, 4096, 128, 128), (8, 128, 64, 64)], (2, 40, 16, 16))
def chunk_delta_states(at: Maker, heads: int, t: int, kd: int, vd: int) -> Parts:
    bt, bv = at.size(64, 16), at.size(64 if t > 128 else 32, 16)
    chunks = cdiv(t, bt)

    def make() -> Buffers:
        g = -torch.rand((heads, t), device=at.device) * 0.1
        return {
            "k": unit(at.random(heads, t, kd)), "w": unit(at.random(heads, t, kd)) * 0.5,
            "u": at.random(heads, t, vd), "g": torch.cat([x.cumsum(1) for x in g.split(bt, 1)], 1),
            "h": at.empty(heads, chunks, kd, vd), "v": at.empty(heads, t, vd),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(vd, bv), heads)](
            *(s[name] for name in "kwughv"), t, K=kd, V=vd, BT=bt, BV=bv, num_warps=4,
            num_stages=at.size(2, 2),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        h = torch.zeros(heads, kd, vd, device=at.device)
        states, values = [], []
        chunk = [s[name].float().split(bt, 1) for name in "kwug"]
        for k, w, u, g in zip(*chunk, strict=True):
            states.append(h)
            v = u - w @ h
            values.append(v)
            last = g[:, -1:, None]
            h = h * last.exp() + k.transpose(1, 2) @ (v * (last - g[..., None]).exp())
        return {"h": torch.stack(states, 1), "v": torch.cat(values, 1)}

    return make, launch, want, 3e-2


@cases("chunks", [(32, 4096, 128, 128), (4, 128, 64, 64)], (2, 40, 16, 32))
def chunk_gradients(at: Maker, heads: int, t: int, kd: int, vd: int) -> Parts:
    bt, bk, bv = at.size((64, 64, 64), (16, 16, 16))
    chunks = cdiv(t, bt)

    def make() -> Buffers:
        return {
            "q": at.random(heads, t, kd, dtype=BF16), "k": at.random(heads, t, kd, dtype=BF16),
            "v": at.random(heads, t, vd, dtype=BF16), "do": at.random(heads, t, vd, dtype=BF16),
            "h": at.random(heads, chunks, kd, vd, dtype=BF16),
            "dh": at.random(heads, chunks, kd, vd, dtype=BF16),
            "dq": at.empty(heads, t, kd, dtype=BF16), "dk": at.empty(heads, t, kd, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(kd, bk), chunks, heads)](
            *(s[name] for name in ("q", "k", "v", "do", "h", "dh", "dq", "dk")), 0.1, t, K=kd, V=vd,
            BT=bt, BK=bk, BV=bv, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        dq, dk = [], []
        chunk = [s[name].float().split(bt, 1) for name in ("q", "k", "v", "do")]
        states = [s[name].float().unbind(1) for name in ("h", "dh")]
        for q, k, v, do, h, dh in zip(*chunk, *states, strict=True):
            ds = (do @ v.transpose(1, 2)).tril() * 0.1
            dq.append(do @ h.transpose(1, 2) * 0.1 + ds @ k)
            dk.append(v @ dh.transpose(1, 2) + ds.transpose(1, 2) @ q)
        return {"dq": torch.cat(dq, 1), "dk": torch.cat(dk, 1)}

    return make, launch, want, 3e-2


@cases("cumsums", [(16, 4096, 128), (2, 512, 32)], (2, 21, 12))
def chunk_log_decay(at: Maker, batch: int, t: int, heads: int) -> Parts:
    bt, bh = at.size(64, 8), at.size(32, 8)
    chunks = cdiv(t, bt)

    def make() -> Buffers:
        return {
            "a": at.random(heads, dtype=F32), "dt": at.random(batch, t, heads, dtype=BF16),
            "g": at.empty(batch, t, heads, dtype=F32), "total": at.empty(batch, chunks, heads, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(chunks, batch, cdiv(heads, bh))](
            s["a"], s["dt"], s["g"], s["total"], t, H=heads, BT=bt, BH=bh, num_warps=1
        )

    def want(s: Buffers) -> Results:
        step = -s["a"].exp() * torch.nn.functional.softplus(s["dt"].float())
        parts = [x.cumsum(1) for x in step.split(bt, 1)]
        return {"g": torch.cat(parts, 1), "total": torch.stack([x[:, -1] for x in parts], 1)}

    return make, launch, want, 1e-3


@cases("chunks", [(128, 8192, 32), (8, 256, 16)], (2, 64, 16))
def merge_inverses(at: Maker, heads: int, t: int, b: int) -> Parts:
    def make() -> Buffers:
        return {
            "a": at.random(heads, t, 2 * b, dtype=F32) * 0.2,
            "inv": at.random(heads, t, 2 * b, dtype=F32) * 0.2,
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(t // (2 * b), heads)](s["a"], s["inv"], t, B=b, num_warps=at.size(1, 4))

    def want(s: Buffers) -> Results:
        a, inv = (s[name].reshape(heads, -1, 2 * b, 2 * b) for name in ("a", "inv"))
        out = inv.clone()
        out[..., b:, :b] = -inv[..., b:, b:] @ a[..., b:, :b] @ inv[..., :b, :b]
        return {"inv": out.reshape(heads, t, 2 * b)}

    return make, launch, want, 1e-3


@cases("retention", [(4, 16, 4096, 128), (1, 4, 256, 64)], (1, 3, 40, 16))
def retention_parallel(at: Maker, batch: int, heads: int, t: int, d: int) -> Parts:
    bt, bs = at.size((128, 64) if t > 256 else (64, 64), (16, 16))

    def make() -> Buffers:
        return {name: at.random(batch, heads, t, d) for name in "qkv"} | {
            "o": at.empty(batch, heads, t, d)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bt), batch * heads)](
            *(s[name] for name in "qkvo"), d**-0.5, t, heads, D=d, BT=bt, BS=bs,
            num_warps=at.size(8 if t > 256 else 4, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        place = torch.arange(t, device=at.device)
        away = (place[:, None] - place[None, :]).float()
        out = []
        for h in range(heads):
            base = torch.log2(1 - torch.exp2(torch.tensor(-5.0 - h)))
            decay = torch.where(away >= 0, torch.exp2(away * float(base)), 0.0)
            q, k, v = (s[name][:, h].float() for name in "qkv")
            out.append((q @ k.transpose(1, 2) * d**-0.5 * decay) @ v)
        return {"o": torch.stack(out, 1)}

    return make, launch, want, 2e-2


def visible_scores(q: torch.Tensor, k: torch.Tensor, scale: float) -> torch.Tensor:
    """Scores of a causal attention."""
    scores = q.float() @ k.float().transpose(-1, -2) * scale
    t = scores.shape[-1]
    keep = torch.ones(t, t, dtype=torch.bool, device=q.device).tril()
    return torch.where(keep, scores, float("-inf"))


@cases("attention", [(2, 32, 8, 2048, 128), (1, 8, 2, 256, 64)], (2, 4, 2, 37, 16))
def attention_sink(at: Maker, batch: int, heads: int, kv_heads: int, t: int, d: int) -> Parts:
    bm, bn = at.size((128, 64) if t > 256 else (64, 32), (16, 16))

    def make() -> Buffers:
        return {
            "q": at.random(batch, heads, t, d, dtype=BF16),
            "k": at.random(batch, kv_heads, t, d, dtype=BF16),
            "v": at.random(batch, kv_heads, t, d, dtype=BF16), "sink": at.random(heads, dtype=F32),
            "o": at.empty(batch, heads, t, d, dtype=BF16), "lse": at.empty(batch, heads, t, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), heads, batch)](
            s["q"], s["k"], s["v"], s["sink"], s["o"], s["lse"], d**-0.5, t, heads,
            GROUP=heads // kv_heads, D=d, BM=bm, BN=bn, num_warps=at.size(8 if t > 256 else 4, 4),
            num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out, lse = [], []
        for h in range(heads):
            kv = h // (heads // kv_heads)
            scores = visible_scores(s["q"][:, h], s["k"][:, kv], d**-0.5)
            with_sink = torch.cat([scores, s["sink"][h].expand(batch, t, 1)], 2)
            out.append(torch.softmax(with_sink, 2)[..., :-1] @ s["v"][:, kv].float())
            lse.append(torch.logsumexp(with_sink, 2) * 1.44269504)
        return {"o": torch.stack(out, 1), "lse": torch.stack(lse, 1)}

    return make, launch, want, 2e-2


@cases("attention", [(4, 4096, 32, 128), (2, 256, 8, 64)], (2, 13, 3, 16))
def attention_delta(at: Maker, batch: int, t: int, heads: int, d: int) -> Parts:
    bm = at.size(64, 8)

    def make() -> Buffers:
        return {
            "o": at.random(batch, t, heads, d), "do": at.random(batch, t, heads, d),
            "delta": at.empty(batch, heads, t, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), batch * heads)](
            s["o"], s["do"], s["delta"], t, heads, D=d, BM=bm, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"delta": (s["o"].float() * s["do"].float()).sum(3).transpose(1, 2)}

    return make, launch, want, 1e-3


def attention_inputs(at: Maker, heads: int, t: int, d: int, *outputs: str) -> Buffers:
    """What the gradients of a causal attention need, head by head."""
    s = {name: at.random(heads, t, d) for name in ("q", "k", "v", "do")}
    lse, delta = [], []
    for q, k, v, do in zip(*s.values(), strict=True):
        scores = visible_scores(q, k, d**-0.5)
        lse.append(torch.logsumexp(scores, 1))
        delta.append((torch.softmax(scores, 1) @ v.float() * do.float()).sum(1))
    s |= {"lse": torch.stack(lse), "delta": torch.stack(delta)}
    return s | {name: at.empty(heads, t, d) for name in outputs}


def attention_gradients(s: Buffers, d: int) -> Results:
    """The gradients of a causal attention."""
    found = []
    for q, k, v, do, lse, delta in zip(
        *(s[name].float() for name in ("q", "k", "v", "do", "lse", "delta")), strict=True
    ):
        p = torch.exp(visible_scores(q, k, d**-0.5) - lse[:, None])
        ds = p * (do @ v.T - delta[:, None]) * d**-0.5
        found.append((ds @ k, ds.T @ q, p.T @ do))
    return dict(zip(("dq", "dk", "dv"), map(torch.stack, zip(*found, strict=True)), strict=True))


@cases("attention gradients", [(32, 2048, 128), (4, 256, 64)], (2, 37, 16))
def attention_dq(at: Maker, heads: int, t: int, d: int) -> Parts:
    bm, bn = at.size((128, 64) if t > 256 else (64, 32), (16, 16))

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), heads)](
            *(s[name] for name in ("q", "k", "v", "do", "lse", "delta", "dq")), d**-0.5, t, D=d, BM=bm,
            BN=bn, num_warps=at.size(8 if t > 256 else 4, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        return {"dq": attention_gradients(s, d)["dq"]}

    return functools.partial(attention_inputs, at, heads, t, d, "dq"), launch, want, 2e-2


@cases("attention gradients", [(32, 2048, 64), (4, 256, 64)], (2, 37, 16))
def attention_dkv(at: Maker, heads: int, t: int, d: int) -> Parts:
    bm, bn = at.size((64, 128) if t > 256 else (32, 64), (16, 32))

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bn), heads)](
            *(s[name] for name in ("q", "k", "v", "do", "lse", "delta", "dk", "dv")), d**-0.5, t, D=d,
            BM=bm, BN=bn, num_warps=at.size(8 if t > 256 else 4, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        found = attention_gradients(s, d)
        return {name: found[name] for name in ("dk", "dv")}

    return functools.partial(attention_inputs, at, heads, t, d, "dk", "dv"), launch, want, 2e-2


@cases("decoding", [(32, 4096, 8, 8, 128), (2, 512, 4, 4, 64)], (2, 50, 2, 3, 16))
def decode_int8_cache(at: Maker, batch: int, longest: int, h: int, g: int, d: int) -> Parts:
    splits, bn = at.size(8, 3), at.size(64, 16)
    lengths = [longest - 97 * i % (longest // 2) for i in range(batch)]

    def make() -> Buffers:
        shape = (batch, longest, h, d)
        return {
            "q": at.random(batch, h * g, d),
            **{name: (at.integers(255, *shape) - 127).to(torch.int8) for name in "kv"},
            **{name: torch.rand(shape[:3], device=at.device) * 0.02 + 0.001 for name in ("ks", "vs")},
            "lengths": torch.tensor(lengths, dtype=I32).to(at.device),
            "o": at.empty(batch, h * g, splits, d, dtype=F32),
            "lse": at.empty(batch, h * g, splits, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, h, splits)](
            *(s[name] for name in ("q", "k", "v", "ks", "vs", "lengths", "o", "lse")), d**-0.5, longest,
            H=h, G=g, D=d, BN=bn, SPLITS=splits, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out = torch.zeros(batch, h * g, splits, d, device=at.device)
        lse = torch.full((batch, h * g, splits), float("-inf"), device=at.device)
        for b, length in enumerate(lengths):
            k, v = (s[x][b].float() * s[x + "s"][b][..., None] for x in "kv")
            each = cdiv(cdiv(length, bn), splits) * bn
            for part in range(splits):
                begin, end = part * each, min(part * each + each, length)
                if begin >= end:
                    continue
                keys, values = (x[begin:end].repeat_interleave(g, 1) for x in (k, v))
                scores = torch.einsum("hd,thd->ht", s["q"][b].float(), keys) * d**-0.5
                lse[b, :, part] = torch.logsumexp(scores, 1)
                out[b, :, part] = torch.einsum("ht,thd->hd", torch.softmax(scores, 1), values)
        return {"o": out, "lse": lse}

    return make, launch, want, 2e-2


@cases("decoding", [(256, 64, 32, 128), (16, 32, 8, 128)], (3, 5, 4, 16))
def merge_head_splits(at: Maker, batch: int, heads: int, splits: int, d: int) -> Parts:
    bh = at.size(4, 4)
    parts = [max(1, splits - 5 * b % splits) for b in range(batch)]

    def make() -> Buffers:
        return {
            "o": at.random(batch, splits, heads, d, dtype=F32),
            "lse": at.random(batch, splits, heads, dtype=F32),
            "out": at.empty(batch, heads, d, dtype=BF16),
            "parts": torch.tensor(parts, dtype=I32).to(at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, cdiv(heads, bh))](
            s["o"], s["lse"], s["out"], s["parts"], heads, splits, D=d, BH=bh, num_warps=4
        )

    def want(s: Buffers) -> Results:
        has = torch.arange(splits, device=at.device)[None, :] < s["parts"][:, None]
        weights = torch.softmax(torch.where(has[..., None], s["lse"], float("-inf")), 1)
        return {"out": (weights[..., None] * s["o"]).sum(1)}

    return make, launch, want, 1e-2


@cases("attention", [(1, 4096, 4, 16, 128, 16), (1, 128, 2, 16, 64, 4)], (2, 40, 2, 16, 16, 3))
def selected_blocks(at: Maker, batch: int, t: int, h: int, g: int, d: int, count: int) -> Parts:
    bs = at.size(64, 16)

    def make() -> Buffers:
        own = (torch.arange(t) // bs)[None, :, None, None].expand(batch, t, h, 1)
        drawn = (torch.rand((batch, t, h, count - 1)) * (own + 1)).long()
        drawn = torch.where(drawn == own, -1, drawn)
        return {
            "q": at.random(batch, t, h, g, d, dtype=BF16),
            "k": at.random(batch, t, h, d, dtype=BF16), "v": at.random(batch, t, h, d, dtype=BF16),
            "ids": torch.cat([own, drawn], 3).int().to(at.device),
            "o": at.empty(batch, t, h, g, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(t, h, batch)](
            *(s[name] for name in ("q", "k", "v", "ids", "o")), d**-0.5, t, count, H=h, G=g, D=d, BS=bs,
            num_warps=at.size(2, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        block = torch.arange(t, device=at.device) // bs
        blocks = int(block[-1]) + 1
        # How often each block is chosen: one that is chosen twice counts twice.
        times = torch.nn.functional.one_hot(s["ids"].long() + 1, blocks + 1).sum(3)[..., 1:]
        times = times[..., block].float()
        out = []
        for i in range(h):
            k, v = (s[name][:, :, i].float() for name in "kv")
            scores = torch.einsum("btgd,bsd->bgts", s["q"][:, :, i].float(), k) * d**-0.5
            keep = torch.ones(t, t, dtype=torch.bool, device=at.device).tril()
            scores = torch.where(keep, scores, float("-inf"))
            p = torch.exp(scores - scores.amax(-1, keepdim=True)) * times[:, None, :, i]
            p = p / p.sum(-1, keepdim=True)
            out.append(torch.einsum("bgts,bsd->btgd", p, v))
        return {"o": torch.stack(out, 2)}

    return make, launch, want, 2e-2


@cases("convolution", [(512, 8192, 4), (16, 4096, 4)], (3, 50, 4))
def conv_step(at: Maker, batch: int, c: int, w: int) -> Parts:
    block = at.size(256, 32)

    def make() -> Buffers:
        slots = torch.randperm(batch * 2)[:batch]
        slots[1] = -1
        return {
            "x": at.random(batch, c, dtype=BF16), "state": at.random(batch * 2, c, w - 1, dtype=BF16),
            "slots": slots.int().to(at.device), "w": at.random(c, w, dtype=BF16),
            "bias": at.random(c, dtype=BF16), "y": torch.zeros((batch, c), device=at.device).bfloat16(),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, cdiv(c, block))](
            *(s[name] for name in ("x", "state", "slots", "w", "bias", "y")), c, W=w, BLOCK=block,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        live = s["slots"] >= 0
        slots = s["slots"][live].long()
        window = torch.cat([s["state"][slots], s["x"][live][..., None]], 2)
        state, y = s["state"].clone(), torch.zeros(batch, c, device=at.device)
        state[slots] = window[..., 1:]
        y[live] = torch.nn.functional.silu(
            (window.float() * s["w"].float()).sum(2) + s["bias"].float()
        )
        return {"state": state, "y": y}

    return make, launch, want, 1e-2
