# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of torch that tell C++ when it may call operators without Python (python/src/calls)."""

from __future__ import annotations

from typing import Callable

import torch
from torch.autograd import forward_ad

from tessera import _C

PLAIN = (torch.Tensor, torch.nn.Parameter)
"""The classes of tensors that launches read as they are."""

functorch_is_active: Callable[[], bool] = getattr(
    torch._C,
    "_are_functorch_transforms_active",
    lambda: torch._C._functorch.peek_interpreter_stack() is not None,
)
count_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack


def learn_calls() -> bool:
    """Has known calls of plain tensors run without Python while nothing in torch watches them; False
    if this torch has not what it takes, so that Python does them all."""
    try:
        answers = [
            (functorch_is_active, False),
            (count_modes, 0),
            (torch._C._len_torch_function_stack, 0),
        ]
        values = [(vars(forward_ad), "_current_level", -1)]
        if not hasattr(forward_ad, "_current_level"):
            return False
        if hasattr(torch.compiler, "_is_compiling_flag"):
            values.append((vars(torch.compiler), "_is_compiling_flag", False))
        return _C.learn_torch_calls(PLAIN, torch._C.TensorBase.requires_grad, answers, values)
    except AttributeError:
        return False


learn_calls()
