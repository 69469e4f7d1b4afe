# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Provides Tessera as `triton`.

    import tessera.compat.triton
    tessera.compat.triton.install()
    import triton, triton.language as tl

The folder `site` beside this file has a package `triton`. `install` puts it first on Python's path
for modules, for this process and those that it starts.
`python -m tessera run --as-triton script.py` does the same without a change of the program, and so
does TESSERA_AS_TRITON=1 in the environment if Tessera is installed from its wheel. See
docs/HowTo/RunTritonCode.md.

It is a folder, not an entry of `sys.modules`, since processes that inherit this one's path must
find the same package.
"""

from __future__ import annotations

import os
import sys

from typing import NoReturn

from tessera.errors import SettingError

__all__ = ["FOLDER", "install", "is_installed", "is_ours", "refuse"]

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
"""The folder that holds the package `triton`."""


def is_ours(package: object) -> bool:
    """True if a package named `triton` is Tessera's."""
    return getattr(package, "__tessera__", False) is True


def is_installed() -> bool:
    """True if `import triton` gives Tessera in this process."""
    loaded = sys.modules.get("triton")
    if loaded is not None:
        return is_ours(loaded)
    return FOLDER in sys.path


def install() -> None:
    """Makes Tessera what `import triton` finds, here and in processes started from here.

    Raises SettingError (E062) where another `triton` is loaded already: kernels of two compilers
    in one process would not know each other.
    """
    loaded = sys.modules.get("triton")
    if loaded is not None and not is_ours(loaded):
        raise SettingError(
            "E062",
            f"another `triton` is loaded already, from {getattr(loaded, '__file__', None)!r}",
            "install tessera.compat.triton before the first `import triton`, and before "
            "libraries that import it (torch does so when it compiles), or run the program with "
            "`python -m tessera run --as-triton`",
        )
    if FOLDER in sys.path:
        sys.path.remove(FOLDER)
    sys.path.insert(0, FOLDER)
    importers = sys.path_importer_cache
    importers.pop(FOLDER, None)
    os.environ["TESSERA_AS_TRITON"] = "1"
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    # If Tessera is a checkout, a child process finds it by the path, too.
    wanted = [FOLDER, *(() if _is_in_site_packages() else (_home(),))]
    kept = [path for path in paths if path not in wanted]
    os.environ["PYTHONPATH"] = os.pathsep.join([*wanted, *kept])


def refuse(name: str, reason: str) -> NoReturn:
    """Raises ImportError for a module of Triton's that has no meaning here."""
    raise ImportError(f"Tessera has no {name}: {reason}", name=name)


def _home() -> str:
    """The folder that holds the package `tessera`."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(FOLDER))))


def _is_in_site_packages() -> bool:
    return os.path.basename(_home()) in ("site-packages", "dist-packages")
