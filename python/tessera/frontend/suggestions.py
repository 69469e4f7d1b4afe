# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fixes for names that there are not.

Loaded where a mistake is reported.
"""

from __future__ import annotations

from types import ModuleType
from typing import Iterable, Optional

import tessera.language as tl
from tessera.language.other_names import meant, plain_name
from tessera.wording import closest


def instead_of(name: str, is_builtin: bool = False, is_value: bool = False) -> Optional[str]:
    """The code to write for a name of NumPy, torch, CUDA or libdevice; see `meant`."""
    text = meant(name, is_builtin, is_value)
    if text is None:
        from tessera.language.extra import libdevice

        if name in libdevice.FUNCTIONS:
            return f"tl.libdevice.{name}(...)"
    return text


def suggestion(
    name: str,
    candidates: Iterable[str],
    otherwise: str,
    *,
    is_builtin: bool = False,
    is_value: bool = False,
    by_meaning: bool = True,
    of_the_language: Iterable[str] = (),
) -> str:
    """The fix for an unknown name: by its meaning elsewhere, else by its spelling.

    `candidates` are the names that can stand there, and `of_the_language` those that can stand
    after `tl.`. `otherwise` is the fix where none is near. `by_meaning` allows the table.
    """
    names = list(candidates)
    for one in names:
        if plain_name(one) == plain_name(name):
            return f"did you mean `{one}`?"
    if by_meaning:
        for one in of_the_language:
            if plain_name(one) == plain_name(name):
                return f"write tl.{one}"
        text = instead_of(name, is_builtin, is_value)
        if text is not None:
            return f"write {text}"
    near = closest(name, names)
    return f"did you mean `{near}`?" if near else otherwise


def tl_names() -> list[str]:
    """The public names of the language."""
    return list(tl.__all__)


def is_language(module: ModuleType) -> bool:
    """True if a module is one whose operations kernels call."""
    return module.__name__.startswith("tessera.language")
