# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators from one scalar function (tessera.pointwise), on torch: values, derivatives, transforms.

The operators of pointwise_operators.py are compared with torch's on the samples of its own table.
"""

from __future__ import annotations

from typing import Any, Sequence

import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402
from tessera.calls.derivatives import derive  # noqa: E402
from tessera.calls.plans import result_dtypes  # noqa: E402
from tessera.torch import elementwise  # noqa: E402
from tessera.torch.elementwise import operator_of  # noqa: E402

from .pointwise_operators import OPERATORS  # noqa: E402
from .torch_table import load_table  # noqa: E402

gradcheck = torch.autograd.gradcheck


@tessera.pointwise
def silu(x):
    return x * tl.sigmoid(x)


@tessera.pointwise
def axpy(x, y, alpha=1):
    return x + y * alpha


@tessera.pointwise
def exp_and_sign(x, y):
    product = x * y
    return tl.exp(product), product > 0


@tessera.pointwise
def sum_and_product(x, y):
    return x + y, x * y


@tessera.pointwise
def cube(x):
    return x * x * x


@cube.backward
def cube_backward(grad, x):
    return 3 * grad * x * x


@tessera.pointwise
def powers(x, exponent: tl.constexpr):
    result = x
    for _ in range(exponent - 1):
        result *= x
    return result


@pytest.fixture(scope="module")
def samples() -> Any:
    """torch's table of operators, by name."""
    return {
        f"{each.name}.{each.variant_test_name}".rstrip("."): each
        for each in load_table()
        if f"{each.name}.{each.variant_test_name}".rstrip(".") in OPERATORS
    }


def calls(entry: Any, dtype: torch.dtype, most: int) -> list[Any]:
    """Arguments for an operator of torch's table, of that many samples of different ranks."""
    torch.manual_seed(0)
    found, ranks = [], set()
    for sample in entry.sample_inputs("cpu", dtype):
        rank = tuple(getattr(each, "ndim", -1) for each in (sample.input, *sample.args))
        if rank not in ranks and sample.input.numel():
            ranks.add(rank)
            named = {key: value for key, value in sample.kwargs.items() if key != "inplace"}
            found.append(((sample.input, *sample.args), named))
    return found[-most:]


ROUNDED = (torch.bfloat16, torch.float16)
TURNS = {name: at for at, name in enumerate(OPERATORS)}


@pytest.mark.parametrize("name", OPERATORS)
def test_values_of_torchs_samples(name: str, samples: Any, request: pytest.FixtureRequest) -> None:
    """One in three operators has a second sample, and one in three a second type, unless all are
    asked for by --every-combination: each is a kernel to compile."""
    op, entry = OPERATORS[name], samples[name]
    turn, has_all = TURNS[name], request.config.getoption("--every-combination")
    for args, named in calls(entry, torch.float64, 2 if has_all or turn % 3 == 0 else 1):
        expected = entry(*args, **named)
        torch.testing.assert_close(op(*args, **named), expected, equal_nan=True)
        out = torch.empty_like(expected)
        assert op(*args, **named, out=out) is out
        torch.testing.assert_close(out, expected, equal_nan=True)
    if not has_all and turn % 3 != 1:
        return
    dtype = (torch.float32, *ROUNDED)[turn // 3 % 3]
    for args, named in calls(entry, dtype, 1):
        # Computed in float32 and rounded once, which torch's own need not be.
        wide = [each.float() if getattr(each, "dtype", None) in ROUNDED else each for each in args]
        expected = entry(*wide, **named)
        expected = expected.to(dtype) if expected.is_floating_point() else expected
        torch.testing.assert_close(op(*args, **named), expected, equal_nan=True)


DIFFERENTIABLE = [
    name
    for name in OPERATORS
    if not name.startswith(("logical", "is")) and name not in ("eq", "ne", "lt", "le", "gt", "ge",
                                                               "heaviside")
]  # fmt: skip


def skip_some(name: str, request: pytest.FixtureRequest, kept: int = 2) -> None:
    """Runs two, or one, in three operators, which takes a third off the time of this file."""
    if TURNS[name] % 3 >= kept and not request.config.getoption("--every-combination"):
        pytest.skip("--every-combination runs it")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_torchs_samples(
    name: str, samples: Any, request: pytest.FixtureRequest
) -> None:
    skip_some(name, request)
    op, entry = OPERATORS[name], samples[name]
    (args, named), *_ = calls(entry, torch.float64, 1)
    tensors = [each for each in args if torch.is_tensor(each) and each.is_floating_point()]
    leaves = [each.detach().clone().requires_grad_() for each in tensors]
    places = {id(tensor): leaf for tensor, leaf in zip(tensors, leaves)}
    given = [places.get(id(each), each) for each in args]
    expected = entry(*given, **named)
    weights = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, leaves, weights)
    got = torch.autograd.grad(op(*given, **named), leaves, weights)
    torch.testing.assert_close(got, wanted, equal_nan=True)


