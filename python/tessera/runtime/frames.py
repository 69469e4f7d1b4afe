# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ours of which no frame is shown where they report a user's mistake."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar, cast

from tessera import _C
from tessera.errors import raise_core_error

F = TypeVar("F", bound=Callable[..., Any])


def as_users_see(fn: F) -> F:
    """`fn`, called by the core, which ends the traceback of a user's mistake at the call.

    A Python function cannot: its own frame would be there. For our own bugs, every frame is shown.
    """

    def call(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, None]:
        return fn(*args, **kwargs), None

    launch = _C.Dispatcher((), call, raise_core_error).bind((1,))
    return cast(F, functools.update_wrapper(functools.partial(launch), fn))
