# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`and`, `or` and chains of comparisons of scalars have Python's values; and so do `//` and `%` of
constants, which say so where the same gives another number at run time.

Random expressions are computed by Python and by kernels, on the interpreter and compiled. To see
more of them, raise the count with TESSERA_TEST_SEEDS.
"""

from __future__ import annotations

import math
import os
import random
import warnings
from typing import Any

import numpy as np
import pytest
from execution.running import Runner, make_kernel

import tessera
from tessera.errors import CompilationError, CompilationWarning

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


# --- Constants and C's rule ---------------------------------------------------------------------


def warned_of(source: str, signature: str = "*fp64", **options: Any) -> list[tuple[int, str]]:
    kernel = make_kernel(source)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            tessera.compile(kernel, signature, target="cpu", **options)
    assert all(w.category is CompilationWarning for w in seen)
    first = kernel.fn.__code__.co_firstlineno
    return [(w.lineno - first, str(w.message)) for w in seen]


def test_quotients_of_constants_warn_once() -> None:
    said = warned_of("""
@tessera.jit
def kernel(o, A: tl.constexpr = -7):
    tl.store(o, A % 3)
    x: tl.constexpr = 5 // -3
    y: tl.constexpr = A // 7 + 7 % 3 + -6 % 3 + -6 // 3
    z = -(-5 // 3) + tl.cdiv(5, 3) - (-A // 3)
    w = -A % 3
    for i in tl.static_range(-4, 4):
        tl.store(o + 4 + i, i % 4)
    v: tl.constexpr = -5.5 % 3.0
    v: tl.constexpr = v % -3.0
    u = -5
    tl.store(o + 9, u % 3 + u // 3)
""")
    assert [line for line, _ in said] == [2, 3, 8, 9, 10]
    assert said[0][1].startswith(
        "`-7 % 3` of constants is 2, as in Python; at run time `%` is C's, which gives -1; "
    )
    assert said[1][1].startswith("`5 // -3` of constants is -2, as in Python")
    assert "-3 % 4" in said[2][1]  # the first that differs


def test_the_idiom_of_a_quotient_that_is_rounded_up_does_not_warn() -> None:
    assert warned_of("@tessera.jit\ndef kernel(o):\n    tl.store(o, -(-5 // 3))\n") == []
    said = warned_of("@tessera.jit\ndef kernel(o):\n    tl.store(o, -(-5 // 3 + 1))\n")
    assert len(said) == 1


@pytest.mark.parametrize("seed", range(8))
def test_constants_warn_just_where_the_rules_differ(run: Any, seed: int) -> None:
    rng = random.Random(seed)

    def draw() -> Any:
        return rng.choice(
            (rng.randint(-9, 9), rng.randint(-9, 9), rng.choice((-2.5, 2.5, 5.0, -1.0)))
        )

    for _ in range(6):
        a, b = draw(), draw() or 4
        name = "%" if isinstance(a, float) or isinstance(b, float) else rng.choice(("//", "%"))
        source = f"""
@tessera.jit
def kernel(o, a, b):
    x: tl.constexpr = {a} {name} ({b})
    tl.store(o, x)
    tl.store(o + 1, a {name} b)
"""
        said = warned_of(source, "*fp64, fp64, fp64" if "." in f"{a}{b}" else "*fp64, i32, i32")
        out = np.zeros(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(make_kernel(source), (1,), out, a, b)
        assert out[0] == (a // b if name == "//" else a % b)
        differs = out[0] != out[1] or math.copysign(1, out[0]) != math.copysign(1, out[1])
        assert len(said) == differs, (source, out, said)


def test_a_kernel_of_the_disk_cache_warns(tmp_path: Any) -> None:
    """Each process is told once, whether it compiles the kernel or finds it."""
    import subprocess
    import sys

    (tmp_path / "program.py").write_text("""
import warnings
import numpy as np, tessera, tessera.language as tl

@tessera.jit
def kernel(o):
    x: tl.constexpr = -5 // 3
    tl.store(o, x)

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        kernel[(1,)](np.zeros(1))
    kernel[(1,)](np.zeros(1, np.int32))
print([(w.lineno, w.filename.endswith("program.py")) for w in seen])
""")
    for _ in range(2):
        said = subprocess.run(
            [sys.executable, str(tmp_path / "program.py")],
            env={**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert said.strip() == "[(7, True)]"
