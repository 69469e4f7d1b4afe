# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots in AMX's tile registers. Where the CPU has none, an emulator in this process executes its
instructions (unittest/Emulator), one by one, so shapes are small."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from execution.running import draw, host_has, make_kernel
from execution.test_dot import dot
from execution.test_dot_instructions import check_bytes
from execution.test_few_rows import inputs, nibbles, product
from execution.test_packed_weights import REMARK, check_product

import tessera
import tessera.language as tl
from tessera import _C

EMULATOR = Path(__file__).parents[3] / "build/dev/unittest/libAMXEmulator.so"
OPTIONS = {"cpu": "x86-64-v4", "features": "+amx-tile,+amx-bf16,+amx-int8"}
BYTES, BF16 = "llvm.x86.tdpbssd", "llvm.x86.tdpbf16ps"


@functools.cache
def count_dots() -> Callable[[], int] | None:
    """The number of emulated dots so far, as a function. None if the CPU has AMX. Loads the
    emulator, for the rest of this process."""
    if "+amx-tile" in _C.host_info()["features"].split(","):
        return None
    library = ctypes.CDLL(str(EMULATOR), mode=ctypes.RTLD_GLOBAL)
    library.tessera_install_amx_emulator()
    library.tessera_emulated_tile_dots.restype = ctypes.c_long
    return library.tessera_emulated_tile_dots


pytestmark = [
    pytest.mark.skipif(not host_has("x86-64-v4"), reason="no AVX-512"),
    pytest.mark.skipif(
        "+amx-tile" not in _C.host_info()["features"].split(",") and not EMULATOR.exists(),
        reason="no AMX, and no emulator of a development build",
    ),
]


@pytest.fixture(autouse=True)
def uses_tiles():
    """Fails if a test executes no dot in tile registers."""
    count = count_dots()
    before = count() if count else 0
    yield
    assert count is None or count() > before


def launch(a: np.ndarray, b: np.ndarray, c: np.ndarray, intrinsic: str) -> None:
    """c += a @ b, by this instruction."""
    sizes = {"M": len(a), "N": b.shape[1], "K": len(b), "TRANS_A": False, "TRANS_B": False}
    compiled = dot.warmup(a, b, c, **sizes, ACC=True, **OPTIONS)
    (remark,) = [text for text in compiled.metadata["remarks"] if "dot of" in text]
    assert intrinsic in remark
    dot[(1,)](a, b, c, **sizes, ACC=True, **OPTIONS)


# One register; blocks of one row of registers, which take turns; blocks of two rows with a row
# left over; a single column; more steps of k than are packed at a time.
SHAPES = [(16, 16, 64), (16, 128, 64), (48, 48, 128), (64, 16, 64), (32, 32, 1024)]


@pytest.mark.parametrize("shape", SHAPES)
def test_bytes(rng, shape: tuple[int, int, int]) -> None:
    check_bytes(rng, shape, functools.partial(launch, intrinsic=BYTES))


