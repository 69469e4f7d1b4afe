# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.ops in functions that torch.compile compiles with Tessera, where types have Triton's names."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from tessera import ops  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_compiler")


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (lambda x: ops.softmax(x * 2) + 1, lambda x: (x * 2).softmax(-1) + 1),
        (lambda x: ops.silu(x * 2) + 1, lambda x: F.silu(x * 2) + 1),
        (lambda x: ops.group_norm(x * 2, 2) + 1, lambda x: F.group_norm(x * 2, 2) + 1),
        (lambda x: ops.cumsum(x * 2, 0) + ops.sum(x), lambda x: (x * 2).cumsum(0) + x.sum()),
    ],
    ids=["softmax", "silu", "group_norm", "sums"],
)
def test_values_and_gradients(ours, theirs) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    results = [torch.compile(ours, backend="tessera")(x), theirs(x)]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), x)[0] for y in results))


@pytest.mark.parametrize("first", ["enable", "optimize"])
def test_enable_leaves_graphs_to_their_compiler(first) -> None:
    """Whichever came first, what is compiled is not replaced, and what is not compiled is."""
    import tessera.torch

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Softmax(-1))
    x = torch.randn(3, 4)
    expected = model(x)
    if first == "optimize":
        compiled = tessera.torch.optimize(model)
        compiled(x)
    with ops.enable() as used, torch.no_grad():
        if first == "enable":
            compiled = tessera.torch.optimize(model)
        found = [compiled(x), compiled(x)]
        plain = torch.tanh(x)
    assert used.taken == {"tanh": 1} and not used.refused
    torch.testing.assert_close([*found, plain], [expected, expected, x.tanh()])


def test_numbers_that_are_computed_from_shapes() -> None:
    """They have no value while a graph of any shape is made, and none is fixed by a look at it."""

    def run(x):
        return ops.leaky_relu(ops.leaky_relu(x, 1 / x.shape[0]).sin(), float(x.shape[1])).sum()

    compiled = torch.compile(run, backend="tessera", fullgraph=True, dynamic=True)
    for shape, stance in (((4, 5), "default"), ((7, 3), "fail_on_recompile")):
        x = torch.randn(shape, requires_grad=True)
        with torch.compiler.set_stance(stance):
            found = [torch.autograd.grad(function(x), x)[0] for function in (compiled, run)]
        torch.testing.assert_close(*found)
