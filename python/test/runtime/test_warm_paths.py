# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the core launches and finds by itself (python/src/Dispatcher.h) beside plain arguments: tensor
descriptors, compiled kernels, what `warmup` made before. Equal signatures have to mean equal
outcomes, so each test also passes what differs by little."""

from __future__ import annotations

import gc
import threading
import time
import weakref
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


def count_calls(monkeypatch: pytest.MonkeyPatch, cls: type, name: str) -> list[Any]:
    """The calls of a method that takes the whole way."""
    calls: list[Any] = []
    for dtype in (np.float32, np.int32, np.float64):  # a dtype's first launch learns what it is
        tessera.jit(plain.fn)[(1,)](np.zeros(16, dtype), np.zeros(16, dtype), 16, BLOCK=16)
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
    return count_calls(monkeypatch, JITFunction, "_run")


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


# --- Reinterpreted arrays ---------------------------------------------------------------------


@pytest.mark.parametrize("base", [None, 3, np.float16(1), "text", (1, 2)], ids=repr)
def test_what_a_wrapper_may_not_have(base):
    kernel = tessera.jit(plain.fn)
    wrapper = tessera.reinterpret(np.zeros(16, np.int16), tl.float16)
    out = np.zeros(16, np.float16)
    for _ in range(2):
        kernel[(1,)](wrapper, out, 16, BLOCK=16)
    wrapper.base = base
    for _ in range(2):
        with pytest.raises(ArgumentError, match="E054"):
            kernel[(1,)](wrapper, out, 16, BLOCK=16)
    wrapper.base = wrapper
    with pytest.raises((ArgumentError, RecursionError)):
        kernel[(1,)](wrapper, out, 16, BLOCK=16)


@pytest.mark.parametrize("dtype", ["float16", np.float16, np.dtype("float16")], ids=repr)
def test_a_wrapper_takes_every_spelling_of_a_type(dtype):
    bits = np.full(16, 0x3C00, np.int16)
    wrapper = tessera.TensorWrapper(bits, dtype)
    assert wrapper.dtype == tl.float16 and wrapper.element_size() == 2
    with pytest.raises(ArgumentError, match="E054.*no element type for 'float61'"):
        tessera.TensorWrapper(bits, "float61")


def test_what_is_wrong_with_an_array_is_said_where_others_like_it_were_reinterpreted():
    torch = pytest.importorskip("torch")
    out = np.zeros(16, np.float16)
    tessera.reinterpret(torch.zeros(16, dtype=torch.int16), tl.float16)
    meta = torch.zeros(16, dtype=torch.int16, device="meta")
    with pytest.raises(ArgumentError, match="meta tensor"):
        plain[(1,)](tessera.reinterpret(meta, tl.float16), out, 16, BLOCK=16)
    with pytest.raises(ArgumentError, match="E054"):
        tessera.reinterpret(np.float16(1), tl.int16)
    with pytest.raises(ArgumentError, match="E035"):
        tessera.reinterpret(torch.zeros(16, dtype=torch.int16), tl.float32)


# --- Arrays that say by NumPy's protocol where they are ----------------------------------------


class OnlyInterface:
    def __init__(self, array: np.ndarray) -> None:
        self.array, self.more = array, {}  # type: ignore[var-annotated]

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def __array_interface__(self) -> Any:
        if isinstance(self.more, Exception):
            raise self.more
        return {**self.array.__array_interface__, **self.more}


@pytest.mark.parametrize("wrap", [OnlyInterface, np.matrix, lambda array: array.view(Memory)])
def test_arrays_with_numpys_interface_are_launched_warm(whole_launches, wrap):
    base = np.arange(40, dtype=np.float32)
    arrays = [base[:16], base[4:20], base[:16].astype(np.int32), base[:16] * 2]
    kernels = {array.dtype: tessera.jit(plain.fn) for array in arrays}
    for known in (False, True, True):
        for array in arrays:
            out = np.zeros(16, array.dtype)
            whole_launches.clear()
            kernels[array.dtype][(1,)](wrap(array), out, 16, BLOCK=16)
            np.testing.assert_array_equal(out, array)
            assert not (known and whole_launches)


class Memory(np.ndarray):
    """Any class of NumPy's arrays but the first: a memmap, say."""


