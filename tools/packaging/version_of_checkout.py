# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives scikit-build-core the version of the package (pyproject.toml).

It is `tessera.__version__` of a checkout, or the version of the source distribution.
"""

from __future__ import annotations

import importlib.util
import pathlib
import re
from typing import Any, Mapping

ROOT = pathlib.Path(__file__).resolve().parents[2]


def version() -> str:
    info = ROOT / "PKG-INFO"
    if info.exists():
        match = re.search(r"^Version: (.+)$", info.read_text(encoding="utf-8"), re.M)
        if match:
            return match[1]
    # By its path: the package itself cannot be imported before it is built.
    spec = importlib.util.spec_from_file_location(
        "version_of_tessera", ROOT / "python" / "tessera" / "version.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.version_of_git(str(ROOT)))


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """The hook that scikit-build-core calls for the fields that pyproject.toml does not say."""
    return {"version": version()}
