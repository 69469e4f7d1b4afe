# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads a program of the checkout as a module, so that tests can call its functions."""

from __future__ import annotations

import importlib.util
import pathlib
import types

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools" / "dev"


def load(path: pathlib.Path) -> types.ModuleType:
    """A new module of a file, which `import` does not find."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
