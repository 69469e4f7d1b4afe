# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds for all operators: how long kernels are, and refusals of complex types and second derivatives.

By default a quarter of the operators is tested, and all with `--every-combination`.
"""

from __future__ import annotations

import importlib
import pkgutil
import statistics
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
from tessera.compiler.dependencies import _Closure  # noqa: E402
from tessera.frontend.source import source_of  # noqa: E402
from tessera.ops import kernels  # noqa: E402

from . import scheme  # noqa: E402
from .test_operators import CASES, NAMES  # noqa: E402

MEDIAN_LINES, MAX_LINES = 40, 150


def kernel_functions() -> list[Any]:
    modules = [
        importlib.import_module(f"{kernels.__name__}.{each.name}")
        for each in pkgutil.iter_modules(kernels.__path__)
    ]
    return [
        value
        for module in modules
        for name, value in vars(module).items()
        if name.endswith("_kernel") and value.__module__ == module.__name__
    ]


def lines_of(kernel: Any) -> int:
    """The lines of a kernel and of all functions that it calls, but those of the language."""
    closure = _Closure()
    closure.visit(kernel)
    texts = [source_of(function).text for function in closure.visited]
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def test_kernels_are_short() -> None:
    counts = {kernel.__name__: lines_of(kernel) for kernel in kernel_functions()}
    assert len(counts) > 50
    print(sorted(counts.items(), key=lambda item: -item[1])[:8])
    print(statistics.median(counts.values()))
    assert statistics.median(counts.values()) <= MEDIAN_LINES
    assert max(counts.values()) <= MAX_LINES


def first_of_each() -> list[scheme.Case]:
    """A case of each operator."""
    found: dict[str, scheme.Case] = {}
    for case in CASES:
        name = getattr(case.op, "__name__", "")
        found.setdefault(name if name in NAMES else case.name.split()[0], case)
    return list(found.values())


SOME = first_of_each()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    scheme.parametrize(metafunc, [case.name for case in SOME], 4)


def test_complex_types_are_refused(number: int) -> None:
    """Before any launch, with an id, a place and a fix, for each library."""
    case = SOME[number]
    dtype = case.dtypes[0]
    args = list(case.make(scheme.Maker(dtype, "dense", 7)))
    places = [at for at, each in enumerate(args) if scheme.is_float(each)]
    if not places:
        pytest.skip("no floats")
    for library in ("torch", "numpy"):
        if library not in case.libraries:
            continue
        given = [each.to(torch.complex64) if at in places else each for at, each in enumerate(args)]
        settings = dict(case.settings)
        if library == "numpy":
            given = [scheme._in("numpy", each) for each in given]
            settings = {key: scheme._in("numpy", each) for key, each in settings.items()}
        with pytest.raises(tessera.ArgumentError) as error:
            case.op(*given, **settings)
        assert error.value.id in ("E089", "E093"), error.value
        assert "complex64" in str(error.value) and "\nfix: " in str(error.value)
        assert "`_" not in str(error.value)  # the name of a part


def test_second_derivatives_are_right_or_refused(number: int) -> None:
    """E094 of operators with kernels of their own; others have what a difference of gradients has."""
    case = SOME[number]
    if not case.has_gradient or torch.float64 not in case.dtypes:
        pytest.skip("no derivative")
    args = [
        each.double() if scheme.is_float(each) else each
        for each in case.make(scheme.Maker(torch.float64, "dense", 7))
    ]
    leaves = [each.requires_grad_() for each in args if scheme.is_float(each)]
    results = scheme.as_tuple(case.op(*args, **case.settings))
    total = sum((each.double() ** 2).sum() for each in results if each.requires_grad)
    grads = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    again = sum((each**2).sum() for each in grads if each is not None and each.requires_grad)
    try:
        found = torch.autograd.grad(again, leaves, allow_unused=True)
    except tessera.ArgumentError as error:
        assert error.id == "E094" and "no second derivative" in str(error)
        return
    theirs = [each.detach().clone().requires_grad_() for each in leaves]
    rest = iter(theirs)
    whole = [next(rest) if scheme.is_float(each) else each for each in args]
    wanted = scheme.as_tuple(case.reference(*whole, **case.settings))
    total = sum((each.double() ** 2).sum() for each in wanted if each.requires_grad)
    grads = torch.autograd.grad(total, theirs, create_graph=True, allow_unused=True)
    again = sum((each**2).sum() for each in grads if each is not None and each.requires_grad)
    for one, want in zip(found, torch.autograd.grad(again, theirs, allow_unused=True)):
        if one is not None and want is not None:
            torch.testing.assert_close(one, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["stack", "topk", "log_softmax", "cummin", "unique_consecutive"])
def test_errors_name_the_operator_that_was_called(name: str) -> None:
    """And not the one that it calls."""
    op, x = getattr(tessera.ops, name), torch.ones(3, 4)
    given = {"stack": ([x, x],), "topk": (x, 2), "cummin": (x, 0)}.get(name, (x,))
    with pytest.raises(tessera.ArgumentError) as error:
        torch.func.vmap(lambda _: op(*given))(torch.ones(2))
    assert error.value.id == "E094" and f"`{name}`" in str(error.value)


def test_errors_of_shapes_name_the_operator() -> None:
    for name in ("clamp", "mse_loss", "smooth_l1_loss", "kl_div"):
        with pytest.raises(tessera.ArgumentError) as error:
            getattr(tessera.ops, name)(torch.ones(3, 4), torch.ones(5))
        assert f"`{name}`" in str(error.value)
