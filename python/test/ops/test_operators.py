# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of tessera.ops against references in float64 (scheme.py), and their examples."""

from __future__ import annotations

import importlib
import inspect
import pathlib
import textwrap
import re
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
from tessera import ops  # noqa: E402
from tessera.ops import replacing  # noqa: E402

from . import scheme  # noqa: E402

MODULES = [
    importlib.import_module(f".{path.stem}", __package__)
    for path in sorted(pathlib.Path(__file__).parent.glob("cases_*.py"))
]
NAMES = [operator.__name__ for family in ops.FAMILIES.values() for operator in family]
CASES = [case for module in MODULES for case in module.CASES]


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[case.name.replace(" ", "-") for case in CASES]
)
def test_operator(number: int, request: pytest.FixtureRequest) -> None:
    is_all = request.config.getoption("--every-combination")
    case = CASES[number]
    for library, dtype, layout in scheme.combinations(case, number, is_all):
        if library == "jax":
            pytest.importorskip("jax")
            if dtype == torch.float64 and not is_all:
                dtype = torch.float32  # JAX has no float64 unless asked to
            elif dtype == torch.float64:
                continue
        print(f"TESSERA_OPS_SEED={scheme.SEED} {case.name}: {library} {dtype} {layout}")
        scheme.check(case, library, dtype, layout, number)


def test_every_operator_has_a_case() -> None:
    """Each public function is called by a case, or by a test of its own that names it."""
    texts = [path.read_text() for path in pathlib.Path(__file__).parent.glob("*.py")]
    called = set(re.findall(r"\bops\.(\w+)|\balong\(\"(\w+)", "\n".join(texts)))
    called = {name for names in called for name in names} | {case.op.__name__ for case in CASES}
    assert not set(NAMES) - called
    assert set(NAMES) <= set(ops.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str, tmp_path: pathlib.Path) -> None:
    """The example of a docstring runs, and its asserts can fail only if the operator is wrong."""
    text = inspect.cleandoc(getattr(ops, name).__doc__)
    assert "Types:" in text and "Shapes:" in text
    example = textwrap.dedent(text.partition("Example:\n")[2])
    assert example.startswith("import ") and "assert " in example and f"ops.{name}(" in example
    exec(compile(example, name, "exec", dont_inherit=True), {})


