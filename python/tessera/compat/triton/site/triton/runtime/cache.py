# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys of kernels on disk. The files themselves are of another form than Triton's:
`python -m tessera cache` looks after them."""

from __future__ import annotations

import base64

__all__ = ["triton_key"]


def triton_key() -> str:
    """What stands for the compiler in the key of a kernel."""
    import triton
    from tessera.runtime.cache import default_cache

    build = default_cache().build_id
    return f"{triton.__version__}-{build.hex() if isinstance(build, bytes) else build}"


def _base32(key: str) -> str:
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def _base64(key: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(key)).decode().rstrip("=")
