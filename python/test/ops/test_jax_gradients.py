# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients with JAX, inside of `jax.jit`, against torch's of the reference in float64.

By default each fifth operator has a case; `--every-combination` runs all cases of all.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

import tessera  # noqa: E402
from tessera import ops  # noqa: E402

from . import scheme  # noqa: E402
from .test_operators import CASES, NAMES  # noqa: E402

jnp = jax.numpy

OF_TORCH = {"cross entropy weight", "nll weight", "linear cross entropy weights"}
"""Cases whose arguments have methods of torch."""


def name_of(case: scheme.Case) -> str:
    name = getattr(case.op, "__name__", "")
    return name if name in NAMES else case.name


def differentiable() -> list[scheme.Case]:
    return [
        case
        for case in CASES
        if case.has_gradient and case.dtypes[0].is_floating_point and case.name not in OF_TORCH
    ]


def first_of_each() -> list[scheme.Case]:
    found: dict[str, scheme.Case] = {}
    for case in differentiable():
        found.setdefault(name_of(case).split()[0], case)
    return list(found.values())


def gradients_of_reference(case: scheme.Case, args: Any) -> tuple[Any, Any, Any]:
    """The places of results with a gradient, weights for them, and the gradients of arguments."""
    wide = [
        each.double().detach().requires_grad_() if scheme.is_float(each) else each for each in args
    ]
    results = scheme.as_tuple(case.reference(*wide, **case.settings))
    places = [
        at for at, each in enumerate(results) if each.is_floating_point() and each.requires_grad
    ]
    maker = scheme.Maker(torch.float64, "dense", 0)
    weights = [maker.array(*results[at].shape, low=0.0, high=2.0) for at in places]
    leaves = [each for each in wide if scheme.is_float(each)]
    found = torch.autograd.grad([results[at] for at in places], leaves, weights, allow_unused=True)
    return places, weights, found


def check(case: scheme.Case, number: int, transform: Callable[[Any], Any]) -> None:
    dtype = torch.float32 if torch.float32 in case.dtypes else case.dtypes[0]
    args = list(case.make(scheme.Maker(dtype, "dense", number)))
    places, weights, wanted = gradients_of_reference(case, args)
    given = [scheme._in("jax", each) for each in args]
    settings = {key: scheme._in("jax", each) for key, each in case.settings.items()}
    at = [at for at, each in enumerate(args) if scheme.is_float(each)]

    def total(*floats: Any) -> Any:
        whole = list(given)
        for place, each in zip(at, floats):
            whole[place] = each
        results = scheme.as_tuple(case.op(*whole, **settings))
        parts = [
            (results[place] * jnp.asarray(weight.numpy(), results[place].dtype)).sum()
            for place, weight in zip(places, weights)
        ]
        return sum(parts[1:], parts[0])

    gradient = transform(jax.grad(total, argnums=tuple(range(len(at)))))
    for found, want in zip(gradient(*[given[place] for place in at]), wanted, strict=True):
        found = scheme._back(found)
        want = torch.zeros(found.shape, dtype=torch.float64) if want is None else want
        scheme.close(found, want, dtype, case)


SOME = first_of_each()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    scheme.parametrize(metafunc, [name_of(case).split()[0] for case in SOME], 5)


def test_gradient(number: int) -> None:
    check(SOME[number], number, jax.jit)


def test_all_cases(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--every-combination"):
        pytest.skip("--every-combination")
    for number, case in enumerate(differentiable()):
        print(case.name)
        check(case, number, jax.jit)


def test_transforms() -> None:
    x = jnp.linspace(-2, 2, 12).reshape(3, 4)

    def loss(x: Any) -> Any:
        return (ops.softmax(ops.gelu(x), 1) * ops.layer_norm(x, (4,))).sum()

    expected = jax.grad(loss)(x)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x), expected, rtol=1e-6)
    each = jax.vmap(jax.grad(lambda row: ops.silu(row).sum()))(x)
    np.testing.assert_allclose(each, jax.grad(lambda x: ops.silu(x).sum())(x), rtol=1e-6)
    # Integers, and numbers among the arguments, have no gradient.
    (of_x,) = jax.grad(lambda x: ops.gather(x, 1, jnp.array([[0], [1], [9]])).sum(), (0,))(x)
    np.testing.assert_array_equal(of_x, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    of_places = jax.grad(lambda x: (x * ops.argmax(x, 1, True)).sum())(x)
    np.testing.assert_array_equal(of_places, np.full((3, 4), 3.0))


def test_second_derivatives() -> None:
    """Those of scalar functions are derived; operators with kernels of their own have none."""
    x = jnp.linspace(-2, 2, 5)
    second = jax.grad(lambda x: jax.grad(lambda x: ops.tanh(x).sum())(x).sum())
    want = jax.grad(lambda x: jax.grad(lambda x: jnp.tanh(x).sum())(x).sum())(x)
    np.testing.assert_allclose(second(x), want, rtol=1e-5, atol=1e-6)
    with pytest.raises(tessera.ArgumentError, match="E094.*`softmax` has no second derivative"):
        jax.grad(lambda x: (jax.grad(lambda x: (ops.softmax(x) * x).sum())(x) ** 2).sum())(x)
    with pytest.raises(tessera.ArgumentError, match="E094.*has no derivative"):
        index = jnp.array([0, 1])
        jax.grad(lambda x: ops.scatter_reduce(x, 0, index, x[:2], "amax").sum())(x)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(ops.softmax, (x,), (x,))


def test_scatters() -> None:
    """They make new arrays, and leave their arguments."""
    x, index = jnp.zeros((3, 2)), jnp.array([2, 0])
    y = ops.index_add(x, 0, index, jnp.ones((2, 2)), alpha=2.0)
    assert y.tolist() == [[2, 2], [0, 0], [2, 2]] and not x.any()
    part = ops.scatter_add(jnp.ones(4), 0, jnp.array([1, 1, 7]), jnp.array([1.0, 2.0, 3.0]))
    assert part.tolist() == [1, 4, 1, 1]
    means = jax.jit(lambda x: ops.scatter_reduce(x, 0, index, x[:2], "mean"))(jnp.arange(3.0))
    assert means.tolist() == [0.5, 1, 1]
