# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tessera run`: a script, or a module, as Python itself would run it."""

from __future__ import annotations

import os
import runpy
import sys
from typing import Sequence

__all__ = ["run"]

_USAGE = "usage: python -m tessera run [--as-triton] (script.py | -m module) [arguments...]"


def run(arguments: Sequence[str]) -> int:
    """Runs what `arguments` say; returns 2 where they say nothing that can be run.

    With `--as-triton`, `import triton` is answered by Tessera in it and in the processes that
    it starts. All after the script or the module is its own.
    """
    rest = list(arguments)
    as_triton = False
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        option = rest.pop(0)
        if option in ("-h", "--help"):
            print(_USAGE)
            return 0
        if option != "--as-triton":
            print(f"{_USAGE}\nunknown option {option}", file=sys.stderr)
            return 2
        as_triton = True
    is_module = rest[:1] == ["-m"]
    rest = rest[1:] if is_module else rest
    if not rest:
        print(_USAGE, file=sys.stderr)
        return 2
    if as_triton:
        from tessera.compat import triton

        triton.install()
    # The first entry is where Python found `-m tessera`: the current folder, as for any `-m`.
    here = [path for path in sys.path if path not in ("", os.getcwd())]
    sys.argv[:] = rest
    if is_module:
        sys.path[:] = [here[0], os.getcwd(), *here[1:]] if as_triton else [os.getcwd(), *here]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return 0
    script = rest[0]
    if not os.path.exists(script):
        print(f"python -m tessera run: there is no {script!r}", file=sys.stderr)
        return 2
    folder = os.path.dirname(os.path.abspath(script))
    sys.path[:] = [here[0], folder, *here[1:]] if as_triton else [folder, *here]
    runpy.run_path(script, run_name="__main__")
    return 0
