# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making Tessera the `triton` that torch imports."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

import tessera.compat.triton
from tessera.locks import load
from tessera.torch.late_activation import ask_again, forget_other, refuse_if_too_late, replace_uses
from tessera.torch.versions import FIX, TESTED, is_tested
from tessera.untried import release, try_version


def install(compile_graph: Callable[..., Any]) -> None:
    """Makes it that in this process and in Inductor's workers. A version of torch that is newer than
    those tested is tried: `compile_graph`, the back end, compiles a small program (trial.py).

    Raises what `activate` does.
    """
    import torch

    if not is_tested(torch.__version__):
        try_version(f"torch {torch.__version__}", TESTED, FIX, lambda: _try(compile_graph))
    _install()


def _try(compile_graph: Callable[..., Any]) -> None:
    _install()
    load("tessera.torch.trial").run_small_program(compile_graph)


@functools.cache
def _install() -> None:
    refuse_if_too_late()
    others = forget_other()
    was_there = "triton" in sys.modules
    tessera.compat.triton.install()
    if not was_there:
        _have_workers_find_ours()
        ask_again()
        replace_uses(others)


def _have_workers_find_ours() -> None:
    """From torch 2.14 on, processes that Inductor starts look for modules first where torch is
    installed, where a CUDA build has brought its own `triton`."""
    import torch

    if release(torch.__version__) < (2, 14):
        return
    from torch._inductor import utils

    original = utils.python_subprocess_env

    def python_subprocess_env() -> dict[str, str]:
        environment: dict[str, str] = original()
        ours = tessera.compat.triton.FOLDER
        paths = environment.get("PYTHONPATH", "").split(os.pathsep)
        paths = [ours, *(path for path in paths if path != ours)]
        return {**environment, "PYTHONPATH": os.pathsep.join(paths)}

    for name, module in list(sys.modules.items()):
        if name.startswith("torch._inductor."):
            if vars(module).get("python_subprocess_env") is original:
                setattr(module, "python_subprocess_env", python_subprocess_env)