@pytest.mark.parametrize("shape", SHAPES)
def test_bf16(rng, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = draw(rng, (m, k), "bfloat16"), draw(rng, (k, n), "bfloat16")
    c = rng.standard_normal((m, n)).astype(np.float32)
    exact = c + a.astype(np.float64) @ b.astype(np.float64)
    bound = np.abs(c) + np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    launch(a, b, c, BF16)
    # Products are exact, and each of k sums is off by at most half an ulp of what it sums.
    assert (np.abs(c - exact) <= k * 2.0**-24 * bound).all()


# Blocks of words of b are transposed: one column of registers, and three; two steps of k.
@pytest.mark.parametrize("columns", [16, 48])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
def test_columns_of_b(rng, dtype: str, columns: int) -> None:
    x, w, _ = inputs(rng, dtype, 32, columns, 128)
    c = np.ones((32, columns), np.int32 if dtype == "int8" else np.float32)
    sizes = {"M": 32, "N": columns, "K": 128, "TRANS_A": False, "TRANS_B": True, "ACC": True}
    dot[(1,)](x, w, c, **sizes, **OPTIONS)
    np.testing.assert_array_equal(c, 1 + x.astype(np.float64) @ w.astype(np.float64).T)


@pytest.mark.parametrize("dtypes", [("float8e4nv", "float8e5"), ("float8e5", "float8e4nv")])
def test_8_bit_floats(rng, dtypes: tuple[str, str]) -> None:
    """Each has its denormal numbers, which bf16 has as normal ones."""
    types = {"float8e4nv": ml_dtypes.float8_e4m3fn, "float8e5": ml_dtypes.float8_e5m2}
    a, b = (
        (rng.standard_normal(shape) * scale).astype(types[name])
        for shape, name, scale in (((48, 96), dtypes[0], 0.01), ((96, 32), dtypes[1], 1))
    )
    c = np.zeros((48, 32), np.float32)
    kernel = make_kernel("""
@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr):
    m, k, n = tl.arange(0, 48), tl.arange(0, 96), tl.arange(0, 32)
    a = tl.load(a_ptr + m[:, None] * 96 + k[None, :])
    b = tl.load(b_ptr + k[:, None] * 32 + n[None, :])
    tl.store(c_ptr + m[:, None] * 32 + n[None, :], tl.dot(a, b))
""")
    kernel[(1,)](a, b, c, **OPTIONS)
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert (np.abs(c - a @ b) <= 96 * 2.0**-24 * (np.abs(a) @ np.abs(b))).all()


def test_denormal_operands_are_zero() -> None:
    a, b = np.zeros((16, 32), np.uint16), np.zeros((32, 16), np.uint16)
    a[0, 0], b[0] = 1, 0x7F00  # the smallest number, times a large one
    c = np.ones((16, 16), np.float32)
    launch(a.view(ml_dtypes.bfloat16), b.view(ml_dtypes.bfloat16), c, BF16)
    np.testing.assert_array_equal(c, np.ones_like(c))


MATMUL = """
@tessera.jit(noinline=True)
def multiply(a, b):
    return tl.dot(a, b)

@tessera.jit
def kernel(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr, STEP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    N = tl.num_programs(1) * BLOCK
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, STEP):
        k = first + tl.arange(0, STEP)
        a = tl.load(a_ptr + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0)
        b = tl.load(b_ptr + k[:, None] * N + j[None, :], mask=k[:, None] < K, other=0)
        CALL
    tl.store(c_ptr + i[:, None] * N + j[None, :], total)
"""


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("call", ["total = tl.dot(a, b, total)", "total += multiply(a, b)"])
def test_programs(rng, call: str, num_threads: int) -> None:
    """Programs of a thread share one configuration, which a device function uses, too."""
    kernel = make_kernel(MATMUL.replace("CALL", call))
    a, b = draw(rng, (96, 80), "bfloat16"), draw(rng, (80, 64), "bfloat16")
    c = np.full((96, 64), np.nan, np.float32)
    kernel[(3, 2)](a, b, c, 80, BLOCK=32, STEP=32, num_threads=num_threads, **OPTIONS)
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-4)


def test_iterations_share_a_dot(rng) -> None:
    """Loops of no iteration, of fewer than share a dot, of all that do, and of some more."""
    kernel = make_kernel(MATMUL.replace("CALL", "total = tl.dot(a, b, total)"))
    for k in (0, 32, 256, 352):
        a, b = draw(rng, (32, k), "bfloat16"), draw(rng, (k, 32), "bfloat16")
        c = np.full((32, 32), np.nan, np.float32)
        compiled = kernel[(1, 1)](a, b, c, k, BLOCK=32, STEP=32, **OPTIONS)
        assert any("dot of 32x256" in text for text in compiled.metadata["remarks"])
        want = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
def test_kept_operands(rng, dtype: str) -> None:
    """Blocks of several iterations and a rest, a panel of one column of registers, and stores to
    what is kept: all as in the interpreter, and as in calls that keep nothing."""
    n, block, longest = 144, (32, 48, 64), 576 if dtype == "int8" else 320
    of = {"int8": np.int8, "bfloat16": ml_dtypes.bfloat16}[dtype]
    sums = tl.int32 if dtype == "int8" else tl.float32
    for k, places, threads in ((longest, (0, 1, 2), 1), (longest, (0, 1, 2), 64), (64, (0, 1, 0), 1), (64, (0, 1, 1), 1)):  # fmt: skip
        memory = rng.integers(-2, 3, (3, n * max(96, k))).astype(of)
        wants = memory.copy()
        for kernel, arrays, options in (
            (tessera.interpret(remainders), wants, {}),
            (remainders, memory, {**OPTIONS, "num_threads": threads}),
        ):
            compiled = kernel[(3, n // 48)](
                *(arrays[place] for place in places), n, k, SUM=sums,
                BM=block[0], BN=block[1], BK=block[2], **options,
            )  # fmt: skip
        assert any("kept for the next programs" in str(text) for text in compiled.remarks)
        np.testing.assert_array_equal(memory, wants)


@tessera.jit
def remainders(
    a_ptr, b_ptr, c_ptr, N, K, SUM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """c = a @ b modulo 3, exact in any order."""
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), SUM)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        total = tl.dot(a, tl.load(b_ptr + k[:, None] * N + n[None, :]), total)
    total = total - total // 3 * 3 if SUM == tl.int32 else total - tl.floor(total / 3) * 3
    tl.store(c_ptr + m[:, None] * N + n[None, :], total.to(c_ptr.dtype.element_ty))


