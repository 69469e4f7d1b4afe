# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of arrays whose elements no kernel has: 4-bit numbers, powers of 2, complex and sparse ones.

x = tessera.views.int4(codes)       # two elements in a byte
kernel[grid](x, out, n, BLOCK=1024)

A view is an aggregate. A kernel loads and stores values with it, as with tl.load and tl.store, and
the elements stay as they are in memory:

| function | element in memory | value in a kernel |
|---|---|---|
| `int4`, `uint4` | 4 bits | int8, uint8 |
| `float4` | 4 bits: e2m1, as of OCP's MX formats | float32, or another type of floats |
| `float8_e8m0` | 8 bits: 2^(code - 127); 255 is NaN | float32 |
| `complex` | two floats: the real and the imaginary part | `Complex` |
| `csr`, `bsr` | arrays of a sparse matrix | pointers and extents |
| `pack_weights` | bfloat16 or int8, in a copy in the order of matrix instructions | the same, in tiles |

`view` chooses by the type of an array. Arrays of JAX have no memory that may be written: the view of one
is of a copy.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Optional

from tessera.errors import ArgumentError
from tessera.language.sparse import SparseBSR, SparseCSR, sparse_argument
from tessera.locks import load
from tessera.views.elements import Complex as Complex
from tessera.views.elements import ComplexView, Exponents, Nibbles, PackedWeights
from tessera.wording import with_article

__all__ = [
    "bsr",
    "complex",
    "csr",
    "float4",
    "float8_e8m0",
    "int4",
    "pack_weights",
    "uint4",
    "view",
]


def int4(array: Any) -> Nibbles:
    """A view of signed 4-bit integers: an array of int4, or of bytes with two in each.

    array: of ml_dtypes' or JAX's int4; of uint8 or int8, of which each byte has two elements, the first
      in its lower bits. Raises ArgumentError (E054) for others.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def widen(x, out):
            i = tl.arange(0, 4)
            tl.store(out + i, x.load(i))

        out = np.zeros(4, np.int8)
        widen[(1,)](tessera.views.int4(np.array([0x21, 0x8F], np.uint8)), out)
        assert out.tolist() == [1, 2, -1, -8]
    """
    return _nibbles("int4", array)


def uint4(array: Any) -> Nibbles:
    """A view of unsigned 4-bit integers, as `int4` is of signed ones.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def fill(x):
            i = tl.arange(0, 4)
            x.store(i, i + 1)

        codes = np.zeros(2, np.uint8)
        fill[(1,)](tessera.views.uint4(codes))
        assert codes.tolist() == [0x21, 0x43]
    """
    return _nibbles("uint4", array)


def float4(array: Any) -> Nibbles:
    """A view of 4-bit floats (e2m1): 0, 0.5, 1, 1.5, 2, 3, 4, 6, and their negatives.

    array: of ml_dtypes' or JAX's float4_e2m1fn, of torch's float4_e2m1fn_x2, or of bytes as for `int4`.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def widen(x, out):
            i = tl.arange(0, 4)
            tl.store(out + i, x.load(i))

        out = np.zeros(4, np.float32)
        widen[(1,)](tessera.views.float4(np.array([0x31, 0xF9], np.uint8)), out)
        assert out.tolist() == [0.5, 1.5, -0.5, -6]
    """
    return _nibbles("float4", array)


def float8_e8m0(array: Any) -> Exponents:
    """A view of scales that are powers of 2, in a byte each.

    array: of ml_dtypes', JAX's or torch's float8_e8m0fnu, or of uint8.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def double(x):
            i = tl.arange(0, 4)
            x.store(i, x.load(i) * 2)

        codes = np.array([126, 127, 128, 0], np.uint8)
        double[(1,)](tessera.views.float8_e8m0(codes))
        assert codes.tolist() == [127, 128, 129, 1]
    """
    name = _dtype_name("float8_e8m0", array)
    if name not in ("float8_e8m0fnu", "uint8"):
        raise _refuse("float8_e8m0", array, "float8_e8m0fnu or uint8")
    return Exponents(_as_bytes(array))


