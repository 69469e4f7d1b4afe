# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inductor's templates of matmuls, convolutions and flex attention, on CPUs and on a GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
pytestmark = [
    pytest.mark.usefixtures("fresh_compiler"),
    pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_gpu)]),
]


def code_of(function, *args):
    """The result, and the code that Inductor made."""
    from torch._inductor.utils import run_and_get_code

    result, codes = run_and_get_code(function, *args)
    return result, "".join(codes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_matmuls(device, dtype) -> None:
    options = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
    compiled = torch.compile(torch.bmm, backend="tessera", options=options)
    x, y = torch.randn(2, 16, 32), torch.randn(2, 32, 16)
    with torch.no_grad():
        result, code = code_of(compiled, x.to(device, dtype), y.to(device, dtype))
    assert "triton_tem" in code
    unit = 1e-4 if dtype == torch.float32 else 4e-2
    wanted = torch.bmm(x.to(dtype).double(), y.to(dtype).double())
    torch.testing.assert_close(result.double().cpu(), wanted, rtol=unit, atol=unit)


def test_a_matmul_with_what_follows_it(device) -> None:
    options = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU()).to(device)
    x = torch.randn(192, 128, device=device)
    with torch.no_grad():
        result, code = code_of(torch.compile(model, backend="tessera", options=options), x)
        torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-4)
    assert "triton_tem" in code


@pytest.mark.parametrize("stride, groups, shape", [(1, 1, (2, 16, 12, 12)), (2, 2, (16, 12, 12))])
def test_convolutions_with_a_bias(device, stride, groups, shape) -> None:
    options = {"max_autotune": True, "max_autotune_conv_backends": "TRITON"}
    model = torch.nn.Conv2d(16, 32, 3, padding=1, stride=stride, groups=groups).to(device)
    compiled = torch.compile(model, backend="tessera", options=options)
    x = torch.randn(shape, device=device)
    with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):
        result, code = code_of(compiled, x)
        torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-4)
    assert "triton_tem" in code


@pytest.mark.parametrize(
    "queries, keys, dtype", [(96, 96, torch.float32), (1, 200, torch.bfloat16)]
)
def test_flex_attention(device, queries, keys, dtype) -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    mask = flex.create_block_mask(
        lambda b, h, q, k: q + (keys - queries) >= k, None, None, queries, keys, device=device
    )

    def attend(q, k, v):
        return flex.flex_attention(q, k, v, lambda s, b, h, q, k: s + 0.1 * (k - q), mask)

    compiled = torch.compile(attend, backend="tessera", fullgraph=True)
    q, k, v = (torch.randn(2, 2, n, 32, dtype=dtype, device=device) for n in (queries, keys, keys))
    with torch.no_grad():
        result, code = code_of(compiled, q, k, v)
        exact = attend(q.double(), k.double(), v.double())
    assert "triton_tem" in code and "cpp_" not in code
    unit = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(result.double(), exact, rtol=0, atol=unit)


def test_gradients_of_flex_attention(device) -> None:
    if device == "cpu":
        pytest.skip("torch has them for GPUs alone")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device=device)
    compiled = torch.compile(flex.flex_attention, backend="tessera", fullgraph=True)
    values = torch.randn(3, 1, 2, 256, 64, device=device, dtype=torch.bfloat16)

    def gradients(attend, dtype):
        leaves = [x.to(dtype).requires_grad_() for x in values]
        attend(*leaves, block_mask=mask).square().sum().backward()
        return [x.grad.double() for x in leaves]

    wanted = gradients(flex.flex_attention, torch.float64)
    for found, exact in zip(gradients(compiled, torch.bfloat16), wanted):
        assert (found - exact).norm() < 2e-2 * exact.norm()
