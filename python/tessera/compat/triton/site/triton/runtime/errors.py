# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors that launches raise, by Triton's names."""

from tessera.errors import AutotunerError, InterpreterError, OutOfResources, PTXASError

__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]
