# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots with an operand that the kernel decodes: packed integers, floats of the user's own.

What is decoded goes from registers to the tensor cores; runtime/test_machine_code.py looks
at that, here are the values. All are exact in f16, and so are sums of their products in f32.
"""

from __future__ import annotations

import numpy as np
import pytest

import tessera
import tessera.language as tl


@tessera.jit
def signed_nibbles(packed, SCALE: tl.constexpr):
    """Two integers of 4 bits a byte, the even one in the low half."""
    low, high = (packed & 15).to(tl.int8), (packed >> 4).to(tl.int8)
    low, high = (low ^ 8) - 8, (high ^ 8) - 8
    return tl.interleave(low.to(tl.float16), high.to(tl.float16)) * SCALE


@tessera.jit
def e2m1_pairs(packed, SCALE: tl.constexpr):
    """Two floats of 4 bits a byte: sign, two bits of exponent, one of mantissa."""
    low, high = (packed & 15).to(tl.uint16), (packed >> 4).to(tl.uint16)
    # The bits where float16 has them are the number 2^-14 times, denormal or not.
    low, high = ((low & 8) << 12) | ((low & 7) << 9), ((high & 8) << 12) | ((high & 7) << 9)
    both = tl.interleave(low, high).to(tl.float16, bitcast=True)
    return both * 16384.0 * SCALE


@tessera.jit
def e3m4(bits, SCALE: tl.constexpr):
    """A float of 8 bits that no machine has: three bits of exponent, four of mantissa."""
    wide = bits.to(tl.uint16)
    half = ((wide & 0x80) << 8) | ((wide & 0x7F) << 6)
    return half.to(tl.float16, bitcast=True) * 4096.0 * SCALE


@tessera.jit
def matmul(a_ptr, w_ptr, c_ptr, K, DECODE: tl.constexpr, PER_BYTE: tl.constexpr,
           SCALE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Rows of weights lie along K; those of a byte are neighbours."""
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    inner = tl.arange(0, BK // PER_BYTE)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :])
        at = (k // PER_BYTE + inner)[None, :]
        w = tl.load(w_ptr + columns[:, None] * (K // PER_BYTE) + at)
        acc = tl.dot(x, tl.trans(DECODE(w, SCALE)), acc)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)


def value_of(bits: int, exponents: int, mantissas: int) -> float:
    """What a float of so many bits is, with no infinity and no NaN."""
    bias, one = 2 ** (exponents - 1) - 1, 2**mantissas
    sign = -1.0 if bits >> (exponents + mantissas) else 1.0
    exponent, mantissa = bits // one % 2**exponents, bits % one
    if exponent == 0:
        return sign * mantissa / one * 2.0 ** (1 - bias)
    return sign * (1 + mantissa / one) * 2.0 ** (exponent - bias)


NIBBLES = [float(bits - 16 if bits >= 8 else bits) for bits in range(16)]
FORMATS = {
    "int4": (signed_nibbles, 2, NIBBLES),
    "e2m1": (e2m1_pairs, 2, [value_of(bits, 2, 1) for bits in range(16)]),
    "e3m4": (e3m4, 1, [value_of(bits, 3, 4) for bits in range(256)]),
}


def decoded(packed: np.ndarray, name: str) -> np.ndarray:
    """The weights as numbers, by the table."""
    _, per_byte, table = FORMATS[name]
    if per_byte == 2:
        packed = np.stack((packed & 15, packed >> 4), -1).reshape(len(packed), -1)
    return np.array(table)[packed]


@pytest.mark.parametrize("block", [(64, 32, 64), (32, 64, 64)], ids=["tall", "wide"])
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("name", FORMATS)
def test_decoded_in_the_kernel(run, rng, name, warps, block):
    decode, per_byte, _ = FORMATS[name]
    bm, bn, bk = block
    k = 2 * bk
    a = rng.integers(-4, 5, (bm, k)).astype(np.float16)
    w = rng.integers(0, 256, (bn, k // per_byte)).astype(np.uint8)
    # Every pattern is there.
    w.reshape(-1)[:256] = rng.permutation(256)
    c = np.full((bm, bn), np.nan, np.float32)
    run(matmul, (1,), a, w, c, k, DECODE=decode, PER_BYTE=per_byte, SCALE=0.5, BM=bm, BN=bn,
        BK=bk, num_warps=warps)  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float64) @ decoded(w, name).T / 2)
