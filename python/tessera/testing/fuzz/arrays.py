# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arrays of a generated kernel, and what may not be touched around them."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

from tessera.testing.fuzz.program import FLOATS, Array

# Elements before or after an array, which may not be written.
_BAND = 16
_PAGE = mmap.PAGESIZE
_NORESERVE = 0x4000  # MAP_NORESERVE of Linux, which mmap has no name for in Python 3.10


class Overwritten(Exception):
    """Something beside an array was written."""


class Memory:
    """One side's arrays, each between a guard band and a page that may not be accessed.

    The page is behind the array or before it, by the seed: a load that goes too far ends the
    process, which no band would show. A copy for a GPU has two bands (`pages=False`).
    """

    def __init__(
        self, arrays: Sequence[Array], programs: int, seed: int, pages: bool = True
    ) -> None:
        rng = np.random.default_rng(seed)
        self.views: list[np.ndarray] = []
        self.by_name: dict[str, np.ndarray] = {}
        self.guarded: list[tuple[str, np.ndarray, slice]] = []
        for number, array in enumerate(arrays):
            total = array.total(programs)
            if array.places:
                view = reserve(total, numpy_dtype(array.dtype))
                filled = draw(rng, array, sum(length for _, length in array.places))
                for start, length in array.places:
                    view[start : start + length] = filled[:length]
                    filled = filled[length:]
            elif array.base:
                view = self.by_name[array.base][array.behind : array.behind + total]
            else:
                whole, place = _guarded(
                    total, numpy_dtype(array.dtype), (seed + number) % 2 if pages else None
                )
                view = whole[place]
                view[:] = draw(rng, array, total)
                self.guarded.append((array.name, whole, place))
            self.views.append(view)
            self.by_name[array.name] = view

    def read(self, array: Array) -> np.ndarray:
        """The contents of an array, in memory that kernels may access."""
        view = self.by_name[array.name]
        if not array.places:
            return view
        return np.concatenate([view[start : start + length] for start, length in array.places])

    def check_guards(self, where: str) -> None:
        """Raises Overwritten if something beside an array was written."""
        for name, whole, place in self.guarded:
            for band, side in ((whole[: place.start], "before"), (whole[place.stop :], "after")):
                if (band != np.full(1, 3).astype(whole.dtype)).any():
                    raise Overwritten(f"{where} wrote {side} array {name}")


def reserve(total: int, dtype: np.dtype) -> np.ndarray:
    """Zeros that take no memory before they are touched; there may be more than memory has."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    pages = mmap.mmap(-1, max(1, total * dtype.itemsize), flags=flags)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype, total)


def _guarded(total: int, dtype: np.dtype, page: int | None) -> tuple[np.ndarray, slice]:
    """Memory full of threes, and where in it an array lies: page 0 or 1 is the guarded one."""
    if page is None:
        return np.full(total + 2 * _BAND, 3).astype(dtype), slice(_BAND, _BAND + total)
    length = total + _BAND
    size = -(-length * dtype.itemsize // _PAGE) * _PAGE
    pages = mmap.mmap(-1, size + _PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    start = _PAGE if page == 0 else size - length * dtype.itemsize
    whole = np.frombuffer(pages, dtype, length, start)
    whole[:] = np.full(1, 3).astype(dtype)[0]
    libc = ctypes.CDLL(None, use_errno=True)
    # PROT_NONE. The rest of the array's first page is in front of it, or behind it.
    libc.mprotect(ctypes.c_void_p(address + (0 if page == 0 else size)), _PAGE, 0)
    return whole, slice(0, total) if page == 0 else slice(_BAND, _BAND + total)


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a tl dtype's name."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return np.dtype("bool" if name == "int1" else name)


def draw(rng: np.random.Generator, array: Array, total: int) -> np.ndarray:
    """The first contents of an array."""
    dtype = numpy_dtype(array.dtype)
    if array.data == "zeros":
        return np.zeros(total, dtype)
    if array.dtype == "int1":
        return rng.integers(0, 2, total).astype(bool)
    if array.data == "small":
        return rng.integers(-2, 3, total).astype(dtype)
    if array.data == "fp8":
        return np.array([0, 0x3C, 0x40, 0xBC, 0xC0], dtype)[rng.integers(0, 5, total)]
    if array.data == "halves":
        return (rng.integers(1, 3, total) / 2.0).astype(dtype)
    if array.data.startswith("places"):
        return rng.integers(-1, int(array.data.split()[1]), total).astype(dtype)
    if array.data == "integers":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, total, dtype=dtype, endpoint=True)
        small = rng.integers(0, 5, total).astype(dtype)
        ends = np.array([info.min, info.max], dtype)[rng.integers(0, 2, total)]
        kind = rng.integers(0, 10, total)
        return np.where(kind < 4, small, np.where(kind == 4, ends, values))
    if array.data == "bits":
        return _draw_bits(rng, array.dtype, total)
    values = rng.integers(-64, 64, total) / 8.0
    if array.data == "special":
        tiny, huge = extremes(array.dtype)
        specials = np.array([np.nan, np.inf, -np.inf, -0.0, tiny, -tiny, huge, -huge])
        chosen = specials[rng.integers(0, len(specials), total)]
        values = np.where(rng.integers(0, 4, total) == 0, chosen, values)
    return values.astype(dtype)


def _draw_bits(rng: np.random.Generator, dtype: str, total: int) -> np.ndarray:
    """Floats of any bits: a third are denormals, a third NaNs of all kinds."""
    assert dtype in FLOATS
    mantissa = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype]
    kind = np.dtype(f"uint{8 * numpy_dtype(dtype).itemsize}")
    bits = rng.integers(0, np.iinfo(kind).max, total, dtype=kind, endpoint=True)
    exponent = kind.type(((1 << (8 * kind.itemsize - 1 - mantissa)) - 1) << mantissa)
    which = rng.integers(0, 3, total)
    bits = np.where(which == 0, bits & ~exponent, np.where(which == 1, bits | exponent, bits))
    return bits.astype(kind).view(numpy_dtype(dtype))


def extremes(dtype: str) -> tuple[float, float]:
    """The smallest denormal and the largest finite value."""
    return {
        "float16": (2.0**-24, 65504.0),
        "bfloat16": (2.0**-133, (2 - 2.0**-7) * 2.0**127),
        "float32": (2.0**-149, (2 - 2.0**-23) * 2.0**127),
        "float64": (5e-324, 1.7976931348623157e308),
    }[dtype]


__all__ = ["Memory", "Overwritten", "draw", "extremes", "numpy_dtype"]
