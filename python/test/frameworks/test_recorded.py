# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of several launches, whose known calls run without Python: they are compared with torch
and with the same calls by Python."""

from __future__ import annotations

import contextlib
import gc
import random
import threading
import weakref
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from torch.nn import functional as F  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

import tessera  # noqa: E402
from tessera import ops  # noqa: E402
from tessera.calls import recording  # noqa: E402
from tessera.calls.recorded import recorded  # noqa: E402
from tessera.errors import ArgumentError  # noqa: E402
from tessera.language import types  # noqa: E402
from tessera.ops import launching  # noqa: E402
from tessera.ops.arguments import dense  # noqa: E402

from frameworks.test_known_calls import PythonRan, python_refused  # noqa: E402


def runs_python(op: Any, *args: Any, **named: Any) -> bool:
    try:
        with python_refused():
            op(*args, **named)
        return False
    except PythonRan:
        return True


def gradients(op: Callable[..., Any], args: Any, named: Any) -> list[Any]:
    """The result, and the gradients of its sum of squares."""
    result = op(*args, **named)
    result = result[0] if isinstance(result, tuple) else result
    leaves = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
    return [result, *torch.autograd.grad(result, leaves, result.detach().clone())]


X = torch.linspace(-3, 3, 60).sin().reshape(6, 10)
CLASSES = torch.tensor([1, 5, -100, 0, 9, 3])
CASES: list[tuple[str, Any, Any, tuple[Any, ...], dict[str, Any]]] = [
    ("softmax", ops.softmax, F.softmax, (X,), {"dim": 1}),
    ("log_softmax", ops.log_softmax, F.log_softmax, (X.t(), 0), {}),
    ("softmin", ops.softmin, F.softmin, (X,), {"dim": 0}),
    ("layer_norm", ops.layer_norm, F.layer_norm, (X, (10,), X[0], X[1] + 1), {"eps": 0.5}),
    ("rms_norm", ops.rms_norm, F.rms_norm, (X, [10], X[2]), {}),
    ("group_norm", ops.group_norm, F.group_norm, (X.reshape(2, 6, 5), 3, X[0, :6], X[1, :6]), {}),
    ("sum", ops.sum, torch.sum, (X,), {"dim": (0, 1)}),
    ("mean", ops.mean, torch.mean, (X, 1), {"keepdim": True}),
    ("std", ops.std, torch.std, (X,), {"dim": 1, "correction": 0}),
    ("logsumexp", ops.logsumexp, torch.logsumexp, (X, 1), {}),
    ("vector_norm", ops.vector_norm, torch.linalg.vector_norm, (X, 3.0), {"dim": 1}),
    ("cumsum", ops.cumsum, torch.cumsum, (X, 0), {}),
    ("topk", ops.topk, torch.topk, (X, 3), {}),
    ("gather", ops.gather, torch.gather, (X, 1, CLASSES.clamp(0)[:, None]), {}),
    ("cross_entropy", ops.cross_entropy, F.cross_entropy, (X, CLASSES), {"label_smoothing": 0.1}),
    ("nll_loss", ops.nll_loss, F.nll_loss, (X, CLASSES), {"reduction": "sum"}),
    ("mse_loss", ops.mse_loss, F.mse_loss, (X, X.flip(0)), {}),
    ("cat", lambda *each: ops.cat(each, 1), lambda *each: torch.cat(each, 1), (X, X[:, :4] + 1), {}),
    ("stack", lambda *each: ops.stack(each), lambda *each: torch.stack(each), (X, X + 1), {}),
    ("pad", ops.pad, F.pad, (X[None], (1, 2), "reflect"), {}),
    ("roll", ops.roll, torch.roll, (X, (2, -1), (0, 1)), {}),
    ("permute_copy", ops.permute_copy, torch.permute_copy, (X.reshape(2, 3, 10), (2, 0, 1)), {}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_known_calls_are_right(case: Any) -> None:
    name, op, reference, args, named = case
    for requires in (False, True):
        given = [
            (
                arg.clone().requires_grad_(requires)
                if isinstance(arg, torch.Tensor) and arg.is_floating_point()
                else arg
            )
            for arg in args
        ]
        for turn in range(5):  # the second one is recorded, and the second gradient of a known call
            if requires and turn == 4:
                with python_refused():
                    found = gradients(op, given, named)
                expected = gradients(reference, given, named)
                for one, other in zip(found, expected):
                    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
                assert type(found[0].grad_fn).__name__.startswith(name)
            elif requires:
                gradients(op, given, named)
            else:
                op(*given, **named)
        with torch.no_grad(), python_refused():
            found = op(*given, **named)
        expected = reference(*given, **named)
        for one, other in zip(*((e if isinstance(e, tuple) else (e,)) for e in (found, expected))):
            torch.testing.assert_close(one, other.detach(), rtol=1e-4, atol=1e-5)
            assert not one.requires_grad and one.is_contiguous()


def test_numpys_calls_are_right() -> None:
    x = X.numpy()
    for op, args in ((ops.softmax, (x, 1)), (ops.cross_entropy, (x, CLASSES.numpy())), (ops.std, (x, 0))):  # fmt: skip
        first = [op(*args) for _ in range(3)][0]
        with python_refused():
            found = op(*args)
        assert type(found) is type(first) and np.array_equal(found, first)


def test_one_tensor_for_two_arguments() -> None:
    x, y = X.clone(), X.clone() + 1
    for _ in range(4):
        assert ops.mse_loss(x, x) == 0
    torch.testing.assert_close(ops.mse_loss(x, y), torch.tensor(1.0))
    pair = torch.stack([x, y])  # one memory
    for _ in range(4):
        found = ops.layer_norm(pair[0], (10,), pair[1, 0], pair[0, 0])
        torch.testing.assert_close(found, F.layer_norm(x, (10,), y[0], x[0]))
    torch.testing.assert_close(ops.layer_norm(x, (10,), y[0], y[1]), F.layer_norm(x, (10,), y[0], y[1]))  # fmt: skip


def test_parameters_are_those_of_the_function() -> None:
    for _ in range(3):
        ops.sum(X, 0, False, dtype=torch.float64)
        ops.softmax(X, dim=1)
    with pytest.raises(TypeError):
        ops.sum(X, 0, False, torch.float64)
    with pytest.raises(TypeError):
        ops.softmax(X, dims=1)
    assert ops.sum(X, 0, False, dtype=torch.float32).dtype == torch.float32
    assert ops.sum(X, 0, False, dtype=torch.float64).dtype == torch.float64
    with python_refused():
        torch.testing.assert_close(ops.softmax(dim=1, input=X), X.softmax(1))
    for bad in (5, "1", 1.0, True):
        with pytest.raises(ArgumentError, match="E093"):
            ops.softmax(X, dim=bad)


def test_second_derivatives() -> None:
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        ops.var(x, 1).sum().backward(), ops.softmax(x, 1).sum().backward()
    assert torch.autograd.gradcheck(lambda x: ops.var(x, 1), (x,))
    assert torch.autograd.gradgradcheck(lambda x: ops.var(x, 1), (x,))
    assert torch.autograd.gradgradcheck(lambda x: ops.mse_loss(x, 2 * x[:1]), (x,))
    (first,) = torch.autograd.grad(ops.softmax(x, 1).square().sum(), x, create_graph=True)
    with pytest.raises(ArgumentError, match="E094"):
        first.sum().backward()


def test_saved_tensors_have_versions() -> None:
    x = X.clone().requires_grad_()
    for _ in range(3):
        ops.cumprod(x, 1).sum().backward(), ops.softmax(x, 1).sum().backward()
    kept = ops.cumprod(x, 1)
    with torch.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()
    kept = ops.softmax(x, 1)
    kept.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()


def test_other_calls_are_pythons() -> None:
    class Wrapped(torch.Tensor):
        pass

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore
            return func(*args, **(kwargs or {}))

    for _ in range(3):
        ops.softmax(X, 1)
    assert not runs_python(ops.softmax, X, 1)
    for other in (X[:3], X.double(), X.t(), X.as_subclass(Wrapped)):
        assert runs_python(ops.softmax, other, 1)
    with Functions():
        assert runs_python(ops.softmax, X, 1)
    wrapped = X.as_subclass(Wrapped)
    for _ in range(4):
        ops.softmax(wrapped, 1)
    assert runs_python(ops.softmax, wrapped, 1)
    with pytest.raises(ArgumentError, match="E094"):
        torch.func.jvp(lambda x: ops.softmax(x, 1), (X,), (X,))
    compiled = torch.compile(lambda x: ops.softmax(x, 1) + 1, backend="eager")
    torch.testing.assert_close(compiled(X), X.softmax(1) + 1)
    for _ in range(3):
        empty = ops.softmax(torch.ones(0, 4), 1)
        assert empty.shape == (0, 4) and ops.sum(torch.ones(0, 3), 0).tolist() == [0, 0, 0]


def test_what_is_no_step_is_not_recorded() -> None:
    def by_torch(x: Any) -> Any:
        return ops.softmax(x + 1, 1)

    def in_place(x: Any) -> Any:
        y = ops.softmax(x, 1)
        y[0] = 0
        return y

    def loses_gradient(x: Any) -> Any:
        return ops.sum(x.double().float(), 1)

    def same(x: Any) -> Any:
        return x

    x = X.clone().requires_grad_()
    for function in (by_torch, in_place, loses_gradient):
        op = recorded(function)
        for _ in range(4):
            torch.testing.assert_close(op(X), function(X))
        assert runs_python(op, X)
    op = recorded(same)
    assert all(op(x) is x and op(X) is X for _ in range(4))

    def parts(x: Any) -> Any:
        """A copy, a view and a part that has no gradient."""
        y = ops.rms_norm(dense(x), (6,)).reshape(5, -1)
        return y, ops.sum(x.detach(), 0)

    op, used = recorded(parts), X.clone().t().requires_grad_()
    for _ in range(5):
        y, total = op(used)
        (found,) = torch.autograd.grad(y.pow(3).sum(), used)
        assert not total.requires_grad
    (expected,) = torch.autograd.grad(F.rms_norm(used, (6,)).pow(3).sum(), used)
    torch.testing.assert_close(found, expected)
    assert not runs_python(op, used)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "dropout1d"])
def test_known_draws(name: str) -> None:
    """Each call draws another seed, by torch's generator, and its gradient has the same elements."""
    op = getattr(ops, name)
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        for turn in range(6):
            x = torch.ones(40, 10, requires_grad=True)
            with python_refused() if turn > 3 else contextlib.nullcontext():
                y = op(x, 0.4, True)
                (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
            drawn.append(y)
            top = y.max()
            torch.testing.assert_close(grad != 0, y == top)
            assert 0 < (y == top).float().mean() < 1
    assert not torch.equal(drawn[4], drawn[5])
    # The second call of a kind is recorded, which draws nothing.
    assert all(map(torch.equal, drawn[:6], drawn[6:]))
    with torch.no_grad():
        for _ in range(3):
            first, same = op(x.detach(), 0.4, True, seed=3), op(x.detach(), 0.4, True, seed=3)
            assert torch.equal(first, same)


def test_known_draws_of_numpy() -> None:
    drawn = []
    for _ in range(2):
        random.seed(5)
        drawn.append([ops.dropout(X.numpy(), 0.3) for _ in range(5)])
    assert all(map(np.array_equal, *drawn)) and not np.array_equal(*drawn[0][3:])


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_results_without_a_gradient(used: tuple[int, ...]) -> None:
    """torch makes no zeros for results that are integers, and the call makes those of unused floats."""

    def parts(x: Any) -> Any:
        return ops.softmax(x, 1), *ops.topk(x, 3)

    op, x = recorded(parts), X.clone().requires_grad_()
    for turn in range(5):
        results = op(x)
        total = sum(results[at].pow(2).sum() for at in used)
        with python_refused() if turn == 4 else contextlib.nullcontext():
            (found,) = torch.autograd.grad(total, x)
    leaf = X.clone().requires_grad_()
    values = leaf.softmax(1), leaf.topk(3)[0]
    (wanted,) = torch.autograd.grad(sum(values[at].pow(2).sum() for at in used), leaf)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)


