# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with a sparse matrix in CSR, given by its row pointers, columns and values.

torch's sparse tensors have these as x.crow_indices(), x.col_indices() and x.values(). The pattern of the
matrix is not checked. Gradients of dense arrays whose rows are columns of the matrix are atomic
additions, in any order.
"""

from __future__ import annotations

from typing import Any, Sequence

from tessera.calls.recorded import recorded
from tessera.ops.accumulation import launch_onto, zeros
from tessera.ops.arguments import (
    FLOATS,
    FLOATS_AND_INDICES,
    INDICES,
    accumulator_of,
    check,
    check_arrays,
    converted,
    dense,
    dtype_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels import sparse as kernels
from tessera.ops.kernels.sparse import EDGES
from tessera.ops.launching import Spec, power_of_2
from tessera.ops.outputs import launch_results, takes_out
from tessera.ops.tuning import threads_of

_CPU_TILE = (16, 32)
"""Elements of a row, and terms of a dot, whose sums stay in registers of a CPU."""


def _block(length: int, most: int) -> int:
    return min(power_of_2(length), most)


def _product(crow: Any, col: Any, values: Any, x: Any) -> Any:
    """The sparse matrix times a dense one."""
    rows, (extent, length) = crow.shape[0] - 1, x.shape
    dtype, block = dtype_of(x), _block(length, 512)
    programs = rows * -(-length // block)
    numbers = (values.shape[0], extent, length, EDGES, block, accumulator_of(dtype))
    arrays = tuple(map(dense, (crow, col, values, x)))
    return launch_results(
        kernels.spmm_kernel, programs, arrays, [Spec((rows, length), dtype)], numbers
    )[0]


def _sampled(crow: Any, col: Any, a: Any, b: Any) -> Any:
    """The elements of a @ b.T in the places of the sparse matrix."""
    (count,), (extent, length) = col.shape, b.shape
    dtype, (edges, most) = dtype_of(a), _CPU_TILE if threads_of(a) else (EDGES, 512)
    numbers = (count, extent, length, edges, _block(length, most), accumulator_of(dtype))
    arrays = tuple(map(dense, (crow, col, a, b)))
    # Elements that belong to no row are 0.
    started = zeros(a, (count,), dtype)
    return launch_onto(
        kernels.sddmm_kernel, crow.shape[0] - 1 if count else 0, arrays, started, numbers
    )


def _transposed(crow: Any, col: Any, values: Any, x: Any, extent: int) -> Any:
    """The transposed sparse matrix times a dense one."""
    dtype, length, block = dtype_of(x), x.shape[1], _block(x.shape[1], 1024)
    acc = accumulator_of(dtype)
    programs = (crow.shape[0] - 1) * -(-length // block)
    total = launch_onto(
        kernels.add_transposed_kernel, programs, tuple(map(dense, (crow, col, values, x))),
        zeros(x, (extent, length), acc), (values.shape[0], extent, length, block, acc),
    )  # fmt: skip
    return converted(total, dtype)


def _spmm_forward(crow: Any, col: Any, values: Any, x: Any) -> Results:
    return (_product(crow, col, values, x),), (crow, col, values, x)


def _spmm_backward(saved: Any, grads: Any, wanted: Any) -> Sequence[Any]:
    crow, col, values, x = saved
    of_values = _sampled(crow, col, grads[0], x) if wanted[2] else None
    of_x = _transposed(crow, col, values, grads[0], x.shape[0]) if wanted[3] else None
    return None, None, of_values, of_x


def _sddmm_forward(crow: Any, col: Any, a: Any, b: Any) -> Results:
    return (_sampled(crow, col, a, b),), (crow, col, a, b)


def _sddmm_backward(saved: Any, grads: Any, wanted: Any) -> Sequence[Any]:
    crow, col, a, b = saved
    of_a = _product(crow, col, grads[0], b) if wanted[2] else None
    of_b = _transposed(crow, col, grads[0], a, b.shape[0]) if wanted[3] else None
    return None, None, of_a, of_b


_spmm = Operator("spmm", _spmm_forward, _spmm_backward)
_sddmm = Operator("sddmm", _sddmm_forward, _sddmm_backward)


def _check(name: str, crow: Any, col: Any, **floats: Any) -> None:
    """Checks the arrays of a call, whose matrices have one type. Raises ArgumentError (E093)."""
    check_arrays(name, FLOATS_AND_INDICES, crow_indices=crow, col_indices=col, **floats)
    check_arrays(name, INDICES, crow_indices=crow, col_indices=col)
    check_arrays(name, FLOATS, **floats)
    check(
        len(crow.shape) == 1 == len(col.shape) and crow.shape[0] > 0,
        f"`{name}` got crow_indices of shape {tuple(crow.shape)}, and col_indices of "
        f"{tuple(col.shape)}",
        "pass lines of rows + 1 pointers, and of a column for each element",
    )
    (first, one), (second, two) = floats.items()
    check(
        dtype_of(one) == dtype_of(two),
        f"`{first}` of `{name}` has elements of {one.dtype}, and `{second}` of {two.dtype}",
        "convert them to one type",
    )


@recorded
@takes_out
def spmm(crow_indices: Any, col_indices: Any, values: Any, dense: Any) -> Any:
    """matrix @ dense, of a sparse matrix in CSR: row r is values[e] at col_indices[e].

    The elements e of row r are from crow_indices[r] to crow_indices[r + 1]. Elements whose column is
    outside of the matrix count as 0. As torch.sparse.mm. Gradients are those of values and dense.
    Shapes: crow_indices (rows + 1,), col_indices (n,), values (n,), dense (columns, k); the result is
    (rows, k). Types: floats, one for values and dense; indices of int32 or int64. Errors: E093.
    Missing: sparse tensors of torch as arguments, batches.

    Example:
        import numpy as np
        from tessera import ops

        crow, col, values = np.array([0, 2, 2, 3]), np.array([0, 2, 1]), np.array([1.0, 2.0, 3.0])
        y = ops.spmm(crow, col, values, np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 5.0]]))
        assert y.tolist() == [[7, 10], [0, 0], [6, 3]]
    """
    _check("spmm", crow_indices, col_indices, values=values, dense=dense)
    check(
        tuple(values.shape) == tuple(col_indices.shape) and len(dense.shape) == 2,
        f"`spmm` got values of shape {tuple(values.shape)} for {tuple(col_indices.shape)} columns, and "
        f"dense of {tuple(dense.shape)}",
        "pass a value for each element, and (columns, k)",
    )
    return _spmm(crow_indices, col_indices, values, dense)


@recorded
@takes_out
def sddmm(crow_indices: Any, col_indices: Any, mat1: Any, mat2: Any) -> Any:
    """The elements of mat1 @ mat2 in the places of a sparse matrix in CSR.

    The elements e of row r are from crow_indices[r] to crow_indices[r + 1], at col_indices[e]. An element
    whose column is outside of mat2 is 0. As torch.sparse.sampled_addmm, with beta 0. If mat2 is a
    transposed array, it is not copied. Gradients are those of mat1 and mat2.
    Shapes: crow_indices (rows + 1,), col_indices (n,), mat1 (rows, k), mat2 (k, columns); the result is
    (n,). Types: floats, one for mat1 and mat2; indices of int32 or int64. Errors: E093. Missing:
    `input`, `alpha` and `beta`, sparse tensors of torch as arguments, batches.

    Example:
        import numpy as np
        from tessera import ops

        crow, col = np.array([0, 1, 2]), np.array([1, 0])
        y = ops.sddmm(crow, col, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 5.0], [0.0, 1.0]]))
        assert y.tolist() == [7, 3]
    """
    _check("sddmm", crow_indices, col_indices, mat1=mat1, mat2=mat2)
    rows = crow_indices.shape[0] - 1
    check(
        len(mat1.shape) == 2 == len(mat2.shape)
        and mat1.shape[0] == rows
        and mat1.shape[1] == mat2.shape[0],
        f"`sddmm` got mat1 of shape {tuple(mat1.shape)} and mat2 of {tuple(mat2.shape)} for {rows} rows",
        "pass (rows, k) and (k, columns)",
    )
    return _sddmm(crow_indices, col_indices, mat1, mat2.T)
