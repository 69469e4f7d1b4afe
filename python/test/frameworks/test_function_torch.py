# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of `tessera.function` that torch traces, transforms or differentiates."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
import tessera.language as tl  # noqa: E402
from tessera.torch import functions  # noqa: E402


@tessera.function("x[*n], y[*n], factor -> out[*n / BLOCK]")
@tessera.jit
def scaled_product(x, y, factor, out, n, BLOCK: tl.constexpr = 128):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    product = tl.load(x + i, mask=i < n) * tl.load(y + i, mask=i < n)
    tl.store(out + i, product * factor, mask=i < n)


@scaled_product.backward
def scaled_product_backward(grad_out, x, y, factor):
    grad_out = grad_out.contiguous()
    return scaled_product(grad_out, y, factor), scaled_product(grad_out, x, factor)


@tessera.function("x[*n] -> root[*n / BLOCK], is_large[*n]: bool")
@tessera.jit
def root_of(x, root, is_large, n, BLOCK: tl.constexpr = 128):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.sqrt(tl.load(x + i, mask=i < n))
    tl.store(root + i, value, mask=i < n)
    tl.store(is_large + i, value > 1, mask=i < n)


@root_of.backward
def root_backward(grad_root, root):
    return grad_root / (2 * root)


@tessera.function("x[*n] -> out[*n / BLOCK]")
@tessera.jit
def doubled(x, out, n, BLOCK: tl.constexpr = 128):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def pair(*shape: int, requires_grad: bool = False) -> Any:
    return [torch.randn(shape, dtype=torch.float64, requires_grad=requires_grad) for _ in range(2)]


def test_gradients() -> None:
    x, y = pair(3, 5, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: scaled_product(a, b, 3.0), (x, y))
    assert torch.autograd.gradgradcheck(lambda a, b: scaled_product(a, b, 3.0), (x, y))
    z = x.detach().abs().add(0.5).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: root_of(a)[0], (z,))
    root, is_large = root_of(z)
    assert root.requires_grad and not is_large.requires_grad
    with torch.no_grad():
        assert not scaled_product(x, y, 3.0).requires_grad
    found = torch.func.grad(lambda a: scaled_product(a, y.detach(), 2.0).sum())(x.detach())
    torch.testing.assert_close(found, 2 * y.detach())


def test_only_what_the_derivative_reads_is_saved() -> None:
    x, y = pair(3, 5, requires_grad=True)
    result = scaled_product(x, y, 2.0)
    result.mul_(3)  # the derivative reads no result
    result.sum().backward()
    torch.testing.assert_close(x.grad, 6 * y)
    z = x.detach().abs().requires_grad_()
    root, _ = root_of(z)
    root.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        root.sum().backward()
    for reenters in (False, True):
        x.grad = None
        again = torch.utils.checkpoint.checkpoint(scaled_product, x, y, 2.0, use_reentrant=reenters)
        again.sum().backward()
        torch.testing.assert_close(x.grad, 2 * y)


def test_arrays_that_lie_apart_are_refused() -> None:
    x, y = pair(3, 5)
    with pytest.raises(tessera.ArgumentError, match="E054.*`y`.*sparse_coo"):
        scaled_product(x, y.to_sparse(), 2.0)
    nested = torch.nested.nested_tensor([x, y])
    with pytest.raises(tessera.ArgumentError, match="E054.*`x`.*nested"):
        scaled_product(nested, y, 2.0)


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_compiled_without_a_break(backend: str) -> None:
    def program(a, b):
        root, is_large = root_of(scaled_product(a, b, 2.0, BLOCK=64) ** 2)
        return torch.where(is_large, root, -root).sum()

    x, y = pair(4, 3, requires_grad=True)
    expected = torch.autograd.grad(program(x, y), (x, y))
    compiled = torch.compile(program, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(x, y), program(x, y))
    torch.testing.assert_close(torch.autograd.grad(compiled(x, y), (x, y)), expected)


def test_exported_with_a_dynamic_extent() -> None:
    class Module(torch.nn.Module):
        def forward(self, x):
            return doubled(x) + 1

    dynamic = {"x": {0: torch.export.Dim("rows", min=2)}}
    exported = torch.export.export(Module(), (torch.randn(6, 2),), dynamic_shapes=dynamic)
    x = torch.randn(9, 2)
    torch.testing.assert_close(exported.module()(x), 2 * x + 1)


