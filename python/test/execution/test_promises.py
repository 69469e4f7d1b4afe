# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Promises about indices (`multiple_of`, `max_contiguous`, `max_constancy`), true and broken.

A broken promise changes nothing on a CPU. On a GPU it is believed for 16 bytes, and no further.
With `debug=True` it is an error with its place (E082).
"""

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl
from execution.running import draw, host_has

CPUS = ["x86-64-v4", "x86-64-v3", "x86-64"]


@pytest.fixture(params=["interpreter", *CPUS])
def run_exactly(request):
    """A target on which a broken promise changes nothing."""
    if request.param == "interpreter":
        return lambda kernel, grid, *args, **meta: tessera.interpret(kernel)[grid](*args, **meta)
    if not host_has(request.param):
        pytest.skip(f"this machine has no {request.param}")
    return lambda kernel, grid, *args, **meta: kernel[grid](*args, cpu=request.param, **meta)


def between(size, dtype, fill):
    """Memory of which a test passes the middle, and the middle."""
    whole = np.full(3 * size, fill, dtype)
    return whole, whole[size : 2 * size]


@tessera.jit
def copy_wrapped(x, o, N, B: tl.constexpr):
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, B) % N, B), B)
    tl.store(o + i, tl.load(x + i) + 1)


# On a GPU, too: 16 bytes of these are what is promised.
@pytest.mark.parametrize("n, block", [(128, 256), (64, 256), (16, 64)])
def test_a_block_that_wraps(run, n, block):
    outside, o = between(block, np.float32, -7)
    x = np.arange(n, dtype=np.float32)
    run(copy_wrapped, (1,), x, o[:n], n, B=block)
    np.testing.assert_array_equal(o[:n], x + 1)
    outside[block : block + n] = -7
    assert (outside == -7).all()


@tessera.jit
def multiply(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WHERE: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    rows = tl.where(m < M, m, 0) if WHERE else m % M
    columns = tl.where(n < N, n, 0) if WHERE else n % N
    rows = tl.max_contiguous(tl.multiple_of(rows, BM), BM)
    columns = tl.max_contiguous(tl.multiple_of(columns, BN), BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for s in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (s + k)[None, :])
        right = tl.load(b + (s + k)[:, None] * N + columns[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@pytest.mark.parametrize("where", [False, True], ids=["remainder", "where"])
@pytest.mark.parametrize("m, n", [(100, 80), (50, 72), (128, 128)])
def test_a_product_at_the_edge(run, rng, m, n, where):
    a = rng.integers(-2, 3, (m, 64)).astype(np.float16)
    _, b = between(64 * n, np.float16, 1e4)
    b[:] = rng.integers(-2, 3, 64 * n)
    c = np.zeros((m, n), np.float32)
    grid = (-(-m // 64), -(-n // 64))
    run(multiply, grid, a, b, c, m, n, 64, BM=64, BN=64, BK=32, WHERE=where)
    np.testing.assert_array_equal(c, a.astype("f4") @ b.reshape(64, n).astype("f4"))


@tessera.jit
def gather(x, o, places, B: tl.constexpr, RUN: tl.constexpr, HOW: tl.constexpr):
    i = tl.load(places + tl.program_id(0) * B + tl.arange(0, B))
    if HOW == "constancy":
        i = tl.max_constancy(i, RUN)
    elif HOW == "pointer":
        tl.store(o + tl.program_id(0) * B + tl.arange(0, B), tl.load(tl.max_contiguous(x + i, RUN)))
        return
    else:
        i = tl.max_contiguous(tl.multiple_of(i, RUN), RUN)
    tl.store(o + tl.program_id(0) * B + tl.arange(0, B), tl.load(x + i))


@pytest.mark.parametrize("how", ["contiguity", "constancy", "pointer"])
@pytest.mark.parametrize("run_length", [4, 64])
@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_places_that_data_chooses(run_exactly, rng, dtype, run_length, how):
    """Program 0 keeps the promise, program 1 breaks it in one element, program 2 everywhere."""
    block = 64
    _, x = between(4096, dtype, 99)
    x[:] = draw(rng, 4096, dtype)
    starts = rng.integers(0, 4096 // run_length, block // run_length)
    lanes = np.arange(block)
    kept = starts[lanes // run_length] * run_length
    if how != "constancy":
        kept += lanes % run_length
    nearly = kept.copy()
    nearly[37] = 4095 - nearly[37]
    places = np.concatenate([kept, nearly, 4095 - lanes]).astype(np.int32)
    o = np.zeros(3 * block, dtype)
    run_exactly(gather, (3,), x, o, places, B=block, RUN=run_length, HOW=how)
    np.testing.assert_array_equal(o, x[places])


@tessera.jit
def scatter(o, count, places, n, B: tl.constexpr):
    for s in range(0, n):
        i = tl.max_contiguous(tl.load(places + s * B + tl.arange(0, B)), B)
        tl.store(o + i, i * 3)
        tl.atomic_add(count + i, 1, mask=i < 250)


def test_stores_and_atomics_in_a_loop(run_exactly, rng):
    block, n = 32, 6
    places = np.concatenate(
        [np.arange(32), rng.integers(0, 255, 32), np.arange(224, 256), np.arange(32)[::-1],
         np.zeros(32), np.arange(100, 132)]
    ).astype(np.int32)  # fmt: skip
    outside, o = between(256, np.int32, -1)
    counts, count = between(256, np.int32, 0)
    run_exactly(scatter, (1,), o, count, places, n, B=block)
    want = np.full(256, -1, np.int32)
    want[places] = places * 3
    np.testing.assert_array_equal(o, want)
    np.testing.assert_array_equal(count[:250], np.bincount(places, minlength=256)[:250])
    assert (np.delete(outside, np.s_[256:512]) == -1).all()
    assert counts.sum() == count.sum() == (places < 250).sum()


@tessera.jit
def mask_by(x, o, limits, n, B: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, B)
    if HOW == "mask":
        mask = tl.max_constancy(tl.load(limits + i) < n, B)
    elif HOW == "equal":
        mask = tl.max_constancy(tl.load(limits + i), B) < n
    else:
        mask = tl.max_contiguous(tl.load(limits + i), B) < n
    tl.store(o + i, tl.load(x + i, mask=mask, other=-3.0), mask=mask)


@pytest.mark.parametrize("how", ["mask", "equal", "contiguity"])
def test_masks(run_exactly, rng, how):
    x, o = draw(rng, 64, "float32"), np.full(64, -5, np.float32)
    limits = rng.integers(0, 64, 64).astype(np.int32)
    run_exactly(mask_by, (1,), x, o, limits, 30, B=64, HOW=how)
    np.testing.assert_array_equal(o, np.where(limits < 30, x, -5))


# --- Errors ----------------------------------------------------------------------------


@pytest.fixture(params=["interpreter", *CPUS, "simulator"])
def debugged(request):
    if request.param == "interpreter":
        launch = tessera.interpret
    elif request.param == "simulator":
        return lambda kernel, grid, *args, **meta: (
            tessera.gpu.simulate(kernel)[grid](*args, debug=True, **meta).check()
        )
    else:
        if not host_has(request.param):
            pytest.skip(f"this machine has no {request.param}")
        launch = lambda kernel: kernel  # noqa: E731
    meta = {} if request.param == "interpreter" else {"cpu": request.param}
    return lambda kernel, grid, *args, **more: launch(kernel)[grid](
        *args, debug=True, **meta, **more
    )


@tessera.jit
def promise(x, n, B: tl.constexpr, RUN: tl.constexpr, MULTIPLE: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    if HOW == "contiguous":
        v = tl.max_contiguous(v, RUN)
    elif HOW == "constant":
        v = tl.max_constancy(v, RUN)
    elif HOW == "multiple":
        v = tl.multiple_of(v, MULTIPLE)
    elif HOW == "inner":
        v = tl.max_contiguous(tl.multiple_of(v, MULTIPLE), RUN)
    elif HOW == "outer":
        v = tl.multiple_of(tl.max_contiguous(v, RUN), MULTIPLE)
    elif HOW == "scalar":
        n = tl.multiple_of(n, MULTIPLE)
    elif HOW == "rows":
        v = tl.max_contiguous(tl.reshape(v, (4, B // 4)), [1, RUN])
    elif HOW == "columns":
        v = tl.max_constancy(tl.reshape(v, (4, B // 4)), [RUN, 1])
    elif HOW == "pointer":
        v = tl.max_contiguous(x + v, RUN)


UP = np.arange(32)
LINE = {
    "contiguous": "v = tl.max_contiguous(v, RUN)",
    "constant": "v = tl.max_constancy(v, RUN)",
    "multiple": "v = tl.multiple_of(v, MULTIPLE)",
    "inner": "tl.max_contiguous(tl.multiple_of(v, MULTIPLE), RUN)",
    "outer": "tl.multiple_of(tl.max_contiguous(v, RUN), MULTIPLE)",
    "scalar": "n = tl.multiple_of(n, MULTIPLE)",
    "rows": "(4, B // 4)), [1, RUN])",
    "columns": "(4, B // 4)), [RUN, 1])",
    "pointer": "v = tl.max_contiguous(x + v, RUN)",
}

BROKEN = [
    ("contiguous", UP % 16, 32, 1, "runs of 32 elements do not count up along dimension 0"),
    ("contiguous", np.where(UP == 31, 0, UP), 32, 1, "runs of 32 elements do not count up"),
    ("constant", UP // 8, 16, 1, "runs of 16 elements are not equal along dimension 0"),
    ("multiple", UP + 4, 1, 8, "a run begins at no multiple of 8 along dimension 0"),
    ("multiple", UP // 16 * 24 + UP % 16, 1, 16, "a run begins at no multiple of 16"),
    ("inner", UP, 8, 16, "a run begins at no multiple of 16 along dimension 0"),
    ("outer", UP, 8, 16, "a run begins at no multiple of 16 along dimension 0"),
    ("scalar", UP, 1, 16, "the value is no multiple of 16"),
    ("rows", UP % 4, 8, 1, "runs of 8 elements do not count up along dimension 1"),
    ("columns", UP, 4, 1, "runs of 4 elements are not equal along dimension 0"),
    ("pointer", UP % 16, 32, 1, "runs of 32 elements do not count up along dimension 0"),
]

KEPT = [
    ("contiguous", UP % 16, 16, 1), ("contiguous", UP - 5, 64, 1), ("constant", UP // 8, 8, 1),
    ("multiple", UP + 8, 1, 8), ("multiple", UP // 16 * 32 + UP % 16, 1, 16),
    ("multiple", UP * 16, 1, 16), ("inner", UP, 8, 8), ("outer", UP + 64, 32, 64),
    ("scalar", UP, 1, 8), ("rows", UP % 8, 8, 1), ("columns", UP % 8, 4, 1),
    ("pointer", UP, 32, 1),
]  # fmt: skip


@pytest.mark.parametrize("how, values, length, multiple, text", BROKEN)
def test_a_broken_promise_is_an_error(debugged, how, values, length, multiple, text):
    x = values.astype(np.int32)
    with pytest.raises(tessera.KernelAssertionError) as caught:
        debugged(promise, (1,), x, 24, B=32, RUN=length, MULTIPLE=multiple, HOW=how)
    assert caught.value.id == "E082"
    message = str(caught.value)
    assert text in message and "in program (0, 0, 0) of kernel 'promise'" in message
    source = open(__file__).read().splitlines()
    line = next(i for i, row in enumerate(source, 1) if LINE[how] in row)
    assert f"test_promises.py:{line}:" in message
    # Without `debug`, nobody looks.
    promise[(1,)](x, 24, B=32, RUN=length, MULTIPLE=multiple, HOW=how)


def test_promises_that_are_not_checked(debugged):
    how, values, length, multiple, _ = BROKEN[0]
    debugged(
        promise, (1,), values.astype(np.int32), 24,
        B=32, RUN=length, MULTIPLE=multiple, HOW=how, sanitize_promises=False,
    )  # fmt: skip


def test_an_argument_that_is_one(debugged):
    x = UP.astype(np.int32)
    with pytest.raises(
        tessera.KernelAssertionError, match="the value is no multiple of 16"
    ) as caught:
        debugged(promise, (1,), x, 1, B=32, RUN=1, MULTIPLE=16, HOW="scalar")
    assert caught.value.id == "E082"


@pytest.mark.parametrize("how, values, length, multiple", KEPT)
def test_a_promise_that_holds_is_none(debugged, how, values, length, multiple):
    x = values.astype(np.int32)
    debugged(promise, (1,), x, 24, B=32, RUN=length, MULTIPLE=multiple, HOW=how)
