# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of held_out_sequence_kernels.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16 = torch.float32, torch.bfloat16


def unit(at: Maker, *shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """Vectors of length 1."""
    return torch.nn.functional.normalize(at.random(*shape, dtype=F32), dim=-1).to(dtype)


def chunk_sums(g: torch.Tensor, size: int) -> torch.Tensor:
    """The cumsum within each chunk of tokens."""
    return torch.cat([part.cumsum(1) for part in g.split(size, 1)], 1)


@cases("recurrence", [(4, 16, 2048, 128, 128), (1, 8, 1024, 64, 64)], (1, 2, 9, 24, 20))
def token_retention(at: Maker, batch: int, heads: int, tokens: int, k: int, v: int) -> Parts:
    bk, bv = at.size((64, 32), (16, 16))
    parts = cdiv(k, bk)

    def make() -> Buffers:
        shape = (batch * heads, tokens)
        return {
            "q": at.random(*shape, k), "k": at.random(*shape, k), "v": at.random(*shape, v),
            "o": at.empty(parts, *shape, v, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(v, bv), parts, batch * heads)](
            s["q"], s["k"], s["v"], s["o"], k**-0.5, batch, heads, tokens, K=k, V=v, BK=bk, BV=bv,
            num_warps=1,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        shape = (parts, batch * heads, tokens, bk)
        padding = (0, parts * bk - k)
        q, key = (
            torch.nn.functional.pad(s[name].float(), padding)
            .reshape(batch * heads, tokens, parts, bk)
            .permute(2, 0, 1, 3)
            for name in ("q", "k")
        )
        head = torch.arange(batch * heads, device=at.device) % heads
        decay = (1 - torch.exp2(-5.0 - head))[:, None, None]
        state = torch.zeros(*shape[:2], bk, v, device=at.device)
        out = torch.empty(*shape[:3], v, device=at.device)
        for t in range(tokens):
            state = decay * state + key[:, :, t, :, None] * s["v"][:, t, None].float()
            out[:, :, t] = (q[:, :, t, None] @ state)[..., 0, :] * k**-0.5
        return {"o": out}

    return make, launch, want, 1e-2


@cases("recurrence", [(8, 32, 1024, 64), (1, 16, 2048, 64)], (1, 2, 9, 16))
def token_bonus(at: Maker, batch: int, heads: int, tokens: int, d: int) -> Parts:
    bv = at.size(32, 16)

    def make() -> Buffers:
        s: Buffers = {name: at.random(batch, tokens, heads, d, dtype=BF16) for name in "rkvw"}
        return {**s, "u": at.random(heads, d), "o": at.empty(batch, tokens, heads, d, dtype=BF16)}

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(d // bv, batch * heads)](
            s["r"], s["k"], s["v"], s["w"], s["u"], s["o"], tokens, heads, K=d, V=d, BV=bv,
            num_warps=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        r, k, v, w = (s[name].float() for name in "rkvw")
        decay, u = torch.exp(-torch.exp(w)), s["u"].float()
        state = torch.zeros(batch, heads, d, d, device=at.device)
        out = torch.empty_like(v)
        for t in range(tokens):
            kv = k[:, t, :, :, None] * v[:, t, :, None]
            out[:, t] = (r[:, t, :, None] @ (state + kv * u[..., None]))[:, :, 0]
            state = decay[:, t, ..., None] * state + kv
        return {"o": out}

    return make, launch, want, 2e-2


@cases("recurrence", [(64, 1024, 128, 128), (16, 2048, 64, 64)], (2, 9, 16, 24))
def token_delta_rows(at: Maker, heads: int, tokens: int, k_dim: int, v_dim: int) -> Parts:
    bv = at.size(8 if k_dim > 64 else 32, 16)

    def make() -> Buffers:
        return {
            "q": unit(at, heads, tokens, k_dim), "k": unit(at, heads, tokens, k_dim),
            "v": at.random(heads, tokens, v_dim), "beta": torch.rand((heads, tokens), device=at.device),
            "u": at.empty(heads, tokens, v_dim), "o": at.empty(heads, tokens, v_dim),
            "last": at.empty(heads, v_dim, k_dim, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(v_dim, bv), heads)](
            s["q"], s["k"], s["v"], s["beta"], s["u"], s["o"], s["last"], 0.5, tokens, K=k_dim,
            V=v_dim, BV=bv, num_warps=1,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v, beta = (s[name].float() for name in ("q", "k", "v", "beta"))
        state = torch.zeros(heads, v_dim, k_dim, device=at.device)
        us, outs = torch.empty_like(v), torch.empty_like(v)
        for t in range(tokens):
            us[:, t] = v[:, t] - (state @ k[:, t, :, None])[..., 0]
            state = state + (beta[:, t, None] * us[:, t])[..., None] * k[:, t, None]
            outs[:, t] = (state @ q[:, t, :, None])[..., 0] * 0.5
        return {"u": us, "o": outs, "last": state}

    return make, launch, want, 2e-2


@cases("recurrence", [(16, 2048, 2048), (2, 1024, 1024)], (2, 9, 40))
def token_gates(at: Maker, batch: int, tokens: int, d: int) -> Parts:
    bd = at.size(128, 32)

    def make() -> Buffers:
        return {
            "x": at.random(batch, tokens, d), "g": -at.random(batch, tokens, d, dtype=F32).abs().half(),
            "o": at.empty(batch, tokens, d), "h0": at.random(batch, d, dtype=F32),
            "ht": at.empty(batch, d, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, bd), batch)](
            s["x"], s["g"], s["o"], s["h0"], s["ht"], tokens, D=d, BD=bd, num_warps=at.size(1, 4)
        )

    def want(s: Buffers) -> Results:
        h, x, decay = s["h0"], s["x"].float(), torch.exp(s["g"].float())
        out = torch.empty_like(x)
        for t in range(tokens):
            h = decay[:, t] * h + x[:, t]
            out[:, t] = h
        return {"o": out, "ht": h}

    return make, launch, want, 1e-2


@cases("recurrence", [(16, 2048, 2048), (2, 1024, 512)], (2, 9, 40))
def token_gates_backward(at: Maker, batch: int, tokens: int, d: int) -> Parts:
    bd = at.size(64, 32)

    def make() -> Buffers:
        s: Buffers = {
            name: at.random(batch, tokens, d, dtype=F32) * factor
            for name, factor in (("o", 1.0), ("do", 1.0), ("g", 0.5))
        }
        s["g"] = -s["g"].abs()
        return {
            **s, "dx": at.empty(batch, tokens, d, dtype=F32), "dg": at.empty(batch, tokens, d, dtype=F32)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, bd), batch)](
            s["g"], s["o"], s["do"], s["dx"], s["dg"], tokens, D=d, BD=bd, num_warps=at.size(1, 4)
        )

    def want(s: Buffers) -> Results:
        decay = torch.exp(s["g"])
        before = torch.cat([torch.zeros_like(s["o"][:, :1]), s["o"][:, :-1]], 1)
        dh = torch.zeros_like(s["o"][:, 0])
        dx = torch.empty_like(s["o"])
        for t in reversed(range(tokens)):
            dh = dh + s["do"][:, t]
            dx[:, t] = dh
            dh = dh * decay[:, t]
        return {"dx": dx, "dg": dx * decay * before}

    return make, launch, want, 1e-3


@cases("state step", [(256, 64, 64, 128, 8), (8, 32, 64, 128, 32)], (3, 4, 20, 16, 2))
def state_step(at: Maker, batch: int, heads: int, p: int, n: int, group: int) -> Parts:
    bp = at.size(32, 8)

    def make() -> Buffers:
        return {
            "state": at.random(batch + 3, heads, p, n, dtype=BF16),
            "slots": torch.randperm(batch + 3)[:batch].int().to(at.device),
            "x": at.random(batch, heads, p, dtype=BF16), "dt": at.random(batch, heads, dtype=BF16),
            "bias": at.random(heads, dtype=F32), "A": -at.random(heads, dtype=F32).abs() - 0.1,
            "B": at.random(batch, heads // group, n, dtype=BF16),
            "C": at.random(batch, heads // group, n, dtype=BF16), "D": at.random(heads, dtype=F32),
            "z": at.random(batch, heads, p, dtype=BF16), "y": at.empty(batch, heads, p, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(p, bp), batch, heads)](
            s["state"], s["slots"], s["x"], s["dt"], s["bias"], s["A"], s["B"], s["C"], s["D"],
            s["z"], s["y"], H=heads, P=p, N=n, GROUP=group, BP=bp, num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, z = s["x"].float(), s["z"].float()
        dt = torch.nn.functional.softplus(s["dt"].float() + s["bias"])[..., None, None]
        b, c = (s[name].float().repeat_interleave(group, 1)[:, :, None] for name in "BC")
        slots = s["slots"].long()
        new = (
            s["state"][slots].float() * torch.exp(s["A"][:, None, None] * dt)
            + dt * b * x[..., None]
        )
        state = s["state"].float()
        state[slots] = new
        y = (new * c).sum(-1) + x * s["D"][:, None]
        return {"state": state, "y": y * torch.nn.functional.silu(z)}

    return make, launch, want, 2e-2


@cases("cumsum", [(16, 16384, 64), (2, 4096, 32)], (2, 37, 5))
def chunk_head_cumsum(at: Maker, batch: int, tokens: int, heads: int) -> Parts:
    bt, bh = at.size((64, 16), (16, 4))

    def make() -> Buffers:
        return {
            "g": at.random(batch, tokens, heads, dtype=F32),
            "o": at.empty(batch, tokens, heads, dtype=F32),
        }

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), batch, cdiv(heads, bh))](
            s["g"], s["o"], 1.4427, tokens, H=heads, BT=bt, BH=bh, num_warps=2
        )

    def want(s: Buffers) -> Results:
        parts = [part.flip(1).cumsum(1).flip(1) for part in s["g"].split(bt, 1)]
        return {"o": torch.cat(parts, 1) * 1.4427}

    return make, launch, want, 1e-3


@cases("chunks", [(4, 32, 32, 8192), (1, 8, 64, 4096)], (2, 5, 2, 50))
def chunk_pass_states(at: Maker, batch: int, chunks: int, heads: int, size: int) -> Parts:
    block = at.size(512, 32)

    def make() -> Buffers:
        return {
            "states": at.random(batch, chunks, heads, size, dtype=F32),
            "out": at.empty(batch, chunks, heads, size),
            "last": at.empty(batch, heads, size, dtype=F32),
            "decay": -at.random(batch, heads, chunks, dtype=F32).abs(),
        }

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(size, block), batch, heads)](
            s["states"], s["out"], s["last"], s["decay"], chunks, H=heads, S=size, BLOCK=block,
            num_warps=at.size(2, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        state = torch.zeros(batch, heads, size, device=at.device)
        out = torch.empty_like(s["states"])
        for c in range(chunks):
            out[:, c] = state
            state = torch.exp(s["decay"][..., c, None]) * state + s["states"][:, c]
        return {"out": out, "last": state}

    return make, launch, want, 1e-2


@cases("chunks", [(4, 4096, 16, 128, 128), (2, 2048, 8, 64, 64)], (2, 37, 2, 24, 24))
def chunk_output(at: Maker, batch: int, tokens: int, heads: int, k_dim: int, v_dim: int) -> Parts:
    bt, bk, bv = at.size((64, 64, 64), (16, 16, 16))
    chunks = cdiv(tokens, bt)

    def make() -> Buffers:
        return {
            "q": at.random(batch, tokens, heads, k_dim, dtype=BF16),
            "k": unit(at, batch, tokens, heads, k_dim, dtype=BF16),
            "v": at.random(batch, tokens, heads, v_dim, dtype=BF16),
            "h": at.random(batch, chunks, heads, k_dim, v_dim, dtype=BF16),
            "g": chunk_sums(-at.random(batch, tokens, heads, dtype=F32).abs() * 0.1, bt),
            "o": at.empty(batch, tokens, heads, v_dim, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(v_dim, bv), chunks, batch * heads)](
            s["q"], s["k"], s["v"], s["h"], s["g"], s["o"], k_dim**-0.5, tokens, H=heads, K=k_dim,
            V=v_dim, BT=bt, BK=bk, BV=bv, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out = torch.empty(batch, tokens, heads, v_dim, device=at.device)
        for c in range(chunks):
            part = slice(c * bt, (c + 1) * bt)
            q, k, v = (s[name][:, part].float().transpose(1, 2) for name in "qkv")
            g = s["g"][:, part].transpose(1, 2)
            scores = torch.tril(q @ k.transpose(2, 3))
            scores = torch.tril(scores * torch.exp(torch.tril(g[..., None] - g[..., None, :])))
            o = q @ s["h"][:, c].float() * torch.exp(g)[..., None] + scores @ v
            out[:, part] = o.transpose(1, 2) * k_dim**-0.5
        return {"o": out}

    return make, launch, want, 2e-2


@cases("chunks", [(8, 8192, 16, 16), (4, 2048, 8, 32)], (2, 37, 2, 16))
def chunk_solve(at: Maker, batch: int, tokens: int, heads: int, bt: int) -> Parts:
    def make() -> Buffers:
        return {
            "A": at.random(batch, tokens, heads, bt, dtype=F32) * 0.2,
            "Ai": at.empty(batch, tokens, heads, bt, dtype=F32),
        }

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), batch * heads)](
            s["A"], s["Ai"], tokens, H=heads, BT=bt, num_warps=1
        )

    def want(s: Buffers) -> Results:
        padding = (0, 0, 0, 0, 0, -tokens % bt)
        A = torch.nn.functional.pad(s["A"], padding).reshape(batch, -1, bt, heads, bt)
        A = torch.tril(A.transpose(2, 3), -1) + torch.eye(bt, device=at.device)
        inverse = torch.linalg.inv(A.double()).float().transpose(2, 3)
        return {"Ai": inverse.reshape(batch, -1, heads, bt)[:, :tokens]}

    return make, launch, want, 1e-3