@pytest.mark.parametrize("name", OPERATORS)
def test_vmap_of_torchs_samples(name: str, samples: Any, request: pytest.FixtureRequest) -> None:
    """Each rank is a kernel; the rules of vmap are those of all operators."""
    skip_some(name, request, 1)
    op, entry = OPERATORS[name], samples[name]
    (args, named), *_ = calls(entry, torch.float64, 1)
    batched = [torch.stack([each, each * 0.5]) if torch.is_tensor(each)
               and each.is_floating_point() else each for each in args]  # fmt: skip
    dims = tuple(0 if b is not a else None for a, b in zip(args, batched))
    got = torch.func.vmap(lambda *each: op(*each, **named), in_dims=dims)(*batched)
    for at in range(2):
        one = [b[at] if b is not a else a for a, b in zip(args, batched)]
        torch.testing.assert_close(got[at], entry(*one, **named), equal_nan=True)


@pytest.mark.parametrize("name", OPERATORS)
def test_tools_of_torch(name: str, samples: Any, request: pytest.FixtureRequest) -> None:
    """opcheck, gradcheck, torch.compile, torch.export and torch.func. Two operators, unless all are
    asked for by --every-combination."""
    if name not in ("mul", "gt") and not request.config.getoption("--every-combination"):
        pytest.skip("--every-combination runs it")
    op, entry = OPERATORS[name], samples[name]
    (args, named), *_ = calls(entry, torch.float64, 1)
    is_float = [torch.is_tensor(each) and each.is_floating_point() for each in args]
    args = [each.detach() if torch.is_tensor(each) else each for each in args]
    expected = entry(*args, **named)

    class Module(torch.nn.Module):
        def forward(self, *given: Any) -> Any:
            return op(*given, **named)

    torch._dynamo.reset()
    compiled = torch.compile(Module(), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*args), expected, equal_nan=True)
    exported = torch.export.export(Module(), tuple(args)).module()
    torch.testing.assert_close(exported(*args), expected, equal_nan=True)

    def of_floats(*floats: Any) -> Any:
        found = iter(floats)
        given = [next(found) if each else arg for arg, each in zip(args, is_float)]
        return op(*given, **named)

    floats = [each for each, is_one in zip(args, is_float) if is_one]
    placed = op.placed(args, named)
    kinds = elementwise.kinds_of(op.scalar, "torch", placed)
    packed = elementwise._packed(placed, kinds)
    requires = name in DIFFERENTIABLE
    arrays = [
        each.clone().requires_grad_(requires and each.is_floating_point()) for each in packed[0]
    ]
    letters = elementwise._typed(placed, kinds)
    torch.library.opcheck(operator_of(op), (arrays, packed[1], letters, packed[2]))
    if name not in DIFFERENTIABLE:
        return
    # Away from poles and steps, at which a difference says nothing.
    points = [_between(name, at, each) for at, each in enumerate(floats)]
    leaves = [each.clone().requires_grad_() for each in points]
    assert gradcheck(of_floats, leaves, check_forward_ad=True, raise_exception=False) or (
        # torch's own differs from differences there, too.
        not gradcheck(
            lambda *each: entry(*_placed(args, is_float, each), **named),
            leaves,
            raise_exception=False,
        )
    )
    directions = tuple(torch.ones_like(each) for each in points)
    value, tangent = torch.func.jvp(of_floats, tuple(points), directions)
    torch.testing.assert_close(value, of_floats(*points), equal_nan=True)
    weights = torch.ones_like(value)
    gradients = torch.func.vjp(of_floats, *points)[1](weights)
    eager = torch.autograd.grad(of_floats(*leaves), leaves, weights)
    torch.testing.assert_close(gradients, eager, equal_nan=True)
    total = sum((each * way).sum() for each, way in zip(gradients, directions))
    torch.testing.assert_close(tangent.sum(), total, equal_nan=True)


