# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of arrays whose elements no kernel has: 4-bit numbers, powers of 2, complex and sparse ones."""

from __future__ import annotations

import pathlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl
from tessera import views

FOUR_BITS = {
    "int4": (views.int4, ml_dtypes.int4),
    "uint4": (views.uint4, ml_dtypes.uint4),
    "float4": (views.float4, ml_dtypes.float4_e2m1fn),
}


@tessera.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y.store(i, x.load(i, mask=i < n, other=1), mask=i < n)


@tessera.jit
def widen(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, x.load(i))


@tessera.jit
def narrow(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    out.store(i, tl.load(x + i), mask=i < n)


def packed(elements: np.ndarray) -> np.ndarray:
    codes = elements.view(np.uint8).reshape(-1, 2) & 15
    return codes[:, 0] | codes[:, 1] << 4


@pytest.mark.parametrize("kind", FOUR_BITS)
def test_all_codes(run: Runner, kind: str) -> None:
    make, dtype = FOUR_BITS[kind]
    codes = np.arange(256, dtype=np.uint8)
    elements = np.stack([codes & 15, codes >> 4], 1).reshape(-1).view(dtype)
    want = elements.astype(np.float32)
    out = np.full(512, 99, np.float32)
    run(widen, (1,), make(codes), out, BLOCK=512)
    np.testing.assert_array_equal(out.view(np.int32), want.view(np.int32))  # -0.0, too
    if kind == "float4":
        alone = np.full(512, 99, np.float32)
        run(widen, (1,), make(elements), alone, BLOCK=512)
        np.testing.assert_array_equal(alone, want)


@pytest.mark.parametrize("n", [0, 1, 37, 64])
def test_pairs_are_stored_under_a_mask(run: Runner, n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.integers(0, 256, 32).astype(np.uint8) for _ in range(2))
    elements = np.stack([x & 15, x >> 4], 1).reshape(-1)
    old = np.stack([y & 15, y >> 4], 1).reshape(-1)
    run(copy, (2,), views.int4(x), views.int4(y), n, BLOCK=32)
    want = np.where(np.arange(64) < n, elements, old).reshape(-1, 2)
    np.testing.assert_array_equal(y, want[:, 0] | want[:, 1] << 4)


def some_floats() -> np.ndarray:
    """All magnitudes of 4 bits, their midpoints, neighbours of these, and special values."""
    edges = np.array(
        [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7], np.float32
    )
    near = [np.nextafter(edges, np.float32(towards)) for towards in (-9, 9)]
    return np.concatenate([edges, *near, [np.inf, 1e30, 1e-30]]).astype(np.float32)


def test_floats_are_rounded_as_ml_dtypes_does(run: Runner) -> None:
    x = np.zeros(128, np.float32)
    values = some_floats()
    x[: len(values)], x[64 : 64 + len(values)] = values, -values
    codes = np.full(64, 0x55, np.uint8)
    run(narrow, (1,), x, views.float4(codes), 127, BLOCK=128)
    want = packed(x.astype(ml_dtypes.float4_e2m1fn))
    want[-1] = (want[-1] & 15) | 0x50  # behind the mask
    np.testing.assert_array_equal(codes, want)
    apart = np.zeros(128, ml_dtypes.float4_e2m1fn)
    run(narrow, (1,), x, views.float4(apart), 128, BLOCK=128)
    np.testing.assert_array_equal(apart.view(np.uint8), x.astype(apart.dtype).view(np.uint8))


def test_exponents(run: Runner) -> None:
    codes = np.arange(256, dtype=np.uint8)
    out = np.zeros(256, np.float32)
    run(widen, (1,), views.float8_e8m0(codes), out, BLOCK=256)
    np.testing.assert_array_equal(out, codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float32))

    powers = 2.0 ** np.arange(-127, 128, 3, dtype=np.float64)
    values = np.concatenate([powers * factor for factor in (1, 1.25, 1.5, 1.75)])[:250]
    x = np.full(256, -1, np.float32)
    x[: len(values)] = values
    x[250:254] = 0, np.nan, np.inf, 3e-39
    made = np.zeros(256, ml_dtypes.float8_e8m0fnu)
    run(narrow, (1,), x, views.float8_e8m0(made), 256, BLOCK=256)
    want = x.astype(made.dtype).view(np.uint8)
    want[250] = 0  # which ml_dtypes makes NaN
    want[85] = 0  # of 1.25 * 2^-127, which is nearer to that than to 2^-126
    np.testing.assert_array_equal(made.view(np.uint8), want)


