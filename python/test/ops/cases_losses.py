# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of softmax and of losses."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tessera import ops

from .scheme import FLOATS, Case, Maker

EVERYWHERE = ("torch", "numpy", "jax")
REDUCTIONS = ("none", "mean", "sum")


def logits(m: Maker, *shape: int) -> torch.Tensor:
    return m.array(*shape, low=-8.0, high=8.0)


def probabilities(m: Maker, *shape: int) -> torch.Tensor:
    return m.array(*shape, low=0.05, high=0.95)


def of_elements(name: str, reference: Any, make: Any, **settings: Any) -> list[Case]:
    """A case for each way of reducing."""
    return [
        Case(f"{name} {kind}", getattr(ops, name), make, reference,
             settings={"reduction": kind, **settings}, libraries=EVERYWHERE)
        for kind in REDUCTIONS
    ]  # fmt: skip


def focal(x: Any, t: Any, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "none") -> Any:
    p = x.sigmoid()
    missed = 1 - (p * t + (1 - p) * (1 - t))
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none") * missed**gamma
    loss = loss * (alpha * t + (1 - alpha) * (1 - t)) if alpha >= 0 else loss
    return loss if reduction == "none" else getattr(loss, reduction)()


def shannon(q: Any, p: Any, beta: float = 0.5, reduction: str = "none") -> Any:
    m = (beta * p.exp() + (1 - beta) * q.exp()).log()
    loss = beta * p.exp() * (p - m) + (1 - beta) * q.exp() * (q - m)
    return loss if reduction == "none" else getattr(loss, reduction)()


def with_z(x: Any, target: Any, z_loss: float, ignore_index: int = -100, **settings: Any) -> Any:
    loss = F.cross_entropy(x, target, ignore_index=ignore_index, reduction="none", **settings)
    kept = target != ignore_index
    return (loss + z_loss * x.logsumexp(1) ** 2 * kept).sum() / kept.sum()


def targets(m: Maker, classes: int, *shape: int) -> torch.Tensor:
    """Numbers of classes, every third of which is -100."""
    found = m.indices(classes, *shape)
    found.view(-1)[::3] = -100
    return found


def classes(name: str, shape: tuple[int, ...], weighted: bool = False, **settings: Any) -> Case:
    def make(m: Maker) -> tuple[Any, ...]:
        rest = (*shape[: min(1, len(shape) - 1)], *shape[2:])
        count = shape[min(1, len(shape) - 1)]
        has_ignored = rest and "ignore_index" not in settings
        target = targets(m, count, *rest) if has_ignored else m.indices(count, *rest)
        weight = (m.array(count, low=0.5, high=2.0),) if weighted else ()
        return (logits(m, *shape), target, *(each.detach() for each in weight))

    return Case(name, ops.cross_entropy, make, F.cross_entropy, settings=settings, libraries=EVERYWHERE,
                has_gradient=not weighted, tolerance=2)  # fmt: skip


def soft(m: Maker, *shape: int) -> tuple[Any, ...]:
    return logits(m, *shape), m.array(*shape, low=0.0, high=1.0)


