# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of 4 bits (e2m1) and scales of 8 (e8m0), as the OCP's MX formats have them, in torch."""

from __future__ import annotations

from typing import Any, Optional

import torch

__all__ = ["MXFP4Tensor", "MXScaleTensor"]

_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_BIAS = 127
_NAN = 255


class _Packed:
    """Codes of numbers in `data`, a uint8 each."""

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        if data is None and size is None:
            raise ValueError("give data or a size")
        if data is not None and not isinstance(data, torch.Tensor):
            raise AssertionError("data is a tensor of torch")
        self.device = device if data is None else data.device
        self.size = size if size is None or isinstance(size, tuple) else (size,)
        self.data = None if data is None else self._encode(data)

    def _encode(self, values: Any) -> Any:
        raise NotImplementedError

    def _codes(self, begin: int, end: int) -> Any:
        return torch.randint(begin, end, self.size, dtype=torch.uint8, device=self.device)


class MXFP4Tensor(_Packed):
    """Numbers of one sign bit, two bits of exponent and one of mantissa."""

    def random(self) -> "MXFP4Tensor":
        """Fills it with random codes."""
        self.data = self._codes(0, 16)
        return self

    def to(self, dtype: Any) -> Any:
        """The numbers as float32."""
        if dtype != torch.float32:
            raise AssertionError("only float32")
        values = torch.tensor(_MAGNITUDES, device=self.data.device)[(self.data & 7).long()]
        return torch.where(self.data & 8 != 0, -values, values)

    def _encode(self, values: Any) -> Any:
        """The nearest numbers, the even one of two as near; the largest for what is no number or
        beyond it."""
        values = values.float()
        magnitudes = torch.nan_to_num(values.abs(), nan=6.0, posinf=6.0)
        table = torch.tensor(_MAGNITUDES, device=values.device)
        middles = (table[1:] + table[:-1]) / 2
        codes = torch.bucketize(magnitudes, middles)
        tie = magnitudes == middles[codes.clamp(max=6)]
        codes = torch.where(tie & (codes < 7) & (codes % 2 == 1), codes + 1, codes)
        return (codes + torch.signbit(values) * 8).to(torch.uint8)

    def to_packed_tensor(self, dim: int) -> Any:
        """Two codes a byte along `dim`, the first in the low half; an odd one is alone."""
        data = self.data
        if not 0 <= dim < data.ndim:
            raise AssertionError(f"there is no dimension {dim}")
        if data.size(dim) % 2:
            shape = list(data.shape)
            shape[dim] = 1
            data = torch.cat([data, data.new_zeros(shape)], dim)
        pairs = data.unflatten(dim, (-1, 2))
        return pairs.select(dim + 1, 0) | pairs.select(dim + 1, 1) << 4

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Any) -> Any:
        """The codes of what `to_packed_tensor` made."""
        both = torch.stack([packed_tensor & 15, packed_tensor >> 4 & 15], dim + 1)
        return both.flatten(dim, dim + 1).narrow(dim, 0, original_shape[dim])


class MXScaleTensor(_Packed):
    """Powers of two by their exponents, from 2^-127 on; 255 is NaN."""

    def random(self, low: Optional[float] = None, high: Optional[float] = None) -> "MXScaleTensor":
        """Fills it with random scales between two bounds, without NaN."""
        begin = 0 if low is None else max(0, _exponent(low) + _BIAS)
        end = _NAN - 1 if high is None else min(_NAN - 1, max(0, _exponent(high) + _BIAS))
        if begin > end:
            raise AssertionError("low is above high")
        self.data = self._codes(begin, end + 1)
        return self

    def to(self, dtype: Any) -> Any:
        """The scales as float32."""
        if dtype != torch.float32:
            raise AssertionError("only float32")
        values = torch.exp2(self.data.float() - _BIAS)
        return torch.where(self.data == _NAN, torch.full_like(values, torch.nan), values)

    def _encode(self, values: Any) -> Any:
        """The powers of two below; NaN for what is no positive number."""
        fits = torch.isfinite(values) & (values > 0)
        safe = torch.where(fits, values, torch.ones_like(values))
        codes = (torch.floor(torch.log2(safe)) + _BIAS).clamp(0, _NAN - 1)
        return torch.where(fits, codes, torch.full_like(codes, _NAN)).to(torch.uint8)


def _exponent(value: float) -> int:
    return int(torch.log2(torch.tensor(float(value))))