def _between(name: str, at: int, value: Any) -> Any:
    """Elements of the same shape at which torch's operators of the table are smooth. Those of two
    arguments differ."""
    places = torch.linspace(
        0.15 + at / 97, 0.85 + at / 97, max(1, value.numel()), dtype=value.dtype
    )
    return places[: value.numel()].reshape(value.shape) + (1.0 if name == "acosh" else 0.0)


def _placed(args: Sequence[Any], is_float: Sequence[bool], floats: Sequence[Any]) -> list[Any]:
    found = iter(floats)
    return [next(found) if each else arg for arg, each in zip(args, is_float)]


def tensors(*shapes: tuple[int, ...]) -> list[Any]:
    torch.manual_seed(len(shapes))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def test_there_are_enough() -> None:
    assert len(OPERATORS) >= 60


def test_gradcheck() -> None:
    x, y = tensors((5, 4), (4,))
    assert gradcheck(silu, (x,), check_forward_ad=True)
    assert gradcheck(silu, (x.t(),), check_forward_ad=True)
    assert gradcheck(axpy, (x, y, 2.5), check_forward_ad=True)
    assert gradcheck(lambda x, y: exp_and_sign(x, y)[0], (x, y))
    assert gradcheck(sum_and_product, (x, y), check_forward_ad=True)
    assert gradcheck(cube, (x,), check_forward_ad=True)
    assert not exp_and_sign(x, y)[1].requires_grad


def test_second_derivatives() -> None:
    x, y = tensors((3,), (2, 1))
    for op, args in ((silu, (x,)), (axpy, (x, y, 2.5)), (cube, (x,)), (OPERATORS["mul"], (x, y))):
        assert torch.autograd.gradgradcheck(op, args)


def test_rules_of_derivatives() -> None:
    """Those of `tl` that the table of torch does not reach, and ties of `maximum`."""

    @tessera.jit
    def half(x, factor=0.5):
        return factor * x

    scale = tl.constexpr(1.5)

    @tessera.pointwise
    def mixed(x, y):
        z: tl.tensor = tl.fma(x, y, half(x))
        z += tl.sqrt(tl.abs(x) + 1) * tl.rsqrt(y * y + 1) - tl.floor(x)
        w, v = tl.math.pow(tl.abs(x) + 1, y), tl.fdiv(x, tl.exp2(y))
        z = z + scale * w - v.to(tl.float64) if True else z
        return -(+z) + max(x, y) * min(x, 2.0)

    x, y = tensors((6,), (6,))
    assert gradcheck(mixed, (x, y))
    assert torch.autograd.gradgradcheck(mixed, (x, y))
    one = torch.ones(1, dtype=torch.float64, requires_grad=True)
    OPERATORS["maximum"](one, one.detach()).backward()
    assert one.grad.item() == 0.5


def test_what_cannot_be_derived() -> None:
    x = torch.randn(3, requires_grad=True)
    torch.testing.assert_close(powers(x.detach(), 3), x.detach() ** 3)
    with pytest.raises(tessera.CompilationError) as caught:
        powers(x, 3)
    assert caught.value.id == "E090" and "for _ in range(exponent - 1):" in str(caught.value)
    assert "@op.backward" in caught.value.fix
    with torch.no_grad():
        powers(x, 3)

    @tessera.pointwise
    def two(x, y):
        return x * y

    @two.backward
    def wrong(x, y):
        return x, y

    with pytest.raises(tessera.CompilationError, match="E089.*has 2 parameters, where 3"):
        two(x, x)


