# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""enable(): torch's functions by the operators of tessera.ops, within a `with` statement."""

from __future__ import annotations

from typing import Any, Sequence

from tessera.locks import load


def enable(*, unused: Sequence[str] = (), random: bool = False) -> Any:
    """A context in which calls of torch's functions and methods are those of tessera.ops.

    unused: names of operators that stay torch's. A call that an operator does not take is torch's.
    The context has `taken`, the number of calls by the operator, and `refused`, that by the operator and
    the reason. Only eager calls of this thread are replaced. Functions that torch.compile traces stay
    torch's: tessera.torch.enable and optimize decide about them, whichever came first.
    random: true if dropouts, rrelu, gumbel_softmax and multinomial are replaced, too. Their statistics are
      torch's, and torch.manual_seed repeats them, but elements are others. multinomial checks no weights.
    Shapes: as each operator's. Types: tensors of torch. Errors: E093 for a name that is no operator.

    Example:
        import torch
        from tessera import ops

        with ops.enable() as used:
            y = torch.nn.functional.gelu(torch.ones(3))
            torch.nn.functional.relu(y, inplace=True)
        assert used.taken == {"gelu": 1}
        assert used.refused == {"relu": {"it got inplace=True": 1}}
    """
    return load("tessera.ops.replacing").Replacing(unused, random)