def test_an_array_with_numpys_interface_may_change():
    array, out = OnlyInterface(np.arange(16, dtype=np.float32)), np.zeros(16, np.float32)
    for _ in range(2):
        for _ in range(2):
            plain[(1,)](array, out, 16, BLOCK=16)
            np.testing.assert_array_equal(out, array.array)
        base = array.array
        array.array = base.astype(">f4")
        with pytest.raises(ArgumentError, match="byte order"):
            plain[(1,)](array, out, 16, BLOCK=16)
        array.array = base
        array.more = OSError("gone")
        with pytest.raises(ArgumentError, match="OSError: gone"):
            plain[(1,)](array, out, 16, BLOCK=16)
        array.more = {}


@pytest.mark.parametrize("shape", [None, ("a",), (2, None)])
def test_a_warm_launch_refuses_a_shape_that_is_none(shape: Any) -> None:
    array, out = OnlyInterface(np.arange(16, dtype=np.float32)), np.zeros(16, np.float32)
    plain[(1,)](array, out, 16, BLOCK=16)
    array.more = {"shape": shape}
    with pytest.raises(ArgumentError, match="E058"):
        plain[(1,)](array, out, 16, BLOCK=16)


class Failing(OnlyInterface):
    raised: Any = None

    @property
    def dtype(self) -> Any:
        if self.raised:
            raise self.raised
        return self.array.dtype


@pytest.mark.parametrize("error", [ValueError("d"), TypeError("d")])
def test_a_warm_launch_describes_an_exception_of_dtype(error: Exception) -> None:
    array, out = Failing(np.arange(16, dtype=np.float32)), np.zeros(16, np.float32)
    for _ in range(2):
        plain[(1,)](array, out, 16, BLOCK=16)
    array.raised = error
    with pytest.raises(ArgumentError, match=f"E058(.|\n)*{type(error).__name__}: d"):
        plain[(1,)](array, out, 16, BLOCK=16)


def test_an_object_may_get_a_data_ptr_of_its_own() -> None:
    array, out = OnlyInterface(np.arange(16, dtype=np.float32)), np.zeros(16, np.float32)
    other = np.full(16, 7, np.float32)
    plain[(1,)](array, out, 16, BLOCK=16)
    array.data_ptr, array.shape = lambda: other.ctypes.data, (16,)  # type: ignore[attr-defined]
    plain[(1,)](array, out, 16, BLOCK=16)
    np.testing.assert_array_equal(out, other)


class Popping(str):
    """A key that takes the place away from the dictionary when it is compared."""

    of: dict[Any, Any]

    def __eq__(self, other: object) -> bool:
        if other == "mask":
            self.of.pop("data", None)
        return False

    __hash__ = str.__hash__


def test_a_place_is_held_while_a_dictionary_changes() -> None:
    array, out = OnlyInterface(np.arange(16, dtype=np.float32)), np.zeros(16, np.float32)
    plain[(1,)](array, out, 16, BLOCK=16)

    class Changing(OnlyInterface):
        @property
        def __array_interface__(self) -> Any:
            found = dict(self.array.__array_interface__)
            if self.more:
                found["data"] = (int(str(found["data"][0])), False)  # held by nothing else
                key = Popping("mask")
                key.of = found
                found[key] = 0
            return found

    array = Changing(array.array)
    plain[(1,)](array, out, 16, BLOCK=16)
    array.more = {"changes": 1}
    plain[(1,)](array, out, 16, BLOCK=16)
    np.testing.assert_array_equal(out, array.array)


# --- Tensor descriptors -----------------------------------------------------------------------


def test_descriptors_are_launched_warm(whole_launches):
    arrays = [np.random.default_rng(k).random((24, 32), np.float32) for k in range(5)]
    for array in arrays:
        np.testing.assert_array_equal(
            launch(TensorDescriptor.from_tensor(array, [8, 16])), array[:8, :16]
        )
    assert len(whole_launches) == 1


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
    whole = count_calls(monkeypatch, Autotuner, "_choose")
    # A program copies as many rows as its block has, so results differ, and are not compared.
    tuned = tessera.autotune(configs, key=["n"], check=False)(tessera.jit(copy_rows))
    x = np.random.default_rng(0).random((24, 32), np.float32)
    for k in range(4):
        out = np.zeros((16, 16), np.float32)
        seen = len(calls)
        tuned[(1,)](TensorDescriptor.from_tensor(x, [1, 1]), out, 3)
        rows = tuned.best_config.kwargs["ROWS"]
        np.testing.assert_array_equal(out[:rows], x[:rows, :16])
        if k:
            assert calls[seen:] == [rows]
    assert len(whole) == 1
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
        plain.warmup(x, out, 64.0, BLOCK=64, grid=(1,)),
    ]
    assert len({id(kernel) for kernel in (first, *others)}) == 3


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
    calls = count_calls(monkeypatch, CompiledKernel, "_launch")
    for n, f, flag in ((16, 2.0, True), (16, 0.5, False), (0, 0.0, True), (32, -1.0, True)):
        out = np.zeros_like(x)
        assert kernel[(1,)](x, out, n, f, flag, 3) is None
        want = np.where(np.arange(16) < n, x, 0).astype(np.float32)
        np.testing.assert_array_equal(out, want * np.float32(f) + 3 if flag else want)
    assert len(calls) == 1


