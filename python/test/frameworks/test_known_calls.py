# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of operators that run without Python (python/src/calls): they are compared with the same
calls by Python, and calls that something in torch has to see are left to Python."""

from __future__ import annotations

import contextlib
import gc
import random
import threading
import weakref
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402
from tessera.calls import function, pointwise  # noqa: E402
from tessera.torch.direct_nodes import DirectNode, direct_apply  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


@tessera.pointwise
def scaled_sum(x, y, factor):
    return x * factor + y


@tessera.pointwise
def product(x, y):
    return x * y


@tessera.pointwise
def sum_and_product(x, y):
    return x + y, x * y


@tessera.pointwise
def root(x):
    return tl.sqrt(x)


@tessera.pointwise
def sum_and_sign(x, y):
    return x + y, x > y


@tessera.reduction("sum")
def dot(x, y):
    return x * y


@tessera.reduction("max")
def largest_root(x):
    return tl.sqrt(x)


class PythonRan(Exception):
    pass


@contextlib.contextmanager
def python_refused() -> Iterator[None]:
    """A block in which every call that Python does raises PythonRan."""

    def refuse() -> bool:
        raise PythonRan

    modules = (pointwise, function)
    was = [each.is_tracing for each in modules]
    for each in modules:
        each.is_tracing = refuse
    try:
        yield
    finally:
        for each, tracing in zip(modules, was):
            each.is_tracing = tracing


def by_python(op: Any, *args: Any, **options: Any) -> Any:
    return type(op).__call__(op, *args, **options)


def facts(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(facts, value))
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.shape, value.strides
    return (
        *(type(value), value.dtype, value.shape, value.stride(), value.device),
        *(value.requires_grad, value.is_inference(), value.grad_fn is None),
    )


def assert_same(found: Any, expected: Any) -> None:
    assert facts(found) == facts(expected)
    for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (found, expected))):  # fmt: skip
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
        else:
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def random_layout(chance: random.Random, tensor: Any) -> Any:
    """The tensor's elements with other strides."""
    kind = chance.randrange(5)
    if kind == 0 and tensor.ndim > 1:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if kind == 1 and tensor.ndim:
        return torch.repeat_interleave(tensor, 2, -1)[..., ::2]
    if kind == 2 and tensor.ndim:
        return torch.cat([tensor, tensor])[: tensor.shape[0]]
    if kind == 3 and tensor.ndim:
        return tensor[:1].expand(tensor.shape)
    return tensor


SHAPES = [((5, 7), (5, 7)), ((5, 7), (7,)), ((5, 1), (1, 7)), ((3, 1, 4), (2, 4)), ((), (6,)), ((0, 3), (3,))]  # fmt: skip
DTYPES = [torch.float32, torch.float64, torch.int32, torch.bfloat16]
MODES = {
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "grad": torch.enable_grad,
}


@pytest.mark.parametrize("seed", range(14))
def test_random_calls_are_those_of_python(seed: int) -> None:
    chance = random.Random(seed)
    torch.manual_seed(seed)
    shapes = chance.choice(SHAPES)
    dtype = chance.choice(DTYPES)
    x, y = (random_layout(chance, (torch.randn(shape) * 9).to(dtype)) for shape in shapes)
    if dtype.is_floating_point and chance.random() < 0.5:
        x = x.detach().requires_grad_()
    calls = [(scaled_sum, (x, y, chance.choice([2, 0.5, True]))), (sum_and_sign, (x.detach(), y))]
    for op, args in calls:
        first = op(*args)
        for name, mode in MODES.items():
            with mode():
                expected = by_python(op, *args)
                with python_refused():
                    found = op(*args)
                assert_same(found, expected)
        assert_same(op(*args), first)
        if x.requires_grad and op is scaled_sum:
            weight = torch.randn_like(first)
            (expected,) = torch.autograd.grad(by_python(op, *args), x, weight)
            (found,) = torch.autograd.grad(op(*args), x, weight)
            assert_same(found, expected)
        if not x.requires_grad and dtype != torch.bfloat16:
            arrays = [each.numpy() if torch.is_tensor(each) else each for each in args]
            op(*arrays)
            with python_refused():
                found = op(*arrays)
            assert_same(found, by_python(op, *arrays))


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}])
def test_reductions_are_those_of_python(options: dict[str, Any]) -> None:
    chance = random.Random(0)
    for dtype in (torch.float32, torch.int32):
        x, y = (torch.randn(5, 7) * 9).to(dtype), random_layout(chance, torch.ones(7).to(dtype))
        for args in ((x, y), (x.t(), 2), (x.numpy(), y.numpy())):
            expected = dot(*args, **options)
            assert_same(by_python(dot, *args, **options), expected)
            with python_refused():
                assert_same(dot(*args, **options), expected)
            for other in ({"axis": 0}, {"axis": [1]}):
                with python_refused(), pytest.raises(PythonRan):
                    dot(*args, **other)
    whole = torch.arange(1, 5)
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            assert largest_root(whole).dtype == by_python(largest_root, whole).dtype == dtype
        finally:
            torch.set_default_dtype(torch.float32)
    leaf = torch.ones(3, requires_grad=True)
    for _ in range(2):
        (found,) = torch.autograd.grad(dot(leaf, 4.0), leaf)
        assert found.tolist() == [4, 4, 4]
        with torch.no_grad():
            assert not dot(leaf, 4.0).requires_grad


