# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled kernels on disk: content-addressed, checksummed, atomic, bounded, private.

An entry is one file, `v1/<2 hex>/<62 hex>` under the cache's folder, named by its key:

    magic, format version, length of the whole file
    build id of the compiler that wrote it
    the key again                       (tells a renamed file)
    table of sections                   (name, offset, stored length, true length)
    the sections, each deflated
    SHA-256 of all that is before it

A cache holds machine code, so it must be as trustworthy as the program itself. It is used only if
its folder belongs to this user, and no other user may write there. Links inside are not followed.
Nothing in it ever runs as Python.

No failure here may break a program. A damaged, foreign or unreadable entry is a miss. If the disk
is full or read-only, kernels are stored in memory, with one warning. There are no locks: writers
rename a finished file into place. Equal keys mean equal bytes, so any writer may win. No file
remains open, so a fork is safe.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from typing import Iterator, Mapping, NamedTuple, Optional

from tessera import _C
from tessera.errors import warn_of_machine
from tessera.settings import settings

FORMAT_VERSION = 1
_MAGIC = b"TESSERA\x01"
_HEAD = struct.Struct("<8sIIQ")  # magic, format version, sections, length of the file
_SECTION = struct.Struct("<16sQQQ")  # name, offset, stored length, true length
_DIGEST_SIZE = 32
_MAX_ENTRY = 256 << 20

_SWEEP_SECONDS = 20 * 60
_TOUCH_SECONDS = 60 * 60
_YOUNG_SECONDS = 10 * 60
_STALE_TEMPORARY_SECONDS = 60 * 60
_SHARDS = 256
_BLOCK = 4096
_SHARDS_A_SWEEP = 16

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Damaged(Exception):
    """An entry whose bytes are not those of a whole entry of this key and build."""


class Foreign(Damaged):
    """A whole entry, but of another build of the compiler."""


class Entry(NamedTuple):
    """One file of the cache, as `Cache.entries` lists it."""

    key: str
    size: int
    """The bytes that it takes of the disk."""
    used: float
    """When it was last written or read, to the hour."""


def pack(key: bytes, build_id: str, sections: Mapping[str, bytes]) -> bytes:
    """The bytes of an entry."""
    import zlib
    from hashlib import sha256

    build = build_id.encode()
    offset = _HEAD.size + 4 + len(build) + len(key) + _SECTION.size * len(sections)
    table, payload = b"", b""
    for name, content in sections.items():
        stored = zlib.compress(content, 1)
        table += _SECTION.pack(name.encode(), offset + len(payload), len(stored), len(content))
        payload += stored
    length = offset + len(payload) + _DIGEST_SIZE
    body = _HEAD.pack(_MAGIC, FORMAT_VERSION, len(sections), length)
    body += struct.pack("<I", len(build)) + build + key + table + payload
    return body + sha256(body).digest()


def unpack(data: bytes, key: bytes, build_id: str) -> dict[str, bytes]:
    """The sections of an entry; raises Damaged if anything at all is wrong with it."""
    import zlib
    from hashlib import sha256

    if len(data) < _HEAD.size + 4 + _DIGEST_SIZE:
        raise Damaged("too short")
    magic, version, count, length = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != FORMAT_VERSION:
        raise Damaged("not an entry of this format")
    if length != len(data):
        raise Damaged("another length than it says")
    # The checksum is verified first, so that the parser below may trust its input.
    if sha256(memoryview(data)[:-_DIGEST_SIZE]).digest() != data[-_DIGEST_SIZE:]:
        raise Damaged("checksum")
    try:
        (build_length,) = struct.unpack_from("<I", data, _HEAD.size)
        at = _HEAD.size + 4
        if data[at : at + build_length] != build_id.encode():
            raise Foreign("written by another build")
        at += build_length
        if data[at : at + len(key)] != key:
            raise Damaged("the entry of another key")
        at += len(key)
        sections = {}
        for index in range(count):
            fields = _SECTION.unpack_from(data, at + index * _SECTION.size)
            name, offset, stored, size = fields
            if size > _MAX_ENTRY or offset + stored > len(data) - _DIGEST_SIZE:
                raise Damaged("a section out of bounds")
            inflater = zlib.decompressobj()
            content = inflater.decompress(data[offset : offset + stored], size + 1)
            if len(content) != size:
                raise Damaged("a section of another length than it says")
            sections[name.rstrip(b"\0").decode()] = content
    except (struct.error, zlib.error, UnicodeDecodeError) as error:
        raise Damaged(str(error)) from None
    return sections


