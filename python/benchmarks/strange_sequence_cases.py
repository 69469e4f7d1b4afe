# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases of strange_sequence_kernels.py."""

from __future__ import annotations

import math
from typing import Any

import torch
from public_kernels_cases import Buffers, Maker, Parts, Results, cases, cdiv

F32, BF16, I8 = torch.float32, torch.bfloat16, torch.int8


def unit(x: torch.Tensor) -> torch.Tensor:
    """Vectors of length 1."""
    return torch.nn.functional.normalize(x.float(), dim=-1).to(x.dtype)


def starts_of(at: Maker, *lengths: int) -> torch.Tensor:
    """Where sequences begin, and where the last one ends."""
    return torch.tensor([0, *lengths]).cumsum(0).int().to(at.device)


def chunked_sums(x: torch.Tensor, size: int) -> torch.Tensor:
    """Running sums along tokens, the second dimension, that begin again with each chunk."""
    return torch.cat([part.cumsum(1) for part in x.split(size, 1)], 1)


@cases("recurrences", [(64, 1024, 64, 64), (8, 64, 64, 64)], (3, 7, 16, 16))
def token_delta_walk(at: Maker, heads: int, t: int, kd: int, vd: int) -> Parts:
    bv = at.size(8, 8)

    def make() -> Buffers:
        return {
            "q": at.random(heads, t, kd, dtype=BF16), "k": unit(at.random(heads, t, kd, dtype=BF16)),
            "v": at.random(heads, t, vd, dtype=BF16),
            "beta": torch.sigmoid(at.random(heads, t, dtype=F32)).to(BF16),
            "h0": at.random(heads, kd, vd, dtype=F32), "o": at.empty(heads, t, vd, dtype=BF16),
            "ht": at.empty(heads, kd, vd, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(vd // bv, heads)](
            *(s[name] for name in ("q", "k", "v", "beta", "h0", "o", "ht")), 0.125, t, K=kd, V=vd,
            BV=bv, num_warps=at.size(1, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, k, v, beta = (s[name].float() for name in ("q", "k", "v", "beta"))
        h, out = s["h0"].clone(), []
        for i in range(t):
            key = k[:, i, :, None]
            value = (v[:, i] - (h * key).sum(1)) * beta[:, i, None]
            h = h + key * value[:, None]
            out.append((h * q[:, i, :, None]).sum(1) * 0.125)
        return {"o": torch.stack(out, 1), "ht": h}

    return make, launch, want, 2e-2


@cases("recurrences", [(16, 1024, 1024), (2, 64, 256)], (2, 9, 40))
def token_complex(at: Maker, batch: int, t: int, d: int) -> Parts:
    block = at.size(64, 32)

    def make() -> Buffers:
        return {
            "x": at.random(batch, t, 2, d), "decay": at.random(d, dtype=F32) - 2,
            "angle": at.random(d, dtype=F32), "y": at.empty(batch, t, d),
            "last": at.empty(batch, 2, d, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, block), batch)](
            *(s[name] for name in ("x", "decay", "angle", "y", "last")), t, d, BLOCK=block,
            num_warps=at.size(2, 4), num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        step = torch.polar((-s["decay"].double().exp()).exp(), s["angle"].double())
        x = s["x"].double()
        h, out = torch.zeros(batch, d, device=at.device, dtype=torch.complex128), []
        for i in range(t):
            h = h * step + torch.complex(x[:, i, 0], x[:, i, 1])
            out.append(h.real)
        last = torch.stack([h.real, h.imag], 1)
        return {"y": torch.stack(out, 1).float(), "last": last.float()}

    return make, launch, want, 1e-2


@cases("scans", [(8, 4096, 2048), (1, 256, 512)], (2, 21, 12))
def scan_gates(at: Maker, batch: int, t: int, d: int) -> Parts:
    bt, bd = at.size((64, 64), (8, 8))

    def make() -> Buffers:
        return {
            "g": at.random(batch, t, d), "x": at.random(batch, t, d), "h": at.empty(batch, t, d)
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, bd), batch)](s["g"], s["x"], s["h"], t, d, BT=bt, BD=bd, num_warps=4)

    def want(s: Buffers) -> Results:
        a, x = torch.sigmoid(s["g"].float()), s["x"].float()
        h, out = torch.zeros(batch, d, device=at.device), []
        for i in range(t):
            h = a[:, i] * h + x[:, i] * (1 - a[:, i])
            out.append(h)
        return {"h": torch.stack(out, 1)}

    return make, launch, want, 1e-2


@cases("cumsums", [(4, 8192, 16, 128), (1, 256, 8, 32)], (2, 21, 3, 12))
def chunk_suffix_sums(at: Maker, batch: int, t: int, heads: int, width: int) -> Parts:
    bt, bs = at.size((64, 32), (8, 8))

    def make() -> Buffers:
        return {
            "x": at.random(batch, t, heads, width, dtype=BF16),
            "y": at.empty(batch, t, heads, width, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(width, bs), batch * heads)](
            s["x"], s["y"], t, 0.5, H=heads, S=width, BT=bt, BS=bs, num_warps=at.size(4, 4)
        )

    def want(s: Buffers) -> Results:
        return {"y": s["x"].double().mul(0.5).flip(1).cumsum(1).flip(1).float()}

    return make, launch, want, 1e-3


@cases("chunks", [(64, 4096, 128), (4, 256, 64)], (2, 40, 24))
def chunk_gate_scores(at: Maker, heads: int, t: int, kd: int) -> Parts:
    bt, bk = at.size((64, 32), (16, 16))

    def make() -> Buffers:
        steps = -torch.rand((heads, t, kd), device=at.device) * 0.1
        return {
            "q": at.random(heads, t, kd, dtype=BF16), "k": at.random(heads, t, kd, dtype=BF16),
            "g": chunked_sums(steps, bt), "a": at.empty(heads, t, bt, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bt), heads)](
            s["q"], s["k"], s["g"], s["a"], 0.1, t, K=kd, BT=bt, BK=bk, num_warps=4, num_stages=3
        )

    def want(s: Buffers) -> Results:
        out = torch.zeros(heads, t, bt, device=at.device)
        for start in range(0, t, bt):
            q, k, g = (s[name][:, start : start + bt].float() for name in "qkg")
            middle = s["g"][:, min(start + bt // 2, t - 1)][:, None]
            scores = (q * (g - middle).exp()) @ (k * (middle - g).exp()).transpose(1, 2)
            out[:, start : start + bt, : q.shape[1]] = scores.tril() * 0.1
        return {"a": out}

    return make, launch, want, 2e-2


@cases("chunks", [(64, 4096, 128, 128), (4, 128, 64, 64)], (2, 40, 24, 16))
def chunk_values_grad(at: Maker, heads: int, t: int, kd: int, vd: int) -> Parts:
    bt, bk, bv = at.size((64, 64, 64), (16, 16, 16))
    chunks = cdiv(t, bt)

    def make() -> Buffers:
        return {
            "k": at.random(heads, t, kd, dtype=BF16), "a": at.random(heads, t, bt, dtype=BF16),
            "do": at.random(heads, t, vd, dtype=BF16),
            "dh": at.random(heads, chunks, kd, vd, dtype=BF16),
            "dv": at.empty(heads, t, vd, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(vd, bv), chunks, heads)](
            *(s[name] for name in ("k", "a", "do", "dh", "dv")), t, K=kd, V=vd, BT=bt, BK=bk,
            BV=bv, num_warps=4, num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        parts = []
        for i, start in enumerate(range(0, t, bt)):
            k, a, do = (s[name][:, start : start + bt].float() for name in ("k", "a", "do"))
            scores = a[:, :, : k.shape[1]].tril().transpose(1, 2)
            parts.append(k @ s["dh"][:, i].float() + scores @ do)
        return {"dv": torch.cat(parts, 1)}

    return make, launch, want, 3e-2


@cases("chunks", [(64, 4096, 128, 128), (4, 256, 64, 64)], (2, 40, 16, 32))
def chunk_states_reverse(at: Maker, heads: int, t: int, kd: int, vd: int) -> Parts:
    bt, bk, bv = at.size((64, 64, 64), (16, 16, 16))
    chunks = cdiv(t, bt)

    def make() -> Buffers:
        steps = -torch.rand((heads, t), device=at.device) * 0.1
        return {
            "q": at.random(heads, t, kd, dtype=BF16), "do": at.random(heads, t, vd, dtype=BF16),
            "g": chunked_sums(steps, bt), "dh": at.empty(heads, chunks, kd, vd, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(kd, bk), cdiv(vd, bv), heads)](
            s["q"], s["do"], s["g"], s["dh"], 0.1, t, K=kd, V=vd, BT=bt, BK=bk, BV=bv, num_warps=4,
            num_stages=3,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        dh, states = torch.zeros(heads, kd, vd, device=at.device), []
        for start in reversed(range(0, t, bt)):
            states.append(dh)
            q, do, g = (s[name][:, start : start + bt].float() for name in ("q", "do", "g"))
            q = q * 0.1 * g.exp()[..., None]
            dh = dh * g[:, -1, None, None].exp() + q.transpose(1, 2) @ do
        return {"dh": torch.stack(states[::-1], 1)}

    return make, launch, want, 3e-2


@cases("convolutions", [(16384, 4096, 4), (256, 1024, 4)], (23, 40, 3))
def conv_packed(at: Maker, t: int, d: int, width: int) -> Parts:
    bt, bd = at.size((16, 128), (8, 16))

    def make() -> Buffers:
        edges = [0, 1, 3, *torch.randint(4, t, (5,)).sort().values.tolist()]
        first = torch.zeros(t, dtype=torch.int32)
        for edge in edges:
            first[edge:] = edge
        return {
            "x": at.random(t, d, dtype=BF16), "first": first.to(at.device),
            "w": at.random(width, d, dtype=BF16), "bias": at.random(d, dtype=BF16),
            "y": at.empty(t, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bt), cdiv(d, bd))](
            *(s[name] for name in ("x", "first", "w", "bias", "y")), t, d, W=width, BT=bt, BD=bd,
            num_warps=4,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        x, w = s["x"].float(), s["w"].float()
        y = s["bias"].float().expand(t, d).clone()
        tokens = torch.arange(t, device=at.device)
        for j in range(width):
            source = tokens - (width - 1) + j
            live = source >= s["first"]
            y += torch.where(live[:, None], x[source.clamp(min=0)] * w[j], 0.0)
        return {"y": torch.nn.functional.silu(y)}

    return make, launch, want, 1e-2


@cases("attention", [(8, 512, 1024, 16, 128), (4, 48, 128, 4, 64)], (3, 20, 24, 2, 16))
def extend_prefix(at: Maker, count: int, new: int, known: int, heads: int, d: int) -> Parts:
    bm, bn = at.size((64, 64) if new > 256 else (16, 32), (16, 16))
    # Sequences of several lengths, one of which has no prefix.
    news = [max(new - 7 * i, 1) for i in range(count)]
    prefixes = [0 if i == 1 else max(known - 11 * i, 1) for i in range(count)]

    def make() -> Buffers:
        tokens, slots = sum(news), sum(prefixes)
        q, k, v = (at.random(tokens, heads, d) for _ in "qkv")
        return {
            "q": q, "k": k, "v": v, "kc": at.random(slots * 2, heads, d),
            "vc": at.random(slots * 2, heads, d), "starts": starts_of(at, *news),
            "prefix": starts_of(at, *prefixes),
            "slots": torch.randperm(slots * 2, device=at.device)[:slots].int(),
            "o": at.empty(tokens, heads, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("q", "k", "v", "kc", "vc", "starts", "prefix", "slots", "o")
        return kernel[(count, heads, cdiv(new, bm))](
            *(s[name] for name in names), d**-0.5, H=heads, D=d, BM=bm, BN=bn, num_warps=4,
            num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out, first, place = [], 0, 0
        for length, prefix in zip(news, prefixes, strict=True):
            slots = s["slots"][place : place + prefix].long()
            q, k, v = (s[name][first : first + length].float().transpose(0, 1) for name in "qkv")
            k = torch.cat([s["kc"][slots].float().transpose(0, 1), k], 1)
            v = torch.cat([s["vc"][slots].float().transpose(0, 1), v], 1)
            seen = torch.ones(length, prefix + length, device=at.device).tril(prefix) > 0
            scores = torch.where(seen, q @ k.transpose(1, 2) * d**-0.5, float("-inf"))
            out.append((torch.softmax(scores, -1) @ v).transpose(0, 1))
            first, place = first + length, place + prefix
        return {"o": torch.cat(out)}

    return make, launch, want, 1e-2


@cases("attention backward", [(32, 2048, 64), (4, 256, 64)], (2, 40, 16))
def attention_backward_atomic(at: Maker, heads: int, t: int, d: int) -> Parts:
    bm, bn = at.size((64, 128) if t > 256 else (32, 64), (16, 16))
    scale = d**-0.5

    def make() -> Buffers:
        q, k, v, do = (at.random(heads, t, d, dtype=BF16) for _ in range(4))
        lse, delta = [], []
        for i in range(heads):
            scores = q[i].float() @ k[i].float().T * scale
            o = torch.softmax(scores, 1) @ v[i].float()
            lse.append(scores.logsumexp(1))
            delta.append((o * do[i].float()).sum(1))
        return {
            "q": q, "k": k, "v": v, "do": do, "lse": torch.stack(lse), "delta": torch.stack(delta),
            "dq": torch.zeros(heads, t, d, device=at.device),
            "dk": at.empty(heads, t, d, dtype=BF16), "dv": at.empty(heads, t, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        names = ("q", "k", "v", "do", "lse", "delta", "dq", "dk", "dv")
        return kernel[(cdiv(t, bn), heads)](
            *(s[name] for name in names), scale, t, D=d, BM=bm, BN=bn,
            num_warps=at.size(8 if t > 256 else 4, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        parts: dict[str, list[torch.Tensor]] = {"dq": [], "dk": [], "dv": []}
        for i in range(heads):
            q, k, v, do = (s[name][i].float() for name in ("q", "k", "v", "do"))
            p = torch.softmax(q @ k.T * scale, 1)
            ds = p * (do @ v.T - s["delta"][i][:, None]) * scale
            for name, part in (("dq", ds @ k), ("dk", ds.T @ q), ("dv", p.T @ do)):
                parts[name].append(part)
        return {name: torch.stack(part) for name, part in parts.items()}

    return make, launch, want, 2e-2


@cases("decoding", [(256, 32, 128, 16), (4, 16, 96, 8)], (3, 2, 24, 4))
def decode_merge_masked(at: Maker, batch: int, heads: int, d: int, splits: int) -> Parts:
    least = 32

    def make() -> Buffers:
        o, lse = at.random(batch, heads, splits, d, dtype=F32), at.random(
            batch, heads, splits, dtype=F32
        )
        return {
            "o": o, "lse": lse * 3, "lengths": at.integers(splits * 64, batch) + 1,
            "out": at.empty(batch, heads, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(batch, heads)](
            s["o"], s["lse"], s["lengths"], s["out"], heads, D=d, BD=1 << (d - 1).bit_length(),
            SPLITS=splits, LEAST=least, num_warps=at.size(2, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        length = s["lengths"].long()
        each = ((length + splits - 1) // splits + least - 1) // least * least
        live = torch.arange(splits, device=at.device)[None] * each[:, None] < length[:, None]
        share = torch.softmax(torch.where(live[:, None], s["lse"], float("-inf")), 2)
        return {"out": (s["o"] * share[..., None]).sum(2)}

    return make, launch, want, 1e-2


@cases("decoding", [(4096, 32, 128), (64, 16, 128)], (5, 3, 24))
def merge_two_states(at: Maker, tokens: int, heads: int, d: int) -> Parts:
    def make() -> Buffers:
        a_lse = at.random(tokens, heads, dtype=F32) * 3
        return {
            "a": at.random(tokens, heads, d, dtype=BF16), "b": at.random(tokens, heads, d, dtype=BF16),
            "a_lse": torch.where(at.integers(5, tokens, heads) == 0, float("inf"), a_lse),
            "b_lse": at.random(tokens, heads, dtype=F32) * 3,
            "o": at.empty(tokens, heads, d, dtype=BF16), "lse": at.empty(tokens, heads, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(tokens, heads)](
            s["a"], s["a_lse"], s["b"], s["b_lse"], s["o"], s["lse"], D=d,
            BD=1 << (d - 1).bit_length(), num_warps=at.size(1, 4),
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        a_lse = torch.where(s["a_lse"].isinf(), float("-inf"), s["a_lse"])
        both = torch.stack([a_lse, s["b_lse"]])
        share = torch.softmax(both, 0)[..., None]
        return {
            "o": s["a"].float() * share[0] + s["b"].float() * share[1],
            "lse": both.logsumexp(0),
        }

    return make, launch, want, 1e-2


@cases("chunks", [(4, 16384, 8, 128), (1, 1000, 4, 64)], (2, 21, 3, 12))
def mean_blocks(at: Maker, batch: int, t: int, heads: int, d: int) -> Parts:
    bt, bd = at.size((64, 64), (8, 8))

    def make() -> Buffers:
        return {
            "x": at.random(batch, t, heads, d, dtype=BF16),
            "y": at.empty(batch, cdiv(t, bt), heads, d, dtype=BF16),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(d, bd), cdiv(t, bt), batch * heads)](
            s["x"], s["y"], t, H=heads, D=d, BT=bt, BD=bd, num_warps=4
        )

    def want(s: Buffers) -> Results:
        return {"y": torch.stack([part.mean(1) for part in s["x"].float().split(bt, 1)], 1)}

    return make, launch, want, 1e-2


@cases("scores", [(2048, 32, 64), (256, 8, 64)], (40, 3, 16))
def indexer_scores(at: Maker, t: int, heads: int, d: int) -> Parts:
    bm, bn = at.size((128, 128) if t > 256 else (32, 64), (16, 16))

    def make() -> Buffers:
        return {
            "q": at.random(t, heads, d, dtype=BF16), "k": at.random(t, d, dtype=BF16),
            "w": at.random(t, heads, dtype=F32), "s": at.empty(t, t, dtype=F32),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), cdiv(t, bn))](
            s["q"], s["k"], s["w"], s["s"], t, H=heads, D=d, BM=bm, BN=bn,
            num_warps=at.size(8 if t > 256 else 4, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        total = torch.zeros(t, t, device=at.device)
        for h in range(heads):
            scores = s["q"][:, h].float() @ s["k"].float().T
            total += torch.relu(scores) * s["w"][:, h, None]
        seen = torch.ones(t, t, device=at.device).tril() > 0
        return {"s": torch.where(seen, total, float("-inf"))}

    return make, launch, want, 1e-2


@cases("attention", [(1, 16, 2048, 128, 64), (1, 4, 128, 64, 32)], (2, 2, 40, 32, 16))
def attention_two_parts(at: Maker, batch: int, heads: int, t: int, d: int, r: int) -> Parts:
    bm, bn = at.size((128, 64) if t > 256 else (32, 32), (16, 16))

    def make() -> Buffers:
        return {
            "q": at.random(batch, heads, t, d), "qr": at.random(batch, heads, t, r),
            "k": at.random(batch, heads, t, d), "kr": at.random(batch, t, r),
            "v": at.random(batch, heads, t, d), "o": at.empty(batch, heads, t, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), batch * heads)](
            *(s[name] for name in ("q", "qr", "k", "kr", "v", "o")), (d + r) ** -0.5 / math.log(2),
            t, heads, D=d, R=r, BM=bm, BN=bn, num_warps=at.size(8 if t > 256 else 4, 4),
            num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        q, qr, k, kr, v = (s[name].float() for name in ("q", "qr", "k", "kr", "v"))
        scores = q @ k.transpose(2, 3) + qr @ kr[:, None].transpose(2, 3)
        seen = torch.ones(t, t, device=at.device).tril() > 0
        p = torch.softmax(torch.where(seen, scores * (d + r) ** -0.5, float("-inf")), -1)
        return {"o": p @ v}

    return make, launch, want, 1e-2


@cases("attention", [(32, 2048, 128), (4, 256, 64)], (2, 40, 32))
def attention_int8(at: Maker, heads: int, t: int, d: int) -> Parts:
    bm, bn = at.size((128, 64) if t > 256 else (32, 32), (16, 16))

    def make() -> Buffers:
        def scales(block: int) -> torch.Tensor:
            return (torch.rand((heads, cdiv(t, block)), device=at.device) + 0.5) * 0.02

        return {
            "q": at.integers(255, heads, t, d).sub(127).to(I8),
            "k": at.integers(255, heads, t, d).sub(127).to(I8), "v": at.random(heads, t, d),
            "qs": scales(bm) * 0.1, "ks": scales(bn) * 0.5, "o": at.empty(heads, t, d),
        }  # fmt: skip

    def launch(kernel: Any, s: Buffers) -> Any:
        return kernel[(cdiv(t, bm), heads)](
            *(s[name] for name in ("q", "k", "v", "qs", "ks", "o")), t, D=d, BM=bm, BN=bn,
            num_warps=at.size(8 if t > 256 else 4, 4), num_stages=2,
        )  # fmt: skip

    def want(s: Buffers) -> Results:
        out = []
        for i in range(heads):
            q_scale = s["qs"][i].repeat_interleave(bm)[:t, None]
            k_scale = s["ks"][i].repeat_interleave(bn)[None, :t]
            scores = s["q"][i].float() @ s["k"][i].float().T * q_scale * k_scale
            out.append(torch.softmax(scores * math.log(2), 1) @ s["v"][i].float())
        return {"o": torch.stack(out)}

    return make, launch, want, 1e-2
