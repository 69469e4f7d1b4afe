# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimisers with torch's interface, whose steps are those of tessera.ops.

States have the names that torch's optimisers give them. Steps have no `closure` of several gradients
beyond calling it once.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch

from tessera import ops
from tessera.errors import ArgumentError
from tessera.ops.arguments import check
from tessera.wording import shown


def _is_from(value: Any, least: float) -> bool:
    return isinstance(value, (int, float, torch.Tensor)) and bool(value >= least)


_NO_SETTINGS = frozenset(("differentiable", "min_8bit_size"))
"""Keys of `defaults` that no step takes. torch adds the first when it loads a state."""


class _Optimizer(torch.optim.Optimizer):  # type: ignore[misc]
    """The steps of all parameters that have a gradient."""

    _takes_codes = False

    def __init__(self, params: Any, **defaults: Any) -> None:
        for name in ("lr", "momentum", "weight_decay", "eps"):
            value = defaults.get(name, 0.0)
            self._check_setting(name, value, isinstance(value, tuple) or _is_from(value, 0.0))
        betas = defaults.get("betas", ())
        is_right = all(_is_from(each, 0.0) and each < 1 for each in betas)
        self._check_setting("betas", betas, is_right, "two numbers from 0 to less than 1")
        if defaults.get("nesterov"):
            is_right = defaults["momentum"] > 0 and not defaults["dampening"]
            self._check_setting("nesterov", True, is_right, "a momentum, and no dampening")
        super().__init__(params, defaults)

    def _check_setting(
        self, name: str, value: Any, is_right: bool, wanted: str = "a number from 0 on"
    ) -> None:
        check(is_right, f"`{type(self).__name__}` got {name}={shown(value)}", f"pass {wanted}")

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """torch's own states, too. Options that no step takes are refused."""
        for group in state_dict["param_groups"]:
            for name in ("amsgrad", "differentiable"):
                self._check_setting(name, True, not group.get(name), f"a state without {name}")
            if group.get("weight_decay"):
                is_right = group.get("decoupled_weight_decay", True)
                self._check_setting("decoupled_weight_decay", False, is_right, "a state of AdamW")
        parts = [key for state in state_dict["state"].values() for key in state]
        has_codes = any(key.endswith("_scale") for key in parts)
        name = type(self).__name__
        check(
            self._takes_codes or not has_codes, f"`{name}` got a state with averages in 8 bits",
            f"load it with {name}8bit, or pass what ops.dequantize_blocks makes of them",
        )  # fmt: skip
        super().load_state_dict(state_dict)

    def _settings(self, group: dict[str, Any]) -> dict[str, Any]:
        """The settings of a group that a step takes."""
        known = self.defaults.keys() - _NO_SETTINGS
        return {key: value for key, value in group.items() if key in known}

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One step. `closure`, if given, computes the loss and the gradients before."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        # As torch.no_grad() does, in a fifth of its time.
        was_enabled = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        try:
            for group in self.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is not None:
                        self._update(param, grad, group)
        finally:
            torch._C._set_grad_enabled(was_enabled)
        return loss

    def _update(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        raise NotImplementedError


class SGD(_Optimizer):
    """torch.optim.SGD by ops.sgd_step. `foreach`, `fused`, `differentiable` and `capturable` are not
    there, here and below.

    Example:
        import torch
        import tessera.nn

        x = torch.ones(3, requires_grad=True)
        optimizer = tessera.nn.SGD([x], lr=0.25)
        (x * x).sum().backward()
        optimizer.step()
        assert x.tolist() == [0.5, 0.5, 0.5]
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
            nesterov=nesterov, maximize=maximize,
        )  # fmt: skip

    def _update(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        buffer, is_first, momentum = None, False, group["momentum"]
        if momentum:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer, is_first = torch.zeros_like(param), True
                state["momentum_buffer"] = buffer
        ops.sgd_step(
            param, grad, buffer, lr=group["lr"], momentum=momentum, dampening=group["dampening"],
            weight_decay=group["weight_decay"], nesterov=group["nesterov"], maximize=group["maximize"],
            is_first=is_first,
        )  # fmt: skip


class AdamW(_Optimizer):
    """torch.optim.AdamW by ops.adamw_step, without `amsgrad`.

    Example:
        import torch
        import tessera.nn

        x = torch.ones(3, requires_grad=True)
        optimizer = tessera.nn.AdamW([x], lr=0.1, weight_decay=0.0)
        (x * x).sum().backward()
        optimizer.step()
        torch.testing.assert_close(x, torch.full((3,), 0.9))
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize
        )

    def _update(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        settings = self._settings(group)
        state = self.state[param]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(param), torch.zeros_like(param)
        state["step"] += 1
        ops.adamw_step(
            param, grad, state["exp_avg"], state["exp_avg_sq"], step=int(state["step"]),
            **settings,
        )  # fmt: skip


class Lion(_Optimizer):
    """Lion by ops.lion_step, with one state.

    Example:
        import torch
        import tessera.nn

        x = torch.ones(3, requires_grad=True)
        optimizer = tessera.nn.Lion([x], lr=0.25)
        (x * x).sum().backward()
        optimizer.step()
        assert x.tolist() == [0.75, 0.75, 0.75]
    """

    def __init__(
        self, params: Any, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize)

    def _update(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        settings = self._settings(group)
        state = self.state[param]
        if not state:
            state["exp_avg"] = torch.zeros_like(param)
        ops.lion_step(param, grad, state["exp_avg"], **settings)


class Adafactor(_Optimizer):
    """torch.optim.Adafactor by ops.adafactor_step, without `foreach`.

    Example:
        import torch
        import tessera.nn

        x = torch.ones(2, 3, requires_grad=True)
        optimizer = tessera.nn.Adafactor([x], lr=0.25)
        (x * x).sum().backward()
        optimizer.step()
        torch.testing.assert_close(x, torch.full((2, 3), 0.75))
    """

    def __init__(
        self, params: Any, lr: float = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[Optional[float], float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, maximize: bool = False,
    ) -> None:  # fmt: skip
        if not all(each is None or each >= 0 for each in eps):
            raise ArgumentError(
                "E093", f"`Adafactor` got eps={shown(eps)}", "pass two numbers from 0 on"
            )
        super().__init__(
            params, lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay,
            maximize=maximize,
        )  # fmt: skip

    def _update(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        settings = self._settings(group)
        state = self.state[param]
        if not state:
            state["step"] = torch.tensor(0.0)
            if param.ndim > 1:
                state["row_var"] = param.new_zeros((*param.shape[:-1], 1))
                state["col_var"] = param.new_zeros((*param.shape[:-2], 1, param.shape[-1]))
            else:
                state["variance"] = torch.zeros_like(param)
        state["step"] += 1
        ops.adafactor_step(
            param, grad, state.get("row_var"), state.get("col_var"), state.get("variance"),
            step=int(state["step"]), **settings,
        )  # fmt: skip
