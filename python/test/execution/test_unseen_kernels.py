# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The held-out set of `public_kernels.py --set unseen`: that its list is complete, that a sample is
right, and that no row is shown unless it is asked for."""

from __future__ import annotations

import ast
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
PARTS = ("matmul", "row", "sequence", "element")

# One of each file of kernels and more that are unlike these.
SAMPLE = (
    "persist_while",
    "pack_int4",
    "topk_gate",
    "token_backward",
    "decode_merge_vector",
    "rope_pairs",
)

# The benchmarks have modules with names that tests have, too: they are loaded in a process of their own.
SCRIPT = """
import contextlib, io, json, sys
import torch
import public_kernels, unseen_kernels_cases
unseen_kernels_cases.families()
on_gpu = public_kernels.Maker("cpu")
on_gpu.is_small = False
sizes = {name: len(list(cases(on_gpu))) for name, cases in unseen_kernels_cases.KERNELS.items()}

torch.manual_seed(0)
names = sys.argv[1].split(",")
sample = public_kernels.select(public_kernels.Maker("cpu"), ",".join(names), "unseen")
kernels, wrong = public_kernels.load(public_kernels.tessera, "unseen"), []
for case in sample:
    public_kernels.check(case, kernels)  # raises if a result is wrong
    if case.name.startswith("topk_gate"):
        launch = case.launch
        case.launch = lambda own, s: (launch(own, s), s["weights"].mul_(1.1))
        try:
            public_kernels.check(case, kernels)
        except AssertionError:
            wrong.append(case.name.split()[0])

for factor, case in enumerate(sample, 1):
    case.results = {"tessera": {"us": 100.0 * factor}, "triton": {"us": 100.0}}
sample[1].results["triton"] = {"error": "a name of the kernel"}
shown = {}
for has_names in (False, True):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        figures = public_kernels.summarize(sample, has_names)
    shown[has_names] = out.getvalue() + json.dumps(figures)
print(json.dumps([sizes, len(sample), wrong, shown[False], shown[True]]))
"""


def functions(kind: str, decorator: str) -> Iterator[ast.FunctionDef]:
    """The functions with a decorator in the files of kernels, or of cases."""
    for part in PARTS:
        file = BENCHMARKS / f"unseen_{part}_{kind}.py"
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(item).split("(")[0] == decorator for item in node.decorator_list
            ):
                yield node


def test_the_set_is_complete():
    kernels = list(functions("kernels", "jit"))
    cases = [function.name for function in functions("cases", "cases")]
    assert [kernel.name for kernel in kernels] == cases
    assert len(set(cases)) == 60
    for kernel in kernels:
        assert kernel.end_lineno is not None and kernel.end_lineno - kernel.lineno < 60
        assert ast.get_docstring(kernel)


def test_a_sample_is_right_and_rows_stay_hidden():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, ",".join(SAMPLE)],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    sizes, count, wrong, hidden, named = json.loads(done.stdout.splitlines()[-1])
    assert len(sizes) == 60 and set(sizes.values()) == {2}
    assert count == len(SAMPLE)
    assert wrong == ["topk_gate"], "a wrong result was not noticed"
    assert all(name in named for name in SAMPLE)
    assert not any(name in hidden for name in sizes)
    assert "1 of 6 cases failed" in hidden and "worst 0.17" in hidden
