# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the core's handlers known to XLA (lib/CAPI/XLA.cpp)."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from tessera import _C
from tessera.errors import UnsupportedError

TARGET = "tessera_launch"
"""What custom calls that launch kernels are named."""


@functools.lru_cache(maxsize=None)
def register_handlers() -> None:
    """Has XLA call the core for custom calls of `TARGET`, on CPUs and on NVIDIA's GPUs.

    Raises UnsupportedError (E077) where the process' JAX is of a version that is not known.
    """
    import jax

    if not hasattr(jax, "ffi"):
        raise UnsupportedError(
            "E077", f"JAX {jax.__version__} has no jax.ffi", "install JAX 0.5 or newer"
        )
    version = interface_version(Path(jax.ffi.include_dir()))
    for platform, on_gpu in (("cpu", False), ("CUDA", True)):
        handler = _C.xla_handler(on_gpu, *version)
        refused = "it is not known"
        if handler is not None:
            try:
                jax.ffi.register_ffi_target(TARGET, handler, platform=platform)
                continue
            except Exception as error:  # of a newer version XLA itself judges
                refused = str(error)
        raise UnsupportedError(
            "E077",
            f"the foreign function interface of jaxlib {_jaxlib_version()} has version "
            f"{version[0]}.{version[1]}: {refused}",
            "install a JAX whose interface has version 0.1 to 0.4: JAX 0.5 to 0.11",
        )


def interface_version(headers: Path) -> tuple[int, int]:
    """The version of XLA's interface, of which its headers alone tell."""
    try:
        text = (headers / "xla" / "ffi" / "api" / "c_api.h").read_text(errors="replace")
    except OSError as error:
        raise UnsupportedError(
            "E077",
            f"jaxlib {_jaxlib_version()} does not say which version of XLA's interface it has: "
            f"{error}",
            "install jaxlib anew, with its headers",
        ) from None
    found = [re.search(rf"#define XLA_FFI_API_{which} (\d+)", text) for which in ("MAJOR", "MINOR")]
    major, minor = (-1 if match is None else int(match[1]) for match in found)
    return major, minor


def _jaxlib_version() -> str:
    import jaxlib

    return str(getattr(jaxlib, "__version__", "?"))
