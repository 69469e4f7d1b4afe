# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of elementwise operators in compiled functions: which calls become one, and that results and
gradients are those of the calls apart."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._inductor.custom_graph_pass import CustomGraphPass  # noqa: E402
from torch._inductor.utils import run_and_get_code  # noqa: E402

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402
from tessera.torch import chains, elementwise, graph_pass, recipes  # noqa: E402


@tessera.pointwise
def gated(x, y):
    return x * tl.sigmoid(x) + y


@tessera.pointwise
def scaled(x, factor):
    return x * factor + 1.0


@tessera.pointwise
def sum_and_product(x, y):
    return x + y, x * y


@tessera.pointwise
def larger(x, y):
    return x > y


@tessera.pointwise
def tripled(x):
    return x * 3.0


@tripled.backward
def tripled_backward(grad, x):
    return grad * 3.0


@tessera.pointwise
def looped(x):
    for _ in range(2):
        x = x + 1.0
    return x


def check(function: Callable[..., Any], *args: Any, has_gradient: bool = True, **options: Any) -> list[str]:  # fmt: skip
    """Compares a function with what it is when chains are joined, and returns the operators of ours in
    its graph. A chain is `+` and the names of its calls."""
    names: list[str] = []

    def backend(module: Any, inputs: Any) -> Any:
        chains.join_chains(module.graph)
        module.graph.lint()
        module.recompile()
        for node in module.graph.nodes:
            if node.target is recipes.overload():
                calls = recipes.ast.literal_eval(node.args[-1])[1]
                names.append("+".join(each.rpartition("test_chains_")[2] for each, _ in calls))
            elif "pointwise" in str(node.target):
                names.append(
                    str(node.target).rpartition("test_chains_")[2].removesuffix(".default")
                )
        return aot_autograd(fw_compiler=lambda graph, _: graph)(module, inputs)

    def copies() -> list[Any]:
        return [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True, **options)
    leaves = [
        [arg.requires_grad_() if has_gradient and isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in copies()]
        for _ in range(2)
    ]  # fmt: skip
    found, strides = [], []
    for call, given in zip((function, compiled), leaves):
        results = call(*given)
        results = results if isinstance(results, tuple) else (results,)
        strides.append([(each.stride(), each.requires_grad) for each in results])
        if has_gradient:
            tensors = [each for each in given if getattr(each, "requires_grad", False)]
            total = sum((each.float() ** 2).sum() for each in results)
            results += torch.autograd.grad(total, tensors, allow_unused=True)
        found.append(results)
    for expected, result in zip(*found):
        # Results within a chain are not rounded.
        tolerance = 0.02 if expected is not None and expected.dtype == torch.bfloat16 else 1e-4
        torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)
    assert strides[0] == strides[1]
    return names


X, ROW = torch.linspace(-2, 2, 20).reshape(4, 5), torch.linspace(0, 1, 5)


def test_a_chain_with_results_that_are_used_elsewhere() -> None:
    def program(x: Any, y: Any, factor: Any) -> Any:
        first = scaled(gated(x, y), factor)
        elsewhere = torch.sin(first)
        total, product = sum_and_product(first, x)
        return gated(total, product), elsewhere, product

    assert check(program, X, ROW, 2.5) == ["gated+scaled+sum_and_product+gated"]
    found = check(program, X.t(), torch.ones(5, 4), 2.5, dynamic=True)
    assert found[-1] == "gated+scaled+sum_and_product+gated"


def test_results_without_a_gradient_stay_apart() -> None:
    """They have none, as in the function that is not compiled: NumPy takes them."""

    def function(x: Any, y: Any) -> Any:
        first = scaled(y.detach(), 2.0)
        second = gated(first, x)
        return first, scaled(second, 0.5)

    assert check(function, X, X + 1) == ["scaled", "gated+scaled"]

    def inside(x: Any, y: Any) -> Any:
        return scaled(gated(scaled(y.detach(), 2.0), x), 0.5)

    assert check(inside, X, X + 1) == ["scaled+gated+scaled"]


