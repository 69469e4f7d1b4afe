# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An example for each id that has one: a kernel with the mistake, and what Tessera says.

The kernels are those of python/test/frontend/test_errors.py, which holds the messages to
their places; the messages are made anew with each site.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys
import tempfile
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import markdown

ROOT = markdown.ROOT


def examples() -> dict[str, str]:
    """By id, a kernel and its message as Markdown."""
    cases = load(ROOT / "python/test/frontend/test_errors.py", "frontend_cases")
    first: dict[str, Any] = {}
    for case in cases.CASES:
        first.setdefault(case.id, case)
    with tempfile.TemporaryDirectory() as folder:
        return {id: example(cases, case, pathlib.Path(folder)) for id, case in first.items()}


def example(cases: ModuleType, case: Any, folder: pathlib.Path) -> str:
    """One kernel, without the imports that all have, and the message about it."""
    from tessera.errors import CompilationError
    from tessera.frontend import ConstSpec, build_module

    source = case.source.replace("@@", "").strip("\n") + "\n"
    (folder / case.id).mkdir()
    header, path = folder / case.id / "header.py", folder / case.id / "kernel.py"
    header.write_text(cases.HEADER)
    path.write_text(source)
    try:
        names = vars(load(header, f"header_{case.id}"))
        kernel = load(path, f"example_{case.id}", names).kernel
        arguments = [
            cases.DEFAULTS.get(one.name) or ConstSpec(one.default) for one in kernel.params
        ]
        build_module(kernel, arguments, cases.Options)
    except CompilationError as error:
        message = str(error).replace(f"{path.parent}/", "")
        return "\n\n".join(
            ["For example:", markdown.fenced(source, "python"), markdown.fenced(message, "text")]
        )
    raise SystemExit(f"the case {case.name!r} of {case.id} is no mistake")


def load(path: pathlib.Path, name: str, names: Mapping[str, Any] = {}) -> ModuleType:
    """A module from a file, in which `names` are known already."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update({key: names[key] for key in names if not key.startswith("__")})
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
