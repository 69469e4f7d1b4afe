# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the host that compute a constant of constants, such as `torch.finfo`.

Kernels call them where all arguments are constants, and they run when the kernel is compiled.
That is sound for functions whose result depends on their arguments alone. Those are named here:
of any other function, what it reads besides would go unnoticed.
"""

from __future__ import annotations

import math
import sys
from types import BuiltinFunctionType, FunctionType
from typing import Any, Optional

from tessera.language import types

_BUILTINS = (all, any, chr, divmod, ord, pow, round, sum)

# Besides the ufuncs of NumPy and its types of scalars.
_NAMES = {
    "numpy": (
        "finfo", "iinfo", "dtype", "can_cast", "promote_types", "result_type", "issubdtype",
        "prod", "sum", "max", "amax", "min", "amin", "round", "isclose",
    ),
    "torch": ("finfo", "iinfo", "can_cast", "promote_types"),
}  # fmt: skip

_LIMITS = ("finfo", "iinfo")


def home_of(function: Any) -> Optional[str]:
    """The module of a function or class of the host that kernels may call on constants: one of
    "builtins", "math", "numpy" and "torch". None for what they may not call."""
    if isinstance(function, BuiltinFunctionType):
        if any(function is one for one in _BUILTINS):
            return "builtins"
        if getattr(math, function.__name__, None) is function:
            return "math"
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        return None
    if isinstance(function, FunctionType) and not function.__module__.startswith("numpy"):
        return None  # what a user has put in the place of NumPy's
    for module_name, names in _NAMES.items():
        module = sys.modules.get(module_name)
        # Not by `getattr`: NumPy warns of some names that it lacks.
        if module is None or vars(module).get(name) is not function:
            continue
        if name in names or (module_name == "numpy" and _is_of_scalars(module, function)):
            return module_name
    return None


def _is_of_scalars(numpy: Any, function: Any) -> bool:
    if isinstance(function, type):
        return issubclass(function, (numpy.number, numpy.bool_))
    return isinstance(function, numpy.ufunc)


def version_of(home: str) -> str:
    """The dependency of a result besides the arguments: the release of NumPy or torch."""
    return str(getattr(sys.modules[home], "__version__", "")) if home in _NAMES else ""


def argument_of(home: Optional[str], value: Any) -> Any:
    """A constant argument as the host knows it. A type of the language is NumPy's or torch's of
    that name: what a launch gets as `torch.float16`, kernels see as `tl.float16`."""
    if home in _NAMES and isinstance(value, types.dtype):
        name = types._PUBLIC_NAMES.get(value.name, value.name)
        return vars(sys.modules[home]).get("bool" if name == "int1" else name, value)
    return value


def is_description(value: Any) -> bool:
    """True if a value describes a type of numbers (`torch.finfo(...)`, `numpy.dtype(...)`,
    `torch.float16`). Nothing about such a value changes."""
    classes = {cls.__name__ for cls in type(value).__mro__}
    if classes.isdisjoint((*_LIMITS, "dtype")):
        return False
    for module_name in _NAMES:
        module = sys.modules.get(module_name)
        kinds = [getattr(module, name, None) for name in (*_LIMITS, "dtype")]
        if any(isinstance(kind, type) and isinstance(value, kind) for kind in kinds):
            return True
    return False


def from_numpy(value: Any) -> Any:
    """The Python number that a scalar of NumPy is; any other value as it is."""
    generic = getattr(sys.modules.get("numpy"), "generic", None)
    if generic is None or not isinstance(value, generic):
        return value
    number = value.item()
    return number if type(number) in (bool, int, float, str) else value
