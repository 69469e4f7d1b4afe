# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators whose derivative is a kernel: what runs where torch or JAX asks for a gradient.

Loading this module loads no torch. The part for autograd is in autograd.py.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from tessera.calls import recording
from tessera.calls.outputs import library_of
from tessera.locks import load

Results = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The results of a forward pass, and the arrays that its backward pass needs."""


def constant(array: Any) -> Any:
    """The same array, by which there is no derivative."""
    library = library_of(array)
    if library == "jax":
        return load("tessera.jax.derivatives").constant((array,))[0]
    return array.detach() if library == "torch" else array


def is_one_node(array: Any) -> bool:
    """True if a call with this array may be one node of torch's autograd, which nothing traces."""
    if (
        library_of(array) != "torch"
        or not array.ndim
        or 0 in array.shape
        or not array.requires_grad
    ):
        return False
    autograd: Any = load("tessera.ops.autograd")
    return bool(autograd.is_plain(array))


class Operator:
    """A function of arrays, with its derivative. `op(*arrays, **settings)` returns its results.

    forward: a function of the arrays and the settings. It returns the results, and the arrays that
      `backward` needs.
    backward: a function of these arrays, the gradients of the results, a flag for each array, and the
      settings. The flag is true if a gradient is wanted. It returns a gradient for each array, or None.
    """

    def __init__(
        self,
        name: str,
        forward: Callable[..., Results],
        backward: Optional[Callable[..., Sequence[Any]]],
        constants: int = 0,
    ) -> None:
        self.__name__ = name
        self.forward, self.backward = forward, backward
        self.constants = constants
        """How many results, the last ones, have no gradient."""

    def __call__(self, *arrays: Any, **settings: Any) -> Any:
        recorder = recording.current()
        if recorder is not None:
            return self._record(recorder, arrays, settings)
        tensors = [each for each in arrays if each is not None and library_of(each) == "torch"]
        if tensors:
            autograd: Any = load("tessera.ops.autograd")
            if autograd.is_watched(tensors):
                return autograd.call(self, arrays, settings)
        results = self._traced(arrays, settings)
        if results is None:
            results, _ = self.forward(*arrays, **settings)
        return results[0] if len(results) == 1 else results

    def _traced(self, arrays: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """The results of a call that JAX traces; None for others."""
        if not any(each is not None and library_of(each) == "jax" for each in arrays):
            return None
        derivatives: Any = load("tessera.jax.derivatives")
        if not derivatives.is_traced(arrays):
            return None
        return derivatives.operator(self, arrays, settings)

    def _record(
        self, recorder: recording.Recorder, arrays: tuple[Any, ...], settings: dict[str, Any]
    ) -> Any:
        """A call that is recorded, and not done."""
        if recorder.library != "torch":
            results, _ = self.forward(*arrays, **settings)
        else:
            autograd: Any = load("tessera.ops.autograd")
            results = autograd.record(self, arrays, settings)
        return results[0] if len(results) == 1 else results

    # Dynamo cannot trace a launch: it leaves the graph for the call.
    setattr(__call__, "_torchdynamo_disable", True)
