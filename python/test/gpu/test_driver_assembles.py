# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that the driver assembles, as where there is no ptxas: values, facts, the cache."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import tessera
import tessera.language as tl
from tessera.compiler.toolchain import find_ptxas, miscompiles
from tessera.settings import settings

pytestmark = pytest.mark.gpu


@pytest.fixture
def torch() -> Iterator[Any]:
    module = pytest.importorskip("torch")
    with settings.override(ptxas="driver", cache="off"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield module


@tessera.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * n + i, e / tl.sum(e), mask=i < n)


@tessera.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BLOCK: tl.constexpr, K_BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, K_BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for at in range(0, K, K_BLOCK):
        a = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * N + j[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + i[:, None] * N + j[None, :], acc)


@tessera.jit
def order(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))


def test_rows(torch: Any) -> None:
    for n, block in ((1000, 1024), (4096, 4096)):
        x = torch.randn(33, n, device="cuda")
        out = torch.full_like(x, float("nan"))
        kernel = softmax[(33,)](x, out, n, BLOCK=block)
        torch.testing.assert_close(out, torch.softmax(x.double(), 1).float(), rtol=1e-5, atol=1e-8)
        assert kernel.metadata["assembler"] == "driver" and "cubin" not in kernel.asm
        assert kernel.n_regs > 8 and kernel.n_spills == 0


@pytest.mark.parametrize("tensor_maps", [True, False])
def test_matmul(torch: Any, tensor_maps: bool) -> None:
    a = torch.randn(256, 320, device="cuda").half()
    b = torch.randn(320, 256, device="cuda").half()
    out = torch.full((256, 256), float("nan"), device="cuda")
    kernel = matmul[(2, 2)](
        a, b, out, 256, 256, 320, BLOCK=128, K_BLOCK=64, num_warps=8, tensor_maps=tensor_maps
    )
    assert (out - a.double() @ b.double()).abs().max() < 1e-2
    facts = kernel._kernel.device_facts(0)
    assert facts["num_registers"] == kernel.n_regs and "C7510" not in facts["log"], facts


def test_what_goes_through_shared_memory(torch: Any) -> None:
    x = torch.randn(2048, device="cuda")
    out = torch.full_like(x, float("nan"))
    order[(1,)](x, out, BLOCK=2048)
    assert torch.equal(out, x.sort().values)


def test_it_gives_the_bits_that_ptxas_gives(torch: Any) -> None:
    x = torch.randn(64, 1024, device="cuda")
    outs = []
    for ptxas, assembler in (("driver", "driver"), ("", "")):
        with settings.override(ptxas=ptxas):
            if not ptxas and not find_ptxas():
                pytest.skip("there is no ptxas")
            kernel = tessera.compile(softmax, "*fp32:16, *fp32:16, i32:16, 1024", target="cuda")
        assert (kernel.metadata["assembler"] == "driver") == bool(assembler)
        outs.append(torch.full_like(x, float("nan")))
        kernel[(64,)](x, outs[-1], 1024)
    assert torch.equal(*outs)


def test_registers_that_no_thread_has_are_a_users_mistake(torch: Any) -> None:
    """A result of which each thread would hold more than there are registers."""
    a = torch.randn(256, 64, device="cuda").half()
    b = torch.randn(64, 256, device="cuda").half()
    out = torch.empty(256, 256, device="cuda")
    try:
        kernel = matmul[(1, 1)](
            a, b, out, 256, 256, 64, BLOCK=256, K_BLOCK=64, num_warps=4, maxnreg=64
        )
    except tessera.LaunchError as error:
        assert error.id == "E066" and "kernel 'matmul'" in str(error)
        assert "use more warps" in str(error)
    else:
        assert kernel.n_spills > 0
        assert (out - a.double() @ b.double()).abs().max() < 1e-2


SCRIPT = """
    import warnings
    import torch
    import tessera
    from gpu.test_driver_assembles import softmax
    from tessera.compiler import compile as compiling
    from tessera.compiler.toolchain import ToolchainWarning

    made = []
    compile_module = compiling._compile
    compiling._compile = lambda *args, **more: made.append(1) or compile_module(*args, **more)
    x = torch.randn(4, 512, device="cuda")
    out = torch.full_like(x, float("nan"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        softmax[(4,)](x, out, 512, BLOCK=512)
        softmax[(4,)](x, out, 512, BLOCK=1024)
    torch.testing.assert_close(out, torch.softmax(x, 1))
    texts = [str(item.message) for item in caught if item.category is ToolchainWarning]
    print(len(made), texts)
"""


def test_a_new_process_finds_the_ptx_on_the_disk(torch: Any, tmp_path: Any) -> None:
    import os

    from tessera import _C

    version = _C.cuda_device_info(0)["driver_version"]
    bad = miscompiles(f"{version // 1000}.{version % 1000 // 10}")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {
        **os.environ,
        "TESSERA_PTXAS": "driver",
        "TESSERA_CACHE": "rw",
        "TESSERA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert [line[0] for line in said] == ["2", "0"]
    for line in said:
        assert line.count("is known to miscompile") == bad, line