@cases("chunks", [(4, 4096, 16, 128, 128), (1, 4096, 8, 64, 128)], (2, 37, 2, 24, 40))
def chunk_wy(at: Maker, batch: int, tokens: int, heads: int, k_dim: int, v_dim: int) -> Parts:
    bt, bk, bv = at.size((64, 64, 64), (16, 16, 16))

    def make() -> Buffers:
        shape = (batch, tokens, heads)
        return {
            "k": unit(at, *shape, k_dim, dtype=BF16), "v": at.random(*shape, v_dim, dtype=BF16),
            "beta": torch.rand(shape, device=at.device),
            "g": chunk_sums(-at.random(*shape, dtype=F32).abs() * 0.1, bt),
            "A": (at.random(*shape, bt, dtype=F32) * 0.2).to(BF16),
            "w": at.empty(*shape, k_dim, dtype=BF16), "u": at.empty(*shape, v_dim, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bt), batch * heads)](
            s["k"], s["v"], s["beta"], s["g"], s["A"], s["w"], s["u"], tokens, H=heads, K=k_dim,
            V=v_dim, BT=bt, BK=bk, BV=bv, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        k = s["k"].float() * (s["beta"] * torch.exp(s["g"]))[..., None]
        v = s["v"].float() * s["beta"][..., None]
        k, v = k.to(BF16).float(), v.to(BF16).float()
        w, u = torch.empty_like(k), torch.empty_like(v)
        for start in range(0, tokens, bt):
            part = slice(start, start + bt)
            size = min(bt, tokens - start)
            A = s["A"][:, part, :, :size].float().transpose(1, 2)
            w[:, part] = (A @ k[:, part].transpose(1, 2)).transpose(1, 2)
            u[:, part] = (A @ v[:, part].transpose(1, 2)).transpose(1, 2)
        return {"w": w, "u": u}

    return make, launch, want, 2e-2


@cases("decoding", [(32, 4096, 16, 128, 8), (4, 1024, 8, 64, 4)], (2, 70, 2, 16, 3))
def decode_vector(at: Maker, batch: int, tokens: int, heads: int, d: int, splits: int) -> Parts:
    block = at.size(64, 16)
    lengths = [tokens - 101 * i % (tokens // 2) for i in range(batch)]

    def make() -> Buffers:
        return {
            "q": at.random(batch, heads, d), "k": at.random(batch, tokens, heads, d),
            "v": at.random(batch, tokens, heads, d),
            "lengths": torch.tensor(lengths, dtype=torch.int32).to(at.device),
            # A part without tokens is not stored.
            "part": torch.zeros((batch, heads, splits, d), device=at.device),
            "lse": torch.zeros((batch, heads, splits), device=at.device),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, heads, splits)](
            s["q"], s["k"], s["v"], s["part"], s["lse"], s["lengths"], d**-0.5, tokens, H=heads, D=d,
            BLOCK_N=block, SPLITS=splits, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        part, lse = torch.zeros_like(s["part"]), torch.zeros_like(s["lse"])
        for b, length in enumerate(lengths):
            width = cdiv(cdiv(length, splits), block) * block
            for split, start in enumerate(range(0, length, width)):
                rows = slice(start, min(start + width, length))
                k, v = (s[name][b, rows].float() for name in "kv")
                qk = torch.einsum("hd,nhd->hn", s["q"][b].float(), k) * d**-0.5
                part[b, :, split] = torch.einsum("hn,nhd->hd", torch.softmax(qk, 1), v)
                lse[b, :, split] = torch.logsumexp(qk, 1)
        return {"part": part, "lse": lse}

    return make, launch, want, 1e-2


@cases("decoding", [(256, 32, 128, 32), (8, 32, 128, 16)], (3, 2, 16, 4))
def decode_merge_log2(at: Maker, batch: int, heads: int, d: int, splits: int) -> Parts:
    least = at.size(64, 8)

    def make() -> Buffers:
        lengths = torch.randint(1, 2 * least * splits, (batch,), dtype=torch.int32)
        return {
            "part": at.random(batch, heads, splits, d, dtype=F32),
            "lse": at.random(batch, heads, splits, dtype=F32) * 3,
            "lengths": lengths.to(at.device), "o": at.empty(batch, heads, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch * heads,)](
            s["part"], s["lse"], s["o"], s["lengths"], heads * d, H=heads, D=d, SPLITS=splits,
            LEAST=least, num_warps=1, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        count = (s["lengths"] + least - 1) // least
        live = torch.arange(splits, device=at.device) < count[:, None]
        lse = torch.where(live[:, None], s["lse"], float("-inf")) * math.log(2)
        return {"o": (torch.softmax(lse, 2)[..., None] * s["part"]).sum(2)}

    return make, launch, want, 1e-2


@cases("attention", [(16, 1024, 16, 4, 128, 256), (32, 256, 8, 2, 64, 128)], (2, 50, 4, 2, 16, 20))
def attention_window(
    at: Maker, batch: int, tokens: int, hq: int, hk: int, d: int, window: int
) -> Parts:
    bm, bn = at.size((64, 64), (16, 16))

    def make() -> Buffers:
        return {
            "q": at.random(batch, tokens, hq, d, dtype=BF16),
            "k": at.random(batch, tokens, hk, d, dtype=BF16),
            "v": at.random(batch, tokens, hk, d, dtype=BF16),
            "o": at.empty(batch, tokens, hq, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(tokens, bm), hq, batch)](
            s["q"], s["k"], s["v"], s["o"], tokens, d**-0.5, 30.0, HQ=hq, HK=hk, D=d, WINDOW=window,
            BM=bm, BN=bn, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        t = torch.arange(tokens, device=at.device)
        keep = (t[:, None] >= t) & (t[:, None] - t < window)
        out = torch.empty(batch, tokens, hq, d, device=at.device)
        for b in range(batch):
            q, k, v = (s[name][b].float().transpose(0, 1) for name in "qkv")
            k, v = (x.repeat_interleave(hq // hk, 0) for x in (k, v))
            scores = 30 * torch.tanh(q @ k.transpose(1, 2) * d**-0.5 / 30)
            scores = torch.where(keep, scores, float("-inf"))
            out[b] = (torch.softmax(scores, -1) @ v).transpose(0, 1)
        return {"o": out}

    return make, launch, want, 2e-2


@cases("decoding", [(64, 4096, 16, 512, 64, 4), (8, 1024, 16, 256, 64, 8)], (2, 70, 5, 32, 16, 3))
def latent_decode(
    at: Maker, batch: int, tokens: int, heads: int, dc: int, dr: int, splits: int
) -> Parts:
    bh, bn = at.size((16, 32), (16, 16))
    lengths = [tokens - 101 * i % (tokens // 2) for i in range(batch)]

    def make() -> Buffers:
        slots = torch.randperm(batch * tokens).reshape(batch, tokens).int()
        return {
            "q": at.random(batch, heads, dc + dr, dtype=BF16), "table": slots.to(at.device),
            "cache": at.random(batch * tokens, dc + dr, dtype=BF16),
            "lengths": torch.tensor(lengths, dtype=torch.int32).to(at.device),
            "part": at.empty(batch, heads, splits, dc, dtype=F32),
            "lse": at.empty(batch, heads, splits, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, cdiv(heads, bh), splits)](
            s["q"], s["cache"], s["part"], s["lse"], s["table"], s["lengths"], 0.05, tokens, H=heads,
            DC=dc, DR=dr, BH=bh, BN=bn, SPLITS=splits, num_warps=4, num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        part, lse = torch.empty_like(s["part"]), torch.empty_like(s["lse"])
        for b, length in enumerate(lengths):
            rows = s["cache"][s["table"][b, :length].long()].float()
            scores = s["q"][b].float() @ rows.T * 0.05
            width = cdiv(length, splits)
            for split in range(splits):
                own = scores[:, split * width : (split + 1) * width]
                part[b, :, split] = (
                    torch.softmax(own, 1) @ rows[split * width : (split + 1) * width, :dc]
                )
                lse[b, :, split] = torch.logsumexp(own, 1)
        return {"part": part, "lse": lse}

    return make, launch, want, 2e-2
