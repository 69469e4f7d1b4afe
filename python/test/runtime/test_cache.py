# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The disk cache: whatever happens to it, a kernel is found whole or not at all."""

import multiprocessing
import os
import stat
import time
import warnings

import pytest

from tessera.compiler.cache import Cache, Damaged, pack, unpack
from tessera.digests import digest

BUILD = "0123456789abcdef"
KEY = digest("a key")
SECTIONS = {"kernel": b"\x7fELF" + bytes(range(256)) * 20, "info": b"{}"}


@pytest.fixture
def cache(tmp_path):
    return Cache(str(tmp_path / "cache"), "rw", BUILD, 1 << 30)


def entry_file(cache, key=KEY):
    name = key.hex()
    return os.path.join(cache.root, "v1", name[:2], name[2:])


def test_what_was_written_is_read(cache):
    assert cache.read(KEY) is None
    cache.write(KEY, SECTIONS)
    assert cache.read(KEY) == SECTIONS
    assert (cache.hits, cache.misses, cache.bad) == (1, 1, 0)


def test_fields_of_a_digest_do_not_run_together():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") != digest("ab", "")


def test_files_are_private(cache):
    old = os.umask(0)
    try:
        cache.write(KEY, SECTIONS)
    finally:
        os.umask(old)
    path = entry_file(cache)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for folder in (os.path.dirname(path), cache.root):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


@pytest.mark.parametrize("change", ["flip", "cut", "append"])
def test_every_damage_is_noticed(change):
    data = pack(KEY, BUILD, {"kernel": b"some machine code", "info": b"{}"})
    assert unpack(data, KEY, BUILD)
    for at in range(len(data)):
        if change == "flip":
            bad = data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
        elif change == "cut":
            bad = data[:at]
        else:
            bad = data + bytes(at + 1)
        with pytest.raises(Damaged):
            unpack(bad, KEY, BUILD)


def resealed(data):
    from hashlib import sha256

    return data[:-32] + sha256(data[:-32]).digest()


def test_a_checksum_does_not_make_nonsense_right():
    """Whoever can recompute the checksum still cannot make the reader misbehave."""
    data = bytearray(pack(KEY, BUILD, {"kernel": b"x" * 100}))
    table = 24 + 4 + len(BUILD) + 32
    for offset in range(table + 16, table + 40):
        bad = bytearray(data)
        bad[offset] ^= 0xFF
        with pytest.raises(Damaged):
            unpack(resealed(bytes(bad)), KEY, BUILD)


def test_a_bomb_is_not_inflated():
    import zlib

    data = bytearray(pack(KEY, BUILD, {"kernel": bytes(1 << 20)}))
    table = 24 + 4 + len(BUILD) + 32
    data[table + 32 : table + 40] = (10).to_bytes(8, "little")
    with pytest.raises(Damaged, match="another length"):
        unpack(resealed(bytes(data)), KEY, BUILD)
    assert len(zlib.compress(bytes(1 << 20))) < 2000


def test_other_key_or_build_is_a_miss(cache):
    cache.write(KEY, SECTIONS)
    other = digest("another key")
    os.makedirs(os.path.dirname(entry_file(cache, other)), mode=0o700, exist_ok=True)
    os.link(entry_file(cache), entry_file(cache, other))
    with pytest.warns(UserWarning, match="another key"):
        assert cache.read(other) is None
    newer = Cache(cache.root, "rw", "feedbeef" * 2, 1 << 30)
    with pytest.warns(UserWarning, match="another build"):
        assert newer.read(KEY) is None


def test_a_damaged_entry_is_removed_and_replaced(cache):
    cache.write(KEY, SECTIONS)
    with open(entry_file(cache), "r+b") as file:
        file.seek(200)
        file.write(b"!!!")
    with pytest.warns(UserWarning, match="damaged"):
        assert cache.read(KEY) is None
    assert cache.bad == 1 and not os.path.exists(entry_file(cache))
    cache.write(KEY, SECTIONS)
    assert cache.read(KEY) == SECTIONS