def test_derivatives_have_only_what_they_need() -> None:
    text = derive(silu.scalar, (True,)).fn.__code__
    assert "step_1_" not in text.co_varnames  # the product itself


def test_types_are_torchs() -> None:
    """Of tensors with and without dimensions, and numbers."""
    kinds = [torch.bool, torch.uint8, torch.int32, torch.bfloat16, torch.float16, torch.float32,
             torch.float64]  # fmt: skip
    product = OPERATORS["mul"]
    for one in kinds:
        x = torch.ones(3, dtype=one)
        assert silu(x).dtype == torch.exp(x).dtype
        for other in [2, 2.5, True, *(torch.ones((), dtype=kind) for kind in kinds),
                      *(torch.ones(3, dtype=kind) for kind in kinds)]:  # fmt: skip
            letter = "n" if not torch.is_tensor(other) else "a" if other.ndim else "z"
            found = result_dtypes(product, "torch", (x, other), f"a{letter}")
            assert found[0] == torch.result_type(x, other), (one, other)


def test_memory_formats() -> None:
    x = torch.randn(2, 3, 4, 5)
    for view in (x, x.to(memory_format=torch.channels_last), x.transpose(1, 3), x[:, :, ::2]):
        assert silu(view).stride() == torch.sigmoid(view).stride()
        torch.testing.assert_close(silu(view), torch.nn.functional.silu(view))


def test_transforms_of_functions() -> None:
    x, y = (each.detach() for each in tensors((4,), (3, 4)))
    reference = torch.nn.functional.silu
    func = torch.func
    torch.testing.assert_close(func.jacrev(silu)(x), func.jacrev(reference)(x))
    torch.testing.assert_close(func.jacfwd(silu)(x), func.jacrev(reference)(x))
    hessian = func.hessian(lambda each: silu(each).sum())(x)
    torch.testing.assert_close(hessian, func.hessian(lambda each: reference(each).sum())(x))
    batched = func.vmap(func.grad(lambda x, y: axpy(silu(x), y, 3).sum()), in_dims=(None, 0))(x, y)
    expected = func.grad(lambda x: reference(x).sum())(x)
    torch.testing.assert_close(batched, expected.expand(3, 4))
    nested = func.vmap(func.vmap(axpy, (None, 0)), (0, None))(x, y[0])
    torch.testing.assert_close(nested, x[:, None] + y[0])
    # An element of a batch has no dimensions, so it does not widen what has some.
    assert func.vmap(axpy, (0, None))(x, y.float()).dtype == torch.float32


def test_compile_and_export() -> None:
    x, y = tensors((5, 4), (4,))

    def program(x: Any, y: Any, alpha: Any) -> Any:
        return axpy(silu(x), y, alpha=alpha) * 2

    expected = program(x, y, 2.5)
    compiled = torch.compile(program, fullgraph=True, backend="aot_eager", dynamic=True)
    result = compiled(x, y, 2.5)
    torch.testing.assert_close(result, expected)
    wanted = torch.autograd.grad(expected.sum(), (x, y))
    torch.testing.assert_close(torch.autograd.grad(result.sum(), (x, y)), wanted)
    torch.testing.assert_close(compiled(x[:3], y, 3), program(x[:3], y, 3))
    unused = tessera.pointwise(silu.function)  # until it is traced
    traced = torch.compile(lambda x: unused(x), fullgraph=True, backend="eager")
    torch.testing.assert_close(traced(x.detach()), silu(x.detach()))
    out = torch.empty(5, 4, dtype=torch.float64)
    to_out = torch.compile(lambda x: silu(x, out=out), fullgraph=True, backend="aot_eager")
    to_out(x.detach())
    torch.testing.assert_close(out, silu(x.detach()))

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return silu(x) + 1

    exported = torch.export.export(Module(), (x.detach(),)).module()
    torch.testing.assert_close(exported(x.detach()), silu(x.detach()) + 1)