@tessera.jit
def arithmetic(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = x.load(i, mask=i < n), y.load(i)
    z = (a + b) * (a - 2.0) / b - 3.0 * a.conj() + 1.0
    out.store(i, -z + (4.0 - b) + b / 2.0 - b, mask=i < n)
    out.store(n + i, b.norm())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(run: Runner, dtype: str) -> None:
    rng = np.random.default_rng(1)
    a, b = ((rng.standard_normal(16) + 1j * rng.standard_normal(16)).astype(dtype) for _ in "ab")
    b[:2] = 1e-3, 1e3j
    out = np.full(29, 9, dtype)
    run(arithmetic, (1,), views.complex(a), views.complex(b), views.complex(out), 13, BLOCK=16)
    z = (a + b) * (a - 2) / b - 3 * a.conj() + 1
    want = (-z + (4 - b) + b / 2 - b)[:13]
    tolerance = 1e-5 if dtype == "complex64" else 1e-13
    np.testing.assert_allclose(out[:13], want, rtol=tolerance)
    np.testing.assert_allclose(out[13:], abs(b) ** 2, rtol=tolerance)


def test_complex_numbers_behind_2_to_the_30th(tmp_path: pathlib.Path) -> None:
    """Their floats have no number of 32 bits. The file is sparse, and has four pages."""

    @tessera.jit
    def add(z, begin):
        i = begin + tl.arange(0, 4)
        z.store(i, z.load(i) + 1.0)

    begin = 1 << 30
    z = np.memmap(tmp_path / "z", np.complex64, "w+", shape=(begin + 8,))
    z[begin] = 2j
    add[(1,)](views.complex(z), begin)
    assert z[begin - 1 : begin + 5].tolist() == [0, 1 + 2j, 1, 1, 1, 0]


def test_large_quotients() -> None:
    @tessera.jit
    def divide(x, y):
        i = tl.arange(0, 4)
        y.store(i, x.load(i) / y.load(i))

    x = np.array([1e30, 1e30j, 1e-30, 2], np.complex64)
    y = np.array([1e30j, 1e30, 1e-30j, 1 + 1j], np.complex64)
    want = x / y
    divide[(1,)](views.complex(x), views.complex(y))
    np.testing.assert_allclose(y, want, rtol=1e-6)


@tessera.jit
def multiply(m, x, out):
    row = tl.program_id(0)
    begin, end = m.extent(row)
    total = 0.0
    for i in range(begin, end):
        total += tl.load(m.values + i) * tl.load(x + tl.load(m.col_indices + i))
    tl.store(out + row, total, mask=row < m.rows)


@tessera.jit
def multiply_blocks(m, x, out):
    begin, end = m.extent(tl.program_id(0))
    r, c = tl.arange(0, m.block_rows), tl.arange(0, m.block_cols)
    total = tl.zeros((m.block_rows,), tl.float32)
    for b in range(begin, end):
        place = (b * m.block_rows + r[:, None]) * m.block_cols + c[None, :]
        part = tl.load(x + tl.load(m.col_indices + b) * m.block_cols + c)
        total += tl.sum(tl.load(m.values + place) * part[None, :], axis=1)
    tl.store(out + tl.program_id(0) * m.block_rows + r, total)


def some_matrix() -> np.ndarray:
    rng = np.random.default_rng(3)
    matrix = rng.integers(-4, 5, (8, 12)).astype(np.float32)
    matrix[:, 4:8] = 0
    matrix[2:5] = 0
    return matrix


def test_arrays_of_sparse_matrices(run: Runner) -> None:
    matrix, x = some_matrix(), np.arange(12, dtype=np.float32)
    rows, columns = map(np.ascontiguousarray, np.nonzero(matrix))
    begins = np.searchsorted(rows, np.arange(9)).astype(np.int32)
    out = np.full(8, 99, np.float32)
    m = views.csr(begins, columns, matrix[rows, columns], (8, 12))
    run(multiply, (8,), m, x, out)
    np.testing.assert_array_equal(out, matrix @ x)

    blocks = matrix.reshape(4, 2, 3, 4).swapaxes(1, 2)
    rows, columns = map(np.ascontiguousarray, np.nonzero(blocks.any((2, 3))))
    begins = np.searchsorted(rows, np.arange(5))
    out[:] = 99
    values = np.ascontiguousarray(blocks[rows, columns])
    with pytest.raises(tessera.ArgumentError, match="(?s)E054.*not dense"):
        views.bsr(begins, columns, np.asfortranarray(values), (8, 12))
    m = views.bsr(begins, columns, values, (8, 12))
    assert (m.nnz, m.block_rows.value, m.block_cols.value) == (len(rows), 2, 4)
    run(multiply_blocks, (4,), m, x, out)
    np.testing.assert_array_equal(out, matrix @ x)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_sparse_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    matrix, x = some_matrix(), np.arange(12, dtype=np.float32)
    sparse = torch.from_numpy(matrix).to_sparse_csr()
    for m in (sparse, views.csr(sparse), views.view(sparse)):
        out = np.full(8, 99, np.float32)
        multiply[(8,)](m, x, out)
        np.testing.assert_array_equal(out, matrix @ x)
    blocks = torch.from_numpy(matrix).to_sparse_bsr((2, 4))
    for m in (blocks, views.view(blocks)):
        out = np.full(8, 99, np.float32)
        multiply_blocks[(4,)](m, x, out)
        np.testing.assert_array_equal(out, matrix @ x)
        tessera.interpret(multiply_blocks)[(4,)](m, x, out)
        tessera.gpu.simulate(multiply_blocks)[(4,)](m, x, out).check()
        np.testing.assert_array_equal(out, matrix @ x)
    # A compiled kernel takes it, too, and memory is checked with debug.
    multiply[(8,)](sparse, x, out)[(8,)](sparse, x, out)
    with pytest.raises(tessera.MemoryAccessError):
        multiply[(9,)](sparse, x, out, debug=True)
    for bad, why in (
        (torch.ones(2, 2, 2).to_sparse_csr(), r"(?s)has shape \(2, 2, 2\).*pass one matrix"),
        (sparse.to_sparse_csc(), "(?s)is sparse_csc.*to_sparse_csr"),
        (sparse.to_sparse_coo(), "(?s)is sparse_coo.*to_sparse_csr"),
    ):
        with pytest.raises(tessera.ArgumentError, match=why) as error:
            multiply[(8,)](bad, x, out)
        assert "E054" in str(error.value)


def test_sparse_matrices_of_scipy() -> None:
    scipy = pytest.importorskip("scipy.sparse")
    matrix, x = some_matrix(), np.arange(12, dtype=np.float32)
    out = np.full(8, 99, np.float32)
    multiply[(8,)](views.csr(scipy.csr_array(matrix)), x, out)
    np.testing.assert_array_equal(out, matrix @ x)
    out[:] = 99
    multiply_blocks[(4,)](views.view(scipy.bsr_matrix(matrix, blocksize=(2, 4))), x, out)
    np.testing.assert_array_equal(out, matrix @ x)
    with pytest.raises(tessera.ArgumentError, match=r"E054.*a matrix in CSC"):
        views.csr(scipy.csc_array(matrix))


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    codes = torch.arange(256, dtype=torch.uint8)
    want = np.arange(256, dtype=np.uint8)
    want = np.stack([want & 15, want >> 4], 1).reshape(-1).view(ml_dtypes.float4_e2m1fn)
    out = torch.zeros(512)
    widen[(1,)](views.view(codes.view(torch.float4_e2m1fn_x2)), out, BLOCK=512)
    np.testing.assert_array_equal(out.numpy(), want.astype(np.float32))
    scales = torch.tensor([0.5, 1, 2, 4]).to(torch.float8_e8m0fnu)
    widen[(1,)](views.view(scales), out, BLOCK=4)
    assert out[:4].tolist() == [0.5, 1, 2, 4]
    z = torch.tensor([[1j, 2], [3 + 1j, 0]]).T
    copy[(1,)](views.view(z[0]), views.complex(z[1]), 1, BLOCK=1)
    assert z[1].tolist() == [1j, 0]
    with pytest.raises(tessera.ArgumentError, match="(?s)E054.*conjugate.*resolve_conj"):
        views.complex(z.conj())


def test_arrays_of_jax() -> None:
    jnp = pytest.importorskip("jax.numpy")
    out = np.zeros(4, np.float32)
    widen[(1,)](views.view(jnp.arange(-4, -1).astype(jnp.int4)), out, BLOCK=4)
    assert out.tolist() == [-4, -3, -2, 0]
    widen[(1,)](views.view(jnp.array([0.5, 6, -3, 4]).astype(jnp.float4_e2m1fn)), out, BLOCK=4)
    assert out.tolist() == [0.5, 6, -3, 4]
    widen[(1,)](views.view(jnp.array([0.5, 1, 2, 4]).astype(jnp.float8_e8m0fnu)), out, BLOCK=4)
    assert out.tolist() == [0.5, 1, 2, 4]
    z = np.zeros(2, np.complex64)
    copy[(1,)](views.view(jnp.array([1j, 2])), views.complex(z), 2, BLOCK=2)
    assert z.tolist() == [1j, 2]
    with pytest.raises(tessera.ArgumentError, match="cannot be written|read-only|never changes"):
        copy[(1,)](views.complex(z), views.view(jnp.array([1j, 2])), 2, BLOCK=2)


@pytest.mark.parametrize(
    "make, array, why",
    [
        (views.int4, np.zeros(2, np.int32), "int4` got an array of int32"),
        (views.float4, np.zeros(2, ml_dtypes.int4), "float4` got an array of int4"),
        (views.float8_e8m0, np.zeros(2, np.float32), "float8_e8m0` got an array of float32"),
        (views.complex, np.zeros(2), "complex` got an array of float64"),
        (views.complex, np.zeros((2, 2), np.complex64)[:, ::2], "strides of"),
        (views.complex, np.zeros(2, np.dtype(np.complex64).newbyteorder()), "other byte order"),
        (views.view, np.zeros(2), "view` got an array of float64"),
        (views.int4, [1, 2], "int4` got a list"),
        (views.csr, np.zeros(2), "csr` got ndarray"),
    ],
)
def test_refused(make: Any, array: Any, why: str) -> None:
    with pytest.raises(tessera.ArgumentError, match=why) as error:
        make(array)
    assert "E054" in str(error.value) and "\nfix: pass" in str(error.value)


def test_refused_in_kernels() -> None:
    @tessera.jit
    def by_one(x):
        x.store(tl.program_id(0), 1)

    @tessera.jit
    def shifted(x):
        x.store(tl.arange(0, 8) + 1, 1)

    x = views.int4(np.zeros(8, np.uint8))
    with pytest.raises(tessera.CompilationError, match="stored in pairs"):
        by_one[(1,)](x)
    with pytest.raises(tessera.KernelAssertionError, match="two elements of one byte"):
        shifted[(1,)](x, debug=True)


INDICES, VALUES = np.array([0, 2, 3]), np.ones(3, np.float32)


@pytest.mark.parametrize(
    "pointers, columns, shape, why",
    [
        (INDICES, INDICES[:2], (2, 2), r"values of shape \(3,\), columns of shape \(2,\)"),
        (INDICES, INDICES[:, None], (2, 2), r"columns of shape \(3, 1\)"),
        (INDICES, INDICES, 5, "the shape 5"),
        (INDICES, INDICES, (2, 2, 2), r"the shape \(2, 2, 2\)"),
        (INDICES, INDICES, (5, 2), r"got 3 row pointers and the shape \(5, 2\)"),
        (INDICES * 1.0, INDICES, (2, 2), "got an array of float64"),
        ([0, 2, 3], INDICES, (2, 2), "got a list"),
        (np.arange(6)[::2], INDICES, (2, 2), "not dense"),
    ],
)
def test_refused_parts_of_sparse_matrices(
    pointers: Any, columns: Any, shape: Any, why: str
) -> None:
    """Kernels would read beyond the arrays."""
    with pytest.raises(tessera.ArgumentError, match=f"(?s)E054.*{why}"):
        views.csr(pointers, columns, VALUES, shape)


def test_refused_blocks() -> None:
    blocks = np.ones((3, 2, 4), np.float32)
    assert views.bsr(INDICES, INDICES, blocks, (4, 12)).nnz == 3
    with pytest.raises(tessera.ArgumentError, match="(?s)E054.*blocks of 2x4"):
        views.bsr(INDICES, INDICES, blocks, (4, 10))
    with pytest.raises(tessera.ArgumentError, match="(?s)E054.*got 3 row pointers"):
        views.bsr(INDICES, INDICES, blocks, (2, 12))


def test_constant_offsets() -> None:
    @tessera.jit
    def first(x, y, z, out):
        tl.store(out, x.load(3))
        y.store(1, y.load(0))
        z.store(1, 5.0)

    codes, parts, out = np.array([7, 0], np.uint8), np.zeros(2, np.complex64), np.zeros(1, np.int8)
    x = views.int4(np.array([0x21, 0x83], np.uint8))
    first[(1,)](x, views.float8_e8m0(codes), views.complex(parts), out)
    assert (out[0], codes.tolist(), parts.tolist()) == (-8, [7, 7], [0, 5])


def test_packed_weights_of_each_library() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    weights = np.arange(6 * 18, dtype=np.int8).reshape(6, 18)
    want = np.zeros((8, 32), np.int8)
    want[:6, :18] = weights
    for array in (weights, torch.from_numpy(weights), jax.numpy.asarray(weights)):
        packed = views.pack_weights(array, tile=(8, 32))
        assert type(packed.data) is type(array)
        words = np.asarray(packed.data)
        assert (packed.rows, packed.cols, words.shape) == (8, 32, (2, 2, 16, 4))
        np.testing.assert_array_equal(words.transpose(1, 3, 0, 2).reshape(8, 32), want)
