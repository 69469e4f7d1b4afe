# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays as arguments: NumPy, torch and DLPack, and those that are refused."""

import gc
import weakref

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.runtime.arrays import pointer_of, reinterpret, to_dtype


@pytest.mark.parametrize(
    "dtype, wanted",
    [
        ("bool", tl.int1),
        ("int8", tl.int8),
        ("int16", tl.int16),
        ("int32", tl.int32),
        ("int64", tl.int64),
        ("uint8", tl.uint8),
        ("uint16", tl.uint16),
        ("uint32", tl.uint32),
        ("uint64", tl.uint64),
        ("float16", tl.float16),
        ("float32", tl.float32),
        ("float64", tl.float64),
    ],
)
def test_numpy_dtypes(dtype, wanted):
    array = np.zeros(3, dtype)
    pointer = pointer_of(array, "x")
    assert (pointer.address, pointer.dtype, pointer.read_only) == (
        array.ctypes.data, wanted, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "dtype, wanted",
    [
        ("bfloat16", tl.bfloat16),
        ("float8_e5m2", tl.float8e5),
        ("float8_e4m3fn", tl.float8e4nv),
    ],
)
def test_ml_dtypes(dtype, wanted):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.zeros(3, getattr(ml_dtypes, dtype))
    assert pointer_of(array, "x").dtype == wanted


def test_views_point_at_their_first_element():
    array = np.arange(10, dtype=np.float32)
    assert pointer_of(array[3:], "x").address == array.ctypes.data + 12
    assert pointer_of(array[::-1], "x").address == array.ctypes.data + 36
    assert pointer_of(np.zeros((0, 3)), "x") is not None
    assert pointer_of(np.array(2.0), "x").dtype == tl.float64


def test_read_only_is_seen():
    array = np.zeros(3)
    array.flags.writeable = False
    assert pointer_of(array, "x").read_only


@pytest.mark.parametrize(
    "value, why",
    [
        (np.array([1, "a"], object), "holds Python objects"),
        (np.zeros(3, ">f4"), "the other byte order"),
        (np.zeros(3, np.complex64), "elements of complex64"),
        (np.zeros(3, "datetime64[s]"), "elements of datetime64"),
        (np.zeros(3, "U4"), "elements of <U4"),
        (np.zeros(3, [("a", "i4")]), "elements of"),
    ],
)
def test_numpy_arrays_that_are_refused(value, why):
    with pytest.raises(tessera.ArgumentError, match=why) as caught:
        pointer_of(value, "x")
    assert caught.value.id == "E054" and "`x`" in str(caught.value)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    for dtype, wanted in [
        (torch.float32, tl.float32),
        (torch.bfloat16, tl.bfloat16),
        (torch.float16, tl.float16),
        (torch.bool, tl.int1),
        (torch.int64, tl.int64),
        (torch.uint8, tl.uint8),
        (torch.float8_e5m2, tl.float8e5),
    ]:
        tensor = torch.zeros(4, dtype=dtype)
        pointer = pointer_of(tensor, "x")
        assert (pointer.address, pointer.dtype) == (tensor.data_ptr(), wanted)
    parameter = torch.nn.Parameter(torch.zeros(2))
    assert pointer_of(parameter, "x").address == parameter.data_ptr()


def test_torch_tensors_that_are_refused():
    torch = pytest.importorskip("torch")
    for tensor, why in [
        (torch.zeros(3, device="meta"), "meta tensor"),
        (torch.zeros(3, dtype=torch.complex64), "elements of torch.complex64"),
        (torch.eye(3).to_sparse(), "is sparse"),
    ]:
        with pytest.raises(tessera.ArgumentError, match=why) as caught:
            pointer_of(tensor, "x")
        assert caught.value.id == "E054"


class OnlyDLPack:
    """An array of some framework: nothing but DLPack."""

    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)


def test_dlpack():
    array = np.arange(6, dtype=np.int16)
    pointer = pointer_of(OnlyDLPack(array[2:]), "x")
    assert (pointer.address, pointer.dtype) == (array.ctypes.data + 4, tl.int16)


def test_dlpack_keeps_the_memory_alive_and_then_frees_it():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.bfloat16)
    alive = weakref.ref(tensor)
    pointer = pointer_of(OnlyDLPack(tensor), "x")
    assert pointer.dtype == tl.bfloat16 and pointer.address == tensor.data_ptr()
    del tensor
    gc.collect()
    del pointer
    gc.collect()
    assert alive() is None


def test_dlpack_says_what_is_read_only():
    array = np.zeros(3)
    array.flags.writeable = False
    try:
        array.__dlpack__(max_version=(1, 0))
    except (TypeError, BufferError):
        pytest.skip("this NumPy exports no read-only arrays")
    assert pointer_of(OnlyDLPack(array), "x").read_only


def test_dlpack_of_another_device_is_refused():
    with pytest.raises(tessera.ArgumentError, match="a ROCm GPU"):
        pointer_of(OnlyDLPack(np.zeros(3), (10, 0)), "x")


def test_failing_protocols_are_told():
    class Broken:
        dtype = np.dtype("float32")

        def data_ptr(self):
            raise RuntimeError("storage is gone")

    class NoPack(OnlyDLPack):
        def __dlpack__(self, **kwargs):
            raise BufferError("not exportable")

    for value, why in [(Broken(), "storage is gone"), (NoPack(None), "not exportable")]:
        with pytest.raises(tessera.ArgumentError, match=why) as caught:
            pointer_of(value, "x")
        assert caught.value.id == "E058"


def test_reinterpret():
    array = np.zeros(4, np.int8)
    seen = reinterpret(array, tl.float8e5)
    assert pointer_of(seen, "x")[:2] == (array.ctypes.data, tl.float8e5)
    with pytest.raises(tessera.ArgumentError, match="1 bytes, those of fp32 have 4"):
        reinterpret(array, tl.float32)


def test_no_array():
    for value in (3, 2.5, "x", None, [1, 2], object()):
        assert pointer_of(value, "x") is None
    with pytest.raises(tessera.ArgumentError, match="no element type for 'quaternion'"):
        to_dtype("quaternion")


def test_jax_arrays_may_be_read_but_never_written():
    jnp = pytest.importorskip("jax.numpy")
    array = jnp.arange(16, dtype=jnp.bfloat16)
    pointer = pointer_of(array, "x")
    assert pointer.dtype == tl.bfloat16 and pointer.read_only
    assert pointer.address == array.unsafe_buffer_pointer()
