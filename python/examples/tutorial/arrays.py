# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arrays that the tutorial works on, and how its results are checked.

With torch and an NVIDIA GPU the arrays are torch tensors on that GPU, and the kernels run there.
Otherwise they are NumPy arrays, and the kernels run on the CPU.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any, Optional

import numpy as np


def load_torch() -> Any:
    """torch, or None where it is not installed."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


torch = load_torch()
ON_GPU = bool(torch and torch.cuda.is_available())
WHERE = torch.cuda.get_device_name() if ON_GPU else "the CPU"
LIBRARY = "torch" if ON_GPU else "numpy"
generator = np.random.default_rng(0)


def random(*shape: int, half: bool = False) -> Any:
    """Normally distributed float32 numbers; with `half`, float16 where the array is on a GPU."""
    values = generator.standard_normal(shape, dtype=np.float32)
    if not ON_GPU:
        return values
    return torch.from_numpy(values).to("cuda", torch.float16 if half else torch.float32)


def empty(*shape: int) -> Any:
    """A float32 array full of NaN, so that an element which is never written is noticed."""
    values = np.full(shape, np.nan, np.float32)
    return torch.from_numpy(values).to("cuda") if ON_GPU else values


def exact(array: Any) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array of float64, to compute a reference with."""
    return np.asarray(array.cpu() if ON_GPU else array, dtype=np.float64)


def check(what: str, result: Any, expected: np.ndarray[Any, Any], bound: float) -> None:
    """Prints one line; raises AssertionError if an element is further off than `bound`.

    The error of an element is relative where the expected value is larger than 1.
    """
    error = np.abs(exact(result) - expected) / np.maximum(1, np.abs(expected))
    # A NaN is not less than the bound, so it fails.
    assert error.max() <= bound, f"{what}: off by {error.max():.1e}, allowed is {bound:.1e}"
    print(f"{what}: right on {WHERE}, largest error {error.max():.1e}")


def plot_folder() -> Optional[str]:
    """The folder after `--plots` on the command line; None without it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--plots", metavar="FOLDER", help="measure, and write tables and plots")
    folder: Optional[str] = parser.parse_args().plots
    return folder
