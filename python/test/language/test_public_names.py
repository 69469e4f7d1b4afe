# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every public name has a signature, types and a docstring, and tools that read code see them."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import inspect
import pydoc
import re
import sys
import typing
from types import FunctionType, ModuleType
from typing import Any, Iterator

import numpy as np
import pytest

import tessera
import tessera.language as tl

MODULES = (
    "tessera",
    "tessera.errors",
    "tessera.gpu",
    "tessera.jax",
    "tessera.language",
    "tessera.language.extra",
    "tessera.language.extra.cuda",
    "tessera.language.extra.libdevice",
    "tessera.language.math",
    "tessera.language.random",
    "tessera.language.target_info",
    "tessera.settings",
    "tessera.testing",
    "tessera.tools.tensor_descriptor",
    "tessera.tuning",
    "tessera.views",
)

NAMES = [(module, name) for module in MODULES for name in importlib.import_module(module).__all__]


@functools.lru_cache(maxsize=None)
def documented_variables(module: str) -> frozenset[str]:
    """The names of a module that are assigned and have a docstring right below."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    found = set()
    for statement, after in zip(tree.body, tree.body[1:]):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if not is_text or not isinstance(after.value.value, str):  # type: ignore[attr-defined]
            continue
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found.add(statement.targets[0].id)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
    return frozenset(found)


def lacks_of_function(function: Any, skips_first: bool = False) -> Iterator[str]:
    """What is missing of a function: its signature, types of parameters, a docstring."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        yield "no signature"
        return
    parameters = list(signature.parameters.values())[1 if skips_first else 0 :]
    for parameter in parameters:
        if parameter.annotation is inspect.Parameter.empty:
            yield f"no type of `{parameter.name}`"
    if signature.return_annotation is inspect.Signature.empty:
        yield "no type of its result"
    if not (inspect.getdoc(function) or "").strip():
        yield "no docstring"
    if "<locals>" in getattr(function, "__qualname__", ""):
        yield f"a name of another function, {function.__qualname__}"


def lacks_of_class(cls: type) -> Iterator[str]:
    if not (cls.__doc__ or "").strip():
        yield "no docstring"
    is_ours = [base for base in cls.__mro__ if base.__module__.startswith("tessera")]
    if any("__init__" in vars(base) for base in is_ours) and not issubclass(cls, tuple):
        yield from (
            f"__init__: {lack}"
            for lack in lacks_of_function(cls.__init__, True)  # type: ignore[misc]
            if lack != "no docstring"
        )
    for base in is_ours:
        for name, member in list(vars(base).items()):
            if name.startswith("_") or name in getattr(base, "__annotations__", {}):
                continue
            if isinstance(member, property):
                assert member.fget is not None
                lacks = lacks_of_function(member.fget, True)
            elif isinstance(member, (staticmethod, classmethod)):
                lacks = lacks_of_function(member.__func__, isinstance(member, classmethod))
            elif isinstance(member, FunctionType) or hasattr(member, "__wrapped__"):
                lacks = lacks_of_function(member, True)
            else:
                continue
            yield from (f"{name}: {lack}" for lack in lacks)


def lacks(module: str, name: str) -> list[str]:
    value = getattr(importlib.import_module(module), name)
    if isinstance(value, ModuleType):
        return [] if value.__doc__ else ["no docstring"]
    if getattr(value, "__module__", None) == "builtins":  # Python's own
        return [] if name in documented_variables(module) else ["no docstring"]
    if isinstance(value, type):
        return list(lacks_of_class(value))
    if callable(value) and not isinstance(value, (tl.dtype, type(tessera.settings))):
        return list(lacks_of_function(value))
    if name in documented_variables(module):
        return []
    home = next(
        (m for m in map("tessera.language.{}".format, ("types",)) if name in vars(sys.modules[m])),
        "",
    )
    if home and name in documented_variables(home):
        return []
    return [] if type(value).__module__ != "builtins" and value.__doc__ else ["no docstring"]


@pytest.mark.parametrize(
    ("module", "name"), NAMES, ids=[f"{module}.{name}" for module, name in NAMES]
)
def test_each_name(module: str, name: str) -> None:
    assert lacks(module, name) == []


def test_names_are_what_is_there() -> None:
    """`__all__` is written out for type checkers: it is what the module has for its users."""
    hidden = {"Any", "CONSTEXPR_0", "ModuleType", "TYPE_CHECKING", "annotations"}
    public = {
        name
        for name, value in vars(tl).items()
        if not name.startswith("_") and (name in tl.__all__ or not isinstance(value, ModuleType))
    } - hidden
    assert sorted(public | {"libdevice"}) == sorted(tl.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_completion_offers_what_is_public(module: str) -> None:
    here = importlib.import_module(module)
    assert set(here.__all__) <= set(dir(here))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (tl.sum, "sum(input: "),
        (tl.load, "load(pointer: "),
        (tl.exp, "exp(x: "),
        (tl.extra.libdevice.acos, "acos(arg0: "),
        (tessera.cdiv, "cdiv(x: "),
        (tessera.next_power_of_2, "next_power_of_2(n: "),
        (tessera.jit, "jit(fn: "),
    ],
)
def test_help_shows_parameters(function: Any, text: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(function))
    # Python 3.13 puts each parameter of a long signature on a line of its own.
    assert text in re.sub(r"\(\n +", "(", shown)
    assert inspect.getdoc(function).splitlines()[0] in shown  # type: ignore[union-attr]


