# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of values: dtypes, pointers, blocks, and the marker `const`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, Union

from tessera.language.constants import (
    CONSTEXPR_0,
    constexpr,
    constexpr_type,
    tuple_type,
    unwrap,
)

__all__ = [
    "CONSTEXPR_0",
    "PropagateNan",
    "TRITON_MAX_TENSOR_NUMEL",
    "bfloat16",
    "block_type",
    "const",
    "constexpr",
    "constexpr_type",
    "dtype",
    "float16",
    "float32",
    "float64",
    "float8e4b15",
    "float8e4b8",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "int1",
    "int16",
    "int32",
    "int64",
    "int8",
    "pi32_t",
    "pointer_type",
    "str_to_ty",
    "tuple_type",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unwrap",
    "void",
]

# name, spelling in error messages and signatures, bits, kind, mantissa bits, exponent bias
_DTYPES = (
    ("void", 0, "void", 0, 0),
    ("int1", 1, "uint", 0, 0),
    ("int8", 8, "int", 0, 0),
    ("int16", 16, "int", 0, 0),
    ("int32", 32, "int", 0, 0),
    ("int64", 64, "int", 0, 0),
    ("uint8", 8, "uint", 0, 0),
    ("uint16", 16, "uint", 0, 0),
    ("uint32", 32, "uint", 0, 0),
    ("uint64", 64, "uint", 0, 0),
    ("fp8e5", 8, "float", 2, 15),
    ("fp8e4nv", 8, "float", 3, 7),
    ("fp8e4b8", 8, "float", 3, 8),
    ("fp8e5b16", 8, "float", 2, 16),
    ("fp8e4b15", 8, "float", 3, 15),
    ("fp16", 16, "float", 10, 15),
    ("bf16", 16, "float", 7, 127),
    ("fp32", 32, "float", 23, 127),
    ("fp64", 64, "float", 52, 1023),
)

_PUBLIC_NAMES = {
    "fp8e5": "float8e5",
    "fp8e4nv": "float8e4nv",
    "fp8e4b8": "float8e4b8",
    "fp8e5b16": "float8e5b16",
    "fp8e4b15": "float8e4b15",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
}

_FLOATS = {
    "fp8e5": "8-bit float e5m2",
    "fp8e4nv": "8-bit float e4m3fn",
    "fp8e4b8": "8-bit float e4m3fnuz",
    "fp8e5b16": "8-bit float e5m2fnuz",
    "fp8e4b15": "8-bit float e4m3b15",
    "fp16": "IEEE 754 half precision",
    "bf16": "bfloat16: the upper half of a float32",
    "fp32": "IEEE 754 single precision",
    "fp64": "IEEE 754 double precision",
}


def _describe(name: str, bits: int, kind: str) -> str:
    if kind == "float":
        return f"{_FLOATS[name]}, spelled `{name}` in messages and signatures."
    if name in ("void", "int1"):
        return "No value." if name == "void" else "A boolean; counts as an unsigned integer."
    return f"{'Signed' if kind == 'int' else 'Unsigned'} integer of {bits} bits."


owner = "tl"
"""The name of a type's module in its `repr`."""

# The kinds of _C.Type (TsrTypeKind).
KIND_NUMBER, KIND_POINTER, KIND_BLOCK_POINTER, KIND_DESCRIPTOR, KIND_TF32_DESCRIPTOR = range(5)


