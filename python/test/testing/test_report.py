# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""perf_report: what is measured, printed, plotted and saved."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tessera.testing import Benchmark, Table, perf_report


def benchmark(**more: Any) -> Benchmark:
    given = dict(
        x_names=["n", "m"],
        x_vals=[1, (2, 3)],
        line_arg="provider",
        line_vals=["ours", "theirs"],
        line_names=["Ours", "Theirs"],
        plot_name="speed",
        args={"extra": 100},
        ylabel="GB/s",
    )
    return Benchmark(**{**given, **more})


def measured(n: int, m: int, provider: str, extra: int, more: int = 0) -> Any:
    value = n + 10.0 * m + extra + more
    return value if provider == "ours" else (2 * value, value, 3 * value)


@pytest.fixture(params=["with", "without"])
def pandas(request, monkeypatch):
    """With pandas, if there is one, and without."""
    if request.param == "with":
        return pytest.importorskip("pandas")
    for name in ("pandas", "matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    return None


def test_the_table(pandas, capsys):
    table = perf_report(benchmark())(measured).run(print_data=True, return_df=True)
    assert list(table.columns) == ["n", "m", "Ours (GB/s)", "Theirs (GB/s)"]
    assert list(table["m"]) == [1, 3]
    assert list(table["Ours (GB/s)"]) == [111.0, 132.0]
    assert list(table["Theirs (GB/s)"]) == [222.0, 264.0]
    text = capsys.readouterr().out
    assert text.startswith("speed:\n") and "Theirs (GB/s)" in text and len(text.splitlines()) == 4


def test_several_and_more_arguments(pandas):
    report = perf_report([benchmark(), benchmark(plot_name="again")])(measured)
    tables = report.run(return_df=True, more=1000)
    assert len(tables) == 2 and list(tables[1]["Ours (GB/s)"]) == [1111.0, 1132.0]
    assert report.run() is None


def test_the_difference(pandas):
    table = perf_report(benchmark())(measured).run(return_df=True, diff_col=True)
    assert list(table["Diff"]) == [111.0, 132.0]


def test_files(pandas, tmp_path):
    folder = tmp_path / "new" / "folder"
    report = perf_report(benchmark())(measured)
    if pandas is None:
        with pytest.warns(UserWarning, match="pip install matplotlib"):
            report.run(save_path=str(folder), save_precision=2)
    else:
        report.run(save_path=str(folder), save_precision=2)
    assert (folder / "speed.csv").read_text() == (
        "n,m,Ours (GB/s),Theirs (GB/s)\n1,1,111.00,222.00\n2,3,132.00,264.00\n"
    )
    assert "speed.png" in (folder / "results.html").read_text()


def test_the_plot(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    styles = [("blue", "-"), ("green", "--")]
    for more in ({}, dict(styles=styles, x_log=True, y_log=True, xlabel="size")):
        perf_report(benchmark(**more))(measured).run(save_path=str(tmp_path))
        picture = tmp_path / "speed.png"
        assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5000
        picture.unlink()


def test_what_raises_leaves_what_was_measured(tmp_path):
    def broken(provider: str, **more: Any) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        perf_report(benchmark())(broken).run(save_path=str(tmp_path))
    assert (tmp_path / "results.html").exists()


def test_a_point_of_the_wrong_length():
    with pytest.raises(ValueError, match="not a value for each of n, m"):
        perf_report(benchmark(x_vals=[(1, 2, 3)]))(measured).run()


def test_tables_as_text(tmp_path):
    table = Table(["a", "b, c"], [[1, 0.5], [20, float("nan")]])
    assert table.to_string().splitlines() == ["    a  b, c", "0   1   0.5", "1  20   nan"]
    table.to_csv(str(tmp_path / "t.csv"), 3)
    assert (tmp_path / "t.csv").read_text() == 'a,"b, c"\n1,0.500\n20,nan\n'
    assert len(table) == 2
