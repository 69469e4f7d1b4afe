# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inductor's kernels compiled for a GPU, too, that need not be there, as torch's static launcher takes
them."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")

from tessera.compiler.toolchain import find_ptxas

pytestmark = [
    pytest.mark.usefixtures("fresh_compiler"),
    pytest.mark.skipif(not find_ptxas(), reason="there is no ptxas"),
]


@pytest.fixture
def kernels(monkeypatch, tmp_path):
    """What Inductor has compiled for the CPU within a test, for sm_90a."""
    import triton
    from torch._inductor.runtime import triton_heuristics
    from triton.backends.compiler import GPUTarget

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    found = []
    compile_for_cpu = triton.compile

    def compile_for_both(src, target=None, options=None, **more):
        for_gpu = {**options, "launch_cooperative_grid": False, "launch_pdl": False}
        found.append(compile_for_cpu(src, target=GPUTarget("cuda", 90, 32), options=for_gpu))
        return compile_for_cpu(src, target=target, options=options, **more)

    monkeypatch.setattr(triton_heuristics.triton, "compile", compile_for_both)
    with torch._inductor.config.patch(fx_graph_cache=False):
        yield found


def check(kernel) -> str:
    """That torch's launcher takes it; the arguments that the launcher passes."""
    from triton.runtime.cache import _base32

    launchers = pytest.importorskip("torch._inductor.runtime.static_triton_launcher")
    folder = os.path.join(os.environ["TRITON_CACHE_DIR"], _base32(kernel.hash))
    kernel._cubin_path = os.path.join(folder, f"{kernel.src.fn.__name__}.cubin")
    with open(kernel._cubin_path, "rb") as file:
        assert file.read() == kernel.asm["cubin"]
    assert kernel.n_spills == 0 and 0 < kernel.n_regs <= 255
    # What it parses without CUDA, of which the constructor of the class for it loads more.
    launcher = launchers.StaticallyLaunchedCudaKernel.__new__(
        launchers.StaticallyLaunchedCudaKernel
    )
    launchers.StaticallyLaunchedTritonKernel.__init__(launcher, kernel)
    assert launcher.num_warps == kernel.metadata.num_warps
    assert launcher.shared == kernel.metadata.shared
    assert not launcher.has_global_scratch and not launcher.has_profile_scratch
    launcher.module = None
    return launcher.arg_tys


def test_pointwise_and_sums(kernels) -> None:
    compiled = torch.compile(lambda x: torch.softmax(x * 2, -1).sum(0), backend="tessera")
    x = torch.randn(40, 3000)
    torch.testing.assert_close(compiled(x), torch.softmax(x * 2, -1).sum(0))
    assert kernels
    for kernel in kernels:
        # Pointers, then the extents of the kernel, which are numbers of 32 bits.
        arguments = check(kernel)
        assert arguments.startswith("O") and set(arguments) <= set("Oi")


def test_a_template_of_a_matmul(kernels) -> None:
    options = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
    function = lambda x, y: torch.nn.functional.gelu(x @ y)  # noqa: E731
    compiled = torch.compile(function, backend="tessera", options=options)
    x, y = torch.randn(64, 128), torch.randn(128, 64)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, y), function(x, y), rtol=1e-4, atol=1e-4)
    templates = [kernel for kernel in kernels if "tem" in kernel.src.fn.__name__]
    assert templates and all(check(kernel) == "OOO" for kernel in templates)
    assert any(kernel.metadata.shared > 0 for kernel in templates)


def test_the_template_of_flex_attention(kernels) -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cpu")
    compiled = torch.compile(flex.flex_attention, backend="tessera")
    q, k, v = torch.randn(3, 1, 2, 256, 64, dtype=torch.bfloat16)
    with torch.no_grad():
        found = compiled(q, k, v, block_mask=mask)
        exact = flex.flex_attention(q.double(), k.double(), v.double(), block_mask=mask)
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=3e-2)
    templates = [kernel for kernel in kernels if "tem" in kernel.src.fn.__name__]
    assert templates and all(kernel.n_spills == 0 for kernel in templates)
    assert any(kernel.metadata.shared > 0 for kernel in templates)
    for kernel in templates:
        check(kernel)
