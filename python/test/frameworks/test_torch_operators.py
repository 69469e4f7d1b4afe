# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch that launch kernels (tessera.torch.op)."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Optional

import pytest

torch = pytest.importorskip("torch")

import tessera
import tessera.language as tl
import tessera.torch

_numbers = itertools.count()


def fresh() -> str:
    return f"tessera_test::op{next(_numbers)}"


@tessera.function("x[*n], factor -> out[*n / BLOCK]")
@tessera.jit
def scale_kernel(x, factor, out, n, BLOCK: tl.constexpr = 128):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def remember_factor(ctx, inputs, output) -> None:
    ctx.factor = inputs[1]


def scale_gradient(ctx, gradient):
    return scale(gradient.contiguous(), ctx.factor), None


def scale_batch(info, in_dims, x, factor):
    return scale(x.movedim(in_dims[0], 0).contiguous(), factor), 0


@tessera.torch.op(
    "tessera_test::scale",
    backward=scale_gradient,
    setup_context=remember_factor,
    vmap=scale_batch,
)
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return scale_kernel(x, factor)


@tessera.torch.op("tessera_test::scale_", mutates_args="x")
def scale_(x: torch.Tensor, factor: float) -> None:
    n = x.numel()
    scale_kernel.fn[lambda meta: (tessera.cdiv(n, meta["BLOCK"]),)](x, factor, x, n)


def test_an_operator_is_copied_by_name() -> None:
    assert pickle.loads(pickle.dumps(scale)) is scale and copy.deepcopy(scale) is scale


def test_derivatives_in_torch_func_are_refused() -> None:
    x = torch.ones(3)
    for _ in range(2):
        with pytest.raises(tessera.ArgumentError, match="E057.*argument `x`.*torch.func"):
            torch.func.grad(lambda a: scale(a, 2.0).sum())(x)
        scale(x, 2.0)


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_torch_finds_nothing_wrong(needs_gradient: bool) -> None:
    x = torch.randn(30, 5, requires_grad=needs_gradient)
    assert set(torch.library.opcheck(scale, (x, 2.0)).values()) == {"SUCCESS"}


def test_nothing_wrong_in_place() -> None:
    assert set(torch.library.opcheck(scale_, (torch.randn(300), 2.0)).values()) == {"SUCCESS"}
    x = torch.ones(300)
    scale_(x, 3.0)
    assert (x == 3).all()


def test_gradients() -> None:
    x = torch.randn(4, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: scale(x, 3.0), (x,))


def test_batches() -> None:
    x = torch.randn(6, 7)
    assert torch.equal(torch.vmap(lambda row: scale(row, 2.0), in_dims=1, out_dims=1)(x), 2 * x)


def test_lists_options_and_numbers() -> None:
    @tessera.torch.op(fresh())
    def several(
        xs: list[torch.Tensor], factor: float, more: Optional[torch.Tensor] = None
    ) -> tuple[list[torch.Tensor], int]:
        return [scale_kernel(x, factor) for x in xs], len(xs)

    assert set(
        torch.library.opcheck(several, ([torch.ones(3), torch.ones(2, 2)], 2.0)).values()
    ) == {"SUCCESS"}


def test_meta_tensors() -> None:
    result = scale(torch.ones(3, 4, device="meta"), 2.0)
    assert (result.device.type, result.shape) == ("meta", (3, 4))


def test_another_definition_replaces_the_first() -> None:
    name = fresh()
    for factor in (2.0, 3.0):

        @tessera.torch.op(name)
        def again(x: torch.Tensor) -> torch.Tensor:
            return scale_kernel(x, factor)

        assert (again(torch.ones(4)) == factor).all()


def test_without_a_gradient() -> None:
    @tessera.torch.op(fresh())
    def plain(x: torch.Tensor) -> torch.Tensor:
        return scale_kernel(x, 2.0)

    result = plain(torch.ones(3, requires_grad=True))
    with pytest.raises(RuntimeError, match="no autograd formula"):
        result.sum().backward()


def test_in_compiled_functions() -> None:
    calls = []

    def note(graph, inputs):
        calls.append(graph)
        return graph.forward

    compiled = torch.compile(
        lambda x: scale(x + 1, 2.0) * 2, backend=note, fullgraph=True, dynamic=True
    )
    for size in (3, 50, 700):
        x = torch.randn(size, 2)
        assert torch.equal(compiled(x), (x + 1) * 2 * 2)
    assert len(calls) == 1  # shapes stay symbols on their way through the operator