def test_libraries_that_do_not_fit() -> None:
    import numpy as np

    for call in (
        lambda: ops.dropout([1.0, 2.0]),
        lambda: ops.dropout(np.ones(3), p=2.0),
        lambda: ops.dropout(np.ones(3, np.int32)),
        lambda: ops.dropout(np.ones(3), seed=1.5),
        lambda: ops.rrelu(np.ones(3), 1.0, 0.5, True),
        lambda: ops.gumbel_softmax(np.ones(3), 0.0),
        lambda: ops.gelu(np.ones(3), approximate="fast"),
        lambda: ops.glu(np.ones(3)),
        lambda: ops.glu(np.ones((3, 2)), dim=2),
        lambda: ops.prelu(np.ones((3, 2)), np.ones(3)),
        lambda: ops.clamp(np.ones(3)),
        lambda: ops.softmax(np.ones(3), dim=1),
        lambda: ops.softmax(np.ones(3, np.int64)),
        lambda: ops.softmax(np.ones(3), dtype=np.int32),
        lambda: ops.softmax(torch.ones(3).to_sparse()),
        lambda: ops.cross_entropy(np.ones((3, 4)), np.ones(4, np.int64)),
        lambda: ops.cross_entropy(np.ones((3, 4)), torch.ones(3, dtype=torch.int64)),
        lambda: ops.cross_entropy(np.ones((3, 4)), np.ones(3, np.int64), reduction="all"),
        lambda: ops.cross_entropy(np.ones((3, 4)), np.ones(3, np.int64), np.ones(3)),
        lambda: ops.cross_entropy(np.ones((3, 4)), np.ones((3, 4)), z_loss=0.1),
        lambda: ops.cross_entropy(np.ones((3, 4)), np.ones(3, np.int64), label_smoothing=2.0),
        lambda: ops.nll_loss(np.ones((3, 4)), np.ones((3, 4))),
        lambda: ops.mse_loss(np.ones(3), np.ones(3), weight=np.ones(3)),
        lambda: ops.mse_loss(np.ones(3), np.ones(3), reduction="all"),
        lambda: ops.huber_loss(np.ones(3), np.ones(3), delta=0.0),
        lambda: ops.layer_norm(np.ones((2, 3)), (2,)),
        lambda: ops.layer_norm(np.ones((2, 3)), (3,), np.ones(2)),
        lambda: ops.add_rms_norm(np.ones((2, 3)), np.ones((2, 3), np.float32), (3,)),
        lambda: ops.add_rms_norm(np.ones((2, 3)), None, (3,)),
        lambda: ops.group_norm(np.ones((2, 3)), 2),
        lambda: ops.group_norm(np.ones((0, 4)), 2),
        lambda: ops.batch_norm(np.ones((2, 3)), None, None),
        lambda: ops.batch_norm(np.ones((1, 3)), None, None, training=True),
        lambda: ops.instance_norm(np.ones((2, 3, 1)), np.ones(3), np.ones(3)),
        lambda: ops.instance_norm(np.ones((2, 3, 4)), np.ones(3), use_input_stats=False),
        lambda: ops.apply_rotary_emb(np.ones((4, 6)), np.ones((4, 4)), np.ones((4, 4))),
        lambda: ops.apply_rotary_emb(np.ones((4, 6)), np.ones((3, 3)), np.ones((3, 3))),
        lambda: ops.sum(np.ones((4, 6)), dim=(0, 0)),
        lambda: ops.sum(np.ones((4, 6)), dim=2),
        lambda: ops.sum(np.ones((4, 6)), dtype="number"),
        lambda: ops.mean(np.ones(3, np.int32)),
        lambda: ops.var(np.ones(3), 0, True, correction=2),
        lambda: ops.std(np.ones((3, 2)), unbiased=1),
        lambda: ops.argmax(np.ones((4, 0)), dim=1),
        lambda: ops.argmax(np.ones((4, 0))),
        lambda: ops.cumsum(np.ones(3), 1),
        lambda: ops.cumsum(np.broadcast_to(np.float32(1), (2, 1 << 16, 1 << 16)), 1),
        lambda: ops.cumsum(np.ones(3), 0, dtype=np.int8),
        lambda: ops.logcumsumexp(np.ones(3, np.int64), 0),
        lambda: ops.sort(np.ones(20000)),
        lambda: ops.topk(np.ones(3), 4),
        lambda: ops.gather(np.ones((3, 4)), 1, np.ones((4, 4), np.int64)),
        lambda: ops.gather(np.ones((3, 4)), 1, np.ones((3, 4))),
        lambda: ops.scatter_add(np.ones(3), 0, np.ones(4, np.int64), np.ones(3)),
        lambda: ops.scatter_reduce(np.ones(3), 0, np.ones(3, np.int64), np.ones(3), "prod"),
        lambda: ops.index_select(np.ones(3), 0, np.ones((1, 1), np.int64)),
        lambda: ops.index_add(np.ones(3), 0, np.ones(2, np.int64), np.ones(3)),
        lambda: ops.embedding(np.ones(3), np.ones((3, 4))),
        lambda: ops.embedding(np.ones(3, np.int64), np.ones((3, 4)), padding_idx=3),
        lambda: ops.embedding_bag(np.ones((3, 1), np.int64), np.ones((3, 4)), mode="min"),
        lambda: ops.embedding_bag(np.ones((3, 1), np.int64), np.ones((3, 4)), padding_idx=3),
        lambda: ops.embedding_bag(
            np.ones((3, 1), np.int64), np.ones((3, 4)), per_sample_weights=np.ones((3, 1))
        ),
        lambda: ops.segment_reduce(np.ones(3), "prod", offsets=np.ones(3, np.int64)),
        lambda: ops.one_hot(np.ones(3, np.int64), 0),
        lambda: ops.one_hot(np.ones(0, np.int64)),
        lambda: ops.one_hot(np.full(3, -2)),
        lambda: ops.sgd_step(np.ones(3), np.ones(3), lr=1.0, momentum=0.5),
        lambda: ops.sgd_step(np.ones(3), np.ones(3), lr=1.0, nesterov=True),
        lambda: ops.sgd_step([np.ones(3)], [np.ones(3), np.ones(3)], lr=1.0),
        lambda: ops.adamw_step(np.ones(3), np.ones(3), np.ones(2), np.ones(3), step=1),
        lambda: ops.adamw_step(np.ones(3), np.ones(3), np.ones(3), np.ones(3), step=0),
    ):
        with pytest.raises(tessera.ArgumentError) as caught:
            call()
        assert caught.value.id == "E093" and caught.value.fix


