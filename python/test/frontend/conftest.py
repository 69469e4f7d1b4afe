# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fixtures of the language's tests."""

from language.conftest import build

__all__ = ["build"]