@tessera.function("x[m, n], y, z[n] -> out[m / ROWS, n / COLUMNS], is_large[m, n]: bool")
@tessera.jit
def shifted(x, y, z, out, is_large, m, n, ROWS: tl.constexpr = 2, COLUMNS: tl.constexpr = 4):
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    j = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    mask = (i < m) & (j < n)
    value = tl.load(x + i * n + j, mask=mask) + y * tl.load(z + j, mask=j < n)
    tl.store(out + i * n + j, value, mask=mask)
    tl.store(is_large + i * n + j, value > 3, mask=mask)


@tessera.function("x[*n], BLOCK -> out[*n / BLOCK]")
@tessera.jit
def in_blocks(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def test_functions_are_those_of_python() -> None:
    for shape in ((5, 7), (4, 4), (1, 9), (0, 3)):
        for x, z in ((torch.randn(shape), torch.ones(shape[1])), (np.ones(shape), np.ones(shape[1]))):  # fmt: skip
            for y in (1.5, 0.25):
                expected = by_python(shifted, x, y, z)
                shifted(x, y, z)
                with python_refused():
                    assert_same(shifted(x, y, z), expected)
            with python_refused(), pytest.raises(PythonRan):
                shifted(x, 1.5, z, ROWS=4)
            assert_same(shifted(x, 1.5, z, ROWS=4), by_python(shifted, x, 1.5, z))
    x = torch.randn(70)
    for block in (16, 32, 64, 16):
        assert torch.equal(in_blocks(x, block), 2 * x)
    shifted(torch.ones(2, 4), 1.0, torch.ones(4))
    for strided in (torch.randn(4, 2).t(), torch.randn(2, 8)[:, ::2]):
        for _ in range(2):
            found = shifted(strided, 1.0, torch.ones(4))
        assert_same(found, by_python(shifted, strided.contiguous(), 1.0, torch.ones(4)))
    with torch.no_grad():
        for _ in range(2):
            shifted(torch.ones(2, 4, requires_grad=True), 1.0, torch.ones(4))
    with pytest.raises(tessera.errors.ArgumentError, match="E057"):
        shifted(torch.ones(2, 4, requires_grad=True), 1.0, torch.ones(4))


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_results_that_are_passed(library: str) -> None:
    make = torch.arange if library == "torch" else np.arange
    base = make(64.0)
    x, y = base[:12].reshape(3, 4), make(4.0)
    expected = product(x, y)
    product(x, y, out=base[32:44].reshape(3, 4)), product(
        x, y, out=base[32:56].reshape(3, 8)[:, ::2]
    )
    with python_refused():
        for out in (base[32:44].reshape(3, 4), base[40:64].reshape(3, 8)[:, ::2]):
            assert product(x, y, out=out) is out
            assert (out == expected).all()
        for out in (base[32:44], (base[32:44].reshape(3, 4),), base[32:44].reshape(4, 3).T):
            with pytest.raises(PythonRan):
                product(x, y, out=out)
    with pytest.raises(tessera.errors.ArgumentError, match="shares memory with `x`"):
        product(x, y, out=base[8:20].reshape(3, 4))
    copied = x + 0
    with python_refused():
        assert product(copied, y, out=copied) is copied  # each element is read before it is written
    assert (copied == expected).all()
    if library == "torch":
        kept = torch.ones(4, requires_grad=True) * x
        product(kept.detach(), y, out=x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            kept.sum().backward()
        leaf = torch.ones(3, 4, requires_grad=True)
        for args, out in (((leaf, y), x), ((x, y), leaf)):
            with torch.no_grad():
                product(*args, out=out), product(*args, out=out)
            with pytest.raises(tessera.errors.ArgumentError, match="requires a gradient"):
                product(*args, out=out)
    else:
        frozen = x.copy()
        frozen.flags.writeable = False
        for _ in range(2):
            with pytest.raises(tessera.errors.TesseraError, match="read-only"):
                product(x, y, out=frozen)


def test_types_of_numbers_and_layouts_are_told_apart() -> None:
    x = torch.arange(12, dtype=torch.int32).reshape(3, 4)
    assert product(x, 2).dtype == torch.int32
    assert product(x, 2.5).dtype == torch.float32
    assert product(x, True).dtype == torch.int32
    for args in ((x.t(), 2), (x.long(), 2), (x[:2], 2), (x, 2, 3), (x,), (x, "2")):
        with python_refused(), pytest.raises(PythonRan):
            product(*args)
    with python_refused():
        assert torch.equal(product(x, 7), x * 7)


class Dispatching(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return func(*args, **(kwargs or {}))


class Wrapped(torch.Tensor):
    pass


@contextlib.contextmanager
def default_dtype() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("mode", [Dispatching, Functions, forward_ad.dual_level, default_dtype])
def test_calls_in_modes_are_left_to_python(mode: Any) -> None:
    x = torch.arange(6, dtype=torch.int32)
    expected = root(x)
    with python_refused():
        assert torch.equal(root(x), expected)
    with mode(), python_refused(), pytest.raises(PythonRan):
        root(x)
    with mode():
        assert root(x).dtype == torch.get_default_dtype()


def test_known_calls_count_writes_to_tensors() -> None:
    """Torch refuses a gradient of a tensor that was written to. It counts no writes to tensors of
    inference_mode."""
    x, memory = torch.randn(4), torch.zeros(8)
    with torch.inference_mode():
        uncounted = torch.zeros(4)
    for out in (memory[2:6], memory[2:6], uncounted, uncounted):
        product(x, x, out=out)  # the first call of a kind is Python's
        version = memory._version
        with python_refused():
            assert product(x, x, out=out) is out
        assert memory._version == version + (out is not uncounted)
        assert torch.equal(out, x * x)
    leaf = torch.randn(4, requires_grad=True)
    result = (leaf * memory[2:6]).sum()
    product(x, x, out=memory[2:6])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_known_calls_after_a_transform() -> None:
    """Torch keeps what transforms leave behind, so Python is asked whether one is left."""
    x, asked = torch.randn(4), []

    def work() -> None:
        product(x, x)
        for _ in range(2):
            with python_refused():
                asked.append(torch.equal(product(x, x), x * x))
            asked.append(torch.equal(torch.func.vmap(product)(x, x), x * x))

    thread = threading.Thread(target=work)  # a new one has had no transform
    thread.start()
    thread.join()
    assert asked == [True] * 4


def test_calls_in_transforms_and_tracers_are_left_to_python() -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    for _ in range(2):
        product(x, y)
        torch.testing.assert_close(torch.func.vmap(product)(x, y), x * y)
        torch.testing.assert_close(torch.func.grad(lambda a: product(a, y).sum())(x), y)
        torch.testing.assert_close(torch.func.jvp(lambda a: product(a, y), (x,), (x,))[1], x * y)
        fake_mode = torch._subclasses.FakeTensorMode()
        with fake_mode:
            assert type(product(fake_mode.from_tensor(x), fake_mode.from_tensor(y))) is not torch.Tensor  # fmt: skip
        assert product(x.to("meta"), y.to("meta")).is_meta
        conjugate = torch.complex(x, y).conj().imag  # has the negative bit
        with pytest.raises(tessera.errors.ArgumentError, match="negative bit"):
            product(conjugate, y)
        wrapped = product(x.as_subclass(Wrapped), y)
        assert type(wrapped) is Wrapped
        assert torch.equal(wrapped.as_subclass(torch.Tensor), x * y)
        compiled = torch.compile(product, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x, y), x * y)


def test_classes_of_nodes_have_the_attributes_of_other_classes() -> None:
    class Plain:
        bias = 1.0

        @classmethod
        def named(cls) -> str:
            return cls.__name__

    class Doubled(DirectNode):
        bias, named = Plain.bias, Plain.__dict__["named"]

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return 2 * grads[0]

    class Derived(Doubled):
        pass

    x = torch.randn(3, requires_grad=True)
    for cls in (Derived, Doubled):
        assert (cls.bias, cls.named(), cls.__bases__) == (1.0, cls.__name__, (cls.__base__,))
        assert cls.forward is Doubled.__dict__["forward"].__func__
        assert not hasattr(cls, "forwards") and not hasattr(cls, "")
        cls.bias = 2.0
        assert cls.bias == 2.0
        gradient = torch.autograd.grad(direct_apply(cls)(x).sum(), x)[0]
        assert torch.equal(gradient, torch.full((3,), 2.0))
    del Derived.bias
    assert Derived.bias == 2.0


def test_gradients_of_known_calls() -> None:
    x = torch.randn(4, 1, dtype=torch.float64, requires_grad=True)
    y = torch.randn(3, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(product(x, y).sum(), y)
    sum_and_product(x, y)
    product(x, y).sum().backward()
    x.grad = y.grad = None
    with python_refused():
        result = product(x, y)
        assert "product" in type(result.grad_fn).__name__
        result.sum().backward()
    torch.testing.assert_close(y.grad, expected)
    torch.testing.assert_close(x.grad, y.detach().sum().expand(4, 1))
    torch.testing.assert_close(y.grad, x.detach().sum().expand(3))
    for _ in range(2):
        assert torch.autograd.gradcheck(lambda a, b: scaled_sum(a, b, 2.0), (x, y))
        assert torch.autograd.gradgradcheck(product, (x, y))
    with python_refused():
        sum_and_product(x, y)
    assert torch.autograd.gradcheck(sum_and_product, (x, y))
    kept = product(x, y)
    with torch.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()


def test_a_call_without_a_derivative_is_refused_each_time() -> None:
    @tessera.pointwise
    def underivable(x):  # type: ignore[no-untyped-def]
        return tl.extra.libdevice.j0(x)

    x = torch.randn(3, requires_grad=True)
    with torch.no_grad():
        underivable(x), underivable(x)
    for _ in range(2):
        with pytest.raises(tessera.errors.TesseraError, match="E090"):
            underivable(x)


def test_a_new_derivative_is_used() -> None:
    @tessera.pointwise
    def twice(x):  # type: ignore[no-untyped-def]
        return x * 2

    x = torch.randn(3, requires_grad=True)
    for _ in range(2):
        twice(x).sum().backward()
    assert x.grad.tolist() == [4, 4, 4]

    @twice.backward
    def minus(grad, x):  # type: ignore[no-untyped-def]
        return -grad

    for _ in range(2):
        x.grad = None
        twice(x).sum().backward()
        assert x.grad.tolist() == [-1, -1, -1]


def test_numpys_other_arrays_are_left_to_python() -> None:
    x = np.ones((3, 4), np.float32)
    product(x, 2.0)
    with python_refused():
        assert (product(x, 3.0) == 3).all()
    for other in (x.astype(">f4"), np.matrix(x), np.ma.masked_array(x)):
        with python_refused(), pytest.raises(PythonRan):
            product(other, 3.0)
    small = np.ones(3, np.int8)
    product(small, 2)
    for _ in range(2):
        with pytest.raises(tessera.errors.ArgumentError, match="does not fit int8"):
            product(small, 1000)


def test_a_subclass_that_replaces_the_call() -> None:
    class Counted(tessera.Pointwise):
        calls = 0

        def __call__(self, *args: Any, **named: Any) -> Any:
            self.calls += 1
            return super().__call__(*args, **named)

    class Plain(tessera.Pointwise):
        pass

    counted, plain = Counted(product.function), Plain(product.function)
    x = torch.ones(3)
    for at in range(1, 4):
        counted(x, 2.0)
        assert counted.calls == at
    plain(x, 2.0)
    with python_refused():
        assert plain(x, 2.0)[0] == 2


def test_an_operator_with_known_calls_is_released() -> None:
    def make() -> Any:
        @tessera.pointwise
        def halved(x):  # type: ignore[no-untyped-def]
            return x * 0.5

        leaf = torch.ones(3, requires_grad=True)
        for x in (leaf, torch.ones(3), np.ones(3, np.float32)):
            halved(x)
            halved(x)
        return weakref.ref(halved)

    released = make()
    gc.collect()
    assert released() is None


def test_known_calls_in_threads() -> None:
    x = torch.randn(1000)
    expected, wrong = product(x, x), []

    def work() -> None:
        for size in range(1, 60):
            if not torch.equal(product(x[:size], x[:size]), expected[:size]):
                wrong.append(size)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


@tessera.pointwise
def power(x, exponent: tl.constexpr, kind: tl.constexpr = None):
    result = x
    for _ in range(exponent - 1):
        result *= x
    return result if kind is None else result + 1


def test_arguments_may_be_left_out() -> None:
    """Known calls have the defaults of the last parameters, and results may be passed behind these."""

    @tessera.pointwise
    def line(x, y, factor=2.0, term=1.0):
        return x * factor + y + term

    x, y = np.arange(4.0), np.ones(4)
    out = np.empty(4)
    for args in ((x, y), (x, y, 3.0), (x, y, 3.0, 5.0)):
        factor, term = (*args[2:], *(2.0, 1.0)[len(args) - 2 :])
        line(*args), line(*args, out=out)
        with python_refused():
            assert (line(*args) == x * factor + y + term).all()
            assert (line(*args, out=None) == x * factor + y + term).all()
            assert line(*args, out=out) is out
        assert (out == x * factor + y + term).all()
    with pytest.raises(tessera.errors.ArgumentError, match="E051"):
        line(x)
    assert (line(x, y, term=4.0) == x * 2 + y + 4).all()


def test_constants_are_told_apart_by_value() -> None:
    x, a = torch.tensor([2.0, 3.0]), np.array([2.0, 3.0], np.float32)
    for exponent in (2, 3, 2, 1):
        for kind in (None, (1, 2), "one", 1.5):
            expected = x**exponent + (kind is not None)
            for _ in range(2):
                assert torch.equal(power(x, exponent, kind), expected)
                assert (power(a, exponent, kind) == expected.numpy()).all()
    with python_refused():
        assert power(x, 3, None).tolist() == [8, 27]
        assert power(x, 3, (1, 2)).tolist() == [9, 28]
        assert power(x, 3, "one").tolist() == [9, 28]
        assert power(x, 3).tolist() == [8, 27]  # None is the default
        for args in ((x, 4, None), (x, 3, (1, 3)), (x, 3, "two")):
            with pytest.raises(PythonRan):
                power(*args)
    leaf = x.clone().requires_grad_()
    for _ in range(2):
        for kind in (None, (1, 2)):
            (found,) = torch.autograd.grad(powers_of(leaf, 1, kind).sum(), leaf)
            assert found.tolist() == [2, 3]


@tessera.pointwise
def powers_of(x, exponent: tl.constexpr, kind: tl.constexpr):
    return 0.5 * x * x


@tessera.reduction("sum")
def sum_of_powers(x, y, exponent: tl.constexpr = 1):
    result = x
    for _ in range(exponent - 1):
        result *= x
    return result * y


@tessera.reduction("mean")
def mean_of_products(x, y):
    return x * y


def test_reductions_with_constants_and_gradients() -> None:
    x, y = torch.rand(4, 6), torch.rand(6)
    for exponent in (1, 2, 3, 2):
        expected = (x**exponent * y).sum(1)
        for _ in range(2):
            torch.testing.assert_close(sum_of_powers(x, y, exponent, axis=1), expected)
            found = sum_of_powers(x.numpy(), y.numpy(), exponent, axis=1)
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)
    with python_refused():
        torch.testing.assert_close(sum_of_powers(x, y, 2, axis=1), (x**2 * y).sum(1))
        with pytest.raises(PythonRan):
            sum_of_powers(x, y, 4, axis=1)
    x, y = x.double().requires_grad_(), y.double().requires_grad_()
    for axis in (0, 1, None, (0, 1)):
        for keepdims in (False, True):
            axes = (0, 1) if axis is None else axis
            expected = torch.autograd.grad((x * y).mean(axes).square().sum(), (x, y))
            for turn in range(6):
                context = python_refused() if turn == 5 else contextlib.nullcontext()
                with context:
                    result = mean_of_products(x, y, axis=axis, keepdims=keepdims)
                    found = torch.autograd.grad(result, (x, y), 2 * result.detach())
                torch.testing.assert_close(found, expected)
    assert torch.autograd.gradcheck(lambda x, y: mean_of_products(x, y, axis=1), (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: mean_of_products(x, y, axis=1), (x, y))
