# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A place of Inductor's that goes wrong for Triton kernels on CPUs, mended.

It is asked while code is generated, so it is replaced once Inductor is loaded.
"""

from __future__ import annotations

import functools
import importlib

_UNWRAPPING = ("triton_utils", "triton", "wrapper", "cpp_wrapper_gpu")
"""The modules of `torch._inductor.codegen` that have the function by its name."""


@functools.cache
def mend_inductor() -> None:
    """Has kernels for CPUs load tensors of no dimension.

    There they are memory like any other. Inductor passes the value of one that nothing writes to,
    and may make a kernel's body and its signature on two sides of finding out that something does.
    """
    from torch._inductor.codegen import triton_utils
    from torch._inductor.virtualized import V

    original = triton_utils.should_unwrap_unspec_arg

    def should_unwrap(name: str) -> bool:
        if V.graph.get_current_device_or_throw().type == "cpu":
            return False
        return bool(original(name))

    for module_name in _UNWRAPPING:
        module = importlib.import_module(f"torch._inductor.codegen.{module_name}")
        if getattr(module, "should_unwrap_unspec_arg", None) is original:
            setattr(module, "should_unwrap_unspec_arg", should_unwrap)
