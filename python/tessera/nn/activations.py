# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Further activations: subclasses of torch's modules with `forward` by tessera.ops.

`inplace` makes a new tensor all the same.
"""

from __future__ import annotations

from typing import Any

import torch

from tessera import ops


class ReLU6(torch.nn.ReLU6):  # type: ignore[misc]
    """torch.nn.ReLU6 by ops.relu6."""

    def forward(self, input: Any) -> Any:
        return ops.relu6(input)


class Hardtanh(torch.nn.Hardtanh):  # type: ignore[misc]
    """torch.nn.Hardtanh by ops.hardtanh."""

    def forward(self, input: Any) -> Any:
        return ops.hardtanh(input, float(self.min_val), float(self.max_val))


class Hardsigmoid(torch.nn.Hardsigmoid):  # type: ignore[misc]
    """torch.nn.Hardsigmoid by ops.hardsigmoid."""

    def forward(self, input: Any) -> Any:
        return ops.hardsigmoid(input)


class Threshold(torch.nn.Threshold):  # type: ignore[misc]
    """torch.nn.Threshold by ops.threshold."""

    def forward(self, input: Any) -> Any:
        return ops.threshold(input, self.threshold, self.value)


class PReLU(torch.nn.PReLU):  # type: ignore[misc]
    """torch.nn.PReLU by ops.prelu."""

    def forward(self, input: Any) -> Any:
        return ops.prelu(input, self.weight)


class LogSigmoid(torch.nn.LogSigmoid):  # type: ignore[misc]
    """torch.nn.LogSigmoid by ops.logsigmoid."""

    def forward(self, input: Any) -> Any:
        return ops.logsigmoid(input)


class Softsign(torch.nn.Softsign):  # type: ignore[misc]
    """torch.nn.Softsign by ops.softsign."""

    def forward(self, input: Any) -> Any:
        return ops.softsign(input)


class Tanhshrink(torch.nn.Tanhshrink):  # type: ignore[misc]
    """torch.nn.Tanhshrink by ops.tanhshrink."""

    def forward(self, input: Any) -> Any:
        return ops.tanhshrink(input)


class Hardshrink(torch.nn.Hardshrink):  # type: ignore[misc]
    """torch.nn.Hardshrink by ops.hardshrink."""

    def forward(self, input: Any) -> Any:
        return ops.hardshrink(input, float(self.lambd))


class Softshrink(torch.nn.Softshrink):  # type: ignore[misc]
    """torch.nn.Softshrink by ops.softshrink."""

    def forward(self, input: Any) -> Any:
        return ops.softshrink(input, float(self.lambd))


class GLU(torch.nn.GLU):  # type: ignore[misc]
    """torch.nn.GLU by ops.glu."""

    def forward(self, input: Any) -> Any:
        return ops.glu(input, self.dim)


class Softmin(torch.nn.Softmin):  # type: ignore[misc]
    """torch.nn.Softmin by ops.softmin. `dim` has to be given."""

    def forward(self, input: Any) -> Any:
        return ops.softmin(input, self.dim)
