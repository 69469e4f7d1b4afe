# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`and`, `or` and chains of comparisons of scalars have Python's values.

Random expressions are computed by Python and by kernels, on the interpreter and compiled. To see
more of them, raise the count with TESSERA_TEST_SEEDS.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from execution.running import Runner, make_kernel

import tessera
from tessera.errors import CompilationError

COUNT = int(os.environ.get("TESSERA_TEST_SEEDS", "12"))
_VALUES = {
    "n": (0, 1, 5, -3), "m": (0, 1, 7, -2), "f": (0.0, 2.5, -0.5, -0.0),
    "g": (0.0, 1.5, float("nan"), -1.0), "b": (False, True, True, False), "c": (False, False, True, True),
}  # fmt: skip


@pytest.fixture(params=["interpreter", "x86-64", "simulator"])
def run(request: pytest.FixtureRequest) -> Runner:
    """The front-end decides all of this, so that one kind of code stands for the others."""
    return Runner(request.param)


class Generator:
    """Writes expressions of the scalars n, m (int32), f, g (float32), b, c (int1)."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def leaf(self) -> str:
        if self.random.random() < 0.3:
            return self.random.choice(("0", "1", "3", "16", "True", "False", "2.5", "0.0"))
        return self.random.choice(list(_VALUES))

    def value(self, depth: int) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.2:
            return self.leaf()
        if kind < 0.75:
            word = self.random.choice((" and ", " or "))
            parts = [self.value(depth - 1) for _ in range(self.random.choice((2, 2, 3)))]
            return f"({word.join(parts)})"
        if kind < 0.85:
            return f"(not {self.value(depth - 1)})"
        if kind < 0.93:
            condition = f"({self.value(depth - 1)})"
            return f"(2 if {condition} else 5)"
        return self.chain()

    def chain(self) -> str:
        operators = [self.random.choice(("<", "<=", ">", "!=", "==")) for _ in range(2)]
        middle = self.random.choice(("n", "m", "(n & m)", "n & m", "n ^ 3", "2", "n + m"))
        left, right = (self.random.choice(("n", "m", "f", "3", "b")) for _ in range(2))
        return f"({left} {operators[0]} {middle} {operators[1]} {right})"


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_expressions(run: Any, seed: int) -> None:
    generator = Generator(seed)
    texts = [generator.value(2) for _ in range(16)]
    stores = "\n".join(f"    tl.store(o + {i}, {text})" for i, text in enumerate(texts))
    kernel = make_kernel(f"@tessera.jit\ndef kernel(o, n, m, f, g, b, c):\n{stores}\n")
    for values in zip(*_VALUES.values()):
        out = np.full(len(texts), 99.0)
        run(kernel, (1,), out, *values)
        names = dict(zip(_VALUES, values))
        want = [float(eval(text, {}, names)) for text in texts]
        np.testing.assert_array_equal(out, want, err_msg=str((names, texts)))


@pytest.mark.parametrize(
    "expression, types",
    [
        ("n or 16", "int32"),
        ("s or 16", "int8"),
        ("n or w", "int64"),
        ("n or 2.5", "fp32"),
        ("b or 16", "int32"),
        ("b or c", "int1"),
        ("b or False", "int1"),
        ("n and 3", "int32"),
        ("n and s", "int8"),
        ("n and b", "int1"),
        ("n and True", "int1"),
        ("b and 1", "int1"),
        ("b and n", "int32"),
        ("f and g", "fp32"),
        ("p and n > 3", "int1"),
        ("p and p", "*fp64"),
        ("p or p", "*fp64"),
    ],
)
def test_types(expression: str, types: str) -> None:
    kernel = make_kernel(f"""
@tessera.jit
def kernel(p, n, w: tl.int64, s: tl.int8, f, g, b, c):
    x = {expression}
    tl.static_assert(x.type == {"p.type" if "*" in types else "tl.str_to_ty('" + types + "')"}, x.type)
""")
    tessera.compile(kernel, "*fp64, i32, i64, i8, fp32, fp32, i1, i1", target="cpu")


def test_what_decides_ends_the_evaluation(run: Any) -> None:
    """Operands behind a constant that decides are not even looked at; else all are computed."""
    kernel = make_kernel("""
@tessera.jit
def counted(p, value):
    tl.atomic_add(p, 1)
    return value

