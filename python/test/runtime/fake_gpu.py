# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of launches on a CUDA driver that only notes them down (fake_cuda.c) have in common.

Each test is a piece of Python for a process of its own, in which libcuda.so.1 is the fake
one and `torch` a module with as much of torch\'s tensors as a launch looks at.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

from runtime.fake_driver import build_fake_driver
from tessera.compiler.toolchain import find_ptxas

COMPILER = shutil.which("cc") or shutil.which("clang-22") or shutil.which("gcc")

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
    pytest.mark.skipif(not find_ptxas(), reason="there is no ptxas"),
    pytest.mark.skipif(sys.platform != "linux", reason="the driver is an ELF library"),
]

PRELUDE = '''
import ctypes, sys, types
from types import SimpleNamespace
from runtime.fake_driver import Launch

class Float32:
    def __str__(self): return "torch.float32"
Float32.__module__ = "torch"

class Tensor:
    """torch.Tensor on a GPU."""
    is_cpu, is_cuda = False, True
    dtype = Float32()
    def __init__(self, address=1 << 40, device=0):
        self.address, self.ordinal = address, device
        self.device = SimpleNamespace(type="cuda", index=device)
    def get_device(self): return self.ordinal
    def data_ptr(self): return self.address
Tensor.__module__ = "torch"

class Float16:
    def __str__(self): return "torch.float16"
Float16.__module__ = "torch"
half = Float16()

def array(address, dtype=half):
    tensor = Tensor(address)
    tensor.dtype = dtype
    return tensor

current = {0: 0, 1: 0}
torch = types.ModuleType("torch")
torch.Tensor = Tensor
torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: current[device])
torch.cuda = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 1)
sys.modules["torch"] = torch

import tessera, tessera.language as tl
assert not any("libcuda" in line for line in open("/proc/self/maps")), "import opened the driver"
fake = ctypes.CDLL("libcuda.so.1")
last = lambda: Launch.in_dll(fake, "fake_last")
number = lambda name: ctypes.c_int.in_dll(fake, "fake_" + name).value
def fail_with(code): ctypes.c_int.in_dll(fake, "fake_fail").value = code

@tessera.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)

def expect(error, id, *texts):
    import contextlib
    @contextlib.contextmanager
    def block():
        try:
            yield
        except error as caught:
            assert caught.id == id, str(caught)
            assert all(text in str(caught) for text in texts), str(caught)
        else:
            raise AssertionError("no " + error.__name__)
    return block()

# Launches that took the whole way: the first, which learns the dtype, and one a signature.
slow = []
before = tessera.JITFunction._run
def counted(*args):
    slow.append(1)
    return before(*args)
tessera.JITFunction._run = counted
x, y, out = Tensor((1 << 40) + 64), Tensor((1 << 40) + 128), Tensor((1 << 40) + 256)
'''


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the fake libcuda.so.1."""
    assert COMPILER is not None
    return build_fake_driver(tmp_path_factory.mktemp("driver"), COMPILER)


@pytest.fixture
def run(driver: str, tmp_path: pathlib.Path):
    def run(code: str) -> str:
        # A kernel's source is read from its file.
        script = tmp_path / "script.py"
        script.write_text(PRELUDE + textwrap.dedent(code))
        env = {
            **os.environ,
            "LD_LIBRARY_PATH": driver,
            "TESSERA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, env=env, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


HOST_TENSOR = """
        class HostTensor(Tensor):
            is_cpu, is_cuda = True, False
            def __init__(self, address):
                self.address = address
                self.device = SimpleNamespace(type="cpu", index=None)
        HostTensor.__module__, HostTensor.__name__ = "torch", "Tensor"
        pinned = 1 << 39  # as fake_cuda.c has it
        elsewhere = pinned + (1 << 38)
"""


MATMUL = """
        @tessera.jit
        def matmul(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc):
            i = tl.program_id(0) * 64 + tl.arange(0, 64)
            j, k = tl.program_id(1) * 64 + tl.arange(0, 64), tl.arange(0, 64)
            acc = tl.zeros((64, 64), dtype=tl.float32)
            for at in range(0, tl.cdiv(K, 64)):
                x = tl.load(a_ptr + i[:, None] * lda + (at * 64 + k)[None, :],
                            mask=(i[:, None] < M) & ((at * 64 + k)[None, :] < K), other=0.0)
                y = tl.load(b_ptr + (at * 64 + k)[:, None] * ldb + j[None, :],
                            mask=((at * 64 + k)[:, None] < K) & (j[None, :] < N), other=0.0)
                acc = tl.dot(x, y, acc)
            tl.store(c_ptr + i[:, None] * ldc + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))

        a, b, c = array(1 << 40), array((1 << 40) + (1 << 26)), Tensor((1 << 40) + (1 << 27))
        def launch(m, n, k, **options):
            return matmul[(-(-m // 64), -(-n // 64))](a, b, c, m, n, k, 1 << 15, 8192, 4096, **options)
"""


MATMUL_OF_TILES = """
        @tessera.jit
        def matmul(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr):
            i = tl.program_id(0) * BM + tl.arange(0, BM)
            j, k = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, 64)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for at in range(0, K, 64):
                x = tl.load(a_ptr + i[:, None] * lda + (at + k)[None, :],
                            mask=(i[:, None] < M) & ((at + k)[None, :] < K), other=0.0)
                y = tl.load(b_ptr + (at + k)[:, None] * ldb + j[None, :],
                            mask=((at + k)[:, None] < K) & (j[None, :] < N), other=0.0)
                acc = tl.dot(x, y, acc)
            tl.store(c_ptr + i[:, None] * ldc + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))
"""
