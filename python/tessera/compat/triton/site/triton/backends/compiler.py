# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Targets, and the compiler for them."""

from __future__ import annotations

from typing import Any, Mapping

from tessera.compiler.options import CompileOptions, OPTION_NAMES
from tessera.machine.devices import GPUTarget

__all__ = ["BaseBackend", "GPUTarget", "TesseraBackend", "target_name"]


def target_name(target: Any) -> str:
    """The value of Tessera's option `target` for a GPUTarget."""
    if target.backend == "cpu":
        return "cpu"
    if target.backend != "cuda":
        from tessera import LaunchError

        raise LaunchError(
            "E030", f"there is no code generator for {target.backend!r}", "use 'cuda' or 'cpu'"
        )
    return f"sm_{target.arch}" + ("a" if target.arch in (90, 100, 120) else "")


class TesseraBackend:
    """Compiles for one target."""

    def __init__(self, target: GPUTarget) -> None:
        self.target = target
        self.binary_ext = "cubin" if target.backend == "cuda" else "object"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """True if there is a code generator for it."""
        return target.backend in ("cuda", "cpu")

    def hash(self) -> str:
        """Equal where the same IR gives the same machine code."""
        from tessera.compiler.compile import machine_key
        from triton.runtime.cache import triton_key

        return f"{triton_key()}-{machine_key(self.parse_options({}))}-{self.target}"

    def parse_options(self, options: Mapping[str, Any]) -> CompileOptions:
        """The options of a compilation; other names are ignored."""
        given = {name: value for name, value in options.items() if name in OPTION_NAMES}
        given.pop("arch", None)
        return CompileOptions.of({**given, "target": target_name(self.target)})

    def load_dialects(self, context: Any) -> None:
        """There are none to load."""

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """Functions that make IR for a target; there are none."""
        return {}

    def get_module_map(self) -> dict[str, Any]:
        """Modules of the language that another stands for: none."""
        return {}

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """The attributes of an argument, from the letters of `native_specialize_impl`."""
        return [["tt.divisibility", 16]] if "D" in desc else []


BaseBackend = TesseraBackend
