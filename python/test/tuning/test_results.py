# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results on disk: found again, damaged, of another build, exported, imported, cleared."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import warnings
from typing import Any

import numpy as np
import pytest

import tessera
from tessera import Config, _C
from tessera.__main__ import main
from tessera.compiler.cache import pack
from tessera.settings import settings
from tessera.tuning import race, session, store

from .kernels import blocks, grid, increment, numbers, scale


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were measured."""
    names: list[str] = []
    choose = session.choose
    monkeypatch.setattr(session, "choose", lambda *args: names.append(args[0]) or choose(*args))
    return names


@pytest.fixture(autouse=True)
def certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is that these tests run on."""
    monkeypatch.setattr(race, "_CERTAIN_ROUNDS", 1)


def launch(configs: Any = None, kernel: Any = scale, n: int = 1000, **more: Any) -> Any:
    configs = blocks(32, 128) if configs is None else configs
    made = tessera.autotune(configs, key=["n"], **more)(kernel)
    x = numbers(n)
    made[grid](x, numbers(n), n)
    return made


def entries(folder: pathlib.Path) -> list[pathlib.Path]:
    return [
        path for path in (folder / "tuned").rglob("*") if path.is_file() and path.name[0] != "."
    ]


def test_another_tuner_finds_them(tuned):
    first, second = launch(), launch()
    assert tuned == ["scale"] and first.best_config == second.best_config
    assert second.configs_timings == first.configs_timings and second.bench_time == 0


def test_uncertain_ones_are_not_kept(tuned, monkeypatch, own_results, capsys):
    judge = session.race
    hurried = lambda *args: judge(*args)._replace(is_certain=False)  # noqa: E731
    with monkeypatch.context() as patch, settings.override(tune_progress="plain"):
        patch.setattr(session, "race", hurried)
        made = launch()
        x = numbers(1000)
        made[grid](x, numbers(1000), 1000)
    assert tuned == ["scale"]  # this tuner keeps its choice
    assert "uncertain: the machine is busy" in capsys.readouterr().err
    launch(), launch()
    assert tuned == ["scale", "scale"]