@pytest.mark.parametrize(
    "name, args",
    [
        ("argsort", ([3, 1],)), ("scatter_add", (torch.ones(3), 0, torch.zeros(4).long(), torch.ones(3))),
        ("bincount", (None,)), ("softmin", (None,)), ("embedding", (torch.zeros(2).long(), None)),
        ("gather", (torch.ones(3), 0, None)), ("index_select", ([1.0], 0, torch.zeros(1).long())),
        ("amax", (torch.ones(0),)), ("cross_entropy", (torch.ones(2, 3), None)),
        ("prelu", (torch.ones(3).cfloat(), torch.ones(1))), ("glu", (torch.ones(2, 4).to_sparse(),)),
    ],
)  # fmt: skip
def test_errors_name_what_was_called(name: str, args: Sequence[Any]) -> None:
    """Also for None, and if one operator calls another."""
    with pytest.raises(tessera.ArgumentError) as caught:
        getattr(ops, name)(*args)
    assert caught.value.id in ("E089", "E093") and f"`{name}`" in caught.value.message


def test_offsets_outside_of_an_array() -> None:
    """No address is made of them, whatever they are."""
    weight = torch.randn(5, 3, requires_grad=True)
    index = torch.tensor([0, 4, 2])
    for wild in (-1, 2**31 - 1, -(2**63), 2**62):
        offsets = torch.tensor([wild, 1, 2**62, wild, 3])
        bags = ops.embedding_bag(index, weight, offsets, mode="mean", include_last_offset=True)
        rows = ops.segment_reduce(weight, "sum", offsets=offsets)
        (bags.sum() + rows.sum()).backward()
        assert weight.grad.isfinite().all()
        if wild < 0:
            torch.testing.assert_close(bags[0], weight[0])
            torch.testing.assert_close(rows[1], weight[1:].sum(0))


def test_dropout() -> None:
    x = torch.randn(40, 50, dtype=torch.float64, requires_grad=True)
    for each in (x, x.t()):
        y = ops.dropout(each, 0.25, seed=5)
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
        kept = y != 0
        assert abs(kept.double().mean() - 0.75) < 0.05
        torch.testing.assert_close(y[kept], each[kept] / 0.75)
        torch.testing.assert_close(grad if each is x else grad.t(), kept.double() / 0.75)
    torch.manual_seed(3)
    first = ops.dropout(x)
    torch.manual_seed(3)
    assert torch.equal(first, ops.dropout(x)) and not torch.equal(first, ops.dropout(x))
    assert ops.dropout(x, training=False) is x
    assert not ops.dropout(x, 1.0).any()


def test_random_slopes() -> None:
    x = torch.randn(40, 50, dtype=torch.float64, requires_grad=True)
    y = ops.rrelu(x, 0.25, 0.75, training=True, seed=2)
    (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
    torch.testing.assert_close(grad * x, y)
    slopes = grad[x < 0]
    assert (grad[x >= 0] == 1).all() and 0.25 <= slopes.min() and slopes.max() <= 0.75
    assert abs(slopes.mean() - 0.5) < 0.02 and abs(slopes.std() - 0.5 / 12**0.5) < 0.02
    torch.testing.assert_close(ops.rrelu(x), torch.nn.functional.rrelu(x))


def test_gumbel_softmax() -> None:
    """The largest element has the probabilities of the softmax, and the noise has no gradient."""
    logits = torch.log(torch.tensor([0.5, 0.3, 0.2])).repeat(20000, 1).requires_grad_()
    y = ops.gumbel_softmax(logits, 0.5, seed=4)
    shares = torch.bincount(y.argmax(1), minlength=3) / len(y)
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.015, rtol=0)
    torch.testing.assert_close(y.sum(1), torch.ones(len(y)))
    weights = torch.randn_like(y)
    (grad,) = torch.autograd.grad(y, logits, weights)
    with torch.no_grad():
        torch.testing.assert_close(grad, y * (weights - (y * weights).sum(1, keepdim=True)) / 0.5)
    hard = ops.gumbel_softmax(logits, 0.5, True, seed=4)
    assert torch.equal(hard, torch.nn.functional.one_hot(y.argmax(1), 3).float())
    assert torch.equal(torch.autograd.grad(hard, logits, weights)[0], grad)
    columns = ops.gumbel_softmax(logits.detach()[:50].T, 0.5, True, dim=0, seed=4)
    assert torch.equal(columns.sum(0), torch.ones(50)) and columns.amax() == 1


