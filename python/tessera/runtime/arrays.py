# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays as kernel arguments: their address, element type, and whether they may be written.

NumPy arrays, torch tensors, whatever has `__cuda_array_interface__` (CuPy, Numba) or
exports DLPack (JAX, TensorFlow, ...), and any object with `data_ptr()` and `dtype`. The
memory is the host's or that of an NVIDIA GPU. No framework is imported: an object says
what it is.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, Callable, NamedTuple, NoReturn, Optional, Sequence

from tessera import _C
from tessera.errors import ArgumentError, TesseraError, raise_core_error
from tessera.language import types
from tessera.wording import with_article

# The names by which NumPy, ml_dtypes, torch and DLPack know our element types.
_DTYPE_NAMES = {
    "bool": types.int1,
    "int8": types.int8,
    "int16": types.int16,
    "int32": types.int32,
    "int64": types.int64,
    "uint8": types.uint8,
    "uint16": types.uint16,
    "uint32": types.uint32,
    "uint64": types.uint64,
    "float16": types.float16,
    "bfloat16": types.bfloat16,
    "float32": types.float32,
    "float64": types.float64,
    "float8_e5m2": types.float8e5,
    "float8_e4m3fn": types.float8e4nv,
    "float8_e4m3fnuz": types.float8e4b8,
    "float8_e5m2fnuz": types.float8e5b16,
}

# By the name of a type: Dynamo cannot guard a dictionary whose keys are our types.
_NAMES = {dtype.name: name for name, dtype in _DTYPE_NAMES.items()}

# kDLCPU and the kDLCUDAHost-like device types whose memory the CPU can reach; kDLCUDA and
# kDLCUDAManaged; and some that nothing here can reach.
DLPACK_CPU_DEVICES = (1, 3, 11)
_DLPACK_CUDA_DEVICES = (2, 13)
_DLPACK_DEVICES = {7: "a Vulkan device", 8: "Apple Metal", 10: "a ROCm GPU"}

# These promise that an array never changes, whatever an interface says.
_IMMUTABLE = ("jax", "jaxlib", "tensorflow")

Consumer = Callable[[int], int]
"""The stream of a launch on that GPU, for arrays that make themselves ready on it."""

HOST = -1
"""Pointer.device of memory that the CPU reaches."""
ANYWHERE = -2
"""Pointer.device of an array without elements, which lies nowhere."""
NOWHERE = -3
"""Pointer.device of what stands for an array while a kernel is compiled."""


class Pointer(NamedTuple):
    """An array, as a kernel sees it."""

    address: int
    dtype: types.dtype
    read_only: bool
    owner: Any
    """The owner that keeps the memory alive, if that is not the array itself."""
    device: int = HOST
    """The GPU that the memory belongs to, by its number."""
    framework: str = ""
    """The library whose current stream the array's work uses; empty if `stream` gives it."""
    stream: Optional[int] = None
    """The stream on which what was put last into the array is being computed."""


