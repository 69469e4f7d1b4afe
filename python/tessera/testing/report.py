# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and plots of what a function measures: `@perf_report(Benchmark(...))`.

pandas and matplotlib are used if they are there, and needed for nothing but a DataFrame and a
picture.
"""

from __future__ import annotations

import html
import os
import warnings
from importlib import import_module
from typing import Any, Callable, Mapping, Optional, Sequence, Union


class Benchmark:
    """A benchmark to measure: a line for each of `line_vals`, and a point of it for each of
    `x_vals`.

    The function gets `line_arg` and `x_names` by name, and `args`. An item of `x_vals` is a value
    for all of `x_names`, or a tuple of one for each.

    Example:
        import tessera.testing

        benchmark = tessera.testing.Benchmark(
            x_names=["n"], x_vals=[2**10, 2**12], line_arg="library", line_vals=["numpy", "list"],
            line_names=["NumPy", "lists"], plot_name="sums", args={"repeats": 3},
        )
        assert benchmark.x_names == ["n"] and benchmark.args == {"repeats": 3}
    """

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: Mapping[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Optional[Sequence[tuple[str, str]]] = None,
    ) -> None:
        self.x_names = list(x_names)
        self.x_vals = list(x_vals)
        self.x_log = x_log
        self.line_arg = line_arg
        self.line_vals = list(line_vals)
        self.line_names = list(line_names)
        self.y_log = y_log
        self.styles = styles
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.plot_name = plot_name
        self.args = dict(args)


class Table:
    """Columns of values, where pandas is not installed.

    Example:
        import tessera.testing

        table = tessera.testing.Table(["n", "ms"], [[1024, 0.5], [2048, 1.0]])
        assert list(table["ms"]) == [0.5, 1.0]
        assert "2048" in str(table)
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.columns = list(columns)
        self.rows = [list(row) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        at = self.columns.index(column)
        return [row[at] for row in self.rows]

    def to_string(self) -> str:
        """The table as text, a line a row."""
        numbers = [str(index) for index in range(len(self.rows))]
        cells = [["", *self.columns]]
        for number, row in zip(numbers, self.rows):
            cells.append([number, *map(_shown, row)])
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in cells)
        return "\n".join(lines)

    def to_csv(self, path: str, precision: int = 6) -> None:
        """Writes the table to a file, a line a row."""
        import csv

        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            for row in self.rows:
                writer.writerow([_with_precision(value, precision) for value in row])

    def __repr__(self) -> str:
        return self.to_string()