def test_large_values() -> None:
    """The branch that is not taken overflows, and must not spoil the derivative. A small exponential
    keeps its digits."""
    F, nan = torch.nn.functional, float("nan")
    names = "elu selu celu softplus logsigmoid mish silu gelu sigmoid".split()
    pairs = [(getattr(ops, name), getattr(F, name)) for name in names]
    for op, theirs in pairs:
        x = torch.tensor([-200.0, -17.5, -12.3, -0.0, 0.0, 200.0, nan], requires_grad=True)
        torch.testing.assert_close(op(x), theirs(x), equal_nan=True)
        (a,), (b,) = (torch.autograd.grad(each(x).sum(), x) for each in (op, theirs))
        torch.testing.assert_close(a[:-1], b[:-1], rtol=1e-4, atol=1e-20)


def test_gradients_of_bounded_values_at_nan() -> None:
    """They are 0, as torch's are, and the value is NaN."""
    for bounds in ((-1, 2), (-1,), (None, 2), None):
        x = torch.tensor([float("nan"), 1.0, -9.0, 2.0], requires_grad=True)
        y, theirs = (
            (ops.hardsigmoid(x), torch.nn.functional.hardsigmoid(x)) if bounds is None
            else (ops.clamp(x, *bounds), torch.clamp(x, *bounds))
        )  # fmt: skip
        torch.testing.assert_close(y, theirs, equal_nan=True)
        (a,), (b,) = (torch.autograd.grad(each.sum(), x) for each in (y, theirs))
        torch.testing.assert_close(a, b)


def test_targets_that_are_no_classes() -> None:
    """They read nothing, and their losses and gradients are NaN."""
    x = torch.randn(4, 5, requires_grad=True)
    target = torch.tensor([1, 5, -1, -100])
    for loss in (ops.cross_entropy, ops.nll_loss):
        y = loss(x, target, reduction="none")
        assert y.isnan().tolist() == [False, True, True, False] and y[3] == 0
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert grad.isnan().all(1).tolist() == [False, True, True, False] and not grad[3].any()
    weight = torch.ones(5, requires_grad=True)
    with pytest.raises(tessera.ArgumentError, match="E094.*`weight`"):
        ops.cross_entropy(x, target, weight)


def test_lines_with_infinities() -> None:
    inf = float("inf")
    x = torch.tensor(
        [[-inf, 0.0, 1.0], [-inf, -inf, -inf], [inf, 0.0, 0.0], [float("nan"), 0.0, 1.0]]
    )
    for name in ("softmax", "log_softmax"):
        torch.testing.assert_close(
            getattr(ops, name)(x), getattr(torch, name)(x, -1), equal_nan=True
        )
    zero = torch.zeros(3, requires_grad=True)
    ops.binary_cross_entropy(zero, zero.detach()).backward()  # 0 / 0, were it derived
    assert not zero.grad.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_running_statistics(dtype: torch.dtype) -> None:
    x = torch.randn(4, 3, 5).to(dtype)
    ours, theirs = ([torch.zeros(3), torch.ones(3)] for _ in range(2))
    for _ in range(2):
        ops.batch_norm(x, *ours, training=True, momentum=0.3)
        torch.nn.functional.batch_norm(x.float(), *theirs, training=True, momentum=0.3)
    torch.testing.assert_close(ours, theirs)


def test_default_epsilon() -> None:
    for dtype in (torch.float32, torch.float64):
        x = (torch.randn(3, 9) * torch.finfo(dtype).eps ** 0.5).to(dtype)
        torch.testing.assert_close(ops.rms_norm(x, (9,)), torch.nn.functional.rms_norm(x, (9,)))


def test_places_of_equal_elements_and_nans() -> None:
    nan = float("nan")
    x = torch.tensor([[1.0, 3, 3, 0, 0], [1, nan, 5, nan, -9], [nan] * 5], dtype=torch.bfloat16)
    for each in (x, x.t().contiguous().t(), x.repeat(1, 200)):
        for name in ("argmax", "argmin"):
            expected = torch.tensor([each.tolist()[0].index(3 if name == "argmax" else 0), 1, 0])
            assert torch.equal(getattr(ops, name)(each, 1), expected)
    assert ops.argmax(torch.ones(3, requires_grad=True)).item() == 0


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.int32, torch.uint8))
def test_few_elements_that_are_selected(dtype: torch.dtype) -> None:
    """Without sorting the line: equal ones come in their order, as a stable sort has them."""
    x = torch.randint(0, 40, (3, 1030)).to(dtype)
    x[0, 5], x[0, 1029] = (0, 255) if dtype == torch.uint8 else (-(1 << 31), (1 << 31) - 1)
    if dtype.is_floating_point:
        x[1, ::200], x[2, 7], x[2, 1000] = float("nan"), float("inf"), -float("inf")
    for largest in (True, False):
        order = torch.sort(x, stable=True, dim=1, descending=largest)
        for k in (1, 3, 128):
            for dim, each in ((1, x), (0, x.t().contiguous())):
                values, places = ops.topk(each, k, dim, largest)
                assert torch.equal(places if dim else places.t(), order.indices[:, :k])
                torch.testing.assert_close(
                    values if dim else values.t(),
                    order.values[:, :k],
                    rtol=0,
                    atol=0,
                    equal_nan=True,
                )


