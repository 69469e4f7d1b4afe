# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of norms and of rotary embeddings."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tessera import ops

from .scheme import Case, Maker


def rows(m: Maker, *shape: int, wide: int = 1) -> tuple[Any, ...]:
    """An array, a shape, weights and biases of the last `wide` dimensions."""
    last = shape[len(shape) - wide :]
    return m.array(*shape), last, m.array(*last), m.array(*last)


def channels(m: Maker, *shape: int) -> tuple[Any, ...]:
    return m.array(*shape), m.array(shape[1]), m.array(shape[1])


def rms(x: Any, shape: Any, weight: Any = None, eps: float = 1e-5) -> Any:
    return F.rms_norm(x, shape, weight, eps)


def added(norm: Any) -> Any:
    return lambda x, r, *rest, **settings: (norm(x + r, *rest, **settings), x + r)


def tame(m: Maker, *shape: int) -> Any:
    """Numbers whose sums are exact in 16 bits: the norm is of the rounded sum."""
    values = m.indices(17, *shape).double() / 8 - 1
    return values.to(m.dtype)


def rotated(x: Any, cos: Any, sin: Any, interleaved: bool = False, seq_dim: int = -2) -> Any:
    pairs = cos.shape[-1]
    moved = x.movedim(seq_dim, -2)
    if cos.ndim == 3:
        cos, sin = (e.reshape(e.shape[0], *(1,) * (x.ndim - 3), *e.shape[1:]) for e in (cos, sin))
    head, tail = moved[..., : 2 * pairs], moved[..., 2 * pairs :]
    if interleaved:
        a, b = head[..., ::2], head[..., 1::2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    else:
        a, b = head[..., :pairs], head[..., pairs:]
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    return torch.cat([turned, tail], -1).movedim(-2, seq_dim)


def rotary(
    name: str, shape: tuple[int, ...], pairs: int, batched: bool = False, **settings: Any
) -> Case:
    def make(m: Maker) -> tuple[Any, ...]:
        dim = settings.get("seq_dim", -2)
        angle_shape = ((shape[0],) if batched else ()) + (shape[dim], pairs)
        return m.array(*shape), m.array(*angle_shape), m.array(*angle_shape)

    def op(x: Any, cos: Any, sin: Any, **named: Any) -> Any:
        if isinstance(cos, torch.Tensor):
            cos, sin = cos.detach(), sin.detach()
        return ops.apply_rotary_emb(x, cos, sin, **named)

    def reference(x: Any, cos: Any, sin: Any, **named: Any) -> Any:
        return rotated(x, cos.detach(), sin.detach(), **named)

    return Case(name, op, make, reference, settings=settings, libraries=("torch", "numpy", "jax"))


EVERYWHERE = ("torch", "numpy", "jax")

CASES = [
    Case("layer norm", ops.layer_norm, lambda m: rows(m, 5, 33), F.layer_norm, libraries=EVERYWHERE),
    Case("layer norm of two", ops.layer_norm, lambda m: rows(m, 2, 3, 5, 7, wide=2), F.layer_norm),
    Case("layer norm plain", ops.layer_norm, lambda m: (m.array(70, 9), (9,)), F.layer_norm),
    Case("layer norm weight", ops.layer_norm, lambda m: rows(m, 300, 9)[:3], F.layer_norm, tolerance=4),
    Case("layer norm long", ops.layer_norm, lambda m: rows(m, 3, 5000), F.layer_norm),
    Case("layer norm empty", ops.layer_norm, lambda m: rows(m, 0, 9), F.layer_norm),
    Case("layer norm far", ops.layer_norm, lambda m: (m.array(5, 33) + 64, (33,)), F.layer_norm,
         (torch.float32, torch.float64), tolerance=8),
    Case("rms norm", ops.rms_norm, lambda m: rows(m, 5, 33)[:3], rms, settings={"eps": 1e-5},
         libraries=EVERYWHERE),
    Case("rms norm plain", ops.rms_norm, lambda m: (m.array(2, 3, 9), 9),
         lambda x, n, eps: rms(x, (n,), None, eps), settings={"eps": 1e-3}),
    Case("add layer norm", ops.add_layer_norm,
         lambda m: (tame(m, 5, 33), tame(m, 5, 33), (33,), m.array(33), m.array(33)),
         added(F.layer_norm), libraries=EVERYWHERE),
    Case("add rms norm", ops.add_rms_norm, lambda m: (tame(m, 5, 33), tame(m, 5, 33), (33,), m.array(33)),
         added(rms), settings={"eps": 1e-5}, libraries=EVERYWHERE),
    Case("group norm", lambda x, w, b: ops.group_norm(x, 3, w, b), lambda m: channels(m, 2, 6, 5),
         lambda x, w, b: F.group_norm(x, 3, w, b), libraries=EVERYWHERE, tolerance=2),
    Case("group norm cached", lambda x, w, b: ops.group_norm(x, 3, w, b), lambda m: channels(m, 2, 6, 70),
         lambda x, w, b: F.group_norm(x, 3, w, b), tolerance=2),
    Case("instance norm cached", ops.instance_norm, lambda m: (m.array(2, 3, 7, 11),), F.instance_norm,
         tolerance=2),
    Case("group norm plain", ops.group_norm, lambda m: (m.array(4, 6), 2), F.group_norm),
    Case("instance norm", lambda x, w, b: ops.instance_norm(x, weight=w, bias=b),
         lambda m: channels(m, 2, 3, 5, 3), lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
         libraries=EVERYWHERE, tolerance=2),
    Case("instance norm plain", ops.instance_norm, lambda m: (m.array(2, 3, 9),), F.instance_norm),
    Case("batch norm", lambda x, w, b: ops.batch_norm(x, None, None, w, b, True),
         lambda m: channels(m, 4, 3, 2, 8), lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
         libraries=EVERYWHERE, tolerance=2),
    Case("batch norm of rows", lambda x: ops.batch_norm(x, None, None, training=True),
         lambda m: (m.array(9, 4),), lambda x: F.batch_norm(x, None, None, training=True)),
    Case("batch norm in use",
         lambda x, mean, v, w, b: ops.batch_norm(x, *(getattr(e, "detach", lambda: e)() for e in (mean, v)), w, b),
         lambda m: (*channels(m, 4, 3, 5)[:1], m.array(3), m.array(3, low=0.5), m.array(3), m.array(3)),
         lambda x, mean, v, w, b: F.batch_norm(x, mean.detach(), v.detach(), w, b), libraries=EVERYWHERE),
    rotary("rotary", (2, 3, 5, 12), 6),
    rotary("rotary interleaved", (2, 3, 5, 12), 6, interleaved=True),
    rotary("rotary part", (3, 5, 12), 4),
    rotary("rotary heads inside", (2, 5, 3, 12), 6, seq_dim=1),
    rotary("rotary batched", (2, 3, 5, 12), 6, True, interleaved=True),
    rotary("rotary batched heads inside", (2, 5, 3, 16), 5, True, seq_dim=1),
    rotary("rotary empty", (0, 5, 12), 6),
]  # fmt: skip