@pytest.mark.parametrize("as_eager", [True, False])
def test_draws_of_eager_calls_keep_their_order(as_eager: bool) -> None:
    """`fallback_random` of Inductor promises the draws of the function that is not compiled."""

    def function(x: Any) -> Any:
        first = scaled(x, 2.0)
        draws = torch.rand_like(first), torch.rand(4, 5)
        return scaled(first, 0.5), *draws

    def backend(module: Any, inputs: Any) -> Any:
        with torch._inductor.config.patch(fallback_random=as_eager):
            graph_pass.GraphPass(())(module.graph)
        module.recompile()
        return module.forward

    results = []
    for call in (function, torch.compile(function, backend=backend)):
        torch.manual_seed(0)
        results.append(call(X))
    assert torch.equal(results[0][2], results[1][2]) == as_eager
    torch.testing.assert_close(results[0][0], results[1][0])


def test_rows_are_computed_within_the_chain_if_nothing_else_needs_them() -> None:
    def program(x: Any, y: Any) -> Any:
        return gated(x, scaled(y, 2.0))

    def shared(x: Any, y: Any) -> Any:
        row = scaled(y, 2.0)
        return gated(x, row), gated(row, row)

    assert check(program, X, ROW) == ["scaled+gated"]
    assert check(shared, X, ROW) == ["scaled+gated", "gated"]


def test_what_is_written_in_between_parts_a_chain() -> None:
    def program(x: Any, y: Any) -> Any:
        first = scaled(x, 2.0)
        y.add_(1.0)
        second = gated(first, y)
        second.mul_(2.0)
        return scaled(second, 3.0)

    def at_once(x: Any) -> Any:
        first = scaled(x, 2.0)
        with torch.no_grad():
            second = scaled(first, 3.0)
        return scaled(first, 4.0) + second

    assert check(program, X, ROW, has_gradient=False) == ["scaled", "gated", "scaled"]
    assert check(at_once, X) == ["scaled", "scaled", "scaled"]


def test_an_operation_in_between_that_needs_a_result() -> None:
    def program(x: Any, y: Any) -> Any:
        first = scaled(x, 2.0)
        return gated(first, torch.cumsum(first, 0))

    def crossing(x: Any, y: Any) -> Any:
        # Each chain would need a result of the other one.
        a = scaled(x, 2.0)
        b = scaled(torch.cumsum(a, 0), 3.0)
        c = scaled(y, 4.0)
        d = gated(b, c)
        return gated(a, torch.cumsum(c, 0)), d

    def moved(x: Any, y: Any) -> Any:
        first = scaled(x, 2.0)
        early = torch.cumsum(first, 0)
        other = torch.cumsum(y, 0)
        return gated(first, other), early

    assert check(program, X, X) == ["scaled", "gated"]
    assert check(crossing, X, X) == ["scaled", "scaled+scaled+gated", "gated"]
    assert check(moved, X, X) == ["scaled+gated"]


def test_types_that_chains_do_not_have() -> None:
    def promoted(x: Any, y: Any) -> Any:
        return gated(scaled(x, 2.0), y)

    def compared(x: Any, y: Any) -> Any:
        return larger(scaled(x, 2.0), y)

    for one, other in ((X.bfloat16(), X), (X, X.double()), ((X * 4).int(), X)):
        assert check(promoted, one, other) == ["scaled", "gated"]
    assert check(promoted, X.bfloat16(), X.bfloat16(), has_gradient=False) == ["scaled+gated"]
    assert check(compared, X, ROW, has_gradient=False) == ["scaled", "larger"]


def test_derivatives_decide() -> None:
    def own(x: Any) -> Any:
        return scaled(tripled(x), 2.0)

    def none(x: Any, y: Any) -> Any:
        return gated(looped(x.detach()), y)

    assert check(own, X) == ["tripled", "scaled"]
    assert check(own, X, has_gradient=False) == ["tripled+scaled"]
    # The joined function would have to be derived, and a loop has no derivative.
    assert check(none, X, X) == ["looped", "gated"]
    assert check(none, X, X, has_gradient=False) == ["looped+gated"]


