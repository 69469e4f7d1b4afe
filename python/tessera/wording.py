# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The small words of messages."""

from __future__ import annotations

import re
import sys
from typing import Any, Optional, Sequence

from tessera.locks import load


def with_article(noun: str) -> str:
    """ "a list", "an int"."""
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


def counted(number: int, noun: str) -> str:
    """ "1 argument", "2 arguments"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown_place(file: str, line: int, column: int = 0) -> str:
    """ "file:line:column", or "cell In[3], line 4, column 5" for a cell of a notebook."""
    cell = _find_cell(file)
    if cell is None:
        return f"{file}:{line}:{column}" if column else f"{file}:{line}"
    return f"cell {cell}, line {line}" + (f", column {column}" if column else "")


def _find_cell(file: str) -> Optional[str]:
    """The name that IPython's tracebacks have for a cell ("In[3]") that was compiled as `file`."""
    module = sys.modules.get("IPython.core.interactiveshell")
    shell = getattr(module, "InteractiveShell", None)
    if shell is not None and shell.initialized():
        compiler = getattr(shell.instance(), "compile", None)
        named = getattr(compiler, "format_code_name", lambda _: None)(file)
        if named is not None and named[0] == "Cell":
            return str(named[1])
    number = re.match(r"<ipython-input-(\d+)-", file)
    return f"In[{number[1]}]" if number else None


def shown(value: Any, most: int = 60) -> str:
    """`repr(value)`, at most so long, of any value."""
    try:
        text = repr(value)
    except Exception:
        # Python refuses to print an integer of more than 4300 digits.
        if isinstance(value, int):
            return f"an integer of {value.bit_length()} bits"
        return with_article(type(value).__name__)
    return text if len(text) <= most else text[: most - 3] + "..."


def closest(name: str, candidates: Sequence[str], cutoff: float = 0.6) -> Optional[str]:
    """The candidate that `name` is probably a misspelling of, at least so similar (0 to 1)."""
    # Loaded late, since few programs need it, and so under the lock that a fork waits for.
    found = load("difflib").get_close_matches(name, candidates, n=1, cutoff=cutoff)
    return found[0] if found else None
