# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that have parts: tuples, lists, dataclasses, aggregates, and these in each other."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from execution.running import Runner

import tessera
import tessera.language as tl


@dataclasses.dataclass
class View:
    data: Any
    length: int
    _offset: int
    block: tl.constexpr

    @property
    @tessera.jit
    def lanes(self):
        return tl.arange(0, self.block) + self._offset

    @tessera.jit
    def load(self, other=0):
        return tl.load(self.data + self.lanes, mask=self.lanes < self.length, other=other)

    @tessera.jit
    def store(self, x):
        tl.store(self.data + self.lanes, x, mask=self.lanes < self.length)

    def of_python(self) -> int:
        return self.length


class Named(NamedTuple):
    view: View
    factors: list


@tessera.aggregate
class Output:
    at: tl.tensor
    count: tl.constexpr


@tessera.jit
def add_all(arrays, views, n):
    for i in tl.static_range(len(arrays)):
        tl.store(arrays[i], tl.load(arrays[i]) + n)
    view = views.view
    lanes = tl.arange(0, view.block) + view._offset
    x = tl.load(view.data + lanes, mask=lanes < view.length)
    first, second = views.factors
    tl.store(view.data + lanes, x * first + second, mask=lanes < view.length)


@tessera.jit
def described(out, view: tl.constexpr):
    made = View(out, 3, 4, block=8)
    tl.store(made.data, made.length * made.block + made._offset + view.block)


@tessera.jit
def into(output):
    tl.store(output.at, output.count)


def test_parts_of_parts(run: Runner) -> None:
    arrays = [np.full(1, value, np.float32) for value in (1, 2, 3)]
    x = np.arange(32, dtype=np.float32)
    before = x.copy()
    run(add_all, (1,), arrays, Named(View(x, 20, 8, 16), [3.0, 1.0]), 5)
    assert [array[0] for array in arrays] == [6, 7, 8]
    expected = np.where((np.arange(32) >= 8) & (np.arange(32) < 20), 3 * before + 1, before)
    np.testing.assert_array_equal(x, expected)


class Pair(NamedTuple):
    view: View
    factor: Any

    @tessera.jit
    def scaled(self, extra):
        return self.view.load(1) * self.factor + extra


@tessera.jit
def by_methods(pair, n):
    x = pair.scaled(extra=n)
    for _ in range(n):
        x = pair.scaled(x)
    pair.view.store(x)
    made = View(pair.view.data, 1, 0, block=8)
    made.store(made.load() + 100)


@tessera.jit
def of_python(view, out):
    tl.store(out, view.of_python())


def test_methods(run: Runner) -> None:
    x = np.arange(32, dtype=np.float32)
    before = x.copy()
    run(by_methods, (1,), Pair(View(x, 20, 8, 16), 3.0), 2)
    expected = np.where((np.arange(32) >= 8) & (np.arange(32) < 20), 9 * before + 2, before)
    expected[0] += 100
    np.testing.assert_array_equal(x, expected)


@dataclasses.dataclass
class Line:
    slope: float
    offset: float

    @tessera.jit
    def __call__(self, x, times: tl.constexpr = 1):
        return times * (self.slope * x + self.offset)

    @tessera.jit
    def __add__(self, other):
        return Line(self.slope + other.slope, self.offset + other.offset)

    @tessera.jit
    def __rmul__(self, factor):
        return Line(factor * self.slope, factor * self.offset)

    @tessera.jit
    def __lt__(self, other):
        return self.slope < other.slope

    @tessera.jit
    def __neg__(self):
        return -1 * self

    @tessera.jit
    def __getitem__(self, place: tl.constexpr):
        return self.slope if place == 7 else self.offset


@tessera.jit
def special_methods(out, a, b):
    line = 3.0 * a + -b
    tl.store(out, line(2.0, times=2))
    tl.store(out + 1, (a < b).to(tl.float32) + 10 * (a > b).to(tl.float32))
    tl.store(out + 2, a[7] + 100 * a[0])
    tl.store(out + 3, len(Named(a, 1.0) + (4, 5)))


def test_special_methods(run: Runner) -> None:
    """Of a dataclass: its own, if they are @jit functions. Tuples are joined by `+`."""
    x = np.zeros(4, np.float32)
    run(special_methods, (1,), x, Line(1.0, 5.0), Line(2.0, 1.0))
    assert x.tolist() == [2 * (1 * 2 + 14), 1, 501, 4]


def test_a_method_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    @tessera.jit
    def twice(self, x):
        tl.store(self.data + self.lanes, 2 * x, mask=self.lanes < self.length)

    x = np.ones(32, np.float32)
    pair = Pair(View(x, 32, 0, 32), 1.0)
    by_methods[(1,)](pair, 0)
    assert x[1] == 1
    monkeypatch.setattr(View, "store", twice)
    by_methods[(1,)](pair, 0)
    assert x[1] == 2


def test_a_method_of_plain_python() -> None:
    x = np.ones(8, np.float32)
    with pytest.raises(tessera.CompilationError, match="`View.of_python` is plain Python") as error:
        of_python[(1,)](View(x, 8, 0, 8), x)
    assert "E012" in str(error.value) and "decorate it with @tessera.jit" in str(error.value)


def test_aggregates(run: Runner) -> None:
    x = np.zeros(1, np.int32)
    for count in (7, 9):
        run(into, (1,), Output(x, count))
        assert x[0] == count


@dataclasses.dataclass(frozen=True)
class Fixed:
    block: int


def test_dataclasses_are_made_in_kernels(run: Runner) -> None:
    x = np.zeros(1, np.int32)
    run(described, (1,), x, Fixed(100))
    assert x[0] == 3 * 8 + 4 + 100


def test_a_compiled_kernel_takes_them() -> None:
    x = np.arange(32, dtype=np.float32)
    arrays = [np.zeros(1, np.float32)]
    kernel = add_all[(1,)](arrays, Named(View(x, 20, 8, 16), [3.0, 1.0]), 5)
    y = np.arange(32, dtype=np.float32)
    kernel[(1,)](arrays, Named(View(y, 20, 8, 16), [3.0, 1.0]), 5)
    assert arrays[0][0] == 10
    np.testing.assert_array_equal(x, y)
    with pytest.raises(tessera.ArgumentError, match="compiled as a tuple of 1, got a list"):
        kernel[(1,)]([x, y], Named(View(y, 20, 8, 16), [3.0, 1.0]), 5)


def test_memory_of_parts_is_checked() -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(tessera.MemoryAccessError):
        add_all[(1,)]([x], Named(View(x, 20, 8, 16), [3.0, 1.0]), 5, debug=True)


def test_a_part_of_another_kind() -> None:
    with pytest.raises(tessera.ArgumentError, match=r"`arrays\[1\]` is a set"):
        add_all[(1,)]([np.zeros(1), {1}], 1, 2)
