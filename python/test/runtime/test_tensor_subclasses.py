# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Subclasses of torch.Tensor as arguments: warm, those that answer for themselves, too."""

from __future__ import annotations

from typing import Any

import pytest

import tessera
import tessera.language as tl
from tessera.runtime.jit import JITFunction

torch = pytest.importorskip("torch")


@tessera.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


class Named(torch.Tensor):
    """A tensor with methods of its own."""

    def describe(self) -> str:
        return f"{tuple(self.shape)} numbers"


class Elsewhere(torch.Tensor):
    """A tensor that says that its elements are those of another one."""

    other: Any = None

    def data_ptr(self) -> int:
        return self.other.data_ptr() if self.other is not None else super().data_ptr()


class Counting(torch.Tensor):
    """A tensor that sees each call of one of torch's functions."""

    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Counting.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def launch(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(16)
    double[(1,)](x, out, 16, BLOCK=16)
    return out


@pytest.fixture
def whole_launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches that take the whole way."""
    launch(torch.ones(16))
    calls: list[Any] = []
    run = JITFunction._run
    monkeypatch.setattr(
        JITFunction, "_run", lambda *args, **more: calls.append(args) or run(*args, **more)
    )
    return calls


def test_launches_are_warm(whole_launches) -> None:
    x = torch.arange(16.0)
    tensor = x.as_subclass(Named)
    for _ in range(5):
        torch.testing.assert_close(launch(tensor), 2 * x)
    assert len(whole_launches) <= 2  # one learns the class, one perhaps the specialisation
    torch.testing.assert_close(launch((x + 1).as_subclass(Named)), 2 * (x + 1))


def test_a_class_with_another_address(whole_launches) -> None:
    x = torch.arange(16.0)
    tensor = torch.zeros(16).as_subclass(Elsewhere)
    tensor.other = x
    for k in range(5):
        tensor.other = x + k
        torch.testing.assert_close(launch(tensor), 2 * (x + k))
    assert len(whole_launches) <= 2


def test_a_class_that_sees_calls(whole_launches) -> None:
    x = torch.arange(16.0)
    tensor = x.as_subclass(Counting)
    for _ in range(5):
        before = Counting.calls
        torch.testing.assert_close(launch(tensor), 2 * x)
        assert Counting.calls > before
    assert len(whole_launches) <= 2
    with pytest.raises(tessera.ArgumentError, match="meta tensor"):
        launch(torch.ones(16, device="meta").as_subclass(Counting))