def test_gradients_of_extrema() -> None:
    x = torch.randint(0, 4, (3, 4, 5)).double().requires_grad_()
    for dim, keepdim in (((0, 2), False), (1, True), ((), False)):
        ours, theirs = ops.amax(x, dim, keepdim), torch.amax(x, dim, keepdim)
        weights = torch.randn_like(theirs)
        expected = torch.autograd.grad(theirs, x, weights)
        torch.testing.assert_close(torch.autograd.grad(ours, x, weights), expected)
    y = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda y: ops.amin(y * y, 1), y)
    assert torch.func.grad(lambda y: ops.amax(y, 0))(torch.tensor([1.0, 3])).tolist() == [0, 1]
    with_nan = torch.tensor([1.0, float("nan")], requires_grad=True)
    assert torch.autograd.grad(ops.amax(with_nan, 0), with_nan)[0].isnan().all()


def test_gradients_of_variances() -> None:
    x = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    for dim, keepdim, correction in (((0, 2), False, 1), (1, True, 0), (None, False, 2)):
        ours = ops.var_mean(x, dim, correction=correction, keepdim=keepdim)
        theirs = torch.var_mean(x, dim, correction=correction, keepdim=keepdim)
        weights = [torch.randn_like(each) for each in theirs]
        expected = torch.autograd.grad(theirs, x, weights)
        torch.testing.assert_close(torch.autograd.grad(ours, x, weights), expected)
    y = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda y: ops.var(y * y, 1), y)
    assert torch.autograd.gradgradcheck(lambda y: ops.var_mean(y, 0), y)
    assert torch.func.grad(lambda y: ops.var(y))(torch.tensor([1.0, 3, 2])).tolist() == [-1, 1, 0]
    one = torch.randn(3, 1, requires_grad=True)
    assert torch.autograd.grad(ops.var(one, 1).sum(), one)[0].isnan().all()


def test_gradients_of_glu() -> None:
    """Once, as a known call, twice, and of transforms."""
    x = torch.randn(3, 6, 2, dtype=torch.float64, requires_grad=True)
    for _ in range(4):
        grads = [
            torch.autograd.grad(function(x, 1).square().sum(), x)[0]
            for function in (ops.glu, torch.nn.functional.glu)
        ]
        torch.testing.assert_close(*grads)
    assert torch.autograd.gradgradcheck(lambda x: ops.glu(x * 2, 1), x)
    transformed = torch.func.grad(lambda x: ops.glu(x, 1).square().sum())(x.detach())
    torch.testing.assert_close(transformed, grads[0])


def test_running_extrema_of_equal_elements_and_nans() -> None:
    x = torch.randint(-5, 5, (4, 300)).float()
    x[1, 0], x[2, 150], x[2, 200], x[3, 299] = (float("nan"),) * 4
    for name in ("cummax", "cummin"):
        for dim, each in ((1, x), (0, x.t().contiguous())):
            ours, theirs = getattr(ops, name)(each, dim), getattr(torch, name)(each, dim)
            torch.testing.assert_close(ours[0], theirs[0], equal_nan=True)
            assert torch.equal(ours[1], theirs[1])
            leaf, weights = each.clone().requires_grad_(), torch.randint(9, each.shape).float()
            grads = [
                torch.autograd.grad(getattr(library, name)(leaf, dim)[0], leaf, weights)[0]
                for library in (ops, torch)
            ]
            assert torch.equal(*grads)
        assert [each.shape for each in getattr(ops, name)(torch.ones(0, 6), 0)] == [(0, 6)] * 2


def test_runs_that_threads_share() -> None:
    for most in (3, 60000):
        x = torch.randint(most, (70001,)).sort()[0]
        with tessera.settings.override(num_threads=3):
            found = ops.unique_consecutive(x, True, True)
        for each, expected in zip(found, torch.unique_consecutive(x, True, True)):
            assert torch.equal(each, expected)


