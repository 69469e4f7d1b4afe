# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a torch.autograd.Function without what torch does for calls that are none of ours."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import torch

from tessera import _C

_ASKED = ("clear_saved_tensors_on_access", "boxed_grads_call", "setup_context")
"""What torch asks the class for at each call, beside what a class has of its own. Some versions ask
for less."""


_Metaclass: Any = _C.make_node_metaclass(type(torch.autograd.Function))


class DirectNode(torch.autograd.Function, metaclass=_Metaclass):  # type: ignore[misc,metaclass]
    """A base of classes whose own attributes torch finds fast."""


def direct_apply(function: type[DirectNode]) -> Callable[..., Any]:
    """`apply` of the class, without its rules for transforms of torch.func, which have to see no such
    call. The class gets what it inherits as attributes of its own."""
    for name in _ASKED:
        if hasattr(function, name):
            setattr(function, name, inspect.getattr_static(function, name))
    return super(torch.autograd.Function, function).apply  # type: ignore[no-any-return]
