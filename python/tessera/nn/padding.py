# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Paddings: subclasses of torch's modules with `forward` by tessera.ops.pad."""

from __future__ import annotations

from typing import Any

import torch

from tessera import ops


class _Constant:
    """The call of the paddings of this kind."""

    def forward(self: Any, input: Any) -> Any:
        return ops.pad(input, self.padding, "constant", self.value)


class ConstantPad1d(_Constant, torch.nn.ConstantPad1d):  # type: ignore[misc]
    """torch.nn.ConstantPad1d by ops.pad."""


class ConstantPad2d(_Constant, torch.nn.ConstantPad2d):  # type: ignore[misc]
    """torch.nn.ConstantPad2d by ops.pad."""


class ConstantPad3d(_Constant, torch.nn.ConstantPad3d):  # type: ignore[misc]
    """torch.nn.ConstantPad3d by ops.pad."""


class ZeroPad1d(_Constant, torch.nn.ZeroPad1d):  # type: ignore[misc]
    """torch.nn.ZeroPad1d by ops.pad."""


class ZeroPad2d(_Constant, torch.nn.ZeroPad2d):  # type: ignore[misc]
    """torch.nn.ZeroPad2d by ops.pad."""


class ZeroPad3d(_Constant, torch.nn.ZeroPad3d):  # type: ignore[misc]
    """torch.nn.ZeroPad3d by ops.pad."""


class _Reflection:
    """The call of the paddings of this kind."""

    def forward(self: Any, input: Any) -> Any:
        return ops.pad(input, self.padding, "reflect")


class ReflectionPad1d(_Reflection, torch.nn.ReflectionPad1d):  # type: ignore[misc]
    """torch.nn.ReflectionPad1d by ops.pad."""


class ReflectionPad2d(_Reflection, torch.nn.ReflectionPad2d):  # type: ignore[misc]
    """torch.nn.ReflectionPad2d by ops.pad."""


class ReflectionPad3d(_Reflection, torch.nn.ReflectionPad3d):  # type: ignore[misc]
    """torch.nn.ReflectionPad3d by ops.pad."""


class _Replication:
    """The call of the paddings of this kind."""

    def forward(self: Any, input: Any) -> Any:
        return ops.pad(input, self.padding, "replicate")


class ReplicationPad1d(_Replication, torch.nn.ReplicationPad1d):  # type: ignore[misc]
    """torch.nn.ReplicationPad1d by ops.pad."""


class ReplicationPad2d(_Replication, torch.nn.ReplicationPad2d):  # type: ignore[misc]
    """torch.nn.ReplicationPad2d by ops.pad."""


class ReplicationPad3d(_Replication, torch.nn.ReplicationPad3d):  # type: ignore[misc]
    """torch.nn.ReplicationPad3d by ops.pad."""


class _Circular:
    """The call of the paddings of this kind."""

    def forward(self: Any, input: Any) -> Any:
        self._check_input_dim(input)
        return ops.pad(input, self.padding, "circular")


class CircularPad1d(_Circular, torch.nn.CircularPad1d):  # type: ignore[misc]
    """torch.nn.CircularPad1d by ops.pad."""


class CircularPad2d(_Circular, torch.nn.CircularPad2d):  # type: ignore[misc]
    """torch.nn.CircularPad2d by ops.pad."""


class CircularPad3d(_Circular, torch.nn.CircularPad3d):  # type: ignore[misc]
    """torch.nn.CircularPad3d by ops.pad."""