def complex(array: Any) -> ComplexView:
    """A view of complex numbers of 64 or 128 bits.

    array: of complex64 or complex128, of NumPy, torch or JAX. NumPy's last dimension has to be dense.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def square(x):
            i = tl.arange(0, 4)
            z = x.load(i)
            x.store(i, z * z)

        z = np.array([1j, 1 + 1j, 2, 0], np.complex64)
        square[(1,)](tessera.views.complex(z))
        assert z.tolist() == [-1, 2j, 4, 0]
    """
    if _dtype_name("complex", array) not in ("complex64", "complex128"):
        raise _refuse("complex", array, "complex64 or complex128")
    library = _library_of(array)
    if library == "torch":
        if array.is_conj() or array.is_neg():
            raise ArgumentError(
                "E054",
                "`tessera.views.complex` got a tensor whose conjugate is not computed yet",
                "pass x.resolve_conj().resolve_neg()",
            )
        return ComplexView(load("torch").view_as_real(array.detach()))
    if library == "jax":
        jnp: Any = load("jax.numpy")
        return ComplexView(jnp.stack([array.real, array.imag], -1))
    if not array.dtype.isnative:
        raise ArgumentError(
            "E054",
            "`tessera.views.complex` got an array in the other byte order",
            "pass x.astype(x.dtype.newbyteorder('='))",
        )
    if array.ndim and array.size > 1 and array.strides[-1] != array.itemsize:
        raise ArgumentError(
            "E054",
            f"`tessera.views.complex` got an array with strides of {array.strides} bytes",
            "pass numpy.ascontiguousarray(x)",
        )
    parts = array.reshape(1) if array.ndim == 0 else array
    return ComplexView(parts.view("float32" if array.dtype.name == "complex64" else "float64"))


def csr(
    matrix: Any, col_indices: Any = None, values: Any = None, shape: Optional[Any] = None
) -> SparseCSR:
    """A sparse matrix in CSR: of torch's or SciPy's, or of its three arrays and its shape.

    A kernel takes torch's tensors in CSR without it, too. Such a launch looks at the tensor anew.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def row_sums(m, out):
            row = tl.program_id(0)
            begin, end = m.extent(row)
            total = 0.0
            for i in range(begin, end):
                total += tl.load(m.values + i)
            tl.store(out + row, total)

        columns, values = np.array([0, 1, 1]), np.array([2, 3, 4], np.float32)
        m = tessera.views.csr(np.array([0, 2, 3]), columns, values, shape=(2, 2))
        out = np.zeros(2, np.float32)
        row_sums[(2,)](m, out)
        assert out.tolist() == [5, 4]
    """
    found = _sparse("csr", SparseCSR, matrix, col_indices, values, shape)
    assert isinstance(found, SparseCSR)
    return found


def bsr(
    matrix: Any, col_indices: Any = None, values: Any = None, shape: Optional[Any] = None
) -> SparseBSR:
    """A sparse matrix of dense blocks: of torch's or SciPy's BSR, or of its three arrays and its shape.

    values: of shape (number of blocks, rows of a block, columns of a block).

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def sums(m, out):
            begin, end = m.extent(tl.program_id(0))
            size: tl.constexpr = m.block_rows * m.block_cols
            i = tl.arange(0, size)
            total = 0.0
            for block in range(begin, end):
                total += tl.sum(tl.load(m.values + block * size + i))
            tl.store(out + tl.program_id(0), total)

        values = np.ones((1, 2, 2), np.float32)
        m = tessera.views.bsr(np.array([0, 1, 1]), np.array([1]), values, shape=(4, 4))
        out = np.zeros(2, np.float32)
        sums[(2,)](m, out)
        assert out.tolist() == [4, 0]
    """
    found = _sparse("bsr", SparseBSR, matrix, col_indices, values, shape)
    assert isinstance(found, SparseBSR)
    return found