@tessera.jit
def scale(x_ptr: tl.tensor, n: int, BLOCK: tl.constexpr = 64) -> None:
    """Doubles the elements of x."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, offsets < n), offsets < n)


def test_kernel_is_shown_as_its_function() -> None:
    assert list(inspect.signature(scale).parameters) == ["x_ptr", "n", "BLOCK"]
    assert "scale(x_ptr: " in pydoc.plain(pydoc.render_doc(scale))
    assert "Doubles the elements" in pydoc.plain(pydoc.render_doc(scale))
    assert "tl.store" in inspect.getsource(scale)
    hints = typing.get_type_hints(scale)
    assert hints["n"] is int and hints["BLOCK"] is tl.constexpr and "return" in hints


def test_tuned_kernels_are_shown_as_their_function() -> None:
    computed = tessera.heuristics({"BLOCK": lambda args: 64})(scale)
    tuned = tessera.autotune([tessera.Config({"BLOCK": 64})], key=["n"])(scale)
    for kernel in (computed, tuned):
        assert list(inspect.signature(kernel).parameters) == ["x_ptr", "n", "BLOCK"]
        assert "scale(x_ptr: " in pydoc.plain(pydoc.render_doc(kernel))
        assert type("Layer", (), {"kernel": kernel})().kernel is kernel


def test_kernel_in_a_class_stays_a_kernel() -> None:
    class Layer:
        kernel = scale

    assert Layer().kernel is scale and Layer.kernel is scale


def test_types_can_be_evaluated() -> None:
    """Annotations are text; what they name is there at run time, too."""
    for name in tl.__all__:
        value = getattr(tl, name)
        function = getattr(value, "__wrapped__", value)
        if isinstance(function, FunctionType):
            assert "return" in typing.get_type_hints(function), name


def test_methods_of_tensors_are_listed_for_readers() -> None:
    """Those that are added to the class stand in it for type checkers: all, and the same."""
    tree = ast.parse(inspect.getsource(sys.modules["tessera.language.tensor"]))
    (cls,) = (x for x in tree.body if isinstance(x, ast.ClassDef) and x.name == "tensor")
    (block,) = (x for x in cls.body if isinstance(x, ast.If))
    listed = {}
    for statement in block.body:
        if isinstance(statement, ast.Assign):
            assert isinstance(statement.targets[0], ast.Name)
            assert isinstance(statement.value, ast.Attribute)
            home = ast.unparse(statement.value.value).lstrip("_")
            listed[statement.targets[0].id] = f"tessera.language.{home}.{statement.value.attr}"
        elif isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
            listed[statement.name] = f"tessera.language.memory.{statement.name}"
    written = {x.name for x in cls.body if isinstance(x, ast.FunctionDef)}
    added = {
        name: value
        for name, value in vars(tl.tensor).items()
        if not name.startswith("_") and name not in written and callable(value)
    }
    assert sorted(listed) == sorted(added)
    for name, path in listed.items():
        module, _, attribute = path.rpartition(".")
        assert getattr(importlib.import_module(module), attribute) is added[name], name


@tessera.jit
def move_blocks(x_ptr: tl.tensor, y_ptr: tl.tensor) -> None:
    x = tl.make_tensor_descriptor(x_ptr, [16, 16], [16, 1], [8, 16])
    y = tl.make_tensor_descriptor(y_ptr, [16, 16], [16, 1], [8, 16])
    tl.tensor_descriptor.store(y, [0, 0], tl.tensor_descriptor.load(x, [8, 0]))
    x_rows = tl.make_tensor_descriptor(x_ptr, [16, 16], [16, 1], [1, 16])
    y_rows = tl.make_tensor_descriptor(y_ptr, [16, 16], [16, 1], [1, 16])
    rows = tl.tensor_descriptor.gather(x_rows, tl.arange(0, 8), 0)
    tl.tensor_descriptor.scatter(y_rows, rows, 15 - tl.arange(0, 8), 0)
    tl.tensor_descriptor.atomic_add(y, [0, 0], tl.full((8, 16), 1, tl.int32))
    tl.tensor_descriptor.atomic_max(y, [0, 0], tl.full((8, 16), 130, tl.int32))


def test_methods_that_descriptors_list_are_what_kernels_call() -> None:
    x = np.arange(256, dtype=np.int32).reshape(16, 16)
    y = np.zeros_like(x)
    tessera.interpret(move_blocks)[(1,)](x, y)
    wanted = np.concatenate([np.maximum(x[8:] + 1, 130), x[:8][::-1]])
    np.testing.assert_array_equal(y, wanted)
    listed = {name for name in vars(tl.tensor_descriptor) if not name.startswith("_")}
    assert listed - set(vars(tl.tensor)) == set()


SOURCE = """
import tessera.language as tl

def kernel(x_ptr: tl.tensor):
    x = tl.load(x_ptr)
    x.
"""


def test_jedi_completes_tensors() -> None:
    jedi = pytest.importorskip("jedi", reason="jedi is not installed")
    names = {one.name for one in jedi.Script(SOURCE).complete(6, 6)}
    assert {"shape", "dtype", "to", "sum", "exp", "store", "reshape"} <= names
    signatures = jedi.Interpreter("tl.sum(", [{"tl": tl}]).get_signatures()
    assert [parameter.name for parameter in signatures[0].params][:2] == ["input", "axis"]
    of_module = {one.name for one in jedi.Interpreter("tl.", [{"tl": tl}]).complete()}
    assert set(tl.__all__) - {"libdevice"} <= of_module


def test_builtins_are_not_hidden_by_accident() -> None:
    """Names that the language has in common with Python mean the language's in kernels alone."""
    shared = {name for name in tl.__all__ if hasattr(builtins, name)}
    assert shared == {"abs", "max", "min", "range", "slice", "sum", "tuple"}