def test_warnings_come_once(cache):
    cache.write(KEY, SECTIONS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            with open(entry_file(cache), "wb") as file:
                file.write(b"short")
            assert cache.read(KEY) is None
    assert len(caught) == 1


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_not_used(cache, mode):
    cache.write(KEY, SECTIONS)
    os.chmod(cache.root, mode)
    with pytest.warns(UserWarning, match="other users may write"):
        assert cache.read(KEY) is None


def test_an_entry_that_others_may_write_to_is_not_used(cache):
    cache.write(KEY, SECTIONS)
    os.chmod(entry_file(cache), 0o666)
    with pytest.warns(UserWarning, match="others may write"):
        assert cache.read(KEY) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_is_not_used(cache):
    cache.write(KEY, SECTIONS)
    os.chown(cache.root, 12345, 12345)
    with pytest.warns(UserWarning, match="other users"):
        assert cache.read(KEY) is None


def test_no_link_is_followed(cache, tmp_path):
    cache.write(KEY, SECTIONS)
    moved = str(tmp_path / "elsewhere")
    os.rename(entry_file(cache), moved)
    os.symlink(moved, entry_file(cache))
    with pytest.warns(UserWarning, match="symbolic link"):
        assert cache.read(KEY) is None


@pytest.mark.parametrize("what", ["file", "dangling", "link", "fifo"])
def test_a_root_that_is_no_folder_keeps_kernels_in_memory(tmp_path, what):
    root = str(tmp_path / "root")
    if what == "file":
        open(root, "w").close()
    elif what == "dangling":
        os.symlink(str(tmp_path / "nowhere"), root)
    elif what == "link":
        os.mkdir(tmp_path / "real", 0o700)
        os.symlink(str(tmp_path / "real"), root)
    else:
        os.mkfifo(root)
    cache = Cache(root, "rw", BUILD, 1 << 30)
    with pytest.warns(UserWarning, match="kept in memory|symbolic"):
        cache.write(KEY, SECTIONS)
        assert cache.read(KEY) is None


def test_a_fifo_in_place_of_an_entry_does_not_block(cache):
    cache.write(KEY, SECTIONS)
    os.unlink(entry_file(cache))
    os.mkfifo(entry_file(cache), 0o600)
    with pytest.warns(UserWarning):
        assert cache.read(KEY) is None


def test_a_full_disk_is_one_warning(cache, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    cache.write(KEY, SECTIONS)
    monkeypatch.setattr(os, "write", full)
    with pytest.warns(UserWarning, match="No space left"):
        cache.write(digest("second"), SECTIONS)
    monkeypatch.undo()
    # No temporary file is left behind.
    for folder, _, names in os.walk(cache.root):
        assert all(name == ".swept" or not name.startswith(".") for name in names)
    assert cache.read(KEY) == SECTIONS


def test_modes(cache):
    cache.write(KEY, SECTIONS)
    reader = Cache(cache.root, "ro", BUILD, 1 << 30)
    assert reader.read(KEY) == SECTIONS
    reader.write(digest("new"), SECTIONS)
    assert reader.read(digest("new")) is None
    off = Cache(cache.root, "off", BUILD, 1 << 30)
    assert off.read(KEY) is None


def test_the_least_recently_used_goes_first(cache):
    keys = [digest(str(number)) for number in range(10)]
    for age, key in enumerate(keys):
        cache.write(key, {"kernel": os.urandom(10_000)})
        os.utime(entry_file(cache, key), (0, time.time() - 1000 * (10 - age)))
    assert cache.read(keys[0]) is not None  # which counts as use, after an hour
    assert cache.prune(62_000) == 5  # each takes three blocks
    left = {entry.key for entry in cache.entries()}
    assert left == {key.hex() for key in [keys[0], *keys[6:]]}


def test_entries_too_young_are_left_alone_by_the_sweep(cache):
    cache.write(KEY, SECTIONS)
    assert cache._sweep(range(256), 0, time.time(), 600) == 0
    assert cache._sweep(range(256), 0, time.time() + 601, 600) == 1


def test_stale_temporary_files_are_removed(cache):
    cache.write(KEY, SECTIONS)
    stale = os.path.join(os.path.dirname(entry_file(cache)), ".123-abc")
    open(stale, "w").close()
    os.utime(stale, (0, time.time() - 7200))
    cache._sweep(range(256), 1 << 30, time.time(), 600)
    assert not os.path.exists(stale) and cache.read(KEY)


def test_sweeping_survives_a_clock_that_went_backwards(cache):
    cache.write(KEY, SECTIONS)
    swept = os.path.join(cache.root, "v1", ".swept")
    os.utime(swept, (0, time.time() + 1e6))
    cache.write(digest("second"), SECTIONS)
    assert os.stat(swept).st_mtime < time.time() + 10


def test_a_burst_is_pruned_at_once(tmp_path):
    for name, limits in (("bytes", (400_000, 1 << 17)), ("entries", (1 << 30, 40))):
        cache = Cache(str(tmp_path / name), "rw", BUILD, *limits)
        for number in range(200):
            cache.write(digest(str(number)), {"kernel": os.urandom(10_000)})
        entries = list(cache.entries())
        # As much may be added before it is looked for again.
        assert sum(entry.size for entry in entries) <= limits[0] * 9 // 8 + 20_000
        assert 10 < len(entries) <= limits[1] * 9 // 8 + 1
        assert cache.read(digest("199")) is not None


def test_what_is_counted_are_blocks(cache):
    for number in range(20):
        cache.write(digest(str(number)), {"kernel": b"x"})
    entry, *_ = cache.entries()
    assert entry.size == os.stat(entry_file(cache, bytes.fromhex(entry.key))).st_blocks * 512
    assert cache.prune(10 * entry.size) == 10


def test_an_interrupt_while_an_entry_gets_its_name(cache, monkeypatch):
    rename = os.rename

    def interrupted(*args, **kwargs):
        rename(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.write(KEY, SECTIONS)
    monkeypatch.undo()
    assert cache.read(KEY) == SECTIONS


def test_faults_make_misses(cache):
    """Cut, changed, swapped with another or put where it does not belong: never a wrong entry,
    never an exception."""
    import random

    draw = random.Random(13)
    keys = [digest(str(number)) for number in range(20)]
    contents = {key: {"kernel": key * draw.randrange(1, 400)} for key in keys}
    wrong = hits = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(1500):
            key = draw.choice(keys)
            cache.write(key, contents[key])
            path = entry_file(cache, key)
            size = os.path.getsize(path)
            fault = draw.choice(["cut", "bit", "byte", "grow", "swap", "zero", "folder", "none"])
            if fault == "cut":
                os.truncate(path, draw.randrange(size))
            elif fault in ("bit", "byte"):
                with open(path, "r+b") as file:
                    at = draw.randrange(size)
                    file.seek(at)
                    byte = file.read(1)[0]
                    file.seek(at)
                    file.write(bytes([byte ^ (1 << draw.randrange(8) if fault == "bit" else 255)]))
            elif fault == "grow":
                os.truncate(path, size + draw.randrange(1, 5000))
            elif fault == "swap":
                other = draw.choice(keys)
                cache.write(other, contents[other])
                if other != key:
                    os.rename(path, path + "~")
                    os.rename(entry_file(cache, other), path)
                    os.rename(path + "~", entry_file(cache, other))
            elif fault == "zero":
                with open(path, "r+b") as file:
                    at = draw.randrange(size)
                    file.seek(at)
                    file.write(bytes(min(512, size - at)))
            elif fault == "folder":
                os.unlink(path)
                os.mkdir(path)
            for one in (key, draw.choice(keys)):
                found = cache.read(one)
                wrong += found is not None and found != contents[one]
                hits += found is not None
            if fault == "folder":
                os.rmdir(path)
    assert wrong == 0 and hits > 300


def test_verify_and_clear(cache):
    cache.write(KEY, SECTIONS)
    cache.write(digest("second"), SECTIONS)
    assert list(cache.verify()) == []
    assert list(Cache(cache.root, "rw", "feedbeef" * 2, 1 << 30).verify()) == []
    with open(entry_file(cache), "r+b") as file:
        file.write(b"?")
    assert [entry.key for entry, _ in cache.verify()] == [KEY.hex()]
    assert cache.clear() == 2 and list(cache.entries()) == []


def _hammer(root, seed):
    cache = Cache(root, "rw", BUILD, 1 << 30)
    for number in range(60):
        key = digest(str((number * 7 + seed) % 10))
        found = cache.read(key)
        assert found is None or found == {"kernel": key * 1000}
        cache.write(key, {"kernel": key * 1000})
    assert cache.bad == 0


def test_processes_race_without_harm(cache):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_hammer, args=(cache.root, seed)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert len(list(cache.entries())) == 10


PROGRAM = """
import os, sys, warnings
import numpy as np
import tessera, tessera.language as tl
@tessera.jit
def kernel(out):
    tl.store(out, 3)
out = np.zeros(1, np.int32)
kernel[(1,)](out)
assert out[0] == 3
"""


ON_CONSTANTS = """
import os
import numpy as np
import tessera, tessera.language as tl
np.__version__ += os.environ.get("SUFFIX", "")
@tessera.jit
def kernel(out):
    tl.store(out, np.finfo(np.float32).max)
out = np.zeros(1, np.float32)
kernel[(1,)](out)
assert out[0] == np.finfo(np.float32).max
"""


def test_another_process_finds_what_numpy_computed(tmp_path):
    """A link in the cache knows the release of NumPy, of which results may be."""
    import subprocess
    import sys

    (tmp_path / "kernel.py").write_text(ON_CONSTANTS)
    environment = {**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache")}

    def count_files_after_run(suffix):
        command = [sys.executable, str(tmp_path / "kernel.py")]
        subprocess.run(command, env={**environment, "SUFFIX": suffix}, check=True, cwd=tmp_path)
        return len([path for path in (tmp_path / "cache").rglob("*") if len(path.name) == 62])

    assert [count_files_after_run(suffix) for suffix in ("", "", "x")] == [2, 2, 3]


def test_no_warning_of_the_cache_ends_a_launch(tmp_path):
    """Not even where every warning is an error: damaged entries, a folder that is no good, a
    variable that is misspelt."""
    import subprocess
    import sys

    (tmp_path / "kernel.py").write_text(PROGRAM)
    environment = {**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache")}

    def run(**more):
        command = [sys.executable, "-W", "error::UserWarning", str(tmp_path / "kernel.py")]
        ended = subprocess.run(
            command, env={**environment, **more}, capture_output=True, text=True, cwd=tmp_path
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    assert run() == ""
    files = [path for path in (tmp_path / "cache").rglob("*") if len(path.name) == 62]
    assert len(files) == 2
    for path in files:
        path.write_bytes(path.read_bytes()[:-5])
    assert run().count("damaged entry") == 1
    assert run() == ""
    os.chmod(tmp_path / "cache", 0o777)
    assert "other users may write" in run()
    assert "did you mean TESSERA_CACHE_DIR?" in run(TESSERA_CAHCE_DIR="x")
    assert "cannot be written" in run(
        TESSERA_CACHE_DIR="", XDG_CACHE_HOME="/proc/nowhere", HOME="/proc/nowhere"
    )


ACCESS = """
import numpy as np
import tessera
import tessera.language as tl

@tessera.jit
def clear(x_ptr):
    tl.store(x_ptr + tl.arange(0, 16), 0)

try:
    clear[(1,)](np.ones(6, np.float32), debug=True)
except tessera.MemoryAccessError as error:
    print(error.message)
"""


def test_errors_name_the_file_that_runs(tmp_path):
    """Not the one whose equal kernel was compiled and put into the cache."""
    import subprocess
    import sys

    environment = {**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache")}
    for name, text in [("first", ACCESS), ("second", ACCESS), ("first", "\n" + ACCESS)]:
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        line = text[: text.index("tl.store")].count("\n") + 1
        for _ in range(2):
            command = [sys.executable, str(file)]
            ran = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert ran.stdout.startswith(f"{file}:{line}:5: store of element"), ran.stderr