def test_limits() -> None:
    def program(*arrays: Any) -> Any:
        total = arrays[0]
        for each in arrays[1:]:
            total = gated(total, each)
        return total

    names = check(program, *[X + at for at in range(16)], has_gradient=False)
    assert len(names) == 2 and all(len(name.split("+")) < chains.MAX_ARRAYS for name in names)


def test_chains_of_random_programs() -> None:
    """Programs of joinable and other operations, views and writes, each compared with itself."""
    joined = 0
    for seed in range(5):
        steps = []
        choose = random.Random(seed)
        for at in range(10):
            kind = choose.choice(
                ("gated", "gated", "scaled", "scaled", "two", "torch", "row", "write")
            )
            steps.append((kind, choose.randrange(at + 2), choose.randrange(at + 2)))

        def program(x: Any, y: Any) -> Any:
            values = [x, y]
            for kind, one, other in steps:
                a, b = values[one], values[other]
                if kind == "gated":
                    values.append(gated(a, b))
                elif kind == "scaled":
                    values.append(scaled(a, 0.5))
                elif kind == "two":
                    values.append(sum_and_product(a, b)[one % 2])
                elif kind == "torch":
                    values.append(torch.cumsum(a, 0) * 0.25)
                elif kind == "row":
                    values.append(scaled(a[:1], 0.25))
                else:
                    values.append(a.clone())
                    values[-1].mul_(0.5)
            return tuple(values[-4:])

        names = check(program, X, X.flip(0) * 0.5, has_gradient=seed == 0)
        joined += sum("+" in name for name in names)
    assert joined > 4


def test_recipes_make_their_operators_again() -> None:
    x = torch.randn(4, 5)
    call = recipes.Call(elementwise.recipe_of(gated), ("x0", "x1"))
    recipe = recipes.chain_recipe([call, call._replace(args=("t0_0", "x1"))], ["t1_0"], 2, 0)
    first = recipes.find(recipe, elementwise.gradient)
    derivative = elementwise.gradient(first, (True, False))
    text = elementwise.recipe_of(derivative)
    recipes._made.clear()  # as in a process that loads a compiled graph
    again = recipes.find(text, elementwise.gradient)
    assert again is not derivative
    assert torch.equal(again(x, x, x), derivative(x, x, x))
    with pytest.raises(tessera.ArgumentError, match="E089.*mylib::unknown.*has not made"):
        recipes.find("mylib::unknown", elementwise.gradient)
    torch.library.opcheck(recipes.operator, ([x.requires_grad_(), x], [], "aa", "[]", recipe))


def test_inductor_runs_the_pass_behind_a_users() -> None:
    class Counted(CustomGraphPass):
        graphs = 0

        def __call__(self, graph: Any) -> None:
            self.graphs += 1

        def uuid(self) -> Any:
            return "counted"

    config = torch._inductor.config
    users = Counted()
    with config.patch(pre_grad_custom_pass=users):
        graph_pass.install()
        graph_pass.install()
        joins = config.pre_grad_custom_pass
        assert isinstance(joins, graph_pass.GraphPass) and joins.others == (users,)
        assert joins.uuid()[0] == "counted"
        joins(torch.fx.Graph())
        assert users.graphs == 1
    with config.patch(pre_grad_custom_pass=print):  # without a uuid
        graph_pass.install()
        assert config.pre_grad_custom_pass is print


def test_inductor_compiles_a_chain_to_one_call(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()

    def program(x: Any, y: Any) -> Any:
        return gated(scaled(gated(x, y), 2.0), y)

    x, y = X.clone().requires_grad_(), X.flip(0)

    def run() -> Any:
        result = torch.compile(program, fullgraph=True)(x, y)
        return result, *torch.autograd.grad(result.sum(), x)

    found, texts = run_and_get_code(run)
    expected = program(x, y)
    torch.testing.assert_close(found, (expected, *torch.autograd.grad(expected.sum(), x)))
    assert [len(re.findall(r"= tessera_call_\w+\(", text)) for text in texts] == [1, 1]
