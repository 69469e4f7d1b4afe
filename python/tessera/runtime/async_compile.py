# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling kernels beside the program: `with AsyncCompileMode(executor): kernel.warmup(...)`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Hashable, Optional

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

__all__ = ["AsyncCompileMode", "FutureKernel", "active_mode"]


class FutureKernel:
    """A kernel that is being compiled. Attributes are those of the kernel, once it is done."""

    def __init__(self, future: "Future[Any]") -> None:
        self.future = future

    def result(self, ignore_errors: bool = False) -> Any:
        """The CompiledKernel, when it is done; None for one that failed, with `ignore_errors`."""
        try:
            return self.future.result()
        except Exception:
            if ignore_errors:
                return None
            raise

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.result(), name)


class AsyncCompileMode:
    """Has `warmup` give its compilation to `executor` and return a FutureKernel.

    Leaving the block waits for all of them, and raises the first error unless `ignore_errors`.
    """

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.future_kernels: dict[Hashable, FutureKernel] = {}

    def submit(self, key: Hashable, compile: Callable[[], Any]) -> FutureKernel:
        """The future of `key`: one that was submitted before, or that of `compile()`."""
        if key not in self.future_kernels:
            self.future_kernels[key] = FutureKernel(self.executor.submit(compile))
        return self.future_kernels[key]

    def __enter__(self) -> "AsyncCompileMode":
        if active_mode.get() is not None:
            raise RuntimeError(
                "another AsyncCompileMode is active: one ends before the next begins"
            )
        active_mode.set(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        active_mode.set(None)
        futures = list(self.future_kernels.values())
        if exception[0] is not None:  # which counts; what was not begun need not be
            for kernel in futures:
                kernel.future.cancel()
            return
        for kernel in futures:
            kernel.result(ignore_errors=True)
        for kernel in futures:
            kernel.result(self.ignore_errors)


active_mode: ContextVar[Optional[AsyncCompileMode]] = ContextVar("active_mode", default=None)
