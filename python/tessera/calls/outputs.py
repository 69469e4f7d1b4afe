# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arrays that plain calls return: made by the library whose arrays a call was given.

No library is imported: one whose arrays are passed is loaded.
"""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any, Callable, Optional, Sequence

from tessera import _C
from tessera.errors import ArgumentError
from tessera.language import types
from tessera.runtime.arrays import dtype_name, find_dtype
from tessera.wording import with_article


def library_of(value: Any) -> str:
    """The library of the array `value`: "numpy", "torch", ...; empty if it is not an array."""
    return library_of_class(type(value))


def library_of_class(cls: type) -> str:
    """The library of arrays of that class; empty if these are no arrays."""
    known = _libraries_of_types.get(cls)
    if known is None:
        known = _libraries_of_types[cls] = _find_library(cls)
    return known


_libraries_of_types: "weakref.WeakKeyDictionary[type, str]" = weakref.WeakKeyDictionary()


def _find_library(cls: type) -> str:
    names = [base.__module__.partition(".")[0] for base in cls.__mro__]
    for base, root in zip(cls.__mro__, names):
        if base.__name__ == "generic" and root == "numpy":
            return ""  # a number
    # A class derived from an array's is one of that library, too.
    for root in names:
        if root in _LIBRARIES or root in ("jax", "jaxlib"):
            if root == "cupy" and cls is getattr(sys.modules[root], "ndarray", None):
                _C.learn_cupy_class(cls)
            return ("jax" if root == "jaxlib" else root) if hasattr(cls, "shape") else ""
    return ""


def is_dense(value: Any) -> bool:
    """True if the elements of an array lie in the order of its indices, without gaps."""
    if callable(getattr(value, "is_contiguous", None)):
        return bool(value.is_contiguous())
    flags = getattr(value, "flags", None)
    dense = getattr(flags, "c_contiguous", None)
    return True if dense is None else bool(dense)


def make_dense(value: Any, shape: Sequence[int]) -> Any:
    """A copy of an array, broadcast to a shape, whose elements lie in the order of its indices."""
    library = library_of(value)
    if library == "torch":
        # A copy in any case: a tensor that is expanded to one element less is dense.
        return value.expand(tuple(shape)).clone(
            memory_format=sys.modules["torch"].contiguous_format
        )
    module = sys.modules["jax.numpy" if library == "jax" else library]
    wide = module.broadcast_to(value, tuple(shape))
    return wide if library in ("jax", "tensorflow") else module.array(wide, order="C", copy=True)


def assign(target: Any, value: Any) -> None:
    """Copies the elements of an array to another one of the same shape and library."""
    if library_of(target) == "torch":
        target.copy_(value)
    else:
        target[...] = value


def make_output(like: Any, shape: Sequence[int], dtype: Optional[types.dtype], name: str) -> Any:
    """An array without values, of the library and on the device of the array `like`; `dtype` None
    is the type of `like`."""
    make = _LIBRARIES[library_of(like)]
    wanted = None if dtype is None or dtype == find_dtype(like.dtype) else dtype
    return make(like, tuple(shape), wanted, name)


def _numpy(like: Any, shape: tuple[int, ...], dtype: Optional[types.dtype], name: str) -> Any:
    numpy = sys.modules["numpy"]
    return numpy.empty(shape, like.dtype if dtype is None else numpy_dtype(dtype, name))


def numpy_dtype(dtype: types.dtype, name: str) -> Any:
    """NumPy's type of an element type. Raises ArgumentError (E076) where it has none."""
    import numpy

    spelled = dtype_name(dtype)
    try:
        return numpy.dtype(spelled)
    except TypeError:
        pass
    try:
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, spelled))
    except (ImportError, AttributeError):
        raise ArgumentError(
            "E076",
            f"output `{name}` is to have elements of {spelled}, which NumPy does not know",
            "pip install ml_dtypes",
        ) from None


def _torch(like: Any, shape: tuple[int, ...], dtype: Optional[types.dtype], name: str) -> Any:
    torch = sys.modules["torch"]
    wanted = like.dtype if dtype is None else getattr(torch, dtype_name(dtype), None)
    if wanted is None:
        raise _unknown(dtype, name, "torch")
    return torch.empty(shape, dtype=wanted, device=like.device)


def _cupy(like: Any, shape: tuple[int, ...], dtype: Optional[types.dtype], name: str) -> Any:
    cupy = sys.modules["cupy"]
    with like.device:
        return cupy.empty(shape, like.dtype if dtype is None else numpy_dtype(dtype, name))


def _tensorflow(like: Any, shape: tuple[int, ...], dtype: Optional[types.dtype], name: str) -> Any:
    # TensorFlow's own arrays never change, so the kernel fills one of NumPy's, which `finished`
    # hands over through DLPack.
    if not hasattr(like, "__dlpack__") or not hasattr(like, "_numpy_internal"):
        raise ArgumentError(
            "E057",
            f"output `{name}` is asked for inside tf.function, where arrays have no memory",
            "call it outside, or through tf.py_function",
        )
    if "CPU" not in str(like.device).upper():
        raise ArgumentError(
            "E076",
            f"output `{name}` would be an array of TensorFlow on {like.device}",
            "make the output with torch or CuPy, and hand it over through DLPack",
        )
    import numpy

    wanted = numpy.dtype(like.dtype.as_numpy_dtype if dtype is None else numpy_dtype(dtype, name))
    count = math.prod(shape)
    memory = numpy.empty(count * wanted.itemsize + _TENSORFLOW_ALIGNMENT, numpy.uint8)
    start = -memory.ctypes.data % _TENSORFLOW_ALIGNMENT
    return memory[start : start + count * wanted.itemsize].view(wanted).reshape(shape)


_TENSORFLOW_ALIGNMENT = 64
"""The alignment of arrays that TensorFlow takes over; it ends the process if one has less."""


def finished(like: Any, output: Any) -> Any:
    """The value that a call returns for an output, once the kernel has filled it."""
    if library_of(like) != "tensorflow":
        return output
    tensorflow = sys.modules["tensorflow"]
    if output.size == 0 or str(output.dtype) not in _DLPACK_OF_NUMPY:
        return tensorflow.convert_to_tensor(output)
    return tensorflow.experimental.dlpack.from_dlpack(output.__dlpack__())


_DLPACK_OF_NUMPY = tuple(
    [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["float16", "float32", "float64"]
)


def _unknown(dtype: Optional[types.dtype], name: str, library: str) -> ArgumentError:
    return ArgumentError(
        "E076",
        f"output `{name}` is to have elements of {dtype}, which {library} does not know",
        "write another type",
    )


_LIBRARIES: dict[str, Callable[[Any, tuple[int, ...], Optional[types.dtype], str], Any]] = {
    "numpy": _numpy,
    "torch": _torch,
    "cupy": _cupy,
    "tensorflow": _tensorflow,
}


def refuse_unknown(value: Any, name: str) -> ArgumentError:
    """The error for an argument that has to be an array and is none that outputs can be like."""
    return ArgumentError(
        "E076",
        f"argument `{name}` is {with_article(type(value).__name__)}, where an array is expected",
        "pass an array of NumPy, torch, CuPy, JAX or TensorFlow",
    )
