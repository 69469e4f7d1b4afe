# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules with random numbers: subclasses of torch's with `forward` by tessera.ops.

Seeds are from torch's generator of the CPU. The statistics are those of torch, and the elements are
others. So `replace` does not change these modules.
"""

from __future__ import annotations

from typing import Any

import torch

from tessera import ops


class Dropout(torch.nn.Dropout):  # type: ignore[misc]
    """torch.nn.Dropout by ops.dropout. `inplace` makes a new tensor all the same."""

    def forward(self, input: Any) -> Any:
        return ops.dropout(input, self.p, self.training)


class Dropout1d(torch.nn.Dropout1d):  # type: ignore[misc]
    """torch.nn.Dropout1d by ops.dropout1d. `inplace` makes a new tensor all the same."""

    def forward(self, input: Any) -> Any:
        return ops.dropout1d(input, self.p, self.training)


class Dropout2d(torch.nn.Dropout2d):  # type: ignore[misc]
    """torch.nn.Dropout2d by ops.dropout2d. `inplace` makes a new tensor all the same."""

    def forward(self, input: Any) -> Any:
        return ops.dropout2d(input, self.p, self.training)


class Dropout3d(torch.nn.Dropout3d):  # type: ignore[misc]
    """torch.nn.Dropout3d by ops.dropout3d. `inplace` makes a new tensor all the same."""

    def forward(self, input: Any) -> Any:
        return ops.dropout3d(input, self.p, self.training)


class AlphaDropout(torch.nn.AlphaDropout):  # type: ignore[misc]
    """torch.nn.AlphaDropout by ops.alpha_dropout. `inplace` makes a new tensor all the same."""

    def forward(self, input: Any) -> Any:
        return ops.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(torch.nn.FeatureAlphaDropout):  # type: ignore[misc]
    """torch.nn.FeatureAlphaDropout by ops.feature_alpha_dropout. `inplace` makes a new tensor all the same."""

    def forward(self, input: Any) -> Any:
        return ops.feature_alpha_dropout(input, self.p, self.training)


class RReLU(torch.nn.RReLU):  # type: ignore[misc]
    """torch.nn.RReLU by ops.rrelu. `inplace` makes a new tensor all the same."""

    def forward(self, input: Any) -> Any:
        return ops.rrelu(input, self.lower, self.upper, self.training)
