# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The deformable attention example: its results and gradients are plain torch's."""

import pytest

torch = pytest.importorskip("torch")

EXAMPLE = "deformable_attention"


# Eight points, and twelve, which are no tile's extent; with 100 queries the maps are copied.
TWO, THREE = [(9, 13), (5, 7)], [(9, 13), (5, 7), (3, 4)]


@pytest.mark.parametrize(
    "n, queries, dim, maps", [(1, 7, 32, TWO), (2, 20, 64, THREE), (2, 100, 32, THREE)]
)
def test_gradients_are_those_of_grid_sample(example, n, queries, dim, maps):
    torch.manual_seed(n)
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


def test_nothing_comes_of_points_outside_next_to_infinities(example):
    value, shapes, starts, loc, attn = example.inputs(1, 8, 32, TWO)
    loc = loc * 3 - 1
    columns, rows = loc[..., 0] * shapes[:, 1, None] - 0.5, loc[..., 1] * shapes[:, 0, None] - 0.5
    near = (columns > -1) & (rows > -1) & (columns < shapes[:, 1, None])
    near &= rows < shapes[:, 0, None]
    attn[near] = 0
    loc[near] = -2
    out = torch.empty(1, 8, 8 * 32)
    example.forward(torch.full_like(value, torch.inf), shapes, starts, loc, attn, out)
    assert not out.any()


def test_memory_is_used_again_once_nobody_has_it(example):
    like = torch.empty(1 << 20)
    first = example.empty_like(like)
    kept = first[5:].fill_(3)
    place = first.data_ptr()
    del first
    second = example.empty_like(like)
    assert second.data_ptr() != place and (kept == 3).all()
    del kept
    assert example.empty_like(like).data_ptr() == place