class Cache:
    """The folder of entries at `root`. `mode` is "rw", "ro" or "off"."""

    title = "kernel cache"
    """Its name in warnings."""

    def __init__(
        self, root: str, mode: str, build_id: str, max_bytes: int, max_entries: int = 1 << 17
    ) -> None:
        self.root = root
        self.mode = mode
        self.build_id = build_id
        self.max_bytes = max_bytes
        self.max_entries = max_entries
        self._added_bytes = self._added_entries = 0
        """Since this process last looked at all of it."""
        self.hits = self.misses = self.bad = 0
        self._warned = False

    def read(self, key: bytes) -> Optional[dict[str, bytes]]:
        """The sections of an entry, or None on a miss of any kind."""
        sections = None
        if self.mode != "off":
            try:
                sections = self._read(key)
            except FileNotFoundError:
                pass
            except Damaged as damaged:
                self.bad += 1
                self._warn(f"ignoring a damaged entry ({damaged})")
            except OSError as error:
                self._warn(_explain(error))
        if sections is None:
            self.misses += 1
        else:
            self.hits += 1
        return sections

    def write(self, key: bytes, sections: Mapping[str, bytes]) -> None:
        """Adds an entry, if that is possible."""
        if self.mode != "rw":
            return
        data = pack(key, self.build_id, sections)
        if len(data) > min(_MAX_ENTRY, self.max_bytes):
            return
        try:
            self._write(key, data)
            self._added_bytes += -len(data) % _BLOCK + len(data)
            self._added_entries += 1
            self._sweep_sometimes()
        except OSError as error:
            self._warn(_explain(error))

    def forget(self, key: bytes) -> None:
        """Removes an entry that turned out to be of no use."""
        try:
            with _Folder(self.root) as root, root.enter(_path(key)[0]) as shard:
                os.unlink(_path(key)[1], dir_fd=shard.fd)
        except OSError:
            pass

    def entries(self) -> Iterator[Entry]:
        """All entries."""
        for shard in range(_SHARDS):
            try:
                with _Folder(self.root) as root, root.enter(f"v{FORMAT_VERSION}/{shard:02x}") as at:
                    found = list(at.files())
            except OSError:
                continue
            for name, status in found:
                if not name.startswith("."):
                    yield Entry(f"{shard:02x}{name}", _size(status), status.st_mtime)

    def verify(self) -> Iterator[tuple[Entry, str]]:
        """Every entry that no build could use, and why."""
        for entry in self.entries():
            key = bytes.fromhex(entry.key)
            try:
                with _Folder(self.root) as root, root.enter(_path(key)[0]) as shard:
                    unpack(shard.read(_path(key)[1]), key, self.build_id)
            except Foreign:
                continue
            except Damaged as damaged:
                yield entry, str(damaged)
            except OSError as error:
                yield entry, _explain(error)

    def clear(self) -> int:
        """Removes every entry; returns how many there were."""
        keys = [bytes.fromhex(entry.key) for entry in self.entries()]
        for key in keys:
            self.forget(key)
        return len(keys)

    def prune(self, max_bytes: int, now: Optional[float] = None) -> int:
        """Removes the least recently used entries, until `max_bytes` remain; returns the number
        removed."""
        return self._sweep(range(_SHARDS), max_bytes, time.time() if now is None else now, 0)

    def _read(self, key: bytes) -> dict[str, bytes]:
        folder, name = _path(key)
        with _Folder(self.root) as root, root.enter(folder) as shard:
            data = shard.read(name)
            try:
                sections = unpack(data, key, self.build_id)
            except Damaged:
                if self.mode == "rw":
                    os.unlink(name, dir_fd=shard.fd)
                raise
            if self.mode == "rw":
                shard.touch(name)
            return sections

    def _write(self, key: bytes, data: bytes) -> None:
        folder, name = _path(key)
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        with _Folder(self.root) as root, root.enter(folder, create=True) as shard:
            temporary = f".{os.getpid()}-{os.urandom(8).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(temporary, flags, 0o600, dir_fd=shard.fd)
            try:
                try:
                    rest = memoryview(data)
                    while rest:
                        rest = rest[os.write(fd, rest) :]
                finally:
                    os.close(fd)
                os.rename(temporary, name, src_dir_fd=shard.fd, dst_dir_fd=shard.fd)
            except BaseException:
                try:
                    os.unlink(temporary, dir_fd=shard.fd)
                except OSError:  # it has its name already, or nothing can be done
                    pass
                raise

    def _sweep_sometimes(self) -> None:
        """Keeps the size in bounds. Checks some of the shards, at most once in 20 minutes, and all
        of them after many additions."""
        now = time.time()
        is_much = self._added_bytes > self.max_bytes // 8
        if is_much or self._added_entries > self.max_entries // 8:
            self._added_bytes = self._added_entries = 0
            self._sweep(range(_SHARDS), self.max_bytes, now, 0, self.max_entries)
            return
        with _Folder(self.root) as root, root.enter(f"v{FORMAT_VERSION}") as folder:
            try:
                last = os.stat(".swept", dir_fd=folder.fd, follow_symlinks=False).st_mtime
            except FileNotFoundError:
                last = now
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                try:
                    os.close(os.open(".swept", flags, 0o600, dir_fd=folder.fd))
                except FileExistsError:  # another thread or process was first
                    pass
            # A clock that went backwards must not stop the sweeping for good.
            if 0 <= now - last < _SWEEP_SECONDS:
                return
            os.utime(".swept", dir_fd=folder.fd, follow_symlinks=False)
        first = os.urandom(1)[0] // _SHARDS_A_SWEEP * _SHARDS_A_SWEEP
        shards = range(first, first + _SHARDS_A_SWEEP)
        part = _SHARDS // len(shards)
        self._sweep(
            shards, self.max_bytes // part, now, _YOUNG_SECONDS, max(1, self.max_entries // part)
        )

    def _sweep(
        self,
        shards: range,
        max_bytes: int,
        now: float,
        min_age: float,
        max_entries: Optional[int] = None,
    ) -> int:
        found: list[tuple[float, int, str, str]] = []
        removed = 0
        for number in shards:
            folder = f"v{FORMAT_VERSION}/{number:02x}"
            try:
                with _Folder(self.root) as root, root.enter(folder) as shard:
                    for name, status in shard.files():
                        if not name.startswith("."):
                            found.append((status.st_mtime, _size(status), folder, name))
                        elif now - status.st_mtime > _STALE_TEMPORARY_SECONDS:
                            os.unlink(name, dir_fd=shard.fd)
            except OSError:
                continue
        total, count = sum(size for _, size, _, _ in found), len(found)
        for used, size, folder, name in sorted(found):
            if total <= max_bytes and (max_entries is None or count <= max_entries):
                break
            if now - used < min_age:
                continue
            try:
                with _Folder(self.root) as root, root.enter(folder) as shard:
                    os.unlink(name, dir_fd=shard.fd)
            except OSError:
                continue
            total -= size
            count -= 1
            removed += 1
        return removed

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            warn_of_machine(f"tessera: {self.title} at {self.root}: {why}")


