# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the core launches and finds by itself (python/src/Launch.cpp) beside plain arguments: tensor
descriptors, compiled kernels, what `warmup` made before. Equal signatures have to mean equal
outcomes, so each test also passes what differs by little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.errors import ArgumentError
from tessera.runtime.jit import JITFunction
from tessera.runtime.kernel import CompiledKernel
from tessera.tools.tensor_descriptor import TensorDescriptor
from tessera.tuning.autotuner import Autotuner


def count(monkeypatch: pytest.MonkeyPatch, cls: type, name: str) -> list[Any]:
    """The calls of a method that takes the whole way."""
    calls: list[Any] = []
    for dtype in (np.float32, np.int32, np.float64):  # a dtype's first launch learns what it is
        plain[(1,)](np.zeros(16, dtype), np.zeros(16, dtype), 16, BLOCK=16)
    whole = getattr(cls, name)
    monkeypatch.setattr(
        cls, name, lambda self, *args, **more: calls.append(args) or whole(self, *args, **more)
    )
    return calls


@tessera.jit
def plain(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@tessera.jit
def copy(x, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tile = x.load([0, 0])
    i = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + i, tile)


@pytest.fixture
def whole_launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    return count(monkeypatch, JITFunction, "_run")


def expected(x: np.ndarray, block: tuple[int, int], fill: float) -> np.ndarray:
    """What a load of the first block gives."""
    out = np.full(block, fill, x.dtype)
    part = x[: block[0], : block[1]]
    out[: part.shape[0], : part.shape[1]] = part
    return out


def launch(descriptor: TensorDescriptor) -> np.ndarray:
    rows, columns = descriptor.block_shape
    out = np.zeros((rows, columns), descriptor.base.dtype)
    copy[(1,)](descriptor, out, rows, columns)
    return out


# --- Tensor descriptors -----------------------------------------------------------------------


def test_descriptors_are_launched_warm(whole_launches):
    arrays = [np.random.default_rng(k).random((24, 32), np.float32) for k in range(5)]
    for array in arrays:
        np.testing.assert_array_equal(
            launch(TensorDescriptor.from_tensor(array, [8, 16])), array[:8, :16]
        )
    assert len(whole_launches) == 1


@pytest.mark.parametrize("padding, fill", [("zero", 0.0), ("nan", np.nan)])
def test_descriptors_that_differ_by_little(whole_launches, padding, fill):
    x = np.random.default_rng(0).random((24, 32), np.float32)
    views = [x, x[:, :16], x[::2], x[:1], x[:5, :7], x[:, 1:], x[:3].astype(np.float64), x[:8]]
    for _ in range(3):
        for view in views:
            for block in ((8, 16), (16, 8), (8, 8)):
                descriptor = TensorDescriptor.from_tensor(view, block, padding)
                np.testing.assert_array_equal(launch(descriptor), expected(view, block, fill))
    assert len(whole_launches) <= len(views) * 3


def test_a_descriptor_may_change(whole_launches):
    x = np.random.default_rng(0).random((24, 32), np.float32)
    descriptor = TensorDescriptor.from_tensor(x, [8, 16])
    for _ in range(2):
        np.testing.assert_array_equal(launch(descriptor), x[:8, :16])
        assert isinstance(descriptor.block_shape, list)
        descriptor.block_shape[1] = 32
        np.testing.assert_array_equal(launch(descriptor), x[:8])
        descriptor.block_shape = (8, 16)
        descriptor.shape = (24, 8)
        np.testing.assert_array_equal(launch(descriptor), expected(x[:, :8], (8, 16), 0))
        descriptor = TensorDescriptor.from_tensor(x, [8, 16])
        descriptor.padding = "nan"
        descriptor.shape = (4, 32)
        np.testing.assert_array_equal(launch(descriptor), expected(x[:4], (8, 16), np.nan))
        descriptor = TensorDescriptor.from_tensor(x, [8, 16])


def test_a_descriptor_that_became_wrong(whole_launches):
    x = np.zeros((24, 32), np.float32)
    for name, value in (
        ("strides", (32, 2)),
        ("strides", (32,)),
        ("shape", (24,)),
        ("padding", "one"),
        ("block_shape", [8, 16, 1]),
        ("shape", (24, 1 << 70)),
    ):
        descriptor = TensorDescriptor.from_tensor(x, [8, 16])
        launch(descriptor)
        setattr(descriptor, name, value)
        with pytest.raises((ArgumentError, OverflowError)):
            copy[(1,)](descriptor, np.zeros((8, 16), np.float32), 8, 16)


def test_a_descriptor_of_what_is_no_array(whole_launches):
    x = np.zeros((24, 32), np.float32)
    descriptor = TensorDescriptor.from_tensor(x, [8, 16])
    launch(descriptor)
    for base in (None, 3, descriptor, "x", tessera.MockTensor("float32")):
        wrong = TensorDescriptor(base, x.shape, (32, 1), [8, 16])
        with pytest.raises(ArgumentError):
            copy[(1,)](wrong, np.zeros((8, 16), np.float32), 8, 16)


def test_many_descriptors_in_one_launch():
    """As many slots and bytes as a signature has."""
    parts = [TensorDescriptor.from_tensor(np.full((4, 4, 4, 4, 4), k, np.float32), [1, 1, 1, 1, 4])
             for k in range(62)]  # fmt: skip
    names = ", ".join(f"x{k}" for k in range(62))
    sums = " + ".join(f"x{k}.load([0, 0, 0, 0, 0])" for k in range(62))
    source = f"def add({names}, out_ptr):\n    tl.store(out_ptr + tl.arange(0, 4), tl.reshape({sums}, [4]))\n"
    import linecache

    linecache.cache["<many descriptors>"] = (len(source), None, source.splitlines(True), "")
    space: dict[str, Any] = {"tl": tl, "__name__": __name__}
    exec(compile(source, "<many descriptors>", "exec"), space)
    add = tessera.jit(space["add"])
    for _ in range(3):
        out = np.zeros(4, np.float32)
        add[(1,)](*parts, out)
        assert (out == sum(range(62))).all()


# --- Configurations with hooks ----------------------------------------------------------------


def test_a_hook_sets_the_block(monkeypatch):
    calls: list[Any] = []

    def set_block(named: dict[str, Any]) -> None:
        calls.append(named["ROWS"])
        named["x"].block_shape = [named["ROWS"], named["COLUMNS"]]

    configs = [
        tessera.Config({"ROWS": rows, "COLUMNS": 16}, pre_hook=set_block) for rows in (8, 16)
    ]
    whole = count(monkeypatch, Autotuner, "_choose")
    tuned = tessera.autotune(configs, key=["n"])(tessera.jit(copy_rows))
    x = np.random.default_rng(0).random((24, 32), np.float32)
    for n in (3, 5):
        for k in range(4):
            out = np.zeros((16, 16), np.float32)
            seen = len(calls)
            tuned[(1,)](TensorDescriptor.from_tensor(x, [1, 1]), out, n)
            rows = tuned.best_config.kwargs["ROWS"]
            np.testing.assert_array_equal(out[:rows], x[:rows, :16])
            if k:
                assert calls[seen:] == [rows]
    assert len(whole) == 2
    tuned.configs = configs[1:]
    out = np.zeros((16, 16), np.float32)
    tuned[(1,)](TensorDescriptor.from_tensor(x, [1, 1]), out, 3)
    assert tuned.best_config is configs[1]
    np.testing.assert_array_equal(out, x[:16, :16])
    with pytest.raises(ArgumentError):
        tuned[(1,)](TensorDescriptor.from_tensor(x, [1, 1]), out, 3, ROWS=8)


def test_a_list_that_gets_hooks():
    """`best_config` is that of the last launch, by whatever way it went."""
    seen: list[int] = []
    plain_ones = [tessera.Config({"BLOCK": 16})]
    hooked = [tessera.Config({"BLOCK": 32}, pre_hook=lambda named: seen.append(named["BLOCK"]))]
    tuned = tessera.autotune(plain_ones, key=[])(plain)
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    for _ in range(2):
        for configs in (plain_ones, hooked):
            tuned.configs = configs
            seen.clear()
            for _ in range(3):
                tuned[(1,)](x, out, 16)
                assert tuned.best_config is configs[0]
            assert seen == ([32] * 3 if configs is hooked else [])
            held = tuned[(1,)]
            tuned.configs = hooked if configs is plain_ones else plain_ones
            tuned[(1,)](x, out, 16)
            held(x, out, 16)  # which was made for the list before


def copy_rows(x, out_ptr, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tile = x.load([0, 0])
    i = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + i, tile)


def test_a_hook_that_raises_is_heard_each_time():
    def refuse(named: dict[str, Any]) -> None:
        if named["n"] == 7:
            raise KeyError("seven")

    configs = [tessera.Config({"BLOCK": 16}, pre_hook=refuse)]
    tuned = tessera.autotune(configs, key=["BLOCK"])(plain)
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    for n in (3, 7, 3, 7):
        out[:] = 0
        if n == 7:
            with pytest.raises(KeyError, match="seven"):
                tuned[(1,)](x, out, n)
            assert not out.any()
        else:
            tuned[(1,)](x, out, n)
            np.testing.assert_array_equal(out[:3], x[:3])


# --- warmup -----------------------------------------------------------------------------------


def test_warmup_finds_what_it_made(whole_launches):
    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    first = plain.warmup(x, out, 64, BLOCK=64, grid=(1,))
    assert all(plain.warmup(x, out, 64, BLOCK=64, grid=(k,)) is first for k in range(1, 5))
    assert len(whole_launches) == 1
    others = [
        plain.warmup(x, out, 64, BLOCK=32, grid=(1,)),
        plain.warmup(x, out.astype(np.float64), 64, BLOCK=64, grid=(1,)),
        plain.warmup(x, out, 1, BLOCK=64, grid=(1,)),
        plain.warmup(x, out, 63, BLOCK=64, grid=(1,)),
        plain.warmup(x, out[1:], 64, BLOCK=64, grid=(1,)),
        plain.warmup(x, out, 64.0, BLOCK=64, grid=(1,)),
    ]
    assert len({id(kernel) for kernel in (first, *others)}) == 7


FACTOR = tl.constexpr(2)


def test_warmup_sees_what_changed(monkeypatch):
    @tessera.jit
    def scale(x_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x_ptr + i, tl.load(x_ptr + i) * FACTOR)

    x = np.ones(16, np.float32)
    kernels = []
    two, three = tl.constexpr(2), tl.constexpr(3)
    for factor in (two, three, three):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        kernels.append(scale.warmup(x, BLOCK=16, grid=(1,)))
        x[:] = 1
        kernels[-1][(1,)](x)
        assert (x == factor.value).all()
    assert kernels[0] is not kernels[1] and kernels[1] is kernels[2]


def test_warmup_while_hooks_are_set(monkeypatch):
    from tessera.runtime.hooks import hooks

    x = np.zeros(64, np.float32)
    plain.warmup(x, x, 64, BLOCK=64, grid=(1,))
    monkeypatch.setattr(hooks, "jit_cache", lambda **facts: True)
    assert plain.warmup(x, x, 7, BLOCK=8, grid=(1,)) is None


# --- Compiled kernels -------------------------------------------------------------------------


@tessera.jit
def mixed(x_ptr, out_ptr, n, f, flag, SHIFT: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, tl.where(flag, x * f + SHIFT, x))


def test_a_compiled_kernel_is_launched_warm(monkeypatch):
    x = np.arange(16, dtype=np.float32)
    kernel = mixed.warmup(x, x, 16, 2.0, True, 3, grid=(1,))
    calls = count(monkeypatch, CompiledKernel, "_launch")
    for n, f, flag in ((16, 2.0, True), (16, 0.5, False), (0, 0.0, True), (32, -1.0, True)):
        out = np.zeros_like(x)
        assert kernel[(1,)](x, out, n, f, flag, 3) is None
        want = np.where(np.arange(16) < n, x, 0).astype(np.float32)
        np.testing.assert_array_equal(out, want * np.float32(f) + 3 if flag else want)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "place, wrong",
    [
        (0, np.zeros(16, np.float64)),
        (0, np.zeros(17, np.float32)[1:]),
        (0, None),
        (1, 3),
        (2, 7),  # 16 divides what it was compiled for
        (2, 1 << 40),
        (2, 2.0),
        (2, None),
        (3, None),
        (4, 16),
        (5, 4),
        (5, 3.0),
        (5, True),
    ],
)
def test_what_a_compiled_kernel_refuses_it_refuses_warm(place, wrong):
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    kernel = mixed.warmup(x, out, 16, 2.0, True, 3, grid=(1,))
    right = [x, out, 16, 0.0, False, 3]
    for args in (right, [x, out, 0, 0.0, False, 3], right):
        kernel[(1,)](*args)
    args = list(right)
    args[place] = wrong
    with pytest.raises(ArgumentError):
        kernel[(1,)](*args)
    with pytest.raises(ArgumentError):
        kernel[(1,)](*right, num_warps=4)
    out[:] = 0
    kernel[(1,)](*right)
    np.testing.assert_array_equal(out, x)


def test_numbers_for_floats_of_a_compiled_kernel():
    """An integer for a float is converted, whatever was passed before."""
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    kernel = mixed.warmup(x, out, 16, 2.0, True, 0, grid=(1,))
    for f in (0, 0.0, 3, 2.5, 0, 5):
        kernel[(1,)](x, out, 16, f, True, 0)
        np.testing.assert_array_equal(out, x * np.float32(f))


def test_half_and_double_arguments_of_a_compiled_kernel():
    @tessera.jit
    def store(out_ptr, f: tl.float64, h: tl.float16):
        tl.store(out_ptr, f + h)

    out = np.zeros(1, np.float64)
    kernel = store.warmup(out, 0.0, 0.0, grid=(1,))
    for f, h in ((0.0, 0.0), (0.1, 0.5), (0.0, 0.0), (1e300, 1.0)):
        kernel[(1,)](out, f, h)
        assert out[0] == f + h
