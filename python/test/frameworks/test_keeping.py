# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What calls of elementwise operators keep for their gradient (calls/keeping.py, torch/keeping.py)."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402
from tessera import ops  # noqa: E402
from tessera.torch.keeping import MIN_ELEMENTS  # noqa: E402

F = torch.nn.functional
ROWS, COLUMNS = 257, 1 + MIN_ELEMENTS // 256


def array(*shape: int) -> Any:
    """Random numbers, some of them at the bounds of operators."""
    return torch.randn(shape or (ROWS, COLUMNS)).mul_(2).round(decimals=1)


BOOL, BYTE, FLOAT = torch.bool, torch.uint8, torch.float32
ONE = [
    (ops.relu, F.relu, [BOOL]),
    (ops.hardtanh, F.hardtanh, [BYTE]),
    (lambda x: ops.leaky_relu(x, 0.3), lambda x: F.leaky_relu(x, 0.3), [BOOL]),
    (ops.softshrink, F.softshrink, [BYTE]),
    (lambda x: ops.clamp(x, -1.0, 1.0), lambda x: x.clamp(-1.0, 1.0), [BYTE]),
    (lambda x: ops.clamp(x, max=1.0), lambda x: x.clamp(max=1.0), [BYTE]),
    (ops.tanh, torch.tanh, [FLOAT]),
    (ops.silu, F.silu, [FLOAT]),
]


def types_of(y: Any) -> list[Any]:
    return [each.dtype for each in y.grad_fn.saved_tensors]


@pytest.mark.parametrize("at", range(len(ONE)))
def test_gradients_by_what_is_kept(at: int) -> None:
    ours, theirs, types = ONE[at]
    torch.manual_seed(at)
    for x in (array(), array(2 * COLUMNS, ROWS).t()[:, ::2], array(5, 3)):
        for _ in range(2):  # Python does the first call
            leaves = [x.clone().requires_grad_() for _ in range(2)]
            one, other = ours(leaves[0]), theirs(leaves[1])
            kept = types_of(one)
            weights = torch.randn(x.shape)
            # Another gradient at the same time, and twice the same one.
            (one * 2 + one).backward(weights, retain_graph=True)
            one.backward(weights)
            other.backward(4 * weights)
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(leaves[0].grad, leaves[1].grad, rtol=1e-4, atol=1e-5)
        assert kept == (types if x.numel() > MIN_ELEMENTS else [FLOAT])


def test_gradients_that_need_no_argument() -> None:
    x, y = array().requires_grad_(), array().requires_grad_()
    condition, weights = torch.rand(ROWS, COLUMNS) > 0.5, torch.randn(ROWS, COLUMNS)
    for _ in range(3):
        assert types_of(ops.where(condition, x, y)) == [BOOL]
        assert types_of(ops.lerp(x, y, 0.3)) == []
        result = ops.addcmul(x, y, y.detach(), value=3)
        assert len(types_of(result)) == 1
        gradient = torch.autograd.grad(result, x, weights)[0]
        assert gradient.data_ptr() == weights.data_ptr()  # a view, as torch's
    row, column = array(COLUMNS).requires_grad_(), array(ROWS, 1).requires_grad_()
    for value in (2, 3):  # numbers are those of the call
        found = torch.autograd.grad(
            ops.addcmul(x, row, column, value=value), (x, row, column), weights
        )
        wanted = torch.autograd.grad(
            torch.addcmul(x, row, column, value=value), (x, row, column), weights
        )
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-2)
    for slope in (0.25, 0.5):
        one = torch.full((ROWS, COLUMNS), -1.0, requires_grad=True)
        ops.leaky_relu(one, slope).sum().backward()
        assert (one.grad == slope).all()


def test_changes_in_place() -> None:
    for _ in range(3):
        x = array().requires_grad_()
        y = ops.relu(x)
        is_positive = x.detach() > 0
        y += 1
        with torch.no_grad():
            x.zero_()
        y.sum().backward()
        assert torch.equal(x.grad, is_positive.float())
        y = ops.tanh(x)
        y *= 2
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_second_derivatives() -> None:
    weights = torch.randn(ROWS, COLUMNS)
    found = []
    for each in (ops.sigmoid, ops.sigmoid, torch.sigmoid):
        x = torch.linspace(-2, 2, ROWS * COLUMNS).reshape(ROWS, COLUMNS).requires_grad_()
        (first,) = torch.autograd.grad(each(x), x, weights, create_graph=True)
        found.append(torch.autograd.grad((first * first).sum(), x)[0])
    torch.testing.assert_close(found[:2], [found[2]] * 2, rtol=1e-4, atol=1e-6)
    x = torch.randn(ROWS, COLUMNS, requires_grad=True)
    given = weights.clone().requires_grad_()
    (first,) = torch.autograd.grad(ops.relu(x), x, given, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), given)
    assert torch.equal(second, (x > 0).float())
    (first,) = torch.autograd.grad(ops.relu(x).sum(), x, create_graph=True)
    first.sum().backward()  # it is constant
    assert x.grad is None
    (first,) = torch.autograd.grad(ops.relu(x).sum(), x)
    assert torch.equal(torch.func.grad(lambda x: ops.relu(x).sum())(x.detach()), first)


