# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results on disk: what was chosen for a kernel, for values of its key, on a device.

A result is an entry of a cache as compiled kernels are (compiler/cache.py: atomic, checksummed,
private), in the folder `tuned` beside them, with one section of JSON. It is found by a hash of

    the kernel's source and all that it depends on
    the values of the arguments in `key`, and the arrays' element types
    the device
    the list of configurations
    the build of the compiler

Some values have no hash that is the same in another process: a function in a configuration, or an
object in the key. Their results are kept only in memory. A damaged file, and one of another build,
is ignored with one warning.

Exported results are the same JSON objects in a list, each with its hash. An import computes the
hashes again, so it finds entries that were edited.
"""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any, Iterator, Mapping, Optional, Sequence

from tessera import _C
from tessera.compiler.cache import Cache, Damaged, _Folder, _path, default_cache, unpack
from tessera.digests import digest
from tessera.errors import LaunchError
from tessera.language import types
from tessera.runtime.arrays import find_dtype, is_dtype
from tessera.tuning.config import Config
from tessera.tuning.race import Timing

_FORMAT = "tessera-tuned"
_VERSION = 1
_MAX_BYTES = 64 << 20
_IDENTITY = ("kernel", "source", "key", "device", "build", "configs")
_FIELDS = {
    **{"kernel": str, "source": str, "key": list, "device": str, "build": str, "configs": list},
    **{"best": int, "timings": list, "seconds": float, "date": float},
}


class _Results(Cache):
    title = "tuning results"


_open: dict[tuple[str, str], _Results] = {}


def results() -> _Results:
    """The results of this user, where the settings say that compiled kernels are."""
    kernels = default_cache()
    wanted = (kernels.root, kernels.mode)
    if wanted not in _open:
        root = os.path.join(kernels.root, "tuned") if kernels.root else ""
        fresh = _Results(root, kernels.mode, _C.build_id(), _MAX_BYTES, 1 << 14)
        _open.setdefault(wanted, fresh)
    return _open[wanted]


class Result:
    """The result of one tuning."""

    def __init__(self, fields: Any) -> None:
        """Raises ValueError if these are not the fields of a result."""
        if not isinstance(fields, dict):
            raise ValueError("it is not an object")
        for name, kind in _FIELDS.items():
            value = fields.get(name)
            if kind is float and isinstance(value, int):
                value = float(value)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ValueError(f"`{name}` is missing or has the wrong type")
        self.fields = {name: fields[name] for name in _FIELDS}
        if not 0 <= self.fields["best"] < len(self.fields["configs"]):
            raise ValueError("`best` is not the number of a configuration")
        if len(self.fields["timings"]) != len(self.fields["configs"]):
            raise ValueError("the number of times is not that of configurations")
        if not all(timing is None or _is_timing(timing) for timing in self.fields["timings"]):
            raise ValueError("a time is invalid")
        # Those that a calendar has.
        if not 0 <= self.fields["date"] < 1 << 37 or not math.isfinite(self.fields["seconds"]):
            raise ValueError("`date` or `seconds` is out of range")

    @property
    def id(self) -> bytes:
        """Its key."""
        return _hash({name: self.fields[name] for name in _IDENTITY})

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None


def _is_timing(values: Any) -> bool:
    """True if these are a median, a fast and a slow run's time."""
    return (
        isinstance(values, list)
        and len(values) == 3
        and all(type(x) in (int, float) and not math.isnan(x) for x in values)
    )


