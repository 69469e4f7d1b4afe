# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators in the tile language: torch's names, on arrays of NumPy, torch, CuPy and JAX.

import numpy as np
from tessera import ops

y = ops.layer_norm(ops.gelu(x), (512,), weight, bias)

Functions have the names and the order of arguments of torch and torch.nn.functional. docs/Ops.md lists
all of them, with formulas, types, and options of torch's that are missing.

Layers, from below:

- `ops.kernels` has the kernels, written as a user of `tl` would. A kernel's parameters are its inputs,
  its outputs, then numbers. `launching.launch` makes the outputs and launches, for each library alike.
- `tuning` has the extents of tiles, by machine and shape. `tuner` makes its tables.
- A family's module (`activations`, `losses`, ...) has the functions. They check arguments, and choose
  a kernel. Where a scalar function is enough, the operator is one of `tessera.pointwise` or
  `tessera.reduction`, which has the kernel, the launch and the derivative.
- `differentiation.Operator` joins a forward and a backward pass. `autograd` has it for torch.
- `recorded` has known calls run without Python: all functions have it but those that write to arguments,
  read a number before they launch, or choose tokens.
- `tessera.nn` has the modules.

Results are new arrays. 16-bit floats are computed in float32 and rounded once. An argument that an
operator does not take is an ArgumentError before any launch: E093, or E094 for a derivative that
there is none of. No function falls back silently.

A new operator needs a function whose docstring has the formula, `Shapes`, `Types`, `Errors`, `Missing`
and an example. It needs a case in python/test/ops with a reference in float64, and a row in
python/benchmarks/ops.py or ops_others.py. The table of docs/Ops.md is made of the docstrings.
"""

from __future__ import annotations

from tessera.ops.activations import (
    celu,
    elu,
    geglu,
    geglu_tanh,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    reglu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    swiglu,
    tanh,
    tanhshrink,
    threshold,
)
from tessera.ops.adafactor import adafactor_step
from tessera.ops.bags import embedding_bag
from tessera.ops.block_states import (
    adamw8bit_step,
    dequantize_blocks,
    lion8bit_step,
    quantize_blocks,
)
from tessera.ops.dropouts import (
    alpha_dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from tessera.ops.elementwise import addcdiv, addcmul, clamp, lerp, where
from tessera.ops.enabling import enable
from tessera.ops.histograms import (
    bincount,
    bucketize,
    histc,
    histogram,
    searchsorted,
    unique,
    unique_consecutive,
)
from tessera.ops.indexing import (
    embedding,
    gather,
    index_add,
    index_select,
    one_hot,
    scatter_add,
    scatter_reduce,
    segment_reduce,
)
from tessera.ops.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    jsd_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    sigmoid_focal_loss,
    smooth_l1_loss,
)
from tessera.ops.normalizations import (
    add_layer_norm,
    add_rms_norm,
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from tessera.ops.optimizers import adamw_step, lion_step, sgd_step
from tessera.ops.padding import cat, pad, permute_copy, roll, stack, transpose_copy
from tessera.ops.products import linear_cross_entropy
from tessera.ops.random import dropout, gumbel_softmax, rrelu
from tessera.ops.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    logsumexp,
    mean,
    prod,
    std,
    sum,
    var,
    var_mean,
    vector_norm,
)
from tessera.ops.rotations import apply_rotary_emb
from tessera.ops.sampling import apply_penalties, filter_logits, multinomial, sample
from tessera.ops.scans import cummax, cummin, cumprod, cumsum, logcumsumexp
from tessera.ops.softmaxes import log_softmax, softmax, softmin
from tessera.ops.sorting import argsort, sort, topk
from tessera.ops.sparse import sddmm, spmm

FAMILIES = {
    "Activations": (
        relu, relu6, hardtanh, hardsigmoid, hardswish, threshold, leaky_relu, prelu, elu, selu, celu,
        sigmoid, tanh, silu, gelu, mish, softplus, logsigmoid, softsign, tanhshrink, hardshrink,
        softshrink,
    ),
    "Gated activations": (glu, swiglu, geglu, geglu_tanh, reglu),
    "Elementwise": (clamp, where, lerp, addcmul, addcdiv),
    "Random": (
        dropout, dropout1d, dropout2d, dropout3d, alpha_dropout, feature_alpha_dropout, rrelu,
        gumbel_softmax,
    ),
    "Sampling": (apply_penalties, filter_logits, sample, multinomial),
    "Softmax": (softmax, log_softmax, softmin),
    "Losses": (
        cross_entropy, nll_loss, binary_cross_entropy, binary_cross_entropy_with_logits, kl_div, jsd_loss,
        sigmoid_focal_loss, mse_loss, l1_loss, smooth_l1_loss, huber_loss, linear_cross_entropy,
    ),
    "Normalization": (
        layer_norm, rms_norm, add_layer_norm, add_rms_norm, group_norm, instance_norm, batch_norm,
    ),
    "Rotary embeddings": (apply_rotary_emb,),
    "Reductions": (
        sum, mean, prod, amax, amin, any, all, var, std, var_mean, vector_norm, logsumexp, argmax, argmin,
    ),
    "Scans and sorting": (
        cumsum, cumprod, logcumsumexp, cummax, cummin, sort, argsort, topk,
    ),
    "Padding and joining": (pad, roll, cat, stack, permute_copy, transpose_copy),
    "Counts and places": (bincount, histc, histogram, searchsorted, bucketize, unique_consecutive, unique),
    "Indices": (
        gather, scatter_add, scatter_reduce, index_select, index_add, embedding, embedding_bag, one_hot,
        segment_reduce,
    ),
    "Sparse matrices": (spmm, sddmm),
    "Optimisers": (
        sgd_step, adamw_step, lion_step, adafactor_step, adamw8bit_step, lion8bit_step, quantize_blocks,
        dequantize_blocks,
    ),
}  # fmt: skip
"""The operators by family, in the order of docs/Ops.md."""

__all__ = [
    "FAMILIES", "adafactor_step", "adamw8bit_step", "adamw_step", "add_layer_norm",
    "add_rms_norm", "addcdiv", "addcmul", "all", "alpha_dropout", "amax", "amin", "any",
    "apply_penalties", "apply_rotary_emb", "argmax", "argmin", "argsort", "batch_norm",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bincount", "bucketize", "cat",
    "celu", "clamp", "cross_entropy", "cummax", "cummin", "cumprod", "cumsum",
    "dequantize_blocks", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding",
    "embedding_bag", "enable", "feature_alpha_dropout", "filter_logits", "gather", "geglu",
    "geglu_tanh", "gelu", "glu", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "histc", "histogram", "huber_loss", "index_add", "index_select",
    "instance_norm", "jsd_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "lerp",
    "linear_cross_entropy", "lion8bit_step", "lion_step", "log_softmax", "logcumsumexp",
    "logsigmoid", "logsumexp", "mean", "mish", "mse_loss", "multinomial", "nll_loss", "one_hot",
    "pad", "permute_copy", "prelu", "prod", "quantize_blocks", "reglu", "relu", "relu6", "rms_norm", "roll",
    "rrelu", "sample", "scatter_add", "scatter_reduce", "sddmm", "searchsorted",
    "segment_reduce", "selu", "sgd_step", "sigmoid", "sigmoid_focal_loss", "silu",
    "smooth_l1_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "sort",
    "spmm", "stack", "std", "sum", "swiglu", "tanh", "tanhshrink", "threshold", "topk", "transpose_copy",
    "unique", "unique_consecutive", "var", "var_mean", "vector_norm", "where",
]  # fmt: skip
