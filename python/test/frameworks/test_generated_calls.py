# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of our operators in code that Inductor generates: they go around torch's dispatcher, and do what
eager code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._inductor.utils import run_and_get_code  # noqa: E402

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402
import tessera.torch  # noqa: E402
from tessera.errors import ArgumentError  # noqa: E402
from tessera.torch import elementwise, functions, generated_calls, graph_pass  # noqa: E402


@tessera.pointwise
def powered(x, factor, ADDED: tl.constexpr):
    return x * factor + ADDED


@tessera.pointwise
def sum_and_product(x, y):
    return x + y, x * y


@tessera.function("x[*n], y -> out[*n / BLOCK]")
@tessera.jit
def shifted(x, y, out, n, BLOCK: tl.constexpr = 256):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + y, mask=i < n)


@tessera.torch.op("test_generated::doubled")
def doubled(x: torch.Tensor) -> torch.Tensor:
    return shifted(x, 0.0) * 2.0


@tessera.torch.op("test_generated::fill", mutates_args=("x",))
def fill(x: torch.Tensor, value: float) -> None:
    x.fill_(value)


@tessera.torch.op("test_generated::listed")
def listed(xs: list[torch.Tensor], *, shift: int = 1) -> list[torch.Tensor]:
    return [x + shift for x in xs]


def compiled(program: Any, *args: Any, **options: Any) -> tuple[Any, str]:
    torch._dynamo.reset()
    found, texts = run_and_get_code(
        lambda: torch.compile(program, fullgraph=True, **options)(*args)
    )
    torch.testing.assert_close(found, program(*args))
    return found, "\n".join(texts)


def test_operators_are_called_without_the_dispatcher(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    # No operation needs a kernel of Inductor's, which takes seconds to compile.
    def program(x: Any, y: Any, target: Any, factor: float) -> Any:
        total, product = sum_and_product(x, y)  # an array without dimensions
        fill(target, factor)
        (last,) = listed([product], shift=x.shape[0])
        return powered(total, factor, ADDED=2), shifted(doubled(x), x.shape[0]), last

    target = torch.zeros(3)
    _, text = compiled(program, torch.randn(5, 6), torch.tensor(2.0), target, 0.3, dynamic=True)
    assert (target == 0.3).all()
    called = re.findall(r"^ +(?:\w+ = )?(torch\.ops\.te\w+|tessera_call_\w+)\(", text, re.MULTILINE)
    assert len(set(called)) == len(called) == 6 and not any("ops" in each for each in called), text
    assert re.search(r"tessera_call_\w+\(\w+, 0\.3, 2\)", text)  # by place, without lists and kinds


def test_what_has_to_be_seen_still_is() -> None:
    """A subclass that has dispatches of its own, a kernel of the user's, and code without a process that
    made the operator."""
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.randn(4)
    call = elementwise.ElementwiseCall("tessera::not_made", False)
    with pytest.raises(
        ArgumentError, match="operator tessera::not_made, which this process has not"
    ):
        call(x)
    with pytest.raises(ArgumentError, match="operator test_generated::none"):
        generated_calls.OperatorCall("test_generated::none")(x)
    with pytest.raises(ArgumentError, match="operator tessera::function_none"):
        functions.FunctionCall("tessera::function_none", ["x"])(x)
    doubled(x), doubled(x)
    call = generated_calls.OperatorCall("test_generated::doubled")
    assert type(call(x.as_subclass(Watched))) is Watched
    assert any("doubled" in each for each in seen), seen
    doubled.register_kernel("cpu")(lambda x: x * 3.0)
    assert torch.equal(call(x), x * 3.0)


def test_code_that_is_not_keyed_stays(monkeypatch: Any) -> None:
    from torch._inductor import config

    def program(x: Any) -> Any:
        return powered(x, 2.0, ADDED=1)

    with config.patch(post_grad_custom_post_pass=print):  # no uuid: so keys of caches do not tell
        _, text = compiled(program, torch.randn(3))
    assert "tessera_call" not in text and "torch.ops.tessera" in text
    # The key holds the text of everything that generated code needs.
    graph_pass.install()
    key = config.post_grad_custom_post_pass.uuid()
    monkeypatch.setattr(graph_pass, "_FILES", graph_pass._FILES[:-1])
    assert config.post_grad_custom_post_pass.uuid() != key
