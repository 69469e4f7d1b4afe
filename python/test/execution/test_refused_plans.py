# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan that a verifier refuses makes way for a simpler one, down to none.

Compilations here are told to take the first plans of each loop for refused (`refused_plans`)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.compiler.options import CompileOptions
from tessera.settings import settings

TARGETS = ("sm_80", "sm_90a")


@tessera.jit
def product(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    i, j, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):  # told
        a = tl.load(a_ptr + i[:, None] * K + (k + ks)[None, :])
        b = tl.load(b_ptr + (k + ks)[:, None] * N + j[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc)


@tessera.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, length, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    top = tl.full((M,), -float("inf"), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, length, N):
        at = (start + n)[:, None] * D + d[None, :]
        s = tl.dot(q, tl.trans(tl.load(k_ptr + at)))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        acc = tl.dot(p.to(tl.float16), tl.load(v_ptr + at), acc * tl.exp(top - new)[:, None])
        top = new
    tl.store(o_ptr + m[:, None] * D + d[None, :], acc)


@tessera.jit
def sum_rows(x_ptr, o_ptr, rows, N: tl.constexpr):
    n = tl.arange(0, N)
    for row in range(0, rows):
        x = tl.load(x_ptr + row * N + n)
        tl.store(o_ptr + row * N + n, x - tl.sum(x, 0) / N)


PRODUCT = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 64, 64"


@pytest.fixture
def without_ptxas():
    with settings.override(ptxas="driver", cache="off"):
        yield


def check(
    kernel: Any,
    arguments: list[Any],
    constants: dict[str, int],
    tolerance: float = 0,
    **options: Any,
) -> None:
    """Simulated code gives what the interpreter does, and is clean."""
    expected = [item.copy() if isinstance(item, np.ndarray) else item for item in arguments]
    tessera.interpret(kernel)[(1,)](*expected, **constants)
    tessera.gpu.simulate(kernel)[(1,)](*arguments, **constants, **options).check()
    for got, want in zip(arguments, expected):
        if isinstance(got, np.ndarray):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.fixture
def refuse(monkeypatch):
    """Takes the first plans of each loop for refused."""

    def set_refused(plans: int, strict: bool = False) -> None:
        original = functools.partial(core_json, refused_plans=plans)
        monkeypatch.setattr(
            CompileOptions, "core_json", lambda self, **more: original(self, **more)
        )
        settings.strict_schedules = strict

    core_json = CompileOptions.core_json
    with settings.override(cache="off"), settings.override(strict_schedules=False):
        yield set_refused


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("plans", (1, 2))
def test_a_simpler_plan_computes_the_same(rng, refuse, target, plans):
    refuse(plans)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((64, 192), (192, 64)))
    arguments = [a, b, np.zeros((64, 64), np.float32), 192]
    check(product, arguments, {"M": 64, "N": 64, "BK": 64}, target=target)
    q, k, v = (
        rng.standard_normal(shape).astype(np.float16) for shape in ((64, 64), (192, 64), (192, 64))
    )
    arguments = [q, k, v, np.zeros((64, 64), np.float32), 192]
    check(attend, arguments, {"D": 64, "M": 64, "N": 64}, 2e-2, target=target)
    x = rng.integers(-8, 8, (5, 4096)).astype(np.float32)
    check(sum_rows, [x, np.zeros_like(x), 5], {"N": 4096}, target=target)


def test_a_refused_plan_is_told_and_makes_way_for_the_next(without_ptxas, refuse):
    for plans in (0, 1, 2):
        refuse(plans)
        kernel = tessera.compile(product, PRODUCT, target="sm_90a")
        assert ("tilegpu.tma_load" in kernel.asm["tilegpu"]) == (plans < 2)
        assert "tilegpu.async_copy" not in kernel.asm["tilegpu"]
        told = [remark for remark in kernel.remarks if remark.kind == "schedule-refused"]
        names = [remark.values["schedule"] for remark in told]
        kinds = ("copies by TMA", "asynchronous copies")
        assert names == [
            f"{kind}{ending}"
            for kind in (kinds if plans == 2 else kinds[:1])
            for ending in ("", ", without dots in flight")[:plans]
        ]
        assert all(remark.values["reason"] == "is refused for a test" for remark in told)
        assert all(remark.file == __file__ and remark.line for remark in told)


def test_a_refused_plan_is_an_error_for_tests(without_ptxas, refuse):
    refuse(1, strict=True)
    with pytest.raises(tessera.InternalError, match="is refused for a test"):
        tessera.compile(product, PRODUCT, target="sm_90a")
