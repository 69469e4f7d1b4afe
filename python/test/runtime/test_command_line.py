# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tessera`."""

import os
import subprocess
import sys

import pytest

import tessera
from tessera import settings
from tessera.__main__ import main
from tessera.compiler.cache import default_cache
from tessera.digests import digest


@pytest.fixture
def cache(tmp_path):
    with settings.override(cache_dir=str(tmp_path / "cache")):
        kept = default_cache()
        for name in ("one", "two"):
            kept.write(digest(name), {"kernel": os.urandom(1000)})
        yield kept


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    for part in (tessera.__version__, tessera._C.build_id(), "TESSERA_CACHE_DIR"):
        assert part in output
    lines = [line.split() for line in output.splitlines()]
    found = {words[0]: words[1:] for words in lines}
    assert found["llvm"][0].startswith("22.")
    assert "numpy" in found["packages"] and "torch" in found["packages"]
    assert {"system", "python"} <= set(found)
    assert found["TESSERA_RECOMPILE_WARNING"] == ["64"]
    starts = {
        line.index(line.split()[1]) for line in output.splitlines() if line.startswith("TESSERA_")
    }
    assert len(starts) == 1


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tessera {tessera.__version__}\n"


def test_a_reader_that_has_seen_enough():
    command = f"{sys.executable} -u -m tessera doctor | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=99)
    assert done.stdout.startswith("tessera ") and done.stderr == ""


def test_log(tmp_path):
    """What is done is told where it is asked for, and by `logging` where that is set up."""
    script = tmp_path / "script.py"
    script.write_text("""import sys
import numpy as np, tessera, tessera.language as tl
if sys.argv[1:]:
    import logging
    logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
@tessera.jit
def fill(x):
    tl.store(x + tl.arange(0, 16), 1.0)
x = np.zeros(16, np.float32)
for _ in range(3):
    fill[(1,)](x)
""")

    def run(*arguments, **variables):
        env = {**os.environ, "TESSERA_CACHE_DIR": str(tmp_path / "cache"), **variables}
        command = [sys.executable, str(script), *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=99)
        assert done.returncode == 0, done.stderr
        return done.stderr.splitlines()

    first = run(TESSERA_LOG="info")
    assert len(first) == 2
    assert first[0].startswith("tessera: compiled `fill` for cpu in ")
    assert first[1].startswith("tessera: launched `fill` as (1, 1, 1) on the CPU")
    again = run("logging")
    assert len(again) == 1
    assert again[0].startswith("tessera INFO found in the cache `fill` for cpu in ")
    assert run() == []


@pytest.mark.parametrize("version, warned", [("13.0.88", True), ("13.5.37", False), ("", False)])
def test_doctor_knows_releases_that_miscompile(tmp_path, capsys, version, warned):
    program = tmp_path / "ptxas"
    said = f"Cuda compilation tools, release {version[:4]}, V{version}" if version else "no version"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    with settings.override(ptxas=str(program)):
        assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert f"{program} {version}" in output
    assert ("miscompile" in output) == warned


def test_looking_at_the_cache(cache, capsys):
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out.strip() == cache.root
    assert main(["cache", "stats"]) == 0
    assert capsys.readouterr().out.startswith("2 entries")
    assert main(["cache", "list"]) == 0
    assert digest("one").hex() in capsys.readouterr().out


def test_verify_finds_damage(cache, capsys):
    assert main(["cache", "verify"]) == 0
    name = digest("one").hex()
    with open(os.path.join(cache.root, "v1", name[:2], name[2:]), "r+b") as file:
        file.truncate(500)
    assert main(["cache", "verify"]) == 1
    assert name in capsys.readouterr().out


def test_prune_and_clear(cache, capsys):
    assert main(["cache", "prune", "--size", "6000"]) == 0
    assert "1 entries removed" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert not list(cache.entries())


@pytest.mark.parametrize(
    "arguments, id, words",
    [
        (["cache", "prune", "--size", "lots"], "E062", ("--size is 'lots'", "write --size 500M")),
        (
            ["build", __file__, "-s", "i32"],
            "E079",
            ("names no kernel of the file", f"write {__file__}:kernel"),
        ),
    ],
)
def test_mistakes_of_arguments(cache, arguments, id, words):
    with pytest.raises(tessera.TesseraError) as caught:
        main(arguments)
    assert caught.value.id == id
    for part in words:
        assert part in str(caught.value)


def test_results_that_there_are_not_are_told(cache, capsys):
    assert main(["tune", "show", "nosuch"]) == 1
    assert "no result of a kernel 'nosuch'" in capsys.readouterr().err


def test_nonsense_is_told_without_a_traceback(tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": os.path.dirname(os.path.dirname(tessera.__file__)),
        "TESSERA_CACHE": "sideways",
    }
    run = subprocess.run(
        [sys.executable, "-m", "tessera", "cache", "stats"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1 and "Traceback" not in run.stderr
    assert "TESSERA_CACHE is 'sideways'" in run.stderr
