# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choice of tokens: which are kept, against a sort in NumPy, and the statistics of draws and dropouts.

The seed of draws is printed (TESSERA_OPS_SEED sets it). A draw fails if chi-square is above the bound
that one of 10^6 right draws exceeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
from tessera import ops  # noqa: E402

from tessera.ops.padding import row_tiles  # noqa: E402
from tessera.runtime.hooks import hooks  # noqa: E402

from . import scheme  # noqa: E402

EVERYWHERE = ("torch", "numpy", "jax")


def placed(library: str, x: np.ndarray[Any, Any]) -> Any:
    if library == "torch":
        return torch.from_numpy(x)
    return pytest.importorskip("jax").numpy.asarray(x) if library == "jax" else x


def kept(
    row: np.ndarray[Any, Any], temperature: float, top_k: Any, top_p: Any, min_p: Any
) -> set[int]:
    """The tokens that are kept, by definition: one filter after the other, on the sorted line."""
    order = np.argsort(-row, kind="stable")
    order = order[np.isfinite(row[order])]
    if top_k:
        order = order[row[order] >= row[order[min(top_k, len(order)) - 1]]]
    weights = np.exp((row[order] - row.max()) / temperature)
    weights /= weights.sum()
    if top_p is not None and top_p < 1:
        count = int(np.searchsorted(np.cumsum(weights), top_p)) + 1
        order, weights = order[:count], weights[:count]
    if min_p is not None:
        order = order[weights >= min_p * weights[0]]
    return set(order.tolist())


SETTINGS = [
    {"top_k": 5}, {"top_k": 1}, {"top_k": 0, "temperature": 0.5}, {"top_k": 5000}, {"top_p": 0.5},
    {"top_p": 0.9, "temperature": 2.0}, {"top_p": 1e-6}, {"min_p": 0.2, "temperature": 0.7},
    {"top_k": 40, "top_p": 0.8, "min_p": 0.01, "temperature": 1.3},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_filter(number: int) -> None:
    settings = SETTINGS[number]
    rng = np.random.default_rng(scheme.SEED)
    # Steps of 1/64, whose order is the same in all floats; no two in a row are equal.
    rows = np.stack([rng.permutation(1200)[:1000] / 64 - 9 for _ in range(3)])
    rows[1, 7], rows[2, 9] = -np.inf, np.nan
    wanted = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None, **settings}
    libraries = ("torch", "numpy") if number < len(SETTINGS) - 1 else EVERYWHERE
    for library in libraries:
        x = rows.astype(np.float64 if library == "numpy" and number == 5 else np.float32)
        found = np.asarray(ops.filter_logits(placed(library, x), **settings))
        for row, got in zip(np.where(np.isnan(rows), -np.inf, rows), found):
            expected = kept(row, **wanted)
            assert set(np.nonzero(np.isfinite(got))[0].tolist()) == expected
            at = sorted(expected)
            np.testing.assert_allclose(
                got[at],
                row[at] / wanted["temperature"],
                rtol=1e-6 if x.dtype == np.float32 else 1e-15,
            )


def test_settings_of_rows() -> None:
    x = torch.tensor([[1.0, 3.0, 2.0], [3.0, 2.0, 2.0], [1.0, 2.0, 3.0]]).to(torch.bfloat16)
    y = ops.filter_logits(x, top_k=torch.tensor([1, 2, 0]), temperature=torch.tensor([1.0, 2, 0]))
    # Logits that are equal to the last one stay, and temperature 0 keeps the largest.
    assert y.isfinite().tolist() == [[False, True, False], [True, True, True], [False, False, True]]
    assert y[1].tolist() == [1.5, 1.0, 1.0]
    assert ops.sample(x, temperature=0.0).tolist() == [1, 0, 2]
    assert ops.sample(x[None], top_k=1).tolist() == [[1, 0, 2]]
    assert ops.sample(torch.full((2, 5), float("nan"))).tolist() == [0, 0]
    for k in (1, 2, 1, 3, 2):  # later calls of a kind have other arrays
        y = ops.filter_logits(x, top_k=torch.full((3,), k), temperature=torch.full((3,), 0.5))
        assert y[2].tolist() == [2 * at if at > 3 - k else -float("inf") for at in (1, 2, 3)]
    infinite = torch.tensor([0.0, float("inf"), 1.0])
    assert ops.filter_logits(infinite, top_p=0.5).tolist() == [
        -float("inf"),
        float("inf"),
        -float("inf"),
    ]


def test_penalties() -> None:
    for library in EVERYWHERE:
        x = np.random.default_rng(1).standard_normal((2, 3, 9)).astype(np.float32)
        tokens = np.array([[0, 3, 3, -1], [8, 8, 8, 8], [-1, -1, 9, 2]])[None].repeat(2, 0)
        presence = np.array([[0.5, 0.25, 1], [2, 0, 0]], np.float32)
        found = ops.apply_penalties(
            placed(library, x), placed(library, tokens), repetition=2.0, frequency=0.125,
            presence=placed(library, presence),
        )  # fmt: skip
        expected = x.copy()
        for at in np.ndindex(2, 3):
            for token in set(tokens[at].tolist()) & set(range(9)):
                value = x[at][token]
                value = value / 2 if value > 0 else value * 2
                count = int((tokens[at] == token).sum())
                expected[at][token] = value - 0.125 * count - presence[at]
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


