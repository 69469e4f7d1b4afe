# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`model = tessera.torch.optimize(model)`."""

from __future__ import annotations

from typing import Any, Optional

from tessera.torch.activation import activate


def optimize(model: Any, *, dynamic: Optional[bool] = None) -> Any:
    """A model, or a function of tensors, compiled by Tessera: `activate` and torch.compile in one.

    The settings are torch.compile's own; neither CUDA graphs nor tuning are chosen yet.
    Shapes that change are found out after the second one; `dynamic=True` takes all for changing,
    False none.

    Raises SettingError (E062, E075, E077) where torch does not fit.
    """
    activate()
    import torch

    return torch.compile(model, backend="tessera", dynamic=dynamic)
