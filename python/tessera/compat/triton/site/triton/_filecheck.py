# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building a kernel's IR without running it, for tests of the front-end.

Checks of the text that it should have are of Triton's own IR: a test of that kind builds the
kernel, and is then skipped with that reason.
"""

import functools

from tessera.compiler.compile import build
from triton.backends.compiler import GPUTarget

__all__ = ["filecheck_test", "run_filecheck_test", "run_parser", "stub_target"]

stub_target = GPUTarget("cuda", 90, 32)


def run_parser(kernel_fn, args=(), kwargs={}, target=stub_target):
    """The tile IR of a kernel for these arguments."""
    values, given = kernel_fn._bind(tuple(args), dict(kwargs))
    arch = "sm_90a" if target.arch >= 90 else f"sm_{target.arch}"
    options = kernel_fn._options({"target": arch, **given})
    return build(kernel_fn, kernel_fn._specialise(values).specs, options).module


def run_filecheck_test(kernel_fn, args=(), kwargs={}):
    """Builds a kernel whose text has checks of Triton's IR."""
    import pytest

    run_parser(kernel_fn, args, kwargs)
    pytest.skip("the kernel builds; the checks are of the text of Triton's own IR")


def filecheck_test(fn):
    """A test that builds a kernel whose text has checks of Triton's IR."""

    @functools.wraps(fn)
    def test_fn():
        run_filecheck_test(fn)

    return test_fn