def test_a_compiled_kernel_is_launched_warm_without_its_constants(monkeypatch):
    x = np.arange(16, dtype=np.float32)
    kernel = tessera.compile(mixed, "*fp32:16, *fp32:16, 1, fp32, i1, 3")  # `n`, too, is a constant
    calls = count_calls(monkeypatch, CompiledKernel, "_launch")
    for size in ((1, 2.0, True), (2.0, True)):
        for _ in range(3):
            out = np.zeros_like(x)
            assert kernel[(1,)](x, out, *size) is None
            np.testing.assert_array_equal(out, [3.0] * 16)
    assert len(calls) == 2
    for wrong in ((2, 2.0, True), (1, 2.0, 16), ("2", True), (True,)):
        with pytest.raises(ArgumentError):
            kernel[(1,)](x, out, *wrong)


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


# --- Annotations, tuples, `*args`, many parameters --------------------------------------------


@tessera.jit
def annotated(x: "*fp32", n: tl.int64, f: tl.float32, d: "tl.float64", out):
    tl.store(out, n)
    tl.store(out + 1, f)
    tl.store(out + 2, d)
    tl.store(out + 3, tl.load(x))


def test_annotated_parameters(whole_launches):
    x, out = np.full(4, 7, np.float32), np.zeros(4, np.float64)
    for n, f, d in (
        (3, 0.1, 0.1),
        (1 << 40, 2, 3),
        (-16, 1e39, True),
        (1, False, 1e308),
        (7, 1, 2),
    ):
        for time in range(2):
            whole_launches.clear()
            annotated[(1,)](x, n, f, d, out)
            with np.errstate(over="ignore"):
                assert out.tolist() == [n, np.float32(f), d, 7]
        assert not whole_launches
    # 7 is of the same kind as 3, floats are all of one, and an int for a float is a float.
    for n, f, d in ((5, 3.5, 9), (9, 4, 0.25)):
        annotated[(1,)](x, n, f, d, out)
        assert out.tolist() == [n, f, d, 7]
    assert not whole_launches


def test_what_an_annotation_refuses_stays_refused():
    x, out = np.zeros(4, np.float32), np.zeros(4, np.float64)
    annotated[(1,)](x, 3, 1.0, 1.0, out)
    annotated[(1,)](x, 3, 1.0, 1.0, out)
    with pytest.raises(ArgumentError, match="E055.*annotated int64"):
        annotated[(1,)](x, 3.0, 1.0, 1.0, out)
    with pytest.raises(ArgumentError, match="E054"):
        annotated[(1,)](3, 3, 1.0, 1.0, out)
    with pytest.raises(ArgumentError, match="E054"):
        annotated[(1,)](x, x, 1.0, 1.0, out)
    assert annotated[(1,)](x, np.int64(5), np.float32(2), 1.0, out) and out[0] == 5


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"])
def test_the_ends_of_each_annotated_type(whole_launches, name):
    store = from_text(f"def store(out, n: tl.{name}):\n    tl.store(out, n)\n", "store")
    info = np.iinfo(name)
    out = np.zeros(1, name)
    low, high = int(info.min), int(info.max)
    for value in (low, high, low + 1, high - 1, 0):
        for _ in range(3):  # the first one may learn the dtype of the array
            whole_launches.clear()
            store[(1,)](out, value)
            assert int(out[0]) == value
        assert not whole_launches


@tessera.jit
def sum_up(out, first, *rest, scale=1):
    total = first
    for value in tl.static_range(0, len(rest)):
        total += rest[value]
    tl.store(out, total * scale)


