# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose chains of elementwise operators are one kernel each (`@tessera.fuse`)."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402
from tessera import ops  # noqa: E402
from tessera.calls import fusion, pending  # noqa: E402
from tessera.runtime.hooks import hooks  # noqa: E402


@tessera.pointwise
def mul(x, y):
    return x * y


@tessera.pointwise
def sum_and_difference(x, y):
    return x + y, x - y


@tessera.pointwise
def is_less(x, y):
    return x < y


@tessera.pointwise
def clipped(x, low: tl.constexpr):
    return tl.maximum(x, low)


@tessera.fuse
def chain(x, y, factor=2.0):
    total, difference = sum_and_difference(mul(x, y), x)
    return ops.silu(total), {"scaled": [mul(difference, factor)]}


def by_torch(x: Any, y: Any, factor: float = 2.0) -> Any:
    total, difference = x * y + x, x * y - x
    return torch.nn.functional.silu(total), {"scaled": [difference * factor]}


def kernels_of(call: Callable[[], Any]) -> int:
    """How many kernels a call launches."""
    names: list[str] = []

    def note(metadata: Any) -> None:
        names.append(metadata.get()["name"])

    hooks.launch_enter.add(note)
    try:
        call()
    finally:
        hooks.launch_enter.remove(note)
    return len(names)


LIBRARIES = {"torch": lambda tensor: tensor, "numpy": lambda tensor: tensor.numpy()}


@pytest.mark.parametrize("library", LIBRARIES)
def test_chains_are_one_kernel(library: str) -> None:
    convert = LIBRARIES[library]
    for x, y in (
        (torch.randn(5, 7), torch.randn(7)),
        (torch.randn(7, 5).t(), torch.randn(5, 14)[:, ::2]),
        (torch.randn(5, 1), torch.randn(1, 7)),
        (torch.randn(0, 3), torch.randn(3)),
    ):
        expected, others = by_torch(x, y)
        for factor in (2.0, 2, 2.0):
            found, several = chain(convert(x), convert(y), factor=factor)
            torch.testing.assert_close(torch.as_tensor(found), expected)
            torch.testing.assert_close(torch.as_tensor(several["scaled"][0]), others["scaled"][0])
        assert type(found) is type(convert(x)) and pending.current() is None
        if found.shape[0]:
            assert kernels_of(lambda: chain(convert(x), convert(y))) == 1
    half = chain(convert(x.half()), convert(y.half()))[0]
    assert str(half.dtype).endswith("float16")


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_code_gets_arrays(library: str) -> None:
    module = torch if library == "torch" else np

    @tessera.fuse
    def mixed(x, y):  # type: ignore[no-untyped-def]
        product = mul(x, y)
        assert product.shape == x.shape and product.ndim == 2 and product.dtype == x.dtype
        by_method = product.sum()
        by_function = module.exp(mul(product, 2.0))
        by_operator = 1 - mul(x, x) + product[0] / 2
        reduced = ops.sum(mul(x, 3.0), 1) + ops.softmax(mul(x, 1.0), 1)[:, 0]
        chosen = mul(x, y) if (is_less(x, y) == is_less(y, x)).all() else mul(x, -1.0)
        constant = mul(clipped(x, 0), 2.0)
        return by_method, by_function, by_operator, reduced, chosen, constant, list(product)[0]

    x, y = torch.rand(3, 4), torch.rand(3, 4)
    expected = (
        (x * y).sum(),
        (2 * x * y).exp(),
        1 - x * x + (x * y)[0] / 2,
        3 * x.sum(1) + x.softmax(1)[:, 0],
        -x,
        2 * x.clamp(0),
        (x * y)[0],
    )
    convert = LIBRARIES[library]
    for found, wanted in zip(mixed(convert(x), convert(y)), expected):
        torch.testing.assert_close(torch.as_tensor(found), wanted)


