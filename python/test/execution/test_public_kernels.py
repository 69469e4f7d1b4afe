# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sets of public_kernels.py: that their lists are complete, that a sample is right, and that no row
of a held-out set is shown unless it is asked for."""

from __future__ import annotations

import ast
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
SETS = ("unseen", "held_out", "fresh", "strange", "foreign")
PARTS = ("matmul", "row", "sequence", "element")

# Some of each set. Rows of the last one are summarised as if it were held out.
SAMPLE = {
    "unseen": ("pack_int4", "topk_gate", "token_backward"),
    "held_out": ("flat_countdown", "chunk_solve", "edge_softmax"),
    "fresh": ("flat_last_flag", "layer_norm_welford", "chunk_delta_states"),
    "strange": ("persist_dynamic", "race_sample", "scan_gates", "decode_merge_masked", "relu_bits"),
    "foreign": (
        "splitk_last",
        "pack_kv_nibbles",
        "token_delta_normed",
        "lightning_chunks",
        "bag_max",
    ),
}

# The benchmarks have modules with names that tests have, too: they are loaded in a process of their own.
SCRIPT = """
import contextlib, io, json, sys
import torch
import public_kernels
on_gpu = public_kernels.Maker("cpu")
on_gpu.is_small = False
torch.manual_seed(0)
samples = json.loads(sys.argv[1])
sizes, wrong, shown = {}, [], {}
for chosen, names in samples.items():
    case_set = public_kernels.SETS[chosen]
    sizes[chosen] = {
        name: len(list(cases(on_gpu))) for name, cases in case_set.kernels().items()
    }
    sample = public_kernels.select(public_kernels.Maker("cpu"), ",".join(names), chosen)
    assert len(sample) == len(names)
    kernels = public_kernels.load(public_kernels.tessera, chosen)
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
for has_names in (False, True):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        figures = public_kernels.summarize(sample, has_names)
    shown[has_names] = out.getvalue() + json.dumps(figures)
print(json.dumps([sizes, wrong, shown[False], shown[True]]))
"""


def functions(chosen: str, kind: str, decorator: str) -> Iterator[ast.FunctionDef]:
    """The functions with a decorator in a set's files of kernels, or of cases; none that kernels call."""
    for part in PARTS:
        file = BENCHMARKS / f"{chosen}_{part}_{kind}.py"
        for node in ast.parse(file.read_text()).body:
            if (
                isinstance(node, ast.FunctionDef)
                and not node.name.startswith("_")
                and any(
                    ast.unparse(item).split("(")[0] == decorator for item in node.decorator_list
                )
            ):
                yield node


@pytest.mark.parametrize("chosen", SETS)
def test_a_set_is_complete(chosen: str):
    kernels = list(functions(chosen, "kernels", "jit"))
    cases = [function.name for function in functions(chosen, "cases", "cases")]
    assert [kernel.name for kernel in kernels] == cases
    assert len(set(cases)) == 60
    for kernel in kernels:
        assert kernel.end_lineno is not None and kernel.end_lineno - kernel.lineno < 60
        assert ast.get_docstring(kernel)


def test_the_sets_have_no_kernel_in_common():
    bodies = {}
    for chosen in SETS:
        for kernel in functions(chosen, "kernels", "jit"):
            text = ast.unparse(kernel.body[1:])
            assert kernel.name not in bodies and text not in bodies.values(), kernel.name
            bodies[kernel.name] = text


def test_a_sample_is_right_and_rows_stay_hidden():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(SAMPLE)],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    sizes, wrong, hidden, named = json.loads(done.stdout.splitlines()[-1])
    for chosen in SETS:
        assert len(sizes[chosen]) == 60 and set(sizes[chosen].values()) == {2}
    assert wrong == ["topk_gate"], "a wrong result was not noticed"
    assert all(name in named for name in SAMPLE["foreign"])
    assert not any(name in hidden for name in sizes["foreign"])
    assert "1 of 5 cases failed" in hidden and "worst 0.20" in hidden
