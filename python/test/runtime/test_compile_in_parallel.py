# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels compiled at once, by threads of one process: nothing is shared, nothing mixed up."""

from __future__ import annotations

import pathlib
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tessera
import tessera.language as tl
from tessera.compiler import compile as compiling
from tessera.compiler import toolchain
from tessera.settings import settings

pytestmark = pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")


@tessera.jit
def normalize(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + tl.program_id(0) * n + i, e / tl.sum(e), mask=i < n)


def build(block: int) -> Any:
    return tessera.compile(normalize, f"*fp32:16, *fp32:16, i32:16, {block}", target="sm_90a")


@tessera.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


@tessera.jit
def dot(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + i * n + j).to(tl.float16)
    tl.store(out_ptr + i * n + j, tl.dot(x, x))


@tessera.jit
def order(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i, mask=i < n, other=0.0)))


@tessera.jit
def running(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


# A ptxas that does not go on before five of them run at once: were there a lock around any part
# of a compilation from the front-end to the cubin, four would wait for the first for ever.
RENDEZVOUS = """
    import os, pathlib, sys, time
    here = pathlib.Path(__file__).parent
    (here / f"came-{{os.getpid()}}").touch()
    end = time.monotonic() + 60
    while len(list(here.glob("came-*"))) < {count}:
        if time.monotonic() > end:
            (here / "late").touch()
            sys.exit("the others never came")
        time.sleep(0.005)
    os.execv({ptxas!r}, [{ptxas!r}, *sys.argv[1:]])
"""


def test_five_compilations_are_in_ptxas_at_once(tmp_path: pathlib.Path) -> None:
    kernels = [normalize, total, dot, order, running]
    signature = "*fp32:16, *fp32:16, i32:16, 64"

    def build(kernel: Any) -> Any:
        return tessera.compile(kernel, signature, target="sm_90a").asm["cubin"]

    alone = [build(kernel) for kernel in kernels]
    script = tmp_path / "ptxas"
    text = textwrap.dedent(RENDEZVOUS).format(count=5, ptxas=toolchain.find_ptxas())
    script.write_text(f"#!{sys.executable}\n{text}")
    script.chmod(0o755)
    with settings.override(ptxas=str(script), ptxas_timeout=120):
        with ThreadPoolExecutor(5) as pool:
            together = list(pool.map(build, kernels))
    assert together == alone
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("one_function", [False, True])
def test_launches_compile_at_once(tmp_path: pathlib.Path, one_function: bool) -> None:
    """As above by the way of a launch: five kernels, and five variants of one."""
    kernels = [normalize] * 5 if one_function else [normalize, total, dot, order, running]
    script = tmp_path / "ptxas"
    text = textwrap.dedent(RENDEZVOUS).format(count=5, ptxas=toolchain.find_ptxas())
    script.write_text(f"#!{sys.executable}\n{text}")
    script.chmod(0o755)

    def warm(index: int) -> Any:
        block = 128 << index if one_function else 64  # each of which is new
        types = (tl.float32, tl.float32, 16)
        return kernels[index].warmup(*types, BLOCK=block, target="sm_90a").asm["cubin"]

    with settings.override(ptxas=str(script), ptxas_timeout=120, cache="off"):
        with ThreadPoolExecutor(5) as pool:
            assert len(set(pool.map(warm, range(5)))) == 5
    assert not (tmp_path / "late").exists()


def test_threads_that_want_one_kernel_compile_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    compile_module = compiling._compile
    monkeypatch.setattr(
        compiling, "_compile", lambda *args, **more: made.append(1) or compile_module(*args, **more)
    )
    types = (tl.float32, tl.float32, 16)

    def warm(_: int) -> Any:
        return total.warmup(*types, BLOCK=2048, target="sm_90a")

    with settings.override(cache="off"), ThreadPoolExecutor(5) as pool:
        kernels = list(pool.map(warm, range(5)))
    assert len(made) == 1 and all(kernel is kernels[0] for kernel in kernels)


def test_threads_compile_what_one_compiles():
    blocks = [128 << index for index in range(6)]
    alone = [build(block).asm["cubin"] for block in blocks]
    with ThreadPoolExecutor(len(blocks)) as pool:
        together = [kernel.asm["cubin"] for kernel in pool.map(build, blocks)]
    assert together == alone
    assert len(set(alone)) == len(blocks)
