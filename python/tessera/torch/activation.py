# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tessera as the `triton` that TorchInductor finds."""

from __future__ import annotations

import functools
import sys

import tessera.compat.triton
from tessera.torch.lateness import ask_again, refuse_if_too_late
from tessera.torch.versions import check_version


def activate() -> None:
    """Makes Tessera the `triton` of torch in this process and in Inductor's workers, and
    `backend="tessera"` known to torch.compile.

    Raises UnsupportedError (E077) for a version of torch that does not fit; SettingError: E075 where Inductor was
    used while there was no `triton`, E062 where another `triton` is loaded.
    """
    _activate()


@functools.cache
def _activate() -> None:
    import torch

    check_version(torch.__version__)
    refuse_if_too_late()
    was_there = "triton" in sys.modules
    tessera.compat.triton.install()
    if not was_there:
        ask_again()
    from torch._dynamo import register_backend
    from torch._dynamo.backends import registry

    from tessera.torch.backend import compile_graph

    if "tessera" not in registry._COMPILER_FNS:
        register_backend(compiler_fn=compile_graph, name="tessera")


def enable() -> None:
    """Has every `torch.compile` of this process use Tessera, whoever calls it.

    On CPUs this takes the place of Inductor's C++ back end; on GPUs that of Triton.

    Raises SettingError (E062, E075) or UnsupportedError (E077) as `activate` does.
    """
    activate()
    import torch._inductor.config as config

    from tessera.torch.mends import mend_inductor

    mend_inductor()
    config.cpu_backend = "triton"


def is_enabled() -> bool:
    """Whether `torch.compile` without a `backend` uses Tessera."""
    config = sys.modules.get("torch._inductor.config")
    return (
        config is not None
        and getattr(config, "cpu_backend", None) == "triton"
        and tessera.compat.triton.is_installed()
    )
