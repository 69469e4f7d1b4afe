# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's own table of operators (`op_db`), whose samples tests compare with."""

from __future__ import annotations

import random
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
    import torch
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db

    if not torch.cuda.is_available():
        common_utils.set_rng_seed = seed_without_devices
    return op_db


def seed_without_devices(seed: int) -> None:
    """Before each sample, as torch's own function. That queues a seed, with a trace of the stack, for
    each kind of device that may come later: half the time of reading the table."""
    import numpy
    import torch

    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)
