# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that reduce a function of elements (tessera.reduction)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.calls import reductions


@tessera.reduction("sum")
def dot(x, y):
    return x * y


@tessera.reduction("mean")
def mean_square(x):
    return x * x


def itself(x):
    return x


KINDS = ("sum", "mean", "prod", "max", "min", "any", "all")
PLAIN = {kind: tessera.reduction(kind)(itself) for kind in KINDS}


def values(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.asarray(np.random.default_rng(len(shape)).standard_normal(shape) * 2).astype(dtype)


AXES = (None, 0, 1, -1, (0, 2), (2, 1), ())


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_axes_and_strides(axis: Any) -> None:
    x = values(5, 7, 33)
    for view in (x, x.transpose(2, 0, 1), x[:, ::2, ::3], np.broadcast_to(x[:, :1], x.shape)):
        got = mean_square(view, axis=axis)
        expected = np.mean(view.astype(np.float64) ** 2, axis=axis)
        assert got.dtype == np.float32 and got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-5)
        kept = mean_square(view, axis=axis, keepdims=True)
        np.testing.assert_array_equal(kept.reshape(got.shape), got)
        assert kept.ndim == 3


@pytest.mark.parametrize("seed", range(5))
def test_lines_of_random_layouts(seed: int) -> None:
    """Tiles are of lines of the last dimension, or of elements of all dimensions."""
    chance = np.random.default_rng(seed)
    shape = tuple(int(size) for size in chance.choice([1, 3, 16, 21, 40], 4))
    x = values(*shape)
    step = tuple(slice(None, None, int(each)) for each in chance.choice([1, 1, 2, -1], 4))
    x = np.ascontiguousarray(x.transpose(chance.permutation(4)))[step]
    narrow = tuple(int(size) if chance.random() < 0.6 else 1 for size in x.shape)
    y = values(*narrow)[int(chance.integers(2)) - 1 :] if narrow[0] == 1 else values(*narrow)
    for axis in ((0, 2), (1, 3), (0, 1, 3), 2, (2, 3), None, (0, 3)):
        expected = (x.astype(np.float64) * y).sum(axis)
        np.testing.assert_allclose(dot(x, y, axis=axis), expected, rtol=1e-4, atol=1e-3)
        largest = PLAIN["max"](x, axis=axis)
        np.testing.assert_array_equal(largest, x.max(axis))
    few = np.broadcast_to(values(80, 1, 33), (80, 40, 33))  # several programs for few sums
    np.testing.assert_allclose(PLAIN["sum"](few), few.sum(dtype=float), rtol=1e-4, atol=0.1)
    rows = values(300, 700)[:, :600]
    np.testing.assert_allclose(PLAIN["sum"](rows), rows.sum(dtype=float), rtol=1e-4, atol=0.1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool"])
def test_kinds(kind: str, dtype: str) -> None:
    x = values(6, 40, dtype=dtype)
    if kind == "prod":
        x = x[:, :6]
    for axis in (0, 1):
        expected = getattr(np, kind)(x, axis=axis)
        got = PLAIN[kind](x, axis=axis)
        assert got.dtype == expected.dtype
        tolerance = 2e-2 if dtype == "float16" else 1e-5
        np.testing.assert_allclose(
            got.astype(float), expected.astype(float), rtol=tolerance, atol=tolerance
        )


def test_few_that_stay() -> None:
    """Several programs divide a long sum, in the same order each time."""
    x = values(3, 200_003)
    for axis in (None, 1):
        expected = np.sum(x.astype(np.float64), axis=axis)
        np.testing.assert_allclose(PLAIN["sum"](x, axis=axis), expected, rtol=1e-4)
        np.testing.assert_array_equal(PLAIN["sum"](x, axis=axis), PLAIN["sum"](x, axis=axis))
    np.testing.assert_allclose(
        mean_square(x.T, axis=0), np.mean(x.astype(float) ** 2, 1), rtol=1e-5
    )
    assert PLAIN["max"](x) == x.max() and PLAIN["any"](x > 100) == (x > 100).any()
    assert PLAIN["min"](x.astype(np.int8)) == x.astype(np.int8).min()


def test_arguments() -> None:
    x, y = values(4, 5), values(5, dtype=np.float64)
    np.testing.assert_allclose(dot(x, y, axis=1), x @ y, rtol=1e-6)
    np.testing.assert_allclose(
        dot(x[:, None], y[:, None], axis=(0, 2)), (x[:, None] * y[:, None]).sum((0, 2))
    )
    np.testing.assert_allclose(dot(x, 2.5), x.sum() * 2.5, rtol=1e-5)
    assert dot(np.float32(3) * np.ones(()), 2) == 6


def test_no_elements() -> None:
    x = np.zeros((3, 0), np.float32)
    assert dot(x, x) == 0 and PLAIN["prod"](x) == 1 and PLAIN["all"](x) and not PLAIN["any"](x)
    assert np.isnan(mean_square(x)) and dot(x, x, axis=0).shape == (0,)
    assert dot(x, x, axis=1).tolist() == [0, 0, 0]
    with pytest.raises(tessera.ArgumentError, match="E089.*max of no elements"):
        PLAIN["max"](x)


def test_nan() -> None:
    x = values(4, 50)
    x[2, 30] = np.nan
    for kind in ("max", "min", "sum"):
        np.testing.assert_allclose(
            PLAIN[kind](x, axis=1), getattr(np, kind)(x, axis=1), rtol=1e-4, atol=1e-5
        )


def test_errors() -> None:
    x = np.ones((2, 3))
    for axis in (2, -3, "x", 1.0, (0, 0)):
        with pytest.raises(tessera.ArgumentError, match="E089.*`dot` got axis="):
            dot(x, x, axis=axis)
    with pytest.raises(tessera.ArgumentError, match="E089.*`y` of shape .* does not fit"):
        dot(x, np.ones(4))
    with pytest.raises(tessera.ArgumentError, match="(?s)E051.*`dot` takes 2 .*axis=..."):
        dot(x, x, 1)
    with pytest.raises(tessera.CompilationError, match="(?s)E089.*'total'.*sum"):
        tessera.reduction("total")

    @tessera.reduction("sum")
    def two(x):
        return x, x

    with pytest.raises(tessera.CompilationError, match="E089.*`two` returns 2 values"):
        two(x)


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(jax.jit(lambda x: dot(x, x, axis=0))(x), (x * x).sum(0))
    assert PLAIN["sum"](jax.numpy.arange(5)).dtype == jax.numpy.arange(5).sum().dtype


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    y = torch.randn(6, dtype=torch.float64, requires_grad=True)
    check = torch.autograd.gradcheck
    for axis in (None, 0, -1, (0, 1)):
        assert check(lambda x: PLAIN["sum"](x, axis=axis), (x,))
        torch.testing.assert_close(dot(x, y, axis=axis), (x * y).sum(axis))
        assert check(lambda x, y: dot(x, y, axis=axis), (x, y))
        assert check(lambda x: mean_square(x, axis=axis, keepdims=True), (x,))
    assert check(lambda x: PLAIN["max"](x, axis=1), (x,))
    assert torch.autograd.gradgradcheck(lambda x: mean_square(x, axis=0), (x,))
    for kind, axis in (("sum", 0), ("prod", (1, 0)), ("max", (0, 1)), ("all", 0), ("mean", ())):
        value = x.detach() if kind != "all" else x.detach() > -1
        for transformed in (
            torch.compile(lambda x: PLAIN[kind](x, axis=axis), fullgraph=True, backend="eager"),
            lambda x: torch.func.vmap(lambda x: PLAIN[kind](x, axis=axis))(x[None])[0],
        ):
            torch.testing.assert_close(transformed(value), PLAIN[kind](value, axis=axis))
    half = torch.randn(100, dtype=torch.bfloat16)
    torch.testing.assert_close(PLAIN["sum"](half), half.sum())
    assert PLAIN["sum"](torch.ones(3, dtype=torch.int8)).dtype == torch.int64
    with pytest.raises(tessera.ArgumentError, match="E089.*torch has no mean"):
        PLAIN["mean"](torch.ones(3, dtype=torch.int32))


@pytest.mark.parametrize("kind", ("sum", "max", "min"))
def test_threads_divide_columns(kind: str) -> None:
    """Few columns of many rows, which are too few programs for all threads of a CPU."""
    x = values(6000, 60)
    with tessera.settings.override(num_threads=3):
        np.testing.assert_allclose(
            PLAIN[kind](x, axis=0), getattr(np, kind)(x.astype(np.float64), axis=0), rtol=1e-4
        )
        x[4999, 7] = np.nan
        assert np.isnan(PLAIN[kind](x, axis=0)).nonzero()[0].tolist() == [7]


@pytest.mark.parametrize("count", (1, 511, 512, 513, 1024, 1500, 9000))
def test_a_nan_at_any_place(count: int) -> None:
    for place in {0, count // 2, count - 1}:
        x = values(3, count)
        x[1, place] = np.nan
        for kind in ("max", "min", "sum"):
            got = PLAIN[kind](x, axis=1)
            assert np.isnan(got).tolist() == [False, True, False]
            expected = getattr(np, kind)(x[::2].astype(np.float64), axis=1)
            np.testing.assert_allclose(got[::2], expected, rtol=1e-4, atol=1e-4)


def test_the_gradient_of_a_sum_is_a_view() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(PLAIN["sum"](x, axis=1), x, torch.arange(5.0).double())
    assert grad.stride() == (1, 0) and grad[:, 3].tolist() == [0, 1, 2, 3, 4]
    (grad,) = torch.autograd.grad(PLAIN["mean"](x), x)
    torch.testing.assert_close(grad, torch.full_like(x, 1 / 35))


@pytest.mark.parametrize("shape, axis, parts", [((1 << 24,), 0, 1024), ((1 << 15,), 0, 16), ((4096, 4096), 0, 64),
                                                ((4096, 4096), 1, 1), ((1 << 13,), 0, 1)])  # fmt: skip
def test_programs_that_divide_a_reduction_on_a_gpu(shape: Any, axis: int, parts: int) -> None:
    """So many are there that all SMs are busy. Tensors on `meta` are not on a CPU."""
    torch = pytest.importorskip("torch")
    found: list[int] = []

    class Plan(reductions._Plan):
        def _launch(self, parts: int, out: Any, factor: float) -> Any:
            found.append(parts)
            return None

    Plan(PLAIN["sum"], "torch", (torch.empty(shape, device="meta"),), axis, False).step()
    assert found[0] == parts


@pytest.mark.parametrize("axis, grids", [(1, [4096]), (0, [512, 128])])
def test_a_gpu_loads_vectors_of_each_line(
    monkeypatch: pytest.MonkeyPatch, axis: int, grids: list[int]
) -> None:
    """Strides are known to be aligned, and the results of programs are summed by many programs."""
    torch = pytest.importorskip("torch")
    found: list[Any] = []

    class Seen:
        def __init__(self, kernel: Any) -> None:
            self.kernel = kernel

        def __getitem__(self, grid: Any) -> Any:
            def launch(*args: Any) -> None:
                mocks = [
                    tessera.MockTensor(tl.float32, each.shape) if torch.is_tensor(each) else each
                    for each in args
                ]
                found.append((grid[0], self.kernel.warmup(*mocks, target="sm_90").asm["ptx"]))

            return launch

    class Plan(reductions._Plan):
        is_on_gpu = property(lambda self: True, lambda self, value: None)

    make = reductions.Reduction.kernel
    monkeypatch.setattr(reductions.Reduction, "kernel", lambda *args: Seen(make(*args)))
    monkeypatch.setattr(reductions, "_Plan", Plan)
    x = torch.empty((4096, 4096), device="meta")
    Plan(PLAIN["sum"], "torch", (x,), axis, False).step()((x,))
    assert [grid for grid, _ in found] == grids
    assert all("ld.global.v4" in ptx for _, ptx in found)
