# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmuls as people write them who do not think of L2; `jit` and `tl` are a compiler's."""

# mypy: ignore-errors
# ruff: noqa: F821


@jit
def tile_of(a_ptr, b_ptr, row, column, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr):  # fmt: skip
    """A tile of x @ w.T; M and N are multiples of its extents."""
    rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        ks = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0.0)
        b = tl.load(b_ptr + columns[None, :] * K + ks[:, None], mask=ks[:, None] < K, other=0.0)
        acc += tl.dot(a, b)
    return acc.to(tl.float16), rows[:, None] * N + columns[None, :]


@jit
def one_axis(a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr,
             BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    tile, across = tl.program_id(0), tl.cdiv(N, BN)
    c, at = tile_of(a_ptr, b_ptr, tile // across, tile % across, M, N, K, BM, BN, BK)
    tl.store(c_ptr + at, c)


@jit
def two_axes(a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr,
             BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    row, column = tl.program_id(0), tl.program_id(1)
    c, at = tile_of(a_ptr, b_ptr, row, column, M, N, K, BM, BN, BK)
    tl.store(c_ptr + at, c)


@jit
def in_turns(a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr,
             BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        c, at = tile_of(a_ptr, b_ptr, tile // across, tile % across, M, N, K, BM, BN, BK)
        tl.store(c_ptr + at, c)


@jit
def problems(a_ptrs, b_ptrs, c_ptrs, sizes_ptr, lds_ptr, groups, PROGRAMS: tl.constexpr,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Several matmuls, found in memory with their sizes and strides."""
    tile = tl.program_id(0)
    end = 0
    for g in range(groups):
        M, N = tl.load(sizes_ptr + g * 3), tl.load(sizes_ptr + g * 3 + 1)
        K = tl.load(sizes_ptr + g * 3 + 2)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        if tile >= end and tile < end + tiles:
            a_ptr = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            lda, ldb = tl.load(lds_ptr + g * 3), tl.load(lds_ptr + g * 3 + 1)
            ldc = tl.load(lds_ptr + g * 3 + 2)
            a = tl.make_tensor_descriptor(a_ptr, [M, K], [lda, 1], [BM, BK])
            b = tl.make_tensor_descriptor(b_ptr, [N, K], [ldb, 1], [BN, BK])
            c = tl.make_tensor_descriptor(c_ptr, [M, N], [ldc, 1], [BM, BN])
            while tile >= end and tile < end + tiles:
                row, column = (tile - end) // across * BM, (tile - end) % across * BN
                acc = tl.zeros((BM, BN), dtype=tl.float32)
                for k in range(0, tl.cdiv(K, BK)):
                    acc += tl.dot(a.load([row, k * BK]), b.load([column, k * BK]).T)
                c.store([row, column], acc.to(tl.float16))
                tile += PROGRAMS
        end += tiles


@jit
def problem_pointers(a_ptrs, b_ptrs, c_ptrs, sizes_ptr, lds_ptr, groups, PROGRAMS: tl.constexpr,
                     BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Several matmuls a @ b by tiles of pointers; extents are multiples of the tiles'."""
    tile = tl.program_id(0)
    end = 0
    for g in range(groups):
        M, N = tl.load(sizes_ptr + g * 3), tl.load(sizes_ptr + g * 3 + 1)
        K = tl.load(sizes_ptr + g * 3 + 2)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        while tile >= end and tile < end + tiles:
            lda, ldb = tl.load(lds_ptr + g * 3), tl.load(lds_ptr + g * 3 + 1)
            ldc = tl.load(lds_ptr + g * 3 + 2)
            a_ptr = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            rows = (tile - end) // across * BM + tl.arange(0, BM)
            columns = (tile - end) % across * BN + tl.arange(0, BN)
            ks = tl.arange(0, BK)
            a_tile = a_ptr + rows[:, None] * lda + ks[None, :]
            b_tile = b_ptr + ks[:, None] * ldb + columns[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(0, tl.cdiv(K, BK)):
                # The alignment of what is loaded is nobody's to know, so that the kernel says it.
                tl.multiple_of(a_tile, [16, 16])
                tl.multiple_of(b_tile, [16, 16])
                acc += tl.dot(tl.load(a_tile), tl.load(b_tile))
                a_tile += BK
                b_tile += BK * ldb
            tl.store(c_ptr + rows[:, None] * ldc + columns[None, :], acc.to(tl.float16))
            tile += PROGRAMS
        end += tiles
