# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of tessera.ops on samples of torch's own table of operators, with gradients.

By default an operator has a few samples, chosen by a seed that is printed (TESSERA_OPS_SEED).
`--every-combination` runs all. A sample with an option that an operator does not take has to be
refused by its id, or by Python.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
from tessera import ops  # noqa: E402
from tessera.ops import replacing  # noqa: E402

from frameworks.torch_table import load_table  # noqa: E402

from . import scheme  # noqa: E402

FEW = 2

FUNCTIONAL = (
    """relu relu6 hardtanh hardsigmoid hardswish threshold leaky_relu prelu elu selu celu silu gelu
mish softplus logsigmoid softsign tanhshrink hardshrink softshrink glu cross_entropy nll_loss
binary_cross_entropy binary_cross_entropy_with_logits kl_div mse_loss l1_loss smooth_l1_loss huber_loss
layer_norm rms_norm group_norm instance_norm batch_norm embedding one_hot""".split()
)
OTHERS = """sigmoid tanh clamp where lerp addcmul addcdiv softmax log_softmax sum mean prod amax amin any all var
std var_mean logsumexp argmax argmin cumsum cumprod logcumsumexp cummax cummin sort argsort topk gather
scatter_add index_select index_add roll cat stack histc searchsorted bucketize permute_copy
transpose_copy bincount histogram unique unique_consecutive""".split()
OPERATORS = {
    **{f"nn.functional.{name}": getattr(ops, name) for name in FUNCTIONAL},
    **{name: getattr(ops, name) for name in OTHERS},
    "linalg.vector_norm": ops.vector_norm,
    **{
        f"nn.functional.pad.{mode}": ops.pad
        for mode in ("constant", "reflect", "replicate", "circular")
    },
    "scatter_reduce.sum": ops.scatter_reduce,
    "scatter_reduce.mean": ops.scatter_reduce,
    "scatter_reduce.amax": ops.scatter_reduce,
    "scatter_reduce.amin": ops.scatter_reduce,
    "nn.functional.softmin": ops.softmin,
    # Samples have these arguments in another order.
    "where": lambda input, condition, other: ops.where(condition, input, other),
    "nn.functional.embedding_bag": lambda weight, input, offsets=None, **named: (
        ops.embedding_bag(input, weight, offsets, **named)
    ),
    "nn.functional.linear_cross_entropy": ops.linear_cross_entropy,
    "nn.functional.embedding": lambda weight, input, **named: ops.embedding(input, weight, **named),
}

# Results that are places, or have no gradient here.
NO_GRADIENT = ("any", "all", "argmax", "argmin", "argsort", "nn.functional.one_hot", "scatter_reduce.amax",
               "scatter_reduce.amin", "histc", "searchsorted", "bucketize", "bincount", "histogram", "unique",
               "unique_consecutive")  # fmt: skip


@pytest.fixture(scope="module")
def table() -> Any:
    """torch's table, by name."""
    found = {}
    for each in load_table():
        found.setdefault(each.name, each)
        found[f"{each.name}.{each.variant_test_name}".rstrip(".")] = each
    return found


