# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Versions of frameworks that Tessera was not tested with: a small program decides."""

from __future__ import annotations

import re
import threading
from typing import Callable, Optional

from tessera.errors import UnsupportedError, UntriedVersionWarning, warn_of_machine

_PASSED_ON = ("E062", "E075", "E077")
"""Errors of a small program that say already what is wrong."""

_verdicts: dict[str, Optional[UnsupportedError]] = {}
_thread = threading.local()
_warned_of: set[str] = set()


def release(version: str) -> tuple[int, ...]:
    """Major and minor number of a version; empty where the text has none."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, numbers.groups())) if numbers else ()


def try_version(name: str, tested: str, fix: str, program: Callable[[], None]) -> None:
    """Runs `program` once a process. It raises where `name` ("torch 2.16.0") does not fit; `tested`
    says which versions are known to ("torch 2.11 to 2.15"). Within `program` this does nothing.

    The caller may be in the middle of a trace, of which `program` must not be a part. It cannot run
    in a separate thread, since the caller's compiler holds its locks.

    Warns once. Raises UnsupportedError (E077), with what the program raised as its cause, now and
    whenever `name` is tried again. E062 and E075 pass through: they are mistakes of the caller's,
    which has another try.
    """
    if getattr(_thread, "is_trying", False):
        return
    if name not in _verdicts:
        if name not in _warned_of:
            _warned_of.add(name)
            warn_of_machine(
                f"tessera: {name} is newer than what this release was tested with ({tested}); "
                "a small program is tried first, which takes about a second",
                UntriedVersionWarning,
            )
        failure = _failure_of(program)
        if failure is not None and getattr(failure, "id", None) in _PASSED_ON:
            raise failure
        _verdicts[name] = _refusal(name, tested, fix, failure) if failure is not None else None
    refusal = _verdicts[name]
    if refusal is not None:
        raise refusal.with_traceback(None)


def _refusal(name: str, tested: str, fix: str, failure: Exception) -> UnsupportedError:
    text = (str(failure).strip().splitlines() or [""])[0]
    refusal = UnsupportedError(
        "E077",
        f"{name} does not fit this release, which was tested with {tested}: a small program "
        f"failed with {type(failure).__name__}: {text}",
        fix,
    )
    refusal.__cause__ = failure
    return refusal


def _failure_of(program: Callable[[], None]) -> Optional[Exception]:
    _thread.is_trying = True
    try:
        program()
    except Exception as error:
        return error
    finally:
        _thread.is_trying = False
    return None
