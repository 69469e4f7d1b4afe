# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys: hashes over the properties that distinguish kernels, files and machines."""

from __future__ import annotations

import struct
from typing import Union


def digest(*fields: Union[bytes, str]) -> bytes:
    """SHA-256 over fields, each with its length before it, so that none runs into the next."""
    from hashlib import sha256

    hasher = sha256()
    for field in fields:
        data = field.encode() if isinstance(field, str) else field
        hasher.update(struct.pack("<Q", len(data)))
        hasher.update(data)
    return hasher.digest()
