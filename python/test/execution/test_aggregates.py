# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Aggregates in kernels: made, carried, joined, passed, returned, operated on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl


@tessera.aggregate
class Complex:
    re: tl.tensor
    im: tl.tensor

    @tessera.jit
    def __mul__(self, other):
        if isinstance(other, Complex):
            return Complex(
                self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
            )
        return Complex(self.re * other, self.im * other)

    @tessera.jit
    def __rmul__(self, other):
        return Complex(self.re * other, self.im * other)

    @tessera.jit
    def __add__(self, other):
        return Complex(self.re + other.re, self.im + other.im)

    @tessera.jit
    def __neg__(self):
        return Complex(-self.re, -self.im)

    @tessera.jit
    def __lt__(self, other):
        return self.norm < other.norm

    @tessera.jit
    def __getitem__(self, part):
        return self.re if part == 0 else self.im

    @property
    @tessera.jit
    def norm(self):
        return self.re * self.re + self.im * self.im

    @tessera.jit
    def parts(self):
        return self.re, self[1]


@tessera.aggregate
class Scaled:
    value: Complex
    scales: tl.tuple
    factor: tl.constexpr = 3

    @tessera.constexpr_function
    def __init__(self, value, scale):
        self.value = value
        self.scales = tl.tuple((scale, 1))

    @staticmethod
    def of(re, im):
        # Plain Python: it gets a kernel's constants as tl.constexpr.
        return Scaled(Complex(re, im), im.value if isinstance(im, tl.constexpr) else im)

    @tessera.constexpr_function
    def twice(self, n):
        return 2 * n * self.factor.value

    def times(self, n, _semantic=None):
        return Complex(self.value.re * n * self.factor, self.value.im)


@tessera.jit
def arithmetic(p):
    lanes = tl.arange(0, 16)
    z = Complex(tl.load(p + lanes), tl.load(p + 16 + lanes))
    w = 2.0 * z * z + -z
    a, b = w.parts()
    tl.store(p + lanes, a)
    tl.store(p + 16 + lanes, b)
    tl.store(p + 32 + lanes, (z < w).to(tl.float32))


@tessera.jit
def carried(p, n):
    z = Complex(tl.load(p), 1.0)
    w = Complex(1.0, 0.0)
    for i in range(n):
        w = w * z
        if w.norm > 100.0:
            w = Complex(w.im, w.re)
        else:
            w += z
    i = 0
    while i < n:
        w, z = z, w
        i += 1
    tl.store(p + 1, w.re)
    tl.store(p + 2, w.im)


@tessera.jit(noinline=True)
def apart(scaled, n):
    if n > 2:
        return scaled.value * n
    return scaled.value


@tessera.jit
def nested(p, n, pair):
    s = Scaled.of(tl.load(pair.im), 2)
    u = apart(s, n)
    v = s.times(2) if n > 3 else apart(s, 7)
    extent: tl.constexpr = s.twice(1)
    changed = tl.aggregate_replace(s, factor=5)
    tl.store(p, u.re)
    tl.store(p + 1, v.re + s.scales[0] + extent)
    tl.store(p + 2, changed.factor)
    tl.store(pair.re, changed.value.im)


