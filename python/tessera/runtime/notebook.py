# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shows a compiled kernel in a notebook: its resources, remarks, and the IR of each stage."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tessera.errors import TesseraError
from tessera.notebook import facts_html, list_html, stage_html

if TYPE_CHECKING:
    from tessera.runtime.kernel import CompiledKernel


def kernel_facts(kernel: CompiledKernel) -> list[tuple[str, str]]:
    """The properties of a kernel, a line each: a name, and a text."""
    metadata = kernel.metadata
    facts = [("target", str(metadata["arch"] or metadata["cpu"]))]
    if metadata["target"] == "cuda":
        facts += [
            ("warps", str(kernel.num_warps)),
            ("registers", f"{metadata['num_registers']} a thread"),
            ("spilled", f"{metadata['spill_bytes']} bytes a thread"),
            ("shared memory", f"{kernel.shared} bytes"),
        ]
        if metadata["assembler"] == "driver":
            # The driver alone knows, once it has assembled the kernel.
            facts[2:4] = [("registers", "as the driver assembles it")]
    else:
        facts += [
            ("vectors", f"{metadata['vector_bits']} bits"),
            ("memory for tiles", f"{metadata['scratch_bytes']} bytes a thread"),
        ]
    milliseconds = sum(time for _, time in metadata["stage_ms"])
    return [*facts, ("compiled in", f"{milliseconds:.0f} ms")]


def kernel_html(kernel: CompiledKernel) -> str:
    """The kernel as HTML: a table of facts, remarks, and the stages, each to be unfolded."""
    parts = [f"<b>Compiled kernel <code>{escape(kernel.name)}</code></b>"]
    parts += [facts_html(kernel_facts(kernel)), list_html("Remarks", kernel.remarks)]
    try:
        stages = [(name, kernel.stages[name]) for name in kernel.stages]
    except TesseraError as error:  # where they have to be made once more
        stages = []
        parts.append(f"<p>There are no stages to show: {escape(str(error))}</p>")
    parts += [stage_html(name, content) for name, content in stages]
    return f"<div>{''.join(parts)}</div>"
