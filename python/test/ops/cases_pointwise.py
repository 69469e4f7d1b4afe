# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of activations, gated activations and elementwise operators."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tessera import ops

from .scheme import INTEGERS, Case, Maker


def away(m: Maker, *shape: int, **bounds: float) -> torch.Tensor:
    """Numbers whose distance to any multiple of 1/2 is 1/16 or more: away from the edges of pieces."""
    values = m.array(*shape, **bounds)
    step = (values * 2).floor() / 2
    return step + 0.0625 + (values - step) * 0.75


def unary(name: str, *numbers: float, **settings: object) -> Case:
    return Case(
        name, getattr(ops, name), lambda m: (away(m, 5, 33), *numbers), getattr(F, name),
        settings=settings, libraries=("torch", "numpy", "jax"),
    )  # fmt: skip


def gated(name: str, reference: object) -> Case:
    return Case(
        name, getattr(ops, name), lambda m: (away(m, 2, 3, 17), away(m, 3, 1)), reference
    )  # type: ignore[arg-type]


CASES = [
    unary("relu"), unary("relu6"), unary("hardtanh"), unary("hardswish"),
    unary("threshold", 0.3, -7.0), unary("leaky_relu"), unary("elu"), unary("elu", 0.5), unary("selu"),
    unary("celu", 1.5), unary("sigmoid"), unary("tanh"), unary("silu"), unary("gelu"),
    unary("gelu", approximate="tanh"), unary("mish"), unary("softplus"), unary("softplus", 2.0, 3.0),
    unary("logsigmoid"), unary("softsign"), unary("tanhshrink"), unary("hardshrink"),
    unary("softshrink"),
    Case("integers", ops.relu, lambda m: (m.array(9, 4),), F.relu, INTEGERS, has_gradient=False),
    # torch's own gradient has 1/6 in float32.
    Case("hardsigmoid", ops.hardsigmoid, lambda m: (away(m, 5, 33),), lambda x: (x + 3).clamp(0, 6) / 6),
    Case("hardtanh bounds", ops.hardtanh, lambda m: (away(m, 33), -0.5, 2.0), F.hardtanh),
    Case("prelu", ops.prelu, lambda m: (away(m, 2, 3, 5), m.array(3)), F.prelu),
    Case("prelu of one", ops.prelu, lambda m: (away(m, 7), m.array(1)), F.prelu),
    Case("glu", ops.glu, lambda m: (m.array(3, 10),), F.glu),
    Case("glu dim", ops.glu, lambda m: (m.array(3, 4, 5), 1), F.glu),
    gated("swiglu", lambda a, b: F.silu(a) * b),
    gated("geglu", lambda a, b: F.gelu(a) * b),
    gated("geglu_tanh", lambda a, b: F.gelu(a, approximate="tanh") * b),
    gated("reglu", lambda a, b: F.relu(a) * b),
    Case("clamp", ops.clamp, lambda m: (away(m, 5, 7), -1.0, 1.5), torch.clamp),
    Case("clamp min", ops.clamp, lambda m: (away(m, 5, 7), 0.25), torch.clamp),
    Case("clamp max", ops.clamp, lambda m: (away(m, 5, 7), None, 0.25), torch.clamp),
    Case("clamp arrays", ops.clamp, lambda m: (m.array(5, 7), m.array(7, high=0.0), m.array(5, 1, low=0.1)),
         torch.clamp),
    Case("clamp integers", ops.clamp, lambda m: (m.array(5, 7), 1, 2), torch.clamp, INTEGERS,
         has_gradient=False),
    Case("where", ops.where, lambda m: (m.bools(4, 1), m.array(4, 6), m.array(6)), torch.where),
    Case("lerp", ops.lerp, lambda m: (m.array(4, 6), m.array(6), m.array(4, 1, low=0.0, high=1.0)),
         torch.lerp),
    Case("addcmul", ops.addcmul, lambda m: (m.array(4, 6), m.array(6), m.array(4, 1)), torch.addcmul,
         settings={"value": 0.5}),
    Case("addcdiv", ops.addcdiv, lambda m: (m.array(4, 6), m.array(6), m.array(4, 1, low=1.0)),
         torch.addcdiv, settings={"value": 0.5}),
    Case("empty", ops.gelu, lambda m: (m.array(0, 3),), F.gelu),
]  # fmt: skip