def check_shares(drawn: Any, shares: Any, library: str = "torch") -> None:
    """Chi-square of draws against probabilities. A place of probability 0 is never drawn."""
    counts = np.bincount(np.asarray(drawn).reshape(-1), minlength=len(shares))
    assert len(counts) == len(shares) and not counts[shares == 0].any()
    wanted = shares[shares > 0] * counts.sum()
    chi, free = ((counts[shares > 0] - wanted) ** 2 / wanted).sum(), len(wanted) - 1
    bound = free * (1 - 2 / (9 * free) + 4.75 * (2 / (9 * free)) ** 0.5) ** 3
    assert chi < bound, f"chi-square {chi} of {free}: {counts} where {wanted} is expected"


@pytest.mark.parametrize("library", EVERYWHERE)
def test_draws(library: str) -> None:
    seed, weights = scheme.SEED, np.array([0.1, 0.0, 0.35, 0.05, 0.3, 0.2], np.float32)
    print(f"TESSERA_OPS_SEED={seed}")
    check_shares(ops.multinomial(placed(library, weights * 7), 20000, True, seed=seed), weights)
    rows = np.tile(weights, (20000, 1))
    check_shares(ops.multinomial(placed(library, rows), 1, seed=seed + 1), weights)
    logits = placed(library, 2 * np.log(np.maximum(rows, 1e-30)))
    check_shares(ops.sample(logits, temperature=2.0, seed=seed), weights)
    top = np.where(weights >= 0.2, weights, 0) / 0.85
    check_shares(ops.sample(logits, temperature=2.0, top_k=3, seed=seed), top)
    pairs = np.asarray(ops.multinomial(placed(library, rows), 2, seed=seed + 2))
    assert (pairs[:, 0] != pairs[:, 1]).all()
    check_shares(pairs[:, 0], weights)
    second = weights[:, None] * weights[None] / (1 - weights[:, None])
    np.fill_diagonal(second, 0)
    check_shares(pairs[:, 0] * 6 + pairs[:, 1], second.reshape(-1) / second.sum())


def test_seeds_and_weights_that_are_none() -> None:
    x = torch.rand(50, 30, dtype=torch.float64)
    x[:, 3], x[:, 4] = float("nan"), -1.0
    for call in (
        lambda **s: ops.multinomial(x, 5, **s),
        lambda **s: ops.multinomial(x, 50, True, **s),
    ):
        assert torch.equal(call(seed=1), call(seed=1)) and not torch.equal(
            call(seed=1), call(seed=2)
        )
        torch.manual_seed(0)
        first = call()
        torch.manual_seed(0)
        assert torch.equal(first, call()) and not torch.isin(first, torch.tensor([3, 4])).any()


def test_dropouts_keep_choices_for_gradients() -> None:
    x, grad = torch.randn(5001, requires_grad=True), torch.randn(5001)
    for op in (ops.dropout, ops.alpha_dropout):
        for _ in range(3):
            y = op(x, 0.3, True, seed=scheme.SEED)
            types = [each.dtype for each in y.grad_fn.saved_tensors if each is not None]
            assert types == [torch.bool]
            ones, found = (
                torch.autograd.grad(y, x, each, retain_graph=True)[0]
                for each in (torch.ones(5001), grad)
            )
            torch.testing.assert_close(found, grad * ones)
            with torch.no_grad():
                assert torch.equal(op(x, 0.3, True, seed=scheme.SEED), y)


def test_dropouts_of_lines() -> None:
    """Channels are dropped whole, with the statistics of torch's, and gradients follow them."""
    x = torch.randn(60, 50, 4, dtype=torch.float64, requires_grad=True)
    for op, alpha in (
        (ops.dropout1d, False),
        (ops.feature_alpha_dropout, True),
        (ops.alpha_dropout, True),
    ):
        y = op(x, 0.3, True, seed=scheme.SEED)
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
        is_kept = grad != 0
        assert abs(is_kept.double().mean() - 0.7) < 0.05
        assert (is_kept == is_kept[..., :1]).all() == (op is not ops.alpha_dropout)
        assert y[~is_kept].unique().numel() == 1
        assert len(grad[is_kept].unique()) == 1
        if alpha:
            low = -1.7580993408473766
            scale = (0.7 * (1 + 0.3 * low**2)) ** -0.5
            torch.testing.assert_close(y[is_kept], (x[is_kept] - 0.3 * low) * scale)
            torch.testing.assert_close(
                y[~is_kept][:1].detach(), torch.tensor([0.7 * low * scale]).double()
            )
        else:
            torch.testing.assert_close(y[is_kept], x[is_kept] / 0.7)
    assert not ops.alpha_dropout(x, 1.0, True).any() and ops.alpha_dropout(x) is x
    single = ops.dropout3d(torch.ones(40, 2, 3, 1), 0.5, seed=2)
    assert single.flatten(1).unique(dim=1).shape[1] == 1 and 0 < single.count_nonzero() < 240