class Mark:
    """A function and what is to be measured with it; `run` does.

    Example:
        import tessera.testing

        sizes = tessera.testing.Benchmark(["n"], [1, 2, 3], "kind", ["square"], ["n * n"], "squares", {})
        mark = tessera.testing.Mark(lambda n, kind: n * n, sizes)
        table = mark.run(print_data=False, return_df=True)
        assert [float(value) for value in table["n * n"]] == [1, 4, 9]
    """

    def __init__(
        self, fn: Callable[..., Any], benchmarks: Union[Benchmark, Sequence[Benchmark]]
    ) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        diff_col: bool = False,
        save_precision: int = 6,
        **kwargs: Any,
    ) -> Any:
        """Measures everything, shows, prints and saves it.

        In the folder `save_path` there are a .csv and a .png for each benchmark then, and a page
        results.html. With `return_df`, the result is a DataFrame, a Table where there is no pandas,
        or a list of them; `diff_col` adds a column with the difference of two lines. Other keywords
        go to the function.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks: Sequence[Benchmark] = (
            [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else self.benchmarks
        )
        if save_path:
            os.makedirs(save_path, exist_ok=True)
        tables: list[Any] = []
        try:
            for bench in benchmarks:
                table, spreads = self._measure(bench, kwargs)
                if bench.plot_name and (show_plots or save_path):
                    _plot(bench, table, spreads, show_plots, save_path)
                if diff_col and len(bench.line_names) == 2:
                    table = _with_difference(table)
                if print_data:
                    print(f"{bench.plot_name}:")
                    print(_as_frame(table).to_string())
                if save_path:
                    table.to_csv(os.path.join(save_path, f"{bench.plot_name}.csv"), save_precision)
                tables.append(_as_frame(table))
        finally:
            if save_path:
                _write_page(save_path, benchmarks[: len(tables)])
        if not return_df:
            return None
        return tables[0] if single else tables

    def _measure(
        self, bench: Benchmark, kwargs: Mapping[str, Any]
    ) -> tuple[Table, list[list[tuple[Any, Any]]]]:
        """The table, and for each line the least and the greatest value of each point."""
        labels = [f"{name} ({bench.ylabel})" if bench.ylabel else name for name in bench.line_names]
        rows = []
        spreads: list[list[tuple[Any, Any]]] = [[] for _ in bench.line_vals]
        for x in bench.x_vals:
            values = list(x) if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
            if len(values) != len(bench.x_names):
                raise ValueError(f"{x!r} is not a value for each of {', '.join(bench.x_names)}")
            named = dict(zip(bench.x_names, values))
            row = list(values)
            for index, line in enumerate(bench.line_vals):
                found = self.fn(**named, **{bench.line_arg: line}, **bench.args, **kwargs)
                if isinstance(found, (tuple, list)):
                    middle, least, greatest = found
                else:
                    middle, least, greatest = found, None, None
                row.append(middle)
                spreads[index].append((least, greatest))
            rows.append(row)
        return Table([*bench.x_names, *labels], rows), spreads


def perf_report(
    benchmarks: Union[Benchmark, Sequence[Benchmark]],
) -> Callable[[Callable[..., Any]], Mark]:
    """Makes a Mark of a function that measures one point. The function returns a number, or three:
    a number and its lower and upper bound.

    Example:
        import numpy as np
        import tessera.testing

        sizes = tessera.testing.Benchmark(["n"], [100, 1000], "op", ["sum"], ["sum (ms)"], "sums", {})

        @tessera.testing.perf_report(sizes)
        def measure(n, op):
            x = np.ones(n)
            return tessera.testing.do_bench(lambda: getattr(np, op)(x), warmup=1, rep=2)

        table = measure.run(print_data=False, return_df=True)
        assert len(table["sum (ms)"]) == 2
    """
    return lambda fn: Mark(fn, benchmarks)


def _plot(
    bench: Benchmark,
    table: Table,
    spreads: Sequence[Sequence[tuple[Any, Any]]],
    show: bool,
    folder: str,
) -> None:
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError:
        warnings.warn(
            "tessera: there is no matplotlib, so there are no plots: pip install matplotlib",
            stacklevel=4,
        )
        return
    figure, axes = pyplot.subplots()
    x = table[bench.x_names[0]]
    for index, label in enumerate(table.columns[len(bench.x_names) :]):
        color, line = bench.styles[index] if bench.styles else (None, None)
        axes.plot(x, table[label], label=label, color=color, linestyle=line)
        points = [(at, *pair) for at, pair in zip(x, spreads[index]) if None not in pair]
        if points:
            places, least, greatest = zip(*points)
            axes.fill_between(places, least, greatest, alpha=0.15, color=color)
    axes.legend()
    axes.set_xlabel(bench.xlabel or bench.x_names[0])
    axes.set_ylabel(bench.ylabel)
    axes.set_xscale("log" if bench.x_log else "linear")
    axes.set_yscale("log" if bench.y_log else "linear")
    if folder:
        figure.savefig(os.path.join(folder, f"{bench.plot_name}.png"))
    if show:
        pyplot.show()
    pyplot.close(figure)


def _with_difference(table: Table) -> Table:
    rows = [[*row, row[-1] - row[-2]] for row in table.rows]
    return Table([*table.columns, "Diff"], rows)


def _as_frame(table: Table) -> Any:
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        return table
    return pandas.DataFrame(table.rows, columns=table.columns)


def _write_page(folder: str, benchmarks: Sequence[Benchmark]) -> None:
    with open(os.path.join(folder, "results.html"), "w", encoding="utf-8") as page:
        page.write("<html><body>\n")
        for bench in benchmarks:
            page.write(f'<img src="{html.escape(bench.plot_name)}.png"/>\n')
        page.write("</body></html>\n")


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _with_precision(value: Any, precision: int) -> Any:
    return f"{value:.{precision}f}" if isinstance(value, float) else value
