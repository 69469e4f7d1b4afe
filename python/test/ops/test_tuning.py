# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuned tables of tessera.ops: files, the rules for machines and shapes, and the tuner."""

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
from tessera import ops  # noqa: E402
from tessera.ops import tuner, tuning  # noqa: E402
from tessera.ops.kernels.softmaxes import softmax_kernel  # noqa: E402
from tessera.ops.tuning import Choice, Entry, Machine, Question, Table  # noqa: E402
from tessera.settings import settings  # noqa: E402

MAX_BYTES = 300 << 10


@pytest.fixture(autouse=True)
def no_loaded_tables():
    yield
    tuning.unload()


def entry(length: int, lines: int, **choice: int) -> Entry:
    return Entry(Question("softmax_kernel", "rows", 4, length, lines), choice, 1.5)


def table(machine: Machine, *entries: Entry) -> Table:
    return Table(machine, {"date": "2026-11-29"}, entries)


def softmax_choice(lines: int, length: int, dtype: type = np.float32) -> Choice:
    return tuning.choose_lines(softmax_kernel, np.zeros(1, dtype), (lines, length), 1)


def test_a_table_is_written_and_read(tmp_path: Path) -> None:
    mine = tuning.machine_of()
    file = tmp_path / "table.json"
    file.write_text(table(mine, entry(1024, 64, tile=256, lanes=2)).text())
    read = tuning.load(str(file))
    assert read.machine == mine and read.entries == [entry(1024, 64, tile=256, lanes=2)]
    assert softmax_choice(64, 1024)[:3] == (256, tuning.CPU.block, 2)
    assert tuning.export(str(file)) >= 1
    tuning.unload()
    assert softmax_choice(64, 1024)[:3] != (256, tuning.CPU.block, 2)
    assert entry(1024, 64, tile=256, lanes=2) in tuning.load(str(file)).entries
    assert tuning.machine_of().units >= 1 and softmax_choice(64, 1024).programs >= 1