@pytest.mark.parametrize("case", ["axpy", "silu", "exp_and_sign", "constant"])
def test_opcheck(case: str) -> None:
    x, y = tensors((5, 4), (4,))
    constants = tessera.pointwise(OPERATORS["nn.functional.gelu"].function)
    op, args = {
        "axpy": (axpy, ([x, y], [2.5], "aaf", "[]")),
        "silu": (silu, ([x.detach().t().requires_grad_()], [], "a", "[]")),
        "exp_and_sign": (exp_and_sign, ([x, y], [], "aa", "[]")),
        "constant": (constants, ([x], [], "ac", "['tanh']")),
    }[case]
    torch.library.opcheck(operator_of(op), args)


def test_modes_of_torch() -> None:
    x = torch.nn.Parameter(torch.randn(3))
    silu(x).sum().backward()
    assert x.grad is not None
    with torch.autocast("cpu", torch.bfloat16):
        assert silu(x).dtype == torch.float32  # as torch's own
        assert axpy(x.bfloat16(), x).dtype == torch.float32
    with torch.inference_mode():
        assert silu(x).is_inference()
    with pytest.raises(tessera.ArgumentError, match="E089.*argument `x` .* requires a gradient"):
        silu(x, out=torch.empty(3))
    with torch.no_grad():
        silu(x, out=torch.empty(3))
    traced = torch.fx.experimental.proxy_tensor.make_fx(silu)(x.detach())
    assert "pointwise" in traced.code
    mode = torch._subclasses.FakeTensorMode()
    fake = mode.from_tensor(x.detach())
    with mode:
        assert silu(fake).shape == (3,)
    with pytest.raises(tessera.ArgumentError, match="E057.*is_grads_batched"):
        value = silu(x)
        torch.autograd.grad(value, x, torch.eye(3), is_grads_batched=True)
    with pytest.raises(tessera.ArgumentError, match="E089.*`y` .* is on meta, and `x` on cpu"):
        axpy(x.detach(), torch.ones(3, device="meta"))


def test_gradients_of_mixed_arguments() -> None:
    x = torch.randn(3, 1, dtype=torch.bfloat16, requires_grad=True)
    y = torch.randn(2, 1, 4, dtype=torch.float32, requires_grad=True)
    axpy(x, y, 2).sum().backward()
    assert x.grad.dtype == torch.bfloat16 and x.grad.shape == x.shape and (x.grad == 8).all()
    assert y.grad.dtype == torch.float32 and y.grad.shape == y.shape and (y.grad == 6).all()
    index = torch.arange(3)
    value = axpy(index, y.reshape(2, 4)[:, :3])
    (gradient,) = torch.autograd.grad(value.sum(), y)
    assert gradient.sum() == 6


def test_the_default_type() -> None:
    x = torch.arange(3)
    assert silu(x).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert silu(x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert silu(x).dtype == torch.float32


def test_tensors_without_memory() -> None:
    x = torch.ones(3, 4, device="meta", dtype=torch.bfloat16).t()
    assert silu(x).is_meta and silu(x).stride() == x.stride() and silu(x).dtype == x.dtype
    for other in (torch.eye(3).to_sparse(), torch.nested.nested_tensor([torch.ones(2)])):
        with pytest.raises(tessera.ArgumentError, match="E089.*argument `x` is (sparse|nested)"):
            silu(other)


def test_a_result_that_a_backward_needs() -> None:
    """torch notices that `out` changed what it had kept."""
    x = torch.ones(3, requires_grad=True)
    kept = x * 2
    value = (kept * kept).sum()
    with torch.no_grad():
        silu(torch.ones(3), out=kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_numbers_of_derivatives_are_exact() -> None:
    """A variable that is set to a number is a float32; the derivative in float64 had the digits of one."""

    @tessera.pointwise
    def scaled(x):
        return tl.exp(-0.7071067811865476 * x) * (1 / 3.0)

    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(scaled(x), x)
    factor = -0.7071067811865476
    torch.testing.assert_close(
        grad, factor / 3 * torch.exp(factor * x.detach()), rtol=1e-14, atol=0
    )
