# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of torch whose calls are operators of tessera.ops, and optimisers.

import tessera.nn as nn

model = torch.nn.Sequential(nn.LayerNorm(512), torch.nn.Linear(512, 2048), nn.GELU())

A module has the name, the arguments, the parameters and the state dict of torch's, of which it is a
subclass. `replace(model)` changes the classes of a model's modules in place, and returns what it did.
Importing this package imports torch.
"""

from __future__ import annotations

from tessera.nn.modules import (
    CELU,
    ELU,
    GELU,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Embedding,
    GroupNorm,
    Hardswish,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    LayerNorm,
    LeakyReLU,
    LogSoftmax,
    Mish,
    MSELoss,
    NLLLoss,
    ReLU,
    RMSNorm,
    SELU,
    Sigmoid,
    SiLU,
    SmoothL1Loss,
    Softmax,
    Softplus,
    Tanh,
    replace,
)
from tessera.nn.block_states import AdamW8bit, Lion8bit
from tessera.nn.optimizers import SGD, Adafactor, AdamW, Lion

__all__ = [
    "CELU", "ELU", "GELU", "SELU", "SGD", "Adafactor", "AdamW", "AdamW8bit", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d",
    "BatchNorm3d", "CrossEntropyLoss", "Embedding", "GroupNorm", "Hardswish", "HuberLoss", "KLDivLoss",
    "L1Loss", "LayerNorm", "LeakyReLU", "Lion", "Lion8bit", "LogSoftmax", "MSELoss", "Mish", "NLLLoss", "RMSNorm",
    "ReLU", "SiLU", "Sigmoid", "SmoothL1Loss", "Softmax", "Softplus", "Tanh", "replace",
]  # fmt: skip
