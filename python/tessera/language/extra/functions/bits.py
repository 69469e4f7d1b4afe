# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of integers and of bits."""

from __future__ import annotations

from typing import Any

import tessera.language.types as types
from tessera.language.creation import cast
from tessera.language.extra.functions.basics import signed, to_bits, to_float, unsigned, where
from tessera.language.tensor import emit_one, tensor


def _repeated(byte: int, x: tensor) -> int:
    """A byte in each byte of an integer as wide as x."""
    return int.from_bytes(bytes([byte]) * (x.dtype.primitive_bitwidth // 8), "little")


def _ones(x: tensor) -> tensor:
    """How many bits of an unsigned integer are one, in its type."""
    width = x.dtype.primitive_bitwidth
    x = x - ((x >> 1) & _repeated(0x55, x))
    x = (x & _repeated(0x33, x)) + ((x >> 2) & _repeated(0x33, x))
    x = (x + (x >> 4)) & _repeated(0x0F, x)
    return (x * _repeated(0x01, x)) >> (width - 8)


def popc(x: tensor) -> tensor:
    """How many bits are one."""
    return cast(_ones(unsigned(x)), types.int32)


def clz(x: tensor) -> tensor:
    """How many bits are before the first that is one."""
    bits = unsigned(x)
    width = bits.dtype.primitive_bitwidth
    shift = 1
    while shift < width:
        bits = bits | (bits >> shift)
        shift *= 2
    return width - cast(_ones(bits), types.int32)


def ffs(x: tensor) -> tensor:
    """The place of the lowest bit that is one, counted from 1; 0 if none is."""
    bits = unsigned(x)
    lowest = bits & (~bits + 1)
    return where(bits == 0, 0, cast(_ones(lowest - 1), types.int32) + 1)


def brev(x: tensor) -> tensor:
    """The bits in the opposite order."""
    bits = unsigned(x)
    for shift, byte in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        mask = _repeated(byte, bits)
        bits = ((bits >> shift) & mask) | ((bits & mask) << shift)
    if bits.dtype.primitive_bitwidth == 64:
        for shift, mask in ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF)):
            bits = ((bits >> shift) & mask) | ((bits & mask) << shift)
        return signed((bits >> 32) | (bits << 32))
    bits = ((bits >> 8) & 0x00FF00FF) | ((bits & 0x00FF00FF) << 8)
    return signed((bits >> 16) | (bits << 16))


def byte_perm(x: tensor, y: tensor, selector: tensor) -> tensor:
    """The bytes of (y, x) that four digits of three bits choose."""
    low, high, digits = unsigned(x), unsigned(y), unsigned(selector)
    result: Any = None
    for place in range(4):
        digit = (digits >> (4 * place)) & 7
        byte = (where(digit < 4, low, high) >> ((digit & 3) * 8)) & 0xFF
        shifted = byte << (8 * place)
        result = shifted if result is None else result | shifted
    return signed(result)


def mulhi(x: tensor, y: tensor) -> tensor:
    """The upper half of the product."""
    high = emit_one("umulhi", unsigned(x), unsigned(y))
    if x.dtype.is_int_unsigned():
        return high
    return signed(high) - where(x < 0, y, 0) - where(y < 0, x, 0)


def mul24(x: tensor, y: tensor) -> tensor:
    """The lower half of the product of the low 24 bits."""
    return ((x << 8) >> 8) * ((y << 8) >> 8)


def sad(x: tensor, y: tensor, z: tensor) -> tensor:
    """z + |x - y|."""
    difference = where(x > y, unsigned(x) - unsigned(y), unsigned(y) - unsigned(x))
    total = difference + z
    return total if x.dtype.is_int_unsigned() else signed(total)


def hadd(x: tensor, y: tensor) -> tensor:
    """(x + y) / 2, rounded down, without overflow."""
    return (x & y) + ((x ^ y) >> 1)


def rhadd(x: tensor, y: tensor) -> tensor:
    """(x + y + 1) / 2, rounded down, without overflow."""
    return (x | y) - ((x ^ y) >> 1)


def as_float(x: tensor) -> tensor:
    """The float of the same bits."""
    return to_float(x)


def as_int(x: tensor) -> tensor:
    """The signed integer of the same bits."""
    return to_bits(x)


def hiloint2double(high: tensor, low: tensor) -> tensor:
    """The float64 of two halves."""
    wide = cast(unsigned(low), types.int64) | (cast(high, types.int64) << 32)
    return to_float(wide)


def double2loint(x: tensor) -> tensor:
    """The lower half of the bits."""
    return cast(to_bits(x), types.int32)


def double2hiint(x: tensor) -> tensor:
    """The upper half of the bits."""
    return cast(to_bits(x) >> 32, types.int32)