def test_gradients_of_large_likelihoods() -> None:
    """Lines of a wrong class are NaN, those of an ignored one 0."""
    for shape in ((70, 1000), (7, 1000, 10)):
        x = torch.randn(shape, requires_grad=True)
        target, weight = torch.randint(1000, (shape[0], *shape[2:])), torch.rand(1000)
        target.view(-1)[3] = -100
        for reduction in ("mean", "none"):
            ours, theirs = (
                each(x, target, weight, reduction=reduction)
                for each in (ops.nll_loss, torch.nn.functional.nll_loss)
            )
            grad = torch.randn(theirs.shape)
            expected = torch.autograd.grad(theirs, x, grad)
            torch.testing.assert_close(torch.autograd.grad(ours, x, grad), expected)
        target.view(-1)[5] = 1000
        (found,) = torch.autograd.grad(ops.nll_loss(x, target, reduction="sum"), x)
        assert (
            found.isnan().sum() == 1000 and found.movedim(1, -1).reshape(70, 1000)[5].isnan().all()
        )


def test_indices_that_are_outside() -> None:
    """They read 0 and add nothing, as none of them is an address."""
    index = torch.tensor([0, -1, 5, 2])
    x = torch.tensor([1.0, 2, 3], requires_grad=True)
    for op in (ops.gather, ops.index_select):
        y = op(x, 0, index)
        assert y.tolist() == [1, 0, 0, 3]
        (grad,) = torch.autograd.grad(y, x, torch.ones(4))
        assert grad.tolist() == [1, 0, 1]
    for op in (ops.scatter_add, ops.index_add):
        assert op(torch.zeros(3), 0, index, torch.ones(4)).tolist() == [1, 0, 1]
    assert ops.embedding(index, torch.ones(3, 2)).sum(1).tolist() == [2, 0, 0, 2]
    assert ops.one_hot(index, 3).sum(1).tolist() == [1, 0, 0, 1]


def test_orders_of_special_elements() -> None:
    inf, nan = float("inf"), float("nan")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        x = torch.tensor([[0.0, nan, -inf, -0.0, inf, nan, 1, -1, 1e-30]], dtype=dtype)
        for down in (False, True):
            expected = torch.sort(x, stable=True, descending=down)
            found = ops.sort(x, descending=down)
            assert torch.equal(found[1], expected[1])
            torch.testing.assert_close(found[0], expected[0], equal_nan=True, rtol=0, atol=0)
        for name in ("cummax", "cummin"):
            found, expected = getattr(ops, name)(x, 1), getattr(torch, name)(x, 1)
            torch.testing.assert_close(found, tuple(expected), equal_nan=True)
    for dtype in (torch.int64, torch.int32, torch.uint32, torch.uint64):
        ends = torch.iinfo(dtype)
        x = torch.tensor([ends.max, 3, ends.min, ends.max - 1, 1 << 20, ends.max, 0], dtype=dtype)
        for down in (False, True):
            assert ops.sort(x, descending=down)[0].tolist() == sorted(x.tolist(), reverse=down)
        few = torch.cat([x, torch.zeros(60, dtype=dtype)])
        assert ops.topk(few, 5)[0].tolist() == sorted(few.tolist(), reverse=True)[:5]
        assert ops.topk(few, 1, largest=False)[1].item() == few.tolist().index(min(few.tolist()))
    assert ops.sort(torch.tensor(3.0))[1].item() == 0


def test_errors_name_the_operator_that_was_called() -> None:
    """Not one that it calls."""
    import numpy as np

    three = np.ones(3)
    for call, text in (
        (lambda: ops.unique(np.ones(20000)), "`unique` got 20000 elements"),
        (lambda: ops.unique(np.ones((20000, 1)), dim=0), "`unique` got 20000 slices"),
        (lambda: ops.unique_consecutive(np.ones((3, 0)), dim=0), r"got dim=0 and shape \(3, 0\)"),
        (lambda: ops.bucketize(three, np.ones(3, np.float32)), "`bucketize` got boundaries of"),
        (lambda: ops.vector_norm(np.ones((2, 0)), -1), "`vector_norm` of order -1.0 of no elem"),
        (lambda: ops.vector_norm(np.ones((2, 0)), np.inf, 1), "`vector_norm` of order inf of no"),
    ):
        with pytest.raises(tessera.ArgumentError, match=text) as raised:
            call()
        assert raised.value.id == "E093"


