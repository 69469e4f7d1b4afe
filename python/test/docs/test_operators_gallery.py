# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gallery of operators: pictures show what programs do, and each operator is shown whole.

The site's check makes all pages. Here are a few operators, since a picture takes a second.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import tessera
import tessera.language as tl
from docs.pages import ROOT
from tessera import ops

sys.path[:0] = [str(ROOT / "tools/site"), str(ROOT / "tools/dev")]

import operators  # noqa: E402
import traces  # noqa: E402


@tessera.jit
def add_next(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(out_ptr + i, x + y, mask=i < n)


@pytest.fixture(scope="module")
def launch():
    """A launch of 4 programs on 32 elements, so that a cell of the picture is 4 elements."""
    x, out = np.random.default_rng(0).random((2, 32), dtype=np.float32)
    (found,) = traces.launches_of(lambda: add_next[(4,)](x, out, 32, BLOCK=8))
    return found


def test_a_launch_has_its_arguments_and_outputs(launch):
    assert launch.grid == (4, 1, 1) and launch.outputs == {"out_ptr"} and launch.size == 64
    assert launch.kernel is add_next


def test_a_program_stores_its_tile(launch):
    stored = traces.stored_by(launch, 1)
    assert not stored[0][0].any() and np.flatnonzero(stored[1][0]).tolist() == list(range(8, 16))


def test_its_elements_depend_on_the_next_tile(launch):
    stored = traces.stored_by(launch, 1)
    assert traces.read_by(launch, 1, stored, 0) == {2, 3, 4}


def test_arrays_with_strides_keep_them():
    x = np.arange(24.0).reshape(4, 6)[:, ::2]
    copied = traces.copied(x)
    assert copied.strides == x.strides and np.array_equal(copied, x)
    assert not np.shares_memory(copied, x)


def test_cells_are_few():
    for shape in ((), (0,), (3,), (1000,), (6, 400), (2, 3, 50)):
        found = traces.cells(shape)
        assert found.shape == shape
        assert (found // traces.COLUMNS < traces.ROWS).all()


@pytest.mark.parametrize("name", ["silu", "softmax", "embedding"])
def test_an_operator_is_shown_whole(name):
    operator = getattr(ops, name)
    family = next(title for title, members in ops.FAMILIES.items() if operator in members)
    launches = operators.traced(operator, operators._samples(), family)
    svg, caption = operators._picture(launches, {})
    root = ElementTree.fromstring(svg)
    kinds = {path.attrib["class"] for path in root.iter("path")}
    assert {"hot", "warm", "cold"} <= kinds and "Program 1 of " in caption
    kernels = list(operators.kernels(launches))
    entry = operators.Entry(name, operator.__doc__, operators.code(operator), kernels, svg, caption)
    text = "\n".join(operators.section(entry, {}))
    assert f"## `{name}`" in text and f"def {name}(" in text and "import numpy as np" in text
    assert '"""' not in entry.code
    again = "\n".join(operators.section(entry, {kernel: "other" for kernel, _, _ in kernels}))
    for kernel, file, source in kernels:
        assert f"`{kernel}` is that of [`other`](#other)" in again and source not in again
        assert f"def {kernel}(" in source and (ROOT / file).is_file()
    assert bool(kernels) == (name != "silu")


def test_samples_are_of_operators_that_there_are():
    names = {operator.__name__ for members in ops.FAMILIES.values() for operator in members}
    assert set(operators._samples()) <= names | set(ops.FAMILIES)


def test_each_operator_was_measured():
    """A chart of its speed stands on its page. A new operator needs a row in a benchmark, and a run of it."""
    names = [operator.__name__ for members in ops.FAMILIES.values() for operator in members]
    assert not [name for name in names if not list(operators.speed(name))]


def test_an_operator_without_a_sample_is_drawn_from_its_example():
    launch, *_ = operators.traced(ops.sgd_step, {}, "Optimisers")
    assert launch.outputs


def test_a_sample_that_does_not_suit_is_left_out():
    x = np.zeros((3, 4), np.float32)
    (launch,) = operators.traced(ops.relu, {"Activations": (x, x, x)}, "Activations")
    assert launch.values[0].shape == (2,)  # of the example


def test_figures_of_the_benchmark_become_a_chart(tmp_path, monkeypatch):
    row = {"family": "softmax", "name": "softmax dim 0", "pass": "forward", "rows": 64, "columns": 256,
           "dtype": "float32", "tessera": 10.0, "torch": 25.0}  # fmt: skip
    folder = tmp_path / "docs/benchmarks"
    folder.mkdir(parents=True)
    machine = {"torch": "2.13", "date": "2026-11-29T12:00"}
    content = {"machine": "A CPU", "environment": machine, "rows": [row]}
    (folder / "ops_cpu.json").write_text(json.dumps(content))
    monkeypatch.setattr(operators, "ROOT", tmp_path)
    chart, note = operators.speed("softmax")
    assert "softmax dim 0, forward, 64 × 256" in chart and ">2.50<" in chart
    assert "A CPU, torch 2.13, 2026-11-29" in note and "docs/benchmarks/ops_cpu.json" in note
    assert list(operators.speed("log_softmax")) == []
