# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel read is asked for at each launch (python/src/Checks.h): globals by the versions of
their dicts, in whatever way these are changed. test_stale_code.py has all that can be read."""

from __future__ import annotations

import importlib
import random
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl

HERE = tl.constexpr(3)
there = types.ModuleType("there")
there.X = 3  # type: ignore[attr-defined]
there.Y = 4  # type: ignore[attr-defined]


@tessera.jit
def write(out_ptr):
    tl.store(out_ptr, HERE * 100 + there.X)


@tessera.jit
def write_there(out_ptr):
    tl.store(out_ptr, there.X + 0 * tl.program_id(0))


def launch(kernel: Any = write) -> int:
    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    return int(out[0])


class Name(str):
    """Equal to a string, and not one of Python's own."""


def clear(names: dict[Any, Any], value: int) -> None:
    kept = {**names, "X": value}
    names.clear()
    names.update(kept)


def rename(names: dict[Any, Any], value: int) -> None:
    del names["X"]
    names[Name("X")] = value


def outgrow(names: dict[Any, Any], value: int) -> None:
    names.update({f"of_many_{i}": i for i in range(500)}, X=value)
    for i in range(500):
        del names[f"of_many_{i}"]


CHANGES: dict[str, Callable[[dict[Any, Any], int], Any]] = {
    "item": lambda names, value: names.__setitem__("X", value),
    "attribute": lambda names, value: setattr(there, "X", value),
    "statement": lambda names, value: exec(f"X = {value}", names),
    "function": lambda names, value: exec(f"def f():\n global X\n X = {value}\nf()", names),
    "update": lambda names, value: names.update(X=value),
    "or": lambda names, value: names.__ior__({"X": value}),
    "pop": lambda names, value: (names.pop("X"), names.setdefault("X", value)),
    "popitem": lambda names, value: (names.pop("X"), names.update(X=0), names.popitem(), names.update(X=value)),
    "clear": clear,
    "name": rename,
    "outgrow": outgrow,
}  # fmt: skip

NOTHING: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "other": lambda names: names.__setitem__("Y", names["Y"] + 1),
    "same": lambda names: names.__setitem__("X", names["X"]),
    "number": lambda names: names.__setitem__(1, 2),
    "new": lambda names: (names.__setitem__("Z", 1), names.pop("Z")),
    "no change": lambda names: None,
}


@pytest.fixture(autouse=True)
def restored():
    yield
    globals()["HERE"] = tl.constexpr(3)
    there.__dict__.pop("X", None)
    there.X = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_way_of_changing_a_global(change):
    assert [launch(write_there) for _ in range(3)] == [3, 3, 3]
    for value in (5, 3, 7):
        change(vars(there), value)
        assert [launch(write_there) for _ in range(2)] == [value, value]


def test_a_global_that_goes_and_comes_back():
    assert launch() == launch() == 303
    del there.X  # type: ignore[attr-defined]
    with pytest.raises(tessera.CompilationError, match="X"):
        launch()
    with pytest.raises(tessera.CompilationError, match="X"):
        launch()
    there.X = 5  # type: ignore[attr-defined]
    assert launch() == launch() == 305


@tessera.constexpr_function
def three():
    return 3


@tessera.constexpr_function
def three_of_another():
    return three()


@tessera.jit
def write_three(out_ptr):
    tl.store(out_ptr, three_of_another())


def test_attributes_of_objects():
    """Python 3.13 sets them without a new version of the object's dict."""
    before = three.fn
    try:
        for _ in range(3):
            assert [launch(write_three) for _ in range(3)] == [3, 3, 3]
            three.fn = lambda: 5
            assert [launch(write_three) for _ in range(3)] == [5, 5, 5]
            three.fn = before
    finally:
        three.fn = before


class Meddler(str):
    """A name beside one of a kernel's in its module's dict, which launches when it is compared."""

    launches = 50

    def __hash__(self):
        return hash("X")

    def __eq__(self, other):
        if other == "X" and Meddler.launches < 50:
            Meddler.launches += 1
            launch(write_there)
        return False


def test_a_lookup_that_launches():
    names = vars(there)
    kept = dict(names)
    names.pop("X")
    names[Meddler("Meddler")] = 1
    names["X"] = 3
    try:
        for value in (3, 5, 7, 3):
            names["X"] = value
            Meddler.launches = 0
            assert [launch(write_there) for _ in range(3)] == [value] * 3
            assert value == 3 or Meddler.launches
    finally:
        names.clear()
        names.update(kept)


@pytest.mark.filterwarnings("ignore::tessera.errors.RecompilationWarning")
def test_random_changes_of_two_dicts():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    generator = random.Random(seed)
    here, names = globals(), vars(there)
    held = [write[(1,)], write[(1,)]]
    for step in range(200):
        kind = generator.randrange(4)
        if kind == 0:
            here["HERE"] = tl.constexpr(generator.choice((3, 5)))
        elif kind == 1:
            generator.choice(list(CHANGES.values()))(names, generator.choice((3, 5, 7)))
        else:
            generator.choice(list(NOTHING.values()))(names)
        for _ in range(generator.randrange(1, 3)):
            out = np.zeros(1, np.int32)
            generator.choice((*held, write[(1,)]))(out)
            assert out[0] == here["HERE"].value * 100 + names["X"], (seed, step)


@pytest.mark.parametrize("change", NOTHING.values(), ids=NOTHING)
def test_what_was_not_read_may_change(change, monkeypatch):
    """The whole way is not taken again."""
    launch()
    whole: list[Any] = []
    run = tessera.JITFunction._run
    monkeypatch.setattr(
        tessera.JITFunction, "_run", lambda self, *args: whole.append(self) or run(self, *args)
    )
    for _ in range(3):
        change(vars(there))
        assert launch() == 303
    assert not whole


def import_sum(folder, monkeypatch, lines: list[str], terms: list[str]):
    """A module of these lines, and of a kernel `add` that writes the sum of the terms."""
    (folder / "sum_of_many.py").write_text(
        "import tessera, tessera.language as tl\n"
        + "".join(f"{line}\n" for line in lines)
        + "@tessera.jit\ndef add(out_ptr):\n    tl.store(out_ptr, "
        + " + ".join(terms)
        + ")\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "sum_of_many", raising=False)
    return importlib.import_module("sum_of_many")


def check_sum(add: Any, count: int, change: Callable[[int], None]) -> None:
    """Of `count` terms, of which the i-th is i until `change` makes it 1000."""
    total = count * (count - 1) // 2
    assert launch(add) == launch(add) == total
    for i in range(0, count, 7):
        change(i)
        total += 1000 - i
        assert launch(add) == launch(add) == total


def test_a_function_of_many_modules(tmp_path, monkeypatch):
    """More dicts than are asked for their versions."""
    names = [f"one_of_many_{i}" for i in range(40)]
    for i, name in enumerate(names):
        (tmp_path / f"{name}.py").write_text(f"X = {i}\n")
    lines = [f"import {name}" for name in names]
    module = import_sum(tmp_path, monkeypatch, lines, [f"{name}.X" for name in names])
    check_sum(module.add, 40, lambda i: setattr(getattr(module, names[i]), "X", 1000))


def test_a_function_of_many_names(tmp_path, monkeypatch):
    """Each of a module's names that a kernel reads is looked up after a change."""
    names = [f"N{i}" for i in range(40)]
    lines = [f"{name} = tl.constexpr({i})" for i, name in enumerate(names)]
    module = import_sum(tmp_path, monkeypatch, lines, names)
    check_sum(module.add, 40, lambda i: setattr(module, names[i], tl.constexpr(1000)))