CASES = [
    *[
        Case(f"{name} {dim}", getattr(ops, name), lambda m, d=dim: (logits(m, 3, 37, 5), d),
             getattr(F, name), libraries=EVERYWHERE)
        for name in ("softmax", "log_softmax", "softmin") for dim in (-1, 1, 0)
    ],
    Case("softmax rows", ops.softmax, lambda m: (logits(m, 70, 9),), lambda x: x.softmax(-1)),
    Case("softmax long", ops.softmax, lambda m: (logits(m, 2, 5000),), lambda x: x.softmax(-1)),
    Case("softmax dtype", ops.softmax, lambda m: (logits(m, 4, 9), 1), lambda x, d, dtype: x.softmax(d), FLOATS[2:],
         {"dtype": torch.float32}, ("torch",)),
    Case("softmax empty", ops.softmax, lambda m: (logits(m, 0, 9),), lambda x: x.softmax(-1)),
    Case("softmax scalar", ops.softmax, lambda m: (logits(m), 0), F.softmax, libraries=("torch",)),
    classes("cross entropy", (7, 33)),
    classes("cross entropy of one", (33,)),
    classes("cross entropy images", (2, 9, 3, 5), reduction="sum"),
    classes("cross entropy none", (7, 33), reduction="none"),
    classes("cross entropy smoothing", (7, 33), label_smoothing=0.1),
    classes("cross entropy weights", (7, 33), True, label_smoothing=0.1),
    classes("cross entropy ignored", (7, 33), ignore_index=2),
    Case("cross entropy weight", lambda x, t: ops.cross_entropy(x, t, W.to(x.dtype), label_smoothing=0.2),
         lambda m: (logits(m, 7, 5), targets(m, 5, 7)),
         lambda x, t: F.cross_entropy(x, t, W.to(x.dtype), label_smoothing=0.2), libraries=("torch",)),
    Case("cross entropy z", ops.cross_entropy, lambda m: (logits(m, 7, 33), targets(m, 33, 7)), with_z,
         settings={"z_loss": 0.01}, tolerance=3),
    Case("cross entropy soft", ops.cross_entropy, lambda m: soft(m, 7, 33), F.cross_entropy,
         settings={"label_smoothing": 0.1}, libraries=EVERYWHERE, tolerance=3),
    Case("cross entropy soft images", ops.cross_entropy, lambda m: soft(m, 2, 5, 3), F.cross_entropy,
         settings={"reduction": "none"}, tolerance=3),
    Case("cross entropy empty", ops.cross_entropy, lambda m: (logits(m, 0, 5), targets(m, 5, 0)),
         F.cross_entropy, settings={"reduction": "sum"}),
    Case("nll", ops.nll_loss, lambda m: (logits(m, 7, 33), targets(m, 33, 7)), F.nll_loss,
         libraries=EVERYWHERE),
    Case("nll images", ops.nll_loss, lambda m: (logits(m, 2, 5, 3), targets(m, 5, 2, 3)), F.nll_loss,
         settings={"reduction": "none"}),
    Case("nll weight", lambda x, t: ops.nll_loss(x, t, W.to(x.dtype)),
         lambda m: (logits(m, 7, 5), targets(m, 5, 7)), lambda x, t: F.nll_loss(x, t, W.to(x.dtype)),
         libraries=("torch",)),
    Case("nll of one", ops.nll_loss, lambda m: (logits(m, 9), m.indices(9)), F.nll_loss),
    *of_elements("mse_loss", F.mse_loss, lambda m: (m.array(5, 33), m.array(5, 33))),
    *of_elements("l1_loss", F.l1_loss, lambda m: (m.array(5, 33), m.array(5, 33))),
    *of_elements("smooth_l1_loss", F.smooth_l1_loss, lambda m: (m.array(5, 33), m.array(5, 33)), beta=0.5),
    *of_elements("huber_loss", F.huber_loss, lambda m: (m.array(5, 33), m.array(5, 33)), delta=0.5),
    Case("huber weight", lambda x, y, **s: ops.huber_loss(x, y, weight=2.0, **s), lambda m: (m.array(9), m.array(9)),
         lambda x, y, **s: 2 * F.huber_loss(x, y, **s), settings={"reduction": "sum"},
         libraries=("torch",)),
    *of_elements("binary_cross_entropy", F.binary_cross_entropy,
                 lambda m: (probabilities(m, 5, 33), probabilities(m, 5, 33))),
    *of_elements("binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits,
                 lambda m: (logits(m, 5, 33), probabilities(m, 5, 33))),
    Case("logits weights", lambda x, t, w, p: ops.binary_cross_entropy_with_logits(x, t, w, pos_weight=p),
         lambda m: (logits(m, 5, 7), probabilities(m, 5, 7), probabilities(m, 7), probabilities(m, 7)),
         lambda x, t, w, p: -(w * (p * t * F.logsigmoid(x) + (1 - t) * F.logsigmoid(-x))).mean()),
    *of_elements("kl_div", F.kl_div, lambda m: (logits(m, 5, 33), probabilities(m, 5, 33))),
    Case("kl_div batchmean", ops.kl_div, lambda m: (m.array(5, 33), m.array(5, 33)), F.kl_div,
         settings={"reduction": "batchmean", "log_target": True}),
    *of_elements("sigmoid_focal_loss", focal, lambda m: (m.array(5, 33), probabilities(m, 5, 33))),
    *of_elements("jsd_loss", shannon, lambda m: (m.array(5, 33), m.array(5, 33)), beta=0.3),
]  # fmt: skip

W = torch.tensor([0.5, 1.0, 2.0, 0.0, 1.5])