def test_elements_that_are_unlike_others() -> None:
    x = torch.tensor([[0.0, float("nan"), -float("inf")], [0.0, -0.0, 1e-40]], requires_grad=True)
    counts = ops.vector_norm(x, 0, 1)
    assert counts.tolist() == torch.linalg.vector_norm(x, 0, 1).tolist() == [2, 1]
    assert not torch.autograd.grad(counts.sum(), x, allow_unused=True)[0].any()
    assert ops.vector_norm(torch.ones((3, 0)), -1, 0).shape == (0,)
    for k in (0, 1):
        values, places = ops.topk(torch.tensor(3.0), k)
        assert (values, places) == torch.topk(torch.tensor(3.0), k)


def test_gradients_of_norms_of_zeros() -> None:
    for ord in (1.0, 2.0, 3.0):
        x = torch.zeros(4, requires_grad=True)
        ops.vector_norm(x, ord).backward()
        assert not x.grad.any()
    x = torch.tensor([[-float("inf")] * 3, [float("inf"), 0, 1]])
    torch.testing.assert_close(ops.logsumexp(x, 1), torch.logsumexp(x, 1))


def test_second_derivatives_of_reductions() -> None:
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    for op in (lambda x: ops.var(x, 1), lambda x: ops.logsumexp(x, (0, 1)), ops.vector_norm):
        assert torch.autograd.gradgradcheck(op, (x,))


def test_what_torch_does_by_default_is_no_reason() -> None:
    """A default of a parameter that an operator does not have, such as norm_type of an embedding."""
    found = [each for each in replacing._TABLE.values() if each.defaults]
    assert len(found) > 40
    for each in found:
        needed = [name for name in each.parameters if name not in each.defaults]
        reason, given = replacing._bound(each, [1] * len(needed), {})
        assert reason == "" and len(given) >= len(needed), (each.name, reason)
    embedding = replacing._TABLE[torch.nn.functional.embedding]
    assert "norm_type" in replacing._bound(embedding, [1, 1], {"norm_type": torch.ones(())})[0]
    # Defaults that are None: False is something else.
    loss = replacing._TABLE[torch.nn.functional.mse_loss]
    for name in ("size_average", "reduce"):
        assert replacing._bound(loss, [1, 1], {name: False})[0] == f"it got {name}=False"


def test_enable_of_random_numbers() -> None:
    x = torch.ones(2000)
    with ops.enable() as used:
        torch.nn.functional.dropout(x)
    assert not used.taken and "random=True" in str(used.refused["dropout"])
    draws = []
    with ops.enable(random=True) as used:
        for _ in range(2):
            torch.manual_seed(3)
            draws.append([torch.nn.Dropout(0.25)(x), torch.dropout(x, 0.25, True)])
        places = torch.multinomial(torch.tensor([0.0, 3.0, 1.0]), 500, True)
        torch.nn.functional.dropout(x, inplace=True)
    torch.testing.assert_close(*draws, rtol=0, atol=0)
    assert not torch.equal(*draws[0]) and abs((draws[0][0] > 0).float().mean() - 0.75) < 0.05
    assert 0.6 < (places == 1).float().mean() < 0.9 and not (places == 0).any()
    assert used.taken == {"dropout": 4, "multinomial": 1}
    assert used.refused == {"dropout": {"it got inplace=True": 1}}


def test_enable() -> None:
    """A model trains as outside, and the calls are listed."""
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.ReLU(inplace=True)
    )
    x, target = torch.randn(5, 6), torch.tensor([0, 3, 7, 1, -100])
    grads = []
    for unused in ((), replacing.NAMES):
        with ops.enable(unused=unused) as used:
            loss = (
                torch.nn.functional.cross_entropy(model(x), target)
                + model(x).tanh().sum(dim=0).mean()
            )
        grads.append(torch.autograd.grad(loss, list(model.parameters())))
    torch.testing.assert_close(*grads)
    assert not used.taken and not used.refused
    with ops.enable(unused=["tanh"]) as used:
        torch.softmax(model(x), -1, dtype=torch.float64).tanh()
        torch.sum(torch.ones(3).to_sparse())
    assert used.taken == {"layer_norm": 1, "gelu": 1, "softmax": 1}
    assert used.refused["relu"] == {"it got inplace=True": 1} and "sparse" in str(
        used.refused["sum"]
    )
    with ops.enable() as used:
        assert torch.sort(x).values is not None and x.topk(2).indices.shape == (5, 2)
        assert torch.var(x, False).ndim == 0
        assert torch.ones(3, dtype=torch.uint8).any().dtype == torch.uint8
        assert torch.all(x, dim=()).shape == x.shape
        place, nan = torch.tensor([0, 0, 1]), torch.tensor([float("nan"), 1, 2])
        assert torch.scatter_reduce(torch.zeros(2), 0, place, nan, "amax").isnan().tolist() == [
            True,
            False,
        ]
        places, halves = torch.tensor([0, 0]), torch.tensor([0.5, 1.0]).bfloat16()
        assert torch.bincount(places, halves).dtype == torch.float64
    assert used.taken == {"sort": 1, "topk": 1}
    assert list(used.refused) == ["var", "any", "all", "scatter_reduce", "bincount"]
    indices, offsets = torch.tensor([0, 3, 6, 2, 2]), torch.tensor([0, 2])
    rows, bags = torch.nn.Embedding(7, 3), torch.nn.EmbeddingBag(7, 3)
    expected = bags(indices, offsets)
    with ops.enable() as used:
        assert torch.equal(rows(indices), rows.weight[indices])
        found = bags(indices, offsets)
        assert [each.tolist() for each in indices.unique(return_counts=True)] == [
            [0, 2, 3, 6], [1, 2, 1, 1]]  # fmt: skip
    assert used.taken == {"embedding": 1, "embedding_bag": 1, "unique": 1} and not used.refused
    torch.testing.assert_close(found, expected)
    with pytest.raises(tessera.ArgumentError, match="E093.*softmx.*"):
        ops.enable(unused=["softmx"])