class dtype:
    """The type of a scalar number: `tl.float32`, `tl.int8`, ...

    `int1` is a boolean and counts as unsigned. Source: Triton language 3.6/3.9.

    Example:
        x = tl.zeros((8,), tl.float16)
        assert x.dtype == tl.float16 and x.dtype == tl.dtype("fp16")
        assert x.dtype.is_floating() and x.dtype.primitive_bitwidth == 16
        acc_type: tl.constexpr = tl.float32 if x.dtype.primitive_bitwidth < 32 else x.dtype
        assert x.to(acc_type).dtype == tl.float32
    """

    SINT_TYPES = ["int8", "int16", "int32", "int64"]
    UINT_TYPES = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES = [row[0] for row in _DTYPES if row[2] == "float"]
    STANDARD_FP_TYPES = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES = ["void"]

    name: str
    primitive_bitwidth: int
    _core_id: int
    """The number of this dtype in the core (TsrDType)."""

    if TYPE_CHECKING:
        # Only pointers and tiles have it. A kernel knows the kind of a tensor's type, but a type
        # checker does not.
        element_ty: dtype

    def __init__(self, name: str) -> None:
        for index, (row_name, bits, kind, mantissa, bias) in enumerate(_DTYPES):
            if name in (row_name, _PUBLIC_NAMES.get(row_name)):
                self.name = row_name
                self.primitive_bitwidth = bits
                self._core_id = index
                self._kind = kind
                self._mantissa = mantissa
                self._bias = bias
                self.__doc__ = _describe(row_name, bits, kind)
                return
        raise ValueError(f"no dtype {name!r}; the dtypes are {', '.join(r[0] for r in _DTYPES)}")

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return (self.primitive_bitwidth + 7) // 8

    @property
    def int_bitwidth(self) -> int:
        """Bits, for an integer type."""
        return self.primitive_bitwidth

    @property
    def int_signedness(self) -> str:
        """'signed' or 'unsigned', for an integer type."""
        return "signed" if self._kind == "int" else "unsigned"

    @property
    def fp_mantissa_width(self) -> int:
        """Stored bits of the mantissa, for a float type."""
        return self._mantissa

    @property
    def exponent_bias(self) -> int:
        """Bias of the exponent, for a float type."""
        return self._bias

    @property
    def scalar(self) -> "dtype":
        """The type of an element: itself."""
        return self

    @property
    def value(self) -> "dtype":
        """Itself, for code that was written for a `constexpr` around it."""
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """`()`: a scalar."""
        return ()

    def is_fp8(self) -> bool:
        """True if it is one of the 8-bit floats."""
        return self.name.startswith("fp8")

    def is_fp8e5(self) -> bool:
        """True if it is `fp8e5`."""
        return self.name == "fp8e5"

    def is_fp8e4nv(self) -> bool:
        """True if it is `fp8e4nv`."""
        return self.name == "fp8e4nv"

    def is_fp8e4b8(self) -> bool:
        """True if it is `fp8e4b8`."""
        return self.name == "fp8e4b8"

    def is_fp8e5b16(self) -> bool:
        """True if it is `fp8e5b16`."""
        return self.name == "fp8e5b16"

    def is_fp8e4b15(self) -> bool:
        """True if it is `fp8e4b15`."""
        return self.name == "fp8e4b15"

    def is_fp16(self) -> bool:
        """True if it is `fp16`."""
        return self.name == "fp16"

    def is_bf16(self) -> bool:
        """True if it is `bf16`."""
        return self.name == "bf16"

    def is_fp32(self) -> bool:
        """True if it is `fp32`."""
        return self.name == "fp32"

    def is_fp64(self) -> bool:
        """True if it is `fp64`."""
        return self.name == "fp64"

    def is_int1(self) -> bool:
        """True if it is `int1`."""
        return self.name == "int1"

    def is_bool(self) -> bool:
        """True if it is `int1`: the same as `is_int1`."""
        return self.name == "int1"

    def is_int8(self) -> bool:
        """True if it is `int8`."""
        return self.name == "int8"

    def is_int16(self) -> bool:
        """True if it is `int16`."""
        return self.name == "int16"

    def is_int32(self) -> bool:
        """True if it is `int32`."""
        return self.name == "int32"

    def is_int64(self) -> bool:
        """True if it is `int64`."""
        return self.name == "int64"

    def is_uint8(self) -> bool:
        """True if it is `uint8`."""
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        """True if it is `uint16`."""
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        """True if it is `uint32`."""
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        """True if it is `uint64`."""
        return self.name == "uint64"

    def is_floating(self) -> bool:
        """True if it is a float of any width."""
        return self._kind == "float"

    def is_standard_floating(self) -> bool:
        """True if it is a float of 16 bits or more."""
        return self.name in ("fp16", "bf16", "fp32", "fp64")

    def is_int(self) -> bool:
        """True if it is an integer of either kind; `int1` is one."""
        return self._kind in ("int", "uint")

    def is_int_signed(self) -> bool:
        """True if it is a signed integer."""
        return self._kind == "int"

    def is_int_unsigned(self) -> bool:
        """True if it is an unsigned integer; `int1` is one."""
        return self._kind == "uint"

    def is_void(self) -> bool:
        """True if it is `void`."""
        return self.name == "void"

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """True if there is a dtype of this name."""
        return any(type_str == row[0] for row in _DTYPES)

    def with_element_ty(self, element_ty: "dtype") -> "dtype":
        """`element_ty`; of a tile's type, that of a tile of such elements."""
        return element_ty

    def is_ptr(self) -> bool:
        """True if it is a pointer."""
        return False

    def is_block(self) -> bool:
        """True if it is the type of a tile."""
        return False

    def is_const(self) -> bool:
        """True if it is a pointer that may not be stored through."""
        return False

    def is_tuple(self) -> bool:
        """True if it is the type of a tuple."""
        return False

    def kind(self) -> int:
        """0 for booleans, 1 for integers, 2 for floats: the order of promotion."""
        return 0 if self.is_bool() else 1 if self.is_int() else 2

    def get_int_max_value(self) -> int:
        """The largest value of an integer type."""
        bits = self.primitive_bitwidth
        return (1 << (bits - 1)) - 1 if self._kind == "int" else (1 << bits) - 1

    def get_int_min_value(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << (self.primitive_bitwidth - 1)) if self._kind == "int" else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dtype) and type(other) is dtype and self.name == other.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{owner}.{_PUBLIC_NAMES.get(self.name, self.name)}"

    def __reduce__(self) -> Any:
        return (dtype, (self.name,))