@tessera.jit
def set_to_one(x, n, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("way", ["item", "operator", "method", "kernel", "out", "made here"])
def test_writes_come_after_what_was_recorded(library: str, way: str) -> None:
    @tessera.fuse
    def write(x):  # type: ignore[no-untyped-def]
        if way == "made here":
            x = mul(x, 1.0) + 0.0
        before = mul(x, 2.0)
        if way == "item":
            x[1:] = 5.0
        elif way in ("operator", "made here"):
            x += 1
        elif way == "method":
            x.fill_(3.0) if library == "torch" else x.fill(3.0)
        elif way == "kernel":
            set_to_one[(1,)](x, 4)
        else:
            mul(before, 4.0, out=x)
        return before, mul(x, 1.0)

    after = {"item": [1, 5, 5, 5], "method": [3] * 4, "kernel": [1] * 4, "out": [8, 16, 24, 32]}
    for _ in range(3):
        x = LIBRARIES[library](torch.arange(1.0, 5.0))
        before, found = write(x)
        assert before.tolist() == [2, 4, 6, 8]
        assert found.tolist() == after.get(way, [2, 3, 4, 5])


def test_a_write_by_another_name_is_an_error() -> None:
    other = torch.ones(4)

    @tessera.fuse
    def write(x):  # type: ignore[no-untyped-def]
        result = mul(x, other)
        other.add_(1)
        return result

    with pytest.raises(tessera.ArgumentError, match="E097.*shape .4,. was written"):
        write(torch.ones(4))
    assert mul(other, 2.0).tolist() == [4] * 4 and pending.current() is None


def test_derivatives() -> None:
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, y: chain(x, y)[0], (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: chain(x, y)[0], (x, y))

    @tessera.pointwise
    def signed(x):  # type: ignore[no-untyped-def]
        return x * 1.0

    @signed.backward
    def signed_backward(grad, x):  # type: ignore[no-untyped-def]
        return -grad

    @tessera.fuse
    def modes(x):  # type: ignore[no-untyped-def]
        with torch.no_grad():
            constant = mul(x, 3.0)
        return mul(constant, signed(mul(x, 1.0)))

    (found,) = torch.autograd.grad(modes(x).sum(), x)
    torch.testing.assert_close(found, -3 * x.detach())
    with torch.no_grad():
        assert not modes(x).requires_grad


def test_out_and_bounds() -> None:
    @tessera.fuse
    def into(x, out):  # type: ignore[no-untyped-def]
        return mul(mul(x, 2.0), 3.0, out=out)

    @tessera.fuse
    def long(x, arrays):  # type: ignore[no-untyped-def]
        for each in arrays:
            x = mul(x, each)
        for _ in range(100):
            x = mul(x, 1.01)
        return x

    x, out = torch.randn(6), torch.empty(12)[::2]
    assert into(x, out) is out and torch.equal(out, 6 * x)
    assert kernels_of(lambda: into(x, out)) == 1
    shared = torch.arange(8.0)
    assert torch.equal(into(shared[:-1], shared[1:]), 6 * torch.arange(7.0))
    arrays = [torch.rand(6) + 0.5 for _ in range(30)]
    expected = x * torch.stack(arrays).prod(0) * 1.01**100
    torch.testing.assert_close(long(x, arrays), expected)
    assert kernels_of(lambda: long(x, arrays)) < 10
    with pytest.raises(tessera.ArgumentError, match="E089"):
        chain(torch.ones(3), torch.ones(4))
    with pytest.raises(tessera.CompilationError, match="E089.*put on an int"):
        tessera.fuse(3)


def test_numbers_of_nested_calls() -> None:
    """The number of an outer call stands before those of the calls among its arguments."""

    @tessera.fuse
    def program(x: Any, first: float, second: float) -> Any:
        total, difference = sum_and_difference(first, mul(mul(x, second), x))
        return difference, sum_and_difference(3.0, total)[1]

    x = torch.arange(4.0)
    for first, second in ((5.0, 2.0), (2.0, 5.0)):
        found = program(x, first, second)
        inner = x * second * x
        assert torch.equal(found[0], first - inner) and torch.equal(found[1], 3.0 - (first + inner))


def test_values_that_nothing_refers_to_are_not_stored() -> None:
    computed = []
    compute = fusion.Graph._compute

    def note(self: Any, values: Any, out: Any) -> None:
        computed.append(len(values))
        compute(self, values, out)

    fusion.Graph._compute = note  # type: ignore[method-assign]
    try:
        kept: list[Any] = []

        @tessera.fuse
        def leaks(x):  # type: ignore[no-untyped-def]
            kept.append(mul(x, 2.0))
            return mul(mul(x, 3.0), 4.0)

        result = leaks(torch.ones(3))
        assert computed == [2] and result.tolist() == [12] * 3
        assert kept[0].tolist() == [2] * 3 and torch.equal(kept[0] + 1, torch.full((3,), 3.0))
    finally:
        fusion.Graph._compute = compute  # type: ignore[method-assign]
    x = torch.ones(3)
    reference = weakref.ref(x)
    chain(x, x)
    del x
    gc.collect()
    assert reference() is None


def test_other_arrays_subclasses_and_tracers() -> None:
    class Wrapped(torch.Tensor):
        pass

    x, y = torch.rand(4), torch.rand(4)
    expected = by_torch(x, y)[0]
    torch.testing.assert_close(chain(x.as_subclass(Wrapped), y)[0].as_subclass(torch.Tensor), expected)  # fmt: skip
    assert chain(torch.arange(3), torch.arange(3))[0].dtype == torch.float32
    torch.testing.assert_close(torch.func.vmap(chain)(x[None], y[None])[0][0], expected)
    compiled = torch.compile(lambda x, y: chain(x, y)[0], fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, y), expected)
    assert pickle.loads(pickle.dumps(chain)) is chain

    class Model:
        @tessera.fuse
        def run(self, x):  # type: ignore[no-untyped-def]
            return mul(mul(x, 2.0), 2.0)

    assert torch.equal(Model().run(x), 4 * x)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for size in range(1, 20):
            value = torch.full((size,), float(seed))
            if not torch.allclose(chain(value, value)[0], by_torch(value, value)[0]):
                wrong.append(size)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong

    @tessera.fuse
    def fails(x):  # type: ignore[no-untyped-def]
        mul(x, 2.0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails(x)
    assert pending.current() is None and torch.equal(mul(x, 2.0), 2 * x)


@tessera.function("x[*n], y -> out[*n / BLOCK]")
@tessera.jit
def shifted(x, y, out, n, BLOCK: tl.constexpr = 256):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + y, mask=i < n)


def test_values_that_are_kept_beyond_the_function_are_arrays_to_operators() -> None:
    kept: list[Any] = []

    @tessera.fuse
    def program(x):
        kept.extend((mul(x, x), x))
        return ops.silu(kept[0])

    for x in (torch.randn(4, 5), np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)):
        kept.clear()
        program(x)
        for value, array in zip(kept, (x * x, x)):
            assert type(value) is pending.Pending
            for operator in (
                lambda each: mul(each, 2.0),
                lambda each: ops.softmax(each, 1),
                lambda each: ops.softmax(input=each, dim=1),
                lambda each: ops.sum(each),
                lambda each: shifted(each, 1.0),
                lambda each: chain(each, x)[0],
            ):
                found, expected = operator(value), operator(array)
                assert type(found) is type(expected)
                np.testing.assert_allclose(found, expected, rtol=1e-6)
