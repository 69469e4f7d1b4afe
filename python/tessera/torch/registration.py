# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The back end `tessera` of torch.compile, made known where Tessera is used from a checkout.

torch finds back ends by the entry points of installed packages. A wheel has such an entry point
(pyproject.toml), a checkout on PYTHONPATH has not, so `import tessera.torch` adds it. Nothing of torch is
imported for that.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Iterator, Optional

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_GROUP, _NAME, _VALUE = "torch_dynamo_backends", "tessera", "tessera.torch:compile_graph"


def register() -> None:
    """Makes `torch.compile(..., backend="tessera")` possible, now or once torch is imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # Behind the finder of installed packages: where there is a wheel, its own entry is found first.
        sys.meta_path.append(_Finder())
    registry = sys.modules.get("torch._dynamo.backends.registry")
    if registry is not None:
        # torch looks for entry points once, which may be over.
        from importlib.metadata import EntryPoint

        registry._BACKENDS.setdefault(_NAME, EntryPoint(_NAME, _VALUE, _GROUP))


class _Finder:
    """Finds no modules, and the metadata that a wheel would have."""

    def find_spec(self, *_: Any) -> None:
        return None

    def find_distributions(self, context: Any = None) -> Iterator["Distribution"]:
        from importlib.metadata import Distribution

        class Checkout(Distribution):
            def read_text(self, filename: str) -> Optional[str]:
                if filename == "entry_points.txt":
                    return f"[{_GROUP}]\n{_NAME} = {_VALUE}\n"
                if filename == "METADATA":
                    version = sys.modules["tessera"].__version__
                    return f"Metadata-Version: 2.1\nName: tessera\nVersion: {version}\n"
                return None

            def locate_file(self, path: Any) -> Any:
                return path

        if getattr(context, "name", None) in (None, "tessera"):
            yield Checkout()