def test_further_arguments_by_place(whole_launches):
    out = np.zeros(1, np.int32)
    for numbers in ((2,), (2, 3), (2, 3, 16), (2, 16, 3), (2, 1), (2, 3, 5, 7)):
        for _ in range(2):
            whole_launches.clear()
            sum_up[(1,)](out, *numbers)
            assert out[0] == sum(numbers)
            sum_up[(1,)](out, *numbers, scale=3)
            assert out[0] == 3 * sum(numbers)
        assert not whole_launches
    sum_up[(1,)](out, 2, 3 + 2, 16)  # of the kinds of (2, 3, 16)
    assert out[0] == 23 and not whole_launches
    sum_up[lambda meta: (len(meta["rest"]),)](out, 2, 7)
    assert out[0] == 9
    with pytest.raises(tessera.LaunchError, match="unknown keyword argument `rest`"):
        sum_up[(1,)](out, 2, rest=3)
    with pytest.raises(ArgumentError, match="without `first`"):
        sum_up[(1,)](out)


@tessera.jit
def of_parts(pair, out):
    tl.store(out, pair[0])
    tl.store(out + 1, pair[1][0])


def test_tuples(whole_launches):
    out = np.zeros(2, np.int32)
    for pair in ((3, (5,)), (3, (1,)), (1, (16,)), (True, (2,)), (3, (5, None))):
        for _ in range(2):
            whole_launches.clear()
            of_parts[(1,)](pair, out)
            assert out.tolist() == [int(pair[0]), pair[1][0]]
        assert not whole_launches
    # Flat, it would be the same numbers.
    with pytest.raises(tessera.TesseraError):
        of_parts[(1,)]((3, 5), out)


def test_lists(whole_launches):
    out = np.zeros(2, np.int32)
    for pair in ([3, (5,)], (3, [5]), [1, [16]]):
        for _ in range(3):
            whole_launches.clear()
            of_parts[(1,)](pair, out)
            assert out.tolist() == [pair[0], pair[1][0]]
        assert not whole_launches
    changing = [3, (5,)]
    for number in (9, 7, 1):
        changing[0] = number
        of_parts[(1,)](changing, out)
        assert out.tolist() == [number, 5]


@tessera.jit
def last(out, items):
    tl.store(out, items[len(items) - 1])


def test_tuples_of_very_many_items(whole_launches):
    out = np.zeros(1, np.int32)
    for count in (250, 254, 255, 256, 300, 512, 1022, 1023):
        for _ in range(3):
            whole_launches.clear()
            last[(1,)](out, tuple(range(2, count + 2)))
            assert out[0] == count + 1
        assert bool(whole_launches) == (count > 1022)  # and the tuple


