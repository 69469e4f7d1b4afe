# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera.tools.ragged_tma`."""

from tessera.tools.ragged_tma import (
    atomic_add_ragged,
    create_ragged_descriptor,
    load_ragged,
    store_ragged,
    to_ragged_indices,
)

__all__ = [
    "atomic_add_ragged",
    "create_ragged_descriptor",
    "load_ragged",
    "store_ragged",
    "to_ragged_indices",
]
