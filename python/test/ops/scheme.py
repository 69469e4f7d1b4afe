# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How all operators of tessera.ops are tested: a table of cases, each with a reference in float64.

A case makes arguments of some shapes. The scheme chooses the type of their elements, how they lie in
memory and the library, and compares results, and gradients for torch, with those of the reference on
the same values. By default each case runs with a few combinations, chosen by a seed that is printed
(TESSERA_OPS_SEED sets it); `--every-combination` runs all.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

SEED = int(os.environ.get("TESSERA_OPS_SEED", "20261129"))

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int32, torch.int64, torch.int8, torch.uint8)

# These are for results of about 1 in size. 16-bit results are rounded once.
TOLERANCES = {torch.float64: 1e-10, torch.float32: 3e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}

LAYOUTS = ("dense", "transposed", "gaps", "reversed dimensions")


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of an operator."""

    name: str
    op: Callable[..., Any]
    make: Callable[["Maker"], Sequence[Any]]
    """The arguments. Floats that Maker made have gradients."""
    reference: Callable[..., Any]
    """Of the same arguments, in float64, with torch."""
    dtypes: Sequence[torch.dtype] = FLOATS
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Arguments by name, for the operator and the reference."""
    libraries: Sequence[str] = ("torch", "numpy")
    has_gradient: bool = True
    tolerance: float = 1.0
    """How many times the usual tolerance."""


