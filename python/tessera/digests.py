# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys: hashes over the properties that distinguish kernels, files and machines."""

from __future__ import annotations

import struct
from typing import Union


def framed(*fields: Union[bytes, str]) -> bytes:
    """The fields, each with its length before it, so that none runs into the next."""
    parts: list[bytes] = []
    for field in fields:
        data = field.encode() if isinstance(field, str) else field
        parts += (_LENGTH.pack(len(data)), data)
    return b"".join(parts)


def digest(*fields: Union[bytes, str]) -> bytes:
    """SHA-256 over framed fields."""
    from hashlib import sha256

    return sha256(framed(*fields)).digest()


_LENGTH = struct.Struct("<Q")
