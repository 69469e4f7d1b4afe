# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes in launches: each is one error with an id that names the argument and the fix."""

from __future__ import annotations

import collections
import decimal
import fractions
import inspect
import sys
import traceback

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera import settings
from tessera.wording import counted, with_article


@pytest.fixture(autouse=True)
def private_cache(tmp_path):
    with settings.override(cache_dir=str(tmp_path / "cache")):
        yield


@tessera.jit
def fill(x, n, B: tl.constexpr = 16):
    tl.store(x + tl.arange(0, B), n)


@tessera.jit
def typed(n: tl.int8, f: tl.float32):
    pass


@tessera.jit
def single(x):
    pass


@tessera.jit
def three(a, b, c):
    pass


X = np.zeros(64, np.float32)


class Raises:
    """An array of which asking for one thing raises an exception."""

    def __init__(self, what, **known):
        self.__dict__.update(known)
        self.what = what

    def __getattr__(self, name):
        if name == self.what:
            raise RuntimeError(f"no {name} today")
        raise AttributeError(name)


class WithDataPtr:
    dtype = "float32"
    shape = (3,)

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        if isinstance(self.address, Exception):
            raise self.address
        return self.address


class WithDLPack:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        raise BufferError("not exported")


class Interface:
    def __init__(self, **interface):
        self.dtype = np.dtype("f4")
        self.__array_interface__ = interface


class CUDAInterface:
    def __init__(self, **interface):
        self.__cuda_array_interface__ = interface


def launch(*args, grid=(1,), kernel=fill, **kwargs):
    return lambda: kernel[grid](*args, **kwargs)


HUGE = 10**5000