def test_another_process_finds_them(tmp_path, own_results):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""
        import array, tessera, tessera.language as tl
        import numpy as np
        @tessera.autotune([tessera.Config({"B": b}) for b in (16, 64)], key=["n", "MODE"])
        @tessera.jit
        def k(x, n, MODE: tl.constexpr, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            tl.store(x + i, 1.0, mask=i < n)
        x = np.zeros(64, np.float32)
        k[lambda meta: (tessera.cdiv(64, meta["B"]),)](x, 64, "a")
        print(k.bench_time > 0, k.best_config)
        """))
    env = {**os.environ, "TESSERA_CACHE_DIR": str(own_results), "TESSERA_TUNE_PROGRESS": "plain"}
    runs = [
        subprocess.run(
            [sys.executable, script], env=env, capture_output=True, text=True, timeout=99
        )
        for _ in range(2)
    ]
    assert all(run.returncode == 0 for run in runs), runs
    assert runs[0].stdout.startswith("True") and runs[1].stdout.startswith("False")
    assert runs[0].stdout.split(" ", 1)[1] == runs[1].stdout.split(" ", 1)[1]
    assert "tuning k (n=64, MODE=a): 2 configurations" in runs[0].stderr and not runs[1].stderr


@pytest.mark.parametrize(
    "other",
    [
        dict(n=999),
        dict(configs=blocks(32, 256)),
        dict(configs=blocks(32, 128, num_warps=8)),
        dict(cache_results=False),
    ],
)
def test_what_is_not_the_same_is_measured(tuned, other):
    launch()
    launch(**other)
    assert len(tuned) == 2


def test_it_is_turned_off(tuned, own_results):
    launch(cache_results=False)
    assert not entries(own_results)
    with settings.override(cache="off"):
        launch()
        launch()
    assert len(tuned) == 3 and not entries(own_results)


def test_what_a_function_of_the_users_measured_stays_here(tuned, own_results):
    def bench(launch: Any, quantiles: Any) -> float:
        launch()
        return 1.0

    launch(do_bench=bench)
    assert not entries(own_results)
    launch(do_bench=bench, cache_results=True)
    assert entries(own_results)


def test_hooks_are_those_of_this_process(tuned):
    calls = []

    def configs() -> list[Config]:
        return [
            Config({"BLOCK": size}, pre_hook=lambda named: calls.append(1)) for size in (32, 128)
        ]

    launch(configs())
    calls.clear()
    launch(configs())
    assert len(tuned) == 1 and calls == [1]


def test_what_no_other_process_knows_stays_here(tuned, own_results):
    class Odd:
        pass

    odd = Odd()
    kernel = tessera.autotune(
        [Config({"BLOCK": 32}, maxnreg=None), Config({"BLOCK": 64}, ir_override=None)], key=["n"]
    )(scale)
    assert store.describe(Config({"BLOCK": odd})) is None and store.spell((1, odd)) is None
    assert store.spell((1, 1.5, "a", None, True)) is not None
    assert store.spell(1) != store.spell(True) != store.spell(1.0) and store.spell(
        0.0
    ) != store.spell(-0.0)
    kernel[grid](numbers(), numbers(), 1000)
    assert entries(own_results)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_damage_is_ignored_with_one_warning(tuned, own_results, damage):
    launch()
    (path,) = entries(own_results)
    data = path.read_bytes()
    changed = {
        "cut": data[: len(data) // 2],
        "flip": data[:100] + bytes([data[100] ^ 1]) + data[101:],
        "empty": b"",
        "text": b"{}",
    }[damage]
    path.write_bytes(changed)
    store._open.clear()
    with pytest.warns(UserWarning, match="tuning results at .*: ignoring a damaged entry") as told:
        launch()
        launch()
    assert len(told) == 1 and len(tuned) == 2


def test_another_builds_is_ignored_with_one_warning(tuned, own_results):
    launch()
    (path,) = entries(own_results)
    (result,) = store.stored()
    path.write_bytes(
        pack(result.id, "another build", {"result": json.dumps(result.fields).encode()})
    )
    store._open.clear()
    with pytest.warns(UserWarning, match="written by another build") as told:
        launch()
        launch()
    assert len(told) == 1 and len(tuned) == 2


@pytest.mark.parametrize("content", [b"[]", b"{}", b"\xff", b'{"kernel": 1}', b"nul"])
def test_what_is_no_result_is_ignored(tuned, own_results, content):
    launch()
    (result,) = store.stored()
    store.results().write(result.id, {"result": content})
    launch()
    assert len(tuned) == 2


def test_a_folder_that_cannot_be_written(tuned, own_results):
    own_results.mkdir(exist_ok=True)
    (own_results / "tuned").write_text("in the way")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        launch()
        launch()
    assert (
        len(tuned) == 2
        and len([item for item in told if "tuning results" in str(item.message)]) == 1
    )


def run(capsys: Any, *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["tune", *arguments])
    return status, capsys.readouterr().out


def test_list_and_show(capsys):
    launch()
    launch(kernel=scale, n=77)
    status, text = run(capsys, "list")
    lines = text.splitlines()
    assert status == 0 and len(lines) == 3 and lines[2].startswith("2 results in ")
    assert ".scale (1000, fp32, fp32)  " in lines[0] and ".scale (77, fp32, fp32)  " in lines[1]
    status, text = run(capsys, "show", "scale")
    assert status == 0 and text.count("BLOCK=32") >= 2 and text.count("BLOCK=128") >= 2
    assert text.count("  * ") == 2 and text.count("(*: the choice)") == 2
    number = lines[0].split()[0]
    assert run(capsys, "list", number)[1].splitlines()[:-1] == [lines[0]]
    assert run(capsys, "list", "nothing")[0] == 1


def test_export_import_clear(capsys, tmp_path, tuned):
    launch()
    path = str(tmp_path / "results.json")
    assert run(capsys, "export", path)[0] == 0
    assert run(capsys, "clear")[1] == "1 results removed\n" and not list(store.stored())
    assert run(capsys, "import", path)[1] == "1 results imported\n"
    launch()
    assert len(tuned) == 1
    run(capsys, "clear", "scale")
    launch()
    assert len(tuned) == 2
    whole = json.loads(pathlib.Path(path).read_text())
    assert whole["format"] == "tessera-tuned" and whole["results"][0]["build"] == _C.build_id()


def test_importing_another_builds(capsys, tmp_path):
    launch()
    (result,) = store.stored()
    other = store.Result({**result.fields, "build": "another"})
    path = tmp_path / "results.json"
    path.write_text(store.export([other]))
    status, text = run(capsys, "import", str(path))
    assert status == 0 and "1 of them are of another build" in text
    assert "(of another build)" in run(capsys, "list")[1]
    assert len(list(store.stored())) == 2


@pytest.mark.parametrize(
    "change", ["[]", "no json", '{"format": "x", "version": 1, "results": []}', "edited"]
)
def test_importing_what_is_none(capsys, tmp_path, change):
    launch()
    if change == "edited":
        (result,) = store.stored()
        change = store.export([result]).replace('"scale"', '"other"').replace(".scale", ".other")
    run(capsys, "clear")
    path = tmp_path / "results.json"
    path.write_text(change)
    with pytest.raises(tessera.LaunchError, match="no results of tuning") as error:
        main(["tune", "import", str(path)])
    assert error.value.id == "E059" and not list(store.stored())


@pytest.mark.parametrize(
    "changed",
    [
        {"timings": ["x", 3]}, {"timings": [[1.0], None]}, {"timings": [[None] * 3, None]},
        {"timings": [{"a": 1}, None]}, {"timings": [[1.0, 2.0, float("nan")], None]},
        {"timings": []}, {"date": float("nan")}, {"date": 1e300}, {"date": -1.0},
        {"seconds": float("nan")}, {"best": 2}, {"best": True},
    ],
)  # fmt: skip
def test_importing_numbers_that_cannot_be(tmp_path, changed):
    """What is kept must be what can be listed."""
    launch()
    (result,) = store.stored()
    whole = json.loads(store.export([result]))
    whole["results"][0].update(changed)
    with pytest.raises(tessera.LaunchError, match="no results of tuning"):
        store.load(json.dumps(whole))


def test_without_a_cache(capsys, tmp_path, monkeypatch):
    launch()
    path = tmp_path / "results.json"
    assert run(capsys, "export", str(path))[0] == 0
    (tmp_path / "tuned" / "v1" / "00").mkdir(parents=True)
    mine = tmp_path / "tuned" / "v1" / "00" / ("0" * 62)
    mine.write_text("not ours")
    monkeypatch.chdir(tmp_path)
    with settings.override(cache="off", cache_dir=""):
        assert run(capsys, "list")[1] == "0 results in \n"
        assert run(capsys, "clear")[1] == "0 results removed\n" and mine.exists()
        with pytest.raises(tessera.LaunchError, match="TESSERA_CACHE is 'off'"):
            main(["tune", "import", str(path)])


def test_files_that_cannot_be(tmp_path):
    launch()
    for arguments in (["import", str(tmp_path / "missing")], ["export", str(tmp_path / "a" / "b")]):
        with pytest.raises(tessera.LaunchError) as error:
            main(["tune", *arguments])
        assert error.value.id == "E061"


def test_the_command_of_a_shell(own_results):
    launch()
    env = {**os.environ, "TESSERA_CACHE_DIR": str(own_results)}
    command = [sys.executable, "-m", "tessera", "tune", "list"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=99, check=True)
    assert ".scale " in done.stdout and "1 results in" in done.stdout
