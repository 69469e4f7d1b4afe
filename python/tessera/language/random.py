# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers computed from a seed and a counter, without a state: Philox-4x32-10.

Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (2011). The same
seed and offset give the same bits on every target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tessera.language.creation as creation
import tessera.language.math as math
import tessera.language.program as program
import tessera.language.types as types
from tessera.language.debug import static_assert
from tessera.language.standard import library
from tessera.language.tensor import Operand, tensor

if TYPE_CHECKING:
    constexpr = Any  # to a type checker, a constant may be anything
else:
    from tessera.language.types import constexpr

__all__ = [
    "pair_uniform_to_normal",
    "philox",
    "philox_impl",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "uint_to_uniform_float",
]

# The paper's multipliers, and the constants (golden ratio, sqrt(3) - 1) added to the key.
_MULTIPLIERS_32 = types.constexpr((0xD2511F53, 0xCD9E8D57))
_KEYS_32 = types.constexpr((0x9E3779B9, 0xBB67AE85))
_MULTIPLIERS_64 = types.constexpr((0xD2E7470EE14C6C93, 0xCA5A826395121157))
_KEYS_64 = types.constexpr((0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B))


@library
def philox_impl(
    c0: tensor, c1: tensor, c2: tensor, c3: tensor, k0: tensor, k1: tensor, n_rounds: constexpr = 10
) -> tuple[tensor, tensor, tensor, tensor]:
    """`n_rounds` of Philox on the counter (c0, c1, c2, c3) with the key (k0, k1).

    All are uint32, or all uint64. Returns the four words.
    Source: Triton language 3.6/3.9.

    Example:
        zero = tl.zeros((4,), tl.uint32)
        a, _, _, _ = tl.philox_impl(zero, zero, zero, zero, zero, zero)
        assert a == 0x6627E8D5  # as philox of the seed 0
        few, _, _, _ = tl.philox_impl(zero, zero, zero, zero, zero, zero, n_rounds=7)
        assert few != a  # faster, less thoroughly tested
    """
    dtype: constexpr = c0.dtype
    static_assert(dtype == types.uint32 or dtype == types.uint64, "philox takes uint32 or uint64")
    multipliers: constexpr = _MULTIPLIERS_32 if dtype == types.uint32 else _MULTIPLIERS_64
    keys: constexpr = _KEYS_32 if dtype == types.uint32 else _KEYS_64
    a: constexpr = multipliers[0]
    b: constexpr = multipliers[1]
    key0: constexpr = keys[0]
    key1: constexpr = keys[1]
    for _ in program.static_range(n_rounds):
        old0, old2 = c0, c2
        c0 = math.umulhi(old2, b) ^ c1 ^ k0
        c2 = math.umulhi(old0, a) ^ c3 ^ k1
        c1 = old2 * b
        c3 = old0 * a
        k0 = k0 + key0
        k1 = k1 + key1
    return c0, c1, c2, c3


@library
def philox(
    seed: Operand, c0: Operand, c1: Operand, c2: Operand, c3: Operand, n_rounds: constexpr = 10
) -> tuple[tensor, tensor, tensor, tensor]:
    """Four random words for a seed (64 bits) and a counter of four words.

    The words are uint32 if c0 has 32 bits, and uint64 if it has 64.
    Source: Triton language 3.6/3.9.

    Example:
        counter = tl.zeros((4,), tl.int32)
        a, b, c, d = tl.philox(0, counter, 0, 0, 0)
        assert a == 0x6627E8D5 and b == 0xE169C58D
        assert c == 0xBC57AC4C and d == 0x9B00DBD8
    """
    seed = creation.to_tensor(seed)
    static_assert(seed.dtype.is_int(), "the seed of random numbers is an integer")
    key = creation.cast(seed, types.uint64)
    c0 = creation.to_tensor(c0)
    word: constexpr = types.uint32 if c0.dtype.primitive_bitwidth == 32 else types.uint64
    if word == types.uint32:
        k0 = creation.cast(key & 0xFFFFFFFF, types.uint32)
        k1 = creation.cast(key >> 32, types.uint32)
    else:
        k0 = key
        k1 = key * 0
    return philox_impl(
        creation.cast(c0, word),
        creation.cast(creation.to_tensor(c1), word),
        creation.cast(creation.to_tensor(c2), word),
        creation.cast(creation.to_tensor(c3), word),
        k0,
        k1,
        n_rounds,
    )


@library
def randint4x(
    seed: Operand, offset: Operand, n_rounds: constexpr = 10
) -> tuple[tensor, tensor, tensor, tensor]:
    """Four random uint32 for each element of `offset`: cheaper than four calls of `randint`.

    Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 256)
        a, b, c, d = tl.randint4x(42, i)
        assert a == tl.randint(42, i)
        assert a != b
    """
    offset = creation.to_tensor(offset)
    static_assert(offset.dtype.is_int(), "the offset of random numbers is an integer")
    low = creation.cast(offset, types.uint32)
    zero = low * 0
    if offset.dtype.primitive_bitwidth > 32:
        high = creation.cast(offset >> 32, types.uint32)
    else:
        high = zero
    return philox(seed, low, high, zero, zero, n_rounds)