def test_results_are_the_same_with_a_table(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((37, 300), np.float32)
    before = ops.softmax(x), ops.softmax(x, 0)
    columns = Entry(
        Question("softmax_kernel", "columns", 4, 37, 300), {"tile": 64, "block": 4}, 1.0
    )
    file = tmp_path / "table.json"
    file.write_text(table(tuning.machine_of(), entry(300, 37, tile=64, lanes=8), columns).text())
    tuning.load(str(file))
    for dim, wanted in enumerate(reversed(before)):
        np.testing.assert_allclose(ops.softmax(x, dim), wanted, rtol=1e-5)


def test_the_nearest_entry_is_used() -> None:
    entries = [entry(1024, 64, tile=256), entry(4096, 64, tile=512), entry(4096, 4096, tile=1024)]
    found = table(tuning.machine_of(), *entries)
    for (lines, length), wanted in {
        (64, 1100): 256,
        (60, 3000): 512,
        (128, 16384): 512,
        (2048, 2048): 1024,
        (64, 255): None,
        (64, 16385): None,
        (4, 1024): 256,
        (3, 1024): None,
        (512, 4096): 512,  # as near as 4096 lines, and before it
        (1025, 1024): 1024,
    }.items():
        choice = found.find(Question("softmax_kernel", "rows", 4, length, lines))
        assert choice == (None if wanted is None else {"tile": wanted}), (lines, length)
    assert found.find(Question("softmax_kernel", "rows", 2, 1024, 64)) is None
    assert found.find(Question("softmax_kernel", "columns", 4, 1024, 64)) is None


def test_the_rule_for_machines() -> None:
    h200 = Machine("cuda", "NVIDIA H200", "9.0", 132)
    near = {
        "H100 PCIe": Machine("cuda", "NVIDIA H100 PCIe", "9.0", 114),
        "half": Machine("cuda", "NVIDIA H200 MIG", "9.0", 60),
        "9.1": Machine("cuda", "another", "9.1", 132),
    }
    order = sorted(near, key=lambda name: h200.distance(near[name]))
    assert order == ["H100 PCIe", "half", "9.1"]
    for far in (
        Machine("cuda", "NVIDIA A100", "8.0", 108),
        Machine("cpu", "znver4", "512", 2),
        Machine("cuda", "none", "9.0", 0),
    ):
        assert h200.distance(far) == float("inf")
    assert Machine("cpu", "a", "256", 8).distance(Machine("cpu", "b", "512", 8)) == float("inf")


def test_a_table_of_another_machine_has_no_effect(tmp_path: Path) -> None:
    before = softmax_choice(64, 1024)
    file = tmp_path / "table.json"
    file.write_text(table(Machine("cpu", "x", "64", 2), entry(1024, 64, tile=8)).text())
    tuning.load(str(file))
    assert softmax_choice(64, 1024) == before


@pytest.mark.parametrize(
    "change",
    [
        {"format": "tessera-tuned"},
        {"version": 2},
        {"machine": {"kind": "cpu"}},
        {"machine": {"kind": "cpu", "name": "a", "family": 512, "units": 2}},
        {"entries": [{"kernel": "softmax_kernel"}]},
        {"entries": 3},
        {"choice": {"tile": 3}},
        {"choice": {"tile": 1 << 20}},
        {"choice": {"warps": 64}},
        {"choice": {"colour": 4}},
        {"choice": {"tile": True}},
        {"length": "1024"},
        {"gain": "much"},
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict) -> None:
    whole = json.loads(table(tuning.machine_of(), entry(1024, 64, tile=256)).text())
    for key, value in change.items():
        (whole if key in whole else whole["entries"][0])[key] = value
    file = tmp_path / "table.json"
    file.write_text(json.dumps(whole))
    with pytest.raises(tessera.LaunchError, match="no table of tuned operators") as caught:
        tuning.load(str(file))
    assert caught.value.id == "E059"
    file.write_text("{")
    with pytest.raises(tessera.LaunchError):
        tuning.load(str(file))


def test_the_tables_of_the_package() -> None:
    files = list((Path(tuning.__file__).parent / "tuned").glob("*.json"))
    assert sum(file.stat().st_size for file in files) <= MAX_BYTES
    for file in files:
        found = tuning.parse(file.read_text())
        questions = [each.question for each in found.entries]
        assert questions and len(set(questions)) == len(questions), file
        assert found.machine.units > 0 and {"date", "build", "seconds"} <= set(found.made)


def test_the_tuner(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = tuner.Settings("cpu", [(64, 32)], ["float32"], ["argmax 1", "softmax 0"], threads=2)
    made = tuner.tune(settings, lines.append)
    kernels = [(each.question.kernel, each.question.layout) for each in made.entries]
    assert ("extremum_place_kernel", "rows") in kernels and ("softmax_kernel", "columns") in kernels
    assert len(lines) == len(kernels) == len(set(kernels))
    assert made.machine == tuning.machine_of() and all(each.gain > 0 for each in made.entries)
    assert tuning.parse(made.text()).entries == made.entries
    assert kernels[0][0] in tuner.summary(made)
    late = tuner.tune(settings._replace(seconds=-1.0))
    assert late.entries == []


def test_the_calls_that_are_tuned() -> None:
    """Each one runs: the tuner calls parts of operators, whose settings may change."""
    for work in tuner.works((8, 4), "float32", "cpu"):
        work.call()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from tessera.__main__ import main

    file = tmp_path / "table.json"
    options = ["--shapes", "32x32", "--dtypes", "float32", "--only", "argmax 1", "--threads", "1"]
    assert main(["tune", "ops", "--output", str(file), *options]) == 0
    assert [each.question.lines for each in tuning.load(str(file)).entries] == [32]
    assert "1 entries in" in capsys.readouterr().err
    wrong = [
        ("--dtypes", "int32"),
        ("--threads", "0"),
        ("--only", "softmaxes"),
        ("--output", f"{file}/x"),
    ]
    if not torch.cuda.is_available():
        wrong.append(("--device", "cuda"))
    for option in wrong:
        with pytest.raises(tessera.LaunchError, match=f"{option[0]} got|finds no GPU"):
            main(["tune", "ops", *option])


def test_shapes_of_the_command() -> None:
    assert tuner.parse_shapes(["4096x1024", "1x1"]) == [(4096, 1024), (1, 1)]
    for wrong in ("4096", "0x4", "axb", "1x2x3"):
        with pytest.raises(tessera.LaunchError, match="--shapes got"):
            tuner.parse_shapes([wrong])


def test_calls_of_a_known_kind_follow_the_number_of_threads() -> None:
    x = np.random.default_rng(0).standard_normal((21, 90), np.float32)

    def expect_question(threads: int) -> None:
        """The next call asks the tables, for a machine with so many; known calls do not ask."""
        tuning._tables.answers.clear()
        ops.softmax(x)
        assert {key[-1] for key in tuning._tables.answers} == {threads}
        for _ in range(4):
            ops.softmax(x)
        tuning._tables.answers.clear()
        ops.softmax(x)
        assert not tuning._tables.answers

    for _ in range(4):
        ops.softmax(x)
    before = settings.num_threads
    with settings.override(num_threads=before + 2):
        expect_question(before + 2)
        with settings.override(debug=settings.debug):  # which changes nothing of it
            tuning._tables.answers.clear()
            ops.softmax(x)
            assert not tuning._tables.answers
    expect_question(before)


def test_calls_of_a_known_kind_follow_the_tables(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((21, 90), np.float32)
    asked: list[Question] = []

    def watch(question: Question, default: Choice, names: object) -> Choice:
        asked.append(question)
        return default

    for _ in range(4):
        ops.softmax(x)
    with tuning.watched(watch):
        for turn in range(5):
            ops.softmax(x)
            assert len(asked) == turn + 1
    file = tmp_path / "table.json"
    file.write_text(table(tuning.machine_of(), entry(90, 21, tile=32, lanes=1)).text())
    for change in (lambda: tuning.load(str(file)), tuning.unload):
        for _ in range(4):
            ops.softmax(x)
        change()
        assert not tuning._tables.answers
        ops.softmax(x)
        assert tuning._tables.answers  # the call asked again
