# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a torch.autograd.Function without what torch does for calls that are none of ours."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import torch

_ASKED = ("clear_saved_tensors_on_access", "boxed_grads_call", "setup_context")
"""What torch asks the class for at each call, beside what a class has of its own. Some versions ask
for less."""


def direct_apply(function: Any) -> Callable[..., Any]:
    """`apply` of the class, without its rules for transforms of torch.func, which have to see no such
    call.

    Torch makes the names of attributes anew each time, and Python's cache of attributes misses these.
    So each base class would be looked through. The class gets copies of what it inherits."""
    for name in _ASKED:
        if hasattr(function, name):
            setattr(function, name, inspect.getattr_static(function, name))
    return super(torch.autograd.Function, function).apply  # type: ignore[no-any-return]