# Whole registers; a single row of registers, whose columns take turns; rows that fill none.
@pytest.mark.parametrize("rows, block", [(64, 32), (16, 16), (5, 8)])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
def test_packed_weights(rng, dtype: str, rows: int, block: int) -> None:
    shape, tile = (rows, 112, 192), (block, 128, 128)
    (remark,) = check_product(rng, dtype, shape, tile, **OPTIONS)
    assert REMARK in remark and (BYTES if dtype == "int8" else BF16) in remark


# Sums of a loop, and of one dot; columns of two registers, more than one program.
@pytest.mark.parametrize(
    "shape", [(8, 32, 512, 16, 256), (8, 64, 256, 32, 256), (16, 16, 512, 16, 256)]
)
@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
def test_few_rows(rng, dtype: str, shape: tuple[int, ...]) -> None:
    m, n, k, bn, bk = shape
    x, w, out = inputs(rng, dtype, m, n, k)
    sums = tl.int32 if dtype == "int8" else tl.float32
    features = {**OPTIONS, "features": OPTIONS["features"] + ",+avx512vnni"}
    compiled = product[(n // bn,)](x, w, out, n, k, M=m, BN=bn, BK=bk, SUM=sums, **features)
    (remark,) = [text for text in compiled.metadata["remarks"] if "dot of" in text]
    assert (BYTES if dtype == "int8" else BF16) in remark and "few rows" in remark
    np.testing.assert_array_equal(out, x.astype(np.float64) @ w.astype(np.float64).T)


# Two dots on halves of bytes share a loop: 8 rows and several iterations, 16 rows and a single one.
@pytest.mark.parametrize("shape", [(8, 32, 1024, 32, 256), (16, 16, 512, 16, 256)])
def test_few_rows_of_decoded_weights(rng, shape: tuple[int, ...]) -> None:
    m, n, k, bn, bk = shape
    x = rng.integers(-128, 128, (m, k)).astype(np.int8)
    numbers = rng.integers(-8, 8, (n, k))
    low, high = numbers[:, : k // 2] + 8, numbers[:, k // 2 :] + 8
    w = (low | high << 4).astype(np.uint8).view(np.int8)
    out = np.zeros((m, n), np.int32)
    features = {**OPTIONS, "features": OPTIONS["features"] + ",+avx512vnni"}
    compiled = nibbles[(n // bn,)](x, w, out, n, k, M=m, BN=bn, BK=bk, SUM=tl.int32, **features)
    found = [text for text in compiled.metadata["remarks"] if "dot of" in text]
    assert len(found) == 2 and all(BYTES in text and "few rows" in text for text in found)
    np.testing.assert_array_equal(out, x.astype(np.int64) @ numbers.T)


def test_not_with_deterministic(rng) -> None:
    a, b = draw(rng, (16, 32), "bfloat16"), draw(rng, (32, 16), "bfloat16")
    c = np.zeros((16, 16), np.float32)
    sizes = {"M": 16, "N": 16, "K": 32, "TRANS_A": False, "TRANS_B": False, "ACC": True}
    compiled = dot.warmup(a, b, c, **sizes, deterministic=True, **OPTIONS)
    assert not any(BF16 in text for text in compiled.metadata["remarks"])
    # Whole numbers are exact in any order.
    bytes_ = np.ones((64, 64), np.int8)
    sums = np.zeros((64, 64), np.int32)
    sizes |= {"M": 64, "N": 64, "K": 64}
    compiled = dot.warmup(bytes_, bytes_, sums, **sizes, deterministic=True, **OPTIONS)
    assert any(BYTES in text for text in compiled.metadata["remarks"])
    dot[(1,)](bytes_, bytes_, sums, **sizes, deterministic=True, **OPTIONS)
    assert (sums == 64).all()


def test_failing_programs_release_the_registers(rng) -> None:
    """A launch that an assertion ends leaves the thread ready for the next one."""
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr, limit):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i[:, None] * 64 + i[None, :])
    tl.device_assert(tl.program_id(0) < limit, "too many")
    tl.store(out_ptr + i[:, None] * 64 + i[None, :], tl.dot(x, x))
""")
    x, out = np.ones((64, 64), np.int8), np.zeros((64, 64), np.int32)
    with pytest.raises(tessera.errors.TesseraError, match="too many"):
        kernel[(3,)](x, out, 1, debug=True, **OPTIONS)
    kernel[(1,)](x, out, 1, debug=True, **OPTIONS)
    assert (out == 64).all()