class Maker:
    """Makes arrays of one type, in one layout, of random values that are the same for each library."""

    def __init__(self, dtype: torch.dtype, layout: str, number: int) -> None:
        self.dtype, self.layout = dtype, layout
        self._generator = torch.Generator().manual_seed(SEED + number)

    def array(self, *shape: int, low: float = -3.0, high: float = 3.0) -> torch.Tensor:
        """Numbers from low to high."""
        if not self.dtype.is_floating_point:
            low = max(low, 0.0) if self.dtype == torch.uint8 else low
            values = torch.randint(int(low), int(high) + 1, shape, generator=self._generator)
        else:
            values = torch.rand(shape, generator=self._generator, dtype=torch.float64)
            values = low + (high - low) * values
        return placed(values.to(self.dtype), self.layout)

    def distinct(self, *shape: int) -> torch.Tensor:
        """Numbers of which no two are equal, also in 16 bits."""
        count = int(np.prod(shape))
        order = torch.randperm(count, generator=self._generator)
        return placed(((order - count // 2) / 8).reshape(shape).to(self.dtype), self.layout)

    def indices(self, limit: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Integers from 0 to limit - 1."""
        return torch.randint(limit, shape, generator=self._generator).to(dtype)

    def bools(self, *shape: int) -> torch.Tensor:
        return torch.randint(2, shape, generator=self._generator).bool()


def placed(values: torch.Tensor, layout: str) -> torch.Tensor:
    """The same elements, elsewhere in memory."""
    if layout == "dense" or values.ndim == 0:
        return values
    if layout == "gaps":
        wide = values.new_zeros((*values.shape[:-1], 2 * values.shape[-1] + 1))
        wide[..., 1::2] = values
        return wide[..., 1::2]
    order = (values.ndim - 1, *range(values.ndim - 1))
    if layout == "reversed dimensions":
        order = tuple(reversed(range(values.ndim)))
    back = tuple(order.index(at) for at in range(values.ndim))
    return values.permute(order).contiguous().permute(back)


def combinations(case: Case, number: int, is_all: bool) -> list[tuple[str, torch.dtype, str]]:
    """The libraries, types and layouts that a case runs with."""
    every = list(itertools.product(case.libraries, case.dtypes, LAYOUTS))
    if is_all:
        return every
    chosen = random.Random(SEED + number)
    found = []
    others = [each for each in case.libraries if each != "torch"]
    libraries = [each for each in case.libraries if each == "torch"]
    for library in libraries + (chosen.choices(others) if others else []):
        rows = [row for row in every if row[0] == library]
        # 16-bit floats, or small integers, take turns with the others.
        is_narrow = len(case.dtypes) > 2 and (library == "torch") == bool(number % 2)
        fitting = [row for row in rows if (row[1] not in case.dtypes[:2]) == is_narrow]
        found.append(chosen.choice(fitting))
    return found


def parametrize(metafunc: pytest.Metafunc, names: Sequence[str], step: int) -> None:
    """Has tests with the parameter `number` run for each `step`-th name; for all with
    `--every-combination`."""
    if "number" not in metafunc.fixturenames:
        return
    is_all = metafunc.config.getoption("--every-combination")
    numbers = range(0 if is_all else SEED % step, len(names), 1 if is_all else step)
    ids = [names[number].replace(" ", "-") for number in numbers]
    metafunc.parametrize("number", numbers, ids=ids)


def check(case: Case, library: str, dtype: torch.dtype, layout: str, number: int) -> None:
    """Compares a call with the reference. Raises AssertionError."""
    args = list(case.make(Maker(dtype, layout, number)))
    wide = [
        each.double().detach().requires_grad_(library == "torch" and case.has_gradient)
        if is_float(each) else each
        for each in args
    ]  # fmt: skip
    expected = as_tuple(case.reference(*wide, **case.settings))
    if library != "torch":
        settings = {key: _in(library, each) for key, each in case.settings.items()}
        got = as_tuple(case.op(*[_in(library, each) for each in args], **settings))
        for one, wanted in zip(got, expected, strict=True):
            close(_back(one), wanted, dtype, case)
        return
    leaves = [
        each.detach().requires_grad_(case.has_gradient) if is_float(each) else each for each in args
    ]
    got = as_tuple(case.op(*leaves, **case.settings))
    for one, wanted in zip(got, expected, strict=True):
        close(one, wanted, dtype, case)
    if case.has_gradient:
        check_gradients(case, leaves, wide, got, expected, dtype, layout)


def check_gradients(
    case: Case, leaves: Any, wide: Any, got: Any, expected: Any, dtype: torch.dtype, layout: str
) -> None:
    maker = Maker(dtype, layout, 0)
    pairs = [(a, b) for a, b in zip(got, expected) if a.is_floating_point() and b.requires_grad]
    weights = [maker.array(*a.shape, low=0.0, high=2.0).to(a.dtype) for a, _ in pairs]
    ours = [each for each in leaves if is_float(each)]
    theirs = [each for each in wide if is_float(each)]
    found = torch.autograd.grad([a for a, _ in pairs], ours, weights, allow_unused=True)
    wanted = torch.autograd.grad(
        [b for _, b in pairs], theirs, [each.double() for each in weights], allow_unused=True
    )
    for leaf, a, b in zip(ours, found, wanted, strict=True):
        if b is None:
            assert a is None or not a.abs().max()
            continue
        assert a is not None and a.shape == leaf.shape and a.dtype == leaf.dtype
        close(a, b, dtype, case)


def close(got: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype, case: Case) -> None:
    got, wanted = got.detach(), wanted.detach()
    assert got.shape == wanted.shape, f"{tuple(got.shape)} where {tuple(wanted.shape)} is expected"
    if not wanted.is_floating_point() or not got.is_floating_point():
        assert torch.equal(got.double(), wanted.double()), f"{got} where {wanted} is expected"
        return
    scale = wanted.abs()[wanted.isfinite()].max().item() if wanted.isfinite().any() else 1.0
    tolerance = TOLERANCES.get(dtype, 3e-5) * case.tolerance
    torch.testing.assert_close(
        got.double(), wanted, rtol=tolerance, atol=tolerance * max(1.0, scale), equal_nan=True
    )


def is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _in(library: str, value: Any) -> Any:
    """A tensor as an array of another library, with the same strides in NumPy."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype == torch.bfloat16:
        import ml_dtypes

        made = value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    else:
        made = value.detach().numpy()
    if library == "jax":
        jax = pytest.importorskip("jax")
        return jax.numpy.asarray(made)
    return made


def _back(value: Any) -> torch.Tensor:
    found = np.asarray(value)
    if found.dtype.kind == "V" or found.dtype.name in ("bfloat16",):
        found = found.astype(np.float32)
    return torch.from_numpy(np.array(found))
