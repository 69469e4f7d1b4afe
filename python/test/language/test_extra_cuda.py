# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What NVIDIA's GPUs alone have, and how a kernel asks what it is compiled for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl

NAMES = ("num_threads", "num_warps", "smid", "globaltimer", "gdc_wait", "gdc_launch_dependents")


@tessera.jit
def sizes(p):
    tl.store(p, tl.extra.cuda.num_threads())
    tl.store(p + tl.arange(0, tl.extra.cuda.num_warps()), tl.extra.cuda.num_threads())


@tessera.jit
def registers(p, q):
    tl.store(p, tl.extra.cuda.smid())
    start = tl.extra.cuda.globaltimer()
    tl.store(q, tl.extra.cuda.globaltimer() - start)


@tessera.jit
def dependent(p):
    tl.extra.cuda.gdc_wait()
    tl.store(p, tl.load(p) + 1)
    tl.extra.cuda.gdc_launch_dependents()


@tessera.jit
def any_of_them(p, NAME: tl.constexpr):
    getattr(tl.extra.cuda, NAME)()


@tessera.jit
def guarded(p):
    target = tl.target_info.current_target()
    if tl.target_info.is_cuda():
        if tl.target_info.cuda_capability_geq(9):
            tl.extra.cuda.gdc_wait()
            tl.store(p, 2)
        else:
            tl.store(p, 1)
        tl.static_assert(target.backend == "cuda" and target.warp_size == 32)
    else:
        tl.static_assert(target.backend == "cpu" and not tl.target_info.is_hip())
        tl.store(p, 3)


def assembly(kernel: Any, signature: str, target: str = "sm_90a", **options: Any) -> str:
    return str(tessera.compile(kernel, signature, target=target, **options).asm["ptx"])


def test_registers_of_the_gpu() -> None:
    text = assembly(registers, "*i32, *i64")
    assert re.search(r"mov\.u32 +%r\d+, %smid;", text)
    assert len(re.findall(r"mov\.u64 +%rd\d+, %globaltimer;", text)) == 2


def test_dependent_launches() -> None:
    text = assembly(dependent, "*i32")
    wait, load = text.index("griddepcontrol.wait"), text.index("ld.global")
    launch, store = text.index("griddepcontrol.launch_dependents"), text.index("st.global")
    assert wait < load < store < launch


@pytest.mark.parametrize("warps", [1, 4])
def test_sizes_of_a_program(warps: int) -> None:
    x = np.zeros(4, np.int32)
    tessera.gpu.simulate(sizes)[(1,)](x, num_warps=warps).check()
    assert list(x) == [32 * warps] * warps + [0] * (4 - warps)


@pytest.mark.parametrize("name", NAMES)
def test_the_cpu_has_none_of_them(name: str) -> None:
    for run in (any_of_them, tessera.interpret(any_of_them)):
        with pytest.raises(
            tessera.CompilationError, match=f"`{name}` exists on NVIDIA GPUs only"
        ) as e:
            run[(1,)](np.zeros(1, np.int32), name)
        assert e.value.id == "E030"


def test_an_older_gpu_has_no_dependent_launches() -> None:
    with pytest.raises(tessera.CompilationError, match="needs compute capability 9.0") as caught:
        assembly(dependent, "*i32", "sm_80")
    assert caught.value.id == "E030"


def test_the_target_decides() -> None:
    x = np.zeros(1, np.int32)
    for run in (guarded, tessera.interpret(guarded)):
        x[0] = 0
        run[(1,)](x)
        assert x[0] == 3
    assert "griddepcontrol" in assembly(guarded, "*i32")
    assert "griddepcontrol" not in assembly(guarded, "*i32", "sm_86")


def test_outside_of_kernels() -> None:
    target = tl.target_info.current_target()
    assert target.backend == ("cuda" if tl.target_info.is_cuda() else "cpu")
    assert not tl.target_info.is_hip() and not tl.target_info.is_hip_cdna3()
    if target.backend == "cpu":
        assert not tl.target_info.cuda_capability_geq(8)
