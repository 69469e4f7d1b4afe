# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Caches the results of torch's queries of CUDA during code generation. A fork cannot query CUDA,
whose state is its parent's.

So the parent makes the queries before it forks: the current device, the number of devices, and
torch's implementation of each convolution. The implementation depends on types, extents and
strides, which are known before a graph is lowered. It also depends on the order of channels in
memory, so the parent queries both orders. Any other query fails in the fork, and the parent repeats
the task.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

from tessera.torch.outlining import get_value

Answers = Mapping[str, Callable[..., Any]]
"""Functions of torch that need no CUDA any more, by their names there."""

_CONVOLUTION = torch.ops.aten.convolution.default
_CONVOLUTION_BACKWARD = torch.ops.aten.convolution_backward.default
_PARAMETERS = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")


def ask_cuda(graph_modules: Sequence[Any], fake_mode: Any) -> Answers:
    """The results that forks need to lower these graphs; none in a process that has not used CUDA.
    Graphs of a CPU need them, too: Inductor queries the device that it compiles on. Torch itself
    caches the properties of devices."""
    if not torch.cuda.is_initialized():
        return {}
    current, count = torch.cuda.current_device(), torch.cuda.device_count()
    for number in range(count):
        torch.cuda.get_device_properties(number)
    return {
        "cuda._lazy_init": lambda: None,
        "_C._cuda_getDevice": lambda: current,
        "_C._cuda_getDeviceCount": lambda: count,
        "_C._cuda_setDevice": lambda device: None,
        "_C._cuda_exchangeDevice": lambda device: current,
        "_C._cuda_maybeExchangeDevice": lambda device: current,
        "_C._select_conv_backend": select_backends(graph_modules, fake_mode),
    }


def give_answers(answers: Answers) -> None:
    """Has torch take these answers. This is for a fork: there is no way back."""
    for name, answer in answers.items():
        module, _, function = name.rpartition(".")
        setattr(operator.attrgetter(module)(torch), function, answer)


def select_backends(graph_modules: Sequence[Any], fake_mode: Any) -> Callable[..., Any]:
    """torch._C._select_conv_backend, which knows the answers for the convolutions of these graphs."""
    select = torch._C._select_conv_backend
    chosen: dict[Hashable, Any] = {}
    # The context in which a fake tensor has the device that it stands for.
    with fake_mode:
        for graph_module in graph_modules:
            for node in graph_module.graph.nodes:
                for question in _find_questions(node):
                    key = _describe(question)
                    if key not in chosen:
                        chosen[key] = select(**question)

    def select_known(input: Any, weight: Any, **others: Any) -> Any:
        question = {"input": input, "weight": weight, **others}
        backend = chosen.get(_describe(question))
        return select(**question) if backend is None else backend

    return select_known


def _find_questions(node: Any) -> Iterator[dict[str, Any]]:
    """The arguments of torch's question about a convolution, for the graph's layout and for the one
    that Inductor may choose. The bias does not matter on a GPU."""
    if node.target == _CONVOLUTION:
        input, weight, _, *others = node.args
    elif node.target == _CONVOLUTION_BACKWARD:
        _, input, weight, _, *others = node.args
    else:
        return
    question = {"bias": None, **dict(zip(_PARAMETERS, others, strict=False))}
    operands = [_lay_out(get_value(operand)) for operand in (input, weight)]
    for question["input"], question["weight"] in itertools.product(*operands):
        yield dict(question)


def _lay_out(value: Any) -> tuple[Any, Any]:
    """A tensor like this one with the strides that matter: dense, and with channels last."""
    extents = [*value.shape[:1], *value.shape[2:], value.shape[1]]
    return value.new_empty(value.shape), value.new_empty(extents).movedim(-1, 1)


def _describe(question: Mapping[str, Any]) -> Hashable:
    """The key of an answer."""
    return (
        *_describe_tensor(question["input"]),
        *_describe_tensor(question["weight"]),
        *(tuple(x) if isinstance(x, Sequence) else x for x in map(question.get, _PARAMETERS)),
    )


def _describe_tensor(value: Any) -> tuple[Hashable, ...]:
    image = value.unsqueeze(2) if value.dim() == 3 else value  # as torch has a line
    return value.device, value.dtype, tuple(value.shape), suggest_memory_format(image)