def test_tuned_kernels_are_traced() -> None:
    kernel = tessera.autotune([tessera.Config({"BLOCK": 64})], key=[])(scale_kernel.fn)

    @tessera.torch.op(fresh())
    def tuned(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        kernel[(tessera.cdiv(x.numel(), 64),)](x, 2.0, out, x.numel())
        return out

    assert set(torch.library.opcheck(tuned, (torch.randn(300),)).values()) == {"SUCCESS"}


def test_schema_of_ones_own() -> None:
    @tessera.torch.op(fresh(), schema="(Tensor x, float y=2.0) -> Tensor")
    def plain(x, y=2.0):
        return scale_kernel(x, y)

    assert torch.equal(plain(torch.ones(4)), torch.full((4,), 2.0))


def refused(message: str, **options):
    return pytest.raises(tessera.CompilationError, match=f"(?s)E078.*{message}")


def test_schemas_that_do_not_match() -> None:
    with refused("annotations of `f` make no schema"):

        @tessera.torch.op(fresh())
        def f(x, y: int) -> torch.Tensor: ...

    with refused("has the arguments x, z, and `g` has x, y"):

        @tessera.torch.op(fresh(), schema="(Tensor x, int z) -> Tensor")
        def g(x, y): ...

    with refused("cannot be read"):

        @tessera.torch.op(fresh(), schema="(Tensor x -> Tensor")
        def h(x): ...

    with refused("writes to x of its arguments, and mutates_args to none"):

        @tessera.torch.op(fresh(), schema="(Tensor(a!) x) -> ()")
        def i(x): ...

    with refused("names `y`, which is no parameter"):

        @tessera.torch.op(fresh(), mutates_args="y")
        def j(x: torch.Tensor) -> None: ...

    with refused("no backward"):

        @tessera.torch.op(fresh(), setup_context=remember_factor)
        def k(x: torch.Tensor) -> torch.Tensor: ...

    with refused("'nowhere' is no name for an operator"):

        @tessera.torch.op("nowhere")
        def m(x: torch.Tensor) -> torch.Tensor: ...

    with refused("is put on a"):
        tessera.torch.op(fresh())(scale_kernel)


def test_a_write_that_the_schema_does_not_tell() -> None:
    x = torch.ones(300)
    scale_kernel.fn[(3,)](x, 1.0, x, 300)  # so that the launch is known

    @tessera.torch.op(fresh())
    def hidden(x: torch.Tensor) -> torch.Tensor:
        scale_kernel.fn[(3,)](x, 2.0, x[:10], 10)
        return x.clone()

    for _ in range(2):
        with pytest.raises(tessera.ArgumentError, match="E078.*writes to its argument `x`"):
            hidden(x)
    assert (x == 1).all()


def test_results_that_do_not_match() -> None:
    @tessera.torch.op(fresh(), fake=lambda x: torch.empty_like(x))
    def number(x: torch.Tensor) -> torch.Tensor:
        return 3

    with pytest.raises(tessera.ArgumentError, match="E078.*returned an int where .* Tensor"):
        number(torch.ones(3))

    @tessera.torch.op(fresh(), fake=lambda x: (x.clone(), x.clone()))
    def one(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.clone()

    with pytest.raises(tessera.ArgumentError, match="E078.*1 value, and its schema has 2"):
        one(torch.ones(3))


def test_fake_tensors_are_not_launched_on() -> None:
    with torch._subclasses.fake_tensor.FakeTensorMode():
        x = torch.ones(4)
        assert scale_kernel(x, 2.0).shape == (4,)  # which is an operator then
        with pytest.raises(tessera.ArgumentError, match="E057.*fake tensor"):
            scale_kernel.fn[(1,)](x, 1.0, x, 4)


# --- Forward derivatives ----------------------------------------------------------------------

TANGENT = torch.ones(4)


def by_a_dual_tensor(function, x):
    with torch.autograd.forward_ad.dual_level():
        result = function(torch.autograd.forward_ad.make_dual(x, TANGENT))
        return torch.autograd.forward_ad.unpack_dual(result).tangent


def by_jvp(function, x):
    return torch.func.jvp(function, (x,), (TANGENT,))[1]


def by_jacfwd(function, x):
    return torch.func.jacfwd(function)(x) @ TANGENT


def by_jvp_of_a_batch(function, x):
    return torch.func.vmap(lambda v: torch.func.jvp(function, (x,), (v,))[1])(TANGENT[None])[0]


def by_jvp_compiled(function, x):
    return torch.compile(by_jvp, backend="eager")(function, x)


WAYS = [by_a_dual_tensor, by_jvp, by_jacfwd, by_jvp_of_a_batch, by_jvp_compiled]


@pytest.mark.parametrize("way", WAYS)
def test_forward_derivatives_are_refused(way) -> None:
    """They would be zeros."""
    with pytest.raises(tessera.ArgumentError) as error:
        way(lambda x: scale(x, 3.0), torch.ones(4))
    assert error.value.id == "E057" and error.value.message == (
        "argument `x` of operator tessera_test::scale has a tangent, and operators of "
        "@tessera.torch.op have no forward derivatives"
    )
    assert "torch.autograd.Function that has a `jvp`" in error.value.fix


def test_a_tangent_of_what_is_written_or_in_a_list() -> None:
    def write(x):
        y = x.clone()
        scale_(y, 3.0)
        return y

    @tessera.torch.op(fresh())
    def first(tensors: list[torch.Tensor], factor: Optional[float] = None) -> torch.Tensor:
        return tensors[0].clone()

    for function in (write, lambda x: first([torch.ones(4), x])):
        with pytest.raises(tessera.ArgumentError, match="E057.*has a tangent"):
            by_jvp(function, torch.ones(4))


@pytest.mark.parametrize("way", [by_a_dual_tensor, by_jvp, by_jacfwd])
def test_forward_derivatives_of_ones_own(way) -> None:
    class Scale(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return scale(x, 3.0)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def jvp(ctx, tangent):
            return scale(tangent, 3.0)

    assert way(Scale.apply, torch.ones(4)).equal(3 * TANGENT)


def test_beside_forward_derivatives() -> None:
    """What has no tangent is computed as ever."""
    x = torch.arange(4.0)
    assert by_jvp(lambda v: v * scale(x, 3.0), x).equal(3 * x)
    assert by_a_dual_tensor(lambda v: scale(x, 3.0) + v, x).equal(TANGENT)
    with torch.autograd.forward_ad.dual_level():
        assert scale(x, 3.0).equal(3 * x)


# --- Calls without the dispatcher (tessera/torch/direct_calls.py) ---------------------


def dispatched_calls(call) -> int:
    """How often an operator of these tests went through torch's dispatcher during `call`."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return sum(each.count for each in profile.key_averages() if "tessera_test" in each.key)


class Counting(torch.utils._python_dispatch.TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Counting.calls += "tessera_test" in str(func)
        return func(*args, **(kwargs or {}))


def test_direct_calls_are_those_of_the_dispatcher() -> None:
    seen = []

    @tessera.torch.op(fresh())
    def added(x: torch.Tensor, factor: float, y: Optional[torch.Tensor] = None) -> torch.Tensor:
        seen.append((type(factor), torch.is_grad_enabled()))
        result = scale_kernel(x, factor)
        return result if y is None else result.add_(y)

    overload = added._opoverload
    for x in (torch.randn(7), torch.randn(3, 4), torch.randn(0), torch.randn(9)[::3].contiguous()):
        for args in ((x, 2.0), (x, 2.0, x), (x, 2), (x, 2.0, None)):
            for _ in range(2):
                assert torch.equal(added(*args), overload(*args))
                assert torch.equal(added(*args[:2], y=None), overload(*args[:2]))
    # An integer reaches the function as a float, as the schema says.
    assert set(seen) == {(float, False)}
    assert torch.is_grad_enabled()
    with pytest.raises(RuntimeError, match="expected at most 3"):
        added(x, 2.0, None, None)
    with pytest.raises(RuntimeError, match="Tensor"):
        added("x", 2.0)


def test_watched_calls_go_through_the_dispatcher() -> None:
    x = torch.randn(5)
    scale(x, 2.0)
    scale(x, 2.0)
    overload, was_called = scale._opoverload, []

    class Overload:
        def __call__(self, *args):
            was_called.append(args)
            return overload(*args)

        def __getattr__(self, name):
            return getattr(overload, name)

    scale._opoverload = Overload()
    try:
        scale(x, 2.0)
        scale(torch.randn(3), 3.0)
        assert not was_called
        assert dispatched_calls(lambda: scale(x, 2.0)) == 1
        with Counting():
            scale(x, 2.0)
        assert Counting.calls == 1
        leaf = x.clone().requires_grad_()
        scale(leaf, 2.0).sum().backward()
        assert leaf.grad.tolist() == [2.0] * 5
        with torch.no_grad():
            assert not scale(leaf, 2.0).requires_grad
        assert torch.equal(torch.func.vmap(lambda a: scale(a, 2.0))(x[None]), 2 * x[None])
        assert len(was_called) >= 4
    finally:
        scale._opoverload = overload


def test_direct_calls_write_to_arguments() -> None:
    x = torch.ones(4)
    for expected in (1, 2, 3, 4):
        version = x._version
        scale_(x, 2.0)
        assert x._version == version + 1 and x[0] == 2**expected
    y = torch.ones(4, requires_grad=True)
    kept = y * x
    scale_(x, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()
    with torch.inference_mode():
        z = torch.ones(4)
        scale_(z, 2.0), scale_(z, 2.0)
        assert z[0] == 4


def test_direct_results_are_checked() -> None:
    @tessera.torch.op(fresh())
    def part(x: torch.Tensor, n: int) -> torch.Tensor:
        return x[:n] if n < 2 else x.clone()

    @tessera.torch.op(fresh())
    def two(x: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        return (x.clone(), x.clone()) if n else x.clone()

    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(part(x, 2), x) and torch.equal(two(x, 1)[1], x)
    with pytest.raises(tessera.errors.ArgumentError, match="memory of an argument"):
        part(x, 1)
    with pytest.raises(tessera.errors.ArgumentError, match="returned 1 value"):
        two(x, 0)


def test_a_kernel_that_is_registered_later_is_called() -> None:
    @tessera.torch.op(fresh())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.ones(3)
    assert doubled(x)[0] == 2 and doubled(x)[0] == 2
    doubled.register_kernel("cpu")(lambda x: x * 3)
    assert doubled(x)[0] == 3 and doubled(x)[0] == 3


def test_direct_calls_with_a_gradient() -> None:
    wanted, calls = [], []

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.factor = inputs[2]
        assert isinstance(output, tuple)

    def backward(ctx, of_product, of_sum):
        wanted.append(ctx.needs_input_grad)
        x, y = ctx.saved_tensors
        scaled = of_product * ctx.factor
        return scaled * y + of_sum, scaled * x + of_sum, None

    @tessera.torch.op(fresh(), backward=backward, setup_context=setup_context)
    def both(x: torch.Tensor, y: torch.Tensor, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
        calls.append(torch.is_grad_enabled())
        return factor * x * y, x + y

    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(3, 4, dtype=torch.float64)
    expected = torch.autograd.grad((2.0 * x * y).sum() + (x + y).sum(), x)
    for turn in range(4):
        product, total = both(x, y, 2.0)
        (found,) = torch.autograd.grad(product.sum() + total.sum(), x)
        torch.testing.assert_close(found, expected[0])
        (found,) = torch.autograd.grad(both(x, y, 2.0)[0].sum(), x)  # one result is unused
        torch.testing.assert_close(found, 2 * y)
    assert dispatched_calls(lambda: both(x, y, 2.0)) >= 1
    overload, both._opoverload = both._opoverload, None
    assert "GeneratedBackwardFor" in type(both(x, y, 2.0)[0].grad_fn).__name__
    both._opoverload = overload
    assert set(wanted) == {(True, False, False)} and not any(calls)
    for _ in range(3):
        pair = (x, y.clone().requires_grad_())
        assert torch.autograd.gradcheck(lambda a, b: both(a, b, 0.5), pair)
        assert torch.autograd.gradgradcheck(lambda a, b: both(a, b, 0.5)[0], pair)
    kept = both(x, y, 2.0)[0]
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()
    torch.library.opcheck(both, (x.detach().requires_grad_(), y, 2.0))


def test_direct_gradients_are_checked() -> None:
    @tessera.torch.op(fresh(), backward=lambda ctx, gradient: (gradient, None))
    def part(x: torch.Tensor, n: int) -> torch.Tensor:
        return x.clone() if n < 2 else x[:n] if n < 3 else x if n < 4 else 1.0

    leaf = torch.ones(3, requires_grad=True)
    for _ in range(3):
        part(leaf, 1).sum().backward()
    assert leaf.grad.tolist() == [3, 3, 3]
    for n, text in ((2, "memory of an argument"), (3, "memory of an argument"), (4, "where its schema")):  # fmt: skip
        with pytest.raises(tessera.errors.ArgumentError, match=text):
            part(leaf, n)
    part.register_autograd(lambda ctx, gradient: (5 * gradient, None))
    for _ in range(3):
        (found,) = torch.autograd.grad(part(leaf, 1).sum(), leaf)
        assert found.tolist() == [5, 5, 5]
    part.register_autograd(lambda ctx, gradient: gradient)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="number of gradients"):
            part(leaf, 1).sum().backward()