def test_enable_of_other_names() -> None:
    """Functions of torch that an operator computes under another name, or with other parameters."""
    x, inf = torch.randn(4, 5), float("inf")
    calls = (
        lambda: [
            x.norm(),
            x.norm(1, dim=0),
            torch.norm(x, inf),
            torch.norm(x, p="fro", dim=(0, 1)),
        ],
        lambda: [x.max(), torch.min(x), (x * 9).long().max()],
        lambda: [
            x.clip(-0.5),
            torch.special.softmax(x, 1),
            torch.special.expit(x),
            torch.celu(x, 0.5),
        ],
        lambda: [x.where(x > 0, 0.5), torch.concat([x, x], 1), x.sum(axis=1, keepdims=True)],
    )
    for call in calls:
        with ops.enable() as used:
            ours = call()
        torch.testing.assert_close(ours, call())
        assert sum(used.taken.values()) == len(ours) and not used.refused
    with ops.enable() as used:
        values, places = x.max(dim=1)
        torch.max(x, -x), torch.norm(x, "nuc"), x.clone().clamp_(0)
    assert torch.equal(values, x.amax(1)) and places.dtype == torch.int64 and not used.taken
    assert used.refused["clamp"] == {"it writes to its argument": 1} and "'amax'" in repr(used)
    assert sum(used.refused["amax"].values()) == 2 and "matrices" in str(
        used.refused["vector_norm"]
    )


def test_enable_under_autocast() -> None:
    """Results have torch's types: floats of 16 bits are converted where torch.autocast converts them."""
    functional = torch.nn.functional
    x, target = torch.randn(5, 8).bfloat16().requires_grad_(), torch.tensor([0, 3, 7, 1, -100])
    calls = (
        lambda: functional.cross_entropy(x, target),
        lambda: functional.smooth_l1_loss(x, x.detach() * 2),
        lambda: functional.binary_cross_entropy_with_logits(x, x.detach().sigmoid()),
        lambda: functional.layer_norm(x, (8,)),
        lambda: functional.prelu(x.float(), torch.ones(1)),
    )
    found = []
    for unused in ((), replacing.NAMES):
        with torch.autocast("cpu", torch.bfloat16), ops.enable(unused=unused) as used:
            results = [call() for call in calls]
        grads = torch.autograd.grad(sum(each.float().sum() for each in results), x)
        found.append((results, grads))
        assert not unused or not used.taken
        assert unused or used.refused["prelu"] == {"torch.autocast converts its arguments": 1}
    torch.testing.assert_close(*found)
    assert [each.dtype for each in found[0][0][:4]] == [torch.float32] * 3 + [torch.bfloat16]
    on_gpus = [name for name in replacing.NAMES if replacing._is_widened(name, "cuda")]
    assert {"softmax", "layer_norm", "sum", "cumsum", "mse_loss"} < set(on_gpus)


def test_no_second_derivative_and_no_transform() -> None:
    x = torch.randn(4, requires_grad=True)
    weights = torch.randn(4, requires_grad=True)
    (grad,) = torch.autograd.grad(ops.dropout(x, seed=1), x, weights, create_graph=True)
    with pytest.raises(tessera.ArgumentError, match="E094.*no second derivative"):
        grad.sum().backward()
    with pytest.raises(tessera.ArgumentError, match="E094.*transforms"):
        torch.func.vmap(lambda each: ops.dropout(each, seed=1))(x)