@tessera.jit
def scaled_kernel(x, out, factor, count: tessera.language.constexpr):
    i = tessera.language.arange(0, count)
    tessera.language.store(out + i, tessera.language.load(x + i) * tessera.language.load(factor))


def test_an_array_among_the_numbers_is_not_recorded() -> None:
    """A plan would keep the array of the call that was recorded."""

    def scaled(x: Any, factor: Any) -> Any:
        spec = launching.Spec((8,), types.float32)
        return launching.launch(scaled_kernel, 1, (x,), [spec], (factor, 8))[0]

    op = recorded(scaled)
    for factor in (1.0, 2.0, 3.0, 4.0):
        found = op(torch.ones(8), torch.tensor([factor]))
        assert found.tolist() == [factor] * 8


def test_recorded_arrays_are_released() -> None:
    def run(requires: bool) -> Any:
        x = torch.randn(7, 11, requires_grad=requires)
        for _ in range(3):
            result = ops.layer_norm(x, (11,))
            if requires:
                result.sum().backward()
        return weakref.ref(x), x.untyped_storage().data_ptr()

    for requires in (False, True):
        reference, _ = run(requires)
        gc.collect()
        assert reference() is None
        assert not any(
            isinstance(each, torch.Tensor) and each.shape == (7, 11) for each in gc.get_objects()
        )


