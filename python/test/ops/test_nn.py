# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.nn: modules with torch's state dicts, and optimisers, beside torch's own."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
import tessera.nn as nn  # noqa: E402
from tessera import ops  # noqa: E402

X = torch.randn(4, 6, 5, generator=torch.Generator().manual_seed(0))
INPUTS = {
    "Softmax": (X,), "Embedding": (torch.tensor([[1, 0], [2, 2]]),), "EmbeddingBag": (torch.tensor([1, 0, 2]), torch.tensor([0, 2])),
    "BatchNorm2d": (X[..., None],),
    "BatchNorm3d": (X[..., None, None],), "CrossEntropyLoss": (X[..., 0], torch.tensor([0, 5, 2, -100])),
    "NLLLoss": (X[..., 0], torch.tensor([0, 5, 2, -100])), "KLDivLoss": (X, X.sigmoid()),
    "BCEWithLogitsLoss": (X, X.sigmoid()), "BCELoss": (X.sigmoid(), X.flip(0).sigmoid()), **dict.fromkeys(["MSELoss", "L1Loss", "SmoothL1Loss",
    "HuberLoss"], (X, X.flip(0))),
}  # fmt: skip
ARGUMENTS = {
    "Softmax": (1,), "LogSoftmax": (1,), "LayerNorm": ((6, 5),), "RMSNorm": (5, 1e-5), "GroupNorm": (3, 6),
    "BatchNorm1d": (6,), "BatchNorm2d": (6,), "BatchNorm3d": (6,), "Embedding": (3, 7, 1), "EmbeddingBag": (3, 7, None, 2.0, False, "max", False, None, False, 1), "GLU": (1,),
    "InstanceNorm1d": (6, 1e-3, 0.1, True), "InstanceNorm2d": (4,), "InstanceNorm3d": (2, 1e-3, 0.3, True, True), "Softmin": (1,), "Threshold": (0.5, -2.0), "Hardtanh": (-0.5, 0.75),
    **{f"{kind}Pad{rank}d": (2,) for kind in ("Zero", "Reflection", "Replication", "Circular") for rank in (1, 2, 3)},
    **{f"ConstantPad{rank}d": ((1, 2) * rank, 1.5) for rank in (1, 2, 3)},
}  # fmt: skip
# Three planes in each dimension are what a reflection of two takes.
INPUTS |= {
    f"{kind}Pad3d": (X.reshape(2, 3, 4, 5),)
    for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
}
INPUTS |= {"InstanceNorm2d": (X[None],), "InstanceNorm3d": (X.reshape(2, 3, 4, 5),)}  # fmt: skip
RANDOM = (
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "AlphaDropout",
    "FeatureAlphaDropout",
    "RReLU",
)
OPTIMIZERS = ("SGD", "AdamW", "Lion", "Adafactor", "AdamW8bit", "Lion8bit")
MODULES = [name for name in nn.__all__ if name not in (*OPTIMIZERS, *RANDOM, "replace")]


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("name", MODULES)
def test_module(name: str) -> None:
    torch.manual_seed(
        0
    )  # a gradient that cancels is beyond the tolerance for 3 % of all parameters
    args = ARGUMENTS.get(name, ())
    ours, theirs = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
    assert isinstance(ours, type(theirs))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter))
    ours.load_state_dict(theirs.state_dict())
    for _ in range(2):
        first, *rest = INPUTS.get(name, (X,))
        results = []
        for module in (ours, theirs):
            leaf = first.clone().requires_grad_(first.is_floating_point())
            y = module(leaf, *rest)
            wanted = [*module.parameters(), *([leaf] if leaf.requires_grad else [])]
            results.append((y, *torch.autograd.grad(y.square().sum(), wanted)))
        # Gradients of a norm cancel: over 200 draws of BatchNorm2d torch's differ by up to 7.7e-6 from
        # those of float64, ours by up to 9.5e-6.
        torch.testing.assert_close(*results, rtol=1e-5, atol=3e-5)
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
        ours.eval(), theirs.eval()


@pytest.mark.parametrize("name", RANDOM)
def test_random_module(name: str) -> None:
    """The seed is of torch's generator, and evaluation is torch's."""
    ours, theirs = getattr(nn, name)(), getattr(torch.nn, name)()
    assert isinstance(ours, type(theirs))
    x = X.reshape(4, 6, 5, *[1] * ("2d" in name or 2 * ("3d" in name)))
    torch.manual_seed(7)
    first, second = ours(x), ours(x)
    torch.manual_seed(7)
    assert torch.equal(ours(x), first) and not torch.equal(first, second)
    assert not torch.equal(first, x)
    assert torch.equal(ours.eval()(x), theirs.eval()(x))


def trained(make: Any, dtype: Any) -> list[Any]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((3, 5), (3, 5), (7,), (2, 3, 4))
    params = [torch.randn(each, generator=generator).to(dtype).requires_grad_() for each in shapes]
    optimizer = make(params)
    for _ in range(3):
        for each in params:
            each.grad = torch.randn(each.shape, generator=generator).to(dtype)
        optimizer.step()
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    params[0].grad = None
    optimizer.step()
    assert torch.is_grad_enabled() and all(each.grad_fn is None for each in params)
    return params