class TensorWrapper(_C.Reinterpreted):
    """An array seen as elements of another type of the same size; see `reinterpret`.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        bits = np.full(4, 0x3C00, np.int16)
        halves = tessera.reinterpret(bits, tl.float16)
        assert isinstance(halves, tessera.TensorWrapper)
        assert halves.base is bits and halves.dtype == tl.float16 and halves.shape == (4,)
    """

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base = base
        self.dtype = dtype if type(dtype) is types.dtype else to_dtype(dtype)

    def __reduce__(self) -> Any:
        # The members of the base class are not in `__dict__`.
        return type(self), (self.base, self.dtype), (vars(self) or None, {"_data": self._data})

    @property
    def shape(self) -> Any:
        """As of the array."""
        return getattr(self.base, "shape", ())

    @property
    def data(self) -> Any:
        """The array's own data, or what was put in their place."""
        return self.base.data if self._data is None else self._data

    @data.setter
    def data(self, value: Any) -> None:
        self._data = value

    @property
    def device(self) -> Any:
        """Its device."""
        return self.base.device

    def data_ptr(self) -> int:
        """Its address."""
        pointer = pointer_of(self.base, "tensor")
        assert pointer is not None
        return pointer.address

    def stride(self, *args: Any) -> Any:
        """As of the array."""
        return self.base.stride(*args)

    def element_size(self) -> int:
        """The bytes of an element."""
        return int(self.dtype.itemsize)

    def cpu(self) -> "TensorWrapper":
        """The same in the CPU's memory."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def clone(self) -> "TensorWrapper":
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device: Any) -> "TensorWrapper":
        """The same on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> "TensorWrapper":
        """Another one of that size on the same device."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def copy_(self, other: "TensorWrapper") -> None:
        """Takes over the elements of `other`."""
        self.base.copy_(other.base)

    def __repr__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base!r})"


_C.learn_wrapper(TensorWrapper)


class MockTensor:
    """A pointer with an element type but no memory, to compile a kernel with.

    Example:
        import tessera
        import tessera.language as tl

        @tessera.jit
        def clear(x_ptr, BLOCK: tl.constexpr):
            tl.store(x_ptr + tl.arange(0, BLOCK), 0)

        compiled = clear.warmup(tessera.MockTensor(tl.float16), BLOCK=64, grid=(1,))
        assert "f16" in compiled.asm["tile"]
    """

    def __init__(self, dtype: Any, shape: Optional[Any] = None) -> None:
        self.dtype = to_dtype(dtype)
        self.shape = [1] if shape is None else shape
        self._check_shape()

    def _check_shape(self) -> None:
        """Raises ArgumentError (E054) for extents that no array has."""
        try:
            extents = [operator.index(extent) for extent in self.shape]
        except TypeError:
            extents = [-1]
        elements = math.prod(extents)
        if min(extents, default=0) < 0 or elements * self.dtype.primitive_bitwidth >= 1 << 66:
            raise ArgumentError(
                "E054",
                f"a MockTensor has the shape {self.shape!r}",
                "use integers of 0 or more, with less than 2^63 bytes in all",
            )

    def __repr__(self) -> str:
        return f"MockTensor({self.dtype!r}, {self.shape!r})"

    @staticmethod
    def wrap_dtype(arg: Any) -> Any:
        """A MockTensor of `arg` where that is an element type, else `arg`."""
        return MockTensor(arg) if is_dtype(arg) else arg

    def stride(self, dim: Optional[int] = None) -> Any:
        """As of a dense array, in elements."""
        strides: list[int] = []
        size = 1
        for extent in reversed(self.shape):
            strides.insert(0, size)
            size *= extent
        return tuple(strides) if dim is None else strides[dim]

    @staticmethod
    def data_ptr() -> int:
        """An address as aligned as any allocator's."""
        return 0


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """`tensor`, with its memory read as elements of `dtype` (fp8 in an int8 array).

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def widen(x_ptr, out_ptr):
            i = tl.arange(0, 4)
            tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.float32))

        bits = np.array([0x38, 0x40, 0xB8, 0x00], np.uint8)  # NumPy has no 8-bit floats
        out = np.zeros(4, np.float32)
        widen[(1,)](tessera.reinterpret(bits, tl.float8e4nv), out)
        assert out.tolist() == [1, 2, -1, 0]
    """
    # Programs reinterpret at each launch, which looks at the array itself again.
    known = _C.reinterpret_known(tensor, dtype)
    if known is not None:
        return known
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    if base is not tensor and dtype == base.dtype:
        return base
    wanted = to_dtype(dtype)
    pointer = pointer_of(base, "tensor")
    if pointer is None:
        raise ArgumentError("E054", f"{with_article(_type_name(tensor))} is not an array")
    if pointer.dtype.itemsize != wanted.itemsize:
        raise ArgumentError(
            "E035",
            f"elements of {pointer.dtype} have {pointer.dtype.itemsize} bytes, "
            f"those of {wanted} have {wanted.itemsize}",
            "reinterpret as a type of the same size",
        )
    given = getattr(tensor, "dtype", None)
    # Kinds are known by the identity of dtypes; no wrapper is among them.
    if base is tensor and wanted is dtype and given is not None and given is tensor.dtype:
        _C.learn_reinterpretable(type(tensor), given, dtype)
    return TensorWrapper(base, wanted)