def test_known_calls_in_threads_and_while_another_records() -> None:
    wrong = []

    def work(first: int) -> None:
        for size in [*range(first, first + 12), *range(1, 12)] * 3:
            x = torch.linspace(-1, 1, 4 * size).reshape(4, size).requires_grad_()
            y = ops.softmax(x, 1)
            (found,) = torch.autograd.grad(y.square().sum(), x)
            (expected,) = torch.autograd.grad(x.softmax(1).square().sum(), x)
            if not torch.allclose(found, expected, atol=1e-5):
                wrong.append(size)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(1, 4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and recording.current() is None


def test_a_kernel_of_ones_own() -> None:
    import tessera.language as tl
    from tessera.language import types
    from tessera.ops.launching import Spec, launch

    @tessera.jit
    def twice_kernel(x, out, scratch, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        i = tl.arange(0, BLOCK)
        if scratch is None:
            tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

    @recorded
    def twice(x: Any) -> Any:
        specs = [Spec(x.shape, types.float32), None]
        return launch(twice_kernel, 1, (dense(x),), specs, (x.shape[0], 16))[0]

    for array in (torch.arange(9.0), torch.arange(18.0)[::2], np.arange(9, dtype=np.float32)):
        for _ in range(4):
            found = twice(array)
            assert (found == 2 * array).all()
        assert not runs_python(twice, array)


@pytest.mark.parametrize("op", [ops.amax, ops.amin, ops.var, ops.std])
def test_gradients_of_parts_with_functions_of_their_own(op: Any) -> None:
    for array in (X, X.t(), X.half()):
        x = array.detach().requires_grad_()
        expected = gradients(getattr(torch, op.__name__), (x, 1), {"keepdim": True})
        for turn in range(5):
            with python_refused() if turn == 4 else contextlib.nullcontext():
                found = gradients(op, (x, 1), {"keepdim": True})
            for one, other in zip(found, expected):
                torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-3)


def test_a_part_that_only_autograd_knows_is_not_recorded() -> None:
    class Sum(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return ops.sum(x, 1)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad[:, None].expand(6, 10)

    @recorded
    def silu_of_sum(x: Any) -> Any:
        return ops.silu(Sum.apply(x))

    for _ in range(5):
        x = X.detach().requires_grad_()
        found = silu_of_sum(x)
        (grad,) = torch.autograd.grad(found, x, torch.ones(6))
        y = X.sum(1).requires_grad_()
        (of_sum,) = torch.autograd.grad(F.silu(y), y, torch.ones(6))
        torch.testing.assert_close(grad, 2 * of_sum[:, None].expand(6, 10))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "cumsum"])
def test_the_argument_may_be_written_where_torch_lets_it(name: str) -> None:
    for _ in range(4):
        found = []
        for module in (ops, torch):
            leaf = X.detach().requires_grad_()
            x = leaf * 2
            y = getattr(module, name)(x, 1)
            x.add_(1)
            found += torch.autograd.grad(y, leaf, X.cos())
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