@pytest.mark.parametrize(
    "name, settings",
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.1}),
        ("AdamW", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3, "maximize": True}),
        ("Adafactor", {"lr": 0.1}),
        (
            "Adafactor",
            {"lr": 1.0, "beta2_decay": -0.5, "eps": (1e-3, 1e-2), "d": 1.5, "weight_decay": 0.1},
        ),
        ("Adafactor", {"lr": 0.1, "maximize": True}),
    ],
)
def test_optimizer(name: str, settings: dict[str, Any]) -> None:
    ours = trained(lambda params: getattr(nn, name)(params, **settings), torch.float64)
    theirs = trained(lambda params: getattr(torch.optim, name)(params, **settings), torch.float64)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adafactor"])
def test_states_of_torch(name: str) -> None:
    """A state goes from torch's optimiser to ours and back, with steps before, between and after."""
    param, settings = torch.randn(4, 5, dtype=torch.float64), {"lr": 0.1, "weight_decay": 0.1}
    settings |= {"momentum": 0.9} if name == "SGD" else {}
    results = []
    for packages in ((torch.optim, nn, torch.optim), (torch.optim,) * 3):
        leaf, state = param.clone().requires_grad_(), None
        for package in packages:
            optimizer = getattr(package, name)([leaf], **settings)
            if state is not None:
                optimizer.load_state_dict(copy.deepcopy(state))
            leaf.grad = leaf.detach().sin()
            optimizer.step(), optimizer.step()
            state = optimizer.state_dict()
        results.append(leaf.detach())
    torch.testing.assert_close(*results)


def test_states_of_floats_become_codes() -> None:
    x = torch.randn(64, 80).requires_grad_()
    theirs, x.grad = torch.optim.AdamW([x], lr=0.1), torch.randn(64, 80)
    theirs.step()
    codes, before = nn.AdamW8bit([x]), x.detach().clone()
    codes.load_state_dict(copy.deepcopy(theirs.state_dict()))
    assert codes.state[x]["exp_avg"].dtype == torch.int8 and codes.state[x]["step"] == 1
    codes.step()
    ours = x.detach().clone()
    with torch.no_grad():
        x.copy_(before)
    theirs.step()
    # A step is 0.1. Codes of elements that are small in their block are rough.
    assert (((ours - x).abs() < 0.01).sum() >= x.numel() - 5) and (ours - before).abs().min() > 0.05
    with pytest.raises(tessera.ArgumentError, match="8 bits"):
        nn.AdamW([x]).load_state_dict(codes.state_dict())


def test_lion() -> None:
    generator = torch.Generator().manual_seed(2)
    x, average = torch.randn(7, generator=generator), torch.zeros(7)
    mine, mine_average = x.to(torch.bfloat16), torch.zeros(7)
    expected = mine.float()
    for _ in range(3):
        grad = torch.randn(7, generator=generator)
        ops.lion_step(mine, grad, mine_average, lr=0.25, weight_decay=0.5)
        step = (0.9 * average + 0.1 * grad).sign()
        expected = (expected * (1 - 0.25 * 0.5) - 0.25 * step).to(torch.bfloat16).float()
        average = 0.99 * average + 0.01 * grad
    torch.testing.assert_close(mine.float(), expected, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(mine_average, average)


def test_replace() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.LayerNorm(5), torch.nn.GELU())
    before = model(X)
    assert nn.replace(model) == {"1": "LayerNorm", "2": "GELU"}
    torch.testing.assert_close(model(X), before)
    assert nn.replace(model) == {}
    others = torch.nn.Sequential(
        torch.nn.ReflectionPad1d(1), torch.nn.Softsign(), torch.nn.Dropout(),
        torch.nn.Embedding(3, 4, sparse=True), torch.nn.Softmax(),
        torch.nn.EmbeddingBag(3, 4, max_norm=1.0),
    )  # fmt: skip
    assert nn.replace(others) == {"0": "ReflectionPad1d", "1": "Softsign"}


@pytest.mark.parametrize("name", ["replace", *OPTIMIZERS])
def test_example(name: str) -> None:
    import inspect
    import textwrap

    text = inspect.cleandoc(getattr(nn, name).__doc__)
    exec(textwrap.dedent(text.partition("Example:\n")[2]), {})


def test_options_that_are_refused() -> None:
    for call in (
        lambda: nn.SGD([X], lr=-1.0),
        lambda: nn.SGD([X], lr="fast"),
        lambda: nn.SGD([X], nesterov=True),
        lambda: nn.AdamW([X], betas=(0.9, 1.5)),
        lambda: nn.AdamW([X]).load_state_dict(torch.optim.AdamW([X], amsgrad=True).state_dict()),
        lambda: nn.AdamW([X]).load_state_dict(torch.optim.Adam([X], weight_decay=0.1).state_dict()),
        lambda: nn.Embedding(3, 4, sparse=True)(torch.tensor([1])),
        lambda: nn.EmbeddingBag(3, 4, max_norm=1.0)(torch.tensor([[1]])),
        lambda: nn.Softmax2d()(torch.ones(3)),
    ):
        with pytest.raises(tessera.ArgumentError) as caught:
            call()
        assert caught.value.id == "E093"
