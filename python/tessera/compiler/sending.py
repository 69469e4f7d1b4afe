# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sends compiled kernels from one process to another: TorchInductor compiles in workers, and
launches the kernels that they send back.

Pickling a CompiledKernel is an error, since programs need the function that can compile. Inductor
pickles the `__dict__` of one, after removing the function from its JITFunction (`fn.fn = None`).
The receiver gets an outline: the attributes of a function that a launcher reads. To store it for
other processes, Inductor removes and restores the same attributes as those of a JITFunction.
"""

from __future__ import annotations

import copyreg
from typing import Any, Optional, Sequence

from tessera import _C
from tessera.language.callables import Param

__all__ = ["FunctionOutline", "outline"]


class FunctionOutline:
    """A @jit function without its Python function: names and parameters."""

    def __init__(self, name: str, params: Sequence[Param], src: Optional[str]) -> None:
        self.fn = self.__globals__ = self.used_global_vals = self._hash_lock = None
        self.__name__ = name
        self.params = tuple(params)
        self.src = src

    @property
    def arg_names(self) -> list[str]:
        """The names of the parameters."""
        return [param.name for param in self.params]

    @property
    def constexprs(self) -> list[int]:
        """The places of the parameters that are constants."""
        return [param.num for param in self.params if param.is_constexpr]

    def repr(self, specialisation: Any = None) -> str:
        """The name of the kernel."""
        return self.__name__


def outline(fn: Any) -> tuple[Any, ...]:
    """How a JITFunction that has lost its Python function is pickled."""
    declared: Sequence[Param] = fn._params[1] if fn._params is not None else ()
    # Annotations and defaults may be anything, and say nothing to a launcher.
    params = [param._replace(annotation=None, given_default=None) for param in declared]
    parsed = fn._parsed
    source = None
    if parsed is not None:
        before = parsed[1].tree.lineno - parsed[1].first_line
        source = "".join(line + "\n" for line in parsed[1].lines[before:])
    return FunctionOutline, (fn.__name__, params, source)


def _reduce_type(type: _C.Type) -> tuple[Any, ...]:
    return _C.Type, (type.kind, type.dtype, type.is_const, type.shape)


def _reduce_kernel(kernel: _C.Kernel) -> tuple[Any, ...]:
    return _arrived, (kernel.serialize(),)


def _arrived(data: bytes) -> _C.Kernel:
    return _C.Kernel.deserialize(data)


def _reduce_family(family: _C.KernelFamily) -> tuple[Any, ...]:
    # CompiledKernel makes it anew of the kernels that are sent.
    return _nothing, ()


def _nothing() -> None:
    return None


copyreg.pickle(_C.Type, _reduce_type)
copyreg.pickle(_C.KernelFamily, _reduce_family)
copyreg.pickle(_C.Kernel, _reduce_kernel)
