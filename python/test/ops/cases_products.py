# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of operators around products."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tessera import ops

from .cases_losses import W, targets
from .scheme import Case, Maker


def linear(m: Maker, *shape: int, bias: bool = True) -> tuple[Any, ...]:
    """Input, matrix, targets and bias, of 9 features and 33 classes."""
    found = m.array(*shape, 9, low=-1.0, high=1.0), m.array(33, 9), targets(m, 33, *shape)
    return (*found, m.array(33)) if bias else found


def ours(x: Any, matrix: Any, target: Any, bias: Any = None, **settings: Any) -> Any:
    return ops.linear_cross_entropy(x, matrix, target, linear_bias=bias, chunk_rows=3, **settings)


def theirs(
    x: Any, matrix: Any, target: Any, bias: Any = None, z_loss: float = 0.0, **settings: Any
) -> Any:
    logits = F.linear(x, matrix, bias).reshape(-1, matrix.shape[0])
    loss = F.cross_entropy(logits, target.reshape(-1), **settings)
    kept = target.reshape(-1) != -100
    return loss + z_loss * (logits.logsumexp(1) ** 2 * kept).sum() / kept.sum()


def of_lines(*args: Any, **settings: Any) -> Any:
    return theirs(*args, reduction="none", **settings).reshape(args[2].shape)


CASES = [
    Case("linear cross entropy", ours, linear_args := lambda m: linear(m, 10), theirs,
         libraries=("torch", "numpy", "jax"), tolerance=4),
    Case("linear cross entropy sum", ours, lambda m: linear(m, 2, 4, bias=False), theirs,
         settings={"reduction": "sum", "label_smoothing": 0.1}, tolerance=4),
    Case("linear cross entropy none", lambda *a, **s: ours(*a, reduction="none", **s), lambda m: linear(m, 2, 4),
         of_lines, settings={"label_smoothing": 0.1}, libraries=("torch", "numpy", "jax"), tolerance=4),
    Case("linear cross entropy z", ours, linear_args, theirs, settings={"z_loss": 0.01}, tolerance=6),
    Case("linear cross entropy weights", lambda x, m, t: ours(x, m, t, weight=W.to(x.dtype)),
         lambda m: (m.array(7, 9), m.array(5, 9), targets(m, 5, 7)),
         lambda x, m, t: theirs(x, m, t, weight=W.to(x.dtype)), libraries=("torch",), tolerance=6),
]  # fmt: skip
