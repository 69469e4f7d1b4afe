# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""linear_cross_entropy: the memory that it takes, gradients that are asked for twice, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import tessera  # noqa: E402
from tessera import ops  # noqa: E402


class _Sizes(TorchDispatchMode):  # type: ignore[misc]
    """Collects the numbers of elements of all new tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.largest = max(
                self.largest, found.untyped_storage().nbytes() // found.element_size()
            )
        return found


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_no_array_of_all_logits(reduction: str) -> None:
    rows, features, classes = 96, 8, 500
    x = torch.randn(rows, features, requires_grad=True)
    matrix = torch.randn(classes, features, requires_grad=True)
    target = torch.randint(classes, (rows,))
    with _Sizes() as sizes:
        loss = ops.linear_cross_entropy(x, matrix, target, reduction=reduction, chunk_rows=16)
        loss.sum().backward()
    assert sizes.largest == 16 * classes
    with _Sizes() as sizes:
        torch.nn.functional.cross_entropy(x @ matrix.T, target, reduction=reduction)
    assert sizes.largest == rows * classes


def test_gradients_that_are_asked_for_twice() -> None:
    """The arrays of the forward pass stay as they are, and the gradient of the loss is a factor."""
    x, matrix = (torch.randn(5, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    target = torch.tensor([0, 4, -100, 2, 2])
    loss = ops.linear_cross_entropy(x, matrix, target)
    first = torch.autograd.grad(loss, (x, matrix), retain_graph=True)
    second = torch.autograd.grad(3 * loss, (x, matrix))
    for a, b in zip(first, second):
        torch.testing.assert_close(3 * a, b)
    with torch.no_grad():
        torch.testing.assert_close(ops.linear_cross_entropy(x, matrix, target), loss)
    (alone,) = torch.autograd.grad(ops.linear_cross_entropy(x, matrix.detach(), target), (x,))
    torch.testing.assert_close(alone, first[0])
    assert ops.linear_cross_entropy(x[:0], matrix, target[:0], reduction="sum") == 0
    assert ops.linear_cross_entropy(x[:0], matrix, target[:0]).isnan()


def test_arguments_that_are_refused() -> None:
    x, matrix, target = np.ones((3, 4)), np.ones((5, 4)), np.ones(3, np.int64)
    for call in (
        lambda: ops.linear_cross_entropy(x, matrix.T, target),
        lambda: ops.linear_cross_entropy(x, matrix, np.ones(3)),
        lambda: ops.linear_cross_entropy(x, matrix, np.ones(4, np.int64)),
        lambda: ops.linear_cross_entropy(x, matrix.astype(np.float32), target),
        lambda: ops.linear_cross_entropy(x, matrix, target, linear_bias=np.ones(4)),
        lambda: ops.linear_cross_entropy(x, matrix, target, weight=np.ones(4)),
        lambda: ops.linear_cross_entropy(x, matrix, target, label_smoothing=-1.0),
        lambda: ops.linear_cross_entropy(x, matrix, target, chunk_rows=0),
        lambda: ops.linear_cross_entropy(x, matrix, target, reduction="all"),
    ):
        with pytest.raises(tessera.ArgumentError) as caught:
            call()
        assert caught.value.id == "E093" and caught.value.fix
