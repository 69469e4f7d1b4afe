# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What type checkers take some names of the language for; programs never import it.

Kernels annotate parameters and variables with values: `BLOCK: tl.constexpr` is a constant of
any type, `n: tl.int64` a tensor of that type, `x_ptr: tl.const` a pointer. To Python these are
a class, an instance of `dtype` and a class. To a type checker each has to be a type whose
values are what kernels see.
"""

from __future__ import annotations

from typing import Any

from tessera.language.tensor import _WatchedClass, tensor
from tessera.language.types import dtype

_anything: Any = None

constexpr = _anything
"""A compile-time constant: as an annotation of a parameter or a variable, and around a value.

Constants may be numbers, strings, types, functions or None, so a type checker lets them be
anything.
"""

class _NumberType(dtype, _WatchedClass):
    """The class of the types below: as values they are dtypes, as annotations tensors."""

class const(tensor):
    """As an annotation: a pointer that may not be stored through (`x_ptr: tl.const`)."""

class void(tensor, metaclass=_NumberType):
    """No value."""

class int1(tensor, metaclass=_NumberType):
    """A boolean; counts as an unsigned integer."""

class int8(tensor, metaclass=_NumberType):
    """Signed integer of 8 bits."""

class int16(tensor, metaclass=_NumberType):
    """Signed integer of 16 bits."""

class int32(tensor, metaclass=_NumberType):
    """Signed integer of 32 bits."""

class int64(tensor, metaclass=_NumberType):
    """Signed integer of 64 bits."""

class uint8(tensor, metaclass=_NumberType):
    """Unsigned integer of 8 bits."""

class uint16(tensor, metaclass=_NumberType):
    """Unsigned integer of 16 bits."""

class uint32(tensor, metaclass=_NumberType):
    """Unsigned integer of 32 bits."""

class uint64(tensor, metaclass=_NumberType):
    """Unsigned integer of 64 bits."""

class float8e5(tensor, metaclass=_NumberType):
    """8-bit float e5m2."""

class float8e4nv(tensor, metaclass=_NumberType):
    """8-bit float e4m3fn."""

class float8e4b8(tensor, metaclass=_NumberType):
    """8-bit float e4m3fnuz."""

class float8e5b16(tensor, metaclass=_NumberType):
    """8-bit float e5m2fnuz."""

class float8e4b15(tensor, metaclass=_NumberType):
    """8-bit float e4m3b15."""

class float16(tensor, metaclass=_NumberType):
    """IEEE 754 half precision."""

class bfloat16(tensor, metaclass=_NumberType):
    """bfloat16: the upper half of a float32."""

class float32(tensor, metaclass=_NumberType):
    """IEEE 754 single precision."""

class float64(tensor, metaclass=_NumberType):
    """IEEE 754 double precision."""