def test_lists_of_very_many_arrays(whole_launches):
    """Lists of lengths that are the same modulo 256."""

    @tessera.jit
    def copy_last(out, arrays):
        tl.store(out, tl.load(arrays[len(arrays) - 1]))

    base = np.arange(2000, dtype=np.float32)
    out = np.zeros(1, np.float32)
    for known in (False, True):
        for count in (44, 300):
            arrays = [base[i * 2 : i * 2 + 1] for i in range(count)]
            for changed in (base[8:9], arrays[-1]):
                for place in (-1, count // 2) if count == 44 else (-1,):
                    whole_launches.clear()
                    copied = list(arrays)
                    copied[place] = changed
                    copy_last[(1,)](out, copied)
                    assert out[0] == copied[-1][0]
                    assert not (known and whole_launches)


def test_a_list_that_contains_itself():
    """The error comes at once. Specialising went on until Python's stack ended, in 7 s."""
    base, out = np.zeros(1, np.float32), np.zeros(1, np.float32)
    arrays: list[Any] = [base] * 300
    arrays.append([base, arrays])
    for _ in range(2):
        with pytest.raises(
            tessera.TesseraError, match=r"E054.*`items\[300\]\[1\]`.*contains itself"
        ):
            plain_tuple[(1,)](out, arrays)
    # The same list twice, side by side, is none in itself.
    plain_tuple[(1,)](out, (arrays[:2], arrays[:2], [arrays[:2]]))
    same = arrays[:2]
    plain_tuple[(1,)](out, (same, same, [same]))


def test_tuples_in_tuples():
    out = np.zeros(1, np.int32)
    nested: Any = (3,)
    for _ in range(200):
        nested = (nested,)
    for _ in range(2):
        plain_tuple[(1,)](out, nested)


@tessera.jit
def plain_tuple(out, items):
    tl.store(out, 1)


def from_text(text: str, name: str) -> Any:
    """A kernel from a text."""
    import linecache

    text, file = "import tessera.language as tl\n" + text, f"<text {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    exec(compile(text, file, "exec", dont_inherit=True), space)
    return tessera.jit(space[name])


def with_parameters(count: int) -> Any:
    names = ", ".join(f"a{i}" for i in range(count))
    return from_text(f"def many(out, {names}):\n    tl.store(out, a0 + a{count - 1})\n", "many")


@pytest.mark.parametrize("count", [64, 65, 254, 255])
def test_many_parameters(whole_launches, count):
    many = with_parameters(count)
    out = np.zeros(1, np.int32)
    for _ in range(3):
        whole_launches.clear()
        many[(1,)](out, *range(2, count + 2))
        assert out[0] == 2 + count + 1
    assert bool(whole_launches) == (count > 254)  # and the array


def test_many_parameters_of_a_compiled_kernel(monkeypatch):
    many = with_parameters(100)
    out = np.zeros(1, np.int32)
    kernel = many[(1,)](out, *range(2, 102))
    whole = count_calls(monkeypatch, CompiledKernel, "_launch")
    for _ in range(3):
        whole.clear()
        kernel[(1,)](out, *range(2, 102))
        assert out[0] == 103
    assert not whole


# --- Hooks ------------------------------------------------------------------------------------


@pytest.fixture
def hooked() -> Any:
    from tessera.runtime.hooks import hooks

    told: list[Any] = []
    enter = lambda data: told.append(("enter", data.get()))
    leave = lambda data: told.append(("exit", data.get()))
    hooks.launch_enter.add(enter)
    hooks.launch_exit.add(leave)
    yield told
    hooks.launch_enter.remove(enter)
    hooks.launch_exit.remove(leave)


@tessera.jit(launch_metadata=lambda grid, metadata, args: {"grid": grid, "args": args})
def described(x_ptr, out_ptr, n, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def test_hooks_of_launches_are_told_the_same_each_time(whole_launches, hooked):
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    for _ in range(4):
        described[(1, 2)](x, out, n=16, num_threads=1)
    assert len(whole_launches) == 1 and len(hooked) == 8
    for place, (what, data) in enumerate(hooked):
        assert what == ("exit" if place % 2 else "enter")
        assert data["name"] == "described" and data["stream"] == 0
        assert data["grid"] == (1, 2, 1) and list(data["args"]) == [
            "x_ptr",
            "out_ptr",
            "n",
            "BLOCK",
        ]
        assert data["args"]["x_ptr"] is x and data["args"]["n"] == data["args"]["BLOCK"] == 16


def test_hooks_come_and_go(whole_launches):
    from tessera.runtime.hooks import hooks

    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    seen: list[str] = []
    hook = lambda data: seen.append(data.get()["name"])
    launch = plain[(1,)]
    for expected in (0, 2, 2, 4):
        launch(x, out, 16, BLOCK=16)
        launch(x, out, 16, BLOCK=16)
        assert len(seen) == expected
        (hooks.launch_exit.remove if hooks.launch_exit.calls else hooks.launch_exit.add)(hook)
    hooks.launch_exit.remove(hook)


def test_a_hook_that_raises_ends_the_launch():
    from tessera.runtime.hooks import hooks

    def refuse(data):
        raise RuntimeError("no launches")

    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    plain[(1,)](x, out, 16, BLOCK=16)
    out[:] = 0
    hooks.launch_enter.add(refuse)
    try:
        for _ in range(3):
            with pytest.raises(RuntimeError, match="no launches"):
                plain[(1,)](x, out, 16, BLOCK=16)
            assert not out.any()
    finally:
        hooks.launch_enter.remove(refuse)


def test_a_hook_that_launches():
    from tessera.runtime.hooks import hooks

    x, out, other = np.ones(16, np.float32), np.zeros(16, np.float32), np.zeros(16, np.float32)
    depth: list[int] = []

    def launch_more(data):
        if len(depth) < 3:
            depth.append(1)
            plain[(1,)](x, other, 16, BLOCK=16)

    hooks.launch_enter.add(launch_more)
    try:
        for _ in range(2):
            depth.clear()
            plain[(1,)](x, out, 16, BLOCK=16)
            assert len(depth) == 3 and other.all() and out.all()
    finally:
        hooks.launch_enter.remove(launch_more)


def test_hooks_of_launches_of_compiled_and_tuned_kernels(monkeypatch, hooked):
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    kernel = described[(1,)](x, out, 16)
    hooked.clear()
    for given in ((16, 16), (16,), (16, 16)):
        kernel[(1,)](x, out, *given)
    for name in ("n", "BLOCK"):
        assert [data["args"][name] for _, data in hooked] == [16] * 6
    hooked.clear()
    kernel.run(1, 1, 1, None, None, None, kernel.launch_metadata((1, 1, 1), None, x, out, 16, 16),
               None, None, x, out, 16, 16)  # fmt: skip
    assert len(hooked) == 2 and hooked[0][1]["args"]["out_ptr"] is out

    tuned = tessera.autotune(configs=[tessera.Config({"BLOCK": 16})], key=[])(described)
    tuned[(1,)](x, out, 16)
    hooked.clear()
    whole = count_calls(monkeypatch, JITFunction, "_run")
    hooked.clear()
    for _ in range(3):
        tuned[(1,)](x, out, 16)
    assert [data["args"]["BLOCK"] for _, data in hooked] == [16] * 6 and not whole


def test_hooks_of_compilations_are_told_of_those_alone(whole_launches, monkeypatch):
    from tessera.runtime.hooks import hooks
    from tessera.settings import note_change

    told: list[Any] = []
    monkeypatch.setattr(hooks, "jit_cache", lambda **facts: told.append(facts["repr"]))
    note_change()
    x, out = np.zeros(16, np.float32), np.zeros(16, np.float32)

    @tessera.jit
    def fresh(x_ptr, out_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i))

    for _ in range(3):
        fresh[(1,)](x, out, BLOCK=16)
    assert len(told) == 1 and len(whole_launches) == 1
    fresh[(1,)](x, out, BLOCK=8)
    assert len(told) == 2


def test_a_kernels_own_hooks(whole_launches):
    @tessera.jit
    def own(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

    x, out = np.zeros(16, np.float32), np.zeros(16, np.float32)
    own[(1,)](x, out, 16, BLOCK=16)
    calls: list[Any] = []
    own.add_pre_run_hook(lambda *args, **kwargs: calls.append((args, kwargs)))
    own.add_pre_run_hook(lambda x, out, n, **kwargs: x.fill(len(calls)))
    own[(1,)](x, out, 16, BLOCK=16)
    whole_launches.clear()
    for time in (2, 3, 4):
        own[(1,)](x, out, 16, BLOCK=16)
        assert len(calls) == time and (out == time).all()
    assert calls[-1][0][2] == 16 and calls[-1][1] == {"BLOCK": 16}
    assert len(whole_launches) <= 1
    own.run(x, out, 16, BLOCK=16, grid=(1,))
    own.warmup(x, out, 16, BLOCK=16)
    assert len(calls) == 6
    own.pre_run_hooks.clear()
    own[(1,)](x, out, 16, BLOCK=16)
    assert len(calls) == 6


def test_parts_of_an_argument_are_nothing_to_look_after():
    out = np.zeros(2, np.int32)
    for _ in range(2):
        of_parts[(1,)]((3, (5,)), out)
        sum_up[(1,)](out, 2, 3)
    for fn in (of_parts, sum_up):
        for found in fn._kernels.values():
            # The function's code, and names in modules: nothing that Python is asked for.
            assert not any(check[1:] == (None, None) for check in found.checks), found.checks


@tessera.jit
def sums_for_long(pair, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        total += tl.load(pair[0] + i + k % 2) * tl.load(pair[1] + i)
    tl.store(out_ptr + i, total)


def test_arrays_of_a_list_live_until_the_launch_is_done():
    out = np.zeros(64, np.float32)

    def launch(n):
        pair = [np.ones(128, np.float32), np.ones(64, np.float32)]
        known, seen = weakref.ref(pair[0]), []

        def change():
            time.sleep(0.02)
            pair.clear()
            gc.collect()
            seen.append((known() is not None, out[0] == 0))

        out[:] = 0
        thread = threading.Thread(target=change)
        thread.start()
        sums_for_long[(1,)](pair, out, n, BLOCK=64, num_threads=1)
        thread.join()
        return seen[0]

    launch(3)
    n = 1 << 20
    while True:  # until the list changes while the kernel runs
        is_alive, was_running = launch(n)
        if was_running or n > 1 << 30:
            break
        n *= 4
    assert was_running and is_alive
    np.testing.assert_array_equal(out, np.float32(min(n, 1 << 24)))
