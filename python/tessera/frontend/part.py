# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts that a walk over a function is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tessera.frontend.walker import FunctionWalker


class Part:
    """A visitor of some kinds of syntax for a walker (walker.py).

    The walker has what all parts share, such as the scope, and the other parts by their names:
    `self.walker.calls.call(...)`.
    """

    def __init__(self, walker: FunctionWalker) -> None:
        self.walker = walker
        self.session = walker.session
