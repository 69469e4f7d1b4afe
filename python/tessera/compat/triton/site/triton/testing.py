# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timing and comparing, by Triton's names."""

from tessera.testing import *  # noqa: F401,F403