class Question:
    """The key of a result. `id` is None where no other process can ask the same."""

    def __init__(
        self,
        kernel: str,
        source: Optional[str],
        key: Sequence[Any],
        device: str,
        configs: Sequence[Config],
    ) -> None:
        spelled = [spell(value) for value in key]
        described = [describe(config) for config in configs]
        self.id: Optional[bytes] = None
        if source is None or None in spelled or None in described:
            return
        self.identity = {
            **{"kernel": kernel, "source": source, "key": spelled, "device": device},
            **{"build": _C.build_id(), "configs": described},
        }
        self.id = _hash(self.identity)

    def find(self) -> Optional[Result]:
        """The result on disk."""
        sections = results().read(self.id) if self.id is not None else None
        if sections is None:
            return None
        try:
            return Result(json.loads(sections["result"]))
        except (KeyError, ValueError):
            results().forget(self.id)  # type: ignore[arg-type]
            return None

    def keep(self, best: int, timings: Sequence[Optional[Timing]], seconds: float) -> None:
        """Writes a result to disk."""
        if self.id is None:
            return
        times = [None if timing is None else list(timing) for timing in timings]
        fields = {**self.identity, "best": best, "timings": times}
        fields.update(seconds=round(seconds, 3), date=round(time.time(), 3))
        results().write(self.id, {"result": json.dumps(fields).encode()})


def stored() -> Iterator[Result]:
    """All results on disk, those of other builds, too."""
    kept = results()
    for entry in kept.entries():
        key = bytes.fromhex(entry.key)
        try:
            with _Folder(kept.root) as root, root.enter(_path(key)[0]) as shard:
                data = shard.read(_path(key)[1])
            yield Result(json.loads(_sections(data, key)["result"]))
        except (Damaged, OSError, KeyError, ValueError):
            continue


def _sections(data: bytes, key: bytes) -> dict[str, bytes]:
    """The sections of an entry, of any build."""
    start, length = 28, int.from_bytes(data[24:28], "little")
    return unpack(data, key, data[start : start + length].decode(errors="replace"))


def export(chosen: Sequence[Result]) -> str:
    """Results as JSON, for `load`."""
    items = [{"id": item.id.hex(), **item.fields} for item in chosen]
    whole = {"format": _FORMAT, "version": _VERSION, "results": items}
    return json.dumps(whole, indent=1) + "\n"


def load(text: str) -> list[Result]:
    """The results that `export` wrote. Raises LaunchError (E059) for any other contents, and
    imports none of them."""
    try:
        whole = json.loads(text)
        if whole["format"] != _FORMAT or whole["version"] != _VERSION:
            raise ValueError("it is of another format")
        found = [Result(item) for item in whole["results"]]
        for item, result in zip(whole["results"], found):
            if item["id"] != result.id.hex():
                raise ValueError(f"a result of `{result.kernel}` has been changed")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LaunchError(
            "E059",
            f"these are no results of tuning: {error}",
            "pass a file that `python -m tessera tune export` wrote",
        ) from None
    return found


def add(result: Result) -> None:
    """Writes an imported result to disk, for the build that found it."""
    kept = results()
    sections = {"result": json.dumps(result.fields).encode()}
    _Results(kept.root, kept.mode, result.build, _MAX_BYTES, 1 << 14).write(result.id, sections)


def spell(value: Any) -> Optional[list[Any]]:
    """A value as JSON that differs from that of all other values; None if another process may not
    know it."""
    if isinstance(value, types.constexpr):
        return spell(value.value)
    if value is None or isinstance(value, (bool, int, str)):
        if type(value) in (type(None), bool, int, str):
            return [type(value).__name__, value]
        return None
    if isinstance(value, float):
        return ["float", value.hex() if math.isfinite(value) else repr(value)]
    if is_dtype(value):
        return ["dtype", str(find_dtype(value))]
    if type(value) is tuple:
        items = [spell(item) for item in value]
        return None if None in items else ["tuple", *items]
    return None


def describe(config: Config) -> Optional[dict[str, Any]]:
    """A configuration as JSON, without its hook."""
    values = {name: spell(value) for name, value in config.all_kwargs().items()}
    return None if None in values.values() else values


def unspell(value: Sequence[Any]) -> Any:
    """The value that was spelled so, for people."""
    kind, *rest = value
    if kind == "tuple":
        return tuple(map(unspell, rest))
    return float.fromhex(rest[0]) if kind == "float" and rest[0][-1:] not in "fn" else rest[0]


def _hash(fields: Mapping[str, Any]) -> bytes:
    return digest("tuned", str(_VERSION), json.dumps(fields, sort_keys=True))
