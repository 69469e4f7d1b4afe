# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.ops in functions that torch.compile compiles with Tessera, where types have Triton's names."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from tessera import ops  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_compiler")


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (lambda x: ops.softmax(x * 2) + 1, lambda x: (x * 2).softmax(-1) + 1),
        (lambda x: ops.silu(x * 2) + 1, lambda x: F.silu(x * 2) + 1),
        (lambda x: ops.group_norm(x * 2, 2) + 1, lambda x: F.group_norm(x * 2, 2) + 1),
        (lambda x: ops.cumsum(x * 2, 0) + ops.sum(x), lambda x: (x * 2).cumsum(0) + x.sum()),
    ],
    ids=["softmax", "silu", "group_norm", "sums"],
)
def test_values_and_gradients(ours, theirs) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    results = [torch.compile(ours, backend="tessera")(x), theirs(x)]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), x)[0] for y in results))