def test_operators_and_methods(run: Runner, rng: np.random.Generator) -> None:
    x = rng.standard_normal(48).astype(np.float32)
    z = x[:16] + 1j * x[16:32]
    w = 2 * z * z - z
    run(arithmetic, (1,), x)
    np.testing.assert_allclose(x[:16], w.real, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(x[16:32], w.imag, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(x[32:] != 0, abs(z) < abs(w))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_loops_carry_them_and_ifs_join_them(run: Runner, n: int) -> None:
    x = np.array([2, 0, 0], np.float32)
    run(carried, (1,), x, n)
    z, w = 2 + 1j, 1 + 0j
    for _ in range(n):
        w = w * z
        w = w.imag + 1j * w.real if abs(w) ** 2 > 100 else w + z
    if n % 2:
        z, w = w, z
    assert list(x[1:]) == [w.real, w.imag]


@pytest.mark.parametrize("n", [1, 4])
def test_they_hold_tuples_and_each_other(run: Runner, n: int) -> None:
    x = np.zeros(3, np.float32)
    re, im = np.zeros(1, np.float32), np.full(1, 5, np.float32)
    run(nested, (1,), x, n, Complex(re, im))
    s = 5.0
    u = s * n if n > 2 else s
    v = s * 6 if n > 3 else s * 7
    assert list(x) == [u, v + 2 + 6, 5] and re[0] == 2


class Two(NamedTuple):
    a: Any
    b: Any


@tessera.aggregate
class Point:
    x: tl.tensor
    t: tl.tuple
    k: tl.constexpr = 1

    @tessera.jit
    def bump(self):
        return Point(self.x + self.k, self.t, self.k)


@tessera.jit
def early(p, n):
    if n > 3:
        return Point(p.x * 2, p.t)
    return p


@tessera.jit
def inloop(p, n):
    for i in range(n):
        if i == 2:
            return Point(p.x + 100, (p.t[0] + i, p.t[1]))
        p = p.bump()
    return p


@tessera.jit
def everywhere(o, n, cfg: tl.constexpr):
    one = 1
    two = 2
    p = Point(tl.load(o), (one, Two(two, tl.load(o + 1))))
    q = early(p, n)
    r = inloop(q, n)
    s = r if n > 1 else q.bump()
    for v in s.t:
        pass
    acc = s
    for i in range(n):
        if acc.x > 50:
            break
        acc = acc.bump()
        if i == 1:
            continue
        acc = Point(acc.x + 1, (acc.t[0] + 1, acc.t[1]))
    several = [one.x for one in (p, q, r)]
    tl.store(o, acc.x + cfg.k)
    tl.store(o + 1, acc.t[0] + acc.t[1].a + acc.t[1].b)
    tl.store(o + 2, several[0] + several[1] + several[2])
    i = n
    w = p
    while i > 0:
        w = w.bump() if i % 2 == 0 else w
        i -= 1
    tl.store(o + 3, w.x)


def expected(x, n, ck):
    p = (x[0], 1, x[1])
    q = (p[0] * 2, 1, p[2]) if n > 3 else p
    r = q
    for i in range(n):
        if i == 2:
            r = (r[0] + 100, r[1] + i, r[2])
            break
        r = (r[0] + 1, r[1], r[2])
    s = r if n > 1 else (q[0] + 1, q[1], q[2])
    acc = s
    for i in range(n):
        if acc[0] > 50:
            break
        acc = (acc[0] + 1, acc[1], acc[2])
        if i == 1:
            continue
        acc = (acc[0] + 1, acc[1] + 1, acc[2])
    w = p[0]
    for i in range(n, 0, -1):
        if i % 2 == 0:
            w += 1
    return [acc[0] + ck, acc[1] + 2 + acc[2], p[0] + q[0] + r[0], w]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_wherever_control_flow_goes(run: Runner, n: int) -> None:
    x = np.array([3, 4, 0, 0], np.float32)
    wanted = expected(x.copy(), n, 6)
    run(everywhere, (1,), x, n, Point(None, (), 6))
    assert list(x) == wanted


def test_constant_ones_count_by_their_fields() -> None:
    @tessera.jit
    def kernel(p, point: tl.constexpr):
        tl.store(p, point.k)

    x = np.zeros(1, np.float32)
    for k in (6, 6, 7, 6.0, 7):
        kernel[(1,)](x, Point(None, (1,), k))
        assert x[0] == k
    assert len(kernel._kernels) == 3


def test_changes_of_the_class_are_noticed() -> None:
    @tessera.aggregate
    class Changing:
        x: tl.tensor
        n: tl.constexpr = 3
        factor = 2

        @tessera.jit
        def jitted(self):
            return self.x + self.n

        @tessera.constexpr_function
        def constant(self):
            return 10 * self.factor

        def __mul__(self, other):
            return self.x * other * self.factor

        @property
        def doubled(self):
            return 2 * self.factor

    @tessera.jit
    def other(self):
        return self.x + 100

    @tessera.jit
    def kernel(p):
        a = Changing(tl.load(p))
        tl.store(p, a.jitted())
        tl.store(p + 1, a.constant() + a.doubled)
        tl.store(p + 2, a * 7)

    def run() -> list[float]:
        x = np.array([1, 0, 0], np.float32)
        kernel[(1,)](x)
        return list(x)

    assert run() == [4, 24, 14]
    Changing.n = 5
    assert run() == [6, 24, 14]
    Changing.factor = 3
    assert run() == [6, 36, 21]
    Changing.jitted = other
    Changing.constant = tessera.constexpr_function(lambda self: 1)
    assert run() == [101, 7, 21]
    Changing.__mul__ = lambda self, other: self.x
    assert run() == [101, 7, 1]


@tessera.aggregate
class Once:
    value: tl.tensor
    kind: tl.constexpr

    def change(self, value, _semantic=None):
        self.value = value


@tessera.jit
def other_constant(p, n):
    x = Once(tl.load(p), 1)
    if n > 1:
        x = Once(tl.load(p), 2)
    tl.store(p, x.value + x.kind)


@tessera.jit
def changed_in_loop(p, n):
    x = Once(tl.load(p), 1)
    for i in range(n):
        x = Once(x.value, x.kind + 1)
    tl.store(p, x.value)


@tessera.jit
def assigned(p, n):
    x = Once(tl.load(p), 1)
    x.value = 1.0


@tessera.jit
def changed_by_method(p, n):
    Once(tl.load(p), 1).change(1.0)


@tessera.jit
def no_operator(p, n):
    tl.store(p, Once(1.0, 2) * Once(1.0, 2))


@tessera.jit
def wrong_field(p, n):
    tl.store(p, Once(1.0, n).value)


@tessera.jit
def no_such_member(p, n):
    tl.store(p, Once(1.0, 1).valeu)


@tessera.jit
def as_truth(p, n):
    if Once(1.0, 1):
        tl.store(p, 1.0)


@tessera.jit
def no_item(p, n):
    tl.store(p, Once(1.0, 1)[0])


@pytest.mark.parametrize(
    "kernel, id, message",
    [
        (other_constant, "E037", "`x` is the constant 2 on one path"),
        (changed_in_loop, "E036", "`x` is the constant 1 before the loop, the constant 2"),
        (assigned, "E014", "an attribute cannot be assigned"),
        (changed_by_method, "E016", "immutable aggregate `Once`"),
        (no_operator, "E029", r"unsupported operand type\(s\) for \*: 'Once' and 'Once'"),
        (wrong_field, "E016", "the field 'kind' of `Once` holds a constexpr, got int32"),
        (no_such_member, "E012", "an Once has no attribute `valeu`"),
        (as_truth, "E032", "has no truth value"),
        (no_item, "E029", "cannot be indexed"),
    ],
)
def test_mistakes(kernel: Any, id: str, message: str) -> None:
    with pytest.raises(tessera.CompilationError, match=message) as caught:
        kernel[(1,)](np.zeros(4, np.float32), 3)
    assert caught.value.id == id and caught.value.file == __file__
