# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's own table of operators (`op_db`), whose samples tests compare with."""

from __future__ import annotations

import sys
import types
import unittest
from typing import Any


def load_table() -> list[Any]:
    """The table. It imports `expecttest`, of which it needs nothing here."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:
            stub = types.ModuleType("expecttest")
            stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
            stub.assert_expected_inline = None  # type: ignore[attr-defined]
            sys.modules["expecttest"] = stub
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db
