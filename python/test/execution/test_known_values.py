# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An integer argument that is 1 is specialised on: that changes the code, never its meaning.

Each kernel runs twice with the argument 1: specialised on it, and with `do_not_specialize`,
which sees no more of an argument than its type.
"""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import make_kernel

import tessera
import tessera.language as tl
from tessera.tools.tensor_descriptor import TensorDescriptor

HELPERS = '''
@tessera.jit
def halved(x, n: tl.constexpr):
    """What a constexpr parameter is given at run time alone is a tensor like any other."""
    return (x + n - 8) // 2

@tessera.jit
def chosen(n):
    if n == 1:
        return 1
    return 2

@tessera.jit
def chosen_last(n):
    if n > 1:
        return 5
    else:
        return 3
'''

EXPRESSIONS = [
    "(n - 8) // 2", "(n - 8) % 3", "(1 - n * 6) // 4", "-7 // (n + 1)", "(n << 31) // 3",
    "n * 2147483647 + 2147483647", "n + 2147483647", "-n - 2147483647 - 1", "(n << 31) - 1",
    "n << (n + 32)", "(n - 2) >> 1", "n / 3", "n // (n - 1)", "n % (n - 1)", "-n >> 31",
    "n.to(tl.int8) * 127 + n.to(tl.int8)", "n.to(tl.uint8) - 2", "n.to(tl.float32) / 3",
    "tl.cast(n, tl.int64) << 40", "n.to(tl.int64) * 4294967296", "n * 0.1", "~n",
    "small + n", "small * n * 100", "halved(n, 1)", "halved(3, n)", "halved(small, n)",
    "(chosen(n) - 8) // 2", "(chosen_last(n) - 8) // 2", "((1 if n == 1 else 2) - 8) // 2",
    "((2 if n != 1 else 1) * 2147483647) + 1", "min(n, 5) - 2147483647 - 2", "max(n, -3) // -2",
    "tl.cdiv(n - 9, 4)", "abs(n - 2147483647 - 2)", "n == True", "(n == 1) + small", "not n - 1",
    "(n > 0) and (small > 0)", "tl.where(n == 1, small, n)", "tl.maximum(n, small)",
    "tl.arange(0, 8) // (n - 4)", "tl.minimum(tl.arange(0, 8), n)", "(n - 8).to(tl.int64) // 2",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("target", ["interpreter", "x86-64-v3", "simulator"])
def test_value_changes_no_meaning(target, expression):
    from execution.running import Runner, host_has

    if target == "x86-64-v3" and not host_has(target):
        pytest.skip(f"this machine has no {target}")
    found = []
    for option in ("", '(do_not_specialize=["n"])'):
        kernel = make_kernel(f"""{HELPERS}
@tessera.jit{option}
def kernel(small_ptr, name_ptr, out_ptr, n):
    small = tl.load(small_ptr)
    x = {expression}
    value = x.to(tl.float64) if x.dtype.is_floating() else x.to(tl.int64)
    tl.store(out_ptr + tl.arange(0, 8), value.to(tl.float64))
    tl.store(name_ptr, x.dtype.primitive_bitwidth * 2 + (x.dtype.is_int_signed() == True))
""")
        small, name, out = np.array([100], np.int8), np.zeros(1, np.int32), np.zeros(8)
        Runner(target)(kernel, (1,), small, name, out, 1)
        found.append((name[0], *out))
    assert found[0] == found[1], expression


def build_error(body: str, option: str, *arguments: object) -> str:
    kernel = make_kernel(f"{HELPERS}\n@tessera.jit{option}\ndef kernel(out_ptr, n):\n{body}")
    with pytest.raises(tessera.CompilationError) as caught:
        tessera.interpret(kernel)[(1,)](*arguments)
    return caught.value.id


@pytest.mark.parametrize(
    "statement, id",
    [
        ("x = tl.arange(0, n)", "E019"),
        ("x = tl.full((n, 4), 0, tl.int32)", "E019"),
        ("x = (5, 'a')[n]", "E037"),
        ("x = f'{n}'", "E015"),
        ("x = n ** 2", "E029"),
        ("for i in tl.static_range(n): tl.store(out_ptr, i)", "E040"),
        ("x = tl.arange(0, 8).sum(axis=n - 1)", "E024"),
        ("x = int(n)", "E015"),
    ],
)
def test_where_a_constant_is_needed(statement, id):
    """1 is refused there as every other number is."""
    for option in ("", '(do_not_specialize=["n"])'):
        assert build_error(f"    {statement}\n", option, np.zeros(8, np.int32), 1) == id


def test_code_is_made_for_the_value(run):
    """Conditions on it are decided, so that what only fits other values is not compiled."""
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    if stride == 1:
        x = tl.load(x_ptr + i)
    else:
        x = tl.load(x_ptr + i[:, None] * stride)
    if stride > 1 or x.shape[0] != N:
        x = tl.nothing_of_the_kind
    y = x if stride <= 1 and N == 8 else tl.nothing_of_the_kind
    tl.static_assert(stride == 1)
    tl.store(out_ptr + i, y + 1)
""")
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(kernel, (1,), x, out, 1, N=8)
    np.testing.assert_array_equal(out, x + 1)


def test_strides_of_one_are_seen():
    kernel = make_kernel("""
@tessera.jit
def kernel(x_ptr, out_ptr, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i * stride, tl.load(x_ptr + i * stride) + 1)
""")
    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    compiled = kernel[(1,)](x, out, 1, N=64)
    assert "arith.muli" not in compiled.asm["tile-opt"]


@tessera.jit
def last_stride(x_ptr, out_ptr, rows, columns, stride, step, N: tl.constexpr):
    array = tl.make_tensor_descriptor(x_ptr, [rows, columns], [stride, step], [1, N])
    tl.store(out_ptr + tl.arange(0, N), tl.sum(array.load([0, 0]), 0))
    for i in range(rows - 1, 4, step):
        tl.store(out_ptr + i, i)


def test_where_a_stride_has_to_be_one(run):
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    run(last_stride, (1,), x, out, 1, 16, 16, 1, N=16)
    want = x.copy()
    want[:4] = range(4)
    np.testing.assert_array_equal(out, want)


@tessera.jit
def of_a_pair(pair, out_ptr):
    tl.store(out_ptr, (pair[0] - 8) // 2)
    tl.store(out_ptr + 1, (pair[1].shape[0] - 8) // 2)


def test_values_in_tuples_and_descriptors(run):
    out = np.zeros(2, np.int32)
    array = TensorDescriptor.from_tensor(np.zeros((1, 16), np.float32), [1, 16])
    run(of_a_pair, (1,), (1, array), out)
    assert out.tolist() == [-3, -3]


@tessera.jit
def counts_down(out_ptr, n):
    i = n
    steps = 0
    while i > -3:
        i -= n
        steps += n
    tl.store(out_ptr, steps)
    for k in range(n):
        i = i * 2 + k
    tl.store(out_ptr + 1, i)


def test_carried_by_loops(run):
    out = np.zeros(2, np.int32)
    run(counts_down, (1,), out, 1)
    assert out.tolist() == [4, -6]
