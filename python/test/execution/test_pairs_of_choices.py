# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dots on tensor cores for every pair of choices: types, layouts, blocks, warps, stages,
tails, TMA and the target, on the simulator and on a GPU.

All combinations would be tens of thousands. Each two choices meet in one case at least: most
bugs need no more than two.
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from execution import on_gpu
from execution.test_tensor_cores import lay_out, matmul

import tessera
import tessera.gpu
import tessera.language as tl

CHOICES: dict[str, list[Any]] = {
    "types": ["f16", "bf16", "f32", "f64", "i8", "e4m3", "e5m2", "e4m3 e5m2", "f16 into f16"],
    "transposed": [(False, False), (False, True), (True, False), (True, True)],
    "block": [(64, 64, 32), (128, 64, 64), (64, 128, 32), (128, 192, 32), (16, 64, 64),
              (96, 48, 32), (64, 24, 64), (192, 96, 32), (32, 16, 96),
              (8, 64, 32)],
    "warps": [1, 2, 4, 8, 16],
    "stages": [1, 2, 3, 5],
    # What the extents are beyond one block and two steps: of that, rows of 16 bytes or not.
    "tail": ["none", "aligned", "odd", "no k"],
    "maps": [True, False],
    "target": ["sm_90a", "sm_80"],
}  # fmt: skip

KINDS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}
BYTES = {"e4m3": tl.float8e4nv, "e5m2": tl.float8e5}


def is_too_large(case: dict[str, Any]) -> bool:
    """Where registers alone make it slow: not what this is about."""
    m, n, _ = case.get("block", (1, 1, 1))
    return m * n // case.get("warps", 16) > 8192


def pairs_of(case: dict[str, Any]) -> set[Any]:
    """Every two choices of a case."""
    chosen = sorted((name, CHOICES[name].index(value)) for name, value in case.items())
    return set(itertools.combinations(chosen, 2))


def all_pairs() -> set[Any]:
    pairs: set[Any] = set()
    for one, two in itertools.combinations(CHOICES, 2):
        for x, y in itertools.product(CHOICES[one], CHOICES[two]):
            if not is_too_large({one: x, two: y}):
                pairs |= pairs_of({one: x, two: y})
    return pairs


def choose_cases() -> list[dict[str, Any]]:
    """Cases in which every two choices meet, found greedily."""
    missing = all_pairs()
    rng = np.random.default_rng(1)
    cases: list[dict[str, Any]] = []
    while missing:
        (one, i), (two, j) = min(missing)
        best: dict[str, Any] = {}
        for _ in range(40):
            case = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
            case |= {one: CHOICES[one][i], two: CHOICES[two][j]}
            if not is_too_large(case):
                best = max(best, case, key=lambda case: len(missing & pairs_of(case)))
        cases.append(best)
        missing -= pairs_of(best)
    return cases


CASES = choose_cases()


def name_of(case: dict[str, Any]) -> str:
    return "-".join(str(value).replace(" ", "") for value in case.values())


@pytest.mark.parametrize("where", ["simulator", "cuda"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_dots(rng, case, where):
    if where == "cuda" and not on_gpu.has_gpu():
        pytest.skip("this machine has no GPU")
    first, *rest = case["types"].split(" into ")[0].split()
    second = rest[0] if rest else first
    m, n, k = case["block"]
    M, N, K = {
        "none": (m, n, 2 * k),
        "aligned": (m + 16, n - 8, 2 * k + 16),
        "odd": (m - 3, n + 5, 2 * k + 7),
        "no k": (m, n, 0),
    }[case["tail"]]
    a = rng.integers(-2, 3, (M, K)).astype(KINDS[first])
    b = rng.integers(-2, 3, (K, N)).astype(KINDS[second])
    # At most 4 * 2 * 96 + 28: a float16.
    want = a.astype(np.float64) @ b.astype(np.float64)
    into = np.float16 if "into" in case["types"] else np.float32
    into = {"i8": np.int32, "f64": np.float64}.get(first, into)
    c = np.full((M, N), 99, into)
    given = [x.view(np.uint8) if kind in BYTES else x for x, kind in ((a, first), (b, second))]
    (x, am, ak), (y, bk, bn) = (
        lay_out(x, is_transposed) for x, is_transposed in zip(given, case["transposed"])
    )
    arguments = (x, y, c, M, N, K, am, ak, bk, bn)
    options = {
        "BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "A": BYTES.get(first), "B": BYTES.get(second),
        "OUT": getattr(tl, np.dtype(into).name), "num_warps": case["warps"],
        "num_stages": case["stages"], "tensor_maps": case["maps"],
    }  # fmt: skip
    grid = (tessera.cdiv(M, m), tessera.cdiv(N, n))
    if where == "cuda":
        on_gpu.launch(matmul, grid, arguments, options)
    else:
        tessera.gpu.simulate(matmul)[grid](*arguments, **options, target=case["target"]).check()
    np.testing.assert_array_equal(c, want)


def test_every_two_choices_meet():
    assert set().union(*map(pairs_of, CASES)) >= all_pairs()
