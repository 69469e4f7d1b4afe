# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of tessera.ops on the simulated GPU: values, and no finding of the simulator."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tessera.gpu  # noqa: E402
from tessera.calls.outputs import make_output  # noqa: E402

from . import (
    cases_histograms,
    cases_indexing,
    cases_losses,
    cases_normalizations,
    cases_padding,
    cases_reductions,
    cases_sparse,
    scheme,
)  # noqa: E402

# With these each kernel runs, forward and backward.
NAMES = """softmax 1|softmax -1|log_softmax 0|cross entropy weight|cross entropy soft|nll images|layer norm|
add rms norm|rotary part|argmax|cumsum 1|logcumsumexp -1|cummax|sort|topk|gather|scatter mean True|
scatter amax False|index_add|embedding|embedding_bag mean|segments max|one_hot|pad replicate (0, 7, 9, 1)|
cat 1|bincount weights|histc|searchsorted lines|unique_consecutive|spmm""".replace(
    "\n", ""
).split(
    "|"
)
CASES = {
    case.name: case
    for module in (
        cases_indexing,
        cases_losses,
        cases_normalizations,
        cases_reductions,
        cases_padding,
        cases_histograms,
        cases_sparse,
    )
    for case in module.CASES
}


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = []

    def launch(kernel: Any, programs: int, inputs: Any, outputs: Any, numbers: Any) -> Any:
        like = next(each for each in inputs if each is not None)
        made = [
            make_output(like, tuple(each.shape), each.dtype, "out") if each else None
            for each in outputs
        ]
        if programs:
            launched.append(kernel)
            tessera.gpu.simulate(kernel)[(programs,)](*inputs, *made, *numbers).check()
        return tuple(made)

    def launch_onto(kernel: Any, programs: int, inputs: Any, started: Any, numbers: Any) -> Any:
        if programs:
            launched.append(kernel)
            tessera.gpu.simulate(kernel)[(programs,)](*inputs, started, *numbers).check()
        return started

    for key, module in list(sys.modules.items()):
        if key.startswith("tessera.ops."):
            for own in (launch, launch_onto):
                if hasattr(module, own.__name__):
                    monkeypatch.setattr(module, own.__name__, own)
    case = CASES[name]
    scheme.check(case, "torch", case.dtypes[0], "dense", list(CASES).index(name))
    assert launched
