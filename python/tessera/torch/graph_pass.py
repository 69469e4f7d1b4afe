# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass that Inductor runs on graphs before autograd for operators of ours.

Its `uuid` is a part of the keys of Inductor's caches. So only graphs that the pass has seen have chains
that are joined (chains.py), and code with calls by names of ours (generated_calls.py).
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any, Callable, Sequence

from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

from tessera.torch import generated_calls

steps: list[Callable[[Any], Any]] = []
"""What is done with each graph."""

_FILES = ("chains.py", "elementwise.py", "functions.py", "generated_calls.py", "recipes.py")
"""What is generated depends on these, and they run what is in a cache."""


class GraphPass(CustomGraphPass):  # type: ignore[misc]
    """The pass as Inductor calls it, behind those that a user has set."""

    def __init__(self, others: Sequence[CustomGraphPass]) -> None:
        self.others = tuple(others)

    def __call__(self, graph: Any) -> None:
        generated_calls.install(is_installed)
        for each in self.others:
            each(graph)
        for step in steps:
            step(graph)

    def uuid(self) -> Any:
        """A part of the keys of caches."""
        files = tuple(str(pathlib.Path(__file__).with_name(name)) for name in _FILES)
        return (*(each.uuid() for each in self.others), get_hash_for_files(files))


def install() -> None:
    """Has Inductor run the pass, if it is loaded and no other pass is in the way: one without a uuid
    turns caches off, so it stays alone."""
    config: Any = sys.modules.get("torch._inductor.config")
    if config is None:
        return
    passes = config.pre_grad_custom_pass
    given = list(passes) if isinstance(passes, (list, tuple)) else [passes]
    given = [each for each in given if each is not None]
    if all(isinstance(each, CustomGraphPass) for each in given):
        if not is_installed():
            config.pre_grad_custom_pass = GraphPass(given)
        generated_calls.install(is_installed)


def is_installed() -> bool:
    """True if Inductor runs the pass."""
    passes = sys.modules["torch._inductor.config"].pre_grad_custom_pass
    several = passes if isinstance(passes, (list, tuple)) else (passes,)
    return any(isinstance(each, GraphPass) for each in several)
