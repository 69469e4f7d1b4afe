# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of our operators in code that Inductor generates, without torch's dispatcher.

Inductor calls an operator of torch as `torch.ops.…`. The dispatcher and the Python around it take 50 µs,
many times the launch. Compiled code runs below autograd, on plain tensors. So it does what eager code
does there: it calls the operator of `tessera.torch.op`, which knows what goes around the dispatcher
(direct_calls.py). For operators of elementwise operators and functions it calls these themselves.

The names of calls are bound where the code imports modules. Operators are found at the first call, since
code from torch's cache is loaded before a process has made them.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Mapping, Optional, Sequence

import torch
from torch._library.custom_ops import OPDEFS

from tessera.digests import digest
from tessera.errors import ArgumentError
from tessera.torch.direct_calls import DirectOperator

_NUMBERS = {"b": bool, "i": int, "f": float}


class OperatorCall:
    """A call of an operator of `tessera.torch.op`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._op: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._op is None:
            self._op = find(OPDEFS, self._name)
        return self._op(*args, **kwargs)


def find(known: Mapping[str, Any], name: str) -> Any:
    """The one of those known that an operator's name stands for."""
    made = known.get(name)
    if made is None:
        raise ArgumentError(
            "E089",
            f"a compiled graph calls operator {name}, which this process has not made",
            "call the function that torch.compile returned, which makes it, or compile it again",
        )
    return made


def install(is_keyed: Callable[[], bool]) -> None:
    """Has Inductor generate such calls, if it is loaded. `is_keyed` is True if its keys of caches tell
    code with such calls apart."""
    ir: Any = sys.modules.get("torch._inductor.ir")
    kernel = getattr(ir, "FallbackKernel", None)
    original: Optional[Callable[..., Any]] = getattr(kernel, "codegen", None)
    if original is None or hasattr(original, "_tessera_original"):
        return
    from torch._inductor.virtualized import V

    def codegen(self: Any, wrapper: Any) -> Any:
        if type(self) is kernel and is_keyed() and _is_python(V.graph):
            _call_directly(self, wrapper)
        return original(self, wrapper)

    setattr(codegen, "_tessera_original", original)
    ir.FallbackKernel.codegen = codegen


def _is_python(graph: Any) -> bool:
    """True if the code of the graph is Python."""
    return not (graph.cpp_wrapper or graph.aot_mode or getattr(graph, "fx_wrapper", False))


def _call_directly(kernel: Any, wrapper: Any) -> None:
    """Has the code call an operator of ours by a name of its own. Others stay as they are."""
    overload = kernel.op_overload
    name = overload.name() if isinstance(overload, torch._ops.OpOverload) else ""
    op = OPDEFS.get(name)
    if type(op) is not DirectOperator:
        return
    module, made = "generated_calls", f"OperatorCall({name!r})"
    if op.generate is not None:
        given, _ = kernel.unflatten_args(kernel.inputs, kernel.constant_args)
        arrays, numbers, kinds = given[:3]
        found = op.generate(name, [len(each.get_size()) for each in arrays], *given[2:])
        if found is None or not all(map(_has_text, numbers)):
            return
        module, made, constants = found
        kernel.codegen_args = lambda: _flat(wrapper, arrays, numbers, kinds, constants)
    while hasattr(wrapper, "parent_wrapper"):
        wrapper = wrapper.parent_wrapper
    kernel.python_kernel_name = f"tessera_call_{digest(module, made).hex()[:12]}"
    wrapper.add_import_once(f"from tessera.torch import {module}")
    wrapper.add_import_once(f"{kernel.python_kernel_name} = {module}.{made}")


def _has_text(number: Any) -> bool:
    return isinstance(number, (bool, int, float, sys.modules["sympy"].Expr))


def _flat(
    wrapper: Any, arrays: Any, numbers: Any, kinds: str, constants: Sequence[Any]
) -> list[str]:
    """The texts of the arguments by place. `kinds` has a letter for each: `c` for a constant, `a` or
    `z` for an array, and others for numbers."""
    tensors, scalars, others = iter(arrays), iter(numbers), iter(constants)
    texts = []
    for kind in kinds:
        if kind == "c":
            texts.append(repr(next(others)))
        elif kind in "az":
            texts.append(next(tensors).codegen_reference())
        else:
            number, wanted = next(scalars), _NUMBERS[kind]
            text = wrapper.val_to_arg_str(number)
            texts.append(text if type(number) is wanted else f"{wanted.__name__}({text})")
    return texts
