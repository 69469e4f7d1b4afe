# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notes on the arguments of a launch, for mistakes in its kernel that they are the cause of."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Iterator, Sequence

from tessera.errors import CompilationError, Note


@contextmanager
def explained_by_arguments(names: Sequence[str], values: Sequence[Any]) -> Iterator[None]:
    """Adds to a mistake what is unusual about the arguments that its line names."""
    try:
        yield
    except CompilationError as error:
        words = set(re.findall(r"\w+", error.source_line))
        notes = [
            Note(text)
            for name, value in zip(names, values)
            if name in words and (text := _unusual(name, value))
        ]
        error.notes = (*notes, *error.notes)
        raise


def _unusual(name: str, value: Any) -> str:
    if isinstance(value, list):
        return (
            f"argument `{name}` is a list, which is a tuple in the kernel: pass an array, such as "
            f"np.array({name}, np.float32), to have a pointer"
        )
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        if hasattr(value, "data_ptr") or hasattr(value, "__array_interface__"):
            return (
                f"argument `{name}` is an array without dimensions, of which the kernel gets a "
                f"pointer: pass {name}.item() for its number, or load it with tl.load({name})"
            )
    return ""
