# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose IR Triton's own tests compare with text.

They are compiled here, and so accepted or refused; the text is that of another compiler's IR.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Mapping, Sequence

from tessera.compiler.compile import build_module
from tessera.machine.devices import GPUTarget

__all__ = [
    "MatchError",
    "filecheck_test",
    "run_filecheck",
    "run_filecheck_test",
    "run_parser",
    "stub_target",
]

stub_target = GPUTarget("cuda", 90, 32)
"""The target of such tests on every machine."""


class MatchError(ValueError):
    """The IR is not what a test expects of Triton's."""

    def __init__(self, message: str, module_str: str = "") -> None:
        super().__init__(message)
        self.module_str = module_str


def run_parser(
    kernel_fn: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] = {},
    target: GPUTarget = stub_target,
) -> Any:
    """The tile IR of a kernel for these arguments."""
    arch = "sm_90a" if target.arch in (90, 100) else f"sm_{target.arch}"
    values, given = kernel_fn._bind(tuple(args), {"target": arch, **kwargs})
    options = kernel_fn._options(given)
    bound = kernel_fn._specialise(values)
    return build_module(kernel_fn, bound.specs, options)


def run_filecheck(name: str, module_str: str, check_template: str) -> None:
    """Raises MatchError where there is text to be found in the IR."""
    if "CHECK" in check_template:
        raise MatchError("the expected text is of Triton's IR", module_str)


def run_filecheck_test(
    kernel_fn: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}
) -> None:
    """Compiles a kernel, in the comments of which the text is."""
    module = run_parser(kernel_fn, args, kwargs)
    run_filecheck(kernel_fn.__name__, str(module), inspect.getsource(kernel_fn.fn))


def filecheck_test(fn: Any) -> Callable[[], None]:
    """A test that does that."""

    @functools.wraps(fn)
    def test_fn() -> None:
        run_filecheck_test(fn)

    return test_fn
