# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the core's handlers known to XLA (lib/CAPI/XLA.cpp)."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, Callable

from tessera import _C
from tessera.errors import UnsupportedError
from tessera.locks import load
from tessera.untried import release, try_version

TARGET = "tessera_launch"
"""The name of custom calls that launch kernels."""

NEWEST = (0, 12)
"""The last version of JAX that was tested, as (major, minor). The first is the first with jax.ffi."""

TESTED = "JAX 0.5 to {}.{}".format(*NEWEST)

FIX = "pip install 'jax>=0.5,<{}.{}'".format(NEWEST[0], NEWEST[1] + 1)


def register_handlers(call: Callable[..., Any]) -> None:
    """Has XLA call the core for custom calls of `TARGET`, on CPUs and on NVIDIA's GPUs. A version of
    JAX that is newer than those tested is tried, by a `call` of a kernel (trial.py).

    Raises UnsupportedError (E077) where the process' JAX does not fit.
    """
    import jax

    if release(jax.__version__) > NEWEST:
        try_version(f"JAX {jax.__version__}", TESTED, FIX, lambda: _try(call))
    _register()


def _try(call: Callable[..., Any]) -> None:
    _register()
    load("tessera.jax.trial").run_small_program(call)


@functools.lru_cache(maxsize=None)
def _register() -> None:
    import jax

    if not hasattr(jax, "ffi"):
        raise UnsupportedError("E077", f"JAX {jax.__version__} has no jax.ffi", FIX)
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
            f"{FIX}, whose interface has version 0.1 to 0.5",
        )


def interface_version(headers: Path) -> tuple[int, int]:
    """The version of XLA's interface, which only its headers give."""
    try:
        text = (headers / "xla" / "ffi" / "api" / "c_api.h").read_text(errors="replace")
    except OSError as error:
        raise UnsupportedError(
            "E077",
            f"jaxlib {_jaxlib_version()} does not report the version of XLA's interface: "
            f"{error}",
            "install jaxlib anew, with its headers",
        ) from None
    found = [re.search(rf"#define XLA_FFI_API_{which} (\d+)", text) for which in ("MAJOR", "MINOR")]
    major, minor = (-1 if match is None else int(match[1]) for match in found)
    return major, minor


def _jaxlib_version() -> str:
    import jaxlib

    return str(getattr(jaxlib, "__version__", "?"))
