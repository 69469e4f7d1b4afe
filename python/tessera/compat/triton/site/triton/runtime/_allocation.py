# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a kernel might ask its launch for: none does here, so allocators are kept and
never called."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Callable, Optional

Allocator = Callable[[int, int, Optional[int]], Any]
"""Called with a size, an alignment and a stream; returns something with `data_ptr()`."""


class NullAllocator:
    """The one that refuses."""

    def __call__(self, size: int, alignment: int, stream: Optional[int]) -> Any:
        raise RuntimeError("a kernel needs memory, and there is no allocator; call set_allocator")


_allocator: ContextVar[Allocator] = ContextVar("_allocator", default=NullAllocator())


def set_allocator(allocator: Allocator) -> None:
    """Remembers `allocator`. Descriptors made in kernels need no memory of the launch."""
    _allocator.set(allocator)
