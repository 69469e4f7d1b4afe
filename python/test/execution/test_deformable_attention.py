# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The deformable attention example: its results and gradients are plain torch's."""

import pytest

torch = pytest.importorskip("torch")

EXAMPLE = "deformable_attention"


@pytest.mark.parametrize("n, queries, dim", [(1, 7, 32), (2, 20, 64)])
def test_gradients_are_those_of_grid_sample(example, n, queries, dim):
    torch.manual_seed(n)
    maps = [(9, 13), (5, 7)]
    value, shapes, starts, loc, attn = example.inputs(n, queries, dim, maps)
    # Some points lie outside of the maps.
    loc = loc * 1.4 - 0.2
    grad = torch.rand(n, queries, 8 * dim)
    results = []
    for run in (
        lambda v, at, w: example.torch_op()(v, shapes, starts, at, w),
        lambda v, at, w: example.plain_torch(v, shapes, at, w),
    ):
        leaves = [one.clone().requires_grad_() for one in (value, loc, attn)]
        out = run(*leaves)
        out.backward(grad)
        results.append([out.detach(), *(one.grad for one in leaves)])
    for got, want in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