def find_dtype(dtype: Any) -> Optional[types.dtype]:
    """Our element type for a `tl` dtype, a NumPy or torch dtype or its name, if there is one."""
    if isinstance(dtype, types.dtype):
        return dtype
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type):  # numpy.float32 itself
        name = dtype.__name__
    else:
        name = getattr(dtype, "name", None) or str(dtype)
    return _DTYPE_NAMES.get(name.removeprefix("torch."))


def is_dtype(value: Any) -> bool:
    """True if `value` is an element type that `find_dtype` knows, spelled as an object."""
    kind = type(value)
    spelled = isinstance(value, types.dtype) or kind.__name__ == "dtype" or "DType" in kind.__name__
    numpy_class = isinstance(value, type) and value.__module__ in ("numpy", "ml_dtypes")
    return (spelled or numpy_class) and find_dtype(value) is not None


def to_dtype(dtype: Any) -> types.dtype:
    """Like `find_dtype`, but raises ArgumentError (E054) where there is none."""
    found = find_dtype(dtype)
    if found is None:
        raise ArgumentError(
            "E054",
            f"there is no element type for {dtype!r}",
            f"use one of {', '.join(_DTYPE_NAMES)}",
        )
    return found


def dtype_name(dtype: types.dtype) -> str:
    """The name of an element type in NumPy, ml_dtypes and torch."""
    return _NAMES.get(dtype.name, str(dtype))


def described(value: Any) -> Any:
    """The array that a tensor descriptor describes; anything else itself."""
    return value.base if hasattr(value, "block_shape") and hasattr(value, "base") else value


def pointer_of(value: Any, name: str, consumer: Optional[Consumer] = None) -> Optional[Pointer]:
    """The memory of `value`, or None if it is no array. An array on a GPU that exports DLPack is
    exported to the stream of `consumer`, or to the legacy default stream.

    Raises ArgumentError (E054, E058) for an array that a kernel cannot take; `name` is what
    the message calls it.
    """
    try:
        return _find_pointer(value, name, consumer)
    except (TesseraError, MemoryError):
        raise
    except Exception as error:
        _refuse_call(value, name, "asking it where its elements are", error)


def is_fake(value: Any) -> bool:
    """True if `value` stands for a tensor of torch while something is traced."""
    return _has_base(value, "torch._subclasses.fake_tensor", "FakeTensor")


def is_tracer(value: Any) -> bool:
    """True if `value` stands for an array of JAX while something is traced."""
    return _has_base(value, "jax", "Tracer")


def _find_pointer(value: Any, name: str, consumer: Optional[Consumer]) -> Optional[Pointer]:
    if _is_immutable(value) and is_tracer(value):
        raise ArgumentError(
            "E057",
            f"argument `{name}` is a tracer of JAX, which has no memory",
            "inside jax.jit, jax.vmap or jax.grad, write tessera.jax.call(kernel, ..., "
            "out_shape=..., grid=...)",
        )
    if isinstance(value, TensorWrapper):
        pointer = pointer_of(value.base, name, consumer)
        return None if pointer is None else pointer._replace(dtype=value.dtype)
    if hasattr(value, "__array_interface__") and not hasattr(value, "data_ptr"):
        if is_numpy_scalar(value):
            return None
        return _from_numpy(value, name)
    if callable(getattr(value, "data_ptr", None)) and hasattr(value, "dtype"):
        return _from_data_ptr(value, name)
    if _is_immutable(value) and hasattr(value, "__dlpack__"):
        return _from_dlpack(value, name, consumer)
    if hasattr(value, "__cuda_array_interface__"):
        return _from_cuda_interface(value, name)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, name, consumer)
    return None