@library
def randint(seed: Operand, offset: Operand, n_rounds: constexpr = 10) -> tensor:
    """A random uint32 for each element of `offset`.

    The two halves of a 64-bit offset are words of the counter. So an offset below 2**32 gives the
    same number in 32 and in 64 bits. Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 1024)
        x = tl.randint(42, i)
        assert x.dtype == tl.uint32
        assert tl.abs(tl.sum(x % 2) - 512) < 64  # as many even numbers as odd ones
    """
    word, _, _, _ = randint4x(seed, offset, n_rounds)
    return word


@library
def uint_to_uniform_float(x: tensor) -> tensor:
    """A random word as a float32 in [0, 1). Source: Triton language 3.6/3.9.

    Example:
        bits = tl.randint(42, tl.arange(0, 256))
        x = tl.uint_to_uniform_float(bits)
        assert x == tl.rand(42, tl.arange(0, 256))
        assert tl.max(x) < 1.0
    """
    narrow: constexpr = x.dtype.primitive_bitwidth == 32
    scale: constexpr = 4.6566127342e-10 if narrow else 1.0842020432385337e-19
    x = creation.cast(x, types.int32 if narrow else types.int64, bitcast=True)
    # The upper half mirrors the lower: the magnitude is uniform and never 2**31 itself.
    x = math.where(x < 0, -x - 1, x)
    return x * scale


@library
def rand(seed: Operand, offset: Operand, n_rounds: constexpr = 10) -> tensor:
    """A float32, uniform in [0, 1), for each element of `offset`.

    Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 1024)
        keep = tl.rand(42, i) >= 0.25  # of a dropout: the same in each run
        assert tl.abs(tl.sum(keep) / 1024 - 0.75) < 0.05
        assert tl.rand(42, i + 1) != tl.rand(42, i)
    """
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@library
def rand4x(
    seed: Operand, offsets: Operand, n_rounds: constexpr = 10
) -> tuple[tensor, tensor, tensor, tensor]:
    """Four floats, uniform in [0, 1), for each element of `offsets`.

    Source: Triton language 3.6/3.9.

    Example:
        a, b, c, d = tl.rand4x(42, tl.arange(0, 256))  # four tiles of [256]
        mean = tl.sum(a + b + c + d) / 1024
        assert tl.abs(mean - 0.5) < 0.05
        assert tl.max(a) < 1.0
    """
    i0, i1, i2, i3 = randint4x(seed, offsets, n_rounds)
    return (
        uint_to_uniform_float(i0),
        uint_to_uniform_float(i1),
        uint_to_uniform_float(i2),
        uint_to_uniform_float(i3),
    )


@library
def pair_uniform_to_normal(u1: tensor, u2: tensor) -> tuple[tensor, tensor]:
    """Two normal numbers out of two uniform ones, after Box and Muller.

    Source: Triton language 3.6/3.9.

    Example:
        u1, u2, _, _ = tl.rand4x(42, tl.arange(0, 1024))
        x, y = tl.pair_uniform_to_normal(u1, u2)
        assert tl.abs(tl.sum(x) / 1024) < 0.1  # the mean
        assert tl.abs(tl.sum(y * y) / 1024 - 1) < 0.2  # the variance
    """
    u1 = math.maximum(1.0e-7, u1)
    angle = 6.283185307179586 * u2
    radius = math.sqrt(-2.0 * math.log(u1))
    return radius * math.cos(angle), radius * math.sin(angle)


@library
def randn(seed: Operand, offset: Operand, n_rounds: constexpr = 10) -> tensor:
    """A float32 of the standard normal distribution for each element of `offset`.

    Source: Triton language 3.6/3.9.

    Example:
        x = tl.randn(42, tl.arange(0, 1024))
        assert tl.abs(tl.sum(x) / 1024) < 0.1  # the mean
        assert tl.abs(tl.sum(x * x) / 1024 - 1) < 0.2  # the variance
    """
    i1, i2, _, _ = randint4x(seed, offset, n_rounds)
    number, _ = pair_uniform_to_normal(uint_to_uniform_float(i1), uint_to_uniform_float(i2))
    return number


@library
def randn4x(
    seed: Operand, offset: Operand, n_rounds: constexpr = 10
) -> tuple[tensor, tensor, tensor, tensor]:
    """Four floats of the standard normal distribution for each element of `offset`.

    Source: Triton language 3.6/3.9.

    Example:
        i = tl.arange(0, 256)
        a, b, c, d = tl.randn4x(42, i)  # four tiles of [256], for one call of philox
        assert tl.abs(tl.sum(a + b + c + d) / 1024) < 0.1
    """
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    n1, n2 = pair_uniform_to_normal(u1, u2)
    n3, n4 = pair_uniform_to_normal(u3, u4)
    return n1, n2, n3, n4