class _Folder:
    """An open folder that belongs to this user and that no other user may write to."""

    def __init__(self, path: str, dir_fd: Optional[int] = None) -> None:
        self.fd = os.open(path, _FOLDER_FLAGS, dir_fd=dir_fd)
        status = os.fstat(self.fd)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            os.close(self.fd)
            raise PermissionError(
                errno.EPERM, "not used, since other users may write to it", str(path)
            )

    def __enter__(self) -> "_Folder":
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.fd)

    def enter(self, path: str, create: bool = False) -> "_Folder":
        """A nested folder, with a check of each component."""
        here: Optional[_Folder] = None
        try:
            for name in path.split("/"):
                at = self.fd if here is None else here.fd
                if create:
                    try:
                        os.mkdir(name, 0o700, dir_fd=at)
                    except FileExistsError:
                        pass
                below = _Folder(name, at)
                if here is not None:
                    os.close(here.fd)
                here = below
        except BaseException:
            if here is not None:
                os.close(here.fd)
            raise
        assert here is not None
        return here

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Its regular files."""
        for name in os.listdir(self.fd):
            try:
                status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield name, status

    def read(self, name: str) -> bytes:
        """A whole file. It is read, not mapped: another process may truncate it."""
        fd = os.open(name, _READ_FLAGS | os.O_NONBLOCK, dir_fd=self.fd)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                raise Damaged("not a file of this user")
            if status.st_mode & 0o022:
                raise Damaged("others may write to it")
            if status.st_size > _MAX_ENTRY:
                raise Damaged("too long")
            parts = []
            while part := os.read(fd, 1 << 20):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(fd)

    def touch(self, name: str) -> None:
        """Notes that a file is in use. `atime` would do it alone, were it kept everywhere."""
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            if abs(time.time() - status.st_mtime) > _TOUCH_SECONDS:
                os.utime(name, dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            pass


def _size(status: os.stat_result) -> int:
    """The disk space of a file, in whole blocks."""
    return max(status.st_size, status.st_blocks * 512)


def _path(key: bytes) -> tuple[str, str]:
    name = key.hex()
    return f"v{FORMAT_VERSION}/{name[:2]}", name[2:]


def _explain(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "not used, since it is a symbolic link; kernels are kept in memory only"
    return f"{error.strerror or error}; kernels are kept in memory only"


_open: dict[tuple[str, str, int, int], Cache] = {}


def default_cache() -> Cache:
    """The cache that the settings ask for."""
    mode = settings.cache
    if os.geteuid() != os.getuid():
        mode = "off"  # the environment is that of somebody with fewer rights
    wanted = (settings.cache_dir, mode, settings.cache_size, settings.cache_entries)
    cache = _open.get(wanted)
    if cache is None:
        root = wanted[0] or (_default_root() if mode != "off" else "")
        cache = _open.setdefault(wanted, Cache(root, mode, _C.build_id(), wanted[2], wanted[3]))
    return cache


def _default_root() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    root = os.path.join(base, "tessera")
    if os.path.isabs(root):
        try:
            os.makedirs(root, mode=0o700, exist_ok=True)
            if os.access(root, os.W_OK):
                return root
        except OSError:
            pass
    import atexit
    import shutil
    import tempfile

    private = tempfile.mkdtemp(prefix="tessera-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # and not a child that was forked
            shutil.rmtree(private, ignore_errors=True)

    atexit.register(remove)
    warn_of_machine(
        f"tessera: {root} cannot be written, so kernels are kept for this process only; "
        "set TESSERA_CACHE_DIR to keep them"
    )
    return private