def test_vmap() -> None:
    x, y = torch.randn(3, 4, 5), torch.randn(4, 5)
    product = lambda a, b: scaled_product(a, b, 2.0)  # noqa: E731
    torch.testing.assert_close(torch.func.vmap(product, (0, None))(x, y), 2 * x * y)
    torch.testing.assert_close(torch.func.vmap(product, (2, 1))(x, y.expand(3, 4, 5).movedim(2, 1)),
                               (2 * x * y).movedim(2, 0))  # fmt: skip
    roots, flags = torch.func.vmap(root_of)(x.abs())
    torch.testing.assert_close(roots, x.abs().sqrt())
    assert torch.equal(flags, x.abs() > 1)
    jacobian = torch.func.jacrev(lambda a: product(a, y))(y)
    torch.testing.assert_close(jacobian.reshape(20, 20), torch.diag(2 * y.flatten()))
    with pytest.raises(tessera.ArgumentError, match="E057.*batch without elements"):
        torch.func.vmap(product)(x[:0], x[:0])


def test_torchs_own_check_of_operators() -> None:
    doubled(torch.ones(2))
    functions.prepare_operator(scaled_product)
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    torch.library.opcheck(
        scaled_product.operator, ([x, y], [2.0], "aaf", repr((["x", "y", "factor"], [])))
    )


def test_fake_meta_and_subclassed_tensors() -> None:
    class Wrapped(torch.Tensor):
        pass

    x = torch.randn(4)
    with torch._subclasses.FakeTensorMode() as mode:
        assert doubled(mode.from_tensor(x)).shape == (4,)
    assert doubled(x.to("meta")).is_meta
    found = doubled(x.as_subclass(Wrapped))
    assert type(found) is Wrapped and torch.equal(found.as_subclass(torch.Tensor), 2 * x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (
            doubled(x).dtype == torch.float32
        )  # as operators of torch that no list of autocast has


def test_outputs_that_are_passed() -> None:
    x = torch.randn(4)
    out = torch.empty(4)
    assert torch.compile(doubled, fullgraph=True, backend="eager")(x, out=out) is out
    assert torch.equal(out, 2 * x)
    with pytest.raises(tessera.ArgumentError, match="(?s)E057.*writes to `out`"):
        scaled_product(x.requires_grad_(), x, 2.0, out=out)


@tessera.function("x[*n], y[*n] -> out[*n / BLOCK]")
@tessera.jit
def product_of_any(x, y, out, n, BLOCK: tl.constexpr = 64):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * tl.load(y + i, mask=i < n), mask=i < n)


@product_of_any.backward
def product_of_any_backward(grad_out, x, y):
    return grad_out * y, grad_out * x


def test_strides_and_broadcasting() -> None:
    x = torch.randn(4)
    for strided in (x[::2], torch.randn(3, 4).t(), x[:, None].expand(4, 4)):
        for _ in range(3):
            assert torch.equal(doubled(strided), 2 * strided)
        compiled = torch.compile(doubled, fullgraph=True, backend="aot_eager")
        assert torch.equal(compiled(strided), 2 * strided)
    x = torch.randn(3, 1, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, 2, dtype=torch.float64)[:, 0].requires_grad_()
    for _ in range(3):
        assert torch.autograd.gradcheck(product_of_any, (x, y))
    batch = torch.randn(2, 4, dtype=torch.float64)
    found = torch.func.vmap(product_of_any, in_dims=(None, 0))(x.detach(), batch)
    assert torch.equal(found, x.detach() * batch[:, None])


@tessera.function("x[*n] -> out[*n / BLOCK], is_large[*n]: bool")
@tessera.jit
def cube_of(x, out, is_large, n, BLOCK: tl.constexpr = 128):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value * value * value, mask=i < n)
    tl.store(is_large + i, value > 1, mask=i < n)


@cube_of.backward
def cube_backward(grad_out, x):
    return 3 * grad_out * x * x


@cube_of.forward
def cube_forward(tangent_x, x):
    return 3 * tangent_x * x * x, None