def spelled(dtype: "dtype") -> str:
    """A type of numbers as kernels spell it: "tl.float32", whatever module owns its name."""
    return f"tl.{_PUBLIC_NAMES.get(dtype.name, dtype.name)}"


def short_name(dtype: "dtype") -> str:
    """The name of a type of numbers in signatures: "i32", "u1", "fp16"."""
    if dtype.name == "int1":
        return "u1"
    return dtype.name.replace("int", "i").replace("ui", "u") if dtype.is_int() else dtype.name


def dtype_of_core(core_id: int) -> dtype:
    """The type that the core knows by a number."""
    return dtype(_DTYPES[core_id][0])


class pointer_type(dtype):
    """A pointer to an element of another type: `tl.pointer_type(tl.float32)`.

    Source: Triton language 3.6/3.9.

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def first_of_each(addresses_ptr, out_ptr):
            i = tl.arange(0, 2)
            x_ptr = tl.load(addresses_ptr + i).to(tl.pointer_type(tl.float32))
            tl.store(out_ptr + i, tl.load(x_ptr))

        x, y, out = np.full(4, 1.5, np.float32), np.full(9, 2.5, np.float32), np.zeros(2, np.float32)
        first_of_each[(1,)](np.array([x.ctypes.data, y.ctypes.data]), out)
        assert out.tolist() == [1.5, 2.5]
    """

    def __init__(
        self, element_ty: dtype, address_space: Union[int, str] = "global", const: bool = False
    ) -> None:
        if not isinstance(element_ty, dtype):
            raise TypeError(f"element_ty is a {type(element_ty).__name__}, not a dtype")
        self.element_ty = element_ty
        self.address_space = address_space
        self.const = bool(const)
        self.name = f"pointer<{element_ty}>" if not const else f"const_pointer<{element_ty}>"
        self.primitive_bitwidth = 64
        self._kind = "pointer"
        self._mantissa = self._bias = 0

    def is_ptr(self) -> bool:
        """True if it is a pointer."""
        return True

    def is_const(self) -> bool:
        return self.const

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, pointer_type)
            and self.element_ty == other.element_ty
            and self.const == other.const
        )

    def __hash__(self) -> int:
        return hash((self.element_ty, self.const))

    def __repr__(self) -> str:
        return f"{owner}.pointer_type({self.element_ty!r}{', const=True' if self.const else ''})"

    def __reduce__(self) -> Any:
        return (pointer_type, (self.element_ty, self.address_space, self.const))


