# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of torch whose calls are operators of tessera.ops, and optimisers.

import tessera.nn as nn

model = torch.nn.Sequential(nn.LayerNorm(512), torch.nn.Linear(512, 2048), nn.GELU())

A module has the name, the arguments, the parameters and the state dict of torch's, of which it is a
subclass. `replace(model)` changes the classes of a model's modules in place, and returns what it did.
Importing this package imports torch.
"""

from __future__ import annotations

from tessera.nn.activations import (
    GLU,
    Hardshrink,
    Hardsigmoid,
    Hardtanh,
    LogSigmoid,
    PReLU,
    ReLU6,
    Softmin,
    Softshrink,
    Softsign,
    Tanhshrink,
    Threshold,
)
from tessera.nn.block_states import AdamW8bit, Lion8bit
from tessera.nn.dropouts import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
    RReLU,
)
from tessera.nn.modules import (
    CELU,
    ELU,
    GELU,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Embedding,
    EmbeddingBag,
    GroupNorm,
    Hardswish,
    HuberLoss,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
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
    Softmax2d,
    Softplus,
    Tanh,
    replace,
)
from tessera.nn.optimizers import SGD, Adafactor, AdamW, Lion

from tessera.nn.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)

__all__ = [
    "Adafactor", "AdamW", "AdamW8bit", "AlphaDropout", "BCELoss", "BCEWithLogitsLoss",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CELU", "CircularPad1d", "CircularPad2d",
    "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "CrossEntropyLoss",
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "Embedding", "EmbeddingBag",
    "FeatureAlphaDropout",
    "GELU", "GLU", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "HuberLoss", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss", "L1Loss",
    "LayerNorm", "LeakyReLU", "Lion", "Lion8bit", "LogSigmoid", "LogSoftmax", "MSELoss", "Mish",
    "NLLLoss", "PReLU", "RMSNorm", "RReLU", "ReLU", "ReLU6", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "SELU", "SGD", "SiLU", "Sigmoid", "SmoothL1Loss", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold", "ZeroPad1d",
    "ZeroPad2d", "ZeroPad3d", "replace",
]  # fmt: skip