def pack_weights(weights: Any, tile: tuple[int, int] = (64, 16)) -> PackedWeights:
    """A copy of a matrix for `tl.dot`, in the order of a CPU's matrix instructions.

    weights: of shape (K, N) and of bfloat16 or int8, of NumPy, torch, CuPy or JAX. Strides are any:
      torch's linear has them as `linear.weight.T`.
    tile: the extents that the kernel loads. Zeros follow the last row and column, up to multiples of
      them. Rows are a multiple of 2 (bfloat16) or 4 (int8), columns of 16. `w.load` takes tiles whose
      quotients by these are extents of `tl.arange`, such as powers of 2.

    Raises ArgumentError (E054) for other arrays and tiles.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def product(x, w, out, M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
            column = tl.program_id(0) * BLOCK_N
            i, k, j = tl.arange(0, M)[:, None], tl.arange(0, BLOCK_K)[None, :], tl.arange(0, BLOCK_N)
            total = tl.zeros((M, BLOCK_N), tl.int32)
            for row in range(0, w.rows, BLOCK_K):
                total = tl.dot(tl.load(x + i * w.rows + row + k), w.load(row, column, BLOCK_K, BLOCK_N), total)
            tl.store(out + i * w.cols + column + j[None, :], total)

        x, weights = np.ones((16, 128), np.int8), np.ones((128, 64), np.int8)
        out = np.zeros((16, 64), np.int32)
        packed = tessera.views.pack_weights(weights, tile=(128, 32))
        product[(2,)](x, packed, out, M=16, BLOCK_K=128, BLOCK_N=32)
        assert (out == 128).all()
    """
    name = _dtype_name("pack_weights", weights)
    steps = {"bfloat16": 2, "int8": 4}.get(name)
    if steps is None:
        raise _refuse("pack_weights", weights, "bfloat16 or int8")
    is_strided = str(getattr(weights, "layout", "torch.strided")) == "torch.strided"
    if not is_strided or type(weights).__name__ == "MaskedArray":
        raise ArgumentError(
            "E054",
            f"`tessera.views.pack_weights` got a {'masked' if is_strided else 'sparse'} array",
            f"pass a dense one, such as `weights.{'filled(0)' if is_strided else 'to_dense()'}`",
        )
    if weights.ndim != 2:
        raise ArgumentError(
            "E054",
            f"`tessera.views.pack_weights` got an array of shape {tuple(weights.shape)}",
            "pass a matrix of K rows and N columns",
        )
    is_pair = isinstance(tile, (tuple, list)) and len(tile) == 2
    if not is_pair or any(
        not isinstance(size, Integral) or size <= 0 or size % unit
        for size, unit in zip(tile, (steps, 16))
    ):
        raise ArgumentError(
            "E054",
            f"`tessera.views.pack_weights` got the tile {tile!r} for elements of {name}",
            f"pass a multiple of {steps} rows and one of 16 columns",
        )
    rows, cols = (-(-extent // size) * size for extent, size in zip(weights.shape, tile))
    shape = (rows // steps, steps, cols // 16, 16)
    order = (2, 0, 3, 1)
    behind = [(0, rows - weights.shape[0]), (0, cols - weights.shape[1])]
    library = _library_of(weights)
    if library == "torch":
        if behind != [(0, 0), (0, 0)]:
            pad = load("torch").nn.functional.pad
            weights = pad(weights, [behind[1][0], behind[1][1], behind[0][0], behind[0][1]])
        blocks = weights.detach().reshape(shape).permute(order)
        packed = blocks.clone(memory_format=load("torch").contiguous_format)
    else:
        module: Any = load("jax.numpy" if library == "jax" else library)
        padded = module.pad(weights, behind) if behind != [(0, 0), (0, 0)] else weights
        packed = padded.reshape(shape).transpose(order)
        if library != "jax":  # whose arrays are dense, and never change
            packed = packed.copy(order="C")
    return PackedWeights(packed, rows, cols, steps)


_BY_DTYPE = {
    "int4": int4,
    "uint4": uint4,
    "float4_e2m1fn": float4,
    "float4_e2m1fn_x2": float4,
    "float8_e8m0fnu": float8_e8m0,
    "complex64": complex,
    "complex128": complex,
}


def view(array: Any) -> Any:
    """The view of an array by its type, or of a sparse matrix by its layout.

    Raises ArgumentError (E054) for an array that a kernel takes as it is, and for others.

    Example:
        import numpy as np
        import tessera

        x = tessera.views.view(np.ones(4, np.complex64))
        assert isinstance(x, tessera.views.ComplexView)
    """
    layout = _layout_of(array)
    if layout is not None:
        return _sparse(layout, None, array, None, None, None)
    make = _BY_DTYPE.get(_dtype_name("view", array))
    if make is None:
        raise _refuse("view", array, ", ".join(_BY_DTYPE))
    return make(array)


def _library_of(array: Any) -> str:
    name = type(array).__module__.partition(".")[0]
    return "jax" if name in ("jax", "jaxlib") else name


def _dtype_name(function: str, array: Any) -> str:
    dtype = getattr(array, "dtype", None)
    if dtype is None or _library_of(array) not in ("numpy", "torch", "jax", "cupy"):
        raise ArgumentError(
            "E054",
            f"`tessera.views.{function}` got {with_article(type(array).__name__)}",
            "pass an array of NumPy, torch, CuPy or JAX",
        )
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")


def _refuse(function: str, array: Any, wanted: str) -> ArgumentError:
    return ArgumentError(
        "E054",
        f"`tessera.views.{function}` got an array of {_dtype_name(function, array)}",
        f"pass one of {wanted}",
    )


def _nibbles(kind: str, array: Any) -> Nibbles:
    name = _dtype_name(kind, array)
    own = ("float4_e2m1fn", "float4_e2m1fn_x2") if kind == "float4" else (kind,)
    if name not in (*own, "uint8", "int8"):
        raise _refuse(kind, array, f"{own[0]}, or of uint8 with two elements in a byte")
    if name in own and _library_of(array) == "torch" and name != "float4_e2m1fn_x2":
        raise _refuse(
            kind, array, "uint8 with two elements in a byte: torch does not compute with others"
        )
    if name in own and _library_of(array) == "jax":
        if array.size % 2:
            array = load("jax.numpy").append(array.reshape(-1), array.dtype.type(0))
        pairs = array.reshape(-1, 2)
        return Nibbles(load("jax").lax.bitcast_convert_type(pairs, "uint8"), kind, 2)
    per_byte = 1 if name in own and name != "float4_e2m1fn_x2" else 2
    return Nibbles(_as_bytes(array), kind, per_byte)


def _as_bytes(array: Any) -> Any:
    """The array as one of uint8, which has the same memory, but for JAX."""
    library = _library_of(array)
    if library == "torch":
        return array.detach().view(load("torch").uint8)
    if library == "jax":
        return load("jax").lax.bitcast_convert_type(array, "uint8")
    return array.view("uint8")


def _layout_of(matrix: Any) -> Optional[str]:
    """The layout of a sparse matrix of torch or SciPy; None for what is none."""
    name = str(getattr(matrix, "layout", "")).removeprefix("torch.sparse_")
    if _library_of(matrix) == "torch" and str(getattr(matrix, "layout", "")) != "torch.strided":
        return name
    if _library_of(matrix) == "scipy":
        return getattr(matrix, "format", None)
    return None


def _is_dense(array: Any) -> bool:
    if _library_of(array) == "torch":
        return bool(array.is_contiguous())
    return bool(getattr(array, "flags", None) is None or array.flags.c_contiguous)


def _checked_shape(
    layout: str, pointers: Any, columns: Any, values: Any, shape: Any
) -> tuple[int, int]:
    """The rows and columns of a sparse matrix of these arrays. Raises ArgumentError (E054)."""
    for each in (pointers, columns):
        if "int" not in _dtype_name(layout, each):
            raise _refuse(layout, each, "int32 or int64 for rows and columns")
    _dtype_name(layout, values)
    rank = 3 if layout == "bsr" else 1
    is_pair = isinstance(shape, (tuple, list)) and len(shape) == 2
    if (
        not is_pair
        or (pointers.ndim, columns.ndim, values.ndim) != (1, 1, rank)
        or len(values) != len(columns)
    ):
        raise ArgumentError(
            "E054",
            f"`tessera.views.{layout}` got values of shape {tuple(values.shape)}, "
            f"columns of shape {tuple(columns.shape)} and the shape {shape}",
            f"pass values of {rank} dimensions, a column for each, and the shape of the matrix",
        )
    rows, cols = map(int, shape)
    block_rows, block_cols = map(int, values.shape[1:]) if rank == 3 else (1, 1)
    # Kernels read a pointer of each row and of the one behind it.
    if rows % max(1, block_rows) or cols % max(1, block_cols):
        raise ArgumentError(
            "E054",
            f"`tessera.views.{layout}` got blocks of {block_rows}x{block_cols} and the shape {shape}",
            "pass a shape that whole blocks fill",
        )
    if len(pointers) != rows // max(1, block_rows) + 1:
        raise ArgumentError(
            "E054",
            f"`tessera.views.{layout}` got {len(pointers)} row pointers and the shape {shape}",
            "pass one for each row, or row of blocks, and one more",
        )
    if not all(map(_is_dense, (pointers, columns, values))):
        raise ArgumentError(
            "E054",
            f"`tessera.views.{layout}` got an array that is not dense",
            "pass numpy.ascontiguousarray(x) or x.contiguous()",
        )
    return rows, cols


def _sparse(layout: str, cls: Any, matrix: Any, columns: Any, values: Any, shape: Any) -> Any:
    if values is not None:
        rows, cols = _checked_shape(layout, matrix, columns, values, shape)
        return cls(matrix, columns, values, rows, cols, *map(int, values.shape))
    own = _layout_of(matrix)
    if own not in ("csr", "bsr") or (cls is not None and own != layout):
        what = f"a matrix in {own.upper()}" if own else type(matrix).__name__
        raise ArgumentError(
            "E054",
            f"`tessera.views.{layout if cls else 'view'}` got {what}",
            "pass x.to_sparse_csr(), or x.to_sparse_bsr((rows, columns)); of SciPy x.tocsr()",
        )
    if _library_of(matrix) == "torch":
        return sparse_argument(matrix)
    arrays = (matrix.indptr, matrix.indices, matrix.data)
    made: Any = SparseBSR if own == "bsr" else SparseCSR
    return made(*arrays, *map(int, matrix.shape), *map(int, matrix.data.shape))
