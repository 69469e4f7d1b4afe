# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of tessera.ops that ops.py has no row for, beside torch's.

    python python/benchmarks/ops_others.py [options of ops.py]

Most are near relations of one in ops.py: they have its kernel with another function. Where torch has no
such operator, a few lines of torch stand for it. `unique` has 16,384 elements at most.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import ops as benchmark
import torch
import torch.nn.functional as F
from ops import Row, Shape, images, norm, one, tokens, two

from tessera import ops


def probabilities(s: Shape) -> tuple[Any, ...]:
    return s.array().sigmoid(), s.array().sigmoid()


def planes(s: Shape) -> tuple[Any, ...]:
    """16 planes in each of as many examples as there are rows by 16."""
    return (s.array(max(1, s.rows // 16), 16, 1, s.columns),)


def volumes(s: Shape) -> tuple[Any, ...]:
    return (planes(s)[0][:, :, None],)


def scattered(s: Shape) -> tuple[Any, ...]:
    return s.array(), s.indices(s.columns, s.rows, s.columns), s.array()


def picked(s: Shape) -> tuple[Any, ...]:
    return s.array(), s.indices(s.rows, s.rows)


def bags(s: Shape) -> tuple[Any, ...]:
    """Bags of 8 of the rows of a table."""
    return s.indices(s.rows, s.rows), s.array(), torch.arange(0, s.rows, 8, device=s.device)


def few_different(s: Shape) -> tuple[Any, ...]:
    return (s.indices(500, min(16384, s.rows * s.columns)),)


def sampled(s: Shape) -> tuple[Any, ...]:
    """Logits, and 64 tokens of each row that were there."""
    (logits,) = tokens(s)
    return logits, s.indices(logits.shape[1], len(logits), 64)


def penalised(x: Any, places: Any) -> Any:
    counts = torch.zeros_like(x).scatter_add(1, places, torch.ones_like(places, dtype=x.dtype))
    lower = torch.where(x > 0, x / 1.2, x * 1.2)
    return torch.where(counts > 0, lower, x) - 0.5 * counts - 0.3 * (counts > 0)


def divergence(x: Any, y: Any) -> Any:
    p, q = y.exp(), x.exp()
    mean = ((p + q) / 2).log()
    return (p * (y - mean) + q * (x - mean)).sum() / (2 * len(x))


def focal(x: Any, y: Any) -> Any:
    p = x.sigmoid()
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    right = p * y + (1 - p) * (1 - y)
    return (0.25 * y + 0.75 * (1 - y)) * loss * (1 - right) ** 2


def sum_and_layer_norm(x: Any, residual: Any, shape: Any, weight: Any, bias: Any) -> Any:
    total = x + residual
    return F.layer_norm(total, shape, weight, bias), total


def encoded(x: Any) -> Any:
    blocks = x.reshape(-1, 256)
    scales = blocks.abs().amax(1)
    shares = blocks / scales[:, None]
    codes = (shares.abs() ** (1 / 3) * 127).round() * shares.sign()
    return codes.to(torch.int8).reshape(x.shape), scales


def codes(s: Shape) -> tuple[Any, ...]:
    return encoded(s.array())


def decoded(codes: Any, scales: Any) -> Any:
    shares = (codes.reshape(-1, 256).float() / 127) ** 3
    return (shares * scales[:, None]).reshape(codes.shape)


def three(s: Shape) -> tuple[Any, ...]:
    return s.array(), s.array(), s.array()


def lion(param: Any, grad: Any, average: Any) -> Any:
    param.mul_(1 - 1e-5).add_((0.9 * average + 0.1 * grad).sign(), alpha=-1e-4)
    average.lerp_(grad, 0.01)
    return param


def our_lion(param: Any, grad: Any, average: Any) -> Any:
    ops.lion_step(param, grad, average, lr=1e-4, weight_decay=0.1)
    return param


def counted(x: Any) -> Any:
    """torch.histogram is for CPUs alone."""
    if x.is_cuda:
        return torch.histc(x, 64, -3, 3), torch.linspace(-3, 3, 65, device=x.device)
    return tuple(torch.histogram(x, 64, range=(-3, 3)))


ROWS = [
    *[
        Row("activations", name, getattr(ops, name), getattr(F, name), one)
        for name in ("relu6", "hardsigmoid", "celu", "tanhshrink", "hardshrink")
    ],
    Row("activations", "threshold", lambda x: ops.threshold(x, 0.1, 2.0), lambda x: F.threshold(x, 0.1, 2.0), one),
    Row("activations", "prelu", ops.prelu, F.prelu, lambda s: (s.array(), s.array(s.columns))),
    Row("gated", "geglu_tanh", ops.geglu_tanh, lambda a, b: F.gelu(a, approximate="tanh") * b, two),
    Row("gated", "reglu", ops.reglu, lambda a, b: F.relu(a) * b, two),
    Row("elementwise", "addcdiv", ops.addcdiv, torch.addcdiv, lambda s: (*two(s), s.array().abs() + 1)),
    Row("dropouts", "dropout2d", ops.dropout2d, F.dropout2d, planes),
    Row("dropouts", "dropout3d", ops.dropout3d, F.dropout3d, volumes),
    Row("dropouts", "feature_alpha_dropout", lambda x: ops.feature_alpha_dropout(x, 0.5, True),
        lambda x: F.feature_alpha_dropout(x, 0.5, True), planes),
    Row("dropouts", "rrelu", lambda x: ops.rrelu(x, training=True), lambda x: F.rrelu(x, training=True), one),
    Row("sampling", "gumbel_softmax", ops.gumbel_softmax, F.gumbel_softmax, one),
    Row("sampling", "apply_penalties", lambda x, places: ops.apply_penalties(x, places, repetition=1.2, frequency=0.5, presence=0.3), penalised,
        sampled, False),
    Row("softmax", "softmin", ops.softmin, lambda x: F.softmin(x, -1), one),
    Row("losses", "binary_cross_entropy", ops.binary_cross_entropy, F.binary_cross_entropy, probabilities),
    Row("losses", "jsd_loss", ops.jsd_loss, divergence, lambda s: tuple(x.log_softmax(-1) for x in two(s))),
    Row("losses", "sigmoid_focal_loss", ops.sigmoid_focal_loss, focal, lambda s: (s.array(), s.array().sigmoid())),
    Row("norms", "add_layer_norm", lambda x, r, n, w, b: ops.add_layer_norm(x, r, n, w, b), sum_and_layer_norm,
        lambda s: (s.array(), *norm(s))),
    *[
        Row("reductions", f"{name} {dim}", lambda x, name=name, dim=dim: getattr(ops, name)(x, dim),
            lambda x, name=name, dim=dim: getattr(torch, name)(x, dim), one, name != "argmin")
        for name in ("mean", "amin", "std", "var_mean", "argmin") for dim in (1, 0)
    ],
    *[
        Row("reductions", f"{name} {dim}", lambda x, name=name, dim=dim: getattr(ops, name)(x, dim),
            lambda x, name=name, dim=dim: getattr(torch, name)(x, dim), lambda s: (s.array() > 0,), False)
        for name in ("any", "all") for dim in (1, 0)
    ],
    Row("reductions", "prod", lambda x: ops.prod(x, 1), lambda x: torch.prod(x, 1),
        lambda s: (s.array() / 100 + 1,)),
    *[
        Row("scans", name, lambda x, name=name: getattr(ops, name)(x, 1),
            lambda x, name=name: getattr(torch, name)(x, 1), lambda s: (s.array() / 100 + 1,))
        for name in ("cumprod", "cummin")
    ],
    Row("sorting", "argsort", ops.argsort, torch.argsort, one, False),
    Row("padding", "stack", lambda x, y: ops.stack([x, y]), lambda x, y: torch.stack([x, y]), two),
    Row("padding", "permute_copy", lambda x: ops.permute_copy(x, (2, 0, 1)),
        lambda x: torch.permute_copy(x, (2, 0, 1)), lambda s: (images(s)[0],)),
    Row("counts", "histogram", lambda x: ops.histogram(x, 64, range=(-3.0, 3.0)), counted, one, False),
    Row("counts", "bucketize", ops.bucketize, torch.bucketize,
        lambda s: (s.array(), torch.linspace(-3, 3, 65, device=s.device, dtype=s.dtype)), False),
    Row("counts", "unique", ops.unique, torch.unique, few_different, False),
    Row("indices", "scatter_add", lambda x, i, y: ops.scatter_add(x, 1, i, y),
        lambda x, i, y: torch.scatter_add(x, 1, i, y), scattered),
    Row("indices", "scatter_reduce", lambda x, i, y: ops.scatter_reduce(x, 1, i, y, "mean"),
        lambda x, i, y: torch.scatter_reduce(x, 1, i, y, "mean"), scattered),
    Row("indices", "index_select", lambda x, i: ops.index_select(x, 0, i),
        lambda x, i: torch.index_select(x, 0, i), picked),
    Row("indices", "embedding_bag", lambda i, w, o: ops.embedding_bag(i, w, o),
        lambda i, w, o: F.embedding_bag(i, w, o), bags),
    Row("indices", "one_hot", lambda i: ops.one_hot(i, 256), lambda i: F.one_hot(i, 256),
        lambda s: (s.indices(256, s.rows),), False),
    Row("indices", "segment_reduce", lambda x, o: ops.segment_reduce(x, "sum", offsets=o),
        lambda x, o: torch.segment_reduce(x, "sum", offsets=o),
        lambda s: (s.array(), torch.arange(0, s.rows + 1, 8, device=s.device))),
    Row("optimisers", "lion_step", our_lion, lion, three, False),
    Row("optimisers", "quantize_blocks", ops.quantize_blocks, encoded, one, False),
    Row("optimisers", "dequantize_blocks", ops.dequantize_blocks, decoded, codes, False),
]  # fmt: skip

benchmark.ROWS[:] = ROWS  # also in the processes of --workers, which run this file first

if __name__ == "__main__":
    benchmark.main()
