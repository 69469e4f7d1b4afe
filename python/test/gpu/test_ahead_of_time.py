# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are compiled ahead of time, launched by their runtime in C on a GPU."""

from __future__ import annotations

import ctypes

import pytest

from aot.test_limits import BLOCKED, CC, POWERS, link, matmul, powers
from tessera.aot.build import Request, build_library
from tessera.machine.gpus import gpu_machines

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(CC is None, reason="there is no C compiler")


def build(folder, kernel, signature, **options):
    """The C function of a kernel; what is passed are tensors and integers."""
    major, minor = torch.cuda.get_device_capability()
    target = (
        f"sm_{major}{minor}a" if f"sm_{major}{minor}a" in gpu_machines() else f"sm_{major}{minor}"
    )
    library = build_library("k", [Request(kernel, (signature,))], [target], folder, **options)
    code = ctypes.CDLL(str(link(library, folder)))
    code.tessera_error_text.restype = ctypes.c_char_p

    def call(grid, *arguments):
        class Launch(ctypes.Structure):
            _fields_ = [
                ("grid", ctypes.c_int32 * 3),
                ("num_threads", ctypes.c_int32),
                ("stream", ctypes.c_void_p),
            ]

        launch = Launch(grid, 0, torch.cuda.current_stream().cuda_stream)
        given = [
            ctypes.c_int32(each) if isinstance(each, int) else ctypes.c_void_p(each.data_ptr())
            for each in arguments
        ]
        status = getattr(code, kernel.__name__)(ctypes.byref(launch), *given)
        assert status == 0, code.tessera_error_text()

    return call


@pytest.mark.parametrize("options", [{}, {"num_ctas": 2}, {"tensor_maps": False}], ids=str)
@pytest.mark.parametrize(
    "M, N, K, more",
    [(2048, 2048, 1024, 0), (304, 208, 80, 0), (256, 256, 64, 12), (256, 128, 0, 0)],
)
def test_a_matmul(tmp_path, options, M: int, N: int, K: int, more: int) -> None:
    call = build(tmp_path, matmul, BLOCKED, num_warps=8, **options)
    a = torch.randn(M, max(K, 16), device="cuda", dtype=torch.float16)
    b = torch.randn(max(K, 16), N, device="cuda", dtype=torch.float16)
    c = torch.full((M, N), torch.nan, device="cuda", dtype=torch.float16)
    programs = -(-M // 128) * -(-N // 128)
    # Programs beyond the last tile have columns beyond the array, which are masked off.
    call((programs + more, 1, 1), a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0))
    wanted = a[:, :K].float() @ b[:K].float()
    torch.testing.assert_close(c.float(), wanted, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("kind", ["apart", "same"])
def test_arrays_that_overlap(tmp_path, kind: str) -> None:
    call = build(tmp_path, powers, POWERS, num_stages=3)
    w = torch.eye(64, device="cuda", dtype=torch.float16).roll(1, 0) * 2
    x = torch.randint(-2, 3, (64, 64), device="cuda").half()
    y = x.clone() if kind == "same" else torch.empty_like(x)
    call((1, 1, 1), w, y if kind == "same" else x, y, 64, 3)
    wanted = x
    for _ in range(3 if kind == "same" else 1):
        wanted = w @ wanted
    assert torch.equal(y, wanted)
