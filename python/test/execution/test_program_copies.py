# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that a program loads once, copied by the producer of a persistent kernel.

The simulator has two blocks for all programs of a persistent kernel, and lets copies arrive when
the seed says.
"""

from __future__ import annotations

import numpy as np
import pytest
from execution import on_gpu

import tessera
import tessera.gpu
import tessera.language as tl

LOG2E = 1.4426950408889634


@tessera.jit
def attend(
    q_ptr, k_ptr, v_ptr, o_ptr, T, S, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
    SCALED: tl.constexpr = False, AGAIN: tl.constexpr = False, BRANCH: tl.constexpr = False,
    CAUSAL: tl.constexpr = False,
):  # fmt: skip
    if BRANCH and tl.program_id(0) * BM >= T:
        return
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, ds = tl.arange(0, BN), tl.arange(0, D)
    head = tl.program_id(1)
    at = head * T * D + rows[:, None] * D + ds[None, :]
    q = tl.load(q_ptr + at)
    if SCALED:
        q = (q * 2.0).to(q.dtype)
    most = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else S
    for start in range(0, end, BN):
        k = tl.load(k_ptr + head * S * D + (start + columns)[None, :] * D + ds[:, None])
        s = tl.dot(q, k)
        if CAUSAL:
            s = tl.where(rows[:, None] >= (start + columns)[None, :], s, float("-inf"))
        new = tl.maximum(most, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - new[:, None])
        alpha = tl.exp2(most - new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + head * S * D + (start + columns)[:, None] * D + ds[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        most = new
    result = acc / total[:, None]
    if AGAIN:
        # Another one that looks at the tile, behind the loop.
        result += tl.dot(q, tl.trans(q)) if BM == D else 0.0
    tl.store(o_ptr + at, result.to(o_ptr.dtype.element_ty))


def by_numpy(q, k, v, again=False, causal=False):
    q, k, v = (x.astype("f8") for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) * q.shape[-1] ** -0.5
    if causal:
        scores = np.where(np.tri(*scores.shape[1:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True)) if k.shape[1] else scores
    with np.errstate(invalid="ignore"):
        result = weights @ v / weights.sum(-1, keepdims=True)
    return result + (q @ q.transpose(0, 2, 1) if again else 0.0)


@pytest.fixture(params=["simulator", "cuda"])
def target(request):
    if request.param == "cuda" and not on_gpu.has_gpu():
        pytest.skip("there is no GPU")
    return request.param


def run(rng, target, heads, T, S, seed=0, same=False, warps=8, BN=64, stages=2, **constants):
    D, BM = 128, 128
    q = rng.standard_normal((heads, T, D)).astype("f2") / 4
    k, v = (rng.standard_normal((heads, S, D)).astype("f2") for _ in range(2))
    expected = by_numpy(
        2 * q if constants.get("SCALED") else q,
        k,
        v,
        constants.get("AGAIN"),
        constants.get("CAUSAL"),
    )
    o = q if same else np.full_like(q, np.nan)
    grid, arguments = (T // BM, heads), (q, k, v, o, T, S, D**-0.5 * LOG2E)
    options = {"BM": BM, "BN": BN, "D": D, "num_stages": stages, "num_warps": warps, **constants}
    if target == "cuda":
        on_gpu.launch(attend, grid, arguments, options)
    else:
        simulation = tessera.gpu.simulate(attend, seed=seed)[grid](
            *arguments, target="sm_90a", tensor_maps=True, **options
        )
        simulation.check()
    np.testing.assert_allclose(o, expected, atol=8e-3)


def get_code(warps=8, BN=64, stages=2, **constants):
    values: dict[str, int] = {
        "BM": 128,
        "BN": BN,
        "D": 128,
        "SCALED": False,
        "AGAIN": False,
        "BRANCH": False,
        "CAUSAL": False,
    }
    values.update(constants)
    types = ", ".join(["*fp16:16"] * 4 + ["i32:16", "i32:16", "fp32"])
    return tessera.compile(
        attend, types, constexprs=values, target="sm_90a", num_warps=warps, num_stages=stages
    ).asm["tilegpu"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("warps, BN, AGAIN", [(4, 128, 0), (8, 64, 0), (8, 128, 0), (8, 64, 1)])
def test_the_producer_copies_all(warps, BN, AGAIN):
    code = get_code(warps, BN, AGAIN=AGAIN)
    assert "tilegpu.over_programs" in code and "tile.load" not in code
    if warps == 8:  # warpgroups do not wait for each other between programs
        programs = code[code.index("tilegpu.warp_specialize") :]
        assert "tilegpu.barrier {of_group}" in programs and "tilegpu.barrier\n" not in programs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", ["SCALED", "BRANCH"])
def test_threads_load_what_the_producer_cannot(what):
    """What is computed with, and what is loaded in a branch."""
    code = get_code(**{what: True})
    assert "tilegpu.over_programs" not in code and "tile.load" in code


@pytest.mark.in_turn("seed")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("warps, BN", [(4, 64), (4, 128), (8, 64), (8, 128)])
def test_many_programs(rng, target, warps, BN, seed):
    """More than there are blocks: of a GPU, too."""
    heads = 80 if target == "cuda" else 3
    run(rng, target, heads=heads, T=256, S=256, seed=seed, warps=warps, BN=BN)


@pytest.mark.filterwarnings("ignore")
def test_programs_that_grow_are_dealt():
    """Of causal attention; blocks have about the same to do, so that it is persistent."""
    code = get_code(CAUSAL=True)
    assert "tilegpu.over_programs" in code and "tile.load" not in code
    assert "reversed_axes" not in code and "grouped_rows" not in code


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("CAUSAL", [False, True])
def test_what_does_not_fit_is_not_persistent(CAUSAL):
    """Tiles of two stages, and the next program's beside this one's results."""
    code = get_code(D=256, stages=3, CAUSAL=CAUSAL)
    assert "tilegpu.over_programs" not in code and "tilegpu.warp_specialize" in code
    assert ("tilegpu.grouped_rows" in code) == CAUSAL


@pytest.mark.in_turn("same")
@pytest.mark.parametrize("heads, T", [(1, 128), (1, 384), (2, 256), (3, 384), (5, 256), (2, 640)])
@pytest.mark.parametrize("same", [False, True])
def test_causal(rng, target, heads, T, same):
    """Rows of 1 to 5 programs. In place, too: a program that came twice would be seen."""
    if target == "cuda":
        heads *= 60
    run(rng, target, heads=heads, T=T, S=T, same=same, CAUSAL=True)


@pytest.mark.parametrize("S", [0, 64, 128, 192])
def test_few_iterations(rng, target, S):
    """None, too: then nobody looks at the tile, and it is left all the same."""
    run(rng, target, heads=5, T=128, S=S)


def test_one_program(rng, target):
    run(rng, target, heads=1, T=128, S=128)


def test_a_reader_behind_the_loop(rng, target):
    run(rng, target, heads=3, T=128, S=128, AGAIN=True)


@pytest.mark.parametrize("what", ["SCALED", "BRANCH"])
def test_a_tile_that_threads_load(rng, target, what):
    run(rng, target, heads=3, T=128, S=128, **{what: True})


def test_results_in_the_place_of_the_tile(rng, target):
    run(rng, target, heads=3, T=256, S=128, same=True)
