# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of tessera.ops on the simulated GPU: values, and no finding of the simulator."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tessera.gpu  # noqa: E402
from tessera import ops  # noqa: E402
from tessera.calls.outputs import make_output  # noqa: E402
from tessera.ops import (
    histograms,
    normalizations,
    reductions,
    softmaxes,
    statistics,
    tuning,
)  # noqa: E402

from . import (
    cases_histograms,
    cases_indexing,
    cases_losses,
    cases_normalizations,
    cases_padding,
    cases_reductions,
    cases_sparse,
    scheme,
)  # noqa: E402

# With these each kernel runs, forward and backward.
NAMES = """softmax 1|softmax -1|log_softmax 0|cross entropy weight|cross entropy soft|nll images|layer norm|
group norm cached|batch norm|add rms norm|rotary part|argmax|cumsum 1|logcumsumexp -1|cummax|sort|topk|topk least|gather|scatter mean True|
scatter amax False|index_add|embedding|embedding_bag mean|embedding_bag max|embedding_bag weights|segments max|one_hot|
pad replicate (1, 2, 3, 4, 5, 6)|pad reflect (2, 4, 3, 1)|
cat five|permute_copy|bincount|bincount weights|histc|searchsorted lines|unique_consecutive|spmm""".replace(
    "\n", ""
).split(
    "|"
)
CASES = {
    case.name: case
    for module in (
        cases_indexing,
        cases_losses,
        cases_normalizations,
        cases_reductions,
        cases_padding,
        cases_histograms,
        cases_sparse,
    )
    for case in module.CASES
}


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Has launches of operators be on the simulator. Collects the kernels."""
    kernels = []

    def launch(
        kernel: Any, programs: int, inputs: Any, outputs: Any, numbers: Any, warps: int = 4
    ) -> Any:
        like = next(each for each in inputs if each is not None)
        made = [
            make_output(like, tuple(each.shape), each.dtype, "out") if each else None
            for each in outputs
        ]
        if programs:
            kernels.append(kernel)
            run = tessera.gpu.simulate(kernel)[(programs,)]
            run(*inputs, *made, *numbers, num_warps=warps).check()
        return tuple(made)

    # Launchers choose what a GPU has.
    monkeypatch.setattr(tuning, "device_of", lambda array: 0)
    machine = tuning.Machine("cuda", "simulated", "0.0", 4)
    monkeypatch.setitem(tuning._tables._machines, 0, machine)
    monkeypatch.setattr(normalizations, "_MIN_PART", 4)  # channels are divided, as long ones are
    monkeypatch.setattr(histograms, "_MANY_BLOCKS", 0)
    monkeypatch.setattr(histograms, "_RUNS", 64)
    for key, module in list(sys.modules.items()):
        if key.startswith("tessera.ops.") and hasattr(module, "launch"):
            monkeypatch.setattr(module, "launch", launch)
    return kernels


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, launched: list[Any]) -> None:
    case = CASES[name]
    scheme.check(case, "torch", case.dtypes[0], "dense", list(CASES).index(name))
    assert launched


LOGITS = torch.randn(3, 70, generator=torch.Generator().manual_seed(5))
LONG = torch.randn(2, 9001, generator=torch.Generator().manual_seed(6))
SPECIAL = LOGITS.round().masked_fill(LOGITS > 1, float("-inf"))
SPECIAL[:, 5], SPECIAL[1:, 9], SPECIAL[:2, 11], SPECIAL[:, 12] = (
    float("nan"),
    float("inf"),
    -0.0,
    0.0,
)
TOKENS = torch.tensor([[0, 5, 5], [69, -1, 7], [70, 2, 2]])


def stepped(name: str, *states: Any, **settings: Any) -> Any:
    """The arrays that a step has changed."""
    arrays = [LOGITS.clone(), *(each.clone() for each in states)]
    getattr(ops, name)(arrays[0], LOGITS.flip(0), *arrays[1:], lr=0.1, **settings)
    return arrays


def codes(signed: bool) -> Any:
    return ops.quantize_blocks(LOGITS.flip(1) if signed else LOGITS**2, signed)


CALLS = {
    "filter": lambda: ops.filter_logits(LOGITS, temperature=torch.tensor([0.5, 1, 2]), top_k=20, top_p=0.8, min_p=0.02),
    "filter halves": lambda: ops.filter_logits(LONG.bfloat16(), top_k=300),
    "filter specials": lambda: ops.filter_logits(SPECIAL, top_k=torch.tensor([1, 3, 60])),
    "sample long": lambda: ops.sample(LONG, top_p=0.9, seed=1),
    "sample": lambda: ops.sample(LOGITS, top_k=20, seed=1),
    "draw": lambda: ops.multinomial(LOGITS.exp(), 40, True, seed=1),
    "draw distinct": lambda: ops.multinomial(LOGITS.exp(), 20, seed=1),
    "penalties": lambda: ops.apply_penalties(LOGITS, TOKENS, repetition=2.0, presence=0.5),
    "alpha_dropout": lambda: ops.alpha_dropout(LOGITS, 0.3, True, seed=1),
    "dropout1d": lambda: ops.dropout1d(LOGITS[None], 0.3, True, seed=1),
    "blocks": lambda: ops.dequantize_blocks(*ops.quantize_blocks(LOGITS)),
    "adamw8bit": lambda: stepped("adamw8bit_step", *codes(True), *codes(False), step=3),
    "lion8bit": lambda: stepped("lion8bit_step", *codes(True)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_call(name: str, request: pytest.FixtureRequest) -> None:
    """As on the CPU, with the same seeds. Codes of 8 bits may be off by one."""
    expected = scheme.as_tuple(CALLS[name]())
    launched = request.getfixturevalue("launched")
    found = scheme.as_tuple(CALLS[name]())
    for one, wanted in zip(found, expected, strict=True):
        is_code = wanted.dtype in (torch.int8, torch.uint8)
        torch.testing.assert_close(
            one.double(), wanted.double(), rtol=1e-5, atol=1 if is_code else 1e-5
        )
    assert launched


@pytest.mark.parametrize("axes", [(2,), (1,), (0, 1)])
@pytest.mark.parametrize("tile", [64, 4096])
def test_statistics_of_lines(
    axes: Any, tile: int, launched: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of one tile and of several, with infinities and a NaN, against torch in float64."""
    monkeypatch.setattr(statistics, "_PART", 3)
    monkeypatch.setattr(statistics, "_TILE", 1024)
    for name in ("_ROWS", "_LONG_ROWS", "_COUNTED_ROWS", "GPU_COLUMNS"):
        choice = getattr(statistics, name)
        monkeypatch.setattr(statistics, name, choice._replace(tile=tile, block=8, warps=4))
    monkeypatch.setattr(softmaxes, "GPU_COLUMNS", statistics.GPU_COLUMNS)
    x = torch.randn(6, 12, 70, generator=torch.Generator().manual_seed(7)).mul(3).round()
    wide = x.double()
    found = statistics.moments(x, axes, 8.0)
    assert found is not None
    far = statistics.moments(x + 1e6, axes, 8.0)
    assert far is not None
    expected = wide.mean(axes)
    torch.testing.assert_close(found[1].double(), expected.flatten(), atol=1e-5, rtol=1e-5)
    squares = (wide - wide.mean(axes, keepdim=True)).square().sum(axes) / 8
    for given in (found, far):
        torch.testing.assert_close(given[0].double(), squares.flatten(), atol=1e-4, rtol=1e-5)
    for dtype in (torch.float32, torch.float16):
        norm = statistics.norm(x.to(dtype), ())
        wanted = wide.square().sum().sqrt()
        torch.testing.assert_close(
            norm.double(), wanted, atol=0, rtol=1e-3 if dtype.itemsize == 2 else 1e-6
        )
    grad = torch.randn(expected.shape)
    # Equal elements for amax, and none for amin.
    for value, given in (("amax", x), ("amin", x + torch.rand(x.shape))):
        leaf = given.clone().requires_grad_()
        top = getattr(torch, value)(leaf, axes)
        (wanted,) = torch.autograd.grad(top, leaf, grad)
        found = statistics.extremum(given, axes, expected.shape, value == "amax")
        assert torch.equal(found[0], top)
        torch.testing.assert_close(statistics.extremum_gradient(given, found, grad, axes), wanted)
    x[0, 0, :2], x[1, 1, 3], x[3] = float("-inf"), float("inf"), float("-inf")
    x[2, 2, 2], x[4] = float("nan"), -1000
    got = statistics.log_sum(x, axes, expected.shape)
    torch.testing.assert_close(
        got.double(), x.double().logsumexp(axes), atol=1e-5, rtol=1e-5, equal_nan=True
    )
    top = statistics.extremum(x, axes, expected.shape, False)
    torch.testing.assert_close(top[0], x.amin(axes), equal_nan=True)
    leaf = x.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(leaf.amin(axes), leaf, grad)
    got = statistics.extremum_gradient(x, top, grad, axes)
    torch.testing.assert_close(got, wanted, equal_nan=True)
    assert len(launched) == 13
    if len(axes) == 1:
        torch.testing.assert_close(
            ops.softmax(x, axes[0]), x.softmax(axes[0]), atol=1e-6, rtol=1e-5, equal_nan=True
        )


def test_the_gradient_of_logsumexp_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, as a known call and twice. Its function on a GPU is another one."""
    monkeypatch.setattr(reductions, "multiprocessors_of", lambda array: 1)
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    for _ in range(4):
        grads = [
            torch.autograd.grad(function(x, 1).square().sum(), x)[0]
            for function in (ops.logsumexp, torch.logsumexp)
        ]
        torch.testing.assert_close(*grads)
    assert torch.autograd.gradgradcheck(lambda x: ops.logsumexp(x, 0), x)