@tessera.jit
def kernel(o, p, n, FLAG: tl.constexpr):
    tl.store(o, counted(p, n) or 16 or nothing_like_it)
    tl.store(o + 1, n and counted(p, 3))
    if n and FLAG:
        nothing_like_it()
    use = n > 3 and FLAG
    if use:
        nothing_like_it()
    if FLAG == 0 or nothing_like_it:
        tl.store(o + 2, 7)
""")
    for n in (0, 5):
        out, count = np.zeros(3, np.int32), np.zeros(1, np.int32)
        run(kernel, (1,), out, count, n, 0)
        assert out.tolist() == [n or 16, n and 3, 7] and count[0] == 2


def test_a_specialised_argument(run: Any) -> None:
    """An argument that is 1 means what any other means, and an `if` on it is decided."""
    kernel = make_kernel("""
@tessera.jit
def kernel(o, n):
    x = n or 16
    tl.static_assert(x.type == tl.int32)
    tl.store(o, (x - 2) // 2)
    if n or 0:
        tl.store(o + 1, n and -3)
""")
    for n in (0, 1, 2):
        out = np.zeros(2, np.int32)
        run(kernel, (1,), out, n)
        assert out.tolist() == [int(((n or 16) - 2) / 2), n and -3]


def test_tiles_are_about_truths(run: Any) -> None:
    kernel = make_kernel("""
@tessera.jit
def kernel(o, n):
    i = tl.arange(0, 8)
    x = i and n
    tl.static_assert(x.dtype == tl.int1)
    y = (i > 2) or (i and True)
    tl.static_assert(y.dtype == tl.int1)
    tl.store(o + i, x + 2 * y)
""")
    out = np.zeros(8, np.int32)
    run(kernel, (1,), out, 3)
    np.testing.assert_array_equal(out, [0] + [3] * 7)


# --- Masks without parentheses ------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression, fix",
    [
        ("r < n & i < m", "(r < n) & (i < m)"),
        ("r < n | i < m", "(r < n) | (i < m)"),
        ("0 <= r < n & i < m", "(0 <= r < n) & (i < m)"),
        ("r < n & i < m & i != 3", "(r < n) & (i < m) & (i != 3)"),
        ("r > 0.5 & i < m", "(r > 0.5) & (i < m)"),
        ("r < n & (i > 3) & i < m", "(r < n) & (i > 3) & (i < m)"),
        ("r < n & (i | m) & i < m", "(r < n) & (i | m) & (i < m)"),
        ("r[:, None] < n ^ i[None, :] + 1 < m", "(r[:, None] < n) ^ (i[None, :] + 1 < m)"),
        ("n < m & n < r", "(n < m) & (n < r)"),
        ("(r) < (n) & i < m", "(r < n) & (i < m)"),
        ("r < # and (\n        n & i < m", "(r < n) & (i < m)"),
        ("r == n if n else r < n & i < m", "(r < n) & (i < m)"),
    ],
)
def test_masks_without_parentheses(expression: str, fix: str) -> None:
    kernel = make_kernel(f"""
@tessera.jit
def kernel(o, n, m):
    r = tl.arange(0, 16)
    i = tl.arange(0, 16) * 2
    x = ({expression})
""")
    with pytest.raises(CompilationError, match="E083.*binds more tightly than `[<=>]+`") as caught:
        tessera.compile(kernel, "*i32, i32, i32", target="cpu")
    assert caught.value.fix == f"write {fix}"
    assert caught.value.line == 9 and caught.value.column >= 10


def test_chains_that_stay(run: Any) -> None:
    kernel = make_kernel("""
@tessera.jit
def kernel(o, n, m, B: tl.constexpr):
    i = tl.arange(0, 8)
    mask = i & B
    tl.store(o + i, 1, mask=1 <= i < n)
    tl.store(o + i, 2, mask=2 < (i & 3) < n)
    tl.store(o + i, 3, mask=4 < mask < n + 9)
    if 0 < n & 7 < m:
        tl.store(o + 8, n)
    x: tl.constexpr = 0 < B & 6 < 9
    tl.store(o + 9, x)
    tl.store(o + 10 + i, (0 < i & 6) | (i & 6 == 0))
""")
    out = np.zeros(20, np.int32)
    run(kernel, (1,), out, 5, 6, 6)
    i = np.arange(8)
    want = np.where((1 <= i) & (i < 5), 1, 0)
    want[(2 < (i & 3)) & ((i & 3) < 5)] = 2
    want[(4 < (i & 6)) & ((i & 6) < 14)] = 3
    np.testing.assert_array_equal(out[:8], want)
    assert out[8:10].tolist() == [5, 1]
    np.testing.assert_array_equal(out[10:18], 1)
