# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Locks that a forked child finds free, and what CPython must not do in two threads at once.

A child of a fork has but the thread that forked. A lock that another thread held then stays
locked in it for ever, and what that thread was changing stays half changed. So locks that
are held for a short time are taken for a fork.
"""

from __future__ import annotations

import ast
import mmap
import os
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from types import CodeType
from typing import Any, Callable, Generic, Iterator, Optional, TypeVar

__all__ = ["CachedProperty", "ForkSafeLock", "compile_tree", "load", "load_all", "parse", "reserve"]

T = TypeVar("T")


class ForkSafeLock:
    """A lock for a short time: a fork waits for it, but no longer than `patience` seconds.
    `after_fork` is called in the child."""

    def __init__(
        self, after_fork: Optional[Callable[[], None]] = None, patience: float = 1.0
    ) -> None:
        self._lock = threading.RLock()
        self._patience = patience
        self._after_fork = after_fork
        self._is_taken = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._take, after_in_parent=self._give_back, after_in_child=self._renew
            )

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: Any) -> None:
        self._lock.release()

    def _take(self) -> None:
        # A thread that holds it for longer makes no progress, and a fork must.
        self._is_taken = self._lock.acquire(timeout=self._patience)

    def _give_back(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.RLock()
        if self._after_fork is not None:
            self._after_fork()


class CachedProperty(Generic[T]):
    """functools.cached_property without the lock that CPython up to 3.11 gives it, which no fork
    waits for. Two threads may both compute the value; one of the two stays."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Optional[type] = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        return instance.__dict__.setdefault(  # type: ignore[no-any-return]
            self._name, self._compute(instance)
        )


def reserve(size: int) -> None:
    """Raises MemoryError if `size` bytes of address space are not free.

    If memory runs out, CPython's parser, compiler and imports do not fail cleanly: they raise
    SystemError, ValueError or SyntaxError, and some versions crash. So callers first check that the
    most that such work needs is free. The memory is not written, and is freed at once.
    """
    try:
        mmap.mmap(-1, size).close()
    except OSError as error:
        raise MemoryError from error


_PARSING_BYTES = 2 << 20
_BYTES_PER_CHARACTER = 512
"""The bytes of a tree and of its construction: CPython takes about 110, and 420 for dense
formulas."""
_LOADING_BYTES = 8 << 20


@contextmanager
def _memory_errors(*disguises: type[Exception]) -> Iterator[None]:
    """Raises MemoryError for SystemError and `disguises`: what CPython makes of a lack of memory."""
    kinds: tuple[type[Exception], ...] = (SystemError, *disguises)
    try:
        yield
    except kinds as error:
        raise MemoryError from error


_PARSING = ForkSafeLock()
_ATTEMPTS = 100


def parse(text: str) -> ast.Module:
    """`ast.parse`, which in CPython 3.11 fails where two threads are in it at once.

    Raises SyntaxError, RecursionError or MemoryError, and nothing else: any other exception is a
    lack of memory in disguise. So may a SyntaxError be, which therefore has to come twice.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SyntaxError(str(error)) from None
    if "\0" in text:
        raise SyntaxError("source code string cannot contain null bytes")
    for is_again in (False, True):
        reserve(_PARSING_BYTES + _BYTES_PER_CHARACTER * len(text))
        try:
            return _parse_once(text)
        except SyntaxError:
            if is_again:
                raise
    raise AssertionError("not reached")


def _parse_once(text: str) -> ast.Module:
    for attempt in range(_ATTEMPTS):
        try:
            with _PARSING:
                return ast.parse(text)
        except (SyntaxError, RecursionError, MemoryError):
            raise
        except SystemError as error:  # the other thread is somebody else's
            if attempt == _ATTEMPTS - 1:
                raise MemoryError from error
        except Exception as error:
            raise MemoryError from error
    raise AssertionError("not reached")


def compile_tree(tree: ast.Module, file_name: str, flags: int) -> CodeType:
    """`compile` of a module that `parse` has made, as if `flags` alone were set.

    Raises SyntaxError, RecursionError or MemoryError.
    """
    reserve(_PARSING_BYTES)
    with _memory_errors(ValueError, TypeError):
        code: CodeType = compile(tree, file_name, "exec", flags=flags, dont_inherit=True)
        return code


# Late imports run under a lock. CPython's lock of each module is not released in a fork: a child
# would wait forever for a module that another thread was loading.
_LOADING = ForkSafeLock(patience=30.0)
_loaded: set[tuple[str, ...]] = set()


def load(name: str) -> Any:
    """A module of ours that is loaded late."""
    if name not in sys.modules:
        reserve(_LOADING_BYTES)
    with _LOADING, _memory_errors():
        return import_module(name)


def load_all(names: tuple[str, ...]) -> None:
    """Loads modules, of which there may be others' than ours, unless that was done before."""
    if names in _loaded:
        return
    if any(name not in sys.modules for name in names):
        reserve(_LOADING_BYTES)
    with _LOADING, _memory_errors():
        for name in names:
            import_module(name)
        _loaded.add(names)