def test_forward_derivatives() -> None:
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)

    def cube(x: Any) -> Any:
        return cube_of(x)[0]

    assert torch.autograd.gradcheck(cube, (x,), check_forward_ad=True)
    direction = torch.randn_like(x)
    value, tangent = torch.func.jvp(cube, (x.detach(),), (direction,))
    torch.testing.assert_close(tangent, 3 * direction * x.detach() ** 2)
    assert torch.equal(value, cube(x.detach()))
    row = x.detach()[0]
    torch.testing.assert_close(torch.func.jacfwd(cube)(row), torch.diag(3 * row**2))
    with pytest.raises(tessera.CompilationError, match="E076.*`tangent_y`, which is no argument"):
        cube_of.forward(lambda tangent_y: tangent_y)
    assert cube_of.forward_derivative is cube_forward


@pytest.mark.parametrize("autocast", [None, "float32", "lower"])
def test_autocast(autocast: Any) -> None:
    seen: list[Any] = []

    @tessera.function("x[*n], y[*n] -> out[*n / BLOCK]", autocast=autocast)
    @tessera.jit
    def product(x, y, out, n, BLOCK: tl.constexpr = 128):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * tl.load(y + i, mask=i < n), mask=i < n)

    @product.backward
    def product_backward(grad_out, x, y):
        seen.append(torch.is_autocast_enabled("cpu"))
        return grad_out * y, grad_out * x

    x, y = torch.randn(40), torch.randn(40)
    for _ in range(3):
        assert product(x, y).dtype == torch.float32  # also once calls are known
    compiled = torch.compile(lambda a, b: product(a, b), fullgraph=True, backend="aot_eager")
    wanted = {None: torch.float32, "float32": torch.float32, "lower": torch.bfloat16}[autocast]
    with torch.autocast("cpu", torch.bfloat16):
        assert product(x, y).dtype == compiled(x, y).dtype == wanted
        assert product(x.double(), y.double()).dtype == torch.float64
        if autocast is None:
            with pytest.raises(tessera.ArgumentError, match="E076"):
                product(x.bfloat16(), y)
        else:
            assert product(x.bfloat16(), y).dtype == compiled(x.bfloat16(), y).dtype == wanted
        leaves = x.clone().requires_grad_(), y.clone().requires_grad_()
        torch.autograd.backward(product(*leaves).float().sum())
    assert seen == [autocast is None]
    torch.testing.assert_close(leaves[0].grad, y, rtol=0.01, atol=0.01)
    assert leaves[0].grad.dtype == torch.float32
    assert product(x, y).dtype == torch.float32


def test_refusals() -> None:
    with pytest.raises(tessera.CompilationError, match="E076.*autocast='half'"):
        tessera.function("x[n] -> out[n]", autocast="half")
    x = torch.randn(4)
    with pytest.raises(tessera.ArgumentError, match="(?s)E057.*doubled.backward"):
        doubled(x.clone().requires_grad_())
    with pytest.raises(tessera.ArgumentError, match="E057.*no forward derivative"):
        torch.func.jvp(doubled, (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        with pytest.raises(tessera.ArgumentError, match="E057.*no forward derivative"):
            doubled(torch.autograd.forward_ad.make_dual(x, x))
        assert torch.equal(doubled(x), 2 * x)
    with pytest.raises(tessera.ArgumentError, match="E076.*has 3 for `n`"):
        scaled_product(x, x[:3], 2.0)
    for mixed in ((x, x.to("meta")), (x.to("meta"), x)):
        with pytest.raises(tessera.ArgumentError, match="E076.* is on meta, and `.` on cpu"):
            scaled_product(*mixed, 2.0)
    with pytest.raises(tessera.CompilationError, match="E076.*`gradient`, which is no argument"):
        doubled.backward(lambda gradient: gradient)

    @tessera.function("x[*n] -> out[*n / BLOCK]")
    @tessera.jit
    def tripled(x, out, n, BLOCK: tl.constexpr = 128):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)

    leaf = x.clone().requires_grad_()
    tripled.backward(lambda grad_out: (grad_out, grad_out))
    with pytest.raises(tessera.ArgumentError, match="E076.*returns 2 gradients"):
        tripled(leaf).sum().backward()
    tripled.backward(lambda grad_out: grad_out[:2])
    with pytest.raises(tessera.ArgumentError, match="E076.*gradient of shape"):
        tripled(leaf).sum().backward()
