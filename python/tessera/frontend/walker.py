# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The walk over one function: a kernel, or a call of a @jit function inside it."""

from __future__ import annotations

from typing import Any

from tessera.errors import UserMistake
from tessera.frontend.scope import RESULT, RETURNED
from tessera.frontend.statements import StatementWalker


class FunctionWalker(StatementWalker):
    """Visits the body of a function whose parameters are in `scope`."""

    def run(self) -> Any:
        """Builds the body; the value that the function returns (None for a kernel)."""
        self.session.walkers.append(self)
        if self.fn not in self.session.dependencies:
            self.session.dependencies[self.fn] = None
            self.session.reads.function(self.fn)
        try:
            with self.reporting():
                return self._run()
        finally:
            self.session.walkers.pop()

    def _run(self) -> Any:
        self.scope.set(RETURNED, False)
        live = frozenset() if self.is_kernel else frozenset((RETURNED, RESULT))
        self.visit_block(self.source.tree.body, live)
        if self.is_kernel:
            return None
        returned, result = self.scope.get(RETURNED), self.scope.values.get(RESULT)
        if returned is not True and result is not None:
            raise UserMistake(
                "E037",
                f"`{self.fn.__name__}` returns a value on one path and nothing on another",
                "return a value on every path",
                node=self.source.tree,
            )
        return result
