# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notes on the arguments of a launch, for mistakes in its kernel that they are the cause of."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Iterator, Optional, Sequence

from tessera.errors import CompilationError, Note


@contextmanager
def explained_by_arguments(names: Sequence[str], values: Sequence[Any]) -> Iterator[None]:
    """Adds notes to a mistake about unusual arguments that its line names, with a fix."""
    try:
        yield
    except CompilationError as error:
        words = set(re.findall(r"\w+", error.source_line))
        for name, value in zip(names, values):
            unusual = _unusual(name, value) if name in words else None
            if unusual is not None:
                error.notes = (Note(unusual[0]), *error.notes)
                error.fix = unusual[1]
        raise


def _unusual(name: str, value: Any) -> Optional[tuple[str, str]]:
    """The unusual property of an argument, and the fix."""
    if isinstance(value, list):
        return (
            f"argument `{name}` is a list, which is a tuple in the kernel",
            f"pass an array, such as np.array({name}, np.float32), to have a pointer",
        )
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        if hasattr(value, "data_ptr") or hasattr(value, "__array_interface__"):
            return (
                f"argument `{name}` is an array without dimensions: the kernel gets a pointer to it",
                f"pass {name}.item() for its number, or load it: tl.load({name})",
            )
    return None
