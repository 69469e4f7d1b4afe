# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of operators, against those of torch's functions of the same names."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tessera import ops  # noqa: E402

F = torch.nn.functional
OPERATORS = {each.__name__: each for family in ops.FAMILIES.values() for each in family}

NEVER = {"_stacklevel", "inplace", "generator", "size_average"}
"""What torch has deprecated, and what the page says of all operators: no `inplace`, and `seed` in the
place of a generator. Losses have `reduce` beside `size_average`, gumbel_softmax `eps`."""

OWN = {"seed", "z_loss", "chunk_rows", "out"}
"""Our additions, which are passed by name."""


def overloads(name: str) -> list[list[str]]:
    """The parameters of torch's functions of a name, those by place first; empty if there is none."""
    if name == "unique":
        return [["input", "sorted", "return_inverse", "return_counts", "dim"]]
    function = getattr(F, name, None)
    if function is not None:
        try:
            return [list(inspect.signature(function).parameters)]
        except ValueError:  # one of C++, of which the schema is known
            pass
    is_linalg = name == "vector_norm"
    native = {"logsigmoid": "log_sigmoid", "vector_norm": "linalg_vector_norm"}.get(name, name)
    found = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{native}"):
        arguments = schema.arguments
        # Other overloads are of names of dimensions, outputs, and lists of Python.
        if "out" in schema.overload_name or any(each.is_out for each in arguments):
            continue
        if not schema.returns:
            continue
        if "Dimname" not in str(schema) and str(arguments[0].type) in ("Tensor", "List[Tensor]"):
            ordered = sorted(arguments, key=lambda each: each.kwarg_only)
            first = {"vector_norm": "x", "one_hot": "tensor"}.get(name, "input")
            found.append([first if each.name == "self" else each.name for each in ordered])
    assert not is_linalg or found
    return found


def of_ours(name: str) -> list[inspect.Parameter]:
    function = getattr(OPERATORS[name], "function", OPERATORS[name])
    return list(inspect.signature(getattr(function, "fn", function)).parameters.values())


# linear_cross_entropy is of newer releases, and sddmm and spmm are torch.sparse's, of sparse tensors.
OF_TORCH = [name for name in OPERATORS if name not in ("spmm", "sddmm") and overloads(name)]


def test_most_are_of_torch() -> None:
    assert len(OF_TORCH) > 95
    others = set(OPERATORS) - set(OF_TORCH)
    assert not {name for name in others if hasattr(F, name) and name != "linear_cross_entropy"}


@pytest.mark.parametrize("name", OF_TORCH)
def test_parameters(name: str) -> None:
    never = NEVER | ({"reduce"} if "size_average" in overloads(name)[0] else set())
    never |= {"eps"} if name == "gumbel_softmax" else set()
    lists = [[each for each in one if each not in never] for one in overloads(name)]
    ours = [each for each in of_ours(name) if each.name not in OWN]
    # By place, a call means the same as with one of torch's overloads.
    by_place = [each.name for each in ours if each.kind is not each.KEYWORD_ONLY]
    assert any(by_place == one[: len(by_place)] for one in lists) or any(
        by_place[: len(one)] == one and set(by_place) <= {each for one in lists for each in one}
        for one in lists
    )
    # By name, too, and what there is not stands in the docstring.
    theirs = {each for one in lists for each in one}
    assert {each.name for each in ours} <= theirs
    text = " ".join((OPERATORS[name].__doc__ or "").split())
    missing = re.search(r"Missing: (.*?)(?:Example:|$)", text)
    named = set(re.findall(r"`(\w+)", missing.group(1) if missing else ""))
    assert theirs - {each.name for each in ours} <= named
    for each in of_ours(name):
        assert each.name not in OWN or each.kind is each.KEYWORD_ONLY


def test_arguments_in_any_order() -> None:
    """By name, in any order, also of calls that are known and run without Python."""
    x, target = torch.randn(4, 6), torch.tensor([1, 2, 3, 0])
    calls: Any = (
        (ops.sum, torch.sum, {"keepdim": True, "dim": 1, "input": x}),
        (ops.relu, F.relu, {"input": x}),
        (ops.topk, torch.topk, {"largest": False, "k": 2, "input": x}),
        (ops.cross_entropy, F.cross_entropy, {"reduction": "sum", "target": target, "input": x}),
        (ops.leaky_relu, F.leaky_relu, {"negative_slope": 0.1, "input": x}),
        (ops.addcmul, torch.addcmul, {"value": 2, "tensor2": x, "tensor1": x, "input": x}),
        (ops.clamp, torch.clamp, {"max": 0.5, "input": x}),
        (ops.var, torch.var, {"unbiased": False, "dim": 1, "keepdim": True, "input": x}),
        (ops.where, torch.where, {"other": x, "input": -x, "condition": x > 0}),
    )
    for ours, theirs, named in calls:
        expected = theirs(**named)
        for _ in range(3):
            found = ours(**named)
            torch.testing.assert_close(tuple(found) if isinstance(found, tuple) else found,
                                       tuple(expected) if isinstance(found, tuple) else expected)  # fmt: skip
