# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Subclasses of torch's modules with `forward` by tessera.ops.

Each refuses an option of torch's that its operator does not take, when it is called (E093). `replace`
leaves such a module as it is.
"""

from __future__ import annotations

from typing import Any

import torch

from tessera import ops
from tessera.nn import activations, padding
from tessera.ops.arguments import check
from tessera.wording import shown


class ReLU(torch.nn.ReLU):  # type: ignore[misc]
    """torch.nn.ReLU by ops.relu. `inplace` makes a new tensor all the same, as in all modules here."""

    def forward(self, input: Any) -> Any:
        return ops.relu(input)


class SiLU(torch.nn.SiLU):  # type: ignore[misc]
    """torch.nn.SiLU by ops.silu."""

    def forward(self, input: Any) -> Any:
        return ops.silu(input)


class GELU(torch.nn.GELU):  # type: ignore[misc]
    """torch.nn.GELU by ops.gelu."""

    def forward(self, input: Any) -> Any:
        return ops.gelu(input, self.approximate)


class ELU(torch.nn.ELU):  # type: ignore[misc]
    """torch.nn.ELU by ops.elu."""

    def forward(self, input: Any) -> Any:
        return ops.elu(input, float(self.alpha))


class SELU(torch.nn.SELU):  # type: ignore[misc]
    """torch.nn.SELU by ops.selu."""

    def forward(self, input: Any) -> Any:
        return ops.selu(input)


class CELU(torch.nn.CELU):  # type: ignore[misc]
    """torch.nn.CELU by ops.celu."""

    def forward(self, input: Any) -> Any:
        return ops.celu(input, float(self.alpha))


class LeakyReLU(torch.nn.LeakyReLU):  # type: ignore[misc]
    """torch.nn.LeakyReLU by ops.leaky_relu."""

    def forward(self, input: Any) -> Any:
        return ops.leaky_relu(input, float(self.negative_slope))


class Sigmoid(torch.nn.Sigmoid):  # type: ignore[misc]
    """torch.nn.Sigmoid by ops.sigmoid."""

    def forward(self, input: Any) -> Any:
        return ops.sigmoid(input)


class Tanh(torch.nn.Tanh):  # type: ignore[misc]
    """torch.nn.Tanh by ops.tanh."""

    def forward(self, input: Any) -> Any:
        return ops.tanh(input)


class Mish(torch.nn.Mish):  # type: ignore[misc]
    """torch.nn.Mish by ops.mish."""

    def forward(self, input: Any) -> Any:
        return ops.mish(input)


class Hardswish(torch.nn.Hardswish):  # type: ignore[misc]
    """torch.nn.Hardswish by ops.hardswish."""

    def forward(self, input: Any) -> Any:
        return ops.hardswish(input)


class Softplus(torch.nn.Softplus):  # type: ignore[misc]
    """torch.nn.Softplus by ops.softplus."""

    def forward(self, input: Any) -> Any:
        return ops.softplus(input, float(self.beta), float(self.threshold))


class Softmax(torch.nn.Softmax):  # type: ignore[misc]
    """torch.nn.Softmax by ops.softmax. `dim` has to be given."""

    def forward(self, input: Any) -> Any:
        return ops.softmax(input, self.dim)


class LogSoftmax(torch.nn.LogSoftmax):  # type: ignore[misc]
    """torch.nn.LogSoftmax by ops.log_softmax. `dim` has to be given."""

    def forward(self, input: Any) -> Any:
        return ops.log_softmax(input, self.dim)


class Softmax2d(torch.nn.Softmax2d):  # type: ignore[misc]
    """torch.nn.Softmax2d by ops.softmax, of channels."""

    def forward(self, input: Any) -> Any:
        rank = input.dim()
        check(
            rank in (3, 4), f"`Softmax2d` got {rank} dimensions", "pass (N, C, H, W) or (C, H, W)"
        )
        return ops.softmax(input, -3)


class LayerNorm(torch.nn.LayerNorm):  # type: ignore[misc]
    """torch.nn.LayerNorm by ops.layer_norm."""

    def forward(self, input: Any) -> Any:
        return ops.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(torch.nn.RMSNorm):  # type: ignore[misc]
    """torch.nn.RMSNorm by ops.rms_norm."""

    def forward(self, x: Any) -> Any:
        return ops.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(torch.nn.GroupNorm):  # type: ignore[misc]
    """torch.nn.GroupNorm by ops.group_norm."""

    def forward(self, input: Any) -> Any:
        return ops.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _BatchNorm:
    """The call of the three batch norms."""

    def forward(self: Any, input: Any) -> Any:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        is_training = self.training or (self.running_mean is None and self.running_var is None)
        tracked = not self.training or self.track_running_stats
        mean, variance = (self.running_mean, self.running_var) if tracked else (None, None)
        return ops.batch_norm(
            input, mean, variance, self.weight, self.bias, is_training, momentum, self.eps
        )


class BatchNorm1d(_BatchNorm, torch.nn.BatchNorm1d):  # type: ignore[misc]
    """torch.nn.BatchNorm1d by ops.batch_norm."""


class BatchNorm2d(_BatchNorm, torch.nn.BatchNorm2d):  # type: ignore[misc]
    """torch.nn.BatchNorm2d by ops.batch_norm."""


class BatchNorm3d(_BatchNorm, torch.nn.BatchNorm3d):  # type: ignore[misc]
    """torch.nn.BatchNorm3d by ops.batch_norm."""


class _InstanceNorm:
    """The call of the three instance norms, behind torch's checks."""

    def _apply_instance_norm(self: Any, input: Any) -> Any:
        uses_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        return ops.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, uses_input, momentum,
            self.eps,
        )  # fmt: skip


