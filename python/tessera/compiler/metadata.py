# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The properties of a compiled kernel: by name, and as attributes.

`kernel.metadata["shared_bytes"]` is the compiler's name of a property. `kernel.metadata.shared` and
the other attributes serve programs written for Triton; `_fields` and `_asdict` list them, as of a
named tuple.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional

from tessera import _C
from tessera.compiler.remarks import Remark
from tessera.locks import CachedProperty
from tessera.machine.devices import GPUTarget, WARP_SIZE

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions

_OF_OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "ptx_version",
    "ptx_options",
    "enable_fp_fusion",
    "enable_reflect_ftz",
    "launch_cooperative_grid",
    "launch_pdl",
    "extern_libs",
    "debug",
    "sanitize_overflow",
    "sanitize_promises",
    "instrumentation_mode",
)


class KernelMetadata(Mapping[str, Any]):
    """See the module."""

    _fields = (
        *_OF_OPTIONS,
        "arch",
        "cluster_dims",
        "hash",
        "name",
        "shared",
        "target",
        "tensordesc_meta",
        "tmem_size",
        "warp_size",
    )

    def __init__(
        self,
        kernel: _C.Kernel,
        options: "Optional[CompileOptions]" = None,
    ) -> None:
        self._kernel = kernel
        self._facts = kernel.metadata()
        self._options = options

    @CachedProperty
    def _remarks(self) -> tuple[Remark, ...]:
        """The remarks, whose text takes longer to make than all else that a launch reads here."""
        return tuple(map(Remark.read, self._facts["remarks"]))

    def __getitem__(self, name: str) -> Any:
        return self._remarks if name == "remarks" else self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return f"KernelMetadata({dict(self)!r})"

    def _repr_html_(self) -> str:
        """How a notebook shows it: a table of names and values, and the remarks."""
        from html import escape

        from tessera.notebook import facts_html, list_html

        facts = [(name, str(value)) for name, value in self.items() if name != "remarks"]
        title = f"<b>Metadata of <code>{escape(self.name)}</code></b>"
        return f"<div>{title}{facts_html(facts)}{list_html('Remarks', self['remarks'])}</div>"

    def __getattr__(self, name: str) -> Any:
        if name in ("num_warps", "num_ctas") and self._facts["target"] == "cuda":
            return self._facts[name]  # which may be more than were asked for
        if name in _OF_OPTIONS and (options := self.__dict__.get("_options")) is not None:
            return getattr(options, name)
        raise AttributeError(f"the metadata of a kernel have no {name!r}")

    def _asdict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields if hasattr(self, name)}

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self._facts["name"])

    @CachedProperty
    def hash(self) -> str:
        """In hexadecimal; equal for the same machine code that is launched in the same way."""
        data = self._kernel.serialize()
        code = data[24 + int.from_bytes(data[16:24], "little") :]  # behind the head and the facts
        facts = {name: fact for name, fact in self._facts.items() if name != "stage_ms"}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode() + code).hexdigest()

    @property
    def target(self) -> GPUTarget:
        """Its target."""
        if self._facts["target"] == "cuda":
            return GPUTarget("cuda", int(self._facts["capability"]), WARP_SIZE)
        return GPUTarget("cpu", str(self._facts["cpu"]), WARP_SIZE)

    @property
    def warp_size(self) -> int:
        """How many threads a warp has."""
        return self.target.warp_size

    @property
    def arch(self) -> str:
        """The architecture, such as "sm_90a", or the name of the CPU."""
        return str(self._facts["arch"] or self._facts["cpu"])

    @property
    def shared(self) -> int:
        """The bytes of shared memory of a program. On a CPU those that it keeps its tiles in, a
        cache line at least."""
        if self._facts["target"] == "cuda":
            return int(self._facts["shared_bytes"])
        return max(64, int(self._facts["scratch_bytes"]))

    @property
    def cluster_dims(self) -> tuple[int, int, int]:
        """How many blocks a cluster has along each axis."""
        return (int(self._facts.get("num_ctas", 1)), 1, 1)

    @property
    def tmem_size(self) -> int:
        """The columns of tensor memory, which no target here has."""
        return 0

    @property
    def tensordesc_meta(self) -> tuple[()]:
        """Triton's description of descriptors for launches: empty, since they are arguments."""
        return ()
