# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor descriptors made on the host, as arguments of kernels.

    from tessera.tools.tensor_descriptor import TensorDescriptor

    @tessera.jit
    def copy(source, target):
        i = tl.program_id(0) * 64
        target.store([i, 0], source.load([i, 0]))

    copy[(8,)](TensorDescriptor.from_tensor(x, [64, 32]), TensorDescriptor.from_tensor(y, [64, 32]))

In the kernel the parameter is what `tl.make_tensor_descriptor` would have made there of the
same array. On every target: nothing of it is kept between launches, so an array may be
moved or grow.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Sequence

from tessera import _C
from tessera.errors import ArgumentError

__all__ = ["TensorDescriptor"]

_MAX_RANK = 5
_PADDINGS = ("zero", "nan")


@dataclasses.dataclass
class TensorDescriptor:
    """An array (`base`, with `shape` and `strides` in elements) and the block that a load or
    store of it moves.

    The last stride is 1. Elements outside read as zero, or as NaN with `padding="nan"`. With
    `round_f32_to_tf32` loads give the nearest tf32 numbers of float32 elements (of two the even
    one). Kernels are compiled for a `block_shape`, a `padding` and that choice. Raises
    ArgumentError (E051). Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl
        from tessera.tools.tensor_descriptor import TensorDescriptor

        @tessera.jit
        def double(x):
            at = [tl.program_id(0) * 4, tl.program_id(1) * 16]
            x.store(at, 2 * x.load(at))

        x = np.ones((6, 40), np.float32)
        double[(2, 3)](TensorDescriptor(x, shape=[6, 40], strides=[40, 1], block_shape=[4, 16]))
        assert (x == 2).all()
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        self.check("descriptor")

    def check(self, name: str) -> None:
        """Raises ArgumentError where this describes no array; `name` is for the message."""
        strides = self.strides
        rank = len(self.block_shape)
        is_fine = 0 < rank == len(self.shape) == len(strides) <= _MAX_RANK
        if is_fine and strides[-1] == 1 and self.padding in _PADDINGS:
            return
        if not is_fine:
            raise ArgumentError(
                "E051",
                f"tensor descriptor `{name}` has a shape of rank {len(self.shape)}, "
                f"{len(strides)} strides and a block of rank {rank}",
                f"give as many of each, 1 to {_MAX_RANK}",
            )
        if strides[-1] != 1:
            raise ArgumentError(
                "E051",
                f"tensor descriptor `{name}` has the last stride {strides[-1]}",
                "it must be 1: describe the transposed array, or copy it",
            )
        raise ArgumentError(
            "E051",
            f"tensor descriptor `{name}` has the padding {self.padding!r}",
            f"use one of {', '.join(map(repr, _PADDINGS))}",
        )

    @staticmethod
    def from_tensor(
        tensor: Any,
        block_shape: Sequence[int],
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> "TensorDescriptor":
        """The descriptor of a whole array."""
        # Programs make one at each launch.
        made: Optional["TensorDescriptor"] = _C.describe(
            tensor, block_shape, padding, round_f32_to_tf32
        )
        if made is not None:
            return made
        try:
            strides = tensor.stride()
        except (AttributeError, TypeError):
            strides = strides_of(tensor)
        shape = tensor.shape
        return TensorDescriptor(tensor, shape, strides, [*block_shape], padding, round_f32_to_tf32)


def strides_of(tensor: Any) -> tuple[int, ...]:
    """In elements."""
    stride = getattr(tensor, "stride", None)
    if callable(stride):
        return tuple(stride())
    in_bytes = getattr(tensor, "strides", None)
    if in_bytes is not None:
        itemsize = tensor.dtype.itemsize
        if any(stride % itemsize for stride in in_bytes):
            raise ArgumentError(
                "E051", "an array whose strides are no multiples of its elements", "copy it"
            )
        return tuple(stride // itemsize for stride in in_bytes)
    # An array without strides is dense.
    strides: list[int] = []
    size = 1
    for extent in reversed(tensor.shape):
        strides.insert(0, size)
        size *= extent
    return tuple(strides)


_C.learn_descriptor(TensorDescriptor)
