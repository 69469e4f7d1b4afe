# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tessera as the `triton` that TorchInductor finds."""

from __future__ import annotations

import sys

import tessera.compat.triton
from tessera.torch.backend import compile_graph
from tessera.torch.installation import install
from tessera.torch.inductor_patches import patch_inductor


def activate() -> None:
    """Makes Tessera the `triton` of torch in this process and in Inductor's workers, and
    `backend="tessera"` known to torch.compile.

    Raises UnsupportedError (E077) for a version of torch that does not fit; SettingError: E075 where Inductor was
    used while there was no `triton`, E062 where another `triton` is loaded and in use.
    """
    install(compile_graph)
    from torch._dynamo import register_backend
    from torch._dynamo.backends import registry

    if "tessera" not in registry._COMPILER_FNS:
        register_backend(compiler_fn=compile_graph, name="tessera")


def enable() -> None:
    """Makes every `torch.compile` of this process use Tessera.

    On CPUs this takes the place of Inductor's C++ back end; on GPUs that of Triton.

    Raises SettingError (E062, E075) or UnsupportedError (E077) as `activate` does.
    """
    activate()
    import torch._inductor.config as config

    patch_inductor()
    config.cpu_backend = "triton"


def is_enabled() -> bool:
    """True if `torch.compile` without a `backend` uses Tessera."""
    config = sys.modules.get("torch._inductor.config")
    return (
        config is not None
        and getattr(config, "cpu_backend", None) == "triton"
        and tessera.compat.triton.is_installed()
    )
