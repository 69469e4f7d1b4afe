# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with sparse matrices: torch's own beside them, patterns that are wrong, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
from tessera import ops  # noqa: E402


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_as_torch() -> None:
    dense = torch.randn(6, 4, dtype=torch.float64)
    matrix = (torch.randn(5, 6, dtype=torch.float64).clamp(min=0.3) - 0.3).to_sparse_csr()
    crow, col, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    torch.testing.assert_close(ops.spmm(crow, col, values, dense), torch.sparse.mm(matrix, dense))
    other = torch.randn(5, 4, dtype=torch.float64)
    sampled = torch.sparse.sampled_addmm(matrix, other, dense.T, beta=0.0)
    torch.testing.assert_close(ops.sddmm(crow, col, other, dense.T), sampled.values())


def test_wrong_patterns() -> None:
    """Columns and row pointers that are outside are no address."""
    crow, col = torch.tensor([-5, 2, 99]), torch.tensor([0, -1, 7, 1])
    values = torch.ones(4, requires_grad=True)
    dense = torch.tensor([[1.0], [10.0]], requires_grad=True)
    y = ops.spmm(crow, col, values, dense)
    assert y.tolist() == [[1], [10]]
    y.sum().backward()
    assert values.grad.tolist() == [1, 0, 0, 10] and dense.grad.tolist() == [[1], [1]]
    nan = torch.tensor([[float("nan")], [10.0]])
    assert ops.spmm(torch.tensor([0, 1]), torch.tensor([1]), torch.ones(1), nan).tolist() == [[10]]
    found = ops.sddmm(torch.tensor([1, 2, 3]), col, torch.ones(2, 1), dense.detach().T)
    assert found.tolist() == [0, 0, 0, 0]


def test_arguments_that_are_refused() -> None:
    crow, col, values, dense = np.array([0, 1]), np.array([0]), np.ones(1), np.ones((2, 3))
    for call in (
        lambda: ops.spmm(crow, col, values, np.ones(3)),
        lambda: ops.spmm(crow, col, np.ones(2), dense),
        lambda: ops.spmm(crow, col, values.astype(np.float32), dense),
        lambda: ops.spmm(crow.astype(float), col, values, dense),
        lambda: ops.spmm(crow[:0], col, values, dense),
        lambda: ops.sddmm(crow, col, dense, dense.T),
        lambda: ops.sddmm(crow, col, dense[:1], dense),
        lambda: ops.sddmm(crow, col[None], dense[:1], dense.T),
    ):
        with pytest.raises(tessera.ArgumentError) as caught:
            call()
        assert caught.value.id == "E093" and caught.value.fix
