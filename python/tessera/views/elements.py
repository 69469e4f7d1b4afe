# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views in kernels: aggregates that load and store elements of 4 bits, powers of 2 and complex numbers,
and load tiles of packed weights."""

from __future__ import annotations

import tessera.language as tl
from tessera.language.aggregate import aggregate
from tessera.language.callables import constexpr_function
from tessera.runtime.jit import jit

# --- Four bits ------------------------------------------------------------------------------


@jit
def _decode(code, KIND: tl.constexpr):
    """The value of a code of 4 bits, in the lower bits of an int32."""
    if KIND == "uint4":
        return code.to(tl.uint8)
    elif KIND == "int4":
        return ((code ^ 8) - 8).to(tl.int8)
    else:
        exponent, mantissa = (code >> 1) & 3, code & 1
        # In halves: 0, 1, 2, 3, 4, 6, 8, 12.
        halves = tl.where(exponent == 0, mantissa, (mantissa + 2) << tl.maximum(exponent - 1, 0))
        size = halves.to(tl.float32) * 0.5
        return tl.where(code >= 8, -size, size)


@jit
def _encode(value, KIND: tl.constexpr):
    """The code of a value: integers keep their lower 4 bits; floats are rounded to the nearest, to even
    codes in a tie, and limited to 6. A NaN becomes a 0."""
    if KIND == "float4":
        x = tl.to_tensor(value).to(tl.float32)
        size = tl.abs(x)
        code = (size > 0.25).to(tl.int32) + (size >= 0.75).to(tl.int32)
        code += (size > 1.25).to(tl.int32) + (size >= 1.75).to(tl.int32)
        code += (size > 2.5).to(tl.int32) + (size >= 3.5).to(tl.int32) + (size > 5).to(tl.int32)
        return tl.where(x.to(tl.int32, bitcast=True) < 0, code | 8, code)
    else:
        return tl.to_tensor(value).to(tl.int32) & 15


@constexpr_function
def _paired(shape):
    shape = [getattr(each, "value", each) for each in getattr(shape, "value", shape)]
    if not shape or shape[-1] % 2:
        raise ValueError("elements of 4 bits are stored in pairs: the last extent has to be even")
    return (*shape[:-1], shape[-1] // 2, 2)


@jit
def _halves(x):
    return tl.split(tl.reshape(x, _paired(x.shape)))


@aggregate
class Nibbles:
    """An array of 4-bit elements: `int4`, `uint4` and `float4` make it."""

    data: tl.tensor
    """A pointer to bytes."""
    kind: tl.constexpr
    """"int4", "uint4" or "float4"."""
    per_byte: tl.constexpr
    """Elements in a byte: 2, of which the first has the lower bits; 1 as ml_dtypes has them."""

    @jit
    def load(self, offsets, mask=None, other=None):
        """The values at `offsets`, in elements; `other` where the mask is false."""
        offsets = tl.to_tensor(offsets)
        if self.per_byte == 2:
            byte = tl.load(self.data + (offsets >> 1), mask=mask).to(tl.int32)
            value = _decode((byte >> ((offsets & 1) * 4).to(tl.int32)) & 15, self.kind)
        else:
            value = _decode(tl.load(self.data + offsets, mask=mask).to(tl.int32) & 15, self.kind)
        if mask is not None:
            value = tl.where(mask, value, (0 if other is None else other)).to(value.dtype)
        return value

    @jit
    def store(self, offsets, value, mask=None):
        """Stores values at `offsets`, in elements.

        With two elements in a byte, neighbours along the last dimension have to be those of one byte:
        offsets 2i and 2i + 1. If the mask is false for one of the two, that one is kept.
        """
        offsets = tl.to_tensor(offsets)
        code = tl.broadcast_to(_encode(value, self.kind), offsets.shape)
        if self.per_byte == 1:
            tl.store(self.data + offsets, code.to(tl.uint8), mask=mask)
        else:
            first, second = _halves(offsets)
            low, high = _halves(code)
            is_pair = ((first & 1) == 0) & (second == first + 1)
            place = self.data + (first >> 1)
            if mask is None:
                tl.device_assert(is_pair, "neighbours are the two elements of one byte")
                tl.store(place, (low | (high << 4)).to(tl.uint8))
            else:
                has_low, has_high = _halves(tl.broadcast_to(mask, offsets.shape))
                stored = has_low | has_high
                tl.device_assert(is_pair | ~stored, "neighbours are the two elements of one byte")
                old = tl.load(place, mask=stored & ~(has_low & has_high), other=0).to(tl.int32)
                low = tl.where(has_low, low, old & 15)
                high = tl.where(has_high, high << 4, old & 240)
                tl.store(place, (low | high).to(tl.uint8), mask=stored)


# --- Powers of 2 ----------------------------------------------------------------------------


@aggregate
class Exponents:
    """An array of scales of 8 bits, powers of 2: `float8_e8m0` makes it."""

    data: tl.tensor
    """A pointer to bytes."""

    @jit
    def load(self, offsets, mask=None, other=None):
        """2^(code - 127) at `offsets`; NaN of code 255, and `other` where the mask is false."""
        code = tl.load(self.data + offsets, mask=mask).to(tl.int32)
        bits = tl.where(code == 0, 1 << 22, code << 23)
        bits = tl.where(code == 255, 0x7FC00000, bits)
        value = bits.to(tl.float32, bitcast=True)
        if mask is not None:
            value = tl.where(mask, value, (0.0 if other is None else other)).to(tl.float32)
        return value

    @jit
    def store(self, offsets, value, mask=None):
        """Stores the nearest powers of 2, the larger one in a tie. 0 becomes 2^-127, and numbers that
        are negative or at least 1.5 * 2^127 become NaN."""
        offsets = tl.to_tensor(offsets)
        bits = tl.broadcast_to(tl.to_tensor(value).to(tl.float32), offsets.shape)
        bits = bits.to(tl.int32, bitcast=True)
        size = bits & 0x7FFFFFFF
        exponent = (size >> 23) + ((size >> 22) & 1)
        code = tl.where(size < 0x00800000, (size >= 0x00600000).to(tl.int32), exponent)
        code = tl.where(((bits < 0) & (size != 0)) | (code > 255), 255, code)
        tl.store(self.data + offsets, code.to(tl.uint8), mask=mask)


# --- Complex numbers ------------------------------------------------------------------------


@aggregate
class Complex:
    """Complex numbers in a kernel: a tile of real and one of imaginary parts."""

    re: tl.tensor
    im: tl.tensor

    @jit
    def __add__(self, other):
        if isinstance(other, Complex):
            return Complex(self.re + other.re, self.im + other.im)
        return Complex(self.re + other, self.im)

    @jit
    def __radd__(self, other):
        return Complex(other + self.re, self.im)

    @jit
    def __sub__(self, other):
        if isinstance(other, Complex):
            return Complex(self.re - other.re, self.im - other.im)
        return Complex(self.re - other, self.im)

    @jit
    def __rsub__(self, other):
        return Complex(other - self.re, -self.im)

    @jit
    def __mul__(self, other):
        if isinstance(other, Complex):
            re = self.re * other.re - self.im * other.im
            return Complex(re, self.re * other.im + self.im * other.re)
        return Complex(self.re * other, self.im * other)

    @jit
    def __rmul__(self, other):
        return Complex(other * self.re, other * self.im)

    @jit
    def __truediv__(self, other):
        if isinstance(other, Complex):
            # The larger part is divided by first, so that squares do not overflow.
            by_re = tl.abs(other.re) >= tl.abs(other.im)
            large, small = tl.where(by_re, other.re, other.im), tl.where(by_re, other.im, other.re)
            ratio = small / large
            total = large + small * ratio
            a, b = tl.where(by_re, self.re, self.im), tl.where(by_re, self.im, self.re)
            im = (b - a * ratio) / total
            return Complex((a + b * ratio) / total, tl.where(by_re, im, -im))
        return Complex(self.re / other, self.im / other)

    @jit
    def __neg__(self):
        return Complex(-self.re, -self.im)

    @jit
    def conj(self):
        """The conjugate."""
        return Complex(self.re, -self.im)

    @jit
    def norm(self):
        """The square of the absolute value."""
        return self.re * self.re + self.im * self.im


@aggregate
class ComplexView:
    """An array of complex numbers: `complex` makes it."""

    data: tl.tensor
    """A pointer to real parts, each with its imaginary part behind it."""

    @jit
    def load(self, offsets, mask=None, other=0):
        """The numbers at `offsets`, counted in complex numbers; the real number `other` where the mask
        is false."""
        place = self.data + tl.to_tensor(offsets).to(tl.int64) * 2  # twice an int32 may be none
        if mask is None:
            return Complex(tl.load(place), tl.load(place + 1))
        re = tl.load(place, mask=mask, other=other)
        return Complex(re, tl.load(place + 1, mask=mask, other=0))

    @jit
    def store(self, offsets, value, mask=None):
        """Stores `Complex` numbers, or real ones, at `offsets`."""
        offsets = tl.to_tensor(offsets)
        place = self.data + offsets.to(tl.int64) * 2
        if isinstance(value, Complex):
            tl.store(place, value.re, mask=mask)
            tl.store(place + 1, value.im, mask=mask)
        else:
            tl.store(place, value, mask=mask)
            tl.store(place + 1, tl.zeros_like(offsets), mask=mask)


# --- Packed weights -------------------------------------------------------------------------

# A CPU's matrix instruction multiplies words of 32 bits, each of which holds neighbours along k of one
# column. A panel has 16 columns, whose words are a cache line. So a panel is one stream. The compiler
# for CPUs finds the load of a tile, and reads the words in place (docs/Limits.md, Packed weights).


@aggregate
class PackedWeights:
    """A matrix of K rows and N columns as `pack_weights` packs it."""

    data: tl.tensor
    """A pointer to (panels, words, 16, steps) elements."""
    rows: tl.tensor
    """K, with the zeros behind the last row."""
    cols: tl.tensor
    """N, with the zeros behind the last column."""
    steps: tl.constexpr
    """Rows of a word: 4 of int8, 2 of bfloat16."""

    @jit
    def load(self, row, column, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
        """The tile of BLOCK_K rows and BLOCK_N columns that begins at a row and a column.

        The row is a multiple of `steps`, and so is BLOCK_K. The column is a multiple of 16. BLOCK_N is
        one whose quotient is an extent that `tl.arange` takes. The tile lies within the padded matrix.
        """
        tl.static_assert(BLOCK_K % self.steps == 0, "BLOCK_K has to be a multiple of w.steps")
        tl.static_assert(BLOCK_N % 16 == 0, "BLOCK_N has to be a multiple of 16")
        tl.device_assert(row % self.steps == 0, "a row that begins a tile is a multiple of w.steps")
        tl.device_assert(column % 16 == 0, "a column that begins a tile is a multiple of 16")
        tl.device_assert((row >= 0) & (row + BLOCK_K <= self.rows), "the tile ends behind w.rows")
        tl.device_assert(
            (column >= 0) & (column + BLOCK_N <= self.cols), "the tile ends behind w.cols"
        )
        panels = column // 16 + tl.arange(0, BLOCK_N // 16)
        words = row // self.steps + tl.arange(0, BLOCK_K // self.steps)
        # A matrix may have more than 2^31 elements.
        first = panels.to(tl.int64) * (self.rows // self.steps)
        lines = (first[:, None] + words[None, :]) * (16 * self.steps)
        columns = tl.arange(0, 16)[:, None] * self.steps + tl.arange(0, self.steps)[None, :]
        tile = tl.load(self.data + lines[:, :, None, None] + columns[None, None, :, :])
        return tl.reshape(tl.permute(tile, (1, 3, 0, 2)), (BLOCK_K, BLOCK_N))