def tensors_of(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return (
        [each for part in value for each in tensors_of(part)]
        if isinstance(value, (list, tuple))
        else []
    )


def with_leaves(sample: Any, requires: bool) -> tuple[list[Any], dict[str, Any], list[Any]]:
    """Copies of a sample's arguments, and those of them that have a gradient."""
    leaves: list[Any] = []

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        made = value.detach().clone()
        if requires and value.requires_grad:
            made.requires_grad_()
            leaves.append(made)
        return made

    args = [copy(each) for each in (sample.input, *sample.args)]
    named = {key: copy(each) for key, each in sample.kwargs.items()}
    return args, named, leaves


@pytest.mark.parametrize("name", OPERATORS)
def test_samples(name: str, table: Any, request: pytest.FixtureRequest) -> None:
    entry, op = table[name], OPERATORS[name]
    has_gradient = name not in NO_GRADIENT
    dtype = torch.int64 if name in ("nn.functional.one_hot", "bincount") else torch.float64
    torch.manual_seed(scheme.SEED)
    samples = list(entry.sample_inputs("cpu", dtype, requires_grad=has_gradient))
    if not request.config.getoption("--every-combination"):
        random.Random(scheme.SEED).shuffle(samples)
    run, refused = 0, []
    for number, sample in enumerate(samples):
        print(f"TESSERA_OPS_SEED={scheme.SEED} {name} sample {number}: {sample}")
        args, named, leaves = with_leaves(sample, has_gradient)
        named.pop("inplace", None)
        if named.get("reduction") is None and "reduction" in named:
            continue
        try:
            got = scheme.as_tuple(op(*args, **named))
        except (tessera.ArgumentError, TypeError, ValueError) as error:
            assert isinstance(error, TypeError) or error.id in ("E089", "E093", "E094"), error
            refused.append(str(error))
            continue
        theirs, theirs_named, their_leaves = with_leaves(sample, has_gradient)
        expected = scheme.as_tuple(entry(*theirs, **theirs_named))
        for one, wanted in zip(got, expected, strict=True):
            torch.testing.assert_close(one, wanted, equal_nan=True, check_stride=False)
        compare_gradients(got, expected, leaves, their_leaves)
        run += 1
        if run >= FEW and not request.config.getoption("--every-combination"):
            break
    assert run, f"all samples were refused: {refused}"


def compare_gradients(got: Any, expected: Any, leaves: Any, theirs: Any) -> None:
    pairs = [(a, b) for a, b in zip(got, expected) if b.requires_grad and b.numel()]
    if not pairs or not leaves:
        return
    weights = [torch.rand_like(b) for _, b in pairs]
    ours = torch.autograd.grad([a for a, _ in pairs], leaves, weights, allow_unused=True)
    wanted = torch.autograd.grad([b for _, b in pairs], theirs, weights, allow_unused=True)
    for a, b in zip(ours, wanted):
        if b is None:
            assert a is None or not a.any()
        else:
            torch.testing.assert_close(a, b, equal_nan=True)


REPLACED = [
    name for name in OPERATORS
    if name.rpartition(".")[2] in replacing.NAMES or name.startswith("scatter_reduce")
]  # fmt: skip


RANDOM = {
    f"nn.functional.{name}": getattr(ops, name)
    for name in ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "rrelu")
} | {
    "nn.functional.feature_alpha_dropout.with_train": ops.feature_alpha_dropout,
    "nn.functional.feature_alpha_dropout.without_train": ops.feature_alpha_dropout,
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_samples(name: str, table: Any) -> None:
    """Elements are other than torch's. Each is one of two values that the input has in torch, too; or the
    quotient with the input is in the range."""
    run = 0
    for sample in table[name].sample_inputs("cpu", torch.float64):
        named = {key: each for key, each in sample.kwargs.items() if key != "inplace"}
        try:
            got = RANDOM[name](sample.input, *sample.args, **named, seed=7)
        except tessera.ArgumentError as error:
            assert error.id == "E093"
            continue
        x, is_plain = sample.input, "alpha" not in name and "rrelu" not in name
        is_on = named.get("training", is_plain)
        assert got.shape == x.shape and got.dtype == x.dtype
        if name.endswith("rrelu"):
            low, high = named.get("lower", 1 / 8), named.get("upper", 1 / 3)
            quotient = (got / x)[x < 0]
            assert ((quotient >= low - 1e-9) & (quotient <= high + 1e-9)).all()
            torch.testing.assert_close(got[x >= 0], x[x >= 0])
        elif is_on and "alpha" in name:
            assert got.isfinite().all()
        elif is_on:
            p = named.get("p", sample.args[0] if sample.args else 0.5)
            kept = got != 0
            assert not kept.any() or p < 1
            torch.testing.assert_close(got[kept] * (1 - p), x[kept])
        else:
            torch.testing.assert_close(got, x)
        run += 1
    assert run


@pytest.mark.parametrize("name", REPLACED)
def test_enabled(name: str, table: Any, request: pytest.FixtureRequest) -> None:
    """Inside of enable() torch's own functions have the same results, and most are ours."""
    entry = table[name]
    short = "scatter_reduce" if name.startswith("scatter_reduce") else name.rpartition(".")[2]
    torch.manual_seed(scheme.SEED)
    dtype = torch.int64 if short in ("bincount", "one_hot") else torch.float64
    samples = list(entry.sample_inputs("cpu", dtype))
    random.Random(scheme.SEED).shuffle(samples)
    for sample in samples if request.config.getoption("--every-combination") else samples[:1]:
        args, named, _ = with_leaves(sample, False)
        with ops.enable(unused=replacing.NAMES) as none:
            expected = entry(*args, **named)
        assert not none.taken
        if torch.is_tensor(args[0]) and named.get("inplace"):
            args, named, _ = with_leaves(sample, False)
        with ops.enable() as used:
            got = entry(*args, **named)
        assert type(got) is type(expected)
        torch.testing.assert_close(got, expected, equal_nan=True)
        assert set(used.taken) | set(used.refused) == {short}


def test_compiled_functions() -> None:
    """Dynamo leaves the graph for an operator with a kernel of its own."""
    compiled = torch.compile(lambda x: ops.softmax(x * 2) + 1, backend="eager")
    x = torch.randn(3, 4, requires_grad=True)
    torch.testing.assert_close(compiled(x), (x * 2).softmax(-1) + 1)


@pytest.mark.parametrize("name", ["sort", "topk", "gather", "scatter_add", "index_select", "index_add", "cummax",
                                  "cumsum", "nn.functional.embedding", "softmax", "amax"])  # fmt: skip
def test_arguments_that_are_written_later(name: str, table: Any) -> None:
    """What no derivative reads is not saved: it may be written to before the backward pass."""
    entry, op = table[name], OPERATORS[name]
    torch.manual_seed(scheme.SEED)
    samples = entry.sample_inputs("cpu", torch.float64, requires_grad=True)
    sample = next(each for each in samples if each.input.ndim)
    for at in range(2):
        found = [is_written_late(function, sample, at) for function in (entry, op, op, op)]
        assert not found[0] or all(found), found


def is_written_late(function: Any, sample: Any, at: int) -> bool:
    """True if the backward pass works after a write to an argument with a gradient."""
    args, named, leaves = with_leaves(sample, True)
    copies: list[Any] = []

    def copied(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.requires_grad:
            return value
        copies.append(value * 1)
        return copies[-1]

    results = scheme.as_tuple(
        function(*map(copied, args), **{key: copied(each) for key, each in named.items()})
    )
    if at >= len(copies):
        return True
    with torch.no_grad():
        copies[at].add_(1)
    try:
        total = sum(each.sum() for each in results if each.requires_grad)
        torch.autograd.grad(total, leaves, allow_unused=True)
    except RuntimeError:
        return False
    return True