class InstanceNorm1d(_InstanceNorm, torch.nn.InstanceNorm1d):  # type: ignore[misc]
    """torch.nn.InstanceNorm1d by ops.instance_norm."""


class InstanceNorm2d(_InstanceNorm, torch.nn.InstanceNorm2d):  # type: ignore[misc]
    """torch.nn.InstanceNorm2d by ops.instance_norm."""


class InstanceNorm3d(_InstanceNorm, torch.nn.InstanceNorm3d):  # type: ignore[misc]
    """torch.nn.InstanceNorm3d by ops.instance_norm."""


class Embedding(torch.nn.Embedding):  # type: ignore[misc]
    """torch.nn.Embedding by ops.embedding. `max_norm`, `scale_grad_by_freq` and `sparse` are refused."""

    def forward(self, input: Any) -> Any:
        _check_options(self)
        return ops.embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(torch.nn.EmbeddingBag):  # type: ignore[misc]
    """torch.nn.EmbeddingBag by ops.embedding_bag. `max_norm`, `scale_grad_by_freq` and `sparse` are refused."""

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        _check_options(self)
        return ops.embedding_bag(
            input, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip


class CrossEntropyLoss(torch.nn.CrossEntropyLoss):  # type: ignore[misc]
    """torch.nn.CrossEntropyLoss by ops.cross_entropy."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.cross_entropy(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class NLLLoss(torch.nn.NLLLoss):  # type: ignore[misc]
    """torch.nn.NLLLoss by ops.nll_loss."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class BCELoss(torch.nn.BCELoss):  # type: ignore[misc]
    """torch.nn.BCELoss by ops.binary_cross_entropy."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(torch.nn.BCEWithLogitsLoss):  # type: ignore[misc]
    """torch.nn.BCEWithLogitsLoss by ops.binary_cross_entropy_with_logits."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class MSELoss(torch.nn.MSELoss):  # type: ignore[misc]
    """torch.nn.MSELoss by ops.mse_loss."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.mse_loss(input, target, reduction=self.reduction)


class L1Loss(torch.nn.L1Loss):  # type: ignore[misc]
    """torch.nn.L1Loss by ops.l1_loss."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(torch.nn.SmoothL1Loss):  # type: ignore[misc]
    """torch.nn.SmoothL1Loss by ops.smooth_l1_loss."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.smooth_l1_loss(input, target, reduction=self.reduction, beta=float(self.beta))


class HuberLoss(torch.nn.HuberLoss):  # type: ignore[misc]
    """torch.nn.HuberLoss by ops.huber_loss."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.huber_loss(input, target, self.reduction, float(self.delta))


class KLDivLoss(torch.nn.KLDivLoss):  # type: ignore[misc]
    """torch.nn.KLDivLoss by ops.kl_div."""

    def forward(self, input: Any, target: Any) -> Any:
        return ops.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


_OF_TABLES = {"max_norm": None, "scale_grad_by_freq": False, "sparse": False}
_USUAL: dict[str, dict[str, Any]] = {"Embedding": _OF_TABLES, "EmbeddingBag": _OF_TABLES}
"""For options that an operator does not take, the value that is none."""


def _options_of(module: Any) -> list[str]:
    """The options of a module that its operator does not take."""
    usual = _USUAL.get(type(module).__name__, {})
    found = [name for name, value in usual.items() if getattr(module, name) != value]
    if "dim" in vars(module) and module.dim is None:
        found.append("dim")
    return found


def _check_options(module: Any) -> None:
    name, found = type(module).__name__, _options_of(module)
    values = ", ".join(f"{each}={shown(getattr(module, each))}" for each in found)
    check(not found, f"`{name}` has {values}", f"use torch.nn.{name}")


def replace(model: Any) -> dict[str, str]:
    """Makes the modules of a model, which torch's are, those of this package, in place.

    Parameters, buffers and hooks stay. Only modules whose class is exactly torch's are changed, and whose
    options all are taken. Dropouts and RReLU are not, since their elements would be others. Returns the
    name of each module that was changed, and its class.

    Example:
        import torch
        import tessera.nn

        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
        assert tessera.nn.replace(model) == {"1": "LayerNorm"}
        assert isinstance(model[1], tessera.nn.LayerNorm)
    """
    known = {**vars(activations), **vars(padding), **globals()}
    found = {}
    for name, module in model.named_modules():
        cls = known.get(type(module).__name__)
        if not isinstance(cls, type) or _options_of(module):
            continue
        if type(module) is getattr(torch.nn, cls.__name__, None):
            module.__class__ = cls
            found[name] = cls.__name__
    return found