def test_arguments_that_are_refused() -> None:
    line, table, number = np.ones(3), np.ones((2, 3)), np.ones(3, np.int64)
    for call in (
        lambda: ops.pad(line, (1,)),
        lambda: ops.pad(line, (1, 1, 1, 1)),
        lambda: ops.pad(line, (1, 3), "reflect"),
        lambda: ops.pad(line, (4, 0), "circular"),
        lambda: ops.pad(line, (-1, 0), "replicate"),
        lambda: ops.pad(line, (-2, -2)),
        lambda: ops.pad(line, (1, 1), "edge"),
        lambda: ops.pad(line, (1, 1), "reflect", 1.0),
        lambda: ops.pad(
            np.broadcast_to(line, (1 << 15, 1 << 15, 3)), (0, 0, 1, 1, 1, 1), "reflect"
        ),
        lambda: row_tiles(line, 1 << 31, 2),
        lambda: ops.roll(line, (1, 2), 0),
        lambda: ops.roll(line, 1, 1),
        lambda: ops.cat([]),
        lambda: ops.cat([line, torch.ones(3)]),
        lambda: ops.cat([line, table]),
        lambda: ops.stack([line, np.ones(4)]),
        lambda: ops.stack([line], 2),
        lambda: ops.permute_copy(table, (0, 0)),
        lambda: ops.permute_copy(table, (0,)),
        lambda: ops.transpose_copy(table, 0, 2),
        lambda: ops.alpha_dropout(line, 2.0, True),
        lambda: ops.dropout2d(line),
        lambda: ops.bincount(line),
        lambda: ops.bincount(-number),
        lambda: ops.bincount(number, np.ones(4)),
        lambda: ops.bincount(number, minlength=-1),
        lambda: ops.histc(line, 0),
        lambda: ops.histc(line, 3, 2, 1),
        lambda: ops.histc(number),
        lambda: ops.histogram(line, 0),
        lambda: ops.histogram(line, 3, range=(2.0, 1.0)),
        lambda: ops.histogram(line, line.astype(np.float32)),
        lambda: ops.histogram(line, line, range=(0.0, 1.0)),
        lambda: ops.histogram(line, 3, weight=np.ones(4)),
        lambda: ops.searchsorted(line, number),
        lambda: ops.searchsorted(line, line, right=True, side="left"),
        lambda: ops.unique(np.ones(20000)),
        lambda: ops.searchsorted(table, line),
        lambda: ops.bucketize(line, table),
        lambda: ops.apply_penalties(line, line),
        lambda: ops.apply_penalties(table, number),
        lambda: ops.apply_penalties(table, np.ones((2, 3), np.int64), repetition=0.0),
        lambda: ops.filter_logits(number),
        lambda: ops.filter_logits(table, top_p=1.5),
        lambda: ops.filter_logits(table, top_k=np.ones(3)),
        lambda: ops.sample(table, temperature=-1.0),
        lambda: ops.multinomial(line, 4),
        lambda: ops.multinomial(line, 0),
        lambda: ops.multinomial(np.ones(20000), 2),
        lambda: ops.multinomial(np.ones((1, 2, 3)), 2),
    ):
        with pytest.raises(tessera.ArgumentError) as caught:
            call()
        assert caught.value.id == "E093" and caught.value.fix
    for op in (ops.filter_logits, lambda x: ops.bincount(torch.zeros(3, dtype=torch.int64), x)):
        with pytest.raises(tessera.ArgumentError, match="E094"):
            op(torch.ones(3, requires_grad=True))


def test_seeds_are_no_kinds_of_their_own() -> None:
    """Seeds that are 0, 1, multiples of 16 or of 64 bits are served by one kernel."""
    x = np.linspace(-2, 2, 64, dtype=np.float32).reshape(4, 16)
    calls: tuple[Any, ...] = (
        lambda seed: ops.dropout(x, seed=seed),
        lambda seed: ops.rrelu(x, training=True, seed=seed),
        lambda seed: ops.gumbel_softmax(x, seed=seed),
        lambda seed: ops.alpha_dropout(x, training=True, seed=seed),
        lambda seed: ops.sample(x, seed=seed),
        lambda seed: ops.multinomial(abs(x), 2, seed=seed),
        lambda seed: ops.multinomial(abs(x), 2, True, seed=seed),
    )
    for call in calls:
        call(7)
    found: list[Any] = []
    before = hooks.compilation_listener
    hooks.compilation_listener = lambda **what: found.append(what["src"])
    try:
        for call in calls:
            drawn = [call(seed) for seed in (0, 1, 16, 1 << 20, 1 << 40, -3)]
            assert not all((each == drawn[0]).all() for each in drawn)
    finally:
        hooks.compilation_listener = before
    assert not found
