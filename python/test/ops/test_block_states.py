# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States in 8 bits: their format against NumPy, steps against those on decoded states, and training."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
import tessera.nn as nn  # noqa: E402
from tessera import ops  # noqa: E402

from . import scheme  # noqa: E402


def encoded(x: np.ndarray[Any, Any], signed: bool) -> tuple[Any, Any, Any]:
    """The format, by definition: codes, scales, and elements."""
    blocks = np.pad(x.reshape(-1).astype(np.float64), (0, -x.size % 256)).reshape(-1, 256)
    scales = abs(blocks).max(1, keepdims=True)
    shares = abs(blocks) / np.where(scales, scales, 1)
    most, power = (127, 3) if signed else (255, 4)
    codes = np.rint(shares ** (1 / power) * most)
    codes = np.where((shares > 0) & (not signed), np.maximum(codes, 1), codes)
    codes *= np.sign(blocks) if signed else 1
    values = scales * np.sign(codes) * (abs(codes) / most) ** power
    return (
        each.reshape(-1)[: x.size].reshape(x.shape)
        for each in (codes, scales.repeat(256, 1), values)
    )


@pytest.mark.parametrize("signed", [True, False])
def test_format(signed: bool) -> None:
    rng = np.random.default_rng(scheme.SEED)
    # From 1e-12 of the scale up to the scale, with zeros, and a block of zeros.
    x = (rng.standard_normal((3, 517)) * 10 ** rng.uniform(-12, 0, (3, 517))).astype(np.float32)
    x[0, :300], x[1, ::7] = 0, 0
    x[:, -1] = 3
    codes, scales, values = encoded(x, signed)
    for library, made in (
        ("torch", torch.from_numpy(x).t().contiguous().t()),
        ("numpy", x),
        ("jax", x),
    ):
        if library == "jax":
            made = pytest.importorskip("jax").numpy.asarray(x)
        got, got_scales = ops.quantize_blocks(made, signed)
        assert str(got.dtype).endswith("int8" if signed else "uint8") and tuple(
            got_scales.shape
        ) == (7,)
        # A root at the middle of two codes may be rounded either way.
        off = abs(np.asarray(got).astype(int) - codes)
        assert off.max() <= 1 and (off > 0).mean() < 0.01
        back = np.asarray(ops.dequantize_blocks(got, got_scales))
        np.testing.assert_allclose(back[off == 0], values[off == 0], rtol=1e-5)
    again, _ = ops.quantize_blocks(torch.from_numpy(values), signed)
    assert (again.numpy() == codes).all()
    spoilt = torch.zeros(600)
    spoilt[300] = float("nan")
    back = ops.dequantize_blocks(*ops.quantize_blocks(spoilt, signed))
    assert back[256:512].isnan().all() and not back[:256].any() and not back[512:].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps(dtype: torch.dtype) -> None:
    """A step is that on decoded states, and the new states are encoded."""
    generator = torch.Generator().manual_seed(3)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    param, grad = random(30, 41).to(dtype).t(), random(41, 30).to(dtype)
    m, m_scale = ops.quantize_blocks(random(41, 30))
    v, v_scale = ops.quantize_blocks(random(41, 30) ** 2, signed=False)
    settings: dict[str, Any] = {"lr": 0.1, "weight_decay": 0.1, "maximize": True}
    for name, states in (("adamw", (m, m_scale, v, v_scale)), ("lion", (m, m_scale))):
        expected = [ops.dequantize_blocks(*states[at : at + 2]) for at in range(0, len(states), 2)]
        ours, theirs = param.clone(), param.clone()
        mine = [each.clone() for each in states]
        extra = {"step": 5} if name == "adamw" else {}
        getattr(ops, f"{name}8bit_step")(
            [ours], [grad], *([each] for each in mine), **settings, **extra
        )
        getattr(ops, f"{name}_step")(theirs, grad, *expected, **settings, **extra)
        tolerance = scheme.TOLERANCES[dtype]
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
        for at, wanted in enumerate(expected):
            codes, scales = ops.quantize_blocks(wanted, signed=not at)
            torch.testing.assert_close(mine[2 * at + 1], scales)
            off = (mine[2 * at].int() - codes.int()).abs()
            assert off.max() <= 1 and (off > 0).float().mean() < 0.01


@pytest.mark.parametrize("name", ["AdamW", "Lion"])
def test_training(name: str) -> None:
    """Least squares come down as with states in float32, also through a state dict."""
    generator = torch.Generator().manual_seed(4)
    inputs, wanted = torch.randn(100, 40, generator=generator), torch.randn(
        40, 30, generator=generator
    )
    losses = {}
    for suffix, settings in (("", {}), ("8bit", {"min_8bit_size": 1000})):
        weight = torch.zeros(40, 30, requires_grad=True)
        bias = torch.zeros(30, requires_grad=True)

        def make() -> Any:
            return getattr(nn, name + suffix)([weight, bias], lr=0.05, weight_decay=0.0, **settings)

        optimizer = make()
        for at in range(25):
            optimizer.zero_grad()
            loss = ((inputs @ (weight - wanted) + bias) ** 2).mean()
            loss.backward()
            optimizer.step()
            if at == 12:
                saved = copy.deepcopy(optimizer.state_dict())
                optimizer = make()
                optimizer.load_state_dict(saved)
                for key, value in optimizer.state[weight].items():
                    assert value.dtype == saved["state"][0][key].dtype
        losses[suffix] = loss.item()
    assert optimizer.state[weight]["exp_avg"].dtype == torch.int8
    assert optimizer.state[bias]["exp_avg"].dtype == torch.float32
    assert losses[""] < 20 and abs(losses["8bit"] / losses[""] - 1) < 0.05, losses


def test_arguments_that_are_refused() -> None:
    x, codes, scales = np.ones(300), np.zeros(300, np.int8), np.zeros(2, np.float32)
    for call in (
        lambda: ops.quantize_blocks(codes),
        lambda: ops.dequantize_blocks(codes, scales[:1]),
        lambda: ops.dequantize_blocks(x, scales),
        lambda: ops.dequantize_blocks(codes, scales, np.int32),
        lambda: ops.lion8bit_step(x, x[:2], codes, scales),
        lambda: ops.lion8bit_step(x, x, codes.view(np.uint8), scales),
        lambda: ops.lion8bit_step(x, x, np.zeros(600, np.int8)[::2], scales),
        lambda: ops.lion8bit_step([x], [x, x], codes, scales),
        lambda: ops.adamw8bit_step(x, x, codes, scales, codes.view(np.uint8), scales, step=0),
        lambda: ops.adamw8bit_step(x, x, codes, scales, codes, scales, step=1),
        lambda: ops.adafactor_step(x, x, None, None, None, step=1),
        lambda: ops.adafactor_step(x, x, None, None, np.ones(2), step=1),
        lambda: ops.adafactor_step(x, x, None, None, x, step=0),
        lambda: ops.adafactor_step([x, x], [x, x], None, None, [x], step=1),
        lambda: ops.adafactor_step(x, x, None, None, x, step=1, d=0.5),
        lambda: nn.Adafactor([torch.ones(3)], eps=(-1.0, 1e-3)),
        lambda: nn.AdamW8bit([torch.ones(3)], lr=-1.0),
    ):
        with pytest.raises(tessera.ArgumentError) as caught:
            call()
        assert caught.value.id == "E093" and caught.value.fix
