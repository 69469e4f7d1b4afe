# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the arguments of `@autotune`, made when the decorator runs."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType
from typing import Any, Iterable, Sequence

from tessera.errors import CompilationError, TuningWarning, _frames_of_ours
from tessera.locks import load
from tessera.tuning.config import Config
from tessera.tuning.heuristics import filled_names, name_like
from tessera.wording import shown, with_article


def check_configs(fn: Any, configs: Any) -> None:
    """That `configs` is "auto" or a list of configurations."""
    if isinstance(configs, str):
        if configs != "auto":
            raise CompilationError.at_caller(
                "E059", f"configs is {configs!r}", 'pass a list of Config, or "auto"'
            )
        return
    if not isinstance(configs, (list, tuple)):
        what = with_article(type(configs).__name__)
        raise CompilationError.at_caller(
            "E059", f"configs is {what}", 'pass a list of Config, or "auto"'
        )
    for config in configs:
        if not isinstance(config, Config):
            raise CompilationError.at_caller(
                "E059",
                f"among the configurations is {with_article(type(config).__name__)}: "
                f"{shown(config)}",
                'write Config({"NAME": value}, num_warps=4)',
            )
    if not configs:
        warnings.warn(
            f"tessera: the list of configurations of kernel `{fn.__name__}` is empty (E059): it is "
            "launched as if there were one with the default options",
            TuningWarning,
            stacklevel=_frames_of_ours(),
        )


def checked_names(fn: Any, names: Sequence[str], what: str, items: Any) -> list[str]:
    """Those of a list of names that are parameters; all, or there is an error."""
    if isinstance(items, str):
        raise CompilationError.at_caller(
            "E059", f"{what} is the string {items!r}", f"pass a list: [{items!r}]"
        )
    known = []
    # The values of heuristics below are unknown until a configuration has been chosen.
    filled = filled_names(fn) if what == "key" else ()
    for item in items or ():
        if item in names and item not in filled:
            known.append(item)
            continue
        message = f"{what} names {item!r}, which is no parameter of `{fn.__name__}`"
        fix = name_like(item, names)
        if item in filled:
            message = f"{what} names {item!r}, which the heuristics of `{fn.__name__}` compute"
            fix = "name the arguments that the heuristic reads"
        if not _is_written_for_triton(fn):
            raise CompilationError.at_caller("E059", message, fix)
        # Triton does not look, and there are kernels that live by that.
        text = f"tessera: {message} (E059); it is ignored: {fix}"
        warnings.warn(text, TuningWarning, stacklevel=_frames_of_ours())
    return known


def _is_written_for_triton(kernel: Any) -> bool:
    """True if a kernel is of a program that imports triton and gets Tessera. That something else
    in the process does, as torch.compile, makes no kernel of Tessera's one of Triton's."""
    if getattr(sys.modules.get("triton"), "__tessera__", False) is not True:
        return False
    while hasattr(kernel, "fn"):
        kernel = kernel.fn
    modules = [value for value in kernel.__globals__.values() if isinstance(value, ModuleType)]
    imported = {module.__name__.partition(".")[0] for module in modules}
    return "triton" in imported or "tessera" not in imported


def check_values(fn: Any, names: Sequence[str], configs: Any) -> None:
    """That configurations set parameters of the kernel (`names`) and options, to constants."""
    options: Iterable[str] = load("tessera.compiler.options").OPTION_NAMES
    for config in () if isinstance(configs, str) else configs:
        try:
            hash(config)
        except TypeError as error:
            raise CompilationError.at_caller(
                "E059",
                f"a value in the configuration {shown(config)} cannot be hashed: {error}",
                "a constexpr is a number, a string or a tuple of these",
            ) from None
        for name, value in config.kwargs.items():
            own = config.options().get(name, value)
            if own is not value and own != value:
                message = (
                    f"a configuration of `{fn.__name__}` has {name}={shown(value)} among its values "
                    f"and {name}={shown(own)} of its own, which counts"
                )
                fix = f"write Config({{...}}, {name}={shown(value)})"
                if not _is_written_for_triton(fn):
                    raise CompilationError.at_caller("E059", message, fix)
                text = f"tessera: {message} (E059): {fix}"
                warnings.warn(text, TuningWarning, stacklevel=_frames_of_ours())
            if name not in names and name not in options and not _is_written_for_triton(fn):
                raise CompilationError.at_caller(
                    "E059",
                    f"a configuration sets {name!r}, which is no parameter of `{fn.__name__}` and "
                    "no option",
                    name_like(name, [*names, *options]),
                )
