# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is compared with libraries is what anybody would write: short, of pointers and masks."""

from __future__ import annotations

import ast
import pathlib

import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "benchmarks" / "gpu_matmul_kernels.py"
PLAIN = {
    "program_id", "cdiv", "arange", "zeros", "full", "load", "store", "dot", "trans", "interleave",
    "max", "maximum", "sum", "where", "math", "exp2", "erf", "to", "dtype", "element_ty",
    "constexpr", "float32", "bfloat16", "int8", "int64",
}  # fmt: skip
# Everything else that an attribute of `tl` may be is a hint, a descriptor, or a loop's own options.


def functions() -> dict[str, ast.FunctionDef]:
    tree = ast.parse(SOURCE.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_plain_matmul_has_less_than_25_lines():
    function = functions()["matmul"]
    first = min(decorator.lineno for decorator in function.decorator_list)
    assert function.end_lineno is not None and function.end_lineno - first + 1 < 25


@pytest.mark.parametrize("name", functions())
def test_kernels_have_no_descriptors_and_no_hints(name):
    used = {node.attr for node in ast.walk(functions()[name]) if isinstance(node, ast.Attribute)}
    assert used <= PLAIN
    for call in ast.walk(functions()[name]):
        if isinstance(call, ast.Call):
            given = {keyword.arg for keyword in call.keywords}
            assert given <= {"mask", "other", "dtype", "out_dtype"}