class block_type(dtype):
    """A tile of elements: `tl.block_type(tl.float32, [64, 32])`.

    Example:
        x = tl.zeros((64, 32), tl.float32)
        assert x.type == tl.block_type(tl.float32, [64, 32])
        assert x.type.element_ty == tl.float32 and x.type.nbytes == 8192
    """

    def __init__(self, element_ty: dtype, shape: Sequence[int]) -> None:
        self.element_ty = element_ty
        self._shape = tuple(int(extent) for extent in shape)
        self.numel = 1
        for extent in self._shape:
            self.numel *= extent
        self.name = f"<{list(self._shape)}, {element_ty}>"
        self.primitive_bitwidth = element_ty.primitive_bitwidth
        self._kind = "block"
        self._mantissa = self._bias = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._shape

    @property
    def scalar(self) -> dtype:
        """The type of an element."""
        return self.element_ty

    def is_block(self) -> bool:
        """True if it is the type of a tile."""
        return True

    def get_block_shapes(self) -> tuple[int, ...]:
        """The extents."""
        return self._shape

    def with_element_ty(self, element_ty: dtype) -> "block_type":
        """The type of a tile of this shape with other elements."""
        return block_type(element_ty, self._shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements in memory."""
        return self.numel * self.element_ty.itemsize

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, block_type)
            and self.element_ty == other.element_ty
            and self._shape == other._shape
        )

    def __hash__(self) -> int:
        return hash((self.element_ty, self._shape))

    def __repr__(self) -> str:
        return f"{owner}.block_type({self.element_ty!r}, {list(self._shape)})"

    def __reduce__(self) -> Any:
        return (block_type, (self.element_ty, self._shape))


class block_pointer_type(dtype):
    """A block pointer to blocks of `shape` elements (made by `make_block_ptr`)."""

    _spelling = "block pointer"

    def __init__(self, element_ty: dtype, shape: Sequence[int]) -> None:
        self.element_ty = element_ty
        self.block_shape = tuple(shape)
        self.name = f"{self._spelling} to {list(self.block_shape)} of {element_ty}"
        self.primitive_bitwidth = 64
        self._kind = "other"
        self._mantissa = self._bias = 0

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


class descriptor_type(block_pointer_type):
    """A tensor descriptor with blocks of `shape` elements."""

    _spelling = "tensor descriptor"

    def __init__(
        self, element_ty: dtype, shape: Sequence[int], rounds_to_tf32: bool = False
    ) -> None:
        super().__init__(element_ty, shape)
        self._rounds_to_tf32 = rounds_to_tf32
        if rounds_to_tf32:
            self.name += " rounded to tf32"


void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e5 = dtype("fp8e5")
float8e4nv = dtype("fp8e4nv")
float8e4b8 = dtype("fp8e4b8")
float8e5b16 = dtype("fp8e5b16")
float8e4b15 = dtype("fp8e4b15")
float16 = dtype("fp16")
bfloat16 = dtype("bf16")
float32 = dtype("fp32")
float64 = dtype("fp64")
pi32_t = pointer_type(int32)

BY_CORE_ID: tuple[dtype, ...] = tuple(dtype(row[0]) for row in _DTYPES)

_SHORT_NAMES = {
    "i1": int1, "u1": int1, "bool": int1,
    "i8": int8, "i16": int16, "i32": int32, "i64": int64,
    "uint1": int1, "u8": uint8, "u16": uint16, "u32": uint32, "u64": uint64,
    "f16": float16, "f32": float32, "f64": float64,
    "float": float32, "int": int32,
}  # fmt: skip


def str_to_ty(name: str) -> dtype:
    """The type that a signature string means: "*fp32", "*const i8", "i32", "bf16".

    Raises ValueError for an unknown name. Source: Triton language 3.6/3.9.

    Example:
        import tessera.language as tl

        assert tl.str_to_ty("bf16") == tl.bfloat16
        assert tl.str_to_ty("*const i8") == tl.pointer_type(tl.int8, const=True)
    """
    text = name.strip()
    if text.startswith("*"):
        text = text[1:].strip()
        const = text.startswith(("const ", "k"))
        if const:
            text = text[len("const ") :] if text.startswith("const ") else text[1:]
        return pointer_type(str_to_ty(text), const=const)
    if text in _SHORT_NAMES:
        return _SHORT_NAMES[text]
    return dtype(text)


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of a width, which is `int1` for 1 bit.

    Raises ValueError for a width that no type has. Source: Triton language 3.6/3.9.

    Example:
        x = tl.full((4,), 1.0, tl.float16)
        word: tl.constexpr = tl.get_int_dtype(x.dtype.primitive_bitwidth, signed=False)
        assert word == tl.uint16
        assert x.to(word, bitcast=True) == 0x3C00
    """
    if bitwidth == 1:
        return int1
    if bitwidth not in (8, 16, 32, 64):
        raise ValueError(f"there is no integer of {bitwidth} bits")
    return dtype(f"{'' if signed else 'u'}int{bitwidth}")


for _function in (get_int_dtype, str_to_ty):
    setattr(_function, "__tessera_constexpr_function__", True)  # kernels call them on constants


class const:
    """As an annotation: a pointer that may not be stored through (`x_ptr: tl.const`).

    Example:
        import numpy as np
        import tessera
        import tessera.language as tl

        @tessera.jit
        def negate(x_ptr: tl.const, out_ptr):
            i = tl.arange(0, 8)
            tl.store(out_ptr + i, -tl.load(x_ptr + i))  # a store to x_ptr would be an error (E046)

        x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
        negate[(1,)](x, out)
        assert (out == -x).all()
    """


class PropagateNan:
    """The result of `maximum`, `minimum` and `clamp` for a NaN.

    NONE: the other operand; ALL: NaN.

    Example:
        nan = tl.zeros((4,), tl.float32) / 0
        assert tl.maximum(nan, 1.0, propagate_nan=tl.PropagateNan.NONE) == 1.0
        y = tl.maximum(nan, 1.0, propagate_nan=tl.PropagateNan.ALL)
        assert y != y
    """

    NONE = "none"
    ALL = "all"


TRITON_MAX_TENSOR_NUMEL = 1 << 20
"""How many elements a tile may have."""
