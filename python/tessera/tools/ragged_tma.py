# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptors of groups of rows of different sizes.

    rows = create_ragged_descriptor(x, [32, 128])       # on the host

    @tessera.jit
    def kernel(rows, begin, size, ...):
        block = load_ragged(rows, begin, size, [i, 0])  # rows begin + i on; 0 from begin + size on

A group is the rows `begin` to `begin + size` of the array. A load beyond its end gives zeros, and a
store there is dropped, although the array itself goes on. A descriptor has no mask, so the end of
the group must be an end of the descriptor. The descriptor gets two more dimensions, along which its
addresses wrap around. With s the stride of a row, and all in elements modulo 2^64,

    2^30 * (2^34 - s) + (begin + size) * s + (2^30 - size + i) * s  =  (begin + i) * s

and the last of the three indices is within its extent, 2^30, exactly for i < size. TMA computes
addresses like this, and so does every target here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from tessera.errors import ArgumentError
from tessera.language import shape, types
from tessera.runtime.jit import jit
from tessera.tools.tensor_descriptor import TensorDescriptor, strides_of

if TYPE_CHECKING:
    constexpr = Any  # to a type checker, a constant may be anything
else:
    from tessera.language.types import constexpr

__all__ = [
    "atomic_add_ragged",
    "create_ragged_descriptor",
    "load_ragged",
    "store_ragged",
    "to_ragged_indices",
]

_ROWS = types.constexpr(1 << 30)
_ALL = 0x7FFF0000
"""An extent that no index of the two dimensions in front reaches."""


def create_ragged_descriptor(
    T: Any, block_shape: Sequence[int], ragged_dim: int = 0
) -> TensorDescriptor:
    """A descriptor of an array of two or three dimensions for the functions below.

    `ragged_dim`, which is not the last one, is that of the groups. Raises ArgumentError (E051).
    Source: Triton 3.6/3.9.
    """
    extents, block = list(T.shape), list(block_shape)
    rank = len(extents)
    along = ragged_dim + rank if ragged_dim < 0 else ragged_dim
    if not 2 <= rank <= 3 or len(block) != rank:
        raise ArgumentError(
            "E051",
            f"a ragged descriptor of an array of rank {rank} with a block of rank {len(block)}",
            "use an array of two or three dimensions, and as many for the block",
        )
    if not 0 <= along < rank - 1:
        raise ArgumentError(
            "E051",
            f"the groups of a ragged descriptor lie along dimension {ragged_dim} of {rank}",
            "use one before the last",
        )
    if extents[along] > _ROWS.value:
        raise ArgumentError(
            "E051", f"a ragged descriptor of {extents[along]} rows", "use at most 2^30 rows"
        )
    strides = list(strides_of(T))
    stride = strides[along]
    extents[along] = _ROWS.value
    return TensorDescriptor(
        T, [_ALL, _ALL, *extents], [(1 << 34) - stride, stride, *strides], [1, 1, *block]
    )


@jit
def to_ragged_indices(batch_offset: Any, batch_size: Any, row: Any) -> Any:
    """The indices along the two dimensions in front, and that along the ragged one.

    Source: Triton 3.6/3.9.
    """
    return _ROWS, batch_offset + batch_size, _ROWS - batch_size + row


@jit
def load_ragged(
    TMA: Any, batch_offset: Any, batch_size: Any, coords: Any, ragged_dim: constexpr = 0
) -> Any:
    """Loads the block at `coords`, of which the ragged one counts from `batch_offset`; zeros from
    row `batch_size` of the group on. Source: Triton 3.6/3.9.
    """
    first, second, row = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    block = TMA.load([first, second] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :])
    return shape.reshape(block, block.shape[2:])


@jit
def store_ragged(
    TMA: Any, batch_offset: Any, batch_size: Any, coords: Any, data: Any, ragged_dim: constexpr = 0
) -> None:
    """Stores a block, without what is beyond row `batch_size` of the group.

    Source: Triton 3.6/3.9.
    """
    first, second, row = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    block = shape.reshape(data, [1, 1] + data.shape)
    TMA.store([first, second] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :], block)


@jit
def atomic_add_ragged(
    TMA: Any, batch_offset: Any, batch_size: Any, coords: Any, data: Any, ragged_dim: constexpr = 0
) -> None:
    """Adds a block to the array's elements, except beyond row `batch_size` of the group.

    Source: Triton 3.6/3.9.
    """
    first, second, row = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    block = shape.reshape(data, [1, 1] + data.shape)
    TMA.atomic_add([first, second] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :], block)