def test_rounded_results_are_not_kept() -> None:
    x = torch.full((ROWS, COLUMNS), 2.5, dtype=torch.bfloat16, requires_grad=True)
    for _ in range(2):
        y = ops.tanh(x)
        assert y.grad_fn.saved_tensors[0].data_ptr() == x.data_ptr()
        assert types_of(ops.relu(x)) == [BOOL]
    y.sum().backward()
    exact = 1 - torch.tensor(2.5, dtype=torch.float64).tanh() ** 2
    assert torch.equal(x.grad[0, 0], exact.bfloat16())


@tessera.pointwise
def steps(x, y):
    """Its derivative has two flags and y."""
    return tl.where((x > 0) & (x < 2), x * 2, tl.where(x > 3, y, -x)) * 1.0


@tessera.pointwise
def stairs(x):
    """Its derivative has nine truth values, which no byte has."""
    value = x * 0.0
    for_0 = tl.where(x > 0, x, value)
    for_1 = tl.where(x > 1, for_0 * 2, for_0)
    for_2 = tl.where(x > 2, for_1 * 2, for_1)
    for_3 = tl.where(x > 3, for_2 * 2, for_2)
    for_4 = tl.where(x > 4, for_3 * 2, for_3)
    for_5 = tl.where(x > 5, for_4 * 2, for_4)
    for_6 = tl.where(x > 6, for_5 * 2, for_5)
    for_7 = tl.where(x > 7, for_6 * 2, for_6)
    return tl.where(x > 8, for_7 * 2, for_7)


def test_operators_of_users() -> None:
    x, y = (3 * torch.randn(ROWS, COLUMNS, requires_grad=True) for _ in range(2))
    weights = torch.randn(ROWS, COLUMNS)
    expected = [
        weights * torch.where((x > 0) & (x < 2), 2.0, torch.where(x > 3, 0.0, -1.0)),
        weights * ((x > 3) & ~((x > 0) & (x < 2))),
    ]
    for _ in range(3):
        result = steps(x, y)
        assert types_of(result) == [BYTE]
        torch.testing.assert_close(list(torch.autograd.grad(result, (x, y), weights)), expected)
        result = stairs(x)
        assert types_of(result) == [FLOAT]
        (found,) = torch.autograd.grad(result, x, weights)
        slope = torch.where(x > 0, 2.0 ** (x.ceil() - 1).clamp(0, 8), 0.0)
        torch.testing.assert_close(found, weights * slope)


def test_after_a_transform() -> None:
    """The gradient is asked for when the transform has ended."""
    x = array()
    for f, want in ((ops.relu, F.relu), (ops.tanh, torch.tanh)):
        result, pull = torch.func.vjp(f, x)
        ours, pull_want = pull(x)[0], torch.func.vjp(want, x)[1]
        torch.testing.assert_close(result, want(x))
        torch.testing.assert_close(ours, pull_want(x)[0])


@tessera.pointwise
def larger_doubled(a, step_0_):
    return tl.where(a > step_0_, a * 2, step_0_)


def test_parameters_named_as_steps() -> None:
    a, b = array().requires_grad_(), array().requires_grad_()
    result = larger_doubled(a, b)
    torch.testing.assert_close(result, torch.where(a > b, a * 2, b))
    ours = torch.autograd.grad(result.sum(), (a, b))
    torch.testing.assert_close(ours, ((a > b) * 2.0, (a <= b) * 1.0))


@tessera.reduction("mean")
def larger(x, y):
    return tl.where(x > y, 2 * x, y)


def test_reductions_that_store_flags() -> None:
    x, y = array().requires_grad_(), array().requires_grad_()
    row, many = array(COLUMNS).requires_grad_(), array(2 * COLUMNS, ROWS).t()[:, ::2]
    weights = torch.randn(COLUMNS)

    def wanted(x: Any, y: Any, axis: Any = None) -> Any:
        return torch.where(x > y, 2 * x, y).mean(axis)

    cases = [
        (ops.l1_loss, F.l1_loss, (x, y), {}, BYTE),
        (ops.l1_loss, F.l1_loss, (x, y.detach()), {"reduction": "sum"}, BYTE),
        (larger, wanted, (x, y), {}, BOOL),
        (larger, wanted, (x, row), {"axis": 0}, BOOL),
        (larger, wanted, (x, many.requires_grad_()), {"axis": 0}, BOOL),
        (ops.mse_loss, F.mse_loss, (x, y), {}, None),
        (ops.l1_loss, F.l1_loss, (x[:9], y[:9]), {}, None),
    ]
    for ours, theirs, args, settings, flags in cases:
        leaves = [each for each in args if each.requires_grad]
        expected = theirs(*args, **settings)
        grad = weights if expected.ndim else torch.tensor(3.0)
        gradients = torch.autograd.grad(expected, leaves, grad, retain_graph=True)
        for _ in range(3):
            result = ours(*args, **settings)
            for _ in range(3):
                found = torch.autograd.grad(result, leaves, grad, retain_graph=True)
                torch.testing.assert_close((result, *found), (expected, *gradients))
        assert [each for each in types_of(result) if each != FLOAT] == ([flags] if flags else [])
        (first,) = torch.autograd.grad(result, x, grad, create_graph=True)
        torch.testing.assert_close(first, torch.autograd.grad(expected, x, grad)[0])
