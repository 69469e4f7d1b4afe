# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks of attention that are known when a graph is compiled (tessera.torch.attention_masks)."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tessera.torch.attention_masks import simplify_masks  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_compiler")

attend = torch.nn.functional.scaled_dot_product_attention
N, T, D = 2, 12, 8


def positions(length, dim):
    return torch.arange(length).unsqueeze(dim)


def whole(q, k, v, extra):
    mask = (positions(T, 1) >= 0).expand(T, T)[None, None].expand(N, 1, -1, -1)
    return attend(q, k, v, attn_mask=mask)


def whole_by_place(q, k, v, extra):
    return attend(q, k, v, torch.ones(T, T, dtype=torch.bool), 0.0, False, scale=0.5)


def causal(q, k, v, extra):
    """As transformers makes it."""
    rows = torch.arange(T) + 0
    seen = rows[None, :].expand(N, -1)
    before = torch.diff(seen, prepend=seen[:, :1] - 1, dim=-1)
    packed = (before != 1).cumsum(-1)
    batch = torch.arange(N)[:, None, None, None]
    i, j = rows[None, None, :, None], rows[None, None, None, :]
    mask = i.new_ones((), dtype=torch.bool) & (seen[batch, j] <= seen[batch, i]).to(q.device)
    mask = mask & (packed[batch, i] == packed[batch, j])
    return attend(q, k, v, attn_mask=mask.expand(N, -1, T, T))


def causal_twice(q, k, v, extra):
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    x = attend(q, k, v, attn_mask=mask)
    x += 1  # in place, of what is no mask
    return attend(x, k, v, attn_mask=mask)


def operators_by_name(q, k, v, extra):
    rows = torch.arange(T)
    mask = (rows[:, None].__ge__(rows[None, :])).__and__(torch.ones((), dtype=torch.bool))
    return attend(q, k, v, attn_mask=mask)


SIMPLE = {whole: 1, whole_by_place: 1, causal: 1, causal_twice: 2, operators_by_name: 1}


def window(q, k, v, extra):
    i, j = positions(T, 1), positions(T, 0)
    return attend(q, k, v, attn_mask=(j <= i) & (i - j < 4))


def causal_of_fewer_queries(q, k, v, extra):
    return attend(q[:, :, :5], k, v, attn_mask=positions(T, 0) <= positions(5, 1))


def of_an_argument(q, k, v, extra):
    return attend(q, k, v, attn_mask=(positions(T, 0) <= positions(T, 1)) & (extra >= 0)[:T])


def changed_later(q, k, v, extra):
    mask = torch.ones(T, T, dtype=torch.bool)
    mask[0, 1:] = False
    return attend(q, k, v, attn_mask=mask)


def changed_through_a_view(q, k, v, extra):
    mask = torch.ones(T, T, dtype=torch.bool)
    for part in mask.chunk(2):
        part.logical_and_(extra[:T] > 0.5)
    return attend(q, k, v, attn_mask=mask)


def changed_by_name(q, k, v, extra):
    mask = torch.ones(T, T, dtype=torch.bool)
    mask.__iand__(extra[:T] > 0.5)
    return attend(q, k, v, attn_mask=mask)


def of_floats(q, k, v, extra):
    return attend(q, k, v, attn_mask=torch.zeros(T, T))


@torch.library.custom_op("tessera_test::empty_mask", mutates_args=["mask"])
def empty_mask(mask: torch.Tensor) -> None:
    mask[:, 1:] = False


def changed_by_an_operator(q, k, v, extra):
    mask = torch.ones(T, T, dtype=torch.bool)
    torch.ops.tessera_test.empty_mask(mask)
    return attend(q, k, v, attn_mask=mask)


def random(q, k, v, extra):
    return attend(q, k, v, attn_mask=torch.rand(T, T) >= 0)


OTHERS = (
    window, causal_of_fewer_queries, of_an_argument, changed_later, changed_through_a_view,
    changed_by_name, of_floats, changed_by_an_operator, random,
)  # fmt: skip


def compile_and_count(function, counts, **options):
    def backend(graph, inputs):
        counts.append(simplify_masks(graph))
        graph.graph.lint()
        return graph.forward

    torch._dynamo.reset()
    return torch.compile(function, backend=backend, **options)


@pytest.mark.parametrize("function", [*SIMPLE, *OTHERS], ids=lambda function: function.__name__)
def test_a_mask(function):
    torch.manual_seed(0)
    q, k, v = (torch.randn(N, 3, T, D) for _ in range(3))
    extra = torch.rand(64)
    counts: list[int] = []
    found = compile_and_count(function, counts)(q, k, v, extra)
    torch.testing.assert_close(found, function(q, k, v, extra))
    assert counts == [SIMPLE.get(function, 0)]


def test_a_mask_of_more_batches():
    """Which torch refuses on a CPU, with it or without compiling."""

    def function(q):
        return attend(q, q, q, attn_mask=torch.ones(N, 1, T, T, dtype=torch.bool))

    counts: list[int] = []
    q = torch.randn(1, 3, T, D)
    for call in (function, compile_and_count(function, counts)):
        with pytest.raises(RuntimeError, match="shape"):
            call(q)
    assert sum(counts) == 0


def test_shapes_that_change_have_masks():
    """What is known of one shape is not known of others."""

    def function(q):
        i = torch.arange(q.shape[2])
        return attend(q, q, q, attn_mask=i[None, :] <= i[:, None])

    counts: list[int] = []
    compiled = compile_and_count(function, counts, dynamic=True)
    for length in (5, 9, 16):
        q = torch.randn(1, 2, length, D)
        torch.testing.assert_close(compiled(q), function(q))
    assert sum(counts) == 0


def test_the_back_end_simplifies(monkeypatch):
    import tessera.torch
    from tessera.torch import backend

    counts = []
    monkeypatch.setattr(
        backend, "simplify_masks", lambda graph: counts.append(simplify_masks(graph))
    )
    q, k, v = (torch.randn(N, 3, T, D) for _ in range(3))
    with torch.no_grad():
        found = torch.compile(causal, backend=tessera.torch.compile_graph)(q, k, v, None)
    torch.testing.assert_close(found, causal(q, k, v, None), rtol=1e-4, atol=1e-5)
    assert counts == [1]
