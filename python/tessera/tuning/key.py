# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The key of the choice of a configuration: values of arguments, element types, the device."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from tessera import _C
from tessera.language import types
from tessera.language.records import items_of
from tessera.runtime.arrays import described, find_dtype, pointer_of
from tessera.settings import settings
from tessera.tuning.heuristics import inner_kernel


class Address(int):
    """The address of an array that is named in the key, which identifies the array."""


def make_key(
    fn: Any, names: Sequence[str], named: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The key of a launch of `fn`. `named` has the arguments in the order of the parameters. The
    key has the values of those in `names`, element types, the launch's options, and last the
    device."""
    key: list[Any] = []
    for name in names:
        value = types.unwrap(named[name]) if name in named else _default(fn, name)
        key.append(value if dtype_of(value) is None else _address_of(value, name))
    device: Optional[int] = None
    for name, value in named.items():
        dtype = dtype_of(value)
        if dtype is None:
            continue
        key.append(dtype)
        if device is None or device < -1:
            device = _device_of(array_in(value), name)
    key += sorted((name, options[name]) for name in options if name != "stream")
    target = options.get("target")
    if device is None or device < 0:
        gpu = isinstance(target, str) and target not in ("auto", "cpu")
        device = 0 if gpu and _C.cuda_is_available() else -1
    return (*key, _machine(device))


def _address_of(value: Any, name: str) -> Optional[Address]:
    """The address of an array, or of the array that a descriptor describes. None for a tuple and
    the like, because only their element types count."""
    if items_of(value) is not None:
        return None
    pointer = pointer_of(described(value), name)
    return None if pointer is None else Address(pointer.address)


def _default(fn: Any, name: str) -> Any:
    for param in getattr(inner_kernel(fn), "params", ()):
        if param.name == name and param.has_default:
            return types.unwrap(param.default)
    return None


def _device_of(array: Any, name: str) -> Optional[int]:
    """The GPU that an array is on, -1 for the CPU."""
    on_gpu = getattr(array, "is_cuda", None)  # a tensor of torch's, which is asked often
    if on_gpu is not None:
        return int(array.get_device()) if on_gpu else -1
    if type(array).__module__ == "numpy":
        return -1
    pointer = pointer_of(array, name)
    return None if pointer is None else pointer.device


def array_in(value: Any) -> Any:
    """The first array in an argument with an element type: in a tuple or another object with parts,
    the array of a descriptor, or the array itself."""
    parts = items_of(value)
    if parts is not None:
        return array_in(next(item for item in parts if dtype_of(item) is not None))
    return described(value)


_names_of_dtypes: dict[Any, str] = {}


def dtype_of(value: Any) -> Optional[str]:
    """The element type of an array or of a descriptor's array, or those of an object with parts;
    None for other values."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return None
    parts = items_of(value)
    if parts is not None:
        found = [dtype for dtype in map(dtype_of, parts) if dtype is not None]
        return ", ".join(found) or None
    value = described(value)
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(value, (types.dtype, int, float)):
        return None
    if getattr(value, "shape", None) == () and not hasattr(value, "data_ptr"):
        return None  # a NumPy scalar
    try:
        return _names_of_dtypes[dtype]
    except (KeyError, TypeError):
        name = str(find_dtype(dtype) or dtype)
    try:
        _names_of_dtypes[dtype] = name
    except TypeError:  # not to be hashed
        pass
    return name


_machines: dict[int, str] = {}


def _machine(device: int) -> str:
    """A device's name, the same for all that are alike."""
    if device not in _machines:
        if device >= 0:
            _machines[device] = str(_C.cuda_device_info(device)["name"])
        else:
            host = _C.host_info()
            _machines[device] = f"{host['cpu']}, {host['threads']} threads"
    if device < 0 and settings.num_threads:
        return f"{_machines[device]}, {settings.num_threads} of them"
    return _machines[device]
