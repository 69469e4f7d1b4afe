# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches while a framework traces the launching function.

torch runs an operator's function on fake tensors to learn the shapes of its results. The function
may make its outputs then, but there is nothing to launch on. And while an operator runs for the
first time, launches are observed for a fact that its schema lacks: arguments that are written.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from tessera.errors import ArgumentError
from tessera.runtime.arrays import is_fake


class WatchedArgument(NamedTuple):
    """An argument of an operator that must not be written."""

    name: str
    begin: int
    end: int
    """The addresses of its memory."""


class Watch(NamedTuple):
    """An operator that runs, and what must not be written meanwhile."""

    operator: str
    arguments: Sequence[WatchedArgument]


_skips_fake: ContextVar[bool] = ContextVar("skips_fake", default=False)
_watch: ContextVar[Optional[Watch]] = ContextVar("watch", default=None)


@contextmanager
def fake_launches_skipped() -> Iterator[None]:
    """Launches with a fake tensor do nothing meanwhile; else they are an error (E057)."""
    token = _skips_fake.set(True)
    try:
        yield
    finally:
        _skips_fake.reset(token)


def is_skipped(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """True if a launch with these arguments does nothing."""
    return _skips_fake.get() and any(map(_holds_fake, (*args, *kwargs.values())))


def _holds_fake(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_holds_fake, value))
    # torch asks for shapes with tensors on the device `meta`, too.
    return is_fake(value) or getattr(getattr(value, "device", None), "type", "") == "meta"


@contextmanager
def writes_watched(watch: Watch) -> Iterator[None]:
    """Launches that write to what is watched are an error (E078) meanwhile, if they take the long
    way, as each kernel's first launch does."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def check_writes(pointers: Sequence[Any], stored: Sequence[int]) -> None:
    """Raises ArgumentError (E078) for a launch that writes to what is watched. `stored` are the
    slots that it may write through."""
    watch = _watch.get()
    if watch is None:
        return
    for item in pointers:
        if item.slot not in stored:
            continue
        for argument in watch.arguments:
            if argument.begin <= item.pointer.address < argument.end:
                raise ArgumentError(
                    "E078",
                    f"operator {watch.operator} writes to its argument `{argument.name}` (through "
                    f"`{item.name}` of a kernel), and its schema does not say so",
                    f"write mutates_args=({argument.name!r},)",
                )


def is_watching() -> bool:
    """True if launches are watched."""
    return _watch.get() is not None
