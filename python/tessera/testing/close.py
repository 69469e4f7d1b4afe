# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparing arrays of any framework within a tolerance."""

from __future__ import annotations

from typing import Any, Callable, Union

Tolerance = Union[None, float, Callable[[Any], float]]


def assert_close(
    x: Any, y: Any, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = ""
) -> None:
    """Raises AssertionError unless |x - y| <= atol + rtol * |y| for all elements.

    NaN is close to NaN. The arrays may be NumPy's, torch's, on a GPU, lists or numbers; `atol`
    (0.01 unless given) and `rtol` (0) may be functions of a dtype.

    Example:
        import numpy as np
        import tessera.testing

        x = np.linspace(0, 1, 5, dtype=np.float32)
        tessera.testing.assert_close(x + 1e-4, x, atol=1e-3)
        try:
            caught = tessera.testing.assert_close(x, [0, 0.25, 0.5, 0.75, 9.0], err_msg="last one")
        except AssertionError as error:
            caught = error
        assert "last one" in str(caught)
    """
    import numpy

    absolute = _tolerance(atol, 1e-2, x)
    relative = _tolerance(rtol, 0.0, x)
    left, right = _as_numpy(numpy, x), _as_numpy(numpy, y)
    if left.size > 1 or right.size > 1:
        numpy.testing.assert_allclose(
            left, right, atol=absolute, rtol=relative, equal_nan=True, err_msg=err_msg
        )
    elif not numpy.allclose(left, right, atol=absolute, rtol=relative, equal_nan=True):
        what = f"{err_msg}: " if err_msg else ""
        raise AssertionError(
            f"{what}{left} is not close to {right} (atol={absolute}, rtol={relative})"
        )


def _tolerance(given: Tolerance, usual: float, x: Any) -> float:
    if given is None:
        return usual
    return given(getattr(x, "dtype", None)) if callable(given) else given


def _as_numpy(numpy: Any, value: Any) -> Any:
    if hasattr(value, "detach"):  # torch
        value = value.detach().cpu()
        try:
            return value.numpy()
        except TypeError:  # a type that NumPy does not have, such as bfloat16
            return value.float().numpy()
    if hasattr(value, "__cuda_array_interface__") and hasattr(value, "get"):  # CuPy
        return value.get()
    array = numpy.asarray(value)
    # The types that ml_dtypes adds have too little arithmetic.
    return array.astype(numpy.float32) if array.dtype.kind == "V" else array