def is_exported(value: Any) -> bool:
    """True if `value` is looked at by DLPack, which other protocols precede."""
    if not hasattr(value, "__dlpack__") or hasattr(value, "data_ptr"):
        return False
    return not hasattr(value, "__array_interface__") and (
        _is_immutable(value) or not hasattr(value, "__cuda_array_interface__")
    )


def _is_immutable(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in _IMMUTABLE


def is_numpy_scalar(value: Any) -> bool:
    """True if `value` is one of NumPy's numbers, which never change, and no 0-d array."""
    return any(
        cls.__name__ == "generic" and cls.__module__ == "numpy" for cls in type(value).__mro__
    )


_CONVERT = "convert it to a dtype that kernels have: floats of 8 to 64 bits, integers of 8 to 64 bits, bool"


def _from_numpy(array: Any, name: str) -> Pointer:
    if not hasattr(array, "dtype"):
        _refuse(array, name, "has no dtype", "pass numpy.asarray(it)")
    if _has_base(array, "numpy.ma", "MaskedArray"):
        _refuse(array, name, "has a mask, which no kernel would see", "pass x.filled(value)")
    dtype = find_dtype(array.dtype)
    if dtype is None:
        if str(array.dtype) == "object":
            _refuse(array, name, "holds Python objects", "convert it to a numeric dtype")
        _refuse(array, name, f"has elements of {array.dtype}", _CONVERT)
    if not array.dtype.isnative:
        _refuse(
            array,
            name,
            f"has elements in the other byte order ({array.dtype.str})",
            "convert it: x.astype(x.dtype.newbyteorder('='))",
        )
    if type(array.dtype).__module__.startswith("numpy"):
        _C.learn_dtype(array.dtype, dtype._core_id)
    try:
        interface = array.__array_interface__
        address, read_only = interface["data"]
        size = _count(interface["shape"])
    except Exception as error:
        _refuse_call(array, name, "__array_interface__", error)
    if interface.get("mask") is not None:
        _refuse(array, name, "has a mask", "pass the values and the mask as two arrays")
    if type(array).__name__ != "ndarray" and _has_only(
        array, "__array_interface__", _OTHER_PROTOCOLS[:1]
    ):
        _C.learn_array_interface(type(array))
    return Pointer(_check_address(array, name, address, size), dtype, bool(read_only), None)


def _from_data_ptr(tensor: Any, name: str) -> Pointer:
    device = getattr(tensor, "device", None)
    kind = getattr(device, "type", "cpu")
    if kind == "meta":
        _refuse(tensor, name, "is a meta tensor without memory", "pass a tensor with memory")
    if kind not in ("cpu", "cuda"):
        _refuse(tensor, name, f"is on {device}, where no kernel runs", "pass it.cpu() or it.cuda()")
    refuse_scattered(tensor, name)
    if is_fake(tensor):
        raise ArgumentError(
            "E057",
            f"argument `{name}` is a fake tensor of torch, which has no memory",
            "launch with a tensor that has memory; make the function that launches an operator "
            "with @tessera.torch.op, for torch to trace it",
        )
    # Views whose memory holds other values than they show.
    for bit, what in (("conj", "conjugate"), ("neg", "negative")):
        if (ask := getattr(tensor, f"is_{bit}", None)) is not None and ask():
            _refuse(
                tensor,
                name,
                f"has the {what} bit: its memory holds other values",
                f"pass x.resolve_{bit}()",
            )
    dtype = find_dtype(tensor.dtype)
    if dtype is None:
        _refuse(tensor, name, f"has elements of {tensor.dtype}", _CONVERT)
    if type(tensor.dtype).__module__ == "torch":
        _C.learn_dtype(tensor.dtype, dtype._core_id)
        _learn_negative_bit()
    try:
        address = tensor.data_ptr()
        size = _count_elements(tensor)
    except Exception as error:
        _refuse_call(tensor, name, "data_ptr()", error)
    try:
        address = operator.index(address)
    except TypeError:
        _refuse(tensor, name, f"has a data_ptr() that returns {address!r}", "return an integer")
    if isinstance(tensor, MockTensor):
        return Pointer(address, dtype, False, None, NOWHERE)
    _check_storage(tensor, name, size)
    _check_address(tensor, name, address, size)
    if type(tensor.dtype).__module__ == "torch":
        _C.accept_tensor(tensor, address, dtype._core_id, _is_ordinary(type(tensor)))
    elif isinstance(tensor.dtype, (type, types.dtype)) or _has_base(tensor.dtype, "numpy", "dtype"):
        _C.learn_dtype(tensor.dtype, dtype._core_id)  # of those there are few
    _C.learn_pointer(type(tensor))
    framework = type(tensor.dtype).__module__.partition(".")[0]
    where = (getattr(device, "index", 0) or 0) if kind == "cuda" else HOST
    return Pointer(address, dtype, False, None, where, framework)


# The attributes of a tensor that a launch reads, and those that may replace them.
_READ_OF_TENSORS = (
    "__torch_dispatch__", "__getattribute__", "__getattr__", "data_ptr", "dtype", "device",
    "get_device", "is_cpu", "is_cuda", "is_nested", "is_neg", "is_conj", "layout",
)  # fmt: skip


def _is_ordinary(cls: type) -> bool:
    """True if tensors of a subclass of torch.Tensor answer as torch's own do.

    `__torch_function__` of a class of its own may answer for every method.
    """
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if not isinstance(tensor, type) or cls is tensor or not issubclass(cls, tensor):
        return False
    functions = (getattr(each, "__torch_function__", None) for each in (cls, tensor))
    own, torchs = (getattr(function, "__func__", None) for function in functions)
    return own is torchs and all(
        getattr(cls, name, None) is getattr(tensor, name, None) for name in _READ_OF_TENSORS
    )


def _count(shape: Any) -> int:
    return math.prod(map(operator.index, shape))


def _count_elements(tensor: Any) -> Optional[int]:
    """How many elements an object with `data_ptr` says that it has, if it says so."""
    if callable(getattr(tensor, "numel", None)):
        return operator.index(tensor.numel())
    shape = getattr(tensor, "shape", None)
    return _count(shape) if isinstance(shape, (tuple, list)) else None


def _check_address(array: Any, name: str, address: Any, size: Optional[int]) -> int:
    """`address`, unless there cannot be memory for `size` elements."""
    if not isinstance(address, int) or not 0 <= address < 1 << 64:
        _refuse(array, name, f"says that it lies at {address!r}", "return an address")
    if address == 0 and size != 0:
        _refuse(array, name, "has no memory: it lies at address 0", "pass an array with memory")
    return address


def _check_storage(tensor: Any, name: str, size: Optional[int]) -> None:
    """Refuses a tensor of torch's whose storage was made smaller than the tensor."""
    if not size or not all(hasattr(tensor, what) for what in ("untyped_storage", "stride")):
        return
    try:
        held = tensor.untyped_storage().nbytes()
        last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
        needed = (tensor.storage_offset() + last + 1) * tensor.element_size()
    except Exception:  # one without a storage: what data_ptr() says counts
        return
    if held < needed:
        _refuse(
            tensor,
            name,
            f"needs {needed} bytes of its storage, which has been resized to {held}",
            "resize the storage again, or pass another tensor",
        )


_knows_negative_bit: Optional[bool] = None


def _learn_negative_bit() -> bool:
    """Makes the warm path recognise torch's tensors with the negative bit, without a call for each;
    True if it can now."""
    global _knows_negative_bit
    if _knows_negative_bit is None:
        # Libraries replace torch's operators by kernels, whose launches come here, too.
        _knows_negative_bit = False
        _knows_negative_bit = _try_to_learn_negative_bit()
    return _knows_negative_bit


def _try_to_learn_negative_bit() -> bool:
    torch = sys.modules["torch"]
    try:
        with torch.inference_mode(False), torch.enable_grad():
            plain, negative = [], []
            # As many and as different as it takes for no pointer to have a bit by chance.
            for size in range(1, 9):
                for dtype, has_gradient in ((torch.int8, False), (torch.float64, True)):
                    tensor = torch.empty(
                        size, 3, dtype=dtype, requires_grad=has_gradient, device="cpu"
                    )
                    for _ in range(2):
                        plain += [tensor, tensor.t(), tensor[:, 1:], tensor.clone()]
                        tensor = tensor._neg_view()
                        negative += [tensor, tensor.t(), tensor[:, 1:]]
                        tensor = tensor._neg_view()
        return _C.learn_negative_bit(
            [(tensor, tensor._cdata) for tensor in plain],
            [(tensor, tensor._cdata) for tensor in negative],
        )
    except Exception:  # a torch without these, or one at work on something else
        return False


def _has_base(value: Any, module: str, name: str) -> bool:
    return any(
        cls.__name__ == name and cls.__module__.startswith(module) for cls in type(value).__mro__
    )


def _from_cuda_interface(array: Any, name: str) -> Pointer:
    try:
        interface = array.__cuda_array_interface__
        address, read_only = interface["data"]
        spelled = interface["typestr"]
        size = _count(interface["shape"])
    except Exception as error:
        _refuse_call(array, name, "__cuda_array_interface__", error)
    if interface.get("mask") is not None:
        _refuse(array, name, "has a mask", "pass the values and the mask as two arrays")
    # "<V2" may be anything of two bytes: the array knows better what it holds.
    dtype = find_dtype(getattr(array, "dtype", "")) or _TYPESTRS.get(spelled[1:])
    if dtype is None:
        shown = getattr(array, "dtype", spelled)
        _refuse(array, name, f"has elements of {shown}", _CONVERT)
    if spelled[0] == ">":
        _refuse(array, name, f"has elements in the other byte order ({spelled})", "convert it")
    # CuPy says which GPU; others let the driver say. Nothing lies at address 0.
    _check_address(array, name, address, size)
    device = getattr(getattr(array, "device", None), "id", None)
    if not isinstance(device, int):
        device = _find_device(address) if address else ANYWHERE
    stream = interface.get("stream")
    if stream == 0:
        _refuse(array, name, "names stream 0, which is not allowed", "name stream 1 or 2")
    if address and device >= 0 and _has_only(array, _OTHER_PROTOCOLS[2], _OTHER_PROTOCOLS[:2]):
        has_dtype = hasattr(array, "dtype")
        if type(getattr(array, "dtype", None)).__module__.startswith("numpy"):
            _C.learn_dtype(array.dtype, dtype._core_id)
        _C.learn_cuda_interface(type(array), "" if has_dtype else spelled, dtype._core_id)
    return Pointer(address, dtype, bool(read_only), None, device, "", stream)


# The type strings of __array_interface__ without the byte order.
_TYPESTRS = {
    "b1": types.int1,
    "i1": types.int8,
    "i2": types.int16,
    "i4": types.int32,
    "i8": types.int64,
    "u1": types.uint8,
    "u2": types.uint16,
    "u4": types.uint32,
    "u8": types.uint64,
    "f2": types.float16,
    "f4": types.float32,
    "f8": types.float64,
}


def _find_device(address: int) -> int:
    """The GPU that the driver says memory belongs to."""
    try:
        return _C.cuda_pointer_device(address)
    except _C.CoreError as error:
        raise_core_error(error)


def _from_dlpack(array: Any, name: str, consumer: Optional[Consumer]) -> Pointer:
    try:
        kind, device = array.__dlpack_device__()
        asked: dict[str, Any] = {}
        if kind in _DLPACK_CUDA_DEVICES:
            # 0 is not allowed: it might be the stream of the thread.
            asked["stream"] = (consumer and consumer(int(device))) or LEGACY_STREAM
        elif kind in DLPACK_CPU_DEVICES:
            device = HOST
        else:
            where = _DLPACK_DEVICES.get(kind, f"a device of DLPack type {int(kind)}")
            _refuse(array, name, f"is on {where}, where no kernel runs", "copy it")
        try:
            # Only the versioned form says whether the memory is read-only.
            capsule = array.__dlpack__(max_version=(1, 1), **asked)
            is_versioned = True
        except TypeError:
            capsule = array.__dlpack__(**asked)
            is_versioned = False
        address, code, bits, lanes, read_only, has_elements = _C.read_dlpack(capsule)
    except TesseraError:
        raise
    except Exception as error:
        _refuse_call(array, name, "__dlpack__()", error)
    dtype = _DLPACK_DTYPES.get((code, bits)) if lanes == 1 else None
    if dtype is None:
        spelled = getattr(array, "dtype", f"DLPack type ({code}, {bits}, {lanes})")
        _refuse(array, name, f"has elements of {spelled}", _CONVERT)
    _check_address(array, name, address, int(has_elements))
    is_immutable = _is_immutable(array)
    read_only = bool(read_only) or is_immutable
    others = _OTHER_PROTOCOLS[:2] if is_immutable else _OTHER_PROTOCOLS
    if is_versioned and _has_only(array, "__dlpack__", others):
        _C.learn_dlpack(type(array), is_immutable, code, bits, dtype._core_id)
        if is_immutable and device == HOST:
            _C.learn_buffer(array, address, dtype._core_id)
    return Pointer(address, dtype, read_only, capsule, int(device), "", asked.get("stream"))


_OTHER_PROTOCOLS = ("data_ptr", "__array_interface__", "__cuda_array_interface__")


def _has_only(array: Any, protocol: str, others: Sequence[str]) -> bool:
    """True if all objects of a class are looked at by this protocol: it has it, and none of those
    that are asked for first."""
    cls = type(array)
    return hasattr(cls, protocol) and not any(hasattr(array, name) for name in others)


# The legacy default stream, as DLPack and __cuda_array_interface__ number it.
LEGACY_STREAM = 1


# DLDataTypeCode and bits.
_DLPACK_DTYPES = {
    (0, 8): types.int8,
    (0, 16): types.int16,
    (0, 32): types.int32,
    (0, 64): types.int64,
    (1, 8): types.uint8,
    (1, 16): types.uint16,
    (1, 32): types.uint32,
    (1, 64): types.uint64,
    (2, 16): types.float16,
    (2, 32): types.float32,
    (2, 64): types.float64,
    (4, 16): types.bfloat16,
    (6, 8): types.int1,
    (10, 8): types.float8e4nv,
    (11, 8): types.float8e4b8,
    (12, 8): types.float8e5,
    (13, 8): types.float8e5b16,
}


def refuse_scattered(tensor: Any, name: str) -> None:
    """Raises ArgumentError (E054) for a tensor of torch whose elements are not in one array."""
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided" or getattr(tensor, "is_nested", False):
        nested = getattr(tensor, "is_nested", False)
        what = "nested" if nested else layout.removeprefix("torch.")
        fix = "x.to_padded_tensor(0.0)" if nested else "x.to_dense() or x.to_sparse_csr()"
        _refuse(tensor, name, f"is {what}: its elements are not in one array", f"pass {fix}")


def _type_name(value: Any) -> str:
    cls = type(value)
    module = cls.__module__.partition(".")[0]
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


def _refuse(value: Any, name: str, why: str, fix: str) -> NoReturn:
    raise ArgumentError("E054", f"argument `{name}` ({_type_name(value)}) {why}", fix)


def _refuse_call(value: Any, name: str, call: str, error: Exception) -> NoReturn:
    raise ArgumentError(
        "E058",
        f"argument `{name}` ({_type_name(value)}): {call} failed: {type(error).__name__}: {error}",
        "pass an array whose memory can be read",
    ) from error


def _refuse_failed(value: Any, name: str, call: str, error: Exception) -> NoReturn:
    if isinstance(error, (TesseraError, MemoryError)):
        raise error
    _refuse_call(value, name, call, error)


_C.learn_refusal(_refuse_failed)
