# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys of kernels, and files kept by them, for programs that keep their own files so.

The kernels themselves are kept in files of another form, which no manager sees:
`python -m tessera cache` looks after them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from abc import ABC, abstractmethod
from typing import Any, Iterable, Mapping, NoReturn, Optional

from tessera.compat.triton import refuse
from tessera.errors import SettingError

__all__ = [
    "CacheManager",
    "FileCacheManager",
    "RemoteCacheBackend",
    "RemoteCacheManager",
    "get_cache_manager",
    "get_dump_manager",
    "get_override_manager",
    "make_so_cache_key",
    "triton_key",
]


class CacheManager(ABC):
    """Files by their names, for one key."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        pass

    @abstractmethod
    def get_file(self, filename: str) -> Optional[str]:
        """The path of a file, or None."""

    @abstractmethod
    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        """Writes a file; its path."""

    @abstractmethod
    def get_group(self, filename: str) -> Optional[dict[str, str]]:
        """The paths of the files of a group, by their names, or None."""

    @abstractmethod
    def put_group(self, filename: str, group: Mapping[str, str]) -> Any:
        """Has a group of files, by their names, found again."""


class FileCacheManager(CacheManager):
    """Files in a folder of their own below `knobs.cache.dir`, or for `override` and `dump` below
    `override_dir` and `dump_dir`. A file is written as a whole or not at all."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        from triton import knobs

        self.key = key
        root = knobs.cache.dir
        if dump or override:
            root = knobs.cache.dump_dir if dump else knobs.cache.override_dir
        if not root:
            raise SettingError(
                "E061", "there is no folder for files by keys", "set knobs.cache.dir"
            )
        self.cache_dir = os.path.join(root, key)
        self.lock_path = None if override and not dump else os.path.join(self.cache_dir, "lock")
        if self.lock_path is not None:
            self._make_folder()

    def has_file(self, filename: str) -> bool:
        """True if the file is there."""
        return os.path.exists(self._make_path(filename))

    def get_file(self, filename: str) -> Optional[str]:
        path = self._make_path(filename)
        return path if os.path.exists(path) else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        content = data if isinstance(data, bytes) else str(data).encode()
        path = self._make_path(filename)
        self._make_folder()
        try:
            handle, temporary = tempfile.mkstemp(prefix=".", dir=self.cache_dir)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            raise _unwritable(path, error) from None
        return path

    def get_group(self, filename: str) -> Optional[dict[str, str]]:
        paths = _read_group(self.get_file(_group_file(filename)))
        if paths is None:
            return None
        return {name: path for name, path in paths.items() if os.path.exists(path)}

    def put_group(self, filename: str, group: Mapping[str, str]) -> str:
        return self.put(json.dumps({"child_paths": dict(group)}), _group_file(filename))

    def _make_path(self, filename: str) -> str:
        return os.path.join(self.cache_dir, filename)

    def _make_folder(self) -> None:
        try:
            os.makedirs(self.cache_dir, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.cache_dir, error) from None


class RemoteCacheBackend:
    """The storage of a RemoteCacheManager; TRITON_REMOTE_CACHE_BACKEND names a subclass."""

    def __init__(self, key: str) -> None:
        pass

    def get(self, filenames: Iterable[str]) -> Mapping[str, bytes]:
        """Those of the files that are there, by their names."""
        raise NotImplementedError

    def put(self, filename: str, data: bytes) -> Any:
        """Keeps a file."""
        raise NotImplementedError


class RemoteCacheManager(CacheManager):
    """Files kept by a RemoteCacheBackend, with copies in the folder."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        from triton import knobs

        backend = knobs.cache.remote_manager_class
        if not backend:
            raise SettingError(
                "E062",
                "there is no class for a remote cache",
                "set TRITON_REMOTE_CACHE_BACKEND to MODULE:CLASS",
            )
        self._files = FileCacheManager(key, override=override, dump=dump)
        self._backend = None if override or dump else backend(key)

    def get_file(self, filename: str) -> Optional[str]:
        if self._backend is None:
            return self._files.get_file(filename)
        found = self._backend.get([filename])
        return self._files.put(found[filename], filename) if filename in found else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        content = data if isinstance(data, bytes) else str(data).encode()
        if self._backend is not None:
            self._backend.put(filename, content)
        return self._files.put(content, filename)

    def get_group(self, filename: str) -> Optional[dict[str, str]]:
        if self._backend is None:
            return self._files.get_group(filename)
        names = _read_group(self.get_file(_group_file(filename)))
        if names is None:
            return None
        found = self._backend.get(list(names))
        return {name: self._files.put(data, name) for name, data in found.items()}

    def put_group(self, filename: str, group: Mapping[str, str]) -> str:
        if self._backend is None:
            return self._files.put_group(filename, group)
        return self.put(json.dumps({"child_paths": dict(group)}), _group_file(filename))


def get_cache_manager(key: str) -> CacheManager:
    """The manager of files by a key in hexadecimal digits."""
    return _manager()(_base32(key))  # type: ignore[no-any-return]


def get_override_manager(key: str) -> CacheManager:
    """The manager of files that replace those by a key."""
    return _manager()(_base32(key), override=True)  # type: ignore[no-any-return]


def get_dump_manager(key: str) -> CacheManager:
    """The manager of files that are dumped for users to read."""
    return _manager()(_base32(key), dump=True)  # type: ignore[no-any-return]


def make_so_cache_key(
    version_hash: str, signature: Mapping[Any, str], constants: Any, ids: Any, **kwargs: Any
) -> str:
    """A key for what is compiled for launches with these arguments."""
    kinds = ["ptr" if kind.startswith("*") else kind for kind in signature.values()]
    parts = [version_hash, "".join(kinds), constants, ids, *kwargs.values()]
    return _base32(hashlib.sha256("-".join(map(str, parts)).encode()).hexdigest())


def triton_key() -> str:
    """The compiler's part of the key of a kernel."""
    import triton
    from tessera.compiler.cache import default_cache

    build = default_cache().build_id
    return f"{triton.__version__}-{build.hex() if isinstance(build, bytes) else build}"


def __getattr__(name: str) -> NoReturn:
    if name == "RedisRemoteCacheBackend":
        refuse(
            f"triton.runtime.cache.{name}",
            "write a RemoteCacheBackend, or let the machines share TESSERA_CACHE_DIR",
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _manager() -> Any:
    from triton import knobs

    return knobs.cache.manager_class or FileCacheManager


def _group_file(name: str) -> str:
    return f"__grp__{name}"


def _read_group(path: Optional[str]) -> Optional[dict[str, str]]:
    """None for no group, and for a file that is none."""
    try:
        with open(path or os.devnull) as file:
            return dict(json.load(file)["child_paths"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _unwritable(path: str, error: OSError) -> SettingError:
    return SettingError(
        "E061", f"cannot write {path}: {error.strerror or error}", "use another TRITON_CACHE_DIR"
    )


def _base32(key: str) -> str:
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")
