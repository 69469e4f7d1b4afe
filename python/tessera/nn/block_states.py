# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimisers whose averages are 8-bit codes, with a scale for each block of 256 elements.

tessera.ops.block_states has the format. A state dict has the codes and scales as they are.
"""

from __future__ import annotations

from typing import Any

import torch

from tessera import ops
from tessera.nn.optimizers import _Optimizer

_BLOCK = 256


class _BlockOptimizer(_Optimizer):
    """An optimiser with averages in 8 bits, but of parameters with few elements."""

    _takes_codes = True

    def _is_in_blocks(self, param: Any, group: dict[str, Any]) -> bool:
        return bool(param.numel() >= group["min_8bit_size"])

    def _add_blocks(self, state: dict[str, Any], name: str, param: Any, dtype: torch.dtype) -> None:
        """Adds codes and scales of zeros to a state."""
        blocks = -(-param.numel() // _BLOCK)
        state[name] = torch.zeros(param.shape, dtype=dtype, device=param.device)
        state[f"{name}_scale"] = torch.zeros(blocks, dtype=torch.float32, device=param.device)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As torch's, which would give codes and scales the parameter's type. Averages of floats, as
        torch.optim.AdamW's, become codes."""
        super().load_state_dict(state_dict)
        params = [each for group in self.param_groups for each in group["params"]]
        numbers = [each for group in state_dict["param_groups"] for each in group["params"]]
        for number, param in zip(numbers, params):
            for key, value in state_dict["state"].get(number, {}).items():
                is_part = torch.is_tensor(value) and value.dtype in (torch.int8, torch.uint8)
                if is_part or key.endswith("_scale"):
                    self.state[param][key] = value.detach().to(param.device, copy=True)
        for group in self.param_groups:
            group.setdefault("min_8bit_size", self.defaults["min_8bit_size"])
            for param in group["params"]:
                if self._is_in_blocks(param, group):
                    self._encode(self.state[param])

    def _encode(self, state: dict[str, Any]) -> None:
        """Makes codes of averages that are floats."""
        for key, is_signed in (("exp_avg", True), ("exp_avg_sq", False)):
            if key in state and state[key].is_floating_point():
                state[key], state[f"{key}_scale"] = ops.quantize_blocks(state[key], is_signed)


class AdamW8bit(_BlockOptimizer):
    """AdamW with averages in 8 bits, by ops.adamw8bit_step: 2 bytes a parameter in place of 8.

    min_8bit_size: parameters with fewer elements have averages as those of AdamW.

    Example:
        import torch
        import tessera.nn

        x = torch.ones(5000, requires_grad=True)
        optimizer = tessera.nn.AdamW8bit([x], lr=0.1, weight_decay=0.0)
        (x * x).sum().backward()
        optimizer.step()
        torch.testing.assert_close(x, torch.full((5000,), 0.9))
        assert optimizer.state[x]["exp_avg"].dtype == torch.int8
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, *, maximize: bool = False,
        min_8bit_size: int = 4096,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize,
            min_8bit_size=min_8bit_size,
        )  # fmt: skip

    def _update(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        settings = self._settings(group)
        state, in_blocks = self.state[param], self._is_in_blocks(param, group)
        if not state:
            state["step"] = torch.tensor(0.0)
            if in_blocks:
                self._add_blocks(state, "exp_avg", param, torch.int8)
                self._add_blocks(state, "exp_avg_sq", param, torch.uint8)
            else:
                state["exp_avg"] = torch.zeros_like(param)
                state["exp_avg_sq"] = torch.zeros_like(param)
        state["step"] += 1
        settings["step"] = int(state["step"])
        if in_blocks:
            parts = ("exp_avg", "exp_avg_scale", "exp_avg_sq", "exp_avg_sq_scale")
            ops.adamw8bit_step(param, grad, *(state[key] for key in parts), **settings)
        else:
            ops.adamw_step(param, grad, state["exp_avg"], state["exp_avg_sq"], **settings)


class Lion8bit(_BlockOptimizer):
    """Lion with its average in 8 bits, by ops.lion8bit_step: 1 byte a parameter.

    min_8bit_size: parameters with fewer elements have an average as that of Lion.

    Example:
        import torch
        import tessera.nn

        x = torch.ones(5000, requires_grad=True)
        optimizer = tessera.nn.Lion8bit([x], lr=0.25)
        (x * x).sum().backward()
        optimizer.step()
        torch.testing.assert_close(x, torch.full((5000,), 0.75))
    """

    def __init__(
        self, params: Any, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0, *, maximize: bool = False, min_8bit_size: int = 4096,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize,
            min_8bit_size=min_8bit_size,
        )  # fmt: skip

    def _update(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        settings = self._settings(group)
        state, in_blocks = self.state[param], self._is_in_blocks(param, group)
        if not state and in_blocks:
            self._add_blocks(state, "exp_avg", param, torch.int8)
        elif not state:
            state["exp_avg"] = torch.zeros_like(param)
        if in_blocks:
            ops.lion8bit_step(param, grad, state["exp_avg"], state["exp_avg_scale"], **settings)
        else:
            ops.lion_step(param, grad, state["exp_avg"], **settings)