MISTAKES = {
    # Arguments that are missing, too many, given twice or not known.
    "missing": (launch(X), "E051", "without `n`"),
    "all missing": (launch(), "E051", "without `x`, `n`"),
    "extra": (launch(X, 1, 16, 4), "E051", "`fill` takes 3 arguments by place, got 4"),
    "one and extra": (launch(X, 1, kernel=single), "E051", "takes 1 argument by place, got 2"),
    "unknown option": (launch(X, 1, num_wraps=4), "E051", "did you mean `num_warps`"),
    "unknown name": (launch(X, 1, BB=4), "E051", "`BB`"),
    # Grids.
    "grid int": (launch(X, 1, grid=-5), "E052", "the grid -5 has the extent -5"),
    "grid empty": (launch(X, 1, grid=()), "E052", "has 0 extents"),
    "grid list": (launch(X, 1, grid=[]), "E052", "has 0 extents"),
    "grid of 4": (launch(X, 1, grid=(1, 1, 1, 1)), "E052", "has 4 extents"),
    "grid float": (launch(X, 1, grid=(1.0,)), "E052", "the extent 1.0, a float"),
    "grid negative": (launch(X, 1, grid=(4, -1)), "E052", "the extent -1"),
    "grid large": (launch(X, 1, grid=(2**31,)), "E052", "use 0 to 2147483647"),
    "grid larger": (launch(X, 1, grid=(HUGE,)), "E052", "the extent"),
    "grid too many": (launch(X, 1, grid=(2**31 - 1,) * 3), "E052", "more than 2.63 programs"),
    "grid string": (launch(X, 1, grid="4"), "E052", "the grid is '4'"),
    "grid of strings": (launch(X, 1, grid=("4",)), "E052", "the extent '4', a str"),
    "grid None": (launch(X, 1, grid=None), "E052", "the grid is None"),
    "grid nested": (launch(X, 1, grid=((1,),)), "E052", r"the extent \(1,\), a tuple"),
    "grid array": (launch(X, 1, grid=np.array([1])), "E052", "not one to three integers"),
    "grid returns None": (launch(X, 1, grid=lambda meta: None), "E052", "function returned None"),
    "grid returns float": (launch(X, 1, grid=lambda meta: (0.5,)), "E052", "the extent 0.5"),
    "grid returns int": (launch(X, 1, grid=lambda meta: -3), "E052", "the extent -3"),
    # Options.
    **{
        f"{name} {index}": (launch(X, 1, **{name: value}), "E053", name)
        for name, values in {
            "num_warps": (3, 0, 64, -4, 4.0, "4", None, True, HUGE),
            "num_stages": (-1, 1.5, "2"),
            "num_ctas": (3, 0, 16, True, "2"),
            "num_threads": (-1, 1.5, 1 << 16),
            "maxnreg": (-1, "64"),
        }.items()
        for index, value in enumerate(values)
    },
    "target": (launch(X, 1, target="tpu"), "E053", "no target 'tpu'"),
    # Things that are no arguments.
    **{
        f"argument {type(value).__name__}": (launch(value, 1), "E054", message)
        for value, message in [
            ({}, r"`x` is a dict, which no kernel can take: {}\nfix: pass an array"),
            (set(), "`x` is a set"),
            ("x", "`x` is a str"),
            (b"x", "`x` is a bytes"),
            (1j, "`x` is a complex"),
            (range(3), "`x` is a range"),
            (object(), "`x` is an object"),
            (collections.OrderedDict(), "`x` is an OrderedDict"),
            (decimal.Decimal(1), "`x` is a Decimal"),
            (fractions.Fraction(1, 2), "`x` is a Fraction"),
            (print, "`x` is a builtin_function_or_method"),
            (sys, "`x` is a module"),
            (int, "`x` is a type"),
            (..., "`x` is an ellipsis"),
            (memoryview(b"abc"), "`x` is a memoryview"),
            (np.complex64(1), "`x` is a complex64"),
            (np.datetime64("2020-01-01"), "`x` is a datetime64"),
            (np.str_("x"), "`x` is a str_"),
        ]
    },
    "in a tuple": (launch((X, {1}), 1), "E054", r"`x\[1\]` is a set"),
    # Arrays that are none of a kernel's.
    "objects": (launch(np.array([1, "a"], object), 1), "E054", "holds Python objects"),
    "longdouble": (launch(np.zeros(3, np.longdouble), 1), "E054", "elements of"),
    "complex": (launch(np.zeros(3, np.complex128), 1), "E054", "elements of complex128"),
    "byte order": (launch(np.zeros(3, ">f4"), 1), "E054", "other byte order"),
    "strings": (launch(np.zeros(3, "U3"), 1), "E054", "elements of"),
    "records": (launch(np.zeros(3, "i4,f4"), 1), "E054", "elements of"),
    "masked": (launch(np.ma.zeros(3), 1), "E054", "has a mask"),
    # Numbers that do not fit.
    "2**64": (launch(X, 2**64), "E055", "18446744073709551616"),
    "-2**63 - 1": (launch(X, -(2**63) - 1), "E055", "-9223372036854775809"),
    "huge": (launch(X, HUGE), "E055", "`n` is"),
    "float for int8": (launch(1.5, 1.0, kernel=typed), "E055", "annotated int8, got the float 1.5"),
    "inf for int8": (launch(float("inf"), 1.0, kernel=typed), "E055", "got the float inf"),
    "huge for float": (launch(1, HUGE, kernel=typed), "E055", "does not fit"),
    "str for float": (launch(1, "1", kernel=typed), "E054", "annotated fp32, got a str"),
    "array for float": (launch(1, X, kernel=typed), "E054", "annotated fp32, got an? ndarray"),
    "None for an array": (launch(None, 1), "E0", ""),
    "a number for an array": (launch(4, 1), "E0", ""),
    # Constants.
    "unhashable": (launch(X, 1, [16]), "E033", "hashable, got a list"),
    "array as constant": (launch(X, 1, X), "E033", "is a constexpr, got an? ndarray"),
    # Objects that fail to say where their elements are.
    "data_ptr raises": (launch(WithDataPtr(OSError("gone")), 1), "E058", "OSError: gone"),
    "data_ptr None": (launch(WithDataPtr(None), 1), "E054", "data_ptr.. that returns None"),
    "data_ptr str": (launch(WithDataPtr("1"), 1), "E054", "data_ptr.. that returns '1'"),
    "data_ptr float": (launch(WithDataPtr(1.0), 1), "E054", "data_ptr.. that returns 1.0"),
    "data_ptr negative": (launch(WithDataPtr(-1), 1), "E054", "lies at -1"),
    "dtype raises": (launch(Raises("dtype", data_ptr=lambda: 64), 1), "E058", "no dtype today"),
    "device raises": (
        launch(Raises("device", data_ptr=lambda: 64, dtype="float32"), 1),
        "E058",
        "no device today",
    ),
    "dlpack raises": (launch(WithDLPack(), 1), "E058", "BufferError: not exported"),
    "interface raises": (launch(Raises("__array_interface__"), 1), "E058", "interface__ today"),
    "interface empty": (launch(Interface(), 1), "E058", "KeyError"),
    "interface shape": (launch(Interface(data=(64, False), shape="x"), 1), "E058", "TypeError"),
    "CUDA interface empty": (launch(CUDAInterface(), 1), "E058", "KeyError"),
    "CUDA interface typestr": (
        launch(CUDAInterface(data=(64, False), shape=(1,), typestr="<c8", version=0), 1),
        "E054",
        "elements of <c8",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_error(mistake):
    launch, id, message = MISTAKES[mistake]
    before = X.copy()
    for _ in range(2):  # once more, when the kernel may be known
        with pytest.raises(tessera.TesseraError, match=message) as caught:
            launch()
        assert caught.value.id.startswith(id)
        text = str(caught.value)
        assert len(text) < 2000 and " a object" not in text and " 1 arguments" not in text
    assert np.array_equal(X, before)


def test_numbers_that_fit():
    kernel = tessera.jit(fill.fn)
    for value in (
        *(2**63, 2**64 - 1, -(2**63), True, np.int64(-5), np.uint64(2**63), np.float16(0.5)),
        *(float("inf"), -float("inf"), np.bool_(True), np.array(3), np.array(2.5)),
    ):
        x = np.zeros(16, np.float64)
        kernel[(1,)](x, value if not isinstance(value, np.ndarray) else value.item())
        assert x[0] == np.float64(value)


def test_torch_modes():
    torch = pytest.importorskip("torch")
    with torch.inference_mode():
        x = torch.zeros(16)
        fill[(1,)](x, 3)
        assert torch.all(x == 3)
    leaf = torch.zeros(16, requires_grad=True)
    fill[(1,)](leaf, 3)
    fill[(1,)](torch.nn.Parameter(leaf), 4)
    assert torch.all(leaf == 4)


class TestArguments:
    """Mistakes in the kernel that come of what is passed."""

    @tessera.jit
    def add(x, n):
        tl.store(x + tl.arange(0, 16), 1, mask=tl.arange(0, 16) < n)

    @pytest.mark.parametrize("way", [lambda fn: fn, tessera.interpret])
    def test_array_without_dimensions(self, way):
        with pytest.raises(tessera.CompilationError) as caught:
            way(self.add)[(1,)](X, np.array(3))
        assert caught.value.id == "E029"
        assert "`n` is an array without dimensions" in caught.value.notes[0].message
        assert caught.value.fix == "pass n.item() for its number, or load it: tl.load(n)"

    def test_list(self):
        with pytest.raises(tessera.CompilationError) as caught:
            self.add[(1,)]([1.0, 2.0], 3)
        assert "`x` is a list" in caught.value.notes[0].message
        assert "np.array(x, np.float32)" in caught.value.fix

    @pytest.mark.parametrize(
        "call",
        [
            lambda fn: tessera.compile(fn, "*fp32,*i32"),
            lambda fn: tessera.compile(fn, "*fp32,i32", target="sm_1"),
            lambda fn: tessera.interpret(fn)[(1,)](X, np.array(3)),
            lambda fn: tessera.gpu.simulate(fn)[(1,)](X, np.array(3)),
        ],
    )
    def test_frames_are_the_users(self, call):
        with pytest.raises(tessera.TesseraError) as caught:
            call(self.add)
        files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert files == [__file__, __file__]

    def test_compile_is_a_function_to_tools(self):
        assert str(inspect.signature(tessera.compile)).startswith("(source:")
        assert tessera.compile.__doc__.startswith("Compiles a kernel")


class TestDeclarations:
    def test_option_of_a_launch(self):
        with pytest.raises(tessera.CompilationError) as caught:
            tessera.jit(num_warps=4)(fill.fn)
        assert caught.value.id == "E001" and caught.value.line > 0
        assert "kernel[grid](..., num_warps=...)" in caught.value.fix

    def test_method(self):
        class Model:
            @tessera.jit
            def kernel(self, x):
                pass

        with pytest.raises(tessera.ArgumentError, match="without `x`") as caught:
            Model().kernel[(1,)](X)
        assert caught.value.id == "E051"
        assert "out of the class" in caught.value.fix

    def test_array_as_a_default(self):
        with pytest.raises(tessera.CompilationError, match="default of `w` is a ndarray") as caught:

            @tessera.jit
            def kernel(x, w=X):
                pass

        assert caught.value.id == "E006" and caught.value.line > 0

    def test_config_without_names(self):
        with pytest.raises(tessera.ArgumentError, match="are 128, and not a dict") as caught:
            tessera.Config(128)
        assert caught.value.id == "E059"
        assert 'Config({"BLOCK": 128}' in caught.value.fix

    def test_signature_that_is_too_short(self):
        with pytest.raises(tessera.ArgumentError, match="2 items for 3 parameters") as caught:
            tessera.compile(three, "i32,i32")
        assert "each of a, b, c" in caught.value.fix

    def test_target_without_a_driver(self):
        if tessera._C.cuda_is_available():
            pytest.skip("there is a driver")
        with pytest.raises(tessera.LaunchError, match='target="cuda" is the GPU') as caught:
            tessera.compile(fill, "*fp32,i32", target="cuda")
        assert caught.value.id == "E066"
        assert 'target="sm_90a"' in caught.value.fix


def test_wording():
    assert [with_article(noun) for noun in ("int", "list", "ndarray", "object", "uint8")] == [
        "an int", "a list", "a ndarray", "an object", "a uint8",
    ]  # fmt: skip
    assert [counted(n, "argument") for n in (0, 1, 2)] == [
        "0 arguments",
        "1 argument",
        "2 arguments",
    ]
