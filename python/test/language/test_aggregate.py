# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Aggregates outside of kernels: their fields, constructors and inheritance."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import tessera
import tessera.language as tl


class Shape(NamedTuple):
    rows: Any
    columns: Any


@tessera.aggregate
class State:
    x: tl.constexpr
    y: tl.constexpr = 42


@tessera.aggregate
class Child(State):
    z: "tl.constexpr"

    @tessera.constexpr_function
    def total(self) -> Any:
        return self.x + self.y + self.z


def test_fields_are_taken_in_order_or_by_name() -> None:
    for state in (State(3, 7), State(3, y=7), State(x=3, y=tl.constexpr(7))):
        assert isinstance(state.x, tl.constexpr) and isinstance(state.y, tl.constexpr)
        assert (state.x.value, state.y.value) == (3, 7)


def test_defaults_and_inherited_ones() -> None:
    assert State(1).y.value == 42 and isinstance(State(1).y, tl.constexpr)
    child = Child(1, z=2)
    assert (child.x.value, child.y.value, child.z.value) == (1, 42, 2)
    assert child.total().value == 45


def test_constructors() -> None:
    @tessera.aggregate
    class Squares:
        value: tl.constexpr
        square: tl.constexpr

        def __init__(self, value: Any) -> None:
            self.value = value
            self.square = self.compute()

        @tessera.constexpr_function
        def compute(self) -> Any:
            return self.value * self.value

    @tessera.aggregate
    class More(Squares):
        name: tl.constexpr = "more"

        def __init__(self, value: Any) -> None:
            super().__init__(value + 1)

        def __post_init__(self) -> None:
            assert self.name.value == "more"

    assert Squares(4).square.value == 16
    assert More(4).square.value == 25


def test_tuples_in_them_hold_constants() -> None:
    @tessera.aggregate
    class View:
        shape: tl.tuple
        strides: tl.tuple

    view = View(Shape(3, tl.constexpr(7)), [7, 1])
    assert isinstance(view.shape, Shape) and isinstance(view.strides, tuple)
    assert [one.value for one in (*view.shape, *view.strides)] == [3, 7, 7, 1]


def test_they_do_not_change() -> None:
    state = State(1, 2)
    with pytest.raises(AttributeError, match="cannot assign to field 'x' on immutable aggregate"):
        state.x = 5
    with pytest.raises(AttributeError, match="cannot delete field 'x'"):
        del state.x
    changed = tl.aggregate_replace(state, x=30)
    assert (changed.x.value, changed.y.value, state.x.value) == (30, 2, 1)
    with pytest.raises(TypeError, match="has no field 'w'"):
        tl.aggregate_replace(state, w=1)
    with pytest.raises(TypeError, match="expects an aggregate instance, got the constant 3"):
        tl.aggregate_replace(3, x=1)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: State(), "made without 'x'"),
        (lambda: State(1, 2, 3), "has 2 fields, got 3 values"),
        (lambda: State(1, x=1), "two values for the field 'x'"),
        (lambda: State(1, w=1), "has no field 'w'"),
    ],
)
def test_wrong_fields(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_wrong_classes() -> None:
    class Plain:
        pass

    class Below(Plain):
        x: tl.constexpr

    with pytest.raises(TypeError, match="Aggregates can only inherit from other aggregates"):
        tessera.aggregate(Below)
    with pytest.raises(TypeError, match="takes a class"):
        tessera.aggregate(3)  # type: ignore[type-var]

    class Jitted:
        x: tl.constexpr

        @tessera.jit
        def __init__(self):
            pass

    with pytest.raises(TypeError, match="constructor of `Jitted` is a @jit function"):
        tessera.aggregate(Jitted)

    @tessera.aggregate
    class Forgetful:
        x: tl.constexpr
        y: tl.constexpr

        def __init__(self) -> None:
            self.x = 1

    with pytest.raises(AttributeError, match="leaves out the field 'y'"):
        Forgetful()

    @tessera.aggregate
    class Inventive:
        def __init__(self) -> None:
            self.other = 1

    with pytest.raises(AttributeError, match="has no field 'other'"):
        Inventive()
