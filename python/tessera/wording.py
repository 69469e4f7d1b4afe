# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The small words of messages."""

from __future__ import annotations

from typing import Any, Optional, Sequence


def with_article(noun: str) -> str:
    """ "a list", "an int"."""
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


def counted(number: int, noun: str) -> str:
    """ "1 argument", "2 arguments"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown(value: Any, most: int = 60) -> str:
    """`repr(value)`, at most so long, of any value."""
    try:
        text = repr(value)
    except Exception:
        # Of an integer of more than 4300 digits, Python makes no text.
        if isinstance(value, int):
            return f"an integer of {value.bit_length()} bits"
        return with_article(type(value).__name__)
    return text if len(text) <= most else text[: most - 3] + "..."


def closest(name: str, candidates: Sequence[str]) -> Optional[str]:
    """The candidate that `name` is probably a misspelling of."""
    from difflib import get_close_matches

    found = get_close_matches(name, candidates, n=1, cutoff=0.6)
    return found[0] if found else None
