# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that Inductor runs for operators of ours.

The first runs before autograd, and joins chains (chains.py). The second does nothing: Inductor has its
`uuid` among the keys of its caches, in all versions. So code with calls by names of ours
(generated_calls.py) is not loaded by a version of Tessera that has others.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any, Callable, Sequence

from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

from tessera.torch import generated_calls

steps: list[Callable[[Any], Any]] = []
"""What is done with each graph before autograd."""

_FILES = ("chains.py", "elementwise.py", "functions.py", "generated_calls.py", "recipes.py")
"""These choose what is generated, and run it."""


class KeyPass(CustomGraphPass):  # type: ignore[misc]
    """The second pass, behind those that a user has set."""

    def __init__(self, others: Sequence[CustomGraphPass]) -> None:
        self.others = tuple(others)

    def __call__(self, graph: Any) -> None:
        for each in self.others:
            each(graph)

    def uuid(self) -> Any:
        """A part of the keys of caches."""
        files = tuple(str(pathlib.Path(__file__).with_name(name)) for name in _FILES)
        return (*(each.uuid() for each in self.others), get_hash_for_files(files))


class GraphPass(KeyPass):
    """The first pass, behind those that a user has set."""

    def __call__(self, graph: Any) -> None:
        generated_calls.install(_is_keyed)
        super().__call__(graph)
        for step in steps:
            step(graph)


_PASSES = {"pre_grad_custom_pass": GraphPass, "post_grad_custom_post_pass": KeyPass}
"""The passes by the entries of Inductor's configuration."""


def install() -> None:
    """Has Inductor run the passes, if it is loaded and no other pass is in the way: one without a uuid
    turns caches off, so it stays alone."""
    config: Any = sys.modules.get("torch._inductor.config")
    if config is None:
        return
    for entry, kind in _PASSES.items():
        given = _passes_of(config, entry)
        if all(isinstance(each, CustomGraphPass) for each in given):
            if not any(type(each) is kind for each in given):
                setattr(config, entry, kind(given))
    generated_calls.install(_is_keyed)


def _passes_of(config: Any, entry: str) -> list[Any]:
    passes = getattr(config, entry)
    several = passes if isinstance(passes, (list, tuple)) else [passes]
    return [each for each in several if each is not None]


def _is_keyed() -> bool:
    config = sys.modules["torch._inductor.config"]
    passes = _passes_of(config, "post_grad_custom_post_pass")
    return any(type(each) is KeyPass for each in passes)
