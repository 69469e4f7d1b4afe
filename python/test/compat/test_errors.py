# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors have what programs written for Triton read of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tessera
import tessera.language as tl
from tessera.errors import InterpreterError, OutOfResources, PTXASError

CHAIN = """
import pickle
import tessera.compat.triton
tessera.compat.triton.install()
import triton, triton.language as tl
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure

@triton.jit
def inner(x):
    # a comment, so that the mistake is in the third line
    return unknown_name + x

@triton.jit
def outer():
    inner(1)

def caught(kernel, expected=CompilationError):
    try:
        triton.compile(triton.compiler.ASTSource(fn=kernel, signature={}, constexprs={}))
    except expected as error:
        assert isinstance(error, triton.TritonError) and isinstance(error, triton.CompilationError)
        assert pickle.loads(pickle.dumps(error)).error_message == error.error_message
        return error
    raise AssertionError("nothing was raised")

error = caught(outer)
assert (error.node.lineno, error.node.col_offset) == (2, 4), error.node.lineno
assert error.src == "def outer():\\n    inner(1)\\n", error.src
cause = error.__cause__
assert (cause.node.lineno, cause.node.col_offset) == (3, 11), cause.node.lineno
assert cause.src.startswith("def inner(x):\\n") and "unknown_name" in cause.error_message
assert cause.__cause__ is None

def in_a_function():
    @triton.jit
    def kernel():
        tl.static_assert(
            False, "of mine")
    return kernel

error = caught(in_a_function(), CompileTimeAssertionFailure)
assert error.__cause__ is None and error.node.lineno == 2 and error.src.startswith("def kernel")

@triton.jit
def misuse():
    tl.expand_dims(None, -1)

error = caught(misuse)
assert str(error.__cause__) == error.error_message
print("all")
"""


def test_the_error_of_a_kernel_is_caused_by_that_of_its_helper(tmp_path):
    script = tmp_path / "chain.py"
    script.write_text(CHAIN)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.stdout == "all\n", done.stderr


@tessera.jit
def helper():
    return no_such_name  # noqa: F821


@tessera.jit
def kernel():
    helper()


def test_without_triton_there_is_one_error(monkeypatch):
    """Which says all, and nothing is shown twice."""
    monkeypatch.delitem(sys.modules, "triton", raising=False)  # by another test of the process
    with pytest.raises(tessera.CompilationError) as caught:
        tessera.compile(kernel)
    error = caught.value
    assert error.__cause__ is None and error.error_message == error.message
    assert error.src.startswith("def kernel()") and error.node.lineno == 2


@tessera.jit
def matmul(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))


def test_out_of_resources():
    signature = "*bf16:16, *bf16:16, *fp32:16, 256, 256, 1024"
    with pytest.raises(OutOfResources) as caught:
        tessera.compile(matmul, signature, target="sm_90a", num_warps=8)
    error = caught.value
    assert error.limit == 232448 < error.required and error.name == "shared memory"
    assert isinstance(error, tessera.CompilationError) and error.id == "E069"


def test_ptxas_error():
    signature = "*bf16:16, *bf16:16, *fp32:16, 128, 256, 64"
    with pytest.raises(PTXASError):
        tessera.compile(matmul, signature, target="sm_90a", num_warps=8, maxnreg=64)


@tessera.jit
def outside(x_ptr):
    tl.store(x_ptr + tl.arange(0, 8), 0.0)


def test_interpreter_error():
    import numpy

    with pytest.raises(InterpreterError):
        tessera.interpret(outside)[(1,)](numpy.zeros(4, "float32"))
